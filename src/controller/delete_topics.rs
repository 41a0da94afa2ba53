//! DeleteTopics: by name or by id.

use std::collections::{BTreeMap, BTreeSet};

use indexmap::IndexMap;
use kafka_protocol::messages::delete_topics_response::DeletableTopicResult;
use kafka_protocol::messages::{DeleteTopicsRequest, DeleteTopicsResponse, TopicName};
use kafka_protocol::protocol::StrBytes;

use super::authorize::{self, Audit, Operation, Resource};
use super::mutation_quota::{self, Meter};
use super::{Context, Decision, Reply, Soft, View, bounded, bounded_items, placement};
use crate::records::{Record, RemoveTopicRecord, VersionedRecord};
use crate::types::{ApiError, ErrorCode, Uuid};

/// The first version in which the client knows the code for "deletion is switched off".
const VERSION_OF_DISABLED_CODE: i16 = 3;

/// The rule of DeleteTopics v1 to v6.
///
/// Names and ids are looked up in what is committed, as a client could have seen it; then the
/// topics are deleted from the working image, where they may be gone already.
///
/// # Errors
/// When deletion is switched off, or the request is too large.
pub(super) fn decide(
    view: &View<'_>,
    soft: &mut Soft,
    context: &Context,
    version: i16,
    request: &DeleteTopicsRequest,
) -> Result<Decision, ApiError> {
    if !view.settings.delete_topic_enable {
        return Err(if version < VERSION_OF_DISABLED_CODE {
            let message = "This version does not support topic deletion.";
            ApiError::new(ErrorCode::InvalidRequest, message)
        } else {
            ApiError::new(
                ErrorCode::TopicDeletionDisabled,
                "Topic deletion is disabled.",
            )
        });
    }
    bounded_items(request.topics.len() + request.topic_names.len())?;
    let mut results = Vec::new();
    let wanted = Wanted::read(request, &mut results);
    let names = resolve(view, context, wanted, &mut results);
    let mut records = Vec::with_capacity(names.len());
    let strict = mutation_quota::DELETE_TOPICS_STRICT;
    let mut meter = Meter::new(view, soft, context, version, strict);
    for (id, name) in names {
        let deleted = delete(view, soft, &mut meter, id);
        let error = deleted.map(|record| records.push(record)).err();
        results.push(result(Some(name), id, error));
    }
    bounded(&records)?;
    // In the request's order a client could tell which name belongs to an id that it may not see.
    placement::shuffle(&mut soft.rng, &mut results);
    let reply = DeleteTopicsResponse::default()
        .with_throttle_time_ms(meter.throttle_time_ms())
        .with_responses(results);
    Ok(Decision::atomic(records, Reply::DeleteTopics(reply)))
}

fn delete(
    view: &View<'_>,
    soft: &mut Soft,
    meter: &mut Meter,
    id: Uuid,
) -> Result<VersionedRecord, ApiError> {
    let topic = view.image.topic_by_id(id).ok_or_else(unknown_id)?;
    meter.charge(view, soft, topic.partition_count())?;
    let record = RemoveTopicRecord {
        topic_id: id,
        ..RemoveTopicRecord::default()
    };
    Ok(Record::RemoveTopic(record).at(0))
}

/// What is asked for, without what was asked for twice.
struct Wanted {
    names: Vec<TopicName>,
    ids: Vec<Uuid>,
    /// Ids that were asked for twice: a name that means one of them is asked for too often, too.
    twice: BTreeSet<Uuid>,
}

