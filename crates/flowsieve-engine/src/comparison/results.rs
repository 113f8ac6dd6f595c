//! The results of a comparison as plain data, and figures derived from them.

use super::statistics::{Crossover, Interval, LEVEL, PairJudgement, Rule, crossovers};
use super::truth::Floors;
use super::{ComparePlan, Contender};
use crate::filters::FilterKind;
use crate::pipeline::{InputResult, Totals};

/// Everything that was measured.
#[derive(Debug, Default)]
pub struct Comparison {
    /// The combinations that were asked for, all attributes first; empty if nothing was asked.
    pub asked: Vec<u32>,
    /// Number of distinct elements per slice that the structures were made for.
    pub expected: Expected,
    /// The sizes, in ascending order: bytes of a structure, or bits of an array.
    pub sizes: Vec<u64>,
    /// Sizes are those of arrays, so memories may differ.
    pub has_arrays: bool,
    /// The slices, in the order of time.
    pub slices: Vec<JudgedSlice>,
    /// Slices beyond those that are kept; they are in no figure.
    pub slices_omitted: u64,
    /// One entry per structure and size, ordered by size and then by structure.
    pub entries: Vec<Entry>,
    /// The pair with the numbers of hash functions by the formula, if others were tried.
    pub by_formula: Vec<Entry>,
    /// Rule of the decisions.
    pub rule: Rule,
    /// Replicates at each look.
    pub looks: Vec<u32>,
    /// The trace was too long to be kept for further looks.
    pub is_streamed: bool,
    /// One entry per input, in the order given.
    pub inputs: Vec<InputResult>,
    /// Counts over the run.
    pub totals: Totals,
}

/// Number of distinct elements per slice that the structures were made for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Expected {
    /// The number; `None` if it was not known, and 4 hash functions were taken.
    pub elements: Option<u64>,
    /// Source of the number.
    pub from: ExpectedFrom,
    /// Distinct values of the combinations in a slice, as far as they are known.
    pub values: Vec<(u32, u64)>,
    /// Share of the elements whose values all occurred before, in other elements.
    pub known: f64,
}

/// Source of the expected number of elements.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum ExpectedFrom {
    /// The user said so.
    Given,
    /// 95 of 100 slices have no more: the nearest rank of this many.
    Percentile95(u64),
    /// No slice ended in what was looked at.
    #[default]
    Unknown,
}

impl ExpectedFrom {
    /// Returns the name in reports.
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
    /// Distinct values of each combination that is counted; empty without truth.
    pub values: Vec<u64>,
    /// Elements that structures see whatever their memory.
    pub floors: Floors,
    /// The trace covers the slice only in part, or is not known to cover all of it: it is the first
    /// or the last one.
    pub partial: bool,
    /// Structures are judged by it: it has a truth and elements, and was not left out.
    pub judged: bool,
}

/// A structure of a size.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Which structure.
    pub contender: Contender,
    /// Bytes that it was given, or bits of each array.
    pub size: u64,
    /// Most bytes that it used in a slice; `None` if it does not fit.
    pub memory_bytes: Option<u64>,
    /// Bytes of the smallest one, if it does not fit and that is known.
    pub needed_bytes: Option<u64>,
    /// Why it does not fit.
    pub unfit: Option<String>,
    /// Kind of filter; for [`Contender::Planned`], the kind that the plan recommends.
    pub kind: Option<FilterKind>,
    /// Hash functions (k); binary logarithm of the registers of a `HyperLogLog` is no such number.
    pub probes: Option<u32>,
    /// Combinations stored in addition to the whole element, with their bits per element.
    pub stored: Vec<(u32, u32)>,
    /// Its counts under each set of hash functions.
    pub replicates: Vec<Replicate>,
    /// Its answers in the first replicate, for every combination asked for and every kind of
    /// negatives.
    pub queries: Vec<QueryResult>,
}

/// The counts of a structure under one set of hash functions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Replicate {
    /// Elements called new in each slice; empty for sketches.
    pub first: Vec<u32>,
    /// Unbiased estimates; empty where the structure has none.
    pub estimates: Vec<f64>,
    /// Slices in which it was so full that its estimate says nothing.
    pub saturated_slices: u64,
}

