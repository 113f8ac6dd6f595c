//! The result of a run, as plain data, and the sink that takes it.

use super::elements::ElementRows;
use super::rows::ExportRows;
use crate::decode::Skip;
use crate::inputs::InputResult;
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;

/// Takes rows: implemented by this library's writers and Arrow batches, and not for others to
/// implement.
pub trait ExportSink {
    /// Takes some of these rows, in order. It may borrow the columns, and leaves them as they are.
    ///
    /// # Errors
    ///
    /// They cannot be kept or written; the run ends.
    #[doc(hidden)]
    fn rows(&mut self, rows: &mut ExportRows, range: Range<usize>) -> io::Result<()>;

    /// Takes elements, behind all rows that it took, and may make rows of them later, in other
    /// threads.
    ///
    /// # Errors
    ///
    /// They cannot be kept or written; the run ends.
    #[doc(hidden)]
    fn elements(&mut self, elements: ElementRows) -> io::Result<()> {
        elements.make(0..elements.len(), &mut |rows| {
            let all = 0..rows.len();
            self.rows(rows, all)
        })
    }

    /// Makes rows of all elements that it took: their memory is needed.
    ///
    /// # Errors
    ///
    /// They cannot be written; the run ends.
    #[doc(hidden)]
    fn drain(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Whether it can forget the rows that it took: those in a file can be written anew, those in a
    /// pipe are gone.
    #[doc(hidden)]
    fn can_begin_again(&self) -> bool {
        false
    }

    /// Forgets all rows, which come anew. It is asked for only where
    /// [`can_begin_again`](Self::can_begin_again) says yes.
    ///
    /// # Errors
    ///
    /// It cannot begin again; the run ends.
    #[doc(hidden)]
    fn begin_again(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Everything but the rows, which went to the sink.
#[derive(Debug)]
pub struct ExportSummary {
    /// One entry an input, in the order in which they were given.
    pub inputs: Vec<InputResult>,
    /// Counts over the run.
    pub totals: ExportTotals,
}

/// Counts over the whole run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExportTotals {
    /// Packets read (records of a DNS log).
    pub packets: u64,
    /// Rows.
    pub rows: u64,
    /// Packets that the rows stand for; one with several elements counts for each of them.
    pub row_packets: u64,
    /// Their bytes, from the IP header on.
    pub bytes: u64,
    /// Rows of elements that left before their slice was closed, since the memory was full.
    pub early: u64,
    /// Rows of packets that came after their slice was closed.
    pub late: u64,
    /// Slices that were closed.
    pub slices: u64,
    /// The run was ended before the inputs were, by [`Watch::stop`](crate::inputs::Watch::stop).
    pub interrupted: bool,
    /// Packets without a row, by reason.
    pub skipped: BTreeMap<Skip, u64>,
}
