//! The keys of groups (KIP-848, KIP-932, KIP-1071).

use std::collections::BTreeMap;

use super::alter::unknown_key;
use super::definition::{Check, Definition, Kind, Value, list};
use super::server_keys;
use crate::controller::Settings;
use crate::controller::levels::metadata_version;
use crate::image::Image;
use crate::types::config_keys::GROUP_BOUNDS;
use crate::types::{ApiError, ErrorCode};

/// A key of a group.
#[derive(Clone, Copy, Debug)]
pub struct GroupKey {
    /// Type, default and range.
    pub definition: Definition,
    /// The broker's key that gives the default.
    pub synonym: Option<&'static str>,
    /// True for a key that is shown only where it is set.
    pub internal: bool,
}

const fn key(name: &'static str, kind: Kind, default: &'static str, check: Check) -> GroupKey {
    GroupKey {
        definition: Definition {
            name,
            kind,
            default: Some(default),
            check,
        },
        synonym: None,
        internal: false,
    }
}

impl GroupKey {
    const fn like(self, synonym: &'static str) -> Self {
        Self {
            synonym: Some(synonym),
            ..self
        }
    }

    const fn internal(self) -> Self {
        Self {
            internal: true,
            ..self
        }
    }
}

const ISOLATION: &[&str] = &["read_committed", "read_uncommitted"];

const ASSIGNOR_NAME: GroupKey = GroupKey {
    definition: Definition {
        name: "streams.assignor.name",
        kind: Kind::String,
        default: None,
        check: Check::Any,
    },
    synonym: Some("group.streams.assignors"),
    internal: false,
};

/// Every key of a group in release 4.4. The order decides which of several bad values is told.
#[rustfmt::skip]
pub const KEYS: &[GroupKey] = &[
    key("consumer.session.timeout.ms", Kind::Int, "45000", Check::AtLeast(1))
        .like("group.consumer.session.timeout.ms"),
    key("consumer.heartbeat.interval.ms", Kind::Int, "5000", Check::AtLeast(1))
        .like("group.consumer.heartbeat.interval.ms"),
    key("consumer.assignment.interval.ms", Kind::Int, "1000", Check::AtLeast(0))
        .like("group.consumer.assignment.interval.ms"),
    key("consumer.assignor.offload.enable", Kind::Boolean, "true", Check::Any)
        .like("group.consumer.assignor.offload.enable")
        .internal(),
    key("share.session.timeout.ms", Kind::Int, "45000", Check::AtLeast(1))
        .like("group.share.session.timeout.ms"),
    key("share.heartbeat.interval.ms", Kind::Int, "5000", Check::AtLeast(1))
        .like("group.share.heartbeat.interval.ms"),
    key("share.record.lock.duration.ms", Kind::Int, "30000", Check::AtLeast(1000))
        .like("group.share.record.lock.duration.ms"),
    key("share.delivery.count.limit", Kind::Int, "5", Check::AtLeast(2))
        .like("group.share.delivery.count.limit"),
    key("share.partition.max.record.locks", Kind::Int, "2000", Check::AtLeast(100))
        .like("group.share.partition.max.record.locks"),
    key("share.auto.offset.reset", Kind::String, "latest", Check::OffsetReset),
    key("share.isolation.level", Kind::String, "read_uncommitted", Check::OneOf(ISOLATION)),
    key("share.renew.acknowledge.enable", Kind::Boolean, "true", Check::Any),
    key("share.assignment.interval.ms", Kind::Int, "1000", Check::AtLeast(0))
        .like("group.share.assignment.interval.ms"),
    key("share.assignor.offload.enable", Kind::Boolean, "true", Check::Any)
        .like("group.share.assignor.offload.enable")
        .internal(),
    key("streams.session.timeout.ms", Kind::Int, "45000", Check::AtLeast(1))
        .like("group.streams.session.timeout.ms"),
    key("streams.heartbeat.interval.ms", Kind::Int, "5000", Check::AtLeast(1))
        .like("group.streams.heartbeat.interval.ms"),
    key("streams.num.standby.replicas", Kind::Int, "0", Check::AtLeast(0))
        .like("group.streams.num.standby.replicas"),
    key("streams.initial.rebalance.delay.ms", Kind::Int, "3000", Check::AtLeast(0))
        .like("group.streams.initial.rebalance.delay.ms"),
    key("streams.assignment.interval.ms", Kind::Int, "1000", Check::AtLeast(0))
        .like("group.streams.assignment.interval.ms"),
    key("streams.assignor.offload.enable", Kind::Boolean, "true", Check::Any)
        .like("group.streams.assignor.offload.enable")
        .internal(),
    key("streams.task.offset.interval.ms", Kind::Int, "60000", Check::AtLeast(1))
        .like("group.streams.task.offset.interval.ms")
        .internal(),
    key("streams.num.warmup.replicas", Kind::Int, "2", Check::AtLeast(0))
        .like("group.streams.num.warmup.replicas")
        .internal(),
    key("streams.rack.aware.assignment.tags", Kind::List, "", Check::UniqueList)
        .like("group.streams.rack.aware.assignment.tags"),
    key("streams.acceptable.recovery.lag", Kind::Long, "10000", Check::AtLeast(0))
        .like("group.streams.acceptable.recovery.lag")
        .internal(),
    ASSIGNOR_NAME,
    key("errors.deadletterqueue.topic.name", Kind::String, "", Check::Any),
    key("errors.deadletterqueue.copy.record.enable", Kind::Boolean, "false", Check::Any),
];

