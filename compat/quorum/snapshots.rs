//! Controllers that are behind the beginning of the leader's log, or that have nothing, catch up by
//! FetchSnapshot, from kraftd and from Java.
//!
//! Limits are so small that this takes seconds. Java looks at retention once a minute, so only
//! kraftd's log is waited for to begin above 0; who has nothing is sent a snapshot all the same.

use std::fs;
use std::time::Duration;

use super::faults::Fault;
use super::{Cluster, JAVA};
use crate::harness::{Kind, Quorum, Voters, until};

const LIMITS: [&str; 6] = [
    "internal.metadata.log.segment.bytes=12288",
    "internal.metadata.delete.delay.millis=1000",
    "metadata.log.max.record.bytes.between.snapshots=6000",
    "metadata.max.retention.bytes=40000",
    "metadata.max.idle.interval.ms=40",
    "metadata.log.max.snapshot.interval.ms=0",
];
/// FetchSnapshot, by its API key.
const FETCH_SNAPSHOT: i16 = 59;
/// Java's look at retention included.
const PATIENCE: Duration = Duration::from_secs(120);

#[test]
fn wiped_and_lagging_voters_catch_up_by_a_snapshot_of_either_kind() {
    let kraftd = Kind::under_test();
    let kinds = [kraftd, kraftd, JAVA];
    let mut cluster = Cluster::start(Voters::Static, &kinds, &LIMITS, "4.4.0");
    let java = 3;
    let leader = cluster.until_leads_anew(kraftd);
    let wiped = 3 - leader;
    // Cut off, it goes on trying; what it lacks is no longer in the leader's log when it is back.
    cluster.quorum.network.cut(java);
    cluster.until_log_moved_on(leader);
    cluster.expect_snapshot_fetched(java, leader, |quorum| quorum.network.heal());
    let wipe = |quorum: &mut Quorum| {
        quorum.kill(wiped);
        quorum.wipe(wiped);
        quorum.start(wiped);
    };
    cluster.expect_snapshot_fetched(wiped, leader, wipe);
    let leader = cluster.until_leads(JAVA);
    cluster.expect_snapshot_fetched(wiped, leader, wipe);
    cluster.judge();
}

#[test]
fn new_observers_catch_up_by_a_snapshot_of_kraftds() {
    let kraftd = Kind::under_test();
    let mut cluster = Cluster::start(Voters::Dynamic, &[kraftd; 3], &LIMITS, "4.4.0");
    let leader = cluster.until_leads_anew(kraftd);
    cluster.until_log_moved_on(leader);
    for (kind, observer) in [(kraftd, 4), (JAVA, 5)] {
        cluster.expect_snapshot_fetched(observer, leader, |quorum| {
            assert_eq!(quorum.start_observer(kind), observer);
        });
    }
    cluster.judge();
}

impl Cluster {
    /// Waits for another leader of a kind than the one that the broker began with: for a minute
    /// after somebody fetched a snapshot, kraftd lets go of nothing.
    #[track_caller]
    fn until_leads_anew(&mut self, kind: Kind) -> i32 {
        let first = self.quorum.until_led(&[]).leader;
        self.lose_leader(first, Fault::CutOff, kind);
        self.until_leads(kind)
    }

    /// Waits until the leader's log begins above what is committed now.
    #[track_caller]
    fn until_log_moved_on(&mut self, leader: i32) {
        let committed = self.quorum.until_led(&[]).high_watermark;
        let dir = self.quorum.metadata_dir(leader);
        until("the leader's log begins later", PATIENCE, || {
            let entries = fs::read_dir(&dir).expect("a metadata directory");
            let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
            let bases = names.filter_map(|name| name.strip_suffix(".log")?.parse::<i64>().ok());
            bases.min().is_some_and(|base| base > committed)
        });
    }

    /// A node catches up with a leader by a snapshot, once something was done.
    #[track_caller]
    fn expect_snapshot_fetched(&mut self, node: i32, leader: i32, done: impl Fn(&mut Quorum)) {
        let asked = |quorum: &Quorum| quorum.network.requests(node, leader, FETCH_SNAPSHOT);
        let before = asked(&self.quorum);
        done(&mut self.quorum);
        self.quorum.until_caught_up();
        let fetched = asked(&self.quorum) - before;
        assert!(fetched > 0, "{node} asked {leader} for no snapshot");
        self.until_more_work(2);
    }
}
