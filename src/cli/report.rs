//! What the reading commands say beside their result: notes and a progress bar on stderr.

use std::io::{self, BufWriter, Write};
use std::process::ExitCode;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::observe::text::one_line;
use crate::runtime::stderr;

/// Work that is done sooner shows no bar.
const QUIET: Duration = Duration::from_secs(1);

/// A bar on stderr, if that is a terminal, for work that lasts longer than a second.
#[derive(Debug)]
pub(super) struct Progress {
    bar: ProgressBar,
    shown: bool,
}

impl Progress {
    /// Of so many bytes.
    pub(super) fn of_bytes(total: u64) -> Self {
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::hidden());
        if let Ok(style) = ProgressStyle::with_template("{bar:40} {bytes}/{total_bytes} {eta}") {
            bar.set_style(style);
        }
        Self { bar, shown: false }
    }

    /// So many of them are done.
    pub(super) fn at(&mut self, done: u64) {
        self.bar.set_position(done);
        if !self.shown && self.bar.elapsed() > QUIET {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
            self.shown = true;
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Names from files and from the cluster must not move the cursor of a terminal.
fn plain(text: &str) -> String {
    let lines: Vec<String> = text.split('\n').map(one_line).collect();
    lines.join("\n")
}

/// Says something on stderr that does not stand in the way.
pub(super) fn note(text: &str) {
    stderr::say(&format!("kraftd: {}", plain(text)));
}

/// Says a sentence on stderr as it is, for tools whose texts scripts may look for.
pub(super) fn complain(sentence: &str) {
    stderr::say(&plain(sentence));
}

/// Writes to stdout. A reader that went away (`| head`) has what it wanted.
pub(super) fn print(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> ExitCode {
    print_then(ExitCode::SUCCESS, write)
}

/// Writes to stdout; the exit code is then `code`, unless that failed.
fn print_then(code: ExitCode, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> ExitCode {
    let mut out = BufWriter::new(io::stdout().lock());
    match write(&mut out).and_then(|()| out.flush()) {
        Ok(()) => code,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => code,
        Err(error) => super::refuse(&format!("the result cannot be printed: {error}")),
    }
}

/// Writes what was found to stdout; the exit code is then `code`, unless that failed.
pub(super) fn print_found(code: ExitCode, text: &[u8]) -> ExitCode {
    print_then(code, |out| out.write_all(text))
}
