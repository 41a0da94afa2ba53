//! Listeners: bytes of sockets to requests of the core, answers to bytes.
//!
//! ```text
//! listener -> connection -> dispatch -> core (a trait; `runtime` has the real one)
//!                |             |
//!              frame      api_table: one row an API -> shape check, decoder, refusal
//! ```
//!
//! The other way round, `peer` has the connections over which this node asks other controllers.
//!
//! Nothing that a peer sends reaches `kafka-protocol` before its shape is checked, allocates by a
//! count that was only announced, or panics. A peer that sends garbage loses its connection and
//! costs one counted warning.
//!
//! A new API is a shape in `shapes`, a row in `api_table`, a refusal in `refusals` and a line in
//! `answers`; ApiVersions and dispatch follow.

mod acls;
mod answers;
mod api_table;
mod api_versions;
mod budget;
mod complaints;
mod connection;
pub mod core;
mod describe_cluster;
mod dispatch;
mod envelope;
mod follow_limits;
mod frame;
mod hosts;
mod limits;
mod listener;
mod log_levels;
mod open_files;
mod peer;
mod permissions;
mod refusals;
mod sasl;
mod shape;
mod shapes;
mod wire;

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;

use self::budget::Budget;
use self::complaints::Complaints;
use self::connection::Bounds;
use self::core::Core;
use self::dispatch::Dispatch;
use self::follow_limits::Followed;
use self::limits::Limits;
use self::listener::{Bound, Shared};
use crate::config;
use crate::controller::Settings;
use crate::types::quote;

pub use self::listener::Stats;
pub use self::log_levels::LogLevels;
pub use self::open_files::OpenFiles;
pub use self::peer::{PeerSettings, PeerStatus, Peers};

/// The longest time that a frame may take from its first byte to its last, whatever
/// `connections.max.idle.ms` says: a bound on what slow senders hold.
const FRAME_TIME_MAX: Duration = Duration::from_secs(60);

/// Listeners that are bound and not served yet: peers that connect wait in the backlog.
#[derive(Debug)]
pub struct Listening {
    bound: Vec<Bound>,
    sockets: config::Sockets,
    files: OpenFiles,
    /// `max.connections.per.ip.overrides`, resolved.
    overrides: HashMap<IpAddr, u32>,
}

/// Why a listener cannot be opened.
#[derive(Debug)]
pub struct BindError {
    /// The listener's name.
    pub listener: String,
    /// `host:port` as configured; an empty host is every address.
    pub address: String,
    /// What the system says.
    pub error: io::Error,
}

impl std::fmt::Display for BindError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            listener,
            address,
            error,
        } = self;
        let help = match error.kind() {
            io::ErrorKind::AddrInUse => {
                "another process listens there: stop it, or give this listener another port in \
                 listeners"
            }
            io::ErrorKind::AddrNotAvailable => {
                "this machine has no such address: correct the host in listeners"
            }
            io::ErrorKind::PermissionDenied => {
                "this user may not: give this listener a port above 1023 in listeners"
            }
            _ => "correct host and port of this listener in listeners",
        };
        let (listener, address) = (quote(listener), quote(address));
        write!(
            f,
            "listener {listener} cannot be opened on {address} ({error}); {help}"
        )
    }
}

impl std::error::Error for BindError {}

/// Opens the sockets of `listeners`, all or none, and resolves the names in limits. Must be called
/// inside a tokio runtime. There will be no more connections than `files` have room for.
///
/// # Errors
/// The first listener that cannot be opened.
pub async fn bind<'a>(
    listeners: impl Iterator<Item = &'a config::Listener>,
    sockets: &config::Sockets,
    files: OpenFiles,
) -> Result<Listening, BindError> {
    let mut bound = Vec::new();
    for listener in listeners {
        let opened = listener::bind(listener, sockets).await;
        bound.push(opened.map_err(|error| BindError {
            listener: listener.endpoint.name.clone(),
            address: format!(
                "{}:{}",
                listener.endpoint.host.as_deref().unwrap_or_default(),
                listener.endpoint.port
            ),
            error,
        })?);
    }
    let overrides: Vec<_> = sockets
        .connections_per_ip_overrides
        .clone()
        .into_iter()
        .collect();
    Ok(Listening {
        bound,
        sockets: sockets.clone(),
        files,
        overrides: hosts::limited(&overrides).await,
    })
}

