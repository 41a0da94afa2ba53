//! Configurations of every kind of resource, set, changed and described.

use kafka_protocol::messages::alter_configs_request as alter;
use kafka_protocol::messages::describe_configs_request::DescribeConfigsResource;
use kafka_protocol::messages::incremental_alter_configs_request as incremental;
use kafka_protocol::messages::{
    AlterConfigsRequest, DescribeConfigsRequest, IncrementalAlterConfigsRequest,
};

use super::{Ask, Generator, text};

const TOPIC: i8 = 2;
const BROKER: i8 = 4;
const LOGGER: i8 = 8;
const METRICS: i8 = 16;
const GROUP: i8 = 32;

const KNOWN: [i8; 5] = [TOPIC, BROKER, LOGGER, METRICS, GROUP];

/// SET, DELETE, APPEND, SUBTRACT.
const SET: i8 = 0;
const DELETE: i8 = 1;
const APPEND: i8 = 2;

/// Keys and values of topics, good ones and bad ones.
const TOPIC_PAIRS: [(&str, &[&str]); 24] = [
    (
        "retention.ms",
        &["1000", "86400000", "-1", "-2", "", "x", " 5 "],
    ),
    ("retention.bytes", &["-1", "1073741824", "1.5"]),
    ("segment.ms", &["60000", "0", "1"]),
    ("segment.bytes", &["1048576", "13", "2147483648", "10"]),
    (
        "cleanup.policy",
        &[
            "delete",
            "compact",
            "compact,delete",
            "keep",
            "",
            "delete,delete",
        ],
    ),
    ("min.insync.replicas", &["1", "2", "3", "0", "-1"]),
    (
        "compression.type",
        &["gzip", "producer", "zstd", "brotli", "uncompressed"],
    ),
    ("max.message.bytes", &["1000", "0", "-1", "1048588"]),
    (
        "message.timestamp.type",
        &["CreateTime", "LogAppendTime", "createtime"],
    ),
    (
        "unclean.leader.election.enable",
        &["true", "false", "TRUE", "yes"],
    ),
    ("preallocate", &["true", "false"]),
    (
        "min.cleanable.dirty.ratio",
        &["0.5", "1", "1.1", "-0.1", "NaN"],
    ),
    ("min.compaction.lag.ms", &["0", "1000", "999999"]),
    (
        "max.compaction.lag.ms",
        &["1000", "1", "0", "9223372036854775807"],
    ),
    (
        "leader.replication.throttled.replicas",
        &["*", "0:2,1:3", "", "0:x", "none"],
    ),
    (
        "follower.replication.throttled.replicas",
        &["*", "0:2", "x"],
    ),
    ("local.retention.ms", &["-2", "1000", "-1", "-3"]),
    ("remote.storage.enable", &["false", "true"]),
    ("compression.gzip.level", &["1", "9", "0", "-1", "10"]),
    ("flush.messages", &["1", "0"]),
    ("delete.retention.ms", &["0", "-1"]),
    ("index.interval.bytes", &["4096", "-1"]),
    ("no.such.key", &["1", ""]),
    ("message.format.version", &["3.0"]),
];

/// Keys and values of brokers: the controller checks few of them. None of `min.insync.replicas` is
/// bad: Java's controller resigns over every partition when it is no number. None is sound by
/// itself and bad for the node (a retention of 0): Java's then keeps what it last had as a whole.
/// None bounds a key of topics (`log.cleaner.max.compaction.lag.ms`): Java's checks by what it has
/// published, in its own time.
const BROKER_PAIRS: [(&str, &[&str]); 14] = [
    ("log.retention.ms", &["1000", "-5", "x"]),
    ("min.insync.replicas", &["1", "2"]),
    (
        "unclean.leader.election.enable",
        &["true", "false", "maybe"],
    ),
    ("message.max.bytes", &["100000", "1.5", "-1"]),
    ("log.cleaner.threads", &["2", "-1"]),
    ("leader.replication.throttled.rate", &["1000", "-1"]),
    ("log.cleanup.policy", &["delete", "compact,delete", "keep"]),
    ("log.segment.bytes", &["1048576", "13", "x"]),
    ("log.message.timestamp.type", &["LogAppendTime", "never"]),
    ("max.connections", &["10", "-1"]),
    ("ssl.keystore.password", &["secret"]),
    ("no.such.key", &["1"]),
    ("listener.name.x.ssl.key.password", &["secret"]),
    ("background.threads", &["10", "many"]),
];

