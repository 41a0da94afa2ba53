//! What a leader learns of its voters, and what that allows: UpdateRaftVoter, and the step from
//! voters in the configuration to voters in the log (KIP-853).
//!
//! While kraft.version is 0 no record can hold where a voter is and what it supports: the leader
//! keeps it in memory, and voters tell it to each new leader. Once all have, kraft.version 1 can be
//! finalized: one batch brings the version and the first set.

use std::collections::BTreeMap;

use crate::types::{ErrorCode, NodeId, Ticket};

use super::change::{is_bearable, keys_text, normalised};
use super::input::UpdateVoterRequest;
use super::machine::{Raft, Turn};
use super::output::{ControlRecord, RaftError, Response, UpdateVoterResponse, VoterNode};
use super::roles::{Endpoint, Role};

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
        self.watch_moves(&node);
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

    /// Warns of a voter that tells of a place that it has just left.
    fn watch_moves(&mut self, node: &VoterNode) {
        let known = self.voters.find(node.key).cloned();
        let Role::Leader(leader) = &mut self.role else {
            return;
        };
        let told = leader.change.told.get(&node.key.id).cloned();
        let Some(before) = told.or(known) else {
            return;
        };
        if let Some(back) = back_and_forth(&mut leader.change.left, &before, node) {
            tracing::warn!("{back}");
        }
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

/// Takes note of where a voter was `before` it told that it is elsewhere `now`; a sentence if that
/// is where it was before that. One that is moved goes on; two copies of it take turns.
pub(super) fn back_and_forth(
    left: &mut BTreeMap<NodeId, Vec<Endpoint>>,
    before: &VoterNode,
    now: &VoterNode,
) -> Option<String> {
    if before.endpoints.is_empty() || before.endpoints == now.endpoints {
        return None;
    }
    let last = left.insert(now.key.id, before.endpoints.clone());
    (last.as_ref() == Some(&now.endpoints)).then(|| {
        format!(
            "voter {} goes back and forth between {} and {}: two nodes run with its id and its \
             directory.id, one of them in a copy of its directory; stop the copy",
            now.key.id,
            places_text(&before.endpoints),
            places_text(&now.endpoints)
        )
    })
}

/// The voters that are reached elsewhere than before; `None` if there are none.
pub(super) fn moved_text(before: &[VoterNode], after: &[VoterNode]) -> Option<String> {
    let moved = after.iter().filter_map(|node| {
        let old = before.iter().find(|old| old.key == node.key)?;
        let (from, to) = (&old.endpoints, &node.endpoints);
        (from != to).then(|| {
            format!(
                "voter {} from {} to {}",
                node.key.id,
                places_text(from),
                places_text(to)
            )
        })
    });
    let moved: Vec<String> = moved.collect();
    (!moved.is_empty()).then(|| moved.join(", "))
}

fn places_text(endpoints: &[Endpoint]) -> String {
    let each = endpoints.iter();
    let each = each.map(|(name, host, port)| format!("{name}://{host}:{port}"));
    each.collect::<Vec<_>>().join(",")
}

fn code_of(error: RaftError) -> ErrorCode {
    match error {
        RaftError::None => ErrorCode::None,
        RaftError::Top(code) | RaftError::Partition(code) => code,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{ReplicaKey, Uuid};

    fn at(id: i32, port: u16) -> VoterNode {
        VoterNode {
            key: ReplicaKey {
                id: NodeId(id),
                directory: Uuid::from_u128(7),
            },
            endpoints: vec![("CONTROLLER".to_owned(), "h".to_owned(), port)],
            kraft_versions: (0, 1),
        }
    }

    /// The line that the voters change named the same voters again and again, as if nothing did.
    #[test]
    fn a_change_of_the_voters_tells_who_is_reached_elsewhere() {
        let before = [at(1, 1), at(2, 2)];
        assert_eq!(moved_text(&before, &before), None);
        assert_eq!(moved_text(&before, &[at(1, 1), at(3, 3)]), None);
        assert_eq!(
            moved_text(&before, &[at(1, 1), at(2, 3)]).as_deref(),
            Some("voter 2 from CONTROLLER://h:2 to CONTROLLER://h:3")
        );
    }

    #[test]
    fn two_nodes_that_are_the_same_voter_are_told_with_both_places() {
        let mut left = BTreeMap::new();
        let mut step = |from, to| back_and_forth(&mut left, &at(2, from), &at(2, to));
        assert_eq!(step(1, 1), None);
        assert_eq!(step(1, 2), None, "it may have been moved");
        assert_eq!(step(2, 3), None, "and once more");
        for (from, to) in [(3, 2), (2, 3)] {
            let told = step(from, to).unwrap();
            let places = format!("between CONTROLLER://h:{from} and CONTROLLER://h:{to}: two");
            assert!(told.contains(&places), "{told}");
        }
    }
}
