//! Opening a node's log directories at a start, in the order in which Java checks them.
//!
//! Everything is read and judged before anything is written, so a refusal leaves the directories as
//! they were: `meta.properties` of all of them, the bootstrap records, the locks, the log.

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};
use tracing::{info, warn};

use super::bootstrap::{self, Bootstrap};
use super::fault::{FaultKind, Result, StorageFault};
use super::files::Disk;
use super::lock::DirLock;
use super::meta_properties::{META_PROPERTIES_FILE, MetaProperties};
use super::recovery::{self, OpenOptions};
use super::{Completion, Recovered, presence};
use crate::types::ids::{base64url, is_reserved};
use crate::types::{NodeId, Uuid};

/// The directory of the metadata partition inside the metadata log directory.
pub const PARTITION_DIR: &str = "__cluster_metadata-0";

/// What the configuration says of directories.
#[derive(Clone, Debug)]
pub struct DirectoryOptions {
    /// `node.id`.
    pub node_id: NodeId,
    /// `log.dirs` in order.
    pub log_dirs: Vec<PathBuf>,
    /// `metadata.log.dir`, by default the first of them.
    pub metadata_log_dir: PathBuf,
    /// The configuration file, for the command that a refusal offers.
    pub config_file: Option<PathBuf>,
    /// `metadata.log.segment.bytes`.
    pub segment_bytes: u64,
    /// `metadata.log.segment.ms`.
    pub segment_ms: i64,
    /// See [`OpenOptions::snapshot_delete_delay_ms`].
    pub snapshot_delete_delay_ms: u64,
    /// See [`OpenOptions::accept_lost_vote`].
    pub accept_lost_vote: bool,
}

/// A node's directories, open.
#[derive(Debug)]
pub struct Opened {
    /// The cluster's id.
    pub cluster_id: String,
    /// The id of the metadata log directory: this node's in the voter set.
    pub directory_id: Uuid,
    /// Each usable log directory with its id.
    pub log_dirs: Vec<(PathBuf, Uuid)>,
    /// What `format` left for the first controller.
    pub bootstrap: Bootstrap,
    /// The disk.
    pub disk: Disk,
    /// What was on it.
    pub recovered: Recovered,
}

/// Checks, locks, recovers and opens everything.
///
/// # Errors
/// One sentence for the first thing that does not allow a start; nothing was written then, unless
/// it is the file system that refused a repair.
pub fn open(
    options: &DirectoryOptions,
    tell: impl FnMut(Completion) + Send + 'static,
) -> Result<Opened> {
    let mut checked = check(options)?;
    let bootstrap = bootstrap::load(&options.metadata_log_dir)?;
    let locks = checked
        .dirs
        .iter()
        .map(|(dir, _)| DirLock::acquire(dir))
        .collect::<Result<Vec<_>>>()?;
    let partition = OpenOptions {
        dir: options.metadata_log_dir.join(PARTITION_DIR),
        node_id: Some(options.node_id),
        cluster_id: checked.cluster_id.clone(),
        segment_bytes: options.segment_bytes,
        segment_ms: options.segment_ms,
        snapshot_delete_delay_ms: options.snapshot_delete_delay_ms,
        accept_lost_vote: options.accept_lost_vote,
    };
    let plan = recovery::examine(&partition)?;
    // Behind the rules that know more: a node with a quorum-state took part.
    presence::check_metadata(&options.metadata_log_dir)?;
    check_voter_directory(options, &checked, &plan)?;
    let log_dirs = give_ids(&mut checked.dirs)?;
    let directory_id = log_dirs
        .iter()
        .find(|(dir, _)| *dir == options.metadata_log_dir)
        .map_or(Uuid::nil(), |(_, id)| *id);
    let (disk, recovered) = Disk::start(&partition, plan, locks, tell)?;
    Ok(Opened {
        cluster_id: checked.cluster_id,
        directory_id,
        log_dirs,
        bootstrap,
        disk,
        recovered,
    })
}

/// The directories whose `meta.properties` agree.
#[derive(Debug)]
pub(crate) struct Checked {
    pub(crate) cluster_id: String,
    pub(crate) dirs: Vec<(PathBuf, MetaProperties)>,
}

