//! A node with a disk that a test lets complete: the whole way from request to committed reply.

mod among_others;
mod cleaning;
mod following;
mod gathering;
mod leading;
mod limits;
mod loading;
mod unwritten;
mod upgrading;

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use kafka_protocol::messages::{
    BrokerId, BrokerRegistrationRequest, ControllerRegistrationRequest, broker_registration_request,
};
use kafka_protocol::protocol::StrBytes;

use super::*;
use crate::controller::{Reply, Request as Asked};
use crate::image::Image;
use crate::raft::{
    self, Ask, Boot, FetchRequest, FetchResponse, FetchSnapshotResponse, Peer, QuorumState,
    RaftConfig, Request as Raft0, VoterNode,
};
use crate::records::rpc::BrokerHeartbeatRequest;
use crate::records::{FeatureLevelRecord, Record};
use crate::storage::{Completion, HeldSnapshot, SnapshotOrder};
use crate::types::{CallId, NodeId, OffsetAndEpoch, ReplicaKey, Ticket, Uuid};

const CLUSTER: &str = "MkU3OEVBNTcwNTJENDM2Qg";
const INCARNATION: Uuid = Uuid::from_u128(0x1111);

/// A node, what it asked of the disk and has not been told yet, and what it answered.
struct Bench {
    node: Node,
    ms: u64,
    pending: Vec<Command>,
    log: Vec<(Offset, Offset, Bytes)>,
    replies: BTreeMap<Ticket, Answer>,
    published: Published,
    halted: Option<String>,
    /// No snapshot can be written.
    is_full: bool,
    snapshots: Vec<SnapshotOrder>,
    /// Where the log was told to begin.
    starts: Vec<OffsetAndEpoch>,
    /// Snapshots to be loaded.
    loads: Vec<OffsetAndEpoch>,
    /// Whom this node asked to register it.
    registrations: Vec<Peer>,
    /// What it asked others.
    sends: Vec<(CallId, Ask)>,
    tickets: u64,
}

fn feature(name: &str, level: i16) -> VersionedRecord {
    let record = FeatureLevelRecord {
        name: name.to_owned(),
        feature_level: level,
        ..FeatureLevelRecord::default()
    };
    VersionedRecord {
        version: 0,
        record: Record::FeatureLevel(record),
    }
}

fn settings() -> Settings {
    Settings {
        cluster_id: CLUSTER.to_owned(),
        ..Settings::default()
    }
}

/// Node 1 where these are the voters.
fn raft_config(voters: &[NodeId]) -> RaftConfig {
    let node = ReplicaKey {
        id: NodeId(1),
        directory: Uuid::from_u128(7),
    };
    let endpoints = vec![("CONTROLLER".to_owned(), "localhost".to_owned(), 9093)];
    let voter = |id: &NodeId| VoterNode {
        key: ReplicaKey {
            id: *id,
            directory: Uuid::nil(),
        },
        endpoints: endpoints.clone(),
        kraft_versions: (0, 0),
    };
    RaftConfig {
        node,
        cluster_id: CLUSTER.to_owned(),
        endpoints: endpoints.clone(),
        election_timeout_ms: 1_000,
        fetch_timeout_ms: 2_000,
        election_backoff_ms_max: 1_000,
        static_voters: voters.iter().map(voter).collect(),
        bootstrap: Vec::new(),
        request_timeout_ms: 2_000,
        retry_backoff_ms: 20,
        fetch_bytes_max: 1 << 20,
        snapshot_bytes_max: 1 << 20,
        auto_join: false,
        kraft_versions: (0, 1),
        seed: 1,
    }
}

/// Each epoch in the log with its first offset.
fn epochs_of(log: &[(Offset, Offset, Bytes)]) -> Vec<(Epoch, Offset)> {
    let mut epochs: Vec<(Epoch, Offset)> = Vec::new();
    for (first, _, batch) in log {
        let epoch = crate::records::batch::Batch::parse(batch.clone())
            .unwrap()
            .epoch();
        if epochs.last().is_none_or(|(last, _)| *last != epoch) {
            epochs.push((epoch, *first));
        }
    }
    epochs
}

