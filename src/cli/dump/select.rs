//! Which records are wanted.

use std::collections::BTreeSet;
use std::str::FromStr;

use super::Read;
use crate::image::configs;
use crate::observe::tree::distance;
use crate::records::{Record, control};
use crate::types::{Offset, Uuid, ids};

/// `A..B`, both inclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Offsets {
    first: i64,
    last: i64,
}

impl FromStr for Offsets {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str, absent: i64| match text {
            "" => Ok(absent),
            _ => text
                .parse()
                .map_err(|_| format!("{text:?} is not an offset")),
        };
        let (first, last) = text.split_once("..").unwrap_or((text, text));
        let offsets = Self {
            first: number(first, 0)?,
            last: number(last, i64::MAX)?,
        };
        if offsets.first < 0 || offsets.last < offsets.first {
            return Err("A..B has 0 <= A <= B".to_owned());
        }
        Ok(offsets)
    }
}

/// The name of a record type, as [`Record::TYPES`] and control records have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Type(&'static str);

impl FromStr for Type {
    type Err = String;

    /// Case, underscores and the word "record" at the end do not matter.
    fn from_str(text: &str) -> Result<Self, String> {
        let plain = |name: &str| {
            let name = name.to_ascii_uppercase().replace(['_', '-'], "");
            name.strip_suffix("RECORD")
                .map(str::to_owned)
                .unwrap_or(name)
        };
        let wanted = plain(text);
        let metadata = Record::TYPES.iter().map(|kind| kind.name);
        let names = || {
            metadata
                .clone()
                .chain(control::ControlRecord::NAMES.iter().copied())
        };
        let found = names().find(|name| plain(name) == wanted);
        found.map(Self).ok_or_else(|| {
            let is_near = |name: &&str| {
                let name = plain(name);
                distance(&name, &wanted, 2).is_some()
                    || (wanted.len() > 2 && (name.contains(&wanted) || wanted.contains(&name)))
            };
            match names().filter(is_near).collect::<Vec<_>>() {
                near if near.is_empty() => {
                    let all: Vec<_> = names().collect();
                    format!("no such record type; there are {}", all.join(", "))
                }
                near => format!("no such record type; near it: {}", near.join(", ")),
            }
        })
    }
}

/// What `--offsets`, `--type` and `--topic` ask for.
#[derive(Debug)]
pub(super) struct Selection {
    offsets: Option<Offsets>,
    types: Vec<Type>,
    topic: Option<String>,
    /// Every id that the topic had.
    ids: BTreeSet<Uuid>,
}

impl Selection {
    pub(super) fn new(offsets: Option<Offsets>, types: &[Type], topic: Option<&str>) -> Self {
        Self {
            offsets,
            types: types.to_vec(),
            topic: topic.map(str::to_owned),
            ids: topic.and_then(ids::parse_base64url).into_iter().collect(),
        }
    }

    /// Whether there is nothing to leave out.
    pub(super) const fn is_all(&self) -> bool {
        self.offsets.is_none() && self.types.is_empty() && self.topic.is_none()
    }

    /// Whether the topic's ids have to be learnt first.
    pub(super) const fn wants_ids(&self) -> bool {
        self.topic.is_some()
    }

    /// Remembers an id of the topic.
    pub(super) fn learn(&mut self, read: &Read) {
        if let Read::Metadata(record) = read
            && let Record::Topic(topic) = &record.record
            && self.topic.as_deref() == Some(&topic.name)
        {
            self.ids.insert(topic.topic_id);
        }
    }

    /// Whether the record is wanted. What cannot be read is, unless it is elsewhere.
    pub(super) fn wants(&self, offset: Option<Offset>, read: &Read) -> bool {
        if let (Some(range), Some(offset)) = (self.offsets, offset)
            && !(range.first..=range.last).contains(&offset.0)
        {
            return false;
        }
        let name = match read {
            Read::Metadata(record) => record.record.name(),
            Read::Control(record) => record.name(),
            Read::Unknown(_) => return true,
        };
        if !self.types.is_empty() && !self.types.contains(&Type(name)) {
            return false;
        }
        match (&self.topic, read) {
            (None, _) => true,
            (Some(topic), Read::Metadata(record)) => self.is_of_topic(topic, &record.record),
            (Some(_), _) => false,
        }
    }

    fn is_of_topic(&self, name: &str, record: &Record) -> bool {
        match record {
            Record::Topic(it) => it.name == name || self.ids.contains(&it.topic_id),
            Record::RemoveTopic(it) => self.ids.contains(&it.topic_id),
            Record::Partition(it) => self.ids.contains(&it.topic_id),
            Record::PartitionChange(it) => self.ids.contains(&it.topic_id),
            Record::ClearElr(it) => it.topic_name == name,
            Record::Config(it) => it.resource_type == configs::TOPIC && it.resource_name == name,
            _ => false,
        }
    }
}
