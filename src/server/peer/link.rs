//! Questions and answers on one connection, without the connection: what is to be written, and what
//! a frame that was read means. ApiVersions comes first; before its answer nothing else is asked.

use std::collections::VecDeque;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use tokio::time::Instant;

use crate::controller::register_controller::Registration;
use crate::node::PeerAnswer;
use crate::raft::{Ask, CallFault};
use crate::server::frame::LENGTH_BYTES;
use crate::server::shape::Cursor;
use crate::server::wire::answers::{self, Garbage, Versions};
use crate::server::wire::asks::{self, APIS, Api};
use crate::types::CallId;

/// The longest frame that is read: as long as a server takes one by default
/// (`socket.request.max.bytes`).
pub(super) const FRAME_BYTES_MAX: usize = 100 * 1024 * 1024;
/// Vote with the pre-vote (KIP-996).
const PRE_VOTE_SINCE: i16 = 2;

/// A question that was written.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    correlation: i32,
    /// `None`: the greeting.
    call: Option<CallId>,
    api: Api,
    version: i16,
    deadline: Instant,
}

/// What a frame means.
#[derive(Debug)]
pub(super) enum Received {
    /// What the other side can do is known now.
    Greeted {
        /// It knows the pre-vote.
        pre_vote: bool,
    },
    /// It wants an older greeting, which is to be written.
    Again,
    /// An answer.
    Answer(CallId, PeerAnswer),
}

/// What the other side can do.
#[derive(Clone, Debug)]
struct Known {
    /// The version of each question that both sides understand, highest first come; by the place
    /// in [`APIS`].
    versions: [Option<i16>; APIS.len()],
}

/// One connection's questions.
#[derive(Debug)]
pub(super) struct Link {
    client_id: String,
    known: Option<Known>,
    waiting: VecDeque<Waiting>,
    correlation: i32,
    /// Bytes to be written.
    pub(super) out: BytesMut,
}

impl Link {
    /// A new connection: the greeting is to be written.
    pub(super) fn greet(client_id: String, deadline: Instant) -> Self {
        let mut link = Self {
            client_id,
            known: None,
            waiting: VecDeque::new(),
            correlation: 0,
            out: BytesMut::new(),
        };
        link.write_greeting(asks::API_VERSIONS_MAX, deadline);
        link
    }

    fn write_greeting(&mut self, version: i16, deadline: Instant) {
        let body = |version, out: &mut BytesMut| asks::encode(&Ask::Versions, version, out);
        let written = self.write(None, asks::API_VERSIONS, version, deadline, body);
        debug_assert!(written.is_ok(), "every version carries the greeting");
    }

    /// Whether questions may be asked.
    pub(super) const fn is_open(&self) -> bool {
        self.known.is_some()
    }

