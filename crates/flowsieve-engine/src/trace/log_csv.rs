//! DNS records as CSV with a header line; the columns may stand in any order.

use std::io::{self, Read};

use csv::{ByteRecord, ErrorKind, ReaderBuilder};

use super::log_entries::{Content, Entries, Fields, MAX_LINE_BYTES};
use super::error::{Fault, TraceErrorKind};
use super::packet::MAX_BATCH;
use super::read_buffer::ReadBuffer;

/// Columns that a header must name: time, asker, asked, and name of the query.
pub(super) const REQUIRED: [&str; 4] = ["ts", "src", "dst", "qname"];

const BUFFER_BYTES: usize = 64 * 1024;

pub(super) struct LogCsv {
    reader: csv::Reader<Bounded>,
    columns: Columns,
    record: ByteRecord,
}

#[derive(Clone, Copy, Debug)]
struct Columns {
    required: [usize; 4],
    protocol: Option<usize>,
    source_port: Option<usize>,
    destination_port: Option<usize>,
}

impl LogCsv {
    /// Reads the header line.
    pub(super) fn open(buffer: ReadBuffer) -> Result<Self, Fault> {
        let reader = ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .trim(csv::Trim::All)
            .buffer_capacity(BUFFER_BYTES)
            .from_reader(Bounded { buffer, left: 0 });
        let none = Columns {
            required: [0; 4],
            protocol: None,
            source_port: None,
            destination_port: None,
        };
        let mut log = Self {
            reader,
            columns: none,
            record: ByteRecord::new(),
        };
        log.advance()?;
        let names: Vec<String> = log
            .record
            .iter()
            .map(|name| {
                String::from_utf8_lossy(name)
                    .trim_start_matches('\u{feff}')
                    .to_lowercase()
            })
            .collect();
        let find = |wanted: &[&str]| {
            names
                .iter()
                .position(|name| wanted.contains(&name.as_str()))
        };
        for (column, name) in log.columns.required.iter_mut().zip(REQUIRED) {
            *column = find(&[name])
                .ok_or_else(|| Fault::line(0, 1, format!("there is no column `{name}`")))?;
        }
        log.columns.protocol = find(&["proto", "protocol"]);
        log.columns.source_port = find(&["src_port", "sport"]);
        log.columns.destination_port = find(&["dst_port", "dport"]);
        Ok(log)
    }

    /// Appends records to `out` (empty when called); leaves it empty at the end.
    pub(super) fn fill(&mut self, out: &mut Entries) -> Result<(), Fault> {
        while out.len() < MAX_BATCH && self.advance()? {
            if let Err(reason) = self.read_record(out) {
                let position = self.record.position();
                let place = position.map_or((0, 0), |place| (place.byte(), place.line()));
                out.skip(place.0, place.1, reason);
            }
        }
        Ok(())
    }

    fn read_record(&self, out: &mut Entries) -> Result<(), String> {
        let [time, source, destination, name] = self.columns.required;
        let field = |column: usize| {
            let bytes = self.record.get(column).ok_or("it has too few columns")?;
            std::str::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())
        };
        let optional = |column: Option<usize>| column.and_then(|column| field(column).ok());
        // An empty cell is a record without a query; the root is written as a dot.
        let name = self.record.get(name).ok_or("it has too few columns")?;
        out.push(&Fields {
            time: field(time)?,
            source: field(source)?,
            destination: field(destination)?,
            protocol: optional(self.columns.protocol),
            source_port: optional(self.columns.source_port),
            destination_port: optional(self.columns.destination_port),
            content: Content::Dns {
                name: (!name.is_empty()).then_some(name),
                escaped: false,
                is_response: false,
            },
        })
    }

    /// Reads the next record; false at the end.
    fn advance(&mut self) -> Result<bool, Fault> {
        self.reader.get_mut().left = MAX_LINE_BYTES + BUFFER_BYTES;
        let position = self.reader.position().clone();
        self.reader
            .read_byte_record(&mut self.record)
            .map_err(|error| {
                let (offset, line) = (position.byte(), position.line());
                match error.into_kind() {
                    ErrorKind::Io(error) if error.kind() == io::ErrorKind::InvalidData => {
                        Fault::line(offset, line, error.to_string())
                    }
                    ErrorKind::Io(error) => Fault::from_io(error, offset),
                    other => Fault::at(
                        offset,
                        TraceErrorKind::MalformedLine {
                            line,
                            reason: format!("{other:?}"),
                        },
                    ),
                }
            })
    }
}

/// A buffer that gives only so much for one record: an open quote would otherwise swallow the file.
struct Bounded {
    buffer: ReadBuffer,
    left: usize,
}

impl Read for Bounded {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        let room = target.len().min(self.left);
        if room == 0 && !target.is_empty() {
            let reason = format!("it is longer than {MAX_LINE_BYTES} bytes");
            return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
        }
        let count = self.buffer.read(&mut target[..room])?;
        self.left -= count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::super::log_tests::{names, read};
    use super::super::error::TraceErrorKind;

    #[test]
    fn columns_stand_in_any_order() {
        let log = read(
            b"qname, dst,\"src\",proto,ts,sport,dport\r\n\
              a.example.,10.0.0.2,10.0.0.1,udp,1.5,1234,53\n\
              ,10.0.0.2,10.0.0.1,udp,1.5,1234,53\n\
              \"b,c.example\",::2,::1,,1970-01-01T00:00:02Z,,\n\
              .,::2,::1,6,3,7,8\n",
        );
        assert!(log.error.is_none(), "{:?}", log.error);
        assert_eq!(names(&log), ["a.example", "b,c.example", ""]);
        assert_eq!(log.without_query, 1);
        assert_eq!(log.entries[0].transport, Some((17, 1234, 53)));
        assert_eq!(log.entries[1].transport, None);
        assert_eq!(log.entries[2].transport, Some((6, 7, 8)));
        assert_eq!(log.entries[1].time_ns, 2_000_000_000);
        assert_eq!(log.container, "dns-csv");
    }

    #[test]
    fn a_malformed_line_is_named() {
        let log = read(b"ts,src,dst,qname\n1,::1,::2,a\n2,::1\n3,::1,::2,b\n");
        assert_eq!(names(&log), ["a", "b"]);
        let error = log.error.unwrap();
        assert!(
            matches!(
                error.kind,
                TraceErrorKind::LinesSkipped {
                    line: 3,
                    others: 0,
                    ..
                }
            ),
            "{error}"
        );
    }

    #[test]
    fn an_open_quote_does_not_swallow_the_memory() {
        let mut text = b"ts,src,dst,qname\n1,::1,::2,a\n2,::1,::2,\"".to_vec();
        text.extend(std::iter::repeat_n(b'x', 3 << 20));
        let log = read(&text);
        assert_eq!(log.entries.len(), 1);
        let error = log.error.unwrap();
        assert!(
            matches!(error.kind, TraceErrorKind::MalformedLine { line: 3, .. }),
            "{error}"
        );
    }
}
