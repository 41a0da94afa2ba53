//! What a leader learns of its voters, and what that allows: UpdateRaftVoter, and the step from
//! voters in the configuration to voters in the log (KIP-853).
//!
//! While kraft.version is 0 no record can hold where a voter is and what it supports: the leader
//! keeps it in memory, and voters tell it to each new leader. Once all have, kraft.version 1 can be
//! finalized: one batch brings the version and the first set.

use crate::types::{ErrorCode, NodeId, Ticket};

use super::change::{is_bearable, keys_text, normalised};
use super::input::UpdateVoterRequest;
use super::machine::{Raft, Turn};
use super::output::{ControlRecord, RaftError, Response, UpdateVoterResponse, VoterNode};
use super::roles::Role;

impl Raft {
    /// UpdateRaftVoter: answered as soon as what it says is in the log, or in memory.
    pub(super) fn update_voter(
        &mut self,
        ticket: Ticket,
        listener: &str,
        update: UpdateVoterRequest,
        turn: &mut Turn,
    ) {
        self.change_timers(turn);
        let error = self
            .take_update(update, turn)
            .err()
            .unwrap_or(ErrorCode::None);
        let response = UpdateVoterResponse {
            error,
            hint: self.hint(listener),
        };
        turn.reply(ticket, Response::UpdateVoter(response));
    }

    fn take_update(
        &mut self,
        update: UpdateVoterRequest,
        turn: &mut Turn,
    ) -> Result<(), ErrorCode> {
        self.check_cluster(update.cluster_id.as_deref())
            .and_then(|()| self.check_leads(update.current_leader_epoch))
            .map_err(code_of)?;
        let node = self.sound_node(update)?;
        let now = turn.now.instant;
        let Role::Leader(leader) = &self.role else {
            return Err(ErrorCode::NotLeaderOrFollower);
        };
        let Some(commit) = self.commit_of_epoch() else {
            return Err(ErrorCode::RequestTimedOut);
        };
        if leader.change.is_pending(now) {
            return Err(ErrorCode::RequestTimedOut);
        }
        let level = self.voters.kraft_version();
        let quiet = self.voters.changed_at().is_some_and(|at| at < commit);
        if level > 0 && !quiet {
            return Err(ErrorCode::RequestTimedOut);
        }
        let (min, max) = node.kraft_versions;
        if !(min..=max).contains(&level) {
            return Err(ErrorCode::InvalidRequest);
        }
        let id = node.key.id;
        if level > 0 {
            self.voters.find(node.key).ok_or(ErrorCode::VoterNotFound)?;
            let mut nodes = self.voters.nodes().to_vec();
            nodes.retain(|other| other.key.id != id);
            nodes.push(node);
            self.append_voters(nodes, turn);
        } else if self.voters.ids().contains(&id) {
            tracing::info!(
                voter = keys_text(std::slice::from_ref(&node)),
                "a voter tells of itself"
            );
            if let Role::Leader(leader) = &mut self.role {
                leader.change.told.insert(id, node);
            }
        } else {
            return Err(ErrorCode::VoterNotFound);
        }
        self.heard(id, turn);
        Ok(())
    }

    /// The voter as the request describes it, if that can be one: of this leader only it itself
    /// knows more.
    fn sound_node(&self, update: UpdateVoterRequest) -> Result<VoterNode, ErrorCode> {
        let key = update.voter;
        let (min, max) = update.kraft_versions;
        let range = (u16::try_from(min), u16::try_from(max));
        let endpoints = normalised(update.endpoints);
        let named = key.id >= NodeId(0) && !key.directory.is_nil() && key.id != self.config.node.id;
        let reachable = self.peer_at(key.id, &endpoints).is_some() && is_bearable(&endpoints);
        match range {
            (Ok(min), Ok(max)) if min <= max && named && reachable => Ok(VoterNode {
                key,
                endpoints,
                kraft_versions: (min, max),
            }),
            _ => Err(ErrorCode::InvalidRequest),
        }
    }

    /// The voters with what this leader knows of them though no record says it.
    fn voters_told(&self) -> Vec<VoterNode> {
        let Role::Leader(leader) = &self.role else {
            return Vec::new();
        };
        let own = self.config.node;
        let told = |node: &VoterNode| match node.key.id == own.id {
            true => self.own_node(),
            false => leader.change.told.get(&node.key.id).unwrap_or(node).clone(),
        };
        self.voters.nodes().iter().map(told).collect()
    }

    /// Whether kraft.version may be finalized at `level` by this leader now.
    ///
    /// # Errors
    /// A sentence for the client: why not.
    pub fn check_kraft_version(&self, level: u16) -> Result<(), String> {
        let now = self.kraft_version();
        if level == now {
            return Ok(());
        }
        if level < now {
            return Err(format!(
                "Invalid upgrade of kraft.version from version KRAFT_VERSION_{now} to \
                 KRAFT_VERSION_{level} because the new version is a downgrade"
            ));
        }
        let ready = |node: &VoterNode| {
            let (min, max) = node.kraft_versions;
            (min..=max).contains(&level) && !node.key.directory.is_nil()
        };
        let voters = self.voters_told();
        if voters.is_empty() || !voters.iter().all(ready) {
            return Err(format!(
                "Invalid upgrade of kraft.version to KRAFT_VERSION_{level} because not all of the \
                 voters support it"
            ));
        }
        Ok(())
    }

    /// The state machine agreed to a new kraft.version: from here on the voters live in the log.
    pub(super) fn upgrade_kraft_version(&mut self, level: u16, turn: &mut Turn) {
        if level == self.kraft_version() {
            return;
        }
        if let Err(reason) = self.check_kraft_version(level) {
            tracing::error!(level, reason, "kraft.version stays");
            return;
        }
        let voters = self.voters_told();
        tracing::info!(
            level,
            voters = keys_text(&voters),
            "the voters live in the log from here on"
        );
        let records = vec![
            ControlRecord::KraftVersion(level),
            ControlRecord::Voters(voters),
        ];
        self.append_control(records, turn);
        self.answer_waiters(turn);
    }
}

fn code_of(error: RaftError) -> ErrorCode {
    match error {
        RaftError::None => ErrorCode::None,
        RaftError::Top(code) | RaftError::Partition(code) => code,
    }
}
