//! What takes packets beside a count, from the same reading.

use crate::elements::ElementBatch;
use std::ops::Range;

/// Takes the packets that a count reads, in the order of the trace.
pub trait Beside {
    /// Whether it looks at the bytes of elements, and not only at addresses.
    fn needs_keys(&self) -> bool {
        false
    }

    /// Takes some packets of a batch, which has the column of addresses, and their elements.
    fn take(&mut self, batch: &ElementBatch, packets: Range<usize>, elements: Range<usize>);
}
