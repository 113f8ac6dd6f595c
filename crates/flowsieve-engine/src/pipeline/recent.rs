//! The slices that were closed last, with what counts them again: packets of a stream may still
//! come for them, and a stream cannot be read twice.
//!
//! Repeats change nothing in a count, so the elements that were new to a slice, in their order,
//! bring it back. They wait in temporary files, whose first bytes are in memory, and which
//! are gone when nothing in them is needed.

use super::shard_spec::{ClosedSlice, SliceSum};
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
pub(super) struct Recent {
    /// Slices, and bytes of their elements, at most.
    limits: (usize, u64),
    slices: BTreeMap<i64, Closed>,
    /// Those whose rows the sink does not have.
    unshown: BTreeSet<i64>,
    bytes: u64,
    /// The file that is written to.
    file: Option<SharedFile>,
}

struct Closed {
    sum: SliceSum,
    /// `None` if the journal was too long, could not be written, or was taken.
    journal: Option<Extent>,
    /// It is being counted again, and will be closed again.
    is_open: bool,
}

type SharedFile = Rc<RefCell<SpooledTempFile>>;

/// Where a journal stands. The file lives as long as a journal in it does.
struct Extent {
    file: SharedFile,
    offset: u64,
    bytes: u64,
}

impl Recent {
    pub(super) fn new() -> Self {
        Self::within(MAX_RECENT, JOURNAL_BYTES)
    }

    fn within(slices: usize, bytes: u64) -> Self {
        Self {
            limits: (slices, bytes),
            slices: BTreeMap::new(),
            unshown: BTreeSet::new(),
            bytes: 0,
            file: None,
        }
    }

    /// Takes a slice that was closed, for the first time or again.
    pub(super) fn insert(&mut self, mut sum: SliceSum, journal: Option<&Journal>) {
        let index = sum.slice.index;
        if let Some(before) = self.remove(index) {
            sum.revision = before.revision + 1;
            sum.new = sum.new.zip(before.new).map(|(a, b)| a + b);
        }
        // Without its journal a slice cannot be counted on; everything else goes on.
        let journal = journal.and_then(|journal| self.write(journal).ok());
        self.bytes += journal.as_ref().map_or(0, |extent| extent.bytes);
        self.unshown.insert(index);
        self.slices.insert(index, Closed { sum, journal, is_open: false });
    }

    /// The lowest slice that is not open again, if there are too many.
    pub(super) fn overflow(&mut self) -> Option<SliceSum> {
        let (slices, bytes) = self.limits;
        if self.slices.len() <= slices && self.bytes <= bytes {
            return None;
        }
        let (&index, _) = self.slices.iter().find(|(_, closed)| !closed.is_open)?;
        self.remove(index)
    }

    /// Takes new elements from a slice, which an earlier one has: its row changes.
    pub(super) fn lose_new(&mut self, index: i64, elements: u64) {
        if let Some(Closed { sum, .. }) = self.slices.get_mut(&index) {
            sum.new = sum.new.map(|new| new - elements as i64);
            sum.is_shown = false;
            self.unshown.insert(index);
        }
    }

    fn remove(&mut self, index: i64) -> Option<SliceSum> {
        let Closed { sum, journal, .. } = self.slices.remove(&index)?;
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

    /// Returns the state of a slice when it was closed, and its journal.
    pub(super) fn recall(&mut self, index: i64) -> Option<(ClosedSlice, Journal)> {
        let closed = self.slices.get_mut(&index)?;
        let extent = closed.journal.take()?;
        self.bytes -= extent.bytes;
        let journal = extent.read().ok()?;
        closed.is_open = true;
        Some((closed.sum.slice, journal))
    }

    /// All slices.
    pub(super) fn into_rows(self) -> impl Iterator<Item = SliceSum> {
        self.slices.into_values().map(|closed| closed.sum)
    }

    fn write(&mut self, journal: &Journal) -> io::Result<Extent> {
        let encoded = postcard::to_extend(journal, Vec::new()).map_err(io::Error::other)?;
        let new = || Rc::new(RefCell::new(SpooledTempFile::new(FILE_BYTES_IN_MEMORY)));
        let file = self.file.take().unwrap_or_else(new);
        let offset = file.borrow_mut().seek(SeekFrom::End(0))?;
        file.borrow_mut().write_all(&encoded)?;
        let bytes = encoded.len() as u64;
        self.file = (offset + bytes < FILE_BYTES).then(|| Rc::clone(&file));
        Ok(Extent { file, offset, bytes })
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

    use super::*;
    use crate::hashing::Digest;

    fn closed(index: i64) -> SliceSum {
        let slice =
            ClosedSlice { index, start_ns: index, end_ns: index + 1, packets: 1, elements: 1 };
        SliceSum::of(slice, std::iter::empty())
    }

    fn journal(elements: usize) -> Journal {
        vec![ElementColumns {
            digests: vec![Digest::from_value(u64::MAX); elements],
            ..ElementColumns::default()
        }]
    }

    #[test]
    fn slices_beyond_the_limit_leave_in_the_order_of_time() {
        let mut recent = Recent::within(3, u64::MAX);
        let mut left = Vec::new();
        for index in [4, 1, 5, 2, 3] {
            recent.insert(closed(index), Some(&journal(2)));
            left.extend(std::iter::from_fn(|| recent.overflow()).map(|sum| sum.slice.index));
        }
        assert_eq!(left, [1, 2]);
        assert!(recent.recall(1).is_none(), "what left cannot be counted on");
        let (slice, elements) = recent.recall(4).unwrap();
        assert_eq!((slice.index, elements[0].digests.len()), (4, 2));
        assert_eq!(recent.recall(4).map(|(slice, _)| slice.index), None, "it was taken");
        let rest: Vec<i64> = recent.into_rows().map(|sum| sum.slice.index).collect();
        assert_eq!(rest, [3, 4, 5]);
    }

    #[test]
    fn a_slice_that_is_open_again_does_not_leave_without_what_comes_to_it() {
        let mut recent = Recent::within(2, u64::MAX);
        recent.insert(closed(1), Some(&journal(2)));
        recent.insert(closed(2), Some(&journal(2)));
        recent.recall(1).unwrap();
        recent.insert(closed(3), Some(&journal(2)));
        assert_eq!(recent.overflow().map(|sum| sum.slice.index), Some(2));
        recent.insert(closed(1), Some(&journal(3)));
        recent.insert(closed(4), Some(&journal(2)));
        let left = recent.overflow().map(|sum| (sum.slice.index, sum.revision));
        assert_eq!(left, Some((1, 1)), "it leaves once, as what it became");
    }

    #[test]
    fn bytes_of_elements_beyond_the_limit_make_slices_leave_and_what_stays_can_be_read() {
        const LIMIT: u64 = 100_000;
        // Files are longer than what stays in memory, and several are needed.
        let mut recent = Recent::within(usize::MAX, LIMIT);
        let mut left = 0;
        for index in 0..3000 {
            recent.insert(closed(index), Some(&journal(index as usize)));
            left += std::iter::from_fn(|| recent.overflow()).count();
            assert!(recent.bytes <= LIMIT);
        }
        assert!(left > 2000, "{left}");
        for index in 0..3000 {
            let found = recent.recall(index).map(|(_, read)| read[0].digests.len());
            let stays = index >= left as i64;
            assert_eq!(found, stays.then_some(index as usize), "{index}");
        }
        assert_eq!(recent.bytes, 0);
    }
}
