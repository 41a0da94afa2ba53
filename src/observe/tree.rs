//! The tree of an image: directories, leaves, and paths that select them.
//!
//! It is the tree that Kafka's metadata shell shows below `/image`, name for name, but for this:
//! - the default entity of a client quota is `user(<default>)`: the shell shows an empty name, the
//!   same for every default, with nothing in it;
//! - a migration from ZooKeeper that is under way is shown (`features/zkMigrationState`): releases
//!   that know it have it in their own shells;
//! - `local`, the version of the shell itself, is not there.
//!
//! A selector is a path; a leading `/` or `image/` may be there. `brokers` and `controllers` mean
//! those of `cluster`, `delegationTokens` means `delegationToken`. A name may hold slashes (group
//! ids and user names can).

use std::borrow::Cow;
use std::fmt;

use super::Provenance;
use super::leaf::Leaf;
use super::names::{self, SCRAM_MECHANISMS};
use super::text::one_line;
use crate::image::{ConfigMap, Image, QuotaValues, TopicRef, ZkMigration};
use crate::types::features::METADATA_VERSION;
use crate::types::{NodeId, PartitionId, ids};

/// An image to look at.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// The image. An open metadata transaction in it is not shown.
    pub image: &'a Image,
    /// Where it stands in the log.
    pub provenance: Provenance,
    /// Whether secrets are shown.
    pub show_secrets: bool,
}

