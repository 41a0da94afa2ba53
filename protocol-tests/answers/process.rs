//! A running kraftd: formatted in a directory of its own, started, asked over its socket, killed.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use kafka_protocol::messages::{ApiKey, RequestHeader};
use kafka_protocol::protocol::{Encodable, StrBytes};

use crate::process::command;

pub(crate) const CLUSTER: &str = "MkU3OEVBNTcwNTJENDM2Qg";

/// How long a start or an answer may take on a machine that is busy with other tests.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Kraftd {
    child: Child,
    lines: Receiver<String>,
    pub(crate) port: u16,
    /// Removed when the process is gone.
    _dir: tempfile::TempDir,
}

impl Kraftd {
    /// Node 1, a controller that is its own dynamic quorum, active. `more` are lines of its file.
    pub(crate) fn start(more: &[&str]) -> Self {
        Self::start_as(&[], more)
    }

    /// The same, formatted with arguments of its own.
    pub(crate) fn start_as(format: &[&str], more: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let port = free_port();
        let file = dir.path().join("server.properties");
        let mut lines = vec![
            "process.roles=controller".to_owned(),
            "node.id=1".to_owned(),
            "controller.listener.names=CONTROLLER".to_owned(),
            format!("listeners=CONTROLLER://localhost:{port}"),
            format!("controller.quorum.bootstrap.servers=localhost:{port}"),
            format!("log.dirs={}", dir.path().join("data").display()),
        ];
        lines.extend(more.iter().map(|line| String::from(*line)));
        std::fs::write(&file, lines.join("\n")).unwrap();
        self::format(&file, format);
        let mut child = kraftd()
            .arg(&file)
            .stderr(Stdio::piped())
            .spawn()
            .expect("kraftd is built beside its tests");
        let lines = lines_of(child.stderr.take().expect("stderr is piped"));
        let mut kraftd = Self {
            child,
            lines,
            port,
            _dir: dir,
        };
        kraftd.await_line("active controller in epoch");
        kraftd
    }

    /// Waits until kraftd logs a line with this text.
    pub(crate) fn await_line(&mut self, text: &str) {
        let mut seen = Vec::new();
        loop {
            match self.lines.recv_timeout(PATIENCE) {
                Ok(line) if line.contains(text) => return,
                Ok(line) => seen.push(line),
                Err(error) => panic!("no line '{text}' ({error}); before:\n{}", seen.join("\n")),
            }
        }
    }

    /// Sends one request on a new connection. `None` when the connection is closed instead of an
    /// answer; else the answer's body.
    pub(crate) fn ask(&self, api: ApiKey, version: i16, body: &[u8]) -> Option<Bytes> {
        let mut stream = TcpStream::connect(("localhost", self.port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let header = RequestHeader::default()
            .with_request_api_key(api as i16)
            .with_request_api_version(version)
            .with_correlation_id(7)
            .with_client_id(Some(StrBytes::from_static_str("answers")));
        let mut frame = BytesMut::new();
        frame.put_i32(0);
        header
            .encode(&mut frame, api.request_header_version(version))
            .unwrap();
        frame.put(body);
        let length = i32::try_from(frame.len() - 4).unwrap();
        frame[..4].copy_from_slice(&length.to_be_bytes());
        stream.write_all(&frame).unwrap();
        let mut length = [0; 4];
        match stream.read_exact(&mut length) {
            Ok(()) => {}
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset
                ) =>
            {
                return None;
            }
            Err(error) => panic!("{api:?} version {version}: {error}"),
        }
        let mut answer = vec![0; u32::from_be_bytes(length) as usize];
        stream.read_exact(&mut answer).unwrap();
        let mut answer = Bytes::from(answer);
        assert_eq!(answer.split_to(4).as_ref(), 7_i32.to_be_bytes());
        if api.response_header_version(version) >= 1 {
            assert_eq!(answer.split_to(1).as_ref(), [0], "tags of the header");
        }
        Some(answer)
    }
}

impl Drop for Kraftd {
    fn drop(&mut self) {
        // It may have ended by itself; then the test has failed already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn kraftd() -> Command {
    let mut kraftd = command(env!("CARGO_BIN_EXE_kraftd"));
    kraftd.stdin(Stdio::null()).stdout(Stdio::null());
    kraftd
}

fn format(file: &Path, more: &[&str]) {
    let formatted = kraftd()
        .args(["format", "--standalone", "-t", CLUSTER, "-c"])
        .arg(file)
        .args(more)
        .status()
        .unwrap();
    assert!(formatted.success());
}

fn free_port() -> u16 {
    let taken = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    taken.local_addr().unwrap().port()
}

/// Reads on to the end, so that the process never waits for its log.
fn lines_of(stderr: ChildStderr) -> Receiver<String> {
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stderr).lines().map_while(Result::ok) {
            // The test may have seen enough.
            let _ = sender.send(line);
        }
    });
    lines
}
