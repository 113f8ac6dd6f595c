//! Zeek's `dns.log` and `conn.log`: tab-separated with a header of `#` lines, or a JSON object a
//! line.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::error::ReadError;
use super::format::{self, Batch, Class, Format, PacketSource};
use super::log_columns::{Cells, Columns, ContentColumns, FlowColumns, Rows};
use super::log_entries::{Content, End, Entries, Fields, FlowFields, Lines, Time, as_written};
use super::packet::MAX_BATCH;
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

/// Fields of `conn.log`; a log of connections has at least one.
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
        for line in format::text_head(buffer).split(|&byte| byte == b'\n') {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            log.read_header(line.strip_prefix(b"#")?).ok()?;
            if let Some(columns) = log.columns {
                return Some(match columns.rows {
                    Rows::Queries => "zeek-dns-tsv",
                    _ => "zeek-conn-tsv",
                });
            }
        }
        None
    },
    open: |_, _| Ok(Box::new(ZeekTsv::default())),
};

pub(super) const JSON: Format = Format {
    containers: &["zeek-dns-json", "zeek-conn-json"],
    words: TSV.words,
    class: Class::TextLog,
    recognise: |buffer| {
        let head = format::text_head(buffer);
        let has = |name: &str| format::contains(head, format!("\"{name}\"").as_bytes());
        if !head.starts_with(b"{") || !has("id.orig_h") {
            None
        } else if has("query") {
            Some("zeek-dns-json")
        } else {
            OF_CONNECTIONS.iter().any(|name| has(name)).then_some("zeek-conn-json")
        }
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
        for end in line.iter().enumerate().filter(|(_, byte)| **byte == self.separator) {
            self.fields.push((start, end.0));
            start = end.0 + 1;
        }
        self.fields.push((start, line.len()));
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
        protocol: find("ip_proto").or_else(|| find("proto")),
        source_port: any(SOURCE_PORT),
        destination_port: any(DESTINATION_PORT),
    })
}

