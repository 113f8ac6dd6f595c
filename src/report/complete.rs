//! Results that are complete before they are written, in every format.

use super::column::Columns;
use super::document::Document;
use super::format::{Frame, ReportFormat, Summary, Tail, write_document};
use super::rows::RowWriter;
use super::terminal::{self, TerminalStyle};
use std::fmt;
use std::io::{self, Write};

/// A result that is complete before it is written.
pub struct CompleteReport<'a> {
    pub(super) frame: Frame,
    /// The sections of the document.
    pub(super) sections: Box<dyn Fn() -> Tail + 'a>,
    /// The rows stand in the document before its sections.
    pub(super) has_rows: bool,
    pub(super) table: Box<dyn Fn() -> Document + 'a>,
    pub(super) rows: Box<dyn Fn(RowTarget<'_>) -> io::Result<()> + 'a>,
}

/// A place for the rows of a complete result.
pub(super) struct RowTarget<'a> {
    pub(super) format: ReportFormat,
    pub(super) out: &'a mut dyn Write,
    pub(super) frame: Frame,
    pub(super) tail: Tail,
}

impl RowTarget<'_> {
    /// Writes all rows.
    pub(super) fn write<'r, R: 'r>(
        self,
        columns: Columns<R>,
        rows: impl IntoIterator<Item = &'r R>,
    ) -> io::Result<()> {
        RowWriter::write_all(self.format, self.frame, columns, rows, self.tail, self.out)?;
        Ok(())
    }
}

impl fmt::Debug for CompleteReport<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompleteReport").field("frame", &self.frame).finish_non_exhaustive()
    }
}

impl CompleteReport<'_> {
    /// Returns the summary.
    pub fn summary(&self) -> Summary {
        self.frame.clone().summary((self.sections)())
    }

    /// Writes it and gives the writer back, flushed; `style` is that of the table.
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
            return terminal::write(&(self.table)(), style, out);
        }
        let frame = self.frame.clone();
        let tail = if format.has_document() { (self.sections)() } else { Vec::new() };
        if format.is_document() && !self.has_rows {
            write_document(&mut out, &frame.into_document(tail))?;
        } else {
            (self.rows)(RowTarget { format, out: &mut out, frame, tail })?;
        }
        out.flush()?;
        Ok(out)
    }
}
