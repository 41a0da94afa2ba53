//! What goes to the disk and what comes back: writes with their carried outputs, and the data of
//! fetches.

use bytes::Bytes;

use crate::raft::{
    FetchResponse, FetchSnapshotResponse, Input, LeaderHint, Output, RaftError, Response, Write,
};
use crate::records::batch::BatchBuilder;
use crate::storage::{self, Command, Completion, SnapshotChunk};
use crate::types::{ErrorCode, Now, Offset, Ticket, Token};

use super::{Answer, Effect, Node};

/// Reads for peers that may be under way. Peers that go away leave theirs, and the core must never
/// have to wait for room in the disk's queue; whoever is refused comes back.
pub(super) const READINGS_MAX: usize = 1_000;

/// A read under way and what it is for.
pub(super) enum Reading {
    Fetch {
        ticket: Ticket,
        response: FetchResponse,
        from: Offset,
    },
    Snapshot {
        ticket: Ticket,
        response: FetchSnapshotResponse,
        position: i64,
    },
    /// Committed batches to replay, from this offset on.
    Replay { from: Offset },
    /// Nothing any more: leadership was lost, and who asked was told so.
    Nobody,
}

/// Which records a fetch gets.
#[derive(Clone, Copy)]
pub(super) struct Range {
    pub(super) from: Offset,
    /// Exclusive.
    pub(super) until: Offset,
    pub(super) max_bytes: usize,
}

impl Node {
    pub(super) fn write(
        &mut self,
        token: Token,
        write: Write,
        then: Vec<Output>,
        effects: &mut Vec<Effect>,
    ) {
        // Raft's tokens name its writes; the disk's tokens also name reads, so they differ.
        let disk = self.token();
        let append = |first, end, epoch, batches| {
            let token = disk;
            let command = Command::Append {
                token,
                first,
                end,
                epoch,
                batches,
            };
            (Some(end), command)
        };
        let (end, command) = match write {
            Write::Append {
                first,
                end,
                epoch,
                batches,
            } => append(first, end, epoch, batches),
            Write::AppendControl {
                first,
                epoch,
                timestamp,
                records,
            } => {
                let mut builder = BatchBuilder::control(first, epoch, timestamp);
                for record in &records {
                    builder
                        .push_control(&storage::control_record(record))
                        .expect("version 0 holds every control record");
                }
                let end = builder.next_offset();
                let batches = builder.build().into_bytes();
                append(first, end, epoch, batches)
            }
            Write::Truncate { end } => {
                self.truncate_tail(end);
                (None, Command::Truncate { token: disk, end })
            }
            Write::MoveStart { to } => (None, Command::MoveLogStart { token: disk, to }),
            Write::Restart { at } => (None, Command::RestartLog { token: disk, at }),
            Write::QuorumState(state) => (None, Command::SaveQuorumState { token: disk, state }),
        };
        if let Command::Append { batches, .. } = &command {
            self.tail.append(batches.clone());
            self.snapshots.note_appended(batches.len());
        }
        self.writes.insert(disk, (end, token, then));
        effects.push(Effect::Disk(command));
    }

    pub(super) fn completed(
        &mut self,
        now: Now,
        completion: Completion,
        effects: &mut Vec<Effect>,
    ) {
        match completion {
            Completion::Appended(token) | Completion::QuorumStateSaved(token) => {
                self.written(now, token, effects);
            }
            Completion::Truncated {
                token,
                removed_bytes,
            } => {
                self.snapshots.note_truncated(removed_bytes);
                self.written(now, token, effects);
            }
            Completion::LogRestarted { token } => self.written(now, token, effects),
            Completion::SnapshotPieceKept { id, end } => {
                self.drive(now, Input::PieceKept { id, end }, effects);
            }
            Completion::SnapshotReceived { id, outcome } => {
                self.snapshot_received(now, id, outcome, effects);
            }
            Completion::LogStartMoved {
                token,
                removed_bytes,
            } => {
                self.written(now, token, effects);
                self.log_start_moved(now, removed_bytes, effects);
            }
            Completion::Read { token, batches } => self.read(now, token, batches, effects),
            Completion::SnapshotRead { token, chunk } => {
                self.snapshot_read(token, chunk, effects);
            }
            Completion::SnapshotWritten(held) => self.snapshot_written(now, held, effects),
            Completion::SnapshotNotWritten { id, reason } => {
                self.snapshots.not_written(now.instant, id, &reason);
            }
            Completion::Closed => {}
            Completion::Failed(reason) => self.halt(reason, effects),
        }
    }

    /// The log ends at `end` from now on, whatever is on its way to the disk.
    fn truncate_tail(&mut self, end: Offset) {
        self.tail.truncate(end);
        self.durable = self.durable.min(end);
        for (reached, _, _) in self.writes.values_mut() {
            *reached = reached.map(|reached| reached.min(end));
        }
    }

    /// The log begins anew behind a snapshot: nothing of what is on its way to the disk will be in
    /// it.
    pub(super) fn restart_tail(&mut self, start: Offset) {
        self.tail.clear();
        self.durable = start;
        for (end, _, _) in self.writes.values_mut() {
            *end = None;
        }
    }

