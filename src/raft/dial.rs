//! What a node asks of others in its role, and what follows from their answers (KIP-595, KIP-853,
//! KIP-996).
//!
//! Nothing here remembers what is to be asked: after every step [`Raft::dial`] looks at the role
//! and asks whoever can be asked, so a lost answer, a failure or a change of the voters needs no
//! case of its own.

use crate::types::{CallId, Epoch, ErrorCode, Instant, NodeId};

use super::calls::{Call, Kind};
use super::haste::Doubt;
use super::input::{
    Ask, BeginQuorumEpochRequest, CallFault, EndQuorumEpochRequest, Request, Told, VoteRequest,
};
use super::machine::{Raft, Turn};
use super::output::{
    LeaderHint, Output, Peer, PeerName, RaftError, Response, VoteResponse, VoterNode,
};
use super::roles::{Endpoint, Role};
use super::transition::Move;

impl Raft {
    /// Asks what the role has to ask now. Called only while what this node is is on its disk.
    pub(super) fn dial(&mut self, turn: &mut Turn) {
        match &self.role {
            Role::Resigned(_) => self.hand_over(turn),
            _ if self.is_stopping() => {}
            Role::Unattached(_) => self.discover(turn),
            Role::Prospective(role) if role.ask_at.is_none() => self.canvass(Kind::PreVote, turn),
            Role::Prospective(_) => {}
            Role::Candidate(_) => self.canvass(Kind::Vote, turn),
            Role::Follower(_) => {
                self.update_voter_if_due(turn);
                self.follow(turn);
            }
            Role::Leader(_) => self.tell_voters(turn),
        }
    }

    /// Asks `peer`, which is free.
    pub(super) fn ask(&mut self, peer: Peer, kind: Kind, ask: Ask, turn: &mut Turn) {
        let call = Call {
            peer: peer.name,
            kind,
        };
        let deadline = turn.now.instant.plus_ms(self.config.request_timeout_ms);
        let id = self.calls.begin(call, deadline);
        turn.tell(Output::Send {
            call: id,
            to: peer,
            ask,
        });
    }

    /// The name of the listener on which peers are reached: the first one of the controller.
    pub(super) fn peer_listener(&self) -> &str {
        self.config
            .endpoints
            .first()
            .map_or("", |(name, _, _)| name)
    }

    /// Where a node with these endpoints is asked.
    pub(super) fn peer_at(&self, id: NodeId, endpoints: &[Endpoint]) -> Option<Peer> {
        let wanted = self.peer_listener();
        let (_, host, port) = endpoints.iter().find(|(name, _, _)| name == wanted)?;
        Some(Peer {
            name: PeerName::Node(id),
            host: host.clone(),
            port: *port,
        })
    }

    /// All other voters, with where they are asked.
    pub(super) fn other_voters(&self) -> Vec<(VoterNode, Peer)> {
        self.voters
            .others(self.config.node.id)
            .filter_map(|node| {
                let peer = self.peer_at(node.key.id, &node.endpoints)?;
                Some((node.clone(), peer))
            })
            .collect()
    }

    /// Asks for the votes that are still open.
    fn canvass(&mut self, kind: Kind, turn: &mut Turn) {
        let (last_epoch, last_offset) = self.log.position();
        for (node, peer) in self.other_voters() {
            let (granted, refused) = match &self.role {
                Role::Prospective(role) => (&role.granted, &role.refused),
                Role::Candidate(role) => (&role.granted, &role.refused),
                _ => return,
            };
            let id = node.key.id;
            let open = !granted.contains(&id) && !refused.contains(&id);
            if !open || !self.calls.is_free(peer.name, turn.now.instant) {
                continue;
            }
            let request = VoteRequest {
                cluster_id: Some(self.config.cluster_id.clone()),
                voter: Some(node.key),
                candidate: self.config.node,
                epoch: self.epoch,
                last_epoch,
                last_offset,
                pre_vote: kind == Kind::PreVote,
            };
            self.ask(peer, kind, Ask::Raft(Request::Vote(request)), turn);
        }
    }

