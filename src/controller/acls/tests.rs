//! Rules of access control entries: a real controller's answers given again, and the limits.

use kafka_protocol::messages::delete_acls_request::DeleteAclsFilter;

use super::*;
use crate::controller::Request;
use crate::controller::answers_tests::{Row, read, rows, sorted};
use crate::controller::authorize::AuthorizerRules;
use crate::controller::testing::World;

fn world() -> World {
    let mut world = World::with_brokers(&[]);
    world.settings.authorizer = Some(AuthorizerRules::default());
    world
}

fn answered(world: &mut World, row: &Row<'_>) -> Vec<String> {
    let version = row.version;
    let request = match row.api {
        "CreateAcls" => Request::CreateAcls(read(&row.request, version)),
        "DeleteAcls" => Request::DeleteAcls(read(&row.request, version)),
        _ => {
            let request = read(&row.request, version);
            let answer = describe(&world.image, &world.settings, &request).unwrap();
            return described(answer);
        }
    };
    match world.run(version, request) {
        Ok(Reply::CreateAcls(reply)) => reply
            .results
            .iter()
            .map(|result| format!("{result:?}"))
            .collect(),
        Ok(Reply::DeleteAcls(reply)) => deleted(reply),
        Ok(other) => panic!("another answer: {other:?}"),
        Err(error) => vec![format!("{error:?}")],
    }
}

fn described(mut answer: km::DescribeAclsResponse) -> Vec<String> {
    for resource in &mut answer.resources {
        resource.acls.sort_by_key(|acl| format!("{acl:?}"));
    }
    sorted(answer.resources)
}

fn deleted(mut answer: km::DeleteAclsResponse) -> Vec<String> {
    for result in &mut answer.filter_results {
        result.matching_acls.sort_by_key(|acl| format!("{acl:?}"));
    }
    let results = answer.filter_results.iter();
    results.map(|result| format!("{result:?}")).collect()
}

fn recorded(row: &Row<'_>) -> Vec<String> {
    let version = row.version;
    match row.api {
        "CreateAcls" => {
            let answer: km::CreateAclsResponse = read(&row.answer, version);
            answer
                .results
                .iter()
                .map(|result| format!("{result:?}"))
                .collect()
        }
        "DeleteAcls" => deleted(read(&row.answer, version)),
        _ => described(read(&row.answer, version)),
    }
}

/// The filter that every entry passes.
fn every_entry() -> DeleteAclsFilter {
    DeleteAclsFilter::default()
        .with_resource_type_filter(ANY)
        .with_resource_name_filter(None)
        .with_pattern_type_filter(ANY)
        .with_principal_filter(None)
        .with_host_filter(None)
        .with_operation(ANY)
        .with_permission_type(ANY)
}

#[test]
fn every_answer_about_entries_is_the_one_of_a_real_controller() {
    let table = include_str!("../../../fixtures/4.4.0/answers/acls.tsv");
    let mut world = world();
    let mut compared = 0;
    // Some are requests that no controller reads: the connection ends.
    let read = table.lines().filter(|line| !line.ends_with("\tclosed"));
    let table = read.collect::<Vec<_>>().join("\n");
    for row in &rows(&table) {
        let (ours, java) = (answered(&mut world, row), recorded(row));
        if java.iter().all(|line| line.contains("error_code: -1")) && !java.is_empty() {
            assert_eq!(ours.len(), 1, "{}", row.case);
            assert!(
                ours[0].contains("UnknownServerError"),
                "{}: {ours:?}",
                row.case
            );
        } else {
            assert_eq!(ours, java, "{} {}", row.api, row.case);
        }
        compared += 1;
    }
    assert!(compared > 120, "{compared}");
}

fn entry(user: usize) -> AclCreation {
    AclCreation::default()
        .with_resource_type(2)
        .with_resource_name(StrBytes::from_static_str("many"))
        .with_resource_pattern_type(3)
        .with_principal(StrBytes::from_string(format!("User:{user}")))
        .with_host(StrBytes::from_static_str("*"))
        .with_operation(3)
        .with_permission_type(3)
}

fn create_many(world: &mut World, users: std::ops::Range<usize>, more: &[AclCreation]) -> Vec<i16> {
    let creations = users.map(entry).chain(more.iter().cloned()).collect();
    let request = km::CreateAclsRequest::default().with_creations(creations);
    match world.run(3, Request::CreateAcls(request)) {
        Ok(Reply::CreateAcls(reply)) => reply.results.iter().map(|it| it.error_code).collect(),
        other => panic!("no answer: {other:?}"),
    }
}

