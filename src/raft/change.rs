//! Changing the voters as their leader: one at a time (KIP-853).
//!
//! A new set counts from the moment its record is in the leader's log, so two of them must not be
//! on their way at once: majorities of the first and of the third need not overlap. The gates here
//! see to that. Codes, sentences and the order of the checks are those that clients know.

use std::collections::BTreeMap;

use crate::types::ids::base64url;
use crate::types::{ErrorCode, Instant, NodeId, Offset, ReplicaKey, Ticket};

use super::calls::{Call, Kind};
use super::fetch::NOT_LEADER;
use super::input::{AddVoterRequest, Ask, CallFault, RemoveVoterRequest, Told};
use super::machine::{Raft, Turn};
use super::output::{ChangeVoterResponse, ControlRecord, PeerName, RaftError, Response, VoterNode};
use super::roles::{Endpoint, Role};
use super::transition::Move;
use super::update;

/// More listeners than any node has.
const ENDPOINTS_MAX: usize = 64;
/// No host name is longer (RFC 1035), and no listener's name.
const TEXT_BYTES_MAX: usize = 255;

/// A change of the voters that a leader has under way.
#[derive(Clone, Debug, Default)]
pub(super) struct Change {
    pending: Option<Pending>,
    /// What the voters told of themselves while kraft.version is 0, when no record can hold it.
    pub(super) told: BTreeMap<NodeId, VoterNode>,
    /// Where each voter that told another place was before.
    pub(super) left: BTreeMap<NodeId, Vec<Endpoint>>,
}

/// One AddRaftVoter or RemoveRaftVoter.
#[derive(Clone, Debug)]
struct Pending {
    /// Who waits for the answer; `None` once it was given.
    ticket: Option<Ticket>,
    verb: Verb,
    /// When it is given up; the record stays in the log if it is there.
    deadline: Instant,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verb {
    Add,
    Remove,
}

#[derive(Clone, Debug)]
enum Stage {
    /// The new voter was asked what it supports.
    Asking {
        voter: ReplicaKey,
        endpoints: Vec<Endpoint>,
        /// Whether the answer waits for the commit.
        ack_when_committed: bool,
    },
    /// The record is in the log, at this offset.
    Appended(Offset),
}

impl Verb {
    fn answer(self, error: ErrorCode, message: Option<String>) -> Response {
        let response = ChangeVoterResponse { error, message };
        match self {
            Self::Add => Response::AddVoter(response),
            Self::Remove => Response::RemoveVoter(response),
        }
    }

    /// As sentences about it begin.
    const fn capital(self) -> &'static str {
        match self {
            Self::Add => "Add",
            Self::Remove => "Remove",
        }
    }

    const fn ing(self) -> &'static str {
        match self {
            Self::Add => "adding",
            Self::Remove => "removing",
        }
    }
}

/// A refusal: its code and sentence.
type Refusal = (ErrorCode, Option<String>);

fn timed_out(text: impl Into<String>) -> Refusal {
    (ErrorCode::RequestTimedOut, Some(text.into()))
}

fn invalid(text: impl Into<String>) -> Refusal {
    (ErrorCode::InvalidRequest, Some(text.into()))
}

impl Change {
    /// When something here changes by time alone.
    pub(super) fn deadline(&self) -> Instant {
        self.pending
            .as_ref()
            .map_or(Instant::NEVER, |pending| pending.deadline)
    }

    /// Whether a change is under way. One whose time is over is not.
    pub(super) fn is_pending(&self, now: Instant) -> bool {
        self.deadline() > now && self.pending.is_some()
    }
}

impl Raft {
    /// AddRaftVoter.
    pub(super) fn add_voter(&mut self, ticket: Ticket, add: AddVoterRequest, turn: &mut Turn) {
        self.change_timers(turn);
        if let Err((error, message)) = self.ask_new_voter(ticket, add, turn) {
            turn.reply(ticket, Verb::Add.answer(error, message));
        }
    }

