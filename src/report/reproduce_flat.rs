//! Recomputed figures as a flat table, CSV or Parquet: a row for each cell of each experiment.

use super::flat::FlatTable;
use super::parquet::{Cell, Column, ColumnKind};
use super::reproduce_model::{CellRow, ReproduceReport};
use std::io;

/// Columns, in order: the experiment's name and the names of [`CellRow`].
const COLUMNS: [Column; 11] = {
    use ColumnKind::{Bool, F64, Text};
    [
        Column::new("experiment", Text),
        Column::new("label", Text),
        Column::new("unit", Text),
        Column::nullable("paper", F64),
        Column::nullable("formula", F64),
        Column::nullable("measured", F64),
        Column::nullable("std_error", F64),
        Column::nullable("distance", F64),
        Column::new("is_time", Bool),
        Column::new("agreement", Text),
        Column::new("verdict", Text),
    ]
};

impl FlatTable for ReproduceReport<'_> {
    const COLUMNS: &'static [Column<'static>] = &COLUMNS;

    fn each_row(&self, mut write: impl FnMut(&[Cell<'_>]) -> io::Result<()>) -> io::Result<()> {
        for experiment in self.experiments {
            for cell in &experiment.cells {
                write(&row(experiment.name, &CellRow::from(cell)))?;
            }
        }
        Ok(())
    }
}

fn row<'a>(experiment: &'a str, cell: &'a CellRow<'a>) -> [Cell<'a>; COLUMNS.len()] {
    [
        Cell::Text(experiment),
        Cell::Text(cell.label),
        Cell::Text(cell.unit),
        cell.paper.into(),
        cell.formula.into(),
        cell.measured.into(),
        cell.std_error.into(),
        cell.distance.into(),
        Cell::Bool(cell.is_time),
        Cell::Text(cell.agreement),
        Cell::Text(&cell.verdict),
    ]
}
