//! What two saved filters have in common, in every format.

use super::answers::tail;
use super::column::Columns;
use super::document::{Block, Document, TableView};
use super::filter_info::distinct;
use super::format::ReportFormat;
use super::rows::{Frame, RowWriter, Summary};
use super::terminal::{self, TerminalStyle};
use crate::filters::Estimate;
use std::io::{self, Write};

/// The counts of two sets and of what they make together.
#[derive(Debug)]
pub struct OverlapReport {
    counts: [(&'static str, Estimate); 4],
    is_complete: bool,
}

/// The columns of a count.
pub(super) fn overlap_columns() -> Columns<(&'static str, Estimate)> {
    Columns::default()
        .field("set", |row: &(&'static str, Estimate)| row.0)
        .doc("`first` or `second` file, `either` or `both`")
        .field("estimate", |row| row.1.distinct)
        .doc("distinct elements by the fill of the filters")
        .field("std_error", |row| row.1.std_error())
        .doc("its standard error")
        .field("lower", |row| row.1.lower())
        .doc("lower bound: with `upper` it holds in 95 of 100 cases or more")
        .field("upper", |row| row.1.upper())
        .doc("upper bound")
}

impl OverlapReport {
    /// The counts of the first set, the second one, their union and what they have in common. They are
    /// complete if both filters have all that was to be read.
    pub fn new([first, second, either, both]: [Estimate; 4], is_complete: bool) -> Self {
        let counts = [("first", first), ("second", second), ("either", either), ("both", both)];
        Self { counts, is_complete }
    }

    fn frame() -> Frame {
        Frame::new("flowsieve.filter-intersect/1", "sets")
    }

    /// Returns the summary.
    pub fn summary(&self) -> Summary {
        Self::frame().summary(tail(self.is_complete))
    }

    /// Writes the counts; `style` is that of the table.
    ///
    /// # Errors
    ///
    /// Writing failed.
    pub fn write<W: Write>(
        &self,
        format: ReportFormat,
        style: TerminalStyle,
        mut out: W,
    ) -> io::Result<W> {
        if format.is_table() {
            let facts = self.counts.iter().map(|(name, count)| (*name, distinct(*count)));
            let mut document = Document::default();
            document.both([Block::Table(TableView::facts(NAME, facts))]);
            terminal::print(&document, style, &mut out)?;
        } else {
            let (columns, tail) = (overlap_columns(), tail(self.is_complete));
            out = RowWriter::write_all(format, Self::frame(), columns, &self.counts, tail, out)?;
        }
        out.flush()?;
        Ok(out)
    }
}

/// Width of the names.
const NAME: usize = 9;
