//! How far a batch of elements was consumed.

use super::ElementBatch;
use crate::decode::Skip;
use crate::inputs::Batch;
use crate::memory::prefetch;
use std::ops::Range;

/// How far a batch was consumed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cursor {
    /// Next packet.
    pub(crate) packet: usize,
    /// Next element.
    pub(crate) element: usize,
    /// Next entry of the list of skipped packets.
    skipped: usize,
    /// Next entry of the list of further elements.
    further: usize,
}

impl Cursor {
    /// Moves to packet `end` and returns the numbers of the elements before it. Calls `skip` with
    /// the reason of every packet on the way that has none.
    pub(crate) fn pass(
        &mut self,
        batch: &ElementBatch,
        end: usize,
        mut skip: impl FnMut(Skip),
    ) -> Range<usize> {
        let first = self.element;
        let mut elements = end - self.packet;
        while let Some(&(packet, reason)) = batch.skipped.get(self.skipped)
            && (packet as usize) < end
        {
            skip(reason);
            self.skipped += 1;
            elements -= 1;
        }
        while let Some(&packet) = batch.further.get(self.further)
            && (packet as usize) < end
        {
            self.further += 1;
            elements += 1;
        }
        self.packet = end;
        self.element += elements;
        first..self.element
    }
}

impl Batch for ElementBatch {
    type Cursor = Cursor;

    fn times_ns(&self) -> &[i64] {
        &self.times_ns
    }

    fn prefetch(&self, cursor: &Cursor, packets: usize) {
        let Cursor { packet, element, .. } = *cursor;
        prefetch(&self.times_ns, &(packet..packet + packets), i64::cast_unsigned);
        let columns = &self.elements;
        let arity = columns.attributes.len() / columns.len().max(1);
        columns.prefetch(element..element + packets, arity);
    }

    fn clear(&mut self) {
        ElementBatch::clear(self);
    }

    fn taken(cursor: &Cursor) -> usize {
        cursor.packet
    }
}
