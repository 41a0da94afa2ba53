//! The network between controllers, brokers and clients: a proxy in front of each controller's
//! listener, which all others know as its address.
//!
//! A cut is silent: nothing is closed and nothing refused, bytes just do not go on, and an end of a
//! connection is not told either. When it heals, what waited is delivered late, as TCP does it. New
//! connections to a node that is cut are not made: its queue of them is filled, and the system then
//! drops what asks for more.
//! Frames of requests are taken apart as far as it takes to know who sent which: the sender is the
//! node that its client id names (`raft-client-1`, or `1`), and everybody else is an outsider.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use super::wait::free_port;

/// A node id, or [`OUTSIDE`].
pub(crate) type Party = i32;
/// Everybody who is not a node of the quorum by the client id.
const OUTSIDE: Party = -1;
/// Vote, by its API key.
const VOTE: i16 = 52;
/// Connections that may wait to be accepted.
const QUEUE: u32 = 16;
/// More than fill the queue.
const FILLERS_MAX: usize = 64;
/// Longest request that is passed on.
const FRAME_MAX: usize = 64 << 20;

/// Free ports that are tried before a scenario is given up.
const PORTS_TRIED: usize = 20;

/// What is cut, and what went through.
#[derive(Default)]
struct State {
    /// What they say is lost.
    mute: BTreeSet<Party>,
    /// What others say to them is lost.
    deaf: BTreeSet<Party>,
    /// Their requests for votes end the connection.
    barred: BTreeSet<Party>,
    /// Where each node's proxy listens.
    proxies: BTreeMap<Party, SocketAddr>,
    /// Connections that take the places of others while a node is cut.
    fillers: Vec<TcpStream>,
    /// Requests by sender, receiver and API key.
    requests: BTreeMap<(Party, Party, i16), u64>,
    closed: bool,
}

/// All proxies of a scenario and what is cut between them. Dropping the last one ends them.
#[derive(Clone, Default)]
pub(crate) struct Network(Arc<Wire>);

#[derive(Default)]
struct Wire {
    state: Mutex<State>,
    changed: Condvar,
}

