//! From configuration and disk to the parts of a node.

use std::collections::{BTreeMap, HashMap};

use super::clock::Clock;
use crate::config::{self, Config};
use crate::controller::Settings;
use crate::controller::authorize::AuthorizerRules;
use crate::controller::policies::Policies;
use crate::controller::register_controller::{self, Registration};
use crate::controller::tokens::{TokenSecret, TokenSettings};
use crate::image::Image;
use crate::node::{Held, Parts, RetentionRules, SnapshotRules};
use crate::raft::{Boot, Raft, RaftConfig, VoterNode};
use crate::records::{ControllerEndpoint, FeatureLevelRecord, Record, VersionedRecord};
use crate::storage::directory::Opened;
use crate::types::features::{self, KRAFT_VERSION, METADATA_VERSION, MetadataVersion};
use crate::types::ids::base64url;
use crate::types::{NodeId, Offset, ReplicaKey, Uuid};

/// kraft.version levels that this release supports, both inclusive (KIP-853).
const KRAFT_VERSIONS: (u16, u16) = (0, 1);

/// Builds everything that [`crate::node::Node::new`] wants; the image comes with its end, `ports`
/// are those that the listeners are bound to.
///
/// # Errors
/// One sentence: nobody in the quorum could ever lead.
pub(super) fn build(
    config: &Config,
    opened: &Opened,
    (image, image_end): (Image, Offset),
    ports: &HashMap<String, u16>,
    clock: Clock,
) -> Result<Parts, String> {
    let endpoints = endpoints(config, ports);
    let settings = settings(config, opened);
    let seed = Uuid::new_v4().as_u64_pair().0;
    let raft = Raft::new(
        raft_config(config, opened, &endpoints, seed),
        boot(opened),
        clock.now().instant,
    );
    check_voters(config, opened, raft.voters())?;
    Ok(Parts {
        raft,
        image,
        image_end,
        registration: registration(&endpoints, &settings),
        bootstrap: bootstrap(opened),
        snapshots: SnapshotRules {
            bytes_between: config.snapshots.record_bytes_between,
            interval_ms: config.snapshots.interval_ms,
            retention: RetentionRules {
                bytes_max: u64::try_from(config.snapshots.retention_bytes).ok(),
                ms_max: u64::try_from(config.snapshots.retention_ms).ok(),
            },
        },
        held: Held {
            snapshots: opened.recovered.held.clone(),
            log_bytes: opened.recovered.log_bytes,
        },
        settings,
        seed,
    })
}

/// This node, with the directory of its log.
fn own_key(config: &Config, opened: &Opened) -> ReplicaKey {
    ReplicaKey {
        id: config.node_id,
        directory: opened.directory_id,
    }
}

/// Whether this node can be of any use. One that is no voter observes: it may be made a voter.
///
/// # Errors
/// One sentence that names the voters, this node and what helps: nobody could ever lead.
fn check_voters(config: &Config, opened: &Opened, voters: &[VoterNode]) -> Result<(), String> {
    let (id, directory) = (config.node_id, opened.directory_id);
    let own = own_key(config, opened);
    let dir = config.metadata_log_dir.display();
    match voters {
        [] if config.quorum.bootstrap_servers.is_empty() => Err(format!(
            "{dir} knows no voters and controller.quorum.bootstrap.servers is empty, so node {id} \
             would never find a leader: name the other controllers there, or format with \
             --standalone."
        )),
        [only] if only.key.id == id && !only.key.names(own) => Err(format!(
            "The only voter in {dir} is node {id} with directory {}, but this is node {id} with \
             directory {}: start it with the directory that the voter has.",
            base64url(only.key.directory),
            base64url(directory)
        )),
        _ => Ok(()),
    }
}

/// (listener, host, port) of each controller listener as peers see it.
pub(super) fn endpoints(config: &Config, ports: &HashMap<String, u16>) -> Vec<config::Endpoint> {
    let advertised = config.advertised_listeners.iter();
    advertised
        .map(|endpoint| {
            let mut endpoint = endpoint.clone();
            endpoint.host.get_or_insert_with(host_name);
            if endpoint.port == 0 {
                endpoint.port = ports.get(&endpoint.name).copied().unwrap_or(0);
            }
            endpoint
        })
        .collect()
}

