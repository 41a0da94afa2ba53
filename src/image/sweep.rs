//! Values that no row uses any more leave the pools.
//!
//! A sweep looks at every row once and writes none: what is live keeps its id. It happens inside
//! the replay of the record that makes it due, on whichever thread replays. Before it is due, a
//! pool has taken in as many new values as there were live ones, and one for every sixteen rows:
//! so the looks that a record pays for are bounded, and so are the values that are kept for
//! nothing. The images that readers hold share what the sweep does not touch and keep the rest.
//!
//! Measured with a million partitions and 24,360 replica lists: 70 to 120 ms of CPU, once for some
//! 90,000 lists that were not there before. With a directory list of its own for each partition it
//! is 400 to 600 ms, once for more than a million new lists. Sweeping in steps, or on the thread
//! that writes snapshots, would need a mark on every change in between; a rule for that is not
//! worth a pause that rare.

use uuid::Uuid;

use super::topics::{Rare, Topic, Topics};

impl Topics {
    /// Sweeps the pools when it is worth while; for the end of every change of a row.
    pub(super) fn sweep_if_due(&mut self) {
        let rows = self.partition_count();
        let pools = &self.pools;
        if pools.lists.is_sweep_due(rows)
            || pools.directories.is_sweep_due(rows)
            || pools.rare.is_sweep_due(rows)
        {
            self.sweep();
        }
    }

    fn sweep(&mut self) {
        let live = self.live();
        let pools = &mut self.pools;
        pools.lists.sweep::<[i32]>(&live.lists);
        pools.directories.sweep::<[Uuid]>(&live.directories);
        pools.rare.sweep::<Rare>(&live.rare);
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
            let Rare {
                adding,
                removing,
                elr,
                last_known_elr,
            } = *fields;
            for id in [adding, removing, elr, last_known_elr] {
                live.lists[id as usize] = true;
            }
        }
        live
    }

    /// Whether everything that the rows hold is in the pools, and the pools are not overgrown.
    pub(super) fn check_pools(&self) -> Result<(), String> {
        let live = self.live();
        let (pools, rows) = (&self.pools, self.partition_count());
        let checks = [
            (
                "lists",
                pools.lists.has_all(&live.lists),
                pools.lists.is_sweep_due(rows),
            ),
            (
                "directories",
                pools.directories.has_all(&live.directories),
                pools.directories.is_sweep_due(rows),
            ),
            (
                "rare fields",
                pools.rare.has_all(&live.rare),
                pools.rare.is_sweep_due(rows),
            ),
        ];
        for (name, has_all, due) in checks {
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
