//! A list of flows in one of the formats, written as they come.

use super::flows_model::{FlowParameters, flow_columns, frame, tail};
use super::flows_table::FlowTable;
use super::format::ReportFormat;
use super::parallel_rows::ParallelWriter;
use super::rows::{Summary, Writer};
use super::terminal::TerminalStyle;
use crate::flows::{FlowRecord, FlowSink, FlowSummary, RemainingFlows};
use std::io::{self, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long flows of a stream may wait in the writer's buffer.
const STALE: Duration = Duration::from_millis(200);

/// Long texts of flows end a batch at multiples of these rows.
const CHECKED_ROWS: usize = 64;

/// Writes a list of flows.
#[derive(Debug)]
pub struct FlowReport<W: Write> {
    writer: Writer<FlowTable<W>, ParallelWriter<W, FlowRecord>>,
    /// Time of the last flush, if the list is a stream.
    flushed: Option<Instant>,
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
        let writer = if format.is_table() {
            Writer::Table(Box::new(FlowTable::begin(out, parameters, style)?))
        } else {
            let columns = flow_columns(parameters.shape(), parameters.names);
            let frame = frame(parameters);
            let rows = ParallelWriter::begin(format, frame, columns, CHECKED_ROWS, out)?;
            Writer::Rows(Box::new(rows))
        };
        Ok(Self { writer, flushed: parameters.unique.then(Instant::now) })
    }

    /// Encodes rows in this many threads, for lists that are no streams. No byte depends on them.
    #[must_use]
    pub fn parallel(self, threads: usize) -> Self {
        let writer = match self.writer {
            Writer::Rows(rows) => Writer::Rows(Box::new(rows.parallel(threads))),
            table @ Writer::Table(_) => table,
        };
        Self { writer, ..self }
    }

    /// Ends the report with everything that is known only now, and gives the writer back, flushed.
    ///
    /// # Errors
    ///
    /// Writing failed.
    pub fn finish(self, summary: &FlowSummary) -> io::Result<W> {
        match self.writer {
            Writer::Table(table) => table.finish(summary),
            Writer::Rows(rows) => rows.finish(tail(summary)),
        }
    }
}

/// Returns the summary of a list of flows.
pub fn flow_summary(parameters: &FlowParameters, summary: &FlowSummary) -> Summary {
    frame(parameters).summary(tail(summary))
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
        let Some(at_once) = rows.lazy_rows() else {
            return flows.try_for_each(|flow| self.flow(flow));
        };
        // The threads that write them make them, too.
        let flows = Arc::new(flows);
        let mut before = None;
        loop {
            let part = Arc::new(flows.part_behind(before.as_deref(), at_once));
            if part.len() == 0 {
                return Ok(());
            }
            before = Some(Arc::clone(&part));
            let flows = Arc::clone(&flows);
            rows.lazy(Box::new(move |take| flows.copies(&part, take)))?;
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.writer {
            Writer::Table(table) => table.out.flush(),
            Writer::Rows(rows) => rows.flush(),
        }
    }
}
