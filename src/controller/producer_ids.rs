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
    Ok(Decision::loose(records, Reply::AllocateProducerIds(reply)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::Request;
    use crate::controller::testing::World;
    use kafka_protocol::messages::BrokerId;

    fn next(world: &mut World, epoch: i64) -> Result<(i64, i32), ErrorCode> {
        let request = AllocateProducerIdsRequest::default()
            .with_broker_id(BrokerId(1))
            .with_broker_epoch(epoch);
        let decision = world.take(0, Request::AllocateProducerIds(request));
        match decision.map_err(|error| error.code)?.reply {
            Reply::AllocateProducerIds(reply) => {
                Ok((reply.producer_id_start.0, reply.producer_id_len))
            }
            other => panic!("not expected: {other:?}"),
        }
    }

    #[test]
    fn blocks_of_a_thousand_ids_are_handed_out_one_after_the_other() {
        let mut world = World::with_brokers(&[1]);
        let epoch = world.image.broker(NodeId(1)).unwrap().epoch.0;
        assert_eq!(next(&mut world, epoch), Ok((0, 1_000)));
        assert_eq!(next(&mut world, epoch), Ok((1_000, 1_000)));
        let refused = next(&mut world, epoch + 1);
        assert_eq!(refused, Err(ErrorCode::StaleBrokerEpoch));
        assert_eq!(next(&mut world, epoch), Ok((2_000, 1_000)));
    }

    #[test]
    fn ids_never_begin_again_at_zero() {
        let mut world = World::with_brokers(&[1]);
        let epoch = world.image.broker(NodeId(1)).unwrap().epoch.0;
        let record = Record::ProducerIds(ProducerIdsRecord {
            broker_id: 1,
            broker_epoch: epoch,
            next_producer_id: i64::MAX - 1_000,
            ..ProducerIdsRecord::default()
        });
        world.replay(&record.at(0));
        assert_eq!(next(&mut world, epoch), Ok((i64::MAX - 1_000, 1_000)));
        let refused = next(&mut world, epoch);
        assert_eq!(refused, Err(ErrorCode::UnknownServerError));
    }
}
