//! Leading: activation, requests, periodic work, and letting go.

use crate::controller::works;
use crate::controller::{
    self, Before, Context, Decision, KraftUpgrade, Reply, Request, Soft, View,
};
use crate::raft::Input;
use crate::records::VersionedRecord;
use crate::types::{ApiError, Epoch, ErrorCode, Instant, Now, SplitMix, Ticket};

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
            self.gathered = None;
            self.forks.clear();
            self.working = self.committed.clone();
            self.undone = None;
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
        decided: Result<Reply, ApiError>,
        effects: &mut Vec<Effect>,
    ) {
        let lost = matches!(&decided, Err(error) if error.code == ErrorCode::NotController);
        match self.pending() {
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
    ) -> Result<Option<Reply>, ApiError> {
        let begin = self.next_offset();
        let decided = self.decide_and_append(now, &asked, request, effects);
        let (name, who) = (asked.context.request, &asked.context.principal);
        let end = self.next_offset();
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
    ) -> Result<Option<Reply>, ApiError> {
        let ticket = asked.ticket;
        let before = self.with_soft(now, |_, soft| soft.before(&request));
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
        let appended = self.append(now, records, atomic, effects);
        self.take_back_unless(&appended, before);
        appended?;
        let Some(left) = unfinished else {
            return Ok(Some(reply));
        };
        self.with_soft(now, |_, soft| soft.works.add(ticket, left));
        Ok(None)
    }

    /// What was decided but is not appended moves nothing of the soft state.
    fn take_back_unless(&mut self, appended: &Result<(), ApiError>, before: Option<Before>) {
        if appended.is_err()
            && let (Some(before), Leading::Active { soft, .. }) = (before, &mut self.leading)
        {
            soft.take_back(before);
        }
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
            next_offset: self.next_offset(),
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
        self.write_own(now, records, effects);
    }

    /// Writes what nobody asked for. If that cannot be, leadership ends: the soft state has moved
    /// on as if it were written, with deadlines set and tasks taken out, and whoever leads next
    /// begins with one that comes from the image alone. What others decided stays.
    ///
    /// The rules are the same on every voter: where the last leadership of this node ended so, too,
    /// the next one would as well, and the cluster would have no controller for long. So this one
    /// goes on without that work; periodic rules come back to it in their time.
    pub(super) fn write_own(
        &mut self,
        now: Now,
        records: Vec<VersionedRecord>,
        effects: &mut Vec<Effect>,
    ) {
        match self.append(now, records, false, effects) {
            Ok(()) => {}
            Err(error) if error.code == ErrorCode::NotController => {
                tracing::debug!("periodic work was not written: this node leads no more");
            }
            Err(error) if !self.halted => {
                let text = error.message.unwrap_or_else(|| error.code.to_string());
                if self.leave_undone(now, &text) {
                    return;
                }
                tracing::error!("periodic work cannot be written, so leadership ends: {text}");
                self.drive(now, Input::Resign, effects);
                // Behind the end of this leadership, which forgets the one before.
                self.undone = Some(0);
            }
            Err(_) => {}
        }
    }

    /// Goes on without work that cannot be written, if giving leadership up for it did not help
    /// before. False if that was not tried.
    fn leave_undone(&mut self, now: Now, text: &str) -> bool {
        let Some(count) = &mut self.undone else {
            return false;
        };
        *count += 1;
        let count = *count;
        // It may come back for as long as this node leads.
        if count.is_power_of_two() {
            tracing::error!(
                count,
                "periodic work cannot be written here nor by the leaders before, and is left \
                 undone; report this as a fault of kraftd: {text}"
            );
        }
        self.with_soft(now, controller::periodic::left_undone);
        true
    }

    /// One step of a request that has work left.
    fn go_on(&mut self, now: Now, effects: &mut Vec<Effect>) {
        let Some(step) = self.with_soft(now, works::step) else {
            return;
        };
        let appended = self.append(now, step.records, false, effects);
        self.take_back_unless(&appended, step.before);
        self.stepped(step.ticket, step.answer, appended, effects);
    }

    /// Answers the request if that was its last step, or one that could not be written.
    pub(super) fn stepped(
        &mut self,
        ticket: Ticket,
        answer: Option<Result<Reply, ApiError>>,
        appended: Result<(), ApiError>,
        effects: &mut Vec<Effect>,
    ) {
        let decided = match (answer, appended) {
            (Some(decided), appended) => appended.and(decided),
            (None, Ok(())) => return,
            (None, Err(error)) => {
                // With the leadership lost, all that waited have been told.
                let Leading::Active { soft, .. } = &mut self.leading else {
                    return;
                };
                soft.works.forget(ticket);
                Err(error)
            }
        };
        let end = self.next_offset();
        match &decided {
            Ok(_) => tracing::debug!("the last step of a request: the log goes to {end}"),
            Err(error) => tracing::debug!("the last step of a request: {}", error.code),
        }
        self.answer(ticket, decided, effects);
    }
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
