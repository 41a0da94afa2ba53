//! Brokers that come and go: what they led is handed over a slice at a time.
//!
//! A broker of a large cluster is in the in-sync sets of a hundred thousand partitions. Their
//! changes in one step would keep everybody else waiting for a quarter of a second. So a step makes
//! at most [`SLICE`] of them; if that is not all, the rest is a task that periodic work goes on
//! with, and other events come in between.
//!
//! What may happen in between needs no rules of its own:
//!
//! * A step decides on the image as it is then. The last step of [`Goal::Fence`] and
//!   [`Goal::Shutdown`] looks at all partitions and finds no more than a slice: it is the whole
//!   rule, done at that moment, and the steps before only left it less to do. So a broker that
//!   re-entered an in-sync set behind a slice leaves it after all.
//! * A broker that is fenced leaves the in-sync sets first, and its registration changes last. A
//!   controller that takes over in between finds a silent broker that is not fenced, and fences it.
//! * A heartbeat proves that a broker lives which was thought silent: what is left is left alone.
//!   What was done is what a slow broker gets; leaders take it back into their in-sync sets.
//! * A broker that begins its controlled shutdown says so first. It may go when the others have
//!   applied the last step, whose offset is not known before. After a change of leadership its next
//!   heartbeat begins again with what is left.
//! * A broker that is unfenced says so first, too: what becomes leaderless behind the scan was
//!   decided on knowing that it may lead. A controller that takes over looks for partitions that
//!   could have a leader, once.
//! * A task belongs to an incarnation. If another one has registered, or none is left, it ends.
//!
//! That is no less than the reference gives: it computes such changes at once, but writes them in
//! batches of which some may be lost with the leadership.

use std::collections::VecDeque;

use super::leaders::{self, Cause, SLICE, registration_change};
use super::{Soft, View};
use crate::image::{Broker, Image, Place};
use crate::records::VersionedRecord;
use crate::types::{BrokerEpoch, NodeId};

/// What a task is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Goal {
    /// The broker is to be fenced.
    Fence,
    /// The broker is leaving (KIP-841).
    Shutdown,
    /// The broker was unfenced: leaderless partitions are to get it.
    Elect,
}

/// Work for a broker that did not fit in one step.
#[derive(Clone, Debug)]
struct Task {
    /// The broker's incarnation; none for the elections of a new controller.
    broker: Option<(NodeId, BrokerEpoch)>,
    goal: Goal,
    at: Place,
}

/// Leaderless partitions that one step looks at: most of them may have to stay so.
const LOOKS: usize = 4 * SLICE;

/// Work that did not fit in one step; at most one task a broker.
#[derive(Clone, Debug, Default)]
pub struct Handovers {
    tasks: VecDeque<Task>,
}

impl Handovers {
    /// What a controller that becomes active has to look at: its predecessor may not have come to
    /// the end.
    #[must_use]
    pub(super) fn left_over(image: &Image) -> Self {
        let leaderless = image.leaderless_count() > 0;
        let task = Task {
            broker: None,
            goal: Goal::Elect,
            at: Place::default(),
        };
        Self {
            tasks: leaderless.then_some(task).into_iter().collect(),
        }
    }

    /// True when there is work.
    #[must_use]
    pub(super) fn pending(&self) -> bool {
        !self.tasks.is_empty()
    }

    /// The broker leaves every in-sync set, then its registration changes. False when that takes
    /// more steps.
    pub(super) fn fence(
        &mut self,
        view: &View<'_>,
        broker: &Broker,
        records: &mut Vec<VersionedRecord>,
    ) -> bool {
        let task = self.resume(broker, Goal::Fence);
        self.go_on(view, task, records)
    }

    /// The broker asked to leave: leadership moves away (KIP-841). False when that takes more
    /// steps.
    pub(super) fn begin_shutdown(
        &mut self,
        view: &View<'_>,
        broker: &Broker,
        records: &mut Vec<VersionedRecord>,
    ) -> bool {
        if !broker.in_controlled_shutdown {
            records.push(registration_change(1, broker.id, broker.epoch, |record| {
                record.in_controlled_shutdown = 1;
            }));
        }
        let task = self.resume(broker, Goal::Shutdown);
        self.go_on(view, task, records)
    }

