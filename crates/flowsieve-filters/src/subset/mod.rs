//! The subset filter: one blocked array for every combination of attributes that is asked for, and
//! an unbiased count of each.
//!
//! # Memory
//!
//! ```text
//!     element            ──► digest        ──► one line, k bits       all in one array of
//!     combination S of it ──► joint digest ──► one line, k_S bits     lines of 512 bits
//!     …
//!
//!     line:   word 0 │ word 1 │ word 2 │ … │ word 7
//!                        ●        ●      ●              k consecutive words from a random
//!                                                       one on (cyclic), one bit in each;
//!                                                       k above 8: in several lines
//! ```
//!
//! # Operations
//!
//! - insert: for the whole element, and for each planned combination of its attributes, set one bit
//!   in each of k words of the digest's line, or lines. The element was new if any bit of the whole
//!   was clear.
//! - contains: all k bits of the whole are set.
//! - query with some attributes: if their combination is planned, its `k_S` bits are set. If not,
//!   planned parts of it can say no; if they say yes and cover the query, the answer is
//!   [`PatternAnswer::PresentApart`]. Larger combinations cannot help.
//!
//! One cache line for eight bits of a combination, whatever the size of the filter, where a
//! standard Bloom filter touches up to k. An element that is not there mostly costs one line.
//!
//! # Formulas
//!
//! The false-positive rate is [`super::sizing::blocked_fpr`], and with several combinations
//! [`super::sizing::shared_blocked_fpr`]; how many bits each of them should have says
//! [`super::allocation::shared_probes`]. For the whole element alone, each with its best k:
//!
//! | bits an element | k | f, blocked | f, standard filter |
//! |---|---|---|---|
//! | 6 | 4 | 0.0583 | 0.0561 |
//! | 8 | 5 | 0.0234 | 0.0216 |
//! | 10 | 6 | 0.0097 | 0.0082 |
//! | 16 | 8 | 0.0009 | 0.0005 |
//! | 32 | 16 | 8.3e-7 | 2.1e-7 |
//! | 48 | 16 | 8.3e-9 | 9.7e-11 |
//!
//! More than eight bits lie in several lines, up to four (`lines/shares.rs`): a line is enough up
//! to 24 bits an element, and two up to 48. So any rate down to 1e-8 takes at most 1.25 times the
//! memory of a standard filter ([`super::sizing::best_line_probes`]).
//!
//! # Distinct elements
//!
//! Given its line and its words, the bits of a new element, or of a new value of a combination, are
//! uniform in the words; so it is called a repeat with p = product of (set bits of the word / 64)
//! over its k words, of all its lines, exactly, whoever set them. The count of each combination is
//! [`super::DistinctCounter`]'s with that p: unbiased, from the line just loaded, and only for what
//! is new; and, as long as p is small, only for a sample of that (`lines/count.rs`).
//!
//! # What it cannot do
//!
//! Remove; answer for combinations that are neither planned nor covered by planned ones.
//!
//! # Example
//!
//! ```
//! use flowsieve_filters::hashing::Digester;
//! use flowsieve_filters::{ElementDigests, MembershipFilter, MultiAttributeFilter, PlannedCombination, SubsetFilter};
//!
//! let hasher = Digester::new(0);
//! let pair = |src: &str, dst: &str| [src, dst].map(|host| hasher.digest(host.as_bytes()));
//! // Pairs of hosts in 64 lines with 5 bits each, and their sources with 3.
//! let sources = PlannedCombination { mask: 0b01, probes: 3 };
//! let mut filter = SubsetFilter::with_combinations(2, 64, 5, &[sources])?;
//! for number in 0..500 {
//!     let source = format!("host {}", number % 20);
//!     let attributes = pair(&source, &number.to_string());
//!     filter.insert(ElementDigests::of_attributes(&attributes));
//! }
//! let pairs = filter.distinct().unwrap();
//! assert!((pairs.distinct - 500.0).abs() <= 4.0 * pairs.std_error() + 1.0);
//! let sources = filter.distinct_of(0b01).unwrap();
//! assert!((sources.distinct - 20.0).abs() <= 4.0 * sources.std_error() + 1.0);
//! # Ok::<(), flowsieve_filters::SpecError>(())
//! ```
//!
//! Reference: Putze, Sanders, Singler, "Cache-, hash- and space-efficient Bloom filters", WEA 2007,
//! for the blocked layout; the shared array, the counter and their use are this project's.

