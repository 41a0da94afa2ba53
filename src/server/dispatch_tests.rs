//! Whole frames in, whole frames out: against recorded answers of a Java controller where the
//! listener answers by itself, and with a core that the test plays.

use std::path::Path;
use std::sync::Mutex;

use kafka_protocol::protocol::{Decodable, StrBytes};
use tokio::sync::oneshot;

use super::super::core::{Busy, Published};
use super::*;
use crate::image::Image;
use crate::records::Record;
use crate::records::metadata::{ControllerEndpoint, FeatureLevelRecord, RegisterControllerRecord};
use crate::server::connection::ClientInfo;
use crate::server::core::Answer;
use crate::server::frame::LENGTH_BYTES;
use crate::server::shape::tests::Writer;
use crate::types::loggers::Loggers;
use crate::types::{Epoch, NodeId, Offset, Uuid};

/// The cluster id of the recorded answers.
const CLUSTER: &str = "MkU3OEVBNTcwNTJENDM2Qg";

/// Keeps what was asked, and is busy as often as told.
pub(in crate::server) struct FakeCore {
    published: Published,
    pub(in crate::server) asked: Mutex<Vec<(Request, oneshot::Sender<Answer>)>>,
    pub(in crate::server) refusals: Mutex<usize>,
}

impl Core for FakeCore {
    fn submit(&self, request: Box<Request>) -> Result<oneshot::Receiver<Answer>, Busy> {
        let mut refusals = self.refusals.lock().unwrap();
        if *refusals > 0 {
            *refusals -= 1;
            return Err(Busy(request));
        }
        let (send, receive) = oneshot::channel();
        self.asked.lock().unwrap().push((*request, send));
        Ok(receive)
    }

    fn published(&self) -> Arc<Published> {
        Arc::new(self.published.clone())
    }
}

pub(in crate::server) fn published(image: Image) -> Published {
    Published {
        image,
        end: Offset(12),
        features_end: Offset(12),
        role: "leader",
        leader: Some(NodeId(1)),
        leader_endpoint: None,
        epoch: Epoch(1),
        kraft_version: 1,
        active: true,
    }
}

/// The port of the controller that was recorded: it differs from recording to recording.
fn recorded_port() -> u16 {
    let text = answers("broker-requests.tsv");
    let after = "\"brokerId\":1,\"host\":\"localhost\",\"port\":";
    let (_, port) = text
        .split_once(after)
        .expect("the controller was described");
    let digits = port.split(|c: char| !c.is_ascii_digit()).next();
    digits
        .and_then(|digits| digits.parse().ok())
        .expect("a port")
}

fn answers(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/4.4.0/answers");
    std::fs::read_to_string(path.join(file)).unwrap()
}

/// The image of the recorded cluster: default features of 4.4.0 and three registered controllers.
pub(in crate::server) fn recorded_image() -> Image {
    let mut records: Vec<Record> = [
        ("metadata.version", 33),
        ("group.version", 1),
        ("share.version", 2),
        ("streams.version", 1),
        ("transaction.version", 2),
        ("eligible.leader.replicas.version", 1),
    ]
    .into_iter()
    .map(|(name, feature_level)| {
        Record::FeatureLevel(FeatureLevelRecord {
            name: name.to_owned(),
            feature_level,
            ..FeatureLevelRecord::default()
        })
    })
    .collect();
    for (controller_id, port) in [(1, recorded_port()), (7, 9093)] {
        let endpoint = ControllerEndpoint {
            name: "CONTROLLER".to_owned(),
            host: "localhost".to_owned(),
            port,
            ..ControllerEndpoint::default()
        };
        records.push(Record::RegisterController(RegisterControllerRecord {
            controller_id,
            end_points: vec![endpoint],
            ..RegisterControllerRecord::default()
        }));
    }
    let mut image = Image::empty();
    for (offset, record) in (0..).zip(&records) {
        image.replay(record, Offset(offset)).unwrap();
    }
    image
}

