//! Starts and stops the processes of a scenario, each in a temporary directory, and waits for
//! what they do. Nothing here waits for a fixed time: each wait has a condition and a limit.

mod ask;
mod cluster;
mod driver;
mod java;
mod network;
mod process;
mod quorum;
mod wait;

pub(crate) use cluster::{Broker, CLUSTER_ID, Controller, Kind, Release, Setup, kraftd};
pub(crate) use driver::{Driver, ToolOutput};
pub(crate) use java::{Java, run_java};
pub(crate) use process::{Ended, Server, now, run};
pub(crate) use quorum::{Quorum, Voters};
pub(crate) use wait::{free_port, until};
