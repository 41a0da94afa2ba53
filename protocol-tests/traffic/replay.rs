//! One kraftd that is told what a Java controller was told.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use kafka_protocol::messages as m;
use kafka_protocol::messages::ApiKey;
use kafka_protocol::messages::{EnvelopeRequest, EnvelopeResponse, RequestHeader};
use kafka_protocol::protocol::{Decodable, Encodable};
use kraftd::records::rpc::{BrokerHeartbeatRequest, Message};

use super::log::Log;
use super::names::Names;
use super::recording::{Frame, RELEASES, frames};
use super::shown::shown;
use super::{DIFFERENCES, LEFT_OUT};
use crate::answers::process::Kraftd;

/// A broker that stops and starts again is a double until the session of its old process has ended,
/// here as with Java: the replay waits for that, and meanwhile the others go on.
const SESSION_MS: u32 = 6000;
/// DUPLICATE_BROKER_REGISTRATION.
const DUPLICATE: i16 = 101;

/// How long an answer may take on a machine that is busy with other tests.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Replay {
    release: String,
    kraftd: Kraftd,
    /// A connection for each recorded one.
    connections: BTreeMap<u32, TcpStream>,
    /// Java's answers by the line of their request.
    answers: BTreeMap<usize, Frame>,
    names: Names,
    /// Java's whole log, as its brokers fetched it.
    java: Log,
    /// kraftd's log, as far as it was read.
    ours: Log,
    /// Where kraftd's last answer to a poll said that what is committed ends.
    committed: i64,
    /// The last heartbeat of each broker: the frame, its header, and the body as it went out.
    beats: BTreeMap<i32, (Frame, Bytes, Bytes)>,
    /// So many of Java's records were written for certain by what was replayed so far.
    told: usize,
    /// The (API, release) of [`DIFFERENCES`] that were met.
    met: BTreeSet<String>,
    /// The APIs that were asked, those inside envelopes too.
    pub(crate) answered: BTreeSet<String>,
}

/// A request as it goes out, and what reads its answer.
struct Asked {
    api: ApiKey,
    version: i16,
    body: Bytes,
}

impl Replay {
    pub(crate) fn start(release: &str, metadata_version: &str) -> Self {
        let more = [format!("broker.session.timeout.ms={SESSION_MS}")];
        let more: Vec<&str> = more.iter().map(String::as_str).collect();
        let kraftd = Kraftd::start_as(&["-r", metadata_version], &more);
        let all = frames(release, "broker");
        let mut java = Log::default();
        let mut answers = BTreeMap::new();
        for (frame, request) in &all {
            let Some(request) = request.map(|at| &all[at].0) else {
                continue;
            };
            answers.insert(request.line, frame.clone());
            if frame.api == "Fetch" {
                let mut body = frame.bytes.slice(5..);
                let answer = m::FetchResponse::decode(&mut body, frame.version).unwrap();
                let records = answer.responses[0].partitions[0].records.clone();
                // After the controller cleaned its log, a new broker begins at a snapshot.
                let records = records.unwrap_or_default();
                if base_offset(&records).is_none_or(|offset| offset <= java.end) {
                    java.append(records);
                }
            }
        }
        let mut replay = Self {
            release: release.to_owned(),
            kraftd,
            connections: BTreeMap::new(),
            answers,
            names: Names::default(),
            java,
            ours: Log::default(),
            committed: 0,
            beats: BTreeMap::new(),
            told: 0,
            met: BTreeSet::new(),
            answered: BTreeSet::new(),
        };
        // The first records tell which features are in force: nobody asks before they count.
        while replay.committed < 3 || replay.committed < replay.ours.end {
            replay.poll(200);
        }
        replay
    }

    /// Sends a recorded request and compares the answer with the recorded one.
    pub(crate) fn request(&mut self, frame: &Frame, wrong: &mut Vec<String>) {
        let place = format!("line {} ({}): {}", frame.line, frame.step, frame.api);
        let discovers = frame.api == "Fetch" && is_discovery(frame);
        if LEFT_OUT.iter().any(|(api, _)| *api == frame.api) && !discovers {
            return;
        }
        let Some(answer) = self.answers.get(&frame.line).cloned() else {
            return;
        };
        let asked = asked(frame);
        let named = self.renamed(&asked);
        let header = frame.bytes.slice(..frame.bytes.len() - asked.body.len());
        let mut ours = self.exchange(frame, &header, &named);
        let java = answer_body(frame, answer.bytes);
        while asked.api == ApiKey::BrokerRegistration
            && registration_error(&java, asked.version) == 0
            && registration_error(&ours, asked.version) == DUPLICATE
        {
            self.pass_time();
            ours = self.exchange(frame, &header, &named);
        }
        if asked.api == ApiKey::BrokerHeartbeat {
            let broker = BrokerHeartbeatRequest::decode(&named, asked.version).unwrap();
            let beat = (frame.clone(), header, named);
            self.beats.insert(broker.broker_id, beat);
        }
        self.names.learn(asked.api, asked.version, &java, &ours);
        self.answered.insert(format!("{:?}", asked.api));
        self.compare(&place, asked.api, asked.version, &java, &ours, wrong);
        if asked.api == ApiKey::Envelope {
            self.inner(&place, &asked.body, java, ours, wrong);
        }
    }

