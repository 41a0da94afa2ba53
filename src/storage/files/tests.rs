//! The disk threads, on real files.

mod unwritten;

use std::sync::mpsc;

use super::*;
use crate::raft::QuorumState;
use crate::storage::Unreceived;
use crate::storage::testing::{batch, options};
use crate::types::{Offset, Timestamp};

struct Running {
    disk: Disk,
    completions: Receiver<Completion>,
    recovered: Recovered,
    _dir: Option<tempfile::TempDir>,
}

fn start(dir: &std::path::Path) -> Running {
    start_with(dir, |_| ())
}

fn start_with(dir: &std::path::Path, change: impl FnOnce(&mut OpenOptions)) -> Running {
    let mut options = options(dir);
    change(&mut options);
    let (sender, completions) = mpsc::channel();
    let lock = DirLock::acquire(dir).unwrap();
    let tell = move |completion| drop(sender.send(completion));
    let (disk, recovered) = Disk::open(&options, vec![lock], tell).unwrap();
    Running {
        disk,
        completions,
        recovered,
        _dir: None,
    }
}

fn fresh() -> Running {
    let dir = tempfile::tempdir().unwrap();
    let mut running = start(dir.path());
    running._dir = Some(dir);
    running
}

impl Running {
    fn append(&self, offset: i64) {
        self.disk.submit(Command::Append {
            token: Token(offset as u64),
            first: Offset(offset),
            end: Offset(offset + 1),
            epoch: Epoch(1),
            batches: batch(offset, 1, 50).into_bytes(),
        });
    }

    fn save_commit(&self, offset: i64) {
        let commit = OffsetAndEpoch {
            offset: Offset(offset),
            epoch: Epoch(1),
        };
        self.disk.submit(Command::SaveCommit { commit });
    }

    fn save_state(&self) {
        self.disk.submit(Command::SaveQuorumState {
            token: Token(1000),
            state: QuorumState {
                epoch: Epoch(1),
                ..QuorumState::default()
            },
        });
    }

    fn next(&self) -> Completion {
        self.completions.recv().unwrap()
    }

    fn close(self) -> Option<tempfile::TempDir> {
        self.disk.submit(Command::Close);
        while !matches!(self.next(), Completion::Closed) {}
        self.disk.join();
        self._dir
    }
}

#[test]
fn writes_complete_in_order_and_survive_a_clean_stop() {
    let running = fresh();
    running.save_state();
    for offset in 0..100 {
        running.append(offset);
    }
    running.save_commit(100);
    assert!(matches!(
        running.next(),
        Completion::QuorumStateSaved(Token(1000))
    ));
    for offset in 0..100 {
        let completion = running.next();
        assert!(matches!(completion, Completion::Appended(Token(at)) if at == offset));
    }
    assert_eq!(running.disk.backlog_bytes(), 0);
    let dir = running.close().unwrap();
    assert!(!dir.path().join(".lock").exists());
    let again = start(dir.path());
    assert_eq!(again.recovered.log_end, Offset(100));
    assert_eq!(again.recovered.commit.unwrap().offset, Offset(100));
    let state = again.recovered.quorum_state.as_ref();
    assert_eq!(state.map(|state| state.epoch), Some(Epoch(1)));
    again.close();
}

#[test]
fn a_read_sees_all_appends_that_were_submitted_before() {
    let running = fresh();
    running.append(0);
    running.append(1);
    running.disk.submit(Command::Read {
        token: Token(7),
        from: Offset(1),
        until: Offset(2),
        max_bytes: 1000,
    });
    running.disk.submit(Command::ReadSnapshot {
        token: Token(8),
        id: OffsetAndEpoch::BOOTSTRAP,
        position: 0,
        max_bytes: 1000,
    });
    assert!(matches!(running.next(), Completion::Appended(Token(0))));
    assert!(matches!(running.next(), Completion::Appended(Token(1))));
    let Completion::Read { token, batches } = running.next() else {
        panic!("not a read");
    };
    assert_eq!((token, batches), (Token(7), batch(1, 1, 50).into_bytes()));
    let completion = running.next();
    assert!(matches!(
        completion,
        Completion::SnapshotRead {
            chunk: SnapshotChunk::NotFound,
            ..
        }
    ));
    running.close();
}

#[test]
fn the_commit_mark_never_runs_ahead_of_the_log() {
    let running = fresh();
    running.append(0);
    running.save_state();
    running.save_commit(5);
    for offset in 1..4 {
        running.append(offset);
    }
    let dir = running.close().unwrap();
    let again = start(dir.path());
    assert_eq!(again.recovered.log_end, Offset(4));
    assert_eq!(again.recovered.commit, None);
    again.append(4);
    again.save_commit(5);
    let dir2 = again.close();
    assert!(dir2.is_none());
    assert_eq!(
        start(dir.path()).recovered.commit.unwrap().offset,
        Offset(5)
    );
}

