//! Snapshots: written by the state machine, fetched in pieces, taken over; and the log that they
//! let go.

use bytes::Bytes;
use kraftd::raft::{FetchSnapshotResponse, Input, LoadedSnapshot, RaftError, Response, Told};
use kraftd::types::{ErrorCode, OffsetAndEpoch, Ticket};

use super::{Event, World};
use crate::codec;
use crate::disk::Snapshot;
use crate::law;
use crate::node::load;

/// A piece of a snapshot that comes in.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    id: OffsetAndEpoch,
    position: u64,
    bytes: Bytes,
    size: u64,
}

impl Piece {
    pub(crate) fn new(id: OffsetAndEpoch, position: u64, bytes: Bytes, size: u64) -> Self {
        Self {
            id,
            position,
            bytes,
            size,
        }
    }
}

impl World {
    pub(super) fn maybe_snapshot(&mut self, at: usize) {
        let every = self.config.snapshot_every;
        let host = &mut self.hosts[at];
        let Some(node) = &mut host.node else { return };
        let newest = host.disk.newest().map_or(0, |(id, _)| id.offset.0);
        let end = node.machine.end;
        if every == 0 || node.snapshotting || end.0 < newest + every {
            return;
        }
        let Some(epoch) = host.disk.view().epoch_below(end) else {
            return;
        };
        if node.machine.kraft_version > 0 {
            let of_core = (
                node.raft.kraft_version_at(end),
                Some(node.raft.voters_at(end)),
            );
            let applied = (node.machine.kraft_version, node.machine.voters.as_deref());
            law!(
                of_core == applied,
                "{at}: as of {end} the core has {of_core:?}, the log {applied:?}"
            );
        }
        node.snapshotting = true;
        let id = OffsetAndEpoch { offset: end, epoch };
        let bytes = codec::snapshot_file(&node.machine.control(), &node.machine.write());
        let chain = host.disk.view().chain_at(end).unwrap_or_default();
        let life = node.life;
        let takes = self.dice.disk.below(200);
        self.at(takes, Event::SnapshotDone(at, life, id, bytes, chain));
    }

    pub(super) fn snapshot_done(
        &mut self,
        at: usize,
        life: u64,
        id: OffsetAndEpoch,
        bytes: Bytes,
        chain: u64,
    ) {
        if !self.is_life(at, life) {
            return;
        }
        let host = &mut self.hosts[at];
        let Some(node) = &mut host.node else { return };
        node.snapshotting = false;
        // A snapshot of the leader may have come meanwhile.
        if host
            .disk
            .newest()
            .is_some_and(|(newest, _)| newest.offset >= id.offset)
        {
            return;
        }
        self.laws.committed.holds(at, id.offset, id.epoch, chain);
        self.hosts[at]
            .disk
            .snapshots
            .insert(id, Snapshot { bytes, chain });
        self.give(at, Input::SnapshotWritten(id));
        self.clean(at);
    }

    /// Lets go of old snapshots, if there are such; now and then asks for nonsense.
    fn clean(&mut self, at: usize) {
        if !self.config.clean.hits(&mut self.dice.disk) {
            return;
        }
        let disk = &self.hosts[at].disk;
        let known: Vec<OffsetAndEpoch> = disk.snapshots.keys().copied().collect();
        let before = disk.start;
        let Some(mut id) = known
            .get(self.dice.disk.below(known.len() as u64) as usize)
            .copied()
        else {
            return;
        };
        if self.dice.disk.below(20) == 0 {
            id.offset = id.offset.plus(self.dice.disk.below(9) as i64 - 4);
        }
        self.give(at, Input::Clean(id));
        if self.hosts[at].disk.start > before {
            self.meet("old log cleaned");
            self.maybe_crash(at);
        }
    }

