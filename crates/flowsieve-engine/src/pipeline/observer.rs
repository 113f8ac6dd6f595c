//! Observers of the packets that a count reads.

use crate::elements::ElementBatch;
use std::ops::Range;

/// Observes the packets that a count reads, in the order of the trace.
pub trait Observer {
    /// Whether it needs the bytes of elements, and not only addresses.
    fn needs_keys(&self) -> bool {
        false
    }

    /// Observes some packets of a batch, which has the column of addresses, and their elements.
    fn observe(&mut self, batch: &ElementBatch, packets: Range<usize>, elements: Range<usize>);
}
