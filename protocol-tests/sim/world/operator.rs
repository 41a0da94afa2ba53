//! The operator: adds and removes voters, upgrades kraft.version (KIP-853).

use kraftd::raft::{AddVoterRequest, ChangeVoterResponse, Input, RemoveVoterRequest, Request};
use kraftd::types::ErrorCode;

use super::World;
use super::traffic::Asked;
use crate::node::{CLUSTER, endpoints};

impl World {
    pub(super) fn change_voters(&mut self) {
        let leads = |at: &usize| {
            let host = &self.hosts[*at];
            let node = host.node.as_ref();
            node.is_some_and(|node| node.leading.is_some()) && host.paused.is_none()
        };
        let Some(leader) = (0..self.hosts.len()).find(leads) else {
            return;
        };
        let Some(node) = &self.hosts[leader].node else {
            return;
        };
        let level = node.raft.kraft_version();
        let voters: Vec<_> = node.raft.voters().iter().map(|it| it.key).collect();
        if level == 0 {
            if node.raft.check_kraft_version(1).is_ok() {
                self.meet("kraft.version upgraded");
                self.give(leader, Input::UpgradeKraftVersion(1));
                self.propose_to(leader, 1);
            } else {
                self.meet("kraft.version not upgraded");
            }
            return;
        }
        let at = self.any_host();
        let key = self.hosts[at].key;
        let cluster_id = Some(CLUSTER.to_owned());
        let request = match voters.iter().any(|voter| voter.id == key.id) {
            true => Request::RemoveVoter(RemoveVoterRequest {
                cluster_id,
                voter: key,
            }),
            false => Request::AddVoter(AddVoterRequest {
                cluster_id,
                timeout_ms: 2_000,
                voter: key,
                endpoints: endpoints(key.id),
                ack_when_committed: self.dice.faults.below(2) == 0,
            }),
        };
        let asked = Asked {
            by: None,
            to: leader,
            candidate: None,
        };
        self.request(asked, request);
    }

    pub(super) fn changed(&mut self, what: &str, response: &ChangeVoterResponse) {
        self.meet(match (what, response.error) {
            ("add", ErrorCode::None) => "voter added",
            ("add", _) => "voter not added",
            (_, ErrorCode::None) => "voter removed",
            (_, _) => "voter not removed",
        });
    }
}
