//! The keys of SCRAM credentials (RFC 5802, section 3), for `format` and for requests.

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256, Sha512};

/// A mechanism that Kafka has credentials for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScramMechanism {
    /// SCRAM-SHA-256, 1 in records and requests.
    Sha256,
    /// SCRAM-SHA-512, 2 in records and requests.
    Sha512,
}

/// The keys that a server keeps of a password.
#[derive(Clone, PartialEq, Eq)]
pub struct ScramKeys {
    /// `H(HMAC(SaltedPassword, "Client Key"))`.
    pub stored: Vec<u8>,
    /// `HMAC(SaltedPassword, "Server Key")`.
    pub server: Vec<u8>,
}

impl ScramMechanism {
    /// Fewest rounds of the key derivation, inclusive.
    pub const ITERATIONS_MIN: i32 = 4_096;
    /// Most rounds of the key derivation, inclusive.
    pub const ITERATIONS_MAX: i32 = 16_384;

    /// The mechanism of this number.
    #[must_use]
    pub const fn of(id: i8) -> Option<Self> {
        match id {
            1 => Some(Self::Sha256),
            2 => Some(Self::Sha512),
            _ => None,
        }
    }

    /// The mechanism of this name, as SASL has it.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "SCRAM-SHA-256" => Some(Self::Sha256),
            "SCRAM-SHA-512" => Some(Self::Sha512),
            _ => None,
        }
    }

    /// The name in Java's sentences, which is that of the enum.
    #[must_use]
    pub const fn constant(self) -> &'static str {
        match self {
            Self::Sha256 => "SCRAM_SHA_256",
            Self::Sha512 => "SCRAM_SHA_512",
        }
    }

    /// The number in records and requests.
    #[must_use]
    pub const fn id(self) -> i8 {
        match self {
            Self::Sha256 => 1,
            Self::Sha512 => 2,
        }
    }

    /// `Hi(password, salt, iterations)`: the password as clients send it to the controller.
    #[must_use]
    pub fn salted(self, password: &[u8], salt: &[u8], iterations: u32) -> Vec<u8> {
        match self {
            Self::Sha256 => {
                pbkdf2::pbkdf2_hmac_array::<Sha256, 32>(password, salt, iterations).to_vec()
            }
            Self::Sha512 => {
                pbkdf2::pbkdf2_hmac_array::<Sha512, 64>(password, salt, iterations).to_vec()
            }
        }
    }

    /// The keys of a salted password.
    #[must_use]
    pub fn keys(self, salted: &[u8]) -> ScramKeys {
        ScramKeys {
            stored: self.hash(&self.hmac(salted, "Client Key")),
            server: self.hmac(salted, "Server Key"),
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