/// All checks that need no lock; nothing is written.
///
/// # Errors
/// One sentence for the first check that fails.
pub(crate) fn check(options: &DirectoryOptions) -> Result<Checked> {
    let mut found = Vec::new();
    let mut unformatted = Vec::new();
    for dir in all_dirs(options) {
        let key = match options.log_dirs.iter().any(|own| own == dir) {
            true => "log.dirs (or log.dir)",
            false => "metadata.log.dir",
        };
        match MetaProperties::of_directory(dir, key) {
            Ok(Some(meta)) => found.push((dir.to_path_buf(), meta)),
            Ok(None) => unformatted.push(dir),
            Err(fault) if dir == options.metadata_log_dir => return Err(fault),
            // As Java: a node goes on without a log directory that it does not need.
            Err(fault) => warn!("{fault} Going on without this log directory"),
        }
    }
    if unformatted.contains(&options.metadata_log_dir.as_path()) {
        presence::check_unformatted(&options.metadata_log_dir, None)?;
    }
    if found.is_empty() {
        let what = "No readable meta.properties files found".to_owned();
        return Err(unformatted_fault(options, &options.metadata_log_dir, &what));
    }
    let cluster_id = check_agreement(options, &found)?;
    for (dir, _) in &found {
        if *dir != options.metadata_log_dir && dir.join(PARTITION_DIR).exists() {
            let sentence = format!(
                "Found unexpected metadata location in data directory `{}` (the configured \
                 metadata directory is {}): set metadata.log.dir to where the metadata is, or \
                 remove the copy that is not wanted.",
                dir.join(PARTITION_DIR).display(),
                options.metadata_log_dir.display()
            );
            return Err(StorageFault::new(FaultKind::Identity, dir, sentence));
        }
    }
    if let Some(dir) = unformatted.first() {
        let what = format!("No `{META_PROPERTIES_FILE}` found in {}", dir.display());
        return Err(unformatted_fault(options, dir, &what));
    }
    for (dir, _) in &found {
        check_writable(dir)?;
    }
    let partition = options.metadata_log_dir.join(PARTITION_DIR);
    if partition.exists() {
        if !partition.is_dir() {
            let sentence = format!(
                "{} is a file where a directory has to be: move it away and put the directory back \
                 from a backup.",
                partition.display()
            );
            return Err(StorageFault::new(FaultKind::Damaged, &partition, sentence));
        }
        check_writable(&partition)?;
    }
    Ok(Checked {
        cluster_id,
        dirs: found,
    })
}

fn all_dirs(options: &DirectoryOptions) -> Vec<&Path> {
    let mut dirs = vec![options.metadata_log_dir.as_path()];
    for dir in &options.log_dirs {
        if !dirs.contains(&dir.as_path()) {
            dirs.push(dir);
        }
    }
    dirs
}

/// All files name one cluster, this node, and directories that differ.
fn check_agreement(
    options: &DirectoryOptions,
    found: &[(PathBuf, MetaProperties)],
) -> Result<String> {
    let refuse =
        |path: &Path, sentence: String| Err(StorageFault::new(FaultKind::Identity, path, sentence));
    let mut cluster: Option<(&str, &Path)> = None;
    for (at, (dir, meta)) in found.iter().enumerate() {
        let path = dir.join(META_PROPERTIES_FILE);
        let Some(id) = meta.cluster_id.as_deref() else {
            let line = "the line cluster.id= with the id of the cluster";
            return refuse(&path, absent("cluster.id", line, &path));
        };
        let (expected, first) = *cluster.get_or_insert((id, dir));
        if id != expected {
            return refuse(
                &path,
                format!(
                    "Invalid cluster.id in: {}. Expected {expected} (as in {}), but read {id}: \
                     these directories belong to two clusters.",
                    path.display(),
                    first.join(META_PROPERTIES_FILE).display()
                ),
            );
        }
        match meta.node_id {
            Some(id) if id == options.node_id => {}
            Some(id) => return refuse(&path, other_node(id, options.node_id, &path)),
            None => {
                let line = format!("the lines version=1 and node.id={}", options.node_id);
                return refuse(&path, absent("node.id", &line, &path));
            }
        }
        let Some(id) = meta.directory_id else {
            continue;
        };
        if is_reserved(id) {
            return refuse(
                &path,
                format!(
                    "Invalid reserved directory ID {} found in {}: restore the file from a backup.",
                    base64url(id),
                    path.display()
                ),
            );
        }
        if let Some((other, _)) = found[..at]
            .iter()
            .find(|(_, meta)| meta.directory_id == Some(id))
        {
            return refuse(
                &path,
                format!(
                    "Duplicate directory ID {} found. It was the ID of {}, but also of {}: one of \
                     them is a copy; remove it.",
                    base64url(id),
                    other.display(),
                    dir.display()
                ),
            );
        }
    }
    let (id, _) = cluster.expect("at least one file was found");
    Ok(id.to_owned())
}

