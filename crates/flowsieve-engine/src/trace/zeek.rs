//! Zeek's `dns.log`: tab-separated with a header of `#` lines, or a JSON object a line.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::log_entries::{Content, Entries, Fields, Lines};
use super::error::Fault;
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
    /// Where the fields of the current line begin and end.
    fields: Vec<(usize, usize)>,
}

/// Position of each field in a line.
#[derive(Clone, Copy, Debug)]
struct Columns {
    time: usize,
    source: usize,
    destination: usize,
    query: usize,
    protocol: Option<usize>,
    source_port: Option<usize>,
    destination_port: Option<usize>,
}

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
    /// Appends records to `out` (empty when called); leaves it empty at the end.
    pub(super) fn fill(&mut self, buffer: &mut ReadBuffer, out: &mut Entries) -> Result<(), Fault> {
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
            read.map_err(|reason| Fault::line(buffer.offset(), self.lines.number(), reason))?;
        }
        Ok(())
    }

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
                let names: Vec<&[u8]> = words.collect();
                let find = |name: &str| names.iter().position(|field| *field == name.as_bytes());
                let must = |name: &str| find(name).ok_or(format!("there is no field `{name}`"));
                self.columns = Some(Columns {
                    time: must("ts")?,
                    source: must("id.orig_h")?,
                    destination: must("id.resp_h")?,
                    query: must("query")?,
                    protocol: find("proto"),
                    source_port: find("id.orig_p"),
                    destination_port: find("id.resp_p"),
                });
            }
            _ => {}
        }
        Ok(())
    }

    fn read_record(&mut self, line: &[u8], out: &mut Entries) -> Result<(), String> {
        let columns = self.columns.ok_or("it comes before the line `#fields`")?;
        self.fields.clear();
        let mut start = 0;
        for end in line
            .iter()
            .enumerate()
            .filter(|(_, byte)| **byte == self.separator)
        {
            self.fields.push((start, end.0));
            start = end.0 + 1;
        }
        self.fields.push((start, line.len()));
        let field = |column: usize| {
            let &(start, end) = self.fields.get(column).ok_or("it has too few fields")?;
            Ok::<_, String>(&line[start..end])
        };
        let text = |column: usize| {
            std::str::from_utf8(field(column)?).map_err(|_| "it is not UTF-8".to_owned())
        };
        let optional = |column: Option<usize>| column.and_then(|column| text(column).ok());
        let query = field(columns.query)?;
        let name = match query {
            query if query == self.unset => None,
            query if query == self.empty => Some(&b""[..]),
            query => Some(query),
        };
        out.push(&Fields {
            time: text(columns.time)?,
            source: text(columns.source)?,
            destination: text(columns.destination)?,
            protocol: optional(columns.protocol),
            source_port: optional(columns.source_port),
            destination_port: optional(columns.destination_port),
            content: Content::Dns {
                name,
                escaped: true,
                is_response: false,
            },
        })
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
}

impl ZeekJson {
    /// Appends records to `out` (empty when called); leaves it empty at the end.
    pub(super) fn fill(&mut self, buffer: &mut ReadBuffer, out: &mut Entries) -> Result<(), Fault> {
        while out.len() < MAX_BATCH {
            let Some(length) = self.lines.advance(buffer)? else {
                return Ok(());
            };
            let line = buffer.unread()[..length].trim_ascii();
            if !line.is_empty()
                && let Err(reason) = read_json(line, out)
            {
                out.skip(buffer.offset(), self.lines.number(), reason);
            }
        }
        Ok(())
    }
}

fn read_json(line: &[u8], out: &mut Entries) -> Result<(), String> {
    let record: Record<'_> = serde_json::from_slice(line).map_err(|error| error.to_string())?;
    let port = |value: Option<&'_ RawValue>| value.map(|value| value.get().to_owned());
    let (source_port, destination_port) = (port(record.source_port), port(record.destination_port));
    out.push(&Fields {
        time: record.ts.get().trim_matches('"'),
        source: &record.source,
        destination: &record.destination,
        protocol: record.protocol.as_deref(),
        source_port: source_port.as_deref(),
        destination_port: destination_port.as_deref(),
        content: Content::Dns {
            name: record.query.as_deref().map(str::as_bytes),
            escaped: true,
            is_response: false,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::super::log_tests::{names, read};
    use super::super::error::TraceErrorKind;

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
            matches!(
                error.kind,
                TraceErrorKind::LinesSkipped {
                    line: 13,
                    others: 1,
                    ..
                }
            ),
            "{error}"
        );
        assert!(
            error
                .to_string()
                .contains("the source is \"nobody\", not an IP address"),
            "{error}"
        );
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
