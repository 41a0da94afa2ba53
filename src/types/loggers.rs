//! Loggers of this process by name: its own parts, and the names that Java's controller gives to
//! the same work. As in log4j, a logger without a level of its own has that of the one above it.
//!
//! Events are marked with paths of modules (`kraftd::raft`). Names have dots in their place, since
//! Kafka's tools take no others; both are understood.

use std::collections::BTreeMap;

/// The logger above all others; its level cannot be taken away.
pub const ROOT: &str = "root";
const KRAFTD: &str = "kraftd";
/// Above what decides, and what runs and loads it: Java has one package for both.
const CONTROLLER: &str = "org.apache.kafka.controller";
const NODE: &str = "kraftd.node";
const SERVER: &str = "kraftd.server";

/// What is logged at least, the fewest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Nothing. Only a command line and an environment can say it.
    Off,
    /// Nothing here: nothing of kraftd's is worse than an error.
    Fatal,
    /// A human must look.
    Error,
    /// Not as it should be.
    Warn,
    /// What operators follow.
    Info,
    /// Every request and every call.
    Debug,
    /// Everything.
    Trace,
}

impl Level {
    /// The levels that a request may set, by name as Java sorts them in its texts.
    pub const SETTABLE: [Self; 6] = [
        Self::Debug,
        Self::Error,
        Self::Fatal,
        Self::Info,
        Self::Trace,
        Self::Warn,
    ];

    /// As Java writes it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Off => "OFF",
            Self::Fatal => "FATAL",
            Self::Error => "ERROR",
            Self::Warn => "WARN",
            Self::Info => "INFO",
            Self::Debug => "DEBUG",
            Self::Trace => "TRACE",
        }
    }

    /// The level of this name, in capitals, that a request may set.
    #[must_use]
    pub fn settable(name: &str) -> Option<Self> {
        Self::SETTABLE
            .into_iter()
            .find(|level| level.name() == name)
    }
}

/// A logger that is always there.
struct Known {
    /// What its events are marked with, but for the dots.
    name: &'static str,
    /// The logger whose level it has unless it has one of its own.
    above: &'static str,
    /// Java's names of the same: `package` in front of each, or as they are without it.
    package: &'static str,
    java: &'static [&'static str],
}

