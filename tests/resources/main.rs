//! Limits of a hostile file: the memory does not grow with its claims or its content, and the work
//! is proportional to its bytes. Memory is the peak of the bytes allocated; work is the number of
//! reads and batches, not time.

#![allow(clippy::unwrap_used, reason = "a test that unwraps fails where it should")]
#![allow(clippy::disallowed_methods, reason = "tests name their own paths")]

mod adversary;
mod bombs;
mod claims;
mod source;

use peak_alloc::PeakAlloc;
use std::sync::{Mutex, MutexGuard, PoisonError};

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// Held by the test that measures: only one at a time.
static ALONE: Mutex<()> = Mutex::new(());

/// Measures the peak memory in use, beyond the memory in use at the start.
struct Measured {
    before: usize,
    _alone: MutexGuard<'static, ()>,
}

impl Measured {
    fn start() -> Self {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        ALLOCATOR.reset_peak_usage();
        Self { before: ALLOCATOR.current_usage(), _alone: alone }
    }

    fn peak_bytes(&self) -> usize {
        ALLOCATOR.peak_usage().saturating_sub(self.before)
    }
}