pub(in crate::server) fn settings() -> Settings {
    let features = [
        ("group.version", (0, 1)),
        ("kraft.version", (0, 1)),
        ("metadata.version", (7, 33)),
        ("share.version", (0, 2)),
        ("streams.version", (0, 1)),
        ("transaction.version", (0, 2)),
        ("eligible.leader.replicas.version", (0, 1)),
    ];
    Settings {
        cluster_id: CLUSTER.to_owned(),
        node_id: NodeId(1),
        supported_features: features
            .into_iter()
            .map(|(name, range)| (name.to_owned(), range))
            .collect(),
        ..Settings::default()
    }
}

pub(in crate::server) struct Harness {
    pub(in crate::server) core: Arc<FakeCore>,
    pub(in crate::server) dispatch: Dispatch,
    peer: Peer,
}

pub(in crate::server) fn harness(image: Image) -> Harness {
    let core = Arc::new(FakeCore {
        published: published(image),
        asked: Mutex::new(Vec::new()),
        refusals: Mutex::new(0),
    });
    Harness {
        dispatch: Dispatch {
            core: Arc::clone(&core) as Arc<dyn Core>,
            settings: Arc::new(settings()),
            levels: LogLevels::new(Loggers::default(), Box::new(|_| {})),
            budget: Budget::new(None, 1 << 20),
        },
        core,
        peer: Peer {
            address: "127.0.0.1:5".parse().unwrap(),
            listener: Arc::from("CONTROLLER"),
            protocol: SecurityProtocol::Plaintext,
            client: ClientInfo::default(),
        },
    }
}

/// A request frame without its length.
pub(in crate::server) fn frame(key: i16, version: i16, correlation_id: i32, body: &[u8]) -> Bytes {
    let mut frame = BytesMut::new();
    frame.put_i16(key);
    frame.put_i16(version);
    frame.put_i32(correlation_id);
    frame.put_slice(&[0, 1, b'c']);
    if api_table::find(key).is_none_or(|api| api.flexible(version)) {
        frame.put_u8(0);
    }
    frame.put_slice(body);
    frame.freeze()
}

pub(in crate::server) fn encoded(message: &impl Encodable, version: i16) -> BytesMut {
    let mut body = BytesMut::new();
    message.encode(&mut body, version).unwrap();
    body
}

impl Harness {
    pub(in crate::server) fn start(&mut self, frame: Bytes) -> Result<Started, Closing> {
        self.dispatch.admit(&frame[..8])?;
        let (_, frame) = self.dispatch.weigh(frame)?;
        self.dispatch.start(&mut self.peer, frame)
    }

    pub(in crate::server) fn weight(&self, frame: &Bytes) -> Result<Weight, Closing> {
        let (weight, _) = self.dispatch.weigh(frame.clone())?;
        Ok(weight)
    }

    /// The answer of a request that needs no core, without length and header; `None` if the core
    /// was asked.
    fn answered(&mut self, key: i16, version: i16, body: &[u8]) -> Option<Bytes> {
        let started = self.start(frame(key, version, 77, body)).unwrap();
        let Started::Answer(answer) = started else {
            return None;
        };
        assert_eq!(answer[..4], (answer.len() as i32 - 4).to_be_bytes());
        assert_eq!(answer[4..8], 77_i32.to_be_bytes());
        let api = api_table::find(key).unwrap();
        let tags = usize::from(api.flexible_response(version));
        Some(answer.slice(8 + tags..))
    }

    /// What the core was asked last, to be answered.
    pub(in crate::server) fn asked(&self) -> (Request, oneshot::Sender<Answer>) {
        self.core
            .asked
            .lock()
            .unwrap()
            .pop()
            .expect("the core was asked")
    }
}

pub(in crate::server) async fn later(started: Result<Started, Closing>) -> Bytes {
    match started.unwrap() {
        Started::Later(later) => later.await.unwrap().frame,
        Started::Answer(answer) => answer,
        Started::Busy(_) => panic!("the core was not busy"),
    }
}

/// A recorded exchange.
pub(in crate::server) struct Row {
    pub(in crate::server) case: String,
    pub(in crate::server) key: i16,
    pub(in crate::server) version: i16,
    pub(in crate::server) request: Vec<u8>,
    pub(in crate::server) answer: Vec<u8>,
}

