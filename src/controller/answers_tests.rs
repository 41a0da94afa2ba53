//! The answers of a real controller to hundreds of requests, given again: every code and sentence,
//! in the order in which they were recorded, on an image that grows as theirs did.

use std::fmt::Debug;

use bytes::Bytes;
use kafka_protocol::messages as km;
use kafka_protocol::protocol::Decodable;

use super::authorize::Asker;
use super::configs::describe;
use super::testing::World;
use super::{Reply, Request};
use crate::types::loggers::Loggers;
use crate::types::{ApiError, Uuid};

/// What is not the same by intent: where Java fails with a null pointer, loses its leadership and
/// answers UNKNOWN_SERVER_ERROR, kraftd refuses the item with INVALID_REQUEST and goes on.
const REFUSED_INSTEAD_OF_FAILING: &[&str] = &["append without a value", "unknown operation"];

pub(super) struct Row<'a> {
    pub(super) case: &'a str,
    pub(super) api: &'a str,
    pub(super) version: i16,
    pub(super) request: Bytes,
    pub(super) answer: Bytes,
}

pub(super) fn rows(text: &str) -> Vec<Row<'_>> {
    let row = |line: &'_ str| {
        let mut columns = line.split('\t');
        let mut next = || columns.next();
        let (case, api, version) = (next()?, next()?, next()?);
        let (_, _) = (next()?, next()?);
        Some((
            case.len(),
            api.len(),
            version.len(),
            unhex(next()?),
            unhex(next()?),
        ))
    };
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| {
            let (case, api, version, request, answer) = row(line).expect("seven columns");
            let api_at = case + 1;
            let version_at = api_at + api + 1;
            Row {
                case: &line[..case],
                api: &line[api_at..api_at + api],
                version: line[version_at..version_at + version].parse().unwrap(),
                request,
                answer,
            }
        })
        .collect()
}

pub(super) fn unhex(text: &str) -> Bytes {
    let digit = |byte: u8| (byte as char).to_digit(16).unwrap() as u8;
    text.as_bytes()
        .chunks(2)
        .map(|pair| digit(pair[0]) << 4 | digit(pair[1]))
        .collect()
}

pub(super) fn read<M: Decodable>(bytes: &Bytes, version: i16) -> M {
    M::decode(&mut bytes.clone(), version).unwrap()
}

/// Items in an order that does not depend on a hash, with a mark in place of random ids.
pub(super) fn sorted<T: Debug>(items: Vec<T>) -> Vec<String> {
    let mut shown: Vec<String> = items.iter().map(|item| format!("{item:?}")).collect();
    shown.sort();
    shown
}

const SOME_ID: Uuid = Uuid::max();

fn mark(id: Uuid) -> Uuid {
    if id.is_nil() { id } else { SOME_ID }
}

/// The answer as lines to compare. `whole` are the code and the sentence of a whole request.
fn shown(reply: Reply, version: i16) -> Vec<String> {
    match reply {
        Reply::CreateTopics(mut reply) => {
            for topic in &mut reply.topics {
                topic.topic_id = mark(topic.topic_id);
                if version < 7 {
                    topic.topic_id = Uuid::nil();
                }
                if version < 5 {
                    topic.num_partitions = -1;
                    topic.replication_factor = -1;
                    topic.configs = Some(Vec::new());
                }
            }
            sorted(reply.topics)
        }
        Reply::DeleteTopics(mut reply) => {
            for topic in &mut reply.responses {
                topic.topic_id = mark(topic.topic_id);
                if version < 6 {
                    topic.topic_id = Uuid::nil();
                }
                if version < 5 {
                    topic.error_message = None;
                }
            }
            sorted(reply.responses)
        }
        Reply::CreatePartitions(reply) => sorted(reply.results),
        Reply::IncrementalAlterConfigs(reply) => sorted(reply.responses),
        Reply::AlterConfigs(reply) => sorted(reply.responses),
        Reply::UpdateFeatures(reply) => vec![format!("{reply:?}")],
        other => panic!("no rule of this test: {other:?}"),
    }
}

