//! One fault after the other hits the leader, with each kind of node leading in turn.

use std::collections::BTreeSet;
use std::time::Duration;

use super::{Cluster, JAVA, is_full};
use crate::harness::{Kind, Voters, now, until};

/// What happens to the leader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fault {
    /// SIGKILL, and a start afterwards.
    Killed,
    /// SIGTERM, and a start afterwards.
    Stopped,
    /// SIGSTOP, and SIGCONT afterwards.
    Paused,
    /// Nothing gets from it or to it.
    CutOff,
    /// What it says is lost.
    Mute,
    /// What others say to it is lost.
    Deaf,
}

use Fault::{CutOff, Deaf, Killed, Mute, Paused, Stopped};

const ALL: [Fault; 6] = [Killed, Stopped, Paused, CutOff, Mute, Deaf];
/// Time for an election in which the others may not stand, before they may.
const ALONE: Duration = Duration::from_secs(5);
/// For everything that follows a fault, on a machine that is busy with other tests.
const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn two_kraftd_and_one_java_controller_lose_their_leader_in_every_way() {
    let kraftd = Kind::under_test();
    let plan: [(Kind, &[Fault]); 2] = [
        (kraftd, &[Killed, Paused, Mute]),
        (JAVA, &[Stopped, CutOff]),
    ];
    run(Voters::Static, &[kraftd, kraftd, JAVA], "4.4.0", &plan);
}

#[test]
fn one_kraftd_and_two_java_controllers_lose_their_leader_in_every_way() {
    let kraftd = Kind::under_test();
    let plan: [(Kind, &[Fault]); 2] = [
        (kraftd, &[Stopped, CutOff, Deaf]),
        (JAVA, &[Killed, Paused]),
    ];
    run(Voters::Dynamic, &[kraftd, JAVA, JAVA], "4.4.0", &plan);
}

#[test]
fn three_kraftd_controllers_lose_their_leader_in_every_way() {
    let kraftd = Kind::under_test();
    run(Voters::Dynamic, &[kraftd; 3], "4.4.0", &[(kraftd, &ALL)]);
}

/// 3.9 knows no pre-vote.
#[test]
fn a_kraftd_controller_among_those_of_3_9_2_loses_and_takes_the_lead() {
    let (kraftd, java) = (Kind::under_test(), Kind::Java("3.9.2"));
    let plan: [(Kind, &[Fault]); 2] = [(kraftd, &[Killed, CutOff]), (java, &[Stopped, Mute])];
    run(Voters::Static, &[kraftd, java, java], "3.9.2", &plan);
}

/// Runs the faults of a plan, each while a node of its kind leads, and judges what is left.
fn run(voters: Voters, kinds: &[Kind], broker: &'static str, plan: &[(Kind, &[Fault])]) {
    let mut pending: BTreeSet<(usize, Fault)> = BTreeSet::new();
    let place = |kind: Kind| kinds.iter().position(|it| *it == kind);
    for (kind, faults) in plan {
        let faults = if is_full() { &ALL } else { *faults };
        let place = place(*kind).expect("a kind of this quorum");
        pending.extend(faults.iter().map(|fault| (place, *fault)));
    }
    let mut cluster = Cluster::start(voters, kinds, &[], broker);
    // A leader of a kind that nothing is left for costs a move.
    let mut moves = 2 * pending.len();
    while let Some((wanted, _)) = pending.first().copied() {
        let leader = cluster.quorum.until_led(&[]).leader;
        let leads = place(cluster.quorum.kind(leader)).expect("a kind of this quorum");
        let of_it = pending.iter().find(|(kind, _)| *kind == leads).copied();
        let fault = match of_it {
            Some(found) => {
                pending.remove(&found);
                found.1
            }
            None => {
                assert!(moves > 0, "{:?} does not come to lead", kinds[wanted]);
                moves -= 1;
                CutOff
            }
        };
        let next = pending.first().map_or(leads, |(kind, _)| *kind);
        cluster.lose_leader(leader, fault, kinds[next]);
    }
    cluster.judge();
}