/// How a bound is told: by its value, as 4.4 does, or by the key that sets it, as 4.3 did. Clusters
/// that are not finalized as 4.4 have clients and tools that know the latter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Words {
    Names,
    Numbers,
}

/// The metadata.version of release 4.4: 4.4-IV2.
const NUMBERS_SINCE: i16 = 33;

/// A number of the node's file, or the key's default.
fn server_number(settings: &Settings, name: &str) -> i64 {
    let Some(definition) = server_keys::find(name).map(server_keys::ServerKey::definition) else {
        return 0;
    };
    let set = settings.static_configs.get(name).map(String::as_str);
    let read = |text| match definition.read(text) {
        Ok(Value::Number(number)) => Some(number),
        _ => None,
    };
    let default = || definition.default.and_then(read).unwrap_or(0);
    set.and_then(read).unwrap_or_else(default)
}

/// Checks the whole configuration of a group against its own rules and this node's bounds.
pub(super) fn validate(
    image: &Image,
    settings: &Settings,
    own: &BTreeMap<String, String>,
) -> Result<(), ApiError> {
    let words = if metadata_version(image).level() < NUMBERS_SINCE {
        Words::Names
    } else {
        Words::Numbers
    };
    check(settings, own, words).map_err(|message| ApiError::new(ErrorCode::InvalidConfig, message))
}

fn check(settings: &Settings, own: &BTreeMap<String, String>, words: Words) -> Result<(), String> {
    let known = |name: &str| KEYS.iter().any(|key| key.definition.name == name);
    if let Some(name) = unknown_key(own, known) {
        return Err(format!("Unknown group config name: {name}"));
    }
    let tags = own.get("streams.rack.aware.assignment.tags");
    let mut tags: Vec<String> = tags.map(|text| list(text)).unwrap_or_default();
    let tag_count = tags.len();
    tags.sort_unstable();
    tags.dedup();
    if tags.len() != tag_count {
        return Err(
            "streams.rack.aware.assignment.tags must not contain duplicate tag keys.".into(),
        );
    }
    let mut values = BTreeMap::new();
    for key in KEYS {
        if let Some(text) = own.get(key.definition.name) {
            values.insert(key.definition.name, key.definition.read(text)?);
        }
    }
    for (name, min, max) in GROUP_BOUNDS {
        if let Some(Value::Number(number)) = values.get(name) {
            check_bound(settings, name, *number, (min, max), words)?;
        }
    }
    check_assignor(settings, &values)?;
    for kind in ["consumer", "share", "streams"] {
        check_session(settings, &values, kind)?;
    }
    match values.get("errors.deadletterqueue.topic.name") {
        Some(Value::Text(name)) if name.starts_with("__") => {
            Err("errors.deadletterqueue.topic.name: DLQ topic name must not start with '__'".into())
        }
        _ => Ok(()),
    }
}

fn check_bound(
    settings: &Settings,
    name: &str,
    number: i64,
    (min, max): (Option<&'static str>, Option<&'static str>),
    words: Words,
) -> Result<(), String> {
    let value = |key: &'static str| (key, server_number(settings, key));
    let (min, max) = (min.map(value), max.map(value));
    if let (Words::Numbers, Some((_, min)), Some((_, max))) = (words, min, max) {
        if number < min || number > max {
            return Err(format!(
                "{name} must be in the range {min} to {max} inclusive."
            ));
        }
        return Ok(());
    }
    let told = |(key, limit): (&str, i64)| match words {
        Words::Names => key.to_owned(),
        Words::Numbers => limit.to_string(),
    };
    match (min, max) {
        (Some(min), _) if number < min.1 => Err(format!(
            "{name} must be greater than or equal to {}",
            told(min)
        )),
        (_, Some(max)) if number > max.1 => Err(format!(
            "{name} must be less than or equal to {}",
            told(max)
        )),
        _ => Ok(()),
    }
}

