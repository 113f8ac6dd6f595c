//! The positions of a digest in a filter.
//!
//! A digest is uniform already; a filter needs several independent numbers from it. Each comes from
//! a folded multiplication (the two halves of a 64 x 64 -> 128 bit product, combined by XOR) of the
//! digest and a constant per stream, which costs about a nanosecond.

use super::{Digest, ProductWork, Products, run_with_products};

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
const FOLD: u64 = 0xbf58_476d_1ce4_e5b9;

/// Returns a number that depends on the whole digest and on `stream`. Different streams of one
/// digest are independent for all uses here (shard, line, bits of the line, …).
#[inline]
pub const fn mix(digest: Digest, stream: u64) -> u64 {
    fold(digest.value() ^ self::stream(stream), FOLD)
}

/// Replaces each of many digests, given by their values, by its [`mix`].
#[inline(always)]
pub(crate) fn mix_all<P: Products>(digests: &mut [u64], stream: u64) {
    let stream = self::stream(stream);
    for digest in digests {
        *digest = P::fold(*digest ^ stream, FOLD);
    }
}

#[inline]
const fn stream(number: u64) -> u64 {
    GOLDEN.wrapping_mul(number.wrapping_add(1))
}

/// Maps a uniform number onto `0..n` by multiplication and shift: no division, bias below n / 2^64.
#[inline]
pub const fn reduce(value: u64, n: u64) -> u64 {
    ((value as u128 * n as u128) >> 64) as u64
}

#[inline]
pub(super) const fn fold(a: u64, b: u64) -> u64 {
    let product = a as u128 * b as u128;
    product as u64 ^ (product >> 64) as u64
}

/// Iterator over the k independent positions of a digest in an array: one hash function each, as in
/// the textbook filter (positions may coincide).
#[derive(Clone, Debug)]
pub struct Probes {
    state: u64,
    left: u32,
    positions: u64,
}

impl Probes {
    /// Creates `count` positions in `0..positions`. `function_set` chooses among independent
    /// families of hash functions, for structures with several arrays.
    #[inline]
    pub const fn new(digest: Digest, function_set: u64, count: u32, positions: u64) -> Self {
        Self { state: mix(digest, 0x100 + function_set), left: count, positions }
    }
}

impl Iterator for Probes {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        if self.left == 0 {
            return None;
        }
        self.left -= 1;
        self.state = self.state.wrapping_add(GOLDEN);
        Some(reduce(address(self.state), self.positions))
    }
}

/// The positions of [`Probes`] by their number, for loops over several digests at once.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NumberedProbes {
    state: u64,
    positions: u64,
}

impl NumberedProbes {
    /// Creates the positions of [`Probes::new`], for any number of them.
    #[inline]
    pub(crate) const fn new(digest: Digest, function_set: u64, positions: u64) -> Self {
        Self { state: mix(digest, 0x100 + function_set), positions }
    }

    /// Returns position `number`, from 0 on.
    #[inline]
    pub(crate) const fn position(self, number: u32) -> u64 {
        reduce(self.address(number), self.positions)
    }

    /// Returns the address that [`NumberedProbes::position`] reduces to the positions.
    #[inline]
    pub(crate) const fn address(self, number: u32) -> u64 {
        address(self.state.wrapping_add(step_to(number)))
    }

    /// Replaces many digests, given by their values, by their states for
    /// [`NumberedProbes::positions_of`].
    #[inline(always)]
    pub(crate) fn states_of<P: Products>(digests: &mut [u64], function_set: u64) {
        mix_all::<P>(digests, 0x100 + function_set);
    }

    /// Computes position `number` of each of many digests from their states.
    #[inline(always)]
    pub(crate) fn positions_of<P: Products>(
        states: &[u64],
        number: u32,
        positions: u64,
        found: &mut [u64],
    ) {
        let step = step_to(number);
        for (&state, found) in states.iter().zip(found) {
            let state = state.wrapping_add(step);
            *found = P::reduce(P::fold(state, FOLD ^ state.rotate_left(32)), positions);
        }
    }
}

/// The positions of [`Probes`] of up to [`ProbeBatch::MOST`] digests at once, computed by vectors
/// if the machine has them.
pub(crate) struct ProbeBatch {
    states: [u64; Self::MOST],
    len: usize,
}

impl ProbeBatch {
    /// Most digests.
    pub(crate) const MOST: usize = 128;

    /// Takes the first [`Self::MOST`] of these digests, with the family of hash functions
    /// `function_set`.
    pub(crate) fn new(digests: impl Iterator<Item = Digest>, function_set: u64) -> Self {
        let mut states = [0; Self::MOST];
        let mut len = 0_usize;
        for (state, digest) in states.iter_mut().zip(digests) {
            *state = digest.value();
            len += 1;
        }
        // Whole groups, so that no vector is half full.
        let width = len.next_multiple_of(GROUP);
        run_with_products(u32::MAX.into(), States(&mut states[..width], function_set));
        Self { states, len }
    }

