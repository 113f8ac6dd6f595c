//! The contents of an archive index, and the result of checking it, in every format.

use super::cell::Cell;
use super::column::{Columns, columns};
use super::complete::CompleteReport;
use super::document::{Block, Document, TableView};
use super::format::{Frame, Tail};
use super::number::{counted, duration, grouped, rounded};
use super::selection::part_columns;
use crate::index::{CaptureEntry, IndexStats, NodeStats, Region, Verified};
use crate::zone::Zone;
use flowsieve_engine::internal::Shown;

fn sum<'a, T: 'a>(all: impl IntoIterator<Item = &'a T>, value: fn(&T) -> u64) -> u64 {
    all.into_iter().map(value).fold(0, u64::saturating_add)
}

fn of_regions(stats: &IndexStats, value: fn(&Region) -> u64) -> u64 {
    sum(stats.captures.iter().flat_map(|entry| &entry.regions), value)
}

/// The whole index.
pub(super) fn whole_columns() -> Columns<IndexStats> {
    columns! { field stats: IndexStats;
        filter = stats.filter, "structure of the regions' filters";
        region_ns = stats.region_ns, "length of a region";
        captures = stats.captures.len(), "captures in the index";
        capture_bytes = sum(&stats.captures, |entry| entry.bytes), "their bytes";
        packets = sum(&stats.captures, |entry| entry.packets), "their packets";
        regions = sum(&stats.captures, |entry| entry.regions.len() as u64), "regions";
        flows = of_regions(stats, |region| region.flows), "flows in their records";
        dns = of_regions(stats, |region| region.dns), "DNS questions in their records";
        index_bytes = {
            let of_regions =
                of_regions(stats, |region| region.records.bytes.saturating_add(region.lists.bytes));
            let of_nodes = sum(&stats.nodes, |node| node.region_filter_bytes + node.filter_bytes);
            of_regions.saturating_add(of_nodes).saturating_add(stats.catalog_bytes)
        }, "all files of the index: the sum of the following";
        records_bytes = of_regions(stats, |region| region.records.bytes), "records of the regions";
        lists_bytes = of_regions(stats, |region| region.lists.bytes),
            "inverted lists of the regions";
        region_filters_bytes = sum(&stats.nodes, |node| node.region_filter_bytes),
            "filters of the regions";
        global_filters_bytes = sum(&stats.nodes, |node| node.filter_bytes),
            "global filters of the segments";
        catalog_bytes = stats.catalog_bytes, "the catalogue, and both copies of the lists of captures";
        segments = stats.segments, "segments";
        global_filter = stats.global_filter, "structure of the global filters";
    }
}

/// A node.
pub(super) fn node_columns() -> Columns<NodeStats> {
    columns! { field node: NodeStats;
        folder = node.folder.shown().into_raw().into_owned(), "its directory";
        regions = node.regions, "its regions";
        filter_bytes = node.filter_bytes, "its global filters";
        fill = node.fill, "share of the filters' counters in use, mean over filters", unit("share");
        saturated = node.saturated, "counters that reached their largest value";
        overflows = node.overflows, "increments lost in them";
        fpr = node.fpr, "rate at which a global filter lets absent values through, mean over filters",
            unit("share");
    }
}

/// A capture.
pub(super) fn capture_columns() -> Columns<CaptureEntry> {
    columns! { field entry: CaptureEntry;
        path = entry.path.shown().into_raw().into_owned(), "its path";
        bytes = entry.bytes, "its bytes";
        packets = entry.packets, "its packets";
        regions = entry.regions.len(), "its regions";
        damage = entry.damage.clone(), "why it could not be read to its end";
        ..part(None, &part_columns(), |entry| entry.part.clone());
    }
}

/// Returns the contents of an index in every format. Rows are its nodes, or its captures with
/// `captures`; the table and the document then have both. Times are in `zone`.
pub fn index_stats(stats: &IndexStats, captures: bool, zone: Zone) -> CompleteReport<'_> {
    CompleteReport {
        frame: Frame::new("flowsieve.index-stats/1", "nodes").in_zone(zone),
        sections: Box::new(move || sections(stats, captures)),
        has_rows: false,
        table: Box::new(move || document(stats, captures)),
        rows: Box::new(move |target| {
            if captures {
                target.write(capture_columns(), &stats.captures)
            } else {
                target.write(node_columns(), &stats.nodes)
            }
        }),
    }
}

/// Returns the sections of the document for programs.
fn sections(stats: &IndexStats, captures: bool) -> Tail {
    let mut sections = whole_columns().sections_of(stats);
    sections.push(("nodes", node_columns().list_of(&stats.nodes)));
    if captures {
        sections.push(("capture_list", capture_columns().list_of(&stats.captures)));
    }
    sections
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
    let (length, filter) = (duration(stats.region_ns), stats.filter);
    let mut facts = vec![
        ("captures", format!("{all} with {bytes} bytes and {packets}")),
        ("regions", format!("{regions} of {length} with {flows} and {dns}; filters: {filter}")),
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
        let share = bytes as f64 / number("capture_bytes") as f64 * 100.0;
        let share = share.is_finite().then(|| format!(", {share:.2} % of the captures"));
        (name, format!("{} bytes{}", grouped(bytes), share.unwrap_or_default()))
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
    if of > 0.0 { format!("1 in {}", rounded(1.0 / of)) } else { "none".to_owned() }
}

/// Width of the names of facts.
const NAME: usize = 16;

/// The columns of the comparison.
pub(super) fn verified_columns() -> Columns<Verified> {
    columns! { field verified: Verified;
        captures = verified.captures, "captures that were compared";
        regions = verified.regions, "regions that were compared";
        records = verified.records, "records that were compared";
        whole = verified.problems.is_empty(), "there are no problems";
    }
}

/// The columns of a problem.
pub(super) fn problem_columns() -> Columns<String> {
    columns! { field problem: String;
        problem = problem.clone(), "what is wrong, in a sentence";
    }
}

/// Returns the result of a check in every format; rows are problems.
pub fn index_check(verified: &Verified) -> CompleteReport<'_> {
    CompleteReport {
        frame: Frame::new("flowsieve.index-verify/1", "problems"),
        sections: Box::new(|| {
            let problems = verified.problems.iter().cloned().map(|text| Cell::Text(text.into()));
            let mut sections = verified_columns().sections_of(verified);
            sections.push(("problems", Cell::List(problems.collect(), "")));
            sections
        }),
        has_rows: false,
        table: Box::new(|| {
            let mut document = Document::default();
            document
                .both(verified.problems.is_empty().then(|| Block::Sentence(whole_words(verified))));
            document
        }),
        rows: Box::new(|target| target.write(problem_columns(), &verified.problems)),
    }
}

/// Says what a check without problems has compared.
fn whole_words(verified: &Verified) -> String {
    let captures = counted(verified.captures, "capture", "captures");
    let regions = counted(verified.regions, "region", "regions");
    let records = counted(verified.records, "record", "records");
    format!(
        "{captures}, {regions}, {records}: all files are whole, and filters hold what the lists hold"
    )
}