fn heartbeat(id: i32, epoch: i64, offset: i64, fence: bool) -> Asked {
    Asked::BrokerHeartbeat(BrokerHeartbeatRequest {
        broker_id: id,
        broker_epoch: epoch,
        current_metadata_offset: offset,
        want_fence: fence,
        ..BrokerHeartbeatRequest::default()
    })
}

fn registration(id: i32, incarnation: u128) -> BrokerRegistrationRequest {
    let feature = |name, max| {
        broker_registration_request::Feature::default()
            .with_name(StrBytes::from_static_str(name))
            .with_max_supported_version(max)
    };
    BrokerRegistrationRequest::default()
        .with_broker_id(BrokerId(id))
        .with_cluster_id(StrBytes::from_static_str(CLUSTER))
        .with_incarnation_id(Uuid::from_u128(incarnation))
        .with_features(vec![
            feature("metadata.version", 33),
            feature("group.version", 1),
        ])
        .with_log_dirs(vec![Uuid::from_u128(0x1_0000 + id as u128)])
}

impl Bench {
    fn new() -> Self {
        Self::from_log(Vec::new(), None)
    }

    /// A node that starts on what another one left.
    fn from_log(log: Vec<(Offset, Offset, Bytes)>, quorum_state: Option<QuorumState>) -> Self {
        Self::keeping(log, quorum_state, RetentionRules::default())
    }

    /// Node 1 where node `voter` is the only voter.
    fn observing(log: Vec<(Offset, Offset, Bytes)>, voter: i32) -> Self {
        Self::build(log, None, RetentionRules::default(), &[NodeId(voter)])
    }

    fn keeping(
        log: Vec<(Offset, Offset, Bytes)>,
        quorum_state: Option<QuorumState>,
        retention: RetentionRules,
    ) -> Self {
        Self::build(log, quorum_state, retention, &[NodeId(1)])
    }

    fn build(
        log: Vec<(Offset, Offset, Bytes)>,
        quorum_state: Option<QuorumState>,
        retention: RetentionRules,
        voters: &[NodeId],
    ) -> Self {
        let config = raft_config(voters);
        let boot = Boot {
            quorum_state,
            log_end: log.last().map_or(Offset::ZERO, |(_, end, _)| *end),
            epochs: epochs_of(&log),
            ..Boot::default()
        };
        let registration = ControllerRegistrationRequest::default()
            .with_controller_id(1)
            .with_incarnation_id(INCARNATION);
        let parts = Parts {
            raft: Raft::new(config, boot, Instant(0)),
            image: Image::empty(),
            image_end: Offset::ZERO,
            snapshots: SnapshotRules {
                bytes_between: 800,
                interval_ms: None,
                retention,
            },
            held: Held::default(),
            settings: settings(),
            bootstrap: vec![feature("metadata.version", 33), feature("group.version", 1)],
            registration,
            seed: 42,
        };
        let mut bench = Self {
            node: Node::new(parts),
            ms: 0,
            pending: Vec::new(),
            log,
            replies: BTreeMap::new(),
            published: Published::nothing(),
            halted: None,
            is_full: false,
            snapshots: Vec::new(),
            starts: Vec::new(),
            loads: Vec::new(),
            registrations: Vec::new(),
            sends: Vec::new(),
            tickets: 0,
        };
        bench.step(Event::WakeUp);
        bench
    }

    /// Up to the active controller with its own registration published.
    fn active() -> Self {
        let mut bench = Self::new();
        bench.settle();
        assert!(bench.published.active);
        bench
    }

