//! kraftd: a KRaft controller for Apache Kafka clusters, as a pure deterministic core inside a
//! thin shell.
//!
//! ```text
//!  types  <-  records  <-  image  <-  controller  <-+
//!    ^          ^                                   |
//!    +-------- raft  <------------------------------+-- node  <--  shell: server, storage, observe, cli
//!                                                      ^           tied together by runtime
//!                                                      +---------  sim
//! ```
//!
//! An arrow points at what a room may import (and what that imports). The pure rooms (`types`,
//! `records`, `raft`, `image`, `controller`, `node`) have no IO, clock, random source, threads or
//! async: time and seeds come in as arguments. `storage`'s interface (plain command and completion
//! types in `storage::mod`) is importable by `node`; its file implementation only by `runtime` and
//! `cli`. The `tidy` test holds these arrows.
//!
//! Reading order: [`raft`], [`node`], [`image`] (its `replay`), one file of [`controller`].

pub mod cli;
pub mod config;
pub mod controller;
pub mod image;
pub mod node;
pub mod raft;
pub mod records;
pub mod runtime;
pub mod server;
pub mod storage;
pub mod types;
