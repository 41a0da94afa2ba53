//! The metadata records that lead to an offset or a moment: the newest checkpoint that ends at or
//! below it, then the log.

use std::fmt;
use std::path::{Path, PathBuf};

use super::super::fault::{FaultKind, Result, StorageFault};
use super::survey::{Survey, survey};
use super::walk::{Damage, Item, LogWalk, Walk};
use super::{MetadataFile, Role, Source, SourceKind};
use crate::records::VersionedRecord;
use crate::records::batch::{Batch, RawRecord, Records};
use crate::records::control::ControlRecord;
use crate::types::{Epoch, Offset, OffsetAndEpoch, Timestamp};

/// How far to replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// Everything that there is.
    Newest,
    /// Up to this offset, inclusive.
    Offset(Offset),
    /// Up to the last batch of the log whose timestamp is at or before this.
    Time(Timestamp),
}

/// One metadata record.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The offset to replay it at: its own in the log; of a checkpoint's records, the last offset
    /// that the checkpoint covers.
    pub offset: Offset,
    /// The timestamp in its batch.
    pub timestamp: Timestamp,
    /// The record.
    pub record: VersionedRecord,
    /// Whether it comes from the checkpoint.
    pub in_checkpoint: bool,
}

/// Offsets that can be replayed to, both inclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Covered {
    /// The first.
    pub first: Offset,
    /// The last.
    pub last: Offset,
    /// Timestamps of the batches of the log in there, first and last; `None` when the range is one
    /// checkpoint.
    pub times: Option<(Timestamp, Timestamp)>,
}

/// Why there is nothing to replay.
#[derive(Debug)]
pub enum Refusal {
    /// No checkpoint and log lead to the target.
    NotCovered {
        /// What can be replayed to, ascending; may be empty.
        covered: Vec<Covered>,
        /// One sentence that says it.
        sentence: String,
    },
    /// A file cannot be read, or holds what must not be there.
    Fault(StorageFault),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotCovered { sentence, .. } => f.write_str(sentence),
            Self::Fault(fault) => fault.fmt(f),
        }
    }
}

impl std::error::Error for Refusal {}

impl From<StorageFault> for Refusal {
    fn from(fault: StorageFault) -> Self {
        Self::Fault(fault)
    }
}

/// A way to begin: an empty state or a checkpoint, with the run of the log behind it.
#[derive(Clone, Copy, Debug)]
struct Base<'a> {
    checkpoint: Option<(&'a MetadataFile, OffsetAndEpoch)>,
    /// The first and last offset that can be replayed to, inclusive.
    first: Offset,
    last: Offset,
    run: Option<usize>,
}

fn bases<'a>(source: &'a Source, found: &Survey) -> Vec<Base<'a>> {
    let mut bases = Vec::new();
    if let Some(at) = found.runs.iter().position(|run| run.first == Offset::ZERO) {
        bases.push(Base {
            checkpoint: None,
            first: Offset::ZERO,
            last: found.runs[at].end.prev(),
            run: Some(at),
        });
    }
    for file in source.bootstrap.iter().chain(&source.checkpoints) {
        let Role::Checkpoint { id } = file.role else {
            continue;
        };
        // What `format` left is the state of nothing: the first leader writes it into the log.
        if id.offset == Offset::ZERO && source.kind != SourceKind::Checkpoint {
            continue;
        }
        let mut runs = found.runs.iter();
        let run = runs
            .position(|run| run.first <= id.offset && id.offset <= run.end && !run.is_behind(id));
        bases.push(Base {
            checkpoint: Some((file, id)),
            first: id.offset.prev(),
            last: run.map_or(id.offset, |at| found.runs[at].end).prev(),
            run,
        });
    }
    bases
}

/// Refuses a checkpoint that is not whole. Returns the timestamp of the newest record in it.
fn check_whole(file: &MetadataFile) -> Result<Option<Timestamp>> {
    let mut newest = None;
    for item in Walk::checkpoint(file) {
        let batch = match item? {
            Item::Batch { batch, .. } => batch,
            Item::Damage(damage) => {
                let sentence = format!("{}.", damage.sentence);
                return Err(StorageFault::new(FaultKind::Damaged, &file.path, sentence));
            }
        };
        newest = newest.or_else(|| header_time(&batch));
    }
    Ok(newest)
}

