//! Randomness that is the same on every machine: integers, and two IEEE operations that are
//! rounded correctly everywhere (multiplication and square root). No function of the mathematics
//! library is called, since those differ in their last bit from one system to the next.

/// Returns a bijective scrambling of 64 bits (the finalizer of Steele, Lea and Flood's
/// `SplitMix64`).
pub(super) fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// `SplitMix64`: a counter in golden-ratio steps, scrambled.
pub(crate) struct Random {
    state: u64,
}

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.state)
    }

    /// Returns a number below `bound`.
    pub(super) fn below(&mut self, bound: u32) -> u32 {
        scale(self.next(), bound)
    }
}

/// Brings the high half of `bits` into `0..bound`.
pub(super) fn scale(bits: u64, bound: u32) -> u32 {
    (((bits >> 32) * u64::from(bound)) >> 32) as u32
}

/// Number of entries that one octave of [`Zipf`] is divided into, as a power of two.
const OCTAVE_BITS: u32 = 10;

/// Ranks `1..=n` under Zipf's law with exponent 1, by the continuous inverse `n^u` for `u` in
/// `[0, 1)`: `n^u = 2^(u log2 n)`, where the power of two comes from a table of one octave with
/// linear interpolation (relative error below 10^-7).
pub(super) struct Zipf {
    /// `log2 n` with 32 fractional bits.
    log2: u64,
    /// `2^(i / 1024)` with 31 fractional bits, for `i` in `0..=1024`.
    octave: Vec<u64>,
}

impl Zipf {
    pub(super) fn new(n: u32) -> Self {
        let mut roots = [0.0_f64; OCTAVE_BITS as usize];
        let mut root = 2.0_f64;
        for slot in roots.iter_mut().rev() {
            root = root.sqrt();
            *slot = root;
        }
        let entry = |index: u32| {
            let mut power = 1.0_f64;
            for (bit, root) in roots.iter().enumerate() {
                if index >> bit & 1 == 1 {
                    power *= root;
                }
            }
            if index >> OCTAVE_BITS == 1 { 1 << 32 } else { fixed_point(power) }
        };
        Self { log2: log2(n.max(1)), octave: (0..=1 << OCTAVE_BITS).map(entry).collect() }
    }

    pub(super) fn draw(&self, random: &mut Random) -> u64 {
        let exponent = ((u128::from(random.next()) * u128::from(self.log2)) >> 64) as u64;
        let fraction = exponent & 0xffff_ffff;
        let rest_bits = 32 - OCTAVE_BITS;
        let index = (fraction >> rest_bits) as usize;
        let rest = fraction & ((1 << rest_bits) - 1);
        let (low, high) = (self.octave[index], self.octave[index + 1]);
        let mantissa = low + (((high - low) * rest) >> rest_bits);
        (mantissa << (exponent >> 32)) >> 31
    }
}

/// Returns a number in `[1, 2)` with 31 fractional bits, rounded down.
#[expect(clippy::cast_sign_loss, reason = "the argument is positive")]
fn fixed_point(value: f64) -> u64 {
    (value * 2_147_483_648.0) as u64
}

/// `log2 n` with 32 fractional bits, rounded down: the digits come from repeated squaring.
fn log2(n: u32) -> u64 {
    let mut digits = u64::from(n.ilog2());
    let mut x = u64::from(n) << n.leading_zeros() << 32;
    for _ in 0..32 {
        let square = u128::from(x) * u128::from(x);
        let carry = (square >> 127) as u64;
        digits = digits << 1 | carry;
        x = (square >> (63 + carry)) as u64;
    }
    digits
}

/// Returns one of `n` hosts with a skewed popularity: the cube of a uniform number, so that the
/// first tenth of the hosts gets nearly half of the draws.
pub(super) fn skewed(bits: u64, n: u32) -> u32 {
    let uniform = bits >> 32;
    let cube = (((uniform * uniform) >> 32) * uniform) >> 32;
    ((cube * u64::from(n)) >> 32) as u32
}

/// Returns a bijection of the numbers below `2^bits` (at least two bits) that scatters neighbours.
pub(super) fn scatter(value: u32, bits: u32) -> u32 {
    let mask = (1_u32 << bits) - 1;
    let value = value.wrapping_mul(0x9e37_79b1) & mask;
    let value = value ^ (value >> (bits / 2));
    value.wrapping_mul(0x85eb_ca6b) & mask
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithms_of_powers_of_two_are_whole() {
        assert_eq!(log2(1), 0);
        assert_eq!(log2(1 << 20), 20 << 32);
        assert!(log2(3).abs_diff(6_807_362_105) <= 2);
    }

    #[test]
    fn zipf_gives_every_octave_the_same_share() {
        let (zipf, mut random) = (Zipf::new(1 << 16), Random::new(1));
        let mut octaves = [0_u32; 17];
        for _ in 0..160_000 {
            let rank = zipf.draw(&mut random);
            assert!((1..=1 << 16).contains(&rank));
            octaves[rank.ilog2() as usize] += 1;
        }
        // A share is 10,000 with a standard deviation of 97.
        assert!(octaves[..16].iter().all(|&count| (9_500..10_500).contains(&count)), "{octaves:?}");
    }

    #[test]
    fn zipf_of_one_rank_draws_only_that() {
        let (zipf, mut random) = (Zipf::new(1), Random::new(3));
        assert!((0..100).all(|_| zipf.draw(&mut random) == 1));
    }

    #[test]
    fn scattering_loses_no_number() {
        for bits in [2, 7, 12] {
            let mut seen: Vec<u32> = (0..1 << bits).map(|value| scatter(value, bits)).collect();
            seen.sort_unstable();
            assert!(seen.into_iter().eq(0..1 << bits), "{bits} bits");
        }
    }
}
