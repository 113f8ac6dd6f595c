//! SCBF, the split counting Bloom filter: each hash function has its own part of the counters.
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
//! As in the [counting filter](super::CountingFilter), with position i in part i: insert increments
//! k counters, remove decrements them, an element is contained if none is zero, and a counter that
//! has reached its largest value is never decremented. The k counters always differ.
//!
//! All cost O(k) and touch up to k cache lines.
//!
//! # Formulas
//!
//! With M = km counters and n distinct elements f = (1 - (1 - 1/m)^n)^k
//! ([`super::sizing::split_fpr`]), and counters reach their limit as often as in the counting
//! filter. To first order both are the same as without parts: 0.000999874 against 0.000999790 in
//! the first row below. The benefit of the parts is k independent regions of memory.
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
//! In the paper's tables 2 and 3 its counters overflow far less often than those of a counting
//! filter. These tables come from a formula evaluated without one of its factors; the counters do
//! not.
//!
//! # Distinct elements
//!
//! Until the first removal: a new element is called a repeat with p = product over the parts of
//! their shares of counters above zero, exactly.
//!
//! # Limits
//!
//! As the counting filter: it does not answer for some of the attributes, and removing a false
//! positive may make other elements disappear.
//!
//! # Example
//!
//! ```
//! use flowsieve_filters::hashing::Digester;
//! use flowsieve_filters::{CountingFilter, ElementDigests, MembershipFilter, RemovableFilter};
//!
//! let hasher = Digester::new(0);
//! let word = |word: &str| ElementDigests::of_whole(hasher.digest(word.as_bytes()));
//! let mut filter = CountingFilter::split(2_000, 5, 4);
//! filter.insert(word("in"));
//! filter.remove(word("in"));
//! assert!(!filter.contains(word("in")));
//! ```
//!
//! Reference: equations and table 1 are from the SCBF paper (Huang et al. 2015); the parts are
//! those of Mullin, "A second look at Bloom filters", CACM 26(8), 1983.

use super::saved::saved;
use super::sizing::{MAX_PROBES, best_probes, enlarged, rounded_bloom_bits, split_fpr};
use super::spec::{
    DEFAULT_COUNTER_BITS, Descriptor, FilterKind, FilterSpec, Parameters, Query, Reach, Shape,
    Sizing, SpecError, check_counters, check_memory, check_probes, probes_for,
};
use super::{CountingFilter, MembershipFilter};
use crate::bits::CounterArray;

/// Parameters of a [split counting filter](CountingFilter::split).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SplitCountingSpec {
    /// Counters of a part (m).
    pub part: u64,
    /// Hash functions and parts (k).
    pub probes: u32,
    /// Bits of a counter.
    pub counter_bits: u32,
}

pub(crate) const SPLIT_COUNTING: Descriptor = Descriptor {
    name: "split-counting",
    summary: "Split counting Bloom filter (Huang et al. 2015)",
    reach: Reach::Whole,
    ignores_repeats: false,
    size: |_, sizing| Ok(counter_sizes(FilterKind::SplitCounting, 1, sizing)?.1.into()),
    search: None,
};

/// Returns the counters of each of `links` equal filters that fill the memory together, or of one
/// filter that reaches the rate: all of them, and those of a split filter.
pub(crate) fn counter_sizes(
    kind: FilterKind,
    links: u64,
    sizing: Sizing,
) -> Result<(u64, SplitCountingSpec), SpecError> {
    let most = MAX_PROBES as u32;
    let spec =
        |part, probes| SplitCountingSpec { part, probes, counter_bits: DEFAULT_COUNTER_BITS };
    match sizing {
        Sizing::Memory { bytes, expected } => {
            check_memory(kind, bytes, 8 * links)?;
            let counters = bytes / links * 8 / u64::from(DEFAULT_COUNTER_BITS);
            // No more functions than counters.
            let most = most.min(counters.try_into().unwrap_or(most));
            let probes = probes_for(counters * links, expected, most);
            Ok((counters, spec(counters / u64::from(probes), probes)))
        }
        Sizing::Rate { fpr, expected } => {
            let elements = expected as f64;
            let counters = rounded_bloom_bits(fpr, elements);
            let probes = best_probes(counters as f64, elements, most);
            // The formula is for large parts; small and few parts miss the rate.
            let part = enlarged(counters.div_ceil(probes.into()), |part| {
                split_fpr(part as f64, probes, elements) <= fpr
            });
            Ok((counters, spec(part, probes)))
        }
    }
}

saved!(SplitCountingSpec { part, probes, counter_bits });

impl SplitCountingSpec {
    /// Divides the counters among this many parts.
    pub(crate) fn divided_among(self, probes: u32) -> Self {
        let part = self.part * u64::from(self.probes) / u64::from(probes.max(1));
        Self { part, probes, ..self }
    }
}

impl Parameters for SplitCountingSpec {
    fn check(&self) -> Result<(), SpecError> {
        check_probes(self.probes, MAX_PROBES as u32)?;
        check_counters(self.part, self.probes.into(), self.counter_bits)
    }

    fn memory_bytes(&self) -> u64 {
        let counters = self.part.saturating_mul(self.probes.into());
        CounterArray::bytes_of(counters, self.counter_bits)
    }

    fn with_probes(&self, probes: u32) -> Option<FilterSpec> {
        Some(self.divided_among(probes).into())
    }

    fn build(&self) -> Box<dyn MembershipFilter> {
        Box::new(CountingFilter::split(self.part, self.probes, self.counter_bits))
    }

    fn rate(&self, query: &Query<'_>) -> Option<f64> {
        query.of_whole(|n| split_fpr(self.part as f64, self.probes, n))
    }

    fn shape(&self) -> Shape {
        Shape {
            arrays: Some(self.probes),
            counter_bits: Some(self.counter_bits),
            ..Shape::new(self.probes, self.part, "counters")
        }
    }

    fn describe(&self) -> String {
        let (part, bits, k) = (self.part, self.counter_bits, self.probes);
        format!("k = {k} parts of m = {part} counters of {bits} bits")
    }
}
