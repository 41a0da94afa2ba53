//! Every metadata.version: what a controller formatted there answers and writes, beside what a Java
//! controller formatted there answered and wrote (`fixtures/4.4.0/levels`).

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use serde_json::Value;

use crate::answers::sort;
use crate::harness::{Driver, Kind, Setup};

/// Recorded tables, and the sessions of brokers with them.
const OUTCOMES: Table = Table {
    file: "fixtures/4.4.0/levels/outcomes.tsv",
    session_ms: 600_000,
    line: "",
};
const SESSIONS: Table = Table {
    file: "fixtures/4.4.0/levels/sessions.tsv",
    session_ms: 2_000,
    line: "",
};
const DOWNGRADE: Table = Table {
    file: "fixtures/4.4.0/levels/downgrade.tsv",
    session_ms: 600_000,
    line: "leader.imbalance.check.interval.seconds=1",
};

/// Where what happens to a session that ends is recorded: without and with eligible leader
/// replicas in records, and with them enabled.
const LEVELS_OF_SESSIONS: [u16; 4] = [7, 22, 25, 33];
/// The first level with eligible leader replicas, and the last.
const LEVELS_OF_DOWNGRADE: [u16; 2] = [26, 33];

#[derive(Clone, Copy)]
struct Table {
    file: &'static str,
    session_ms: u32,
    /// A line more of the controller's configuration.
    line: &'static str,
}

/// The lowest level that 4.4 can run, and its newest that is ready for production.
pub(crate) const LEVELS: std::ops::RangeInclusive<u16> = 7..=33;

/// Names of the levels, by number.
const NAMES: [&str; 27] = [
    "3.3-IV3", "3.4-IV0", "3.5-IV0", "3.5-IV1", "3.5-IV2", "3.6-IV0", "3.6-IV1", "3.6-IV2",
    "3.7-IV0", "3.7-IV1", "3.7-IV2", "3.7-IV3", "3.7-IV4", "3.8-IV0", "3.9-IV0", "4.0-IV0",
    "4.0-IV1", "4.0-IV2", "4.0-IV3", "4.1-IV0", "4.1-IV1", "4.2-IV0", "4.2-IV1", "4.3-IV0",
    "4.4-IV0", "4.4-IV1", "4.4-IV2",
];

/// A level's name.
pub(crate) fn name(level: u16) -> &'static str {
    NAMES[usize::from(level - LEVELS.start())]
}

impl Table {
    fn path(self) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join(self.file)
    }
}

/// What Java answered and wrote at `level`, in order: case and outcome.
fn recorded(table: Table, level: u16) -> Vec<(String, String)> {
    let text = fs::read_to_string(table.path()).expect("a recorded table");
    let lines = text
        .lines()
        .map(|line| line.split('\t').collect::<Vec<_>>());
    let at_level = lines.filter(|cells| contains(cells[4], level));
    at_level
        .map(|cells| (cells[0].to_owned(), cells[5..].join("\t")))
        .collect()
}

/// Ranges such as `7,9-11`.
fn contains(ranges: &str, level: u16) -> bool {
    ranges.split(',').any(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let bound = |text: &str| text.parse::<u16>().expect("a level");
        (bound(first)..=bound(last)).contains(&level)
    })
}

/// Plays a table to a new controller at `level` and gives what differs.
fn differences(table: Table, level: u16, driver: &mut Driver) -> Vec<String> {
    let kind = Kind::under_test();
    let mut setup = Setup::static_quorum();
    // Nothing but what is asked for is written.
    setup.add_controller_line("metadata.max.idle.interval.ms=0");
    setup.add_controller_line(&format!("broker.session.timeout.ms={}", table.session_ms));
    setup.add_controller_line(table.line);
    setup.format_static(kind, &["-r", name(level)]);
    let _controller = setup.start_controller(kind);
    let told = setup.path("told.tsv");
    let port = setup.controller_port.to_string();
    let words = [
        "levels".to_owned(),
        "localhost".to_owned(),
        port,
        setup.metadata_dir().display().to_string(),
        table.path().display().to_string(),
        told.display().to_string(),
    ];
    driver.job(&words.each_ref().map(String::as_str));
    let told = fs::read_to_string(told).expect("outcomes");
    let found: Vec<(&str, &str)> = told
        .lines()
        .map(|line| line.split_once('\t').expect("a case and its outcome"))
        .collect();
    let expected = recorded(table, level);
    assert_eq!(expected.len(), found.len());
    let pairs = expected.iter().zip(found);
    pairs
        .filter(|((case, java), (asked, kraftd))| {
            assert_eq!(case, asked);
            sorted(java) != sorted(kraftd)
        })
        .map(|((case, java), (_, kraftd))| format!("{case}\n  - {java}\n  + {kraftd}"))
        .collect()
}

/// An outcome with the lists of its answer sorted: Java's are in the order of hash maps.
fn sorted(outcome: &str) -> String {
    let (answer, records) = outcome.split_once('\t').expect("an answer and records");
    match serde_json::from_str::<Value>(answer) {
        Ok(mut value) => {
            sort(&mut value);
            format!("{value}\t{records}")
        }
        Err(_) => outcome.to_owned(),
    }
}

#[test]
fn at_every_level_requests_are_answered_and_records_are_written_as_by_javas_controller() {
    compare(OUTCOMES, LEVELS.collect());
}

#[test]
fn brokers_whose_sessions_end_come_back_as_with_javas_controller() {
    compare(SESSIONS, LEVELS_OF_SESSIONS.to_vec());
}

#[test]
fn eligible_leaders_that_are_forgotten_after_a_downgrade_leave_what_javas_controller_leaves() {
    compare(DOWNGRADE, LEVELS_OF_DOWNGRADE.to_vec());
}

fn compare(table: Table, levels: Vec<u16>) {
    let todo = Mutex::new(levels);
    let wrong: Mutex<BTreeMap<String, Vec<u16>>> = Mutex::default();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut driver = Driver::start();
                loop {
                    let next = todo.lock().expect("no thread panics").pop();
                    let Some(level) = next else {
                        return;
                    };
                    for difference in differences(table, level, &mut driver) {
                        let mut wrong = wrong.lock().expect("no thread panics");
                        wrong.entry(difference).or_default().push(level);
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().expect("no thread panics");
    let told: Vec<String> = wrong
        .iter()
        .map(|(difference, levels)| format!("levels {levels:?}: {difference}"))
        .collect();
    assert!(
        told.is_empty(),
        "{} outcomes differ: - Java, + kraftd\n{}",
        told.len(),
        told.join("\n")
    );
}
