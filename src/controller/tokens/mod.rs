//! Delegation tokens (KIP-48, KIP-900): CreateDelegationToken, RenewDelegationToken,
//! ExpireDelegationToken, and the sweep of those that are dead.
//!
//! A token's HMAC is the password of its holder. It is derived from the secret key, which all nodes
//! share, and neither written nor logged; requests name a token by it.

mod describe;
mod hmacs;
#[cfg(test)]
mod tests;

use std::fmt;
use std::ops::Bound;

use kafka_protocol::messages as m;
use kafka_protocol::protocol::StrBytes;

pub use describe::describe;
use hmacs::Hmacs;

use super::authorize::{Operation, Resource};
use super::levels::metadata_version;
use super::{Context, Decision, Reply, Settings, Soft, View};
use crate::image::DelegationToken;
use crate::records::{DelegationTokenRecord, Record, RemoveDelegationTokenRecord, VersionedRecord};
use crate::types::{ApiError, ErrorCode, Instant, Principal, SecurityProtocol, Timestamp, ids};

/// Most tokens that one step of the sweep removes.
const REMOVED_AT_ONCE: usize = 1_000;
/// Most tokens that one step of the sweep looks at.
const LOOKED_AT_AT_ONCE: usize = 10_000;
/// The only kind of principal that may renew a token.
const USER: &str = "User";

/// The keys `delegation.token.*`.
#[derive(Clone, Debug)]
pub struct TokenSettings {
    /// `delegation.token.secret.key`; without it there are no tokens.
    pub secret: Option<TokenSecret>,
    /// `delegation.token.max.lifetime.ms`, at least 1.
    pub max_lifetime_ms: i64,
    /// `delegation.token.expiry.time.ms`, at least 1.
    pub expiry_time_ms: i64,
    /// `delegation.token.expiry.check.interval.ms`, at least 1.
    pub check_interval_ms: u64,
}

impl Default for TokenSettings {
    /// Kafka's defaults: no tokens.
    fn default() -> Self {
        Self {
            secret: None,
            max_lifetime_ms: 604_800_000,
            expiry_time_ms: 86_400_000,
            check_interval_ms: 3_600_000,
        }
    }
}

/// What HMACs are made with. Debug output masks it.
#[derive(Clone)]
pub struct TokenSecret(String);

impl TokenSecret {
    /// `None` for an empty text, which turns tokens off as no text does.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        (!text.is_empty()).then(|| Self(text.to_owned()))
    }
}

impl fmt::Debug for TokenSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[hidden]")
    }
}

/// What the active controller keeps about tokens.
pub struct Tokens {
    /// When the sweep goes on.
    pub(super) due: Instant,
    /// The last id that a sweep in progress has looked at.
    after: Option<String>,
    hmacs: Hmacs,
}

impl Tokens {
    /// The first sweep is due one interval from `now`.
    pub(super) fn new(settings: &Settings, now: Instant) -> Self {
        Self {
            due: now.plus_ms(settings.tokens.check_interval_ms),
            after: None,
            hmacs: Hmacs::default(),
        }
    }
}

/// Whether someone who came in this way may ask for tokens at all, as Java's controller has it.
///
/// A token stands for somebody, so whoever asks must be somebody: on a PLAINTEXT listener nobody
/// is, and on an SSL one not who showed no certificate. A broker that forwards a request has looked
/// at that by its own listener's protocol; the one here is only how the broker came. Whoever holds
/// nothing but a token may not ask: it would outlive itself.
fn may_ask(context: &Context) -> bool {
    let is_somebody = match context.protocol {
        SecurityProtocol::Plaintext => false,
        SecurityProtocol::Ssl => !context.principal.is_anonymous(),
        SecurityProtocol::SaslPlaintext | SecurityProtocol::SaslSsl => true,
    };
    (context.forwarded || is_somebody) && !context.principal.token_authenticated
}

/// Whether tokens can be used at all: the secret to make HMACs with.
fn enabled<'a>(view: &View<'a>) -> Result<&'a TokenSecret, ErrorCode> {
    let Some(secret) = &view.settings.tokens.secret else {
        return Err(ErrorCode::DelegationTokenAuthDisabled);
    };
    if !metadata_version(view.image).supports_delegation_tokens() {
        return Err(ErrorCode::UnsupportedVersion);
    }
    Ok(secret)
}

/// Whether `text`, a `Type:name` as records have it, is this principal.
fn is(text: &str, principal: &Principal) -> bool {
    text.split_once(':') == Some((&principal.kind, &principal.name))
}

fn may_renew(token: &DelegationToken, principal: &Principal) -> bool {
    is(&token.owner, principal) || token.renewers.iter().any(|renewer| is(renewer, principal))
}

fn dead(token: &DelegationToken, now: Timestamp) -> bool {
    token.max_at < now || token.expires_at < now
}

