//! Sockets that listen: binding, and taking connections within the limits.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket, TcpStream, lookup_host};
use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};
use tokio::time::Instant;

use super::complaints::Complaints;
use super::connection::{self, Bounds, ClientInfo, Closing, Peer, Service};
use super::limits::{Limits, Place, Rate, Slot, Slots};
use crate::config;
use crate::types::SecurityProtocol;

/// How long to wait after the system refused a connection (no file descriptors, mostly).
const ACCEPT_RETRY: Duration = Duration::from_millis(100);
/// How often it is told, at most, why a listener takes no connections.
const TELL_PERIOD: Duration = Duration::from_secs(60);
/// How often held-back warnings are looked at.
const FLUSH_PERIOD: Duration = Duration::from_secs(10);

/// Counters of all listeners.
#[derive(Debug, Default)]
pub struct Stats {
    /// Connections that are open now.
    pub open: AtomicU64,
    /// Connections taken since the start.
    pub accepted: AtomicU64,
    /// Connections refused by a limit since the start.
    pub refused: AtomicU64,
    /// Connections whose task panicked since the start: a bug of ours each.
    pub panicked: AtomicU64,
}

/// A socket that is bound and listens, so that its port is known.
#[derive(Debug)]
pub(crate) struct Bound {
    pub(crate) name: Arc<str>,
    pub(crate) protocol: SecurityProtocol,
    pub(crate) address: SocketAddr,
    socket: TcpListener,
    pub(crate) slots: Arc<Slots>,
    pub(crate) rate: Arc<Rate>,
    /// The file's limit of connections and of their rate.
    pub(crate) initial: (u32, u32),
}

/// What the tasks of all listeners share.
pub(crate) struct Shared<S> {
    pub(crate) service: S,
    pub(crate) bounds: Bounds,
    pub(crate) limits: Arc<Limits>,
    pub(crate) complaints: Complaints,
    pub(crate) stats: Arc<Stats>,
}

/// Binds a listener. An empty host is every address: IPv6 and IPv4 in one socket, or IPv4 alone
/// where the system has no IPv6. A name is resolved, and an IPv4 address of it preferred, as the
/// JVM does.
///
/// # Errors
/// The name is unknown, or the system refuses the address.
pub(crate) async fn bind(
    listener: &config::Listener,
    sockets: &config::Sockets,
) -> io::Result<Bound> {
    let endpoint = &listener.endpoint;
    let socket = match endpoint.host.as_deref() {
        None | Some("") => {
            let any6 = SocketAddr::from((Ipv6Addr::UNSPECIFIED, endpoint.port));
            match open(any6, sockets) {
                Err(error) if error.kind() != io::ErrorKind::AddrInUse => {
                    open((Ipv4Addr::UNSPECIFIED, endpoint.port).into(), sockets)?
                }
                other => other?,
            }
        }
        Some(host) => open(resolve(host, endpoint.port).await?, sockets)?,
    };
    Ok(Bound {
        name: Arc::from(endpoint.name.as_str()),
        protocol: endpoint.protocol,
        address: socket.local_addr()?,
        socket,
        slots: Slots::new(listener.connections_max),
        rate: Arc::new(Rate::new(listener.connection_rate_max)),
        initial: (listener.connections_max, listener.connection_rate_max),
    })
}

async fn resolve(host: &str, port: u16) -> io::Result<SocketAddr> {
    if let Ok(ip) = host.parse::<IpAddr>() {
        return Ok((ip, port).into());
    }
    let found = lookup_host((host, port)).await?.collect();
    config::preferred(found)
        .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, format!("{host} has no address")))
}

fn open(address: SocketAddr, sockets: &config::Sockets) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    socket.set_reuseaddr(true)?;
    // Connections inherit these three from the socket that listens.
    socket.set_keepalive(true)?;
    if let Some(bytes) = sockets.send_buffer_bytes {
        socket.set_send_buffer_size(bytes)?;
    }
    if let Some(bytes) = sockets.receive_buffer_bytes {
        socket.set_recv_buffer_size(bytes)?;
    }
    socket.bind(address)?;
    socket.listen(sockets.backlog)
}

/// Takes connections until `stop` becomes true, then waits for those that are open; dropping the
/// future ends them at once.
pub(crate) async fn run<S: Service>(
    bound: Bound,
    shared: Arc<Shared<S>>,
    mut stop: watch::Receiver<bool>,
) {
    let mut tasks = JoinSet::new();
    let mut flush = tokio::time::interval(FLUSH_PERIOD);
    let mut not_before = Instant::now();
    let mut failures = 0_u64;
    let (mut full, mut failed) = (Notice::default(), Notice::default());
    while !*stop.borrow() {
        tokio::select! {
            accepted = accept(&bound, &shared.limits, not_before, &mut full) => match accepted {
                Ok((stream, address, slots)) => {
                    let now = Instant::now();
                    let wait = shared.limits.rate_delay(now).max(bound.rate.take(now));
                    not_before = now + wait;
                    take(&bound, &shared, stream, address, slots, &mut tasks, &stop);
                }
                Err(error) => {
                    failures += 1;
                    not_before = Instant::now() + ACCEPT_RETRY;
                    if failed.is_due(Instant::now()) {
                        tracing::warn!(
                            "listener {} cannot accept: {error} ({failures} times so far){}",
                            bound.name,
                            shared.limits.files.help(&error)
                        );
                    }
                }
            },
            Some(ended) = tasks.join_next() => note_end(ended, &shared.stats),
            _ = flush.tick() => shared.complaints.flush(),
            changed = stop.changed() => if changed.is_err() { break },
        }
    }
    drop(bound);
    while let Some(ended) = tasks.join_next().await {
        note_end(ended, &shared.stats);
    }
    shared.complaints.flush();
}

