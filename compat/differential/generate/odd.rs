//! Values that no client sends by itself, each by itself: registrations of nodes without listeners,
//! hosts or names, credentials of nothing, keys of no name, smallest ISRs that no ISR can have.

use bytes::Bytes;
use kafka_protocol::messages::alter_configs_request as alter;
use kafka_protocol::messages::alter_partition_request as in_sync;
use kafka_protocol::messages::alter_user_scram_credentials_request::{
    ScramCredentialDeletion, ScramCredentialUpsertion,
};
use kafka_protocol::messages::broker_registration_request as broker;
use kafka_protocol::messages::controller_registration_request as controller;
use kafka_protocol::messages::create_topics_request as create;
use kafka_protocol::messages::incremental_alter_configs_request as incremental;
use kafka_protocol::messages::{
    AlterConfigsRequest, AlterPartitionRequest, AlterUserScramCredentialsRequest, BrokerId,
    BrokerRegistrationRequest, ControllerRegistrationRequest, CreateTopicsRequest,
    IncrementalAlterConfigsRequest,
};
use kraftd::records::rpc::BrokerHeartbeatRequest;
use kraftd::types::features::supported_features;
use kraftd::types::{NodeId, PartitionId};
use uuid::Uuid;

use super::topics::ids;
use super::{Ask, Generator, Step, text, topic_name};

/// What is odd about a node that registers. Not that a listener has no name: Java's process ends.
#[derive(Clone, Copy, Debug)]
enum Odd {
    NoListeners,
    EmptyHost,
    PortZero,
    FeatureWithoutName,
    FeatureWithoutNameOfZero,
    FeatureTwiceGoodLast,
    FeatureTwiceBadLast,
    UnknownFeatureMinAboveMax,
    LevelMinAboveMax,
    NegativeRange,
    ListenerTwice,
    NilIncarnation,
    EmptyRack,
    NoFeatures,
    UnknownProtocol,
    LongName,
}

const ODD: [Odd; 16] = [
    Odd::NoListeners,
    Odd::EmptyHost,
    Odd::PortZero,
    Odd::FeatureWithoutName,
    Odd::FeatureWithoutNameOfZero,
    Odd::FeatureTwiceGoodLast,
    Odd::FeatureTwiceBadLast,
    Odd::UnknownFeatureMinAboveMax,
    Odd::LevelMinAboveMax,
    Odd::NegativeRange,
    Odd::ListenerTwice,
    Odd::NilIncarnation,
    Odd::EmptyRack,
    Odd::NoFeatures,
    Odd::UnknownProtocol,
    Odd::LongName,
];

