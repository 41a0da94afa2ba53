//! A small seeded generator for the pure rooms: the seed comes in as an argument, so the same seed
//! and the same inputs give the same run. Not for secrets.

use uuid::Uuid;

/// SplitMix64 (Steele, Lea, Flood 2014): one add and two multiplies a draw, any seed is good.
#[derive(Clone, Debug)]
pub struct SplitMix(u64);

impl SplitMix {
    /// A generator that is wholly determined by `seed`.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub const fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number in `0..bound`; 0 when `bound` is 0. The bias of the multiply-shift is below
    /// 2^-32 for the bounds used here (brokers, milliseconds).
    pub const fn below(&mut self, bound: u64) -> u64 {
        ((self.next_u64() as u128 * bound as u128) >> 64) as u64
    }

    /// A random (version 4) uuid whose text form does not start with `-`: like Kafka, so that an
    /// id can be an argument of a command line.
    pub fn uuid(&mut self) -> Uuid {
        loop {
            let high = u128::from(self.next_u64());
            let low = u128::from(self.next_u64());
            let id = uuid::Builder::from_u128((high << 64) | low)
                .with_version(uuid::Version::Random)
                .with_variant(uuid::Variant::RFC4122)
                .into_uuid();
            // 62 is `-` in URL-safe base64.
            if id.as_bytes()[0] >> 2 != 62 {
                return id;
            }
        }
    }
}