const METRICS_PAIRS: [(&str, &[&str]); 4] = [
    ("interval.ms", &["1000", "99", "100", "3600001", "x"]),
    ("metrics", &["org.apache.kafka.", "a,b", "", "*"]),
    (
        "match",
        &[
            "client_id=a",
            "client_id=[",
            "nothing=a",
            "client_id",
            "client_source_port=1",
        ],
    ),
    ("no.such.key", &["1"]),
];

const GROUP_PAIRS: [(&str, &[&str]); 8] = [
    ("consumer.session.timeout.ms", &["45000", "1", "60001", "x"]),
    ("consumer.heartbeat.interval.ms", &["5000", "1", "15001"]),
    (
        "share.isolation.level",
        &["read_committed", "read_uncommitted", "x"],
    ),
    (
        "share.auto.offset.reset",
        &["earliest", "latest", "by_duration:PT1H", "never"],
    ),
    ("share.record.lock.duration.ms", &["30000", "1"]),
    ("streams.num.standby.replicas", &["0", "1", "9"]),
    ("share.delivery.count.limit", &["5", "1", "11"]),
    ("no.such.key", &["1"]),
];

impl Generator {
    /// A key and a value of a topic. A null value comes now and then.
    pub(super) fn topic_config(&mut self) -> (String, Option<String>) {
        self.pair(&TOPIC_PAIRS)
    }

    fn pair(&mut self, pairs: &[(&str, &[&str])]) -> (String, Option<String>) {
        let (key, values) = *self.dice.pick(pairs);
        // The first values are the good ones.
        let at = self
            .dice
            .below(values.len())
            .min(self.dice.below(values.len()));
        let value = (!self.dice.once_in(30)).then(|| values[at].to_owned());
        (key.to_owned(), value)
    }

    fn resource(&mut self) -> (i8, String) {
        match *self
            .dice
            .weighted(&[(10, 0), (6, 1), (3, 2), (4, 3), (1, 4), (1, 5)])
        {
            0 => (TOPIC, self.some_topic()),
            1 => (BROKER, self.broker_name()),
            2 => (
                METRICS,
                (*self.dice.pick(&["m1", "m2", "m3", ""])).to_owned(),
            ),
            3 => (
                GROUP,
                (*self.dice.pick(&["g1", "g2", "g 3", ""])).to_owned(),
            ),
            // Loggers of the node itself are those of a JVM, or not.
            4 => (LOGGER, self.broker_name().replace('1', "2")),
            _ => (*self.dice.pick(&[0, 3, 64, -1]), "x".to_owned()),
        }
    }

    fn broker_name(&mut self) -> String {
        let brokers: Vec<i32> = self.image.brokers().keys().map(|id| id.0).collect();
        match self.dice.below(12) {
            0..4 => String::new(),
            4 => (*self.dice.pick(&["x", "-1", "99", " 2", "1.0"])).to_owned(),
            5 => "1".to_owned(),
            _ => self
                .dice
                .maybe(&brokers)
                .map_or_else(|| "2".to_owned(), i32::to_string),
        }
    }

    fn pair_of(&mut self, kind: i8) -> (String, Option<String>) {
        let pairs: &[(&str, &[&str])] = match kind {
            BROKER => &BROKER_PAIRS,
            METRICS => &METRICS_PAIRS,
            GROUP => &GROUP_PAIRS,
            LOGGER => &[("org.apache.kafka", &["INFO", "x"])],
            _ => &TOPIC_PAIRS,
        };
        self.pair(pairs)
    }

    /// Keys that the resource has and some that it has not.
    fn known_key(&mut self, kind: i8, name: &str) -> Option<String> {
        let configs = self.image.configs();
        let keys: Vec<String> = configs
            .filter(|(it, resource, _)| *it == kind && *resource == name)
            .flat_map(|(_, _, map)| map.iter().map(|(key, _)| key.to_owned()))
            .collect();
        self.dice.maybe(&keys).cloned()
    }

