//! From the HMAC that a request brings to the token that it belongs to.

use std::collections::BTreeMap;
use std::sync::Arc;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha512;

use super::TokenSecret;
use crate::image::{DelegationToken, OrderedMap};

/// The length of an HMAC.
const BYTES: usize = 64;

/// HMAC-SHA-512 of a token's id, with the secret as its key.
pub(super) fn hmac(secret: &TokenSecret, id: &str) -> [u8; BYTES] {
    let mut mac =
        Hmac::<Sha512>::new_from_slice(secret.0.as_bytes()).expect("HMAC takes keys of any length");
    mac.update(id.as_bytes());
    mac.finalize().into_bytes().into()
}

/// The HMACs of the tokens that were met last, worked out when a request asks, each once.
#[derive(Default)]
pub(super) struct Hmacs {
    ids: BTreeMap<[u8; BYTES], String>,
    /// The tokens whose HMACs these are.
    seen: Tokens,
}

type Tokens = OrderedMap<String, Arc<DelegationToken>>;

impl Hmacs {
    /// The token whose HMAC this is. One that nobody has costs a look at what has changed since
    /// the last one, so nothing at all where nothing has.
    pub(super) fn find<'a>(
        &mut self,
        secret: &TokenSecret,
        tokens: &'a Tokens,
        hmac: &[u8],
    ) -> Option<(String, &'a DelegationToken)> {
        let wanted = <[u8; BYTES]>::try_from(hmac).ok()?;
        if !self.ids.contains_key(&wanted) {
            self.learn(secret, tokens);
        }
        let id = self.ids.get(&wanted)?;
        Some((id.clone(), tokens.get(id)?))
    }

    /// Brings the HMACs to these tokens. How many had to be worked out is the result.
    fn learn(&mut self, secret: &TokenSecret, tokens: &Tokens) -> usize {
        let mut made = 0;
        let mut hmac_of = |id: &str| {
            made += 1;
            hmac(secret, id)
        };
        for (id, _) in self.seen.apart(tokens) {
            if !tokens.contains_key(id) {
                self.ids.remove(&hmac_of(id));
            }
        }
        for (id, _) in tokens.apart(&self.seen) {
            if !self.seen.contains_key(id) {
                self.ids.insert(hmac_of(id), id.clone());
            }
        }
        self.seen = tokens.clone();
        made
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Timestamp;

    fn token() -> Arc<DelegationToken> {
        Arc::new(DelegationToken {
            owner: "User:a".into(),
            requester: "User:a".into(),
            renewers: Vec::new(),
            issued_at: Timestamp(0),
            max_at: Timestamp(9),
            expires_at: Timestamp(9),
        })
    }

    #[test]
    fn a_miss_among_known_tokens_looks_at_none_and_learning_at_new_ones_only() {
        let secret = TokenSecret::new("not-a-secret").unwrap();
        let of =
            |numbers: std::ops::Range<u32>| numbers.map(|number| (format!("{number:05}"), token()));
        let mut tokens: Tokens = of(0..1_000).collect();
        let mut hmacs = Hmacs::default();
        assert_eq!(hmacs.learn(&secret, &tokens), 1_000);
        assert_eq!(hmacs.learn(&secret, &tokens), 0);
        assert!(hmacs.find(&secret, &tokens, &[7; BYTES]).is_none());
        assert_eq!(hmacs.seen.apart(&tokens).count(), 0);

        // One is new, and one is gone; another one is renewed, which changes no HMAC.
        let before = tokens.clone();
        for (id, token) in of(1_000..1_001).chain(of(5..6)) {
            tokens.insert(id, token);
        }
        tokens.remove("00500");
        let found = |hmacs: &mut Hmacs, tokens: &Tokens, id: &str| {
            let found = hmacs.find(&secret, tokens, &hmac(&secret, id));
            found.map(|(id, _)| id)
        };
        assert_eq!(found(&mut hmacs, &tokens, "00500"), None);
        assert_eq!(hmacs.learn(&secret, &tokens), 2);
        assert_eq!(found(&mut hmacs, &tokens, "01000").unwrap(), "01000");
        assert_eq!(found(&mut hmacs, &tokens, "00500"), None);
        assert_eq!(hmacs.ids.len(), tokens.len());
        // Back again, as when a leader loses what was not committed.
        assert_eq!(hmacs.learn(&secret, &before), 2);
        assert_eq!(found(&mut hmacs, &before, "00500").unwrap(), "00500");
        assert_eq!(hmacs.ids.len(), before.len());
    }
}
