//! A node that is given a snapshot of its leader while it runs.

use super::*;
use crate::raft::BeginQuorumEpochRequest;
use crate::storage::Unreceived;

fn id(offset: i64, epoch: i32) -> OffsetAndEpoch {
    OffsetAndEpoch {
        offset: Offset(offset),
        epoch: Epoch(epoch),
    }
}

/// A snapshot of another node that registered these brokers.
fn loaded(id: OffsetAndEpoch, brokers: &[i32]) -> Box<Loaded> {
    let mut bench = Bench::active();
    for broker in brokers {
        bench.register(*broker, 0xb00 + *broker as u128);
        bench.settle();
    }
    Box::new(Loaded {
        held: HeldSnapshot {
            id,
            bytes: 1_000,
            last_timestamp: Some(Timestamp(77)),
        },
        image: bench.published.image.clone(),
        control: Vec::new(),
    })
}

impl Bench {
    /// Node 1 follows node 9 in this epoch.
    pub(super) fn follow(&mut self, epoch: i32) {
        let request = Request::Raft {
            listener: Arc::from("CONTROLLER"),
            request: Raft0::BeginQuorumEpoch(BeginQuorumEpochRequest {
                cluster_id: None,
                voter: None,
                leader_id: NodeId(9),
                epoch: Epoch(epoch),
                endpoints: vec![("CONTROLLER".to_owned(), "nine".to_owned(), 9)],
            }),
        };
        self.step(Event::Request {
            ticket: Ticket(600 + epoch as u64),
            arrived: Instant(self.ms),
            request: Box::new(request),
        });
        self.settle();
        assert_eq!(self.node.raft().role_name(), "observer");
    }

    /// As if consensus had asked for it.
    pub(super) fn output(&mut self, output: Output) {
        let now = self.now();
        let mut effects = Vec::new();
        self.node.execute(now, vec![output], &mut effects);
        self.take(effects);
    }

    fn load(&mut self, loaded: Box<Loaded>) {
        self.step(Event::SnapshotLoaded(Ok(loaded)));
    }
}

