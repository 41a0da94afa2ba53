//! Sentences about what happened to brokers, partitions and other things with fields.

use super::names;
pub(super) use super::text::one_line;
use crate::image::diff::{BrokerField, Change, PartitionField, TopicChange, TopicChangeKind};
use crate::image::{Acl, Broker, Controller, Endpoint, Partition};
use crate::types::{NodeId, PartitionId, Uuid, ids};

/// Broker ids with commas between them.
fn numbers(list: &[i32]) -> String {
    if list.is_empty() {
        return "none".to_owned();
    }
    super::text::numbers(list)
}

/// The word for a thing that is there in one image only.
pub(super) fn presence<'w, K, V>(
    change: &Change<K, V>,
    added: &'w str,
    removed: &'w str,
) -> Option<&'w str> {
    match (&change.before, &change.after) {
        (None, _) => Some(added),
        (_, None) => Some(removed),
        _ => None,
    }
}

/// What happened to a topic that is not only [`TopicChangeKind::Changed`].
pub(super) fn topic(change: &TopicChange<'_>) -> String {
    let of = |topic: crate::image::TopicRef<'_>| {
        let partitions = match topic.partition_count() {
            1 => "1 partition".to_owned(),
            count => format!("{count} partitions"),
        };
        format!("{partitions}, id {}", ids::base64url(topic.id()))
    };
    let (before, after) = (change.before.map(of), change.after.map(of));
    match (change.kind(), before, after) {
        (TopicChangeKind::Created, _, Some(after)) => format!("topic created, {after}"),
        (TopicChangeKind::Deleted, Some(before), _) => format!("topic deleted, had {before}"),
        (_, Some(before), Some(after)) => {
            format!("topic deleted and created again: {before} -> {after}")
        }
        _ => String::new(),
    }
}

/// What happened to a partition.
pub(super) fn partition(change: &Change<PartitionId, Partition<'_>>) -> String {
    match (change.before, change.after) {
        (Some(before), Some(after)) => changed_partition(before, after),
        (None, Some(after)) => format!(
            "partition added: {}, replicas {}",
            leader_of(after),
            numbers(after.replicas())
        ),
        (Some(before), None) => {
            format!("partition removed: replicas {}", numbers(before.replicas()))
        }
        (None, None) => String::new(),
    }
}

fn leader_of(partition: Partition<'_>) -> String {
    match partition.leader() {
        -1 => "no leader".to_owned(),
        id => format!("leader {id}"),
    }
}

fn changed_partition(a: Partition<'_>, b: Partition<'_>) -> String {
    let fields = PartitionField::between(a, b);
    let list = |what: &str, old: &[i32], new: &[i32]| {
        format!("{what} {} -> {}", numbers(old), numbers(new))
    };
    let mut said = Vec::new();
    for field in &fields {
        let words = match field {
            PartitionField::Leader => leader_words(a, b),
            PartitionField::LeaderEpoch if fields.contains(&PartitionField::Leader) => continue,
            PartitionField::LeaderEpoch => {
                format!("leader epoch {} -> {}", a.leader_epoch(), b.leader_epoch())
            }
            PartitionField::Isr => {
                let verb = set_change(a.isr(), b.isr());
                list(&format!("ISR {verb}"), a.isr(), b.isr())
            }
            PartitionField::Replicas => list("replicas", a.replicas(), b.replicas()),
            PartitionField::Adding => list("adding", a.adding(), b.adding()),
            PartitionField::Removing => list("removing", a.removing(), b.removing()),
            PartitionField::Elr => list("ELR", a.elr(), b.elr()),
            PartitionField::LastKnownElr => {
                list("last known ELR", a.last_known_elr(), b.last_known_elr())
            }
            PartitionField::Directories => {
                format!(
                    "directories {} -> {}",
                    uuids(a.directories()),
                    uuids(b.directories())
                )
            }
            PartitionField::Recovering if b.recovering() => "recovers unclean".to_owned(),
            PartitionField::Recovering => "is recovered".to_owned(),
            // It grows with every change: worth a word only where there is no other.
            PartitionField::PartitionEpoch if fields.len() > 1 => continue,
            PartitionField::PartitionEpoch => {
                format!(
                    "partition epoch {} -> {}",
                    a.partition_epoch(),
                    b.partition_epoch()
                )
            }
        };
        said.push(words);
    }
    // The leader is what people look for first.
    said.sort_by_key(|words| !words.starts_with("leader"));
    said.join("; ")
}

fn leader_words(a: Partition<'_>, b: Partition<'_>) -> String {
    let what = match (a.leader(), b.leader()) {
        (-1, new) => format!("leader {new} elected, there was none"),
        (old, -1) => format!("leader {old} lost, there is none"),
        (old, new) => format!("leader moved from {old} to {new}"),
    };
    match (a.leader_epoch(), b.leader_epoch()) {
        (old, new) if old == new => what,
        (old, new) => format!("{what}, leader epoch {old} -> {new}"),
    }
}

