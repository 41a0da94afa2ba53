//! What a request needs before anything of it is looked at: some operation on the cluster.
//!
//! Java's controllers ask in front of everything else, leading or not, by the entries that the
//! published metadata has. What depends on the topics, configurations or users that a request names
//! is asked by the rules.

use super::api_table::{API_VERSIONS_KEY, Api};
use super::core::Published;
use super::dispatch::Ctx;
use crate::controller::Settings;
use crate::controller::authorize::{self, Audit, Operation, Resource};
use crate::types::{ApiError, ErrorCode, Offset};

/// What the request needs on the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// This.
    Cluster(Operation),
    /// That is for the rule to say, by what the request names.
    Items,
    /// Nothing: everybody may ask.
    Nothing,
}

/// The needs of each API that a 4.4.0 controller serves; `None` for all others.
pub(crate) const fn need(key: i16) -> Option<Need> {
    let operation = match key {
        1 | 52 | 53 | 54 | 56 | 58 | 59 | 62 | 63 | 67 | 70 | 73 | 82 => Operation::ClusterAction,
        29 | 46 | 50 | 55 => Operation::Describe,
        30 | 31 | 43 | 45 | 51 | 57 | 64 | 80 | 81 | 94 => Operation::Alter,
        49 => Operation::AlterConfigs,
        19 | 20 | 32 | 33 | 37 | 38 | 39 | 40 | 41 | 44 => return Some(Need::Items),
        // DescribeCluster needs ALTER, after its checks of the metadata's level.
        60 => return Some(Need::Items),
        17 | API_VERSIONS_KEY | 36 => return Some(Need::Nothing),
        _ => return None,
    };
    Some(Need::Cluster(operation))
}

/// Refuses a request that whoever sent it may not make.
///
/// # Errors
/// `CLUSTER_AUTHORIZATION_FAILED`; `UNKNOWN_SERVER_ERROR` while the entries are not known yet, and
/// for an API whose needs are not known.
pub(crate) fn check(
    api: &Api,
    ctx: &Ctx<'_>,
    settings: &Settings,
    published: impl FnOnce() -> std::sync::Arc<Published>,
) -> Result<(), ApiError> {
    let Some(rules) = settings.authorizer.as_ref() else {
        return Ok(());
    };
    let need = need(api.key).ok_or(ErrorCode::UnknownServerError)?;
    if need == Need::Nothing {
        return Ok(());
    }
    let published = published();
    if published.end == Offset::ZERO && !rules.is_super(ctx.principal) {
        return Err(ErrorCode::UnknownServerError.into());
    }
    match need {
        Need::Cluster(operation) => on_cluster(operation, ctx, settings, &published),
        Need::Items | Need::Nothing => Ok(()),
    }
}

/// Refuses whoever may not do this to the cluster.
///
/// # Errors
/// `CLUSTER_AUTHORIZATION_FAILED`.
pub(crate) fn on_cluster(
    operation: Operation,
    ctx: &Ctx<'_>,
    settings: &Settings,
    published: &Published,
) -> Result<(), ApiError> {
    let question = (operation, Resource::Cluster);
    if allows(question, ctx, settings, published, Audit::Both) {
        return Ok(());
    }
    let code = ErrorCode::ClusterAuthorizationFailed;
    // These answer with the sentence of the code, as their Java classes do.
    if matches!(ctx.key, 49 | 55 | 70 | 80 | 81) {
        return Err(authorize::denied(code));
    }
    let (request, operation) = (ctx.request, authorize::operation_name(operation.code()));
    let message = format!("Request {request} needs {operation} permission.");
    Err(ApiError::new(code, message))
}

/// Whether whoever asks may do this, by the published entries.
pub(crate) fn allows(
    question: (Operation, Resource<'_>),
    ctx: &Ctx<'_>,
    settings: &Settings,
    published: &Published,
    audit: Audit,
) -> bool {
    let rules = settings.authorizer.as_ref();
    authorize::allows(rules, published.image.acls(), ctx.asker(), question, audit)
}

#[cfg(test)]
mod tests {
    use super::super::api_table::TABLE;
    use super::*;

    #[test]
    fn the_needs_of_every_api_that_is_served_are_known() {
        for api in TABLE {
            assert!(need(api.key).is_some(), "{}", api.name);
        }
        assert_eq!(need(3), None);
    }
}
