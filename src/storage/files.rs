//! The disk: one thread that writes and syncs in order, one that reads.
//!
//! Appends that wait together are written together and synced once. The commit mark is written in
//! place after them, only as far as the log is durable, and synced once a second: it may lag, it
//! is never ahead. Reads are handed over in order, so they see all appends submitted before them.

mod retired;
#[cfg(test)]
mod tests;
mod threads;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::commit_file::{COMMIT_FILE, CommitFile};
use super::epoch_checkpoint::{self, EPOCH_CHECKPOINT_FILE};
use super::fault::{FaultKind, Result, StorageFault};
use super::lock::DirLock;
use super::log::clean::Retired;
use super::log::{Limits, Log, remove_producer_snapshots_above};
use super::pace::pace;
use super::quorum_state::{self, QUORUM_STATE_FILE};
use super::recovery::{self, OpenOptions};
use super::segment::LogReader;
use super::snapshot::receive::{Received, Receiving};
use super::snapshot::{self, Outcome, SnapshotFile};
use super::{
    Command, Completion, HeldSnapshot, Recovered, SnapshotChunk, SnapshotOrder, SnapshotPiece,
};
use crate::types::{Epoch, OffsetAndEpoch, Token};
use retired::RetiredFiles;
use threads::{SnapshotThread, spawn};

/// Commands that may wait before [`Disk::submit`] blocks.
const COMMANDS_MAX: usize = 4096;
/// Reads that may wait before the disk thread reads by itself.
const READS_MAX: usize = 1024;
/// Appends are collected up to this many bytes before a sync.
const GROUP_BYTES_MAX: usize = 8 << 20;
/// What the thread that writes a snapshot adds to its nice value, which on Linux is its own.
const SNAPSHOT_NICE: i32 = 15;
/// How long the commit mark may be written and not synced.
const MARK_SYNC: Duration = Duration::from_secs(1);
/// How long a retired segment stays under its new name, as Java's `file.delete.delay.ms` for the
/// metadata log, which no configuration changes.
const SEGMENT_DELETE_DELAY: Duration = Duration::from_secs(60);

/// The handle of the disk thread.
#[derive(Debug)]
pub struct Disk {
    commands: SyncSender<Command>,
    backlog_bytes: Arc<AtomicUsize>,
    thread: Option<JoinHandle<()>>,
}

impl Disk {
    /// Recovers the directory and starts the threads. `locks` are held until the disk is closed.
    /// `tell` gets every completion, on one of the two threads; it must not block for long.
    ///
    /// # Errors
    /// When the directory is refused (nothing was changed then), or cannot be put in order.
    pub fn open(
        options: &OpenOptions,
        locks: Vec<DirLock>,
        tell: impl FnMut(Completion) + Send + 'static,
    ) -> Result<(Self, Recovered)> {
        let plan = recovery::examine(options)?;
        Self::start(options, plan, locks, tell)
    }

    pub(crate) fn start(
        options: &OpenOptions,
        plan: recovery::Plan,
        locks: Vec<DirLock>,
        tell: impl FnMut(Completion) + Send + 'static,
    ) -> Result<(Self, Recovered)> {
        let limits = Limits {
            segment_bytes: options.segment_bytes,
            segment_ms: options.segment_ms,
        };
        let mark = plan.mark.clone();
        let (log, recovered) = plan.apply(limits)?;
        let mark = CommitFile::open(&options.dir.join(COMMIT_FILE), mark)?;
        let teller = Arc::new(Teller(Mutex::new(Some(Box::new(tell)))));
        let reads = Reads {
            log: log.reader(),
            options: options.clone(),
            teller: Arc::clone(&teller),
        };
        let backlog_bytes = Arc::new(AtomicUsize::new(0));
        let (read_sender, read_receiver) = sync_channel(READS_MAX);
        let reader = reads.clone();
        let read_thread = spawn("kraftd-disk-read", &options.dir, move || {
            reader.run(&read_receiver);
        })?;
        let writer = Writer {
            options: options.clone(),
            epoch_written: log.epochs().last().map(|(epoch, _)| *epoch),
            durable: log.end(),
            log,
            mark,
            mark_wanted: None,
            mark_sync_at: None,
            retired: RetiredFiles::default(),
            reads,
            read_sender,
            read_thread: Some(read_thread),
            teller,
            backlog_bytes: Arc::clone(&backlog_bytes),
            receiving: None,
            snapshot: None,
            received: None,
            _locks: locks,
        };
        let (commands, receiver) = sync_channel(COMMANDS_MAX);
        let thread = spawn("kraftd-disk", &options.dir, move || writer.run(&receiver))?;
        let disk = Self {
            commands,
            backlog_bytes,
            thread: Some(thread),
        };
        Ok((disk, recovered))
    }

