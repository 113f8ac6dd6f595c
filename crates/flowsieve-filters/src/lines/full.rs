//! How likely a new value's bits are all set, over all lines: exactly, and kept while lines change.
//!
//! A value is one line, one window of k words and a bit in each. So of all `L` lines with eight
//! windows of 64^k places each, those that are full number the sum over lines and windows of the
//! product of the k words' numbers of set bits. It is a whole number, so the order in which lines
//! change leaves no trace in it.
//!
//! One line full of bits has p = 1, which no weight repairs; the p over all lines is below 1 until
//! all are full, and varies less. The bits of a value with several lines are all set with the
//! product of the probabilities of its lines, since these are independent.

#![expect(
    clippy::inline_always,
    reason = "a call that is not inlined runs without the vector instructions of this machine, and takes twice the time"
)]

use super::shares::{chances_of_lines, shares};
use crate::bits::{Line, WORDS_PER_LINE};

/// Binary logarithm of the windows of a line.
const WINDOWS_LOG2: u32 = WORDS_PER_LINE.trailing_zeros();

/// Lines that are looked at where the sum is not kept.
const LOOKED_AT: usize = 64;

/// The sums of each k that was asked for.
#[derive(Clone, Debug, Default)]
pub(super) struct FullPlaces {
    sums: [u128; WORDS_PER_LINE],
    /// Bit k - 1 for each k whose sum is kept.
    kept: u8,
}

impl FullPlaces {
    /// Keeps the sums for values of `probes` bits each from now on: counts them, in time
    /// proportional to the size, unless that was done before.
    #[inline(always)]
    pub(super) fn keep(&mut self, probes: u32, lines: &[Line]) {
        for share in shares(probes) {
            if self.kept >> (share - 1) & 1 == 0 {
                self.begin(share, lines);
            }
        }
    }

    #[cold]
    fn begin(&mut self, probes: u32, lines: &[Line]) {
        self.kept |= 1 << (probes - 1);
        self.sums[probes as usize - 1] = full_places(lines, probes);
    }

    /// Keeps no sum.
    pub(super) const fn forget(&mut self) {
        self.kept = 0;
    }

    /// Whether a sum is kept, so that every change is needed.
    #[inline(always)]
    pub(super) const fn is_kept(&self) -> bool {
        self.kept != 0
    }

    /// A line has changed.
    #[inline(always)]
    pub(super) fn change(&mut self, before: &Line, after: &Line) {
        for (at, sum) in self.sums.iter_mut().enumerate() {
            if self.kept >> at & 1 != 0 {
                let probes = at as u32 + 1;
                *sum += u128::from(of_line(after, probes)) - u128::from(of_line(before, probes));
            }
        }
    }

    /// Probabilities that the bits of a new value of `probes` are all set, and that one is clear;
    /// the sum is kept.
    #[inline(always)]
    pub(super) fn chances(&self, probes: u32, lines: u64) -> (f64, f64) {
        let of_line = |share: u32| parts(self.sums[share as usize - 1], share, lines);
        chances_of_lines(shares(probes).map(of_line))
    }
}

/// The same from all lines, in time proportional to their number.
pub(super) fn chances_of_all(lines: &[Line], probes: u32) -> (f64, f64) {
    let of_line = |share: u32| parts(full_places(lines, share), share, lines.len() as u64);
    chances_of_lines(shares(probes).map(of_line))
}

/// The same, about, from some lines.
pub(super) fn chances_of_some(lines: &[Line], probes: u32) -> (f64, f64) {
    let every = lines.len().div_ceil(LOOKED_AT);
    let some = lines.iter().step_by(every);
    let of_share = |share: u32| {
        let sum = some.clone().map(|line| u128::from(of_line(line, share)));
        parts(sum.sum(), share, lines.len().div_ceil(every) as u64)
    };
    chances_of_lines(shares(probes).map(of_share))
}

fn full_places(lines: &[Line], probes: u32) -> u128 {
    let of_lines = lines.iter().map(|line| u128::from(of_line(line, probes)));
    of_lines.sum()
}

/// The share of the places that are full, and of the others.
#[inline(always)]
fn parts(full: u128, probes: u32, lines: u64) -> (f64, f64) {
    let all = u128::from(lines) << (WINDOWS_LOG2 + 6 * probes);
    let clear = all - full;
    let all = number(all);
    (number(full) / all, number(clear) / all)
}

/// The number, nearly: by what every machine does itself.
#[inline(always)]
const fn number(whole: u128) -> f64 {
    let high = (whole >> 64) as u64 as f64 * 2.0 * (1_u64 << 63) as f64;
    high + whole as u64 as f64
}

/// Full places of a line.
#[inline(always)]
fn of_line(line: &Line, probes: u32) -> u64 {
    let ones = line.map(|word| u64::from(word.count_ones()));
    // Products of consecutive words, cyclic: of one, of two and of four, and of those what is
    // needed.
    let step = |products: &Line, distance: usize, factors: &Line| -> Line {
        std::array::from_fn(|at| products[at] * factors[(at + distance) % WORDS_PER_LINE])
    };
    let twos = step(&ones, 1, &ones);
    let products = match probes {
        1 => ones,
        2 => twos,
        3 => step(&twos, 2, &ones),
        probes => {
            let fours = step(&twos, 2, &twos);
            match probes {
                4 => fours,
                5 => step(&fours, 4, &ones),
                6 => step(&fours, 4, &twos),
                7 => step(&step(&fours, 4, &twos), 6, &ones),
                _ => step(&fours, 4, &fours),
            }
        }
    };
    products.iter().sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hashing::Digester;

    fn line(seed: u64, full: bool) -> Line {
        let digester = Digester::new(seed);
        std::array::from_fn(|word| {
            let bits = digester.digest(&[word as u8]).value();
            if full { u64::MAX } else { bits | bits << 7 }
        })
    }

    /// Against the definition, window by window.
    #[test]
    fn full_places_are_those_of_every_window() {
        let lines = [line(1, false), line(2, false), line(3, true), [0; 8]];
        for probes in 1..=8_u32 {
            let mut full = 0_u128;
            for line in &lines {
                for first in 0..8 {
                    let window = (0..probes as usize).map(|at| line[(first + at) % 8]);
                    full += window.map(|word| u128::from(word.count_ones())).product::<u128>();
                }
            }
            assert_eq!(full_places(&lines, probes), full);
            let (repeat, first) = chances_of_all(&lines, probes);
            assert!((repeat + first - 1.0).abs() < 1e-12);
            let share = full as f64 / (4.0 * 8.0 * 64_f64.powi(probes as i32));
            assert!((repeat / share - 1.0).abs() < 1e-12);
            assert_eq!(chances_of_some(&lines, probes), (repeat, first));
            assert_eq!(chances_of_all(&[[u64::MAX; 8]; 3], probes), (1.0, 0.0));
        }
    }

    #[test]
    fn sums_follow_the_lines() {
        let mut lines = vec![[0; 8], line(4, false), [0; 8]];
        let mut full = FullPlaces::default();
        assert!(!full.is_kept());
        full.keep(4, &lines);
        for (at, after) in [(0, line(5, false)), (2, line(6, true)), (1, line(4, true))] {
            full.change(&lines[at], &after);
            lines[at] = after;
            full.keep(8, &lines);
            for probes in [4, 8] {
                assert_eq!(full.chances(probes, 3), chances_of_all(&lines, probes));
            }
        }
    }
}
