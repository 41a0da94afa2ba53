//! Brokers that come and go: what they led is handed over a slice at a time.
//!
//! A broker of a large cluster is in the in-sync sets of a hundred thousand partitions. Their
//! changes in one step would keep everybody else waiting for a quarter of a second. So a step makes
//! at most [`leaders::SLICE`] of them; if that is not all, the rest is a task that periodic work
//! goes on with, and other events come in between.
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
//! * A broker whose log directories went offline names them with every heartbeat. Its registration
//!   changes last: so a controller that takes over in between hears of them again.
//! * A task belongs to an incarnation. If another one has registered, or none is left, it ends.
//!
//! That is no less than the reference gives: it computes such changes at once, but writes them in
//! batches of which some may be lost with the leadership.

use std::collections::{BTreeSet, VecDeque};

use super::leaders::{self, Cause, LOOKS, registration_change};
use super::{Soft, View};
use crate::image::{Broker, Image, Place};
use crate::records::VersionedRecord;
use crate::types::{BrokerEpoch, NodeId, Uuid};

/// What a task is for.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Goal {
    /// The broker is to be fenced.
    Fence,
    /// The broker is leaving (KIP-841).
    Shutdown,
    /// The broker was unfenced: leaderless partitions are to get it.
    Elect,
    /// These log directories of the broker went offline (KIP-858).
    Lose(Vec<Uuid>),
}

impl Goal {
    fn is_loss(&self) -> bool {
        matches!(self, Self::Lose(_))
    }
}

/// Work for a broker that did not fit in one step.
#[derive(Clone, Debug)]
pub(super) struct Task {
    /// The broker's incarnation; none for the elections of a new controller.
    broker: Option<(NodeId, BrokerEpoch)>,
    goal: Goal,
    at: Place,
    /// Every partition that the goal speaks of was looked at once.
    all_seen: bool,
}

/// Work that did not fit in one step; at most one task a broker, and one for lost directories.
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
            all_seen: false,
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

    /// Directories went offline: replicas there leave the in-sync sets, then the registration
    /// names what is left.
    pub(super) fn lose_directories(
        &mut self,
        view: &View<'_>,
        broker: &Broker,
        offline: &[Uuid],
        records: &mut Vec<VersionedRecord>,
    ) {
        let offline: BTreeSet<&Uuid> = offline.iter().collect();
        let known = broker.directories.iter().copied();
        let lost: Vec<Uuid> = known.filter(|it| offline.contains(it)).collect();
        if !lost.is_empty() {
            let task = self.resume(broker, Goal::Lose(lost));
            self.go_on(view, task, records);
        }
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

    /// The broker's tasks with their places, in their order, to be [put back](Self::put_back).
    /// Allocates nothing where there is none.
    pub(super) fn tasks_of(&self, id: NodeId) -> Vec<(usize, Task)> {
        let all = self.tasks.iter().enumerate();
        let own = all.filter(|(_, task)| task.is_of(id));
        own.map(|(at, task)| (at, task.clone())).collect()
    }

    /// The broker's tasks are these again, in the places that they had. Those of others must be
    /// the same as then.
    pub(super) fn put_back(&mut self, id: NodeId, tasks: Vec<(usize, Task)>) {
        self.tasks.retain(|task| !task.is_of(id));
        for (at, task) in tasks {
            self.tasks.insert(at, task);
        }
    }

    /// The broker's task for this goal, taken out, or a new one. Its goal replaces another: each
    /// that comes later asks for more, or makes the one before needless.
    fn resume(&mut self, broker: &Broker, goal: Goal) -> Task {
        let incarnation = Some((broker.id, broker.epoch));
        let is_kin = |task: &Task| task.goal.is_loss() == goal.is_loss();
        let mut tasks = self.tasks.iter();
        let at = tasks.position(|task| task.is_of(broker.id) && is_kin(task));
        match at.and_then(|at| self.tasks.remove(at)) {
            Some(task) if task.broker == incarnation && task.goal == goal => task,
            _ => Task {
                broker: incarnation,
                goal,
                at: Place::default(),
                all_seen: false,
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
        let rest = match (task.broker, &task.goal) {
            (Some((id, _)), Goal::Fence | Goal::Shutdown) => {
                leaders::leave_in_sync(view, id, task.at, records)
            }
            (Some((id, _)), Goal::Lose(lost)) => {
                let rest = leave_directories(view, id, lost, &task, records);
                if rest.is_none() && !task.all_seen && task.at != Place::default() {
                    task.all_seen = true;
                    Some(Place::default())
                } else {
                    rest
                }
            }
            (broker, _) => elect(view, Cause::Came, broker.is_some(), task.at, records),
        };
        if let Some(at) = rest {
            task.at = at;
            self.tasks.push_front(task);
            return false;
        }
        match (task.broker, task.goal) {
            (Some((id, epoch)), Goal::Fence) => {
                records.push(registration_change(0, id, epoch, |record| {
                    record.fenced = FENCE;
                }));
            }
            (Some((id, _)), Goal::Lose(lost)) => records.extend(without(view.image, id, &lost)),
            _ => {}
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
        let fits = |broker: &Broker| self.goal.is_loss() || !broker.fenced;
        broker.is_some_and(|broker| broker.epoch == epoch && fits(broker))
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
    let (broker, goal) = (task.broker, task.goal.clone());
    let done = soft.handovers.go_on(view, task, &mut records);
    match (broker, goal) {
        (Some((id, _)), Goal::Fence) if done => soft.brokers.touch(id, true, -1),
        (Some((id, _)), Goal::Shutdown) if done => {
            soft.brokers.begin_shutdown(id, view.last_of(&records).0);
        }
        (Some((id, _)), Goal::Lose(_)) if done => soft.brokers.change(id),
        _ => {}
    }
    records
}

/// A slice of the partitions with replicas in lost directories: at first of all of them, most of
/// which have to stay as they are when the broker is not in sync there; then, on the image as it is
/// at the end, of those where it is in sync. In one step the first is all.
fn leave_directories(
    view: &View<'_>,
    id: NodeId,
    lost: &[Uuid],
    task: &Task,
    records: &mut Vec<VersionedRecord>,
) -> Option<Place> {
    let (image, cause) = (view.image, Cause::Leaves(id));
    if task.all_seen {
        let there = image.partitions_in_sync_in_directories_around(id, lost, task.at);
        return leaders::update_slice(view, cause, there, usize::MAX, records);
    }
    let there = image.partitions_in_directories_from(id, lost, task.at);
    leaders::update_slice(view, cause, there, LOOKS, records)
}

/// The registration with the directories that are left.
fn without(image: &Image, id: NodeId, lost: &[Uuid]) -> Option<VersionedRecord> {
    let broker = image.broker(id)?;
    let known = broker.directories.iter().copied();
    let left: Vec<Uuid> = known.filter(|it| !lost.contains(it)).collect();
    let (count, left_count) = (lost.len(), left.len());
    tracing::warn!("broker {id} lost {count} of its log directories, {left_count} are left");
    let change = registration_change(2, id, broker.epoch, |record| record.log_dirs = left);
    Some(change)
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
