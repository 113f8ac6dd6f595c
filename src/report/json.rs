//! A count as one JSON document, and as JSON lines.

use super::count_combinations::CountDesign;
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
    design: Option<CountDesign>,
}

impl<W: Write> CountJson<W> {
    pub(super) fn begin(mut out: W, parameters: &CountParameters) -> io::Result<Self> {
        write!(out, "{{\"schema\":\"{COUNT_SCHEMA}\",\n\"parameters\":")?;
        to_writer(&mut out, parameters)?;
        write!(out, ",\n\"slices\":[")?;
        let design = parameters.design.clone();
        Ok(Self {
            out,
            any: false,
            design,
        })
    }

    pub(super) fn slice(&mut self, slice: &SliceResult) -> io::Result<()> {
        let separator = if self.any { ",\n" } else { "\n" };
        self.any = true;
        self.out.write_all(separator.as_bytes())?;
        let row = slice_row(slice, self.design.as_ref());
        Ok(to_writer(&mut self.out, &row)?)
    }

    pub(super) fn finish(mut self, summary: &CountSummary) -> io::Result<W> {
        let summary = summary_row(summary, self.design.as_ref());
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
    design: Option<CountDesign>,
}

/// A slice with the counts of its combinations.
fn slice_row(slice: &SliceResult, design: Option<&CountDesign>) -> SliceRow {
    let mut row = SliceRow::from(slice);
    if let Some(design) = design {
        row.combinations = design.rows(&slice.combinations);
    }
    row
}

/// The summary with the sums of the combinations.
fn summary_row(summary: &CountSummary, design: Option<&CountDesign>) -> SummaryRow {
    let mut row = SummaryRow::from(summary);
    if let Some(design) = design {
        row.totals.combinations = design.rows(&summary.totals.combinations);
    }
    row
}

#[derive(Serialize)]
struct Line<'a, T> {
    record: &'a str,
    #[serde(flatten)]
    row: T,
}

impl<W: Write> CountJsonLines<W> {
    pub(super) fn begin(out: W, parameters: &CountParameters) -> io::Result<Self> {
        let design = parameters.design.clone();
        let mut lines = Self { out, design };
        lines.line(
            "parameters",
            json!({"schema": COUNT_SCHEMA, "parameters": parameters}),
        )?;
        Ok(lines)
    }

    pub(super) fn slice(&mut self, slice: &SliceResult) -> io::Result<()> {
        let row = slice_row(slice, self.design.as_ref());
        self.line("slice", row)
    }

    pub(super) fn finish(mut self, summary: &CountSummary) -> io::Result<W> {
        let summary = summary_row(summary, self.design.as_ref());
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
