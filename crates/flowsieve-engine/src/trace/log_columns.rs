//! Which columns a list of flows or of DNS queries has, under any of their names, and the records
//! of its rows: for lists as CSV and as Parquet.

use super::log_entries::{Content, End, Entries, Fields, FlowFields, Time};

/// What the rows are.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Rows {
    Queries,
    Flows,
    /// Flows, and behind them a summary.
    Nfdump,
}

/// Names of a column, in lower case: of this program, of nfdump (before version 1.7.2 and since),
/// of Zeek, of the Elastic Common Schema.
type Names = &'static [&'static str];

const START: Names = &["start_ns", "ts", "firstseen", "event.start"];
const SOURCE: Names = &["src", "sa", "srcaddr", "id.orig_h", "source.ip"];
const DESTINATION: Names = &["dst", "da", "dstaddr", "id.resp_h", "destination.ip"];
const PROTOCOL: Names = &["proto", "pr", "protocol", "network.iana_number"];
const SOURCE_PORT: Names = &["src_port", "sport", "sp", "srcport", "id.orig_p", "source.port"];
const DESTINATION_PORT: Names =
    &["dst_port", "dport", "dp", "dstport", "id.resp_p", "destination.port"];
const END: Names = &["end_ns", "te", "lastseen", "event.end"];
const DURATION: Names = &["duration", "td"];
const PACKETS: [Names; 2] = [
    &["packets", "packets_fwd", "ipkt", "inpackets", "orig_pkts", "source.packets"],
    &["packets_rev", "opkt", "outpackets", "resp_pkts", "destination.packets"],
];
const BYTES: [Names; 2] = [
    &["bytes", "bytes_fwd", "ibyt", "inbytes", "orig_ip_bytes", "source.bytes"],
    &["bytes_rev", "obyt", "outbytes", "resp_ip_bytes", "destination.bytes"],
];
const FLAGS: [Names; 2] = [&["tcp_flags", "tcp_flags_fwd", "flg", "flags"], &["tcp_flags_rev"]];

/// What rows below a header of these names are, if they can be read.
pub(super) fn rows(header: &[String]) -> Option<Rows> {
    let has = |names: Names| find(header, names).is_some();
    if ["ts", "src", "dst", "qname"].iter().all(|name| header.iter().any(|column| column == name)) {
        return Some(Rows::Queries);
    }
    if ![START, SOURCE, DESTINATION, PROTOCOL].into_iter().all(has) {
        return None;
    }
    let of_nfdump = has(&["sa", "srcaddr"]);
    Some(if of_nfdump { Rows::Nfdump } else { Rows::Flows })
}

/// The names in a header line.
pub(super) fn header<'a>(names: impl Iterator<Item = &'a [u8]>) -> Vec<String> {
    names
        .map(|name| {
            String::from_utf8_lossy(name)
                .trim_start_matches('\u{feff}')
                .trim()
                .trim_matches('"')
                .to_lowercase()
        })
        .collect()
}

