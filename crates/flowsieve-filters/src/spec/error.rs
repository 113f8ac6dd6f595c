//! Parameters that no filter can have.

use super::FilterKind;

/// Parameters that no filter can have; the text states the rule and a value that works.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SpecError {
    /// The memory does not hold the smallest filter of the kind.
    #[error("a {} filter needs at least {least} bytes, not {bytes}; ask for {least} or more", kind.name())]
    TooLittleMemory {
        /// The structure.
        kind: FilterKind,
        /// Bytes of the smallest one.
        least: u64,
        /// Bytes asked for.
        bytes: u64,
    },
    /// Another rule is broken; the text says which.
    #[error("{0}")]
    Rule(String),
}

impl SpecError {
    pub(crate) fn new(rule: impl Into<String>) -> Self {
        Self::Rule(rule.into())
    }
}
