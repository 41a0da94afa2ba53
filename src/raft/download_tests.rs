//! A follower that fetches a snapshot, driven by hand.

use bytes::Bytes;

use super::follower_tests::{Answer, Node, hint, id};
use super::*;
use crate::types::{CallId, Epoch, ErrorCode, Instant, NodeId, Offset, OffsetAndEpoch};

const SNAPSHOT: OffsetAndEpoch = OffsetAndEpoch {
    offset: Offset(100),
    epoch: Epoch(4),
};

/// A follower that was told to fetch the snapshot.
fn fetching() -> Node {
    let mut node = Node::start(0, &[]);
    node.fetched(offer(SNAPSHOT));
    node
}

fn offer(id: OffsetAndEpoch) -> Answer {
    Answer {
        high_watermark: 120,
        snapshot: Some(id),
        ..Answer::default()
    }
}

/// The one question that was sent, if it is for a piece: where it begins.
fn piece(node: &mut Node) -> (CallId, i64) {
    piece_of(node, 1 << 20)
}

/// The same for a piece of so many bytes at most.
fn piece_of(node: &mut Node, bytes_max: i32) -> (CallId, i64) {
    tell_voter(node);
    assert_eq!(node.sent.len(), 1, "{:?}", node.sent);
    match node.sent.pop_front() {
        Some((call, to, Ask::Raft(Request::FetchSnapshot(ask)))) => {
            assert_eq!(to.name, PeerName::Node(NodeId(2)));
            assert_eq!(ask.id, SNAPSHOT);
            assert_eq!((ask.current_leader_epoch, ask.max_bytes), (5, bytes_max));
            assert_eq!(ask.cluster_id.as_deref(), Some("cluster"));
            (call, ask.position)
        }
        other => panic!("{other:?}"),
    }
}

fn told(id: OffsetAndEpoch, size: i64, position: i64, len: usize) -> Told {
    Told::Snapshot {
        response: FetchSnapshotResponse {
            error: RaftError::None,
            hint: hint(),
            id,
        },
        size,
        position,
        bytes: Bytes::from(vec![7; len]),
    }
}

fn failed(error: RaftError) -> Told {
    Told::Response(Response::FetchSnapshot(FetchSnapshotResponse {
        error,
        hint: hint(),
        id: SNAPSHOT,
    }))
}

/// Answers what a voter of a static quorum tells its leader once.
fn tell_voter(node: &mut Node) {
    if let Some((call, _, Ask::Raft(Request::UpdateVoter(_)))) = node.sent.front() {
        let response = UpdateVoterResponse {
            error: ErrorCode::None,
            hint: hint(),
        };
        let told = Told::Response(Response::UpdateVoter(response));
        let call = *call;
        node.sent.clear();
        node.answer(call, told);
    }
}

/// The piece that was given to the disk: where it begins and ends.
fn kept(node: &mut Node) -> (u64, u64) {
    match std::mem::take(&mut node.rest)[..] {
        [
            Output::KeepPiece {
                id: SNAPSHOT,
                position,
                ref bytes,
                size: 250,
            },
        ] => (position, position + bytes.len() as u64),
        ref other => panic!("{other:?}"),
    }
}

/// Takes the piece that is asked for, and has it on disk.
fn take(node: &mut Node, len: usize) {
    let (call, position) = piece(node);
    node.answer(call, told(SNAPSHOT, 250, position, len));
    let (begin, end) = kept(node);
    assert_eq!(
        (begin, end),
        (position as u64, (position as usize + len) as u64)
    );
    node.input(Input::PieceKept { id: SNAPSHOT, end });
}

