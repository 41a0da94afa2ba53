//! Deterministic simulation of quorums of the consensus core: a seed is the whole test.
//!
//! ```text
//! cargo test --test sim                      seeds.txt, the scripts and the fixed seeds
//! cargo test --test sim -- --seed 7          one seed with its full trace
//! cargo test --test sim -- --script 3        one script with its full trace (with --seed N)
//! cargo test --test sim -- --seconds 60      random seeds for a while; --from N: these on from N
//! cargo test --test sim -- --seeds 5000 --from 1000      so many, from there on
//! ```
//!
//! Each seed draws its own mix of faults (`config.rs`), lets them happen for some virtual seconds
//! (`world/`, `disk/`), checks the laws (`laws/`) after every event, then heals everything and
//! requires progress. Every tenth run is repeated and the hashes of both traces compared: that
//! catches anything that depends on more than the seed. `BUGS.md` tells what it found.
//!
//! Longest campaign on one state of the code: the seeds 1 to 10,000, no law broken
//! (`make sim SEEDS=10000`).

#![expect(
    clippy::disallowed_methods,
    reason = "how long seeds are tried, and from which one, is real time; the runs see none"
)]

mod codec;
mod config;
mod disk;
mod journal;
mod laws;
mod liar;
mod log;
mod machine;
mod node;
mod scenarios;
#[path = "../trace.rs"]
mod trace;
mod world;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use scenarios::Scenario;
use world::World;

/// Seeds of a default run, from 1.
const SEEDS: u64 = 1_000;

/// Of these every so manieth is run a second time, to compare.
const TWICE: u64 = 10;

/// After so many seeds a long run says how far it is.
const PROGRESS: u64 = 5_000;

/// Seeds with which each script runs.
const SCRIPTED: u64 = 5;

/// Seeds that once failed, always run: one a line, with the cause behind it.
const FAILED_BEFORE: &str = include_str!("seeds.txt");

/// What the fixed seeds must have met, else a run proves less than it seems to.
const MEANT_TO_HAPPEN: &[&str] = &[
    "answer lost",
    "answer not in time",
    "backup of a directory",
    "batches damaged on their way",
    "became leader",
    "bit rot",
    "clean stop",
    "connection closed",
    "connection refused",
    "crash in a move of the log's start",
    "crash in a take-over of a snapshot",
    "crash that lost a cut",
    "crash of an idle disk",
    "crash that lost a suffix",
    "crash that lost all that was under way",
    "crash that tore an append",
    "crash with no completion told",
    "cut in two",
    "cut in two with a bridge",
    "cut one way",
    "cut: a node does not hear",
    "cut: a node is alone",
    "cut: a node is not heard",
    "damaged log refilled",
    "directory wiped",
    "disk hangs",
    "elects a new leader after the leader failed",
    "elects a new leader after the leader stopped, and again",
    "elects a new leader after the leader was cut off",
    "elects an initial leader",
    "epoch stable beside a voter with bad connections",
    "kraft.version not upgraded",
    "kraft.version upgraded",
    "leader's state machine gave up",
    "leadership lost",
    "lets observers join",
    "log cut",
    "makes progress with a majority",
    "name not resolved",
    "old directory restored",
    "old log cleaned",
    "piece of a snapshot kept",
    "power cut",
    "pre-vote asked",
    "pre-vote not supported",
    "process paused",
    "recovers after all nodes failed",
    "request lost",
    "request to a dead process",
    "request twice",
    "snapshot came in damaged",
    "snapshot taken over",
    "snapshot without room",
    "vote asked",
    "vote granted",
    "vote lost",
    "voter added",
    "voter not added",
    "voter not removed",
    "voter removed",
    "voter updated",
];

/// What was asked for.
#[derive(Debug, Default)]
struct Args {
    seed: Option<u64>,
    script: Option<Scenario>,
    seconds: Option<u64>,
    seeds: Option<u64>,
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
                "--seeds" => args.seeds = Some(number()?),
                "--script" => {
                    let at = number()? as usize;
                    let script = Scenario::ALL.get(at.wrapping_sub(1)).copied();
                    args.script = Some(script.ok_or("--script wants 1 to 7")?);
                }
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
    slowest: u64,
    met: BTreeMap<&'static str, u64>,
}

/// A run: a seed, and the script if the seed does not draw one.
type Case = (u64, Option<Scenario>);

fn run((seed, script): Case, print: bool) -> Outcome {
    let mut world = World::new(seed, script, print);
    world.run();
    Outcome {
        hash: world.trace.hash(),
        events: world.trace.events(),
        acknowledged: world.laws.acknowledged.count(),
        slowest: world.slowest,
        met: world.met,
    }
}

