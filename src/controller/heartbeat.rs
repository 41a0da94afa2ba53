//! BrokerHeartbeat (KIP-631, KIP-841, KIP-858, KIP-1066): the life of a broker as seen from here.

use std::collections::BTreeSet;

use kafka_protocol::messages::BrokerHeartbeatResponse;

use super::handover::Task;
use super::heartbeats::Told;
use super::levels::metadata_version;
use super::register_broker::check_epoch;
use super::{Decision, Reply, Request, Soft, View, leaders};
use crate::image::Broker;
use crate::records::rpc::BrokerHeartbeatRequest;
use crate::records::{Record, VersionedRecord};
use crate::types::{ApiError, BrokerEpoch, ErrorCode, NodeId, Uuid};

/// What a decision about one broker moves of the soft state together with its records, as it was
/// before. That the broker was heard of is true whatever is written.
#[derive(Debug)]
pub struct Before {
    id: NodeId,
    told: Option<Told>,
    /// With their places. Mostly there is none, and nothing is copied: each heartbeat asks.
    tasks: Vec<(usize, Task)>,
}

impl Soft {
    /// What to [take back](Self::take_back) if the decision on this request cannot be written.
    /// Nothing else that a request moves is tied to its records.
    #[must_use]
    pub fn before(&self, request: &Request) -> Option<Before> {
        let id = match request {
            Request::BrokerHeartbeat(body) => body.broker_id,
            Request::BrokerRegistration(body) => body.broker_id.0,
            Request::UnregisterBroker(body) => body.broker_id.0,
            _ => return None,
        };
        Some(self.before_about(NodeId(id)))
    }

    /// The same of what is decided about this broker.
    pub(super) fn before_about(&self, id: NodeId) -> Before {
        Before {
            id,
            told: self.brokers.told(id),
            tasks: self.handovers.tasks_of(id),
        }
    }

    /// The decision was not written: a broker that leaves, comes or is fenced does not. Nothing
    /// else may have been decided in between.
    pub fn take_back(&mut self, before: Before) {
        self.brokers.put_back(before.id, before.told);
        self.handovers.put_back(before.id, before.tasks);
    }
}

/// Where a broker stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Fenced,
    Unfenced,
    ControlledShutdown,
    /// It may end its process now.
    ShutdownNow,
}

/// Moves the broker on, and keeps its session alive.
///
/// # Errors
/// STALE_BROKER_EPOCH for an unknown broker or another epoch.
pub(super) fn decide(
    view: &View<'_>,
    soft: &mut Soft,
    request: BrokerHeartbeatRequest,
) -> Result<Decision, ApiError> {
    let id = NodeId(request.broker_id);
    let epoch = BrokerEpoch(request.broker_epoch);
    if !view.image.brokers().contains_key(&id) {
        return Err(ApiError::new(
            ErrorCode::StaleBrokerEpoch,
            format!("Receive a heartbeat from broker {id} before registration"),
        ));
    }
    let broker = check_epoch(view, id, epoch)?;
    soft.brokers.contact(id, epoch, view.now.instant);
    let caught_up = has_caught_up(view, id, &request);
    let current = current_state(soft, broker);
    let mut next = next_state(view, soft, broker, (current, caught_up), &request);
    let mut records = Vec::new();
    let tasks = &mut soft.handovers;
    let mut shutdown = None;
    // So it is when its leaving was taken for its silence in between.
    let unfinished = soft.brokers.shutdown_offset(id) == Some(i64::MAX);
    if next != current {
        tracing::info!("broker {id} goes from {current:?} to {next:?}");
    }
    if next != current || unfinished {
        let done = match next {
            State::Fenced | State::ShutdownNow => tasks.fence(view, broker, &mut records),
            State::Unfenced => tasks.unfence(view, broker, &mut records),
            State::ControlledShutdown => tasks.begin_shutdown(view, broker, &mut records),
        };
        match next {
            // The heartbeat after the last step is told.
            State::Fenced | State::ShutdownNow if !done => next = current,
            State::ControlledShutdown => shutdown = Some(done),
            _ => {}
        }
    } else {
        tasks.keep(id);
    }
    let fenced = matches!(next, State::Fenced | State::ShutdownNow);
    soft.brokers
        .touch(id, fenced, request.current_metadata_offset);
    if metadata_version(view.image).directory_assignment() {
        let offline = &request.offline_log_dirs;
        tasks.lose_directories(view, broker, offline, &mut records);
    }
    if metadata_version(view.image).cordoned_log_dirs() {
        cordon(broker, request.cordoned_log_dirs, &mut records);
    }
    if let Some(done) = shutdown {
        let end = done.then(|| view.last_of(&records).0);
        soft.brokers.begin_shutdown(id, end.unwrap_or(i64::MAX));
    }
    let changed = |it: &VersionedRecord| matches!(it.record, Record::BrokerRegistrationChange(_));
    if records.iter().any(changed) {
        soft.brokers.change(id);
    }
    let reply = BrokerHeartbeatResponse::default()
        .with_is_caught_up(caught_up)
        .with_is_fenced(fenced)
        .with_should_shut_down(next == State::ShutdownNow);
    Ok(Decision::loose(records, Reply::BrokerHeartbeat(reply)))
}

