//! Checked values as a [`Config`].

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::authorizer;
use super::checks::{Facts, LISTENERS};
use super::limits;
use super::listeners::Written;
use super::model::{
    Config, Controller, Endpoint, Listener, MetadataLog, Quorum, Secret, Snapshots, Sockets,
};
use super::topic_defaults;
use super::values::Values;
use super::voters::WILDCARD;
use crate::types::NodeId;

/// The configuration of values that no check refuses.
pub(crate) fn config(values: &Values, facts: Facts) -> Config {
    let names = values.list("controller.listener.names").unwrap_or_default();
    let log_dirs = log_dirs(values);
    let set = values.text("metadata.log.dir").map(PathBuf::from);
    let node_id = NodeId(int(values, "node.id"));
    Config {
        node_id,
        listeners: facts
            .listeners
            .iter()
            .map(|e| listener(values, names, e))
            .collect(),
        advertised_listeners: advertised(node_id, names, &facts),
        controller_listener_names: names.to_vec(),
        metadata_log_dir: set
            .clone()
            .or_else(|| log_dirs.first().cloned())
            .unwrap_or_default(),
        metadata_log_dir_set: set,
        log_dirs,
        quorum: quorum(values, &facts),
        metadata_log: metadata_log(values),
        snapshots: snapshots(values),
        controller: controller(values),
        authorizer: authorizer::of(values),
        sockets: sockets(values),
        create_topic_rules: facts.create_topic,
        alter_config_rules: facts.alter_config,
        topic_defaults: topic_defaults::of(values),
        originals: values
            .texts()
            .iter()
            .map(|(key, text)| (key.clone(), Secret(text.clone())))
            .collect(),
        effective: values.effective(),
        roles: facts.roles,
    }
}

fn log_dirs(values: &Values) -> Vec<PathBuf> {
    let dirs = values.list("log.dirs").or_else(|| values.list("log.dir"));
    dirs.unwrap_or_default().iter().map(PathBuf::from).collect()
}

/// An INT key, whose range the parser held.
fn int(values: &Values, key: &str) -> i32 {
    i32::try_from(values.number(key)).expect("INT keys are parsed as 32-bit numbers")
}

/// An INT key whose rule allows no negative number.
fn unsigned(values: &Values, key: &str) -> u32 {
    u32::try_from(values.number(key)).expect("the key's rule starts at 0 or above")
}

/// A LONG key whose rule allows no negative number.
fn long(values: &Values, key: &str) -> u64 {
    u64::try_from(values.number(key)).expect("the key's rule starts at 0 or above")
}

/// A key for which every negative number means "none".
fn optional(values: &Values, key: &str) -> Option<u64> {
    u64::try_from(values.number(key)).ok()
}

fn endpoint(written: &Written) -> Endpoint {
    Endpoint {
        name: written.name.clone(),
        host: written.host.clone(),
        port: u16::try_from(written.port).expect("the checks held ports to 0 to 65535"),
        protocol: written.protocol,
    }
}

fn listener(values: &Values, names: &[String], written: &Written) -> Listener {
    let prefix = written.name.to_lowercase();
    let limit = |key| match values.limit(&prefix, key) {
        Ok(limit) => limit.unwrap_or(i32::MAX.unsigned_abs()),
        Err(_) => unreachable!("the checks of {LISTENERS} held the limits of listeners"),
    };
    Listener {
        endpoint: endpoint(written),
        controller: names.contains(&written.name),
        connections_max: limit("max.connections"),
        connection_rate_max: limit("max.connection.creation.rate"),
    }
}

/// As Java: the advertised endpoint of a name if there is one; else where it listens, and for the
/// first name, when that is every address, what the other voters know this node by.
fn advertised(node_id: NodeId, names: &[String], facts: &Facts) -> Vec<Endpoint> {
    let mut endpoints = Vec::new();
    for (index, name) in names.iter().enumerate() {
        let upper = name.to_uppercase();
        if let Some(written) = facts.advertised.iter().find(|e| e.name == upper) {
            endpoints.push(endpoint(written));
            continue;
        }
        let Some(written) = facts.listeners.iter().find(|e| e.name == upper) else {
            continue;
        };
        let mut endpoint = endpoint(written);
        if endpoint.host.as_deref().is_none_or(|host| host == WILDCARD) {
            endpoint.host = None;
            let voter = facts.voters.get(&node_id).filter(|_| index == 0);
            if let Some(voter) = voter {
                endpoint.host = Some(voter.host.clone());
                endpoint.port = voter.port;
            }
        }
        endpoints.push(endpoint);
    }
    endpoints
}

