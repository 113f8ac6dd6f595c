//! dnstap: what a DNS server saw, message by message, as Protocol Buffers in Frame Streams.
//!
//! A message has its type (who talks with whom), the addresses and ports of both ends, times, and
//! the DNS message itself in wire form. Which of these there are is up to the server.

use std::net::IpAddr;
use std::ops::Range;

use etherparse::IpNumber;

use super::dnstap_types::DnstapTypes;
use super::error::ReadError;
use super::format::{Batch, Class, Format, InputFormat, PacketSource};
use super::frame_streams::{self, Frames};
use super::packet::{LogContent, LogEntry, LogQuestion, MAX_BATCH};
use super::protobuf::{Fields, Malformed, Value};
use super::read_buffer::ReadBuffer;
use super::time::{NANOS_PER_SECOND, saturate};

pub(super) const FORMAT: Format = Format {
    containers: &["dnstap"],
    words: "dnstap",
    class: Class::BinaryLog,
    recognise: |buffer| {
        let content = frame_streams::content_type(buffer);
        (content == Some(CONTENT_TYPE)).then_some("dnstap")
    },
    open: |_, format| {
        let types = match format {
            InputFormat::AutoWith(types) => types,
            _ => DnstapTypes::default(),
        };
        Ok(Box::new(Dnstap { frames: Frames::default(), types }))
    },
};

/// Content that the frame START names in a dnstap file.
const CONTENT_TYPE: &[u8] = b"protobuf:dnstap.Dnstap";

/// A dnstap file.
pub(super) struct Dnstap {
    frames: Frames,
    types: DnstapTypes,
}

impl PacketSource for Dnstap {
    /// Messages stay in the buffer: ranges are positions in [`ReadBuffer::buffered`].
    fn fill(&mut self, buffer: &mut ReadBuffer, batch: &mut Batch) -> Result<(), ReadError> {
        let out = &mut batch.entries;
        while out.len() < MAX_BATCH {
            let Some(length) = self.frames.next(buffer, out.is_empty())? else { return Ok(()) };
            let start = buffer.position() + 4;
            match read(buffer.buffered(), start..start + length, self.types) {
                Ok(Some(entry)) => out.add(entry),
                Ok(None) => {}
                Err(reason) => {
                    out.skip_for(|| ReadError::record(buffer.offset(), self.frames.number, reason));
                }
            }
            buffer.consume(4 + length);
        }
        Ok(())
    }

    fn points_into_buffer(&self) -> bool {
        true
    }
}

/// Reads the record in a frame; `None` if it is no message.
fn read(
    bytes: &[u8],
    frame: Range<usize>,
    types: DnstapTypes,
) -> Result<Option<LogEntry>, Malformed> {
    const MESSAGE: u64 = 14;
    let mut message = None;
    let mut fields = Fields::new(bytes, frame);
    while let Some(field) = fields.next()? {
        if let (MESSAGE, Value::Bytes(range)) = field {
            message = Some(range);
        }
    }
    match message {
        Some(range) => Message::read(bytes, range)?.entry(types).map(Some),
        None => Ok(None),
    }
}

/// The fields of a message that are used.
#[derive(Debug, Default)]
struct Message {
    kind: u64,
    protocol: Option<u64>,
    /// Addresses of the side that asks, and of the side that is asked.
    addresses: [Option<IpAddr>; 2],
    ports: [Option<u64>; 2],
    /// Seconds, nanoseconds and the message of the query, and of the response.
    seconds: [Option<u64>; 2],
    nanoseconds: [u64; 2],
    messages: [Option<Range<usize>>; 2],
}

impl Message {
    fn read(bytes: &[u8], range: Range<usize>) -> Result<Self, Malformed> {
        let mut message = Self::default();
        let mut fields = Fields::new(bytes, range);
        while let Some((number, value)) = fields.next()? {
            // The time of the side that is asked, or of the response.
            let side = usize::from(matches!(number, 5 | 7 | 12..));
            match (number, value) {
                (1, Value::Number(kind)) => message.kind = kind,
                (3, Value::Number(protocol)) => message.protocol = Some(protocol),
                (4 | 5, Value::Bytes(range)) => message.addresses[side] = address(&bytes[range])?,
                (6 | 7, Value::Number(port)) => message.ports[side] = Some(port),
                (8 | 12, Value::Number(seconds)) => message.seconds[side] = Some(seconds),
                (9 | 13, Value::Number(nanoseconds)) => message.nanoseconds[side] = nanoseconds,
                (10 | 14, Value::Bytes(range)) => message.messages[side] = Some(range),
                _ => {}
            }
        }
        Ok(message)
    }

