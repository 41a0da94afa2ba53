//! Snapshots on request, and what goes when there are enough of them.

use super::*;
use crate::records::batch::Batch;
use crate::storage::SnapshotChunk;

impl Bench {
    fn keeping_bytes(bytes_max: u64) -> Self {
        let retention = RetentionRules {
            bytes_max: Some(bytes_max),
            ms_max: None,
        };
        let mut bench = Self::keeping(Vec::new(), None, retention);
        bench.settle();
        assert!(bench.published.active);
        bench.snapshots.clear();
        bench
    }

    fn log_start(&self) -> Offset {
        self.node.raft().log_start()
    }

    fn fetch_snapshot(&mut self, ticket: Ticket, id: OffsetAndEpoch) {
        let request = raft::FetchSnapshotRequest {
            cluster_id: None,
            replica: ReplicaKey {
                id: NodeId(2),
                directory: Uuid::nil(),
            },
            current_leader_epoch: self.published.epoch.0,
            id,
            position: 0,
            max_bytes: 100,
        };
        self.step(Event::Request {
            ticket,
            arrived: Instant(self.ms),
            request: Box::new(Request::Raft {
                listener: Arc::from("CONTROLLER"),
                request: Raft0::FetchSnapshot(request),
            }),
        });
    }

    fn ordered(&self) -> usize {
        let orders = self.pending.iter();
        orders
            .filter(|it| matches!(it, Command::WriteSnapshot(_)))
            .count()
    }
}

#[test]
fn a_snapshot_that_is_asked_for_is_ordered_at_once_and_only_of_what_is_committed() {
    let mut bench = Bench::active();
    bench.snapshots.clear();
    bench.register(2, 0xb);
    bench.step(Event::SnapshotAsked);
    let committed = bench.published.end;
    bench.settle();
    assert_eq!(bench.snapshots[0].id.offset, committed);
    // Nothing new but what was under way.
    bench.step(Event::SnapshotAsked);
    bench.settle();
    assert_eq!(bench.snapshots.len(), 2);
    // It is expected to be as large as the one before.
    assert_eq!(bench.snapshots[1].bytes_expected, 1_000);
    bench.step(Event::SnapshotAsked);
    assert_eq!(bench.ordered(), 0, "nothing was committed since");
}

/// A start that finds another time in the log takes the snapshot for one of another offset.
#[test]
fn a_snapshot_names_the_time_of_the_last_metadata_below_its_end() {
    let mut bench = Bench::active();
    for id in 2..40 {
        bench.ms += 7;
        bench.register(id, 0xb00 + id as u128);
        if id == 20 {
            bench.depose();
            bench.pass(5_000);
        }
        bench.settle();
        bench.step(Event::SnapshotAsked);
        bench.settle();
    }
    let mut compared = 0;
    for order in &bench.snapshots {
        let ends_there = |(_, end, _): &&(_, Offset, _)| *end == order.id.offset;
        let (_, _, bytes) = bench.log.iter().find(ends_there).unwrap();
        let batch = Batch::parse(bytes.clone()).unwrap();
        if !batch.is_control() {
            assert_eq!(order.last_timestamp, batch.max_timestamp());
            compared += 1;
        }
    }
    assert!(compared > 30, "{compared}");
}

/// The log may have room where a snapshot has none, and nothing is lost by a missing snapshot.
#[test]
fn a_snapshot_that_cannot_be_written_is_tried_again_later_and_the_node_goes_on() {
    let mut bench = Bench::active();
    bench.snapshots.clear();
    bench.is_full = true;
    bench.register(2, 0xb);
    bench.settle();
    bench.step(Event::SnapshotAsked);
    bench.settle();
    let tried = bench.snapshots.len();
    assert!(tried > 0);
    for id in 3..12 {
        bench.register(id, 0xb00 + id as u128);
        bench.settle();
    }
    assert_eq!(bench.halted, None);
    assert!(bench.published.active);
    assert_eq!(bench.snapshots.len(), tried, "in a tight loop");
    bench.is_full = false;
    bench.ms += 60_000;
    assert!(bench.node.next_wakeup() <= Instant(bench.ms));
    bench.step(Event::WakeUp);
    bench.settle();
    assert_eq!(bench.snapshots.len(), tried + 1);
    assert_eq!(bench.snapshots[tried].id.offset, bench.published.end);
}

