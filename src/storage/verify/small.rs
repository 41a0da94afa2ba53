//! The small files beside log and checkpoints, and what they say against them.

use std::path::Path;

use super::log::{Facts, TAIL};
use super::{Finding, Place, Report, Severity};
use crate::raft::QuorumState;
use crate::storage::commit_file::{self, COMMIT_FILE, CommitMark, Found};
use crate::storage::epoch_checkpoint::EPOCH_CHECKPOINT_FILE;
use crate::storage::fault::{FaultKind, Result, StorageFault};
use crate::storage::listing::numbered;
use crate::storage::meta_properties::{META_PROPERTIES_FILE, MetaProperties};
use crate::storage::partition_metadata::{self, PARTITION_METADATA_FILE};
use crate::storage::quorum_state::{self, QUORUM_STATE_FILE};
use crate::storage::reader::Source;
use crate::storage::recovery::segments::RESTORE;
use crate::storage::takeover;
use crate::storage::{atomic, presence};
use crate::types::ids::{base64url, is_reserved, parse_base64url};
use crate::types::{Epoch, Offset, quote};

pub(super) fn not_a_directory(path: &Path) -> StorageFault {
    let sentence = format!(
        "{} is a file, and only a directory can be verified as a whole; `kraftd dump` reads a \
         single file.",
        path.display()
    );
    StorageFault::new(FaultKind::Missing, path, sentence)
}

/// That the metadata of a formatted directory is missing or emptied.
pub(super) fn gone(place: &Place) -> Option<Finding> {
    let root = place.root.as_deref()?;
    if !root.join(META_PROPERTIES_FILE).exists() {
        return None;
    }
    presence::check_metadata(root).err()?;
    let finding = Finding::new(Severity::Rot, "log", &place.partition, presence::gone(root));
    Some(finding.advise(presence::PUT_BACK))
}

/// Everything but log and checkpoints. `before` is what `kraftd-commit` and
/// `leader-epoch-checkpoint` said before the log was opened.
pub(super) fn check(
    report: &mut Report,
    place: &Place,
    source: &Source,
    facts: &Facts,
    before: (&Found, Option<&[(Epoch, Offset)]>),
) -> Result<()> {
    let (mark, epochs) = before;
    // Behind the log: its epoch is written before the log gets there.
    let state = quorum_state::read(&place.file(QUORUM_STATE_FILE));
    let mut small = Small {
        report,
        place,
        facts,
    };
    let mark = small.mark(mark)?;
    let took_part = state.as_ref().map_or(true, Option::is_some) || mark.is_some();
    small.presence(source, took_part);
    small.durable(source, mark.as_ref(), epochs);
    small.epochs(epochs)?;
    let meta = small.meta(mark.as_ref());
    small.quorum_state(state, meta.as_ref())?;
    small.partition_metadata()
}

struct Small<'a> {
    report: &'a mut Report,
    place: &'a Place,
    facts: &'a Facts,
}

