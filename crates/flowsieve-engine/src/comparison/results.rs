//! What a comparison yields, as plain data.

use super::Contender;
use crate::pipeline::{InputResult, Totals};

/// Everything that was measured.
#[derive(Debug)]
pub struct Comparison {
    /// The combinations that were asked for, all attributes first.
    pub asked: Vec<u32>,
    /// For how many distinct elements a slice the structures were made.
    pub expected: Expected,
    /// The slices, in the order of time.
    pub slices: Vec<JudgedSlice>,
    /// Slices beyond those that are kept; they are in no figure.
    pub slices_omitted: u64,
    /// One a structure and memory: in the order of the memories, then of the structures; the exact
    /// set, which knows no memory, once, at the end.
    pub entries: Vec<Entry>,
    /// One entry an input, in the order in which they were given.
    pub inputs: Vec<InputResult>,
    /// Counts over the run; of its slices their number, and in how many of them a filter was full.
    pub totals: Totals,
}

/// For how many distinct elements a slice the structures were made.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Expected {
    /// The number; `None` if it was not known, and 4 hash functions were taken.
    pub elements: Option<u64>,
    /// Where it comes from.
    pub from: ExpectedFrom,
    /// Distinct values of the combinations in a slice, as far as they are known.
    pub values: Vec<(u32, u64)>,
}

/// Where the expected number of elements comes from.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum ExpectedFrom {
    /// The user said so.
    Given,
    /// 95 of 100 slices at the beginning have no more: the nearest rank of this many.
    Percentile95(u64),
    /// No slice ended in the beginning of the trace that is looked at.
    #[default]
    Unknown,
}

impl ExpectedFrom {
    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Given => "given",
            Self::Percentile95(_) => "p95",
            Self::Unknown => "unknown",
        }
    }
}

/// A slice and the truth about it.
#[derive(Clone, Debug, PartialEq)]
pub struct JudgedSlice {
    /// First nanosecond of the slice since the epoch (of the first packet, if there is one slice).
    pub start_ns: i64,
    /// First nanosecond behind it (time of the last packet, if there is one slice).
    pub end_ns: i64,
    /// Packets.
    pub packets: u64,
    /// Elements seen, repeats included.
    pub elements: u64,
    /// Distinct elements; `None` if the truth passed its limit.
    pub exact: Option<u64>,
    /// Distinct values of each combination that was asked for; empty without truth.
    pub values: Vec<u64>,
    /// The trace covers the slice only in part, or is not known to cover all of it: it is the first
    /// or the last one.
    pub partial: bool,
}

/// A structure with a memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Which structure.
    pub contender: Contender,
    /// Bytes that it was given; `None` for the exact set, which takes what it needs.
    pub memory_asked_bytes: Option<u64>,
    /// Most bytes that it used in a slice; `None` if it does not fit.
    pub memory_bytes: Option<u64>,
    /// Bytes of the smallest one, if it does not fit and that is known.
    pub needed_bytes: Option<u64>,
    /// Why it does not fit.
    pub unfit: Option<String>,
    /// Hash functions (k); binary logarithm of the registers of a `HyperLogLog` is no such number.
    pub probes: Option<u32>,
    /// Combinations stored in addition to the whole element, with their bits per element.
    pub stored: Vec<(u32, u32)>,
    /// Its counts, one a slice; empty if it does not fit.
    pub counts: Vec<SliceCount>,
    /// Its answers, for every combination asked for and every kind of negatives.
    pub queries: Vec<QueryResult>,
    /// Nanoseconds of an insertion; only where time is measured.
    pub ns_per_element: Option<f64>,
}

/// The counts of a structure in a slice.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SliceCount {
    /// Elements called new; `None` for sketches.
    pub first: Option<u64>,
    /// Unbiased estimate, where the structure has one.
    pub estimate: Option<f64>,
    /// Its standard error.
    pub std_error: Option<f64>,
    /// The filter was so full that the estimate says nothing.
    pub saturated: bool,
}

/// Queries for absent elements.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Negatives {
    /// Values that occur in the slice, each drawn from a different element, but not together.
    Apart,
    /// What occurs in the following slice and not in this one.
    Next,
}

impl Negatives {
    /// Both kinds.
    pub const ALL: [Self; 2] = [Self::Apart, Self::Next];

    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Apart => "apart",
            Self::Next => "next",
        }
    }
}

