//! Answers of an archive index, in every format.

use super::cell::{Cell, Time};
use super::column::{Columns, columns};
use super::document::{Block, Document, Wrapping};
use super::flows_model::protocol_name;
use super::format::{Frame, ReportFormat, Summary, Tail};
use super::number::{counted, grouped, or_dash, time};
use super::rows::{RowWriter, Writer};
use super::table_rows::TableRows;
use super::terminal::{self, TerminalStyle};
use crate::decode::dotted;
use crate::index::{Explained, Hit, HitSink, Record};
use crate::zone::Zone;
use flowsieve_engine::internal::Shown;
use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr};

/// Decimals of the second in tables.
const DECIMALS: usize = 6;

/// Further lines of a text are indented.
const WRAPPING: Wrapping = Wrapping { width: usize::MAX, hanging: 4 };

/// An answer.
pub(super) struct Answer {
    capture: String,
    region: usize,
    region_start_ns: i64,
    region_end_ns: i64,
    record: Record,
}

impl Answer {
    fn of(hit: Hit<'_>) -> Self {
        Self {
            capture: hit.capture.path.shown().into_raw().into_owned(),
            region: hit.number,
            region_start_ns: hit.region.start_ns,
            region_end_ns: hit.region.end_ns,
            record: hit.record.clone(),
        }
    }

    /// A value of a flow; `None` for a DNS record, which has no bytes and client ports.
    fn of_flow<T>(&self, value: impl Fn(&Record) -> T) -> Option<T> {
        self.record.domain.is_none().then(|| value(&self.record))
    }

    /// Bytes of a flow in a direction; `None` for those of a log that has none. No packet has no bytes.
    fn bytes(&self, direction: usize) -> Option<u64> {
        let bytes = self.of_flow(|record| record.bytes[direction]);
        bytes.filter(|&bytes| bytes > 0 || self.record.packets[direction] == 0)
    }
}

/// The columns of an answer.
pub(super) fn answer_columns() -> Columns<Answer> {
    columns! { field answer: Answer;
        capture = answer.capture.clone(), "path of the capture";
        region = answer.region, "number of the region in its capture, from 0";
        region_start_ns = Time(answer.region_start_ns), "its first packet";
        region_end_ns = Time(answer.region_end_ns), "its last packet";
        start_ns = Time(answer.record.start_ns), "first packet of the record";
        end_ns = Time(answer.record.end_ns), "last packet of the record";
        src = answer.record.src.to_string(),
            "sender of the flow's first packet; client of DNS messages";
        dst = answer.record.dst.to_string(), "the other end; server of DNS messages";
        proto = answer.record.protocol, "protocol number";
        src_port = answer.of_flow(|record| record.src_port), "port of `src`";
        dst_port = answer.record.dst_port, "port of `dst`";
        packets_fwd = answer.record.packets[0], "packets from `src`; queries";
        packets_rev = answer.record.packets[1], "packets from `dst`; responses";
        bytes_fwd = answer.bytes(0), "IP bytes from `src`";
        bytes_rev = answer.bytes(1), "IP bytes from `dst`";
        domain = answer.record.domain.as_deref().map(dotted), "query name of DNS records";
    }
}

/// The columns of the search's explanation.
pub(super) fn explained_columns() -> Columns<Explained> {
    columns! { field explained: Explained;
        nodes = explained.nodes, "storage directories";
        nodes_ruled_out = explained.nodes_ruled_out, "those ruled out by their global filters";
        node_fpr = explained.node_fpr(),
            "share of the nodes without an answer that were not ruled out", unit("share");
        captures = explained.captures, "captures in the index";
        captures_in_part = explained.captures_in_part, "those indexed only in part (damaged, or `index build --where`)";
        regions = explained.regions, "regions in the index";
        regions_ruled_out_by_node = explained.regions_by_node, "those ruled out by a global filter";
        regions_ruled_out_by_time = explained.regions_by_time,
            "those ruled out by time, or without such records";
        regions_ruled_out_by_filter = explained.regions_by_filter,
            "those ruled out by their filter";
        regions_opened = explained.regions_opened, "those that were read";
        regions_opened_in_vain = explained.regions_in_vain, "those in vain although their filters could be read";
        region_fpr = explained.region_fpr(),
            "share of the regions without an answer that were not ruled out", unit("share");
        records = explained.records, "records of the regions opened";
        records_listed = explained.records_listed, "those in all lists";
        hits = explained.hits, "answers";
        interrupted = explained.interrupted, "a signal ended the search: there may be more answers";
        complete = explained.problems.is_empty() && !explained.interrupted,
            "all of the index could be searched";
        segments = explained.segments, "segments in the index";
        segments_ruled_out = explained.segments_ruled_out, "those ruled out by time or by their global filters";
    }
}

fn frame(anonymized: bool, zone: Zone) -> Frame {
    Frame::new("flowsieve.index-search/1", "hits")
        .in_zone(zone)
        .with("timezone", Cell::Text(zone.name().into()))
        .with("anonymized", Cell::Bool(anonymized))
}

fn tail(explained: &Explained) -> Tail {
    vec![("explain", explained_columns().object_of(explained))]
}

/// Returns the summary of a search.
pub fn search_summary(anonymized: bool, zone: Zone, explained: &Explained) -> Summary {
    frame(anonymized, zone).summary(tail(explained))
}

/// Writes answers as they are found.
#[derive(Debug)]
pub struct SearchReport<W: Write> {
    writer: Writer<(W, TableRows), RowWriter<W, Answer>>,
    hits: u64,
    zone: Zone,
    explain: bool,
    style: TerminalStyle,
}