/// The recorded exchanges of a file whose API is served.
pub(in crate::server) fn recorded(file: &str) -> Vec<Row> {
    let text = answers(file);
    let hex = |text: &str| -> Vec<u8> {
        let pairs = text.as_bytes().chunks(2);
        pairs
            .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
            .collect()
    };
    let rows = text.lines().filter(|line| !line.starts_with('#'));
    let rows = rows.filter_map(|line| {
        let cells: Vec<_> = line.split('\t').collect();
        let api = api_table::TABLE.iter().find(|api| api.name == cells[1])?;
        (cells[4] != "closed").then(|| Row {
            case: format!("{}: {}", cells[1], cells[0]),
            key: api.key,
            version: cells[2].parse().unwrap(),
            request: hex(cells[5]),
            answer: hex(cells[6]),
        })
    });
    rows.collect()
}

#[test]
fn every_recorded_request_of_a_served_api_is_read() {
    let mut count = 0;
    for file in [
        "admin-errors.tsv",
        "broker-requests.tsv",
        "raft-requests.tsv",
    ] {
        for row in recorded(file) {
            let mut at = harness(recorded_image());
            let started = at.start(frame(row.key, row.version, 1, &row.request));
            assert!(started.is_ok(), "{}: {:?}", row.case, started.err());
            count += 1;
        }
    }
    assert!(count > 80, "{count} recorded requests");
}

#[test]
fn clusters_are_described_byte_for_byte_as_recorded() {
    let rows = recorded("broker-requests.tsv");
    let rows: Vec<_> = rows.iter().filter(|row| row.key == 60).collect();
    assert_eq!(rows.len(), 7);
    for row in rows {
        let mut at = harness(recorded_image());
        let answer = at.answered(row.key, row.version, &row.request).unwrap();
        assert_eq!(answer, row.answer, "{}", row.case);
    }
}

/// A Java controller answers FetchSnapshot of anything but the metadata partition with
/// UNKNOWN_SERVER_ERROR: its own answer cannot be encoded. Here it is what it means to say.
#[test]
fn misaddressed_raft_requests_are_answered_byte_for_byte_as_recorded() {
    let mut count = 0;
    for row in recorded("raft-requests.tsv") {
        let mut at = harness(recorded_image());
        let Some(answer) = at.answered(row.key, row.version, &row.request) else {
            continue;
        };
        count += 1;
        if row.key == 59 && row.answer[4..6] == [0xff, 0xff] {
            let message = m::FetchSnapshotResponse::decode(&mut answer.clone(), row.version);
            let message = message.unwrap();
            assert_eq!(
                message.topics[0].partitions[0].error_code, 3,
                "{}",
                row.case
            );
        } else {
            assert_eq!(answer, row.answer, "{}", row.case);
        }
    }
    assert!(count >= 12, "{count} recorded answers");
}

#[test]
fn api_versions_are_answered_as_recorded_for_the_apis_that_are_served() {
    let rows = recorded("api-versions.tsv");
    assert_eq!(rows.len(), 12);
    for row in rows {
        let mut at = harness(recorded_image());
        let answer = at.answered(row.key, row.version, &row.request).unwrap();
        let read = if row.version > 5 {
            0
        } else {
            row.version.min(4)
        };
        let decode = |bytes: Bytes| {
            let mut rest = bytes;
            let message = m::ApiVersionsResponse::decode(&mut rest, read).unwrap();
            assert!(rest.is_empty());
            message
        };
        let (mut ours, mut java) = (decode(answer), decode(row.answer.into()));
        java.api_keys
            .retain(|api| api_table::find(api.api_key).is_some());
        for message in [&mut ours, &mut java] {
            // Java's order is that of a hash map.
            message
                .supported_features
                .sort_by(|a, b| a.name.cmp(&b.name));
            message
                .finalized_features
                .sort_by(|a, b| a.name.cmp(&b.name));
        }
        assert_eq!(ours, java, "{}", row.case);
    }
}

