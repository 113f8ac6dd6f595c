//! C-DNS (RFC 8618): queries with their responses, block by block, in CBOR.
//!
//! ```text
//!   [ "C-DNS", preamble, [ block, … ] ]
//!   block: { 0: earliest time, 2: tables of what occurs more than once, 3: [ query with response, … ] }
//! ```
//!
//! A query with its response gives two records, as they are two messages. What its writer left out,
//! an address or a port, the records lack.

use std::net::IpAddr;
use std::ops::Range;

use etherparse::IpNumber;

use super::cbor::{Cursor, Left, ParseError};
use super::error::{ReadError, TraceErrorKind};
use super::format::{Batch, Class, Format, PacketSource};
use super::log_entries::Entries;
use super::packet::{LogContent, LogEntry, LogQuestion, MAX_BATCH};
use super::read_buffer::ReadBuffer;
use super::time::{NANOS_PER_SECOND, saturate};

const NAME: &str = "cdns";

/// Longest block. The format sets no limit; writers have thousands of queries in one, in less than
/// a megabyte.
const MAX_BLOCK: usize = 16 << 20;

/// Longest preamble.
const MAX_PREAMBLE: usize = 1 << 20;

/// Most items of a table.
const MAX_ITEMS: usize = 1 << 18;

pub(super) const FORMAT: Format = Format {
    containers: &[NAME],
    words: "C-DNS",
    class: Class::BinaryLog,
    recognise: |buffer| {
        let may_be = matches!(buffer.unread(), [_, b'\x65', b'C', b'-', ..]);
        let is_one = may_be && buffer.fill(MARK_BYTES) > 0 && has_mark(buffer.unread());
        is_one.then_some(NAME)
    },
    open: |buffer, _| Ok(Box::new(Cdns::open(buffer)?)),
};

/// Returns whether a stream with this start is C-DNS.
fn has_mark(head: &[u8]) -> bool {
    matches!(head, [0x83 | 0x9f, rest @ ..] if rest.starts_with(b"\x65C-DNS"))
}

/// Bytes that [`has_mark`] needs.
const MARK_BYTES: usize = 7;

/// A C-DNS file.
pub(super) struct Cdns {
    /// Ticks per second, for each of the parameters that a block may name.
    ticks: Vec<u64>,
    blocks: Left,
    block: Option<Block>,
    /// Number of queries with their responses so far.
    number: u64,
}

/// A block that is whole in the buffer. Ranges count from its first byte.
#[derive(Debug, Default)]
struct Block {
    length: usize,
    earliest_ns: i128,
    ticks: u64,
    addresses: Vec<Range<u32>>,
    names: Vec<Range<u32>>,
    signatures: Vec<Signature>,
    /// Position of the next query, and how many there are from there on.
    next: usize,
    left: Left,
    /// Reason that it is not whole: then its beginning is read.
    error: Option<ParseError>,
}

/// Fields that many queries share.
#[derive(Clone, Copy, Debug, Default)]
struct Signature {
    server: Option<u64>,
    server_port: Option<u16>,
    transport: Option<u64>,
    flags: Option<u64>,
}

/// A query with its response.
#[derive(Clone, Copy, Debug, Default)]
struct Exchange {
    offset: u64,
    client: Option<u64>,
    client_port: Option<u16>,
    signature: Option<u64>,
    delay: Option<i128>,
    name: Option<u64>,
}

impl Cdns {
    /// Reads up to the first block.
    fn open(buffer: &mut ReadBuffer) -> Result<Self, ReadError> {
        let mut needed = MARK_BYTES;
        loop {
            let present = buffer.require(needed)?;
            if present < needed {
                return Err(ReadError::cut_in_header(NAME, needed, present));
            }
            match preamble(buffer.unread()) {
                Ok((ticks, blocks, length)) => {
                    buffer.consume(length);
                    return Ok(Self { ticks, blocks, block: None, number: 0 });
                }
                Err(ParseError::Incomplete) if present <= MAX_PREAMBLE => needed = present + 1,
                Err(error) => {
                    let reason = match error {
                        ParseError::Incomplete => "its preamble does not end",
                        ParseError::Malformed(reason) => reason,
                    };
                    let kind = match draft_version(buffer.unread()) {
                        Some((major, minor)) => {
                            TraceErrorKind::UnsupportedVersion { container: NAME, major, minor }
                        }
                        None => TraceErrorKind::CorruptHeader {
                            container: NAME,
                            reason: reason.to_owned(),
                        },
                    };
                    return Err(ReadError::at(0, kind));
                }
            }
        }
    }