/// What peers find this machine by; one without a name is found by those on it.
fn host_name() -> String {
    let name = rustix::system::uname();
    let name = name.nodename().to_string_lossy();
    if name.is_empty() {
        return "localhost".to_owned();
    }
    name.into_owned()
}

fn named(endpoints: &[config::Endpoint]) -> Vec<(String, String, u16)> {
    let named = |it: &config::Endpoint| {
        (
            it.name.clone(),
            it.host.clone().unwrap_or_default(),
            it.port,
        )
    };
    endpoints.iter().map(named).collect()
}

fn raft_config(
    config: &Config,
    opened: &Opened,
    endpoints: &[config::Endpoint],
    seed: u64,
) -> RaftConfig {
    let own = named(endpoints);
    let quorum = &config.quorum;
    let listener = config
        .controller_listener_names
        .first()
        .cloned()
        .unwrap_or_default();
    let voter = |(&id, address): (&NodeId, &config::HostPort)| VoterNode {
        key: ReplicaKey {
            id,
            directory: Uuid::nil(),
        },
        endpoints: if id == config.node_id {
            own.clone()
        } else {
            vec![(listener.clone(), address.host.clone(), address.port)]
        },
        kraft_versions: (0, 0),
    };
    RaftConfig {
        node: own_key(config, opened),
        cluster_id: opened.cluster_id.clone(),
        static_voters: quorum.voters.iter().map(voter).collect(),
        endpoints: own,
        election_timeout_ms: u64::from(quorum.election_timeout_ms),
        fetch_timeout_ms: u64::from(quorum.fetch_timeout_ms),
        election_backoff_ms_max: u64::from(quorum.election_backoff_ms_max),
        bootstrap: quorum
            .bootstrap_servers
            .iter()
            .map(|server| (server.host.clone(), server.port))
            .collect(),
        request_timeout_ms: u64::from(quorum.request_timeout_ms),
        retry_backoff_ms: u64::from(quorum.retry_backoff_ms),
        fetch_bytes_max: quorum.fetch_bytes_max,
        snapshot_bytes_max: quorum.fetch_snapshot_bytes_max,
        auto_join: config.quorum.auto_join,
        kraft_versions: KRAFT_VERSIONS,
        seed,
    }
}

fn boot(opened: &Opened) -> Boot {
    let recovered = opened.recovered.clone();
    Boot {
        quorum_state: recovered.quorum_state,
        log_start: recovered.log_start,
        log_end: recovered.log_end,
        epochs: recovered.epochs,
        snapshots: recovered.snapshots,
        control: recovered.control,
        commit: recovered.commit,
    }
}

fn settings(config: &Config, opened: &Opened) -> Settings {
    let controller = &config.controller;
    let unstable = controller.unstable_features;
    let supported = features::supported_features(unstable).into_iter();
    let originals = config.originals.iter();
    Settings {
        node_id: config.node_id,
        cluster_id: opened.cluster_id.clone(),
        session_timeout_ms: positive(controller.session_timeout_ms),
        heartbeat_interval_ms: positive(controller.heartbeat_interval_ms),
        num_partitions: controller.num_partitions,
        default_replication_factor: i16::try_from(controller.default_replication_factor)
            .unwrap_or(i16::MAX),
        delete_topic_enable: controller.delete_topic,
        idle_interval_ms: controller.idle_interval_ms.map_or(0, u64::from),
        static_configs: originals
            .map(|(key, value)| (key.clone(), value.0.clone()))
            .collect(),
        supported_features: supported
            .map(|(name, min, max)| (name.to_owned(), (min, max)))
            .collect::<BTreeMap<_, _>>(),
        static_voters: config.quorum.voters.keys().copied().collect(),
        rebalance_interval_ms: controller.rebalance_interval_ms,
        unclean_election_interval_ms: controller.unclean_election_interval_ms,
        quota_windows: controller.quota_windows,
        quota_window_seconds: controller.quota_window_seconds,
        tokens: TokenSettings {
            secret: controller
                .token_secret
                .as_ref()
                .and_then(|it| TokenSecret::new(&it.0)),
            max_lifetime_ms: controller.token_lifetime_ms_max,
            expiry_time_ms: controller.token_expiry_ms,
            check_interval_ms: controller.token_check_interval_ms,
        },
        authorizer: config.authorizer.as_ref().map(|it| AuthorizerRules {
            super_users: it.super_users.clone(),
            allow_everyone_if_no_acl_found: it.allow_everyone_if_no_acl_found,
        }),
        policies: Policies::new(
            config.create_topic_rules.clone(),
            config.alter_config_rules.clone(),
        )
        .expect("the pattern was compiled when the configuration was checked"),
    }
}

