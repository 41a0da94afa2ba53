//! `kraftd info`: what the log directories of a file are.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::{ConfigArg, ended, report};
use crate::config::Config;
use crate::storage::meta_properties::{META_PROPERTIES_FILE, MetaProperties};
use crate::types::ids::base64url;

/// Prints the directories, what they are formatted for, and what is wrong with them.
pub(crate) fn info(args: &ConfigArg) -> ExitCode {
    let config = match args.load() {
        Ok(config) => config,
        Err(sentence) => return ended("", Err(sentence)),
    };
    let found = Found::of(&config);
    let mut text = list("Found log director", ["y:", "ies:"], &found.directories);
    if let Some(meta) = &found.first {
        text += &format!("Found metadata: {}\n\n", describe(meta));
    }
    text += &list("Found problem", [":", "s:"], &found.problems);
    let code = match found.problems.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    };
    report::print_found(code, text.as_bytes())
}

/// All log directories of a file, sorted.
pub(super) fn directories(config: &Config) -> BTreeSet<PathBuf> {
    let dirs = config.log_dirs.iter().chain([&config.metadata_log_dir]);
    dirs.cloned().collect()
}

#[derive(Default)]
struct Found {
    directories: Vec<String>,
    first: Option<MetaProperties>,
    problems: Vec<String>,
}

impl Found {
    fn of(config: &Config) -> Self {
        let mut found = Self::default();
        for dir in directories(config) {
            found.look_at(&dir);
        }
        if found.first.as_ref().is_some_and(|meta| meta.version == 0) {
            found.problems.push(
                "The kafka configuration file appears to be for a cluster in KRaft mode, but the \
                 directories are formatted for legacy mode."
                    .to_owned(),
            );
        }
        found
    }

    fn look_at(&mut self, dir: &Path) {
        let name = dir.display();
        if !dir.exists() {
            return self.problems.push(format!("{name} does not exist"));
        }
        if !dir.is_dir() {
            return self.problems.push(format!("{name} is not a directory"));
        }
        self.directories.push(name.to_string());
        let path = dir.join(META_PROPERTIES_FILE);
        match (MetaProperties::read(&path), &self.first) {
            (Err(fault), _) => {
                self.problems
                    .push(format!("Error loading {}: {fault}", path.display()));
            }
            (Ok(None), _) => self.problems.push(format!("{name} is not formatted.")),
            (Ok(Some(meta)), None) => self.first = Some(meta),
            (Ok(Some(meta)), Some(first)) => {
                if meta.cluster_id != first.cluster_id {
                    self.problems
                        .push("Mismatched cluster IDs between storage directories.".to_owned());
                } else if meta.node_id != first.node_id {
                    self.problems
                        .push("Mismatched node IDs between storage directories.".to_owned());
                }
            }
        }
    }
}

fn list(title: &str, [one, many]: [&str; 2], lines: &[String]) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let end = if lines.len() == 1 { one } else { many };
    format!("{title}{end}\n  {}\n\n", lines.join("\n  "))
}

fn describe(meta: &MetaProperties) -> String {
    let node = if meta.version == 0 {
        "broker.id"
    } else {
        "node.id"
    };
    let mut pairs = Vec::new();
    pairs.extend(
        meta.cluster_id
            .as_ref()
            .map(|id| format!("cluster.id={id}")),
    );
    pairs.extend(
        meta.directory_id
            .map(|id| format!("directory.id={}", base64url(id))),
    );
    pairs.extend(meta.node_id.map(|id| format!("{node}={id}")));
    pairs.push(format!("version={}", meta.version));
    pairs.sort_unstable();
    format!("{{{}}}", pairs.join(", "))
}
