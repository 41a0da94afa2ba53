//! Leading under pressure: decisions of many batches, a slow disk, leadership lost in the middle.

use kafka_protocol::messages::create_topics_request::CreatableTopic;
use kafka_protocol::messages::{CreateTopicsRequest, TopicName};

use super::*;
use crate::raft::VoteRequest;
use crate::records::batch::Batch;

impl Bench {
    /// Broker 2, unfenced; gives its epoch.
    pub(super) fn with_broker() -> (Self, i64) {
        let mut bench = Self::active();
        let ticket = bench.register(2, 0xb);
        bench.settle();
        let epoch = bench.epoch_of_registration(ticket);
        bench.heartbeat(2, epoch, epoch, false);
        bench.settle();
        (bench, epoch)
    }

    fn create(&mut self, name: &'static str, partitions: i32) {
        let ticket = self.ask_to_create(name, partitions);
        self.settle();
        match self.reply(ticket) {
            Ok(Reply::CreateTopics(reply)) => assert_eq!(reply.topics[0].error_code, 0),
            other => panic!("not created: {other:?}"),
        }
    }

    pub(super) fn ask_to_create(&mut self, name: &str, partitions: i32) -> Ticket {
        let topic = CreatableTopic::default()
            .with_name(TopicName(StrBytes::from_string(name.to_owned())))
            .with_num_partitions(partitions)
            .with_replication_factor(1);
        let request = CreateTopicsRequest::default()
            .with_topics(vec![topic])
            .with_timeout_ms(1_000);
        self.ask(7, Asked::CreateTopics(request))
    }

    fn wants_to_shut_down(&mut self, epoch: i64) -> Ticket {
        let request = BrokerHeartbeatRequest {
            broker_id: 2,
            broker_epoch: epoch,
            current_metadata_offset: self.published.end.0,
            want_shut_down: true,
            ..BrokerHeartbeatRequest::default()
        };
        self.ask(1, Asked::BrokerHeartbeat(request))
    }

    fn may_end(&self, ticket: Ticket) -> bool {
        match self.reply(ticket) {
            Ok(Reply::BrokerHeartbeat(reply)) => reply.should_shut_down,
            other => panic!("no answer to a heartbeat: {other:?}"),
        }
    }

    /// Lets time pass, step by step, with a disk that is never behind.
    pub(super) fn pass(&mut self, ms: u64) {
        let end = self.ms + ms;
        while self.ms < end && self.halted.is_none() {
            self.ms = self.node.next_wakeup().0.clamp(self.ms + 1, end);
            self.step(Event::WakeUp);
            self.settle();
        }
        assert_eq!(self.halted, None);
    }

    /// How many records each batch has that was written after the first `batches`.
    pub(super) fn batches_since(&self, batches: usize) -> Vec<i64> {
        let counts = self.log[batches..].iter().map(|(first, end, bytes)| {
            let batch = Batch::parse(bytes.clone()).unwrap();
            assert_eq!(batch.records().count() as i64, end.0 - first.0);
            end.0 - first.0
        });
        counts.collect()
    }

    fn leaderless(&self) -> usize {
        self.published.image.partitions_without_leader().count()
    }

    /// Another node asks for a vote in a newer epoch: whoever leads steps down.
    pub(super) fn depose(&mut self) {
        let vote = VoteRequest {
            cluster_id: None,
            voter: None,
            candidate: ReplicaKey {
                id: NodeId(9),
                directory: Uuid::nil(),
            },
            epoch: Epoch(self.published.epoch.0 + 1),
            last_epoch: Epoch(0),
            last_offset: Offset::ZERO,
            pre_vote: false,
        };
        let request = Request::Raft {
            listener: Arc::from("CONTROLLER"),
            request: Raft0::Vote(vote),
        };
        self.step(Event::Request {
            ticket: Ticket(8_000),
            arrived: Instant(self.ms),
            request: Box::new(request),
        });
    }
}