    /// Turns it into a record: a response goes from the side that was asked to the side that asked.
    fn entry(self, types: DnstapTypes) -> Result<LogEntry, Malformed> {
        if self.kind == 0 {
            return Err("the message has no type");
        }
        let is_response = self.kind.is_multiple_of(2);
        let side = usize::from(is_response);
        let [source, destination] = [side, 1 - side].map(|side| self.addresses[side]);
        let ports = [side, 1 - side].map(|side| self.ports[side]);
        let time_ns = self.time_ns(side).ok_or("the message has no time")?;
        let message = |side: usize| self.messages[side].as_ref();
        let range = |range: &Range<usize>| range.start as u32..range.end as u32;
        let own = message(side).map(|it| LogQuestion::Message(range(it)));
        let question = own.or_else(|| Some(LogQuestion::Other(range(message(1 - side)?))));
        Ok(LogEntry {
            time_ns,
            source,
            destination,
            transport: self.protocol.and_then(protocol).and_then(|protocol| {
                let port = |port: Option<u64>| u16::try_from(port?).ok();
                Some((protocol, port(ports[0])?, port(ports[1])?))
            }),
            content: if types.has(self.kind) {
                LogContent::Dns { question: question.unwrap_or(LogQuestion::None), is_response }
            } else {
                LogContent::NotSelected
            },
        })
    }

    /// Returns the time of this side, or else of the other.
    fn time_ns(&self, side: usize) -> Option<i64> {
        let of = |side: usize| {
            let seconds = i128::from(self.seconds[side]?) * i128::from(NANOS_PER_SECOND);
            Some(saturate(seconds + i128::from(self.nanoseconds[side])))
        };
        of(side).or_else(|| of(1 - side))
    }
}

fn address(bytes: &[u8]) -> Result<Option<IpAddr>, Malformed> {
    match bytes.len() {
        0 => Ok(None),
        4 => Ok(bytes.first_chunk::<4>().map(|&bytes| bytes.into())),
        16 => Ok(bytes.first_chunk::<16>().map(|&bytes| bytes.into())),
        _ => Err("an address has neither 4 nor 16 bytes"),
    }
}

