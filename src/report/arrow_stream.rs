//! Rows of a result as an Arrow IPC stream, written as they come, with the rest of the result
//! behind it.
//!
//! A reader of Arrow stops at the end of the stream. What follows there is one JSON document: the
//! document of the format `json` without the rows.

use super::arrow::Gathered;
use super::column::Columns;
use super::values::RowBatch;
use arrow_ipc::writer::StreamWriter;
use std::fmt;
use std::io::{self, Write};
use std::ops::Range;

/// Writes a stream.
pub(super) struct ArrowStream<W: Write> {
    gathered: Gathered,
    /// Batches are written into memory, from where they go to `out`: so failures of `out` stay what
    /// they are.
    stream: StreamWriter<Vec<u8>>,
    out: W,
}

impl<W: Write> fmt::Debug for ArrowStream<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ArrowStream").field("gathered", &self.gathered).finish_non_exhaustive()
    }
}

impl<W: Write> ArrowStream<W> {
    /// Begins a stream with these columns, which are flat.
    pub(super) fn begin<R>(out: W, columns: &Columns<R>) -> io::Result<Self> {
        let gathered = Gathered::begin(columns);
        let stream = StreamWriter::try_new(Vec::new(), gathered.schema());
        let mut stream = Self { gathered, stream: stream.map_err(io::Error::other)?, out };
        stream.hand_on()?;
        Ok(stream)
    }

    /// Appends a row.
    pub(super) fn row<R>(&mut self, columns: &Columns<R>, row: &R) -> io::Result<()> {
        let stream = &mut self.stream;
        let mut take = |batch| stream.write(&batch).map_err(io::Error::other);
        self.gathered.row(columns, row, &mut take)?;
        self.hand_on()
    }

    /// Appends rows of a batch.
    pub(super) fn rows<R: RowBatch>(
        &mut self,
        columns: &Columns<R>,
        batch: &mut R,
        range: Range<usize>,
    ) -> io::Result<()> {
        let stream = &mut self.stream;
        let mut take = |batch| stream.write(&batch).map_err(io::Error::other);
        self.gathered.rows(columns, batch, range, &mut take)?;
        self.hand_on()
    }

    /// Hands on the rows that wait, as a batch of their own.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        let stream = &mut self.stream;
        let mut take = |batch| stream.write(&batch).map_err(io::Error::other);
        self.gathered.hand_on_rest(&mut take)?;
        self.hand_on()?;
        self.out.flush()
    }

    /// Ends the stream and gives the writer back, for what follows.
    pub(super) fn finish(mut self) -> io::Result<W> {
        self.flush()?;
        self.stream.finish().map_err(io::Error::other)?;
        self.hand_on()?;
        Ok(self.out)
    }

    fn hand_on(&mut self) -> io::Result<()> {
        let written = self.stream.get_mut();
        if !written.is_empty() {
            self.out.write_all(written)?;
            written.clear();
        }
        Ok(())
    }
}
