//! What a start makes of the partition's directory.
//!
//! First everything is read and judged ([`examine`]); nothing is changed, so that a refusal leaves
//! the directory as it was. Then what was found to be safe is done ([`Plan::apply`]): leftovers are
//! removed, a torn tail is cut, a log that is behind its snapshot begins anew there.
//!
//! Rules, beside those on torn tails and rot in [`segments`]:
//! - what is known to have been durable must be there: below the commit offset of `kraftd-commit`,
//!   and below the offset at which the log was closed cleanly (a `.snapshot` file names it);
//! - a log that has records needs its `quorum-state`, else this node could vote twice in an epoch;
//! - a log that does not begin at 0 needs a snapshot;
//! - a damaged snapshot, or one that was copied to another end, is left aside only if an older one,
//!   or the log from 0, covers it;
//! - a snapshot ahead of the log takes its place only if a leader can have sent it ([`takeover`]),
//!   and proves that bad bytes below its end are no torn tail.

mod choice;
pub(crate) mod segments;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use tracing::{info, warn};

use self::segments::{Cut, FoundLog, RESTORE, rot};
use super::atomic;
use super::commit_file::{self, COMMIT_FILE, CommitMark, Found};
use super::epoch_checkpoint::{self, EPOCH_CHECKPOINT_FILE};
use super::fault::{FaultKind, IoContext as _, Result, StorageFault};
use super::listing::{self, Listing};
use super::log::{Limits, Log, remove_producer_snapshots_above, remove_segment};
use super::partition_metadata::{self, PARTITION_METADATA_FILE};
use super::quorum_state::{self, QUORUM_STATE_FILE};
use super::segment::{Segment, cut, log_path};
use super::snapshot::{self, SnapshotFile, Summary};
use super::takeover::{self, Node};
use super::{HeldSnapshot, Recovered};
use crate::raft::{ControlRecord, QuorumState};
use crate::types::{Epoch, NodeId, Offset, OffsetAndEpoch, Uuid};

/// How a partition's directory is opened.
#[derive(Clone, Debug)]
pub struct OpenOptions {
    /// The directory `__cluster_metadata-0`; created if absent.
    pub dir: PathBuf,
    /// This node's id, if it is known.
    pub node_id: Option<NodeId>,
    /// The cluster's id, compared with the one that the directory remembers.
    pub cluster_id: String,
    /// `metadata.log.segment.bytes`.
    pub segment_bytes: u64,
    /// `metadata.log.segment.ms`.
    pub segment_ms: i64,
    /// `internal.metadata.delete.delay.millis`: how long a retired snapshot keeps its new name.
    pub snapshot_delete_delay_ms: u64,
    /// Start although `quorum-state` is gone: the operator knows that this node cannot vote twice.
    pub accept_lost_vote: bool,
}

/// What was found and what is to be done.
#[derive(Debug)]
pub(crate) struct Plan {
    dir: PathBuf,
    log: FoundLog,
    /// The log begins anew at this snapshot.
    restart_at: Option<OffsetAndEpoch>,
    quorum_state: Option<QuorumState>,
    snapshots: Vec<OffsetAndEpoch>,
    /// The bootstrap snapshot is there and stays.
    has_bootstrap: bool,
    base: Option<(Offset, Vec<ControlRecord>)>,
    leftovers: Vec<PathBuf>,
    has_partition_metadata: bool,
    /// What `kraftd-commit` said, or what it shall say.
    pub(crate) mark: CommitMark,
}

