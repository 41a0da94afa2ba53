//! Rules of configurations that no recorded answer meets.

use std::collections::BTreeMap;

use kafka_protocol::messages as km;
use kafka_protocol::messages::incremental_alter_configs_request as alter;

use super::{describe, topic};
use crate::controller::authorize::Asker;
use crate::controller::testing::World;
use crate::controller::{Decision, Reply, Request};
use crate::records::Record;
use crate::types::ErrorCode;
use crate::types::loggers::Loggers;

const SET: i8 = 0;
const DELETE: i8 = 1;
const APPEND: i8 = 2;
const SUBTRACT: i8 = 3;

/// An incremental change of one resource.
fn change(kind: i8, name: &str, operations: &[(&str, i8, Option<&str>)]) -> Request {
    let configs = operations.iter().map(|(key, operation, value)| {
        alter::AlterableConfig::default()
            .with_name((*key).to_owned().into())
            .with_config_operation(*operation)
            .with_value(value.map(|value| value.to_owned().into()))
    });
    let resource = alter::AlterConfigsResource::default()
        .with_resource_type(kind)
        .with_resource_name(name.to_owned().into())
        .with_configs(configs.collect());
    let request = km::IncrementalAlterConfigsRequest::default().with_resources(vec![resource]);
    Request::IncrementalAlterConfigs(request)
}

fn with_topic() -> World {
    let mut world = World::with_brokers(&[2]);
    let topic = km::create_topics_request::CreatableTopic::default()
        .with_name(km::TopicName("t".into()))
        .with_num_partitions(1)
        .with_replication_factor(1);
    let request = km::CreateTopicsRequest::default().with_topics(vec![topic]);
    world.run(7, Request::CreateTopics(request)).unwrap();
    world
}

/// What was decided, as `NAME value` for a configuration and `CLEAR topic` for an ELR.
fn told(decision: &Decision) -> Vec<String> {
    let (code, message) = match &decision.reply {
        Reply::IncrementalAlterConfigs(reply) => {
            let first = &reply.responses[0];
            (first.error_code, first.error_message.as_deref())
        }
        Reply::AlterConfigs(reply) => {
            let first = &reply.responses[0];
            (first.error_code, first.error_message.as_deref())
        }
        other => panic!("{other:?}"),
    };
    if code != 0 {
        assert!(decision.records.is_empty());
        return vec![format!("{code}: {}", message.unwrap_or_default())];
    }
    let told = |versioned: &crate::records::VersionedRecord| match &versioned.record {
        Record::Config(config) => match &config.value {
            Some(value) => format!("{} {value}", config.name),
            None => format!("{} deleted", config.name),
        },
        Record::ClearElr(clear) => format!("CLEAR {}", clear.topic_name),
        other => panic!("{other:?}"),
    };
    decision.records.iter().map(told).collect()
}

fn ask(world: &mut World, request: Request) -> Vec<String> {
    told(&world.ask(1, request).unwrap())
}

#[test]
fn long_lists_get_what_is_new_at_their_end_and_lose_what_is_shared() {
    let mut world = with_topic();
    let key = "leader.replication.throttled.replicas";
    let list = |first: usize| {
        let items: Vec<String> = (first..first + 4_000).map(|at| format!("{at}:1")).collect();
        items.join(",")
    };
    let (old, new) = (list(0), list(1));
    world.config(2, "t", key, &old);
    let grown = ask(&mut world, change(2, "t", &[(key, APPEND, Some(&new))]));
    assert_eq!(grown, [format!("{key} {old},4000:1")]);
    let shrunk = ask(&mut world, change(2, "t", &[(key, SUBTRACT, Some(&new))]));
    assert_eq!(shrunk, [format!("{key} 0:1")]);
}

