//! The policies that an operator gives as rules in the file, asked where Java asks its classes: of
//! each new topic once its replicas are placed, of each change of a configuration once it is known
//! to be valid.

use regex::Regex;

use super::configs::ConfigChange;
use crate::image::ConfigResource;
use crate::types::pattern::whole;
use crate::types::policy::{AlterConfigRules, CreateTopicRules};
use crate::types::{ApiError, ErrorCode};

/// The rules of both policies.
#[derive(Clone, Debug, Default)]
pub struct Policies {
    create_topic: CreateTopicRules,
    alter_config: AlterConfigRules,
    name: Option<Regex>,
}

impl Policies {
    /// Rules that were checked when they were read.
    ///
    /// # Errors
    /// The pattern for names is no regular expression.
    pub fn new(
        create_topic: CreateTopicRules,
        alter_config: AlterConfigRules,
    ) -> Result<Self, String> {
        let pattern = create_topic.name_pattern.as_ref();
        let name = pattern.map(|pattern| whole(pattern)).transpose()?;
        Ok(Self {
            create_topic,
            alter_config,
            name,
        })
    }

    /// Whether a topic of this name and so many partitions, each with as many replicas as
    /// `replicas` says, may be created.
    pub(super) fn check_new_topic(
        &self,
        name: &str,
        partitions: usize,
        replicas: usize,
    ) -> Result<(), ApiError> {
        let rules = &self.create_topic;
        if let Some(pattern) = &rules.name_pattern
            && !self.name.as_ref().is_some_and(|it| it.is_match(name))
        {
            return Err(violation(format!(
                "The name of topic '{name}' does not match {pattern}, which the policy of this \
                 cluster asks for."
            )));
        }
        if let Some(max) = rules.partitions_max
            && partitions as u64 > u64::from(max)
        {
            return Err(violation(format!(
                "Topic '{name}' would have {partitions} partitions, and the policy of this \
                 cluster allows {max}."
            )));
        }
        let bounds = [
            (rules.replication_min, "at least"),
            (rules.replication_max, "at most"),
        ];
        for (bound, words) in bounds {
            let Some(bound) = bound else { continue };
            let replicas = replicas as u64;
            let broken = match words {
                "at least" => replicas < u64::from(bound),
                _ => replicas > u64::from(bound),
            };
            if broken {
                return Err(violation(format!(
                    "Topic '{name}' would have a replication factor of {replicas}, and the \
                     policy of this cluster asks for {words} {bound}."
                )));
            }
        }
        Ok(())
    }

    /// Whether a resource may be changed in this way; `None` as a value deletes the key.
    pub(super) fn check_change(
        &self,
        resource: &ConfigResource,
        changes: &[ConfigChange],
    ) -> Result<(), ApiError> {
        let rules = &self.alter_config;
        if !rules.resources.contains(&resource.kind) {
            return Ok(());
        }
        for (key, value) in changes {
            let known = rules.allowed_keys.as_ref();
            if known.is_some_and(|allowed| !allowed.contains(key))
                || rules.denied_keys.contains(key)
            {
                return Err(violation(format!(
                    "The policy of this cluster does not allow to change {key}."
                )));
            }
            let range = rules.ranges.get(key);
            if let (Some(range), Some(value)) = (range, value)
                && !range.allows(value)
            {
                return Err(violation(format!(
                    "The policy of this cluster allows {} for {key}, and {value} is asked for.",
                    range.text
                )));
            }
        }
        Ok(())
    }
}

fn violation(message: String) -> ApiError {
    ApiError::new(ErrorCode::PolicyViolation, message)
}

#[cfg(test)]
mod tests {
    use kafka_protocol::messages::create_topics_request::{CreatableTopic, CreatableTopicConfig};
    use kafka_protocol::messages::incremental_alter_configs_request::{
        AlterConfigsResource, AlterableConfig,
    };
    use kafka_protocol::messages::{
        CreateTopicsRequest, IncrementalAlterConfigsRequest, TopicName,
    };
    use kafka_protocol::protocol::StrBytes;

    use super::*;
    use crate::controller::testing::World;
    use crate::controller::{Reply, Request};
    use crate::types::policy::Range;

    fn text(text: &str) -> StrBytes {
        StrBytes::from_string(text.into())
    }

    fn world() -> World {
        let mut world = World::with_brokers(&[1, 2, 3]);
        let create = CreateTopicRules {
            partitions_max: Some(10),
            replication_min: Some(2),
            replication_max: Some(2),
            name_pattern: Some("app-[a-z]+".to_owned()),
        };
        let alter = AlterConfigRules {
            resources: [2].into(),
            allowed_keys: Some(["retention.ms", "cleanup.policy"].map(str::to_owned).into()),
            denied_keys: ["cleanup.policy".to_owned()].into(),
            ranges: [(
                "retention.ms".to_owned(),
                Range::parse("1000..2000").unwrap(),
            )]
            .into(),
        };
        world.settings.policies = Policies::new(create, alter).unwrap();
        world
    }

