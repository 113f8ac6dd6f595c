//! Batches of packets or of log records: what every container is read into.

use std::net::IpAddr;
use std::ops::Range;

/// Largest number of packets or log records in one batch: enough to spread the cost of a step over
/// many, few enough that a batch and the packets in it stay in the cache.
pub const MAX_BATCH: usize = 1024;

/// Link-layer header type of a packet, by its `LINKTYPE_` number as in pcap and pcapng files.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct LinkType(pub u16);

/// One captured packet: its place in the batch's bytes, and what the container says of it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PacketRef {
    /// Capture time in nanoseconds since the epoch (saturated at the ends of the range).
    pub time_ns: i64,
    /// Offset of the first captured byte in the batch's bytes.
    pub start: u32,
    /// Number of captured bytes; `start + captured` lies within the batch's bytes.
    pub captured: u32,
    /// Number of bytes that the packet had on the wire.
    pub wire: u32,
    /// Link type, by which the first byte is read.
    pub link: LinkType,
}

/// One record of a log: a DNS message, or a flow.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LogEntry {
    /// Time of the message, or of the flow's first packet, in nanoseconds since the epoch.
    pub time_ns: i64,
    /// Sender of the message, or the side that began the flow, if the log has it.
    pub source: Option<IpAddr>,
    /// The other end, if the log has it.
    pub destination: Option<IpAddr>,
    /// Transport protocol number and ports (source, destination), if the log has them; ports are 0
    /// if the protocol has none.
    pub transport: Option<(u8, u16, u16)>,
    /// Content of the record.
    pub content: LogContent,
}

/// Content of a log record.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum LogContent {
    /// A DNS message.
    Dns {
        /// Its first question.
        question: LogQuestion,
        /// It is a response.
        is_response: bool,
    },
    /// A flow.
    Flow(LoggedFlow),
    /// A DNS message of a type that was not selected.
    NotSelected,
}

/// The question of a DNS message in a log: a range of the batch's text.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum LogQuestion {
    /// The record has none.
    None,
    /// Its name: labels separated by dots, as written in the log, without a final dot; empty for
    /// the root.
    Name(Range<u32>),
    /// The message itself, in wire form.
    Message(Range<u32>),
    /// Another message with this question, in wire form: its type and code say nothing of this one.
    Other(Range<u32>),
}

/// Fields of a logged flow other than its ends. Missing numbers are 0.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct LoggedFlow {
    /// Time of the last packet in nanoseconds since the epoch.
    pub end_ns: i64,
    /// Packets from the source and from the destination.
    pub packets: [u64; 2],
    /// Bytes, as the log counts them.
    pub bytes: [u64; 2],
    /// Union of the TCP flags.
    pub tcp_flags: [u8; 2],
}

impl LoggedFlow {
    /// Returns whether packets went from the source, and from the destination. Without numbers,
    /// only the first is known.
    #[doc(hidden)]
    pub const fn directions(&self) -> [bool; 2] {
        let back = self.packets[1] > 0 || self.bytes[1] > 0;
        let there = self.packets[0] > 0 || self.bytes[0] > 0;
        [there || !back, back]
    }
}

/// Records of a log, with the text that they point into.
#[derive(Clone, Copy, Debug)]
pub struct LogBatch<'a> {
    /// The records, in file order.
    pub entries: &'a [LogEntry],
    /// The text that their names and messages point into.
    pub text: &'a [u8],
}

impl<'a> LogBatch<'a> {
    /// Returns the part of the text at this range.
    pub fn at(&self, range: &Range<u32>) -> &'a [u8] {
        &self.text[range.start as usize..range.end as usize]
    }
}

impl TraceBatch<'_> {
    /// Returns the times of its packets or records.
    pub(crate) fn times_ns(&self) -> impl DoubleEndedIterator<Item = i64> {
        let (packets, entries) = match *self {
            Self::Packets { packets, .. } => (packets, &[][..]),
            Self::Log(log) => (&[][..], log.entries),
        };
        let packets = packets.iter().map(|packet| packet.time_ns);
        packets.chain(entries.iter().map(|entry| entry.time_ns))
    }
}

/// One step of a reader; it borrows the reader's buffer.
#[derive(Clone, Copy, Debug)]
pub enum TraceBatch<'a> {
    /// Packets whose bytes stand in `bytes`.
    Packets {
        /// The buffer that the packets point into.
        bytes: &'a [u8],
        /// The packets, in file order.
        packets: &'a [PacketRef],
    },
    /// Records of a log.
    Log(LogBatch<'a>),
}
