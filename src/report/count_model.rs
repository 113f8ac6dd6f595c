//! A count: its parameters, the columns of its slices, and what stands around them.

use super::cell::{Cell, Time};
use super::column::{Columns, columns};
use super::count_combinations::{
    CountDesign, LOWER_DOC, UPPER_DOC, combination_columns, count_columns, design_columns,
};
use super::format::{Frame, Tail};
use super::heading::Heading;
use super::number::{grouped, grouped_tenths, or_dash, rounded};
use super::run_view::inputs_cell;
use super::selection::trace_columns;
use crate::decode::Skip;
use crate::filters::FilterSpec;
use crate::pipeline::{
    CombinationResult, CountPlan, CountSummary, Quantiles, SliceResult, Totals, WholeResult,
};
use crate::zone::Zone;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The parameters of a count, for its report.
#[derive(Clone, Debug)]
pub struct CountParameters {
    /// The request.
    pub plan: CountPlan,
    /// Addresses of origins and destinations are replaced by others.
    pub anonymized: bool,
    /// The design of the filter, if combinations were asked for.
    pub design: Option<CountDesign>,
}

impl From<&CountPlan> for CountParameters {
    fn from(plan: &CountPlan) -> Self {
        Self { plan: plan.clone(), anonymized: false, design: CountDesign::new(plan) }
    }
}

impl CountParameters {
    /// Where windows slide: how often one ends.
    pub(super) fn every_ns(&self) -> Option<i64> {
        self.plan.every_ns.filter(|_| self.plan.panes().is_some())
    }

    /// Structure that counts; `exact` if only the exact set does.
    pub(super) fn filter(&self) -> &'static str {
        self.plan.counter.as_ref().map_or("exact", |counter| counter.name)
    }

    /// Hash functions of a filter, or bits an element; `None` if it is no filter.
    pub(super) fn probes(&self) -> Option<u32> {
        self.plan.counter.as_ref()?.shard.filter().map(FilterSpec::probes)
    }

    /// Returns the plural of the element kind.
    pub(super) fn elements(&self) -> Cow<'static, str> {
        self.plan.rule.kind.plural()
    }

    /// Time zone for text output.
    pub(super) const fn zone(&self) -> Zone {
        self.plan.trace.selection.zone
    }

    /// Returns the word for a row.
    pub(super) fn slice(&self) -> &'static str {
        if self.every_ns().is_some() { "window" } else { "slice" }
    }

    /// Returns the word for the structure that counts.
    pub(super) fn counter(&self) -> &'static str {
        if self.probes().is_some() { "filter" } else { "counter" }
    }
}

/// Documentation of columns that several results have.
pub(super) const START_DOC: &str =
    "first nanosecond of the slice; with `--slice all` of the first packet";
pub(super) const END_DOC: &str =
    "first nanosecond after the slice; with `--slice all` of the last packet";
pub(super) const PARTIAL_DOC: &str =
    "the capture covers this slice only in part ([which ones](#partial-slices))";
pub(super) const REVISED_DOC: &str =
    "late packets came: this row replaces the earlier ones of its slice";
pub(super) const SKIPPED_DOC: &str = "skipped packets by [reason](#reasons-without-an-element)";
pub(super) const UNCOUNTED_DOC: &str =
    "packets in no slice: too late from a pipe, or not reached by an interrupted run";
const EXACT_DOC: &str = "distinct elements by the exact set, unless it is off or reached its limit";

/// The columns of the parameters.
pub(super) fn parameter_columns(with_design: bool) -> Columns<CountParameters> {
    let columns = columns! { field p: CountParameters;
        element = p.plan.rule.kind.name().into_owned(),
            "`host-pair`, `flow`, `dns`, `src`, `dst`, or the fields of a key";
        undirected = p.plan.rule.undirected, "both directions are one element";
        queries_only = p.plan.rule.queries_only, "count DNS queries only";
        dns_ports = p.plan.trace.headers.dns_ports.clone(), "DNS ports besides 53";
        ..borrowed(trace_columns(), |p| &p.plan.trace);
        slice_ns = p.plan.slicing.width_ns, "width of a slice; null for one slice over everything";
        every_ns = p.every_ns(), "with `--every`: time between the ends of two windows";
        align = p.plan.slicing.align.name(), "`epoch` or `first`: where slices begin";
        filter = p.filter(),
            "the structure that counts: a filter, `hll`, `ell`, `sliding` (with `--every`) or `exact`";
        memory_bytes = p.plan.counter_bytes(),
            "memory of the structure for one slice, over all shards";
        probes = p.probes(), "hash functions (k) of a whole element";
        shards = p.plan.shards, "partitions of the elements, each with a filter";
        open_slices = p.plan.open_slices(), "slices open at the same time, each with filters";
        seed = p.plan.seed, "seed of the digests";
        exact_limit_bytes = p.plan.exact_limit_bytes, "memory that the exact sets may take";
        whole_bytes = p.plan.whole_bytes(), "memory of the sample that counts all slices together";
        anonymized = p.anonymized, "addresses are replaced ([privacy.md](privacy.md))";
    };
    if with_design {
        columns.object("design", design_columns(), |p| p.design.clone())
    } else {
        columns
    }
}

