//! Results of the inputs, and reports of progress.

use crate::trace::{FileState, StopFlag, TraceError, TraceErrorKind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// Result of one input.
#[derive(Debug, Default)]
pub struct InputResult {
    /// The file, or `-`.
    pub path: PathBuf,
    /// Name of the container, and of the compression if there is one; `None` if it was not opened.
    pub container: Option<String>,
    /// Packets (or log records) that were read and wanted.
    pub packets: u64,
    /// Packets that the capture filter or the range of time excluded.
    pub left_out: u64,
    /// Bytes of the file that were not read, because they hold no packet in the range of time.
    pub unread_bytes: u64,
    /// Packets whose times are outside 1677 to 2262. They count at the nearest time in that range.
    pub times_out_of_range: u64,
    /// Why it was not read in full, if it was not.
    pub error: Option<TraceError>,
    /// Sentences about what is uncertain.
    #[doc(hidden)]
    pub remarks: Vec<String>,
    /// It is a log, which has no packets.
    pub is_log: bool,
    /// The file that was opened; `None` for what is no regular file.
    #[doc(hidden)]
    pub file: Option<FileState>,
    /// The same at the end of its reading.
    #[doc(hidden)]
    pub file_at_end: Option<FileState>,
}

impl InputResult {
    /// Creates the result of an input of which nothing could be read, for the reason in this
    /// sentence, which names it.
    #[doc(hidden)]
    pub fn unread(path: PathBuf, sentence: String) -> Self {
        let error = Some(TraceErrorKind::Reported { sentence }.in_file(&path));
        Self { path, error, ..Self::default() }
    }

    /// Returns whether all inputs were read to their ends.
    #[doc(hidden)]
    pub fn all_read(inputs: &[Self], interrupted: bool) -> bool {
        !interrupted && inputs.iter().all(|input| input.error.is_none())
    }

    /// Returns the results of inputs that were read twice: with the errors of the other reading, and
    /// one if the readings were not of the same packets.
    pub(crate) fn read_twice(
        mut results: Vec<Self>,
        other: Vec<Self>,
        interrupted: bool,
    ) -> Vec<Self> {
        for (result, other) in results.iter_mut().zip(other) {
            let is_same = [result.file, result.file_at_end].map(|it| it == other.file) == [true; 2]
                && result.packets == other.packets;
            result.error = result.error.take().or(other.error).or_else(|| {
                let is_changed = !is_same && !interrupted;
                is_changed.then(|| TraceErrorKind::Changed.in_file(&result.path))
            });
        }
        results
    }
}

/// Receives reports of progress, and may end the run.
pub trait Watch {
    /// Called now and then with the bytes of the inputs (as on disk) and the packets done.
    fn progress(&self, bytes: u64, packets: u64);

    /// These inputs are open now, and inputs of `done` bytes are at their end. Each counter says
    /// how many bytes of its input were read, also while none of its packets is wanted and
    /// [`progress`](Self::progress) is silent. Called whenever an input is opened; counters may be
    /// read from another thread.
    #[doc(hidden)]
    fn reading(&self, done: u64, open: &[Arc<AtomicU64>]) {
        let _ = (done, open);
    }

    /// Returns a flag that ends the run when it is set: what was read until then is the result, and
    /// is marked. Called once, when the run begins.
    fn stop(&self) -> StopFlag {
        StopFlag::default()
    }
}

/// No reports; the flag ends the run.
impl Watch for StopFlag {
    fn progress(&self, _: u64, _: u64) {}

    fn stop(&self) -> StopFlag {
        self.clone()
    }
}

/// No reports.
impl Watch for () {
    fn progress(&self, _: u64, _: u64) {}
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

    use super::*;
    use std::fs;

    #[test]
    fn a_file_that_changes_before_or_during_its_second_reading_is_a_problem() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("capture");
        let state = |bytes: &[u8]| {
            fs::write(&path, bytes).unwrap();
            Some(FileState::of(&fs::metadata(&path).unwrap()))
        };
        let (before, after) = (state(b"first"), state(b"another"));
        let read = |file, file_at_end, packets| InputResult {
            path: path.clone(),
            file,
            file_at_end,
            packets,
            ..InputResult::default()
        };
        let is_fine = |second| {
            let first = vec![read(before, before, 7)];
            InputResult::read_twice(vec![second], first, false)[0].error.is_none()
        };
        assert!(is_fine(read(before, before, 7)));
        assert!(!is_fine(read(after, after, 7)));
        assert!(!is_fine(read(before, after, 7)));
        assert!(!is_fine(read(before, before, 6)));
        // A plan has no slices, and some results need two readings of any capture.
        let error = TraceError { path: path.clone(), offset: None, kind: TraceErrorKind::Changed };
        let error = error.to_string();
        assert!(!error.contains("slices") && !error.contains("order"), "{error}");
    }
}