/// What the header of a checkpoint says of the newest record in it.
fn header_time(batch: &Batch) -> Option<Timestamp> {
    if !batch.is_control() {
        return None;
    }
    let record = batch.records().next()?.ok()?;
    match ControlRecord::decode(record.key.as_ref(), record.value.as_ref()) {
        Ok(ControlRecord::SnapshotHeader(header)) => {
            Some(Timestamp(header.last_contained_log_timestamp))
        }
        _ => None,
    }
}

/// The records up to a target, in order. After an error it ends.
#[derive(Debug)]
pub struct Replay<'a> {
    checkpoint: Option<(&'a MetadataFile, OffsetAndEpoch)>,
    last: Offset,
    skipped: Vec<StorageFault>,
    damage: Option<Box<Damage>>,
    bytes: u64,
    done_bytes: u64,
    newest: Option<(Epoch, Timestamp)>,
    stage: Stage<'a>,
    /// Of the batch that is being read.
    records: Option<(PathBuf, u64, Records)>,
}

#[derive(Debug)]
enum Stage<'a> {
    Checkpoint(Walk<'a>, &'a [MetadataFile]),
    /// Batches are skipped up to the one that holds `next`.
    Log {
        walk: LogWalk<'a>,
        next: Offset,
    },
    Done,
}

impl<'a> Replay<'a> {
    pub(super) fn new(source: &'a Source, target: Target) -> std::result::Result<Self, Refusal> {
        let time = match target {
            Target::Time(time) => Some(time),
            _ => None,
        };
        let found = survey(source, time)?;
        let mut bases = bases(source, &found);
        let mut skipped = Vec::new();
        if time.is_some() || target == Target::Newest {
            // Only checkpoints that are whole say how far is newest, and how far a moment is.
            bases.retain(|base| is_whole(base, &mut skipped));
        }
        let wanted = match target {
            Target::Newest => newest(&bases, &found),
            Target::Offset(offset) => Some(offset),
            Target::Time(time) => at_time(&bases, &found, time),
        };
        let is_new = found.runs.is_empty() && skipped.is_empty();
        if wanted.is_none() && target == Target::Newest && is_new {
            return Ok(Self::begin(source, &found, None, Offset(-1), skipped));
        }
        // The newest checkpoint first, the empty state last.
        bases.sort_by_key(|base| std::cmp::Reverse(base.checkpoint.map(|(_, id)| id)));
        while let Some(wanted) = wanted {
            let leads = |base: &Base<'_>| base.first <= wanted && wanted <= base.last;
            let Some(at) = bases.iter().position(leads) else {
                break;
            };
            let base = bases[at];
            if time.is_some() || target == Target::Newest || is_whole(&base, &mut skipped) {
                return Ok(Self::begin(source, &found, Some(base), wanted, skipped));
            }
            bases.remove(at);
        }
        if let Target::Offset(_) = target {
            bases.retain(|base| is_whole(base, &mut skipped));
        }
        Err(not_covered(source, target, &bases, &found, &skipped))
    }

    fn begin(
        source: &'a Source,
        found: &Survey,
        base: Option<Base<'a>>,
        last: Offset,
        skipped: Vec<StorageFault>,
    ) -> Self {
        let run = base.and_then(|base| base.run).map(|at| &found.runs[at]);
        let damage = match run {
            Some(run) if run.end.prev() == last => run.damage.clone(),
            Some(_) => None,
            None => found.damage.clone(),
        };
        let checkpoint = base.and_then(|base| base.checkpoint);
        let next = checkpoint.map_or(Offset::ZERO, |(_, id)| id.offset);
        let segments = if last < next {
            &[][..]
        } else {
            holding(source, next)
        };
        let log_bytes: u64 = segments.iter().map(|file| file.bytes).sum();
        let stage = match checkpoint {
            Some((file, _)) => Stage::Checkpoint(Walk::checkpoint(file), segments),
            None => Stage::Log {
                walk: LogWalk::new(segments),
                next,
            },
        };
        Self {
            checkpoint,
            last,
            skipped,
            damage,
            bytes: checkpoint.map_or(0, |(file, _)| file.bytes) + log_bytes,
            done_bytes: 0,
            newest: None,
            stage,
            records: None,
        }
    }

    /// The checkpoint that it begins with.
    #[must_use]
    pub fn checkpoint(&self) -> Option<OffsetAndEpoch> {
        self.checkpoint.map(|(_, id)| id)
    }

    /// The last offset that is replayed, inclusive; -1 when there is nothing at all.
    #[must_use]
    pub const fn last_offset(&self) -> Offset {
        self.last
    }

