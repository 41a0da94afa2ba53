//! For every honest observer: `log[..commit]` is a prefix of what is committed, it is never told
//! to cut below its own commit offset, and a record is known by (offset, epoch): whoever has one
//! has the same one.

use std::collections::BTreeMap;

use kraftd::types::{Epoch, Offset};

use crate::disk::{Content, Entry};
use crate::law;
use crate::observer::{Change, Observer};

/// Every record that a leader ever wrote, also those that a crash took back.
#[derive(Debug, Default)]
pub(crate) struct Law {
    written: BTreeMap<(Offset, Epoch), Content>,
}

impl Law {
    pub(crate) fn wrote(&mut self, first: Offset, entries: &[Entry]) {
        for (at, entry) in entries.iter().enumerate() {
            let id = (first.plus(at as i64), entry.epoch);
            let before = self.written.insert(id, entry.content.clone());
            law!(
                before.is_none_or(|before| before == entry.content),
                "a second record at {id:?}"
            );
        }
    }

    /// At rest an observer has all, and knows that it is committed.
    pub(crate) fn caught_up(&self, observer: &Observer, committed: &[Entry]) {
        let all = committed.len() as i64;
        law!(
            observer.end() == Offset(all) && observer.commit == all,
            "{:?} ends at {} and knows of {}, {all} are committed",
            observer.key,
            observer.end(),
            observer.commit
        );
    }

    pub(crate) fn changed(
        &self,
        observer: &Observer,
        commit_before: i64,
        change: &Change,
        committed: &[Entry],
    ) {
        for (offset, entry) in &change.appended {
            law!(
                self.written.get(&(*offset, entry.epoch)) == Some(&entry.content),
                "{:?} has {entry:?} at {offset}, which nobody wrote",
                observer.key
            );
        }
        if let Some(end) = change.truncated {
            law!(
                end.0 >= commit_before,
                "{:?} had to cut to {end}, below its commit offset {commit_before}",
                observer.key
            );
        }
        if let Some(id) = change.loaded {
            let last = committed.get(id.offset.0 as usize - 1);
            law!(
                last.is_some_and(|entry| entry.epoch == id.epoch),
                "{:?} loaded {id:?}, which is not committed",
                observer.key
            );
        }
        let news = commit_before.max(observer.base.offset.0)..observer.commit;
        for offset in news.map(Offset) {
            law!(
                observer.entry(offset) == committed.get(offset.0 as usize),
                "{:?} applied something else at {offset}",
                observer.key
            );
        }
    }
}
