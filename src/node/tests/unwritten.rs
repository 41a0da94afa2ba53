//! Decisions that cannot be written: whose they are decides what ends with them.

use super::gathering::topic_record;
use super::*;

impl Bench {
    /// What periodic work would have decided.
    fn does_unasked(&mut self, records: Vec<VersionedRecord>) {
        let now = self.now();
        let mut effects = Vec::new();
        self.node.write_own(now, records, &mut effects);
        self.take(effects);
    }

    /// Leadership ends, and not for work that could not be written.
    fn step_down(&mut self) {
        let now = self.now();
        let mut effects = Vec::new();
        self.node.drive(now, Input::Resign, &mut effects);
        self.take(effects);
        assert_eq!(self.node.raft().role_name(), "resigned");
    }
}

#[test]
fn periodic_work_that_makes_no_sense_ends_leadership_and_nothing_that_others_decided() {
    let (mut bench, epoch) = Bench::with_broker();
    let term = bench.published.epoch;
    // One batch is being written, the next one is open.
    let all = [true, false].map(|fence| bench.heartbeat(2, epoch, epoch, fence));
    let end = bench.node.next_offset();
    bench.does_unasked(vec![topic_record(true), topic_record(false)]);
    assert!(!bench.published.active);
    assert_eq!(bench.node.raft().role_name(), "resigned");
    assert_eq!(bench.node.raft().log_end(), end);
    for ticket in all {
        let error = bench.reply(ticket).as_ref().unwrap_err();
        assert_eq!(error.code, ErrorCode::NotController);
    }
    assert_eq!(bench.halted, None, "a restart would not help");
    bench.pass(5_000);
    assert!(bench.published.active && bench.published.epoch > term);
    assert!(bench.published.image.topic_by_name("t").is_none());
    assert!(!bench.published.image.broker(NodeId(2)).unwrap().fenced);
    assert!(bench.published.image == bench.replayed());
    // It leads as any other: the session of the broker ends in time.
    bench.pass(6_000);
    assert!(bench.published.image.broker(NodeId(2)).unwrap().fenced);
}

/// The rules are the same on every voter: none of them would get further.
#[test]
fn work_that_makes_no_sense_again_is_left_undone_and_ends_no_second_leadership() {
    let (mut bench, epoch) = Bench::with_broker();
    let senseless = || vec![topic_record(false)];
    bench.does_unasked(senseless());
    bench.pass(5_000);
    let (term, end) = (bench.published.epoch, bench.node.next_offset());
    for _ in 0..3 {
        bench.does_unasked(senseless());
        bench.settle();
    }
    assert!(bench.published.active && bench.published.epoch == term);
    assert_eq!(bench.node.next_offset(), end);
    // All else goes on: requests, and what time brings.
    let ticket = bench.heartbeat(2, epoch, epoch, false);
    bench.settle();
    assert!(bench.reply(ticket).is_ok());
    bench.pass(10_000);
    assert!(bench.published.image.broker(NodeId(2)).unwrap().fenced);
    assert!(bench.published.image == bench.replayed());

    // A leadership that ended otherwise tells nothing of the next one.
    bench.step_down();
    bench.pass(5_000);
    assert!(bench.published.active && bench.published.epoch > term);
    bench.does_unasked(senseless());
    assert_eq!(bench.node.raft().role_name(), "resigned");
}

#[test]
fn a_heartbeat_that_cannot_be_written_leaves_the_broker_as_it_was() {
    let (mut bench, epoch) = Bench::with_broker();
    bench.ask_to_create("t", 3);
    bench.settle();
    let leaving = BrokerHeartbeatRequest {
        broker_id: 2,
        broker_epoch: epoch,
        current_metadata_offset: bench.published.end.0,
        want_shut_down: true,
        ..BrokerHeartbeatRequest::default()
    };
    let too_long = BrokerHeartbeatRequest {
        cordoned_log_dirs: Some(vec![Uuid::from_u128(1); 600_000]),
        ..leaving.clone()
    };
    let refused = bench.ask(2, Asked::BrokerHeartbeat(too_long));
    bench.settle();
    let error = bench.reply(refused).as_ref().unwrap_err();
    assert_eq!(error.code, ErrorCode::UnknownServerError);
    let leaderless = |bench: &Bench| bench.published.image.partitions_without_leader().count();
    assert_eq!(leaderless(&bench), 0);
    // The next one begins to shut it down: nothing thinks that this was done before.
    let told = bench.ask(2, Asked::BrokerHeartbeat(leaving));
    bench.settle();
    assert!(bench.reply(told).is_ok());
    assert_eq!(leaderless(&bench), 3);
    assert!(bench.published.active && bench.halted.is_none());
}

impl Bench {
    /// Asks to register broker 2 with a name of a rack that no batch has room for.
    fn register_too_long(&mut self, incarnation: u128) -> Ticket {
        let request = registration(2, incarnation)
            .with_rack(Some(StrBytes::from_string("r".repeat(9 << 20))));
        self.ask(4, Asked::BrokerRegistration(request))
    }

    /// Broker 2 says that it has applied all there is; gives the offset that it told.
    fn is_up_to_date(&mut self, epoch: i64) -> i64 {
        let offset = self.published.end.0;
        self.heartbeat(2, epoch, offset, false);
        self.settle();
        assert_eq!(self.offset_told(), offset);
        offset
    }

    /// What the only broker told, as long as it is not fenced.
    fn offset_told(&self) -> i64 {
        let Leading::Active { soft, .. } = &self.node.leading else {
            panic!("it leads no more");
        };
        soft.brokers.lowest_active_offset(&self.published.image)
    }

    fn assert_too_long(&self, refused: Ticket) {
        let error = self.reply(refused).as_ref().unwrap_err();
        assert_eq!(error.code, ErrorCode::UnknownServerError);
        assert!(self.published.active && self.halted.is_none());
    }
}

#[test]
fn a_registration_that_cannot_be_written_leaves_the_broker_as_it_was() {
    let (mut bench, epoch) = Bench::with_broker();
    let told = bench.is_up_to_date(epoch);
    let refused = bench.register_too_long(0xb);
    bench.settle();
    bench.assert_too_long(refused);
    assert_eq!(bench.offset_told(), told);
    bench.register(2, 0xb);
    bench.settle();
    assert_eq!(bench.offset_told(), -1, "it has to say anew how far it is");
}

#[test]
fn a_registration_whose_last_step_cannot_be_written_leaves_the_broker_as_it_was() {
    let (mut bench, epoch) = Bench::with_broker();
    bench.ask_to_create("t", 5_000);
    bench.settle();
    let told = bench.is_up_to_date(epoch);
    // Its session is over, and that was not looked at yet.
    bench.ms += 9_100;
    let refused = bench.register_too_long(0xc);
    bench.settle();
    assert!(!bench.is_answered(refused), "it has steps to do");
    for _ in 0..20 {
        if !bench.is_answered(refused) {
            bench.step(Event::WakeUp);
            bench.settle();
        }
    }
    bench.assert_too_long(refused);
    assert_eq!(bench.offset_told(), told);
}
