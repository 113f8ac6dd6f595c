//! SCBF, the split counting Bloom filter: each hash function has a part of the counters to itself.
//!
//! # Memory
//!
//! ```text
//!     element ──► digest ──► one position in each part
//!                      │                │                    │
//!     part 1:  0 0 1 0 0 0 │ part 2:  2 0 0 0 0 │ … │ part k:  0 1 0 0 0     m counters each
//! ```
//!
//! # Operations
//!
//! As in the [counting filter](super::CountingFilter), with position i in part i: insert adds one
//! to k counters, remove takes one from them, contains asks that none is zero, and a counter that
//! has reached its largest value is never decremented. The k counters always differ.
//!
//! All cost O(k) and touch up to k cache lines.
//!
//! # Formulas
//!
//! With M = km counters and n distinct elements f = (1 - (1 - 1/m)^n)^k
//! ([`super::sizing::split_fpr`]), and counters reach their limit as often as in the counting
//! filter; both to first order as without parts: 0.000999874 against 0.000999790 in the first row
//! below. What the parts bring is k regions of memory that do not depend on each other.
//!
//! Table 1 of the paper, M = 368 640 counters ([`super::sizing::split_design`]: k = ceil(lb 1/P),
//! m = floor(M/k), n = floor(M ln² 2 / ln 1/P)):
//!
//! | P | k | m | n | f at this n |
//! |---|---|---|---|---|
//! | 0.001 | 10 | 36 864 | 25 639 | 0.0009998 |
//! | 0.0001 | 14 | 26 331 | 19 229 | 0.0001008 |
//! | 0.00001 | 17 | 21 684 | 15 383 | 0.00001002 |
//! | 0.000001 | 20 | 18 432 | 12 819 | 0.000000999 |
//!
//! The paper's tables 2 and 3, by which its counters overflow far less often than those of a
//! counting filter, come from a formula evaluated without one of its factors; they do not.
//!
//! # Distinct elements
//!
//! Until the first removal: a new element is called a repeat with p = product over the parts of
//! their shares of counters above zero, exactly.
//!
//! # What it cannot do
//!
//! As the counting filter: no patterns, and no protection against removing a false positive.
//!
//! # Example
//!
//! ```
//! use flowsieve_filters::hashing::Digester;
//! use flowsieve_filters::{ElementDigests, MembershipFilter, RemovableFilter, SplitCountingFilter};
//!
//! let hasher = Digester::new(0);
//! let word = |word: &str| ElementDigests::of_whole(hasher.digest(word.as_bytes()));
//! let mut filter = SplitCountingFilter::new(2_000, 5, 4);
//! filter.insert(word("in"));
//! filter.remove(word("in"));
//! assert!(!filter.contains(word("in")));
//! ```
//!
//! Reference: the split counting Bloom filter is equations and table 1 of the SCBF paper; the parts
//! are those of Mullin, "A second look at Bloom filters", CACM 26(8), 1983.

use super::fill;
use super::saved::{FilterState, LoadError, StateReader, StateWriter, UnionError, same};
use super::sizing::{MAX_PROBES, best_probes, least_bloom_bits, split_fpr};
use super::spec::{
    DEFAULT_COUNTER_BITS, Descriptor, FilterKind, FilterSpec, Parameters, Query, Reach, Shape,
    Sizing, SpecError, check_counters, check_memory, check_probes, check_rate, probes_for,
};
use super::{
    DistinctCounter, ElementDigests, Estimate, FilterStats, MembershipFilter, RemovableFilter,
    Sighting,
};
use crate::bits::CounterArray;
use crate::hashing::{Digest, Probes};
use std::io;

/// Parameters of a [`SplitCountingFilter`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SplitCountingSpec {
    /// Counters of a part (m).
    pub part: u64,
    /// Hash functions, and parts (k).
    pub probes: u32,
    /// Bits of a counter.
    pub counter_bits: u32,
}

pub(crate) const SPLIT_COUNTING: Descriptor = Descriptor {
    name: "split-counting",
    summary: "Split counting Bloom filter (Huang et al. 2015)",
    reach: Reach::Whole,
    ignores_repeats: false,
    size: |_, sizing| {
        let CounterSizes { part, probes, .. } =
            counter_sizes(FilterKind::SplitCounting, 1, sizing)?;
        let spec = SplitCountingSpec { part, probes, counter_bits: DEFAULT_COUNTER_BITS };
        check_memory(FilterKind::SplitCounting, spec.memory_bytes(), 8)?;
        Ok(spec.into())
    },
    search: None,
};

/// Numbers of counters that a structure with counters is made of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CounterSizes {
    /// Counters of one link of a chain, or of the whole filter.
    pub(crate) counters: u64,
    /// Counters of a part of it.
    pub(crate) part: u64,
    /// Hash functions, and parts.
    pub(crate) probes: u32,
}

