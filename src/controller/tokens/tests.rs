//! What the rules of tokens answer, and what the sweep removes.

use kafka_protocol::messages as m;
use kafka_protocol::messages::create_delegation_token_request::CreatableRenewers;
use kafka_protocol::messages::describe_delegation_token_request::DescribeDelegationTokenOwner;
use kafka_protocol::protocol::StrBytes;

use super::*;
use crate::controller::testing::World;
use crate::controller::{Request, periodic};
use crate::types::ErrorCode as Code;

/// Wall time is the monotonic clock of these tests.
fn world() -> World {
    let mut world = World::at_level(33);
    world.settings.tokens.secret = TokenSecret::new("not-a-secret");
    ask_as(&mut world, "alice");
    world
}

fn ask_as(world: &mut World, name: &str) {
    world.context.forwarded = true;
    world.context.principal.name = name.into();
}

fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.into())
}

fn renewer(kind: &str, name: &str) -> CreatableRenewers {
    CreatableRenewers::default()
        .with_principal_type(text(kind))
        .with_principal_name(text(name))
}

fn asked(lifetime_ms: i64, renewers: &[&str]) -> m::CreateDelegationTokenRequest {
    m::CreateDelegationTokenRequest::default()
        .with_owner_principal_type(None)
        .with_owner_principal_name(None)
        .with_max_lifetime_ms(lifetime_ms)
        .with_renewers(renewers.iter().map(|it| renewer("User", it)).collect())
}

fn create(
    world: &mut World,
    request: m::CreateDelegationTokenRequest,
) -> m::CreateDelegationTokenResponse {
    match world
        .run(3, Request::CreateDelegationToken(request))
        .unwrap()
    {
        Reply::CreateDelegationToken(reply) => reply,
        other => panic!("not expected: {other:?}"),
    }
}

fn renew(world: &mut World, hmac: &[u8], period: i64) -> (Code, i64) {
    let request = m::RenewDelegationTokenRequest::default()
        .with_hmac(hmac.to_vec().into())
        .with_renew_period_ms(period);
    match world
        .run(2, Request::RenewDelegationToken(request))
        .unwrap()
    {
        Reply::RenewDelegationToken(it) => (code(it.error_code), it.expiry_timestamp_ms),
        other => panic!("not expected: {other:?}"),
    }
}

fn expire(world: &mut World, hmac: &[u8], period: i64) -> (Code, i64) {
    let request = m::ExpireDelegationTokenRequest::default()
        .with_hmac(hmac.to_vec().into())
        .with_expiry_time_period_ms(period);
    match world
        .run(2, Request::ExpireDelegationToken(request))
        .unwrap()
    {
        Reply::ExpireDelegationToken(it) => (code(it.error_code), it.expiry_timestamp_ms),
        other => panic!("not expected: {other:?}"),
    }
}

fn code(code: i16) -> Code {
    Code::of(code)
}

const DAY: i64 = 86_400_000;

#[test]
fn a_token_lives_a_day_and_can_be_renewed_for_a_week() {
    let mut world = world();
    world.now_ms = 1_000;
    let made = create(&mut world, asked(0, &["bob"]));
    assert_eq!(code(made.error_code), Code::None);
    assert_eq!(made.issue_timestamp_ms, 1_000);
    assert_eq!(made.expiry_timestamp_ms, 1_000 + DAY);
    assert_eq!(made.max_timestamp_ms, 1_000 + 7 * DAY);
    assert_eq!(made.hmac.len(), 64);
    let (kind, name) = (&*made.token_requester_principal_type, &*made.principal_name);
    assert_eq!((kind, name), ("User", "alice"));
    let token = world.image.tokens().get(&*made.token_id).unwrap();
    assert_eq!(
        (&*token.owner, &*token.requester),
        ("User:alice", "User:alice")
    );
    assert_eq!(token.renewers, ["User:bob"]);

    ask_as(&mut world, "bob");
    world.now_ms = 2_000;
    assert_eq!(renew(&mut world, &made.hmac, -1), (Code::None, 2_000 + DAY));
    assert_eq!(renew(&mut world, &made.hmac, 5), (Code::None, 2_005));
    assert_eq!(
        renew(&mut world, &made.hmac, 9 * DAY),
        (Code::None, 2_000 + DAY)
    );
    ask_as(&mut world, "carol");
    let refused = (Code::DelegationTokenOwnerMismatch, 0);
    assert_eq!(renew(&mut world, &made.hmac, 5), refused);
    assert_eq!(expire(&mut world, &made.hmac, -1), refused);

    ask_as(&mut world, "alice");
    world.now_ms = 3_000;
    assert_eq!(expire(&mut world, &made.hmac, 7), (Code::None, 3_007));
    world.now_ms = 3_008;
    let expired = (Code::DelegationTokenExpired, 0);
    assert_eq!(renew(&mut world, &made.hmac, 5), expired);
    assert_eq!(expire(&mut world, &made.hmac, 5), expired);
    assert_eq!(expire(&mut world, &made.hmac, -1), (Code::None, 3_008));
    assert!(world.image.tokens().is_empty());
    let gone = (Code::DelegationTokenNotFound, 0);
    assert_eq!(expire(&mut world, &made.hmac, -1), gone);
    assert_eq!(renew(&mut world, b"short", 1), gone);
}

