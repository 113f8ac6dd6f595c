//! A comparison: its parameters and the columns of its parts.

use super::cell::{Decimal, Time};
use super::column::Columns;
use super::compare_words::{digests, program_words};
use super::count_combinations::{StoredCombination, names, stored_columns};
use super::count_model::PARTIAL_DOC;
use super::number::{grouped, size};
use super::selection::selection_columns;
use crate::comparison::statistics::{Crossover, Interval, PairJudgement, Verdict};
use crate::comparison::{
    ComparePlan, Comparison, Contender, CountKind, Entry, Expected, ExpectedFrom, Floor,
    JudgedSlice, PairVerdict, ProbeRule, QueryResult, Replicate, SeedErrors, Seeds, Sizes,
};
use crate::filters::FilterKind;

/// A comparison and what was asked.
#[derive(Debug)]
pub struct CompareReport<'a> {
    /// What was asked.
    pub plan: &'a ComparePlan,
    /// What came of it.
    pub comparison: &'a Comparison,
    /// Addresses on its page are replaced.
    pub anonymized: bool,
    /// The count of each slice and replicate is in the document.
    pub counts: bool,
    /// Also by slices of this many elements, or by load.
    pub by: Option<Grouping>,
    /// Names of the captures with their digests, for captions.
    pub captures: Vec<CaptureDigest>,
    /// The command line.
    pub command: String,
}

/// Into what slices and sizes are grouped.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Grouping {
    /// Slices by their number of elements.
    Size,
    /// Sizes by elements per byte.
    Load,
}

/// A capture by its content.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CaptureDigest {
    /// As given.
    pub name: String,
    /// SHA-256 of the file in hexadecimal digits; `None` for a pipe.
    pub sha256: Option<String>,
}

/// The columns of a capture's content.
pub(super) fn digest_columns() -> Columns<CaptureDigest> {
    Columns::default()
        .field("capture", |capture: &CaptureDigest| capture.name.clone())
        .doc("the capture, as given")
        .field("sha256", |capture| capture.sha256.clone())
        .doc("SHA-256 of the file; null for a pipe")
}

/// What a comparison depends on, or several with the same plan.
pub(super) struct Asked<'a> {
    pub(super) plan: &'a ComparePlan,
    /// What is known of the slices, if it is one capture.
    pub(super) comparison: Option<&'a Comparison>,
    pub(super) anonymized: bool,
    pub(super) command: &'a str,
}

impl<'a> Asked<'a> {
    fn expected(&self) -> Option<&'a Expected> {
        self.comparison.map(|comparison| &comparison.expected)
    }
}