/// Whether a set lost members, won some, or both.
fn set_change(old: &[i32], new: &[i32]) -> &'static str {
    let lost = old.iter().any(|id| !new.contains(id));
    let won = new.iter().any(|id| !old.contains(id));
    match (lost, won) {
        (true, false) => "shrank",
        (false, true) => "grew",
        (true, true) => "changed",
        (false, false) => "reordered",
    }
}

fn uuids(list: &[Uuid]) -> String {
    let texts: Vec<String> = list.iter().map(|id| ids::base64url(*id)).collect();
    if texts.is_empty() {
        "none".to_owned()
    } else {
        texts.join(",")
    }
}

/// What happened to a broker.
pub(super) fn broker(change: &Change<NodeId, &Broker>) -> String {
    match (change.before, change.after) {
        (Some(before), Some(after)) => changed_broker(before, after),
        (None, Some(after)) => {
            let state = if after.fenced { "fenced" } else { "unfenced" };
            format!("broker registered, epoch {}, {state}", after.epoch)
        }
        (Some(before), None) => format!("broker unregistered, had epoch {}", before.epoch),
        (None, None) => String::new(),
    }
}

fn changed_broker(a: &Broker, b: &Broker) -> String {
    let either = |is: bool, yes: &str, no: &str| (if is { yes } else { no }).to_owned();
    let rack = |broker: &Broker| broker.rack.clone().unwrap_or_else(|| "none".to_owned());
    let each = BrokerField::between(a, b)
        .into_iter()
        .map(|field| match field {
            BrokerField::Epoch => format!("registered again, epoch {} -> {}", a.epoch, b.epoch),
            BrokerField::Incarnation => format!(
                "incarnation {} -> {}",
                ids::base64url(a.incarnation),
                ids::base64url(b.incarnation)
            ),
            BrokerField::Endpoints => listeners(&a.endpoints, &b.endpoints),
            BrokerField::Features => "supported features changed".to_owned(),
            BrokerField::Rack => format!("rack {} -> {}", rack(a), rack(b)),
            BrokerField::Fenced => either(b.fenced, "fenced", "unfenced"),
            BrokerField::InControlledShutdown => either(
                b.in_controlled_shutdown,
                "began its controlled shutdown",
                "is in no controlled shutdown any more",
            ),
            BrokerField::IsMigrating => either(b.is_migrating, "migrates", "migrates no more"),
            BrokerField::Directories => {
                format!(
                    "directories {} -> {}",
                    uuids(&a.directories),
                    uuids(&b.directories)
                )
            }
            BrokerField::Cordoned => format!(
                "cordoned directories {} -> {}",
                uuids(a.cordoned.as_deref().unwrap_or_default()),
                uuids(b.cordoned.as_deref().unwrap_or_default())
            ),
        });
    each.collect::<Vec<_>>().join("; ")
}

fn listeners(a: &[Endpoint], b: &[Endpoint]) -> String {
    let shown = super::text::listeners;
    format!("listeners {} -> {}", shown(a), shown(b))
}

/// What happened to a controller.
pub(super) fn controller(change: &Change<NodeId, &Controller>) -> String {
    let (Some(a), Some(b)) = (change.before, change.after) else {
        let word = presence(change, "controller registered", "controller unregistered");
        return word.unwrap_or_default().to_owned();
    };
    let mut said = Vec::new();
    if a.incarnation != b.incarnation {
        let (old, new) = (ids::base64url(a.incarnation), ids::base64url(b.incarnation));
        said.push(format!("registered again, incarnation {old} -> {new}"));
    }
    if a.endpoints != b.endpoints {
        said.push(listeners(&a.endpoints, &b.endpoints));
    }
    if a.features != b.features {
        said.push("supported features changed".to_owned());
    }
    if a.zk_migration_ready != b.zk_migration_ready {
        said.push("readiness for a migration from ZooKeeper changed".to_owned());
    }
    said.join("; ")
}

/// What happened to an access control entry.
pub(super) fn acl(change: &Change<Uuid, &Acl>) -> String {
    let of = |acl: &Acl| {
        format!(
            "{} {} {} on {} {} ({}) from {}",
            acl.principal,
            names::acl_permission(acl.permission_type),
            names::acl_operation(acl.operation),
            names::acl_resource_type(acl.resource_type),
            acl.resource_name,
            names::acl_pattern_type(acl.pattern_type),
            acl.host
        )
    };
    match (change.before.map(of), change.after.map(of)) {
        (None, Some(after)) => format!("added: {after}"),
        (Some(before), None) => format!("removed: {before}"),
        (before, after) => {
            format!(
                "{} -> {}",
                before.unwrap_or_default(),
                after.unwrap_or_default()
            )
        }
    }
}
