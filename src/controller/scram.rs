//! AlterUserScramCredentials and DescribeUserScramCredentials (KIP-554, KIP-900).

use std::collections::BTreeMap;

use indexmap::IndexMap;
use kafka_protocol::messages::alter_user_scram_credentials_request::{
    ScramCredentialDeletion, ScramCredentialUpsertion,
};
use kafka_protocol::messages::alter_user_scram_credentials_response as altered;
use kafka_protocol::messages::describe_user_scram_credentials_response::{
    CredentialInfo, DescribeUserScramCredentialsResult,
};
use kafka_protocol::messages::{
    AlterUserScramCredentialsRequest, AlterUserScramCredentialsResponse,
    DescribeUserScramCredentialsRequest, DescribeUserScramCredentialsResponse,
};
use kafka_protocol::protocol::StrBytes;

use super::java_map::JavaMap;
use super::told::{self, Told};
use super::{Decision, Reply, View, bounded, bounded_items, levels};
use crate::image::{Image, ScramKey};
use crate::records::{
    Record, RemoveUserScramCredentialRecord, UserScramCredentialRecord, VersionedRecord,
};
use crate::types::java_order::CAPACITY_DEFAULT;
use crate::types::{ApiError, ErrorCode, ScramMechanism};

/// The rule of AlterUserScramCredentials v0. Each user succeeds or fails by itself; a user may be
/// named once in a request, whatever the mechanism.
///
/// # Errors
/// `POLICY_VIOLATION` when there is too much to write.
pub(super) fn decide(
    view: &View<'_>,
    request: &AlterUserScramCredentialsRequest,
) -> Result<Decision, ApiError> {
    bounded_items(request.deletions.len() + request.upsertions.len())?;
    let mut work = Work::new(levels::metadata_version(view.image).supports_scram());
    for deletion in &request.deletions {
        work.delete(view.image, deletion);
    }
    for upsertion in &request.upsertions {
        work.upsert(upsertion);
    }
    let (records, results) = work.finish();
    bounded(&records)?;
    let reply = AlterUserScramCredentialsResponse::default().with_results(results);
    Ok(Decision::atomic(
        records,
        Reply::AlterUserScramCredentials(reply),
    ))
}

/// What is found out about each user on the way.
struct Work<'a> {
    supported: bool,
    deletions: JavaMap<&'a ScramCredentialDeletion>,
    upsertions: JavaMap<(ScramMechanism, &'a ScramCredentialUpsertion)>,
    errors: JavaMap<ApiError>,
}

type AlterResult = altered::AlterUserScramCredentialsResult;

impl<'a> Work<'a> {
    fn new(supported: bool) -> Self {
        Self {
            supported,
            deletions: JavaMap::with_capacity(CAPACITY_DEFAULT),
            upsertions: JavaMap::with_capacity(CAPACITY_DEFAULT),
            errors: JavaMap::with_capacity(CAPACITY_DEFAULT),
        }
    }

    fn delete(&mut self, image: &Image, deletion: &'a ScramCredentialDeletion) {
        let name = deletion.name.as_str();
        let Some(checked) = self.first_of(name, deletion.mechanism) else {
            return;
        };
        let known = checked.and_then(|mechanism| {
            let key: ScramKey = (name.to_owned(), mechanism.id());
            if image.scram().contains_key(&key) {
                return Ok(());
            }
            let message = "Attempt to delete a user credential that does not exist";
            Err(ApiError::new(ErrorCode::ResourceNotFound, message))
        });
        match known {
            Ok(()) => self.deletions.insert(name, deletion),
            Err(error) => self.errors.insert(name, error),
        }
    }

    fn upsert(&mut self, upsertion: &'a ScramCredentialUpsertion) {
        let name = upsertion.name.as_str();
        let Some(checked) = self.first_of(name, upsertion.mechanism) else {
            return;
        };
        let valid = checked.and_then(|mechanism| {
            let refused = |message| ApiError::new(ErrorCode::UnacceptableCredential, message);
            if upsertion.iterations < ScramMechanism::ITERATIONS_MIN {
                return Err(refused("Too few iterations"));
            }
            if upsertion.iterations > ScramMechanism::ITERATIONS_MAX {
                return Err(refused("Too many iterations"));
            }
            Ok(mechanism)
        });
        match valid {
            Ok(mechanism) => self.upsertions.insert(name, (mechanism, upsertion)),
            Err(error) => self.errors.insert(name, error),
        }
    }

