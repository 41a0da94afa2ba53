//! The configuration: a `server.properties` file and overrides in, a [`Config`] that is valid by
//! construction out, or every [`Finding`] at once.
//!
//! A key that asks for something kraftd does not do refuses to start: ignoring it would change what
//! the operator asked for without a word. Keys that only a broker reads, and keys nobody knows, are
//! warned of once and never fatal, because one file is often shared by both roles.

mod finding;
mod model;

pub use finding::{Finding, Severity};
pub use model::{
    Config, Controller, Endpoint, HostPort, Listener, MetadataLog, Quorum, Role, Secret,
    SecurityProtocol, Snapshots, Sockets,
};
