//! Whole directories: Java's, mutated ones, and what crashes leave.

use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;

use super::super::*;
use super::{id, log_file};
use crate::records::batch::Batch;
use crate::storage::testing::{
    batch, contents, copy, first_of_epoch, fixture, open, options, vote,
};

const LIVED: [&str; 8] = [
    "3.9.2/lived/dynamic-killed",
    "3.9.2/lived/dynamic-stopped",
    "3.9.2/lived/static-killed",
    "3.9.2/lived/static-stopped",
    "4.4.0/lived/dynamic-killed",
    "4.4.0/lived/dynamic-stopped",
    "4.4.0/lived/static-killed",
    "4.4.0/lived/static-stopped",
];

#[test]
fn directories_that_java_lived_in_are_opened_whole() {
    for name in LIVED {
        let dir = fixture(name);
        let options = options(dir.path());
        let listing = listing::list(&options.dir).unwrap();
        let before = contents(&options.dir);
        let (log, recovered) = open(&options).unwrap();
        assert_eq!(recovered.torn_bytes, 0, "{name}");
        assert_eq!(recovered.log_start, Offset(0), "{name}");
        if let Some(closed) = listing.closed_at.last() {
            assert_eq!(recovered.log_end, *closed, "{name}");
        }
        assert_eq!(
            recovered.snapshots.len() + usize::from(listing.checkpoints.contains(&id(0, 0))),
            listing.checkpoints.len(),
            "{name}"
        );
        let is_dynamic = name.contains("dynamic");
        let state = recovered.quorum_state.unwrap();
        assert_eq!(state.kraft_version, u16::from(is_dynamic), "{name}");
        // With static voters the snapshot says nothing of them; the log has leader changes.
        if is_dynamic {
            let newest = recovered.snapshots.last().unwrap();
            let (offset, _) = recovered.control.first().unwrap();
            assert_eq!(*offset, newest.offset.prev(), "{name}");
        }
        let has_voters =
            |(_, record): &(Offset, ControlRecord)| matches!(record, ControlRecord::Voters(_));
        assert_eq!(
            recovered.control.iter().any(has_voters),
            is_dynamic,
            "{name}"
        );
        drop(log);
        // Java's epochs, and its offset index, are what we find.
        let after = contents(&options.dir);
        for file in ["leader-epoch-checkpoint", "00000000000000000000.index"] {
            if file.ends_with("index") && name.ends_with("stopped") {
                continue; // Java counts anew after a restart, so its entries are elsewhere.
            }
            let path = options.dir.join(file);
            assert_eq!(before[&path], after[&path], "{name}/{file}");
        }
    }
}

/// The end of the last batch of the newest segment.
fn end_of_log(dir: &Path) -> Offset {
    let segments = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let newest = segments
        .filter(|path| path.extension().is_some_and(|ending| ending == "log"))
        .max()
        .unwrap();
    let mut bytes = bytes::Bytes::from(fs::read(newest).unwrap());
    let mut end = Offset(0);
    while let Some(batch) = Batch::take_from(&mut bytes).unwrap() {
        end = batch.end_offset();
    }
    end
}

#[test]
fn lives_of_every_release_are_opened_whole() {
    let mut opened = 0;
    for release in ["3.9.2", "4.0.2", "4.1.2", "4.2.1", "4.3.1", "4.4.0"] {
        for made in ["lived", "full"] {
            let group = Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("fixtures")
                .join(release)
                .join(made);
            for life in fs::read_dir(group).unwrap() {
                let life = life.unwrap().path();
                let name = life.display();
                let dir = tempfile::tempdir().unwrap();
                copy(&life, dir.path());
                let options = options(dir.path());
                let end = end_of_log(&options.dir);
                let (_, recovered) = open(&options).unwrap_or_else(|fault| {
                    panic!("{name}: {fault}");
                });
                assert_eq!(recovered.torn_bytes, 0, "{name}");
                assert_eq!(recovered.log_end, end, "{name}");
                let cleaned = life.ends_with("cleaned");
                assert_eq!(recovered.log_start > Offset(0), cleaned, "{name}");
                if cleaned {
                    assert!(
                        recovered.snapshots[0].offset >= recovered.log_start,
                        "{name}"
                    );
                }
                opened += 1;
            }
        }
    }
    assert!(opened >= 60, "only {opened} directories");
}

#[test]
fn every_flipped_bit_before_the_last_batch_of_a_java_log_is_refused() {
    let dir = fixture("4.4.0/lived/dynamic-stopped");
    let options = options(dir.path());
    let path = log_file(&options);
    let good = fs::read(&path).unwrap();
    for at in (0..good.len()).step_by(97) {
        let mut bytes = good.clone();
        bytes[at] ^= 0x20;
        fs::write(&path, &bytes).unwrap();
        let found = examine(&options);
        // Only the epochs are not covered by a checksum; they are compared with their neighbours.
        assert!(found.is_err(), "flipped at {at}");
    }
}

