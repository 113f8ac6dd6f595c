//! A comparison as a flat table, CSV or Parquet: a row for each structure, memory, combination and kind
//! of negatives; what belongs to the structure stands in each of its rows.

use super::compare_model::{CompareReport, QueryRow, StructureRow};
use super::flat::FlatTable;
use super::parquet::{Cell, Column, ColumnKind};
use std::io;

/// Columns, in order; documented in `docs/output.md`.
const COLUMNS: [Column; 25] = {
    use ColumnKind::{Bool, F64, Text, Timestamp, U64};
    [
        Column::new("filter", Text),
        Column::nullable("memory_asked_bytes", U64),
        Column::nullable("memory_bytes", U64),
        Column::new("fits", Bool),
        Column::nullable("needed_bytes", U64),
        Column::nullable("probes", U64),
        Column::new("best", Bool),
        Column::nullable("estimate_error_mean", F64),
        Column::nullable("estimate_error_p95", F64),
        Column::nullable("estimate_error_worst", F64),
        Column::nullable("estimate_error_worst_start_ns", Timestamp),
        Column::nullable("estimate_error_bias", F64),
        Column::nullable("first_error_mean", F64),
        Column::nullable("first_error_p95", F64),
        Column::nullable("first_error_worst", F64),
        Column::nullable("first_error_worst_start_ns", Timestamp),
        Column::nullable("first_error_bias", F64),
        Column::nullable("ns_per_element", F64),
        Column::nullable("attributes", Text),
        Column::nullable("negatives", Text),
        Column::nullable("queries", U64),
        Column::nullable("positives", U64),
        Column::nullable("observed_fpr", F64),
        Column::nullable("observed_fpr_std_error", F64),
        Column::nullable("predicted_fpr", F64),
    ]
};

impl FlatTable for CompareReport<'_> {
    const COLUMNS: &'static [Column<'static>] = &COLUMNS;

    fn each_row(&self, mut write: impl FnMut(&[Cell<'_>]) -> io::Result<()>) -> io::Result<()> {
        for entry in &self.comparison.entries {
            let structure = self.structure(entry);
            let queries = self.queries(entry);
            if queries.is_empty() {
                write(&row(&structure, None))?;
            }
            for query in &queries {
                let attributes = query.attributes.join(",");
                write(&row(&structure, Some((&attributes, query))))?;
            }
        }
        Ok(())
    }
}

fn row<'a>(
    structure: &'a StructureRow,
    query: Option<(&'a str, &'a QueryRow)>,
) -> [Cell<'a>; COLUMNS.len()] {
    let estimate = structure.estimate_error.as_ref();
    let first = structure.first_error.as_ref();
    let (attributes, query) = query.unzip();
    [
        Cell::Text(structure.filter),
        structure.memory_asked_bytes.into(),
        structure.memory_bytes.into(),
        Cell::Bool(structure.fits),
        structure.needed_bytes.into(),
        structure.probes.map(u64::from).into(),
        Cell::Bool(structure.best),
        estimate.map(|error| error.mean).into(),
        estimate.map(|error| error.p95).into(),
        estimate.map(|error| error.worst).into(),
        estimate.map(|error| error.worst_start_ns).into(),
        estimate.map(|error| error.bias).into(),
        first.map(|error| error.mean).into(),
        first.map(|error| error.p95).into(),
        first.map(|error| error.worst).into(),
        first.map(|error| error.worst_start_ns).into(),
        first.map(|error| error.bias).into(),
        structure.ns_per_element.into(),
        attributes.into(),
        query.map(|query| query.negatives).into(),
        query.map(|query| query.queries).into(),
        query.and_then(|query| query.positives).into(),
        query.and_then(|query| query.observed_fpr).into(),
        query.and_then(|query| query.observed_fpr_std_error).into(),
        query.and_then(|query| query.predicted_fpr).into(),
    ]
}