    /// A leader makes itself known to voters that do not fetch.
    fn tell_voters(&mut self, turn: &mut Turn) {
        let now = turn.now.instant;
        let Role::Leader(leader) = &self.role else {
            return;
        };
        let due = leader.contact.to_tell(now);
        if due.is_empty() {
            return;
        }
        for (node, peer) in self.other_voters() {
            if !due.contains(&node.key.id) || !self.calls.is_free(peer.name, now) {
                continue;
            }
            let request = BeginQuorumEpochRequest {
                cluster_id: Some(self.config.cluster_id.clone()),
                voter: Some(node.key),
                leader_id: self.config.node.id,
                epoch: self.epoch,
                endpoints: self.config.endpoints.clone(),
            };
            let ask = Ask::Raft(Request::BeginQuorumEpoch(request));
            self.ask(peer, Kind::BeginQuorumEpoch, ask, turn);
        }
        let timeout = self.config.fetch_timeout_ms;
        if let Role::Leader(leader) = &mut self.role {
            for id in due {
                leader.contact.told(id, now, timeout);
            }
        }
    }

    /// A node that leads no more tells the others who should try first.
    fn hand_over(&mut self, turn: &mut Turn) {
        let Role::Resigned(role) = &self.role else {
            return;
        };
        let preferred = role.preferred.clone();
        let (told, gone) = (role.told.clone(), role.unreachable.clone());
        for (node, peer) in self.other_voters() {
            let free = self.calls.is_free(peer.name, turn.now.instant);
            if gone.contains(&node.key.id) || told.contains(&node.key.id) || !free {
                continue;
            }
            let request = EndQuorumEpochRequest {
                cluster_id: Some(self.config.cluster_id.clone()),
                leader_id: self.config.node.id,
                epoch: self.epoch,
                preferred: preferred.clone(),
            };
            let ask = Ask::Raft(Request::EndQuorumEpoch(request));
            self.ask(peer, Kind::EndQuorumEpoch, ask, turn);
        }
    }

    /// Another node answered, or will not.
    pub(super) fn answered(
        &mut self,
        call: CallId,
        outcome: Result<Told, CallFault>,
        turn: &mut Turn,
    ) {
        let id = call;
        let Some(call) = self.calls.end(id) else {
            return;
        };
        let fetches = matches!(call.kind, Kind::Fetch | Kind::FetchSnapshot(..));
        match outcome {
            Ok(told) => {
                self.calls.answered(call.peer);
                self.told(call, told, turn);
            }
            Err(fault) => {
                self.call_failed(call, fault, turn);
                if let (CallFault::Closed, true, PeerName::Node(peer)) = (fault, fetches, call.peer)
                {
                    self.leader_refused(peer, id, turn);
                }
            }
        }
    }

    fn told(&mut self, call: Call, told: Told, turn: &mut Turn) {
        match (call.kind, told) {
            (Kind::PreVote | Kind::Vote, Told::Response(Response::Vote(vote))) => {
                if self.common(call, vote.error, &vote.hint, turn) {
                    self.vote_answered(call, &vote, turn);
                }
            }
            (Kind::BeginQuorumEpoch, Told::Response(Response::BeginQuorumEpoch(begin))) => {
                self.common(call, begin.error, &begin.hint, turn);
            }
            (Kind::EndQuorumEpoch, Told::Response(Response::EndQuorumEpoch(end))) => {
                self.common(call, end.error, &end.hint, turn);
                if let (Role::Resigned(role), PeerName::Node(id)) = (&mut self.role, call.peer) {
                    role.told.push(id);
                }
            }
            (Kind::Fetch, Told::Response(Response::Fetch(response))) => {
                if self.is_leaders(call, response.error, &response.hint, turn) {
                    self.fetch_answered(call, response, Vec::new(), turn);
                }
            }
            (Kind::Fetch, Told::Fetch { response, batches }) => {
                if self.is_leaders(call, response.error, &response.hint, turn) {
                    self.fetch_answered(call, response, batches, turn);
                }
            }
            (
                Kind::FetchSnapshot(..),
                told @ (Told::Snapshot { .. } | Told::Response(Response::FetchSnapshot(_))),
            ) => {
                let response = match &told {
                    Told::Snapshot { response, .. }
                    | Told::Response(Response::FetchSnapshot(response)) => response,
                    Told::Response(_) | Told::Fetch { .. } | Told::Versions { .. } => return,
                };
                let (error, hint) = (response.error, response.hint.clone());
                if self.is_leaders(call, error, &hint, turn) {
                    self.fetch_snapshot_answered(call, told, turn);
                } else if super::download::is_hopeless(error) {
                    self.abandon_download(call, turn);
                }
            }
            (Kind::UpdateVoter | Kind::AddVoter | Kind::RemoveVoter | Kind::Versions, told) => {
                self.voter_change_answered(call, Ok(told), turn)
            }
            _ => self.call_failed(call, CallFault::Garbage, turn),
        }
    }

