//! A list of flows in one of the formats, written as they come.

use super::flows_model::{FlowParameters, flow_columns, frame, tail};
use super::flows_table::FlowTable;
use super::format::ReportFormat;
use super::rows::RowWriter;
use super::terminal::TerminalStyle;
use crate::flows::{FlowRecord, FlowSink, FlowSummary, RemainingFlows};
use std::io::{self, Write};
use std::sync::Arc;
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
    Table(Box<FlowTable<W>>),
    Rows(Box<RowWriter<W, FlowRecord>>),
}

impl<W: Write> FlowReport<W> {
    /// Begins a report; `style` is that of the table.
    ///
    /// # Errors
    ///
    /// Writing failed.
    pub fn begin(
        format: ReportFormat,
        parameters: &FlowParameters,
        style: TerminalStyle,
        out: W,
    ) -> io::Result<Self> {
        let writer = if format == ReportFormat::Table {
            Writer::Table(Box::new(FlowTable::begin(out, parameters, style)?))
        } else {
            let columns = flow_columns(parameters.shape(), parameters.names);
            let rows = RowWriter::begin(format, frame(parameters), columns, out)?;
            Writer::Rows(Box::new(rows))
        };
        Ok(Self { writer, flushed: parameters.unique.then(Instant::now) })
    }

    /// With so many threads that write rows, for lists that are no streams. No byte depends on
    /// them.
    ///
    /// # Errors
    ///
    /// There are no threads to be had.
    pub fn shared_among(self, threads: usize) -> io::Result<Self> {
        let writer = match self.writer {
            Writer::Rows(rows) if threads > 1 => {
                Writer::Rows(Box::new(rows.shared_among(threads)?))
            }
            writer => writer,
        };
        Ok(Self { writer, ..self })
    }

    /// Ends the report with everything that is known only now, and gives the writer back, flushed.
    ///
    /// # Errors
    ///
    /// Writing failed.
    pub fn finish(self, summary: &FlowSummary) -> io::Result<W> {
        let mut out = match self.writer {
            Writer::Table(table) => table.finish(summary)?,
            Writer::Rows(rows) => rows.finish(tail(summary))?,
        };
        out.flush()?;
        Ok(out)
    }
}

impl<W: Write> FlowSink for FlowReport<W> {
    fn flow(&mut self, flow: FlowRecord) -> io::Result<()> {
        match &mut self.writer {
            Writer::Table(table) => table.flow(&flow)?,
            Writer::Rows(rows) => rows.take(flow)?,
        }
        let Some(flushed) = &mut self.flushed else {
            return Ok(());
        };
        if flushed.elapsed() < STALE {
            return Ok(());
        }
        *flushed = Instant::now();
        self.flush()
    }

    fn last(&mut self, mut flows: RemainingFlows) -> io::Result<()> {
        let rows = match &mut self.writer {
            Writer::Rows(rows) => rows,
            Writer::Table(_) => return flows.try_for_each(|flow| self.flow(flow)),
        };
        if rows.lazy_rows().is_none() {
            return flows.try_for_each(|flow| self.flow(flow));
        }
        // The threads that write them make them, too.
        let flows = Arc::new(flows);
        let mut before = None;
        loop {
            let at_once = rows.lazy_rows().unwrap_or(usize::MAX);
            let part = Arc::new(flows.part_behind(before.as_deref(), at_once));
            let count = part.len();
            if count == 0 {
                break;
            }
            before = Some(Arc::clone(&part));
            let flows = Arc::clone(&flows);
            let rows_of = move |take: &mut dyn FnMut(&mut FlowRecord)| flows.copies(&part, take);
            rows.lazy(count, Box::new(rows_of))?;
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.writer {
            Writer::Table(table) => table.flush(),
            Writer::Rows(rows) => rows.flush(),
        }
    }
}
