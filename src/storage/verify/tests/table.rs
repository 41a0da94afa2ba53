//! Damage of which it is known what Java makes of it: each is found, with the right verdict, and
//! refused at a start where Java would go on and lose something.

use super::*;

/// What a start does with it.
enum Start {
    /// It starts, and then nothing is wrong any more.
    Repairs,
    /// It is refused in these words, and the directory stays as it was.
    Refused(&'static [&'static str]),
    /// It starts, although something stays wrong.
    Starts,
}

struct Case {
    title: &'static str,
    fixture: &'static str,
    damage: fn(&Path),
    verdict: Severity,
    /// The check, a file of the finding and words of its sentence.
    finding: (&'static str, &'static str, &'static [&'static str]),
    start: Start,
}

const STOPPED: &str = "4.4.0/lived/dynamic-stopped";
const KILLED: &str = "4.4.0/lived/dynamic-killed";
const STATIC: &str = "4.4.0/lived/static-stopped";
const LOG: &str = "00000000000000000000.log";
const ZERO: &str = "00000000000000000000-0000000000.checkpoint";
const NEWEST: &str = "00000000000000000261-0000000002.checkpoint";

/// `quorum-state` with another text in it.
fn edit(root: &Path, from: &str, to: &str) {
    let path = inner(root, "quorum-state");
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains(from), "{text}");
    fs::write(path, text.replacen(from, to, 1)).unwrap();
}

fn inner(root: &Path, name: &str) -> PathBuf {
    partition(root).join(name)
}

fn remove(root: &Path, name: &str) {
    fs::remove_file(inner(root, name)).unwrap();
}

fn empty(root: &Path, name: &str) {
    change(&inner(root, name), Vec::clear);
}

fn meta(root: &Path, change_line: impl Fn(&str) -> Option<String>) {
    let path = root.join(META_PROPERTIES_FILE);
    let text = fs::read_to_string(&path).unwrap();
    let lines: Vec<String> = text.lines().filter_map(change_line).collect();
    fs::write(&path, lines.join("\n")).unwrap();
}

/// Flips one bit in the batch at byte 174, the second.
fn flip_second_batch(root: &Path) {
    change(&log_of(root), |bytes| bytes[250] ^= 1);
}

fn flip_last_batch(root: &Path) {
    change(&log_of(root), |bytes| {
        let at = bytes.len() - 3;
        bytes[at] ^= 1;
    });
}

fn cases() -> Vec<Case> {
    let mut cases = election_state();
    cases.extend(log());
    cases.extend(odd_election_state());
    cases.extend(lost_log());
    cases.extend(identity());
    cases.extend(checkpoints());
    cases.extend(copied_checkpoints());
    cases.extend(others());
    cases
}

fn election_state() -> Vec<Case> {
    let lost: &[&str] = &["quorum-state", "--accept-lost-vote"];
    vec![
        Case {
            title: "quorum-state is empty, a torn write",
            fixture: STOPPED,
            damage: |root| empty(root, "quorum-state"),
            verdict: Severity::Wrong,
            finding: ("quorum-state", "quorum-state", &["it is empty"]),
            start: Start::Refused(lost),
        },
        Case {
            title: "quorum-state is missing, with a log that is not empty",
            fixture: STOPPED,
            damage: |root| remove(root, "quorum-state"),
            verdict: Severity::Wrong,
            finding: (
                "quorum-state",
                "quorum-state",
                &["is missing", "vote twice"],
            ),
            start: Start::Refused(lost),
        },
        Case {
            title: "quorum-state is of a later version",
            fixture: STOPPED,
            damage: |root| edit(root, "_version\":1", "_version\":9"),
            verdict: Severity::Wrong,
            finding: ("quorum-state", "quorum-state", &["data_version 9"]),
            start: Start::Refused(&["data_version 9"]),
        },
        Case {
            title: "quorum-state is an old copy",
            fixture: STOPPED,
            damage: |root| edit(root, "Epoch\":2", "Epoch\":1"),
            verdict: Severity::Wrong,
            finding: (
                "quorum-state",
                "quorum-state",
                &["has epoch 1", "epoch 2", "old copy"],
            ),
            start: Start::Refused(&["has epoch 1", "epoch 2"]),
        },
    ]
}