    /// What is the same for the data of a leader: it counts for a follower of exactly that leader.
    fn is_leaders(
        &mut self,
        call: Call,
        error: RaftError,
        hint: &LeaderHint,
        turn: &mut Turn,
    ) -> bool {
        let followed = match &self.role {
            Role::Follower(role) => Some(role.leader),
            _ => None,
        };
        if !self.common(call, error, hint, turn) {
            return false;
        }
        let Role::Follower(role) = &mut self.role else {
            self.rest(call.peer, turn.now.instant);
            return false;
        };
        let same = followed == Some(role.leader) && hint.leader == followed;
        match same {
            // What it gave before it said so may come behind it, on another connection.
            true if role.doubt == Doubt::Resigned => {}
            true => role.doubt = Doubt::None,
            // As if it led and knew of no leader.
            false => self.rest(call.peer, turn.now.instant),
        }
        same
    }

    /// What every answer says: who leads, in which epoch, and whether the answer is one. True if
    /// it is of this node's epoch and without an error, or with one that FetchSnapshot takes for
    /// an answer (SNAPSHOT_NOT_FOUND, POSITION_OUT_OF_RANGE).
    pub(super) fn common(
        &mut self,
        call: Call,
        error: RaftError,
        hint: &LeaderHint,
        turn: &mut Turn,
    ) -> bool {
        let now = turn.now.instant;
        let code = match error {
            RaftError::None => None,
            RaftError::Partition(code) => Some(code),
            RaftError::Top(code) => {
                self.rebuffs += 1;
                // It may go on for as long as both run.
                if self.rebuffs.is_power_of_two() {
                    let count = self.rebuffs;
                    let why = match code {
                        ErrorCode::InconsistentClusterId => {
                            "it is of another cluster, or this node is: correct its address in the \
                             configuration, or move the metadata directory of the wrong one away \
                             and format that node again"
                        }
                        ErrorCode::ClusterAuthorizationFailed => "it does not let this node in",
                        _ => "see its log",
                    };
                    tracing::warn!(
                        peer = ?call.peer,
                        ?code,
                        cluster = self.config.cluster_id,
                        count,
                        "a node refuses to answer: {why}"
                    );
                }
                self.rest(call.peer, now);
                return false;
            }
        };
        let before = (self.epoch, std::mem::discriminant(&self.role));
        self.adopt(hint, turn);
        if before != (self.epoch, std::mem::discriminant(&self.role)) {
            // News: whoever told them may be the one to ask next.
            return false;
        }
        if hint.epoch != self.epoch {
            self.rest(call.peer, now);
            return false;
        }
        match code {
            None => true,
            Some(ErrorCode::SnapshotNotFound | ErrorCode::PositionOutOfRange)
                if matches!(call.kind, Kind::FetchSnapshot(..)) =>
            {
                true
            }
            Some(code) => {
                tracing::debug!(peer = ?call.peer, ?code, kind = ?call.kind, "refused");
                self.rest(call.peer, now);
                false
            }
        }
    }

    /// Takes over what another node says about the leader, if it is news.
    fn adopt(&mut self, hint: &LeaderHint, turn: &mut Turn) {
        let newer = hint.epoch > self.epoch;
        // Whom this node asked itself may be far ahead of it, but not where no election follows.
        if hint.epoch < self.epoch || hint.epoch >= Epoch::END {
            return;
        }
        let own = self.config.node.id;
        let leader = hint.leader.filter(|id| *id != own && *id >= NodeId(0));
        match leader {
            Some(leader) => {
                let listener = self.peer_listener().to_owned();
                let endpoint = hint.endpoint.clone();
                let endpoints = endpoint.map(|(host, port)| (listener, host, port));
                let endpoints = endpoints.into_iter().collect();
                // A claim that contradicts what this node knows is counted there, and ignored.
                let _ = self.learn_leader(hint.epoch, leader, endpoints, turn);
            }
            None if newer => {
                let to = Move::Unattached {
                    epoch: hint.epoch,
                    leader: None,
                };
                self.transition(turn, to, "an answer tells of a newer epoch");
            }
            None => {}
        }
    }

    fn vote_answered(&mut self, call: Call, vote: &VoteResponse, turn: &mut Turn) {
        let PeerName::Node(id) = call.peer else {
            return;
        };
        let (granted, refused) = match (&mut self.role, call.kind) {
            (Role::Prospective(role), Kind::PreVote) => (&mut role.granted, &mut role.refused),
            (Role::Candidate(role), Kind::Vote) => (&mut role.granted, &mut role.refused),
            _ => return,
        };
        match vote.granted {
            true => granted.push(id),
            false => refused.push(id),
        }
        self.is_there(id);
        if let Role::Prospective(role) = &mut self.role
            && let Some(haste) = role.haste.as_mut().filter(|it| it.back.leader == id)
        {
            // A leader grants nothing: whoever does leads no more, perhaps because it is a new
            // process by now.
            match vote.granted {
                true => haste.refused = true,
                false => self.transition(turn, Move::Back { calm: true }, "the leader lives"),
            }
        }
    }

