//! The differential run: one sequence of requests, made by chance from a seed, sent to a Java
//! controller and to kraftd. Answer by answer and record by record they are the same, up to ids,
//! times and the random part of placement.
//!
//! `make diff-java SEED=n COUNT=n` runs one seed for as long as one likes; the tests run a few
//! seeds for a short while. What differs is reported with its seed, its step and the command that
//! shows it again; `DIFF_TRACE=1` prints each request, and `COMPAT_LOGS=DIR` keeps what the two
//! processes said. What may differ stands in [`allowed`].

mod allowed;
mod asks;
mod bindings;
mod generate;
mod placement;
mod run;
mod side;
mod step;
mod tree;

use std::collections::BTreeSet;

use allowed::Allowed;
use run::{Outcome, Run};

/// Seeds of the tests, and for how many requests each.
const SEEDS: [u64; 3] = [1, 2, 3];
const COUNT: usize = 400;

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{name}={text} is no number")),
    )
}

/// What the runs do not ask by chance, and why.
const NOT_ASKED: [(i16, &str); 8] = [
    (1, "Fetch: each run reads both logs by it"),
    (17, "SaslHandshake: the listener is PLAINTEXT"),
    (18, "ApiVersions: each run asks it once"),
    (36, "SaslAuthenticate: the listener is PLAINTEXT"),
    (52, "Vote: of peers, `quorum::` plays them"),
    (53, "BeginQuorumEpoch: the same"),
    (54, "EndQuorumEpoch: the same"),
    (59, "FetchSnapshot: the same"),
];

fn run(seed: u64, count: usize, allowed: &mut Allowed) -> Outcome {
    let outcome = Run::start(seed).go(count, allowed);
    println!(
        "seed {seed}: {} requests, {} records, {:.1} s, {} differences",
        outcome.steps,
        outcome.records,
        outcome.took.as_secs_f64(),
        outcome.reports.len(),
    );
    outcome
}

#[test]
fn java_and_kraftd_answer_and_write_the_same_for_what_chance_asks() {
    let mut allowed = Allowed::by_chance();
    let chosen = number("DIFF_SEED");
    let seeds = chosen.map_or_else(|| SEEDS.to_vec(), |seed| vec![seed]);
    let count = number("DIFF_COUNT").map_or(COUNT, |count| {
        usize::try_from(count).expect("a count of requests")
    });
    let mut reports = Vec::new();
    let mut asked: BTreeSet<i16> = NOT_ASKED.iter().map(|(key, _)| *key).collect();
    let mut served = BTreeSet::new();
    for seed in seeds {
        let outcome = run(seed, count, &mut allowed);
        reports.extend(outcome.reports);
        asked.extend(outcome.asked);
        served.extend(outcome.served.into_iter().flatten());
    }
    for line in allowed.summary() {
        println!("accepted: {line}");
    }
    assert!(reports.is_empty(), "{}", reports.join("\n"));
    if chosen.is_none() {
        let unused = allowed.unused();
        assert!(
            unused.is_empty(),
            "no run meets these any more: {unused:#?}"
        );
        assert_eq!(asked, served, "what is asked, and what the two serve");
    }
}

#[test]
fn odd_values_are_answered_and_written_as_by_javas_controller() {
    let mut run = Run::start(5);
    let count = run.plan_odd();
    let mut allowed = Allowed::odd();
    let outcome = run.go(count, &mut allowed);
    assert_eq!(outcome.steps, count);
    assert!(outcome.reports.is_empty(), "{}", outcome.reports.join("\n"));
    let unused = allowed.unused();
    assert!(
        unused.is_empty(),
        "the run does not meet these any more: {unused:#?}"
    );
}
