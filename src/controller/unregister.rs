//! UnregisterBroker (KIP-631) and UnregisterController (KIP-1312): a node that does not come back
//! is struck off. A node that still runs registers again by itself.

use kafka_protocol::messages::{UnregisterBrokerRequest, UnregisterBrokerResponse};

use super::levels::metadata_version;
use super::{Decision, RECORDS_PER_OPERATION_MAX, Reply, Soft, View, leaders, too_large};
use crate::image::{Broker, Place};
use crate::records::rpc::{UnregisterControllerRequest, UnregisterControllerResponse};
use crate::records::{Record, UnregisterBrokerRecord, UnregisterControllerRecord, VersionedRecord};
use crate::types::{ApiError, BrokerEpoch, ErrorCode, NodeId};

/// The broker leaves every in-sync set and is forgotten. Its partitions keep their replicas on it.
///
/// # Errors
/// BROKER_ID_NOT_REGISTERED; POLICY_VIOLATION when more partitions would change than one operation
/// may have records.
pub(super) fn broker(
    view: &View<'_>,
    soft: &mut Soft,
    request: &UnregisterBrokerRequest,
) -> Result<Decision, ApiError> {
    let id = NodeId(request.broker_id.0);
    let Some(broker) = view.image.broker(id) else {
        return Err(not_registered(id));
    };
    let mut records = Vec::new();
    let rest = leaders::abandon(view, id, Place::default(), &mut records);
    let Some(at) = rest else {
        return Ok(struck_off(soft, broker, records));
    };
    // Too much for a step, and maybe for an operation: nothing is written before that is known.
    let left = Unregistering {
        id,
        epoch: broker.epoch,
        phase: Phase::Count(records.len()),
        at,
    };
    Ok(Decision::unfinished(Vec::new(), done(), left))
}

/// A broker that is being unregistered: it leaves in-sync sets, a slice in each step, and its
/// registration goes last. While it lives, leaders may take it back, but not as fast; the last step
/// finds no more than a slice. After that it is in none, or without eligible leader replicas only
/// in those that it is the last of. If there never is a last step, a broker lives on that was slow
/// for a moment.
#[derive(Clone, Debug)]
pub(super) struct Unregistering {
    id: NodeId,
    epoch: BrokerEpoch,
    phase: Phase,
    at: Place,
}

impl Unregistering {
    pub(super) fn broker(&self) -> NodeId {
        self.id
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Would there be too many records? So many were counted; none is written.
    Count(usize),
    /// Every partition of the broker is looked at once.
    Leave,
    /// Every in-sync set is looked at, where it may have come back to.
    Rest,
}

/// One step.
pub(super) fn go_on(
    view: &View<'_>,
    soft: &mut Soft,
    mut left: Unregistering,
) -> Result<Decision, ApiError> {
    let id = left.id;
    let Some(broker) = view.image.broker(id) else {
        return Err(not_registered(id));
    };
    if broker.epoch != left.epoch {
        // A process of it has registered meanwhile: that comes after this.
        return Ok(Decision::only(done()));
    }
    let mut records = Vec::new();
    let (rest, next) = match left.phase {
        Phase::Count(count) => {
            let rest = leaders::abandon(view, id, left.at, &mut records);
            let count = count + records.len();
            records.clear();
            // One more strikes it off.
            if count >= RECORDS_PER_OPERATION_MAX {
                return Err(too_large());
            }
            left.phase = Phase::Count(count);
            (rest, Phase::Leave)
        }
        Phase::Leave => {
            let rest = leaders::abandon(view, id, left.at, &mut records);
            (rest, Phase::Rest)
        }
        Phase::Rest => match leaders::leave_in_sync(view, id, left.at, &mut records) {
            None => return Ok(struck_off(soft, broker, records)),
            rest => (rest, Phase::Rest),
        },
    };
    if rest.is_none() {
        left.phase = next;
    }
    left.at = rest.unwrap_or_default();
    Ok(Decision::unfinished(records, done(), left))
}

fn struck_off(soft: &mut Soft, broker: &Broker, mut records: Vec<VersionedRecord>) -> Decision {
    let id = broker.id;
    let record = UnregisterBrokerRecord {
        broker_id: id.0,
        broker_epoch: broker.epoch.0,
        ..UnregisterBrokerRecord::default()
    };
    records.push(Record::UnregisterBroker(record).at(0));
    tracing::info!("broker {id} is unregistered");
    soft.brokers.remove(id);
    Decision::loose(records, done())
}

fn done() -> Reply {
    Reply::UnregisterBroker(UnregisterBrokerResponse::default())
}

fn not_registered(id: NodeId) -> ApiError {
    ApiError::new(
        ErrorCode::BrokerIdNotRegistered,
        format!("Broker ID {id} is not currently registered"),
    )
}

/// The controller's registration goes. Whether it is a voter does not matter.
///
/// # Errors
/// INVALID_REQUEST for the active controller itself;
/// UNSUPPORTED_VERSION below 4.4-IV2; CONTROLLER_ID_NOT_REGISTERED.
pub(super) fn controller(
    view: &View<'_>,
    request: &UnregisterControllerRequest,
) -> Result<Decision, ApiError> {
    let id = NodeId(request.controller_id);
    if id == view.settings.node_id {
        return Err(ApiError::new(
            ErrorCode::InvalidRequest,
            "Controller cannot unregister itself while it is active.",
        ));
    }
    if !metadata_version(view.image).controller_unregistration() {
        return Err(ApiError::new(
            ErrorCode::UnsupportedVersion,
            "The current MetadataVersion is too old to support controller unregistration.",
        ));
    }
    if !view.image.controllers().contains_key(&id) {
        return Err(ApiError::new(
            ErrorCode::ControllerIdNotRegistered,
            format!("Controller ID {id} is not currently registered."),
        ));
    }
    tracing::info!("controller {id} is unregistered");
    let record = UnregisterControllerRecord {
        controller_id: id.0,
        ..UnregisterControllerRecord::default()
    };
    let records: Vec<VersionedRecord> = vec![Record::UnregisterController(record).at(0)];
    let reply = UnregisterControllerResponse {
        // Not null, as in Java.
        error_message: Some(String::new()),
        ..UnregisterControllerResponse::default()
    };
    Ok(Decision::atomic(
        records,
        Reply::UnregisterController(reply),
    ))
}

#[cfg(test)]
mod tests {
    use kafka_protocol::messages::BrokerId;