    /// Who is asked for votes and found nobody, or somebody again.
    fn gone(&mut self) -> Option<&mut Vec<NodeId>> {
        match &mut self.role {
            Role::Prospective(role) => Some(&mut role.gone),
            Role::Candidate(role) => Some(&mut role.gone),
            _ => None,
        }
    }

    fn is_there(&mut self, id: NodeId) {
        if let Some(gone) = self.gone() {
            gone.retain(|it| *it != id);
        }
    }

    /// There will be no answer.
    fn call_failed(&mut self, call: Call, fault: CallFault, turn: &mut Turn) {
        tracing::debug!(peer = ?call.peer, kind = ?call.kind, ?fault, "no answer");
        let pause_ms = self.calls.failed(call.peer, self.config.retry_backoff_ms);
        self.rest_for(call.peer, turn.now.instant, pause_ms);
        if let (Kind::PreVote | Kind::Vote, PeerName::Node(id), CallFault::Closed) =
            (call.kind, call.peer, fault)
        {
            self.is_there(id);
            if let Some(gone) = self.gone() {
                gone.push(id);
            }
        }
        match (call.kind, call.peer) {
            (Kind::PreVote, PeerName::Node(id)) => self.pre_vote_failed(id, fault, turn),
            (Kind::EndQuorumEpoch, PeerName::Node(id)) if fault != CallFault::Silent => {
                if let Role::Resigned(role) = &mut self.role {
                    role.unreachable.push(id);
                }
            }
            (Kind::UpdateVoter | Kind::AddVoter | Kind::RemoveVoter | Kind::Versions, _) => {
                self.voter_change_answered(call, Err(fault), turn);
            }
            _ => {}
        }
    }

    fn pre_vote_failed(&mut self, id: NodeId, fault: CallFault, turn: &mut Turn) {
        let unsupported = fault == CallFault::Unsupported;
        if unsupported {
            self.without_pre_vote.insert(id);
        }
        let Role::Prospective(role) = &mut self.role else {
            return;
        };
        match &mut role.haste {
            // Only the timers decide from now on.
            Some(_) if unsupported => {
                let to = Move::Back { calm: true };
                self.transition(turn, to, "a voter knows no pre-vote");
            }
            Some(haste) if haste.back.leader == id && fault == CallFault::Closed => {
                haste.refused = true;
                role.refused.push(id);
            }
            None if unsupported => {
                self.transition(turn, Move::Candidate, "a voter knows no pre-vote");
            }
            Some(_) | None => {}
        }
    }

    /// What another node can do.
    pub(super) fn peer_found(&mut self, peer: NodeId, pre_vote: bool) {
        if pre_vote {
            self.without_pre_vote.remove(&peer);
        } else if self.voters.ids().contains(&peer) {
            self.without_pre_vote.insert(peer);
        }
    }

    /// Gives up what was asked too long ago.
    pub(super) fn expire_calls(&mut self, turn: &mut Turn) {
        let now = turn.now.instant;
        for call in self.calls.take_expired(now) {
            turn.outputs.push(Output::Hangup(call.peer));
            self.call_failed(call, CallFault::Silent, turn);
        }
        self.calls.wake(now);
    }

    /// Leaves a node whose answer is of no use alone for a while.
    pub(super) fn rest(&mut self, peer: PeerName, now: Instant) {
        self.rest_for(peer, now, self.config.retry_backoff_ms);
    }

    fn rest_for(&mut self, peer: PeerName, now: Instant, ms: u64) {
        if self.calls.is_free(peer, now) {
            self.calls.rest(peer, now.plus_ms(ms));
        }
    }

    /// Whom this node wants to reach without a handshake: a voter all others, because any of them
    /// may have to vote for it at once.
    pub(super) fn wanted_peers(&self) -> Vec<Peer> {
        // A leader that removed itself has to hand over.
        let leads = matches!(self.role, Role::Leader(_) | Role::Resigned(_));
        if self.is_stopping() || !(leads || self.voters.find(self.config.node).is_some()) {
            return Vec::new();
        }
        self.other_voters()
            .into_iter()
            .map(|(_, peer)| peer)
            .collect()
    }
}
