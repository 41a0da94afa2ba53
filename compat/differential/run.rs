//! The run: each request goes to both sides, and what comes of it is compared at once.

use std::collections::BTreeSet;
use std::thread;
use std::time::{Duration, Instant};

use kafka_protocol::messages::{
    BrokerId, ControllerRegistrationRequest, DescribeAclsRequest, UnregisterBrokerRequest,
};
use kraftd::records::Record;
use serde_json::{Value, json};

use super::allowed::{Allowed, Difference};
use super::asks::Ask;
use super::bindings::Bindings;
use super::generate::{Generator, is_placed_by_chance};
use super::placement;
use super::side::{Logged, Side};
use super::step::Step;
use crate::harness::{Kind, now, until};

/// A run goes on behind a difference: what follows shows whether it is alone. Not for ever.
const DIFFERENCES_MAX: usize = 30;
/// Characters of an answer that are shown.
const SHOWN_MAX: usize = 1_500;
/// Any, in a filter of access control entries.
const ANY: i8 = 1;
/// A controller that is registered to have something written.
const POKED: i32 = 3999;
/// The controller of either side.
const CONTROLLER: i32 = 1;

/// DescribeAcls, DescribeConfigs and DescribeCluster are answered from what a node has published
/// to itself, which may be a little behind what it has answered: they are asked again.
const READS: [i16; 3] = [29, 32, 60];
/// RenewDelegationToken and ExpireDelegationToken.
const TOKENS: [i16; 2] = [39, 40];
const TOKEN_NOT_FOUND: i64 = 62;
const NOT_CONTROLLER: i64 = 41;
/// UNKNOWN_SERVER_ERROR anywhere in an answer.
const WITHOUT_REASON: &str = "\"error_code\":-1";
const READS_MAX: usize = 40;
const READS_APART: Duration = Duration::from_millis(30);

/// What both sides are started with. Nothing in it happens by itself: no session ends, no task
/// runs, so that a request alone decides what is written.
const SETTINGS: [&str; 10] = [
    "broker.session.timeout.ms=36000000",
    "metadata.max.idle.interval.ms=0",
    "auto.leader.rebalance.enable=false",
    "unclean.leader.election.interval.ms=36000000",
    "controller.quorum.append.linger.ms=0",
    "default.replication.factor=2",
    "delegation.token.secret.key=a secret",
    "num.partitions=2",
    "log.retention.hours=100",
    "metadata.log.max.record.bytes.between.snapshots=1073741824",
];

/// With an authorizer, in every second run: who forwards nothing may do all.
const AUTHORIZER: [&str; 2] = [
    "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users=User:ANONYMOUS;User:admin",
];

/// What some runs begin at; the others begin at the newest level.
const OLD_LEVELS: [&str; 4] = ["3.9-IV0", "4.3-IV0", "4.4-IV2", "4.0-IV1"];

/// One answer as it is compared.
#[derive(Debug)]
enum Answer {
    Value(Value),
    Closed,
    Unreadable(String),
}

impl Answer {
    fn value(self) -> Value {
        match self {
            Self::Value(value) => value,
            Self::Closed => Value::from("the connection was closed"),
            Self::Unreadable(why) => json!({ "unreadable": why }),
        }
    }
}

/// What a run found.
pub(crate) struct Outcome {
    pub(crate) steps: usize,
    pub(crate) took: Duration,
    pub(crate) records: usize,
    /// Reports of what is not accepted.
    pub(crate) reports: Vec<String>,
    /// The APIs that were asked, and those that either side serves.
    pub(crate) asked: BTreeSet<i16>,
    pub(crate) served: [BTreeSet<i16>; 2],
}

/// Two clusters and what is known of them.
pub(crate) struct Run {
    seed: u64,
    java: Side,
    kraftd: Side,
    bindings: Bindings,
    generator: Generator,
    started: Instant,
    records: usize,
    registrations: (usize, usize),
}

