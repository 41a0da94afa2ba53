//! The rules for one Rust file.

use super::Finding;
use super::code::{Source, item_end};

/// Which rooms a room may import. The picture is in the docs of `src/lib.rs`.
const ARROWS: [(&str, &[&str]); 13] = [
    ("types", &[]),
    ("records", &["types"]),
    ("image", &["records", "types"]),
    ("raft", &["types"]),
    ("controller", &["image", "records", "types"]),
    ("storage", &["raft", "records", "types"]),
    (
        "node",
        &["controller", "image", "raft", "records", "storage", "types"],
    ),
    ("config", &["types"]),
    (
        "server",
        &[
            "config",
            "controller",
            "image",
            "node",
            "raft",
            "records",
            "types",
        ],
    ),
    (
        "observe",
        &["config", "controller", "image", "node", "records", "types"],
    ),
    (
        "sim",
        &[
            "controller",
            "image",
            "node",
            "raft",
            "records",
            "storage",
            "types",
        ],
    ),
    (
        "runtime",
        &[
            "config",
            "controller",
            "image",
            "node",
            "observe",
            "raft",
            "records",
            "server",
            "storage",
            "types",
        ],
    ),
    (
        "cli",
        &[
            "config", "image", "node", "observe", "raft", "records", "runtime", "storage", "types",
        ],
    ),
];

const PURE: [&str; 6] = ["types", "records", "raft", "image", "controller", "node"];

/// Words that a pure room does not contain, with what stands in their place.
const IMPURE: [(&str, &str); 17] = [
    ("std::time", "take `now: types::Instant` as an argument"),
    ("SystemTime", "take the wall clock as an argument"),
    ("rand::", "take a seeded `types::Rng` as an argument"),
    ("std::fs", "emit a storage command; `storage` does the IO"),
    (
        "std::io",
        "emit a storage command or a send; the shell does the IO",
    ),
    ("std::net", "emit a send; `server` does the IO"),
    (
        "std::env",
        "take the setting as an argument; `config` reads it",
    ),
    (
        "std::process",
        "return a fault; `node` says that the process stops",
    ),
    (
        "std::thread",
        "return to the caller; `runtime` owns the threads",
    ),
    (
        "std::sync::mpsc",
        "return outputs; `runtime` owns the channels",
    ),
    ("Mutex", "take `&mut`; the core has one writer"),
    ("RwLock", "take `&mut`; the core has one writer"),
    ("tokio", "return outputs; `server` owns the sockets"),
    ("async fn", "return outputs; the core never waits"),
    (".await", "return outputs; the core never waits"),
    (
        "HashMap",
        "use `IndexMap` or `BTreeMap`: order must not depend on a hash",
    ),
    (
        "HashSet",
        "use `IndexSet` or `BTreeSet`: order must not depend on a hash",
    ),
];

/// Lines of pure rooms that are pure although they hold such a word, each with its file.
const PURE_LINES: [(&str, &str); 1] = [
    // The codecs of libraries read slices through this trait.
    ("src/records/batch/codec.rs", "use std::io::Read;"),
];

/// Functions that may be longer than [`FUNCTION_LINES_MAX`]. This list may only shrink.
pub(crate) const LONG_FUNCTIONS: [(&str, &str); 0] = [];

const LINE_CHARS_MAX: usize = 100;
const FILE_LINES_MAX: usize = 600;
const FUNCTION_LINES_MAX: usize = 70;

fn finding(source: &Source, line: usize, text: String) -> Finding {
    Finding {
        path: source.path.clone(),
        line,
        text,
    }
}