#[test]
fn an_operation_creates_and_deletes_ten_thousand_entries_and_no_more() {
    let mut world = world();
    // What has no name is told so, whatever becomes of the others.
    let nameless = entry(0).with_resource_name(StrBytes::default());
    let codes = create_many(&mut world, 0..10_001, &[nameless]);
    assert!(codes[..10_001].iter().all(|code| *code == 44));
    assert_eq!(codes[10_001], 42);
    assert!(world.image.acls().by_id().is_empty());
    let codes = create_many(&mut world, 0..10_000, &[entry(0)]);
    assert!(codes.iter().all(|code| *code == 0));
    assert_eq!(world.image.acls().by_id().len(), 10_000);
    create_many(&mut world, 10_000..10_001, &[]);
    let all = every_entry();
    let request = km::DeleteAclsRequest::default().with_filters(vec![all.clone()]);
    let refused = world.ask(3, Request::DeleteAcls(request)).unwrap_err();
    assert_eq!(refused.code, ErrorCode::InvalidRequest);
    let one = all
        .clone()
        .with_principal_filter(Some(StrBytes::from_static_str("User:7")));
    let request = km::DeleteAclsRequest::default().with_filters(vec![one]);
    world.run(3, Request::DeleteAcls(request)).unwrap();
    assert_eq!(world.image.acls().by_id().len(), 10_000);
    let request = km::DeleteAclsRequest::default().with_filters(vec![all]);
    world.run(3, Request::DeleteAcls(request)).unwrap();
    assert!(world.image.acls().by_id().is_empty());
}

#[test]
fn blocks_of_addresses_need_the_level_that_knows_them() {
    for (level, code) in [(31, 35), (32, 0)] {
        let mut world = World::at_level(level);
        world.settings.authorizer = Some(AuthorizerRules::default());
        let block = entry(1).with_host(StrBytes::from_static_str("10.0.0.0/8"));
        assert_eq!(create_many(&mut world, 0..0, &[block]), [code]);
    }
}

#[test]
fn many_filters_do_not_make_an_answer_without_end() {
    let mut world = world();
    create_many(&mut world, 0..1_000, &[]);
    let all = every_entry();
    let request = km::DeleteAclsRequest::default().with_filters(vec![all; 101]);
    let refused = world.ask(3, Request::DeleteAcls(request)).unwrap_err();
    assert_eq!(refused.code, ErrorCode::PolicyViolation);
}

/// Entries with names of 30,000 characters.
fn add_long(world: &mut World, numbers: std::ops::Range<u128>) {
    for at in numbers {
        let entry = Acl {
            resource_type: 2,
            resource_name: format!("{at:0>30000}"),
            pattern_type: 3,
            principal: "User:a".into(),
            host: "*".into(),
            operation: 3,
            permission_type: 3,
        };
        world.replay(&Record::AccessControlEntry(entry.record(Uuid::from_u128(at))).at(0));
    }
}

#[test]
fn entries_that_take_too_much_to_tell_are_refused() {
    let mut world = world();
    let all = km::DescribeAclsRequest::default()
        .with_resource_type_filter(ANY)
        .with_resource_name_filter(None)
        .with_pattern_type_filter(ANY)
        .with_principal_filter(None)
        .with_host_filter(None)
        .with_operation(ANY)
        .with_permission_type(ANY);
    add_long(&mut world, 0..1_100);
    let told = describe(&world.image, &world.settings, &all).unwrap();
    assert_eq!(told.resources.len(), 1_100);
    add_long(&mut world, 1_100..1_120);
    let refused = describe(&world.image, &world.settings, &all).unwrap_err();
    assert_eq!(refused.code, ErrorCode::PolicyViolation);
    // Fewer of them are told as ever.
    let one = all.with_resource_name_filter(Some(StrBytes::from_string(format!("{:0>30000}", 7))));
    let told = describe(&world.image, &world.settings, &one).unwrap();
    assert_eq!(told.resources.len(), 1);
}

/// Filters that name the same entries tell of each of them again, names of 32 KiB and all.
#[test]
fn an_answer_that_repeats_long_names_too_often_is_refused() {
    let mut world = world();
    add_long(&mut world, 0..100);
    let asked = |filters: usize| {
        let request = km::DeleteAclsRequest::default();
        Request::DeleteAcls(request.with_filters(vec![every_entry(); filters]))
    };
    let refused = world.ask(3, asked(30)).unwrap_err();
    assert_eq!(refused.code, ErrorCode::PolicyViolation);
    assert_eq!(world.ask(3, asked(20)).unwrap().records.len(), 100);
    let refused = world.ask(3, asked(100_001)).unwrap_err();
    assert_eq!(refused.code, ErrorCode::PolicyViolation);
}
