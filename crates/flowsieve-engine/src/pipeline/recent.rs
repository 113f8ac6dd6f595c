//! The slices that were closed last, with what counts them again: packets of a stream may still come for them, and a stream
//! cannot be read twice.
//!
//! Repeats change nothing in a count, so the elements that were new to a slice, in their order, bring it back. They
//! wait in temporary files, of which the first bytes are in memory, and which are gone when nothing in them is needed.

use super::slice_sum::{ClosedSlice, SliceSum};
use crate::elements::ElementColumns;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::rc::Rc;
use tempfile::SpooledTempFile;

/// The new elements of a slice, by shard.
pub(super) type Journal = Vec<ElementColumns>;

/// Slices that are remembered: their rows take about 20 MiB.
const MAX_RECENT: usize = 1 << 16;

/// Bytes of all elements that are remembered.
const JOURNAL_BYTES: u64 = 4 << 30;

/// Bytes of a file, after which the next one begins, and those of them that stay in memory.
const FILE_BYTES: u64 = 64 << 20;
const FILE_BYTES_IN_MEMORY: usize = 4 << 20;

/// Closed slices that can be counted on.
#[derive(Debug, Default)]
pub(super) struct Recent {
    slices: BTreeMap<i64, Closed>,
    /// Those whose rows the sink does not have.
    unshown: BTreeSet<i64>,
    bytes: u64,
    file: Option<JournalFile>,
}

#[derive(Debug)]
struct Closed {
    sum: SliceSum,
    /// `None` if the journal could not be written, or was taken.
    journal: Option<Extent>,
}

type SharedFile = Rc<RefCell<SpooledTempFile>>;

#[derive(Debug)]
struct JournalFile {
    file: SharedFile,
    bytes: u64,
}

/// Where a journal stands. The file lives as long as a journal in it does.
#[derive(Debug)]
struct Extent {
    file: SharedFile,
    offset: u64,
    bytes: u64,
}

impl Recent {
    /// Takes a slice that was closed, for the first time or again.
    pub(super) fn insert(&mut self, mut sum: SliceSum, journal: &Journal) {
        let index = sum.slice.index;
        if let Some(before) = self.remove(index) {
            sum.revision = before.revision + 1;
        }
        // Without its journal a slice cannot be counted on; everything else goes on.
        let journal = self.write(journal).ok();
        self.bytes += journal.as_ref().map_or(0, |extent| extent.bytes);
        self.unshown.insert(index);
        self.slices.insert(index, Closed { sum, journal });
    }

    /// The lowest slice, if there are too many.
    pub(super) fn overflow(&mut self) -> Option<SliceSum> {
        if self.slices.len() <= MAX_RECENT && self.bytes <= JOURNAL_BYTES {
            return None;
        }
        let (&index, _) = self.slices.first_key_value()?;
        self.remove(index)
    }

    fn remove(&mut self, index: i64) -> Option<SliceSum> {
        let Closed { sum, journal } = self.slices.remove(&index)?;
        self.bytes -= journal.map_or(0, |extent| extent.bytes);
        self.unshown.remove(&index);
        Some(sum)
    }

    /// The lowest slice that was not shown and ends by this time. It counts as shown then.
    pub(super) fn next_final(&mut self, final_ns: i64) -> Option<&SliceSum> {
        let index = *self.unshown.first()?;
        let sum = &mut self.slices.get_mut(&index)?.sum;
        if sum.slice.end_ns > final_ns {
            return None;
        }
        self.unshown.remove(&index);
        sum.is_shown = true;
        Some(sum)
    }

    /// What was known of a slice when it was closed.
    pub(super) fn recall(&mut self, index: i64) -> Option<(ClosedSlice, Journal)> {
        let closed = self.slices.get_mut(&index)?;
        let extent = closed.journal.take()?;
        self.bytes -= extent.bytes;
        Some((closed.sum.slice, extent.read().ok()?))
    }

    /// All slices.
    pub(super) fn into_rows(self) -> impl Iterator<Item = SliceSum> {
        self.slices.into_values().map(|closed| closed.sum)
    }

    fn write(&mut self, journal: &Journal) -> io::Result<Extent> {
        let encoded = postcard::to_extend(journal, Vec::new()).map_err(io::Error::other)?;
        let current = self.file.take().filter(|file| file.bytes < FILE_BYTES);
        let current = current.unwrap_or_else(|| JournalFile {
            file: Rc::new(RefCell::new(SpooledTempFile::new(FILE_BYTES_IN_MEMORY))),
            bytes: 0,
        });
        let extent = Extent {
            file: Rc::clone(&current.file),
            offset: current.bytes,
            bytes: encoded.len() as u64,
        };
        {
            let mut file = current.file.borrow_mut();
            file.seek(SeekFrom::Start(extent.offset))?;
            file.write_all(&encoded)?;
        }
        self.file = Some(JournalFile {
            bytes: current.bytes + extent.bytes,
            ..current
        });
        Ok(extent)
    }
}

impl Extent {
    fn read(&self) -> io::Result<Journal> {
        let mut file = self.file.borrow_mut();
        file.seek(SeekFrom::Start(self.offset))?;
        let mut encoded = Vec::new();
        (&mut *file).take(self.bytes).read_to_end(&mut encoded)?;
        postcard::from_bytes(&encoded).map_err(io::Error::other)
    }
}