/// Reads and judges everything; changes nothing.
///
/// # Errors
/// One sentence for the first thing that does not allow a start.
pub(crate) fn examine(options: &OpenOptions) -> Result<Plan> {
    let dir = &options.dir;
    let listing = listing::list(dir)?;
    for path in &listing.files {
        atomic::check_plain(path)?;
    }
    let has_partition_metadata = partition_metadata::check(&dir.join(PARTITION_METADATA_FILE))?;
    let mark = read_mark(options)?;
    let quorum_state = quorum_state::read(&dir.join(QUORUM_STATE_FILE))?;
    check_presence(options, &listing, quorum_state.as_ref(), &mark)?;
    let is_snapshot = |offset| listing.checkpoints.iter().any(|id| id.offset == offset);
    let log = segments::read(dir, &listing.logs, is_snapshot)?;
    let snapshots = choice::choose(dir, &listing, &log)?;
    let restart_at = snapshots
        .last()
        .map(|(id, _)| *id)
        .filter(|id| is_ahead(*id, log.last_epoch(), log.end));
    if let (Some(base), None) = (log.restarted_at, restart_at) {
        let what = format!(
            "it begins at offset {base}, but the log ends at {}",
            log.end
        );
        return Err(rot(&log_path(dir, base), &what));
    }
    if let Some((id, Some(summary))) = snapshots.last() {
        check_ahead(options, &log, quorum_state.as_ref(), (*id, summary))?;
    }
    check_reach(dir, &listing, &log, restart_at, &mark)?;
    check_vote(dir, &log, quorum_state.as_ref())?;
    let (ids, summary) = split(snapshots);
    let base = match (ids.last(), summary) {
        (Some(id), Some(summary)) => Some((id.offset.prev(), summary.control)),
        _ => bootstrap_control(dir, &listing)?.map(|control| (Offset(-1), control)),
    };
    let start = restart_at.map_or(log.start, |id| id.offset);
    let bootstrap = OffsetAndEpoch::BOOTSTRAP;
    // The log has what an empty 0-0 held as soon as it has metadata records.
    let is_torn = log.newest.is_some() && has_empty_bootstrap(dir, &listing)?;
    let stays = |id: &OffsetAndEpoch| id.offset >= start && !(is_torn && *id == bootstrap);
    let gone = listing.checkpoints.iter().filter(|id| !stays(id));
    let gone = gone.map(|id| snapshot::path(dir, *id));
    let leftovers = listing.leftovers.iter().cloned().chain(gone).collect();
    Ok(Plan {
        has_bootstrap: listing.checkpoints.contains(&bootstrap) && stays(&bootstrap),
        dir: dir.clone(),
        log,
        restart_at,
        quorum_state,
        snapshots: ids.into_iter().filter(|id| id.offset >= start).collect(),
        base,
        leftovers,
        has_partition_metadata,
        mark,
    })
}

fn split(
    snapshots: Vec<(OffsetAndEpoch, Option<Summary>)>,
) -> (Vec<OffsetAndEpoch>, Option<Summary>) {
    let mut ids = Vec::with_capacity(snapshots.len());
    let mut newest = None;
    for (id, summary) in snapshots {
        ids.push(id);
        newest = summary;
    }
    (ids, newest)
}

fn read_mark(options: &OpenOptions) -> Result<CommitMark> {
    let path = options.dir.join(COMMIT_FILE);
    let nothing = CommitMark {
        sequence: 0,
        cluster_id: options.cluster_id.clone(),
        commit: OffsetAndEpoch::default(),
    };
    match commit_file::read(&path)? {
        Found::Absent => Ok(nothing),
        Found::Damaged => Err(StorageFault::new(
            FaultKind::Damaged,
            &path,
            commit_file::unreadable(&path),
        )),
        Found::Mark(mark) if mark.cluster_id != options.cluster_id => {
            // Whoever gives a copy of a cluster an id of its own edits meta.properties: Java goes
            // on with that. What was committed stays so under the new id.
            warn!(
                "{} held metadata of cluster {}; meta.properties says cluster.id {}, and that is \
                 what it is from now on. If it is not meant to be, stop this node and put the id \
                 {} back into meta.properties",
                options.dir.display(),
                mark.cluster_id,
                options.cluster_id,
                mark.cluster_id,
            );
            let cluster_id = options.cluster_id.clone();
            Ok(CommitMark { cluster_id, ..mark })
        }
        Found::Mark(mark) => Ok(mark),
    }
}

