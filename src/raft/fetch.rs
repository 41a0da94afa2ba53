//! Requests that only a leader answers: Fetch, FetchSnapshot, DescribeQuorum (KIP-595, KIP-630).

use std::sync::Arc;

use crate::types::{Epoch, ErrorCode, NodeId, Offset, OffsetAndEpoch, Ticket};

use super::input::{FetchRequest, FetchSnapshotRequest};
use super::log::Standing;
use super::machine::{Raft, Turn};
use super::output::{
    DescribeQuorumResponse, FetchResponse, FetchSnapshotResponse, Output, RaftError, ReplicaState,
    Response,
};
use super::roles::Role;
use super::waiters::Waiter;

/// One answer carries at most this many bytes of records or snapshot, whatever the peer asks: as
/// much as the largest batch (KIP-595).
const ANSWER_BYTES_MAX: usize = 8 * 1024 * 1024;

/// No fetch is held for longer, milliseconds, whatever the peer asks: there is room for so many,
/// and one that is held counts as heard of when it is answered.
const WAIT_MS_MAX: u64 = 10_000;

/// Kafka's sentence for NOT_LEADER_OR_FOLLOWER.
pub(super) const NOT_LEADER: &str = "For requests intended only for the leader, this error \
    indicates that the broker is not the current leader. For requests intended for any replica, \
    this error indicates that the broker is not a replica of the topic partition.";

/// How an accepted fetch goes on.
enum Found {
    /// There are records behind the fetch offset.
    Records,
    /// The replica has all that this node has.
    Nothing,
    Diverges(OffsetAndEpoch),
    NeedsSnapshot(OffsetAndEpoch),
}

impl Raft {
    /// Fetch: answered now, or parked until there is something to say.
    pub(super) fn fetch(
        &mut self,
        ticket: Ticket,
        listener: Arc<str>,
        request: FetchRequest,
        turn: &mut Turn,
    ) {
        let found = match self.judge_fetch(&request, turn) {
            Ok(found) => found,
            Err(error) => {
                let response = self.fetch_response(&listener, error);
                return turn.reply(ticket, Response::Fetch(response));
            }
        };
        let waiter = Waiter {
            ticket,
            listener,
            request,
        };
        if !matches!(found, Found::Nothing) || !self.may_wait(&waiter.request) {
            return self.answer_fetch(waiter, found, turn);
        }
        let wait_ms = u64::try_from(waiter.request.max_wait_ms).unwrap_or(0);
        let wait_ms = wait_ms.min(WAIT_MS_MAX);
        let deadline = turn.now.instant.plus_ms(wait_ms);
        let Role::Leader(leader) = &mut self.role else {
            // What it has committed the set of voters that this node is not in.
            return self.refuse_parked(waiter, turn);
        };
        if let Err(waiter) = leader.waiters.park(deadline, waiter) {
            self.answer_fetch(waiter, Found::Nothing, turn);
        }
    }

    /// All checks in the order of KIP-595. What passes them is the replica's word that everything
    /// below its fetch offset is durable there, and counts before it is answered.
    fn judge_fetch(&mut self, request: &FetchRequest, turn: &mut Turn) -> Result<Found, RaftError> {
        self.check_cluster(request.cluster_id.as_deref())?;
        let sound = request.max_wait_ms >= 0
            && request.fetch_offset >= 0
            && request.last_fetched_epoch >= 0
            && request.last_fetched_epoch <= request.current_leader_epoch;
        if !sound {
            return Err(RaftError::Partition(ErrorCode::InvalidRequest));
        }
        self.check_leads(request.current_leader_epoch)?;
        let offset = Offset(request.fetch_offset);
        match self.log.standing(offset, Epoch(request.last_fetched_epoch)) {
            Standing::Diverges(end) => Ok(Found::Diverges(end)),
            Standing::NeedsSnapshot(id) => Ok(Found::NeedsSnapshot(id)),
            Standing::Prefix => {
                self.acknowledge(request, turn);
                Ok(if offset < self.log.end {
                    Found::Records
                } else {
                    Found::Nothing
                })
            }
        }
    }

