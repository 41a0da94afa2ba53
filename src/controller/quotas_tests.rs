//! Requests about client quotas and SCRAM credentials that a real controller answered, decided
//! again: the same answers and, record by record and in the same order, the same log.

use std::collections::BTreeSet;

use bytes::Bytes;
use kafka_protocol::messages as km;
use kafka_protocol::protocol::{Decodable, StrBytes};

use super::answers_tests::unhex;
use super::quotas::AlterClientQuotas;
use super::testing::World;
use super::{Reply, Request, scram};
use crate::records::batch::Batch;
use crate::records::{Record, VersionedRecord};
use crate::types::ErrorCode;

fn read<M: Decodable>(hex: &str, version: &str) -> M {
    M::decode(&mut unhex(hex), version.parse().unwrap()).unwrap()
}

/// The records of quotas and credentials in Java's log.
fn logged() -> Vec<VersionedRecord> {
    let log = include_bytes!("../../fixtures/4.4.0/answers/quotas-and-scram.log");
    let mut log = Bytes::from_static(log);
    let mut records = Vec::new();
    while let Some(batch) = Batch::take_from(&mut log).unwrap() {
        if batch.is_control() {
            continue;
        }
        for raw in batch.records() {
            let record = VersionedRecord::decode(&raw.unwrap().value.unwrap()).unwrap();
            if matches!(
                record.record,
                Record::ClientQuota(_)
                    | Record::UserScramCredential(_)
                    | Record::RemoveUserScramCredential(_)
            ) {
                records.push(record);
            }
        }
    }
    records
}

/// Asks; what was decided is replayed and noted in `written`.
fn ask(world: &mut World, request: Request, written: &mut Vec<VersionedRecord>) -> Reply {
    let decision = world.take(0, request).unwrap();
    assert!(decision.atomic);
    written.extend(decision.records);
    decision.reply
}

#[test]
fn every_answer_and_every_record_is_the_one_that_a_real_controller_gave() {
    let table = include_str!("../../fixtures/4.4.0/answers/quotas-and-scram.tsv");
    let hosts = ["no.such.host.invalid", "not a host", "1:2:3", "[::1"];
    let unknown_hosts: BTreeSet<String> = hosts.map(str::to_owned).into();
    let mut world = World::at_level(33);
    let mut written = Vec::new();
    let mut counts = (0, 0);
    let mut refused = 0;
    for line in table.lines().filter(|line| !line.starts_with('#')) {
        let cells: Vec<&str> = line.split('\t').collect();
        let [case, api, version, _, _, request, answer] = cells[..] else {
            panic!("{line}")
        };
        match api {
            "AlterClientQuotas" => {
                let request = Request::AlterClientQuotas(AlterClientQuotas {
                    body: read(request, version),
                    unknown_hosts: unknown_hosts.clone(),
                });
                let mut java: km::AlterClientQuotasResponse = read(answer, version);
                let Reply::AlterClientQuotas(mut ours) = ask(&mut world, request, &mut written)
                else {
                    unreachable!()
                };
                // Java has the entities in the order of their hashes.
                java.entries
                    .sort_by_cached_key(|entry| format!("{entry:?}"));
                ours.entries
                    .sort_by_cached_key(|entry| format!("{entry:?}"));
                assert_eq!(ours, java, "{case}");
                counts.0 += 1;
            }
            "AlterUserScramCredentials" => {
                let request = Request::AlterUserScramCredentials(read(request, version));
                let mut java: km::AlterUserScramCredentialsResponse = read(answer, version);
                // An error of Java's own, which it has no words for.
                for result in java.results.iter_mut().filter(|it| it.error_code == -1) {
                    assert!(case.starts_with("empty salted password"), "{case}");
                    result.error_code = ErrorCode::UnacceptableCredential.code();
                    result.error_message = Some("The salted password must not be empty".into());
                    refused += 1;
                }
                let Reply::AlterUserScramCredentials(ours) = ask(&mut world, request, &mut written)
                else {
                    unreachable!()
                };
                assert_eq!(ours, java, "{case}");
                counts.1 += 1;
            }
            // Java's controller has no handler for it.
            "DescribeUserScramCredentials" => {}
            other => panic!("no rule of this test: {other}"),
        }
    }
    assert!(counts.0 >= 80 && counts.1 >= 40, "{counts:?}");
    assert_eq!(refused, 2);
    let java = logged();
    assert!(java.len() > 100);
    for (at, (ours, java)) in written.iter().zip(&java).enumerate() {
        assert_eq!(ours, java, "record {at}");
    }
    assert_eq!(written.len(), java.len());
}

