//! One metadata directory, two owners: kraftd and Java's controller take turns on it while the
//! same broker goes on.

use std::time::Duration;

use crate::harness::{Broker, Controller, Driver, Kind, Setup, until};

const ROUNDS: usize = 5;

#[test]
fn a_directory_of_kraftds_goes_to_java_and_back_five_times() {
    take_turns(Kind::under_test(), Kind::Java("4.4.0"));
}

#[test]
fn a_directory_of_javas_goes_to_kraftd_and_back_five_times() {
    take_turns(Kind::Java("4.4.0"), Kind::under_test());
}

fn take_turns(first: Kind, second: Kind) {
    let setup = Setup::new();
    setup.format(first, &[]);
    let mut controller = setup.start_controller(first);
    let mut broker = setup.start_broker("4.4.0");
    let mut driver = Driver::start();
    let mut known = add(&setup, &mut driver, &format!("{first:?}-0"), 1);
    for round in 1..=ROUNDS {
        for kind in [second, first] {
            // Every other round ends without warning.
            hand_over(&mut controller, round % 2 == 0);
            controller = setup.start_controller(kind);
            let count = known.len();
            driver.job(&["led", &setup.broker_address(), &count.to_string()]);
            let seen = driver.job(&["topics", &setup.broker_address()]);
            assert_eq!(
                seen, known,
                "round {round}: {kind:?} sees what the other left"
            );
            known = add(&setup, &mut driver, &format!("{kind:?}-{round}"), count + 1);
        }
    }
    assert_alive(&mut broker);
    assert_eq!(known.len(), 1 + 2 * ROUNDS);
}

fn hand_over(controller: &mut Controller, kill: bool) {
    if kill {
        controller.server.kill();
    } else {
        controller.server.stop();
    }
}

/// Creates a topic with a config, changes the config, and tells all topics that there are then.
fn add(setup: &Setup, driver: &mut Driver, name: &str, count: usize) -> Vec<String> {
    let name: String = name
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || *c == '-')
        .collect();
    let (address, partitions) = (setup.broker_address(), (count % 4 + 1).to_string());
    driver.job(&["create", &address, &name, &partitions, "retention.ms=60000"]);
    let change = format!("segment.bytes={}", 2_000_000 + count);
    driver.job(&["alter", &address, "TOPIC", &name, &change]);
    driver.job(&["led", &address, &count.to_string()]);
    // The broker applies the change a moment after it is acknowledged.
    let mut topics = Vec::new();
    until(
        "the broker knows the change",
        Duration::from_secs(30),
        || {
            topics = driver.job(&["topics", &address]);
            topics
                .iter()
                .any(|row| row.starts_with(&name) && row.ends_with(&change))
        },
    );
    topics
}

fn assert_alive(broker: &mut Broker) {
    assert!(broker.server.is_running(), "the broker went through it all");
    let fatal = broker.server.lines_with("FATAL");
    assert!(fatal.is_empty(), "{fatal:?}");
}
