//! What is a secret in the metadata, and what stands in its place.
//!
//! The rule of the reference: a configuration value is shown only when its key is known and is no
//! password, because a key that nobody knows may hold a secret. Of SCRAM credentials and
//! delegation tokens the reference's tree hides every field. The keys of groups and of client
//! metrics subscriptions are known here too (the reference's tree takes all of them for secrets,
//! though DescribeConfigs shows them).

use crate::controller::configs::definition::Kind;
use crate::controller::configs::{client_metrics, group, server_keys, topic};
use crate::image::configs;

/// What stands in the place of a secret.
pub const REDACTED: &str = "[redacted]";

/// True when the value of this key of a resource of this type (a number of [`configs`]) must not
/// be shown.
#[must_use]
pub fn is_secret_config(kind: i8, key: &str) -> bool {
    let known = match kind {
        configs::BROKER => server_keys::find(key).map(|key| key.kind),
        configs::TOPIC => topic::definition(key).map(|key| key.kind),
        configs::GROUP => {
            let mut keys = group::KEYS.iter();
            keys.find(|known| known.definition.name == key)
                .map(|known| known.definition.kind)
        }
        configs::CLIENT_METRICS => {
            let mut keys = client_metrics::DEFINITIONS.iter();
            keys.find(|known| known.name == key).map(|key| key.kind)
        }
        _ => None,
    };
    known.is_none_or(|kind| kind == Kind::Password)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_config_value_is_secret_when_it_is_a_password_or_its_key_is_unknown() {
        for (kind, key, secret) in [
            (configs::BROKER, "log.cleaner.threads", false),
            (configs::BROKER, "ssl.keystore.password", true),
            (configs::BROKER, "ssl.truststore.certificates", true),
            (configs::BROKER, "listener.name.a.ssl.key.password", true),
            (configs::BROKER, "my.plugin.url", true),
            (configs::TOPIC, "retention.ms", false),
            (configs::TOPIC, "log.retention.ms", true),
            (configs::GROUP, "consumer.session.timeout.ms", false),
            (configs::GROUP, "x", true),
            (configs::CLIENT_METRICS, "interval.ms", false),
            (configs::CLIENT_METRICS, "x", true),
            (99, "retention.ms", true),
        ] {
            assert_eq!(is_secret_config(kind, key), secret, "{kind} {key}");
        }
    }
}
