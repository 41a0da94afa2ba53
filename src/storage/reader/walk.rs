//! The batches of a file, or of the whole log, with damage as data.
//!
//! Each batch was read as a whole and has a good checksum; its records are not looked at (control
//! records of a checkpoint are, for its frame). Memory holds one window or one batch, whatever a
//! file says. Behind bad bytes the walk goes on with the next whole batch, if there is one.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use super::super::fault::{IoContext as _, Result};
use super::super::frame::Frame;
use super::super::judge::{Behind, find_behind};
use super::super::scan::{BatchScan, Next, SEARCH_BYTES_MAX, read_at};
use super::super::snapshot::misnamed;
use super::{MetadataFile, Role};
use crate::records::batch::{Batch, BatchFault, BatchHeader, HEADER_BYTES};
use crate::types::{Epoch, Offset};

/// What a walk meets.
#[derive(Clone, Debug)]
pub enum Item {
    /// A whole batch with a good checksum.
    Batch {
        /// Where it begins in its file.
        position: u64,
        /// The batch.
        batch: Batch,
    },
    /// Something is wrong at a place.
    Damage(Box<Damage>),
}

/// The sort of damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DamageKind {
    /// Bad bytes that a crash leaves at the end of the log, or a write that is under way: no whole
    /// batch is behind them, or only pages that were never written are before it.
    TornTail,
    /// Bad bytes with whole batches behind them: they were good once.
    Rot,
    /// A batch (or a segment) begins at another offset than the one that follows; it is given
    /// behind this, as a batch.
    Gap,
    /// A batch has a lower epoch than the one before; it is given behind this, as a batch.
    EpochFalls,
    /// A checkpoint that is cut off, without header or footer, or with something behind the footer.
    NotWhole,
}

/// What is wrong, where, and what follows.
#[derive(Clone, Debug)]
pub struct Damage {
    /// The file.
    pub path: PathBuf,
    /// Where in it the trouble begins, in bytes.
    pub position: u64,
    /// The offset that was expected there.
    pub offset: Offset,
    /// The sort.
    pub kind: DamageKind,
    /// Why the bytes are no batch; `None` for a batch that is only in the wrong place.
    pub fault: Option<BatchFault>,
    /// The header there, if its numbers fit each other: of a batch with a bad checksum or a cut
    /// end, or of one in the wrong place.
    pub header: Option<BatchHeader>,
    /// Bytes of the file from `position` on.
    pub bytes_left: u64,
    /// The next whole batch: its file, position and base offset. In strange bytes it may be one
    /// whose checksum was not verified.
    pub behind: Option<(PathBuf, u64, Offset)>,
    /// All of that in one sentence.
    pub sentence: String,
}

/// More damage than this in one file is not told one by one: the walk ends.
const DAMAGES_MAX: u32 = 1000;

/// A walk over one file. After an error it ends.
#[derive(Debug)]
pub struct Walk<'a> {
    /// The file, then the segments behind it.
    files: &'a [MetadataFile],
    scan: BatchScan<'a>,
    end: u64,
    next: Offset,
    epoch: Option<Epoch>,
    /// Whether it is a checkpoint and no segment.
    is_checkpoint: bool,
    /// The frame of a checkpoint; `None` once it was told to be broken.
    frame: Option<Frame>,
    pending: VecDeque<Item>,
    budget: u64,
    damages: u32,
    /// How often the file was found shorter than it was.
    shrunk: u32,
    done: bool,
}

/// More often than this a file is not looked at again: it lies about its size.
const SHRUNK_MAX: u32 = 100;

impl<'a> Walk<'a> {
    pub(super) fn checkpoint(file: &'a MetadataFile) -> Self {
        let files = std::slice::from_ref(file);
        let mut walk = Self::new(files, Offset::ZERO, None);
        walk.is_checkpoint = true;
        walk.frame = Some(Frame::default());
        walk
    }

    /// Walks the first of `files`, whose first batch has to begin at `next`, behind `epoch`.
    pub(super) const fn segment(
        files: &'a [MetadataFile],
        next: Offset,
        epoch: Option<Epoch>,
    ) -> Self {
        Self::new(files, next, epoch)
    }

    const fn new(files: &'a [MetadataFile], next: Offset, epoch: Option<Epoch>) -> Self {
        let file = &files[0];
        Self {
            files,
            scan: BatchScan::new(&file.file, 0, file.bytes),
            end: file.bytes,
            next,
            epoch,
            is_checkpoint: false,
            frame: None,
            pending: VecDeque::new(),
            budget: SEARCH_BYTES_MAX,
            damages: 0,
            shrunk: 0,
            done: false,
        }
    }