named_enum! {
    /// Queries for absent elements.
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub enum Negatives {
        /// Values that occur in the slice, each drawn from a different element, but not together.
        Apart = "apart",
        /// Elements of the following slice that are not in this one.
        Next = "next",
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
    /// Queries that were answered by yes; `None` if the structure has no answer.
    pub positives: Option<u64>,
    /// Yeses that the formulas predict for the numbers of elements that were there.
    pub predicted_positives: Option<f64>,
}

impl QueryResult {
    /// Observed false-positive rate.
    pub fn observed(&self) -> Option<f64> {
        let positives = self.positives.filter(|_| self.queries > 0)?;
        Some(positives as f64 / self.queries as f64)
    }

    /// Predicted false-positive rate.
    pub fn predicted(&self) -> Option<f64> {
        let positives = self.predicted_positives.filter(|_| self.queries > 0)?;
        Some(positives / self.queries as f64)
    }

    /// Returns whether there were queries, and all of them were answered by yes.
    pub fn is_always_yes(&self) -> bool {
        self.queries > 0 && self.positives == Some(self.queries)
    }

    /// Standard error of the observed rate, for independent queries.
    pub fn std_error(&self) -> Option<f64> {
        let rate = self.observed()?;
        Some((rate * (1.0 - rate) / self.queries as f64).sqrt())
    }
}

named_enum! {
    /// A count of a structure.
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub enum CountKind {
        /// Elements called new. A filter without false negatives calls none new twice, so its error
        /// is the share that it lost; errors of slices are averaged.
        Raw = "raw",
        /// The unbiased estimate; errors of slices are averaged as squares.
        Estimate = "estimate",
    }
}

impl CountKind {
    /// Returns the value for raw counts or the one for estimates.
    const fn of<T: Copy>(self, raw: T, estimate: T) -> T {
        match self {
            Self::Raw => raw,
            Self::Estimate => estimate,
        }
    }

    /// Returns the name in sentences.
    pub const fn words(self) -> &'static str {
        self.of("raw count", "estimate")
    }

    /// Returns the name of its error in sentences.
    pub const fn error_words(self) -> &'static str {
        self.of("mean error", "root mean square error")
    }

    /// Returns the name of the distribution behind its intervals.
    pub const fn interval_words(self) -> &'static str {
        self.of("Student's t", "chi-square")
    }

    /// Describes the quantity whose mean is the error.
    pub const fn estimand(self) -> &'static str {
        self.of(
            "mean over slices of |count - exact| / exact",
            "root of the mean square over slices and seeds of (estimate - exact) / exact",
        )
    }

    /// Returns the error in reports: the root of a mean of squares.
    pub fn shown(self, error: f64) -> f64 {
        self.of(error, error.max(0.0).sqrt())
    }

    /// Returns the mean error over replicates with its interval, as reported.
    fn interval(self, errors: &[f64]) -> Interval {
        let interval = match self {
            Self::Raw => Interval::new,
            Self::Estimate => Interval::of_squares,
        };
        self.shown_interval(interval(errors, LEVEL))
    }

    /// The same of an interval.
    pub fn shown_interval(self, interval: Interval) -> Interval {
        let Interval { value, low, high } = interval;
        // An error is not below 0.
        let low = self.shown(low.max(0.0));
        Interval { value: self.shown(value), low, high: self.shown(high) }
    }
}

/// Errors of a count over the slices, in one replicate.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SeedErrors {
    /// Mean of the absolute errors, as shares of the truth.
    pub mean: f64,
    /// Mean of their squares.
    pub mean_square: f64,
    /// Mean of the signed errors.
    pub bias: f64,
    /// Share of all elements that is missing.
    pub lost: f64,
    /// Largest absolute error.
    pub worst: f64,
    /// Slice that has it, by number.
    pub worst_slice: usize,
}

impl SeedErrors {
    /// Returns the error by which structures are compared.
    pub const fn primary(&self, kind: CountKind) -> f64 {
        kind.of(self.mean, self.mean_square)
    }
}

impl Replicate {
    /// Returns the count of a slice.
    pub fn count(&self, kind: CountKind, slice: usize) -> Option<f64> {
        match kind {
            CountKind::Raw => self.first.get(slice).map(|&first| f64::from(first)),
            CountKind::Estimate => self.estimates.get(slice).copied(),
        }
    }