fn odd_election_state() -> Vec<Case> {
    vec![
        Case {
            title: "quorum-state has the last epoch that there is",
            fixture: STOPPED,
            damage: |root| edit(root, "Epoch\":2", "Epoch\":2147483647"),
            verdict: Severity::Wrong,
            finding: (
                "quorum-state",
                "quorum-state",
                &["leaderEpoch is 2147483647", "no election can come"],
            ),
            start: Start::Refused(&["leaderEpoch is 2147483647", "--accept-lost-vote"]),
        },
        Case {
            title: "quorum-state has an epoch with no room behind it",
            fixture: STOPPED,
            damage: |root| edit(root, "Epoch\":2", "Epoch\":2147483646"),
            verdict: Severity::Wrong,
            finding: (
                "quorum-state",
                "quorum-state",
                &["leaderEpoch is 2147483646", "no election can come"],
            ),
            start: Start::Refused(&["leaderEpoch is 2147483646", "--accept-lost-vote"]),
        },
        Case {
            title: "quorum-state is of another cluster",
            fixture: STATIC,
            damage: |root| {
                edit(
                    root,
                    "clusterId\":\"",
                    "clusterId\":\"QkU3OEVBNTcwNTJENDM2Qg",
                )
            },
            verdict: Severity::Wrong,
            finding: (
                "quorum-state",
                "quorum-state",
                &["is of cluster QkU3OEVBNTcwNTJENDM2Qg"],
            ),
            start: Start::Starts,
        },
        Case {
            title: "quorum-state says that this node leads other voters",
            fixture: STATIC,
            damage: |root| edit(root, "voterId\":1", "voterId\":2"),
            verdict: Severity::Wrong,
            finding: (
                "quorum-state",
                "quorum-state",
                &["this node, 1, leads", "its voters are others"],
            ),
            start: Start::Starts,
        },
    ]
}

fn log() -> Vec<Case> {
    vec![
        Case {
            title: "the log is cut inside its last batch after a crash",
            fixture: KILLED,
            damage: |root| change(&log_of(root), |bytes| bytes.truncate(bytes.len() - 10)),
            verdict: Severity::Torn,
            finding: ("log-tail", LOG, &["ends torn", "byte 13234", "offset 191"]),
            start: Start::Repairs,
        },
        Case {
            title: "one bit of the second batch is flipped",
            fixture: STOPPED,
            damage: flip_second_batch,
            verdict: Severity::Rot,
            finding: (
                "batch",
                LOG,
                &["byte 174 (offset 3)", "byte 504", "offset 12"],
            ),
            start: Start::Refused(&["byte 174", "whole batches follow", "Restore"]),
        },
        Case {
            title: "one bit of the last batch is flipped after a crash",
            fixture: KILLED,
            damage: flip_last_batch,
            verdict: Severity::Torn,
            finding: ("log-tail", LOG, &["ends torn", "offset 191", "checksum"]),
            start: Start::Repairs,
        },
        Case {
            title: "one bit of the last batch is flipped after a clean stop",
            fixture: STOPPED,
            damage: flip_last_batch,
            verdict: Severity::Rot,
            finding: (
                "log-tail",
                LOG,
                &["closed cleanly at offset", "no torn tail"],
            ),
            start: Start::Refused(&["closed cleanly at offset", "Restore"]),
        },
        Case {
            title: "the log is cut at a batch after a clean stop",
            fixture: STOPPED,
            damage: |root| change(&log_of(root), |bytes| bytes.truncate(17_748)),
            verdict: Severity::Rot,
            finding: (
                "log-tail",
                LOG,
                &["ends at offset", "closed cleanly at offset"],
            ),
            start: Start::Refused(&["closed cleanly at offset"]),
        },
    ]
}

