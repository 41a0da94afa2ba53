//! The answers that a Java controller gave to brokers and replicas, asked again of a running
//! kraftd: the recorded bytes go out in the recorded order, and the answers are compared.
//!
//! What differs by nature is replaced before: broker epochs, topic ids and the port, in the
//! requests by kraftd's, in its answers by the recorded ones. Every other difference is listed in
//! [`DIFFERENCES`] with its reason, and must be one.

pub(crate) mod process;
mod shown;

use bytes::{Bytes, BytesMut};
use kafka_protocol::messages::broker_registration_request::{Feature, Listener};
use kafka_protocol::messages::{
    ApiKey, ApiVersionsResponse, BeginQuorumEpochRequest, BeginQuorumEpochResponse, BrokerId,
    BrokerRegistrationRequest, BrokerRegistrationResponse, DescribeQuorumResponse,
};
use kafka_protocol::protocol::{Decodable, Encodable, StrBytes};
use kraftd::types::features::supported_features;
use serde_json::Value;
use uuid::Uuid;

use process::{CLUSTER, Kraftd};
use shown::shown;

/// (API, cases, why the answers are others).
const DIFFERENCES: &[(&str, &[&str], &str)] = &[
    (
        "AlterPartition",
        &["recovery state unknown"],
        "Java fails and resigns; here the partition is refused with INVALID_REQUEST",
    ),
    (
        "ControllerRegistration",
        &["unknown security protocol"],
        "Java fails and resigns; here it is an INVALID_REQUEST",
    ),
    (
        "DescribeConfigs",
        &["topic, one key, documented"],
        "no key is documented",
    ),
    (
        "FetchSnapshot",
        &[
            "another topic",
            "another partition",
            "leader epoch too new",
            "leader epoch too old",
            "unknown snapshot",
            "the bootstrap snapshot",
            "position behind the end",
            "position below zero",
            "bytes below zero",
            "bytes zero",
            "no cluster id",
        ],
        "Java 4.4.0 cannot write its own refusals (their bytes are null) and answers -1",
    ),
];

struct Row {
    case: String,
    api: String,
    version: i16,
    asked: String,
    answer: String,
    request: Bytes,
    response: Bytes,
}

fn unhex(text: &str) -> Bytes {
    let digit = |byte: u8| (byte as char).to_digit(16).unwrap() as u8;
    let pairs = text.as_bytes().chunks(2);
    pairs
        .map(|pair| digit(pair[0]) << 4 | digit(pair[1]))
        .collect()
}

/// The rows of a table that have an answer. Once Java closed the connection; see
/// [`a_second_leader_of_the_epoch_is_refused_and_the_process_goes_on`].
fn rows(table: &str) -> Vec<Row> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/4.4.0/answers");
    let text = std::fs::read_to_string(format!("{folder}/{table}")).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| line.split('\t').collect::<Vec<&str>>())
        .filter(|cells| cells[4] != "closed")
        .map(|cells| Row {
            case: cells[0].to_owned(),
            api: cells[1].to_owned(),
            version: cells[2].parse().unwrap(),
            asked: cells[3].to_owned(),
            answer: cells[4].to_owned(),
            request: unhex(cells[5]),
            response: unhex(cells[6]),
        })
        .collect()
}

fn key(api: &str) -> ApiKey {
    let mut keys = (0..=100).filter_map(|key| ApiKey::try_from(key).ok());
    keys.find(|key| format!("{key:?}").trim_end_matches("Key") == api)
        .unwrap_or_else(|| panic!("unknown API {api}"))
}

/// The host that both listen on, behind its length.
const HOST: &[u8] = b"\x0alocalhost";

/// Pairs of the same thing as Java and as kraftd named it.
#[derive(Default)]
struct Names {
    /// The broker epoch that was answered last.
    epoch: Option<(i64, i64)>,
    /// The id of the topic that was created last.
    topic: Option<(Uuid, Uuid)>,
    port: (u16, u16),
}

fn replaced(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let mut all = bytes.to_vec();
    let mut at = 0;
    while let Some(found) = all[at..].windows(from.len()).position(|it| it == from) {
        all[at + found..at + found + from.len()].copy_from_slice(to);
        at += found + from.len();
    }
    all
}

