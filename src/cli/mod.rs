//! The command line. Texts go to stdout, logs and errors to stderr.
//!
//! Exit codes: 0 done (also a clean stop by SIGTERM, SIGINT or SIGHUP), 1 refused or failed,
//! with a sentence on stderr that says what, where and what to do, 2 wrong usage or findings of
//! `check-config`, `dump --verify` and `fsck`.

pub mod check_config;
mod diff;
mod dump;
pub mod fsck;
mod help;
mod logging;
mod past;
mod report;
mod start;
mod state;
mod storage_tool;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, CommandFactory as _, Parser, Subcommand};

use crate::observe::tree::distance;
use storage_tool::{ConfigArg, DependenciesArgs, FormatArgs, MappingArgs};

/// A KRaft controller for Apache Kafka clusters.
#[derive(Debug, Parser)]
#[command(name = "kraftd", version, args_conflicts_with_subcommands = true)]
#[command(subcommand_negates_reqs = true, disable_help_subcommand = true)]
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
    /// Do every start-up check of a server.properties file at once.
    CheckConfig(CheckArgs),
    /// Print segments and checkpoints of the metadata log, or check them.
    Dump(dump::DumpArgs),
    /// Show the metadata in a directory or file, now or at any point of the past that it covers.
    State(state::StateArgs),
    /// Tell what differs between the metadata of two directories or files, or of two points of one.
    Diff(diff::DiffArgs),
    /// Verify a metadata directory, in use or not, and change nothing.
    Fsck(FsckArgs),
    /// Format the log directories of this node.
    Format(FormatArgs),
    /// Tell what the log directories of this node are.
    Info(ConfigArg),
    /// Print a random id.
    RandomUuid,
    /// Print the feature levels that a release starts a cluster with.
    VersionMapping(MappingArgs),
    /// Print what feature levels need.
    FeatureDependencies(DependenciesArgs),
    /// Print this, the help of a command, or (`help json`) what the keys of every --json mean.
    Help(help::HelpArgs),
}

/// An argument of `--override`. Java takes a key alone for one that is set to nothing, which nobody
/// means.
///
/// # Errors
/// A sentence about an argument without a key or without `=`.
fn key_and_value(argument: &str) -> Result<String, String> {
    match argument.split_once('=') {
        Some((key, _)) if !key.trim().is_empty() => Ok(argument.to_owned()),
        _ => Err("write a key, = and its value, as in node.id=1".to_owned()),
    }
}

/// Arguments of `kraftd FILE` and `kraftd start FILE`.
#[derive(Debug, Args)]
struct StartArgs {
    /// The server.properties file.
    #[arg(value_name = "FILE", required = true)]
    file: Option<PathBuf>,
    /// A key that replaces the one of the file; may be repeated.
    #[arg(long = "override", value_name = "KEY=VALUE", value_parser = key_and_value)]
    overrides: Vec<String>,
    /// Start although quorum-state is gone: no election took place since it was lost.
    #[arg(long)]
    accept_lost_vote: bool,
    #[command(flatten)]
    logs: LogArgs,
}

/// Arguments of `check-config`.
#[derive(Debug, Args)]
struct CheckArgs {
    /// The server.properties file.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// A key that replaces the one of the file; may be repeated.
    #[arg(long = "override", value_name = "KEY=VALUE", value_parser = key_and_value)]
    overrides: Vec<String>,
    /// Warnings count as findings.
    #[arg(long)]
    strict: bool,
    /// One JSON document.
    #[arg(long)]
    json: bool,
}

/// Arguments of `fsck`.
#[derive(Debug, Args)]
struct FsckArgs {
    /// A log directory, or the directory __cluster_metadata-0 in it.
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// One JSON document.
    #[arg(long)]
    json: bool,
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
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    match cli.command {
        None => start::run(&cli.start),
        Some(Command::Start(args)) => start::run(&args),
        Some(Command::CheckConfig(args)) => check(&args),
        Some(Command::Dump(args)) => dump::run(&args),
        Some(Command::State(args)) => state::run(&args),
        Some(Command::Diff(args)) => diff::run(&args),
        Some(Command::Fsck(args)) => verify(&args),
        Some(Command::Format(args)) => storage_tool::format(&args),
        Some(Command::Info(args)) => storage_tool::info(&args),
        Some(Command::RandomUuid) => storage_tool::random_uuid(),
        Some(Command::VersionMapping(args)) => storage_tool::version_mapping(&args),
        Some(Command::FeatureDependencies(args)) => storage_tool::feature_dependencies(&args),
        Some(Command::Help(args)) => help::run(&args),
    }
}

