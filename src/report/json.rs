//! A count as one JSON document, and as JSON lines.

use super::model::{COUNT_SCHEMA, CountParameters, SliceRow, SummaryRow};
use crate::pipeline::{CountSummary, SliceResult};
use serde::Serialize;
use serde_json::{json, to_writer};
use std::io::{self, Write};

/// One document; the array of slices is written as they come.
#[derive(Debug)]
pub(super) struct CountJson<W: Write> {
    out: W,
    any: bool,
}

impl<W: Write> CountJson<W> {
    pub(super) fn begin(mut out: W, parameters: &CountParameters) -> io::Result<Self> {
        write!(out, "{{\"schema\":\"{COUNT_SCHEMA}\",\n\"parameters\":")?;
        to_writer(&mut out, parameters)?;
        write!(out, ",\n\"slices\":[")?;
        Ok(Self { out, any: false })
    }

    pub(super) fn slice(&mut self, slice: &SliceResult) -> io::Result<()> {
        let separator = if self.any { ",\n" } else { "\n" };
        self.any = true;
        self.out.write_all(separator.as_bytes())?;
        Ok(to_writer(&mut self.out, &SliceRow::from(slice))?)
    }

    pub(super) fn finish(mut self, summary: &CountSummary) -> io::Result<W> {
        let summary = SummaryRow::from(summary);
        write!(self.out, "],\n\"inputs\":")?;
        to_writer(&mut self.out, &summary.inputs)?;
        write!(self.out, ",\n\"totals\":")?;
        to_writer(&mut self.out, &summary.totals)?;
        writeln!(self.out, "}}")?;
        Ok(self.out)
    }
}

/// One object a line; its key `record` says what it is: `parameters`, `slice`, `input` or `totals`.
#[derive(Debug)]
pub(super) struct CountJsonLines<W: Write> {
    out: W,
}

#[derive(Serialize)]
struct Line<'a, T> {
    record: &'a str,
    #[serde(flatten)]
    row: T,
}

impl<W: Write> CountJsonLines<W> {
    pub(super) fn begin(out: W, parameters: &CountParameters) -> io::Result<Self> {
        let mut lines = Self { out };
        lines.line(
            "parameters",
            json!({"schema": COUNT_SCHEMA, "parameters": parameters}),
        )?;
        Ok(lines)
    }

    pub(super) fn slice(&mut self, slice: &SliceResult) -> io::Result<()> {
        self.line("slice", SliceRow::from(slice))
    }

    pub(super) fn finish(mut self, summary: &CountSummary) -> io::Result<W> {
        let summary = SummaryRow::from(summary);
        for input in summary.inputs {
            self.line("input", input)?;
        }
        self.line("totals", summary.totals)?;
        Ok(self.out)
    }

    fn line(&mut self, record: &str, row: impl Serialize) -> io::Result<()> {
        to_writer(&mut self.out, &Line { record, row })?;
        writeln!(self.out)
    }
}
