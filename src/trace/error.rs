//! The one error of this layer: which file, where in it, what was wrong, what to do.

use std::path::PathBuf;

/// A capture could not be opened, or could not be read to its end.
#[derive(Debug)]
pub struct TraceError {
    /// The file, or `-` for standard input.
    pub path: PathBuf,
    /// Offset in the (decompressed) stream at which the trouble begins, where one is known.
    pub offset: Option<u64>,
    /// What was wrong.
    pub kind: TraceErrorKind,
}

/// What can be wrong with a capture.
#[derive(Debug)]
#[non_exhaustive]
pub enum TraceErrorKind {
    /// The operating system refused.
    Io(std::io::Error),
}
