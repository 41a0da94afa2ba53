//! The shapes of the requests that the listener serves, from the protocol's message definitions.
//! One static a request; a test decodes random bytes of each shape with `kafka-protocol`.

mod brokers;
mod raft;
mod topics;

pub(crate) use brokers::*;
pub(crate) use raft::*;
pub(crate) use topics::*;
