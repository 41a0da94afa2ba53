//! DescribeQuorum, asked of one controller: cheap enough to be polled.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use kafka_protocol::messages::describe_quorum_request::{PartitionData, TopicData};
use kafka_protocol::messages::describe_quorum_response::ReplicaState;
use kafka_protocol::messages::{
    ApiKey, DescribeQuorumRequest, DescribeQuorumResponse, RequestHeader, ResponseHeader, TopicName,
};
use kafka_protocol::protocol::{Decodable, Encodable, StrBytes};

/// An answer on the same machine, however busy; a process that stands still gives none.
const PATIENCE: Duration = Duration::from_millis(800);
const VERSION: i16 = 1;

/// What a leader says of its quorum.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct View {
    pub(crate) leader: i32,
    pub(crate) epoch: i32,
    /// -1 while it does not know it.
    pub(crate) high_watermark: i64,
    /// Log ends by node; -1 while it does not know one.
    pub(crate) voters: Vec<(i32, i64)>,
    pub(crate) observers: Vec<(i32, i64)>,
}

/// What the node on this port says; none when it does not answer or does not lead.
pub(crate) fn describe_quorum(port: u16) -> Option<View> {
    let body = exchange(port).ok()?;
    let mut body = Bytes::from(body);
    ResponseHeader::decode(&mut body, 1).ok()?;
    let answer = DescribeQuorumResponse::decode(&mut body, VERSION).ok()?;
    assert!(!body.has_remaining(), "an answer of the right length");
    let partition = answer.topics.first()?.partitions.first()?;
    if answer.error_code != 0 || partition.error_code != 0 {
        return None;
    }
    let ends = |replicas: &[ReplicaState]| {
        let ends = replicas.iter();
        ends.map(|it| (it.replica_id.0, it.log_end_offset))
            .collect()
    };
    Some(View {
        leader: partition.leader_id.0,
        epoch: partition.leader_epoch,
        high_watermark: partition.high_watermark,
        voters: ends(&partition.current_voters),
        observers: ends(&partition.observers),
    })
}

fn exchange(port: u16) -> io::Result<Vec<u8>> {
    let header = RequestHeader::default()
        .with_request_api_key(ApiKey::DescribeQuorum as i16)
        .with_request_api_version(VERSION)
        .with_correlation_id(1)
        .with_client_id(Some(StrBytes::from_static_str("compat")));
    let topic = TopicData::default()
        .with_topic_name(TopicName(StrBytes::from_static_str("__cluster_metadata")))
        .with_partitions(vec![PartitionData::default()]);
    let mut frame = BytesMut::new();
    frame.put_i32(0);
    header.encode(&mut frame, 2).expect("a valid header");
    let request = DescribeQuorumRequest::default().with_topics(vec![topic]);
    request.encode(&mut frame, VERSION).expect("a valid body");
    let length = i32::try_from(frame.len() - 4).expect("short");
    frame[..4].copy_from_slice(&length.to_be_bytes());

    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(&frame)?;
    let mut head = [0; 4];
    stream.read_exact(&mut head)?;
    let length = usize::try_from(i32::from_be_bytes(head)).unwrap_or(usize::MAX);
    if length > 1 << 20 {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    Ok(body)
}
