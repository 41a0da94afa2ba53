//! Requests for elections and reassignments that a real controller answered, decided again on what
//! its log says: the same answers and the same records.

use bytes::Bytes;
use kafka_protocol::messages as km;
use kafka_protocol::protocol::{Decodable, Encodable};

use super::answers_tests::unhex;
use super::testing::World;
use super::{Reply, Request, Soft};
use crate::records::batch::Batch;
use crate::records::rpc::{BrokerHeartbeatRequest, Message};
use crate::records::{NoOpRecord, PartitionChangeRecord, Record, VersionedRecord};
use crate::types::Now;

fn read<M: Decodable>(hex: &str, version: i16) -> M {
    M::decode(&mut unhex(hex), version).unwrap()
}

/// Every record of Java's log; what is not for the image as a NoOp, which it passes over.
fn logged() -> Vec<VersionedRecord> {
    let mut log = Bytes::from_static(include_bytes!("../../fixtures/4.4.0/answers/elections.log"));
    let mut records = Vec::new();
    while let Some(batch) = Batch::take_from(&mut log).unwrap() {
        for raw in batch.records() {
            let value = raw.unwrap().value.unwrap();
            records.push(match batch.is_control() {
                true => Record::NoOp(NoOpRecord::default()).at(0),
                false => VersionedRecord::decode(&value).unwrap(),
            });
        }
    }
    records
}

/// The controller that the log makes active, followed record by record.
struct Follower {
    world: World,
    log: std::vec::IntoIter<VersionedRecord>,
}

impl Follower {
    /// The next record that is no NoOp, replayed.
    fn next(&mut self) -> VersionedRecord {
        loop {
            let record = self.log.next().expect("the log goes on");
            self.world.replay(&record);
            if !matches!(record.record, Record::NoOp(_)) {
                return record;
            }
        }
    }

    /// Replays what comes before the first record that is no NoOp.
    fn skip_no_ops(&mut self) {
        while matches!(
            self.log.as_slice().first(),
            Some(it) if matches!(it.record, Record::NoOp(_))
        ) {
            let record = self.log.next().expect("it was looked at");
            self.world.replay(&record);
        }
    }

    /// Replays up to `count` records that are `wanted`, the last one of them included.
    fn until(&mut self, mut count: usize, wanted: impl Fn(&Record) -> bool) {
        while count > 0 {
            count -= usize::from(wanted(&self.next().record));
        }
    }

    /// Decides a request; Java must have written the same. Java takes partitions in the order of a
    /// hash.
    fn decide(&mut self, case: &str, version: i16, request: Request) -> Reply {
        self.skip_no_ops();
        let world = &mut self.world;
        world.soft = Soft::new(&world.settings, &world.image, Now::default(), 1);
        let decision = world.ask(version, request).unwrap();
        let mut ours = decision.records;
        let mut java: Vec<_> = ours.iter().map(|_| self.next()).collect();
        let place = |it: &VersionedRecord| match &it.record {
            Record::PartitionChange(PartitionChangeRecord {
                topic_id,
                partition_id,
                ..
            }) => Some((*topic_id, *partition_id)),
            _ => None,
        };
        ours.sort_by_key(place);
        java.sort_by_key(place);
        assert_eq!(ours, java, "{case}");
        decision.reply
    }
}

/// A line of the table.
struct Row<'a> {
    case: &'a str,
    api: &'a str,
    version: i16,
    /// In hex, as is `answer`.
    asked: &'a str,
    answer: &'a str,
}

impl<'a> Row<'a> {
    fn of(line: &'a str) -> Self {
        let cells: Vec<&str> = line.split('\t').collect();
        let [case, api, version, _, _, asked, answer] = cells[..] else {
            panic!("{line}")
        };
        Self {
            case,
            api,
            version: version.parse().unwrap(),
            asked,
            answer,
        }
    }
}