/// A directory of the tree.
#[derive(Clone, Copy, Debug)]
pub enum Directory<'a> {
    /// The image.
    Root,
    /// `acls`
    Acls,
    /// `acls/byId`
    AclsById,
    /// `clientQuotas`
    ClientQuotas,
    /// `clientQuotas/user(a)`
    Quota(&'a QuotaValues),
    /// `cluster`
    Cluster,
    /// `cluster/brokers`
    Brokers,
    /// `cluster/controllers`
    Controllers,
    /// `configs`
    Configs,
    /// `configs/TOPIC:a`, with the type of the resource
    Config(i8, &'a ConfigMap),
    /// `delegationToken`
    DelegationToken,
    /// `features`
    Features,
    /// `producerIds`
    ProducerIds,
    /// `scram`
    Scram,
    /// `scram/SCRAM-SHA-256`
    ScramMechanism(i8),
    /// `topics`
    Topics,
    /// `topics/byId`
    TopicsById,
    /// `topics/byName`
    TopicsByName,
    /// `topics/byName/a`
    Topic(TopicRef<'a>),
}

/// A node of the tree.
#[derive(Clone, Copy, Debug)]
pub enum Node<'a> {
    /// It has nodes below it.
    Directory(Directory<'a>),
    /// It has a value.
    Leaf(Leaf<'a>),
}

/// A node and its name.
pub type Named<'a> = (Cow<'a, str>, Node<'a>);

type Children<'a> = Box<dyn Iterator<Item = Named<'a>> + 'a>;

fn fixed<'a, const N: usize>(names: [(&'static str, Directory<'a>); N]) -> Children<'a> {
    let each = names.into_iter();
    Box::new(each.map(|(name, inner)| (Cow::Borrowed(name), Node::Directory(inner))))
}

fn leaves<'a, N: Into<Cow<'a, str>>>(
    each: impl Iterator<Item = (N, Leaf<'a>)> + 'a,
) -> Children<'a> {
    Box::new(each.map(|(name, leaf)| (name.into(), Node::Leaf(leaf))))
}

impl<'a> View<'a> {
    /// The root of the tree.
    #[must_use]
    pub const fn root(self) -> Node<'a> {
        Node::Directory(Directory::Root)
    }

    fn settled(self) -> &'a Image {
        self.image.settled()
    }

    /// The nodes in a directory, in order of name, number or id, made one by one.
    #[must_use]
    pub fn children(self, directory: Directory<'a>) -> Children<'a> {
        let image = self.settled();
        match directory {
            Directory::Root => self.root_children(),
            Directory::Acls => fixed([("byId", Directory::AclsById)]),
            Directory::AclsById => {
                let acls = image.acls().by_id().iter();
                leaves(acls.map(|(id, acl)| (ids::base64url(*id), Leaf::Acl(acl))))
            }
            Directory::ClientQuotas => Box::new(image.quotas().iter().map(|(entity, values)| {
                let name = names::quota_entity(entity);
                (name.into(), Node::Directory(Directory::Quota(values)))
            })),
            Directory::Quota(values) => leaves(
                values
                    .iter()
                    .map(|(key, value)| (&**key, Leaf::Quota(*value))),
            ),
            Directory::Cluster => fixed([
                ("brokers", Directory::Brokers),
                ("controllers", Directory::Controllers),
            ]),
            Directory::Brokers => {
                let brokers = image.brokers().iter();
                leaves(brokers.map(|(id, broker)| (id.to_string(), Leaf::Broker(broker))))
            }
            Directory::Controllers => {
                let all = image.controllers().iter();
                leaves(all.map(|(id, one)| (id.to_string(), Leaf::Controller(one))))
            }
            Directory::Configs => Box::new(image.configs().map(|(kind, name, map)| {
                let name = names::config_resource(kind, name);
                (name.into(), Node::Directory(Directory::Config(kind, map)))
            })),
            Directory::Config(kind, map) => leaves(
                map.iter()
                    .map(move |(key, value)| (key, Leaf::Config { kind, key, value })),
            ),
            Directory::DelegationToken => {
                let tokens = image.tokens().iter();
                leaves(tokens.map(|(id, token)| (&**id, Leaf::Token(id, token))))
            }
            Directory::Features => self.features(),
            Directory::ProducerIds => {
                // The reference shows -1 until a record gave some out.
                let next = Leaf::Number(image.recorded_producer_id().unwrap_or(-1));
                leaves(std::iter::once(("nextProducerId", next)))
            }
            Directory::Scram => fixed([
                (
                    SCRAM_MECHANISMS[0].1,
                    Directory::ScramMechanism(SCRAM_MECHANISMS[0].0),
                ),
                (
                    SCRAM_MECHANISMS[1].1,
                    Directory::ScramMechanism(SCRAM_MECHANISMS[1].0),
                ),
            ]),
            Directory::ScramMechanism(wanted) => {
                let all = image.scram().iter();
                let these = all.filter(move |((_, mechanism), _)| *mechanism == wanted);
                leaves(these.map(|((user, _), credential)| (&**user, Leaf::Scram(credential))))
            }
            Directory::Topics | Directory::TopicsById | Directory::TopicsByName => {
                self.topics(directory)
            }
            Directory::Topic(topic) => topic_children(topic),
        }
    }

    fn root_children(self) -> Children<'a> {
        let provenance = Node::Leaf(Leaf::Provenance(self.provenance));
        let provenance = std::iter::once((Cow::Borrowed("provenance"), provenance));
        let before = fixed([
            ("acls", Directory::Acls),
            ("clientQuotas", Directory::ClientQuotas),
            ("cluster", Directory::Cluster),
            ("configs", Directory::Configs),
            ("delegationToken", Directory::DelegationToken),
            ("features", Directory::Features),
            ("producerIds", Directory::ProducerIds),
        ]);
        let behind = fixed([("scram", Directory::Scram), ("topics", Directory::Topics)]);
        Box::new(before.chain(provenance).chain(behind))
    }

    fn features(self) -> Children<'a> {
        let features = self.settled().features();
        let version = features.metadata_version();
        let version = version.map_or(Leaf::Nothing, |version| Leaf::Text(version.name()));
        let migration = migration(self.settled().zk_migration());
        let migration = migration.map(|state| ("zkMigrationState".to_owned(), Leaf::Text(state)));
        let others = features
            .iter()
            .filter(|(name, _)| *name != METADATA_VERSION);
        let others =
            others.map(|(name, level)| (names::finalized(name), Leaf::Number(level.into())));
        let version = std::iter::once(("metadataVersion".to_owned(), version));
        leaves(others.chain(version).chain(migration))
    }

    fn topics(self, directory: Directory<'a>) -> Children<'a> {
        let image = self.settled();
        if matches!(directory, Directory::TopicsByName) {
            return Box::new(image.topics().map(|topic| {
                (
                    topic.name().into(),
                    Node::Directory(Directory::Topic(topic)),
                )
            }));
        }
        if matches!(directory, Directory::TopicsById) {
            let mut topics: Vec<_> = image.topics_unordered().collect();
            topics.sort_unstable_by_key(|topic| topic.id());
            return Box::new(topics.into_iter().map(|topic| {
                let id = ids::base64url(topic.id());
                (id.into(), Node::Directory(Directory::Topic(topic)))
            }));
        }
        fixed([
            ("byId", Directory::TopicsById),
            ("byName", Directory::TopicsByName),
        ])
    }

    /// The node of this name in a directory, found without a walk where there may be many.
    #[must_use]
    pub fn child(self, directory: Directory<'a>, name: &str) -> Option<Node<'a>> {
        let image = self.settled();
        let leaf = match directory {
            Directory::AclsById => {
                Leaf::Acl(image.acls().by_id().get(&ids::parse_base64url(name)?)?)
            }
            Directory::Brokers => Leaf::Broker(image.broker(NodeId(number(name)?))?),
            Directory::Controllers => {
                Leaf::Controller(image.controllers().get(&NodeId(number(name)?))?)
            }
            Directory::ScramMechanism(mechanism) => {
                Leaf::Scram(image.scram().get(&(name.to_owned(), mechanism))?)
            }
            Directory::DelegationToken => {
                let (id, token) = image.tokens().get_key_value(name)?;
                Leaf::Token(id, token)
            }
            Directory::Topic(topic) => match number(name) {
                Some(index) => Leaf::Partition(topic.partition(PartitionId(index))?),
                None => return self.walk(directory, name),
            },
            Directory::ClientQuotas => {
                let values = image.quotas().get(&names::parse_quota_entity(name)?)?;
                return Some(Node::Directory(Directory::Quota(values)));
            }
            Directory::Configs => {
                let (kind, name) = names::parse_config_resource(name)?;
                let name = name.to_owned();
                let map = image.config(&crate::image::ConfigResource { kind, name })?;
                return Some(Node::Directory(Directory::Config(kind, map)));
            }
            Directory::TopicsByName => {
                let topic = image.topic_by_name(name)?;
                return Some(Node::Directory(Directory::Topic(topic)));
            }
            Directory::TopicsById => {
                let topic = image.topic_by_id(ids::parse_base64url(name)?)?;
                return Some(Node::Directory(Directory::Topic(topic)));
            }
            Directory::Root
            | Directory::Acls
            | Directory::Quota(_)
            | Directory::Cluster
            | Directory::Config(..)
            | Directory::Features
            | Directory::ProducerIds
            | Directory::Scram
            | Directory::Topics => return self.walk(directory, name),
        };
        Some(Node::Leaf(leaf))
    }

    fn walk(self, directory: Directory<'a>, name: &str) -> Option<Node<'a>> {
        let mut children = self.children(directory);
        children
            .find(|(known, _)| known == name)
            .map(|(_, node)| node)
    }

    /// The node that a selector names, and its path without a leading slash.
    ///
    /// # Errors
    /// The name that does not exist, where, and what is near it.
    pub fn find(self, selector: &str) -> Result<(String, Node<'a>), Unknown> {
        let parts: Vec<&str> = selector
            .split('/')
            .filter(|part| !part.is_empty())
            .collect();
        let parts = match parts[..] {
            ["image", ..] => parts[1..].to_vec(),
            ["brokers" | "controllers", ..] => [&["cluster"], &parts[..]].concat(),
            ["delegationTokens", ..] => [&["delegationToken"], &parts[1..]].concat(),
            _ => parts,
        };
        let mut furthest = None;
        self.descend(String::new(), self.root(), &parts, &mut furthest)
            .ok_or_else(|| self.unknown(selector, furthest))
    }

    /// Depth first: one part a name, and, where that leads nowhere, several parts a name.
    fn descend(
        self,
        path: String,
        node: Node<'a>,
        parts: &[&str],
        furthest: &mut Option<Furthest<'a>>,
    ) -> Option<(String, Node<'a>)> {
        if parts.is_empty() {
            return Some((path, node));
        }
        let Node::Directory(directory) = node else {
            note(furthest, path, None, parts);
            return None;
        };
        for taken in 1..=parts.len().min(NAME_PARTS_MAX) {
            let name = parts[..taken].join("/");
            if let Some(child) = self.child(directory, &name) {
                let below = if path.is_empty() {
                    name
                } else {
                    format!("{path}/{name}")
                };
                let found = self.descend(below, child, &parts[taken..], furthest);
                if found.is_some() {
                    return found;
                }
            }
        }
        note(furthest, path, Some(directory), parts);
        None
    }

    fn unknown(self, selector: &str, furthest: Option<Furthest<'a>>) -> Unknown {
        let Some(furthest) = furthest else {
            return Unknown::new(selector, String::new());
        };
        let Furthest {
            path,
            directory,
            rest,
        } = furthest;
        let mut unknown = Unknown::new(&rest, path);
        match directory {
            None => unknown.is_leaf = true,
            Some(directory) => {
                let mut nearest = Nearest::to(&rest);
                for (name, _) in self.children(directory) {
                    nearest.offer(&name);
                }
                unknown.count = nearest.count;
                unknown.near = nearest.names();
            }
        }
        unknown
    }
}

/// A selector's name is made of at most this many parts between slashes: more are no name.
const NAME_PARTS_MAX: usize = 16;

/// The deepest place that a selector reached.
struct Furthest<'a> {
    path: String,
    directory: Option<Directory<'a>>,
    /// What of the selector led nowhere.
    rest: String,
}

fn note<'a>(
    furthest: &mut Option<Furthest<'a>>,
    path: String,
    directory: Option<Directory<'a>>,
    parts: &[&str],
) {
    if furthest
        .as_ref()
        .is_none_or(|known| path.len() > known.path.len())
    {
        let rest = parts.join("/");
        *furthest = Some(Furthest {
            path,
            directory,
            rest,
        });
    }
}

/// The name of the state of a migration that is under way.
pub(super) fn migration(state: ZkMigration) -> Option<&'static str> {
    match state {
        ZkMigration::Done => None,
        ZkMigration::Waiting => Some("PRE_MIGRATION"),
        ZkMigration::Running => Some("MIGRATION"),
    }
}

