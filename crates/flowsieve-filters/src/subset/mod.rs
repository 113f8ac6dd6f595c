//! The subset filter: one blocked array for all combinations of attributes that queries ask for,
//! with an unbiased count of each.
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
//! Up to eight bits of a combination take one cache line at any size of the filter, where a
//! standard Bloom filter touches up to k lines. An absent element mostly takes one line.
//!
//! # Formulas
//!
//! The false-positive rate is [`super::sizing::blocked_fpr`], and with several combinations
//! [`super::sizing::shared_blocked_fpr`]. [`super::allocation::shared_probes`] divides the bits
//! among them. For the whole element alone, each with its best k:
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
//! The bits of a new element, or of a new value of a combination, are uniform in its words. So it
//! is called a repeat with p = product of (set bits of the word / 64) over the k words of all its
//! lines, exactly, whichever elements set them. The count of each combination is
//! [`super::DistinctCounter`]'s with that p: unbiased, and computed from the line just loaded, for
//! new values only. When nearly all words are full it has no upper bound.
//!
//! [`SubsetFilter::halving`], for the whole element alone, avoids that: when 86 % of its bits are set,
//! it keeps the lines of half of the addresses and only looks at their elements; the other lines
//! are cleared and used for new elements of that half. So its error is about the same for any
//! number of elements (`lines/halving.rs` has the rule and its proof), and queries for the other
//! elements are answered by [`PatternAnswer::Unknown`].
//!
//! # Limits
//!
//! Elements cannot be removed. There is no answer for combinations that are neither planned nor
//! covered by planned ones.
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

pub(crate) use self::spec::SUBSET;
pub use self::spec::{PlannedCombination, SubsetSpec};
use crate::hashing::Digest;
use crate::lines::{HalvingLines, LineArray, LineCounter, LineShape};
use crate::matrix_sizing::{MAX_ATTRIBUTES, members};
use crate::saved::{FilterState, LoadError, StateReader, StateWriter, UnionError, same};
use crate::{
    DigestColumns, ElementDigests, Estimate, FilterStats, MembershipFilter, MultiAttributeFilter,
    Pattern, PatternAnswer, PatternColumns, Sighting, SpecError,
};
use std::io;

/// Blocked Bloom filter over the whole element and over planned combinations of its attributes,
/// with an unbiased count of each.
#[derive(Clone, Debug)]
pub struct SubsetFilter {
    array: Array,
    /// The mask of all attributes; `None` if there are too many for planned combinations.
    full: Option<u32>,
    /// The planned combinations.
    masks: Vec<u32>,
}

#[derive(Clone, Debug)]
enum Array {
    /// Lines for the whole element alone, which halve their sample when they are crowded.
    Halving(HalvingLines),
    /// Lines for all elements, with the counts of the whole elements and of each planned
    /// combination.
    Lines(LineArray, Vec<LineCounter>),
}

/// Returns the joint digest of a combination, given the digests of its attributes.
fn join(mask: u32, digest: impl Fn(usize) -> Digest) -> Digest {
    Digest::join(mask, members(mask).map(digest))
}

impl SubsetFilter {
    /// Creates a filter of `lines` ≥ 1 cache lines with `probes` (1 to 32) bits an element, for the
    /// whole element alone. It stores all elements; when it is full, its count has no upper bound.
    pub fn new(lines: impl Into<LineShape>, probes: u32) -> Self {
        Self::of_whole(Array::Lines(LineArray::new(lines), vec![LineCounter::empty(probes)]))
    }

    /// Creates the same filter without a running count, which makes insertions cheaper: it is
    /// counted by its fill.
    pub fn without_count(lines: impl Into<LineShape>, probes: u32) -> Self {
        Self::of_whole(Array::Lines(LineArray::new(lines), vec![LineCounter::off(probes)]))
    }

    /// Creates a filter of `lines` ≥ 1 cache lines with `probes` (1 to 8) bits an element that
    /// halves its sample when it is crowded: it counts any number of elements, and stores a sample
    /// of them.
    pub fn halving(lines: impl Into<LineShape>, probes: u32) -> Self {
        Self::of_whole(Array::Halving(HalvingLines::new(lines, probes)))
    }