mod spec;

pub(crate) use self::spec::{LINE_BITS, SUBSET, line_size};
pub use self::spec::{PlannedCombination, SubsetSpec};
use crate::hashing::Digest;
use crate::lines::{LineArray, LineCounter};
use crate::matrix_sizing::{MAX_ATTRIBUTES, members};
use crate::saved::{FilterState, LoadError, StateReader, StateWriter, UnionError, same};
use crate::sizing::shared_blocked_fpr;
use crate::{
    DigestColumns, ElementDigests, Estimate, FilterStats, MembershipFilter, MultiAttributeFilter,
    Pattern, PatternAnswer, PatternColumns, Sighting, SpecError,
};
use std::io;

/// Blocked Bloom filter over the whole element and over planned combinations of its attributes,
/// with an unbiased count of each.
#[derive(Clone, Debug)]
pub struct SubsetFilter {
    array: LineArray,
    /// The count of the whole elements, and of the distinct values of each planned combination.
    counters: Vec<LineCounter>,
    /// All attributes, where their number is known.
    full: Option<u32>,
    /// The planned combinations.
    masks: Vec<u32>,
}

/// The joint digest of a combination, given its attributes' digests.
fn join(mask: u32, digest: impl Fn(usize) -> Digest) -> Digest {
    Digest::join(mask, members(mask).map(digest))
}

impl SubsetFilter {
    /// A filter of `lines` ≥ 1 cache lines with `probes` (1 to 32) bits an element, for the whole
    /// element alone.
    pub fn new(lines: u64, probes: u32) -> Self {
        let array = LineArray::new(lines);
        Self { counters: vec![array.counter(probes)], array, full: None, masks: Vec::new() }
    }

    /// A filter that also stores these combinations of the `attributes`, in the same lines.
    ///
    /// # Errors
    ///
    /// Combinations of no or all attributes or the same twice, more than 32 bits, more than 16
    /// attributes.
    pub fn with_combinations(
        attributes: usize,
        lines: u64,
        probes: u32,
        combinations: &[PlannedCombination],
    ) -> Result<Self, SpecError> {
        PlannedCombination::check_all(combinations, attributes)?;
        let mut filter = Self::new(lines, probes);
        for &PlannedCombination { mask, probes } in combinations {
            filter.masks.push(mask);
            filter.counters.push(filter.array.counter(probes));
        }
        filter.full = (attributes <= MAX_ATTRIBUTES).then(|| (1 << attributes) - 1);
        Ok(filter)
    }

    /// False-positive rates when there are `elements` distinct elements and `of_parts` distinct
    /// values of each planned combination: that of the whole element first.
    pub fn predicted_fpr(&self, elements: f64, of_parts: &[f64]) -> Vec<f64> {
        let values = std::iter::once(elements).chain(of_parts.iter().copied());
        let probes = self.counters.iter().map(LineCounter::probes);
        let written: Vec<(f64, u32)> = values.zip(probes).collect();
        let lines = self.array.lines.len() as f64;
        written.iter().map(|&(_, probes)| shared_blocked_fpr(lines, probes, &written)).collect()
    }

    /// Bits that a whole element sets.
    fn probes(&self) -> u32 {
        self.counters[0].probes()
    }

    /// The count of a stored combination.
    fn counter_of(&self, mask: u32) -> Option<&LineCounter> {
        if self.full == Some(mask) {
            return Some(&self.counters[0]);
        }
        let part = self.masks.iter().position(|&part| part == mask)?;
        Some(&self.counters[part + 1])
    }
}

/// What bits that are set, or not, say of an element that they stand for.
pub(super) const fn of_bits(set: bool) -> PatternAnswer {
    if set { PatternAnswer::Present } else { PatternAnswer::Absent }
}

