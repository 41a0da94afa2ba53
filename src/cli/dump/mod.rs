//! `kraftd dump`: segments and checkpoints, batch by batch and record by record.
//!
//! The text has the lines and key names of `kafka-dump-log --cluster-metadata-decoder`; `--json`
//! prints one object a batch. Damage stands in its place between the batches. What cannot be read
//! is told on stderr too and ends with exit code 1; a torn tail alone does not, because a process
//! may be writing there. `--verify` prints findings instead and ends with 2 when there are some.

mod print;
mod select;
#[cfg(test)]
mod tests;
mod verify;

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;

use self::print::{Printer, Shown};
use self::select::{Offsets, Selection, Type};
use super::report::{self, Progress};
use crate::records::VersionedRecord;
use crate::records::batch::{Batch, BatchFault, RawRecord};
use crate::records::control::ControlRecord;
use crate::storage::reader::{DamageKind, Item, MetadataFile, Source};

/// Arguments of `dump`.
#[derive(Debug, Default, Args)]
pub(super) struct DumpArgs {
    /// Log directories, directories __cluster_metadata-0, segments (*.log) or checkpoints
    /// (*.checkpoint).
    #[arg(value_name = "PATH", required = true)]
    pub(super) paths: Vec<PathBuf>,
    /// One JSON object a line: batches with their records inside, and damage.
    #[arg(long)]
    pub(super) json: bool,
    /// Only records with these offsets, A and B included; either may be left out. A checkpoint
    /// counts its records from 0.
    #[arg(long, value_name = "A..B", allow_hyphen_values = true)]
    pub(super) offsets: Option<Offsets>,
    /// Only records of this type, such as TOPIC_RECORD, topic or LeaderChange; may be repeated.
    #[arg(long = "type", value_name = "TYPE")]
    pub(super) types: Vec<Type>,
    /// Only records of this topic: by its name, and by every id that it has in the files.
    #[arg(long, value_name = "NAME")]
    pub(super) topic: Option<String>,
    /// Check checksums, offsets, epochs, counts and every record, and print what is wrong.
    #[arg(long, conflicts_with_all = ["offsets", "types", "topic"])]
    pub(super) verify: bool,
    /// Print passwords and credentials.
    #[arg(long)]
    pub(super) show_secrets: bool,
}

/// Exit code of `--verify` with findings.
const FOUND: u8 = 2;

/// Runs the command.
pub(super) fn run(args: &DumpArgs) -> ExitCode {
    let mut complaints = Vec::new();
    let mut code = 0;
    let printed = report::print(|out| {
        code = dump(args, out, &mut complaints)?;
        Ok(())
    });
    for complaint in &complaints {
        super::refuse(complaint);
    }
    match code {
        0 => printed,
        code => ExitCode::from(code),
    }
}

/// Prints everything that is asked for; what cannot be read becomes a complaint. Returns the exit
/// code.
///
/// # Errors
/// When `out` cannot be written.
pub(super) fn dump(
    args: &DumpArgs,
    out: &mut dyn Write,
    complaints: &mut Vec<String>,
) -> io::Result<u8> {
    let mut sources = Vec::new();
    for path in &args.paths {
        match Source::open(path) {
            Ok(source) => {
                let unusable = source.unusable.iter();
                complaints.extend(unusable.map(|fault| fault.sentence.clone()));
                complaints.extend(source.of_another_topic().map(|fault| fault.sentence));
                if source.files().next().is_none() {
                    let place = path.display();
                    complaints.push(format!("{place} holds neither a segment nor a checkpoint."));
                }
                sources.push(source);
            }
            Err(fault) => complaints.push(fault.sentence),
        }
    }
    if args.verify {
        let sound = verify::verify(&sources, args.json, out)?;
        return Ok(match (sound, complaints.is_empty()) {
            (false, _) => FOUND,
            (true, true) => 0,
            (true, false) => 1,
        });
    }
    let mut selection = Selection::new(args.offsets, &args.types, args.topic.as_deref());
    let wants_ids = selection.wants_ids();
    for source in sources.iter().filter(|_| wants_ids) {
        // What cannot be read is told by the second pass.
        let items = source.files().flat_map(|file| source.walk(file));
        for item in items {
            if let Ok(Item::Batch { batch, .. }) = item {
                read(&batch, |_, read| {
                    selection.learn(&read);
                    Ok(())
                })?;
            }
        }
    }
    let bytes = sources.iter().flat_map(Source::files).map(|it| it.bytes);
    let mut dump = Dump {
        printer: Printer::new(args.json, args.show_secrets),
        selection,
        progress: Progress::of_bytes(bytes.sum()),
        done: 0,
        shown: 0,
        complaints,
    };
    for source in &sources {
        for file in source.files() {
            dump.file(source, file, out)?;
        }
    }
    if !dump.selection.is_all() && dump.shown == 0 {
        report::note("no record is one of those that were asked for");
    }
    Ok(u8::from(!dump.complaints.is_empty()))
}

