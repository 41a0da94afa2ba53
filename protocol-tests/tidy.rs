//! The house rules of the tree, as tests: arrows between rooms, pure rooms, sizes, first lines,
//! leftovers. Each finding names the rule and what to write instead. The checks themselves are
//! proved on bad samples in `tidy/samples.rs`.

mod code;
mod fixtures;
mod rules;
mod samples;

use std::fs;
use std::path::{Path, PathBuf};

/// One broken rule: where, and what to do about it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) path: String,
    pub(crate) line: usize,
    pub(crate) text: String,
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.text)
    }
}

/// Folders with other people's or generated files.
const SKIPPED: [&str; 6] = [
    ".git",
    "target",
    "data",
    "compat/java/jars",
    "compat/java/target",
    "compat/kafka-suite/target",
];

/// The root of the package.
pub(crate) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Every file of the tree, as (path below the root with `/`, bytes).
pub(crate) fn tree() -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    walk(&root(), "", &mut files);
    files.sort();
    files
}

fn walk(root: &Path, below: &str, files: &mut Vec<(String, Vec<u8>)>) {
    for entry in fs::read_dir(root.join(below)).expect("the tree is readable") {
        let entry = entry.expect("the tree is readable");
        let name = entry
            .file_name()
            .into_string()
            .expect("names in the tree are UTF-8");
        let path = if below.is_empty() {
            name
        } else {
            format!("{below}/{name}")
        };
        let kind = entry.file_type().expect("the tree is readable");
        if kind.is_dir() && !SKIPPED.contains(&path.as_str()) {
            walk(root, &path, files);
        } else if kind.is_file() && path != ".git" {
            files.push((path, fs::read(entry.path()).expect("the tree is readable")));
        }
    }
}

fn assert_none(findings: &[Finding]) {
    let lines: Vec<String> = findings.iter().map(Finding::to_string).collect();
    assert!(
        findings.is_empty(),
        "{} findings:\n{}",
        lines.len(),
        lines.join("\n")
    );
}

/// Runs one rule over every Rust file of the tree.
fn over_rust(rule: impl Fn(&code::Source) -> Vec<Finding>) -> Vec<Finding> {
    let rust = tree().into_iter().filter(|(path, _)| path.ends_with(".rs"));
    rust.flat_map(|(path, bytes)| {
        let text = String::from_utf8(bytes).expect("Rust files are UTF-8");
        rule(&code::Source::new(&path, &text))
    })
    .collect()
}

#[test]
fn rooms_import_only_what_their_arrows_allow() {
    assert_none(&over_rust(rules::arrows));
}

#[test]
fn pure_rooms_have_no_clock_chance_io_threads_or_unordered_maps() {
    assert_none(&over_rust(rules::purity));
}

#[test]
fn no_leftovers_of_writing_and_debugging_remain() {
    assert_none(&over_rust(rules::leftovers));
}

#[test]
fn lines_functions_and_files_stay_short() {
    assert_none(&over_rust(|source| {
        rules::sizes(source, &rules::LONG_FUNCTIONS)
    }));
}

#[test]
fn every_exception_for_a_long_function_is_still_needed() {
    let needed = over_rust(|source| rules::sizes(source, &[]));
    for (path, function) in rules::LONG_FUNCTIONS {
        assert!(
            needed
                .iter()
                .any(|f| f.path == path && f.text.contains(&format!("`{function}`"))),
            "{path}: `{function}` is short now: take it off LONG_FUNCTIONS"
        );
    }
}

#[test]
fn every_rust_file_says_first_what_it_is() {
    assert_none(&over_rust(rules::first_line));
}

#[test]
fn no_path_of_a_machine_is_in_the_tree() {
    let texts = tree().into_iter().filter_map(|(path, bytes)| {
        let text = String::from_utf8(bytes).ok()?;
        Some(rules::machine_paths(&path, &text))
    });
    assert_none(&texts.flatten().collect::<Vec<_>>());
}

#[test]
fn every_fixture_is_used_by_a_test() {
    assert_none(&fixtures::dead(&tree()));
}

#[test]
fn the_manifest_lists_every_fixture_with_its_checksum() {
    assert_none(&fixtures::manifest(&tree()));
}
