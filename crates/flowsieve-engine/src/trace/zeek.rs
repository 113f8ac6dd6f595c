//! Zeek's `dns.log` and `conn.log`: tab-separated with a header of `#` lines, or a JSON object a
//! line.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::error::ReadError;
use super::format::{self, Batch, Class, Format, PacketSource, Verdict};
use super::log_columns::{Cells, Columns, ContentColumns, FlowColumns, Rows};
use super::log_entries::{Content, End, Entries, Fields, FlowFields, Lines, Time, as_written};
use super::read_buffer::ReadBuffer;

/// The tab-separated form. The header may come again: logs are concatenated.
#[derive(Debug)]
pub(super) struct ZeekTsv {
    lines: Lines,
    separator: u8,
    unset: Vec<u8>,
    empty: Vec<u8>,
    /// Set by `#fields`.
    columns: Option<Columns>,
    /// Ranges of the fields of the current line.
    fields: Vec<(usize, usize)>,
}

/// Names of a field: Zeek's, with another separator of scopes, and as others often rename it.
type Names = &'static [&'static str];

const SOURCE: Names = &["id.orig_h", "id_orig_h", "src", "src_ip", "source.ip"];
const DESTINATION: Names =
    &["id.resp_h", "id_resp_h", "dst", "dst_ip", "dest_ip", "destination.ip"];
const SOURCE_PORT: Names = &["id.orig_p", "id_orig_p", "src_port", "source.port"];
const DESTINATION_PORT: Names =
    &["id.resp_p", "id_resp_p", "dst_port", "dest_port", "destination.port"];

/// Fields of `conn.log`; a log of connections has at least one. Lists of this program have a name, too,
/// in the field `query`.
const OF_CONNECTIONS: Names = &[
    "conn_state",
    "orig_pkts",
    "resp_pkts",
    "orig_bytes",
    "resp_bytes",
    "orig_ip_bytes",
    "resp_ip_bytes",
];

pub(super) const TSV: Format = Format {
    containers: &["zeek-dns-tsv", "zeek-conn-tsv"],
    words: "Zeek's dns.log and conn.log",
    class: Class::TextLog,
    recognise: |buffer| {
        let mut log = ZeekTsv::default();
        format::ask_lines(buffer, |line| {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if line.is_empty() {
                return Verdict::Continue(());
            }
            let header = line.strip_prefix(b"#");
            if header.is_none_or(|header| log.read_header(header).is_err()) {
                return Verdict::Break(None);
            }
            match log.columns.map(|columns| columns.rows) {
                None => Verdict::Continue(()),
                Some(Rows::Queries) => Verdict::Break(Some("zeek-dns-tsv")),
                Some(_) => Verdict::Break(Some("zeek-conn-tsv")),
            }
        })
    },
    open: |_, _| Ok(Box::new(ZeekTsv::default())),
};

pub(super) const JSON: Format = Format {
    containers: &["zeek-dns-json", "zeek-conn-json"],
    words: TSV.words,
    class: Class::TextLog,
    recognise: |buffer| {
        format::ask_json_lines(buffer, |has| {
            if !(has("id.orig_h") || has("id_orig_h")) {
                // Events of Suricata are not Zeek's, whatever follows.
                if has("event_type") { Verdict::Break(None) } else { Verdict::Continue(()) }
            } else if has("query") && !SOURCE_PORT.iter().any(|name| has(name)) {
                Verdict::Break(Some("zeek-dns-json"))
            } else if OF_CONNECTIONS.iter().any(|name| has(name)) {
                Verdict::Break(Some("zeek-conn-json"))
            } else if has("query") {
                Verdict::Break(Some("zeek-dns-json"))
            } else {
                Verdict::Continue(())
            }
        })
    },
    open: |_, _| Ok(Box::new(ZeekJson::default())),
};

impl Default for ZeekTsv {
    fn default() -> Self {
        Self {
            lines: Lines::default(),
            separator: b'\t',
            unset: b"-".to_vec(),
            empty: b"(empty)".to_vec(),
            columns: None,
            fields: Vec::new(),
        }
    }
}

impl ZeekTsv {
    fn read_header(&mut self, header: &[u8]) -> Result<(), String> {
        // The separator's own line is the only one separated by a blank.
        if let Some(separator) = header.strip_prefix(b"separator ") {
            self.separator = match separator {
                [b'\\', b'x', hex @ ..] => std::str::from_utf8(hex)
                    .ok()
                    .and_then(|hex| u8::from_str_radix(hex, 16).ok())
                    .ok_or("the separator is not a byte")?,
                &[byte] => byte,
                _ => return Err("the separator is not a single byte".to_owned()),
            };
            return Ok(());
        }
        let mut words = header.split(|&byte| byte == self.separator);
        match words.next() {
            Some(b"unset_field") => self.unset = words.next().unwrap_or_default().to_vec(),
            Some(b"empty_field") => self.empty = words.next().unwrap_or_default().to_vec(),
            Some(b"fields") => {
                self.columns = Some(columns(&words.collect::<Vec<_>>())?);
            }
            _ => {}
        }
        Ok(())
    }

    fn read_record(&mut self, line: &[u8], out: &mut Entries) -> Result<(), String> {
        let columns = self.columns.ok_or("it comes before the line `#fields`")?;
        self.fields.clear();
        let mut start = 0;
        for field in line.split(|&byte| byte == self.separator) {
            self.fields.push((start, start + field.len()));
            start += field.len() + 1;
        }
        let cells = Cells {
            unset: &self.unset,
            empty: &self.empty,
            escaped: true,
            too_few: "it has too few fields",
        };
        let field = |column: usize| self.fields.get(column).map(|&(start, end)| &line[start..end]);
        columns.read(cells, field, out)
    }
}

