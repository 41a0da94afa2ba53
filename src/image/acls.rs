//! Access control entries (KIP-801), by id.

/// One entry; the numbers are the protocol's.
#[derive(Clone, Debug, PartialEq, Eq)]
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
