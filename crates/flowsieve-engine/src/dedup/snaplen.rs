//! Packets cut on their way to a writer: captured bytes become fewer, and lengths on the wire stay.

use super::plan::SnapLength;
use crate::decode::{Tunnel, headers_end};
use crate::trace::{PacketRef, RecordBatch, RecordRef};
use std::ops::Range;

/// Cuts packets.
pub(super) struct Cutter {
    snap: SnapLength,
    tunnel: Tunnel,
    packets: Vec<PacketRef>,
    records: Vec<RecordRef>,
}

impl Cutter {
    /// `tunnel` says up to which IP packet headers count.
    pub(super) fn new(snap: SnapLength, tunnel: Tunnel) -> Self {
        Self { snap, tunnel, packets: Vec::new(), records: Vec::new() }
    }

    /// The packets of the range of a batch, with fewer bytes. Where headers end is read in
    /// `original`, which has the same packets in the same places. In the batch that is returned
    /// only the packets of the range are of any use.
    pub(super) fn batch<'a>(
        &'a mut self,
        original: &RecordBatch<'_>,
        batch: &RecordBatch<'a>,
        range: Range<usize>,
    ) -> RecordBatch<'a> {
        grow(&mut self.packets, batch.packets);
        grow(&mut self.records, batch.records);
        for index in range {
            let (packet, record) = (batch.packets[index], batch.record(index));
            // A record can have a separate header before the packet.
            let before = packet.start.saturating_sub(record.start);
            let kept = match self.snap {
                SnapLength::Bytes(bytes) => bytes.min(record.captured),
                SnapLength::Headers => {
                    let frame =
                        &original.bytes[packet.start as usize..][..packet.captured as usize];
                    let end = headers_end(packet.link, frame, self.tunnel) as u32;
                    (before + end).min(record.captured)
                }
            };
            self.packets[index] =
                PacketRef { captured: kept.saturating_sub(before).min(packet.captured), ..packet };
            if let Some(own) = self.records.get_mut(index) {
                *own = RecordRef { captured: kept, ..record };
            }
        }
        RecordBatch {
            packets: &self.packets[..batch.packets.len()],
            records: &self.records[..batch.records.len()],
            // Headers of records state other lengths now.
            is_plain_pcap: false,
            ..*batch
        }
    }
}

/// Makes room for as many items as there are.
fn grow<T: Copy>(room: &mut Vec<T>, items: &[T]) {
    if room.len() < items.len() {
        room.extend_from_slice(&items[room.len()..]);
    }
}
