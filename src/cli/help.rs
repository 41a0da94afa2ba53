//! `kraftd help`: of the program, of a command, and of what the JSON of the reading commands means.

use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{Args, CommandFactory as _};

use super::{Cli, report, usage};

/// Arguments of `help`.
#[derive(Debug, Args)]
pub(super) struct HelpArgs {
    /// A command, or json.
    #[arg(value_name = "COMMAND|json")]
    topic: Option<String>,
}

/// Prints the help that is asked for.
pub(super) fn run(args: &HelpArgs) -> ExitCode {
    match text(args.topic.as_deref()) {
        Ok(text) => report::print(|out| out.write_all(text.as_bytes())),
        Err(error) => usage(&error),
    }
}

fn text(topic: Option<&str>) -> Result<String, clap::Error> {
    let mut all = Cli::command();
    all.build();
    let help = match topic {
        None => all.render_long_help(),
        Some("json") => return Ok(JSON.to_owned()),
        Some(name) => match all.find_subcommand_mut(name) {
            Some(command) => command.render_long_help(),
            None => {
                let what = format!("there is no command {name:?}");
                return Err(all.error(ErrorKind::InvalidSubcommand, what));
            }
        },
    };
    Ok(help.to_string())
}

/// Every key that a `--json` prints. A test holds it against what is printed.
const JSON: &str = "\
Keys are lowerCamel, uuids base64url, offsets and epochs numbers, times milliseconds since 1970.
Keys stay; new ones may come.

A record is {offset, timestamp, type, version, data}: type and data as kafka-dump-log prints them.

kraftd dump --json: a line for each batch
  file, position         where it is, in bytes
  baseOffset, lastOffset of its records, both inclusive
  count                  of its records
  partitionLeaderEpoch   the epoch of the leader that wrote it
  isControl              its records are those of the quorum, not metadata
  timestampType          CreateTime or LogAppendTime
  timestamp              the newest in it
  size                   in bytes
  compressCodec          none, gzip, snappy, lz4 or zstd
  crc, isValid           the checksum, and whether it is that of the bytes
  records                its records; one that cannot be read has error, type and version as
                         numbers, valueSize and hex in the place of data
and a line for each damage
  file, position, offset where it begins, and the offset that was expected there
  damage                 torn, rot, gap, epoch or incomplete
  bytesLeft              bytes of the file from there on
  next                   file, position and offset of the next whole batch, or null
  sentence               all of that

kraftd dump --verify --json: a line for each file
  file, batches, records what was read
  findings               each with kind (a damage, batch, record or io) and sentence
  leftOut                how many more findings there are

kraftd state --json: what SELECTOR names, a directory as an object of what is in it
  provenance             offset, epoch, timestamp and time (ISO-8601, or null when there is
                         none) of the last record, and knownCommitted: the last offset that is
                         known to be committed, or null
  acls/byId/ID           resourceType, resourceName, patternType, principal, host, operation,
                         permissionType
  clientQuotas/ENTITY    a number for each quota
  cluster/brokers/ID     id, epoch, incarnationId, listeners, supportedFeatures, rack, fenced,
                         inControlledShutdown, isMigratingZkBroker, directories,
                         cordonedDirectories
  cluster/controllers/ID id, incarnationId, zkMigrationReady, listeners, supportedFeatures
    listeners            each with listenerName, securityProtocol, host, port
    supportedFeatures    min and max for each feature
  configs/TYPE:NAME      a text for each key
  delegationToken/ID     tokenId, owner, tokenRequester, renewers, issueTimestamp, maxTimestamp,
                         expiryTimestamp
  features               metadataVersion, finalized_NAME, zkMigrationState while one is under way
  producerIds            nextProducerId
  scram/MECHANISM/USER   salt, storedKey, serverKey, iterations
  topics/byName/NAME     (and topics/byId/ID) id, name, and for each partition replicas,
                         directories, isr, removingReplicas, addingReplicas, elr, lastKnownElr,
                         leader, leaderRecoveryState, leaderEpoch, partitionEpoch

kraftd diff --json: one object
  from, to               where the two states stand, as provenance
  changes                each with change (added, removed or changed), type, path (a SELECTOR),
                         before and after (the value, or of an entry that both have the fields
                         that differ, or of a topic id and count of partitions; null when it
                         is not there) and text

