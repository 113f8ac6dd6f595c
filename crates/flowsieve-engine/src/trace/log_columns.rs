//! The columns of a list of flows or of DNS queries, under any of their names, and the records of
//! its rows.

use super::log_entries::{Content, End, Entries, Fields, FlowFields, Time};

/// Kind of the rows.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Rows {
    Queries,
    Flows,
    /// Flows, followed by a summary.
    Nfdump,
}

/// Names of a column, in lower case: those of this program, nfdump (before version 1.7.2 and since),
/// Zeek and the Elastic Common Schema.
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

/// Returns the kind of the rows below a header of these names, if they can be read.
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

/// Returns the names in a header line.
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

/// The columns of a list, by number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Columns {
    pub(super) rows: Rows,
    pub(super) time: usize,
    pub(super) is_nanoseconds: bool,
    pub(super) source: usize,
    pub(super) destination: usize,
    /// The first one with a value counts.
    pub(super) protocol: [Option<usize>; 2],
    pub(super) source_port: Option<usize>,
    pub(super) destination_port: Option<usize>,
    pub(super) content: ContentColumns,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum ContentColumns {
    Dns { name: usize },
    Flow(FlowColumns),
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FlowColumns {
    pub(super) end: Option<usize>,
    pub(super) ends_in_nanoseconds: bool,
    pub(super) duration: Option<usize>,
    pub(super) packets: [Option<usize>; 2],
    pub(super) bytes: [Option<usize>; 2],
    pub(super) tcp_flags: [Option<usize>; 2],
}

/// How cells are written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cells<'a> {
    /// A cell without a value.
    pub(super) unset: &'a [u8],
    /// A cell with an empty value.
    pub(super) empty: &'a [u8],
    /// Names may have bytes as `\x2e`, and no other escapes.
    pub(super) escaped: bool,
    /// The error of a row without a column.
    pub(super) too_few: &'static str,
}

impl Columns {
    /// Finds the columns of a list by its header; `None` if it is no list that can be read.
    pub(super) fn new(header: &[String]) -> Option<Self> {
        let is_nanoseconds = |column: usize| header[column].ends_with("_ns");
        let rows = rows(header)?;
        let at = |names: Names| find(header, names);
        let time = if rows == Rows::Queries { at(&["ts"])? } else { at(START)? };
        Some(Self {
            rows,
            time,
            is_nanoseconds: is_nanoseconds(time),
            source: at(SOURCE)?,
            destination: at(DESTINATION)?,
            protocol: [at(PROTOCOL), None],
            source_port: at(SOURCE_PORT),
            destination_port: at(DESTINATION_PORT),
            content: if rows == Rows::Queries {
                ContentColumns::Dns { name: at(&["qname"])? }
            } else {
                ContentColumns::Flow(FlowColumns {
                    end: at(END),
                    ends_in_nanoseconds: at(END).is_some_and(is_nanoseconds),
                    duration: at(DURATION),
                    packets: PACKETS.map(at),
                    bytes: BYTES.map(at),
                    tcp_flags: FLAGS.map(at),
                })
            },
        })
    }

    /// Adds the record of a row to `out`, or returns what is wrong with it.
    pub(super) fn read<'a>(
        &self,
        cells: Cells<'_>,
        cell: impl Fn(usize) -> Option<&'a [u8]>,
        out: &mut Entries,
    ) -> Result<(), String> {
        let field = |column: usize| {
            let bytes = cell(column).ok_or(cells.too_few)?;
            std::str::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())
        };
        let optional = |column: Option<usize>| {
            let text = column.and_then(|column| field(column).ok());
            text.filter(|text| text.as_bytes() != cells.unset)
        };
        let address = |column| {
            let text = field(column)?;
            Ok::<_, String>(if text.as_bytes() == cells.unset { "" } else { text })
        };
        let time = |text: &'a str, is_nanoseconds| {
            if is_nanoseconds { Time::Nanoseconds(text) } else { Time::Text(text) }
        };
        let content = match self.content {
            ContentColumns::Dns { name } => Content::Dns {
                name: match cell(name).ok_or(cells.too_few)? {
                    name if name == cells.unset => None,
                    name if name == cells.empty => Some(&b""[..]),
                    name => Some(name),
                },
                escaped: cells.escaped,
                is_response: false,
            },
            ContentColumns::Flow(flow) => {
                let end = optional(flow.end);
                let end = end.map(|end| End::Time(time(end, flow.ends_in_nanoseconds)));
                Content::Flow(FlowFields {
                    end: end.or_else(|| optional(flow.duration).map(End::Duration)),
                    packets: flow.packets.map(optional),
                    bytes: flow.bytes.map(optional),
                    tcp_flags: flow.tcp_flags.map(optional),
                })
            }
        };
        out.push(&Fields {
            time: time(field(self.time)?, self.is_nanoseconds),
            source: address(self.source)?,
            destination: address(self.destination)?,
            protocol: self.protocol.into_iter().find_map(optional),
            source_port: optional(self.source_port),
            destination_port: optional(self.destination_port),
            content,
        })
    }
}
