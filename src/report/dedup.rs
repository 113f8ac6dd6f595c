//! The summary of `dedup` in every format.

use super::cell::{Cell, Time};
use super::column::{Columns, columns};
use super::complete::CompleteReport;
use super::document::{Block, Document, TableView};
use super::format::{Frame, Tail};
use super::heading::Heading;
use super::number::{about, counted, decimals_of, duration, grouped, percent, size, time};
use super::run_view::{ended, inputs_cell, shortcomings};
use super::selection::{selection_columns, selection_words, zone_words};
use super::table_columns::TableColumns;
use super::terminal::TerminalStyle;
use crate::decode::Tunnel;
use crate::dedup::{
    DedupPlan, DedupSlice, DedupSummary, Difference, DropKind, Drops, SnapLength, WindowWidth,
};
use crate::zone::Zone;

/// A summary of removed duplicates.
#[derive(Clone, Copy, Debug)]
pub struct DedupReport<'a> {
    /// The request.
    pub plan: &'a DedupPlan,
    /// The result.
    pub summary: &'a DedupSummary,
    /// Addresses in the written captures are replaced.
    pub anonymized: bool,
}

impl DedupReport<'_> {
    /// Returns the summary in every format.
    pub fn complete(&self) -> CompleteReport<'_> {
        let frame = Frame::new("flowsieve.dedup/1", "slices");
        CompleteReport {
            frame: frame
                .in_zone(self.plan.trace.selection.zone)
                .with("parameters", parameter_columns().object_of(self)),
            sections: Box::new(|| self.sections()),
            has_rows: self.plan.slice_ns.is_some(),
            table: Box::new(|| document(self)),
            rows: Box::new(|target| match self.rows() {
                Some(rows) => target.write(row_columns(0), &rows),
                // The whole is no slice, so it has no times.
                None => target.write(
                    row_columns(0).without("start_ns").without("end_ns"),
                    &[(None, self.summary.totals)],
                ),
            }),
        }
    }

    /// The slices, if these were asked for.
    fn rows(&self) -> Option<Vec<Row>> {
        self.plan.slice_ns.map(|_| self.summary.slices.iter().map(row).collect())
    }

    fn sections(&self) -> Tail {
        let none = self.plan.slice_ns.is_none().then_some(("slices", Cell::Null));
        let inputs = ("inputs", inputs_cell(&self.summary.inputs));
        none.into_iter()
            .chain([inputs, ("totals", total_columns().object_of(self.summary))])
            .collect()
    }
}

/// The columns of the parameters.
pub(super) fn parameter_columns<'a>() -> Columns<DedupReport<'a>> {
    columns! { inlined report: DedupReport<'a>;
        by = report.plan.by.name(), "`packet`, `frame`, `retransmission` or `flow`";
        tunnel = report.plan.trace.headers.tunnel.name(),
            "`outer` or `inner`: which IP packet of a frame is compared";
        ..part(None, &selection_columns(), |report| Some(report.plan.trace.selection.clone()));
        ..object("distinguish", difference_columns(), |report| Some(report.plan.distinguish)),
            "what counts as a difference";
        window_ns = match report.plan.window {
            WindowWidth::Time(width) => Some(width),
            WindowWidth::Packets(_) => None,
        }, "width of a window of time";
        window_packets = match report.plan.window {
            WindowWidth::Time(_) => None,
            WindowWidth::Packets(count) => Some(count),
        }, "width of a window of packets";
        filter = report.plan.filter.name(), "the filter that follows the window";
        approximate = report.plan.approximate, "`--approximate`";
        memory_bytes = report.plan.memory_bytes, "memory that window and filter may take";
        slice_ns = report.plan.slice_ns, "width of a slice";
        snap_bytes = match report.plan.snap_length {
            Some(SnapLength::Bytes(bytes)) => Some(bytes),
            _ => None,
        }, "bytes to which written packets are cut";
        headers_only = report.plan.snap_length == Some(SnapLength::Headers),
            "written packets are cut behind their headers";
        anonymized = report.anonymized, "addresses are replaced ([privacy.md](privacy.md))";
    }
}

