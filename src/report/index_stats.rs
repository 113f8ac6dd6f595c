//! What an archive index holds, as a table and as JSON.

use super::number::grouped;
use crate::index::{CaptureEntry, IndexStats, NodeStats, Region};
use serde::Serialize;
use std::io::{self, Write};

/// Version of the document.
const SCHEMA: &str = "flowsieve.index-stats/1";

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    filter: &'a str,
    region_ns: i64,
    captures: usize,
    capture_bytes: u64,
    packets: u64,
    regions: usize,
    flows: u64,
    dns: u64,
    index_bytes: u64,
    records_bytes: u64,
    lists_bytes: u64,
    region_filters_bytes: u64,
    global_filters_bytes: u64,
    catalog_bytes: u64,
    nodes: Vec<Node>,
}

#[derive(Serialize)]
struct Node {
    folder: String,
    regions: u64,
    filter_bytes: u64,
    fill: f64,
    saturated: u64,
    overflows: u64,
}

impl<'a> Document<'a> {
    fn of(stats: &'a IndexStats) -> Self {
        let captures = &stats.captures;
        let of_captures = |value: fn(&CaptureEntry) -> u64| captures.iter().map(value).sum::<u64>();
        let regions = || captures.iter().flat_map(|entry| &entry.regions);
        let of_regions = |value: fn(&Region) -> u64| regions().map(value).sum::<u64>();
        let records_bytes = of_regions(|region| region.records.bytes);
        let lists_bytes = of_regions(|region| region.lists.bytes);
        let of_nodes = |value: fn(&NodeStats) -> u64| stats.nodes.iter().map(value).sum::<u64>();
        let region_filters_bytes = of_nodes(|node| node.region_filter_bytes);
        let global_filters_bytes = of_nodes(|node| node.filter_bytes);
        let node = |node: &NodeStats| Node {
            folder: node.folder.display().to_string(),
            regions: node.regions,
            filter_bytes: node.filter_bytes,
            fill: node.fill,
            saturated: node.saturated,
            overflows: node.overflows,
        };
        Self {
            schema: SCHEMA,
            filter: stats.filter,
            region_ns: stats.region_ns,
            captures: captures.len(),
            capture_bytes: of_captures(|entry| entry.bytes),
            packets: of_captures(|entry| entry.packets),
            regions: regions().count(),
            flows: of_regions(|region| region.flows),
            dns: of_regions(|region| region.dns),
            index_bytes: records_bytes
                + lists_bytes
                + region_filters_bytes
                + global_filters_bytes
                + stats.catalog_bytes,
            records_bytes,
            lists_bytes,
            region_filters_bytes,
            global_filters_bytes,
            catalog_bytes: stats.catalog_bytes,
            nodes: stats.nodes.iter().map(node).collect(),
        }
    }
}

/// Writes a JSON document.
///
/// # Errors
///
/// Writing failed.
pub fn write_index_stats_json(stats: &IndexStats, mut out: impl Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut out, &Document::of(stats))?;
    writeln!(out)?;
    out.flush()
}

/// Writes a table for people; with `captures` a line for each of them as well.
///
/// # Errors
///
/// Writing failed.
pub fn write_index_stats(
    stats: &IndexStats,
    captures: bool,
    mut out: impl Write,
) -> io::Result<()> {
    let document = Document::of(stats);
    let share = |bytes: u64| bytes as f64 / document.capture_bytes.max(1) as f64 * 100.0;
    writeln!(
        out,
        "captures         {} with {} bytes and {} packets",
        grouped(document.captures as u64),
        grouped(document.capture_bytes),
        grouped(document.packets)
    )?;
    writeln!(
        out,
        "regions          {} of {} s with {} flows and {} DNS records; filters: {}",
        grouped(document.regions as u64),
        document.region_ns as f64 / 1e9,
        grouped(document.flows),
        grouped(document.dns),
        document.filter
    )?;
    for (name, bytes) in [
        ("index", document.index_bytes),
        ("  records", document.records_bytes),
        ("  lists", document.lists_bytes),
        ("  filters", document.region_filters_bytes),
        ("  global filters", document.global_filters_bytes),
        ("  catalogue", document.catalog_bytes),
    ] {
        writeln!(
            out,
            "{name:<16} {} bytes, {:.2} % of the captures",
            grouped(bytes),
            share(bytes)
        )?;
    }
    for node in &document.nodes {
        writeln!(
            out,
            "node             {}: {} regions, global filter {:.1} % full, {} counters saturated, {} overflows",
            node.folder,
            node.regions,
            node.fill * 100.0,
            node.saturated,
            node.overflows
        )?;
    }
    if captures {
        for entry in &stats.captures {
            let damage = entry
                .damage
                .as_ref()
                .map(|_| ", damaged")
                .unwrap_or_default();
            writeln!(
                out,
                "capture          {}: {} packets in {} regions{damage}",
                entry.path.display(),
                entry.packets,
                entry.regions.len()
            )?;
        }
    }
    out.flush()
}
