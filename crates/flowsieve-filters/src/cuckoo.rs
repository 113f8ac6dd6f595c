//! The cuckoo filter: a table of fingerprints, each of which may be in two buckets.
//!
//! # Memory
//!
//! ```text
//!     element ──► digest ──► bucket i, fingerprint t of f bits
//!                               │
//!     B buckets of 4 cells:  t · · ·   t t t ·   · · · ·      i, or (H(t) - i) mod B
//! ```
//!
//! # Operations
//!
//! - contains: look for t in both buckets.
//! - insert: do nothing if the element is contained. Else put t into a free cell of either bucket.
//!   If there is none, replace another fingerprint and move that one to its other bucket, up to 500
//!   times. The last fingerprint that finds no cell is kept apart. With the next one the filter is
//!   full: from then on it says yes to everything, so that there are no false negatives.
//!
//! Each bucket follows from the other one and t, so a fingerprint is moved without its element. A
//! query costs O(1) and touches two cache lines.
//!
//! # Formulas
//!
//! A cell that holds t in bucket i answers yes for two of the B (2^f - 1) pairs of bucket and
//! fingerprint (one, if both buckets are one). So with n distinct elements
//!
//! ```text
//!     rate = 1 - (1 - 2 / (B (2^f - 1)))^n
//! ```
//!
//! up to 95 % of the cells. Filters are sized to be filled to 94 %, and small ones to less.
//!
//! | rate | f | bits an element |
//! |---|---|---|
//! | 1e-2 | 10 | 10.6 |
//! | 1e-3 | 13 | 13.8 |
//! | 1e-6 | 23 | 24.5 |
//!
//! # Distinct elements
//!
//! A new element is called a repeat with the share of the pairs above that answer yes.
//!
//! # Limits
//!
//! The filter does not answer for some of the attributes. Elements cannot be removed: a repeat is
//! not stored again, so it is unknown how often an element was inserted ([`super::dleft`] counts).
//!
//! # Example
//!
//! ```
//! use flowsieve_filters::hashing::Digester;
//! use flowsieve_filters::{CuckooFilter, CuckooSpec, ElementDigests, MembershipFilter};
//!
//! let hasher = Digester::new(0);
//! let word = |word: &str| ElementDigests::of_whole(hasher.digest(word.as_bytes()));
//! let mut filter = CuckooFilter::new(CuckooSpec { buckets: 100, fingerprint_bits: 12 });
//! filter.insert(word("in"));
//! assert!(filter.contains(word("in")));
//! ```
//!
//! Reference: Fan, Andersen, Kaminsky, Mitzenmacher, "Cuckoo filter: practically better than
//! Bloom", `CoNEXT` 2014. There B is a power of two and the other bucket is i xor H(t); a
//! difference works for any B.

use super::dleft::fpr_of_hashes;
use super::fill;
use super::saved::{FilterState, LoadError, StateReader, StateWriter, UnionError, same, saved};
use super::spec::{
    Descriptor, FilterKind, Parameters, Query, Reach, Shape, Sizing, SpecError, check_memory,
    check_range,
};
use super::{DistinctCounter, ElementDigests, Estimate, FilterStats, MembershipFilter, Sighting};
use crate::bits::{Pages, field, flip};
use crate::hashing::{Digest, Probes, reduce};
use std::io;

/// Cells of a bucket.
const CELLS: u64 = 4;

/// Share of the cells that a filter is sized to fill.
const LOAD: f64 = 0.94;

/// Additional buckets, since few buckets fill less evenly.
const SPARE: u64 = 2;

/// Most fingerprints that are moved for one element.
const MOVES: u64 = 500;

/// Least, default and most bits of a fingerprint.
const FINGERPRINT_BITS: [u32; 3] = [2, 8, 32];

/// Most buckets: 2^40 bytes of 32-bit fingerprints.
const MAX_BUCKETS: u64 = 1 << 36;

/// Parameters of a [`CuckooFilter`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CuckooSpec {
    /// Buckets of four cells (B).
    pub buckets: u64,
    /// Bits of a fingerprint (f).
    pub fingerprint_bits: u32,
}

