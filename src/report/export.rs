//! Packets, or elements of slices, in one of the formats for programs, written as they come.

#[cfg(feature = "arrow")]
use super::arrow_file::ArrowFile;
use super::export_model::{ExportParameters, Row, export_columns, frame, tail};
use super::format::ReportFormat;
use super::rows::RowWriter;
use crate::export::{ElementRows, ExportRows, ExportSink, ExportSummary};
use std::convert::Infallible;
use std::io::{self, Write};
use std::mem::{swap, take};
use std::ops::Range;

/// Elements that are enough for another thread.
const ENOUGH: usize = 2048;

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
    /// Elements that wait until they are enough for another thread, and how many they are.
    elements: Vec<(ElementRows, Range<usize>)>,
    waiting: usize,
}

#[derive(Debug)]
enum Writer<W: Write> {
    Rows(Box<RowWriter<W, Row>>),
    #[cfg(feature = "arrow")]
    Arrow(Box<ArrowFile<W>>),
}

impl<W: Write> ExportReport<W> {
    /// Begins a report. There is no table for people; in its place there is CSV. With several
    /// threads, these make the rows.
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
                let writer = match (threads, parameters.kind) {
                    (..=1, _) => writer,
                    // These are rows already.
                    (_, None) => writer.apart(),
                    (threads, Some(_)) => writer.batches_among(threads)?,
                };
                Writer::Rows(Box::new(writer))
            }
        };
        Ok(Self { writer, row: Row::default(), elements: Vec::new(), waiting: 0 })
    }

    /// Ends the report with everything that is known only now, and gives the writer back, flushed.
    ///
    /// # Errors
    ///
    /// Writing failed.
    pub fn finish(mut self, summary: &ExportSummary) -> io::Result<W> {
        self.hand_on()?;
        let mut out = match self.writer {
            Writer::Rows(rows) => rows.finish(tail(summary))?,
            #[cfg(feature = "arrow")]
            Writer::Arrow(file) => file.finish()?,
        };
        out.flush()?;
        Ok(out)
    }
}

impl<W: Write> ExportReport<W> {
    /// Gives the elements that wait to another thread.
    fn hand_on(&mut self) -> io::Result<()> {
        let writer = match &mut self.writer {
            Writer::Rows(writer) => writer,
            #[cfg(feature = "arrow")]
            Writer::Arrow(_) => return Ok(()),
        };
        let count = take(&mut self.waiting);
        let elements = take(&mut self.elements);
        if count == 0 {
            return Ok(());
        }
        let rows = move |take: &mut dyn FnMut(&mut Row)| {
            let mut row = Row::default();
            for (elements, range) in elements {
                let made = elements.make(range, &mut |rows| {
                    swap(&mut row.rows, rows);
                    take(&mut row);
                    swap(&mut row.rows, rows);
                    Ok::<_, Infallible>(())
                });
                made.unwrap_or_else(|never| match never {});
            }
        };
        writer.lazy(count, Box::new(rows))
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

    fn elements(&mut self, elements: ElementRows) -> io::Result<()> {
        let room = |writer: &Writer<W>| match writer {
            Writer::Rows(rows) => rows.lazy_rows(),
            #[cfg(feature = "arrow")]
            Writer::Arrow(_) => None,
        };
        let mut next = 0;
        while next < elements.len() {
            let Some(room) = room(&self.writer) else {
                return elements.make(next..elements.len(), &mut |rows| {
                    let all = 0..rows.len();
                    self.rows(rows, all)
                });
            };
            let end = elements.len().min(next + room - self.waiting);
            self.waiting += end - next;
            self.elements.push((elements.clone(), next..end));
            next = end;
            if self.waiting >= room.min(ENOUGH) {
                self.hand_on()?;
            }
        }
        Ok(())
    }

    fn settle(&mut self) -> io::Result<()> {
        self.hand_on()?;
        match &mut self.writer {
            Writer::Rows(rows) => rows.settle(),
            #[cfg(feature = "arrow")]
            Writer::Arrow(_) => Ok(()),
        }
    }
}
