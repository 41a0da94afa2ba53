//! `--verify`: checksums, offsets, epochs, counts and every record.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde_json::json;

use super::print::name;
use super::{Read, decode};
use crate::records::batch::Batch;
use crate::records::text::text;
use crate::storage::StorageFault;
use crate::storage::reader::{Damage, DamageKind, Item, MetadataFile, Source};

/// What was counted and found in one file.
#[derive(Debug, Default)]
struct Verdict {
    batches: u64,
    records: u64,
    findings: Vec<(&'static str, String)>,
    /// Findings beyond the limit.
    left_out: u64,
}

/// More findings than this in one file are only counted.
const FINDINGS_MAX: usize = 100;

impl Verdict {
    fn find(&mut self, kind: &'static str, sentence: String) {
        if self.findings.len() < FINDINGS_MAX {
            self.findings.push((kind, sentence));
        } else {
            self.left_out += 1;
        }
    }

    fn item(&mut self, file: &MetadataFile, item: Result<Item, StorageFault>) {
        match item {
            Ok(Item::Batch { position, batch }) => self.batch(file, position, &batch),
            Ok(Item::Damage(damage)) if is_under_way(file, &damage) => {}
            Ok(Item::Damage(damage)) => self.find(name(damage.kind), damage.sentence),
            Err(fault) => self.find("io", fault.sentence),
        }
    }

    fn batch(&mut self, file: &MetadataFile, position: u64, batch: &Batch) {
        self.batches += 1;
        let at = |what: &str| {
            format!(
                "{}: the batch at byte {position} (offset {}): {what}",
                file.path.display(),
                batch.base_offset()
            )
        };
        for record in batch.records() {
            let record = match record {
                Ok(record) => record,
                Err(fault) => {
                    self.find("batch", at(&fault.to_string()));
                    return;
                }
            };
            self.records += 1;
            if let Read::Unknown(reason) = decode(batch, &record) {
                let what = format!("record at offset {}: {reason}", record.offset);
                self.find("record", at(&what));
            }
        }
    }
}

/// A torn tail of a file that has another size by now: a process is writing it.
fn is_under_way(file: &MetadataFile, damage: &Damage) -> bool {
    damage.kind == DamageKind::TornTail
        && std::fs::metadata(&file.path).is_ok_and(|now| now.len() != file.bytes)
}

/// Prints a verdict for each file; true when nothing was found.
///
/// # Errors
/// When `out` cannot be written.
pub(super) fn verify(sources: &[Source], json: bool, out: &mut dyn Write) -> io::Result<bool> {
    let mut sound = true;
    for source in sources {
        for file in source.bootstrap.iter().chain(&source.checkpoints) {
            let mut verdict = Verdict::default();
            for item in source.walk(file) {
                verdict.item(file, item);
            }
            sound &= tell(&file.path, &verdict, json, out)?;
        }
        // As one log: the segments have to touch.
        let mut verdicts: Vec<(PathBuf, Verdict)> = Vec::new();
        for file in &source.segments {
            verdicts.push((file.path.clone(), Verdict::default()));
        }
        let mut at = 0;
        for item in source.walk_log() {
            let path = match &item {
                Ok((file, _)) => &file.path,
                Err(fault) => &fault.path,
            };
            // Items come in the order of the segments.
            let own = verdicts[at..].iter().position(|(it, _)| it == path);
            at += own.unwrap_or(0);
            let verdict = &mut verdicts[at].1;
            match item {
                Ok((file, item)) => verdict.item(file, Ok(item)),
                Err(fault) => verdict.find("io", fault.sentence),
            }
        }
        for (path, verdict) in &verdicts {
            sound &= tell(path, verdict, json, out)?;
        }
    }
    Ok(sound)
}

fn tell(path: &Path, verdict: &Verdict, json: bool, out: &mut dyn Write) -> io::Result<bool> {
    let sound = verdict.findings.is_empty();
    let findings = verdict.findings.iter();
    if json {
        let findings = findings.map(|(kind, sentence)| json!({"kind": kind, "sentence": sentence}));
        let document = json!({
            "file": path.display().to_string(),
            "batches": verdict.batches,
            "records": verdict.records,
            "findings": findings.collect::<Vec<_>>(),
            "leftOut": verdict.left_out,
        });
        writeln!(out, "{}", text(&document))?;
        return Ok(sound);
    }
    for (kind, sentence) in findings {
        writeln!(out, "{kind}: {sentence}")?;
    }
    let result = if sound { "sound" } else { "not sound" };
    writeln!(
        out,
        "{}: {result}, {} batches, {} records, {} findings",
        path.display(),
        verdict.batches,
        verdict.records,
        verdict.findings.len() as u64 + verdict.left_out
    )?;
    Ok(sound)
}
