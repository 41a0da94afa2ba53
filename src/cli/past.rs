//! The image at a point of the past: what a checkpoint and the log behind it add up to.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use jiff::civil;
use jiff::tz::TimeZone;

use super::report::Progress;
use crate::image::Image;
use crate::observe::{Provenance, iso_time};
use crate::storage::commit_file::{self, COMMIT_FILE, Found};
use crate::storage::directory::PARTITION_DIR;
use crate::storage::meta_properties::{META_PROPERTIES_FILE, MetaProperties};
use crate::storage::quorum_state::QUORUM_STATE_FILE;
use crate::storage::reader::{DamageKind, Replay, Role, Source, SourceKind, Target};
use crate::types::{Offset, Timestamp};

/// Where to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct At(Target);

impl At {
    /// Everything that is there.
    pub(super) const NEWEST: Self = Self(Target::Newest);
}

/// A number from here on is milliseconds since 1970 (it is in 2001); no log has so many records.
const FIRST_MS: i64 = 1_000_000_000_000;

/// Reads an offset, milliseconds since 1970, or an ISO-8601 time (UTC when it names no zone).
pub(super) fn parse_at(text: &str) -> Result<At, String> {
    if let Ok(number) = text.parse::<i64>() {
        return match number {
            ..0 => Err("offsets begin at 0".to_owned()),
            FIRST_MS.. => Ok(At(Target::Time(Timestamp(number)))),
            _ => Ok(At(Target::Offset(Offset(number)))),
        };
    }
    let zoned = text.parse::<jiff::Timestamp>().ok();
    let time = zoned.or_else(|| {
        let local: civil::DateTime = text.parse().ok()?;
        Some(local.to_zoned(TimeZone::UTC).ok()?.timestamp())
    });
    match time {
        Some(time) => Ok(At(Target::Time(Timestamp(time.as_millisecond())))),
        None => Err(
            "neither an offset nor a time such as 2026-01-31T12:00:00Z or 1769860800000".to_owned(),
        ),
    }
}

/// An image of the past.
#[derive(Debug)]
pub(super) struct Past {
    /// The image, without what an open metadata transaction would add.
    pub(super) image: Image,
    /// Where it stands.
    pub(super) provenance: Provenance,
    /// What whoever looks at it should know, a sentence each.
    pub(super) notes: Vec<String>,
    /// The id of the cluster that a log directory was formatted for.
    pub(super) cluster: Option<String>,
    /// The files say that there was more than could be read: this is not the newest state.
    pub(super) lacks_records: bool,
}

/// The exit code of a command that printed: what it showed of these is all there was, or not.
pub(super) fn exit_code(printed: ExitCode, shown: &[&Past]) -> ExitCode {
    match shown.iter().any(|past| past.lacks_records) {
        true => ExitCode::FAILURE,
        false => printed,
    }
}

/// Replays what is at `path` up to `at`.
///
/// # Errors
/// One sentence: nothing is there, it does not reach that far, or it cannot be read.
pub(super) fn load(path: &Path, At(target): At) -> Result<Past, String> {
    // Before the log is opened: what it says was in the log by then, even of a running process.
    let mark = mark(path);
    let source = Source::open(path).map_err(|fault| fault.to_string())?;
    let mut replay = source
        .replay(target)
        .map_err(|refusal| refusal.to_string())?;
    let image = replayed(path, &mut replay)?;
    let mut provenance = Provenance {
        offset: replay.last_offset(),
        committed: committed(&source, mark),
        ..Provenance::NONE
    };
    if let Some((epoch, time)) = replay.newest() {
        (provenance.epoch, provenance.time) = (epoch, time);
    }
    let mut notes: Vec<String> = Vec::new();
    for fault in replay.skipped() {
        notes.push(format!("left aside: {}", fault.sentence));
    }
    for fault in &source.unusable {
        notes.push(format!("left aside: {}", fault.sentence));
    }
    let mut lacks_records = !source.unusable.is_empty() && !matches!(target, Target::Offset(_));
    if let Some(damage) = replay.damage() {
        let is_torn = damage.kind == DamageKind::TornTail;
        let is_file = matches!(source.kind, SourceKind::Segment | SourceKind::Checkpoint);
        if replay.newest().is_none() && (is_file || !is_torn) {
            return Err(format!("nothing can be read: {}.", damage.sentence));
        }
        // Who asks for an offset and gets it lacks nothing.
        lacks_records |= !is_torn && !matches!(target, Target::Offset(_));
        let kind = match is_torn {
            true => "the log ends torn",
            false => "records behind that are missing",
        };
        notes.push(format!("{kind}: {}.", damage.sentence));
    }
    if let Some(note) = before_commit(target, provenance) {
        lacks_records = true;
        notes.push(note);
    }
    if let Some(fault) = source.of_another_topic() {
        lacks_records = true;
        notes.push(fault.sentence);
    }
    if let Some(note) = without_log(&source, provenance) {
        lacks_records |= took_part(&source) && !matches!(target, Target::Offset(_));
        notes.push(note);
    }
    notes.extend(about(&source, target, &image, provenance));
    let image = image.settled().clone();
    Ok(Past {
        image,
        provenance,
        notes,
        cluster: cluster(path),
        lacks_records,
    })
}

