//! The shapes of machine-readable results: the only types that are serialized. One set of names for
//! all formats; documented in `docs/output.md`.

use super::count_combinations::{CombinationRow, CountDesign};
use super::stored_combinations::StoredRow;
use crate::decode::Tunnel;
use crate::elements::ElementLabel;
use crate::filters::saved::SavedFilter;
use crate::filters::{Estimate, FilterKind, FilterSpec};
use crate::pipeline::{CountPlan, CountSummary, InputResult, SliceResult, Totals};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;

/// Name and version of the document.
pub(super) const COUNT_SCHEMA: &str = "flowsieve.count/1";

/// How results are written.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum ReportFormat {
    /// For people.
    #[default]
    Table,
    /// One line a slice, with a header.
    Csv,
    /// One document.
    Json,
    /// One object a line.
    JsonLines,
    /// A row a slice, in Parquet.
    Parquet,
}

/// What a count depends on, as it is told in its report.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CountParameters {
    /// Kind of element.
    pub element: &'static str,
    /// The same for people, in the plural.
    #[serde(skip)]
    pub elements_plural: &'static str,
    /// Both directions are one element.
    pub undirected: bool,
    /// Of DNS messages only the queries.
    pub queries_only: bool,
    /// DNS ports besides 53.
    pub dns_ports: Vec<u16>,
    /// Which IP header counts.
    pub tunnel: &'static str,
    /// Width of a time slice; null for one slice.
    pub slice_ns: Option<i64>,
    /// Where slice boundaries lie.
    pub align: &'static str,
    /// Structure that counts; `exact` if only the exact set does.
    pub filter: &'static str,
    /// Bytes of the counters of one slice, over all shards.
    pub memory_bytes: Option<u64>,
    /// Hash functions of a filter, or bits an element; null if it is no filter.
    pub probes: Option<u32>,
    /// Partitions of the elements.
    pub shards: u32,
    /// Slices open at the same time.
    pub open_slices: usize,
    /// Seed of the digests.
    pub seed: u64,
    /// Bytes that the exact sets may take; null if they are off.
    pub exact_limit_bytes: Option<u64>,
    /// Addresses of origins and destinations are replaced by others.
    pub anonymized: bool,
    /// What the filter was designed for, if that was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub design: Option<CountDesign>,
}

impl From<&CountPlan> for CountParameters {
    fn from(plan: &CountPlan) -> Self {
        Self {
            element: plan.rule.kind.name(),
            elements_plural: plan.rule.kind.plural(),
            undirected: plan.rule.undirected,
            queries_only: plan.rule.queries_only,
            dns_ports: plan.rule.dns_ports.clone(),
            tunnel: match plan.tunnel {
                Tunnel::Outer => "outer",
                Tunnel::Inner => "inner",
            },
            slice_ns: plan.slicing.width_ns,
            align: plan.slicing.align.name(),
            filter: plan.counter.as_ref().map_or("exact", |c| c.name),
            memory_bytes: plan.counter_bytes(),
            probes: plan
                .counter
                .as_ref()
                .and_then(|counter| counter.shard.filter())
                .map(FilterSpec::probes),
            shards: plan.shards,
            open_slices: plan.open_slices(),
            seed: plan.seed,
            exact_limit_bytes: plan.exact_limit_bytes,
            anonymized: false,
            design: CountDesign::of(plan),
        }
    }
}

/// One time slice.
#[derive(Debug, Serialize)]
pub(super) struct SliceRow {
    start_ns: i64,
    end_ns: i64,
    packets: u64,
    elements: u64,
    exact: Option<u64>,
    exact_over_limit: bool,
    first: Option<u64>,
    estimate: Option<f64>,
    std_error: Option<f64>,
    rel_error: Option<f64>,
    observed_fpr: Option<f64>,
    saturated: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) combinations: Vec<CombinationRow>,
}

impl From<&SliceResult> for SliceRow {
    fn from(slice: &SliceResult) -> Self {
        Self {
            start_ns: slice.start_ns,
            end_ns: slice.end_ns,
            packets: slice.packets,
            elements: slice.elements,
            exact: slice.exact,
            exact_over_limit: slice.exact_over_limit,
            first: slice.first,
            estimate: slice.estimate,
            std_error: slice.std_error,
            rel_error: slice.rel_error(),
            observed_fpr: slice.observed_fpr,
            saturated: slice.saturated,
            combinations: Vec::new(),
        }
    }
}

/// One input.
#[derive(Debug, Serialize)]
pub(super) struct InputRow {
    path: String,
    container: Option<String>,
    packets: u64,
    error: Option<String>,
}

impl From<&InputResult> for InputRow {
    fn from(input: &InputResult) -> Self {
        Self {
            path: input.path.display().to_string(),
            container: input.container.clone(),
            packets: input.packets,
            error: input.error.as_ref().map(ToString::to_string),
        }
    }
}

/// The whole run.
#[derive(Debug, Serialize)]
pub(super) struct TotalsRow {
    packets: u64,
    ip_packets: u64,
    elements: u64,
    skipped: BTreeMap<String, u64>,
    late: u64,
    interrupted: bool,
    slices: u64,
    empty_slices_omitted: u64,
    exact: Option<u64>,
    first: Option<u64>,
    estimate: Option<f64>,
    std_error: Option<f64>,
    observed_fpr: Option<f64>,
    saturated_slices: u64,
    quantiles: Option<QuantilesRow>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) combinations: Vec<CombinationRow>,
}