impl Names {
    /// The recorded request with kraftd's names in it.
    fn to_ours(&self, row: &Row) -> Bytes {
        let mut bytes = row.request.to_vec();
        if row.asked.contains("{epoch}") {
            let (java, ours) = self.epoch.expect("an epoch was answered before");
            bytes = replaced(&bytes, &java.to_be_bytes(), &ours.to_be_bytes());
        }
        if row.asked.contains("{topic}") {
            let (java, ours) = self.topic.expect("a topic was created before");
            bytes = replaced(&bytes, java.as_bytes(), ours.as_bytes());
        }
        Bytes::from(bytes)
    }

    /// kraftd's answer with Java's names in it.
    fn to_java(&self, answer: &Bytes) -> Bytes {
        let mut bytes = answer.to_vec();
        if let Some((java, ours)) = self.topic {
            bytes = replaced(&bytes, ours.as_bytes(), java.as_bytes());
        }
        let (java, ours) = self.port;
        // Some APIs give a port two bytes, some four.
        let narrow = |port: u16| [HOST, &port.to_be_bytes()].concat();
        let wide = |port: u16| [HOST, &u32::from(port).to_be_bytes()].concat();
        bytes = replaced(&bytes, &wide(ours), &wide(java));
        Bytes::from(replaced(&bytes, &narrow(ours), &narrow(java)))
    }

    /// Learns from a pair of answers what is the same.
    fn learn(&mut self, row: &Row, ours: &Bytes) {
        let java: Value = serde_json::from_str(&row.answer).unwrap();
        if row.api == "BrokerRegistration" {
            let ours = read_registration(ours, row.version).broker_epoch;
            match java["brokerEpoch"].as_i64() {
                Some(java) if java >= 0 && ours >= 0 => {
                    let same = self.epoch.map(|(known, _)| known == java);
                    let ours_same = self.epoch.map(|(_, known)| known == ours);
                    assert_eq!(same, ours_same, "{}: a new epoch or the old one", row.case);
                    self.epoch = Some((java, ours));
                }
                _ => {}
            }
        }
        if row.api == "CreateTopics" {
            self.topic =
                shown::topic_id(&row.response, row.version).zip(shown::topic_id(ours, row.version));
        }
    }
}

fn read_registration(answer: &Bytes, version: i16) -> BrokerRegistrationResponse {
    BrokerRegistrationResponse::decode(&mut answer.clone(), version).unwrap()
}

/// Asks every row and gives the differences that are not listed.
fn replay(kraftd: &Kraftd, table: &str, java_port: u16) -> Vec<String> {
    let mut names = Names {
        port: (java_port, kraftd.port),
        ..Names::default()
    };
    let mut wrong = Vec::new();
    for row in rows(table) {
        let ours = kraftd.ask(key(&row.api), row.version, &names.to_ours(&row));
        if let Some(ours) = &ours {
            names.learn(&row, ours);
        }
        let named = ours.map(|answer| names.to_java(&answer));
        let java = shown(&row.api, row.version, Some(&row.response));
        let ours = shown(&row.api, row.version, named.as_ref());
        let listed = DIFFERENCES
            .iter()
            .any(|(api, cases, _)| *api == row.api && cases.contains(&row.case.as_str()));
        if listed && java == ours {
            wrong.push(format!(
                "{}, {}: no difference, take it off DIFFERENCES",
                row.api, row.case
            ));
        } else if !listed && java != ours {
            wrong.push(format!(
                "{}, {}\n  java {java}\n  ours {ours}",
                row.api, row.case
            ));
        }
    }
    wrong
}