impl Small<'_> {
    fn wrong(&mut self, check: &'static str, path: &Path, what: String, advice: &str) {
        let finding = Finding::new(Severity::Wrong, check, path, what);
        self.report.add(finding.advise(advice));
    }

    /// A fault's sentence says what helps; a read that failed is the caller's.
    fn fault(&mut self, check: &'static str, fault: StorageFault) -> Result<()> {
        if fault.kind == FaultKind::Io {
            return Err(fault);
        }
        self.report.add(super::of_fault(check, fault));
        Ok(())
    }

    fn mark(&mut self, found: &Found) -> Result<Option<CommitMark>> {
        let path = self.place.file(COMMIT_FILE);
        match found {
            Found::Absent => Ok(None),
            Found::Damaged => {
                self.wrong(
                    "commit-mark",
                    &path,
                    commit_file::damage(&path),
                    "If nothing else is found, delete the file: the next start writes a new one.",
                );
                Ok(None)
            }
            Found::Mark(mark) => {
                if !self.report.in_use && commit_file::good_slots(&path)? < 2 {
                    let what = format!(
                        "{} has one slot with a bad checksum, as a crash may leave it; the other \
                         says that everything below offset {} is committed.",
                        path.display(),
                        mark.commit.offset
                    );
                    self.report.note("commit-mark", &path, what);
                }
                Ok(Some(mark.clone()))
            }
        }
    }

    /// Nothing there, although there was something.
    fn presence(&mut self, source: &Source, took_part: bool) {
        let dir = &self.place.partition;
        if !source.segments.is_empty() {
            return;
        }
        if took_part {
            let what = format!(
                "{} has no log segment (*.log), although this node took part in a quorum: the \
                 metadata is gone.",
                dir.display()
            );
            let finding = Finding::new(Severity::Rot, "log", dir, what);
            self.report.add(finding.advise(RESTORE));
        } else if let Some(finding) = gone(self.place) {
            self.report.add(finding);
        }
    }

    /// What is known to have been in the log must be there.
    fn durable(
        &mut self,
        source: &Source,
        mark: Option<&CommitMark>,
        epochs: Option<&[(Epoch, Offset)]>,
    ) {
        let Some(last) = source.segments.last() else {
            return;
        };
        let facts = self.facts;
        let end = facts
            .restart_at()
            .map_or(facts.end, |id| facts.end.max(id.offset));
        let closed = source.others.iter().filter_map(|path| {
            let name = path.file_name()?.to_str()?;
            numbered(name, "snapshot")
        });
        let commit = mark.map(|mark| mark.commit.offset).unwrap_or_default();
        let begun = epochs
            .and_then(<[_]>::last)
            .filter(|_| facts.epochs.is_empty());
        let is_restarted = facts.restart_at().is_some();
        let covered = facts.newest.filter(|id| id.offset > facts.end);
        let known = if let Some(id) = covered.filter(|_| facts.torn && !self.report.in_use) {
            format!(
                "the checkpoint {}-{} says that everything below offset {} was committed",
                id.offset, id.epoch, id.offset
            )
        } else if end < commit {
            format!("everything below offset {commit} was committed")
        } else if let Some(closed) = closed.max().filter(|closed| *closed > end) {
            format!("it was closed cleanly at offset {closed}")
        } else if let Some((epoch, start)) = begun
            .filter(|(_, start)| takeover::is_emptied(*start, facts.start, facts.end, is_restarted))
        {
            format!("{EPOCH_CHECKPOINT_FILE} says that epoch {epoch} began at offset {start}")
        } else {
            self.commit_epoch(&last.path, mark);
            return;
        };
        let is_tail = |finding: &&mut Finding| finding.check == TAIL;
        if let Some(tail) = self.report.findings.iter_mut().rfind(is_tail) {
            tail.severity = Severity::Rot;
            tail.what = format!(
                "{}, but {known}: this is no torn tail.",
                tail.what.trim_end_matches('.')
            );
            tail.advice = RESTORE.to_owned();
            return;
        }
        let what = format!("{} ends at offset {end}, but {known}.", last.path.display());
        let finding = Finding::new(Severity::Rot, TAIL, &last.path, what);
        self.report.add(finding.at(last.bytes, end).advise(RESTORE));
    }

    fn commit_epoch(&mut self, path: &Path, mark: Option<&CommitMark>) {
        let Some(mark) = mark else { return };
        let commit = mark.commit;
        let Some(epoch) = self.facts.epoch_before(commit.offset) else {
            return;
        };
        if epoch == commit.epoch || self.facts.restart_at().is_some() {
            return;
        }
        let what = format!(
            "{}: the record at offset {} has epoch {epoch}, but the committed one had epoch {}.",
            path.display(),
            commit.offset.prev(),
            commit.epoch
        );
        let finding = Finding::new(Severity::Rot, "epoch", path, what);
        self.report.add(finding.advise(RESTORE));
    }

    fn epochs(&mut self, found: Option<&[(Epoch, Offset)]>) -> Result<()> {
        const REWRITTEN: &str =
            "Start kraftd once, which writes it anew from the log; Java trusts it.";
        let path = self.place.file(EPOCH_CHECKPOINT_FILE);
        let facts = self.facts;
        let Some(found) = found else {
            // Only looked at now: it may have been made since.
            if self.report.findings.iter().any(|known| known.path == path) {
                return Ok(()); // It is no file at all.
            }
            if atomic::read_small(&path, 1)?.is_some() {
                let what = format!("{} is not a list of epochs.", path.display());
                self.wrong("epochs", &path, what, REWRITTEN);
            } else if !facts.epochs.is_empty() && !self.report.in_use {
                let what = format!("{} is missing.", path.display());
                self.wrong("epochs", &path, what, REWRITTEN);
            }
            return Ok(());
        };
        if facts.rotten || facts.restart_at().is_some() {
            return Ok(()); // Nothing to compare with.
        }
        // Java moves the log's start to a checkpoint, and its first epoch with it, also where the
        // first segment begins before that. What was before is gone from the list.
        // While it is in use, that checkpoint may be deleted between our looks at the two.
        let in_use = self.report.in_use;
        let moved = found.first().map(|(_, start)| *start).filter(|start| {
            let mut checkpoints = self.report.checkpoints.iter().filter(|it| it.sound);
            let was_there = |at: Offset| at == *start || (in_use && at > *start);
            *start > facts.start && checkpoints.any(|it| was_there(it.id.offset))
        });
        let begin = moved.unwrap_or(facts.start);
        let counts = |entry: &&(Epoch, Offset)| entry.1 > begin || begin == Offset::ZERO;
        let above = found.iter().filter(counts);
        let mut own = facts.epochs.iter().filter(counts).peekable();
        let mut behind = Vec::new();
        for entry in above {
            if own.peek() == Some(&entry) {
                own.next();
            } else {
                behind.push(*entry);
            }
        }
        // Written behind the log (kraftd) or before it (Java), so after a crash, and while it is in
        // use, an epoch may be missing, or begin where the log ends.
        let lags = own.peek().is_some();
        behind.retain(|(_, start)| *start != facts.end && !(facts.torn && *start > facts.end));
        // At the begin, the list has the epoch of the record there, or the checkpoint's.
        let at_begin = found
            .first()
            .filter(|(_, start)| *start == begin && begin > Offset::ZERO);
        let known = facts.epoch_before(begin.next());
        if let Some(entry) = at_begin.filter(|(epoch, _)| known.is_some_and(|it| *epoch > it)) {
            behind.push(*entry);
        }
        if let Some((epoch, start)) = behind.first().filter(|_| !(self.report.in_use && lags)) {
            let what = format!(
                "{} says that epoch {epoch} begins at offset {start}, which is not so in the log.",
                path.display()
            );
            self.wrong("epochs", &path, what, REWRITTEN);
        } else if lags && !self.report.in_use {
            let what = format!(
                "{} lacks the newest epochs of the log, as a crash may leave it.",
                path.display()
            );
            self.report.note("epochs", &path, what);
        }
        Ok(())
    }

    fn meta(&mut self, mark: Option<&CommitMark>) -> Option<MetaProperties> {
        const COPY: &str = "Put the file back as `format` wrote it: it names the cluster, the node \
             and the directory.";
        let Some(root) = &self.place.root else {
            let what = format!(
                "{} is a partition's directory alone: there is no {META_PROPERTIES_FILE} to \
                 compare with.",
                self.report.path.display()
            );
            let path = self.report.path.clone();
            self.report.note("meta-properties", &path, what);
            return None;
        };
        let path = root.join(META_PROPERTIES_FILE);
        let shown = path.display().to_string();
        let read = MetaProperties::read(&path);
        let read = read.map_err(|fault| self.report.add(super::of_fault("meta-properties", fault)));
        let mut wrong = |what: String| self.wrong("meta-properties", &path, what, COPY);
        let Some(meta) = read.ok()? else {
            wrong(format!(
                "{shown} is missing: no process starts on the directory."
            ));
            return None;
        };
        match &meta.cluster_id {
            None => wrong(format!("{shown} has no cluster.id.")),
            Some(id) if parse_base64url(id).is_none() || id.len() != 22 => {
                wrong(format!(
                    "{shown} has the cluster.id '{id}', which is no id that format takes."
                ));
            }
            Some(_) => {}
        }
        match meta.node_id {
            None => wrong(format!("{shown} has no node.id.")),
            Some(id) if id.0 < 0 => wrong(format!("{shown} has node.id {id}.")),
            Some(_) => {}
        }
        if let Some(id) = meta.directory_id.filter(|id| is_reserved(*id)) {
            wrong(format!(
                "{shown} has the reserved directory.id {}.",
                base64url(id)
            ));
        }
        if let (Some(mark), Some(id)) = (mark, &meta.cluster_id)
            && mark.cluster_id != *id
        {
            wrong(format!(
                "{shown} says cluster.id {id}, but the directory holds metadata of cluster {} \
                 ({COMMIT_FILE}).",
                mark.cluster_id
            ));
        }
        self.voter(&path, &meta);
        Some(meta)
    }

    /// The directory against the newest voter set, if that names directories.
    fn voter(&mut self, path: &Path, meta: &MetaProperties) {
        let voters = self.facts.voters.as_deref().unwrap_or_default();
        let shown = path.display();
        let by_node = voters
            .iter()
            .find(|voter| Some(voter.key.id) == meta.node_id);
        let by_directory = voters
            .iter()
            .find(|voter| Some(voter.key.directory) == meta.directory_id);
        let what = match (by_node, meta.directory_id, meta.node_id) {
            (Some(voter), found, _) if !voter.key.directory.is_nil() => {
                if found == Some(voter.key.directory) {
                    return;
                }
                let found = found.map_or_else(
                    || "no directory.id".to_owned(),
                    |id| format!("directory.id {}", base64url(id)),
                );
                format!(
                    "{shown} has {found}, but node {} is a voter with directory {}: with another \
                     directory it never votes or leads.",
                    voter.key.id,
                    base64url(voter.key.directory)
                )
            }
            (_, Some(id), Some(node)) if by_directory.is_some() => format!(
                "{shown} says node.id {node}, but the voter with its directory {} is node {}.",
                base64url(id),
                by_directory.map_or(node, |voter| voter.key.id)
            ),
            (_, None, _) => {
                let what = format!("{shown} has no directory.id; the next start adds one.");
                self.report.note("meta-properties", path, what);
                return;
            }
            _ => return,
        };
        let advice = "If this is the voter's directory, put its ids back into the file; if it is a \
             new one, remove the old voter and add this one.";
        self.wrong("voter-directory", path, what, advice);
    }

    fn quorum_state(
        &mut self,
        state: Result<Option<QuorumState>>,
        meta: Option<&MetaProperties>,
    ) -> Result<()> {
        const LOST: &str = "Restore the file; if it is lost, delete it and start once with \
             --accept-lost-vote, if no election took place since.";
        let path = self.place.file(QUORUM_STATE_FILE);
        let shown = path.display().to_string();
        let state = match state {
            Ok(Some(state)) => state,
            Ok(None) if self.facts.epochs.is_empty() && self.facts.newest.is_none() => {
                return Ok(());
            }
            Ok(None) => {
                let what = format!(
                    "{shown} is missing, although the log has records: without it this node could \
                     vote twice in one epoch."
                );
                self.wrong("quorum-state", &path, what, LOST);
                return Ok(());
            }
            Err(fault) => return self.fault("quorum-state", fault),
        };
        let mut found = self.contradictions(&shown, &state, meta);
        // Read again: it may be replaced at any time, but not become another text.
        let text = atomic::read_small(&path, 1 << 20)?.unwrap_or_default();
        if !quorum_state::is_as_written(&text) {
            found.push(format!(
                "{shown} can be read, but is not as Kafka or kraftd write it: a byte of it may \
                 have changed."
            ));
        }
        let cluster = meta.and_then(|meta| meta.cluster_id.as_deref());
        if let (Some(named), Some(own)) = (quorum_state::named_cluster(&text), cluster)
            && named != own
        {
            found.push(format!(
                "{shown} is of cluster {}, but {META_PROPERTIES_FILE} says cluster.id {own}: its \
                 epoch and vote may be another cluster's.",
                quote(&named)
            ));
        }
        for what in found {
            self.wrong("quorum-state", &path, what, LOST);
        }
        Ok(())
    }

    /// What the election state says against log and directory.
    fn contradictions(
        &self,
        shown: &str,
        state: &QuorumState,
        meta: Option<&MetaProperties>,
    ) -> Vec<String> {
        let mut found = Vec::new();
        let last = self.facts.epochs.last();
        if let Some((epoch, start)) = last.filter(|(epoch, _)| *epoch > state.epoch) {
            found.push(format!(
                "{shown} has epoch {}, but the log has epoch {epoch} from offset {start} on: it is \
                 an old copy, or the epoch in the log is damaged.",
                state.epoch
            ));
        }
        if let (Some((epoch, leader)), Some(known)) = (self.facts.leader, state.leader)
            && epoch == state.epoch
            && known != leader
        {
            found.push(format!(
                "{shown} says that node {known} leads epoch {epoch}, but in the log that is node \
                 {leader}."
            ));
        }
        if let Some(node) = meta.and_then(|meta| meta.node_id)
            && !state.voters.is_empty()
            && !state.voters.contains(&node)
            && (state.leader == Some(node) || state.voted.is_some_and(|voted| voted.id == node))
        {
            found.push(format!(
                "{shown} says that this node, {node}, leads or voted for itself, but its voters \
                 are others."
            ));
        }
        let own = meta.and_then(|meta| Some((meta.node_id?, meta.directory_id?)));
        if let (Some((node, directory)), Some(voted)) = (own, state.voted)
            && voted.id == node
            && !voted.directory.is_nil()
            && voted.directory != directory
        {
            found.push(format!(
                "{shown} has a vote for this node with directory {}, but its directory is {}.",
                base64url(voted.directory),
                base64url(directory)
            ));
        }
        found
    }

    fn partition_metadata(&mut self) -> Result<()> {
        let path = self.place.file(PARTITION_METADATA_FILE);
        match partition_metadata::check(&path) {
            Ok(true) => Ok(()),
            Ok(false) if self.facts.epochs.is_empty() => Ok(()),
            Ok(false) => {
                let what = format!("{} is missing; the next start writes it.", path.display());
                self.report.note("partition-metadata", &path, what);
                Ok(())
            }
            Err(fault) => self.fault("partition-metadata", fault),
        }
    }
}