    /// The file.
    #[must_use]
    pub const fn file(&self) -> &'a MetadataFile {
        &self.files[0]
    }

    /// The offset at which the next batch has to begin.
    #[must_use]
    pub const fn next_offset(&self) -> Offset {
        self.next
    }

    /// How many bytes of the file are behind the walk.
    #[must_use]
    pub const fn position(&self) -> u64 {
        self.scan.position()
    }

    fn path(&self) -> &'a Path {
        &self.files[0].path
    }

    fn step(&mut self) -> Result<()> {
        let next = match self.scan.next() {
            Err(error)
                if error.kind() == io::ErrorKind::UnexpectedEof && self.shrunk < SHRUNK_MAX =>
            {
                return self.shrink();
            }
            next => next.context("read", self.path())?,
        };
        match next {
            Next::End => {
                self.done = true;
                if self.frame.is_some_and(|frame| !frame.is_whole()) {
                    self.not_whole(self.end, None, "it ends without a footer");
                }
            }
            Next::Batch(position, batch) => {
                self.check_place(position, batch.header());
                self.check_frame(position, &batch);
                self.next = batch.end_offset();
                self.epoch = Some(batch.epoch());
                self.pending.push_back(Item::Batch { position, batch });
            }
            Next::Bad(position, fault) => self.judge(position, fault)?,
        }
        Ok(())
    }

    /// A process cut the file since it was opened.
    fn shrink(&mut self) -> Result<()> {
        self.shrunk += 1;
        let file = &self.file().file;
        let bytes = file.metadata().context("read", self.path())?.len();
        let position = self.scan.position();
        // A file that grew again in between is what it was: then the same read succeeds.
        self.end = self.end.min(bytes.max(position));
        self.scan = BatchScan::new(file, position, self.end);
        Ok(())
    }

    fn check_place(&mut self, position: u64, header: &BatchHeader) {
        let found = header.base_offset;
        if found != self.next {
            let sentence = format!(
                "{}: the batch at byte {position} begins at offset {found}, but offset {} has to \
                 follow",
                self.path().display(),
                self.next
            );
            self.misplaced(position, *header, DamageKind::Gap, sentence);
        }
        if let Some(epoch) = self.epoch.filter(|epoch| header.epoch < *epoch) {
            let sentence = format!(
                "{}: the batch at byte {position} (offset {found}) has epoch {}, but follows epoch \
                 {epoch}",
                self.path().display(),
                header.epoch
            );
            self.misplaced(position, *header, DamageKind::EpochFalls, sentence);
        }
    }

    fn misplaced(
        &mut self,
        position: u64,
        header: BatchHeader,
        kind: DamageKind,
        sentence: String,
    ) {
        self.tell(Damage {
            path: self.path().to_path_buf(),
            position,
            offset: self.next,
            kind,
            fault: None,
            header: Some(header),
            bytes_left: self.end.saturating_sub(position),
            behind: Some((self.path().to_path_buf(), position, header.base_offset)),
            sentence,
        });
    }

    fn check_frame(&mut self, position: u64, batch: &Batch) {
        let Some(frame) = &mut self.frame else { return };
        let placed = frame.take(batch);
        let named = match self.files[0].role {
            Role::Checkpoint { id } => misnamed(id, batch),
            Role::Segment { .. } => None,
        };
        let found = placed.err().map(str::to_owned);
        if let Some(what) = found.or(named) {
            self.not_whole(position, Some(*batch.header()), &what);
        }
    }

    fn not_whole(&mut self, position: u64, header: Option<BatchHeader>, what: &str) {
        self.frame = None;
        let sentence = format!(
            "{} is not a whole checkpoint: at byte {position} {what}",
            self.path().display()
        );
        self.tell(Damage {
            path: self.path().to_path_buf(),
            position,
            offset: self.next,
            kind: DamageKind::NotWhole,
            fault: None,
            header,
            bytes_left: self.end.saturating_sub(position),
            behind: header.map(|it| (self.path().to_path_buf(), position, it.base_offset)),
            sentence,
        });
    }

    /// Tells of bad bytes and goes on behind them.
    fn judge(&mut self, position: u64, fault: BatchFault) -> Result<()> {
        let pieces: Vec<(&File, u64)> = std::iter::once((&self.file().file, self.end))
            .chain(self.files[1..].iter().map(|it| (&it.file, it.bytes)))
            .collect();
        let behind = find_behind(&pieces, position, self.next, &mut self.budget)
            .context("search", self.path())?;
        let header = self.header_at(position);
        let kind = match behind {
            None if self.is_checkpoint => DamageKind::NotWhole,
            Some(behind) if !behind.torn || self.is_checkpoint => DamageKind::Rot,
            _ => DamageKind::TornTail,
        };
        let bytes_left = self.end - position;
        self.tell(Damage {
            path: self.path().to_path_buf(),
            position,
            offset: self.next,
            kind,
            sentence: self.sentence(position, &fault, kind, behind),
            fault: Some(fault),
            header,
            bytes_left,
            behind: behind.map(|it| (self.files[it.file].path.clone(), it.position, it.offset)),
        });
        match behind {
            Some(behind) if behind.file == 0 && self.budget > 0 => {
                self.scan = BatchScan::new(&self.file().file, behind.position, self.end);
                self.next = behind.offset;
            }
            _ => {
                self.done = true;
                self.frame = None;
            }
        }
        Ok(())
    }

    fn header_at(&self, position: u64) -> Option<BatchHeader> {
        let bytes = (HEADER_BYTES as u64).min(self.end - position);
        let bytes = read_at(&self.file().file, position, bytes).ok()?;
        BatchHeader::parse(&bytes).ok()
    }

    fn sentence(
        &self,
        position: u64,
        fault: &BatchFault,
        kind: DamageKind,
        behind: Option<Behind>,
    ) -> String {
        let path = self.path().display();
        let at = format!("at byte {position} (offset {}) {fault}", self.next);
        let left = self.end - position;
        match (kind, behind) {
            (DamageKind::Rot, Some(it)) => format!(
                "{path} is damaged: {at}; whole batches follow, the first at byte {} of {} (offset \
                 {})",
                it.position,
                self.files[it.file].path.display(),
                it.offset
            ),
            (DamageKind::NotWhole, _) => format!("{path} is not a whole checkpoint: {at}"),
            (_, Some(_)) => format!(
                "{path} ends torn: {at}; pages of the {left} bytes from there were never written"
            ),
            (_, None) => {
                format!("{path} ends torn: {at}; the {left} bytes from there hold no whole batch")
            }
        }
    }

    fn tell(&mut self, damage: Damage) {
        self.damages += 1;
        if self.damages >= DAMAGES_MAX {
            self.done = true;
        }
        self.pending.push_back(Item::Damage(Box::new(damage)));
    }
}