#[test]
fn a_cut_below_the_commit_mark_ends_the_disk() {
    let running = fresh();
    for offset in 0..4 {
        running.append(offset);
    }
    running.save_commit(3);
    let cut = |end| Command::Truncate {
        token: Token(9),
        end: Offset(end),
    };
    running.disk.submit(cut(3));
    running.disk.submit(cut(2));
    for _ in 0..4 {
        assert!(matches!(running.next(), Completion::Appended(_)));
    }
    let cut = running.next();
    let Completion::Truncated { removed_bytes, .. } = cut else {
        panic!("must be cut: {cut:?}");
    };
    assert!(removed_bytes > 0);
    let Completion::Failed(sentence) = running.next() else {
        panic!("must fail");
    };
    assert!(
        sentence.contains("offset 3 is known to be committed"),
        "{sentence}"
    );
    running.append(3);
    assert!(
        running.completions.recv().is_err(),
        "nothing follows a failure"
    );
}

#[test]
fn a_failed_write_is_told_once_and_ends_the_disk() {
    let running = fresh();
    // The temporary file cannot be made where a directory has its name.
    let dir = running
        ._dir
        .as_ref()
        .unwrap()
        .path()
        .join("__cluster_metadata-0");
    std::fs::create_dir(dir.join("quorum-state.tmp")).unwrap();
    running.save_state();
    running.save_state();
    let Completion::Failed(sentence) = running.next() else {
        panic!("must fail");
    };
    assert!(sentence.contains("quorum-state.tmp"), "{sentence}");
    assert!(running.completions.recv().is_err());
}

#[test]
fn epochs_are_written_for_java() {
    let running = fresh();
    running.append(0);
    running.save_state();
    let dir = running.close().unwrap();
    let path = dir
        .path()
        .join("__cluster_metadata-0")
        .join(EPOCH_CHECKPOINT_FILE);
    assert_eq!(std::fs::read(path).unwrap(), b"0\n1\n1 0\n");
}

/// A state whose records wait for a word, or that breaks.
#[derive(Debug)]
enum State {
    Held(Mutex<Receiver<()>>, mpsc::Sender<()>),
    Broken,
}

impl crate::storage::Content for State {
    fn records(&self, sink: &mut dyn FnMut(crate::records::VersionedRecord)) {
        let Self::Held(end, began) = self else {
            panic!("a bug of the state machine");
        };
        began.send(()).unwrap();
        end.lock().unwrap().recv().unwrap();
        let record = crate::records::NoOpRecord::default().into();
        sink(crate::records::VersionedRecord { version: 0, record });
    }
}

fn order(content: State) -> Command {
    Command::WriteSnapshot(SnapshotOrder {
        id: OffsetAndEpoch {
            offset: Offset(1),
            epoch: Epoch(1),
        },
        last_timestamp: Timestamp(1),
        timestamp: Timestamp(1),
        control: Vec::new(),
        content: Arc::new(content),
        bytes_expected: 0,
    })
}

#[test]
fn a_stop_gives_up_a_snapshot_and_the_lock_goes_after_it() {
    let dir = tempfile::tempdir().unwrap();
    let running = start(dir.path());
    let (end, ended) = mpsc::channel();
    let (began, begun) = mpsc::channel();
    running
        .disk
        .submit(order(State::Held(Mutex::new(ended), began)));
    begun.recv().unwrap();
    running.disk.submit(Command::Close);
    assert!(DirLock::acquire(dir.path()).is_err());
    end.send(()).unwrap();
    let last = running.completions.iter().last();
    assert!(matches!(last, Some(Completion::Closed)), "{last:?}");
    drop(DirLock::acquire(dir.path()).unwrap());
    let names = crate::storage::listing::names(&options(dir.path()).dir).unwrap();
    assert!(
        names.iter().all(|name| !name.ends_with(".part")),
        "{names:?}"
    );
}

