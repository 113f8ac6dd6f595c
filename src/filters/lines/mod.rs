//! Bits of digests in cache lines: what the structures with lines share.
//!
//! A digest has k bits in one line of eight words: one in each of k consecutive words, cyclic, from a
//! random one on.
//!
//! Large arrays are taken in batches of 32: the lines of a batch are touched first, so that all of
//! their cache misses are under way together, and probed after that. In a small array touching costs
//! more than it brings.

mod count;
mod in_turn;
mod instructions;
mod places;
mod probe;
mod row;
#[cfg(target_arch = "x86_64")]
mod vectors;

pub(super) use count::LineCounter;

use super::saved::unite_lines;
use super::{Estimate, Sighting, fill};
use crate::bits::{Line, Lines};
use crate::hashing::Digest;
use in_turn::InsertInTurn;
use places::BATCH;
use probe::{ContainsAll, InsertAll};
use row::{DIGESTS, ROW, Row};

/// Bytes from which lines are touched first: what is well beyond the second-level cache.
const TOUCH_FROM_BYTES: u64 = 4 << 20;

/// Most digests an element that [`LineArray::insert_in_turn`] takes.
pub(super) const MOST_IN_TURN: usize = DIGESTS;

/// Most bits written that came from elsewhere: more make no difference, and leave room to count on.
const MOST_WRITTEN: u64 = 1 << 62;

/// An array of lines, and how many bits were written into it.
#[derive(Clone, Debug)]
pub(super) struct LineArray {
    pub(super) lines: Lines,
    /// Bits of all new values, also those that were set already.
    written: u64,
}

/// Whether the bits of `digest` are all set in lines that lie in `bytes`, at least one, little-endian.
pub(super) fn bytes_contain(bytes: &[u8], probes: u32, digest: Digest) -> bool {
    let lines = bytes.as_chunks::<{ Lines::LINE_BYTES as usize }>().0;
    let line = lines[places::line_of(digest, lines.len())].as_chunks().0;
    let line: Line = std::array::from_fn(|word| u64::from_le_bytes(line[word]));
    probe::contains(&[line], probes, digest)
}

impl LineArray {
    /// An array of `lines` ≥ 1 cache lines.
    pub(super) fn new(lines: u64) -> Self {
        Self {
            lines: Lines::new(lines),
            written: 0,
        }
    }

    /// A count for values of `probes` (1 to 8) bits each.
    pub(super) fn counter(&self, probes: u32) -> LineCounter {
        LineCounter::new(probes, self.lines.memory_bytes() * 8)
    }

    /// No count of such values.
    pub(super) fn no_counter(&self, probes: u32) -> LineCounter {
        LineCounter::off(probes, self.lines.memory_bytes() * 8)
    }

    /// Sets the bits of `digest`, and counts it if it is new.
    #[inline]
    pub(super) fn insert(&mut self, counter: &mut LineCounter, digest: Digest) -> Sighting {
        probe::insert(
            self.lines.as_mut_slice(),
            &mut self.written,
            counter,
            digest,
        )
    }

    /// The same for many digests in order; the answers are appended.
    pub(super) fn insert_all(
        &mut self,
        counter: &mut LineCounter,
        digests: &[Digest],
        sightings: &mut Vec<Sighting>,
    ) {
        instructions::run(InsertAll {
            touch: self.is_touched_first(),
            lines: self.lines.as_mut_slice(),
            written: &mut self.written,
            counter,
            digests,
            sightings,
        });
    }

    /// Sets the bits of `elements` of as many digests each as there are counters (1 to [`MOST_IN_TURN`]), one after the other, and
    /// counts each digest that is new; what is told of the first digest of each is appended.
    ///
    /// `digests_of` writes the digests of an element, whose number it is given.
    pub(super) fn insert_in_turn(
        &mut self,
        counters: &mut [LineCounter],
        elements: usize,
        mut digests_of: impl FnMut(usize, &mut [Digest]),
        sightings: &mut Vec<Sighting>,
    ) {
        let columns = counters.len();
        let mut row = Row::new(counters.iter().map(LineCounter::probes));
        let mut digests = [[Digest::from_value(0); BATCH]; ROW];
        let in_row = DIGESTS / columns;
        for begin in (0..elements).step_by(in_row) {
            let of_row = begin..elements.min(begin + in_row);
            let places = digests.as_flattened_mut().chunks_exact_mut(columns);
            for (element, place) in of_row.clone().zip(places) {
                digests_of(element, place);
            }
            instructions::run(InsertInTurn {
                touch: self.is_touched_first(),
                lines: self.lines.as_mut_slice(),
                written: &mut self.written,
                counters,
                row: &mut row,
                digests: &digests,
                elements: of_row.len(),
                sightings,
            });
        }
    }