/// Imports follow the arrows; only two rooms see the wire library.
pub(crate) fn arrows(source: &Source) -> Vec<Finding> {
    let Some(room) = source.room() else {
        return Vec::new();
    };
    let Some((_, allowed)) = ARROWS.iter().find(|(name, _)| *name == room) else {
        let text = format!("`{room}` is no known room: add its arrows to ARROWS and to lib.rs");
        return vec![finding(source, 1, text)];
    };
    let mut found = Vec::new();
    for (line, path) in crate_paths(source) {
        let target = path.split("::").next().unwrap_or_default();
        let is_room = ARROWS.iter().any(|(name, _)| *name == target);
        if is_room && target != room && !allowed.contains(&target) {
            let text = format!(
                "`{room}` must not import `{target}` (allowed: {}): move the type down, or \
                 return data and let the caller connect the two",
                allowed.join(", ")
            );
            found.push(finding(source, line, text));
        }
        let inner = path.split("::").nth(1).unwrap_or_default();
        if room == "node" && target == "storage" && is_module(inner) {
            let text = format!("`node` sees only the interface in storage/mod.rs, not `{inner}`");
            found.push(finding(source, line, text));
        }
    }
    if room != "server" && room != "controller" {
        for (line, text) in source.product_lines() {
            if text.contains("kafka_protocol") {
                let text = "only `server` and `controller` import kafka_protocol: take plain data";
                found.push(finding(source, line, text.to_owned()));
            }
        }
    }
    found
}

fn is_module(name: &str) -> bool {
    name.starts_with(char::is_lowercase)
}

/// Every path that starts at the crate, as (line, path behind `crate::`): grouped imports are
/// taken apart one level.
fn crate_paths(source: &Source) -> Vec<(usize, String)> {
    let mut paths = Vec::new();
    for (at, _) in source.bare.match_indices("crate::") {
        let line = source.bare[..at].matches('\n').count() + 1;
        if source.test_lines[line - 1] {
            continue;
        }
        let rest = &source.bare[at + "crate::".len()..];
        if let Some(group) = rest.strip_prefix('{') {
            paths.extend(
                group_members(group)
                    .into_iter()
                    .map(|member| (line, member)),
            );
        } else {
            paths.push((line, word_path(rest)));
        }
    }
    paths
}

fn word_path(text: &str) -> String {
    text.chars()
        .take_while(|c| c.is_alphanumeric() || *c == '_' || *c == ':')
        .collect()
}

fn group_members(group: &str) -> Vec<String> {
    let mut members = vec![String::new()];
    let mut depth = 0;
    for c in group.chars() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => members.push(String::new()),
            _ if depth == 0 => members.last_mut().expect("starts with one").push(c),
            _ => {}
        }
    }
    members
        .iter()
        .map(|member| word_path(member.trim()))
        .collect()
}

/// Pure rooms take time, chance and bytes as arguments.
pub(crate) fn purity(source: &Source) -> Vec<Finding> {
    if !source.room().is_some_and(|room| PURE.contains(&room)) {
        return Vec::new();
    }
    let mut found = Vec::new();
    for (line, text) in source.product_lines() {
        let is_pure =
            |(path, pure): &(&str, &str)| source.path.ends_with(path) && text.trim() == *pure;
        if PURE_LINES.iter().any(is_pure) {
            continue;
        }
        for (word, instead) in IMPURE {
            if contains_word(text, word) {
                let text = format!("`{word}` in a pure room: {instead}");
                found.push(finding(source, line, text));
            }
        }
    }
    found
}

fn contains_word(text: &str, word: &str) -> bool {
    let edge = |c: Option<char>| !c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    text.match_indices(word).any(|(at, _)| {
        let first = word.starts_with(char::is_alphanumeric);
        let last = word.ends_with(char::is_alphanumeric);
        (!first || edge(text[..at].chars().next_back()))
            && (!last || edge(text[at + word.len()..].chars().next()))
    })
}

