//! Access control entries (KIP-801): by id, and by the resource that their patterns are about.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use uuid::Uuid;

use crate::records::AccessControlEntryRecord;

/// A pattern's name that, taken literally, is about every resource of its type.
const WILDCARD: &str = "*";
/// The pattern type of a resource's whole name.
const LITERAL: i8 = 3;
/// The pattern type of the beginning of names.
const PREFIXED: i8 = 4;

/// One entry; the numbers are the protocol's.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Acl {
    /// 2 topic, 3 group, 4 cluster, 5 transactional id, 6 delegation token, 7 user.
    pub resource_type: i8,
    /// The resource's name, or its prefix.
    pub resource_name: String,
    /// 3 literal, 4 prefixed.
    pub pattern_type: i8,
    /// `Type:name`.
    pub principal: String,
    /// An address, `*`, or (4.4) a block of addresses.
    pub host: String,
    /// 2 all, 3 read, 4 write ... as in the protocol.
    pub operation: i8,
    /// 2 deny, 3 allow.
    pub permission_type: i8,
}

impl Acl {
    /// The record that says it.
    #[must_use]
    pub fn record(&self, id: Uuid) -> AccessControlEntryRecord {
        AccessControlEntryRecord {
            id,
            resource_type: self.resource_type,
            resource_name: self.resource_name.clone(),
            pattern_type: self.pattern_type,
            principal: self.principal.clone(),
            host: self.host.clone(),
            operation: self.operation,
            permission_type: self.permission_type,
            ..AccessControlEntryRecord::default()
        }
    }

    /// The order among entries with one resource type and name: that in which the reference's
    /// authorizer looks at them.
    fn order(&self, other: &Self) -> Ordering {
        let key = |acl: &Self| (acl.pattern_type, acl.operation);
        key(self)
            .cmp(&key(other))
            .then_with(|| self.principal.cmp(&other.principal))
            .then_with(|| self.host.cmp(&other.host))
            .then_with(|| self.permission_type.cmp(&other.permission_type))
    }

    /// Whether the entry's pattern is about the resource of this name.
    #[must_use]
    pub fn is_about(&self, name: &str) -> bool {
        let pattern = self.resource_name.as_str();
        match self.pattern_type {
            LITERAL => pattern == name || pattern == WILDCARD,
            PREFIXED => name.starts_with(pattern),
            _ => false,
        }
    }
}

/// The entries with one resource type and name, in [`Acl::order`].
type Named = Arc<Vec<Arc<Acl>>>;
/// The entries with one resource type, by name.
type Typed = Arc<BTreeMap<Arc<str>, Named>>;

/// All entries. A clone copies two pointers; a change under a clone copies the pointers to the
/// entries.
#[derive(Clone, Debug, Default)]
pub struct Acls {
    by_id: Arc<BTreeMap<Uuid, Arc<Acl>>>,
    by_type: Arc<BTreeMap<i8, Typed>>,
}

impl PartialEq for Acls {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.by_id, &other.by_id) || self.by_id == other.by_id
    }
}

impl Acls {
    /// All entries by id.
    #[must_use]
    pub const fn by_id(&self) -> &Arc<BTreeMap<Uuid, Arc<Acl>>> {
        &self.by_id
    }

    /// Whether there is an entry that says exactly this, whatever its id.
    #[must_use]
    pub fn contains(&self, acl: &Acl) -> bool {
        let named = self.named(acl.resource_type, &acl.resource_name);
        named.is_some_and(|named| named.binary_search_by(|known| known.order(acl)).is_ok())
    }

    /// The entries that decide about this resource: those for its very name and for prefixes of it,
    /// longer names first, then those for all resources of the type, unless its name begins with
    /// the sign for all of them. Costs what is found and the
    /// length of the name, not what there is.
    pub fn about<'a>(&'a self, resource_type: i8, name: &'a str) -> impl Iterator<Item = &'a Acl> {
        let typed = self.by_type.get(&resource_type).map(|typed| &**typed);
        let names = typed.into_iter().flat_map(move |typed| Names {
            typed,
            name,
            end: Some((name, true)),
        });
        // A name can begin with the sign for all of them: what it says literally comes last.
        let own = names
            .flat_map(|named| named.iter())
            .filter(move |acl| acl.is_about(name))
            .filter(|acl| acl.pattern_type != LITERAL || acl.resource_name != WILDCARD);
        // The reference passes over it for names that begin with the sign itself.
        let all = self.named(resource_type, WILDCARD).into_iter();
        let all = all
            .filter(move |_| name == WILDCARD || !name.starts_with(WILDCARD))
            .flat_map(|named| named.iter())
            .filter(|acl| acl.pattern_type == LITERAL);
        own.chain(all).map(|acl| &**acl)
    }

    /// All entries by resource type and name, in each in the order of the reference.
    pub fn in_order(&self) -> impl Iterator<Item = &Acl> {
        let typed = self.by_type.values();
        let named = typed.flat_map(|typed| typed.values());
        named.flat_map(|named| named.iter()).map(|acl| &**acl)
    }

    fn named(&self, resource_type: i8, name: &str) -> Option<&Named> {
        self.by_type.get(&resource_type)?.get(name)
    }

    pub(super) fn insert(&mut self, id: Uuid, acl: Acl) {
        self.remove(id);
        let acl = Arc::new(acl);
        Arc::make_mut(&mut self.by_id).insert(id, Arc::clone(&acl));
        let typed = Arc::make_mut(&mut self.by_type);
        let typed = Arc::make_mut(typed.entry(acl.resource_type).or_default());
        let name = Arc::from(acl.resource_name.as_str());
        let named = Arc::make_mut(typed.entry(name).or_default());
        let at = named.partition_point(|known| known.order(&acl).is_lt());
        named.insert(at, acl);
    }

