//! A connection over an in-memory pipe with a service that does what the api key says.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::DuplexStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::*;
use crate::server::budget::FREE_BYTES;

const ECHO: i16 = 1;
const LATER: i16 = 2;
const BUSY: i16 = 3;
const ALONE: i16 = 4;
const HEAVY: i16 = 5;
const MUTED: i16 = 6;
const TURN: i16 = 7;
const LONG: i16 = 8;
/// What `LONG` is answered with.
const LONG_BYTES: usize = 700_000;
const UNKNOWN: i16 = 99;

/// Answers with the frame itself. `LATER` and `ALONE` wait until the test says so, `BUSY` is
/// refused as often as `refusals` says.
#[derive(Default)]
struct Fake {
    waiting: Mutex<HashMap<i32, oneshot::Sender<()>>>,
    started: AtomicUsize,
    refusals: usize,
}

fn answer(frame: &Bytes) -> Bytes {
    let mut bytes = (frame.len() as i32).to_be_bytes().to_vec();
    bytes.extend_from_slice(frame);
    bytes.into()
}

impl Service for Arc<Fake> {
    type Weighed = Bytes;

    fn admit(&self, header: &[u8]) -> Result<(), Closing> {
        if header[..2] == UNKNOWN.to_be_bytes() {
            return Err(Closing::Garbage("an unknown api".to_owned()));
        }
        Ok(())
    }

    fn weigh(&self, frame: Bytes) -> Result<(Weight, Bytes), Closing> {
        let heavy = frame[..2] == HEAVY.to_be_bytes();
        let weight = Weight {
            bytes: if heavy { 1 << 19 } else { frame.len() },
            alone: frame[..2] == ALONE.to_be_bytes(),
            turn: [TURN, LONG]
                .iter()
                .any(|key| frame[..2] == key.to_be_bytes())
                .then_some(Turn::Describe),
        };
        Ok((weight, frame))
    }

    fn start(&self, _peer: &mut Peer, frame: Bytes) -> Result<Started, Closing> {
        self.started.fetch_add(1, Ordering::SeqCst);
        let key = i16::from_be_bytes([frame[0], frame[1]]);
        let id = i32::from_be_bytes([frame[4], frame[5], frame[6], frame[7]]);
        Ok(match key {
            LATER | ALONE => {
                let (send, receive) = oneshot::channel();
                self.waiting.lock().unwrap().insert(id, send);
                Started::Later(Box::pin(async move {
                    let _ = receive.await;
                    Ok(answer(&frame).into())
                }))
            }
            LONG => {
                let mut long = frame.to_vec();
                long.resize(LONG_BYTES, 7);
                Started::Answer(answer(&long.into()))
            }
            MUTED => Started::Later(Box::pin(std::future::ready(Ok(Answered {
                mute_ms: 300,
                ..Answered::from(answer(&frame))
            })))),
            BUSY => {
                let mut left = self.refusals;
                Started::Busy(Box::new(move |give_up| {
                    left = left.saturating_sub(1);
                    let ready = std::future::ready(Ok(answer(&frame).into()));
                    (left == 0 || give_up).then(|| Box::pin(ready) as Later)
                }))
            }
            _ => Started::Answer(answer(&frame)),
        })
    }
}

struct Harness {
    fake: Arc<Fake>,
    client: DuplexStream,
    stop: watch::Sender<bool>,
    task: JoinHandle<Closing>,
    budget: Budget,
}

fn harness(fake: Fake, change: impl FnOnce(&mut Bounds)) -> Harness {
    let fake = Arc::new(fake);
    let (client, server) = tokio::io::duplex(1 << 16);
    let (stop, stopped) = watch::channel(false);
    let mut bounds = Bounds {
        frame_bytes_max: 1 << 20,
        idle_max: None,
        frame_time_max: Duration::from_secs(600),
        budget: Budget::new(Some(1 << 20), 1 << 20),
    };
    change(&mut bounds);
    let budget = bounds.budget.clone();
    let service = Arc::clone(&fake);
    let task = tokio::spawn(async move {
        let mut peer = Peer {
            address: "127.0.0.1:5".parse().unwrap(),
            listener: Arc::from("CONTROLLER"),
            protocol: SecurityProtocol::Plaintext,
            client: ClientInfo::default(),
        };
        serve(server, &service, &bounds, &mut peer, stopped).await
    });
    Harness {
        fake,
        client,
        stop,
        task,
        budget,
    }
}

