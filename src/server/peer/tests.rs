//! Connections against a listener that plays the other node.

use std::net::SocketAddr;

use bytes::{BufMut, Bytes, BytesMut};
use kafka_protocol::messages as m;
use kafka_protocol::protocol::Encodable;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::timeout;

use super::*;
use crate::node::PeerAnswer;
use crate::raft::{self, Request, Response};
use crate::server::frame::HeaderStart;
use crate::types::{Epoch, ErrorCode, Offset, ReplicaKey, Uuid};

mod faults;
mod keeping;
mod registering;
mod versions;

/// Nothing here takes this long unless it never comes.
const PATIENCE: Duration = Duration::from_secs(20);

/// Waits for what must come.
async fn soon<T>(future: impl Future<Output = T>) -> T {
    timeout(PATIENCE, future).await.expect("it never came")
}

/// The node under test, with what it tells the core.
struct Client {
    peers: Peers,
    events: UnboundedReceiver<Event>,
}

impl Client {
    fn new(settings: PeerSettings, resolve: Resolve) -> Self {
        let (tell, events) = unbounded_channel();
        let tell = move |event| drop(tell.send(event));
        let peers = Peers::with_resolver(settings, Handle::current(), tell, resolve);
        Self { peers, events }
    }

    fn ask(&self, call: u64, to: &Peer, ask: Ask) {
        self.peers.send(CallId(call), to, ask);
    }

    async fn event(&mut self) -> Event {
        soon(self.events.recv()).await.expect("the peers are there")
    }

    async fn found(&mut self) -> (NodeId, bool) {
        match self.event().await {
            Event::PeerFound { peer, pre_vote } => (peer, pre_vote),
            other => panic!("{other:?}"),
        }
    }

    async fn lost(&mut self) -> NodeId {
        match self.event().await {
            Event::PeerLost { peer } => peer,
            other => panic!("{other:?}"),
        }
    }

    async fn answer(&mut self) -> (u64, Result<PeerAnswer, CallFault>) {
        match self.event().await {
            Event::Answered { call, outcome } => (call.0, outcome),
            other => panic!("{other:?}"),
        }
    }

    async fn fault(&mut self, call: u64) -> CallFault {
        let (told, outcome) = self.answer().await;
        assert_eq!(told, call);
        outcome.expect_err("there is no answer")
    }

    /// Everything that was told up to now is known to the test.
    fn assert_quiet(&mut self) {
        if let Ok(event) = self.events.try_recv() {
            panic!("{event:?}");
        }
    }
}

fn settings() -> PeerSettings {
    PeerSettings {
        node_id: NodeId(1),
        own: vec![("self.example".to_owned(), 9093)],
        request_timeout: PATIENCE,
        idle_max: None,
    }
}

fn impatient() -> PeerSettings {
    PeerSettings {
        request_timeout: Duration::from_millis(60),
        ..settings()
    }
}

fn client() -> Client {
    Client::new(settings(), dial::system())
}

const TWO: PeerName = PeerName::Node(NodeId(2));

fn peer_at(host: &str, port: u16) -> Peer {
    Peer {
        name: TWO,
        host: host.to_owned(),
        port,
    }
}

fn vote(pre_vote: bool) -> Ask {
    let key = |id| ReplicaKey {
        id: NodeId(id),
        directory: Uuid::from_u128(7),
    };
    Ask::Raft(Request::Vote(raft::VoteRequest {
        cluster_id: Some("c".to_owned()),
        voter: Some(key(2)),
        candidate: key(1),
        epoch: Epoch(5),
        last_epoch: Epoch(4),
        last_offset: Offset(30),
        pre_vote,
    }))
}

/// The other node's listener.
struct Server {
    listener: TcpListener,
    address: SocketAddr,
}

