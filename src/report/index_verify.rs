//! The result of checking an archive index, in every format.

use super::cell::Cell;
use super::column::Columns;
use super::format::ReportFormat;
use super::json::{Layout, write_document};
use super::number::counted;
use super::rows::{CellRows, Frame, Section};
use crate::index::Verified;
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
    Columns::default()
        .field("problem", String::clone)
        .doc("what is wrong, in a sentence; it also goes to standard error, and the exit code is 1")
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
    let whole = verified_columns().object_of(verified);
    match format {
        ReportFormat::Table if verified.problems.is_empty() => writeln!(
            out,
            "{}, {}, {}: all files are whole, and filters hold what the lists hold",
            counted(verified.captures, "capture", "captures"),
            counted(verified.regions, "region", "regions"),
            counted(verified.records, "record", "records")
        )?,
        ReportFormat::Table => {}
        ReportFormat::Json => {
            let mut fields = vec![("schema".into(), Cell::Text(SCHEMA.into()))];
            if let Cell::Object(whole) = whole {
                fields.extend(whole);
            }
            let problems = verified.problems.iter().cloned().map(|text| Cell::Text(text.into()));
            fields.push(("problems".into(), Cell::List(problems.collect(), "")));
            write_document(&mut out, Layout::Pretty, &Cell::Object(fields))?;
        }
        _ => {
            let frame = Frame {
                tail: vec![Section::of("verified", "verified", &verified_columns())],
                ..Frame::of_rows(SCHEMA, "problems", "problem")
            };
            let rows = &verified.problems;
            out = CellRows::write_all(format, frame, problem_columns(), rows, vec![whole], out)?;
        }
    }
    out.flush()?;
    Ok(out)
}