/// Refuses a directory that lost its log or its vote.
fn check_presence(
    options: &OpenOptions,
    listing: &Listing,
    quorum_state: Option<&QuorumState>,
    mark: &CommitMark,
) -> Result<()> {
    let dir = &options.dir;
    let has_snapshot = listing
        .checkpoints
        .iter()
        .any(|id| *id != OffsetAndEpoch::BOOTSTRAP);
    if listing.logs.is_empty() && (quorum_state.is_some() || mark.commit.offset > Offset::ZERO) {
        let sentence = format!(
            "{} has no log segment (*.log), although this node took part in a quorum: the metadata \
             is gone. {RESTORE}",
            dir.display()
        );
        return Err(StorageFault::new(FaultKind::Missing, dir, sentence));
    }
    let mut has_log = has_snapshot || listing.logs.iter().any(|base| *base > Offset::ZERO);
    for base in &listing.logs {
        let path = log_path(dir, *base);
        has_log |= path.metadata().context("read", &path)?.len() > 0;
    }
    if quorum_state.is_none() && has_log && !options.accept_lost_vote {
        let path = dir.join(QUORUM_STATE_FILE);
        let sentence = format!(
            "{} is missing, although the log has records: without it this node could vote twice in \
             one epoch. Restore the file, or start once with --accept-lost-vote if no election \
             took place since it was lost.",
            path.display()
        );
        return Err(StorageFault::new(FaultKind::Missing, &path, sentence));
    }
    Ok(())
}

/// Whether a log that ends at `end`, in the epoch `last`, has to begin anew at the snapshot, as
/// Java decides it.
pub(crate) fn is_ahead(id: OffsetAndEpoch, last: Option<Epoch>, end: Offset) -> bool {
    match last {
        None => id.offset > end,
        Some(epoch) => id.epoch > epoch || (id.epoch == epoch && id.offset > end),
    }
}

/// Refuses a snapshot ahead of the log, unless a take-over can have left it there.
fn check_ahead(
    options: &OpenOptions,
    log: &FoundLog,
    state: Option<&QuorumState>,
    (id, summary): (OffsetAndEpoch, &Summary),
) -> Result<()> {
    let path = snapshot::path(&options.dir, id);
    if let Some(cut) = log.cut.as_ref().filter(|_| log.end < id.offset) {
        // The log is synced before a snapshot is fetched, so that this was never a torn tail.
        let what = format!(
            "it is bad from byte {} on (offset {}: {}), but {} says that everything below offset \
             {} was committed",
            cut.bytes,
            log.end,
            cut.fault,
            path.display(),
            id.offset
        );
        return Err(rot(&log_path(&options.dir, cut.base), &what));
    }
    let records = summary.control.iter();
    let records = records.chain(log.control.iter().map(|(_, record)| record));
    let mut voters = records.filter_map(|record| match record {
        ControlRecord::Voters(voters) => Some(voters.as_slice()),
        _ => None,
    });
    let node = Node {
        id: options.node_id,
        state,
        voters: voters.next_back(),
    };
    let end = log.ending();
    let Some(why) = takeover::contradiction(id, summary.last_timestamp, &end, &node) else {
        return Ok(());
    };
    let sentence = takeover::sentence(&path, id, &end, &why);
    let sentence = format!("{sentence} {}", takeover::ADVICE);
    Err(StorageFault::new(FaultKind::Damaged, &path, sentence))
}

/// Refuses a log that ends before something that is known to have been in it, or that has another
/// record there.
fn check_reach(
    dir: &Path,
    listing: &Listing,
    log: &FoundLog,
    restart_at: Option<OffsetAndEpoch>,
    mark: &CommitMark,
) -> Result<()> {
    let end = restart_at.map_or(log.end, |id| id.offset);
    let what = log.cut.as_ref().map_or_else(
        || format!("the log ends at offset {end}"),
        |cut| {
            format!(
                "the log is bad from byte {} on (offset {}: {})",
                cut.bytes, log.end, cut.fault
            )
        },
    );
    let path = log
        .segments
        .last()
        .map_or_else(|| dir.to_path_buf(), |segment| log_path(dir, segment.base));
    let commit = mark.commit;
    if end < commit.offset {
        let what = format!(
            "{what}, but everything below offset {} was committed",
            commit.offset
        );
        return Err(rot(&path, &what));
    }
    if let Some(epoch) = log.epoch_at(commit.offset.prev())
        && restart_at.is_none()
        && epoch != commit.epoch
    {
        let what = format!(
            "the record at offset {} has epoch {epoch}, but the committed one had epoch {}",
            commit.offset.prev(),
            commit.epoch
        );
        return Err(rot(&path, &what));
    }
    if let Some(closed) = listing.closed_at.last()
        && *closed > end
    {
        let what = format!("{what}, but it was closed cleanly at offset {closed}");
        return Err(rot(&path, &what));
    }
    // An emptied log file leaves nothing else to compare with.
    let checkpoint = dir.join(EPOCH_CHECKPOINT_FILE);
    if log.epochs.is_empty()
        && let Some(epochs) = epoch_checkpoint::read(&checkpoint)?
        && let Some((epoch, start)) = epochs.last()
        && takeover::is_emptied(*start, log.start, log.end, restart_at.is_some())
    {
        let what = format!(
            "it is empty, but {} says that epoch {epoch} began at offset {start}",
            checkpoint.display()
        );
        return Err(rot(&path, &what));
    }
    Ok(())
}

