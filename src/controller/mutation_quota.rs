//! The quota for changes of topics (KIP-599): partitions created and deleted a second, for each
//! user, client id or pair of them. A token bucket each, which may go below zero: what takes it
//! there is done, and what comes then waits.
//!
//! A bucket that is full is forgotten, because it is as good as a new one; so there is one only for
//! who has asked within the last windows.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};

use super::quotas::{CLIENT_ID, IP, MUTATION_RATE, USER};
use super::{Context, Settings, Soft, View};
use crate::image::{Image, OrderedMap, QuotaEntity, QuotaValues};
use crate::types::{ApiError, ErrorCode, Instant};

/// From this version of CreateTopics on, clients know the error of this quota.
pub(super) const CREATE_TOPICS_STRICT: i16 = 6;
/// The same of DeleteTopics.
pub(super) const DELETE_TOPICS_STRICT: i16 = 5;
/// The same of CreatePartitions.
pub(super) const CREATE_PARTITIONS_STRICT: i16 = 3;

/// Most buckets that are kept. Beyond, the fuller half goes: who is nearest to its full rate gains
/// least by it.
const BUCKETS_MAX: usize = 4_096;

/// Whose bucket it is: user and client id, each empty where it does not matter.
#[derive(Clone, Copy, Debug)]
struct Owner<'a> {
    user: &'a str,
    client_id: &'a str,
}

/// What stands for an owner among the buckets. Clients choose their names, of 32 KiB each: kept as
/// they are, those of all buckets would take hundreds of megabytes.
type Digested = [u8; 32];

impl Owner<'_> {
    fn digested(self) -> Digested {
        let mut hash = Sha256::new();
        // The length keeps apart where one name ends and the other begins.
        hash.update((self.user.len() as u64).to_be_bytes());
        hash.update(self.user);
        hash.update(self.client_id);
        hash.finalize().into()
    }
}

/// All buckets together, whatever the names are.
const BYTES_MAX: usize = 512 << 10;
const _: () = assert!(BUCKETS_MAX * size_of::<(Digested, Bucket)>() <= BYTES_MAX);

type Quotas = OrderedMap<QuotaEntity, QuotaValues>;

/// The buckets of the active controller.
#[derive(Debug, Default)]
pub struct Buckets {
    buckets: BTreeMap<Digested, Bucket>,
    /// The quotas that were looked at last, and how many there are of each kind.
    seen: (Quotas, Kinds),
}

#[derive(Clone, Copy, Debug)]
struct Bucket {
    tokens: f64,
    /// Tokens a second, as of the last use.
    rate: f64,
    /// Most tokens, as of the last use.
    burst: f64,
    filled: Instant,
}

impl Bucket {
    fn tokens_at(&self, now: Instant) -> f64 {
        // Milliseconds of an uptime are exact in a double.
        let seconds = now.since(self.filled) as f64 / 1_000.0;
        self.burst.min(self.tokens + self.rate * seconds)
    }

    fn is_full(&self, now: Instant) -> bool {
        self.tokens_at(now) >= self.burst
    }
}

/// How many entities of each kind have such a quota.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Kinds {
    users: usize,
    client_ids: usize,
    pairs: usize,
}

impl Kinds {
    fn of<'a>(quotas: impl Iterator<Item = (&'a QuotaEntity, &'a QuotaValues)>) -> Self {
        let mut kinds = Self::default();
        for (entity, values) in quotas {
            if !values.contains_key(MUTATION_RATE) || entity.contains_key(IP) {
                continue;
            }
            match (entity.contains_key(USER), entity.contains_key(CLIENT_ID)) {
                (true, true) => kinds.pairs += 1,
                (true, false) => kinds.users += 1,
                (false, true) => kinds.client_ids += 1,
                (false, false) => {}
            }
        }
        kinds
    }

    /// What is counted once `gone` went and `come` came.
    const fn changed(self, gone: Self, come: Self) -> Self {
        Self {
            users: self.users - gone.users + come.users,
            client_ids: self.client_ids - gone.client_ids + come.client_ids,
            pairs: self.pairs - gone.pairs + come.pairs,
        }
    }

    /// The bucket that a request of `user` with `client_id` is charged to, `None` without quotas.
    fn owner<'a>(self, quotas: &Quotas, user: &'a str, client_id: &'a str) -> Option<Owner<'a>> {
        let both = Owner { user, client_id };
        let only_user = Owner {
            client_id: "",
            ..both
        };
        let only_client = Owner { user: "", ..both };
        match (self.users > 0, self.client_ids > 0, self.pairs > 0) {
            (false, false, false) => return None,
            (true, false, false) => return Some(only_user),
            (false, true, false) => return Some(only_client),
            (false, false, true) => return Some(both),
            _ => {}
        }
        // Several kinds: the most precise quota that there is decides what counts together.
        let has = |user, client| rate(quotas, user, client).is_some();
        let (some_user, some_client) = (Some(Some(user)), Some(Some(client_id)));
        Some(if has(some_user, some_client) || has(some_user, ANY) {
            both
        } else if has(some_user, None) {
            only_user
        } else if has(ANY, some_client) || has(ANY, ANY) {
            both
        } else if has(ANY, None) {
            only_user
        } else {
            only_client
        })
    }
}

/// A part of an entity: not there, the default, or a name.
type Part<'a> = Option<Option<&'a str>>;

/// The default entity.
const ANY: Part<'static> = Some(None);

fn rate(quotas: &Quotas, user: Part<'_>, client_id: Part<'_>) -> Option<f64> {
    let mut entity = QuotaEntity::new();
    for (kind, part) in [(USER, user), (CLIENT_ID, client_id)] {
        if let Some(name) = part {
            entity.insert(kind.to_owned(), name.map(str::to_owned));
        }
    }
    quotas.get(&entity)?.get(MUTATION_RATE).copied()
}

