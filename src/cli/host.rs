//! Who runs a command: a person in a shell, or a program that has this one as a library.

use flowsieve::trace::{StopFlag, TraceError};
use std::cell::RefCell;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// A program that runs commands: it takes what a shell would show.
pub trait Host: Send + Sync {
    /// Takes what goes to standard output.
    ///
    /// # Errors
    ///
    /// Nobody reads on; this ends the run.
    fn write(&self, bytes: &[u8]) -> io::Result<()>;

    /// Takes a line that goes to standard error, with the place of a problem.
    fn said(&self, line: &str, place: Option<&Place>);

    /// Takes the progress of a run: bytes read, packets seen, and how many bytes there are if that
    /// is known.
    fn progress(&self, bytes: u64, packets: u64, total_bytes: Option<u64>);

    /// Returns the flag that ends the run. Once it is set, no output appears.
    fn stop(&self) -> StopFlag;
}

/// The place of a problem.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Place {
    /// The file.
    pub path: PathBuf,
    /// The byte there, if it is known.
    pub offset: Option<u64>,
}

impl From<&TraceError> for Place {
    fn from(error: &TraceError) -> Self {
        Self { path: error.path.clone(), offset: error.offset }
    }
}

/// A problem that is reported on standard error.
pub(crate) struct Problem {
    pub(super) sentence: String,
    pub(super) place: Option<Place>,
}

impl From<String> for Problem {
    fn from(sentence: String) -> Self {
        Self { sentence, place: None }
    }
}

impl From<&TraceError> for Problem {
    fn from(error: &TraceError) -> Self {
        Self { sentence: error.to_string(), place: Some(error.into()) }
    }
}

thread_local! {
    /// A command speaks, and opens its outputs, in the thread that runs it.
    static CURRENT: RefCell<Option<Arc<dyn Host>>> = const { RefCell::new(None) };
}

/// Returns the program that runs the command of this thread, or `None` in a shell.
pub(crate) fn current() -> Option<Arc<dyn Host>> {
    CURRENT.with_borrow(Clone::clone)
}

/// Returns whether the program that runs this command wants no result any more.
pub(crate) fn is_cancelled() -> bool {
    current().is_some_and(|host| host.stop().is_set())
}

/// Runs `work` in this thread with this host in the place of a shell.
pub(super) fn run_as<T>(host: Arc<dyn Host>, work: impl FnOnce() -> T) -> T {
    CURRENT.set(Some(host));
    let result = work();
    CURRENT.set(None);
    result
}

/// Returns what a host has in the place of standard output.
pub(crate) fn writer() -> Option<HostWriter> {
    current().map(HostWriter)
}

/// Standard output of a host.
pub(crate) struct HostWriter(Arc<dyn Host>);

impl io::Write for HostWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns the place that an error names, if it is one of a capture.
pub(super) fn place_of(error: &anyhow::Error) -> Option<Place> {
    let error = error.chain().find_map(|cause| cause.downcast_ref::<TraceError>());
    error.map(Place::from)
}