#[test]
fn pieces_come_one_after_the_other_and_the_log_begins_anew_behind_the_snapshot() {
    let mut node = fetching();
    let (call, position) = piece(&mut node);
    assert_eq!(position, 0);
    node.rig.now = 500;
    node.answer(call, told(SNAPSHOT, 250, 0, 100));
    assert_eq!(kept(&mut node), (0, 100));
    assert_eq!(
        node.deadline(),
        Instant(2_500),
        "a piece proves that the leader lives"
    );
    assert!(node.sent.is_empty(), "the piece is not on disk");
    node.input(Input::PieceKept {
        id: SNAPSHOT,
        end: 99,
    });
    assert!(node.sent.is_empty(), "that is no end of a piece");
    node.input(Input::PieceKept {
        id: SNAPSHOT,
        end: 100,
    });
    take(&mut node, 100);
    let (call, position) = piece(&mut node);
    assert_eq!(position, 200);
    node.answer(call, told(SNAPSHOT, 250, 200, 50));
    assert_eq!(kept(&mut node), (200, 250));
    node.input(Input::WakeUp);
    assert!(node.sent.is_empty(), "it is being loaded");
    // The leader counts on its voters meanwhile, and this node on its leader.
    for wait in [500, 1_000] {
        node.rig.now = 500 + wait;
        assert!(node.rig.raft.next_wakeup() <= Instant(500 + wait));
        node.input(Input::WakeUp);
        let (call, position) = piece(&mut node);
        assert_eq!(position, 249);
        node.answer(call, told(SNAPSHOT, 250, 249, 1));
        assert!(node.rest.is_empty(), "it has that byte");
        assert_eq!(node.deadline(), Instant(2_500 + wait));
    }
    for gone in [
        told(SNAPSHOT, 251, 249, 1),
        failed(RaftError::Partition(ErrorCode::SnapshotNotFound)),
    ] {
        node.rig.now += 500;
        node.input(Input::WakeUp);
        let (call, _) = piece(&mut node);
        node.answer(call, gone);
        node.sent.clear();
        node.rig.now += 20;
        node.input(Input::WakeUp);
        assert!(node.sent.is_empty(), "what is being loaded is whole");
        node.rig.now += 480;
        node.input(Input::WakeUp);
        let (call, _) = piece(&mut node);
        node.answer(call, told(SNAPSHOT, 250, 249, 1));
    }
    node.input(Input::SnapshotLoaded(LoadedSnapshot {
        id: SNAPSHOT,
        control: Vec::new(),
    }));
    assert_eq!(node.committed(), [100]);
    let writes = node.sync();
    assert!(matches!(writes[..], [Write::Restart { at: SNAPSHOT }]));
    let (_, _, fetch) = node.fetch();
    assert_eq!((fetch.fetch_offset, fetch.last_fetched_epoch), (100, 4));
    assert_eq!(fetch.high_watermark, 100);
}

#[test]
fn what_fails_for_a_moment_costs_the_piece_under_way_and_no_other() {
    let busy = RaftError::Top(ErrorCode::BrokerNotAvailable);
    let outcomes = [
        Err(CallFault::Silent),
        Err(CallFault::Closed),
        Err(CallFault::Garbage),
        Ok(failed(busy)),
    ];
    for outcome in outcomes {
        let mut node = fetching();
        take(&mut node, 100);
        let (call, _) = piece(&mut node);
        node.input(Input::Answered { call, outcome });
        node.sent.clear();
        // A closed connection is followed by a pre-vote in vain.
        let piece_sent = |node: &mut Node| {
            let piece = |ask: &Ask| matches!(ask, Ask::Raft(Request::FetchSnapshot(_)));
            node.sent.retain(|(.., ask)| piece(ask));
            !node.sent.is_empty()
        };
        for _ in 0..10 {
            if piece_sent(&mut node) {
                break;
            }
            node.rig.now = node.rig.raft.next_wakeup().0;
            node.input(Input::WakeUp);
        }
        let (call, position) = piece(&mut node);
        assert_eq!(position, 100);
        node.answer(call, told(SNAPSHOT, 250, 100, 10));
        assert_eq!(kept(&mut node), (100, 110));
    }
}

#[test]
fn a_snapshot_that_the_leader_has_no_more_is_left_for_what_it_has() {
    let none = told(id(-1, -1), 250, 100, 10);
    for answer in [
        failed(RaftError::Partition(ErrorCode::SnapshotNotFound)),
        failed(RaftError::Partition(ErrorCode::PositionOutOfRange)),
        failed(RaftError::Top(ErrorCode::UnknownServerError)),
        none,
    ] {
        let mut node = fetching();
        take(&mut node, 100);
        let (call, _) = piece(&mut node);
        node.answer(call, answer);
        node.sent.clear();
        node.rig.now = 20;
        node.input(Input::WakeUp);
        assert_eq!(node.fetch().2.fetch_offset, 0);
    }
}

