//! What shares a batch, and how long it may wait for others.

use kafka_protocol::messages::update_features_request::FeatureUpdateKey;
use kafka_protocol::messages::{UnregisterBrokerRequest, UpdateFeaturesRequest};

use super::*;
use crate::controller::RECORDS_PER_OPERATION_MAX;
use crate::node::gather::HELD_MS_MAX;
use crate::records::{RemoveTopicRecord, TopicRecord};

impl Bench {
    /// Broker 2 sends a heartbeat, and others may be behind it.
    fn take_in_heartbeat(&mut self, epoch: i64, fence: bool) -> Ticket {
        let (ticket, event) = self.request(1, heartbeat(2, epoch, self.published.end.0, fence));
        self.take_in(event);
        ticket
    }

    fn take_in(&mut self, event: Event) {
        let now = self.now();
        let mut effects = Vec::new();
        self.node.take_in(now, event, &mut effects);
        self.take(effects);
    }

    /// There is no event any more.
    fn nothing_more(&mut self) {
        let now = self.now();
        let mut effects = Vec::new();
        self.node.settle(now, &mut effects);
        self.take(effects);
    }

    pub(super) fn is_answered(&self, ticket: Ticket) -> bool {
        self.replies.contains_key(&ticket)
    }
}

#[test]
fn requests_that_are_there_at_once_share_one_batch() {
    let (mut bench, epoch) = Bench::with_broker();
    let (batches, begin) = (bench.log.len(), bench.node.raft().log_end());
    let all = [true, false, true].map(|fence| bench.take_in_heartbeat(epoch, fence));
    assert_eq!(bench.node.raft().log_end(), begin, "others may come");
    bench.nothing_more();
    assert_eq!(bench.node.raft().log_end(), begin.plus(3));
    bench.settle();
    assert!(all.iter().all(|ticket| bench.reply(*ticket).is_ok()));
    assert_eq!(bench.batches_since(batches), [3]);
}

/// A vote, a fetch, a new voter: all of them look at the end of the log.
#[test]
fn the_quorum_hears_a_request_behind_what_was_decided_before_it() {
    let (mut bench, epoch) = Bench::with_broker();
    let (batches, begin) = (bench.log.len(), bench.node.raft().log_end());
    let first = bench.take_in_heartbeat(epoch, true);
    bench.take_in(Event::SnapshotAsked);
    assert_eq!(bench.node.raft().log_end(), begin);
    bench.take_in(Event::WakeUp);
    assert_eq!(bench.node.raft().log_end(), begin.plus(1));
    let second = bench.take_in_heartbeat(epoch, false);
    bench.nothing_more();
    bench.settle();
    assert!(bench.reply(first).is_ok() && bench.reply(second).is_ok());
    assert_eq!(bench.batches_since(batches), [1, 1]);
}

#[test]
fn what_is_decided_while_the_log_is_written_shares_one_batch_and_waits_for_it() {
    let (mut bench, epoch) = Bench::with_broker();
    let (batches, begin) = (bench.log.len(), bench.node.raft().log_end());
    let first = bench.ask_to_create("a", 2);
    let others = ["b", "c", "d"].map(|name| bench.ask_to_create(name, 2));
    let late = bench.heartbeat(2, epoch, epoch, false);
    // The log is being written, so the others are not in it yet, and nothing is answered.
    assert_eq!(bench.node.raft().log_end(), begin.plus(3));
    assert_eq!(bench.node.next_offset(), begin.plus(12));
    assert!(!bench.is_answered(first));
    bench.complete_one();
    assert!(bench.is_answered(first), "it was in the first batch");
    assert_eq!(bench.node.raft().log_end(), begin.plus(12));
    for ticket in others.iter().chain([&late]) {
        assert!(!bench.is_answered(*ticket), "it is not committed");
    }
    bench.settle();
    for ticket in others.iter().chain([&late]) {
        assert!(bench.reply(*ticket).is_ok());
    }
    assert_eq!(bench.batches_since(batches), [3, 9]);
}

/// Brokers and clients compare the epochs of features that two controllers tell.
#[test]
fn the_end_of_the_features_is_exact_in_a_batch_and_a_commit_of_more() {
    let (mut bench, _) = Bench::with_broker();
    bench.ask_to_create("a", 2);
    let update = FeatureUpdateKey::default()
        .with_feature(StrBytes::from_static_str("group.version"))
        .with_max_version_level(0)
        .with_upgrade_type(3);
    let request = UpdateFeaturesRequest::default().with_feature_updates(vec![update]);
    bench.ask(2, Asked::UpdateFeatures(request));
    let end = bench.node.next_offset();
    bench.ask_to_create("b", 2);
    assert!(bench.node.next_offset() > end);
    bench.settle();
    assert_eq!(bench.published.image.features().level("group.version"), 0);
    assert_eq!(bench.published.features_end, end);
}

/// The other voters may commit what this one's disk does not come to write.
#[test]
fn what_is_decided_waits_only_so_long_for_a_slow_disk() {
    let (mut bench, _) = Bench::with_broker();
    bench.ask_to_create("a", 2);
    let end = bench.node.raft().log_end();
    bench.ask_to_create("b", 2);
    assert_eq!(bench.node.raft().log_end(), end);
    let due = bench.node.next_wakeup().0;
    assert!(due <= bench.ms + HELD_MS_MAX);
    bench.ms = due;
    bench.step(Event::WakeUp);
    assert_eq!(bench.node.raft().log_end(), end.plus(3));
    assert!(
        bench.node.next_wakeup() > Instant(bench.ms),
        "it does not spin"
    );
}