/// What a comparison depends on.
pub(super) fn parameter_columns<'a>() -> Columns<Asked<'a>> {
    Columns::default()
        .inlined("version", |_: &Asked<'a>| env!("CARGO_PKG_VERSION"))
        .doc("of flowsieve")
        .inlined("command", |asked| asked.command.to_owned())
        .doc("the command line, without options that change no number (`--threads`, and how and where results are written)")
        .inlined("element", |asked: &Asked<'a>| asked.plan.rule.kind.name().into_owned())
        .doc("as for `count`")
        .inlined("undirected", |asked| asked.plan.rule.undirected)
        .inlined("queries_only", |asked| asked.plan.rule.queries_only)
        .inlined("dns_ports", |asked| asked.plan.trace.headers.dns_ports.clone())
        .inlined("tunnel", |asked| asked.plan.trace.headers.tunnel.name())
        .part(None, &selection_columns(), |asked| {
            Some(asked.plan.trace.selection.clone())
        })
        .inlined("slice_ns", |asked| asked.plan.slicing.width_ns)
        .inlined("align", |asked| asked.plan.slicing.align.name())
        .inlined("whole_slices", |asked| asked.plan.whole_slices)
        .doc("slices that the capture covers only in part are not judged (`--whole-slices`)")
        .inlined("filters", |asked| {
            let contenders = asked.plan.contenders.iter();
            contenders.map(|contender| contender.name()).collect::<Vec<_>>()
        })
        .doc("the structures")
        .inlined("pair", |asked| {
            let pair = asked.plan.pair.iter().flatten();
            pair.map(|contender| contender.name()).collect::<Vec<_>>()
        })
        .doc("the two structures of `verdicts`; empty for a single structure")
        .inlined("setting", |asked| if asked.plan.sizes.are_arrays() { "array" } else { "total" })
        .doc("`total`: every structure has the same memory; `array`: every array has the same bits")
        .inlined("memory_bytes", |asked| sizes(asked, false))
        .doc("memory that each structure gets for a slice; null with `array`, and with `--each` where it follows from each capture")
        .inlined("array_bits", |asked| sizes(asked, true))
        .doc("bits of each array; null with `total`")
        .inlined("queries", |asked| asked.plan.queries)
        .doc("absent elements were asked for (`--queries`)")
        .inlined("asked", |asked| {
            let attributes = asked.plan.rule.kind.attributes();
            let masks = asked.plan.asked().into_iter();
            masks.map(|mask| names(&attributes, mask)).collect::<Vec<_>>()
        })
        .doc("combinations that queries ask for, each a list of names; all attributes first")
        .inlined("expected_elements", |asked| asked.expected()?.elements)
        .doc("distinct elements per slice for which k was chosen; null if unknown (then k = 4). With `--each` this and the next two are null: each capture has its own")
        .inlined("expected_from", |asked| asked.expected().map(|expected| expected.from.name()))
        .doc("`given` (`--expect`), `p95` (95 of 100 slices have no more; nearest rank), or `unknown`")
        .inlined("expected_slices", |asked| match asked.expected()?.from {
            ExpectedFrom::Percentile95(slices) => Some(slices),
            _ => None,
        })
        .doc("slices of which that is the 95th percentile")
        .inlined("k_rule", |asked| match asked.plan.probes {
            ProbeRule::Formula => "formula",
            ProbeRule::Best => "best",
            ProbeRule::Given(_) => "given",
        })
        .doc("`formula`: least predicted loss while the arrays are filled (k = m/n ln 2 for structures that are no Bloom filters); `best`: least error in trials that are not judged; `given`: `--k`")
        .inlined("probes", |asked| match asked.plan.probes {
            ProbeRule::Given(probes) => Some(probes),
            _ => None,
        })
        .doc("hash functions (k) of every structure, if given")
        .inlined("open_slices", |asked| asked.plan.open_slices())
        .doc("as for `count`")
        .inlined("seed", |asked| asked.plan.seed)
        .inlined("seeds", |asked| match asked.plan.seeds {
            Seeds::Fixed(seeds) => Some(seeds),
            Seeds::Auto => None,
        })
        .doc("replicates asked for; null for as many as it takes")
        .inlined("looks", |asked| asked.comparison.map(|it| it.looks.clone()).unwrap_or_default())
        .doc("numbers of replicates after which it was decided whether more are needed: a size has no more once its pair is decided (an interval excludes 0 or lies inside the margin, or ten seeds are all the same)")
        .inlined("level", |asked| asked.comparison.map(|it| Decimal(it.rule.level())))
        .doc("level of the interval of a decision: 0.05 / (looks x sizes)")
        .inlined("interval", |_| "95 %, Student's t over seeds; differences are paired by seed")
        .doc("what all other intervals are")
        .inlined("margin_points", |asked| Decimal(asked.plan.margin.points))
        .doc("a difference up to this does not matter")
        .unit("share")
        .inlined("margin_share", |asked| Decimal(asked.plan.margin.share))
        .doc("nor does one up to this share of the larger error")
        .inlined("exact_limit_bytes", |asked| asked.plan.exact_limit_bytes)
        .doc("as for `count`")
        .inlined("anonymized", |asked| asked.anonymized)
        .doc("addresses of the page and of `--od-out` are replaced")
}

fn sizes(asked: &Asked<'_>, arrays: bool) -> Option<Vec<u64>> {
    let sizes = match (&asked.plan.sizes, asked.comparison) {
        (_, Some(comparison)) => comparison.sizes.clone(),
        (Sizes::Total(sizes) | Sizes::Arrays(sizes), None) => sizes.clone(),
        (Sizes::Auto, None) => return None,
    };
    (asked.plan.sizes.are_arrays() == arrays).then_some(sizes)
}

/// A slice and the truth about it.
pub(super) fn judged_columns() -> Columns<JudgedSlice> {
    Columns::default()
        .field("start_ns", |slice: &JudgedSlice| Time(slice.start_ns))
        .doc("as for `count`")
        .field("end_ns", |slice| Time(slice.end_ns))
        .field("packets", |slice| slice.packets)
        .field("elements", |slice| slice.elements)
        .field("exact", |slice| slice.exact)
        .doc("distinct elements; null if the truth passed its limit")
        .field("exact_over_limit", |slice| slice.exact.is_none())
        .doc("the truth passed its limit in this slice: it is not judged")
        .field("new_values", |slice| slice.exact.map(|_| slice.floors.new_values))
        .doc("elements with a value that did not occur before in the slice: what `mdbf` sees at any memory")
        .field("new_sets", |slice| slice.floors.new_sets)
        .doc("those, and elements whose values differ from those of all others by more than their order: what `cmdbf-xor` sees at any memory")
        .field("partial", |slice| slice.partial)
        .doc(PARTIAL_DOC)
        .field("judged", |slice| slice.judged)
        .doc("structures are judged by this slice")
}

/// A mean with its interval.
pub(super) fn interval_columns() -> Columns<Interval> {
    Columns::default()
        .field("value", |interval: &Interval| Decimal(interval.value))
        .doc("mean over the replicates")
        .unit("share")
        .field("low", |interval| finite(interval.low))
        .doc("lower end of its interval of 95 % (Student's t), from two replicates on")
        .unit("share")
        .field("high", |interval| finite(interval.high))
        .doc("upper end")
        .unit("share")
}

fn finite(number: f64) -> Option<Decimal> {
    Some(Decimal(number)).filter(|_| number.is_finite())
}

/// A value of each of the two, and the number of those that are equal.
#[derive(Clone, Copy)]
pub(super) struct Split {
    a: u64,
    b: u64,
    equal: u64,
}

impl Split {
    fn new([a, b]: [u64; 2], all: u64) -> Self {
        Self { a, b, equal: all - a - b }
    }
}

pub(super) fn split_columns() -> Columns<Split> {
    Columns::default()
        .field("a", |split: &Split| split.a)
        .doc("in how many the first had the smaller error")
        .field("b", |split| split.b)
        .doc("in how many the second had")
        .field("equal", |split| split.equal)
        .doc("in how many both were equal")
}

/// A verdict, and that with the numbers of hash functions by the formula.
#[derive(Clone, Debug)]
pub(super) struct VerdictRow {
    pub(super) capture: Option<CaptureDigest>,
    pub(super) verdict: PairVerdict,
    pub(super) has_arrays: bool,
    pub(super) by_formula: Option<Verdict>,
}

impl VerdictRow {
    pub(super) fn judged(&self) -> Option<&PairJudgement> {
        self.verdict.result.as_ref().ok()
    }

    /// A verdict in a word or two.
    pub(super) fn word(&self, verdict: Verdict) -> String {
        let word = match verdict {
            Verdict::A => self.verdict.pair[0].name(),
            Verdict::B => self.verdict.pair[1].name(),
            Verdict::NoMatter => "no matter",
            Verdict::Same => "same",
            Verdict::Open => "open",
        };
        word.to_owned()
    }

    /// The errors of both, as people read them.
    pub(super) fn means(&self) -> Option<[Interval; 2]> {
        Some(self.judged()?.means.map(|mean| self.verdict.count.shown_interval(mean)))
    }
}

/// The columns of two structures of a size.
pub(super) fn verdict_columns() -> Columns<VerdictRow> {
    let mean = |number: usize| move |row: &VerdictRow| Some(row.means()?[number]);
    let of = |value: fn(&PairJudgement) -> f64| {
        move |row: &VerdictRow| row.judged().and_then(|judged| finite(value(judged)))
    };
    Columns::default()
        .field("memory_bytes", |row: &VerdictRow| (!row.has_arrays).then_some(row.verdict.size))
        .doc("memory given to each for a slice; null with `array`")
        .field("array_bits", |row| row.has_arrays.then_some(row.verdict.size))
        .doc("bits of each of their arrays; null with `total`")
        .field("count", |row| row.verdict.count.name())
        .doc("`raw`: mean over slices of the absolute error of the raw count; `estimate`: root mean square error of the estimate over slices and replicates")
        .field("estimand", |row| row.verdict.count.estimand())
        .doc("what the errors are")
        .field("a", |row| row.verdict.pair[0].name())
        .doc("the first of the two")
        .field("b", |row| row.verdict.pair[1].name())
        .doc("the second")
        .field("memory_used_bytes_a", |row| row.verdict.memory_bytes[0])
        .doc("most memory of the first in a slice, registers included")
        .field("memory_used_bytes_b", |row| row.verdict.memory_bytes[1])
        .doc("the same of the second; without equal memory, within 1 %, there is no verdict")
        .field("probes_a", |row| row.verdict.probes[0])
        .doc("hash functions (k) of the first")
        .field("probes_b", |row| row.verdict.probes[1])
        .doc("hash functions (k) of the second")
        .object("mean_a", interval_columns(), mean(0))
        .doc("error of the first")
        .object("mean_b", interval_columns(), mean(1))
        .doc("error of the second")
        .inlined("difference", of(|it| it.difference.value))
        .doc("error of the first less that of the second; for estimates the difference of the mean squares")
        .unit("share")
        .inlined("difference_low", of(|it| it.difference.low))
        .doc("lower end of its interval of 95 %, of differences paired by replicate")
        .inlined("difference_high", of(|it| it.difference.high))
        .doc("upper end")
        .inlined("difference_low_joint", of(|it| it.joint.low))
        .doc("lower end of its interval at `level`, by which it is decided")
        .inlined("difference_high_joint", of(|it| it.joint.high))
        .doc("upper end")
        .inlined("seeds", |row| row.judged().map(|it| it.seeds))
        .doc("replicates")
        .object("seeds_nearer", split_columns(), |row| {
            let judged = row.judged()?;
            Some(Split::new(judged.seeds_nearer.map(|it| it as u64), judged.seeds as u64))
        })
        .doc("replicates in which each was nearer to the truth")
        .object("slices_nearer", split_columns(), |row| {
            row.judged().map(|_| Split::new(row.verdict.slices_nearer, row.verdict.slices))
        })
        .doc("slices in which the mean error of each was smaller")
        .inlined("verdict", |row| row.judged().map(|it| it.verdict.name()))
        .doc("`a` or `b`: it is nearer to the truth; `no-matter`: the difference is within the margin; `same`: equal in every replicate; `open`: the replicates do not decide")
        .inlined("matters", |row| row.judged().map(|it| it.matters))
        .doc("the mean difference exceeds the margin")
        .inlined("hopeless", |row| row.judged().map(|it| it.hopeless))
        .doc("both miss more than half of the elements")
        .field("formula_verdict", |row| row.by_formula.map(Verdict::name))
        .doc("the verdict with k by the formula, if `k_rule` is `best`")
        .field("note", |row| row.verdict.result.as_ref().err().cloned())
        .doc("why there is no verdict")
}

/// Where the pair changes places.
pub(super) fn crossover_columns() -> Columns<(Crossover, bool, [&'static str; 2])> {
    Columns::default()
        .field("below", |(crossing, _, names): &(Crossover, bool, [&'static str; 2])| {
            names[usize::from(crossing.below == Verdict::B)]
        })
        .doc("which is nearer below")
        .field("from", |(crossing, ..)| crossing.between[0])
        .doc("the size up to which it is, in bytes or bits")
        .field("to", |(crossing, ..)| crossing.between[1])
        .doc("the size from which on the other one is")
        .field("interpolated_bytes", |(crossing, ..)| Decimal(crossing.interpolated))
        .doc("where the difference is 0, if it is linear in the logarithm of the size")
        .field("k_changes", |(_, changes, _)| *changes)
        .doc("one of the two has another k at `to`")
}

/// What structures lose at any memory.
pub(super) fn floor_columns() -> Columns<Floor> {
    Columns::default()
        .field("filter", |floor: &Floor| floor.contender.name())
        .doc("the structure")
        .field("mean", |floor| Decimal(floor.mean))
        .doc("mean over slices of the share of elements that it loses at any memory: exact, from the trace alone")
        .unit("share")
        .field("lost", |floor| Decimal(floor.lost))
        .doc("the same share of all elements")
        .unit("share")
}

/// The best of a size.
pub(super) struct BestSet {
    pub(super) size: u64,
    pub(super) count: CountKind,
    pub(super) filters: Vec<&'static str>,
}

pub(super) fn best_columns() -> Columns<BestSet> {
    Columns::default()
        .field("size", |best: &BestSet| best.size)
        .doc("bytes of each structure, or bits of each array")
        .field("count", |best| best.count.name())
        .doc("`raw` or `estimate`")
        .field("filters", |best| best.filters.clone())
        .doc("structures not worse than the one with the smallest error (paired t tests at 5 % in all), without those that take more memory or answer yes to every absent element")
}

/// A structure of a size, and what belongs to it.
#[derive(Clone)]
pub(super) struct EntryRow<'a> {
    entry: &'a Entry,
    has_arrays: bool,
    best: [bool; 2],
    stored: Vec<StoredCombination>,
    errors: [Option<ErrorRow>; 2],
    replicates: Vec<SeedRow>,
    queries: Vec<QueryRow>,
    /// The replicate that a line is about.
    seed: Option<SeedRow>,
    report: &'a CompareReport<'a>,
}

impl EntryRow<'_> {
    /// Returns a line for each replicate, or one without.
    pub(super) fn lines(mut self) -> Vec<Self> {
        let seeds = std::mem::take(&mut self.replicates);
        self.queries.clear();
        if seeds.is_empty() {
            return vec![self];
        }
        let line = |seed: SeedRow| Self { seed: Some(seed), ..self.clone() };
        seeds.into_iter().map(line).collect()
    }
}

/// Errors of a count over all replicates.
#[derive(Clone, Copy)]
pub(super) struct ErrorRow {
    errors: crate::comparison::CountErrors,
    worst_start_ns: Option<i64>,
}

/// Errors in one replicate.
#[derive(Clone)]
pub(super) struct SeedRow {
    number: usize,
    raw: Option<SeedErrors>,
    estimate: Option<SeedErrors>,
    worst_start_ns: Option<i64>,
    counts: Option<Replicate>,
}

/// Answers to queries for one combination.
#[derive(Clone)]
pub(super) struct QueryRow {
    attributes: Vec<&'static str>,
    result: QueryResult,
}

/// How a structure hashes the attributes together, where there are several ways.
pub(super) fn hash_variant(name: &str) -> Option<&'static str> {
    match name {
        "cmdbf" => Some("joint"),
        "cmdbf-xor" => Some("xor"),
        "cmdbf-xor-independent" => Some("xor-independent"),
        _ => None,
    }
}

fn entry_columns<'a>() -> Columns<EntryRow<'a>> {
    Columns::default()
        .inlined("filter", |row: &EntryRow<'a>| row.entry.contender.name())
        .doc("the structure; `subset` stores the whole element only; `plan` is what `plan` recommends for `--want`")
        .inlined("structure", |row| row.entry.kind.map(FilterKind::name))
        .doc("the structure that `plan` recommends, otherwise `filter`; null if it is no filter or does not fit")
        .inlined("hash_variant", |row| hash_variant(row.entry.contender.name()))
        .doc("how a CMDBF combines attributes: `joint` digest of the whole element, `xor` of addresses as published, `xor-independent`")
        .inlined("memory_asked_bytes", |row| (!row.has_arrays).then_some(row.entry.size))
        .doc("memory that it was given; null with `array`")
        .inlined("array_bits", |row| row.has_arrays.then_some(row.entry.size))
        .doc("bits of each of its arrays; null with `total`")
        .inlined("memory_bytes", |row| row.entry.memory_bytes)
        .doc("most memory that it used in a slice, registers included")
        .inlined("fits", |row| row.entry.unfit.is_none())
        .doc("it can be built in the memory")
        .inlined("exceeds_memory", |row| !row.has_arrays && row.entry.exceeds_memory())
        .doc("it used over 1 % more memory than it was given, so it is left out of `best_sets`")
        .inlined("needed_bytes", |row| row.entry.needed_bytes)
        .doc("memory of the smallest one, if it does not fit")
        .inlined("note", |row| row.entry.unfit.clone().or_else(|| over_memory(row)))
        .doc("why it does not fit, or by how much it exceeds its memory")
        .inlined("probes", |row| row.entry.probes)
        .doc("hash functions (k)")
        .inlined("best_raw", |row| row.best[0])
        .doc("by raw counts, no structure of this memory is better (see `best_sets`)")
        .inlined("best_estimate", |row| row.best[1])
        .doc("by estimates, no structure of this memory is better")
        .inlined("saturated_slices", |row| row.entry.saturated_slices())
        .doc("slices in which a replicate's filter was too full for an estimate")
}

fn over_memory(row: &EntryRow<'_>) -> Option<String> {
    let used = row.entry.memory_bytes.filter(|_| !row.has_arrays && row.entry.exceeds_memory())?;
    Some(format!(
        "it uses {} bytes, more than the {} asked for: not equal memory",
        grouped(used),
        grouped(row.entry.size)
    ))
}

/// The columns of a structure of a size, with lists of its replicates and answers.
pub(super) fn structure_columns<'a>() -> Columns<EntryRow<'a>> {
    entry_columns()
        .objects("stored", stored_columns(), |row| row.stored.clone())
        .doc("combinations stored besides the whole element: `attributes`, and `probes`")
        .object("raw", error_columns(), |row| row.errors[0])
        .doc("errors of the raw count")
        .object("estimate", error_columns(), |row| row.errors[1])
        .doc("errors of the unbiased estimate")
        .objects("replicates", seed_columns(), |row| row.replicates.clone())
        .doc("one for each replicate")
        .objects("queries", query_columns(), |row| row.queries.clone())
        .doc("answers to queries for absent elements in the first replicate (`--queries`)")
}

/// The columns of a line of CSV: of a structure, a size and a replicate.
pub(super) fn flat_columns<'a>() -> Columns<EntryRow<'a>> {
    let counts = seed_columns().without("counts").without("estimates");
    entry_columns()
        .part(None, &counts, |row: &EntryRow<'a>| row.seed.clone())
        .inlined("captures", |row| digests(&row.report.captures).collect::<Vec<_>>().join("; "))
        .doc("SHA-256 of each capture that is a file")
        .inlined("command", |row| program_words(&row.report.command))
        .doc("version and command line, without options that change no number")
}

/// Errors of a count, as shares of the exact one.
pub(super) fn error_columns() -> Columns<ErrorRow> {
    let of = |value: fn(&Interval) -> f64| move |row: &ErrorRow| finite(value(&row.errors.error));
    Columns::default()
        .inlined("value", of(|error| error.value))
        .doc("`raw`: mean absolute error over slices and replicates; `estimate`: root mean square error")
        .unit("share")
        .inlined("low", of(|error| error.low))
        .doc("lower end of its interval of 95 % (Student's t)")
        .unit("share")
        .inlined("high", of(|error| error.high))
        .doc("upper end")
        .unit("share")
        .field("lost", |row| Decimal(row.errors.lost))
        .doc("share of all elements that is missing: slices weigh by their elements")
        .unit("share")
        .field("worst", |row| Decimal(row.errors.worst))
        .doc("mean over replicates of the largest absolute error of a slice")
        .unit("share")
        .field("worst_start_ns", |row| row.worst_start_ns.map(Time))
        .doc("the slice that has it in more than half of the replicates")
        .field("bias", |row| Decimal(row.errors.bias))
        .doc("mean of the signed errors: below 0 if too little was counted")
        .unit("share")
}

/// Errors in one replicate.
pub(super) fn seed_columns() -> Columns<SeedRow> {
    let raw = |value: fn(&SeedErrors) -> f64| {
        move |row: &SeedRow| row.raw.as_ref().map(value).map(Decimal)
    };
    let estimate = |value: fn(&SeedErrors) -> f64| {
        move |row: &SeedRow| row.estimate.as_ref().map(value).map(Decimal)
    };
    Columns::default()
        .field("seed", |row: &SeedRow| row.number)
        .doc("number of the replicate, from 0; replicate 0 is `count` with the same `--seed`")
        .inlined("mean", raw(|it| it.mean))
        .doc("mean of the absolute errors of the raw count")
        .unit("share")
        .inlined("lost", raw(|it| it.lost))
        .doc("share of all elements that is missing in the raw counts")
        .unit("share")
        .inlined("worst", raw(|it| it.worst))
        .doc("largest error of the raw count")
        .unit("share")
        .field("worst_start_ns", |row| row.worst_start_ns.map(Time))
        .doc("the slice that has it")
        .inlined("bias", estimate(|it| it.bias))
        .doc("mean of the signed errors of the estimate")
        .unit("share")
        .inlined("rms", estimate(|it| it.mean_square.sqrt()))
        .doc("root of the mean square of the errors of the estimate")
        .unit("share")
        .field("counts", |row| row.counts.as_ref().map(|it| it.first.clone()))
        .doc("raw count of each slice (`--counts`)")
        .field("estimates", |row| row.counts.as_ref().map(|it| it.estimates.clone()))
        .doc("estimate of each slice (`--counts`)")
}

/// Answers to queries for absent elements.
pub(super) fn query_columns() -> Columns<QueryRow> {
    Columns::default()
        .field("attributes", |row: &QueryRow| row.attributes.clone())
        .doc("the combination that is asked for")
        .field("negatives", |row| row.result.negatives.name())
        .doc("`apart`: values from different elements of the slice that do not occur together; `next`: values of the combination in the following open slice that are not in this one")
        .field("queries", |row| row.result.queries)
        .doc("number over all slices; per slice at most 20,000, and at most as many as it has distinct elements (256 if it is small)")
        .field("positives", |row| row.result.positives)
        .doc("those answered by yes; null if the structure has no answer")
        .field("observed_fpr", |row| row.result.observed().map(Decimal))
        .doc("their share")
        .unit("share")
        .field("observed_fpr_std_error", |row| row.result.std_error().map(Decimal))
        .doc("its standard error if queries were independent")
        .field("predicted_fpr", |row| row.result.predicted().map(Decimal))
        .doc("what the formulas predict for the distinct values of each slice, all equally frequent; for a matrix that stores only parts of a combination, as if no part of two or more values occurred")
        .unit("share")
}

impl CompareReport<'_> {
    pub(super) fn asked(&self) -> Asked<'_> {
        Asked {
            plan: self.plan,
            comparison: Some(self.comparison),
            anonymized: self.anonymized,
            command: &self.command,
        }
    }

    /// A structure with everything that belongs to it.
    pub(super) fn row<'b>(&'b self, entry: &'b Entry) -> EntryRow<'b> {
        let comparison = self.comparison;
        let start = |slice: usize| comparison.slices[slice].start_ns;
        let errors = CountKind::ALL.map(|kind| {
            let errors = comparison.errors(entry, kind)?;
            Some(ErrorRow { errors, worst_start_ns: errors.worst_slice.map(start) })
        });
        let stored = |&(mask, probes): &(u32, u32)| StoredCombination {
            attributes: self.attributes(mask),
            probes,
        };
        let query =
            |&result: &QueryResult| QueryRow { attributes: self.attributes(result.mask), result };
        let [raw, estimate] = CountKind::ALL.map(|kind| comparison.seed_errors(entry, kind));
        let replicates = entry.replicates.iter().enumerate().map(|(number, replicate)| SeedRow {
            number,
            raw: raw.get(number).copied(),
            estimate: estimate.get(number).copied(),
            worst_start_ns: raw.get(number).map(|errors| start(errors.worst_slice)),
            counts: self.counts.then(|| replicate.clone()),
        });
        EntryRow {
            entry,
            has_arrays: comparison.has_arrays,
            best: CountKind::ALL.map(|kind| self.is_best(entry, kind)),
            stored: entry.stored.iter().map(stored).collect(),
            errors,
            replicates: replicates.collect(),
            queries: entry.queries.iter().map(query).collect(),
            seed: None,
            report: self,
        }
    }

    /// The pair of every size by one of its counts.
    pub(super) fn verdicts(&self, kind: CountKind) -> Vec<VerdictRow> {
        let pair = self.plan.pair.into_iter();
        let rows = pair.flat_map(|pair| verdict_rows(self.comparison, pair, kind, None));
        rows.collect()
    }

    /// Whether an entry is one of the best of its size.
    pub(super) fn is_best(&self, entry: &Entry, kind: CountKind) -> bool {
        self.best(entry.size, kind).contains(&entry.contender)
    }

    /// The best of a size.
    pub(super) fn best(&self, size: u64, kind: CountKind) -> Vec<Contender> {
        let best = self.comparison.best(size, kind, self.plan.rule.kind.all());
        best.into_iter().map(|entry| entry.contender).collect()
    }

    /// Names of a combination's attributes.
    pub(super) fn attributes(&self, mask: u32) -> Vec<&'static str> {
        names(&self.plan.rule.kind.attributes(), mask)
    }

    /// A size in words.
    pub(super) fn size(&self, size: u64) -> String {
        size_words(self.comparison.has_arrays, size)
    }
}

/// A size in words: bytes of a structure, or bits of an array.
pub(super) fn size_words(has_arrays: bool, bytes_or_bits: u64) -> String {
    if has_arrays { format!("m = {}", grouped(bytes_or_bits)) } else { size(bytes_or_bits) }
}

/// The verdicts about a pair by one of its counts.
pub(super) fn verdict_rows(
    comparison: &Comparison,
    pair: [Contender; 2],
    kind: CountKind,
    capture: Option<&CaptureDigest>,
) -> Vec<VerdictRow> {
    let sweep = comparison.sweep(pair, kind).into_iter();
    let rows = sweep.map(|verdict| {
        let formula = pair.map(|contender| {
            let mut entries = comparison.by_formula.iter();
            let is_own = |it: &&Entry| it.contender == contender && it.size == verdict.size;
            (contender, entries.find(is_own))
        });
        let by_formula = comparison.verdict_of(formula, verdict.size, kind).result.ok();
        VerdictRow {
            capture: capture.cloned(),
            has_arrays: comparison.has_arrays,
            by_formula: by_formula.map(|it| it.verdict),
            verdict,
        }
    });
    rows.collect()
}
