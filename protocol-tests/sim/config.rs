//! What a seed decides before the run begins (swarm testing: each seed turns on its own mix of
//! faults and speeds, so rare combinations meet each other).

use kraftd::types::SplitMix;

use crate::machine;
use crate::scenarios::Scenario;

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
        self.0 > 0 && rng.below(1_000) < self.0
    }
}

/// What a run is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// All sorts of faults, then none.
    Storm,
    /// One voter that does not lead has bad connections; the others must not notice.
    Gray,
    /// One of the scenarios of Kafka's own simulation.
    Script(Scenario),
}

/// How patient a node is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timers {
    pub election_ms: u64,
    pub fetch_ms: u64,
    pub backoff_ms_max: u64,
    pub request_ms: u64,
}

/// Kafka's defaults.
pub(crate) const JAVA: Timers = Timers {
    election_ms: 1_000,
    fetch_ms: 2_000,
    backoff_ms_max: 1_000,
    request_ms: 2_000,
};

/// As an impatient operator would set them. A leader holds a fetch for 500 ms, so that less than
/// that would take every quiet leader for a silent one.
const QUICK: Timers = Timers {
    election_ms: 300,
    fetch_ms: 900,
    backoff_ms_max: 200,
    request_ms: 800,
};

/// What differs from node to node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup {
    pub timers: Timers,
    /// Knows the pre-vote (Vote v2); 3.9 does not.
    pub pre_vote: bool,
    /// How much its clock is too fast, in 1,000.
    pub drift: i64,
    /// It makes itself a voter.
    pub auto_join: bool,
}

/// Faults of single messages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Network {
    pub delay: Span,
    pub lost: Chance,
    /// One that takes this much longer.
    pub late: Chance,
    pub late_ms: Span,
    /// A request that comes twice, the second time late.
    pub twice: Chance,
    /// Batches of an answer whose end does not arrive whole.
    pub damaged: Chance,
}

/// Mean times between faults in milliseconds; none if 0.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Faults {
    /// A process is killed or stopped.
    pub crash: u64,
    /// Several hosts lose their power at once.
    pub power: u64,
    /// A process gets no time for a while.
    pub pause: u64,
    /// Links are cut: one way, both ways, one node, halves, all but a bridge.
    pub cut: u64,
    /// A connection is closed.
    pub flap: u64,
    /// Something on a disk is lost.
    pub damage: u64,
    /// A leader's state machine gives up.
    pub resign: u64,
    /// Voters are added and removed, kraft.version is upgraded.
    pub change: u64,
}

/// One run.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    pub kind: Kind,
    pub machine: machine::Kind,
    /// 0 static voters, 1 voters on disk.
    pub kraft_version: u16,
    pub voters: usize,
    pub observers: usize,
    pub setups: Vec<Setup>,
    /// How long faults go on, milliseconds.
    pub storm_ms: u64,
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
    pub network: Network,
    pub faults: Faults,
    /// How late a wake-up may come.
    pub wake_late: Span,
    /// Down after a crash or stop.
    pub down: Span,
    /// A crash that is a clean stop instead.
    pub clean_stop: Chance,
    /// How long links stay cut.
    pub cut_ms: Span,
    pub pause_ms: Span,
    /// Records between two snapshots; none if 0.
    pub snapshot_every: i64,
    /// How often a new snapshot lets older ones go, and the log below.
    pub clean: Chance,
    /// A snapshot that comes in damaged.
    pub snapshot_bad: Chance,
    /// Bytes of a snapshot that one answer carries at most.
    pub piece_bytes: u32,
    /// Bytes of records that one answer carries at most.
    pub fetch_bytes: u32,
    /// What a write carries is executed before (or after) the outputs of its completion.
    pub carried_first: bool,
    /// A name that cannot be resolved is among the bootstrap servers.
    pub lost_name: bool,
    /// A snapshot that finds no room where it is fetched.
    pub no_room: Chance,
}

fn pick<T: Copy>(rng: &mut SplitMix, of: &[T]) -> T {
    of[rng.below(of.len() as u64) as usize]
}

/// A mean time between faults, or none of them.
fn rate(rng: &mut SplitMix, often: u64, mean: u64) -> u64 {
    match Chance(often).hits(rng) {
        true => mean / 2 + rng.below(mean * 2),
        false => 0,
    }
}

impl Config {
    pub(crate) fn draw(rng: &mut SplitMix, script: Option<Scenario>) -> Self {
        let kind = match (script, rng.below(10)) {
            (Some(scenario), _) => Kind::Script(scenario),
            (None, 0) => Kind::Gray,
            (None, 1) => Kind::Script(pick(rng, Scenario::ALL)),
            (None, _) => Kind::Storm,
        };
        let mut config = Self::storm(rng, kind);
        match kind {
            Kind::Storm => {}
            Kind::Gray => config.quiet(rng, 3),
            Kind::Script(scenario) => config.quiet(rng, scenario.voters_min()),
        }
        config
    }

