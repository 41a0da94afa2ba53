//! The frame of a checkpoint (KIP-630): its first record is a header and no other is, its last is
//! the footer of a batch, and nothing follows.

use crate::records::batch::Batch;
use crate::records::control::ControlRecord;

/// How far a checkpoint is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Frame {
    begun: bool,
    ended: bool,
}

impl Frame {
    /// Whether the footer was met.
    pub(crate) const fn is_whole(self) -> bool {
        self.ended
    }

    /// Takes the next batch.
    ///
    /// # Errors
    /// What is wrong with its place.
    pub(crate) fn take(&mut self, batch: &Batch) -> Result<(), &'static str> {
        const HEADLESS: &str = "it does not begin with a header";
        if self.ended {
            return Err("a batch follows the footer");
        }
        let is_first = !std::mem::replace(&mut self.begun, true);
        if !batch.is_control() {
            return if is_first { Err(HEADLESS) } else { Ok(()) };
        }
        // Not collected: a small compressed batch can have millions of records.
        for (at, record) in batch.records().enumerate() {
            let control = record.ok().and_then(|record| {
                ControlRecord::decode(record.key.as_ref(), record.value.as_ref()).ok()
            });
            let is_header = matches!(control, Some(ControlRecord::SnapshotHeader(_)));
            match (is_first && at == 0, is_header) {
                (true, false) => return Err(HEADLESS),
                (false, true) => return Err("a second header is inside"),
                _ => {}
            }
            self.ended = matches!(control, Some(ControlRecord::SnapshotFooter(_)));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::batch::BatchBuilder;
    use crate::records::control::{KRaftVersion, SnapshotFooter, SnapshotHeader};
    use crate::types::{Epoch, Offset, Timestamp};

    /// Batches by a letter a record: header, footer, other control, data.
    fn verdict(batches: &[&str]) -> Result<bool, &'static str> {
        let mut frame = Frame::default();
        for letters in batches {
            let (offset, epoch, time) = (Offset(0), Epoch(1), Timestamp(1));
            let mut builder = match *letters {
                "d" => BatchBuilder::data(offset, epoch, time),
                _ => BatchBuilder::control(offset, epoch, time),
            };
            for letter in letters.chars() {
                let control: ControlRecord = match letter {
                    'h' => SnapshotHeader::default().into(),
                    'f' => SnapshotFooter::default().into(),
                    'c' => KRaftVersion::default().into(),
                    _ => {
                        builder.push(None, Some(b"x"));
                        continue;
                    }
                };
                builder.push_control(&control).unwrap();
            }
            frame.take(&builder.build())?;
        }
        Ok(frame.is_whole())
    }

    #[test]
    fn a_checkpoint_has_one_header_at_its_begin_and_a_footer_at_its_end() {
        for whole in [&["h", "d", "f"][..], &["hc", "d", "d", "f"], &["hcf"]] {
            assert_eq!(verdict(whole), Ok(true), "{whole:?}");
        }
        for part in [&[][..], &["h"], &["h", "d"], &["h", "fc"]] {
            assert_eq!(verdict(part), Ok(false), "{part:?}");
        }
        for bad in [
            &["d"][..],
            &["c"],
            &["ch"],
            &["f"],
            &["hh"],
            &["hch", "f"],
            &["h", "h", "f"],
            &["h", "d", "fh"],
            &["h", "f", "d"],
            &["h", "f", "f"],
        ] {
            assert!(verdict(bad).is_err(), "{bad:?}");
        }
    }
}
