//! What every container is turned into: batches of packets, or of records of a DNS log.

use std::net::IpAddr;
use std::ops::Range;

/// Largest number of packets or log records in one batch: enough to spread the cost of a step over many,
/// few enough that a batch and the packets in it stay in the cache.
pub const MAX_BATCH: usize = 1024;

/// Link-layer header type of a packet, by its `LINKTYPE_` number as in pcap and pcapng files.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct LinkType(pub u16);

/// One captured packet: where its bytes stand in the batch, and what the container says of it.
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
    /// How the first byte is to be read.
    pub link: LinkType,
}

/// One record of a DNS log (Zeek's `dns.log`, or CSV).
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct DnsLogEntry {
    /// Time of the query in nanoseconds since the epoch.
    pub time_ns: i64,
    /// Who asked.
    pub source: IpAddr,
    /// Who was asked.
    pub destination: IpAddr,
    /// Transport protocol number and ports (source, destination), where the log has them.
    pub transport: Option<(u8, u16, u16)>,
    /// Where the query name stands in the batch's text: labels separated by dots, as written in the
    /// log, without a final dot; empty for the root. None if the record has no query.
    pub name: Option<Range<u32>>,
}

/// Records of a DNS log, with the text that their names point into.
#[derive(Clone, Copy, Debug)]
pub struct DnsLogBatch<'a> {
    /// The records, in file order.
    pub entries: &'a [DnsLogEntry],
    /// All their names.
    pub text: &'a [u8],
}

impl TraceBatch<'_> {
    /// How many packets or records it has.
    pub(super) fn count(&self) -> usize {
        match self {
            Self::Packets { packets, .. } => packets.len(),
            Self::DnsLog(log) => log.entries.len(),
        }
    }
}

/// What one step of a reader yields; it borrows the reader's buffer.
#[derive(Clone, Copy, Debug)]
pub enum TraceBatch<'a> {
    /// Packets whose bytes stand in `bytes`.
    Packets {
        /// The buffer that the packets point into.
        bytes: &'a [u8],
        /// The packets, in file order.
        packets: &'a [PacketRef],
    },
    /// Records of a DNS log.
    DnsLog(DnsLogBatch<'a>),
}
