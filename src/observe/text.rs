//! The tree as text for people: a directory as a table, a leaf as its fields.

use std::fmt::Write as _;
use std::io::{self, Write};

use serde_json::Value;

use super::leaf::{Leaf, recovery_state};
use super::names;
use super::tree::{Directory, Named, Node, View};
use super::{Provenance, iso_time};
use crate::image::{Acl, Broker, Endpoint, Partition};
use crate::types::{Offset, ids};

/// Rows that are aligned with one another; so many are held before they are written.
const BLOCK_ROWS: usize = 1000;

/// Writes a node: what is in a directory, or the value of a leaf.
///
/// # Errors
/// Those of writing to `out`.
pub fn write(view: View<'_>, node: Node<'_>, out: &mut dyn Write) -> io::Result<()> {
    match node {
        Node::Leaf(leaf) => write_leaf(&leaf.json(view.show_secrets), out),
        Node::Directory(directory) => {
            let mut table = Table::new(header(directory));
            for child in view.children(directory) {
                table.add(row(view, directory, child), out)?;
            }
            table.flush(out)
        }
    }
}

fn write_leaf(value: &Value, out: &mut dyn Write) -> io::Result<()> {
    let Value::Object(fields) = value else {
        return writeln!(out, "{}", scalar(value));
    };
    let width = fields.keys().map(String::len).max().unwrap_or(0);
    for (name, value) in fields {
        writeln!(out, "{name:width$}  {}", scalar(value))?;
    }
    Ok(())
}

