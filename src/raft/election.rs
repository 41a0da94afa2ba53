//! Elections as seen by one node: votes asked of it, leaders told to it, its own timers
//! (KIP-595, KIP-853, KIP-996).

use crate::types::{Epoch, ErrorCode, Instant, NodeId, Offset, ReplicaKey};

use super::haste::{self, Doubt};
use super::input::{BeginQuorumEpochRequest, EndQuorumEpochRequest, Request, VoteRequest};
use super::machine::{Raft, Turn};
use super::output::{
    ChangeVoterResponse, DescribeQuorumResponse, FetchResponse, FetchSnapshotResponse, LeaderHint,
    RaftError, Response, SimpleResponse, UpdateVoterResponse, VoteResponse,
};
use super::roles::{Endpoint, Role};
use super::transition::Move;
use super::vote;

/// After the first election that was lost, the next pre-votes are asked for within this time,
/// milliseconds; it doubles with each one more, up to 32 times.
const RETRY_MS: u64 = 50;

impl Raft {
    /// Vote, checked in the order of KIP-595.
    pub(super) fn vote(
        &mut self,
        listener: &str,
        request: VoteRequest,
        turn: &mut Turn,
    ) -> VoteResponse {
        let outcome = self.judge_vote(&request, turn);
        VoteResponse {
            error: outcome.err().unwrap_or(RaftError::None),
            hint: self.hint(listener),
            granted: outcome == Ok(true),
        }
    }

    fn judge_vote(&mut self, request: &VoteRequest, turn: &mut Turn) -> Result<bool, RaftError> {
        self.check_cluster(request.cluster_id.as_deref())?;
        // A real vote is asked for an epoch in which no record can be yet.
        let epoch_of_log_fits = if request.pre_vote {
            request.last_epoch <= request.epoch
        } else {
            request.last_epoch < request.epoch
        };
        let sound = request.last_offset >= Offset::ZERO
            && request.last_epoch >= Epoch(0)
            && epoch_of_log_fits;
        if !sound {
            return Err(RaftError::Partition(ErrorCode::InvalidRequest));
        }
        self.check_epoch_and_id(request.epoch, request.candidate.id)?;
        if request.epoch > self.epoch {
            let to = Move::Unattached {
                epoch: request.epoch,
                leader: None,
            };
            self.transition(turn, to, "a vote is asked in a newer epoch");
        }
        self.check_voter(request.voter)?;
        let up_to_date = (request.last_epoch, request.last_offset) >= self.log.position();
        // A peer with our own id is a mistake or a lie. A vote for it would read as one for this
        // node after a restart, which would then lead an epoch that it gave away.
        let granted = self.intact()
            && request.candidate.id != self.config.node.id
            && vote::grant(
                self.role.stance(),
                request.pre_vote,
                request.candidate,
                up_to_date,
            );
        if request.pre_vote && !up_to_date {
            self.go_first(turn.now.instant);
        }
        if granted && request.pre_vote {
            self.give_way(turn.now.instant);
        } else if granted {
            self.record_vote(request.candidate, turn);
        }
        Ok(granted)
    }

    /// Keeps the vote and gives the candidate its time: the election timer starts anew.
    fn record_vote(&mut self, candidate: ReplicaKey, turn: &Turn) {
        let deadline = self.election_deadline(turn.now.instant);
        let (voted, timer) = match &mut self.role {
            Role::Unattached(role) => (&mut role.voted, &mut role.deadline),
            Role::Prospective(role) => (&mut role.voted, &mut role.deadline),
            Role::Candidate(_) | Role::Follower(_) | Role::Leader(_) | Role::Resigned(_) => return,
        };
        if voted.is_none() {
            *voted = Some(candidate);
            *timer = deadline;
        }
    }

    /// BeginQuorumEpoch: a leader makes itself known.
    pub(super) fn begin_quorum_epoch(
        &mut self,
        listener: &str,
        request: BeginQuorumEpochRequest,
        turn: &mut Turn,
    ) -> SimpleResponse {
        let outcome = self
            .check_cluster(request.cluster_id.as_deref())
            .and_then(|()| self.check_epoch_and_id(request.epoch, request.leader_id))
            .and_then(|()| {
                self.learn_leader(request.epoch, request.leader_id, request.endpoints, turn)
            })
            .and_then(|()| self.check_voter(request.voter));
        SimpleResponse {
            error: outcome.err().unwrap_or(RaftError::None),
            hint: self.hint(listener),
        }
    }

