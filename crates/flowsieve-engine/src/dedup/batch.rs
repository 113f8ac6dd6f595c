//! Packets as columns, without their bytes.

use super::key::{Key, Keyer};
use super::results::DropKind;
use super::tcp::TcpFlows;
use crate::inputs::{Batch, BatchBuilder};
use crate::trace::{PacketRef, TraceBatch};

/// A run of packets in the order of their input.
#[derive(Debug, Default)]
pub(super) struct KeyBatch {
    pub(super) times_ns: Vec<i64>,
    /// Captured bytes.
    pub(super) captured: Vec<u32>,
    pub(super) digests: Vec<u128>,
    /// The drop reason if a packet with this digest was seen; `None` if it is always kept.
    pub(super) kinds: Vec<Option<DropKind>>,
}

impl KeyBatch {
    #[inline]
    pub(super) fn push(&mut self, packet: &PacketRef, (digest, kind): Key) {
        self.times_ns.push(packet.time_ns);
        self.captured.push(packet.captured);
        self.digests.push(digest);
        self.kinds.push(kind);
    }
}

impl Batch for KeyBatch {
    type Cursor = usize;

    fn times_ns(&self) -> &[i64] {
        &self.times_ns
    }

    fn clear(&mut self) {
        self.times_ns.clear();
        self.captured.clear();
        self.digests.clear();
        self.kinds.clear();
    }

    fn taken(cursor: &usize) -> usize {
        *cursor
    }
}

/// Makes keys in the threads that read, where a key needs nothing but the packet's bytes.
pub(super) struct KeyBatchBuilder(pub(super) Keyer);

impl BatchBuilder for KeyBatchBuilder {
    type Batch = KeyBatch;

    fn append(&self, batch: TraceBatch<'_>, out: &mut KeyBatch) {
        // A log has no packets.
        let TraceBatch::Packets { bytes, packets } = batch else { return };
        debug_assert!(self.0.needs_bytes_only(), "this builder knows nothing else");
        let mut flows = TcpFlows::default();
        for packet in packets {
            out.push(packet, self.0.key(packet, bytes, || (0, 0), &mut flows));
        }
    }
}
