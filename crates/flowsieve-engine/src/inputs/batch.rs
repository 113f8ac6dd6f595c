//! Batches of packets as their takers want them, and how they are made of what a reader yields.

use crate::guard::{WorkerPanicked, catch_panic};
use crate::trace::{Capture, TraceBatch, TraceError, TraceErrorKind};

/// A run of packets in the order of their input.
pub(crate) trait Batch: Default + Send {
    /// How far a batch has been taken.
    type Cursor: Default;

    /// Time of each packet in nanoseconds since the epoch.
    fn times_ns(&self) -> &[i64];

    /// Reads ahead of the cursor what is taken of this many packets, so that it is near when one
    /// after the other is taken between those of other inputs: this way the processor fetches many
    /// places at a time.
    fn prefetch(&self, _cursor: &Self::Cursor, _packets: usize) {}

    /// Forgets all and keeps the memory.
    fn clear(&mut self);

    /// Packets taken.
    fn taken(cursor: &Self::Cursor) -> usize;
}

/// Makes batches of what readers yield.
pub(crate) trait BatchBuilder: Send + Sync {
    /// What it makes.
    type Batch: Batch;

    /// Appends what a reader yielded to `out`.
    fn append(&self, batch: TraceBatch<'_>, out: &mut Self::Batch);

    /// The same where several threads make batches for one that takes them, and should have little
    /// to do.
    fn append_for_one(&self, batch: TraceBatch<'_>, out: &mut Self::Batch) {
        self.append(batch, out);
    }

    /// Does some of what is to be done with batches that were taken, while there is nothing to
    /// make; whether there was something.
    fn assist(&self) -> bool {
        false
    }
}

/// What makes batches as one of several threads.
pub(super) struct OneOfMany<'a, M>(pub(super) &'a M);

impl<M: BatchBuilder> BatchBuilder for OneOfMany<'_, M> {
    type Batch = M::Batch;

    fn append(&self, batch: TraceBatch<'_>, out: &mut Self::Batch) {
        self.0.append_for_one(batch, out);
    }
}

/// What came of reading a batch.
enum Made {
    Batch,
    End,
    /// The maker panicked at the packet with this number in the batch.
    Broken(u64, WorkerPanicked),
}

/// Reads a batch and appends what is made of it to `out`, before which there were `before` packets;
/// false at the end.
pub(crate) fn read_batch<M: BatchBuilder + ?Sized>(
    capture: &mut Capture,
    maker: &M,
    out: &mut M::Batch,
    before: u64,
) -> Result<bool, TraceError> {
    let already = out.times_ns().len() as u64;
    let made = catch_panic(|| {
        let Some(batch) = capture.next_batch()? else {
            return Ok(Made::End);
        };
        Ok(match catch_panic(|| maker.append(batch, out)) {
            Ok(()) => Made::Batch,
            Err(gone) => {
                let (place, gone) = culprit(maker, batch).unwrap_or((0, gone));
                Made::Broken(place, gone)
            }
        })
    });
    let (place, gone) = match made {
        Ok(Err(error)) => return Err(error),
        Ok(Ok(Made::End)) => return Ok(false),
        Ok(Ok(Made::Batch)) => return Ok(true),
        Ok(Ok(Made::Broken(place, gone))) => (place, gone),
        // The reader itself.
        Err(gone) => (0, gone),
    };
    // It may be half made.
    out.clear();
    Err(undecodable(capture, before + already + place + 1, before + 1, gone))
}

/// The error of an input whose reader or maker panicked at a packet; what was read of it from
/// `lost_from` on is not used.
pub(super) fn undecodable(
    capture: &Capture,
    packet: u64,
    lost_from: u64,
    WorkerPanicked(reason): WorkerPanicked,
) -> TraceError {
    TraceError {
        path: capture.path().to_path_buf(),
        offset: None,
        kind: TraceErrorKind::Undecodable { packet, lost_from, reason },
    }
}

/// The first packet of a batch that the maker panics at, by its number in the batch.
fn culprit<M: BatchBuilder + ?Sized>(
    maker: &M,
    batch: TraceBatch<'_>,
) -> Option<(u64, WorkerPanicked)> {
    let TraceBatch::Packets { bytes, packets } = batch else {
        return None;
    };
    packets.chunks(1).enumerate().find_map(|(number, packets)| {
        let alone = TraceBatch::Packets { bytes, packets };
        let gone = catch_panic(|| maker.append(alone, &mut M::Batch::default())).err()?;
        Some((number as u64, gone))
    })
}

/// A batch of times.
#[derive(Debug, Default)]
pub(crate) struct Times(pub(crate) Vec<i64>);

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

/// Takes the times and nothing else.
#[derive(Debug)]
pub(crate) struct TimeBuilder;

impl BatchBuilder for TimeBuilder {
    type Batch = Times;

    fn append(&self, batch: TraceBatch<'_>, out: &mut Times) {
        match batch {
            TraceBatch::Packets { packets, .. } => {
                out.0.extend(packets.iter().map(|packet| packet.time_ns));
            }
            TraceBatch::Log(log) => out.0.extend(log.entries.iter().map(|entry| entry.time_ns)),
        }
    }
}