    /// Its errors over the slices that are judged; `None` if it has no such count.
    fn errors(&self, kind: CountKind, slices: &[JudgedSlice], least: f64) -> Option<SeedErrors> {
        let mut all = SeedErrors { worst: -1.0, ..SeedErrors::default() };
        let (mut judged, mut missing, mut elements) = (0.0, 0.0, 0.0);
        for (number, slice) in slices.iter().enumerate().filter(|(_, slice)| slice.judged) {
            let exact = slice.exact? as f64;
            let error = (self.count(kind, number)? - exact) / exact;
            let error = if error.abs() < least { 0.0 } else { error };
            judged += 1.0;
            missing -= error * exact;
            elements += exact;
            all.mean += error.abs();
            all.mean_square += error * error;
            all.bias += error;
            if error.abs() > all.worst {
                (all.worst, all.worst_slice) = (error.abs(), number);
            }
        }
        all.mean /= judged;
        all.mean_square /= judged;
        all.bias /= judged;
        all.lost = missing / elements;
        (judged > 0.0).then_some(all)
    }
}

/// Errors over all replicates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CountErrors {
    /// The error by which structures are compared, with its interval of 95 %.
    pub error: Interval,
    /// Mean share of all elements that is missing.
    pub lost: f64,
    /// Mean of the largest absolute errors.
    pub worst: f64,
    /// The slice that has it in more than half of the replicates, by number.
    pub worst_slice: Option<usize>,
    /// Mean of the signed errors.
    pub bias: f64,
}

impl Entry {
    /// Returns whether it used more memory in a slice than it was given.
    pub fn exceeds_memory(&self) -> bool {
        self.memory_bytes.is_some_and(|used| used as f64 > self.size as f64 * (1.0 + EQUAL))
    }

    /// Returns whether its answers are useless: it said yes to every absent element of a
    /// kind, or to everything that it was asked. `full` are all attributes.
    pub fn says_always_yes(&self, full: u32) -> bool {
        let asked = |query: &&QueryResult| query.queries > 0 && query.positives.is_some();
        let mut whole = self.queries.iter().filter(asked);
        let mut all = self.queries.iter().filter(asked).peekable();
        whole.any(|query| query.mask == full && query.is_always_yes())
            || all.peek().is_some() && all.all(QueryResult::is_always_yes)
    }

    /// Slices in which the filter was so full that its estimate says nothing, in any replicate.
    pub fn saturated_slices(&self) -> u64 {
        self.replicates.iter().map(|replicate| replicate.saturated_slices).max().unwrap_or(0)
    }

    /// Returns the answers for a combination.
    pub fn query(&self, mask: u32, negatives: Negatives) -> Option<&QueryResult> {
        let mut queries = self.queries.iter();
        queries.find(|query| query.mask == mask && query.negatives == negatives)
    }
}

/// Two structures at a size.
#[derive(Clone, Debug, PartialEq)]
pub struct PairVerdict {
    /// Bytes of each, or bits of each array.
    pub size: u64,
    /// Which of their counts.
    pub count: CountKind,
    /// The two, in the order in which they were asked for.
    pub pair: [Contender; 2],
    /// Most bytes that each used.
    pub memory_bytes: [Option<u64>; 2],
    /// Hash functions of each.
    pub probes: [Option<u32>; 2],
    /// Slices in which each was nearer to the truth, by the mean of the replicates.
    pub slices_nearer: [u64; 2],
    /// Slices that are judged.
    pub slices: u64,
    /// Judgement of the replicates, or the reason that there is none.
    pub result: Result<PairJudgement, String>,
}

/// A share of the elements that a structure loses whatever its memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Floor {
    /// Which structure.
    pub contender: Contender,
    /// Mean over the slices.
    pub mean: f64,
    /// Share of all elements.
    pub lost: f64,
}

/// Returns the entry, or why there is none that fits.
fn fitting((contender, entry): (Contender, Option<&Entry>)) -> Result<&Entry, String> {
    let name = contender.name();
    let entry = entry.ok_or_else(|| format!("{name} takes no part"))?;
    entry.unfit.as_ref().map_or(Ok(entry), |why| Err(format!("{name}: {why}")))
}

