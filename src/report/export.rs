//! Packets, or elements of slices, in one of the formats for programs, written as they come.

use super::export_model::{ExportParameters, Row, export_columns, frame, tail};
use super::format::ReportFormat;
use super::rows::RowWriter;
use crate::export::{ExportRows, ExportSink, ExportSummary};
use std::io::{self, Write};
use std::mem::swap;
use std::ops::Range;

/// Writes rows of an export.
#[derive(Debug)]
pub struct ExportReport<W: Write> {
    writer: RowWriter<W, Row>,
    row: Row,
}

impl<W: Write> ExportReport<W> {
    /// Begins a report. There is no table for people; in its place there is CSV. With several threads, one of them may write.
    ///
    /// # Errors
    ///
    /// Writing failed.
    pub fn begin(
        format: ReportFormat,
        parameters: &ExportParameters,
        threads: usize,
        out: W,
    ) -> io::Result<Self> {
        let columns = export_columns(parameters.kind, parameters.names);
        let writer = RowWriter::begin(format, frame(parameters), columns, out)?;
        Ok(Self {
            writer: if threads > 1 { writer.apart() } else { writer },
            row: Row::default(),
        })
    }

    /// Ends the report with everything that is known only now, and gives the writer back, flushed.
    ///
    /// # Errors
    ///
    /// Writing failed.
    pub fn finish(self, summary: &ExportSummary) -> io::Result<W> {
        let mut out = self.writer.finish(tail(summary))?;
        out.flush()?;
        Ok(out)
    }
}

impl<W: Write> ExportSink for ExportReport<W> {
    fn rows(&mut self, rows: &mut ExportRows, range: Range<usize>) -> io::Result<()> {
        swap(&mut self.row.rows, rows);
        let written = self.writer.rows(&mut self.row, range);
        swap(&mut self.row.rows, rows);
        written
    }
}
