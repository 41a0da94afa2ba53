//! `tests.allow` lists the scenarios that must pass. It may only grow.

use std::collections::BTreeSet;
use std::process::Command;

#[test]
fn every_allowed_scenario_exists() {
    let exe = std::env::current_exe().expect("this test runs from a file");
    let listed = Command::new(exe)
        .arg("--list")
        .output()
        .expect("this test can run again");
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    let existing: BTreeSet<&str> = listed
        .lines()
        .filter_map(|line| line.strip_suffix(": test"))
        .collect();
    let allowed: BTreeSet<&str> = include_str!("tests.allow")
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .collect();
    let gone: Vec<_> = allowed.difference(&existing).collect();
    assert!(
        gone.is_empty(),
        "tests.allow names scenarios that do not exist: {gone:?}"
    );
    let unlisted: Vec<_> = existing.difference(&allowed).collect();
    assert!(
        unlisted.is_empty(),
        "scenarios that tests.allow does not name yet: {unlisted:?}"
    );
}