    /// Hands a command over. Blocks while very many wait; callers hold back their work by
    /// [`Self::backlog_bytes`] long before. After a failure or a close, commands are dropped.
    pub fn submit(&self, command: Command) {
        if let Command::Append { batches, .. } = &command {
            self.backlog_bytes
                .fetch_add(batches.len(), Ordering::Relaxed);
        }
        drop(self.commands.send(command));
    }

    /// Bytes of appends that are not durable yet.
    #[must_use]
    pub fn backlog_bytes(&self) -> usize {
        self.backlog_bytes.load(Ordering::Relaxed)
    }

    /// Waits for the threads to end; the way there is [`Command::Close`].
    pub fn join(mut self) {
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

/// The clock by which this thread paces its syncs; nothing else hangs on it.
#[expect(
    clippy::disallowed_methods,
    reason = "the disk thread paces its own syncs, and no decision of the core depends on it"
)]
fn now() -> Instant {
    Instant::now()
}

type Tell = Box<dyn FnMut(Completion) + Send>;

/// Where completions go. Nothing goes there behind the last one.
struct Teller(Mutex<Option<Tell>>);

impl std::fmt::Debug for Teller {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Teller")
    }
}

impl Teller {
    fn tell(&self, completion: Completion) {
        let mut tell = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let last = matches!(completion, Completion::Failed(_) | Completion::Closed);
        if let Some(tell) = tell.as_mut() {
            tell(completion);
        }
        if last {
            *tell = None;
        }
    }
}

/// Tells a failure when a disk thread panics: the process must not go on without its disk.
struct PanicGuard(Arc<Teller>);

impl Drop for PanicGuard {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let sentence = "A disk thread ended by a panic.".to_owned();
            self.0.tell(Completion::Failed(sentence));
        }
    }
}

/// What both threads need for reads.
#[derive(Clone, Debug)]
struct Reads {
    log: LogReader,
    options: OpenOptions,
    teller: Arc<Teller>,
}

impl Reads {
    fn run(&self, commands: &Receiver<Command>) {
        let _guard = PanicGuard(Arc::clone(&self.teller));
        while let Ok(command) = commands.recv() {
            if let Err(fault) = self.serve(command) {
                self.teller.tell(Completion::Failed(fault.sentence));
                return;
            }
        }
    }

    fn serve(&self, command: Command) -> Result<()> {
        match command {
            Command::Read {
                token,
                from,
                until,
                max_bytes,
            } => {
                let batches = self.log.read(from, until, max_bytes)?;
                self.teller.tell(Completion::Read { token, batches });
            }
            Command::ReadSnapshot {
                token,
                id,
                position,
                max_bytes,
            } => {
                // Nothing was lost by a read, and this node needs the file only at its next start,
                // which looks at it again: a follower is refused, the process goes on.
                let chunk = self
                    .read_snapshot(id, position, max_bytes)
                    .unwrap_or_else(|fault| SnapshotChunk::Failed(fault.sentence));
                self.teller.tell(Completion::SnapshotRead { token, chunk });
            }
            _ => {}
        }
        Ok(())
    }