    /// Checkpoints that would have been used if they were whole, each with what is wrong.
    #[must_use]
    pub fn skipped(&self) -> &[StorageFault] {
        &self.skipped
    }

    /// What the log has behind [`Self::last_offset`], when that is not its good end. A torn tail
    /// means nothing; with rot, records are missing.
    #[must_use]
    pub fn damage(&self) -> Option<&Damage> {
        self.damage.as_deref()
    }

    /// Bytes to read at most, and bytes read so far.
    #[must_use]
    pub const fn progress(&self) -> (u64, u64) {
        (self.bytes, self.done_bytes)
    }

    /// Epoch and timestamp of the newest record so far: of the batch that was read last, or what
    /// the checkpoint says of the last record that it covers. `None` before there is one.
    #[must_use]
    pub const fn newest(&self) -> Option<(Epoch, Timestamp)> {
        self.newest
    }

    /// The next batch that holds something wanted.
    fn next_batch(&mut self) -> Result<Option<(PathBuf, u64, Batch)>> {
        loop {
            match &mut self.stage {
                Stage::Done => return Ok(None),
                Stage::Checkpoint(walk, segments) => {
                    let path = walk.file().path.clone();
                    match walk.next().transpose()? {
                        Some(Item::Batch { position, batch }) => {
                            self.done_bytes += batch.size() as u64;
                            if let (None, Some((_, id))) = (self.newest, self.checkpoint) {
                                self.newest = header_time(&batch).map(|time| (id.epoch, time));
                            }
                            return Ok(Some((path, position, batch)));
                        }
                        Some(Item::Damage(damage)) => return Err(changed(&damage)),
                        None => {
                            let next = self.checkpoint.map_or(Offset::ZERO, |(_, id)| id.offset);
                            let walk = LogWalk::new(segments);
                            self.stage = Stage::Log { walk, next };
                        }
                    }
                }
                Stage::Log { next, .. } if *next > self.last => self.stage = Stage::Done,
                Stage::Log { walk, next } => match walk.next().transpose()? {
                    None => self.stage = Stage::Done,
                    Some((_, Item::Damage(_))) => {}
                    Some((file, Item::Batch { position, batch })) => {
                        self.done_bytes += batch.size() as u64;
                        if batch.base_offset() <= *next && *next <= batch.last_offset() {
                            *next = batch.end_offset();
                            self.newest = Some((batch.epoch(), batch.max_timestamp()));
                            return Ok(Some((file.path.clone(), position, batch)));
                        }
                    }
                },
            }
        }
    }

    fn step(&mut self) -> Result<Option<Step>> {
        loop {
            let Some((_, _, records)) = &mut self.records else {
                let Some((path, position, batch)) = self.next_batch()? else {
                    return Ok(None);
                };
                if !batch.is_control() {
                    self.records = Some((path, position, batch.records()));
                }
                continue;
            };
            let Some(record) = records.next() else {
                self.records = None;
                continue;
            };
            let step = match record {
                Ok(record) => decode(record, self.checkpoint_offset(), self.last),
                Err(fault) => Err(fault.to_string()),
            };
            match (step, &self.records) {
                (Ok(Some(step)), _) => return Ok(Some(step)),
                (Err(what), Some((path, position, _))) => {
                    return Err(unreadable(path, *position, &what));
                }
                _ => {}
            }
        }
    }

    /// While the checkpoint is read, the offset at which its records are replayed.
    fn checkpoint_offset(&self) -> Option<Offset> {
        let inside = matches!(self.stage, Stage::Checkpoint(..));
        let (_, id) = self.checkpoint.filter(|_| inside)?;
        Some(id.offset.prev())
    }
}

/// The metadata record in `record`; `None` behind the last that is wanted.
fn decode(
    record: RawRecord,
    checkpoint: Option<Offset>,
    last: Offset,
) -> std::result::Result<Option<Step>, String> {
    let offset = checkpoint.unwrap_or(record.offset);
    if offset > last {
        return Ok(None);
    }
    let value = record.value.unwrap_or_default();
    let decoded = VersionedRecord::decode(&value)
        .map_err(|fault| format!("record at offset {}: {fault}", record.offset))?;
    Ok(Some(Step {
        offset,
        timestamp: record.timestamp,
        record: decoded,
        in_checkpoint: checkpoint.is_some(),
    }))
}

impl Iterator for Replay<'_> {
    type Item = Result<Step>;

    fn next(&mut self) -> Option<Self::Item> {
        let step = self.step();
        if step.is_err() {
            self.stage = Stage::Done;
            self.records = None;
        }
        step.transpose()
    }
}

