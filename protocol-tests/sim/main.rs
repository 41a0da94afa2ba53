//! Deterministic simulation of the consensus core: a seed is the whole test.
//!
//! ```text
//! cargo test --test sim                      the fixed seeds and seeds.txt, each run twice
//! cargo test --test sim -- --seed 7          one seed with its full trace
//! cargo test --test sim -- --seconds 60      random seeds for a while; --from N: these on from N
//! ```
//!
//! Each seed draws its own mix of faults (`config.rs`), lets them happen for some virtual seconds
//! (`world.rs`, `disk.rs`), checks the laws (`laws/`) after every event, then heals everything and
//! requires progress. A run is repeated and the hashes of both traces compared: that catches
//! anything that depends on more than the seed.

#![expect(
    clippy::disallowed_methods,
    reason = "how long seeds are tried, and from which one, is real time; the runs see none"
)]

mod config;
mod disk;
mod laws;
mod log;
mod node;
mod observer;
#[path = "../trace.rs"]
mod trace;
mod world;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use world::World;

/// Seeds of a default run, from 1.
const SEEDS: u64 = 300;

/// Seeds that once failed, always run: one a line, with the cause behind it.
const FAILED_BEFORE: &str = include_str!("seeds.txt");

/// What the fixed seeds must have met, else a run proves less than it seems to.
const MEANT_TO_HAPPEN: &[&str] = &[
    "became leader",
    "clean stop",
    "crash in a move of the log's start",
    "crash of an idle disk",
    "crash that lost a suffix",
    "crash that lost all that was under way",
    "crash that tore an append",
    "crash with no completion told",
    "disk hangs",
    "leadership lost",
    "observer behind the log's start",
    "observer cut its log",
    "observer loaded a snapshot",
    "old log cleaned",
    "request to a dead process",
    "snapshot gone while it was fetched",
    "vote granted to another",
];

/// What was asked for.
#[derive(Debug, Default)]
struct Args {
    seed: Option<u64>,
    seconds: Option<u64>,
    from: Option<u64>,
    /// A name filter of `cargo test` that names another test.
    elsewhere: bool,
}

impl Args {
    fn parse() -> Result<Self, String> {
        let mut args = Self::default();
        let mut words = std::env::args().skip(1);
        while let Some(word) = words.next() {
            let mut number = || {
                let text = words.next().unwrap_or_default();
                text.parse()
                    .map_err(|_| format!("{word} wants a number, not \"{text}\""))
            };
            match word.as_str() {
                "--seed" => args.seed = Some(number()?),
                "--seconds" => args.seconds = Some(number()?),
                "--from" => args.from = Some(number()?),
                filter if !filter.starts_with('-') => args.elsewhere = !"sim".contains(filter),
                // What `cargo test` passes to every test binary.
                _ => {}
            }
        }
        Ok(args)
    }
}

/// What a run leaves behind.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    hash: u64,
    events: u64,
    acknowledged: usize,
    met: BTreeMap<&'static str, u64>,
}

fn run(seed: u64, print: bool) -> Outcome {
    let mut world = World::new(seed, print);
    world.run();
    Outcome {
        hash: world.trace.hash(),
        events: world.trace.events(),
        acknowledged: world.laws.acknowledged.count(),
        met: world.met,
    }
}

/// Runs a seed twice. The error says what went wrong.
fn judge(seed: u64) -> Result<Outcome, String> {
    let once = || {
        catch_unwind(AssertUnwindSafe(|| run(seed, false))).map_err(|panic| {
            panic
                .downcast_ref::<String>()
                .cloned()
                .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
                .unwrap_or_else(|| "a panic without words".to_owned())
        })
    };
    let (first, second) = (once()?, once()?);
    match first == second {
        true => Ok(first),
        false => Err(format!("two runs differ: {first:?} and {second:?}")),
    }
}

/// Totals over all seeds.
#[derive(Default)]
struct Score {
    passed: AtomicU64,
    events: AtomicU64,
    acknowledged: AtomicU64,
    met: Mutex<BTreeMap<&'static str, u64>>,
    failed: Mutex<Vec<(u64, String)>>,
}

