//! Answers of an archive index, in every format.

use super::cell::{Cell, Time};
use super::column::Columns;
use super::document::Wrapping;
use super::format::ReportFormat;
use super::number::{counted, grouped, time};
use super::rows::{Frame, RowWriter, Summary, Tail};
use super::table_rows::TableRows;
use super::terminal::{TerminalStyle, write_lines};
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

/// Name and version of the document.
const SCHEMA: &str = "flowsieve.index-search/1";

/// An answer.
#[derive(Debug)]
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
    Columns::default()
        .field("capture", |answer: &Answer| answer.capture.clone())
        .doc("path of the capture")
        .field("region", |answer| answer.region)
        .doc("number of the region in its capture, from 0")
        .field("region_start_ns", |answer| Time(answer.region_start_ns))
        .doc("its first packet")
        .field("region_end_ns", |answer| Time(answer.region_end_ns))
        .doc("its last packet")
        .field("start_ns", |answer| Time(answer.record.start_ns))
        .doc("first packet of the record")
        .field("end_ns", |answer| Time(answer.record.end_ns))
        .doc("last packet of the record")
        .field("src", |answer| answer.record.src.to_string())
        .doc("sender of the flow's first packet; client of DNS messages")
        .field("dst", |answer| answer.record.dst.to_string())
        .doc("the other end; server of DNS messages")
        .field("proto", |answer| answer.record.protocol)
        .doc("protocol number")
        .field("src_port", |answer| answer.of_flow(|record| record.src_port))
        .doc("port of `src`")
        .field("dst_port", |answer| answer.record.dst_port)
        .doc("port of `dst`")
        .field("packets_fwd", |answer| answer.record.packets[0])
        .doc("packets from `src`; queries")
        .field("packets_rev", |answer| answer.record.packets[1])
        .doc("packets from `dst`; responses")
        .field("bytes_fwd", |answer| answer.bytes(0))
        .doc("IP bytes from `src`")
        .field("bytes_rev", |answer| answer.bytes(1))
        .doc("IP bytes from `dst`")
        .field("domain", |answer| answer.record.domain.as_deref().map(dotted))
        .doc("query name of DNS records")
}

/// The columns of the search's explanation.
pub(super) fn explained_columns() -> Columns<Explained> {
    Columns::default()
        .field("nodes", |explained: &Explained| explained.nodes)
        .doc("storage directories")
        .field("nodes_ruled_out", |explained| explained.nodes_ruled_out)
        .doc("those ruled out by their global filters")
        .field("node_fpr", Explained::node_fpr)
        .doc("share of the nodes without an answer that were not ruled out")
        .unit("share")
        .field("captures", |explained| explained.captures)
        .doc("captures in the index")
        .field("captures_in_part", |explained| explained.captures_in_part)
        .doc("those indexed only in part (`index build --where`)")
        .field("regions", |explained| explained.regions)
        .doc("regions in the index")
        .field("regions_ruled_out_by_node", |explained| explained.regions_by_node)
        .doc("those ruled out by a global filter")
        .field("regions_ruled_out_by_time", |explained| explained.regions_by_time)
        .doc("those ruled out by time, or without such records")
        .field("regions_ruled_out_by_filter", |explained| explained.regions_by_filter)
        .doc("those ruled out by their filter")
        .field("regions_opened", |explained| explained.regions_opened)
        .doc("those whose lists were read")
        .field("regions_opened_in_vain", |explained| explained.regions_in_vain)
        .doc("those in vain")
        .field("region_fpr", Explained::region_fpr)
        .doc("share of the regions without an answer that were not ruled out")
        .unit("share")
        .field("records", |explained| explained.records)
        .doc("records of the regions opened")
        .field("records_listed", |explained| explained.records_listed)
        .doc("those in all lists")
        .field("hits", |explained| explained.hits)
        .doc("answers")
        .field("interrupted", |explained| explained.interrupted)
        .doc("a signal ended the search: there may be more answers")
        .field("complete", |explained| explained.problems.is_empty() && !explained.interrupted)
        .doc("all of the index could be searched")
        .field("segments", |explained| explained.segments)
        .doc("segments in the index")
        .field("segments_ruled_out", |explained| explained.segments_ruled_out)
        .doc("those ruled out by time or by their global filters")
}