pub(crate) const CUCKOO: Descriptor = Descriptor {
    name: "cuckoo",
    summary: "Cuckoo filter (Fan et al. 2014), for comparison",
    reach: Reach::Whole,
    ignores_repeats: true,
    size: |_, sizing| {
        let [least, usual, most] = FINGERPRINT_BITS;
        Ok(match sizing {
            Sizing::Memory { bytes, expected } => {
                check_memory(FilterKind::Cuckoo, bytes, 8)?;
                let in_bits = |fingerprint_bits: u32| {
                    let buckets = bytes * 8 / (CELLS * u64::from(fingerprint_bits));
                    CuckooSpec { buckets, fingerprint_bits }
                };
                let fits = |spec: &CuckooSpec| {
                    expected.is_some_and(|elements| spec.buckets >= buckets_for(elements))
                };
                (least..=most).rev().map(in_bits).find(fits).unwrap_or(in_bits(usual))
            }
            Sizing::Rate { fpr, expected } => {
                let buckets = buckets_for(expected);
                let of_bits = |fingerprint_bits| CuckooSpec { buckets, fingerprint_bits };
                let reaches = |spec: &CuckooSpec| spec.rate_at(expected as f64) <= fpr;
                (least..=most).map(of_bits).find(reaches).ok_or_else(|| {
                    SpecError::new(format!(
                        "a cuckoo filter reaches rates down to {:.1e} with {expected} elements, not {fpr:e}; a Bloom filter reaches it",
                        of_bits(most).rate_at(expected as f64)
                    ))
                })?
            }
        }
        .into())
    },
    search: None,
};

/// Returns the buckets of a filter for this many elements.
fn buckets_for(elements: u64) -> u64 {
    (elements as f64 / (CELLS as f64 * LOAD)).ceil() as u64 + SPARE
}

saved!(CuckooSpec { buckets, fingerprint_bits });

impl CuckooSpec {
    /// Returns the number of pairs of a bucket and a fingerprint.
    fn pairs(&self) -> f64 {
        self.buckets as f64 * (f64::from(self.fingerprint_bits).exp2() - 1.0)
    }

    fn rate_at(&self, elements: f64) -> f64 {
        /// Load above which an insertion usually fails; a full filter answers yes to everything.
        const FULL: f64 = 0.96;
        if self.stored(elements) > FULL * (CELLS * self.buckets) as f64 {
            return 1.0;
        }
        fpr_of_hashes(self.pairs() / 2.0, elements)
    }

    /// Returns the number of fingerprints that this many distinct elements store.
    fn stored(&self, elements: f64) -> f64 {
        let hashes = self.pairs() / 2.0;
        hashes * fpr_of_hashes(hashes, elements)
    }
}

impl Parameters for CuckooSpec {
    fn check(&self) -> Result<(), SpecError> {
        let [least, usual, most] = FINGERPRINT_BITS.map(u64::from);
        let has = "the fingerprint of a cuckoo filter has";
        check_range(has, least..=most, "bits", self.fingerprint_bits.into(), usual)?;
        check_range("a cuckoo filter has", 1..=MAX_BUCKETS, "buckets", self.buckets, 1 << 20)
    }

    fn memory_bytes(&self) -> u64 {
        (self.buckets * CELLS * u64::from(self.fingerprint_bits)).div_ceil(8)
    }

    fn build(&self) -> Box<dyn MembershipFilter> {
        Box::new(CuckooFilter::new(*self))
    }

    fn rate(&self, query: &Query<'_>) -> Option<f64> {
        query.of_whole(|n| self.rate_at(n))
    }

    fn shape(&self) -> Shape {
        Shape {
            size: Some(self.buckets),
            unit: "buckets",
            remainder_bits: Some(self.fingerprint_bits),
            ..Shape::default()
        }
    }

    fn describe(&self) -> String {
        let Self { buckets, fingerprint_bits } = self;
        format!("{buckets} buckets of {CELLS} fingerprints of {fingerprint_bits} bits")
    }
}

/// A bucket, and a fingerprint (at least 1) that may be in it.
type Place = (u64, u64);

/// Cuckoo filter over the whole element.
#[derive(Clone, Debug)]
pub struct CuckooFilter {
    spec: CuckooSpec,
    words: Pages<u64>,
    /// Cells in use.
    used: u64,
    /// Pairs of bucket and fingerprint that answer yes.
    covered: u64,
    /// The fingerprint that found no cell.
    apart: Option<Place>,
    /// Whether a second fingerprint found no cell.
    is_full: bool,
    counter: DistinctCounter,
}

impl CuckooFilter {
    /// Creates an empty filter.
    pub fn new(spec: CuckooSpec) -> Self {
        Self {
            spec,
            words: Pages::new(spec.memory_bytes().div_ceil(8) as usize),
            used: 0,
            covered: 0,
            apart: None,
            is_full: false,
            counter: DistinctCounter::default(),
        }
    }