    const fn of_whole(array: Array) -> Self {
        Self { array, full: None, masks: Vec::new() }
    }

    /// Creates a filter that also stores these combinations of the `attributes`, in the same lines.
    ///
    /// # Errors
    ///
    /// Combinations of no or all attributes or the same twice, more than 32 bits, more than 16
    /// attributes.
    pub fn with_combinations(
        attributes: usize,
        lines: impl Into<LineShape>,
        probes: u32,
        combinations: &[PlannedCombination],
    ) -> Result<Self, SpecError> {
        PlannedCombination::check_all(combinations, attributes)?;
        let parts = combinations.iter().map(|part| part.probes);
        let counters = std::iter::once(probes).chain(parts).map(LineCounter::empty);
        Ok(Self {
            array: Array::Lines(LineArray::new(lines), counters.collect()),
            full: (attributes <= MAX_ATTRIBUTES).then(|| (1 << attributes) - 1),
            masks: combinations.iter().map(|part| part.mask).collect(),
        })
    }

    const fn array(&self) -> &LineArray {
        match &self.array {
            Array::Halving(lines) => lines.array(),
            Array::Lines(array, _) => array,
        }
    }

    /// Returns the number of a stored combination: 0 for the whole element, and from 1 on in the
    /// order in which they were planned.
    fn number_of(&self, mask: u32) -> Option<usize> {
        if self.full == Some(mask) {
            return Some(0);
        }
        Some(self.masks.iter().position(|&part| part == mask)? + 1)
    }

    /// Returns the answer for a whole element.
    fn answer_of(&self, whole: Digest) -> PatternAnswer {
        match &self.array {
            Array::Halving(lines) => {
                lines.contains(whole).map_or(PatternAnswer::Unknown, Into::into)
            }
            Array::Lines(array, counters) => array.contains(counters[0].probes(), whole).into(),
        }
    }
}

impl MembershipFilter for SubsetFilter {
    fn insert(&mut self, element: ElementDigests<'_>) -> Sighting {
        match &mut self.array {
            Array::Halving(lines) => lines.insert(element.whole),
            Array::Lines(array, counters) => {
                let sighting = array.insert(&mut counters[0], element.whole);
                for (&mask, counter) in self.masks.iter().zip(&mut counters[1..]) {
                    let digest = join(mask, |attribute| element.attributes[attribute]);
                    array.insert::<()>(counter, digest);
                }
                sighting
            }
        }
    }

    fn contains(&self, element: ElementDigests<'_>) -> bool {
        self.answer_of(element.whole) != PatternAnswer::Absent
    }

    fn clear(&mut self) {
        match &mut self.array {
            Array::Halving(lines) => lines.clear(),
            Array::Lines(array, counters) => {
                array.lines.clear();
                counters.iter_mut().for_each(LineCounter::clear);
            }
        }
    }

    fn stats(&self) -> FilterStats {
        let memory_bytes = self.array().shape().bytes();
        let fill_ratio = self.array().lines.ones() as f64 / (memory_bytes * 8) as f64;
        FilterStats { memory_bytes, fill_ratio, counters: None }
    }

    fn stage(&self) -> u32 {
        match &self.array {
            Array::Halving(lines) => lines.stage(),
            Array::Lines(..) => 0,
        }
    }

    fn distinct(&self) -> Option<Estimate> {
        match &self.array {
            Array::Halving(lines) => Some(lines.estimate()),
            Array::Lines(array, counters) => array.estimate(&counters[0]),
        }
    }

