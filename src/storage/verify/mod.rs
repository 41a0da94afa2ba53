//! A metadata directory verified as a whole: every file read, nothing changed, and what is found
//! told as data.
//!
//! Nothing here takes or deletes `.lock` or repairs anything, and the directory may be in use: then
//! the end of the log is where it was when it was opened. The rules are those of a start
//! (`recovery`), and more: a start reads what it needs, this reads everything, each record too.
//!
//! - `log` walks the segments and replays their records, and compares the state with every
//!   checkpoint on the way;
//! - `checkpoints` reads one checkpoint;
//! - `small` reads the small files beside them and compares them with the log;
//! - `indexes` and `names` only ever have notes: a start builds the one anew and ignores the other.

mod checkpoints;
mod indexes;
mod log;
mod names;
mod records;
mod small;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use self::log::LogCheck;
use super::commit_file::{self, COMMIT_FILE};
use super::directory::PARTITION_DIR;
use super::epoch_checkpoint::{self, EPOCH_CHECKPOINT_FILE};
use super::fault::{FaultKind, Result, StorageFault};
use super::lock;
use super::reader::Source;
use crate::records::Record;
use crate::types::{Epoch, Offset, OffsetAndEpoch};

/// What the records add up to. It knows what they mean; this room does not.
pub trait State: Default {
    /// Applies the record at `offset`.
    ///
    /// # Errors
    /// Why the record makes no sense; the state is then unchanged.
    fn replay(&mut self, record: &Record, offset: Offset) -> std::result::Result<(), String>;

    /// Checks the laws of the state.
    ///
    /// # Errors
    /// The first that is broken.
    fn check(&self) -> std::result::Result<(), String>;

    /// Where the metadata transaction began that is open, if one is.
    fn open_transaction(&self) -> Option<Offset>;

    /// Something that `other` has differently, in one phrase; `None` when both would write the
    /// same snapshot.
    fn difference(&self, other: &Self) -> Option<String>;
}

/// How bad it is, and so what can be done. Ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Worth knowing; nothing has to be done. Not a finding.
    Note,
    /// What a crash leaves: a start repairs it, and nothing that was ever acknowledged is lost.
    Torn,
    /// A file that is missing, cannot be used or contradicts another one.
    Wrong,
    /// Bytes of the log or of a checkpoint that were good once and are not any more, or are gone.
    Rot,
}

impl Severity {
    /// Its name, as it is printed.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Torn => "torn",
            Self::Wrong => "wrong",
            Self::Rot => "rot",
        }
    }
}

/// One thing that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// The rule that is broken; a name that stays.
    pub check: &'static str,
    /// The file or directory.
    pub path: PathBuf,
    /// Where in the file, in bytes.
    pub position: Option<u64>,
    /// Where in the log; inside a checkpoint, the place of the record there.
    pub offset: Option<Offset>,
    /// One sentence that names the file and the place.
    pub what: String,
    /// What to do, in one sentence.
    pub advice: String,
}

impl Finding {
    fn new(severity: Severity, check: &'static str, path: &Path, what: impl Into<String>) -> Self {
        Self {
            severity,
            check,
            path: path.to_path_buf(),
            position: None,
            offset: None,
            what: what.into(),
            advice: String::new(),
        }
    }

    const fn at(mut self, position: u64, offset: Offset) -> Self {
        self.position = Some(position);
        self.offset = Some(offset);
        self
    }

    fn advise(mut self, advice: impl Into<String>) -> Self {
        self.advice = advice.into();
        self
    }
}

/// A checkpoint that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedCheckpoint {
    /// The file.
    pub path: PathBuf,
    /// Its id; 0-0 for `bootstrap.checkpoint`.
    pub id: OffsetAndEpoch,
    /// Its size in bytes.
    pub bytes: u64,
    /// Metadata records in it.
    pub records: u64,
    /// It is whole and no copy of another, its records can be read and lead to a lawful state.
    pub sound: bool,
    /// The log, replayed to its end offset, gave the same.
    pub equals_log: bool,
}

/// The log as it was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckedLog {
    /// Segment files.
    pub segments: usize,
    /// Their bytes.
    pub bytes: u64,
    /// The first offset.
    pub start: Offset,
    /// Behind the last whole batch.
    pub end: Offset,
    /// Batches with a good checksum.
    pub batches: u64,
    /// Records in them, control records included.
    pub records: u64,
    /// The epoch of the last batch.
    pub epoch: Option<Epoch>,
}

/// Everything that was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The path as it was given.
    pub path: PathBuf,
    /// A process holds the directory.
    pub in_use: bool,
    /// The log.
    pub log: CheckedLog,
    /// The checkpoints, ascending; `bootstrap.checkpoint` first.
    pub checkpoints: Vec<CheckedCheckpoint>,
    /// What is wrong, in the order in which it was found, then notes among them.
    pub findings: Vec<Finding>,
    /// Findings beyond a limit, which are only counted.
    pub left_out: u64,
    worst: Option<Severity>,
}

