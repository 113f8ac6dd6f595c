//! The largest keys: what the answer depends on, the columns of a key, and what stands around them.

use super::cell::Time;
use super::column::{Columns, columns};
use super::count_combinations::{LOWER_DOC, UPPER_DOC};
use super::count_model::{
    END_DOC, PARTIAL_DOC, REVISED_DOC, SKIPPED_DOC, START_DOC, UNCOUNTED_DOC, tally,
};
use super::format::{Frame, Tail};
use super::run_view::{ended, inputs_cell};
use super::selection::trace_columns;
use crate::top::{RankBy, TopKey, TopPlan, TopSummary};

/// Returns the name of the number that keys are ranked by.
pub(super) fn ranked_number(plan: &TopPlan) -> String {
    match plan.rank_by {
        RankBy::Distinct => format!("distinct {}", plan.question.others_plural()),
        RankBy::Packets | RankBy::Bytes => plan.rank_by.name().to_owned(),
    }
}

/// A key of a slice.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TopRow {
    pub(super) start_ns: i64,
    pub(super) end_ns: i64,
    pub(super) key: TopKey,
    pub(super) partial: bool,
    pub(super) revised: bool,
}

/// The columns of the parameters.
pub(super) fn parameter_columns() -> Columns<TopPlan> {
    columns! { field p: TopPlan;
        by = p.question.by_names(), "fields of the keys";
        distinct = p.question.distinct_names(),
            "fields whose distinct values are counted for each key";
        most = p.most, "keys listed per slice at most (`-n`)";
        least = p.least, "distinct others of a listed key at least (`--min`)";
        sort = p.rank_by.name(), "what keys are ranked by: `distinct`, `packets` or `bytes`";
        ..borrowed(trace_columns(), |p| &p.trace);
        queries_only = p.queries_only, "count DNS queries only";
        dns_ports = p.trace.headers.dns_ports.clone(), "DNS ports besides 53";
        slice_ns = p.slicing.width_ns, "width of a slice; null for one slice over everything";
        align = p.slicing.align.name(), "`epoch` or `first`: where slices begin";
        memory_bytes = p.memory_bytes, "memory of one slice";
        seed = p.seed, "seed of the digests";
        exact_limit_bytes = p.exact_limit_bytes, "memory that the exact sets may take";
    }
}

/// The columns of a key.
pub(super) fn key_columns() -> Columns<TopRow> {
    columns! { field row: TopRow;
        start_ns = Time(row.start_ns), START_DOC;
        end_ns = Time(row.end_ns), END_DOC;
        rank = row.key.rank, "place in the slice, from 1 on";
        key = row.key.key.clone(), "the key; fields are separated by commas";
        estimate = row.key.spread.as_ref().map(|s| s.estimate),
            "unbiased estimate of the key's distinct others";
        std_error = row.key.spread.as_ref().map(|s| s.std_error), "standard error of the estimate";
        lower = row.key.spread.as_ref().map(|s| s.lower), LOWER_DOC;
        upper = row.key.spread.as_ref().map(|s| s.upper), UPPER_DOC;
        exact = row.key.exact.as_ref().map(|exact| exact.distinct),
            "distinct others by the exact set";
        share = row.key.share,
            "share of the distinct pairs of all keys in the slice; with `--sort` of packets or bytes",
            unit("share");
        packets = row.key.packets(),
            "packets of the key (DNS: messages); without exact count only those since the table holds it";
        bytes = Some(row.key.bytes()).filter(|&bytes| bytes > 0),
            "bytes of these packets from their IP headers on";
        at_most = row.key.spread.as_ref().and_then(|s| s.at_most),
            "most packets or bytes, whichever `--sort` ranks by, that the key can have without exact count";
        certainty = row.key.certainty.name(),
            "whether the key has at least `least` others: `certain`, `likely` (by the estimate), `possible` (by the upper bound; only without `-n`)";
        held_since_start = row.key.spread.as_ref().is_some_and(|s| s.held_since_start),
            "the table held the key all the time; false if exact packets or bytes rank";
        partial = row.partial, PARTIAL_DOC;
        revised = row.revised, REVISED_DOC;
    }
}

/// The whole run.
pub(super) fn total_columns() -> Columns<TopSummary> {
    columns! { field summary: TopSummary;
        packets = summary.totals.packets, "packets read";
        ip_packets = summary.totals.ip_packets, "packets with a readable IP header";
        elements = summary.totals.elements, "packets that have a key";
        skipped = tally(&summary.totals.skipped), SKIPPED_DOC;
        uncounted = summary.totals.uncounted, UNCOUNTED_DOC;
        ..ending(|summary| ended(&summary.inputs, summary.totals.interrupted));
        slices = summary.slices, "slices with packets";
        keys = summary.listed, "keys listed, over all slices";
        over_limit_slices = summary.over_limit, "slices whose exact set passed its limit";
        crowded_slices = summary.crowded,
            "slices whose filter finally missed more than half of the new pairs: errors are large";
        exact_keys = summary.recall.as_ref().map(|recall| recall.keys), "keys of the exact answer";
        found_keys = summary.recall.as_ref().map(|recall| recall.found),
            "how many of these, or others with as many, the bounded table alone would list";
        missed_keys = summary.recall.as_ref().map_or_else(Vec::new, |it| it.missed.clone()),
            "the first 20 of the others";
    }
}

/// Returns what the document has besides the keys.
pub(super) fn frame(plan: &TopPlan) -> Frame {
    Frame::new("flowsieve.top/1", "keys")
        .in_zone(plan.trace.selection.zone)
        .with("parameters", parameter_columns().object_of(plan))
}

/// Returns the sections behind the keys.
pub(super) fn tail(summary: &TopSummary) -> Tail {
    vec![("inputs", inputs_cell(&summary.inputs)), ("totals", total_columns().object_of(summary))]
}
