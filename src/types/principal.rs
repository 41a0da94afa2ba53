//! Who asks.

use std::fmt;

/// On whose behalf a request is made: what authentication, or the broker that forwards, says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    /// `User` almost always.
    pub kind: String,
    /// The name.
    pub name: String,
    /// Whether it authenticated with a delegation token (KIP-48).
    pub token_authenticated: bool,
}

impl Default for Principal {
    /// Whoever connects to a listener without authentication.
    fn default() -> Self {
        Self {
            kind: "User".to_owned(),
            name: "ANONYMOUS".to_owned(),
            token_authenticated: false,
        }
    }
}

impl Principal {
    /// Whether nothing is known of who this is.
    #[must_use]
    pub fn is_anonymous(&self) -> bool {
        let nobody = Self::default();
        (&self.kind, &self.name) == (&nobody.kind, &nobody.name)
    }
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.kind, self.name)
    }
}
