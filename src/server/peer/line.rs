//! The line to one other node: what the core wants of it, and the task that does it.
//!
//! The task exists while there is something to do: questions, or a connection that is open or to be
//! kept open. It owns the connection; the core and the task meet in [`Wish`], under a lock that
//! nobody holds while waiting.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::dial::{self, DialFault, Lookup};
use super::link::{self, Link, Received};
use super::status::{Named, Notes, PeerStatus};
use super::{Shared, WAITING_MAX, lock};
use crate::node::{Event, PeerAnswer};
use crate::raft::{Ask, CallFault, Peer, PeerName};
use crate::server::frame::LENGTH_BYTES;
use crate::server::wire::answers::Garbage;
use crate::types::CallId;

/// The pause before a connection that is to be kept open is tried again, at first.
const PAUSE_MIN: Duration = Duration::from_millis(50);
/// It doubles up to this.
const PAUSE_MAX: Duration = Duration::from_millis(500);
/// How much room is made for a long frame at a time.
const RAISE_BYTES: usize = 256 * 1024;
/// The room for a read. An idle connection holds no more than this.
const READ_BYTES_MIN: usize = 4 * 1024;

/// Frames up to this are copied out of the buffer.
const COPIED_BYTES_MAX: usize = 16 * 1024;

/// A host and a port.
type Address = (String, u16);

fn address(peer: &Peer) -> Address {
    (peer.host.clone(), peer.port)
}

/// A question that was not sent yet.
struct Queued {
    call: CallId,
    to: Address,
    ask: Ask,
    deadline: Instant,
}

/// What the core wants.
#[derive(Default)]
struct Wish {
    queue: VecDeque<Queued>,
    /// Questions that the task has taken and that wait for their answers.
    taken: usize,
    kept: Option<Address>,
    /// How often `kept` changed.
    keeps: u64,
    /// How often the core hung up.
    hangups: u64,
    /// `PeerLost` was told, and no connection was open since.
    lost: bool,
    task: Option<AbortHandle>,
}

/// The line to one other node.
pub(super) struct Line {
    name: PeerName,
    shared: Arc<Shared>,
    wish: Mutex<Wish>,
    changed: Notify,
    notes: Mutex<Notes>,
}

/// Why a connection, or the attempt to get one, came to its end.
enum End {
    /// The core hung up.
    HungUp,
    /// Nobody needs it, or it is needed somewhere else.
    Dropped,
    /// It failed.
    Failed(DialFault),
}

fn failed(fault: CallFault, text: String) -> End {
    End::Failed(DialFault { fault, text })
}

impl Line {
    pub(super) fn new(name: PeerName, shared: Arc<Shared>) -> Self {
        Self {
            name,
            shared,
            wish: Mutex::default(),
            changed: Notify::new(),
            notes: Mutex::default(),
        }
    }

    /// Puts a question down. False when too many wait.
    pub(super) fn ask(
        self: &Arc<Self>,
        runtime: &Handle,
        call: CallId,
        to: &Peer,
        ask: Ask,
    ) -> bool {
        let mut wish = lock(&self.wish);
        if wish.queue.len() + wish.taken >= WAITING_MAX {
            return false;
        }
        wish.queue.push_back(Queued {
            call,
            to: address(to),
            ask,
            deadline: Instant::now() + self.shared.settings.request_timeout,
        });
        self.wake(runtime, &mut wish);
        true
    }

    /// Ends the connection and forgets what was asked.
    pub(super) fn hang_up(&self) {
        let mut wish = lock(&self.wish);
        wish.queue.clear();
        wish.taken = 0;
        wish.hangups += 1;
        self.changed.notify_one();
    }

    /// Where to stay connected, if anywhere.
    pub(super) fn keep(self: &Arc<Self>, runtime: &Handle, peer: Option<&Peer>) {
        let mut wish = lock(&self.wish);
        let kept = peer.map(address);
        if wish.kept != kept {
            wish.kept = kept;
            wish.keeps += 1;
            self.wake(runtime, &mut wish);
        }
    }

    fn wake(self: &Arc<Self>, runtime: &Handle, wish: &mut Wish) {
        let needed = wish.kept.is_some() || !wish.queue.is_empty();
        // A task that panicked has not said so.
        let gone = wish.task.as_ref().is_none_or(AbortHandle::is_finished);
        if gone && needed {
            let line = Arc::clone(self);
            wish.taken = 0;
            wish.task = Some(
                runtime
                    .spawn(async move { line.run().await })
                    .abort_handle(),
            );
        }
        self.changed.notify_one();
    }