    /// Asks the new voter what it supports; its answer goes on in [`Self::versions_answered`].
    fn ask_new_voter(
        &mut self,
        ticket: Ticket,
        add: AddVoterRequest,
        turn: &mut Turn,
    ) -> Result<(), Refusal> {
        self.check_change(add.cluster_id.as_deref(), add.voter, Verb::Add)?;
        let voter = add.voter;
        let endpoints = normalised(add.endpoints);
        let Some(peer) = self.peer_at(voter.id, &endpoints) else {
            let wanted = self.peer_listener();
            return Err(invalid(format!(
                "Add voter request didn't include the endpoint ({}) for the default listener \
                 ListenerName({wanted})",
                endpoints_text(&endpoints),
            )));
        };
        if !is_bearable(&endpoints) {
            let text =
                "Add voter request includes more endpoints than a voter has, or longer hosts";
            return Err(invalid(text));
        }
        self.check_quiet(turn.now.instant, Verb::Add)?;
        if self.voters.ids().contains(&voter.id) {
            let text = format!(
                "The voter id for {} is already part of the set of voters {}.",
                key_text(voter),
                keys_text(self.voters.nodes())
            );
            return Err((ErrorCode::DuplicateVoter, Some(text)));
        }
        let now = turn.now.instant;
        if !self.calls.is_free(peer.name, now) {
            return Err(timed_out(format!(
                "New voter {} is not ready to receive requests",
                key_text(voter)
            )));
        }
        self.ask(peer, Kind::Versions, Ask::Versions, turn);
        let pending = Pending {
            ticket: Some(ticket),
            verb: Verb::Add,
            deadline: now.plus_ms(self.config.request_timeout_ms),
            stage: Stage::Asking {
                voter,
                endpoints,
                ack_when_committed: add.ack_when_committed,
            },
        };
        if let Role::Leader(leader) = &mut self.role {
            leader.change.pending = Some(pending);
        }
        Ok(())
    }

    /// The new voter said what it supports, or did not.
    pub(super) fn versions_answered(
        &mut self,
        call: Call,
        outcome: Result<Told, CallFault>,
        turn: &mut Turn,
    ) {
        let Role::Leader(leader) = &mut self.role else {
            return;
        };
        let Some(Pending {
            stage: Stage::Asking { voter, .. },
            ..
        }) = &leader.change.pending
        else {
            return;
        };
        let voter = *voter;
        if call.peer != PeerName::Node(voter.id) {
            return;
        }
        let kraft_versions = match outcome {
            Ok(Told::Versions { kraft_versions }) => kraft_versions,
            // The end of the time that the whole change has says it.
            Err(CallFault::Silent) => return,
            Err(CallFault::Closed) => {
                return self.abort_add(unreachable_voter("BROKER_NOT_AVAILABLE"), turn);
            }
            Err(CallFault::Unsupported) => {
                return self.abort_add(unreachable_voter("UNSUPPORTED_VERSION"), turn);
            }
            Ok(_) | Err(CallFault::Garbage) => {
                return self.abort_add(unreachable_voter("NETWORK_EXCEPTION"), turn);
            }
        };
        if let Err(refusal) = self.append_new_voter(voter, kraft_versions, turn) {
            self.abort_add(refusal, turn);
        }
    }

    fn abort_add(&mut self, (error, message): Refusal, turn: &mut Turn) {
        tracing::info!(?error, message, "a voter is not added");
        self.end_change(error, message, turn);
    }