    /// EndQuorumEpoch: the leader steps down and says who should try first.
    pub(super) fn end_quorum_epoch(
        &mut self,
        listener: &str,
        request: EndQuorumEpochRequest,
        turn: &mut Turn,
    ) -> SimpleResponse {
        let outcome = self
            .check_cluster(request.cluster_id.as_deref())
            .and_then(|()| self.check_epoch_and_id(request.epoch, request.leader_id))
            .and_then(|()| self.learn_leader(request.epoch, request.leader_id, Vec::new(), turn));
        if outcome.is_ok() {
            let wait = end_backoff_ms(
                &request.preferred,
                self.config.node,
                self.config.election_backoff_ms_max,
            );
            // Who must not lead must not try either: its disk may have lost committed records.
            let eligible = self.eligible();
            let deadline = turn.now.instant.plus_ms(wait);
            match &mut self.role {
                Role::Follower(role) if eligible && role.leader == request.leader_id => {
                    role.deadline = deadline;
                    role.doubt = Doubt::Resigned;
                }
                // Its leader is the one that says so: see `learn_leader`.
                Role::Prospective(role) if eligible => role.leader_resigned(deadline),
                Role::Follower(_)
                | Role::Prospective(_)
                | Role::Unattached(_)
                | Role::Candidate(_)
                | Role::Leader(_)
                | Role::Resigned(_) => {}
            }
        }
        SimpleResponse {
            error: outcome.err().unwrap_or(RaftError::None),
            hint: self.hint(listener),
        }
    }

    /// A peer names the leader of an epoch that is not below ours. A claim that contradicts what
    /// this node knows for sure cannot come from a correct peer: it is refused and changes
    /// nothing. (Java's controller halts on it.)
    pub(super) fn learn_leader(
        &mut self,
        epoch: Epoch,
        leader: NodeId,
        told: Vec<Endpoint>,
        turn: &mut Turn,
    ) -> Result<(), RaftError> {
        let own = self.config.node.id;
        let known = match epoch == self.epoch {
            true => self.role.leader(own),
            false => None,
        };
        let contradicts = match known {
            Some(known) => known != leader,
            // Only this node itself could have made it the leader.
            None => leader == own,
        };
        if contradicts {
            self.forged += 1;
            tracing::warn!(
                epoch = epoch.0,
                leader = leader.0,
                own_epoch = self.epoch.0,
                own_leader = known.map(|id| id.0),
                count = self.forged,
                "a contradicting claim of leadership is refused"
            );
            return Err(RaftError::Partition(ErrorCode::InvalidRequest));
        }
        if leader == own {
            return Ok(());
        }
        let endpoints = match told.is_empty() {
            true => self.voters.endpoints(leader).to_vec(),
            false => told,
        };
        if known.is_some() && endpoints.len() <= self.role.leader_endpoints().len() {
            return Ok(());
        }
        let to = match endpoints.is_empty() {
            true => Move::Unattached {
                epoch,
                leader: Some(leader),
            },
            false => Move::Follower {
                epoch,
                leader,
                endpoints,
            },
        };
        self.transition(turn, to, "a peer names the leader");
        Ok(())
    }

    /// What time alone brings.
    pub(super) fn timers(&mut self, turn: &mut Turn) {
        let now = turn.now.instant;
        self.expire_calls(turn);
        self.fetching.wake(now);
        if let Role::Prospective(role) = &mut self.role {
            role.wake(now);
        }
        let over = |deadline: Instant| deadline <= now;
        match &self.role {
            Role::Unattached(role) if over(role.deadline) => {
                let to = Move::Prospective { wait_ms: 0 };
                self.transition(turn, to, "no leader was heard of");
            }
            Role::Follower(role) if over(role.deadline) => {
                let to = Move::Prospective { wait_ms: 0 };
                self.transition(turn, to, "the leader is silent");
            }
            Role::Follower(role) if role.doubt.is_due(now) => self.hurry(turn),
            Role::Candidate(role) if over(role.deadline) => {
                let to = Move::Prospective { wait_ms: 0 };
                self.transition(turn, to, "too few votes in time");
            }
            Role::Prospective(role) if over(role.deadline) => self.give_up(turn),
            Role::Resigned(role) if over(role.deadline) => {
                let to = Move::Unattached {
                    epoch: self.epoch.next(),
                    leader: None,
                };
                self.transition(turn, to, "nobody followed the resigned leader");
            }
            Role::Leader(role) if role.contact.is_lost(now) => {
                let preferred = self.successors();
                let to = Move::Resigned { preferred };
                self.transition(turn, to, "too few voters were heard in time");
            }
            Role::Leader(_) => self.leader_timers(turn),
            Role::Unattached(_)
            | Role::Follower(_)
            | Role::Candidate(_)
            | Role::Prospective(_)
            | Role::Resigned(_) => {}
        }
    }

