//! From the HMAC that a request brings to the token that it belongs to.

use std::collections::{BTreeMap, BTreeSet};

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha512;

use super::TokenSecret;
use crate::image::DelegationToken;

/// The length of an HMAC.
const BYTES: usize = 64;
/// How many tokens that are gone may stay known, beside twice those that are not.
const STALE_MAX: usize = 1_024;

/// HMAC-SHA-512 of a token's id, with the secret as its key.
pub(super) fn hmac(secret: &TokenSecret, id: &str) -> [u8; BYTES] {
    let mut mac =
        Hmac::<Sha512>::new_from_slice(secret.0.as_bytes()).expect("HMAC takes keys of any length");
    mac.update(id.as_bytes());
    mac.finalize().into_bytes().into()
}

/// The HMACs of the tokens that were met so far, worked out when a request asks, each once.
#[derive(Default)]
pub(super) struct Hmacs {
    ids: BTreeMap<[u8; BYTES], String>,
    known: BTreeSet<String>,
}

impl Hmacs {
    /// The token whose HMAC this is.
    pub(super) fn find<'a>(
        &mut self,
        secret: &TokenSecret,
        tokens: &'a BTreeMap<String, DelegationToken>,
        hmac: &[u8],
    ) -> Option<(String, &'a DelegationToken)> {
        let wanted = <[u8; BYTES]>::try_from(hmac).ok()?;
        if !self.ids.contains_key(&wanted) {
            self.learn(secret, tokens);
        }
        let id = self.ids.get(&wanted)?;
        Some((id.clone(), tokens.get(id)?))
    }

    fn learn(&mut self, secret: &TokenSecret, tokens: &BTreeMap<String, DelegationToken>) {
        if self.known.len() > 2 * tokens.len() + STALE_MAX {
            *self = Self::default();
        }
        for id in tokens
            .keys()
            .filter(|id| !self.known.contains(*id))
            .cloned()
            .collect::<Vec<_>>()
        {
            self.ids.insert(hmac(secret, &id), id.clone());
            self.known.insert(id);
        }
    }
}
