//! The state machine: its one entry, its transitions, the leader's log.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::types::{Epoch, Instant, NodeId, Now, Offset, ReplicaKey, SplitMix, Ticket, Token};

use super::boot::{Boot, RaftConfig, Start};
use super::calls::Calls;
use super::check::Laws;
use super::election::busy;
use super::epochs::Epochs;
use super::input::{Input, Request};
use super::log::Log;
use super::output::{LeaderHint, Output, QuorumState, Response, Write};
use super::progress::Progress;
use super::roles::{
    Candidate, Endpoint, Follower, Leader, Prospective, Resigned, Role, Unattached,
};
use super::voters::Voters;
use super::waiters::Waiters;

/// Requests held at most while the election state is being written.
const DEFERRED_MAX: usize = 10_000;

/// The consensus core of one node. See [the contract](super).
#[derive(Debug)]
pub struct Raft {
    pub(super) config: RaftConfig,
    rng: SplitMix,
    pub(super) epoch: Epoch,
    pub(super) role: Role,
    pub(super) log: Log,
    pub(super) voters: Voters,
    /// Everything below is committed, exclusive; unknown until a leader of this process's time
    /// knew it. Invariant: never moves back.
    pub(super) commit: Option<Offset>,
    /// False if the disk lost committed records: see [`Boot::commit`].
    intact: bool,
    started: bool,
    stopping: bool,
    /// Claims of leadership that contradicted what this node knows.
    pub(super) forged: u64,
    next_token: u64,
    /// The election state on disk.
    pub(super) durable: Option<QuorumState>,
    /// The election state on its way to the disk. What could depend on it waits in `deferred`.
    pub(super) saving: Option<(Token, QuorumState)>,
    deferred: VecDeque<Input>,
    /// Appends on their way to the disk, each with the log's end after it.
    pub(super) appends: VecDeque<(Token, Offset)>,
    /// Moves of the log's start on their way to the disk.
    pub(super) moves: VecDeque<Token>,
    /// Questions to other nodes.
    pub(super) calls: Calls,
    laws: Laws,
}

/// One call of [`Raft::handle`]: the time, and what it has brought forth so far.
pub(super) struct Turn {
    pub(super) now: Now,
    /// What may be done at once.
    pub(super) outputs: Vec<Output>,
    /// What tells others: waits for the election state, if that changes in this turn.
    replies: Vec<Output>,
}

impl Turn {
    pub(super) fn reply(&mut self, ticket: Ticket, response: Response) {
        self.tell(Output::Reply { ticket, response });
    }

    /// Says something to others, after the election state that it may reflect is durable.
    pub(super) fn tell(&mut self, output: Output) {
        self.replies.push(output);
    }
}

/// A change of role.
pub(super) enum Move {
    Unattached {
        epoch: Epoch,
        leader: Option<NodeId>,
    },
    Prospective,
    Candidate,
    Follower {
        epoch: Epoch,
        leader: NodeId,
        endpoints: Vec<Endpoint>,
    },
    Leader {
        granted: Vec<NodeId>,
    },
    Resigned,
}

impl Raft {
    /// A node at its start. It acts from the first [`Self::handle`] on: `next_wakeup` is `now`.
    #[must_use]
    pub fn new(config: RaftConfig, boot: Boot, now: Instant) -> Self {
        let log = Log::new(
            boot.log_start,
            boot.log_end,
            Epochs::new(boot.epochs),
            boot.snapshots,
        );
        let voters = Voters::new(config.static_voters.clone(), boot.control);
        let intact = boot.commit.is_none_or(|commit| commit.offset <= log.end);
        if !intact {
            tracing::error!(
                log_end = log.end.0,
                "the log ends below what was committed: this node does not vote"
            );
        }
        let mut raft = Self {
            rng: SplitMix::new(config.seed),
            epoch: Epoch(0),
            role: Role::Resigned(Resigned {
                deadline: Instant::NEVER,
            }),
            config,
            log,
            voters,
            commit: None,
            intact,
            started: false,
            stopping: false,
            forged: 0,
            next_token: 0,
            durable: boot.quorum_state,
            saving: None,
            deferred: VecDeque::new(),
            appends: VecDeque::new(),
            moves: VecDeque::new(),
            calls: Calls::default(),
            laws: Laws::default(),
        };
        let election = raft.election_deadline(now);
        let start = Start {
            own: raft.config.node,
            log: &raft.log,
            voters: &raft.voters,
            election,
            fetch: raft.fetch_deadline(now),
        };
        let mut disk = raft.durable.clone().unwrap_or_default();
        disk.epoch = disk.epoch.max(Epoch(0));
        (raft.epoch, raft.role) = start.role(disk);
        raft
    }

