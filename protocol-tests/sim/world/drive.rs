//! One call of a core, and all that it wants done.

use std::hash::{Hash, Hasher};

use kraftd::raft::{Ask, Input, Output, Request, Told};
use kraftd::types::{Epoch, Instant, Now, Offset, Timestamp};

use super::{Event, World};
use crate::config::Chance;
use crate::disk::Seen;
use crate::laws::committed_on_a_majority;
use crate::{law, trace};

impl World {
    pub(super) fn give(&mut self, at: usize, input: Input) {
        let Some(node) = &mut self.hosts[at].node else {
            return;
        };
        if self.trace.prints() {
            let what = trace::input(&input);
            let node = node.life;
            self.say(at, format_args!("#{node} <- {what}"));
        }
        let Some(node) = &mut self.hosts[at].node else {
            return;
        };
        std::mem::discriminant(&input).hash(&mut self.trace);
        let local = node.local(self.now);
        let now = Now {
            instant: Instant(local),
            wall: Timestamp(1_700_000_000_000 + local as i64),
        };
        let mut outputs = Vec::new();
        node.raft.handle(now, input, &mut outputs);
        self.execute(at, outputs);
        self.after(at);
        self.drive_disk(at);
    }

    /// The laws that hold after every call.
    fn after(&mut self, at: usize) {
        let host = &mut self.hosts[at];
        let Some(node) = &mut host.node else {
            return;
        };
        let (epoch, role) = (node.raft.epoch(), node.raft.role_name());
        let commit = node.raft.high_watermark();
        self.trace.note(
            self.now,
            at,
            &[
                epoch.0 as u64,
                node.raft.log_end().0 as u64,
                commit.map_or(u64::MAX, |commit| commit.0 as u64),
                role.len() as u64,
                host.disk.platter().end().0 as u64,
            ],
        );
        // Nothing acts as the leader before that is durable.
        let durable = host.disk.durable_state();
        let leads = durable.is_some_and(|state| {
            state.epoch == epoch && state.leader == Some(host.key.id) && node.leads()
        });
        if leads && self.laws.leaders.leads(epoch, at, node.life) {
            self.laws.committed.leads(at, epoch, host.disk.view());
        }
        self.laws.stable.is(at, epoch, role);
        self.laws.commit.has(at, commit);
        let ends = (node.raft.log_start(), node.raft.log_end());
        let disk = (host.disk.start, host.disk.view().end());
        law!(
            ends == disk,
            "{at}: the core has {ends:?}, its disk {disk:?}"
        );
        let whole = |until: Offset| {
            let of_epoch = |commit: Offset| node.raft.epoch_of(commit.prev()) == epoch;
            let durable = host.disk.platter().end();
            commit.is_some_and(|it| (until..=durable).contains(&it) && of_epoch(it))
        };
        if host.rotten.is_some_and(whole) {
            host.rotten = None;
            self.meet("damaged log refilled");
        }
    }

    pub(super) fn execute(&mut self, at: usize, outputs: Vec<Output>) {
        for output in outputs {
            // A stop in the middle ends the process; the rest is never done.
            let Some(life) = self.hosts[at].node.as_ref().map(|node| node.life) else {
                return;
            };
            if self.trace.prints() {
                for line in trace::output(&output) {
                    self.say(at, format_args!("#{life} -> {line}"));
                }
            }
            std::mem::discriminant(&output).hash(&mut self.trace);
            self.execute_one(at, output);
        }
    }

    fn execute_one(&mut self, at: usize, output: Output) {
        match output {
            Output::Write { token, write, then } => {
                let host = &mut self.hosts[at];
                let Some(node) = &mut host.node else { return };
                node.carried.insert(token, then);
                let seen = host.disk.submit(token, write);
                self.seen(at, seen);
            }
            Output::Reply { ticket, response } => self.reply(at, ticket, response),
            Output::ServeFetch {
                ticket,
                response,
                from,
                until,
                max_bytes,
            } => {
                let disk = &self.hosts[at].disk;
                law!(from >= disk.start, "{from} is not in the log any more");
                let records = disk.view().read(from, until, max_bytes);
                law!(!records.is_empty(), "t{} is served nothing", ticket.0);
                if let Some(asked) = self.told(at, ticket, response.hint.epoch) {
                    let batches = self.fetched(&records);
                    self.answer(&asked, Told::Fetch { response, batches });
                }
            }
            Output::ServeSnapshot {
                ticket,
                response,
                position,
                max_bytes,
            } => self.serve_snapshot(at, ticket, response, (position, max_bytes)),
            Output::Send { call, to, ask } => {
                self.asks(at, &ask);
                self.send(at, call, &to, ask);
            }
            Output::Hangup(name) => self.hang_up(at, name, None),
            Output::KeepOpen(peers) => self.keep_open(at, peers),
            Output::KeepPiece {
                id,
                position,
                bytes,
                size,
            } => self.keep_piece(at, super::snapshots::Piece::new(id, position, bytes, size)),
            Output::QuorumChanged => {}
            Output::Committed(offset) => self.committed(at, offset),
            Output::BecameLeader { epoch } => {
                self.meet("became leader");
                if let Some(node) = &mut self.hosts[at].node {
                    node.leading = Some(epoch);
                }
            }
            Output::LostLeadership { .. } => {
                self.meet("leadership lost");
                if let Some(node) = &mut self.hosts[at].node {
                    node.leading = None;
                    node.pending.clear();
                }
            }
            Output::MayStop => {
                self.meet("clean stop");
                self.hosts[at].disk.close();
                self.died(at, "stops");
            }
        }
    }

