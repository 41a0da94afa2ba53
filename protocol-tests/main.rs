//! Everything that is tested through the library's public face, in one binary; and the tree itself.

#![allow(clippy::unwrap_used, reason = "a test's helpers unwrap as tests do")]

mod answers;
mod changes;
mod codec;
mod commands;
mod fixture;
mod fsck;
mod image;
mod lives;
mod memory;
mod process;
mod records;
mod scenario_answers;
mod scenario_voters;
mod scenarios;
mod starts;
mod stderr;
mod storage_tool;
mod tidy;
mod trace;
mod traffic;
mod unreadable;
