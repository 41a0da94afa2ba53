//! Topics: created, grown, deleted.

use std::collections::BTreeSet;

use kafka_protocol::messages::create_partitions_request::{
    CreatePartitionsAssignment, CreatePartitionsTopic,
};
use kafka_protocol::messages::create_topics_request::{
    CreatableReplicaAssignment, CreatableTopic, CreatableTopicConfig,
};
use kafka_protocol::messages::delete_topics_request::DeleteTopicState;
use kafka_protocol::messages::{
    BrokerId, CreatePartitionsRequest, CreateTopicsRequest, DeleteTopicsRequest,
};
use uuid::Uuid;

use super::{Ask, Generator, text, topic_name};

/// Names of topics that may be.
const NAMES: [&str; 26] = [
    "a",
    "b",
    "c",
    "d",
    "e",
    "f",
    "g",
    "h",
    "a.b",
    "a_b",
    "a-b",
    "orders",
    "orders.v1",
    "orders_v1",
    "payments",
    "users",
    "Users",
    "x1",
    "x2",
    "x3",
    "x4",
    "x5",
    "x6",
    "x7",
    "x8",
    "__consumer_offsets",
];

/// Names of topics that may not be, and some that nearly may not.
const ODD_NAMES: [&str; 9] = [
    "",
    ".",
    "..",
    "bad name",
    "ünï",
    "a/b",
    "__cluster_metadata",
    "...",
    "a\u{0}b",
];

/// More topics than this are not kept.
const TOPICS_MAX: usize = 14;

pub(super) fn ids(brokers: &[i32]) -> Vec<BrokerId> {
    brokers.iter().copied().map(BrokerId).collect()
}

/// Deletes by name.
pub(super) fn delete(names: &[String]) -> DeleteTopicsRequest {
    let states = names
        .iter()
        .map(|name| DeleteTopicState::default().with_name(Some(topic_name(name))));
    DeleteTopicsRequest::default()
        .with_topics(states.collect())
        .with_timeout_ms(60_000)
}

impl Generator {
    pub(super) fn topic_names(&self) -> Vec<String> {
        let topics = self.image.topics();
        topics.map(|topic| topic.name().to_owned()).collect()
    }

    /// A topic that exists, mostly.
    pub(super) fn some_topic(&mut self) -> String {
        let existing = self.topic_names();
        match self.dice.maybe(&existing).cloned() {
            Some(name) if !self.dice.once_in(8) => name,
            _ if self.dice.once_in(3) => (*self.dice.pick(&ODD_NAMES)).to_owned(),
            _ => (*self.dice.pick(&NAMES)).to_owned(),
        }
    }

    fn new_name(&mut self) -> String {
        if self.dice.once_in(7) {
            return self.some_topic();
        }
        if self.dice.once_in(40) {
            return "n".repeat(self.dice.below(4) + 248);
        }
        (*self.dice.pick(&NAMES)).to_owned()
    }

    /// The registered brokers, and now and then one that is not.
    pub(super) fn replicas(&mut self, count: usize) -> Vec<i32> {
        let brokers: Vec<i32> = self.image.brokers().keys().map(|id| id.0).collect();
        let mut replicas = self.dice.some(&brokers, count);
        match self.dice.below(40) {
            0 => replicas.push(99),
            1 => replicas.push(-1),
            2 => replicas.extend(replicas.first().copied()),
            3 => replicas.clear(),
            _ => {}
        }
        replicas
    }

    fn timeout_ms(&mut self) -> i32 {
        *self.dice.pick(&[60_000, 60_000, 30_000, i32::MAX])
    }

    pub(super) fn create_topics(&mut self) -> Ask {
        let count = *self.dice.weighted(&[(14, 1), (4, 2), (2, 3), (1, 0)]);
        let mut topics: Vec<_> = (0..count).map(|_| self.creatable()).collect();
        if self.dice.once_in(25) {
            topics.extend(topics.first().cloned());
        }
        CreateTopicsRequest::default()
            .with_topics(topics)
            .with_timeout_ms(self.timeout_ms())
            .with_validate_only(self.dice.once_in(8))
            .into()
    }

    fn creatable(&mut self) -> CreatableTopic {
        let name = self.new_name();
        let topic = CreatableTopic::default().with_name(topic_name(&name));
        let configs = if self.dice.once_in(3) {
            self.creatable_configs()
        } else {
            Vec::new()
        };
        let topic = topic.with_configs(configs);
        if self.dice.once_in(5) && self.places_by_chance_safely() {
            let counts = [
                (-1, -1),
                (3, 2),
                (2, 1),
                (1, 3),
                (0, 1),
                (-2, 1),
                (1, 0),
                (1, -2),
            ];
            let more = [(4, 99), (10_001, 1), (5, 32_767)];
            let all = [counts.as_slice(), more.as_slice()].concat();
            let (partitions, factor) = *self.dice.pick(&all);
            return topic
                .with_num_partitions(partitions)
                .with_replication_factor(factor);
        }
        self.assigned(topic)
    }

    fn assigned(&mut self, topic: CreatableTopic) -> CreatableTopic {
        let factor = self.dice.below(3) + 1;
        let partitions = self.dice.below(4) + 1;
        let mut assignments: Vec<_> = (0..partitions)
            .map(|index| {
                let replicas = self.replicas(factor);
                CreatableReplicaAssignment::default()
                    .with_partition_index(i32::try_from(index).expect("few"))
                    .with_broker_ids(ids(&replicas))
            })
            .collect();
        let (mut count, mut rf) = (-1, -1);
        match self.dice.below(30) {
            0 => assignments[0].partition_index = 7,
            1 => assignments[0].partition_index = -1,
            2 => assignments.extend(assignments.first().cloned()),
            3 => count = 1,
            4 => rf = 1,
            5 => assignments.reverse(),
            _ => {}
        }
        topic
            .with_num_partitions(count)
            .with_replication_factor(rf)
            .with_assignments(assignments)
    }

