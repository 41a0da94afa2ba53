//! The voters of a new dynamic quorum (KIP-853).

use std::collections::BTreeMap;
use std::net::Ipv6Addr;

use crate::config::Config;
use crate::records::ControlRecord;
use crate::records::control::{
    KRaftVersion, KRaftVersionFeature, KRaftVoter, KRaftVoters, VoterEndpoint,
};
use crate::types::ids::parse_base64url;
use crate::types::{NodeId, Uuid};

/// A voter of `--initial-controllers`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Voter {
    pub(super) directory: Uuid,
    pub(super) host: String,
    pub(super) port: u16,
}

/// Where a voter without a host is told to be.
const LOCAL: &str = "localhost";

/// Parses `ID@HOST:PORT:DIRECTORY_ID,...`.
///
/// # Errors
/// The sentence about the first part that is wrong.
pub(super) fn parse(text: &str) -> Result<BTreeMap<NodeId, Voter>, String> {
    let mut voters = BTreeMap::new();
    for part in text
        .split(',')
        .map(str::trim)
        .filter(|part| !part.is_empty())
    {
        let (id, voter) = parse_one(part)?;
        if voters.insert(id, voter).is_some() {
            return Err(format!("Node id {id} was specified more than once."));
        }
    }
    Ok(voters)
}

fn parse_one(text: &str) -> Result<(NodeId, Voter), String> {
    let (id, rest) = text
        .split_once('@')
        .ok_or("No @ found in dynamic voter string.")?;
    let id: i32 = id
        .parse()
        .map_err(|_| format!("Failed to parse node id in dynamic voter string: {id}"))?;
    if id < 0 {
        return Err(format!(
            "Invalid negative node id {id} in dynamic voter string."
        ));
    }
    let (host, rest) = match rest.strip_prefix('[') {
        Some(rest) => {
            let missing = "Hostname began with left bracket, but no right bracket was found.";
            let (host, rest) = rest.split_once(']').ok_or(missing)?;
            (
                host,
                rest.strip_prefix(':')
                    .ok_or("No colon following hostname could be found.")?,
            )
        }
        None => rest
            .split_once(':')
            .ok_or("No colon following hostname could be found.")?,
    };
    let (port, directory) = rest
        .split_once(':')
        .ok_or("No colon following port could be found.")?;
    let port = port
        .parse()
        .map_err(|_| format!("Failed to parse port in dynamic voter string: {port}"))?;
    let directory = parse_base64url(directory).ok_or_else(|| {
        format!("Failed to parse directory ID in dynamic voter string: {directory}")
    })?;
    Ok((
        NodeId(id),
        Voter {
            directory,
            host: as_java_writes(host),
            port,
        },
    ))
}

/// Java writes an IPv6 address in full.
fn as_java_writes(host: &str) -> String {
    if host.is_empty() {
        return LOCAL.to_owned();
    }
    match host.parse::<Ipv6Addr>() {
        Ok(address) => {
            let groups = address.segments();
            groups.map(|group| format!("{group:x}")).join(":")
        }
        Err(_) => host.to_owned(),
    }
}

/// This controller as the only voter, with the endpoint of the first controller listener.
///
/// # Errors
/// When the configuration names no controller listener.
pub(super) fn standalone(config: &Config, directory: Uuid) -> Result<Voter, String> {
    let endpoint = config
        .advertised_listeners
        .first()
        .ok_or("controller.listener.names names no listener of this node.")?;
    let host = endpoint.host.as_deref().unwrap_or_default();
    Ok(Voter {
        directory,
        host: as_java_writes(host),
        port: endpoint.port,
    })
}

/// The control records of the snapshot 0-0: kraft.version 1, and the voters if they are known.
pub(super) fn control(
    voters: Option<&BTreeMap<NodeId, Voter>>,
    listener: &str,
) -> Vec<ControlRecord> {
    let mut records = vec![ControlRecord::KRaftVersion(KRaftVersion {
        k_raft_version: 1,
        ..KRaftVersion::default()
    })];
    if let Some(voters) = voters {
        let voter = |(id, voter): (&NodeId, &Voter)| KRaftVoter {
            voter_id: id.0,
            voter_directory_id: voter.directory,
            endpoints: vec![VoterEndpoint {
                name: listener.to_owned(),
                host: voter.host.clone(),
                port: voter.port,
                ..VoterEndpoint::default()
            }],
            k_raft_version_feature: KRaftVersionFeature {
                min_supported_version: 0,
                max_supported_version: 1,
                ..KRaftVersionFeature::default()
            },
            ..KRaftVoter::default()
        };
        records.push(ControlRecord::KRaftVoters(KRaftVoters {
            voters: voters.iter().map(voter).collect(),
            ..KRaftVoters::default()
        }));
    }
    records
}