#[test]
fn a_broker_with_hundreds_of_partitions_shuts_down_in_two_heartbeats() {
    let (mut bench, epoch) = Bench::with_broker();
    bench.create("t", 250);
    let batches = bench.log.len();
    let first = bench.wants_to_shut_down(epoch);
    bench.settle();
    assert!(!bench.may_end(first));
    assert_eq!(bench.leaderless(), 250);
    assert_eq!(bench.log.len(), batches + 1, "one batch holds them all");
    let second = bench.wants_to_shut_down(epoch);
    bench.settle();
    assert!(bench.may_end(second));
    assert_eq!(bench.halted, None);
}

/// A new process of broker 2, which led 18,000 partitions, registers.
fn large_registration() -> (Bench, Ticket) {
    let (mut bench, _) = Bench::with_broker();
    bench.create("a", 9_000);
    bench.create("b", 9_000);
    // Its session is over, but nobody has looked yet.
    bench.ms += 9_001;
    let again = bench.register(2, 0xc);
    bench.settle();
    (bench, again)
}

#[test]
fn what_one_step_cannot_do_is_done_in_several_and_answered_after_the_last() {
    let (mut bench, again) = large_registration();
    let batches = bench.log.len();
    let epoch = bench.published.image.broker(NodeId(2)).unwrap().epoch;
    while !bench.replies.contains_key(&again) {
        assert_eq!(
            bench.published.image.broker(NodeId(2)).unwrap().epoch,
            epoch
        );
        assert!(bench.node.next_wakeup() <= Instant(bench.ms));
        bench.step(Event::WakeUp);
        bench.settle();
    }
    let registered = bench.epoch_of_registration(again);
    let broker = bench.published.image.broker(NodeId(2)).unwrap();
    assert_eq!(broker.epoch.0, registered);
    assert_eq!(bench.leaderless(), 18_000);
    let sizes = bench.batches_since(batches);
    assert!(sizes.iter().all(|size| *size <= 2_001), "{sizes:?}");
}

#[test]
fn lost_leadership_fails_a_request_that_has_work_left() {
    let (mut bench, again) = large_registration();
    assert!(!bench.replies.contains_key(&again));
    bench.depose();
    let error = bench.reply(again).as_ref().unwrap_err();
    assert_eq!(error.code, ErrorCode::NotController);
    assert_eq!(bench.leaderless(), 2_000);
    for _ in 0..100 {
        if !bench.published.active {
            bench.pass(100);
        }
    }
    assert!(bench.published.active);
    bench.pass(100);
    assert_eq!(bench.leaderless(), 0, "what it is in sync of, it may lead");
    bench.pass(11_000);
    assert_eq!(bench.leaderless(), 18_000, "whoever leads next fences it");
}

#[test]
fn a_broker_with_thousands_of_partitions_shuts_down_slice_by_slice() {
    let (mut bench, epoch) = Bench::with_broker();
    bench.create("a", 5_000);
    let batches = bench.log.len();
    let first = bench.wants_to_shut_down(epoch);
    bench.settle();
    assert!(!bench.may_end(first));
    for slice in 1..=2 {
        assert_eq!(bench.leaderless(), 2_000 * slice - 1);
        assert!(bench.node.next_wakeup() <= Instant(bench.ms));
        bench.step(Event::WakeUp);
        bench.settle();
    }
    assert_eq!(bench.leaderless(), 5_000);
    assert_eq!(bench.batches_since(batches), [2_000, 2_000, 1_001]);
    assert!(bench.node.next_wakeup() > Instant(bench.ms));
    let second = bench.wants_to_shut_down(epoch);
    bench.settle();
    assert!(bench.may_end(second));
}

