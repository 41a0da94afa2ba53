//! The authorizer's semantics: what no table of a real one says.

use super::cidr::Block;
use super::*;

#[test]
fn addresses_are_written_as_java_writes_them() {
    let text = |address: &str| host_text(address.parse().unwrap());
    assert_eq!(text("::1"), "0:0:0:0:0:0:0:1");
    assert_eq!(text("2001:db8::a:0"), "2001:db8:0:0:0:0:a:0");
    assert_eq!(text("10.1.2.3"), "10.1.2.3");
}

#[test]
fn a_malformed_block_is_told_in_the_words_of_the_reference() {
    for (block, wrong) in [
        ("10.0.0.0/33", "Value [33] not in range [0,32]"),
        ("10.0.0.256/8", "Value [256] not in range [0,255]"),
        ("10.0.0/8", "Could not parse [10.0.0/8]"),
        ("10.0.0.0/", "Could not parse [10.0.0.0/]"),
        ("/8", "Could not parse [/8]"),
        (
            "2001:db8::/129",
            "Could not parse [2001:db8::/129] - prefix length must be between 0 and 128",
        ),
        (
            "2001:db8::/x",
            "Could not parse [2001:db8::/x] - invalid prefix length",
        ),
        (
            "::ffff:1.2.3.4/96",
            "Could not parse [::ffff:1.2.3.4] - not an IPv6 address",
        ),
    ] {
        assert_eq!(Block::parse(block), Err(wrong.to_owned()), "{block}");
    }
}

#[test]
fn without_an_authorizer_and_inside_of_the_process_everything_is_allowed() {
    let acls = Acls::default();
    let rules = AuthorizerRules::default();
    let principal = Principal::default();
    let mut asker = Asker {
        principal: &principal,
        address: Some("127.0.0.1".parse().unwrap()),
        request: "CreateTopics",
    };
    let question = (Operation::Create, Resource::Cluster);
    assert!(allows(None, &acls, asker, question, Audit::Both));
    assert!(!allows(Some(&rules), &acls, asker, question, Audit::Both));
    asker.address = None;
    assert!(allows(Some(&rules), &acls, asker, question, Audit::Both));
}