/// Words of unfinished or hasty code.
pub(crate) fn leftovers(source: &Source) -> Vec<Finding> {
    let mut found = Vec::new();
    let everywhere = [
        ("dbg!", "use a `tracing` macro, or nothing"),
        (
            "todo!",
            "write it, or leave the variant out until it exists",
        ),
        (
            "unimplemented!",
            "write it, or leave the variant out until it exists",
        ),
        ("#[ignore", "make the test fast and sure, or delete it"),
        (
            "thread::sleep",
            "wait for a condition or a channel with a deadline",
        ),
    ];
    for (line, text) in source.numbered() {
        for (word, instead) in everywhere {
            if contains_word(text, word) {
                found.push(finding(source, line, format!("`{word}`: {instead}")));
            }
        }
    }
    for (line, text) in source.product_lines() {
        if text.contains(".unwrap()") {
            let text = "`.unwrap()`: return a fault, or `expect` the invariant in words";
            found.push(finding(source, line, text.to_owned()));
        }
    }
    found
}

/// Lines, functions and files stay short.
pub(crate) fn sizes(source: &Source, exceptions: &[(&str, &str)]) -> Vec<Finding> {
    let mut found = Vec::new();
    for (line, text) in (1..).zip(source.text.lines()) {
        let count = text.chars().count();
        if count > LINE_CHARS_MAX {
            let text = format!("{count} characters: break the line at {LINE_CHARS_MAX}");
            found.push(finding(source, line, text));
        }
    }
    let lines = source.text.lines().count();
    if lines > FILE_LINES_MAX {
        let text = format!("{lines} lines: split the file by concept (at most {FILE_LINES_MAX})");
        found.push(finding(source, FILE_LINES_MAX, text));
    }
    for (line, name, length) in functions(source) {
        let excepted = exceptions.contains(&(source.path.as_str(), name.as_str()));
        if length > FUNCTION_LINES_MAX && !excepted {
            let text = format!(
                "`{name}` has {length} lines: take a step out as a function of its own (at most \
                 {FUNCTION_LINES_MAX})"
            );
            found.push(finding(source, line, text));
        }
    }
    found
}

/// Functions with a body, as (line, name, lines from `fn` to `}`).
fn functions(source: &Source) -> Vec<(usize, String, usize)> {
    let bare = &source.bare;
    let starts = bare.match_indices("fn ").filter(|(at, _)| {
        !bare[..*at]
            .chars()
            .next_back()
            .is_some_and(|c| c.is_alphanumeric() || c == '_')
    });
    let mut found = Vec::new();
    for (at, _) in starts {
        let name = word_path(&bare[at + 3..]);
        let Some(end) = item_end(bare, at) else {
            continue;
        };
        if !name.is_empty() && bare[end..].starts_with('}') {
            let length = bare[at..end].matches('\n').count() + 1;
            found.push((bare[..at].matches('\n').count() + 1, name, length));
        }
    }
    found
}

/// The first line says what the file is.
pub(crate) fn first_line(source: &Source) -> Vec<Finding> {
    let first = source.text.lines().next().unwrap_or_default();
    let words = first
        .strip_prefix("//! ")
        .map_or(0, |rest| rest.split_whitespace().count());
    if words < 2 {
        let text = "the first line is no `//!` sentence: say what this file is".to_owned();
        return vec![finding(source, 1, text)];
    }
    Vec::new()
}

/// Paths that exist on one machine only. `/tmp/kafka-logs` is a default of Kafka's.
pub(crate) fn machine_paths(path: &str, text: &str) -> Vec<Finding> {
    // Spelled in halves, or this file would find itself.
    let roots = ["/wor\u{6b}/", "/tm\u{70}/", "/hom\u{65}/", "/roo\u{74}/"];
    let default = "/tmp/kafka-logs";
    let mut found = Vec::new();
    for (line, content) in (1..).zip(text.lines()) {
        let rest = content.replace(default, "");
        for root in roots {
            let starts = rest.match_indices(root).any(|(at, _)| {
                !rest[..at]
                    .chars()
                    .next_back()
                    .is_some_and(|c| c.is_alphanumeric() || c == '.')
            });
            if starts {
                let text = format!("`{root}...` is a path of one machine: use a relative one");
                found.push(Finding {
                    path: path.to_owned(),
                    line,
                    text,
                });
            }
        }
    }
    found
}
