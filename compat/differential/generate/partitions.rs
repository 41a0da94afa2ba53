//! Partitions: ISR changes, directories, elections and reassignments.

use std::collections::BTreeSet;

use kafka_protocol::messages::alter_partition_reassignments_request::{
    ReassignablePartition, ReassignableTopic,
};
use kafka_protocol::messages::alter_partition_request as isr;
use kafka_protocol::messages::assign_replicas_to_dirs_request as dirs;
use kafka_protocol::messages::elect_leaders_request::TopicPartitions;
use kafka_protocol::messages::list_partition_reassignments_request as list;
use kafka_protocol::messages::{
    AlterPartitionReassignmentsRequest, AlterPartitionRequest, AssignReplicasToDirsRequest,
    BrokerId, ElectLeadersRequest, ListPartitionReassignmentsRequest,
};
use kraftd::types::{NodeId, PartitionId};
use uuid::Uuid;

use super::brokers::directory;
use super::topics::ids;
use super::{Ask, Generator, topic_name};

/// What a request needs to know of a partition.
#[derive(Debug, Clone)]
struct Place {
    id: Uuid,
    partition: i32,
    replicas: Vec<i32>,
    leader: i32,
    leader_epoch: i32,
    partition_epoch: i32,
}

impl Generator {
    fn places(&self) -> Vec<Place> {
        let topics = self.image.topics();
        let places = topics.flat_map(|topic| {
            topic.partitions().map(move |(id, partition)| Place {
                id: topic.id(),
                partition: id.0,
                replicas: partition.replicas().to_vec(),
                leader: partition.leader(),
                leader_epoch: partition.leader_epoch(),
                partition_epoch: partition.partition_epoch(),
            })
        });
        places.collect()
    }

    /// A partition that exists; none when there is no topic.
    fn some_place(&mut self) -> Option<Place> {
        let places = self.places();
        self.dice.maybe(&places).cloned()
    }

    pub(super) fn alter_partition(&mut self) -> Ask {
        let count = *self.dice.weighted(&[(8, 1), (4, 2), (1, 4)]);
        let places: Vec<_> = (0..count).filter_map(|_| self.some_place()).collect();
        let Some(first) = places.first().cloned() else {
            return self.create_topics();
        };
        let sender = if self.dice.once_in(15) {
            self.some_broker()
        } else {
            first.leader
        };
        // Version 2 knows ids only, version 3 epochs too.
        let epochs = !self.dice.once_in(3);
        // Java decides a partition that is named twice on the same state twice. FINDINGS.md has it.
        let mut named = BTreeSet::new();
        let topics = places.iter().filter_map(|place| {
            let topic = self.altered(place, epochs);
            let new = named.insert((place.id, place.partition));
            new.then_some(topic)
        });
        let topics = topics.collect();
        AlterPartitionRequest::default()
            .with_broker_id(BrokerId(sender))
            .with_broker_epoch(self.epoch_of(sender))
            .with_topics(topics)
            .into()
    }

    fn altered(&mut self, place: &Place, epochs: bool) -> isr::TopicData {
        let mut members = self.members(place);
        let mut partition = isr::PartitionData::default()
            .with_partition_index(place.partition)
            .with_leader_epoch(place.leader_epoch)
            .with_partition_epoch(place.partition_epoch);
        let mut id = place.id;
        match self.dice.below(40) {
            0 => partition.leader_epoch += 1,
            1 => partition.leader_epoch -= 1,
            2 => partition.partition_epoch += 1,
            3 => partition.partition_epoch -= 1,
            4 => partition.partition_index += 10,
            5 => id = Uuid::from_u128(0xABCD << 64),
            6 => members.push(99),
            7 => members.extend(members.first().copied()),
            8 => members.clear(),
            9 => members.retain(|member| *member != place.leader),
            10..13 => partition.leader_recovery_state = 1,
            _ => {}
        }
        if !epochs {
            partition.new_isr = ids(&members);
        } else {
            let states = members.iter().map(|member| {
                let epoch = match self.dice.once_in(4) {
                    true => -1,
                    false => self.epoch_of(*member),
                };
                isr::BrokerState::default()
                    .with_broker_id(BrokerId(*member))
                    .with_broker_epoch(epoch)
            });
            partition.new_isr_with_epochs = states.collect();
        }
        isr::TopicData::default()
            .with_topic_id(id)
            .with_partitions(vec![partition])
    }

    /// The leader and some of the other replicas: those that are active, mostly.
    fn members(&mut self, place: &Place) -> Vec<i32> {
        let any = self.dice.once_in(10);
        let image = &self.image;
        let active = |id: i32| {
            let broker = image.broker(NodeId(id));
            broker.is_some_and(|broker| broker.is_active())
        };
        let others: Vec<i32> = place
            .replicas
            .iter()
            .copied()
            .filter(|id| *id != place.leader && (any || active(*id)))
            .collect();
        // All of them, mostly: so reassignments end.
        let count = match self.dice.once_in(3) {
            true => self.dice.below(others.len() + 1),
            false => others.len(),
        };
        let mut members = vec![place.leader];
        members.extend(self.dice.some(&others, count));
        members
    }

