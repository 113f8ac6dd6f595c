//! The contents of an archive index in every format.

use super::cell::Cell;
use super::column::Columns;
use super::document::{Block, Document, TableView};
use super::format::ReportFormat;
use super::number::{counted, grouped};
use super::rows::{Frame, RowWriter, Summary};
use super::selection::part_columns;
use super::terminal::{self, TerminalStyle};
use crate::index::{CaptureEntry, IndexStats, NodeStats, Region};
use crate::zone::Zone;
use flowsieve_engine::internal::Shown;
use std::io::{self, Write};

/// Name and version of the document.
const SCHEMA: &str = "flowsieve.index-stats/1";

fn of_captures(stats: &IndexStats, value: fn(&CaptureEntry) -> u64) -> u64 {
    stats.captures.iter().map(value).fold(0, u64::saturating_add)
}

fn of_regions(stats: &IndexStats, value: fn(&Region) -> u64) -> u64 {
    let regions = stats.captures.iter().flat_map(|entry| &entry.regions);
    regions.map(value).fold(0, u64::saturating_add)
}

fn of_nodes(stats: &IndexStats, value: fn(&NodeStats) -> u64) -> u64 {
    stats.nodes.iter().map(value).fold(0, u64::saturating_add)
}

/// The whole index.
pub(super) fn whole_columns() -> Columns<IndexStats> {
    Columns::default()
        .field("filter", |stats: &IndexStats| stats.filter)
        .doc("structure of the regions' filters")
        .field("region_ns", |stats| stats.region_ns)
        .doc("length of a region")
        .field("captures", |stats| stats.captures.len())
        .doc("captures in the index")
        .field("capture_bytes", |stats| of_captures(stats, |entry| entry.bytes))
        .doc("their bytes")
        .field("packets", |stats| of_captures(stats, |entry| entry.packets))
        .doc("their packets")
        .field("regions", |stats| of_captures(stats, |entry| entry.regions.len() as u64))
        .doc("regions")
        .field("flows", |stats| of_regions(stats, |region| region.flows))
        .doc("flows in their records")
        .field("dns", |stats| of_regions(stats, |region| region.dns))
        .doc("DNS questions in their records")
        .field("index_bytes", |stats| {
            let of_regions =
                of_regions(stats, |region| region.records.bytes.saturating_add(region.lists.bytes));
            let of_nodes = of_nodes(stats, |node| node.region_filter_bytes + node.filter_bytes);
            of_regions.saturating_add(of_nodes).saturating_add(stats.catalog_bytes)
        })
        .doc("all files of the index: the sum of the following")
        .field("records_bytes", |stats| of_regions(stats, |region| region.records.bytes))
        .doc("records of the regions")
        .field("lists_bytes", |stats| of_regions(stats, |region| region.lists.bytes))
        .doc("inverted lists of the regions")
        .field("region_filters_bytes", |stats| of_nodes(stats, |node| node.region_filter_bytes))
        .doc("filters of the regions")
        .field("global_filters_bytes", |stats| of_nodes(stats, |node| node.filter_bytes))
        .doc("global filters of the segments")
        .field("catalog_bytes", |stats| stats.catalog_bytes)
        .doc("the catalogue, and both copies of the lists of captures")
        .field("segments", |stats| stats.segments)
        .doc("segments")
        .field("global_filter", |stats| stats.global_filter)
        .doc("structure of the global filters")
}

/// A node.
pub(super) fn node_columns() -> Columns<NodeStats> {
    Columns::default()
        .field("folder", |node: &NodeStats| node.folder.shown().into_raw().into_owned())
        .doc("its directory")
        .field("regions", |node| node.regions)
        .doc("its regions")
        .field("filter_bytes", |node| node.filter_bytes)
        .doc("its global filters")
        .field("fill", |node| node.fill)
        .doc("share of the filters' counters in use, mean over filters")
        .unit("share")
        .field("saturated", |node| node.saturated)
        .doc("counters that reached their largest value")
        .field("overflows", |node| node.overflows)
        .doc("increments lost in them")
        .field("fpr", |node| node.fpr)
        .doc("rate at which a global filter lets absent values through, mean over filters")
        .unit("share")
}

/// A capture.
pub(super) fn capture_columns() -> Columns<CaptureEntry> {
    Columns::default()
        .field("path", |entry: &CaptureEntry| entry.path.shown().into_raw().into_owned())
        .doc("its path")
        .field("bytes", |entry| entry.bytes)
        .doc("its bytes")
        .field("packets", |entry| entry.packets)
        .doc("its packets")
        .field("regions", |entry| entry.regions.len())
        .doc("its regions")
        .field("damage", |entry| entry.damage.clone())
        .doc("why it could not be read to its end")
        .part(None, &part_columns(), |entry| entry.part.clone())
}