fn is_whole(base: &Base<'_>, skipped: &mut Vec<StorageFault>) -> bool {
    let Some((file, _)) = base.checkpoint else {
        return true;
    };
    check_whole(file)
        .map_err(|fault| skipped.push(fault))
        .is_ok()
}

/// The last offset that a start would know of.
fn newest(bases: &[Base<'_>], found: &Survey) -> Option<Offset> {
    let anew = found.runs.last().and_then(|run| {
        let ids = bases.iter().filter_map(|base| base.checkpoint);
        let ahead = ids.map(|(_, id)| id).filter(|id| run.is_behind(*id));
        ahead.max().map(|id| id.offset.prev())
    });
    anew.or_else(|| bases.iter().map(|base| base.last).max())
}

/// The last offset at or before a moment: of a batch of the log, or the end of a checkpoint.
fn at_time(bases: &[Base<'_>], found: &Survey, time: Timestamp) -> Option<Offset> {
    let ends = bases.iter().filter_map(|base| {
        let (file, _) = base.checkpoint?;
        let newest = check_whole(file).ok().flatten()?;
        (newest <= time).then_some(base.first)
    });
    ends.chain(found.at_time).max()
}

/// The segments from the one that holds `offset` on.
fn holding(source: &Source, offset: Offset) -> &[MetadataFile] {
    let begins =
        |file: &MetadataFile| matches!(file.role, Role::Segment { base } if base <= offset);
    let above = source.segments.partition_point(begins);
    &source.segments[above.saturating_sub(1)..]
}

fn unreadable(path: &Path, position: u64, what: &str) -> StorageFault {
    let sentence = format!("{}: the batch at byte {position}: {what}.", path.display());
    StorageFault::new(FaultKind::Unsupported, path, sentence)
}

/// A file that was whole a moment ago.
fn changed(damage: &Damage) -> StorageFault {
    let sentence = format!("{}; it changed while it was read.", damage.sentence);
    StorageFault::new(FaultKind::Damaged, &damage.path, sentence)
}

fn not_covered(
    source: &Source,
    target: Target,
    bases: &[Base<'_>],
    found: &Survey,
    skipped: &[StorageFault],
) -> Refusal {
    let mut covered: Vec<Covered> = Vec::new();
    let mut ranges: Vec<&Base<'_>> = bases.iter().collect();
    ranges.sort_by_key(|base| (base.first, base.last));
    for base in ranges {
        let times = base.run.map(|at| found.runs[at].times);
        match covered.last_mut() {
            Some(last) if base.first <= last.last => {
                last.last = last.last.max(base.last);
                last.times = last.times.or(times);
            }
            _ => covered.push(Covered {
                first: base.first,
                last: base.last,
                times,
            }),
        }
    }
    let wanted = match target {
        Target::Newest => "any state".to_owned(),
        Target::Offset(offset) => format!("offset {offset}"),
        Target::Time(time) => format!("the moment {}", moment(time)),
    };
    let mut sentence = format!(
        "{} does not cover {wanted}: {}",
        source.path.display(),
        told(&covered)
    );
    for fault in skipped {
        sentence.push_str("; ");
        sentence.push_str(fault.sentence.trim_end_matches('.'));
    }
    let damage = found.runs.iter().filter_map(|run| run.damage.as_deref());
    for damage in damage.chain(found.damage.as_deref()).take(3) {
        sentence.push_str("; ");
        sentence.push_str(&damage.sentence);
    }
    sentence.push('.');
    Refusal::NotCovered { covered, sentence }
}

/// As ISO-8601 and as the number that the files have.
fn moment(time: Timestamp) -> String {
    match jiff::Timestamp::from_millisecond(time.0) {
        Ok(moment) => format!("{moment:.3} ({} ms)", time.0),
        Err(_) => format!("{} ms", time.0),
    }
}

fn told(covered: &[Covered]) -> String {
    let range = |range: &Covered| {
        let offsets = match range.first == range.last {
            true => format!("{}", range.first),
            false => format!("{} to {}", range.first, range.last),
        };
        match range.times {
            Some((first, last)) => {
                let (first, last) = (moment(first), moment(last));
                format!("{offsets} (batches of the log from {first} to {last})")
            }
            None => offsets,
        }
    };
    match covered {
        [] => "its checkpoints and its log lead to no offset at all".to_owned(),
        some => {
            let ranges: Vec<String> = some.iter().map(range).collect();
            format!("it covers offsets {}", ranges.join(", "))
        }
    }
}