    fn insert_batch(&mut self, elements: DigestColumns<'_>, sightings: &mut Vec<Sighting>) {
        let Self { array, masks, .. } = self;
        let number = elements.whole.len();
        match array {
            Array::Halving(lines) => lines.insert_all(elements.whole, sightings),
            Array::Lines(array, counters) if masks.is_empty() => {
                array.insert_all(&mut counters[0], elements.whole, sightings);
            }
            Array::Lines(array, counters) if LineArray::can_take_turns(counters) => {
                let arity = elements.arity();
                let digests_of = |element: usize, digests: &mut [Digest]| {
                    let attributes = &elements.attributes[element * arity..][..arity];
                    digests[0] = elements.whole[element];
                    for (digest, &mask) in digests[1..].iter_mut().zip(&*masks) {
                        *digest = join(mask, |attribute| attributes[attribute]);
                    }
                };
                array.insert_in_turn(counters, number, digests_of, sightings);
            }
            Array::Lines(..) => {
                sightings.extend(elements.iter().map(|element| self.insert(element)));
            }
        }
    }

    fn contains_batch(&self, elements: DigestColumns<'_>, answers: &mut Vec<bool>) {
        match &self.array {
            Array::Halving(lines) => lines.contains_all(elements.whole, answers),
            Array::Lines(array, counters) => {
                array.contains_all(counters[0].probes(), elements.whole, answers);
            }
        }
    }

    fn as_multi_attribute(&self) -> Option<&dyn MultiAttributeFilter> {
        Some(self)
    }
}

impl FilterState for SubsetFilter {
    fn save_state(&self, state: &mut StateWriter<'_>) -> io::Result<()> {
        match &self.array {
            Array::Halving(lines) => {
                let (count, stage, limit) = lines.parts();
                state.distinct(count)?;
                state.u8(stage as u8)?;
                state.u64(limit)?;
            }
            Array::Lines(_, counters) => {
                for counter in counters {
                    state.distinct(counter.count())?;
                }
            }
        }
        state.lines(&self.array().lines, self.array().shape().bytes())
    }

    fn load_state(&mut self, state: &mut StateReader<'_>) -> Result<(), LoadError> {
        match &mut self.array {
            Array::Halving(lines) => {
                let count = state.lasting_distinct()?;
                let (stage, limit) = (state.u8()?, state.u64()?);
                let read = lines.restore(count, (stage.into(), limit), |to| to.load(state))?;
                read.ok_or_else(|| state.damaged("its stage is none that these lines can have"))
            }
            Array::Lines(array, counters) => {
                for counter in counters {
                    counter.restore(state.lasting_distinct()?);
                }
                array.load(state)
            }
        }
    }

    fn unite(&mut self, other: &dyn FilterState) -> Result<(), UnionError> {
        let other: &Self = same(other)?;
        match (&mut self.array, &other.array) {
            (Array::Halving(lines), Array::Halving(more)) => lines.unite(more),
            (Array::Lines(array, counters), Array::Lines(more, others)) => {
                array.unite(counters, more, others);
            }
            _ => return Err(UnionError::Parameters),
        }
        Ok(())
    }
}

impl MultiAttributeFilter for SubsetFilter {
    fn contains_where(&self, pattern: Pattern<'_>) -> PatternAnswer {
        if let Some(whole) = pattern.whole {
            return self.answer_of(whole);
        }
        if pattern.mask() == 0 {
            // Every element matches, so it is enough that one was inserted.
            return self.distinct().is_none_or(|count| count != Estimate::default()).into();
        }
        let Array::Lines(array, counters) = &self.array else { return PatternAnswer::Unknown };
        let query = pattern.mask();
        let digest = |attribute: usize| {
            pattern.attributes[attribute].expect("the part has attributes of the query only")
        };
        let is_set =
            |mask, counter: &LineCounter| array.contains(counter.probes(), join(mask, digest));
        let parts = self.masks.iter().copied().zip(&counters[1..]);
        if let Some((mask, counter)) = parts.clone().find(|&(mask, _)| mask == query) {
            return is_set(mask, counter).into();
        }
        let mut covered = 0;
        for (mask, counter) in parts.filter(|&(mask, _)| mask & !query == 0) {
            if !is_set(mask, counter) {
                return PatternAnswer::Absent;
            }
            covered |= mask;
        }
        if covered == query { PatternAnswer::PresentApart } else { PatternAnswer::Unknown }
    }