fn find(header: &[String], names: Names) -> Option<usize> {
    names.iter().find_map(|name| header.iter().position(|column| column == name))
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Columns {
    rows: Rows,
    time: usize,
    is_nanoseconds: bool,
    source: usize,
    destination: usize,
    protocol: Option<usize>,
    source_port: Option<usize>,
    destination_port: Option<usize>,
    content: ContentColumns,
}

#[derive(Clone, Copy, Debug)]
enum ContentColumns {
    Dns {
        name: usize,
    },
    Flow {
        end: Option<usize>,
        ends_in_nanoseconds: bool,
        duration: Option<usize>,
        packets: [Option<usize>; 2],
        bytes: [Option<usize>; 2],
        tcp_flags: [Option<usize>; 2],
    },
}

impl Columns {
    /// The columns of a list with this header, if it is one; `is_nanoseconds` says of which columns
    /// the times are whole nanoseconds.
    pub(super) fn of(header: &[String], is_nanoseconds: impl Fn(usize) -> bool) -> Option<Self> {
        let rows = rows(header)?;
        let at = |names: Names| find(header, names);
        let time = if rows == Rows::Queries { at(&["ts"])? } else { at(START)? };
        Some(Self {
            rows,
            time,
            is_nanoseconds: is_nanoseconds(time),
            source: at(SOURCE)?,
            destination: at(DESTINATION)?,
            protocol: at(PROTOCOL),
            source_port: at(SOURCE_PORT),
            destination_port: at(DESTINATION_PORT),
            content: if rows == Rows::Queries {
                ContentColumns::Dns { name: at(&["qname"])? }
            } else {
                ContentColumns::Flow {
                    end: at(END),
                    ends_in_nanoseconds: at(END).is_some_and(&is_nanoseconds),
                    duration: at(DURATION),
                    packets: PACKETS.map(at),
                    bytes: BYTES.map(at),
                    tcp_flags: FLAGS.map(at),
                }
            },
        })
    }

    /// What the rows are.
    pub(super) fn rows(&self) -> Rows {
        self.rows
    }

    /// The numbers of the columns that are read.
    pub(super) fn used(&self) -> impl Iterator<Item = usize> {
        let of_content = match self.content {
            ContentColumns::Dns { name } => [Some(name), None, None, None, None, None, None, None],
            ContentColumns::Flow {
                end,
                duration,
                packets: [packets, packets_back],
                bytes: [bytes, bytes_back],
                tcp_flags: [flags, flags_back],
                ..
            } => [end, duration, packets, packets_back, bytes, bytes_back, flags, flags_back],
        };
        let all = [
            Some(self.time),
            Some(self.source),
            Some(self.destination),
            self.protocol,
            self.source_port,
            self.destination_port,
        ];
        all.into_iter().chain(of_content).flatten()
    }

    /// Adds the record of a row to `out`, or says what is wrong with it.
    pub(super) fn read<'a>(
        &self,
        cell: impl Fn(usize) -> Option<&'a [u8]>,
        out: &mut Entries,
    ) -> Result<(), String> {
        let columns = self;
        let field = |column: usize| {
            let bytes = cell(column).ok_or("it has too few columns")?;
            std::str::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())
        };
        let optional = |column: Option<usize>| {
            let text = column.and_then(|column| field(column).ok());
            text.filter(|text| !text.is_empty())
        };
        let time = |text: &'a str, is_nanoseconds| {
            if is_nanoseconds {
                Time::Nanoseconds(text)
            } else if self.rows == Rows::Nfdump && is_milliseconds(text) {
                Time::Milliseconds(text)
            } else {
                Time::Text(text)
            }
        };
        let content = match columns.content {
            ContentColumns::Dns { name } => {
                // An empty cell is a record without a query; the root is written as a dot.
                let name = cell(name).ok_or("it has too few columns")?;
                Content::Dns {
                    name: (!name.is_empty()).then_some(name),
                    escaped: false,
                    is_response: false,
                }
            }
            ContentColumns::Flow {
                end,
                ends_in_nanoseconds,
                duration,
                packets,
                bytes,
                tcp_flags,
            } => {
                let end = optional(end).map(|end| End::Time(time(end, ends_in_nanoseconds)));
                Content::Flow(FlowFields {
                    end: end.or_else(|| optional(duration).map(End::Duration)),
                    packets: packets.map(optional),
                    bytes: bytes.map(optional),
                    tcp_flags: tcp_flags.map(optional),
                })
            }
        };
        out.push(&Fields {
            time: time(field(columns.time)?, columns.is_nanoseconds),
            source: field(columns.source)?,
            destination: field(columns.destination)?,
            protocol: optional(columns.protocol),
            source_port: optional(columns.source_port),
            destination_port: optional(columns.destination_port),
            content,
        })
    }
}

/// Whether nfdump means milliseconds, which its format `csv-fast` has: as seconds they would be
/// thousands of years from now.
fn is_milliseconds(text: &str) -> bool {
    text.len() >= 12 && text.bytes().all(|byte| byte.is_ascii_digit())
}
