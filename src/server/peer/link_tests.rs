//! Questions and answers without a connection.

use proptest::prelude::*;
use tokio::time::Instant;

use super::link::{FRAME_BYTES_MAX, Link, Received, frame_length};
use super::*;
use crate::node::PeerAnswer;
use crate::raft::{self, Request};
use crate::server::wire::answers::Garbage;
use crate::server::wire::asks;
use bytes::{BufMut, Bytes, BytesMut};

/// ApiVersions v4, without features, with one range.
fn ranges(key: i16, max: i16) -> Vec<u8> {
    let mut body = vec![0, 0, 2];
    body.extend(key.to_be_bytes());
    body.extend([0, 0]);
    body.extend(max.to_be_bytes());
    body.extend([0, 0, 0, 0, 0, 0]);
    body
}

fn frame(correlation: i32, flexible: bool, body: &[u8]) -> Bytes {
    let mut frame = BytesMut::new();
    frame.put_i32(correlation);
    if flexible {
        frame.put_u8(0);
    }
    frame.put_slice(body);
    frame.freeze()
}

/// A link that was greeted by a server of one API.
fn open(key: i16, max: i16) -> Link {
    let mut link = Link::greet("raft-client-1".to_owned(), Instant::now());
    let greeting = frame(0, false, &ranges(key, max));
    assert!(matches!(
        link.receive(greeting),
        Ok(Received::Greeted { .. })
    ));
    link
}

/// What a link makes of `body` as the answer to `ask` at `version`.
pub(in crate::server) fn answered(
    ask: &Ask,
    version: i16,
    body: &[u8],
) -> Result<PeerAnswer, Garbage> {
    let api = asks::api_of(ask).expect("it can be asked");
    let mut link = open(api.key, version);
    link.ask(CallId(9), ask, Instant::now())
        .expect("it is served");
    match link.receive(frame(1, version >= api.flexible_since, body))? {
        Received::Answer(call, answer) => {
            assert_eq!((call, link.waiting()), (CallId(9), 0));
            Ok(answer)
        }
        other => panic!("{other:?}"),
    }
}

fn end_quorum_epoch() -> Ask {
    Ask::Raft(Request::EndQuorumEpoch(raft::EndQuorumEpochRequest {
        cluster_id: None,
        leader_id: NodeId(1),
        epoch: crate::types::Epoch(3),
        preferred: Vec::new(),
    }))
}

#[test]
fn the_greeting_says_who_this_node_is() {
    let link = Link::greet("raft-client-1".to_owned(), Instant::now());
    let mut expected = vec![0, 0, 0, 0, 0, 18, 0, 4, 0, 0, 0, 0, 0, 13];
    expected.extend(b"raft-client-1\0\x07kraftd");
    let version = env!("CARGO_PKG_VERSION");
    expected.push(version.len() as u8 + 1);
    expected.extend(version.as_bytes());
    expected.push(0);
    expected[3] = expected.len() as u8 - 4;
    assert_eq!(link.out, expected);
    assert!(!link.is_open());
}

#[test]
fn a_question_of_an_old_version_has_the_old_header() {
    let mut link = open(54, 0);
    link.out.clear();
    link.ask(CallId(4), &end_quorum_epoch(), Instant::now())
        .unwrap();
    // Length, key, version, correlation, client id; then the body: no cluster.
    let head = [0, 54, 0, 0, 0, 0, 0, 1, 0, 13];
    assert_eq!(link.out[4..14], head);
    assert_eq!(link.out[27..29], [0xff, 0xff]);
    // And so has its answer.
    let body = [0, 0, 0, 0, 0, 0];
    let received = link.receive(frame(1, false, &body));
    let Garbage(what) = received.unwrap_err();
    assert!(what.contains("metadata partition"), "{what}");
}

#[test]
fn nothing_is_asked_before_the_greeting_is_answered() {
    let mut link = Link::greet("raft-client-1".to_owned(), Instant::now());
    let refused = link.ask(CallId(1), &end_quorum_epoch(), Instant::now());
    assert_eq!(refused, Err(CallFault::Unsupported));
}

#[test]
fn a_frame_is_as_long_as_its_length_says_and_no_longer_than_the_bound() {
    assert_eq!(frame_length(&[0, 0, 1]), Ok(None));
    assert_eq!(frame_length(&[0, 0, 1, 0, 9]), Ok(Some(256)));
    let max = FRAME_BYTES_MAX as i32;
    assert_eq!(frame_length(&max.to_be_bytes()), Ok(Some(FRAME_BYTES_MAX)));
    assert!(frame_length(&(max + 1).to_be_bytes()).is_err());
    assert!(frame_length(&[0xff; 4]).is_err());
}

proptest! {
    #[test]
    fn whatever_is_received_is_an_answer_or_garbage(
        bytes: Vec<u8>,
        correlation in 0..3_i32,
        greeted: bool,
    ) {
        let mut link = Link::greet("raft-client-1".to_owned(), Instant::now());
        if greeted {
            link = open(54, 1);
            link.ask(CallId(1), &end_quorum_epoch(), Instant::now()).unwrap();
        }
        let _ = link.receive(Bytes::from(bytes.clone()));
        let _ = link.receive(frame(correlation, true, &bytes));
    }
}
