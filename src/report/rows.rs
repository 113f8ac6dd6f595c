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
    pub(super) rows: GatheredRows<R>,
    pub(super) format: Box<dyn Format>,
    frame: Frame,
    is_begun: bool,
    pub(super) out: W,
    /// Memory of the batch and of what it becomes.
    _memory: Option<Reservation>,
}

/// Gathers rows in a batch until it is full: at each multiple of some rows, so that threads can begin
/// there, and when its texts are long.
pub(super) struct GatheredRows<R> {
    pub(super) columns: Arc<Columns<R>>,
    pub(super) batch: Batch,
    pub(super) most: usize,
    /// Long texts end a batch at multiples of these rows only, so that batches do not depend on how
    /// rows came.
    pub(super) checked: usize,
    /// Rows of earlier batches since the last multiple.
    pub(super) before: usize,
}

impl<R> GatheredRows<R> {
    pub(super) fn new(columns: Columns<R>, most: usize, checked: usize) -> Self {
        let batch = Batch::new(&columns.schema());
        Self { columns: Arc::new(columns), batch, most, checked, before: 0 }
    }

    /// Returns the same without rows, for another thread.
    pub(super) fn fork(&self) -> Self {
        let batch = Batch::new(&self.batch.schema);
        Self { columns: Arc::clone(&self.columns), batch, ..*self }
    }

    /// Appends rows, and returns whether the batch is full.
    pub(super) fn append(&mut self, rows: &[R]) -> bool {
        self.columns.append(rows, &mut self.batch);
        let is_checked = self.batch.rows.is_multiple_of(self.checked);
        self.missing() == 0 || (is_checked && self.batch.text_bytes() >= TEXT_BYTES)
    }

    /// Returns how many rows are missing to the next multiple.
    pub(super) fn missing(&self) -> usize {
        self.most - self.before - self.batch.rows
    }

    /// Returns how many rows may come before it matters whether the batch is full.
    pub(super) fn unchecked(&self) -> usize {
        (self.checked - self.batch.rows % self.checked).min(self.missing())
    }

    /// Goes past the batch, which a caller then takes or clears.
    pub(super) fn pass(&mut self) {
        self.before = (self.before + self.batch.rows) % self.most;
    }
}

impl<W: Write, R> fmt::Debug for RowWriter<W, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RowWriter").field("columns", &self.rows.columns).finish_non_exhaustive()
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
            rows: GatheredRows::new(columns, size.rows, 1),
            format,
            frame,
            is_begun: false,
            out,
            _memory: memory.transpose()?,
        })
    }

    /// Writes a row.
    pub(super) fn row(&mut self, row: &R) -> io::Result<()> {
        if self.rows.append(from_ref(row)) { self.write_batch() } else { Ok(()) }
    }

    fn write_head(&mut self) -> io::Result<()> {
        if replace(&mut self.is_begun, true) {
            return Ok(());
        }
        self.format.begin(&self.rows.batch.schema, &self.frame, &mut self.out)
    }

    /// Writes a part; the head comes with the first one, so that a result that is dropped before it
    /// has any leaves nothing.
    pub(super) fn write(&mut self, part: Part) -> io::Result<()> {
        self.write_head()?;
        self.format.write(part, &mut self.out)
    }

    /// Writes the batch.
    pub(super) fn write_batch(&mut self) -> io::Result<()> {
        if self.rows.batch.rows == 0 {
            return Ok(());
        }
        let part = self.format.encode(&self.rows.batch)?;
        self.rows.pass();
        self.rows.batch.clear();
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
