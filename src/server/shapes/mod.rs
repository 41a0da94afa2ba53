//! The shapes of the requests that the listener serves and of the answers that this node gets, from
//! the protocol's message definitions. One static a message; a test decodes random bytes of each
//! shape with `kafka-protocol`.

mod acls;
mod answers;
mod brokers;
mod quotas;
mod raft;
mod tokens;
mod topics;

pub(crate) use acls::*;
pub(crate) use answers::*;
pub(crate) use brokers::*;
pub(crate) use quotas::*;
pub(crate) use raft::*;
pub(crate) use tokens::*;
pub(crate) use topics::*;
