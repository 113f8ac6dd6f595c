//! Batches of packets in the form that an analysis consumes, built from what a reader yields.

use crate::guard::{WorkerPanicked, catch_panic};
use crate::trace::{Capture, TraceBatch, TraceError, TraceErrorKind};
use std::sync::Arc;

/// Consecutive packets of an input.
pub(crate) trait Batch: Default + Send + 'static {
    /// Position in a batch.
    type Cursor: Default;

    /// Returns the time of each packet in nanoseconds since the epoch.
    fn times_ns(&self) -> &[i64];

    /// Prefetches the data of this many packets behind the cursor, before they are consumed one by
    /// one between those of other inputs: their cache misses overlap.
    fn prefetch(&self, _cursor: &Self::Cursor, _packets: usize) {}

    /// Removes all packets and keeps the memory.
    fn clear(&mut self);

    /// Returns the number of packets consumed.
    fn taken(cursor: &Self::Cursor) -> usize;
}

/// Builds batches from what readers yield.
pub(crate) trait BatchBuilder: Send + Sync + 'static {
    /// The batches.
    type Batch: Batch;

    /// Appends what a reader yielded to `out`.
    fn append(&self, batch: TraceBatch<'_>, out: &mut Self::Batch);

    /// Like [`append`](Self::append), where several threads build batches for one consumer, which
    /// should have little work left.
    fn append_for_one(&self, batch: TraceBatch<'_>, out: &mut Self::Batch) {
        self.append(batch, out);
    }

    /// Works off some of the consumed batches while there is nothing to build; returns whether
    /// there were any.
    fn assist(&self) -> bool {
        false
    }
}

/// A builder in one of several threads.
pub(super) struct OneOfMany<M>(pub(super) Arc<M>);

impl<M: BatchBuilder> BatchBuilder for OneOfMany<M> {
    type Batch = M::Batch;

    fn append(&self, batch: TraceBatch<'_>, out: &mut Self::Batch) {
        self.0.append_for_one(batch, out);
    }
}

/// Reads a batch and appends it to `out`, before which there were `before` packets; returns false
/// at the end.
pub(crate) fn read_batch<M: BatchBuilder + ?Sized>(
    capture: &mut Capture,
    builder: &M,
    out: &mut M::Batch,
    before: u64,
) -> Result<bool, TraceError> {
    let already = out.times_ns().len() as u64;
    // An error of the capture; or where and why the builder panicked; or whether a batch was read.
    let made = catch_panic(|| {
        let Some(batch) = capture.next_batch()? else { return Ok(Ok(false)) };
        let appended = catch_panic(|| builder.append(batch, out)).map(|()| true);
        Ok(appended.map_err(|gone| culprit(builder, batch).unwrap_or((0, gone))))
    });
    // The reader itself may panic, too.
    let (place, gone) = match made.unwrap_or_else(|gone| Ok(Err((0, gone))))? {
        Ok(more) => return Ok(more),
        Err(culprit) => culprit,
    };
    // It may be half built.
    out.clear();
    Err(decode_panicked(capture, before + already + place + 1, before + 1, gone))
}

/// Creates the error of an input whose reader or builder panicked at a packet; packets from number
/// `lost_from` on are not used.
pub(super) fn decode_panicked(
    capture: &Capture,
    packet: u64,
    lost_from: u64,
    WorkerPanicked(reason): WorkerPanicked,
) -> TraceError {
    TraceErrorKind::Undecodable { packet, lost_from, reason }.in_file(capture.path())
}

/// Returns the number of the first packet of a batch at which the builder panics.
fn culprit<M: BatchBuilder + ?Sized>(
    builder: &M,
    batch: TraceBatch<'_>,
) -> Option<(u64, WorkerPanicked)> {
    let TraceBatch::Packets { bytes, packets } = batch else { return None };
    packets.chunks(1).enumerate().find_map(|(number, packets)| {
        let alone = TraceBatch::Packets { bytes, packets };
        let gone = catch_panic(|| builder.append(alone, &mut M::Batch::default())).err()?;
        Some((number as u64, gone))
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A batch of times.
    #[derive(Debug, Default)]
    pub(in super::super) struct Times(pub(in super::super) Vec<i64>);

    impl Batch for Times {
        type Cursor = usize;

        fn times_ns(&self) -> &[i64] {
            &self.0
        }

        fn clear(&mut self) {
            self.0.clear();
        }

        fn taken(cursor: &usize) -> usize {
            *cursor
        }
    }

    /// Builds batches of times.
    pub(in super::super) struct TimeBuilder;

    impl BatchBuilder for TimeBuilder {
        type Batch = Times;

        fn append(&self, batch: TraceBatch<'_>, out: &mut Times) {
            out.0.extend(batch.times_ns());
        }
    }
}