    use super::*;
    use crate::controller::Request;
    use crate::controller::testing::World;
    use crate::records::{PartitionRecord, RegisterControllerRecord};
    use crate::types::Uuid;

    fn json(decision: &Decision) -> Vec<String> {
        let records = decision.records.iter();
        records
            .map(|it| format!("{} {}", it.record.name(), it.record.json(it.version)))
            .collect()
    }

    fn ask_broker(id: i32) -> Request {
        Request::UnregisterBroker(UnregisterBrokerRequest::default().with_broker_id(BrokerId(id)))
    }

    fn ask_controller(id: i32) -> Request {
        Request::UnregisterController(UnregisterControllerRequest {
            controller_id: id,
            ..UnregisterControllerRequest::default()
        })
    }

    #[test]
    fn a_broker_leaves_its_partitions_before_it_is_forgotten() {
        let mut world = World::with_brokers(&[2, 3]);
        let topic = Uuid::from_u128(0x70);
        let partition = |leader: i32, isr: &[i32]| PartitionRecord {
            replicas: vec![2, 3],
            isr: isr.to_vec(),
            leader,
            directories: vec![Uuid::from_u128(0x1002), Uuid::from_u128(0x1003)],
            ..PartitionRecord::default()
        };
        world.topic("t", topic, vec![partition(2, &[2, 3]), partition(3, &[3])]);
        let decision = world.ask(0, ask_broker(2)).unwrap();
        assert!(!decision.atomic);
        let records = json(&decision);
        assert_eq!(records.len(), 2);
        assert!(records[0].contains("\"partitionId\":0"), "{records:?}");
        assert!(records[0].contains("\"isr\":[3]"), "{records:?}");
        assert!(records[0].contains("\"leader\":3"), "{records:?}");
        let epoch = world.image.broker(NodeId(2)).unwrap().epoch;
        assert_eq!(
            records[1],
            format!("UNREGISTER_BROKER_RECORD {{\"brokerId\":2,\"brokerEpoch\":{epoch}}}")
        );
        for record in &decision.records {
            world.replay(record);
        }
        let refused = world.ask(0, ask_broker(2)).unwrap_err();
        assert_eq!(refused.code, ErrorCode::BrokerIdNotRegistered);
        assert_eq!(
            refused.message.unwrap(),
            "Broker ID 2 is not currently registered"
        );
    }

    #[test]
    fn a_broker_of_too_many_partitions_is_refused_and_stays() {
        let mut world = World::with_brokers(&[2]);
        let partition = PartitionRecord {
            replicas: vec![2],
            isr: vec![2],
            leader: 2,
            directories: vec![Uuid::from_u128(0x1002)],
            ..PartitionRecord::default()
        };
        let most = RECORDS_PER_OPERATION_MAX;
        world.topic("t", Uuid::from_u128(0x70), vec![partition.clone(); most]);
        let before = world.image.clone();
        let (steps, answer) = world.steps_of(0, ask_broker(2));
        assert_eq!(answer.unwrap_err().code, ErrorCode::PolicyViolation);
        assert_eq!(steps.len(), most / leaders::SLICE);
        assert!(world.image == before, "nothing is written");
    }

    #[test]
    fn a_controller_is_forgotten_from_4_4_iv2_on_unless_it_is_the_active_one() {
        let mut world = World::at_level(32);
        let register = |id| {
            let record = RegisterControllerRecord {
                controller_id: id,
                ..RegisterControllerRecord::default()
            };
            Record::RegisterController(record).at(0)
        };
        world.replay(&register(3));
        let refused = world.ask(0, ask_controller(1)).unwrap_err();
        assert_eq!(refused.code, ErrorCode::InvalidRequest);
        let refused = world.ask(0, ask_controller(3)).unwrap_err();
        assert_eq!(refused.code, ErrorCode::UnsupportedVersion);
        world.feature("metadata.version", 33);
        let refused = world.ask(0, ask_controller(4)).unwrap_err();
        assert_eq!(refused.code, ErrorCode::ControllerIdNotRegistered);
        assert_eq!(
            refused.message.unwrap(),
            "Controller ID 4 is not currently registered."
        );
        let decision = world.ask(0, ask_controller(3)).unwrap();
        assert!(decision.atomic);
        assert_eq!(
            json(&decision),
            ["UNREGISTER_CONTROLLER_RECORD {\"controllerId\":3}"]
        );
    }
}
