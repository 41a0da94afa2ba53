//! What Java brokers said to a Java controller in their recorded lives, said again to a running
//! kraftd: each answer is compared with Java's, and at the end the metadata log with Java's log,
//! record by record.
//!
//! Two clusters name some things differently: offsets and with them broker epochs, topic ids.
//! [`Names`] replaces them, in the requests by kraftd's, in its answers and records by the recorded
//! ones. Everything else that may differ is listed with its reason in [`LEFT_OUT`],
//! [`DIFFERENCES`] and in `shown`.

mod log;
mod names;
mod recording;
mod replay;
mod shown;
mod versions;

use std::collections::BTreeSet;

use recording::{RELEASES, frames};
use replay::Replay;

/// Where the replay of a broker's life ends: what comes then waits for a broker's session to end.
const REPLAYED_UNTIL: &str = "broker 3 is killed and starts again";

/// Requests that are not sent again.
const LEFT_OUT: [(&str, &str); 2] = [
    (
        "ControllerRegistration",
        "Java's controller registers itself, and so does kraftd",
    ),
    (
        "Fetch",
        "polls follow the clock: only those that look for the leader are sent, and the whole log \
         is compared instead",
    ),
];

/// (API, releases, why the answer is another).
const DIFFERENCES: &[(&str, &[&str], &str)] = &[(
    "UpdateFeatures",
    &["3.9.2", "4.0.2", "4.1.2", "4.2.1", "4.3.1"],
    "the refusal names the levels of 4.4.0; and since 4.0 one wrong level refuses all (KIP-1022)",
)];

/// The metadata.version that a release formats with.
fn metadata_version(release: &str) -> &'static str {
    match release {
        "3.9.2" => "3.9-IV0",
        "4.0.2" => "4.0-IV3",
        "4.1.2" => "4.1-IV1",
        "4.2.1" => "4.2-IV1",
        "4.3.1" => "4.3-IV0",
        "4.4.0" => "4.4-IV2",
        other => panic!("{other} was not recorded before: it needs a line here"),
    }
}

fn replayed(release: &str) {
    let mut replay = Replay::start(release, metadata_version(release));
    let mut wrong = Vec::new();
    let frames = frames(release, "broker")
        .into_iter()
        .map(|(frame, _)| frame);
    for frame in frames.take_while(|frame| frame.step != REPLAYED_UNTIL) {
        if frame.is_request {
            replay.request(&frame, &mut wrong);
        }
    }
    wrong.extend(replay.log_differences());
    assert!(
        wrong.is_empty(),
        "{release}: {} differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    let served: BTreeSet<&str> = replay.answered.iter().map(String::as_str).collect();
    for api in [
        "AllocateProducerIds",
        "AlterClientQuotas",
        "AlterPartition",
        "AlterPartitionReassignments",
        "AlterUserScramCredentials",
        "AssignReplicasToDirs",
        "BrokerHeartbeat",
        "BrokerRegistration",
        "CreatePartitions",
        "CreateTopics",
        "DeleteTopics",
        "ElectLeaders",
        "Fetch",
        "IncrementalAlterConfigs",
        "ListPartitionReassignments",
        "UpdateFeatures",
    ] {
        assert!(served.contains(api), "{api} was not asked");
    }
}

/// One release a thread: each waits some seconds for a broker's session to end.
#[test]
fn brokers_of_every_release_hear_from_kraftd_what_they_heard_from_java() {
    std::thread::scope(|scope| {
        for release in RELEASES {
            scope.spawn(move || replayed(release));
        }
    });
}