/// Each item that is named takes out one place, the first that is left.
#[test]
fn what_is_in_a_list_twice_is_taken_out_as_often_as_it_is_named() {
    let mut world = with_topic();
    let key = "leader.replication.throttled.replicas";
    world.config(2, "t", key, "1:1,2:2,1:1,3:3,1:1");
    for (named, left) in [
        ("1:1", "2:2,1:1,3:3,1:1"),
        ("1:1,1:1", "2:2,3:3,1:1"),
        ("1:1,1:1,1:1,1:1", "2:2,3:3"),
        ("4:4,2:2", "1:1,1:1,3:3,1:1"),
    ] {
        let told = ask(&mut world, change(2, "t", &[(key, SUBTRACT, Some(named))]));
        assert_eq!(told, [format!("{key} {left}")]);
    }
    let told = ask(
        &mut world,
        change(2, "t", &[(key, APPEND, Some("4:4,1:1,4:4"))]),
    );
    assert_eq!(told, [format!("{key} 1:1,2:2,1:1,3:3,1:1,4:4")]);
}

/// A broker takes any key, and each change costs a look at all that it has.
#[test]
fn a_resource_has_a_bounded_number_of_keys() {
    let mut world = World::with_brokers(&[2]);
    let names: Vec<String> = (0..2_001).map(|at| format!("key-{at}")).collect();
    let sets: Vec<_> = names
        .iter()
        .map(|name| (name.as_str(), SET, Some("1")))
        .collect();
    let refused = ask(&mut world, change(4, "2", &sets));
    assert!(
        refused[0].starts_with("44: A resource may have 2000"),
        "{refused:?}"
    );
    assert_eq!(ask(&mut world, change(4, "2", &sets[1..])).len(), 2_000);
    // What a log brought is kept, and may get less.
    for name in &names {
        world.config(4, "2", name, "1");
    }
    let told = ask(&mut world, change(4, "2", &[("key-7", DELETE, None)]));
    assert_eq!(told, ["key-7 deleted"]);
    let told = ask(&mut world, change(4, "2", &[("key-7", SET, Some("2"))]));
    assert_eq!(told, ["key-7 2"]);
    let many = vec![("a", SET, Some("1")); 10_001];
    let refused = world.ask(1, change(4, "2", &many)).unwrap_err();
    assert_eq!(refused.code, ErrorCode::PolicyViolation);
}

#[test]
fn lists_grow_and_shrink_from_what_is_set_or_from_the_default() {
    let key = "cleanup.policy";
    // What is set, the operation, the items, what comes out.
    let cases: &[(Option<&str>, i8, &str, &[&str])] = &[
        (None, APPEND, "compact", &["cleanup.policy delete,compact"]),
        (None, APPEND, "delete", &["cleanup.policy delete"]),
        (None, SUBTRACT, "delete", &["cleanup.policy "]),
        (Some("compact"), APPEND, "compact", &[]),
        (
            Some("compact"),
            APPEND,
            "delete,compact",
            &["cleanup.policy compact,delete"],
        ),
        (
            Some("compact,delete"),
            SUBTRACT,
            "compact",
            &["cleanup.policy delete"],
        ),
        (Some("compact"), SUBTRACT, "nosuch", &[]),
        (Some("compact"), APPEND, ",", &[]),
    ];
    for (set, operation, items, expected) in cases {
        let mut world = with_topic();
        if let Some(set) = set {
            world.config(2, "t", key, set);
        }
        let request = change(2, "t", &[(key, *operation, Some(items))]);
        assert_eq!(
            ask(&mut world, request),
            *expected,
            "{set:?} {operation} {items}"
        );
    }
}

/// The order is that of Java's hash map with these keys, as `jshell` prints it.
#[test]
fn of_several_bad_keys_the_one_that_java_tells_is_told() {
    let mut world = with_topic();
    let unknown = [
        "nothing.of.this.name",
        "zz.top",
        "b",
        "a.key",
        "no.such.key",
    ];
    let set = unknown.map(|key| (key, SET, Some("1")));
    for (kind, name) in [(2, "t"), (16, "m"), (32, "g")] {
        let told = ask(&mut world, change(kind, name, &set));
        assert!(told[0].ends_with(": b"), "{told:?}");
    }
    let lists = ["segment.ms", "retention.ms", "flush.ms"].map(|key| (key, APPEND, Some("1")));
    let told = ask(&mut world, change(2, "t", &lists));
    assert!(told[0].contains("to key flush.ms because"), "{told:?}");
}