impl Network {
    /// Stands in front of a node's own port; gives the port that others use.
    pub(crate) fn guard(&self, node: Party, port: u16) -> u16 {
        // Another process may have taken it since it was found free.
        let listening = (0..PORTS_TRIED).find_map(|_| {
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
            Some((listen(address).ok()?, address))
        });
        let (listener, address) = listening.expect("a free port");
        self.change(|state| {
            state.proxies.insert(node, address);
        });
        let network = self.clone();
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let reachable =
                    |state: &State| !state.mute.contains(&node) && !state.deaf.contains(&node);
                if !network.wait(reachable) {
                    return;
                }
                let network = network.clone();
                thread::spawn(move || network.serve(client, node, port));
            }
        });
        address.port()
    }

    /// Makes connections to a node's proxy until no more can be made.
    fn fill(&self, node: Party) {
        let Some(address) = self.state().proxies.get(&node).copied() else {
            return;
        };
        let mut fillers = Vec::new();
        let mut refused = 0;
        // The proxy itself may still take one: the last place is full when nobody gets it twice.
        while refused < 3 && fillers.len() < FILLERS_MAX {
            match TcpStream::connect_timeout(&address, Duration::from_millis(60)) {
                Ok(filler) => {
                    refused = 0;
                    fillers.push(filler);
                }
                Err(_) => refused += 1,
            }
        }
        self.change(|state| state.fillers.extend(fillers));
    }

    /// Cuts a node off both ways.
    pub(crate) fn cut(&self, node: Party) {
        self.change(|state| {
            state.mute.insert(node);
            state.deaf.insert(node);
        });
        self.fill(node);
    }

    /// What this node says is lost; it hears everything.
    pub(crate) fn mute(&self, node: Party) {
        self.change(|state| {
            state.mute.insert(node);
        });
        self.fill(node);
    }

    /// This node hears nothing; what it says arrives.
    pub(crate) fn deafen(&self, node: Party) {
        self.change(|state| {
            state.deaf.insert(node);
        });
        self.fill(node);
    }

    /// Ends every cut.
    pub(crate) fn heal(&self) {
        self.change(|state| {
            state.mute.clear();
            state.deaf.clear();
            state.fillers.clear();
        });
    }

    /// Only these nodes' requests for votes are lost from now on: the others win the next election.
    pub(crate) fn bar(&self, nodes: impl IntoIterator<Item = Party>) {
        self.change(|state| state.barred = nodes.into_iter().collect());
    }

    /// How many requests of an API went from one node to another.
    pub(crate) fn requests(&self, from: Party, to: Party, api: i16) -> u64 {
        let state = self.state();
        state.requests.get(&(from, to, api)).copied().unwrap_or(0)
    }

    /// Ends all proxies, and connections with their next bytes.
    pub(crate) fn close(&self) {
        self.change(|state| state.closed = true);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().expect("no pump panics")
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state());
        self.0.changed.notify_all();
    }

    /// Waits while nothing gets from one to the other; false when all is over.
    fn pass(&self, from: Party, to: Party) -> bool {
        self.wait(|state| !state.mute.contains(&from) && !state.deaf.contains(&to))
    }

    /// Waits for a condition; false when all is over.
    fn wait(&self, condition: impl Fn(&State) -> bool) -> bool {
        let state = self
            .0
            .changed
            .wait_while(self.state(), |state| !state.closed && !condition(state));
        !state.expect("no pump panics").closed
    }

    /// One connection: requests on this thread, answers on another.
    fn serve(&self, client: TcpStream, node: Party, port: u16) {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let Ok(server) = TcpStream::connect_timeout(&address, Duration::from_secs(5)) else {
            // Nobody listens: the client learns it at once, unless the node is cut off.
            self.pass(node, OUTSIDE);
            return;
        };
        let ends = || Some((client.try_clone().ok()?, server.try_clone().ok()?));
        let (Some((from_client, to_server)), Some((to_client, from_server))) = (ends(), ends())
        else {
            return;
        };
        let _ = (client.set_nodelay(true), server.set_nodelay(true));
        let party = Arc::new(Mutex::new(OUTSIDE));
        let (network, known) = (self.clone(), Arc::clone(&party));
        let answers = thread::spawn(move || {
            let _ = network.pass_answers(from_server, &to_client, node, &known);
            let _ = to_client.shutdown(Shutdown::Both);
        });
        let _ = self.pass_requests(from_client, &to_server, node, &party);
        let _ = server.shutdown(Shutdown::Both);
        let _ = client.shutdown(Shutdown::Read);
        let _ = answers.join();
    }

    fn pass_requests(
        &self,
        mut from: TcpStream,
        mut to: &TcpStream,
        node: Party,
        party: &Mutex<Party>,
    ) -> io::Result<()> {
        loop {
            let frame = read_frame(&mut from);
            if let Ok(frame) = &frame {
                let (api, sender) = sender(frame);
                if api == VOTE && self.state().barred.contains(&sender) {
                    return Ok(());
                }
                *party.lock().expect("no pump panics") = sender;
            }
            let sender = *party.lock().expect("no pump panics");
            if !self.pass(sender, node) {
                return Ok(());
            }
            let frame = frame?;
            let (api, _) = self::sender(&frame);
            let count = (sender, node, api);
            *self.state().requests.entry(count).or_default() += 1;
            to.write_all(&frame)?;
        }
    }

    fn pass_answers(
        &self,
        mut from: TcpStream,
        mut to: &TcpStream,
        node: Party,
        party: &Mutex<Party>,
    ) -> io::Result<()> {
        let mut bytes = vec![0; 64 << 10];
        loop {
            let read = from.read(&mut bytes).unwrap_or(0);
            let receiver = *party.lock().expect("no pump panics");
            if !self.pass(node, receiver) || read == 0 {
                return Ok(());
            }
            to.write_all(&bytes[..read])?;
        }
    }
}

