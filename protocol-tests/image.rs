//! Logs and checkpoints that Java wrote, replayed: both must tell the same cluster, and the image
//! must write the checkpoint again.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use kraftd::image::{Image, ReplayFault};
use kraftd::records::batch::Batch;
use kraftd::records::{Record, VersionedRecord};
use kraftd::types::Offset;

use crate::fixture::{metadata_folders, old_level_folders, releases};

type Records = Vec<(Offset, VersionedRecord)>;

/// The data records of a log segment or a checkpoint with their offsets.
fn data_records(path: &Path) -> Records {
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

fn with_extension(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let files = fs::read_dir(folder).unwrap();
    let mut files: Vec<PathBuf> = files
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|known| known == extension))
        .collect();
    files.sort();
    files
}

/// The number that a file's name begins with.
fn number(path: &Path) -> Offset {
    let name = path.file_stem().unwrap().to_str().unwrap();
    Offset(name.split('-').next().unwrap().parse().unwrap())
}

/// What a controller left behind.
struct Lived {
    folder: PathBuf,
    /// The first offset of the log.
    start: Offset,
    log: Records,
    /// By end offset; without the one of the formatting.
    checkpoints: Vec<(Offset, Records)>,
}

impl Lived {
    fn read(folder: PathBuf) -> Self {
        let segments = with_extension(&folder, "log");
        let checkpoints = with_extension(&folder, "checkpoint").into_iter();
        Self {
            start: segments.first().map_or(Offset(0), |first| number(first)),
            log: segments
                .iter()
                .flat_map(|path| data_records(path))
                .collect(),
            checkpoints: checkpoints
                .map(|path| (number(&path), data_records(&path)))
                .filter(|(end, _)| *end > Offset(0))
                .collect(),
            folder,
        }
    }

    /// Where the log is replayed from: nothing, or the checkpoint that its lost beginning is in.
    fn beginning(&self) -> (Offset, Image) {
        if self.start == Offset(0) {
            return (Offset(0), Image::empty());
        }
        let mut checkpoints = self.checkpoints.iter();
        let (from, records) = checkpoints
            .find(|(from, _)| *from >= self.start)
            .expect("a log that has lost its beginning has a checkpoint");
        (*from, loaded(records))
    }

    /// `image`, which stands at `from`, with the log behind it: at the end of each checkpoint and
    /// of the log. `seen` is called after every record.
    fn along(
        &self,
        (from, mut image): (Offset, Image),
        seen: impl Fn(&Image),
    ) -> BTreeMap<Offset, Image> {
        let ends = self.checkpoints.iter().map(|(end, _)| *end);
        let ends: BTreeSet<Offset> = ends
            .chain([self.end()])
            .filter(|end| *end >= from)
            .collect();
        let mut log = self.log.iter().peekable();
        let mut images = BTreeMap::new();
        for end in ends {
            while let Some((offset, record)) = log.next_if(|(offset, _)| *offset < end) {
                if *offset >= from {
                    image.replay(&record.record, *offset).unwrap();
                    seen(&image);
                }
            }
            images.insert(end, image.clone());
        }
        images
    }

    fn end(&self) -> Offset {
        self.log.last().map_or(self.start, |(last, _)| last.next())
    }
}

/// Every directory of a controller that lived, of every recorded release.
fn lived() -> impl Iterator<Item = Lived> {
    let all = metadata_folders().into_iter().map(Lived::read);
    let lived: Vec<Lived> = all.filter(|lived| !lived.log.is_empty()).collect();
    for release in releases() {
        let of_release = |lived: &&Lived| lived.folder.starts_with(&release);
        let count = lived.iter().filter(of_release).count();
        assert!(count >= 6, "{}: {count} lives", release.display());
    }
    assert!(releases().len() >= 6);
    lived.into_iter()
}

fn loaded(checkpoint: &Records) -> Image {
    let mut image = Image::empty();
    for (offset, record) in checkpoint {
        image.replay(&record.record, *offset).unwrap();
    }
    image.check().unwrap();
    image
}

