//! Which entries a filter of DescribeAcls or DeleteAcls means.

use kafka_protocol::messages::DescribeAclsRequest;
use kafka_protocol::messages::delete_acls_request::DeleteAclsFilter;

use super::{ANY, MATCH, UNKNOWN};
use crate::image::Acl;

/// A filter; `None` matches every text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Filter<'a> {
    resource_type: i8,
    resource_name: Option<&'a str>,
    pattern_type: i8,
    principal: Option<&'a str>,
    host: Option<&'a str>,
    operation: i8,
    permission_type: i8,
}

macro_rules! from {
    ($request:ty) => {
        impl<'a> From<&'a $request> for Filter<'a> {
            fn from(filter: &'a $request) -> Self {
                Self {
                    resource_type: super::resource_type(filter.resource_type_filter),
                    resource_name: filter.resource_name_filter.as_deref(),
                    pattern_type: super::pattern_type(filter.pattern_type_filter),
                    principal: filter.principal_filter.as_deref(),
                    host: filter.host_filter.as_deref(),
                    operation: super::operation(filter.operation),
                    permission_type: super::permission_type(filter.permission_type),
                }
            }
        }
    };
}

from!(DescribeAclsRequest);
from!(DeleteAclsFilter);

impl<'a> Filter<'a> {
    /// Why nothing can match, when a value of the filter means nothing.
    pub(super) fn unknown(&self) -> Option<&'static str> {
        if [self.resource_type, self.pattern_type].contains(&UNKNOWN) {
            return Some("Unknown patternFilter.");
        }
        let entry = [self.operation, self.permission_type].contains(&UNKNOWN);
        entry.then_some("Unknown entryFilter.")
    }

    /// The only resource whose entries can match, as type and name, where there is only one.
    pub(super) fn resource(&self) -> Option<(i8, &'a str)> {
        let one = self.resource_type != ANY && self.pattern_type != MATCH;
        self.resource_name
            .filter(|_| one)
            .map(|name| (self.resource_type, name))
    }

    pub(super) fn matches(&self, acl: &Acl) -> bool {
        let number = |wanted: i8, is: i8| wanted == ANY || wanted == is;
        let text = |wanted: Option<&str>, is: &str| wanted.is_none_or(|wanted| wanted == is);
        number(self.resource_type, acl.resource_type)
            && self.matches_name(acl)
            && text(self.principal, &acl.principal)
            && text(self.host, &acl.host)
            && number(self.operation, acl.operation)
            && number(self.permission_type, acl.permission_type)
    }

    fn matches_name(&self, acl: &Acl) -> bool {
        let same_pattern = self.pattern_type == acl.pattern_type;
        match self.resource_name {
            _ if ![ANY, MATCH].contains(&self.pattern_type) && !same_pattern => false,
            None => true,
            Some(name) if self.pattern_type == MATCH => acl.is_about(name),
            Some(name) => name == acl.resource_name,
        }
    }
}
