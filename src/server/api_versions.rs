//! ApiVersions (18): what this listener serves, and the features (KIP-35, KIP-511, KIP-584).
//!
//! A version that is not served is answered as version 0, so that every client can read it: the
//! code, and the range of ApiVersions itself. Version 5 may say which cluster and node the client
//! means (KIP-1242); a controller does not compare them, it only refuses one without the other.

use kafka_protocol::messages::ApiVersionsResponse;
use kafka_protocol::messages::api_versions_response::{
    ApiVersion, FinalizedFeatureKey, SupportedFeatureKey,
};
use kafka_protocol::protocol::StrBytes;

use super::api_table::{API_VERSIONS_KEY, TABLE};
use super::core::Published;
use crate::records::rpc::ApiVersionsRequest;
use crate::types::ErrorCode;

/// The feature that lives in control records.
const KRAFT_VERSION: &str = "kraft.version";
/// Below this version features whose lowest level is 0 are hidden: old clients refuse a 0.
const ZERO_FEATURES_SINCE: i16 = 4;

/// Whether the request makes sense at `version`.
fn is_valid(request: &ApiVersionsRequest, version: i16) -> bool {
    let identity = version < 5 || request.cluster_id.is_some() == (request.node_id != -1);
    let software = [
        &request.client_software_name,
        &request.client_software_version,
    ];
    identity && (version < 3 || software.into_iter().all(|text| is_word(text)))
}

/// KIP-511: letters, digits, `-` and `.`, the first and the last a letter or a digit.
fn is_word(text: &str) -> bool {
    let ends = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    ends(bytes.first())
        && ends(bytes.last())
        && bytes
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.'))
}

/// The answer to a request of a version that is not served; to be encoded as version 0.
pub(crate) fn unsupported() -> ApiVersionsResponse {
    let own = TABLE.iter().filter(|api| api.key == API_VERSIONS_KEY);
    ApiVersionsResponse::default()
        .with_error_code(ErrorCode::UnsupportedVersion.code())
        .with_api_keys(own.map(|api| range(api.key, api.min, api.max)).collect())
}

/// The answer to a request at a version that is served. `supported` is this release's features
/// with their lowest and highest level.
pub(crate) fn answer<'a>(
    request: &ApiVersionsRequest,
    version: i16,
    published: &Published,
    supported: impl Iterator<Item = (&'a str, (i16, i16))>,
) -> ApiVersionsResponse {
    if !is_valid(request, version) {
        return ApiVersionsResponse::default().with_error_code(ErrorCode::InvalidRequest.code());
    }
    let response = ApiVersionsResponse::default().with_api_keys(
        TABLE
            .iter()
            .map(|api| range(api.key, api.min, api.max))
            .collect(),
    );
    if version < 3 {
        return response;
    }
    let supported = supported
        .filter(|(_, (min, _))| version >= ZERO_FEATURES_SINCE || *min > 0)
        .map(|(name, (min, max))| {
            SupportedFeatureKey::default()
                .with_name(StrBytes::from_string(name.to_owned()))
                .with_min_version(min)
                .with_max_version(max)
        });
    let response = response.with_supported_features(supported.collect());
    if published.image.features().metadata_version().is_none() {
        // Nothing is finalized: no features, and their epoch stays -1.
        return response;
    }
    let kraft = Some((KRAFT_VERSION, published.kraft_version));
    let finalized = published.image.features().iter().chain(kraft);
    let finalized = finalized
        .filter(|(_, level)| *level > 0)
        .map(|(name, level)| {
            FinalizedFeatureKey::default()
                .with_name(StrBytes::from_string(name.to_owned()))
                .with_max_version_level(level)
                .with_min_version_level(level)
        });
    response
        .with_finalized_features(finalized.collect())
        .with_finalized_features_epoch(published.features_end.prev().0)
}

fn range(key: i16, min: i16, max: i16) -> ApiVersion {
    ApiVersion::default()
        .with_api_key(key)
        .with_min_version(min)
        .with_max_version(max)
}