/// The answer for some attributes of a filter that stores these combinations (mask and bits of
/// each), where `is_set` looks for a digest's bits.
pub(super) fn answer(
    pattern: Pattern<'_>,
    parts: impl Iterator<Item = (u32, u32)> + Clone,
    is_set: impl Fn(u32, Digest) -> bool,
) -> PatternAnswer {
    let query = pattern.mask();
    let part_is_set = |(mask, probes): (u32, u32)| {
        let digest = |attribute: usize| {
            pattern.attributes[attribute].expect("the part has attributes of the query only")
        };
        is_set(probes, Digest::join(mask, members(mask).map(digest)))
    };
    if let Some(part) = parts.clone().find(|&(mask, _)| mask == query) {
        return of_bits(part_is_set(part));
    }
    let mut covered = 0;
    for part in parts.filter(|&(mask, _)| mask & !query == 0) {
        if !part_is_set(part) {
            return PatternAnswer::Absent;
        }
        covered |= part.0;
    }
    if covered == query { PatternAnswer::PresentApart } else { PatternAnswer::Unknown }
}

impl MembershipFilter for SubsetFilter {
    fn insert(&mut self, element: ElementDigests<'_>) -> Sighting {
        let sighting = self.array.insert(&mut self.counters[0], element.whole);
        for (&mask, counter) in self.masks.iter().zip(&mut self.counters[1..]) {
            let digest = join(mask, |attribute| element.attributes[attribute]);
            self.array.insert(counter, digest);
        }
        sighting
    }

    fn contains(&self, element: ElementDigests<'_>) -> bool {
        self.array.contains(self.probes(), element.whole)
    }

    fn clear(&mut self) {
        self.array.clear();
        self.counters.iter_mut().for_each(LineCounter::clear);
    }

    fn stats(&self) -> FilterStats {
        FilterStats {
            memory_bytes: self.array.lines.memory_bytes(),
            fill_ratio: self.array.fill_ratio(),
            counters: None,
        }
    }

    fn distinct(&self) -> Option<Estimate> {
        let counter = &self.counters[0];
        if self.masks.is_empty() {
            self.array.estimate(counter)
        } else {
            // Where combinations are stored as well, nobody knows whose bits fill the lines.
            self.array.estimate_among_others(counter)
        }
    }

    fn insert_batch(&mut self, elements: DigestColumns<'_>, sightings: &mut Vec<Sighting>) {
        let Self { array, counters, masks, .. } = self;
        let number = elements.whole.len();
        if masks.is_empty() {
            array.insert_all(&mut counters[0], elements.whole, sightings);
        } else if LineArray::can_take_turns(counters) {
            let arity = elements.arity();
            let digests_of = |element: usize, digests: &mut [Digest]| {
                let attributes = &elements.attributes[element * arity..][..arity];
                digests[0] = elements.whole[element];
                for (digest, &mask) in digests[1..].iter_mut().zip(&*masks) {
                    *digest = join(mask, |attribute| attributes[attribute]);
                }
            };
            array.insert_in_turn(counters, number, digests_of, sightings);
        } else {
            sightings.extend(elements.iter().map(|element| self.insert(element)));
        }
    }

    fn contains_batch(&self, elements: DigestColumns<'_>, answers: &mut Vec<bool>) {
        self.array.contains_all(self.probes(), elements.whole, answers);
    }

    fn as_multi_attribute(&self) -> Option<&dyn MultiAttributeFilter> {
        Some(self)
    }
}

impl FilterState for SubsetFilter {
    fn save_state(&self, state: &mut StateWriter<'_>) -> io::Result<()> {
        for counter in &self.counters {
            state.line_count(counter.parts())?;
        }
        state.lines(&self.array.lines)
    }

    fn load_state(&mut self, state: &mut StateReader<'_>) -> Result<(), LoadError> {
        let counts =
            self.counters.iter().map(|_| state.line_count()).collect::<Result<Vec<_>, _>>()?;
        let probes: Vec<u32> = self.counters.iter().map(LineCounter::probes).collect();
        let values = counts.iter().map(|(firsts, _)| *firsts).zip(probes);
        self.array.set_written(values);
        let written = self.array.written();
        for (counter, (firsts, count)) in self.counters.iter_mut().zip(counts) {
            counter.restore(firsts, count, written);
        }
        state.lines(&mut self.array.lines)
    }

    fn unite(&mut self, other: &dyn FilterState) -> Result<(), UnionError> {
        let other: &Self = same(other)?;
        self.array.unite(&other.array);
        let written = self.array.written();
        for (counter, more) in self.counters.iter_mut().zip(&other.counters) {
            counter.unite(more, written);
        }
        Ok(())
    }
}