/// The request, and the answer that Java gave.
fn parsed(row: &Row<'_>) -> (Request, Reply) {
    let (request, answer, version) = (&row.request, &row.answer, row.version);
    macro_rules! pair {
        ($name:ident, $request:ty, $response:ty) => {
            (
                Request::$name(read::<$request>(request, version)),
                Reply::$name(read::<$response>(answer, version)),
            )
        };
    }
    match row.api {
        "CreateTopics" => pair!(
            CreateTopics,
            km::CreateTopicsRequest,
            km::CreateTopicsResponse
        ),
        "DeleteTopics" => pair!(
            DeleteTopics,
            km::DeleteTopicsRequest,
            km::DeleteTopicsResponse
        ),
        "CreatePartitions" => pair!(
            CreatePartitions,
            km::CreatePartitionsRequest,
            km::CreatePartitionsResponse
        ),
        "IncrementalAlterConfigs" => pair!(
            IncrementalAlterConfigs,
            km::IncrementalAlterConfigsRequest,
            km::IncrementalAlterConfigsResponse
        ),
        "AlterConfigs" => pair!(
            AlterConfigs,
            km::AlterConfigsRequest,
            km::AlterConfigsResponse
        ),
        "UpdateFeatures" => {
            pair!(
                UpdateFeatures,
                km::UpdateFeaturesRequest,
                km::UpdateFeaturesResponse
            )
        }
        other => panic!("no rule of this test: {other}"),
    }
}

/// A refusal of the whole request is told of each item.
fn refusal(error: &ApiError, java: &[String]) -> Vec<String> {
    let part = format!("error_code: {}", error.code.code());
    let told = |line: &String| {
        let message = error.message.as_deref().unwrap_or_default();
        line.contains(&part) && line.contains(message)
    };
    if java.iter().all(told) {
        java.to_vec()
    } else {
        vec![format!("{error:?}")]
    }
}

#[test]
fn every_answer_is_the_one_that_a_real_controller_gave() {
    compare(
        include_str!("../../fixtures/4.4.0/answers/admin-errors.tsv"),
        200,
    );
}

/// Each key of topics, groups and client metrics with dozens of values, and operations on lists.
#[test]
fn every_value_of_every_key_is_taken_or_refused_as_by_a_real_controller() {
    compare(
        include_str!("../../fixtures/4.4.0/answers/config-values.tsv"),
        70,
    );
}

fn compare(text: &str, least: usize) {
    let mut world = World::with_brokers(&[2]);
    let mut wrong = Vec::new();
    let rows = rows(text);
    assert!(rows.len() > least);
    // Loggers are no metadata and never come as far as here: see `server/log_levels_tests.rs`.
    for row in rows.iter().filter(|row| row.case != "broker logger") {
        let (request, java) = parsed(row);
        let java = shown(java, row.version);
        let ours = match world.run(row.version, request) {
            Ok(reply) => shown(reply, row.version),
            Err(error) => refusal(&error, &java),
        };
        if REFUSED_INSTEAD_OF_FAILING.contains(&row.case) {
            assert!(java[0].contains("error_code: -1") && ours[0].contains("error_code: 42"));
        } else if ours != java {
            let only = |these: &[String], those: &[String]| {
                let missing = these.iter().filter(|line| !those.contains(line));
                missing.cloned().collect::<Vec<_>>().join("\n    ")
            };
            wrong.push(format!(
                "{} {}\n  java {}\n  ours {}",
                row.api,
                row.case,
                only(&java, &ours),
                only(&ours, &java)
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// Rows of controllers that describe configurations: `owned` is a topic of one partition, and the
/// file sets what `format` and a start need.
#[test]
fn every_description_is_the_one_that_a_real_controller_gave() {
    let text = include_str!("../../fixtures/4.4.0/answers/broker-requests.tsv");
    let mut world = World::with_brokers(&[2]);
    for (key, value) in [("node.id", "1"), ("process.roles", "controller")] {
        world
            .settings
            .static_configs
            .insert(key.into(), value.into());
    }
    let topic = km::create_topics_request::CreatableTopic::default()
        .with_name(km::TopicName("owned".into()))
        .with_num_partitions(1)
        .with_replication_factor(1);
    let request = km::CreateTopicsRequest::default().with_topics(vec![topic]);
    world.run(7, Request::CreateTopics(request)).unwrap();
    let mut count = 0;
    for row in rows(text).iter().filter(|row| row.api == "DescribeConfigs") {
        let request: km::DescribeConfigsRequest = read(&row.request, row.version);
        let java: km::DescribeConfigsResponse = read(&row.answer, row.version);
        match describe::describe(
            &world.image,
            &world.settings,
            &Loggers::default(),
            Asker::of(&world.context),
            &request,
        ) {
            Ok(ours) => assert_eq!(described(ours), described(java), "{}", row.case),
            Err(error) => {
                let java = sorted(java.results);
                assert_eq!(refusal(&error, &java), java, "{}", row.case);
            }
        }
        count += 1;
    }
    assert!(count >= 18);
}

/// Entries by name, without documentation: kraftd sends none.
fn described(mut response: km::DescribeConfigsResponse) -> Vec<(String, Vec<String>)> {
    let mut shown = Vec::new();
    for result in &mut response.results {
        let mut configs = std::mem::take(&mut result.configs);
        for config in &mut configs {
            config.documentation = None;
        }
        shown.push((format!("{result:?}"), sorted(configs)));
    }
    shown
}
