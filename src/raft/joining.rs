//! What a follower tells its leader of itself: where it is and what it supports, or that it wants
//! to be a voter (KIP-853).

use crate::types::{ErrorCode, Instant};

use super::calls::{Call, Kind};
use super::input::{
    AddVoterRequest, Ask, CallFault, RemoveVoterRequest, Request, Told, UpdateVoterRequest,
};
use super::machine::{Raft, Turn};
use super::output::{ChangeVoterResponse, RaftError, Response, UpdateVoterResponse, VoterNode};
use super::roles::{Endpoint, Role};

/// How far a follower is in telling the leader about itself.
#[derive(Clone, Debug, Default)]
pub(super) struct Joining {
    /// When it was told last, or the leader was first looked at.
    since: Option<Instant>,
    /// The leader knows where this node is; asked once while kraft.version is 0.
    told: bool,
    /// When there is something to tell.
    due: Option<Instant>,
}

impl Joining {
    /// When something here changes by time alone.
    pub(super) fn deadline(&self) -> Instant {
        self.due.unwrap_or(Instant::NEVER)
    }
}

impl Raft {
    /// Tells the leader about this node if there is something to tell and it is time to. Before
    /// the next fetch: that would keep the leader busy, again and again.
    pub(super) fn update_voter_if_due(&mut self, turn: &mut Turn) {
        let now = turn.now.instant;
        let news = self.news();
        let period = self.config.fetch_timeout_ms;
        let Role::Follower(role) = &mut self.role else {
            return;
        };
        let due = role.joining.since.get_or_insert(now).plus_ms(period);
        role.joining.due = None;
        let Some((kind, request)) = news else {
            return;
        };
        if now < due {
            role.joining.due = Some(due);
            return;
        }
        // If it is busy, or left alone after a failure, the end of that looks here again.
        if let Some(peer) = self.leader_peer()
            && self.calls.is_free(peer.name, now)
        {
            self.ask(peer, kind, Ask::Raft(request), turn);
            self.restart_period(now);
        }
    }

    fn restart_period(&mut self, now: Instant) {
        if let Role::Follower(role) = &mut self.role {
            role.joining.since = Some(now);
        }
    }

    /// What the leader does not know of this node, as far as the log tells.
    fn news(&self) -> Option<(Kind, Request)> {
        let Role::Follower(role) = &self.role else {
            return None;
        };
        let dynamic = self.voters.kraft_version() > 0;
        let entry = self.voters.find(self.config.node);
        let outdated = match dynamic {
            true => entry.is_some_and(|entry| !self.is_as_told(entry)),
            false => entry.is_some() && !role.joining.told,
        };
        // Most steps end here: they must not copy anything.
        let may_join = entry.is_none() && dynamic && self.config.auto_join;
        if !outdated && !may_join {
            return None;
        }
        let own = self.own_node();
        let cluster_id = Some(self.config.cluster_id.clone());
        if outdated {
            let (min, max) = own.kraft_versions;
            let update = UpdateVoterRequest {
                cluster_id,
                current_leader_epoch: self.epoch.0,
                voter: own.key,
                endpoints: own.endpoints,
                kraft_versions: (min.cast_signed(), max.cast_signed()),
            };
            return Some((Kind::UpdateVoter, Request::UpdateVoter(update)));
        }
        let voters = self.voters.nodes();
        if let Some(old) = voters.iter().find(|node| node.key.id == own.key.id) {
            // It voted from another directory, which is gone.
            let remove = RemoveVoterRequest {
                cluster_id,
                voter: old.key,
            };
            return Some((Kind::RemoveVoter, Request::RemoveVoter(remove)));
        }
        let add = AddVoterRequest {
            cluster_id,
            timeout_ms: i32::try_from(self.config.request_timeout_ms).unwrap_or(i32::MAX),
            voter: own.key,
            endpoints: own.endpoints,
            ack_when_committed: false,
        };
        Some((Kind::AddVoter, Request::AddVoter(add)))
    }

    /// This node as its entry among the voters should be.
    pub(super) fn own_node(&self) -> VoterNode {
        VoterNode {
            key: self.config.node,
            endpoints: self.config.endpoints.clone(),
            kraft_versions: self.config.kraft_versions,
        }
    }

    /// Whether an entry among the voters says of this node what is true, in whatever order.
    pub(super) fn is_as_told(&self, entry: &VoterNode) -> bool {
        let endpoints = &self.config.endpoints;
        entry.key == self.config.node
            && entry.kraft_versions == self.config.kraft_versions
            && (entry.endpoints == *endpoints || sorted(&entry.endpoints) == sorted(endpoints))
    }

    /// An answer to a question about voters, or why there is none.
    pub(super) fn voter_change_answered(
        &mut self,
        call: Call,
        outcome: Result<Told, CallFault>,
        turn: &mut Turn,
    ) {
        match (call.kind, outcome) {
            (Kind::Versions, outcome) => self.versions_answered(call, outcome, turn),
            (Kind::UpdateVoter, Ok(Told::Response(Response::UpdateVoter(response)))) => {
                self.update_answered(call, &response, turn);
            }
            (Kind::UpdateVoter, Err(CallFault::Unsupported)) => self.note_told(),
            (Kind::AddVoter, Ok(Told::Response(Response::AddVoter(response)))) => {
                self.join_answered(call, &response, ErrorCode::DuplicateVoter, turn);
            }
            (Kind::RemoveVoter, Ok(Told::Response(Response::RemoveVoter(response)))) => {
                self.join_answered(call, &response, ErrorCode::VoterNotFound, turn);
            }
            // Tried again after a period.
            (_, Ok(_) | Err(_)) => self.rest(call.peer, turn.now.instant),
        }
    }

    fn update_answered(&mut self, call: Call, response: &UpdateVoterResponse, turn: &mut Turn) {
        let error = match response.error {
            // Leaders before 4.1 keep nothing in memory while kraft.version is 0.
            ErrorCode::None | ErrorCode::UnsupportedVersion => RaftError::None,
            code => RaftError::Partition(code),
        };
        if self.common(call, error, &response.hint, turn) {
            self.note_told();
            // It lives, and knows this node.
            let deadline = self.fetch_deadline(turn.now.instant);
            if let Role::Follower(role) = &mut self.role {
                role.heard(deadline);
            }
        } else if error != RaftError::None {
            tracing::warn!(code = ?response.error, "the leader does not take this voter's update");
        }
    }

    fn note_told(&mut self) {
        if let Role::Follower(role) = &mut self.role {
            role.joining.told = true;
        }
    }

    /// `done` is the code for what is as it should be already.
    fn join_answered(
        &mut self,
        call: Call,
        response: &ChangeVoterResponse,
        done: ErrorCode,
        turn: &mut Turn,
    ) {
        let now = turn.now.instant;
        let code = response.error;
        if code == ErrorCode::None || code == ErrorCode::RequestTimedOut || code == done {
            tracing::info!(?code, message = ?response.message, kind = ?call.kind, "joining");
            self.restart_period(now);
        } else {
            tracing::error!(
                ?code,
                message = ?response.message,
                kind = ?call.kind,
                "this node cannot make itself a voter"
            );
            self.rest(call.peer, now);
        }
    }
}

fn sorted(endpoints: &[Endpoint]) -> Vec<Endpoint> {
    let mut sorted: Vec<Endpoint> = endpoints
        .iter()
        .map(|(name, host, port)| (name.to_uppercase(), host.clone(), *port))
        .collect();
    sorted.sort_unstable();
    sorted
}