    /// Reads the next block; returns false if there is none.
    fn next_block(&mut self, buffer: &mut ReadBuffer) -> Result<bool, ReadError> {
        if self.blocks == Some(0) {
            return Ok(false);
        }
        // The length of a block is known at its end only.
        let mut needed = 1;
        let (length, error) = loop {
            let present = buffer.require(needed)?;
            let mut cursor = Cursor::new(buffer.unread(), 0);
            let mut blocks = self.blocks;
            let whole = cursor.more(&mut blocks).and_then(|more| {
                if more {
                    cursor.skip()?;
                }
                Ok(more)
            });
            match whole {
                Ok(more) => {
                    self.blocks = blocks;
                    if !more {
                        return Ok(false);
                    }
                    break (cursor.at, None);
                }
                Err(ParseError::Incomplete) if present >= needed && present <= MAX_BLOCK => {
                    needed = (present * 2).min(MAX_BLOCK + 1);
                }
                Err(error) => break (present, Some(error)),
            }
        };
        let block = Block::read(&buffer.unread()[..length], &self.ticks, error);
        self.block = Some(block.map_err(|found| {
            block_error(buffer.offset(), self.number, length, error.unwrap_or(found))
        })?);
        Ok(true)
    }
}

impl PacketSource for Cdns {
    fn fill(&mut self, buffer: &mut ReadBuffer, batch: &mut Batch) -> Result<(), ReadError> {
        let out = &mut batch.entries;
        loop {
            if let Some(block) = &mut self.block {
                if !block.add_records(&mut self.number, buffer, out)? {
                    return Ok(());
                }
                buffer.consume(block.length);
                self.block = None;
            }
            if !out.is_empty() || !self.next_block(buffer)? {
                return Ok(());
            }
        }
    }
}

/// Creates the error of a block with this many bytes, after this many queries.
fn block_error(offset: u64, number: u64, length: usize, error: ParseError) -> ReadError {
    let (packet, length) = (number + 1, length as u64);
    let limit = MAX_BLOCK as u64;
    let kind = match error {
        ParseError::Incomplete if length > limit => TraceErrorKind::too_long(packet, length, limit),
        ParseError::Incomplete => return ReadError::cut(offset, packet, length + 1, length),
        ParseError::Malformed(reason) => {
            TraceErrorKind::CorruptBlock { packet, reason: reason.to_owned() }
        }
    };
    ReadError::at(offset, kind)
}

/// Returns the version of a file from before RFC 8618.
fn draft_version(bytes: &[u8]) -> Option<(u16, u16)> {
    let mut cursor = Cursor::new(bytes, 0);
    let mut parts = cursor.array().ok()?;
    for _ in 0..2 {
        cursor.more(&mut parts).ok().filter(|more| *more)?;
        if cursor.at == 1 {
            cursor.skip().ok()?;
        }
    }
    let (mut major, mut minor) = (None, 0);
    // Versions come first; what follows has another form.
    let _ = each(&mut cursor, |key, cursor| {
        match key {
            0 => major = u16::try_from(cursor.number()?).ok(),
            1 => minor = u16::try_from(cursor.number()?).unwrap_or(u16::MAX),
            _ => return Err(ParseError::Malformed("the versions are over")),
        }
        Ok(())
    });
    major.filter(|&major| major != 1).map(|major| (major, minor))
}

