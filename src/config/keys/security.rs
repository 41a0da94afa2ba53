//! Keys of listeners with TLS or SASL.

use super::Initial::{Null, Text};
use super::{Key, Kind, Mode, Rule, Use};

/// In the order of their names.
pub(super) static KEYS: &[Key] = &[
    Key::new(
        "connections.max.reauth.ms",
        Kind::Long,
        Text("0"),
        Use::Sasl,
    ),
    Key::new(
        "sasl.client.callback.handler.class",
        Kind::Class,
        Null,
        Use::Sasl,
    ),
    Key::new(
        "sasl.enabled.mechanisms",
        Kind::List,
        Text("GSSAPI"),
        Use::Sasl,
    )
    .rule(Rule::List {
        empty: true,
        null: false,
        of: &[],
    })
    .mode(Mode::PerBroker),
    Key::new("sasl.jaas.config", Kind::Password, Null, Use::Sasl).mode(Mode::PerBroker),
    Key::new(
        "sasl.kerberos.kinit.cmd",
        Kind::String,
        Text("/usr/bin/kinit"),
        Use::Sasl,
    )
    .mode(Mode::PerBroker),
    Key::new(
        "sasl.kerberos.min.time.before.relogin",
        Kind::Long,
        Text("60000"),
        Use::Sasl,
    )
    .mode(Mode::PerBroker),
    Key::new(
        "sasl.kerberos.principal.to.local.rules",
        Kind::List,
        Text("DEFAULT"),
        Use::Sasl,
    )
    .rule(Rule::List {
        empty: true,
        null: false,
        of: &[],
    })
    .mode(Mode::PerBroker),
    Key::new("sasl.kerberos.service.name", Kind::String, Null, Use::Sasl).mode(Mode::PerBroker),
    Key::new(
        "sasl.kerberos.ticket.renew.jitter",
        Kind::Double,
        Text("0.05"),
        Use::Sasl,
    )
    .mode(Mode::PerBroker),
    Key::new(
        "sasl.kerberos.ticket.renew.window.factor",
        Kind::Double,
        Text("0.8"),
        Use::Sasl,
    )
    .mode(Mode::PerBroker),
    Key::new(
        "sasl.login.callback.handler.class",
        Kind::Class,
        Null,
        Use::Sasl,
    ),
    Key::new("sasl.login.class", Kind::Class, Null, Use::Sasl),
    Key::new("sasl.login.connect.timeout.ms", Kind::Int, Null, Use::Sasl),
    Key::new("sasl.login.read.timeout.ms", Kind::Int, Null, Use::Sasl),
    Key::new(
        "sasl.login.refresh.buffer.seconds",
        Kind::Short,
        Text("300"),
        Use::Sasl,
    )
    .mode(Mode::PerBroker),
    Key::new(
        "sasl.login.refresh.min.period.seconds",
        Kind::Short,
        Text("60"),
        Use::Sasl,
    )
    .mode(Mode::PerBroker),
    Key::new(
        "sasl.login.refresh.window.factor",
        Kind::Double,
        Text("0.8"),
        Use::Sasl,
    )
    .mode(Mode::PerBroker),
    Key::new(
        "sasl.login.refresh.window.jitter",
        Kind::Double,
        Text("0.05"),
        Use::Sasl,
    )
    .mode(Mode::PerBroker),
    Key::new(
        "sasl.login.retry.backoff.max.ms",
        Kind::Long,
        Text("10000"),
        Use::Sasl,
    ),
    Key::new(
        "sasl.login.retry.backoff.ms",
        Kind::Long,
        Text("100"),
        Use::Sasl,
    ),
    Key::new(
        "sasl.mechanism.controller.protocol",
        Kind::String,
        Text("GSSAPI"),
        Use::Sasl,
    ),
    Key::new(
        "sasl.mechanism.inter.broker.protocol",
        Kind::String,
        Text("GSSAPI"),
        Use::Sasl,
    )
    .mode(Mode::PerBroker),
    Key::new(
        "sasl.oauthbearer.allow.unverified.audience",
        Kind::Boolean,
        Text("false"),
        Use::Sasl,
    ),
    Key::new(
        "sasl.oauthbearer.allow.unverified.issuer",
        Kind::Boolean,
        Text("false"),
        Use::Sasl,
    ),
    Key::new(
        "sasl.oauthbearer.assertion.algorithm",
        Kind::String,
        Text("RS256"),
        Use::Sasl,
    )
    .rule(Rule::OneOfAnyCase(&["ES256", "RS256"])),
    Key::new(
        "sasl.oauthbearer.assertion.claim.aud",
        Kind::String,
        Null,
        Use::Sasl,
    ),
    Key::new(
        "sasl.oauthbearer.assertion.claim.exp.seconds",
        Kind::Int,
        Text("300"),
        Use::Sasl,
    )
    .between(0, 86_400),
    Key::new(
        "sasl.oauthbearer.assertion.claim.iss",
        Kind::String,
        Null,
        Use::Sasl,
    ),
    Key::new(
        "sasl.oauthbearer.assertion.claim.jti.include",
        Kind::Boolean,
        Text("false"),
        Use::Sasl,
    ),
    Key::new(
        "sasl.oauthbearer.assertion.claim.nbf.seconds",
        Kind::Int,
        Text("60"),
        Use::Sasl,
    )
    .between(0, 3_600),
    Key::new(
        "sasl.oauthbearer.assertion.claim.sub",
        Kind::String,
        Null,
        Use::Sasl,
    ),
    Key::new(
        "sasl.oauthbearer.assertion.file",
        Kind::String,
        Null,
        Use::Sasl,
    ),
    Key::new(
        "sasl.oauthbearer.assertion.private.key.file",
        Kind::String,
        Null,
        Use::Sasl,
    ),
    Key::new(
        "sasl.oauthbearer.assertion.private.key.passphrase",
        Kind::Password,
        Null,
        Use::Sasl,
    ),
    Key::new(
        "sasl.oauthbearer.assertion.template.file",
        Kind::String,
        Null,
        Use::Sasl,
    ),
    Key::new(
        "sasl.oauthbearer.client.credentials.client.id",
        Kind::String,
        Null,
        Use::Sasl,
    ),
    Key::new(
        "sasl.oauthbearer.client.credentials.client.secret",
        Kind::Password,
        Null,
        Use::Sasl,
    ),
    Key::new(
        "sasl.oauthbearer.clock.skew.seconds",
        Kind::Int,
        Text("30"),
        Use::Sasl,
    ),
    Key::new(
        "sasl.oauthbearer.expected.audience",
        Kind::List,
        Text(""),
        Use::Sasl,
    )
    .rule(Rule::List {
        empty: true,
        null: false,
        of: &[],
    }),
    Key::new(
        "sasl.oauthbearer.expected.issuer",
        Kind::String,
        Null,
        Use::Sasl,
    ),
    Key::new(
        "sasl.oauthbearer.jwks.endpoint.refresh.ms",
        Kind::Long,
        Text("3600000"),
        Use::Sasl,
    ),
    Key::new(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
        Kind::Long,
        Text("10000"),
        Use::Sasl,
    ),
    Key::new(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
        Kind::Long,
        Text("100"),
        Use::Sasl,
    ),
    Key::new(
        "sasl.oauthbearer.jwks.endpoint.url",
        Kind::String,
        Null,
        Use::Sasl,
    ),
    Key::new(
        "sasl.oauthbearer.jwt.retriever.class",
        Kind::Class,
        Text("org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever"),
        Use::Sasl,
    ),
    Key::new(
        "sasl.oauthbearer.jwt.validator.class",
        Kind::Class,
        Text("org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator"),
        Use::Sasl,
    ),
    Key::new("sasl.oauthbearer.scope", Kind::String, Null, Use::Sasl),
    Key::new(
        "sasl.oauthbearer.scope.claim.name",
        Kind::String,
        Text("scope"),
        Use::Sasl,
    ),
    Key::new(
        "sasl.oauthbearer.sub.claim.name",
        Kind::String,
        Text("sub"),
        Use::Sasl,
    ),
    Key::new(
        "sasl.oauthbearer.token.endpoint.url",
        Kind::String,
        Null,
        Use::Sasl,
    ),
    Key::new(
        "sasl.server.callback.handler.class",
        Kind::Class,
        Null,
        Use::Sasl,
    ),
    Key::new(
        "sasl.server.max.receive.size",
        Kind::Int,
        Text("524288"),
        Use::Sasl,
    ),
    Key::new(
        "ssl.allow.dn.changes",
        Kind::Boolean,
        Text("false"),
        Use::Tls,
    ),
    Key::new(
        "ssl.allow.san.changes",
        Kind::Boolean,
        Text("false"),
        Use::Tls,
    ),
    Key::new("ssl.cipher.suites", Kind::List, Text(""), Use::Tls)
        .rule(Rule::List {
            empty: true,
            null: false,
            of: &[],
        })
        .mode(Mode::PerBroker),
    Key::new("ssl.client.auth", Kind::String, Text("none"), Use::Tls)
        .rule(Rule::OneOf(&["required", "requested", "none"]))
        .mode(Mode::PerBroker),
    Key::new(
        "ssl.enabled.protocols",
        Kind::List,
        Text("TLSv1.2,TLSv1.3"),
        Use::Tls,
    )
    .rule(Rule::List {
        empty: true,
        null: false,
        of: &[],
    })
    .mode(Mode::PerBroker),
    Key::new(
        "ssl.endpoint.identification.algorithm",
        Kind::String,
        Text("https"),
        Use::Tls,
    )
    .mode(Mode::PerBroker),
    Key::new("ssl.engine.factory.class", Kind::Class, Null, Use::Tls).mode(Mode::PerBroker),
    Key::new("ssl.key.password", Kind::Password, Null, Use::Tls).mode(Mode::PerBroker),
    Key::new(
        "ssl.keymanager.algorithm",
        Kind::String,
        Text("SunX509"),
        Use::Tls,
    )
    .mode(Mode::PerBroker),
    Key::new(
        "ssl.keystore.certificate.chain",
        Kind::Password,
        Null,
        Use::Tls,
    )
    .mode(Mode::PerBroker),
    Key::new("ssl.keystore.key", Kind::Password, Null, Use::Tls).mode(Mode::PerBroker),
    Key::new("ssl.keystore.location", Kind::String, Null, Use::Tls).mode(Mode::PerBroker),
    Key::new("ssl.keystore.password", Kind::Password, Null, Use::Tls).mode(Mode::PerBroker),
    Key::new("ssl.keystore.type", Kind::String, Text("JKS"), Use::Tls).mode(Mode::PerBroker),
    Key::new(
        "ssl.principal.mapping.rules",
        Kind::String,
        Text("DEFAULT"),
        Use::Tls,
    ),
    Key::new("ssl.protocol", Kind::String, Text("TLSv1.3"), Use::Tls).mode(Mode::PerBroker),
    Key::new("ssl.provider", Kind::String, Null, Use::Tls).mode(Mode::PerBroker),
    Key::new(
        "ssl.secure.random.implementation",
        Kind::String,
        Null,
        Use::Tls,
    )
    .mode(Mode::PerBroker),
    Key::new(
        "ssl.trustmanager.algorithm",
        Kind::String,
        Text("PKIX"),
        Use::Tls,
    )
    .mode(Mode::PerBroker),
    Key::new(
        "ssl.truststore.certificates",
        Kind::Password,
        Null,
        Use::Tls,
    )
    .mode(Mode::PerBroker),
    Key::new("ssl.truststore.location", Kind::String, Null, Use::Tls).mode(Mode::PerBroker),
    Key::new("ssl.truststore.password", Kind::Password, Null, Use::Tls).mode(Mode::PerBroker),
    Key::new("ssl.truststore.type", Kind::String, Text("JKS"), Use::Tls).mode(Mode::PerBroker),
];
