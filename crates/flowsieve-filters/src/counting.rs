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
//! - insert: add one to the counters at the k positions; the element was new if any of them was
//!   zero. Inserting an element twice counts twice.
//! - contains: none of the k counters is zero.
//! - remove: take one from the counters at the k positions. An element that is not contained is
//!   left alone.
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
//! # What it cannot do
//!
//! Answer for part of the attributes. Say whether a removal was justified: removing a false
//! positive takes from the counters of others, which may disappear.
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
use super::saved::{FilterState, LoadError, StateReader, StateWriter, UnionError, same};
use super::sizing::{MAX_PROBES, bloom_fpr};
use super::spec::{
    DEFAULT_COUNTER_BITS, Descriptor, FilterKind, FilterSpec, Parameters, Query, Reach, Shape,
    SpecError, check_counters, check_memory, check_probes,
};
use super::split_counting::{CounterSizes, counter_sizes};
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
        let CounterSizes { counters, probes, .. } = counter_sizes(FilterKind::Counting, 1, sizing)?;
        let spec = CountingSpec { counters, probes, counter_bits: DEFAULT_COUNTER_BITS };
        check_memory(FilterKind::Counting, spec.memory_bytes(), 8)?;
        Ok(spec.into())
    },
    search: None,
};

impl CountingSpec {
    pub(crate) const NUMBER: u8 = 5;

    pub(crate) fn load(input: &mut StateReader<'_>) -> Result<Self, LoadError> {
        Ok(Self { counters: input.u64()?, probes: input.u32()?, counter_bits: input.u32()? })
    }
}

impl Parameters for CountingSpec {
    fn kind(&self) -> FilterKind {
        FilterKind::Counting
    }

    fn check(&self) -> Result<(), SpecError> {
        check_probes(self.probes, MAX_PROBES as u32)?;
        check_counters(self.counters, 1, self.counter_bits)
    }

    fn memory_bytes(&self) -> u64 {
        CounterArray::bytes_of(self.counters, self.counter_bits)
    }

    fn probes(&self) -> u32 {
        self.probes
    }

    fn with_probes(&self, probes: u32) -> Option<FilterSpec> {
        Some(Self { probes, ..*self }.into())
    }

    fn build(&self) -> Box<dyn MembershipFilter> {
        Box::new(CountingFilter::new(self.counters, self.probes, self.counter_bits))
    }

    fn save(&self, out: &mut StateWriter<'_>) -> io::Result<()> {
        out.u64(self.counters)?;
        out.u32(self.probes)?;
        out.u32(self.counter_bits)
    }

    fn rate(&self, query: &Query<'_>) -> Option<f64> {
        query.of_whole(|n| bloom_fpr(self.counters as f64, self.probes, n))
    }

    fn shape(&self) -> Shape {
        Shape {
            probes: Some(self.probes),
            size: Some(self.counters),
            unit: "counters",
            counter_bits: Some(self.counter_bits),
            ..Shape::default()
        }
    }

    fn describe(&self) -> String {
        let (counters, bits, k) = (self.counters, self.counter_bits, self.probes);
        format!("m = {counters} counters of {bits} bits, k = {k}")
    }
}

/// Counting Bloom filter over the whole element.
#[derive(Clone, Debug)]
pub struct CountingFilter {
    counters: CounterArray,
    probes: u32,
    /// `None` from the first removal on.
    counter: Option<DistinctCounter>,
}

impl CountingFilter {
    /// A filter of `counters` (m ≥ 1) of `counter_bits` (c, 1 to 8) with `probes` (k ≥ 1) hash
    /// functions.
    pub fn new(counters: u64, probes: u32, counter_bits: u32) -> Self {
        Self {
            counters: CounterArray::new(counters, counter_bits),
            probes,
            counter: Some(DistinctCounter::default()),
        }
    }

    /// Probability that a new element is called a repeat in the present state.
    fn repeat_probability(&self) -> f64 {
        self.counters.fill_ratio().powi(self.probes as i32)
    }

    fn positions(&self, digest: Digest) -> Probes {
        Probes::new(digest, 0, self.probes, self.counters.len())
    }
}

impl MembershipFilter for CountingFilter {
    fn insert(&mut self, element: ElementDigests<'_>) -> Sighting {
        let repeat_probability = self.repeat_probability();
        let mut fresh = false;
        for position in self.positions(element.whole) {
            fresh |= self.counters.increment(position) == 0;
        }
        let sighting = if fresh { Sighting::First } else { Sighting::Repeat };
        if let Some(counter) = &mut self.counter {
            counter.record(sighting, || repeat_probability);
        }
        sighting
    }

    fn contains(&self, element: ElementDigests<'_>) -> bool {
        self.positions(element.whole).all(|position| self.counters.get(position) != 0)
    }

    fn clear(&mut self) {
        self.counters.clear();
        self.counter = Some(DistinctCounter::default());
    }

    fn stats(&self) -> FilterStats {
        FilterStats::of_counters(&self.counters)
    }

    fn distinct(&self) -> Option<Estimate> {
        Some(self.counter?.estimate(|| self.repeat_probability()))
    }

    fn as_removable(&mut self) -> Option<&mut dyn RemovableFilter> {
        Some(self)
    }
}

impl FilterState for CountingFilter {
    fn save_state(&self, state: &mut StateWriter<'_>) -> io::Result<()> {
        state.distinct(self.counter.as_ref())?;
        state.counters(&self.counters)
    }

    fn load_state(&mut self, state: &mut StateReader<'_>) -> Result<(), LoadError> {
        self.counter = state.distinct()?;
        state.counters(&mut self.counters)
    }

    fn unite(&mut self, other: &dyn FilterState) -> Result<(), UnionError> {
        let other: &Self = same(other)?;
        let of_both = [self.distinct(), other.distinct()];
        let counters = &mut self.counters;
        counters.unite(&other.counters);
        let fill = fill::independent(counters.nonzero(), counters.len(), self.probes);
        let more = other.counter.as_ref();
        DistinctCounter::unite_where_known(&mut self.counter, more, of_both, fill);
        Ok(())
    }
}

impl RemovableFilter for CountingFilter {
    fn remove(&mut self, element: ElementDigests<'_>) {
        if !self.contains(element) {
            return;
        }
        for position in self.positions(element.whole) {
            self.counters.decrement(position);
        }
        self.counter = None;
    }
}
