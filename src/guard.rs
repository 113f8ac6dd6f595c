//! A panic is a mistake of flowsieve's own. It ends the run, or an input, with an error that says where
//! in the trace it happened, and nobody waits for a thread that is gone.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// A worker stopped before its work was done, and why.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct WorkerGone(pub(crate) String);

impl WorkerGone {
    /// It left no word.
    pub(crate) fn silent() -> Self {
        Self("a thread ended before its work was done".to_owned())
    }
}

/// Does the work; what it was working on is not to be used any more if it panics.
pub(crate) fn guarded<T>(work: impl FnOnce() -> T) -> Result<T, WorkerGone> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        let text = panic.downcast_ref::<&str>().copied();
        let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        WorkerGone(text.unwrap_or("a panic without a word").to_owned())
    })
}
