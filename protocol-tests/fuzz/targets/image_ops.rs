//! Bytes as a list of records on an image: whatever is replayed, a refused record leaves no trace,
//! forks do not move, a difference is empty exactly when the images are equal, and what the image
//! writes makes an equal image.
//!
//! Each operation is a length byte and so many bytes: a record's value with its frame; an empty one
//! takes a fork.

#![no_main]

use kraftd::image::Image;
use kraftd::records::{FeatureLevelRecord, Record, VersionedRecord};
use kraftd::types::Offset;
use libfuzzer_sys::fuzz_target;

/// Forks that are held at once.
const FORKS: usize = 8;

fn feature(name: &str, level: i16) -> Record {
    FeatureLevelRecord {
        name: name.to_owned(),
        feature_level: level,
        ..Default::default()
    }
    .into()
}

fn emitted(image: &Image) -> (Vec<VersionedRecord>, bool) {
    let mut records = Vec::new();
    let losses = image.emit(&mut |record| records.push(record));
    (records, losses.is_empty())
}

/// The level at which a snapshot can hold everything.
fn lift(image: &mut Image) {
    for (name, level) in [
        ("metadata.version", 33),
        ("eligible.leader.replicas.version", 1),
    ] {
        let record = feature(name, level);
        image.replay(&record, Offset(0)).expect("known levels");
    }
}

fn assert_survives_a_snapshot(image: &Image) {
    let (records, complete) = emitted(image);
    assert!(complete);
    let mut copy = Image::empty();
    for record in &records {
        let bytes = record.encode().expect("the version holds every field");
        let record = VersionedRecord::decode(&bytes).expect("just written");
        copy.replay(&record.record, Offset(1))
            .expect("written by an image");
    }
    assert!(copy == *image.settled());
    assert!(copy.diff(image.settled()).is_empty());
    assert_eq!(emitted(&copy).0.len(), records.len());
}

fuzz_target!(|bytes: &[u8]| {
    let mut image = Image::empty();
    lift(&mut image);
    let mut forks: Vec<(Image, String)> = Vec::new();
    let mut rest = bytes;
    let mut offset = 0;
    while let Some((length, behind)) = rest.split_first() {
        let (value, behind) = behind.split_at(behind.len().min(usize::from(*length)));
        rest = behind;
        offset += 1;
        if value.is_empty() {
            forks.truncate(FORKS - 1);
            forks.push((image.clone(), format!("{:?}", emitted(&image).0)));
            continue;
        }
        let Ok(record) = VersionedRecord::decode(value) else {
            continue;
        };
        let before = image.clone();
        if image.replay(&record.record, Offset(offset)).is_err() {
            assert!(image == before);
        }
        assert_eq!(before.diff(&image).is_empty(), before == image);
    }
    for (fork, written) in forks {
        assert_eq!(format!("{:?}", emitted(&fork).0), written);
    }
    // A record may have lowered the level inside the image that is shown.
    let mut shown = image.settled().clone();
    lift(&mut shown);
    assert_survives_a_snapshot(&shown);
});
