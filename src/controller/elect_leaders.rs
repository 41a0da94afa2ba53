//! ElectLeaders (KIP-183, KIP-460): an administrator asks for the preferred leaders, or for any
//! leader at all.

use std::collections::BTreeMap;

use kafka_protocol::messages::elect_leaders_response::{PartitionResult, ReplicaElectionResult};
use kafka_protocol::messages::{ElectLeadersRequest, ElectLeadersResponse, TopicName};
use kafka_protocol::protocol::StrBytes;

use super::leaders::ClusterRules;
use super::partition_change::{Election, NO_LEADER, Rules};
use super::{Decision, Reply, View, bounded, leaders};
use crate::image::{Found, Partition, TopicRef};
use crate::records::VersionedRecord;
use crate::types::{ApiError, ErrorCode, PartitionId, Uuid};

/// The rule of ElectLeaders v0 to v2. Version 0 knows preferred elections only: its request leaves
/// the type at 0.
///
/// # Errors
/// INVALID_REQUEST for a type that does not exist; POLICY_VIOLATION
/// when more leaders would change than an operation may have records.
pub(super) fn decide(view: &View<'_>, request: ElectLeadersRequest) -> Result<Decision, ApiError> {
    let answer = ElectLeadersResponse::default();
    if request.topic_partitions.as_ref().is_some_and(Vec::is_empty) {
        return Ok(Decision::only(Reply::ElectLeaders(answer)));
    }
    let mut elections = Elections {
        view,
        rules: Rules::of(view.image),
        cluster: ClusterRules::of(view.image, view.settings),
        kind: match request.election_type {
            0 => Kind::Preferred,
            1 => Kind::Unclean,
            other => {
                return Err(ApiError::new(
                    ErrorCode::InvalidRequest,
                    format!("Unknown election type {other}"),
                ));
            }
        },
        records: Vec::new(),
    };
    let results = match request.topic_partitions {
        None => elections.everywhere()?,
        Some(topics) => {
            let mut results = Vec::with_capacity(topics.len());
            for asked in topics {
                let mut partitions = Vec::with_capacity(asked.partitions.len());
                for index in asked.partitions {
                    partitions.push(elections.named(&asked.topic, index)?);
                }
                results.push(
                    ReplicaElectionResult::default()
                        .with_topic(asked.topic)
                        .with_partition_result(partitions),
                );
            }
            results
        }
    };
    let answer = answer.with_replica_election_results(results);
    Ok(Decision::loose(
        elections.records,
        Reply::ElectLeaders(answer),
    ))
}

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Preferred,
    Unclean,
}

impl Kind {
    fn is_needed(self, partition: Partition<'_>) -> bool {
        match self {
            Self::Preferred => !partition.led_by_preferred(),
            Self::Unclean => partition.leader() == NO_LEADER,
        }
    }
}

struct Elections<'a> {
    view: &'a View<'a>,
    rules: Rules<'a>,
    cluster: ClusterRules,
    kind: Kind,
    records: Vec<VersionedRecord>,
}

impl Elections<'_> {
    /// Every partition that needs it. The answer names every topic, as Java's does.
    fn everywhere(&mut self) -> Result<Vec<ReplicaElectionResult>, ApiError> {
        let image = self.view.image;
        let needed: Vec<Found<'_>> = match self.kind {
            Kind::Preferred => image.partitions_not_led_by_preferred().collect(),
            Kind::Unclean => image.partitions_without_leader().collect(),
        };
        let mut by_topic: BTreeMap<Uuid, Vec<PartitionResult>> = BTreeMap::new();
        for (topic, id, old) in needed {
            let result = self.elect(topic, id, old)?;
            by_topic.entry(topic.id()).or_default().push(result);
        }
        let results = image.topics().map(|topic| {
            let partitions = by_topic.remove(&topic.id()).unwrap_or_default();
            let name = StrBytes::from_string(topic.name().to_owned());
            ReplicaElectionResult::default()
                .with_topic(TopicName(name))
                .with_partition_result(partitions)
        });
        Ok(results.collect())
    }

    /// One partition that the request names.
    fn named(&mut self, name: &TopicName, index: i32) -> Result<PartitionResult, ApiError> {
        let unknown = |message| {
            let code = ErrorCode::UnknownTopicOrPartition;
            Ok(result(index, code, Some(message)))
        };
        let Some(topic) = self.view.image.topic_by_name(name) else {
            return unknown(format!("No such topic as {}", name.as_str()));
        };
        let id = PartitionId(index);
        let Some(old) = topic.partition(id) else {
            return unknown(format!("No such partition as {}-{index}", name.as_str()));
        };
        if !self.kind.is_needed(old) {
            let message = "Leader election not needed for topic partition.";
            let code = ErrorCode::ElectionNotNeeded;
            return Ok(result(index, code, Some(message.to_owned())));
        }
        self.elect(topic, id, old)
    }

    fn elect(
        &mut self,
        topic: TopicRef<'_>,
        id: PartitionId,
        old: Partition<'_>,
    ) -> Result<PartitionResult, ApiError> {
        let election = match self.kind {
            Kind::Preferred => Election::Preferred,
            Kind::Unclean => Election::Unclean,
        };
        let view = self.view;
        let topic_rules = self.cluster.of_topic(view.image, view.settings, topic);
        let found = (topic, id, old);
        let Some(record) = leaders::elected(self.rules, found, topic_rules.min_isr, election)
        else {
            let (code, message) = match self.kind {
                Kind::Preferred => (
                    ErrorCode::PreferredLeaderNotAvailable,
                    "The preferred leader was not available.",
                ),
                Kind::Unclean => (
                    ErrorCode::EligibleLeadersNotAvailable,
                    "Eligible topic partition leaders are not available.",
                ),
            };
            return Ok(result(id.0, code, Some(message.to_owned())));
        };
        self.records.push(record);
        bounded(&self.records)?;
        Ok(result(id.0, ErrorCode::None, None))
    }
}

fn result(index: i32, code: ErrorCode, message: Option<String>) -> PartitionResult {
    PartitionResult::default()
        .with_partition_id(index)
        .with_error_code(code.code())
        .with_error_message(message.map(StrBytes::from_string))
}

#[cfg(test)]
mod tests;
