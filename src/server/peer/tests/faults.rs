//! Everything that another node can do wrong.

use super::*;

/// A port that nobody listens on.
async fn refusing() -> Peer {
    let server = Server::new().await;
    server.peer()
}

#[tokio::test]
async fn a_refused_connection_is_closed_and_the_node_is_lost() {
    let peer = refusing().await;
    let mut client = client();
    for call in 1..=2 {
        client.ask(call, &peer, vote(true));
        assert_eq!(client.fault(call).await, CallFault::Closed);
        assert_eq!(client.lost().await, NodeId(2));
    }
    let status = &client.peers.status()[0];
    assert!(status.error.as_ref().unwrap().0.contains("refused"));
    assert!(status.connected.is_none() && status.seen.is_none());
}

#[tokio::test]
async fn a_connection_that_is_closed_in_the_middle_fails_every_question_and_loses_the_node_once() {
    let server = Server::new().await;
    let mut client = client();
    client.ask(1, &server.peer(), vote(false));
    client.ask(2, &server.peer(), vote(false));
    let mut serving = server.welcome().await;
    client.found().await;
    serving.request().await;
    let (header, _) = serving.request().await;
    // Half an answer.
    serving.write(&[0, 0, 0, 40]).await;
    serving.write(&header.correlation_id.to_be_bytes()).await;
    drop(serving);
    assert_eq!(client.fault(1).await, CallFault::Closed);
    assert_eq!(client.fault(2).await, CallFault::Closed);
    assert_eq!(client.lost().await, NodeId(2));
    // The next question connects anew.
    client.ask(3, &server.peer(), vote(false));
    server.welcome().await.grant().await;
    client.found().await;
    assert!(is_granted(client.answer().await.1));
}

#[tokio::test]
async fn a_connection_that_is_closed_before_the_greeting_is_a_lost_node() {
    let server = Server::new().await;
    let mut client = client();
    client.ask(1, &server.peer(), vote(false));
    drop(server.accept().await);
    assert_eq!(client.fault(1).await, CallFault::Closed);
    assert_eq!(client.lost().await, NodeId(2));
}

#[tokio::test]
async fn a_server_that_never_answers_is_silent_and_let_go() {
    let server = Server::new().await;
    let mut client = Client::new(impatient(), dial::system());
    client.ask(1, &server.peer(), vote(false));
    let mut serving = server.welcome().await;
    client.found().await;
    serving.request().await;
    serving.closed().await;
    assert_eq!(client.fault(1).await, CallFault::Silent);
    // And one that does not even greet.
    client.ask(2, &server.peer(), vote(false));
    let mut serving = server.accept().await;
    serving.closed().await;
    assert_eq!(client.fault(2).await, CallFault::Silent);
    client.assert_quiet();
}

#[tokio::test]
async fn a_server_that_answers_byte_by_byte_is_understood() {
    let server = Server::new().await;
    let mut client = client();
    client.ask(1, &server.peer(), vote(false));
    let mut serving = server.welcome().await;
    let (header, _) = serving.request().await;
    let body = granted(2);
    let mut frame = BytesMut::new();
    frame.put_i32(5 + body.len() as i32);
    frame.put_i32(header.correlation_id);
    frame.put_u8(0);
    frame.put_slice(&body);
    serving.stream.set_nodelay(true).unwrap();
    for byte in frame {
        serving.write(&[byte]).await;
        tokio::task::yield_now().await;
    }
    client.found().await;
    assert!(is_granted(client.answer().await.1));
}

/// Sends `bytes` (with the correlation of the question if `None` stands for it) instead of an
/// answer and expects the connection to end.
async fn garbage(frame: impl Fn(i32) -> Vec<u8>) {
    let server = Server::new().await;
    let mut client = client();
    client.ask(1, &server.peer(), vote(false));
    client.ask(2, &server.peer(), vote(false));
    let mut serving = server.welcome().await;
    client.found().await;
    let (header, _) = serving.request().await;
    serving.request().await;
    serving.write(&frame(header.correlation_id)).await;
    serving.closed().await;
    assert_eq!(client.fault(1).await, CallFault::Garbage);
    assert_eq!(client.fault(2).await, CallFault::Garbage);
    client.assert_quiet();
}

fn framed(correlation: i32, rest: &[u8]) -> Vec<u8> {
    let mut frame = (4 + rest.len() as i32).to_be_bytes().to_vec();
    frame.extend(correlation.to_be_bytes());
    frame.extend(rest);
    frame
}

#[tokio::test]
async fn an_answer_to_nothing_ends_the_connection() {
    garbage(|correlation| framed(correlation + 7, &granted(2))).await;
}

#[tokio::test]
async fn an_answer_of_another_shape_ends_the_connection() {
    // Topics: 2^32 - 2 of them.
    garbage(|correlation| framed(correlation, &[0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x0f])).await;
    garbage(|correlation| framed(correlation, b"HTTP/1.1 400 Bad Request")).await;
    garbage(|correlation| framed(correlation, &[])).await;
}

#[tokio::test]
async fn a_frame_that_cannot_be_an_answer_ends_the_connection_before_it_is_read() {
    garbage(|_| i32::MAX.to_be_bytes().to_vec()).await;
    garbage(|_| (-1_i32).to_be_bytes().to_vec()).await;
    garbage(|_| vec![0, 0, 0, 3, 1, 2, 3]).await;
    // The greeting of TLS.
    garbage(|_| vec![0x15, 0x03, 0x03, 0x00, 0x02, 0x02, 0x46]).await;
}

#[tokio::test]
async fn an_answer_without_a_question_ends_the_connection() {
    let server = Server::new().await;
    let mut client = client();
    client.peers.keep_open(&[server.peer()]);
    let mut serving = server.welcome().await;
    client.found().await;
    serving.reply(0, true, &granted(2)).await;
    serving.closed().await;
    // It is to be kept open, so that it comes back.
    server.welcome().await;
    client.found().await;
}

#[tokio::test]
async fn a_name_without_an_address_and_one_that_fails_are_silent() {
    let resolve: Resolve = Arc::new(|host, _| {
        Box::pin(async move {
            match &*host {
                "empty" => Ok(vec![]),
                "bug" => panic!("as the test wants"),
                _ => Err(std::io::Error::other("no such name")),
            }
        })
    });
    let mut client = Client::new(settings(), resolve);
    for (call, host) in [(1, "empty"), (2, "unknown"), (3, "bug")] {
        client.ask(call, &peer_at(host, 9093), vote(false));
        assert_eq!(client.fault(call).await, CallFault::Silent);
        let status = &client.peers.status()[0];
        assert_eq!((&*status.host, status.port), (host, 9093));
        assert!(status.addresses.is_empty());
    }
    client.assert_quiet();
}

#[tokio::test]
async fn a_resolver_that_hangs_hangs_once_however_often_is_asked() {
    let asked = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let resolve: Resolve = Arc::new(move |_, _| {
        count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Box::pin(std::future::pending())
    });
    let mut client = Client::new(impatient(), resolve);
    // Kept, so that the line lives on between the questions.
    client.peers.keep_open(&[peer_at("stuck", 1)]);
    for call in 1..=3 {
        client.ask(call, &peer_at("stuck", 1), vote(false));
        assert_eq!(client.fault(call).await, CallFault::Silent);
    }
    assert_eq!(asked.load(std::sync::atomic::Ordering::Relaxed), 1);
}
