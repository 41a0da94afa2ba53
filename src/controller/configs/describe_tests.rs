//! Of thousands of resources, most keys are told alike.

use kafka_protocol::messages::DescribeConfigsRequest;
use kafka_protocol::messages::describe_configs_request::DescribeConfigsResource;
use kafka_protocol::messages::describe_configs_response::DescribeConfigsResourceResult;

use super::describe;
use crate::controller::authorize::Asker;
use crate::controller::testing::World;
use crate::types::Uuid;
use crate::types::loggers::Loggers;

type Entries = Vec<DescribeConfigsResourceResult>;

/// What is told of each of these resources in one answer.
fn told(world: &World, resources: &[(i8, &str)]) -> Vec<Entries> {
    let resource = |(kind, name): &(i8, &str)| {
        DescribeConfigsResource::default()
            .with_resource_type(*kind)
            .with_resource_name((*name).to_owned().into())
            .with_configuration_keys(None)
    };
    let request = DescribeConfigsRequest::default()
        .with_include_synonyms(true)
        .with_resources(resources.iter().map(resource).collect());
    let asker = Asker::of(&world.context);
    let (image, settings, loggers) = (&world.image, &world.settings, &Loggers::default());
    let answer = describe::describe(image, settings, loggers, asker, &request).unwrap();
    let results = answer.results.into_iter();
    results
        .map(|result| {
            assert_eq!(result.error_code, 0);
            result.configs
        })
        .collect()
}

/// Working out each of 5,000 topics' keys took half a second, in which no other description was
/// answered.
#[test]
fn what_is_told_alike_of_many_resources_is_worked_out_once_in_an_answer() {
    const KEYS: [(&str, &str); 2] = [
        ("retention.ms", "7000"),
        ("consumer.session.timeout.ms", "47000"),
    ];
    let mut world = World::with_brokers(&[2]);
    world.settings.node_id = crate::types::NodeId(1);
    for (at, name) in ["t", "u"].into_iter().enumerate() {
        world.topic(name, Uuid::from_u128(0x70 + at as u128), Vec::new());
    }
    world.config(4, "", "log.retention.ms", "8000");
    world.config(4, "1", "group.consumer.session.timeout.ms", "48000");
    world.config(2, "u", KEYS[0].0, KEYS[0].1);
    world.config(32, "u", KEYS[1].0, KEYS[1].1);
    for kind in [(2, "t", "u"), (32, "t", "u"), (4, "", ""), (4, "1", "1")] {
        let (kind, one, two) = kind;
        let together = told(&world, &[(kind, one), (kind, two)]);
        for (name, entries) in [(one, &together[0]), (two, &together[1])] {
            assert_eq!(&told(&world, &[(kind, name)])[0], entries, "{name}");
        }
        let mut alike = 0;
        for (first, second) in together[0].iter().zip(&together[1]) {
            let shared = first.name.as_str().as_ptr() == second.name.as_str().as_ptr();
            let own = KEYS.iter().find(|(key, _)| *key == second.name.as_str());
            match own.filter(|_| two == "u") {
                Some((_, value)) => assert_eq!(second.value.as_deref(), Some(*value)),
                None => assert!(shared, "{kind} {:?}", second.name),
            }
            alike += usize::from(shared);
        }
        assert_eq!(alike, together[0].len() - usize::from(two == "u"));
    }
}