    fn place(&self, digest: Digest) -> Place {
        let mut numbers = Probes::new(digest, 0, 2, u64::MAX);
        let mut below = |n| numbers.next().map_or(0, |number| reduce(number, n));
        let bucket = below(self.spec.buckets);
        (bucket, below((1 << self.spec.fingerprint_bits) - 1) + 1)
    }

    /// Returns the other bucket of a fingerprint.
    const fn other(&self, (bucket, tag): Place) -> u64 {
        let sum = reduce(scattered(tag), self.spec.buckets);
        if sum >= bucket { sum - bucket } else { sum + self.spec.buckets - bucket }
    }

    /// Returns the bit at which a cell begins.
    const fn bit_of(&self, bucket: u64, cell: u64) -> u64 {
        (bucket * CELLS + cell) * self.spec.fingerprint_bits as u64
    }

    /// Returns the fingerprint in a cell, or 0 if it is free.
    fn get(&self, bucket: u64, cell: u64) -> u64 {
        field(self.words.as_slice(), self.bit_of(bucket, cell), self.spec.fingerprint_bits)
    }

    /// Puts a fingerprint into a cell; returns the one that was there.
    fn replace(&mut self, bucket: u64, cell: u64, tag: u64) -> u64 {
        let before = self.get(bucket, cell);
        let bit = self.bit_of(bucket, cell);
        flip(self.words.as_mut_slice(), bit, before ^ tag);
        before
    }

    fn holds(&self, place: Place) -> bool {
        let (bucket, tag) = place;
        let other = self.other(place);
        let in_cell = |bucket| (0..CELLS).any(|cell| self.get(bucket, cell) == tag);
        self.is_full
            || in_cell(bucket)
            || in_cell(other)
            || self.apart.is_some_and(|(at, kept)| kept == tag && (at == bucket || at == other))
    }

    fn repeat_probability(&self) -> f64 {
        if self.is_full { 1.0 } else { (self.covered as f64 / self.spec.pairs()).min(1.0) }
    }

    /// Stores a fingerprint in a free cell of the bucket; returns whether there was one.
    fn put(&mut self, (bucket, tag): Place) -> bool {
        let free = (0..CELLS).find(|&cell| self.get(bucket, cell) == 0);
        if let Some(cell) = free {
            self.replace(bucket, cell, tag);
            self.used += 1;
        }
        free.is_some()
    }

    /// Stores a fingerprint that is not stored yet.
    fn store(&mut self, place: Place) {
        if self.apart.is_some() {
            self.fill();
            return;
        }
        let other = self.other(place);
        self.covered += self.pairs_of(place);
        if self.put(place) {
            return;
        }
        let mut moved = (other, place.1);
        for step in 0..MOVES {
            if self.put(moved) {
                return;
            }
            // A pseudo-random cell that depends on the contents only, so that runs are
            // reproducible.
            let cell = scattered(moved.0 ^ moved.1 << 20 ^ step << 54) >> 62;
            let tag = self.replace(moved.0, cell, moved.1);
            moved = (self.other((moved.0, tag)), tag);
        }
        self.apart = Some(moved);
    }

    /// Makes the filter say yes to everything from now on, which needs no cells.
    fn fill(&mut self) {
        let counter = self.counter;
        self.clear();
        self.counter = counter;
        self.is_full = true;
    }

    fn pairs_of(&self, place: Place) -> u64 {
        1 + u64::from(self.other(place) != place.0)
    }

    /// Iterates over all stored fingerprints, each with the bucket that holds it.
    fn stored(&self) -> impl Iterator<Item = Place> + '_ {
        let cells = (0..self.spec.buckets)
            .flat_map(move |bucket| (0..CELLS).map(move |cell| (bucket, self.get(bucket, cell))));
        cells.filter(|&(_, tag)| tag != 0).chain(self.apart)
    }
}

/// Mixes the bits of a number.
const fn scattered(number: u64) -> u64 {
    let mixed = (number ^ number >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed ^ mixed >> 32).wrapping_mul(0x94d0_49bb_1331_11eb)
}

impl MembershipFilter for CuckooFilter {
    fn insert(&mut self, element: ElementDigests<'_>) -> Sighting {
        let place = self.place(element.whole);
        if self.holds(place) {
            return Sighting::Repeat;
        }
        let repeat_probability = self.repeat_probability();
        self.counter.record(Sighting::First, || repeat_probability);
        self.store(place);
        Sighting::First
    }

    fn contains(&self, element: ElementDigests<'_>) -> bool {
        self.holds(self.place(element.whole))
    }

