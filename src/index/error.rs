//! Why an index cannot be read, written or asked.

use flowsieve_engine::internal::Shown;
use flowsieve_engine::internal::{Broken, RunError};
use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};

/// Each is one sentence with the file and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IndexError {
    /// The operating system refused.
    #[error("{}: {error}{}", path.shown(), remedy(error))]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// Its error.
        error: io::Error,
    },
    /// The bytes are not those that were written.
    #[error(
        "{}: this file of the index is damaged ({})", path.shown(), reason.shown()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The damage.
        reason: String,
    },
    /// Both files that name the captures of a segment are damaged.
    #[error(
        "{}: this file of the index is damaged ({}), and so is its copy {}, so its captures cannot be found; restore one of the two files, or build the index again in another folder", path.shown(), reason.shown(), copy.shown()
    )]
    Segment {
        /// The file.
        path: PathBuf,
        /// Its damage.
        reason: String,
        /// The copy.
        copy: PathBuf,
        /// Whether neither exists: a writer may have replaced the segment.
        is_missing: bool,
    },
    /// The catalogue, by which everything else is found, is damaged.
    #[error(
        "{}: the catalogue of the index is damaged ({}); restore it, or build the index again in another folder", path.shown(), reason.shown()
    )]
    Catalog {
        /// The file.
        path: PathBuf,
        /// The damage.
        reason: String,
    },
    /// A newer program wrote the index.
    #[error(
        "{}: this index has the format {}, and only {known} is known here; use the flowsieve that wrote it, or build it again", path.shown(), found.shown()
    )]
    Newer {
        /// The catalogue.
        path: PathBuf,
        /// The format that it names.
        found: String,
        /// The format that is known.
        known: &'static str,
    },
    /// A program from before the first release wrote the index.
    #[error(
        "{}: this index has the format {found}, which is no longer read; build the index again in another folder: `flowsieve index build`", path.shown()
    )]
    Older {
        /// The catalogue.
        path: PathBuf,
        /// The format that it names.
        found: String,
    },
    /// A folder that the catalogue names is not a node of this index; nothing is written there.
    #[error("{}: {reason}", folder.shown())]
    Node {
        /// The folder.
        folder: PathBuf,
        /// Why, and what to do.
        reason: String,
    },
    /// The system refuses memory; a sentence.
    #[error("{0}")]
    Refused(String),
    /// Another process writes to the index.
    #[error(
        "{}: another flowsieve is writing to this index; wait until it is done, searching works meanwhile", .0.shown()
    )]
    Busy(PathBuf),
    /// There is no index.
    #[error("{}: there is no index in this folder; `flowsieve index build` makes one", .0.shown())]
    Missing(PathBuf),
    /// There is a file where the index should be.
    #[error("{}: an index is a directory, and this is a file; name the directory that `flowsieve index build` made", .0.shown())]
    File(PathBuf),
    /// An answer could not be kept or written.
    #[error("an answer could not be handed on: {0}")]
    Sink(#[source] io::Error),
    /// The request cannot be carried out; a sentence.
    #[error("{0}")]
    Plan(String),
    /// The flows of a capture could not be listed.
    #[error(transparent)]
    Run(RunError),
}

impl From<Broken> for IndexError {
    fn from(broken: Broken) -> Self {
        Self::Run(broken.into())
    }
}

impl IndexError {
    pub(super) fn io(path: &Path) -> impl Fn(io::Error) -> Self + '_ {
        |error| Self::Io { path: path.to_owned(), error }
    }

    pub(super) fn damaged(path: &Path, reason: impl Display) -> Self {
        Self::Damaged { path: path.to_owned(), reason: reason.to_string() }
    }

    /// Returns the error of listing the flows of this capture.
    pub(super) fn from_flows(path: &Path, error: RunError) -> Self {
        match error {
            RunError::Plan(error) => Self::Plan(error.to_string()),
            RunError::Sink(error) => Self::io(path)(error),
            error => Self::Run(error),
        }
    }

    /// Returns whether a file is damaged or gone, and can perhaps be made again.
    pub(super) fn is_damage(&self) -> bool {
        matches!(self, Self::Damaged { .. })
            || (matches!(self, Self::Io { .. }) && self.is_missing_file())
    }

    /// Returns the damage of a file, without its name.
    pub(super) fn reason(&self) -> String {
        match self {
            Self::Damaged { reason, .. } => reason.clone(),
            Self::Io { error, .. } => error.to_string(),
            error => error.to_string(),
        }
    }

    /// Returns whether a file does not exist.
    pub(super) fn is_missing_file(&self) -> bool {
        match self {
            Self::Io { error, .. } => error.kind() == io::ErrorKind::NotFound,
            Self::Segment { is_missing, .. } => *is_missing,
            _ => false,
        }
    }
}

/// Returns what to do about an error of writing, as the end of a sentence.
fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "; free space there and run the command again"
        }
        _ => "",
    }
}

/// Returns what was read, or `None` if the file is damaged or gone and can perhaps be made again.
pub(super) fn undamaged<T>(read: Result<T, IndexError>) -> Result<Option<T>, IndexError> {
    match read {
        Err(error) if error.is_damage() => Ok(None),
        read => read.map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_has_a_remedy() {
        let error = IndexError::io(Path::new("a/journal"))(io::ErrorKind::StorageFull.into());
        assert!(error.to_string().ends_with("; free space there and run the command again"));
    }
}
