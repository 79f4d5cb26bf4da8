//! Random numbers that stay put: named streams, and fates that are a function of place and time.
//!
//! Adding a component, or a draw for another purpose, never moves anybody else's draws. Protocols compared at
//! one seed meet the same radio, because a [`Fate`] does not count how often it was asked.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use crate::direction::{Direction, Station};
use crate::time::Duration;

const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// The finaliser of SplitMix64 (Steele, Lea, Flood 2014): every input bit reaches every output bit.
#[inline]
const fn mix(mut z: u64) -> u64 {
    z ^= z >> 30;
    z = z.wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z ^= z >> 27;
    z = z.wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Output `n` (from 0) of a SplitMix64 generator started at `seed`.
#[inline]
pub const fn splitmix64(seed: u64, n: u64) -> u64 {
    mix(seed.wrapping_add(n.wrapping_add(1).wrapping_mul(GOLDEN)))
}

/// A seed for `name` under the run's `seed`.
pub fn derive(seed: u64, name: &str) -> u64 {
    // FNV-1a over the name, then mixed with the seed: names differ in few bits, seeds too.
    let hash =
        name.bytes().fold(0xCBF2_9CE4_8422_2325_u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01B3));
    mix(mix(seed ^ GOLDEN).wrapping_add(hash))
}

#[inline]
fn unit(bits: u64) -> f64 {
    (bits >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

/// A sequence of random numbers with a name: one per component and purpose.
#[derive(Clone, Debug)]
pub struct Stream(Xoshiro256PlusPlus);

impl Stream {
    /// The stream called `name` (for example `"radio.downlink"`) of the run with `seed`.
    pub fn new(seed: u64, name: &str) -> Self {
        Stream(Xoshiro256PlusPlus::seed_from_u64(derive(seed, name)))
    }
    /// The generator, for laws that a library draws.
    pub fn rng(&mut self) -> &mut Xoshiro256PlusPlus {
        &mut self.0
    }
    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }
    /// Uniform in 0..1, 1 excluded.
    pub fn unit(&mut self) -> f64 {
        unit(self.bits())
    }
    /// Yes with probability `p`.
    pub fn chance(&mut self, p: f64) -> bool {
        self.unit() < p
    }
    /// Uniform in `0..n`; 0 if `n` is 0.
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(n)) >> 64) as u64
    }
    /// Exponentially distributed with this mean.
    pub fn exponential(&mut self, mean: Duration) -> Duration {
        Duration::from_secs_f64(-(1.0 - self.unit()).ln() * mean.as_secs_f64())
    }
}

/// Random numbers addressed by position instead of by order (counter-based).
///
/// On radio bearers the fate of a block depends on where in time and in the grid it lies, sent or not; on wires
/// on the number of the packet.
#[derive(Clone, Copy, Debug)]
pub struct Fate(u64);

impl Fate {
    /// The fates called `name` of the run with `seed`.
    pub fn new(seed: u64, name: &str) -> Self {
        Fate(derive(seed, name))
    }
    /// Fates from a ready-made seed: output `n` is [`splitmix64`]`(seed, n)`, as other people's records state it.
    pub const fn from_raw_seed(seed: u64) -> Self {
        Fate(seed)
    }
    /// Uniform in 0..1 for the `n`-th packet.
    #[inline]
    pub fn nth(&self, n: u64) -> f64 {
        unit(splitmix64(self.0, n))
    }
    /// Uniform in 0..1 for the block at `place` of grid position `slot` (TTI or frame number), for one station
    /// and direction.
    #[inline]
    pub fn at(&self, slot: u64, direction: Direction, station: Station, place: u32) -> f64 {
        self.lane(direction, station, place).nth(slot)
    }
    /// The fates of one station, direction and place: `lane(..).nth(slot)` is `at(slot, ..)`, with the constant part
    /// worked out once.
    #[inline]
    pub fn lane(&self, direction: Direction, station: Station, place: u32) -> Fate {
        let lane = u64::from(station.0) << 33 | (direction as u64) << 32 | u64::from(place);
        Fate(mix(self.0 ^ lane.wrapping_mul(GOLDEN)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splitmix64_gives_the_published_sequence() {
        // First outputs for seed 1234567, printed by the reference implementation.
        let first: Vec<u64> = (0..3).map(|n| splitmix64(1_234_567, n)).collect();
        assert_eq!(first, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn names_and_seeds_give_unrelated_streams() {
        let mean = |seed, name| {
            let mut s = Stream::new(seed, name);
            (0..10_000).map(|_| s.unit()).sum::<f64>() / 10_000.0
        };
        assert!((mean(1, "a") - 0.5).abs() < 0.01);
        assert_ne!(Stream::new(1, "a").bits(), Stream::new(1, "b").bits());
        assert_ne!(Stream::new(1, "a").bits(), Stream::new(2, "a").bits());
    }

    #[test]
    fn fates_are_uniform_along_every_axis() {
        let fate = Fate::new(1, "radio");
        let axes: [&dyn Fn(u32) -> f64; 3] = [
            &|i| fate.at(u64::from(i), Direction::Downlink, Station(0), 0),
            &|i| fate.at(5, Direction::Uplink, Station(0), i),
            &|i| fate.at(5, Direction::Uplink, Station(i as u16), 3),
        ];
        for axis in axes {
            let mean = (0..20_000).map(axis).sum::<f64>() / 20_000.0;
            assert!((mean - 0.5).abs() < 0.01, "{mean}");
        }
    }
}
