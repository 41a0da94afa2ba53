//! Answers of the core to bytes.

use bytes::BytesMut;
use kafka_protocol::protocol::Encodable;

use super::core::Answer;
use super::wire::{self, SnapshotChunk};
use crate::controller::Reply;
use crate::raft::Response;
use crate::records::rpc::Message;

/// Appends the body of an answer. A refusal of the whole request is none: see `refusals`.
///
/// # Errors
/// The answer does not fit the version: our bug.
pub(crate) fn encode(answer: Answer, version: i16, out: &mut BytesMut) -> anyhow::Result<()> {
    match answer {
        Answer::Raft(response) => encode_raft(response, version, out),
        Answer::Fetch { response, records } => {
            wire::fetch_response(&response, records, version).encode(out, version)
        }
        Answer::Snapshot {
            response,
            size,
            position,
            bytes,
        } => {
            let chunk = SnapshotChunk {
                size: i64::try_from(size)?,
                position,
                bytes,
            };
            wire::fetch_snapshot_response(&response, chunk, version).encode(out, version)
        }
        Answer::Controller(Ok(reply)) => encode_reply(reply, version, out),
        Answer::Controller(Err(error)) => anyhow::bail!("a refusal has no body: {error:?}"),
    }
}

fn encode_raft(response: Response, version: i16, out: &mut BytesMut) -> anyhow::Result<()> {
    match response {
        Response::Vote(vote) => wire::vote_response(&vote, version).encode(out, version),
        Response::BeginQuorumEpoch(begin) => {
            wire::begin_quorum_epoch_response(&begin, version).encode(out, version)
        }
        Response::EndQuorumEpoch(end) => {
            wire::end_quorum_epoch_response(&end, version).encode(out, version)
        }
        Response::Fetch(fetch) => {
            wire::fetch_response(&fetch, bytes::Bytes::new(), version).encode(out, version)
        }
        Response::FetchSnapshot(fetch) => {
            wire::fetch_snapshot_response(&fetch, SnapshotChunk::default(), version)
                .encode(out, version)
        }
        Response::DescribeQuorum(quorum) => {
            wire::describe_quorum_response(&quorum, version).encode(out, version)
        }
        // Version 1 changed the request only.
        Response::AddVoter(added) => wire::add_voter_response(&added).encode(out, 0),
        Response::RemoveVoter(removed) => {
            wire::remove_voter_response(&removed).encode(out, version)
        }
        Response::UpdateVoter(updated) => {
            wire::update_voter_response(&updated).encode(out, version)
        }
    }
}

fn encode_reply(reply: Reply, version: i16, out: &mut BytesMut) -> anyhow::Result<()> {
    match reply {
        Reply::AlterClientQuotas(reply) => reply.encode(out, version),
        Reply::AlterUserScramCredentials(reply) => reply.encode(out, version),
        Reply::AlterConfigs(reply) => reply.encode(out, version),
        Reply::AllocateProducerIds(reply) => reply.encode(out, version),
        Reply::AlterPartition(reply) => reply.encode(out, version),
        Reply::AlterPartitionReassignments(reply) => reply.encode(out, version),
        Reply::AssignReplicasToDirs(reply) => reply.encode(out, version),
        // Version 2 changed the request only.
        Reply::BrokerHeartbeat(reply) => reply.encode(out, version.min(1)),
        Reply::BrokerRegistration(reply) => reply.encode(out, version),
        Reply::ControllerRegistration(reply) => reply.encode(out, version),
        Reply::CreateDelegationToken(reply) => reply.encode(out, version),
        Reply::CreateAcls(reply) => reply.encode(out, version),
        Reply::CreatePartitions(reply) => reply.encode(out, version),
        Reply::CreateTopics(reply) => reply.encode(out, version),
        Reply::DeleteAcls(reply) => reply.encode(out, version),
        Reply::DeleteTopics(reply) => reply.encode(out, version),
        Reply::ElectLeaders(reply) => reply.encode(out, version),
        Reply::ExpireDelegationToken(reply) => reply.encode(out, version),
        Reply::IncrementalAlterConfigs(reply) => reply.encode(out, version),
        Reply::UnregisterBroker(reply) => reply.encode(out, version),
        Reply::UnregisterController(reply) => {
            let mut body = Vec::new();
            reply.encode(&mut body, version)?;
            out.extend_from_slice(&body);
            Ok(())
        }
        Reply::ListPartitionReassignments(reply) => reply.encode(out, version),
        Reply::RenewDelegationToken(reply) => reply.encode(out, version),
        Reply::UpdateFeatures(reply) => reply.encode(out, version),
    }
}
