//! Errors of parameters.

use super::FilterKind;

/// Invalid parameters of a filter. The text states the rule and a value that works.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SpecError {
    /// The memory does not hold the smallest filter of the kind.
    #[error("a {} filter needs at least {least} bytes, not {bytes}; ask for {least} or more", kind.name())]
    TooLittleMemory {
        /// The structure.
        kind: FilterKind,
        /// Bytes of the smallest filter.
        least: u64,
        /// Requested bytes.
        bytes: u64,
    },
    /// Another rule is broken, which the text states.
    #[error("{0}")]
    Rule(String),
}

impl SpecError {
    pub(crate) fn new(rule: impl Into<String>) -> Self {
        Self::Rule(rule.into())
    }
}