#[test]
fn unchanged_values_are_written_for_brokers_only() {
    let mut world = with_topic();
    world.config(2, "t", "retention.ms", "5");
    world.config(4, "2", "log.cleaner.threads", "5");
    let same = change(
        2,
        "t",
        &[
            ("retention.ms", SET, Some("5")),
            ("segment.ms", DELETE, None),
        ],
    );
    assert!(ask(&mut world, same).is_empty());
    let same = change(4, "2", &[("log.cleaner.threads", SET, Some("5"))]);
    assert_eq!(ask(&mut world, same), ["log.cleaner.threads 5"]);
}

#[test]
fn a_legacy_change_deletes_what_it_does_not_name() {
    let mut world = with_topic();
    world.config(2, "t", "retention.ms", "5");
    world.config(2, "t", "segment.ms", "6");
    let config = km::alter_configs_request::AlterableConfig::default()
        .with_name("segment.ms".into())
        .with_value(Some("7".into()));
    let resource = km::alter_configs_request::AlterConfigsResource::default()
        .with_resource_type(2)
        .with_resource_name("t".into())
        .with_configs(vec![config]);
    let request = km::AlterConfigsRequest::default().with_resources(vec![resource]);
    assert_eq!(
        ask(&mut world, Request::AlterConfigs(request)),
        ["segment.ms 7", "retention.ms deleted"]
    );
}

#[test]
fn the_smallest_isr_clears_eligible_leaders_and_belongs_to_the_cluster() {
    let key = "min.insync.replicas";
    let mut world = with_topic();
    let set = |kind, name, value| change(kind, name, &[(key, SET, value)]);
    let own = "min.insync.replicas 2";
    assert_eq!(ask(&mut world, set(2, "t", Some("2"))), [own, "CLEAR t"]);
    assert_eq!(ask(&mut world, set(4, "", Some("2"))), [own, "CLEAR "]);
    let refused = ask(&mut world, set(4, "2", Some("2")));
    assert!(refused[0].starts_with("40: Broker-level"), "{refused:?}");
    let refused = ask(&mut world, change(4, "", &[(key, DELETE, None)]));
    assert!(refused[0].starts_with("40: Cluster-level"), "{refused:?}");

    // Without the feature it is a key like others.
    let mut world = World::at_level(21);
    world.broker(2, &[]);
    assert_eq!(ask(&mut world, set(4, "2", Some("2"))), [own]);
    assert_eq!(
        ask(&mut world, change(4, "", &[(key, DELETE, None)])),
        [format!("{key} deleted")]
    );
}

#[test]
fn cordoned_directories_can_only_shrink_unless_a_broker_forwards() {
    let key = "cordoned.log.dirs";
    let mut world = with_topic();
    let set = |value| change(4, "2", &[(key, SET, Some(value))]);
    let refused = ask(&mut world, set("/a"));
    assert!(
        refused[0].starts_with("40: When updating cordoned.log.dirs"),
        "{refused:?}"
    );
    world.context.forwarded = true;
    assert_eq!(ask(&mut world, set("/a,/b")), ["cordoned.log.dirs /a,/b"]);
    world.context.forwarded = false;
    world.config(4, "2", key, "/a, /b");
    assert_eq!(ask(&mut world, set(" /b ")), ["cordoned.log.dirs  /b "]);
    assert_eq!(ask(&mut world, set("")), ["cordoned.log.dirs "]);
    let mut world = World::at_level(29);
    world.broker(2, &[]);
    let refused = ask(&mut world, change(4, "2", &[(key, DELETE, None)]));
    assert!(
        refused[0].contains("metadata.version >= 4.3-IV0"),
        "{refused:?}"
    );
}