    /// What a question gives away is durable.
    fn asks(&mut self, at: usize, ask: &Ask) {
        let Ask::Raft(request) = ask else { return };
        let epoch = match request {
            Request::Vote(vote) => vote.epoch,
            Request::BeginQuorumEpoch(begin) => begin.epoch,
            Request::EndQuorumEpoch(end) => end.epoch,
            Request::Fetch(fetch) => Epoch(fetch.current_leader_epoch),
            Request::FetchSnapshot(fetch) => Epoch(fetch.current_leader_epoch),
            Request::UpdateVoter(update) => Epoch(update.current_leader_epoch),
            Request::DescribeQuorum(_) | Request::AddVoter(_) | Request::RemoveVoter(_) => Epoch(0),
        };
        let host = &self.hosts[at];
        let disk = host.disk.durable_state();
        self.laws.votes.told(at, epoch, disk);
        if let Request::Vote(vote) = request {
            self.meet(if vote.pre_vote {
                "pre-vote asked"
            } else {
                "vote asked"
            });
            let host = &self.hosts[at];
            if !vote.pre_vote {
                let disk = host.disk.durable_state();
                self.laws.votes.voted(at, epoch, host.key, disk);
            }
        }
        if let Request::Fetch(fetch) = request {
            // A fetch says that everything below its offset is durable at the one who asks.
            let end = self.hosts[at].disk.platter().end();
            law!(
                Offset(fetch.fetch_offset) <= end,
                "{at} fetches from {}, its platter ends at {end}",
                fetch.fetch_offset
            );
        }
    }

    fn seen(&mut self, at: usize, seen: Seen) {
        match seen {
            Seen::Appended(batches) => {
                for (batch, chain) in batches {
                    self.laws.logs.appended(at, &batch, chain);
                }
            }
            Seen::Cut(end) => {
                self.meet("log cut");
                self.maybe_crash(at);
                let node = self.hosts[at].node.as_ref();
                let commit = node.and_then(|node| node.raft.high_watermark());
                law!(
                    commit.is_none_or(|commit| commit <= end),
                    "{at} cuts its log to {end}, below its commit offset {commit:?}"
                );
            }
            Seen::Anew => self.maybe_crash(at),
            Seen::Other => {}
        }
    }

    /// Some changes take moments, so that a crash in one has to be meant.
    pub(super) fn maybe_crash(&mut self, at: usize) {
        if self.config.faults.crash > 0 && Chance(200).hits(&mut self.dice.faults) {
            self.at(0, Event::CrashOnce(at));
        }
    }

    /// The state machine applies, and tells its clients.
    fn committed(&mut self, at: usize, offset: Offset) {
        let host = &mut self.hosts[at];
        let Some(node) = &mut host.node else { return };
        let view = host.disk.view();
        self.laws.commit.told(at, offset, view.end());
        if self
            .laws
            .committed
            .told(at, node.raft.epoch(), view, offset)
            && node.leads()
            && !self.damaged
        {
            let chain = view.chain_at(offset);
            let voters = node.raft.voters().to_vec();
            let disks = self.hosts.iter().map(|host| (host.key, &host.disk));
            committed_on_a_majority::holds(&voters, disks, offset, chain);
        }
        let host = &mut self.hosts[at];
        let Some(node) = &mut host.node else { return };
        let view = host.disk.view();
        let from = node.machine.end;
        law!(
            from >= view.base() || from >= offset,
            "{at} has to apply from {from}, its log begins at {}",
            view.base()
        );
        for (batch, _) in view.range(from, offset) {
            node.machine.apply(batch);
            self.laws.images.at(at, &node.machine);
        }
        law!(
            node.machine.end >= offset,
            "{at} has to apply up to {offset} and has {}",
            node.machine.end
        );
        host.disk.submit_commit(offset);
        self.acknowledge(at, offset);
        self.maybe_snapshot(at);
    }

    pub(super) fn disk_done(&mut self, at: usize, life: u64) {
        if !self.is_life(at, life) {
            return;
        }
        let tokens = self.hosts[at].disk.finish();
        let disk = self.hosts[at].disk.durable_state();
        self.laws.votes.durable(at, disk);
        self.trace.write_u64(tokens.len() as u64);
        for token in tokens {
            let Some(node) = &mut self.hosts[at].node else {
                return;
            };
            let carried = node.carried.remove(&token);
            let carried = carried.expect("a completion belongs to a write");
            if self.config.carried_first {
                self.execute(at, carried);
                self.give(at, Input::Written(token));
            } else {
                self.give(at, Input::Written(token));
                self.execute(at, carried);
            }
        }
        self.drive_disk(at);
    }

    pub(super) fn drive_disk(&mut self, at: usize) {
        let Some(life) = self.hosts[at].node.as_ref().map(|node| node.life) else {
            return;
        };
        if self.hosts[at].disk.begin() {
            let mut takes = self.config.disk.draw(&mut self.dice.disk);
            if self.config.stall.hits(&mut self.dice.disk) {
                takes += self.config.stall_ms.draw(&mut self.dice.disk);
                self.meet("disk hangs");
            }
            self.at(takes, Event::DiskDone(at, life));
        }
    }
}