    /// Takes one input. See [the contract](super) for the order in which outputs are executed.
    pub fn handle(&mut self, now: Now, input: Input, outputs: &mut Vec<Output>) {
        if !self.started {
            self.started = true;
            self.step(now, None, outputs);
        }
        self.step(now, Some(input), outputs);
        while self.saving.is_none()
            && let Some(input) = self.deferred.pop_front()
        {
            self.step(now, Some(input), outputs);
        }
        if cfg!(debug_assertions) {
            let facts = self.facts();
            self.laws.check(facts);
        }
    }

    /// When to call [`Self::handle`] with [`Input::WakeUp`] if nothing else happens before.
    #[must_use]
    pub fn next_wakeup(&self) -> Instant {
        if !self.started {
            return Instant(0);
        }
        // Until the election state is durable nothing may change it again: the completion of the
        // write looks at the timers.
        if self.saving.is_some() || self.stopping {
            return Instant::NEVER;
        }
        self.role.deadline()
    }

    fn step(&mut self, now: Now, input: Option<Input>, outputs: &mut Vec<Output>) {
        let mut turn = Turn {
            now,
            outputs: Vec::new(),
            replies: Vec::new(),
        };
        match input {
            None => self.start(&mut turn),
            Some(Input::Written(token)) => self.written(token, &mut turn),
            Some(Input::SnapshotWritten(id)) => self.snapshot_written(id),
            Some(Input::SnapshotLoaded(loaded)) => self.snapshot_loaded(loaded, &mut turn),
            Some(Input::Clean(id)) => self.clean(id, &mut turn),
            Some(Input::Propose(proposal)) => self.propose(proposal, &mut turn),
            Some(Input::PieceKept { id, end }) => self.piece_kept(id, end),
            Some(Input::SnapshotFailed(id)) => self.snapshot_failed(id),
            Some(Input::PeerFound { peer, pre_vote }) => self.peer_found(peer, pre_vote),
            Some(
                input @ (Input::Request { .. }
                | Input::Answered { .. }
                | Input::PeerLost { .. }
                | Input::UpgradeKraftVersion(_)
                | Input::Resign
                | Input::WakeUp
                | Input::Shutdown),
            ) if self.saving.is_some() => self.defer(input, &mut turn),
            Some(Input::Request {
                ticket,
                listener,
                request,
            }) => self.request(ticket, listener, request, &mut turn),
            Some(Input::Answered { call, outcome }) => self.answered(call, outcome, &mut turn),
            Some(Input::PeerLost { peer }) => self.peer_lost(peer, &mut turn),
            Some(Input::UpgradeKraftVersion(level)) => self.upgrade_kraft_version(level, &mut turn),
            Some(Input::Resign) => self.resign(&mut turn),
            Some(Input::WakeUp) => self.timers(&mut turn),
            Some(Input::Shutdown) => self.shutdown(&mut turn),
        }
        self.advance(&mut turn);
        self.settle(turn, outputs);
    }

    /// The only voter does not wait for its election timer: nobody else could win.
    fn start(&mut self, turn: &mut Turn) {
        let alone = self.eligible() && self.voters.is_only(self.config.node);
        if alone && !matches!(self.role, Role::Candidate(_)) {
            self.transition(turn, Move::Prospective, "the only voter starts");
        }
    }

    /// Waits for the election state. Requests beyond the bound are refused, which their senders
    /// take as a reason to come back later.
    fn defer(&mut self, input: Input, turn: &mut Turn) {
        match input {
            Input::Request {
                ticket, request, ..
            } if self.deferred.len() >= DEFERRED_MAX => {
                turn.outputs.push(Output::Reply {
                    ticket,
                    response: busy(&request),
                });
            }
            Input::WakeUp => {}
            input => self.deferred.push_back(input),
        }
    }

