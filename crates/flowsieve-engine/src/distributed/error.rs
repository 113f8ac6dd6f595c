//! Why a distributed run failed.

use crate::guard::WorkerPanicked;
use crate::pipeline::PlanError;
use crate::trace::TraceError;
use crate::untrusted::Shown;
use std::fmt::Display;
use std::io;
use std::path::PathBuf;

/// A piece could not be read, or pieces do not belong together.
#[derive(Debug, thiserror::Error)]
pub enum PieceError {
    /// The plan contradicts itself.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The system did not deliver the bytes of an input: reading it again may help. (Damage is no
    /// error; it is listed with its input.)
    #[error(transparent)]
    Unreadable(#[from] TraceError),
    /// These bytes cannot be read as this form.
    #[error("these bytes are no {form} that this version of flowsieve can read: {reason}")]
    Bytes {
        /// Name of the form.
        form: &'static str,
        /// Why they cannot be read.
        reason: &'static str,
    },
    /// A file changed after the run was planned, or since it was read before.
    #[error("{}: this file changed while it was read; run again when it is whole", .0.shown())]
    Changed(PathBuf),
    /// Parts that belong to different runs, or an incomplete set of parts.
    #[error("the pieces do not make one count: {0}")]
    Mismatch(String),
    /// The results could not be written.
    #[error("the results could not be written: {0}")]
    Sink(#[from] io::Error),
    /// Counting panicked, which is a bug in flowsieve.
    #[error(
        "counting failed ({0}); this is a mistake in flowsieve, please report it with the options and the capture"
    )]
    Broken(String),
}

impl PieceError {
    pub(super) fn mismatch(what: impl Display) -> Self {
        Self::Mismatch(what.to_string())
    }

    /// Checks that parts belong together.
    pub(super) fn unless(fits: bool, what: impl Display) -> Result<(), Self> {
        if fits { Ok(()) } else { Err(Self::mismatch(what)) }
    }

    /// Checks that the tallies have all elements that were read.
    pub(super) fn unless_all(came: u64, read: u64) -> Result<(), Self> {
        if came == read {
            return Ok(());
        }
        Err(Self::Mismatch(format!(
            "{came} of {read} elements came: reduce every bucket with all of its parts, and report what all of them gave"
        )))
    }
}

impl From<WorkerPanicked> for PieceError {
    fn from(gone: WorkerPanicked) -> Self {
        Self::Broken(gone.0)
    }
}