impl Iterator for Walk<'_> {
    type Item = Result<Item>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(item) = self.pending.pop_front() {
                return Some(Ok(item));
            }
            if self.done {
                return None;
            }
            if let Err(fault) = self.step() {
                self.done = true;
                return Some(Err(fault));
            }
        }
    }
}

/// A walk over all segments, each item with the segment that it is in.
#[derive(Debug)]
pub struct LogWalk<'a> {
    /// The segments that are not begun.
    rest: &'a [MetadataFile],
    walk: Option<Walk<'a>>,
}

impl<'a> LogWalk<'a> {
    pub(super) const fn new(segments: &'a [MetadataFile]) -> Self {
        Self {
            rest: segments,
            walk: None,
        }
    }

    /// Begins the next segment, where the one before ended.
    fn begin(&mut self) -> Option<()> {
        let (first, rest) = self.rest.split_first()?;
        let base = match first.role {
            Role::Segment { base } => base,
            Role::Checkpoint { .. } => Offset::ZERO,
        };
        let epoch = self.walk.as_ref().and_then(|walk| walk.epoch);
        let mut walk = Walk::segment(self.rest, base, epoch);
        // What is missing behind bad bytes was told with them.
        let ended = self.walk.as_ref().filter(|walk| !walk.done_early());
        if let Some(next) = ended.map(|walk| walk.next).filter(|next| *next != base) {
            let sentence = format!(
                "{} begins at offset {base}, but the segment before it ends at offset {next}",
                first.path.display()
            );
            walk.tell(Damage {
                path: first.path.clone(),
                position: 0,
                offset: next,
                kind: DamageKind::Gap,
                fault: None,
                header: None,
                bytes_left: first.bytes,
                behind: None,
                sentence,
            });
        }
        self.rest = rest;
        self.walk = Some(walk);
        Some(())
    }
}

impl Walk<'_> {
    /// Whether it ended before the file did.
    const fn done_early(&self) -> bool {
        self.done && self.scan.position() < self.end
    }
}

impl<'a> Iterator for LogWalk<'a> {
    type Item = Result<(&'a MetadataFile, Item)>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(walk) = &mut self.walk
                && let Some(item) = walk.next()
            {
                let file = walk.file();
                return Some(item.map(|item| (file, item)));
            }
            self.begin()?;
        }
    }
}