#[test]
fn a_silent_broker_with_more_partitions_than_a_batch_holds_is_fenced_all_the_same() {
    let (mut bench, _) = Bench::with_broker();
    bench.create("a", 9_000);
    bench.create("b", 9_000);
    bench.pass(11_000);
    assert!(bench.published.image.broker(NodeId(2)).unwrap().fenced);
    assert_eq!(bench.leaderless(), 18_000);
}

#[test]
fn a_leader_whose_disk_is_far_behind_waits_for_it_and_does_not_spin() {
    let (mut bench, _) = Bench::with_broker();
    let mut topics = 0..;
    while !bench.node.forks.busy() {
        let name = format!("topic-{}", topics.next().unwrap());
        bench.ask_to_create(&name, 1_000);
    }
    bench.ms += 1_000;
    bench.step(Event::WakeUp);
    // NoOp records and sessions are due, but nothing can be done before the disk is.
    assert!(bench.node.next_wakeup() > Instant(bench.ms));
    bench.settle();
    assert!(bench.node.next_wakeup() <= Instant(bench.ms));
    bench.step(Event::WakeUp);
    assert!(bench.node.next_wakeup() > Instant(bench.ms));
}

#[test]
fn a_node_that_stops_does_not_spin_on_what_is_due() {
    let mut bench = Bench::active();
    bench.register(2, 0xb);
    bench.step(Event::Shutdown);
    bench.ms += 100;
    bench.step(Event::WakeUp);
    let due = controller::periodic::noop_due(&settings(), Instant(0));
    bench.ms = bench.ms.max(due.0);
    assert!(bench.node.next_wakeup() > Instant(bench.ms));
}

#[test]
fn lost_leadership_fails_what_waits_and_takes_back_what_was_not_committed() {
    let (mut bench, epoch) = Bench::with_broker();
    let committed = bench.published.image.clone();
    let registers = bench.register(3, 0xc);
    let waits = bench.heartbeat(2, epoch, epoch, false);
    bench.depose();
    for ticket in [registers, waits] {
        let error = bench.reply(ticket).as_ref().unwrap_err();
        assert_eq!(error.code, ErrorCode::NotController);
    }
    assert!(!bench.published.active);
    assert!(bench.published.image == committed);
    let late = bench.heartbeat(2, epoch, epoch, false);
    let error = bench.reply(late).as_ref().unwrap_err();
    assert_eq!(error.code, ErrorCode::NotController);
    // The record is in the log all the same, and nobody else's is: led again, it is committed.
    bench.pass(5_000);
    assert!(bench.published.active);
    assert!(bench.published.image.broker(NodeId(3)).is_some());
    let replayed = bench.replayed();
    assert!(bench.published.image == replayed);
}

#[test]
fn each_life_as_a_leader_begins_with_fresh_sessions() {
    let (mut bench, _) = Bench::with_broker();
    bench.pass(6_000);
    bench.depose();
    while !bench.published.active {
        bench.pass(100);
    }
    bench.pass(8_000);
    let fenced = |bench: &Bench| bench.published.image.broker(NodeId(2)).unwrap().fenced;
    assert!(
        !fenced(&bench),
        "14 s of silence, 8 of them under this leader"
    );
    bench.pass(3_000);
    assert!(fenced(&bench));
}

#[test]
fn readers_see_the_new_epoch_although_no_record_changed_the_image() {
    let mut bench = Bench::active();
    let (end, epoch) = (bench.published.end, bench.published.epoch);
    bench.depose();
    // Long enough to be elected, too short for a NoOp record.
    while !bench.published.active {
        bench.pass(1);
    }
    assert!(bench.published.epoch > epoch);
    assert!(bench.published.end > end);
    assert_eq!(bench.published.end, bench.node.raft().log_end());
}

#[test]
fn the_end_of_the_features_stays_where_they_changed_last() {
    let mut bench = Bench::active();
    let features = bench.published.features_end;
    assert!(
        features < bench.published.end,
        "the own registration came later"
    );
    bench.register(2, 0xb);
    bench.settle();
    assert_eq!(bench.published.features_end, features);
}
