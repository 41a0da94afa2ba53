//! What snapshots do to the log: they let its beginning go, and one of a leader's takes the place
//! of a log that is behind it (KIP-630).

use crate::types::{Offset, OffsetAndEpoch};

use super::input::LoadedSnapshot;
use super::machine::{Raft, Turn};
use super::output::{Output, Write};
use super::roles::Role;

impl Raft {
    /// A snapshot of the own state machine is durable.
    pub(super) fn snapshot_written(&mut self, id: OffsetAndEpoch) {
        if self.commit.is_none_or(|commit| id.offset > commit) || !self.log.add_snapshot(id) {
            tracing::error!(?id, "a snapshot that is not committed, or not new");
        }
    }

    /// Lets go of what lies below the end of a snapshot.
    pub(super) fn clean(&mut self, id: OffsetAndEpoch, turn: &mut Turn) {
        // A follower may know of commits that its own disk does not have yet; the log cannot begin
        // behind its durable end.
        let durable = id.offset <= self.log.durable_end;
        if !durable || !self.moves.is_empty() || !self.log.move_start(id) {
            tracing::debug!(?id, "the log's start stays");
            return;
        }
        self.voters.compact(id.offset);
        self.push_move(Write::MoveStart { to: id }, turn);
    }

    /// Whether a leader's snapshot tells something new and goes with the log: that ends before it,
    /// or has the same record at its end.
    #[must_use]
    pub fn takes_snapshot(&self, id: OffsetAndEpoch) -> bool {
        let known = self.commit.is_some_and(|commit| id.offset <= commit);
        let leads = matches!(self.role, Role::Leader(_));
        // The log begins anew only where nothing is lost that was known to be committed.
        let loses = self.log.is_behind(id) && id.offset < self.floor();
        !known && !leads && !loses && self.log.fits(id)
    }

    /// Whether the log ends before the snapshot and so would begin anew at its end.
    #[must_use]
    pub fn is_behind(&self, id: OffsetAndEpoch) -> bool {
        self.log.is_behind(id)
    }

    /// A leader's snapshot is durable here, and the state machine has taken it over. All that it
    /// holds is committed. A log that does not reach its end begins anew there.
    pub(super) fn snapshot_loaded(&mut self, loaded: LoadedSnapshot, turn: &mut Turn) {
        let LoadedSnapshot { id, control } = loaded;
        self.end_download(id);
        if !self.takes_snapshot(id) {
            tracing::warn!(?id, role = self.role.name(), "a snapshot is not taken over");
            return;
        }
        if self.log.is_behind(id) {
            self.log.restart(id);
            // A log that goes on behind the snapshot may have later ones, which count.
            self.voters.restart(id.offset, control);
            // What is on its way to the disk will be gone with the rest.
            for (_, end) in &mut self.appends {
                *end = Offset::ZERO;
            }
            self.push_move(Write::Restart { at: id }, turn);
        } else {
            self.log.add_snapshot(id);
        }
        self.commit = Some(id.offset);
        turn.outputs.push(Output::Committed(id.offset));
        self.heal(turn);
    }

    pub(super) fn push_move(&mut self, write: Write, turn: &mut Turn) {
        let token = self.token();
        self.moves.push_back(token);
        turn.outputs.push(Output::Write {
            token,
            write,
            then: Vec::new(),
        });
    }
}
