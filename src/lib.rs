//! kraftd: a KRaft controller for Apache Kafka clusters, as a pure deterministic core inside a
//! thin shell.
//!
//! ```text
//!  types  <-  records  <-  image  <-  controller  <-+
//!    ^          ^                                   |
//!    +-------- raft  <------------------------------+-- node  <--  shell: server, storage,
//!                                                      ^           observe, cli; runtime ties
//!                                                      +---------  simulation
//! ```
//!
//! An arrow points at what a room may import (and what that imports). The pure rooms (`types`,
//! `records`, `raft`, `image`, `controller`, `node`) have no IO, clock, random source, threads or
//! async: time and seeds come in as arguments. The `tidy` test holds the arrows.
//!
//! Three arrows are not in the picture. [`storage`] imports `records` and the plain types of
//! `raft`, because what raft wants on disk (election state, control records) is what storage
//! writes; its interface, the plain commands and completions of `storage::mod`, is all of it that
//! `node` sees, and its files are for `runtime` and `cli` alone. [`config`] imports only `types`,
//! and `server` the plain settings of `config`. [`observe`] shows an `image` to people and asks
//! `controller` which configuration keys there are. The room `sim` is not in this library: the
//! simulation is the test binary `protocol-tests/sim`, which drives the same core from outside.
//!
//! Only `server` and `controller` know `kafka_protocol`. Requests that it does not know
//! (ApiVersions v5, BrokerHeartbeat v2) are declared in `records::rpc` with the macro of the
//! metadata records.
//!
//! # Reading order
//!
//! 1. [`raft`]: the contract of the consensus core, its roles and laws.
//! 2. [`node`]: how a request becomes records, a fork and a reply; how a commit lets it go.
//! 3. [`image`], its `replay`: the one place that changes the metadata, one arm a record.
//! 4. One file of [`controller`], `create_topics` or `heartbeat`: a rule.
//! 5. [`storage`]: the ordering contract of the disk; its `recovery` tells a torn tail from rot.
//! 6. [`server`]: from bytes to requests, `shape` before everything; then [`runtime`], which ties
//!    all together.
//!
//! # Not here yet
//!
//! HTTP and metrics (in `observe`), TLS and SASL:
//! the rooms and files for them come with the work. README says what that means for operators.

// A stdout that is closed or full is an answer, not a panic: `cli::report` prints.
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

pub mod cli;
pub mod config;
pub mod controller;
pub mod image;
pub mod node;
pub mod observe;
pub mod raft;
pub mod records;
pub mod runtime;
pub mod server;
pub mod storage;
pub mod types;