    /// Compares the answers inside two envelopes.
    fn inner(
        &mut self,
        place: &str,
        request: &Bytes,
        java: Bytes,
        ours: Bytes,
        wrong: &mut Vec<String>,
    ) {
        let data = |mut body: Bytes| {
            EnvelopeResponse::decode(&mut body, 0)
                .unwrap()
                .response_data
        };
        let (Some(java), Some(ours)) = (data(java), data(ours)) else {
            return;
        };
        let inner = EnvelopeRequest::decode(&mut request.clone(), 0).unwrap();
        let asked = asked_in(&inner.request_data);
        let body = |answer: Bytes| {
            let tags = asked.api.response_header_version(asked.version);
            answer.slice(4 + tags as usize..)
        };
        let (java, ours) = (body(java), body(ours));
        self.names.learn(asked.api, asked.version, &java, &ours);
        self.answered.insert(format!("{:?}", asked.api));
        let place = format!("{place} of {:?}", asked.api);
        self.compare(&place, asked.api, asked.version, &java, &ours, wrong);
    }

    fn compare(
        &mut self,
        place: &str,
        api: ApiKey,
        version: i16,
        java: &Bytes,
        ours: &Bytes,
        wrong: &mut Vec<String>,
    ) {
        let name = format!("{api:?}");
        let ours = self.names.to_java(ours);
        let newest = RELEASES.last() == Some(&&*self.release);
        let java = shown(api, version, java, newest);
        let ours = shown(api, version, &ours, newest);
        if java == ours {
            return;
        }
        let listed = DIFFERENCES
            .iter()
            .any(|(api, releases, _)| *api == name && releases.contains(&&*self.release));
        if listed {
            self.met.insert(name);
        } else {
            wrong.push(format!("{place}\n  java {java}\n  ours {ours}"));
        }
    }

    /// The body of a request with kraftd's names in it.
    fn renamed(&mut self, asked: &Asked) -> Bytes {
        if asked.api == ApiKey::BrokerHeartbeat {
            let mut request = BrokerHeartbeatRequest::decode(&asked.body, asked.version).unwrap();
            self.follow();
            request.broker_epoch = self.names.epoch(request.broker_epoch);
            request.current_metadata_offset = self.offset(request.current_metadata_offset);
            let mut body = Vec::new();
            request.encode(&mut body, asked.version).unwrap();
            return Bytes::from(body);
        }
        self.names.to_ours(asked.api, asked.version, &asked.body)
    }

    /// The offset in kraftd's log of the record that is at `java` in Java's, or the last before.
    /// A record that kraftd has not written is found when the logs are compared.
    fn offset(&mut self, java: i64) -> i64 {
        let count = self.java.count_up_to(java);
        self.told = self.told.max(count);
        let found = self.ours.records.iter().take(count).next_back();
        found.map_or(0, |entry| entry.offset)
    }

    /// Waits a moment, while the brokers that run say so. The polls of the log wait for news.
    fn pass_time(&mut self) {
        for (frame, header, body) in self.beats.clone().into_values() {
            let request = BrokerHeartbeatRequest::decode(&body, frame.version).unwrap();
            if !request.want_shut_down {
                self.exchange(&frame, &header, &body);
            }
        }
        self.poll(200);
    }

    /// Reads kraftd's log on to its end.
    fn follow(&mut self) {
        while self.poll(0) {}
    }

    /// Fetches once behind the end of what was read, and gives whether there was something.
    fn poll(&mut self, wait_ms: i32) -> bool {
        let before = self.ours.end;
        let request = fetch_request(before).with_max_wait_ms(wait_ms);
        let mut body = BytesMut::new();
        request.encode(&mut body, 17).unwrap();
        let mut answer = self.kraftd.ask(ApiKey::Fetch, 17, &body).unwrap();
        let answer = m::FetchResponse::decode(&mut answer, 17).unwrap();
        let partition = &answer.responses[0].partitions[0];
        assert_eq!(partition.error_code, 0);
        self.committed = partition.high_watermark;
        let records = partition.records.clone();
        self.ours.append(records.unwrap_or_default());
        self.ours.end > before
    }

