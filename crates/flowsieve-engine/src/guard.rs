//! A panic is a mistake of flowsieve's own. It ends the run, or an input, with an error that says
//! where in the trace it happened, and nobody waits for a thread that is gone.

use crate::bits::MEMORY_REFUSED;
use crate::untrusted::Shown;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

/// A worker stopped before its work was done, and why.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct WorkerGone(pub String);

impl WorkerGone {
    /// It left no word.
    pub fn silent() -> Self {
        Self("a thread ended before its work was done".to_owned())
    }

    /// It was to work on this many packets of an input, behind the first `before` ones.
    pub fn at(self, path: &Path, before: u64, packets: u64) -> Broken {
        Broken {
            path: path.to_owned(),
            first: before + 1,
            others: packets.saturating_sub(1),
            reason: self.0,
        }
    }
}

/// What was to be done with some packets panicked: a mistake of flowsieve's own, unless the system
/// refused memory.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub struct Broken {
    /// Their input.
    pub path: PathBuf,
    /// Number of the first of them, from 1.
    pub first: u64,
    /// How many follow it.
    pub others: u64,
    /// What was said.
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

/// Does the work; what it was working on is not to be used any more if it panics.
///
/// # Errors
///
/// It panicked.
pub fn guarded<T>(work: impl FnOnce() -> T) -> Result<T, WorkerGone> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        let text = panic.downcast_ref::<&str>().copied();
        let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        WorkerGone(text.unwrap_or("a panic without a word").to_owned())
    })
}