/// Memories that differ by no more are equal.
const EQUAL: f64 = 0.01;

impl Comparison {
    /// Returns the entry of a structure of a size.
    pub fn entry(&self, contender: Contender, size: u64) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.contender == contender && entry.size == size)
    }

    /// Returns the slices that structures are judged by.
    pub fn judged(&self) -> impl Iterator<Item = &JudgedSlice> {
        self.slices.iter().filter(|slice| slice.judged)
    }

    /// Returns the smallest error that counts: half an element of the largest slice.
    fn least_error(&self) -> f64 {
        let largest = self.judged().filter_map(|slice| slice.exact).max();
        0.5 / largest.unwrap_or(1).max(1) as f64
    }

    /// Returns the errors of a structure in each replicate; empty if it has no such count.
    pub fn seed_errors(&self, entry: &Entry, kind: CountKind) -> Vec<SeedErrors> {
        let least = self.least_error();
        let replicates = entry.replicates.iter();
        replicates.map_while(|it| it.errors(kind, &self.slices, least)).collect()
    }

    /// Returns the errors by which structures are compared, one per replicate.
    fn primary_errors(&self, entry: &Entry, kind: CountKind) -> Vec<f64> {
        self.seed_errors(entry, kind).iter().map(|errors| errors.primary(kind)).collect()
    }

    /// Returns the errors of a structure over all replicates; `None` if it has no such count.
    pub fn errors(&self, entry: &Entry, kind: CountKind) -> Option<CountErrors> {
        let seeds = self.seed_errors(entry, kind);
        let mean =
            |of: fn(&SeedErrors) -> f64| seeds.iter().map(of).sum::<f64>() / seeds.len() as f64;
        let first = seeds.first()?;
        let mut worst: Vec<usize> = seeds.iter().map(|errors| errors.worst_slice).collect();
        worst.sort_unstable();
        // A value that more than half have is the median.
        let middle = worst[worst.len() / 2];
        let share = worst.iter().filter(|slice| **slice == middle).count() * 2;
        let primary: Vec<f64> = seeds.iter().map(|errors| errors.primary(kind)).collect();
        Some(CountErrors {
            error: kind.interval(&primary),
            lost: mean(|errors| errors.lost),
            worst: mean(|errors| errors.worst),
            worst_slice: (share > worst.len() && first.worst > 0.0).then_some(middle),
            bias: mean(|errors| errors.bias),
        })
    }

    /// Returns the mean over the replicates of the absolute error in each slice that is judged.
    pub fn slice_errors(&self, entry: &Entry, kind: CountKind) -> Vec<Option<f64>> {
        let slices = self.slices.iter().enumerate();
        let errors = slices.map(|(number, slice)| {
            let exact = slice.exact.filter(|_| slice.judged)? as f64;
            let mut sum = 0.0;
            for replicate in &entry.replicates {
                sum += (replicate.count(kind, number)? - exact).abs();
            }
            Some(sum / exact / entry.replicates.len() as f64)
        });
        errors.collect()
    }

    /// Compares two structures of a size by one of their counts.
    pub fn verdict(&self, pair: [Contender; 2], size: u64, kind: CountKind) -> PairVerdict {
        self.verdict_of(pair.map(|it| (it, self.entry(it, size))), size, kind)
    }

    /// The same by entries of the caller.
    pub fn verdict_of(
        &self,
        pair: [(Contender, Option<&Entry>); 2],
        size: u64,
        kind: CountKind,
    ) -> PairVerdict {
        let entries = pair.map(|(_, entry)| entry);
        let mut verdict = PairVerdict {
            size,
            count: kind,
            pair: pair.map(|(contender, _)| contender),
            memory_bytes: entries.map(|entry| entry?.memory_bytes),
            probes: entries.map(|entry| entry?.probes),
            slices_nearer: [0; 2],
            slices: self.judged().count() as u64,
            result: self.judge(pair, kind),
        };
        if let ([Some(a), Some(b)], Ok(_)) = (entries, &verdict.result) {
            let [a, b] = [a, b].map(|entry| self.slice_errors(entry, kind));
            for (a, b) in a.iter().zip(&b) {
                let (Some(a), Some(b)) = (a, b) else { continue };
                verdict.slices_nearer[0] += u64::from(a < b);
                verdict.slices_nearer[1] += u64::from(b < a);
            }
        }
        verdict
    }

    fn judge(
        &self,
        pair: [(Contender, Option<&Entry>); 2],
        kind: CountKind,
    ) -> Result<PairJudgement, String> {
        let [of_a, of_b] = [fitting(pair[0])?, fitting(pair[1])?];
        let [a, b] = [of_a, of_b].map(|entry| self.primary_errors(entry, kind));
        if self.judged().next().is_none() {
            return Err("no slice is judged and has elements".to_owned());
        }
        for (entry, errors) in [(of_a, &a), (of_b, &b)] {
            if errors.is_empty() {
                return Err(format!("{} has no {}", entry.contender.name(), kind.words()));
            }
        }
        if !self.is_equal_memory(of_a, of_b) {
            let [used_a, used_b] = [of_a, of_b].map(|entry| entry.memory_bytes.unwrap_or(0));
            return Err(format!(
                "they do not have the same memory: {} uses {used_a} bytes and {} {used_b}",
                of_a.contender.name(),
                of_b.contender.name()
            ));
        }
        Ok(self.rule.judge(&a, &b, kind == CountKind::Estimate))
    }

    /// Returns whether two structures have the same memory, or arrays of the same size if that is
    /// asked.
    fn is_equal_memory(&self, a: &Entry, b: &Entry) -> bool {
        let [a, b] = [a, b].map(|entry| entry.memory_bytes.unwrap_or(0) as f64);
        self.has_arrays || (a - b).abs() <= EQUAL * a.max(b)
    }

    /// Returns a pair at every size.
    pub fn sweep(&self, pair: [Contender; 2], kind: CountKind) -> Vec<PairVerdict> {
        self.sizes.iter().map(|&size| self.verdict(pair, size, kind)).collect()
    }

    /// Crossovers of the pair.
    pub fn crossovers(&self, pair: [Contender; 2], kind: CountKind) -> Vec<Crossover> {
        let sweep = self.sweep(pair, kind).into_iter();
        let judged = sweep.filter_map(|verdict| Some((verdict.size, verdict.result.ok()?)));
        crossovers(&judged.collect::<Vec<_>>())
    }

    /// Returns the structures of a size that are not worse than the best by one of their counts.
    /// One that takes more memory, or says yes to everything, is none of them.
    pub fn best(&self, size: u64, kind: CountKind, full: u32) -> Vec<&Entry> {
        let of_size = self.entries.iter().filter(|entry| entry.size == size);
        let can_be = of_size.filter(|entry| {
            (self.has_arrays || !entry.exceeds_memory())
                && !entry.says_always_yes(full)
                && (kind == CountKind::Raw || entry.saturated_slices() == 0)
        });
        let errors = can_be.map(|entry| (entry, self.primary_errors(entry, kind)));
        let errors: Vec<_> = errors.filter(|(_, errors)| !errors.is_empty()).collect();
        let numbers: Vec<&[f64]> = errors.iter().map(|(_, errors)| &errors[..]).collect();
        let best = self.rule.best_set(&numbers, kind == CountKind::Estimate);
        let best = best.into_iter().zip(&errors);
        best.filter(|(is_best, _)| *is_best).map(|(_, (entry, _))| *entry).collect()
    }

    /// Returns the share that each structure loses at any memory, for those that lose some.
    pub fn floors(&self, plan: &ComparePlan) -> Vec<Floor> {
        let floor = |&contender: &Contender| {
            let (mut mean, mut slices, mut lost, mut all) = (0.0, 0.0, 0, 0);
            for slice in self.judged() {
                let (exact, seen) = (slice.exact?, contender.sees_at_most(slice.floors)?);
                mean += (exact - seen) as f64 / exact as f64;
                slices += 1.0;
                lost += exact - seen;
                all += exact;
            }
            (slices > 0.0).then(|| Floor {
                contender,
                mean: mean / slices,
                lost: lost as f64 / all as f64,
            })
        };
        plan.contenders.iter().filter_map(floor).collect()
    }
}
