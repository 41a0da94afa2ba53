//! The state machine: its one entry, its transitions, the leader's log.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use crate::types::{Epoch, Instant, NodeId, Now, Offset, SplitMix, Ticket, Token};

use super::boot::{Boot, RaftConfig, Start};
use super::calls::Calls;
use super::check::Laws;
use super::election::busy;
use super::epochs::Epochs;
use super::follower::Fetching;
use super::input::{Input, Request};
use super::log::Log;
use super::output::{LeaderHint, Output, Peer, QuorumState, Response, Write};
use super::resign::Stop;
use super::roles::{Role, Unattached};
use super::transition::Move;
use super::voters::Voters;

/// Requests held at most while the election state is being written.
const DEFERRED_MAX: usize = 10_000;

/// The consensus core of one node. See [the contract](super).
#[derive(Debug)]
pub struct Raft {
    pub(super) config: RaftConfig,
    pub(super) rng: SplitMix,
    pub(super) epoch: Epoch,
    pub(super) role: Role,
    pub(super) log: Log,
    pub(super) voters: Voters,
    /// Everything below is committed, exclusive; unknown until a leader of this process's time
    /// knew it. Invariant: never moves back.
    pub(super) commit: Option<Offset>,
    /// False if the disk lost committed records: see [`Boot::commit`].
    pub(super) intact: bool,
    /// What the disk knew to be committed at the start, exclusive.
    pub(super) marked: Option<Offset>,
    started: bool,
    /// Claims of leadership that contradicted what this node knows.
    pub(super) forged: u64,
    /// Answers that were none because of what this node is, or that one.
    pub(super) rebuffs: u64,
    next_token: u64,
    /// The election state on disk.
    pub(super) durable: Option<QuorumState>,
    /// The election state on its way to the disk. What could depend on it waits in `deferred`.
    pub(super) saving: Option<(Token, QuorumState)>,
    deferred: VecDeque<Input>,
    /// Appends on their way to the disk, each with the log's end after it.
    pub(super) appends: VecDeque<(Token, Offset)>,
    /// Moves of the log's start, and cuts, on their way to the disk.
    pub(super) moves: VecDeque<Token>,
    /// What is under way to become like a leader.
    pub(super) fetching: Fetching,
    /// Questions to other nodes.
    pub(super) calls: Calls,
    /// Voters that are known not to know the pre-vote.
    pub(super) without_pre_vote: BTreeSet<NodeId>,
    /// Elections lost in a row.
    pub(super) lost_elections: u32,
    /// The epoch in which this node found no majority that would elect it, since it last was
    /// anything else than in search of one.
    pub(super) in_vain: Option<Epoch>,
    /// The last change of the role was like others before it.
    pub(super) told_before: bool,
    /// The driver is to be told that role, leader or voters changed.
    pub(super) quorum_changed: bool,
    /// Whom the driver keeps connections to.
    kept_open: Vec<Peer>,
    pub(super) stop: Option<Stop>,
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
                "the log ends below what was committed: this node does not vote until its \
                 leader has filled it again; where no node leads, put the metadata directory back \
                 from a good copy"
            );
        }
        let mut raft = Self {
            rng: SplitMix::new(config.seed),
            epoch: Epoch(0),
            role: Role::Unattached(Unattached {
                leader: None,
                voted: None,
                deadline: Instant::NEVER,
            }),
            config,
            log,
            voters,
            commit: None,
            intact,
            marked: boot.commit.map(|commit| commit.offset),
            started: false,
            forged: 0,
            rebuffs: 0,
            next_token: 0,
            durable: boot.quorum_state,
            saving: None,
            deferred: VecDeque::new(),
            appends: VecDeque::new(),
            moves: VecDeque::new(),
            fetching: Fetching::default(),
            calls: Calls::default(),
            without_pre_vote: BTreeSet::new(),
            lost_elections: 0,
            in_vain: None,
            told_before: false,
            quorum_changed: true,
            kept_open: Vec::new(),
            stop: None,
            laws: Laws::default(),
        };
        let mut disk = raft.durable.clone().unwrap_or_default();
        disk.epoch = disk.epoch.max(Epoch(0));
        // Whether it may lead depends on where it begins, and the role on whether it may lead.
        raft.epoch = disk.epoch.max(raft.log.last_epoch());
        let election = raft.election_deadline(now);
        let start = Start {
            resigned: raft.resigned_deadline(election, now),
            own: raft.config.node,
            eligible: raft.eligible(),
            log: &raft.log,
            voters: &raft.voters,
            election,
            fetch: raft.fetch_deadline(now),
        };
        (raft.epoch, raft.role) = start.role(disk);
        raft
    }

    /// Takes one input. See [the contract](super) for the order in which outputs are executed.
    pub fn handle(&mut self, now: Now, input: Input, outputs: &mut Vec<Output>) {
        if !self.started {
            self.started = true;
            self.step(now, None, outputs);
        }
        let was_saving = self.saving.is_some();
        self.step(now, Some(input), outputs);
        while self.saving.is_none()
            && let Some(input) = self.deferred.pop_front()
        {
            self.step(now, Some(input), outputs);
        }
        // Behind what waited: a timer that has run out again may begin the next write, and with
        // one write after the other nothing else would ever be heard, a stop neither.
        if was_saving && self.saving.is_none() {
            self.step(now, Some(Input::WakeUp), outputs);
        }
        self.tell_driver(outputs);
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
        // Until the election state is durable nothing may change it again: when the write is done,
        // `handle` looks at the timers.
        if self.saving.is_some() {
            return Instant::NEVER;
        }
        let stop = self.stop.as_ref().map_or(Instant::NEVER, |stop| stop.at);
        let questions = self.calls.deadline().min(self.fetching.deadline());
        self.role.deadline().min(questions).min(stop)
    }

    /// Tells the driver what is new about the quorum.
    fn tell_driver(&mut self, outputs: &mut Vec<Output>) {
        if !std::mem::take(&mut self.quorum_changed) {
            return;
        }
        outputs.push(Output::QuorumChanged);
        let wanted = self.wanted_peers();
        if wanted != self.kept_open {
            self.kept_open.clone_from(&wanted);
            outputs.push(Output::KeepOpen(wanted));
        }
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
            Some(Input::SnapshotFailed(id)) => self.snapshot_failed(id, &turn),
            Some(Input::SnapshotWithoutRoom(id)) => self.snapshot_without_room(id, &turn),
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
            Some(Input::Resign) => self.resign_to_nobody(&mut turn),
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
            let to = Move::Prospective { wait_ms: 0 };
            self.transition(turn, to, "the only voter starts");
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
            // What waits may bring a write each; a process that is to end waits for one only.
            Input::Shutdown => self.deferred.push_front(input),
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
        self.look_at_voters(turn);
        self.count_pre_votes(turn);
        if self.saving.is_none() && self.is_durable() {
            // From here on what this node is in the epoch is on its disk.
            self.count_votes(turn);
            if let Role::Leader(role) = &self.role
                && role.epoch_start.is_none()
                && self.is_durable()
            {
                self.begin_epoch(turn);
            }
            if self.is_durable() {
                self.dial(turn);
            }
        }
        self.stop_if_free(turn);
    }

    /// Whether the election state on disk is the present one.
    fn is_durable(&self) -> bool {
        self.durable.as_ref() == Some(&self.election_state())
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

    /// Whether this node may lead: observers do not try, nor does who lost committed records or is
    /// about to stop, nor who would find no next epoch.
    pub(super) fn eligible(&self) -> bool {
        self.intact
            && !self.is_stopping()
            && self.epoch.has_next()
            && (self.voters.find(self.config.node).is_some() || self.is_still_needed())
    }

    /// Whether this node was a voter before the newest set, which may not be committed yet. It may
    /// be the only one that has it: if it did not try to lead, nobody could, for the others still
    /// need its vote, and it refuses theirs. (Java's controllers are stuck then.)
    fn is_still_needed(&self) -> bool {
        let snapshot = self.log.newest_snapshot().map(|id| id.offset);
        let known = self.commit.max(self.marked).max(snapshot);
        self.voters
            .changed_at()
            .filter(|at| Some(*at) >= known)
            .is_some_and(|at| self.voters.find_at(at, self.config.node).is_some())
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

    pub(super) fn fetch_deadline(&self, now: Instant) -> Instant {
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