/// Refuses a quorum-state that is older than the log: its vote is not the last one.
fn check_vote(dir: &Path, log: &FoundLog, state: Option<&QuorumState>) -> Result<()> {
    let (Some(state), Some(&(epoch, start))) = (state, log.epochs.last()) else {
        return Ok(());
    };
    if state.epoch >= epoch {
        return Ok(());
    }
    let path = dir.join(QUORUM_STATE_FILE);
    let sentence = format!(
        "{} has epoch {}, but the log has epoch {epoch} from offset {start} on: the file is an old \
         copy, or the epoch in the log is damaged. Restore what is damaged; if the file is an old \
         copy, delete it and start once with --accept-lost-vote if no election took place since it \
         was lost.",
        path.display(),
        state.epoch
    );
    Err(StorageFault::new(FaultKind::Damaged, &path, sentence))
}

/// Whether a crash left the bootstrap snapshot without its bytes.
fn has_empty_bootstrap(dir: &Path, listing: &Listing) -> Result<bool> {
    let id = OffsetAndEpoch::BOOTSTRAP;
    let is_there = listing.checkpoints.contains(&id);
    Ok(is_there && SnapshotFile::open(&snapshot::path(dir, id))?.bytes() == 0)
}

/// The control records of the bootstrap snapshot, if there is one that is not empty.
fn bootstrap_control(dir: &Path, listing: &Listing) -> Result<Option<Vec<ControlRecord>>> {
    let id = OffsetAndEpoch::BOOTSTRAP;
    if !listing.checkpoints.contains(&id) {
        return Ok(None);
    }
    let file = SnapshotFile::open(&snapshot::path(dir, id))?;
    if file.bytes() == 0 {
        return Ok(None); // Warned of by whoever loads its records.
    }
    file.verify().map(|summary| Some(summary.control))
}

impl Plan {
    /// The directory of `node` in the newest voter set, if that names directories.
    pub(crate) fn voter_directory(&self, node: NodeId) -> Option<Uuid> {
        let base = self.base.iter().flat_map(|(_, records)| records);
        let behind = self.log.control.iter().map(|(_, record)| record);
        let mut voters = base.chain(behind).filter_map(|record| match record {
            ControlRecord::Voters(voters) => Some(voters),
            _ => None,
        });
        let own = voters
            .next_back()?
            .iter()
            .find(|voter| voter.key.id == node)?;
        Some(own.key.directory).filter(|id| !id.is_nil())
    }

