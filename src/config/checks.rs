//! The checks that look at several keys: whether a 4.4.0 server would start with them, whether
//! kraftd can, and what an operator should know besides.

use std::collections::BTreeMap;

use super::Purpose;
use super::finding::{Finding, Severity};
use super::listeners::{self, ProtocolMap, Written};
use super::model::{Config, HostPort, Role, SecurityProtocol};
use super::policies;
use super::values::Values;
use super::voters::{self, WILDCARD};
use crate::types::policy::{AlterConfigRules, CreateTopicRules};
use crate::types::{NodeId, quote};

pub(crate) const LISTENERS: &str = "listeners";
pub(crate) const ADVERTISED: &str = "advertised.listeners";
pub(crate) const CONTROLLER_NAMES: &str = "controller.listener.names";
pub(crate) const VOTERS: &str = "controller.quorum.voters";
pub(crate) const SERVERS: &str = "controller.quorum.bootstrap.servers";
const PROTOCOL_MAP: &str = "listener.security.protocol.map";
const INTER_BROKER: &str = "inter.broker.listener.name";
const INTER_BROKER_PROTOCOL: &str = "security.inter.broker.protocol";

/// What the checks work out on their way, and the builder needs. Parts that are wrong are empty.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    pub(crate) roles: Vec<Role>,
    pub(crate) protocols: ProtocolMap,
    pub(crate) listeners: Vec<Written>,
    pub(crate) advertised: Vec<Written>,
    pub(crate) voters: BTreeMap<NodeId, HostPort>,
    pub(crate) servers: Vec<HostPort>,
    pub(crate) create_topic: CreateTopicRules,
    pub(crate) alter_config: AlterConfigRules,
}

/// Values under review and what was found.
pub(crate) struct Review<'a> {
    pub(crate) values: &'a Values,
    pub(crate) findings: &'a mut Vec<Finding>,
    pub(crate) facts: Facts,
}

impl<'a> Review<'a> {
    /// Runs every check that has a meaning: which rules hold is said by the roles, and a broker
    /// does not start here whatever else its file says.
    pub(crate) fn run(
        purpose: Purpose,
        values: &'a Values,
        findings: &'a mut Vec<Finding>,
    ) -> Facts {
        let mut review = Self {
            values,
            findings,
            facts: Facts::default(),
        };
        review.roles();
        if purpose == Purpose::Start
            && review.has_role(Role::Broker)
            && !review.has_role(Role::Controller)
        {
            return review.facts;
        }
        review.identity();
        review.quorum();
        if review.endpoints() {
            review.controller_listeners();
            review.broker_listeners();
            review.inter_broker();
            review.early_start();
            review.protocols_built();
        }
        review.authorizer();
        review.sockets();
        review.logs();
        review.brokers_own();
        review.sense();
        review.facts.create_topic = policies::create_topic(values, review.findings);
        review.facts.alter_config = policies::alter_config(values, review.findings);
        review.advice();
        review.facts
    }

    pub(crate) fn find(&mut self, severity: Severity, key: &str, rule: &str, fix: &str) {
        self.findings.push(Finding {
            severity,
            key: quote(key),
            value: self.values.shown(key),
            rule: rule.to_owned(),
            fix: fix.to_owned(),
        });
    }

    pub(crate) fn error(&mut self, key: &str, rule: &str, fix: &str) {
        self.find(Severity::Error, key, rule, fix);
    }

    pub(crate) fn warn(&mut self, key: &str, rule: &str, fix: &str) {
        self.find(Severity::Warning, key, rule, fix);
    }

    fn require(&mut self, holds: bool, key: &str, rule: &str, fix: &str) {
        if !holds {
            self.error(key, rule, fix);
        }
    }

