//! What a seed decides before the run begins (swarm testing: each seed turns on its own mix of
//! faults and speeds, so rare combinations meet each other).

use kraftd::types::SplitMix;

/// An inclusive range of milliseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span(pub u64, pub u64);

impl Span {
    pub(crate) fn draw(self, rng: &mut SplitMix) -> u64 {
        self.0 + rng.below(self.1 - self.0 + 1)
    }
}

/// A chance in 1,000.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chance(pub u64);

impl Chance {
    pub(crate) fn hits(self, rng: &mut SplitMix) -> bool {
        rng.below(1_000) < self.0
    }
}

/// One run.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    /// 0 static voters, 1 voters on disk.
    pub kraft_version: u16,
    /// How long faults go on, milliseconds.
    pub storm_ms: u64,
    pub observers: usize,
    pub liars: usize,
    /// Between two proposals.
    pub propose_every: Span,
    pub records_max: u64,
    /// Between two requests of one liar.
    pub lie_every: Span,
    /// One write and its sync.
    pub disk: Span,
    /// A disk that hangs, and for how long.
    pub stall: Chance,
    pub stall_ms: Span,
    pub network: Span,
    pub message_lost: Chance,
    /// How late a wake-up may come.
    pub wake_late: Span,
    /// Between two crashes; none if 0.
    pub crash_every_ms: u64,
    /// Down after a crash or stop.
    pub down: Span,
    /// A crash that is a clean stop instead.
    pub clean_stop: Chance,
    /// Between two crashes of an observer; none if 0.
    pub observer_crash_every_ms: u64,
    /// Records between two snapshots; none if 0.
    pub snapshot_every: i64,
    /// How often a new snapshot lets older ones go, and the log below.
    pub clean: Chance,
    /// What a write carries is executed before (or after) the outputs of its completion.
    pub carried_first: bool,
}

impl Config {
    pub(crate) fn draw(rng: &mut SplitMix) -> Self {
        let slow_disk = Chance(300).hits(rng);
        Self {
            kraft_version: u16::from(Chance(500).hits(rng)),
            storm_ms: 3_000 + rng.below(6_000),
            observers: 1 + rng.below(3) as usize,
            liars: rng.below(3) as usize,
            propose_every: Span(5, 20 + rng.below(300)),
            records_max: 1 + rng.below(6),
            lie_every: Span(10, 100 + rng.below(1_500)),
            disk: if slow_disk { Span(5, 120) } else { Span(0, 3) },
            stall: Chance(rng.below(3) * 4),
            stall_ms: Span(500, 4_000),
            network: Span(0, 1 + rng.below(30)),
            message_lost: Chance(rng.below(3) * 15),
            wake_late: Span(0, rng.below(4) * 10),
            crash_every_ms: rng.below(4) * 900,
            down: Span(10, 800),
            clean_stop: Chance(250),
            observer_crash_every_ms: rng.below(3) * 1_500,
            snapshot_every: [0, 20, 60][rng.below(3) as usize],
            clean: Chance([0, 500, 1_000][rng.below(3) as usize]),
            carried_first: Chance(500).hits(rng),
        }
    }

    /// The same world without faults: what has to make progress.
    pub(crate) fn heal(&mut self) {
        self.liars = 0;
        self.disk = Span(0, 3);
        self.stall = Chance(0);
        self.network = Span(0, 3);
        self.message_lost = Chance(0);
        self.wake_late = Span(0, 0);
        self.crash_every_ms = 0;
        self.observer_crash_every_ms = 0;
        self.snapshot_every = 0;
    }
}