/// The rate of a bucket: the first quota that there is, from the most precise on.
fn rate_of(quotas: &Quotas, Owner { user, client_id }: Owner<'_>) -> Option<f64> {
    let some_user: Part<'_> = (!user.is_empty()).then_some(Some(user));
    let some_client: Part<'_> = (!client_id.is_empty()).then_some(Some(client_id));
    let default_user = some_user.and(ANY);
    let default_client = some_client.and(ANY);
    if some_user.is_none() && some_client.is_none() {
        return None;
    }
    rate(quotas, some_user, some_client)
        .or_else(|| rate(quotas, some_user, default_client))
        .or_else(|| rate(quotas, default_user, some_client))
        .or_else(|| rate(quotas, default_user, default_client))
}

impl Buckets {
    fn kinds(&mut self, image: &Image) -> Kinds {
        let quotas = image.quotas();
        let (seen, kinds) = &mut self.seen;
        if !seen.is_same(quotas) {
            let (gone, come) = (seen.apart(quotas), quotas.apart(seen));
            *kinds = kinds.changed(Kinds::of(gone), Kinds::of(come));
            *seen = quotas.clone();
        }
        *kinds
    }

    /// The bucket of an owner at its rate of now, filled up to now.
    fn bucket(&mut self, limit: &Limit, now: Instant) -> &mut Bucket {
        if !self.buckets.contains_key(&limit.owner) && self.buckets.len() >= BUCKETS_MAX {
            self.make_room(now);
        }
        let bucket = self.buckets.entry(limit.owner).or_insert(Bucket {
            tokens: limit.burst,
            rate: limit.rate,
            burst: limit.burst,
            filled: now,
        });
        // A quota that was changed holds from the last use on, as in Java.
        bucket.rate = limit.rate;
        bucket.burst = limit.burst;
        bucket.tokens = bucket.tokens_at(now);
        bucket.filled = now;
        bucket
    }

    fn make_room(&mut self, now: Instant) {
        self.buckets.retain(|_, bucket| !bucket.is_full(now));
        if self.buckets.len() < BUCKETS_MAX {
            return;
        }
        let fill = |bucket: &Bucket| bucket.tokens_at(now) / bucket.burst;
        let mut fills: Vec<f64> = self.buckets.values().map(fill).collect();
        fills.sort_by(f64::total_cmp);
        let median = fills[fills.len() / 2];
        self.buckets.retain(|_, bucket| fill(bucket) < median);
        // All the same: none is better than another.
        if self.buckets.len() >= BUCKETS_MAX {
            self.buckets.clear();
        }
    }
}

#[derive(Clone, Debug)]
struct Limit {
    owner: Digested,
    rate: f64,
    burst: f64,
}

impl Limit {
    fn of(view: &View<'_>, buckets: &mut Buckets, context: &Context) -> Option<Self> {
        // As in Java, a quota holds once it is committed.
        let kinds = buckets.kinds(view.committed);
        let quotas = view.committed.quotas();
        let owner = kinds.owner(quotas, &context.principal.name, &context.client_id)?;
        let rate = rate_of(quotas, owner);
        let owner = owner.digested();
        let Some(rate) = rate else {
            // Who is not limited owes nothing when there is a quota again.
            buckets.buckets.remove(&owner);
            return None;
        };
        Some(Self {
            owner,
            rate,
            burst: windows_seconds(view.settings) * rate,
        })
    }
}

fn windows_seconds(settings: &Settings) -> f64 {
    f64::from(settings.quota_windows) * f64::from(settings.quota_window_seconds)
}

/// What one request is charged, and how long its client is to wait.
#[derive(Debug)]
pub(super) struct Meter {
    limit: Option<Limit>,
    /// Whether what is beyond the quota is refused. Otherwise it is done, and the client delayed.
    strict: bool,
    throttle_ms: i32,
}

impl Meter {
    /// The meter of a request; `strict_since` is the first version whose clients know the error.
    pub(super) fn new(
        view: &View<'_>,
        soft: &mut Soft,
        context: &Context,
        version: i16,
        strict_since: i16,
    ) -> Self {
        Self {
            limit: Limit::of(view, &mut soft.mutations, context),
            strict: version >= strict_since,
            throttle_ms: 0,
        }
    }

    /// Charges for `partitions` that are to be made or deleted.
    ///
    /// # Errors
    /// `THROTTLING_QUOTA_EXCEEDED` when earlier requests have used up more than there is.
    pub(super) fn charge(
        &mut self,
        view: &View<'_>,
        soft: &mut Soft,
        partitions: usize,
    ) -> Result<(), ApiError> {
        let Some(limit) = &self.limit else {
            return Ok(());
        };
        let bucket = soft.mutations.bucket(limit, view.now.instant);
        let rate = limit.rate;
        let wait = |tokens: f64| {
            // Rounded as Java rounds; a double beyond the type becomes its largest number.
            (-tokens / rate * 1_000.0 + 0.5).floor() as i32
        };
        if self.strict && bucket.tokens < 0.0 {
            self.throttle_ms = wait(bucket.tokens);
            return Err(ErrorCode::ThrottlingQuotaExceeded.into());
        }
        // Ten thousand partitions at most.
        bucket.tokens -= partitions as f64;
        if !self.strict && bucket.tokens < 0.0 {
            self.throttle_ms = wait(bucket.tokens);
        }
        Ok(())
    }

    /// For `ThrottleTimeMs` of the answer.
    pub(super) const fn throttle_time_ms(&self) -> i32 {
        self.throttle_ms
    }
}

#[cfg(test)]
mod tests;
