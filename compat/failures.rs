//! Brokers fail, come back, and are told who is to lead: three real brokers under the controller
//! under test.

mod cluster;

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use self::cluster::{Cluster, SESSION};
use crate::harness::until;

const ELECT: &str = "org.apache.kafka.tools.LeaderElectionCommand";
const REASSIGN: &str = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand";
const RECORDS: &str = "600";

/// Partitions of three replicas, each broker first in two of them.
const MOVES: &str = "2,3,4;3,4,2;4,2,3;2,4,3;3,2,4;4,3,2";

#[test]
fn brokers_die_stop_lose_a_directory_and_come_back_and_leaders_move() {
    let mut cluster = Cluster::start();
    let address = cluster.address();
    let driver = &mut cluster.driver;
    driver.job(&["create-assigned", &address, "moves", MOVES]);
    driver.job(&["create-assigned", &address, "half", "3,4"]);
    driver.job(&["produce", &address, "moves", RECORDS, "idempotent"]);
    driver.job(&["produce", &address, "half", RECORDS, "idempotent"]);

    a_killed_broker_loses_its_leaderships(&mut cluster);
    a_move_to_a_dead_broker_is_listed_and_called_off(&mut cluster);
    cluster.start_broker(2);
    all_in_sync(&mut cluster, "moves");
    a_move_to_a_living_broker_completes(&mut cluster);
    preferred_leaders_are_elected(&mut cluster);
    a_broker_that_stops_hands_over_first(&mut cluster);
    a_lost_directory_costs_its_partitions_only(&mut cluster);
    leadership_goes_back_by_itself(&mut cluster);

    let address = cluster.address();
    cluster.driver.job(&["consume", &address, "moves", RECORDS]);
}

#[test]
fn partitions_without_a_leader_get_one_from_the_eligible_or_uncleanly() {
    let mut cluster = Cluster::start();
    let address = cluster.address();
    let driver = &mut cluster.driver;
    let two_in_sync = "min.insync.replicas=2";
    driver.job(&["create-assigned", &address, "elr", "2,3,4", two_in_sync]);
    driver.job(&["create-assigned", &address, "asked", "2,4"]);
    driver.job(&["create-assigned", &address, "allowed", "2,4"]);
    driver.job(&["produce", &address, "elr", RECORDS, "idempotent"]);

    cluster.stop_broker(4);
    // Two are enough in sync: who left has no claim.
    cluster.until_rows("4 leaves the ISR", "elr", |row| {
        row.isr == [2, 3] && row.elr.is_empty()
    });
    cluster.stop_broker(3);
    cluster.until_rows("3 stays eligible", "elr", |row| {
        row.isr == [2] && row.elr == [3] && row.leader == Some(2)
    });
    cluster.stop_broker(2);

    cluster.start_broker(4);
    cluster.until_rows("nobody is in sync", "elr", |row| {
        row.leader.is_none() && row.isr.is_empty() && row.elr == [2, 3]
    });
    for topic in ["asked", "allowed"] {
        cluster.until_rows("2 alone is eligible", topic, |row| {
            row.leader.is_none() && row.elr == [2]
        });
    }
    let args = [
        "--election-type",
        "unclean",
        "--topic",
        "asked",
        "--partition",
        "0",
    ];
    let told = cluster.tool(ELECT, &args);
    assert!(
        told.contains("Successfully completed leader election (UNCLEAN) for partitions asked-0"),
        "{told}"
    );
    cluster.until_rows("4 leads asked", "asked", |row| {
        row.leader == Some(4) && row.isr == [4] && row.elr.is_empty()
    });
    let address = cluster.address();
    let allow = "unclean.leader.election.enable=true";
    cluster
        .driver
        .job(&["alter", &address, "TOPIC", "allowed", allow]);
    cluster.until_rows("4 leads allowed", "allowed", |row| {
        row.leader == Some(4) && row.isr == [4]
    });
    let rows = cluster.rows("elr").expect("broker 4 runs");
    assert!(rows[0].leader.is_none(), "4 has no claim: {rows:?}");

    cluster.start_broker(3);
    cluster.until_rows("3 leads, from the eligible", "elr", |row| {
        row.leader == Some(3) && row.isr.contains(&3)
    });
    cluster.start_broker(2);
    for topic in ["elr", "asked", "allowed"] {
        all_in_sync(&mut cluster, topic);
    }
    let address = cluster.address();
    cluster.driver.job(&["consume", &address, "elr", RECORDS]);
}

#[track_caller]
fn all_in_sync(cluster: &mut Cluster, topic: &str) {
    cluster.until_rows("all replicas are in sync", topic, |row| {
        row.is_all_in_sync() && row.elr.is_empty()
    });
}

fn a_killed_broker_loses_its_leaderships(cluster: &mut Cluster) {
    cluster.kill_broker(2);
    let took = cluster.until_rows("nobody is led by 2", "moves", |row| {
        row.leader.is_some_and(|leader| leader != 2) && !row.isr.contains(&2)
    });
    println!("killed: leaders moved after {took:?} with a session of {SESSION:?}");
    let limit = SESSION + Duration::from_secs(10);
    assert!(took < limit, "{took:?}");
}

