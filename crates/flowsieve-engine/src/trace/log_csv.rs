//! DNS queries and flows as CSV with a header line; the columns may stand in any order.
//!
//! | rows | columns that there must be |
//! |---|---|
//! | DNS queries | `ts`, `src`, `dst`, `qname` |
//! | flows of `flowsieve flows`, under any of its names | a start, two addresses, a protocol |
//! | flows of `nfdump -o csv` | the same, under nfdump's names |

use csv_core::{ReadRecordResult, Reader, ReaderBuilder, Terminator};

use super::error::ReadError;
use super::format::{self, Batch, Class, Format, PacketSource, Verdict};
use super::log_columns::{Cells, Columns, Rows, header, rows};
use super::log_entries::Lines;
use super::read_buffer::ReadBuffer;

/// An empty cell is a record without a query; the root is written as a dot.
const CELLS: Cells<'_> =
    Cells { unset: b"", empty: b"", escaped: false, too_few: "it has too few columns" };

pub(super) const FORMAT: Format = Format {
    containers: &["dns-csv", "flow-csv", "nfdump-csv"],
    words: "nfdump's CSV, lists of flows as CSV, DNS queries as CSV (columns ts, src, dst, qname)",
    class: Class::TextLog,
    recognise: |buffer| format::ask_lines(buffer, |line| Verdict::Break(container(line))),
    open: |buffer, _| Ok(Box::new(LogCsv::open(buffer)?)),
};

/// Returns the container whose header line this is.
fn container(line: &[u8]) -> Option<&'static str> {
    if line.starts_with(b"#") || line.starts_with(b"{") {
        return None;
    }
    let names = header(line.split(|&byte| byte == b','));
    Some(match rows(&names)? {
        Rows::Queries => "dns-csv",
        Rows::Flows => "flow-csv",
        Rows::Nfdump => "nfdump-csv",
    })
}

pub(super) struct LogCsv {
    lines: Lines,
    /// `None` from the summary on.
    columns: Option<Columns>,
    row: Row,
}

impl LogCsv {
    /// Reads the header line.
    fn open(buffer: &mut ReadBuffer) -> Result<Self, ReadError> {
        let mut lines = Lines::default();
        let length = lines.advance(buffer)?.unwrap_or(0);
        let mut row = Row::default();
        let columns = row
            .parse(&buffer.unread()[..length])
            .and_then(|()| Columns::new(&header(row.cells())).ok_or("a column is missing"))
            .map_err(|reason| ReadError::line(0, 1, reason))?;
        Ok(Self { lines, columns: Some(columns), row })
    }
}

impl PacketSource for LogCsv {
    fn fill(&mut self, buffer: &mut ReadBuffer, batch: &mut Batch) -> Result<(), ReadError> {
        let Self { lines, columns, row } = self;
        lines.read_each(buffer, &mut batch.entries, |line, out| {
            if let Err(reason) = row.parse(line) {
                return if columns.is_some() { Err(reason.to_owned()) } else { Ok(()) };
            }
            if row.ends.len() == 1 && columns.is_none_or(|it| it.rows == Rows::Nfdump) {
                // The head of the summary, or a remark that there is no flow.
                columns.take_if(|_| row.cell(0) == Some(b"Summary"));
                return Ok(());
            }
            let read = columns.map(|it| it.read(CELLS, |column| row.cell(column), out));
            if read == Some(Ok(())) {
                return Ok(());
            }
            // Files may hold several lists, each with a header.
            match Columns::new(&header(row.cells())) {
                None => read.unwrap_or(Ok(())),
                next => {
                    *columns = next;
                    Ok(())
                }
            }
        })
    }
}

/// The cells of a line. None of these lists has records of more than one line, so that an open quote
/// costs no more than its line.
#[derive(Debug)]
struct Row {
    parser: Box<Reader>,
    text: Vec<u8>,
    /// The end of each cell in the text.
    ends: Vec<usize>,
}

impl Default for Row {
    fn default() -> Self {
        let parser = ReaderBuilder::new().terminator(Terminator::Any(b'\n')).build();
        Self { parser: Box::new(parser), text: Vec::new(), ends: Vec::new() }
    }
}

