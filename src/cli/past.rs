//! The image at a point of the past: what a checkpoint and the log behind it add up to.

use std::path::Path;

use jiff::civil;
use jiff::tz::TimeZone;

use super::report::Progress;
use crate::image::Image;
use crate::observe::{Provenance, iso_time};
use crate::storage::commit_file::{self, COMMIT_FILE, Found};
use crate::storage::directory::PARTITION_DIR;
use crate::storage::reader::{DamageKind, Role, Source, SourceKind, Target};
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
}

/// Replays what is at `path` up to `at`.
///
/// # Errors
/// One sentence: nothing is there, it does not reach that far, or it cannot be read.
pub(super) fn load(path: &Path, At(target): At) -> Result<Past, String> {
    let source = Source::open(path).map_err(|fault| fault.to_string())?;
    let mut replay = source
        .replay(target)
        .map_err(|refusal| refusal.to_string())?;
    let mut image = Image::empty();
    let mut progress = Progress::of_bytes(replay.progress().0);
    while let Some(step) = replay.next() {
        let step = step.map_err(|fault| fault.to_string())?;
        image
            .replay(&step.record.record, step.offset)
            .map_err(|fault| {
                let name = step.record.record.name();
                format!(
                    "{}: {name} at offset {}: {fault}.",
                    path.display(),
                    step.offset
                )
            })?;
        progress.at(replay.progress().1);
    }
    drop(progress);
    let mut provenance = Provenance {
        offset: replay.last_offset(),
        committed: committed(&source),
        ..Provenance::NONE
    };
    if let Some((epoch, time)) = replay.newest() {
        (provenance.epoch, provenance.time) = (epoch, time);
    }
    let mut notes: Vec<String> = Vec::new();
    for fault in replay.skipped() {
        notes.push(format!("left aside: {}", fault.sentence));
    }
    if let Some(damage) = replay.damage() {
        let kind = match damage.kind {
            DamageKind::TornTail => "the log ends torn",
            _ => "records behind that are missing",
        };
        notes.push(format!("{kind}: {}.", damage.sentence));
    }
    notes.extend(about(&source, target, &image, provenance));
    let image = image.settled().clone();
    Ok(Past {
        image,
        provenance,
        notes,
    })
}

/// What to know about an undamaged source.
fn about(source: &Source, target: Target, image: &Image, provenance: Provenance) -> Vec<String> {
    let mut notes = Vec::new();
    let place = source.path.display();
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
    if provenance.offset < Offset::ZERO {
        notes.push(format!(
            "{place} holds no log yet; what formatting left for the first start is in its \
             checkpoint: name that file to see it"
        ));
    }
    let known = provenance.committed;
    if target == Target::Newest && known.is_none_or(|known| known < provenance.offset) {
        let how_far = match known {
            Some(known) => format!("up to offset {known} the log is known to be committed"),
            None => "nothing here says how far the log is committed".to_owned(),
        };
        if matches!(
            source.kind,
            SourceKind::LogDirectory | SourceKind::PartitionDirectory
        ) && provenance.offset >= Offset::ZERO
        {
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
fn committed(source: &Source) -> Option<Offset> {
    let dir = match source.kind {
        SourceKind::LogDirectory => Some(source.path.join(PARTITION_DIR)),
        SourceKind::PartitionDirectory => Some(source.path.clone()),
        SourceKind::Segment | SourceKind::Checkpoint => None,
    };
    let mark = dir.and_then(|dir| match commit_file::read(&dir.join(COMMIT_FILE)) {
        Ok(Found::Mark(mark)) => Some(mark.commit.offset),
        _ => None,
    });
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

#[cfg(test)]
mod tests {
    use super::*;

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
