//! Strangers on the controller's port: each is refused, and nobody else notices.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpStream};
use std::time::Duration;

use crate::harness::{Driver, Kind, Setup};

/// A request frame: length, header version 2 (null client id, no tags), body.
fn frame(api: i16, version: i16, body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend(api.to_be_bytes());
    bytes.extend(version.to_be_bytes());
    bytes.extend(7_i32.to_be_bytes());
    bytes.extend((-1_i16).to_be_bytes());
    bytes.push(0);
    bytes.extend(body);
    let length = i32::try_from(bytes.len()).expect("a short frame");
    [&length.to_be_bytes(), bytes.as_slice()].concat()
}

/// What a stranger sends, by name.
fn attacks() -> Vec<(&'static str, Vec<u8>)> {
    let hello = [
        0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3, 9, 9, 9, 9, 9, 9, 9, 9, 9,
    ];
    vec![
        // Nine bytes: a count of 2^32 - 1 topics, and a timeout.
        (
            "CreateTopics with a huge count",
            frame(19, 7, &[255, 255, 255, 255, 15, 0, 0, 3, 232]),
        ),
        (
            "a length of 2^31 - 1",
            [&i32::MAX.to_be_bytes()[..], &[0; 64]].concat(),
        ),
        ("a length below zero", vec![255, 255, 255, 255, 0, 0]),
        ("a TLS hello", hello.to_vec()),
        ("a truncated frame", frame(18, 3, &[1, 1, 0])[..9].to_vec()),
        ("a frame of four bytes", vec![0, 0, 0, 4, 0, 18, 0, 3]),
        ("an unknown API", frame(999, 0, &[])),
        (
            "a version that does not exist",
            frame(19, 99, &[1, 0, 0, 3, 232, 0, 0]),
        ),
        (
            "a body with bytes left over",
            frame(19, 7, &[1, 0, 0, 3, 232, 0, 0, 1, 2, 3, 4]),
        ),
        ("web", b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec()),
    ]
}

/// Sends the bytes and reads to the end: what came back, or none when the other side neither
/// answered nor closed.
fn send(port: u16, bytes: &[u8]) -> Option<Vec<u8>> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).expect("it listens");
    stream
        .set_read_timeout(Some(Duration::from_secs(20)))
        .expect("a time-out");
    // The other side may close before it has read everything.
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(Shutdown::Write);
    let mut answer = Vec::new();
    match stream.read_to_end(&mut answer) {
        Ok(_) => Some(answer),
        Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => None,
        Err(_) => Some(answer),
    }
}

#[test]
fn strangers_are_refused_and_the_broker_does_not_notice() {
    let kind = Kind::under_test();
    let setup = Setup::new();
    setup.format(kind, &[]);
    let mut controller = setup.start_controller(kind);
    let mut broker = setup.start_broker("4.4.0");
    let mut driver = Driver::start();
    let address = setup.broker_address();
    driver.job(&["create", &address, "before", "1"]);
    let memory = controller.server.resident();

    let port = setup.controller_port;
    for (name, bytes) in attacks() {
        assert!(
            send(port, &bytes).is_some(),
            "{name}: neither answered nor closed"
        );
    }
    // A hundred at once, ten of each kind.
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..10)
            .flat_map(|_| attacks())
            .map(|(name, bytes)| (name, scope.spawn(move || send(port, &bytes))))
            .collect();
        for (name, stranger) in all {
            let answered = stranger.join().expect("no panic").is_some();
            assert!(
                answered,
                "{name}, one of a hundred: neither answered nor closed"
            );
        }
    });

    assert!(controller.server.is_running(), "the controller lives");
    driver.job(&["create", &address, "after", "1"]);
    driver.job(&["led", &address, "2"]);
    assert!(broker.server.is_running(), "the broker lives");
    if kind == Kind::Kraftd {
        let grown = controller.server.resident().saturating_sub(memory);
        assert!(grown < 4 << 20, "memory grew by {grown} bytes");
        let warnings = controller.server.lines_with("WARN");
        let told: Vec<_> = warnings
            .iter()
            .filter(|line| line.contains("127.0.0.1"))
            .collect();
        assert!(!told.is_empty(), "no warning names the peer: {warnings:?}");
        assert!(
            told.len() <= 30,
            "110 strangers, {} warnings: they are not counted",
            told.len()
        );
    }
}