fn lost_log() -> Vec<Case> {
    vec![
        Case {
            title: "the log is deleted, and the election state is there",
            fixture: STOPPED,
            damage: |root| remove(root, LOG),
            verdict: Severity::Rot,
            finding: ("log", PARTITION_DIR, &["no log segment", "gone"]),
            start: Start::Refused(&["no log segment", "Restore"]),
        },
        Case {
            title: "the partition's directory is emptied",
            fixture: STOPPED,
            damage: |root| {
                fs::remove_dir_all(partition(root)).unwrap();
                fs::create_dir(partition(root)).unwrap();
            },
            verdict: Severity::Rot,
            finding: ("log", PARTITION_DIR, &["no log segment", "gone"]),
            start: Start::Refused(&["no log segment", "no checkpoint", "Mount it"]),
        },
        Case {
            title: "the partition's directory is deleted",
            fixture: STOPPED,
            damage: |root| fs::remove_dir_all(partition(root)).unwrap(),
            verdict: Severity::Rot,
            finding: ("log", PARTITION_DIR, &["is missing", "gone"]),
            start: Start::Refused(&["is missing", "gone", "Mount it"]),
        },
    ]
}

/// An empty bootstrap checkpoint, and the first batch of the log.
fn only_a_leader_change(root: &Path) {
    for entry in fs::read_dir(partition(root)).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if name.starts_with('0') && ![LOG, ZERO].contains(&name) {
            fs::remove_file(&path).unwrap();
        }
    }
    change(&log_of(root), |bytes| {
        let length = u32::from_be_bytes(bytes[8..12].try_into().unwrap());
        bytes.truncate(12 + length as usize);
    });
    empty(root, ZERO);
}

fn checkpoints() -> Vec<Case> {
    vec![
        Case {
            title: "the bootstrap checkpoint is empty",
            fixture: STOPPED,
            damage: |root| empty(root, ZERO),
            verdict: Severity::Torn,
            finding: ("checkpoint", ZERO, &["is empty"]),
            start: Start::Repairs,
        },
        Case {
            title: "the bootstrap checkpoint is empty, and the log has only a leader change",
            fixture: STOPPED,
            damage: only_a_leader_change,
            verdict: Severity::Wrong,
            finding: ("checkpoint", ZERO, &["is empty"]),
            start: Start::Starts,
        },
        Case {
            title: "one bit of the bootstrap checkpoint is flipped",
            fixture: STOPPED,
            damage: |root| change(&inner(root, ZERO), |bytes| bytes[100] ^= 1),
            verdict: Severity::Rot,
            finding: ("checkpoint", ZERO, &["byte 0", "checksum"]),
            start: Start::Refused(&[ZERO, "corrupt", "crc"]),
        },
        Case {
            title: "one bit of the newest checkpoint is flipped, and the log covers it",
            fixture: STOPPED,
            damage: |root| change(&inner(root, NEWEST), |bytes| bytes[3000] ^= 1),
            verdict: Severity::Rot,
            finding: ("checkpoint", NEWEST, &["checksum"]),
            start: Start::Starts,
        },
        Case {
            title: "the newest checkpoint is cut, and nothing covers it",
            fixture: STOPPED,
            damage: |root| {
                let ahead = "00000000000000009999-0000000002.checkpoint";
                let bytes = fs::read(inner(root, NEWEST)).unwrap();
                fs::write(inner(root, ahead), &bytes[..3000]).unwrap();
            },
            verdict: Severity::Rot,
            finding: (
                "checkpoint",
                "00000000000000009999-0000000002.checkpoint",
                &["not a whole"],
            ),
            start: Start::Refused(&["00000000000000009999-0000000002.checkpoint", "Restore"]),
        },
        Case {
            title: "a checkpoint has the name of another",
            fixture: STOPPED,
            damage: |root| {
                let other = "00000000000000000200-0000000002.checkpoint";
                fs::rename(inner(root, NEWEST), inner(root, other)).unwrap();
            },
            verdict: Severity::Wrong,
            finding: (
                "checkpoint-and-log",
                "00000000000000000200-0000000002.checkpoint",
                &["offset 200"],
            ),
            start: Start::Starts,
        },
    ]
}