fn frame(anonymized: bool, zone: Zone) -> Frame {
    Frame::new(SCHEMA, "hits")
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
    writer: Writer<W>,
    hits: u64,
    zone: Zone,
    explain: bool,
    style: TerminalStyle,
}

#[derive(Debug)]
enum Writer<W: Write> {
    Table { out: W, rows: TableRows },
    Rows(Box<RowWriter<W, Answer>>),
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
            Writer::Table { out, rows: TableRows::new(style.rows) }
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
        let mut out = match self.writer {
            Writer::Table { mut out, mut rows } => {
                rows.finish(&mut out)?;
                if self.hits == 0 && !explained.interrupted {
                    writeln!(out, "Nothing found.")?;
                }
                if explained.interrupted {
                    writeln!(out, "interrupted: there was more to search")?;
                }
                if self.explain {
                    writeln!(out)?;
                    for text in explanation(explained) {
                        write_lines(&mut out, self.style.lines(&text, WRAPPING))?;
                    }
                }
                out
            }
            Writer::Rows(rows) => rows.finish(tail(explained))?,
        };
        out.flush()?;
        Ok(out)
    }
}

impl<W: Write> HitSink for SearchReport<W> {
    fn hit(&mut self, hit: Hit<'_>) -> io::Result<()> {
        self.hits += 1;
        match &mut self.writer {
            Writer::Rows(rows) => rows.row(&Answer::of(hit)),
            Writer::Table { out, rows } => {
                let region = match hit.capture.regions.len() {
                    1 => String::new(),
                    all => format!("region {} of {all}, ", hit.number + 1),
                };
                let above = format!(
                    "{}  {region}{} to {}",
                    hit.capture.path.shown(),
                    time(hit.region.start_ns, DECIMALS, self.zone),
                    time(hit.region.end_ns, DECIMALS, self.zone)
                );
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
    let when = format!(
        "{} +{seconds:.3}s  {src} > {}",
        time(record.start_ns, DECIMALS, zone),
        end(record.dst, record.dst_port)
    );
    let [forward, reverse] = record.packets;
    if let Some(domain) = record.domain.as_deref().map(dotted) {
        let queries = counted(forward, "query", "queries");
        let responses = counted(reverse, "response", "responses");
        return format!("{when}  {domain}  {queries}, {responses}");
    }
    let proto = match record.protocol {
        1 => "icmp".to_owned(),
        6 => "tcp".to_owned(),
        17 => "udp".to_owned(),
        58 => "icmp6".to_owned(),
        132 => "sctp".to_owned(),
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

/// What each level ruled out, a line for each.
fn explanation(explained: &Explained) -> [String; 4] {
    let percent = |rate: Option<f64>| {
        rate.map_or_else(|| "–".to_owned(), |rate| format!("{:.2} %", rate * 100.0))
    };
    let e = explained;
    [
        format!(
            "nodes    {}: {} ruled out by their global filters; observed FPR {}",
            e.nodes,
            e.nodes_ruled_out,
            percent(e.node_fpr())
        ),
        format!(
            "segments {}: {} ruled out by time or by their global filters",
            e.segments, e.segments_ruled_out
        ),
        format!(
            "regions  {}: {} ruled out by global filters, {} by time or kind of records, {} by their filter; {} opened, {} in vain; observed FPR {}",
            e.regions,
            e.regions_by_node,
            e.regions_by_time,
            e.regions_by_filter,
            e.regions_opened,
            e.regions_in_vain,
            percent(e.region_fpr())
        ),
        format!(
            "records  {} in regions opened: {} in all lists, {} found",
            e.records, e.records_listed, e.hits
        ),
    ]
}
