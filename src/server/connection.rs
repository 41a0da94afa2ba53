//! One connection: frames in, answers out in the order of the requests.
//!
//! A connection is one task. It reads ahead of the answers, within bounds: at most
//! [`IN_FLIGHT_MAX`] requests wait for their answers, a request whose answer may be large waits
//! alone, and memory comes from the [`Budget`]. What a peer sends is never trusted and never
//! panics.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{AcquireError, OwnedSemaphorePermit, watch};
use tokio::time::{Instant, sleep_until, timeout};

use super::budget::{AtPeer, Budget, Held, HeldFor, Turn};
use super::frame::{self, LENGTH_BYTES};
use crate::types::SecurityProtocol;

/// Requests of one connection that may wait for their answers.
pub(crate) const IN_FLIGHT_MAX: usize = 16;
/// How much a large frame takes from the budget at a time.
const RAISE_BYTES: usize = 256 * 1024;
/// The room for the first read of a frame: an idle connection holds no more than this.
const READ_BYTES_MIN: usize = 1024;
/// How often a request is offered again to a core that was busy.
pub(crate) const BUSY_RETRY: Duration = Duration::from_millis(5);
/// When to give up and answer with a retriable error.
pub(crate) const BUSY_MAX: Duration = Duration::from_secs(2);
/// How much of a peer's text goes into a log line.
const PRINTED_CHARS_MAX: usize = 100;
/// A frame above this is copied out of the read buffer's way, so that the buffer stays small.
const BUFFER_KEPT_BYTES: usize = 64 * 1024;

/// An answer.
#[derive(Debug)]
pub(crate) struct Answered {
    /// A whole response frame.
    pub(crate) frame: Bytes,
    /// How long nothing is read from the connection once the answer is sent, in milliseconds: the
    /// client is told to wait, and does so whether it listens or not.
    pub(crate) mute_ms: u32,
    /// Memory that it takes beside what its request was weighed with.
    pub(crate) held: Held,
}

impl From<Bytes> for Answered {
    fn from(frame: Bytes) -> Self {
        Self {
            frame,
            mute_ms: 0,
            held: Held::default(),
        }
    }
}

/// An answer that is not there yet.
pub(crate) type Later = Pin<Box<dyn Future<Output = Result<Answered, Closing>> + Send>>;

/// Offers a request again to a core that was busy. With `true` it gives up and answers.
pub(crate) type Retry = Box<dyn FnMut(bool) -> Option<Later> + Send>;

/// What became of a request.
pub(crate) enum Started {
    /// Answered.
    Answer(Bytes),
    /// Somebody works on it.
    Later(Later),
    /// The core's queue is full.
    Busy(Retry),
}

/// What a request asks of the connection before it is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Weight {
    /// Memory for the frame and what it decodes to.
    pub(crate) bytes: usize,
    /// The answer may be large: nothing is read ahead past this request.
    pub(crate) alone: bool,
    /// It may be much work for this task: such requests take turns.
    pub(crate) turn: Option<Turn>,
}

/// Why a connection ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Closing {
    /// The peer sent garbage: counted and warned of.
    Garbage(String),
    /// A sentence that only debugging needs: the peer went away, was idle.
    Quiet(String),
}

/// Turns frames into answers.
pub(crate) trait Service: Send + Sync + 'static {
    /// A frame that was checked, as far as it had to be read for that.
    type Weighed: Send;
    /// Looks at the api key and version (the first eight bytes of a header) before the rest of the
    /// frame is read.
    fn admit(&self, header: &[u8]) -> Result<(), Closing>;
    /// Checks a whole frame (without its length) and weighs it.
    fn weigh(&self, frame: Bytes) -> Result<(Weight, Self::Weighed), Closing>;
    /// Starts a frame that was weighed.
    fn start(&self, peer: &mut Peer, frame: Self::Weighed) -> Result<Started, Closing>;
}

