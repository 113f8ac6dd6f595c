//! Random numbers of the experiments, by another function than those that the filters hash with.

use crate::generate::random::Random as SplitMix;

/// `SplitMix64` (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA
/// 2014), divided into streams.
pub(super) struct Random(SplitMix);

impl Random {
    /// Returns the stream `stream` of a seed; streams of different numbers have nothing in common.
    pub(super) fn new(seed: u64, stream: u64) -> Self {
        let first = SplitMix::new(seed ^ 0x5851_f42d_4c95_7f2d).next();
        Self(SplitMix::new(first ^ stream.wrapping_mul(0xd605_bbb5_8c8a_bc03)))
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0.next()
    }

    /// Uniform below `bound` (bias below bound / 2^64).
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        crate::hashing::reduce(self.next(), bound)
    }

    /// Uniform in [0, 1).
    pub(super) fn share(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}
