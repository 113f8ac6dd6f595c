//! Random numbers of the experiments, by another function than those that the filters hash with.

/// `SplitMix64` (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA
/// 2014).
pub(super) struct Random(u64);

impl Random {
    /// Returns the stream `stream` of a seed; streams of different numbers have nothing in common.
    pub(super) fn new(seed: u64, stream: u64) -> Self {
        let mut random = Self(seed ^ 0x5851_f42d_4c95_7f2d);
        let first = random.next();
        Self(first ^ stream.wrapping_mul(0xd605_bbb5_8c8a_bc03))
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
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
