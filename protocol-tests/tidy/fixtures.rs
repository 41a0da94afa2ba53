//! Fixtures are used, and the manifest tells the truth about them.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use sha2::{Digest, Sha256};

use super::Finding;

type Tree = [(String, Vec<u8>)];

const MANIFEST: &str = "fixtures/MANIFEST.tsv";

/// Fixtures that Java recorded: below a folder named as a release.
fn recorded(tree: &Tree) -> impl Iterator<Item = (&str, &[u8])> {
    tree.iter().filter_map(|(path, bytes)| {
        let below = path.strip_prefix("fixtures/")?;
        below
            .starts_with(|c: char| c.is_ascii_digit())
            .then_some((below, bytes.as_slice()))
    })
}

/// A fixture is alive when a Rust file names it, or one of the folders that it is in below its
/// release.
pub(crate) fn dead(tree: &Tree) -> Vec<Finding> {
    let code: String = tree
        .iter()
        .filter(|(path, _)| path.ends_with(".rs") && !path.starts_with("protocol-tests/tidy"))
        .map(|(_, bytes)| String::from_utf8_lossy(bytes))
        .collect();
    let named = |path: &str| {
        let ends = path
            .match_indices('/')
            .map(|(at, _)| at)
            .chain([path.len()]);
        let release = path.find('/').map_or(0, |at| at + 1);
        ends.filter(|&end| end > release).any(|end| {
            let part = &path[release..end];
            let spelled = [
                format!("/{part}\""),
                format!("\"{part}\""),
                format!("\"{part}/"),
                format!("/{part}/"),
            ];
            spelled.iter().any(|spelled| code.contains(spelled))
        })
    };
    recorded(tree)
        .filter(|(path, _)| !named(path))
        .map(|(path, _)| Finding {
            path: format!("fixtures/{path}"),
            line: 1,
            text: "no test names this fixture: use it or delete it".to_owned(),
        })
        .collect()
}

/// The manifest has a line for each recorded file with its SHA-256, and no other lines.
pub(crate) fn manifest(tree: &Tree) -> Vec<Finding> {
    let text = tree
        .iter()
        .find(|(path, _)| path == MANIFEST)
        .map(|(_, bytes)| bytes.as_slice());
    let text = String::from_utf8_lossy(text.unwrap_or_default());
    let mut listed: BTreeMap<&str, (usize, &str)> = (1..)
        .zip(text.lines())
        .skip(1)
        .map(|(line, text)| {
            let file = text.split('\t').next().unwrap_or_default();
            (file, (line, text.rsplit('\t').next().unwrap_or_default()))
        })
        .collect();
    let mut found = Vec::new();
    for (path, bytes) in recorded(tree) {
        let sum = hex(&Sha256::digest(bytes));
        match listed.remove(path) {
            None => found.push(note(
                1,
                format!("{path} is not listed: run `make fixtures`"),
            )),
            Some((line, told)) if told != sum => {
                found.push(note(
                    line,
                    format!("{path} has changed: fixtures are recorded, never edited"),
                ));
            }
            Some(_) => {}
        }
    }
    let gone = listed
        .into_iter()
        .map(|(path, (line, _))| note(line, format!("{path} is gone")));
    found.extend(gone);
    found
}

fn note(line: usize, text: String) -> Finding {
    Finding {
        path: MANIFEST.to_owned(),
        line,
        text,
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut out, byte| {
        write!(out, "{byte:02x}").expect("a string takes everything");
        out
    })
}
