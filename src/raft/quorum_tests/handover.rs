//! A leader that stops, and its last word that comes too late for somebody.

use super::*;

impl Quorum {
    /// Who is the first successor in these last words of a leader.
    fn preferred_of(&self, words: &[(u64, u64)]) -> i32 {
        let first = words.iter().find_map(|at| match &self.queue[at].1 {
            Happening::Request(_, _, Ask::Raft(Request::EndQuorumEpoch(end))) => {
                end.preferred.first()
            }
            _ => None,
        });
        first.expect("a leader knows its followers").id.0
    }
}

/// When the last words of a leader arrive.
fn last_words(quorum: &Quorum) -> Vec<(u64, u64)> {
    let words = quorum.queue.iter().filter(|(_, (_, what))| {
        matches!(
            what,
            Happening::Request(_, _, Ask::Raft(Request::EndQuorumEpoch(_)))
        )
    });
    words.map(|(at, _)| *at).collect()
}

/// The first of the successors asks before the others know why.
#[test]
fn a_successor_that_is_too_early_asks_again() {
    for late_ms in [3, 10, 40] {
        let (mut quorum, _) = Quorum::settle(&[1, 2, 3]);
        let (leader, epoch) = quorum.active().expect("settled");
        quorum.drive(leader, Input::Shutdown);
        // The last word to one of them takes longer.
        let slow = last_words(&quorum);
        let preferred = quorum.preferred_of(&slow);
        for at in slow {
            if quorum.queue[&at].0 != preferred {
                let what = quorum.queue.remove(&at).expect("it waits");
                quorum.queue.insert((at.0 + late_ms, at.1), what);
            }
        }
        let took = quorum.until(400, |it| {
            it.active().is_some_and(|(_, later)| later > epoch)
        });
        assert!(took <= 2 * late_ms + 30, "{took} ms: {}", quorum.show());
    }
}

/// What the state machine of one cannot do, those of the others may not be able to do either.
#[test]
fn leaders_that_give_up_do_not_follow_each_other_as_fast_as_messages_go() {
    let (mut quorum, _) = Quorum::settle(&[1, 2, 3]);
    for _ in 0..4 {
        let (leader, epoch) = quorum.active().expect("settled");
        quorum.drive(leader, Input::Resign);
        let took = quorum.until(5_000, |it| {
            it.active().is_some_and(|(_, later)| later > epoch)
        });
        assert!(
            (1_000..5_000).contains(&took),
            "{took} ms: {}",
            quorum.show()
        );
        quorum.until(2_000, |it| it.settled().is_some());
    }
}

/// An answer and the leader's last word come on two connections, in any order.
#[test]
fn an_answer_from_before_the_last_word_does_not_hold_the_successor_up() {
    let (mut quorum, _) = Quorum::settle(&[1, 2, 3]);
    let (leader, epoch) = quorum.active().expect("settled");
    let answers = |it: &Quorum| -> Vec<(u64, u64)> {
        let all = it.queue.iter().filter(|(_, (_, what))| match what {
            Happening::Answer(_, Ok(Told::Response(Response::Fetch(fetch)))) => {
                fetch.error == RaftError::None
            }
            Happening::Answer(_, Ok(Told::Fetch { .. })) => true,
            _ => false,
        });
        all.map(|(at, _)| *at).collect()
    };
    quorum.until(2_000, |it| !answers(it).is_empty());
    let late = answers(&quorum);
    quorum.drive(leader, Input::Shutdown);
    for at in late {
        let what = quorum.queue.remove(&at).expect("it waits");
        quorum.queue.insert((at.0 + 2, at.1), what);
    }
    let took = quorum.until(400, |it| {
        it.active().is_some_and(|(_, later)| later > epoch)
    });
    assert!(took <= 30, "{took} ms: {}", quorum.show());
}

/// What the leader wrote last came only to the one that is to wait.
#[test]
fn a_successor_that_has_more_does_not_wait_for_its_turn() {
    let (mut quorum, _) = Quorum::settle(&[1, 2, 3]);
    let (leader, epoch) = quorum.active().expect("settled");
    quorum.drive(leader, Input::Shutdown);
    let preferred = quorum.preferred_of(&last_words(&quorum));
    quorum.shorter = Some(preferred);
    let took = quorum.until(400, |it| {
        it.active().is_some_and(|(_, later)| later > epoch)
    });
    assert_ne!(quorum.active().map(|(id, _)| id), Some(preferred));
    assert!(took <= 30, "{took} ms: {}", quorum.show());
}
