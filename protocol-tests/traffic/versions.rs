//! Which version of which API each release speaks to controllers, as a table to read: what a
//! controller that serves 3.9 to 4.4 meets. `GOLDEN=1` writes it anew from the recordings.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use kafka_protocol::messages::{ApiKey, EnvelopeRequest, RequestHeader};
use kafka_protocol::protocol::Decodable;

use super::recording::{Frame, RELEASES, frames};

/// The request that an envelope carries, as (API, version).
fn inside(frame: &Frame) -> (String, i16) {
    let mut body = frame.bytes.clone();
    RequestHeader::decode(&mut body, 2).unwrap();
    let data = EnvelopeRequest::decode(&mut body, 0).unwrap().request_data;
    let number = |at| i16::from_be_bytes([data[at], data[at + 1]]);
    let api = ApiKey::try_from(number(0)).unwrap();
    (format!("{api:?} in an Envelope"), number(2))
}

fn table() -> String {
    let mut rows: BTreeMap<String, BTreeMap<&str, BTreeSet<i16>>> = BTreeMap::new();
    for release in RELEASES {
        for life in ["broker", "voter"] {
            let requests = frames(release, life).into_iter().map(|(frame, _)| frame);
            for frame in requests.filter(|frame| frame.is_request) {
                let mut note = |api, version| {
                    let row: &mut BTreeMap<_, BTreeSet<_>> = rows.entry(api).or_default();
                    row.entry(release).or_default().insert(version);
                };
                if frame.api == "Envelope" {
                    let (api, version) = inside(&frame);
                    note(api, version);
                }
                note(frame.api, frame.version);
            }
        }
    }
    let mut text = format!("{:<44}", "API");
    for release in RELEASES {
        write!(text, "{release:>8}").unwrap();
    }
    text.push('\n');
    for (api, releases) in rows {
        write!(text, "{api:<44}").unwrap();
        for release in RELEASES {
            let versions = releases.get(release).into_iter().flatten();
            let cell: Vec<String> = versions.map(i16::to_string).collect();
            let cell = if cell.is_empty() {
                "-".to_owned()
            } else {
                cell.join(",")
            };
            write!(text, "{cell:>8}").unwrap();
        }
        text.push('\n');
    }
    text
}

#[test]
fn each_release_speaks_the_versions_that_are_told() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("protocol-tests/traffic/versions.txt");
    let table = table();
    if std::env::var_os("GOLDEN").is_some() {
        std::fs::write(&path, &table).unwrap();
    }
    assert_eq!(std::fs::read_to_string(path).unwrap(), table);
}
