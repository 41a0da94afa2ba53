//! Logs and checkpoints that Java wrote, replayed: both must tell the same cluster, and the image
//! must write the checkpoint again.

use std::fs;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use kraftd::image::Image;
use kraftd::records::batch::Batch;
use kraftd::records::{Record, VersionedRecord};
use kraftd::types::Offset;

/// The metadata directories of controllers that lived, of every recorded release.
fn lived() -> Vec<PathBuf> {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    let mut found = Vec::new();
    for release in fs::read_dir(fixtures).unwrap() {
        let release = release.unwrap().path();
        for made in ["lived", "full"] {
            let Ok(ends) = fs::read_dir(release.join(made)) else {
                continue;
            };
            for end in ends {
                found.push(end.unwrap().path().join("__cluster_metadata-0"));
            }
        }
    }
    found.sort();
    found
}

/// What a directory holds: its log's data records, and where an image of them begins.
struct Life {
    log: Vec<(Offset, VersionedRecord)>,
    /// The image below the first offset that `log` is replayed from.
    base: Image,
    start: Offset,
    checkpoints: Vec<(Offset, PathBuf)>,
}

impl Life {
    /// A log that was cleaned begins behind offset 0: the oldest checkpoint is what it adds to.
    fn of(folder: &Path) -> Self {
        let segments = numbered(folder, ".log");
        let log = segments
            .iter()
            .flat_map(|(_, path)| data_records(path))
            .collect();
        let checkpoints = checkpoints(folder);
        let (base, start) = match segments[0].0 {
            Offset(0) => (Image::empty(), Offset(0)),
            _ => (loaded(&checkpoints[0].1), checkpoints[0].0),
        };
        Self {
            log,
            base,
            start,
            checkpoints,
        }
    }

    /// The image below `end` (exclusive), lawful after every record.
    fn replayed(&self, end: Offset) -> Image {
        let mut image = self.base.clone();
        for (offset, record) in &self.log {
            if (self.start..end).contains(offset) {
                image.replay(&record.record, *offset).unwrap();
                image.check().unwrap();
            }
        }
        image
    }
}

/// The image that a checkpoint holds.
fn loaded(checkpoint: &Path) -> Image {
    let mut image = Image::empty();
    for (offset, record) in data_records(checkpoint) {
        image.replay(&record.record, offset).unwrap();
        image.check().unwrap();
    }
    image
}

/// The data records of a log or a checkpoint with their offsets.
fn data_records(path: &Path) -> Vec<(Offset, VersionedRecord)> {
    let mut bytes = Bytes::from(fs::read(path).unwrap());
    let mut records = Vec::new();
    while let Some(batch) = Batch::take_from(&mut bytes).unwrap() {
        batch.verify_crc().unwrap();
        if batch.is_control() {
            continue;
        }
        for record in batch.records() {
            let record = record.unwrap();
            let value = record.value.expect("data records have a value");
            let decoded = VersionedRecord::decode(&value).unwrap();
            records.push((record.offset, decoded));
        }
    }
    records
}

/// Files whose name is an offset, perhaps more, and an ending.
fn numbered(folder: &Path, ending: &str) -> Vec<(Offset, PathBuf)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if let Some(name) = name.strip_suffix(ending) {
            let offset = name.split('-').next().unwrap().parse().unwrap();
            found.push((Offset(offset), path.clone()));
        }
    }
    found.sort();
    found
}

/// The checkpoints behind the bootstrap one, with the end offset in their names.
fn checkpoints(folder: &Path) -> Vec<(Offset, PathBuf)> {
    let mut found = numbered(folder, ".checkpoint");
    found.retain(|(end, _)| *end != Offset(0));
    found
}

/// Java writes what it keeps in hash maps in their order; here those lists and the records
/// themselves are sorted. A migration state of "none" or "over" is not written since 4.0.
fn comparable(records: impl IntoIterator<Item = VersionedRecord>) -> Vec<String> {
    let mut texts = Vec::new();
    for mut record in records {
        match &mut record.record {
            Record::RegisterBroker(record) => {
                record.end_points.sort_by(|a, b| a.name.cmp(&b.name));
                record.features.sort_by(|a, b| a.name.cmp(&b.name));
            }
            Record::RegisterController(record) => {
                record.end_points.sort_by(|a, b| a.name.cmp(&b.name));
                record.features.sort_by(|a, b| a.name.cmp(&b.name));
            }
            Record::ZkMigrationState(record) if matches!(record.zk_migration_state, 0 | 3) => {
                continue;
            }
            _ => {}
        }
        texts.push(format!("{record:?}"));
    }
    texts.sort();
    texts
}

fn emitted(image: &Image) -> Vec<VersionedRecord> {
    let mut records = Vec::new();
    let losses = image.emit(&mut |record| records.push(record));
    assert!(losses.is_empty(), "{losses:?}");
    records
}

#[test]
fn a_java_log_and_the_java_checkpoint_at_its_end_tell_the_same_cluster() {
    let mut compared = 0;
    for folder in lived() {
        let life = Life::of(&folder);
        for (end, checkpoint) in &life.checkpoints {
            let from_log = life.replayed(*end);
            let from_checkpoint = loaded(checkpoint);
            assert_eq!(from_log.open_transaction(), None);
            assert!(
                from_log == from_checkpoint,
                "{}: {:#?}\n{:#?}",
                checkpoint.display(),
                comparable(emitted(&from_log)),
                comparable(emitted(&from_checkpoint))
            );
            compared += 1;
        }
    }
    assert!(compared >= 20, "only {compared} checkpoints");
}

#[test]
fn an_image_writes_the_java_checkpoint_again_that_it_was_loaded_from() {
    for folder in lived() {
        for (_, checkpoint) in checkpoints(&folder) {
            let records = data_records(&checkpoint);
            let java = comparable(records.into_iter().map(|(_, record)| record));
            let ours = comparable(emitted(&loaded(&checkpoint)));
            assert_eq!(ours, java, "{}", checkpoint.display());
        }
    }
}

#[test]
fn images_of_one_offset_write_equal_bytes_however_they_came_about() {
    let bytes = |image: &Image| {
        let records = emitted(image).into_iter();
        let values = records.map(|record| record.encode().unwrap());
        values.collect::<Vec<_>>()
    };
    for folder in lived() {
        let life = Life::of(&folder);
        for (end, checkpoint) in &life.checkpoints {
            let (ours, theirs) = (life.replayed(*end), loaded(checkpoint));
            assert!(bytes(&ours) == bytes(&theirs), "{}", checkpoint.display());
        }
    }
}
