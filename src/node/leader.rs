//! Leading: activation, requests, periodic work, and letting go.

use crate::controller::works::{self, Step};
use crate::controller::{
    self, Context, Decision, KraftUpgrade, RECORDS_PER_OPERATION_MAX, Request, Soft, View,
};
use crate::raft::{Input, Proposal};
use crate::records::VersionedRecord;
use crate::records::batch::{BATCH_BYTES_MAX, BatchBuilder};
use crate::types::{ApiError, Epoch, ErrorCode, Instant, Now, Offset, SplitMix, Ticket};

use super::{Answer, Effect, Leading, Node, forks::Forks};

/// A request of a client with what came along.
pub(super) struct Asked {
    pub(super) ticket: Ticket,
    pub(super) arrived: Instant,
    pub(super) version: i16,
    pub(super) context: Box<Context>,
}

impl Node {
    /// Raft says that this node leads. The rules start once all that is committed is replayed.
    pub(super) fn elected(&mut self, now: Now, epoch: Epoch, effects: &mut Vec<Effect>) {
        self.leading = Leading::Soon(epoch);
        self.replay_more(now, effects);
    }

    /// Becomes the active controller if elected and everything committed is replayed.
    pub(super) fn activate_if_ready(&mut self, now: Now, effects: &mut Vec<Effect>) {
        let Leading::Soon(epoch) = self.leading else {
            return;
        };
        if self.stopping || self.working.end != self.raft.log_end() {
            return;
        }
        // Each epoch draws other numbers, all of them determined by the seed.
        let mut rng = SplitMix::new(self.seed ^ u64::from(epoch.0.cast_unsigned()));
        let seed = rng.next_u64();
        let soft = Soft::new(&self.settings, &self.working.image, now, seed);
        self.leading = Leading::Active {
            epoch,
            soft: Box::new(soft),
        };
        tracing::info!("active controller in epoch {epoch}");
        let view = self.view(now);
        let (records, atomic) = match controller::activation::records(&view, &self.bootstrap) {
            Ok(activation) => activation,
            Err(reason) => return self.halt(reason, effects),
        };
        if let Err(error) = self.append(now, records, atomic, effects) {
            let text = error.message.unwrap_or_else(|| error.code.to_string());
            return self.halt(
                format!("the first records cannot be written: {text}"),
                effects,
            );
        }
        self.publish_again(effects);
        self.register_self(now, effects);
    }

    /// Raft says that this node leads no more.
    pub(super) fn deposed(&mut self, effects: &mut Vec<Effect>) {
        let mut refused = self.deferred.drain();
        if let Leading::Active { soft, .. } = &mut self.leading {
            refused.extend(soft.works.drain());
            self.forks.clear();
            self.working = self.committed.clone();
        }
        self.leading = Leading::No;
        self.refuse_readings(effects);
        for ticket in refused {
            let answer = Answer::Controller(Err(self.not_controller()));
            effects.push(Effect::Reply { ticket, answer });
        }
        self.publish_again(effects);
    }

    pub(super) fn controller_request(
        &mut self,
        now: Now,
        asked: Asked,
        request: Request,
        effects: &mut Vec<Effect>,
    ) {
        let ticket = asked.ticket;
        let undecided = self.refuse_undecided(now, &asked, &request);
        let decided = match undecided {
            // Nothing was looked at, so there is nothing to wait for either.
            Some(error) => {
                let answer = Answer::Controller(Err(error));
                return effects.push(Effect::Reply { ticket, answer });
            }
            None => match self.decide(now, asked, request, effects).transpose() {
                Some(decided) => decided,
                // There is work left; the answer comes with the last of it.
                None => return,
            },
        };
        self.answer(ticket, decided, effects);
    }

    /// Answers a request. What was decided, a refusal too, was computed on all that is appended,
    /// and waits for it.
    fn answer(
        &mut self,
        ticket: Ticket,
        decided: Result<controller::Reply, ApiError>,
        effects: &mut Vec<Effect>,
    ) {
        let lost = matches!(&decided, Err(error) if error.code == ErrorCode::NotController);
        match self.forks.pending() {
            Some(end) if !lost => self.deferred.push(end, ticket, decided),
            Some(_) | None => effects.push(Effect::Reply {
                ticket,
                answer: Answer::Controller(decided),
            }),
        }
    }