/// Keeps the session of a broker whose heartbeat waited too long to be decided.
pub(super) fn note_undecided(view: &View<'_>, soft: &mut Soft, request: &BrokerHeartbeatRequest) {
    let id = NodeId(request.broker_id);
    let epoch = BrokerEpoch(request.broker_epoch);
    if let Ok(broker) = check_epoch(view, id, epoch) {
        tracing::warn!("a heartbeat of broker {id} waited too long to be looked at");
        soft.brokers.contact(id, epoch, view.now.instant);
        let offset = request.current_metadata_offset;
        soft.brokers.touch(id, broker.fenced, offset);
        soft.handovers.keep(id);
    }
}

/// Has the broker applied the record that registered it last?
fn has_caught_up(view: &View<'_>, id: NodeId, request: &BrokerHeartbeatRequest) -> bool {
    let registered = view.image.registered_at(id);
    registered.is_some_and(|offset| request.current_metadata_offset >= offset.0)
}

fn current_state(soft: &Soft, broker: &Broker) -> State {
    if soft.brokers.shutdown_offset(broker.id).is_some() {
        State::ControlledShutdown
    } else if broker.fenced {
        State::Fenced
    } else {
        State::Unfenced
    }
}

fn next_state(
    view: &View<'_>,
    soft: &Soft,
    broker: &Broker,
    (current, caught_up): (State, bool),
    request: &BrokerHeartbeatRequest,
) -> State {
    let leads = || {
        view.image
            .partitions_with_leader(broker.id)
            .next()
            .is_some()
    };
    match current {
        State::Fenced if request.want_shut_down => State::ShutdownNow,
        State::Fenced => {
            if !request.want_fence && caught_up {
                State::Unfenced
            } else {
                State::Fenced
            }
        }
        State::Unfenced => match (request.want_fence, request.want_shut_down) {
            (true, true) => State::ShutdownNow,
            (true, false) => State::Fenced,
            (false, true) if leads() => State::ControlledShutdown,
            (false, true) => State::ShutdownNow,
            (false, false) => State::Unfenced,
        },
        State::ControlledShutdown => {
            // The others must have applied the move of its leaderships before it may go.
            let offset = soft.brokers.shutdown_offset(broker.id).unwrap_or(i64::MAX);
            if !leads() && offset <= soft.brokers.lowest_active_offset(view.image) {
                State::ShutdownNow
            } else {
                State::ControlledShutdown
            }
        }
        State::ShutdownNow => State::ShutdownNow,
    }
}

/// The first list, even an empty one, is a change from "never said".
fn cordon(broker: &Broker, told: Option<Vec<Uuid>>, records: &mut Vec<VersionedRecord>) {
    let Some(told) = told else {
        return;
    };
    let set = |list: &[Uuid]| list.iter().copied().collect::<BTreeSet<_>>();
    let known = broker.cordoned.as_deref().map(set);
    if known != Some(set(&told)) {
        records.push(leaders::registration_change(
            3,
            broker.id,
            broker.epoch,
            |record| {
                record.cordoned_log_dirs = Some(told);
            },
        ));
    }
}
