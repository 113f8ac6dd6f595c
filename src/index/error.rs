//! Why an index cannot be read, written or asked.

use super::CaptureEntry;
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
    #[error("{}: {error}", path.shown())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What it said.
        error: io::Error,
    },
    /// The bytes are not those that were written.
    #[error(
        "{}: this file of the index is damaged ({})", path.shown(), reason.shown()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The catalogue, by which everything else is found, is damaged.
    #[error(
        "{}: the catalogue of the index is damaged ({}); build the index anew in another folder", path.shown(), reason.shown()
    )]
    Catalog {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// Written by a program that knows more.
    #[error(
        "{}: this index has the format {}, and only {known} is known here; use the flowsieve that wrote it, or build it anew", path.shown(), found.shown()
    )]
    Newer {
        /// The catalogue.
        path: PathBuf,
        /// The format that it names.
        found: String,
        /// The format that is known.
        known: &'static str,
    },
    /// Written by a program of before the first release.
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
    /// The system does not give the memory; a sentence.
    #[error("{0}")]
    Refused(String),
    /// Another process writes.
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
    /// What was asked for contradicts itself.
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

    /// Of listing the flows of this capture.
    pub(super) fn of_flows(path: &Path, error: RunError) -> Self {
        match error {
            RunError::Plan(error) => Self::Plan(error.to_string()),
            RunError::Sink(error) => Self::io(path)(error),
            error => Self::Run(error),
        }
    }

    /// The sentence, with the captures to which a damaged file belongs, and what repairs it.
    pub(super) fn of_captures(&self, archive: &Path, captures: &[CaptureEntry]) -> String {
        if !matches!(self, Self::Damaged { .. }) && !self.is_missing_file() {
            return self.to_string();
        }
        let repair = format!("`flowsieve index repair {}` makes it again", archive.shown());
        match captures {
            [] => format!("{self}; {repair}"),
            [entry] => format!("{self}; it belongs to {}; {repair}", entry.path.shown()),
            [first, others @ ..] => format!(
                "{self}; it belongs to {} and {} more captures; {repair}",
                first.path.shown(),
                others.len()
            ),
        }
    }

    /// Whether a file is not there.
    pub(super) fn is_missing_file(&self) -> bool {
        matches!(self, Self::Io { error, .. } if error.kind() == io::ErrorKind::NotFound)
    }
}
