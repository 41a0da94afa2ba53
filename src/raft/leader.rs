//! The leader's own log: appends, what they commit, and the end of leadership (KIP-595, KIP-853).

use crate::types::{Offset, Token};

use super::input::Proposal;
use super::machine::{Raft, Turn};
use super::output::{ControlRecord, Output, VoterNode, Write};
use super::progress::majority_end;
use super::roles::{Leader, Role};
use super::voters::Source;

impl Raft {
    pub(super) fn written(&mut self, token: Token, turn: &mut Turn) {
        if self
            .saving
            .as_ref()
            .is_some_and(|(saving, _)| *saving == token)
        {
            self.durable = self.saving.take().map(|(_, state)| state);
        } else if self
            .appends
            .front()
            .is_some_and(|(append, _)| *append == token)
        {
            if let Some((_, end)) = self.appends.pop_front() {
                // A snapshot may have moved it on meanwhile.
                self.log.durable_end = self.log.durable_end.max(end);
            }
            self.advance_commit(turn);
        } else if self.moves.front() == Some(&token) {
            self.moves.pop_front();
        } else {
            tracing::error!(token = token.0, "a completion out of order is ignored");
        }
    }

    pub(super) fn propose(&mut self, proposal: Proposal, turn: &mut Turn) {
        let leads = self.active_epoch() == Some(proposal.epoch);
        if !leads || proposal.first != self.log.end || proposal.end <= proposal.first {
            tracing::warn!(
                epoch = proposal.epoch.0,
                first = proposal.first.0,
                end = proposal.end.0,
                log_end = self.log.end.0,
                role = self.role.name(),
                "a proposal is dropped"
            );
            return;
        }
        let token = self.append(proposal.end);
        turn.outputs.push(Output::Write {
            token,
            write: Write::Append {
                first: proposal.first,
                end: proposal.end,
                epoch: proposal.epoch,
                batches: proposal.batches,
            },
            then: Vec::new(),
        });
        self.answer_waiters(turn);
    }

    /// The first batch of an epoch (KIP-595; KIP-853 for the voters in it): it alone makes what
    /// earlier leaders left behind committed.
    pub(super) fn begin_epoch(&mut self, turn: &mut Turn) {
        let first = self.log.end;
        let Role::Leader(leader) = &mut self.role else {
            return;
        };
        leader.epoch_start = Some(first);
        let mut records = vec![ControlRecord::LeaderChange {
            leader: self.config.node.id,
            voters: self.voters.ids(),
            granting: leader.granted.clone(),
        }];
        if let Some(nodes) = self.voters_to_write() {
            records.push(ControlRecord::KraftVersion(self.voters.kraft_version()));
            records.push(ControlRecord::Voters(nodes));
        }
        self.log.epochs.begin(self.epoch, first);
        self.append_control(records, turn);
    }

    /// Appends one control batch; what it says of the voters counts from now on.
    pub(super) fn append_control(&mut self, records: Vec<ControlRecord>, turn: &mut Turn) {
        let first = self.log.end;
        let mut end = first;
        for record in &records {
            self.voters.apply(end, record.clone());
            end = end.next();
        }
        let token = self.append(end);
        turn.outputs.push(Output::Write {
            token,
            write: Write::AppendControl {
                first,
                epoch: self.epoch,
                timestamp: turn.now.wall,
                records,
            },
            then: Vec::new(),
        });
        self.look_at_voters(turn);
    }

    /// The voter set, if the log needs a new one: others cannot fetch the bootstrap snapshot, and
    /// this node's own entry has to say where it is.
    fn voters_to_write(&self) -> Option<Vec<VoterNode>> {
        if self.voters.kraft_version() == 0 {
            return None;
        }
        let mut nodes = self.voters.nodes().to_vec();
        let own = self.config.node;
        let entry = nodes.iter_mut().find(|node| node.key == own);
        let outdated = entry.filter(|entry| !self.is_as_told(entry));
        let needed = self.voters.source() == Source::Bootstrap || outdated.is_some();
        if let Some(entry) = outdated {
            *entry = self.own_node();
        }
        needed.then_some(nodes)
    }

    /// The log ends at `end` once the write with the returned token is done.
    pub(super) fn append(&mut self, end: Offset) -> Token {
        let token = self.token();
        self.log.end = end;
        self.appends.push_back((token, end));
        token
    }

    /// Commits what a majority of the voters has on stable storage, once that includes a record of
    /// the leader's own epoch (KIP-595, high watermark).
    pub(super) fn advance_commit(&mut self, turn: &mut Turn) {
        let own = self.voters.find(self.config.node).map(|node| node.key);
        let Role::Leader(leader) = &mut self.role else {
            return;
        };
        let ends: Vec<Option<Offset>> = self
            .voters
            .nodes()
            .iter()
            .map(|node| {
                if Some(node.key) == own {
                    Some(self.log.durable_end)
                } else {
                    leader.progress.voter_end(node.key)
                }
            })
            .collect();
        let Some(end) = majority_end(&ends) else {
            return;
        };
        let in_epoch = leader.epoch_start.is_some_and(|start| end > start);
        if !in_epoch || self.commit.is_some_and(|commit| end <= commit) {
            return;
        }
        self.commit = Some(end);
        turn.outputs.push(Output::Committed(end));
        if !leader.announced {
            leader.announced = true;
            turn.outputs
                .push(Output::BecameLeader { epoch: self.epoch });
        }
        self.answer_waiters(turn);
        self.change_committed(turn);
    }

    pub(super) fn leave_leadership(&mut self, leader: Leader, turn: &mut Turn) {
        let Leader {
            announced,
            mut waiters,
            change,
            ..
        } = leader;
        if announced {
            turn.outputs.push(Output::LostLeadership {
                epoch: self.epoch,
                leader: match &self.role {
                    Role::Follower(role) => Some(role.leader),
                    Role::Unattached(_)
                    | Role::Prospective(_)
                    | Role::Candidate(_)
                    | Role::Leader(_)
                    | Role::Resigned(_) => None,
                },
            });
        }
        for waiter in waiters.take_all() {
            self.refuse_parked(waiter, turn);
        }
        Self::abandon_change(change, turn);
    }
}