fn record_of(id: &str, token: &DelegationToken, expires_at: i64) -> VersionedRecord {
    let record = DelegationTokenRecord {
        expiration_timestamp: expires_at,
        ..token.record(id)
    };
    Record::DelegationToken(record).at(0)
}

fn removal_of(id: &str) -> VersionedRecord {
    let record = RemoveDelegationTokenRecord {
        token_id: id.to_owned(),
        ..RemoveDelegationTokenRecord::default()
    };
    Record::RemoveDelegationToken(record).at(0)
}

/// The answer to a creation that names these two, with the times of a refusal before the rules.
fn created_for(
    version: i16,
    owner: &Principal,
    requester: &Principal,
    code: ErrorCode,
) -> m::CreateDelegationTokenResponse {
    let text = |text: &str| StrBytes::from_string(text.to_owned());
    let mut reply = m::CreateDelegationTokenResponse::default()
        .with_error_code(code.code())
        .with_principal_type(text(&owner.kind))
        .with_principal_name(text(&owner.name))
        .with_issue_timestamp_ms(-1)
        .with_expiry_timestamp_ms(-1)
        .with_max_timestamp_ms(-1);
    if version >= 3 {
        reply.token_requester_principal_type = text(&requester.kind);
        reply.token_requester_principal_name = text(&requester.name);
    }
    reply
}

/// The answer that refuses a creation of which nothing was looked at.
#[must_use]
pub fn refused_create(version: i16, code: ErrorCode) -> m::CreateDelegationTokenResponse {
    let nobody = Principal::default();
    created_for(version, &nobody, &nobody, code)
}

/// Whom a token is asked for: the one named, else the one who asks.
fn owner_of(
    context: &Context,
    request: &m::CreateDelegationTokenRequest,
) -> Result<Principal, ApiError> {
    match request.owner_principal_name.as_deref() {
        None | Some("") => Ok(context.principal.clone()),
        Some(name) => {
            // A name of no type has no place among the codes of this API.
            let unknown = || ApiError::from(ErrorCode::UnknownServerError);
            Ok(Principal {
                kind: request
                    .owner_principal_type
                    .as_deref()
                    .ok_or_else(unknown)?
                    .to_owned(),
                name: name.to_owned(),
                token_authenticated: false,
            })
        }
    }
}

/// Makes a token.
///
/// # Errors
/// UNKNOWN_SERVER_ERROR for an owner with a name and no type, as in Java. All other refusals are in
/// the reply, which names owner and requester too.
pub(super) fn create(
    view: &View<'_>,
    soft: &mut Soft,
    version: i16,
    context: &Context,
    request: &m::CreateDelegationTokenRequest,
) -> Result<Decision, ApiError> {
    let requester = &context.principal;
    let owner = owner_of(context, request)?;
    let only = |reply| Ok(Decision::only(Reply::CreateDelegationToken(reply)));
    let refused = |code| only(created_for(version, &owner, requester, code));
    if !may_ask(context) {
        return refused(ErrorCode::DelegationTokenRequestNotAllowed);
    }
    let same = (&owner.kind, &owner.name) == (&requester.kind, &requester.name);
    let resource = owner.to_string();
    if !same && !view.allows(context, Operation::CreateTokens, Resource::User(&resource)) {
        return refused(ErrorCode::DelegationTokenAuthorizationFailed);
    }
    // Refusals of the rules have times of 0, those above of -1.
    let ruled_out = |code| {
        only(
            created_for(version, &owner, requester, code)
                .with_issue_timestamp_ms(0)
                .with_expiry_timestamp_ms(0)
                .with_max_timestamp_ms(0),
        )
    };
    let secret = match enabled(view) {
        Ok(secret) => secret,
        Err(code) => return ruled_out(code),
    };
    let users = request.renewers.iter();
    if users
        .clone()
        .any(|renewer| &*renewer.principal_type != USER)
    {
        return ruled_out(ErrorCode::InvalidPrincipalType);
    }
    let now = view.now.wall.0;
    let settings = &view.settings.tokens;
    let max_at = now.saturating_add(shorter(settings.max_lifetime_ms, request.max_lifetime_ms));
    let expires_at = max_at.min(now.saturating_add(settings.expiry_time_ms));
    let id = ids::base64url(soft.rng.uuid());
    let token = DelegationToken {
        owner: owner.to_string(),
        requester: requester.to_string(),
        renewers: users
            .map(|renewer| format!("{USER}:{}", renewer.principal_name.as_str()))
            .collect(),
        issued_at: view.now.wall,
        max_at: Timestamp(max_at),
        expires_at: Timestamp(expires_at),
    };
    let records = vec![record_of(&id, &token, expires_at)];
    let reply = created_for(version, &owner, requester, ErrorCode::None)
        .with_issue_timestamp_ms(now)
        .with_expiry_timestamp_ms(expires_at)
        .with_max_timestamp_ms(max_at)
        .with_hmac(hmacs::hmac(secret, &id).to_vec().into())
        .with_token_id(StrBytes::from_string(id));
    Ok(Decision::atomic(
        records,
        Reply::CreateDelegationToken(reply),
    ))
}