    fn leader_timers(&mut self, turn: &mut Turn) {
        if let Role::Leader(leader) = &mut self.role {
            for waiter in leader.waiters.take_due(turn.now.instant) {
                let response = self.fetch_response(&waiter.listener, RaftError::None);
                turn.reply(waiter.ticket, Response::Fetch(response));
            }
        }
        self.change_timers(turn);
    }

    /// An election that cannot be won is left the way it was come to.
    fn give_up(&mut self, turn: &mut Turn) {
        let Role::Prospective(role) = &mut self.role else {
            return;
        };
        if role.haste.is_some() {
            let to = Move::Back { calm: false };
            return self.transition(turn, to, "no majority agrees yet");
        }
        // The timer is wound up anew, else the next try would follow at once.
        role.deadline = turn.now.instant;
        let (leader, endpoints) = (role.leader, std::mem::take(&mut role.endpoints));
        let own = self.config.node.id;
        let epoch = self.epoch;
        let to = match leader.filter(|id| *id != own) {
            Some(leader) if !endpoints.is_empty() => Move::Follower {
                epoch,
                leader,
                endpoints,
            },
            Some(_) | None => Move::Unattached { epoch, leader },
        };
        self.transition(turn, to, "an election could not be won");
    }

    /// A pre-vote that is won or lost.
    pub(super) fn count_pre_votes(&mut self, turn: &mut Turn) {
        let Role::Prospective(role) = &self.role else {
            return;
        };
        if self.voters.majority_in(&role.granted) {
            if role.may_run() {
                let why = "a majority would vote for this node";
                self.transition(turn, Move::Candidate, why);
            }
        } else if self.voters.cannot_win(&role.refused) && !role.resigned {
            self.give_up(turn);
        } else if role.haste.is_none() && self.is_hopeless(&role.refused, &role.gone) {
            self.ask_again(turn.now.instant);
        }
    }

    /// Whether nobody is left who could still vote for this node.
    fn is_hopeless(&self, refused: &[NodeId], gone: &[NodeId]) -> bool {
        !refused.is_empty() && self.voters.cannot_win(&[refused, gone].concat())
    }

    /// Whoever said no may have heard of the leader's end a moment later.
    fn ask_again(&mut self, now: Instant) {
        if let Role::Prospective(role) = &mut self.role
            && role.ask_at.is_none()
        {
            role.ask_at = Some(now.plus_ms(haste::pause_ms(haste::RETRY_MS, role.tries)));
            role.tries = role.tries.saturating_add(1);
            role.refused.clear();
        }
    }

    /// A vote that is won or lost. Called only while the own vote is durable.
    pub(super) fn count_votes(&mut self, turn: &mut Turn) {
        let Role::Candidate(role) = &self.role else {
            return;
        };
        if self.voters.majority_in(&role.granted) {
            let granted = role.granted.clone();
            let to = Move::Leader { granted };
            self.transition(turn, to, "a majority voted for this node");
        } else if self.voters.cannot_win(&role.refused)
            || self.is_hopeless(&role.refused, &role.gone)
        {
            // Two that lose against each other must not try again at the same moment.
            let longest = RETRY_MS << self.lost_elections.min(5);
            let wait_ms = 1 + self.rng.below(longest);
            self.lost_elections += 1;
            self.transition(turn, Move::Prospective { wait_ms }, "an election is lost");
        }
    }