#[test]
fn a_version_of_api_versions_that_nobody_knows_is_answered_byte_for_byte() {
    // Recorded from a real controller: correlation id 7, then the body of version 0.
    let mut at = harness(recorded_image());
    let Started::Answer(answer) = at.start(frame(18, 9, 7, &[1, 2, 3])).unwrap() else {
        panic!("answered at once");
    };
    let expected = [
        0, 0, 0, 16, 0, 0, 0, 7, 0, 35, 0, 0, 0, 1, 0, 18, 0, 0, 0, 5,
    ];
    assert_eq!(answer, &expected[..]);
}

#[test]
fn the_clients_software_is_remembered() {
    let mut at = harness(recorded_image());
    let request = m::ApiVersionsRequest::default()
        .with_client_software_name(StrBytes::from_static_str("kafka-java"))
        .with_client_software_version(StrBytes::from_static_str("4.4.0"));
    at.answered(18, 4, &encoded(&request, 4)).unwrap();
    assert_eq!(at.peer.client.to_string(), "client id c, kafka-java 4.4.0");
}

#[test]
fn clusters_that_register_no_controllers_are_not_described() {
    let mut image = Image::empty();
    let level = FeatureLevelRecord {
        name: "metadata.version".to_owned(),
        feature_level: 14,
        ..FeatureLevelRecord::default()
    };
    image
        .replay(&Record::FeatureLevel(level), Offset(0))
        .unwrap();
    for image in [Image::empty(), image] {
        let mut at = harness(image);
        let mut answer = at.answered(60, 1, &[0, 2, 0]).unwrap();
        let message = m::DescribeClusterResponse::decode(&mut answer, 1).unwrap();
        assert_eq!(message.error_code, 35);
        assert!(message.error_message.unwrap().contains("not supported"));
    }
}

/// Clients give up for good on UNSUPPORTED_VERSION, and a start must not cost them that.
#[test]
fn a_cluster_of_which_nothing_is_known_yet_is_not_described_in_a_way_that_ends_clients() {
    let at = harness(Image::empty());
    let published = Published::nothing();
    let request = m::DescribeClusterRequest::default().with_endpoint_type(2);
    let settings = &at.dispatch.settings;
    let ctx = Ctx {
        version: 1,
        cluster_id: &settings.cluster_id,
        listener: &at.peer.listener,
        client_id: None,
        principal: &Principal::default(),
        address: at.peer.address.ip(),
        protocol: SecurityProtocol::Plaintext,
        forwarded: false,
        key: 60,
        request: "DescribeCluster",
    };
    let refused = describe_cluster::answer(&request, &ctx, settings, &published);
    assert_eq!(refused.unwrap_err().code, ErrorCode::LeaderNotAvailable);
}

#[test]
fn unknown_apis_and_versions_end_the_connection() {
    let mut at = harness(recorded_image());
    for (key, version, name) in [
        (999, 0, "unknown API 999"),
        (3, 12, "unknown API 3"),
        (19, 99, "unknown API 19"),
        (20, 0, "version 0 of DeleteTopics"),
        (20, 7, "version 7 of DeleteTopics"),
    ] {
        if api_table::find(19).is_some() && key == 19 {
            continue;
        }
        let closing = at.start(frame(key, version, 1, &[])).err();
        assert!(
            matches!(&closing, Some(Closing::Garbage(why)) if why.contains(name)),
            "{closing:?}"
        );
    }
}

#[test]
fn a_body_of_another_shape_ends_the_connection() {
    let mut at = harness(recorded_image());
    let body = [0xff, 0xff, 0xff, 0xff, 0x0f, 0, 0, 0, 0];
    let closing = at.start(frame(20, 6, 1, &body)).err();
    assert!(
        matches!(&closing, Some(Closing::Garbage(why)) if why.contains("DeleteTopics v6")),
        "{closing:?}"
    );
    assert!(at.core.asked.lock().unwrap().is_empty());
}