fn topic_children(topic: TopicRef<'_>) -> Children<'_> {
    let partitions = topic.partitions();
    let partitions =
        partitions.map(|(index, partition)| (index.to_string(), Leaf::Partition(partition)));
    let own = [
        ("id".to_owned(), Leaf::Uuid(topic.id())),
        ("name".to_owned(), Leaf::Text(topic.name())),
    ];
    leaves(partitions.chain(own))
}

/// A number as it is written: no sign in front of it, no zeros.
fn number(name: &str) -> Option<i32> {
    let number: i32 = name.parse().ok()?;
    (number.to_string() == name).then_some(number)
}

/// A selector that names nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown {
    /// What is not there.
    pub name: String,
    /// Where it is not; empty for the root.
    pub path: String,
    /// True when `path` is a leaf: nothing is below it.
    pub is_leaf: bool,
    /// The names that are there and look like it, the best one first; paths from the root.
    pub near: Vec<String>,
    /// How many names there are.
    pub count: usize,
}

impl Unknown {
    fn new(name: &str, path: String) -> Self {
        Self {
            name: name.to_owned(),
            path,
            is_leaf: false,
            near: Vec::new(),
            count: 0,
        }
    }
}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            name,
            path,
            near,
            count,
            ..
        } = self;
        let place = match path.is_empty() {
            true => "the image".to_owned(),
            false => one_line(path),
        };
        if self.is_leaf {
            return write!(f, "{place} has no {name:?} below it: it is a value");
        }
        write!(f, "there is no {name:?} in {place}")?;
        match (count, near.is_empty()) {
            (0, _) => f.write_str(", which is empty"),
            (_, false) => write!(f, "; near it: {}", one_line(&near.join(", "))),
            (_, true) => write!(f, ", and nothing like it among its {count} names"),
        }
    }
}

