//! What an active controller does unasked: fencing silent brokers, elections, NoOp records.

use super::levels::metadata_version;
use super::{Settings, Soft, View, handover, tokens};
use crate::records::{NoOpRecord, Record, VersionedRecord};
use crate::types::Instant;

/// The earliest deadline of the soft state.
#[must_use]
pub fn next_due(soft: &Soft) -> Instant {
    if soft.handovers.pending() || soft.works.pending() {
        return Instant(0);
    }
    let elections = soft.preferred.due().min(soft.unclean.due());
    let others = elections.min(soft.tokens.due);
    soft.noop_due.min(soft.fencing_due).min(others)
}

/// How late sessions may be looked at without doubt that they have ended: an eighth of a session.
fn tolerance_ms(settings: &Settings) -> u64 {
    (settings.session_timeout_ms / 8).max(1)
}

/// Does the one thing that is due and gives its records; moves the deadline. Called again while
/// something is due, with other events in between. Requests that have work left are not among it:
/// see [`super::works::step`].
pub fn run(view: &View<'_>, soft: &mut Soft) -> Vec<VersionedRecord> {
    let now = view.now.instant;
    if soft.fencing_due <= now {
        let period = tolerance_ms(view.settings);
        if now.since(soft.fencing_due) > period {
            // This process was held up itself. Heartbeats that came meanwhile wait in queues and
            // sockets: they are heard before anybody is called silent.
            tracing::warn!("held up: sessions of brokers are looked at {period} ms later");
            soft.fencing_due = now.plus_ms(period);
            return Vec::new();
        }
        fence_silent(view, soft);
        return Vec::new();
    }
    if soft.tokens.due <= now {
        return tokens::sweep(view, soft);
    }
    if soft.noop_due <= now {
        soft.noop_due = noop_due(view.settings, now);
        if metadata_version(view.image).supports_no_op() {
            let record = Record::NoOp(NoOpRecord::default());
            return vec![VersionedRecord { version: 0, record }];
        }
    }
    for round in [&mut soft.preferred, &mut soft.unclean] {
        if round.due() <= now {
            return round.step(view);
        }
    }
    handover::step(view, soft)
}

/// What [`run`] gave last cannot be written, and this controller goes on without it. Brokers are as
/// they were: one that was to be fenced gets another session, behind which it is tried again, and
/// one that leaves is helped on with its next heartbeat.
pub fn left_undone(view: &View<'_>, soft: &mut Soft) {
    let (now, next) = (view.now.instant, view.next_offset);
    soft.brokers.left_undone(view.image, now, next);
}

/// When the next NoOp record is due; never, if they are turned off.
#[must_use]
pub fn noop_due(settings: &Settings, now: Instant) -> Instant {
    match settings.idle_interval_ms {
        0 => Instant::NEVER,
        interval => now.plus_ms(interval),
    }
}

/// Begins to fence all whose session has ended.
fn fence_silent(view: &View<'_>, soft: &mut Soft) {
    let now = view.now.instant;
    let session_ms = view.settings.session_timeout_ms;
    while let Some((id, epoch)) = soft.brokers.take_expired(now, session_ms) {
        match view.image.broker(id) {
            None => soft.brokers.remove(id),
            Some(broker) if broker.epoch == epoch && !broker.fenced => {
                tracing::info!(
                    "fencing broker {id} at epoch {epoch}: not heard of for {session_ms} ms"
                );
                soft.handovers.fence_later(broker);
            }
            // An older incarnation, or fenced already.
            Some(_) => {}
        }
    }
    soft.fencing_due = soft.brokers.next_end(now, session_ms);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::testing::World;

    /// How many NoOp records one second brings.
    fn written_in_a_second(level: i16, interval_ms: u64) -> usize {
        let mut world = World::at_level(level);
        world.settings.idle_interval_ms = interval_ms;
        world.soft = Soft::new(
            &world.settings,
            &world.image,
            crate::types::Now::default(),
            1,
        );
        let mut count = 0;
        for ms in 1..=1_000 {
            world.now_ms = ms;
            while next_due(&world.soft).0 <= ms {
                count += world.rule(run).len();
            }
        }
        count
    }

    #[test]
    fn no_op_records_keep_the_commit_moving_unless_they_are_turned_off() {
        assert_eq!(written_in_a_second(33, 500), 2);
        assert_eq!(written_in_a_second(33, 100), 10);
        assert_eq!(written_in_a_second(33, 0), 0);
    }
}