fn copied_checkpoints() -> Vec<Case> {
    const CLEANED: &str = "4.4.0/full/cleaned";
    const OLDEST: &str = "00000000000000000398-0000000001.checkpoint";
    const NEXT: &str = "00000000000000000462-0000000001.checkpoint";
    const MIDDLE: &str = "00000000000000000536-0000000001.checkpoint";
    const LAST: &str = "00000000000000000610-0000000001.checkpoint";
    vec![
        Case {
            title: "the only checkpoint has the name of a later end in the log, which is cleaned",
            fixture: CLEANED,
            damage: |root| {
                for name in [NEXT, MIDDLE, LAST] {
                    remove(root, name);
                }
                fs::rename(inner(root, OLDEST), inner(root, NEXT)).unwrap();
            },
            verdict: Severity::Wrong,
            finding: (
                "checkpoint-and-log",
                NEXT,
                &["not the snapshot of offset 462", "copied here."],
            ),
            start: Start::Refused(&["copied here. No older snapshot", "Restore"]),
        },
        Case {
            title: "the newest checkpoint is a copy of another, which covers it",
            fixture: CLEANED,
            damage: |root| {
                remove(root, LAST);
                fs::copy(inner(root, MIDDLE), inner(root, LAST)).unwrap();
            },
            verdict: Severity::Wrong,
            finding: (
                "checkpoint-and-log",
                LAST,
                &["not the snapshot of offset 610"],
            ),
            start: Start::Starts,
        },
    ]
}

fn identity() -> Vec<Case> {
    vec![
        Case {
            title: "the cluster's id is another one, and kraftd was here",
            fixture: STOPPED,
            damage: |root| {
                start(root).unwrap();
                meta(root, |line| {
                    let id = "cluster.id=AAAAAAAAAAAAAAAAAAAAAg";
                    Some(match line.starts_with("cluster.id") {
                        true => id.to_owned(),
                        false => line.to_owned(),
                    })
                });
            },
            verdict: Severity::Wrong,
            finding: (
                "meta-properties",
                META_PROPERTIES_FILE,
                &["MkU3OEVBNTcwNTJENDM2Qg"],
            ),
            start: Start::Starts,
        },
        Case {
            title: "the directory's id is gone",
            fixture: STOPPED,
            damage: |root| {
                meta(root, |line| {
                    (!line.starts_with("directory.id")).then(|| line.to_owned())
                });
            },
            verdict: Severity::Wrong,
            finding: (
                "voter-directory",
                META_PROPERTIES_FILE,
                &["no directory.id", "node 1 is a voter"],
            ),
            start: Start::Refused(&["directory.id", "voter"]),
        },
        Case {
            title: "meta.properties is gone",
            fixture: STOPPED,
            damage: |root| fs::remove_file(root.join(META_PROPERTIES_FILE)).unwrap(),
            verdict: Severity::Wrong,
            finding: ("meta-properties", META_PROPERTIES_FILE, &["is missing"]),
            start: Start::Refused(&["put the file back"]),
        },
    ]
}