    /// No cluster id is accepted, another cluster's is not.
    pub(super) fn check_cluster(&self, cluster_id: Option<&str>) -> Result<(), RaftError> {
        match cluster_id {
            Some(id) if id != self.config.cluster_id => {
                Err(RaftError::Top(ErrorCode::InconsistentClusterId))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Epochs never go back, nor do they leap to where no election could follow.
    fn check_epoch_and_id(&self, epoch: Epoch, id: NodeId) -> Result<(), RaftError> {
        if epoch < self.epoch {
            return Err(RaftError::Partition(ErrorCode::FencedLeaderEpoch));
        }
        if id < NodeId(0) || !self.epoch.believes(epoch) {
            return Err(RaftError::Partition(ErrorCode::InvalidRequest));
        }
        Ok(())
    }

    /// A request that says whom it is for is for nobody else (KIP-853).
    fn check_voter(&self, voter: Option<ReplicaKey>) -> Result<(), RaftError> {
        match voter {
            Some(key) if !key.names(self.config.node) => {
                Err(RaftError::Partition(ErrorCode::InvalidVoterKey))
            }
            Some(_) | None => Ok(()),
        }
    }
}

/// How long a follower waits after its leader stepped down, in milliseconds: the first of the
/// preferred not at all, the others twice as long as the one before, the rest the longest.
fn end_backoff_ms(preferred: &[ReplicaKey], own: ReplicaKey, max_ms: u64) -> u64 {
    let position = preferred.iter().position(|key| key.names(own));
    match position {
        Some(0) => 0,
        Some(position) => {
            // A list longer than a u64 has bits comes from no real quorum.
            let halvings = u32::try_from(preferred.len() - 1).unwrap_or(u32::MAX);
            let doublings = u32::try_from(position - 1).unwrap_or(u32::MAX);
            let shortest = max_ms.checked_shr(halvings).unwrap_or(0);
            let factor = 1u64.checked_shl(doublings).unwrap_or(u64::MAX);
            shortest.saturating_mul(factor).min(max_ms)
        }
        None => max_ms,
    }
}

/// The answer to a request for which there is no room.
pub(super) fn busy(request: &Request) -> Response {
    let error = RaftError::Top(ErrorCode::BrokerNotAvailable);
    let hint = LeaderHint::default();
    match request {
        Request::Vote(_) => Response::Vote(VoteResponse {
            error,
            hint,
            granted: false,
        }),
        Request::BeginQuorumEpoch(_) => Response::BeginQuorumEpoch(SimpleResponse { error, hint }),
        Request::EndQuorumEpoch(_) => Response::EndQuorumEpoch(SimpleResponse { error, hint }),
        Request::Fetch(_) => Response::Fetch(FetchResponse {
            error,
            hint,
            high_watermark: -1,
            log_start: Offset::ZERO,
            diverging: None,
            snapshot: None,
        }),
        Request::FetchSnapshot(fetch) => Response::FetchSnapshot(FetchSnapshotResponse {
            error,
            hint,
            id: fetch.id,
        }),
        Request::DescribeQuorum(_) => Response::DescribeQuorum(DescribeQuorumResponse {
            error,
            message: None,
            hint,
            high_watermark: -1,
            voters: Vec::new(),
            observers: Vec::new(),
            nodes: Vec::new(),
        }),
        Request::AddVoter(_) => Response::AddVoter(unavailable()),
        Request::RemoveVoter(_) => Response::RemoveVoter(unavailable()),
        Request::UpdateVoter(_) => Response::UpdateVoter(UpdateVoterResponse {
            error: ErrorCode::BrokerNotAvailable,
            hint,
        }),
    }
}

fn unavailable() -> ChangeVoterResponse {
    ChangeVoterResponse {
        error: ErrorCode::BrokerNotAvailable,
        message: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Uuid;

    fn key(id: i32) -> ReplicaKey {
        ReplicaKey {
            id: NodeId(id),
            directory: Uuid::from_u128(id as u128),
        }
    }

    /// KIP-595, EndQuorumEpoch: the wait doubles along the list and never exceeds the maximum.
    #[test]
    fn the_preferred_successors_wait_in_the_order_of_the_list() {
        let list: Vec<ReplicaKey> = (1..=4).map(key).collect();
        let wait = |id| end_backoff_ms(&list, key(id), 1_000);
        assert_eq!(
            [wait(1), wait(2), wait(3), wait(4), wait(5)],
            [0, 125, 250, 500, 1_000]
        );
    }

    #[test]
    fn an_absurdly_long_list_of_successors_is_survived() {
        let mut list: Vec<ReplicaKey> = (2..=200).map(key).collect();
        list.push(key(1));
        assert_eq!(end_backoff_ms(&list, key(1), 1_000), 0);
    }
}
