//! Raft messages of the wire <-> the small types of the consensus core: what peers ask and are
//! answered (`requests`, `responses`), what this node asks and is answered (`asks`, `answers`).
//!
//! Wire words that differ from ours are translated here and nowhere else: the high watermark is the
//! commit offset, `-1` is no leader, `BrokerId` is any node's id.

pub(crate) mod answers;
pub(crate) mod asks;
mod requests;
mod responses;
mod voters;

use kafka_protocol::messages::TopicName;
use kafka_protocol::protocol::StrBytes;

use crate::types::ids::METADATA_TOPIC;

pub(crate) use requests::{
    begin_quorum_epoch_request, describe_quorum_request, end_quorum_epoch_request, fetch_request,
    fetch_snapshot_request, vote_request,
};
pub(crate) use responses::{
    SnapshotChunk, begin_quorum_epoch_response, describe_quorum_response,
    end_quorum_epoch_response, fetch_response, fetch_snapshot_response, vote_response,
};
pub(crate) use voters::{
    add_voter_request, add_voter_response, remove_voter_request, remove_voter_response,
    update_voter_request, update_voter_response,
};

fn text(value: &str) -> StrBytes {
    StrBytes::from_string(value.to_owned())
}

fn metadata_topic() -> TopicName {
    TopicName(StrBytes::from_static_str(METADATA_TOPIC))
}

/// The only one, if there is exactly one.
fn only<T>(mut items: Vec<T>) -> Option<T> {
    if items.len() == 1 { items.pop() } else { None }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
pub(super) mod recorded_tests;
