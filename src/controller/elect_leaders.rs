//! ElectLeaders (KIP-183, KIP-460): an administrator asks for the preferred leaders, or for any
//! leader at all.

use kafka_protocol::messages::elect_leaders_response::{PartitionResult, ReplicaElectionResult};
use kafka_protocol::messages::{ElectLeadersRequest, ElectLeadersResponse, TopicName};
use kafka_protocol::protocol::StrBytes;

use super::leaders::{ClusterRules, preferred_election_is_idle};
use super::partition_change::{Election, NO_LEADER, Rules};
use super::{Decision, RECORDS_PER_OPERATION_MAX, Reply, View, bounded, bounded_looks};
use super::{leaders, too_large, topic_names};
use crate::image::{Partition, Place, TopicRef};
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
    let kind = match request.election_type {
        0 => Kind::Preferred,
        1 => Kind::Unclean,
        other => {
            return Err(ApiError::new(
                ErrorCode::InvalidRequest,
                format!("Unknown election type {other}"),
            ));
        }
    };
    let Some(topics) = request.topic_partitions else {
        return go_on(view, Electing::everywhere(view, kind));
    };
    let mut elections = Elections::of(view, kind);
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
    let answer = answer.with_replica_election_results(results);
    Ok(Decision::loose(
        elections.records,
        Reply::ElectLeaders(answer),
    ))
}

/// Elections of all partitions that need one, so many in each step.
#[derive(Clone, Debug)]
pub(super) struct Electing {
    kind: Kind,
    /// While it is not known whether there are too many for an operation: how many there are before
    /// `at`. None is written then.
    counted: Option<usize>,
    at: Place,
    /// What was done, topic by topic. The answer names every topic, as Java's does, in no order.
    results: Vec<ReplicaElectionResult>,
    /// The topic of the last of them.
    last: Option<Uuid>,
}

impl Electing {
    fn everywhere(view: &View<'_>, kind: Kind) -> Self {
        let needed = match kind {
            Kind::Preferred => view.image.not_led_by_preferred_count(),
            Kind::Unclean => view.image.leaderless_count(),
        };
        Self {
            kind,
            counted: (needed > RECORDS_PER_OPERATION_MAX).then_some(0),
            at: Place::default(),
            results: Vec::new(),
            last: None,
        }
    }

    fn note(&mut self, topic: TopicRef<'_>, result: Option<PartitionResult>) {
        if self.last != Some(topic.id()) {
            self.last = Some(topic.id());
            let name = StrBytes::from_string(topic.name().to_owned());
            let topic = ReplicaElectionResult::default().with_topic(TopicName(name));
            self.results.push(topic);
        }
        if let Some(topic) = self.results.last_mut() {
            topic.partition_result.extend(result);
        }
    }
}

/// Most partitions of one step that are looked at.
const LOOKS_MAX: usize = 50_000;
/// Most partitions of one step that a change is worked out for.
pub(super) const TRIES_MAX: usize = 2_000;

/// One step of the elections of all partitions.
///
/// # Errors
/// POLICY_VIOLATION when more leaders would change than an operation may have records.
pub(super) fn go_on(view: &View<'_>, mut left: Electing) -> Result<Decision, ApiError> {
    let mut elections = Elections::of(view, left.kind);
    let (kind, counts, at) = (left.kind, left.counted.is_some(), left.at);
    let mut tries = 0;
    let wanted = |it: Partition<'_>| !counts || kind.is_needed(it);
    let rest = view.image.walk(at, LOOKS_MAX, wanted, |(topic, id, old)| {
        let result = kind.is_needed(old).then(|| {
            if kind == Kind::Preferred && preferred_election_is_idle(elections.rules, old) {
                return kind.not_available(id);
            }
            tries += 1;
            elections.elect(topic, id, old)
        });
        if !counts {
            left.note(topic, result);
        }
        elections.records.len() < leaders::SLICE && tries < TRIES_MAX
    });
    let mut records = elections.records;
    if let Some(count) = left.counted {
        let count = count + records.len();
        if count > RECORDS_PER_OPERATION_MAX {
            return Err(too_large());
        }
        records.clear();
        left.counted = rest.map(|_| count);
    } else if rest.is_none() {
        let answer = ElectLeadersResponse::default().with_replica_election_results(left.results);
        return Ok(Decision::loose(records, Reply::ElectLeaders(answer)));
    }
    left.at = rest.unwrap_or_default();
    let reply = Reply::ElectLeaders(ElectLeadersResponse::default());
    Ok(Decision::unfinished(records, reply, left))
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

    fn not_available(self, id: PartitionId) -> PartitionResult {
        let (code, message) = match self {
            Self::Preferred => (
                ErrorCode::PreferredLeaderNotAvailable,
                "The preferred leader was not available.",
            ),
            Self::Unclean => (
                ErrorCode::EligibleLeadersNotAvailable,
                "Eligible topic partition leaders are not available.",
            ),
        };
        result(id.0, code, Some(StrBytes::from_static_str(message)))
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
    fn of(view: &'a View<'a>, kind: Kind) -> Self {
        Self {
            view,
            rules: Rules::of(view.image),
            cluster: ClusterRules::of(view.image, view.settings),
            kind,
            records: Vec::new(),
        }
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
        let result = self.elect(topic, id, old);
        bounded(&self.records)?;
        Ok(result)
    }

    fn elect(
        &mut self,
        topic: TopicRef<'_>,
        id: PartitionId,
        old: Partition<'_>,
    ) -> PartitionResult {
        let election = match self.kind {
            Kind::Preferred => Election::Preferred,
            Kind::Unclean => Election::Unclean,
        };
        let view = self.view;
        let topic_rules = self.cluster.of_topic(view.image, view.settings, topic);
        let found = (topic, id, old);
        let Some(record) = leaders::elected(self.rules, found, topic_rules.min_isr, election)
        else {
            return self.kind.not_available(id);
        };
        self.records.push(record);
        result(id.0, ErrorCode::None, None)
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
