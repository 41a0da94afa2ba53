//! The commands of the storage tool against transcripts of Java's: every option, sentence, exit
//! code and file that `fixtures/4.4.0/storage-tool` recorded.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where kraftd says less or says it in other words, by a part of Java's line: how wrong usage is
/// told (the parser's own words), and refusals of the configuration (all findings at once).
const OTHER_WORDS: [&str; 11] = [
    "usage: kafka-storage",
    "kafka-storage: error:",
    "kafka-storage:  error:",
    "ConfigException",
    "requirement failed",
    "Caused by:",
    "ERROR Error while reading",
    "NoSuchFileException",
    "FileSystemException",
    "Unknown meta.properties version number",
    "in dynamic voter string.",
];

const COMMANDS: [&str; 5] = [
    "format",
    "info",
    "random-uuid",
    "version-mapping",
    "feature-dependencies",
];

#[derive(Default)]
struct Step {
    arguments: String,
    out: Vec<String>,
    err: Vec<String>,
    exit: i32,
    /// Path and size, when the transcript tells them after this step.
    files: Option<BTreeMap<String, u64>>,
}

enum Line {
    Config(Vec<String>),
    Change(String),
    Run(Step),
}

fn parse(text: &str) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for line in text.lines() {
        let Some((kind, rest)) = line.split_once(' ').or(Some((line, ""))) else {
            continue;
        };
        if kind == "config|" {
            match lines.last_mut() {
                Some(Line::Config(block)) => block.push(rest.to_owned()),
                _ => lines.push(Line::Config(vec![rest.to_owned()])),
            }
        } else if kind == "!" {
            lines.push(Line::Change(rest.to_owned()));
        } else if kind == "$" {
            lines.push(Line::Run(Step {
                arguments: rest.to_owned(),
                ..Step::default()
            }));
        }
        let Some(Line::Run(step)) = lines.last_mut() else {
            continue;
        };
        match kind {
            "out|" => step.out.push(rest.to_owned()),
            "err|" => step.err.push(rest.to_owned()),
            "exit|" => step.exit = rest.parse().unwrap(),
            "file|" => {
                let files = step.files.get_or_insert_default();
                if let Some((path, size)) = rest.rsplit_once(' ') {
                    files.insert(path.to_owned(), size.parse().unwrap());
                }
            }
            _ => {}
        }
    }
    lines
}

fn change(dir: &Path, what: &str) {
    let mut words = what.splitn(3, ' ');
    let (verb, path) = (words.next().unwrap(), dir.join(words.next().unwrap()));
    match verb {
        "rm" if path.is_dir() => fs::remove_dir_all(path).unwrap(),
        "rm" => fs::remove_file(path).unwrap_or_default(),
        "mkdir" => fs::create_dir_all(path).unwrap(),
        "write" => {
            let text = words.next().unwrap_or_default().replace("\\n", "\n");
            if path.exists() {
                fs::remove_file(&path).unwrap();
            }
            fs::write(path, text).unwrap();
        }
        other => panic!("unknown step {other}"),
    }
}

fn tree(dir: &Path, below: &Path, found: &mut BTreeMap<String, u64>) {
    for entry in fs::read_dir(below).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            tree(dir, &path, found);
        } else if path != dir.join("server.properties") {
            let name = path.strip_prefix(dir).unwrap().display().to_string();
            found.insert(name, fs::metadata(&path).unwrap().len());
        }
    }
}

fn same_words(line: &str) -> bool {
    !OTHER_WORDS.iter().any(|other| line.contains(other)) && !line.starts_with(' ')
}