    /// Ends the task.
    pub(super) fn stop(&self) {
        if let Some(task) = lock(&self.wish).task.take() {
            task.abort();
        }
    }

    /// Whether nobody needs this line any more.
    pub(super) fn is_unused(&self) -> bool {
        let wish = lock(&self.wish);
        wish.kept.is_none() && wish.task.as_ref().is_none_or(AbortHandle::is_finished)
    }

    pub(super) fn status(&self) -> PeerStatus {
        lock(&self.notes).tell(self.name, Instant::now())
    }

    fn tell(&self, event: Event) {
        (self.shared.tell)(event);
    }

    fn answer(&self, call: CallId, outcome: Result<PeerAnswer, CallFault>) {
        self.tell(Event::Answered { call, outcome });
    }

    /// One connection after the other, until nobody needs one.
    async fn run(self: Arc<Self>) {
        let mut pause = PAUSE_MIN;
        let mut lookup = Lookup::default();
        while let Some(mut call) = self.next_call() {
            let began = Instant::now();
            let end = call.run(&mut lookup).await;
            // One that always closes at once does not count.
            let lasted = began.elapsed() > PAUSE_MAX && call.was_open();
            if lasted || matches!(end, End::Dropped) {
                pause = PAUSE_MIN;
            }
            let dropped = matches!(end, End::Dropped);
            self.settle(&mut call, end);
            if !dropped {
                self.rest(&call.target, pause).await;
                pause = (pause * 2).min(PAUSE_MAX);
            }
        }
    }

    /// Where to connect to now. `None` ends the task, which is noted under the same lock.
    fn next_call(&self) -> Option<Call<'_>> {
        let mut wish = lock(&self.wish);
        let asked = wish.queue.front().map(|queued| queued.to.clone());
        let target = asked.or_else(|| wish.kept.clone());
        if target.is_none() {
            wish.task = None;
        }
        target.map(|target| Call {
            line: self,
            target,
            hangups: wish.hangups,
            keeps: wish.keeps,
            link: None,
        })
    }

    /// Waits before a connection to the same address is tried that nobody asks anything on.
    async fn rest(&self, target: &Address, pause: Duration) {
        let end = Instant::now() + pause;
        loop {
            {
                let wish = lock(&self.wish);
                if !wish.queue.is_empty() || wish.kept.as_ref() != Some(target) {
                    return;
                }
            }
            tokio::select! {
                () = self.changed.notified() => {}
                () = sleep_until(end) => return,
            }
        }
    }

    /// Tells everybody what the end of a connection means for them.
    fn settle(&self, call: &mut Call<'_>, end: End) {
        let mut calls = call.link.as_mut().map(Link::take_calls).unwrap_or_default();
        let was_open = call.was_open();
        let (fault, text) = match end {
            End::HungUp => return self.note_end("given up: no answer in time"),
            End::Dropped => (CallFault::Closed, None),
            End::Failed(DialFault { fault, text }) => (fault, Some(text)),
        };
        match &text {
            Some(text) => self.report(&call.target, text, was_open),
            None => self.note_end("closed: nobody needed it"),
        }
        let lost = {
            let mut wish = lock(&self.wish);
            if wish.hangups != call.hangups {
                return;
            }
            wish.taken = 0;
            let mut asked = false;
            if text.is_some() && !was_open {
                let (here, elsewhere): (VecDeque<_>, VecDeque<_>) =
                    wish.queue.drain(..).partition(|it| it.to == call.target);
                wish.queue = elsewhere;
                asked = !here.is_empty();
                calls.extend(here.into_iter().map(|queued| queued.call));
            }
            let gone = text.is_some() && fault == CallFault::Closed;
            let news = gone && (was_open || asked || !wish.lost);
            wish.lost |= gone;
            news
        };
        for call in calls {
            self.answer(call, Err(fault));
        }
        if let (true, PeerName::Node(peer)) = (lost, self.name) {
            self.tell(Event::PeerLost { peer });
        }
    }

    fn note_end(&self, text: &str) {
        let mut notes = lock(&self.notes);
        notes.connected = None;
        notes.error = Some((text.to_owned(), Instant::now()));
    }

    /// Notes a failure. The log hears of it once, not at every attempt.
    fn report(&self, (host, port): &Address, text: &str, was_open: bool) {
        let before = {
            let mut notes = lock(&self.notes);
            if notes.connected.take().is_some() {
                notes.seen = Some(Instant::now());
            }
            notes.error.replace((text.to_owned(), Instant::now()))
        };
        let name = Named(self.name);
        if was_open {
            tracing::info!("the connection to {name} at {host}:{port} ended: {text}");
        } else if before.is_none_or(|(before, _)| before != text) {
            tracing::info!("no connection to {name} at {host}:{port}: {text}");
        } else {
            tracing::debug!("no connection to {name} at {host}:{port}: {text}");
        }
    }
}

