//! The state machines that run on the log. Consensus and snapshots know nothing of what they keep
//! (KIP-630), so there are two: one that remembers every value that its clients wrote, and one that
//! keeps three numbers. Both write their own snapshots and load them.

use std::collections::BTreeMap;

use kraftd::raft::{ControlRecord, VoterNode};
use kraftd::types::Offset;

use crate::codec::{Batch, Content, Reader, Writer, mix};

/// Which of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Values,
    Register,
}

/// What the values made of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Every value where it is.
    Values(BTreeMap<Offset, u64>),
    /// The last value, how many there were, and a sum that depends on their order.
    Register { last: u64, count: u64, sum: u64 },
}

/// The image of a committed prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Machine {
    pub state: State,
    /// kraft.version and voters as of `end`, which a snapshot at `end` has to hold.
    pub kraft_version: u16,
    pub voters: Option<Vec<VoterNode>>,
    /// Everything below is in it, exclusive.
    pub end: Offset,
    digest: u64,
}

impl Machine {
    pub(crate) fn new(kind: Kind, bootstrap: Option<&Vec<VoterNode>>) -> Self {
        let state = match kind {
            Kind::Values => State::Values(BTreeMap::new()),
            Kind::Register => State::Register {
                last: 0,
                count: 0,
                sum: 0,
            },
        };
        Self {
            state,
            kraft_version: u16::from(bootstrap.is_some()),
            voters: bootstrap.cloned(),
            end: Offset::ZERO,
            digest: 0,
        }
    }

    pub(crate) fn apply(&mut self, batch: &Batch) {
        match &batch.content {
            Content::Control(records) => records.iter().for_each(|record| match record {
                ControlRecord::LeaderChange { .. } => {}
                ControlRecord::KraftVersion(version) => self.kraft_version = *version,
                ControlRecord::Voters(nodes) => self.voters = Some(nodes.clone()),
            }),
            Content::Values(values) => {
                for (at, value) in (batch.first.0..).map(Offset).zip(values) {
                    self.take(at, *value);
                }
            }
        }
        self.end = batch.end;
    }

    fn take(&mut self, at: Offset, value: u64) {
        match &mut self.state {
            State::Values(all) => {
                all.insert(at, value);
                self.digest = mix(mix(self.digest, at.0 as u64), value);
            }
            State::Register { last, count, sum } => {
                *last = value;
                *count += 1;
                *sum = mix(*sum, value);
            }
        }
    }

    /// Two images of one prefix have the same number, and others hardly ever.
    pub(crate) fn digest(&self) -> u64 {
        let state = match &self.state {
            State::Values(_) => self.digest,
            State::Register { last, count, sum } => mix(mix(*last, *count), *sum),
        };
        let voters = self.voters.iter().flatten();
        voters.fold(mix(state, u64::from(self.kraft_version)), |sum, node| {
            mix(
                mix(sum, node.key.id.0 as u64),
                node.key.directory.as_u128() as u64,
            )
        })
    }

    /// The control records of a snapshot at `end`.
    pub(crate) fn control(&self) -> Vec<ControlRecord> {
        match (self.kraft_version, &self.voters) {
            (0, _) | (_, None) => Vec::new(),
            (version, Some(nodes)) => vec![
                ControlRecord::KraftVersion(version),
                ControlRecord::Voters(nodes.clone()),
            ],
        }
    }

    /// The state machine's part of a snapshot.
    pub(crate) fn write(&self) -> Vec<u8> {
        let mut out = Writer::default();
        match &self.state {
            State::Values(all) => {
                out.number(self.digest);
                for (at, value) in all {
                    out.number(at.0 as u64);
                    out.number(*value);
                }
            }
            State::Register { last, count, sum } => {
                [*last, *count, *sum]
                    .into_iter()
                    .for_each(|it| out.number(it));
            }
        }
        out.0
    }

    /// What [`Self::write`] wrote, as of `end`. `None` if it is nothing of the kind.
    pub(crate) fn load(
        kind: Kind,
        end: Offset,
        control: &[ControlRecord],
        bytes: &[u8],
    ) -> Option<Self> {
        let mut input = Reader(bytes);
        let mut machine = Self::new(kind, None);
        match &mut machine.state {
            State::Values(all) => {
                machine.digest = input.number()?;
                while !input.0.is_empty() {
                    all.insert(Offset(input.number()? as i64), input.number()?);
                }
            }
            State::Register { last, count, sum } => {
                *last = input.number()?;
                *count = input.number()?;
                *sum = input.number()?;
            }
        }
        for record in control {
            match record {
                ControlRecord::LeaderChange { .. } => return None,
                ControlRecord::KraftVersion(version) => machine.kraft_version = *version,
                ControlRecord::Voters(nodes) => machine.voters = Some(nodes.clone()),
            }
        }
        machine.end = end;
        Some(machine)
    }
}
