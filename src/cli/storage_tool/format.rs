//! `kraftd format`: new log directories for a node.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use super::features::{Levels, QuorumKind};
use super::voters::{self, Voter};
use super::{FormatArgs, ended, info, report, scram};
use crate::config::{Config, Role};
use crate::records::{Record, VersionedRecord};
use crate::storage::directory::{PARTITION_DIR, random_id};
use crate::storage::meta_properties::{META_PROPERTIES_FILE, MetaProperties};
use crate::storage::presence;
use crate::storage::snapshot::SnapshotWriter;
use crate::types::ids::{base64url, is_reserved};
use crate::types::{NodeId, OffsetAndEpoch, Timestamp, Uuid};

/// Formats what is not formatted yet.
pub(crate) fn format(args: &FormatArgs) -> ExitCode {
    let mut told = String::new();
    let config = args.config.load();
    let result = config.and_then(|config| run(args, &config, &mut told));
    ended(&told, result)
}

/// What is written, decided before anything is.
struct Plan {
    levels: Levels,
    records: Vec<VersionedRecord>,
    voters: Option<BTreeMap<NodeId, Voter>>,
    /// The id of the metadata log directory.
    metadata_directory: Uuid,
}

/// What is done is told in lines of `told`.
fn run(args: &FormatArgs, config: &Config, told: &mut String) -> Result<(), String> {
    let plan = plan(args, config)?;
    let Some(todo) = unformatted(args, config, told)? else {
        *told += "All of the log directories are already formatted.\n";
        return Ok(());
    };
    *told += &format!("Bootstrap metadata: {}\n", describe(&plan));
    for dir in todo {
        *told += &formatting(&dir, config, &plan);
        format_one(&dir, args, config, &plan)?;
    }
    Ok(())
}

fn plan(args: &FormatArgs, config: &Config) -> Result<Plan, String> {
    let quorum = &args.quorum;
    let controller = config.roles.contains(&Role::Controller);
    let static_voters = !config.quorum.voters.is_empty();
    let names_voters = quorum.standalone || quorum.initial_controllers.is_some();
    let dynamic_flag = names_voters || quorum.no_initial_controllers;
    if quorum.standalone && !controller {
        return Err("You can only use --standalone on a controller.".to_owned());
    }
    if controller && static_voters && names_voters {
        return Err(
            "You cannot specify controller.quorum.voters and format the node with \
                    --initial-controllers or --standalone. If you want to use dynamic quorum, \
                    please remove controller.quorum.voters and specify \
                    controller.quorum.bootstrap.servers instead."
                .to_owned(),
        );
    }
    if controller && !static_voters && !dynamic_flag {
        return Err(
            "Because controller.quorum.voters is not set on this controller, you must \
                    specify one of the following: --standalone, --initial-controllers, or \
                    --no-initial-controllers."
                .to_owned(),
        );
    }
    let levels = Levels::of(
        args.release_version.as_deref(),
        &args.feature,
        config.controller.unstable_features,
        QuorumKind {
            static_voters,
            dynamic_flag,
        },
    )?;
    let mut records = levels.records();
    for credential in &args.add_scram {
        records.push(scram::record(credential)?);
    }
    if !args.add_scram.is_empty() && !levels.metadata_version.supports_scram() {
        return Err("SCRAM is only supported in metadata.version 3.5-IV2 or later.".to_owned());
    }
    let mut plan = Plan {
        levels,
        records,
        voters: None,
        metadata_directory: random_id(),
    };
    if quorum.standalone {
        let voter = voters::standalone(config, plan.metadata_directory)?;
        plan.voters = Some(BTreeMap::from([(config.node_id, voter)]));
    } else if let Some(text) = &quorum.initial_controllers {
        let voters = voters::parse(text)?;
        if let Some(own) = voters.get(&config.node_id) {
            plan.metadata_directory = own.directory;
        }
        plan.voters = Some(voters);
    }
    Ok(plan)
}

/// The directories to format; `None` when there is none.
fn unformatted(
    args: &FormatArgs,
    config: &Config,
    told: &mut String,
) -> Result<Option<Vec<PathBuf>>, String> {
    let mut todo = Vec::new();
    let mut formatted = 0;
    for dir in info::directories(config) {
        let path = dir.join(META_PROPERTIES_FILE);
        match MetaProperties::read(&path) {
            Ok(None) if dir.exists() && !dir.is_dir() => {
                *told += &ignored(&dir);
            }
            Ok(None) => {
                if dir == config.metadata_log_dir {
                    presence::check_unformatted(&dir, Some(&args.cluster_id))
                        .map_err(|fault| fault.sentence)?;
                }
                todo.push(dir);
            }
            Ok(Some(_)) if !args.ignore_formatted => {
                return Err(format!(
                    "Log directory {} is already formatted. Use --ignore-formatted to ignore this \
                     directory and format the others.",
                    dir.display()
                ));
            }
            Ok(Some(meta)) => {
                check_identity(&dir, &path, &meta, args, config)?;
                formatted += 1;
            }
            Err(fault) => {
                *told += &ignored(&dir);
                report::complain(&fault.sentence);
            }
        }
    }
    match (todo.is_empty(), formatted) {
        (false, _) => Ok(Some(todo)),
        (true, 0) => Err("No available log directories to format.".to_owned()),
        (true, _) => Ok(None),
    }
}