/// Who logs. Java's names are those that its controller lists; what has no counterpart here (the
/// groups' coordinators, JMX) is not among them.
const KNOWN: [Known; 13] = [
    Known {
        name: KRAFTD,
        above: ROOT,
        package: "",
        java: &["kafka", "org.apache.kafka"],
    },
    Known {
        name: CONTROLLER,
        above: KRAFTD,
        package: "",
        java: &[],
    },
    Known {
        name: "kraftd.controller",
        above: CONTROLLER,
        package: "org.apache.kafka.controller.",
        java: &[
            "AclControlManager",
            "BrokerHeartbeatManager",
            "ClientQuotaControlManager",
            "ClusterControlManager",
            "ConfigurationControlManager",
            "DelegationTokenControlManager",
            "FeatureControlManager",
            "PeriodicTaskControlManager",
            "ProducerIdControlManager",
            "ReplicationControlManager",
            "ScramControlManager",
        ],
    },
    Known {
        name: NODE,
        above: CONTROLLER,
        package: "org.apache.kafka.",
        java: &[
            "controller.EventPerformanceMonitor",
            "controller.OffsetControlManager",
            "controller.QuorumController",
            "deferred.DeferredEventQueue",
            "queue.KafkaEventQueue",
            "timeline.SnapshotRegistry",
        ],
    },
    Known {
        name: "kraftd.node.load",
        above: NODE,
        package: "org.apache.kafka.image.loader.",
        java: &["MetadataBatchLoader", "MetadataLoader"],
    },
    Known {
        name: "kraftd.node.register",
        above: NODE,
        package: "org.apache.kafka.server.controller.",
        java: &["ControllerRegistrationManager"],
    },
    Known {
        name: "kraftd.node.snapshots",
        above: NODE,
        package: "org.apache.kafka.",
        java: &[
            "image.publisher.SnapshotEmitter",
            "image.publisher.SnapshotGenerator",
            "snapshot.Snapshots",
        ],
    },
    Known {
        name: "kraftd.raft",
        above: KRAFTD,
        package: "org.apache.kafka.raft",
        java: &[
            "",
            ".CandidateState",
            ".FollowerState",
            ".KafkaRaftClient",
            ".KafkaRaftClientDriver",
            ".LeaderState",
            ".ProspectiveState",
            ".QuorumState",
            ".ResignedState",
            ".UnattachedState",
            ".internals.AddVoterHandler",
            ".internals.KRaftControlRecordStateMachine",
            ".internals.RemoveVoterHandler",
            ".internals.UpdateVoterHandler",
            ".internals.VoterSetHistory",
        ],
    },
    Known {
        name: "kraftd.runtime",
        above: KRAFTD,
        package: "kafka.server.",
        java: &["ControllerServer", "KafkaRaftServer", "SharedServer"],
    },
    Known {
        name: SERVER,
        above: KRAFTD,
        package: "",
        java: &[
            "kafka.network",
            "kafka.network.ConnectionQuotas",
            "kafka.network.DataPlaneAcceptor",
            "kafka.network.Processor",
            "kafka.network.SocketServer",
            "kafka.server.ControllerApis",
            "kafka.server.KafkaRequestHandler",
            "kafka.server.metadata.DynamicConfigPublisher",
            "org.apache.kafka.common.network.NetworkReceive",
            "org.apache.kafka.common.network.Selector",
        ],
    },
    Known {
        name: "kraftd.server.peer",
        above: SERVER,
        package: "org.apache.kafka.",
        java: &[
            "clients.ClientUtils",
            "clients.ClusterConnectionStates",
            "clients.NetworkClient",
            "raft.KafkaNetworkChannel",
            "raft.KafkaNetworkChannel$SendThread",
            "raft.internals.DefaultRequestSender",
            "server.NodeToControllerChannelManagerImpl",
            "server.NodeToControllerRequestThread",
        ],
    },
    Known {
        name: "kraftd.storage",
        above: KRAFTD,
        package: "org.apache.kafka.",
        java: &[
            "metadata.properties.MetaPropertiesEnsemble",
            "raft.FileQuorumStateStore",
            "raft.internals.KafkaRaftLog",
            "server.util.FileLock",
            "storage.internals.checkpoint.CheckpointFileWithFailureHandler",
            "storage.internals.epoch.LeaderEpochFileCache",
            "storage.internals.log.AbstractIndex",
            "storage.internals.log.LocalLog",
            "storage.internals.log.LogLoader",
            "storage.internals.log.LogSegment",
            "storage.internals.log.OffsetIndex",
            "storage.internals.log.TimeIndex",
            "storage.internals.log.UnifiedLog",
        ],
    },
    // Every request has a line here, so it follows the root alone, as it does in the
    // configuration that Kafka ships.
    Known {
        name: "kafka.authorizer.logger",
        above: ROOT,
        package: "",
        java: &[],
    },
];

/// A change of one logger; without a level, its own is taken away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// A name for which [`Loggers::has`] is true.
    pub logger: String,
    /// The new level.
    pub level: Option<Level>,
}

/// All loggers and their levels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loggers {
    root: Level,
    /// Those that have a level of their own, by their first names.
    own: BTreeMap<String, Level>,
    /// Names of parts that only the environment names, each below the longest name that it begins
    /// with, and what their events are marked with.
    more: Vec<(String, String)>,
}

impl Default for Loggers {
    /// All at [`Level::Info`].
    fn default() -> Self {
        Self::new(Level::Info, [])
    }
}

