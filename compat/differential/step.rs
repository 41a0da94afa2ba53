//! One request of the sequence, and its bytes for each of the two sides.

use bytes::{BufMut, Bytes, BytesMut};
use kafka_protocol::messages::{EnvelopeRequest, EnvelopeResponse, ResponseHeader};
use kafka_protocol::protocol::{Decodable, Encodable};
use serde_json::{Value, json};

use super::asks::{Ask, headers};
use super::bindings::Bindings;
use super::side::request;

pub(crate) const ENVELOPE_KEY: i16 = 58;
/// The correlation id of a request inside an envelope.
const INNER_CORRELATION: i32 = 7;

/// On whose behalf a broker forwards a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Principal {
    pub(crate) kind: &'static str,
    pub(crate) name: &'static str,
    pub(crate) token: bool,
}

impl Principal {
    /// The bytes of Kafka's default form: version 0, compact strings, no tagged fields.
    pub(crate) fn bytes(&self) -> Bytes {
        let mut out = BytesMut::new();
        out.put_i16(0);
        for text in [self.kind, self.name] {
            out.put_u8(u8::try_from(text.len() + 1).expect("short"));
            out.put_slice(text.as_bytes());
        }
        out.put_u8(u8::from(self.token));
        out.put_u8(0);
        out.freeze()
    }
}

/// See the module.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    pub(crate) ask: Ask,
    pub(crate) version: i16,
    /// Forwarded by a broker for this principal; sent by the client itself when none.
    pub(crate) forwarded: Option<Principal>,
}

impl Step {
    pub(crate) const fn key(&self) -> i16 {
        if self.forwarded.is_some() {
            ENVELOPE_KEY
        } else {
            self.ask.key()
        }
    }

    /// The version of what is on the wire.
    pub(crate) const fn outer_version(&self) -> i16 {
        if self.forwarded.is_some() {
            0
        } else {
            self.version
        }
    }

    /// The body in Java's words, or in kraftd's.
    pub(crate) fn body(&self, bindings: Option<&Bindings>) -> Result<BytesMut, String> {
        let mut body = BytesMut::new();
        match bindings {
            Some(bindings) => local(&self.ask, bindings).encode(&mut body, self.version)?,
            None => self.ask.encode(&mut body, self.version)?,
        }
        let Some(principal) = &self.forwarded else {
            return Ok(body);
        };
        let inner = request(self.ask.key(), self.version, INNER_CORRELATION, &body);
        let envelope = EnvelopeRequest::default()
            .with_request_data(inner.freeze())
            .with_request_principal(Some(principal.bytes()))
            .with_client_host_address(Bytes::from_static(&[127, 0, 0, 1]));
        let mut body = BytesMut::new();
        envelope.encode(&mut body, 0).map_err(|e| e.to_string())?;
        Ok(body)
    }

    /// The answer as a value.
    pub(crate) fn read(&self, mut body: Bytes) -> Result<Value, String> {
        if self.forwarded.is_none() {
            return self.ask.read_answer(body, self.version);
        }
        let envelope = EnvelopeResponse::decode(&mut body, 0).map_err(|e| e.to_string())?;
        let inner = match envelope.response_data {
            None => Value::Null,
            Some(mut inner) => {
                let header = headers(self.ask.key(), self.version).1;
                let header = ResponseHeader::decode(&mut inner, header);
                let header = header.map_err(|e| e.to_string())?;
                json!({
                    "correlation_id": header.correlation_id,
                    "answer": self.ask.read_answer(inner, self.version)?,
                })
            }
        };
        Ok(json!({"error_code": envelope.error_code, "forwarded": inner}))
    }
}

/// The same request in kraftd's words: its ids, its epochs.
fn local(ask: &Ask, bindings: &Bindings) -> Ask {
    let mut ask = ask.clone();
    let hmac = |hmac: &Bytes| {
        let java: String = hmac.iter().map(|byte| format!("{byte:02x}")).collect();
        bytes_of(bindings.bytes(&java))
    };
    match &mut ask {
        Ask::DeleteTopics(it) => {
            for topic in &mut it.topics {
                topic.topic_id = bindings.id(topic.topic_id);
            }
        }
        Ask::AlterPartition(it) => {
            it.broker_epoch = bindings.epoch(it.broker_epoch);
            for topic in &mut it.topics {
                topic.topic_id = bindings.id(topic.topic_id);
                let partitions = topic.partitions.iter_mut();
                for replica in partitions.flat_map(|it| &mut it.new_isr_with_epochs) {
                    replica.broker_epoch = bindings.epoch(replica.broker_epoch);
                }
            }
        }
        Ask::AssignReplicasToDirs(it) => {
            it.broker_epoch = bindings.epoch(it.broker_epoch);
            for topic in it.directories.iter_mut().flat_map(|it| &mut it.topics) {
                topic.topic_id = bindings.id(topic.topic_id);
            }
        }
        Ask::AllocateProducerIds(it) => it.broker_epoch = bindings.epoch(it.broker_epoch),
        Ask::BrokerHeartbeat(it) => {
            it.broker_epoch = bindings.epoch(it.broker_epoch);
            it.current_metadata_offset = bindings.epoch(it.current_metadata_offset);
        }
        Ask::BrokerRegistration(it) => {
            it.previous_broker_epoch = bindings.epoch(it.previous_broker_epoch);
        }
        Ask::RenewDelegationToken(it) => it.hmac = hmac(&it.hmac),
        Ask::ExpireDelegationToken(it) => it.hmac = hmac(&it.hmac),
        _ => {}
    }
    ask
}

/// The bytes that hexadecimal digits spell.
pub(crate) fn bytes_of(digits: &str) -> Bytes {
    let digits: Vec<_> = digits.chars().filter_map(|c| c.to_digit(16)).collect();
    let bytes = digits.chunks(2).map(|pair| {
        let byte = pair.iter().fold(0, |byte, digit| byte * 16 + digit);
        u8::try_from(byte).expect("two digits")
    });
    bytes.collect()
}
