//! The `meta.properties` file of a log directory: whose directory it is.
//!
//! A Java properties file whose keys come in any order. Version 0 is of the ZooKeeper era
//! (`broker.id`, everything optional); version 1 has `cluster.id` and `node.id`, and since 3.7
//! `directory.id`.

use std::path::Path;

use java_properties::{PropertiesIter, PropertiesWriter};

use super::atomic;
use super::fault::{FaultKind, Result, StorageFault};
use crate::types::ids::{base64url, parse_base64url};
use crate::types::{NodeId, Uuid, quote};

/// Its name in every log directory.
pub const META_PROPERTIES_FILE: &str = "meta.properties";

/// The longest cluster id that is taken, in bytes: format makes them of 22. Java takes any, but a
/// slot of the commit mark has to hold it.
const CLUSTER_ID_BYTES_MAX: usize = 200;

/// What the file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetaProperties {
    /// 0 or 1; 0 when the file does not say.
    pub version: u8,
    /// The cluster, as text: Kafka compares it and does not decode it.
    pub cluster_id: Option<String>,
    /// The node (`broker.id` in version 0).
    pub node_id: Option<NodeId>,
    /// The directory's own id.
    pub directory_id: Option<Uuid>,
}

impl MetaProperties {
    /// What `format` writes.
    #[must_use]
    pub const fn new(cluster_id: String, node_id: NodeId, directory_id: Uuid) -> Self {
        Self {
            version: 1,
            cluster_id: Some(cluster_id),
            node_id: Some(node_id),
            directory_id: Some(directory_id),
        }
    }

    /// Reads the file of the directory `dir`, which the configuration's `key` names; `None` when
    /// there is none.
    ///
    /// # Errors
    /// Those of [`Self::read`], and `Identity` where a file has the directory's name.
    pub(crate) fn of_directory(dir: &Path, key: &str) -> Result<Option<Self>> {
        if dir.exists() && !dir.is_dir() {
            let sentence = format!("{key} names {}, which is a file", dir.display());
            let fault = StorageFault::new(FaultKind::Identity, dir, sentence);
            return Err(
                fault.helped_by("set it to a directory that `kraftd format` has formatted.")
            );
        }
        Self::read(&dir.join(META_PROPERTIES_FILE))
    }

    /// Reads the file; `None` when there is none.
    ///
    /// # Errors
    /// `Damaged` for text that is no such file, `Unsupported` for an unknown version.
    pub fn read(path: &Path) -> Result<Option<Self>> {
        let Some(bytes) = atomic::read_small(path, 1 << 20)? else {
            return Ok(None);
        };
        let mut found = Self {
            version: 0,
            cluster_id: None,
            node_id: None,
            directory_id: None,
        };
        let (mut version, mut broker, mut node, mut directory) = (None, None, None, None);
        PropertiesIter::new(bytes.as_slice())
            .read_into(|key, value| match key.as_str() {
                "version" => version = Some(value),
                "cluster.id" => found.cluster_id = Some(value),
                "broker.id" => broker = Some(value),
                "node.id" => node = Some(value),
                "directory.id" => directory = Some(value),
                _ => {}
            })
            .map_err(|error| damaged(path, &format!("it is not a properties file ({error})")))?;
        let texts = [
            ("version", version.as_ref()),
            ("cluster.id", found.cluster_id.as_ref()),
            ("broker.id", broker.as_ref()),
            ("node.id", node.as_ref()),
            ("directory.id", directory.as_ref()),
        ];
        if let Some(what) = joined(&texts) {
            return Err(damaged(path, &what));
        }
        if let Some(id) = found.cluster_id.as_ref()
            && id.len() > CLUSTER_ID_BYTES_MAX
        {
            return Err(too_long(path, id));
        }
        found.version = match version.as_deref().map(str::trim) {
            None | Some("0") => 0,
            Some("1") => 1,
            Some(other) => return Err(unknown_version(path, other)),
        };
        let (key, id) = match found.version {
            0 => ("broker.id", broker),
            _ => ("node.id", node),
        };
        if let Some(id) = id {
            let number = id
                .trim()
                .parse()
                .map_err(|_| damaged(path, &format!("{key} '{}' is not a number", quote(&id))))?;
            found.node_id = Some(NodeId(number));
        }
        if let Some(id) = directory {
            let uuid = parse_base64url(id.trim()).ok_or_else(|| {
                let what = format!("directory.id '{}' is not a directory id", quote(&id));
                damaged(path, &what)
            })?;
            found.directory_id = Some(uuid);
        }
        Ok(Some(found))
    }

    /// Replaces the file; when this returns, it is durable.
    ///
    /// # Errors
    /// When a write, sync or rename fails.
    pub fn write(&self, path: &Path) -> Result<()> {
        atomic::replace(path, &self.encode(&java_date()))
    }

    fn encode(&self, date: &str) -> Vec<u8> {
        let mut bytes = format!("#\n#{date}\n").into_bytes();
        let mut writer = PropertiesWriter::new(&mut bytes);
        let mut put = |key: &str, value: &str| {
            writer
                .write(key, value)
                .expect("writing to a vector cannot fail");
        };
        put("version", &self.version.to_string());
        if let Some(id) = &self.cluster_id {
            put("cluster.id", id);
        }
        if let Some(id) = self.node_id {
            let key = ["broker.id", "node.id"][usize::from(self.version.min(1))];
            put(key, &id.to_string());
        }
        if let Some(id) = self.directory_id {
            put("directory.id", &base64url(id));
        }
        writer.finish().expect("writing to a vector cannot fail");
        bytes
    }
}