impl Run {
    /// Starts both controllers.
    pub(crate) fn start(seed: u64) -> Self {
        let mut lines = SETTINGS.map(str::to_owned).to_vec();
        if seed.is_multiple_of(2) {
            lines.extend(AUTHORIZER.map(str::to_owned));
        }
        let format = match OLD_LEVELS.get((seed % 8) as usize) {
            Some(level) => vec!["--release-version", *level],
            None => Vec::new(),
        };
        let java = Side::start(Kind::Java("4.4.0"), &lines, &format);
        let kraftd = Side::start(Kind::under_test(), &lines, &format);
        let mut bindings = Bindings::default();
        let dir = |side: &Side| side.setup.path("").display().to_string();
        let port = |side: &Side| side.setup.controller_port.to_string();
        bindings.place(dir(&java), dir(&kraftd));
        bindings.place(port(&java), port(&kraftd));
        let generator = Generator::new(seed);
        let mut run = Self {
            seed,
            java,
            kraftd,
            bindings,
            generator,
            started: now(),
            records: 0,
            registrations: (0, 0),
        };
        run.settle();
        run
    }

    /// The bootstrap records and the controllers' own registrations.
    fn settle(&mut self) {
        let mut both = (Vec::new(), Vec::new());
        until(
            "the controllers' registrations",
            Duration::from_secs(60),
            || {
                both.0.extend(self.java.new_records());
                both.1.extend(self.kraftd.new_records());
                let registered = |records: &[Logged]| records.iter().any(is_own_registration);
                registered(&both.0) && registered(&both.1)
            },
        );
        let places = self.compare_records(&both.0, &both.1, false);
        assert!(places.is_empty(), "at the start: {places:#?}");
        for Logged { offset, record } in both.0 {
            let replayed = self.generator.image.replay(&record.record, offset);
            replayed.expect("Java's records make sense");
        }
        self.generator.provoke();
        self.started = now();
    }

    /// An authorizer learns of new entries a little after they are written.
    fn settle_acls(&mut self) {
        let all = DescribeAclsRequest::default()
            .with_resource_type_filter(ANY)
            .with_resource_name_filter(None)
            .with_principal_filter(None)
            .with_host_filter(None)
            .with_pattern_type_filter(ANY)
            .with_operation(ANY)
            .with_permission_type(ANY);
        let step = Step {
            ask: Ask::DescribeAcls(all),
            version: 3,
            forwarded: None,
        };
        let body = step.body(None).expect("it can be said");
        let count = self.generator.image.acls().by_id().len();
        let start = now();
        while !self.both_have(count, &step, &body) {
            assert!(
                start.elapsed() < Duration::from_secs(60),
                "{count} entries are not published"
            );
            thread::park_timeout(READS_APART);
            self.poke();
        }
    }

    fn both_have(&mut self, count: usize, step: &Step, body: &[u8]) -> bool {
        let sides = &mut [&mut self.java, &mut self.kraftd].into_iter();
        sides.all(|side| {
            let answer = side.again(step, body);
            let resources = answer["resources"].as_array().into_iter().flatten();
            let lists = resources.map(|it| it["acls"].as_array().map_or(0, Vec::len));
            lists.sum::<usize>() == count
        })
    }

    /// Java's answer about a token. Its controller finds tokens in what it has published, so it may
    /// not know one yet that it has just made; kraftd knows it, and is not asked again.
    fn once_it_knows_the_token(&mut self, step: &Step, body: &[u8], mut answer: Value) -> Value {
        for _ in 0..READS_MAX {
            if error_code(&answer) != Some(TOKEN_NOT_FOUND) {
                break;
            }
            thread::park_timeout(READS_APART);
            self.poke();
            answer = self.java.again(step, body);
        }
        answer
    }

    /// Waits until Java's controller is active, which it may not be behind an answer without a
    /// reason: it has resigned before it gave that answer. What asks only wants to be refused.
    fn until_java_leads(&mut self) {
        let request = UnregisterBrokerRequest::default().with_broker_id(BrokerId(POKED));
        let step = Step {
            ask: Ask::UnregisterBroker(request),
            version: 0,
            forwarded: None,
        };
        let body = step.body(None).expect("it can be said");
        let start = now();
        while error_code(&self.java.again(&step, &body)) == Some(NOT_CONTROLLER) {
            let waited = start.elapsed();
            assert!(
                waited < Duration::from_secs(60),
                "Java's controller leads no more"
            );
            thread::park_timeout(READS_APART);
        }
    }