impl MultiAttributeFilter for SubsetFilter {
    fn contains_where(&self, pattern: Pattern<'_>) -> PatternAnswer {
        let is_set = |probes, digest| self.array.contains(probes, digest);
        if let Some(whole) = pattern.whole {
            return of_bits(is_set(self.probes(), whole));
        }
        if pattern.mask() == 0 {
            // Any element fits, so it is enough that one was inserted.
            return of_bits(!self.counters[0].is_empty());
        }
        let probes = self.counters[1..].iter().map(LineCounter::probes);
        let parts = self.masks.iter().copied().zip(probes);
        answer(pattern, parts, is_set)
    }

    fn contains_where_batch(&self, patterns: PatternColumns<'_>, answers: &mut Vec<PatternAnswer>) {
        let mask = patterns.mask;
        let Some(part) = self.masks.iter().position(|&part| part == mask) else {
            return patterns.for_each(|pattern| answers.push(self.contains_where(pattern)));
        };
        let given = patterns.attributes.chunks_exact(patterns.given());
        let digests: Vec<Digest> =
            given.map(|digests| Digest::join(mask, digests.iter().copied())).collect();
        let mut are_set = Vec::with_capacity(digests.len());
        let probes = self.counters[part + 1].probes();
        self.array.contains_all(probes, &digests, &mut are_set);
        answers.extend(are_set.into_iter().map(of_bits));
    }

    fn distinct_of(&self, mask: u32) -> Option<Estimate> {
        if self.full == Some(mask) {
            return self.distinct();
        }
        self.array.estimate_among_others(self.counter_of(mask)?)
    }

    fn first_of(&self, mask: u32) -> Option<u64> {
        self.counter_of(mask)?.firsts()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::allocation::{Demand, shared_probes};
    use crate::hashing::Digester;
    use crate::sizing::{best_line_probes, best_probes, blocked_fpr, bloom_fpr};
    use proptest::prelude::*;
    use std::collections::HashSet;

    #[test]
    fn worked_rates() {
        for (bits, probes, blocked, standard) in [
            (6.0, 4, 0.0583, 0.0561),
            (8.0, 5, 0.0234, 0.0216),
            (10.0, 6, 0.0097, 0.0082),
            (16.0, 8, 0.0009, 0.0005),
            (32.0, 16, 8.3e-7, 2.1e-7),
            (48.0, 16, 8.3e-9, 9.7e-11),
        ] {
            let elements = 512.0 / bits;
            assert_eq!(best_line_probes(1.0, elements), probes);
            let ours = blocked_fpr(1.0, probes, elements);
            let digit = if blocked > 1e-4 { 5.1e-5 } else { 0.01 * blocked };
            assert!((ours - blocked).abs() < digit, "{bits}: {ours}");
            let best = bloom_fpr(bits, best_probes(bits, 1.0, 32), 1.0);
            let digit = if standard > 1e-4 { 5.1e-5 } else { 0.03 * standard };
            assert!((best - standard).abs() < digit, "{bits}: {best}");
        }
    }

    /// The places of a digest's bits, by the definition and word by word: saved filters depend on
    /// them.
    #[test]
    fn bits_in_several_lines_are_where_they_were() {
        let mut filter = SubsetFilter::new(1000, 20);
        let digest = Digest::from_value(0x0123_4567_89ab_cdef);
        filter.insert(ElementDigests::of_whole(digest));
        let mut expected = HashSet::new();
        for (share, probes) in [(0_u64, 7), (1, 7), (2, 6)] {
            let fold = |a: u64, b: u64| {
                let product = u128::from(a) * u128::from(b);
                product as u64 ^ (product >> 64) as u64
            };
            let stream = 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(0x41 + share);
            let value = match share {
                0 => digest.value(),
                _ => fold(digest.value() ^ stream, 0xbf58_476d_1ce4_e5b9),
            };
            let line = ((u128::from(value) * 1000) >> 64) as u64;
            let mut bits = value.wrapping_mul(0xff51_afd7_ed55_8ccd);
            bits = (bits ^ bits >> 32).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
            bits ^= bits >> 32;
            for probe in 0..probes {
                let word = ((bits >> 61) + probe) % 8;
                expected.insert(line * 512 + word * 64 + (bits >> (6 * word) & 63));
            }
        }
        let lines = filter.array.lines.as_slice().as_flattened();
        let set = (0..1000 * 512_u64)
            .filter(|bit| lines[(bit / 64) as usize] >> (bit % 64) & 1 == 1)
            .collect::<HashSet<u64>>();
        assert_eq!((set.len(), &set), (20, &expected));
    }

    fn value(attribute: u64, number: u64) -> Digest {
        Digester::new(attribute).digest(&number.to_le_bytes())
    }

    fn element(attributes: &[Digest; 3]) -> ElementDigests<'_> {
        let joined = Digest::join(0b111, attributes.iter().copied());
        ElementDigests { whole: Digest::from_value(joined.value().rotate_left(7)), attributes }
    }