    /// Computes position `number` of each digest in `0..positions`, as
    /// [`NumberedProbes::position`].
    pub(crate) fn find(&self, number: u32, positions: u64, found: &mut [u64; Self::MOST]) {
        let width = self.len.next_multiple_of(GROUP);
        let work = Positions {
            states: &self.states[..width],
            number,
            places: positions,
            found: &mut found[..width],
        };
        run_with_products(positions, work);
    }
}

/// Words of the largest vectors.
const GROUP: usize = 8;

struct States<'a>(&'a mut [u64], u64);

impl ProductWork for States<'_> {
    #[inline(always)]
    fn run_with<P: Products>(self) {
        NumberedProbes::states_of::<P>(self.0, self.1);
    }
}

struct Positions<'a> {
    states: &'a [u64],
    number: u32,
    places: u64,
    found: &'a mut [u64],
}

impl ProductWork for Positions<'_> {
    #[inline(always)]
    fn run_with<P: Products>(self) {
        NumberedProbes::positions_of::<P>(self.states, self.number, self.places, self.found);
    }
}

#[inline]
const fn step_to(number: u32) -> u64 {
    GOLDEN.wrapping_mul(number as u64 + 1)
}

#[inline]
const fn address(state: u64) -> u64 {
    fold(state, FOLD ^ state.rotate_left(32))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hashing::{Digester, HalfProducts};

    #[test]
    fn positions_are_in_range_and_reproducible() {
        let digest = Digester::new(0).digest(b"x");
        let first: Vec<u64> = Probes::new(digest, 0, 16, 1000).collect();
        assert_eq!(first, Probes::new(digest, 0, 16, 1000).collect::<Vec<_>>());
        assert_eq!(first.len(), 16);
        assert!(first.iter().all(|&p| p < 1000));
        assert_ne!(first, Probes::new(digest, 1, 16, 1000).collect::<Vec<_>>());
        let numbered = NumberedProbes::new(digest, 0, 1000);
        let by_number: Vec<u64> = (0..16).map(|number| numbered.position(number)).collect();
        assert_eq!(by_number, first);
    }

    #[test]
    fn positions_of_many_are_those_of_each() {
        let digests: Vec<Digest> =
            (0..100_u32).map(|i| Digester::new(0).digest(&i.to_le_bytes())).collect();
        let mut states: Vec<u64> = digests.iter().map(|digest| digest.value()).collect();
        NumberedProbes::states_of::<HalfProducts>(&mut states, 3);
        let mut found = vec![0; states.len()];
        NumberedProbes::positions_of::<HalfProducts>(&states, 5, 1_000_003, &mut found);
        for (&digest, found) in digests.iter().zip(found) {
            let one = NumberedProbes::new(digest, 3, 1_000_003);
            assert_eq!(found, one.position(5));
        }
        for (positions, len) in [(1, 1), (1_000_003, 100), (1 << 40 | 1, 9)] {
            let batch = ProbeBatch::new(digests[..len].iter().copied(), 3);
            for number in [0, 5, 31] {
                let mut found = [0; ProbeBatch::MOST];
                batch.find(number, positions, &mut found);
                for (&digest, found) in digests[..len].iter().zip(found) {
                    let one = NumberedProbes::new(digest, 3, positions);
                    assert_eq!(found, one.position(number));
                }
            }
        }
    }

    /// Chi-square of each function alone and of each pair of neighbouring functions together.
    #[test]
    fn positions_are_spread_evenly_and_independently() {
        const CELLS: usize = 64;
        const ELEMENTS: u32 = 200_000;
        let digester = Digester::new(7);
        let mut single = vec![[0_u32; CELLS]; 4];
        let mut pair = vec![0_u32; CELLS * CELLS];
        for i in 0..ELEMENTS {
            let p: Vec<u64> =
                Probes::new(digester.digest(&i.to_le_bytes()), 0, 4, CELLS as u64).collect();
            for (row, &position) in single.iter_mut().zip(&p) {
                row[position as usize] += 1;
            }
            pair[p[0] as usize * CELLS + p[1] as usize] += 1;
        }
        for row in &single {
            assert_chi_square(row, f64::from(ELEMENTS));
        }
        assert_chi_square(&pair, f64::from(ELEMENTS));
    }

    fn assert_chi_square(counts: &[u32], total: f64) {
        let expected = total / counts.len() as f64;
        let chi: f64 = counts.iter().map(|&c| (f64::from(c) - expected).powi(2) / expected).sum();
        let freedom = counts.len() as f64 - 1.0;
        let z = (chi - freedom) / (2.0 * freedom).sqrt();
        assert!(z.abs() < 4.5, "chi-square is {z} standard deviations off");
    }
}
