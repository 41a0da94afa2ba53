//! Which brokers get the replicas of new partitions: striped over the racks, seeded.
//!
//! Replicas shall be spread over racks, leaders over unfenced brokers, and a broker has at most one
//! replica of a partition. The racks are visited in a circle that starts one rack further with each
//! partition; inside a rack the brokers are visited in a circle too, which turns by one with each
//! partition that meets it. When every unfenced broker could have led once, all circles are
//! shuffled: otherwise the same brokers would follow each other in every partition, and one
//! broker's failure would move all its leaderships to the same neighbour.

use std::collections::BTreeMap;

use crate::types::SplitMix;

/// A broker that may get replicas: registered, not shutting down, and not wholly cordoned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UsableBroker<'a> {
    /// Its id.
    pub id: i32,
    /// Its rack; brokers without one form a rack of their own.
    pub rack: Option<&'a str>,
    /// A fenced broker gets replicas only after the unfenced ones, and never the first.
    pub fenced: bool,
}

/// The replicas of `partitions` new partitions, the preferred leader first.
///
/// # Errors
/// The sentence for `INVALID_REPLICATION_FACTOR` when `replicas` is not positive, no broker is
/// unfenced, or there are fewer brokers than replicas.
pub fn place(
    rng: &mut SplitMix,
    brokers: &[UsableBroker<'_>],
    partitions: usize,
    replicas: usize,
) -> Result<Vec<Vec<i32>>, String> {
    if replicas == 0 {
        return Err(format!(
            "Invalid replication factor {replicas}: the replication factor must be positive."
        ));
    }
    let mut racks = Racks::new(rng, brokers);
    if racks.unfenced_count == 0 {
        return Err(
            "All brokers are currently fenced, or have all their log directories cordoned.".into(),
        );
    }
    if replicas > brokers.len() {
        return Err(format!(
            "The target replication factor of {replicas} cannot be reached because only {} \
             broker(s) are registered or some brokers have all their log directories cordoned.",
            brokers.len()
        ));
    }
    Ok((0..partitions).map(|_| racks.next(rng, replicas)).collect())
}

/// A circle of brokers that turns by one with each round that uses it.
#[derive(Default)]
struct Circle {
    ids: Vec<i32>,
    /// Where the circle starts in this round.
    start: usize,
    /// How many were taken in this round.
    taken: usize,
    /// The last round that used the circle.
    round: usize,
}

impl Circle {
    fn initialize(&mut self, rng: &mut SplitMix) {
        self.ids.sort_unstable();
        self.start = rng.below(self.ids.len() as u64) as usize;
    }

    fn take(&mut self, round: usize) -> Option<i32> {
        if self.ids.is_empty() {
            return None;
        }
        if self.round != round {
            self.round = round;
            self.taken = 0;
            self.start = (self.start + 1) % self.ids.len();
        }
        if self.taken == self.ids.len() {
            return None;
        }
        let id = self.ids[(self.start + self.taken) % self.ids.len()];
        self.taken += 1;
        Some(id)
    }
}

#[derive(Default)]
struct Rack {
    unfenced: Circle,
    fenced: Circle,
}

struct Racks {
    racks: Vec<Rack>,
    /// Indexes of `racks` in the order of visits.
    order: Vec<usize>,
    /// The index of `order` that the next partition starts with; may be one past the end.
    start: usize,
    round: usize,
    unfenced_count: usize,
}

impl Racks {
    fn new(rng: &mut SplitMix, brokers: &[UsableBroker<'_>]) -> Self {
        let mut by_name: BTreeMap<Option<&str>, Rack> = BTreeMap::new();
        for broker in brokers {
            let rack = by_name.entry(broker.rack).or_default();
            let circle = if broker.fenced {
                &mut rack.fenced
            } else {
                &mut rack.unfenced
            };
            circle.ids.push(broker.id);
        }
        let mut racks: Vec<Rack> = by_name.into_values().collect();
        for rack in &mut racks {
            rack.fenced.initialize(rng);
            rack.unfenced.initialize(rng);
        }
        Self {
            order: (0..racks.len()).collect(),
            start: rng.below(racks.len() as u64) as usize,
            round: 0,
            unfenced_count: brokers.iter().filter(|broker| !broker.fenced).count(),
            racks,
        }
    }

    /// The replicas of the next partition. The caller has checked that there is an unfenced broker
    /// and that there are enough brokers.
    fn next(&mut self, rng: &mut SplitMix, replicas: usize) -> Vec<i32> {
        if self.round == self.unfenced_count && self.unfenced_count > 1 {
            self.shuffle(rng);
            self.round = 0;
        }
        if self.start == self.order.len() {
            self.start = 0;
        }
        let mut placed = Vec::with_capacity(replicas.min(self.racks.len()));
        let leader_at = self.place_leader(&mut placed);
        // The rack of the leader is passed over the first time it comes round.
        let mut skip = Some(leader_at);
        let mut at = self.start;
        while placed.len() < replicas {
            if skip == Some(at) {
                skip = None;
            } else {
                let rack = &mut self.racks[self.order[at]];
                let id = rack.unfenced.take(self.round);
                placed.extend(id.or_else(|| rack.fenced.take(self.round)));
            }
            at = (at + 1) % self.order.len();
        }
        self.round += 1;
        self.start += 1;
        placed
    }

    /// Places the leader: the next unfenced broker of the first rack, from the start, that has one
    /// left. Returns the index of that rack in `order`.
    fn place_leader(&mut self, placed: &mut Vec<i32>) -> usize {
        let mut at = self.start;
        loop {
            if let Some(id) = self.racks[self.order[at]].unfenced.take(self.round) {
                placed.push(id);
                return at;
            }
            at = (at + 1) % self.order.len();
        }
    }

    fn shuffle(&mut self, rng: &mut SplitMix) {
        shuffle(rng, &mut self.order);
        for rack in &mut self.racks {
            shuffle(rng, &mut rack.fenced.ids);
            shuffle(rng, &mut rack.unfenced.ids);
        }
    }
}

/// Fisher and Yates.
pub(super) fn shuffle<T>(rng: &mut SplitMix, items: &mut [T]) {
    for last in (1..items.len()).rev() {
        items.swap(last, rng.below(last as u64 + 1) as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn brokers<'a>(racks: &[(Option<&'a str>, &[i32], &[i32])]) -> Vec<UsableBroker<'a>> {
        let of = |rack, ids: &[i32], fenced| {
            let of_id = move |id: &i32| UsableBroker {
                id: *id,
                rack,
                fenced,
            };
            ids.iter().map(of_id).collect::<Vec<_>>()
        };
        let both = |(rack, unfenced, fenced): &(Option<&'a str>, &[i32], &[i32])| {
            [of(*rack, unfenced, false), of(*rack, fenced, true)].concat()
        };
        racks.iter().flat_map(both).collect()
    }

    fn placed(seed: u64, usable: &[UsableBroker<'_>], count: usize, rf: usize) -> Vec<Vec<i32>> {
        place(&mut SplitMix::new(seed), usable, count, rf).unwrap()
    }

    #[test]
    fn the_same_seed_places_the_same_replicas() {
        let usable = brokers(&[(None, &[0, 1, 2, 3, 4], &[])]);
        assert_eq!(placed(7, &usable, 20, 3), placed(7, &usable, 20, 3));
        assert_ne!(placed(7, &usable, 20, 3), placed(8, &usable, 20, 3));
    }

    #[test]
    fn a_broker_never_has_two_replicas_of_a_partition() {
        let usable = brokers(&[
            (None, &[1, 2], &[3]),
            (Some("a"), &[10], &[11, 12]),
            (Some("b"), &[], &[20]),
        ]);
        for seed in 0..200 {
            for rf in 1..=7 {
                for replicas in placed(seed, &usable, 13, rf) {
                    let mut unique = replicas.clone();
                    unique.sort_unstable();
                    unique.dedup();
                    assert_eq!(unique.len(), rf, "seed {seed} rf {rf}: {replicas:?}");
                }
            }
        }
    }

    #[test]
    fn the_preferred_leader_is_unfenced() {
        let usable = brokers(&[(Some("a"), &[1], &[2]), (Some("b"), &[], &[3])]);
        for seed in 0..50 {
            for replicas in placed(seed, &usable, 10, 3) {
                assert_eq!(replicas[0], 1);
            }
        }
    }

    #[test]
    fn replicas_are_spread_over_all_racks_before_a_rack_gets_a_second_one() {
        let racks: [(Option<&str>, &[i32], &[i32]); 3] = [
            (Some("a"), &[1, 2, 3], &[]),
            (Some("b"), &[11, 12, 13], &[]),
            (Some("c"), &[21, 22, 23], &[]),
        ];
        let usable = brokers(&racks);
        for replicas in placed(3, &usable, 90, 3) {
            let mut racks: Vec<i32> = replicas.iter().map(|id| id / 10).collect();
            racks.sort_unstable();
            assert_eq!(racks, [0, 1, 2]);
        }
    }

    #[test]
    fn leaders_are_even_over_the_unfenced_brokers_of_one_rack() {
        let usable = brokers(&[(None, &[0, 1, 2, 3], &[4])]);
        let mut led = [0; 4];
        for replicas in placed(5, &usable, 400, 2) {
            led[usize::try_from(replicas[0]).unwrap()] += 1;
        }
        assert_eq!(led, [100; 4]);
    }

    #[test]
    fn refusals_have_a_sentence() {
        let rng = &mut SplitMix::new(1);
        let two = brokers(&[(None, &[1], &[2])]);
        let cases = [
            (place(rng, &two, 1, 0), "must be positive"),
            (place(rng, &[], 1, 1), "All brokers are currently fenced"),
            (
                place(rng, &brokers(&[(None, &[], &[2])]), 1, 1),
                "currently fenced",
            ),
            (place(rng, &two, 1, 3), "only 2 broker(s) are registered"),
        ];
        for (result, part) in cases {
            let message = result.unwrap_err();
            assert!(message.contains(part), "{message}");
        }
    }
}
