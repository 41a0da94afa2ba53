//! The value of a data record in the metadata log: frame version, api key, version, body.
//!
//! All three numbers are unsigned variable-length integers (KIP-631); the frame version is 1.

use serde_json::{Value, json};

use super::fault::RecordFault;
use super::metadata::Record;
use super::text::text;
use super::wire::{Reader, put_uvarint};

/// The only frame version.
const FRAME: u32 = 1;

/// A record and the version it was read at, or will be written at.
#[derive(Clone, Debug, PartialEq)]
pub struct VersionedRecord {
    /// The record type's version.
    pub version: i16,
    /// The record.
    pub record: Record,
}

impl VersionedRecord {
    /// Reads a whole value. Nothing is skipped: an unknown type, version or frame, and bytes left
    /// over, are faults.
    ///
    /// # Errors
    /// When `value` is not exactly one known record.
    pub fn decode(value: &[u8]) -> Result<Self, RecordFault> {
        let mut input = Reader::new(value);
        let frame = input.uvarint()?;
        if frame != FRAME {
            return Err(RecordFault::UnknownFrame(frame));
        }
        let api_key = input.uvarint()?;
        let found = input.uvarint()?;
        let version = version_of(api_key, found)?;
        let record = Record::take(api_key, version, &mut input)?;
        input.finish()?;
        Ok(Self { version, record })
    }

    /// The whole value, as [`Self::decode`] reads it.
    ///
    /// # Errors
    /// When the type has no such version, or a field has a value that the version cannot hold.
    pub fn encode(&self) -> Result<Vec<u8>, RecordFault> {
        let mut out = Vec::with_capacity(64);
        self.encode_into(&mut out)?;
        Ok(out)
    }

    /// Appends the whole value to `out`; what is appended after a fault means nothing.
    ///
    /// # Errors
    /// As [`Self::encode`].
    pub fn encode_into(&self, out: &mut Vec<u8>) -> Result<(), RecordFault> {
        let kind = self.record.record_type();
        // A negative version becomes a huge one and is refused.
        let version = version_of(kind.api_key, self.version as u32)?;
        put_uvarint(out, FRAME);
        put_uvarint(out, kind.api_key);
        put_uvarint(out, version as u32);
        self.record.put(out, version)
    }

    /// The JSON form that `kafka-dump-log --cluster-metadata-decoder` prints as the payload.
    #[must_use]
    pub fn json(&self) -> Value {
        json!({
            "type": self.record.name(),
            "version": self.version,
            "data": self.record.json(self.version),
        })
    }

    /// [`Self::json`] as text, exactly as the tool prints it.
    #[must_use]
    pub fn text(&self) -> String {
        text(&self.json())
    }
}