impl Loggers {
    /// Those that are always there, and those that are named.
    #[must_use]
    pub fn new(root: Level, named: impl IntoIterator<Item = (String, Level)>) -> Self {
        let mut loggers = Self {
            root,
            own: BTreeMap::new(),
            more: Vec::new(),
        };
        for (mark, level) in named {
            let name = dotted(&mark);
            if !loggers.has(&name) {
                loggers.more.push((name.clone(), mark));
            }
            loggers.change(&Change {
                logger: name,
                level: Some(level),
            });
        }
        loggers
    }

    /// Whether there is a logger of this name.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.first_name(name).is_some()
    }

    /// Changes one; nothing without a logger of this name, nor where the root's level would go.
    pub fn change(&mut self, change: &Change) {
        let Some(name) = self.first_name(&change.logger).map(str::to_owned) else {
            return;
        };
        match change.level {
            Some(level) if name == ROOT => self.root = level,
            Some(level) => {
                self.own.insert(name, level);
            }
            None => {
                self.own.remove(&name);
            }
        }
    }

    /// All names, Java's too, with the levels that hold, sorted by name.
    #[must_use]
    pub fn levels(&self) -> BTreeMap<String, Level> {
        let mut levels = BTreeMap::from([(ROOT.to_owned(), self.root)]);
        for known in &KNOWN {
            let level = self.level(known.name);
            levels.insert(known.name.to_owned(), level);
            let java = known.java.iter();
            levels.extend(java.map(|name| (format!("{}{name}", known.package), level)));
        }
        let more = self.more.iter();
        levels.extend(more.map(|(name, _)| (name.clone(), self.level(name))));
        levels
    }

    /// What events are marked with and the levels that hold for them, without the root's. The
    /// longest name that a mark begins with counts.
    pub fn targets(&self) -> impl Iterator<Item = (String, Level)> {
        let known = KNOWN.iter().map(|known| {
            let is_path = known.name.starts_with(KRAFTD);
            let path = is_path.then(|| known.name.replace('.', "::"));
            let mark = path.unwrap_or_else(|| known.name.to_owned());
            (mark, self.level(known.name))
        });
        let more = self.more.iter();
        known.chain(more.map(|(name, mark)| (mark.clone(), self.level(name))))
    }

    /// The level of the root: of everything that has no name here.
    #[must_use]
    pub const fn root(&self) -> Level {
        self.root
    }

    /// The names of kraftd's own, for people.
    #[must_use]
    pub fn own_names() -> String {
        let own = KNOWN.iter().map(|known| known.name);
        let names: Vec<&str> = [ROOT].into_iter().chain(own).collect();
        names.join(", ")
    }

    fn level(&self, first_name: &str) -> Level {
        let mut name = first_name;
        loop {
            if name == ROOT {
                return self.root;
            }
            if let Some(level) = self.own.get(name) {
                return *level;
            }
            name = self.above(name);
        }
    }

    /// The logger above one, which is nearer to the root.
    fn above<'a>(&'a self, name: &'a str) -> &'a str {
        if let Some(known) = KNOWN.iter().find(|known| known.name == name) {
            return known.above;
        }
        let known = KNOWN.iter().map(|known| known.name);
        let names = known.chain(self.more.iter().map(|(name, _)| name.as_str()));
        let above = names.filter(|above| *above != name && name.starts_with(above));
        above.max_by_key(|above| above.len()).unwrap_or(ROOT)
    }

    fn first_name(&self, name: &str) -> Option<&str> {
        if name == ROOT {
            return Some(ROOT);
        }
        let name = &dotted(name);
        let is_java = |known: &Known| {
            let rest = name.strip_prefix(known.package);
            rest.is_some_and(|rest| known.java.contains(&rest))
        };
        let mut known = KNOWN.iter();
        let known = known.find(|known| known.name == name || is_java(known));
        let more = || self.more.iter().find(|(more, _)| more == name);
        known
            .map(|known| known.name)
            .or_else(|| more().map(|(name, _)| name.as_str()))
    }
}