    /// A Java controller now and then publishes what it wrote only when it writes again, and here
    /// nothing is written by itself: one more record on both sides.
    fn poke(&mut self) {
        let registration = ControllerRegistrationRequest::default().with_controller_id(POKED);
        let step = Step {
            ask: Ask::ControllerRegistration(registration),
            version: 0,
            forwarded: None,
        };
        let body = step.body(None).expect("it can be said");
        self.java.again(&step, &body);
        self.kraftd.again(&step, &body);
        let (java, kraftd) = (self.java.new_records(), self.kraftd.new_records());
        let places = self.compare_records(&java, &kraftd, false);
        assert!(places.is_empty(), "a registration of its own: {places:#?}");
        self.generator.after(&step, &Value::Null, &java);
    }

    /// What [`Generator::plan_odd`] plans.
    pub(crate) fn plan_odd(&mut self) -> usize {
        self.generator.plan_odd()
    }

    /// Sends so many requests.
    pub(crate) fn go(mut self, count: usize, allowed: &mut Allowed) -> Outcome {
        let served = [self.java.apis(), self.kraftd.apis()];
        let mut asked = BTreeSet::new();
        let mut reports = Vec::new();
        let mut steps = 0;
        let trace = std::env::var_os("DIFF_TRACE").is_some();
        while steps < count && reports.len() < DIFFERENCES_MAX {
            let step = self.generator.next();
            asked.insert(step.ask.key());
            if trace {
                println!("{steps}: v{} {:?}", step.version, step.ask);
            }
            if let Some(report) = self.step(steps, &step, allowed) {
                reports.push(report);
            }
            steps += 1;
        }
        Outcome {
            steps,
            took: self.started.elapsed(),
            records: self.records,
            reports,
            asked,
            served,
        }
    }

    /// One request to both sides; a report when they differ.
    fn step(&mut self, number: usize, step: &Step, allowed: &mut Allowed) -> Option<String> {
        let to_kraftd = step.body(Some(&self.bindings)).expect("it can be said");
        let to_java = step.body(None).expect("it can be said");
        let (key, version) = (step.key(), step.outer_version());
        let java = self.java.send(key, version, &to_java);
        let kraftd = self.kraftd.send(key, version, &to_kraftd);
        java.expect("Java's controller can be asked");
        kraftd.expect("kraftd can be asked");
        let mut java = answer(&mut self.java, step).value();
        let mut kraftd = answer(&mut self.kraftd, step).value();
        if java.to_string().contains(WITHOUT_REASON) {
            self.until_java_leads();
        }
        let mut places = self.bindings.differences(&java, &kraftd);
        let mut ours = Vec::new();
        if TOKENS.contains(&step.ask.key()) && !places.is_empty() {
            // Before a poke: what kraftd has written about the token is no part of that.
            ours = self.kraftd.new_records();
            java = self.once_it_knows_the_token(step, &to_java, java);
            places = self.bindings.differences(&java, &kraftd);
        }
        for _ in 0..READS_MAX {
            if places.is_empty() || !READS.contains(&step.ask.key()) {
                break;
            }
            thread::park_timeout(READS_APART);
            self.poke();
            java = self.java.again(step, &to_java);
            kraftd = self.kraftd.again(step, &to_kraftd);
            places = self.bindings.differences(&java, &kraftd);
        }
        let theirs = self.java.new_records();
        ours.extend(self.kraftd.new_records());
        self.records += theirs.len();
        places.extend(self.compare_records(&theirs, &ours, is_placed_by_chance(step)));
        for (name, side) in [("Java's", &mut self.java), ("kraftd", &mut self.kraftd)] {
            if std::mem::take(&mut side.lost_leadership) {
                places.push(format!("{name} controller has resigned{}", side.fault()));
            }
        }
        self.generator.after(step, &java, &theirs);
        if theirs.iter().any(changes_acls) {
            self.settle_acls();
        }
        if places.is_empty() {
            return None;
        }
        let difference = Difference {
            api: step.ask.name(),
            request: format!("{:?}", step.ask),
            places,
        };
        if allowed.accepts(&difference) {
            return None;
        }
        Some(self.report(
            number,
            step,
            &difference,
            (&java, &theirs),
            (&kraftd, &ours),
        ))
    }