    /// The active controller that started on the log of one before, which is on disk alone.
    fn active_again() -> Self {
        let state = QuorumState {
            epoch: Epoch(1),
            leader: Some(NodeId(1)),
            ..QuorumState::default()
        };
        let mut bench = Self::from_log(Self::active().log, Some(state));
        while !bench.published.active {
            bench.settle();
            bench.ms = bench.node.next_wakeup().0.max(bench.ms + 1);
            bench.step(Event::WakeUp);
        }
        bench.settle();
        bench
    }

    fn now(&self) -> Now {
        Now {
            instant: Instant(self.ms),
            wall: Timestamp(1_000_000 + self.ms as i64),
        }
    }

    fn step(&mut self, event: Event) {
        let now = self.now();
        let mut effects = Vec::new();
        self.node.step(now, event, &mut effects);
        self.take(effects);
    }

    fn take(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Reply { ticket, answer } => {
                    let twice = self.replies.insert(ticket, answer);
                    assert!(twice.is_none() || ticket == Ticket::default());
                }
                Effect::Disk(command) => self.pending.push(command),
                Effect::Publish(published) => self.published = *published,
                Effect::Halt { reason, .. } => self.halted = Some(reason),
                Effect::LoadSnapshot(id) => self.loads.push(id),
                Effect::Stopped => {}
                Effect::Register { to, .. } => self.registrations.push(to),
                Effect::Send { call, ask, .. } => self.sends.push((call, ask)),
                Effect::Hangup(_) | Effect::KeepOpen(_) => {}
            }
        }
    }

    /// Completes the oldest command of the disk.
    fn complete_one(&mut self) -> bool {
        if self.pending.is_empty() {
            return false;
        }
        let completion = match self.pending.remove(0) {
            Command::Append {
                token,
                first,
                end,
                batches,
                ..
            } => {
                self.log.push((first, end, batches));
                Completion::Appended(token)
            }
            Command::SaveQuorumState { token, .. } => Completion::QuorumStateSaved(token),
            Command::Read {
                token, from, until, ..
            } => {
                let mut batches = Vec::new();
                for (first, end, batch) in &self.log {
                    if *end > from && *first < until {
                        batches.extend_from_slice(batch);
                    }
                }
                Completion::Read {
                    token,
                    batches: Bytes::from(batches),
                }
            }
            Command::SaveCommit { .. } => return true,
            Command::WriteSnapshot(order) if self.is_full => {
                let (id, reason) = (order.id, "No space left on device.".to_owned());
                self.snapshots.push(order);
                Completion::SnapshotNotWritten { id, reason }
            }
            Command::WriteSnapshot(order) => {
                let held = HeldSnapshot {
                    id: order.id,
                    bytes: 1_000,
                    last_timestamp: Some(order.last_timestamp),
                };
                self.snapshots.push(order);
                Completion::SnapshotWritten(held)
            }
            Command::MoveLogStart { token, to } => {
                self.starts.push(to);
                let old = self.log.iter().take_while(|(_, end, _)| *end <= to.offset);
                let removed_bytes = old.map(|(_, _, batch)| batch.len() as u64).sum();
                self.log.retain(|(_, end, _)| *end > to.offset);
                Completion::LogStartMoved {
                    token,
                    removed_bytes,
                }
            }
            Command::RestartLog { token, at } => {
                self.starts.push(at);
                self.log.clear();
                Completion::LogRestarted { token }
            }
            other => panic!("not expected here: {other:?}"),
        };
        self.step(Event::Disk(completion));
        true
    }

    fn settle(&mut self) {
        while self.complete_one() {}
    }

    /// The image that the whole log gives.
    fn replayed(&self) -> Image {
        let mut image = Image::empty();
        for (first, _, batch) in &self.log {
            let batch = crate::records::batch::Batch::parse(batch.clone()).unwrap();
            if batch.is_control() {
                continue;
            }
            for (offset, record) in (first.0..).zip(batch.records()) {
                let record = VersionedRecord::decode(&record.unwrap().value.unwrap()).unwrap();
                image.replay(&record.record, Offset(offset)).unwrap();
            }
        }
        image
    }

    fn ask(&mut self, version: i16, request: Asked) -> Ticket {
        let (ticket, event) = self.request(version, request);
        self.step(event);
        ticket
    }

    fn request(&mut self, version: i16, request: Asked) -> (Ticket, Event) {
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        let arrived = Instant(self.ms);
        let context = Box::default();
        let request = Request::Controller {
            version,
            context,
            request,
        };
        let request = Box::new(request);
        let event = Event::Request {
            ticket,
            arrived,
            request,
        };
        (ticket, event)
    }

    fn register(&mut self, id: i32, incarnation: u128) -> Ticket {
        self.ask(4, Asked::BrokerRegistration(registration(id, incarnation)))
    }

    fn heartbeat(&mut self, id: i32, epoch: i64, offset: i64, fence: bool) -> Ticket {
        self.ask(1, heartbeat(id, epoch, offset, fence))
    }

    /// A fetch of observer 2, which has the records of `epoch` up to `from`.
    fn fetch(&mut self, ticket: Ticket, epoch: i32, from: Offset) {
        let fetch = FetchRequest {
            cluster_id: None,
            replica: ReplicaKey {
                id: NodeId(2),
                directory: Uuid::from_u128(9),
            },
            current_leader_epoch: self.published.epoch.0,
            fetch_offset: from.0,
            last_fetched_epoch: epoch,
            high_watermark: from.0,
            max_wait_ms: 500,
            max_bytes: 1 << 20,
        };
        let request = Request::Raft {
            listener: Arc::from("CONTROLLER"),
            request: Raft0::Fetch(fetch),
        };
        self.step(Event::Request {
            ticket,
            arrived: Instant(self.ms),
            request: Box::new(request),
        });
    }

    fn reply(&self, ticket: Ticket) -> &Result<Reply, ApiError> {
        match self.replies.get(&ticket) {
            Some(Answer::Controller(reply)) => reply,
            other => panic!("no reply of the controller: {other:?}"),
        }
    }

    fn epoch_of_registration(&self, ticket: Ticket) -> i64 {
        match self.reply(ticket) {
            Ok(Reply::BrokerRegistration(reply)) => reply.broker_epoch,
            other => panic!("not registered: {other:?}"),
        }
    }
}