#[test]
fn leadership_lost_while_the_log_is_written_takes_back_what_was_gathered_and_tells_all() {
    let (mut bench, _) = Bench::with_broker();
    let committed = bench.published.image.clone();
    let begin = bench.node.raft().log_end();
    let all = ["a", "b"].map(|name| bench.ask_to_create(name, 2));
    bench.depose();
    for ticket in all {
        let error = bench.reply(ticket).as_ref().unwrap_err();
        assert_eq!(error.code, ErrorCode::NotController);
    }
    assert!(bench.published.image == committed);
    assert!(bench.node.working.image == committed);
    // It was in the log before the vote was heard, as everything that was decided is.
    assert_eq!(bench.node.raft().log_end(), begin.plus(6));
    bench.settle();
    assert_eq!(bench.halted, None);
}

/// A record of a new topic, or of one that is not there.
pub(super) fn topic_record(there: bool) -> VersionedRecord {
    let (name, topic_id) = ("t".to_owned(), Uuid::from_u128(0x70));
    let record = if there {
        Record::Topic(TopicRecord {
            name,
            topic_id,
            ..TopicRecord::default()
        })
    } else {
        Record::RemoveTopic(RemoveTopicRecord {
            topic_id: Uuid::from_u128(0x71),
            ..RemoveTopicRecord::default()
        })
    };
    VersionedRecord { version: 0, record }
}

impl Bench {
    /// What a rule would have decided.
    fn decide(&mut self, records: Vec<VersionedRecord>, atomic: bool) -> Result<(), ApiError> {
        let now = self.now();
        let mut effects = Vec::new();
        let appended = self.node.append(now, records, atomic, &mut effects);
        self.take(effects);
        appended
    }

    fn refuses_senseless(&mut self, records: Vec<VersionedRecord>, atomic: bool) {
        let error = self.decide(records, atomic).unwrap_err();
        assert_eq!(error.code, ErrorCode::UnknownServerError);
        let text = error.message.unwrap_or_default();
        assert!(text.contains("REMOVE_TOPIC_RECORD"), "{text}");
        assert!(text.contains("no topic has id"), "{text}");
    }
}

#[test]
fn a_decision_that_makes_no_sense_is_taken_back_whole_and_nothing_that_shares_its_batch() {
    let (mut bench, epoch) = Bench::with_broker();
    for open in [false, true] {
        let batches = bench.log.len();
        // One batch is being written, and maybe the next one is open.
        let mut others = vec![bench.heartbeat(2, epoch, epoch, true)];
        if open {
            others.push(bench.heartbeat(2, epoch, epoch, false));
        }
        let features_end = bench.node.working.features_end;
        let (before, end) = (bench.node.working.image.clone(), bench.node.next_offset());
        bench.refuses_senseless(vec![topic_record(true), topic_record(false)], true);
        assert!(bench.node.working.image == before);
        assert_eq!(bench.node.working.features_end, features_end);
        assert_eq!(bench.node.next_offset(), end);
        others.push(bench.heartbeat(2, epoch, epoch, open));
        bench.settle();
        assert!(others.iter().all(|ticket| bench.reply(*ticket).is_ok()));
        assert_eq!(bench.batches_since(batches), [1, others.len() as i64 - 1]);
        assert!(bench.published.image == bench.replayed());
    }
    assert_eq!(bench.halted, None);
}

#[test]
fn of_what_may_be_written_in_parts_only_the_part_that_makes_no_sense_is_taken_back() {
    let (mut bench, _) = Bench::with_broker();
    let batches = bench.log.len();
    let mut records = vec![topic_record(true)];
    records.extend(std::iter::repeat_n(
        feature("group.version", 1),
        RECORDS_PER_OPERATION_MAX,
    ));
    records.push(topic_record(false));
    bench.refuses_senseless(records, false);
    bench.settle();
    let full = RECORDS_PER_OPERATION_MAX as i64;
    assert_eq!(bench.batches_since(batches), [full]);
    assert!(bench.published.image.topic_by_name("t").is_some());
    assert!(bench.published.image == bench.replayed());
    assert!(bench.node.working.image == bench.published.image);
    assert_eq!(bench.halted, None);
}

#[test]
fn a_request_whose_next_step_cannot_be_written_is_told_and_forgotten() {
    let (mut bench, _) = Bench::with_broker();
    bench.ask_to_create("t", 5_000);
    bench.settle();
    let unregister = UnregisterBrokerRequest::default().with_broker_id(BrokerId(2));
    let ticket = bench.ask(0, Asked::UnregisterBroker(unregister));
    bench.settle();
    assert!(!bench.is_answered(ticket), "it has steps to do");
    let fault = ApiError::new(ErrorCode::UnknownServerError, "no sense".to_owned());
    let mut effects = Vec::new();
    bench
        .node
        .stepped(ticket, None, Err(fault.clone()), &mut effects);
    bench.take(effects);
    assert_eq!(bench.reply(ticket).as_ref().unwrap_err(), &fault);
    for _ in 0..20 {
        bench.step(Event::WakeUp);
        bench.settle();
    }
    assert_eq!(bench.reply(ticket).as_ref().unwrap_err(), &fault);
    assert!(bench.published.image.broker(NodeId(2)).is_some());
}