/// What the task should do next.
enum Next {
    /// Go on.
    Go,
    /// End the connection.
    Stop(End),
}

/// One connection of a line.
struct Call<'a> {
    line: &'a Line,
    target: Address,
    /// What [`Wish::hangups`] was when it began.
    hangups: u64,
    /// What [`Wish::keeps`] was.
    keeps: u64,
    link: Option<Link>,
}

impl Call<'_> {
    async fn run(&mut self, lookup: &mut Lookup) -> End {
        let deadline = Instant::now() + self.line.shared.settings.request_timeout;
        let connected = tokio::select! {
            connected = connect(self.line, &self.target, lookup, deadline) => connected,
            end = self.called_off() => return end,
        };
        let mut stream = match connected {
            Ok(stream) => stream,
            Err(fault) => return End::Failed(fault),
        };
        let node = self.line.shared.settings.node_id;
        let mut link = Link::greet(format!("raft-client-{node}"), deadline);
        let end = self.exchange(&mut stream, &mut link).await;
        self.link = Some(link);
        if let End::HungUp | End::Failed(_) = end {
            // What was written is of no use any more: the system need not try to get it across.
            let _ = stream.set_zero_linger();
        }
        end
    }

    fn was_open(&self) -> bool {
        self.link.as_ref().is_some_and(Link::is_open)
    }

    /// Waits until the connection that is being made is wanted no more.
    async fn called_off(&self) -> End {
        loop {
            {
                let wish = lock(&self.line.wish);
                if wish.hangups != self.hangups {
                    return End::HungUp;
                }
                if !self.is_wanted(&wish) {
                    return End::Dropped;
                }
            }
            self.line.changed.notified().await;
        }
    }

    /// Whether anybody wants a connection to this address rather than to another.
    fn is_wanted(&self, wish: &Wish) -> bool {
        match wish.queue.front() {
            Some(queued) => queued.to == self.target,
            None => wish.kept.as_ref() == Some(&self.target),
        }
    }

    /// Takes what the core wants and writes it down. Before the greeting nothing is taken.
    fn take_wishes(&self, link: &mut Link) -> Next {
        let mut wish = lock(&self.line.wish);
        if wish.hangups != self.hangups {
            return Next::Stop(End::HungUp);
        }
        let elsewhere = match wish.queue.front() {
            Some(queued) => queued.to != self.target,
            // Where the last question went is as good as where to be kept, until the core says
            // anew where that is: else the two would take turns.
            None => {
                let kept = wish.kept.as_ref().filter(|_| wish.keeps != self.keeps);
                link.waiting() == 0 && kept.is_some_and(|kept| *kept != self.target)
            }
        };
        if elsewhere {
            return Next::Stop(End::Dropped);
        }
        if !link.is_open() {
            return Next::Go;
        }
        let mut refused = Vec::new();
        while wish.queue.front().is_some_and(|it| it.to == self.target) {
            if let Some(queued) = wish.queue.pop_front() {
                match link.ask(queued.call, &queued.ask, queued.deadline) {
                    Ok(()) => wish.taken += 1,
                    Err(fault) => refused.push((queued.call, fault)),
                }
            }
        }
        drop(wish);
        for (call, fault) in refused {
            self.line.answer(call, Err(fault));
        }
        Next::Go
    }

    /// Reads and writes until the end.
    async fn exchange(&self, stream: &mut TcpStream, link: &mut Link) -> End {
        let (mut reader, mut writer) = stream.split();
        let mut buffer = BytesMut::new();
        let mut used = Instant::now();
        loop {
            if let Next::Stop(end) = self.take_wishes(link) {
                return end;
            }
            if link.waiting() > 0 {
                used = Instant::now();
            }
            let until = self.patience(link, used);
            make_room(&mut buffer);
            tokio::select! {
                () = self.line.changed.notified() => {}
                read = reader.read_buf(&mut buffer) => {
                    if let Err(end) = self.read(read, &mut buffer, link) {
                        return end;
                    }
                }
                written = writer.write_buf(&mut link.out), if !link.out.is_empty() => {
                    if let Err(error) = written {
                        return failed(dial::fault_of(&error), error.to_string());
                    }
                }
                () = sleep_until(until) => {
                    if link.waiting() > 0 {
                        return failed(CallFault::Silent, "no answer in time".to_owned());
                    }
                    if lock(&self.line.wish).queue.is_empty() {
                        return End::Dropped;
                    }
                }
            }
        }
    }

    /// Until when nothing needs to happen.
    fn patience(&self, link: &Link, used: Instant) -> Instant {
        const FOREVER: Duration = Duration::from_secs(365 * 24 * 3600);
        if let Some(deadline) = link.deadline() {
            return deadline;
        }
        let kept = lock(&self.line.wish).kept.is_some();
        let idle = self.line.shared.settings.idle_max.filter(|_| !kept);
        used + idle.unwrap_or(FOREVER)
    }

    /// Takes the frames that are whole.
    fn read(
        &self,
        read: io::Result<usize>,
        buffer: &mut BytesMut,
        link: &mut Link,
    ) -> Result<(), End> {
        match read {
            Ok(0) => {
                let text = "the other side closed the connection";
                return Err(failed(CallFault::Closed, text.to_owned()));
            }
            Ok(_) => {}
            Err(error) => return Err(failed(dial::fault_of(&error), error.to_string())),
        }
        let garbage = |what: Garbage| failed(CallFault::Garbage, what.to_string());
        while let Some(length) = link::frame_length(buffer).map_err(garbage)? {
            if buffer.len() < LENGTH_BYTES + length {
                break;
            }
            let received = link.receive(take_frame(buffer, length));
            self.received(received.map_err(garbage)?);
        }
        Ok(())
    }

    fn received(&self, received: Received) {
        let line = self.line;
        lock(&line.notes).seen = Some(Instant::now());
        match received {
            Received::Again => {}
            Received::Greeted { pre_vote } => {
                lock(&line.notes).error = None;
                lock(&line.wish).lost = false;
                let (host, port) = &self.target;
                tracing::info!("connected to {} at {host}:{port}", Named(line.name));
                if let PeerName::Node(peer) = line.name {
                    line.tell(Event::PeerFound { peer, pre_vote });
                }
            }
            Received::Answer(call, answer) => {
                let mut wish = lock(&line.wish);
                if wish.hangups == self.hangups {
                    wish.taken = wish.taken.saturating_sub(1);
                }
                drop(wish);
                line.answer(call, Ok(answer));
            }
        }
    }
}