impl Score {
    fn note(&self, seed: u64, verdict: Result<Outcome, String>) {
        match verdict {
            Ok(outcome) => {
                self.passed.fetch_add(1, Ordering::Relaxed);
                self.events.fetch_add(outcome.events, Ordering::Relaxed);
                self.acknowledged
                    .fetch_add(outcome.acknowledged as u64, Ordering::Relaxed);
                let mut met = self.met.lock().expect("no panic inside");
                for (what, count) in outcome.met {
                    *met.entry(what).or_default() += count;
                }
            }
            Err(why) => {
                eprintln!("seed {seed} failed: {why}");
                eprintln!("  again with its trace: make sim SEED={seed}");
                self.failed
                    .lock()
                    .expect("no panic inside")
                    .push((seed, why));
            }
        }
    }
}

impl Score {
    /// How much went wrong. With `all`, what never happened counts as a failure too.
    fn failed(&self, all: bool) -> usize {
        let met = self.met.lock().expect("the workers are done");
        for (what, count) in met.iter() {
            println!("{count:>8} {what}");
        }
        let missed = MEANT_TO_HAPPEN
            .iter()
            .filter(|what| all && !met.contains_key(*what));
        let missed = missed.inspect(|what| println!("never met: {what}")).count();
        missed + self.failed.lock().expect("the workers are done").len()
    }
}

/// Runs seeds on both cores until there are no more, or the time is over.
fn campaign(next: impl Fn() -> Option<u64> + Sync) -> Score {
    // The laws tell what they found; a backtrace of each caught panic would only hide it.
    std::panic::set_hook(Box::new(|_| {}));
    let score = Score::default();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(seed) = next() {
                    score.note(seed, judge(seed));
                }
            });
        }
    });
    score
}

fn commit() -> String {
    let output = std::process::Command::new("git")
        .args(["rev-parse", "--short", "HEAD"])
        .output();
    match output {
        Ok(output) if output.status.success() => {
            String::from_utf8_lossy(&output.stdout).trim().to_owned()
        }
        Ok(_) | Err(_) => "unknown".to_owned(),
    }
}

fn main() -> ExitCode {
    let args = match Args::parse() {
        Ok(args) => args,
        Err(why) => {
            eprintln!("{why}");
            return ExitCode::from(2);
        }
    };
    if args.elsewhere {
        println!("0 passed, 0 failed");
        return ExitCode::SUCCESS;
    }
    if let Some(seed) = args.seed {
        println!("seed={seed} commit={}", commit());
        let outcome = run(seed, true);
        println!("{outcome:?}\n1 passed, 0 failed");
        return ExitCode::SUCCESS;
    }
    let began = Instant::now();
    let score = match args.seconds {
        Some(seconds) => random_seeds(args.from, Duration::from_secs(seconds)),
        None => fixed_seeds(),
    };
    println!(
        "{} events, {} records acknowledged, {:.1} s",
        score.events.load(Ordering::Relaxed),
        score.acknowledged.load(Ordering::Relaxed),
        began.elapsed().as_secs_f64()
    );
    let failed = score.failed(args.seconds.is_none());
    let passed = score.passed.load(Ordering::Relaxed);
    println!("{passed} passed, {failed} failed");
    match failed {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

fn fixed_seeds() -> Score {
    let seeds: Vec<u64> = failed_before().chain(1..=SEEDS).collect();
    println!(
        "{} fixed seeds, each twice, commit={}",
        seeds.len(),
        commit()
    );
    let next = AtomicU64::new(0);
    campaign(|| {
        let at = next.fetch_add(1, Ordering::Relaxed) as usize;
        seeds.get(at).copied()
    })
}

fn random_seeds(from: Option<u64>, limit: Duration) -> Score {
    let clock = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let from = from.unwrap_or_else(|| clock.map_or(1, |now| now.as_nanos() as u64 >> 10));
    println!(
        "seeds from {from} for {} s, commit={}",
        limit.as_secs(),
        commit()
    );
    let (began, next) = (Instant::now(), AtomicU64::new(from));
    campaign(|| (began.elapsed() < limit).then(|| next.fetch_add(1, Ordering::Relaxed)))
}

fn failed_before() -> impl Iterator<Item = u64> {
    FAILED_BEFORE
        .lines()
        .filter(|line| !line.starts_with('#') && !line.trim().is_empty())
        .map(|line| {
            let seed = line.split_whitespace().next().unwrap_or_default();
            seed.parse().expect("seeds.txt: a seed first on the line")
        })
}
