//! Topics and partitions of two images.

use std::collections::BTreeSet;

use super::super::topics::Topic;
use super::super::{Image, Partition, TopicRef};
use super::Change;
use crate::types::PartitionId;

/// What happened to the topic of one name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopicChangeKind {
    /// Only the second image has it.
    Created,
    /// Only the first image has it.
    Deleted,
    /// Another topic has its name now: their ids differ.
    Recreated,
    /// It is the same topic, with other partitions.
    Changed,
}

/// A topic that differs.
#[derive(Clone, Debug, PartialEq)]
pub struct TopicChange<'a> {
    /// Its name.
    pub name: &'a str,
    /// The topic in the first image.
    pub before: Option<TopicRef<'a>>,
    /// The topic in the second image.
    pub after: Option<TopicRef<'a>>,
    /// The partitions that differ, when it is the same topic ([`TopicChangeKind::Changed`]); empty
    /// otherwise, since all of them are told by the topics themselves. [`super::PartitionField`]
    /// names what of a partition differs.
    pub partitions: Vec<Change<PartitionId, Partition<'a>>>,
}

impl TopicChange<'_> {
    /// What happened to it.
    #[must_use]
    pub fn kind(&self) -> TopicChangeKind {
        match (self.before, self.after) {
            (None, _) => TopicChangeKind::Created,
            (Some(_), None) => TopicChangeKind::Deleted,
            (Some(old), Some(new)) if old.id() != new.id() => TopicChangeKind::Recreated,
            (Some(_), Some(_)) => TopicChangeKind::Changed,
        }
    }
}

/// The topics that differ, by name.
///
/// Only topics in memory that the images do not share are looked at. A topic in such a place that
/// has its namesake in the other image has it in such a place too: a shared place holds the same
/// topic in both, and names are unique.
pub(super) fn diff<'a>(old: &'a Image, new: &'a Image) -> Vec<TopicChange<'a>> {
    let mut changes = Vec::new();
    for (before, after) in old.topics.differing(&new.topics) {
        if let Some(before) = before {
            let namesake = match after {
                // Most often it is where it was, and no lookup is needed.
                Some(topic) if topic.name == before.name => Some(topic),
                _ => new.topics.by_name(&before.name),
            };
            changes.extend(compare(old, new, before, namesake));
        }
        if let Some(after) = after
            && before.is_none_or(|before| before.name != after.name)
            && old.topics.by_name(&after.name).is_none()
        {
            changes.push(TopicChange {
                name: &after.name,
                before: None,
                after: Some(new.view(after)),
                partitions: Vec::new(),
            });
        }
    }
    changes.sort_unstable_by_key(|change| change.name);
    changes
}

fn compare<'a>(
    old: &'a Image,
    new: &'a Image,
    before: &'a Topic,
    after: Option<&'a Topic>,
) -> Option<TopicChange<'a>> {
    let partitions = match after {
        Some(after) if after.id == before.id => {
            let partitions = compare_partitions(old, new, before, after);
            if partitions.is_empty() {
                return None;
            }
            partitions
        }
        Some(_) | None => Vec::new(),
    };
    Some(TopicChange {
        name: &before.name,
        before: Some(old.view(before)),
        after: after.map(|topic| new.view(topic)),
        partitions,
    })
}

fn compare_partitions<'a>(
    old: &'a Image,
    new: &'a Image,
    before: &'a Topic,
    after: &'a Topic,
) -> Vec<Change<PartitionId, Partition<'a>>> {
    let (old, new) = (old.view(before), new.view(after));
    let indexes: BTreeSet<i32> = before.differing(after).collect();
    let pairs = indexes.into_iter().map(PartitionId).map(|key| Change {
        key,
        before: old.partition(key),
        after: new.partition(key),
    });
    pairs
        .filter(|change| change.before != change.after)
        .collect()
}