/// Waits for the creation rate, for a place, then for a connection to put there.
async fn accept(
    bound: &Bound,
    limits: &Limits,
    not_before: Instant,
    full: &mut Notice,
) -> io::Result<(TcpStream, SocketAddr, [Slot; 2])> {
    // A timer that is due still costs a millisecond.
    if not_before > Instant::now() {
        tokio::time::sleep_until(not_before).await;
    }
    let own_is_full = || {
        let name = bound.name.to_lowercase();
        bound
            .slots
            .is_full(&format!("listener.name.{name}.max.connections"))
    };
    let own = place(bound, &bound.slots, own_is_full, full).await;
    let all = place(bound, &limits.slots, || limits.is_full(), full).await;
    let slots = [all, own];
    let (stream, address) = bound.socket.accept().await?;
    let plain = SocketAddr::new(address.ip().to_canonical(), address.port());
    Ok((stream, plain, slots))
}

/// A place among `slots`. Whoever connects waits in the backlog until there is one, and does not
/// learn why: the log tells what `is_full` says.
async fn place(
    bound: &Bound,
    slots: &Arc<Slots>,
    is_full: impl FnOnce() -> String,
    full: &mut Notice,
) -> Slot {
    if let Some(slot) = slots.try_take() {
        return slot;
    }
    if full.is_due(Instant::now()) {
        let why = is_full();
        tracing::warn!("listener {} takes no more connections: {why}", bound.name);
    }
    slots.take().await
}

/// What is told once in [`TELL_PERIOD`] at most.
#[derive(Debug, Default)]
struct Notice {
    told: Option<Instant>,
}

impl Notice {
    /// Whether it may be told now; then it is as good as told.
    fn is_due(&mut self, now: Instant) -> bool {
        let due = self.told.is_none_or(|told| now >= told + TELL_PERIOD);
        if due {
            self.told = Some(now);
        }
        due
    }
}

fn take<S: Service>(
    bound: &Bound,
    shared: &Arc<Shared<S>>,
    stream: TcpStream,
    address: SocketAddr,
    slots: [Slot; 2],
    tasks: &mut JoinSet<()>,
    stop: &watch::Receiver<bool>,
) {
    shared.stats.accepted.fetch_add(1, Ordering::Relaxed);
    let Some(place) = shared.limits.enter(address.ip(), slots) else {
        shared.stats.refused.fetch_add(1, Ordering::Relaxed);
        let what = "too many connections of this address (max.connections.per.ip)";
        shared.complaints.warn(address, &bound.name, &what);
        return;
    };
    let peer = Peer {
        address,
        listener: Arc::clone(&bound.name),
        protocol: bound.protocol,
        client: ClientInfo::default(),
    };
    let open = Open::new(Arc::clone(&shared.stats));
    tasks.spawn(connection_task(
        Arc::clone(shared),
        stream,
        peer,
        stop.clone(),
        (place, open),
    ));
}

async fn connection_task<S: Service>(
    shared: Arc<Shared<S>>,
    stream: TcpStream,
    mut peer: Peer,
    stop: watch::Receiver<bool>,
    _guards: (Place, Open),
) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!("{}: TCP_NODELAY: {error}", peer.address);
    }
    let closing = connection::serve(stream, &shared.service, &shared.bounds, &mut peer, stop).await;
    match closing {
        Closing::Garbage(what) => {
            let what = match &peer.client {
                client if *client == ClientInfo::default() => what,
                client => format!("{what} ({client})"),
            };
            shared.complaints.warn(peer.address, &peer.listener, &what);
        }
        Closing::Quiet(why) => tracing::debug!(
            "connection from {} on listener {} ({}) ended: {why}",
            peer.address,
            peer.listener,
            peer.client
        ),
    }
}

fn note_end(ended: Result<(), JoinError>, stats: &Stats) {
    if let Err(error) = ended
        && error.is_panic()
    {
        stats.panicked.fetch_add(1, Ordering::Relaxed);
        tracing::error!("a connection's task panicked; that connection is closed: {error}");
    }
}

/// Counts an open connection as long as it lives.
struct Open(Arc<Stats>);

impl Open {
    fn new(stats: Arc<Stats>) -> Self {
        stats.open.fetch_add(1, Ordering::Relaxed);
        Self(stats)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
#[path = "listener_tests.rs"]
pub(super) mod tests;