/// The counters of each of `links` equal filters that take the memory together; or of one filter
/// that reaches the rate.
pub(crate) fn counter_sizes(
    kind: FilterKind,
    links: u64,
    sizing: Sizing,
) -> Result<CounterSizes, SpecError> {
    let most = MAX_PROBES as u32;
    match sizing {
        Sizing::Memory { bytes, expected } => {
            check_memory(kind, bytes, 8 * links)?;
            let counters = bytes / 8 / links * CounterArray::per_word(DEFAULT_COUNTER_BITS);
            let probes = probes_for(counters * links, expected, most).min(counters as u32);
            Ok(CounterSizes { counters, part: counters / u64::from(probes), probes })
        }
        Sizing::Rate { fpr, expected } => {
            check_rate(fpr)?;
            let elements = expected as f64;
            let counters = least_bloom_bits(fpr, elements).ceil();
            let probes = best_probes(counters, elements, most);
            let mut part = (counters as u64).div_ceil(u64::from(probes));
            // Small parts, and few of them, fall short of the formula for large ones.
            while split_fpr(part as f64, probes, elements) > fpr {
                part += part.div_ceil(64);
            }
            Ok(CounterSizes { counters: counters as u64, part, probes })
        }
    }
}

/// Counters of a part if these counters are shared out to so many parts.
pub(crate) fn part_among(counters: u64, probes: u32) -> u64 {
    counters / u64::from(probes.max(1))
}

impl SplitCountingSpec {
    pub(crate) const NUMBER: u8 = 6;

    pub(crate) fn load(input: &mut StateReader<'_>) -> Result<Self, LoadError> {
        Ok(Self { part: input.u64()?, probes: input.u32()?, counter_bits: input.u32()? })
    }
}

impl Parameters for SplitCountingSpec {
    fn kind(&self) -> FilterKind {
        FilterKind::SplitCounting
    }

    fn check(&self) -> Result<(), SpecError> {
        check_probes(self.probes, MAX_PROBES as u32)?;
        check_counters(self.part, self.probes.into(), self.counter_bits)
    }

    fn memory_bytes(&self) -> u64 {
        CounterArray::bytes_of(self.part * u64::from(self.probes), self.counter_bits)
    }

    fn probes(&self) -> u32 {
        self.probes
    }

    fn with_probes(&self, probes: u32) -> Option<FilterSpec> {
        Some(
            Self { part: part_among(self.part * u64::from(self.probes), probes), probes, ..*self }
                .into(),
        )
    }

    fn build(&self) -> Box<dyn MembershipFilter> {
        Box::new(SplitCountingFilter::new(self.part, self.probes, self.counter_bits))
    }

    fn save(&self, out: &mut StateWriter<'_>) -> io::Result<()> {
        out.u64(self.part)?;
        out.u32(self.probes)?;
        out.u32(self.counter_bits)
    }

    fn rate(&self, query: &Query<'_>) -> Option<f64> {
        query.of_whole(|n| split_fpr(self.part as f64, self.probes, n))
    }

    fn shape(&self) -> Shape {
        Shape {
            probes: Some(self.probes),
            size: Some(self.part),
            unit: "counters",
            arrays: Some(self.probes),
            counter_bits: Some(self.counter_bits),
            ..Shape::default()
        }
    }

    fn describe(&self) -> String {
        let (part, bits, k) = (self.part, self.counter_bits, self.probes);
        format!("k = {k} parts of m = {part} counters of {bits} bits")
    }
}

/// Split counting Bloom filter over the whole element.
#[derive(Clone, Debug)]
pub struct SplitCountingFilter {
    core: SplitCounters,
    /// `None` from the first removal on.
    counter: Option<DistinctCounter>,
}

impl SplitCountingFilter {
    /// A filter of `probes` (k ≥ 1) parts of `part` (m ≥ 1) counters of `counter_bits` (1 to 8).
    pub fn new(part: u64, probes: u32, counter_bits: u32) -> Self {
        Self {
            core: SplitCounters::new(part, probes, counter_bits, 0),
            counter: Some(DistinctCounter::default()),
        }
    }
}

impl MembershipFilter for SplitCountingFilter {
    fn insert(&mut self, element: ElementDigests<'_>) -> Sighting {
        let repeat_probability = self.core.repeat_probability();
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
        self.core.stats()
    }

    fn distinct(&self) -> Option<Estimate> {
        Some(self.counter?.estimate(|| self.core.repeat_probability()))
    }

    fn as_removable(&mut self) -> Option<&mut dyn RemovableFilter> {
        Some(self)
    }
}

impl FilterState for SplitCountingFilter {
    fn save_state(&self, state: &mut StateWriter<'_>) -> io::Result<()> {
        state.distinct(self.counter.as_ref())?;
        self.core.save_state(state)
    }

    fn load_state(&mut self, state: &mut StateReader<'_>) -> Result<(), LoadError> {
        self.counter = state.distinct()?;
        self.core.load_state(state)
    }