/// A value on one line: texts without quotes, lists and objects with commas between.
fn scalar(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => one_line(text),
        Value::Array(values) => match values.is_empty() {
            true => "-".to_owned(),
            false => values.iter().map(scalar).collect::<Vec<_>>().join(", "),
        },
        Value::Object(fields) => {
            if let (2, Some(min), Some(max)) = (fields.len(), fields.get("min"), fields.get("max"))
            {
                return format!("{min}..{max}");
            }
            let each = fields.iter();
            let each = each.map(|(name, value)| format!("{name}={}", scalar(value)));
            each.collect::<Vec<_>>().join(" ")
        }
        Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

/// Text from the cluster must not move the cursor or begin lines of its own.
#[must_use]
pub fn one_line(text: &str) -> String {
    if !text.chars().any(char::is_control) {
        return text.to_owned();
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if c.is_control() {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    shown
}

fn header(directory: Directory<'_>) -> &'static [&'static str] {
    match directory {
        Directory::AclsById => &[
            "ID",
            "PRINCIPAL",
            "PERMISSION",
            "OPERATION",
            "RESOURCE",
            "PATTERN",
            "HOST",
        ],
        Directory::Brokers => &["ID", "STATE", "EPOCH", "RACK", "LISTENERS", "DIRECTORIES"],
        Directory::Controllers => &["ID", "INCARNATION", "LISTENERS"],
        Directory::Topic(_) => &[
            "PARTITION",
            "LEADER",
            "LEADER-EPOCH",
            "EPOCH",
            "REPLICAS",
            "ISR",
            "MORE",
        ],
        Directory::TopicsById => &["ID", "PARTITIONS", "NAME"],
        Directory::TopicsByName => &["NAME", "PARTITIONS", "ID"],
        _ => &[],
    }
}

fn row(view: View<'_>, directory: Directory<'_>, (name, node): Named<'_>) -> Vec<String> {
    let name = one_line(&name);
    match node {
        Node::Leaf(Leaf::Acl(acl)) => acl_row(name, acl),
        Node::Leaf(Leaf::Broker(broker)) => broker_row(name, broker),
        Node::Leaf(Leaf::Controller(controller)) => vec![
            name,
            ids::base64url(controller.incarnation),
            listeners(&controller.endpoints),
        ],
        Node::Leaf(Leaf::Partition(partition)) => partition_row(name, partition),
        Node::Leaf(Leaf::Provenance(it)) => vec![name, provenance(it)],
        Node::Leaf(leaf) => vec![name, scalar(&leaf.json(view.show_secrets))],
        Node::Directory(Directory::Topic(topic)) => {
            let count = topic.partition_count().to_string();
            let other = match directory {
                Directory::TopicsById => topic.name().to_owned(),
                _ => ids::base64url(topic.id()),
            };
            vec![name, count, other]
        }
        Node::Directory(inner) => vec![format!("{name}/"), summary(view, inner)],
    }
}

fn provenance(provenance: Provenance) -> String {
    if provenance.offset < Offset::ZERO {
        return "nothing yet".to_owned();
    }
    let committed = provenance
        .committed
        .filter(|known| *known < provenance.offset);
    let committed = committed.map(|known| format!(", known to be committed up to {known}"));
    format!(
        "after offset {}, epoch {}, {}{}",
        provenance.offset,
        provenance.epoch,
        iso_time(provenance.time),
        committed.unwrap_or_default()
    )
}

fn acl_row(name: String, acl: &Acl) -> Vec<String> {
    vec![
        name,
        one_line(&acl.principal),
        names::acl_permission(acl.permission_type),
        names::acl_operation(acl.operation),
        format!(
            "{} {}",
            names::acl_resource_type(acl.resource_type),
            one_line(&acl.resource_name)
        ),
        names::acl_pattern_type(acl.pattern_type),
        one_line(&acl.host),
    ]
}

fn broker_row(name: String, broker: &Broker) -> Vec<String> {
    let state = match (broker.fenced, broker.in_controlled_shutdown) {
        (true, true) => "fenced, shut down",
        (true, false) => "fenced",
        (false, true) => "shutting down",
        (false, false) => "active",
    };
    let cordoned = broker.cordoned.as_ref().map_or(0, Vec::len);
    let mut directories = broker.directories.len().to_string();
    if cordoned > 0 {
        let _ = write!(directories, ", {cordoned} cordoned");
    }
    vec![
        name,
        state.to_owned(),
        broker.epoch.to_string(),
        broker
            .rack
            .as_deref()
            .map_or_else(|| "-".to_owned(), one_line),
        listeners(&broker.endpoints),
        directories,
    ]
}

pub(super) fn listeners(endpoints: &[Endpoint]) -> String {
    let each = endpoints.iter();
    let each = each.map(|it| format!("{}://{}:{}", it.name, it.host, it.port));
    one_line(&each.collect::<Vec<_>>().join(","))
}

fn partition_row(name: String, partition: Partition<'_>) -> Vec<String> {
    let mut more = Vec::new();
    for (what, list) in [
        ("adding", partition.adding()),
        ("removing", partition.removing()),
        ("elr", partition.elr()),
        ("lastKnownElr", partition.last_known_elr()),
    ] {
        if !list.is_empty() {
            more.push(format!("{what}={}", numbers(list)));
        }
    }
    if partition.recovering() {
        more.push(recovery_state(partition).to_owned());
    }
    let leader = match partition.leader() {
        -1 => "none".to_owned(),
        id => id.to_string(),
    };
    vec![
        name,
        leader,
        partition.leader_epoch().to_string(),
        partition.partition_epoch().to_string(),
        numbers(partition.replicas()),
        numbers(partition.isr()),
        more.join(" "),
    ]
}

/// Broker ids with commas between them, `-` for none.
pub(super) fn numbers(list: &[i32]) -> String {
    if list.is_empty() {
        return "-".to_owned();
    }
    let texts: Vec<String> = list.iter().map(ToString::to_string).collect();
    texts.join(",")
}

fn count(count: usize, one: &str, many: &str) -> String {
    match count {
        1 => format!("1 {one}"),
        _ => format!("{count} {many}"),
    }
}

/// What is in a directory, in a few words.
fn summary(view: View<'_>, directory: Directory<'_>) -> String {
    let image = view.image.settled();
    match directory {
        Directory::Acls | Directory::AclsById => {
            count(image.acls().by_id().len(), "entry", "entries")
        }
        Directory::ClientQuotas => count(image.quotas().len(), "entity", "entities"),
        Directory::Cluster => {
            let brokers = summary(view, Directory::Brokers);
            format!("{brokers}, {}", summary(view, Directory::Controllers))
        }
        Directory::Brokers => {
            let fenced = image.brokers().values().filter(|broker| broker.fenced);
            let brokers = count(image.brokers().len(), "broker", "brokers");
            match fenced.count() {
                0 => brokers,
                fenced => format!("{brokers} ({fenced} fenced)"),
            }
        }
        Directory::Controllers => count(image.controllers().len(), "controller", "controllers"),
        Directory::Configs => {
            let resources = view.children(directory).count();
            count(resources, "resource", "resources")
        }
        Directory::DelegationToken => count(image.tokens().len(), "token", "tokens"),
        Directory::ProducerIds => format!("next {}", image.next_producer_id()),
        Directory::Scram => count(image.scram().len(), "credential", "credentials"),
        Directory::Topics => format!(
            "{}, {}",
            count(image.topic_count(), "topic", "topics"),
            count(image.partition_count(), "partition", "partitions")
        ),
        Directory::TopicsById | Directory::TopicsByName => {
            count(image.topic_count(), "topic", "topics")
        }
        Directory::ScramMechanism(_) => count(
            view.children(directory).count(),
            "credential",
            "credentials",
        ),
        Directory::Root | Directory::Features | Directory::Quota(_) | Directory::Config(..) => {
            let each = view.children(directory).map(|(name, node)| match node {
                Node::Leaf(leaf) => {
                    let value = scalar(&leaf.json(view.show_secrets));
                    format!("{}={value}", one_line(&name))
                }
                Node::Directory(_) => one_line(&name),
            });
            each.collect::<Vec<_>>().join(" ")
        }
        Directory::Topic(topic) => count(topic.partition_count(), "partition", "partitions"),
    }
}

/// Rows in columns.
struct Table {
    header: &'static [&'static str],
    rows: Vec<Vec<String>>,
}

impl Table {
    fn new(header: &'static [&'static str]) -> Self {
        let mut table = Self {
            header,
            rows: Vec::new(),
        };
        table.begin();
        table
    }

    fn begin(&mut self) {
        if !self.header.is_empty() {
            let names = self.header.iter();
            self.rows
                .push(names.map(|name| (*name).to_owned()).collect());
        }
    }

    fn add(&mut self, row: Vec<String>, out: &mut dyn Write) -> io::Result<()> {
        self.rows.push(row);
        if self.rows.len() >= BLOCK_ROWS {
            self.flush(out)?;
        }
        Ok(())
    }

    fn flush(&mut self, out: &mut dyn Write) -> io::Result<()> {
        let mut widths: Vec<usize> = Vec::new();
        for row in &self.rows {
            for (at, cell) in row.iter().enumerate().take(row.len().saturating_sub(1)) {
                let width = cell.chars().count();
                match widths.get_mut(at) {
                    Some(known) => *known = (*known).max(width),
                    None => widths.push(width),
                }
            }
        }
        for row in self.rows.drain(..) {
            let mut line = String::new();
            for (at, cell) in row.iter().enumerate() {
                let width = widths.get(at).copied().unwrap_or(0);
                let _ = write!(line, "{cell:width$}  ");
            }
            writeln!(out, "{}", line.trim_end())?;
        }
        Ok(())
    }
}
