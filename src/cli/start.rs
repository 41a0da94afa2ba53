//! `kraftd FILE` and `kraftd start FILE`.

use std::process::ExitCode;

use super::{StartArgs, logging};
use crate::{config, runtime};

/// Runs the controller of a server.properties file. Every refusal is a line on stderr.
pub(super) fn run(args: &StartArgs) -> ExitCode {
    let code = run_logged(args);
    runtime::stderr::flush();
    code
}

fn run_logged(args: &StartArgs) -> ExitCode {
    let Some(file) = &args.file else {
        return super::refuse("no server.properties file is named");
    };
    let levels = match logging::start(&args.logs) {
        Ok(levels) => levels,
        Err(reason) => return super::refuse(&reason),
    };
    let loaded = match config::load(file, &args.overrides) {
        Ok(loaded) => loaded,
        Err(findings) => {
            for finding in findings.iter().filter(|finding| finding.refuses()) {
                super::refuse(&finding.to_string());
            }
            if let Some(sentence) = file.to_str().and_then(super::no_command) {
                super::report::note(&sentence);
            }
            return ExitCode::FAILURE;
        }
    };
    for warning in &loaded.warnings {
        tracing::warn!("{warning}");
    }
    match runtime::run(&loaded.config, file, args.accept_lost_vote, levels) {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => super::refuse(&reason),
    }
}
