//! The interface of a container: a [`Format`], which recognises and opens it, and a
//! [`PacketSource`], which reads it batch by batch.

use std::any::Any;
use std::ops::ControlFlow;

use super::dnstap_types::DnstapTypes;
use super::error::ReadError;
use super::log_entries::Entries;
use super::packet::PacketRef;
use super::read_buffer::ReadBuffer;
use super::record::Records;

/// Bytes of a stream without a magic number that are looked at.
const SNIFF_BYTES: usize = 64 * 1024;

/// Most bytes of a text that are looked at.
const SNIFF_TEXT_BYTES: usize = 128 * 1024;

/// The decision of a line: `Break` with the container or `None`; `Continue` asks the next line.
pub(super) type Verdict = ControlFlow<Option<&'static str>>;

/// How the container of an input is found.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum InputFormat {
    /// By its content.
    #[default]
    Auto,
    /// By its content; of dnstap files messages of these types are records, and not those that
    /// [`DnstapTypes::default`] names.
    AutoWith(DnstapTypes),
    /// TSH, which cannot be recognised by its content. Compression is still recognised.
    Tsh,
}

impl InputFormat {
    /// Returns the names of the types of dnstap messages that are records, if others than the
    /// default were asked for.
    #[doc(hidden)]
    pub fn dnstap_types(self) -> Option<String> {
        match self {
            Self::AutoWith(types) => Some(types.names()),
            Self::Auto | Self::Tsh => None,
        }
    }
}

/// Content of a format.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Class {
    /// Packets.
    Capture,
    /// Records of a log in binary form.
    BinaryLog,
    /// Records of a log in lines of text.
    TextLog,
}

/// Opens a stream that is in a format.
pub(super) type Open = fn(&mut ReadBuffer, InputFormat) -> Result<Box<dyn PacketSource>, ReadError>;

/// A format: one line of the table of formats.
pub(super) struct Format {
    /// Names of its containers in results.
    pub(super) containers: &'static [&'static str],
    /// Its name in sentences about what is recognised; empty if it never is.
    pub(super) words: &'static str,
    pub(super) class: Class,
    /// Returns the container if the stream is in this format. Consumes nothing, and reads no more
    /// than it needs: a live stream may take long to bring more.
    pub(super) recognise: fn(&mut ReadBuffer) -> Option<&'static str>,
    pub(super) open: Open,
}

/// Packets or log records of one batch; the memory is used again for the next one.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) packets: Vec<PacketRef>,
    pub(super) entries: Entries,
    /// Details for a writer, if they were asked for.
    pub(super) records: Option<Box<Records>>,
}

/// Reads a container batch by batch.
pub(super) trait PacketSource: Any + Send {
    /// Appends packets or log records to `batch`, which has none; leaves it so at the end.
    fn fill(&mut self, buffer: &mut ReadBuffer, batch: &mut Batch) -> Result<(), ReadError>;

    /// Describes the interfaces that the header of the container names.
    fn describe(&self, _records: &mut Records) {}

    /// Returns whether log records point into the buffer, and not into the text of their batch.
    fn points_into_buffer(&self) -> bool {
        false
    }

    /// Returns whether its packets may have times outside 1677 to 2262.
    fn has_far_times(&self) -> bool {
        false
    }
}

/// Returns the first bytes of a stream without a magic number.
pub(super) fn head(buffer: &mut ReadBuffer) -> &[u8] {
    buffer.fill(SNIFF_BYTES);
    buffer.unread()
}

/// Asks the lines of a text for its container until one decides. Each line is read to its end first,
/// so the answer does not depend on how a pipe delivers them.
pub(super) fn ask_lines(
    buffer: &mut ReadBuffer,
    mut ask: impl FnMut(&[u8]) -> Verdict,
) -> Option<&'static str> {
    let mut line = 0..0;
    loop {
        let head = buffer.unread();
        let head = &head[..head.len().min(SNIFF_TEXT_BYTES)];
        let length = head.len();
        let end = head[line.end..].iter().position(|&byte| byte == b'\n');
        line.end = end.map_or(length, |end| line.end + end);
        if end.is_none() && length < SNIFF_TEXT_BYTES && buffer.fill(length + 1) > length {
            continue;
        }
        let mut text = &buffer.unread()[line.clone()];
        if line.start == 0 {
            text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
        }
        if let ControlFlow::Break(container) = ask(text) {
            return container;
        }
        end?;
        line = line.end + 1..line.end + 1;
    }
}

/// As [`ask_lines`], for lines of JSON. `ask` gets a function that says whether a line has a name.
pub(super) fn ask_json_lines(
    buffer: &mut ReadBuffer,
    ask: impl Fn(&dyn Fn(&str) -> bool) -> Verdict,
) -> Option<&'static str> {
    let mut is_json = false;
    ask_lines(buffer, |line| {
        let line = line.trim_ascii_start();
        is_json |= line.starts_with(b"{");
        if !is_json && !line.is_empty() {
            return Verdict::Break(None);
        }
        ask(&|name| contains(line, format!("\"{name}\"").as_bytes()))
    })
}

fn contains(haystack: &[u8], needle: &[u8]) -> bool {
    haystack.windows(needle.len()).any(|part| part == needle)
}

impl Batch {
    pub(super) fn clear(&mut self) {
        self.packets.clear();
        self.entries.clear();
        if let Some(records) = &mut self.records {
            records.batch.clear();
        }
    }

    /// Returns the number of packets or log records.
    pub(super) fn len(&self) -> usize {
        self.packets.len() + self.entries.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Removes the first packets or records, at most `count`; returns how many.
    pub(super) fn remove_first(&mut self, count: u64) -> usize {
        let count = usize::try_from(count).unwrap_or(usize::MAX).min(self.len());
        self.packets.drain(..count.min(self.packets.len()));
        self.entries.remove_first(count);
        count
    }
}
