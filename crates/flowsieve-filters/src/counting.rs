//! The counting Bloom filter: a Bloom filter from which elements can be removed.
//!
//! # Memory
//!
//! ```text
//!     element ──► digest ──► k independent positions
//!                               │      │           │
//!     m counters of c bits:  0 0 1 0 0 3 0 0 1 0 0 15 0 0      (c = 4: 0 … 15)
//! ```
//!
//! # Operations
//!
//! - insert: increment the counters at the k positions; the element was new if any of them was
//!   zero. An element that is inserted twice counts twice.
//! - contains: none of the k counters is zero.
//! - remove: decrement the counters at the k positions, if the element is contained.
//!
//! A counter that has reached 2^c - 1 is never decremented again: it may stand for more than it can
//! hold. So elements inserted very often cannot be removed entirely and stay as false positives,
//! but an element that was inserted and not removed is always contained.
//!
//! All cost O(k) and touch up to k cache lines.
//!
//! # Formulas
//!
//! With m counters, k positions and n distinct elements the false-positive rate is that of a Bloom
//! filter of m bits, f = (1 - e^(-kn/m))^k ([`super::sizing::bloom_fpr`]), for c times the memory.
//! A counter's value is Poisson with mean kn/m, so at the best k (mean ln 2) one counter reaches j
//! with probability ([`super::sizing::counter_reaches`]):
//!
//! | c | j = 2^c | P(counter ≥ j) |
//! |---|---|---|
//! | 1 | 2 | 0.1534 |
//! | 2 | 4 | 0.005561 |
//! | 3 | 8 | 7.154e-7 |
//! | 4 | 16 | 7.073e-17 |
//!
//! # Distinct elements
//!
//! Until the first removal, exactly as for a Bloom filter: a new element is called a repeat with
//! p = (share of counters above zero)^k. A removal ends the count (there is no estimate until the
//! filter is cleared), since the weights of the elements removed are not known.
//!
//! # Limits
//!
//! The filter does not answer for some of the attributes. It cannot tell whether a removal is
//! justified: removing a false positive decrements the counters of other elements, which may
//! disappear.
//!
//! # Example
//!
//! ```
//! use flowsieve_filters::hashing::Digester;
//! use flowsieve_filters::{CountingFilter, ElementDigests, MembershipFilter, RemovableFilter};
//!
//! let hasher = Digester::new(0);
//! let word = |word: &str| ElementDigests::of_whole(hasher.digest(word.as_bytes()));
//! let mut filter = CountingFilter::new(10_000, 5, 4);
//! filter.insert(word("in"));
//! filter.remove(word("in"));
//! assert!(!filter.contains(word("in")));
//! ```
//!
//! Reference: Fan, Cao, Almeida, Broder, "Summary cache: a scalable wide-area web cache sharing
//! protocol", IEEE/ACM Transactions on Networking 8(3), 2000, section V-C.

use super::fill;
use super::saved::{FilterState, LoadError, StateReader, StateWriter, UnionError, same, saved};
use super::sizing::{MAX_PROBES, bloom_fpr};
use super::spec::{
    Descriptor, FilterKind, FilterSpec, Parameters, Query, Reach, Shape, SpecError, check_counters,
    check_probes,
};
use super::split_counting::{SplitCountingSpec, counter_sizes};
use super::{
    DistinctCounter, ElementDigests, Estimate, FilterStats, MembershipFilter, RemovableFilter,
    Sighting,
};
use crate::bits::CounterArray;
use crate::hashing::{Digest, Probes};
use std::io;

/// Parameters of a [`CountingFilter`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CountingSpec {
    /// Counters (m).
    pub counters: u64,
    /// Hash functions (k).
    pub probes: u32,
    /// Bits of a counter.
    pub counter_bits: u32,
}

pub(crate) const COUNTING: Descriptor = Descriptor {
    name: "counting",
    summary: "Counting Bloom filter (Fan et al. 2000)",
    reach: Reach::Whole,
    ignores_repeats: false,
    size: |_, sizing| {
        let (counters, split) = counter_sizes(FilterKind::Counting, 1, sizing)?;
        let SplitCountingSpec { probes, counter_bits, .. } = split;
        Ok(CountingSpec { counters, probes, counter_bits }.into())
    },
    search: None,
};

