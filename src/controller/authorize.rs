//! Who may do what: the question that rules ask before they answer.

use super::{Context, View};

/// What is done to a resource; the numbers are the protocol's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// 3
    Read,
    /// 4
    Write,
    /// 5
    Create,
    /// 6
    Delete,
    /// 7
    Alter,
    /// 8
    Describe,
    /// 9
    ClusterAction,
    /// 10
    DescribeConfigs,
    /// 11
    AlterConfigs,
    /// 12
    IdempotentWrite,
    /// 13
    CreateTokens,
    /// 14
    DescribeTokens,
}

/// What something is done to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource<'a> {
    /// A topic by name.
    Topic(&'a str),
    /// A group by name.
    Group(&'a str),
    /// The cluster.
    Cluster,
    /// A delegation token by id.
    DelegationToken(&'a str),
    /// A user as `Type:name`.
    User(&'a str),
}

impl View<'_> {
    /// Whether whoever asks may do `operation` to `resource`. Without an authorizer everybody may
    /// do everything.
    #[must_use]
    pub fn allows(
        &self,
        _context: &Context,
        _operation: Operation,
        _resource: Resource<'_>,
    ) -> bool {
        // `authorizer.class.name` is refused at start.
        true
    }
}