fn assert_none(wrong: &[String]) {
    assert!(
        wrong.is_empty(),
        "{} differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// The port of the recorded controller.
fn recorded_port(table: &str, api: &str, before: &str) -> u16 {
    let rows = rows(table);
    let text = rows.iter().filter(|row| row.api == api);
    let port = text
        .filter_map(|row| row.answer.split_once(before))
        .find_map(|(_, rest)| {
            rest.split(|c: char| !c.is_ascii_digit())
                .next()?
                .parse()
                .ok()
        });
    port.expect("the controller was described")
}

/// The broker that ran beside the recorded controller: node 2, unfenced, one directory.
fn broker_2(kraftd: &Kraftd) {
    let feature = |(name, min, max)| {
        Feature::default()
            .with_name(StrBytes::from_static_str(name))
            .with_min_supported_version(min)
            .with_max_supported_version(max)
    };
    let listener = Listener::default()
        .with_name(StrBytes::from_static_str("PLAINTEXT"))
        .with_host(StrBytes::from_static_str("localhost"))
        .with_port(9092);
    let request = BrokerRegistrationRequest::default()
        .with_broker_id(BrokerId(2))
        .with_cluster_id(StrBytes::from_static_str(CLUSTER))
        .with_incarnation_id(Uuid::from_u128(0x2222))
        .with_listeners(vec![listener])
        .with_features(supported_features(false).into_iter().map(feature).collect())
        .with_log_dirs(vec![Uuid::from_u128(0x20_0002)])
        .with_previous_broker_epoch(-1);
    let mut body = BytesMut::new();
    request.encode(&mut body, 4).unwrap();
    let answer = kraftd.ask(ApiKey::BrokerRegistration, 4, &body).unwrap();
    let registered = read_registration(&answer, 4);
    assert_eq!(registered.error_code, 0);
    let mut heartbeat = 2_i32.to_be_bytes().to_vec();
    heartbeat.extend(registered.broker_epoch.to_be_bytes());
    heartbeat.extend(1_000_000_i64.to_be_bytes());
    // No fence, no shutdown, no tags.
    heartbeat.extend([0, 0, 0]);
    let answer = kraftd.ask(ApiKey::BrokerHeartbeat, 0, &heartbeat).unwrap();
    // No error, caught up, not fenced, no shutdown.
    assert_eq!(answer[4..].as_ref(), [0, 0, 1, 0, 0, 0]);
}

#[test]
fn brokers_are_answered_as_by_java() {
    // Nobody goes on sending heartbeats here.
    let kraftd = Kraftd::start(&["broker.session.timeout.ms=600000"]);
    let before = "\"brokerId\":1,\"host\":\"localhost\",\"port\":";
    let port = recorded_port("broker-requests.tsv", "DescribeCluster", before);
    broker_2(&kraftd);
    assert_none(&replay(&kraftd, "broker-requests.tsv", port));
}

#[test]
fn replicas_are_answered_as_by_java() {
    let kraftd = Kraftd::start(&[]);
    let before = "\"nodeEndpoints\":[{\"nodeId\":1,\"host\":\"localhost\",\"port\":";
    let port = recorded_port("raft-requests.tsv", "Vote", before);
    broker_2(&kraftd);
    assert_none(&replay(&kraftd, "raft-requests.tsv", port));
}

/// A Java controller halts when another node claims to lead its epoch. No request may end kraftd.
#[test]
fn a_second_leader_of_the_epoch_is_refused_and_the_process_goes_on() {
    let kraftd = Kraftd::start(&[]);
    let rows = rows("raft-requests.tsv");
    let of = |api: &str, case: &str| {
        let mut rows = rows.iter();
        rows.find(|row| row.api == api && row.case == case).unwrap()
    };
    let row = of("BeginQuorumEpoch", "itself");
    let mut request = BeginQuorumEpochRequest::decode(&mut row.request.clone(), 1).unwrap();
    request.topics[0].partitions[0].leader_id = BrokerId(9);
    let mut body = BytesMut::new();
    request.encode(&mut body, 1).unwrap();
    let answer = kraftd.ask(ApiKey::BeginQuorumEpoch, 1, &body).unwrap();
    let answer = BeginQuorumEpochResponse::decode(&mut answer.clone(), 1).unwrap();
    let partition = &answer.topics[0].partitions[0];
    let invalid_request = 42;
    assert_eq!(partition.error_code, invalid_request);
    assert_eq!(
        (partition.leader_id, partition.leader_epoch),
        (BrokerId(1), 1)
    );
    let row = of("DescribeQuorum", "good");
    let answer = kraftd.ask(ApiKey::DescribeQuorum, 2, &row.request).unwrap();
    let answer = DescribeQuorumResponse::decode(&mut answer.clone(), 2).unwrap();
    assert_eq!(answer.topics[0].partitions[0].leader_id, BrokerId(1));
}

/// The features were finalized by the bootstrap records, and later records change nothing.
#[test]
fn the_epoch_of_the_features_is_the_offset_at_which_they_changed_last() {
    let kraftd = Kraftd::start(&[]);
    broker_2(&kraftd);
    for row in rows("api-versions.tsv") {
        let java: Value = serde_json::from_str(&row.answer).unwrap();
        let answer = kraftd.ask(ApiKey::ApiVersions, row.version, &row.request);
        let answered = if row.version > 5 { 0 } else { row.version };
        let answer = ApiVersionsResponse::decode(&mut answer.unwrap(), answered.min(4)).unwrap();
        let epoch = java["finalizedFeaturesEpoch"].as_i64().unwrap_or(-1);
        assert_eq!(answer.finalized_features_epoch, epoch, "{}", row.case);
    }
}
