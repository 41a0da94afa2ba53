//! The `quorum-state` file: epoch, leader and vote, which must survive before they are told.
//!
//! One line of JSON without a line feed, in the order of Java's fields (KIP-595; version 1 is
//! KIP-853). The reader takes fields in any order and ignores unknown ones, as Java's does.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::atomic;
use super::fault::{FaultKind, Result, StorageFault};
use crate::raft::QuorumState;
use crate::types::ids::{base64url, parse_base64url};
use crate::types::{Epoch, NodeId, ReplicaKey, Uuid};

/// Its name in the partition's directory.
pub const QUORUM_STATE_FILE: &str = "quorum-state";

/// Highest `data_version` known.
const VERSION_MAX: i64 = 1;

/// A file of some hundred bytes; more is not one of ours.
const BYTES_MAX: u64 = 1 << 20;

/// Reads the file; `None` when there is none.
///
/// # Errors
/// `Damaged` when it is not such JSON (an empty file, too), `Unsupported` for a version above 1.
pub fn read(path: &Path) -> Result<Option<QuorumState>> {
    let Some(bytes) = atomic::read_small(path, BYTES_MAX)? else {
        return Ok(None);
    };
    if bytes.is_empty() {
        return Err(damaged(path, "it is empty"));
    }
    let value: Value = serde_json::from_slice(&bytes)
        .map_err(|error| damaged(path, &format!("it is not JSON ({error})")))?;
    let Value::Object(fields) = value else {
        return Err(damaged(path, "it is not a JSON object"));
    };
    let version = integer(path, &fields, "data_version")?;
    if !(0..=VERSION_MAX).contains(&version) {
        let sentence = format!(
            "{} has data_version {version}, but this release knows 0 to {VERSION_MAX}",
            path.display()
        );
        let fault = StorageFault::new(FaultKind::Unsupported, path, sentence);
        return Err(fault.helped_by("start the release that wrote it."));
    }
    decode(path, &fields, version).map(Some)
}

fn decode(path: &Path, fields: &Map<String, Value>, version: i64) -> Result<QuorumState> {
    let epoch = id(path, fields, "leaderEpoch")?;
    if epoch < 0 {
        return Err(damaged(path, "leaderEpoch is negative"));
    }
    if Epoch(epoch) >= Epoch::END {
        let what = format!("leaderEpoch is {epoch}, behind which no election can come");
        return Err(damaged(path, &what));
    }
    let node = |id: i32| (id >= 0).then_some(NodeId(id));
    let leader = node(id(path, fields, "leaderId")?);
    let voted_id = node(id(path, fields, "votedId")?);
    let directory = match (version, fields.get("votedDirectoryId")) {
        (0, _) | (_, None) => Uuid::nil(),
        (_, Some(value)) => value
            .as_str()
            .and_then(parse_base64url)
            .ok_or_else(|| damaged(path, "votedDirectoryId is not a directory id"))?,
    };
    let mut voters = Vec::new();
    if let (0, Some(list)) = (version, fields.get("currentVoters")) {
        let list = match list {
            Value::Null => &[],
            Value::Array(list) => list.as_slice(),
            _ => return Err(damaged(path, "currentVoters is not a list")),
        };
        for voter in list {
            let fields = voter
                .as_object()
                .ok_or_else(|| damaged(path, "a voter is not a JSON object"))?;
            voters.push(NodeId(id(path, fields, "voterId")?));
        }
    }
    Ok(QuorumState {
        epoch: Epoch(epoch),
        leader,
        voted: voted_id.map(|id| ReplicaKey { id, directory }),
        voters,
        kraft_version: u16::from(version == 1),
    })
}

/// Replaces the file; when this returns, the state is durable.
///
/// # Errors
/// When a write, sync or rename fails.
pub fn write(path: &Path, state: &QuorumState) -> Result<()> {
    atomic::replace(path, encode(state).as_bytes())
}

/// The file's text.
pub(crate) fn encode(state: &QuorumState) -> String {
    let leader = state.leader.unwrap_or(NodeId::NONE).0;
    let voted = state.voted.map_or(NodeId::NONE, |key| key.id).0;
    let value = if state.kraft_version == 0 {
        let voters: Vec<Value> = state
            .voters
            .iter()
            .map(|voter| json!({ "voterId": voter.0 }))
            .collect();
        json!({
            "clusterId": "",
            "leaderId": leader,
            "leaderEpoch": state.epoch.0,
            "votedId": voted,
            "appliedOffset": 0,
            "currentVoters": voters,
            "data_version": 0,
        })
    } else {
        let directory = state.voted.map_or(Uuid::nil(), |key| key.directory);
        json!({
            "leaderId": leader,
            "leaderEpoch": state.epoch.0,
            "votedId": voted,
            "votedDirectoryId": base64url(directory),
            "data_version": 1,
        })
    };
    value.to_string()
}

