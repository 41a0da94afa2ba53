//! The quorum: described, and asked for changes of its voters that it has to refuse. One that it
//! would make ends or stalls a quorum of one.

use kafka_protocol::messages::describe_quorum_request::{PartitionData, TopicData};
use kafka_protocol::messages::update_raft_voter_request::{KRaftVersionFeature, Listener};
use kafka_protocol::messages::{
    DescribeQuorumRequest, RemoveRaftVoterRequest, UpdateRaftVoterRequest,
};
use kafka_protocol::protocol::StrBytes;
use kraftd::records::rpc::{AddRaftVoterRequest, RaftVoterListener};

use super::{Ask, Generator, text, topic_name};
use crate::harness::CLUSTER_ID;

impl Generator {
    pub(super) fn describe_quorum(&mut self) -> Ask {
        let topic = *self
            .dice
            .weighted(&[(8, "__cluster_metadata"), (1, "orders"), (1, "")]);
        let partition = *self.dice.weighted(&[(8, 0), (1, 1), (1, -1)]);
        let partition = PartitionData::default().with_partition_index(partition);
        let topic = TopicData::default()
            .with_topic_name(topic_name(topic))
            .with_partitions(vec![partition]);
        DescribeQuorumRequest::default()
            .with_topics(vec![topic])
            .into()
    }

    /// None is "whatever it is".
    fn some_cluster(&mut self) -> Option<StrBytes> {
        let ids = [
            (6, Some(CLUSTER_ID)),
            (1, None),
            (1, Some("AAAAAAAAQACAAAAAAAAAAQ")),
        ];
        self.dice.weighted(&ids).map(text)
    }

    /// The voter that is there, under another directory: a new one would be waited for.
    pub(super) fn add_voter(&mut self) -> Ask {
        let listeners = ["CONTROLLER", "OTHER"].map(|name| RaftVoterListener {
            name: name.into(),
            host: "localhost".into(),
            port: 9,
            ..Default::default()
        });
        let count = self.dice.below(3);
        Ask::AddRaftVoter(AddRaftVoterRequest {
            cluster_id: self.some_cluster().map(|id| id.to_string()),
            timeout_ms: 1_000,
            voter_id: 1,
            voter_directory_id: self.dice.uuid(),
            listeners: listeners[..count].to_vec(),
            ack_when_committed: self.dice.once_in(2),
            ..Default::default()
        })
    }

    pub(super) fn remove_voter(&mut self) -> Ask {
        RemoveRaftVoterRequest::default()
            .with_cluster_id(self.some_cluster())
            .with_voter_id(*self.dice.pick(&[1, 2, 3000, -1]))
            .with_voter_directory_id(self.dice.uuid())
            .into()
    }

    /// Not of the leader: Java's stops over that.
    pub(super) fn update_voter(&mut self) -> Ask {
        let listeners = ["CONTROLLER", "OTHER"].map(|name| {
            Listener::default()
                .with_name(text(name))
                .with_host(text("localhost"))
                .with_port(9)
        });
        let count = self.dice.below(3);
        let range = KRaftVersionFeature::default()
            .with_min_supported_version(*self.dice.weighted(&[(6, 0), (1, 1)]))
            .with_max_supported_version(*self.dice.weighted(&[(6, 1), (1, 0)]));
        UpdateRaftVoterRequest::default()
            .with_cluster_id(self.some_cluster())
            .with_current_leader_epoch(*self.dice.weighted(&[(6, 1), (1, 0), (1, 2)]))
            .with_voter_id(*self.dice.pick(&[2, 3000]))
            .with_voter_directory_id(self.dice.uuid())
            .with_listeners(listeners[..count].to_vec())
            .with_k_raft_version_feature(range)
            .into()
    }
}
