//! The figure of a count, drawn from its rows.

use crate::table::Table;
use arrow_array::cast::AsArray as _;
use arrow_array::types::{ArrowPrimitiveType, Float64Type, Int64Type, UInt64Type};
use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, Field};
use flowsieve::cli::zone_named;
use flowsieve::elements::ElementKind;
use flowsieve::pipeline::{SliceResult, SliceSink as _};
use flowsieve::report::{CountPage, svg};
use flowsieve::zone::Zone;
use pyo3::prelude::*;

/// Draws distinct elements over time as SVG; returns an empty text if there is only one slice.
#[pyfunction]
pub(crate) fn draw_count(py: Python<'_>, rows: &Table, element: &str, filter: &str) -> String {
    py.detach(|| {
        let mut page = CountPage::default();
        for batch in rows.batches() {
            for slice in slices(&batch) {
                // Cannot fail, since the page keeps slices in memory.
                let _ = page.slice(&slice);
            }
        }
        let kind: Option<ElementKind> = element.parse().ok();
        let plural = kind.map_or_else(|| element.to_owned().into(), ElementKind::plural);
        let figure = page.figure(&plural, filter, zone_of(rows));
        figure.map(|figure| svg::standalone(&figure, &[])).unwrap_or_default()
    })
}

/// Returns the time zone of the rows.
fn zone_of(rows: &Table) -> Zone {
    let first = rows.batches().next();
    let field = first.and_then(|batch| batch.schema().field_with_name("start").ok().cloned());
    match field.as_ref().map(Field::data_type) {
        Some(DataType::Timestamp(_, Some(name))) => zone_named(name).unwrap_or_default(),
        _ => Zone::UTC,
    }
}

/// Iterates over the slices in these rows, with the fields that the figure shows.
fn slices(batch: &RecordBatch) -> impl Iterator<Item = SliceResult> {
    let time = |name, row| value::<Int64Type>(batch, name, row);
    let whole = |name, row| value::<UInt64Type>(batch, name, row);
    let number = |name, row| value::<Float64Type>(batch, name, row);
    (0..batch.num_rows()).map(move |row| SliceResult {
        start_ns: time("start_ns", row).unwrap_or_default(),
        end_ns: time("end_ns", row).unwrap_or_default(),
        packets: whole("packets", row).unwrap_or_default(),
        elements: whole("elements", row).unwrap_or_default(),
        exact: whole("exact", row),
        first: whole("first", row),
        estimate: number("estimate", row),
        std_error: number("std_error", row),
        lower: whole("lower", row),
        upper: whole("upper", row),
        new: whole("new", row),
        new_std_error: number("new_std_error", row),
        partial: batch
            .column_by_name("partial")
            .and_then(|column| column.as_boolean_opt())
            .is_some_and(|column| column.is_valid(row) && column.value(row)),
        ..SliceResult::default()
    })
}

/// Returns the value of a column in a row; `None` if it is null, or the column is missing or has
/// another type.
fn value<T: ArrowPrimitiveType>(batch: &RecordBatch, name: &str, row: usize) -> Option<T::Native> {
    let values = batch.column_by_name(name)?.as_primitive_opt::<T>()?;
    values.is_valid(row).then(|| values.value(row))
}
