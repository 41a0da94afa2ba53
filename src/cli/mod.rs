//! The command line. Texts go to stdout, logs and errors to stderr.
//!
//! Exit codes: 0 done (also a clean stop by SIGTERM or SIGINT), 1 refused or failed, with a sentence
//! on stderr that says what, where and what to do, 2 wrong usage or findings of `check-config`.

pub mod check_config;
mod logging;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

/// A KRaft controller for Apache Kafka clusters.
#[derive(Debug, Parser)]
#[command(name = "kraftd", version, args_conflicts_with_subcommands = true)]
#[command(subcommand_negates_reqs = true, disable_help_subcommand = false)]
struct Cli {
    #[command(flatten)]
    start: StartArgs,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the controller role of a server.properties file.
    Start(StartArgs),
}

/// Arguments of `kraftd FILE` and `kraftd start FILE`.
#[derive(Debug, Args)]
struct StartArgs {
    /// The server.properties file.
    #[arg(value_name = "FILE", required = true)]
    file: Option<PathBuf>,
    /// A key that replaces the one of the file; may be repeated.
    #[arg(long = "override", value_name = "KEY=VALUE")]
    overrides: Vec<String>,
    #[command(flatten)]
    logs: LogArgs,
}

/// How to log.
#[derive(Debug, Args)]
struct LogArgs {
    /// The least level that is logged: error, warn, info, debug or trace. RUST_LOG gives the same
    /// and finer filters.
    #[arg(long, value_name = "LEVEL")]
    log_level: Option<String>,
    /// text or json; KRAFTD_LOG_FORMAT gives the same.
    #[arg(long, value_name = "FORMAT")]
    log_format: Option<String>,
}

/// Runs the command line of this process.
#[must_use]
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    match cli.command {
        None => ExitCode::FAILURE,
        Some(Command::Start(_args)) => ExitCode::FAILURE,
    }
}