#[test]
fn appends_and_reads_go_on_while_a_snapshot_is_written() {
    let running = fresh();
    running.append(0);
    assert!(matches!(running.next(), Completion::Appended(Token(0))));
    let (end, ended) = mpsc::channel();
    let (began, begun) = mpsc::channel();
    running
        .disk
        .submit(order(State::Held(Mutex::new(ended), began)));
    begun.recv().unwrap();
    for offset in 1..20 {
        running.append(offset);
        let appended = running.next();
        assert!(matches!(appended, Completion::Appended(Token(at)) if at == offset as u64));
    }
    running.save_state();
    let saved = running.next();
    assert!(matches!(saved, Completion::QuorumStateSaved(Token(1000))));
    running.disk.submit(Command::Read {
        token: Token(7),
        from: Offset(0),
        until: Offset(20),
        max_bytes: 10_000,
    });
    assert!(matches!(running.next(), Completion::Read { token, .. } if token == Token(7)));
    end.send(()).unwrap();
    let written = running.next();
    assert!(
        matches!(written, Completion::SnapshotWritten { .. }),
        "{written:?}"
    );
    running.close();
}

#[test]
fn a_panic_while_a_snapshot_is_written_ends_the_disk() {
    let running = fresh();
    running.disk.submit(order(State::Broken));
    let last = running.completions.iter().last();
    assert!(matches!(last, Some(Completion::Failed(_))), "{last:?}");
}

#[test]
fn a_snapshot_that_cannot_be_read_is_told_and_the_disk_goes_on() {
    let running = fresh();
    let dir = options(running._dir.as_ref().unwrap().path()).dir;
    let read = |offset| {
        running.disk.submit(Command::ReadSnapshot {
            token: Token(7),
            id: OffsetAndEpoch {
                offset: Offset(offset),
                epoch: Epoch(1),
            },
            position: 0,
            max_bytes: 100,
        });
        match running.next() {
            Completion::SnapshotRead { chunk, .. } => chunk,
            other => panic!("{other:?}"),
        }
    };
    // A link to itself: there is something, and it cannot be read, not even by root.
    let name = "00000000000000000005-0000000001.checkpoint";
    std::os::unix::fs::symlink(dir.join(name), dir.join(name)).unwrap();
    match read(5) {
        SnapshotChunk::Failed(sentence) => assert!(sentence.contains(name), "{sentence}"),
        other => panic!("{other:?}"),
    }
    assert!(matches!(read(6), SnapshotChunk::NotFound));
    running.append(0);
    assert!(matches!(running.next(), Completion::Appended(_)));
}

