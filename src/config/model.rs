//! The configuration as the product uses it: typed, with defaults filled in, and valid.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;

use crate::types::NodeId;
pub use crate::types::SecurityProtocol;
use crate::types::policy::{AlterConfigRules, CreateTopicRules};

/// A whole valid configuration. Every field has the key it comes from in its comment.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// `node.id`.
    pub node_id: NodeId,
    /// `process.roles`, in the order of the file.
    pub roles: Vec<Role>,
    /// `listeners`, in the order of the file.
    pub listeners: Vec<Listener>,
    /// `controller.listener.names`; peers use the first.
    pub controller_listener_names: Vec<String>,
    /// The endpoints of the controller listeners as peers should see them, in the order of
    /// `controller.listener.names`: from `advertised.listeners`, else from `listeners` with a
    /// wildcard host replaced by this node's host in `controller.quorum.voters` (first listener
    /// only). [`Endpoint::host`] is still `None` where the answer is "this machine's own name".
    pub advertised_listeners: Vec<Endpoint>,
    /// `log.dirs`, else `log.dir`, in the order of the file.
    pub log_dirs: Vec<PathBuf>,
    /// `metadata.log.dir`, else the first of [`Self::log_dirs`].
    pub metadata_log_dir: PathBuf,
    /// `metadata.log.dir` only when the file sets it.
    pub metadata_log_dir_set: Option<PathBuf>,
    /// Consensus.
    pub quorum: Quorum,
    /// The metadata log's files.
    pub metadata_log: MetadataLog,
    /// When snapshots are written and deleted.
    pub snapshots: Snapshots,
    /// What the active controller does.
    pub controller: Controller,
    /// Who may do what; `None` lets everybody do everything.
    pub authorizer: Option<Authorizer>,
    /// Sockets of all listeners.
    pub sockets: Sockets,
    /// `kraftd.create.topic.policy.*`.
    pub create_topic_rules: CreateTopicRules,
    /// `kraftd.alter.config.policy.*`.
    pub alter_config_rules: AlterConfigRules,
    /// Effective defaults of topic configs: topic key to value as text, from the server keys of
    /// this file (`log.retention.hours=1` gives `retention.ms` = `3600000`). Every topic key that
    /// has a server key is present.
    pub topic_defaults: BTreeMap<&'static str, String>,
    /// Every key of a 4.4.0 server with its value as Java writes it, by name; `None` for a key
    /// without a value. What DescribeConfigs of this node shows. Holds secrets: never print it.
    pub effective: BTreeMap<&'static str, Option<Secret>>,
    /// Every key that the file or an override sets, known or not, as text after indirection.
    /// Holds secrets: never print it.
    pub originals: BTreeMap<String, Secret>,
}

/// Text that debug output masks.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(pub String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[hidden]")
    }
}

/// One of `process.roles`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Only `format` and `info` accept it: kraftd runs no broker.
    Broker,
    /// The role that kraftd runs.
    Controller,
}

/// A named address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// The listener's name, in capitals.
    pub name: String,
    /// `None` where the file leaves it empty: every local address to listen on, this machine's own
    /// name to advertise. IPv6 addresses come without brackets.
    pub host: Option<String>,
    /// 0 lets the system choose a free port (a listener only).
    pub port: u16,
    /// How peers talk to it.
    pub protocol: SecurityProtocol,
}

/// One of `listeners` with the limits that may be set per listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    /// Where it listens.
    pub endpoint: Endpoint,
    /// True when `controller.listener.names` has it.
    pub controller: bool,
    /// `listener.name.<name>.max.connections`; the total limit of [`Sockets`] holds besides.
    pub connections_max: u32,
    /// `listener.name.<name>.max.connection.creation.rate`, connections a second.
    pub connection_rate_max: u32,
}

/// A host and a port.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostPort {
    /// A name or an address; IPv6 without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
}

/// `host:port`, with brackets around an IPv6 address.
impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// The keys `controller.quorum.*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quorum {
    /// `controller.quorum.voters` by node id; empty when the quorum is dynamic.
    pub voters: BTreeMap<NodeId, HostPort>,
    /// `controller.quorum.bootstrap.servers`, in the order of the file.
    pub bootstrap_servers: Vec<HostPort>,
    /// `controller.quorum.election.timeout.ms`.
    pub election_timeout_ms: u32,
    /// `controller.quorum.fetch.timeout.ms`.
    pub fetch_timeout_ms: u32,
    /// `controller.quorum.election.backoff.max.ms`.
    pub election_backoff_ms_max: u32,
    /// `controller.quorum.append.linger.ms`.
    pub append_linger_ms: u32,
    /// `controller.quorum.request.timeout.ms`.
    pub request_timeout_ms: u32,
    /// `controller.quorum.retry.backoff.ms`.
    pub retry_backoff_ms: u32,
    /// `controller.quorum.fetch.max.bytes`.
    pub fetch_bytes_max: u32,
    /// `controller.quorum.fetch.snapshot.max.bytes`.
    pub fetch_snapshot_bytes_max: u32,
    /// `controller.quorum.auto.join.enable`.
    pub auto_join: bool,
}

/// The files of the metadata log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetadataLog {
    /// `internal.metadata.log.segment.bytes` when set, else `metadata.log.segment.bytes`.
    pub segment_bytes: u32,
    /// `metadata.log.segment.ms`. Java's own type is a signed number without a range.
    pub segment_ms: i64,
    /// `internal.metadata.max.batch.size.in.bytes`.
    pub batch_bytes_max: u32,
    /// `internal.metadata.delete.delay.millis`.
    pub delete_delay_ms: i64,
}

