//! The helper JVM that does the jobs of many tools: see `Driver.java` in
//! `compat/java/src/kraftd/compat`.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use super::java::Java;

/// The helper JVM. It ends when its stdin does, so also when the test process dies.
pub(crate) struct Driver {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

/// What a command line tool answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ToolOutput {
    pub(crate) out: Vec<String>,
    pub(crate) err: Vec<String>,
    pub(crate) code: i32,
}

impl Driver {
    pub(crate) fn start() -> Self {
        Self::start_on("4.4.0")
    }

    /// With the jars of another release: for jobs that touch only what it has.
    pub(crate) fn start_on(release: &str) -> Self {
        let java = Java {
            release,
            heap_mb: 200,
            logging: "tools",
        };
        let mut command: Command = java.command("kraftd.compat.Driver", &[]);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Clients warn about every moment without a server: those moments are the test.
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|e| panic!("the helper JVM does not start: {e}"));
        let stdin = child.stdin.take().expect("piped");
        let stdout = BufReader::new(child.stdout.take().expect("piped"));
        Self {
            child,
            stdin,
            stdout,
        }
    }

    /// Starts a job; its lines are read by [`Self::next_line`] or [`Self::finish`].
    pub(crate) fn begin(&mut self, words: &[&str]) {
        writeln!(self.stdin, "{}", words.join("\t")).expect("the helper JVM runs");
        self.stdin.flush().expect("the helper JVM runs");
    }

    /// The next line of the running job; none when it is done, an error when it failed.
    pub(crate) fn next_line(&mut self) -> Result<Option<String>, String> {
        let mut line = String::new();
        let read = self
            .stdout
            .read_line(&mut line)
            .expect("the helper JVM runs");
        assert!(read > 0, "the helper JVM ended in the middle of a job");
        let line = line.trim_end_matches(['\r', '\n']);
        if let Some(said) = line.strip_prefix("| ") {
            return Ok(Some(said.to_owned()));
        }
        if line == "ok" {
            return Ok(None);
        }
        Err(line.strip_prefix("failed ").unwrap_or(line).to_owned())
    }

    /// The rest of the running job's lines.
    pub(crate) fn finish(&mut self) -> Result<Vec<String>, String> {
        let mut lines = Vec::new();
        while let Some(line) = self.next_line()? {
            lines.push(line);
        }
        Ok(lines)
    }

    /// Does a job to its end.
    pub(crate) fn try_job(&mut self, words: &[&str]) -> Result<Vec<String>, String> {
        self.begin(words);
        self.finish()
    }

    /// Does a job that must succeed.
    #[track_caller]
    pub(crate) fn job(&mut self, words: &[&str]) -> Vec<String> {
        self.try_job(words)
            .unwrap_or_else(|e| panic!("{words:?}: {e}"))
    }

    /// Runs the main class behind a Kafka script.
    #[track_caller]
    pub(crate) fn tool(&mut self, main: &str, args: &[&str]) -> ToolOutput {
        self.tool_reading(main, None, args)
    }

    /// The same with a file as its stdin.
    #[track_caller]
    pub(crate) fn tool_reading(
        &mut self,
        main: &str,
        stdin: Option<&Path>,
        args: &[&str],
    ) -> ToolOutput {
        let stdin = stdin
            .map(|path| path.display().to_string())
            .unwrap_or_default();
        let words = [&["tool", main, &stdin], args].concat();
        let mut output = ToolOutput {
            out: Vec::new(),
            err: Vec::new(),
            code: -1,
        };
        for line in self.job(&words) {
            match line.split_once(' ') {
                Some(("out", text)) => output.out.push(text.to_owned()),
                Some(("err", text)) => output.err.push(text.to_owned()),
                Some(("exit", code)) => output.code = code.parse().expect("a number"),
                _ => panic!("not a tool's line: {line}"),
            }
        }
        output
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