impl Row {
    fn parse(&mut self, line: &[u8]) -> Result<(), &'static str> {
        if line.contains(&b'\r') {
            return Err("it has a carriage return inside");
        }
        self.parser.reset();
        self.text.resize(line.len() + 1, 0);
        self.ends.resize(line.split(|byte| *byte == b',').count(), 0);
        let (_, _, length, cells) = self.parser.read_record(line, &mut self.text, &mut self.ends);
        let (result, _, _, last) =
            self.parser.read_record(b"\n", &mut self.text[length..], &mut self.ends[cells..]);
        self.ends.truncate(cells + last);
        match result {
            ReadRecordResult::Record => Ok(()),
            _ => Err("a quote in it does not end"),
        }
    }

    fn cell(&self, column: usize) -> Option<&[u8]> {
        let end = *self.ends.get(column)?;
        let start = column.checked_sub(1).map_or(0, |before| self.ends[before]);
        Some(self.text[start..end].trim_ascii())
    }

    fn cells(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.ends.len()).map_while(|column| self.cell(column))
    }
}

#[cfg(test)]
mod tests {
    use super::super::error::TraceErrorKind;
    use super::super::log_tests::{names, read};
    use super::super::packet::{LogContent, LoggedFlow};

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
            matches!(error.kind, TraceErrorKind::LinesSkipped { line: 3, others: 0, .. }),
            "{error}"
        );
    }

    /// The ends in time, the transport, the packets and the bytes of the only flow.
    fn flow(text: &str) -> (i64, Option<(u8, u16, u16)>, LoggedFlow) {
        let log = read(text.as_bytes());
        assert!(log.error.is_none(), "{:?}", log.error);
        let [entry] = &log.entries[..] else { panic!("{} flows", log.entries.len()) };
        let LogContent::Flow(flow) = entry.content else { panic!("{entry:?}") };
        (entry.time_ns, entry.transport, flow)
    }

    #[test]
    fn lists_of_flows_are_read_under_each_of_their_names() {
        let expected = LoggedFlow {
            end_ns: 1_700_000_001_500_000_000,
            packets: [3, 2],
            bytes: [180, 90],
            tcp_flags: [27, 18],
        };
        for (header, times) in [
            (
                "start_ns,start,end_ns,end,src,dst,src_port,dst_port,proto,packets_fwd,packets_rev,bytes_fwd,bytes_rev,tcp_flags_fwd,tcp_flags_rev",
                "1700000000000000000,x,1700000001500000000,x",
            ),
            (
                "ts,duration,id.orig_h,id.resp_h,id.orig_p,id.resp_p,proto,orig_pkts,resp_pkts,orig_ip_bytes,resp_ip_bytes,tcp_flags_fwd,tcp_flags_rev",
                "1700000000.000000000,1.500000000",
            ),
            (
                "event.start,event.end,source.ip,destination.ip,source.port,destination.port,network.iana_number,source.packets,destination.packets,source.bytes,destination.bytes,tcp_flags_fwd,tcp_flags_rev",
                "2023-11-14T22:13:20.000000000Z,2023-11-14T22:13:21.500000000Z",
            ),
        ] {
            let protocol = if header.starts_with("ts") { "tcp" } else { "6" };
            let row =
                format!("{header}\n{times},10.0.0.1,10.0.0.2,1,2,{protocol},3,2,180,90,27,18\n");
            let found = flow(&row);
            let start = 1_700_000_000_000_000_000;
            assert_eq!(found, (start, Some((6, 1, 2)), expected), "{header}");
        }
    }

    #[test]
    fn nfdump_ends_with_a_summary() {
        let text = "ts,te,td,sa,da,sp,dp,pr,flg,fwd,stos,ipkt,ibyt,opkt,obyt\n\
            2023-11-14 22:13:20,2023-11-14 22:13:21,1.500,10.0.0.1,10.0.0.2,0,2048,ICMP,.......S,0,0,3,180,0,0\n\
            Summary\nflows,bytes,packets,avg_bps,avg_pps,avg_bpp\n1,180,3,0,0,0\n";
        let (start, transport, found) = flow(text);
        assert_eq!(start, 1_700_000_000_000_000_000);
        assert_eq!(transport, Some((1, 0, 0)));
        assert_eq!(found.end_ns, start + 1_000_000_000);
        assert_eq!((found.packets, found.bytes), ([3, 0], [180, 0]));
        assert_eq!(found.tcp_flags, [2, 0]);
        assert_eq!(read(text.as_bytes()).container, "nfdump-csv");
        let none = read(b"ts,te,td,sa,da,sp,dp,pr\nNo matching flows\nSummary\n");
        assert!(none.error.is_none() && none.entries.is_empty());
    }

    #[test]
    fn another_list_may_follow_with_its_own_header() {
        let nfdump = |header: &str, row: &str| {
            format!("{header}\n{row}\nSummary\nflows,bytes\n1,\"\nTime window: x - y\n")
        };
        let one = nfdump("ts,te,td,sa,da,sp,dp,pr", "1,1,0,::1,::2,1,2,UDP");
        let two = nfdump("ts,te,td,da,sa,sp,dp,pr", "2,2,0,::2,::1,1,2,UDP");
        let none = "ts,te,td,sa,da,sp,dp,pr\nNo matching flows\nSummary\n";
        let log = read([&one, none, &two].map(str::to_owned).concat().as_bytes());
        assert!(log.error.is_none(), "{:?}", log.error);
        assert_eq!(log.entries.len(), 2);
        assert_eq!(log.entries[0].source, log.entries[1].source);

        let log = read(b"ts,src,dst,qname\n1,::1,::2,a\nts,dst,src,qname\n2,::2,::1,b\n");
        assert!(log.error.is_none(), "{:?}", log.error);
        assert_eq!(log.entries[0].source, log.entries[1].source);
    }

    #[test]
    fn an_open_quote_costs_its_line() {
        let log = read(
            b"ts,src,dst,qname\n1,::1,::2,a\n2,::1,::2,\"b\n2,::1,::2,x\r2,::1,::2,y\n3,::1,::2,\"c\"\n4,::1,::2,d\"\n\n5,::1,::2,\"e",
        );
        assert_eq!(names(&log), ["a", "c", "d\""]);
        let error = log.error.unwrap();
        assert!(
            matches!(error.kind, TraceErrorKind::LinesSkipped { line: 3, others: 2, .. }),
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
        assert!(matches!(error.kind, TraceErrorKind::MalformedLine { line: 3, .. }), "{error}");
    }

    #[test]
    fn newer_versions_of_nfdump_have_other_names() {
        let start = 1_700_000_000_250_000_000;
        let expected = LoggedFlow {
            end_ns: start + 1_500_000_000,
            packets: [3, 0],
            bytes: [180, 0],
            tcp_flags: [0, 0],
        };
        // The format csv, which has no summary.
        let csv = "firstSeen,duration,proto,srcAddr,srcPort,dstAddr,dstPort,packets,bytes,bps,bpp,flows\n\
            2023-11-14 22:13:20.250,1.500,6,10.0.0.1,1024,10.0.0.2,80,3,180,960,60,1\n";
        assert_eq!(flow(csv), (start, Some((6, 1024, 80)), expected));
        assert_eq!(read(csv.as_bytes()).container, "nfdump-csv");
        // The format csv-fast, whose times are milliseconds.
        let fast = "cnt,af,firstSeen,lastSeen,proto,srcAddr,srcPort,dstAddr,dstPort,srcAS,dstAS,input,output,flags,srcTos,packets,bytes\n\
            1,2,1700000000250,1700000001750,6,10.0.0.1,1024,10.0.0.2,80,0,0,0,0,...AP.SF,0,3,180\n";
        let flags = LoggedFlow { tcp_flags: [27, 0], ..expected };
        assert_eq!(flow(fast), (start, Some((6, 1024, 80)), flags));
        // Columns that were asked for by name.
        let named = "firstSeen,lastSeen,srcAddr,dstAddr,srcPort,dstPort,proto,inPackets,inBytes,outPackets,outBytes,flags\n\
            1700000000.250,1700000001.750,::1,::2,1024,53,17,3,180,2,90,........\n";
        let both = LoggedFlow { packets: [3, 2], bytes: [180, 90], ..expected };
        assert_eq!(flow(named), (start, Some((17, 1024, 53)), both));
    }
}
