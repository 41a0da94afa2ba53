//! Partitions: their in-sync sets, their leaders, their replicas and where these lie.

use std::collections::BTreeSet;

use kafka_protocol::messages as km;
use kafka_protocol::messages::alter_partition_reassignments_request as moved;
use kafka_protocol::messages::alter_partition_request as in_sync;
use kafka_protocol::messages::assign_replicas_to_dirs_request as assigned;
use kafka_protocol::messages::elect_leaders_request::TopicPartitions;
use kafka_protocol::messages::list_partition_reassignments_request as listed;

use super::{Request, Run};
use crate::image::Partition;
use crate::types::{NodeId, PartitionId, Uuid};

impl Run {
    fn index(&mut self) -> i32 {
        match self.below(12) {
            0 => self.number(),
            _ => self.below(3) as i32,
        }
    }

    fn partition(&self, topic: Uuid, index: i32) -> Option<Partition<'_>> {
        self.world
            .image
            .topic_by_id(topic)?
            .partition(PartitionId(index))
    }

    fn near(&mut self, epoch: i32) -> i32 {
        match self.below(12) {
            0 => epoch.wrapping_sub(1),
            1 => epoch.wrapping_add(1),
            2 => self.number(),
            _ => epoch,
        }
    }

    pub(super) fn alter_partition(&mut self) -> (i16, Request) {
        let version = 2 + self.below(2) as i16;
        let (topic, index) = (self.topic_id(), self.index());
        let leader = self.partition(topic, index).map(|it| it.leader());
        let sender = leader.filter(|_| self.rng.below(12) != 0);
        let sender = sender.unwrap_or_else(|| self.node());
        let mut topics = self.some(|run| {
            in_sync::TopicData::default()
                .with_topic_id(run.topic_id())
                .with_partitions(run.some(|run| run.in_sync(Uuid::nil(), 0)))
        });
        let one = self.in_sync(topic, index);
        let mut partitions = vec![one];
        if self.once_in(4) {
            partitions.push(self.in_sync(topic, index));
        }
        let topic = in_sync::TopicData::default().with_topic_id(topic);
        topics.push(topic.with_partitions(partitions));
        let request = km::AlterPartitionRequest::default()
            .with_broker_id(km::BrokerId(sender))
            .with_broker_epoch(self.epoch(sender))
            .with_topics(topics);
        (version, Request::AlterPartition(request))
    }

    fn in_sync(&mut self, topic: Uuid, index: i32) -> in_sync::PartitionData {
        let old = self.partition(topic, index);
        let epochs = old.map_or((0, 0), |it| (it.leader_epoch(), it.partition_epoch()));
        let replicas = old.map_or_else(|| vec![0, 1], |it| it.replicas().to_vec());
        let mut isr: Vec<i32> = replicas
            .into_iter()
            .filter(|_| self.rng.below(3) != 0)
            .collect();
        if self.once_in(12) {
            isr.push(self.node());
        }
        let members = isr.iter().map(|id| {
            in_sync::BrokerState::default()
                .with_broker_id(km::BrokerId(*id))
                .with_broker_epoch(match self.rng.below(12) {
                    0 => self.rng.below(100) as i64,
                    _ => -1,
                })
        });
        let members: Vec<_> = members.collect();
        in_sync::PartitionData::default()
            .with_partition_index(index)
            .with_leader_epoch(self.near(epochs.0))
            .with_partition_epoch(self.near(epochs.1))
            .with_new_isr(isr.iter().copied().map(km::BrokerId).collect())
            .with_new_isr_with_epochs(members)
            .with_leader_recovery_state(self.pick(&[0, 0, 0, 0, 1, 2, -1, i8::MAX]))
    }

    pub(super) fn reassign(&mut self) -> (i16, Request) {
        let topics = self.some(|run| {
            let partitions = run.some(|run| {
                let replicas = match run.below(4) {
                    0 => None,
                    _ => Some(run.replicas()),
                };
                moved::ReassignablePartition::default()
                    .with_partition_index(run.index())
                    .with_replicas(replicas)
            });
            moved::ReassignableTopic::default()
                .with_name(run.topic_name())
                .with_partitions(partitions)
        });
        let mut named = BTreeSet::new();
        let mut topics = topics;
        if !self.twice {
            for topic in &mut topics {
                let name = topic.name.clone();
                let partitions = &mut topic.partitions;
                partitions.retain(|it| named.insert((name.clone(), it.partition_index)));
            }
        }
        let request = km::AlterPartitionReassignmentsRequest::default()
            .with_allow_replication_factor_change(!self.once_in(3))
            .with_topics(topics);
        (1, Request::AlterPartitionReassignments(request))
    }

    pub(super) fn list_reassignments(&mut self) -> (i16, Request) {
        let topics = self.some(|run| {
            listed::ListPartitionReassignmentsTopics::default()
                .with_name(run.topic_name())
                .with_partition_indexes(run.some(Self::index))
        });
        let topics = (!self.once_in(2)).then_some(topics);
        let request = km::ListPartitionReassignmentsRequest::default().with_topics(topics);
        (0, Request::ListPartitionReassignments(request))
    }

    pub(super) fn assign_dirs(&mut self) -> (i16, Request) {
        let id = self.node();
        let own = self.world.image.broker(NodeId(id));
        let own = own.map_or_else(Vec::new, |it| it.directories.clone());
        let directories = self.some(|run| {
            let topics = run.some(|run| {
                let partitions = run.some(|run| {
                    assigned::PartitionData::default().with_partition_index(run.index())
                });
                assigned::TopicData::default()
                    .with_topic_id(run.topic_id())
                    .with_partitions(partitions)
            });
            let directory = match own.first() {
                Some(own) if !run.once_in(3) => *own,
                _ => run.directory(),
            };
            assigned::DirectoryData::default()
                .with_id(directory)
                .with_topics(topics)
        });
        let request = km::AssignReplicasToDirsRequest::default()
            .with_broker_id(km::BrokerId(id))
            .with_broker_epoch(self.epoch(id))
            .with_directories(directories);
        (0, Request::AssignReplicasToDirs(request))
    }

    pub(super) fn elect_leaders(&mut self) -> (i16, Request) {
        let topics = self.some(|run| {
            TopicPartitions::default()
                .with_topic(run.topic_name())
                .with_partitions(run.some(Self::index))
        });
        let request = km::ElectLeadersRequest::default()
            .with_election_type(self.pick(&[0, 1, 1, 2, -1]))
            .with_topic_partitions((!self.once_in(3)).then_some(topics));
        (2, Request::ElectLeaders(request))
    }
}
