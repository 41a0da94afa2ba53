//! Reads `fixtures/<release>/traffic/*.tsv`: frames that passed between Java nodes, in order.

use std::collections::HashMap;
use std::path::Path;

use bytes::Bytes;

/// The releases whose traffic is recorded; the last is the one that kraftd follows.
pub(crate) const RELEASES: [&str; 6] = ["3.9.2", "4.0.2", "4.1.2", "4.2.1", "4.3.1", "4.4.0"];

/// One frame, without its length.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    /// The line in the file, from 1.
    pub(crate) line: usize,
    /// What happens meanwhile.
    pub(crate) step: String,
    /// Which connection, in the order in which they were opened.
    pub(crate) connection: u32,
    /// Else it is an answer.
    pub(crate) is_request: bool,
    /// The API, by the name of its messages.
    pub(crate) api: String,
    /// The version of the request.
    pub(crate) version: i16,
    /// What pairs an answer with its request, on one connection.
    pub(crate) correlation: i32,
    /// Header and body.
    pub(crate) bytes: Bytes,
}

/// All frames of a life, each answer with the place of its request among them.
pub(crate) fn frames(release: &str, life: &str) -> Vec<(Frame, Option<usize>)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures");
    let file = format!("traffic/{life}.tsv");
    let text = std::fs::read_to_string(Path::new(folder).join(release).join(file)).unwrap();
    let mut step = String::new();
    let mut frames = Vec::new();
    for (line, text) in (1..).zip(text.lines()) {
        match text.strip_prefix("# ") {
            Some(comment) => step = comment.strip_prefix("step: ").unwrap_or("").to_owned(),
            None => frames.push(frame(line, &step, text)),
        }
    }
    paired(frames)
}

fn paired(frames: Vec<Frame>) -> Vec<(Frame, Option<usize>)> {
    let mut asked = HashMap::new();
    let frames = frames.into_iter().enumerate().map(|(at, frame)| {
        let key = (frame.connection, frame.correlation);
        let request = if frame.is_request {
            asked.insert(key, at);
            None
        } else {
            let request = asked.remove(&key);
            Some(request.unwrap_or_else(|| panic!("line {} answers nothing", frame.line)))
        };
        (frame, request)
    });
    frames.collect()
}

fn frame(line: usize, step: &str, text: &str) -> Frame {
    let cells: Vec<_> = text.split('\t').collect();
    let [_, connection, _, way, api, version, correlation, hex] = cells[..] else {
        panic!("line {line} has {} columns", cells.len());
    };
    Frame {
        line,
        step: step.to_owned(),
        connection: connection.parse().unwrap(),
        is_request: way == ">",
        api: api.to_owned(),
        version: version.parse().unwrap(),
        correlation: correlation.parse().unwrap(),
        bytes: unhex(hex),
    }
}

fn unhex(text: &str) -> Bytes {
    let digit = |byte: u8| (byte as char).to_digit(16).unwrap() as u8;
    let pairs = text.as_bytes().chunks(2);
    pairs
        .map(|pair| digit(pair[0]) << 4 | digit(pair[1]))
        .collect()
}