kraftd fsck --json: one object
  path                   as it was given
  verdict                sound, torn, wrong or rot
  inUse                  a process holds the directory
  log                    startOffset, endOffset (exclusive), epoch, segments, bytes, batches,
                         records
  checkpoints            each with file, endOffset (exclusive), epoch, bytes, records, sound,
                         equalsLog: the log, replayed to there, gave the same
  findings, notes        each with severity (note, torn, wrong or rot), check (the rule's name),
                         file, position and offset (or null), what, advice
  leftOut                how many more findings there are

kraftd check-config --json: one object
  file                   as it was given
  starts                 the controller would start with it
  findings               each with severity, key, value, rule and fix
";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::check_config::check_config;
    use crate::cli::dump::{self, DumpArgs};
    use crate::cli::fsck::fsck;
    use crate::cli::past::{self, At};
    use crate::observe::changes::Changes;
    use crate::observe::{Node, View};
    use serde_json::Value;
    use std::path::Path;

    const FIXTURE: &str = "fixtures/4.4.0/lived/dynamic-stopped";
    const FULL: &str = "fixtures/4.4.0/full/dynamic-stopped";

    /// Keys of a document, those of objects in it too.
    fn keys(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(fields) => {
                for (key, value) in fields {
                    found.push(key.clone());
                    match (key.as_str(), value) {
                        // Kafka's own names.
                        ("data", _) => {}
                        ("supportedFeatures", Value::Object(features)) => {
                            features.values().for_each(|range| keys(range, found));
                        }
                        _ => keys(value, found),
                    }
                }
            }
            Value::Array(values) => values.iter().for_each(|value| keys(value, found)),
            _ => {}
        }
    }

    fn undocumented(text: &[u8]) -> Vec<String> {
        let mut found = Vec::new();
        keys(&serde_json::from_slice(text).unwrap(), &mut found);
        assert!(!found.is_empty());
        let known = |key: &String| {
            let mut words = JSON.split(|c: char| !c.is_alphanumeric() && c != '_');
            words.any(|word| word == key)
        };
        found.retain(|key| !known(key));
        found
    }

    #[test]
    fn the_documents_of_fsck_and_check_config_have_no_key_that_help_does_not_name() {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join(FIXTURE);
        let mut out = Vec::new();
        fsck(&dir, true, &mut |_, _| (), &mut out).unwrap();
        assert_eq!(undocumented(&out), Vec::<String>::new());
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut out = Vec::new();
        check_config(file.path(), &[], false, true, &mut out).unwrap();
        assert_eq!(undocumented(&out), Vec::<String>::new());
    }

    /// The leaves below a node, as one list.
    fn leaves(view: View<'_>, node: Node<'_>, found: &mut Vec<Value>) {
        match node {
            Node::Leaf(leaf) => found.push(leaf.json(true)),
            Node::Directory(directory) => {
                for (_, child) in view.children(directory) {
                    leaves(view, child, found);
                }
            }
        }
    }

    #[test]
    fn the_documents_of_state_and_diff_have_no_key_that_help_does_not_name() {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join(FULL);
        let load = |at| past::load(&dir, at).unwrap();
        let (before, after) = (load(past::parse_at("0").unwrap()), load(At::NEWEST));
        let view = View {
            image: &after.image,
            provenance: after.provenance,
            show_secrets: true,
        };
        let mut found = Vec::new();
        leaves(view, view.root(), &mut found);
        let text = Value::from(found).to_string();
        for key in [
            "cordonedDirectories",
            "lastKnownElr",
            "serverKey",
            "tokenRequester",
        ] {
            assert!(text.contains(key), "{key}");
        }
        assert_eq!(undocumented(text.as_bytes()), Vec::<String>::new());
        let changes = Changes {
            before: (&before.image, before.provenance),
            after: (&after.image, after.provenance),
            show_secrets: true,
        };
        let mut out = Vec::new();
        changes.write_json(&mut out).unwrap();
        assert_eq!(undocumented(&out), Vec::<String>::new());
    }

    #[test]
    fn the_lines_of_dump_have_no_key_that_help_does_not_name() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("00000000000000000000.log");
        let full = Path::new(env!("CARGO_MANIFEST_DIR")).join(FIXTURE);
        let log = full.join("__cluster_metadata-0/00000000000000000000.log");
        let mut bytes = std::fs::read(log).unwrap();
        bytes[250] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        for verify in [false, true] {
            let args = DumpArgs {
                paths: vec![path.clone()],
                json: true,
                verify,
                ..DumpArgs::default()
            };
            let mut out = Vec::new();
            dump::dump(&args, &mut out, &mut Vec::new()).unwrap();
            for line in out
                .split(|byte| *byte == b'\n')
                .filter(|line| !line.is_empty())
            {
                assert_eq!(undocumented(line), Vec::<String>::new());
            }
        }
    }

    #[test]
    fn every_command_has_a_help() {
        let mut all = Cli::command();
        all.build();
        let names: Vec<String> = all
            .get_subcommands()
            .map(|command| command.get_name().to_owned())
            .collect();
        assert!(names.iter().any(|name| name == "fsck"));
        for name in names {
            let text = text(Some(&name)).unwrap();
            assert!(text.contains(&format!("Usage: kraftd {name}")), "{text}");
        }
        assert!(text(None).unwrap().contains("Usage: kraftd"));
        assert!(text(Some("nonsense")).is_err());
    }
}