/// An answer with its lists sorted, as bytes.
fn sorted(reply: Reply, version: i16) -> Bytes {
    let mut out = bytes::BytesMut::new();
    match reply {
        Reply::ElectLeaders(mut it) => {
            for topic in &mut it.replica_election_results {
                topic.partition_result.sort_by_key(|it| it.partition_id);
            }
            it.replica_election_results
                .sort_by_key(|it| it.topic.clone());
            it.encode(&mut out, version).unwrap();
        }
        Reply::ListPartitionReassignments(mut it) => {
            for topic in &mut it.topics {
                topic.partitions.sort_by_key(|it| it.partition_index);
            }
            it.topics.sort_by_key(|it| it.name.clone());
            it.encode(&mut out, version).unwrap();
        }
        Reply::AlterPartitionReassignments(it) => it.encode(&mut out, version).unwrap(),
        Reply::AlterPartition(it) => it.encode(&mut out, version).unwrap(),
        other => panic!("not expected: {other:?}"),
    }
    out.freeze()
}

/// A request of the table and Java's answer; `None` for what is not decided again: it only makes
/// what the others need, and is replayed.
fn decided(follower: &mut Follower, row: &Row<'_>) -> Option<(Request, Option<Reply>)> {
    let Row {
        api,
        version,
        asked,
        answer,
        ..
    } = *row;
    let (request, java) = match api {
        "BrokerRegistration" => {
            let id = read::<km::BrokerRegistrationRequest>(asked, version)
                .broker_id
                .0;
            follower.until(
                1,
                |record| matches!(record, Record::RegisterBroker(it) if it.broker_id == id),
            );
            return None;
        }
        "CreateTopics" => {
            let topics = read::<km::CreateTopicsRequest>(asked, version).topics;
            let count = topics[0].assignments.len();
            follower.until(count, |record| matches!(record, Record::Partition(_)));
            return None;
        }
        "IncrementalAlterConfigs" => {
            follower.until(1, |record| matches!(record, Record::Config(_)));
            return None;
        }
        "BrokerHeartbeat" => {
            let body = BrokerHeartbeatRequest::decode(&unhex(asked), version).unwrap();
            return Some((Request::BrokerHeartbeat(body), None));
        }
        "AlterPartition" => (
            Request::AlterPartition(read(asked, version)),
            Reply::AlterPartition(read(answer, version)),
        ),
        "AlterPartitionReassignments" => (
            Request::AlterPartitionReassignments(read(asked, version)),
            Reply::AlterPartitionReassignments(read(answer, version)),
        ),
        "ElectLeaders" => (
            Request::ElectLeaders(read(asked, version)),
            Reply::ElectLeaders(read(answer, version)),
        ),
        "ListPartitionReassignments" => (
            Request::ListPartitionReassignments(read(asked, version)),
            Reply::ListPartitionReassignments(read(answer, version)),
        ),
        other => panic!("no rule of this test: {other}"),
    };
    Some((request, Some(java)))
}

#[test]
fn every_answer_and_every_record_is_the_one_that_a_real_controller_gave() {
    let table = include_str!("../../fixtures/4.4.0/answers/elections.tsv");
    let mut follower = Follower {
        world: World::empty(),
        log: logged().into_iter(),
    };
    let mut count = 0;
    for line in table.lines().filter(|line| !line.starts_with('#')) {
        let row = Row::of(line);
        let Some((request, java)) = decided(&mut follower, &row) else {
            continue;
        };
        if let Some(Reply::ElectLeaders(java)) = &java
            && java.error_code != 0
        {
            // A refusal of the whole request: `compat/answers.rs` compares all of it.
            let refused = follower.world.ask(row.version, request).unwrap_err();
            assert_eq!(refused.code.code(), java.error_code, "{}", row.case);
            continue;
        }
        let ours = follower.decide(row.case, row.version, request);
        count += 1;
        if let Some(java) = java {
            let (ours, java) = (sorted(ours, row.version), sorted(java, row.version));
            assert_eq!(ours, java, "{}", row.case);
        }
    }
    assert!(count >= 80, "{count}");
    let rest: Vec<_> = follower
        .log
        .filter(|it| !matches!(it.record, Record::NoOp(_)))
        .collect();
    assert_eq!(rest, [], "Java wrote more");
}
