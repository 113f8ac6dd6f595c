//! An origin-destination matrix for programs: a row a pair, as CSV or Parquet.

use super::parquet::{Cell, Column, ColumnKind, ParquetTable};
use crate::pipeline::{Traffic, TrafficPair};
use std::io::{self, Write};

const COLUMNS: [Column; 3] = [
    Column::new("origin", ColumnKind::Text),
    Column::new("destination", ColumnKind::Text),
    Column::new("packets", ColumnKind::U64),
];

/// All pairs, and one named `other` for packets that found the table full.
fn rows(traffic: &Traffic) -> Vec<TrafficPair> {
    let mut rows = traffic.pairs();
    if traffic.beyond() > 0 {
        rows.push(TrafficPair {
            origin: "other".to_owned(),
            destination: "other".to_owned(),
            packets: traffic.beyond(),
        });
    }
    rows
}

/// Writes the matrix as CSV.
///
/// # Errors
///
/// Writing failed.
pub fn csv<W: Write>(traffic: &Traffic, out: W) -> io::Result<W> {
    let mut csv = csv::Writer::from_writer(out);
    csv.write_record(COLUMNS.map(|column| column.name))?;
    for row in rows(traffic) {
        csv.write_record([&row.origin, &row.destination, &row.packets.to_string()])?;
    }
    csv.into_inner().map_err(csv::IntoInnerError::into_error)
}

/// Writes the matrix as Parquet.
///
/// # Errors
///
/// Writing failed.
pub fn parquet<W: Write>(traffic: &Traffic, out: W) -> io::Result<W> {
    let mut table = ParquetTable::begin(out, &COLUMNS)?;
    for row in rows(traffic) {
        let (origin, destination) = (Cell::Text(&row.origin), Cell::Text(&row.destination));
        table.row(&[origin, destination, Cell::U64(row.packets)])?;
    }
    table.finish()
}
