//! `kraftd state` beside Java's own images: the tree of the metadata shell, and the image that
//! Java's loader of 4.4.0 has at an offset, for every directory in `fixtures`.
//!
//! Where the trees differ, and stay so (compat/FINDINGS.md says why):
//! - `local`, the shell's own version, is not shown;
//! - the shell tells places in the file where a checkpoint's offset is asked for;
//! - the default entities of client quotas, which the shell shows under an empty name, and empty;
//! - values of groups and client metrics subscriptions, which Java's mask hides.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kraftd::storage::reader::{Item, Role, Source};
use serde_json::Value;

use crate::harness::{Driver, Ended, Kind, Setup, run, until};
use crate::normal::difference;
use crate::shown::java_tree;

/// Differences that stay, each by the test that has to meet it: one that is gone fails the test.
const IN_IMAGE: [Listed; 2] = [Listed::DefaultQuota, Listed::MaskedGroups];
const IN_SHELL: [Listed; 3] = [
    Listed::CheckpointProvenance,
    Listed::DefaultQuota,
    Listed::Local,
];

/// A difference that stays: see the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Listed {
    CheckpointProvenance,
    DefaultQuota,
    Local,
    MaskedGroups,
}

type Met = BTreeSet<Listed>;

/// The newest shell that is published knows no level above 4.3-IV0.
const SHELL: &str = "shell-4.3.1";
const LEVELS_BEYOND_SHELL: [&str; 4] = ["4.4-IV0", "4.4-IV1", "4.4-IV2", "4.5-IV0"];

/// How many offsets of a log are compared.
const OFFSETS: usize = 20;

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures")
}

fn entries(dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(dir) else {
        return Vec::new();
    };
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.expect("readable").path())
        .collect();
    paths.sort();
    paths
}

/// Every log directory below `fixtures/<release>/<kind>/`, with its release. Levels that 4.4 cannot
/// run stop Java's loader of 4.4 as they stop ours.
fn directories() -> Vec<(String, PathBuf)> {
    let mut found = Vec::new();
    for release in entries(&fixtures()) {
        let name = release
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let inner = entries(&release)
            .into_iter()
            .filter(|kind| !kind.ends_with("old-levels"))
            .flat_map(|kind| entries(&kind));
        found.extend(
            inner
                .filter(|dir| dir.join("__cluster_metadata-0").is_dir())
                .map(|dir| (name.clone(), dir)),
        );
    }
    let releases: BTreeSet<&String> = found.iter().map(|(release, _)| release).collect();
    assert!(releases.len() >= 6, "fixtures of {releases:?} only");
    found
}

/// What `kraftd state` says, as JSON, and its notes.
#[track_caller]
fn asked(source: &Path, more: &[&str]) -> Ended {
    let mut command = crate::harness::kraftd();
    command.arg("state").arg(source).arg("--json").args(more);
    run(&mut command)
}

fn state(source: &Path, more: &[&str]) -> (Value, String) {
    let ended = asked(source, more);
    assert_eq!(ended.code, Some(0), "{}: {}", source.display(), ended.err);
    let document = serde_json::from_str(&ended.out).expect("JSON");
    (document, ended.err)
}

struct Files {
    /// Ascending by the offset that they end at.
    checkpoints: Vec<(i64, PathBuf)>,
    segments: Vec<PathBuf>,
    /// The last offsets of the batches of the log.
    ends: Vec<i64>,
}

fn files(dir: &Path) -> Files {
    let source = Source::open(dir).expect("a metadata directory");
    let ends = source
        .walk_log()
        .map(|item| match item.expect("readable").1 {
            Item::Batch { batch, .. } => batch.last_offset().0,
            Item::Damage(damage) => panic!("{}", damage.sentence),
        });
    Files {
        checkpoints: source
            .checkpoints
            .iter()
            .filter_map(|file| match file.role {
                Role::Checkpoint { id } => Some((id.offset.0, file.path.clone())),
                Role::Segment { .. } => None,
            })
            .collect(),
        segments: source
            .segments
            .iter()
            .map(|file| file.path.clone())
            .collect(),
        ends: ends.collect(),
    }
}