    fn contains_where_batch(&self, patterns: PatternColumns<'_>, answers: &mut Vec<PatternAnswer>) {
        let mask = patterns.mask;
        let part = self.masks.iter().position(|&part| part == mask);
        let (Some(part), Array::Lines(array, counters)) = (part, &self.array) else {
            return patterns.for_each(|pattern| answers.push(self.contains_where(pattern)));
        };
        let given = patterns.attributes.chunks_exact(patterns.given());
        let digests: Vec<Digest> =
            given.map(|digests| Digest::join(mask, digests.iter().copied())).collect();
        let mut are_set = Vec::with_capacity(digests.len());
        array.contains_all(counters[part + 1].probes(), &digests, &mut are_set);
        answers.extend(are_set.into_iter().map(PatternAnswer::from));
    }

    fn distinct_of(&self, mask: u32) -> Option<Estimate> {
        match &self.array {
            Array::Halving(lines) => self.number_of(mask).map(|_| lines.estimate()),
            Array::Lines(array, counters) => array.estimate(&counters[self.number_of(mask)?]),
        }
    }

    fn first_of(&self, mask: u32) -> Option<u64> {
        match &self.array {
            Array::Halving(lines) => self.number_of(mask).and_then(|_| lines.firsts()),
            Array::Lines(_, counters) => counters[self.number_of(mask)?].firsts(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::allocation::{Demand, shared_probes};
    use crate::hashing::Digester;
    use crate::sizing::{
        best_line_probes, best_probes, blocked_fpr, bloom_fpr, shared_blocked_fpr,
    };
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

    /// Compares the places of a digest's bits with the definition, word by word: saved filters
    /// depend on them.
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
        let lines = filter.array().lines.as_slice().as_flattened();
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

    /// With more combinations than a row has digests, and with fewer.
    #[test]
    fn batches_with_any_number_of_combinations_equal_single_insertions() {
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
            assert_eq!(batched.array().lines, one_by_one.array().lines);
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
            // {1,2} is not planned, but its parts are.
            (&a, 0b011, PatternAnswer::PresentApart),
            (&crossed, 0b011, PatternAnswer::PresentApart),
            (&new, 0b011, PatternAnswer::Absent),
            // No planned part of {2,3} contains {3}, so the parts can only say no.
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

    /// Triples with a few frequent values in a crowded array: over 60 repetitions every planned
    /// count is unbiased, within four standard errors.
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

    /// Three combinations with different numbers of values in one array, with k by the allocation:
    /// the measured rates are those of the formula for shared lines.
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
        let values = [20_000.0, 500.0, 4_000.0];
        let written: Vec<(f64, u32)> = values.into_iter().zip(probes.iter().copied()).collect();
        for (mask, &k) in [0b111, 0b001, 0b011].into_iter().zip(&probes) {
            let predicted = shared_blocked_fpr(LINES as f64, k, &written);
            let yes = (0..ASKED)
                .map(|i| [0, 1, 2].map(|attribute| value(attribute, 1_000_000 + i)))
                .filter(|attributes| ask(&filter, attributes, mask) == PatternAnswer::Present)
                .count();
            let rate = yes as f64 / ASKED as f64;
            let error = (predicted / ASKED as f64).sqrt();
            println!("{mask:03b}: {rate:.5}, predicted {predicted:.5}, k {probes:?}");
            // The lines of one filter are a single sample: allow a few percent more.
            let allowed = 4.0 * error + 0.06 * predicted;
            assert!((rate - predicted).abs() < allowed, "{rate} {predicted}");
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
            prop_assert_eq!(&batched.array().lines, &filter.array().lines);
            for attributes in &elements {
                alone.insert(element(attributes));
                for mask in 0..8 {
                    prop_assert_ne!(ask(&filter, attributes, mask), PatternAnswer::Absent);
                }
            }
            if masks.is_empty() {
                // Without planned combinations it is bit for bit the filter of the whole element
                // alone.
                prop_assert_eq!(&alone.array().lines, &filter.array().lines);
                prop_assert_eq!(alone.distinct(), filter.distinct());
            }
            filter.clear();
            prop_assert_eq!(filter.array().lines.ones(), 0);
            for mask in masks {
                prop_assert_eq!(filter.distinct_of(mask), Some(Estimate::default()));
            }
        }
    }
}
