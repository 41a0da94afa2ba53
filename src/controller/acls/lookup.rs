//! Which entries a filter has to look at. Requests come with thousands of filters where there are
//! thousands of entries: those that name a resource look at its entries only, and how much the
//! others may look at is bounded, for nobody else is served meanwhile.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::too_large;
use super::filter::Filter;
use crate::image::Acl;
use crate::types::{ApiError, Uuid};

/// Most entries that the filters of one request look at together: a tenth of a second.
const LOOKS_MAX: usize = 10_000_000;

type ById = BTreeMap<Uuid, Arc<Acl>>;
/// An entry of [`ById`].
type Entry<'a> = (&'a Uuid, &'a Arc<Acl>);

/// All entries, by id and by the resource that they name.
pub(super) struct Lookup<'a> {
    all: &'a ById,
    by_resource: BTreeMap<(i8, &'a str), Vec<Entry<'a>>>,
}

impl<'a> Lookup<'a> {
    pub(super) fn new(all: &'a ById) -> Self {
        let mut by_resource: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for (id, acl) in all {
            let resource = (acl.resource_type, acl.resource_name.as_str());
            by_resource.entry(resource).or_default().push((id, acl));
        }
        Self { all, by_resource }
    }

    /// What may match, in order of ids.
    pub(super) fn candidates<'b>(
        &'b self,
        filter: &Filter<'b>,
    ) -> Box<dyn Iterator<Item = Entry<'b>> + 'b> {
        match filter.resource() {
            Some((kind, name)) => {
                let named = self.by_resource.get(&(kind, name));
                Box::new(named.into_iter().flatten().copied())
            }
            None => Box::new(self.all.iter()),
        }
    }

    /// Refuses filters that would look at too much.
    ///
    /// # Errors
    /// `POLICY_VIOLATION`.
    pub(super) fn bounded<'f>(
        &self,
        filters: impl Iterator<Item = Filter<'f>>,
    ) -> Result<(), ApiError> {
        let looks = |filter: Filter<'_>| match filter.resource() {
            Some((kind, name)) => self.by_resource.get(&(kind, name)).map_or(1, Vec::len),
            None => self.all.len(),
        };
        let mut left = LOOKS_MAX;
        for filter in filters {
            left = left.checked_sub(looks(filter)).ok_or_else(too_large)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use kafka_protocol::messages::delete_acls_request::DeleteAclsFilter;
    use kafka_protocol::protocol::StrBytes;

    use super::*;

    fn entries(count: usize) -> ById {
        let entry = |at: usize| Acl {
            resource_type: 2,
            resource_name: format!("t{}", at / 2),
            pattern_type: 3 + i8::from(at % 2 == 1),
            principal: "User:a".into(),
            host: "*".into(),
            operation: 3,
            permission_type: 3,
        };
        let entries = (0..count).map(|at| (Uuid::from_u128(at as u128), Arc::new(entry(at))));
        entries.collect()
    }

    fn asked(kind: i8, name: Option<&str>, pattern: i8) -> DeleteAclsFilter {
        DeleteAclsFilter::default()
            .with_resource_type_filter(kind)
            .with_resource_name_filter(name.map(|name| StrBytes::from_string(name.into())))
            .with_pattern_type_filter(pattern)
            .with_principal_filter(None)
            .with_host_filter(None)
            .with_operation(1)
            .with_permission_type(1)
    }

    #[test]
    fn what_is_not_looked_at_would_not_have_matched() {
        let all = entries(40);
        let lookup = Lookup::new(&all);
        for kind in [1, 2, 3] {
            for name in [None, Some("t1"), Some("t10"), Some("nosuch")] {
                for pattern in 1..=4 {
                    let asked = asked(kind, name, pattern);
                    let filter = Filter::from(&asked);
                    let found = lookup.candidates(&filter);
                    let found: Vec<_> = found.filter(|(_, acl)| filter.matches(acl)).collect();
                    let wanted = all.iter().filter(|(_, acl)| filter.matches(acl));
                    assert_eq!(found, wanted.collect::<Vec<_>>(), "{filter:?}");
                }
            }
        }
    }

    #[test]
    fn ten_thousand_filters_by_name_are_looked_up_and_as_many_of_any_name_refused() {
        let all = entries(20_000);
        let lookup = Lookup::new(&all);
        let named = asked(2, Some("t7"), 3);
        let any = asked(2, None, 3);
        let many = |filter| (0..10_000).map(move |_| Filter::from(filter));
        assert_eq!(lookup.bounded(many(&named)), Ok(()));
        assert!(lookup.bounded(many(&any)).is_err());
        assert_eq!(lookup.bounded(many(&any).take(100)), Ok(()));
    }
}
