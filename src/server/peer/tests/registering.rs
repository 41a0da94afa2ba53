//! This controller registers itself, beside everything else that is asked.

use kafka_protocol::protocol::{Decodable, StrBytes};

use super::*;

fn registration() -> Registration {
    let listener = m::controller_registration_request::Listener::default()
        .with_name(StrBytes::from_static_str("CONTROLLER"))
        .with_host(StrBytes::from_static_str("one"))
        .with_port(9093);
    Registration::default()
        .with_controller_id(1)
        .with_incarnation_id(Uuid::from_u128(5))
        .with_listeners(vec![listener])
}

/// The ranges of a release that takes registrations.
fn ranges() -> Vec<(i16, i16, i16)> {
    [&TODAY[..], &[(70, 0, 0)]].concat()
}

impl Client {
    async fn registered(&mut self) -> Result<ErrorCode, CallFault> {
        match self.event().await {
            Event::Registered(outcome) => outcome,
            other => panic!("{other:?}"),
        }
    }
}

async fn answer(serving: &mut Serving, code: ErrorCode) {
    let (header, mut rest) = serving.request().await;
    assert_eq!((header.api_key, header.version), (70, 0));
    // The client's name and no tagged fields stand in front of the body.
    let name = rest.split_to(2 + "controller-1".len());
    assert_eq!(&name[2..], b"controller-1");
    assert_eq!(rest.split_to(1)[0], 0);
    let asked = m::ControllerRegistrationRequest::decode(&mut rest, 0).unwrap();
    assert_eq!(asked, registration());
    let mut body = BytesMut::new();
    m::ControllerRegistrationResponse::default()
        .with_error_code(code.code())
        .encode(&mut body, 0)
        .unwrap();
    serving.reply(header.correlation_id, true, &body).await;
}

#[tokio::test]
async fn a_registration_has_a_connection_of_its_own_which_ends_with_it() {
    let server = Server::new().await;
    let mut client = client();
    // A fetch that the leader holds must not hold the registration.
    client.ask(1, &server.peer(), vote(false));
    let mut held = server.welcome().await;
    client.found().await;
    held.request().await;
    for code in [ErrorCode::None, ErrorCode::NotController] {
        client.peers.register(server.peer(), registration());
        let mut serving = server.accept().await;
        serving.greet(&ranges()).await;
        answer(&mut serving, code).await;
        assert_eq!(client.registered().await, Ok(code));
        serving.closed().await;
    }
}

#[tokio::test]
async fn a_node_that_takes_no_registrations_or_goes_away_or_talks_nonsense_is_told_apart() {
    let server = Server::new().await;
    let mut client = client();
    client.peers.register(server.peer(), registration());
    let mut old = server.welcome().await;
    old.closed().await;
    assert_eq!(client.registered().await, Err(CallFault::Unsupported));

    client.peers.register(server.peer(), registration());
    drop(server.accept().await);
    assert_eq!(client.registered().await, Err(CallFault::Closed));

    client.peers.register(server.peer(), registration());
    let mut serving = server.accept().await;
    serving.greet(&ranges()).await;
    let (header, _) = serving.request().await;
    serving.reply(header.correlation_id, true, &[1, 2, 3]).await;
    assert_eq!(client.registered().await, Err(CallFault::Garbage));
}

#[tokio::test]
async fn a_later_registration_takes_the_place_of_one_that_hangs() {
    let server = Server::new().await;
    let mut client = client();
    client.peers.register(server.peer(), registration());
    let mut hangs = server.accept().await;
    client.peers.register(server.peer(), registration());
    hangs.closed().await;
    let mut serving = server.accept().await;
    serving.greet(&ranges()).await;
    answer(&mut serving, ErrorCode::None).await;
    assert_eq!(client.registered().await, Ok(ErrorCode::None));
}