    /// More combinations than a row has digests, and fewer.
    #[test]
    fn batches_of_elements_with_any_number_of_combinations_are_those_one_by_one() {
        for most in [1, 100, 127, 128, 254] {
            let masks: Vec<u32> = (1..=most).collect();
            let new = || SubsetFilter::with_combinations(8, 60, 3, &planned(&masks, 2)).unwrap();
            let numbers = (0..40_u64).map(|i| i % 23);
            let attributes: Vec<Digest> = numbers
                .flat_map(|number| {
                    (0..8).map(move |attribute| value(attribute, number >> attribute))
                })
                .collect();
            let whole: Vec<Digest> = attributes
                .chunks(8)
                .map(|of_one| Digest::join(0xff, of_one.iter().copied()))
                .collect();
            let columns = DigestColumns { whole: &whole, attributes: &attributes };
            let (mut batched, mut sightings) = (new(), Vec::new());
            batched.insert_batch(columns, &mut sightings);
            let mut one_by_one = new();
            let firsts: Vec<Sighting> = columns.iter().map(|it| one_by_one.insert(it)).collect();
            assert_eq!(sightings, firsts);
            assert_eq!(batched.array.lines, one_by_one.array.lines);
            for mask in (1..=most).chain([0xff]) {
                assert_eq!(batched.distinct_of(mask), one_by_one.distinct_of(mask));
                assert_eq!(batched.first_of(mask), one_by_one.first_of(mask));
            }
        }
    }

    fn ask(filter: &SubsetFilter, attributes: &[Digest; 3], mask: u32) -> PatternAnswer {
        let masked: [Option<Digest>; 3] =
            std::array::from_fn(|i| (mask >> i & 1 == 1).then_some(attributes[i]));
        filter.contains_where(Pattern {
            whole: (mask == 0b111).then(|| element(attributes).whole),
            attributes: &masked,
        })
    }

    fn planned(masks: &[u32], probes: u32) -> Vec<PlannedCombination> {
        masks.iter().map(|&mask| PlannedCombination { mask, probes }).collect()
    }

    #[test]
    fn patterns_are_answered_from_what_is_planned() {
        let combinations = planned(&[0b001, 0b010, 0b101], 8);
        let mut filter = SubsetFilter::with_combinations(3, 4096, 8, &combinations).unwrap();
        let [a, b, new] = [1, 2, 3].map(|number| [0, 1, 2].map(|i| value(i, number)));
        assert_eq!(ask(&filter, &a, 0), PatternAnswer::Absent);
        filter.insert(element(&a));
        filter.insert(element(&b));
        let crossed = [a[0], b[1], b[2]];
        for (attributes, mask, expected) in [
            (&a, 0b111, PatternAnswer::Present),
            (&crossed, 0b111, PatternAnswer::Absent),
            (&a, 0b101, PatternAnswer::Present),
            (&crossed, 0b101, PatternAnswer::Absent),
            (&a, 0b001, PatternAnswer::Present),
            (&new, 0b010, PatternAnswer::Absent),
            // {1,2} is not planned, its parts are.
            (&a, 0b011, PatternAnswer::PresentApart),
            (&crossed, 0b011, PatternAnswer::PresentApart),
            (&new, 0b011, PatternAnswer::Absent),
            // {3} is in no planned part of {2,3}, which can only say no.
            (&a, 0b110, PatternAnswer::Unknown),
            (&new, 0b110, PatternAnswer::Absent),
            (&a, 0b100, PatternAnswer::Unknown),
            (&new, 0, PatternAnswer::Present),
        ] {
            assert_eq!(ask(&filter, attributes, mask), expected, "{mask:03b}");
        }
        let pairs = filter.distinct_of(0b101).unwrap();
        assert!((pairs.distinct - 2.0).abs() < 1e-6);
        assert_eq!(filter.distinct_of(0b111), filter.distinct());
        assert_eq!(filter.distinct_of(0b011), None);
    }

