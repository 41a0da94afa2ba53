//! Every record at every version, beside what Java says of it: schemas, instances as JSON and as
//! bytes, and what of an image a snapshot holds at each metadata.version.

use std::collections::{BTreeMap, BTreeSet};

use kraftd::image::Image;
use kraftd::records::{FeatureLevelRecord, Record, VersionedRecord};
use kraftd::types::features::MetadataVersion;
use kraftd::types::{Offset, SplitMix};
use serde_json::Value;

use crate::fixture::{lines, unhex};

/// One record that Java wrote.
struct Instance {
    name: String,
    version: i16,
    json: String,
    bytes: Vec<u8>,
}

fn instances() -> Vec<Instance> {
    let line = |line: Vec<String>| Instance {
        name: line[0].clone(),
        version: line[1].parse().unwrap(),
        json: line[2].clone(),
        bytes: unhex(&line[3]),
    };
    lines("records/instances.tsv")
        .into_iter()
        .map(line)
        .collect()
}

#[test]
fn the_types_and_versions_are_those_of_java() {
    let java: BTreeSet<(u32, String, i16)> = lines("records/schema.tsv")
        .into_iter()
        .map(|line| {
            (
                line[0].parse().unwrap(),
                line[1].clone(),
                line[2].parse().unwrap(),
            )
        })
        .collect();
    let ours = Record::TYPES.iter().flat_map(|known| {
        (0..=known.version_max).map(|version| (known.api_key, known.name.to_owned(), version))
    });
    assert_eq!(ours.collect::<BTreeSet<_>>(), java);
    assert_eq!(Record::TYPES.len(), 27);
}

#[test]
fn every_version_reads_as_java_reads_it_and_is_written_byte_for_byte() {
    let instances = instances();
    for Instance {
        name,
        version,
        json,
        bytes,
    } in &instances
    {
        let place = format!("{name} version {version}: {json}");
        let record = VersionedRecord::decode(bytes).expect(&place);
        assert_eq!(
            (record.record.name(), record.version),
            (&**name, *version),
            "{place}"
        );
        let ours = record.record.json(*version);
        match &record.record {
            // One number has many spellings; everything else stands as Java prints it.
            Record::ClientQuota(quota) => {
                let (ours, value) = without_value(&ours.to_string());
                let (java, wanted) = without_value(json);
                assert_eq!((ours, value.to_bits()), (java, quota.value.to_bits()));
                assert_eq!(value.to_bits(), wanted.to_bits(), "{place}");
            }
            _ => assert_eq!(ours.to_string(), *json),
        }
        assert_eq!(record.encode().expect(&place), *bytes, "{place}");
    }
    assert!(instances.len() >= 300, "{} instances", instances.len());
}

/// A quota's JSON without its value, and the value.
fn without_value(json: &str) -> (String, f64) {
    let (start, rest) = json.split_once("\"value\":").unwrap();
    let (value, end) = rest.split_once(',').unwrap();
    (format!("{start}{end}"), value.parse().unwrap())
}

/// What the test above proves depends on what the instances hold: every field of every version,
/// with a value, and null where that can be, and tags that nobody knows.
#[test]
fn the_instances_meet_every_field_null_and_unknown_tags() {
    let mut met: BTreeMap<(String, i16), BTreeSet<String>> = BTreeMap::new();
    let mut with_unknown_tags = BTreeSet::new();
    for Instance {
        name,
        version,
        json,
        bytes,
    } in instances()
    {
        let json: Value = serde_json::from_str(&json).unwrap();
        walk(&json, "", met.entry((name.clone(), version)).or_default());
        let record = VersionedRecord::decode(&bytes).unwrap();
        // Debug text is enough to see them: no known field is called so.
        if format!("{record:?}").contains("UnknownTags([(") {
            with_unknown_tags.insert((name, version));
        }
    }
    for line in lines("records/schema.tsv") {
        let (name, version, path) = (line[1].clone(), line[2].parse().unwrap(), &line[3]);
        if path.is_empty() {
            continue;
        }
        let paths = &met[&(name.clone(), version)];
        assert!(
            paths.contains(path),
            "{name} version {version} without {path}"
        );
        let null = format!("{path}=null");
        // A tagged field that is null has its default and is left out.
        if line[5] == "nullable" && line[6].is_empty() {
            assert!(
                paths.contains(&null),
                "{name} version {version} without {null}"
            );
        }
    }
    assert_eq!(with_unknown_tags.len(), met.len());
}

/// Collects the paths of a JSON value: `a.b`, and `a.b=null` for a null.
fn walk(value: &Value, path: &str, met: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let inner = if path.is_empty() {
                    name.clone()
                } else {
                    format!("{path}.{name}")
                };
                if value.is_null() {
                    met.insert(format!("{inner}=null"));
                } else {
                    met.insert(inner.clone());
                }
                walk(value, &inner, met);
            }
        }
        Value::Array(values) => values.iter().for_each(|value| walk(value, path, met)),
        _ => {}
    }
}

