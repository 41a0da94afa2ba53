//! ElectLeaders (KIP-183, KIP-460): an administrator asks for the preferred leaders, or for any
//! leader at all.

use std::collections::BTreeMap;

use kafka_protocol::messages::elect_leaders_response::{PartitionResult, ReplicaElectionResult};
use kafka_protocol::messages::{ElectLeadersRequest, ElectLeadersResponse, TopicName};
use kafka_protocol::protocol::StrBytes;

use super::leaders::ClusterRules;
use super::partition_change::{Election, NO_LEADER, Rules};
use super::{Decision, Reply, View, bounded, bounded_looks, leaders, topic_names};
use crate::image::{Found, Partition, TopicRef};
use crate::records::VersionedRecord;
use crate::types::{ApiError, ErrorCode, PartitionId, Uuid};

/// The rule of ElectLeaders v0 to v2. Version 0 knows preferred elections only: its request leaves
/// the type at 0.
///
/// # Errors
/// INVALID_REQUEST for a type that does not exist; POLICY_VIOLATION
/// when more leaders would change than an operation may have records, or when more partitions are
/// named than one step looks at.
pub(super) fn decide(view: &View<'_>, request: ElectLeadersRequest) -> Result<Decision, ApiError> {
    let answer = ElectLeadersResponse::default();
    if request.topic_partitions.as_ref().is_some_and(Vec::is_empty) {
        return Ok(Decision::only(Reply::ElectLeaders(answer)));
    }
    let named = request.topic_partitions.iter().flatten();
    bounded_looks(named.map(|topic| 1 + topic.partitions.len()).sum())?;
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
                let topic = elections.topic(&asked.topic);
                for index in asked.partitions {
                    partitions.push(elections.named(&topic, index)?);
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

impl<'a> Elections<'a> {
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

    /// A topic that the request names, or what is answered for each of its partitions.
    fn topic(&self, name: &TopicName) -> Result<TopicRef<'a>, StrBytes> {
        self.view.image.topic_by_name(name).ok_or_else(|| {
            let message = format!("No such topic as {}", topic_names::shown(name));
            StrBytes::from_string(message)
        })
    }

    /// One partition that the request names.
    fn named(
        &mut self,
        topic: &Result<TopicRef<'a>, StrBytes>,
        index: i32,
    ) -> Result<PartitionResult, ApiError> {
        let unknown = |message| {
            let code = ErrorCode::UnknownTopicOrPartition;
            Ok(result(index, code, Some(message)))
        };
        let topic = match topic {
            Ok(topic) => *topic,
            Err(message) => return unknown(message.clone()),
        };
        let id = PartitionId(index);
        let Some(old) = topic.partition(id) else {
            let message = format!("No such partition as {}-{index}", topic.name());
            return unknown(StrBytes::from_string(message));
        };
        if !self.kind.is_needed(old) {
            let message = "Leader election not needed for topic partition.";
            let message = StrBytes::from_static_str(message);
            return Ok(result(index, ErrorCode::ElectionNotNeeded, Some(message)));
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
        let found = (topic, id, old);
        // While a broker is away, this is what becomes of everything that it led.
        let preferred = self.kind == Kind::Preferred;
        let record = if preferred && leaders::preferred_election_is_idle(self.rules, old) {
            None
        } else {
            let topic_rules = self.cluster.of_topic(view.image, view.settings, topic);
            leaders::elected(self.rules, found, topic_rules.min_isr, election)
        };
        let Some(record) = record else {
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
            let message = StrBytes::from_static_str(message);
            return Ok(result(id.0, code, Some(message)));
        };
        self.records.push(record);
        bounded(&self.records)?;
        Ok(result(id.0, ErrorCode::None, None))
    }
}

fn result(index: i32, code: ErrorCode, message: Option<StrBytes>) -> PartitionResult {
    PartitionResult::default()
        .with_partition_id(index)
        .with_error_code(code.code())
        .with_error_message(message)
}

#[cfg(test)]
mod tests;