    fn request(&mut self, ticket: Ticket, listener: Arc<str>, request: Request, turn: &mut Turn) {
        match request {
            Request::Vote(vote) => {
                let response = self.vote(&listener, vote, turn);
                turn.reply(ticket, Response::Vote(response));
            }
            Request::BeginQuorumEpoch(begin) => {
                let response = self.begin_quorum_epoch(&listener, begin, turn);
                turn.reply(ticket, Response::BeginQuorumEpoch(response));
            }
            Request::EndQuorumEpoch(end) => {
                let response = self.end_quorum_epoch(&listener, end, turn);
                turn.reply(ticket, Response::EndQuorumEpoch(response));
            }
            Request::Fetch(fetch) => self.fetch(ticket, listener, fetch, turn),
            Request::FetchSnapshot(fetch) => self.fetch_snapshot(ticket, &listener, fetch, turn),
            Request::DescribeQuorum(_) => {
                let response = self.describe_quorum(&listener, turn);
                turn.reply(ticket, Response::DescribeQuorum(response));
            }
            Request::AddVoter(add) => self.add_voter(ticket, add, turn),
            Request::RemoveVoter(remove) => self.remove_voter(ticket, remove, turn),
            Request::UpdateVoter(update) => self.update_voter(ticket, &listener, update, turn),
        }
    }

    /// Takes the steps that wait for nothing but what the turn has brought.
    fn advance(&mut self, turn: &mut Turn) {
        if let Role::Prospective(role) = &self.role
            && self.voters.majority_in(&role.granted)
        {
            self.transition(turn, Move::Candidate, "a majority would vote for this node");
        }
        if self.saving.is_some() || self.durable != Some(self.election_state()) {
            return;
        }
        // From here on what this node is in the epoch is on its disk.
        match &self.role {
            Role::Candidate(role) if self.voters.majority_in(&role.granted) => {
                let granted = role.granted.clone();
                let to = Move::Leader { granted };
                self.transition(turn, to, "a majority voted for this node");
            }
            Role::Leader(role) if role.epoch_start.is_none() => self.begin_epoch(turn),
            Role::Unattached(_)
            | Role::Prospective(_)
            | Role::Candidate(_)
            | Role::Follower(_)
            | Role::Leader(_)
            | Role::Resigned(_) => {}
        }
    }

    /// Ends a turn: replies leave at once, or inside the write of the election state that they
    /// could give away.
    fn settle(&mut self, turn: Turn, outputs: &mut Vec<Output>) {
        outputs.extend(turn.outputs);
        if self.saving.is_some() {
            // Nothing in such a turn answers on the new state: requests are deferred.
            outputs.extend(turn.replies);
            return;
        }
        let state = self.election_state();
        if self.durable.as_ref() == Some(&state) {
            outputs.extend(turn.replies);
            return;
        }
        let token = self.token();
        self.saving = Some((token, state.clone()));
        outputs.push(Output::Write {
            token,
            write: Write::QuorumState(state),
            then: turn.replies,
        });
    }

    fn shutdown(&mut self, turn: &mut Turn) {
        self.stopping = true;
        if let Role::Leader(_) = &self.role {
            self.transition(turn, Move::Resigned, "shutdown");
        }
        // Behind the answers to the parked fetches.
        turn.tell(Output::MayStop);
    }

    /// The one place where roles change.
    pub(super) fn transition(&mut self, turn: &mut Turn, to: Move, why: &'static str) {
        let own = self.config.node.id;
        let (from, from_epoch) = (self.role.name(), self.epoch);
        let (epoch, next) = self.next_role(turn.now.instant, to);
        self.epoch = epoch;
        let before = std::mem::replace(&mut self.role, next);
        tracing::info!(
            node = own.0,
            from,
            to = self.role.name(),
            from_epoch = from_epoch.0,
            epoch = epoch.0,
            leader = self.role.leader(own).map(|id| id.0),
            why,
            "role"
        );
        if let Role::Leader(leader) = before {
            self.leave_leadership(*leader, turn);
        }
    }