fn request(key: i16, id: i32, body: usize) -> Vec<u8> {
    let mut bytes = ((8 + body) as i32).to_be_bytes().to_vec();
    bytes.extend(key.to_be_bytes());
    bytes.extend(0_i16.to_be_bytes());
    bytes.extend(id.to_be_bytes());
    bytes.extend(vec![7; body]);
    bytes
}

impl Harness {
    async fn send(&mut self, bytes: &[u8]) {
        self.client.write_all(bytes).await.unwrap();
    }

    /// The correlation id of the next answer.
    async fn next(&mut self) -> i32 {
        let length = self.client.read_i32().await.unwrap();
        let mut frame = vec![0; length as usize];
        self.client.read_exact(&mut frame).await.unwrap();
        i32::from_be_bytes([frame[4], frame[5], frame[6], frame[7]])
    }

    async fn started(&self, count: usize) {
        while self.fake.started.load(Ordering::SeqCst) < count {
            tokio::task::yield_now().await;
        }
    }

    fn finish(&self, id: i32) {
        let waiting = self.fake.waiting.lock().unwrap().remove(&id);
        waiting.expect("the request was started").send(()).unwrap();
    }

    async fn ended(mut self) -> Closing {
        let mut rest = Vec::new();
        self.client.read_to_end(&mut rest).await.unwrap();
        self.task.await.unwrap()
    }
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order() {
    let mut at = harness(Fake::default(), |_| {});
    at.send(
        &[
            request(LATER, 1, 0),
            request(LATER, 2, 5),
            request(ECHO, 3, 9),
        ]
        .concat(),
    )
    .await;
    at.started(3).await;
    at.finish(2);
    at.finish(1);
    assert_eq!(
        [at.next().await, at.next().await, at.next().await],
        [1, 2, 3]
    );
}

#[tokio::test]
async fn no_more_than_the_bound_are_read_ahead() {
    let mut at = harness(Fake::default(), |_| {});
    let count = IN_FLIGHT_MAX as i32 + 3;
    for id in 0..count {
        at.send(&request(LATER, id, 0)).await;
    }
    at.started(IN_FLIGHT_MAX).await;
    for id in 0..count {
        at.started((id as usize + IN_FLIGHT_MAX).min(count as usize))
            .await;
        let started = at.fake.started.load(Ordering::SeqCst);
        assert!(started <= id as usize + IN_FLIGHT_MAX);
        at.finish(id);
        assert_eq!(at.next().await, id);
    }
}

#[tokio::test]
async fn a_client_that_is_told_to_wait_is_answered_at_once_and_then_not_heard() {
    let mut at = harness(Fake::default(), |_| {});
    let began = Instant::now();
    at.send(&request(MUTED, 1, 0)).await;
    assert_eq!(at.next().await, 1);
    let answered = Instant::now();
    assert!(answered - began < Duration::from_millis(300));
    at.send(&[request(ECHO, 2, 0), request(ECHO, 3, 0)].concat())
        .await;
    assert_eq!(at.next().await, 2);
    assert!(began.elapsed() >= Duration::from_millis(300));
    assert_eq!(at.next().await, 3);
}

#[tokio::test]
async fn nothing_is_read_ahead_of_a_large_answer() {
    let mut at = harness(Fake::default(), |_| {});
    at.send(&[request(ALONE, 1, 0), request(ECHO, 2, 0)].concat())
        .await;
    at.started(1).await;
    at.finish(1);
    assert_eq!(at.next().await, 1);
    assert_eq!(at.fake.started.load(Ordering::SeqCst).max(2), 2);
    assert_eq!(at.next().await, 2);
}

#[tokio::test]
async fn a_busy_core_is_asked_again() {
    let fake = Fake {
        refusals: 3,
        ..Fake::default()
    };
    let mut at = harness(fake, |_| {});
    at.send(&[request(BUSY, 1, 0), request(ECHO, 2, 0)].concat())
        .await;
    assert_eq!([at.next().await, at.next().await], [1, 2]);
}

#[tokio::test]
async fn a_frame_arrives_in_pieces_of_one_byte() {
    let mut at = harness(Fake::default(), |_| {});
    for byte in request(ECHO, 7, 20) {
        at.send(&[byte]).await;
    }
    assert_eq!(at.next().await, 7);
}

#[tokio::test]
async fn a_large_frame_takes_from_the_budget_and_gives_back() {
    let mut at = harness(Fake::default(), |_| {});
    let all = at.budget.left_bytes();
    at.send(&request(LATER, 1, 500_000)).await;
    at.started(1).await;
    assert!(at.budget.left_bytes() <= all - 480_000);
    at.finish(1);
    assert_eq!(at.next().await, 1);
    at.send(&request(ECHO, 2, 0)).await;
    assert_eq!(at.next().await, 2);
    assert_eq!(at.budget.left_bytes(), all);
}

#[tokio::test]
async fn an_answer_that_its_reader_leaves_lying_stays_in_the_budget() {
    let mut at = harness(Fake::default(), |_| {});
    let all = at.budget.left_bytes();
    at.send(&request(ECHO, 1, 500_000)).await;
    // More than the pipe holds, of which a little is read: the rest is being written.
    let length = at.client.read_i32().await.unwrap();
    assert!(at.budget.left_bytes() <= all - 480_000);
    let mut answer = vec![0; length as usize];
    at.client.read_exact(&mut answer).await.unwrap();
    at.send(&request(ECHO, 2, 0)).await;
    assert_eq!(at.next().await, 2);
    assert_eq!(at.budget.left_bytes(), all);
}

#[tokio::test]
async fn an_announced_length_alone_takes_nothing() {
    let mut at = harness(Fake::default(), |_| {});
    let all = at.budget.left_bytes();
    at.send(&request(ECHO, 1, 1_000_000)[..1000]).await;
    let mut echo = harness(Fake::default(), |_| {});
    echo.send(&request(ECHO, 1, 0)).await;
    echo.next().await;
    assert_eq!(at.budget.left_bytes(), all);
    drop(echo);
    // Cut off in the middle: that is worth a warning.
    at.client.shutdown().await.unwrap();
    assert!(matches!(at.ended().await, Closing::Garbage(why) if why.contains("middle")));
}

#[tokio::test]
async fn an_exhausted_budget_delays_a_large_frame_and_not_a_small_one() {
    let mut at = harness(Fake::default(), |_| {});
    let mut all = Held::default();
    all.add(at.budget.raise(&all, usize::MAX).await.unwrap());
    at.send(&request(ECHO, 1, 100)).await;
    assert_eq!(at.next().await, 1);
    at.send(&request(ECHO, 2, 40_000)).await;
    at.started(1).await;
    drop(all);
    assert_eq!(at.next().await, 2);
}

#[tokio::test]
async fn a_request_that_gets_no_memory_is_given_up() {
    let mut at = harness(Fake::default(), |bounds| {
        bounds.frame_time_max = Duration::from_millis(20);
    });
    let mut all = Held::default();
    all.add(at.budget.raise(&all, usize::MAX).await.unwrap());
    at.send(&request(HEAVY, 1, 0)).await;
    assert!(matches!(at.ended().await, Closing::Garbage(why) if why.contains("no memory")));
}

/// A budget with little patience.
fn impatient() -> Budget {
    let mut budget = Budget::new(Some(1 << 20), 1 << 20);
    budget.patience = Duration::from_millis(20);
    budget
}

/// Another connection with the same budget.
fn beside(budget: &Budget) -> Harness {
    harness(Fake::default(), |bounds| bounds.budget = budget.clone())
}

fn assert_garbage(closing: &Closing, word: &str) {
    assert!(
        matches!(closing, Closing::Garbage(why) if why.contains(word)),
        "{closing:?}"
    );
}

#[tokio::test]
async fn a_frame_whose_rest_does_not_come_gives_way_to_those_that_wait_for_its_memory() {
    let budget = impatient();
    let mut stalled = beside(&budget);
    stalled.send(&request(ECHO, 1, 1_000_000)[..999_000]).await;
    while budget.left_bytes() > 100_000 {
        tokio::task::yield_now().await;
    }
    let mut other = beside(&budget);
    other.send(&request(ECHO, 2, 500_000)).await;
    assert_eq!(other.next().await, 2);
    let closing = stalled.ended().await;
    assert_garbage(&closing, "bytes came");
}

#[tokio::test]
async fn an_answer_that_is_not_read_gives_way_to_those_that_wait_for_its_memory() {
    let budget = impatient();
    let mut stalled = beside(&budget);
    stalled.send(&request(ECHO, 1, 700_000)).await;
    stalled.started(1).await;
    let mut other = beside(&budget);
    other.send(&request(ECHO, 2, 500_000)).await;
    assert_eq!(other.next().await, 2);
    let closing = stalled.task.await.unwrap();
    assert_garbage(&closing, "not read");
}

/// The permit of a turn is given to whoever is the next, whether it looks or not.
#[tokio::test]
async fn who_waits_for_its_peer_to_read_leaves_its_turn_to_others() {
    let budget = impatient();
    let turn = budget.turn(Turn::Describe).await.unwrap();
    let mut stalled = beside(&budget);
    stalled.send(&request(LATER, 1, 100_000)).await;
    stalled.started(1).await;
    stalled.send(&request(TURN, 2, 0)).await;
    let mut other = beside(&budget);
    other.send(&request(TURN, 3, 0)).await;
    // More than the pipe holds, and nobody reads it.
    stalled.finish(1);
    let mut first = [0];
    stalled.client.read_exact(&mut first).await.unwrap();
    drop(turn);
    assert_eq!(other.next().await, 3);
    assert_eq!(stalled.fake.started.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn frames_that_are_whole_and_wait_for_each_others_memory_do_not_wait_for_ever() {
    let budget = impatient();
    let mut both = [beside(&budget), beside(&budget)];
    for at in &mut both {
        // It takes 480,000 bytes to come, and 524,288 to be read.
        at.send(&request(HEAVY, 1, 480_000)).await;
    }
    let mut answered = 0;
    for mut at in both {
        answered += i32::from(at.client.read_i32().await.is_ok());
    }
    assert!(answered > 0);
}

#[tokio::test]
async fn an_answer_that_is_larger_than_its_request_takes_memory_before_the_next_is_worked_out() {
    let budget = impatient();
    let all = budget.left_bytes();
    let mut stalled = beside(&budget);
    stalled.send(&request(LONG, 1, 0)).await;
    let mut first = [0];
    stalled.client.read_exact(&mut first).await.unwrap();
    assert!(budget.left_bytes() <= all - LONG_BYTES + FREE_BYTES);
    let mut other = beside(&budget);
    other.send(&request(LONG, 2, 0)).await;
    assert_eq!(other.next().await, 2);
    let closing = stalled.task.await.unwrap();
    assert_garbage(&closing, "not read");
}

#[tokio::test]
async fn who_holds_memory_that_nobody_waits_for_may_take_its_time() {
    let budget = impatient();
    let mut slow = beside(&budget);
    let bytes = request(ECHO, 1, 500_000);
    slow.send(&bytes[..400_000]).await;
    timeout(Duration::from_millis(100), slow.client.read_i32())
        .await
        .unwrap_err();
    let mut other = beside(&budget);
    other.send(&request(ECHO, 2, 300_000)).await;
    assert_eq!(other.next().await, 2);
    slow.send(&bytes[400_000..]).await;
    assert_eq!(slow.next().await, 1);
}

#[tokio::test]
async fn requests_that_are_much_work_take_turns_and_others_pass_them() {
    let budget = impatient();
    let turn = budget.turn(Turn::Describe).await.unwrap();
    let (mut heavy, mut light) = (beside(&budget), beside(&budget));
    heavy.send(&request(TURN, 1, 0)).await;
    light.send(&request(ECHO, 2, 0)).await;
    assert_eq!(light.next().await, 2);
    assert_eq!(heavy.fake.started.load(Ordering::SeqCst), 0);
    drop(turn);
    assert_eq!(heavy.next().await, 1);
    // It gave its turn back.
    heavy.send(&request(TURN, 3, 0)).await;
    assert_eq!(heavy.next().await, 3);
}

#[tokio::test]
async fn nothing_is_worked_out_for_a_peer_that_went_away_while_it_waited_for_its_turn() {
    let budget = impatient();
    let _turn = budget.turn(Turn::Describe).await.unwrap();
    let mut at = beside(&budget);
    at.send(&request(TURN, 1, 0)).await;
    at.client.shutdown().await.unwrap();
    let fake = Arc::clone(&at.fake);
    assert!(matches!(at.ended().await, Closing::Quiet(why) if why.contains("peer closed")));
    assert_eq!(fake.started.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn garbage_ends_the_connection_and_is_named() {
    for (bytes, name) in [
        (vec![0xff; 4], "a frame length of -1"),
        (
            vec![0x16, 3, 1, 0, 5, 1],
            "a TLS hello on a plaintext listener",
        ),
        (vec![0x7f, 0xff, 0xff, 0xff], "a frame of 2147483647 bytes"),
        (
            request(UNKNOWN, 1, 1_000_000)[..12].to_vec(),
            "an unknown api",
        ),
    ] {
        let mut at = harness(Fake::default(), |_| {});
        at.send(&bytes).await;
        let closing = at.ended().await;
        assert_garbage(&closing, name);
    }
}

#[tokio::test]
async fn answers_under_way_are_sent_before_a_stop() {
    let mut at = harness(Fake::default(), |_| {});
    at.send(&request(LATER, 1, 0)).await;
    at.started(1).await;
    at.stop.send(true).unwrap();
    at.send(&request(ECHO, 2, 0)).await;
    at.finish(1);
    assert_eq!(at.next().await, 1);
    assert_eq!(at.fake.started.load(Ordering::SeqCst), 1);
    assert!(matches!(at.ended().await, Closing::Quiet(_)));
}

#[tokio::test]
async fn an_idle_connection_is_closed_and_one_with_work_is_not() {
    let short = Duration::from_millis(20);
    let mut working = harness(Fake::default(), |bounds| bounds.idle_max = Some(short));
    working.send(&request(LATER, 1, 0)).await;
    working.started(1).await;
    let idle = harness(Fake::default(), |bounds| bounds.idle_max = Some(short));
    assert!(matches!(idle.ended().await, Closing::Quiet(why) if why.contains("idle")));
    working.finish(1);
    assert_eq!(working.next().await, 1);
}

#[tokio::test]
async fn a_frame_that_does_not_end_is_closed() {
    let mut at = harness(Fake::default(), |bounds| {
        bounds.frame_time_max = Duration::from_millis(20);
    });
    at.send(&request(ECHO, 1, 50)[..30]).await;
    assert!(matches!(at.ended().await, Closing::Garbage(why) if why.contains("not complete")));
}

#[tokio::test]
async fn a_peer_that_goes_away_while_a_request_waits_ends_the_connection() {
    let mut at = harness(Fake::default(), |_| {});
    at.send(&request(ALONE, 1, 0)).await;
    at.started(1).await;
    at.client.shutdown().await.unwrap();
    assert!(matches!(at.ended().await, Closing::Quiet(why) if why.contains("peer closed")));
}

#[test]
fn what_a_peer_calls_itself_stays_on_one_short_line() {
    let client = ClientInfo {
        client_id: Some(format!("a\nb{}", "x".repeat(1000))),
        software: Some(("librdkafka".to_owned(), "2.1\u{7}".to_owned())),
    };
    let shown = client.to_string();
    assert!(shown.starts_with("client id a\\nbxxx"), "{shown}");
    assert!(shown.ends_with("xxx..., librdkafka 2.1\\u{7}"), "{shown}");
    assert!(shown.len() < 200);
}