impl Listening {
    /// Each listener's name and the address that it is bound to; the port is never 0.
    pub fn addresses(&self) -> impl Iterator<Item = (&str, SocketAddr)> {
        self.bound.iter().map(|bound| (&*bound.name, bound.address))
    }

    /// Begins to serve. Must be called inside a tokio runtime.
    pub fn serve(self, core: Arc<dyn Core>, settings: Arc<Settings>, levels: LogLevels) -> Server {
        let sockets = &self.sockets;
        let limits = Limits::new(
            sockets.connections_max,
            sockets.connections_per_ip_max,
            self.overrides,
            sockets.connection_rate_max,
            self.files,
        );
        let stats = Arc::new(Stats::default());
        let bounds = bounds(sockets);
        let shared = Arc::new(Shared {
            service: Dispatch {
                core,
                settings,
                levels,
                budget: bounds.budget.clone(),
            },
            bounds,
            limits: Arc::new(limits),
            complaints: Complaints::new(tokio::time::Instant::now()),
            stats: Arc::clone(&stats),
        });
        let (stop, stopped) = watch::channel(false);
        let mut tasks = JoinSet::new();
        let followed = Followed::new(&shared, &self.bound, sockets);
        tasks.spawn(followed.run(stopped.clone()));
        for bound in self.bound {
            tracing::info!("listener {} serves on {}", bound.name, bound.address);
            tasks.spawn(listener::run(bound, Arc::clone(&shared), stopped.clone()));
        }
        Server {
            shared,
            stop,
            tasks,
            stats,
        }
    }
}

fn bounds(sockets: &config::Sockets) -> Bounds {
    let frame_bytes_max = sockets.request_bytes_max as usize;
    let idle_max = sockets.idle_ms_max.map(Duration::from_millis);
    Bounds {
        frame_bytes_max,
        idle_max,
        frame_time_max: idle_max.map_or(FRAME_TIME_MAX, |idle| idle.min(FRAME_TIME_MAX)),
        budget: Budget::new(sockets.queued_request_bytes_max, frame_bytes_max),
    }
}

/// Listeners that serve. Dropping it ends every connection at once.
pub struct Server {
    shared: Arc<Shared<Dispatch>>,
    stop: watch::Sender<bool>,
    tasks: JoinSet<()>,
    stats: Arc<Stats>,
}

impl Server {
    /// Counters of connections.
    #[must_use]
    pub fn stats(&self) -> Arc<Stats> {
        Arc::clone(&self.stats)
    }

    /// How many connections were closed because of what the peer sent.
    #[must_use]
    pub fn bad_connections(&self) -> u64 {
        self.shared.complaints.total()
    }

    /// Returns when a listener has ended by itself, which only a bug of ours can do.
    pub async fn listener_ended(&mut self) {
        self.tasks.join_next().await;
    }

    /// Takes no more connections and no more requests, lets the answers under way out for at most
    /// `patience`, then closes what is left.
    pub async fn stop(mut self, patience: Duration) {
        // Nobody may be left to hear it, which is as good.
        let _ = self.stop.send(true);
        let ended = async { while self.tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(patience, ended).await.is_err() {
            tracing::warn!(
                "connections are closed although answers were under way for {} ms",
                patience.as_millis()
            );
        }
    }
}

#[cfg(test)]
#[path = "server_tests.rs"]
mod tests;

#[cfg(test)]
mod log_levels_tests;

#[cfg(test)]
mod traffic_tests;