fn quorum(values: &Values, facts: &Facts) -> Quorum {
    let key = |name: &str| unsigned(values, &format!("controller.quorum.{name}"));
    Quorum {
        voters: facts.voters.clone(),
        bootstrap_servers: facts.servers.clone(),
        election_timeout_ms: key("election.timeout.ms"),
        fetch_timeout_ms: key("fetch.timeout.ms"),
        election_backoff_ms_max: key("election.backoff.max.ms"),
        append_linger_ms: key("append.linger.ms"),
        request_timeout_ms: key("request.timeout.ms"),
        retry_backoff_ms: key("retry.backoff.ms"),
        fetch_bytes_max: key("fetch.max.bytes"),
        fetch_snapshot_bytes_max: key("fetch.snapshot.max.bytes"),
        auto_join: values.boolean("controller.quorum.auto.join.enable"),
    }
}

fn metadata_log(values: &Values) -> MetadataLog {
    let internal = values.number_of("internal.metadata.log.segment.bytes");
    let segment_bytes = internal.unwrap_or_else(|| values.number("metadata.log.segment.bytes"));
    MetadataLog {
        segment_bytes: u32::try_from(segment_bytes).unwrap_or(0),
        segment_ms: values.number("metadata.log.segment.ms"),
        batch_bytes_max: u32::try_from(values.number("internal.metadata.max.batch.size.in.bytes"))
            .unwrap_or(0),
        delete_delay_ms: values.number("internal.metadata.delete.delay.millis"),
    }
}

fn snapshots(values: &Values) -> Snapshots {
    let interval = long(values, "metadata.log.max.snapshot.interval.ms");
    Snapshots {
        record_bytes_between: long(values, "metadata.log.max.record.bytes.between.snapshots"),
        interval_ms: (interval > 0).then_some(interval),
        retention_bytes: values.number("metadata.max.retention.bytes"),
        retention_ms: values.number("metadata.max.retention.ms"),
    }
}

fn controller(values: &Values) -> Controller {
    let idle = unsigned(values, "metadata.max.idle.interval.ms");
    let rebalance = long(values, "leader.imbalance.check.interval.seconds");
    Controller {
        idle_interval_ms: (idle > 0).then_some(idle),
        session_timeout_ms: int(values, "broker.session.timeout.ms"),
        heartbeat_interval_ms: int(values, "broker.heartbeat.interval.ms"),
        num_partitions: int(values, "num.partitions"),
        default_replication_factor: int(values, "default.replication.factor"),
        min_insync_replicas: int(values, "min.insync.replicas"),
        unclean_election: values.boolean("unclean.leader.election.enable"),
        unclean_election_interval_ms: long(values, "unclean.leader.election.interval.ms"),
        rebalance_interval_ms: values
            .boolean("auto.leader.rebalance.enable")
            .then(|| rebalance.saturating_mul(1000)),
        delete_topic: values.boolean("delete.topic.enable"),
        auto_create_topics: values.boolean("auto.create.topics.enable"),
        unstable_features: values.boolean("unstable.feature.versions.enable"),
        unstable_apis: values.boolean("unstable.api.versions.enable"),
        quota_windows: unsigned(values, "controller.quota.window.num"),
        quota_window_seconds: unsigned(values, "controller.quota.window.size.seconds"),
        token_secret: values
            .text("delegation.token.secret.key")
            .map(|text| Secret(text.to_owned())),
        token_lifetime_ms_max: values.number("delegation.token.max.lifetime.ms"),
        token_expiry_ms: values.number("delegation.token.expiry.time.ms"),
        token_check_interval_ms: long(values, "delegation.token.expiry.check.interval.ms"),
    }
}

fn sockets(values: &Values) -> Sockets {
    let buffer = |key: &str| {
        let bytes = u32::try_from(values.number(key)).ok();
        bytes.filter(|bytes| *bytes > 0)
    };
    let overrides = values
        .text("max.connections.per.ip.overrides")
        .unwrap_or_default();
    let positive = |key: &str| u64::try_from(values.number(key)).unwrap_or(0);
    Sockets {
        request_bytes_max: unsigned(values, "socket.request.max.bytes"),
        queued_requests_max: unsigned(values, "queued.max.requests"),
        queued_request_bytes_max: optional(values, "queued.max.request.bytes")
            .filter(|bytes| *bytes > 0),
        connections_max: unsigned(values, "max.connections"),
        connections_per_ip_max: unsigned(values, "max.connections.per.ip"),
        connections_per_ip_overrides: limits::overrides(overrides)
            .map(BTreeMap::from_iter)
            .unwrap_or_default(),
        connection_rate_max: unsigned(values, "max.connection.creation.rate"),
        idle_ms_max: optional(values, "connections.max.idle.ms"),
        failed_authentication_delay_ms: unsigned(
            values,
            "connection.failed.authentication.delay.ms",
        ),
        backlog: unsigned(values, "socket.listen.backlog.size"),
        send_buffer_bytes: buffer("socket.send.buffer.bytes"),
        receive_buffer_bytes: buffer("socket.receive.buffer.bytes"),
        request_timeout_ms: int(values, "request.timeout.ms"),
        connect_timeout_ms: positive("socket.connection.setup.timeout.ms"),
        connect_timeout_ms_max: positive("socket.connection.setup.timeout.max.ms"),
        network_threads: unsigned(values, "num.network.threads"),
        io_threads: unsigned(values, "num.io.threads"),
    }
}
