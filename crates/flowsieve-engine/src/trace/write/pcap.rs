//! pcap: little-endian, with microseconds or nanoseconds, one link type.

use super::super::packet::{LinkType, PacketRef};
use super::super::record::{InterfaceInfo, RecordBatch};
use super::super::time::NANOS_PER_SECOND;
use super::{WriteError, put_words, snap_length};

const MICROSECONDS: u32 = 0xa1b2_c3d4;
const NANOSECONDS: u32 = 0xa1b2_3c4d;

const RECORD_HEADER_BYTES: usize = 16;

/// Snapshot length of a file whose inputs had none, or several.
const LARGEST_SNAP_LENGTH: u32 = 262_144;

/// A pcap file being written.
pub(super) struct PcapWriter {
    single_input: bool,
    /// No captured length exceeds this.
    pub(super) snap_limit: Option<u32>,
    head: Option<Head>,
    /// The first interface met: the head of a file without packets.
    first: Option<InterfaceInfo>,
}

/// The file header.
#[derive(Clone, Copy, Debug)]
struct Head {
    link: LinkType,
    /// Nanoseconds in one unit of the fraction of a second.
    fraction: i64,
}

impl PcapWriter {
    pub(super) fn new(single_input: bool) -> Self {
        Self { single_input, snap_limit: None, head: None, first: None }
    }

    /// Writes packets; returns how many of them had options, for which there is no place.
    pub(super) fn write(
        &mut self,
        batch: &RecordBatch<'_>,
        from: usize,
        to: usize,
        out: &mut Vec<u8>,
    ) -> Result<u64, WriteError> {
        if self.first.is_none() {
            self.first = batch.interfaces.first().cloned();
        }
        if from == to {
            return Ok(0);
        }
        let head = if let Some(head) = self.head {
            head
        } else {
            let only = match batch.interfaces {
                // A pcap file: its interface has no options, and no packet has a record.
                [one] if self.single_input && batch.records.is_empty() => Some(one),
                _ => None,
            };
            self.put_header(only, batch.record(from).link, out)
        };
        let plain = batch.is_plain_pcap
            && batch.interfaces[0].resolution() == if head.fraction == 1 { 9 } else { 6 };
        if plain {
            check_link(head, batch.interfaces[0].link)?;
            // Packets that were not selected may stand between others.
            let end = |packet: &PacketRef| (packet.start + packet.captured) as usize;
            let start = |packet: &PacketRef| packet.start as usize - RECORD_HEADER_BYTES;
            let adjoin = |one: &PacketRef, next: &PacketRef| end(one) == start(next);
            for run in batch.packets[from..to].chunk_by(adjoin) {
                if let (Some(first), Some(last)) = (run.first(), run.last()) {
                    out.extend_from_slice(&batch.bytes[start(first)..end(last)]);
                }
            }
            return Ok(0);
        }
        let mut options = 0;
        for index in from..to {
            let record = batch.record(index);
            check_link(head, record.link)?;
            let time_ns = batch.packets[index].time_ns;
            let seconds = u32::try_from(time_ns.div_euclid(NANOS_PER_SECOND))
                .map_err(|_| WriteError::Time(time_ns))?;
            let fraction = (time_ns.rem_euclid(NANOS_PER_SECOND) / head.fraction) as u32;
            put_words(&[seconds, fraction, record.captured, record.wire], out);
            let bytes = &batch.bytes[record.start as usize..][..record.captured as usize];
            out.extend_from_slice(bytes);
            options += u64::from(record.options_length > 0);
        }
        Ok(options)
    }

    fn put_header(
        &mut self,
        only: Option<&InterfaceInfo>,
        link: LinkType,
        out: &mut Vec<u8>,
    ) -> Head {
        let microseconds = only.is_some_and(|only| only.resolution() == 6);
        let stated = only.map_or(LARGEST_SNAP_LENGTH, |only| only.snap_length);
        let snap_length = snap_length(stated, self.snap_limit);
        let flags = only.map_or(0, |only| only.pcap_flags);
        let magic = if microseconds { MICROSECONDS } else { NANOSECONDS };
        let version = 2 | 4 << 16;
        put_words(&[magic, version, 0, 0, snap_length, u32::from(link.0) | flags], out);
        *self.head.insert(Head { link, fraction: if microseconds { 1000 } else { 1 } })
    }

    /// Writes the head if there was no packet.
    pub(super) fn finish(&mut self, out: &mut Vec<u8>) {
        if self.head.is_none() {
            let first = self.first.take();
            let link = first.as_ref().map_or(LinkType::ETHERNET, |first| first.link);
            let only = first.filter(|_| self.single_input);
            self.put_header(only.as_ref(), link, out);
        }
    }
}

fn check_link(head: Head, link: LinkType) -> Result<(), WriteError> {
    if head.link == link { Ok(()) } else { Err(WriteError::LinkTypes(head.link, link)) }
}
