//! Envelope (58): a request that a broker forwards for its client (KIP-590).
//!
//! Each thing that can be wrong has its own code, so that a broker can tell its own mistake from
//! its client's: the principal PRINCIPAL_DESERIALIZATION_FAILURE, the client's address or an API
//! that may not be forwarded INVALID_REQUEST, an inner request that cannot be read
//! UNSUPPORTED_VERSION.

use std::net::IpAddr;

use bytes::Bytes;
use kafka_protocol::messages::{ApiKey, EnvelopeRequest, EnvelopeResponse};

use super::api_table::{self, Api};
use super::frame::{HeaderStart, parse_header_rest};
use super::shape::{Checked, Cursor, Kind, Shape, ShapeFault, field};
use crate::types::{ErrorCode, Principal};

/// The only version of the principal's form.
const PRINCIPAL_VERSION: i16 = 0;

static PRINCIPAL: Shape = Shape {
    flexible_from: 0,
    fields: &[
        field("Type", Kind::Str),
        field("Name", Kind::Str),
        field("TokenAuthenticated", Kind::Bool),
    ],
};

/// Reads the bytes of Kafka's default principal.
fn principal(bytes: &Bytes) -> Result<Principal, ShapeFault> {
    let mut cursor = Cursor::new(bytes);
    if cursor.int16()? != PRINCIPAL_VERSION {
        return Err(ShapeFault::BadLength);
    }
    let body = &bytes[cursor.position()..];
    PRINCIPAL
        .check(body, PRINCIPAL_VERSION)
        .map_err(|misfit| misfit.fault)?;
    let mut cursor = Cursor::new(body);
    Ok(Principal {
        kind: cursor.compact_string()?.unwrap_or_default(),
        name: cursor.compact_string()?.unwrap_or_default(),
        token_authenticated: cursor.take(1)? != [0],
    })
}

/// A forwarded request, unwrapped.
#[derive(Clone, Debug)]
pub(crate) struct Forwarded {
    /// On whose behalf.
    pub(crate) principal: Principal,
    /// The client's address.
    pub(crate) address: IpAddr,
    /// The client's own id.
    pub(crate) client_id: Option<String>,
    /// The inner request's header.
    pub(crate) header: HeaderStart,
    /// The inner request's API.
    pub(crate) api: &'static Api,
    /// The inner request's body, of whose end nothing is known.
    pub(crate) body: Bytes,
    /// The same to be decoded; `None` when it has too many items.
    pub(crate) checked: Option<Checked>,
}

/// Unwraps an envelope, checking in the order of a Java controller.
///
/// # Errors
/// The code of the envelope's response.
pub(crate) fn open(envelope: EnvelopeRequest) -> Result<Forwarded, ErrorCode> {
    let told = envelope.request_principal.as_ref();
    let principal = told
        .and_then(|bytes| principal(bytes).ok())
        .ok_or(ErrorCode::PrincipalDeserializationFailure)?;
    let address = client_address(&envelope.client_host_address).ok_or(ErrorCode::InvalidRequest)?;
    let mut body = envelope.request_data;
    let unreadable = |_| ErrorCode::UnsupportedVersion;
    let header = HeaderStart::parse(&mut body).map_err(unreadable)?;
    let Some(api) = api_table::find(header.api_key) else {
        // An API that Kafka has and this listener does not is not eligible for forwarding to it.
        return Err(match ApiKey::try_from(header.api_key) {
            Ok(_) => ErrorCode::InvalidRequest,
            Err(()) => ErrorCode::UnsupportedVersion,
        });
    };
    let flexible = api.flexible(header.version);
    let client_id = parse_header_rest(&mut body, flexible).map_err(unreadable)?;
    if !api.forwardable {
        return Err(ErrorCode::InvalidRequest);
    }
    if !api.serves(header.version) {
        return Err(ErrorCode::UnsupportedVersion);
    }
    let checked = api.checked(&body, header.version);
    let checked = checked.map_err(|_| ErrorCode::UnsupportedVersion)?;
    Ok(Forwarded {
        principal,
        address,
        client_id,
        header,
        api,
        body,
        checked,
    })
}

/// What the elements of the request inside an envelope's body take when they are decoded, as far as
/// it can be read.
pub(crate) fn inner_bytes(body: &Bytes) -> usize {
    let checked = || -> Option<Checked> {
        let mut cursor = Cursor::new(body);
        let inner = cursor.compact_bytes().ok()??;
        let mut inner = body.slice_ref(inner);
        let header = HeaderStart::parse(&mut inner).ok()?;
        let api = api_table::find(header.api_key)?;
        parse_header_rest(&mut inner, api.flexible(header.version)).ok()?;
        api.checked(&inner, header.version).ok()?
    };
    checked().map_or(0, |inner| inner.size().decoded_bytes)
}

fn client_address(bytes: &[u8]) -> Option<IpAddr> {
    if let Ok(v4) = <[u8; 4]>::try_from(bytes) {
        return Some(v4.into());
    }
    <[u8; 16]>::try_from(bytes).ok().map(IpAddr::from)
}

/// The envelope around a whole inner answer (its header included, no length).
pub(crate) fn wrap(inner: Bytes) -> EnvelopeResponse {
    EnvelopeResponse::default().with_response_data(Some(inner))
}

/// An envelope that says why there is no inner answer. NOT_CONTROLLER belongs here as well: it
/// makes the broker look for the active controller and send the request again.
pub(crate) fn refuse(code: ErrorCode) -> EnvelopeResponse {
    EnvelopeResponse::default()
        .with_response_data(None)
        .with_error_code(code.code())
}
