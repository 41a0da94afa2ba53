//! Whatever is asked, all that is decided can be written at its version and replayed: what a rule
//! lets through that replay refuses fails a request without a reason that its sender could mend.
//!
//! Requests of every API are made by chance, of values that fit, that do not, and that nobody
//! means, at every level of `metadata.version`; between them the clock goes on, and work that is
//! left is done.

mod nodes;
mod partitions;
mod security;
mod topics;

use std::collections::BTreeMap;

use kafka_protocol::messages as km;
use kafka_protocol::messages::update_features_request::FeatureUpdateKey;
use kafka_protocol::protocol::StrBytes;

use super::authorize::AuthorizerRules;
use super::testing::World;
use super::tokens::TokenSecret;
use super::{Context, Request, periodic, works};
use crate::records::{Record, VersionedRecord};
use crate::types::{NodeId, Offset, Principal, SecurityProtocol, SplitMix, Ticket, Uuid};

/// Requests at each level.
const REQUESTS: usize = 800;
/// Steps of what is left, at most, between two requests.
const STEPS_MAX: usize = 8;

/// Names of anything: of topics, users, keys, hosts.
const TEXTS: [&str; 20] = [
    "",
    " ",
    ".",
    "..",
    "a",
    "a.b",
    "a_b",
    "orders",
    "__cluster_metadata",
    "1",
    "+1",
    "-0",
    "-1",
    "2147483648",
    "\u{0}",
    "\u{661}",
    "User:alice",
    "kafka-cluster",
    "metadata.version",
    "min.insync.replicas",
];

/// A controller, and chance.
struct Run {
    world: World,
    rng: SplitMix,
    hmacs: Vec<bytes::Bytes>,
    /// Reassignments may name a partition twice. Both are written, as Java does, and may leave what
    /// breaks laws of the image.
    twice: bool,
    /// How many records of each type were replayed.
    written: BTreeMap<&'static str, usize>,
}

type Maker = fn(&mut Run) -> (i16, Request);

const MAKERS: &[Maker] = &[
    Run::allocate_producer_ids,
    Run::alter_partition,
    Run::alter_partition,
    Run::reassign,
    Run::reassign,
    Run::assign_dirs,
    Run::heartbeat,
    Run::heartbeat,
    Run::heartbeat,
    Run::heartbeat,
    Run::heartbeat,
    Run::register_broker,
    Run::register_controller,
    Run::alter_quotas,
    Run::alter_scram,
    Run::alter_configs,
    Run::create_token,
    Run::create_acls,
    Run::create_partitions,
    Run::create_topics,
    Run::create_topics,
    Run::create_topics,
    Run::delete_acls,
    Run::delete_topics,
    Run::elect_leaders,
    Run::expire_token,
    Run::incremental_alter_configs,
    Run::renew_token,
    Run::unregister_broker,
    Run::unregister_controller,
    Run::list_reassignments,
    Run::update_features,
];

impl Run {
    fn new(level: i16, seed: u64) -> Self {
        let mut world = World::at_level(level);
        world.settings.authorizer = Some(AuthorizerRules {
            allow_everyone_if_no_acl_found: true,
            ..AuthorizerRules::default()
        });
        world.settings.tokens.secret = TokenSecret::new("secret");
        world.context = Context {
            principal: Principal {
                kind: "User".into(),
                name: "admin".into(),
                token_authenticated: false,
            },
            protocol: SecurityProtocol::SaslSsl,
            ..Context::default()
        };
        for id in 0..4 {
            let directory = |at| Uuid::from_u128(0xD000 + 16 * id as u128 + at);
            world.broker(id, &[directory(0), directory(1)]);
        }
        Self {
            world,
            rng: SplitMix::new(seed),
            hmacs: Vec::new(),
            twice: seed.is_multiple_of(2),
            written: BTreeMap::new(),
        }
    }

    fn below(&mut self, bound: usize) -> usize {
        self.rng.below(bound as u64) as usize
    }

    fn once_in(&mut self, count: u64) -> bool {
        self.rng.below(count) == 0
    }

