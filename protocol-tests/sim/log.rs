//! The log of a run: every line goes into a hash, and to the screen if wanted.

use std::fmt::{self, Write};

/// FNV-1a, so that two runs of one seed can be compared without keeping their text.
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

    /// One aligned line: time, who, what.
    pub(crate) fn line(&mut self, time: u64, who: &str, what: fmt::Arguments<'_>) {
        if self.print {
            println!("{time:>7} {who:<10} {what}");
        }
        self.events += 1;
        write!(self, "{time} {who} {what}").expect("hashing cannot fail");
    }

    pub(crate) fn hash(&self) -> u64 {
        self.hash
    }

    pub(crate) fn events(&self) -> u64 {
        self.events
    }
}

impl Write for Trace {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            self.hash = (self.hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        Ok(())
    }
}
