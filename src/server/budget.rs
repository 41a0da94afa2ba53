//! One budget of memory for everything that peers have sent and whose answer is not written yet.
//!
//! Small requests are free: [`FREE_BYTES`] a request and a bounded number of requests a connection.
//! Whatever is larger takes its bytes from the budget *as they arrive*, and what the decoder will
//! need before it decodes. A connection that finds the budget empty stops reading until others give
//! back. What is held for a frame that is not whole or has too little memory, or for an answer that
//! its peer does not read, must not keep all others waiting: once somebody has waited for
//! [`PATIENCE`], the oldest of those ends, and no other for as long. So frames that hold all of the
//! budget cannot wait for each other either. Of answers, which wait for nobody but their peer, all
//! end that nobody has read for as long: many peers that do not read are gone as soon as one.
//!
//! What is read from the disk for a peer takes its bytes when it is there. If they are not free, it
//! is let go, since peers that do not read would hold it next.
//!
//! Requests that may be much work for the one who answers take turns, one of a [`Turn`] at a time:
//! the other thread of the runtime is for heartbeats, votes and fetches. A turn ends when the
//! answer has its memory, so that no more than one is outside of the budget.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{AcquireError, Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};

/// What a request may cost without asking the budget.
pub(crate) const FREE_BYTES: usize = 8 * 1024;
/// The budget when no key sets it.
const BYTES_DEFAULT: usize = 128 * 1024 * 1024;
/// Permits are counted in these, since a semaphore counts 32 bits at a time.
const UNIT_BYTES: usize = 1024;

/// How long somebody waits for memory before the oldest that waits for its peer has to give way.
const PATIENCE: Duration = Duration::from_secs(2);

/// Of what kind of work only one is done at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// To describe what may be a large part of the metadata.
    Describe,
    /// To read what is large: brokers must not wait behind descriptions with it.
    Read,
}

/// The budget, shared by all connections.
#[derive(Clone, Debug)]
pub(crate) struct Budget {
    permits: Arc<Semaphore>,
    units_max: u32,
    describes: Arc<Semaphore>,
    reads: Arc<Semaphore>,
    at_peers: Arc<Mutex<AtPeers>>,
    /// See [`PATIENCE`].
    pub(crate) patience: Duration,
}

/// For what memory is held that depends on a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeldFor {
    /// A frame that is not whole, or has too little memory.
    Frame,
    /// An answer that is not read.
    Answer,
}

/// Who holds memory for what is not whole or not read, oldest first.
#[derive(Debug, Default)]
struct AtPeers {
    all: BTreeMap<(Instant, u64), (HeldFor, Arc<Notify>)>,
    next: u64,
    /// When some were ended: what they give back has to reach those who wait.
    ended: Option<Instant>,
}

/// Says that memory is held for what is not whole or not read; not any more once this is dropped.
#[derive(Debug)]
pub(crate) struct AtPeer {
    key: (Instant, u64),
    ended: Arc<Notify>,
    all: Arc<Mutex<AtPeers>>,
}

impl AtPeer {
    /// Ends when others have waited for too long and this is the oldest. Each end is told once.
    pub(crate) async fn ended(&self) {
        self.ended.notified().await;
    }
}

impl Drop for AtPeer {
    fn drop(&mut self) {
        lock(&self.all).all.remove(&self.key);
    }
}

/// Each change of it is whole before anything can panic.
fn lock(at_peers: &Mutex<AtPeers>) -> MutexGuard<'_, AtPeers> {
    at_peers.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Bytes taken from the budget; they go back when this is dropped.
#[derive(Debug, Default)]
pub(crate) struct Held {
    permit: Option<OwnedSemaphorePermit>,
}

impl Held {
    /// How many bytes may be in memory by this.
    pub(crate) fn bytes(&self) -> usize {
        let taken = self.permit.as_ref().map_or(0, |p| p.num_permits());
        FREE_BYTES + taken * UNIT_BYTES
    }

    /// Whether any of it is from the budget.
    pub(crate) const fn takes(&self) -> bool {
        self.permit.is_some()
    }

    pub(crate) fn add(&mut self, more: OwnedSemaphorePermit) {
        match &mut self.permit {
            Some(permit) => permit.merge(more),
            None => self.permit = Some(more),
        }
    }
}

impl Budget {
    /// A budget of `bytes` (`queued.max.request.bytes`), or the default, and in any case room for
    /// one frame of the largest size.
    pub(crate) fn new(bytes: Option<u64>, frame_bytes_max: usize) -> Self {
        let asked = bytes.map_or(BYTES_DEFAULT, |b| usize::try_from(b).unwrap_or(usize::MAX));
        let units = (asked.max(frame_bytes_max) / UNIT_BYTES + 1).min(Semaphore::MAX_PERMITS / 2);
        let units_max = u32::try_from(units).unwrap_or(u32::MAX);
        Self {
            permits: Arc::new(Semaphore::new(units_max as usize)),
            units_max,
            describes: Arc::new(Semaphore::new(1)),
            reads: Arc::new(Semaphore::new(1)),
            at_peers: Arc::default(),
            patience: PATIENCE,
        }
    }

