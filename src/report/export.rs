//! Packets, or elements of slices, in one of the formats for programs, written as they come.

#[cfg(feature = "arrow")]
use super::arrow_file::ArrowFile;
use super::export_model::{ExportParameters, Row, export_columns, frame, tail};
use super::format::ReportFormat;
use super::rows::RowWriter;
use crate::export::{ExportRows, ExportSink, ExportSummary};
use std::io::{self, Write};
use std::mem::swap;
use std::ops::Range;

/// How the rows of an export are written.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ExportFormat {
    /// As other results.
    Report(ReportFormat),
    /// An Arrow IPC file.
    #[cfg(feature = "arrow")]
    Arrow,
}

/// Writes rows of an export.
#[derive(Debug)]
pub struct ExportReport<W: Write> {
    writer: Writer<W>,
    row: Row,
}

#[derive(Debug)]
enum Writer<W: Write> {
    Rows(Box<RowWriter<W, Row>>),
    #[cfg(feature = "arrow")]
    Arrow(Box<ArrowFile<W>>),
}

impl<W: Write> ExportReport<W> {
    /// Begins a report. There is no table for people; in its place there is CSV. With several threads, one of them may write.
    ///
    /// # Errors
    ///
    /// Writing failed.
    pub fn begin(
        format: ExportFormat,
        parameters: &ExportParameters,
        threads: usize,
        out: W,
    ) -> io::Result<Self> {
        let writer = match format {
            #[cfg(feature = "arrow")]
            ExportFormat::Arrow => Writer::Arrow(Box::new(ArrowFile::begin(parameters, out)?)),
            ExportFormat::Report(format) => {
                let columns = export_columns(parameters.kind, parameters.names);
                let writer = RowWriter::begin(format, frame(parameters), columns, out)?;
                Writer::Rows(Box::new(if threads > 1 { writer.apart() } else { writer }))
            }
        };
        Ok(Self {
            writer,
            row: Row::default(),
        })
    }

    /// Ends the report with everything that is known only now, and gives the writer back, flushed.
    ///
    /// # Errors
    ///
    /// Writing failed.
    pub fn finish(self, summary: &ExportSummary) -> io::Result<W> {
        let mut out = match self.writer {
            Writer::Rows(rows) => rows.finish(tail(summary))?,
            #[cfg(feature = "arrow")]
            Writer::Arrow(file) => file.finish()?,
        };
        out.flush()?;
        Ok(out)
    }
}

impl<W: Write> ExportSink for ExportReport<W> {
    fn rows(&mut self, rows: &mut ExportRows, range: Range<usize>) -> io::Result<()> {
        match &mut self.writer {
            Writer::Rows(writer) => {
                swap(&mut self.row.rows, rows);
                let written = writer.rows(&mut self.row, range);
                swap(&mut self.row.rows, rows);
                written
            }
            #[cfg(feature = "arrow")]
            Writer::Arrow(file) => file.rows(rows, range),
        }
    }
}
