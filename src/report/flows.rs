//! A list of flows in one of the formats, written as they come.

use super::flows_model::{FlowFormat, FlowParameters};
use super::flows_table::FlowTable;
use super::flows_writers::{FlowCsv, FlowJson, FlowJsonLines, FlowParquet};
use crate::flows::{FlowRecord, FlowSink, FlowSummary};
use std::io::{self, Write};
use std::time::{Duration, Instant};

/// How long flows of a stream may wait in the writer's buffer.
const STALE: Duration = Duration::from_millis(200);

/// Writes a list of flows.
#[derive(Debug)]
pub struct FlowReport<W: Write> {
    writer: Writer<W>,
    /// Time of the last flush, if the list is a stream.
    flushed: Option<Instant>,
}

#[derive(Debug)]
enum Writer<W: Write> {
    Table(FlowTable<W>),
    Csv(Box<FlowCsv<W>>),
    Json(FlowJson<W>),
    JsonLines(FlowJsonLines<W>),
    Parquet(Box<FlowParquet<W>>),
}

impl<W: Write> FlowReport<W> {
    /// Begins a report. `styled` allows the table to use a terminal's bold face.
    ///
    /// # Errors
    ///
    /// Writing failed.
    pub fn begin(
        format: FlowFormat,
        parameters: &FlowParameters,
        styled: bool,
        out: W,
    ) -> io::Result<Self> {
        let writer = match format {
            FlowFormat::Table => Writer::Table(FlowTable::begin(out, parameters, styled)?),
            FlowFormat::Csv => Writer::Csv(Box::new(FlowCsv::begin(out, parameters)?)),
            FlowFormat::Json => Writer::Json(FlowJson::begin(out, parameters)?),
            FlowFormat::JsonLines => Writer::JsonLines(FlowJsonLines::begin(out, parameters)?),
            FlowFormat::Parquet => Writer::Parquet(Box::new(FlowParquet::begin(out, parameters)?)),
        };
        Ok(Self {
            writer,
            flushed: parameters.unique.then(Instant::now),
        })
    }

    /// Ends the report with everything that is known only now, and gives the writer back, flushed.
    ///
    /// # Errors
    ///
    /// Writing failed.
    pub fn finish(self, summary: &FlowSummary) -> io::Result<W> {
        let mut out = match self.writer {
            Writer::Table(table) => table.finish(summary)?,
            Writer::Csv(csv) => csv.finish()?,
            Writer::Json(json) => json.finish(summary)?,
            Writer::JsonLines(lines) => lines.finish(summary)?,
            Writer::Parquet(parquet) => parquet.finish()?,
        };
        out.flush()?;
        Ok(out)
    }
}

impl<W: Write> FlowSink for FlowReport<W> {
    fn flow(&mut self, flow: FlowRecord) -> io::Result<()> {
        match &mut self.writer {
            Writer::Table(table) => table.flow(&flow)?,
            Writer::Csv(csv) => csv.flow(&flow)?,
            Writer::Json(json) => json.flow(&flow)?,
            Writer::JsonLines(lines) => lines.flow(&flow)?,
            Writer::Parquet(parquet) => parquet.flow(&flow)?,
        }
        let Some(flushed) = &mut self.flushed else {
            return Ok(());
        };
        if flushed.elapsed() < STALE {
            return Ok(());
        }
        *flushed = Instant::now();
        match &mut self.writer {
            Writer::Table(table) => table.flush(),
            Writer::Csv(csv) => csv.flush(),
            Writer::Json(json) => json.flush(),
            Writer::JsonLines(lines) => lines.flush(),
            // A row group is written when it is full.
            Writer::Parquet(_) => Ok(()),
        }
    }
}
