//! The authorizer's semantics: what a real one decided, and what no table of it says.

use super::cidr::Block;
use super::*;
use crate::types::Uuid;

fn asker<'a>(principal: &'a Principal, address: &str) -> Asker<'a> {
    Asker {
        principal,
        address: Some(address.parse().unwrap()),
        request: "CreateTopics",
    }
}

fn resource(kind: &str, name: &'static str) -> Resource<'static> {
    match kind {
        "2" => Resource::Topic(name),
        "3" => Resource::Group(name),
        other => panic!("no type of this table: {other}"),
    }
}

fn operation(number: &str) -> Operation {
    const ALL: [Operation; 11] = [
        Operation::Read,
        Operation::Write,
        Operation::Create,
        Operation::Delete,
        Operation::Alter,
        Operation::Describe,
        Operation::ClusterAction,
        Operation::DescribeConfigs,
        Operation::AlterConfigs,
        Operation::IdempotentWrite,
        Operation::CreateTokens,
    ];
    let found = ALL.into_iter().find(|one| one.code().to_string() == number);
    found.unwrap()
}

/// The entry of a line of the table.
fn entry(cells: &[&str], number: usize) -> crate::records::AccessControlEntryRecord {
    crate::records::AccessControlEntryRecord {
        id: Uuid::from_u128(number as u128),
        resource_type: cells[1].parse().unwrap(),
        resource_name: cells[2].into(),
        pattern_type: cells[3].parse().unwrap(),
        principal: cells[4].into(),
        host: cells[5].into(),
        operation: cells[6].parse().unwrap(),
        permission_type: cells[7].parse().unwrap(),
        ..Default::default()
    }
}

#[test]
fn every_decision_is_the_one_of_kafkas_own_authorizer() {
    let table = include_str!("../../../fixtures/4.4.0/authorizer/decisions.tsv");
    let mut rules = AuthorizerRules::default();
    let mut acls = crate::image::Image::empty();
    let mut count = [0, 0];
    for line in table.lines() {
        let cells: Vec<&'static str> = line.split('\t').collect();
        match cells[..] {
            ["set", users, allow] => {
                let users = users.split(';').map(str::trim);
                let users = users.filter(|user| !user.is_empty());
                rules = AuthorizerRules {
                    super_users: users.map(str::to_owned).collect(),
                    allow_everyone_if_no_acl_found: allow == "true",
                };
                acls = crate::image::Image::empty();
            }
            ["acl", ..] => {
                let record = entry(&cells, acls.acls().by_id().len());
                let offset = crate::types::Offset(0);
                acls.replay(&record.into(), offset).unwrap();
            }
            [
                "ask",
                kind,
                name,
                address,
                asked,
                resource_kind,
                resource_name,
                answer,
            ] => {
                let principal = Principal {
                    kind: kind.into(),
                    name: name.into(),
                    token_authenticated: false,
                };
                let question = (operation(asked), resource(resource_kind, resource_name));
                let asker = asker(&principal, address);
                let ours = allows(Some(&rules), acls.acls(), asker, question, Audit::Both);
                let known = acls.acls().by_id();
                assert_eq!(ours, answer == "ALLOWED", "{line}\n{rules:?}\n{known:?}");
                count[usize::from(ours)] += 1;
            }
            ["block", block, wrong] => {
                let ours = Block::parse(block).err().unwrap_or_default();
                assert_eq!(ours, wrong, "{block}");
            }
            ["within", block, address, within] => {
                let address: IpAddr = address.parse().unwrap();
                let parsed = Block::parse(block);
                let ours = parsed.is_ok_and(|block| block.contains(address.to_canonical()));
                assert_eq!(ours.to_string(), within, "{line}");
            }
            _ => panic!("no line of this table: {line}"),
        }
    }
    assert!(count[0] > 1_000 && count[1] > 1_000, "{count:?}");
}

#[test]
fn addresses_are_written_as_java_writes_them() {
    let text = |address: &str| host_text(address.parse().unwrap());
    assert_eq!(text("::1"), "0:0:0:0:0:0:0:1");
    assert_eq!(text("2001:db8::a:0"), "2001:db8:0:0:0:0:a:0");
    assert_eq!(text("10.1.2.3"), "10.1.2.3");
}

#[test]
fn without_an_authorizer_and_inside_of_the_process_everything_is_allowed() {
    let acls = Acls::default();
    let rules = AuthorizerRules::default();
    let principal = Principal::default();
    let mut asker = asker(&principal, "127.0.0.1");
    let question = (Operation::Create, Resource::Cluster);
    assert!(allows(None, &acls, asker, question, Audit::Both));
    assert!(!allows(Some(&rules), &acls, asker, question, Audit::Both));
    asker.address = None;
    assert!(allows(Some(&rules), &acls, asker, question, Audit::Both));
}

#[test]
fn the_reason_of_an_answer_is_told_in_the_words_of_the_reference() {
    let acl = Acl {
        resource_type: 2,
        resource_name: "a".into(),
        pattern_type: 4,
        principal: "User:u".into(),
        host: "*".into(),
        operation: 10,
        permission_type: 2,
    };
    assert_eq!(
        rule_text(Reason::Entry(&acl)),
        "MatchingAcl(acl=StandardAcl[resourceType=TOPIC, resourceName=a, patternType=PREFIXED, \
         principal=User:u, host=*, operation=DESCRIBE_CONFIGS, permissionType=DENY])"
    );
}

/// A name with a line break would be an audit line of its own.
#[test]
fn an_audit_line_is_one_line_whatever_the_names_are() {
    let forged = "t\n[2026-01-31 12:00:00,123] INFO Principal = User:root is Allowed";
    let principal = Principal {
        name: "eve\r\nx".into(),
        ..Principal::default()
    };
    let acl = Acl {
        resource_type: 2,
        resource_name: forged.into(),
        pattern_type: 3,
        principal: "User:eve\r\nx".into(),
        host: "*".into(),
        operation: 3,
        permission_type: 2,
    };
    for reason in [
        Reason::Entry(&acl),
        Reason::Default(false),
        Reason::SuperUser,
    ] {
        let address = "10.1.2.3".parse().unwrap();
        let question = (Operation::Read, Resource::Topic(forged));
        let line = line(asker(&principal, "10.1.2.3"), address, question, reason);
        assert!(!line.chars().any(char::is_control), "{line:?}");
        assert!(
            line.starts_with("Principal = User:eve\\r\\nx is "),
            "{line}"
        );
        assert!(line.contains("Topic:LITERAL:t\\n[2026"), "{line}");
    }
}