    /// What is different in the two logs.
    pub(crate) fn log_differences(&mut self) -> Vec<String> {
        self.follow();
        let mut wrong: Vec<String> = DIFFERENCES
            .iter()
            .filter(|(api, releases, _)| {
                releases.contains(&&*self.release) && !self.met.contains(*api)
            })
            .map(|(api, _, _)| format!("{api} does not differ: take it off DIFFERENCES"))
            .collect();
        let java = self.java.named(|_| {});
        let ours = self.ours.named(|record| self.names.rename(record));
        for (java, ours) in java.iter().zip(&ours) {
            for (at, (java, ours)) in java.iter().zip(ours).enumerate() {
                if java != ours {
                    wrong.push(format!("record {at}\n  java {java}\n  ours {ours}"));
                }
            }
            let more = ours.iter().skip(java.len());
            wrong.extend(more.map(|record| format!("a record of ours alone: {record}")));
        }
        if self.ours.records.len() < self.told {
            let (ours, told) = (self.ours.records.len(), self.told);
            wrong.push(format!(
                "{ours} records of ours, and Java had {told} by then"
            ));
        }
        assert!(self.ours.records.len() > 40, "{}", self.ours.records.len());
        wrong
    }

    /// Sends a frame on the connection that stands for the recorded one; gives the answer's body.
    fn exchange(&mut self, frame: &Frame, header: &[u8], body: &[u8]) -> Bytes {
        let port = self.kraftd.port;
        let stream = self.connections.entry(frame.connection).or_insert_with(|| {
            let stream = TcpStream::connect(("localhost", port)).unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            stream
        });
        let mut bytes = BytesMut::new();
        bytes.put_i32(i32::try_from(header.len() + body.len()).unwrap());
        bytes.put_slice(header);
        bytes.put_slice(body);
        stream.write_all(&bytes).unwrap();
        let mut length = [0; 4];
        if let Err(error) = stream.read_exact(&mut length) {
            panic!(
                "line {}: {} is not answered: {error}",
                frame.line, frame.api
            );
        }
        let mut answer = vec![0; u32::from_be_bytes(length) as usize];
        stream.read_exact(&mut answer).unwrap();
        answer_body(frame, Bytes::from(answer))
    }
}

fn registration_error(answer: &Bytes, version: i16) -> i16 {
    let answer = m::BrokerRegistrationResponse::decode(&mut answer.clone(), version);
    answer.unwrap().error_code
}

fn base_offset(records: &[u8]) -> Option<i64> {
    records
        .first_chunk::<8>()
        .map(|bytes| i64::from_be_bytes(*bytes))
}

/// A poll at the start of a log, by a broker that does not know the epoch yet.
fn is_discovery(frame: &Frame) -> bool {
    let asked = asked(frame);
    let request = m::FetchRequest::decode(&mut asked.body.clone(), asked.version).unwrap();
    request.topics[0].partitions[0].current_leader_epoch == 0
}

fn asked(frame: &Frame) -> Asked {
    asked_in(&frame.bytes)
}

/// A request with its header.
fn asked_in(bytes: &Bytes) -> Asked {
    let mut body = bytes.clone();
    let api = ApiKey::try_from(i16::from_be_bytes([body[0], body[1]])).unwrap();
    let version = i16::from_be_bytes([body[2], body[3]]);
    RequestHeader::decode(&mut body, header_version(api, version)).unwrap();
    Asked { api, version, body }
}

fn header_version(api: ApiKey, version: i16) -> i16 {
    api.request_header_version(version.min(api.valid_versions().max))
}

fn answer_body(request: &Frame, mut answer: Bytes) -> Bytes {
    assert_eq!(answer.get_i32(), request.correlation);
    let api = asked(request).api;
    let flexible = header_version(api, request.version) == 2;
    if flexible && api != ApiKey::ApiVersions {
        assert_eq!(answer.get_u8(), 0, "tags of the header");
    }
    answer
}

fn fetch_request(offset: i64) -> m::FetchRequest {
    use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic, ReplicaState};

    let partition = FetchPartition::default()
        .with_current_leader_epoch(1)
        .with_fetch_offset(offset)
        .with_last_fetched_epoch(if offset == 0 { 0 } else { 1 })
        .with_replica_directory_id(uuid::Uuid::from_u128(99));
    let topic = FetchTopic::default()
        .with_topic_id(kraftd::types::ids::METADATA_TOPIC_ID)
        .with_partitions(vec![partition]);
    m::FetchRequest::default()
        .with_replica_state(ReplicaState::default().with_replica_id(m::BrokerId(99)))
        .with_max_bytes(1 << 20)
        .with_topics(vec![topic])
}
