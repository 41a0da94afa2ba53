//! Where the recorded files are, and how the tables among them are read.

use std::fs;
use std::path::{Path, PathBuf};

/// The folder of all fixtures.
pub(crate) fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures")
}

/// The folders of the recorded releases.
pub(crate) fn releases() -> Vec<PathBuf> {
    let folders = fs::read_dir(fixtures()).unwrap();
    let mut releases: Vec<PathBuf> = folders
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            let name = path.file_name().unwrap().to_str().unwrap();
            path.is_dir() && name.starts_with(|first: char| first.is_ascii_digit())
        })
        .collect();
    releases.sort();
    releases
}

/// The cells of a tab-separated table of the newest release.
pub(crate) fn lines(table: &str) -> Vec<Vec<String>> {
    let path = fixtures().join("4.4.0").join(table);
    let text = fs::read_to_string(&path).unwrap();
    let cells = |line: &str| line.split('\t').map(str::to_owned).collect();
    text.lines().map(cells).collect()
}

/// The bytes that hexadecimal digits spell.
pub(crate) fn unhex(text: &str) -> Vec<u8> {
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap())
        .collect()
}

/// Every directory of a metadata partition among the fixtures.
pub(crate) fn metadata_folders() -> Vec<PathBuf> {
    let mut found = Vec::new();
    for release in releases() {
        for made in ["formatted", "full", "lived"] {
            walk(&release.join(made), &mut found);
        }
    }
    found.sort();
    found
}

/// Directories of metadata versions that 4.0 and later, and so the image, do not read.
pub(crate) fn old_level_folders() -> Vec<PathBuf> {
    let mut found = Vec::new();
    for release in releases() {
        walk(&release.join("old-levels"), &mut found);
    }
    found
}

fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
    // Not every release was recorded in every way.
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() && path.ends_with("__cluster_metadata-0") {
            found.push(path);
        } else if path.is_dir() {
            walk(&path, found);
        }
    }
}