/// Returns the ticks per second of all parameters, the number of blocks, and the bytes before the
/// first.
fn preamble(bytes: &[u8]) -> Result<(Vec<u64>, Left, usize), ParseError> {
    let mut cursor = Cursor::new(bytes, 0);
    let mut parts = cursor.array()?;
    if !cursor.more(&mut parts)? {
        return Err(ParseError::Malformed("there is nothing in it"));
    }
    cursor.skip()?;
    if !cursor.more(&mut parts)? {
        return Err(ParseError::Malformed("it has no preamble"));
    }
    let mut ticks = Vec::new();
    each(&mut cursor, |key, cursor| match key {
        0 if cursor.number()? != 1 => Err(ParseError::Malformed("its version is not 1")),
        0 => Ok(()),
        3 => {
            let all = table(cursor, "it has too many parameters", ticks_of)?;
            ticks.extend(all);
            Ok(())
        }
        _ => cursor.skip(),
    })?;
    if !cursor.more(&mut parts)? {
        return Err(ParseError::Malformed("it has no blocks"));
    }
    let blocks = cursor.array()?;
    Ok((ticks, blocks, cursor.at))
}

/// Reads the ticks per second of the next parameters.
fn ticks_of(cursor: &mut Cursor<'_>) -> Result<u64, ParseError> {
    let mut ticks = 0;
    each(cursor, |key, cursor| match key {
        0 => each(cursor, |key, cursor| match key {
            0 => cursor.number().map(|number| ticks = number),
            _ => cursor.skip(),
        }),
        _ => cursor.skip(),
    })?;
    match ticks {
        0 => Err(ParseError::Malformed("a second has no ticks")),
        _ => Ok(ticks),
    }
}

