//! The formats of results, one file each.

#[cfg(feature = "arrow")]
pub(super) mod arrow;
#[cfg(feature = "toy")]
#[path = "../../../tests/recipe/bars.rs"]
pub(super) mod bars;
pub(super) mod csv;
pub(super) mod json;
#[cfg(feature = "parquet")]
pub(super) mod parquet;
pub(super) mod tables;

use super::batch::Batch;

/// Returns the texts of a row.
fn texts_of(batch: &Batch, row: usize) -> impl Iterator<Item = String> {
    batch.columns().map(move |(field, array)| array.cell(row, &field.kind, field.zone).to_text())
}