saved!(CountingSpec { counters, probes, counter_bits });

impl Parameters for CountingSpec {
    fn check(&self) -> Result<(), SpecError> {
        check_probes(self.probes, MAX_PROBES as u32)?;
        check_counters(self.counters, 1, self.counter_bits)
    }

    fn memory_bytes(&self) -> u64 {
        CounterArray::bytes_of(self.counters, self.counter_bits)
    }

    fn with_probes(&self, probes: u32) -> Option<FilterSpec> {
        Some(Self { probes, ..*self }.into())
    }

    fn build(&self) -> Box<dyn MembershipFilter> {
        Box::new(CountingFilter::new(self.counters, self.probes, self.counter_bits))
    }

    fn rate(&self, query: &Query<'_>) -> Option<f64> {
        query.of_whole(|n| bloom_fpr(self.counters as f64, self.probes, n))
    }

    fn shape(&self) -> Shape {
        Shape {
            counter_bits: Some(self.counter_bits),
            ..Shape::new(self.probes, self.counters, "counters")
        }
    }

    fn describe(&self) -> String {
        let (counters, bits, k) = (self.counters, self.counter_bits, self.probes);
        format!("m = {counters} counters of {bits} bits, k = {k}")
    }
}

/// Counting Bloom filter over the whole element, of one array for all hash functions or of a part
/// for each ([`super::split_counting`]).
#[derive(Clone, Debug)]
pub struct CountingFilter {
    core: Counters,
    /// `None` from the first removal on.
    counter: Option<DistinctCounter>,
}

impl CountingFilter {
    /// Creates a filter of `counters` (m ≥ 1) of `counter_bits` (c, 1 to 8) with `probes` (k ≥ 1)
    /// hash functions.
    pub fn new(counters: u64, probes: u32, counter_bits: u32) -> Self {
        Self::of_core(Counters {
            array: CounterArray::new(counters, counter_bits),
            part: counters,
            probes,
            nonzero: vec![0],
            repeat_probability: 0.0,
            function_set: 0,
        })
    }

    /// Creates a split filter of `probes` (k ≥ 1) parts of `part` (m ≥ 1) counters of
    /// `counter_bits` (1 to 8).
    pub fn split(part: u64, probes: u32, counter_bits: u32) -> Self {
        Self::of_core(Counters::split(SplitCountingSpec { part, probes, counter_bits }, 0))
    }

    fn of_core(core: Counters) -> Self {
        Self { core, counter: Some(DistinctCounter::default()) }
    }
}

impl MembershipFilter for CountingFilter {
    fn insert(&mut self, element: ElementDigests<'_>) -> Sighting {
        let repeat_probability = self.core.repeat_probability;
        let sighting = self.core.insert(element.whole);
        if let Some(counter) = &mut self.counter {
            counter.record(sighting, || repeat_probability);
        }
        sighting
    }

    fn contains(&self, element: ElementDigests<'_>) -> bool {
        self.core.contains(element.whole)
    }

    fn clear(&mut self) {
        self.core.clear();
        self.counter = Some(DistinctCounter::default());
    }

    fn stats(&self) -> FilterStats {
        FilterStats::of_counters(&self.core.array)
    }

    fn distinct(&self) -> Option<Estimate> {
        Some(self.counter?.estimate(|| self.core.repeat_probability))
    }

    fn as_removable(&mut self) -> Option<&mut dyn RemovableFilter> {
        Some(self)
    }
}

impl FilterState for CountingFilter {
    fn save_state(&self, state: &mut StateWriter<'_>) -> io::Result<()> {
        state.distinct(self.counter.as_ref())?;
        state.counters(&self.core.array)
    }

    fn load_state(&mut self, state: &mut StateReader<'_>) -> Result<(), LoadError> {
        self.counter = state.distinct()?;
        self.core.load_state(state)
    }

