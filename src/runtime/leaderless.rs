//! When there is no leader, one warning in a while says why: what this node is, and how it stands
//! with everybody who could lead.

use crate::raft::{PeerName, Raft};
use crate::server::PeerStatus;
use crate::types::{Instant, NodeId};

/// How often it is looked, in milliseconds.
const LOOK_MS: u64 = 1_000;
/// A follower whose leader was silent for this long has none, in milliseconds: somewhat more than
/// the fetch time-out that is usual.
const SILENT_MS: u64 = 3_000;
/// How long there is no leader before the first warning, and between two, in milliseconds.
const WARN_MS: u64 = 10_000;

/// Looks whether there is a leader.
#[derive(Debug)]
pub(super) struct Watch {
    own: NodeId,
    next: Instant,
    /// Since when there is none.
    since: Option<Instant>,
    warned: Option<Instant>,
}

impl Watch {
    pub(super) const fn new(own: NodeId) -> Self {
        Self {
            own,
            next: Instant(0),
            since: None,
            warned: None,
        }
    }

    /// When it wants to look.
    pub(super) const fn next(&self) -> Instant {
        self.next
    }

    /// The warning that is due, if one is. `status` is asked only when it is needed.
    pub(super) fn look(
        &mut self,
        now: Instant,
        raft: &Raft,
        status: impl FnOnce() -> Vec<PeerStatus>,
    ) -> Option<String> {
        if now < self.next {
            return None;
        }
        self.next = now.plus_ms(LOOK_MS);
        if raft.is_leader() {
            self.since = None;
            return None;
        }
        let status = status();
        if is_led(raft, &status) {
            self.since = None;
            return None;
        }
        let since = *self.since.get_or_insert(now);
        let quiet = self.warned.filter(|at| *at >= since).unwrap_or(since);
        if now.since(quiet) < WARN_MS {
            return None;
        }
        self.warned = Some(now);
        Some(sentence(self.own, now.since(since), raft, &status))
    }
}

/// Whether this node follows somebody who was heard of late.
fn is_led(raft: &Raft, status: &[PeerStatus]) -> bool {
    let Some(leader) = raft.leader_peer() else {
        return false;
    };
    let heard = status
        .iter()
        .filter(|it| it.name == leader.name)
        .find_map(|it| it.seen);
    heard.is_some_and(|ago| ago.as_millis() < u128::from(SILENT_MS))
}

fn sentence(own: NodeId, ms: u64, raft: &Raft, status: &[PeerStatus]) -> String {
    let voters = raft.voters();
    let voter = voters.iter().any(|voter| voter.key.id == own);
    let mut parts = Vec::new();
    for id in voters.iter().map(|voter| voter.key.id) {
        if id == own {
            continue;
        }
        let known = status.iter().find(|it| it.name == PeerName::Node(id));
        parts.push(known.map_or_else(
            || format!("node {id}: never asked"),
            |status| format!("{status}"),
        ));
    }
    let servers = status
        .iter()
        .filter(|it| matches!(it.name, PeerName::Bootstrap(_)));
    parts.extend(servers.map(|status| format!("{status}")));
    if parts.is_empty() {
        parts.push("no other node is known".to_owned());
    }
    format!(
        "no leader for {} s; node {own} is {}{} in epoch {}; {}",
        ms / 1_000,
        raft.role_name(),
        if voter { "" } else { ", not a voter," },
        raft.epoch(),
        parts.join("; ")
    )
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::raft::{Boot, QuorumState, RaftConfig, VoterNode};
    use crate::types::{Epoch, ReplicaKey, Uuid};

    /// Node 1 of the voters 1, 2 and 3, as it starts; its disk names this leader of epoch 5.
    fn raft(leader: Option<i32>) -> Raft {
        let voter = |id| VoterNode {
            key: ReplicaKey {
                id: NodeId(id),
                directory: Uuid::nil(),
            },
            endpoints: vec![("C".to_owned(), format!("host{id}"), 9093)],
            kraft_versions: (0, 0),
        };
        let config = RaftConfig {
            node: voter(1).key,
            cluster_id: "c".to_owned(),
            endpoints: voter(1).endpoints,
            election_timeout_ms: 1_000,
            fetch_timeout_ms: 2_000,
            election_backoff_ms_max: 1_000,
            static_voters: [1, 2, 3].map(voter).to_vec(),
            bootstrap: Vec::new(),
            request_timeout_ms: 2_000,
            retry_backoff_ms: 20,
            fetch_bytes_max: 1,
            snapshot_bytes_max: 1,
            auto_join: false,
            kraft_versions: (0, 1),
            seed: 1,
        };
        let boot = Boot {
            quorum_state: Some(QuorumState {
                epoch: Epoch(5),
                leader: leader.map(NodeId),
                ..QuorumState::default()
            }),
            ..Boot::default()
        };
        Raft::new(config, boot, Instant(0))
    }

    fn status(id: i32, seen: Option<u64>) -> PeerStatus {
        PeerStatus {
            name: PeerName::Node(NodeId(id)),
            host: format!("host{id}"),
            port: 9093,
            addresses: vec!["10.0.0.2:9093".parse().unwrap()],
            connected: None,
            error: Some(("Connection refused".to_owned(), Duration::ZERO)),
            seen: seen.map(Duration::from_millis),
        }
    }

    /// When it warns within a minute.
    fn warned(raft: &Raft, seen: impl Fn(u64) -> Option<u64>) -> Vec<u64> {
        let mut watch = Watch::new(NodeId(1));
        let mut warned = Vec::new();
        let mut now = Instant(0);
        while now <= Instant(60_000) {
            if let Some(why) = watch.look(now, raft, || vec![status(2, seen(now.0))]) {
                assert!(why.contains("in epoch 5"), "{why}");
                warned.push(now.0);
            }
            now = watch.next();
        }
        warned
    }

    #[test]
    fn it_warns_every_ten_seconds_while_nobody_leads() {
        let expected: Vec<u64> = (1..=6).map(|at| at * 10_000).collect();
        assert_eq!(warned(&raft(None), |_| Some(3)), expected);
    }

    #[test]
    fn a_leader_counts_while_it_is_heard() {
        assert!(warned(&raft(Some(2)), |_| Some(500)).is_empty());
        // It falls silent at 20 s: none from 23 s on.
        let silent = |now: u64| Some(now.saturating_sub(20_000));
        assert_eq!(warned(&raft(Some(2)), silent), [33_000, 43_000, 53_000]);
    }

    #[test]
    fn the_warning_says_how_it_stands_with_every_other_voter() {
        let status = [status(2, Some(700))];
        let told = sentence(NodeId(1), 12_300, &raft(None), &status);
        assert_eq!(
            told,
            "no leader for 12 s; node 1 is unattached in epoch 5; node 2 at host2:9093 (10.0.0.2): \
             Connection refused, last seen 700 ms ago; node 3: never asked"
        );
        let told = sentence(NodeId(7), 12_300, &raft(None), &status);
        assert!(
            told.contains("node 7 is unattached, not a voter, in epoch 5"),
            "{told}"
        );
    }
}