    /// What the two logs got; records of one type that follow each other in any order.
    fn compare_records(&mut self, java: &[Logged], kraftd: &[Logged], chance: bool) -> Vec<String> {
        let own = |records: &[Logged]| records.iter().filter(|it| is_own_registration(it)).count();
        self.registrations.0 += own(java);
        self.registrations.1 += own(kraftd);
        let image = &self.generator.image;
        let values = |records: &[Logged]| -> Vec<Value> {
            let records = records.iter().filter(|it| !is_own_registration(it));
            let values = records.map(|it| match chance {
                true => placement::shape(&it.record, image),
                false => it.record.json(),
            });
            let mut values: Vec<Value> = values.collect();
            for run in values.chunk_by_mut(|a, b| a["type"] == b["type"]) {
                run.sort_by_cached_key(|value| self.bindings.sort_key(value));
            }
            values
        };
        let (java, kraftd) = (values(java), values(kraftd));
        let mut places = Vec::new();
        for at in 0..java.len().max(kraftd.len()) {
            let none = Value::Null;
            let (java, kraftd) = (
                java.get(at).unwrap_or(&none),
                kraftd.get(at).unwrap_or(&none),
            );
            for place in self.bindings.differences(java, kraftd) {
                let kind = java["type"].as_str().or_else(|| kraftd["type"].as_str());
                places.push(format!("record {at} {}{place}", kind.unwrap_or_default()));
            }
        }
        places
    }

    fn report(
        &self,
        number: usize,
        step: &Step,
        difference: &Difference,
        java: (&Value, &[Logged]),
        kraftd: (&Value, &[Logged]),
    ) -> String {
        let shown = |(answer, records): (&Value, &[Logged])| {
            let records: String = records
                .iter()
                .map(|it| format!("\n      {} {}", it.offset, it.record.text()))
                .collect();
            format!("{}{records}", shortened(&answer.to_string()))
        };
        let forwarded = step.forwarded.as_ref().map_or(String::new(), |it| {
            let token = if it.token { ", by a token" } else { "" };
            format!(", forwarded for {}:{}{token}", it.kind, it.name)
        });
        let request = difference
            .request
            .replace(", unknown_tagged_fields: {}", "");
        let (seed, api, version) = (self.seed, difference.api, step.version);
        format!(
            "seed {seed}, step {number}: {api} v{version}{forwarded}\n    {request}\n  Java\n    \
             {}\n  kraftd\n    {}\n  differ in (Java's, kraftd's)\n    {}\n  again: make \
             diff-java SEED={seed} COUNT={}\n",
            shown(java),
            shown(kraftd),
            difference.places.join("\n    "),
            number + 1,
        )
    }
}

impl Side {
    fn again(&mut self, step: &Step, body: &[u8]) -> Value {
        let sent = self.send(step.key(), step.outer_version(), body);
        sent.expect("it can be asked");
        answer(self, step).value()
    }
}

/// The code of an answer, or of the one inside an envelope's.
fn error_code(answer: &Value) -> Option<i64> {
    let inner = answer["forwarded"].get("answer").unwrap_or(answer);
    inner["error_code"].as_i64()
}

fn answer(side: &mut Side, step: &Step) -> Answer {
    match side.receive(step.key(), step.outer_version()) {
        Ok(Some(body)) => match step.read(body) {
            Ok(value) => Answer::Value(value),
            Err(why) => Answer::Unreadable(why),
        },
        Ok(None) => Answer::Closed,
        Err(e) => Answer::Unreadable(e.to_string()),
    }
}

fn changes_acls(logged: &Logged) -> bool {
    matches!(
        logged.record.record,
        Record::AccessControlEntry(_) | Record::RemoveAccessControlEntry(_)
    )
}

/// The start of a text: an answer may hold every key of a resource.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

/// The controller registers itself whenever it finds that it is not, in its own time.
fn is_own_registration(logged: &Logged) -> bool {
    let record = &logged.record.record;
    matches!(record, Record::RegisterController(it) if it.controller_id == CONTROLLER)
}
