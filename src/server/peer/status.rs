//! How it stands with one other node, for people.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::time::Instant;

use crate::raft::PeerName;

/// What is known of the connection to another node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerStatus {
    /// Who.
    pub name: PeerName,
    /// The host that was tried last, as configured or as told by the quorum.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// What the host resolved to at the last attempt; empty when it did not.
    pub addresses: Vec<SocketAddr>,
    /// The address of the connection, if there is one.
    pub connected: Option<SocketAddr>,
    /// Why the last attempt failed or the last connection ended, with how long ago that was; gone
    /// once a connection is open.
    pub error: Option<(String, Duration)>,
    /// How long ago the last answer came.
    pub seen: Option<Duration>,
}

impl std::fmt::Display for PeerStatus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} at {}:{}", Named(self.name), self.host, self.port)?;
        if self.addresses.is_empty() {
            f.write_str(" (not resolved)")?;
        } else {
            let addresses = self
                .addresses
                .iter()
                .map(|address| address.ip().to_string());
            write!(f, " ({})", addresses.collect::<Vec<_>>().join(", "))?;
        }
        match (&self.connected, &self.error) {
            (Some(_), _) => f.write_str(": connected")?,
            (None, Some((error, _))) => write!(f, ": {error}")?,
            (None, None) => f.write_str(": not connected")?,
        }
        match self.seen {
            Some(ago) => write!(f, ", last seen {} ms ago", ago.as_millis()),
            None => f.write_str(", never seen"),
        }
    }
}

/// A node's name in a sentence.
pub(super) struct Named(pub(super) PeerName);

impl std::fmt::Display for Named {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            PeerName::Node(id) => write!(f, "node {id}"),
            PeerName::Bootstrap(_) => f.write_str("a bootstrap server"),
        }
    }
}

/// The same as it is kept: moments instead of ages.
#[derive(Clone, Debug, Default)]
pub(super) struct Notes {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) addresses: Vec<SocketAddr>,
    pub(super) connected: Option<SocketAddr>,
    pub(super) error: Option<(String, Instant)>,
    pub(super) seen: Option<Instant>,
}

impl Notes {
    /// As of `now`.
    pub(super) fn tell(&self, name: PeerName, now: Instant) -> PeerStatus {
        let ago = |then: Instant| now.saturating_duration_since(then);
        PeerStatus {
            name,
            host: self.host.clone(),
            port: self.port,
            addresses: self.addresses.clone(),
            connected: self.connected,
            error: self.error.clone().map(|(text, then)| (text, ago(then))),
            seen: self.seen.map(ago),
        }
    }
}
