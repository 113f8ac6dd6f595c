//! How likely all bits of a new value are set.
//!
//! A value is one line, one window of k of its eight words and a bit in each. So of the eight
//! windows with w^k places each of a line whose words have w bits, those that are full number the
//! sum over the windows of the product of the k words' numbers of set bits. It is a whole number.

#![expect(
    clippy::inline_always,
    reason = "a call that is not inlined runs without the vector instructions of this machine, and takes twice the time"
)]

use super::LineArray;
use super::shares::{chances_of_lines, shares};
use crate::bits::{Line, WORDS_PER_LINE};
use crate::martingale::Chances;

/// Lines that are looked at.
const LOOKED_AT: u64 = 64;

/// The chances of a new value of `probes` bits, about, from some lines.
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
        (number(full) / number(all), number(all - full) / number(all))
    };
    let (missed, seen) = chances_of_lines(shares(probes).map(of_share));
    Chances { seen, missed }
}

/// The number, nearly: by what every machine does itself.
#[inline(always)]
pub(super) const fn number(whole: u128) -> f64 {
    let high = (whole >> 64) as u64 as f64 * 2.0 * (1_u64 << 63) as f64;
    high + whole as u64 as f64
}

/// Set bits of each word.
#[inline(always)]
pub(super) fn ones(line: &Line) -> Line {
    line.map(|word| u64::from(word.count_ones()))
}

/// Full places of a line with this many set bits in each word.
#[inline(always)]
pub(super) fn full_places(ones: &Line, probes: u32) -> u64 {
    // Products of consecutive words, cyclic: of one, of two and of four, and of those what is
    // needed.
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

/// Full places of the window of these probed words, with words of a single one in place of the
/// others: the product of their numbers of set bits.
#[inline(always)]
pub(super) fn full_in(probed: &Line) -> u64 {
    // In whole numbers up to 64^8 = 2^48, and in pairs, so that no multiplication waits for all
    // others.
    let ones = |word: usize| u64::from(probed[word].count_ones());
    let low = (ones(0) * ones(1)) * (ones(2) * ones(3));
    let high = (ones(4) * ones(5)) * (ones(6) * ones(7));
    low * high
}

/// Returns the probabilities that a new element is called a repeat, and that it is called new, in a
/// window of `probes` words of 64 bits with `full` full places.
#[inline(always)]
pub(super) const fn chances_of_full(full: u64, probes: u32) -> (f64, f64) {
    let all: i64 = 1 << (6 * probes);
    // 64^-k, exactly.
    let share = f64::from_bits((1023 - 6 * probes as u64) << 52);
    (full as i64 as f64 * share, (all - full as i64) as f64 * share)
}

/// The same for the words in which these masks have a bit, where words have this many bits.
#[inline]
pub(super) fn chances_at(word_bits: u32, line: &Line, masks: &Line, probes: u32) -> (f64, f64) {
    let probed = line.iter().zip(masks).filter(|&(_, &mask)| mask != 0);
    let full: u64 = probed.map(|(word, _)| u64::from(word.count_ones())).product();
    let all = u64::from(word_bits).pow(probes);
    (full as f64 / all as f64, (all - full) as f64 / all as f64)
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