    fn read_snapshot(
        &self,
        id: OffsetAndEpoch,
        position: i64,
        max_bytes: usize,
    ) -> Result<SnapshotChunk> {
        if id == OffsetAndEpoch::BOOTSTRAP {
            return Ok(SnapshotChunk::NotFound);
        }
        // It may be retired while a peer fetches it.
        match SnapshotFile::open_if_present(&snapshot::path(&self.options.dir, id))? {
            Some(file) => file.read(position, max_bytes),
            None => Ok(SnapshotChunk::NotFound),
        }
    }
}

fn not_written(id: OffsetAndEpoch, fault: StorageFault) -> Completion {
    let reason = fault.sentence;
    Completion::SnapshotNotWritten { id, reason }
}

/// The disk thread.
#[derive(Debug)]
struct Writer {
    options: OpenOptions,
    log: Log,
    /// Everything below is synced.
    durable: crate::types::Offset,
    /// The newest epoch in `leader-epoch-checkpoint`.
    epoch_written: Option<Epoch>,
    mark: CommitFile,
    /// A commit offset that is ahead of what is durable here.
    mark_wanted: Option<OffsetAndEpoch>,
    /// When the mark, which was written, has to be synced.
    mark_sync_at: Option<Instant>,
    /// Files that wait for their deletion.
    retired: RetiredFiles,
    reads: Reads,
    read_sender: SyncSender<Command>,
    read_thread: Option<JoinHandle<()>>,
    teller: Arc<Teller>,
    backlog_bytes: Arc<AtomicUsize>,
    /// Another node's snapshot that comes in.
    receiving: Option<Receiving>,
    /// Declared, and so dropped, before the locks.
    snapshot: Option<SnapshotThread>,
    received: Option<SnapshotThread>,
    _locks: Vec<DirLock>,
}

impl Writer {
    fn run(mut self, commands: &Receiver<Command>) {
        let teller = Arc::clone(&self.teller);
        let _guard = PanicGuard(Arc::clone(&teller));
        match self.serve_all(commands) {
            Ok(true) => {
                // The lock goes before the word: who hears it may open the directory again.
                drop(self);
                teller.tell(Completion::Closed);
            }
            Ok(false) => {}
            Err(fault) => teller.tell(Completion::Failed(fault.sentence)),
        }
    }

    /// True when it was closed, false when the handle was dropped.
    fn serve_all(&mut self, commands: &Receiver<Command>) -> Result<bool> {
        let mut waiting = None;
        loop {
            let command = match waiting.take() {
                Some(command) => Some(command),
                None => match self.wait(commands) {
                    Ok(command) => Some(command),
                    Err(RecvTimeoutError::Timeout) => None,
                    Err(RecvTimeoutError::Disconnected) => return Ok(false),
                },
            };
            match command {
                None => {}
                Some(Command::Close) => {
                    self.close()?;
                    return Ok(true);
                }
                Some(Command::Append { token, batches, .. }) => {
                    let bytes = batches.len();
                    self.log.append(batches)?;
                    waiting = self.group(token, bytes, commands)?;
                }
                Some(command) => self.serve(command)?,
            }
            self.sync_mark_if_due()?;
            self.retired.delete_due(now());
        }
    }

    fn wait(&self, commands: &Receiver<Command>) -> std::result::Result<Command, RecvTimeoutError> {
        let due = self.mark_sync_at.into_iter().chain(self.retired.next());
        match due.min() {
            Some(at) => commands.recv_timeout(at.saturating_duration_since(now())),
            None => commands.recv().map_err(|_| RecvTimeoutError::Disconnected),
        }
    }

    /// Adds the appends that wait behind the first, syncs once and tells them all. Returns the
    /// command that ended the group.
    fn group(
        &mut self,
        first: Token,
        first_bytes: usize,
        commands: &Receiver<Command>,
    ) -> Result<Option<Command>> {
        let mut tokens = vec![first];
        let mut bytes = first_bytes;
        let mut other = None;
        while bytes < GROUP_BYTES_MAX
            && let Ok(command) = commands.try_recv()
        {
            match command {
                Command::Append { token, batches, .. } => {
                    bytes += batches.len();
                    self.log.append(batches)?;
                    tokens.push(token);
                }
                Command::SaveCommit { commit } => self.save_commit(commit)?,
                command => {
                    other = Some(command);
                    break;
                }
            }
        }
        self.log.sync()?;
        self.durable = self.log.end();
        self.backlog_bytes.fetch_sub(bytes, Ordering::Relaxed);
        for token in tokens {
            self.teller.tell(Completion::Appended(token));
        }
        if let Some(commit) = self.mark_wanted.take() {
            self.save_commit(commit)?;
        }
        self.write_epochs()?;
        Ok(other)
    }

