//! One checkpoint: its frame, its name, its records, and the state that they make.

use super::records::{self, At};
use super::{CheckedCheckpoint, Finding, Report, Severity, State};
use crate::raft::ControlRecord;
use crate::records::batch::Batch;
use crate::records::control::ControlRecord as Wire;
use crate::storage::control;
use crate::storage::fault::Result;
use crate::storage::reader::{Item, MetadataFile, Source};
use crate::types::{Offset, OffsetAndEpoch, Timestamp};

/// What a checkpoint gave.
#[derive(Debug)]
pub(super) struct Loaded<S> {
    /// `None` unless it is sound.
    pub(super) state: Option<S>,
    /// `kraft.version` and voters.
    pub(super) control: Vec<ControlRecord>,
    /// Timestamp of the newest record that it covers.
    pub(super) covers: Timestamp,
    /// Where it is in [`Report::checkpoints`].
    pub(super) at: usize,
}

/// Reads the checkpoint `file`, whose id is `id`, and adds it to the report. Findings about bytes
/// get their advice later, when it is known what else covers it.
pub(super) fn load<S: State>(
    report: &mut Report,
    source: &Source,
    file: &MetadataFile,
    id: OffsetAndEpoch,
) -> Result<Loaded<S>> {
    let at = report.checkpoints.len();
    report.checkpoints.push(CheckedCheckpoint {
        path: file.path.clone(),
        id,
        bytes: file.bytes,
        records: 0,
        sound: false,
        equals_log: false,
    });
    let mut loading = Loading {
        file,
        id,
        state: Some(S::default()),
        control: Vec::new(),
        covers: Timestamp(0),
        records: 0,
        sound: true,
    };
    if file.bytes == 0 && id.offset == Offset::ZERO {
        report.add(empty(file));
    } else {
        loading.walk(report, source)?;
    }
    let Loading {
        state,
        control,
        covers,
        records,
        sound,
        ..
    } = loading;
    report.checkpoints[at].records = records;
    report.checkpoints[at].sound = sound;
    Ok(Loaded {
        state: state.filter(|_| sound),
        control,
        covers,
        at,
    })
}

/// What `format` left, without its bytes: they are in the log as soon as a leader was elected. How
/// bad that is, the log tells later.
fn empty(file: &MetadataFile) -> Finding {
    let what = format!(
        "{} is empty: it was torn when it was written.",
        file.path.display()
    );
    Finding::new(Severity::Note, "checkpoint", &file.path, what)
}

struct Loading<'a, S> {
    file: &'a MetadataFile,
    id: OffsetAndEpoch,
    state: Option<S>,
    control: Vec<ControlRecord>,
    covers: Timestamp,
    records: u64,
    sound: bool,
}

impl<S: State> Loading<'_, S> {
    fn walk(&mut self, report: &mut Report, source: &Source) -> Result<()> {
        for item in source.walk(self.file) {
            match item? {
                Item::Batch { position, batch } => self.batch(report, position, &batch),
                Item::Damage(damage) => {
                    let what = format!("{}.", damage.sentence);
                    let finding = Finding::new(Severity::Rot, "checkpoint", &self.file.path, what);
                    report.add(finding.at(damage.position, damage.offset));
                    self.sound = false;
                    return Ok(());
                }
            }
        }
        let Some(Err(law)) = self.state.as_ref().map(State::check) else {
            return Ok(());
        };
        let what = format!(
            "{}: its records make a state that breaks a law: {law}.",
            self.file.path.display()
        );
        self.wrong(report, "state", what);
        Ok(())
    }

    fn wrong(&mut self, report: &mut Report, check: &'static str, what: String) {
        self.sound = false;
        let finding = Finding::new(Severity::Wrong, check, &self.file.path, what);
        report.add(finding.advise(
            "Its bytes are as they were written: keep a copy and report it, then delete it.",
        ));
    }

    fn batch(&mut self, report: &mut Report, position: u64, batch: &Batch) {
        let at = At {
            path: &self.file.path,
            position,
            checkpoint: Some(self.id.offset.prev()),
        };
        if !batch.is_control() {
            self.records += u64::from(batch.count());
            self.sound &= records::replay(report, at, batch, &mut self.state);
            return;
        }
        let Some(controls) = records::controls(report, at, batch) else {
            self.sound = false;
            return;
        };
        for (offset, record) in controls {
            if matches!(record, Wire::LeaderChange(_)) {
                records::misplaced(report, at, offset, &record);
                self.sound = false;
            }
            if let Wire::SnapshotHeader(header) = &record {
                self.covers = Timestamp(header.last_contained_log_timestamp);
            }
            self.control.extend(control::from_wire(record));
        }
    }
}