/// KIP-630: a snapshot holds everything below its end, so its replay is the image at that offset.
#[test]
fn a_snapshot_of_what_is_committed_is_ordered_after_enough_bytes_and_holds_the_image() {
    let mut bench = Bench::active();
    bench.snapshots.clear();
    for id in 2..12 {
        bench.register(id, 0xb00 + id as u128);
        // Not durable yet: nothing of it may be in a snapshot.
        assert!(
            bench
                .pending
                .iter()
                .all(|it| !matches!(it, Command::WriteSnapshot(_)))
        );
        bench.settle();
    }
    let orders = std::mem::take(&mut bench.snapshots);
    assert!(!orders.is_empty());
    let newest = &orders[orders.len() - 1];
    assert_eq!(newest.id.epoch, Epoch(1));
    let mut image = Image::empty();
    newest.content.records(&mut |record| {
        image
            .replay(&record.record, newest.id.offset.prev())
            .unwrap();
    });
    let expected: Vec<NodeId> = image.brokers().keys().copied().collect();
    let known: Vec<NodeId> = bench.published.image.brokers().keys().copied().collect();
    assert!(!expected.is_empty() && known.starts_with(&expected));
    assert!(newest.id.offset <= bench.published.end);
}

#[test]
fn one_that_is_asked_for_while_another_is_written_follows_it() {
    let mut bench = Bench::active();
    bench.snapshots.clear();
    bench.register(2, 0xb);
    bench.settle();
    bench.snapshots.clear();
    bench.register(3, 0xc);
    bench.settle();
    bench.step(Event::SnapshotAsked);
    let ordered = bench.ordered() + bench.snapshots.len();
    assert_eq!(ordered, 1);
    let order = bench.pending.remove(0);
    bench.register(4, 0xd);
    bench.settle();
    bench.step(Event::SnapshotAsked);
    assert_eq!(bench.ordered(), 0, "one is under way");
    bench.pending.push(order);
    bench.settle();
    assert_eq!(bench.snapshots.len(), 2);
    assert_eq!(bench.snapshots[1].id.offset, bench.published.end);
}

/// KIP-630, "When to Delete Snapshots": the oldest go one by one, never the newest.
#[test]
fn the_log_begins_at_the_oldest_snapshot_that_fits_and_replicas_are_told() {
    let mut bench = Bench::keeping_bytes(4_000);
    for id in 2..40 {
        bench.register(id, 0xb00 + id as u128);
        bench.settle();
    }
    assert!(bench.starts.len() > 2, "{:?}", bench.starts);
    assert!(bench.starts.is_sorted());
    let start = bench.log_start();
    assert_eq!(Some(start), bench.starts.last().map(|id| id.offset));
    let newest = bench.snapshots.last().unwrap().id;
    assert!(start <= newest.offset && newest.offset <= bench.published.end);
    // Whoever is behind is told the newest snapshot, and an old one is not there any more.
    bench.fetch(Ticket(900), 1, start.prev());
    match &bench.replies[&Ticket(900)] {
        Answer::Raft(raft::Response::Fetch(response)) => {
            assert_eq!(response.snapshot, Some(newest));
            assert_eq!(response.log_start, start);
        }
        other => panic!("not told: {other:?}"),
    }
    for (ticket, id, found) in [(901, bench.starts[0], false), (902, newest, true)] {
        bench.fetch_snapshot(Ticket(ticket), id);
        let asked = bench.pending.last();
        assert_eq!(
            matches!(asked, Some(Command::ReadSnapshot { .. })),
            found,
            "{id:?}"
        );
    }
}