impl Server {
    async fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        Self { listener, address }
    }

    fn peer(&self) -> Peer {
        peer_at("127.0.0.1", self.address.port())
    }

    async fn accept(&self) -> Serving {
        let (stream, _) = soon(self.listener.accept()).await.unwrap();
        Serving { stream }
    }

    /// Accepts and answers the greeting like a release of today.
    async fn welcome(&self) -> Serving {
        let mut serving = self.accept().await;
        serving.greet(&TODAY).await;
        serving
    }
}

/// (api key, lowest, highest version).
const TODAY: [(i16, i16, i16); 9] = [
    (1, 4, 18),
    (18, 0, 5),
    (52, 0, 2),
    (53, 0, 1),
    (54, 0, 1),
    (59, 0, 1),
    (80, 0, 1),
    (81, 0, 0),
    (82, 0, 0),
];

/// A connection, seen from the other node.
struct Serving {
    stream: TcpStream,
}

impl Serving {
    /// The next request: its header and what follows the correlation.
    async fn request(&mut self) -> (HeaderStart, Bytes) {
        let length = soon(self.stream.read_i32()).await.unwrap();
        let mut frame = vec![0; length as usize];
        soon(self.stream.read_exact(&mut frame)).await.unwrap();
        let mut frame = Bytes::from(frame);
        (HeaderStart::parse(&mut frame).unwrap(), frame)
    }

    async fn write(&mut self, bytes: &[u8]) {
        soon(self.stream.write_all(bytes)).await.unwrap();
    }

    /// An answer whose header has tagged fields if `flexible`.
    async fn reply(&mut self, correlation: i32, flexible: bool, body: &[u8]) {
        let mut frame = BytesMut::new();
        frame.put_i32((4 + usize::from(flexible) + body.len()) as i32);
        frame.put_i32(correlation);
        if flexible {
            frame.put_u8(0);
        }
        frame.put_slice(body);
        self.write(&frame).await;
    }

    async fn greet(&mut self, ranges: &[(i16, i16, i16)]) {
        let (header, _) = self.request().await;
        assert_eq!((header.api_key, header.version), (18, 4));
        let body = versions(ranges, Some((0, 1)));
        self.reply(header.correlation_id, false, &body).await;
    }

    /// Answers the vote that comes next.
    async fn grant(&mut self) {
        let (header, _) = self.request().await;
        assert_eq!((header.api_key, header.version), (52, 2));
        let body = granted(header.version);
        self.reply(header.correlation_id, true, &body).await;
    }

    /// Waits until the other side has closed.
    async fn closed(&mut self) {
        let mut rest = Vec::new();
        // A reset is an end as well.
        let _ = soon(self.stream.read_to_end(&mut rest)).await;
    }
}

/// The body of an ApiVersions answer v4.
fn versions(ranges: &[(i16, i16, i16)], kraft: Option<(i16, i16)>) -> BytesMut {
    use kafka_protocol::protocol::StrBytes;
    use m::api_versions_response::{ApiVersion, SupportedFeatureKey};

    let keys = ranges.iter().map(|(key, min, max)| {
        ApiVersion::default()
            .with_api_key(*key)
            .with_min_version(*min)
            .with_max_version(*max)
    });
    let features = kraft.iter().map(|(min, max)| {
        SupportedFeatureKey::default()
            .with_name(StrBytes::from_static_str("kraft.version"))
            .with_min_version(*min)
            .with_max_version(*max)
    });
    let answer = m::ApiVersionsResponse::default()
        .with_api_keys(keys.collect())
        .with_supported_features(features.collect());
    let mut body = BytesMut::new();
    answer.encode(&mut body, 4).unwrap();
    body
}

/// The body of an answer to Vote.
fn granted(version: i16) -> BytesMut {
    let response = raft::VoteResponse {
        error: raft::RaftError::None,
        hint: raft::LeaderHint {
            leader: None,
            epoch: Epoch(5),
            endpoint: None,
        },
        granted: true,
    };
    let mut body = BytesMut::new();
    let message = crate::server::wire::vote_response(&response, version);
    message.encode(&mut body, version).unwrap();
    body
}