/// What a record turned out to be.
#[derive(Debug)]
enum Read {
    Metadata(VersionedRecord),
    Control(ControlRecord),
    /// Not readable, with the reason in one sentence.
    Unknown(String),
}

/// Gives every record of a batch to `take`. A batch whose records cannot be walked (any further)
/// gives one that stands for the rest.
fn read(
    batch: &Batch,
    mut take: impl FnMut(Option<&RawRecord>, Read) -> io::Result<()>,
) -> io::Result<()> {
    for record in batch.records_as_found() {
        match record {
            Ok(record) => {
                let read = decode(batch, &record);
                take(Some(&record), read)?;
            }
            Err(fault) => take(None, Read::Unknown(fault.to_string()))?,
        }
    }
    Ok(())
}

fn decode(batch: &Batch, record: &RawRecord) -> Read {
    let read = if batch.is_control() {
        ControlRecord::decode(record.key.as_ref(), record.value.as_ref()).map(Read::Control)
    } else {
        let value = record.value.as_deref().unwrap_or_default();
        VersionedRecord::decode(value).map(Read::Metadata)
    };
    read.unwrap_or_else(|fault| Read::Unknown(fault.to_string()))
}

/// One run over all files.
struct Dump<'a> {
    printer: Printer,
    selection: Selection,
    progress: Progress,
    done: u64,
    /// Records that were printed.
    shown: u64,
    complaints: &'a mut Vec<String>,
}

/// More complaints than this are not told one by one on stderr.
const COMPLAINTS_MAX: usize = 20;

impl Dump<'_> {
    fn complain(&mut self, sentence: &str) {
        let sentence = match self.complaints.len() {
            COMPLAINTS_MAX.. => return,
            n if n + 1 == COMPLAINTS_MAX => "more could not be read; see the output",
            _ => sentence,
        };
        self.complaints.push(sentence.to_owned());
    }

    fn file(
        &mut self,
        source: &Source,
        file: &MetadataFile,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        self.printer.begin_file(file, out)?;
        for item in source.walk(file) {
            match item {
                Ok(Item::Batch { position, batch }) => {
                    self.progress.at(self.done + position);
                    self.batch(&file.path, position, &batch, out)?;
                }
                Ok(Item::Damage(damage)) => {
                    if damage.kind != DamageKind::TornTail {
                        self.complain(&damage.sentence);
                    }
                    self.printer.damage(&damage, out)?;
                }
                Err(fault) => self.complain(&fault.sentence),
            }
        }
        self.done += file.bytes;
        Ok(())
    }

    /// The line of the batch comes with the first record that is wanted, or at once when all are.
    fn batch(
        &mut self,
        path: &Path,
        position: u64,
        batch: &Batch,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let mut begun = self.selection.is_all();
        if begun {
            self.printer
                .begin_batch(position, batch.header(), true, out)?;
        }
        read(batch, |raw, read| {
            if !self.selection.wants(raw.map(|it| it.offset), &read) {
                return Ok(());
            }
            self.shown += 1;
            if !begun {
                begun = true;
                self.printer
                    .begin_batch(position, batch.header(), true, out)?;
            }
            if let Read::Unknown(reason) = &read {
                let at = raw.map_or_else(|| batch.base_offset(), |raw| raw.offset);
                let sentence = format!(
                    "{}: the record at offset {at} (batch at byte {position}) cannot be read: \
                     {reason}",
                    path.display()
                );
                self.complain(&sentence);
            }
            self.printer.record(
                &Shown {
                    batch,
                    raw,
                    read: &read,
                },
                out,
            )
        })?;
        if begun {
            self.printer.end_batch(out)?;
        }
        Ok(())
    }
}

/// The sentence of a fault that belongs to a whole batch.
fn is_of_batch(fault: &BatchFault) -> bool {
    matches!(fault, BatchFault::BadCrc { .. } | BatchFault::Truncated)
}
