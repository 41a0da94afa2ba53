//! Opening a node's log directories at a start, in the order in which Java checks them.
//!
//! Everything is read and judged before anything is written, so a refusal leaves the directories as
//! they were: `meta.properties` of all of them, the bootstrap records, the locks, the log.

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

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::raft::ControlRecord;
    use crate::storage::Command;
    use crate::storage::testing::{contents, fixture};
    use crate::types::Offset;

    fn options(dirs: &[&Path]) -> DirectoryOptions {
        DirectoryOptions {
            node_id: NodeId(1),
            log_dirs: dirs.iter().map(|dir| dir.to_path_buf()).collect(),
            metadata_log_dir: dirs[0].to_path_buf(),
            config_file: Some("/etc/kafka/controller.properties".into()),
            segment_bytes: 1 << 30,
            segment_ms: 1 << 40,
            snapshot_delete_delay_ms: 60_000,
            accept_lost_vote: false,
        }
    }

    fn meta(cluster: &str, node: i32, directory: u128) -> MetaProperties {
        MetaProperties::new(cluster.into(), NodeId(node), Uuid::from_u128(directory))
    }

    /// Two log directories with these files.
    fn two(first: &MetaProperties, second: &MetaProperties) -> (tempfile::TempDir, [PathBuf; 2]) {
        let root = tempfile::tempdir().unwrap();
        let dirs = ["a", "b"].map(|name| root.path().join(name));
        for (dir, meta) in dirs.iter().zip([first, second]) {
            fs::create_dir(dir).unwrap();
            meta.write(&dir.join(META_PROPERTIES_FILE)).unwrap();
            let bootstrap = fixture("4.3.1/formatted/static-voters");
            let bootstrap = bootstrap.path().join(bootstrap::BOOTSTRAP_FILE);
            fs::copy(bootstrap, dir.join(bootstrap::BOOTSTRAP_FILE)).unwrap();
        }
        (root, dirs)
    }

    /// Refused with one sentence that has these words, and nothing written.
    fn refused(options: &DirectoryOptions, kind: FaultKind, words: &[&str]) {
        let before: Vec<_> = options.log_dirs.iter().map(|dir| contents(dir)).collect();
        let fault = open(options, |_| ()).expect_err("must be refused");
        assert_eq!(fault.kind, kind, "{fault}");
        for word in words {
            assert!(fault.sentence.contains(word), "{word:?} is not in: {fault}");
        }
        assert!(!fault.sentence.contains('\n'), "{fault}");
        let after: Vec<_> = options.log_dirs.iter().map(|dir| contents(dir)).collect();
        assert_eq!(after, before, "something was written");
    }

    fn close(opened: Opened) {
        opened.disk.submit(Command::Close);
        opened.disk.join();
    }

    #[test]
    fn an_unformatted_directory_is_refused_with_the_command_that_helps() {
        let root = tempfile::tempdir().unwrap();
        let words = [
            "No readable meta.properties files found",
            "kraftd format -t CLUSTER_ID -c /etc/kafka/controller.properties",
            "--standalone",
            "--no-initial-controllers",
        ];
        refused(&options(&[root.path()]), FaultKind::NotFormatted, &words);
    }

    #[test]
    fn a_file_under_the_name_of_the_directory_is_refused_with_its_key_and_what_helps() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("file");
        fs::write(&file, b"").unwrap();
        let fault = open(&options(&[&file]), |_| ()).expect_err("must be refused");
        assert_eq!(fault.kind, FaultKind::Identity, "{fault}");
        for word in ["log.dirs (or log.dir) names ", "/file", "kraftd format"] {
            assert!(fault.sentence.contains(word), "{fault}");
        }
        let mut other = options(&[root.path()]);
        other.metadata_log_dir.clone_from(&file);
        let fault = open(&other, |_| ()).expect_err("must be refused");
        assert!(
            fault.sentence.starts_with("metadata.log.dir names "),
            "{fault}"
        );
    }

    #[test]
    fn every_log_directory_must_be_formatted() {
        let (root, [first, _]) = two(&meta("c", 1, 500), &meta("c", 1, 501));
        let third = root.path().join("third");
        fs::create_dir(&third).unwrap();
        let options = options(&[&first, &third]);
        refused(
            &options,
            FaultKind::NotFormatted,
            &["meta.properties", "third"],
        );
    }

    #[test]
    fn directories_that_contradict_each_other_or_the_configuration_are_refused() {
        let good = meta("c", 1, 500);
        for (second, words) in [
            (
                meta("d", 1, 501),
                ["Invalid cluster.id", "Expected c", "read d"],
            ),
            (
                meta("c", 7, 501),
                ["Stored node id 7", "node id 1", "node.id=7"],
            ),
            (meta("c", 1, 500), ["Duplicate directory ID", "/a", "/b"]),
            (
                meta("c", 1, 42),
                ["reserved directory ID", "KgAA"[..0].into(), "/b"],
            ),
            (
                MetaProperties {
                    cluster_id: None,
                    ..meta("c", 1, 501)
                },
                ["cluster.id was not specified", "/b", ""],
            ),
            (
                MetaProperties {
                    node_id: None,
                    ..meta("c", 1, 501)
                },
                ["node.id was not specified", "/b", ""],
            ),
        ] {
            let (_root, [first, second]) = two(&good, &second);
            refused(&options(&[&first, &second]), FaultKind::Identity, &words);
        }
    }

    #[test]
    fn metadata_in_another_log_directory_is_refused() {
        let (_root, [first, second]) = two(&meta("c", 1, 500), &meta("c", 1, 501));
        fs::create_dir(second.join(PARTITION_DIR)).unwrap();
        refused(
            &options(&[&first, &second]),
            FaultKind::Identity,
            &["metadata.log.dir", "/b/"],
        );
    }

    #[test]
    fn a_locked_directory_is_refused() {
        let (_root, [first, second]) = two(&meta("c", 1, 500), &meta("c", 1, 501));
        let _lock = DirLock::acquire(&second).unwrap();
        refused(
            &options(&[&first, &second]),
            FaultKind::Locked,
            &[".lock", "/b"],
        );
    }

    #[test]
    fn a_directory_without_an_id_gets_one_and_keeps_it() {
        let first = MetaProperties {
            directory_id: None,
            ..meta("c", 1, 0)
        };
        let (_root, [first, second]) = two(&first, &meta("c", 1, 501));
        let opened = open(&options(&[&first, &second]), |_| ()).unwrap();
        let id = opened.directory_id;
        assert!(!is_reserved(id));
        assert_eq!(opened.log_dirs[1].1, Uuid::from_u128(501));
        close(opened);
        let opened = open(&options(&[&first, &second]), |_| ()).unwrap();
        assert_eq!(opened.directory_id, id);
        close(opened);
    }

    #[test]
    fn a_damaged_second_directory_is_left_out() {
        let (_root, [first, second]) = two(&meta("c", 1, 500), &meta("c", 1, 501));
        fs::write(second.join(META_PROPERTIES_FILE), "version=9\n").unwrap();
        let opened = open(&options(&[&first, &second]), |_| ()).unwrap();
        assert_eq!(opened.log_dirs.len(), 1);
        close(opened);
        refused(
            &options(&[&second, &first]),
            FaultKind::Unsupported,
            &["'9'", "/b/"],
        );
    }

    #[test]
    fn directories_that_java_formatted_are_opened_with_their_bootstrap_records() {
        for (name, records, voters) in [
            ("3.9.2/formatted/initial-controllers", true, true),
            ("3.9.2/formatted/standalone", true, true),
            ("3.9.2/formatted/static-voters", true, false),
            ("4.4.0/formatted/initial-controllers", true, true),
            ("4.4.0/formatted/no-initial-controllers", true, false),
            ("4.4.0/formatted/standalone", true, true),
            ("4.4.0/formatted/standalone-scram", true, true),
            ("4.4.0/formatted/static-voters", true, false),
            ("4.4.0/formatted/static-voters-3.3", true, false),
        ] {
            let dir = fixture(name);
            let path = dir.path().join(META_PROPERTIES_FILE);
            let node_id = MetaProperties::read(&path)
                .unwrap()
                .unwrap()
                .node_id
                .unwrap();
            let options = DirectoryOptions {
                node_id,
                ..options(&[dir.path()])
            };
            let opened = open(&options, |_| ()).unwrap();
            assert_eq!(!opened.bootstrap.records.is_empty(), records, "{name}");
            let is_voters = |record: &ControlRecord| matches!(record, ControlRecord::Voters(_));
            assert_eq!(
                opened.bootstrap.control.iter().any(is_voters),
                voters,
                "{name}"
            );
            // Consensus learns the voters from the same file, at offset -1.
            let recovered = &opened.recovered.control;
            assert_eq!(recovered.len(), opened.bootstrap.control.len(), "{name}");
            assert!(
                recovered.iter().all(|(offset, _)| *offset == Offset(-1)),
                "{name}"
            );
            assert_eq!(opened.recovered.quorum_state, None);
            close(opened);
            assert!(!dir.path().join(".lock").exists());
        }
    }

    #[test]
    fn an_empty_bootstrap_snapshot_is_as_good_as_none_and_a_flipped_bit_is_refused() {
        let dir = fixture("4.4.0/lived/dynamic-stopped");
        let zero = dir
            .path()
            .join("__cluster_metadata-0/00000000000000000000-0000000000.checkpoint");
        let mut bytes = fs::read(&zero).unwrap();
        bytes[200] ^= 1;
        fs::remove_file(&zero).unwrap();
        fs::write(&zero, bytes).unwrap();
        let options = options(&[dir.path()]);
        refused(
            &options,
            FaultKind::Damaged,
            &["0000000000.checkpoint", "corrupt", "crc"],
        );
        fs::write(&zero, b"").unwrap();
        let opened = open(&options, |_| ()).unwrap();
        assert!(opened.bootstrap.records.is_empty());
        close(opened);
    }
}