/// Writes the contents of an index. Rows are its nodes, or its captures with `captures`; the table
/// and the document then have both. Times are in `zone`; `style` is that of the table.
///
/// # Errors
///
/// Writing failed.
pub fn write_index_stats<W: Write>(
    stats: &IndexStats,
    format: ReportFormat,
    captures: bool,
    zone: Zone,
    style: TerminalStyle,
    mut out: W,
) -> io::Result<W> {
    if format.is_table() {
        terminal::print(&document(stats, captures), style, &mut out)?;
    } else {
        let frame = Frame::new(SCHEMA, "nodes").in_zone(zone);
        let frame = frame.of_document(format, || fields(stats, captures));
        out = if captures {
            let rows = &stats.captures;
            RowWriter::write_all(format, frame, capture_columns(), rows, Vec::new(), out)?
        } else {
            RowWriter::write_all(format, frame, node_columns(), &stats.nodes, Vec::new(), out)?
        };
    }
    out.flush()?;
    Ok(out)
}

/// Returns the document for programs.
fn fields(stats: &IndexStats, captures: bool) -> Cell {
    let mut fields = vec![("schema".into(), Cell::Text(SCHEMA.into()))];
    if let Cell::Object(whole) = whole_columns().object_of(stats) {
        fields.extend(whole);
    }
    fields.push(("nodes".into(), node_columns().list_of(&stats.nodes)));
    if captures {
        fields.push(("capture_list".into(), capture_columns().list_of(&stats.captures)));
    }
    Cell::Object(fields)
}

/// Returns the summary of an index.
pub fn index_stats_summary(stats: &IndexStats, captures: bool, zone: Zone) -> Summary {
    Summary::of_document(fields(stats, captures), zone)
}

/// The contents as a document.
fn document(stats: &IndexStats, with_captures: bool) -> Document {
    let columns = whole_columns();
    let number = |name| columns.number(name, stats);
    let text = |name| grouped(number(name));
    let many = |name, one: &str, more: &str| counted(number(name), one, more);
    let [packets, flows] =
        [("packets", "packet"), ("flows", "flow")].map(|(name, one)| many(name, one, name));
    let dns = many("dns", "DNS record", "DNS records");
    let [all, bytes, regions] = ["captures", "capture_bytes", "regions"].map(text);
    let (seconds, filter) = (stats.region_ns as f64 / 1e9, stats.filter);
    let mut facts = vec![
        ("captures", format!("{all} with {bytes} bytes and {packets}")),
        ("regions", format!("{regions} of {seconds} s with {flows} and {dns}; filters: {filter}")),
        ("segments", format!("{}; global filters: {}", text("segments"), stats.global_filter)),
    ];
    let files = [
        ("index", "index_bytes"),
        ("  records", "records_bytes"),
        ("  lists", "lists_bytes"),
        ("  filters", "region_filters_bytes"),
        ("  global filters", "global_filters_bytes"),
        ("  catalogue", "catalog_bytes"),
    ];
    facts.extend(files.map(|(name, column)| {
        let bytes = number(column);
        let share = bytes as f64 / number("capture_bytes").max(1) as f64 * 100.0;
        (name, format!("{} bytes, {share:.2} % of the captures", grouped(bytes)))
    }));
    facts.extend(stats.nodes.iter().map(|node| ("node", node_words(node))));
    let captures = stats.captures.iter().filter(|_| with_captures);
    facts.extend(captures.map(|entry| ("capture", capture_words(entry))));
    let mut document = Document::default();
    document.both([Block::Table(TableView::facts(NAME, facts))]);
    document
}

/// A node in words.
fn node_words(node: &NodeStats) -> String {
    let regions = counted(node.regions, "region", "regions");
    let mut parts = vec![format!("{}: {regions}", node.folder.shown())];
    let share = node.fpr.map(share);
    parts.extend(share.map(|share| format!("global filters let {share} of absent values through")));
    if let (Some(fill), Some(saturated), Some(overflows)) =
        (node.fill, node.saturated, node.overflows)
    {
        parts.push(format!("global filters {:.1} % full", fill * 100.0));
        parts.push(format!("{} saturated", counted(saturated, "counter", "counters")));
        parts.push(counted(overflows, "overflow", "overflows"));
    }
    parts.join(", ")
}

/// A capture in words.
fn capture_words(entry: &CaptureEntry) -> String {
    let damage = if entry.damage.is_some() { ", damaged" } else { "" };
    let part = if entry.part.is_some() { ", in part" } else { "" };
    let regions = counted(entry.regions.len() as u64, "region", "regions");
    let packets = counted(entry.packets, "packet", "packets");
    format!("{}: {packets} in {regions}{damage}{part}", entry.path.shown())
}

/// A share in words, such as `1 in 10,000`.
fn share(of: f64) -> String {
    if of > 0.0 {
        format!("1 in {}", grouped((1.0 / of).round() as u64))
    } else {
        "none".to_owned()
    }
}

/// Width of the names of facts.
const NAME: usize = 16;
