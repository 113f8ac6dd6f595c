//! What checking an archive index found, as JSON.

use crate::index::Verified;
use serde::Serialize;
use std::io::{self, Write};

/// Version of the document.
const SCHEMA: &str = "flowsieve.index-verify/1";

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    captures: u64,
    regions: u64,
    records: u64,
    whole: bool,
    problems: &'a [String],
}

/// Writes a JSON document.
///
/// # Errors
///
/// Writing failed.
pub fn write_index_verify_json(verified: &Verified, mut out: impl Write) -> io::Result<()> {
    let document = Document {
        schema: SCHEMA,
        captures: verified.captures,
        regions: verified.regions,
        records: verified.records,
        whole: verified.problems.is_empty(),
        problems: &verified.problems,
    };
    serde_json::to_writer_pretty(&mut out, &document)?;
    writeln!(out)?;
    out.flush()
}
