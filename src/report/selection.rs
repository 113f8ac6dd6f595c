//! The selection of packets in every format.

use super::cell::Time;
use super::column::{Columns, columns};
use super::number::{counted, grouped, joined, rfc3339};
use crate::pipeline::InputResult;
use crate::plan::TracePlan;
use crate::selection::{SelectedPart, Selection, TimeBound};
use crate::zone::Zone;

const WHERE_DOC: &str = "the capture filter ([capture-filters.md](capture-filters.md))";

/// A bound as RFC 3339 in this zone, or in seconds after the beginning (`+90s`), or before the end
/// (`-300s`).
fn bound(bound: TimeBound, zone: Zone) -> String {
    const SECOND: i64 = 1_000_000_000;
    let (sign, ns) = match bound {
        TimeBound::At(time_ns) => return rfc3339(time_ns, zone),
        TimeBound::AfterStart(ns) => ('+', ns),
        TimeBound::BeforeEnd(ns) => ('-', ns),
    };
    let seconds = format!("{}.{:09}", ns / SECOND, ns % SECOND);
    let seconds = seconds.trim_end_matches('0').trim_end_matches('.');
    format!("{sign}{seconds}s")
}

/// The columns of what every command that reads has in common.
pub(super) fn trace_columns() -> Columns<TracePlan> {
    columns! { field plan: TracePlan;
        tunnel = plan.headers.tunnel.name(), "`outer` or `inner`: which IP header counts";
        dnstap_type = plan.input_format.dnstap_types(),
            "`--dnstap-type`; null for `auth,client`";
        ..part(None, &selection_columns(), |plan| Some(plan.selection.clone()));
    }
}

/// The columns of a selection.
pub(super) fn selection_columns() -> Columns<Selection> {
    let columns = columns! { field selected: Selection;
        where = SelectedPart::from(selected).expression, WHERE_DOC;
        from = begin_text(selected),
            "earlier packets were not selected: RFC 3339, or `+90s` after the first packet of a pipe";
        from_ns = SelectedPart::from(selected).from_ns, "the same in nanoseconds since the epoch";
        to = end_text(selected), "packets at this time or later were not selected";
        to_ns = SelectedPart::from(selected).to_ns, "the same in nanoseconds since the epoch";
        timezone = selected.zone.name(), "zone in which times are shown (`--timezone`)";
    };
    with_toy(columns)
}

#[cfg(not(feature = "toy"))]
fn with_toy(columns: Columns<Selection>) -> Columns<Selection> {
    columns
}

/// Adds the column of the toy where tests ask for it: the manual has none.
#[cfg(feature = "toy")]
fn with_toy(columns: Columns<Selection>) -> Columns<Selection> {
    if std::env::var_os("FLOWSIEVE_TOY").is_none() {
        return columns;
    }
    columns.field("toy_least", |selected| u64::from(selected.toy_least))
}

fn begin_text(selection: &Selection) -> Option<String> {
    selection.from.map(|from| bound(from, selection.zone))
}

fn end_text(selection: &Selection) -> Option<String> {
    selection.to.map(|to| bound(to, selection.zone))
}

/// Which packets are selected; `None` if all are.
pub(crate) fn part_words(selection: &Selection) -> Option<String> {
    let expression = SelectedPart::from(selection).expression;
    bounds_words(expression, begin_text(selection), end_text(selection))
}

/// The parts of a selection behind their words; `None` if there are none.
pub(super) fn bounds_words(
    expression: Option<String>,
    from: Option<String>,
    to: Option<String>,
) -> Option<String> {
    let parts = [("where", expression), ("from", from), ("before", to)].into_iter();
    joined(parts.filter_map(|(name, text)| Some(format!("{name} {}", text?))), ", ")
}

/// Which packets were selected, and how many were not; `None` if all were selected.
pub(super) fn selection_words(selection: &Selection, inputs: &[InputResult]) -> Option<String> {
    let part = part_words(selection)?;
    let unread: u64 = inputs.iter().map(|input| input.unread_bytes).sum();
    let unread =
        if unread == 0 { String::new() } else { format!(", {} bytes not read", grouped(unread)) };
    let left_out = inputs.iter().map(|input| input.left_out).sum();
    let left_out = counted(left_out, "other packet", "other packets");
    Some(format!("only packets {part}: {left_out} left out{unread}"))
}

/// The zone in a heading: `; times of Europe/Berlin`, or nothing for UTC.
pub(super) fn zone_words(zone: Zone) -> String {
    if zone.is_utc() { String::new() } else { format!("; times of {zone}") }
}

/// The columns of the selection that a saved filter or index states.
pub(super) fn part_columns() -> Columns<SelectedPart> {
    columns! { field part: SelectedPart;
        where = part.expression.clone(), WHERE_DOC;
        from_ns = part.from_ns.map(Time), "earlier packets were not selected";
        to_ns = part.to_ns.map(Time), "packets at this time or later were not selected";
    }
}