    #[test]
    fn combinations_that_cannot_be_planned() {
        let error = |attributes, combinations: &[PlannedCombination]| {
            SubsetFilter::with_combinations(attributes, 1, 4, combinations).unwrap_err().to_string()
        };
        assert!(error(3, &planned(&[0], 4)).contains("0b0 is none"));
        assert!(error(3, &planned(&[0b111], 4)).contains("always stored"));
        assert!(error(3, &planned(&[0b1001], 4)).contains("3 attributes"));
        assert!(error(3, &planned(&[0b1, 0b1], 4)).contains("twice"));
        assert!(error(3, &planned(&[0b1], 33)).contains("1 to 32 bits, not 33"));
        assert!(error(3, &planned(&[0b1], 0)).contains("1 to 32 bits, not 0"));
        assert!(error(17, &planned(&[0b1], 4)).contains("at most 16"));
    }

    /// Triples with few frequent values in a crowded array: every planned count is unbiased, over
    /// 60 repetitions, within four standard errors.
    #[test]
    fn counts_of_all_combinations_are_unbiased() {
        const RUNS: u64 = 60;
        const MASKS: [u32; 5] = [0b001, 0b010, 0b011, 0b101, 0b111];
        let mut bias = [0.0; 5];
        let mut variance = [0.0; 5];
        for run in 0..RUNS {
            let combinations = planned(&MASKS[..4], 3);
            let mut filter = SubsetFilter::with_combinations(3, 40, 4, &combinations).unwrap();
            let mut exact = MASKS.map(|_| HashSet::new());
            for i in 0..3000_u64 {
                let draw = value(run, i).value();
                // Squares of a uniform number: a few values are frequent.
                let skewed = |bits: u64, range: f64| {
                    let uniform = (bits & 0xffff) as f64 / 65_536.0;
                    (uniform * uniform * range) as u64
                };
                let numbers =
                    [skewed(draw, 300.0), skewed(draw >> 16, 80.0), skewed(draw >> 32, 20.0)];
                let attributes: [Digest; 3] =
                    std::array::from_fn(|i| value(1000 + 3 * run + i as u64, numbers[i]));
                filter.insert(element(&attributes));
                for (exact, mask) in exact.iter_mut().zip(MASKS) {
                    exact.insert([0, 1, 2].map(|i| (mask >> i & 1 == 1).then_some(numbers[i])));
                }
            }
            for (place, mask) in MASKS.into_iter().enumerate() {
                let estimate = filter.distinct_of(mask).unwrap();
                bias[place] += estimate.distinct - exact[place].len() as f64;
                variance[place] += estimate.variance;
            }
        }
        for (bias, variance) in bias.into_iter().zip(variance) {
            let error = variance.sqrt();
            println!("bias {bias:.2} ± {error:.2} over {RUNS} runs");
            assert!(bias.abs() < 4.0 * error, "{bias} ± {error}");
        }
    }

    /// Three combinations with different numbers of values in one array, k by the allocation: the
    /// measured rates are those of the formula for shared lines.
    #[test]
    fn rates_of_combinations_that_share_lines() {
        const ASKED: u64 = 40_000;
        const LINES: u64 = 240;
        let attributes = |i: u64| [value(0, i % 500), value(1, i % 4_000), value(2, i)];
        let demands =
            [20_000.0, 500.0, 4_000.0].map(|elements| Demand { elements, weight: 1.0 / 3.0 });
        let probes = shared_probes(&demands, (LINES * 512) as f64, 8);
        let parts = [(0b001, probes[1]), (0b011, probes[2])]
            .map(|(mask, probes)| PlannedCombination { mask, probes });
        let mut filter = SubsetFilter::with_combinations(3, LINES, probes[0], &parts).unwrap();
        for i in 0..20_000 {
            filter.insert(element(&attributes(i)));
        }
        let predicted = filter.predicted_fpr(20_000.0, &[500.0, 4_000.0]);
        for (mask, predicted) in [0b111, 0b001, 0b011].into_iter().zip(predicted) {
            let yes = (0..ASKED)
                .map(|i| [0, 1, 2].map(|attribute| value(attribute, 1_000_000 + i)))
                .filter(|attributes| ask(&filter, attributes, mask) == PatternAnswer::Present)
                .count();
            let rate = yes as f64 / ASKED as f64;
            let error = (predicted / ASKED as f64).sqrt();
            println!("{mask:03b}: {rate:.5}, predicted {predicted:.5}, k {probes:?}");
            // The lines of one filter are one draw: a few percent more.
            let allowed = 4.0 * error + 0.06 * predicted;
            assert!((rate - predicted).abs() < allowed, "{rate} {predicted}");
        }
    }