    /// A fetch waits unless it forbids it, or does not know a commit offset that this node knows
    /// (version 18 tells what the replica knows).
    fn may_wait(&self, request: &FetchRequest) -> bool {
        let news = self
            .told_commit()
            .is_some_and(|commit| commit.0 > request.high_watermark);
        request.max_wait_ms > 0 && !news
    }

    fn acknowledge(&mut self, request: &FetchRequest, turn: &mut Turn) {
        let key = request.replica;
        // -1 reads without being a replica. Our own id from outside is a mistake or a lie, and
        // must not count for our disk.
        if key.id < NodeId(0) || key.id == self.config.node.id {
            return;
        }
        let (offset, leader_end) = (Offset(request.fetch_offset), self.log.end);
        let voter = self.voters.find(key).map(|node| node.key);
        let Role::Leader(leader) = &mut self.role else {
            return;
        };
        let progress = &mut leader.progress;
        match voter {
            Some(voter) => {
                progress.voter_fetched(turn.now, voter, offset, leader_end);
                self.heard(voter.id, turn);
                self.advance_commit(turn);
            }
            None => progress.observer_fetched(turn.now, key, offset, leader_end),
        }
    }

    /// A voter sent something that only a voter sends who knows this leader.
    pub(super) fn heard(&mut self, id: NodeId, turn: &Turn) {
        let counts = self.voters.find(self.config.node).is_some();
        let timeout = self.config.fetch_timeout_ms;
        if let Role::Leader(leader) = &mut self.role {
            leader.contact.heard(id, turn.now.instant, counts, timeout);
        }
    }

    fn answer_fetch(&self, waiter: Waiter, found: Found, turn: &mut Turn) {
        let Waiter {
            ticket,
            listener,
            request,
        } = waiter;
        let mut response = self.fetch_response(&listener, RaftError::None);
        match found {
            Found::Records => {
                return turn.tell(Output::ServeFetch {
                    ticket,
                    response,
                    from: Offset(request.fetch_offset),
                    until: self.log.end,
                    max_bytes: bytes_max(request.max_bytes),
                });
            }
            Found::Nothing => {}
            Found::Diverges(end) => response.diverging = Some(end),
            Found::NeedsSnapshot(id) => response.snapshot = Some(id),
        }
        turn.reply(ticket, Response::Fetch(response));
    }

    /// Answers every parked fetch: the log or the commit offset moved.
    pub(super) fn answer_waiters(&mut self, turn: &mut Turn) {
        let Role::Leader(leader) = &mut self.role else {
            return;
        };
        for waiter in leader.waiters.take_all() {
            match self.judge_fetch(&waiter.request, turn) {
                Ok(found) => self.answer_fetch(waiter, found, turn),
                Err(error) => {
                    let response = self.fetch_response(&waiter.listener, error);
                    turn.reply(waiter.ticket, Response::Fetch(response));
                }
            }
        }
    }

    /// Answers a parked fetch after leadership was lost.
    pub(super) fn refuse_parked(&self, waiter: Waiter, turn: &mut Turn) {
        let error = RaftError::Partition(ErrorCode::NotLeaderOrFollower);
        let response = self.fetch_response(&waiter.listener, error);
        turn.reply(waiter.ticket, Response::Fetch(response));
    }

    /// The commit offset as a leader tells it: nothing before it has committed in its own epoch.
    /// What it knows from before may be less than what others know, and Java's processes halt when
    /// a leader tells them less than the one before it (KIP-595, high watermark).
    fn told_commit(&self) -> Option<Offset> {
        match &self.role {
            Role::Leader(leader) if !leader.announced => None,
            _ => self.commit,
        }
    }

    /// A response without records. An error tells no commit offset.
    pub(super) fn fetch_response(&self, listener: &str, error: RaftError) -> FetchResponse {
        let commit = match error {
            RaftError::None => self.told_commit(),
            RaftError::Top(_) | RaftError::Partition(_) => None,
        };
        FetchResponse {
            error,
            hint: self.hint(listener),
            high_watermark: commit.map_or(-1, |commit| commit.0),
            log_start: self.log.start,
            diverging: None,
            snapshot: None,
        }
    }