#[test]
fn a_fresh_node_writes_leader_change_bootstrap_transaction_and_its_own_registration() {
    let bench = Bench::active();
    let names: Vec<String> = bench
        .log
        .iter()
        .flat_map(|(_, _, batch)| {
            let batch = crate::records::batch::Batch::parse(batch.clone()).unwrap();
            let control = batch.is_control();
            batch.records().map(move |record| {
                let value = record.unwrap().value.unwrap();
                if control {
                    return "control".to_owned();
                }
                let record = VersionedRecord::decode(&value).unwrap().record;
                record.record_type().name.to_owned()
            })
        })
        .collect();
    assert_eq!(
        names,
        [
            "control",
            "BEGIN_TRANSACTION_RECORD",
            "FEATURE_LEVEL_RECORD",
            "FEATURE_LEVEL_RECORD",
            "END_TRANSACTION_RECORD",
            "REGISTER_CONTROLLER_RECORD"
        ]
    );
    assert_eq!(
        bench.published.image.features().level("metadata.version"),
        33
    );
    assert!(bench.published.image.controllers().contains_key(&NodeId(1)));
}

#[test]
fn a_reply_waits_for_the_disk_and_readers_see_nothing_before_it() {
    let mut bench = Bench::active();
    let ticket = bench.register(2, 0xb);
    assert!(bench.replies.is_empty());
    assert!(bench.published.image.brokers().is_empty());
    bench.settle();
    assert!(bench.epoch_of_registration(ticket) > 0);
    assert!(bench.published.image.brokers().contains_key(&NodeId(2)));
}