    /// Whether there was such an entry.
    pub(super) fn remove(&mut self, id: Uuid) -> bool {
        if !self.by_id.contains_key(&id) {
            return false;
        }
        let acl = Arc::make_mut(&mut self.by_id).remove(&id);
        let acl = acl.expect("it was there just before");
        self.remove_from_names(&acl);
        true
    }

    fn remove_from_names(&mut self, acl: &Acl) {
        const KNOWN: &str = "what is found by id is found by name";
        let by_type = Arc::make_mut(&mut self.by_type);
        let typed = Arc::make_mut(by_type.get_mut(&acl.resource_type).expect(KNOWN));
        let name = acl.resource_name.as_str();
        let named = Arc::make_mut(typed.get_mut(name).expect(KNOWN));
        let at = named.binary_search_by(|known| known.order(acl));
        named.remove(at.expect(KNOWN));
        if named.is_empty() {
            typed.remove(name);
            if typed.is_empty() {
                by_type.remove(&acl.resource_type);
            }
        }
    }
}

/// The names that are the beginning of a name (itself included), from the longest on.
struct Names<'a> {
    typed: &'a BTreeMap<Arc<str>, Named>,
    name: &'a str,
    /// Names up to this one are still to be looked at, itself only if it says so.
    end: Option<(&'a str, bool)>,
}

impl<'a> Iterator for Names<'a> {
    type Item = &'a Named;

    fn next(&mut self) -> Option<&'a Named> {
        loop {
            let (end, inclusive) = self.end.take()?;
            let end = if inclusive {
                Bound::Included(end)
            } else {
                Bound::Excluded(end)
            };
            let range = self.typed.range::<str, _>((Bound::Unbounded, end));
            let (found, named) = range.into_iter().next_back()?;
            if self.name.starts_with(&**found) {
                self.end = Some((found, false));
                return Some(named);
            }
            // Every beginning that sorts before what was found is no longer than what both share.
            let shared = shared_bytes(self.name, found);
            self.end = Some((&self.name[..shared], true));
        }
    }
}

/// How many bytes two texts have in common at their beginnings, in whole characters.
fn shared_bytes(a: &str, b: &str) -> usize {
    let pairs = a.bytes().zip(b.bytes());
    let mut shared = pairs.take_while(|(a, b)| a == b).count();
    while !a.is_char_boundary(shared) {
        shared -= 1;
    }
    shared
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn acl(resource_type: i8, name: &str, pattern_type: i8, operation: i8) -> Acl {
        Acl {
            resource_type,
            resource_name: name.into(),
            pattern_type,
            principal: "User:a".into(),
            host: "*".into(),
            operation,
            permission_type: 3,
        }
    }

    proptest! {
        #[test]
        fn what_is_about_a_resource_is_what_a_look_at_all_entries_finds(
            entries in proptest::collection::vec(
                (2..4_i8, "[*aéè]{1,4}", 3..5_i8, 2..5_i8), 0..40),
            removed in proptest::collection::vec(0..40_usize, 0..20),
            name in "[*aéè]{0,5}",
        ) {
            let mut acls = Acls::default();
            for (at, (kind, name, pattern, operation)) in entries.iter().enumerate() {
                let id = Uuid::from_u128(at as u128);
                acls.insert(id, acl(*kind, name, *pattern, *operation));
            }
            let fork = acls.clone();
            for at in removed {
                acls.remove(Uuid::from_u128(at as u128));
            }
            for acls in [&fork, &acls] {
                let key = |acl: &Acl| {
                    (acl.resource_name.clone(), acl.pattern_type, acl.operation)
                };
                let mut found: Vec<_> = acls.about(2, &name).map(key).collect();
                let all = acls.by_id().values();
                let passed_over = |acl: &Acl| {
                    let whole = name == WILDCARD || !name.starts_with(WILDCARD);
                    acl.pattern_type == LITERAL && acl.resource_name == WILDCARD && !whole
                };
                let wanted = all.filter(|acl| {
                    acl.resource_type == 2 && acl.is_about(&name) && !passed_over(acl)
                });
                let mut wanted: Vec<_> = wanted.map(|acl| key(acl)).collect();
                found.sort();
                wanted.sort();
                prop_assert_eq!(found, wanted);
                for known in acls.by_id().values() {
                    prop_assert!(acls.contains(known));
                }
            }
        }
    }

    #[test]
    fn a_question_does_not_look_at_entries_of_other_names() {
        let mut acls = Acls::default();
        for at in 0..1_000 {
            acls.insert(Uuid::from_u128(at), acl(2, &format!("topic-{at:03}"), 3, 3));
        }
        acls.insert(Uuid::from_u128(2_000), acl(2, "top", 4, 3));
        let typed = &acls.by_type[&2];
        let mut names = Names {
            typed,
            name: "topic-777",
            end: Some(("topic-777", true)),
        };
        let found: Vec<_> = std::iter::from_fn(|| names.next()).collect();
        assert_eq!(found.len(), 2);
        assert_eq!(acls.about(2, "topic-777").count(), 2);
        assert_eq!(acls.about(2, "topic-7777").count(), 1);
        assert_eq!(acls.about(3, "topic-777").count(), 0);
        assert!(!acls.contains(&acl(2, "topic-777", 4, 3)));
    }
}