fn is_granted(outcome: Result<PeerAnswer, CallFault>) -> bool {
    match outcome {
        Ok(PeerAnswer::Raft(Response::Vote(vote))) => {
            vote.error == raft::RaftError::None && vote.granted
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_question_connects_greets_and_is_answered() {
    let server = Server::new().await;
    let mut client = client();
    client.ask(1, &server.peer(), vote(true));
    let mut serving = server.welcome().await;
    serving.grant().await;
    assert_eq!(client.found().await, (NodeId(2), true));
    let (call, outcome) = client.answer().await;
    assert_eq!(call, 1);
    assert!(is_granted(outcome));
    let status = client.peers.status();
    assert_eq!(status.len(), 1);
    assert_eq!(status[0].connected, Some(server.address));
    assert_eq!(status[0].addresses, [server.address]);
    assert!(status[0].seen.is_some() && status[0].error.is_none());
    assert!(status[0].to_string().contains("node 2 at 127.0.0.1:"));
}

#[tokio::test]
async fn several_questions_share_a_connection_and_are_told_apart_by_their_correlation() {
    let server = Server::new().await;
    let mut client = client();
    for call in 1..=3 {
        client.ask(call, &server.peer(), vote(false));
    }
    let mut serving = server.welcome().await;
    let mut asked = Vec::new();
    for _ in 0..3 {
        asked.push(serving.request().await.0.correlation_id);
    }
    for correlation in asked.into_iter().rev() {
        serving.reply(correlation, true, &granted(2)).await;
    }
    client.found().await;
    for call in [3, 2, 1] {
        assert_eq!(client.answer().await.0, call);
    }
}

#[tokio::test]
async fn more_questions_than_may_wait_are_answered_at_once() {
    let server = Server::new().await;
    let mut client = client();
    for call in 0..=WAITING_MAX as u64 {
        client.ask(call, &server.peer(), vote(false));
    }
    let last = WAITING_MAX as u64;
    assert_eq!(client.fault(last).await, CallFault::Silent);
    // An answer makes room.
    let mut serving = server.welcome().await;
    serving.grant().await;
    client.found().await;
    assert_eq!(client.answer().await.0, 0);
    client.ask(9, &server.peer(), vote(false));
    for call in 1..last {
        serving.grant().await;
        assert_eq!(client.answer().await.0, call);
    }
    serving.grant().await;
    assert_eq!(client.answer().await.0, 9);
}

#[tokio::test]
async fn this_node_is_never_asked_nor_resolved() {
    let resolve: Resolve = Arc::new(|host, _| panic!("{host} is resolved"));
    let mut client = Client::new(settings(), resolve);
    let own = Peer {
        name: PeerName::Node(NodeId(1)),
        host: "a".to_owned(),
        port: 1,
    };
    let bootstrap = Peer {
        name: PeerName::Bootstrap(0),
        host: "self.example".to_owned(),
        port: 9093,
    };
    client.peers.keep_open(&[own.clone(), bootstrap.clone()]);
    client.ask(1, &own, vote(false));
    client.ask(2, &bootstrap, vote(false));
    assert_eq!(client.fault(1).await, CallFault::Silent);
    assert_eq!(client.fault(2).await, CallFault::Silent);
    assert!(client.peers.status().is_empty());
}

#[tokio::test]
async fn nodes_that_nobody_needs_make_room_for_others() {
    let mut client = Client::new(impatient(), Arc::new(|_, _| Box::pin(async { Ok(vec![]) })));
    for id in 0..3 * LINES_MAX as u64 {
        let peer = Peer {
            name: PeerName::Bootstrap(id as usize),
            host: "h".to_owned(),
            port: 1,
        };
        client.ask(id, &peer, vote(false));
        assert_eq!(client.fault(id).await, CallFault::Silent);
    }
    assert!(client.peers.status().len() <= LINES_MAX);
}