    /// `None` when the user is refused already. Otherwise what can be said before the credential is
    /// looked at: the user may not occur twice, the cluster must know such credentials.
    fn first_of(&mut self, name: &str, mechanism: i8) -> Option<Result<ScramMechanism, ApiError>> {
        if self.errors.contains(name) {
            return None;
        }
        let deleted = self.deletions.remove(name).is_some();
        let twice = deleted || self.upsertions.remove(name).is_some();
        let refused = |code, message: &str| Some(Err(ApiError::new(code, message)));
        if twice {
            let message = "A user credential cannot be altered twice in the same request";
            return refused(ErrorCode::DuplicateResource, message);
        }
        if !self.supported {
            let message = "The current metadata.version does not support SCRAM";
            return refused(ErrorCode::UnsupportedVersion, message);
        }
        if name.is_empty() {
            let message = "Username must not be empty";
            return refused(ErrorCode::UnacceptableCredential, message);
        }
        match ScramMechanism::of(mechanism) {
            Some(mechanism) => Some(Ok(mechanism)),
            None => refused(
                ErrorCode::UnsupportedSaslMechanism,
                "Unknown SCRAM mechanism",
            ),
        }
    }

    fn finish(mut self) -> (Vec<VersionedRecord>, Vec<AlterResult>) {
        let mut records = Vec::new();
        let mut results = Vec::new();
        for (name, deletion) in self.deletions.iter() {
            let record = RemoveUserScramCredentialRecord {
                name: name.to_owned(),
                mechanism: deletion.mechanism,
                ..RemoveUserScramCredentialRecord::default()
            };
            records.push(Record::RemoveUserScramCredential(record).at(0));
            results.push(result(name, None));
        }
        for (name, (mechanism, upsertion)) in self.upsertions.iter() {
            // Java's cryptography takes no empty key; its controller answers UNKNOWN_SERVER_ERROR.
            if upsertion.salted_password.is_empty() {
                let message = "The salted password must not be empty";
                let error = ApiError::new(ErrorCode::UnacceptableCredential, message);
                self.errors.insert(name, error);
                continue;
            }
            let keys = mechanism.keys(&upsertion.salted_password);
            let record = UserScramCredentialRecord {
                name: name.to_owned(),
                mechanism: mechanism.id(),
                salt: upsertion.salt.clone(),
                stored_key: keys.stored.into(),
                server_key: keys.server.into(),
                iterations: upsertion.iterations,
                ..UserScramCredentialRecord::default()
            };
            records.push(Record::UserScramCredential(record).at(0));
            results.push(result(name, None));
        }
        for (name, error) in self.errors.iter() {
            results.push(result(name, Some(error)));
        }
        (records, results)
    }
}

fn result(name: &str, error: Option<&ApiError>) -> AlterResult {
    let code = error.map_or(ErrorCode::None, |error| error.code);
    let message = error.and_then(|error| error.message.clone());
    AlterResult::default()
        .with_user(StrBytes::from_string(name.to_owned()))
        .with_error_code(code.code())
        .with_error_message(message.map(StrBytes::from_string))
}

/// Answers DescribeUserScramCredentials v0 as a broker does: mechanisms and rounds of the users
/// that are asked for, or of all. Nothing in the answer helps to find a password.
///
/// # Errors
/// `POLICY_VIOLATION` when the answer is too large.
pub fn describe(
    image: &Image,
    request: &DescribeUserScramCredentialsRequest,
) -> Result<DescribeUserScramCredentialsResponse, ApiError> {
    let mut credentials: BTreeMap<&str, Vec<CredentialInfo>> = BTreeMap::new();
    for ((name, mechanism), credential) in image.scram().iter() {
        let info = CredentialInfo::default()
            .with_mechanism(*mechanism)
            .with_iterations(credential.iterations);
        credentials.entry(name).or_default().push(info);
    }
    let asked = request.users.as_deref().unwrap_or_default();
    // Whether a user was asked for twice.
    let mut users: IndexMap<&str, bool> = IndexMap::new();
    for user in asked {
        users
            .entry(user.name.as_str())
            .and_modify(|twice| *twice = true)
            .or_insert(false);
    }
    if asked.is_empty() {
        users.extend(credentials.keys().map(|name| (*name, false)));
    }
    let mut told = Told::default();
    let results = users.into_iter().map(|(name, twice)| {
        told.add(told::bytes([name]))?;
        let result = DescribeUserScramCredentialsResult::default()
            .with_user(StrBytes::from_string(name.to_owned()))
            .with_error_message(None);
        let refused = |result: DescribeUserScramCredentialsResult, code: ErrorCode, text: &str| {
            result
                .with_error_code(code.code())
                .with_error_message(Some(StrBytes::from_string(format!("{text}{name}"))))
        };
        Ok(match credentials.get(name) {
            _ if twice => refused(
                result,
                ErrorCode::DuplicateResource,
                "Cannot describe SCRAM credentials for the same user twice in a single request: ",
            ),
            Some(infos) => result.with_credential_infos(infos.clone()),
            None => refused(
                result,
                ErrorCode::ResourceNotFound,
                "Attempt to describe a user credential that does not exist: ",
            ),
        })
    });
    let results = results.collect::<Result<_, ApiError>>()?;
    Ok(DescribeUserScramCredentialsResponse::default()
        .with_error_message(None)
        .with_results(results))
}