/// When snapshots are written and deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshots {
    /// `metadata.log.max.record.bytes.between.snapshots`, at least 1.
    pub record_bytes_between: u64,
    /// `metadata.log.max.snapshot.interval.ms`; `None` for 0, "no time trigger".
    pub interval_ms: Option<u64>,
    /// `metadata.max.retention.bytes` of log and snapshots together; negative: no limit.
    pub retention_bytes: i64,
    /// `metadata.max.retention.ms` of snapshots; negative: no limit.
    pub retention_ms: i64,
}

/// What the active controller does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Controller {
    /// `metadata.max.idle.interval.ms`: the period of NoOp records; `None` for 0.
    pub idle_interval_ms: Option<u32>,
    /// `broker.session.timeout.ms`.
    pub session_timeout_ms: i32,
    /// `broker.heartbeat.interval.ms`.
    pub heartbeat_interval_ms: i32,
    /// `num.partitions`, at least 1.
    pub num_partitions: i32,
    /// `default.replication.factor`. Java gives it no range.
    pub default_replication_factor: i32,
    /// `min.insync.replicas`, at least 1.
    pub min_insync_replicas: i32,
    /// `unclean.leader.election.enable`.
    pub unclean_election: bool,
    /// `unclean.leader.election.interval.ms`, at least 1.
    pub unclean_election_interval_ms: u64,
    /// `leader.imbalance.check.interval.seconds` in ms; `None` where
    /// `auto.leader.rebalance.enable` is false.
    pub rebalance_interval_ms: Option<u64>,
    /// `delete.topic.enable`.
    pub delete_topic: bool,
    /// `auto.create.topics.enable`, which DescribeConfigs shows.
    pub auto_create_topics: bool,
    /// `unstable.feature.versions.enable`.
    pub unstable_features: bool,
    /// `unstable.api.versions.enable`.
    pub unstable_apis: bool,
    /// `controller.quota.window.num`, at least 1.
    pub quota_windows: u32,
    /// `controller.quota.window.size.seconds`, at least 1.
    pub quota_window_seconds: u32,
    /// `delegation.token.secret.key`.
    pub token_secret: Option<Secret>,
    /// `delegation.token.max.lifetime.ms`, at least 1.
    pub token_lifetime_ms_max: i64,
    /// `delegation.token.expiry.time.ms`, at least 1.
    pub token_expiry_ms: i64,
    /// `delegation.token.expiry.check.interval.ms`, at least 1.
    pub token_check_interval_ms: u64,
}

/// `authorizer.class.name`, when it names Kafka's standard authorizer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authorizer {
    /// `super.users`, each as `Type:name`.
    pub super_users: BTreeSet<String>,
    /// `allow.everyone.if.no.acl.found`.
    pub allow_everyone_if_no_acl_found: bool,
}

/// Sockets of all listeners.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sockets {
    /// `socket.request.max.bytes`, at least 1: the largest frame.
    pub request_bytes_max: u32,
    /// `queued.max.requests`, at least 1: requests that wait for the core, of all listeners.
    pub queued_requests_max: u32,
    /// `queued.max.request.bytes`; `None` for no limit.
    pub queued_request_bytes_max: Option<u64>,
    /// `max.connections` of the process.
    pub connections_max: u32,
    /// `max.connections.per.ip`.
    pub connections_per_ip_max: u32,
    /// `max.connections.per.ip.overrides`, by the host's text as written.
    pub connections_per_ip_overrides: BTreeMap<String, u32>,
    /// `max.connection.creation.rate` of the process, connections a second.
    pub connection_rate_max: u32,
    /// `connections.max.idle.ms`; `None` where it is negative: never closed.
    pub idle_ms_max: Option<u64>,
    /// `connection.failed.authentication.delay.ms`.
    pub failed_authentication_delay_ms: u32,
    /// `socket.listen.backlog.size`, at least 1.
    pub backlog: u32,
    /// `socket.send.buffer.bytes`; `None` for -1, the system's default.
    pub send_buffer_bytes: Option<u32>,
    /// `socket.receive.buffer.bytes`; `None` for -1, the system's default.
    pub receive_buffer_bytes: Option<u32>,
    /// `request.timeout.ms`.
    pub request_timeout_ms: i32,
    /// `socket.connection.setup.timeout.ms`: the first time-out of an outgoing connection.
    pub connect_timeout_ms: u64,
    /// `socket.connection.setup.timeout.max.ms`: what it may grow to.
    pub connect_timeout_ms_max: u64,
    /// `num.network.threads`, at least 1. kraftd's threads do not depend on it.
    pub network_threads: u32,
    /// `num.io.threads`, at least 1. kraftd's threads do not depend on it.
    pub io_threads: u32,
}

impl Config {
    /// The controller listeners, in the order of `listeners`.
    pub fn controller_listeners(&self) -> impl Iterator<Item = &Listener> {
        self.listeners.iter().filter(|l| l.controller)
    }

    /// True when only this machine can reach `host`; `None` is every address.
    #[must_use]
    pub fn is_loopback(host: Option<&str>) -> bool {
        host.is_some_and(|host| {
            host.eq_ignore_ascii_case("localhost")
                || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
        })
    }
}