impl Wanted {
    /// Reads the request; what makes no sense is answered in `results`.
    fn read(request: &DeleteTopicsRequest, results: &mut Vec<DeletableTopicResult>) -> Self {
        let mut names: IndexMap<TopicName, bool> = IndexMap::new();
        let mut ids: IndexMap<Uuid, bool> = IndexMap::new();
        let mut add_name = |name: &TopicName| {
            names
                .entry(name.clone())
                .and_modify(|twice| *twice = true)
                .or_insert(false);
        };
        request.topic_names.iter().for_each(&mut add_name);
        let invalid = |message| Some(ApiError::new(ErrorCode::InvalidRequest, message));
        for topic in &request.topics {
            match (&topic.name, topic.topic_id) {
                (None, id) if id.is_nil() => {
                    let error = invalid("Neither topic name nor id were specified.");
                    results.push(result(None, id, error));
                }
                (None, id) => {
                    ids.entry(id)
                        .and_modify(|twice| *twice = true)
                        .or_insert(false);
                }
                (Some(name), id) if id.is_nil() => add_name(name),
                (Some(name), id) => {
                    let error = invalid("You may not specify both topic name and topic id.");
                    results.push(result(Some(name.clone()), id, error));
                }
            }
        }
        for name in names
            .iter()
            .filter(|(_, twice)| **twice)
            .map(|(name, _)| name)
        {
            let error = invalid("Duplicate topic name.");
            results.push(result(Some(name.clone()), Uuid::nil(), error));
        }
        let twice: BTreeSet<Uuid> = ids
            .iter()
            .filter(|(_, twice)| **twice)
            .map(|(id, _)| *id)
            .collect();
        for id in &twice {
            results.push(result(None, *id, invalid("Duplicate topic id.")));
        }
        names.retain(|_, twice| !*twice);
        ids.retain(|_, twice| !*twice);
        Self {
            names: names.into_keys().collect(),
            ids: ids.into_keys().collect(),
            twice,
        }
    }
}

/// The topics to delete, each once; what is unknown is answered in `results`.
fn resolve(
    view: &View<'_>,
    context: &Context,
    wanted: Wanted,
    results: &mut Vec<DeletableTopicResult>,
) -> BTreeMap<Uuid, TopicName> {
    let mut names = BTreeMap::new();
    let rights = Rights::of(view, context);
    let denied = || Some(authorize::denied(ErrorCode::TopicAuthorizationFailed));
    for id in wanted.ids {
        match view.committed.topic_by_id(id) {
            Some(topic) => {
                let name = TopicName(StrBytes::from_string(topic.name().to_owned()));
                if rights.delete(&name) {
                    names.insert(id, name);
                } else {
                    let name = rights.describe(&name).then_some(name);
                    results.push(result(name, id, denied()));
                }
            }
            None => results.push(result(None, id, Some(unknown_id()))),
        }
    }
    let mut twice = wanted.twice;
    for name in wanted.names {
        // Who may not see a topic is not told whether there is one.
        if !rights.describe(&name) {
            results.push(result(Some(name), Uuid::nil(), denied()));
            continue;
        }
        let Some(topic) = view.committed.topic_by_name(&name) else {
            let message = "This server does not host this topic-partition.";
            let error = ApiError::new(ErrorCode::UnknownTopicOrPartition, message);
            results.push(result(Some(name), Uuid::nil(), Some(error)));
            continue;
        };
        let id = topic.id();
        if !rights.delete(&name) {
            results.push(result(Some(name), Uuid::nil(), denied()));
            continue;
        }
        if twice.contains(&id) || names.contains_key(&id) {
            twice.insert(id);
            names.remove(&id);
            let message = "The provided topic name maps to an ID that was already supplied.";
            let error = ApiError::new(ErrorCode::InvalidRequest, message);
            results.push(result(Some(name), id, Some(error)));
        } else {
            names.insert(id, name);
        }
    }
    names
}

/// What whoever asks may do with topics.
struct Rights<'a> {
    view: &'a View<'a>,
    context: &'a Context,
    /// With all of them.
    all: bool,
}

impl<'a> Rights<'a> {
    fn of(view: &'a View<'a>, context: &'a Context) -> Self {
        let (delete, cluster) = (Operation::Delete, Resource::Cluster);
        Self {
            view,
            context,
            all: view.allows_with(context, delete, cluster, Audit::Allowed),
        }
    }

    fn may(&self, operation: Operation, name: &str) -> bool {
        self.all
            || self
                .view
                .allows(self.context, operation, Resource::Topic(name))
    }

    fn describe(&self, name: &str) -> bool {
        self.may(Operation::Describe, name)
    }

    fn delete(&self, name: &str) -> bool {
        self.may(Operation::Delete, name)
    }
}

fn unknown_id() -> ApiError {
    ApiError::new(
        ErrorCode::UnknownTopicId,
        "This server does not host this topic ID.",
    )
}

fn result(name: Option<TopicName>, id: Uuid, error: Option<ApiError>) -> DeletableTopicResult {
    let (code, message) = match error {
        None => (ErrorCode::None, None),
        Some(error) => (error.code, error.message),
    };
    DeletableTopicResult::default()
        .with_name(name)
        .with_topic_id(id)
        .with_error_code(code.code())
        .with_error_message(message.map(StrBytes::from_string))
}