    /// The refusal of a request that is not to be decided at all: it waited too long, or too much
    /// waits for the disk already.
    pub(super) fn refuse_undecided(
        &mut self,
        now: Now,
        asked: &Asked,
        request: &Request,
    ) -> Option<ApiError> {
        let Leading::Active { .. } = self.leading else {
            return Some(self.not_controller());
        };
        let waited = now.instant.since(asked.arrived);
        let late = queue_limit_ms(request, &self.settings).is_some_and(|limit| waited >= limit);
        let text = if late {
            tracing::debug!("a request waited for {waited} ms before it could be looked at");
            None
        } else if self.forks.full() {
            Some(format!(
                "More than {} batches or {} bytes wait for the disk.",
                Forks::COUNT_MAX,
                Forks::BYTES_MAX
            ))
        } else if self.deferred.full() {
            Some("Too many replies wait for the disk.".to_owned())
        } else if !self.with_soft(now, |_, soft| soft.works.has_room(request)) {
            Some("Too many requests that take several steps are under way.".to_owned())
        } else {
            return None;
        };
        self.with_soft(now, |view, soft| {
            controller::note_undecided(view, soft, request);
        });
        Some(ApiError {
            code: ErrorCode::RequestTimedOut,
            message: text,
        })
    }

    /// Decides and appends. No reply when there is work left for later steps.
    pub(super) fn decide(
        &mut self,
        now: Now,
        asked: Asked,
        request: Request,
        effects: &mut Vec<Effect>,
    ) -> Result<Option<controller::Reply>, ApiError> {
        let begin = self.raft.log_end();
        let decided = self.decide_and_append(now, &asked, request, effects);
        let (name, who) = (asked.context.request, &asked.context.principal);
        let end = self.raft.log_end();
        match &decided {
            Ok(Some(_)) => {
                tracing::debug!("{name} of {who}: decided, the log goes from {begin} to {end}");
            }
            Ok(None) => {
                tracing::debug!("{name} of {who}: goes on, the log goes from {begin} to {end}");
            }
            Err(error) => tracing::debug!("{name} of {who}: {}", error.code),
        }
        decided
    }

    fn decide_and_append(
        &mut self,
        now: Now,
        asked: &Asked,
        request: Request,
        effects: &mut Vec<Effect>,
    ) -> Result<Option<controller::Reply>, ApiError> {
        let ticket = asked.ticket;
        let Decision {
            records,
            reply,
            atomic,
            kraft_version,
            unfinished,
        } = self.with_soft(now, |view, soft| {
            controller::decide(view, soft, asked.version, &asked.context, request)
        })?;
        if let Some(KraftUpgrade {
            level,
            validate_only,
        }) = kraft_version
        {
            if let Err(reason) = self.raft.check_kraft_version(level) {
                return Ok(Some(controller::features::refused(&reason)));
            }
            if !validate_only {
                self.drive(now, Input::UpgradeKraftVersion(level), effects);
            }
        }
        self.append(now, records, atomic, effects)?;
        let Some(left) = unfinished else {
            return Ok(Some(reply));
        };
        self.with_soft(now, |_, soft| soft.works.add(ticket, left));
        Ok(None)
    }

    /// Runs a rule on the working image and the soft state.
    fn with_soft<T>(&mut self, now: Now, rule: impl FnOnce(&View<'_>, &mut Soft) -> T) -> T {
        let leading = std::mem::replace(&mut self.leading, Leading::No);
        let Leading::Active { epoch, mut soft } = leading else {
            unreachable!("rules run only while this node is the active controller");
        };
        let result = rule(&self.view(now), &mut soft);
        self.leading = Leading::Active { epoch, soft };
        result
    }

    fn view(&self, now: Now) -> View<'_> {
        View {
            image: &self.working.image,
            committed: &self.published.image,
            settings: &self.settings,
            now,
            next_offset: self.raft.log_end(),
            kraft_version: self.raft.kraft_version().cast_signed(),
        }
    }

    /// The one thing that is due of what the soft state has deadlines for: `next_wakeup` tells when
    /// the next one is, and other events come in between.
    pub(super) fn run_periodic(&mut self, now: Now, effects: &mut Vec<Effect>) {
        let Leading::Active { soft, .. } = &self.leading else {
            return;
        };
        if !self.may_act() || controller::periodic::next_due(soft) > now.instant {
            return;
        }
        if self.with_soft(now, |_, soft| soft.works.take_turn()) {
            return self.go_on(now, effects);
        }
        let records = self.with_soft(now, controller::periodic::run);
        note_unwritten("periodic work", self.append(now, records, false, effects));
    }

    /// One step of a request that has work left.
    fn go_on(&mut self, now: Now, effects: &mut Vec<Effect>) {
        let Some(Step { records, answer }) = self.with_soft(now, works::step) else {
            return;
        };
        let appended = self.append(now, records, false, effects);
        match answer {
            Some((ticket, decided)) => {
                let decided = appended.and(decided);
                let end = self.raft.log_end();
                match &decided {
                    Ok(_) => tracing::debug!("the last step of a request: the log goes to {end}"),
                    Err(error) => tracing::debug!("the last step of a request: {}", error.code),
                }
                self.answer(ticket, decided, effects);
            }
            None => note_unwritten("a step", appended),
        }
    }

