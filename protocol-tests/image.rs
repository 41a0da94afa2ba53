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
        let Ok(ends) = fs::read_dir(release.unwrap().path().join("lived")) else {
            continue;
        };
        for end in ends {
            found.push(end.unwrap().path().join("__cluster_metadata-0"));
        }
    }
    found.sort();
    found
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

/// The checkpoints behind the bootstrap one, with the end offset in their names.
fn checkpoints(folder: &Path) -> Vec<(Offset, PathBuf)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if let Some(name) = name.strip_suffix(".checkpoint")
            && let Some((offset, _epoch)) = name.split_once('-')
            && offset.parse() != Ok(0)
        {
            found.push((Offset(offset.parse().unwrap()), path.clone()));
        }
    }
    found.sort();
    found
}

/// The image below `end` (exclusive), lawful after every record.
fn replayed(records: &[(Offset, VersionedRecord)], end: Offset) -> Image {
    let mut image = Image::empty();
    for (offset, record) in records.iter().take_while(|(offset, _)| *offset < end) {
        image.replay(&record.record, *offset).unwrap();
        image.check().unwrap();
    }
    image
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
        let log = data_records(&folder.join("00000000000000000000.log"));
        for (end, checkpoint) in checkpoints(&folder) {
            let from_log = replayed(&log, end);
            let records = data_records(&checkpoint);
            let from_checkpoint = replayed(&records, Offset(i64::MAX));
            let differ = || comparable(emitted(&from_log));
            assert!(
                from_log == from_checkpoint,
                "{}: {:#?}",
                checkpoint.display(),
                differ()
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
            let image = replayed(&records, Offset(i64::MAX));
            let java = comparable(records.into_iter().map(|(_, record)| record));
            let ours = comparable(emitted(&image));
            assert_eq!(ours, java, "{}", checkpoint.display());
        }
    }
}

#[test]
fn images_of_one_offset_write_equal_bytes_however_they_came_about() {
    for folder in lived() {
        let log = data_records(&folder.join("00000000000000000000.log"));
        for (end, checkpoint) in checkpoints(&folder) {
            let bytes = |image: &Image| {
                let records = emitted(image).into_iter();
                let values = records.map(|record| record.encode().unwrap());
                values.collect::<Vec<_>>()
            };
            let from_log = replayed(&log, end);
            let from_checkpoint = replayed(&data_records(&checkpoint), Offset(i64::MAX));
            let (ours, theirs) = (bytes(&from_log), bytes(&from_checkpoint));
            assert!(ours == theirs, "{}", checkpoint.display());
        }
    }
}