    pub(crate) fn names(&self) -> &'a [String] {
        self.values.list(CONTROLLER_NAMES).unwrap_or_default()
    }

    pub(crate) fn has_role(&self, role: Role) -> bool {
        self.facts.roles.contains(&role)
    }

    fn roles(&mut self) {
        let Some(written) = self.values.list("process.roles") else {
            return;
        };
        self.facts.roles = written
            .iter()
            .map(|role| match role.as_str() {
                "broker" => Role::Broker,
                _ => Role::Controller,
            })
            .collect();
        if self.has_role(Role::Broker) {
            self.find(
                Severity::Unsupported,
                "process.roles",
                "kraftd runs only the controller role",
                "set process.roles=controller here and run the broker in a process of its own",
            );
        }
    }

    fn identity(&mut self) {
        let node = self.values.number_of("node.id");
        let broker = self.values.number_of("broker.id");
        self.require(
            node.is_none() || node == broker,
            "broker.id",
            "must equal node.id when both are set",
            "remove broker.id, node.id replaces it",
        );
    }

    fn quorum(&mut self) {
        let entries = self.values.list(VOTERS).unwrap_or_default();
        let servers = self.values.list(SERVERS).unwrap_or_default();
        // Entries that are malformed were found with their key; the value then is the default.
        self.facts.voters = voters::parse(entries).unwrap_or_default();
        self.facts.servers = voters::parse_servers(servers).unwrap_or_default();
        if self.facts.roles.is_empty() {
            return;
        }
        let given = self.values.is_set(VOTERS) || self.values.is_set(SERVERS);
        if entries.is_empty() && servers.is_empty() && !(given && self.quorum_malformed()) {
            self.error(
                SERVERS,
                "neither it nor controller.quorum.voters names a controller",
                "set controller.quorum.bootstrap.servers to the host:port of the controllers",
            );
        }
        self.voters_and_roles();
        let wild = self.facts.voters.values().any(|v| v.host == WILDCARD);
        self.require(
            !wild,
            VOTERS,
            "has the host 0.0.0.0, which no peer can connect to",
            "name each voter by a host or address that its peers can reach",
        );
        if entries.len() > self.facts.voters.len() {
            self.warn(
                VOTERS,
                "has an id twice, the last entry counts",
                "remove the other entries",
            );
        }
        if !entries.is_empty() && !servers.is_empty() {
            self.warn(
                SERVERS,
                "has no effect on the quorum while controller.quorum.voters names its voters",
                "keep one of the two",
            );
        }
    }

    fn quorum_malformed(&self) -> bool {
        self.findings
            .iter()
            .any(|f| f.severity == Severity::Error && (f.key == VOTERS || f.key == SERVERS))
    }

    fn voters_and_roles(&mut self) {
        let Some(node) = self.values.number_of("node.id") else {
            return;
        };
        let listed = self.facts.voters.keys().any(|id| i64::from(id.0) == node);
        if self.has_role(Role::Controller) {
            self.require(
                self.facts.voters.is_empty() || listed,
                VOTERS,
                &format!("must have this controller's node.id {node}"),
                &format!("add {node}@host:port, or correct node.id"),
            );
        } else {
            self.require(
                !listed,
                VOTERS,
                &format!("must not have this broker's node.id {node}"),
                "list only controllers",
            );
            let auto_join = self.values.boolean("controller.quorum.auto.join.enable");
            self.require(
                !auto_join,
                "controller.quorum.auto.join.enable",
                "is only for the controller role",
                "remove it",
            );
        }
    }

    /// Parses the endpoints; false when something about them is wrong already.
    fn endpoints(&mut self) -> bool {
        match listeners::protocol_map(self.values) {
            Ok(map) => self.facts.protocols = map,
            Err(rule) => {
                self.error(
                    PROTOCOL_MAP,
                    &rule,
                    "write it as NAME:PROTOCOL,NAME:PROTOCOL",
                );
                return false;
            }
        }
        let before = self.findings.len();
        let written = self.values.list(LISTENERS).unwrap_or_default();
        if self.strange_name(written) {
            return false;
        }
        match listeners::endpoints(written, &self.facts.protocols) {
            Ok(list) => self.facts.listeners = list,
            Err(rule) => self.error(LISTENERS, &rule, "correct the listener or the map"),
        }
        let written = self.values.list(ADVERTISED).unwrap_or_default();
        match listeners::endpoints(written, &self.facts.protocols) {
            Ok(list) => self.facts.advertised = list,
            Err(rule) => self.error(ADVERTISED, &rule, "correct the listener or the map"),
        }
        let both = [
            (LISTENERS, self.facts.listeners.clone()),
            (ADVERTISED, self.facts.advertised.clone()),
        ];
        for (key, list) in &both {
            if let Err(rule) = listeners::distinct_names(list) {
                self.error(key, &rule, "give each listener its own name");
            }
            let out = list.iter().find(|e| u16::try_from(e.port).is_err());
            if let Some(endpoint) = out {
                let rule = format!("has port {}, ports are from 0 to 65535", endpoint.port);
                self.error(key, &rule, "correct the port");
            }
            let wild = list.iter().any(|e| e.host.as_deref() == Some(WILDCARD));
            self.require(
                *key == LISTENERS || !wild,
                key,
                "has the host 0.0.0.0, which nobody can connect to",
                "advertise a host or address that others can reach",
            );
        }
        if let Err(rule) = listeners::distinct_ports(&both[0].1) {
            self.error(LISTENERS, &rule, "give each listener its own port");
        }
        self.findings.len() == before
    }

    /// The rules of the controller role.
    fn controller_listeners(&mut self) {
        if !self.has_role(Role::Controller) || self.names().is_empty() {
            return;
        }
        let names = self.names();
        if let Some(absent) = names.iter().find(|name| !self.listens(name)) {
            self.absent(absent);
        }
        if self.has_role(Role::Broker) {
            return;
        }
        let other = self
            .facts
            .listeners
            .iter()
            .find(|e| !names.contains(&e.name));
        if let Some(other) = other.map(|other| quote(&other.name)) {
            self.error(
                LISTENERS,
                &format!(
                    "has {other}, but the controller role alone has only controller listeners"
                ),
                "remove it, or add its name to controller.listener.names",
            );
        }
    }

    fn absent(&mut self, name: &str) {
        let upper = name.to_uppercase();
        let case = match upper == name {
            true => "",
            false => ", names are compared in capitals",
        };
        let (name, upper) = (quote(name), quote(&upper));
        self.error(
            CONTROLLER_NAMES,
            &format!("has {name}, which is no listener of listeners{case}"),
            &format!("add {upper}://host:port to listeners, or correct the name"),
        );
    }

    /// Tells a name of a controller listener that no listener has, where the protocols of listeners
    /// follow from these names: else only the listener would be told that was meant, which has none
    /// then.
    fn strange_name(&mut self, listeners: &[String]) -> bool {
        if self.values.is_set(PROTOCOL_MAP) || !self.has_role(Role::Controller) {
            return false;
        }
        let named = |name: &str| {
            let mut all = listeners.iter().filter_map(|it| it.split_once("://"));
            all.any(|(own, _)| own.eq_ignore_ascii_case(name))
        };
        let absent = self.names().iter().find(|name| !named(name));
        let Some(absent) = absent else { return false };
        self.absent(absent);
        true
    }

    fn listens(&self, name: &str) -> bool {
        self.facts.listeners.iter().any(|e| e.name == name)
    }

    /// The rules of the broker role. Only `format` and `info` meet it.
    fn broker_listeners(&mut self) {
        if !self.has_role(Role::Broker) {
            return;
        }
        if !self.has_role(Role::Controller) {
            self.controllers_of_a_broker();
        }
        let advertised = if self.values.list(ADVERTISED).is_some() {
            &self.facts.advertised
        } else {
            &self.facts.listeners
        };
        let names = self.names();
        let clients: Vec<_> = advertised
            .iter()
            .filter(|e| !names.contains(&e.name))
            .map(|e| e.name.clone())
            .collect();
        self.require(
            !clients.is_empty(),
            ADVERTISED,
            "has no listener for clients",
            "add a listener that controller.listener.names does not have",
        );
        if let Some(stray) = clients.iter().find(|name| !self.listens(name)) {
            self.error(
                ADVERTISED,
                &format!("has {}, which is no listener of listeners", quote(stray)),
                "advertise only what listens",
            );
        }
    }

    fn controllers_of_a_broker(&mut self) {
        let names = self.names();
        if let Some(name) = names.iter().find(|name| self.listens(name)) {
            self.error(
                CONTROLLER_NAMES,
                &format!("has {}, which is a listener of this broker", quote(name)),
                "take it out of listeners, only controllers listen on it",
            );
        }
        let mapped = |name: &&String| self.facts.protocols.contains_key(&name.to_uppercase());
        if let Some(name) = names.iter().find(|name| !mapped(name)) {
            self.error(
                CONTROLLER_NAMES,
                &format!(
                    "has {}, which listener.security.protocol.map does not have",
                    quote(name)
                ),
                "add it to the map",
            );
        }
        if names.len() > 1 {
            self.warn(
                CONTROLLER_NAMES,
                "a broker uses only the first",
                "remove the others",
            );
        }
    }

    fn inter_broker(&mut self) {
        let name = self.values.text(INTER_BROKER);
        if let Some(name) = name {
            if self.values.is_set(INTER_BROKER_PROTOCOL) {
                self.error(
                    INTER_BROKER,
                    "and security.inter.broker.protocol exclude each other",
                    "remove one of the two",
                );
            }
            let upper = name.to_uppercase();
            let known = self.facts.protocols.contains_key(&upper);
            self.require(
                known,
                INTER_BROKER,
                "is not in listener.security.protocol.map",
                "add it to the map",
            );
            let only_controller = !self.has_role(Role::Broker);
            self.require(
                !(only_controller && self.names().contains(&upper)),
                INTER_BROKER,
                "must not be a listener of controller.listener.names",
                "remove it",
            );
        }
        self.inter_broker_mechanism();
    }

    fn inter_broker_mechanism(&mut self) {
        let own = self.values.text(INTER_BROKER).map(str::to_uppercase);
        let by_name = own
            .as_ref()
            .and_then(|name| self.facts.protocols.get(name).copied());
        let by_protocol = self.values.text(INTER_BROKER_PROTOCOL);
        let protocol = by_name.or_else(|| by_protocol.and_then(listeners::protocol));
        let sasl = [SecurityProtocol::SaslPlaintext, SecurityProtocol::SaslSsl];
        if !protocol.is_some_and(|protocol| sasl.contains(&protocol)) {
            return;
        }
        let mechanism = self.values.text("sasl.mechanism.inter.broker.protocol");
        let enabled = self
            .values
            .list("sasl.enabled.mechanisms")
            .unwrap_or_default();
        let listener = own
            .or_else(|| by_protocol.map(str::to_owned))
            .unwrap_or_default();
        let prefixed = format!(
            "listener.name.{}.sasl.enabled.mechanisms",
            listener.to_lowercase()
        );
        let found = mechanism.is_some_and(|one| enabled.iter().any(|other| other == one));
        self.require(
            found || self.values.is_set(&prefixed),
            "sasl.mechanism.inter.broker.protocol",
            "must be one of sasl.enabled.mechanisms",
            "add it there",
        );
    }

    fn early_start(&mut self) {
        const KEY: &str = "early.start.listeners";
        let early = self.values.list(KEY).unwrap_or_default();
        let names = self.names();
        // Java compares these as written with the listeners' names in capitals.
        let known = |name: &String| names.contains(name) || self.listens(name);
        if let Some(stray) = early.iter().find(|name| !known(name)) {
            let rule = format!("has {}, which is no listener of listeners", quote(stray));
            self.error(KEY, &rule, "correct or remove it");
        }
    }

    fn protocols_built(&mut self) {
        let secure = self
            .facts
            .listeners
            .iter()
            .find(|e| e.protocol != SecurityProtocol::Plaintext)
            .map(|e| (quote(&e.name), e.protocol.name()));
        if let Some((name, protocol)) = secure {
            self.find(
                Severity::Unsupported,
                LISTENERS,
                &format!("{name} asks for {protocol}, only PLAINTEXT listeners are built yet"),
                "map it to PLAINTEXT in listener.security.protocol.map",
            );
        }
    }
}

/// True when `config` has a plaintext controller listener that other machines reach.
pub(crate) fn exposed(listeners: &[Written]) -> Option<&Written> {
    listeners.iter().find(|endpoint| {
        endpoint.protocol == SecurityProtocol::Plaintext
            && !Config::is_loopback(endpoint.host.as_deref())
    })
}
