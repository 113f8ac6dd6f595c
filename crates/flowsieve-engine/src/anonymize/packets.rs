//! Batches of packets on their way to a writer, with the addresses in them replaced.

use super::crypto_pan::AnonymizeKey;
use super::frame::{Images, rewrite};
use super::mac::VendorPart;
use crate::decode::{Place, address_places};
use crate::trace::{InterfaceInfo, RecordBatch, RecordRef};
use std::ops::Range;

/// Bytes of a record's header in a pcap file, which are written with the packet that follows.
const RECORD_HEADER_BYTES: usize = 16;

/// Replaces the addresses in packets, and drops comments and names from captures.
#[derive(Debug)]
pub struct PacketAnonymizer {
    images: Images,
    /// Copy of the pieces of a batch that are written, where they stand in the batch.
    bytes: Vec<u8>,
    records: Vec<RecordRef>,
    /// The interfaces of each input.
    interfaces: Vec<Vec<InterfaceInfo>>,
    places: Vec<(usize, Place)>,
}

impl PacketAnonymizer {
    /// Replaces addresses as the key says.
    pub fn new(key: &AnonymizeKey, vendor: VendorPart) -> Self {
        Self {
            images: Images::new(key, vendor),
            bytes: Vec::new(),
            records: Vec::new(),
            interfaces: Vec::new(),
            places: Vec::new(),
        }
    }

    /// Packets of a batch of the input with this number, anonymized. In the batch that is returned
    /// only the packets of the range are of any use.
    pub fn batch<'a>(
        &'a mut self,
        input: usize,
        batch: &RecordBatch<'a>,
        range: Range<usize>,
    ) -> RecordBatch<'a> {
        self.describe(input, batch.interfaces);
        if self.bytes.len() < batch.bytes.len() {
            self.bytes.resize(batch.bytes.len(), 0);
        }
        if let Some(&any) = batch.records.first()
            && self.records.len() < batch.records.len()
        {
            self.records.resize(batch.records.len(), any);
        }
        for index in range {
            let (packet, record) = (&batch.packets[index], batch.record(index));
            let start = packet.start.min(record.start) as usize;
            let end = (packet.start + packet.captured).max(record.start + record.captured);
            let span = start.saturating_sub(RECORD_HEADER_BYTES)..end as usize;
            self.bytes[span.clone()].copy_from_slice(&batch.bytes[span]);
            let frame = packet.start as usize..(packet.start + packet.captured) as usize;
            let frame = &mut self.bytes[frame];
            address_places(packet.link, frame, &mut self.places);
            rewrite(frame, &self.places, &mut self.images);
            if let Some(own) = self.records.get_mut(index) {
                // Comments may name anything.
                *own = RecordRef { options_length: 0, ..record };
            }
        }
        RecordBatch {
            bytes: &self.bytes[..batch.bytes.len()],
            packets: batch.packets,
            records: &self.records[..batch.records.len()],
            interfaces: &self.interfaces[input][..batch.interfaces.len()],
            // Secrets, names and comments tell what is replaced.
            annotations: &[],
            is_plain_pcap: batch.is_plain_pcap,
        }
    }

    /// Takes down the interfaces that are new.
    fn describe(&mut self, input: usize, interfaces: &[InterfaceInfo]) {
        if self.interfaces.len() <= input {
            self.interfaces.resize(input + 1, Vec::new());
        }
        let known = &mut self.interfaces[input];
        let new = interfaces.iter().skip(known.len());
        known.extend(new.map(InterfaceInfo::without_names).collect::<Vec<_>>());
    }
}