    /// Waits for the turn of a request that is much work.
    pub(crate) fn turn(
        &self,
        turn: Turn,
    ) -> impl Future<Output = Result<OwnedSemaphorePermit, AcquireError>> + Send + 'static {
        let turns = match turn {
            Turn::Describe => &self.describes,
            Turn::Read => &self.reads,
        };
        Arc::clone(turns).acquire_owned()
    }

    /// From now on memory is held for what is not whole or not read.
    pub(crate) fn at_peer(&self, held_for: HeldFor) -> AtPeer {
        let mut at_peers = lock(&self.at_peers);
        let key = (Instant::now(), at_peers.next);
        at_peers.next += 1;
        let ended = Arc::new(Notify::new());
        at_peers.all.insert(key, (held_for, Arc::clone(&ended)));
        AtPeer {
            key,
            ended,
            all: Arc::clone(&self.at_peers),
        }
    }

    /// Ends the oldest of those, and every answer, that has been there for as long as others may
    /// wait, unless some were ended meanwhile.
    fn end_oldest(&self) {
        let mut at_peers = lock(&self.at_peers);
        if at_peers
            .ended
            .is_some_and(|at| at.elapsed() < self.patience)
        {
            return;
        }
        let mut oldest = true;
        let ended = at_peers.all.extract_if(.., |(since, _), (held_for, _)| {
            let first = std::mem::take(&mut oldest);
            since.elapsed() >= self.patience && (first || *held_for == HeldFor::Answer)
        });
        let ended = ended.map(|(_, (_, ended))| ended.notify_one()).count();
        if ended > 0 {
            at_peers.ended = Some(Instant::now());
        }
    }

    /// Takes `bytes`, cut to the whole budget, if they are free now. If not, whoever has not read
    /// an answer for too long has to give way, as when somebody waits.
    pub(crate) fn take_now(&self, bytes: usize) -> Option<Held> {
        let units = self.units(bytes);
        if units == 0 {
            return Some(Held::default());
        }
        match Arc::clone(&self.permits).try_acquire_many_owned(units) {
            Ok(permit) => Some(Held {
                permit: Some(permit),
            }),
            Err(_) => {
                self.end_oldest();
                None
            }
        }
    }

    /// What `bytes` take of the budget.
    fn units(&self, bytes: usize) -> u32 {
        let units = bytes.saturating_sub(FREE_BYTES).div_ceil(UNIT_BYTES);
        u32::try_from(units).map_or(self.units_max, |units| units.min(self.units_max))
    }

    /// Waits until `held` may be raised to `bytes`, which is cut to the whole budget. The result is
    /// to be added to `held`.
    pub(crate) fn raise(
        &self,
        held: &Held,
        bytes: usize,
    ) -> impl Future<Output = Result<OwnedSemaphorePermit, AcquireError>> + Send + 'static {
        let have = held.permit.as_ref().map_or(0, |p| p.num_permits());
        // A permit is of no more than the whole.
        let have = u32::try_from(have).unwrap_or(self.units_max);
        let more = self.units(bytes).saturating_sub(have);
        let budget = self.clone();
        async move {
            let mut permit = pin!(Arc::clone(&budget.permits).acquire_many_owned(more));
            loop {
                match timeout(budget.patience, permit.as_mut()).await {
                    Ok(permit) => return permit,
                    Err(_) => budget.end_oldest(),
                }
            }
        }
    }

    /// True when `held` covers `bytes`, or the whole budget does not.
    pub(crate) fn covers(&self, held: &Held, bytes: usize) -> bool {
        held.bytes() >= bytes.min(FREE_BYTES + self.units_max as usize * UNIT_BYTES)
    }

    #[cfg(test)]
    pub(crate) fn left_bytes(&self) -> usize {
        self.permits.available_permits() * UNIT_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn small_is_free_and_large_goes_back_when_dropped() {
        let budget = Budget::new(Some(1 << 20), 1 << 20);
        let all = budget.left_bytes();
        let mut held = Held::default();
        assert!(budget.covers(&held, FREE_BYTES));
        assert!(!budget.covers(&held, FREE_BYTES + 1));
        held.add(budget.raise(&held, FREE_BYTES + 5000).await.unwrap());
        assert!(budget.covers(&held, FREE_BYTES + 5000));
        assert_eq!(budget.left_bytes(), all - 5 * 1024);
        held.add(budget.raise(&held, FREE_BYTES + 7000).await.unwrap());
        assert_eq!(budget.left_bytes(), all - 7 * 1024);
        drop(held);
        assert_eq!(budget.left_bytes(), all);
    }

    #[tokio::test]
    async fn more_than_there_is_means_all_of_it() {
        let budget = Budget::new(Some(1), 1000);
        let mut held = Held::default();
        held.add(budget.raise(&held, usize::MAX).await.unwrap());
        assert_eq!(budget.left_bytes(), 0);
        assert!(budget.covers(&held, usize::MAX));
    }

    /// One after the other, hundreds of them would keep others waiting for minutes.
    #[tokio::test]
    async fn answers_that_are_not_read_give_way_together_and_frames_one_by_one() {
        let mut budget = Budget::new(Some(1 << 20), 1 << 20);
        budget.patience = Duration::ZERO;
        let _all = budget.take_now(usize::MAX).unwrap();
        let kinds = [HeldFor::Frame, HeldFor::Frame, HeldFor::Answer];
        let held: Vec<AtPeer> = kinds
            .iter()
            .chain(&kinds)
            .map(|kind| budget.at_peer(*kind))
            .collect();
        assert!(budget.take_now(FREE_BYTES).is_some());
        assert!(budget.take_now(FREE_BYTES + 1).is_none());
        let mut ended = Vec::new();
        for at in &held {
            ended.push(timeout(Duration::ZERO, at.ended()).await.is_ok());
        }
        assert_eq!(ended, [true, false, true, false, false, true]);
    }
}
