//! The sequence: which request comes next, given the seed and what the cluster has become. Most
//! requests name what exists; some name what does not, or say what must not be said.

mod brokers;
mod configs;
mod dice;
mod features;
mod odd;
mod partitions;
mod provoked;
mod quorum;
mod security;
mod topics;

use std::collections::{BTreeSet, VecDeque};

use bytes::{Bytes, BytesMut};
use kafka_protocol::messages::{EnvelopeRequest, TopicName};
use kafka_protocol::protocol::StrBytes;
use kraftd::image::Image;
use kraftd::records::Record;
use kraftd::types::Offset;
use serde_json::Value;
use uuid::Uuid;

use super::asks::Ask;
use super::side::Logged;
use super::step::{Principal, Step, bytes_of};
use dice::Dice;

/// A kind of request: how often, and what makes one.
type Maker = fn(&mut Generator) -> Ask;

/// Principals that brokers forward for.
const PRINCIPALS: [Principal; 5] = [
    principal("User", "ANONYMOUS", false),
    principal("User", "admin", false),
    principal("User", "alice", false),
    principal("User", "bob", false),
    principal("User", "alice", true),
];

/// APIs that brokers forward.
const FORWARDABLE: [i16; 21] = [
    19, 20, 30, 31, 33, 37, 38, 39, 40, 43, 44, 45, 46, 49, 51, 55, 57, 64, 80, 81, 94,
];

const fn principal(kind: &'static str, name: &'static str, token: bool) -> Principal {
    Principal { kind, name, token }
}

/// See the module.
pub(crate) struct Generator {
    dice: Dice,
    /// What Java's log adds up to.
    pub(crate) image: Image,
    /// What must come next.
    forced: VecDeque<Step>,
    /// Keys of delegation tokens that Java gave out.
    hmacs: Vec<Bytes>,
    /// Directories that may not fail any more: Java's controller forgets to forget what it held of
    /// a topic that was deleted with an empty ISR, and resigns over it. FINDINGS.md has it.
    haunted: BTreeSet<Uuid>,
    /// Brokers that may not leave, and not come back when they left, be it before this: Java's
    /// controller forgets to forget where they were eligible leaders before a ClearElrRecord, and
    /// writes records twice or resigns over it. FINDINGS.md has it.
    entangled: BTreeSet<i32>,
    made: usize,
}

impl Generator {
    pub(crate) fn new(seed: u64) -> Self {
        let mut this = Self {
            dice: Dice::new(seed),
            image: Image::empty(),
            forced: VecDeque::new(),
            hmacs: Vec::new(),
            haunted: BTreeSet::new(),
            entangled: BTreeSet::new(),
            made: 0,
        };
        this.introduce_brokers();
        this
    }

    /// The next request.
    pub(crate) fn next(&mut self) -> Step {
        self.made += 1;
        if let Some(mut step) = self.forced.pop_front() {
            step.ask = self.with_its_epoch(step.ask);
            let step = self.with_its_topic(step);
            return self.sayable(step);
        }
        let maker = *self.dice.weighted(MAKERS);
        let ask = maker(self);
        let step = self.step(ask);
        self.sayable(step)
    }

    /// A request at a version of chance, forwarded or not.
    fn step(&mut self, ask: Ask) -> Step {
        let (low, high) = ask.versions();
        let version = self.dice.between(i32::from(low), i32::from(high));
        let forwardable = FORWARDABLE.contains(&ask.key());
        let forwarded = forwardable && self.dice.once_in(4);
        Step {
            ask,
            version: i16::try_from(version).expect("between two versions"),
            forwarded: forwarded.then(|| self.dice.pick(&PRINCIPALS).clone()),
        }
    }

    /// The same request at a version that can say it.
    fn sayable(&self, mut step: Step) -> Step {
        let (low, high) = step.ask.versions();
        let versions = [step.version].into_iter().chain((low..=high).rev());
        for version in versions {
            step.version = version;
            if step.ask.encode(&mut BytesMut::new(), version).is_ok() {
                return step;
            }
        }
        panic!("no version can say {:?}", step.ask);
    }

    fn force(&mut self, ask: impl Into<Ask>) {
        let ask = ask.into();
        let version = ask.versions().1;
        self.forced.push_back(Step {
            ask,
            version,
            forwarded: None,
        });
    }

    /// Takes note of what came of a step: Java's answer and what it wrote.
    pub(crate) fn after(&mut self, step: &Step, answer: &Value, records: &[Logged]) {
        for Logged { offset, record } in records {
            match &record.record {
                Record::RemoveTopic(removed) => self.note_haunted(removed.topic_id),
                Record::ClearElr(cleared) => self.note_entangled(&cleared.topic_name),
                _ => {}
            }
            let replayed = self.image.replay(&record.record, *offset);
            replayed.expect("Java's records make sense");
        }
        if let Some(hmac) = found(answer, "hmac").and_then(Value::as_str)
            && !hmac.is_empty()
        {
            self.hmacs.push(bytes_of(hmac));
        }
        if is_placed_by_chance(step) {
            self.forget_placed_by_chance(records);
        }
    }