fn check_assignor(settings: &Settings, values: &BTreeMap<&str, Value>) -> Result<(), String> {
    let Some(Value::Text(name)) = values.get("streams.assignor.name") else {
        return Ok(());
    };
    let registered = settings.static_configs.get("group.streams.assignors");
    let registered = list(registered.map_or("sticky", String::as_str));
    if registered.contains(name) {
        return Ok(());
    }
    Err(format!(
        "streams.assignor.name '{name}' is not a registered task assignor. Registered assignors \
         are: [{}].",
        registered.join(", ")
    ))
}

/// A session outlives the time between two heartbeats.
fn check_session(
    settings: &Settings,
    values: &BTreeMap<&str, Value>,
    kind: &str,
) -> Result<(), String> {
    let session = format!("{kind}.session.timeout.ms");
    let heartbeat = format!("{kind}.heartbeat.interval.ms");
    let own = |name: &str| match values.get(name) {
        Some(Value::Number(number)) => Some(*number),
        _ => None,
    };
    if own(&session).is_none() && own(&heartbeat).is_none() {
        return Ok(());
    }
    let or_server =
        |name: &str| own(name).unwrap_or_else(|| server_number(settings, &format!("group.{name}")));
    if or_server(&session) > or_server(&heartbeat) {
        return Ok(());
    }
    Err(format!("{session} must be greater than {heartbeat}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::testing::settings;

    fn refusal(file: &[(&str, &str)], own: &[(&str, &str)]) -> Option<String> {
        let map = |pairs: &[(&str, &str)]| {
            let owned = pairs
                .iter()
                .map(|(key, value)| ((*key).into(), (*value).into()));
            owned.collect::<BTreeMap<String, String>>()
        };
        let mut settings = settings();
        settings.static_configs = map(file);
        check(&settings, &map(own), Words::Numbers).err()
    }

    #[test]
    fn bounds_are_those_of_the_file_or_the_defaults() {
        let session = |value| [("consumer.session.timeout.ms", value)];
        assert_eq!(refusal(&[], &session("60000")), None);
        let wide = [("group.consumer.max.session.timeout.ms", "70000")];
        assert_eq!(refusal(&wide, &session("70000")), None);
        for (own, part) in [
            (
                &session("60001"),
                "must be in the range 45000 to 60000 inclusive.",
            ),
            (
                &[("streams.num.standby.replicas", "3")],
                "less than or equal to 2",
            ),
            (
                &[("streams.task.offset.interval.ms", "1")],
                "greater than or equal to 15000",
            ),
            (
                &[("share.delivery.count.limit", "1")],
                "Value must be at least 2",
            ),
            (
                &[("streams.assignor.name", "x")],
                "Registered assignors are: [sticky].",
            ),
            (
                &[("streams.rack.aware.assignment.tags", "a,a")],
                "duplicate tag keys",
            ),
            (
                &[("errors.deadletterqueue.topic.name", "__x")],
                "must not start with '__'",
            ),
        ] {
            let message = refusal(&[], own).unwrap_or_default();
            assert!(message.contains(part), "{own:?}: {message}");
        }
    }

    #[test]
    fn a_session_outlives_its_heartbeats() {
        let file = [("group.share.min.session.timeout.ms", "1")];
        let own = [("share.session.timeout.ms", "5000")];
        let message = refusal(&file, &own).unwrap();
        assert_eq!(
            message,
            "share.session.timeout.ms must be greater than share.heartbeat.interval.ms"
        );
        assert_eq!(
            refusal(&file, &[("share.session.timeout.ms", "5001")]),
            None
        );
    }

    #[test]
    fn a_cluster_below_the_level_of_4_4_is_told_the_names_of_bounds() {
        for (value, told) in [
            (
                "1",
                "greater than or equal to group.streams.min.session.timeout.ms",
            ),
            (
                "100000",
                "less than or equal to group.streams.max.session.timeout.ms",
            ),
        ] {
            let key = "streams.session.timeout.ms";
            let own = BTreeMap::from([(key.to_owned(), value.to_owned())]);
            let message = check(&settings(), &own, Words::Names).unwrap_err();
            assert_eq!(message, format!("{key} must be {told}"));
        }
    }
}