#[test]
fn a_piece_that_does_not_fit_is_refused_and_the_download_begins_anew() {
    for answer in [
        told(id(101, 4), 250, 100, 10),
        told(SNAPSHOT, 250, 0, 10),
        told(SNAPSHOT, 250, 110, 10),
        told(SNAPSHOT, 250, -100, 10),
        told(SNAPSHOT, 249, 100, 10),
        told(SNAPSHOT, 250, 100, 0),
        told(SNAPSHOT, 250, 100, 151),
        told(SNAPSHOT, 0, 100, 10),
        told(SNAPSHOT, -1, 100, 10),
        told(SNAPSHOT, i64::MAX, 100, 10),
    ] {
        let mut node = fetching();
        take(&mut node, 100);
        let (call, _) = piece(&mut node);
        node.answer(call, answer.clone());
        assert!(node.rest.is_empty(), "{answer:?}");
        assert_eq!(node.refused(), 1, "{answer:?}");
        node.sent.clear();
        node.rig.now = 20;
        node.input(Input::WakeUp);
        assert_eq!(piece(&mut node).1, 0, "{answer:?}");
    }
    let mut node = fetching();
    let (call, _) = piece(&mut node);
    node.answer(call, told(SNAPSHOT, 1 << 40, 0, 10));
    assert_eq!(node.refused(), 1, "nothing is that big");
}

#[test]
fn a_snapshot_that_is_no_good_is_fetched_again() {
    let mut node = fetching();
    take(&mut node, 249);
    let (call, _) = piece(&mut node);
    node.answer(call, told(SNAPSHOT, 250, 249, 1));
    assert_eq!(kept(&mut node), (249, 250));
    node.input(Input::SnapshotFailed(SNAPSHOT));
    node.sent.clear();
    node.rig.now = 20;
    node.input(Input::WakeUp);
    node.fetched(offer(SNAPSHOT));
    assert_eq!(piece(&mut node).1, 0);
}

/// Neither does a full disk end the node, nor does it fetch in a tight loop what it cannot keep.
#[test]
fn a_snapshot_without_room_is_asked_for_by_one_byte_until_there_is_room() {
    let mut node = fetching();
    take(&mut node, 100);
    let (call, _) = piece(&mut node);
    node.answer(call, told(SNAPSHOT, 250, 100, 100));
    assert_eq!(kept(&mut node), (100, 200));
    for now in [500, 1_000, 1_500] {
        node.input(Input::SnapshotWithoutRoom(SNAPSHOT));
        assert!(node.sent.is_empty());
        assert_eq!(node.rig.raft.next_wakeup(), Instant(now));
        node.rig.now = now;
        node.input(Input::WakeUp);
        let (call, position) = piece_of(&mut node, 1);
        assert_eq!(position, 0);
        node.answer(call, told(SNAPSHOT, 250, 0, 1));
        assert_eq!(kept(&mut node), (0, 1));
    }
    node.input(Input::PieceKept {
        id: SNAPSHOT,
        end: 1,
    });
    assert_eq!(piece(&mut node).1, 1);
}

#[test]
fn an_offer_is_taken_once_and_only_if_it_goes_with_the_log() {
    let mut node = fetching();
    take(&mut node, 100);
    let (call, _) = piece(&mut node);
    let outcome = Err(CallFault::Silent);
    node.input(Input::Answered { call, outcome });
    // Meanwhile another one is asked, which may be the leader under another name.
    let (call, ..) = node.fetch();
    node.answer(call, offer(SNAPSHOT).told());
    node.sent.clear();
    node.rig.now = 20;
    node.input(Input::WakeUp);
    assert_eq!(piece(&mut node).1, 100, "what is kept stays");

    for (known, end, offered, lost) in [
        (50, 60, id(50, 5), false),
        (50, 60, id(49, 5), true),
        (50, 60, id(55, 1), false),
        (-1, 60, id(0, 0), false),
        (-1, 60, id(-5, 5), false),
    ] {
        let mut node = Node::start(end, &[(2, 0)]);
        node.fetched(Answer {
            high_watermark: known,
            ..Answer::default()
        });
        node.rest.clear();
        node.fetched(offer(offered));
        assert_eq!(node.refused(), 1, "{offered:?}");
        assert_eq!(node.leader_lost_records(), lost, "{offered:?}");
        assert_eq!(node.rig.raft.fetching.download, None);
    }
}