/// The tool refuses a target that is not alive, so that the move itself is asked for directly.
fn a_move_to_a_dead_broker_is_listed_and_called_off(cluster: &mut Cluster) {
    let address = cluster.address();
    cluster
        .driver
        .job(&["reassign", &address, "half", "0", "3,2"]);
    let listed = cluster.tool(REASSIGN, &["--list"]);
    let expected = "half-0: replicas: 3,2,4. adding: 2. removing: 4.";
    assert!(listed.contains(expected), "{listed}");
    let plan = plan(cluster, "3,2");
    let cancelled = cluster.tool(
        REASSIGN,
        &[
            "--cancel",
            "--reassignment-json-file",
            &plan,
            "--preserve-throttles",
        ],
    );
    assert!(
        cancelled.contains("Successfully cancelled partition reassignment for: half-0"),
        "{cancelled}"
    );
    let listed = cluster.tool(REASSIGN, &["--list"]);
    assert!(
        listed.contains("No partition reassignments found."),
        "{listed}"
    );
    cluster.until_rows("half is where it was", "half", |row| row.replicas == [3, 4]);
}

fn plan(cluster: &Cluster, replicas: &str) -> String {
    let text = format!(
        r#"{{"version":1,"partitions":[{{"topic":"half","partition":0,"replicas":[{replicas}]}}]}}"#
    );
    cluster.file("plan.json", &text)
}

fn a_move_to_a_living_broker_completes(cluster: &mut Cluster) {
    let plan = plan(cluster, "2,3");
    let file = ["--reassignment-json-file", &plan];
    cluster.tool(REASSIGN, &[&["--execute"], &file[..]].concat());
    cluster.until_rows("half has moved", "half", |row| {
        row.replicas == [2, 3] && row.isr == [2, 3]
    });
    let verified = cluster.tool(REASSIGN, &[&["--verify"], &file[..]].concat());
    assert!(
        verified.contains("Reassignment of partition half-0 is completed."),
        "{verified}"
    );
}

fn preferred_leaders_are_elected(cluster: &mut Cluster) {
    let rows = cluster.rows("moves").expect("all brokers run");
    let away = rows.iter().filter(|row| !row.is_led_by_preferred()).count();
    assert_eq!(away, 2, "those that 2 is first of: {rows:?}");
    let args = ["--election-type", "preferred", "--all-topic-partitions"];
    let told = cluster.tool(ELECT, &args);
    assert!(
        told.contains("Successfully completed leader election (PREFERRED) for partitions"),
        "{told}"
    );
    cluster.until_rows("the first replicas lead", "moves", |row| {
        row.is_led_by_preferred() && row.is_all_in_sync()
    });
}

fn a_broker_that_stops_hands_over_first(cluster: &mut Cluster) {
    let took = cluster.stop_broker(3);
    println!("stopped: a controlled shutdown of {took:?}");
    // No session has to end: when the process is gone, its leaderships are.
    let moved = cluster.until_rows("nobody is led by 3", "moves", |row| {
        row.leader.is_some_and(|leader| leader != 3) && !row.isr.contains(&3)
    });
    println!("stopped: leaders moved {moved:?} after the end");
    assert!(moved < SESSION, "{moved:?}");
    cluster.start_broker(3);
    all_in_sync(cluster, "moves");
}

/// As Kafka's own tests do it: the directory turns into a file. The first directory is also that of
/// the broker's metadata log, without which it cannot live.
fn a_lost_directory_costs_its_partitions_only(cluster: &mut Cluster) {
    let lost = cluster.log_dir(4, 'b');
    let entries = fs::read_dir(&lost).expect("a directory");
    let names = entries.map(|entry| entry.expect("readable").file_name());
    let names: Vec<String> = names
        .map(|name| name.to_string_lossy().into_owned())
        .collect();
    let there: BTreeSet<i32> = names
        .iter()
        .filter_map(|name| name.strip_prefix("moves-")?.parse().ok())
        .collect();
    assert!(
        (1..6).contains(&there.len()),
        "both directories have partitions: {names:?}"
    );
    // The broker may write a file in between.
    until("the directory is gone", Duration::from_secs(10), || {
        fs::remove_dir_all(&lost).is_ok() && fs::write(&lost, "").is_ok()
    });
    let took = cluster.until_rows("4 lost what is there", "moves", |row| {
        let is_there = there.contains(&row.index);
        row.leader.is_some()
            && row.isr.contains(&4) != is_there
            && !(is_there && row.leader == Some(4))
    });
    println!("directory lost: leaders moved after {took:?}");
    cluster.kill_broker(4);
    fs::remove_file(&lost).expect("it is a file now");
    cluster.format(4);
    cluster.start_broker(4);
    all_in_sync(cluster, "moves");
}

fn leadership_goes_back_by_itself(cluster: &mut Cluster) {
    let rows = cluster.rows("moves").expect("all brokers run");
    assert!(
        rows.iter().any(|row| !row.is_led_by_preferred()),
        "{rows:?}"
    );
    cluster.restart_controller_with(
        "auto.leader.rebalance.enable=true\nleader.imbalance.check.interval.seconds=1",
    );
    cluster.until_rows("the first replicas lead again", "moves", |row| {
        row.is_led_by_preferred() && row.is_all_in_sync()
    });
}
