//! Who may do what: the question that rules and listeners ask before they answer, as Kafka's
//! standard authorizer answers it (KIP-801).
//!
//! Super users may do everything. For all others the committed access control entries about the
//! resource decide: one that denies wins over all that allow; where none matches the client, the
//! answer is no, unless there is none about the resource at all and the settings say that then
//! everybody may.

pub(crate) mod cidr;
mod names;
#[cfg(test)]
mod tests;

use core::net::IpAddr;
use std::collections::BTreeSet;

use super::{Context, View};
use crate::image::{Acl, Acls};
use crate::types::{ApiError, ErrorCode, OneLine, Principal};
use cidr::Block;
pub(crate) use names::{operation_name, pattern_name, permission_name, resource_name};

/// What the answers are logged under.
const AUDIT: &str = "kafka.authorizer.logger";
/// Every principal, or every address, in an entry.
const WILDCARD: &str = "*";
/// The permission type of an entry that allows.
const ALLOW: i8 = 3;
/// The operation of an entry that stands for all of them.
const ALL: i8 = 2;

/// The name of the only resource of its type.
pub const CLUSTER: &str = "kafka-cluster";

/// What is done to a resource; the numbers are the protocol's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// 3
    Read = 3,
    /// 4
    Write = 4,
    /// 5
    Create = 5,
    /// 6
    Delete = 6,
    /// 7
    Alter = 7,
    /// 8
    Describe = 8,
    /// 9
    ClusterAction = 9,
    /// 10
    DescribeConfigs = 10,
    /// 11
    AlterConfigs = 11,
    /// 12
    IdempotentWrite = 12,
    /// 13
    CreateTokens = 13,
    /// 14
    DescribeTokens = 14,
    /// 15
    TwoPhaseCommit = 15,
}

impl Operation {
    /// The protocol's number.
    #[must_use]
    pub const fn code(self) -> i8 {
        self as i8
    }

    /// Whether an entry that allows `allowed` allows this too: who may change something may see it.
    fn is_implied_by(self, allowed: i8) -> bool {
        let implied: &[Self] = match self {
            Self::Describe => &[Self::Read, Self::Write, Self::Delete, Self::Alter],
            Self::DescribeConfigs => &[Self::AlterConfigs],
            _ => &[],
        };
        implied.iter().any(|operation| operation.code() == allowed)
    }
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
    /// A transactional id.
    TransactionalId(&'a str),
    /// A delegation token by id.
    DelegationToken(&'a str),
    /// A user as `Type:name`.
    User(&'a str),
}

impl<'a> Resource<'a> {
    /// The protocol's number for the type, and the name.
    #[must_use]
    pub const fn parts(self) -> (i8, &'a str) {
        match self {
            Self::Topic(name) => (2, name),
            Self::Group(name) => (3, name),
            Self::Cluster => (4, CLUSTER),
            Self::TransactionalId(name) => (5, name),
            Self::DelegationToken(name) => (6, name),
            Self::User(name) => (7, name),
        }
    }
}

/// The settings of the authorizer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuthorizerRules {
    /// `super.users`, each as `Type:name`.
    pub super_users: BTreeSet<String>,
    /// `allow.everyone.if.no.acl.found`.
    pub allow_everyone_if_no_acl_found: bool,
}

/// Which answers are logged for people: a question that only prepares another answer is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audit {
    /// Both.
    Both,
    /// Only a yes: a no is not final.
    Allowed,
    /// Neither.
    Nothing,
}

/// Who asks for something.
#[derive(Clone, Copy, Debug)]
pub struct Asker<'a> {
    /// On whose behalf.
    pub principal: &'a Principal,
    /// From where; `None` for this process itself, which may do everything.
    pub address: Option<IpAddr>,
    /// The name of the request, for the log.
    pub request: &'a str,
}

impl<'a> Asker<'a> {
    /// Whoever sent a request.
    #[must_use]
    pub fn of(context: &'a Context) -> Self {
        Self {
            principal: &context.principal,
            address: context.client_address,
            request: context.request,
        }
    }
}

/// Whether `asker` may do `operation` to `resource`. Without rules there is no authorizer, and
/// everybody may do everything.
#[must_use]
pub fn allows(
    rules: Option<&AuthorizerRules>,
    acls: &Acls,
    asker: Asker<'_>,
    (operation, resource): (Operation, Resource<'_>),
    audit: Audit,
) -> bool {
    let (Some(rules), Some(address)) = (rules, asker.address) else {
        return true;
    };
    let reason = if rules.is_super(asker.principal) {
        Reason::SuperUser
    } else {
        reason(rules, acls, asker.principal, address, operation, resource)
    };
    log(asker, address, operation, resource, reason, audit);
    reason.allows()
}

impl AuthorizerRules {
    /// Whether the principal may do everything.
    #[must_use]
    pub fn is_super(&self, principal: &Principal) -> bool {
        self.super_users.contains(&principal.to_string())
    }
}

/// A refusal with Kafka's own sentence for the code.
#[must_use]
pub(crate) fn denied(code: ErrorCode) -> ApiError {
    let what = match code {
        ErrorCode::TopicAuthorizationFailed => "Topic",
        ErrorCode::GroupAuthorizationFailed => "Group",
        _ => "Cluster",
    };
    ApiError::new(code, format!("{what} authorization failed."))
}

/// Why an answer is what it is.
#[derive(Clone, Copy, Debug)]
enum Reason<'a> {
    SuperUser,
    Entry(&'a Acl),
    Default(bool),
}

impl Reason<'_> {
    const fn allows(self) -> bool {
        match self {
            Self::SuperUser => true,
            Self::Entry(acl) => acl.permission_type == ALLOW,
            Self::Default(allowed) => allowed,
        }
    }
}

