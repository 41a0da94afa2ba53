//! SaslHandshake (17) and SaslAuthenticate (36) on a listener that does not authenticate: both come
//! at the wrong time (KIP-43, KIP-152). Neither answer names a mechanism, and the connection goes
//! on.

use kafka_protocol::messages::{SaslAuthenticateResponse, SaslHandshakeResponse};
use kafka_protocol::protocol::StrBytes;

use crate::types::ErrorCode;

/// The answer to a SaslHandshake.
pub(crate) fn handshake() -> SaslHandshakeResponse {
    SaslHandshakeResponse::default().with_error_code(ErrorCode::IllegalSaslState.code())
}

/// The answer to a SaslAuthenticate.
pub(crate) fn authenticate() -> SaslAuthenticateResponse {
    let text = "SaslAuthenticate request received after successful authentication";
    SaslAuthenticateResponse::default()
        .with_error_code(ErrorCode::IllegalSaslState.code())
        .with_error_message(Some(StrBytes::from_static_str(text)))
}