    /// Appends the set with the new voter in it, if that supports it and has the log.
    fn append_new_voter(
        &mut self,
        voter: ReplicaKey,
        kraft_versions: Option<(u16, u16)>,
        turn: &mut Turn,
    ) -> Result<(), Refusal> {
        let level = self.voters.kraft_version();
        let supported = kraft_versions.filter(|(min, max)| (*min..=*max).contains(&level));
        let Some(supported) = supported else {
            let range = match kraft_versions {
                // Without the bracket at its end, as clients know it.
                Some((min, max)) => format!("(min: {min}, max: {max}"),
                None => "(min: 0, max: 0)".to_owned(),
            };
            return Err(invalid(format!(
                "Aborted add voter operation for {} since the kraft.version range {range} doesn't \
                 support the finalized version {level}",
                key_text(voter)
            )));
        };
        let now = turn.now;
        let Role::Leader(leader) = &mut self.role else {
            return Err((ErrorCode::NotLeaderOrFollower, None));
        };
        if !leader.progress.is_caught_up(voter, now.instant) {
            return Err(timed_out(format!(
                "Aborted add voter operation for {} since it is lagging behind",
                key_text(voter)
            )));
        }
        let Some(pending) = leader.change.pending.as_mut() else {
            return Ok(());
        };
        let Stage::Asking {
            endpoints,
            ack_when_committed,
            ..
        } = &mut pending.stage
        else {
            return Ok(());
        };
        let node = VoterNode {
            key: voter,
            endpoints: std::mem::take(endpoints),
            kraft_versions: supported,
        };
        let answer_now = !*ack_when_committed;
        pending.stage = Stage::Appended(self.log.end);
        let told = match answer_now {
            true => pending.ticket.take(),
            false => None,
        };
        let mut nodes = self.voters.nodes().to_vec();
        nodes.push(node);
        self.append_voters(nodes, turn);
        if let Some(ticket) = told {
            turn.reply(ticket, Verb::Add.answer(ErrorCode::None, None));
        }
        Ok(())
    }

    /// RemoveRaftVoter. A leader that removes itself leads on without counting itself until the
    /// new set is committed.
    pub(super) fn remove_voter(
        &mut self,
        ticket: Ticket,
        remove: RemoveVoterRequest,
        turn: &mut Turn,
    ) {
        self.change_timers(turn);
        match self.check_removal(&remove, turn.now.instant) {
            Ok(nodes) => {
                let pending = Pending {
                    ticket: Some(ticket),
                    verb: Verb::Remove,
                    deadline: turn.now.instant.plus_ms(self.config.request_timeout_ms),
                    stage: Stage::Appended(self.log.end),
                };
                if let Role::Leader(leader) = &mut self.role {
                    leader.change.pending = Some(pending);
                }
                self.append_voters(nodes, turn);
            }
            Err((error, message)) => turn.reply(ticket, Verb::Remove.answer(error, message)),
        }
    }

    /// The voters that are left.
    fn check_removal(
        &self,
        remove: &RemoveVoterRequest,
        now: Instant,
    ) -> Result<Vec<VoterNode>, Refusal> {
        self.check_change(remove.cluster_id.as_deref(), remove.voter, Verb::Remove)?;
        self.check_quiet(now, Verb::Remove)?;
        let mut nodes = self.voters.nodes().to_vec();
        let before = nodes.len();
        nodes.retain(|node| node.key != remove.voter);
        if nodes.len() == before || nodes.is_empty() {
            let text = format!(
                "Cannot remove voter {} from the set of voters {}",
                key_text(remove.voter),
                keys_text(self.voters.nodes())
            );
            return Err((ErrorCode::VoterNotFound, Some(text)));
        }
        Ok(nodes)
    }

    /// What is asked of any change: the right cluster, the leader, a voter that can be named.
    fn check_change(
        &self,
        cluster_id: Option<&str>,
        voter: ReplicaKey,
        verb: Verb,
    ) -> Result<(), Refusal> {
        if let Some(id) = cluster_id
            && id != self.config.cluster_id
        {
            let text = format!(
                "The given id \"{id}\" doesn't match the cluster id \"{}\"",
                self.config.cluster_id
            );
            return Err((ErrorCode::InconsistentClusterId, Some(text)));
        }
        match self.check_leads(self.epoch.0) {
            Ok(()) => {}
            Err(RaftError::Top(code) | RaftError::Partition(code)) => return Err((code, None)),
            Err(RaftError::None) => {}
        }
        if voter.id < NodeId(0) || voter.directory.is_nil() {
            return Err(invalid(format!(
                "{} voter request didn't include a valid voter",
                verb.capital()
            )));
        }
        Ok(())
    }

