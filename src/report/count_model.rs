//! A count: its parameters, the columns of its slices, and what stands around them.

use super::cell::{Tally, Time};
use super::column::Columns;
use super::count_combinations::{CountDesign, combination_columns, count_columns, design_columns};
use super::heading::Heading;
use super::inputs::inputs_cell;
use super::number::{grouped, grouped_tenths};
use super::rows::{Frame, Tail};
use super::selection::selection_columns;
use crate::decode::Skip;
use crate::filters::FilterSpec;
use crate::pipeline::{CountPlan, CountSummary, Quantiles, SliceResult, Totals, WholeResult};
use crate::zone::Zone;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// What a count depends on, as its report says.
#[derive(Clone, Debug)]
pub struct CountParameters {
    /// What was counted, and how.
    pub plan: CountPlan,
    /// Addresses of origins and destinations are replaced by others.
    pub anonymized: bool,
    /// What the filter was designed for, if that was asked.
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

    /// What people call several elements.
    pub(super) fn elements(&self) -> Cow<'static, str> {
        self.plan.rule.kind.plural()
    }

    /// Time zone for text output.
    pub(super) const fn zone(&self) -> Zone {
        self.plan.trace.selection.zone
    }

    /// What people call a row.
    pub(super) fn slice(&self) -> &'static str {
        match self.every_ns() {
            Some(_) => "window",
            None => "slice",
        }
    }

    /// What people call the structure that counts.
    pub(super) fn counter(&self) -> &'static str {
        match self.probes() {
            Some(_) => "filter",
            None => "counter",
        }
    }
}

/// Documentation of the column `partial`.
pub(super) const PARTIAL_DOC: &str =
    "the capture covers this slice only in part ([which ones](#partial-slices))";