/// What was asked for, if anything was, within what the settings allow.
fn shorter(allowed_ms: i64, asked_ms: i64) -> i64 {
    if asked_ms > 0 {
        allowed_ms.min(asked_ms)
    } else {
        allowed_ms
    }
}

/// The token that a request names by its HMAC.
///
/// # Errors
/// The code, with the time that the refusal has in the place of an expiry: nobody may ask this way
/// (-1); tokens are off, or there is no such token (0).
fn named<'a>(
    view: &View<'a>,
    soft: &mut Soft,
    context: &Context,
    hmac: &[u8],
) -> Result<(String, &'a DelegationToken), (ErrorCode, i64)> {
    if !may_ask(context) {
        return Err((ErrorCode::DelegationTokenRequestNotAllowed, -1));
    }
    let secret = enabled(view).map_err(|code| (code, 0))?;
    let tokens = view.image.tokens();
    let found = soft.tokens.hmacs.find(secret, tokens, hmac);
    found.ok_or((ErrorCode::DelegationTokenNotFound, 0))
}

/// Gives a token another time to live.
pub(super) fn renew(
    view: &View<'_>,
    soft: &mut Soft,
    context: &Context,
    request: &m::RenewDelegationTokenRequest,
) -> Decision {
    let reply = |code: ErrorCode, expires_at: i64| {
        Reply::RenewDelegationToken(
            m::RenewDelegationTokenResponse::default()
                .with_error_code(code.code())
                .with_expiry_timestamp_ms(expires_at),
        )
    };
    let (id, token) = match named(view, soft, context, &request.hmac) {
        Ok(found) => found,
        Err((code, expires_at)) => return Decision::only(reply(code, expires_at)),
    };
    if dead(token, view.now.wall) {
        return Decision::only(reply(ErrorCode::DelegationTokenExpired, 0));
    }
    if !may_renew(token, &context.principal) {
        return Decision::only(reply(ErrorCode::DelegationTokenOwnerMismatch, 0));
    }
    let period = shorter(view.settings.tokens.expiry_time_ms, request.renew_period_ms);
    let expires_at = token.max_at.0.min(view.now.wall.0.saturating_add(period));
    let records = vec![record_of(&id, token, expires_at)];
    Decision::atomic(records, reply(ErrorCode::None, expires_at))
}

/// Shortens a token's time, or ends it now.
pub(super) fn expire(
    view: &View<'_>,
    soft: &mut Soft,
    context: &Context,
    request: &m::ExpireDelegationTokenRequest,
) -> Decision {
    let reply = |code: ErrorCode, expires_at: i64| {
        Reply::ExpireDelegationToken(
            m::ExpireDelegationTokenResponse::default()
                .with_error_code(code.code())
                .with_expiry_timestamp_ms(expires_at),
        )
    };
    let (id, token) = match named(view, soft, context, &request.hmac) {
        Ok(found) => found,
        Err((code, expires_at)) => return Decision::only(reply(code, expires_at)),
    };
    if !may_renew(token, &context.principal) {
        return Decision::only(reply(ErrorCode::DelegationTokenOwnerMismatch, 0));
    }
    let now = view.now.wall;
    if request.expiry_time_period_ms < 0 {
        return Decision::atomic(vec![removal_of(&id)], reply(ErrorCode::None, now.0));
    }
    if dead(token, now) {
        return Decision::only(reply(ErrorCode::DelegationTokenExpired, 0));
    }
    let asked = now.0.saturating_add(request.expiry_time_period_ms);
    let expires_at = token.max_at.0.min(asked);
    let records = vec![record_of(&id, token, expires_at)];
    Decision::atomic(records, reply(ErrorCode::None, expires_at))
}

/// One step of the sweep: removes some of the dead tokens, and says when it goes on.
pub(super) fn sweep(view: &View<'_>, soft: &mut Soft) -> Vec<VersionedRecord> {
    let after = soft.tokens.after.take();
    let start = after.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
    let mut records = Vec::new();
    let rest = view.image.tokens().range(start);
    for (looked_at, (id, token)) in rest.enumerate() {
        if dead(token, view.now.wall) {
            tracing::info!("the delegation token {id} of {} has expired", token.owner);
            records.push(removal_of(id));
        }
        if records.len() == REMOVED_AT_ONCE || looked_at + 1 == LOOKED_AT_AT_ONCE {
            // Still due: the next step goes on behind this one.
            soft.tokens.after = Some(id.clone());
            return records;
        }
    }
    let interval = view.settings.tokens.check_interval_ms;
    soft.tokens.due = view.now.instant.plus_ms(interval);
    records
}