    fn storm(rng: &mut SplitMix, kind: Kind) -> Self {
        let voters = pick(rng, &[1, 2, 3, 3, 3, 3, 4, 5, 5]);
        let observers = rng.below(3) as usize;
        let slow_disk = Chance(300).hits(rng);
        let kraft_version = u16::from(Chance(500).hits(rng));
        let setups = (0..voters + observers).map(|_| Setup::draw(rng)).collect();
        let faults = Faults::draw(rng, kraft_version);
        // A node that does not vote cannot tell the others of an epoch that a liar made it enter,
        // nor leave one for which a liar named the leader.
        let honest = faults.change > 0 || observers > 0;
        let liars = if honest {
            0
        } else {
            rng.below(4).saturating_sub(1)
        };
        Self {
            kind,
            machine: pick(rng, &[machine::Kind::Values, machine::Kind::Register]),
            kraft_version,
            voters,
            observers,
            setups,
            storm_ms: 4_000 + rng.below(8_000),
            liars: liars as usize,
            propose_every: Span(10, 50 + rng.below(300)),
            records_max: 1 + rng.below(6),
            lie_every: Span(50, 300 + rng.below(1_500)),
            disk: if slow_disk { Span(5, 120) } else { Span(0, 3) },
            stall: Chance(rng.below(3) * 3),
            stall_ms: Span(500, 4_000),
            network: Network::draw(rng),
            faults,
            wake_late: Span(0, rng.below(4) * 10),
            down: Span(10, pick(rng, &[800, 3_000])),
            clean_stop: Chance(250),
            cut_ms: Span(50, pick(rng, &[500, 4_000])),
            pause_ms: Span(50, pick(rng, &[500, 4_000])),
            snapshot_every: pick(rng, &[0, 20, 60]),
            clean: Chance(pick(rng, &[0, 500, 1_000])),
            snapshot_bad: Chance(pick(rng, &[0, 0, 200])),
            piece_bytes: pick(rng, &[64, 400, 1 << 20]),
            fetch_bytes: pick(rng, &[1, 300, 1 << 20]),
            carried_first: Chance(500).hits(rng),
            lost_name: Chance(200).hits(rng),
            no_room: Chance(pick(rng, &[0, 0, 500])),
        }
    }

    /// Without anything that happens by chance.
    fn quiet(&mut self, rng: &mut SplitMix, voters_min: usize) {
        self.voters = self.voters.max(voters_min);
        let nodes = self.voters + self.observers;
        while self.setups.len() < nodes {
            self.setups.push(Setup::draw(rng));
        }
        for setup in &mut self.setups {
            setup.pre_vote = true;
            setup.drift = 0;
        }
        self.heal();
        self.snapshot_every = pick(rng, &[0, 40]);
    }

    /// The same world without faults: what has to make progress.
    pub(crate) fn heal(&mut self) {
        self.liars = 0;
        self.disk = Span(0, 3);
        self.stall = Chance(0);
        self.network = Network {
            delay: Span(0, 3),
            lost: Chance(0),
            late: Chance(0),
            late_ms: Span(0, 0),
            twice: Chance(0),
            damaged: Chance(0),
        };
        self.faults = Faults::default();
        self.wake_late = Span(0, 0);
        self.snapshot_every = 0;
        self.snapshot_bad = Chance(0);
        self.no_room = Chance(0);
    }

    pub(crate) fn nodes(&self) -> usize {
        self.voters + self.observers
    }
}

impl Setup {
    fn draw(rng: &mut SplitMix) -> Self {
        Self {
            timers: pick(rng, &[JAVA, JAVA, QUICK]),
            pre_vote: rng.below(8) > 0,
            drift: rng.below(41) as i64 - 20,
            auto_join: rng.below(4) == 0,
        }
    }
}

impl Network {
    fn draw(rng: &mut SplitMix) -> Self {
        let late = pick(rng, &[100, 3_000]);
        Self {
            delay: Span(0, 1 + rng.below(20)),
            lost: Chance(rng.below(3) * 5),
            late: Chance(rng.below(3) * 10),
            late_ms: Span(10, late),
            twice: Chance(rng.below(3) * 10),
            damaged: Chance(rng.below(3) * 10),
        }
    }
}

impl Faults {
    fn draw(rng: &mut SplitMix, kraft_version: u16) -> Self {
        // What is lost from a disk is counted against the voters that there are.
        let change = rate(rng, 400, 700);
        let damage = rate(rng, 250, 1_500);
        Self {
            crash: rate(rng, 700, 1_200),
            power: rate(rng, 200, 3_000),
            pause: rate(rng, 300, 1_500),
            cut: rate(rng, 500, 1_200),
            flap: rate(rng, 400, 400),
            damage: if change > 0 { 0 } else { damage },
            resign: rate(rng, 200, 2_000),
            change: if kraft_version > 0 || damage == 0 {
                change
            } else {
                0
            },
        }
    }
}
