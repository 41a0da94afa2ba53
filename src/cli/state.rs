//! `kraftd state SOURCE [SELECTOR]`: the image at the end of a metadata directory, of a checkpoint
//! or of a segment, or at any point of the past that they cover.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::past::{self, At};
use super::report;
use crate::observe::{View, json, text};

/// Arguments of `state`.
#[derive(Debug, Args)]
pub(super) struct StateArgs {
    /// A log directory, the directory __cluster_metadata-0, a checkpoint or a segment.
    #[arg(value_name = "SOURCE")]
    source: PathBuf,
    /// What of the image, a path as in kafka-metadata-shell: topics/byName/foo/0, brokers/1,
    /// configs/TOPIC:foo, acls, features. A directory is listed, a leaf printed.
    #[arg(value_name = "SELECTOR", default_value = "")]
    selector: String,
    /// After this offset (inclusive), or after the last batch at or before this time: ISO-8601 or
    /// milliseconds since 1970 (a number of 13 digits or more). Without it, after everything in
    /// SOURCE, of which the last records may not be committed.
    #[arg(long, value_name = "OFFSET|TIME", value_parser = past::parse_at)]
    #[arg(allow_hyphen_values = true)]
    at: Option<At>,
    /// One JSON document, with everything below SELECTOR.
    #[arg(long)]
    json: bool,
    /// Show passwords, SCRAM credentials and delegation tokens.
    #[arg(long)]
    show_secrets: bool,
}

/// Prints the state.
pub(super) fn run(args: &StateArgs) -> ExitCode {
    let past = match past::load(&args.source, args.at.unwrap_or(At::NEWEST)) {
        Ok(past) => past,
        Err(sentence) => return super::refuse(&sentence),
    };
    for note in &past.notes {
        report::note(note);
    }
    let view = View {
        image: &past.image,
        provenance: past.provenance,
        show_secrets: args.show_secrets,
    };
    let (_, node) = match view.find(&args.selector) {
        Ok(found) => found,
        Err(unknown) => return super::refuse(&format!("{unknown}.")),
    };
    let printed = report::print(|out| {
        if !args.json {
            return text::write(view, node, out);
        }
        json::write(view, node, out)?;
        writeln!(out)
    });
    past::exit_code(printed, &[&past])
}
