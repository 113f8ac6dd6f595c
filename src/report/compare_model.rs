//! A comparison in every format: its parameters and the columns of its parts.

use super::cell::{Cell, Decimal, Time};
use super::column::{Columns, columns};
use super::compare_structures::{EntryRow, flat_columns, structure_columns};
use super::compare_table::{document, write_markup};
use super::complete::CompleteReport;
use super::count_combinations::names;
use super::count_model::{PARTIAL_DOC, total_columns};
use super::format::{Frame, Tail};
use super::formats::tables::Markup;
use super::number::{grouped, size};
use super::run_view::inputs_cell;
use super::selection::selection_columns;
use crate::comparison::statistics::{Crossover, Interval, PairJudgement, Verdict};
use crate::comparison::{
    ComparePlan, Comparison, Contender, CountKind, Entry, Expected, ExpectedFrom, Floor,
    JudgedSlice, PairVerdict, ProbeRule, Seeds, Sizes,
};

/// A comparison and what was asked.
#[derive(Debug)]
pub struct CompareReport<'a> {
    /// The request.
    pub plan: &'a ComparePlan,
    /// The result.
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
    columns! { field capture: CaptureDigest;
        capture = capture.name.clone(), "the capture, as given";
        sha256 = capture.sha256.clone(), "SHA-256 of the file; null for a pipe";
    }
}

/// The parameters of a comparison, or of several with the same plan.
pub(super) struct Asked<'a> {
    pub(super) plan: &'a ComparePlan,
    /// The result, if it is one capture.
    pub(super) comparison: Option<&'a Comparison>,
    pub(super) anonymized: bool,
    pub(super) command: &'a str,
}

impl<'a> Asked<'a> {
    fn expected(&self) -> Option<&'a Expected> {
        self.comparison.map(|comparison| &comparison.expected)
    }
}

