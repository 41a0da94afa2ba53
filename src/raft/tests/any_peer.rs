//! Peers that say anything, in every role: none of it breaks a law of the node or ends it.

use std::collections::{BTreeSet, VecDeque};

use bytes::Bytes;

use super::*;
use crate::types::{CallId, OffsetAndEpoch, SplitMix};

/// A node whose peers are led by chance, and a disk that takes its time.
struct Anyone {
    rig: Rig,
    rng: SplitMix,
    disk: VecDeque<(Token, Vec<Output>)>,
    calls: Vec<(CallId, Ask)>,
    /// Ends of the pieces of a snapshot that are on their way to the disk, with the file's size.
    pieces: VecDeque<(OffsetAndEpoch, u64, u64)>,
    tickets: u64,
    answered: BTreeSet<Ticket>,
    /// It asked for the one byte that is asked for while there is no room.
    lacked_room: bool,
}

impl Anyone {
    fn new(seed: u64) -> Self {
        let mut rng = SplitMix::new(seed);
        let voters = [&[1][..], &[1, 2, 3], &[2, 3]][rng.below(3) as usize];
        let mut boot = Boot::default();
        if rng.below(2) == 0 {
            let nodes = voters.iter().map(|id| node(*id)).collect();
            boot.control = vec![
                (Offset(-1), ControlRecord::KraftVersion(1)),
                (Offset(-1), ControlRecord::Voters(nodes)),
            ];
        }
        if rng.below(2) == 0 {
            boot.log_end = Offset(20);
            boot.epochs = vec![(Epoch(1), Offset(0)), (Epoch(3), Offset(10))];
            boot.commit = (rng.below(2) == 0).then(|| id(15, 3));
        }
        Self {
            rig: Rig::new(voters, boot),
            rng,
            disk: VecDeque::new(),
            calls: Vec::new(),
            pieces: VecDeque::new(),
            tickets: 0,
            answered: BTreeSet::new(),
            lacked_room: false,
        }
    }

    fn chance(&mut self, one_in: u64) -> bool {
        self.rng.below(one_in) == 0
    }