/// Java writes what it keeps in hash maps in their order; so these are sorted here:
///
/// | sorted | because Java's order is that of |
/// |---|---|
/// | the records themselves, inside a kind | hash maps by name, id or key |
/// | listeners and features of a broker or controller | hash maps by name |
/// | the parts of a quota's entity | a hash map by type |
///
/// Lists of ids (replicas, ISR, directories ...) and the order of kinds are compared as Java's. A
/// migration state of "none" or "over" is left out: 4.0 and later do not write it.
fn comparable(records: impl IntoIterator<Item = VersionedRecord>) -> Vec<String> {
    let mut kinds: Vec<&str> = Vec::new();
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
            Record::ClientQuota(record) => {
                record
                    .entity
                    .sort_by(|a, b| a.entity_type.cmp(&b.entity_type));
            }
            Record::ZkMigrationState(record) if matches!(record.zk_migration_state, 0 | 3) => {
                continue;
            }
            _ => {}
        }
        // A topic's partitions stand behind it.
        let kind = match record.record.name() {
            "PARTITION_RECORD" => "TOPIC_RECORD",
            other => other,
        };
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
        let rank = kinds.iter().position(|known| *known == kind).unwrap();
        texts.push(format!("{rank:02} {record:?}"));
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

fn emitted_bytes(image: &Image) -> Vec<Vec<u8>> {
    let records = emitted(image).into_iter();
    records.map(|record| record.encode().unwrap()).collect()
}

#[test]
fn a_java_log_and_the_java_checkpoint_at_its_end_tell_the_same_cluster() {
    let (mut compared, mut folders) = (0, 0);
    for lived in lived() {
        let images = lived.along(lived.beginning(), |image| image.check().unwrap());
        for (end, checkpoint) in &lived.checkpoints {
            let (from_log, from_checkpoint) = (&images[end], loaded(checkpoint));
            assert_eq!(from_log.open_transaction(), None);
            assert!(
                *from_log == from_checkpoint,
                "{} at {end}: {:#?}",
                lived.folder.display(),
                from_checkpoint.diff(from_log)
            );
            assert!(from_log.diff(&from_checkpoint).is_empty());
            compared += 1;
        }
        folders += 1;
    }
    assert!(folders >= 24, "only {folders} directories");
    assert!(compared >= 60, "only {compared} checkpoints");
}

#[test]
fn an_image_writes_the_java_checkpoint_again_that_it_was_loaded_from() {
    for lived in lived() {
        for (end, checkpoint) in &lived.checkpoints {
            let image = loaded(checkpoint);
            let java = comparable(checkpoint.iter().map(|(_, record)| record.clone()));
            let ours = comparable(emitted(&image));
            assert_eq!(ours, java, "{} at {end}", lived.folder.display());
        }
    }
}

/// Three nodes: one that replayed the log alone, one that started from an older checkpoint and the
/// log behind it, and one that got the checkpoint at this offset.
#[test]
fn images_of_one_offset_write_equal_bytes_however_they_came_about() {
    let mut compared = 0;
    for lived in lived() {
        let images = lived.along(lived.beginning(), |_| ());
        for (from, checkpoint) in &lived.checkpoints {
            for (end, other) in lived.along((*from, loaded(checkpoint)), |_| ()) {
                let place = format!("{} from {from} to {end}", lived.folder.display());
                let image = &images[&end];
                assert!(other == *image, "{place}");
                assert!(emitted_bytes(&other) == emitted_bytes(image), "{place}");
                compared += 1;
            }
        }
    }
    assert!(compared >= 100, "only {compared} pairs");
}

/// Release 4.0 dropped these levels: a controller of it ends itself on such a log.
#[test]
fn metadata_of_a_level_below_7_is_refused_with_its_number() {
    let folders = old_level_folders();
    assert!(!folders.is_empty());
    for folder in folders {
        let lived = Lived::read(folder);
        for records in [&lived.log, &lived.checkpoints[0].1] {
            let mut image = Image::empty();
            let mut replayed = records.iter();
            let refused = replayed
                .find_map(|(offset, record)| image.replay(&record.record, *offset).err())
                .unwrap();
            let level = ReplayFault::FeatureLevelUnknown {
                name: "metadata.version".into(),
                level: 4,
            };
            assert_eq!(refused, level, "{}", lived.folder.display());
        }
    }
}