/// The columns of what is compared: elements, structures, sizes and queries.
fn compared_columns<'a>() -> Columns<Asked<'a>> {
    columns! { inlined asked: Asked<'a>;
        ..inlined("version", |_: &Asked<'a>| env!("CARGO_PKG_VERSION")), "of flowsieve";
        command = asked.command.to_owned(),
            "the command line, without options that change no number (`--threads`, and how and where results are written)";
        element = asked.plan.rule.kind.name().into_owned(), "as for `count`";
        undirected = asked.plan.rule.undirected, "";
        queries_only = asked.plan.rule.queries_only, "";
        dns_ports = asked.plan.trace.headers.dns_ports.clone(), "";
        tunnel = asked.plan.trace.headers.tunnel.name(), "";
        ..part(None, &selection_columns(), |asked| Some(asked.plan.trace.selection.clone()));
        slice_ns = asked.plan.slicing.width_ns, "";
        align = asked.plan.slicing.align.name(), "";
        whole_slices = asked.plan.whole_slices,
            "slices that the capture covers only in part are not judged (`--whole-slices`)";
        filters = asked.plan.contenders.iter().map(|it| it.name()).collect::<Vec<_>>(),
            "the structures";
        pair = asked.plan.pair.iter().flatten().map(|it| it.name()).collect::<Vec<_>>(),
            "the two structures of `verdicts`; empty for a single structure";
        setting = if asked.plan.sizes.are_arrays() { "array" } else { "total" },
            "`total`: every structure has the same memory; `array`: every array has the same bits";
        memory_bytes = sizes(asked, false),
            "memory that each structure gets for a slice; null with `array`, and with `--each` where it follows from each capture";
        array_bits = sizes(asked, true), "bits of each array; null with `total`";
        queries = asked.plan.queries, "absent elements were asked for (`--queries`)";
        asked = {
            let attributes = asked.plan.rule.kind.attributes();
            let masks = asked.plan.asked().into_iter();
            masks.map(|mask| names(&attributes, mask)).collect::<Vec<_>>()
        }, "combinations that queries ask for, each a list of names; all attributes first";
        expected_elements = asked.expected()?.elements,
            "distinct elements per slice for which k was chosen; null if unknown (then k = 4). With `--each` this and the next two are null: each capture has its own";
        expected_from = asked.expected().map(|expected| expected.from.name()),
            "`given` (`--expect`), `p95` (95 of 100 slices have no more; nearest rank), or `unknown`";
        expected_slices = match asked.expected()?.from {
            ExpectedFrom::Percentile95(slices) => Some(slices),
            _ => None,
        }, "slices of which that is the 95th percentile";
    }
}

/// The columns of the parameters.
pub(super) fn parameter_columns<'a>() -> Columns<Asked<'a>> {
    columns! { inlined asked in compared_columns();
        k_rule = match asked.plan.probes {
            ProbeRule::Formula => "formula",
            ProbeRule::Best => "best",
            ProbeRule::Given(_) => "given",
        },
            "`formula`: least predicted loss while the arrays are filled (k = m/n ln 2 for structures that are no Bloom filters); `best`: least error in trials that are not judged; `given`: `--k`";
        probes = match asked.plan.probes {
            ProbeRule::Given(probes) => Some(probes),
            _ => None,
        }, "hash functions (k) of every structure, if given";
        open_slices = asked.plan.open_slices(), "as for `count`";
        seed = asked.plan.seed, "";
        seeds = match asked.plan.seeds {
            Seeds::Fixed(seeds) => Some(seeds),
            Seeds::Auto => None,
        }, "replicates asked for; null for as many as it takes";
        looks = asked.comparison.map(|it| it.looks.clone()).unwrap_or_default(),
            "numbers of replicates after which it was decided whether more are needed: a size has no more once its pair is decided (an interval excludes 0 or lies inside the margin, or ten seeds are all the same)";
        level = asked.comparison.map(|it| Decimal(it.rule.level())),
            "level of the interval of a decision: 0.05 / (looks x sizes)";
        ..inlined("interval", |_| "95 %, Student's t over seeds, χ² for root mean squares; differences are paired by seed"),
            "what all other intervals are";
        margin_points = Decimal(asked.plan.margin.points),
            "a difference up to this does not matter", unit("share");
        margin_share = Decimal(asked.plan.margin.share),
            "nor does one up to this share of the larger error";
        exact_limit_bytes = asked.plan.exact_limit_bytes, "as for `count`";
        anonymized = asked.anonymized, "addresses of the page and of `--od-out` are replaced";
    }
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
    columns! { field slice: JudgedSlice;
        start_ns = Time(slice.start_ns), "as for `count`";
        end_ns = Time(slice.end_ns), "";
        packets = slice.packets, "";
        elements = slice.elements, "";
        exact = slice.exact, "distinct elements; null if the truth passed its limit";
        exact_over_limit = slice.exact.is_none(),
            "the truth passed its limit in this slice: it is not judged";
        new_values = slice.exact.map(|_| slice.floors.new_values),
            "elements with a value that did not occur before in the slice: what `mdbf` sees at any memory";
        new_sets = slice.floors.new_sets,
            "those, and elements whose values differ from those of all others by more than their order: what `cmdbf-xor` sees at any memory";
        partial = slice.partial, PARTIAL_DOC;
        judged = slice.judged, "structures are judged by this slice";
    }
}

/// A mean with its interval.
pub(super) fn interval_columns() -> Columns<Interval> {
    columns! { field interval: Interval;
        value = Decimal(interval.value), "mean over the replicates", unit("share");
        low = end(*interval, interval.low),
            "lower end of its interval of 95 %; null for too few replicates, and where all agree",
            unit("share");
        high = end(*interval, interval.high), "upper end", unit("share");
    }
}

/// Returns an end of an interval; `None` for too few replicates, or where all agree, since a rare loss
/// may not have occurred.
pub(super) fn end(interval: Interval, end: f64) -> Option<Decimal> {
    finite(end).filter(|_| interval.low < interval.high && interval.high.is_finite())
}

pub(super) fn finite(number: f64) -> Option<Decimal> {
    Some(Decimal(number)).filter(|_| number.is_finite())
}

/// In how many of all replicates or slices each of the two had the smaller error.
type Split = ([u64; 2], u64);

pub(super) fn split_columns() -> Columns<Split> {
    columns! { field split: Split;
        a = split.0[0], "in how many the first had the smaller error";
        b = split.0[1], "in how many the second had";
        equal = split.1 - split.0[0] - split.0[1], "in how many both were equal";
    }
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
    pub(super) fn word(&self, verdict: Verdict) -> &'static str {
        match verdict {
            Verdict::A => self.verdict.pair[0].name(),
            Verdict::B => self.verdict.pair[1].name(),
            Verdict::NoMatter => "no matter",
            Verdict::Same => "same",
            Verdict::Open => "open",
        }
    }

    /// The errors of both, as people read them.
    pub(super) fn means(&self) -> Option<[Interval; 2]> {
        Some(self.judged()?.means.map(|mean| self.verdict.count.shown_interval(mean)))
    }
}

