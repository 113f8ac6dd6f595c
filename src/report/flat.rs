//! A result as a flat table of named columns: CSV, or Parquet.

use super::csv;
use super::parquet::{Cell, Column, ParquetTable};
use std::io::{self, Write};

/// What has rows of the same columns.
pub(super) trait FlatTable {
    /// The columns, in order; documented in `docs/output.md`.
    const COLUMNS: &'static [Column<'static>];

    /// Hands on each row, a cell a column.
    fn each_row(&self, write: impl FnMut(&[Cell<'_>]) -> io::Result<()>) -> io::Result<()>;

    /// Writes a header and a line a row.
    fn write_csv(&self, out: &mut impl Write) -> io::Result<()> {
        let mut lines = ::csv::Writer::from_writer(out);
        lines
            .write_record(Self::COLUMNS.iter().map(|column| column.name))
            .map_err(csv::cause)?;
        self.each_row(|cells| {
            lines
                .write_record(cells.iter().copied().map(csv::written))
                .map_err(csv::cause)
        })?;
        lines.flush()
    }

    /// Writes the same as Parquet.
    fn write_parquet(&self, out: &mut impl Write) -> io::Result<()> {
        let mut table = ParquetTable::begin(out, Self::COLUMNS)?;
        self.each_row(|cells| table.row(cells))?;
        table.finish()?;
        Ok(())
    }
}
