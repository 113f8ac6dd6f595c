//! What an archive index holds, in every format.

use super::cell::Cell;
use super::column::Columns;
use super::format::ReportFormat;
use super::json::{Layout, write_document};
use super::look::Look;
use super::number::grouped;
use super::rows::{CellRows, Frame, Section};
use super::selection::part_columns;
use super::table::hanging;
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
        .doc("the catalogue, and the captures of the segments")
        .field("segments", |stats| stats.segments)
        .doc("segments")
        .field("global_filter", |stats| stats.global_filter)
        .doc("structure of the global filters")
}

/// A node.
pub(super) fn node_columns() -> Columns<NodeStats> {
    Columns::default()
        .field("folder", |node: &NodeStats| {
            node.folder.shown().into_raw().into_owned()
        })
        .doc("its directory")
        .field("regions", |node| node.regions)
        .doc("its regions")
        .field("filter_bytes", |node| node.filter_bytes)
        .doc("its global filters")
        .field("fill", |node| node.fill)
        .doc("share of the filters' counters in use, the mean over filters; null if they have no counters")
        .unit("share")
        .field("saturated", |node| node.saturated)
        .doc("counters that reached their largest value; null if there are none")
        .field("overflows", |node| node.overflows)
        .doc("increments that were lost for that; null if there are no counters")
        .field("fpr", |node| node.fpr)
        .doc("rate at which a global filter lets absent values through, the mean over filters; null if it is not known")
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

/// Writes what an index holds. Rows are of its nodes; with `captures` of its captures, which the
/// table and the document have beside the nodes. Times are in `zone`; `look` is that of the table.
///
/// # Errors
///
/// Writing failed.
pub fn write_index_stats<W: Write>(
    stats: &IndexStats,
    format: ReportFormat,
    captures: bool,
    zone: Zone,
    look: Look,
    mut out: W,
) -> io::Result<W> {
    let frame = |rows, row| Frame {
        tail: vec![Section::of("index", "index", &whole_columns())],
        ..Frame::of_rows(SCHEMA, rows, row)
    };
    let whole = whole_columns().object_of(stats);
    match format {
        ReportFormat::Table => write_table(stats, captures, look, &mut out)?,
        ReportFormat::Json => {
            let mut fields = vec![("schema".into(), Cell::Text(SCHEMA.into()))];
            if let Cell::Object(whole) = whole {
                fields.extend(whole);
            }
            fields.push(("nodes".into(), node_columns().list_of(&stats.nodes)));
            if captures {
                let list = capture_columns().in_zone(zone).list_of(&stats.captures);
                fields.push(("capture_list".into(), list));
            }
            write_document(&mut out, Layout::Pretty, &Cell::Object(fields))?;
        }
        _ if captures => {
            let (frame, rows) = (frame("captures", "capture"), &stats.captures);
            let columns = capture_columns().in_zone(zone);
            out = CellRows::write_all(format, frame, columns, rows, vec![whole], out)?;
        }
        _ => {
            let (frame, rows) = (frame("nodes", "node"), &stats.nodes);
            out = CellRows::write_all(format, frame, node_columns(), rows, vec![whole], out)?;
        }
    }
    out.flush()?;
    Ok(out)
}

fn write_table(
    stats: &IndexStats,
    captures: bool,
    look: Look,
    out: &mut dyn Write,
) -> io::Result<()> {
    let columns = whole_columns();
    let number = |name| columns.number(name, stats);
    let text = |name| grouped(number(name));
    let mut line = |name: &str, text: &str| {
        let text = &text.shown().to_string();
        let width = look.width.map_or(usize::MAX, |width| width.saturating_sub(NAME + 1));
        let mut lines = if text.chars().count() > width {
            hanging(text, width, width)
        } else {
            vec![text.to_owned()]
        };
        for (number, text) in lines.drain(..).enumerate() {
            let name = if number == 0 { name } else { "" };
            writeln!(out, "{name:<NAME$} {text}")?;
        }
        Ok::<_, io::Error>(())
    };
    let [all, bytes, packets] = ["captures", "capture_bytes", "packets"].map(text);
    line("captures", &format!("{all} with {bytes} bytes and {packets} packets"))?;
    let [regions, flows, dns] = ["regions", "flows", "dns"].map(text);
    let (seconds, filter) = (stats.region_ns as f64 / 1e9, stats.filter);
    line(
        "regions",
        &format!(
            "{regions} of {seconds} s with {flows} flows and {dns} DNS records; filters: {filter}"
        ),
    )?;
    line("segments", &format!("{}; global filters: {}", text("segments"), stats.global_filter))?;
    for (name, column) in [
        ("index", "index_bytes"),
        ("  records", "records_bytes"),
        ("  lists", "lists_bytes"),
        ("  filters", "region_filters_bytes"),
        ("  global filters", "global_filters_bytes"),
        ("  catalogue", "catalog_bytes"),
    ] {
        let bytes = number(column);
        let share = bytes as f64 / number("capture_bytes").max(1) as f64 * 100.0;
        line(name, &format!("{} bytes, {share:.2} % of the captures", grouped(bytes)))?;
    }
    for node in &stats.nodes {
        let folder = node.folder.shown();
        let mut parts = vec![format!("{folder}: {} regions", grouped(node.regions))];
        if let Some(fpr) = node.fpr {
            let share = share(fpr);
            parts.push(format!("global filters let {share} of absent values through"));
        }
        if let (Some(fill), Some(saturated), Some(overflows)) =
            (node.fill, node.saturated, node.overflows)
        {
            let [saturated, overflows] = [saturated, overflows].map(grouped);
            parts.push(format!("global filters {:.1} % full", fill * 100.0));
            parts.push(format!("{saturated} counters saturated"));
            parts.push(format!("{overflows} overflows"));
        }
        line("node", &parts.join(", "))?;
    }
    for entry in stats.captures.iter().filter(|_| captures) {
        let damage = entry.damage.as_ref().map_or("", |_| ", damaged");
        let part = entry.part.as_ref().map_or("", |_| ", in part");
        let noun = if entry.regions.len() == 1 { "region" } else { "regions" };
        let [packets, regions] = [entry.packets, entry.regions.len() as u64].map(grouped);
        line(
            "capture",
            &format!("{}: {packets} packets in {regions} {noun}{damage}{part}", entry.path.shown()),
        )?;
    }
    Ok(())
}

/// A share in words, such as `1 in 10,000`.
fn share(of: f64) -> String {
    if of > 0.0 {
        format!("1 in {}", grouped((1.0 / of).round() as u64))
    } else {
        "none".to_owned()
    }
}

/// Width of what stands before a line.
const NAME: usize = 16;
