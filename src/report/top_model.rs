//! The largest keys: what the answer depends on, the columns of a key, and what stands around them.

use super::cell::Time;
use super::column::Columns;
use super::count_model::{PARTIAL_DOC, tally};
use super::inputs::inputs_cell;
use super::rows::{Frame, Tail};
use super::selection::selection_columns;
use crate::pipeline::InputResult;
use crate::top::{RankBy, Recall, TopKey, TopPlan, TopSummary};

/// What people call the number that keys are ranked by.
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

/// What the answer depends on.
pub(super) fn parameter_columns() -> Columns<TopPlan> {
    Columns::default()
        .field("by", |p: &TopPlan| p.question.by_names())
        .doc("fields of the keys")
        .field("distinct", |p| p.question.distinct_names())
        .doc("fields whose distinct values are counted for each key")
        .field("most", |p| p.most)
        .doc("keys listed per slice at most (`-n`)")
        .field("least", |p| p.least)
        .doc("distinct others of a listed key at least (`--min`)")
        .field("sort", |p| p.rank_by.name())
        .doc("what keys are ranked by: `distinct`, `packets` or `bytes`")
        .field("tunnel", |p| p.trace.headers.tunnel.name())
        .doc("`outer` or `inner`: which IP header counts")
        .part(None, &selection_columns(), |p| Some(p.trace.selection.clone()))
        .field("queries_only", |p| p.queries_only)
        .doc("count DNS queries only")
        .field("dns_ports", |p| p.trace.headers.dns_ports.clone())
        .doc("DNS ports besides 53")
        .field("slice_ns", |p| p.slicing.width_ns)
        .doc("width of a slice; null for one slice over everything")
        .field("align", |p| p.slicing.align.name())
        .doc("`epoch` or `first`: where slices begin")
        .field("memory_bytes", |p| p.memory_bytes)
        .doc("memory of one slice")
        .field("seed", |p| p.seed)
        .doc("seed of the digests")
        .field("exact_limit_bytes", |p| p.exact_limit_bytes)
        .doc("memory that the exact sets may take")
}

/// The columns of a key.
pub(super) fn key_columns() -> Columns<TopRow> {
    Columns::default()
        .field("start_ns", |row: &TopRow| Time(row.start_ns))
        .doc("first nanosecond of the slice; with `--slice all` of the first packet")
        .field("end_ns", |row| Time(row.end_ns))
        .doc("first nanosecond after the slice; with `--slice all` of the last packet")
        .field("rank", |row| row.key.rank)
        .doc("place in the slice, from 1 on")
        .field("key", |row| row.key.key.clone())
        .doc("the key; fields are separated by commas")
        .field("estimate", |row| row.key.spread.as_ref().map(|s| s.estimate))
        .doc("unbiased estimate of the key's distinct others")
        .field("std_error", |row| row.key.spread.as_ref().map(|s| s.std_error))
        .doc("standard error of the estimate")
        .field("lower", |row| row.key.spread.as_ref().map(|s| s.lower))
        .doc("lower bound: `lower` and `upper` enclose the true number in at least 95 of 100 cases")
        .field("upper", |row| row.key.spread.as_ref().map(|s| s.upper))
        .doc("upper bound")
        .field("exact", |row| row.key.exact.as_ref().map(|exact| exact.distinct))
        .doc("distinct others by the exact set")
        .field("share", |row| row.key.share)
        .doc("share of the distinct pairs of all keys in the slice; with `--sort` of packets or bytes")
        .unit("share")
        .field("packets", |row| row.key.packets())
        .doc("packets of the key (DNS: messages); without exact count only those since the table holds it")
        .field("bytes", |row| Some(row.key.bytes()).filter(|&bytes| bytes > 0))
        .doc("bytes of these packets from their IP headers on")
        .field("certainty", |row| row.key.certainty.name())
        .doc("whether the key has at least `least` others: `certain`, `likely` (by the estimate), `possible` (by the upper bound; only without `-n`)")
        .field("held_since_start", |row| {
            row.key.spread.as_ref().is_some_and(|spread| spread.held_since_start)
        })
        .doc("the table held the key all the time")
        .field("partial", |row| row.partial)
        .doc(PARTIAL_DOC)
        .field("revised", |row| row.revised)
        .doc("late packets came: this row replaces the earlier ones of its slice")
}

/// The whole run.
pub(super) fn total_columns() -> Columns<TopSummary> {
    let recall = |summary: &TopSummary, of: fn(&Recall) -> u64| summary.recall.as_ref().map(of);
    Columns::default()
        .field("packets", |summary: &TopSummary| summary.totals.packets)
        .doc("packets read")
        .field("ip_packets", |summary| summary.totals.ip_packets)
        .doc("packets with a readable IP header")
        .field("elements", |summary| summary.totals.elements)
        .doc("packets that have a key")
        .field("skipped", |summary| tally(&summary.totals.skipped))
        .doc("skipped packets by [reason](#reasons-without-an-element)")
        .field("uncounted", |summary| summary.totals.uncounted)
        .doc("packets in no slice: too late from a pipe, or not reached by an interrupted run")
        .ending(
            |summary| summary.totals.interrupted,
            |summary| InputResult::all_read(&summary.inputs, summary.totals.interrupted),
        )
        .field("slices", |summary| summary.slices)
        .doc("slices with packets")
        .field("keys", |summary| summary.listed)
        .doc("keys listed, over all slices")
        .field("over_limit_slices", |summary| summary.over_limit)
        .doc("slices whose exact set passed its limit")
        .field("crowded_slices", |summary| summary.crowded)
        .doc("slices whose filter finally missed more than half of the new pairs: errors are large")
        .inlined("exact_keys", move |summary| recall(summary, |recall| recall.keys))
        .doc("keys of the exact answer")
        .inlined("found_keys", move |summary| recall(summary, |recall| recall.found))
        .doc("those that the bounded summary alone would list")
        .field("missed_keys", |summary| {
            let recall = summary.recall.as_ref();
            recall.map_or_else(Vec::new, |recall| recall.missed.clone())
        })
        .doc("the first 20 of the others")
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