    /// Whether the `probes` bits of `digest` are all set.
    #[inline]
    pub(super) fn contains(&self, probes: u32, digest: Digest) -> bool {
        probe::contains(self.lines.as_slice(), probes, digest)
    }

    /// The same for many digests; the answers are appended.
    pub(super) fn contains_all(&self, probes: u32, digests: &[Digest], answers: &mut Vec<bool>) {
        instructions::run(ContainsAll {
            touch: self.is_touched_first(),
            lines: self.lines.as_slice(),
            probes,
            digests,
            answers,
        });
    }

    /// Clears all bits.
    pub(super) fn clear(&mut self) {
        self.lines.clear();
        self.written = 0;
    }

    /// Share of set bits: counts them, in time proportional to the size.
    pub(super) fn fill_ratio(&self) -> f64 {
        self.lines.ones() as f64 / (self.lines.memory_bytes() * 8) as f64
    }

    /// The count of values of `probes` bits each, if no other bits are in the array, from the fill.
    pub(super) fn count_from_fill(&self, probes: u32) -> Option<Estimate> {
        fill::in_lines(self.lines.ones(), self.lines.len(), probes)
    }

    /// Sets the bits of another array of the same length as well.
    pub(super) fn unite(&mut self, other: &Self) {
        unite_lines(&mut self.lines, &other.lines);
        self.written = self.written.saturating_add(other.written).min(MOST_WRITTEN);
    }

    /// Bits written so far.
    pub(super) const fn written(&self) -> u64 {
        self.written
    }

    /// Says that the lines, which came from elsewhere, hold these new values of so many bits each.
    pub(super) fn set_written(&mut self, values: impl Iterator<Item = (u64, u32)>) {
        let bits = values.map(|(firsts, probes)| firsts.saturating_mul(u64::from(probes)));
        self.written = bits.fold(0, u64::saturating_add).min(MOST_WRITTEN);
    }