    /// Whether the voters are at rest: no change is under way, and the last one is committed by
    /// this leader.
    fn check_quiet(&self, now: Instant, verb: Verb) -> Result<(), Refusal> {
        let Role::Leader(leader) = &self.role else {
            return Err((ErrorCode::NotLeaderOrFollower, None));
        };
        if leader.change.is_pending(now) {
            return Err(timed_out(
                "Request timed out waiting for leader to handle previous voter change request",
            ));
        }
        let Some(commit) = self.commit_of_epoch() else {
            return Err(timed_out(
                "Request timed out waiting for leader to establish HWM and fence previous voter \
                 changes",
            ));
        };
        let level = self.voters.kraft_version();
        if level == 0 {
            let text = format!(
                "Cluster doesn't support {} voter because the kraft.version feature is {level}",
                verb.ing()
            );
            return Err((ErrorCode::UnsupportedVersion, Some(text)));
        }
        match self.voters.changed_at() {
            Some(offset) if offset < commit => Ok(()),
            changed => {
                let at = match changed {
                    Some(offset) => format!("Optional[{offset}]"),
                    None => "Optional.empty".to_owned(),
                };
                Err(timed_out(format!(
                    "Request timed out waiting for voters to commit the latest voter change at \
                     {at} with HWM {commit}"
                )))
            }
        }
    }

    /// What this leader has committed in its own epoch, exclusive: all that earlier ones left is
    /// below it.
    pub(super) fn commit_of_epoch(&self) -> Option<Offset> {
        match &self.role {
            Role::Leader(leader) if leader.announced => self.commit,
            _ => None,
        }
    }

    /// A new voter set, counting from now on.
    pub(super) fn append_voters(&mut self, mut nodes: Vec<VoterNode>, turn: &mut Turn) {
        nodes.sort_by_key(|node| node.key.id);
        let moved = update::moved_text(self.voters.nodes(), &nodes);
        tracing::info!(
            voters = keys_text(&nodes),
            moved,
            offset = self.log.end.0,
            "the voters change"
        );
        self.append_control(vec![ControlRecord::Voters(nodes)], turn);
        self.answer_waiters(turn);
        // The smaller set may agree on more.
        self.advance_commit(turn);
    }

    /// Takes the voter set for what it is now, if it is another one: who counts, whose timers run.
    /// Every step looks here, so whoever appends, cuts or loads need not think of it.
    pub(super) fn look_at_voters(&mut self, turn: &mut Turn) {
        if self.voters.take_changed() {
            self.membership_changed(turn);
        }
    }

    /// This node may or may not count and try to lead from now on.
    pub(super) fn membership_changed(&mut self, turn: &mut Turn) {
        let own = self.config.node;
        let now = turn.now.instant;
        let eligible = self.eligible();
        let fetch = self.fetch_deadline(now);
        self.quorum_changed = true;
        match &mut self.role {
            Role::Leader(leader) => {
                leader.progress.regroup(self.voters.nodes(), own);
                let others = self.voters.others(own.id).map(|node| node.key.id);
                let counts = self.voters.find(own).is_some();
                let patience = self.config.fetch_timeout_ms;
                leader.contact.set_voters(others, counts, now, patience);
            }
            Role::Follower(role) if !eligible => role.deadline = Instant::NEVER,
            Role::Follower(role) if role.deadline == Instant::NEVER => role.deadline = fetch,
            Role::Unattached(role) if !eligible => role.deadline = Instant::NEVER,
            Role::Unattached(role) if role.deadline == Instant::NEVER => {
                let deadline = self.election_deadline(now);
                if let Role::Unattached(role) = &mut self.role {
                    role.deadline = deadline;
                }
            }
            Role::Prospective(_) | Role::Candidate(_) if !eligible => {
                let to = Move::Unattached {
                    epoch: self.epoch,
                    leader: self.role.leader(own.id),
                };
                self.transition(turn, to, "it is no voter any more");
            }
            Role::Follower(_)
            | Role::Unattached(_)
            | Role::Prospective(_)
            | Role::Candidate(_)
            | Role::Resigned(_) => {}
        }
    }