/// Distinct elements of a slice at these quantiles.
#[derive(Debug, Serialize)]
struct QuantilesRow {
    min: u64,
    p50: u64,
    p90: u64,
    p99: u64,
    max: u64,
}

impl From<&Totals> for TotalsRow {
    fn from(totals: &Totals) -> Self {
        Self {
            packets: totals.packets,
            ip_packets: totals.ip_packets,
            elements: totals.elements,
            skipped: totals
                .skipped
                .iter()
                .map(|(skip, &count)| (skip.name().into_owned(), count))
                .collect(),
            late: totals.late,
            interrupted: totals.interrupted,
            slices: totals.slices,
            empty_slices_omitted: totals.empty_slices_omitted,
            exact: totals.exact,
            first: totals.first,
            estimate: totals.estimate,
            std_error: totals.std_error,
            observed_fpr: totals.observed_fpr,
            saturated_slices: totals.saturated_slices,
            quantiles: totals.quantiles.map(|q| QuantilesRow {
                min: q.min,
                p50: q.p50,
                p90: q.p90,
                p99: q.p99,
                max: q.max,
            }),
            combinations: Vec::new(),
        }
    }
}

/// Everything but the slices.
#[derive(Debug, Serialize)]
pub(super) struct SummaryRow {
    pub(super) inputs: Vec<InputRow>,
    pub(super) totals: TotalsRow,
}

impl From<&CountSummary> for SummaryRow {
    fn from(summary: &CountSummary) -> Self {
        Self {
            inputs: summary.inputs.iter().map(InputRow::from).collect(),
            totals: TotalsRow::from(&summary.totals),
        }
    }
}

/// Name and version of the document about saved filters.
pub(super) const FILTER_INFO_SCHEMA: &str = "flowsieve.filter-info/1";

/// A saved filter.
#[derive(Debug, Serialize)]
pub(super) struct FilterRow {
    pub(super) path: String,
    pub(super) element: Option<&'static str>,
    undirected: Option<bool>,
    queries_only: Option<bool>,
    dns_ports: Option<Vec<u16>>,
    tunnel: Option<&'static str>,
    pub(super) filter: &'static str,
    probes: u32,
    pub(super) memory_bytes: u64,
    pub(super) shards: usize,
    pub(super) seed: u64,
    pub(super) fill_ratio: f64,
    pub(super) estimate: Option<f64>,
    pub(super) std_error: Option<f64>,
    pub(super) saturated: Option<u64>,
    pub(super) overflows: Option<u64>,
    pub(super) stashed: Option<u64>,
    pub(super) given_up: Option<u64>,
    pub(super) combinations: Vec<StoredRow>,
    /// For people.
    #[serde(skip)]
    pub(super) elements: String,
    /// Of the filter of one shard, for people.
    #[serde(skip)]
    pub(super) parameters: String,
}

impl FilterRow {
    pub(super) fn new(path: &Path, filter: &SavedFilter, label: Option<&ElementLabel>) -> Self {
        let (stats, distinct) = (filter.stats(), filter.distinct());
        let has_stash = filter.spec().kind() == FilterKind::Dleft;
        let overflow = stats.counters.filter(|_| has_stash);
        let rule = label.map(|label| &label.rule);
        Self {
            path: path.display().to_string(),
            element: rule.map(|rule| rule.kind.name()),
            undirected: rule.map(|rule| rule.undirected),
            queries_only: rule.map(|rule| rule.queries_only),
            dns_ports: rule.map(|rule| rule.dns_ports.clone()),
            tunnel: label.map(|label| match label.tunnel {
                Tunnel::Outer => "outer",
                Tunnel::Inner => "inner",
            }),
            filter: filter.spec().name(),
            probes: filter.spec().probes(),
            memory_bytes: stats.memory_bytes,
            shards: filter.shards(),
            seed: filter.seed(),
            fill_ratio: stats.fill_ratio,
            estimate: distinct.map(|estimate| estimate.distinct),
            std_error: distinct.map(Estimate::std_error),
            saturated: stats.counters.map(|counters| counters.saturated),
            overflows: stats.counters.map(|counters| counters.overflows),
            stashed: overflow.map(|counters| counters.stashed),
            given_up: overflow.map(|counters| counters.given_up),
            combinations: StoredRow::all(filter, label),
            elements: label.map_or_else(|| "of an unknown kind".to_owned(), described),
            parameters: filter.spec().describe(),
        }
    }
}

fn described(label: &ElementLabel) -> String {
    let rule = &label.rule;
    let undirected = if rule.undirected { "undirected " } else { "" };
    let mut text = format!("{undirected}{}", rule.kind.plural());
    if rule.queries_only {
        text.push_str(", queries only");
    }
    for port in &rule.dns_ports {
        text += ", DNS also on port ";
        text += &port.to_string();
    }
    if label.tunnel == Tunnel::Inner {
        text.push_str(", of the innermost IP header");
    }
    text
}