/// A line without what differs from run to run, and without Java's name of an exception.
fn normal(line: &str, dir: &str) -> String {
    let line = line.replace(dir, "<dir>");
    let line = match line.strip_prefix("Exception in thread \"main\" ") {
        Some(rest) => rest
            .split_once(": ")
            .map_or(rest, |(_, text)| text)
            .to_owned(),
        None => line,
    };
    if line.contains("UserScramCredentialRecord") && !line.contains("<uuid>") {
        // The salt is random unless the transcript gives it.
        return line.split("salt=").next().unwrap_or_default().to_owned();
    }
    if let Some((before, rest)) = line.split_once("directory.id=") {
        let after = rest.split_once(',').map_or("", |(_, after)| after);
        return format!("{before}directory.id=<id>,{after}");
    }
    line.trim_end().to_owned()
}

fn check(name: &str, dir: &Path, step: &Step) {
    // The tool's own front page is not ours: kraftd has more commands.
    let command = step.arguments.split(' ').next().unwrap_or_default();
    if !COMMANDS.contains(&command) {
        return;
    }
    let place = dir.display().to_string();
    let arguments = step.arguments.replace("<dir>", &place);
    let output = Command::new(env!("CARGO_BIN_EXE_kraftd"))
        .args(arguments.split_whitespace())
        .output()
        .unwrap();
    let (out, err) = (
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    );
    let at = format!("{name}: {}\nstdout:\n{out}\nstderr:\n{err}", step.arguments);
    assert_eq!(output.status.code(), Some(step.exit), "exit code of {at}");
    if step.arguments.ends_with("-h") || step.arguments.ends_with("--help") {
        return;
    }
    let told = |lines: Vec<&str>| -> Vec<String> {
        let mut lines: Vec<String> = lines
            .into_iter()
            .filter(|line| same_words(line) && *line != "<uuid>")
            .map(|line| normal(line, &place))
            .collect();
        // Several directories are formatted in an order that means nothing.
        lines.sort_unstable();
        lines
    };
    let wanted = told(step.out.iter().map(String::as_str).collect());
    if !step.arguments.starts_with("random-uuid") && !step.out.iter().any(|l| !same_words(l)) {
        assert_eq!(told(out.lines().collect()), wanted, "stdout of {at}");
    }
    if step.err.iter().all(|line| same_words(line)) {
        let wanted = told(step.err.iter().map(String::as_str).collect());
        assert_eq!(told(err.lines().collect()), wanted, "stderr of {at}");
    } else {
        assert!(!err.trim().is_empty(), "a reason on stderr of {at}");
    }
    if let Some(files) = &step.files {
        let mut found = BTreeMap::new();
        tree(dir, dir, &mut found);
        let names = |files: &BTreeMap<String, u64>| files.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&found), names(files), "files of {at}");
        for (path, size) in files {
            let random = path.ends_with("meta.properties") || salt_is_random(&step.arguments);
            let same = found[path] == *size || random;
            assert!(
                same,
                "{path} has {} bytes, Java's {size}, after {at}",
                found[path]
            );
        }
    }
}

/// A random salt may have any length.
fn salt_is_random(arguments: &str) -> bool {
    arguments.contains("--add-scram") && !arguments.contains("salt=\"")
}

fn replay(path: &Path) {
    let temporary = tempfile::tempdir().unwrap();
    let dir = temporary.path();
    let place = dir.display().to_string();
    let name = path.file_name().unwrap().to_string_lossy().into_owned();
    for line in parse(&fs::read_to_string(path).unwrap()) {
        match line {
            Line::Config(block) => {
                let text = block.join("\n").replace("<dir>", &place);
                fs::write(dir.join("server.properties"), text).unwrap();
            }
            Line::Change(what) => change(dir, &what),
            Line::Run(step) => check(&name, dir, &step),
        }
    }
}

#[test]
fn every_transcript_of_the_storage_tool_is_told_again() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures/4.4.0/storage-tool");
    let mut failed = Vec::new();
    let mut paths: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|it| it.unwrap().path())
        .collect();
    paths.sort();
    assert!(paths.len() > 20);
    for path in paths {
        if std::panic::catch_unwind(|| replay(&path)).is_err() {
            failed.push(path.file_name().unwrap().to_owned());
        }
    }
    assert!(
        failed.is_empty(),
        "transcripts that are told otherwise: {failed:?}"
    );
}
