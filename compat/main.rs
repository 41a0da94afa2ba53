//! kraftd beside real Kafka processes. Each scenario starts what it needs and stops it.
//!
//! `COMPAT_CONTROLLER=java` puts Java's controller in kraftd's place: so the scenarios themselves
//! are proved.

mod allow;
mod answers;
mod bad_input;
mod bad_starts;
mod differential;
mod directory;
mod dump_log;
mod failures;
mod harness;
mod ladder;
mod levels;
mod life;
mod live;
mod loggers;
mod normal;
mod odd_logs;
mod quorum;
mod quorum_tools;
mod shown;
mod snapshots;
mod state;
mod tools;
mod transcripts;
