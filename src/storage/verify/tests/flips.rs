//! Every byte of a small directory changed and cut in turn.

use super::*;
use crate::records::batch::Batch;
use crate::storage::commit_file::CommitFile;
use crate::storage::commit_file::CommitMark;
use crate::types::OffsetAndEpoch;
use bytes::Bytes;

/// One bit, the sign, all bits.
const MASKS: [u8; 3] = [0x01, 0x80, 0xff];

/// Bytes of a batch's header; all that follow are equal before its checksum.
const HEADER: usize = 61;

/// A directory of Java's with the first batches of its log and, behind them, two of the next epoch.
struct Small {
    dir: TempDir,
    log: PathBuf,
    good: Vec<u8>,
    /// Where each batch begins, and its base offset.
    starts: Vec<(usize, Offset)>,
    end: Offset,
}

fn batches(bytes: &[u8]) -> Vec<Batch> {
    let mut rest = Bytes::copy_from_slice(bytes);
    let mut found = Vec::new();
    while let Some(batch) = Batch::take_from(&mut rest).unwrap() {
        found.push(batch);
    }
    found
}

impl Small {
    fn new(name: &str, first: usize) -> Self {
        let dir = fixture(name);
        let inner = partition(dir.path());
        for entry in fs::read_dir(&inner).unwrap() {
            let path = entry.unwrap().path();
            let file = path.file_name().unwrap().to_str().unwrap();
            let is_first = file.starts_with("00000000000000000000");
            let is_index = file.ends_with("index");
            if file.starts_with('0') && (!is_first || is_index) {
                fs::remove_file(&path).unwrap();
            }
        }
        let log = log_of(dir.path());
        let all = batches(&fs::read(&log).unwrap());
        let second = all.iter().position(|batch| batch.epoch().0 == 2).unwrap();
        let mut small = Self {
            dir,
            log,
            good: Vec::new(),
            starts: Vec::new(),
            end: Offset::ZERO,
        };
        for batch in all[..first].iter().chain(&all[second..second + 2]) {
            small.starts.push((small.good.len(), small.end));
            // The checksum does not cover the base offset.
            small.good.extend_from_slice(&small.end.0.to_be_bytes());
            small.good.extend_from_slice(&batch.bytes()[8..]);
            small.end = small.end.plus(i64::from(batch.count()));
        }
        fs::write(&small.log, &small.good).unwrap();
        let epochs = format!("0\n2\n1 0\n2 {}\n", small.starts[first].1);
        fs::write(inner.join(EPOCH_CHECKPOINT_FILE), epochs).unwrap();
        small
    }

    fn root(&self) -> &Path {
        self.dir.path()
    }

    /// The batch that the byte at `at` is in.
    fn batch_at(&self, at: usize) -> usize {
        self.starts.partition_point(|(start, _)| *start <= at) - 1
    }

    fn commit(&self, offset: Offset) {
        let meta = MetaProperties::read(&self.root().join(META_PROPERTIES_FILE));
        let commit = OffsetAndEpoch {
            offset,
            epoch: Epoch(2),
        };
        let mark = CommitMark {
            sequence: 1,
            cluster_id: meta.unwrap().unwrap().cluster_id.unwrap(),
            commit,
        };
        CommitFile::open(&partition(self.root()).join(COMMIT_FILE), mark).unwrap();
    }

    /// The place of the worst finding about the log.
    fn found(&self, report: &Report, why: &str) -> (Severity, Vec<u64>) {
        let worst = report.verdict();
        let places = findings(report)
            .into_iter()
            .filter(|it| it.path == self.log && it.severity == worst)
            .filter_map(|it| {
                assert!(
                    it.what.contains(self.log.to_str().unwrap()),
                    "{why}: {}",
                    it.what
                );
                assert!(!it.advice.is_empty() && !it.what.contains('\n'), "{why}");
                it.position
            });
        (worst, places.collect())
    }
}

/// Whether a flip in the last batch looks like the torn write of a crash: everything that makes the
/// bytes no batch does. A base offset that does not follow, and an epoch that does not fit, do not.
fn looks_torn(small: &Small, at: usize, value: u8) -> bool {
    let (start, _) = small.starts[small.starts.len() - 1];
    match at - start {
        // Negative, so no header: as good as any other bad byte.
        0 | 12 => value >= 0x80,
        1..8 | 13..16 => false,
        _ => true,
    }
}