#[test]
fn a_replica_in_the_middle_of_a_snapshot_has_until_the_next_regular_look() {
    let mut bench = Bench::keeping_bytes(1_000);
    bench.register(2, 0xb);
    bench.settle();
    bench.step(Event::SnapshotAsked);
    bench.settle();
    let held = bench.snapshots.last().unwrap().id;
    bench.fetch_snapshot(Ticket(900), held);
    bench.pending.clear();
    let start = bench.log_start();
    bench.register(3, 0xc);
    bench.settle();
    bench.step(Event::SnapshotAsked);
    bench.settle();
    assert!(bench.snapshots.last().unwrap().id > held);
    assert_eq!(bench.log_start(), start);
    bench.pass(61_000);
    assert!(bench.log_start() > held.offset);
}

#[test]
fn a_fetch_that_waits_for_the_disk_while_the_log_moves_on_is_told_the_snapshot() {
    let mut bench = Bench::keeping_bytes(4_000);
    let old = Reading::Fetch {
        ticket: Ticket(77),
        response: bench.fetch_response(),
        from: Offset(1),
    };
    bench.node.readings.insert(Token(5_000), old);
    for id in 2..30 {
        bench.register(id, 0xb00 + id as u128);
        bench.settle();
    }
    assert!(bench.log_start() > Offset(1));
    bench.step(Event::Disk(Completion::Read {
        token: Token(5_000),
        batches: Bytes::new(),
    }));
    match &bench.replies[&Ticket(77)] {
        Answer::Fetch { response, records } => {
            assert_eq!(response.snapshot, bench.node.raft().newest_snapshot());
            assert!(response.snapshot.is_some() && records.is_empty());
        }
        other => panic!("not told: {other:?}"),
    }
}

#[test]
fn a_snapshot_that_is_deleted_while_a_replica_fetches_it_is_not_found() {
    let mut bench = Bench::active();
    let reading = Reading::Snapshot {
        ticket: Ticket(78),
        response: FetchSnapshotResponse {
            error: raft::RaftError::None,
            hint: raft::LeaderHint::default(),
            id: OffsetAndEpoch::default(),
        },
        position: 0,
    };
    bench.node.readings.insert(Token(5_001), reading);
    bench.step(Event::Disk(Completion::SnapshotRead {
        token: Token(5_001),
        chunk: SnapshotChunk::NotFound,
    }));
    match &bench.replies[&Ticket(78)] {
        Answer::Raft(raft::Response::FetchSnapshot(response)) => assert_eq!(
            response.error,
            raft::RaftError::Partition(ErrorCode::SnapshotNotFound)
        ),
        other => panic!("found: {other:?}"),
    }
}

#[test]
fn old_snapshots_go_when_it_is_time_although_nothing_else_happens() {
    let retention = RetentionRules {
        bytes_max: None,
        ms_max: Some(100_000),
    };
    let mut bench = Bench::keeping(Vec::new(), None, retention);
    bench.settle();
    for id in 2..12 {
        bench.register(id, 0xb00 + id as u128);
        bench.settle();
        bench.step(Event::SnapshotAsked);
        bench.settle();
    }
    assert!(bench.snapshots.len() > 2);
    assert_eq!(bench.log_start(), Offset::ZERO);
    bench.pass(99_000);
    assert_eq!(bench.log_start(), Offset::ZERO);
    bench.pass(62_000);
    assert!(bench.log_start() > Offset::ZERO, "looked at once a minute");
    assert_eq!(bench.halted, None);
}

impl Bench {
    fn fetch_response(&self) -> FetchResponse {
        FetchResponse {
            error: raft::RaftError::None,
            hint: raft::LeaderHint::default(),
            high_watermark: 1,
            log_start: Offset::ZERO,
            diverging: None,
            snapshot: None,
        }
    }
}
