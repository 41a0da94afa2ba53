//! Time as plain numbers. The shell reads the clocks; the pure rooms are told.

/// Milliseconds of a clock that never goes back; its zero means nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(pub u64);

/// Wall-clock milliseconds since 1970-01-01T00:00:00Z, as record batches carry them. May go back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub i64);

/// Both clocks at one moment: what every entry of the core is told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// For time-outs and deadlines.
    pub instant: Instant,
    /// For what is written into records and replies.
    pub wall: Timestamp,
}

impl Instant {
    /// A moment that never comes: "no deadline".
    pub const NEVER: Self = Self(u64::MAX);

    /// The moment `ms` milliseconds later (saturating).
    #[must_use]
    pub const fn plus_ms(self, ms: u64) -> Self {
        Self(self.0.saturating_add(ms))
    }

    /// Milliseconds from `earlier` to here, 0 if `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}