/// Trees that Java's loader of 4.4.0 has, each with the offset after which it is.
fn java_states(
    driver: &mut Driver,
    secrets: &str,
    checkpoint: Option<&Path>,
    segments: &[PathBuf],
    offsets: &[i64],
) -> Vec<(i64, Vec<String>)> {
    let mut words = vec!["states".to_owned(), secrets.to_owned()];
    words.push(
        checkpoint
            .map(|path| path.display().to_string())
            .unwrap_or_default(),
    );
    words.extend(segments.iter().map(|path| format!("@{}", path.display())));
    words.extend(offsets.iter().map(ToString::to_string));
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut states: Vec<(i64, Vec<String>)> = Vec::new();
    for line in driver.job(&words) {
        match (line.strip_prefix("at "), states.last_mut()) {
            (Some(offset), _) => states.push((offset.parse().expect("an offset"), Vec::new())),
            (None, Some((_, lines))) => lines.push(line),
            (None, None) => panic!("a tree without an offset: {line}"),
        }
    }
    states
}

/// The checkpoint that Java begins with: none when the log begins at 0, else the first one that
/// the log continues. kraftd begins with the newest.
fn java_base(files: &Files) -> Option<&Path> {
    let begins = files
        .segments
        .first()
        .map_or(i64::MAX, |path| base_of(path));
    if begins == 0 {
        return None;
    }
    let covering = files.checkpoints.iter().find(|(end, _)| *end >= begins);
    let newest = files.checkpoints.last();
    covering.or(newest).map(|(_, path)| path.as_path())
}

fn base_of(segment: &Path) -> i64 {
    let name = segment.file_stem().unwrap_or_default().to_string_lossy();
    name.parse().expect("a segment's name is its base offset")
}

/// What is in a directory is the same to Java's loader and to `kraftd state`.
#[track_caller]
pub(crate) fn assert_javas_image(driver: &mut Driver, dir: &Path) {
    let found = files(dir);
    let (document, notes) = state(dir, &["--show-secrets"]);
    let base = java_base(&found);
    let java = java_states(driver, "shown", base, &found.segments, &[]);
    let java = java.into_iter().next().expect("one tree").1;
    assert_same_noted(dir, java, java_tree(&document), &notes, &mut Met::new());
}

#[test]
fn every_directory_and_checkpoint_shows_what_javas_image_shows() {
    let mut driver = Driver::start();
    let (mut compared, mut met) = (0, Met::new());
    for (_, dir) in directories() {
        let files = files(&dir);
        for (end, checkpoint) in &files.checkpoints {
            let (document, _) = state(checkpoint, &["--show-secrets"]);
            let mut ours = java_tree(&document);
            let java = java_states(&mut driver, "shown", Some(checkpoint), &[], &[])
                .remove(0)
                .1;
            if *end == 0 {
                // Formatting gives it no time to tell, and the offset is -1 for both.
                ours.retain(|line| !line.trim_start().starts_with("offset -1, "));
            }
            let java: Vec<String> = java
                .into_iter()
                .filter(|line| *end != 0 || !line.trim_start().starts_with("offset -1, "))
                .collect();
            assert_same(checkpoint, &java, &ours, &mut met);
            compared += 1;
        }
        if files.ends.is_empty() {
            continue;
        }
        for secrets in ["shown", "masked"] {
            let more: &[&str] = if secrets == "shown" {
                &["--show-secrets"]
            } else {
                &[]
            };
            let (document, notes) = state(&dir, more);
            let base = java_base(&files);
            let java = java_states(&mut driver, secrets, base, &files.segments, &[]);
            let java = java.into_iter().next().expect("one tree").1;
            assert_same_noted(&dir, java, java_tree(&document), &notes, &mut met);
            compared += 1;
        }
    }
    assert!(compared >= 100, "only {compared} states");
    assert_eq!(met, Met::from(IN_IMAGE), "differences that were met");
}