/// Listeners (name, host, port, protocol) and features (name, min, max).
struct Told {
    listeners: Vec<(String, &'static str, u16, i16)>,
    features: Vec<(&'static str, i16, i16)>,
}

fn told(odd: Odd) -> Told {
    let listener = (String::from("PLAINTEXT"), "localhost", 9_000, 0);
    let mut told = Told {
        listeners: vec![listener.clone()],
        features: supported_features(false),
    };
    let level = |told: &mut Told| {
        let at = told
            .features
            .iter()
            .position(|it| it.0 == "metadata.version");
        at.expect("it is there")
    };
    match odd {
        Odd::NoListeners => told.listeners.clear(),
        Odd::EmptyHost => told.listeners[0].1 = "",
        Odd::PortZero => told.listeners[0].2 = 0,
        Odd::FeatureWithoutName => told.features.push(("", 1, 1)),
        Odd::FeatureWithoutNameOfZero => told.features.push(("", 0, 0)),
        Odd::FeatureTwiceGoodLast => told.features.insert(0, ("metadata.version", 1, 2)),
        Odd::FeatureTwiceBadLast => told.features.push(("metadata.version", 1, 2)),
        Odd::UnknownFeatureMinAboveMax => told.features.push(("unknown", 5, 2)),
        Odd::LevelMinAboveMax => {
            let at = level(&mut told);
            told.features[at] = ("metadata.version", 40, 7);
        }
        Odd::NegativeRange => told.features.push(("unknown", -5, -2)),
        Odd::ListenerTwice => told
            .listeners
            .push((String::from("PLAINTEXT"), "other", 1, 1)),
        Odd::NoFeatures => told.features.clear(),
        Odd::UnknownProtocol => told.listeners[0].3 = 9,
        Odd::LongName => told.listeners[0].0 = "l".repeat(40_000),
        Odd::NilIncarnation | Odd::EmptyRack => {}
    }
    told
}

impl Generator {
    /// Plans them all, and tells how many there are with those that are planned already.
    pub(crate) fn plan_odd(&mut self) -> usize {
        for (id, odd) in (50..).zip(ODD) {
            let request = self.odd_broker(id, odd);
            self.force(request);
        }
        for (id, odd) in (4_000..).zip(ODD) {
            self.force(odd_controller(id, odd));
        }
        self.plan_odd_credentials();
        self.plan_keys_of_no_name();
        self.plan_odd_smallest_isrs();
        self.forced.len()
    }

    fn odd_broker(&mut self, id: i32, odd: Odd) -> BrokerRegistrationRequest {
        let Told {
            listeners,
            features,
        } = told(odd);
        let listeners = listeners.into_iter().map(|(name, host, port, protocol)| {
            broker::Listener::default()
                .with_name(text(&name))
                .with_host(text(host))
                .with_port(port)
                .with_security_protocol(protocol)
        });
        let features = features.into_iter().map(|(name, low, high)| {
            broker::Feature::default()
                .with_name(text(name))
                .with_min_supported_version(low)
                .with_max_supported_version(high)
        });
        let incarnation = match odd {
            Odd::NilIncarnation => Uuid::nil(),
            _ => self.dice.uuid(),
        };
        self.sound_registration(id)
            .with_incarnation_id(incarnation)
            .with_listeners(listeners.collect())
            .with_features(features.collect())
            .with_rack(matches!(odd, Odd::EmptyRack).then(|| text("")))
    }

    fn plan_odd_credentials(&mut self) {
        let sound = ScramCredentialUpsertion::default()
            .with_name(text("odd"))
            .with_mechanism(1)
            .with_iterations(4_096)
            .with_salt(Bytes::from_static(b"salt"))
            .with_salted_password(Bytes::from_static(&[7; 32]));
        let mut asked = vec![
            sound.clone().with_salt(Bytes::new()),
            sound.clone().with_salted_password(Bytes::new()),
            sound
                .clone()
                .with_salt(Bytes::new())
                .with_salted_password(Bytes::new()),
            sound.clone().with_name(text("")),
            sound.clone().with_name(text("")).with_mechanism(9),
            sound.clone().with_name(text(" ")),
            sound.clone().with_name(text(&"n".repeat(40_000))),
        ];
        for iterations in [0, -1, i32::MIN, i32::MAX, 4_095, 16_385] {
            asked.push(sound.clone().with_iterations(iterations));
        }
        for mechanism in [0, 3, -1, 127] {
            asked.push(sound.clone().with_mechanism(mechanism));
        }
        for upsertion in asked {
            let request = AlterUserScramCredentialsRequest::default();
            self.force(request.with_upsertions(vec![upsertion]));
        }
        let empty = sound
            .clone()
            .with_name(text("a"))
            .with_salted_password(Bytes::new());
        let request = AlterUserScramCredentialsRequest::default();
        self.force(request.with_upsertions(vec![empty, sound]));
        let deletion = ScramCredentialDeletion::default().with_mechanism(1);
        let request = AlterUserScramCredentialsRequest::default();
        self.force(request.with_deletions(vec![deletion]));
    }

    fn plan_keys_of_no_name(&mut self) {
        self.force(topic("odd", &[2, 3, 4], &[]));
        self.force(topic("odder", &[2], &[("", "1")]));
        self.force(topic("odder", &[2], &[("", "")]));
        self.force(topic("odder", &[2], &[("", "1"), ("retention.ms", "1")]));
        for (kind, name) in [
            (2, "odd"),
            (4, ""),
            (4, "2"),
            (8, "2"),
            (16, "m"),
            (32, "g"),
        ] {
            for operation in 0..4 {
                self.force(changed(kind, name, &[("", operation, Some("1"))]));
            }
            self.force(changed(kind, name, &[("", 0, None)]));
            self.force(changed(kind, name, &[("", 0, Some(""))]));
            self.force(replaced(kind, name, &[("", Some("1"))]));
            self.force(replaced(kind, name, &[("", Some(""))]));
            self.force(replaced(kind, name, &[("", None)]));
        }
        for key in [" ", "\0", "a b"] {
            self.force(changed(4, "", &[(key, 0, Some("1"))]));
            self.force(changed(4, "", &[(key, 1, None)]));
        }
        for name in [
            "+2",
            "-0",
            "02",
            " 2",
            "2 ",
            "2147483648",
            "-2147483648",
            "\u{662}",
            "0x2",
        ] {
            self.force(changed(4, name, &[("log.cleaner.threads", 0, Some("1"))]));
            self.force(changed(4, name, &[("log.cleaner.threads", 1, None)]));
        }
    }

    /// Each smallest ISR is followed by an ISR of one that is not the only replica, and of all; one
    /// that no ISR can have also by an ISR of nobody. None is no number: Java's controller resigns
    /// over that.
    fn plan_odd_smallest_isrs(&mut self) {
        const KEY: &str = "min.insync.replicas";
        let values = ["0", "-1", "5", "2147483647", "-2147483648", "+3", "3"];
        for (kind, name) in [(4, ""), (4, "2"), (2, "odd")] {
            for value in values {
                self.force(changed(kind, name, &[(KEY, 0, Some(value))]));
                self.plan_isr(&[2]);
                self.plan_isr(&[2, 3, 4]);
            }
            self.force(replaced(kind, name, &[(KEY, Some("0"))]));
            self.plan_isr(&[2]);
            self.force(replaced(kind, name, &[(KEY, Some("2"))]));
            self.plan_isr(&[2, 3, 4]);
            self.force(changed(kind, name, &[(KEY, 1, None)]));
            self.force(changed(kind, name, &[(KEY, 0, None)]));
        }
        for value in ["0", "-1", "5"] {
            self.force(changed(4, "", &[(KEY, 0, Some(value))]));
            for id in [4, 3, 2] {
                self.force(heartbeat(id, true));
            }
            for id in [2, 3, 4] {
                self.force(heartbeat(id, false));
            }
            self.plan_isr(&[2, 3, 4]);
        }
        for value in ["0", "-1", "9"] {
            self.force(topic("strict", &[2, 3], &[(KEY, value)]));
        }
    }

    /// The topic is looked up when it is sent.
    fn plan_isr(&mut self, isr: &[i32]) {
        let members = isr.iter().map(|id| {
            in_sync::BrokerState::default()
                .with_broker_id(BrokerId(*id))
                .with_broker_epoch(-1)
        });
        let partition =
            in_sync::PartitionData::default().with_new_isr_with_epochs(members.collect());
        let topic = in_sync::TopicData::default().with_partitions(vec![partition]);
        self.force(
            AlterPartitionRequest::default()
                .with_broker_id(BrokerId(2))
                .with_broker_epoch(-1)
                .with_topics(vec![topic]),
        );
    }

    /// A planned ISR with what only the image knows by now.
    pub(super) fn with_its_topic(&self, mut step: Step) -> Step {
        let Ask::AlterPartition(request) = &mut step.ask else {
            return step;
        };
        let topic = request
            .topics
            .first_mut()
            .filter(|topic| topic.topic_id.is_nil());
        let known = self.image.topic_by_name("odd");
        if let (Some(topic), Some(known)) = (topic, known) {
            topic.topic_id = known.id();
            let old = known.partition(PartitionId(0)).expect("its only one");
            topic.partitions[0].leader_epoch = old.leader_epoch();
            topic.partitions[0].partition_epoch = old.partition_epoch();
            let broker = self.image.broker(NodeId(2)).expect("it is registered");
            request.broker_epoch = broker.epoch.0;
        }
        step
    }
}

/// Its epoch is looked up when it is sent.
fn heartbeat(id: i32, want_fence: bool) -> Ask {
    Ask::BrokerHeartbeat(BrokerHeartbeatRequest {
        broker_id: id,
        broker_epoch: -1,
        current_metadata_offset: 1 << 40,
        want_fence,
        ..BrokerHeartbeatRequest::default()
    })
}

fn odd_controller(id: i32, odd: Odd) -> ControllerRegistrationRequest {
    let Told {
        listeners,
        features,
    } = told(odd);
    let listeners = listeners.into_iter().map(|(name, host, port, protocol)| {
        controller::Listener::default()
            .with_name(text(&name))
            .with_host(text(host))
            .with_port(port)
            .with_security_protocol(protocol)
    });
    let features = features.into_iter().map(|(name, low, high)| {
        controller::Feature::default()
            .with_name(text(name))
            .with_min_supported_version(low)
            .with_max_supported_version(high)
    });
    let incarnation = match odd {
        Odd::NilIncarnation => Uuid::nil(),
        _ => Uuid::from_u128(id.unsigned_abs().into()),
    };
    ControllerRegistrationRequest::default()
        .with_controller_id(id)
        .with_incarnation_id(incarnation)
        .with_listeners(listeners.collect())
        .with_features(features.collect())
}

fn topic(name: &str, replicas: &[i32], configs: &[(&str, &str)]) -> CreateTopicsRequest {
    let assignment = create::CreatableReplicaAssignment::default().with_broker_ids(ids(replicas));
    let configs = configs.iter().map(|(key, value)| {
        create::CreatableTopicConfig::default()
            .with_name(text(key))
            .with_value(Some(text(value)))
    });
    let topic = create::CreatableTopic::default()
        .with_name(topic_name(name))
        .with_num_partitions(-1)
        .with_replication_factor(-1)
        .with_assignments(vec![assignment])
        .with_configs(configs.collect());
    CreateTopicsRequest::default()
        .with_topics(vec![topic])
        .with_timeout_ms(60_000)
}

fn changed(
    kind: i8,
    name: &str,
    changes: &[(&str, i8, Option<&str>)],
) -> IncrementalAlterConfigsRequest {
    let changes = changes.iter().map(|(key, operation, value)| {
        incremental::AlterableConfig::default()
            .with_name(text(key))
            .with_config_operation(*operation)
            .with_value(value.map(text))
    });
    super::provoked::changes(kind, name, changes.collect())
}

fn replaced(kind: i8, name: &str, values: &[(&str, Option<&str>)]) -> AlterConfigsRequest {
    let values = values.iter().map(|(key, value)| {
        alter::AlterableConfig::default()
            .with_name(text(key))
            .with_value(value.map(text))
    });
    let resource = alter::AlterConfigsResource::default()
        .with_resource_type(kind)
        .with_resource_name(text(name))
        .with_configs(values.collect());
    AlterConfigsRequest::default().with_resources(vec![resource])
}
