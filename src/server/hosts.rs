//! Names of hosts that stand for addresses, in client quotas and in limits of connections. A quota
//! for an address may be set for a name that resolves to one, and only the shell can ask a
//! resolver: it does so before the request is decided.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use kafka_protocol::messages::AlterClientQuotasRequest;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

use super::core::Request;
use crate::controller;
use crate::controller::quotas::{AlterClientQuotas, IP};
use crate::types::quote;

/// For all names of one request.
const LOOKUP_TIME_MAX: Duration = Duration::from_secs(10);
/// For all names of `max.connections.per.ip.overrides`: a start waits for them.
const LIMITS_TIME_MAX: Duration = Duration::from_secs(5);
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
    let found = addresses(name).await;
    found.is_ok_and(|found| !found.is_empty())
}

/// The addresses that a name has now.
async fn addresses(name: String) -> io::Result<Vec<IpAddr>> {
    // Whoever gives up waiting for its turn leaves nothing behind.
    let permit = LOOKUPS.acquire().await.map_err(io::Error::other)?;
    // A task of its own: the permit is given back when the resolver's thread is free again, also
    // when nobody waits for it any more.
    let lookup = tokio::spawn(async move {
        let _permit = permit;
        let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
        Ok(found.map(|found| found.ip().to_canonical()).collect())
    });
    lookup.await?
}

/// The addresses behind `max.connections.per.ip.overrides`; of two entries for one address the last
/// counts. A name without an answer within [`LIMITS_TIME_MAX`] is left out with a warning.
pub(crate) async fn limited(overrides: &[(String, u32)]) -> HashMap<IpAddr, u32> {
    limited_by(overrides, LIMITS_TIME_MAX, addresses).await
}

/// As [`limited`], with names looked up by `lookup`, all of them within `patience`.
async fn limited_by<F>(
    overrides: &[(String, u32)],
    patience: Duration,
    lookup: impl Fn(String) -> F,
) -> HashMap<IpAddr, u32>
where
    F: Future<Output = io::Result<Vec<IpAddr>>> + Send + 'static,
{
    let deadline = Instant::now() + patience;
    let no_answer = || io::Error::from(io::ErrorKind::TimedOut);
    let mut lookups = JoinSet::new();
    let mut answers = Vec::new();
    for (at, (host, _)) in overrides.iter().enumerate() {
        let plain = host.parse::<IpAddr>().ok();
        if plain.is_none() {
            let lookup = lookup(host.clone());
            lookups.spawn(async move { (at, lookup.await) });
        }
        let plain = plain.map(|ip| vec![ip.to_canonical()]);
        answers.push(plain.ok_or_else(no_answer));
    }
    // What is answered counts, also behind a name that is not.
    while let Ok(Some(Ok((at, found)))) = timeout_at(deadline, lookups.join_next()).await {
        answers[at] = found;
    }
    let mut limits = HashMap::new();
    for ((host, max), answer) in overrides.iter().zip(answers) {
        match answer {
            Ok(found) => limits.extend(found.into_iter().map(|ip| (ip, *max))),
            Err(error) => tracing::warn!(
                "max.connections.per.ip.overrides: the limit of {} has no effect ({error}): \
                 correct the name or write an address",
                quote(host)
            ),
        }
    }
    limits
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
    async fn a_name_without_an_answer_keeps_no_start_waiting_and_no_other_limit_away() {
        let entry = |(host, max): (&str, u32)| (host.to_owned(), max);
        let overrides = [
            ("hangs", 1),
            ("unknown", 2),
            ("two", 3),
            ("10.0.0.2", 4),
            ("::ffff:10.0.0.3", 5),
        ]
        .map(entry);
        let lookup = |name: String| async move {
            match name.as_str() {
                "hangs" => std::future::pending().await,
                "two" => Ok([1, 2].map(|last| IpAddr::from([10, 0, 0, last])).to_vec()),
                _ => Err(io::Error::other(format!("{name} is asked about"))),
            }
        };
        let found = limited_by(&overrides, Duration::from_millis(50), lookup).await;
        let expected = [(1, 3), (2, 4), (3, 5)];
        let expected = expected.map(|(last, max)| (IpAddr::from([10, 0, 0, last]), max));
        assert_eq!(found, HashMap::from(expected));
        let tasks = tokio::runtime::Handle::current().metrics();
        tokio::task::yield_now().await;
        assert_eq!(tasks.num_alive_tasks(), 0);
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
