//! AlterPartition (KIP-497, KIP-841, KIP-903): a leader reports its in-sync replicas.

use std::collections::BTreeSet;

use kafka_protocol::messages::alter_partition_request::{BrokerState, PartitionData};
use kafka_protocol::messages::alter_partition_response as reply;
use kafka_protocol::messages::{AlterPartitionRequest, AlterPartitionResponse, BrokerId};

use super::leaders::{ClusterRules, TopicRules};
use super::partition_change::{Change, NO_LEADER_CHANGE, RECOVERED, RECOVERING, Rules};
use super::register_broker::check_epoch;
use super::{Decision, Reply, View};
use crate::image::{Partition, TopicRef};
use crate::records::{PartitionChangeRecord, Record, VersionedRecord};
use crate::types::{ApiError, BrokerEpoch, ErrorCode, NodeId, PartitionId, Uuid};

/// Checks and applies each partition by itself. There may be as many as fit into a request: a
/// broker reports all its pending changes at once, and would repeat for ever what is refused.
///
/// A partition that the request names again after it changed is refused: its epoch has moved on.
/// Java decides both on the same state and writes both, which may leave an ISR of brokers that are
/// no replicas any more.
///
/// # Errors
/// STALE_BROKER_EPOCH.
pub(super) fn decide(
    view: &View<'_>,
    version: i16,
    request: AlterPartitionRequest,
) -> Result<Decision, ApiError> {
    let id = NodeId(request.broker_id.0);
    check_epoch(view, id, BrokerEpoch(request.broker_epoch))?;
    let mut work = Work {
        view,
        sender: id,
        version,
        rules: Rules::of(view.image),
        changed: BTreeSet::new(),
        records: Vec::new(),
    };
    let cluster = ClusterRules::of(view.image, view.settings);
    let mut topics = Vec::with_capacity(request.topics.len());
    for asked in request.topics {
        let topic = view.image.topic_by_id(asked.topic_id);
        let known = topic.map(|it| (it, cluster.of_topic(view.image, view.settings, it)));
        let partitions = asked
            .partitions
            .into_iter()
            .map(|wanted| match known {
                Some(topic) => work.one(topic, wanted),
                None => refused(wanted.partition_index, ErrorCode::UnknownTopicId),
            })
            .collect();
        topics.push(
            reply::TopicData::default()
                .with_topic_id(asked.topic_id)
                .with_partitions(partitions),
        );
    }
    let reply = AlterPartitionResponse::default().with_topics(topics);
    Ok(Decision::loose(work.records, Reply::AlterPartition(reply)))
}

fn refused(index: i32, code: ErrorCode) -> reply::PartitionData {
    reply::PartitionData::default()
        .with_partition_index(index)
        .with_error_code(code.code())
}

/// One request under way.
struct Work<'a> {
    view: &'a View<'a>,
    sender: NodeId,
    version: i16,
    rules: Rules<'a>,
    /// The partitions that have a record.
    changed: BTreeSet<(Uuid, i32)>,
    records: Vec<VersionedRecord>,
}

impl Work<'_> {
    fn one(
        &mut self,
        (topic, topic_rules): (TopicRef<'_>, TopicRules),
        mut wanted: PartitionData,
    ) -> reply::PartitionData {
        let index = wanted.partition_index;
        if self.version < 3 {
            // Version 2 has no broker epochs; -1 skips that check.
            let member = |id: &BrokerId| {
                BrokerState::default()
                    .with_broker_id(*id)
                    .with_broker_epoch(-1)
            };
            wanted.new_isr_with_epochs = wanted.new_isr.iter().map(member).collect();
        }
        let Some(old) = topic.partition(PartitionId(index)) else {
            return refused(index, ErrorCode::UnknownTopicOrPartition);
        };
        if self.changed.contains(&(topic.id(), index)) {
            return refused(index, ErrorCode::InvalidUpdateVersion);
        }
        if let Err(code) = check(self.view, self.sender, old, &wanted) {
            return refused(index, code);
        }
        let isr = wanted.new_isr_with_epochs.iter();
        let isr = isr.map(|it| it.broker_id.0).collect();
        let rules = self.rules;
        let acceptable = |broker: i32| rules.may_lead(old, broker);
        let min_isr = topic_rules.min_isr;
        let id = PartitionId(index);
        let written = Change::of(topic.id(), id, old, rules, &acceptable, min_isr)
            .election(topic_rules.election)
            .isr(isr)
            .recovery(wanted.leader_recovery_state)
            .record();
        let mut state = State::of(old);
        let Some(written) = written else {
            return state.reply(index);
        };
        let mut leader = NO_LEADER_CHANGE;
        if let Record::PartitionChange(record) = &written.record {
            state.merge(record);
            leader = record.leader;
        }
        self.changed.insert((topic.id(), index));
        self.records.push(written);
        if leader != self.sender.0 && leader != NO_LEADER_CHANGE {
            // It is written all the same: the change completed a reassignment that moved the
            // leadership, and the sender must learn of that first.
            return refused(index, ErrorCode::NewLeaderElected);
        }
        state.reply(index)
    }
}