    fn note_haunted(&mut self, topic: Uuid) {
        let topic = self.image.topic_by_id(topic).expect("it exists until now");
        for (_, partition) in topic.partitions() {
            if partition.isr().is_empty() {
                self.haunted.extend(partition.directories());
            }
        }
    }

    /// The name is empty for all topics.
    fn note_entangled(&mut self, name: &str) {
        let topics = self.image.topics();
        let topics = topics.filter(|topic| name.is_empty() || topic.name() == name);
        for (_, partition) in topics.flat_map(|topic| topic.partitions()) {
            self.entangled.extend(partition.elr());
        }
    }

    /// What was placed by chance differs from side to side and goes away at once.
    fn forget_placed_by_chance(&mut self, records: &[Logged]) {
        let ids: BTreeSet<_> = records
            .iter()
            .filter_map(|it| match &it.record.record {
                Record::Partition(partition) => Some(partition.topic_id),
                _ => None,
            })
            .collect();
        let names: Vec<_> = ids
            .into_iter()
            .filter_map(|id| Some(self.image.topic_by_id(id)?.name().to_owned()))
            .collect();
        if let Some(name) = self.dice.maybe(&names).cloned()
            && self.dice.once_in(3)
            && self.forced.is_empty()
            && !self.has_partitions_of_all_sizes(&name)
            && self.places_by_chance_safely()
        {
            let more = self.more_partitions_by_chance(&name);
            self.force(more);
        }
        if !names.is_empty() {
            self.force(topics::delete(&names));
        }
    }

    /// An envelope that something is wrong with.
    fn bad_envelope(&mut self) -> Ask {
        let inner = Step {
            ask: self.create_topics(),
            version: 7,
            forwarded: None,
        };
        let body = inner.body(None).expect("version 7 says all");
        let mut data = super::side::request(19, 7, 1, &body).freeze();
        let mut principal = Some(self.dice.pick(&PRINCIPALS).bytes());
        let mut address = Bytes::from_static(&[127, 0, 0, 1]);
        match self.dice.below(7) {
            0 => principal = None,
            1 => principal = Some(Bytes::from_static(&[0, 0, 9])),
            2 => principal = Some(Bytes::from_static(&[0, 9, 2, b'U', 2, b'a', 0, 0])),
            3 => address = Bytes::from_static(&[1, 2, 3]),
            4 => data = super::side::request(62, 4, 1, &body).freeze(),
            5 => data = super::side::request(19, 99, 1, &body).freeze(),
            _ => data = super::side::request(4242, 0, 1, &body).freeze(),
        }
        EnvelopeRequest::default()
            .with_request_data(data)
            .with_request_principal(principal)
            .with_client_host_address(address)
            .into()
    }

    /// Where the log ends, about.
    fn registered_at(&self, broker: i32) -> Offset {
        let at = self.image.registered_at(kraftd::types::NodeId(broker));
        at.unwrap_or(Offset(0))
    }
}

/// How often a maker has its turn, and the maker.
const MAKERS: &[(usize, Maker)] = &[
    (12, Generator::create_topics),
    (7, Generator::delete_topics),
    (6, Generator::create_partitions),
    (5, Generator::alter_configs),
    (12, Generator::incremental_alter_configs),
    (5, Generator::describe_configs),
    (14, Generator::alter_partition),
    (14, Generator::heartbeat),
    (5, Generator::registration),
    (3, Generator::allocate_producer_ids),
    (5, Generator::assign_dirs),
    (3, Generator::controller_registration),
    (3, Generator::describe_cluster),
    (4, Generator::update_features),
    (1, Generator::bad_envelope),
    (6, Generator::elect_leaders),
    (9, Generator::reassign),
    (3, Generator::list_reassignments),
    (2, Generator::unregister_broker),
    (1, Generator::unregister_controller),
    (7, Generator::alter_quotas),
    (6, Generator::alter_scram),
    (3, Generator::create_token),
    (3, Generator::renew_token),
    (3, Generator::expire_token),
    (6, Generator::create_acls),
    (4, Generator::describe_acls),
    (3, Generator::delete_acls),
    (1, Generator::describe_scram),
    (1, Generator::describe_tokens),
    (2, Generator::describe_quorum),
    (1, Generator::add_voter),
    (1, Generator::remove_voter),
    (1, Generator::update_voter),
];

/// Whether replicas that this request places are placed by chance.
pub(crate) fn is_placed_by_chance(step: &Step) -> bool {
    match &step.ask {
        Ask::CreateTopics(it) => it.topics.iter().any(|topic| topic.assignments.is_empty()),
        Ask::CreatePartitions(it) => {
            let topics = &mut it.topics.iter();
            topics.any(|topic| topic.assignments.is_none())
        }
        _ => false,
    }
}

/// The first field of this name, wherever it is.
fn found<'a>(value: &'a Value, name: &str) -> Option<&'a Value> {
    match value {
        Value::Object(fields) => {
            let here = fields.get(name);
            here.or_else(|| fields.values().find_map(|it| found(it, name)))
        }
        Value::Array(items) => items.iter().find_map(|it| found(it, name)),
        _ => None,
    }
}

fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

fn topic_name(name: &str) -> TopicName {
    TopicName(text(name))
}
