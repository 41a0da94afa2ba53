//! SCRAM credentials for the bootstrap records (KIP-900).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256, Sha512};

use crate::records::{Record, UserScramCredentialRecord, VersionedRecord};
use crate::types::Uuid;

const ITERATIONS_MIN: i32 = 4_096;
const ITERATIONS_MAX: i32 = 16_384;

#[derive(Clone, Copy)]
enum Mechanism {
    Sha256,
    Sha512,
}

impl Mechanism {
    const fn name(self) -> &'static str {
        match self {
            Self::Sha256 => "SCRAM_SHA_256",
            Self::Sha512 => "SCRAM_SHA_512",
        }
    }

    const fn id(self) -> i8 {
        match self {
            Self::Sha256 => 1,
            Self::Sha512 => 2,
        }
    }

    fn salted(self, password: &[u8], salt: &[u8], iterations: u32) -> Vec<u8> {
        match self {
            Self::Sha256 => {
                pbkdf2::pbkdf2_hmac_array::<Sha256, 32>(password, salt, iterations).to_vec()
            }
            Self::Sha512 => {
                pbkdf2::pbkdf2_hmac_array::<Sha512, 64>(password, salt, iterations).to_vec()
            }
        }
    }

    fn hmac(self, key: &[u8], text: &str) -> Vec<u8> {
        const ANY: &str = "HMAC takes keys of any length";
        match self {
            Self::Sha256 => {
                let mut mac = Hmac::<Sha256>::new_from_slice(key).expect(ANY);
                mac.update(text.as_bytes());
                mac.finalize().into_bytes().to_vec()
            }
            Self::Sha512 => {
                let mut mac = Hmac::<Sha512>::new_from_slice(key).expect(ANY);
                mac.update(text.as_bytes());
                mac.finalize().into_bytes().to_vec()
            }
        }
    }

    fn hash(self, bytes: &[u8]) -> Vec<u8> {
        match self {
            Self::Sha256 => Sha256::digest(bytes).to_vec(),
            Self::Sha512 => Sha512::digest(bytes).to_vec(),
        }
    }
}

/// The record of one `--add-scram` argument, `MECHANISM=[name=..,password=..]`.
///
/// # Errors
/// The sentence about what is wrong with it.
pub(super) fn record(text: &str) -> Result<VersionedRecord, String> {
    let (mechanism, settings) = text
        .split_once('=')
        .ok_or_else(|| format!("Failed to find equals sign in SCRAM argument '{text}'"))?;
    let mechanism = match mechanism {
        "SCRAM-SHA-256" => Mechanism::Sha256,
        "SCRAM-SHA-512" => Mechanism::Sha512,
        other => return Err(format!("The add-scram mechanism {other} is not supported.")),
    };
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
    let client_key = mechanism.hmac(&salted, "Client Key");
    let record = UserScramCredentialRecord {
        name: settings.name,
        mechanism: mechanism.id(),
        salt: salt.into(),
        stored_key: mechanism.hash(&client_key).into(),
        server_key: mechanism.hmac(&salted, "Server Key").into(),
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

    fn iterations(&self, mechanism: Mechanism) -> Result<i32, String> {
        let Some(text) = &self.iterations else {
            return Ok(ITERATIONS_MIN);
        };
        let count: i32 = text
            .parse()
            .map_err(|_| format!("Failed to parse iterations count: {text}"))?;
        let name = mechanism.name();
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