#[test]
fn a_value_may_be_as_long_as_a_short_string() {
    let mut world = with_topic();
    for (length, expected) in [(32_767, 0), (32_768, ErrorCode::InvalidConfig.code())] {
        let value = "x".repeat(length);
        let request = change(4, "2", &[("metric.reporters", SET, Some(&value))]);
        let Reply::IncrementalAlterConfigs(reply) = world.ask(1, request).unwrap().reply else {
            unreachable!()
        };
        assert_eq!(reply.responses[0].error_code, expected, "{length}");
    }
}

#[test]
fn endless_lists_of_items_and_of_wanted_keys_are_refused() {
    let mut world = with_topic();
    let items = ",x".repeat(20_000);
    for operation in [APPEND, SUBTRACT] {
        let told = ask(
            &mut world,
            change(2, "t", &[("cleanup.policy", operation, Some(&items))]),
        );
        assert!(
            told[0].contains("exceeds the maximum value size"),
            "{told:?}"
        );
    }
    let resource = km::describe_configs_request::DescribeConfigsResource::default()
        .with_resource_type(4)
        .with_resource_name("1".into())
        .with_configuration_keys(Some(vec!["k".into(); 10_000]));
    let request = km::DescribeConfigsRequest::default().with_resources(vec![resource]);
    let error = describe::describe(
        &world.image,
        &world.settings,
        &Loggers::default(),
        Asker::of(&world.context),
        &request,
    )
    .unwrap_err();
    assert_eq!(error.code, ErrorCode::PolicyViolation);
}

/// A node has hundreds of keys, and six bytes ask for all of them.
#[test]
fn resources_whose_keys_take_too_much_to_tell_are_refused() {
    let world = with_topic();
    for (times, told) in [(100, true), (10_000, false)] {
        let resource = km::describe_configs_request::DescribeConfigsResource::default()
            .with_resource_type(4)
            .with_resource_name("1".into())
            .with_configuration_keys(None);
        let request = km::DescribeConfigsRequest::default()
            .with_include_synonyms(true)
            .with_resources(vec![resource; times]);
        let asker = Asker::of(&world.context);
        let (image, settings, loggers) = (&world.image, &world.settings, &Loggers::default());
        match describe::describe(image, settings, loggers, asker, &request) {
            Ok(answer) => assert!(told && answer.results.len() == times),
            Err(error) => assert!(
                !told && error.code == ErrorCode::PolicyViolation,
                "{error:?}"
            ),
        }
    }
}

/// The answer's entry for one key of a resource.
fn described_entry(
    world: &World,
    kind: i8,
    name: &str,
    key: &str,
) -> Option<km::describe_configs_response::DescribeConfigsResourceResult> {
    let resource = km::describe_configs_request::DescribeConfigsResource::default()
        .with_resource_type(kind)
        .with_resource_name(name.to_owned().into())
        .with_configuration_keys(Some(vec![key.to_owned().into()]));
    let request = km::DescribeConfigsRequest::default().with_resources(vec![resource]);
    let asker = Asker::of(&world.context);
    let (image, settings, loggers) = (&world.image, &world.settings, &Loggers::default());
    let mut answer = describe::describe(image, settings, loggers, asker, &request).unwrap();
    answer.results.remove(0).configs.into_iter().next()
}

/// The value of one key of group `g`, as it is told.
fn described(world: &World, key: &str) -> Option<String> {
    let entry = described_entry(world, 32, "g", key)?;
    entry.value.as_ref().map(ToString::to_string)
}

#[test]
fn a_groups_assignor_is_the_first_of_the_brokers_list_and_its_internal_keys_show_when_set() {
    let mut world = with_topic();
    let (assignor, internal) = ("streams.assignor.name", "streams.num.warmup.replicas");
    assert_eq!(described(&world, assignor).as_deref(), Some("sticky"));
    assert_eq!(described(&world, internal), None);
    let file = &mut world.settings.static_configs;
    file.insert("group.streams.assignors".into(), "own,sticky".into());
    file.insert("group.streams.num.warmup.replicas".into(), "3".into());
    assert_eq!(described(&world, assignor).as_deref(), Some("own"));
    assert_eq!(described(&world, internal).as_deref(), Some("3"));
}

