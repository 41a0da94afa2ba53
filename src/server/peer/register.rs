//! Registering this controller with the active one (KIP-919), on a connection of its own.

use std::time::Duration;

use bytes::BytesMut;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};

use super::Shared;
use super::dial::{self, Lookup};
use super::line::take_frame;
use super::link::{self, Link, Received};
use crate::controller::register_controller::Registration;
use crate::node::PeerAnswer;
use crate::raft::{CallFault, Peer};
use crate::server::frame::LENGTH_BYTES;
use crate::types::ErrorCode;

/// How long it may take in all: the active controller answers when the record is committed.
const PATIENCE: Duration = Duration::from_secs(8);

/// Connects, registers, and hangs up.
pub(super) async fn register(
    shared: &Shared,
    to: &Peer,
    registration: &Registration,
) -> Result<ErrorCode, CallFault> {
    let deadline = Instant::now() + PATIENCE;
    let mut lookup = Lookup::default();
    let dialed = async {
        let addresses = lookup
            .resolve(&shared.resolve, (&to.host, to.port), deadline)
            .await?;
        dial::connect(&addresses, deadline).await
    };
    let (mut stream, _) = timeout_at(deadline, dialed)
        .await
        .map_err(|_| CallFault::Silent)?
        .map_err(|fault| fault.fault)?;
    let exchanged = exchange(shared, &mut stream, registration, deadline);
    let answer = timeout_at(deadline, exchanged)
        .await
        .map_err(|_| CallFault::Silent)??;
    match answer {
        PeerAnswer::Registered(ErrorCode::None, _) => Ok(ErrorCode::None),
        PeerAnswer::Registered(code, text) => {
            let text = text.unwrap_or_default();
            tracing::debug!("the registration is answered with {code}: {text}");
            Ok(code)
        }
        PeerAnswer::Raft(_)
        | PeerAnswer::Fetch { .. }
        | PeerAnswer::Snapshot { .. }
        | PeerAnswer::Versions(_) => Err(CallFault::Garbage),
    }
}

async fn exchange(
    shared: &Shared,
    stream: &mut TcpStream,
    registration: &Registration,
    deadline: Instant,
) -> Result<PeerAnswer, CallFault> {
    let client_id = format!("controller-{}", shared.settings.node_id);
    let mut link = Link::greet(client_id, deadline);
    let mut buffer = BytesMut::new();
    loop {
        let written = stream.write_all_buf(&mut link.out).await;
        written.map_err(|error| dial::fault_of(&error))?;
        let length = loop {
            let length = link::frame_length(&buffer).map_err(|_| CallFault::Garbage)?;
            if let Some(length) = length.filter(|it| buffer.len() >= LENGTH_BYTES + it) {
                break length;
            }
            let read = stream.read_buf(&mut buffer).await;
            if read.map_err(|error| dial::fault_of(&error))? == 0 {
                return Err(CallFault::Closed);
            }
        };
        let received = link.receive(take_frame(&mut buffer, length));
        match received.map_err(|_| CallFault::Garbage)? {
            Received::Greeted { .. } => link.register(registration, deadline)?,
            Received::Again => {}
            Received::Answer(_, answer) => return Ok(answer),
        }
    }
}
