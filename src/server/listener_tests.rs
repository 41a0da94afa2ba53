//! Listeners on loopback sockets.

use std::collections::BTreeMap;

use bytes::Bytes;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinHandle;

use super::*;
use crate::config::SecurityProtocol;
use crate::server::OpenFiles;
use crate::server::budget::Budget;
use crate::server::connection::{Started, Weight};

/// Answers with the frame itself; the first byte `p` panics.
struct Echo;

impl Service for Echo {
    type Weighed = Bytes;

    fn admit(&self, header: &[u8]) -> Result<(), Closing> {
        match header[0] {
            b'?' => Err(Closing::Garbage("unknown".to_owned())),
            _ => Ok(()),
        }
    }

    fn weigh(&self, frame: Bytes) -> Result<(Weight, Bytes), Closing> {
        let weight = Weight {
            bytes: frame.len(),
            alone: false,
            turn: None,
        };
        Ok((weight, frame))
    }

    fn start(&self, _: &mut Peer, frame: Bytes) -> Result<Started, Closing> {
        assert!(frame[0] != b'p', "a bug of ours");
        let mut answer = (frame.len() as i32).to_be_bytes().to_vec();
        answer.extend_from_slice(&frame);
        Ok(Started::Answer(answer.into()))
    }
}

pub(crate) fn sockets() -> config::Sockets {
    config::Sockets {
        request_bytes_max: 100 << 20,
        queued_requests_max: 500,
        queued_request_bytes_max: None,
        connections_max: i32::MAX as u32,
        connections_per_ip_max: i32::MAX as u32,
        connections_per_ip_overrides: BTreeMap::new(),
        connection_rate_max: i32::MAX as u32,
        idle_ms_max: Some(600_000),
        failed_authentication_delay_ms: 100,
        backlog: 50,
        send_buffer_bytes: Some(102_400),
        receive_buffer_bytes: Some(102_400),
        request_timeout_ms: 30_000,
        connect_timeout_ms: 10_000,
        connect_timeout_ms_max: 30_000,
        network_threads: 3,
        io_threads: 8,
    }
}

pub(crate) fn loopback(host: Option<&str>) -> config::Listener {
    config::Listener {
        endpoint: config::Endpoint {
            name: "CONTROLLER".to_owned(),
            host: host.map(str::to_owned),
            port: 0,
            protocol: SecurityProtocol::Plaintext,
        },
        controller: true,
        connections_max: i32::MAX as u32,
        connection_rate_max: i32::MAX as u32,
    }
}

struct Harness {
    address: SocketAddr,
    shared: Arc<Shared<Echo>>,
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

async fn harness(limits: Limits) -> Harness {
    let bound = bind(&loopback(Some("127.0.0.1")), &sockets())
        .await
        .unwrap();
    let address = bound.address;
    let shared = Arc::new(Shared {
        service: Echo,
        bounds: Bounds {
            frame_bytes_max: 100 << 20,
            idle_max: None,
            frame_time_max: Duration::from_secs(60),
            budget: Budget::new(None, 100 << 20),
        },
        limits: Arc::new(limits),
        complaints: Complaints::new(Instant::now()),
        stats: Arc::new(Stats::default()),
    });
    let (stop, stopped) = watch::channel(false);
    let task = tokio::spawn(run(bound, Arc::clone(&shared), stopped));
    Harness {
        address,
        shared,
        stop,
        task,
    }
}

fn unlimited() -> Limits {
    let max = i32::MAX as u32;
    Limits::new(
        max,
        max,
        std::collections::HashMap::new(),
        max,
        OpenFiles(None),
    )
}

async fn echo(stream: &mut TcpStream) {
    stream.write_all(b"\0\0\0\x08abcdefgh").await.unwrap();
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"\0\0\0\x08abcdefgh");
}

/// Reads until the server closes; what came is thrown away. A reset is a close, too.
async fn closed(stream: &mut TcpStream) {
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest).await;
}

#[tokio::test]
async fn an_ephemeral_port_is_known_and_serves() {
    for host in [None, Some("127.0.0.1"), Some("localhost"), Some("0.0.0.0")] {
        let bound = bind(&loopback(host), &sockets()).await.unwrap();
        assert_ne!(bound.address.port(), 0);
        let at = ("127.0.0.1", bound.address.port());
        assert!(TcpStream::connect(at).await.is_ok(), "{host:?}");
    }
}

