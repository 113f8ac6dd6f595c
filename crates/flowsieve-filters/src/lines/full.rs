//! How likely all bits of a new value are set.
//!
//! A value has one line, one window of k of its eight words, and one bit in each of these. A line
//! of words of w bits has eight windows with w^k places each. The number of full places in a window
//! is the product of the numbers of set bits of its k words, so it is a whole number.

use super::LineArray;
use super::shares::{chances_of_lines, shares};
use crate::bits::{Line, WORDS_PER_LINE};
use crate::martingale::Chances;

/// Lines that an estimate looks at.
const LOOKED_AT: u64 = 64;

/// Estimates the chances of a new value of `probes` bits from a sample of the lines.
pub(super) fn chances_of_some(array: &LineArray, probes: u32) -> Chances {
    let shape = array.shape();
    let every = shape.lines.div_ceil(LOOKED_AT);
    let some = (0..shape.lines).step_by(every as usize).map(|line| array.line(line));
    // Empty lines have no full places.
    let some = some.filter(|line| *line != Line::default());
    let of_share = |share: u32| {
        let full: u128 =
            some.clone().map(|line| u128::from(full_places(&ones(&line), share))).sum();
        let all = u128::from(shape.lines.div_ceil(every)) * u128::from(shape.places(share));
        Chances { missed: number(full) / number(all), seen: number(all - full) / number(all) }
    };
    chances_of_lines(shares(probes).map(of_share))
}

/// Converts a number to floating point in two halves, which every machine does itself.
#[inline(always)]
pub(super) const fn number(whole: u128) -> f64 {
    let high = (whole >> 64) as u64 as f64 * 2.0 * (1_u64 << 63) as f64;
    high + whole as u64 as f64
}

/// Counts the set bits of each word.
#[inline(always)]
pub(super) fn ones(line: &Line) -> Line {
    line.map(|word| u64::from(word.count_ones()))
}

/// Returns the number of full places of a line with this many set bits in each word.
#[inline(always)]
pub(super) fn full_places(ones: &Line, probes: u32) -> u64 {
    // Products over k consecutive words (cyclic), combined from those over one, two and four words.
    let step = |products: &Line, distance: usize, factors: &Line| -> Line {
        std::array::from_fn(|at| products[at] * factors[(at + distance) % WORDS_PER_LINE])
    };
    let twos = step(ones, 1, ones);
    let products = match probes {
        1 => *ones,
        2 => twos,
        3 => step(&twos, 2, ones),
        probes => {
            let fours = step(&twos, 2, &twos);
            match probes {
                4 => fours,
                5 => step(&fours, 4, ones),
                6 => step(&fours, 4, &twos),
                7 => step(&step(&fours, 4, &twos), 6, ones),
                _ => step(&fours, 4, &fours),
            }
        }
    };
    products.iter().sum()
}

/// Returns the number of full places of the window of these probed words, where the other words
/// have a single set bit: the product of the numbers of set bits.
#[inline(always)]
pub(super) fn full_in(probed: &Line) -> u64 {
    // Whole numbers up to 64^8 = 2^48, multiplied in pairs, so that no multiplication waits for all
    // others.
    let ones = |word: usize| u64::from(probed[word].count_ones());
    let low = (ones(0) * ones(1)) * (ones(2) * ones(3));
    let high = (ones(4) * ones(5)) * (ones(6) * ones(7));
    low * high
}

/// Returns the chances of a new value in a window of `probes` words of 64 bits with `full` full
/// places.
#[inline(always)]
pub(super) const fn chances_of_full(full: u64, probes: u32) -> Chances {
    let all: i64 = 1 << (6 * probes);
    // 64^-k, exactly.
    let share = f64::from_bits((1023 - 6 * probes as u64) << 52);
    Chances { missed: full as i64 as f64 * share, seen: (all - full as i64) as f64 * share }
}

/// Returns the chances of a new value in the words in which these masks have a bit, where words
/// have `word_bits` bits.
#[inline]
pub(super) fn chances_at(word_bits: u32, line: &Line, masks: &Line, probes: u32) -> Chances {
    let probed = line.iter().zip(masks).filter(|&(_, &mask)| mask != 0);
    let full: u64 = probed.map(|(word, _)| u64::from(word.count_ones())).product();
    let all = u64::from(word_bits).pow(probes);
    Chances { missed: full as f64 / all as f64, seen: (all - full) as f64 / all as f64 }
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

    /// Compares with the definition, window by window.
    #[test]
    fn full_places_are_those_of_every_window() {
        let lines = [line(1, false), line(2, false), line(3, true), [0; 8]];
        for probes in 1..=8_u32 {
            let mut full = 0_u64;
            for line in &lines {
                let mut of_line = 0;
                for first in 0..8 {
                    let window = (0..probes as usize).map(|at| line[(first + at) % 8]);
                    of_line += window.map(|word| u64::from(word.count_ones())).product::<u64>();
                }
                assert_eq!(full_places(&ones(line), probes), of_line);
                full += of_line;
            }
            let mut array = LineArray::new(4);
            array.lines.as_mut_slice().copy_from_slice(&lines);
            let Chances { seen, missed } = chances_of_some(&array, probes);
            assert!((missed + seen - 1.0).abs() < 1e-12);
            let share = full as f64 / (4.0 * 8.0 * 64_f64.powi(probes as i32));
            assert!((missed / share - 1.0).abs() < 1e-12);
            array.lines.as_mut_slice().fill([u64::MAX; 8]);
            assert_eq!(chances_of_some(&array, probes), Chances { seen: 0.0, missed: 1.0 });
        }
    }
}
