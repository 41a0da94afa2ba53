//! Connections that stay, go, and move.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

#[tokio::test]
async fn a_kept_connection_is_there_before_anybody_asks_and_comes_back() {
    let server = Server::new().await;
    let mut client = client();
    client.peers.keep_open(&[server.peer()]);
    let serving = server.welcome().await;
    assert_eq!(client.found().await, (NodeId(2), true));
    drop(serving);
    assert_eq!(client.lost().await, NodeId(2));
    let mut serving = server.welcome().await;
    client.found().await;
    // A question goes over it.
    client.ask(1, &server.peer(), vote(false));
    serving.grant().await;
    assert!(is_granted(client.answer().await.1));
}

#[tokio::test]
async fn a_node_that_stays_away_is_lost_once_and_found_when_it_is_back() {
    let server = Server::new().await;
    let (peer, address) = (server.peer(), server.address);
    let tried = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&tried);
    let resolve: Resolve = Arc::new(move |_, _| {
        count.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move { Ok(vec![address]) })
    });
    drop(server);
    let mut client = Client::new(settings(), resolve);
    client.peers.keep_open(&[peer]);
    assert_eq!(client.lost().await, NodeId(2));
    soon(async {
        while tried.load(Ordering::Relaxed) < 3 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    client.assert_quiet();
    let listener = TcpListener::bind(address).await.unwrap();
    let server = Server { listener, address };
    server.welcome().await;
    client.found().await;
}

#[tokio::test]
async fn after_a_hang_up_nothing_of_before_is_answered_and_the_next_question_connects_anew() {
    let server = Server::new().await;
    let mut client = client();
    client.ask(1, &server.peer(), vote(false));
    let mut serving = server.welcome().await;
    client.found().await;
    serving.request().await;
    client.peers.hangup(TWO);
    client.ask(2, &server.peer(), vote(false));
    serving.closed().await;
    let mut serving = server.welcome().await;
    serving.grant().await;
    client.found().await;
    let (call, outcome) = client.answer().await;
    assert_eq!(call, 2);
    assert!(is_granted(outcome));
    client.assert_quiet();
}

#[tokio::test]
async fn a_hang_up_while_connecting_calls_the_connection_off() {
    // Nobody accepts: the greeting is never answered.
    let server = Server::new().await;
    let mut client = client();
    client.ask(1, &server.peer(), vote(false));
    let mut serving = server.accept().await;
    serving.request().await;
    client.peers.hangup(TWO);
    serving.closed().await;
    client.assert_quiet();
    // Without a question and nothing to keep, nobody connects again: the next is for a question.
    client.ask(2, &server.peer(), vote(false));
    server.welcome().await.grant().await;
    client.found().await;
    assert_eq!(client.answer().await.0, 2);
}

#[tokio::test]
async fn an_idle_connection_is_closed_unless_it_is_kept() {
    let server = Server::new().await;
    let settings = PeerSettings {
        idle_max: Some(Duration::from_millis(30)),
        ..settings()
    };
    let mut client = Client::new(settings, dial::system());
    client.ask(1, &server.peer(), vote(false));
    let mut serving = server.welcome().await;
    serving.grant().await;
    client.found().await;
    assert!(is_granted(client.answer().await.1));
    serving.closed().await;
    client.assert_quiet();

    client.peers.keep_open(&[server.peer()]);
    let mut serving = server.welcome().await;
    client.found().await;
    let mut byte = [0];
    let silence = timeout(Duration::from_millis(200), serving.stream.read(&mut byte));
    assert!(silence.await.is_err(), "it is still open");
    client.peers.keep_open(&[]);
    serving.closed().await;
    client.assert_quiet();
}

#[tokio::test]
async fn a_name_is_resolved_anew_for_every_connection() {
    let (first, second) = (Server::new().await, Server::new().await);
    let addresses = [first.address, second.address];
    let calls = AtomicUsize::new(0);
    let resolve: Resolve = Arc::new(move |host, _| {
        assert_eq!(host, "kafka.example");
        let address = addresses[calls.fetch_add(1, Ordering::Relaxed)];
        Box::pin(async move { Ok(vec![address]) })
    });
    let mut client = Client::new(settings(), resolve);
    let peer = peer_at("kafka.example", 9093);
    client.ask(1, &peer, vote(false));
    let mut serving = first.welcome().await;
    serving.grant().await;
    client.found().await;
    assert!(is_granted(client.answer().await.1));
    drop(serving);
    client.lost().await;
    client.ask(2, &peer, vote(false));
    second.welcome().await.grant().await;
    client.found().await;
    assert!(is_granted(client.answer().await.1));
    let status = &client.peers.status()[0];
    assert_eq!(status.addresses, [second.address]);
    assert_eq!(status.host, "kafka.example");
}

#[tokio::test]
async fn every_address_of_a_name_is_tried() {
    let (gone, server) = (Server::new().await, Server::new().await);
    let addresses = vec![gone.address, server.address];
    drop(gone);
    let resolve: Resolve = Arc::new(move |_, _| {
        let addresses = addresses.clone();
        Box::pin(async move { Ok(addresses) })
    });
    let mut client = Client::new(settings(), resolve);
    client.ask(1, &peer_at("two.example", 9093), vote(false));
    let mut serving = server.welcome().await;
    serving.grant().await;
    client.found().await;
    assert!(is_granted(client.answer().await.1));
    let status = &client.peers.status()[0];
    assert_eq!(status.connected, Some(server.address));
    assert_eq!(status.addresses.len(), 2);
}

#[tokio::test]
async fn a_node_that_moved_is_asked_at_its_new_address() {
    let (old, new) = (Server::new().await, Server::new().await);
    let mut client = client();
    client.peers.keep_open(&[old.peer()]);
    let mut serving = old.welcome().await;
    client.found().await;
    client.ask(1, &new.peer(), vote(false));
    serving.closed().await;
    let mut moved = new.welcome().await;
    client.found().await;
    moved.grant().await;
    assert_eq!(client.answer().await.0, 1);
    // To be kept there as well.
    client.peers.keep_open(&[new.peer()]);
    client.ask(2, &new.peer(), vote(false));
    moved.grant().await;
    assert_eq!(client.answer().await.0, 2);
    // A new place to be kept moves a connection that nobody waits on.
    client.peers.keep_open(&[old.peer()]);
    moved.closed().await;
    let _serving = old.welcome().await;
    client.found().await;
    client.assert_quiet();
}

#[tokio::test]
async fn dropping_the_peers_closes_every_connection() {
    let server = Server::new().await;
    let mut client = client();
    client.peers.keep_open(&[server.peer()]);
    let mut serving = server.welcome().await;
    client.found().await;
    drop(client);
    serving.closed().await;
}
