//! What differs between two images, in the image's own terms: a topic was created, a value of a
//! configuration is another one, a leader moved.
//!
//! Each change has the path of its node in the tree ([`super::tree`]), and a sentence. In JSON it
//! has its values before and after too: of an entry that is there in both, only the fields that
//! differ. A topic that is new or gone is one change, with all its partitions.

use std::io::{self, Write};

use serde_json::{Value, json};

use super::leaf::{Leaf, provenance_json};
use super::secrets::REDACTED;
use super::{Provenance, names, words};
use crate::image::diff::{Change, Diff, TopicChange, TopicChangeKind};
use crate::image::{Image, TopicRef};
use crate::types::features::{METADATA_VERSION, MetadataVersion};
use crate::types::ids;

/// Two images to compare.
#[derive(Clone, Copy, Debug)]
pub struct Changes<'a> {
    /// The first image and where it stands.
    pub before: (&'a Image, Provenance),
    /// The second image and where it stands.
    pub after: (&'a Image, Provenance),
    /// Whether secrets are shown.
    pub show_secrets: bool,
}

/// One change.
#[derive(Clone, Debug, PartialEq)]
pub struct Told {
    /// What sort of thing changed: `topic`, `partition`, `broker`, `config` ...
    pub kind: &'static str,
    /// The path of its node.
    pub path: String,
    /// Its value or its differing fields before; null when it was not there.
    pub before: Value,
    /// The same after.
    pub after: Value,
    /// What happened, for people.
    pub text: String,
}

impl Told {
    /// `added`, `removed` or `changed`.
    #[must_use]
    pub fn change(&self) -> &'static str {
        match (&self.before, &self.after) {
            (Value::Null, _) => "added",
            (_, Value::Null) => "removed",
            _ => "changed",
        }
    }

    fn json(&self) -> Value {
        json!({
            "change": self.change(),
            "type": self.kind,
            "path": self.path,
            "before": self.before,
            "after": self.after,
            "text": self.text,
        })
    }
}

type Sink<'s> = &'s mut dyn FnMut(Told) -> io::Result<()>;

impl Changes<'_> {
    /// Writes one JSON document: `from` and `to` (where the images stand), and the `changes`.
    ///
    /// # Errors
    /// Those of writing to `out`.
    pub fn write_json(&self, out: &mut dyn Write) -> io::Result<()> {
        let (from, to) = (
            provenance_json(self.before.1),
            provenance_json(self.after.1),
        );
        write!(out, r#"{{"from":{from},"to":{to},"changes":["#)?;
        let mut first = true;
        self.each(&mut |told| {
            let comma = if std::mem::take(&mut first) { "" } else { "," };
            write!(out, "{comma}{}", told.json())
        })?;
        writeln!(out, "]}}")
    }

    /// Writes a line a change: `+` added, `-` removed, `~` changed, and a sum.
    ///
    /// # Errors
    /// Those of writing to `out`.
    pub fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut count = 0_usize;
        self.each(&mut |told| {
            count += 1;
            let sign = match told.change() {
                "added" => '+',
                "removed" => '-',
                _ => '~',
            };
            let (path, text) = (words::one_line(&told.path), words::one_line(&told.text));
            writeln!(out, "{sign} {path}  {text}")
        })?;
        let count = match count {
            0 => "no difference".to_owned(),
            1 => "1 change".to_owned(),
            _ => format!("{count} changes"),
        };
        let (from, to) = (self.before.1.offset, self.after.1.offset);
        writeln!(
            out,
            "{count} between the state after offset {from} and after offset {to}"
        )
    }

    /// Gives every change to `sink`, in order of the sorts of things and then of their names.
    ///
    /// # Errors
    /// The first one of `sink`.
    pub fn each(&self, sink: Sink<'_>) -> io::Result<()> {
        let (before, after) = (self.before.0.settled(), self.after.0.settled());
        let diff = before.diff(after);
        for change in &diff.features {
            sink(feature(change))?;
        }
        if let Some(change) = &diff.zk_migration {
            let value = |state: Option<_>| Value::from(state.and_then(super::tree::migration));
            sink(simple(
                "features",
                "features/zkMigrationState".to_owned(),
                Some(value(change.before)),
                Some(value(change.after)),
            ))?;
        }
        self.nodes(&diff, sink)?;
        for change in &diff.topics {
            topic(change, sink)?;
        }
        self.values(&diff, sink)?;
        self.security(&diff, sink)
    }

    /// Configurations, quotas and producer ids.
    fn values(&self, diff: &Diff<'_>, sink: Sink<'_>) -> io::Result<()> {
        for change in &diff.configs {
            let (key, kind) = (change.key, change.key.kind);
            let resource = names::config_resource(kind, key.name);
            let path = format!("configs/{resource}/{}", key.key);
            let value = |value: &str| {
                Leaf::Config {
                    kind,
                    key: key.key,
                    value,
                }
                .json(self.show_secrets)
            };
            let (before, after) = (change.before.map(value), change.after.map(value));
            sink(simple("config", path, before, after))?;
        }
        for change in &diff.quotas {
            let entity = names::quota_entity(change.key.entity);
            let path = format!("clientQuotas/{entity}/{}", change.key.key);
            let value = |value: f64| Leaf::Quota(value).json(true);
            let (before, after) = (change.before.map(value), change.after.map(value));
            sink(simple("quota", path, before, after))?;
        }
        if let Some(Change { before, after, .. }) = diff.next_producer_id {
            let path = "producerIds/nextProducerId".to_owned();
            let (before, after) = (before.map(Value::from), after.map(Value::from));
            sink(simple("producerIds", path, before, after))?;
        }
        Ok(())
    }

    fn nodes(&self, diff: &Diff<'_>, sink: Sink<'_>) -> io::Result<()> {
        for change in &diff.brokers {
            let path = format!("cluster/brokers/{}", change.key);
            let leaves = (
                change.before.map(Leaf::Broker),
                change.after.map(Leaf::Broker),
            );
            sink(self.entry("broker", path, leaves, words::broker(change)))?;
        }
        for change in &diff.controllers {
            let path = format!("cluster/controllers/{}", change.key);
            let leaves = (
                change.before.map(Leaf::Controller),
                change.after.map(Leaf::Controller),
            );
            sink(self.entry("controller", path, leaves, words::controller(change)))?;
        }
        Ok(())
    }

    fn security(&self, diff: &Diff<'_>, sink: Sink<'_>) -> io::Result<()> {
        for change in &diff.acls {
            let path = format!("acls/byId/{}", ids::base64url(change.key));
            let leaves = (change.before.map(Leaf::Acl), change.after.map(Leaf::Acl));
            sink(self.entry("acl", path, leaves, words::acl(change)))?;
        }
        for change in &diff.scram {
            let (user, mechanism) = change.key;
            let path = format!("scram/{}/{user}", names::scram_mechanism(*mechanism));
            let leaves = (
                change.before.map(Leaf::Scram),
                change.after.map(Leaf::Scram),
            );
            let text = words::presence(change, "credential set", "credential removed");
            let text = text.unwrap_or("credential changed").to_owned();
            sink(self.entry("scram", path, leaves, text))?;
        }
        for change in &diff.tokens {
            let path = format!("delegationToken/{}", change.key);
            let token = |token| Leaf::Token(change.key, token);
            let leaves = (change.before.map(token), change.after.map(token));
            let text = words::presence(change, "token created", "token removed");
            let text = text.unwrap_or("token renewed or changed").to_owned();
            sink(self.entry("token", path, leaves, text))?;
        }
        Ok(())
    }

    /// A thing with fields. What differs is decided on the true values, what is shown may be
    /// masked.
    fn entry(
        &self,
        kind: &'static str,
        path: String,
        (before, after): (Option<Leaf<'_>>, Option<Leaf<'_>>),
        text: String,
    ) -> Told {
        let shown =
            |leaf: Option<Leaf<'_>>| leaf.map_or(Value::Null, |it| it.json(self.show_secrets));
        let (mut old, mut new) = (shown(before), shown(after));
        if let (Some(before), Some(after)) = (before, after) {
            let (true_old, true_new) = (before.json(true), after.json(true));
            keep_differing(&mut old, &true_old, &true_new);
            keep_differing(&mut new, &true_new, &true_old);
        }
        Told {
            kind,
            path,
            before: old,
            after: new,
            text,
        }
    }
}