/// All records of a replay, as one image.
fn replayed(path: &Path, replay: &mut Replay<'_>) -> Result<Image, String> {
    let mut image = Image::empty();
    let mut progress = Progress::of_bytes(replay.progress().0);
    while let Some(step) = replay.next() {
        let step = step.map_err(|fault| fault.to_string())?;
        let replayed = image.replay(&step.record.record, step.offset);
        replayed.map_err(|fault| {
            let name = step.record.record.name();
            let begin = replay.checkpoint().map_or_else(String::new, |id| {
                format!(
                    " (it began with {:020}-{:010}.checkpoint)",
                    id.offset.0, id.epoch.0
                )
            });
            format!(
                "{}: {name} at offset {}: {fault}{begin}; `kraftd fsck` says which file is wrong.",
                path.display(),
                step.offset
            )
        })?;
        progress.at(replay.progress().1);
    }
    Ok(image)
}

/// That the log was committed further than what can be read.
fn before_commit(target: Target, provenance: Provenance) -> Option<String> {
    let known = provenance.committed?;
    (target == Target::Newest && known > provenance.offset).then(|| {
        format!(
            "records are missing: up to offset {known} the log was committed, but what can be read \
             leads to offset {} only",
            provenance.offset
        )
    })
}

const fn is_directory(source: &Source) -> bool {
    matches!(
        source.kind,
        SourceKind::LogDirectory | SourceKind::PartitionDirectory
    )
}

/// Whether the node of this directory ever was in a quorum.
fn took_part(source: &Source) -> bool {
    let known = |path: &PathBuf| {
        let name = path.file_name();
        name.is_some_and(|name| name == QUORUM_STATE_FILE || name == COMMIT_FILE)
    };
    source.others.iter().any(known)
}

/// What to know about a directory without a segment, or without a record.
fn without_log(source: &Source, provenance: Provenance) -> Option<String> {
    if !is_directory(source) {
        return None;
    }
    let place = source.path.display();
    if !source.segments.is_empty() {
        let is_new = provenance.offset < Offset::ZERO;
        return is_new.then(|| format!("the log in {place} holds no record"));
    }
    Some(if took_part(source) {
        format!(
            "no segment (*.log) is in {place}, although this node took part in a quorum: the \
             records behind the newest checkpoint are gone"
        )
    } else if provenance.offset >= Offset::ZERO {
        format!("no segment (*.log) is in {place}: shown is its newest checkpoint")
    } else if source.files().next().is_some() {
        format!(
            "{place} holds no log yet; what formatting left for the first start is in its \
             checkpoint: name that file to see it"
        )
    } else {
        format!("{place} is empty: neither a segment (*.log) nor a checkpoint is there")
    })
}

/// What to know about an undamaged source.
fn about(source: &Source, target: Target, image: &Image, provenance: Provenance) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(begin) = image.open_transaction() {
        let named = image
            .open_transaction_name()
            .map(|name| format!(" ({name})"));
        notes.push(format!(
            "offset {} is inside the metadata transaction{} that began at offset {begin}: shown is \
             the state before it",
            provenance.offset,
            named.unwrap_or_default()
        ));
    }
    let known = provenance.committed;
    if target == Target::Newest && known.is_none_or(|known| known < provenance.offset) {
        let how_far = match known {
            Some(known) => format!("up to offset {known} the log is known to be committed"),
            None => "nothing here says how far the log is committed".to_owned(),
        };
        if is_directory(source) && provenance.offset >= Offset::ZERO {
            notes.push(format!(
                "{how_far}; the last records, up to offset {} ({}), may not be yet",
                provenance.offset,
                iso_time(provenance.time)
            ));
        }
    }
    notes
}