fn others() -> Vec<Case> {
    vec![
        Case {
            title: "the commit mark cannot be read",
            fixture: STOPPED,
            damage: |root| {
                start(root).unwrap();
                fs::write(inner(root, COMMIT_FILE), [0; 1024]).unwrap();
            },
            verdict: Severity::Wrong,
            finding: ("commit-mark", COMMIT_FILE, &["neither of its two slots"]),
            start: Start::Refused(&["neither of its two slots", "kraftd fsck"]),
        },
        Case {
            title: "the list of epochs is of another log",
            fixture: STOPPED,
            damage: |root| fs::write(inner(root, EPOCH_CHECKPOINT_FILE), "0\n1\n1 7\n").unwrap(),
            verdict: Severity::Wrong,
            finding: (
                "epochs",
                EPOCH_CHECKPOINT_FILE,
                &["epoch 1 begins at offset 7"],
            ),
            start: Start::Repairs,
        },
        Case {
            title: "strays, leftovers and broken indexes",
            fixture: STOPPED,
            damage: |root| {
                for name in [
                    "lost+found",
                    "00000000000000000261-0000000002-7.checkpoint.part",
                ] {
                    fs::write(inner(root, name), b"x").unwrap();
                }
                change(&inner(root, "00000000000000000000.index"), |bytes| {
                    bytes[7] ^= 1
                });
            },
            verdict: Severity::Note,
            finding: (
                "index",
                "00000000000000000000.index",
                &["does not fit its log"],
            ),
            start: Start::Starts,
        },
    ]
}

#[test]
fn every_damage_of_the_table_is_found_and_refused_where_something_would_be_lost() {
    for case in cases() {
        let title = case.title;
        let dir = fixture(case.fixture);
        let root = dir.path();
        (case.damage)(root);
        let before = contents(root);
        let found = report(root);
        assert_eq!(contents(root), before, "{title}: something was written");
        let text = format!("{title}\n{}", shown(&found));
        assert_eq!(found.verdict(), case.verdict, "{text}");
        let (check, file, words) = case.finding;
        let finding = found
            .findings
            .iter()
            .find(|it| it.check == check && it.path.ends_with(file))
            .unwrap_or_else(|| panic!("no finding {check} of {file}: {text}"));
        for word in words {
            assert!(finding.what.contains(word), "{word:?}: {text}");
        }
        assert!(!finding.advice.is_empty(), "{text}");
        let repairs = matches!(case.start, Start::Repairs);
        assert!(case.verdict != Severity::Torn || repairs, "{text}");
        match (start(root), case.start) {
            (Ok(()), Start::Repairs) => {
                let after = report(root);
                assert_eq!(
                    after.verdict(),
                    Severity::Note,
                    "{title}\n{}",
                    shown(&after)
                );
            }
            (Ok(()), Start::Starts) => {}
            (Err(fault), Start::Refused(words)) => {
                for word in words {
                    assert!(fault.sentence.contains(word), "{word:?}: {title}: {fault}");
                }
                assert_eq!(contents(root), before, "{title}: something was written");
            }
            (Ok(()), Start::Refused(_)) => panic!("a start was not refused: {text}"),
            (Err(fault), _) => panic!("a start was refused: {fault}: {text}"),
        }
    }
}

/// Static voters and nodes that joined later never had one, and the log has what is in it.
#[test]
fn a_directory_without_its_bootstrap_checkpoint_is_sound_and_starts() {
    let dir = fixture(STOPPED);
    let before = report(dir.path());
    remove(dir.path(), ZERO);
    let without = report(dir.path());
    assert_eq!(without.verdict(), Severity::Note, "{}", shown(&without));
    assert_eq!(without.log, before.log);
    assert_eq!(without.checkpoints.len() + 1, before.checkpoints.len());
    start(dir.path()).unwrap();
    let after = report(dir.path());
    assert_eq!(after.verdict(), Severity::Note, "{}", shown(&after));
}

#[test]
fn the_advice_on_a_damaged_checkpoint_says_whether_something_covers_it() {
    let dir = fixture(STOPPED);
    change(&inner(dir.path(), NEWEST), |bytes| bytes[3000] ^= 1);
    assert!(shown(&report(dir.path())).contains("a start goes on without it"));
    // The log is damaged too.
    flip_second_batch(dir.path());
    let both = report(dir.path());
    let finding = both.findings.iter().find(|it| it.path.ends_with(NEWEST));
    assert!(
        finding.unwrap().advice.starts_with("Restore"),
        "{}",
        shown(&both)
    );
}
