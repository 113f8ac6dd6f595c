//! Answers of an archive index: a table for people, JSON and CSV for programs.

use super::csv::cause;
use crate::decode::dotted;
use crate::index::{Explained, Hit, HitSink};
use serde::Serialize;
use std::io::{self, Write};

/// How answers are written.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum SearchFormat {
    /// For people.
    #[default]
    Table,
    /// A line an answer.
    Csv,
    /// One document.
    Json,
}

/// Version of the document.
const SCHEMA: &str = "flowsieve.index-search/1";

/// An answer, by the names that all results have.
#[derive(Serialize)]
struct Row<'a> {
    capture: &'a str,
    region: usize,
    region_start_ns: i64,
    region_end_ns: i64,
    start_ns: i64,
    end_ns: i64,
    src: String,
    dst: String,
    proto: u8,
    src_port: Option<u16>,
    dst_port: u16,
    packets_fwd: u64,
    packets_rev: u64,
    bytes_fwd: Option<u64>,
    bytes_rev: Option<u64>,
    domain: Option<String>,
}

impl<'a> Row<'a> {
    fn of(hit: Hit<'a>) -> Self {
        let record = hit.record;
        // A DNS record is of many packets, whose bytes and client ports it does not tell.
        let of_flow = record.domain.is_none();
        Self {
            capture: hit.capture.path.to_str().unwrap_or_default(),
            region: hit.number,
            region_start_ns: hit.region.start_ns,
            region_end_ns: hit.region.end_ns,
            start_ns: record.start_ns,
            end_ns: record.end_ns,
            src: record.src.to_string(),
            dst: record.dst.to_string(),
            proto: record.protocol,
            src_port: of_flow.then_some(record.src_port),
            dst_port: record.dst_port,
            packets_fwd: record.packets[0],
            packets_rev: record.packets[1],
            bytes_fwd: of_flow.then_some(record.bytes[0]),
            bytes_rev: of_flow.then_some(record.bytes[1]),
            domain: record.domain.as_deref().map(dotted),
        }
    }
}

/// What each level ruled out, by the names of results.
#[derive(Serialize)]
struct Levels {
    nodes: u64,
    nodes_ruled_out: u64,
    node_fpr: Option<f64>,
    captures: u64,
    regions: u64,
    regions_ruled_out_by_node: u64,
    regions_ruled_out_by_time: u64,
    regions_ruled_out_by_filter: u64,
    regions_opened: u64,
    regions_opened_in_vain: u64,
    region_fpr: Option<f64>,
    records: u64,
    records_listed: u64,
    hits: u64,
    interrupted: bool,
}

impl Levels {
    fn of(explained: &Explained) -> Self {
        Self {
            nodes: explained.nodes,
            nodes_ruled_out: explained.nodes_ruled_out,
            node_fpr: explained.node_fpr(),
            captures: explained.captures,
            regions: explained.regions,
            regions_ruled_out_by_node: explained.regions_by_node,
            regions_ruled_out_by_time: explained.regions_by_time,
            regions_ruled_out_by_filter: explained.regions_by_filter,
            regions_opened: explained.regions_opened,
            regions_opened_in_vain: explained.regions_in_vain,
            region_fpr: explained.region_fpr(),
            records: explained.records,
            records_listed: explained.records_listed,
            hits: explained.hits,
            interrupted: explained.interrupted,
        }
    }
}

/// Writes answers as they come.
#[derive(Debug)]
pub struct SearchReport<W: Write> {
    writer: Writer<W>,
    hits: u64,
    explain: bool,
}

#[derive(Debug)]
enum Writer<W: Write> {
    Table {
        out: W,
        capture: Option<(u64, usize)>,
    },
    Csv(Box<csv::Writer<W>>),
    Json(W),
}

const HEADER: [&str; 16] = [
    "capture",
    "region",
    "region_start_ns",
    "region_end_ns",
    "start_ns",
    "end_ns",
    "src",
    "dst",
    "proto",
    "src_port",
    "dst_port",
    "packets_fwd",
    "packets_rev",
    "bytes_fwd",
    "bytes_rev",
    "domain",
];

impl<W: Write> SearchReport<W> {
    /// Begins a report; with `explain` it ends with what each level ruled out. JSON says whether the
    /// addresses of the answers are `anonymized`, that is replaced.
    ///
    /// # Errors
    ///
    /// Writing failed.
    pub fn begin(
        format: SearchFormat,
        explain: bool,
        anonymized: bool,
        mut out: W,
    ) -> io::Result<Self> {
        let writer = match format {
            SearchFormat::Table => Writer::Table { out, capture: None },
            SearchFormat::Csv => {
                let mut csv = csv::WriterBuilder::new()
                    .has_headers(false)
                    .from_writer(out);
                csv.write_record(HEADER).map_err(cause)?;
                Writer::Csv(Box::new(csv))
            }
            SearchFormat::Json => {
                write!(
                    out,
                    "{{\"schema\":\"{SCHEMA}\",\"anonymized\":{anonymized},\"hits\":["
                )?;
                Writer::Json(out)
            }
        };
        Ok(Self {
            writer,
            hits: 0,
            explain,
        })
    }