    /// Of all combinations, planned or not, and of more patterns than are asked for together.
    #[test]
    fn many_patterns_have_the_answers_of_each() {
        let parts = [(0b001, 2), (0b110, 5), (0b101, 11)]
            .map(|(mask, probes)| PlannedCombination { mask, probes });
        let mut filter = SubsetFilter::with_combinations(3, 60, 4, &parts).unwrap();
        let attributes = |i: u64| [value(0, i % 70), value(1, i % 110), value(2, i % 230)];
        for i in 0..400 {
            filter.insert(element(&attributes(i)));
        }
        let asked: Vec<[Digest; 3]> =
            (300..633).map(|i| [0, 1, 2].map(|at| value(at, i))).collect();
        let asked = [asked, (0..300).map(attributes).collect()].concat();
        for mask in 1..7 {
            let given = asked.iter().flat_map(|of_one| members(mask).map(|at| of_one[at]));
            let given: Vec<Digest> = given.collect();
            let patterns = PatternColumns { arity: 3, mask, attributes: &given };
            let mut answers = vec![PatternAnswer::Unknown];
            filter.contains_where_batch(patterns, &mut answers);
            let of_each = asked.iter().map(|of_one| ask(&filter, of_one, mask));
            assert_eq!(answers[1..], of_each.collect::<Vec<_>>(), "{mask:03b}");
        }
    }

    proptest! {
        #[test]
        fn planned_patterns_have_no_false_negatives(
            masks in prop::collection::hash_set(1_u32..7, 0..6),
            probes in 1_u32..33,
            lines in 1_u64..5,
            numbers in prop::collection::vec(any::<[u64; 3]>(), 1..40),
        ) {
            let masks: Vec<u32> = masks.into_iter().collect();
            let combinations = planned(&masks, probes);
            let mut filter =
                SubsetFilter::with_combinations(3, lines, probes, &combinations).unwrap();
            let mut batched = filter.clone();
            let mut alone = SubsetFilter::new(lines, probes);
            let elements: Vec<[Digest; 3]> = numbers
                .iter()
                .map(|numbers| std::array::from_fn(|i| value(i as u64, numbers[i] % 6)))
                .collect();
            let one_by_one: Vec<Sighting> = elements
                .iter()
                .map(|attributes| filter.insert(element(attributes)))
                .collect();
            let whole: Vec<Digest> = elements
                .iter()
                .map(|attributes| element(attributes).whole)
                .collect();
            let mut sightings = Vec::new();
            let columns = DigestColumns { whole: &whole, attributes: &elements.concat() };
            batched.insert_batch(columns, &mut sightings);
            prop_assert_eq!(&sightings, &one_by_one);
            prop_assert_eq!(&batched.array.lines, &filter.array.lines);
            for attributes in &elements {
                alone.insert(element(attributes));
                for mask in 0..8 {
                    prop_assert_ne!(ask(&filter, attributes, mask), PatternAnswer::Absent);
                }
            }
            if masks.is_empty() {
                // Nothing planned: bit for bit the filter of the whole element alone.
                prop_assert_eq!(&alone.array.lines, &filter.array.lines);
                prop_assert_eq!(alone.distinct(), filter.distinct());
            }
            filter.clear();
            prop_assert_eq!(filter.array.lines.ones(), 0);
            for mask in masks {
                prop_assert_eq!(filter.distinct_of(mask), Some(Estimate::default()));
            }
        }
    }
}
