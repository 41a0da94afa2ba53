//! Logs that a controller would hardly write, read by Java's own loader of 4.4.0 and by
//! `kraftd state`: both have the same image, or both refuse. One difference stays, and
//! compat/FINDINGS.md says why.

use std::fs;
use std::path::Path;

use bytes::Bytes;
use kraftd::records::batch::{BATCH_BYTES_MAX, Batch, BatchBuilder};
use kraftd::records::{
    AbortTransactionRecord, BeginTransactionRecord, ConfigRecord, EndTransactionRecord, Record,
};

use crate::harness::{Driver, kraftd, run};
use crate::normal::difference;
use crate::shown::java_tree;

/// What follows the log.
enum Odd {
    /// A batch of these values.
    Of(Vec<Vec<u8>>),
    /// A batch without records, which keeps one offset.
    Empty,
}

fn value(record: impl Into<Record>) -> Vec<u8> {
    let record: Record = record.into();
    record.at(0).encode().expect("it can be written")
}

fn begin() -> Vec<u8> {
    value(BeginTransactionRecord::default())
}

fn end() -> Vec<u8> {
    value(EndTransactionRecord::default())
}

fn abort() -> Vec<u8> {
    value(AbortTransactionRecord::default())
}

/// A configuration of a broker.
fn config(broker: usize, text: &str) -> Vec<u8> {
    value(ConfigRecord {
        resource_type: 4,
        resource_name: broker.to_string(),
        name: "log.retention.ms".into(),
        value: Some(text.into()),
        ..ConfigRecord::default()
    })
}

/// As many configurations as a batch may hold.
fn large() -> Vec<Vec<u8>> {
    let mut size = BatchBuilder::data(
        kraftd::types::Offset(0),
        kraftd::types::Epoch(0),
        kraftd::types::Timestamp(0),
    );
    let text = "x".repeat(30_000);
    let mut values = Vec::new();
    loop {
        let next = config(values.len(), &text);
        if size.size_with(None, Some(next.len())) > BATCH_BYTES_MAX {
            return values;
        }
        size.push(None, Some(&next));
        values.push(next);
    }
}

/// What both make of a log.
#[derive(PartialEq)]
enum Made {
    Image,
    Refused,
    /// Images with this difference: `-` is Java's.
    Different(&'static [&'static str]),
}

