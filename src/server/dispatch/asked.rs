//! A request that is to be answered, and the frames that answer it.

use bytes::{BufMut as _, Bytes, BytesMut};
use kafka_protocol::messages as m;
use kafka_protocol::messages::incremental_alter_configs_response::AlterConfigsResourceResponse;
use kafka_protocol::protocol::Encodable;

use crate::controller;
use crate::server::answers;
use crate::server::api_table::Api;
use crate::server::connection::Answered;
use crate::server::core::Answer;
use crate::server::shape::Checked;
use crate::server::{envelope, frame};
use crate::types::{ApiError, ErrorCode};

/// A request as far as its answer needs it.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) api: &'static Api,
    pub(super) version: i16,
    pub(super) correlation_id: i32,
    /// The body, to be decoded again when all of it is refused: refusals name its items.
    pub(super) body: Checked,
    /// The correlation id of the envelope that the request came in.
    pub(super) envelope: Option<i32>,
    /// What became of this node's loggers, which the core knows nothing of.
    pub(super) loggers: Vec<AlterConfigsResourceResponse>,
}

impl Asked {
    /// The whole frame of an answer.
    pub(super) fn answer(&self, encode: impl FnOnce(&mut BytesMut) -> anyhow::Result<()>) -> Bytes {
        let flexible = self.api.flexible_response(self.version);
        let mut out = frame::begin_response(self.correlation_id, flexible);
        if let Err(error) = encode(&mut out) {
            tracing::error!(
                "an answer to {} v{} cannot be encoded: {error}",
                self.api.name,
                self.version
            );
            return self.refuse(&ErrorCode::UnknownServerError.into());
        }
        self.wrap(out)
    }

    /// The whole frame of an answer, or of the refusal of all of the request.
    pub(super) fn tell<R: Encodable>(&self, answer: Result<R, ApiError>) -> Bytes {
        match answer {
            Ok(answer) => self.answer(|out| answer.encode(out, self.version)),
            Err(error) => self.refuse(&error),
        }
    }

    /// The frame that refuses all of the request.
    pub(super) fn refuse(&self, error: &ApiError) -> Bytes {
        if let Some(outer) = self.envelope
            && error.code == ErrorCode::NotController
        {
            return envelope_frame(outer, &envelope::refuse(error.code));
        }
        let flexible = self.api.flexible_response(self.version);
        let mut out = frame::begin_response(self.correlation_id, flexible);
        match (self.api.refuse)(self.body.clone(), self.version, error) {
            Ok(body) => out.put(body),
            // The body was decoded before, or has no more than first items, which were checked; and
            // a refusal is made of defaults and its names.
            Err(bug) => tracing::error!("{} cannot be refused: {bug}", self.api.name),
        }
        self.wrap(out)
    }

    fn wrap(&self, out: BytesMut) -> Bytes {
        let frame = frame::finish_response(out);
        match self.envelope {
            None => frame,
            Some(outer) => {
                let inner = frame.slice(frame::LENGTH_BYTES..);
                envelope_frame(outer, &envelope::wrap(inner))
            }
        }
    }

    pub(super) fn finish(&self, mut answer: Answer) -> Answered {
        if let Answer::Controller(Ok(controller::Reply::IncrementalAlterConfigs(reply))) =
            &mut answer
        {
            reply.responses.extend_from_slice(&self.loggers);
        }
        match answer {
            Answer::Controller(Err(error)) => self.refuse(&error).into(),
            // A broker turns away from a controller that stopped leading only for the envelope's
            // own code: told by the answer inside, it would come back here for ever.
            Answer::Raft(response) if self.envelope.is_some() && response.is_of_no_leader() => {
                self.refuse(&ErrorCode::NotController.into()).into()
            }
            answer => {
                let mute_ms = match &answer {
                    // The broker that forwards tells its own client to wait.
                    Answer::Controller(Ok(reply)) if self.envelope.is_none() => {
                        reply.throttle_time_ms()
                    }
                    _ => 0,
                };
                let frame = self.answer(|out| answers::encode(answer, self.version, out));
                Answered {
                    mute_ms,
                    ..Answered::from(frame)
                }
            }
        }
    }
}

/// Envelopes have one version, and it is flexible.
pub(super) fn envelope_frame(correlation_id: i32, response: &m::EnvelopeResponse) -> Bytes {
    let mut out = frame::begin_response(correlation_id, true);
    if let Err(bug) = response.encode(&mut out, 0) {
        tracing::error!("an envelope cannot be encoded: {bug}");
    }
    frame::finish_response(out)
}