#[test]
fn a_token_may_be_asked_for_somebody_else_and_for_less_time() {
    let mut world = world();
    let mut request = asked(10, &[]);
    request.owner_principal_type = Some(text("User"));
    request.owner_principal_name = Some(text("dave"));
    let made = create(&mut world, request.clone());
    assert_eq!((made.expiry_timestamp_ms, made.max_timestamp_ms), (10, 10));
    let names = (&*made.principal_name, &*made.token_requester_principal_name);
    assert_eq!(names, ("dave", "alice"));
    // Whoever asked for it is not its owner.
    let refused = (Code::DelegationTokenOwnerMismatch, 0);
    assert_eq!(renew(&mut world, &made.hmac, 5), refused);
    request.owner_principal_type = None;
    let error = world
        .ask(3, Request::CreateDelegationToken(request))
        .unwrap_err();
    assert_eq!(error.code, Code::UnknownServerError);
}

#[test]
fn tokens_are_refused_in_the_order_of_java() {
    let mut world = world();
    let mut request = asked(0, &[]);
    request.renewers = vec![renewer("User", "bob"), renewer("Group", "all")];
    let reply = create(&mut world, request.clone());
    let refused = (code(reply.error_code), reply.issue_timestamp_ms);
    assert_eq!(refused, (Code::InvalidPrincipalType, 0));

    world.feature("metadata.version", 13);
    assert_eq!(
        code(create(&mut world, request.clone()).error_code),
        Code::UnsupportedVersion
    );
    assert_eq!(
        renew(&mut world, &[0; 64], 1),
        (Code::UnsupportedVersion, 0)
    );

    world.settings.tokens.secret = TokenSecret::new("");
    let disabled = Code::DelegationTokenAuthDisabled;
    assert_eq!(
        code(create(&mut world, request.clone()).error_code),
        disabled
    );
    assert_eq!(renew(&mut world, &[0; 64], 1), (disabled, 0));
    assert_eq!(expire(&mut world, &[0; 64], 1), (disabled, 0));

    let not_allowed = Code::DelegationTokenRequestNotAllowed;
    for (forwarded, by_token) in [(false, false), (true, true)] {
        world.context.forwarded = forwarded;
        world.context.principal.token_authenticated = by_token;
        let reply = create(&mut world, request.clone());
        let refused = (code(reply.error_code), reply.issue_timestamp_ms);
        assert_eq!(refused, (not_allowed, -1));
        assert_eq!(renew(&mut world, &[0; 64], 1), (not_allowed, -1));
        assert_eq!(expire(&mut world, &[0; 64], 1), (not_allowed, -1));
    }
}

/// Java's `ControllerApis.allowTokenRequests` (4.4.0), for every listener that there can be.
#[test]
fn who_may_ask_is_told_by_the_protocol_of_its_own_listener() {
    use SecurityProtocol::{Plaintext, SaslPlaintext, SaslSsl, Ssl};
    let nobody = Principal::default();
    let alice = Principal {
        name: "alice".into(),
        ..Principal::default()
    };
    for (protocol, direct_nobody, direct_alice) in [
        (Plaintext, false, false),
        (Ssl, false, true),
        (SaslPlaintext, true, true),
        (SaslSsl, true, true),
    ] {
        for (principal, direct) in [(&nobody, direct_nobody), (&alice, direct_alice)] {
            let asked = |forwarded, token_authenticated| {
                let mut principal = principal.clone();
                principal.token_authenticated = token_authenticated;
                may_ask(&Context {
                    principal,
                    protocol,
                    forwarded,
                    ..Context::default()
                })
            };
            assert_eq!(asked(false, false), direct, "{protocol:?} {principal}");
            assert!(asked(true, false), "{protocol:?} {principal}");
            assert!(!asked(true, true) && !asked(false, true), "{protocol:?}");
        }
    }
}