#[test]
fn every_changed_byte_of_a_log_is_found_and_refused_unless_it_looks_torn() {
    for (name, first) in [
        ("4.4.0/lived/dynamic-stopped", 3),
        ("3.9.2/lived/static-stopped", 4),
    ] {
        let small = Small::new(name, first);
        assert_eq!(
            report(small.root()).verdict(),
            Severity::Note,
            "{}",
            shown(&report(small.root()))
        );
        for at in 0..small.good.len() {
            let batch = small.batch_at(at);
            let start = small.starts[batch].0;
            // Behind the header, one of them in turn.
            let masks = match at - start {
                0..HEADER => &MASKS[..],
                other => &MASKS[other % 3..=other % 3],
            };
            for mask in masks {
                changed(&small, (at, *mask), (batch, start as u64));
            }
        }
    }
}

/// One of them.
fn changed(small: &Small, (at, mask): (usize, u8), (batch, start): (usize, u64)) {
    let mut bytes = small.good.clone();
    bytes[at] ^= mask;
    fs::write(&small.log, &bytes).unwrap();
    let report = report(small.root());
    let inside = at as u64 - start;
    let why = format!(
        "byte {at} ^ {mask:#x}, {inside} of batch {batch}\n{}",
        shown(&report)
    );
    let (worst, places) = small.found(&report, &why);
    let refused = judged(small.root());
    let is_last = batch + 1 == small.starts.len();
    if is_last && looks_torn(small, at, bytes[at]) {
        assert_eq!(
            (worst, &places[..]),
            (Severity::Torn, &[start][..]),
            "{why}"
        );
        assert!(refused.is_ok(), "{why}");
        return;
    }
    // The epoch of the first batch is only contradicted by the second, that of the last by the
    // election state.
    let is_epoch = (12..16).contains(&inside);
    let second = small.starts.get(batch + 1).map(|(start, _)| *start as u64);
    let told = places.contains(&start)
        || is_epoch && second.is_some_and(|second| places.contains(&second));
    let by_vote = is_last && is_epoch && why.contains("the epoch in the log is damaged");
    assert!(worst == Severity::Rot && told || by_vote, "{why}");
    let fault = refused.expect_err(&why);
    assert_eq!(fault.kind, FaultKind::Damaged, "{why}: {fault}");
}

#[test]
fn a_log_cut_at_any_byte_is_torn_unless_more_is_known_to_be_committed() {
    let small = Small::new("4.4.0/lived/dynamic-stopped", 3);
    for committed in [false, true] {
        if committed {
            small.commit(small.end);
        }
        for cut in 0..small.good.len() {
            fs::write(&small.log, &small.good[..cut]).unwrap();
            let report = report(small.root());
            let (start, offset) = small.starts[small.batch_at(cut)];
            let whole = start == cut;
            let why = format!("cut at {cut}, committed: {committed}\n{}", shown(&report));
            let (worst, places) = small.found(&report, &why);
            let refused = judged(small.root());
            if committed {
                assert_eq!(
                    (worst, &places[..]),
                    (Severity::Rot, &[start as u64][..]),
                    "{why}"
                );
                let sentence = refused.expect_err(&why).sentence;
                assert!(sentence.contains("was committed"), "{sentence}");
            } else if whole && cut >= small.starts[3].0 {
                // A shorter log, as it was some time ago: nothing says that there was more.
                assert_eq!(worst, Severity::Note, "{why}");
                assert!(refused.is_ok(), "{why}");
            } else if whole && cut > 0 {
                // The list of epochs begins the second where the log would not.
                assert_eq!(worst, Severity::Wrong, "{why}");
                assert!(refused.is_ok(), "{why}");
            } else if cut < small.starts[1].0 {
                // Only the list of epochs remembers that there was a second one.
                assert_eq!((worst, &places[..]), (Severity::Rot, &[0][..]), "{why}");
                assert!(refused.is_err(), "{why}");
            } else {
                assert_eq!(
                    (worst, &places[..]),
                    (Severity::Torn, &[start as u64][..]),
                    "{why}"
                );
                assert!(findings(&report)[0].offset == Some(offset), "{why}");
                assert!(refused.is_ok(), "{why}");
            }
        }
    }
}

#[test]
fn every_changed_byte_of_what_is_known_to_be_committed_is_rot() {
    let small = Small::new("4.4.0/lived/dynamic-stopped", 3);
    small.commit(small.end);
    let (last, _) = small.starts[small.starts.len() - 1];
    for at in last..small.good.len() {
        let mut bytes = small.good.clone();
        bytes[at] ^= 0x10;
        fs::write(&small.log, &bytes).unwrap();
        let report = report(small.root());
        let why = format!("byte {at}\n{}", shown(&report));
        let (worst, places) = small.found(&report, &why);
        let is_epoch = (12..16).contains(&(at - last));
        assert!(
            worst == Severity::Rot && (is_epoch || places == [last as u64]),
            "{why}"
        );
        let fault = judged(small.root()).expect_err(&why);
        assert_eq!(fault.kind, FaultKind::Damaged, "{fault}");
    }
}

