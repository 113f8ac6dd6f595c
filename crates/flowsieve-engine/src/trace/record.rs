//! The records of packets in their container: what a writer needs to write them as they were.
//!
//! Readers store it only after [`Capture::keep_records`](super::Capture::keep_records).

use super::annotation::Annotation;
use super::packet::{LinkType, PacketRef};
use super::pcapng_clock::Clock;
use super::write::options;

/// Interface descriptions that are kept of one capture, in bytes of their options together.
pub(super) const MAX_INTERFACE_BYTES: usize = 64 << 20;

/// An interface that packets were captured on.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct InterfaceInfo {
    /// Link type of its packets.
    pub link: LinkType,
    /// Longest captured length; 0 for no limit.
    pub snap_length: u32,
    /// Bits of a pcap file's link type field that say how long the frame check sequence is.
    pub pcap_flags: u32,
    /// Its options, as they stand in a pcapng block.
    pub options: Vec<u8>,
    /// The options are big-endian.
    pub big_endian: bool,
    /// Clock of its time stamps.
    pub(super) clock: Clock,
}

impl InterfaceInfo {
    /// Creates an interface without a description.
    pub(super) fn plain(link: LinkType, clock: Clock) -> Self {
        Self { link, snap_length: 0, pcap_flags: 0, options: Vec::new(), big_endian: false, clock }
    }

    /// Returns it without the options that name or describe it, or give its addresses; those by
    /// which its packets and times are read stay.
    #[must_use]
    pub fn without_names(&self) -> Self {
        Self {
            options: options::about_packets(&self.options, self.big_endian),
            big_endian: false,
            ..self.clone()
        }
    }

    /// Returns the resolution of its times, as pcapng's `if_tsresol` has it: 6 for microseconds, 9
    /// for nanoseconds.
    pub fn resolution(&self) -> u8 {
        self.clock.resolution
    }
}

/// The record of a packet, which may differ from its [`PacketRef`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RecordRef {
    /// Offset of the first captured byte in the batch's bytes.
    pub start: u32,
    /// Number of captured bytes.
    pub captured: u32,
    /// Number of bytes that the packet had on the wire.
    pub wire: u32,
    /// Link type; ERF where a [`PacketRef`] has that of the packet inside.
    pub link: LinkType,
    /// Index among the capture's interfaces.
    pub interface: u32,
    /// Time stamp in units of the interface, if the packet has one.
    pub ticks: Option<u64>,
    /// Offset of the packet's options in the batch's bytes.
    pub options_start: u32,
    /// Bytes of options, including the padding behind them.
    pub options_length: u32,
    /// Numbers among the options are big-endian.
    pub big_endian: bool,
}

impl RecordRef {
    /// Creates the record of a packet without options, of this interface.
    pub(super) fn of(packet: &PacketRef, interface: u32) -> Self {
        Self {
            start: packet.start,
            captured: packet.captured,
            wire: packet.wire,
            link: packet.link,
            interface,
            ticks: None,
            options_start: 0,
            options_length: 0,
            big_endian: false,
        }
    }
}

/// A batch of packets with everything that a writer needs.
#[derive(Clone, Copy, Debug)]
pub struct RecordBatch<'a> {
    /// The buffer that packets and records point into.
    pub bytes: &'a [u8],
    /// The packets, in file order.
    pub packets: &'a [PacketRef],
    /// One a packet, or none at all if a [`PacketRef`] says everything and there is one interface.
    pub records: &'a [RecordRef],
    /// The interfaces met so far.
    pub interfaces: &'a [InterfaceInfo],
    /// The annotations between the packets, if they were asked for.
    pub annotations: &'a [Annotation],
    /// The 16 bytes before each packet are its header of a little-endian pcap file of the
    /// resolution of the only interface.
    pub is_plain_pcap: bool,
}

impl RecordBatch<'_> {
    /// Returns the record of a packet.
    #[inline]
    pub fn record(&self, index: usize) -> RecordRef {
        match self.records.get(index) {
            Some(record) => *record,
            None => RecordRef::of(&self.packets[index], 0),
        }
    }
}

/// Records of the present batch, and the interfaces of the capture.
#[derive(Debug, Default)]
pub(super) struct Records {
    pub(super) batch: Vec<RecordRef>,
    pub(super) interfaces: Vec<InterfaceInfo>,
    pub(super) interface_bytes: usize,
    /// Index of the first interface of the present section.
    pub(super) section: u32,
    pub(super) is_plain_pcap: bool,
    /// Annotations are wanted, too.
    pub(super) keeps_annotations: bool,
    /// Annotations since the batch before.
    pub(super) annotations: Vec<Annotation>,
    pub(super) annotation_bytes: usize,
    /// Annotations that were too long, or too many.
    pub(super) unkept: u64,
    /// A section has begun.
    pub(super) in_section: bool,
}

impl Records {
    /// Clears the batch, for the next one.
    pub(super) fn clear_batch(&mut self) {
        self.batch.clear();
        self.annotations.clear();
        self.annotation_bytes = 0;
    }

    /// Stores packets of a container without interfaces: one interface for each link type.
    pub(super) fn by_link(&mut self, packets: &[PacketRef]) {
        for packet in packets {
            let known = self.interfaces.iter().position(|interface| interface.link == packet.link);
            let index = known.unwrap_or_else(|| {
                self.interfaces.push(InterfaceInfo::plain(packet.link, Clock::of(9)));
                self.interfaces.len() - 1
            });
            self.batch.push(RecordRef::of(packet, index as u32));
        }
    }
}