    /// Replays records on the working image and has raft append them.
    ///
    /// # Errors
    /// NOT_CONTROLLER when leadership is lost before the last batch is appended; the refusal of a
    /// batch that is too large; what a broken invariant leaves (the node is halted then).
    fn append(
        &mut self,
        now: Now,
        records: Vec<VersionedRecord>,
        atomic: bool,
        effects: &mut Vec<Effect>,
    ) -> Result<(), ApiError> {
        for (batch, mut builder) in cut(&records, atomic, now)? {
            let Leading::Active { epoch, .. } = self.leading else {
                return Err(self.not_controller());
            };
            let first = self.raft.log_end();
            builder.place(first, epoch);
            let batches = builder.build().into_bytes();
            let mut end = first;
            for record in batch {
                if let Err(reason) = self.working.replay(&record.record, end) {
                    self.halt(
                        format!("a decided record cannot be replayed: {reason}"),
                        effects,
                    );
                    return Err(ErrorCode::UnknownServerError.into());
                }
                end = end.next();
            }
            self.forks
                .push(end, batches.len(), now.wall, self.working.image.clone());
            let proposal = Proposal {
                epoch,
                first,
                end,
                batches,
            };
            self.drive(now, Input::Propose(proposal), effects);
        }
        match self.leading {
            Leading::Active { .. } => Ok(()),
            _ => Err(self.not_controller()),
        }
    }
}

/// Who follows does the rest after a lost leadership; anything else is for a human.
fn note_unwritten(what: &str, appended: Result<(), ApiError>) {
    match appended {
        Ok(()) => {}
        Err(error) if error.code == ErrorCode::NotController => {
            tracing::debug!("{what} was not written: this node leads no more");
        }
        Err(error) => tracing::error!("{what} was not written: {error:?}"),
    }
}

fn unwritable(reason: &str) -> ApiError {
    ApiError::new(
        ErrorCode::UnknownServerError,
        format!("a record cannot be written: {reason}"),
    )
}

/// Records with the batch that holds them, whose place in the log is still to be told.
type Cut<'a> = (&'a [VersionedRecord], BatchBuilder);

/// Cuts records into batches: one if `atomic`, else as many as the limits ask for.
///
/// # Errors
/// UNKNOWN_SERVER_ERROR when an atomic decision has too many records or bytes. The reference stops
/// there; a refusal that changes nothing is better.
fn cut(records: &[VersionedRecord], atomic: bool, now: Now) -> Result<Vec<Cut<'_>>, ApiError> {
    let empty = || BatchBuilder::data(Offset::ZERO, Epoch(0), now.wall);
    let mut batches = Vec::new();
    let mut start = 0;
    let mut builder = empty();
    let mut value = Vec::new();
    for (at, record) in records.iter().enumerate() {
        value.clear();
        record
            .encode_into(&mut value)
            .map_err(|fault| unwritable(&fault.to_string()))?;
        let full = |builder: &BatchBuilder| {
            builder.size_with(None, Some(value.len())) > BATCH_BYTES_MAX
                || at - start >= RECORDS_PER_OPERATION_MAX
        };
        if full(&builder) {
            if atomic || at == start {
                return Err(too_large(records.len()));
            }
            let whole = std::mem::replace(&mut builder, empty());
            batches.push((&records[start..at], whole));
            start = at;
        }
        builder.push(None, Some(&value));
    }
    if start < records.len() {
        batches.push((&records[start..], builder));
    }
    Ok(batches)
}

fn too_large(records: usize) -> ApiError {
    ApiError::new(
        ErrorCode::UnknownServerError,
        format!(
            "the request would write {records} records at once; at most \
             {RECORDS_PER_OPERATION_MAX} records and {BATCH_BYTES_MAX} bytes fit into one batch"
        ),
    )
}

/// How long a request may have waited in queues before it starts, in milliseconds (exclusive: with
/// 0 it is late at once). `None` is for ever: it has no deadline, or asks for nothing.
fn queue_limit_ms(request: &Request, settings: &controller::Settings) -> Option<u64> {
    let asked = match request {
        Request::CreateTopics(body) if controller::creates_nothing(body) => return None,
        Request::CreateTopics(body) => body.timeout_ms,
        Request::DeleteTopics(body) => body.timeout_ms,
        Request::CreatePartitions(body) => body.timeout_ms,
        Request::ElectLeaders(body) => {
            let partitions = body.topic_partitions.as_ref();
            if partitions.is_some_and(Vec::is_empty) {
                return None;
            }
            body.timeout_ms
        }
        Request::AlterPartitionReassignments(body) if body.topics.is_empty() => return None,
        Request::AlterPartitionReassignments(body) => body.timeout_ms,
        Request::BrokerHeartbeat(_) => return Some(settings.heartbeat_interval_ms / 2),
        _ => return None,
    };
    Some(u64::try_from(asked).unwrap_or(0))
}