/// Changes every byte of a file, and cuts it at every byte. Gives what is unnoticed: the changed
/// bytes.
fn unnoticed(root: &Path, path: &Path) -> Vec<(usize, Vec<u8>)> {
    let good = fs::read(path).unwrap();
    let mut found = Vec::new();
    let mut look = |at: usize, bytes: Vec<u8>| {
        fs::remove_file(path).unwrap();
        fs::write(path, &bytes).unwrap();
        if let Err(fault) = judged(root) {
            assert!(!fault.sentence.contains('\n'), "{fault}");
        }
        let report = report(root);
        match report.verdict() {
            Severity::Note => found.push((at, bytes)),
            _ => assert!(
                findings(&report)
                    .iter()
                    .any(|it| it.path == path || it.what.contains(path.to_str().unwrap())),
                "byte {at} of {}\n{}",
                path.display(),
                shown(&report)
            ),
        }
    };
    for at in 0..good.len() {
        for mask in MASKS {
            let mut bytes = good.clone();
            bytes[at] ^= mask;
            look(at, bytes);
        }
        look(at, good[..at].to_vec());
    }
    fs::write(path, good).unwrap();
    found
}

#[test]
fn every_changed_byte_of_a_checkpoint_is_found() {
    let small = Small::new("4.4.0/lived/dynamic-stopped", 3);
    let zero = partition(small.root()).join("00000000000000000000-0000000000.checkpoint");
    assert!(fs::metadata(&zero).unwrap().len() < 600);
    let missed = unnoticed(small.root(), &zero);
    assert!(
        missed.is_empty(),
        "{:?}",
        missed.iter().map(|(at, _)| at).collect::<Vec<_>>()
    );
}

#[test]
fn every_changed_byte_of_the_election_state_is_found_or_only_means_a_later_vote() {
    for name in ["4.4.0/lived/dynamic-stopped", "3.9.2/lived/static-stopped"] {
        let small = Small::new(name, 3);
        let path = partition(small.root()).join("quorum-state");
        let good = crate::storage::quorum_state::read(&path).unwrap().unwrap();
        for (at, bytes) in unnoticed(small.root(), &path) {
            fs::write(&path, &bytes).unwrap();
            let read = crate::storage::quorum_state::read(&path).unwrap().unwrap();
            // A later epoch costs an election; a voter that is no voter is asked nothing.
            let harmless =
                read.epoch > good.epoch || read.voted != good.voted || read.voters != good.voters;
            assert!(
                harmless,
                "{name}: byte {at}: {}",
                String::from_utf8_lossy(&bytes)
            );
            assert_eq!(
                (read.epoch >= good.epoch, read.kraft_version),
                (true, good.kraft_version)
            );
        }
    }
}

#[test]
fn every_changed_byte_of_the_directorys_identity_is_found_where_something_else_names_it() {
    let small = Small::new("4.4.0/lived/dynamic-stopped", 3);
    small.commit(small.end);
    let path = small.root().join(META_PROPERTIES_FILE);
    let good = MetaProperties::read(&path).unwrap().unwrap();
    for (at, bytes) in unnoticed(small.root(), &path) {
        fs::write(&path, &bytes).unwrap();
        let read = MetaProperties::read(&path).unwrap().unwrap();
        // Comments, blanks and line ends.
        assert_eq!(read, good, "byte {at}: {}", String::from_utf8_lossy(&bytes));
    }
}

#[test]
fn every_changed_byte_of_the_other_small_files_is_found_or_means_the_same() {
    let small = Small::new("4.4.0/lived/dynamic-stopped", 3);
    small.commit(small.end);
    let inner = partition(small.root());
    let epochs = inner.join(EPOCH_CHECKPOINT_FILE);
    let good = epoch_checkpoint::read(&epochs).unwrap();
    for (at, bytes) in unnoticed(small.root(), &epochs) {
        fs::write(&epochs, &bytes).unwrap();
        let read = epoch_checkpoint::read(&epochs).unwrap();
        assert_eq!(
            read,
            good,
            "byte {at}: {:?}",
            String::from_utf8_lossy(&bytes)
        );
    }
    // A blank for a line end, or the end of the file for the last one.
    let metadata = inner.join("partition.metadata");
    for (at, bytes) in unnoticed(small.root(), &metadata) {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        assert!(
            crate::storage::partition_metadata::check(&metadata).unwrap(),
            "byte {at}: {text:?}"
        );
    }
    // One of two slots: the other still says the same or less.
    let mark = inner.join(COMMIT_FILE);
    for (at, bytes) in unnoticed(small.root(), &mark) {
        fs::write(&mark, &bytes).unwrap();
        let commit_file::Found::Mark(read) = commit_file::read(&mark).unwrap() else {
            panic!("byte {at}");
        };
        assert_eq!(read.commit.offset, small.end, "byte {at}");
    }
}