/// Answers to queries for one combination, over all slices.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QueryResult {
    /// The combination.
    pub mask: u32,
    /// Which negatives.
    pub negatives: Negatives,
    /// Queries.
    pub queries: u64,
    /// Those that were answered by yes; `None` if the structure has no answer.
    pub positives: Option<u64>,
    /// Share that the formulas predict for the numbers of elements that were there.
    pub predicted: Option<f64>,
}

impl QueryResult {
    /// Observed false-positive rate.
    pub fn observed(&self) -> Option<f64> {
        let positives = self.positives.filter(|_| self.queries > 0)?;
        Some(positives as f64 / self.queries as f64)
    }

    /// Whether there were queries, and all of them were answered by yes.
    pub fn is_always_yes(&self) -> bool {
        self.queries > 0 && self.positives == Some(self.queries)
    }

    /// Standard error of the observed rate, for independent queries.
    pub fn std_error(&self) -> Option<f64> {
        let rate = self.observed()?;
        Some((rate * (1.0 - rate) / self.queries as f64).sqrt())
    }
}

/// Relative errors of a count, as shares of the truth, over the slices that have one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CountErrors {
    /// Mean of the absolute errors.
    pub mean: f64,
    /// 95 of 100 slices have at most this absolute error.
    pub p95: f64,
    /// Largest absolute error.
    pub worst: f64,
    /// Slice with the largest error, by number.
    pub worst_slice: usize,
    /// Mean of the signed errors: below 0 if too little was counted.
    pub bias: f64,
}

impl Entry {
    /// Whether it used more memory in a slice than it was given.
    pub fn exceeds_memory(&self) -> bool {
        let memory = self.memory_bytes.zip(self.memory_asked_bytes);
        memory.is_some_and(|(used, asked)| used > asked)
    }

    /// Whether its answers are worth nothing: it said yes to every absent element of a kind, or to
    /// everything that it was asked. `full` are all attributes.
    pub fn says_always_yes(&self, full: u32) -> bool {
        let asked = |query: &&QueryResult| query.queries > 0 && query.positives.is_some();
        let mut whole = self.queries.iter().filter(asked);
        let mut all = self.queries.iter().filter(asked).peekable();
        whole.any(|query| query.mask == full && query.is_always_yes())
            || all.peek().is_some() && all.all(QueryResult::is_always_yes)
    }

    /// Slices in which the filter was so full that its counts say nothing.
    pub fn saturated_slices(&self) -> u64 {
        self.counts.iter().filter(|count| count.saturated).count() as u64
    }

    /// Errors of the unbiased estimate; `None` if there is none.
    pub fn estimate_errors(&self, slices: &[JudgedSlice]) -> Option<CountErrors> {
        self.errors(slices, |count| count.estimate)
    }

    /// Errors of the raw count.
    pub fn first_errors(&self, slices: &[JudgedSlice]) -> Option<CountErrors> {
        self.errors(slices, |count| count.first.map(|first| first as f64))
    }

    /// Errors of the best count that the structure has: the estimate, else the raw count.
    pub fn best_errors(&self, slices: &[JudgedSlice]) -> Option<CountErrors> {
        let estimate = self.estimate_errors(slices);
        estimate.or_else(|| self.first_errors(slices))
    }

    fn errors(
        &self,
        slices: &[JudgedSlice],
        count: impl Fn(&SliceCount) -> Option<f64>,
    ) -> Option<CountErrors> {
        let mut errors: Vec<(f64, usize)> = Vec::new();
        for (number, (slice, counts)) in slices.iter().zip(&self.counts).enumerate() {
            let Some(exact) = slice.exact.filter(|&exact| exact > 0) else {
                continue;
            };
            let exact = exact as f64;
            errors.push(((count(counts)? - exact) / exact, number));
        }
        let judged = errors.len();
        let bias = errors.iter().map(|(error, _)| error).sum::<f64>() / judged as f64;
        let mean = errors.iter().map(|(error, _)| error.abs()).sum::<f64>() / judged as f64;
        // Of equal errors the first slice is the worst.
        errors.sort_by(|a, b| a.0.abs().total_cmp(&b.0.abs()).then(b.1.cmp(&a.1)));
        let &(worst, worst_slice) = errors.last()?;
        Some(CountErrors {
            mean,
            p95: errors[(judged * 95).div_ceil(100) - 1].0.abs(),
            worst: worst.abs(),
            worst_slice,
            bias,
        })
    }

    /// The answers for a combination.
    pub fn query(&self, mask: u32, negatives: Negatives) -> Option<&QueryResult> {
        let mut queries = self.queries.iter();
        queries.find(|query| query.mask == mask && query.negatives == negatives)
    }
}
