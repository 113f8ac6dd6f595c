//! Whether the system gives memory, and whether the processor has it near. Allocations that grow
//! with the input or with options are tried: a refusal must not end the program.

pub(crate) use crate::bits::MEMORY_REFUSED;
use crate::bits::is_given as pages_are_given;
use std::hint::black_box;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// What everything else takes while the program runs: buffers, batches, stacks of threads.
const ELSE_BYTES: u64 = 16 << 20;

/// Below this the room for everything else is enough.
const LEAST_BYTES: u64 = 64 << 10;

/// Bytes that the running threads may take.
static RESERVED: AtomicU64 = AtomicU64::new(0);

/// Whether the system would give this many bytes now, besides what threads and everything else
/// take.
pub(crate) fn is_given(bytes: u64) -> bool {
    bytes < LEAST_BYTES || fits(bytes)
}

fn fits(bytes: u64) -> bool {
    let reserved = RESERVED.load(Ordering::Relaxed);
    pages_are_given(bytes.saturating_add(reserved).saturating_add(ELSE_BYTES))
}

/// Whether there is room for a run in one thread.
pub fn is_room_to_run() -> bool {
    fits(0)
}

/// Memory that a thread, or a writer, may take until this is dropped. Results do not grow into it.
#[derive(Debug)]
pub struct Reservation(u64);

impl Reservation {
    /// Threads get at most a third of the memory together; the rest is for results.
    const SHARES: u64 = 3;

    /// Reserves memory for what allocates it without asking, if the system would give it now.
    pub fn new(bytes: u64) -> Option<Self> {
        let is_room = fits(bytes);
        RESERVED.fetch_add(bytes, Ordering::Relaxed);
        let reserved = Self(bytes);
        is_room.then_some(reserved)
    }

    /// Reserves memory for a thread.
    pub(crate) fn for_thread(bytes: u64) -> Option<Self> {
        let before = RESERVED.fetch_add(bytes, Ordering::Relaxed);
        let reserved = Self(bytes);
        let all = before.saturating_add(bytes);
        let is_room = pages_are_given(all.saturating_mul(Self::SHARES).saturating_add(ELSE_BYTES));
        is_room.then_some(reserved)
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        RESERVED.fetch_sub(self.0, Ordering::Relaxed);
    }
}

/// Whether there is room for so many bytes in what everything else takes, so that nobody has to ask
/// for them.
pub(crate) const fn is_little(bytes: u64) -> bool {
    bytes <= ELSE_BYTES / 4
}

/// The most of these bytes, halved as often as needed, that the system gives; but no less than
/// `least`.
pub fn given_of(mut bytes: u64, least: u64) -> u64 {
    while bytes > least && !is_given(bytes) {
        bytes = (bytes / 2).max(least);
    }
    bytes
}

/// Bytes that a processor fetches together.
const LINE_BYTES: usize = 64;

/// Reads some items of a column, once in each cache line; there need not be this many. What another
/// thread wrote is near then, and was fetched from many places at a time; `value` is anything that
/// has to look at the item.
pub(crate) fn fetch<T: Copy>(column: &[T], items: &Range<usize>, value: impl Fn(T) -> u64) {
    let items = &column[items.start.min(column.len())..items.end.min(column.len())];
    let lines = items.iter().step_by((LINE_BYTES / size_of::<T>()).max(1));
    black_box(lines.fold(0, |all, &item| all ^ value(item)));
}