/// Returns the protocol below: UDP, TCP, DNS over TLS, over HTTPS, `DNSCrypt` over UDP and TCP, DNS
/// over QUIC.
fn protocol(number: u64) -> Option<u8> {
    match number {
        1 | 5 | 7 => Some(IpNumber::UDP.0),
        2 | 3 | 4 | 6 => Some(IpNumber::TCP.0),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::error::TraceErrorKind;
    use super::super::frame_streams::MAX_FRAME;
    use super::super::log_tests::{Log, read, read_as};
    use super::super::{Capture, InputFormat};
    use super::*;

    fn varint(mut number: u64) -> Vec<u8> {
        let mut out = Vec::new();
        while number >= 0x80 {
            out.push(number as u8 | 0x80);
            number >>= 7;
        }
        out.push(number as u8);
        out
    }

    fn number(field: u64, value: u64) -> Vec<u8> {
        [varint(field << 3), varint(value)].concat()
    }

    fn fixed(field: u64, value: u32) -> Vec<u8> {
        [varint(field << 3 | 5), value.to_le_bytes().to_vec()].concat()
    }

    fn bytes(field: u64, value: &[u8]) -> Vec<u8> {
        [varint(field << 3 | 2), varint(value.len() as u64), value.to_vec()].concat()
    }

    fn frame(payload: &[u8]) -> Vec<u8> {
        [&(payload.len() as u32).to_be_bytes(), payload].concat()
    }

    /// Returns a data frame with a message of these fields.
    fn message(fields: &[Vec<u8>]) -> Vec<u8> {
        frame(&[bytes(1, b"identity"), bytes(14, &fields.concat()), number(15, 1)].concat())
    }

    fn start(content: &[u8]) -> Vec<u8> {
        let mut out = vec![0, 0, 0, 0];
        out.extend((12 + content.len() as u32).to_be_bytes());
        out.extend([0, 0, 0, 2, 0, 0, 0, 1]);
        out.extend((content.len() as u32).to_be_bytes());
        out.extend(content);
        out
    }

    const STOP: &[u8] = &[0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 3];
    const QUERY: &[u8] = b"a query";
    const RESPONSE: &[u8] = b"a response";

    /// Between a client and a resolver, of this type.
    fn of_client(kind: u64) -> Vec<u8> {
        message(&[
            number(1, kind),
            number(2, 1),
            number(3, 1),
            bytes(4, &[192, 0, 2, 1]),
            bytes(5, &[192, 0, 2, 53]),
            number(6, 40_000),
            number(7, 53),
            number(8, 1_700_000_000),
            fixed(9, 5),
            bytes(10, QUERY),
            bytes(11, b"\0"),
            number(12, 1_700_000_001),
            fixed(13, 6),
            bytes(14, RESPONSE),
        ])
    }

    fn file(frames: &[Vec<u8>]) -> Vec<u8> {
        [start(CONTENT_TYPE), frames.concat(), STOP.to_vec()].concat()
    }

    fn selected(log: &Log) -> usize {
        let chosen = |entry: &&LogEntry| entry.content != LogContent::NotSelected;
        log.entries.iter().filter(chosen).count()
    }

    #[test]
    fn queries_and_responses_are_read() {
        let log = read(&file(&[of_client(5), of_client(6)]));
        assert!(log.error.is_none(), "{:?}", log.error);
        assert_eq!(log.container, "dnstap");
        assert_eq!(log.names, [QUERY, RESPONSE]);
        let [query, response] = &log.entries[..] else { panic!("two records") };
        assert_eq!(query.time_ns, 1_700_000_000_000_000_005);
        assert_eq!(response.time_ns, 1_700_000_001_000_000_006);
        assert_eq!(query.source.unwrap().to_string(), "192.0.2.1");
        assert_eq!(query.destination.unwrap().to_string(), "192.0.2.53");
        assert_eq!(query.transport, Some((17, 40_000, 53)));
        assert_eq!((response.source, response.destination), (query.destination, query.source));
        assert_eq!(response.transport, Some((17, 53, 40_000)));
    }

    #[test]
    fn what_a_message_does_not_have_is_not_there() {
        let log = read(&file(&[message(&[
            number(1, 5),
            number(3, 4),
            bytes(5, &[0x20; 16]),
            number(12, 7),
            bytes(14, RESPONSE),
        ])]));
        assert!(log.error.is_none(), "{:?}", log.error);
        // The time and the question are those of the response.
        assert_eq!(log.entries[0].time_ns, 7_000_000_000);
        assert_eq!(log.names, [RESPONSE]);
        assert_eq!(log.entries[0].source, None);
        assert_eq!(log.entries[0].transport, None);
    }

    #[test]
    fn types_are_selected() {
        let bytes = file(&(1..=15).map(of_client).collect::<Vec<_>>());
        for (names, count) in
            [("client", 2), ("client-query", 1), ("auth-response", 1), ("update", 2), ("all", 15)]
        {
            let types = DnstapTypes::of_name(names).unwrap();
            let log = read_as(&bytes, InputFormat::AutoWith(types));
            assert_eq!((log.entries.len(), selected(&log)), (15, count), "{names}");
            assert_eq!(types.names(), names);
        }
        let one = |name| DnstapTypes::of_name(name).unwrap();
        assert_eq!(one("client").and(one("auth")), DnstapTypes::default());
        assert_eq!(one("client-query").and(one("client-response")), one("client"));
        assert_eq!(DnstapTypes::default().names(), "auth,client");
        assert_eq!(selected(&read(&bytes)), 4);
        for bad in ["", "clients", "client-", "-query", "ALL"] {
            assert_eq!(DnstapTypes::of_name(bad), None, "{bad}");
        }
    }

    #[test]
    fn every_message_before_a_cut_is_there() {
        let whole = [of_client(5), of_client(6), of_client(5)];
        let bytes = file(&whole);
        let head = start(CONTENT_TYPE).len();
        let length = whole[0].len();
        for cut in head..bytes.len() {
            let log = read(&bytes[..cut]);
            let expected = ((cut - head) / length).min(3);
            assert_eq!(log.entries.len(), expected, "{cut}");
            let at_a_frame = (cut - head).is_multiple_of(length) && cut - head <= 3 * length;
            assert_eq!(log.error.is_none(), at_a_frame, "{cut}");
        }
    }

    #[test]
    fn files_put_together_are_one() {
        let one = file(&[of_client(5)]);
        let log = read(&[one.clone(), one].concat());
        assert!(log.error.is_none(), "{:?}", log.error);
        assert_eq!(log.entries.len(), 2);
    }

    #[test]
    fn a_frame_that_cannot_be_used_is_skipped_and_named() {
        let no_time = message(&[number(1, 5)]);
        let bad = frame(b"\xff\xff");
        let other = frame(&number(15, 2));
        let log = read(&file(&[of_client(5), no_time, bad, other, of_client(6)]));
        assert_eq!(log.entries.len(), 2);
        let error = log.error.unwrap();
        assert!(
            matches!(error.kind, TraceErrorKind::RecordsSkipped { record: 2, others: 1, .. }),
            "{error}"
        );
        let sentence = error.to_string();
        assert!(sentence.contains("the message has no time"), "{sentence}");
    }

    #[test]
    fn a_length_that_is_claimed_is_an_error_and_no_memory() {
        for (length, limit) in [(u32::MAX, MAX_FRAME), (MAX_FRAME + 1, MAX_FRAME)] {
            let mut bytes = [start(CONTENT_TYPE), of_client(5)].concat();
            bytes.extend(length.to_be_bytes());
            bytes.extend([7; 100]);
            let log = read(&bytes);
            assert_eq!(log.entries.len(), 1);
            let kind = log.error.unwrap().kind;
            let expected = (u64::from(length), u64::from(limit));
            assert!(
                matches!(kind, TraceErrorKind::RecordTooLong { packet: 2, length, limit } if (length, limit) == expected),
                "{kind:?}"
            );
        }
    }

    #[test]
    fn other_frame_streams_are_not_dnstap() {
        for bytes in [start(b"protobuf:other.Other"), start(b""), vec![0; 200]] {
            let source = Box::new(std::io::Cursor::new(bytes));
            let opened = Capture::from_reader(std::path::Path::new("x"), source, InputFormat::Auto);
            let kind = opened.unwrap_err().kind;
            assert!(matches!(kind, TraceErrorKind::NotACapture { .. }), "{kind:?}");
        }
    }
}
