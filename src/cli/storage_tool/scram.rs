//! SCRAM credentials for the bootstrap records (KIP-900).

use crate::records::{Record, UserScramCredentialRecord, VersionedRecord};
use crate::types::{ScramMechanism, Uuid};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

const ITERATIONS_MIN: i32 = ScramMechanism::ITERATIONS_MIN;
const ITERATIONS_MAX: i32 = ScramMechanism::ITERATIONS_MAX;

/// The record of one `--add-scram` argument, `MECHANISM=[name=..,password=..]`.
///
/// # Errors
/// The sentence about what is wrong with it.
pub(super) fn record(text: &str) -> Result<VersionedRecord, String> {
    let (mechanism, settings) = text
        .split_once('=')
        .ok_or_else(|| format!("Failed to find equals sign in SCRAM argument '{text}'"))?;
    let mechanism = ScramMechanism::named(mechanism)
        .ok_or_else(|| format!("The add-scram mechanism {mechanism} is not supported."))?;
    let settings = Settings::parse(settings)?;
    let iterations = settings.iterations(mechanism)?;
    let salt = match &settings.salt {
        Some(text) => decode("salt", text)?,
        // A random text without blanks, as the reference makes it.
        None => Uuid::new_v4().simple().to_string().into_bytes(),
    };
    let salted = match (&settings.salted_password, &settings.password) {
        (Some(text), _) if settings.salt.is_some() => decode("saltedpassword", text)?,
        (Some(_), None) => {
            return Err("You must supply 'salt' with 'saltedpassword' to add-scram".to_owned());
        }
        (_, Some(password)) => {
            let rounds = iterations.unsigned_abs();
            mechanism.salted(password.as_bytes(), &salt, rounds)
        }
        (None, None) => {
            return Err(
                "You must supply one of 'password' or 'saltedpassword' to add-scram".to_owned(),
            );
        }
    };
    let keys = mechanism.keys(&salted);
    let record = UserScramCredentialRecord {
        name: settings.name,
        mechanism: mechanism.id(),
        salt: salt.into(),
        stored_key: keys.stored.into(),
        server_key: keys.server.into(),
        iterations,
        ..UserScramCredentialRecord::default()
    };
    Ok(VersionedRecord {
        version: 0,
        record: Record::UserScramCredential(record),
    })
}

fn decode(what: &str, text: &str) -> Result<Vec<u8>, String> {
    STANDARD
        .decode(text)
        .map_err(|_| format!("Failed to decode given {what}: {text}"))
}

#[derive(Default)]
struct Settings {
    name: String,
    password: Option<String>,
    salted_password: Option<String>,
    salt: Option<String>,
    iterations: Option<String>,
}

impl Settings {
    fn parse(text: &str) -> Result<Self, String> {
        let inner = text
            .strip_prefix('[')
            .ok_or("Expected configuration string to start with [")?
            .strip_suffix(']')
            .ok_or("Expected configuration string to end with ]")?;
        let mut settings = Self::default();
        let mut name = None;
        for part in inner.split(',').filter(|part| !part.trim().is_empty()) {
            let (key, value) = part
                .split_once('=')
                .ok_or_else(|| format!("Failed to find equals sign in SCRAM argument '{part}'"))?;
            let quoted = value
                .strip_prefix('"')
                .and_then(|rest| rest.strip_suffix('"'));
            let value = quoted.unwrap_or(value).to_owned();
            match key.trim() {
                "name" => name = Some(value),
                "password" => settings.password = Some(value),
                "saltedpassword" => settings.salted_password = Some(value),
                "salt" => settings.salt = Some(value),
                "iterations" => settings.iterations = Some(value),
                other => return Err(format!("Unknown SCRAM configurations: {other}")),
            }
        }
        settings.name = name.ok_or("You must supply 'name' to add-scram")?;
        Ok(settings)
    }

    fn iterations(&self, mechanism: ScramMechanism) -> Result<i32, String> {
        let Some(text) = &self.iterations else {
            return Ok(ITERATIONS_MIN);
        };
        let count: i32 = text
            .parse()
            .map_err(|_| format!("Failed to parse iterations count: {text}"))?;
        let name = mechanism.constant();
        if count < ITERATIONS_MIN {
            return Err(format!(
                "The 'iterations' value must be >= {ITERATIONS_MIN} for add-scram using {name}"
            ));
        }
        if count > ITERATIONS_MAX {
            return Err(format!(
                "The 'iterations' value must be <= {ITERATIONS_MAX} for add-scram using {name}"
            ));
        }
        Ok(count)
    }
}