    pub(super) fn serve_snapshot(
        &mut self,
        at: usize,
        ticket: Ticket,
        mut response: FetchSnapshotResponse,
        (position, max_bytes): (i64, usize),
    ) {
        let disk = &self.hosts[at].disk;
        let found = disk.snapshots.get(&response.id).map(|it| it.bytes.clone());
        law!(
            found.is_some() && response.id.offset >= disk.start,
            "{:?} is no snapshot",
            response.id
        );
        let Some(file) = found else { return };
        let Some(asked) = self.told(at, ticket, response.hint.epoch) else {
            return;
        };
        let from = usize::try_from(position)
            .ok()
            .filter(|from| *from < file.len());
        let Some(from) = from else {
            response.error = RaftError::Partition(ErrorCode::PositionOutOfRange);
            let response = Response::FetchSnapshot(response);
            return self.answer(&asked, Told::Response(response));
        };
        let until = from.saturating_add(max_bytes).min(file.len());
        let told = Told::Snapshot {
            response,
            size: file.len() as i64,
            position,
            bytes: file.slice(from..until),
        };
        self.answer(&asked, told);
    }

    pub(super) fn keep_piece(&mut self, at: usize, piece: Piece) {
        let Some(life) = self.hosts[at].node.as_ref().map(|node| node.life) else {
            return;
        };
        let takes = self.config.disk.draw(&mut self.dice.disk);
        self.at(takes, Event::PieceDone(at, life, Box::new(piece)));
    }

    pub(super) fn piece_done(&mut self, at: usize, life: u64, piece: Piece) {
        if !self.is_life(at, life) {
            return;
        }
        let Piece {
            id,
            position,
            bytes,
            size,
        } = piece;
        let part = &mut self.hosts[at].disk.part;
        if position == 0 {
            if self.config.no_room.hits(&mut self.dice.disk) {
                *part = None;
                self.meet("snapshot without room");
                return self.give(at, Input::SnapshotWithoutRoom(id));
            }
            *part = Some((id, Vec::new()));
        }
        let fits =
            |part: &&mut (OffsetAndEpoch, Vec<u8>)| part.0 == id && part.1.len() as u64 == position;
        let Some((_, file)) = part.as_mut().filter(fits) else {
            return self.give(at, Input::SnapshotFailed(id));
        };
        file.extend_from_slice(&bytes);
        let end = file.len() as u64;
        if end < size {
            self.meet("piece of a snapshot kept");
            return self.give(at, Input::PieceKept { id, end });
        }
        let mut file = std::mem::take(file);
        *part = None;
        if self.config.snapshot_bad.hits(&mut self.dice.network) {
            let at = self.dice.network.below(file.len() as u64) as usize;
            file[at] ^= 1;
        }
        self.snapshot_received(at, life, id, file.into());
    }

    /// The whole is there: durable, or no good.
    fn snapshot_received(&mut self, at: usize, life: u64, id: OffsetAndEpoch, bytes: Bytes) {
        if load(&self.config, id, &bytes).is_none() {
            self.meet("snapshot came in damaged");
            return self.give(at, Input::SnapshotFailed(id));
        }
        let chain = self.laws.committed.chain_at(id.offset);
        law!(
            chain.is_some(),
            "{id:?} is no snapshot of what is committed"
        );
        let chain = chain.unwrap_or_default();
        self.laws.committed.holds(at, id.offset, id.epoch, chain);
        self.hosts[at]
            .disk
            .snapshots
            .insert(id, Snapshot { bytes, chain });
        let takes = self.config.disk.draw(&mut self.dice.disk);
        self.at(takes, Event::Loaded(at, life, id));
    }

    pub(super) fn snapshot_loaded(&mut self, at: usize, life: u64, id: OffsetAndEpoch) {
        if !self.is_life(at, life) {
            return;
        }
        let host = &mut self.hosts[at];
        let Some(node) = &mut host.node else { return };
        let file = host.disk.snapshots.get(&id).map(|it| it.bytes.clone());
        let loaded = file.and_then(|bytes| load(&self.config, id, &bytes));
        let useful = id.offset > node.machine.end && node.raft.takes_snapshot(id);
        let Some((machine, control)) = loaded.filter(|_| useful && !node.stopping) else {
            self.meet("snapshot not taken over");
            return self.give(at, Input::SnapshotFailed(id));
        };
        self.laws.images.at(at, &machine);
        node.machine = machine;
        self.meet("snapshot taken over");
        self.give(at, Input::SnapshotLoaded(LoadedSnapshot { id, control }));
    }
}
