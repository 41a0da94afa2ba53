//! The bytes of the simulated world: batches of the log and snapshot files. Not Kafka's format:
//! consensus and snapshots know nothing of what the bytes mean (KIP-630), and this holds them to
//! it.

use std::sync::Arc;

use bytes::Bytes;
use kraftd::raft::{ControlRecord, VoterNode};
use kraftd::types::{Epoch, NodeId, Offset, ReplicaKey, Uuid};

/// One batch of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Batch {
    pub first: Offset,
    /// End, exclusive.
    pub end: Offset,
    pub epoch: Epoch,
    pub content: Content,
    /// As it is on disk and on the wire.
    pub bytes: Bytes,
    /// A hash of `bytes`.
    pub hash: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    Control(Vec<ControlRecord>),
    Values(Vec<u64>),
}

impl Batch {
    pub(crate) fn new(first: Offset, epoch: Epoch, content: Content) -> Arc<Self> {
        let count = match &content {
            Content::Control(records) => records.len(),
            Content::Values(values) => values.len(),
        };
        let mut out = Writer::default();
        out.number(first.0 as u64);
        out.number(epoch.0 as u64);
        out.number(count as u64);
        match &content {
            Content::Control(records) => {
                out.number(1);
                records.iter().for_each(|record| out.control(record));
            }
            Content::Values(values) => {
                out.number(0);
                values.iter().for_each(|value| out.number(*value));
            }
        }
        let bytes: Bytes = out.0.into();
        Arc::new(Self {
            first,
            end: first.plus(count as i64),
            epoch,
            content,
            hash: hash(&bytes),
            bytes,
        })
    }

    /// Its control records with their offsets.
    pub(crate) fn control(&self) -> Vec<(Offset, ControlRecord)> {
        match &self.content {
            Content::Control(records) => (self.first.0..)
                .map(Offset)
                .zip(records.iter().cloned())
                .collect(),
            Content::Values(_) => Vec::new(),
        }
    }
}

/// Reads batches back. `None` if the bytes are none.
pub(crate) fn batches(bytes: &[u8]) -> Option<Vec<Arc<Batch>>> {
    let mut input = Reader(bytes);
    let mut found = Vec::new();
    while !input.0.is_empty() {
        let first = Offset(input.number()? as i64);
        let epoch = Epoch(input.number()? as i32);
        let count = input.number()?;
        let content = match input.number()? {
            0 => Content::Values((0..count).map(|_| input.number()).collect::<Option<_>>()?),
            _ => Content::Control((0..count).map(|_| input.control()).collect::<Option<_>>()?),
        };
        found.push(Batch::new(first, epoch, content));
    }
    Some(found)
}

/// A snapshot file: the control records, then what the state machine wrote.
pub(crate) fn snapshot_file(control: &[ControlRecord], state: &[u8]) -> Bytes {
    let mut out = Writer::default();
    out.number(control.len() as u64);
    control.iter().for_each(|record| out.control(record));
    out.0.extend_from_slice(state);
    let sum = hash(&out.0);
    out.number(sum);
    out.0.into()
}

/// Reads a snapshot file. `None` if it is damaged.
pub(crate) fn open_snapshot(bytes: &[u8]) -> Option<(Vec<ControlRecord>, Vec<u8>)> {
    let (body, sum) = bytes.split_at_checked(bytes.len().checked_sub(8)?)?;
    if Reader(sum).number()? != hash(body) {
        return None;
    }
    let mut input = Reader(body);
    let count = input.number()?;
    let control = (0..count).map(|_| input.control()).collect::<Option<_>>()?;
    Some((control, input.0.to_vec()))
}

/// FNV-1a over words: no run has so many bytes that more would matter.
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    let chunks = bytes.chunks(8);
    chunks.fold(0xcbf2_9ce4_8422_2325, |sum, chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        mix(sum, u64::from_be_bytes(word))
    })
}

/// Two numbers into one.
pub(crate) fn mix(sum: u64, word: u64) -> u64 {
    (sum ^ word).wrapping_mul(0x0100_0000_01b3).rotate_left(23)
}

#[derive(Default)]
pub(crate) struct Writer(pub Vec<u8>);

impl Writer {
    pub(crate) fn number(&mut self, number: u64) {
        self.0.extend_from_slice(&number.to_be_bytes());
    }

    fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.0.extend_from_slice(text.as_bytes());
    }

    fn ids(&mut self, ids: &[NodeId]) {
        self.number(ids.len() as u64);
        ids.iter().for_each(|id| self.number(id.0 as u64));
    }

    fn control(&mut self, record: &ControlRecord) {
        match record {
            ControlRecord::LeaderChange {
                leader,
                voters,
                granting,
            } => {
                self.number(0);
                self.number(leader.0 as u64);
                self.ids(voters);
                self.ids(granting);
            }
            ControlRecord::KraftVersion(version) => {
                self.number(1);
                self.number(u64::from(*version));
            }
            ControlRecord::Voters(nodes) => {
                self.number(2);
                self.number(nodes.len() as u64);
                nodes.iter().for_each(|node| self.voter(node));
            }
        }
    }

    fn voter(&mut self, node: &VoterNode) {
        self.number(node.key.id.0 as u64);
        let (high, low) = node.key.directory.as_u64_pair();
        self.number(high);
        self.number(low);
        self.number(node.endpoints.len() as u64);
        for (listener, host, port) in &node.endpoints {
            self.text(listener);
            self.text(host);
            self.number(u64::from(*port));
        }
        self.number(u64::from(node.kraft_versions.0));
        self.number(u64::from(node.kraft_versions.1));
    }
}

pub(crate) struct Reader<'a>(pub &'a [u8]);

impl Reader<'_> {
    pub(crate) fn number(&mut self) -> Option<u64> {
        let (word, rest) = self.0.split_first_chunk::<8>()?;
        self.0 = rest;
        Some(u64::from_be_bytes(*word))
    }

    fn text(&mut self) -> Option<String> {
        let length = self.number()? as usize;
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        String::from_utf8(text.to_vec()).ok()
    }

    fn ids(&mut self) -> Option<Vec<NodeId>> {
        let count = self.number()?;
        (0..count)
            .map(|_| self.number().map(|id| NodeId(id as i32)))
            .collect()
    }

    fn control(&mut self) -> Option<ControlRecord> {
        Some(match self.number()? {
            0 => ControlRecord::LeaderChange {
                leader: NodeId(self.number()? as i32),
                voters: self.ids()?,
                granting: self.ids()?,
            },
            1 => ControlRecord::KraftVersion(self.number()? as u16),
            2 => {
                let count = self.number()?;
                let nodes = (0..count).map(|_| self.voter()).collect::<Option<_>>()?;
                ControlRecord::Voters(nodes)
            }
            _ => return None,
        })
    }

    fn voter(&mut self) -> Option<VoterNode> {
        let id = NodeId(self.number()? as i32);
        let directory = Uuid::from_u64_pair(self.number()?, self.number()?);
        let count = self.number()?;
        let endpoint = |input: &mut Self| {
            let (listener, host) = (input.text()?, input.text()?);
            Some((listener, host, input.number()? as u16))
        };
        let endpoints = (0..count).map(|_| endpoint(self)).collect::<Option<_>>()?;
        Some(VoterNode {
            key: ReplicaKey { id, directory },
            endpoints,
            kraft_versions: (self.number()? as u16, self.number()? as u16),
        })
    }
}