/// How many names are offered.
const NEAR_MAX: usize = 3;

/// Collects the names that are nearest to one.
struct Nearest<'w> {
    wanted: &'w str,
    lower: String,
    found: Vec<(usize, String)>,
    count: usize,
}

impl<'w> Nearest<'w> {
    fn to(wanted: &'w str) -> Self {
        let wanted = wanted.split('/').next().unwrap_or_default();
        Self {
            wanted,
            lower: wanted.to_lowercase(),
            found: Vec::new(),
            count: 0,
        }
    }

    fn offer(&mut self, name: &str) {
        self.count += 1;
        let lower = name.to_lowercase();
        let limit = (self.wanted.chars().count() / 3).max(2);
        let contained = !self.lower.is_empty() && lower.contains(&self.lower);
        let distance = if contained {
            Some(1)
        } else {
            distance(&self.lower, &lower, limit)
        };
        if let Some(distance) = distance {
            let at = self.found.partition_point(|(known, _)| *known <= distance);
            self.found.insert(at, (distance, name.to_owned()));
            self.found.truncate(NEAR_MAX);
        }
    }

    /// The nearest names, or all of them when they are few.
    fn names(self) -> Vec<String> {
        self.found.into_iter().map(|(_, name)| name).collect()
    }
}

/// How many characters must be put in, taken out or replaced to make one text of the other;
/// `None` when more than `limit`.
#[must_use]
pub fn distance(a: &str, b: &str, limit: usize) -> Option<usize> {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    if a.len().abs_diff(b.len()) > limit {
        return None;
    }
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, left) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, right) in b.iter().enumerate() {
            let changed = diagonal + usize::from(left != right);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(diagonal + 1).min(row[j] + 1);
        }
        if row.iter().all(|distance| *distance > limit) {
            return None;
        }
    }
    row.last().copied().filter(|distance| *distance <= limit)
}
