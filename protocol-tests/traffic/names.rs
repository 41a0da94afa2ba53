//! What two clusters name differently: broker epochs (offsets of registrations) and topic ids
//! (drawn at random).

use bytes::{Bytes, BytesMut};
use kafka_protocol::messages as m;
use kafka_protocol::messages::ApiKey;
use kafka_protocol::protocol::{Decodable, Encodable};
use kraftd::types::ids::base64url;
use serde_json::Value;
use uuid::Uuid;

/// Pairs of the same thing as Java and as kraftd named it.
#[derive(Default)]
pub(crate) struct Names {
    epochs: Vec<(i64, i64)>,
    topics: Vec<(Uuid, Uuid)>,
}

fn replaced(bytes: &[u8], pairs: impl Iterator<Item = (Uuid, Uuid)>) -> Bytes {
    let mut all = bytes.to_vec();
    for (from, to) in pairs {
        let mut at = 0;
        while let Some(found) = all[at..].windows(16).position(|it| it == from.as_bytes()) {
            all[at + found..at + found + 16].copy_from_slice(to.as_bytes());
            at += found + 16;
        }
    }
    Bytes::from(all)
}

fn changed<M: Decodable + Encodable>(
    body: &Bytes,
    version: i16,
    change: impl FnOnce(&mut M),
) -> Bytes {
    let mut message = M::decode(&mut body.clone(), version).unwrap();
    change(&mut message);
    let mut bytes = BytesMut::new();
    message.encode(&mut bytes, version).unwrap();
    bytes.freeze()
}

impl Names {
    /// kraftd's epoch of the registration that Java gave the epoch `java`.
    pub(crate) fn epoch(&self, java: i64) -> i64 {
        let found = self.epochs.iter().find(|(epoch, _)| *epoch == java);
        match found {
            Some((_, ours)) => *ours,
            // No epoch, or one that nobody was given.
            None => java,
        }
    }

    /// A request's body with kraftd's names in it. Heartbeats have offsets as well and are not
    /// handled here.
    pub(crate) fn to_ours(&self, api: ApiKey, version: i16, body: &Bytes) -> Bytes {
        let body = replaced(body, self.topics.iter().copied());
        match api {
            ApiKey::AllocateProducerIds => {
                changed::<m::AllocateProducerIdsRequest>(&body, version, |request| {
                    request.broker_epoch = self.epoch(request.broker_epoch);
                })
            }
            ApiKey::AlterPartition => {
                changed::<m::AlterPartitionRequest>(&body, version, |request| {
                    request.broker_epoch = self.epoch(request.broker_epoch);
                    let topics = request.topics.iter_mut();
                    for partition in topics.flat_map(|topic| &mut topic.partitions) {
                        for broker in &mut partition.new_isr_with_epochs {
                            broker.broker_epoch = self.epoch(broker.broker_epoch);
                        }
                    }
                })
            }
            ApiKey::AssignReplicasToDirs => {
                changed::<m::AssignReplicasToDirsRequest>(&body, version, |request| {
                    request.broker_epoch = self.epoch(request.broker_epoch);
                })
            }
            ApiKey::BrokerRegistration => {
                changed::<m::BrokerRegistrationRequest>(&body, version, |request| {
                    request.previous_broker_epoch = self.epoch(request.previous_broker_epoch);
                })
            }
            _ => body,
        }
    }

    /// Learns from a pair of answers what is the same.
    pub(crate) fn learn(&mut self, api: ApiKey, version: i16, java: &Bytes, ours: &Bytes) {
        match api {
            ApiKey::BrokerRegistration => {
                let epoch = |body: &Bytes| {
                    let answer = m::BrokerRegistrationResponse::decode(&mut body.clone(), version);
                    answer.unwrap().broker_epoch
                };
                let pair = (epoch(java), epoch(ours));
                if pair.0 >= 0 && pair.1 >= 0 {
                    self.epochs.push(pair);
                }
            }
            ApiKey::CreateTopics => {
                let ids = |body: &Bytes| {
                    let answer = m::CreateTopicsResponse::decode(&mut body.clone(), version);
                    let mut topics = answer.unwrap().topics;
                    topics.sort_by(|a, b| a.name.cmp(&b.name));
                    topics.into_iter().map(|topic| topic.topic_id)
                };
                let pairs = ids(java).zip(ids(ours));
                let known = |pair: &(Uuid, Uuid)| !pair.0.is_nil() && !pair.1.is_nil();
                self.topics.extend(pairs.filter(known));
            }
            _ => {}
        }
    }

    /// kraftd's answer with Java's names in it. Epochs are told only in answers to registrations,
    /// which are compared without them.
    pub(crate) fn to_java(&self, answer: &Bytes) -> Bytes {
        replaced(
            answer,
            self.topics.iter().map(|(java, ours)| (*ours, *java)),
        )
    }

    /// Gives the epochs and ids in a record of kraftd's their names in Java's cluster.
    pub(crate) fn rename(&self, value: &mut Value) {
        match value {
            Value::Object(fields) => {
                for (name, field) in fields {
                    if name == "brokerEpoch" {
                        let ours = field.as_i64();
                        let pair = self.epochs.iter().find(|(_, epoch)| Some(*epoch) == ours);
                        if let Some((java, _)) = pair {
                            *field = Value::from(*java);
                        }
                    } else {
                        self.rename(field);
                    }
                }
            }
            Value::Array(items) => {
                for item in items {
                    self.rename(item);
                }
            }
            Value::String(text) => {
                let mut topics = self.topics.iter();
                if let Some((java, _)) = topics.find(|(_, ours)| base64url(*ours) == *text) {
                    *text = base64url(*java);
                }
            }
            _ => {}
        }
    }
}
