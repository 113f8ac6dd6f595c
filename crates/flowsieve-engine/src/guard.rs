//! Panics as errors. A panic is a mistake in flowsieve: it ends the run, or an input, with an error
//! that says where in the trace it happened, and no thread waits for one that is gone.

use crate::bits::MEMORY_REFUSED;
use crate::untrusted::Shown;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};

/// A worker panicked; the message says why.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{0}")]
pub struct WorkerPanicked(pub String);

impl WorkerPanicked {
    /// Panics with the worker's message, which was shown when the worker panicked.
    pub fn resume(self) -> ! {
        resume_unwind(Box::new(self.0))
    }

    /// A worker that ended without a message.
    pub fn silent() -> Self {
        Self("a thread ended before its work was done".to_owned())
    }

    /// Names the packets it was working on: `packets` of an input after the first `before` ones.
    pub fn at(self, path: &Path, before: u64, packets: u64) -> Broken {
        Broken {
            path: path.to_owned(),
            first: before + 1,
            others: packets.saturating_sub(1),
            reason: self.0,
        }
    }
}

/// Processing some packets panicked: a mistake in flowsieve, unless the system refused memory.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub struct Broken {
    /// Input of the packets.
    pub path: PathBuf,
    /// Number of the first one, from 1.
    pub first: u64,
    /// Number of packets after it.
    pub others: u64,
    /// Message of the panic.
    pub reason: String,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, first, others, reason } = self;
        if reason == MEMORY_REFUSED {
            return f.write_str(MEMORY_REFUSED);
        }
        write!(
            f,
            "{}: packet {first}, or one of the {others} behind it, could not be processed ({reason}); this is a mistake in flowsieve, please report it with these packets",
            path.shown()
        )
    }
}

/// Calls `work`. If it panics, what it was changing must not be used any more.
///
/// # Errors
///
/// `work` panicked.
pub fn catch_panic<T>(work: impl FnOnce() -> T) -> Result<T, WorkerPanicked> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        let text = panic.downcast_ref::<&str>().copied();
        let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        WorkerPanicked(text.unwrap_or("a panic without a word").to_owned())
    })
}