/// What it is, what follows the log, and what is made of it.
type Case = (&'static str, Vec<Odd>, Made);

fn of(batches: Vec<Vec<Vec<u8>>>) -> Vec<Odd> {
    batches.into_iter().map(Odd::Of).collect()
}

fn cases() -> Vec<Case> {
    let mut cases = transactions();
    cases.extend(bad_transactions_and_records());
    cases
}

fn transactions() -> Vec<Case> {
    use Made::{Different, Image};
    let (one, two, three) = (config(2, "1"), config(2, "2"), config(3, "3"));
    vec![
        (
            "a transaction is left open",
            of(vec![vec![one.clone()], vec![begin(), two.clone()]]),
            Image,
        ),
        (
            "it is left open at its first record",
            of(vec![vec![one.clone(), begin()]]),
            Image,
        ),
        (
            "it goes over three batches and ends",
            of(vec![
                vec![begin(), one.clone()],
                vec![two.clone()],
                vec![three.clone(), end()],
            ]),
            Image,
        ),
        (
            "it begins and ends inside of one batch",
            of(vec![vec![
                one.clone(),
                begin(),
                two.clone(),
                end(),
                three.clone(),
            ]]),
            Image,
        ),
        (
            "records follow an abort in its batch",
            of(vec![
                vec![begin(), one.clone()],
                vec![two.clone(), abort(), three.clone()],
            ]),
            Different(&["-       log.retention.ms:", "-         2"]),
        ),
        (
            "records and another transaction follow an abort",
            of(vec![
                vec![three.clone()],
                vec![begin(), one.clone()],
                vec![abort()],
                vec![two.clone()],
                vec![begin(), config(4, "4"), end()],
            ]),
            Image,
        ),
    ]
}

fn bad_transactions_and_records() -> Vec<Case> {
    use Made::{Image, Refused};
    let (one, two) = (config(2, "1"), config(2, "2"));
    let tagged = [&one[..one.len() - 1], &[1, 99, 2, 7, 7]].concat();
    vec![
        (
            "a transaction begins inside of another",
            of(vec![vec![begin(), one.clone()], vec![begin()]]),
            Refused,
        ),
        (
            "one ends that has not begun",
            of(vec![vec![end()]]),
            Refused,
        ),
        (
            "one is aborted that has not begun",
            of(vec![vec![abort()]]),
            Refused,
        ),
        ("a batch of 8 MiB", of(vec![large()]), Image),
        (
            "a batch without records",
            vec![Odd::Empty, Odd::Of(vec![one.clone()])],
            Refused,
        ),
        (
            "a tag that nobody knows",
            of(vec![vec![tagged], vec![two]]),
            Image,
        ),
        (
            "a type that nobody knows",
            of(vec![vec![vec![1, 99, 0, 0]]]),
            Refused,
        ),
        (
            "a version that nobody knows",
            of(vec![vec![vec![1, 4, 77, 0]]]),
            Refused,
        ),
        (
            "a record without a value",
            of(vec![vec![Vec::new()]]),
            Refused,
        ),
        (
            "bytes behind a record",
            of(vec![vec![[&one[..], &[0]].concat()]]),
            Refused,
        ),
    ]
}

/// The log, and behind it the batches.
fn log(good: &[u8], odd: &[Odd]) -> Vec<u8> {
    let mut rest = Bytes::copy_from_slice(good);
    let mut last = None;
    while let Some(batch) = Batch::take_from(&mut rest).expect("whole batches") {
        last = Some(batch);
    }
    let last = last.expect("batches");
    let (mut next, mut bytes) = (last.end_offset(), good.to_vec());
    for odd in odd {
        let mut batch = BatchBuilder::data(next, last.epoch(), last.max_timestamp());
        let values = match odd {
            Odd::Of(values) => &values[..],
            Odd::Empty => &[Vec::new()],
        };
        values
            .iter()
            .for_each(|value| batch.push(None, Some(value)));
        next = batch.next_offset();
        let mut batch = batch.build().bytes().to_vec();
        if matches!(odd, Odd::Empty) {
            batch.truncate(61);
            batch[8..12].copy_from_slice(&49_i32.to_be_bytes());
            batch[57..61].copy_from_slice(&0_i32.to_be_bytes());
            let crc = crc32c::crc32c(&batch[21..]);
            batch[17..21].copy_from_slice(&crc.to_be_bytes());
        }
        bytes.extend_from_slice(&batch);
    }
    bytes
}

#[test]
fn what_javas_loader_makes_of_odd_logs_kraftd_makes_of_them() {
    let mut driver = Driver::start();
    let dir = tempfile::tempdir().expect("a temporary directory");
    let fixture = "fixtures/4.4.0/lived/dynamic-killed/__cluster_metadata-0";
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join(fixture);
    let name = "00000000000000000000.log";
    let good = fs::read(fixture.join(name)).expect("a fixture");
    let path = dir.path().join(name);
    let mut different = Vec::new();
    for (title, odd, made) in cases() {
        fs::write(&path, log(&good, &odd)).expect("a writable directory");
        let java = driver.try_job(&["states", "shown", "", &format!("@{}", path.display())]);
        let mut command = kraftd();
        command.arg("state").arg(&path);
        let ours = run(command.args(["--json", "--show-secrets"]));
        let both = [java.is_ok(), ours.code == Some(0)];
        let loads = made != Made::Refused;
        if both != [loads, loads] {
            let told = java.err().unwrap_or_default();
            let err = &ours.err;
            different.push(format!(
                "{title}: Java, kraftd: {both:?}\n  {told}\n  {err}"
            ));
            continue;
        }
        let Ok(java) = java else {
            continue;
        };
        let document = serde_json::from_str(&ours.out).expect("JSON");
        // Inside of a transaction Java's image stands before it, while ours tells what was asked.
        let open = ours.err.contains("inside the metadata transaction");
        let place = |line: &String| !(open && line.trim_start().starts_with("offset "));
        let java: Vec<String> = java.into_iter().skip(1).filter(place).collect();
        let ours: Vec<String> = java_tree(&document).into_iter().filter(place).collect();
        let found = difference(&java, &ours);
        let wanted = match made {
            Made::Different(lines) => lines,
            Made::Image | Made::Refused => &[],
        };
        if found.lines().collect::<Vec<_>>() != wanted {
            different.push(format!("{title}: - Java, + kraftd\n{found}"));
        }
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
}
