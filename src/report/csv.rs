//! CSV: a header, then a line a row; empty fields for what does not exist. Here is that of a count, and
//! how a cell of the other tables is written.

use super::count_combinations::{CountDesign, column_names};
use super::model::SliceRow;
use super::parquet::Cell;
use crate::pipeline::SliceResult;
use std::io::{self, Write};

/// Columns, in order: the names of [`SliceRow`].
pub(super) const HEADER: [&str; 12] = [
    "start_ns",
    "end_ns",
    "packets",
    "elements",
    "exact",
    "exact_over_limit",
    "first",
    "estimate",
    "std_error",
    "rel_error",
    "observed_fpr",
    "saturated",
];

#[derive(Debug)]
pub(super) struct CountCsv<W: Write> {
    csv: csv::Writer<W>,
}

impl<W: Write> CountCsv<W> {
    pub(super) fn begin(out: W, design: Option<&CountDesign>) -> io::Result<Self> {
        // The header is written here and not by serde, so that it is there without any slice.
        let mut csv = csv::WriterBuilder::new()
            .has_headers(false)
            .from_writer(out);
        let combinations = column_names(design);
        let header = HEADER
            .into_iter()
            .chain(combinations.iter().map(String::as_str));
        csv.write_record(header).map_err(cause)?;
        Ok(Self { csv })
    }

    pub(super) fn slice(&mut self, slice: &SliceResult) -> io::Result<()> {
        let row = SliceRow::from(slice);
        if slice.combinations.is_empty() {
            return self.csv.serialize(row).map_err(cause);
        }
        let counts = slice.combinations.iter();
        let counts: Vec<_> = counts
            .map(|count| (count.first, count.estimate, count.std_error))
            .collect();
        self.csv.serialize((row, counts)).map_err(cause)
    }

    pub(super) fn finish(self) -> io::Result<W> {
        self.csv
            .into_inner()
            .map_err(csv::IntoInnerError::into_error)
    }
}

/// The failure of the writer itself, of its own kind: a closed pipe must be seen as one.
pub(super) fn cause(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}

/// A cell as a field.
pub(super) fn written(cell: Cell<'_>) -> String {
    match cell {
        Cell::Null => String::new(),
        Cell::I64(number) => number.to_string(),
        Cell::U64(number) => number.to_string(),
        Cell::F64(number) => number.to_string(),
        Cell::Bool(truth) => truth.to_string(),
        Cell::Text(text) => text.to_owned(),
    }
}