/// The columns of the differences that count.
pub(super) fn difference_columns() -> Columns<Difference> {
    columns! { field difference: Difference;
        vlan = difference.vlan, "VLAN identifiers";
        mac = difference.mac, "link-layer addresses";
        ttl = difference.ttl, "TTL or hop limit";
        interface = difference.interface, "input and interface";
    }
}

/// A slice with its beginning and end, or everything, which has no times.
type Row = (Option<(i64, i64)>, Drops);

fn row(slice: &DedupSlice) -> Row {
    (Some((slice.start_ns, slice.end_ns)), slice.drops)
}

/// The columns of a slice. People see its beginning with this many decimals of a second.
pub(super) fn row_columns(decimals: usize) -> Columns<Row> {
    columns! { field row: Row;
        start_ns = row.0.map(|times| Time(times.0)),
            "first nanosecond of the slice; the row of everything, without `--slice`, has no times",
            heading(Heading::left(0, time(0, decimals, Zone::UTC).len(), "start")),
            decimals(decimals, decimals);
        end_ns = row.0.map(|times| Time(times.1)), "first nanosecond behind it";
        ..part(None, &drop_columns(), |row| Some(row.1));
    }
}

/// The numbers of a slice, or of everything.
pub(super) fn drop_columns() -> Columns<Drops> {
    let columns = columns! { field drops: Drops;
        packets = drops.packets, "packets read",
            heading(Heading::right(1, 13, "packets").gap(0).narrow(10, "packets"));
        kept = drops.kept(), "packets written",
            heading(Heading::right(2, 13, "kept").gap(0).narrow(10, "kept"));
        dropped = drops.dropped(), "packets left out",
            heading(Heading::right(3, 13, "dropped").gap(0).narrow(10, "dropped"));
        bytes = drops.bytes, "captured bytes of the packets read";
        dropped_bytes = drops.dropped_bytes, "captured bytes of the packets left out";
    };
    let doc = |kind| match kind {
        DropKind::Packet => "IP packets seen before",
        DropKind::Frame => "frames whose bytes were seen before",
        DropKind::Retransmission => "TCP segments with data seen before",
        DropKind::SpuriousRetransmission => {
            "the same, with data that the other side had confirmed already"
        }
        DropKind::KeepAlive => "TCP keep-alives seen before",
        DropKind::Flow => "packets of flows seen before",
    };
    DropKind::ALL.into_iter().fold(columns, |columns, kind| {
        let name = format!("dropped_{}", kind.name());
        columns.inlined(name, move |drops| drops.by_kind[kind as usize]).doc(doc(kind))
    })
}

/// The numbers of the whole run.
pub(super) fn total_columns() -> Columns<DedupSummary> {
    columns! { field summary: DedupSummary;
        ..part(None, &drop_columns(), |summary: &DedupSummary| Some(summary.totals));
        not_compared = summary.not_compared, "packets that are kept in any case";
        out_of_order = summary.out_of_order, "packets with an earlier time than the one before";
        ..ending(|summary| ended(&summary.inputs, summary.interrupted));
        outside_slices = summary.outside_slices, "packets beyond 65,536 slices";
        left_early = summary.window.left_early,
            "packets that left the window early, because memory was full";
        least_reach = summary.window.least_reach,
            "how far the window then reached at least, in nanoseconds or packets";
        window_bytes = summary.window.memory_bytes, "memory of window and filter in the end";
        filter_first = summary.window.first,
            "packets that the filter called new; depends on its random seed";
        looked_up = summary.window.looked_up,
            "packets looked up among the digests; depends on the random seed";
        expected_wrong = summary.window.expected_wrong,
            "with `--approximate`: packets expected to be dropped although none of the last one and a half windows was equal; null if the filter was ever too full to tell";
    }
}