    fn serve(&mut self, command: Command) -> Result<()> {
        match command {
            Command::Truncate { token, end } => {
                if end < self.mark.commit().offset {
                    return Err(self.truncates_committed(end));
                }
                let removed_bytes = self.log.truncate(end)?;
                self.durable = self.log.end();
                self.epoch_written = self.log.epochs().last().map(|(epoch, _)| *epoch);
                self.teller.tell(Completion::Truncated {
                    token,
                    removed_bytes,
                });
            }
            Command::MoveLogStart { token, to } => self.move_log_start(token, to)?,
            Command::RestartLog { token, at } => self.restart_log(token, at)?,
            Command::ReceiveSnapshot(piece) => self.receive_snapshot(&piece)?,
            Command::SaveQuorumState { token, state } => {
                quorum_state::write(&self.options.dir.join(QUORUM_STATE_FILE), &state)?;
                self.teller.tell(Completion::QuorumStateSaved(token));
            }
            Command::SaveCommit { commit } => self.save_commit(commit)?,
            Command::Read { .. } | Command::ReadSnapshot { .. } => {
                match self.read_sender.try_send(command) {
                    Ok(()) => {}
                    // The reading thread is behind, or gone with a failure that was told.
                    Err(TrySendError::Full(command) | TrySendError::Disconnected(command)) => {
                        self.reads.serve(command)?;
                    }
                }
            }
            Command::WriteSnapshot(order) => self.write_snapshot(order),
            Command::Append { .. } | Command::Close => {}
        }
        Ok(())
    }

    fn move_log_start(&mut self, token: Token, to: OffsetAndEpoch) -> Result<()> {
        let retired = self.log.move_start(to)?;
        let removed_bytes = retired.log_bytes;
        self.delete_later(retired);
        self.teller.tell(Completion::LogStartMoved {
            token,
            removed_bytes,
        });
        Ok(())
    }

    fn delete_later(&mut self, retired: Retired) {
        let now = now();
        let delay = Duration::from_millis(self.options.snapshot_delete_delay_ms);
        self.retired.add(retired.snapshot_files, now, delay);
        self.retired
            .add(retired.segment_files, now, SEGMENT_DELETE_DELAY);
    }

    fn restart_log(&mut self, token: Token, at: OffsetAndEpoch) -> Result<()> {
        if at.offset < self.mark.commit().offset {
            return Err(self.truncates_committed(at.offset));
        }
        let retired = self.log.restart(at)?;
        self.durable = self.log.end();
        self.epoch_written = Some(at.epoch);
        self.delete_later(retired);
        self.teller.tell(Completion::LogRestarted { token });
        Ok(())
    }

    /// Takes a piece of another node's snapshot; a whole one is looked at beside everything else.
    fn receive_snapshot(&mut self, piece: &SnapshotPiece) -> Result<()> {
        if piece.position == 0 {
            // Who is still looking at a file of this name would name the new one: waited for.
            self.received = None;
        }
        let under_way = self.receiving.take();
        let dir = self.options.dir.clone();
        let id = piece.id;
        let received = match Receiving::take(&dir, under_way, piece)? {
            Received::Part(part) => {
                let end = part.bytes();
                self.receiving = Some(part);
                self.teller.tell(Completion::SnapshotPieceKept { id, end });
                return Ok(());
            }
            Received::Refused(why) => {
                let outcome = Err(why);
                self.teller
                    .tell(Completion::SnapshotReceived { id, outcome });
                return Ok(());
            }
            Received::All(received) => received,
        };
        // A start that finds the snapshot before the log began anew must not take the rest of the
        // log, which the leader does not have, for something that was lost.
        remove_producer_snapshots_above(&dir, id.offset)?;
        let teller = Arc::clone(&self.teller);
        let thread = spawn("kraftd-received", &self.options.dir, move || {
            let _guard = PanicGuard(Arc::clone(&teller));
            teller.tell(match received.finish(&dir) {
                Ok(outcome) => Completion::SnapshotReceived { id, outcome },
                Err(fault) => Completion::Failed(fault.sentence),
            });
        })?;
        self.received = Some(SnapshotThread {
            stop: None,
            thread: Some(thread),
        });
        Ok(())
    }

