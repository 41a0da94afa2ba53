//! Index files beside a segment: whether their entries lead where they say.

use std::path::Path;

use super::Report;
use crate::records::batch::BatchHeader;
use crate::storage::atomic;
use crate::storage::fault::Result;
use crate::types::Offset;

/// Java's indexes have ten megabytes; what is behind this is not looked at.
const BYTES_MAX: u64 = 64 << 20;

/// The offset index of a segment, followed batch by batch.
#[derive(Debug)]
pub(super) struct IndexCheck {
    path: std::path::PathBuf,
    base: Offset,
    /// (offset, position of a batch), as the file has them.
    entries: Vec<(u32, u32)>,
    next: usize,
    /// The first thing that is wrong.
    wrong: Option<String>,
}

impl IndexCheck {
    /// Reads the index beside the segment at `log`.
    pub(super) fn open(log: &Path, base: Offset) -> Result<Option<Self>> {
        let path = log.with_extension("index");
        let Some(bytes) = atomic::read_small(&path, BYTES_MAX)? else {
            return Ok(None);
        };
        let number = |bytes: &[u8]| {
            bytes
                .first_chunk::<4>()
                .map_or(0, |four| u32::from_be_bytes(*four))
        };
        let mut entries = Vec::new();
        for entry in bytes.chunks_exact(8) {
            let entry = (number(&entry[..4]), number(&entry[4..]));
            // The file of a running process is filled up with zeros.
            if entry == (0, 0) {
                break;
            }
            entries.push(entry);
        }
        let wrong = entries
            .windows(2)
            .position(|pair| pair[0].0 >= pair[1].0 || pair[0].1 >= pair[1].1)
            .map(|at| format!("entry {} does not follow entry {at}", at + 1))
            .or_else(|| {
                (bytes.len() % 8 != 0)
                    .then(|| format!("it has {} bytes, not whole entries", bytes.len()))
            });
        Ok(Some(Self {
            path,
            base,
            entries,
            next: 0,
            wrong,
        }))
    }

    /// Compares with the batch at `position`. Java points a follower's entry at the first of the
    /// batches that it was given together, and names the offset of the last.
    pub(super) fn push(&mut self, position: u64, header: &BatchHeader) {
        while self.wrong.is_none()
            && let Some(&(relative, at)) = self.entries.get(self.next)
            && u64::from(at) <= position
        {
            let offset = self.base.plus(i64::from(relative));
            if u64::from(at) < position || offset < header.last_offset() {
                self.wrong = Some(format!(
                    "entry {} leads to byte {at} for offset {offset}, where no batch of it begins",
                    self.next
                ));
            }
            self.next += 1;
        }
    }

    /// Tells what was wrong, and of entries behind the segment's end at `end`.
    pub(super) fn finish(self, report: &mut Report, end: Offset) {
        let last = self.entries.last();
        let ahead = self.next < self.entries.len()
            || last.is_some_and(|(relative, _)| self.base.plus(i64::from(*relative)) >= end);
        // A process in use adds entries for what was appended since the log was opened.
        let wrong = self
            .wrong
            .or_else(|| (ahead && !report.in_use).then(|| "it points behind the log's end".into()));
        if let Some(wrong) = wrong {
            report.note(
                "index",
                &self.path,
                format!(
                    "{} does not fit its log: {wrong}; a start of kraftd, and of Java after a \
                     crash, builds it anew.",
                    self.path.display()
                ),
            );
        }
    }
}

/// Looks at the time index beside the segment at `log`: ascending timestamps of ascending offsets.
pub(super) fn check_times(report: &mut Report, log: &Path) -> Result<()> {
    let path = log.with_extension("timeindex");
    let Some(bytes) = atomic::read_small(&path, BYTES_MAX)? else {
        return Ok(());
    };
    let mut last: Option<(i64, u32)> = None;
    let mut wrong = bytes.len() % 12 != 0;
    for entry in bytes.chunks_exact(12) {
        let (Some(time), Some(relative)) = (entry.first_chunk::<8>(), entry.last_chunk::<4>())
        else {
            break;
        };
        let entry = (i64::from_be_bytes(*time), u32::from_be_bytes(*relative));
        if entry == (0, 0) {
            break;
        }
        wrong |= last.is_some_and(|(time, relative)| time > entry.0 || relative > entry.1);
        last = Some(entry);
    }
    if wrong {
        report.note(
            "time-index",
            &path,
            format!(
                "{} is not made of ascending entries; a start of kraftd, and of Java after a \
                 crash, builds it anew.",
                path.display()
            ),
        );
    }
    Ok(())
}
