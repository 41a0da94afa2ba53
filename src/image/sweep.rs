//! Values that no row uses any more leave the pools.
//!
//! A sweep looks at every row once and writes none: what is live keeps its id. It is spread over
//! the replay of the records that follow the one which makes it due: each of them looks at some
//! rows more, and then at some values. Two things make that as good as a look at all rows at once:
//!
//! * What is interned while a sweep is under way counts as live. So a row that changes behind the
//!   look at it holds nothing that is not marked; nor does one that comes into a free slot there.
//! * Rare fields are dropped before the lists that they name.
//!
//! Before a sweep is due, a pool has taken in as many new values as there were live ones, and one
//! for every sixteen rows: so the looks that a record pays for are bounded, and so are the values
//! that are kept for nothing. The images that readers hold share what the sweep does not touch and
//! keep the rest. An image is a value: one that a deposed leader returns to has the sweep as far as
//! it was then.

use uuid::Uuid;

use super::topics::{Pools, Rare, Topic, Topics};

/// How far a sweep is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Sweep {
    /// None is under way.
    #[default]
    Idle,
    /// The rows of the topics in the slots below have marked what they hold.
    Marking { slot: usize },
    /// Values without a mark are dropped.
    Dropping,
}

/// Rows that one record has looked at, and what the topic of the last of them has more.
const ROWS: usize = 64;
/// Values of each pool that one record has looked at.
const VALUES: usize = 32;

impl Topics {
    /// Sweeps the pools when it is worth while; for the end of every change of a row.
    pub(super) fn sweep_if_due(&mut self) {
        match self.sweep {
            Sweep::Idle if self.is_overgrown() => {
                self.pools.lists.begin_sweep();
                self.pools.directories.begin_sweep();
                self.pools.rare.begin_sweep();
                self.sweep = Sweep::Marking { slot: 0 };
            }
            Sweep::Idle => {}
            Sweep::Marking { slot } => self.mark_some(slot),
            Sweep::Dropping => {
                let pools = &mut self.pools;
                let over = pools.rare.drop_some::<Rare>(VALUES)
                    && pools.lists.drop_some::<[i32]>(VALUES)
                        & pools.directories.drop_some::<[Uuid]>(VALUES);
                if over {
                    self.sweep = Sweep::Idle;
                }
            }
        }
    }

    fn is_overgrown(&self) -> bool {
        let (rows, pools) = (self.partition_count(), &self.pools);
        pools.lists.is_sweep_due(rows)
            || pools.directories.is_sweep_due(rows)
            || pools.rare.is_sweep_due(rows)
    }

    fn mark_some(&mut self, mut slot: usize) {
        let mut rows = 0;
        while rows < ROWS && slot < self.slot_range().end {
            let (topic, pools) = self.slot_and_pools(slot);
            for (_, row) in topic.into_iter().flat_map(Topic::rows) {
                rows += 1;
                pools.lists.mark_live(row.replicas);
                pools.lists.mark_live(row.isr);
                pools.directories.mark_live(row.directories);
                pools.rare.mark_live(row.rare);
            }
            slot += 1;
        }
        if slot < self.slot_range().end {
            self.sweep = Sweep::Marking { slot };
            return;
        }
        let Pools {
            lists,
            directories,
            rare,
        } = &mut self.pools;
        for (id, fields) in rare.values().enumerate() {
            if rare.is_live(id) {
                for list in fields.lists() {
                    lists.mark_live(list);
                }
            }
        }
        rare.begin_drops();
        lists.begin_drops();
        directories.begin_drops();
        self.sweep = Sweep::Dropping;
    }

    /// Which ids the rows hold.
    fn live(&self) -> Live {
        let pools = &self.pools;
        let mut live = Live {
            lists: pools.lists.unmarked(),
            directories: pools.directories.unmarked(),
            rare: pools.rare.unmarked(),
        };
        for (_, row) in self.in_slot_order().flat_map(Topic::rows) {
            live.lists[row.replicas as usize] = true;
            live.lists[row.isr as usize] = true;
            live.directories[row.directories as usize] = true;
            live.rare[row.rare as usize] = true;
        }
        let rare = pools.rare.values().zip(&live.rare);
        for (fields, _) in rare.filter(|(_, live)| **live) {
            for id in fields.lists() {
                live.lists[id as usize] = true;
            }
        }
        live
    }

    /// Whether everything that the rows hold is in the pools, and the pools are not overgrown.
    pub(super) fn check_pools(&self) -> Result<(), String> {
        let (live, pools) = (self.live(), &self.pools);
        let due = self.sweep == Sweep::Idle && self.is_overgrown();
        let checks = [
            ("lists", pools.lists.has_all(&live.lists)),
            ("directories", pools.directories.has_all(&live.directories)),
            ("rare fields", pools.rare.has_all(&live.rare)),
        ];
        for (name, has_all) in checks {
            if !has_all || due {
                return Err(format!(
                    "the pool of {name}: has what rows hold: {has_all}, overgrown: {due}"
                ));
            }
        }
        Ok(())
    }
}

/// For every id of each pool, whether a row holds it.
struct Live {
    lists: Vec<bool>,
    directories: Vec<bool>,
    rare: Vec<bool>,
}