/// The declaration's own generator, at every version: what it makes survives the bytes, and no
/// prefix of the bytes is a record.
#[test]
fn whatever_the_generator_makes_is_read_as_it_was_written() {
    let mut rng = SplitMix::new(27);
    for (index, known) in Record::TYPES.iter().enumerate() {
        for version in 0..=known.version_max {
            for _ in 0..100 {
                let record = Record::arbitrary(&mut rng, index, version).at(version);
                let bytes = record.encode().unwrap();
                let again = VersionedRecord::decode(&bytes).unwrap();
                // A value that is not a number does not equal itself.
                assert_eq!(format!("{again:?}"), format!("{record:?}"));
                for length in 0..bytes.len() {
                    VersionedRecord::decode(&bytes[..length]).unwrap_err();
                }
            }
        }
    }
}

/// An image's records, sorted: inside a kind Java follows its hash maps.
fn texts(records: &[VersionedRecord]) -> Vec<String> {
    let mut texts: Vec<String> = records
        .iter()
        .map(|record| {
            let json = record.record.json(record.version);
            format!(
                "{} {} {}",
                record.record.name(),
                record.version,
                sorted(&json)
            )
        })
        .collect();
    texts.sort();
    texts
}

/// A record's JSON with its lists of listeners, features and entities in order of their text:
/// Java keeps those in hash maps. Lists of ids are left as they are.
fn sorted(json: &Value) -> Value {
    let mut json = json.clone();
    for field in ["endPoints", "features", "entity"] {
        if let Some(Value::Array(values)) = json.get_mut(field) {
            values.sort_by_key(Value::to_string);
        }
    }
    json
}

fn feature(name: &str, level: i16) -> Record {
    FeatureLevelRecord {
        name: name.to_owned(),
        feature_level: level,
        ..Default::default()
    }
    .into()
}

/// Our words for what a level cannot hold, and Java's. Java drops the ELR lists without a word.
const LOSSES: [(&str, Option<&str>); 8] = [
    ("SCRAM credentials", Some("ScramImage")),
    ("delegation tokens", Some("DelegationTokenImage")),
    (
        "the cordoned log directories of brokers",
        Some("the cordoned log directories of one or more brokers"),
    ),
    (
        "the directories of replicas",
        Some("the directory assignment state of one or more replicas"),
    ),
    ("the eligible leader replicas of partitions", None),
    (
        "the log directories of brokers",
        Some("the online log directories of one or more brokers"),
    ),
    (
        "the migration state of brokers",
        Some("the isMigratingZkBroker state of one or more brokers"),
    ),
    (
        "the registrations of controllers",
        Some("controller registration data"),
    ),
];

#[test]
fn an_older_level_writes_and_loses_what_java_writes_and_loses() {
    let mut given = Image::empty();
    let mut java: BTreeMap<i16, (BTreeSet<String>, Vec<String>)> = BTreeMap::new();
    for line in lines("records/levels.tsv") {
        if line[0] == "image" {
            let record = VersionedRecord::decode(&unhex(&line[3])).unwrap();
            given.replay(&record.record, Offset(1)).unwrap();
            continue;
        }
        let (losses, records) = java.entry(line[0].parse().unwrap()).or_default();
        if line[1] == "LOSS" {
            losses.insert(line[3].clone());
        } else {
            let json: Value = serde_json::from_str(&line[3]).unwrap();
            records.push(format!("{} {} {}", line[1], line[2], sorted(&json)));
        }
    }
    let mut compared = 0;
    for level in MetadataVersion::all().filter(|level| level.is_production()) {
        let mut image = given.clone();
        image
            .replay(&feature("metadata.version", level.level()), Offset(2))
            .unwrap();
        if !level.is_elr_supported() {
            let off = feature("eligible.leader.replicas.version", 0);
            image.replay(&off, Offset(2)).unwrap();
        }
        let mut records = Vec::new();
        let losses = image.emit(&mut |record| records.push(record));
        let losses: BTreeSet<String> = losses
            .iter()
            .map(|ours| LOSSES.iter().find(|(known, _)| known == ours).expect(ours))
            .filter_map(|(_, java)| java.map(str::to_owned))
            .collect();
        let first = records.remove(0).record;
        assert_eq!(first, feature("metadata.version", level.level()));
        // A level that is not there writes what the one below it writes.
        let (_, (java_losses, java_records)) = java.range(..=level.level()).next_back().unwrap();
        let mut java_records = java_records.clone();
        java_records.sort();
        assert_eq!(losses, *java_losses, "{}", level.name());
        assert_eq!(texts(&records), java_records, "{}", level.name());
        compared += 1;
    }
    assert_eq!(compared, 27);
}