#[test]
fn no_credential_is_written_below_its_metadata_version() {
    let mut world = World::at_level(10);
    let deletion = km::alter_user_scram_credentials_request::ScramCredentialDeletion::default()
        .with_name("bob".into())
        .with_mechanism(1);
    let upsertion = km::alter_user_scram_credentials_request::ScramCredentialUpsertion::default()
        .with_name("alice".into())
        .with_mechanism(1)
        .with_iterations(1)
        .with_salted_password(Bytes::from_static(b"x"));
    let request = km::AlterUserScramCredentialsRequest::default()
        .with_deletions(vec![deletion])
        .with_upsertions(vec![upsertion]);
    let mut written = Vec::new();
    let request = Request::AlterUserScramCredentials(request);
    let Reply::AlterUserScramCredentials(reply) = ask(&mut world, request, &mut written) else {
        unreachable!()
    };
    assert!(written.is_empty());
    assert_eq!(reply.results.len(), 2);
    for result in reply.results {
        assert_eq!(result.error_code, 35);
        let message = result.error_message.unwrap();
        let expected = "The current metadata.version does not support SCRAM";
        assert_eq!(message.as_str(), expected);
    }
}

/// The texts are those of a broker, which answers from the same image.
#[test]
fn credentials_are_described_without_their_keys() {
    let mut world = World::at_level(33);
    for (name, mechanism, iterations) in [("bob", 2, 8192), ("bob", 1, 4096), ("alice", 1, 5000)] {
        let record = crate::records::UserScramCredentialRecord {
            name: name.into(),
            mechanism,
            iterations,
            ..crate::records::UserScramCredentialRecord::default()
        };
        world.replay(&Record::UserScramCredential(record).at(0));
    }
    let described = |users: Option<&[&'static str]>| {
        let user = |name: &&'static str| {
            km::describe_user_scram_credentials_request::UserName::default()
                .with_name(StrBytes::from_static_str(name))
        };
        let users = users.map(|users| users.iter().map(user).collect());
        let request = km::DescribeUserScramCredentialsRequest::default().with_users(users);
        let answer = scram::describe(&world.image, &request).unwrap();
        assert_eq!((answer.error_code, answer.error_message), (0, None));
        let results = answer.results.into_iter().map(|result| {
            let infos = result.credential_infos.iter();
            let infos: Vec<(i8, i32)> = infos
                .map(|info| (info.mechanism, info.iterations))
                .collect();
            let message = result.error_message.map(|text| text.to_string());
            (result.user.to_string(), result.error_code, message, infos)
        });
        results.collect::<Vec<_>>()
    };
    let alice = ("alice".to_owned(), 0, None, vec![(1, 5000)]);
    let bob = ("bob".to_owned(), 0, None, vec![(1, 4096), (2, 8192)]);
    let all = [alice, bob.clone()];
    assert_eq!(described(None), all);
    assert_eq!(described(Some(&[])), all);
    let refused = |name: &str, code, text: &str| {
        let text = format!("{text}{name}");
        (name.to_owned(), code, Some(text), Vec::new())
    };
    assert_eq!(
        described(Some(&["bob", "alice", "nobody", "alice"])),
        [
            bob,
            refused(
                "alice",
                92,
                "Cannot describe SCRAM credentials for the same user twice in a single request: "
            ),
            refused(
                "nobody",
                91,
                "Attempt to describe a user credential that does not exist: "
            ),
        ]
    );
}

#[test]
fn credentials_of_users_that_take_too_much_to_tell_are_refused() {
    let mut world = World::at_level(33);
    let add = |world: &mut World, numbers: std::ops::Range<u32>| {
        for number in numbers {
            let record = crate::records::UserScramCredentialRecord {
                name: format!("{number:0>30000}"),
                mechanism: 1,
                iterations: 4096,
                ..crate::records::UserScramCredentialRecord::default()
            };
            world.replay(&Record::UserScramCredential(record).at(0));
        }
        scram::describe(
            &world.image,
            &km::DescribeUserScramCredentialsRequest::default(),
        )
    };
    assert_eq!(add(&mut world, 0..1_100).unwrap().results.len(), 1_100);
    let refused = add(&mut world, 1_100..1_120).unwrap_err();
    assert_eq!(refused.code, ErrorCode::PolicyViolation);
}
