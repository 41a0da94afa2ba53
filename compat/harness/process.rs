//! One process under test: its output is read as it comes, and it is killed when dropped.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use super::wait::until;

/// Lines kept for a failure's report and for waits.
const LINES_MAX: usize = 50_000;
/// Lines shown of each process when a test fails.
const LINES_SHOWN: usize = 40;

#[expect(
    clippy::disallowed_methods,
    reason = "the one clock of the harness: limits of waits"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// What a process printed so far.
#[derive(Default)]
struct Output {
    lines: Mutex<VecDeque<String>>,
    more: Condvar,
}

impl Output {
    fn read(self: &Arc<Self>, from: impl Read + Send + 'static) {
        let output = Arc::clone(self);
        thread::spawn(move || {
            for line in BufReader::new(from).split(b'\n').map_while(Result::ok) {
                let line = String::from_utf8_lossy(&line).into_owned();
                let mut lines = output.lines.lock().expect("no reader panics");
                if lines.len() == LINES_MAX {
                    lines.pop_front();
                }
                lines.push_back(line);
                output.more.notify_all();
            }
        });
    }
}

/// A running server. Dropping it kills it, and shows its last lines when the test is failing;
/// `COMPAT_LOGS=DIR` keeps all lines of all servers in files there.
pub(crate) struct Server {
    name: String,
    child: Child,
    output: Arc<Output>,
}

impl Server {
    pub(crate) fn start(name: &str, command: &mut Command) -> Self {
        let command = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command
            .spawn()
            .unwrap_or_else(|e| panic!("{name} does not start: {e}"));
        let output = Arc::new(Output::default());
        output.read(child.stdout.take().expect("piped"));
        output.read(child.stderr.take().expect("piped"));
        Self {
            name: name.to_owned(),
            child,
            output,
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits for a line that contains the text, told since the start.
    #[track_caller]
    pub(crate) fn until_says(&mut self, text: &str) {
        let limit = Duration::from_secs(90);
        let start = now();
        loop {
            let lines = self.output.lines.lock().expect("no reader panics");
            if lines.iter().any(|line| line.contains(text)) {
                return;
            }
            let wait = Duration::from_millis(200);
            drop(
                self.output
                    .more
                    .wait_timeout(lines, wait)
                    .expect("no reader panics"),
            );
            let ended = self.child.try_wait().expect("a child can be waited for");
            assert!(
                ended.is_none(),
                "{} ended with {ended:?} before it said {text:?}",
                self.name
            );
            assert!(
                start.elapsed() < limit,
                "{} did not say {text:?} in {limit:?}",
                self.name
            );
        }
    }

    /// The lines told so far that contain the text.
    pub(crate) fn lines_with(&self, text: &str) -> Vec<String> {
        let lines = self.output.lines.lock().expect("no reader panics");
        lines
            .iter()
            .filter(|line| line.contains(text))
            .cloned()
            .collect()
    }

    /// The last line told so far that contains the text, and what followed it: so many lines at
    /// most.
    pub(crate) fn lines_from(&self, text: &str, count: usize) -> Vec<String> {
        let lines = self.output.lines.lock().expect("no reader panics");
        let at = lines.iter().rposition(|line| line.contains(text));
        let found = at.into_iter().flat_map(|at| lines.iter().skip(at));
        found.take(count).cloned().collect()
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.child
            .try_wait()
            .expect("a child can be waited for")
            .is_none()
    }

    /// SIGKILL, and gone when this returns.
    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("a child can be killed");
        self.child.wait().expect("a child can be waited for");
    }

    /// SIGTERM; waits for the end and tells how it ended and how long that took.
    #[track_caller]
    pub(crate) fn stop(&mut self) -> (ExitStatus, Duration) {
        let start = now();
        let pid = i32::try_from(self.pid())
            .ok()
            .and_then(rustix::process::Pid::from_raw);
        let pid = pid.expect("a child has a pid above zero");
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("a child");
        let status = self.until_ends();
        (status, start.elapsed())
    }

    #[track_caller]
    pub(crate) fn until_ends(&mut self) -> ExitStatus {
        let mut status = None;
        until(
            &format!("the end of {}", self.name),
            Duration::from_secs(60),
            || {
                status = self.child.try_wait().expect("a child can be waited for");
                status.is_some()
            },
        );
        status.expect("the wait ended with one")
    }

    /// Resident memory in bytes.
    pub(crate) fn resident(&self) -> u64 {
        let path = format!("/proc/{}/status", self.pid());
        let status = std::fs::read_to_string(path).expect("the process runs");
        let line = status
            .lines()
            .find(|line| line.starts_with("VmRSS:"))
            .expect("has memory");
        let kib = line
            .split_whitespace()
            .nth(1)
            .and_then(|n| n.parse::<u64>().ok());
        kib.expect("a number of KiB") * 1024
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself: then there is nothing to kill.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Some(dir) = std::env::var_os("COMPAT_LOGS") {
            let lines = self.output.lines.lock().expect("no reader panics");
            let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
            let file = format!("{}-{}.log", self.name.replace(' ', "-"), self.pid());
            let path = std::path::Path::new(&dir).join(file);
            std::fs::write(path, text).expect("COMPAT_LOGS is a writable directory");
        }
        if thread::panicking() {
            let lines = self.output.lines.lock().expect("no reader panics");
            let skipped = lines.len().saturating_sub(LINES_SHOWN);
            eprintln!("--- last lines of {} ---", self.name);
            for line in lines.iter().skip(skipped) {
                eprintln!("{line}");
            }
        }
    }
}

/// How a command that ends by itself ended.
#[derive(Debug)]
pub(crate) struct Ended {
    /// Exit code; none when a signal ended it.
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// Runs a command to its end.
pub(crate) fn run(command: &mut Command) -> Ended {
    let output = command.stdin(Stdio::null()).output();
    let output = output.unwrap_or_else(|e| panic!("{command:?} does not start: {e}"));
    Ended {
        code: output.status.code(),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}
