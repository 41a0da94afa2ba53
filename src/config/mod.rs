//! The configuration: a `server.properties` file and overrides in, a [`Config`] that is valid by
//! construction out, or every [`Finding`] at once.
//!
//! A key that asks for something kraftd does not do refuses to start: ignoring it would change what
//! the operator asked for without a word. Keys that only a broker reads, and keys nobody knows, are
//! warned of once and never fatal, because one file is often shared by both roles.
//!
//! The way of a file: `properties` gives pairs, `pairs` merges the overrides, `providers`
//! replaces `${...}`, `values` parses each key by the table in [`keys`], `checks`, `limits` and
//! `sense` look at several keys together, `build` fills the [`Config`].

mod authorizer;
mod build;
mod checks;
mod finding;
pub mod keys;
mod limits;
mod listeners;
mod model;
mod pairs;
mod policies;
mod properties;
mod providers;
mod sense;
mod topic_defaults;
mod value;
mod values;
mod voters;

use std::path::Path;

pub use finding::{Finding, Severity};
pub use model::{
    Authorizer, Config, Controller, Endpoint, HostPort, Listener, MetadataLog, Quorum, Role,
    Secret, SecurityProtocol, Snapshots, Sockets,
};

pub(crate) use limits::overrides as per_ip_overrides;
pub(crate) use listeners::preferred;
pub(crate) use sense::shuts_out;

use crate::types::quote;
use properties::Charset;
use providers::Environment;

/// What a configuration is read for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To run the controller: everything that kraftd does not do refuses.
    Start,
    /// To format or look at directories: broker files and secure listeners are fine, so that
    /// [`Severity::Unsupported`] is only a warning.
    Storage,
}

/// A configuration without a refusing finding.
#[derive(Debug)]
pub struct Loaded {
    /// The configuration.
    pub config: Config,
    /// What is worth a warning, in the order of the checks.
    pub warnings: Vec<Finding>,
}

/// Reads the file at `path` with `overrides` (each `key=value`) over it, to run a controller.
///
/// # Errors
///
/// All findings, warnings included, when at least one of them refuses.
pub fn load(path: &Path, overrides: &[String]) -> Result<Loaded, Vec<Finding>> {
    load_for(Purpose::Start, path, overrides)
}

/// As [`load`], for a purpose.
///
/// # Errors
///
/// All findings, warnings included, when at least one of them refuses.
pub fn load_for(
    purpose: Purpose,
    path: &Path,
    overrides: &[String],
) -> Result<Loaded, Vec<Finding>> {
    let refuse = |rule: String| {
        vec![Finding {
            severity: Severity::Error,
            key: path.display().to_string(),
            value: None,
            rule,
            fix: "name a readable properties file".to_owned(),
        }]
    };
    let bytes = properties::read(path)
        .map_err(|error| refuse(format!("the configuration cannot be read: {error}")))?;
    let file = properties::parse(&bytes, Charset::Latin1)
        .map_err(|malformed| refuse(malformed.to_string()))?;
    let environment = |name: &str| std::env::var(name).ok();
    assemble(purpose, file, overrides, &environment)
}

/// Everything behind the file's bytes.
fn assemble(
    purpose: Purpose,
    file: Vec<(String, String)>,
    overrides: &[String],
    environment: Environment<'_>,
) -> Result<Loaded, Vec<Finding>> {
    let (mut pairs, twice) = pairs::merge(file, properties::overrides(overrides));
    let mut findings: Vec<_> = twice
        .into_iter()
        .map(|key| set_twice(&key, &pairs))
        .collect();
    findings.extend(providers::resolve(&mut pairs, environment));
    let values = values::Values::read(&pairs, &mut findings);
    values.review(&pairs, &mut findings);
    let facts = checks::Review::run(purpose, &values, &mut findings);
    if purpose == Purpose::Storage {
        for finding in &mut findings {
            if finding.severity == Severity::Unsupported {
                finding.severity = Severity::Warning;
            }
        }
    }
    if findings.iter().any(Finding::refuses) {
        return Err(findings);
    }
    Ok(Loaded {
        config: build::config(&values, facts),
        warnings: findings,
    })
}

fn set_twice(key: &str, pairs: &pairs::Pairs) -> Finding {
    let entry = pairs.get(key);
    Finding {
        severity: Severity::Warning,
        key: quote(key),
        value: entry.and_then(|entry| values::shown(key, &entry.written)),
        rule: "is set more than once, the last value counts".to_owned(),
        fix: "remove the other lines".to_owned(),
    }
}

#[cfg(test)]
mod long_tests;
#[cfg(test)]
mod tests;
