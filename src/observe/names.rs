//! The names that Kafka's tools give to numbers and entities, both ways.

use crate::image::{QuotaEntity, configs};

/// The type of a configuration resource, as in `TOPIC:foo`; a number nobody knows stays a number.
pub(super) fn config_kind(kind: i8) -> String {
    let name = match kind {
        configs::TOPIC => "TOPIC",
        configs::BROKER => "BROKER",
        8 => "BROKER_LOGGER",
        configs::CLIENT_METRICS => "CLIENT_METRICS",
        configs::GROUP => "GROUP",
        other => return format!("TYPE_{other}"),
    };
    name.to_owned()
}

/// The node name of a configuration resource. The empty name is the default of its type.
pub(super) fn config_resource(kind: i8, name: &str) -> String {
    let kind = config_kind(kind);
    match name {
        "" => kind,
        _ => format!("{kind}:{name}"),
    }
}

/// Reads what [`config_resource`] writes, as (type, name).
pub(super) fn parse_config_resource(node: &str) -> Option<(i8, &str)> {
    let (kind, name) = node.split_once(':').unwrap_or((node, ""));
    let number = match kind {
        "TOPIC" => configs::TOPIC,
        "BROKER" => configs::BROKER,
        "BROKER_LOGGER" => 8,
        "CLIENT_METRICS" => configs::CLIENT_METRICS,
        "GROUP" => configs::GROUP,
        other => other.strip_prefix("TYPE_")?.parse().ok()?,
    };
    Some((number, name))
}

/// The node name of a finalized feature other than `metadata.version`.
pub(super) fn finalized(feature: &str) -> String {
    format!("finalized_{feature}")
}

/// How the default entity of a type is written.
const DEFAULT_ENTITY: &str = "<default>";

/// The node name of a quota's entity: `clientId(a)_user(b)`.
pub(super) fn quota_entity(entity: &QuotaEntity) -> String {
    let parts = entity.iter().map(|(kind, name)| {
        let name = match name {
            None => DEFAULT_ENTITY.to_owned(),
            Some(name) if name == DEFAULT_ENTITY => format!("\\{name}"),
            Some(name) => escape(name),
        };
        match kind.as_str() {
            "client-id" => format!("clientId({name})"),
            other => format!("{other}({name})"),
        }
    });
    parts.collect::<Vec<_>>().join("_")
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '\\' | '(' | ')') {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

/// Reads what [`quota_entity`] writes.
pub(super) fn parse_quota_entity(node: &str) -> Option<QuotaEntity> {
    let mut entity = QuotaEntity::new();
    let mut rest = node;
    loop {
        let (kind, behind) = rest.split_once('(')?;
        let kind = match kind {
            "clientId" => "client-id",
            other => other,
        };
        let (name, behind) = read_name(behind)?;
        entity.insert(kind.to_owned(), name);
        if behind.is_empty() {
            return Some(entity);
        }
        rest = behind.strip_prefix('_')?;
    }
}

/// The name up to the closing parenthesis (`None` inside is the default), and what is behind it.
fn read_name(text: &str) -> Option<(Option<String>, &str)> {
    let mut name = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => name.push(chars.next()?.1),
            ')' => {
                let is_default = &text[..at] == DEFAULT_ENTITY;
                let name = (!is_default).then_some(name);
                return Some((name, &text[at + 1..]));
            }
            c => name.push(c),
        }
    }
    None
}

/// The mechanisms that SCRAM credentials can have, as (number, name).
pub(super) const SCRAM_MECHANISMS: [(i8, &str); 2] = [(1, "SCRAM-SHA-256"), (2, "SCRAM-SHA-512")];

/// The name of a SCRAM mechanism.
pub(super) fn scram_mechanism(number: i8) -> String {
    known(&SCRAM_MECHANISMS, number)
}

/// The name that Kafka's enumeration gives to a number, or the number.
fn known(names: &[(i8, &str)], number: i8) -> String {
    let found = names.iter().find(|(known, _)| *known == number);
    found.map_or_else(|| number.to_string(), |(_, name)| (*name).to_owned())
}

