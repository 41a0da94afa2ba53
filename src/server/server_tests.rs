//! The whole server on loopback sockets, with a core that the test plays.

use bytes::{Buf, Bytes};
use kafka_protocol::messages as m;
use kafka_protocol::protocol::Decodable;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::core::{Answer, Request};
use super::dispatch::tests::{FakeCore, encoded, frame, harness, recorded_image, settings};
use super::listener::tests::{loopback, sockets};
use super::*;
use crate::raft::{self, LeaderHint, RaftError};
use crate::types::ids::METADATA_TOPIC_ID;
use crate::types::loggers::Loggers;
use crate::types::{Epoch, NodeId, Offset};

struct Harness {
    server: Server,
    core: Arc<FakeCore>,
    addresses: Vec<SocketAddr>,
}

async fn serve(hosts: &[Option<&str>]) -> Harness {
    let core = harness(recorded_image()).core;
    let listeners: Vec<_> = hosts.iter().map(|host| loopback(*host)).collect();
    let listening = bind(listeners.iter(), &sockets(), OpenFiles(None))
        .await
        .unwrap();
    let addresses = listening.addresses().map(|(_, address)| address).collect();
    let server = listening.serve(
        Arc::clone(&core) as Arc<dyn Core>,
        Arc::new(settings()),
        LogLevels::new(Loggers::default(), Box::new(|_| {})),
    );
    Harness {
        server,
        core,
        addresses,
    }
}

async fn send(stream: &mut TcpStream, frame: &Bytes) {
    let mut bytes = (frame.len() as i32).to_be_bytes().to_vec();
    bytes.extend_from_slice(frame);
    stream.write_all(&bytes).await.unwrap();
}

/// The next answer: its correlation id and what follows.
async fn next(stream: &mut TcpStream) -> (i32, Bytes) {
    let length = stream.read_i32().await.unwrap();
    let mut bytes = vec![0; length as usize];
    stream.read_exact(&mut bytes).await.unwrap();
    let mut bytes = Bytes::from(bytes);
    (bytes.get_i32(), bytes)
}

fn fetch() -> Bytes {
    use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic};

    let topic = FetchTopic::default()
        .with_topic_id(METADATA_TOPIC_ID)
        .with_partitions(vec![FetchPartition::default()]);
    let request = m::FetchRequest::default().with_topics(vec![topic]);
    frame(1, 18, 2, &encoded(&request, 18))
}

async fn asked(core: &FakeCore) -> (Request, tokio::sync::oneshot::Sender<Answer>) {
    loop {
        if let Some(asked) = core.asked.lock().unwrap().pop() {
            return asked;
        }
        tokio::task::yield_now().await;
    }
}

fn records(bytes: &'static [u8]) -> Answer {
    Answer::Fetch {
        response: raft::FetchResponse {
            error: RaftError::None,
            hint: LeaderHint {
                leader: Some(NodeId(1)),
                epoch: Epoch(1),
                endpoint: None,
            },
            high_watermark: 3,
            log_start: Offset(0),
            diverging: None,
            snapshot: None,
        },
        records: Bytes::from_static(bytes),
    }
}

#[tokio::test]
async fn a_client_asks_for_versions_then_for_controllers_then_fetches() {
    let at = serve(&[Some("127.0.0.1"), None]).await;
    for address in &at.addresses {
        let port = address.port();
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        // As a Java client does: the newest version first, then what the answer allows.
        send(&mut stream, &frame(18, 6, 0, &[])).await;
        let (id, mut body) = next(&mut stream).await;
        let versions = m::ApiVersionsResponse::decode(&mut body, 0).unwrap();
        assert_eq!((id, versions.error_code), (0, 35));
        send(&mut stream, &frame(60, 2, 1, &[0, 2, 0, 0])).await;
        let (id, mut body) = next(&mut stream).await;
        body.advance(1);
        let cluster = m::DescribeClusterResponse::decode(&mut body, 2).unwrap();
        assert_eq!((id, cluster.brokers.len()), (1, 2));
        send(&mut stream, &fetch()).await;
        let (request, reply) = asked(&at.core).await;
        assert!(matches!(request, Request::Raft { listener, .. } if &*listener == "CONTROLLER"));
        reply.send(records(b"records")).unwrap();
        let (id, mut body) = next(&mut stream).await;
        body.advance(1);
        let fetched = m::FetchResponse::decode(&mut body, 18).unwrap();
        let partition = &fetched.responses[0].partitions[0];
        assert_eq!(
            (id, partition.records.as_deref()),
            (2, Some(&b"records"[..]))
        );
    }
    assert_eq!(at.server.bad_connections(), 0);
}