/// A listener with a short queue.
fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    // The standard library's queue has no setting; the runtime is there only to make the socket.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()?;
    let _entered = runtime.enter();
    let socket = tokio::net::TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    let listener = socket.listen(QUEUE)?.into_std()?;
    listener.set_nonblocking(false)?;
    Ok(listener)
}

/// A whole frame, its length in front.
fn read_frame(from: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut head = [0; 4];
    from.read_exact(&mut head)?;
    let length = usize::try_from(i32::from_be_bytes(head)).unwrap_or(usize::MAX);
    if length > FRAME_MAX {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut frame = vec![0; 4 + length];
    frame[..4].copy_from_slice(&head);
    from.read_exact(&mut frame[4..])?;
    Ok(frame)
}

/// The API key of a frame, and who sent it.
fn sender(frame: &[u8]) -> (i16, Party) {
    let short = |at: usize| {
        let bytes = frame.get(at..at + 2)?;
        Some(i16::from_be_bytes(bytes.try_into().ok()?))
    };
    let name = || {
        let length = usize::try_from(short(12)?).ok()?;
        let text = std::str::from_utf8(frame.get(14..14 + length)?).ok()?;
        let digits = text.strip_prefix("raft-client-").unwrap_or(text);
        digits.parse().ok()
    };
    (short(4).unwrap_or(-1), name().unwrap_or(OUTSIDE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sender_of_a_request_is_the_node_that_its_client_id_names() {
        let frame = |api: i16, client: &str| {
            let mut frame = vec![0, 0, 0, 0];
            frame.extend(api.to_be_bytes());
            frame.extend([0; 6]);
            frame.extend(i16::try_from(client.len()).expect("short").to_be_bytes());
            frame.extend(client.as_bytes());
            frame
        };
        assert_eq!(sender(&frame(52, "raft-client-3")), (52, 3));
        assert_eq!(sender(&frame(62, "7")), (62, 7));
        assert_eq!(sender(&frame(19, "adminclient-1")), (19, OUTSIDE));
        assert_eq!(sender(&[0, 0]), (-1, OUTSIDE));
    }

    /// A server that answers each byte of a request with the same byte.
    fn echo() -> u16 {
        let port = free_port();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).expect("a free port");
        thread::spawn(move || {
            for mut socket in listener.incoming().map_while(Result::ok) {
                thread::spawn(move || {
                    let mut bytes = [0; 64];
                    while let Ok(read @ 1..) = socket.read(&mut bytes) {
                        if socket.write_all(&bytes[..read]).is_err() {
                            return;
                        }
                    }
                });
            }
        });
        port
    }

    #[test]
    fn a_cut_is_silent_and_what_waited_is_delivered_when_it_heals() {
        let network = Network::default();
        let port = network.guard(1, echo());
        let mut client = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).expect("it listens");
        let frame = [0, 0, 0, 10, 0, 1, 0, 0, 0, 0, 0, 9, 0xff, 0xff];
        let mut answer = [0; 14];
        let wait = |client: &TcpStream, ms| {
            let limit = Some(Duration::from_millis(ms));
            client.set_read_timeout(limit).expect("not zero");
        };
        for cut in [Network::cut, Network::mute, Network::deafen] {
            wait(&client, 20_000);
            client.write_all(&frame).expect("open");
            client.read_exact(&mut answer).expect("an answer");
            cut(&network, 1);
            client.write_all(&frame).expect("open");
            wait(&client, 100);
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
            let refused = TcpStream::connect_timeout(&address, Duration::from_millis(200));
            assert_eq!(
                refused.expect_err("silence").kind(),
                io::ErrorKind::TimedOut
            );
            let silent = client.read(&mut answer).expect_err("silence");
            assert_eq!(silent.kind(), io::ErrorKind::WouldBlock);
            network.heal();
            wait(&client, 20_000);
            client.read_exact(&mut answer).expect("the late answer");
            assert_eq!(answer, frame);
        }
        assert_eq!(network.requests(OUTSIDE, 1, 1), 6);
        network.close();
        client.write_all(&frame).expect("open");
        assert_eq!(client.read(&mut answer).unwrap_or(0), 0, "closed");
    }
}
