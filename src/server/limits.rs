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

use tokio::sync::Notify;
use tokio::time::Instant;

use super::open_files::OpenFiles;

/// Creation rates may be used up this far in advance.
const RATE_WINDOW: Duration = Duration::from_secs(1);

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The limits that all listeners share.
#[derive(Debug)]
pub(crate) struct Limits {
    /// Of the process: never more than `files` leave room for.
    pub(crate) slots: Arc<Slots>,
    pub(crate) files: OpenFiles,
    pub(crate) rate: Rate,
    by_ip: Mutex<ByIp>,
}

/// Connections of single addresses.
#[derive(Debug)]
struct ByIp {
    max: u32,
    overrides: HashMap<IpAddr, u32>,
    counts: HashMap<IpAddr, u32>,
}

/// One connection's place; given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    limits: Arc<Limits>,
    ip: IpAddr,
    _slots: [Slot; 2],
}

/// `max.connections`, of the process or of a listener. It can be changed at any time; connections
/// above a lowered limit stay until they end by themselves. A listener that waits for a connection
/// has taken its place already.
#[derive(Debug)]
pub(crate) struct Slots {
    /// How many are taken, and of how many.
    taken: Mutex<(u32, u32)>,
    freed: Notify,
}

/// One of [`Slots`], given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Slot(Arc<Slots>);

impl Slots {
    pub(crate) fn new(max: u32) -> Arc<Self> {
        Arc::new(Self {
            taken: Mutex::new((0, max)),
            freed: Notify::new(),
        })
    }

    /// Changes the limit.
    pub(crate) fn set(&self, max: u32) {
        locked(&self.taken).1 = max;
        self.freed.notify_one();
    }

    /// A place, if there is one.
    pub(crate) fn try_take(self: &Arc<Self>) -> Option<Slot> {
        let mut taken = locked(&self.taken);
        if taken.0 >= taken.1 {
            return None;
        }
        taken.0 += 1;
        if taken.0 < taken.1 {
            // There is more: whoever waits beside this one finds it.
            self.freed.notify_one();
        }
        Some(Slot(Arc::clone(self)))
    }

    /// Waits for a place.
    pub(crate) async fn take(self: &Arc<Self>) -> Slot {
        loop {
            let freed = self.freed.notified();
            if let Some(slot) = self.try_take() {
                return slot;
            }
            freed.await;
        }
    }

    /// How many places are taken when there is none, why there are no more, and what to do; `key`
    /// is what sets how many there are.
    pub(crate) fn is_full(&self, key: &str) -> String {
        let (taken, max) = *locked(&self.taken);
        format!(
            "{taken} places for connections are taken, and {key} allows {max}: raise it, or look \
             for who holds them"
        )
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut taken = locked(&self.0.taken);
        taken.0 = taken.0.saturating_sub(1);
        drop(taken);
        self.0.freed.notify_one();
    }
}

impl Limits {
    pub(crate) fn new(
        connections_max: u32,
        per_ip_max: u32,
        per_ip_overrides: HashMap<IpAddr, u32>,
        rate_max: u32,
        files: OpenFiles,
    ) -> Self {
        Self {
            slots: Slots::new(connections_max.min(files.connections())),
            files,
            rate: Rate::new(rate_max),
            by_ip: Mutex::new(ByIp {
                max: per_ip_max,
                overrides: per_ip_overrides,
                counts: HashMap::new(),
            }),
        }
    }

    /// Changes the limit of the process.
    pub(crate) fn set_connections_max(&self, max: u32) {
        self.slots.set(max.min(self.files.connections()));
    }

    /// As [`Slots::is_full`] of the process, where files may be what there are too few of.
    pub(crate) fn is_full(&self) -> String {
        let (taken, max) = *locked(&self.slots.taken);
        if max < self.files.connections() {
            return self.slots.is_full("max.connections");
        }
        format!(
            "{taken} places for connections are taken, {}",
            self.files.is_full()
        )
    }

    /// Changes the limits of single addresses.
    pub(crate) fn set_by_ip(&self, max: u32, overrides: HashMap<IpAddr, u32>) {
        let mut by_ip = locked(&self.by_ip);
        by_ip.max = max;
        by_ip.overrides = overrides;
    }

    /// Takes one connection of the rate and tells how long the next one has to wait.
    pub(crate) fn rate_delay(&self, now: Instant) -> Duration {
        self.rate.take(now)
    }