    fn unite(&mut self, other: &dyn FilterState) -> Result<(), UnionError> {
        let other: &Self = same(other)?;
        let of_both = [self.distinct(), other.distinct()];
        self.core.unite(&other.core);
        let (more, fill) = (other.counter.as_ref(), self.core.fill_estimate());
        DistinctCounter::unite_where_known(&mut self.counter, more, of_both, fill);
        Ok(())
    }
}

impl RemovableFilter for SplitCountingFilter {
    fn remove(&mut self, element: ElementDigests<'_>) {
        if self.core.contains(element.whole) {
            self.core.remove(element.whole);
            self.counter = None;
        }
    }
}

/// Positions of a digest in the whole array, one in each part.
pub(super) fn positions(
    digest: Digest,
    function_set: u64,
    probes: u32,
    part: u64,
) -> impl Iterator<Item = u64> {
    let parts = (0..).step_by(part as usize);
    Probes::new(digest, function_set, probes, part)
        .zip(parts)
        .map(|(position, first): (u64, u64)| first + position)
}

/// The parts and their hash functions, without an estimate: what a scalable filter is a chain of.
#[derive(Clone, Debug)]
pub(super) struct SplitCounters {
    /// Part i is the counters from i m on.
    counters: CounterArray,
    part: u64,
    /// Counters above zero in each part.
    nonzero: Vec<u64>,
    /// Product of the parts' shares of counters above zero.
    repeat_probability: f64,
    function_set: u64,
}

impl SplitCounters {
    /// `function_set` numbers the family of hash functions, as in a Bloom filter's core.
    pub(super) fn new(part: u64, probes: u32, counter_bits: u32, function_set: u64) -> Self {
        Self {
            counters: CounterArray::new(part * u64::from(probes), counter_bits),
            part,
            nonzero: vec![0; probes as usize],
            repeat_probability: 0.0,
            function_set,
        }
    }

    pub(super) fn memory_bytes(&self) -> u64 {
        self.counters.memory_bytes()
    }

    pub(super) const fn function_set(&self) -> u64 {
        self.function_set
    }

    /// Share of counters above zero.
    pub(super) fn fill_ratio(&self) -> f64 {
        self.counters.fill_ratio()
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.counters.nonzero() == 0
    }

    /// Probability that a new element is called a repeat in the present state.
    pub(super) const fn repeat_probability(&self) -> f64 {
        self.repeat_probability
    }

    pub(super) fn insert(&mut self, digest: Digest) -> Sighting {
        let mut fresh = false;
        for (i, position) in self.positions(digest) {
            if self.counters.increment(position) == 0 {
                self.nonzero[i] += 1;
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
        self.positions(digest).all(|(_, position)| self.counters.get(position) != 0)
    }

    /// Takes one from each counter of an element that is contained.
    pub(super) fn remove(&mut self, digest: Digest) {
        for (i, position) in self.positions(digest) {
            let nonzero = self.counters.nonzero();
            self.counters.decrement(position);
            self.nonzero[i] -= nonzero - self.counters.nonzero();
        }
        self.weigh();
    }

    pub(super) fn fill_estimate(&self) -> Option<Estimate> {
        let probes = self.nonzero.len() as u32;
        fill::independent(self.counters.nonzero(), self.counters.len(), probes)
    }

    pub(super) fn save_state(&self, state: &mut StateWriter<'_>) -> io::Result<()> {
        state.counters(&self.counters)
    }

    pub(super) fn load_state(&mut self, state: &mut StateReader<'_>) -> Result<(), LoadError> {
        state.counters(&mut self.counters)?;
        self.recount();
        Ok(())
    }

    pub(super) fn unite(&mut self, other: &Self) {
        self.counters.unite(&other.counters);
        self.recount();
    }

    /// Counts the counters above zero of each part.
    fn recount(&mut self) {
        for (nonzero, first) in self.nonzero.iter_mut().zip((0..).step_by(self.part as usize)) {
            let counters = first..first + self.part;
            *nonzero = counters.filter(|&at| self.counters.get(at) != 0).count() as u64;
        }
        self.weigh();
    }

    pub(super) fn clear(&mut self) {
        self.counters.clear();
        self.nonzero.fill(0);
        self.repeat_probability = 0.0;
    }

    pub(super) fn stats(&self) -> FilterStats {
        FilterStats::of_counters(&self.counters)
    }

    fn weigh(&mut self) {
        self.repeat_probability =
            self.nonzero.iter().map(|&nonzero| nonzero as f64 / self.part as f64).product();
    }

    /// Each part's number and the position in the whole array.
    fn positions(&self, digest: Digest) -> impl Iterator<Item = (usize, u64)> + use<> {
        let probes = self.nonzero.len() as u32;
        positions(digest, self.function_set, probes, self.part).enumerate()
    }
}