/// The last offset that is known to be committed: a checkpoint holds only what is, and kraftd
/// keeps a mark of its own.
fn committed(source: &Source, mark: Option<Offset>) -> Option<Offset> {
    let checkpoints = source
        .checkpoints
        .iter()
        .filter_map(|file| match file.role {
            Role::Checkpoint { id } => Some(id.offset),
            Role::Segment { .. } => None,
        });
    let end = checkpoints.chain(mark).max()?;
    (end > Offset::ZERO).then(|| end.prev())
}

/// The cluster that `meta.properties` of the log directory at or above `path` names.
fn cluster(path: &Path) -> Option<String> {
    let dir = match path.join(PARTITION_DIR).is_dir() {
        true => path,
        false if path.file_name()? == PARTITION_DIR => path.parent()?,
        false => return None,
    };
    let meta = MetaProperties::read(&dir.join(META_PROPERTIES_FILE));
    meta.ok()??.cluster_id
}

/// The end of what kraftd's own mark says is committed.
fn mark(path: &Path) -> Option<Offset> {
    let inner = path.join(PARTITION_DIR);
    let dir = if inner.is_dir() { &inner } else { path };
    match commit_file::read(&dir.join(COMMIT_FILE)) {
        Ok(Found::Mark(mark)) => Some(mark.commit.offset),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIXTURE: &str = "fixtures/4.4.0/lived/dynamic-stopped/__cluster_metadata-0";
    const LOG: &str = "00000000000000000000.log";

    /// Whether records are missing in a copy of the log, which `change` was done to, at `at`; and
    /// the last offset that is shown.
    fn lacking(change: impl FnOnce(&mut Vec<u8>), at: &str) -> (bool, i64) {
        let dir = tempfile::tempdir().unwrap();
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join(FIXTURE);
        let mut bytes = std::fs::read(from.join(LOG)).unwrap();
        change(&mut bytes);
        std::fs::write(dir.path().join(LOG), bytes).unwrap();
        let at = match at {
            "" => At::NEWEST,
            at => parse_at(at).unwrap(),
        };
        let past = load(dir.path(), at).unwrap();
        (past.lacks_records, past.provenance.offset.0)
    }

    #[test]
    fn records_behind_rot_are_missing_and_those_behind_a_torn_tail_are_not() {
        let cut = |bytes: &mut Vec<u8>| {
            bytes.pop();
        };
        let rot = |bytes: &mut Vec<u8>| bytes[250] ^= 1;
        assert_eq!(lacking(|_| (), ""), (false, 325));
        assert!(!lacking(cut, "").0);
        assert_eq!(lacking(rot, ""), (true, 2));
        assert_eq!(lacking(rot, "1795972657171"), (true, 2));
        assert_eq!(lacking(rot, "2"), (false, 2));
    }

    #[test]
    fn a_log_that_ends_before_what_a_mark_says_is_committed_lacks_records() {
        let dir = tempfile::tempdir().unwrap();
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join(FIXTURE);
        std::fs::copy(from.join(LOG), dir.path().join(LOG)).unwrap();
        for (offset, lacks) in [(326, false), (327, true)] {
            let mark = commit_file::CommitMark {
                sequence: 1,
                cluster_id: "x".to_owned(),
                commit: crate::types::OffsetAndEpoch {
                    offset: Offset(offset),
                    epoch: crate::types::Epoch(9),
                },
            };
            commit_file::CommitFile::open(&dir.path().join(COMMIT_FILE), mark).unwrap();
            let past = load(dir.path(), At::NEWEST).unwrap();
            assert_eq!(past.lacks_records, lacks, "{offset}");
            let told = past.notes.iter().any(|note| note.contains("are missing"));
            assert_eq!(told, lacks, "{:?}", past.notes);
        }
    }

    #[test]
    fn an_offset_and_a_time_in_three_spellings_are_told_apart() {
        let offset = |number| Ok(At(Target::Offset(Offset(number))));
        let time = |ms| Ok(At(Target::Time(Timestamp(ms))));
        assert_eq!(parse_at("0"), offset(0));
        assert_eq!(parse_at("999999999999"), offset(999_999_999_999));
        assert_eq!(parse_at("1769860800000"), time(1_769_860_800_000));
        for spelled in [
            "2026-01-31T12:00:00Z",
            "2026-01-31T13:00:00+01:00",
            "2026-01-31T12:00:00",
            "2026-01-31 12:00",
        ] {
            assert_eq!(parse_at(spelled), time(1_769_860_800_000), "{spelled}");
        }
        assert_eq!(parse_at("2026-01-31"), time(1_769_817_600_000));
        for bad in ["", "-1", "x", "12.5", "2026-13-01"] {
            assert!(parse_at(bad).is_err(), "{bad}");
        }
    }
}
