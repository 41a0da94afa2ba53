//! One budget of memory for everything that peers have sent and whose answer is not written yet.
//!
//! Small requests are free: [`FREE_BYTES`] a request and a bounded number of requests a connection.
//! Whatever is larger takes its bytes from the budget *as they arrive*, and what the decoder will
//! need before it decodes. A connection that finds the budget empty stops reading until others give
//! back; the time a frame may take ends a connection that waits too long, so that partial frames
//! which hold all of the budget cannot wait for each other for ever.

use std::sync::Arc;

use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

/// What a request may cost without asking the budget.
pub(crate) const FREE_BYTES: usize = 8 * 1024;
/// The budget when no key sets it.
const BYTES_DEFAULT: usize = 128 * 1024 * 1024;
/// Permits are counted in these, since a semaphore counts 32 bits at a time.
const UNIT_BYTES: usize = 1024;

/// The budget, shared by all connections.
#[derive(Clone, Debug)]
pub(crate) struct Budget {
    permits: Arc<Semaphore>,
    units_max: u32,
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
        }
    }

    /// Waits until `held` may be raised to `bytes`, which is cut to the whole budget. The result is
    /// to be added to `held`.
    pub(crate) fn raise(
        &self,
        held: &Held,
        bytes: usize,
    ) -> impl Future<Output = Result<OwnedSemaphorePermit, AcquireError>> + Send + 'static {
        let have = held.permit.as_ref().map_or(0, |p| p.num_permits());
        let want = bytes.saturating_sub(FREE_BYTES).div_ceil(UNIT_BYTES);
        let want = want.min(self.units_max as usize);
        let more = u32::try_from(want.saturating_sub(have)).unwrap_or(self.units_max);
        Arc::clone(&self.permits).acquire_many_owned(more)
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
}
