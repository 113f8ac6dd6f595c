//! Packets, or elements of slices, in one of the formats for programs, written as they come.

use super::export_model::{
    CHECKED_ROWS, ExportParameters, ExportPart, export_columns, frame, tail,
};
use super::format::{ReportFormat, Summary};
use super::parallel_rows::ParallelWriter;
use crate::export::{ElementRows, ExportRows, ExportSink, ExportSummary};
use std::convert::Infallible;
use std::io::{self, Write};
use std::mem::take;
use std::ops::Range;
use std::slice::from_ref;

/// Writes rows of an export.
#[derive(Debug)]
pub struct ExportReport<W: Write> {
    writer: ParallelWriter<W, ExportPart>,
    part: ExportPart,
    /// Elements that wait until they are enough for a worker, and their number.
    elements: Vec<(ElementRows, Range<usize>)>,
    waiting: usize,
}

impl<W: Write> ExportReport<W> {
    /// Begins a report. There is no table for people; in its place there is CSV. With several
    /// threads, these make the rows.
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
        let columns = export_columns(parameters.kind(), parameters.names);
        let frame = frame(parameters);
        let mut writer = ParallelWriter::begin(format, frame, columns, CHECKED_ROWS, out)?;
        // Packets are rows already: encoding them takes one thread.
        writer.start(if parameters.kind().is_none() { threads.min(2) } else { threads });
        Ok(Self { writer, part: ExportPart::default(), elements: Vec::new(), waiting: 0 })
    }

    /// Ends the report with everything that is known only now, and gives the writer back, flushed.
    ///
    /// # Errors
    ///
    /// Writing failed.
    pub fn finish(mut self, summary: &ExportSummary) -> io::Result<W> {
        self.write_waiting()?;
        self.writer.finish(tail(summary))
    }

    /// Makes rows of the elements that wait.
    fn write_waiting(&mut self) -> io::Result<()> {
        self.waiting = 0;
        for (elements, range) in take(&mut self.elements) {
            self.write_elements(&elements, range)?;
        }
        Ok(())
    }

    fn write_elements(&mut self, elements: &ElementRows, range: Range<usize>) -> io::Result<()> {
        elements.make(range, &mut |rows| {
            let all = 0..rows.len();
            self.rows(rows, all)
        })
    }

    /// Gives the elements that wait to a worker.
    fn push_waiting(&mut self) -> io::Result<()> {
        self.waiting = 0;
        let elements = take(&mut self.elements);
        self.writer.lazy(Box::new(move |take| {
            let (mut part, mut place) = (ExportPart::default(), 0);
            let mut push = |part: &mut ExportPart| {
                take(from_ref(part));
                Ok::<_, Infallible>(())
            };
            for (elements, range) in elements {
                let made = elements.make(range, &mut |rows| {
                    let first = place;
                    place += rows.len();
                    part.each(rows, 0..place - first, first, &mut push)
                });
                made.unwrap_or_else(|never| match never {});
            }
        }))
    }
}

/// Returns the summary of an export.
pub fn export_summary(parameters: &ExportParameters, summary: &ExportSummary) -> Summary {
    frame(parameters).summary(tail(summary))
}

impl<W: Write> ExportSink for ExportReport<W> {
    fn rows(&mut self, rows: &mut ExportRows, range: Range<usize>) -> io::Result<()> {
        if self.waiting > 0 {
            self.write_waiting()?;
        }
        let before = self.writer.batch_rows();
        let mut part = take(&mut self.part);
        let written = part.each(rows, range, before, |part| self.writer.row(part));
        self.part = part;
        written
    }

    fn elements(&mut self, elements: ElementRows) -> io::Result<()> {
        let mut next = 0;
        while next < elements.len() {
            let left = elements.len() - next;
            let Some(most) = self.writer.lazy_rows() else {
                // Rows that complete the batch are made here.
                let end = next + left.min(self.writer.missing_rows());
                self.write_elements(&elements, next..end)?;
                next = end;
                continue;
            };
            let end = next + left.min(most - self.waiting);
            self.waiting += end - next;
            self.elements.push((elements.clone(), next..end));
            next = end;
            if self.waiting == most {
                self.push_waiting()?;
            }
        }
        Ok(())
    }

    fn drain(&mut self) -> io::Result<()> {
        self.write_waiting()?;
        self.writer.drain()
    }
}