impl<W: Write> SearchReport<W> {
    /// Begins a report. With `explain` a table ends with what each level ruled out, as JSON always
    /// does. JSON says whether the addresses of the answers are replaced (`anonymized`). `style` is
    /// that of the table.
    ///
    /// # Errors
    ///
    /// Writing failed.
    pub fn begin(
        format: ReportFormat,
        explain: bool,
        anonymized: bool,
        zone: Zone,
        style: TerminalStyle,
        out: W,
    ) -> io::Result<Self> {
        let writer = if format.is_table() {
            Writer::Table(Box::new((out, TableRows::new(style.rows))))
        } else {
            let rows = RowWriter::begin(format, frame(anonymized, zone), answer_columns(), out)?;
            Writer::Rows(Box::new(rows))
        };
        Ok(Self { writer, hits: 0, explain, zone, style })
    }

    /// Ends the report and gives the writer back, flushed.
    ///
    /// # Errors
    ///
    /// Writing failed.
    pub fn finish(self, explained: &Explained) -> io::Result<W> {
        let (mut out, mut rows) = match self.writer {
            Writer::Table(table) => *table,
            Writer::Rows(rows) => return rows.finish(tail(explained)),
        };
        rows.finish(&mut out)?;
        if explained.interrupted {
            writeln!(out, "interrupted: there was more to search")?;
        } else if !explained.problems.is_empty() {
            let rest = if self.hits == 0 { "; nothing was found in the rest" } else { "" };
            writeln!(out, "incomplete: not all of the index could be read{rest}")?;
        } else if self.hits == 0 {
            writeln!(out, "Nothing found.")?;
        }
        let mut document = Document { wrapping: WRAPPING, ..Document::default() };
        if self.explain {
            document.terminal([Block::Gap]);
            document.terminal(explanation(explained).map(Block::Sentence));
        }
        terminal::write(&document, self.style, out)
    }
}

impl<W: Write> HitSink for SearchReport<W> {
    fn hit(&mut self, hit: Hit<'_>) -> io::Result<()> {
        self.hits += 1;
        match &mut self.writer {
            Writer::Rows(rows) => rows.row(&Answer::of(hit)),
            Writer::Table(table) => {
                let (out, rows) = &mut **table;
                let region = match hit.capture.regions.len() {
                    1 => String::new(),
                    all => format!("region {} of {all}, ", hit.number + 1),
                };
                let [start, end] = [hit.region.start_ns, hit.region.end_ns]
                    .map(|ns| time(ns, DECIMALS, self.zone));
                let above = format!("{}  {region}{start} to {end}", hit.capture.path.shown());
                let lines = |text: &str| self.style.lines(text, WRAPPING).join("\n");
                let row = lines(&format!("  {}", line(hit.record, self.zone)));
                rows.row(out, Some(&lines(&above)), row)
            }
        }
    }
}

fn line(record: &Record, zone: Zone) -> String {
    let end = |address: IpAddr, port: u16| match port {
        0 => address.to_string(),
        port => SocketAddr::new(address, port).to_string(),
    };
    let of_flow = record.domain.is_none();
    let src = end(record.src, if of_flow { record.src_port } else { 0 });
    let seconds = (i128::from(record.end_ns) - i128::from(record.start_ns)) as f64 / 1e9;
    let (start, dst) = (time(record.start_ns, DECIMALS, zone), end(record.dst, record.dst_port));
    let when = format!("{start} +{seconds:.3}s  {src} > {dst}");
    let [forward, reverse] = record.packets;
    if let Some(domain) = record.domain.as_deref().map(dotted) {
        let queries = counted(forward, "query", "queries");
        let responses = counted(reverse, "response", "responses");
        return format!("{when}  {domain}  {queries}, {responses}");
    }
    let proto = match record.protocol {
        58 => "icmp6".to_owned(),
        known @ (1 | 6 | 17 | 132) => protocol_name(known),
        other => format!("proto {other}"),
    };
    let [forward, reverse] = [forward, reverse].map(grouped);
    let packets = format!("{when}  {proto}  {forward} + {reverse} packets");
    match record.bytes {
        // A log without bytes.
        [0, 0] => packets,
        [bytes, back] => format!("{packets}, {} + {} bytes", grouped(bytes), grouped(back)),
    }
}

/// Says what each level ruled out, in a line for each.
fn explanation(explained: &Explained) -> [String; 4] {
    let percent = |rate| or_dash(rate, |rate: f64| format!("{:.2} %", rate * 100.0));
    let [node_fpr, region_fpr] = [explained.node_fpr(), explained.region_fpr()].map(percent);
    let Explained { nodes, nodes_ruled_out, segments, segments_ruled_out, regions, .. } = explained;
    let Explained { regions_by_node, regions_by_time, regions_by_filter, .. } = explained;
    let Explained { regions_opened, regions_in_vain, .. } = explained;
    let [records, listed, hits] =
        [explained.records, explained.records_listed, explained.hits].map(grouped);
    [
        format!(
            "nodes    {nodes}: {nodes_ruled_out} ruled out by their global filters; observed FPR {node_fpr}"
        ),
        format!(
            "segments {segments}: {segments_ruled_out} ruled out by time or by their global filters"
        ),
        format!(
            "regions  {regions}: {regions_by_node} ruled out by global filters, {regions_by_time} by time or kind of records, {regions_by_filter} by their filter; {regions_opened} opened, {regions_in_vain} in vain; observed FPR {region_fpr}"
        ),
        format!("records  {records} in regions opened: {listed} in all lists, {hits} found"),
    ]
}
