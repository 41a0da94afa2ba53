//! What is too late or too much is refused, and what fails stops the node.

use super::*;

#[test]
fn a_request_that_waited_too_long_is_refused_at_once_and_not_when_the_disk_is_done() {
    let mut bench = Bench::active();
    bench.register(2, 0xb);
    let request = Request::Controller {
        version: 0,
        context: Box::default(),
        request: Asked::BrokerHeartbeat(BrokerHeartbeatRequest::default()),
    };
    bench.ms += 10_000;
    bench.step(Event::Request {
        ticket: Ticket(900),
        arrived: Instant(0),
        request: Box::new(request),
    });
    let code = bench.reply(Ticket(900)).as_ref().unwrap_err().code;
    assert_eq!(code, ErrorCode::RequestTimedOut);
}

#[test]
fn replies_that_wait_for_a_disk_that_hangs_are_bounded() {
    let mut bench = Bench::active();
    bench.register(2, 0xb);
    let first = bench.heartbeat(2, 0, 0, false);
    let waiting = |bench: &Bench| !bench.replies.contains_key(&Ticket(bench.tickets));
    assert!(waiting(&bench));
    while waiting(&bench) {
        bench.heartbeat(2, 0, 0, false);
        assert!(bench.tickets < 20_000);
    }
    let last = Ticket(bench.tickets);
    let code = bench.reply(last).as_ref().unwrap_err().code;
    assert_eq!(code, ErrorCode::RequestTimedOut);
    bench.settle();
    assert!(bench.replies.contains_key(&first));
}

#[test]
fn a_flood_of_fetches_of_old_records_does_not_fill_the_queue_of_the_disk() {
    let mut bench = Bench::active_again();
    for ticket in 1..=2_000 {
        bench.fetch(Ticket(1_000 + ticket), 0, Offset::ZERO);
    }
    assert_eq!(bench.pending.len(), serve::READINGS_MAX);
    assert_eq!(bench.replies.len(), 2_000 - serve::READINGS_MAX);
    bench.settle();
    assert_eq!(bench.replies.len(), 2_000);
}

#[test]
fn a_failed_write_halts_the_node() {
    let mut bench = Bench::active();
    bench.register(2, 0xb);
    bench.step(Event::Disk(Completion::Failed("disk full".to_owned())));
    assert_eq!(bench.halted.as_deref(), Some("disk full"));
}
