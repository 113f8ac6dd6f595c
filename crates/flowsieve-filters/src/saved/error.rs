//! Errors of loading and of uniting saved filters.

use crate::SpecError;
use std::io;

/// Error of loading a filter, in one sentence.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The bytes cannot be read.
    #[error("it cannot be read")]
    Unreadable(#[from] io::Error),
    /// No file has this name.
    #[error(
        "there is no such file; check the path, or save a filter with `flowsieve count --save-filter`"
    )]
    Missing,
    /// The name is that of a directory.
    #[error(
        "this is a directory, and a saved filter is a file; name the file that `flowsieve count --save-filter` wrote"
    )]
    Directory,
    /// The file is no saved filter.
    #[error(
        "this is no saved filter: its first bytes are not those that `flowsieve count --save-filter` writes"
    )]
    Foreign,
    /// The version is unknown.
    #[error(
        "this saved filter is of version {0} of the format, and only version {known} is known here; make it again",
        known = super::VERSION
    )]
    Version(u16),
    /// The file ends before the filter does.
    #[error(
        "the saved filter is cut short: it ends at byte {length}, within {part}; copy it again, or make it again"
    )]
    CutShort {
        /// Bytes of the file.
        length: u64,
        /// The part that is cut short.
        part: &'static str,
    },
    /// The file has another length than its head says.
    #[error(
        "the saved filter has {length} bytes, and {claimed} by its head: it is cut short or damaged; copy it again, or make it again"
    )]
    Length {
        /// Bytes of the file.
        length: u64,
        /// Bytes by its head.
        claimed: u64,
    },
    /// The parameters need more state than the file has.
    #[error(
        "the saved filter is damaged: its parameters need {needed} bytes of state, and it has room for {room}; copy it again, or make it again"
    )]
    StateLength {
        /// Least bytes for these parameters.
        needed: u128,
        /// Bytes between the head and the checksum.
        room: u64,
    },
    /// A part has a value that no filter writes.
    #[error(
        "the saved filter is damaged at byte {offset}: {reason}; copy it again, or make it again"
    )]
    Damaged {
        /// Offset of the value, or just before it.
        offset: u64,
        /// The reason.
        reason: &'static str,
    },
    /// The parameters are invalid.
    #[error("the saved filter has parameters that no filter can have: {0}")]
    Parameters(#[from] SpecError),
    /// The filter was made with another digest function.
    #[error(
        "the saved filter was made with another digest function, so nothing would be found in it; count anew"
    )]
    OtherDigests,
    /// The bytes are not those that were written.
    #[error(
        "the saved filter is damaged: the checksum at byte {offset} is not that of what stands before it; copy it again, or make it again"
    )]
    Checksum {
        /// Offset of the checksum.
        offset: u64,
    },
    /// The system does not give the memory.
    #[error("the saved filter takes {0} bytes of memory, which this machine does not give")]
    Memory(u64),
}

/// Error of uniting two filters, in one sentence.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum UnionError {
    /// Together, two chains have more links than a chain may have.
    #[error(
        "scalable filters unite or intersect only if together they have at most {most} links in a shard, not {links}; count the captures together, or save each with more memory (--memory)"
    )]
    Links {
        /// Links that the union would have.
        links: usize,
        /// Links that a chain may have.
        most: u32,
    },
    /// Structures or parameters differ.
    #[error(
        "filters unite or intersect only if they have the same structure and the same parameters; `flowsieve filter info` shows them"
    )]
    Parameters,
    /// The seeds differ.
    #[error("filters unite or intersect only if they were made with the same seed (--seed)")]
    Seed,
    /// The numbers of shards differ.
    #[error("filters unite or intersect only if they have the same number of shards (--shards)")]
    Shards,
    /// The labels differ.
    #[error(
        "filters unite or intersect only if they hold elements of the same kind and rule; `flowsieve filter info` shows them"
    )]
    Label,
}