    fn creatable_configs(&mut self) -> Vec<CreatableTopicConfig> {
        let count = self.dice.below(3) + 1;
        let pairs = (0..count).map(|_| {
            let (key, value) = self.topic_config();
            CreatableTopicConfig::default()
                .with_name(text(&key))
                .with_value(value.as_deref().map(text))
        });
        pairs.collect()
    }

    pub(super) fn delete_topics(&mut self) -> Ask {
        let existing = self.topic_names();
        // Few topics are left alone, mostly, and many are not.
        if existing.len() < 4 && !self.dice.once_in(4) {
            return self.create_topics();
        }
        let crowded = existing.len() > TOPICS_MAX;
        let count = if crowded { 3 } else { self.dice.below(2) + 1 };
        let mut states: Vec<_> = (0..count).map(|_| self.delete_state()).collect();
        if self.dice.once_in(12) {
            states.extend(states.first().cloned());
        }
        if self.dice.once_in(3) {
            let names = (0..count).map(|_| topic_name(&self.some_topic()));
            return DeleteTopicsRequest::default()
                .with_topic_names(names.collect())
                .with_timeout_ms(60_000)
                .into();
        }
        DeleteTopicsRequest::default()
            .with_topics(states)
            .with_timeout_ms(self.timeout_ms())
            .into()
    }

    fn delete_state(&mut self) -> DeleteTopicState {
        let name = self.some_topic();
        let topic = self.image.topic_by_name(&name);
        let id = topic.map_or(Uuid::from_u128(0xABCD << 64), |topic| topic.id());
        let state = DeleteTopicState::default();
        match self.dice.below(20) {
            0 => state,
            1 => state.with_name(Some(topic_name(&name))).with_topic_id(id),
            2..10 => state.with_topic_id(id),
            _ => state.with_name(Some(topic_name(&name))),
        }
        .with_unknown_tagged_fields(Default::default())
    }

    pub(super) fn create_partitions(&mut self) -> Ask {
        let count = *self.dice.weighted(&[(8, 1), (3, 2), (1, 0)]);
        let mut topics: Vec<_> = (0..count).map(|_| self.grown()).collect();
        if self.dice.once_in(20) {
            topics.extend(topics.first().cloned());
        }
        CreatePartitionsRequest::default()
            .with_topics(topics)
            .with_timeout_ms(self.timeout_ms())
            .with_validate_only(self.dice.once_in(6))
            .into()
    }

    fn grown(&mut self) -> CreatePartitionsTopic {
        let name = self.some_topic();
        let topic = self.image.topic_by_name(&name);
        let known = topic.map_or(1, |topic| topic.partition_count());
        let factor = topic
            .and_then(|topic| topic.partitions().next())
            .map_or(1, |(_, partition)| partition.replicas().len());
        let more = self.dice.below(2) + 1;
        let mut count = i32::try_from(known + more).expect("few");
        let mut assignments: Vec<_> = (0..more)
            .map(|_| {
                let replicas = self.replicas(factor);
                CreatePartitionsAssignment::default().with_broker_ids(ids(&replicas))
            })
            .collect();
        let trouble = if self.has_partitions_of_all_sizes(&name) {
            1
        } else {
            self.dice.below(24)
        };
        match trouble {
            0 => count -= 1,
            1 => count = i32::try_from(known).expect("few"),
            2 => count = *self.dice.pick(&[0, -1, i32::MIN, 11_000]),
            3 => assignments.clear(),
            4 => assignments.extend(assignments.first().cloned()),
            _ => {}
        }
        let by_chance = self.dice.once_in(12) && known < 6 && self.places_by_chance_safely();
        CreatePartitionsTopic::default()
            .with_name(topic_name(&name))
            .with_count(count)
            .with_assignments((!by_chance).then_some(assignments))
    }

    /// A broker that registered again while it leaves may get replicas and cannot be in sync:
    /// whether anybody is, is then a matter of chance.
    pub(super) fn places_by_chance_safely(&self) -> bool {
        let brokers = &mut self.image.brokers().values();
        !brokers.any(|broker| broker.in_controlled_shutdown && !broker.fenced)
    }

    /// Java takes the replication factor of new partitions from whichever partition comes first in
    /// a hash table: where they differ, nothing is asked that depends on it.
    pub(super) fn has_partitions_of_all_sizes(&self, name: &str) -> bool {
        let topic = self.image.topic_by_name(name);
        let sizes = topic.into_iter().flat_map(|topic| topic.partitions());
        let sizes: BTreeSet<_> = sizes.map(|(_, it)| it.replicas().len()).collect();
        sizes.len() > 1
    }

    /// One more partition for a topic that is placed by chance anyway.
    pub(super) fn more_partitions_by_chance(&mut self, name: &str) -> CreatePartitionsRequest {
        let topic = self.image.topic_by_name(name);
        let known = topic.map_or(1, |topic| topic.partition_count());
        let count = i32::try_from(known + 1 + self.dice.below(2)).expect("few");
        let topic = CreatePartitionsTopic::default()
            .with_name(topic_name(name))
            .with_count(count)
            .with_assignments(None);
        CreatePartitionsRequest::default()
            .with_topics(vec![topic])
            .with_timeout_ms(60_000)
    }
}