    fn written(&mut self, now: Now, token: Token, effects: &mut Vec<Effect>) {
        let Some((end, raft_token, then)) = self.writes.remove(&token) else {
            self.halt(
                format!("the disk completed a write that was not asked: {token:?}"),
                effects,
            );
            return;
        };
        if let Some(end) = end {
            self.durable = end;
            self.tail.trim(end);
        }
        self.drive(now, Input::Written(raft_token), effects);
        self.execute(now, then, effects);
    }

    fn read(&mut self, now: Now, token: Token, batches: Bytes, effects: &mut Vec<Effect>) {
        match self.readings.remove(&token) {
            Some(Reading::Fetch {
                ticket,
                mut response,
                from,
            }) => {
                if batches.is_empty() && from < self.raft.log_start() {
                    // The log began to start behind it while the read waited.
                    response.log_start = self.raft.log_start();
                    response.snapshot = self.raft.newest_snapshot();
                }
                let records = batches;
                let answer = Answer::Fetch { response, records };
                effects.push(Effect::Reply { ticket, answer });
            }
            Some(Reading::Replay { from }) => self.replay_read(now, from, batches, effects),
            Some(Reading::Nobody) => {}
            Some(Reading::Snapshot { .. }) | None => {
                self.halt(
                    format!("the disk completed a read that was not asked: {token:?}"),
                    effects,
                );
            }
        }
    }

    fn snapshot_read(&mut self, token: Token, chunk: SnapshotChunk, effects: &mut Vec<Effect>) {
        let Some(Reading::Snapshot {
            ticket,
            mut response,
            position,
        }) = self.readings.remove(&token)
        else {
            self.halt(
                format!("the disk completed a read that was not asked: {token:?}"),
                effects,
            );
            return;
        };
        let refused = match chunk {
            SnapshotChunk::NotFound => ErrorCode::SnapshotNotFound,
            SnapshotChunk::OutOfRange => ErrorCode::PositionOutOfRange,
            // A follower tries again after a while (an error that it does not know how to handle).
            SnapshotChunk::Failed(sentence) => {
                tracing::error!("a snapshot cannot be served: {sentence}");
                ErrorCode::KafkaStorageError
            }
            SnapshotChunk::Bytes { size, bytes } => {
                let answer = Answer::Snapshot {
                    response,
                    size,
                    position,
                    bytes,
                };
                effects.push(Effect::Reply { ticket, answer });
                return;
            }
        };
        response.error = RaftError::Partition(refused);
        effects.push(Effect::Reply {
            ticket,
            answer: Answer::Raft(Response::FetchSnapshot(response)),
        });
    }

    /// Answers the fetches that wait for the disk: this node does not lead any more. What they
    /// would get may be cut off, and others' records written in its place, before it is read.
    pub(super) fn refuse_readings(&mut self, effects: &mut Vec<Effect>) {
        let hint = LeaderHint {
            epoch: self.raft.epoch(),
            ..LeaderHint::default()
        };
        for reading in self.readings.values_mut() {
            let fetch = matches!(reading, Reading::Fetch { .. });
            let waits = fetch.then(|| std::mem::replace(reading, Reading::Nobody));
            if let Some(Reading::Fetch {
                ticket,
                mut response,
                ..
            }) = waits
            {
                response.error = RaftError::Partition(ErrorCode::NotLeaderOrFollower);
                response.hint = hint.clone();
                response.high_watermark = -1;
                let answer = Answer::Raft(Response::Fetch(response));
                effects.push(Effect::Reply { ticket, answer });
            }
        }
    }

    pub(super) fn serve_fetch(
        &mut self,
        ticket: Ticket,
        response: FetchResponse,
        range: Range,
        effects: &mut Vec<Effect>,
    ) {
        if let Some(records) = self.tail.read(range.from, range.until, range.max_bytes) {
            let answer = Answer::Fetch { response, records };
            effects.push(Effect::Reply { ticket, answer });
            return;
        }
        if self.readings.len() >= READINGS_MAX {
            // No records now: the replica asks again.
            let answer = Answer::Raft(Response::Fetch(response));
            effects.push(Effect::Reply { ticket, answer });
            return;
        }
        let from = range.from;
        let reading = Reading::Fetch {
            ticket,
            response,
            from,
        };
        self.submit_read(range, reading, effects);
    }

    pub(super) fn submit_read(
        &mut self,
        range: Range,
        purpose: Reading,
        effects: &mut Vec<Effect>,
    ) {
        let token = self.token();
        self.readings.insert(token, purpose);
        effects.push(Effect::Disk(Command::Read {
            token,
            from: range.from,
            until: range.until,
            max_bytes: range.max_bytes,
        }));
    }

    pub(super) fn serve_snapshot(
        &mut self,
        ticket: Ticket,
        mut response: FetchSnapshotResponse,
        position: i64,
        max_bytes: usize,
        effects: &mut Vec<Effect>,
    ) {
        if self.readings.len() >= READINGS_MAX {
            response.error = RaftError::Top(ErrorCode::BrokerNotAvailable);
            let answer = Answer::Raft(Response::FetchSnapshot(response));
            effects.push(Effect::Reply { ticket, answer });
            return;
        }
        let token = self.token();
        let id = response.id;
        self.readings.insert(
            token,
            Reading::Snapshot {
                ticket,
                response,
                position,
            },
        );
        effects.push(Effect::Disk(Command::ReadSnapshot {
            token,
            id,
            position,
            max_bytes,
        }));
    }
}
