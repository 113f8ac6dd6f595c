//! A row group: rows gathered by column, then encoded.

use super::super::column::Columns;
use super::super::crew::{CHUNK_ROWS, Make, OfBatches};
use super::super::values::RowBatch;
use super::GROUP_BYTES;
use super::buffer::Buffer;
use super::encode::{EncodedColumn, Encoder};
use parquet::errors::ParquetError;
use parquet::schema::types::ColumnDescPtr;
use std::io;
use std::mem::replace;
use std::ops::Range;
use std::sync::Arc;

/// Rows of a row group.
pub(super) const GROUP_ROWS: usize = 32 * CHUNK_ROWS;

/// Rows of a batch that are appended together. Whether a row group is full is asked behind each of
/// them, so that row groups do not depend on how rows were divided into batches.
const BATCH_ROWS: usize = 256;

/// Bytes of text after which a row group is written although it has fewer rows.
pub(super) const GROUP_TEXT_BYTES: usize = 16 << 20;

/// The columns of a row group, encoded.
pub(super) type Encoded = Vec<EncodedColumn>;

/// The rows that are gathered, by column.
#[derive(Debug)]
pub(super) struct RowGroup {
    columns: Vec<Buffer>,
    rows: usize,
    text_bytes: usize,
    /// Rows since one that begins a row group in any case, whatever texts there are: there the work
    /// of a thread begins.
    turn: usize,
}

impl RowGroup {
    pub(super) fn of<R>(columns: &Columns<R>) -> Self {
        Self {
            columns: columns.0.iter().map(Buffer::new).collect(),
            rows: 0,
            text_bytes: 0,
            turn: 0,
        }
    }

    pub(super) fn row<R>(&mut self, columns: &Columns<R>, row: &R) {
        for (buffer, column) in self.columns.iter_mut().zip(&columns.0) {
            self.text_bytes += buffer.take(column, row);
        }
        self.rows += 1;
        self.turn += 1;
    }

    /// Takes rows of a batch until the row group is full; false if it took all of them.
    pub(super) fn batch<R: RowBatch>(
        &mut self,
        columns: &Columns<R>,
        batch: &mut R,
        left: &mut Range<usize>,
    ) -> bool {
        while left.start < left.end {
            let end = left.end.min(left.start + BATCH_ROWS - self.turn % BATCH_ROWS);
            let rows = left.start..end;
            for (buffer, column) in self.columns.iter_mut().zip(&columns.0) {
                if let Some(values) = column.values(batch) {
                    self.text_bytes += buffer.extend(values, rows.clone());
                    continue;
                }
                for row in rows.clone() {
                    batch.go_to(row);
                    self.text_bytes += buffer.take(column, batch);
                }
            }
            self.rows += rows.len();
            self.turn += rows.len();
            left.start = end;
            if self.turn.is_multiple_of(BATCH_ROWS) && self.is_full() {
                return true;
            }
        }
        false
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Stands behind another row group of the same table, which is full.
    pub(super) const fn follow(&mut self, before: &Self) {
        self.turn = before.turn % GROUP_ROWS;
    }

    pub(super) const fn is_full(&self) -> bool {
        self.turn == GROUP_ROWS || self.text_bytes >= GROUP_TEXT_BYTES
    }

    /// Encodes the rows, and forgets them.
    pub(super) fn encode(
        &mut self,
        encoder: &mut Encoder,
        described: &[ColumnDescPtr],
    ) -> io::Result<Encoded> {
        self.rows = 0;
        self.text_bytes = 0;
        self.turn %= GROUP_ROWS;
        let columns = self.columns.iter_mut().zip(described);
        let encoded = columns.map(|(buffer, description)| {
            let encoded = encoder.encode(description, buffer);
            buffer.clear();
            encoded
        });
        let encoded: Result<_, ParquetError> = encoded.collect();
        encoded.map_err(io::Error::other)
    }
}

/// Makes row groups of rows.
pub(super) struct RowGroups<R> {
    columns: Arc<Columns<R>>,
    group: RowGroup,
    encoder: Encoder,
    described: Arc<[ColumnDescPtr]>,
    done: io::Result<Vec<Encoded>>,
}

impl<R> RowGroups<R> {
    pub(super) fn of(columns: &Arc<Columns<R>>, described: &Arc<[ColumnDescPtr]>) -> Self {
        Self {
            columns: Arc::clone(columns),
            group: RowGroup::of(columns),
            encoder: Encoder::new(),
            described: Arc::clone(described),
            done: Ok(Vec::new()),
        }
    }

    fn made(&mut self, is_end: bool) -> io::Result<Vec<Encoded>> {
        if is_end && self.group.rows > 0 {
            self.encode();
        }
        replace(&mut self.done, Ok(Vec::new()))
    }

    fn encode(&mut self) {
        let encoded = self.group.encode(&mut self.encoder, &self.described);
        match (&mut self.done, encoded) {
            (Ok(done), Ok(encoded)) => done.push(encoded),
            (done @ Ok(_), Err(error)) => *done = Err(error),
            (Err(_), _) => {}
        }
    }
}

impl<R: 'static> Make<R> for RowGroups<R> {
    type Made = io::Result<Vec<Encoded>>;
    const THREAD_BYTES: u64 = GROUP_BYTES;
    const TURN_ROWS: usize = GROUP_ROWS;

    fn row(&mut self, row: &mut R) {
        self.group.row(&self.columns, row);
        if self.group.is_full() {
            self.encode();
        }
    }

    fn made(&mut self, is_end: bool) -> Self::Made {
        Self::made(self, is_end)
    }
}

impl<R: RowBatch + 'static> Make<R> for OfBatches<RowGroups<R>> {
    type Made = io::Result<Vec<Encoded>>;
    const THREAD_BYTES: u64 = GROUP_BYTES;
    const TURN_ROWS: usize = GROUP_ROWS;

    fn row(&mut self, batch: &mut R) {
        let groups = &mut self.0;
        let mut left = 0..batch.len();
        while groups.group.batch(&groups.columns, batch, &mut left) {
            groups.encode();
        }
    }

    fn made(&mut self, is_end: bool) -> Self::Made {
        self.0.made(is_end)
    }
}
