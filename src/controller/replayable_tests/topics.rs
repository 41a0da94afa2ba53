//! Topics, and configurations of all kinds.

use kafka_protocol::messages as km;
use kafka_protocol::messages::alter_configs_request as replaced;
use kafka_protocol::messages::create_partitions_request as grown;
use kafka_protocol::messages::create_topics_request as created;
use kafka_protocol::messages::delete_topics_request::DeleteTopicState;
use kafka_protocol::messages::incremental_alter_configs_request as changed;
use kafka_protocol::protocol::StrBytes;

use super::{Request, Run};
use crate::types::Uuid;

const KEYS: [(&str, &[&str]); 12] = [
    ("min.insync.replicas", &["1", "2", "0", "-1", "9", "", "x"]),
    ("retention.ms", &["1000", "-1", "x"]),
    ("cleanup.policy", &["delete", "compact", ""]),
    ("unclean.leader.election.enable", &["true", "false", "x"]),
    ("cordoned.log.dirs", &["", "a", "*"]),
    ("interval.ms", &["1000"]),
    ("match", &["client_id=a", "["]),
    ("metrics", &["a,b", ""]),
    ("consumer.session.timeout.ms", &["45000", "1"]),
    ("log.cleaner.threads", &["2", ""]),
    ("no.such.key", &["1"]),
    ("", &["1", ""]),
];

impl Run {
    fn pair(&mut self) -> (StrBytes, Option<StrBytes>) {
        let (key, values) = self.pick(&KEYS);
        let value = self.pick(values);
        let value = (!self.once_in(8)).then(|| StrBytes::from_static_str(value));
        (StrBytes::from_static_str(key), value)
    }

    /// A type and a name.
    fn resource(&mut self) -> (i8, StrBytes) {
        match self.below(8) {
            0..3 => (2, self.topic_name().0),
            3..5 => {
                let ids = [
                    "",
                    "0",
                    "1",
                    "2",
                    "+1",
                    "-0",
                    "00",
                    " 1",
                    "\u{661}",
                    "2147483648",
                ];
                (4, StrBytes::from_static_str(self.pick(&ids)))
            }
            5 => (16, self.text()),
            6 => (32, self.text()),
            _ => (self.pick(&[i8::MIN, -1, 0, 3, 8, 64]), self.text()),
        }
    }

    pub(super) fn incremental_alter_configs(&mut self) -> (i16, Request) {
        let resources = self.some(|run| {
            let (kind, name) = run.resource();
            let configs = run.some(|run| {
                let (key, value) = run.pair();
                changed::AlterableConfig::default()
                    .with_name(key)
                    .with_config_operation(run.pick(&[0, 0, 0, 1, 2, 3, 4, -1]))
                    .with_value(value)
            });
            changed::AlterConfigsResource::default()
                .with_resource_type(kind)
                .with_resource_name(name)
                .with_configs(configs)
        });
        let request = km::IncrementalAlterConfigsRequest::default()
            .with_resources(resources)
            .with_validate_only(self.once_in(8));
        (1, Request::IncrementalAlterConfigs(request))
    }

    pub(super) fn alter_configs(&mut self) -> (i16, Request) {
        let resources = self.some(|run| {
            let (kind, name) = run.resource();
            let configs = run.some(|run| {
                let (key, value) = run.pair();
                replaced::AlterableConfig::default()
                    .with_name(key)
                    .with_value(value)
            });
            replaced::AlterConfigsResource::default()
                .with_resource_type(kind)
                .with_resource_name(name)
                .with_configs(configs)
        });
        let request = km::AlterConfigsRequest::default()
            .with_resources(resources)
            .with_validate_only(self.once_in(8));
        (2, Request::AlterConfigs(request))
    }

    pub(super) fn create_topics(&mut self) -> (i16, Request) {
        let topics = self.some(|run| {
            let configs = run.some(|run| {
                let (key, value) = run.pair();
                created::CreatableTopicConfig::default()
                    .with_name(key)
                    .with_value(value)
            });
            let configs = if run.once_in(3) { configs } else { Vec::new() };
            let topic = created::CreatableTopic::default()
                .with_name(run.topic_name())
                .with_configs(configs);
            if run.once_in(3) {
                return topic
                    .with_num_partitions(run.pick(&[-1, 1, 2, 3, 0, i32::MAX, i32::MIN]))
                    .with_replication_factor(run.pick(&[-1, 1, 2, 3, 0, i16::MAX, i16::MIN]));
            }
            let count = 1 + run.below(3) as i32;
            let assignments = (0..count).map(|index| {
                created::CreatableReplicaAssignment::default()
                    .with_partition_index(if run.once_in(20) { run.number() } else { index })
                    .with_broker_ids(run.distinct_replicas())
            });
            topic
                .with_num_partitions(-1)
                .with_replication_factor(-1)
                .with_assignments(assignments.collect())
        });
        let request = km::CreateTopicsRequest::default()
            .with_topics(topics)
            .with_validate_only(self.once_in(12));
        (7, Request::CreateTopics(request))
    }

    /// Two brokers that there are, or anything.
    fn distinct_replicas(&mut self) -> Vec<km::BrokerId> {
        if self.once_in(12) {
            return self.replicas();
        }
        let first = self.below(4) as i32;
        vec![km::BrokerId(first), km::BrokerId((first + 1) % 4)]
    }

    pub(super) fn create_partitions(&mut self) -> (i16, Request) {
        let topics = self.some(|run| {
            let assignments = run.some(|run| {
                grown::CreatePartitionsAssignment::default()
                    .with_broker_ids(run.distinct_replicas())
            });
            grown::CreatePartitionsTopic::default()
                .with_name(run.topic_name())
                .with_count(run.pick(&[2, 3, 4, 5, 0, -1, i32::MAX, i32::MIN]))
                .with_assignments(run.once_in(2).then_some(assignments))
        });
        let request = km::CreatePartitionsRequest::default()
            .with_topics(topics)
            .with_validate_only(self.once_in(8));
        (3, Request::CreatePartitions(request))
    }

    pub(super) fn delete_topics(&mut self) -> (i16, Request) {
        let topics = self.some(|run| {
            let state = DeleteTopicState::default();
            match run.below(5) {
                0 => state.with_name(None).with_topic_id(run.topic_id()),
                1 => state
                    .with_name(Some(run.topic_name()))
                    .with_topic_id(run.topic_id()),
                2 => state.with_name(None).with_topic_id(Uuid::nil()),
                _ => state.with_name(Some(run.topic_name())),
            }
        });
        // Topics are to live for a while.
        let topics = if self.once_in(4) { topics } else { Vec::new() };
        let request = km::DeleteTopicsRequest::default().with_topics(topics);
        (6, Request::DeleteTopics(request))
    }
}