fn keep_differing(shown: &mut Value, own: &Value, other: &Value) {
    if let Value::Object(fields) = shown {
        fields.retain(|name, _| own.get(name) != other.get(name));
    }
}

/// A thing that is one value.
fn simple(kind: &'static str, path: String, before: Option<Value>, after: Option<Value>) -> Told {
    let shown = |value: &Value| match value {
        Value::String(text) if text.is_empty() => "\"\"".to_owned(),
        Value::String(text) => text.clone(),
        Value::Null => "none".to_owned(),
        other => other.to_string(),
    };
    let text = match (&before, &after) {
        (Some(old), Some(new)) if old == new && old == REDACTED => "another secret".to_owned(),
        (Some(old), Some(new)) => format!("{} -> {}", shown(old), shown(new)),
        (None, Some(new)) => format!("set to {}", shown(new)),
        (Some(old), None) => format!("removed, was {}", shown(old)),
        (None, None) => String::new(),
    };
    Told {
        kind,
        path,
        before: before.unwrap_or_default(),
        after: after.unwrap_or_default(),
        text,
    }
}

fn feature(change: &Change<&str, i16>) -> Told {
    if change.key == METADATA_VERSION {
        let value = |level: i16| Value::from(MetadataVersion(level).name());
        return simple(
            "feature",
            "features/metadataVersion".to_owned(),
            change.before.map(value),
            change.after.map(value),
        );
    }
    let path = format!("features/{}", names::finalized(change.key));
    simple(
        "feature",
        path,
        change.before.map(Value::from),
        change.after.map(Value::from),
    )
}

fn topic(change: &TopicChange<'_>, sink: Sink<'_>) -> io::Result<()> {
    let path = format!("topics/byName/{}", change.name);
    let value = |topic: Option<TopicRef<'_>>| {
        topic.map_or(Value::Null, |topic| {
            json!({"id": ids::base64url(topic.id()), "partitions": topic.partition_count()})
        })
    };
    if change.kind() != TopicChangeKind::Changed {
        let (before, after) = (value(change.before), value(change.after));
        let text = words::topic(change);
        return sink(Told {
            kind: "topic",
            path,
            before,
            after,
            text,
        });
    }
    for partition in &change.partitions {
        let path = format!("{path}/{}", partition.key);
        let leaf = |side: Option<_>| side.map_or(Value::Null, |it| Leaf::Partition(it).json(true));
        let (mut before, mut after) = (leaf(partition.before), leaf(partition.after));
        if partition.before.is_some() && partition.after.is_some() {
            let (old, new) = (before.clone(), after.clone());
            keep_differing(&mut before, &old, &new);
            keep_differing(&mut after, &new, &old);
        }
        let text = words::partition(partition);
        sink(Told {
            kind: "partition",
            path,
            before,
            after,
            text,
        })?;
    }
    Ok(())
}

#[cfg(test)]
#[path = "changes_tests.rs"]
mod tests;
