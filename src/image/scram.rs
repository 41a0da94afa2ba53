//! SCRAM credentials (KIP-900), by user and mechanism.

use std::fmt;

use bytes::Bytes;

/// The key of a credential: user name and mechanism (1 SCRAM-SHA-256, 2 SCRAM-SHA-512).
pub type ScramKey = (String, i8);

/// What a server needs to check a proof; the password is not in it.
#[derive(Clone, PartialEq, Eq)]
pub struct ScramCredential {
    /// The salt.
    pub salt: Bytes,
    /// H(ClientKey) of RFC 5802.
    pub stored_key: Bytes,
    /// HMAC(SaltedPassword, "Server Key") of RFC 5802.
    pub server_key: Bytes,
    /// Rounds of the key derivation.
    pub iterations: i32,
}

impl fmt::Debug for ScramCredential {
    // The keys are enough to pose as the server, so they stay out of logs and panics.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScramCredential")
            .field("iterations", &self.iterations)
            .finish_non_exhaustive()
    }
}
