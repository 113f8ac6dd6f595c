//! The records of all logs with the text of their names, and the lines of those that are text.

use std::ops::Range;

use etherparse::IpNumber;
use serde_json::value::RawValue;

use super::error::{ReadError, TraceErrorKind};
use super::packet::{LogBatch, LogContent, LogEntry, LogQuestion, LoggedFlow, MAX_BATCH};
use super::read_buffer::ReadBuffer;
use super::select::Chooser;
use super::time;

/// Longest line that is read. A DNS name has at most 255 bytes; the rest is room for answers.
pub(super) const MAX_LINE_BYTES: usize = 1 << 20;

/// Most bytes of a written name that are kept. A byte of a name takes at most seven: a longer one
/// is invalid, and so is the rest of it.
const MAX_NAME_TEXT: usize = 2048;

/// The records of one batch, reused for the next.
#[derive(Debug, Default)]
pub(super) struct Entries {
    records: Vec<LogEntry>,
    text: Vec<u8>,
    /// The first line that was skipped, with the number of those after it.
    skipped: Option<ReadError>,
}

impl Entries {
    /// Notes a line that is not a record.
    pub(super) fn skip(&mut self, offset: u64, line: u64, reason: String) {
        let others = 0;
        let kind = TraceErrorKind::LinesSkipped { line, reason, others };
        self.skip_for(|| ReadError::at(offset, kind));
    }

    /// Notes a record that cannot be used. Only the first creates its error.
    pub(super) fn skip_for(&mut self, error: impl FnOnce() -> ReadError) {
        match &mut self.skipped {
            Some(first) => first.count_other(),
            None => self.skipped = Some(error()),
        }
    }

    /// Adds a record whose ranges point into another text: see [`Self::batch_in`].
    pub(super) fn add(&mut self, entry: LogEntry) {
        self.records.push(entry);
    }

    /// Adds a message with nothing but a question of this name, in wire form; returns its range.
    pub(super) fn add_question(&mut self, name: &[u8]) -> Range<u32> {
        const ONE_QUESTION: [u8; 12] = [0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        const TYPE_AND_CLASS: [u8; 4] = [0, 1, 0, 1];
        // No valid name is longer.
        let name = &name[..name.len().min(256)];
        let start = self.text.len() as u32;
        for part in [&ONE_QUESTION[..], name, &TYPE_AND_CLASS] {
            self.text.extend_from_slice(part);
        }
        start..self.text.len() as u32
    }

    /// Takes the error that reports the skipped lines.
    pub(super) fn take_skipped(&mut self) -> Option<ReadError> {
        self.skipped.take()
    }

    pub(super) fn clear(&mut self) {
        self.records.clear();
        self.text.clear();
    }

    /// Removes the first records, at most this many.
    pub(super) fn remove_first(&mut self, records: usize) {
        self.records.drain(..records.min(self.records.len()));
    }

    pub(super) fn len(&self) -> usize {
        self.records.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Returns the records, which point into the text of this batch.
    pub(super) fn batch(&self) -> LogBatch<'_> {
        self.batch_in(&self.text)
    }

    /// Returns the text: names, and messages made of names.
    pub(super) fn text(&self) -> &[u8] {
        &self.text
    }

    /// Removes the records that are not wanted; they point into `text`, or into that of this batch.
    pub(super) fn choose(&mut self, chooser: &mut Chooser, text: Option<&[u8]>) {
        chooser.entries(&mut self.records, text.unwrap_or(&self.text));
    }

    /// Returns the records, which point into `text`.
    pub(super) fn batch_in<'a>(&'a self, text: &'a [u8]) -> LogBatch<'a> {
        LogBatch { entries: &self.records, text }
    }

    /// Adds a record from its fields as written, or returns which of them is wrong.
    pub(super) fn push(&mut self, fields: &Fields<'_>) -> Result<(), String> {
        let address = |name: &str, value: &str| match value {
            "" => Ok(None),
            value => value.parse().map(Some).map_err(|_| bad(name, value, "an IP address")),
        };
        let time_ns = fields.time.read().ok_or_else(|| {
            bad("the time", fields.time.text(), "epoch seconds or an RFC 3339 time")
        })?;
        let source = address("the source", fields.source)?;
        let destination = address("the destination", fields.destination)?;
        let transport = fields.transport();
        let content = match &fields.content {
            Content::Dns { name, escaped, is_response } => LogContent::Dns {
                question: match name {
                    Some(name) => LogQuestion::Name(self.push_name(name, *escaped)),
                    None => LogQuestion::None,
                },
                is_response: *is_response,
            },
            Content::Flow(flow) => LogContent::Flow(flow.read(time_ns)?),
        };
        self.records.push(LogEntry { time_ns, source, destination, transport, content });
        Ok(())
    }

    fn push_name(&mut self, name: &[u8], escaped: bool) -> Range<u32> {
        let start = self.text.len();
        let mut rest = &name[..name.len().min(MAX_NAME_TEXT)];
        while let Some(&first) = rest.first() {
            let byte = escaped_byte(rest).filter(|_| escaped);
            if escaped && byte.unwrap_or(first) == b'\\' {
                // The text of a name has escapes, these logs have none: `\` becomes `\\`.
                self.text.push(b'\\');
            }
            self.text.push(byte.unwrap_or(first));
            rest = &rest[if byte.is_some() { 4 } else { 1 }..];
        }
        if self.text.len() > start && self.text.last() == Some(&b'.') {
            self.text.pop();
        }
        start as u32..self.text.len() as u32
    }
}

/// Returns the byte that Zeek and Suricata write as `\x2e`.
fn escaped_byte(text: &[u8]) -> Option<u8> {
    let &[b'\\', b'x', high, low, ..] = text else { return None };
    let digit = |byte: u8| char::from(byte).to_digit(16);
    Some((digit(high)? << 4 | digit(low)?) as u8)
}

/// Fields of a record, as written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fields<'a> {
    pub(super) time: Time<'a>,
    /// Empty if the record lacks it, as is the destination.
    pub(super) source: &'a str,
    pub(super) destination: &'a str,
    pub(super) protocol: Option<&'a str>,
    pub(super) source_port: Option<&'a str>,
    pub(super) destination_port: Option<&'a str>,
    pub(super) content: Content<'a>,
}

