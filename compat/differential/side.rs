//! One controller of the two: its process, one connection to it, and its metadata log.

use std::collections::BTreeSet;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_protocol::messages::{
    ApiVersionsRequest, ApiVersionsResponse, FetchRequest, FetchResponse, RequestHeader,
    ResponseHeader,
};
use kafka_protocol::protocol::{Decodable, Encodable, StrBytes};
use kraftd::records::VersionedRecord;
use kraftd::records::batch::Batch;
use kraftd::types::Offset;
use uuid::Uuid;

use super::asks::headers;
use crate::harness::{Controller, Kind, Setup, until};

/// However busy the machine is, an answer comes within this time.
const PATIENCE: Duration = Duration::from_secs(60);
/// No answer of a controller is larger.
const FRAME_BYTES_MAX: usize = 64 << 20;
const API_VERSIONS_KEY: i16 = 18;
const API_VERSIONS_VERSION: i16 = 3;
const FETCH_KEY: i16 = 1;
const FETCH_VERSION: i16 = 17;
/// In the line before an exception that makes a Java controller resign.
const FAULT: &str = "Encountered quorum controller fault";
const FAULT_LINES: usize = 8;
/// NOT_LEADER_OR_FOLLOWER, FENCED_LEADER_EPOCH and UNKNOWN_LEADER_EPOCH.
const NOT_LEADING: [i16; 3] = [6, 74, 76];
const METADATA_TOPIC: Uuid = Uuid::from_u128(1);

/// A record of the log with its place.
#[derive(Debug, Clone)]
pub(crate) struct Logged {
    pub(crate) offset: Offset,
    pub(crate) record: VersionedRecord,
}

/// See the module.
pub(crate) struct Side {
    pub(crate) setup: Setup,
    controller: Controller,
    is_java: bool,
    stream: Option<TcpStream>,
    correlation: i32,
    /// Where the next record of the log will be, and the epoch of the one before it.
    next: i64,
    epoch: i32,
    /// The epoch of the only voter.
    leader_epoch: i32,
    /// It has resigned since somebody looked last.
    pub(crate) lost_leadership: bool,
}

impl Side {
    /// Formats a new directory and starts a controller on it.
    pub(crate) fn start(kind: Kind, lines: &[String], format: &[&str]) -> Self {
        let mut setup = Setup::new();
        for line in lines {
            setup.add_controller_line(line);
        }
        setup.format(kind, format);
        let controller = setup.start_controller(kind);
        Self {
            setup,
            controller,
            is_java: matches!(kind, Kind::Java(_)),
            stream: None,
            correlation: 0,
            next: 0,
            epoch: 0,
            leader_epoch: 1,
            lost_leadership: false,
        }
    }

