//! Keys that steer the controller, and those that ask for what is not built.

use super::Initial::{Null, Required, Text};
use super::{Key, Kind, Mode, Rule, Use};

/// In the order of their names.
pub(super) static KEYS: &[Key] = &[
    Key::new("advertised.listeners", Kind::List, Null, Use::Controller).rule(Rule::List {
        empty: false,
        null: true,
        of: &[],
    }),
    Key::new(
        "alter.config.policy.class.name",
        Kind::Class,
        Null,
        Use::NotBuilt(
            "policy classes are Java plugins, which kraftd cannot load; the keys \
             kraftd.alter.config.policy.* give rules instead",
        ),
    ),
    Key::new(
        "authorizer.class.name",
        Kind::String,
        Text(""),
        Use::Controller,
    ),
    Key::new(
        "auto.create.topics.enable",
        Kind::Boolean,
        Text("true"),
        Use::Controller,
    ),
    Key::new(
        "auto.leader.rebalance.enable",
        Kind::Boolean,
        Text("true"),
        Use::Controller,
    ),
    Key::new(
        "broker.heartbeat.interval.ms",
        Kind::Int,
        Text("2000"),
        Use::Controller,
    ),
    Key::new("broker.id", Kind::Int, Text("-1"), Use::Controller),
    Key::new(
        "broker.session.timeout.ms",
        Kind::Int,
        Text("9000"),
        Use::Controller,
    ),
    Key::new(
        "client.quota.callback.class",
        Kind::Class,
        Null,
        Use::NotBuilt("quota callbacks are Java plugins, kraftd cannot load them"),
    ),
    Key::new("config.providers", Kind::List, Text(""), Use::Controller)
        .rule(Rule::List {
            empty: true,
            null: false,
            of: &[],
        })
        .mode(Mode::ClusterWide),
    Key::new(
        "connection.failed.authentication.delay.ms",
        Kind::Int,
        Text("100"),
        Use::Controller,
    )
    .at_least(0),
    Key::new(
        "connections.max.idle.ms",
        Kind::Long,
        Text("600000"),
        Use::Controller,
    ),
    Key::new(
        "controller.listener.names",
        Kind::List,
        Required,
        Use::Controller,
    )
    .rule(Rule::List {
        empty: false,
        null: false,
        of: &[],
    }),
    Key::new(
        "controller.quorum.append.linger.ms",
        Kind::Int,
        Text("25"),
        Use::Controller,
    )
    .at_least(0),
    Key::new(
        "controller.quorum.auto.join.enable",
        Kind::Boolean,
        Text("false"),
        Use::Controller,
    ),
    Key::new(
        "controller.quorum.bootstrap.servers",
        Kind::List,
        Text(""),
        Use::Controller,
    )
    .rule(Rule::Servers),
    Key::new(
        "controller.quorum.election.backoff.max.ms",
        Kind::Int,
        Text("1000"),
        Use::Controller,
    )
    .at_least(0),
    Key::new(
        "controller.quorum.election.timeout.ms",
        Kind::Int,
        Text("1000"),
        Use::Controller,
    )
    .at_least(0),
    Key::new(
        "controller.quorum.fetch.max.bytes",
        Kind::Int,
        Text("1048576"),
        Use::Controller,
    )
    .at_least(1),
    Key::new(
        "controller.quorum.fetch.snapshot.max.bytes",
        Kind::Int,
        Text("1048576"),
        Use::Controller,
    )
    .at_least(1),
    Key::new(
        "controller.quorum.fetch.timeout.ms",
        Kind::Int,
        Text("2000"),
        Use::Controller,
    )
    .at_least(0),
    Key::new(
        "controller.quorum.request.timeout.ms",
        Kind::Int,
        Text("2000"),
        Use::Controller,
    )
    .at_least(0),
    Key::new(
        "controller.quorum.retry.backoff.ms",
        Kind::Int,
        Text("20"),
        Use::Controller,
    )
    .at_least(0),
    Key::new(
        "controller.quorum.voters",
        Kind::List,
        Text(""),
        Use::Controller,
    )
    .rule(Rule::Voters),
    Key::new(
        "controller.quota.window.num",
        Kind::Int,
        Text("11"),
        Use::Controller,
    )
    .at_least(1),
    Key::new(
        "controller.quota.window.size.seconds",
        Kind::Int,
        Text("1"),
        Use::Controller,
    )
    .at_least(1),
    Key::new(
        "create.topic.policy.class.name",
        Kind::Class,
        Null,
        Use::NotBuilt(
            "policy classes are Java plugins, which kraftd cannot load; the keys \
             kraftd.create.topic.policy.* give rules instead",
        ),
    ),
    Key::new(
        "default.replication.factor",
        Kind::Int,
        Text("1"),
        Use::Controller,
    ),
    Key::new(
        "delegation.token.secret.key",
        Kind::Password,
        Null,
        Use::Controller,
    ),
    Key::new(
        "delete.topic.enable",
        Kind::Boolean,
        Text("true"),
        Use::Controller,
    ),
    Key::new("early.start.listeners", Kind::List, Null, Use::Controller).rule(Rule::List {
        empty: true,
        null: true,
        of: &[],
    }),
    Key::new(
        "inter.broker.listener.name",
        Kind::String,
        Null,
        Use::Checked,
    ),
    Key::new(
        "internal.metadata.delete.delay.millis",
        Kind::Long,
        Text("60000"),
        Use::Controller,
    )
    .internal(),
    Key::new(
        "internal.metadata.log.segment.bytes",
        Kind::Int,
        Null,
        Use::Controller,
    )
    .internal(),
    Key::new(
        "internal.metadata.max.batch.size.in.bytes",
        Kind::Int,
        Text("8388608"),
        Use::Controller,
    )
    .internal(),
    Key::new(
        "leader.imbalance.check.interval.seconds",
        Kind::Long,
        Text("300"),
        Use::Controller,
    )
    .at_least(1),
    Key::new(
        "listener.security.protocol.map",
        Kind::String,
        Text("SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT"),
        Use::Controller,
    )
    .mode(Mode::PerBroker),
    Key::new(
        "listeners",
        Kind::List,
        Text("PLAINTEXT://:9092"),
        Use::Controller,
    )
    .rule(Rule::List {
        empty: false,
        null: false,
        of: &[],
    })
    .mode(Mode::PerBroker),
    Key::new(
        "log.dir",
        Kind::List,
        Text("/tmp/kafka-logs"),
        Use::Controller,
    )
    .rule(Rule::List {
        empty: false,
        null: false,
        of: &[],
    }),
    Key::new("log.dirs", Kind::List, Null, Use::Controller).rule(Rule::List {
        empty: false,
        null: true,
        of: &[],
    }),
    Key::new(
        "max.connection.creation.rate",
        Kind::Int,
        Text("2147483647"),
        Use::Controller,
    )
    .at_least(0)
    .mode(Mode::ClusterWide),
    Key::new(
        "max.connections",
        Kind::Int,
        Text("2147483647"),
        Use::Controller,
    )
    .at_least(0)
    .mode(Mode::ClusterWide),
    Key::new(
        "max.connections.per.ip",
        Kind::Int,
        Text("2147483647"),
        Use::Controller,
    )
    .at_least(0)
    .mode(Mode::ClusterWide),
    Key::new(
        "max.connections.per.ip.overrides",
        Kind::String,
        Text(""),
        Use::Controller,
    )
    .mode(Mode::ClusterWide),
    Key::new("metadata.log.dir", Kind::String, Null, Use::Controller),
    Key::new(
        "metadata.log.max.record.bytes.between.snapshots",
        Kind::Long,
        Text("20971520"),
        Use::Controller,
    )
    .at_least(1),
    Key::new(
        "metadata.log.max.snapshot.interval.ms",
        Kind::Long,
        Text("3600000"),
        Use::Controller,
    )
    .at_least(0),
    Key::new(
        "metadata.log.segment.bytes",
        Kind::Int,
        Text("1073741824"),
        Use::Controller,
    )
    .at_least(8_388_608),
    Key::new(
        "metadata.log.segment.ms",
        Kind::Long,
        Text("604800000"),
        Use::Controller,
    ),
    Key::new(
        "metadata.max.idle.interval.ms",
        Kind::Int,
        Text("500"),
        Use::Controller,
    )
    .at_least(0),
    Key::new(
        "metadata.max.retention.bytes",
        Kind::Long,
        Text("104857600"),
        Use::Controller,
    ),
    Key::new(
        "metadata.max.retention.ms",
        Kind::Long,
        Text("604800000"),
        Use::Controller,
    ),
    Key::new("node.id", Kind::Int, Required, Use::Controller).at_least(0),
    Key::new("num.partitions", Kind::Int, Text("1"), Use::Controller).at_least(1),
    Key::new(
        "principal.builder.class",
        Kind::Class,
        Text("org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder"),
        Use::NotBuilt("principal builders are Java plugins, kraftd cannot load them"),
    )
    .mode(Mode::PerBroker),
    Key::new("process.roles", Kind::List, Required, Use::Controller).rule(Rule::List {
        empty: false,
        null: false,
        of: &["broker", "controller"],
    }),
    Key::new(
        "queued.max.request.bytes",
        Kind::Long,
        Text("-1"),
        Use::Controller,
    ),
    Key::new(
        "queued.max.requests",
        Kind::Int,
        Text("500"),
        Use::Controller,
    )
    .at_least(1),
    Key::new(
        "request.timeout.ms",
        Kind::Int,
        Text("30000"),
        Use::Controller,
    ),
    Key::new(
        "security.inter.broker.protocol",
        Kind::String,
        Text("PLAINTEXT"),
        Use::Checked,
    )
    .rule(Rule::OneOf(&[
        "PLAINTEXT",
        "SSL",
        "SASL_PLAINTEXT",
        "SASL_SSL",
    ])),
    Key::new(
        "socket.connection.setup.timeout.max.ms",
        Kind::Long,
        Text("30000"),
        Use::Controller,
    ),
    Key::new(
        "socket.connection.setup.timeout.ms",
        Kind::Long,
        Text("10000"),
        Use::Controller,
    ),
    Key::new(
        "socket.listen.backlog.size",
        Kind::Int,
        Text("50"),
        Use::Controller,
    )
    .at_least(1),
    Key::new(
        "socket.receive.buffer.bytes",
        Kind::Int,
        Text("102400"),
        Use::Controller,
    ),
    Key::new(
        "socket.request.max.bytes",
        Kind::Int,
        Text("104857600"),
        Use::Controller,
    )
    .at_least(1),
    Key::new(
        "socket.send.buffer.bytes",
        Kind::Int,
        Text("102400"),
        Use::Controller,
    ),
    Key::new(
        "unclean.leader.election.interval.ms",
        Kind::Long,
        Text("300000"),
        Use::Controller,
    )
    .at_least(1)
    .internal(),
    Key::new(
        "unstable.feature.versions.enable",
        Kind::Boolean,
        Text("false"),
        Use::Controller,
    )
    .internal(),
];
