//! Quorums of several controllers, kraftd's and Java's in all mixtures, each with a Java broker and
//! clients that create topics and set configs all the time, while leaders are killed, stopped,
//! paused and cut off.
//!
//! What is run by default fits beside the other scenarios; `QUORUM=full` (`make quorum`) runs every
//! fault with each kind of node leading in every mixture.

mod faults;
mod judge;
mod rolling;
mod snapshots;

use crate::harness::{Driver, Kind, Quorum, Voters};

/// The reference release.
const JAVA: Kind = Kind::Java("4.4.0");
/// A broker must not be fenced by a leader's absence alone: that is another scenario.
const LINES: [&str; 1] = ["broker.session.timeout.ms=30000"];
/// Between two requests of a client.
const PAUSE_MS: u32 = 40;

/// Whether the complete matrix is asked for.
fn is_full() -> bool {
    match std::env::var("QUORUM").as_deref() {
        Ok("full") => true,
        Ok(other) => panic!("QUORUM={other}: only `full` is known"),
        Err(_) => false,
    }
}

/// A running quorum with its broker and its clients.
struct Cluster {
    quorum: Quorum,
    driver: Driver,
}

impl Cluster {
    #[track_caller]
    fn start(voters: Voters, kinds: &[Kind], lines: &[&str], broker: &'static str) -> Self {
        let lines = [&LINES, lines].concat();
        let mut quorum = Quorum::new(voters, kinds, &lines);
        let format: &[&str] = match broker {
            "3.9.2" => &["-r", "3.9-IV0"],
            _ => &[],
        };
        quorum.start_all(format);
        quorum.start_broker(broker);
        let mut driver = Driver::start();
        quorum.start_load(&mut driver, PAUSE_MS);
        let mut cluster = Self { quorum, driver };
        cluster.until_more_work(2);
        cluster
    }
}