    /// Puts the directory in order and opens the log.
    ///
    /// # Errors
    /// When the file system refuses; the next start begins again.
    pub(crate) fn apply(self, limits: Limits) -> Result<(Log, Recovered)> {
        let dir = &self.dir;
        if !dir.exists() {
            std::fs::create_dir_all(dir).context("create directory", dir)?;
            atomic::sync_parent(dir)?;
        }
        for leftover in &self.leftovers {
            info!(file = %leftover.display(), "removing a leftover");
            atomic::remove(leftover)?;
        }
        if !self.leftovers.is_empty() {
            atomic::sync_dir(dir)?;
        }
        if !self.has_partition_metadata {
            partition_metadata::write(&dir.join(PARTITION_METADATA_FILE))?;
        }
        if let Some(cut) = &self.log.cut {
            self.cut_tail(cut)?;
        }
        let mut log = self.log;
        let torn_bytes = log.cut.as_ref().map_or(0, |cut| cut.torn_bytes);
        if let Some(id) = self.restart_at {
            restart(dir, &log, id)?;
            log = FoundLog {
                start: id.offset,
                end: id.offset,
                ..FoundLog::default()
            };
        }
        let epochs = epochs(&log, &self.snapshots);
        let checkpoint = dir.join(EPOCH_CHECKPOINT_FILE);
        if epoch_checkpoint::read(&checkpoint)?.as_ref() != Some(&epochs) {
            epoch_checkpoint::write(&checkpoint, &epochs)?;
        }
        let (start, end) = (log.start, log.end);
        let covered = self.base.as_ref().map_or(Offset(-1), |(offset, _)| *offset);
        let base = self
            .base
            .into_iter()
            .flat_map(|(offset, records)| records.into_iter().map(move |record| (offset, record)));
        let behind = log
            .control
            .into_iter()
            .filter(|(offset, _)| *offset > covered);
        let bootstrap = self.has_bootstrap.then_some(OffsetAndEpoch::BOOTSTRAP);
        let held = bootstrap.into_iter().chain(self.snapshots.iter().copied());
        let recovered = Recovered {
            quorum_state: self.quorum_state,
            log_start: start,
            log_end: end,
            epochs: epochs.clone(),
            held: held.map(|id| hold(dir, id)).collect::<Result<_>>()?,
            log_bytes: log.segments.iter().map(|segment| segment.bytes).sum(),
            snapshots: self.snapshots,
            commit: (self.mark.commit.offset > Offset::ZERO).then_some(self.mark.commit),
            control: base.chain(behind).collect(),
            torn_bytes,
        };
        let log = Log::open(dir, limits, log.segments, start, epochs, end)?;
        Ok((log, recovered))
    }

    fn cut_tail(&self, tail: &Cut) -> Result<()> {
        let path = log_path(&self.dir, tail.base);
        warn!(
            file = %path.display(),
            "cutting a torn tail of {} bytes at byte {} (offset {}): {}",
            tail.torn_bytes,
            tail.bytes,
            self.log.end,
            tail.fault
        );
        for base in tail.dropped.iter().rev() {
            remove_segment(&log_path(&self.dir, *base))?;
            atomic::sync_dir(&self.dir)?;
        }
        let segment = Segment::open(&self.dir, tail.base, tail.bytes, &[])?;
        cut(&segment.file, tail.bytes).context("truncate", &path)
    }
}

/// Begins the log anew at a snapshot: the new segment first, so that a crash in between is
/// recognised and the restart done again.
fn restart(dir: &Path, log: &FoundLog, id: OffsetAndEpoch) -> Result<()> {
    warn!(
        "the log ends at offset {} and the newest snapshot is {}-{}: the log begins anew there",
        log.end, id.offset, id.epoch
    );
    drop(Segment::open(dir, id.offset, 0, &[])?);
    atomic::sync_dir(dir)?;
    for segment in log.segments.iter().rev() {
        // A segment with the new one's name held nothing below the snapshot: it is emptied.
        let path = log_path(dir, segment.base);
        if segment.base == id.offset {
            let old = Segment::open(dir, segment.base, 0, &[])?;
            cut(&old.file, 0).context("truncate", &path)?;
        } else {
            remove_segment(&path)?;
        }
        atomic::sync_dir(dir)?;
    }
    remove_producer_snapshots_above(dir, id.offset)
}

/// What retention has to know of a snapshot.
fn hold(dir: &Path, id: OffsetAndEpoch) -> Result<HeldSnapshot> {
    let file = SnapshotFile::open(&snapshot::path(dir, id))?;
    Ok(HeldSnapshot {
        id,
        bytes: file.bytes(),
        last_timestamp: file.last_timestamp(),
    })
}

/// The epochs of the log; of one without records, that of the snapshot which it begins at.
fn epochs(log: &FoundLog, snapshots: &[OffsetAndEpoch]) -> Vec<(Epoch, Offset)> {
    if !log.epochs.is_empty() {
        return log.epochs.clone();
    }
    let at_start = snapshots.iter().rev().find(|id| id.offset == log.start);
    at_start
        .map(|id| (id.epoch, id.offset))
        .into_iter()
        .collect()
}
