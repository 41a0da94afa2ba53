//! The log of a run: what happened goes into a hash, and to the screen if wanted.

use std::fmt;
use std::hash::Hasher;

/// FNV-1a over all that happened, so that two runs of one seed can be compared without keeping
/// their text.
pub(crate) struct Trace {
    hash: u64,
    print: bool,
    events: u64,
}

impl Trace {
    pub(crate) fn new(print: bool) -> Self {
        Self {
            hash: 0xcbf2_9ce4_8422_2325,
            print,
            events: 0,
        }
    }

    /// Whether text is wanted: it costs more than all the rest.
    pub(crate) fn prints(&self) -> bool {
        self.print
    }

    /// One aligned line: time, who, what.
    pub(crate) fn line(&self, time: u64, who: &str, what: fmt::Arguments<'_>) {
        if self.print {
            println!("{time:>7} {who:<10} {what}");
        }
    }

    /// Something happened at `time` to `who`, with these numbers.
    pub(crate) fn note(&mut self, time: u64, who: usize, numbers: &[u64]) {
        self.events += 1;
        self.write_u64(time);
        self.write_u64(who as u64);
        numbers.iter().for_each(|number| self.write_u64(*number));
    }

    pub(crate) fn hash(&self) -> u64 {
        self.hash
    }

    pub(crate) fn events(&self) -> u64 {
        self.events
    }
}

impl Hasher for Trace {
    fn finish(&self) -> u64 {
        self.hash
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.hash = (self.hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn write_u64(&mut self, word: u64) {
        self.hash = (self.hash ^ word)
            .wrapping_mul(0x0100_0000_01b3)
            .rotate_left(23);
    }
}