    fn unite(&mut self, other: &dyn FilterState) -> Result<(), UnionError> {
        let other: &Self = same(other)?;
        let of_both = [self.distinct(), other.distinct()];
        self.core.unite(&other.core);
        let Counters { array, probes, .. } = &self.core;
        let fill = fill::independent(array.nonzero(), array.len() as f64, *probes);
        let more = other.counter.as_ref();
        DistinctCounter::unite_where_known(&mut self.counter, more, of_both, fill);
        Ok(())
    }
}

impl RemovableFilter for CountingFilter {
    fn remove(&mut self, element: ElementDigests<'_>) {
        if self.core.contains(element.whole) {
            self.core.remove(element.whole);
            self.counter = None;
        }
    }
}

/// Counters and their hash functions, without an estimate. A scalable filter is a chain of these.
#[derive(Clone, Debug)]
pub(super) struct Counters {
    /// One part that all hash functions share, or one for each. Part i begins at counter i m.
    pub(super) array: CounterArray,
    /// Counters of a part (m).
    part: u64,
    probes: u32,
    /// Counters above zero in each part.
    nonzero: Vec<u64>,
    /// Probability that a new element is called a repeat in the present state.
    pub(super) repeat_probability: f64,
    /// Number of the family of hash functions.
    pub(super) function_set: u64,
}

impl Counters {
    /// Creates a part for each hash function. `function_set` numbers the family of hash functions,
    /// as in [`BloomCore`](super::bloom::BloomCore).
    pub(super) fn split(spec: SplitCountingSpec, function_set: u64) -> Self {
        let SplitCountingSpec { part, probes, counter_bits } = spec;
        Self {
            array: CounterArray::new(part * u64::from(probes), counter_bits),
            part,
            probes,
            nonzero: vec![0; probes as usize],
            repeat_probability: 0.0,
            function_set,
        }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.array.nonzero() == 0
    }

    pub(super) fn insert(&mut self, digest: Digest) -> Sighting {
        let mut fresh = false;
        for (part, position) in self.positions(digest) {
            if self.array.increment(position) == 0 {
                self.nonzero[part] += 1;
                fresh = true;
            }
        }
        if !fresh {
            return Sighting::Repeat;
        }
        self.weigh();
        Sighting::First
    }

    pub(super) fn contains(&self, digest: Digest) -> bool {
        self.positions(digest).all(|(_, position)| self.array.get(position) != 0)
    }

    /// Decrements the counters of an element that is contained.
    pub(super) fn remove(&mut self, digest: Digest) {
        for (part, position) in self.positions(digest) {
            let nonzero = self.array.nonzero();
            self.array.decrement(position);
            self.nonzero[part] -= nonzero - self.array.nonzero();
        }
        self.weigh();
    }

    pub(super) fn load_state(&mut self, state: &mut StateReader<'_>) -> Result<(), LoadError> {
        state.counters(&mut self.array)?;
        self.recount();
        Ok(())
    }

    pub(super) fn unite(&mut self, other: &Self) {
        self.array.unite(&other.array);
        self.recount();
    }

    /// Recounts the counters above zero of each part.
    fn recount(&mut self) {
        for (nonzero, first) in self.nonzero.iter_mut().zip((0..).step_by(self.part as usize)) {
            let counters = first..first + self.part;
            *nonzero = counters.filter(|&at| self.array.get(at) != 0).count() as u64;
        }
        self.weigh();
    }

    pub(super) fn clear(&mut self) {
        self.array.clear();
        self.nonzero.fill(0);
        self.repeat_probability = 0.0;
    }

    /// Computes the repeat probability from the counters above zero of each part.
    fn weigh(&mut self) {
        let shares = self.nonzero.iter().map(|&nonzero| nonzero as f64 / self.part as f64);
        let functions = self.probes as usize / self.nonzero.len();
        self.repeat_probability = shares.product::<f64>().powi(functions as i32);
    }

    /// Iterates over the part and the position in the whole array of each hash function.
    fn positions(&self, digest: Digest) -> impl Iterator<Item = (usize, u64)> + use<> {
        let (part, is_split) = (self.part, self.nonzero.len() > 1);
        let positions = Probes::new(digest, self.function_set, self.probes, part).enumerate();
        positions.map(move |(number, position)| {
            let number = if is_split { number } else { 0 };
            (number, number as u64 * part + position)
        })
    }
}
