//! What a node says of its listeners, before it is written: every reader of the log must be able to
//! read it, and find the node by it.

use indexmap::IndexMap;

use crate::image::Endpoint;
use crate::types::SecurityProtocol;

/// One endpoint a name, in the order of the names' first places; of two with the same name the
/// last one counts, as for Java's readers.
///
/// # Errors
/// A sentence when a name is empty or a protocol unknown: no node, Java's brokers neither, can
/// replay a record with such a one. And for a listener that counts without a host or a port, which
/// nobody could connect to.
pub(super) fn by_name(listeners: impl Iterator<Item = Endpoint>) -> Result<Vec<Endpoint>, String> {
    let mut endpoints = IndexMap::new();
    for endpoint in listeners {
        let (name, protocol) = (&endpoint.name, endpoint.security_protocol);
        if name.is_empty() {
            return Err("A listener has no name".to_owned());
        }
        if !SecurityProtocol::has_id(protocol) {
            return Err(format!(
                "Unknown security protocol {protocol} in listener {name}"
            ));
        }
        endpoints.insert(name.clone(), endpoint);
    }
    for (name, endpoint) in &endpoints {
        if endpoint.host.is_empty() {
            return Err(format!("Listener {name} has no host"));
        }
        if endpoint.port == 0 {
            return Err(format!("Listener {name} has port 0, which is none"));
        }
    }
    Ok(endpoints.into_values().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint((name, security_protocol, port): (&str, i16, u16)) -> Endpoint {
        Endpoint {
            name: name.to_owned(),
            host: "host".to_owned(),
            port,
            security_protocol,
        }
    }

    fn named(listeners: &[(&str, i16, u16)]) -> Result<Vec<u16>, String> {
        let named = by_name(listeners.iter().copied().map(endpoint))?;
        Ok(named.into_iter().map(|it| it.port).collect())
    }

    #[test]
    fn of_two_listeners_with_one_name_the_last_counts_in_the_place_of_the_first() {
        assert_eq!(
            named(&[("A", 0, 1), ("B", 1, 2), ("A", 3, 3)]),
            Ok(vec![3, 2])
        );
        assert_eq!(named(&[]), Ok(Vec::new()));
    }

    /// No decision with it makes sense; the process of Java's controller ends over it.
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

    #[test]
    fn a_listener_that_nobody_could_connect_to_is_refused_if_it_counts() {
        let refused = named(&[("A", 0, 1), ("B", 0, 0)]).unwrap_err();
        assert_eq!(refused, "Listener B has port 0, which is none");
        assert_eq!(named(&[("A", 0, 0), ("A", 0, 1)]), Ok(vec![1]));
        let nowhere = Endpoint {
            host: String::new(),
            ..endpoint(("A", 0, 1))
        };
        let refused = by_name([nowhere].into_iter()).unwrap_err();
        assert_eq!(refused, "Listener A has no host");
    }
}
