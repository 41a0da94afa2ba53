//! The log from its first segment to its end, with every checkpoint on the way.
//!
//! The state begins empty when the log begins at 0, else with the first sound checkpoint that the
//! walk comes to. Bad bytes end it; the next checkpoint that the log reaches begins it again.

use std::collections::VecDeque;
use std::path::Path;

use super::checkpoints::{self, Loaded};
use super::indexes::{self, IndexCheck};
use super::records::{self, At};
use super::{Finding, Place, Report, Severity, State, usable};
use crate::raft::{ControlRecord, VoterNode};
use crate::records::batch::Batch;
use crate::records::control::ControlRecord as Wire;
use crate::storage::bootstrap::BOOTSTRAP_FILE;
use crate::storage::control;
use crate::storage::fault::Result;
use crate::storage::listing::checkpoint_name;
use crate::storage::meta_properties::{META_PROPERTIES_FILE, MetaProperties};
use crate::storage::quorum_state::{self, QUORUM_STATE_FILE};
use crate::storage::reader::{Damage, DamageKind, Item, MetadataFile, Role, Source};
use crate::storage::recovery::is_ahead;
use crate::storage::recovery::segments::{Around, RESTORE, misplaced_epoch};
use crate::storage::takeover::{self, LogEnd, Node};
use crate::types::{Epoch, NodeId, Offset, OffsetAndEpoch, Timestamp};

/// The finding about a torn tail, which `small` may turn into rot.
pub(super) const TAIL: &str = "log-tail";

/// About an empty bootstrap checkpoint whose records are in the log.
const REMOVED: &str = "The log holds what was in it, and the next start removes the file.";
const UNNEEDED: &str = "The log holds what was in it, and a start goes on without it.";
const CRASH: &str = "A crash leaves that: what is there was not synced, so nobody was ever told \
     that it is done, and the next start cuts it off.";

/// What the log says, for comparing the small files with it.
#[derive(Clone, Debug, Default)]
pub(super) struct Facts {
    pub(super) start: Offset,
    /// Behind the last whole batch.
    pub(super) end: Offset,
    /// Each epoch with its first offset.
    pub(super) epochs: Vec<(Epoch, Offset)>,
    /// The leader of the last epoch, if its begin is in the log.
    pub(super) leader: Option<(Epoch, NodeId)>,
    /// The newest voter set of log and checkpoints.
    pub(super) voters: Option<Vec<VoterNode>>,
    /// The newest sound checkpoint, 0-0 left out.
    pub(super) newest: Option<OffsetAndEpoch>,
    /// The timestamp up to which it covers records.
    covers: Timestamp,
    /// It stands where it cannot, beside this log.
    refused: bool,
    /// Epoch and timestamp of the last batch with metadata records.
    newest_batch: Option<(Epoch, Timestamp)>,
    /// Bad bytes that are no torn tail, or a gap.
    pub(super) rotten: bool,
    pub(super) torn: bool,
}

impl Facts {
    pub(super) fn last_epoch(&self) -> Option<Epoch> {
        self.epochs.last().map(|(epoch, _)| *epoch)
    }

    /// The snapshot at which the next start begins the log anew.
    pub(super) fn restart_at(&self) -> Option<OffsetAndEpoch> {
        let ahead = |id: &OffsetAndEpoch| is_ahead(*id, self.last_epoch(), self.end);
        self.newest.filter(ahead).filter(|_| !self.refused)
    }

    fn ending(&self) -> LogEnd {
        LogEnd {
            end: self.end,
            epoch: self.last_epoch(),
            newest: self.newest_batch,
        }
    }

    /// The epoch of the record before `end`, if the log has it.
    pub(super) fn epoch_before(&self, end: Offset) -> Option<Epoch> {
        if end <= self.start || end > self.end {
            return None;
        }
        let above = self.epochs.partition_point(|(_, start)| *start < end);
        above.checked_sub(1).map(|at| self.epochs[at].0)
    }
}