fn reason<'a>(
    rules: &AuthorizerRules,
    acls: &'a Acls,
    principal: &Principal,
    address: IpAddr,
    operation: Operation,
    resource: Resource<'a>,
) -> Reason<'a> {
    // What was an IPv4 address to the client is one here too, on any socket.
    let address = address.to_canonical();
    let host = host_text(address);
    let (resource_type, name) = resource.parts();
    let mut allowed = None;
    let mut any = false;
    for acl in acls.about(resource_type, name) {
        any = true;
        let matches =
            is_for(acl, principal) && is_from(acl, &host, address) && is_to(acl, operation);
        if !matches {
            continue;
        }
        if acl.permission_type != ALLOW {
            return Reason::Entry(acl);
        }
        allowed = Some(acl);
    }
    match allowed {
        Some(acl) => Reason::Entry(acl),
        None => Reason::Default(!any && rules.allow_everyone_if_no_acl_found),
    }
}

fn is_for(acl: &Acl, principal: &Principal) -> bool {
    // The first colon ends the type: names may have more of them.
    acl.principal.split_once(':').is_some_and(|(kind, name)| {
        (kind == principal.kind && name == principal.name) || (kind == "User" && name == WILDCARD)
    })
}

fn is_from(acl: &Acl, host: &str, address: IpAddr) -> bool {
    let pattern = acl.host.as_str();
    pattern == WILDCARD
        || pattern == host
        || (pattern.contains('/')
            && Block::parse(pattern).is_ok_and(|block| block.contains(address)))
}

fn is_to(acl: &Acl, operation: Operation) -> bool {
    acl.operation == ALL
        || acl.operation == operation.code()
        || (acl.permission_type == ALLOW && operation.is_implied_by(acl.operation))
}

/// An address as entries name it: Java writes all eight parts of an IPv6 address.
fn host_text(address: IpAddr) -> String {
    match address {
        IpAddr::V4(v4) => v4.to_string(),
        IpAddr::V6(v6) => {
            let parts: Vec<_> = v6
                .segments()
                .iter()
                .map(|part| format!("{part:x}"))
                .collect();
            parts.join(":")
        }
    }
}

fn log(
    asker: Asker<'_>,
    address: IpAddr,
    operation: Operation,
    resource: Resource<'_>,
    reason: Reason<'_>,
    audit: Audit,
) {
    let text = || line(asker, address, (operation, resource), reason);
    // The macros make nothing of the text while nobody listens.
    match (reason.allows(), audit) {
        (false, Audit::Both) => tracing::info!(target: AUDIT, "{}", text()),
        (true, Audit::Both | Audit::Allowed) => tracing::debug!(target: AUDIT, "{}", text()),
        (_, Audit::Allowed | Audit::Nothing) => tracing::trace!(target: AUDIT, "{}", text()),
    }
}

/// What is logged of an answer. Names in it come from outside, and one answer is one line.
fn line(
    asker: Asker<'_>,
    address: IpAddr,
    (operation, resource): (Operation, Resource<'_>),
    reason: Reason<'_>,
) -> String {
    let (resource_type, name) = resource.parts();
    let is = if reason.allows() { "Allowed" } else { "Denied" };
    let Asker {
        principal, request, ..
    } = asker;
    let host = host_text(address.to_canonical());
    let operation = operation_name(operation.code());
    let kind = names::resource_word(resource_type);
    let rule = rule_text(reason);
    let text = format!(
        "Principal = {principal} is {is} operation = {operation} from host = {host} on resource = \
         {kind}:LITERAL:{name} for request = {request} with resourceRefCount = 1 based on rule \
         {rule}"
    );
    OneLine(&text).to_string()
}

fn rule_text(reason: Reason<'_>) -> String {
    match reason {
        Reason::SuperUser => "SuperUser".into(),
        Reason::Default(true) => "DefaultAllow".into(),
        Reason::Default(false) => "DefaultDeny".into(),
        Reason::Entry(acl) => format!(
            "MatchingAcl(acl=StandardAcl[resourceType={}, resourceName={}, patternType={}, \
             principal={}, host={}, operation={}, permissionType={}])",
            resource_name(acl.resource_type),
            acl.resource_name,
            pattern_name(acl.pattern_type),
            acl.principal,
            acl.host,
            operation_name(acl.operation),
            permission_name(acl.permission_type),
        ),
    }
}

impl View<'_> {
    /// Whether whoever asks may do `operation` to `resource`: see [`allows`]. The committed entries
    /// decide.
    #[must_use]
    pub fn allows(&self, context: &Context, operation: Operation, resource: Resource<'_>) -> bool {
        self.allows_with(context, operation, resource, Audit::Both)
    }

    /// The same for a question that only prepares another one.
    #[must_use]
    pub fn allows_with(
        &self,
        context: &Context,
        operation: Operation,
        resource: Resource<'_>,
        audit: Audit,
    ) -> bool {
        let rules = self.settings.authorizer.as_ref();
        let question = (operation, resource);
        allows(
            rules,
            self.committed.acls(),
            Asker::of(context),
            question,
            audit,
        )
    }
}
