//! Following: fetching what the leader has, and cutting what it has not (KIP-595, KIP-853).
//!
//! A fetch says that everything below its offset is on this node's disk, so it leaves only when
//! nothing is on its way there. What is answered counts only if this node's log is still as it was
//! when it asked: a second answer to the same question must not cut what came in between.
//!
//! A leader may ask for nothing that costs committed records. Such an answer is refused and
//! counted, and the leader asked again after a pause: it does not count as heard, so voters look
//! for a better one. (Java's controller halts.)

use bytes::{Bytes, BytesMut};

use super::calls::{Call, Kind};
use super::download::Download;
use super::input::{Ask, FetchRequest, FetchedBatch, Request};
use super::machine::{Raft, Turn};
use super::output::{FetchResponse, Output, Peer, PeerName, Write};
use super::refusal::Refusal;
use super::roles::Role;
use crate::types::{Epoch, Instant, Offset, OffsetAndEpoch};

/// How long a leader may hold a fetch that has nothing to tell, milliseconds (KIP-595).
const FETCH_WAIT_MS: i32 = 500;

/// What a follower knows of its leader.
#[derive(Clone, Debug, Default)]
pub(super) struct Following {
    /// A fetch was answered by the leader of this epoch.
    pub(super) fetched: bool,
}

/// What is under way to become like a leader. Outlives a change of role: every answer is held
/// against it.
#[derive(Clone, Debug, Default)]
pub(super) struct Fetching {
    /// The last fetch that was sent: to whom, and the end of the log that it told.
    asked: Option<(PeerName, OffsetAndEpoch)>,
    /// A snapshot that is being fetched.
    pub(super) download: Option<Download>,
    /// How many answers were refused.
    pub(super) refused: u64,
    /// Whose was the last of them, and why.
    pub(super) refused_last: Option<(PeerName, Refusal)>,
}

impl Fetching {
    /// When something here changes by time alone.
    pub(super) fn deadline(&self) -> Instant {
        self.download
            .as_ref()
            .map_or(Instant::NEVER, Download::deadline)
    }

    /// Forgets waits that are over.
    pub(super) fn wake(&mut self, now: Instant) {
        if let Some(download) = &mut self.download {
            download.wake(now);
        }
    }
}

impl Raft {
    /// Asks for what comes next: of the leader, or, while that is left alone after a failure, of
    /// anybody who may know more.
    pub(super) fn follow(&mut self, turn: &mut Turn) {
        let now = turn.now.instant;
        let Some(leader) = self.leader_peer() else {
            return self.discover(turn);
        };
        if self.calls.is_resting(leader.name, now) {
            return self.discover(turn);
        }
        if !self.calls.is_free(leader.name, now) || !self.is_settled() {
            return;
        }
        if !self.fetch_piece(&leader, turn) {
            self.ask_fetch(leader, turn);
        }
    }

    /// Asks one of the bootstrap servers or of the voters, picked at random, who leads.
    pub(super) fn discover(&mut self, turn: &mut Turn) {
        let asked = |kind| matches!(kind, Kind::Fetch | Kind::FetchSnapshot(..));
        if self.calls.any(asked) || !self.is_settled() {
            return;
        }
        let now = turn.now.instant;
        let own = &self.config.endpoints;
        let servers = self.config.bootstrap.iter().enumerate();
        let mut peers: Vec<Peer> = servers
            .filter(|(_, (host, port))| !own.iter().any(|(_, h, p)| h == host && p == port))
            .map(|(at, (host, port))| Peer {
                name: PeerName::Bootstrap(at),
                host: host.clone(),
                port: *port,
            })
            .collect();
        peers.extend(self.other_voters().into_iter().map(|(_, peer)| peer));
        peers.retain(|peer| self.calls.is_free(peer.name, now));
        let picked = self.rng.below(peers.len() as u64);
        if let Ok(picked) = usize::try_from(picked)
            && picked < peers.len()
        {
            self.ask_fetch(peers.swap_remove(picked), turn);
        }
    }

    /// Where the leader is asked, if it is another node that this node follows.
    #[must_use]
    pub fn leader_peer(&self) -> Option<Peer> {
        let Role::Follower(role) = &self.role else {
            return None;
        };
        self.peer_at(role.leader, &role.endpoints)
            .or_else(|| self.peer_at(role.leader, self.voters.endpoints(role.leader)))
    }

    /// Whether all of the log is on the disk, with every cut of it.
    fn is_settled(&self) -> bool {
        self.appends.is_empty() && self.moves.is_empty() && self.log.durable_end == self.log.end
    }

    /// The end of the log with the epoch of its last record.
    fn log_tip(&self) -> OffsetAndEpoch {
        OffsetAndEpoch {
            offset: self.log.end,
            epoch: self.log.last_epoch(),
        }
    }