fn positive(ms: i32) -> u64 {
    u64::try_from(ms).unwrap_or(0)
}

/// Without anything from `format`, the newest level, as the reference does.
fn bootstrap(opened: &Opened) -> Vec<VersionedRecord> {
    if !opened.bootstrap.records.is_empty() {
        return opened.bootstrap.records.clone();
    }
    let record = FeatureLevelRecord {
        name: METADATA_VERSION.to_owned(),
        feature_level: MetadataVersion::LATEST_PRODUCTION.level(),
        ..FeatureLevelRecord::default()
    };
    vec![VersionedRecord {
        version: 0,
        record: Record::FeatureLevel(record),
    }]
}

/// How this process registers itself (KIP-919): a new incarnation at every start.
fn registration(endpoints: &[config::Endpoint], settings: &Settings) -> Registration {
    let listener = |it: &config::Endpoint| ControllerEndpoint {
        name: it.name.clone(),
        host: it.host.clone().unwrap_or_default(),
        port: it.port,
        security_protocol: it.protocol.id(),
        ..ControllerEndpoint::default()
    };
    let listeners = endpoints.iter().map(listener).collect();
    register_controller::own(settings, Uuid::new_v4(), listeners)
}

/// The first lines of a start: which node of which cluster this is, and what it starts from.
pub(super) fn log_start(config: &Config, opened: &Opened, parts: &Parts) {
    let raft = &parts.raft;
    let recovered = &opened.recovered;
    let voters: Vec<i32> = raft.voters().iter().map(|voter| voter.key.id.0).collect();
    // Without a snapshot the level is not known before the log is replayed.
    let snapshot = match recovered.snapshots.last() {
        Some(id) => format!(
            "latest snapshot {}-{} with {METADATA_VERSION}={}",
            id.offset,
            id.epoch,
            parts.image.features().level(METADATA_VERSION)
        ),
        None => "no snapshot".to_owned(),
    };
    tracing::info!(
        "kraftd {} node.id={} process.roles=controller cluster.id={} directory.id={} voters={:?}",
        env!("CARGO_PKG_VERSION"),
        config.node_id,
        opened.cluster_id,
        base64url(opened.directory_id),
        voters,
    );
    tracing::info!(
        "metadata log from {} to {}, {snapshot}, epoch {}, {KRAFT_VERSION}={}",
        recovered.log_start,
        recovered.log_end,
        raft.epoch(),
        raft.kraft_version(),
    );
    if raft.kraft_version() > 0 && !config.quorum.voters.is_empty() {
        tracing::warn!(
            "controller.quorum.voters is ignored: at {KRAFT_VERSION} {} the voters are in the log",
            raft.kraft_version(),
        );
    }
    let own = own_key(config, opened);
    if !raft.voters().iter().any(|voter| voter.key.names(own)) {
        tracing::info!(
            "node {} is not among the voters: it observes until it is made one",
            config.node_id
        );
    }
    if recovered.torn_bytes > 0 {
        tracing::warn!(
            "{} bytes of a torn tail were cut off the log",
            recovered.torn_bytes
        );
    }
}
