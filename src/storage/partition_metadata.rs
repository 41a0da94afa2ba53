//! The `partition.metadata` file: which topic the partition's directory belongs to.

use std::path::Path;

use super::atomic;
use super::fault::{FaultKind, Result, StorageFault};
use crate::types::ids::{METADATA_TOPIC_ID, base64url, parse_base64url};
use crate::types::quote;

/// Its name in the partition's directory.
pub(crate) const PARTITION_METADATA_FILE: &str = "partition.metadata";

/// Checks that the file, if there is one, names the metadata topic. Returns whether there is one.
///
/// # Errors
/// `Identity` when it names another topic, `Unsupported` for another version, `Damaged` otherwise.
pub(crate) fn check(path: &Path) -> Result<bool> {
    let Some(bytes) = atomic::read_small(path, 4096)? else {
        return Ok(false);
    };
    let text = String::from_utf8_lossy(&bytes);
    let field = |name: &str| {
        text.lines()
            .find_map(|line| line.split_once(':').filter(|(key, _)| key.trim() == name))
            .map(|(_, value)| value.trim().to_owned())
    };
    let (Some(version), Some(topic)) = (field("version"), field("topic_id")) else {
        let sentence = format!("{} does not hold a version and a topic_id", path.display());
        let fault = StorageFault::new(FaultKind::Damaged, path, sentence);
        return Err(fault.helped_by("delete it, it is written anew."));
    };
    if version != "0" {
        let sentence = format!(
            "{} has version {}, but this release knows 0",
            path.display(),
            quote(&version)
        );
        let fault = StorageFault::new(FaultKind::Unsupported, path, sentence);
        return Err(fault.helped_by(
            "start the release that wrote it, or delete the file if it is damaged: it is written \
             anew.",
        ));
    }
    if parse_base64url(&topic) != Some(METADATA_TOPIC_ID) {
        let sentence = format!(
            "{} names the topic id {}, but the metadata topic is {}",
            path.display(),
            quote(&topic),
            base64url(METADATA_TOPIC_ID)
        );
        let fault = StorageFault::new(FaultKind::Identity, path, sentence);
        return Err(fault.helped_by(
            "if the directory is another topic's, correct metadata.log.dir; if the file is \
             damaged, delete it: it is written anew.",
        ));
    }
    Ok(true)
}

/// Writes the file.
pub(crate) fn write(path: &Path) -> Result<()> {
    let text = format!("version: 0\ntopic_id: {}", base64url(METADATA_TOPIC_ID));
    atomic::replace(path, text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_the_one_that_java_writes() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(PARTITION_METADATA_FILE);
        assert!(!check(&path).unwrap());
        write(&path).unwrap();
        assert_eq!(
            std::fs::read(&path).unwrap(),
            b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ"
        );
        assert!(check(&path).unwrap());
    }

    #[test]
    fn another_topic_version_or_rubbish_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(PARTITION_METADATA_FILE);
        for (text, kind) in [
            (
                "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAg",
                FaultKind::Identity,
            ),
            (
                "version: 1\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ",
                FaultKind::Unsupported,
            ),
            ("", FaultKind::Damaged),
            ("\0\0", FaultKind::Damaged),
        ] {
            std::fs::write(&path, text).unwrap();
            assert_eq!(check(&path).unwrap_err().kind, kind, "{text}");
        }
    }
}