    pub(super) fn incremental_alter_configs(&mut self) -> Ask {
        let count = *self.dice.weighted(&[(8, 1), (3, 2), (1, 0)]);
        let mut resources: Vec<_> = (0..count).map(|_| self.changed_resource()).collect();
        if self.dice.once_in(20) {
            resources.extend(resources.first().cloned());
        }
        IncrementalAlterConfigsRequest::default()
            .with_resources(resources)
            .with_validate_only(self.dice.once_in(6))
            .into()
    }

    fn changed_resource(&mut self) -> incremental::AlterConfigsResource {
        let (kind, name) = self.resource();
        let count = self.dice.below(3) + usize::from(!self.dice.once_in(20));
        let mut configs: Vec<_> = (0..count).map(|_| self.change(kind, &name)).collect();
        if self.dice.once_in(20) {
            configs.extend(configs.first().cloned());
        }
        incremental::AlterConfigsResource::default()
            .with_resource_type(kind)
            .with_resource_name(text(&name))
            .with_configs(configs)
    }

    fn change(&mut self, kind: i8, name: &str) -> incremental::AlterableConfig {
        let (mut key, mut value) = self.pair_of(kind);
        let operation = *self
            .dice
            .weighted(&[(8, SET), (3, DELETE), (2, APPEND), (2, 3)]);
        if operation == DELETE {
            value = value.filter(|_| self.dice.once_in(4));
            key = self.known_key(kind, name).unwrap_or(key);
        }
        // Java's controller resigns over an APPEND or SUBTRACT without a value.
        if operation >= APPEND && value.is_none() {
            value = Some("1".to_owned());
        }
        incremental::AlterableConfig::default()
            .with_name(text(&key))
            .with_config_operation(operation)
            .with_value(value.as_deref().map(text))
    }

    pub(super) fn alter_configs(&mut self) -> Ask {
        let count = *self.dice.weighted(&[(8, 1), (2, 2), (1, 0)]);
        let mut resources: Vec<_> = (0..count)
            .map(|_| {
                let (kind, name) = self.resource();
                let count = self.dice.below(4);
                let mut configs: Vec<_> = (0..count)
                    .map(|_| {
                        let (key, value) = self.pair_of(kind);
                        alter::AlterableConfig::default()
                            .with_name(text(&key))
                            .with_value(value.as_deref().map(text))
                    })
                    .collect();
                if self.dice.once_in(20) {
                    configs.extend(configs.first().cloned());
                }
                alter::AlterConfigsResource::default()
                    .with_resource_type(kind)
                    .with_resource_name(text(&name))
                    .with_configs(configs)
            })
            .collect();
        if self.dice.once_in(20) {
            resources.extend(resources.first().cloned());
        }
        // Java gives no answer at all when two of one name are of no type that it knows.
        let mut unknown = 0;
        resources.retain(|resource| {
            unknown += usize::from(!KNOWN.contains(&resource.resource_type));
            unknown < 2 || KNOWN.contains(&resource.resource_type)
        });
        AlterConfigsRequest::default()
            .with_resources(resources)
            .with_validate_only(self.dice.once_in(6))
            .into()
    }

    pub(super) fn describe_configs(&mut self) -> Ask {
        let count = *self.dice.weighted(&[(8, 1), (3, 2), (1, 0)]);
        let mut resources: Vec<_> = (0..count)
            .map(|_| {
                let (kind, name) = self.resource();
                let keys = self.described_keys(kind);
                DescribeConfigsResource::default()
                    .with_resource_type(kind)
                    .with_resource_name(text(&name))
                    .with_configuration_keys(keys)
            })
            .collect();
        if self.dice.once_in(20) {
            resources.extend(resources.first().cloned());
        }
        DescribeConfigsRequest::default()
            .with_resources(resources)
            .with_include_synonyms(self.dice.once_in(2))
            .into()
    }

    fn described_keys(&mut self, kind: i8) -> Option<Vec<kafka_protocol::protocol::StrBytes>> {
        if self.dice.once_in(2) {
            return None;
        }
        let count = self.dice.below(4);
        let keys = (0..count).map(|_| text(&self.pair_of(kind).0));
        Some(keys.collect())
    }
}