    /// Ends the report and gives the writer back, flushed.
    ///
    /// # Errors
    ///
    /// Writing failed.
    pub fn finish(self, explained: &Explained) -> io::Result<W> {
        let mut out = match self.writer {
            Writer::Table { mut out, .. } => {
                if self.hits == 0 && !explained.interrupted {
                    writeln!(out, "Nothing found.")?;
                }
                if explained.interrupted {
                    writeln!(out, "interrupted: there was more to search")?;
                }
                if self.explain {
                    writeln!(out)?;
                    explain(&mut out, explained)?;
                }
                out
            }
            Writer::Csv(csv) => csv.into_inner().map_err(csv::IntoInnerError::into_error)?,
            Writer::Json(mut out) => {
                write!(out, "],\"explain\":")?;
                serde_json::to_writer(&mut out, &Levels::of(explained))?;
                writeln!(out, "}}")?;
                out
            }
        };
        out.flush()?;
        Ok(out)
    }
}

impl<W: Write> HitSink for SearchReport<W> {
    fn hit(&mut self, hit: Hit<'_>) -> io::Result<()> {
        self.hits += 1;
        match &mut self.writer {
            Writer::Csv(csv) => csv.serialize(Row::of(hit)).map_err(cause),
            Writer::Json(out) => {
                out.write_all(if self.hits > 1 { b",\n" } else { b"\n" })?;
                Ok(serde_json::to_writer(out, &Row::of(hit))?)
            }
            Writer::Table { out, capture } => {
                let place = (hit.capture.id, hit.number);
                if *capture != Some(place) {
                    if capture.is_some() {
                        writeln!(out)?;
                    }
                    *capture = Some(place);
                    writeln!(
                        out,
                        "{}  region {} of {}, {} to {}",
                        hit.capture.path.display(),
                        hit.number + 1,
                        hit.capture.regions.len(),
                        time(hit.region.start_ns),
                        time(hit.region.end_ns)
                    )?;
                }
                line(out, &Row::of(hit))
            }
        }
    }
}

fn line(out: &mut impl Write, row: &Row<'_>) -> io::Result<()> {
    let end = |address: &str, port: u16| match (address.contains(':'), port) {
        (_, 0) => address.to_owned(),
        (true, port) => format!("[{address}]:{port}"),
        (false, port) => format!("{address}:{port}"),
    };
    let src = end(&row.src, row.src_port.unwrap_or(0));
    let seconds = (i128::from(row.end_ns) - i128::from(row.start_ns)) as f64 / 1e9;
    write!(
        out,
        "  {} +{seconds:.3}s  {src} > {}  ",
        time(row.start_ns),
        end(&row.dst, row.dst_port)
    )?;
    if let Some(domain) = &row.domain {
        return writeln!(
            out,
            "{domain}  {} queries, {} responses",
            row.packets_fwd, row.packets_rev
        );
    }
    let proto = match row.proto {
        1 => "icmp".to_owned(),
        6 => "tcp".to_owned(),
        17 => "udp".to_owned(),
        58 => "icmp6".to_owned(),
        132 => "sctp".to_owned(),
        other => format!("proto {other}"),
    };
    writeln!(
        out,
        "{proto}  {} + {} packets, {} + {} bytes",
        row.packets_fwd,
        row.packets_rev,
        row.bytes_fwd.unwrap_or(0),
        row.bytes_rev.unwrap_or(0)
    )
}

/// RFC 3339.
fn time(ns: i64) -> String {
    let stamp = jiff::Timestamp::from_nanosecond(ns.into());
    // All times that fit 64 bits are within jiff's range.
    stamp.map_or_else(|_| ns.to_string(), |stamp| format!("{stamp:.6}"))
}

fn explain(out: &mut impl Write, explained: &Explained) -> io::Result<()> {
    let percent = |rate: Option<f64>| {
        rate.map_or_else(|| "–".to_owned(), |rate| format!("{:.2} %", rate * 100.0))
    };
    let Explained {
        nodes,
        nodes_ruled_out,
        regions,
        regions_by_node,
        regions_by_time,
        regions_by_filter,
        regions_opened,
        regions_in_vain,
        records,
        records_listed,
        hits,
        ..
    } = explained;
    writeln!(
        out,
        "nodes    {nodes}: {nodes_ruled_out} ruled out by their global filter; observed FPR {}",
        percent(explained.node_fpr())
    )?;
    writeln!(
        out,
        "regions  {regions}: {regions_by_node} ruled out with their node, {regions_by_time} by time or kind of records, {regions_by_filter} by their filter; {regions_opened} opened, {regions_in_vain} in vain; observed FPR {}",
        percent(explained.region_fpr())
    )?;
    writeln!(
        out,
        "records  {records} in regions opened: {records_listed} in all lists asked, {hits} found"
    )
}