/// The columns of a slice but those of combinations. People see its beginning with this many
/// decimals of a second.
pub(super) fn slice_columns(decimals: usize) -> Columns<SliceResult> {
    let width = 20 + if decimals == 0 { 0 } else { decimals + 1 };
    columns! { field slice: SliceResult;
        start_ns = Time(slice.start_ns), START_DOC,
            heading(Heading::left(0, width, "start")), decimals(decimals, decimals);
        end_ns = Time(slice.end_ns), END_DOC;
        packets = slice.packets, "packets in the slice",
            heading(Heading::right(1, 12, "packets").narrow(9, "packets").drop_priority(5));
        elements = slice.elements, "elements seen, repeats included",
            heading(Heading::right(2, 12, "elements").narrow(9, "elements").drop_priority(1));
        exact = slice.exact, EXACT_DOC,
            heading(Heading::right(3, 11, "exact").narrow(9, "exact")),
            text(|slice| match slice.exact {
                _ if slice.exact_over_limit => "over limit".to_owned(),
                exact => or_dash(exact, grouped),
            });
        exact_over_limit = slice.exact_over_limit, "the exact set reached its limit";
        first = slice.first,
            "elements that the filter saw as new: never too many, and too few by its false positives",
            heading(Heading::right(4, 11, "first").narrow(9, "first").drop_priority(2));
        estimate = slice.estimate, "unbiased estimate of the distinct elements; null if a filter notices none any more",
            heading(Heading::right(5, 11, "estimate").narrow(9, "estimate")),
            text(|slice| match slice.estimate {
                // Rounded to whole numbers, few elements would differ from the exact count by
                // nothing.
                Some(estimate @ ..10_000.0) => grouped_tenths(estimate),
                estimate => or_dash(estimate, rounded),
            });
        std_error = slice.std_error, "standard error of the estimate",
            heading(Heading::right(6, 12, "± std error").narrow(11, "± std error").drop_priority(4)),
            text(|slice| or_dash(slice.std_error, |error| format!("{error:.1}")));
        lower = slice.lower, LOWER_DOC,
            heading(Heading::right(7, 11, "lower").narrow(9, "lower").drop_priority(8));
        upper = slice.upper, UPPER_DOC,
            heading(Heading::right(8, 11, "upper").narrow(9, "upper").drop_priority(8)),
            text(|slice| match slice.upper {
                None if slice.saturated => "full".to_owned(),
                upper => or_dash(upper, grouped),
            });
        rel_error = slice.rel_error(), "(estimate - exact) / exact", unit("share"),
            heading(Heading::right(9, 11, "rel. error").narrow(9, "rel. err.").drop_priority(7));
        observed_fpr = slice.observed_fpr, "share of the new elements it watched that the filter took for repeats", unit("share"),
            heading(Heading::right(10, 13, "observed FPR").narrow(8, "obs. FPR").drop_priority(3));
        saturated = slice.saturated,
            "a filter was too full for a count: `first` is far too low, and there is no upper bound";
        revised = slice.revised, REVISED_DOC;
    }
}

/// The columns of a slice with those of the wanted combinations: as further columns in flat tables,
/// otherwise as a list.
pub(super) fn all_slice_columns(design: Option<&CountDesign>, flat: bool) -> Columns<SliceResult> {
    let mut columns = slice_columns(0);
    let combinations = design.map_or(&[][..], |design| &design.combinations);
    if flat {
        for (index, names) in combinations.iter().enumerate() {
            columns = columns.part(
                Some(&names.join("_")),
                &count_columns(),
                move |slice: &SliceResult| slice.combinations.get(index).copied(),
            );
        }
    } else {
        columns = with_combinations(columns, design, |slice| &slice.combinations);
    }
    with_marks(columns)
}