pub(in crate::server) fn delete(names: &[&'static str]) -> m::DeleteTopicsRequest {
    let names = names
        .iter()
        .map(|name| StrBytes::from_static_str(name).into());
    m::DeleteTopicsRequest::default().with_topic_names(names.collect())
}

#[tokio::test]
async fn a_refusal_names_every_item() {
    let mut at = harness(recorded_image());
    let started = at.start(frame(20, 5, 9, &encoded(&delete(&["a", "b"]), 5)));
    let (request, reply) = at.asked();
    let Request::Controller {
        version, context, ..
    } = request
    else {
        panic!("for the controller");
    };
    assert_eq!((version, context.forwarded), (5, false));
    assert_eq!(context.principal.to_string(), "User:ANONYMOUS");
    assert_eq!(context.client_id, "c");
    let error = ApiError::new(ErrorCode::NotController, "elsewhere");
    reply.send(Answer::Controller(Err(error))).unwrap();
    let answer = later(started).await;
    let mut body = answer.slice(LENGTH_BYTES + 5..);
    let message = m::DeleteTopicsResponse::decode(&mut body, 5).unwrap();
    let told: Vec<_> = message
        .responses
        .iter()
        .map(|result| (result.name.as_ref().unwrap().as_str(), result.error_code))
        .collect();
    assert_eq!(told, [("a", 41), ("b", 41)]);
}

#[tokio::test]
async fn an_answer_is_encoded_at_the_version_asked() {
    let mut at = harness(recorded_image());
    for version in 1..=6 {
        let mut request = delete(&[]);
        if version == 6 {
            let topic = m::delete_topics_request::DeleteTopicState::default();
            request.topics = vec![topic.with_topic_id(Uuid::from_u128(7)).with_name(None)];
        }
        let started = at.start(frame(20, version, 9, &encoded(&request, version)));
        let (_, reply) = at.asked();
        let answer = controller::Reply::DeleteTopics(m::DeleteTopicsResponse::default());
        reply.send(Answer::Controller(Ok(answer))).unwrap();
        let answer = later(started).await;
        let tags = usize::from(version >= 4);
        let mut body = answer.slice(LENGTH_BYTES + 4 + tags..);
        let message = m::DeleteTopicsResponse::decode(&mut body, version).unwrap();
        assert!(message.responses.is_empty() && body.is_empty());
    }
}

#[tokio::test]
async fn a_core_that_ends_closes_the_connection() {
    let mut at = harness(recorded_image());
    let started = at.start(frame(20, 5, 9, &encoded(&delete(&["a"]), 5)));
    drop(at.asked());
    let Started::Later(later) = started.unwrap() else {
        panic!("the core works on it");
    };
    assert!(matches!(later.await, Err(Closing::Quiet(_))));
}

#[tokio::test]
async fn a_core_that_stays_busy_refuses_with_a_time_out() {
    let mut at = harness(recorded_image());
    *at.core.refusals.lock().unwrap() = 3;
    let started = at.start(frame(20, 5, 9, &encoded(&delete(&["a"]), 5)));
    let Started::Busy(mut retry) = started.unwrap() else {
        panic!("the core was busy");
    };
    assert!(retry(false).is_none());
    let answer = retry(true).expect("gave up").await.unwrap();
    let mut body = answer.frame.slice(LENGTH_BYTES + 5..);
    let message = m::DeleteTopicsResponse::decode(&mut body, 5).unwrap();
    assert_eq!(message.responses[0].error_code, 7);
}

#[test]
fn every_api_is_read_and_refused_at_every_version() {
    for api in api_table::TABLE {
        for version in api.min..=api.max {
            for seed in 0..20 {
                let body = Bytes::from(Writer::body(api.shape, version, seed));
                let mut at = harness(recorded_image());
                let started = at.start(frame(api.key, version, 1, &body));
                // As Java's, entries whose types are no types end the connection.
                let may_be_garbage = [29, 30, 31].contains(&api.key);
                assert!(
                    may_be_garbage || started.is_ok(),
                    "{} v{version} {body:?}",
                    api.name
                );
                let error = ApiError::new(ErrorCode::RequestTimedOut, "later");
                let body = api.checked(&body, version).unwrap().unwrap();
                let refusal = (api.refuse)(body, version, &error);
                assert!(refusal.is_ok(), "{} v{version}", api.name);
            }
        }
    }
}