    /// Where a move leads: its epoch, and the role with what it takes over from the one before.
    fn next_role(&mut self, now: Instant, to: Move) -> (Epoch, Role) {
        let own = self.config.node;
        match to {
            Move::Unattached { epoch, leader } => {
                let deadline = self.unattached_deadline(now);
                let voted = self.vote_in(epoch);
                let role = Unattached {
                    leader,
                    voted,
                    deadline,
                };
                (epoch, Role::Unattached(role))
            }
            Move::Prospective => {
                let role = Prospective {
                    leader: self.role.leader(own.id),
                    endpoints: self.role.leader_endpoints().to_vec(),
                    voted: self.role.voted(own),
                    granted: vec![own.id],
                    deadline: self.election_deadline(now),
                };
                (self.epoch, Role::Prospective(role))
            }
            Move::Candidate => {
                let role = Candidate {
                    granted: vec![own.id],
                    deadline: self.election_deadline(now),
                };
                (self.epoch.next(), Role::Candidate(role))
            }
            Move::Follower {
                epoch,
                leader,
                endpoints,
            } => {
                let role = Follower {
                    leader,
                    endpoints,
                    voted: self.vote_in(epoch),
                    deadline: self.fetch_deadline(now),
                };
                (epoch, Role::Follower(role))
            }
            Move::Leader { granted } => {
                let leader = Leader {
                    granted,
                    epoch_start: None,
                    announced: false,
                    progress: Progress::default(),
                    waiters: Waiters::default(),
                };
                (self.epoch, Role::Leader(Box::new(leader)))
            }
            Move::Resigned => {
                let deadline = Instant::NEVER;
                (self.epoch, Role::Resigned(Resigned { deadline }))
            }
        }
    }

    /// A running election timer is kept. One that ran out in an election that could not be won is
    /// wound up anew, else the next try would follow at once.
    fn unattached_deadline(&mut self, now: Instant) -> Instant {
        match (self.role.election_deadline(), &self.role) {
            (Some(deadline), Role::Resigned(_)) => deadline,
            (Some(deadline), _) if deadline > now => deadline,
            (Some(_) | None, _) => self.election_deadline(now),
        }
    }

    /// The vote given in `epoch`: none yet in a new one.
    fn vote_in(&self, epoch: Epoch) -> Option<ReplicaKey> {
        if epoch == self.epoch {
            self.role.voted(self.config.node)
        } else {
            None
        }
    }

    /// Whether this node may lead: observers do not try, nor does who lost committed records or is
    /// about to stop, nor who would find no next epoch.
    fn eligible(&self) -> bool {
        self.intact
            && !self.stopping
            && self.epoch < self.epoch.next()
            && self.voters.find(self.config.node).is_some()
    }

    /// Whether this node's vote can be trusted.
    pub(super) fn intact(&self) -> bool {
        self.intact
    }

    /// A random time between the election timeout and its double from `now` (KIP-595).
    pub(super) fn election_deadline(&mut self, now: Instant) -> Instant {
        let jitter = self.rng.below(self.config.election_timeout_ms);
        if self.eligible() {
            now.plus_ms(self.config.election_timeout_ms + jitter)
        } else {
            Instant::NEVER
        }
    }

    fn fetch_deadline(&self, now: Instant) -> Instant {
        if self.eligible() {
            now.plus_ms(self.config.fetch_timeout_ms)
        } else {
            Instant::NEVER
        }
    }

    pub(super) fn token(&mut self) -> Token {
        self.next_token += 1;
        Token(self.next_token)
    }

    /// What `quorum-state` has to say now. Format 0 knows no directory.
    fn election_state(&self) -> QuorumState {
        let kraft_version = self.voters.kraft_version();
        let own = self.config.node;
        let mut voted = self.role.voted(own);
        if kraft_version == 0
            && let Some(key) = &mut voted
        {
            key.directory = super::input::UNKNOWN_DIRECTORY;
        }
        QuorumState {
            epoch: self.epoch,
            leader: self.role.leader(own.id),
            voted,
            voters: match kraft_version {
                0 => self.voters.ids(),
                _ => Vec::new(),
            },
            kraft_version,
        }
    }

    /// Who leads, for a peer that asked on `listener`.
    pub(super) fn hint(&self, listener: &str) -> LeaderHint {
        let own = self.config.node.id;
        let leader = self.role.leader(own);
        let endpoints = match leader {
            Some(id) if id == own => &self.config.endpoints[..],
            Some(id) => match self.role.leader_endpoints() {
                [] => self.voters.endpoints(id),
                told => told,
            },
            None => &[],
        };
        LeaderHint {
            leader,
            epoch: self.epoch,
            endpoint: endpoints
                .iter()
                .find(|(name, _, _)| name == listener)
                .map(|(_, host, port)| (host.clone(), *port)),
        }
    }
}