    /// Questions (with the greeting) that wait for an answer.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// When the first of them has waited too long.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.waiting.iter().map(|waiting| waiting.deadline).min()
    }

    /// Takes what waits: nobody will answer it.
    pub(super) fn take_calls(&mut self) -> Vec<CallId> {
        let waiting = std::mem::take(&mut self.waiting);
        waiting.iter().filter_map(|waiting| waiting.call).collect()
    }

    /// Writes a question, in the highest version that both sides understand.
    ///
    /// # Errors
    /// There is no such version, or it cannot carry the question.
    pub(super) fn ask(
        &mut self,
        call: CallId,
        ask: &Ask,
        deadline: Instant,
    ) -> Result<(), CallFault> {
        let api = asks::api_of(ask).ok_or(CallFault::Unsupported)?;
        let version = self.version_of(api)?;
        let body = |version, out: &mut BytesMut| asks::encode(ask, version, out);
        self.write(Some(call), api, version, deadline, body)
    }

    /// Writes the registration of this controller.
    ///
    /// # Errors
    /// As [`Self::ask`].
    pub(super) fn register(
        &mut self,
        registration: &Registration,
        deadline: Instant,
    ) -> Result<(), CallFault> {
        let api = asks::REGISTER_CONTROLLER;
        let version = self.version_of(api)?;
        let body = |version, out: &mut BytesMut| asks::registration(registration, version, out);
        self.write(Some(CallId(0)), api, version, deadline, body)
    }

    fn version_of(&self, api: Api) -> Result<i16, CallFault> {
        let place = APIS.iter().position(|known| *known == api);
        let known = self.known.as_ref().ok_or(CallFault::Unsupported)?;
        place
            .and_then(|place| known.versions[place])
            .ok_or(CallFault::Unsupported)
    }

    fn write(
        &mut self,
        call: Option<CallId>,
        api: Api,
        version: i16,
        deadline: Instant,
        body: impl FnOnce(i16, &mut BytesMut) -> Result<(), CallFault>,
    ) -> Result<(), CallFault> {
        let correlation = self.correlation;
        let mut frame = BytesMut::new();
        frame.put_i32(0);
        frame.put_i16(api.key);
        frame.put_i16(version);
        frame.put_i32(correlation);
        // The client id has a length of two bytes in every header.
        frame.put_i16(i16::try_from(self.client_id.len()).unwrap_or(0));
        frame.put_slice(self.client_id.as_bytes());
        if version >= api.flexible_since {
            frame.put_u8(0);
        }
        body(version, &mut frame)?;
        let length = i32::try_from(frame.len() - LENGTH_BYTES);
        let length = length.map_err(|_| CallFault::Unsupported)?;
        frame[..LENGTH_BYTES].copy_from_slice(&length.to_be_bytes());
        self.correlation = self.correlation.wrapping_add(1);
        self.out.extend_from_slice(&frame);
        self.waiting.push_back(Waiting {
            correlation,
            call,
            api,
            version,
            deadline,
        });
        Ok(())
    }

    /// Reads an answer, without its length. After an error nothing on this connection makes sense.
    ///
    /// # Errors
    /// It is no answer to anything that was asked.
    pub(super) fn receive(&mut self, mut frame: Bytes) -> Result<Received, Garbage> {
        if frame.len() < 4 {
            return Err(Garbage("a frame without a header".to_owned()));
        }
        let correlation = frame.get_i32();
        let place = self
            .waiting
            .iter()
            .position(|waiting| waiting.correlation == correlation);
        let Some(waiting) = place.and_then(|place| self.waiting.get(place)).copied() else {
            return Err(Garbage(format!("an answer to nothing ({correlation})")));
        };
        // ApiVersions is answered with header v0 at every version, so that everybody can read it.
        if waiting.version >= waiting.api.flexible_since && waiting.api != asks::API_VERSIONS {
            let mut cursor = Cursor::new(&frame);
            let skipped = cursor.skip_tagged_fields();
            skipped.map_err(|fault| Garbage(format!("the header of an answer: {fault}")))?;
            let used = cursor.position();
            frame.advance(used);
        }
        let received = match waiting.call {
            None => self.greeted(waiting, &frame)?,
            Some(call) => {
                let answer = answers::decode(waiting.api, waiting.version, frame);
                let answer = answer.map_err(|Garbage(what)| {
                    let (key, version) = (waiting.api.key, waiting.version);
                    Garbage(format!("the answer to API {key} v{version}: {what}"))
                })?;
                Received::Answer(call, answer)
            }
        };
        self.waiting.retain(|it| it.correlation != correlation);
        Ok(received)
    }

    fn greeted(&mut self, waiting: Waiting, body: &[u8]) -> Result<Received, Garbage> {
        match answers::api_versions(waiting.version, body)? {
            Versions::Lower(max) if (0..waiting.version).contains(&max) => {
                self.write_greeting(max, waiting.deadline);
                Ok(Received::Again)
            }
            Versions::Lower(_) => Err(Garbage(
                "ApiVersions is served in no version that is known here".to_owned(),
            )),
            Versions::Known { ranges, .. } => {
                let common = |api: Api| {
                    let theirs = ranges.iter().find(|(key, ..)| *key == api.key);
                    let (_, min, max) = *theirs?;
                    let version = max.min(api.max);
                    (version >= min.max(api.min)).then_some(version)
                };
                let known = Known {
                    versions: APIS.map(common),
                };
                let place = APIS.iter().position(|api| *api == asks::VOTE);
                let vote = place.and_then(|place| known.versions[place]);
                self.known = Some(known);
                Ok(Received::Greeted {
                    pre_vote: vote.is_some_and(|version| version >= PRE_VOTE_SINCE),
                })
            }
        }
    }
}

/// The length of the frame at the start of `bytes`, once it is there.
///
/// # Errors
/// No answer has such a length.
pub(super) fn frame_length(bytes: &[u8]) -> Result<Option<usize>, Garbage> {
    let Some(prefix) = bytes.first_chunk::<LENGTH_BYTES>() else {
        return Ok(None);
    };
    let length = i32::from_be_bytes(*prefix);
    match usize::try_from(length) {
        Ok(size) if size <= FRAME_BYTES_MAX => Ok(Some(size)),
        _ => Err(Garbage(format!("a frame of {length} bytes"))),
    }
}
