//! Access control entries (KIP-801): by id, and by the resource that their patterns are about.

use std::cmp::Ordering;
use std::sync::Arc;

use uuid::Uuid;

use super::ordered::OrderedMap;
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

/// An entry in the order in which decisions look for it.
#[derive(Clone, Debug)]
struct Named {
    acl: Arc<Acl>,
    id: Uuid,
}

impl Named {
    fn resource(&self) -> (i8, &str) {
        (self.acl.resource_type, &self.acl.resource_name)
    }
}

impl Ord for Named {
    /// By resource type and name, then in [`Acl::order`]; what says the same comes by id.
    fn cmp(&self, other: &Self) -> Ordering {
        self.resource()
            .cmp(&other.resource())
            .then_with(|| self.acl.order(&other.acl))
            .then_with(|| self.id.cmp(&other.id))
    }
}

impl PartialOrd for Named {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Named {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Named {}

/// All entries. A clone copies two pointers; a change under a clone copies some hundred pointers to
/// entries, however many there are.
#[derive(Clone, Debug, Default)]
pub struct Acls {
    by_id: OrderedMap<Uuid, Arc<Acl>>,
    by_name: OrderedMap<Named, ()>,
}

impl PartialEq for Acls {
    fn eq(&self, other: &Self) -> bool {
        self.by_id == other.by_id
    }
}

impl Acls {
    /// All entries by id.
    #[must_use]
    pub const fn by_id(&self) -> &OrderedMap<Uuid, Arc<Acl>> {
        &self.by_id
    }

    /// Whether there is an entry that says exactly this, whatever its id.
    #[must_use]
    pub fn contains(&self, acl: &Acl) -> bool {
        let wanted = (acl.resource_type, acl.resource_name.as_str());
        let order = |known: &Named| {
            let resource = known.resource().cmp(&wanted);
            resource.then_with(|| known.acl.order(acl))
        };
        let place = self.by_name.locate(|known| order(known).is_lt());
        let first = self.by_name.iter_at(place).next();
        first.is_some_and(|(known, ())| order(known).is_eq())
    }

    /// The entries that decide about this resource: those for its very name and for prefixes of it,
    /// longer names first, then those for all resources of the type, unless its name begins with
    /// the sign for all of them. Costs what is found and the
    /// length of the name, not what there is.
    pub fn about<'a>(&'a self, resource_type: i8, name: &'a str) -> impl Iterator<Item = &'a Acl> {
        let names = Names {
            acls: self,
            resource_type,
            name,
            end: Some((name, true)),
        };
        // A name can begin with the sign for all of them: what it says literally comes last.
        let own = names
            .flat_map(move |found| self.named(resource_type, found))
            .map(|(_, acl)| &**acl)
            .filter(move |acl| acl.is_about(name))
            .filter(|acl| acl.pattern_type != LITERAL || acl.resource_name != WILDCARD);
        // The reference passes over it for names that begin with the sign itself.
        let whole = name == WILDCARD || !name.starts_with(WILDCARD);
        let all = whole.then(|| self.named(resource_type, WILDCARD));
        let all = all.into_iter().flatten();
        let all = all
            .map(|(_, acl)| &**acl)
            .filter(|acl| acl.pattern_type == LITERAL);
        own.chain(all)
    }

    /// All entries by resource type and name, in each in the order of the reference.
    pub fn in_order(&self) -> impl Iterator<Item = &Acl> {
        self.by_name.keys().map(|named| &*named.acl)
    }

    /// The entries with this resource type and name, whatever the pattern is: ids and entries.
    /// Costs what is found.
    pub fn named<'a>(
        &'a self,
        resource_type: i8,
        name: &'a str,
    ) -> impl Iterator<Item = (&'a Uuid, &'a Arc<Acl>)> {
        let wanted = (resource_type, name);
        let place = self.by_name.locate(|known| known.resource() < wanted);
        let from = self.by_name.iter_at(place).map(|(named, ())| named);
        from.take_while(move |named| named.resource() == wanted)
            .map(|named| (&named.id, &named.acl))
    }

    pub(super) fn insert(&mut self, id: Uuid, acl: Acl) {
        self.remove(id);
        let acl = Arc::new(acl);
        self.by_id.insert(id, Arc::clone(&acl));
        self.by_name.insert(Named { acl, id }, ());
    }

    /// Whether there was such an entry.
    pub(super) fn remove(&mut self, id: Uuid) -> bool {
        let Some(acl) = self.by_id.remove(&id) else {
            return false;
        };
        let found = self.by_name.remove(&Named { acl, id });
        found.expect("what is found by id is found by name");
        true
    }
}

/// The names that are the beginning of a name (itself included), from the longest on.
struct Names<'a> {
    acls: &'a Acls,
    resource_type: i8,
    name: &'a str,
    /// Names up to this one are still to be looked at, itself only if it says so.
    end: Option<(&'a str, bool)>,
}

impl<'a> Iterator for Names<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        loop {
            let (end, inclusive) = self.end.take()?;
            let end = (self.resource_type, end);
            let acls = &self.acls.by_name;
            let found = if inclusive {
                acls.last(|known| known.resource() <= end)
            } else {
                acls.last(|known| known.resource() < end)
            };
            let (resource_type, found) = found?.0.resource();
            if resource_type != self.resource_type {
                return None;
            }
            if self.name.starts_with(found) {
                self.end = Some((found, false));
                return Some(found);
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
        let mut names = Names {
            acls: &acls,
            resource_type: 2,
            name: "topic-777",
            end: Some(("topic-777", true)),
        };
        let found: Vec<_> = names.by_ref().collect();
        assert_eq!(found, ["topic-777", "top"]);
        assert_eq!(acls.about(2, "topic-777").count(), 2);
        assert_eq!(acls.about(2, "topic-7777").count(), 1);
        assert_eq!(acls.about(3, "topic-777").count(), 0);
        assert!(!acls.contains(&acl(2, "topic-777", 4, 3)));
    }

    #[test]
    fn a_change_under_a_fork_copies_some_entries_of_many() {
        let mut acls = Acls::default();
        for at in 0..20_000 {
            // Half of them are about one resource.
            let name = format!("topic-{}", if at % 2 == 0 { 0 } else { at });
            let entry = Acl {
                principal: format!("User:{at}"),
                ..acl(2, &name, 3, 3)
            };
            acls.insert(Uuid::from_u128(at), entry);
        }
        let fork = acls.clone();
        acls.insert(Uuid::from_u128(70_000), acl(2, "topic-0", 3, 3));
        assert!(acls.remove(Uuid::from_u128(10_000)));
        assert!(!acls.remove(Uuid::from_u128(10_000)));
        assert!(acls.by_id.apart(&fork.by_id).count() < 600);
        assert!(acls.by_name.apart(&fork.by_name).count() < 600);
        assert_eq!((fork.by_id.len(), acls.by_name.len()), (20_000, 20_000));
        assert_eq!(acls.named(2, "topic-0").count(), 10_000);
        assert_eq!(fork.named(2, "topic-1").count(), 1);
    }
}