/// Takes the frame at the start of `buffer`. What is kept of a long one keeps all of the buffer, so
/// that a short one is copied out of it: a batch of 70 bytes must not hold kilobytes.
pub(super) fn take_frame(buffer: &mut BytesMut, length: usize) -> Bytes {
    buffer.advance(LENGTH_BYTES);
    if length <= COPIED_BYTES_MAX {
        let frame = Bytes::copy_from_slice(&buffer[..length]);
        buffer.advance(length);
        return frame;
    }
    let frame = buffer.split_to(length).freeze();
    if buffer.is_empty() {
        *buffer = BytesMut::new();
    }
    frame
}

/// Makes room for the next read. A long frame gets it as its bytes arrive.
fn make_room(buffer: &mut BytesMut) {
    let wanted = match link::frame_length(buffer) {
        Ok(Some(length)) => (LENGTH_BYTES + length).saturating_sub(buffer.len()),
        Ok(None) | Err(_) => 0,
    };
    buffer.reserve(wanted.clamp(READ_BYTES_MIN, RAISE_BYTES));
}

/// Resolves and connects, and notes how that went.
async fn connect(
    line: &Line,
    (host, port): &Address,
    lookup: &mut Lookup,
    deadline: Instant,
) -> Result<TcpStream, DialFault> {
    {
        let mut notes = lock(&line.notes);
        (notes.host, notes.port) = (host.clone(), *port);
        notes.addresses.clear();
    }
    let addresses = lookup
        .resolve(&line.shared.resolve, (host, *port), deadline)
        .await?;
    lock(&line.notes).addresses.clone_from(&addresses);
    let connected = timeout_at(deadline, dial::connect(&addresses, deadline)).await;
    let (stream, address) = connected.unwrap_or_else(|_| {
        Err(DialFault {
            fault: CallFault::Silent,
            text: "no connection in time".to_owned(),
        })
    })?;
    lock(&line.notes).connected = Some(address);
    Ok(stream)
}
