//! From a name to a connection: the name is resolved anew, and every address that it has is tried.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;

use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};

use crate::raft::CallFault;

/// Addresses of one name that are tried.
const ADDRESSES_MAX: usize = 16;

type Resolving = Pin<Box<dyn Future<Output = io::Result<Vec<SocketAddr>>> + Send>>;

/// Asks for the addresses of a host and port.
pub(super) type Resolve = Arc<dyn Fn(String, u16) -> Resolving + Send + Sync>;

/// The system's resolver.
pub(super) fn system() -> Resolve {
    Arc::new(|host, port| {
        Box::pin(async move {
            let found = tokio::net::lookup_host((host, port)).await?;
            Ok(found.take(ADDRESSES_MAX).collect())
        })
    })
}

/// Why there is no connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DialFault {
    /// What the core is told.
    pub(super) fault: CallFault,
    /// What people are told.
    pub(super) text: String,
}

fn silent(text: String) -> DialFault {
    DialFault {
        fault: CallFault::Silent,
        text,
    }
}

/// What the core is told of an error of the network: whether the other process is gone, or nothing
/// is known of it.
pub(super) fn fault_of(error: &io::Error) -> CallFault {
    match error.kind() {
        io::ErrorKind::ConnectionRefused
        | io::ErrorKind::ConnectionReset
        | io::ErrorKind::ConnectionAborted
        | io::ErrorKind::BrokenPipe
        | io::ErrorKind::NotConnected
        | io::ErrorKind::UnexpectedEof => CallFault::Closed,
        _ => CallFault::Silent,
    }
}

/// A look-up that may outlive the attempt that began it: a resolver that hangs must hang once, not
/// once an attempt.
#[derive(Default)]
pub(super) struct Lookup(Option<Asked>);

/// The host, the port, and what will be found.
type Asked = (String, u16, JoinHandle<io::Result<Vec<SocketAddr>>>);

impl Lookup {
    /// Resolves. What an earlier attempt waited for in vain is of no use once it has come.
    pub(super) async fn resolve(
        &mut self,
        resolve: &Resolve,
        (host, port): (&str, u16),
        deadline: Instant,
    ) -> Result<Vec<SocketAddr>, DialFault> {
        let fresh = match &self.0 {
            Some((old, at, task)) => old == host && *at == port && !task.is_finished(),
            None => false,
        };
        if !fresh {
            let task = tokio::spawn(resolve(host.to_owned(), port));
            self.0 = Some((host.to_owned(), port, task));
        }
        let Some((.., task)) = &mut self.0 else {
            return Err(silent("no look-up is under way".to_owned()));
        };
        let Ok(ended) = timeout_at(deadline, task).await else {
            return Err(silent("the name was not resolved in time".to_owned()));
        };
        self.0 = None;
        let found = ended
            .map_err(io::Error::other)
            .flatten()
            .map_err(|error| silent(format!("the name cannot be resolved: {error}")))?;
        if found.is_empty() {
            return Err(silent("the name has no address".to_owned()));
        }
        Ok(found)
    }
}

/// Tries the addresses in turn, each for its share of the time.
pub(super) async fn connect(
    addresses: &[SocketAddr],
    deadline: Instant,
) -> Result<(TcpStream, SocketAddr), DialFault> {
    // The process is gone only if nobody listens at any of its addresses.
    let mut fault = CallFault::Closed;
    let mut texts = Vec::new();
    for (tried, address) in addresses.iter().enumerate() {
        let left = u32::try_from(addresses.len() - tried).unwrap_or(u32::MAX);
        let now = Instant::now();
        let share = now + deadline.saturating_duration_since(now) / left;
        match timeout_at(share, TcpStream::connect(address)).await {
            Ok(Ok(stream)) if is_itself(&stream) => {
                // Without this the port would stay in use for a minute after the close.
                let _ = stream.set_zero_linger();
                texts.push(format!("{address}: nobody listens"));
            }
            Ok(Ok(stream)) => match stream.set_nodelay(true) {
                Ok(()) => return Ok((stream, *address)),
                Err(error) => texts.push(format!("{address}: {error}")),
            },
            Ok(Err(error)) => {
                if fault_of(&error) != CallFault::Closed {
                    fault = CallFault::Silent;
                }
                texts.push(format!("{address}: {error}"));
            }
            Err(_) => {
                fault = CallFault::Silent;
                texts.push(format!("{address}: no connection in time"));
            }
        }
    }
    Err(DialFault {
        fault,
        text: texts.join("; "),
    })
}

/// Whoever tries often enough to reach a port of this machine that nobody listens on, and that is
/// one of those which connections get, will some day be given it, and be connected to itself.
fn is_itself(stream: &TcpStream) -> bool {
    match (stream.local_addr(), stream.peer_addr()) {
        (Ok(local), Ok(peer)) => local == peer,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::{TcpListener, TcpSocket};

    #[tokio::test]
    async fn a_connection_to_itself_is_recognised() {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let own = socket.local_addr().unwrap();
        assert!(is_itself(&socket.connect(own).await.unwrap()));

        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        assert!(!is_itself(&TcpStream::connect(address).await.unwrap()));
    }
}