#[tokio::test]
async fn the_loopback_of_ipv6_is_served_where_the_system_has_it() {
    if std::net::TcpListener::bind("[::1]:0").is_err() {
        return;
    }
    let at = serve(&[Some("::1"), None]).await;
    for address in &at.addresses {
        let mut stream = TcpStream::connect(("::1", address.port())).await.unwrap();
        send(&mut stream, &frame(18, 0, 5, &[])).await;
        assert_eq!(next(&mut stream).await.0, 5);
    }
}

#[tokio::test]
async fn a_stop_lets_answers_out_that_are_under_way() {
    let at = serve(&[Some("127.0.0.1")]).await;
    let mut stream = TcpStream::connect(at.addresses[0]).await.unwrap();
    send(&mut stream, &fetch()).await;
    let (_, reply) = asked(&at.core).await;
    let stop = tokio::spawn(at.server.stop(Duration::from_secs(60)));
    while TcpStream::connect(at.addresses[0]).await.is_ok() {
        tokio::task::yield_now().await;
    }
    reply.send(records(b"last")).unwrap();
    assert_eq!(next(&mut stream).await.0, 2);
    stop.await.unwrap();
    assert_eq!(stream.read(&mut [0; 1]).await.unwrap(), 0);
}

#[tokio::test]
async fn a_stop_waits_no_longer_than_told() {
    let at = serve(&[Some("127.0.0.1")]).await;
    let mut stream = TcpStream::connect(at.addresses[0]).await.unwrap();
    send(&mut stream, &fetch()).await;
    let (_, reply) = asked(&at.core).await;
    at.server.stop(Duration::from_millis(20)).await;
    assert_eq!(stream.read(&mut [0; 1]).await.unwrap_or(0), 0);
    // The core learns that nobody waits.
    let mut reply = reply;
    reply.closed().await;
}

#[tokio::test]
async fn the_known_attacks_cost_their_connection_and_a_counted_warning() {
    let at = serve(&[Some("127.0.0.1")]).await;
    let mut huge_fetch = vec![0; 17];
    huge_fetch.extend([0x7f, 0xff, 0xff, 0xff]);
    let huge_topics = [0xff, 0xff, 0xff, 0xff, 0x0f, 0, 0, 0, 0];
    let frames = [
        frame(1, 4, 1, &huge_fetch),
        frame(20, 6, 1, &huge_topics),
        frame(3, 12, 1, &[]),
        frame(19, 99, 1, &huge_topics),
    ];
    for round in 0..25 {
        for attack in &frames {
            let mut stream = TcpStream::connect(at.addresses[0]).await.unwrap();
            send(&mut stream, attack).await;
            let ended = stream.read(&mut [0; 1]).await.unwrap_or(0);
            assert_eq!(ended, 0, "round {round}: {attack:?}");
        }
    }
    assert_eq!(at.server.bad_connections(), 100);
    assert!(at.core.asked.lock().unwrap().is_empty());
}

/// The sentence of a start names the listener, its key and what helps.
#[test]
fn a_listener_that_cannot_be_opened_says_what_helps() {
    for (kind, words) in [
        (io::ErrorKind::AddrInUse, "another process listens there"),
        (io::ErrorKind::AddrNotAvailable, "no such address"),
        (io::ErrorKind::PermissionDenied, "above 1023"),
        (io::ErrorKind::NotFound, "correct host and port"),
    ] {
        let error = BindError {
            listener: "CONTROLLER".to_owned(),
            address: "a:9093".to_owned(),
            error: io::Error::from(kind),
        };
        let sentence = error.to_string();
        for word in ["CONTROLLER", "a:9093", "in listeners", words] {
            assert!(sentence.contains(word), "{sentence}");
        }
    }
}