    fn stream(&mut self) -> io::Result<&mut TcpStream> {
        if self.stream.is_none() {
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, self.setup.controller_port));
            let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.set_nodelay(true)?;
            self.stream = Some(stream);
        }
        Ok(self.stream.as_mut().expect("it was just made"))
    }

    /// Sends one request: a header of the right version in front of this body.
    pub(crate) fn send(&mut self, key: i16, version: i16, body: &[u8]) -> io::Result<()> {
        self.correlation += 1;
        let frame = request(key, version, self.correlation, body);
        let length = i32::try_from(frame.len()).expect("requests are short");
        let stream = self.stream()?;
        stream.write_all(&length.to_be_bytes())?;
        stream.write_all(&frame)
    }

    /// The body of the answer to what was sent last; none when the connection was closed instead.
    pub(crate) fn receive(&mut self, key: i16, version: i16) -> io::Result<Option<Bytes>> {
        let correlation = self.correlation;
        let frame = match read_frame(self.stream()?) {
            Err(e) if closed(e.kind()) => {
                self.stream = None;
                return Ok(None);
            }
            Err(e) => {
                // What comes late would be taken for the answer to the next request.
                self.stream = None;
                return Err(e);
            }
            Ok(frame) => frame,
        };
        let mut body = Bytes::from(frame);
        let header = ResponseHeader::decode(&mut body, headers(key, version).1);
        let header = header.map_err(io::Error::other)?;
        if header.correlation_id != correlation {
            return Err(io::Error::other("the answer to another request"));
        }
        Ok(Some(body))
    }

    /// The answer to what nobody refuses. None when Java's controller has closed the connection: it
    /// does that now and then behind some 13,000 requests, without a word in its log. kraftd must
    /// not.
    fn ask(&mut self, key: i16, version: i16, body: &[u8]) -> Option<Bytes> {
        self.send(key, version, body).expect("it can be asked");
        let answer = self.receive(key, version).expect("an answer");
        assert!(answer.is_some() || self.is_java, "the connection stays");
        answer
    }

    /// The numbers of the APIs that it says to serve.
    pub(crate) fn apis(&mut self) -> BTreeSet<i16> {
        let request = ApiVersionsRequest::default()
            .with_client_software_name(StrBytes::from_static_str("differential"))
            .with_client_software_version(StrBytes::from_static_str("1"));
        let mut body = BytesMut::new();
        request
            .encode(&mut body, API_VERSIONS_VERSION)
            .expect("valid");
        let answer = self.ask(API_VERSIONS_KEY, API_VERSIONS_VERSION, &body);
        let mut answer = answer.expect("the connection stays");
        let answer = ApiVersionsResponse::decode(&mut answer, API_VERSIONS_VERSION);
        let served = answer.expect("an answer").api_keys;
        served.iter().map(|api| api.api_key).collect()
    }

    /// What it last said of a fault that a Java controller resigned over: the exception and where
    /// it comes from. Nothing when it said nothing of the kind.
    pub(crate) fn fault(&self) -> String {
        let lines = self.controller.server.lines_from(FAULT, FAULT_LINES);
        let lines = lines.iter().map(|line| format!("\n      {line}"));
        lines.collect()
    }

    /// What the log got since the last call, as an observer sees it.
    pub(crate) fn new_records(&mut self) -> Vec<Logged> {
        let mut records = Vec::new();
        until("the end of the log", PATIENCE, || match self.fetch() {
            Some((batches, high_watermark)) => {
                for batch in batches {
                    batch.verify_crc().expect("a sound batch");
                    self.next = batch.end_offset().0;
                    self.epoch = batch.epoch().0;
                    if !batch.is_control() {
                        records.extend(logged(&batch));
                    }
                }
                self.next >= high_watermark
            }
            None => false,
        });
        records
    }

    /// None when it does not lead, or not in the epoch that was known (it is known now), or when
    /// Java has closed the connection.
    fn fetch(&mut self) -> Option<(Vec<Batch>, i64)> {
        let partition = FetchPartition::default()
            .with_current_leader_epoch(self.leader_epoch)
            .with_fetch_offset(self.next)
            .with_last_fetched_epoch(self.epoch)
            .with_partition_max_bytes(8 << 20);
        let topic = FetchTopic::default()
            .with_topic_id(METADATA_TOPIC)
            .with_partitions(vec![partition]);
        let request = FetchRequest::default()
            .with_max_wait_ms(0)
            .with_max_bytes(8 << 20)
            .with_topics(vec![topic]);
        let mut body = BytesMut::new();
        request.encode(&mut body, FETCH_VERSION).expect("valid");
        let mut answer = self.ask(FETCH_KEY, FETCH_VERSION, &body)?;
        let answer = FetchResponse::decode(&mut answer, FETCH_VERSION).expect("an answer");
        let partition = &answer.responses.first().expect("the topic").partitions[0];
        if NOT_LEADING.contains(&partition.error_code) {
            self.lost_leadership = true;
            self.leader_epoch = partition.current_leader.leader_epoch;
            return None;
        }
        let code = (answer.error_code, partition.error_code);
        assert_eq!(code, (0, 0), "the log at {} can be read", self.next);
        let mut bytes = partition.records.clone().unwrap_or_default();
        let mut batches = Vec::new();
        while let Some(batch) = Batch::take_from(&mut bytes).expect("whole batches") {
            batches.push(batch);
        }
        assert!(!bytes.has_remaining(), "whole batches");
        Some((batches, partition.high_watermark))
    }
}

fn logged(batch: &Batch) -> Vec<Logged> {
    let records = batch.records().map(|record| {
        let record = record.expect("a sound batch");
        let value = record.value.expect("metadata records have values");
        Logged {
            offset: record.offset,
            record: VersionedRecord::decode(&value).expect("a record of this release"),
        }
    });
    records.collect()
}

/// A whole request without its length.
pub(crate) fn request(key: i16, version: i16, correlation: i32, body: &[u8]) -> BytesMut {
    let header = RequestHeader::default()
        .with_request_api_key(key)
        .with_request_api_version(version)
        .with_correlation_id(correlation)
        .with_client_id(Some(StrBytes::from_static_str("differential")));
    let mut frame = BytesMut::new();
    header
        .encode(&mut frame, headers(key, version).0)
        .expect("a valid header");
    frame.put_slice(body);
    frame
}

fn read_frame(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut head = [0; 4];
    stream.read_exact(&mut head)?;
    let length = usize::try_from(i32::from_be_bytes(head)).unwrap_or(usize::MAX);
    if length > FRAME_BYTES_MAX {
        return Err(io::Error::other("an answer that is too large"));
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    Ok(body)
}

const fn closed(kind: io::ErrorKind) -> bool {
    matches!(
        kind,
        io::ErrorKind::UnexpectedEof
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::BrokenPipe
    )
}
