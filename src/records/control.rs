//! Control records: raft's own facts in the log and in snapshots, in batches of their own.
//!
//! The key is `version i16 = 0, type i16`; the value is a flexible message whose first field is its
//! own version. Sources: KIP-595 (leader change), KIP-630 (snapshot header and footer), KIP-853
//! (voters, kraft version). Transaction markers (types 0 and 1) do not occur in the metadata log.

use bytes::Bytes;
use serde_json::Value;
use uuid::Uuid;

use super::fault::RecordFault;
use super::schema::message;
use super::text::text;
use super::wire::{Format, Reader, Wire};
use crate::types::SplitMix;

message! {
    /// A voter of the epoch, as the leader change record tells it.
    pub struct LeaderChangeVoter {
        /// The voter's node id.
        voter_id: i32, 0+;
        /// Its directory id.
        voter_directory_id: Uuid, 1+;
    }

    /// A leader was elected: the first record of its epoch.
    pub struct LeaderChange {
        /// This message's version.
        version: i16, 0+;
        /// The leader.
        leader_id: i32, 0+;
        /// The voters.
        voters: Vec<LeaderChangeVoter>, 0+;
        /// The voters that voted for the leader.
        granting_voters: Vec<LeaderChangeVoter>, 0+;
    }

    /// The first record of a snapshot.
    pub struct SnapshotHeader {
        /// This message's version.
        version: i16, 0+;
        /// The timestamp of the newest batch in the snapshot, ms since 1970; 0 when formatted.
        last_contained_log_timestamp: i64, 0+;
    }

    /// The last record of a snapshot: without it, the snapshot is not whole.
    pub struct SnapshotFooter {
        /// This message's version.
        version: i16, 0+;
    }

    /// The `kraft.version` feature from here on.
    pub struct KRaftVersion {
        /// This message's version.
        version: i16, 0+;
        /// 0 static voters, 1 voters in the log.
        k_raft_version: i16, 0+;
    }

    /// A listener of a voter.
    pub struct VoterEndpoint {
        /// The listener's name.
        name: String, 0+;
        /// The host.
        host: String, 0+;
        /// The port.
        port: u16, 0+;
    }

    /// The levels of `kraft.version` that a voter supports, inclusive.
    pub struct KRaftVersionFeature {
        /// The lowest.
        min_supported_version: i16, 0+;
        /// The highest.
        max_supported_version: i16, 0+;
    }

    /// One voter.
    pub struct KRaftVoter {
        /// Its node id.
        voter_id: i32, 0+;
        /// Its directory id.
        voter_directory_id: Uuid, 0+;
        /// Where it listens.
        endpoints: Vec<VoterEndpoint>, 0+;
        /// What it supports.
        k_raft_version_feature: KRaftVersionFeature, 0+;
    }

    /// The whole set of voters from here on.
    pub struct KRaftVoters {
        /// This message's version.
        version: i16, 0+;
        /// The voters.
        voters: Vec<KRaftVoter>, 0+;
    }
}

/// The encoding of every control record's value.
const fn format(version: i16) -> Format {
    Format {
        version,
        flexible: true,
    }
}