fn written(running: &Running, offset: i64) {
    #[derive(Debug)]
    struct Nothing;
    impl crate::storage::Content for Nothing {
        fn records(&self, _sink: &mut dyn FnMut(crate::records::VersionedRecord)) {}
    }
    let id = OffsetAndEpoch {
        offset: Offset(offset),
        epoch: Epoch(1),
    };
    running.disk.submit(Command::WriteSnapshot(SnapshotOrder {
        id,
        last_timestamp: Timestamp(5),
        timestamp: Timestamp(6),
        control: Vec::new(),
        content: Arc::new(Nothing),
        bytes_expected: 0,
    }));
    match running.next() {
        Completion::SnapshotWritten(held) => {
            assert_eq!((held.id, held.last_timestamp), (id, Some(Timestamp(5))));
            assert!(held.bytes > 100);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn retired_snapshots_are_deleted_after_their_delay_and_not_found_meanwhile() {
    let dir = tempfile::tempdir().unwrap();
    let mut running = start_with(dir.path(), |options| options.snapshot_delete_delay_ms = 1);
    running.append(0);
    running.append(1);
    for _ in 0..2 {
        assert!(matches!(running.next(), Completion::Appended(_)));
    }
    written(&running, 1);
    written(&running, 2);
    let newest = OffsetAndEpoch {
        offset: Offset(2),
        epoch: Epoch(1),
    };
    let old = OffsetAndEpoch {
        offset: Offset(1),
        epoch: Epoch(1),
    };
    running.disk.submit(Command::MoveLogStart {
        token: Token(70),
        to: newest,
    });
    assert!(matches!(
        running.next(),
        Completion::LogStartMoved {
            token: Token(70),
            removed_bytes: 0
        }
    ));
    for (id, found) in [(old, false), (newest, true)] {
        running.disk.submit(Command::ReadSnapshot {
            token: Token(71),
            id,
            position: 0,
            max_bytes: 10,
        });
        match running.next() {
            Completion::SnapshotRead { chunk, .. } => {
                assert_eq!(matches!(chunk, SnapshotChunk::Bytes { .. }), found);
            }
            other => panic!("{other:?}"),
        }
    }
    let partition = dir.path().join("__cluster_metadata-0");
    let retired = partition.join("00000000000000000001-0000000001.checkpoint.deleted");
    while retired.exists() {
        std::thread::yield_now();
    }
    running._dir = None;
    running.close();
}

fn pieces(bytes: &[u8], id: OffsetAndEpoch, each: usize) -> Vec<SnapshotPiece> {
    let size = bytes.len() as u64;
    let chunks = bytes.chunks(each).enumerate();
    let piece = |(at, chunk): (usize, &[u8])| SnapshotPiece {
        id,
        position: (at * each) as u64,
        bytes: bytes::Bytes::copy_from_slice(chunk),
        size,
    };
    chunks.map(piece).collect()
}

/// How far a piece that is not the last reaches.
fn kept(running: &Running) -> u64 {
    match running.next() {
        Completion::SnapshotPieceKept { end, .. } => end,
        other => panic!("{other:?}"),
    }
}

fn received(running: &Running) -> std::result::Result<HeldSnapshot, Unreceived> {
    loop {
        match running.next() {
            Completion::SnapshotPieceKept { .. } => {}
            Completion::SnapshotReceived { outcome, .. } => return outcome,
            other => panic!("{other:?}"),
        }
    }
}

/// Whether there are any, whole or not.
fn has_snapshots(partition: &std::path::Path) -> bool {
    let names = std::fs::read_dir(partition).unwrap();
    let mut names = names.map(|it| it.unwrap().file_name().into_string().unwrap());
    names.any(|it| it.contains("checkpoint") && it != EPOCH_CHECKPOINT_FILE)
}

/// KIP-630: a snapshot comes in by pieces, is looked at as a whole, and the log begins anew there.
#[test]
fn a_fetched_snapshot_gets_its_name_when_it_is_whole_and_the_log_begins_anew_behind_it() {
    let source = fresh();
    for offset in [0, 1] {
        source.append(offset);
        source.next();
    }
    written(&source, 2);
    let at = OffsetAndEpoch {
        offset: Offset(2),
        epoch: Epoch(1),
    };
    let dir = source._dir.as_ref().unwrap().path();
    let good = std::fs::read(snapshot::path(&options(dir).dir, at)).unwrap();

    let running = fresh();
    running.save_state();
    running.next();
    let partition = options(running._dir.as_ref().unwrap().path()).dir;
    let give = |piece| running.disk.submit(Command::ReceiveSnapshot(piece));
    // One flipped bit, pieces in the wrong order, more bytes than told: no file is left.
    let mut bad = good.clone();
    bad[70] ^= 1;
    pieces(&bad, at, 50).into_iter().for_each(give);
    let no_good = |words: &str| match received(&running).unwrap_err() {
        Unreceived::NoGood(sentence) => assert!(sentence.contains(words), "{sentence}"),
        other => panic!("{other:?}"),
    };
    no_good("not a whole snapshot");
    give(pieces(&good, at, 50).remove(1));
    no_good("0 bytes of it are here");
    let mut long = pieces(&good, at, 50).remove(0);
    long.size = 10;
    give(long);
    no_good("shall have 10 bytes");
    assert!(!has_snapshots(&partition));

    for piece in pieces(&good, at, 50) {
        let end = piece.position + piece.bytes.len() as u64;
        let last = end == piece.size;
        give(piece);
        if !last {
            assert_eq!(kept(&running), end);
        }
    }
    let held = received(&running).unwrap();
    assert_eq!((held.id, held.bytes), (at, good.len() as u64));
    assert_eq!(std::fs::read(snapshot::path(&partition, at)).unwrap(), good);
    running.disk.submit(Command::RestartLog {
        token: Token(3),
        at,
    });
    assert!(matches!(
        running.next(),
        Completion::LogRestarted { token: Token(3) }
    ));
    running.append(2);
    assert!(matches!(running.next(), Completion::Appended(_)));
    let dir = running.close().unwrap();
    let again = start(dir.path());
    assert_eq!(again.recovered.log_start, Offset(2));
    assert_eq!(again.recovered.log_end, Offset(3));
    assert_eq!(again.recovered.snapshots, [at]);
    again.close();
    source.close();
}

#[test]
fn a_restart_below_what_is_committed_is_refused() {
    let running = fresh();
    running.save_state();
    for offset in 0..5 {
        running.append(offset);
    }
    running.save_commit(5);
    for _ in 0..6 {
        running.next();
    }
    let at = OffsetAndEpoch {
        offset: Offset(3),
        epoch: Epoch(9),
    };
    let token = Token(3);
    running.disk.submit(Command::RestartLog { token, at });
    match running.next() {
        Completion::Failed(sentence) => assert!(sentence.contains("offset 5"), "{sentence}"),
        other => panic!("{other:?}"),
    }
}