/// A name as Kafka's tools write it.
fn dotted(name: &str) -> String {
    name.replace("::", ".")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(loggers: &mut Loggers, logger: &str, level: Option<Level>) {
        let logger = logger.to_owned();
        loggers.change(&Change { logger, level });
    }

    #[test]
    fn a_logger_follows_the_one_above_unless_it_has_a_level_of_its_own() {
        let mut loggers = Loggers::default();
        let client = "org.apache.kafka.controller.QuorumController";
        change(&mut loggers, CONTROLLER, Some(Level::Debug));
        change(&mut loggers, client, Some(Level::Trace));
        change(&mut loggers, CONTROLLER, Some(Level::Error));
        let told = |loggers: &Loggers, name: &str| loggers.levels()[name];
        for (name, level) in [
            (CONTROLLER, Level::Error),
            ("kraftd.controller", Level::Error),
            (client, Level::Trace),
            (NODE, Level::Trace),
            ("kraftd.node.load", Level::Trace),
            ("kraftd.raft", Level::Info),
        ] {
            assert_eq!(told(&loggers, name), level, "{name}");
        }
        change(&mut loggers, client, None);
        assert_eq!(told(&loggers, NODE), Level::Error);
        change(&mut loggers, CONTROLLER, None);
        change(&mut loggers, ROOT, Some(Level::Warn));
        assert!(loggers.levels().values().all(|level| *level == Level::Warn));
        change(&mut loggers, ROOT, None);
        assert_eq!(loggers.root(), Level::Warn);
    }

    #[test]
    fn both_names_of_a_logger_change_it() {
        let mut loggers = Loggers::default();
        change(&mut loggers, "org.apache.kafka.raft", Some(Level::Debug));
        assert_eq!(loggers.levels()["kraftd.raft"], Level::Debug);
        change(&mut loggers, "kraftd.raft", None);
        assert_eq!(loggers, Loggers::default());
        change(&mut loggers, "kafka", Some(Level::Debug));
        assert_eq!(loggers.levels()["org.apache.kafka"], Level::Debug);
        assert_eq!(loggers.levels()["kafka.authorizer.logger"], Level::Info);
    }

    #[test]
    fn what_the_environment_names_is_below_the_longest_name_that_it_begins_with() {
        let deep = "kraftd.raft.dial";
        let named = [
            ("kraftd::raft::dial".to_owned(), Level::Trace),
            ("tokio::net".to_owned(), Level::Off),
        ];
        let mut loggers = Loggers::new(Level::Warn, named);
        let levels = loggers.levels();
        assert_eq!(
            (levels[deep], levels["tokio.net"]),
            (Level::Trace, Level::Off)
        );
        change(&mut loggers, deep, None);
        change(&mut loggers, "tokio::net", None);
        change(&mut loggers, "kraftd.raft", Some(Level::Error));
        let levels = loggers.levels();
        assert_eq!(
            (levels[deep], levels["tokio.net"]),
            (Level::Error, Level::Warn)
        );
        assert!(!loggers.has("kraftd.raft.fetch"));
        let marks: Vec<String> = loggers.targets().map(|(mark, _)| mark).collect();
        for mark in [
            "kraftd::raft::dial",
            "kraftd::raft",
            "kafka.authorizer.logger",
            "tokio::net",
        ] {
            assert!(marks.iter().any(|it| it == mark), "{mark}: {marks:?}");
        }
    }

    #[test]
    fn every_name_is_there_once_and_every_logger_is_below_one_that_is_there() {
        let names: usize = KNOWN.iter().map(|known| 1 + known.java.len()).sum();
        assert_eq!(Loggers::default().levels().len(), names + 1);
        for known in &KNOWN {
            assert!(Loggers::default().has(known.above), "{}", known.above);
        }
    }
}