    /// Writes the file beside everything else: appends and reads do not wait for it.
    fn write_snapshot(&mut self, order: SnapshotOrder) {
        let dir = self.options.dir.clone();
        let teller = Arc::clone(&self.teller);
        let (stop, pace) = pace();
        let id = order.id;
        let spawned = spawn("kraftd-snapshot", &self.options.dir, move || {
            let _guard = PanicGuard(Arc::clone(&teller));
            // Requests are waited for, a snapshot is not: it takes what they leave.
            let _ = rustix::process::nice(SNAPSHOT_NICE);
            match snapshot::write(&dir, &order, pace) {
                Ok(Outcome::Whole(bytes)) => {
                    teller.tell(Completion::SnapshotWritten(HeldSnapshot {
                        id: order.id,
                        bytes,
                        last_timestamp: Some(order.last_timestamp),
                    }));
                }
                Ok(Outcome::GivenUp) => {}
                // The part is deleted, and what it had to cover stays in the log: a disk without
                // room for a snapshot may have room for the log.
                Ok(Outcome::Unwritten(fault)) => teller.tell(not_written(order.id, fault)),
                Err(fault) => teller.tell(Completion::Failed(fault.sentence)),
            }
        });
        match spawned {
            Ok(thread) => {
                self.snapshot = Some(SnapshotThread {
                    stop: Some(stop),
                    thread: Some(thread),
                });
            }
            Err(fault) => self.teller.tell(not_written(id, fault)),
        }
    }

    /// Writes the mark, as far as the log below it is durable.
    fn save_commit(&mut self, commit: OffsetAndEpoch) -> Result<()> {
        if commit.offset > self.durable {
            self.mark_wanted = Some(commit);
            return Ok(());
        }
        if commit.offset > self.mark.commit().offset {
            self.mark.write(commit)?;
            self.mark_sync_at.get_or_insert_with(|| now() + MARK_SYNC);
        }
        Ok(())
    }

    fn sync_mark_if_due(&mut self) -> Result<()> {
        if self.mark_sync_at.is_some_and(|at| at <= now()) {
            self.mark.sync()?;
            self.mark_sync_at = None;
        }
        Ok(())
    }

    fn write_epochs(&mut self) -> Result<()> {
        let newest = self.log.epochs().last().map(|(epoch, _)| *epoch);
        if newest != self.epoch_written {
            let path = self.options.dir.join(EPOCH_CHECKPOINT_FILE);
            epoch_checkpoint::write(&path, self.log.epochs())?;
            self.epoch_written = newest;
        }
        Ok(())
    }

    fn close(&mut self) -> Result<()> {
        // Reads that were submitted before are answered first.
        let (nowhere, _) = sync_channel(0);
        self.read_sender = nowhere;
        if let Some(thread) = self.read_thread.take() {
            drop(thread.join());
        }
        self.log.close()?;
        self.mark.sync()
    }

    fn truncates_committed(&self, end: crate::types::Offset) -> StorageFault {
        let dir = &self.options.dir;
        let sentence = format!(
            "Refusing to cut the log in {} to offset {end}: everything below offset {} is known to \
             be committed, so the leader that asks for this lost committed metadata; restore that \
             leader's directory or elect this node.",
            dir.display(),
            self.mark.commit().offset
        );
        StorageFault::new(FaultKind::Damaged, dir, sentence)
    }
}
