//! A count as Parquet: a row a slice, with the names of the CSV.

use super::count_combinations::{COUNTS, CountDesign, column_names};
use super::parquet::{Cell, Column, ColumnKind, ParquetTable};
use crate::pipeline::SliceResult;
use std::io::{self, Write};

/// Columns, in the order of the CSV.
const COLUMNS: [Column; 12] = [
    Column::new("start_ns", ColumnKind::Timestamp),
    Column::new("end_ns", ColumnKind::Timestamp),
    Column::new("packets", ColumnKind::U64),
    Column::new("elements", ColumnKind::U64),
    Column::nullable("exact", ColumnKind::U64),
    Column::new("exact_over_limit", ColumnKind::Bool),
    Column::nullable("first", ColumnKind::U64),
    Column::nullable("estimate", ColumnKind::F64),
    Column::nullable("std_error", ColumnKind::F64),
    Column::nullable("rel_error", ColumnKind::F64),
    Column::nullable("observed_fpr", ColumnKind::F64),
    Column::new("saturated", ColumnKind::Bool),
];

#[derive(Debug)]
pub(super) struct CountParquet<W: Write> {
    table: ParquetTable<W>,
}

impl<W: Write> CountParquet<W> {
    pub(super) fn begin(out: W, design: Option<&CountDesign>) -> io::Result<Self> {
        let names = column_names(design);
        let kinds = COUNTS.iter().map(|(_, kind)| *kind).cycle();
        let more = names.iter().zip(kinds);
        let columns: Vec<Column<'_>> = COLUMNS
            .into_iter()
            .chain(more.map(|(name, kind)| Column::nullable(name, kind)))
            .collect();
        Ok(Self {
            table: ParquetTable::begin(out, &columns)?,
        })
    }

    pub(super) fn slice(&mut self, slice: &SliceResult) -> io::Result<()> {
        let row = [
            Cell::I64(slice.start_ns),
            Cell::I64(slice.end_ns),
            Cell::U64(slice.packets),
            Cell::U64(slice.elements),
            slice.exact.into(),
            Cell::Bool(slice.exact_over_limit),
            slice.first.into(),
            slice.estimate.into(),
            slice.std_error.into(),
            slice.rel_error().into(),
            slice.observed_fpr.into(),
            Cell::Bool(slice.saturated),
        ];
        let counts = slice.combinations.iter();
        let counts = counts.flat_map(|count| {
            [
                count.first.into(),
                count.estimate.into(),
                count.std_error.into(),
            ]
        });
        let cells: Vec<Cell<'_>> = row.into_iter().chain(counts).collect();
        self.table.row(&cells)
    }

    pub(super) fn finish(self) -> io::Result<W> {
        self.table.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_have_the_names_of_the_csv() {
        let names = COLUMNS.map(|column| column.name);
        assert_eq!(names, super::super::csv::HEADER);
    }
}