/// KIP-630, loading: what is read is the snapshot's image, and the log begins anew behind it.
#[test]
fn an_observer_takes_the_image_over_and_its_log_begins_behind_the_snapshot() {
    let mut bench = Bench::observing(Bench::active().log, 9);
    bench.follow(4);
    assert!(bench.published.image.brokers().is_empty());
    let own = bench.node.raft().log_end();
    assert!(own > Offset::ZERO && own < Offset(500));

    // Piece by piece to the disk, then to the shell.
    for position in [0, 4] {
        bench.output(Output::KeepPiece {
            id: id(500, 4),
            position,
            bytes: Bytes::from_static(b"half"),
            size: 8,
        });
    }
    let given = std::mem::take(&mut bench.pending);
    let positions: Vec<_> = given
        .iter()
        .map(|it| match it {
            Command::ReceiveSnapshot(piece) => (piece.position, piece.size),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(positions, [(0, 8), (4, 8)]);
    let expected = loaded(id(500, 4), &[2, 3]);
    bench.step(Event::Disk(Completion::SnapshotReceived {
        id: id(500, 4),
        outcome: Ok(expected.held),
    }));
    assert_eq!(bench.loads, [id(500, 4)]);

    let image = expected.image.clone();
    bench.load(expected);
    bench.settle();
    assert_eq!(bench.starts, [id(500, 4)]);
    assert_eq!(bench.published.end, Offset(500));
    assert_eq!(bench.published.image, image);
    let raft = bench.node.raft();
    assert_eq!(
        (raft.log_start(), raft.log_end()),
        (Offset(500), Offset(500))
    );
    assert_eq!(raft.high_watermark(), Some(Offset(500)));
    assert_eq!(raft.newest_snapshot(), Some(id(500, 4)));
    assert_eq!(bench.halted, None);

    // Again, and an older one: nothing happens.
    for again in [id(500, 4), id(400, 4)] {
        bench.load(loaded(again, &[5]));
    }
    assert!(bench.pending.is_empty());
    assert_eq!(bench.published.image, image);
    // A later one of a later leader.
    bench.follow(6);
    bench.load(loaded(id(900, 6), &[2, 3, 4]));
    bench.settle();
    assert_eq!(bench.published.image.brokers().len(), 3);
    assert_eq!(bench.published.end, Offset(900));
}

#[test]
fn a_read_of_the_old_log_that_comes_late_changes_nothing() {
    let mut bench = Bench::observing(Bench::active().log, 9);
    bench.follow(4);
    let log = bench.log.clone();
    bench
        .node
        .readings
        .insert(Token(4_000), Reading::Replay { from: Offset::ZERO });
    bench.load(loaded(id(500, 4), &[2]));
    let batches: Vec<u8> = log.iter().flat_map(|(_, _, it)| it.to_vec()).collect();
    bench.step(Event::Disk(Completion::Read {
        token: Token(4_000),
        batches: Bytes::from(batches),
    }));
    bench.settle();
    assert_eq!(bench.published.end, Offset(500));
    assert_eq!(bench.published.image.brokers().len(), 1);
    assert_eq!(bench.halted, None);
}

/// KIP-853: a voter set counts from its record on, wherever the log is committed to.
#[test]
fn voters_of_a_snapshot_count_unless_the_log_goes_on_behind_it() {
    let mut bench = Bench::observing(Bench::active().log, 9);
    bench.follow(4);
    let before = bench.node.raft().voters().to_vec();
    let voter = |id| VoterNode {
        key: ReplicaKey {
            id: NodeId(id),
            directory: Uuid::from_u128(7),
        },
        endpoints: Vec::new(),
        kraft_versions: (0, 1),
    };
    let of_seven = |id| {
        let mut loaded = loaded(id, &[2]);
        loaded.control = vec![raft::ControlRecord::Voters(vec![voter(7)])];
        loaded
    };
    let inside = bench.node.raft().log_end().prev();
    let epoch = bench.node.raft().epoch_of(inside.prev());
    bench.load(of_seven(OffsetAndEpoch {
        offset: inside,
        epoch,
    }));
    bench.settle();
    assert_eq!(bench.published.end, inside);
    assert_eq!(bench.node.raft().voters(), before);
    bench.load(of_seven(id(500, 4)));
    bench.settle();
    assert_eq!(bench.node.raft().voters(), [voter(7)]);
}

#[test]
fn the_active_controller_takes_no_snapshot_over() {
    let mut bench = Bench::active();
    let end = bench.published.end;
    bench.load(loaded(id(500, 4), &[2]));
    bench.settle();
    assert!(bench.published.active);
    assert!(bench.published.image.brokers().is_empty());
    assert!(bench.published.end < Offset(500) && bench.published.end >= end);
    assert!(bench.starts.is_empty());
}

#[test]
fn a_fetched_snapshot_that_is_no_good_is_dropped_and_one_that_cannot_be_replayed_halts() {
    let mut bench = Bench::observing(Bench::active().log, 9);
    bench.follow(4);
    bench.step(Event::Disk(Completion::SnapshotReceived {
        id: id(500, 4),
        outcome: Err(Unreceived::NoGood("it ends without a footer".to_owned())),
    }));
    assert!(bench.loads.is_empty());
    assert_eq!(bench.halted, None);
    bench.step(Event::SnapshotLoaded(Err("record 3: unknown".to_owned())));
    assert_eq!(bench.halted.as_deref(), Some("record 3: unknown"));
}

#[test]
fn a_leaders_snapshot_without_room_is_told_once_and_ends_nothing() {
    let mut bench = Bench::observing(Bench::active().log, 9);
    bench.follow(4);
    let expected = loaded(id(500, 4), &[2]);
    let no_room = Err(Unreceived::NoRoom("No room.".to_owned()));
    for (outcome, lacks_room) in [
        (no_room.clone(), true),
        (no_room, true),
        (Ok(expected.held), false),
    ] {
        let id = id(500, 4);
        bench.step(Event::Disk(Completion::SnapshotReceived { id, outcome }));
        assert_eq!(bench.node.snapshots.lacks_room, lacks_room);
    }
    assert_eq!(bench.halted, None);
    assert_eq!(bench.loads, [id(500, 4)]);
}

/// What was being written when the leader's snapshot came would stand below the log's start.
#[test]
fn an_own_snapshot_that_is_done_after_the_leaders_was_taken_over_counts_no_more() {
    let mut bench = Bench::observing(Bench::active().log, 9);
    bench.follow(4);
    let own = HeldSnapshot {
        id: id(3, 1),
        bytes: 1_000,
        last_timestamp: None,
    };
    bench.load(loaded(id(500, 4), &[2]));
    bench.settle();
    bench.step(Event::Disk(Completion::SnapshotWritten(own)));
    bench.settle();
    assert_eq!(bench.node.raft().newest_snapshot(), Some(id(500, 4)));
    assert_eq!(bench.node.snapshots.held_ids(), [id(500, 4)]);
    assert_eq!(bench.halted, None);
}