    /// The broker is unfenced: its registration changes, then leaderless partitions get it. False
    /// when that takes more steps.
    pub(super) fn unfence(
        &mut self,
        view: &View<'_>,
        broker: &Broker,
        records: &mut Vec<VersionedRecord>,
    ) -> bool {
        records.push(registration_change(0, broker.id, broker.epoch, |record| {
            record.fenced = UNFENCE;
        }));
        let mut task = self.resume(broker, Goal::Elect);
        let cause = Cause::Comes(broker.id);
        let rest = elect(view, cause, true, Place::default(), records);
        if let Some(at) = rest {
            task.at = at;
            self.tasks.push_back(task);
        }
        rest.is_none()
    }

    /// Begins to fence a broker with the next step.
    pub(super) fn fence_later(&mut self, broker: &Broker) {
        let task = self.resume(broker, Goal::Fence);
        self.tasks.push_back(task);
    }

    /// The broker is not to be fenced after all.
    pub(super) fn keep(&mut self, id: NodeId) {
        self.tasks
            .retain(|task| !(task.is_of(id) && task.goal == Goal::Fence));
    }

    /// The broker's task for this goal, taken out, or a new one. Its goal replaces another: each
    /// that comes later asks for more, or makes the one before needless.
    fn resume(&mut self, broker: &Broker, goal: Goal) -> Task {
        let incarnation = Some((broker.id, broker.epoch));
        let at = self.tasks.iter().position(|task| task.is_of(broker.id));
        match at.and_then(|at| self.tasks.remove(at)) {
            Some(task) if task.broker == incarnation && task.goal == goal => task,
            _ => Task {
                broker: incarnation,
                goal,
                at: Place::default(),
            },
        }
    }

    /// One step of a task. True when it is done; else it waits for its turn again.
    fn go_on(
        &mut self,
        view: &View<'_>,
        mut task: Task,
        records: &mut Vec<VersionedRecord>,
    ) -> bool {
        let rest = match (task.broker, task.goal) {
            (Some((id, _)), Goal::Fence | Goal::Shutdown) => {
                let around = view.image.partitions_with_isr_member_around(id, task.at);
                let cause = Cause::Leaves(id);
                leaders::update_slice(view, cause, around, usize::MAX, records)
            }
            (broker, _) => elect(view, Cause::Came, broker.is_some(), task.at, records),
        };
        if let Some(at) = rest {
            task.at = at;
            self.tasks.push_front(task);
            return false;
        }
        if let (Some((id, epoch)), Goal::Fence) = (task.broker, task.goal) {
            records.push(registration_change(0, id, epoch, |record| {
                record.fenced = FENCE;
            }));
        }
        true
    }
}

impl Task {
    fn is_of(&self, id: NodeId) -> bool {
        self.broker.is_some_and(|(broker, _)| broker == id)
    }

    /// Is the incarnation still there, and in the state that the task is for?
    fn is_wanted(&self, image: &Image) -> bool {
        let Some((id, epoch)) = self.broker else {
            return true;
        };
        let broker = image.broker(id);
        broker.is_some_and(|broker| broker.epoch == epoch && !broker.fenced)
    }
}

/// One step of the first task.
pub(super) fn step(view: &View<'_>, soft: &mut Soft) -> Vec<VersionedRecord> {
    let mut records = Vec::new();
    let Some(task) = soft.handovers.tasks.pop_front() else {
        return records;
    };
    if !task.is_wanted(view.image) {
        return records;
    }
    let (broker, goal) = (task.broker, task.goal);
    let done = soft.handovers.go_on(view, task, &mut records);
    match (broker, goal) {
        (Some((id, _)), Goal::Fence) if done => soft.brokers.touch(id, true, -1),
        (Some((id, _)), Goal::Shutdown) if done => {
            soft.brokers.begin_shutdown(id, view.last_of(&records).0);
        }
        _ => {}
    }
    records
}

/// Looks at leaderless partitions. As with the reference, one that gets no leader may change all
/// the same when a broker comes: it forgets its eligible ones where enough are in sync. So `all`
/// are looked at then; a new controller only looks for those that could have a leader.
fn elect(
    view: &View<'_>,
    cause: Cause,
    all: bool,
    from: Place,
    records: &mut Vec<VersionedRecord>,
) -> Option<Place> {
    let wanted = |id| all || view.image.broker(id).is_some_and(Broker::is_active);
    let found = view.image.partitions_without_leader_from(wanted, from);
    leaders::update_slice(view, cause, found, LOOKS, records)
}

/// `Fenced` in a registration change.
const FENCE: i8 = 1;
/// See [`FENCE`].
const UNFENCE: i8 = -1;
