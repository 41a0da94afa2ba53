//! `kraftd diff`: what differs between two images, of two sources or of one at two points.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::past::{self, At, Past};
use super::report;
use crate::observe::changes::Changes;

/// Arguments of `diff`.
#[derive(Debug, Args)]
#[command(override_usage = "kraftd diff SOURCE SOURCE_B [OPTIONS]
       kraftd diff SOURCE --from OFFSET|TIME [--to OFFSET|TIME] [OPTIONS]")]
pub(super) struct DiffArgs {
    /// A log directory, the directory __cluster_metadata-0, a checkpoint or a segment.
    #[arg(value_name = "SOURCE")]
    source: PathBuf,
    /// The other one; without it, SOURCE is compared with itself at two points.
    #[arg(value_name = "SOURCE_B", required_unless_present = "from")]
    other: Option<PathBuf>,
    /// The first image is the one after this offset (inclusive) or time (ISO-8601 or milliseconds
    /// since 1970, a number of 13 digits or more).
    #[arg(long, value_name = "OFFSET|TIME", value_parser = past::parse_at)]
    #[arg(conflicts_with = "other", allow_hyphen_values = true)]
    from: Option<At>,
    /// The second image is the one after this offset (inclusive) or time. Without it, after
    /// everything.
    #[arg(long, value_name = "OFFSET|TIME", value_parser = past::parse_at)]
    #[arg(
        conflicts_with = "other",
        requires = "from",
        allow_hyphen_values = true
    )]
    to: Option<At>,
    /// One JSON document.
    #[arg(long)]
    json: bool,
    /// Show passwords, SCRAM credentials and delegation tokens.
    #[arg(long)]
    show_secrets: bool,
}

/// Prints the difference.
pub(super) fn run(args: &DiffArgs) -> ExitCode {
    let second = args.other.as_ref().unwrap_or(&args.source);
    let sides = past::load(&args.source, args.from.unwrap_or(At::NEWEST)).and_then(|before| {
        let after = past::load(second, args.to.unwrap_or(At::NEWEST))?;
        Ok((before, after))
    });
    let (before, after) = match sides {
        Ok(sides) => sides,
        Err(sentence) => return super::refuse(&sentence),
    };
    tell(&before, &after);
    let changes = Changes {
        before: (&before.image, before.provenance),
        after: (&after.image, after.provenance),
        show_secrets: args.show_secrets,
    };
    let printed = report::print(|out| match args.json {
        true => changes.write_json(out),
        false => changes.write_text(out),
    });
    past::exit_code(printed, &[&before, &after])
}

/// What is worth knowing of both is said once.
fn tell(before: &Past, after: &Past) {
    if let (Some(one), Some(other)) = (&before.cluster, &after.cluster)
        && one != other
    {
        report::note(&format!(
            "these are two clusters: the first is of {one}, the second of {other}"
        ));
    }
    let mut told: Vec<&String> = Vec::new();
    for note in before.notes.iter().chain(&after.notes) {
        if !told.contains(&note) {
            report::note(note);
            told.push(note);
        }
    }
}