#[test]
fn any_mutation_of_a_directory_opens_or_is_refused() {
    let source = fixture("4.4.0/lived/dynamic-killed");
    let files: Vec<PathBuf> = contents(source.path())
        .into_keys()
        .filter(|path| path.is_file())
        .map(|path| path.strip_prefix(source.path()).unwrap().to_path_buf())
        .collect();
    let mutation = (0..files.len(), 0..4_u8, any::<u16>(), any::<u8>());
    let config = ProptestConfig::with_cases(80);
    proptest!(config, |(mutations in prop::collection::vec(mutation, 1..4))| {
        let dir = tempfile::tempdir().unwrap();
        copy(source.path(), dir.path());
        for (file, how, place, value) in mutations {
            let path = dir.path().join(&files[file]);
            let Ok(mut bytes) = fs::read(&path) else { continue };
            let place = usize::from(place) % bytes.len().max(1);
            match how {
                0 => bytes.truncate(place),
                1 if !bytes.is_empty() => bytes[place] ^= value | 1,
                2 => bytes.extend_from_slice(&vec![value; place]),
                _ => bytes.clear(),
            }
            fs::remove_file(&path).unwrap();
            if how != 3 || value % 2 == 0 {
                fs::write(&path, bytes).unwrap();
            }
        }
        let options = options(dir.path());
        if let Ok((_, recovered)) = open(&options) {
            // What opened once opens again and is the same.
            let (_, again) = open(&options).unwrap();
            prop_assert_eq!(again.log_end, recovered.log_end);
            prop_assert_eq!(again.torn_bytes, 0);
        }
    });
}

#[derive(Clone, Debug)]
enum Step {
    Append { size: usize, next_epoch: bool },
    Sync,
    Truncate(u8),
    Crash(u16),
}

/// A log beside the batches that it must hold.
struct Run {
    options: OpenOptions,
    log: Log,
    model: Vec<Batch>,
    /// So many of them survive a crash.
    synced: usize,
    epoch: i32,
}

impl Run {
    fn step(&mut self, step: &Step) {
        match *step {
            Step::Append { size, next_epoch } => {
                self.epoch += i32::from(next_epoch);
                let offset = self.model.len() as i64;
                let last = self.model.last().map(Batch::epoch);
                let batch = match last.is_some_and(|last| last.0 != self.epoch) {
                    true => first_of_epoch(offset, self.epoch, size),
                    false => batch(offset, self.epoch, size),
                };
                self.log.append(batch.bytes().clone()).unwrap();
                self.model.push(batch);
            }
            Step::Sync => {
                self.log.sync().unwrap();
                self.synced = self.model.len();
            }
            Step::Truncate(to) => {
                let end = usize::from(to) % (self.model.len() + 1);
                self.log.truncate(Offset(end as i64)).unwrap();
                if end < self.model.len() {
                    self.synced = end;
                }
                self.model.truncate(end);
            }
            Step::Crash(at) => self.crash(u64::from(at)),
        }
        assert_eq!(self.log.end(), Offset(self.model.len() as i64));
    }

    /// Everything synced stays, and any prefix of what was written since.
    fn crash(&mut self, at: u64) {
        let last = *listing::list(&self.options.dir)
            .unwrap()
            .logs
            .last()
            .unwrap();
        let first = last.0 as usize;
        // A roll syncs what is before it.
        self.synced = self.synced.max(first);
        let bytes = |batches: &[Batch]| batches.iter().map(|batch| batch.size() as u64).sum();
        let kept: u64 = bytes(&self.model[first..self.synced]);
        let all: u64 = bytes(&self.model[first..]);
        let path = log_path(&self.options.dir, last);
        let file = fs::File::options().write(true).open(path).unwrap();
        file.set_len(kept + at % (all - kept + 1)).unwrap();
        let (log, recovered) = open(&self.options).unwrap();
        self.log = log;
        let end = recovered.log_end.0 as usize;
        assert!(end >= self.synced && end <= self.model.len());
        self.model.truncate(end);
        self.synced = end;
        self.epoch = self
            .model
            .last()
            .map_or(self.epoch, |batch| batch.epoch().0);
    }

    fn read_all(&self) -> Vec<Batch> {
        let mut found = Vec::new();
        loop {
            let next = Offset(found.len() as i64);
            let bytes = self.log.reader().read(next, Offset(i64::MAX), 1).unwrap();
            if bytes.is_empty() {
                return found;
            }
            found.push(Batch::parse(bytes).unwrap());
        }
    }
}

#[test]
fn a_crash_at_any_byte_leaves_a_legal_prefix() {
    let step = prop_oneof![
        6 => (0..400_usize, prop::bool::weighted(0.1))
            .prop_map(|(size, next_epoch)| Step::Append { size, next_epoch }),
        2 => Just(Step::Sync),
        1 => any::<u8>().prop_map(Step::Truncate),
        1 => any::<u16>().prop_map(Step::Crash),
    ];
    let config = ProptestConfig::with_cases(40);
    proptest!(config, |(steps in prop::collection::vec(step, 1..80))| {
        let dir = tempfile::tempdir().unwrap();
        let options = OpenOptions { segment_bytes: 2000, ..options(dir.path()) };
        let (log, _) = open(&options).unwrap();
        vote(&options);
        let mut run = Run { options, log, model: Vec::new(), synced: 0, epoch: 1 };
        for step in &steps {
            run.step(step);
        }
        prop_assert_eq!(run.read_all(), run.model);
    });
}

#[test]
fn logs_of_compressed_batches_are_opened_and_replayed() {
    for codec in ["gzip", "snappy", "lz4", "zstd"] {
        let dir = tempfile::tempdir().unwrap();
        let options = options(dir.path());
        copy(
            &PathBuf::from(env!("CARGO_MANIFEST_DIR"))
                .join("fixtures/4.4.0/batches")
                .join(codec),
            &options.dir,
        );
        vote(&options);
        let (log, recovered) = open(&options).unwrap();
        assert_eq!(recovered.log_end, Offset(1503), "{codec}");
        assert_eq!(recovered.torn_bytes, 0, "{codec}");
        drop(log);
        let source = crate::storage::reader::Source::open(&options.dir).unwrap();
        let replay = source.replay(crate::storage::reader::Target::Newest);
        let mut image = crate::image::Image::empty();
        for step in replay.unwrap() {
            let step = step.unwrap();
            image.replay(&step.record.record, step.offset).unwrap();
        }
        image.check().unwrap();
    }
}
