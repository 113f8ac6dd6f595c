//! Whether the system gives memory, and whether the processor has it near. Allocations that grow with the input or with options are
//! tried: a refusal must not end the program.

pub(crate) use crate::bits::MEMORY_REFUSED;
use crate::bits::{Pages, is_given as pages_are_given};
use bytemuck::Pod;
use std::hint::black_box;
use std::ops::Range;
use std::panic::resume_unwind;
use std::thread::{self, JoinHandle};

/// What everything else takes while the program runs: buffers, batches, stacks of threads.
const ELSE_BYTES: u64 = 16 << 20;

/// Below this the room for everything else is enough.
const LEAST_BYTES: u64 = 64 << 10;

/// Whether the system would give this many bytes now, and what everything else takes.
pub(crate) fn is_given(bytes: u64) -> bool {
    bytes < LEAST_BYTES || pages_are_given(bytes.saturating_add(ELSE_BYTES))
}

/// Whether there is room for so many bytes in what everything else takes, so that nobody has to ask for them.
pub(crate) const fn is_little(bytes: u64) -> bool {
    bytes <= ELSE_BYTES / 4
}

/// The most of these bytes, halved as often as needed, that the system gives; but no less than `least`.
pub fn given_of(mut bytes: u64, least: u64) -> u64 {
    while bytes > least && !is_given(bytes) {
        bytes = (bytes / 2).max(least);
    }
    bytes
}

/// What a thread may take of the addresses that the program is allowed: its stack and the heap that the C library gives it.
const THREAD_BYTES: u64 = 160 << 20;

/// Bytes of the smallest page.
const PAGE_BYTES: usize = 4096;

/// Pages that a thread takes from the system before they are needed: to clear them takes the system as long as to find many flows
/// takes a table.
#[derive(Debug)]
pub(crate) struct Prepared<T>(JoinHandle<Pages<T>>);

impl<T: Pod + Send> Prepared<T> {
    /// Starts a thread for it, if there is one to be had. Where memory is short there is none: a small allocation
    /// elsewhere that failed for it would end the program.
    pub(crate) fn start(mut pages: Pages<T>) -> Option<Self> {
        if !is_given(THREAD_BYTES) {
            return None;
        }
        let write = move || {
            let items = pages.as_mut_slice().iter_mut();
            for item in items.step_by((PAGE_BYTES / size_of::<T>()).max(1)) {
                *black_box(item) = T::zeroed();
            }
            pages
        };
        let thread = thread::Builder::new().name("pages".to_owned());
        Some(Self(thread.spawn(write).ok()?))
    }

    /// The pages, when the thread has them.
    pub(crate) fn take(self) -> Pages<T> {
        self.0.join().unwrap_or_else(|panic| resume_unwind(panic))
    }
}

/// Bytes that a processor fetches together.
const LINE_BYTES: usize = 64;

/// Reads some items of a column, once in each cache line; there need not be this many. What another thread wrote is near then, and was
/// fetched from many places at a time; `value` is anything that has to look at the item.
pub(crate) fn fetch<T: Copy>(column: &[T], items: &Range<usize>, value: impl Fn(T) -> u64) {
    let items = &column[items.start.min(column.len())..items.end.min(column.len())];
    let lines = items.iter().step_by((LINE_BYTES / size_of::<T>()).max(1));
    black_box(lines.fold(0, |all, &item| all ^ value(item)));
}