fn ignored(dir: &Path) -> String {
    format!(
        "I/O error trying to read log directory {}. Ignoring...\n",
        dir.display()
    )
}

/// A directory that is left as it is must at least belong to the same node.
fn check_identity(
    dir: &Path,
    path: &Path,
    meta: &MetaProperties,
    args: &FormatArgs,
    config: &Config,
) -> Result<(), String> {
    if let Some(found) = meta
        .cluster_id
        .as_ref()
        .filter(|id| **id != args.cluster_id)
    {
        return Err(format!(
            "Invalid cluster.id in: {}. Expected {}, but read {found}",
            path.display(),
            args.cluster_id
        ));
    }
    if let Some(found) = meta.node_id.filter(|id| *id != config.node_id) {
        return Err(format!(
            "Stored node id {found} doesn't match previous node id {} in {}. If you moved your \
             data, make sure your configured node id matches. If you intend to create a new node, \
             you should remove all data in your data directories.",
            config.node_id,
            path.display()
        ));
    }
    if let Some(found) = meta.directory_id.filter(|id| is_reserved(*id)) {
        return Err(format!(
            "Invalid reserved directory ID {} found in {}",
            base64url(found),
            dir.display()
        ));
    }
    Ok(())
}

/// The line about the directory that is formatted next.
fn formatting(dir: &Path, config: &Config, plan: &Plan) -> String {
    let metadata = *dir == config.metadata_log_dir;
    let own_voter = plan
        .voters
        .as_ref()
        .map(|voters| voters.contains_key(&config.node_id));
    let kind = match own_voter {
        _ if !metadata => "data directory",
        Some(true) => "dynamic metadata voter directory",
        Some(false) => "dynamic metadata directory",
        None => "metadata directory",
    };
    let level = plan.levels.metadata_version.name();
    format!(
        "Formatting {kind} {} with metadata.version {level}.\n",
        dir.display()
    )
}

fn format_one(dir: &Path, args: &FormatArgs, config: &Config, plan: &Plan) -> Result<(), String> {
    let metadata = *dir == config.metadata_log_dir;
    std::fs::create_dir_all(dir)
        .map_err(|error| format!("Unable to create {}: {error}", dir.display()))?;
    if metadata && config.roles.contains(&Role::Controller) {
        write_bootstrap(dir, config, plan)?;
    }
    let id = if metadata {
        plan.metadata_directory
    } else {
        random_id()
    };
    // Last, so that a directory with this file is whole.
    MetaProperties::new(args.cluster_id.clone(), config.node_id, id)
        .write(&dir.join(META_PROPERTIES_FILE))
        .map_err(|fault| fault.sentence)
}

/// The snapshot 0-0: the voters of a dynamic quorum and what the first controller writes.
fn write_bootstrap(dir: &Path, config: &Config, plan: &Plan) -> Result<(), String> {
    let partition = dir.join(PARTITION_DIR);
    std::fs::create_dir_all(&partition)
        .map_err(|error| format!("Unable to create {}: {error}", partition.display()))?;
    let listener = config
        .controller_listener_names
        .first()
        .map_or("", String::as_str);
    let control = match plan.levels.is_dynamic() {
        true => voters::control(plan.voters.as_ref(), listener),
        false => Vec::new(),
    };
    let now = now();
    let write = || {
        let id = OffsetAndEpoch::BOOTSTRAP;
        let mut writer = SnapshotWriter::create(&partition, id, now, now, &control)?;
        for record in &plan.records {
            writer.push(record)?;
        }
        writer.finish()
    };
    write().map(drop).map_err(|fault| fault.sentence)
}

#[expect(clippy::disallowed_methods, reason = "the command line is at the edge")]
fn now() -> Timestamp {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// The line that scripts of the reference's tool may look for.
fn describe(plan: &Plan) -> String {
    let records: Vec<String> = plan
        .records
        .iter()
        .map(|record| {
            format!(
                "ApiMessageAndVersion({} at version {})",
                describe_record(&record.record),
                record.version
            )
        })
        .collect();
    format!(
        "BootstrapMetadata(records=[{}], metadataVersionLevel={}, source=format command)",
        records.join(", "),
        plan.levels.metadata_version.level()
    )
}

fn describe_record(record: &Record) -> String {
    let signed = |bytes: &[u8]| {
        let numbers: Vec<String> = bytes
            .iter()
            .map(|byte| byte.cast_signed().to_string())
            .collect();
        format!("[{}]", numbers.join(", "))
    };
    match record {
        Record::FeatureLevel(record) => format!(
            "FeatureLevelRecord(name='{}', featureLevel={})",
            record.name, record.feature_level
        ),
        Record::UserScramCredential(record) => format!(
            "UserScramCredentialRecord(name='{}', mechanism={}, salt={}, storedKey={}, \
             serverKey={}, iterations={})",
            record.name,
            record.mechanism,
            signed(&record.salt),
            signed(&record.stored_key),
            signed(&record.server_key),
            record.iterations
        ),
        other => other.record_type().name.to_owned(),
    }
}