/// Whether the text is, byte for byte, what it is when it is written with the same values. (Before
/// 3.9, format 0 named the cluster.)
pub(crate) fn is_as_written(text: &[u8]) -> bool {
    let Ok(Value::Object(mut fields)) = serde_json::from_slice(text) else {
        return false;
    };
    let nowhere = Path::new("");
    let version = fields.get("data_version").and_then(Value::as_i64);
    let Some(Ok(state)) = version.map(|version| decode(nowhere, &fields, version)) else {
        return false;
    };
    let plain = encode(&state);
    if plain.as_bytes() == text {
        return true;
    }
    match fields.get_mut("clusterId") {
        Some(id) if version == Some(0) => *id = json!(""),
        _ => return false,
    }
    let unnamed = Value::Object(fields).to_string();
    unnamed == plain
}

/// The cluster that a text of format 0 names, if it does. Nobody reads that but to doubt the file.
pub(crate) fn named_cluster(text: &[u8]) -> Option<String> {
    let fields: Map<String, Value> = serde_json::from_slice(text).ok()?;
    let id = fields.get("clusterId")?.as_str()?;
    (!id.is_empty()).then(|| id.to_owned())
}

fn integer(path: &Path, fields: &Map<String, Value>, name: &str) -> Result<i64> {
    fields
        .get(name)
        .and_then(Value::as_i64)
        .ok_or_else(|| damaged(path, &format!("{name} is missing or not a number")))
}

fn id(path: &Path, fields: &Map<String, Value>, name: &str) -> Result<i32> {
    i32::try_from(integer(path, fields, name)?)
        .map_err(|_| damaged(path, &format!("{name} is out of range")))
}

fn damaged(path: &Path, what: &str) -> StorageFault {
    let sentence = format!(
        "{} cannot be read: {what}. It holds this node's epoch and vote, and without them the \
         node could vote twice in one epoch",
        path.display()
    );
    StorageFault::new(FaultKind::Damaged, path, sentence).helped_by(
        "restore the file, or if it is lost delete it and start once with --accept-lost-vote.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &str) -> Result<Option<QuorumState>> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(QUORUM_STATE_FILE);
        std::fs::write(&path, text).unwrap();
        read(&path)
    }

    #[test]
    fn version_0_reads_and_writes_as_java_wrote_it() {
        let text = concat!(
            r#"{"clusterId":"","leaderId":1,"leaderEpoch":1,"votedId":-1,"appliedOffset":0,"#,
            r#""currentVoters":[{"voterId":1}],"data_version":0}"#
        );
        let state = read_text(text).unwrap().unwrap();
        assert_eq!(state.leader, Some(NodeId(1)));
        assert_eq!(state.voters, [NodeId(1)]);
        assert_eq!(state.voted, None);
        assert_eq!(encode(&state), text);
    }

    #[test]
    fn version_1_reads_and_writes_as_java_wrote_it() {
        let text = concat!(
            r#"{"leaderId":13,"leaderEpoch":1,"votedId":13,"#,
            r#""votedDirectoryId":"fgxKAAAAAAAAAAAAAAAAAA","data_version":1}"#
        );
        let state = read_text(text).unwrap().unwrap();
        assert_eq!(state.voted.map(|key| key.id), Some(NodeId(13)));
        assert_eq!(encode(&state), text);
        let none = concat!(
            r#"{"leaderId":-1,"leaderEpoch":4,"votedId":-1,"#,
            r#""votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}"#
        );
        let state = read_text(none).unwrap().unwrap();
        assert_eq!((state.leader, state.voted), (None, None));
        assert_eq!(encode(&state), none);
    }

    #[test]
    fn a_written_state_is_read_back() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(QUORUM_STATE_FILE);
        assert!(read(&path).unwrap().is_none());
        let state = QuorumState {
            epoch: Epoch(7),
            leader: None,
            voted: Some(ReplicaKey {
                id: NodeId(2),
                directory: Uuid::from_u128(500),
            }),
            voters: Vec::new(),
            kraft_version: 1,
        };
        write(&path, &state).unwrap();
        assert_eq!(read(&path).unwrap(), Some(state));
    }

    #[test]
    fn damage_is_refused_with_the_files_name() {
        for text in [
            "",
            "{",
            "[]",
            "{}",
            "\0\0\0\0",
            r#"{"leaderId":1,"leaderEpoch":1,"votedId":-1}"#,
            r#"{"leaderId":1,"leaderEpoch":-1,"votedId":-1,"data_version":1}"#,
            r#"{"leaderId":1,"leaderEpoch":2147483647,"votedId":-1,"data_version":1}"#,
            r#"{"leaderId":99999999999,"leaderEpoch":1,"votedId":-1,"data_version":1}"#,
            r#"{"leaderId":1,"leaderEpoch":1,"votedId":2,"votedDirectoryId":"x","data_version":1}"#,
            r#"{"leaderId":1,"leaderEpoch":1,"votedId":2,"currentVoters":[1],"data_version":0}"#,
        ] {
            let fault = read_text(text).unwrap_err();
            assert_eq!(fault.kind, FaultKind::Damaged, "{text}");
            assert!(fault.sentence.contains("quorum-state"), "{fault}");
        }
    }

    #[test]
    fn a_later_version_is_refused() {
        let text = r#"{"leaderId":1,"leaderEpoch":1,"votedId":-1,"data_version":9}"#;
        let fault = read_text(text).unwrap_err();
        assert_eq!(fault.kind, FaultKind::Unsupported);
        assert!(fault.sentence.contains("data_version 9"), "{fault}");
    }
}
