//! Requests at the start of each run that provoke every difference that is accepted: what chance
//! does not meet in a short run would stay on the list when it has gone. And some whose answers
//! depend on the order of a hash map of Java's.

use kafka_protocol::messages::alter_configs_request as alter;
use kafka_protocol::messages::controller_registration_request::Feature;
use kafka_protocol::messages::create_topics_request::{CreatableReplicaAssignment, CreatableTopic};
use kafka_protocol::messages::describe_quorum_request::{PartitionData, TopicData};
use kafka_protocol::messages::describe_user_scram_credentials_request::UserName;
use kafka_protocol::messages::incremental_alter_configs_request as incremental;
use kafka_protocol::messages::update_features_request::FeatureUpdateKey;
use kafka_protocol::messages::{
    AlterConfigsRequest, ControllerRegistrationRequest, CreateTopicsRequest,
    DescribeDelegationTokenRequest, DescribeQuorumRequest, DescribeUserScramCredentialsRequest,
    IncrementalAlterConfigsRequest, UpdateFeaturesRequest,
};
use kraftd::types::features::supported_features;
use uuid::Uuid;

use super::topics::{delete, ids};
use super::{Generator, text, topic_name};

const TOPIC: i8 = 2;
const GROUP: i8 = 32;
/// SET.
const SET: i8 = 0;
/// The level of 4.4.
const NEWEST: i16 = 33;
const LEVEL: &str = "metadata.version";

impl Generator {
    /// To be called once what the cluster begins with is known.
    pub(crate) fn provoke(&mut self) {
        // The directories of the two voters are bound by its answer.
        let partition = PartitionData::default().with_partition_index(0);
        let topic = TopicData::default()
            .with_topic_name(topic_name("__cluster_metadata"))
            .with_partitions(vec![partition]);
        self.force(DescribeQuorumRequest::default().with_topics(vec![topic]));
        self.provoke_bad_keys();
        self.provoke_bounds_of_groups();
        self.provoke_refused_features();
        self.provoke_nodes_that_lack_a_level();
        let nobody = UserName::default().with_name(text("nobody"));
        self.force(DescribeUserScramCredentialsRequest::default().with_users(Some(vec![nobody])));
        self.force(DescribeDelegationTokenRequest::default().with_owners(None));
    }

    /// Several keys that no topic has: nothing that is accepted, since kraftd tells the same one.
    fn provoke_bad_keys(&mut self) {
        let assignment = CreatableReplicaAssignment::default().with_broker_ids(ids(&[2]));
        let topic = CreatableTopic::default()
            .with_name(topic_name("provoked"))
            .with_num_partitions(-1)
            .with_replication_factor(-1)
            .with_assignments(vec![assignment]);
        let created = CreateTopicsRequest::default()
            .with_topics(vec![topic])
            .with_timeout_ms(60_000);
        self.force(created);
        let configs = [
            "nothing.of.this.name",
            "zz.top",
            "b",
            "a.key",
            "no.such.key",
        ]
        .map(|key| {
            incremental::AlterableConfig::default()
                .with_name(text(key))
                .with_config_operation(SET)
                .with_value(Some(text("1")))
        });
        self.force(changes(TOPIC, "provoked", configs.to_vec()));
        self.force(delete(&["provoked".to_owned()]));
    }

    /// A bound that another key sets.
    fn provoke_bounds_of_groups(&mut self) {
        let (key, value) = ("consumer.session.timeout.ms", "60001");
        let config = incremental::AlterableConfig::default()
            .with_name(text(key))
            .with_config_operation(SET)
            .with_value(Some(text(value)));
        self.force(changes(GROUP, "g", vec![config]));
        let config = alter::AlterableConfig::default()
            .with_name(text(key))
            .with_value(Some(text(value)));
        let resource = alter::AlterConfigsResource::default()
            .with_resource_type(GROUP)
            .with_resource_name(text("g"))
            .with_configs(vec![config]);
        self.force(AlterConfigsRequest::default().with_resources(vec![resource]));
    }

    /// Several features that nobody has: the same.
    fn provoke_refused_features(&mut self) {
        let names = ["zz.feature", "no.such.feature", "b", "another.feature"];
        let updates = names.map(|name| update(name, 1));
        self.force(features(updates.to_vec()));
    }

    /// Several controllers that are in the way of the newest level, and come back as better ones.
    /// In a hash table of Java's the second comes first.
    fn provoke_nodes_that_lack_a_level(&mut self) {
        let level = self.image.features().level(LEVEL);
        if level >= NEWEST {
            return;
        }
        let controllers = [3003, 3004];
        for id in controllers {
            self.force(registration(id, level));
        }
        self.force(features(vec![update(LEVEL, NEWEST)]));
        for id in controllers {
            self.force(registration(id, NEWEST));
        }
    }
}

pub(super) fn changes(
    kind: i8,
    name: &str,
    configs: Vec<incremental::AlterableConfig>,
) -> IncrementalAlterConfigsRequest {
    let resource = incremental::AlterConfigsResource::default()
        .with_resource_type(kind)
        .with_resource_name(text(name))
        .with_configs(configs);
    IncrementalAlterConfigsRequest::default().with_resources(vec![resource])
}

fn update(name: &str, level: i16) -> FeatureUpdateKey {
    FeatureUpdateKey::default()
        .with_feature(text(name))
        .with_max_version_level(level)
        .with_upgrade_type(1)
}

fn features(updates: Vec<FeatureUpdateKey>) -> UpdateFeaturesRequest {
    UpdateFeaturesRequest::default()
        .with_timeout_ms(60_000)
        .with_feature_updates(updates)
}

/// Of a controller that knows this level at most.
fn registration(id: i32, level: i16) -> ControllerRegistrationRequest {
    let features = supported_features(false)
        .into_iter()
        .map(|(name, low, high)| {
            Feature::default()
                .with_name(text(name))
                .with_min_supported_version(low)
                .with_max_supported_version(if name == LEVEL { level } else { high })
        });
    ControllerRegistrationRequest::default()
        .with_controller_id(id)
        .with_incarnation_id(Uuid::from_u128(id.unsigned_abs().into()))
        .with_features(features.collect())
}
