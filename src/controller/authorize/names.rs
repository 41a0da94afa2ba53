//! Kafka's names for the numbers of access control entries.

fn known(names: &[&'static str], number: i8) -> &'static str {
    let at = usize::try_from(number).unwrap_or(0);
    names.get(at).copied().unwrap_or(names[0])
}

const UNKNOWN: &str = "UNKNOWN";

/// A resource type, as the reference's enumeration has it.
pub(crate) fn resource_name(number: i8) -> &'static str {
    const NAMES: [&str; 8] = [
        UNKNOWN,
        "ANY",
        "TOPIC",
        "GROUP",
        "CLUSTER",
        "TRANSACTIONAL_ID",
        "DELEGATION_TOKEN",
        "USER",
    ];
    known(&NAMES, number)
}

/// A resource type, as the reference's audit log has it.
pub(super) fn resource_word(number: i8) -> &'static str {
    const NAMES: [&str; 8] = [
        "Unknown",
        "Any",
        "Topic",
        "Group",
        "Cluster",
        "TransactionalId",
        "DelegationToken",
        "User",
    ];
    known(&NAMES, number)
}

/// A pattern type.
pub(crate) fn pattern_name(number: i8) -> &'static str {
    known(&[UNKNOWN, "ANY", "MATCH", "LITERAL", "PREFIXED"], number)
}

/// An operation.
pub(crate) fn operation_name(number: i8) -> &'static str {
    const NAMES: [&str; 16] = [
        UNKNOWN,
        "ANY",
        "ALL",
        "READ",
        "WRITE",
        "CREATE",
        "DELETE",
        "ALTER",
        "DESCRIBE",
        "CLUSTER_ACTION",
        "DESCRIBE_CONFIGS",
        "ALTER_CONFIGS",
        "IDEMPOTENT_WRITE",
        "CREATE_TOKENS",
        "DESCRIBE_TOKENS",
        "TWO_PHASE_COMMIT",
    ];
    known(&NAMES, number)
}

/// A permission type.
pub(crate) fn permission_name(number: i8) -> &'static str {
    known(&[UNKNOWN, "ANY", "DENY", "ALLOW"], number)
}