    fn clear(&mut self) {
        self.words.as_mut_slice().fill(0);
        (self.used, self.covered) = (0, 0);
        self.apart = None;
        self.is_full = false;
        self.counter = DistinctCounter::default();
    }

    fn stats(&self) -> FilterStats {
        FilterStats {
            memory_bytes: self.spec.memory_bytes(),
            fill_ratio: if self.is_full {
                1.0
            } else {
                self.used as f64 / (CELLS * self.spec.buckets) as f64
            },
            counters: None,
        }
    }

    fn distinct(&self) -> Option<Estimate> {
        Some(self.counter.estimate(|| self.repeat_probability()).unless_full(self.is_full))
    }
}

impl FilterState for CuckooFilter {
    fn save_state(&self, state: &mut StateWriter<'_>) -> io::Result<()> {
        state.distinct(Some(&self.counter))?;
        state.flag(self.is_full)?;
        let (bucket, tag) = self.apart.unwrap_or_default();
        state.u64(bucket)?;
        state.u64(tag)?;
        state.words(self.words.as_slice())
    }

    fn load_state(&mut self, state: &mut StateReader<'_>) -> Result<(), LoadError> {
        self.counter = state.lasting_distinct()?;
        self.is_full = state.flag()?;
        let apart = (state.u64()?, state.u64()?);
        state.words(self.words.as_mut_slice())?;
        let bits = CELLS * self.spec.buckets * u64::from(self.spec.fingerprint_bits);
        let unused = self.words.len() as u64 * 64 - bits;
        let last = self.words.as_slice().last().copied().unwrap_or(0);
        let is_place = apart.0 < self.spec.buckets && apart.1 >> self.spec.fingerprint_bits == 0;
        let is_empty = self.words.as_slice().iter().all(|&word| word == 0);
        if !is_place || (unused > 0 && last >> (64 - unused) != 0) || (self.is_full && !is_empty) {
            return Err(state.damaged("a fingerprint stands where none can be"));
        }
        self.apart = Some(apart).filter(|&(_, tag)| tag != 0);
        (self.used, self.covered) = self
            .stored()
            .fold((0, 0), |(used, covered), place| (used + 1, covered + self.pairs_of(place)));
        self.used -= u64::from(self.apart.is_some());
        Ok(())
    }

    fn unite(&mut self, other: &dyn FilterState) -> Result<(), UnionError> {
        let other: &Self = same(other)?;
        let of_both = [self.distinct(), other.distinct()];
        if other.is_full {
            self.fill();
        }
        for place in other.stored() {
            if !self.holds(place) {
                self.store(place);
            }
        }
        let stored = self.used + u64::from(self.apart.is_some());
        let fill = fill::independent(stored, self.spec.pairs() / 2.0, 1);
        self.counter.unite(&other.counter, of_both, fill.filter(|_| !self.is_full));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hashing::Digester;

    fn filled(spec: CuckooSpec, seed: u64, elements: u64) -> CuckooFilter {
        let mut filter = CuckooFilter::new(spec);
        let digester = Digester::new(seed);
        for number in 0..elements {
            filter.insert(ElementDigests::of_whole(digester.digest(&number.to_le_bytes())));
        }
        filter
    }

    #[test]
    fn a_filter_holds_the_elements_it_is_sized_for() {
        for elements in [1, 10, 100, 1_000, 10_000, 100_000] {
            for seed in 0..20 {
                let buckets = buckets_for(elements);
                let filter = filled(CuckooSpec { buckets, fingerprint_bits: 13 }, seed, elements);
                assert!(!filter.is_full, "{elements} {seed}: {}", filter.stats().fill_ratio);
            }
        }
    }

    #[test]
    fn the_other_bucket_of_the_other_bucket_is_the_first() {
        for buckets in [1, 2, 7, 64, 1001] {
            let filter = CuckooFilter::new(CuckooSpec { buckets, fingerprint_bits: 5 });
            for (bucket, tag) in
                (0..buckets).flat_map(|bucket| (1..32).map(move |tag| (bucket, tag)))
            {
                let other = filter.other((bucket, tag));
                assert!(other < buckets);
                assert_eq!(filter.other((other, tag)), bucket);
            }
        }
    }

    #[test]
    fn a_full_filter_says_yes() {
        let filter = filled(CuckooSpec { buckets: 4, fingerprint_bits: 8 }, 1, 100);
        assert!(filter.is_full && filter.distinct().is_some_and(Estimate::is_full));
        assert_eq!(filter.distinct().and_then(Estimate::point), None);
        assert!(filter.contains(ElementDigests::of_whole(Digester::new(9).digest(b"none"))));
    }
}