    fn one_of<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.rng.below(of.len() as u64) as usize].clone()
    }

    /// Mostly near what the node has, so that not all is refused for its number alone.
    fn epoch(&mut self) -> Epoch {
        let now = self.rig.raft.epoch().0;
        let near = [now - 1, now, now, now, now.saturating_add(1)];
        match self.chance(100) {
            true => Epoch(self.one_of(&[i32::MIN, -1, 0, i32::MAX - 1, i32::MAX])),
            false => Epoch(self.one_of(&near)),
        }
    }

    fn offset(&mut self) -> Offset {
        let end = self.rig.raft.log_end().0;
        match self.chance(20) {
            true => Offset(self.one_of(&[i64::MIN, -1, i64::MAX - 1, i64::MAX])),
            false => Offset(end.saturating_add(self.one_of(&[-end, -5, -1, 0, 0, 0, 1, 9]))),
        }
    }

    fn end(&mut self) -> OffsetAndEpoch {
        OffsetAndEpoch {
            offset: self.offset(),
            epoch: self.epoch(),
        }
    }

    fn key(&mut self) -> ReplicaKey {
        let id = self.one_of(&[1, 2, 2, 3, 3, 4, -1, i32::MIN, i32::MAX]);
        match self.chance(4) {
            true => ReplicaKey {
                id: NodeId(id),
                directory: Uuid::nil(),
            },
            false => any_key(id),
        }
    }

    fn cluster(&mut self) -> Option<String> {
        self.one_of(&[None, Some("cluster".to_owned())])
    }

    fn request(&mut self) -> Request {
        let (cluster_id, epoch) = (self.cluster(), self.epoch());
        match self.rng.below(10) {
            0 | 1 => Request::Vote(VoteRequest {
                cluster_id,
                voter: self.chance(2).then(|| key(1)),
                candidate: self.key(),
                epoch,
                last_epoch: self.epoch(),
                last_offset: self.offset(),
                pre_vote: self.chance(2),
            }),
            2 => Request::BeginQuorumEpoch(BeginQuorumEpochRequest {
                cluster_id,
                voter: self.chance(2).then(|| key(1)),
                leader_id: self.key().id,
                epoch,
                endpoints: self.one_of(&[Vec::new(), endpoints()]),
            }),
            3 => Request::EndQuorumEpoch(EndQuorumEpochRequest {
                cluster_id,
                leader_id: self.key().id,
                epoch,
                preferred: vec![self.key(), self.key()],
            }),
            4 | 5 => Request::Fetch(FetchRequest {
                cluster_id,
                replica: self.key(),
                current_leader_epoch: epoch.0,
                fetch_offset: self.offset().0,
                last_fetched_epoch: self.epoch().0,
                high_watermark: self.offset().0,
                max_wait_ms: self.one_of(&[i32::MIN, -1, 0, 500, i32::MAX]),
                max_bytes: self.one_of(&[i32::MIN, 0, 1 << 20, i32::MAX]),
            }),
            6 => Request::FetchSnapshot(FetchSnapshotRequest {
                cluster_id,
                replica: self.key(),
                current_leader_epoch: epoch.0,
                id: self.end(),
                position: self.offset().0,
                max_bytes: self.one_of(&[i32::MIN, 0, i32::MAX]),
            }),
            7 => Request::AddVoter(AddVoterRequest {
                cluster_id,
                timeout_ms: self.one_of(&[i32::MIN, 0, i32::MAX]),
                voter: self.key(),
                endpoints: endpoints(),
                ack_when_committed: self.chance(2),
            }),
            8 => Request::RemoveVoter(RemoveVoterRequest {
                cluster_id,
                voter: self.key(),
            }),
            _ => Request::UpdateVoter(UpdateVoterRequest {
                cluster_id,
                current_leader_epoch: epoch.0,
                voter: self.key(),
                endpoints: endpoints(),
                kraft_versions: self.one_of(&[(0, 1), (1, 0), (i16::MIN, i16::MAX)]),
            }),
        }
    }

    fn error(&mut self) -> RaftError {
        match self.rng.below(20) {
            0 => RaftError::Top(ErrorCode::InconsistentClusterId),
            1 => RaftError::Partition(ErrorCode::NotLeaderOrFollower),
            2 => RaftError::Partition(ErrorCode::SnapshotNotFound),
            _ => RaftError::None,
        }
    }

    fn hint(&mut self) -> LeaderHint {
        let followed = self.rig.raft.leader();
        LeaderHint {
            leader: match self.chance(5) {
                true => Some(self.key().id),
                false => followed,
            },
            epoch: self.epoch(),
            endpoint: self.chance(2).then(|| ("localhost".to_owned(), 9_090)),
        }
    }

    /// As what reads them gives them: one behind the other, of no epoch above the leader's.
    fn batches(&mut self, leaders: Epoch) -> Vec<FetchedBatch> {
        let mut first = self.offset();
        let epoch = self.epoch().min(leaders);
        let count = self.rng.below(3);
        let batch = |_| {
            let control = match self.rng.below(6) {
                0 => Some(ControlRecord::KraftVersion(self.one_of(&[0, 1, u16::MAX]))),
                1 => {
                    let nodes = self.one_of(&[&[][..], &[1], &[1, 2, 3], &[2, 2], &[-1, 4]]);
                    Some(ControlRecord::Voters(
                        nodes.iter().map(|id| node(*id)).collect(),
                    ))
                }
                _ => None,
            };
            let batch = FetchedBatch {
                first,
                end: first.plus(1 + self.rng.below(4) as i64),
                epoch,
                control: control.into_iter().map(|it| (first, it)).collect(),
                bytes: Bytes::from_static(b"batch"),
            };
            first = batch.end;
            batch
        };
        (0..count).map(batch).collect()
    }

    /// An answer to the question, or to another one.
    fn told(&mut self, ask: &Ask) -> Told {
        let (error, hint) = (self.error(), self.hint());
        let simple = SimpleResponse {
            error,
            hint: hint.clone(),
        };
        match (ask, self.chance(20)) {
            (Ask::Raft(Request::Vote(_)), false) => Told::Response(Response::Vote(VoteResponse {
                error,
                hint,
                granted: self.chance(2),
            })),
            (Ask::Raft(Request::BeginQuorumEpoch(_)), false) => {
                Told::Response(Response::BeginQuorumEpoch(simple))
            }
            (Ask::Raft(Request::EndQuorumEpoch(_)), false) => {
                Told::Response(Response::EndQuorumEpoch(simple))
            }
            (Ask::Raft(Request::FetchSnapshot(asked)), false) => Told::Snapshot {
                response: FetchSnapshotResponse {
                    error,
                    hint,
                    id: match self.chance(10) {
                        true => self.end(),
                        false => asked.id,
                    },
                },
                size: self.one_of(&[8, 8, 8, 16, 0, -1, i64::MAX]),
                position: match self.chance(10) {
                    true => self.offset().0,
                    false => asked.position,
                },
                bytes: Bytes::from_static(b"pieceful").slice(..self.one_of(&[0, 4, 8])),
            },
            (Ask::Versions, false) => Told::Versions {
                kraft_versions: self.one_of(&[None, Some((0, 1)), Some((1, 0))]),
            },
            _ => Told::Fetch {
                batches: self.batches(hint.epoch),
                response: FetchResponse {
                    error,
                    hint,
                    high_watermark: self.offset().0,
                    log_start: self.offset(),
                    diverging: self.chance(4).then(|| self.end()),
                    snapshot: self.chance(4).then(|| self.end()),
                },
            },
        }
    }

    fn input(&mut self) -> Input {
        match self.rng.below(14) {
            0..=3 => {
                self.tickets += 1;
                request(self.tickets, self.request())
            }
            4..=7 if !self.calls.is_empty() => {
                let at = self.rng.below(self.calls.len() as u64) as usize;
                let (call, ask) = self.calls.swap_remove(at);
                let outcome = match self.rng.below(8) {
                    0 => Err(self.one_of(&[CallFault::Closed, CallFault::Garbage])),
                    1 => Err(self.one_of(&[CallFault::Silent, CallFault::Unsupported])),
                    _ => Ok(self.told(&ask)),
                };
                Input::Answered { call, outcome }
            }
            8 => Input::PeerLost {
                peer: self.key().id,
            },
            9 => Input::PeerFound {
                peer: self.key().id,
                pre_vote: self.chance(2),
            },
            10 if !self.pieces.is_empty() => self.piece_kept(),
            11 => match self.rig.raft.active_epoch() {
                Some(epoch) => self.proposal(epoch),
                None => Input::WakeUp,
            },
            _ => {
                let due = self.rig.raft.next_wakeup().0;
                self.rig.now = due.clamp(self.rig.now, self.rig.now + 5_000);
                Input::WakeUp
            }
        }
    }

    fn proposal(&mut self, epoch: Epoch) -> Input {
        let first = self.rig.raft.log_end();
        Input::Propose(Proposal {
            epoch,
            first,
            end: first.plus(2),
            batches: Bytes::from_static(b"batch"),
        })
    }

    fn piece_kept(&mut self) -> Input {
        let (id, end, size) = self.pieces.pop_front().unwrap();
        if self.chance(4) {
            return Input::SnapshotWithoutRoom(id);
        }
        if end < size {
            return Input::PieceKept { id, end };
        }
        match self.chance(4) {
            true => Input::SnapshotFailed(id),
            false => Input::SnapshotLoaded(LoadedSnapshot {
                id,
                control: vec![
                    ControlRecord::KraftVersion(1),
                    ControlRecord::Voters(vec![node(1), node(2), node(3)]),
                ],
            }),
        }
    }

    fn take(&mut self, outputs: Vec<Output>) {
        for output in outputs {
            match output {
                Output::Write { token, then, .. } => self.disk.push_back((token, then)),
                Output::Send { call, ask, .. } => {
                    if let Ask::Raft(Request::FetchSnapshot(asked)) = &ask {
                        self.lacked_room |= asked.max_bytes == 1;
                    }
                    self.calls.push((call, ask));
                }
                Output::KeepPiece {
                    id,
                    position,
                    bytes,
                    size,
                } => {
                    let end = position + bytes.len() as u64;
                    self.pieces.push_back((id, end, size));
                }
                Output::Reply { ticket, .. }
                | Output::ServeFetch { ticket, .. }
                | Output::ServeSnapshot { ticket, .. } => {
                    assert!(self.answered.insert(ticket), "{ticket:?} is answered twice");
                }
                _ => {}
            }
        }
    }

    fn step(&mut self) {
        if self.chance(2)
            && let Some((token, then)) = self.disk.pop_front()
        {
            let outputs = self.rig.handle(Input::Written(token));
            self.take(outputs);
            self.take(then);
        }
        let input = self.input();
        let outputs = self.rig.handle(input);
        self.take(outputs);
    }
}

fn id(offset: i64, epoch: i32) -> OffsetAndEpoch {
    OffsetAndEpoch {
        offset: Offset(offset),
        epoch: Epoch(epoch),
    }
}

/// As [`key`], of an id below 0 too.
fn any_key(id: i32) -> ReplicaKey {
    ReplicaKey {
        id: NodeId(id),
        ..key(id.clamp(0, 9))
    }
}

fn node(id: i32) -> VoterNode {
    VoterNode {
        key: any_key(id),
        endpoints: endpoints(),
        kraft_versions: (0, 1),
    }
}

#[test]
fn nothing_that_peers_say_ends_the_process_or_breaks_a_law() {
    let mut seen = BTreeSet::new();
    for seed in 0..2_000 {
        let mut anyone = Anyone::new(seed);
        for _ in 0..150 {
            anyone.step();
            seen.insert(anyone.rig.raft.role_name());
        }
        if anyone.lacked_room {
            seen.insert("without room");
        }
    }
    let states = [
        "candidate",
        "follower",
        "leader",
        "prospective",
        "resigned",
        "without room",
    ];
    for state in states {
        assert!(seen.contains(state), "{seen:?}");
    }
}