/// What the numbers depend on.
pub(super) fn parameter_columns(with_design: bool) -> Columns<CountParameters> {
    let columns = Columns::default()
        .field("element", |p: &CountParameters| p.plan.rule.kind.name().into_owned())
        .doc("`host-pair`, `flow`, `dns`, `src` or `dst`")
        .field("undirected", |p| p.plan.rule.undirected)
        .doc("both directions are one element")
        .field("queries_only", |p| p.plan.rule.queries_only)
        .doc("count DNS queries only")
        .field("dns_ports", |p| p.plan.trace.headers.dns_ports.clone())
        .doc("DNS ports besides 53")
        .field("tunnel", |p| p.plan.trace.headers.tunnel.name())
        .doc("`outer` or `inner`: which IP header counts")
        .part(None, &selection_columns(), |p| Some(p.plan.trace.selection.clone()))
        .field("slice_ns", |p| p.plan.slicing.width_ns)
        .doc("width of a slice; null for one slice over everything")
        .field("every_ns", CountParameters::every_ns)
        .doc("with `--every`: time between the ends of two windows")
        .field("align", |p| p.plan.slicing.align.name())
        .doc("`epoch` or `first`: where slices begin")
        .field("filter", CountParameters::filter)
        .doc("the structure that counts: a filter, `hll`, `ell`, `sliding` (with `--every`) or `exact`")
        .field("memory_bytes", |p| p.plan.counter_bytes())
        .doc("memory of the structure for one slice, over all shards")
        .field("probes", CountParameters::probes)
        .doc("hash functions (k) of a whole element")
        .field("shards", |p| p.plan.shards)
        .doc("partitions of the elements, each with a filter")
        .field("open_slices", |p| p.plan.open_slices())
        .doc("slices open at the same time, each with filters")
        .field("seed", |p| p.plan.seed)
        .doc("seed of the digests")
        .field("exact_limit_bytes", |p| p.plan.exact_limit_bytes)
        .doc("memory that the exact sets may take")
        .field("whole_bytes", |p| p.plan.whole_bytes())
        .doc("memory of the sample that counts all slices together")
        .field("anonymized", |p| p.anonymized)
        .doc("addresses are replaced ([privacy.md](privacy.md))");
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
    Columns::default()
        .field("start_ns", |slice: &SliceResult| Time(slice.start_ns))
        .doc("first nanosecond of the slice; with `--slice all` of the first packet")
        .heading(Heading::left(0, width, "start"))
        .decimals(decimals, decimals)
        .field("end_ns", |slice| Time(slice.end_ns))
        .doc("first nanosecond after the slice; with `--slice all` of the last packet")
        .field("packets", |slice| slice.packets)
        .doc("packets in the slice")
        .heading(Heading::right(1, 12, "packets").narrow(9, "packets").drop_priority(7))
        .field("elements", |slice| slice.elements)
        .doc("elements seen, repeats included")
        .heading(Heading::right(2, 12, "elements").narrow(9, "elements").drop_priority(1))
        .field("exact", |slice| slice.exact)
        .doc("distinct elements by the exact set, unless it is off or reached its limit")
        .heading(Heading::right(3, 11, "exact").narrow(9, "exact"))
        .text(|slice| match slice.exact {
            _ if slice.exact_over_limit => "over limit".to_owned(),
            exact => exact.map_or_else(|| "–".to_owned(), grouped),
        })
        .field("exact_over_limit", |slice| slice.exact_over_limit)
        .doc("the exact set reached its limit")
        .field("first", |slice| slice.first)
        .doc("elements that the filter saw as new: never too many, and too few by its false positives")
        .heading(Heading::right(4, 11, "first").narrow(9, "first").drop_priority(2))
        .field("estimate", |slice| slice.estimate)
        .doc("unbiased estimate of the distinct elements")
        .heading(Heading::right(5, 11, "estimate").narrow(9, "estimate"))
        .text(|slice| match slice.estimate {
            // Rounded to whole numbers, few elements would differ from the exact count by nothing.
            Some(estimate @ ..10_000.0) => grouped_tenths(estimate),
            estimate => estimate.map_or_else(|| "–".to_owned(), |it| grouped(it.round() as u64)),
        })
        .field("std_error", |slice| slice.std_error)
        .doc("standard error of the estimate")
        .heading(Heading::right(6, 12, "± std error").narrow(11, "± std error").drop_priority(4))
        .text(|slice| slice.std_error.map_or_else(|| "–".to_owned(), |error| format!("{error:.1}")))
        .field("lower", |slice| slice.lower)
        .doc("lower bound: `lower` and `upper` enclose the true number in at least 95 of 100 cases")
        .heading(Heading::right(7, 11, "lower").narrow(9, "lower").drop_priority(5))
        .field("upper", |slice| slice.upper)
        .doc("upper bound")
        .heading(Heading::right(8, 11, "upper").narrow(9, "upper").drop_priority(5))
        .text(|slice| match slice.upper {
            Some(upper) => grouped(upper),
            None if slice.saturated => "full".to_owned(),
            None => "–".to_owned(),
        })
        .field("rel_error", SliceResult::rel_error)
        .doc("(estimate - exact) / exact")
        .unit("share")
        .heading(Heading::right(9, 11, "rel. error").narrow(9, "rel. err.").drop_priority(6))
        .field("observed_fpr", |slice| slice.observed_fpr)
        .doc("share of new elements that the filter took for repeats")
        .unit("share")
        .heading(Heading::right(10, 13, "observed FPR").narrow(8, "obs. FPR").drop_priority(3))
        .field("saturated", |slice| slice.saturated)
        .doc("a filter was too full for a count: `first` is far too low, and there is no upper bound")
        .field("revised", |slice| slice.revised)
        .doc("late packets came: this row replaces the earlier ones of its slice")
}

/// The columns of a slice, with those of the combinations that are wanted: beside each other for
/// flat tables, else as a list.
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
    } else if let Some(design) = design.filter(|_| !combinations.is_empty()) {
        let design = design.clone();
        columns = columns.objects("combinations", combination_columns(), move |slice| {
            design.counts(&slice.combinations)
        });
    }
    with_marks(columns)
}

/// With the last columns. They came later than the others, whose places stay.
pub(super) fn with_marks(columns: Columns<SliceResult>) -> Columns<SliceResult> {
    columns
        .field("out_of_range", |slice: &SliceResult| {
            slice.start_ns == i64::MIN || slice.end_ns == i64::MAX
        })
        .doc("packets with times outside 1677 to 2262 count here")
        .field("partial", |slice: &SliceResult| slice.partial)
        .doc(PARTIAL_DOC)
        .field("new", |slice| slice.new)
        .doc("distinct elements that no earlier slice has ([how](counting.md#the-whole-beside-the-slices))")
        .field("new_std_error", |slice| slice.new_std_error)
        .doc("standard error of `new`, if it is an estimate")
}

