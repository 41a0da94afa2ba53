//! Changing the voters: one at a time (KIP-853).

use super::calls::Call;
use super::input::{AddVoterRequest, CallFault, RemoveVoterRequest, Told, UpdateVoterRequest};
use super::machine::{Raft, Turn};
use super::output::{ChangeVoterResponse, Response, UpdateVoterResponse};
use crate::types::{ErrorCode, Instant, Ticket};

/// A change of the voters that a leader has under way.
#[derive(Clone, Debug, Default)]
pub(super) struct Change {}

impl Change {
    /// When something here changes by time alone.
    pub(super) fn deadline(&self) -> Instant {
        Instant::NEVER
    }
}

/// How far a follower is in telling the leader about itself.
#[derive(Clone, Debug, Default)]
pub(super) struct Joining {}

impl Joining {
    /// When something here changes by time alone.
    pub(super) fn deadline(&self) -> Instant {
        Instant::NEVER
    }
}

impl Raft {
    /// Tells the leader about this node if it is time to.
    pub(super) fn update_voter_if_due(&mut self, _turn: &mut Turn) {}

    /// What time alone brings to a leader's change of the voters.
    pub(super) fn change_timers(&mut self, _turn: &mut Turn) {}

    /// An answer to one of the questions of this file, or why there is none.
    pub(super) fn voter_change_answered(
        &mut self,
        _call: Call,
        _outcome: Result<Told, CallFault>,
        _turn: &mut Turn,
    ) {
    }

    /// Whether kraft.version may be finalized at `level` now.
    ///
    /// # Errors
    /// A sentence for the client: why not.
    pub fn check_kraft_version(&self, level: u16) -> Result<(), String> {
        let now = self.kraft_version();
        if level == now {
            return Ok(());
        }
        Err(format!(
            "kraft.version cannot go from {now} to {level}: the voters are not known well enough"
        ))
    }

    /// AddRaftVoter.
    pub(super) fn add_voter(&mut self, ticket: Ticket, _add: AddVoterRequest, turn: &mut Turn) {
        turn.reply(ticket, Response::AddVoter(unsupported()));
    }

    /// RemoveRaftVoter.
    pub(super) fn remove_voter(
        &mut self,
        ticket: Ticket,
        _remove: RemoveVoterRequest,
        turn: &mut Turn,
    ) {
        turn.reply(ticket, Response::RemoveVoter(unsupported()));
    }

    /// UpdateRaftVoter.
    pub(super) fn update_voter(
        &mut self,
        ticket: Ticket,
        listener: &str,
        _update: UpdateVoterRequest,
        turn: &mut Turn,
    ) {
        let response = UpdateVoterResponse {
            error: ErrorCode::UnsupportedVersion,
            hint: self.hint(listener),
        };
        turn.reply(ticket, Response::UpdateVoter(response));
    }

    /// The state machine agreed to a new kraft.version.
    pub(super) fn upgrade_kraft_version(&mut self, level: u16, _turn: &mut Turn) {
        tracing::warn!(level, "kraft.version stays");
    }
}

fn unsupported() -> ChangeVoterResponse {
    ChangeVoterResponse {
        error: ErrorCode::UnsupportedVersion,
        message: None,
    }
}
