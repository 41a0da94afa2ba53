//! The records of a Fetch answer: from bytes that came over the wire to batches that may go to
//! disk.
//!
//! A leader sends whole batches as they are on its disk and cuts the last by size, so half a batch
//! at the end is normal. Anything else that is not as it must be is not the leader's word but
//! damage on the way or on its disk: what came before is taken, the rest is dropped with a warning
//! that shows the batch's header, and the next fetch asks for it again.

use std::fmt::Write as _;

use bytes::Bytes;

use crate::raft::FetchedBatch;
use crate::records::batch::{Batch, HEADER_BYTES, Peek, peek};
use crate::storage;
use crate::types::{Epoch, Offset};

/// What came in.
#[derive(Debug)]
pub(super) struct Fetched {
    /// The sound batches, one behind the other without a gap.
    pub(super) batches: Vec<FetchedBatch>,
    /// Why the rest is dropped, if it is.
    pub(super) bad: Option<String>,
}

/// Takes the sound batches at the front of `records`, which a leader of epoch `newest` sent. Their
/// records are not looked at, except for those that consensus has to know.
pub(super) fn sound(mut records: Bytes, newest: Epoch) -> Fetched {
    let whole = records.clone();
    let mut batches: Vec<FetchedBatch> = Vec::new();
    let bad = loop {
        let rest = records.clone();
        let last = batches.last().map(|last| (last.end, last.epoch));
        match next(&mut records, last, newest) {
            Ok(Some(batch)) => batches.push(batch),
            Ok(None) => break None,
            Err(why) => break Some((rest, why)),
        }
    };
    let bad = bad.map(|(rest, why)| {
        format!(
            "byte {} of {} bytes is not the beginning of a good batch: {why}; its header is {}",
            whole.len() - rest.len(),
            whole.len(),
            hex(rest.get(..HEADER_BYTES).unwrap_or(&rest))
        )
    });
    Fetched { batches, bad }
}