fn absent(key: &str, line: &str, path: &Path) -> String {
    format!(
        "{key} was not specified in {}: restore the file from a backup, or add {line}.",
        path.display()
    )
}

fn other_node(stored: NodeId, configured: NodeId, path: &Path) -> String {
    format!(
        "Stored node id {stored} doesn't match previous node id {configured} in {}. If you moved \
         your data, make sure your configured node id matches (node.id={stored}). If you intend to \
         create a new node, you should remove all data in your data directories.",
        path.display()
    )
}

fn unformatted_fault(options: &DirectoryOptions, dir: &Path, what: &str) -> StorageFault {
    let config = options
        .config_file
        .as_deref()
        .unwrap_or_else(|| Path::new("server.properties"));
    let sentence = format!(
        "{what} (have you formatted the directory {}? Run `kraftd format -t CLUSTER_ID -c {}`, for \
         a quorum without controller.quorum.voters with one of --standalone, \
         --initial-controllers or --no-initial-controllers; `kraftd random-uuid` makes a cluster \
         id).",
        dir.display(),
        config.display()
    );
    StorageFault::new(FaultKind::NotFormatted, dir, sentence)
}

fn check_writable(dir: &Path) -> Result<()> {
    access(dir, Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK).map_err(|error| {
        let sentence = format!(
            "{} cannot be written by this user ({}): give the user that runs the controller \
             ownership of the directory.",
            dir.display(),
            std::io::Error::from(error)
        );
        StorageFault::new(FaultKind::Io, dir, sentence)
    })
}

/// A voter whose directory lost its id would get a new one and never be a voter again.
fn check_voter_directory(
    options: &DirectoryOptions,
    checked: &Checked,
    plan: &recovery::Plan,
) -> Result<()> {
    let mut dirs = checked.dirs.iter();
    let own = dirs.find(|(dir, _)| *dir == options.metadata_log_dir);
    let (Some((dir, meta)), Some(id)) = (own, plan.voter_directory(options.node_id)) else {
        return Ok(());
    };
    if meta.directory_id.is_some() {
        return Ok(());
    }
    let path = dir.join(META_PROPERTIES_FILE);
    let sentence = format!(
        "{} has no directory.id, but node {} is a voter with directory {}: if this is that \
         directory, add the line directory.id={} to the file.",
        path.display(),
        options.node_id,
        base64url(id),
        base64url(id)
    );
    Err(StorageFault::new(FaultKind::Identity, &path, sentence))
}

/// Gives a directory of a release without directory ids its own.
fn give_ids(dirs: &mut [(PathBuf, MetaProperties)]) -> Result<Vec<(PathBuf, Uuid)>> {
    let mut ids = Vec::with_capacity(dirs.len());
    for (dir, meta) in dirs {
        let id = match meta.directory_id {
            Some(id) => id,
            None => {
                let id = random_id();
                meta.directory_id = Some(id);
                let path = dir.join(META_PROPERTIES_FILE);
                info!(file = %path.display(), "adding directory.id={}", base64url(id));
                meta.write(&path)?;
                id
            }
        };
        ids.push((dir.clone(), id));
    }
    Ok(ids)
}

/// A random id as Kafka makes them: not reserved, and fit for a command line.
#[must_use]
pub fn random_id() -> Uuid {
    loop {
        let id = Uuid::new_v4();
        if !is_reserved(id) && !base64url(id).starts_with('-') {
            return id;
        }
    }
}