fn check(args: &CheckArgs) -> ExitCode {
    let CheckArgs {
        file,
        overrides,
        strict,
        json,
    } = args;
    let mut text = Vec::new();
    match check_config::check_config(file, overrides, *strict, *json, &mut text) {
        Ok(code) => report::print_found(ExitCode::from(code), &text),
        Err(error) => refuse(&format!("the findings cannot be printed: {error}")),
    }
}

fn verify(args: &FsckArgs) -> ExitCode {
    let mut bar = None;
    let mut progress = |total, done| {
        let bar = bar.get_or_insert_with(|| report::Progress::of_bytes(total));
        bar.at(done);
    };
    let mut text = Vec::new();
    let code = match fsck::fsck(&args.dir, args.json, &mut progress, &mut text) {
        Ok(code) => code,
        Err(sentence) => return refuse(&sentence),
    };
    drop(bar);
    report::print_found(ExitCode::from(code), &text)
}

/// Says on stderr why nothing was done.
fn refuse(reason: &str) -> ExitCode {
    report::note(reason);
    ExitCode::FAILURE
}

/// Commands of `kafka-storage.sh`, whose exit code for wrong usage is 1.
const STORAGE_COMMANDS: [&str; 5] = [
    "format",
    "info",
    "random-uuid",
    "version-mapping",
    "feature-dependencies",
];

/// What is said of a word that is no command and no file: the command that it was meant for, or
/// that there is none.
fn no_command(word: &str) -> Option<String> {
    let all = Cli::command();
    let names = all
        .get_subcommands()
        .map(|command| command.get_name().to_owned());
    let names: Vec<String> = names.collect();
    let is_file = word.contains(['/', '.']) || std::path::Path::new(word).exists();
    if word.starts_with('-') || is_file || names.iter().any(|name| name == word) {
        return None;
    }
    let near = names.into_iter().filter_map(|name| {
        let is_other = !name.starts_with(word);
        Some((distance(&name, word, 2)?, is_other, name))
    });
    Some(match near.min() {
        Some((_, _, name)) => format!("did you mean the command '{name}'?"),
        None => {
            let word = crate::types::OneLine(word);
            format!("'{word}' is neither a command nor a file; `kraftd help` lists the commands")
        }
    })
}

/// Prints help, or what is wrong with the command line.
fn usage(error: &clap::Error) -> ExitCode {
    // A closed stdout or stderr leaves nobody to tell.
    let _ = error.print();
    let first = std::env::args().nth(1);
    let said = first.as_deref().filter(|_| error.use_stderr());
    if let Some(sentence) = said.and_then(no_command) {
        report::note(&sentence);
    }
    let storage = std::env::args()
        .nth(1)
        .is_some_and(|it| STORAGE_COMMANDS.contains(&&*it));
    match (error.use_stderr(), storage) {
        (false, _) => ExitCode::SUCCESS,
        (true, true) => ExitCode::FAILURE,
        (true, false) => ExitCode::from(2),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Exit code 2 is clap's for every argument that its parser refuses.
    #[test]
    fn an_override_without_a_key_or_a_value_is_wrong_usage() {
        let parsed = |argument: &str| {
            let words = ["kraftd", "server.properties", "--override", argument];
            Cli::try_parse_from(words).map(|cli| cli.start.overrides)
        };
        for wrong in ["foo", "=1", ""] {
            let error = parsed(wrong).unwrap_err();
            assert_eq!(error.exit_code(), 2);
            assert!(error.to_string().contains("as in node.id=1"), "{error}");
        }
        for right in ["a=1", "a=", "a=b=c"] {
            assert_eq!(parsed(right).unwrap(), [right]);
        }
    }
}
