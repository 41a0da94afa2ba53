//! What a node says of its listeners, before it is written: every reader of the log must be able to
//! read it.

use indexmap::IndexMap;

/// The security protocols there are, by Kafka's number: PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL.
const PROTOCOLS: std::ops::RangeInclusive<i16> = 0..=3;

/// One endpoint a name, in the order of the names' first places; of two with the same name the
/// last one counts, as for Java's readers. `listeners` are (name, protocol, endpoint).
///
/// # Errors
/// A sentence when a name is empty or a protocol unknown. No node, Java's brokers neither, can
/// replay a record with such a one.
pub(super) fn by_name<T>(
    listeners: impl Iterator<Item = (String, i16, T)>,
) -> Result<Vec<T>, String> {
    let mut endpoints = IndexMap::new();
    for (name, protocol, endpoint) in listeners {
        if name.is_empty() {
            return Err("A listener has no name".to_owned());
        }
        if !PROTOCOLS.contains(&protocol) {
            return Err(format!(
                "Unknown security protocol {protocol} in listener {name}"
            ));
        }
        endpoints.insert(name, endpoint);
    }
    Ok(endpoints.into_values().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(listeners: &[(&str, i16, u16)]) -> Result<Vec<u16>, String> {
        let listeners = listeners.iter();
        by_name(listeners.map(|(name, protocol, port)| (String::from(*name), *protocol, *port)))
    }

    #[test]
    fn of_two_listeners_with_one_name_the_last_counts_in_the_place_of_the_first() {
        assert_eq!(
            named(&[("A", 0, 1), ("B", 1, 2), ("A", 3, 3)]),
            Ok(vec![3, 2])
        );
        assert_eq!(named(&[]), Ok(Vec::new()));
    }

    /// Written down, it would stop the active controller, which replays what it decides.
    #[test]
    fn a_listener_without_a_name_that_nobody_could_replay_is_refused() {
        let refused = named(&[("A", 0, 1), ("", 0, 2)]).unwrap_err();
        assert_eq!(refused, "A listener has no name");
    }

    #[test]
    fn a_security_protocol_that_nobody_could_read_again_is_refused() {
        for protocol in [-1, 4, 99] {
            let refused = named(&[("A", 0, 1), ("B", protocol, 2)]).unwrap_err();
            assert_eq!(
                refused,
                format!("Unknown security protocol {protocol} in listener B")
            );
        }
    }
}