/// Two lines that became one: a key that is not there stands in the value of another.
fn joined(texts: &[(&str, Option<&String>)]) -> Option<String> {
    let absent = texts.iter().filter(|(_, text)| text.is_none());
    absent.into_iter().find_map(|(key, _)| {
        let inside = format!("{key}=");
        let (other, text) = texts.iter().find_map(|(other, text)| {
            let text = text.filter(|text| text.contains(&inside))?;
            Some((other, text))
        })?;
        Some(format!(
            "{other} '{}' has {key} in it: the end of its line is damaged",
            quote(text)
        ))
    })
}

/// The date as `Properties.store` writes it, in the local time zone.
fn java_date() -> String {
    let now = jiff::Zoned::now();
    now.strftime("%a %b %d %H:%M:%S %Z %Y").to_string()
}

fn unknown_version(path: &Path, version: &str) -> StorageFault {
    let sentence = format!(
        "Unknown meta.properties version '{}' in {}: this release knows 0 and 1",
        quote(version),
        path.display()
    );
    StorageFault::new(FaultKind::Unsupported, path, sentence)
        .helped_by("start the release that wrote it, or restore the file from a backup.")
}

fn too_long(path: &Path, id: &str) -> StorageFault {
    let sentence = format!(
        "{} has the cluster.id '{}' of {} bytes, and kraftd takes up to {CLUSTER_ID_BYTES_MAX}",
        path.display(),
        quote(id),
        id.len()
    );
    StorageFault::new(FaultKind::Unsupported, path, sentence).helped_by(
        "restore the file from a backup if it is damaged, else leave the cluster to Java's \
         controllers.",
    )
}

fn damaged(path: &Path, what: &str) -> StorageFault {
    let sentence = format!(
        "{} cannot be used: {what}. It names the cluster, the node and the directory",
        path.display()
    );
    StorageFault::new(FaultKind::Damaged, path, sentence).helped_by("restore it from a backup.")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &str) -> Result<Option<MetaProperties>> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(META_PROPERTIES_FILE);
        std::fs::write(&path, text).unwrap();
        MetaProperties::read(&path)
    }

    #[test]
    fn keys_in_any_order_and_unknown_keys_are_read() {
        let text = "#\n#Sat Nov 29 10:00:00 UTC 2025\nnode.id=3\nversion=1\nnew.key=x\n\
                    directory.id=AAAAAAAAAAAAAAAAAAAB9A\ncluster.id=MkU3OEVBNTcwNTJENDM2Qk\n";
        let found = read_text(text).unwrap().unwrap();
        assert_eq!(
            found,
            MetaProperties::new(
                "MkU3OEVBNTcwNTJENDM2Qk".into(),
                NodeId(3),
                Uuid::from_u128(500)
            )
        );
    }

    #[test]
    fn version_0_has_a_broker_id_and_says_its_version_or_not() {
        for text in ["broker.id=3\n", "version=0\nbroker.id=3\nnode.id=4\n"] {
            let found = read_text(text).unwrap().unwrap();
            assert_eq!((found.version, found.node_id), (0, Some(NodeId(3))));
        }
    }

    #[test]
    fn a_written_file_is_read_back_and_looks_like_javas() {
        let meta = MetaProperties::new("a:b=c d".into(), NodeId(3), Uuid::from_u128(500));
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(META_PROPERTIES_FILE);
        assert!(MetaProperties::read(&path).unwrap().is_none());
        meta.write(&path).unwrap();
        assert_eq!(MetaProperties::read(&path).unwrap(), Some(meta.clone()));
        let text = String::from_utf8(meta.encode("Sat Nov 29 10:00:00 UTC 2025")).unwrap();
        assert!(
            text.starts_with("#\n#Sat Nov 29 10:00:00 UTC 2025\nversion=1\n"),
            "{text}"
        );
        assert!(text.contains("\nnode.id=3\n"), "{text}");
    }

    #[test]
    fn bad_values_are_refused_and_named() {
        for (text, kind, part) in [
            ("version=2\n", FaultKind::Unsupported, "version '2'"),
            ("version=x\n", FaultKind::Unsupported, "version 'x'"),
            ("version=1\nnode.id=x\n", FaultKind::Damaged, "node.id 'x'"),
            (
                "version=1\ndirectory.id=!\n",
                FaultKind::Damaged,
                "directory.id '!'",
            ),
            (
                &format!("version=1\ncluster.id={}\n", "x".repeat(201)),
                FaultKind::Unsupported,
                "xx...' of 201 bytes, and kraftd takes up to 200",
            ),
            ("version=\\u00\n", FaultKind::Damaged, "properties"),
            (
                "version=1\ncluster.id=MkU3\u{1}node.id=1\n",
                FaultKind::Damaged,
                "cluster.id 'MkU3\\u{1}node.id=1' has node.id in it",
            ),
            (
                "version=1jcluster.id=MkU3\nnode.id=1\n",
                FaultKind::Damaged,
                "version '1jcluster.id=MkU3' has cluster.id in it",
            ),
        ] {
            let fault = read_text(text).unwrap_err();
            assert_eq!(fault.kind, kind, "{text}");
            assert!(fault.sentence.contains(part), "{fault}");
        }
        // An empty file says version 0 and nothing else; the checks of all directories refuse it.
        assert_eq!(read_text("").unwrap().unwrap().cluster_id, None);
    }
}