/// Appends the columns that were added after the first release, so that no column moves.
pub(super) fn with_marks(columns: Columns<SliceResult>) -> Columns<SliceResult> {
    columns! { field slice in columns;
        out_of_range = slice.start_ns == i64::MIN || slice.end_ns == i64::MAX,
            "packets with times outside 1677 to 2262 count here";
        partial = slice.partial, PARTIAL_DOC;
        new = slice.new,
            "distinct elements that no earlier slice has ([how](counting.md#all-slices-together))";
        new_std_error = slice.new_std_error, "standard error of `new`, if it is an estimate";
    }
}

/// All slices together.
fn whole_columns() -> Columns<WholeResult> {
    columns! { field whole: WholeResult;
        exact = whole.exact, EXACT_DOC;
        estimate = whole.estimate, "unbiased estimate by a sample";
        std_error = whole.std_error, "standard error of the estimate";
        lower = whole.lower, LOWER_DOC;
        upper = whole.upper, UPPER_DOC;
    }
}

/// Distinct elements of a slice at these quantiles.
pub(super) fn quantile_columns() -> Columns<Quantiles> {
    columns! { field q: Quantiles;
        min = q.min, "smallest number, exact";
        p50 = q.p50, "the median, up to three digits, as the next two";
        p90 = q.p90, "90 of 100 slices have at most this many";
        p99 = q.p99, "99 of 100";
        max = q.max, "largest number, exact";
    }
}

/// Packets by reason, in the order of the names.
pub(super) fn tally(skipped: &BTreeMap<Skip, u64>) -> Cell {
    let counts = skipped.iter().map(|(skip, &count)| (skip.name(), Cell::U64(count)));
    Cell::Object(counts.collect::<BTreeMap<_, _>>().into_iter().collect())
}

/// The whole run.
pub(super) fn total_columns(design: Option<&CountDesign>) -> Columns<Totals> {
    let columns = columns! { field totals: Totals;
        packets = totals.packets, "packets read";
        ip_packets = totals.ip_packets, "packets with a readable IP header";
        elements = totals.elements, "elements seen, repeats included";
        skipped = tally(&totals.skipped), SKIPPED_DOC;
        late = totals.late,
            "packets that came after the row of their slice; they count, and the row was `revised`";
        uncounted = totals.uncounted, UNCOUNTED_DOC;
        ..ending(|totals| [totals.interrupted, totals.complete]);
        slices = totals.slices, "slices reported";
        empty_slices_omitted = totals.empty_slices_omitted, "empty slices of long gaps";
        ..object("whole", whole_columns(), |totals| totals.whole),
            "all slices together, where an element in two slices counts once";
        exact = totals.exact, "sum over the slices: an element in two slices counts twice";
        first = totals.first, "the same sum of `first`";
        estimate = totals.estimate, "the same sum of `estimate`";
        std_error = totals.std_error, "standard error of the sum of the estimates";
        lower = totals.lower, "lower bound of the sum";
        upper = totals.upper, "upper bound of the sum";
        observed_fpr = totals.observed_fpr, "over all slices", unit("share");
        saturated_slices = totals.saturated_slices, "slices that are `saturated`";
        bounds_checked = totals.bounds_checked, "slices with elements, bounds and an exact count";
        bounds_held = totals.bounds_held, "those whose bounds enclose the exact count";
        ..object("quantiles", quantile_columns(), |totals| totals.quantiles),
            "quantiles of the distinct elements per reported slice: exact, else estimated, else raw counts; null if a slice has none";
    };
    with_combinations(columns, design, |totals| &totals.combinations)
}

/// Appends the counts of the wanted combinations as a list, if there are any.
fn with_combinations<R: 'static>(
    columns: Columns<R>,
    design: Option<&CountDesign>,
    counts: fn(&R) -> &Vec<CombinationResult>,
) -> Columns<R> {
    let design = design.filter(|design| !design.combinations.is_empty()).cloned();
    let Some(design) = design else { return columns };
    columns.objects("combinations", combination_columns(), move |row| design.counts(counts(row)))
}

/// Returns what the document has besides the slices.
pub(super) fn frame(parameters: &CountParameters) -> Frame {
    let columns = parameter_columns(parameters.design.is_some());
    Frame::new("flowsieve.count/1", "slices")
        .in_zone(parameters.zone())
        .with("parameters", columns.object_of(parameters))
}

/// Returns the sections behind the slices.
pub(super) fn tail(parameters: &CountParameters, summary: &CountSummary) -> Tail {
    let totals = total_columns(parameters.design.as_ref());
    vec![("inputs", inputs_cell(&summary.inputs)), ("totals", totals.object_of(&summary.totals))]
}
