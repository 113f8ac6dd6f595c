//! An origin-destination matrix for programs, with a row for each pair.

use super::column::{Columns, columns};
use super::format::{Frame, ReportFormat};
use super::rows::RowWriter;
use crate::pipeline::{Traffic, TrafficPair};
use std::io::{self, Write};

/// The columns of a pair.
pub(super) fn pair_columns() -> Columns<TrafficPair> {
    columns! { field pair: TrafficPair;
        origin = { let [origin, _] = pair.names(); origin },
            "prefix of the senders, such as `10.0.1.0/24`; with `--od 32` an address";
        destination = { let [_, destination] = pair.names(); destination }, "prefix of the receivers";
        packets = pair.packets, "packets from one to the other";
    }
}

/// Writes all pairs, and one named `other` for packets that did not fit into the table.
///
/// # Errors
///
/// Writing failed.
pub fn write<W: Write>(traffic: &Traffic, format: ReportFormat, out: W) -> io::Result<W> {
    let pairs = traffic.pairs();
    let frame = Frame::new("flowsieve.origin-destination/1", "pairs");
    RowWriter::write_all(format, frame, pair_columns(), &pairs, Vec::new(), out)
}