/// The summary as a document.
fn document(report: &DedupReport<'_>) -> Document {
    let DedupReport { plan, summary, .. } = *report;
    let (totals, window) = (&summary.totals, &summary.window);
    let zone = plan.trace.selection.zone;
    let mut document = Document { zone, ..Document::default() };
    document.both([Block::Sentence(title(plan))]);
    if let Some(width) = plan.slice_ns {
        let columns = row_columns(decimals_of(width, &[0, 3, 6])).in_zone(zone);
        let rows: Vec<Row> = summary.slices.iter().map(row).collect();
        let columns = TableColumns::new(columns, TerminalStyle::default());
        document.both([Block::Table(columns.view(rows.iter().map(|row| (row, None))))]);
    }
    let row = |name: &str, number: String| vec![name.to_owned(), number, String::new()];
    let count = |(name, count): (&str, u64)| row(name, grouped(count));
    let share = totals.dropped() as f64 / totals.packets.max(1) as f64;
    let mut rows = vec![
        count(("packets", totals.packets)),
        count(("kept", totals.kept())),
        vec!["dropped".to_owned(), grouped(totals.dropped()), percent(share)],
    ];
    let kinds = DropKind::ALL.into_iter().zip(totals.by_kind).filter(|(_, count)| *count > 0);
    let name = |kind: DropKind| format!("  {}", kind.name().replace('_', " "));
    rows.extend(kinds.map(|(kind, number)| count((&name(kind), number))));
    rows.push(count(("dropped bytes", totals.dropped_bytes)));
    let rare = [
        ("not compared", summary.not_compared),
        ("out of order", summary.out_of_order),
        ("in no slice", summary.outside_slices),
    ];
    rows.extend(rare.into_iter().filter(|(_, number)| *number > 0).map(count));
    if plan.approximate {
        let wrong = window.expected_wrong.map(|wrong| format!("{wrong:.3}"));
        let wrong = wrong.unwrap_or_else(|| "filter too full".to_owned());
        rows.push(row("expected wrong drops", wrong));
    }
    let headings =
        [Heading::left(0, 26, ""), Heading::right(0, 15, "").gap(0), Heading::text("").gap(2)];
    document.both([Block::Table(TableView::new(headings, rows))]);
    let selected = selection_words(&plan.trace.selection, &summary.inputs);
    document.both(selected.map(Block::Sentence));
    let shortcomings = shortcomings(&summary.inputs, summary.interrupted);
    document.both(shortcomings.into_iter().map(Block::Warning));
    document.both(shrunk(plan, summary).map(Block::Warning));
    document
}

fn title(plan: &DedupPlan) -> String {
    let window = match plan.window {
        WindowWidth::Time(width) => duration(width),
        WindowWidth::Packets(count) => counted(count, "packet", "packets"),
    };
    let how = if plan.approximate { "approximate" } else { "exact" };
    let is_inner = plan.trace.headers.tunnel == Tunnel::Inner;
    let inside = if is_inner { " inside tunnels" } else { "" };
    let (by, filter) = (plan.by.name(), plan.filter.name());
    let zone = zone_words(plan.trace.selection.zone);
    format!("duplicates by {by}{inside} in a window of {window}; {filter} filter, {how}{zone}")
}

/// How far the window shrank, if it did not fit into the memory.
fn shrunk(plan: &DedupPlan, summary: &DedupSummary) -> Option<String> {
    let reach = match (summary.window.least_reach?, plan.window) {
        (reach, WindowWidth::Time(_)) => about(reach.into()),
        (reach, WindowWidth::Packets(_)) => counted(reach, "packet", "packets"),
    };
    let packets = counted(summary.window.left_early, "packet", "packets");
    let memory = size(plan.memory_bytes);
    Some(format!(
        "the window did not fit into {memory}: {packets} left it early, and it shrank to {reach}"
    ))
}