/// The type of the resource of an access control entry.
pub(super) fn acl_resource_type(number: i8) -> String {
    const NAMES: [(i8, &str); 6] = [
        (2, "TOPIC"),
        (3, "GROUP"),
        (4, "CLUSTER"),
        (5, "TRANSACTIONAL_ID"),
        (6, "DELEGATION_TOKEN"),
        (7, "USER"),
    ];
    known(&NAMES, number)
}

/// How the resource name of an access control entry is meant.
pub(super) fn acl_pattern_type(number: i8) -> String {
    known(&[(3, "LITERAL"), (4, "PREFIXED")], number)
}

/// What an access control entry is about.
pub(super) fn acl_operation(number: i8) -> String {
    const NAMES: [(i8, &str); 14] = [
        (2, "ALL"),
        (3, "READ"),
        (4, "WRITE"),
        (5, "CREATE"),
        (6, "DELETE"),
        (7, "ALTER"),
        (8, "DESCRIBE"),
        (9, "CLUSTER_ACTION"),
        (10, "DESCRIBE_CONFIGS"),
        (11, "ALTER_CONFIGS"),
        (12, "IDEMPOTENT_WRITE"),
        (13, "CREATE_TOKENS"),
        (14, "DESCRIBE_TOKENS"),
        (15, "TWO_PHASE_COMMIT"),
    ];
    known(&NAMES, number)
}

/// Whether an access control entry allows or denies.
pub(super) fn acl_permission(number: i8) -> String {
    known(&[(2, "DENY"), (3, "ALLOW")], number)
}

/// The name of a security protocol.
pub(super) fn security_protocol(number: i16) -> String {
    match number {
        0 => "PLAINTEXT".to_owned(),
        1 => "SSL".to_owned(),
        2 => "SASL_PLAINTEXT".to_owned(),
        3 => "SASL_SSL".to_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entity(parts: &[(&str, Option<&str>)]) -> QuotaEntity {
        let parts = parts.iter();
        parts
            .map(|(kind, name)| ((*kind).to_owned(), name.map(str::to_owned)))
            .collect()
    }

    #[test]
    fn names_of_quota_entities_can_be_read_back_whatever_is_in_them() {
        let cases = [
            (entity(&[("user", Some("a"))]), "user(a)"),
            (entity(&[("user", None)]), "user(<default>)"),
            (entity(&[("user", Some("<default>"))]), r"user(\<default>)"),
            (entity(&[("ip", Some("10.0.0.1"))]), "ip(10.0.0.1)"),
            (
                entity(&[("user", Some(r"(x)\")), ("client-id", Some("y)_user("))]),
                r"clientId(y\)_user\()_user(\(x\)\\)",
            ),
            (
                entity(&[("user", Some("")), ("client-id", None)]),
                "clientId(<default>)_user()",
            ),
        ];
        for (entity, name) in cases {
            assert_eq!(quota_entity(&entity), name);
            assert_eq!(parse_quota_entity(name), Some(entity));
        }
        for bad in [
            "", "user", "user(", "user(a", "user(a)x", "user(a)_", r"user(a\",
        ] {
            assert_eq!(parse_quota_entity(bad), None, "{bad}");
        }
    }

    #[test]
    fn names_of_config_resources_can_be_read_back() {
        for (kind, name, node) in [
            (configs::TOPIC, "a", "TOPIC:a"),
            (configs::BROKER, "", "BROKER"),
            (configs::GROUP, "a:b/c", "GROUP:a:b/c"),
            (77, "x", "TYPE_77:x"),
        ] {
            assert_eq!(config_resource(kind, name), node);
            assert_eq!(parse_config_resource(node), Some((kind, name)));
        }
        assert_eq!(parse_config_resource("TYPE_x"), None);
        assert_eq!(parse_config_resource("topic:a"), None);
    }
}