#[test]
fn the_state_after_an_offset_is_the_one_of_a_java_controller_stopped_there() {
    let mut driver = Driver::start();
    let mut compared = 0;
    for (_, dir) in directories() {
        let files = files(&dir);
        let base = java_base(&files);
        let first = base.map_or(0, |base| {
            state(base, &[]).0["provenance"]["offset"]
                .as_i64()
                .unwrap_or(0)
        });
        let ends: Vec<i64> = files
            .ends
            .iter()
            .copied()
            .filter(|end| *end >= first)
            .collect();
        if ends.is_empty() {
            continue;
        }
        let offsets: BTreeSet<i64> = (1..=OFFSETS)
            .map(|n| ends[(ends.len() - 1) * n / OFFSETS])
            .collect();
        let offsets: Vec<i64> = offsets.into_iter().collect();
        let states = java_states(&mut driver, "shown", base, &files.segments, &offsets);
        assert_eq!(states.len(), offsets.len(), "{}", dir.display());
        for (offset, java) in states {
            let at = offset.to_string();
            let (document, notes) = state(&dir, &["--show-secrets", "--at", &at]);
            let place = dir.join(format!("--at {at}"));
            assert_same_noted(&place, java, java_tree(&document), &notes, &mut Met::new());
            compared += 1;
        }
    }
    assert!(compared >= 6 * OFFSETS, "only {compared} states");
}

#[test]
fn the_metadata_shell_shows_of_every_directory_what_state_shows() {
    let mut shell = Driver::start_on(SHELL);
    let scratch = tempfile::tempdir().expect("a temporary directory");
    let (mut compared, mut beyond, mut met) = (0, BTreeSet::new(), Met::new());
    for (release, dir) in directories() {
        let files = files(&dir);
        // A log that a checkpoint precedes is not the whole state: the shell takes one file.
        let whole_log = files.segments.len() == 1 && base_of(&files.segments[0]) == 0;
        let log = files
            .segments
            .first()
            .filter(|_| whole_log && !files.ends.is_empty());
        let checkpoints = files.checkpoints.iter().map(|(_, path)| path);
        for file in checkpoints.chain(log) {
            let (document, notes) = state(file, &["--show-secrets"]);
            let level = document["features"]["metadataVersion"]
                .as_str()
                .unwrap_or_default();
            if LEVELS_BEYOND_SHELL.contains(&level) {
                beyond.insert(release.clone());
                continue;
            }
            let is_log = log == Some(file);
            if level.is_empty() || notes.contains("inside the metadata transaction") {
                // Without a metadata record in the file the shell waits for ever; nor does it show
                // anything while the last batch is inside a transaction.
                continue;
            }
            let java = shell_tree(&mut shell, scratch.path(), file, &mut met);
            let mut ours = java_tree(&document);
            let mut java = java;
            if !is_log {
                let offset = |lines: &[String]| {
                    let mut lines = lines.iter();
                    lines
                        .find(|line| line.trim_start().starts_with("offset "))
                        .cloned()
                };
                if offset(&ours) != offset(&java) {
                    met.insert(Listed::CheckpointProvenance);
                }
                for lines in [&mut ours, &mut java] {
                    lines.retain(|line| !line.trim_start().starts_with("offset "));
                }
            }
            assert_same(file, &java, &ours, &mut met);
            compared += 1;
        }
    }
    assert!(compared >= 30, "only {compared} files");
    assert_eq!(met, Met::from(IN_SHELL), "differences that were met");
    // Their states are compared with Java's image of 4.4.0 above.
    let beyond: Vec<String> = beyond.into_iter().collect();
    assert_eq!(beyond, ["4.4.0"], "releases that the shell cannot read");
}

