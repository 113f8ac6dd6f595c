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
//! # Limits
//!
//! As the counting filter: no patterns, and no protection against removing a false positive.
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
//! Reference: the split counting Bloom filter is equations and table 1 of the SCBF paper; the parts
//! are those of Mullin, "A second look at Bloom filters", CACM 26(8), 1983.

use super::saved::saved;
use super::sizing::{MAX_PROBES, best_probes, least_bloom_bits, split_fpr};
use super::spec::{
    DEFAULT_COUNTER_BITS, Descriptor, FilterKind, FilterSpec, Parameters, Query, Reach, Shape,
    Sizing, SpecError, check_counters, check_memory, check_probes, check_rate, probes_for,
};
use super::{CountingFilter, MembershipFilter};
use crate::bits::CounterArray;

/// Parameters of a [split counting filter](CountingFilter::split).
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
        check_memory(FilterKind::SplitCounting, spec.memory_bytes(), 1)?;
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
            let counters = bytes / links * 8 / u64::from(DEFAULT_COUNTER_BITS);
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

saved!(SplitCountingSpec { part, probes, counter_bits });

impl Parameters for SplitCountingSpec {
    fn check(&self) -> Result<(), SpecError> {
        check_probes(self.probes, MAX_PROBES as u32)?;
        check_counters(self.part, self.probes.into(), self.counter_bits)
    }

    fn memory_bytes(&self) -> u64 {
        CounterArray::bytes_of(self.part * u64::from(self.probes), self.counter_bits)
    }

    fn with_probes(&self, probes: u32) -> Option<FilterSpec> {
        let part = self.part * u64::from(self.probes) / u64::from(probes.max(1));
        Some(Self { part, probes, ..*self }.into())
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
