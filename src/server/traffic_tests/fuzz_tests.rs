//! Recorded requests with a few bytes changed: whatever passes the shape check is decoded, and
//! nothing panics or asks for memory that the bytes do not pay for.

use std::collections::BTreeMap;

use super::super::connection::Closing;
use super::*;
use crate::types::SplitMix;

/// Changed copies of each recorded request.
const COPIES: u64 = 200;
/// Recorded requests of one API version (and of one API inside an envelope): the longest.
const OF_ONE_KIND: usize = 3;

/// Requests worth changing, by what they are.
fn samples() -> BTreeMap<(i16, i16, i16), Vec<Bytes>> {
    let mut samples: BTreeMap<_, Vec<Bytes>> = BTreeMap::new();
    each(|_, frame, answers| {
        if answers.is_none() {
            let outer = taken(&frame.bytes);
            let inner = (outer.key == ApiKey::Envelope)
                .then(|| EnvelopeRequest::decode(&mut outer.body.clone(), 0).unwrap())
                .map_or(-1, |envelope| taken(&envelope.request_data).start.api_key);
            let kind = (outer.start.api_key, outer.start.version, inner);
            samples.entry(kind).or_default().push(frame.bytes.clone());
        }
    });
    for kind in samples.values_mut() {
        kind.sort_by_key(|bytes| std::cmp::Reverse(bytes.len()));
        kind.truncate(OF_ONE_KIND);
    }
    samples
}

/// A frame with one to four changes: cut, grown, flipped, or with numbers that like to be counts.
/// The first `kept` bytes stay most of the time, else little else would be met.
pub(super) fn changed(frame: &Bytes, kept: u64, draw: &mut SplitMix) -> Vec<u8> {
    let mut bytes = frame.to_vec();
    for _ in 0..=draw.below(4) {
        let from = if draw.below(16) == 0 { 0 } else { kept };
        let end = bytes.len() as u64;
        if end <= from {
            return bytes;
        }
        let at = (from + draw.below(end - from)) as usize;
        match draw.below(8) {
            0 => bytes.truncate(at),
            1 => bytes.insert(at, draw.below(256) as u8),
            2 => {
                bytes.remove(at);
            }
            3 => bytes[at] ^= 1 << draw.below(8),
            4 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][draw.below(5) as usize],
            5 => fill(&mut bytes[at..], &[0xff, 0xff, 0xff, 0xff, 0x07]),
            6 => fill(&mut bytes[at..], &0x7fff_fff0_u32.to_be_bytes()),
            _ => fill(&mut bytes[at..], &(-1_i32).to_be_bytes()),
        }
    }
    bytes
}

fn fill(bytes: &mut [u8], with: &[u8]) {
    let length = bytes.len().min(with.len());
    bytes[..length].copy_from_slice(&with[..length]);
}

#[test]
fn changed_requests_are_read_or_refused_and_never_cost_more_than_their_bytes() {
    let mut read = 0_u64;
    let mut refused = 0_u64;
    let samples = samples();
    let mut at = harness(recorded_image());
    for (kind, frames) in &samples {
        for (index, frame) in frames.iter().enumerate() {
            for copy in 0..COPIES {
                let seed = (copy << 8) + index as u64;
                let bytes = Bytes::from(changed(frame, 8, &mut SplitMix::new(seed)));
                let _at = Place(format!("{kind:?}, seed {seed}: {bytes:02x?}"));
                let length = bytes.len();
                match at.weight(&bytes) {
                    Ok(weight) => {
                        // What is counted is no more than what the bytes can hold, twice for what
                        // is inside an envelope.
                        assert!(weight.bytes <= length * 257, "{weight:?}");
                        // A string that is not UTF-8 is found by the decoder.
                        match at.start(bytes) {
                            Ok(_) => read += 1,
                            Err(Closing::Garbage(_)) => refused += 1,
                            Err(other) => panic!("{other:?}"),
                        }
                        at.core.asked.lock().unwrap().clear();
                    }
                    Err(Closing::Garbage(_)) => refused += 1,
                    Err(other) => panic!("{other:?}"),
                }
            }
        }
    }
    assert!(samples.len() >= 20, "{:?}", samples.keys());
    assert!(
        read > 1000 && refused > 1000,
        "{read} read, {refused} refused"
    );
}