/// Runs a case, and every so manieth again. The error says what went wrong.
fn judge(case: Case) -> Result<Outcome, String> {
    let once = || {
        catch_unwind(AssertUnwindSafe(|| run(case, false))).map_err(|panic| {
            panic
                .downcast_ref::<String>()
                .cloned()
                .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
                .unwrap_or_else(|| "a panic without words".to_owned())
        })
    };
    let first = once()?;
    if case.0.is_multiple_of(TWICE) {
        let second = once()?;
        if first != second {
            return Err(format!("two runs differ: {first:?} and {second:?}"));
        }
    }
    Ok(first)
}

/// Totals over all seeds.
#[derive(Default)]
struct Score {
    passed: AtomicU64,
    events: AtomicU64,
    acknowledged: AtomicU64,
    slowest: AtomicU64,
    met: Mutex<BTreeMap<&'static str, u64>>,
    failed: Mutex<Vec<(Case, String)>>,
}

impl Score {
    fn note(&self, case: Case, verdict: Result<Outcome, String>) {
        match verdict {
            Ok(outcome) => {
                let passed = self.passed.fetch_add(1, Ordering::Relaxed) + 1;
                if passed.is_multiple_of(PROGRESS) {
                    println!("{passed} passed so far");
                }
                self.events.fetch_add(outcome.events, Ordering::Relaxed);
                self.acknowledged
                    .fetch_add(outcome.acknowledged as u64, Ordering::Relaxed);
                self.slowest.fetch_max(outcome.slowest, Ordering::Relaxed);
                let mut met = self.met.lock().expect("no panic inside");
                for (what, count) in outcome.met {
                    *met.entry(what).or_default() += count;
                }
            }
            Err(why) => {
                let (seed, script) = case;
                let script = script.map_or("", Scenario::name);
                eprintln!("seed {seed} {script} failed: {why}");
                eprintln!("  again with its trace: make sim SEED={seed}");
                let mut failed = self.failed.lock().expect("no panic inside");
                failed.push((case, why));
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
fn campaign(next: impl Fn() -> Option<Case> + Sync) -> Score {
    // The laws tell what they found; a backtrace of each caught panic would only hide it.
    std::panic::set_hook(Box::new(|_| {}));
    let score = Score::default();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(case) = next() {
                    score.note(case, judge(case));
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
    if args.seed.is_some() || args.script.is_some() {
        let case = (args.seed.unwrap_or(1), args.script);
        println!("{case:?} commit={}", commit());
        let outcome = run(case, true);
        println!("{outcome:?}\n1 passed, 0 failed");
        return ExitCode::SUCCESS;
    }
    let began = Instant::now();
    let score = match (args.seconds, args.seeds) {
        (Some(seconds), _) => random_seeds(args.from, Duration::from_secs(seconds)),
        (None, Some(seeds)) => some_seeds(args.from.unwrap_or(1), seeds),
        (None, None) => fixed_seeds(),
    };
    println!(
        "{} events, {} records acknowledged, progress within {} virtual ms, {:.1} s",
        score.events.load(Ordering::Relaxed),
        score.acknowledged.load(Ordering::Relaxed),
        score.slowest.load(Ordering::Relaxed),
        began.elapsed().as_secs_f64()
    );
    let failed = score.failed(args.seconds.is_none() && args.seeds.is_none());
    let passed = score.passed.load(Ordering::Relaxed);
    println!("{passed} passed, {failed} failed");
    match failed {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

fn fixed_seeds() -> Score {
    let scripts = Scenario::ALL.iter();
    let scripts = scripts.flat_map(|script| (1..=SCRIPTED).map(|seed| (seed, Some(*script))));
    let seeds = failed_before().chain(1..=SEEDS).map(|seed| (seed, None));
    let cases: Vec<Case> = seeds.chain(scripts).collect();
    println!("{} fixed seeds, commit={}", cases.len(), commit());
    let next = AtomicU64::new(0);
    campaign(|| {
        let at = next.fetch_add(1, Ordering::Relaxed) as usize;
        cases.get(at).copied()
    })
}

fn some_seeds(from: u64, count: u64) -> Score {
    println!("{count} seeds from {from}, commit={}", commit());
    let next = AtomicU64::new(0);
    campaign(|| {
        let at = next.fetch_add(1, Ordering::Relaxed);
        (at < count).then_some((from + at, None))
    })
}

fn random_seeds(from: Option<u64>, limit: Duration) -> Score {
    let clock = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let from = from.unwrap_or_else(|| clock.map_or(1, |now| now.as_nanos() as u64 >> 10));
    let seconds = limit.as_secs();
    println!("seeds from {from} for {seconds} s, commit={}", commit());
    let (began, next) = (Instant::now(), AtomicU64::new(from));
    campaign(|| (began.elapsed() < limit).then(|| (next.fetch_add(1, Ordering::Relaxed), None)))
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
