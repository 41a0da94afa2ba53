//! Delegation tokens (KIP-900), by token id.

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