    fn create(
        world: &mut World,
        name: &str,
        (partitions, replicas): (i32, i16),
        configs: &[(&str, &str)],
        validate_only: bool,
    ) -> (ErrorCode, String) {
        let config = |(key, value): &(&str, &str)| {
            CreatableTopicConfig::default()
                .with_name(text(key))
                .with_value(Some(text(value)))
        };
        let topic = CreatableTopic::default()
            .with_name(TopicName(text(name)))
            .with_num_partitions(partitions)
            .with_replication_factor(replicas)
            .with_configs(configs.iter().map(config).collect());
        let request = CreateTopicsRequest::default()
            .with_topics(vec![topic])
            .with_validate_only(validate_only);
        let Reply::CreateTopics(reply) = world.run(7, Request::CreateTopics(request)).unwrap()
        else {
            panic!("another reply");
        };
        let result = &reply.topics[0];
        let message = result.error_message.as_deref().unwrap_or_default();
        (ErrorCode::of(result.error_code), message.to_owned())
    }

    fn alter(world: &mut World, kind: i8, name: &str, key: &str, value: Option<&str>) -> ErrorCode {
        let config = AlterableConfig::default()
            .with_name(text(key))
            .with_config_operation(i8::from(value.is_none()))
            .with_value(value.map(text));
        let resource = AlterConfigsResource::default()
            .with_resource_type(kind)
            .with_resource_name(text(name))
            .with_configs(vec![config]);
        let request = IncrementalAlterConfigsRequest::default().with_resources(vec![resource]);
        let reply = world
            .run(1, Request::IncrementalAlterConfigs(request))
            .unwrap();
        let Reply::IncrementalAlterConfigs(reply) = reply else {
            panic!("another reply");
        };
        ErrorCode::of(reply.responses[0].error_code)
    }

    #[test]
    fn what_policies_know_of_keys_is_what_the_controller_takes() {
        use crate::controller::configs::definition::Kind;
        use crate::controller::configs::{client_metrics, group, topic};
        use crate::types::config_keys::{CLIENT_METRICS, GROUP, TOPIC, is_number, names};

        let groups = group::KEYS.iter().map(|key| &key.definition);
        for (resource, definitions) in [
            (TOPIC, topic::DEFINITIONS.iter().collect::<Vec<_>>()),
            (CLIENT_METRICS, client_metrics::DEFINITIONS.iter().collect()),
            (GROUP, groups.collect()),
        ] {
            for definition in &definitions {
                let kinds = [Kind::Double, Kind::Int, Kind::Long, Kind::Short];
                let number = kinds.contains(&definition.kind);
                let name = definition.name;
                assert_eq!(is_number(resource, name), Some(number), "{name}");
            }
            assert_eq!(names(resource).count(), definitions.len());
        }
    }

    #[test]
    fn topics_that_a_policy_does_not_allow_are_not_created() {
        let mut world = world();
        let violation = ErrorCode::PolicyViolation;
        for validate_only in [true, false] {
            let mut refused = |name, size, configs: &[_], words: &str| {
                let (code, message) = create(&mut world, name, size, configs, validate_only);
                assert_eq!(code, violation, "{message}");
                assert!(message.contains(words), "{message}");
            };
            refused("other", (1, 2), &[], "does not match app-[a-z]+");
            refused("app-a1", (1, 2), &[], "does not match");
            refused("app-a", (11, 2), &[], "11 partitions");
            refused("app-a", (1, 1), &[], "at least 2");
            refused("app-a", (1, 3), &[], "at most 2");
            refused("app-a", (1, 2), &[("retention.ms", "5")], "1000..2000");
            refused("app-a", (1, 2), &[("segment.ms", "5")], "segment.ms");
        }
        // What is wrong by itself is told first.
        let (code, _) = create(&mut world, "a b", (1, 2), &[], false);
        assert_eq!(code, ErrorCode::InvalidTopicException);
        let (code, _) = create(&mut world, "other", (0, 2), &[], false);
        assert_eq!(code, ErrorCode::InvalidPartitions);
        let (code, _) = create(
            &mut world,
            "app-a",
            (10, 2),
            &[("retention.ms", "1000")],
            false,
        );
        assert_eq!(code, ErrorCode::None);
    }

    #[test]
    fn changes_that_a_policy_does_not_allow_are_not_made() {
        let mut world = world();
        create(&mut world, "app-a", (1, 2), &[], false);
        let violation = ErrorCode::PolicyViolation;
        for (name, key, value, code) in [
            ("app-a", "retention.ms", Some("2000"), ErrorCode::None),
            ("app-a", "retention.ms", Some("2001"), violation),
            ("app-a", "retention.ms", None, ErrorCode::None),
            ("app-a", "retention.ms", Some("x"), ErrorCode::InvalidConfig),
            ("app-a", "cleanup.policy", Some("compact"), violation),
            ("app-a", "cleanup.policy", None, ErrorCode::None),
            (
                "app-b",
                "cleanup.policy",
                Some("compact"),
                ErrorCode::UnknownTopicOrPartition,
            ),
        ] {
            assert_eq!(
                alter(&mut world, 2, name, key, value),
                code,
                "{name} {key} {value:?}"
            );
        }
        // Only topics are looked at.
        assert_eq!(
            alter(&mut world, 4, "1", "log.cleaner.threads", Some("9")),
            ErrorCode::None
        );
    }
}