    fn is_touched_first(&self) -> bool {
        self.lines.memory_bytes() >= TOUCH_FROM_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hashing::Digester;
    use std::collections::HashSet;

    fn digests(count: u64) -> Vec<Digest> {
        let digester = Digester::new(3);
        // Among them repeats.
        let number = |i: u64| if i % 3 == 2 { i / 2 } else { i };
        (0..count)
            .map(|i| digester.digest(&number(i).to_le_bytes()))
            .collect()
    }

    /// From empty to crowded, through every rate of the sample.
    #[test]
    fn batches_of_any_length_count_to_the_bit_as_one_by_one() {
        for probes in [1, 4, 8] {
            let digests = digests(12_000);
            let mut array = LineArray::new(40);
            let mut counter = array.counter(probes);
            let one_by_one: Vec<Sighting> = digests
                .iter()
                .map(|&digest| array.insert(&mut counter, digest))
                .collect();
            for length in [1, 31, 32, 33, 100, 128, 4096, 12_000] {
                let mut batched = LineArray::new(40);
                let mut count = batched.counter(probes);
                let mut sightings = Vec::new();
                for batch in digests.chunks(length) {
                    batched.insert_all(&mut count, batch, &mut sightings);
                }
                assert_eq!(sightings, one_by_one);
                assert_eq!(batched.lines, array.lines);
                assert_eq!(count.known(), counter.known());
                assert_eq!(count.firsts(), counter.firsts());
            }
        }
    }

    /// From empty to crowded, of few values and many, with a count that is not known among the others.
    #[test]
    fn digests_in_turn_count_to_the_bit_as_one_by_one() {
        let digester = Digester::new(5);
        for (columns, elements) in [(2, 6_000), (3, 4_000), (5, 2_500), (128, 100)] {
            let digest = |element: usize, column: usize| {
                let number = element % (elements / (1 + column % 3));
                digester.digest(&[number, column].map(usize::to_le_bytes).concat())
            };
            let mut array = LineArray::new(40);
            let counter = |column: usize| match column {
                1 if columns == 5 => array.no_counter(3),
                _ => array.counter(1 + column as u32 * 5 % 8),
            };
            let counters: Vec<LineCounter> = (0..columns).map(counter).collect();
            let (mut in_turn, mut sightings) = (array.clone(), Vec::new());
            let mut counts = counters.clone();
            // In several calls, so that rows end anywhere.
            for (begin, end) in [(0, 1), (1, elements / 3), (elements / 3, elements)] {
                let digests_of = |element: usize, digests: &mut [Digest]| {
                    for (column, place) in digests.iter_mut().enumerate() {
                        *place = digest(begin + element, column);
                    }
                };
                in_turn.insert_in_turn(&mut counts, end - begin, digests_of, &mut sightings);
            }
            let (mut one_by_one, mut firsts) = (counters, Vec::new());
            for element in 0..elements {
                let all = one_by_one.iter_mut().enumerate();
                let told: Vec<Sighting> = all
                    .map(|(column, counter)| array.insert(counter, digest(element, column)))
                    .collect();
                firsts.push(told[0]);
            }
            assert_eq!(sightings, firsts);
            assert_eq!(in_turn.lines, array.lines);
            assert_eq!(in_turn.written(), array.written());
            for (count, expected) in counts.iter().zip(&one_by_one) {
                assert_eq!(count.known(), expected.known());
                assert_eq!(count.firsts(), expected.firsts());
            }
        }
    }

    /// Digests of a few lines of a large array, most of which share their lowest 16 bits, all in the sample.
    #[test]
    fn lines_that_look_alike_are_counted_to_the_bit_as_one_by_one() {
        let digests: Vec<Digest> = (0..6_000_u64)
            .map(|i| {
                let number = i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
                let (high, low, bits) = (number % 4, number / 4 % 2, number / 8);
                Digest::from_value(high << 62 | low << 46 | bits << 6)
            })
            .collect();
        let mut array = LineArray::new(1 << 18);
        let mut counter = array.counter(3);
        let one_by_one: Vec<Sighting> = digests
            .iter()
            .map(|&digest| array.insert(&mut counter, digest))
            .collect();
        let mut batched = LineArray::new(1 << 18);
        let (mut count, mut sightings) = (batched.counter(3), Vec::new());
        batched.insert_all(&mut count, &digests, &mut sightings);
        assert_eq!(sightings, one_by_one);
        assert_eq!(count.known(), counter.known());
        assert!(counter.known().unwrap().distinct > counter.firsts().unwrap() as f64);
    }

    #[test]
    fn without_a_count_bits_and_answers_are_the_same() {
        let digests = digests(3_000);
        let mut array = LineArray::new(100);
        let (mut counter, mut sightings) = (array.counter(5), Vec::new());
        array.insert_all(&mut counter, &digests, &mut sightings);
        let mut other = LineArray::new(100);
        let (mut off, mut answers) = (other.no_counter(5), Vec::new());
        other.insert_all(&mut off, &digests[..2_000], &mut answers);
        answers.extend(
            digests[2_000..]
                .iter()
                .map(|&digest| other.insert(&mut off, digest)),
        );
        assert_eq!(answers, sightings);
        assert_eq!(other.lines, array.lines);
        off.clear();
        assert_eq!((off.known(), off.firsts()), (None, None));
        let estimate = other.count_from_fill(5).unwrap();
        let exact = digests.iter().collect::<HashSet<_>>().len() as f64;
        assert!((estimate.distinct - exact).abs() < 5.0 * estimate.std_error());
    }

    /// Mean error and its scatter over 400 arrays, at loads where the sample takes one in 64 to all, beside
    /// the variance that each count states.
    #[test]
    fn sampled_counts_are_unbiased_and_know_their_error() {
        const ARRAYS: u64 = 400;
        for (probes, elements) in [
            (6, 1_500_u64),
            (6, 2_400),
            (4, 2_400),
            (8, 3_600),
            (2, 1_200),
        ] {
            let (mut sum, mut squares, mut stated) = (0.0, 0.0, 0.0);
            for seed in 0..ARRAYS {
                let digester = Digester::new(1_000 + seed);
                let digests: Vec<Digest> = (0..elements)
                    .map(|i| digester.digest(&i.to_le_bytes()))
                    .collect();
                let mut array = LineArray::new(32);
                let mut counter = array.counter(probes);
                array.insert_all(&mut counter, &digests, &mut Vec::new());
                let estimate = counter.known().unwrap();
                let error = estimate.distinct - elements as f64;
                sum += error;
                squares += error * error;
                stated += estimate.variance;
            }
            let n = ARRAYS as f64;
            let (mean, variance) = (sum / n, squares / n);
            let std_error = (variance / n).sqrt();
            assert!(
                mean.abs() < 4.0 * std_error,
                "k {probes}: {mean} ± {std_error}"
            );
            let ratio = stated / n / variance;
            // The scatter of 400 squares is 7 % of their mean for a normal error.
            assert!((0.72..1.38).contains(&ratio), "k {probes}: {ratio}");
        }
    }
}