    /// Only the leader of exactly this epoch answers.
    pub(super) fn check_leads(&self, epoch: i32) -> Result<(), RaftError> {
        let code = match (epoch.cmp(&self.epoch.0), &self.role) {
            (std::cmp::Ordering::Less, _) => ErrorCode::FencedLeaderEpoch,
            (std::cmp::Ordering::Greater, _) => ErrorCode::UnknownLeaderEpoch,
            (std::cmp::Ordering::Equal, Role::Leader(_)) => return Ok(()),
            (
                std::cmp::Ordering::Equal,
                Role::Unattached(_)
                | Role::Prospective(_)
                | Role::Candidate(_)
                | Role::Follower(_)
                | Role::Resigned(_),
            ) => ErrorCode::NotLeaderOrFollower,
        };
        Err(RaftError::Partition(code))
    }

    /// FetchSnapshot: the driver reads the bytes, and knows the size against which the position is
    /// checked.
    pub(super) fn fetch_snapshot(
        &mut self,
        ticket: Ticket,
        listener: &str,
        request: FetchSnapshotRequest,
        turn: &mut Turn,
    ) {
        let checked = self
            .check_cluster(request.cluster_id.as_deref())
            .and_then(|()| self.check_leads(request.current_leader_epoch))
            .and_then(|()| match self.log.has_snapshot(request.id) {
                true => Ok(()),
                false => Err(RaftError::Partition(ErrorCode::SnapshotNotFound)),
            });
        let response = FetchSnapshotResponse {
            error: checked.err().unwrap_or(RaftError::None),
            hint: self.hint(listener),
            id: request.id,
        };
        if checked.is_err() {
            return turn.reply(ticket, Response::FetchSnapshot(response));
        }
        if let Some(voter) = self.voters.find(request.replica) {
            let id = voter.key.id;
            self.heard(id, turn);
        }
        turn.tell(Output::ServeSnapshot {
            ticket,
            response,
            position: request.position,
            max_bytes: bytes_max(request.max_bytes),
        });
    }

    /// DescribeQuorum (KIP-595, KIP-836, KIP-853).
    pub(super) fn describe_quorum(
        &mut self,
        listener: &str,
        turn: &Turn,
    ) -> DescribeQuorumResponse {
        let mut response = DescribeQuorumResponse {
            error: RaftError::Partition(ErrorCode::NotLeaderOrFollower),
            message: Some(NOT_LEADER.to_owned()),
            hint: self.hint(listener),
            high_watermark: -1,
            voters: Vec::new(),
            observers: Vec::new(),
            nodes: Vec::new(),
        };
        let high_watermark = self.told_commit().map_or(-1, |commit| commit.0);
        let Role::Leader(leader) = &mut self.role else {
            return response;
        };
        response.error = RaftError::None;
        response.message = None;
        response.high_watermark = high_watermark;
        response.observers = leader.progress.describe_observers(turn.now.instant);
        response.nodes = self.voters.nodes().to_vec();
        let own = self.voters.find(self.config.node).map(|node| node.key);
        let itself = |key| ReplicaState {
            key,
            log_end: self.log.end.0,
            last_fetch: turn.now.wall.0,
            last_caught_up: turn.now.wall.0,
        };
        response.voters = response
            .nodes
            .iter()
            .map(|node| match Some(node.key) == own {
                true => itself(node.key),
                false => leader.progress.describe_voter(node.key),
            })
            .collect();
        if own.is_none() {
            // It removed itself, and leads until that is committed.
            response.observers.push(itself(self.config.node));
        }
        response
    }
}

/// What a peer asks for, as a bound that this node can live with.
fn bytes_max(asked: i32) -> usize {
    usize::try_from(asked).unwrap_or(0).min(ANSWER_BYTES_MAX)
}
