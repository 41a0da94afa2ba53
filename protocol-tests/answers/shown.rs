//! An answer as text to compare. Where values differ from run to run (offsets, times, the records
//! themselves), a mark stands for them.

use std::fmt::Write as _;

use bytes::Bytes;
use kafka_protocol::messages::{
    CreateTopicsResponse, DescribeConfigsResponse, DescribeQuorumResponse, FetchResponse,
    FetchSnapshotResponse, RemoveRaftVoterResponse,
};
use kafka_protocol::protocol::Decodable;
use uuid::Uuid;

fn read<M: Decodable>(bytes: &Bytes, version: i16) -> Option<M> {
    let mut rest = bytes.clone();
    let message = M::decode(&mut rest, version).ok()?;
    rest.is_empty().then_some(message)
}

/// The id of the first topic of an answer to CreateTopics.
pub(crate) fn topic_id(answer: &Bytes, version: i16) -> Option<Uuid> {
    let answer: CreateTopicsResponse = read(answer, version)?;
    answer.topics.first().map(|topic| topic.topic_id)
}

/// Any offset behind the first records.
const LATE: i64 = 1_000_000;

fn late(offset: i64) -> i64 {
    if offset > 1 { LATE } else { offset }
}

/// The answer as text, `closed` for none.
pub(crate) fn shown(api: &str, version: i16, answer: Option<&Bytes>) -> String {
    let Some(answer) = answer else {
        return "closed".to_owned();
    };
    let masked = match api {
        "Fetch" => fetch(answer, version),
        "DescribeQuorum" => quorum(answer, version),
        "FetchSnapshot" => {
            read::<FetchSnapshotResponse>(answer, version).map(|answer| format!("{answer:?}"))
        }
        "BrokerRegistration" => registration(answer),
        "DescribeConfigs" => configs(answer, version),
        "RemoveRaftVoter" => removal(answer, version),
        _ => None,
    };
    masked.unwrap_or_else(|| hex(answer))
}

fn hex(bytes: &Bytes) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a String takes everything");
        text
    })
}

/// The test looks at the epochs itself.
fn registration(answer: &Bytes) -> Option<String> {
    let epoch = answer.get(6..14)?;
    let granted = epoch[0] & 0x80 == 0;
    let (before, after) = (answer.slice(..6), answer.slice(14..));
    Some(format!("{} {granted} {}", hex(&before), hex(&after)))
}

/// The sentence names the directory of the voter that runs.
fn removal(answer: &Bytes, version: i16) -> Option<String> {
    let answer: RemoveRaftVoterResponse = read(answer, version)?;
    let text = format!("{answer:?}");
    let named = "ReplicaKey(id=1, directoryId=";
    match text.split_once(named) {
        Some((before, after)) => Some(format!("{before}{named}..{}", after.split_once(')')?.1)),
        None => Some(text),
    }
}

/// Java lists keys in the order of a hash.
fn configs(answer: &Bytes, version: i16) -> Option<String> {
    let mut answer: DescribeConfigsResponse = read(answer, version)?;
    for result in &mut answer.results {
        result.configs.sort_by(|a, b| a.name.cmp(&b.name));
    }
    Some(format!("{answer:?}"))
}

fn fetch(answer: &Bytes, version: i16) -> Option<String> {
    let mut answer: FetchResponse = read(answer, version)?;
    let mut text = String::new();
    for topic in &mut answer.responses {
        for partition in &mut topic.partitions {
            partition.high_watermark = late(partition.high_watermark);
            let diverging = &mut partition.diverging_epoch;
            diverging.end_offset = late(diverging.end_offset);
            let records = partition.records.take().unwrap_or_default();
            // The first batch holds the records of the bootstrap snapshot and the new epoch.
            let first = records.get(..8).map_or(-1, |bytes| i64::from(bytes[7]));
            write!(text, "first batch {first}; ").ok()?;
        }
    }
    Some(text + &format!("{answer:?}"))
}

fn quorum(answer: &Bytes, version: i16) -> Option<String> {
    let mut answer: DescribeQuorumResponse = read(answer, version)?;
    for topic in &mut answer.topics {
        for partition in &mut topic.partitions {
            partition.high_watermark = late(partition.high_watermark);
            // The recorded broker was an observer of its own; here only the rows' replica asks.
            partition
                .observers
                .retain(|observer| observer.replica_id.0 != 2);
            let replicas = partition.current_voters.iter_mut();
            for replica in replicas.chain(&mut partition.observers) {
                replica.log_end_offset = late(replica.log_end_offset);
                replica.last_fetch_timestamp = late(replica.last_fetch_timestamp);
                replica.last_caught_up_timestamp = late(replica.last_caught_up_timestamp);
                if replica.replica_id.0 == 1 {
                    replica.replica_directory_id = Uuid::max();
                }
            }
        }
    }
    Some(format!("{answer:?}"))
}