/// All slices together.
fn whole_columns() -> Columns<WholeResult> {
    Columns::default()
        .field("exact", |whole: &WholeResult| whole.exact)
        .doc("distinct elements by the exact set, unless it is off or reached its limit")
        .field("estimate", |whole| whole.estimate)
        .doc("unbiased estimate by a sample")
        .field("std_error", |whole| whole.std_error)
        .doc("standard error of the estimate")
        .field("lower", |whole| whole.lower)
        .doc("lower bound: `lower` and `upper` enclose the true number in at least 95 of 100 cases")
        .field("upper", |whole| whole.upper)
        .doc("upper bound")
}

/// Distinct elements of a slice at these quantiles.
pub(super) fn quantile_columns() -> Columns<Quantiles> {
    Columns::default()
        .field("min", |q: &Quantiles| q.min)
        .doc("smallest number, exact")
        .field("p50", |q| q.p50)
        .doc("the median, up to three digits, as the next two")
        .field("p90", |q| q.p90)
        .doc("90 of 100 slices have at most this many")
        .field("p99", |q| q.p99)
        .doc("99 of 100")
        .field("max", |q| q.max)
        .doc("largest number, exact")
}

/// Packets by reason, in the order of the names.
pub(super) fn tally(skipped: &BTreeMap<Skip, u64>) -> Tally {
    let counts = skipped.iter();
    let counts: BTreeMap<_, _> =
        counts.map(|(skip, &count)| (skip.name().into_owned(), count)).collect();
    Tally(counts.into_iter().collect())
}

/// The whole run.
pub(super) fn total_columns(design: Option<&CountDesign>) -> Columns<Totals> {
    let columns = Columns::default()
        .field("packets", |totals: &Totals| totals.packets)
        .doc("packets read")
        .field("ip_packets", |totals| totals.ip_packets)
        .doc("packets with a readable IP header")
        .field("elements", |totals| totals.elements)
        .doc("elements seen, repeats included")
        .field("skipped", |totals| tally(&totals.skipped))
        .doc("skipped packets by [reason](#reasons-without-an-element)")
        .field("late", |totals| totals.late)
        .doc(
            "packets that came after the row of their slice; they count, and the row was `revised`",
        )
        .field("uncounted", |totals| totals.uncounted)
        .doc("packets in no slice: too late from a pipe, or not reached by an interrupted run")
        .ending(|totals| totals.interrupted, |totals| totals.complete)
        .field("slices", |totals| totals.slices)
        .doc("slices reported")
        .field("empty_slices_omitted", |totals| totals.empty_slices_omitted)
        .doc("empty slices of long gaps")
        .object("whole", whole_columns(), |totals| totals.whole)
        .doc("all slices together, where an element in two slices counts once")
        .field("exact", |totals| totals.exact)
        .doc("sum over the slices: an element in two slices counts twice")
        .field("first", |totals| totals.first)
        .doc("the same sum of `first`")
        .field("estimate", |totals| totals.estimate)
        .doc("the same sum of `estimate`")
        .field("std_error", |totals| totals.std_error)
        .doc("standard error of the sum of the estimates")
        .field("lower", |totals| totals.lower)
        .doc("lower bound of the sum")
        .field("upper", |totals| totals.upper)
        .doc("upper bound of the sum")
        .field("observed_fpr", |totals| totals.observed_fpr)
        .doc("over all slices")
        .unit("share")
        .field("saturated_slices", |totals| totals.saturated_slices)
        .doc("slices that are `saturated`")
        .field("bounds_checked", |totals| totals.bounds_checked)
        .doc("slices with bounds and an exact count")
        .field("bounds_held", |totals| totals.bounds_held)
        .doc("those whose bounds enclose the exact count")
        .object("quantiles", quantile_columns(), |totals| totals.quantiles)
        .doc(
            "quantiles of the distinct elements per slice: exact, else estimated, else raw counts",
        );
    match design.filter(|design| !design.combinations.is_empty()) {
        Some(design) => {
            let design = design.clone();
            columns.objects("combinations", combination_columns(), move |totals| {
                design.counts(&totals.combinations)
            })
        }
        None => columns,
    }
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