pub(super) struct LogCheck<'a, S> {
    source: &'a Source,
    place: &'a Place,
    report: &'a mut Report,
    progress: &'a mut dyn FnMut(u64, u64),
    bytes: u64,
    bytes_done: u64,
    /// The segment that is walked.
    file: Option<&'a MetadataFile>,
    index: Option<IndexCheck>,
    state: Option<S>,
    /// Checkpoints that the log did not reach yet, ascending.
    waiting: VecDeque<(&'a MetadataFile, OffsetAndEpoch)>,
    /// Something is missing before the next batch.
    gap: bool,
    /// Timestamp of the batch right before the next, if it has metadata records.
    before: Option<Timestamp>,
    /// The epoch before, unless it is not to be trusted.
    trusted_epoch: Option<Epoch>,
    /// Checkpoints of another epoch than the record before their end.
    strangers: Vec<(&'a Path, OffsetAndEpoch, Epoch)>,
    facts: Facts,
}

impl<'a, S: State> LogCheck<'a, S> {
    pub(super) fn new(
        source: &'a Source,
        place: &'a Place,
        report: &'a mut Report,
        progress: &'a mut dyn FnMut(u64, u64),
    ) -> Self {
        let bytes = source.files().map(|file| file.bytes).sum();
        Self {
            source,
            place,
            report,
            progress,
            bytes,
            bytes_done: 0,
            file: None,
            index: None,
            state: None,
            waiting: VecDeque::new(),
            gap: false,
            before: None,
            trusted_epoch: None,
            strangers: Vec::new(),
            facts: Facts::default(),
        }
    }

    pub(super) fn facts(self) -> Facts {
        self.facts
    }

    /// Reads everything.
    pub(super) fn run(&mut self) -> Result<()> {
        let source = self.source;
        let start = match source.segments.first().map(|file| file.role) {
            Some(Role::Segment { base }) => base,
            _ => Offset::ZERO,
        };
        (self.facts.start, self.facts.end) = (start, start);
        for file in source.bootstrap.iter().chain(&source.checkpoints) {
            let Role::Checkpoint { mut id } = file.role else {
                continue;
            };
            if source
                .bootstrap
                .as_ref()
                .is_some_and(|it| it.path == file.path)
            {
                id = OffsetAndEpoch::BOOTSTRAP;
            }
            if id.offset == Offset::ZERO || id.offset < start {
                self.load(file, id)?;
            } else {
                self.waiting.push_back((file, id));
            }
        }
        if start == Offset::ZERO && !source.segments.is_empty() {
            self.state = Some(S::default());
        }
        for item in source.walk_log() {
            let (file, item) = item?;
            self.enter(file)?;
            match item {
                Item::Batch { position, batch } => self.batch(file, position, &batch)?,
                Item::Damage(damage) => self.damage(file, &damage),
            }
        }
        self.finish()
    }

    fn load(&mut self, file: &'a MetadataFile, id: OffsetAndEpoch) -> Result<Loaded<S>> {
        let loaded = checkpoints::load(self.report, self.source, file, id)?;
        self.bytes_done += file.bytes;
        (self.progress)(self.bytes, self.bytes_done);
        if loaded.state.is_some() {
            for record in &loaded.control {
                self.learn(record);
            }
            if id.offset > Offset::ZERO {
                self.facts.newest = Some(id);
                self.facts.covers = loaded.covers;
            }
        }
        Ok(loaded)
    }

    fn learn(&mut self, record: &ControlRecord) {
        if let ControlRecord::Voters(voters) = record {
            self.facts.voters = Some(voters.clone());
        }
    }

    /// Begins a segment, if `file` is another one than before.
    fn enter(&mut self, file: &'a MetadataFile) -> Result<()> {
        if self.file.is_some_and(|before| before.path == file.path) {
            return Ok(());
        }
        self.leave()?;
        self.file = Some(file);
        let base = match file.role {
            Role::Segment { base } => base,
            Role::Checkpoint { .. } => Offset::ZERO,
        };
        self.index = usable(self.report, "index", IndexCheck::open(&file.path, base))?.flatten();
        Ok(())
    }

    fn leave(&mut self) -> Result<()> {
        if let Some(index) = self.index.take() {
            index.finish(self.report, self.facts.end);
        }
        match self.file.take() {
            Some(file) => {
                let checked = indexes::check_times(self.report, &file.path);
                usable(self.report, "time-index", checked).map(drop)
            }
            None => Ok(()),
        }
    }

    fn batch(&mut self, file: &'a MetadataFile, position: u64, batch: &Batch) -> Result<()> {
        let time = (!batch.is_control()).then(|| batch.max_timestamp());
        self.reach(batch.base_offset(), time)?;
        let at = At {
            path: &file.path,
            position,
            checkpoint: None,
        };
        let controls = match batch.is_control() {
            true => records::controls(self.report, at, batch).unwrap_or_default(),
            false => Vec::new(),
        };
        self.epoch(at, batch, &controls);
        for (offset, record) in controls {
            if matches!(record, Wire::SnapshotHeader(_) | Wire::SnapshotFooter(_)) {
                records::misplaced(self.report, at, offset, &record);
            }
            if let Some(record) = control::from_wire(record) {
                self.learn(&record);
            }
        }
        if !batch.is_control() {
            records::replay(self.report, at, batch, &mut self.state);
            self.facts.newest_batch = Some((batch.epoch(), batch.max_timestamp()));
        }
        if let Some(index) = &mut self.index {
            index.push(position, batch.header());
        }
        self.gap = false;
        self.before = time;
        self.facts.end = batch.end_offset();
        let log = &mut self.report.log;
        log.batches += 1;
        log.records += u64::from(batch.count());
        self.bytes_done += batch.size() as u64;
        (self.progress)(self.bytes, self.bytes_done);
        Ok(())
    }

    fn epoch(&mut self, at: At<'_>, batch: &Batch, controls: &[(Offset, Wire)]) {
        let leader = match controls.first() {
            Some((_, Wire::LeaderChange(change))) => Some(NodeId(change.leader_id)),
            _ => None,
        };
        if let Some(what) =
            misplaced_epoch(self.trusted_epoch, at.position, batch, leader.is_some())
        {
            let what = format!("{} is damaged: {what}.", at.path.display());
            let finding = Finding::new(Severity::Rot, "epoch", at.path, what);
            self.report
                .add(finding.at(at.position, batch.base_offset()).advise(RESTORE));
            self.facts.rotten = true;
        }
        if self.facts.last_epoch() != Some(batch.epoch()) {
            self.facts.epochs.push((batch.epoch(), batch.base_offset()));
        }
        if let Some(leader) = leader {
            self.facts.leader = Some((batch.epoch(), leader));
        }
        self.trusted_epoch = Some(batch.epoch());
    }

    fn damage(&mut self, file: &MetadataFile, damage: &Damage) {
        let restarted = self.is_restart(file, damage);
        let torn = damage.kind == DamageKind::TornTail;
        let severity = match damage.kind {
            DamageKind::TornTail if self.report.in_use => Severity::Note,
            DamageKind::TornTail => Severity::Torn,
            _ if restarted => Severity::Note,
            _ => Severity::Rot,
        };
        let (check, advice) = match (severity, torn) {
            (Severity::Note, true) => (TAIL, "The process that uses the directory is writing it."),
            (Severity::Note, false) => (
                "segment",
                "The log was about to begin anew at that checkpoint; the next start does it.",
            ),
            (_, true) => (TAIL, CRASH),
            _ => ("batch", RESTORE),
        };
        let finding = Finding::new(
            severity,
            check,
            &damage.path,
            format!("{}.", damage.sentence),
        );
        self.report
            .add(finding.at(damage.position, damage.offset).advise(advice));
        self.facts.torn |= torn;
        self.facts.rotten |= severity == Severity::Rot;
        self.trusted_epoch = None;
        if damage.kind != DamageKind::EpochFalls {
            self.state = None;
            self.gap = true;
            self.before = None;
        }
    }

    /// An empty segment behind a gap, at a checkpoint: see `recovery::segments`.
    fn is_restart(&self, file: &MetadataFile, damage: &Damage) -> bool {
        let is_last = self
            .source
            .segments
            .last()
            .is_some_and(|it| it.path == file.path);
        let at_checkpoint = |it: &MetadataFile| match (it.role, file.role) {
            (Role::Checkpoint { id }, Role::Segment { base }) => id.offset == base,
            _ => false,
        };
        damage.kind == DamageKind::Gap
            && is_last
            && file.bytes == 0
            && self.source.checkpoints.iter().any(at_checkpoint)
    }

    /// Comes to the checkpoints that end at or before `offset`, where a batch begins, whose
    /// metadata records, if it has any, are of the time `after`.
    fn reach(&mut self, offset: Offset, after: Option<Timestamp>) -> Result<()> {
        while let Some(&(file, id)) = self.waiting.front()
            && id.offset <= offset
        {
            self.waiting.pop_front();
            let loaded = self.load(file, id)?;
            if id.offset == offset {
                self.compare(file, id, loaded, after);
            } else if !self.gap {
                let what = format!(
                    "{} ends at offset {}, inside a batch of the log, which ends at {offset}.",
                    file.path.display(),
                    id.offset
                );
                self.contradicts(&file.path, what);
            }
        }
        Ok(())
    }

    fn contradicts(&mut self, path: &Path, what: String) {
        let finding = Finding::new(Severity::Wrong, "checkpoint-and-log", path, what);
        self.report.add(finding.advise(
            "One of the two is of another log, or a bug wrote it: keep a copy of both, and refill \
             the node from the other voters if they agree among themselves.",
        ));
    }

    /// The checkpoint is no state to go on from, and covers nothing. How bad that is, and what
    /// helps, the end tells.
    fn copied(&mut self, path: &Path, at: usize, what: String) {
        self.report.checkpoints[at].sound = false;
        let finding = Finding::new(Severity::Wrong, "checkpoint-and-log", path, what);
        self.report.add(finding);
    }

    fn compare(
        &mut self,
        file: &'a MetadataFile,
        id: OffsetAndEpoch,
        loaded: Loaded<S>,
        after: Option<Timestamp>,
    ) {
        let before = self.facts.epoch_before(id.offset).filter(|_| !self.gap);
        if let Some(epoch) = before.filter(|epoch| *epoch != id.epoch) {
            self.strangers.push((&file.path, id, epoch));
            return;
        }
        if let Some(before) = self.before.filter(|_| loaded.state.is_some())
            && let Some(what) =
                (Around { before, after }).misnamed(&file.path, id.offset, loaded.covers)
        {
            return self.copied(&file.path, loaded.at, what);
        }
        let (Some(ours), Some(theirs)) = (&self.state, &loaded.state) else {
            self.state = self.state.take().or(loaded.state);
            return;
        };
        let differs = match ours.open_transaction() {
            Some(begin) => Some(format!("a transaction is open there since offset {begin}")),
            None => ours.difference(theirs),
        };
        match differs {
            None => self.report.checkpoints[loaded.at].equals_log = true,
            Some(what) => {
                let what = format!(
                    "{} is not what the log adds up to at offset {}: {what}.",
                    file.path.display(),
                    id.offset
                );
                self.contradicts(&file.path, what);
            }
        }
    }

    fn finish(&mut self) -> Result<()> {
        self.leave()?;
        let end = self.facts.end;
        self.reach(end, None)?;
        let voters = self.facts.voters.clone();
        while let Some((file, id)) = self.waiting.pop_front() {
            self.load(file, id)?;
        }
        self.end_state();
        self.missing_begin();
        self.ahead(voters);
        for (path, id, epoch) in std::mem::take(&mut self.strangers) {
            if self.facts.restart_at() == Some(id) {
                continue;
            }
            let what = format!(
                "{} is of epoch {}, but the record before offset {} has epoch {epoch} in the log.",
                path.display(),
                id.epoch,
                id.offset
            );
            self.contradicts(path, what);
        }
        if let Some(id) = self.facts.restart_at() {
            let what = format!(
                "the checkpoint {}-{} is ahead of the log, which ends at offset {end}: a start \
                 begins the log anew there.",
                id.offset, id.epoch
            );
            self.report.note("restart", &self.source.path, what);
        }
        self.advise_on_checkpoints();
        let log = &mut self.report.log;
        (log.start, log.end) = (self.facts.start, self.facts.end);
        log.epoch = self.facts.last_epoch();
        Ok(())
    }

    /// The newest checkpoint, if it is ahead of a log whose voters are these.
    fn ahead(&mut self, voters: Option<Vec<VoterNode>>) {
        let facts = &self.facts;
        let Some(id) = facts.newest else { return };
        if facts.torn && !self.report.in_use && facts.end < id.offset {
            self.facts.refused = true; // `small` says that the tail is rot.
            return;
        }
        let state = quorum_state::read(&self.place.file(QUORUM_STATE_FILE));
        let meta = self.place.root.as_ref();
        let meta = meta.and_then(|root| {
            let read = MetaProperties::read(&root.join(META_PROPERTIES_FILE));
            read.ok().flatten()
        });
        let node = Node {
            id: meta.and_then(|meta| meta.node_id),
            state: state.as_ref().ok().and_then(Option::as_ref),
            voters: voters.as_deref().or(facts.voters.as_deref()),
        };
        let end = facts.ending();
        let Some(why) = takeover::contradiction(id, facts.covers, &end, &node) else {
            return;
        };
        let path = self.place.file(&checkpoint_name(id));
        let what = takeover::sentence(&path, id, &end, &why);
        let finding = Finding::new(Severity::Wrong, "checkpoint-and-log", &path, what);
        self.report.add(finding.advise(takeover::ADVICE));
        self.facts.refused = true;
    }

    fn end_state(&mut self) {
        let Some(state) = &self.state else { return };
        let last = self.source.segments.last();
        let path = last.map_or(&self.source.path, |file| &file.path);
        if let Err(law) = state.check() {
            let what = format!(
                "{}: up to offset {} the log makes a state that breaks a law: {law}.",
                path.display(),
                self.facts.end
            );
            let finding = Finding::new(Severity::Wrong, "state", path, what);
            self.report.add(finding.advise(
                "Its bytes are as they were written, so a bug did it: keep a copy and report it.",
            ));
        }
        if let Some(begin) = state.open_transaction() {
            let what = format!(
                "a metadata transaction is open since offset {begin}; the next active controller \
                 aborts it."
            );
            self.report.note("transaction", path, what);
        }
    }

    /// A log that does not begin at 0 needs a checkpoint.
    fn missing_begin(&mut self) {
        let start = self.facts.start;
        let has_checkpoint = |file: &MetadataFile| match file.role {
            Role::Checkpoint { id } => id.offset >= start,
            Role::Segment { .. } => false,
        };
        if start == Offset::ZERO || self.source.checkpoints.iter().any(has_checkpoint) {
            return;
        }
        let path = &self.source.path;
        let what = format!(
            "{} has no checkpoint from offset {start} on, where its log begins: the metadata \
             before that is gone.",
            path.display()
        );
        let finding = Finding::new(Severity::Rot, "log-start", path, what);
        self.report.add(finding.advise(RESTORE));
    }

    /// Now it is known what else holds what a damaged checkpoint held.
    fn advise_on_checkpoints(&mut self) {
        let facts = &self.facts;
        let usable = |id: OffsetAndEpoch| id.offset > Offset::ZERO && id.offset >= facts.start;
        let checkpoints = &self.report.checkpoints;
        for finding in &mut self.report.findings {
            if !finding.advice.is_empty() {
                continue;
            }
            let Some(own) = checkpoints.iter().find(|it| it.path == finding.path) else {
                continue;
            };
            let others = checkpoints
                .iter()
                .any(|it| it.sound && it.path != own.path && usable(it.id));
            let is_bootstrap = own.id.offset == Offset::ZERO;
            let has_records = match is_bootstrap {
                true => facts.newest_batch.is_some(),
                false => !facts.epochs.is_empty(),
            };
            let covered = (facts.start == Offset::ZERO || others)
                && !facts.rotten
                && own.id.offset <= facts.end
                && has_records;
            if own.bytes == 0 && covered && is_bootstrap {
                (finding.severity, finding.advice) = match own.path.ends_with(BOOTSTRAP_FILE) {
                    true => (Severity::Note, UNNEEDED.to_owned()),
                    false => (Severity::Torn, REMOVED.to_owned()),
                };
                continue;
            }
            finding.severity = finding.severity.max(Severity::Wrong);
            finding.advice = match (covered, is_bootstrap) {
                (true, true) => {
                    "The log holds what was in it: move the file away, or a start is refused."
                }
                (true, false) => {
                    "The log, from its begin or from another checkpoint on, covers it, and a start \
                     goes on without it: check the disk, then delete the file."
                }
                (false, true) if facts.epochs.is_empty() => {
                    "The log does not hold what was in it: format the directory again."
                }
                (false, _) => RESTORE,
            }
            .to_owned();
        }
    }
}
