//! Why a run has no result.

use crate::guard::{Broken, WorkerPanicked};
use crate::memory::MEMORY_REFUSED;
use crate::trace::write::WriteError;
use std::{fmt, io};

/// Choices that do not go together.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{0}")]
pub struct PlanError(String);

impl PlanError {
    pub(crate) fn new(rule: impl Into<String>) -> Self {
        Self(rule.into())
    }

    /// Checks a rule, which is said if it does not hold.
    pub(crate) fn unless(holds: bool, rule: impl fmt::Display) -> Result<(), Self> {
        if holds { Ok(()) } else { Err(Self(rule.to_string())) }
    }
}

/// Why there is no result at all.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The plan contradicts itself.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// Results could not be handed on, or kept in a temporary file.
    #[error("the results could not be written: {0}")]
    Sink(#[from] io::Error),
    /// Packets that are kept could not be written.
    #[error("{0}")]
    Kept(#[source] WriteError),
    /// Packets that are dropped could not be written.
    #[error("{0}")]
    Dropped(#[source] WriteError),
    /// A thread that counts panicked, which is a mistake of flowsieve's own.
    #[error(
        "counting failed within the first {packets} packets ({reason}); this is a mistake in flowsieve, please report it with the options and the capture"
    )]
    Worker {
        /// Packets of the trace handed on by then.
        packets: u64,
        /// Message of the thread.
        reason: String,
    },
    /// The consumer of the packets panicked.
    #[error(transparent)]
    Broken(#[from] Broken),
    /// The system refuses memory that the plan needs; a sentence.
    #[error("{0}")]
    Refused(String),
    /// Memory was given when the run began, and refused later.
    #[error("{MEMORY_REFUSED}")]
    Memory,
}

impl RunError {
    /// Returns the error of a run in which a thread panicked within its first packets.
    pub(crate) fn panicked(packets: u64, WorkerPanicked(reason): WorkerPanicked) -> Self {
        if reason == MEMORY_REFUSED { Self::Memory } else { Self::Worker { packets, reason } }
    }
}
