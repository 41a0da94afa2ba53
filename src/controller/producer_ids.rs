//! AllocateProducerIds (KIP-730): blocks of ids that are never handed out twice.

use kafka_protocol::messages::{
    AllocateProducerIdsRequest, AllocateProducerIdsResponse, ProducerId,
};

use super::register_broker::check_epoch;
use super::{Decision, Reply, View};
use crate::records::{ProducerIdsRecord, Record, VersionedRecord};
use crate::types::{ApiError, BrokerEpoch, ErrorCode, NodeId};

/// Ids in one block.
pub(super) const BLOCK: i64 = 1_000;

/// Hands out the next block.
///
/// # Errors
/// STALE_BROKER_EPOCH; UNKNOWN_SERVER_ERROR when the ids are used up.
pub(super) fn decide(
    view: &View<'_>,
    request: &AllocateProducerIdsRequest,
) -> Result<Decision, ApiError> {
    check_epoch(
        view,
        NodeId(request.broker_id.0),
        BrokerEpoch(request.broker_epoch),
    )?;
    let first = view.image.next_producer_id();
    let Some(next) = first.checked_add(BLOCK) else {
        return Err(ApiError::new(
            ErrorCode::UnknownServerError,
            "Exhausted all producerIds as the next block's end producerId has exceeded the int64 \
             type limit",
        ));
    };
    let record = Record::ProducerIds(ProducerIdsRecord {
        broker_id: request.broker_id.0,
        broker_epoch: request.broker_epoch,
        next_producer_id: next,
        ..ProducerIdsRecord::default()
    });
    let reply = AllocateProducerIdsResponse::default()
        .with_producer_id_start(ProducerId(first))
        .with_producer_id_len(1_000);
    let records = vec![VersionedRecord { version: 0, record }];
    Ok(Decision {
        records,
        reply: Reply::AllocateProducerIds(reply),
        atomic: false,
    })
}