/// Checks that a type has a version.
fn version_of(api_key: u32, version: u32) -> Result<i16, RecordFault> {
    let kind = Record::TYPES
        .iter()
        .find(|kind| kind.api_key == api_key)
        .ok_or(RecordFault::UnknownType(api_key))?;
    i16::try_from(version)
        .ok()
        .filter(|version| *version <= kind.version_max)
        .ok_or(RecordFault::UnknownVersion {
            structure: kind.name,
            version,
        })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use uuid::Uuid;

    use super::*;
    use crate::records::testing::hex;
    use crate::records::*;
    use crate::types::SplitMix;

    fn assert_written(record: VersionedRecord, bytes: &str, text: &str) {
        assert_eq!(record.encode().unwrap(), hex(bytes));
        assert_eq!(VersionedRecord::decode(&hex(bytes)).unwrap(), record);
        assert_eq!(record.json().to_string(), text);
    }

    #[test]
    fn a_no_op_is_four_bytes() {
        assert_written(
            Record::from(NoOpRecord::default()).at(0),
            "01 14 00 00",
            r#"{"type":"NO_OP_RECORD","version":0,"data":{}}"#,
        );
    }

    #[test]
    fn unfencing_a_broker_is_written_as_java_writes_it() {
        let record = BrokerRegistrationChangeRecord {
            broker_id: 2,
            broker_epoch: 104,
            fenced: -1,
            ..Default::default()
        };
        assert_written(
            Record::from(record).at(0),
            "01 11 00 00000002 0000000000000068 01 00 01 ff",
            concat!(
                r#"{"type":"BROKER_REGISTRATION_CHANGE_RECORD","version":0,"data":{"#,
                r#""brokerId":2,"brokerEpoch":104,"fenced":-1}}"#,
            ),
        );
    }

    #[test]
    fn an_empty_list_of_cordoned_directories_differs_from_none() {
        let record = BrokerRegistrationChangeRecord {
            broker_id: 2,
            broker_epoch: 104,
            cordoned_log_dirs: Some(Vec::new()),
            ..Default::default()
        };
        assert_written(
            Record::from(record).at(3),
            "01 11 03 00000002 0000000000000068 01 03 01 01",
            concat!(
                r#"{"type":"BROKER_REGISTRATION_CHANGE_RECORD","version":3,"data":{"#,
                r#""brokerId":2,"brokerEpoch":104,"cordonedLogDirs":[]}}"#,
            ),
        );
    }

    #[test]
    fn a_partition_is_written_as_java_writes_it() {
        let record = PartitionRecord {
            partition_id: 0,
            topic_id: Uuid::from_u128(7),
            replicas: vec![2],
            isr: vec![2],
            leader: 2,
            leader_epoch: 0,
            partition_epoch: 0,
            directories: vec![Uuid::from_u128(1)],
            ..Default::default()
        };
        assert_written(
            Record::from(record).at(2),
            "01 03 02 00000000 00000000000000000000000000000007 02 00000002 02 00000002 01 01
             00000002 00000000 00000000 02 00000000000000000000000000000001 00",
            concat!(
                r#"{"type":"PARTITION_RECORD","version":2,"data":{"#,
                r#""partitionId":0,"topicId":"AAAAAAAAAAAAAAAAAAAABw","replicas":[2],"#,
                r#""isr":[2],"removingReplicas":[],"addingReplicas":[],"leader":2,"#,
                r#""leaderEpoch":0,"partitionEpoch":0,"#,
                r#""directories":["AAAAAAAAAAAAAAAAAAAAAQ"]}}"#,
            ),
        );
    }

    #[test]
    fn a_partition_change_writes_its_tags_in_order() {
        let record = PartitionChangeRecord {
            partition_id: 0,
            isr: Some(Vec::new()),
            leader: -1,
            directories: Some(vec![Uuid::from_u128(1)]),
            eligible_leader_replicas: Some(vec![2]),
            last_known_elr: Some(vec![2]),
            ..Default::default()
        };
        let bytes = Record::from(record).at(2).encode().unwrap();
        assert_eq!(
            bytes,
            hex(
                "01 05 02 00000000 00000000000000000000000000000000 05 00 01 01 01 04 ffffffff
                 06 05 02 00000002 07 05 02 00000002 08 11 02 00000000000000000000000000000001"
            )
        );
    }

    #[test]
    fn a_partition_change_changes_nothing_by_default() {
        let record = PartitionChangeRecord::default();
        assert_eq!(record.leader, -2);
        assert_eq!(record.leader_recovery_state, -1);
        assert_eq!(record.isr, None);
    }

    #[test]
    fn a_value_that_the_version_lacks_is_refused_unless_it_is_the_default() {
        let mut record = RegisterBrokerRecord {
            log_dirs: vec![Uuid::from_u128(9)],
            ..Default::default()
        };
        assert_eq!(
            Record::from(record.clone()).at(2).encode(),
            Err(RecordFault::FieldNotInVersion {
                structure: "RegisterBrokerRecord",
                field: "log_dirs",
                version: 2
            })
        );
        record.log_dirs.clear();
        assert!(Record::from(record).at(2).encode().is_ok());
    }

    #[test]
    fn what_is_not_known_is_never_skipped() {
        let decode = |text: &str| VersionedRecord::decode(&hex(text));
        assert_eq!(decode("00 14 00 00"), Err(RecordFault::UnknownFrame(0)));
        assert_eq!(decode("02 14 00 00"), Err(RecordFault::UnknownFrame(2)));
        for key in [6, 13, 16, 30] {
            let value = [1, key, 0, 0];
            assert_eq!(
                VersionedRecord::decode(&value),
                Err(RecordFault::UnknownType(u32::from(key)))
            );
        }
        assert_eq!(
            decode("01 14 01 00"),
            Err(RecordFault::UnknownVersion {
                structure: "NO_OP_RECORD",
                version: 1
            })
        );
        assert_eq!(decode("01 14 00 00 00"), Err(RecordFault::LeftOver(1)));
        assert_eq!(decode("01 14 00"), Err(RecordFault::Truncated));
        assert_eq!(
            decode("01 14 ff ff ff ff ff 00"),
            Err(RecordFault::VarintTooLong)
        );
        assert_eq!(decode(""), Err(RecordFault::Truncated));
    }

    #[test]
    fn a_tag_of_a_later_version_is_a_fault() {
        assert_eq!(
            VersionedRecord::decode(&hex("01 11 02 00000002 0000000000000068 01 03 01 01")),
            Err(RecordFault::TagNotInVersion(3))
        );
    }

    #[test]
    fn a_count_that_the_bytes_cannot_hold_is_refused_before_memory_is_reserved() {
        let value = "01 03 00 00000000 00000000000000000000000000000007 ff ff ff ff 0f";
        assert_eq!(
            VersionedRecord::decode(&hex(value)),
            Err(RecordFault::CountTooLarge(u32::MAX - 1))
        );
    }

    #[test]
    fn names_follow_the_type_names() {
        for (index, kind) in Record::TYPES.iter().enumerate() {
            let record = Record::arbitrary(&mut SplitMix::new(1), index, 0);
            assert_eq!(record.record_type(), *kind);
            let debug = format!("{record:?}");
            let structure = debug.split(['(', ' ']).nth(1).unwrap();
            let mut expected = String::new();
            for letter in structure.chars() {
                if letter.is_ascii_uppercase() && !expected.is_empty() {
                    expected.push('_');
                }
                expected.push(letter.to_ascii_uppercase());
            }
            assert_eq!(kind.name, expected);
        }
        let keys: Vec<u32> = Record::TYPES.iter().map(|kind| kind.api_key).collect();
        let expected: Vec<u32> = (0..30).filter(|k| ![6, 13, 16].contains(k)).collect();
        assert_eq!(keys, expected);
    }

    fn arbitrary(seed: u64) -> impl Iterator<Item = VersionedRecord> {
        let mut rng = SplitMix::new(seed);
        (0..Record::TYPES.len()).flat_map(move |index| {
            let versions = 0..=Record::TYPES[index].version_max;
            versions
                .map(|version| Record::arbitrary(&mut rng, index, version).at(version))
                .collect::<Vec<_>>()
        })
    }

    proptest! {
        #[test]
        fn every_type_at_every_version_comes_back_as_it_was(seed: u64) {
            for record in arbitrary(seed) {
                let bytes = record.encode().unwrap();
                prop_assert_eq!(&VersionedRecord::decode(&bytes).unwrap(), &record);
            }
        }

        #[test]
        fn every_cut_value_is_a_fault(seed: u64) {
            for record in arbitrary(seed) {
                let bytes = record.encode().unwrap();
                for end in 0..bytes.len() {
                    prop_assert!(VersionedRecord::decode(&bytes[..end]).is_err());
                }
            }
        }

        #[test]
        fn arbitrary_bytes_are_a_record_or_a_fault(
            key in 0_u8..31, version in 0_u8..5, body: Vec<u8>
        ) {
            let mut value = vec![1, key, version];
            value.extend_from_slice(&body);
            if let Ok(record) = VersionedRecord::decode(&value) {
                // What was accepted can be written, and then reads the same.
                let again = record.encode().unwrap();
                prop_assert_eq!(
                    format!("{:?}", VersionedRecord::decode(&again).unwrap()),
                    format!("{record:?}")
                );
            }
        }

        #[test]
        fn a_flipped_byte_never_panics(seed: u64, at: usize, flip: u8) {
            for record in arbitrary(seed) {
                let mut bytes = record.encode().unwrap();
                let at = at % bytes.len();
                bytes[at] ^= flip;
                let _ = VersionedRecord::decode(&bytes);
            }
        }
    }
}
