//! What the other side can do, and what is asked of it then.

use super::*;

#[tokio::test]
async fn a_server_that_refuses_the_greeting_is_greeted_in_its_own_version() {
    let server = Server::new().await;
    let mut client = client();
    client.ask(1, &server.peer(), vote(true));
    let mut serving = server.accept().await;
    let (header, _) = serving.request().await;
    assert_eq!(header.version, 4);
    // As a real server answers what it does not know: version 0, with its own range.
    let refused = [0, 35, 0, 0, 0, 1, 0, 18, 0, 0, 0, 2];
    serving.reply(header.correlation_id, false, &refused).await;
    let (header, rest) = serving.request().await;
    assert_eq!((header.api_key, header.version), (18, 2));
    assert_eq!(rest, [&[0, 13][..], b"raft-client-1"].concat());
    // Version 2: no error, Vote 0-1, no throttling.
    let body = [0, 0, 0, 0, 0, 1, 0, 52, 0, 0, 0, 1, 0, 0, 0, 0];
    serving.reply(header.correlation_id, false, &body).await;
    assert_eq!(client.found().await, (NodeId(2), false));
    // And a vote of that version cannot be a trial.
    assert_eq!(client.fault(1).await, CallFault::Unsupported);
    client.ask(2, &server.peer(), vote(false));
    let (header, _) = serving.request().await;
    assert_eq!((header.api_key, header.version), (52, 1));
    serving
        .reply(header.correlation_id, true, &granted(1))
        .await;
    assert!(is_granted(client.answer().await.1));
}

#[tokio::test]
async fn a_server_that_refuses_every_greeting_is_let_go() {
    let server = Server::new().await;
    let mut client = client();
    client.ask(1, &server.peer(), vote(true));
    let mut serving = server.accept().await;
    for _ in 0..2 {
        let (header, _) = serving.request().await;
        let refused = [0, 35, 0, 0, 0, 1, 0, 18, 0, 0, 0, 0];
        serving.reply(header.correlation_id, false, &refused).await;
    }
    serving.closed().await;
    assert_eq!(client.fault(1).await, CallFault::Garbage);
}

#[tokio::test]
async fn a_server_that_does_not_know_a_question_is_not_asked_it() {
    let server = Server::new().await;
    let mut client = client();
    client.ask(1, &server.peer(), vote(false));
    client.ask(2, &server.peer(), Ask::Versions);
    let mut serving = server.accept().await;
    serving.greet(&[(18, 0, 4), (52, 3, 9)]).await;
    assert_eq!(client.found().await, (NodeId(2), false));
    assert_eq!(client.fault(1).await, CallFault::Unsupported);
    let (header, _) = serving.request().await;
    assert_eq!((header.api_key, header.version), (18, 4));
    let body = versions(&TODAY, Some((0, 1)));
    serving.reply(header.correlation_id, false, &body).await;
    match client.answer().await {
        (2, Ok(PeerAnswer::Versions(range))) => assert_eq!(range, Some((0, 1))),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_greeting_that_is_refused_for_another_reason_is_no_answer() {
    let server = Server::new().await;
    let mut client = client();
    client.ask(1, &server.peer(), vote(true));
    let mut serving = server.accept().await;
    let (header, _) = serving.request().await;
    let mut body = versions(&TODAY, None);
    body[1] = ErrorCode::ClusterAuthorizationFailed.code() as u8;
    serving.reply(header.correlation_id, false, &body).await;
    serving.closed().await;
    assert_eq!(client.fault(1).await, CallFault::Garbage);
    let status = &client.peers.status()[0];
    let (text, _) = status.error.as_ref().unwrap();
    assert!(text.contains("CLUSTER_AUTHORIZATION_FAILED"), "{text}");
}