    fn ask_fetch(&mut self, peer: Peer, turn: &mut Turn) {
        let tip = self.log_tip();
        let request = FetchRequest {
            cluster_id: Some(self.config.cluster_id.clone()),
            replica: self.config.node,
            current_leader_epoch: self.epoch.0,
            fetch_offset: tip.offset.0,
            last_fetched_epoch: tip.epoch.0,
            high_watermark: self.commit.map_or(-1, |commit| commit.0),
            max_wait_ms: FETCH_WAIT_MS,
            max_bytes: i32::try_from(self.config.fetch_bytes_max).unwrap_or(i32::MAX),
        };
        self.fetching.asked = Some((peer.name, tip));
        let ask = Ask::Raft(Request::Fetch(request));
        self.ask(peer, Kind::Fetch, ask, turn);
    }

    /// Fetch was answered by the leader, without an error and in this node's epoch.
    pub(super) fn fetch_answered(
        &mut self,
        call: Call,
        response: FetchResponse,
        batches: Vec<FetchedBatch>,
        turn: &mut Turn,
    ) {
        let expected = Some((call.peer, self.log_tip()));
        if !matches!(self.role, Role::Follower(_)) || self.fetching.asked != expected {
            tracing::debug!(peer = ?call.peer, "an answer to an older question is ignored");
            return;
        }
        self.fetching.asked = None;
        let judged = match (response.diverging, response.snapshot) {
            (Some(end), _) => self.diverged(end, turn),
            (None, Some(id)) => self.snapshot_offered(id),
            (None, None) => self.take_batches(&response, batches, turn),
        };
        match judged {
            Ok(()) => self.heard_leader(turn),
            Err(why) => self.refuse(call.peer, why, turn),
        }
    }

    /// The leader lives and has something for this node.
    pub(super) fn heard_leader(&mut self, turn: &mut Turn) {
        self.heal(turn);
        let deadline = self.fetch_deadline(turn.now.instant);
        if let Role::Follower(role) = &mut self.role {
            role.heard(deadline);
        }
    }

    /// An answer that no correct leader gives: its sender is left alone for a while.
    pub(super) fn refuse(&mut self, peer: PeerName, why: Refusal, turn: &Turn) {
        self.fetching.refused += 1;
        let last = self.fetching.refused_last.replace((peer, why));
        let again = last.is_some_and(|(other, _)| other == peer);
        let (count, epoch) = (self.fetching.refused, self.epoch.0);
        let (log_end, commit) = (self.log.end.0, self.commit.map(|commit| commit.0));
        match why.cure(again) {
            // It may go on for as long as such a leader leads.
            _ if !count.is_power_of_two() => {}
            Some(cure) => tracing::error!(
                ?peer,
                epoch,
                log_end,
                commit,
                count,
                "an answer of the leader is refused: {why}; {cure}"
            ),
            None => tracing::warn!(
                ?peer,
                epoch,
                log_end,
                commit,
                count,
                "an answer of the leader is refused, and it is asked again: {why}"
            ),
        }
        self.rest(peer, turn.now.instant);
    }

    /// What must not be cut: all that this node knows to be committed. Where the disk lost such
    /// records, the mark on it says nothing about the rest.
    pub(super) fn floor(&self) -> Offset {
        let snapshot = self.log.newest_snapshot().map(|id| id.offset);
        let marked = self.marked.filter(|_| self.intact());
        let known = [self.commit, snapshot, marked].into_iter().flatten().max();
        known.unwrap_or(Offset::ZERO).max(self.log.start)
    }

    /// The logs part: cuts this one where the leader's epoch ends.
    fn diverged(&mut self, theirs: OffsetAndEpoch, turn: &mut Turn) -> Result<(), Refusal> {
        let end = self.log.parting(theirs);
        if end >= self.log.end {
            return Err(Refusal::OtherLog(
                "it has another log, and does not say where it begins to be another",
            ));
        }
        if end < self.floor() {
            return Err(Refusal::LostCommitted("it would cut committed records"));
        }
        tracing::warn!(
            from = self.log.end.0,
            to = end.0,
            leader_epoch = theirs.epoch.0,
            "the log is cut: its leader has other records"
        );
        self.log.truncate(end);
        let before = self.voter_state();
        self.voters.truncate(end);
        if before != self.voter_state() {
            self.membership_changed(turn);
        }
        for (_, append_end) in &mut self.appends {
            *append_end = (*append_end).min(end);
        }
        self.push_move(Write::Truncate { end }, turn);
        Ok(())
    }

