//! A node that follows: what it is given goes to disk and memory, and counts once it is committed.

use super::*;
use crate::raft::{CallFault, Write};
use crate::records::batch::BatchBuilder;

impl Bench {
    /// Observes node 9, which leads epoch 4, with all records of `log` given by it.
    fn given(log: &[(Offset, Offset, Bytes)]) -> Self {
        let mut bench = Self::observing(Vec::new(), 9);
        bench.follow(4);
        for (first, end, batch) in log {
            bench.append(*first, *end, batch.clone());
        }
        bench
    }

    fn append(&mut self, first: Offset, end: Offset, batches: Bytes) {
        self.output(Output::Write {
            token: Token(first.0 as u64),
            write: Write::Append {
                first,
                end,
                epoch: Epoch(1),
                batches,
            },
            then: Vec::new(),
        });
    }

    fn reads(&self) -> usize {
        let reads = self.pending.iter();
        reads
            .filter(|it| matches!(it, Command::Read { .. }))
            .count()
    }
}

/// A leader's log in which brokers 2 and 3 are registered.
fn leaders_log() -> Vec<(Offset, Offset, Bytes)> {
    let mut leader = Bench::active();
    for broker in [2, 3] {
        leader.register(broker, 0xb0 + broker as u128);
        leader.settle();
    }
    leader.log
}

#[test]
fn what_is_committed_is_replayed_from_memory_before_the_disk_has_it() {
    let log = leaders_log();
    let mut bench = Bench::given(&log);
    assert_eq!(bench.published.end, Offset::ZERO);
    let (_, end, _) = log[log.len() - 2];
    bench.output(Output::Committed(end));
    assert_eq!(bench.published.end, end);
    assert_eq!(bench.published.image.brokers().len(), 1);
    let (_, end, _) = log[log.len() - 1];
    bench.output(Output::Committed(end));
    assert_eq!(bench.published.image.brokers().len(), 2);
    assert_eq!(bench.reads(), 0);
    let marks = bench.pending.iter().filter_map(|it| match it {
        Command::SaveCommit { commit } => Some(commit.offset),
        _ => None,
    });
    assert_eq!(marks.last(), Some(end));
}

#[test]
fn a_commit_inside_a_batch_waits_for_the_rest_of_it() {
    let log = leaders_log();
    let whole = log
        .iter()
        .find(|(first, end, _)| end.0 - first.0 > 1)
        .expect("the bootstrap records are one batch");
    let mut bench = Bench::given(&log);
    bench.output(Output::Committed(whole.1.prev()));
    bench.settle();
    assert_eq!(bench.halted, None);
    assert!(bench.published.end <= whole.0);
    bench.output(Output::Committed(whole.1));
    bench.settle();
    assert_eq!(bench.published.end, whole.1);
}

/// What is cut off was never replayed, is in no read, and counts no longer.
#[test]
fn a_cut_takes_uncommitted_batches_out_of_memory_and_out_of_the_size_of_the_log() {
    let log = leaders_log();
    let bytes: u64 = log.iter().map(|(_, _, batch)| batch.len() as u64).sum();
    let mut bench = Bench::given(&log);
    let (from, end, cut) = log[log.len() - 1].clone();
    bench.output(Output::Committed(from));
    let image = bench.published.image.clone();
    bench.output(Output::Write {
        token: Token(900),
        write: Write::Truncate { end: from },
        then: Vec::new(),
    });
    assert!(bench.node.tail.batch(from).is_none());
    let mut other = BatchBuilder::data(from, Epoch(5), Timestamp(1));
    let record = Record::from(crate::records::NoOpRecord::default());
    other.push_record(&record.at(0)).unwrap();
    let other = other.build().into_bytes();
    bench.append(from, from.next(), other.clone());
    let writes = std::mem::take(&mut bench.pending).into_iter();
    for command in writes {
        let completion = match command {
            Command::Append { token, .. } => Completion::Appended(token),
            Command::Truncate { token, .. } => Completion::Truncated {
                token,
                removed_bytes: cut.len() as u64,
            },
            _ => continue,
        };
        bench.step(Event::Disk(completion));
    }
    assert_eq!(bench.node.durable, from.next());
    assert!(end > from);
    let held = bench.node.snapshots.log_bytes();
    assert_eq!(held, bytes - cut.len() as u64 + other.len() as u64);
    bench.output(Output::Committed(from.next()));
    assert_eq!(bench.published.end, from.next());
    assert_eq!(bench.published.image, image);
}

#[test]
fn a_controller_that_does_not_lead_registers_with_the_one_that_does_until_the_log_shows_it() {
    let mut log = leaders_log();
    // The leader is another incarnation of the same id.
    let mut bench = Bench::given(&log);
    bench.node.registration.incarnation_id = Uuid::from_u128(5);
    bench.output(Output::Committed(log[log.len() - 1].1));
    let asked = bench.registrations.clone();
    assert_eq!(asked.len(), 1);
    assert_eq!((asked[0].host.as_str(), asked[0].port), ("nine", 9));

    // Each failure is followed by a longer pause.
    let mut pauses = Vec::new();
    for failure in 0..4 {
        bench.step(Event::Registered(if failure == 2 {
            Ok(ErrorCode::NotController)
        } else {
            Err(CallFault::Closed)
        }));
        let before = bench.ms;
        while bench.registrations.len() < failure + 2 {
            bench.ms = bench.node.next_wakeup().0.max(bench.ms + 1);
            bench.step(Event::WakeUp);
        }
        pauses.push(bench.ms - before);
    }
    assert_eq!(pauses, [100, 200, 400, 800]);
    // An answer that the log does not bear out is not believed for ever.
    bench.step(Event::Registered(Ok(ErrorCode::None)));
    assert_eq!(bench.registrations.len(), 5);
    bench.ms += 10_000;
    bench.step(Event::WakeUp);
    assert_eq!(bench.registrations.len(), 6);

    // The record comes: that is all.
    let (_, end, _) = log.pop().unwrap();
    let record = crate::records::RegisterControllerRecord {
        controller_id: 1,
        incarnation_id: Uuid::from_u128(5),
        ..Default::default()
    };
    let mut builder = BatchBuilder::data(end, Epoch(4), Timestamp(1));
    builder.push_record(&Record::from(record).at(0)).unwrap();
    bench.append(end, end.next(), builder.build().into_bytes());
    bench.output(Output::Committed(end.next()));
    assert!(bench.published.end == end.next() && bench.halted.is_none());
    bench.ms += 200_000;
    bench.step(Event::Registered(Err(CallFault::Silent)));
    bench.step(Event::WakeUp);
    assert_eq!(bench.registrations.len(), 6);
}

#[test]
fn fetches_that_wait_for_the_disk_of_a_leader_that_is_deposed_are_refused_at_once() {
    let mut bench = Bench::active_again();
    bench.fetch(Ticket(900), 0, Offset::ZERO);
    assert!(bench.reads() == 1 && bench.replies.is_empty());
    bench.step(Event::Shutdown);
    match bench.replies.get(&Ticket(900)) {
        Some(Answer::Raft(raft::Response::Fetch(response))) => {
            let refused = raft::RaftError::Partition(ErrorCode::NotLeaderOrFollower);
            assert_eq!(response.error, refused);
        }
        other => panic!("not refused: {other:?}"),
    }
    bench.pending.retain(|it| !matches!(it, Command::Close));
    bench.settle();
    assert_eq!(bench.halted, None);
}
