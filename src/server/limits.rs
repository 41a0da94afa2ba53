//! How many connections there may be: of the process, of one listener, of one address, and how many
//! new ones a second (`max.connections`, `max.connections.per.ip`, its overrides,
//! `max.connection.creation.rate`).
//!
//! As in Java, too many connections of one address are closed at once, while the other limits make
//! the listener wait before it accepts: the peer then waits in the backlog.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// Creation rates may be used up this far in advance.
const RATE_WINDOW: Duration = Duration::from_secs(1);

/// The limits that all listeners share.
#[derive(Debug)]
pub(crate) struct Limits {
    slots: Arc<Semaphore>,
    per_ip_max: u32,
    per_ip_overrides: HashMap<IpAddr, u32>,
    by_ip: Mutex<HashMap<IpAddr, u32>>,
    rate: Rate,
}

/// One connection's place; given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    limits: Arc<Limits>,
    ip: IpAddr,
    _slots: [OwnedSemaphorePermit; 2],
}

/// `max.connections` as a number of permits.
pub(crate) fn slots(connections_max: u32) -> Arc<Semaphore> {
    let permits = usize::try_from(connections_max).unwrap_or(usize::MAX);
    Arc::new(Semaphore::new(permits.min(Semaphore::MAX_PERMITS)))
}

impl Limits {
    pub(crate) fn new(
        connections_max: u32,
        per_ip_max: u32,
        per_ip_overrides: HashMap<IpAddr, u32>,
        rate_max: u32,
    ) -> Self {
        Self {
            slots: slots(connections_max),
            per_ip_max,
            per_ip_overrides,
            by_ip: Mutex::new(HashMap::new()),
            rate: Rate::new(rate_max),
        }
    }

    /// Waits for a place in the process.
    pub(crate) async fn slot(&self) -> OwnedSemaphorePermit {
        let permit = Arc::clone(&self.slots).acquire_owned().await;
        permit.expect("the semaphore is never closed")
    }

    /// Takes one connection of the rate and tells how long the next one has to wait.
    pub(crate) fn rate_delay(&self, now: Instant) -> Duration {
        self.rate.take(now)
    }

    /// Counts a connection of `ip`, or `None` when that address has its share.
    pub(crate) fn enter(
        self: &Arc<Self>,
        ip: IpAddr,
        slots: [OwnedSemaphorePermit; 2],
    ) -> Option<Place> {
        let ip = ip.to_canonical();
        let max = *self.per_ip_overrides.get(&ip).unwrap_or(&self.per_ip_max);
        let mut by_ip = self.lock();
        let count = by_ip.get(&ip).copied().unwrap_or(0);
        if count >= max {
            return None;
        }
        by_ip.insert(ip, count + 1);
        drop(by_ip);
        Some(Place {
            limits: Arc::clone(self),
            ip,
            _slots: slots,
        })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<IpAddr, u32>> {
        self.by_ip.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut by_ip = self.limits.lock();
        let left = by_ip
            .get(&self.ip)
            .map_or(0, |count| count.saturating_sub(1));
        if left == 0 {
            by_ip.remove(&self.ip);
        } else {
            by_ip.insert(self.ip, left);
        }
    }
}

/// New connections a second.
#[derive(Debug)]
pub(crate) struct Rate {
    per_second: u32,
    /// When the connections taken so far are paid for.
    paid: Mutex<Option<Instant>>,
}

impl Rate {
    pub(crate) const fn new(per_second: u32) -> Self {
        Self {
            per_second,
            paid: Mutex::new(None),
        }
    }

    /// Takes one connection and tells how long the next one has to wait.
    pub(crate) fn take(&self, now: Instant) -> Duration {
        if self.per_second == 0 {
            return RATE_WINDOW;
        }
        let price = RATE_WINDOW / self.per_second;
        let mut paid = self.paid.lock().unwrap_or_else(PoisonError::into_inner);
        let until = paid.map_or(now, |paid| paid.max(now)) + price;
        *paid = Some(until);
        until
            .saturating_duration_since(now)
            .saturating_sub(RATE_WINDOW - price)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    async fn pair(limits: &Limits, listener: &Arc<Semaphore>) -> [OwnedSemaphorePermit; 2] {
        let own = Arc::clone(listener).acquire_owned().await.unwrap();
        [limits.slot().await, own]
    }

    #[tokio::test]
    async fn an_address_has_its_share_and_gets_it_back() {
        let overrides = HashMap::from([(address(2), 1)]);
        let limits = Arc::new(Limits::new(100, 2, overrides, u32::MAX));
        let listener = slots(100);
        let mut places = Vec::new();
        for (last, enters) in [(1, true), (1, true), (1, false), (2, true), (2, false)] {
            let slots = pair(&limits, &listener).await;
            let place = limits.enter(address(last), slots);
            assert_eq!(place.is_some(), enters, "address {last}");
            places.extend(place);
        }
        places.clear();
        let slots = pair(&limits, &listener).await;
        assert!(limits.enter(address(2), slots).is_some());
        assert!(limits.lock().is_empty());
        assert_eq!(limits.slots.available_permits(), 100);
    }

    #[tokio::test]
    async fn a_mapped_address_counts_as_the_plain_one() {
        let limits = Arc::new(Limits::new(100, 1, HashMap::new(), u32::MAX));
        let listener = slots(100);
        let mapped: IpAddr = "::ffff:10.0.0.1".parse().unwrap();
        let first = limits.enter(address(1), pair(&limits, &listener).await);
        assert!(first.is_some());
        assert!(
            limits
                .enter(mapped, pair(&limits, &listener).await)
                .is_none()
        );
    }

    #[test]
    fn a_rate_lets_a_second_pass_in_advance_then_spaces_out() {
        let now = Instant::now();
        let rate = Rate::new(10);
        let waits: Vec<_> = (0..12).map(|_| rate.take(now).as_millis()).collect();
        assert_eq!(waits, [0, 0, 0, 0, 0, 0, 0, 0, 0, 100, 200, 300]);
        let later = now + Duration::from_secs(5);
        assert_eq!(rate.take(later), Duration::ZERO);
    }

    #[test]
    fn a_huge_rate_never_waits() {
        let now = Instant::now();
        let rate = Rate::new(i32::MAX as u32);
        assert!((0..1000).all(|_| rate.take(now) == Duration::ZERO));
    }
}
