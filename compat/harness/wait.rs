//! Conditions with a limit, and free ports.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU16, Ordering};
use std::thread;
use std::time::Duration;

use super::process::now;

/// Polls until the condition holds, and fails the test when it does not within the limit.
#[track_caller]
pub(crate) fn until(what: &str, limit: Duration, mut condition: impl FnMut() -> bool) {
    let start = now();
    while !condition() {
        assert!(start.elapsed() < limit, "not within {limit:?}: {what}");
        thread::park_timeout(Duration::from_millis(20));
    }
}

/// Waits until something listens on the port.
#[track_caller]
pub(crate) fn until_connects(port: u16) {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    until(
        &format!("a listener on port {port}"),
        Duration::from_secs(60),
        || TcpStream::connect_timeout(&address, Duration::from_secs(1)).is_ok(),
    );
}

/// A port that nobody listens on. Each call gives another one; the range lies below the ports that
/// the system hands out by itself, so that no client's socket takes it in between.
pub(crate) fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let start = u16::try_from(std::process::id() % 9_000).expect("below 9,000");
    for _ in 0..9_000 {
        let step = NEXT.fetch_add(1, Ordering::Relaxed);
        let port = 20_000 + (start + step) % 9_000;
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return port;
        }
    }
    panic!("no free port from 20000 to 28999");
}
