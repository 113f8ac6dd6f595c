//! A part of a plain pcap file.

use std::ops::Range;

use super::pcap::FILE_HEADER_BYTES;

/// Offset of the first record of a file.
pub(crate) const FIRST_RECORD: u64 = FILE_HEADER_BYTES as u64;

/// Part of a plain pcap file.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct FilePart {
    /// The records that begin there.
    pub(crate) bytes: Range<u64>,
    /// Bytes of the file that are not read.
    pub(crate) unread_bytes: u64,
}

impl FilePart {
    /// Creates the part of a file of `length` bytes with the records that begin in `bytes`.
    pub(crate) fn new(bytes: Range<u64>, length: u64) -> Self {
        let before = bytes.start.saturating_sub(FIRST_RECORD);
        Self { unread_bytes: before + length.saturating_sub(bytes.end), bytes }
    }
}
