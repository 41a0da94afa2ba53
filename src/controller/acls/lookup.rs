//! Which entries a filter has to look at. Requests come with thousands of filters where there are
//! thousands of entries: those that name a resource look at its entries only, and how much the
//! others may look at is bounded, for nobody else is served meanwhile.

use std::sync::Arc;

use super::super::too_large;
use super::RECORDS_PER_OPERATION_MAX;
use super::filter::Filter;
use crate::image::{Acl, Acls};
use crate::types::{ApiError, Uuid};

/// Most entries that the filters of one request look at together: a tenth of a second.
const LOOKS_MAX: usize = 10_000_000;

/// An entry by its id.
type Entry<'a> = (&'a Uuid, &'a Arc<Acl>);

/// What the filter matches in order of ids; one more than a request may delete is enough.
pub(super) fn matching<'a>(acls: &'a Acls, filter: &Filter<'a>) -> Vec<Entry<'a>> {
    let wanted = |(_, acl): &Entry<'_>| filter.matches(acl);
    let most = RECORDS_PER_OPERATION_MAX + 1;
    match filter.resource() {
        Some((kind, name)) => {
            let named = acls.named(kind, name).filter(wanted);
            let mut found: Vec<_> = named.take(most).collect();
            found.sort_unstable_by_key(|(id, _)| **id);
            found
        }
        None => acls.by_id().iter().filter(wanted).take(most).collect(),
    }
}

/// Refuses filters that would look at too much.
///
/// # Errors
/// `POLICY_VIOLATION`.
pub(super) fn bounded<'f>(
    acls: &'f Acls,
    filters: impl Iterator<Item = Filter<'f>>,
) -> Result<(), ApiError> {
    let mut left = LOOKS_MAX;
    for filter in filters {
        let looks = match filter.resource() {
            // At least the way to the resource.
            Some((kind, name)) => 1 + acls.named(kind, name).take(left).count(),
            None => acls.by_id().len(),
        };
        left = left.checked_sub(looks).ok_or_else(too_large)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use kafka_protocol::messages::delete_acls_request::DeleteAclsFilter;
    use kafka_protocol::protocol::StrBytes;

    use super::*;
    use crate::image::Image;
    use crate::records::Record;
    use crate::types::Offset;

    fn entries(count: usize) -> Acls {
        let entry = |at: usize| Acl {
            resource_type: 2,
            resource_name: format!("t{}", at / 2),
            pattern_type: 3 + i8::from(at % 2 == 1),
            principal: "User:a".into(),
            host: "*".into(),
            operation: 3,
            permission_type: 3,
        };
        let mut image = Image::empty();
        for at in 0..count {
            // Ids do not ascend with names.
            let id = Uuid::from_u128((at as u128).wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let record = Record::AccessControlEntry(entry(at).record(id));
            image.replay(&record, Offset::ZERO).unwrap();
        }
        image.acls().clone()
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
        for kind in [1, 2, 3] {
            for name in [None, Some("t1"), Some("t10"), Some("nosuch")] {
                for pattern in 1..=4 {
                    let asked = asked(kind, name, pattern);
                    let filter = Filter::from(&asked);
                    let found = matching(&all, &filter);
                    let wanted = all.by_id().iter().filter(|(_, acl)| filter.matches(acl));
                    assert_eq!(found, wanted.collect::<Vec<_>>(), "{filter:?}");
                }
            }
        }
    }

    #[test]
    fn ten_thousand_filters_by_name_are_looked_up_and_as_many_of_any_name_refused() {
        let all = entries(20_000);
        let named = asked(2, Some("t7"), 3);
        let any = asked(2, None, 3);
        let many = |filter| (0..10_000).map(move |_| Filter::from(filter));
        assert_eq!(bounded(&all, many(&named)), Ok(()));
        assert!(bounded(&all, many(&any)).is_err());
        assert_eq!(bounded(&all, many(&any).take(100)), Ok(()));
    }
}