    /// Appends what is sound, and takes over what is committed.
    fn take_batches(
        &mut self,
        response: &FetchResponse,
        batches: Vec<FetchedBatch>,
        turn: &mut Turn,
    ) -> Result<(), Refusal> {
        let before = self.log.end;
        let judged = self.append_batches(batches, turn);
        let committed = Offset(response.high_watermark);
        // All that a snapshot holds is committed, whether the leader knows that yet or not.
        let held = self.log.newest_snapshot().map(|id| id.offset);
        let end = committed.max(held.unwrap_or(committed)).min(self.log.end);
        if committed >= Offset::ZERO && self.commit.is_none_or(|commit| commit < end) {
            self.commit = Some(end);
            turn.outputs.push(Output::Committed(end));
        }
        match judged {
            // What was good before it brings this node on.
            Err(why) if self.log.end == before => Err(why),
            Err(why) => {
                tracing::warn!(log_end = self.log.end.0, "the rest is dropped: {why}");
                Ok(())
            }
            Ok(()) if self.log.end == before && committed > before => Err(Refusal::BadAnswer(
                "it has committed records for this node, and sends none",
            )),
            Ok(()) => Ok(()),
        }
    }

    /// Each write is of one epoch.
    fn append_batches(
        &mut self,
        batches: Vec<FetchedBatch>,
        turn: &mut Turn,
    ) -> Result<(), Refusal> {
        let mut run: Vec<Bytes> = Vec::new();
        let mut first = self.log.end;
        let mut end = first;
        let mut epoch = self.log.last_epoch();
        let mut judged = Ok(());
        let before = self.voter_state();
        for batch in batches {
            judged = follows(&batch, end, epoch, self.epoch);
            if judged.is_err() {
                break;
            }
            if batch.epoch != epoch {
                self.append_fetched(first, end, epoch, &mut run, turn);
                (first, epoch) = (end, batch.epoch);
            }
            for (offset, record) in batch.control {
                self.voters.apply(offset, record);
            }
            end = batch.end;
            run.push(batch.bytes);
        }
        self.append_fetched(first, end, epoch, &mut run, turn);
        if before != self.voter_state() {
            self.membership_changed(turn);
        }
        judged
    }

    /// What tells one state of the voters from another.
    fn voter_state(&self) -> (Option<Offset>, u16) {
        (self.voters.changed_at(), self.voters.kraft_version())
    }

    fn append_fetched(
        &mut self,
        first: Offset,
        end: Offset,
        epoch: Epoch,
        run: &mut Vec<Bytes>,
        turn: &mut Turn,
    ) {
        if run.is_empty() {
            return;
        }
        self.log.epochs.begin(epoch, first);
        let token = self.append(end);
        turn.outputs.push(Output::Write {
            token,
            write: Write::Append {
                first,
                end,
                epoch,
                batches: joined(std::mem::take(run)),
            },
            then: Vec::new(),
        });
    }

    /// A node whose disk lost committed records is whole again once they are back, known to be
    /// committed and on its disk, with a record of its leader's epoch behind them. The mark tells
    /// only what this node knew: it may have acknowledged more than that, and others may count on
    /// it. What is committed in an epoch whose leader counts what this node has now comes behind
    /// all of it.
    pub(super) fn heal(&mut self, turn: &mut Turn) {
        let Some(commit) = self.commit.filter(|_| !self.intact) else {
            return;
        };
        let of_leader = self.log.epochs.at(commit.prev()) == Some(self.epoch);
        let back = |lost| of_leader && commit >= lost && self.log.durable_end >= commit;
        if self.marked.is_some_and(back) {
            tracing::info!(
                log_end = self.log.end.0,
                "the committed records that were lost are back: this node votes again"
            );
            self.intact = true;
            self.membership_changed(turn);
        }
    }
}

/// Whether a batch continues a log that ends at `end` with `last`, in a quorum whose epoch is
/// `now`.
fn follows(batch: &FetchedBatch, end: Offset, last: Epoch, now: Epoch) -> Result<(), Refusal> {
    if batch.first != end {
        return Err(Refusal::BadAnswer(
            "a batch does not begin where the log ends",
        ));
    }
    if batch.end <= batch.first {
        return Err(Refusal::BadAnswer("a batch holds no offset"));
    }
    if batch.epoch < last {
        return Err(Refusal::BadAnswer("a batch is older than the log's end"));
    }
    if batch.epoch > now {
        return Err(Refusal::BadAnswer(
            "a batch is of an epoch that has not begun",
        ));
    }
    Ok(())
}

fn joined(mut run: Vec<Bytes>) -> Bytes {
    if run.len() == 1
        && let Some(only) = run.pop()
    {
        return only;
    }
    let mut all = BytesMut::with_capacity(run.iter().map(Bytes::len).sum());
    for bytes in run {
        all.extend_from_slice(&bytes);
    }
    all.freeze()
}