/// Who is on the other side.
#[derive(Clone, Debug)]
pub(crate) struct Peer {
    /// Its address.
    pub(crate) address: SocketAddr,
    /// The listener on which it came.
    pub(crate) listener: Arc<str>,
    /// How it talks there.
    pub(crate) protocol: SecurityProtocol,
    /// What it says it is (KIP-511), for logs only: client id, software name, software version.
    pub(crate) client: ClientInfo,
}

/// See [`Peer::client`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClientInfo {
    /// Of the last request.
    pub(crate) client_id: Option<String>,
    /// From ApiVersions, as name and version.
    pub(crate) software: Option<(String, String)>,
}

/// For logs: nothing that a peer sends may end a line or fill a disk.
impl std::fmt::Display for ClientInfo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.client_id {
            Some(id) => write!(f, "client id {}", printable(id))?,
            None => f.write_str("no client id")?,
        }
        match &self.software {
            Some((name, version)) => write!(f, ", {} {}", printable(name), printable(version)),
            None => Ok(()),
        }
    }
}

/// The beginning of a peer's text, on one line.
fn printable(text: &str) -> String {
    let shown: String = text.chars().take(PRINTED_CHARS_MAX).collect();
    let more = if shown.len() < text.len() { "..." } else { "" };
    format!("{}{more}", shown.escape_debug())
}

/// The bounds of every connection.
#[derive(Clone, Debug)]
pub(crate) struct Bounds {
    /// `socket.request.max.bytes`.
    pub(crate) frame_bytes_max: usize,
    /// `connections.max.idle.ms`.
    pub(crate) idle_max: Option<Duration>,
    /// From the first byte of a frame to its last; also how long a peer may take to read an answer.
    pub(crate) frame_time_max: Duration,
    /// Memory of all connections.
    pub(crate) budget: Budget,
}

struct InFlight {
    answer: Later,
    alone: bool,
    held: Held,
}

struct Waiting<W> {
    frame: W,
    weight: Weight,
}

type Raise = Pin<Box<dyn Future<Output = Result<OwnedSemaphorePermit, AcquireError>> + Send>>;

/// The state of one connection between two events.
struct Connection<'a, S: Service> {
    service: &'a S,
    bounds: &'a Bounds,
    peer: &'a mut Peer,
    buffer: BytesMut,
    /// Covers the frame at the head of `buffer`, or `waiting`.
    held: Held,
    raise: Option<Raise>,
    /// Waits for the turn of `waiting`, and has it then.
    awaited_turn: Option<Raise>,
    turn: Option<OwnedSemaphorePermit>,
    /// An answer that is larger than what is held for it, and waits for the rest.
    answered: Option<(Bytes, Weight)>,
    /// There while a frame that is not whole, or not started, holds memory.
    at_peer: Option<AtPeer>,
    /// A whole frame that waits for the budget or its turn.
    waiting: Option<Waiting<S::Weighed>>,
    /// A request that the core had no room for, and since when.
    busy: Option<(Retry, Instant)>,
    busy_weight: Option<Weight>,
    in_flight: VecDeque<InFlight>,
    /// When the frame at the head of `buffer` began.
    frame_began: Option<Instant>,
    active: Instant,
    /// Nothing is read before.
    muted_until: Option<Instant>,
    stopping: bool,
}

/// Serves a connection until it ends. `stop` becoming true ends it after the answers that are under
/// way; the caller limits how long that may take.
pub(crate) async fn serve<S: Service>(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    service: &S,
    bounds: &Bounds,
    peer: &mut Peer,
    mut stop: watch::Receiver<bool>,
) -> Closing {
    let (mut reader, mut writer) = tokio::io::split(stream);
    let mut connection = Connection {
        service,
        bounds,
        peer,
        buffer: BytesMut::new(),
        held: Held::default(),
        raise: None,
        awaited_turn: None,
        turn: None,
        answered: None,
        at_peer: None,
        waiting: None,
        busy: None,
        busy_weight: None,
        in_flight: VecDeque::new(),
        frame_began: None,
        active: Instant::now(),
        muted_until: None,
        stopping: false,
    };
    match connection.run(&mut reader, &mut writer, &mut stop).await {
        Ok(never) => match never {},
        Err(closing) => {
            // Whatever was written goes out before the FIN; the peer may be gone already.
            let _ = timeout(bounds.frame_time_max, writer.shutdown()).await;
            closing
        }
    }
}