impl Cluster {
    /// Takes the lead from others until a node of this kind has it; gives its id.
    #[track_caller]
    pub(super) fn until_leads(&mut self, kind: Kind) -> i32 {
        for _ in 0..8 {
            let leader = self.quorum.until_led(&[]).leader;
            if self.quorum.kind(leader) == kind {
                return leader;
            }
            self.lose_leader(leader, CutOff, kind);
        }
        panic!("{kind:?} does not come to lead");
    }

    /// The leader is lost, the others go on, it comes back. A node of a kind is helped to be next.
    #[track_caller]
    pub(super) fn lose_leader(&mut self, leader: i32, fault: Fault, next: Kind) {
        let quorum = &mut self.quorum;
        let others: Vec<i32> = quorum
            .ids()
            .into_iter()
            .filter(|id| *id != leader)
            .collect();
        let (wanted, unwanted): (Vec<i32>, Vec<i32>) =
            others.into_iter().partition(|id| quorum.kind(*id) == next);
        // Without pre-votes, who cannot be elected raises epochs and holds the others up.
        let knows_pre_vote = !quorum
            .ids()
            .iter()
            .any(|id| quorum.kind(*id) == Kind::Java("3.9.2"));
        if !wanted.is_empty() && knows_pre_vote {
            quorum.network.bar(unwanted);
        }
        let start = now();
        match fault {
            Killed => quorum.kill(leader),
            Stopped => quorum.stop(leader),
            Paused => quorum.pause(leader),
            CutOff => quorum.network.cut(leader),
            Mute => quorum.network.mute(leader),
            Deaf => quorum.network.deafen(leader),
        }
        let mut found = None;
        until("another leader", PATIENCE, || {
            if start.elapsed() > ALONE {
                quorum.network.bar([]);
            }
            let view = quorum.view();
            found = view.filter(|it| it.leader != leader && it.high_watermark >= 0);
            found.is_some()
        });
        let (view, elected) = (found.expect("the wait ended with one"), start.elapsed());
        quorum.network.bar([]);
        self.until_broker_works(2);
        let worked = start.elapsed();
        let quorum = &mut self.quorum;
        match fault {
            Killed | Stopped => quorum.start(leader),
            Paused => quorum.go_on(leader),
            CutOff | Mute | Deaf => quorum.network.heal(),
        }
        quorum.until_caught_up();
        let caught_up = start.elapsed();
        self.until_more_work(1);
        let quorum = &self.quorum;
        eprintln!(
            "{:?} {leader} {fault:?}: {:?} {} leads epoch {} after {elected:?}, clients go on \
             after {worked:?}, all have caught up after {caught_up:?}, both clients after {:?}",
            quorum.kind(leader),
            quorum.kind(view.leader),
            view.leader,
            view.epoch,
            start.elapsed(),
        );
    }

    /// Waits until each client has had so many more requests acknowledged.
    #[track_caller]
    pub(super) fn until_more_work(&mut self, more: usize) {
        self.until_work_done(|now, then| {
            now.iter().zip(then).all(|(now, then)| *now >= then + more)
        });
    }

    /// Waits until so many more requests were acknowledged through the broker.
    #[track_caller]
    fn until_broker_works(&mut self, more: usize) {
        self.until_work_done(|now, then| now[0] >= then[0] + more);
    }

    #[track_caller]
    fn until_work_done(&mut self, is_enough: impl Fn(&[usize], &[usize]) -> bool) {
        let then = self.work_done();
        let mut last = then.clone();
        let start = now();
        while !is_enough(&last, &then) {
            assert!(
                start.elapsed() < PATIENCE,
                "the clients' work stands still: {:?}",
                self.driver.job(&["load-count"])
            );
            last = self.work_done();
        }
    }

    /// How many requests each client has had acknowledged; none has failed for good.
    #[track_caller]
    fn work_done(&mut self) -> Vec<usize> {
        let lines = self.driver.job(&["load-count"]);
        let counts = lines.iter().filter_map(|line| {
            let words: Vec<&str> = line.split(' ').collect();
            match words[..] {
                ["count", count] => Some(count.parse().expect("a number")),
                ["retry", ..] => None,
                _ => panic!("{line}"),
            }
        });
        counts.collect()
    }
}