/// Finds the fields of a log among the names in its line `#fields`.
fn columns(names: &[&[u8]]) -> Result<Columns, String> {
    let find = |name: &str| names.iter().position(|field| *field == name.as_bytes());
    let any = |names: Names| names.iter().find_map(|name| find(name));
    let must = |names: Names| any(names).ok_or_else(|| format!("there is no field `{}`", names[0]));
    let (rows, content) = if let Some(name) = find("query") {
        (Rows::Queries, ContentColumns::Dns { name })
    } else if any(OF_CONNECTIONS).is_some() {
        let flow = FlowColumns {
            duration: find("duration"),
            packets: [find("orig_pkts"), find("resp_pkts")],
            bytes: [find("orig_ip_bytes"), find("resp_ip_bytes")],
            ..FlowColumns::default()
        };
        (Rows::Flows, ContentColumns::Flow(flow))
    } else {
        return Err("there is no field `query`, and none of `conn.log`".to_owned());
    };
    Ok(Columns {
        rows,
        time: must(&["ts"])?,
        is_nanoseconds: false,
        source: must(SOURCE)?,
        destination: must(DESTINATION)?,
        content,
        // The number is there for every protocol, where there is one.
        protocol: [find("ip_proto"), find("proto")],
        source_port: any(SOURCE_PORT),
        destination_port: any(DESTINATION_PORT),
    })
}

impl PacketSource for ZeekTsv {
    fn fill(&mut self, buffer: &mut ReadBuffer, batch: &mut Batch) -> Result<(), ReadError> {
        let out = &mut batch.entries;
        while self.lines.fit(buffer, out) {
            let Some(length) = self.lines.advance(buffer)? else { return Ok(()) };
            let line = &buffer.unread()[..length];
            let (offset, number) = (buffer.offset(), self.lines.number);
            if let Some(header) = line.strip_prefix(b"#") {
                let read = self.read_header(header);
                read.map_err(|reason| ReadError::line(offset, number, reason))?;
            } else if !line.is_empty()
                && let Err(reason) = self.read_record(line, out)
            {
                out.skip(offset, number, reason);
            }
        }
        Ok(())
    }
}

/// The form of one JSON object a line.
#[derive(Debug, Default)]
pub(super) struct ZeekJson {
    lines: Lines,
}

#[derive(Deserialize)]
struct Record<'a> {
    /// Kept as written: floating point would lose nanoseconds.
    ts: &'a RawValue,
    #[serde(borrow, default, rename = "id.orig_h", alias = "id_orig_h")]
    source: Cow<'a, str>,
    #[serde(borrow, default, rename = "id.resp_h", alias = "id_resp_h")]
    destination: Cow<'a, str>,
    #[serde(rename = "id.orig_p", alias = "id_orig_p")]
    source_port: Option<&'a RawValue>,
    #[serde(rename = "id.resp_p", alias = "id_resp_p")]
    destination_port: Option<&'a RawValue>,
    #[serde(rename = "proto")]
    protocol: Option<Cow<'a, str>>,
    query: Option<Cow<'a, str>>,
    ip_proto: Option<&'a RawValue>,
    /// Every record of `conn.log` has it, unless it was left out.
    conn_state: Option<&'a RawValue>,
    duration: Option<&'a RawValue>,
    orig_pkts: Option<&'a RawValue>,
    resp_pkts: Option<&'a RawValue>,
    orig_ip_bytes: Option<&'a RawValue>,
    resp_ip_bytes: Option<&'a RawValue>,
    orig_bytes: Option<&'a RawValue>,
    resp_bytes: Option<&'a RawValue>,
}

impl PacketSource for ZeekJson {
    fn fill(&mut self, buffer: &mut ReadBuffer, batch: &mut Batch) -> Result<(), ReadError> {
        self.lines.read_each(buffer, &mut batch.entries, read_json)
    }
}

fn read_json(line: &[u8], out: &mut Entries) -> Result<(), String> {
    let record: Record<'_> = serde_json::from_slice(line).map_err(|error| error.to_string())?;
    if record.source.is_empty() && record.destination.is_empty() && record.query.is_none() {
        return Err("it has neither addresses nor a query".to_owned());
    }
    let of_connections = [
        record.conn_state,
        record.orig_pkts,
        record.resp_pkts,
        record.orig_ip_bytes,
        record.resp_ip_bytes,
        record.orig_bytes,
        record.resp_bytes,
    ];
    // DNS messages that `export` lists have numbers of connections, and no ports.
    let is_question = record.query.is_some() && record.source_port.is_none();
    let content = if !is_question && of_connections.iter().any(Option::is_some) {
        Content::Flow(FlowFields {
            end: as_written(record.duration).map(End::Duration),
            packets: [as_written(record.orig_pkts), as_written(record.resp_pkts)],
            bytes: [as_written(record.orig_ip_bytes), as_written(record.resp_ip_bytes)],
            tcp_flags: [None; 2],
        })
    } else {
        Content::Dns {
            name: record.query.as_deref().map(str::as_bytes),
            escaped: true,
            is_response: false,
        }
    };
    out.push(&Fields {
        time: Time::Text(record.ts.get().trim_matches('"')),
        source: &record.source,
        destination: &record.destination,
        protocol: as_written(record.ip_proto).or(record.protocol.as_deref()),
        source_port: as_written(record.source_port),
        destination_port: as_written(record.destination_port),
        content,
    })
}
