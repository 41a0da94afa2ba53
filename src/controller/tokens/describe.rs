//! DescribeDelegationToken (41), answered from the published image by any controller.
//!
//! Java's controller advertises it and has no handler; these are the rules of its broker.

use std::collections::BTreeSet;

use bytes::Bytes;
use kafka_protocol::messages::describe_delegation_token_request::DescribeDelegationTokenOwner;
use kafka_protocol::messages::describe_delegation_token_response::{
    DescribedDelegationToken, DescribedDelegationTokenRenewer,
};
use kafka_protocol::messages::{DescribeDelegationTokenRequest, DescribeDelegationTokenResponse};
use kafka_protocol::protocol::StrBytes;

use super::{hmacs, is, may_ask};
use crate::controller::authorize::{Operation, Resource};
use crate::controller::told::{self, Told};
use crate::controller::{Context, Settings};
use crate::image::{DelegationToken, Image};
use crate::types::{ApiError, ErrorCode, Principal};

/// The tokens of the owners that are asked for, as far as whoever asks may see them: because they
/// are theirs, because they may renew them, or because `allows` says so.
///
/// # Errors
/// `POLICY_VIOLATION` when the answer is too large.
pub fn describe(
    image: &Image,
    settings: &Settings,
    version: i16,
    context: &Context,
    request: &DescribeDelegationTokenRequest,
    allows: impl Fn(Operation, Resource<'_>) -> bool,
) -> Result<DescribeDelegationTokenResponse, ApiError> {
    let refused = |code: ErrorCode| {
        Ok(DescribeDelegationTokenResponse::default().with_error_code(code.code()))
    };
    if !may_ask(context) {
        return refused(ErrorCode::DelegationTokenRequestNotAllowed);
    }
    let Some(secret) = &settings.tokens.secret else {
        return refused(ErrorCode::DelegationTokenAuthDisabled);
    };
    // Thousands of owners may be asked for where there are thousands of tokens.
    let owners = request.owners.as_ref();
    let owners: Option<BTreeSet<(&str, &str)>> =
        owners.map(|owners| owners.iter().map(named).collect());
    let visible = |id: &str, token: &DelegationToken| {
        let asked_for = |owners: &BTreeSet<(&str, &str)>| {
            let mut concerned = [&token.requester, &token.owner]
                .into_iter()
                .chain(&token.renewers);
            concerned.any(|text| text.split_once(':').is_some_and(|it| owners.contains(&it)))
        };
        if !owners.as_ref().is_none_or(asked_for) {
            return false;
        }
        concerns(token, &context.principal)
            || allows(Operation::Describe, Resource::DelegationToken(id))
            || allows(Operation::DescribeTokens, Resource::User(&token.owner))
    };
    let tokens = image.tokens().iter();
    let mut told = Told::default();
    let tokens = tokens
        .filter(|(id, token)| visible(id, token))
        .map(|(id, token)| {
            let names = [id.as_str(), &token.owner, &token.requester];
            let renewers = token
                .renewers
                .iter()
                .map(|name| told::bytes([name.as_str()]));
            told.add(told::bytes(names) + renewers.sum::<usize>())?;
            let hmac = hmacs::hmac(secret, id).to_vec();
            Ok(described(version, id, token, hmac))
        });
    let tokens = tokens.collect::<Result<_, ApiError>>()?;
    Ok(DescribeDelegationTokenResponse::default().with_tokens(tokens))
}

/// Type and name.
fn named(owner: &DescribeDelegationTokenOwner) -> (&str, &str) {
    (&owner.principal_type, &owner.principal_name)
}

/// Whether the token is this principal's own, was asked for by it, or may be renewed by it.
fn concerns(token: &DelegationToken, principal: &Principal) -> bool {
    is(&token.requester, principal) || super::may_renew(token, principal)
}

fn described(
    version: i16,
    id: &str,
    token: &DelegationToken,
    hmac: Vec<u8>,
) -> DescribedDelegationToken {
    let (kind, name) = parts(&token.owner);
    let renewers = token.renewers.iter().map(|renewer| {
        let (kind, name) = parts(renewer);
        DescribedDelegationTokenRenewer::default()
            .with_principal_type(kind)
            .with_principal_name(name)
    });
    let mut described = DescribedDelegationToken::default()
        .with_principal_type(kind)
        .with_principal_name(name)
        .with_issue_timestamp(token.issued_at.0)
        .with_expiry_timestamp(token.expires_at.0)
        .with_max_timestamp(token.max_at.0)
        .with_token_id(StrBytes::from_string(id.to_owned()))
        .with_hmac(Bytes::from(hmac))
        .with_renewers(renewers.collect());
    if version >= 3 {
        let (kind, name) = parts(&token.requester);
        described.token_requester_principal_type = kind;
        described.token_requester_principal_name = name;
    }
    described
}

/// `Type:name` as two texts.
fn parts(text: &str) -> (StrBytes, StrBytes) {
    let (kind, name) = text.split_once(':').unwrap_or(("", text));
    let own = |text: &str| StrBytes::from_string(text.to_owned());
    (own(kind), own(name))
}
