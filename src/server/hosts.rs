//! Names of hosts in client quotas. A quota for an address may be set for a name that resolves to
//! one, and only the shell can ask a resolver: it does so before the request is decided.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use kafka_protocol::messages::AlterClientQuotasRequest;
use tokio::sync::Semaphore;

use super::core::Request;
use crate::controller;
use crate::controller::quotas::{AlterClientQuotas, IP};

/// For all names of one request.
const LOOKUP_TIME_MAX: Duration = Duration::from_secs(10);
/// Each lookup holds a thread until the resolver gives up.
const LOOKUPS_MAX: usize = 4;

static LOOKUPS: Semaphore = Semaphore::const_new(LOOKUPS_MAX);

/// What a name is without asking anybody, as `InetAddress.getByName` has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Address,
    /// Looks like an address and is none: nobody is asked.
    Broken,
    Name,
}

fn form(name: &str) -> Form {
    let unscoped = |text: &str| text.split('%').next().unwrap_or_default().to_owned();
    let v6 = |text: &str| unscoped(text).parse::<Ipv6Addr>().is_ok();
    if let Some(rest) = name.strip_prefix('[') {
        let inside = rest.strip_suffix(']').unwrap_or_default();
        return if v6(inside) {
            Form::Address
        } else {
            Form::Broken
        };
    }
    // The resolver knows numbers in this form, Java does not take them.
    if name.starts_with("0x")
        && !name.contains(|c: char| !c.is_ascii_hexdigit() && !".x".contains(c))
    {
        return Form::Broken;
    }
    if name.contains(':') {
        return if v6(name) {
            Form::Address
        } else {
            Form::Broken
        };
    }
    if name.parse::<Ipv4Addr>().is_ok() {
        Form::Address
    } else {
        Form::Name
    }
}

/// The names of `ip` entities of one form.
fn named(request: &AlterClientQuotasRequest, wanted: Form) -> BTreeSet<String> {
    let parts = request.entries.iter().flat_map(|entry| &entry.entity);
    let names = parts
        .filter(|part| part.entity_type.as_str() == IP)
        .filter_map(|part| part.entity_name.as_ref())
        .map(|name| name.as_str())
        // An empty name is refused for being empty.
        .filter(|name| !name.is_empty() && form(name) == wanted);
    names.map(str::to_owned).collect()
}

/// What cannot be resolved whoever is asked.
pub(crate) fn no_addresses(request: &AlterClientQuotasRequest) -> BTreeSet<String> {
    named(request, Form::Broken)
}

fn quotas(request: &Request) -> Option<&AlterClientQuotas> {
    match request {
        Request::Controller {
            request: controller::Request::AlterClientQuotas(quotas),
            ..
        } => Some(quotas),
        _ => None,
    }
}

/// The names that a resolver must be asked about before `request` is decided.
pub(crate) fn to_resolve(request: &Request) -> BTreeSet<String> {
    quotas(request)
        .map(|quotas| named(&quotas.body, Form::Name))
        .unwrap_or_default()
}

/// Tells the request which names nobody knows.
pub(crate) fn note(request: &mut Request, unknown: BTreeSet<String>) {
    if let Request::Controller {
        request: controller::Request::AlterClientQuotas(quotas),
        ..
    } = request
    {
        quotas.unknown_hosts.extend(unknown);
    }
}

/// Those of `names` that do not resolve; `None` when there was no time to ask about all of them.
pub(crate) async fn unknown(names: BTreeSet<String>) -> Option<BTreeSet<String>> {
    let lookups = async {
        let mut unknown = BTreeSet::new();
        for name in names {
            if !resolves(name.clone()).await {
                unknown.insert(name);
            }
        }
        unknown
    };
    tokio::time::timeout(LOOKUP_TIME_MAX, lookups).await.ok()
}

async fn resolves(name: String) -> bool {
    // Whoever gives up waiting for its turn leaves nothing behind.
    let Ok(permit) = LOOKUPS.acquire().await else {
        return false;
    };
    // A task of its own: the permit is given back when the resolver's thread is free again, also
    // when nobody waits for it any more.
    let lookup = tokio::spawn(async move {
        let _permit = permit;
        let mut found = tokio::net::lookup_host((name.as_str(), 0)).await.ok()?;
        found.next()
    });
    matches!(lookup.await, Ok(Some(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asked of Java 17's `InetAddress.getByName`.
    #[test]
    fn addresses_are_known_without_a_resolver() {
        for name in ["127.0.0.1", "::1", "[::1]", "fe80::1%1", "::ffff:1.2.3.4"] {
            assert_eq!(form(name), Form::Address, "{name}");
        }
        for name in [
            "[::1",
            "1:2:3",
            "[127.0.0.1]",
            "[]",
            "[",
            "a:b",
            "localhost:9092",
        ] {
            assert_eq!(form(name), Form::Broken, "{name}");
        }
        for name in ["localhost", "127.1", "256.1.1.1", "not a host", "a]"] {
            assert_eq!(form(name), Form::Name, "{name}");
        }
    }

    #[tokio::test]
    async fn names_are_looked_up() {
        let names = ["localhost", "127.1", "not a host", "a\0b"];
        let unknown = unknown(names.map(str::to_owned).into()).await.unwrap();
        assert_eq!(unknown, ["a\0b", "not a host"].map(str::to_owned).into());
    }

    #[tokio::test]
    async fn who_gives_up_waiting_for_a_lookup_leaves_no_task_behind() {
        let all = LOOKUPS.acquire_many(LOOKUPS_MAX as u32).await.unwrap();
        let lookup = resolves("localhost".to_owned());
        let given_up = tokio::time::timeout(Duration::from_millis(10), lookup).await;
        assert!(given_up.is_err());
        let tasks = tokio::runtime::Handle::current().metrics();
        assert_eq!(tasks.num_alive_tasks(), 0);
        drop(all);
    }
}