#[test]
fn a_node_that_is_known_in_any_way_can_be_configured() {
    let mut world = with_topic();
    world.settings.static_voters.insert(crate::types::NodeId(3));
    for (name, known) in [
        ("1", true),
        ("2", true),
        ("3", true),
        ("4", false),
        ("", true),
    ] {
        let told = ask(
            &mut world,
            change(4, name, &[("num.io.threads", SET, Some("9"))]),
        );
        assert_eq!(told == ["num.io.threads 9"], known, "{name}: {told:?}");
    }
}

#[test]
fn tiered_storage_rules_are_asked_in_order() {
    let on = ("remote.storage.enable", "true");
    // What is set at once on a topic, and a part of the refusal.
    type Case<'a> = (&'a [(&'a str, &'a str)], Option<&'a str>);
    let cases: &[Case<'_>] = &[
        (&[on], None),
        (&[on, ("cleanup.policy", "")], None),
        (
            &[on, ("cleanup.policy", "compact,delete")],
            Some("only supports topics with"),
        ),
        (
            &[on, ("local.retention.ms", "-1")],
            Some("Value must not be -1 as retention.ms"),
        ),
        (
            &[on, ("retention.ms", "5"), ("local.retention.ms", "6")],
            Some("must not be more than retention.ms property value: 5"),
        ),
        (
            &[on, ("retention.ms", "-1"), ("local.retention.ms", "6")],
            None,
        ),
        (&[on, ("local.retention.bytes", "9")], None),
        (
            &[on, ("retention.bytes", "5"), ("local.retention.bytes", "9")],
            Some("must not be more than retention.bytes property value: 5"),
        ),
        (
            &[on, ("retention.ms", "5"), ("remote.copy.lag.ms", "6")],
            Some("must not exceed local.retention.ms (effective value: 5)"),
        ),
        (&[on, ("remote.copy.lag.bytes", "6")], None),
        (
            &[
                on,
                ("remote.log.copy.disable", "true"),
                ("local.retention.ms", "5"),
            ],
            Some("`local.retention.ms` and `retention.ms` must be set to the identical"),
        ),
        (&[on, ("remote.log.copy.disable", "true")], None),
    ];
    for (set, part) in cases {
        let mut world = with_topic();
        let system = "remote.log.storage.system.enable".to_owned();
        world.settings.static_configs.insert(system, "true".into());
        let operations: Vec<_> = set
            .iter()
            .map(|(key, value)| (*key, SET, Some(*value)))
            .collect();
        let told = ask(&mut world, change(2, "t", &operations));
        match part {
            Some(part) => assert!(told[0].contains(part), "{set:?}: {told:?}"),
            None => assert!(!told[0].starts_with("40"), "{set:?}: {told:?}"),
        }
    }
}

#[test]
fn remote_storage_is_switched_off_only_with_its_data() {
    let mut world = with_topic();
    world.config(2, "t", "remote.storage.enable", "true");
    let off = ("remote.storage.enable", SET, Some("false"));
    let told = ask(&mut world, change(2, "t", &[off]));
    assert!(
        told[0].contains("It is invalid to disable remote storage"),
        "{told:?}"
    );
    let with_data = ("remote.log.delete.on.disable", SET, Some("true"));
    let told = ask(&mut world, change(2, "t", &[off, with_data]));
    assert_eq!(told.len(), 2);
}

#[test]
fn cross_checks_see_the_layers_below_the_topic() {
    let mut world = with_topic();
    let max = "log.cleaner.max.compaction.lag.ms";
    let asked = || change(2, "t", &[("min.compaction.lag.ms", SET, Some("10"))]);
    assert_eq!(ask(&mut world, asked()), ["min.compaction.lag.ms 10"]);
    world.settings.static_configs.insert(max.into(), "5".into());
    assert!(ask(&mut world, asked())[0].contains("(10) > max.compaction.lag.ms (5)"));
    world.config(4, "", max, "20");
    assert_eq!(ask(&mut world, asked()), ["min.compaction.lag.ms 10"]);
    world.config(4, "1", max, "7");
    assert!(ask(&mut world, asked())[0].contains("(10) > max.compaction.lag.ms (7)"));
    // The controller takes any value for a broker's key; a bad one counts as none.
    for bad in ["soon", "0"] {
        world.config(4, "1", max, bad);
        assert_eq!(ask(&mut world, asked()), ["min.compaction.lag.ms 10"]);
        world.config(4, "", max, "7");
        assert!(ask(&mut world, asked())[0].contains("(10) > max.compaction.lag.ms (7)"));
        world.config(4, "", max, "20");
    }
}