/// The content of a record, as written.
#[derive(Clone, Copy, Debug)]
pub(super) enum Content<'a> {
    Dns {
        /// `None` if the record has no query.
        name: Option<&'a [u8]>,
        /// The name may hold bytes as `\x2e`, and no other escapes.
        escaped: bool,
        is_response: bool,
    },
    Flow(FlowFields<'a>),
}

/// The fields of a flow, as written.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FlowFields<'a> {
    pub(super) end: Option<End<'a>>,
    pub(super) packets: [Option<&'a str>; 2],
    pub(super) bytes: [Option<&'a str>; 2],
    pub(super) tcp_flags: [Option<&'a str>; 2],
}

/// The end of a flow, as written.
#[derive(Clone, Copy, Debug)]
pub(super) enum End<'a> {
    Time(Time<'a>),
    /// In seconds.
    Duration(&'a str),
}

/// A time, as written.
#[derive(Clone, Copy, Debug)]
pub(super) enum Time<'a> {
    /// In one of the ways of logs.
    Text(&'a str),
    /// As a number of nanoseconds since the epoch.
    Nanoseconds(&'a str),
}

impl<'a> Time<'a> {
    fn text(self) -> &'a str {
        match self {
            Self::Text(text) | Self::Nanoseconds(text) => text,
        }
    }

    fn read(self) -> Option<i64> {
        match self {
            Self::Text(text) => time::from_log(text),
            Self::Nanoseconds(text) => text.parse().ok(),
        }
    }
}

impl FlowFields<'_> {
    /// Parses the numbers. A missing or malformed one is 0.
    fn read(&self, time_ns: i64) -> Result<LoggedFlow, String> {
        let number = |text: Option<&str>| text.and_then(|text| text.parse().ok()).unwrap_or(0);
        let end_ns = match self.end {
            None => time_ns,
            Some(End::Time(end)) => {
                end.read().ok_or_else(|| bad("the end", end.text(), "a time"))?.max(time_ns)
            }
            Some(End::Duration(text)) => {
                let duration = time::from_decimal_seconds(text)
                    .ok_or_else(|| bad("the duration", text, "a number of seconds"))?;
                time_ns.saturating_add(duration.max(0))
            }
        };
        Ok(LoggedFlow {
            end_ns,
            packets: self.packets.map(number),
            bytes: self.bytes.map(number),
            tcp_flags: self.tcp_flags.map(flags),
        })
    }
}

/// Parses TCP flags: a number, or the letters of those that are set.
fn flags(text: Option<&str>) -> u8 {
    let Some(text) = text else { return 0 };
    text.parse().unwrap_or_else(|_| {
        const LETTERS: [(char, u8); 8] =
            [('F', 1), ('S', 2), ('R', 4), ('P', 8), ('A', 16), ('U', 32), ('E', 64), ('C', 128)];
        let set = LETTERS.iter().filter(|(letter, _)| text.contains(*letter));
        set.fold(0, |flags, (_, bit)| flags | bit)
    })
}

fn bad(name: &str, value: &str, wanted: &str) -> String {
    // A sentence stays in one line, whatever stands in a cell.
    let shown = |character: char| {
        if character.is_control() { char::REPLACEMENT_CHARACTER } else { character }
    };
    let value: String = value.chars().take(60).map(shown).collect();
    format!("{name} is \"{value}\", not {wanted}")
}

/// Returns the number of a protocol from its number or name. The name of ICMP does not tell its
/// version.
pub(crate) fn protocol_number(text: &str, is_v6: bool) -> Option<u8> {
    // Names that differ from the registered ones, and the usual ones before a search.
    const NAMES: [(&str, u8); 10] = [
        ("udp", 17),
        ("tcp", 6),
        ("icmp", 1),
        ("icmp6", 58),
        ("ipv6-icmp", 58),
        ("sctp", 132),
        ("gre", 47),
        ("esp", 50),
        ("igmp", 2),
        ("ospf", 89),
    ];
    if let Ok(number) = text.parse() {
        return Some(number);
    }
    let is_text = |name: &str| text.eq_ignore_ascii_case(name);
    let is_keyword = |number: &u8| IpNumber(*number).keyword_str().is_some_and(is_text);
    match NAMES.iter().find(|(name, _)| is_text(name)) {
        Some((_, 1)) if is_v6 => Some(58),
        Some(&(_, number)) => Some(number),
        None => (0..=255).find(is_keyword),
    }
}

/// Returns whether the port columns of a log have ports: for ICMP they may have type and code.
pub(crate) const fn has_ports(protocol: u8) -> bool {
    matches!(IpNumber(protocol), IpNumber::TCP | IpNumber::UDP | IpNumber::SCTP)
}

impl Fields<'_> {
    /// Returns protocol and ports, if all three are present and valid.
    fn transport(&self) -> Option<(u8, u16, u16)> {
        let protocol = protocol_number(self.protocol?, self.source.contains(':'))?;
        if !has_ports(protocol) {
            return Some((protocol, 0, 0));
        }
        Some((protocol, self.source_port?.parse().ok()?, self.destination_port?.parse().ok()?))
    }
}

/// Returns a JSON value as it is written.
pub(super) fn as_written(value: Option<&RawValue>) -> Option<&str> {
    value.map(RawValue::get)
}

/// Counts and bounds the lines of a buffer: none may be longer than [`MAX_LINE_BYTES`].
#[derive(Debug, Default)]
pub(super) struct Lines {
    /// Number, from 1, of the last line.
    pub(super) number: u64,
    /// Bytes of the next line that are known to hold no line end.
    searched: usize,
    /// Length of the line that was handed out last, with its end.
    current: usize,
}

impl Lines {
    /// Appends the records that `read` finds in lines to `out` (empty when called); leaves it empty
    /// at the end. Blank lines are skipped; lines that `read` refuses are noted.
    pub(super) fn read_each(
        &mut self,
        buffer: &mut ReadBuffer,
        out: &mut Entries,
        mut read: impl FnMut(&[u8], &mut Entries) -> Result<(), String>,
    ) -> Result<(), ReadError> {
        while self.fit(buffer, out) {
            let Some(length) = self.advance(buffer)? else { return Ok(()) };
            let line = buffer.unread()[..length].trim_ascii();
            if !line.is_empty()
                && let Err(reason) = read(line, out)
            {
                out.skip(buffer.offset(), self.number, reason);
            }
        }
        Ok(())
    }

    /// Returns whether to read the next line into a batch. A batch with records waits for no bytes.
    pub(super) fn fit(&mut self, buffer: &ReadBuffer, out: &Entries) -> bool {
        out.len() < MAX_BATCH && (out.is_empty() || self.is_here(buffer))
    }

    /// Returns whether the line behind the last one is whole in the buffer. Searches no byte twice.
    fn is_here(&mut self, buffer: &ReadBuffer) -> bool {
        let rest = &buffer.unread()[self.current + self.searched..];
        let end = rest.iter().position(|&byte| byte == b'\n');
        self.searched += end.unwrap_or(rest.len());
        end.is_some()
    }

    /// Consumes the last line and returns the length of the next one without its end; `None` at the
    /// end of the stream. The line is `&buffer.unread()[..length]`.
    pub(super) fn advance(&mut self, buffer: &mut ReadBuffer) -> Result<Option<usize>, ReadError> {
        const MARK: &[u8] = b"\xef\xbb\xbf";
        buffer.consume(self.current);
        self.current = 0;
        if self.number == 0
            && buffer.require(MARK.len())? >= MARK.len()
            && buffer.unread().starts_with(MARK)
        {
            buffer.consume(MARK.len());
        }
        loop {
            if self.is_here(buffer) {
                let end = std::mem::take(&mut self.searched);
                self.number += 1;
                self.current = end + 1;
                let carriage = buffer.unread()[..end].last() == Some(&b'\r');
                return Ok(Some(end - usize::from(carriage)));
            }
            let length = buffer.unread().len();
            if length > MAX_LINE_BYTES {
                let reason = format!("it is longer than {MAX_LINE_BYTES} bytes");
                return Err(ReadError::line(buffer.offset(), self.number + 1, reason));
            }
            if buffer.require(length + 1)? == length {
                self.searched = 0;
                if length == 0 {
                    return Ok(None);
                }
                self.number += 1;
                self.current = length;
                let carriage = buffer.unread().last() == Some(&b'\r');
                return Ok(Some(length - usize::from(carriage)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_bounded_and_counted() {
        let text = b"\xef\xbb\xbfone\r\ntwo\n\nlast\r".to_vec();
        let mut buffer = ReadBuffer::new(Box::new(std::io::Cursor::new(text)));
        let mut lines = Lines::default();
        let mut seen = Vec::new();
        while let Some(length) = lines.advance(&mut buffer).unwrap() {
            seen.push((lines.number, buffer.unread()[..length].to_vec()));
        }
        let expected: [(u64, &[u8]); 4] = [(1, b"one"), (2, b"two"), (3, b""), (4, b"last")];
        assert!(seen.iter().map(|(number, line)| (*number, line.as_slice())).eq(expected));

        let mut buffer = ReadBuffer::new(Box::new(std::io::repeat(b'x')));
        assert!(Lines::default().advance(&mut buffer).is_err());
    }

    /// `flows --names zeek` writes the registered names.
    #[test]
    fn protocols_are_known_by_every_registered_name() {
        for number in 0..=255 {
            let Some(name) = IpNumber(number).keyword_str() else { continue };
            let known = protocol_number(&name.to_lowercase(), false);
            assert_eq!(known.and_then(|known| IpNumber(known).keyword_str()), Some(name));
        }
        assert_eq!(
            ["OSPF", "ah", "none"].map(|name| protocol_number(name, false)),
            [Some(89), Some(51), None]
        );
    }

    #[test]
    fn a_name_that_is_far_too_long_is_not_kept_whole() {
        let mut entries = Entries::default();
        let range = entries.push_name(&vec![b'x'; MAX_LINE_BYTES], true);
        assert_eq!(range, 0..MAX_NAME_TEXT as u32);
    }

    #[test]
    fn names_lose_their_escapes_and_their_final_dot() {
        let mut entries = Entries::default();
        for (name, escaped, expected) in [
            ("a.example.", true, &b"a.example"[..]),
            (".", true, b""),
            ("", true, b""),
            // Any other backslash becomes an escaped one.
            (r"a\x2eb\xff\x2", true, b"a.b\xff\\\\x2"),
            (r"a\x2eb", false, br"a\x2eb"),
        ] {
            let range = entries.push_name(name.as_bytes(), escaped);
            assert_eq!(&entries.text[range.start as usize..range.end as usize], expected);
        }
    }
}