/// Calls `take` with each pair of a map whose keys are numbers.
fn each(
    cursor: &mut Cursor<'_>,
    mut take: impl FnMut(i128, &mut Cursor<'_>) -> Result<(), ParseError>,
) -> Result<(), ParseError> {
    let mut left = cursor.map()?;
    while cursor.more(&mut left)? {
        let key = cursor.integer()?;
        take(key, cursor)?;
    }
    Ok(())
}

/// Reads the items of an array into a table.
fn table<T>(
    cursor: &mut Cursor<'_>,
    too_many: &'static str,
    mut take: impl FnMut(&mut Cursor<'_>) -> Result<T, ParseError>,
) -> Result<Vec<T>, ParseError> {
    let mut items = Vec::new();
    let mut left = cursor.array()?;
    while cursor.more(&mut left)? {
        if items.len() == MAX_ITEMS {
            return Err(ParseError::Malformed(too_many));
        }
        items.push(take(cursor)?);
    }
    Ok(items)
}

/// Reads seconds and ticks.
fn timestamp(cursor: &mut Cursor<'_>) -> Result<[u64; 2], ParseError> {
    let mut parts = [0, 0];
    let mut left = cursor.array()?;
    for part in &mut parts {
        if cursor.more(&mut left)? {
            *part = cursor.number()?;
        }
    }
    while cursor.more(&mut left)? {
        cursor.skip()?;
    }
    Ok(parts)
}

fn string(cursor: &mut Cursor<'_>) -> Result<Range<u32>, ParseError> {
    let range = cursor.string()?;
    Ok(range.start as u32..range.end as u32)
}

fn port(cursor: &mut Cursor<'_>) -> Result<Option<u16>, ParseError> {
    Ok(u16::try_from(cursor.number()?).ok())
}

impl Block {
    /// Reads everything except the queries. In a block that is not whole, it reads what precedes
    /// them.
    fn read(bytes: &[u8], ticks: &[u64], error: Option<ParseError>) -> Result<Self, ParseError> {
        let mut block = Self { length: bytes.len(), left: Some(0), error, ..Self::default() };
        let (mut earliest, mut parameters) = ([0, 0], 0);
        let outcome = each(&mut Cursor::new(bytes, 0), |key, cursor| match key {
            0 => each(cursor, |key, cursor| match key {
                0 => timestamp(cursor).map(|time| earliest = time),
                1 => cursor.number().map(|number| parameters = number),
                _ => cursor.skip(),
            }),
            2 => block.tables(cursor),
            3 => {
                block.next = cursor.at;
                cursor.skip()
            }
            _ => cursor.skip(),
        });
        if block.next == 0 || error.is_none() {
            outcome?;
        }
        if block.next > 0 {
            let mut cursor = Cursor::new(bytes, block.next);
            block.left = cursor.array()?;
            block.next = cursor.at;
        }
        let ticks = usize::try_from(parameters).ok().and_then(|at| ticks.get(at));
        block.ticks =
            *ticks.ok_or(ParseError::Malformed("it names parameters that are not there"))?;
        block.earliest_ns = i128::from(earliest[0]) * i128::from(NANOS_PER_SECOND)
            + block.ns(i128::from(earliest[1]));
        Ok(block)
    }

    fn tables(&mut self, cursor: &mut Cursor<'_>) -> Result<(), ParseError> {
        const TOO_MANY: &str = "a table has too many items";
        each(cursor, |key, cursor| match key {
            0 => table(cursor, TOO_MANY, string).map(|all| self.addresses = all),
            2 => table(cursor, TOO_MANY, string).map(|all| self.names = all),
            3 => table(cursor, TOO_MANY, Signature::read).map(|all| self.signatures = all),
            _ => cursor.skip(),
        })
    }

    fn ns(&self, ticks: i128) -> i128 {
        ticks.saturating_mul(i128::from(NANOS_PER_SECOND)) / i128::from(self.ticks)
    }

    /// Adds the records of the queries that are left, which have numbers above `number`; returns
    /// false if `out` is full.
    fn add_records(
        &mut self,
        number: &mut u64,
        buffer: &ReadBuffer,
        out: &mut Entries,
    ) -> Result<bool, ReadError> {
        let bytes = &buffer.unread()[..self.length];
        let offset = buffer.offset();
        while out.len() + 1 < MAX_BATCH {
            match self.exchange(bytes) {
                Ok(Some(exchange)) => {
                    *number += 1;
                    if let Err(reason) = self.records(exchange, bytes, out) {
                        out.skip_for(|| ReadError::record(offset, *number, reason));
                    }
                }
                Ok(None) => {
                    let error = self.error.map(|it| block_error(offset, *number, bytes.len(), it));
                    return error.map_or(Ok(true), Err);
                }
                Err(error) => {
                    let error = self.error.unwrap_or(error);
                    let place = offset + self.next as u64;
                    return Err(block_error(place, *number, bytes.len(), error));
                }
            }
        }
        Ok(false)
    }

    /// Reads the next query with its response.
    fn exchange(&mut self, bytes: &[u8]) -> Result<Option<Exchange>, ParseError> {
        let mut cursor = Cursor::new(bytes, self.next);
        if !cursor.more(&mut self.left)? {
            return Ok(None);
        }
        let mut found = Exchange::default();
        each(&mut cursor, |key, cursor| match key {
            0 => cursor.number().map(|ticks| found.offset = ticks),
            1 => cursor.number().map(|number| found.client = Some(number)),
            2 => port(cursor).map(|port| found.client_port = port),
            4 => cursor.number().map(|number| found.signature = Some(number)),
            6 => cursor.integer().map(|ticks| found.delay = Some(ticks)),
            7 => cursor.number().map(|number| found.name = Some(number)),
            _ => cursor.skip(),
        })?;
        self.next = cursor.at;
        Ok(Some(found))
    }

    /// Adds the records of a query and its response.
    fn records(
        &self,
        exchange: Exchange,
        bytes: &[u8],
        out: &mut Entries,
    ) -> Result<(), &'static str> {
        const HAS_QUERY: u64 = 1;
        const HAS_RESPONSE: u64 = 2;
        const QUERY_HAS_NO_QUESTION: u64 = 1 << 4;
        const RESPONSE_HAS_NO_QUESTION: u64 = 1 << 5;
        let signature = match exchange.signature {
            None => Signature::default(),
            Some(at) => *item(&self.signatures, at).ok_or("its signature is not in the table")?,
        };
        let client = self.address(exchange.client, &signature, bytes)?;
        let server = self.address(signature.server, &signature, bytes)?;
        let question = match exchange.name {
            None => LogQuestion::None,
            Some(at) => {
                let range = item(&self.names, at).ok_or("its name is not in the table")?;
                let name = &bytes[range.start as usize..range.end as usize];
                LogQuestion::Other(out.add_question(name))
            }
        };
        let flags = signature.flags.unwrap_or(HAS_QUERY);
        let transport = signature.protocol().zip(exchange.client_port.zip(signature.server_port));
        let record = |is_response: bool, time_ns, no_question| LogEntry {
            time_ns: saturate(time_ns),
            source: if is_response { server } else { client },
            destination: if is_response { client } else { server },
            transport: transport.map(|(protocol, (client, server))| {
                if is_response { (protocol, server, client) } else { (protocol, client, server) }
            }),
            content: LogContent::Dns {
                // The name is that of the first question, in either message.
                question: if flags & no_question == 0 {
                    question.clone()
                } else {
                    LogQuestion::None
                },
                is_response,
            },
        };
        let time_ns = self.earliest_ns.saturating_add(self.ns(i128::from(exchange.offset)));
        if flags & HAS_QUERY != 0 {
            out.add(record(false, time_ns, QUERY_HAS_NO_QUESTION));
        }
        if flags & HAS_RESPONSE != 0 {
            // Without a query the time is that of the response.
            let delay = exchange.delay.filter(|_| flags & HAS_QUERY != 0);
            let time_ns = time_ns.saturating_add(self.ns(delay.unwrap_or(0)));
            out.add(record(true, time_ns, RESPONSE_HAS_NO_QUESTION));
        }
        Ok(())
    }

    /// Returns the address with this number in the table.
    fn address(
        &self,
        number: Option<u64>,
        signature: &Signature,
        bytes: &[u8],
    ) -> Result<Option<IpAddr>, &'static str> {
        let Some(number) = number else { return Ok(None) };
        let range = item(&self.addresses, number).ok_or("its address is not in the table")?;
        Ok(signature.address(&bytes[range.start as usize..range.end as usize]))
    }
}

