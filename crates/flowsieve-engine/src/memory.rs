//! Memory that the system may refuse, and prefetching. Whatever grows with the input or with options
//! asks before it allocates: a refusal must not end the program.

pub(crate) use crate::bits::MEMORY_REFUSED;
use crate::bits::can_allocate as pages_fit;
use std::hint::black_box;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// Allowance for everything that does not ask: buffers, batches, stacks of threads.
const ELSE_BYTES: u64 = 16 << 20;

/// Fewer bytes are covered by the allowance.
const LEAST_BYTES: u64 = 64 << 10;

/// Bytes promised to running threads.
static RESERVED: AtomicU64 = AtomicU64::new(0);

/// Returns whether the system would give this many bytes now, in addition to the reservations and
/// the allowance.
pub(crate) fn can_allocate(bytes: u64) -> bool {
    bytes < LEAST_BYTES || fits(bytes)
}

fn fits(bytes: u64) -> bool {
    let reserved = RESERVED.load(Ordering::Relaxed);
    pages_fit(bytes.saturating_add(reserved).saturating_add(ELSE_BYTES))
}

/// Returns whether there is memory for a run in one thread.
pub fn can_run() -> bool {
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
        let is_room = pages_fit(all.saturating_mul(Self::SHARES).saturating_add(ELSE_BYTES));
        is_room.then_some(reserved)
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        RESERVED.fetch_sub(self.0, Ordering::Relaxed);
    }
}

/// Returns whether this many bytes are covered by the allowance, so that nobody has to ask.
pub(crate) const fn is_small(bytes: u64) -> bool {
    bytes <= ELSE_BYTES / 4
}

/// Halves `bytes` until the system gives them, but not below `least`.
pub fn allocatable(mut bytes: u64, least: u64) -> u64 {
    while bytes > least && !can_allocate(bytes) {
        bytes = (bytes / 2).max(least);
    }
    bytes
}

/// Bytes of a cache line.
const LINE_BYTES: usize = 64;

/// Reads one item of each cache line in a range of a column, which may reach past its end. Items
/// that another thread wrote are then in this processor's cache; the misses overlap. `value` is any
/// function that depends on the item.
pub(crate) fn prefetch<T: Copy>(column: &[T], items: &Range<usize>, value: impl Fn(T) -> u64) {
    let items = &column[items.start.min(column.len())..items.end.min(column.len())];
    let lines = items.iter().step_by((LINE_BYTES / size_of::<T>()).max(1));
    black_box(lines.fold(0, |all, &item| all ^ value(item)));
}