    /// Counts a connection of `ip`, or `None` when that address has its share.
    pub(crate) fn enter(self: &Arc<Self>, ip: IpAddr, slots: [Slot; 2]) -> Option<Place> {
        let ip = ip.to_canonical();
        let mut by_ip = locked(&self.by_ip);
        let max = *by_ip.overrides.get(&ip).unwrap_or(&by_ip.max);
        let count = by_ip.counts.get(&ip).copied().unwrap_or(0);
        if count >= max {
            return None;
        }
        by_ip.counts.insert(ip, count + 1);
        drop(by_ip);
        Some(Place {
            limits: Arc::clone(self),
            ip,
            _slots: slots,
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let counts = &mut locked(&self.limits.by_ip).counts;
        let left = counts
            .get(&self.ip)
            .map_or(0, |count| count.saturating_sub(1));
        if left == 0 {
            counts.remove(&self.ip);
        } else {
            counts.insert(self.ip, left);
        }
    }
}

/// New connections a second.
#[derive(Debug)]
pub(crate) struct Rate(Mutex<Paid>);

#[derive(Debug)]
struct Paid {
    per_second: u32,
    /// When the connections taken so far are paid for.
    until: Option<Instant>,
}

impl Rate {
    pub(crate) const fn new(per_second: u32) -> Self {
        Self(Mutex::new(Paid {
            per_second,
            until: None,
        }))
    }

    /// Changes the rate; what was taken at the old one is forgotten.
    pub(crate) fn set(&self, per_second: u32) {
        *locked(&self.0) = Paid {
            per_second,
            until: None,
        };
    }

    /// Takes one connection and tells how long the next one has to wait.
    pub(crate) fn take(&self, now: Instant) -> Duration {
        let mut paid = locked(&self.0);
        if paid.per_second == 0 {
            return RATE_WINDOW;
        }
        let price = RATE_WINDOW / paid.per_second;
        let until = paid.until.map_or(now, |until| until.max(now)) + price;
        paid.until = Some(until);
        until
            .saturating_duration_since(now)
            .saturating_sub(RATE_WINDOW - price)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NO_LIMIT: OpenFiles = OpenFiles(None);

    fn address(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    async fn pair(limits: &Limits, listener: &Arc<Slots>) -> [Slot; 2] {
        [limits.slots.take().await, listener.take().await]
    }

    #[tokio::test]
    async fn an_address_has_its_share_and_gets_it_back() {
        let overrides = HashMap::from([(address(2), 1)]);
        let limits = Arc::new(Limits::new(100, 2, overrides, u32::MAX, NO_LIMIT));
        let listener = Slots::new(100);
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
        assert!(locked(&limits.by_ip).counts.is_empty());
        assert_eq!(*locked(&limits.slots.taken), (0, 100));
    }

    #[tokio::test]
    async fn a_mapped_address_counts_as_the_plain_one() {
        let limits = Arc::new(Limits::new(100, 1, HashMap::new(), u32::MAX, NO_LIMIT));
        let listener = Slots::new(100);
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

    #[test]
    fn a_place_that_is_missing_tells_which_limit_it_is_and_files_are_never_passed() {
        let files = OpenFiles(Some(8));
        let limits = Limits::new(2, u32::MAX, HashMap::new(), u32::MAX, files);
        let taken: Vec<_> = std::iter::from_fn(|| limits.slots.try_take()).collect();
        assert_eq!(taken.len(), 2);
        let told = limits.is_full();
        let words = "2 places for connections are taken, and max.connections allows 2: raise it";
        assert!(told.starts_with(words), "{told}");
        // More than there are files for: 8 are half for connections.
        limits.set_connections_max(1_000_000);
        let more: Vec<_> = std::iter::from_fn(|| limits.slots.try_take()).collect();
        assert_eq!(taken.len() + more.len(), 4);
        let told = limits.is_full();
        let words = "4 places for connections are taken, as many as the limit of 8 open files \
                     leaves room for: raise";
        assert!(told.starts_with(words), "{told}");
        // Those above a lowered limit are there still.
        limits.set_connections_max(1);
        let told = limits.is_full();
        let words = "4 places for connections are taken, and max.connections allows 1: raise it";
        assert!(told.starts_with(words), "{told}");
    }

    #[tokio::test]
    async fn limits_are_changed_while_connections_are_open() {
        let limits = Arc::new(Limits::new(2, 10, HashMap::new(), u32::MAX, NO_LIMIT));
        let listener = Slots::new(100);
        let first = pair(&limits, &listener).await;
        let second = pair(&limits, &listener).await;
        let waiting = |limits: &Arc<Limits>| {
            let slots = Arc::clone(&limits.slots);
            async move { tokio::time::timeout(Duration::from_millis(50), slots.take()).await }
        };
        assert!(waiting(&limits).await.is_err());
        limits.set_connections_max(1);
        drop(first);
        assert!(
            waiting(&limits).await.is_err(),
            "one is still open, and one may be"
        );
        limits.set_connections_max(3);
        let (one, two) = tokio::join!(waiting(&limits), waiting(&limits));
        assert!(one.is_ok() && two.is_ok());
        limits.set_by_ip(0, HashMap::from([(address(2), 1)]));
        assert!(limits.enter(address(1), second).is_none());
        let rest = [limits.slots.take().await, listener.take().await];
        assert!(limits.enter(address(2), rest).is_some());
    }
}