/// More findings than this are only counted: one broken file has no more to say.
const FINDINGS_MAX: usize = 1000;

impl Report {
    fn add(&mut self, finding: Finding) {
        self.worst = self.worst.max(Some(finding.severity));
        if self.findings.len() < FINDINGS_MAX {
            self.findings.push(finding);
        } else {
            self.left_out += 1;
        }
    }

    fn note(&mut self, check: &'static str, path: &Path, what: impl Into<String>) {
        let finding = Finding::new(Severity::Note, check, path, what);
        self.add(finding.advise("Nothing has to be done."));
    }

    /// The worst that was found; [`Severity::Note`] when all is sound.
    #[must_use]
    pub fn verdict(&self) -> Severity {
        let told = self.findings.iter().map(|finding| finding.severity).max();
        told.max(self.worst).unwrap_or(Severity::Note)
    }

    /// How many are of this severity, among those that are listed.
    #[must_use]
    pub fn count(&self, severity: Severity) -> usize {
        let of = |finding: &&Finding| finding.severity == severity;
        self.findings.iter().filter(of).count()
    }
}

/// Where things are.
#[derive(Debug)]
struct Place {
    /// The log directory, with `meta.properties` and `.lock`; `None` for a partition's directory
    /// that was copied alone.
    root: Option<PathBuf>,
    /// The partition's directory.
    partition: PathBuf,
}

impl Place {
    fn of(path: &Path) -> Self {
        let inner = path.join(PARTITION_DIR);
        let is_partition = path.file_name().is_some_and(|name| name == PARTITION_DIR);
        let has_meta = |dir: &Path| {
            dir.join(super::meta_properties::META_PROPERTIES_FILE)
                .exists()
        };
        if is_partition {
            // A relative `__cluster_metadata-0` lies in the current directory.
            let parent = path.parent().map(|parent| match parent.as_os_str() {
                empty if empty.is_empty() => PathBuf::from("."),
                _ => parent.to_path_buf(),
            });
            Self {
                root: parent.filter(|root| has_meta(root)),
                partition: path.to_path_buf(),
            }
        } else if inner.is_dir() || has_meta(path) {
            Self {
                root: Some(path.to_path_buf()),
                partition: inner,
            }
        } else {
            Self {
                root: None,
                partition: path.to_path_buf(),
            }
        }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.partition.join(name)
    }
}

/// A fault as a finding. What helps is the advice then, and told once.
fn of_fault(check: &'static str, fault: StorageFault) -> Finding {
    let copy = || "Put the file back from a copy if there is one.".to_owned();
    let advice = fault.help.unwrap_or_else(copy);
    Finding::new(Severity::Wrong, check, &fault.path, fault.sentence).advise(advice)
}

/// What was read; `None` and a finding when what has the file's name is none.
///
/// # Errors
/// Any other fault.
fn usable<T>(report: &mut Report, check: &'static str, read: Result<T>) -> Result<Option<T>> {
    match read {
        Ok(value) => Ok(Some(value)),
        Err(fault) if fault.kind == FaultKind::Damaged => {
            report.add(of_fault(check, fault));
            Ok(None)
        }
        Err(fault) => Err(fault),
    }
}

/// Verifies the log directory, or the directory `__cluster_metadata-0`, at `path`. `progress` is
/// told how many bytes there are and how many of them were read.
///
/// # Errors
/// When there is no such directory, or the operating system refuses a read: then nothing is known.
pub fn verify<S: State>(path: &Path, progress: &mut dyn FnMut(u64, u64)) -> Result<Report> {
    if path.is_file() {
        return Err(small::not_a_directory(path));
    }
    let place = Place::of(path);
    let mut report = Report {
        path: path.to_path_buf(),
        ..Report::default()
    };
    if let Some(root) = &place.root {
        report.in_use = usable(&mut report, "lock", lock::is_held(root))?.unwrap_or_default();
    }
    if !place.partition.exists()
        && let Some(finding) = small::gone(&place)
    {
        report.add(finding);
        return Ok(report);
    }
    // Before the log: what it says was in the log by then. What has to be ahead of the log is read
    // behind it.
    let mark = commit_file::read(&place.file(COMMIT_FILE));
    let mark = usable(&mut report, "commit-mark", mark)?.unwrap_or(commit_file::Found::Absent);
    let epochs = epoch_checkpoint::read(&place.file(EPOCH_CHECKPOINT_FILE));
    let epochs = usable(&mut report, "epochs", epochs)?.unwrap_or_default();
    let source = Source::open(path)?;
    for fault in &source.unusable {
        usable(&mut report, "file", Err::<(), _>(fault.clone()))?;
    }
    report.log.segments = source.segments.len();
    report.log.bytes = source.segments.iter().map(|file| file.bytes).sum();
    let mut check = LogCheck::<S>::new(&source, &place, &mut report, progress);
    check.run()?;
    let facts = check.facts();
    small::check(
        &mut report,
        &place,
        &source,
        &facts,
        (&mark, epochs.as_deref()),
    )?;
    names::check(&mut report, &place, &source);
    Ok(report)
}
