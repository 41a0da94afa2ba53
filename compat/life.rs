//! A broker's whole life with the controller under test.

use std::fs;
use std::time::Duration;

use crate::harness::{Driver, Kind, Release, Setup};

const RECORDS: usize = 10_000;

#[test]
fn broker_4_4_0_lives_its_whole_life() {
    whole_life("4.4.0", &[]);
}

#[test]
fn broker_3_9_2_lives_its_whole_life_at_metadata_version_3_9() {
    whole_life("3.9.2", &["--release-version", "3.9"]);
}

fn whole_life(release: Release, format: &[&str]) {
    let kind = Kind::under_test();
    let setup = Setup::new();
    setup.format(kind, format);
    let mut controller = setup.start_controller(kind);
    let broker = setup.start_broker(release);
    let mut driver = Driver::start();
    let address = setup.broker_address();

    // Fifty topics of 1 to 12 partitions; the controller dies in the middle of it.
    driver.begin(&["create-series", &address, "topic-", "50"]);
    let mut acknowledged = Vec::new();
    while acknowledged.len() < 20 {
        acknowledged.push(
            driver
                .next_line()
                .expect("creating goes on")
                .expect("50 topics"),
        );
    }
    controller.server.kill();
    let mut controller = setup.start_controller(kind);
    acknowledged.extend(
        driver
            .finish()
            .expect("the other topics are created after the restart"),
    );
    assert_eq!(acknowledged.len(), 50);
    driver.job(&["led", &address, "50"]);
    let topics = driver.job(&["topics", &address]);
    for (i, name) in (0..).zip(&acknowledged) {
        let partitions = (i % 12 + 1).to_string();
        let row = topics
            .iter()
            .find(|row| row.split(' ').next() == Some(name));
        let row = row.unwrap_or_else(|| panic!("acknowledged but lost: {name}"));
        assert_eq!(row.split(' ').nth(2), Some(partitions.as_str()), "{row}");
    }

    console_round_trip(&setup, &mut driver);
    let count = RECORDS.to_string();
    driver.job(&["produce", &address, "topic-3", &count, "plain"]);
    driver.job(&["consume", &address, "topic-3", &count]);
    driver.job(&["produce", &address, "topic-12", &count, "idempotent"]);
    driver.job(&["consume", &address, "topic-12", &count]);

    // A controlled shutdown finishes at once: one heartbeat interval is two seconds.
    let took = broker.shut_down();
    assert!(
        took < Duration::from_secs(8),
        "controlled shutdown took {took:?}"
    );
    let broker = setup.start_broker(release);
    driver.job(&["led", &address, "50"]);
    drop(broker);
    let (status, _) = controller.server.stop();
    assert!(
        matches!(status.code(), Some(0 | 143)),
        "an orderly stop ends with {status}"
    );
}

/// The console producer reads lines from a file, the console consumer gives them back.
fn console_round_trip(setup: &Setup, driver: &mut Driver) {
    let lines: Vec<String> = (0..RECORDS).map(|i| format!("line-{i:05}")).collect();
    let input = setup.path("lines.txt");
    fs::write(&input, lines.join("\n") + "\n").expect("a writable directory");
    let address = setup.broker_address();
    let args = ["--bootstrap-server", &address, "--topic", "topic-1"];
    let producer = "org.apache.kafka.tools.ConsoleProducer";
    let sent = driver.tool_reading(producer, Some(&input), &args);
    assert_eq!(sent.code, 0, "{sent:?}");
    let count = RECORDS.to_string();
    let more = [
        "--from-beginning",
        "--max-messages",
        &count,
        "--timeout-ms",
        "60000",
    ];
    let consumer = "org.apache.kafka.tools.consumer.ConsoleConsumer";
    let got = driver.tool(consumer, &[args.as_slice(), &more].concat());
    assert_eq!(got.out, lines, "what came out is what went in, in order");
}