/// The columns of two structures of a size.
pub(super) fn verdict_columns() -> Columns<VerdictRow> {
    let mean = |number: usize| move |row: &VerdictRow| Some(row.means()?[number]);
    columns! { field row: VerdictRow;
        memory_bytes = (!row.has_arrays).then_some(row.verdict.size),
            "memory given to each for a slice; null with `array`";
        array_bits = row.has_arrays.then_some(row.verdict.size),
            "bits of each of their arrays; null with `total`";
        count = row.verdict.count.name(),
            "`raw`: mean over slices of the absolute error of the raw count; `estimate`: root mean square error of the estimate over slices and replicates";
        estimand = row.verdict.count.estimand(), "what the errors are";
        a = row.verdict.pair[0].name(), "the first of the two";
        b = row.verdict.pair[1].name(), "the second";
        memory_used_bytes_a = row.verdict.memory_bytes[0],
            "most memory of the first in a slice, registers included";
        memory_used_bytes_b = row.verdict.memory_bytes[1],
            "the same of the second; without equal memory, within 1 %, there is no verdict";
        probes_a = row.verdict.probes[0], "hash functions (k) of the first";
        probes_b = row.verdict.probes[1], "hash functions (k) of the second";
        ..object("mean_a", interval_columns(), mean(0)), "error of the first";
        ..object("mean_b", interval_columns(), mean(1)), "error of the second";
        difference = row.judged().and_then(|it| finite(it.difference.value)),
            "error of the first less that of the second; for estimates the difference of the mean squares",
            unit("share");
        difference_low = row.judged().and_then(|it| end(it.difference, it.difference.low)),
            "lower end of its interval of 95 %, of differences paired by replicate; null for one replicate, and where all are the same";
        difference_high = row.judged().and_then(|it| end(it.difference, it.difference.high)), "upper end";
        difference_low_joint = row.judged().and_then(|it| end(it.joint, it.joint.low)),
            "lower end of its interval at `level`, by which it is decided; null for one replicate, and where all are the same";
        difference_high_joint = row.judged().and_then(|it| end(it.joint, it.joint.high)), "upper end";
        seeds = row.judged().map(|it| it.seeds), "replicates";
        ..object("seeds_nearer", split_columns(), |row| {
            row.judged().map(|it| (it.seeds_nearer.map(|seeds| seeds as u64), it.seeds as u64))
        }), "replicates in which each was nearer to the truth";
        ..object("slices_nearer", split_columns(), |row| {
            row.judged().map(|_| (row.verdict.slices_nearer, row.verdict.slices))
        }), "slices in which the mean error of each was smaller";
        verdict = row.judged().map(|it| it.verdict.name()),
            "`a` or `b`: it is nearer to the truth; `no-matter`: the difference is within the margin; `same`: equal in every replicate; `open`: the replicates do not decide";
        matters = row.judged().map(|it| it.matters),
            "the mean difference exceeds the margin";
        hopeless = row.judged().map(|it| it.hopeless),
            "both miss more than half of the elements";
        formula_verdict = row.by_formula.map(Verdict::name),
            "the verdict with k by the formula, if `k_rule` is `best`";
        note = row.verdict.result.as_ref().err().cloned(), "why there is no verdict";
    }
}