macro_rules! controls {
    ($( $type:literal $variant:ident versions 0-$max:literal, #[$doc:meta] )*) => {
        /// One control record. Its version is its first field.
        #[derive(Clone, Debug, PartialEq)]
        pub enum ControlRecord {
            $( #[$doc] $variant($variant), )*
        }

        impl ControlRecord {
            /// The name of every type, as [`Self::name`] gives it.
            pub const NAMES: &[&str] = &[ $( stringify!($variant), )* ];

            /// The type in the key.
            #[must_use]
            pub const fn type_id(&self) -> i16 {
                match self { $( Self::$variant(_) => $type, )* }
            }

            /// The name that `kafka-dump-log` prints.
            #[must_use]
            pub const fn name(&self) -> &'static str {
                match self { $( Self::$variant(_) => stringify!($variant), )* }
            }

            /// The version of the value.
            #[must_use]
            pub const fn version(&self) -> i16 {
                match self { $( Self::$variant(record) => record.version, )* }
            }

            /// The value's bytes.
            ///
            /// # Errors
            /// When there is no such version, or it cannot hold a field's value.
            pub fn encode_value(&self) -> Result<Vec<u8>, RecordFault> {
                let mut out = Vec::with_capacity(64);
                match self {
                    $( Self::$variant(record) => {
                        check_version(stringify!($variant), record.version, $max)?;
                        record.put(&mut out, format(record.version))?;
                    } )*
                }
                Ok(out)
            }

            fn take(type_id: i16, input: &mut Reader<'_>) -> Result<Self, RecordFault> {
                // The version is read twice: here to choose the format, then as the first field.
                let version = i16::take(&mut input.clone(), format(0));
                match type_id {
                    $( $type => {
                        let version = version?;
                        check_version(stringify!($variant), version, $max)?;
                        Wire::take(input, format(version)).map(Self::$variant)
                    } )*
                    // A negative type becomes a huge one, which does not exist either.
                    _ => Err(RecordFault::UnknownType(u32::from(type_id.cast_unsigned()))),
                }
            }

            /// The fields, as `kafka-dump-log` prints them behind [`Self::name`].
            #[must_use]
            pub fn json(&self) -> Value {
                match self {
                    $( Self::$variant(record) => record.json(format(record.version)), )*
                }
            }

            /// [`Self::json`] as text, exactly as the tool prints it.
            #[must_use]
            pub fn text(&self) -> String {
                text(&self.json())
            }

            /// One random record of each type at each version.
            #[must_use]
            pub fn arbitrary(rng: &mut SplitMix) -> Vec<Self> {
                let mut records = Vec::new();
                $(
                    for version in 0..=$max {
                        let mut record = $variant::arbitrary(rng, format(version));
                        record.version = version;
                        records.push(Self::$variant(record));
                    }
                )*
                records
            }
        }

        $(
            impl From<$variant> for ControlRecord {
                fn from(record: $variant) -> Self {
                    Self::$variant(record)
                }
            }
        )*
    };
}

controls! {
    2 LeaderChange versions 0-1, #[doc = "A leader was elected."]
    3 SnapshotHeader versions 0-0, #[doc = "A snapshot begins."]
    4 SnapshotFooter versions 0-0, #[doc = "A snapshot ends."]
    5 KRaftVersion versions 0-0, #[doc = "The `kraft.version` feature changed."]
    6 KRaftVoters versions 0-0, #[doc = "The voters changed."]
}

impl ControlRecord {
    /// The key's four bytes.
    #[must_use]
    pub const fn encode_key(&self) -> [u8; 4] {
        let [high, low] = self.type_id().to_be_bytes();
        [0, 0, high, low]
    }

    /// Reads a control record from the key and value of a record in a control batch.
    ///
    /// # Errors
    /// When the key is not one, its type or the value's version is not known, or the value is
    /// malformed.
    pub fn decode(key: Option<&Bytes>, value: Option<&Bytes>) -> Result<Self, RecordFault> {
        let key: &[u8] = key.map_or(&[], |key| key);
        let &[0, 0, high, low] = key else {
            return Err(RecordFault::BadControlKey);
        };
        let value = value.ok_or(RecordFault::NullNotAllowed)?;
        let mut input = Reader::new(value);
        let record = Self::take(i16::from_be_bytes([high, low]), &mut input)?;
        input.finish()?;
        Ok(record)
    }
}

fn check_version(structure: &'static str, version: i16, max: i16) -> Result<(), RecordFault> {
    if (0..=max).contains(&version) {
        return Ok(());
    }
    Err(RecordFault::UnknownVersion {
        structure,
        version: version as u32,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::records::batch::{Batch, BatchBuilder};
    use crate::records::testing::hex;
    use crate::types::{Epoch, Offset, Timestamp};

    /// What the first leader of a quorum with voters in the log writes.
    fn first_records() -> [ControlRecord; 3] {
        let voter = LeaderChangeVoter {
            voter_id: 1,
            ..Default::default()
        };
        [
            LeaderChange {
                leader_id: 1,
                voters: vec![voter.clone()],
                granting_voters: vec![voter],
                ..Default::default()
            }
            .into(),
            KRaftVersion {
                k_raft_version: 1,
                ..Default::default()
            }
            .into(),
            KRaftVoters {
                voters: vec![KRaftVoter {
                    voter_id: 1,
                    voter_directory_id: Uuid::from_u128(0xabcd),
                    endpoints: vec![VoterEndpoint {
                        name: "CONTROLLER".to_owned(),
                        host: "127.0.0.1".to_owned(),
                        port: 0x4a95,
                        ..Default::default()
                    }],
                    k_raft_version_feature: KRaftVersionFeature {
                        min_supported_version: 0,
                        max_supported_version: 1,
                        ..Default::default()
                    },
                    ..Default::default()
                }],
                ..Default::default()
            }
            .into(),
        ]
    }

    /// The first batch of an epoch, as a Java leader with voters in the log writes it: all fields
    /// but timestamps, checksum and directory id.
    #[test]
    fn the_first_batch_of_an_epoch_is_written_as_java_writes_it() {
        let records = first_records();
        let mut builder = BatchBuilder::control(Offset(0), Epoch(1), Timestamp(0));
        for record in &records {
            builder.push_control(record).unwrap();
        }
        let batch = builder.build();
        let expected = "
            3a 00 00 00 08 00000002
            26 0000 00000001 02 00000001 00 02 00000001 00 00 00
            1e 00 00 02 08 00000005 0a 0000 0001 00 00
            8201 00 00 04 08 00000006 6e 0000 02 00000001 0000000000000000000000000000abcd
            02 0b 434f4e54524f4c4c4552 0a 3132372e302e302e31 4a95 00 0000 0001 00 00 00 00";
        assert_eq!(batch.size(), 174);
        assert_eq!(&batch.bytes()[21..27], hex("0020 00000002"));
        assert_eq!(&batch.bytes()[61..], hex(expected));
        let read: Vec<ControlRecord> = Batch::parse(batch.into_bytes())
            .unwrap()
            .records()
            .map(Result::unwrap)
            .map(|raw| ControlRecord::decode(raw.key.as_ref(), raw.value.as_ref()).unwrap())
            .collect();
        assert_eq!(read, records);
    }

    #[test]
    fn control_records_are_shown_as_the_dump_tool_shows_them() {
        let read = first_records();
        assert_eq!(
            read[0].text(),
            concat!(
                r#"{"version":0,"leaderId":1,"voters":[{"voterId":1}],"#,
                r#""grantingVoters":[{"voterId":1}]}"#
            )
        );
        assert_eq!(read[1].text(), r#"{"version":0,"kRaftVersion":1}"#);
        assert_eq!(
            read[2].text(),
            concat!(
                r#"{"version":0,"voters":[{"voterId":1,"voterDirectoryId":"#,
                r#""AAAAAAAAAAAAAAAAAACrzQ","endpoints":[{"name":"CONTROLLER","#,
                r#""host":"127.0.0.1","port":19093}],"#,
                r#""kRaftVersionFeature":{"minSupportedVersion":0,"maxSupportedVersion":1}}]}"#
            )
        );
    }

    #[test]
    fn keys_types_and_versions_that_are_not_known_are_faults() {
        let decode = |key: &[u8], value: &str| {
            let key = Bytes::copy_from_slice(key);
            ControlRecord::decode(Some(&key), Some(&Bytes::from(hex(value))))
        };
        assert!(decode(&[0, 0, 0, 4], "0000 00").is_ok());
        for key in [&[0, 0, 0][..], &[0, 0, 0, 4, 0], &[0, 1, 0, 4], &[]] {
            assert_eq!(decode(key, "0000 00"), Err(RecordFault::BadControlKey));
        }
        for marker in [0, 1, 7] {
            let fault = RecordFault::UnknownType(u32::from(marker));
            assert_eq!(decode(&[0, 0, 0, marker], "0000 00"), Err(fault));
        }
        assert_eq!(
            decode(&[0, 0, 0, 4], "0001 00"),
            Err(RecordFault::UnknownVersion {
                structure: "SnapshotFooter",
                version: 1
            })
        );
        assert_eq!(
            decode(&[0, 0, 0, 4], "0000 00 00"),
            Err(RecordFault::LeftOver(1))
        );
        assert_eq!(decode(&[0, 0, 0, 4], "00"), Err(RecordFault::Truncated));
        assert_eq!(
            ControlRecord::decode(Some(&Bytes::from_static(&[0, 0, 0, 4])), None),
            Err(RecordFault::NullNotAllowed)
        );
    }

    proptest! {
        #[test]
        fn every_type_at_every_version_comes_back_as_it_was(seed: u64) {
            for record in ControlRecord::arbitrary(&mut SplitMix::new(seed)) {
                let key = Bytes::copy_from_slice(&record.encode_key());
                let value = Bytes::from(record.encode_value().unwrap());
                prop_assert_eq!(ControlRecord::decode(Some(&key), Some(&value)).unwrap(), record);
            }
        }

        #[test]
        fn arbitrary_values_are_a_record_or_a_fault(kind in 0_u8..8, value: Vec<u8>) {
            let key = Bytes::copy_from_slice(&[0, 0, 0, kind]);
            let _ = ControlRecord::decode(Some(&key), Some(&Bytes::from(value)));
        }
    }
}
