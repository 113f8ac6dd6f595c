//! What a hostile file can take: memory that does not grow with what it claims or holds, and work
//! in proportion to its bytes. Memory is what the allocator was asked for, at its peak; work is
//! counted in reads and batches and not by the clock.

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

/// Only one test at a time is measured.
static ALONE: Mutex<()> = Mutex::new(());

/// From its making on, the most memory in use beyond what was in use then.
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