#[tokio::test]
async fn a_port_that_is_taken_is_an_error() {
    let first = bind(&loopback(Some("127.0.0.1")), &sockets())
        .await
        .unwrap();
    let mut second = loopback(Some("127.0.0.1"));
    second.endpoint.port = first.address.port();
    let error = bind(&second, &sockets()).await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
}

#[tokio::test]
async fn a_hundred_bad_connections_at_once_are_closed_and_a_good_one_is_served() {
    let at = harness(unlimited()).await;
    let mut good = TcpStream::connect(at.address).await.unwrap();
    echo(&mut good).await;
    let attacks: [&[u8]; 5] = [
        &[0x7f, 0xff, 0xff, 0xff],
        &[0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc],
        &[0xff; 12],
        b"\0\0\0\x08????????",
        b"GET / HTTP/1.1\r\n\r\n",
    ];
    let mut bad = Vec::new();
    for index in 0..100 {
        let mut stream = TcpStream::connect(at.address).await.unwrap();
        stream
            .write_all(attacks[index % attacks.len()])
            .await
            .unwrap();
        bad.push(stream);
        echo(&mut good).await;
    }
    for stream in &mut bad {
        closed(stream).await;
    }
    echo(&mut good).await;
    assert_eq!(at.shared.complaints.total(), 100);
    assert_eq!(at.shared.stats.accepted.load(Ordering::Relaxed), 101);
}

#[tokio::test]
async fn a_panic_ends_its_own_connection_only() {
    let at = harness(unlimited()).await;
    let mut good = TcpStream::connect(at.address).await.unwrap();
    let mut bad = TcpStream::connect(at.address).await.unwrap();
    bad.write_all(b"\0\0\0\x08pppppppp").await.unwrap();
    closed(&mut bad).await;
    echo(&mut good).await;
    while at.shared.stats.panicked.load(Ordering::Relaxed) == 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(at.shared.stats.open.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn too_many_of_one_address_are_closed_at_once() {
    let limits = Limits::new(
        100,
        1,
        std::collections::HashMap::new(),
        u32::MAX,
        OpenFiles(None),
    );
    let at = harness(limits).await;
    let mut first = TcpStream::connect(at.address).await.unwrap();
    echo(&mut first).await;
    let mut second = TcpStream::connect(at.address).await.unwrap();
    closed(&mut second).await;
    echo(&mut first).await;
    assert_eq!(at.shared.stats.refused.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn above_the_limit_a_peer_waits_until_another_leaves() {
    let max = i32::MAX as u32;
    let limits = Limits::new(
        1,
        max,
        std::collections::HashMap::new(),
        max,
        OpenFiles(None),
    );
    let at = harness(limits).await;
    let mut first = TcpStream::connect(at.address).await.unwrap();
    echo(&mut first).await;
    let mut second = TcpStream::connect(at.address).await.unwrap();
    second.write_all(b"\0\0\0\x08abcdefgh").await.unwrap();
    echo(&mut first).await;
    assert_eq!(at.shared.stats.accepted.load(Ordering::Relaxed), 1);
    drop(first);
    let mut answer = [0; 12];
    second.read_exact(&mut answer).await.unwrap();
    assert_eq!(at.shared.stats.accepted.load(Ordering::Relaxed), 2);
}

#[test]
fn why_no_connection_is_taken_is_told_once_a_minute() {
    let start = Instant::now();
    let mut notice = Notice::default();
    let told = |seconds: &u64| notice.is_due(start + Duration::from_secs(*seconds));
    let seconds: Vec<u64> = (0..150).filter(told).collect();
    assert_eq!(seconds, [0, 60, 120]);
}

#[tokio::test]
async fn a_stop_closes_the_port_and_every_connection() {
    let at = harness(unlimited()).await;
    let mut open = TcpStream::connect(at.address).await.unwrap();
    echo(&mut open).await;
    at.stop.send(true).unwrap();
    at.task.await.unwrap();
    closed(&mut open).await;
    assert!(TcpStream::connect(at.address).await.is_err());
    assert_eq!(at.shared.stats.open.load(Ordering::Relaxed), 0);
}