/// Takes the next batch; `None` at the end, or at half a batch behind others.
fn next(
    records: &mut Bytes,
    last: Option<(Offset, Epoch)>,
    newest: Epoch,
) -> Result<Option<FetchedBatch>, String> {
    match peek(records) {
        Peek::Partial { bytes_needed } => {
            // At least one whole batch is sent, however large: without one nothing ever comes.
            return match last {
                None if !records.is_empty() => Err(format!(
                    "it has at least {bytes_needed} bytes, of which {} came",
                    records.len()
                )),
                None | Some(_) => Ok(None),
            };
        }
        Peek::Batch(_) | Peek::Garbage(_) => {}
    }
    let batch = Batch::take_from(records).map_err(|fault| fault.to_string())?;
    let Some(batch) = batch else {
        return Ok(None);
    };
    batch.verify_crc().map_err(|fault| fault.to_string())?;
    // The checksum covers neither the offset nor the epoch.
    let (first, epoch) = (batch.base_offset(), batch.epoch());
    if let Some((end, before)) = last {
        if first != end {
            return Err(format!(
                "it begins at offset {first} and the one before ends at {end}"
            ));
        }
        if epoch < before {
            return Err(format!("its epoch {epoch} follows epoch {before}"));
        }
    }
    if epoch > newest {
        return Err(format!(
            "its epoch {epoch} is newer than the leader's, {newest}"
        ));
    }
    let control = match batch.is_control() {
        true => storage::fetched_control_records(&batch)
            .map_err(|(offset, why)| format!("the control record at offset {offset}: {why}"))?,
        false => Vec::new(),
    };
    Ok(Some(FetchedBatch {
        first,
        end: batch.end_offset(),
        epoch,
        control,
        bytes: batch.into_bytes(),
    }))
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // Writing to a string never fails.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::raft::ControlRecord;
    use crate::records::batch::BatchBuilder;
    use crate::types::{NodeId, Timestamp};

    /// A log that a Java 4.4.0 controller wrote.
    const LOG: &[u8] = include_bytes!(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/fixtures/4.4.0/lived/dynamic-killed/__cluster_metadata-0/00000000000000000000.log"
    ));
    const NEWEST: Epoch = Epoch(i32::MAX);

    fn good(bytes: &[u8]) -> Vec<FetchedBatch> {
        let fetched = sound(Bytes::copy_from_slice(bytes), NEWEST);
        assert_eq!(fetched.bad, None);
        fetched.batches
    }

    fn joined(batches: &[FetchedBatch]) -> Vec<u8> {
        batches.iter().flat_map(|it| it.bytes.to_vec()).collect()
    }

    fn data(first: i64, epoch: i32) -> Vec<u8> {
        let mut builder = BatchBuilder::data(Offset(first), Epoch(epoch), Timestamp(1));
        builder.push(None, Some(b"a"));
        builder.push(None, Some(b"b"));
        builder.build().bytes().to_vec()
    }

    #[test]
    fn what_a_java_leader_has_is_taken_as_it_is_with_its_control_records() {
        let batches = good(LOG);
        assert_eq!(joined(&batches), LOG);
        let first = &batches[0];
        assert_eq!(
            (first.first, first.end),
            (Offset(0), Offset(first.control.len() as i64))
        );
        let (at, change) = &first.control[0];
        assert_eq!(*at, Offset(0));
        let ControlRecord::LeaderChange { leader, .. } = change else {
            panic!("an epoch begins with its leader: {change:?}");
        };
        assert!(*leader >= NodeId(0));
        assert!(batches.len() > 5);
    }

    #[test]
    fn half_a_batch_behind_others_is_dropped_in_silence_wherever_it_is_cut() {
        let whole = good(LOG);
        let first = whole[0].bytes.len();
        for cut in first..LOG.len().min(first + 3_000) {
            let fetched = sound(Bytes::copy_from_slice(&LOG[..cut]), NEWEST);
            assert_eq!(fetched.bad, None, "cut at {cut}");
            let bytes = joined(&fetched.batches);
            assert!(LOG.starts_with(&bytes) && bytes.len() <= cut);
        }
        assert!(sound(Bytes::new(), NEWEST).bad.is_none());
    }

    #[test]
    fn half_a_batch_alone_is_no_answer() {
        let first = good(LOG)[0].bytes.len();
        for cut in [1, 12, 60, 61, first - 1] {
            let fetched = sound(Bytes::copy_from_slice(&LOG[..cut]), NEWEST);
            assert!(fetched.batches.is_empty());
            assert!(fetched.bad.is_some(), "cut at {cut}");
        }
    }

    /// No bit may change unseen, except in what no checksum covers of the first batch: its offset
    /// and an older epoch. The core knows where its log ends, and in what epoch.
    #[test]
    fn a_flipped_bit_ends_what_is_taken_before_its_batch() {
        let whole = good(LOG);
        let mut start = 0;
        for (at, batch) in whole.iter().enumerate().take(6) {
            for byte in 0..batch.bytes.len() {
                let mut bytes = LOG.to_vec();
                bytes[start + byte] ^= 1 << (byte % 8);
                let fetched = sound(Bytes::from(bytes), whole[at].epoch);
                let taken = fetched.batches.len();
                if at == 0 && (byte < 8 || (12..16).contains(&byte)) {
                    continue;
                }
                let length = (8..12).contains(&byte);
                assert!(taken == at, "byte {byte} of batch {at}: {taken} taken");
                assert!(fetched.bad.is_some() || length, "byte {byte} of batch {at}");
            }
            start += batch.bytes.len();
        }
    }

    #[test]
    fn the_warning_tells_where_why_and_the_header() {
        let mut bytes = data(0, 1);
        let first = bytes.len();
        bytes.extend(data(2, 1));
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        let fetched = sound(Bytes::from(bytes.clone()), Epoch(1));
        assert_eq!(fetched.batches.len(), 1);
        let why = fetched.bad.unwrap();
        assert!(
            why.starts_with(&format!("byte {first} of {} bytes", bytes.len())),
            "{why}"
        );
        assert!(why.contains("checksum"), "{why}");
        assert!(
            why.ends_with(&hex(&bytes[first..first + HEADER_BYTES])),
            "{why}"
        );
    }

    #[test]
    fn batches_follow_one_another_without_gap_overlap_or_falling_epochs() {
        for (second, why) in [
            (data(3, 2), "begins at offset 3"),
            (data(1, 2), "begins at offset 1"),
            (data(2, 1), "epoch 1 follows epoch 2"),
            (data(2, 4), "newer than the leader's"),
        ] {
            let mut bytes = data(0, 2);
            bytes.extend(second);
            let fetched = sound(Bytes::from(bytes), Epoch(3));
            assert_eq!(fetched.batches.len(), 1);
            assert!(
                fetched.bad.as_ref().is_some_and(|it| it.contains(why)),
                "{fetched:?}"
            );
        }
    }

    #[test]
    fn a_control_record_that_nobody_knows_ends_what_is_taken() {
        let mut builder = BatchBuilder::control(Offset(2), Epoch(1), Timestamp(1));
        builder.push(Some(&[0, 0, 0, 99]), Some(&[0, 0]));
        let mut bytes = data(0, 1);
        bytes.extend_from_slice(builder.build().bytes());
        let fetched = sound(Bytes::from(bytes), NEWEST);
        assert_eq!(fetched.batches.len(), 1);
        assert!(fetched.bad.unwrap().contains("control record at offset 2"));
    }

    #[test]
    fn random_bytes_are_refused_and_break_nothing() {
        let mut rng = crate::types::SplitMix::new(7);
        for _ in 0..2_000 {
            let len = rng.below(200) as usize;
            let bytes: Vec<u8> = (0..len).map(|_| rng.next_u64() as u8).collect();
            let fetched = sound(Bytes::from(bytes), NEWEST);
            assert!(fetched.batches.is_empty());
        }
    }
}