#[test]
fn a_reply_without_records_waits_for_what_was_appended_before_it() {
    let mut bench = Bench::active();
    let first = bench.register(2, 0xb);
    bench.settle();
    let epoch = bench.epoch_of_registration(first);
    bench.register(3, 0xc);
    let stale = bench.heartbeat(2, epoch + 1, 0, true);
    let same = bench.heartbeat(2, epoch, 0, true);
    assert!(!bench.replies.contains_key(&stale));
    assert!(!bench.replies.contains_key(&same));
    bench.settle();
    assert!(bench.reply(stale).is_err());
    assert!(bench.reply(same).is_ok());
}

#[test]
fn a_silent_broker_is_fenced_after_its_session() {
    let mut bench = Bench::active();
    let ticket = bench.register(2, 0xb);
    bench.settle();
    let epoch = bench.epoch_of_registration(ticket);
    bench.heartbeat(2, epoch, epoch, false);
    bench.settle();
    assert!(!bench.published.image.broker(NodeId(2)).unwrap().fenced);
    while bench.ms < 8_900 {
        bench.ms = bench.node.next_wakeup().0.max(bench.ms + 1);
        bench.step(Event::WakeUp);
        bench.settle();
    }
    assert!(!bench.published.image.broker(NodeId(2)).unwrap().fenced);
    while bench.ms < 10_200 {
        bench.ms = bench.node.next_wakeup().0.max(bench.ms + 1);
        bench.step(Event::WakeUp);
        bench.settle();
    }
    assert!(bench.published.image.broker(NodeId(2)).unwrap().fenced);
}

#[test]
fn the_duplicate_of_a_live_broker_is_refused_and_the_same_incarnation_keeps_its_epoch() {
    let mut bench = Bench::active();
    let ticket = bench.register(2, 0xb);
    bench.settle();
    let epoch = bench.epoch_of_registration(ticket);
    bench.heartbeat(2, epoch, epoch, false);
    let duplicate = bench.register(2, 0xbb);
    let again = bench.register(2, 0xb);
    bench.settle();
    let code = bench.reply(duplicate).as_ref().unwrap_err().code;
    assert_eq!(code, ErrorCode::DuplicateBrokerRegistration);
    assert_eq!(bench.epoch_of_registration(again), epoch);
}

#[test]
fn a_restart_replays_the_committed_log_before_it_leads() {
    let mut bench = Bench::active();
    let ticket = bench.register(2, 0xb);
    bench.settle();
    let epoch = bench.epoch_of_registration(ticket);
    let state = QuorumState {
        epoch: Epoch(1),
        leader: Some(NodeId(1)),
        ..QuorumState::default()
    };
    let mut again = Bench::from_log(bench.log, Some(state));
    let early = again.heartbeat(2, epoch, epoch, false);
    assert_eq!(
        again.reply(early).as_ref().unwrap_err().code,
        ErrorCode::NotController
    );
    again.settle();
    for _ in 0..10 {
        again.ms = again.node.next_wakeup().0.max(again.ms + 1);
        again.step(Event::WakeUp);
        again.settle();
    }
    assert!(again.published.active, "{:?}", again.halted);
    assert_eq!(
        again.published.image.broker(NodeId(2)).unwrap().epoch.0,
        epoch
    );
    let late = again.heartbeat(2, epoch, epoch, false);
    again.settle();
    assert!(again.reply(late).is_ok());
}

#[test]
fn an_observer_is_served_from_memory_what_is_not_yet_durable_and_not_told_it_is_committed() {
    let mut bench = Bench::active();
    let end = bench.node.raft().log_end();
    bench.register(2, 0xb);
    bench.fetch(Ticket(900), 1, end);
    match bench.replies.get(&Ticket(900)) {
        Some(Answer::Fetch { response, records }) => {
            assert_eq!(response.high_watermark, end.0);
            assert!(!records.is_empty());
        }
        other => panic!("not served: {other:?}"),
    }
}