    /// More is committed: perhaps the change that somebody waits for. A leader that is in the
    /// committed set no longer lets go.
    pub(super) fn change_committed(&mut self, turn: &mut Turn) {
        let (Role::Leader(leader), Some(commit)) = (&self.role, self.commit) else {
            return;
        };
        if let Some(Pending {
            stage: Stage::Appended(offset),
            ..
        }) = &leader.change.pending
            && *offset < commit
        {
            self.end_change(ErrorCode::None, None, turn);
        }
        let settled = self.voters.changed_at().is_some_and(|at| at < commit);
        if settled && self.voters.find(self.config.node).is_none() {
            tracing::info!("the leader is not in the committed set of voters");
            self.resign(turn);
        }
    }

    /// What time alone brings to a leader's change of the voters.
    pub(super) fn change_timers(&mut self, turn: &mut Turn) {
        if let Role::Leader(leader) = &self.role
            && leader.change.deadline() <= turn.now.instant
        {
            let text = "The request timed out.".to_owned();
            self.end_change(ErrorCode::RequestTimedOut, Some(text), turn);
        }
    }

    fn end_change(&mut self, error: ErrorCode, message: Option<String>, turn: &mut Turn) {
        if let Role::Leader(leader) = &mut self.role
            && let Some(pending) = leader.change.pending.take()
            && let Some(ticket) = pending.ticket
        {
            turn.reply(ticket, pending.verb.answer(error, message));
        }
    }

    /// Nobody will tell whoever waits for a change that this node led.
    pub(super) fn abandon_change(change: Change, turn: &mut Turn) {
        if let Some(pending) = change.pending
            && let Some(ticket) = pending.ticket
        {
            let (error, text) = (ErrorCode::NotLeaderOrFollower, NOT_LEADER.to_owned());
            turn.reply(ticket, pending.verb.answer(error, Some(text)));
        }
    }
}

fn unreachable_voter(error: &str) -> Refusal {
    timed_out(format!(
        "Aborted add voter operation for since API_VERSIONS returned an error {error}"
    ))
}

/// Listener names in capitals, each once: the last one told counts.
pub(super) fn normalised(endpoints: Vec<Endpoint>) -> Vec<Endpoint> {
    let mut kept: Vec<Endpoint> = Vec::new();
    for (name, host, port) in endpoints {
        let name = name.to_uppercase();
        match kept.iter_mut().find(|(known, _, _)| *known == name) {
            Some(known) => *known = (name, host, port),
            None => kept.push((name, host, port)),
        }
    }
    kept
}

/// Whether a record may hold these: the set of all voters is one batch, and every replica has to
/// take it.
pub(super) fn is_bearable(endpoints: &[Endpoint]) -> bool {
    let short = |text: &str| text.len() <= TEXT_BYTES_MAX;
    let fits = |(name, host, _): &Endpoint| short(name) && short(host);
    endpoints.len() <= ENDPOINTS_MAX && endpoints.iter().all(fits)
}

/// A replica as sentences for clients name it.
fn key_text(key: ReplicaKey) -> String {
    let directory = match key.directory.is_nil() {
        true => "<undefined>".to_owned(),
        false => base64url(key.directory),
    };
    format!("ReplicaKey(id={}, directoryId={directory})", key.id)
}

pub(super) fn keys_text(nodes: &[VoterNode]) -> String {
    let keys: Vec<String> = nodes.iter().map(|node| key_text(node.key)).collect();
    format!("[{}]", keys.join(", "))
}

fn endpoints_text(endpoints: &[Endpoint]) -> String {
    let each: Vec<String> = endpoints
        .iter()
        .map(|(name, host, port)| format!("ListenerName({name})={host}/<unresolved>:{port}"))
        .collect();
    format!("Endpoints(endpoints={{{}}})", each.join(", "))
}