/// Where the pair changes places.
pub(super) struct Crossing {
    pub(super) at: Crossover,
    /// Which is nearer below, and above.
    pub(super) names: [&'static str; 2],
    /// One of the two has another number of hash functions above.
    pub(super) k_changes: bool,
}

/// The columns of a crossover.
pub(super) fn crossover_columns() -> Columns<Crossing> {
    columns! { field crossing: Crossing;
        below = crossing.names[0], "which is nearer below";
        from = crossing.at.between[0], "the size up to which it is, in bytes or bits";
        to = crossing.at.between[1], "the size from which on the other one is";
        interpolated_bytes = Decimal(crossing.at.interpolated),
            "where the difference is 0, if it is linear in the logarithm of the size";
        k_changes = crossing.k_changes, "one of the two has another k at `to`";
    }
}

/// Elements that a structure misses at any memory.
pub(super) fn floor_columns() -> Columns<Floor> {
    columns! { field floor: Floor;
        filter = floor.contender.name(), "the structure";
        mean = Decimal(floor.mean),
            "mean over slices of the share of elements that it loses at any memory: exact, from the trace alone",
            unit("share");
        lost = Decimal(floor.lost), "the same share of all elements", unit("share");
    }
}

/// The best of a size.
pub(super) struct BestSet {
    pub(super) size: u64,
    pub(super) count: CountKind,
    pub(super) filters: Vec<&'static str>,
}

pub(super) fn best_columns() -> Columns<BestSet> {
    columns! { field best: BestSet;
        size = best.size, "bytes of each structure, or bits of each array";
        count = best.count.name(), "`raw` or `estimate`";
        filters = best.filters.clone(),
            "structures not worse than the one with the smallest error (paired t tests at 5 % in all), without those that take more memory or answer yes to every absent element";
    }
}

impl CompareReport<'_> {
    /// Returns the comparison in every format.
    pub fn complete(&self) -> CompleteReport<'_> {
        let frame = Frame::new("flowsieve.compare/2", "rows");
        CompleteReport {
            frame: frame.in_zone(self.plan.trace.selection.zone),
            sections: Box::new(|| self.sections()),
            has_rows: false,
            table: Box::new(|| document(self)),
            rows: Box::new(|target| match target.format.name() {
                "markdown" => write_markup(self, Markup::Markdown, target.out),
                "latex" => write_markup(self, Markup::Latex, target.out),
                _ => {
                    let rows: Vec<_> = self.rows().flat_map(EntryRow::lines).collect();
                    target.write(flat_columns(), &rows)
                }
            }),
        }
    }

    fn rows(&self) -> impl Iterator<Item = EntryRow<'_>> {
        self.comparison.entries.iter().map(|entry| {
            let best = CountKind::ALL.map(|kind| self.is_best(entry, kind));
            EntryRow { report: self, entry, best, seed: None }
        })
    }

    fn sections(&self) -> Tail {
        let (plan, comparison) = (self.plan, self.comparison);
        let main = self.main_kind();
        let (anonymized, command) = (self.anonymized, &*self.command);
        let asked = Asked { plan, comparison: Some(comparison), anonymized, command };
        // A pair without estimates has no verdict by them.
        let is_shown = |row: &VerdictRow| row.verdict.count == main || row.judged().is_some();
        let verdicts = CountKind::ALL.into_iter().flat_map(|kind| self.verdicts(kind));
        let verdicts: Vec<_> = verdicts.filter(is_shown).collect();
        let best = comparison.sizes.iter().flat_map(|&size| {
            CountKind::ALL.map(|count| {
                let filters = self.best(size, count).into_iter().map(Contender::name);
                BestSet { size, count, filters: filters.collect() }
            })
        });
        let best: Vec<_> = best.filter(|best| !best.filters.is_empty()).collect();
        let structures: Vec<_> = self.rows().collect();
        vec![
            ("digests", digest_columns().list_of(&self.captures)),
            ("parameters", parameter_columns().object_of(&asked)),
            ("verdicts", verdict_columns().list_of(&verdicts)),
            ("crossovers", crossover_columns().list_of(&self.crossings())),
            ("floors", floor_columns().list_of(&comparison.floors(self.plan))),
            ("best_sets", best_columns().list_of(&best)),
            ("slices", judged_columns().list_of(&comparison.slices)),
            ("slices_omitted", Cell::U64(comparison.slices_omitted)),
            ("structures", structure_columns().list_of(&structures)),
            ("inputs", inputs_cell(&comparison.inputs)),
            ("totals", total_columns(None).object_of(&comparison.totals)),
        ]
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
