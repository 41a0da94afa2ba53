//! How peers talk to a listener.

/// What `listener.security.protocol.map` gives a listener.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SecurityProtocol {
    /// No encryption, no authentication.
    #[default]
    Plaintext,
    /// TLS.
    Ssl,
    /// SASL without encryption.
    SaslPlaintext,
    /// SASL over TLS.
    SaslSsl,
}

impl SecurityProtocol {
    /// Java's name, as written in `listener.security.protocol.map`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Plaintext => "PLAINTEXT",
            Self::Ssl => "SSL",
            Self::SaslPlaintext => "SASL_PLAINTEXT",
            Self::SaslSsl => "SASL_SSL",
        }
    }

    /// Its number in `RegisterControllerRecord` and `RegisterBrokerRecord` endpoints.
    #[must_use]
    pub const fn id(self) -> i16 {
        match self {
            Self::Plaintext => 0,
            Self::Ssl => 1,
            Self::SaslPlaintext => 2,
            Self::SaslSsl => 3,
        }
    }

    /// Whether there is one with this [number](Self::id).
    #[must_use]
    pub const fn has_id(id: i16) -> bool {
        matches!(id, 0..=3)
    }
}