/// The partition after the change, as the reply tells it.
struct State {
    isr: Vec<i32>,
    leader: i32,
    leader_epoch: i32,
    partition_epoch: i32,
    recovery: i8,
}

impl State {
    fn of(old: Partition<'_>) -> Self {
        Self {
            isr: old.isr().to_vec(),
            leader: old.leader(),
            leader_epoch: old.leader_epoch(),
            partition_epoch: old.partition_epoch(),
            recovery: if old.recovering() {
                RECOVERING
            } else {
                RECOVERED
            },
        }
    }

    fn merge(&mut self, record: &PartitionChangeRecord) {
        if let Some(isr) = &record.isr {
            self.isr.clone_from(isr);
        }
        if record.leader != NO_LEADER_CHANGE {
            self.leader = record.leader;
            self.leader_epoch = self.leader_epoch.saturating_add(1);
        }
        if record.leader_recovery_state >= 0 {
            self.recovery = record.leader_recovery_state;
        }
        self.partition_epoch = self.partition_epoch.saturating_add(1);
    }

    fn reply(self, index: i32) -> reply::PartitionData {
        reply::PartitionData::default()
            .with_partition_index(index)
            .with_leader_id(BrokerId(self.leader))
            .with_leader_epoch(self.leader_epoch)
            .with_isr(self.isr.into_iter().map(BrokerId).collect())
            .with_leader_recovery_state(self.recovery)
            .with_partition_epoch(self.partition_epoch)
    }
}

fn check(
    view: &View<'_>,
    sender: NodeId,
    old: Partition<'_>,
    wanted: &PartitionData,
) -> Result<(), ErrorCode> {
    if wanted.leader_epoch > old.leader_epoch() || wanted.partition_epoch > old.partition_epoch() {
        // The broker knows more than this image: only a newer controller can have told it.
        return Err(ErrorCode::NotController);
    }
    if wanted.leader_epoch < old.leader_epoch() {
        return Err(ErrorCode::FencedLeaderEpoch);
    }
    if sender.0 != old.leader() {
        return Err(ErrorCode::InvalidRequest);
    }
    if wanted.partition_epoch < old.partition_epoch() {
        return Err(ErrorCode::InvalidUpdateVersion);
    }
    let mut isr: Vec<i32> = wanted
        .new_isr_with_epochs
        .iter()
        .map(|it| it.broker_id.0)
        .collect();
    let len = isr.len();
    isr.sort_unstable();
    isr.dedup();
    let replicas = isr.iter().all(|id| *id >= 0 && old.replicas().contains(id));
    if isr.is_empty() || isr.len() != len || !replicas || !isr.contains(&old.leader()) {
        return Err(ErrorCode::InvalidRequest);
    }
    match wanted.leader_recovery_state {
        RECOVERED => {}
        RECOVERING if len > 1 || !old.recovering() => return Err(ErrorCode::InvalidRequest),
        RECOVERING => {}
        _ => return Err(ErrorCode::InvalidRequest),
    }
    let eligible = wanted.new_isr_with_epochs.iter().all(|member| {
        view.image
            .broker(NodeId(member.broker_id.0))
            .is_some_and(|broker| {
                let known = member.broker_epoch == -1 || member.broker_epoch == broker.epoch.0;
                broker.is_active() && known
            })
    });
    if eligible {
        Ok(())
    } else {
        Err(ErrorCode::IneligibleReplica)
    }
}

#[cfg(test)]
mod tests;