    pub(super) fn assign_dirs(&mut self) -> Ask {
        let broker = self.some_broker();
        let places: Vec<_> = self.places();
        let hosted: Vec<_> = places
            .iter()
            .filter(|place| place.replicas.contains(&broker))
            .cloned()
            .collect();
        let count = self.dice.below(4);
        let mut chosen = self.dice.some(&hosted, count);
        if self.dice.once_in(10) {
            chosen.extend(self.dice.maybe(&places).cloned());
        }
        let directories = chosen.iter().map(|place| self.assigned_dir(broker, place));
        let directories = directories.collect();
        AssignReplicasToDirsRequest::default()
            .with_broker_id(BrokerId(broker))
            .with_broker_epoch(self.epoch_of(broker))
            .with_directories(directories)
            .into()
    }

    fn assigned_dir(&mut self, broker: i32, place: &Place) -> dirs::DirectoryData {
        let known = self.image.broker(NodeId(broker));
        let online = known.map_or(Vec::new(), |broker| broker.directories.clone());
        let directory = match self.dice.maybe(&online) {
            Some(id) if !self.dice.once_in(10) => *id,
            _ => *self.dice.pick(&[
                directory(broker, 0, 9),
                Uuid::from_u128(0),
                Uuid::from_u128(1),
                Uuid::from_u128(2),
            ]),
        };
        let mut index = place.partition;
        let mut id = place.id;
        match self.dice.below(20) {
            0 => index += 10,
            1 => id = Uuid::from_u128(0xABCD << 64),
            _ => {}
        }
        let partition = dirs::PartitionData::default().with_partition_index(index);
        let topic = dirs::TopicData::default()
            .with_topic_id(id)
            .with_partitions(vec![partition]);
        dirs::DirectoryData::default()
            .with_id(directory)
            .with_topics(vec![topic])
    }

    /// A topic and indexes of partitions, most of which exist.
    fn some_partitions(&mut self) -> (String, Vec<i32>) {
        let name = self.some_topic();
        let topic = self.image.topic_by_name(&name);
        let count = topic.map_or(1, |topic| topic.partition_count());
        let mut indexes: Vec<i32> = (0..count)
            .map(|index| i32::try_from(index).expect("few"))
            .collect();
        let some = self.dice.below(count + 1);
        indexes = self.dice.some(&indexes, some);
        match self.dice.below(16) {
            0 => indexes.push(77),
            1 => indexes.push(-1),
            2 => indexes.extend(indexes.first().copied()),
            _ => {}
        }
        (name, indexes)
    }

    pub(super) fn elect_leaders(&mut self) -> Ask {
        let kind = *self.dice.weighted(&[(6, 0), (4, 1), (1, 2), (1, -1)]);
        let topics = if self.dice.once_in(6) {
            None
        } else {
            let count = self.dice.below(3);
            let topics = (0..count).map(|_| {
                let (name, indexes) = self.some_partitions();
                TopicPartitions::default()
                    .with_topic(topic_name(&name))
                    .with_partitions(indexes)
            });
            Some(topics.collect())
        };
        ElectLeadersRequest::default()
            .with_election_type(kind)
            .with_topic_partitions(topics)
            .with_timeout_ms(60_000)
            .into()
    }

    pub(super) fn reassign(&mut self) -> Ask {
        let count = *self.dice.weighted(&[(8, 1), (3, 2), (1, 0)]);
        // Over a partition that is named twice Java's process may stop.
        let mut named = BTreeSet::new();
        let topics = (0..count).map(|_| {
            let (name, mut indexes) = self.some_partitions();
            indexes.retain(|index| named.insert((name.clone(), *index)));
            let partitions = indexes.iter().map(|index| {
                let replicas = self.target(&name, *index);
                ReassignablePartition::default()
                    .with_partition_index(*index)
                    .with_replicas(replicas.as_deref().map(ids))
            });
            ReassignableTopic::default()
                .with_name(topic_name(&name))
                .with_partitions(partitions.collect())
        });
        let topics = topics.collect();
        AlterPartitionReassignmentsRequest::default()
            .with_timeout_ms(60_000)
            .with_allow_replication_factor_change(!self.dice.once_in(4))
            .with_topics(topics)
            .into()
    }

    /// New replicas; none to cancel.
    fn target(&mut self, topic: &str, index: i32) -> Option<Vec<i32>> {
        if self.dice.once_in(4) {
            return None;
        }
        let topic = self.image.topic_by_name(topic);
        let partition = topic.and_then(|topic| topic.partition(PartitionId(index)));
        // A last leader that is no replica any more makes Java's controller resign.
        let left =
            partition.is_some_and(|it| !it.elr().is_empty() || !it.last_known_elr().is_empty());
        let current = partition.map_or(Vec::new(), |partition| partition.replicas().to_vec());
        match if left { 0 } else { self.dice.below(8) } {
            0 => Some(current),
            1 => {
                let count = current.len();
                Some(self.dice.some(&current, count))
            }
            2 if current.len() > 1 => Some(current[1..].to_vec()),
            _ => {
                let count = self.dice.below(3) + 1;
                Some(self.replicas(count))
            }
        }
    }

    pub(super) fn list_reassignments(&mut self) -> Ask {
        let topics = if self.dice.once_in(2) {
            None
        } else {
            let count = self.dice.below(3);
            let topics = (0..count).map(|_| {
                let (name, indexes) = self.some_partitions();
                list::ListPartitionReassignmentsTopics::default()
                    .with_name(topic_name(&name))
                    .with_partition_indexes(indexes)
            });
            Some(topics.collect())
        };
        ListPartitionReassignmentsRequest::default()
            .with_timeout_ms(60_000)
            .with_topics(topics)
            .into()
    }
}