impl PacketSource for ZeekTsv {
    fn fill(&mut self, buffer: &mut ReadBuffer, batch: &mut Batch) -> Result<(), ReadError> {
        let out = &mut batch.entries;
        while out.len() < MAX_BATCH {
            let Some(length) = self.lines.advance(buffer)? else {
                return Ok(());
            };
            let line = &buffer.unread()[..length];
            let read = match line.split_first() {
                None => Ok(()),
                Some((b'#', header)) => self.read_header(header),
                Some(_) => {
                    if let Err(reason) = self.read_record(line, out) {
                        out.skip(buffer.offset(), self.lines.number(), reason);
                    }
                    Ok(())
                }
            };
            read.map_err(|reason| ReadError::line(buffer.offset(), self.lines.number(), reason))?;
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
    #[serde(borrow)]
    ts: &'a RawValue,
    #[serde(borrow, rename = "id.orig_h")]
    source: Cow<'a, str>,
    #[serde(borrow, rename = "id.resp_h")]
    destination: Cow<'a, str>,
    #[serde(borrow, rename = "id.orig_p", default)]
    source_port: Option<&'a RawValue>,
    #[serde(borrow, rename = "id.resp_p", default)]
    destination_port: Option<&'a RawValue>,
    #[serde(borrow, rename = "proto", default)]
    protocol: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    query: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    ip_proto: Option<&'a RawValue>,
    /// Every record of `conn.log` has it, unless it was left out.
    #[serde(borrow, default)]
    conn_state: Option<&'a RawValue>,
    #[serde(borrow, default)]
    duration: Option<&'a RawValue>,
    #[serde(borrow, default)]
    orig_pkts: Option<&'a RawValue>,
    #[serde(borrow, default)]
    resp_pkts: Option<&'a RawValue>,
    #[serde(borrow, default)]
    orig_ip_bytes: Option<&'a RawValue>,
    #[serde(borrow, default)]
    resp_ip_bytes: Option<&'a RawValue>,
}

impl PacketSource for ZeekJson {
    fn fill(&mut self, buffer: &mut ReadBuffer, batch: &mut Batch) -> Result<(), ReadError> {
        self.lines.read_each(buffer, &mut batch.entries, read_json)
    }
}

fn read_json(line: &[u8], out: &mut Entries) -> Result<(), String> {
    let record: Record<'_> = serde_json::from_slice(line).map_err(|error| error.to_string())?;
    let of_connections = [
        record.conn_state,
        record.orig_pkts,
        record.resp_pkts,
        record.orig_ip_bytes,
        record.resp_ip_bytes,
    ];
    let content = if record.query.is_none() && of_connections.iter().any(Option::is_some) {
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

#[cfg(test)]
mod tests {
    use super::super::error::TraceErrorKind;
    use super::super::log_tests::{names, read};
    use super::super::packet::LogContent;
    use super::super::{Capture, InputFormat};
    use std::path::Path;

    const TSV: &str = "#separator \\x09\n#set_separator\t,\n#empty_field\t(empty)\n#unset_field\t-\n\
        #path\tdns\n#fields\tts\tuid\tid.orig_h\tid.orig_p\tid.resp_h\tid.resp_p\tproto\tquery\n\
        #types\ttime\tstring\taddr\tport\taddr\tport\tenum\tstring\n\
        1700000000.123456\tC1\t10.0.0.1\t5353\t2001:db8::1\t53\tudp\tWWW.Example.COM\n\
        1700000001.5\tC2\t10.0.0.1\t5353\t10.0.0.2\t53\ttcp\t-\n\
        1700000002.5\tC3\t10.0.0.1\t-\t10.0.0.2\t53\ttcp\t(empty)\n\
        1700000003\tC4\t10.0.0.1\t1\t10.0.0.2\t53\ttcp\ta\\x09b\\x2d.example\n#close\t2023\n";

    #[test]
    fn tsv_is_read_with_its_escapes() {
        let log = read(TSV.as_bytes());
        assert!(log.error.is_none(), "{:?}", log.error);
        assert_eq!(names(&log), ["WWW.Example.COM", "", "a\tb-.example"]);
        assert_eq!(log.without_query, 1);
        assert_eq!(log.entries[0].time_ns, 1_700_000_000_123_456_000);
        assert_eq!(log.entries[0].transport, Some((17, 5353, 53)));
        assert_eq!(log.entries[0].destination.unwrap().to_string(), "2001:db8::1");
        assert_eq!(log.entries[1].transport, None);
        assert_eq!(log.container, "zeek-dns-tsv");
    }

    #[test]
    fn concatenated_logs_are_one() {
        let log = read(TSV.repeat(3).as_bytes());
        assert_eq!(log.entries.len(), 9);
        assert_eq!(log.without_query, 3);
    }

    #[test]
    fn a_malformed_line_is_named_and_everything_else_is_delivered() {
        let good = "1700000005\tC6\t10.0.0.1\t1\t10.0.0.2\t53\tudp\tlast\n";
        let bad = "1700000004\tC5\tnobody\t1\t10.0.0.2\t53\tudp\tx\n";
        let log = read(format!("{TSV}{bad}{good}{bad}{good}").as_bytes());
        assert_eq!(log.entries.len(), 5);
        assert_eq!(names(&log)[3..], ["last", "last"]);
        let error = log.error.unwrap();
        assert!(
            matches!(error.kind, TraceErrorKind::LinesSkipped { line: 13, others: 1, .. }),
            "{error}"
        );
        assert!(
            error.to_string().contains("the source is \"nobody\", not an IP address"),
            "{error}"
        );
    }

    const CONNECTIONS: &str = "#separator \\x09\n#unset_field\t-\n#path\tconn\n\
        #fields\tts\tid.orig_h\tid.orig_p\tid.resp_h\tid.resp_p\tproto\tduration\tconn_state\torig_pkts\torig_ip_bytes\tresp_pkts\tresp_ip_bytes\n\
        1700000000.5\t10.0.0.1\t5353\t10.0.0.2\t53\tudp\t0.25\tSF\t1\t60\t2\t300\n\
        1700000001\t::1\t128\t::2\t129\ticmp\t-\tOTH\t3\t300\t0\t0\n\
        1700000002\t10.0.0.1\t1\t10.0.0.2\t2\tunknown_transport\t-\tOTH\t-\t-\t-\t-\n";

    #[test]
    fn connections_are_flows() {
        let log = read(CONNECTIONS.as_bytes());
        assert!(log.error.is_none(), "{:?}", log.error);
        assert_eq!(log.container, "zeek-conn-tsv");
        let flow = |number: usize| match log.entries[number].content {
            LogContent::Flow(flow) => flow,
            _ => panic!("a flow"),
        };
        assert_eq!(log.entries[0].transport, Some((17, 5353, 53)));
        assert_eq!(flow(0).end_ns, 1_700_000_000_750_000_000);
        assert_eq!((flow(0).packets, flow(0).bytes), ([1, 2], [60, 300]));
        assert_eq!(flow(0).directions(), [true, true]);
        // Of ICMP the columns of the ports have type and code.
        assert_eq!(log.entries[1].transport, Some((58, 0, 0)));
        assert_eq!(flow(1).end_ns, log.entries[1].time_ns);
        assert_eq!(flow(1).directions(), [true, false]);
        assert_eq!(log.entries[2].transport, None);
        assert_eq!(flow(2).directions(), [true, false]);
    }

    #[test]
    fn connections_are_known_by_their_fields() {
        let expected = read(CONNECTIONS.as_bytes()).entries;
        let fields = CONNECTIONS.lines().nth(3).unwrap();
        let without_state =
            CONNECTIONS.replace("\tconn_state", "").replace("\tSF", "").replace("\tOTH", "");
        for changed in [
            without_state.clone(),
            CONNECTIONS.replace("id.", "id_"),
            CONNECTIONS
                .replace("id.orig_h", "src")
                .replace("id.orig_p", "src_port")
                .replace("id.resp_h", "dst")
                .replace("id.resp_p", "dst_port"),
            // Nothing but the fields.
            CONNECTIONS[CONNECTIONS.find(fields).unwrap()..].to_owned(),
        ] {
            let log = read(changed.as_bytes());
            assert!(log.error.is_none(), "{:?}: {changed}", log.error);
            assert_eq!(log.container, "zeek-conn-tsv");
            assert_eq!(log.entries, expected, "{changed}");
        }
        // Another log of Zeek's.
        let other = without_state
            .replace("orig_", "a_")
            .replace("resp_", "b_")
            .replace("id.a_", "id.orig_")
            .replace("id.b_", "id.resp_");
        let reader = Box::new(std::io::Cursor::new(other.into_bytes()));
        let capture = Capture::from_reader(Path::new("x.log"), reader, InputFormat::Auto);
        let error = capture.unwrap_err();
        assert!(matches!(error.kind, TraceErrorKind::NotACapture { .. }), "{error}");
    }

    #[test]
    fn connections_as_json_are_the_same() {
        let log = read(
            br#"{"ts":1700000000.5,"id.orig_h":"10.0.0.1","id.orig_p":5353,"id.resp_h":"10.0.0.2","id.resp_p":53,"proto":"udp","duration":0.25,"conn_state":"SF","orig_pkts":1,"orig_ip_bytes":60,"resp_pkts":2,"resp_ip_bytes":300}
{"ts":1700000001,"id.orig_h":"::1","id.orig_p":128,"id.resp_h":"::2","id.resp_p":129,"proto":"icmp","conn_state":"OTH","orig_pkts":3,"orig_ip_bytes":300,"resp_pkts":0,"resp_ip_bytes":0}
{"ts":1700000002,"id.orig_h":"10.0.0.1","id.orig_p":1,"id.resp_h":"10.0.0.2","id.resp_p":2,"proto":"unknown_transport","conn_state":"OTH"}
"#,
        );
        assert!(log.error.is_none(), "{:?}", log.error);
        assert_eq!(log.container, "zeek-conn-json");
        assert_eq!(log.entries, read(CONNECTIONS.as_bytes()).entries);
    }

    #[test]
    fn json_lines_are_read() {
        let log = read(
            br#"{"ts":1700000000.123456789,"id.orig_h":"10.0.0.1","id.orig_p":5353,"id.resp_h":"10.0.0.2","id.resp_p":53,"proto":"udp","query":"a.example","rcode":0}
{"ts":"2023-11-14T22:13:20.5Z","id.orig_h":"10.0.0.1","id.resp_h":"10.0.0.2"}
{"ts":"2023-11-14T22:13:20.5Z","id.orig_h":"10.0.0.1","id.resp_h":"10.0.0.2","query":"b\\x2e.example."}
"#,
        );
        assert!(log.error.is_none(), "{:?}", log.error);
        assert_eq!(names(&log), ["a.example", "b..example"]);
        assert_eq!(log.without_query, 1);
        assert_eq!(log.entries[0].time_ns, 1_700_000_000_123_456_789);
        assert_eq!(log.entries[1].time_ns, 1_700_000_000_500_000_000);
        assert_eq!(log.entries[0].transport, Some((17, 5353, 53)));
        assert_eq!(log.container, "zeek-dns-json");
    }
}