    fn pick<T: Clone>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())].clone()
    }

    /// Up to three, now and then with the first twice.
    fn some<T: Clone>(&mut self, mut make: impl FnMut(&mut Self) -> T) -> Vec<T> {
        let count = self.below(4);
        let mut items: Vec<T> = (0..count).map(|_| make(self)).collect();
        if self.once_in(8) {
            items.extend(items.first().cloned());
        }
        items
    }

    fn text(&mut self) -> StrBytes {
        StrBytes::from_static_str(self.pick(&TEXTS))
    }

    fn node(&mut self) -> i32 {
        match self.below(12) {
            0 => self.pick(&[i32::MIN, -2, -1, i32::MAX]),
            1 => self.pick(&[4, 5, 99]),
            _ => self.below(4) as i32,
        }
    }

    fn number(&mut self) -> i32 {
        self.pick(&[i32::MIN, -2, -1, 0, 1, 2, 3, 7, i32::MAX])
    }

    /// The epoch of a broker's registration, mostly.
    fn epoch(&mut self, id: i32) -> i64 {
        let known = self.world.image.broker(NodeId(id)).map(|it| it.epoch.0);
        match known {
            Some(epoch) if !self.once_in(12) => epoch,
            _ => self.pick(&[i64::MIN, -1, 0, 5, i64::MAX]),
        }
    }

    fn directory(&mut self) -> Uuid {
        match self.below(10) {
            0 => Uuid::from_u128(self.pick(&[0, 1, 2, 3, 100, u128::MAX])),
            _ => Uuid::from_u128(0xD000 + self.below(64) as u128),
        }
    }

    fn topic_name(&mut self) -> km::TopicName {
        let count = self.world.image.topic_count();
        if count > 0 && !self.once_in(4) {
            let at = self.below(count);
            let topic = self.world.image.topics().nth(at);
            return km::TopicName(StrBytes::from_string(topic.unwrap().name().to_owned()));
        }
        if self.once_in(3) {
            return km::TopicName(self.text());
        }
        let name = format!("t{}", self.below(20));
        km::TopicName(StrBytes::from_string(name))
    }

    fn topic_id(&mut self) -> Uuid {
        let name = self.topic_name();
        let known = self.world.image.topic_by_name(&name).map(|it| it.id());
        known.unwrap_or_else(|| Uuid::from_u128(self.pick(&[0, 1, 7])))
    }

    fn replicas(&mut self) -> Vec<km::BrokerId> {
        self.some(|run| km::BrokerId(run.node()))
    }

    fn update_features(&mut self) -> (i16, Request) {
        let level = super::levels::metadata_version(&self.world.image).0;
        let updates = self.some(|run| {
            let name = match run.below(4) {
                0 => run.text(),
                _ => StrBytes::from_static_str(run.pick(&[
                    "group.version",
                    "transaction.version",
                    "eligible.leader.replicas.version",
                    "share.version",
                    "streams.version",
                    "kraft.version",
                ])),
            };
            FeatureUpdateKey::default()
                .with_feature(name)
                .with_max_version_level(run.pick(&[i16::MIN, -1, 0, 1, 2, 3, level, i16::MAX]))
                .with_upgrade_type(run.pick(&[-1, 0, 1, 1, 2, 3, 4]))
        });
        let request = km::UpdateFeaturesRequest::default()
            .with_feature_updates(updates)
            .with_validate_only(self.once_in(8));
        (self.below(3) as i16, Request::UpdateFeatures(request))
    }

    /// Replays what was decided, once it is known that it can be written and replayed.
    fn replay(&mut self, records: &[VersionedRecord], asked: &str) {
        let mut copy = self.world.image.clone();
        for (at, record) in (self.world.next_offset()..).zip(records) {
            let bytes = record.encode();
            let bytes = bytes.unwrap_or_else(|e| panic!("{e}: {record:?} of {asked}"));
            assert_eq!(&VersionedRecord::decode(&bytes).unwrap(), record, "{asked}");
            let replayed = copy.replay(&record.record, Offset(at));
            replayed.unwrap_or_else(|fault| panic!("{fault}: {records:?} of {asked}"));
            *self.written.entry(record.record.name()).or_default() += 1;
        }
        if !self.twice {
            let checked = copy.check();
            checked.unwrap_or_else(|law| panic!("{law}: {records:?} of {asked}"));
        }
        for record in records {
            self.world.replay(record);
        }
    }

    /// One request, and what is left of others.
    fn step(&mut self) {
        let make = self.pick(MAKERS);
        let (version, request) = make(self);
        let asked = format!("v{version} {request:?}");
        let room = self.world.soft.works.has_room(&request);
        if let Some(decision) = room
            .then(|| self.world.ask(version, request))
            .and_then(Result::ok)
        {
            self.note_token(&decision.reply);
            self.replay(&decision.records, &asked);
            if let Some(left) = decision.unfinished {
                self.world.soft.works.add(Ticket(1), left);
            }
        }
        self.world.now_ms += self.pick(&[0, 0, 1, 300, 1_000]);
        for _ in 0..STEPS_MAX {
            if periodic::next_due(&self.world.soft).0 > self.world.now_ms {
                break;
            }
            let records = if self.world.soft.works.take_turn() {
                self.world.rule(works::step).map(|it| it.records)
            } else {
                Some(self.world.rule(periodic::run))
            };
            self.replay(&records.unwrap_or_default(), "what is due");
        }
        // What is published follows in its own time.
        if self.once_in(3) {
            self.world.committed = Some(self.world.image.clone());
        }
    }
}

/// Records that no request leads to.
const NOT_ASKED: [&str; 6] = [
    "BEGIN_TRANSACTION_RECORD",
    "END_TRANSACTION_RECORD",
    "ABORT_TRANSACTION_RECORD",
    "FENCE_BROKER_RECORD",
    "UNFENCE_BROKER_RECORD",
    "ZK_MIGRATION_STATE_RECORD",
];

fn run(level: i16, seed: u64) -> BTreeMap<&'static str, usize> {
    let mut run = Run::new(level, seed);
    for _ in 0..REQUESTS {
        run.step();
    }
    run.written
}

#[test]
fn all_that_is_decided_can_be_written_and_replayed_at_every_level() {
    let mut written: BTreeMap<&str, usize> = BTreeMap::new();
    for level in 7..=33 {
        for seed in 0..2 {
            for (name, count) in run(level, 2 * level as u64 + seed) {
                *written.entry(name).or_default() += count;
            }
        }
    }
    // What only a new active controller writes, and what stands in old logs only, is left out.
    let asked = Record::TYPES
        .iter()
        .filter(|it| !NOT_ASKED.contains(&it.name));
    for record in asked {
        let count = written.get(record.name).copied().unwrap_or(0);
        assert!(count > 0, "{}: {written:?}", record.name);
    }
    assert!(written["PARTITION_CHANGE_RECORD"] > 1_000, "{written:?}");
}