fn quiet(why: impl Into<String>) -> Closing {
    Closing::Quiet(why.into())
}

impl<S: Service> Connection<'_, S> {
    async fn run(
        &mut self,
        reader: &mut (impl AsyncRead + Unpin),
        writer: &mut (impl AsyncWrite + Unpin),
        stop: &mut watch::Receiver<bool>,
    ) -> Result<std::convert::Infallible, Closing> {
        self.stopping = *stop.borrow();
        loop {
            self.advance()?;
            if self.stopping && !self.is_working() {
                return Err(quiet("the server stops"));
            }
            if self.frame_began.is_none() || !self.held.takes() {
                self.at_peer = None;
            } else if self.at_peer.is_none() {
                self.at_peer = Some(self.bounds.budget.at_peer(HeldFor::Frame));
            }
            let wants = self.wants_bytes();
            if wants > 0 {
                self.buffer.reserve(wants);
            }
            let wake = self.deadline();
            tokio::select! {
                biased;
                changed = stop.changed(), if !self.stopping => {
                    self.stopping = changed.is_err() || *stop.borrow();
                }
                answer = first(&mut self.in_flight) => self.send(writer, answer?).await?,
                permit = raised(&mut self.raise) => {
                    self.raise = None;
                    self.held.add(permit.map_err(|_| quiet("the server stops"))?);
                }
                permit = raised(&mut self.awaited_turn) => {
                    self.awaited_turn = None;
                    self.turn = Some(permit.map_err(|_| quiet("the server stops"))?);
                }
                () = ended(self.at_peer.as_ref()) => return Err(self.made_others_wait()),
                read = reader.read_buf(&mut self.buffer), if wants > 0 => {
                    self.received(read)?;
                }
                () = sleep_until(wake) => self.time_passed()?,
            }
        }
    }

    /// Starts every request that the bounds allow.
    fn advance(&mut self) -> Result<(), Closing> {
        while self.busy.is_none() {
            if let Some((answer, weight)) = self.answered.take() {
                if !self.bounds.budget.covers(&self.held, answer.len()) {
                    self.raise_to(answer.len());
                    self.answered = Some((answer, weight));
                    return Ok(());
                }
                self.turn = None;
                self.push(Box::pin(std::future::ready(Ok(answer.into()))), weight);
                continue;
            }
            if let Some(waiting) = self.waiting.take() {
                if !self.bounds.budget.covers(&self.held, waiting.weight.bytes) {
                    // Others may hold what this one waits for and wait for what this one holds.
                    self.frame_began.get_or_insert_with(Instant::now);
                    self.raise_to(waiting.weight.bytes);
                    self.waiting = Some(waiting);
                    return Ok(());
                }
                self.frame_began = None;
                if let Some(turn) = waiting.weight.turn
                    && self.turn.is_none()
                {
                    if self.awaited_turn.is_none() {
                        self.awaited_turn = Some(Box::pin(self.bounds.budget.turn(turn)));
                    }
                    self.waiting = Some(waiting);
                    return Ok(());
                }
                self.start(waiting)?;
                if self.answered.is_none() {
                    self.turn = None;
                }
                continue;
            }
            let Some(frame) = self.next_frame()? else {
                return Ok(());
            };
            let (weight, frame) = self.service.weigh(frame)?;
            self.waiting = Some(Waiting { frame, weight });
        }
        Ok(())
    }

    /// Takes a whole frame off the buffer if there is one and a request may be started.
    fn next_frame(&mut self) -> Result<Option<Bytes>, Closing> {
        if self.stopping || self.buffer.is_empty() {
            self.frame_began = None;
            return Ok(None);
        }
        let full = self.in_flight.len() >= IN_FLIGHT_MAX || self.muted_until.is_some();
        if full || self.in_flight.iter().any(|request| request.alone) {
            // Whatever waits in the buffer waits for us, not for the peer.
            self.frame_began = None;
            return Ok(None);
        }
        self.frame_began.get_or_insert_with(Instant::now);
        let length = frame::frame_length(&self.buffer, self.bounds.frame_bytes_max)
            .map_err(|fault| Closing::Garbage(fault.to_string()))?;
        let Some(length) = length else {
            return Ok(None);
        };
        if let Some(header) = self
            .buffer
            .get(LENGTH_BYTES..LENGTH_BYTES + frame::HEADER_BYTES_MIN)
        {
            self.service.admit(header)?;
        }
        if self.buffer.len() < LENGTH_BYTES + length {
            return Ok(None);
        }
        self.frame_began = None;
        self.active = Instant::now();
        let mut frame = self.buffer.split_to(LENGTH_BYTES + length);
        if length > BUFFER_KEPT_BYTES || self.buffer.is_empty() {
            self.buffer = BytesMut::from(&self.buffer[..]);
        }
        Ok(Some(frame.split_off(LENGTH_BYTES).freeze()))
    }

    fn start(&mut self, request: Waiting<S::Weighed>) -> Result<(), Closing> {
        let answer = match self.service.start(self.peer, request.frame)? {
            Started::Answer(bytes) => {
                self.answered = Some((bytes, request.weight));
                return Ok(());
            }
            Started::Later(later) => later,
            Started::Busy(retry) => {
                self.busy = Some((retry, Instant::now()));
                self.busy_weight = Some(request.weight);
                return Ok(());
            }
        };
        self.push(answer, request.weight);
        Ok(())
    }

    fn push(&mut self, answer: Later, weight: Weight) {
        self.in_flight.push_back(InFlight {
            answer,
            alone: weight.alone,
            held: std::mem::take(&mut self.held),
        });
    }

    fn raise_to(&mut self, bytes: usize) {
        if self.raise.is_none() {
            self.raise = Some(Box::pin(self.bounds.budget.raise(&self.held, bytes)));
        }
    }

    /// How many more bytes may be read now; 0 is none.
    fn wants_bytes(&mut self) -> usize {
        if self.stopping || self.busy.is_some() || self.muted_until.is_some() {
            return 0;
        }
        if self.waiting.is_some() || self.answered.is_some() {
            // Nothing is worked out for a peer that has gone.
            let looks = self.buffer.is_empty() && self.in_flight.is_empty();
            return if looks { READ_BYTES_MIN } else { 0 };
        }
        let room = self.held.bytes().saturating_sub(self.buffer.len());
        if room == 0 && self.frame_began.is_some() {
            // The head of the buffer is a partial frame that needs more than it holds.
            self.raise_to(self.buffer.len() + RAISE_BYTES);
        }
        room.min(READ_BYTES_MIN.max(self.buffer.len()))
    }

    fn received(&mut self, read: std::io::Result<usize>) -> Result<(), Closing> {
        match read {
            Ok(0) if self.frame_began.is_some() && self.waiting.is_none() => {
                Err(Closing::Garbage(format!(
                    "the peer closed it in the middle of a frame, after {} bytes",
                    self.buffer.len()
                )))
            }
            Ok(0) => Err(quiet("the peer closed it")),
            Ok(_) => Ok(()),
            Err(error) => Err(quiet(error.to_string())),
        }
    }

    fn made_others_wait(&self) -> Closing {
        Closing::Garbage(format!(
            "others wait for memory that a frame holds, {} (queued.max.request.bytes)",
            match &self.waiting {
                Some(request) => format!("and it needs {} bytes itself", request.weight.bytes),
                None => format!("of which {} bytes came", self.buffer.len()),
            }
        ))
    }

    async fn send(
        &mut self,
        writer: &mut (impl AsyncWrite + Unpin),
        answer: Answered,
    ) -> Result<(), Closing> {
        // Until it is written, the answer is somewhere: what was weighed for it is held as long.
        let sent = self.in_flight.pop_front();
        // While this waits for the peer, nobody takes what comes, and others wait behind it:
        // `advance` and `wants_bytes` ask again.
        self.awaited_turn = None;
        self.raise = None;
        let holds = {
            let mut behind = sent.iter().chain(&self.in_flight);
            answer.held.takes() || self.held.takes() || behind.any(|it| it.held.takes())
        };
        self.at_peer = None;
        let at_peer = holds.then(|| self.bounds.budget.at_peer(HeldFor::Answer));
        let written = timeout(self.bounds.frame_time_max, writer.write_all(&answer.frame));
        let written = tokio::select! {
            biased;
            written = written => written,
            () = ended(at_peer.as_ref()) => return Err(Closing::Garbage(format!(
                "others wait for memory that is held behind an answer of {} bytes, which the peer \
                 does not read (queued.max.request.bytes)",
                answer.frame.len()
            ))),
        };
        self.active = Instant::now();
        if answer.mute_ms > 0 {
            let until = self.active + Duration::from_millis(answer.mute_ms.into());
            self.muted_until = self.muted_until.max(Some(until));
        }
        match written {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(quiet(error.to_string())),
            Err(_) => Err(quiet("the peer does not read its answers")),
        }
    }

    /// When something is due even if nothing happens.
    fn deadline(&self) -> Instant {
        // Far enough to be never, near enough not to overflow.
        let mut wake = Instant::now() + Duration::from_secs(86_400);
        if self.busy.is_some() {
            wake = wake.min(Instant::now() + BUSY_RETRY);
        }
        if let Some(until) = self.muted_until {
            wake = wake.min(until);
        }
        if let Some(began) = self.frame_began {
            wake = wake.min(began + self.bounds.frame_time_max);
        }
        if let Some(idle) = self.idle_deadline() {
            wake = wake.min(idle);
        }
        wake
    }

    /// Whether a request was started whose answer is not sent.
    fn is_working(&self) -> bool {
        !self.in_flight.is_empty() || self.busy.is_some() || self.answered.is_some()
    }

    fn idle_deadline(&self) -> Option<Instant> {
        let idle = self.bounds.idle_max?;
        let working = self.is_working() || self.waiting.is_some();
        (!working).then(|| self.active.checked_add(idle)).flatten()
    }

    fn time_passed(&mut self) -> Result<(), Closing> {
        let now = Instant::now();
        self.muted_until = self.muted_until.filter(|until| *until > now);
        if let Some((mut retry, since)) = self.busy.take() {
            let give_up = now.duration_since(since) >= BUSY_MAX;
            match retry(give_up) {
                Some(answer) => {
                    let weight = self.busy_weight.take().unwrap_or(Weight {
                        bytes: 0,
                        alone: true,
                        turn: None,
                    });
                    self.push(answer, weight);
                }
                None => self.busy = Some((retry, since)),
            }
        }
        if let Some(began) = self.frame_began
            && now >= began + self.bounds.frame_time_max
        {
            let ms = self.bounds.frame_time_max.as_millis();
            return Err(Closing::Garbage(match &self.waiting {
                Some(request) => format!(
                    "no memory for a request that takes {} bytes within {ms} ms \
                     (queued.max.request.bytes)",
                    request.weight.bytes
                ),
                None => format!(
                    "a frame was not complete after {ms} ms ({} bytes of it came)",
                    self.buffer.len()
                ),
            }));
        }
        match self.idle_deadline() {
            Some(deadline) if now >= deadline => Err(quiet("idle for too long")),
            _ => Ok(()),
        }
    }
}

/// The answer of the oldest request; never ends while there is none.
async fn first(in_flight: &mut VecDeque<InFlight>) -> Result<Answered, Closing> {
    match in_flight.front_mut() {
        Some(request) => request.answer.as_mut().await,
        None => std::future::pending().await,
    }
}

/// The budget's permit; never ends while none is asked for.
async fn raised(raise: &mut Option<Raise>) -> Result<OwnedSemaphorePermit, AcquireError> {
    match raise {
        Some(raise) => raise.as_mut().await,
        None => std::future::pending().await,
    }
}

/// Ends when others have waited for too long for what is held.
async fn ended(at_peer: Option<&AtPeer>) {
    match at_peer {
        Some(at_peer) => at_peer.ended().await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
#[path = "connection_tests.rs"]
mod tests;