fn item<T>(table: &[T], at: u64) -> Option<&T> {
    table.get(usize::try_from(at).ok()?)
}

impl Signature {
    fn read(cursor: &mut Cursor<'_>) -> Result<Self, ParseError> {
        let mut found = Self::default();
        each(cursor, |key, cursor| match key {
            0 => cursor.number().map(|number| found.server = Some(number)),
            1 => port(cursor).map(|port| found.server_port = port),
            2 => cursor.number().map(|flags| found.transport = Some(flags)),
            4 => cursor.number().map(|flags| found.flags = Some(flags)),
            _ => cursor.skip(),
        })?;
        Ok(found)
    }

    /// Returns an address, which may be a prefix: then the rest is zero.
    fn address(self, prefix: &[u8]) -> Option<IpAddr> {
        const IS_V6: u64 = 1;
        let is_v6 = match self.transport {
            Some(flags) => flags & IS_V6 != 0,
            None => prefix.len() > 4,
        };
        let mut bytes = [0; 16];
        let room = if is_v6 { 16 } else { 4 };
        if prefix.is_empty() || prefix.len() > room {
            return None;
        }
        bytes[..prefix.len()].copy_from_slice(prefix);
        Some(match bytes {
            _ if is_v6 => bytes.into(),
            [a, b, c, d, ..] => [a, b, c, d].into(),
        })
    }