#[test]
fn the_last_of_very_many_owners_is_shown_its_tokens() {
    let mut world = world();
    for name in ["carol", "alice"] {
        ask_as(&mut world, name);
        create(&mut world, asked(0, &["bob"]));
    }
    let owner = |name: String| {
        DescribeDelegationTokenOwner::default()
            .with_principal_type(text("User"))
            .with_principal_name(text(&name))
    };
    let shown = |last: &str| {
        let many = (0..100_000).map(|number| format!("nobody-{number}"));
        let owners = many.chain([last.to_owned()]).map(owner).collect();
        let request = m::DescribeDelegationTokenRequest::default().with_owners(Some(owners));
        let (settings, context) = (&world.settings, &world.context);
        let reply = describe(&world.image, settings, 3, context, &request, |_, _| true);
        reply.unwrap().tokens.len()
    };
    assert_eq!(["nobody", "carol", "bob"].map(shown), [0, 1, 2]);
}

#[test]
fn tokens_that_take_too_much_to_tell_are_refused() {
    let mut world = world();
    let long = "n".repeat(30_000);
    let add = |world: &mut World, count: usize| {
        for _ in 0..count {
            create(world, asked(0, &[&long]));
        }
        let request = m::DescribeDelegationTokenRequest::default().with_owners(None);
        let (settings, context) = (&world.settings, &world.context);
        describe(&world.image, settings, 3, context, &request, |_, _| true)
    };
    assert_eq!(add(&mut world, 1_100).unwrap().tokens.len(), 1_100);
    let refused = add(&mut world, 20).unwrap_err();
    assert_eq!(refused.code, Code::PolicyViolation);
}

#[test]
fn dead_tokens_are_swept_out_each_hour_some_at_a_time() {
    let mut world = world();
    world.settings.idle_interval_ms = 0;
    world.soft = Soft::new(
        &world.settings,
        &world.image,
        crate::types::Now::default(),
        1,
    );
    for index in 0..2_500 {
        create(
            &mut world,
            asked(if index % 10 == 0 { DAY } else { 1 }, &[]),
        );
    }
    let mut swept = Vec::new();
    world.now_ms = 3_600_000;
    while periodic::next_due(&world.soft).0 <= world.now_ms {
        world.soft.fencing_due = Instant::NEVER;
        let records = world.rule(periodic::run);
        for record in &records {
            world.replay(record);
        }
        swept.push(records.len());
    }
    assert_eq!(swept.iter().sum::<usize>(), 2_250);
    assert_eq!(swept.iter().max(), Some(&REMOVED_AT_ONCE));
    assert_eq!(world.image.tokens().len(), 250);
    assert_eq!(world.soft.tokens.due.0, 7_200_000);
}

#[test]
fn tokens_are_shown_to_those_whom_they_concern() {
    let mut world = world();
    let made = create(&mut world, asked(0, &["bob"]));
    ask_as(&mut world, "carol");
    create(&mut world, asked(0, &[]));
    let shown = |world: &World, allowed: bool, owners: Option<&[&str]>| {
        let owners = owners.map(|owners| {
            let owner = |name: &&str| {
                DescribeDelegationTokenOwner::default()
                    .with_principal_type(text("User"))
                    .with_principal_name(text(name))
            };
            owners.iter().map(owner).collect()
        });
        let request = m::DescribeDelegationTokenRequest::default().with_owners(owners);
        let (settings, context) = (&world.settings, &world.context);
        let reply = describe(&world.image, settings, 3, context, &request, |_, _| allowed);
        let reply = reply.unwrap();
        (code(reply.error_code), reply.tokens)
    };
    assert_eq!(shown(&world, true, None).1.len(), 2);
    assert_eq!(shown(&world, false, None).1.len(), 1);
    assert_eq!(shown(&world, true, Some(&[])).1.len(), 0);
    ask_as(&mut world, "bob");
    let (none, tokens) = shown(&world, false, None);
    assert_eq!((none, tokens.len()), (Code::None, 1));
    assert_eq!(tokens[0].hmac, made.hmac);
    assert_eq!(&*tokens[0].renewers[0].principal_name, "bob");
    assert_eq!(shown(&world, false, Some(&["carol"])).1.len(), 0);
    world.context.forwarded = false;
    assert_eq!(
        shown(&world, false, None).0,
        Code::DelegationTokenRequestNotAllowed
    );
}

#[test]
fn hmacs_are_those_of_java() {
    // HMAC-SHA-512 of the id under the key, by another implementation.
    let secret = TokenSecret::new("not-a-secret").unwrap();
    let hmac = hmacs::hmac(&secret, "Nq2HcTOsRmqLGbUvpiCxzg");
    let hex: String = hmac.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(
        hex,
        "78e21a6651e71ed098bc44bd4263190138960a9dca132d00ebada6d1e816724a\
         71af4d10025084bbfeaf541bd2705009acf9b638714fb8bd291614677cd9ef1e"
    );
    assert_eq!(format!("{secret:?}"), "[hidden]");
}
