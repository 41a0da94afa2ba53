//! `format`, `info`, `random-uuid`, `version-mapping` and `feature-dependencies`: the commands of
//! `kafka-storage.sh`, with its options, sentences, exit codes and files.

mod features;
mod format;
mod info;
mod scram;
mod voters;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::report;
use crate::config::{self, Config, Purpose};
use crate::storage::directory::random_id;
use crate::types::ids::base64url;

pub(super) use features::{feature_dependencies, version_mapping};
pub(super) use format::format;
pub(super) use info::info;

/// Arguments of `format`.
#[derive(Debug, Args)]
pub(super) struct FormatArgs {
    #[command(flatten)]
    config: ConfigArg,
    /// The cluster's id.
    #[arg(short = 't', long, value_name = "CLUSTER_ID")]
    cluster_id: String,
    /// A SCRAM credential for the bootstrap records, such as
    /// SCRAM-SHA-256=[name=alice,password=alice-secret]. May be repeated.
    #[arg(short = 'S', long, value_name = "CREDENTIAL")]
    add_scram: Vec<String>,
    /// Leave directories that are formatted already as they are.
    #[arg(short = 'g', long)]
    ignore_formatted: bool,
    /// The release whose feature levels the cluster starts with: 3.3-IV3 to 4.4-IV2.
    #[arg(short = 'r', long, value_name = "VERSION")]
    release_version: Option<String>,
    /// The level of one feature, as FEATURE=LEVEL. May be repeated.
    #[arg(short = 'f', long, value_name = "FEATURE=LEVEL")]
    feature: Vec<String>,
    #[command(flatten)]
    quorum: QuorumArgs,
}

/// Who the voters of a dynamic quorum are: at most one of these.
#[derive(Debug, Args)]
#[group(multiple = false)]
struct QuorumArgs {
    /// This controller is the only voter.
    #[arg(short = 's', long)]
    standalone: bool,
    /// This node joins a quorum later.
    #[arg(short = 'N', long)]
    no_initial_controllers: bool,
    /// All voters, as ID@HOST:PORT:DIRECTORY_ID separated by commas.
    #[arg(short = 'I', long, value_name = "VOTERS")]
    initial_controllers: Option<String>,
}

/// The server.properties file.
#[derive(Debug, Args)]
pub(super) struct ConfigArg {
    /// The server.properties file.
    #[arg(short = 'c', long = "config", value_name = "FILE")]
    file: PathBuf,
}

/// Arguments of `version-mapping`.
#[derive(Debug, Args)]
pub(super) struct MappingArgs {
    /// The release; the newest stable one by default.
    #[arg(short = 'r', long, value_name = "VERSION")]
    release_version: Option<String>,
}

/// Arguments of `feature-dependencies`.
#[derive(Debug, Args)]
pub(super) struct DependenciesArgs {
    /// A feature and its level, as FEATURE=LEVEL. May be repeated.
    #[arg(short = 'f', long, value_name = "FEATURE=LEVEL", required = true)]
    feature: Vec<String>,
}

impl ConfigArg {
    /// The configuration, as far as directories and the quorum are concerned.
    fn load(&self) -> Result<Config, String> {
        config::load_for(Purpose::Storage, &self.file, &[])
            .map(|loaded| loaded.config)
            .map_err(|findings| {
                let refusals = findings.iter().filter(|finding| finding.refuses());
                refusals
                    .map(ToString::to_string)
                    .collect::<Vec<_>>()
                    .join("\n")
            })
    }
}

/// Prints a new id.
pub(super) fn random_uuid() -> ExitCode {
    ended(&format!("{}\n", base64url(random_id())), Ok(()))
}

/// The end of a command: everything is done, be it only in part, before `text` is printed. A
/// stdout that takes nothing leaves nothing half done. A refusal is its sentence on stderr, as it
/// is.
fn ended(text: &str, result: Result<(), String>) -> ExitCode {
    let code = match &result {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    };
    let code = report::print_found(code, text.as_bytes());
    if let Err(sentence) = result {
        report::complain(&sentence);
    }
    code
}