#[test]
fn the_directory_of_a_running_controller_is_read_and_left_as_it_is() {
    for kind in [Kind::Java("4.4.0"), Kind::under_test()] {
        let setup = Setup::new();
        setup.format(kind, &[]);
        let mut controller = setup.start_controller(kind);
        let dir = setup.controller_dir();
        let registered = || {
            // A log without a record has no state yet, and the command says so with its code.
            let ended = asked(&dir, &["controllers"]);
            ended.code == Some(0) && ended.out.contains("\"1\"")
        };
        until(
            "the controller registered",
            Duration::from_secs(60),
            registered,
        );
        let names = |dir: &Path| -> Vec<PathBuf> {
            let mut found = entries(dir);
            found.extend(entries(&dir.join("__cluster_metadata-0")));
            found
        };
        let before = names(&dir);
        let (document, notes) = state(&dir, &[]);
        assert_eq!(names(&dir), before, "{kind:?}");
        assert!(before.contains(&dir.join(".lock")), "{kind:?}: {before:?}");
        assert!(
            document["features"]["metadataVersion"].is_string(),
            "{kind:?}: {notes}"
        );
        assert!(controller.server.is_running(), "{kind:?}");
        // The lock is still the controller's: a second one is refused.
        let mut second = setup.spawn_controller(Kind::Kraftd);
        assert_ne!(second.until_ends().code(), Some(0), "{kind:?}");
    }
}

/// What the shell's `tree /` says of a copy: it locks the directory around the file.
fn shell_tree(shell: &mut Driver, scratch: &Path, file: &Path, met: &mut Met) -> Vec<String> {
    let copies = scratch.join("__cluster_metadata-0");
    fs::create_dir_all(&copies).expect("a writable directory");
    let copy = copies.join(file.file_name().expect("a name"));
    fs::copy(file, &copy).expect("a writable directory");
    // It may be too fast for itself, and then shows an empty image.
    for _ in 0..100 {
        let lines = shell.job(&["shell", &copy.display().to_string()]);
        if lines.iter().all(|line| line.trim() != "Optional.empty") {
            let local = lines.iter().position(|line| line == "local:");
            met.extend(local.map(|_| Listed::Local));
            return lines[..local.unwrap_or(lines.len())].to_vec();
        }
    }
    panic!(
        "{}: the shell goes on showing an empty image",
        file.display()
    );
}

/// As [`assert_same`]. Inside an open transaction Java's image stands before it began, while ours
/// tells the offset asked for.
#[track_caller]
fn assert_same_noted(
    place: &Path,
    mut java: Vec<String>,
    mut ours: Vec<String>,
    notes: &str,
    met: &mut Met,
) {
    if notes.contains("inside the metadata transaction") {
        for lines in [&mut ours, &mut java] {
            lines.retain(|line| !line.trim_start().starts_with("offset "));
        }
    }
    assert_same(place, &java, &ours, met);
}

/// Compares two trees, differences that stay aside.
#[track_caller]
fn assert_same(place: &Path, java: &[String], ours: &[String], met: &mut Met) {
    let (java, ours) = (without_defaults(java, met), without_defaults(ours, met));
    let ours = masked_where_java_masks(&java, ours, met);
    let difference = difference(&java, &ours);
    assert!(
        difference.is_empty(),
        "{}: - Java, + kraftd\n{difference}",
        place.display()
    );
}

/// Without the default entities of client quotas: see the module.
fn without_defaults(lines: &[String], met: &mut Met) -> Vec<String> {
    let mut kept = Vec::new();
    let mut inside = false;
    for line in lines {
        let depth = line.len() - line.trim_start().len();
        if depth == 4 {
            inside = line.trim() == ":" || (line.contains("(<default>)") && line.ends_with(':'));
        } else if depth < 4 {
            inside = false;
        }
        if inside {
            met.insert(Listed::DefaultQuota);
        } else {
            kept.push(line.clone());
        }
    }
    kept
}

/// Java's mask takes every key of a group or a client metrics subscription for unknown.
fn masked_where_java_masks(java: &[String], mut ours: Vec<String>, met: &mut Met) -> Vec<String> {
    let mut resource = false;
    for (line, java) in ours.iter_mut().zip(java) {
        let depth = line.len() - line.trim_start().len();
        if depth <= 4 {
            resource = line.starts_with("    GROUP:") || line.starts_with("    CLIENT_METRICS:");
        } else if resource && depth == 8 && java.trim() == "[redacted]" {
            if line != java {
                met.insert(Listed::MaskedGroups);
            }
            line.clone_from(java);
        }
    }
    ours
}
