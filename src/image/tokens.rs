//! Delegation tokens (KIP-900), by token id.

use crate::records::DelegationTokenRecord;
use crate::types::Timestamp;

/// A token without its HMAC, which is derived from the secret key and never stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DelegationToken {
    /// `Type:name` of whom the token stands for.
    pub owner: String,
    /// `Type:name` of who asked for it.
    pub requester: String,
    /// `Type:name` of each principal that may renew it.
    pub renewers: Vec<String>,
    /// When it was made.
    pub issued_at: Timestamp,
    /// It cannot be renewed beyond this.
    pub max_at: Timestamp,
    /// It is dead from here on.
    pub expires_at: Timestamp,
}

impl DelegationToken {
    /// The record that says it.
    #[must_use]
    pub fn record(&self, id: &str) -> DelegationTokenRecord {
        DelegationTokenRecord {
            owner: self.owner.clone(),
            requester: self.requester.clone(),
            renewers: self.renewers.clone(),
            issue_timestamp: self.issued_at.0,
            max_timestamp: self.max_at.0,
            expiration_timestamp: self.expires_at.0,
            token_id: id.to_owned(),
            ..DelegationTokenRecord::default()
        }
    }
}