/// A node passes over each key of a dynamic layer that does not hold, and only over that key: what
/// a weaker layer says of it counts then, and the other keys of the layer stay.
#[test]
fn a_bad_value_of_a_node_leaves_the_value_of_the_cluster_in_sight() {
    let mut world = with_topic();
    let file = &mut world.settings.static_configs;
    file.insert("log.retention.hours".into(), "2".into());
    let shown = |world: &World, kind: i8, name: &str, key: &str| {
        let entry = described_entry(world, kind, name, key).unwrap();
        let value = entry.value.as_ref().map(ToString::to_string);
        (value.unwrap_or_default(), entry.config_source)
    };
    let topic = |world: &World, key: &str| shown(world, 2, "t", key);
    assert_eq!(topic(&world, "retention.ms"), ("7200000".into(), 5));
    world.config(4, "", "log.retention.ms", "1000");
    world.config(4, "1", "log.retention.ms", "x");
    world.config(4, "1", "message.max.bytes", "5");
    assert_eq!(topic(&world, "retention.ms"), ("1000".into(), 3));
    assert_eq!(topic(&world, "max.message.bytes"), ("5".into(), 2));
    let node = |world: &World, key: &str| shown(world, 4, "1", key);
    assert_eq!(node(&world, "log.retention.ms"), ("1000".into(), 3));
    // The same in another unit is gone from this node's own configuration.
    assert_eq!(node(&world, "log.retention.hours").0, "168");
    world.config(4, "", "log.retention.ms", "y");
    assert_eq!(topic(&world, "retention.ms"), ("7200000".into(), 5));
    assert_eq!(node(&world, "log.retention.hours"), ("2".into(), 4));
    world.config(4, "", "message.max.bytes", "7");
    world.config(4, "1", "message.max.bytes", "-1");
    assert_eq!(topic(&world, "max.message.bytes"), ("7".into(), 3));
    assert_eq!(node(&world, "message.max.bytes"), ("7".into(), 3));
}

/// The defaults of topics that Java computes from server keys in other units.
#[test]
fn defaults_of_topics_are_those_that_java_computes() {
    let text = include_str!("../../../fixtures/4.4.0/config/decisions.txt");
    let mut asked = 0;
    for block in text.split("\n\n") {
        let mut file = BTreeMap::new();
        let mut questions = Vec::new();
        let mut answers = Vec::new();
        for line in block.lines() {
            if let Some((key, value)) = line
                .strip_prefix("config| ")
                .and_then(|it| it.split_once('='))
            {
                file.insert(key.to_owned(), value.to_owned());
            } else if let Some(question) = line.strip_prefix("? ") {
                questions.push(question);
            } else if let Some(answer) = line.strip_prefix("= ") {
                answers.push(answer);
            } else if line == "=" {
                answers.push("");
            }
        }
        let world = {
            let mut world = World::at_level(33);
            world.settings.static_configs = file;
            world
        };
        for (question, answer) in questions.iter().zip(answers) {
            if let Some(key) = question.strip_prefix("topic:") {
                let effective =
                    topic::effective(topic::Layers::stored(&world.image, &world.settings), |_| {
                        None
                    });
                let entry = effective.iter().find(|entry| entry.definition.name == key);
                let used = entry.unwrap().used().unwrap();
                // With eligible leader replicas the cluster's value comes first.
                if key != "min.insync.replicas" {
                    assert_eq!(super::definition::text(&used), answer, "{block}");
                }
                asked += 1;
            }
        }
    }
    assert!(asked >= 20, "only {asked} questions");
}
