//! Rows of a result in one of the formats for programs, written as they come.

use super::batch::Batch;
use super::column::Columns;
use super::format::{Format, Frame, Part, ReportFormat, Tail};
use flowsieve_engine::internal::{MEMORY_REFUSED, Reservation};
use std::fmt;
use std::io::{self, Write};
use std::mem::replace;
use std::slice::from_ref;
use std::sync::Arc;

/// Bytes of text after which a batch is full although it has fewer rows.
pub(super) const TEXT_BYTES: usize = 16 << 20;

/// Writes a result as it comes: a table for people, or rows in a format for programs.
#[derive(Debug)]
pub(super) enum Writer<T, R> {
    Table(Box<T>),
    Rows(Box<R>),
}

/// Writes rows of a type in a format, batch by batch.
pub(super) struct RowWriter<W: Write, R> {
    pub(super) columns: Arc<Columns<R>>,
    pub(super) format: Box<dyn Format>,
    frame: Frame,
    pub(super) batch: Batch,
    pub(super) limits: Limits,
    is_begun: bool,
    pub(super) out: W,
    /// Memory of the batch and of what it becomes.
    _memory: Option<Reservation>,
}

/// When a batch is full: at each multiple of some rows, so that threads can begin there, and when
/// its texts are long.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) rows: usize,
    /// Long texts end a batch at multiples of these rows only, so that batches do not depend on how
    /// rows came.
    pub(super) checked_rows: usize,
    /// Rows of earlier batches since the last multiple.
    pub(super) before: usize,
}

impl Limits {
    pub(super) fn new(rows: usize, checked_rows: usize) -> Self {
        Self { rows, checked_rows, before: 0 }
    }

    pub(super) fn is_full(self, batch: &Batch) -> bool {
        let is_checked = batch.rows.is_multiple_of(self.checked_rows);
        self.missing_rows(batch) == 0 || (is_checked && batch.text_bytes() >= TEXT_BYTES)
    }

    /// Returns how many rows are missing to the next multiple.
    pub(super) fn missing_rows(self, batch: &Batch) -> usize {
        self.rows - self.before - batch.rows
    }

    /// Returns how many rows may come before it matters whether the batch is full.
    pub(super) fn unchecked_rows(self, batch: &Batch) -> usize {
        let to_check = self.checked_rows - batch.rows % self.checked_rows;
        to_check.min(self.missing_rows(batch))
    }

    /// Goes past the rows of a batch.
    pub(super) fn pass(&mut self, batch: &Batch) {
        self.before = (self.before + batch.rows) % self.rows;
    }
}

impl<W: Write, R> fmt::Debug for RowWriter<W, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RowWriter").field("columns", &self.columns).finish_non_exhaustive()
    }
}

impl<W: Write, R> RowWriter<W, R> {
    /// Begins. A table for people has its own writer, so here it is CSV.
    pub(super) fn begin(
        format: ReportFormat,
        frame: Frame,
        columns: Columns<R>,
        out: W,
    ) -> io::Result<Self> {
        let columns = if format.is_flat { columns.flat() } else { columns };
        let columns = columns.in_zone(frame.zone);
        let format = (format.begin)();
        let size = format.batch_size();
        let refused = || io::Error::new(io::ErrorKind::OutOfMemory, MEMORY_REFUSED);
        let memory = size.is_fixed.then(|| Reservation::new(size.bytes).ok_or_else(refused));
        Ok(Self {
            batch: Batch::new(&columns.schema()),
            columns: Arc::new(columns),
            format,
            frame,
            limits: Limits::new(size.rows, 1),
            is_begun: false,
            out,
            _memory: memory.transpose()?,
        })
    }

    /// Adds a row to the batch, and returns whether the batch is full.
    pub(super) fn append(&mut self, row: &R) -> bool {
        self.columns.append(from_ref(row), &mut self.batch);
        self.limits.is_full(&self.batch)
    }

    /// Writes a row.
    pub(super) fn row(&mut self, row: &R) -> io::Result<()> {
        if self.append(row) { self.write_batch() } else { Ok(()) }
    }

    fn write_head(&mut self) -> io::Result<()> {
        if replace(&mut self.is_begun, true) {
            return Ok(());
        }
        self.format.begin(&self.batch.schema, &self.frame, &mut self.out)
    }

    /// Writes a part; the head comes with the first one, so that a result that is dropped before it
    /// has any leaves nothing.
    pub(super) fn write(&mut self, part: Part) -> io::Result<()> {
        self.write_head()?;
        self.format.write(part, &mut self.out)
    }

    /// Writes the batch.
    pub(super) fn write_batch(&mut self) -> io::Result<()> {
        if self.batch.rows == 0 {
            return Ok(());
        }
        let part = self.format.encode(&self.batch)?;
        self.limits.pass(&self.batch);
        self.batch.clear();
        self.write(part)
    }

    /// Writes what waits, but for a batch that must be full.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        if !self.format.batch_size().is_fixed {
            self.write_batch()?;
        }
        self.out.flush()
    }

    /// Ends with these sections and gives the writer back, flushed.
    pub(super) fn finish(mut self, tail: Tail) -> io::Result<W> {
        self.write_batch()?;
        self.write_head()?;
        self.format.end(self.frame, tail, &mut self.out)?;
        self.out.flush()?;
        Ok(self.out)
    }

    /// Writes all rows of a result, ends, and gives the writer back, flushed.
    pub(super) fn write_all<'a>(
        format: ReportFormat,
        frame: Frame,
        columns: Columns<R>,
        rows: impl IntoIterator<Item = &'a R>,
        tail: Tail,
        out: W,
    ) -> io::Result<W>
    where
        R: 'a,
    {
        let mut writer = Self::begin(format, frame, columns, out)?;
        rows.into_iter().try_for_each(|row| writer.row(row))?;
        writer.finish(tail)
    }
}
