//! The result of checking an archive index, in every format.

use super::cell::Cell;
use super::column::Columns;
use super::format::ReportFormat;
use super::number::counted;
use super::rows::{Frame, RowWriter, Summary};
use crate::index::Verified;
use crate::zone::Zone;
use std::io::{self, Write};

/// Name and version of the document.
const SCHEMA: &str = "flowsieve.index-verify/1";

/// The columns of the comparison.
pub(super) fn verified_columns() -> Columns<Verified> {
    Columns::default()
        .field("captures", |verified: &Verified| verified.captures)
        .doc("captures that were compared")
        .field("regions", |verified| verified.regions)
        .doc("regions that were compared")
        .field("records", |verified| verified.records)
        .doc("records that were compared")
        .field("whole", |verified| verified.problems.is_empty())
        .doc("there are no problems")
}

/// The columns of a problem.
pub(super) fn problem_columns() -> Columns<String> {
    Columns::default().field("problem", String::clone).doc("what is wrong, in a sentence")
}

/// Writes the result; rows are problems.
///
/// # Errors
///
/// Writing failed.
pub fn write_index_verify<W: Write>(
    verified: &Verified,
    format: ReportFormat,
    mut out: W,
) -> io::Result<W> {
    if format.is_table() {
        if verified.problems.is_empty() {
            writeln!(
                out,
                "{}, {}, {}: all files are whole, and filters hold what the lists hold",
                counted(verified.captures, "capture", "captures"),
                counted(verified.regions, "region", "regions"),
                counted(verified.records, "record", "records")
            )?;
        }
    } else {
        let frame = Frame::new(SCHEMA, "problems").of_document(format, || document(verified));
        let rows = &verified.problems;
        out = RowWriter::write_all(format, frame, problem_columns(), rows, Vec::new(), out)?;
    }
    out.flush()?;
    Ok(out)
}

fn document(verified: &Verified) -> Cell {
    let mut fields = vec![("schema".into(), Cell::Text(SCHEMA.into()))];
    if let Cell::Object(whole) = verified_columns().object_of(verified) {
        fields.extend(whole);
    }
    let problems = verified.problems.iter().cloned().map(|text| Cell::Text(text.into()));
    fields.push(("problems".into(), Cell::List(problems.collect(), "")));
    Cell::Object(fields)
}

/// Returns the summary of a check.
pub fn index_verify_summary(verified: &Verified) -> Summary {
    Summary::of_document(document(verified), Zone::UTC)
}