    /// Returns the protocol that carries it: plain over UDP or TCP, over TLS, DTLS or HTTPS.
    fn protocol(self) -> Option<u8> {
        match self.transport? >> 1 & 15 {
            0 | 3 => Some(IpNumber::UDP.0),
            1 | 2 | 4 => Some(IpNumber::TCP.0),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::log_tests::{Log, read};
    use super::super::{Capture, InputFormat};
    use super::*;
    use std::path::Path;

    fn head(major: u8, number: usize) -> Vec<u8> {
        match number {
            0..24 => vec![major << 5 | number as u8],
            _ => [vec![major << 5 | 0x1a], (number as u32).to_be_bytes().to_vec()].concat(),
        }
    }

    fn number(number: usize) -> Vec<u8> {
        head(0, number)
    }

    fn bytes(bytes: &[u8]) -> Vec<u8> {
        [head(2, bytes.len()), bytes.to_vec()].concat()
    }

    fn array(items: &[Vec<u8>]) -> Vec<u8> {
        [head(4, items.len()), items.concat()].concat()
    }

    fn map(pairs: &[(usize, Vec<u8>)]) -> Vec<u8> {
        let pairs_of = pairs.iter().map(|(key, value)| [number(*key), value.clone()].concat());
        [head(5, pairs.len()), pairs_of.collect::<Vec<_>>().concat()].concat()
    }

    const NAMES: [&[u8]; 2] = [b"\x01a\x07example\0", b"\x01B\x07example\0"];

    /// Returns a block with two queries: the first with its response, the second without, and a
    /// response alone.
    fn block() -> Vec<u8> {
        let addresses = [&[192, 0, 2, 1][..], &[192, 0, 2, 53], &[0x20, 1, 0xd, 0xb8]];
        let signature = |transport, flags| {
            map(&[(0, number(1)), (1, number(53)), (2, number(transport)), (4, number(flags))])
        };
        let tables = map(&[
            (0, array(&addresses.map(bytes))),
            (2, array(&NAMES.map(bytes))),
            (3, array(&[signature(0, 3), signature(2, 1), signature(0, 2)])),
        ]);
        let exchanges = array(&[
            map(&[
                (0, number(1500)),
                (1, number(0)),
                (2, number(40_000)),
                (4, number(0)),
                (6, number(250)),
                (7, number(0)),
                (8, number(50)),
            ]),
            map(&[
                (0, number(2000)),
                (1, number(0)),
                (2, number(40_001)),
                (4, number(1)),
                (7, number(1)),
            ]),
            map(&[(0, number(3000)), (4, number(2)), (7, number(1))]),
        ]);
        map(&[
            (0, map(&[(0, array(&[number(1_700_000_000), number(500)])), (1, number(0))])),
            (1, map(&[(0, number(3))])),
            (2, tables),
            (3, exchanges),
        ])
    }

    fn start() -> Vec<u8> {
        let parameters = map(&[(0, map(&[(0, number(1000)), (1, number(5000))])), (1, map(&[]))]);
        let preamble = map(&[(0, number(1)), (1, number(0)), (3, array(&[parameters]))]);
        [&[0x83, 0x65][..], b"C-DNS", &preamble].concat()
    }

    fn file(blocks: &[Vec<u8>]) -> Vec<u8> {
        [start(), array(blocks)].concat()
    }

    fn endless(blocks: &[Vec<u8>]) -> Vec<u8> {
        [start(), vec![0x9f], blocks.concat(), vec![0xff]].concat()
    }

    fn check(log: &Log) {
        assert!(log.error.is_none(), "{:?}", log.error);
        assert_eq!(log.container, "cdns");
        let [query, response, second, alone] = &log.entries[..4] else { panic!("four records") };
        assert_eq!(query.time_ns, 1_700_000_002_000_000_000);
        assert_eq!(response.time_ns, 1_700_000_002_250_000_000);
        assert_eq!(query.source.unwrap().to_string(), "192.0.2.1");
        assert_eq!(query.destination.unwrap().to_string(), "192.0.2.53");
        assert_eq!(query.transport, Some((17, 40_000, 53)));
        assert_eq!(response.source, query.destination);
        assert_eq!(response.transport, Some((17, 53, 40_000)));
        assert_eq!(second.transport, Some((6, 40_001, 53)));
        assert_eq!(alone.destination, None);
        assert_eq!(alone.transport, None);
        let is_response = |entry: &LogEntry| match entry.content {
            LogContent::Dns { is_response, .. } => is_response,
            _ => panic!("DNS"),
        };
        assert_eq!([query, response, second, alone].map(is_response), [false, true, false, true]);
        assert_eq!(&log.names[2][12..], [NAMES[1], &[0, 1, 0, 1]].concat());
    }

    #[test]
    fn queries_and_responses_are_read() {
        for bytes in [file(&[block(), block()]), endless(&[block(), block()])] {
            let log = read(&bytes);
            check(&log);
            assert_eq!(log.entries.len(), 8);
        }
    }

    #[test]
    fn addresses_may_be_prefixes() {
        let of = |transport, bytes: &[u8]| {
            let signature = Signature { transport, ..Signature::default() };
            signature.address(bytes).map(|address| address.to_string())
        };
        assert_eq!(of(Some(1), &[0x20, 1, 0xd, 0xb8]).unwrap(), "2001:db8::");
        assert_eq!(of(Some(0), &[192, 0, 2]).unwrap(), "192.0.2.0");
        assert_eq!(of(None, &[0x20; 16]).unwrap(), "2020:2020:2020:2020:2020:2020:2020:2020");
        assert_eq!(of(Some(0), &[1; 5]), None);
        assert_eq!(of(Some(1), &[1; 17]), None);
        assert_eq!(of(None, &[]), None);
    }

    #[test]
    fn a_message_without_a_question_has_no_name() {
        let named = |flags| {
            let tables =
                map(&[(2, array(&NAMES.map(bytes))), (3, array(&[map(&[(4, number(flags))])]))]);
            let exchange = map(&[(0, number(1)), (4, number(0)), (7, number(0))]);
            let block = map(&[
                (0, map(&[(0, array(&[number(1), number(0)])), (1, number(0))])),
                (2, tables),
                (3, array(&[exchange])),
            ]);
            let log = read(&file(&[block]));
            assert!(log.error.is_none(), "{:?}", log.error);
            assert_eq!(log.entries.len() as u64 + log.without_query, 2);
            let is_response = |entry: &LogEntry| match entry.content {
                LogContent::Dns { is_response, .. } => is_response,
                _ => panic!("DNS"),
            };
            log.entries.iter().map(is_response).collect::<Vec<_>>()
        };
        assert_eq!(named(0b00_0011), [false, true]);
        assert_eq!(named(0b01_0011), [true]);
        assert_eq!(named(0b10_0011), [false]);
        assert_eq!(named(0b11_0011), [true; 0]);
    }

    #[test]
    fn drafts_of_the_format_are_named() {
        // As the compactor wrote them before the standard: versions, then maps in place of arrays.
        let draft = [
            &[0x83, 0x65][..],
            b"C-DNS",
            &[0xbf, 0, 0, 1, 5, 3, 0xbf, 0, 5, 0xff, 0xff, 0x9f, 0xff],
        ];
        let oldest =
            [&[0x83, 0x68][..], b"DNS-STAT", &[0xbf, 0, 2, 1, 0xbf, 0, 5, 0xff, 0xff, 0x9f, 0xff]];
        let refused = |bytes: Vec<u8>| {
            let reader = Box::new(std::io::Cursor::new(bytes));
            let capture = Capture::from_reader(Path::new("x"), reader, InputFormat::Auto);
            capture.unwrap_err().to_string()
        };
        let error = refused(draft.concat());
        assert!(error.contains("cdns version 0.5 is a draft"), "{error}");
        let error = refused(oldest.concat());
        assert!(error.contains("a draft of C-DNS"), "{error}");
    }

    #[test]
    fn what_stands_before_a_cut_is_there() {
        for whole in [file(&[block(), block()]), endless(&[block(), block()])] {
            let mut records = 0;
            for cut in start().len() + 1..whole.len() {
                let log = read(&whole[..cut]);
                assert!(log.error.is_some(), "{cut}");
                assert!(log.entries.len() >= records, "{cut}");
                records = log.entries.len();
            }
            // The last record of an array of known length ends where the file does.
            assert!(records >= 7, "{records}");
        }
    }

    #[test]
    fn many_records_come_in_batches() {
        let log = read(&endless(&vec![block(); 1000]));
        check(&log);
        assert_eq!(log.entries.len(), 4000);
    }

    #[test]
    fn any_byte_may_be_wrong() {
        let whole = endless(&[block(), block()]);
        for at in start().len() + 1..whole.len() {
            for value in [0, 1, 0x1b, 0x5f, 0x7f, 0x80, 0x9b, 0xbf, 0xff] {
                let mut bytes = whole.clone();
                bytes[at] = value;
                let _ = read(&bytes);
            }
        }
    }
}
