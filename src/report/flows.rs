//! A list of flows in every format, written as they come: for people a line for each, and the totals.

use super::document::{Block, Document};
use super::flows_model::{FlowParameters, FlowShape, flow_columns, frame, stated_total, tail};
use super::format::{ReportFormat, Summary};
use super::number::{counted, duration, grouped, size, some};
use super::parallel_rows::ParallelWriter;
use super::rows::Writer;
use super::run_view::{reasons, shortcomings};
use super::selection::{selection_words, zone_words};
use super::table_columns::RowTable;
use super::terminal::TerminalStyle;
use crate::decode::Tunnel;
use crate::flows::{Ended, FlowOrder, FlowRecord, FlowSink, FlowSummary, RemainingFlows};
use crate::selection::Selection;
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
    writer: Writer<RowTable<W, FlowRecord>, ParallelWriter<W, FlowRecord>>,
    selection: Selection,
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
        let columns = flow_columns(parameters.shape(), parameters.names);
        let selection = parameters.plan.trace.selection.clone();
        let writer = if format.is_table() {
            let columns = columns.in_zone(selection.zone);
            Writer::Table(Box::new(RowTable::begin(out, &title(parameters), columns, style)?))
        } else {
            let frame = frame(parameters);
            let rows = ParallelWriter::begin(format, frame, columns, CHECKED_ROWS, out)?;
            Writer::Rows(Box::new(rows))
        };
        Ok(Self { writer, selection, flushed: parameters.unique.then(Instant::now) })
    }

    /// Encodes rows in this many threads, for lists that are no streams. No byte depends on them.
    #[must_use]
    pub fn parallel(mut self, threads: usize) -> Self {
        if let Writer::Rows(rows) = &mut self.writer {
            rows.start(threads);
        }
        self
    }

    /// Ends the report with everything that is known only now, and gives the writer back, flushed.
    ///
    /// # Errors
    ///
    /// Writing failed.
    pub fn finish(self, summary: &FlowSummary) -> io::Result<W> {
        match self.writer {
            Writer::Table(table) => table.finish(&[], &closing(&self.selection, summary)),
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
            Writer::Table(table) => table.row(table.text(&flow, None))?,
            Writer::Rows(rows) => rows.take(flow)?,
        }
        let Some(flushed) = &mut self.flushed else { return Ok(()) };
        if flushed.elapsed() < STALE {
            return Ok(());
        }
        *flushed = Instant::now();
        self.flush()
    }

    fn last(&mut self, mut flows: RemainingFlows) -> io::Result<()> {
        let lazy = match &mut self.writer {
            Writer::Rows(rows) => rows.lazy_rows().map(|at_once| (rows, at_once)),
            Writer::Table(_) => None,
        };
        let Some((rows, at_once)) = lazy else {
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

/// The totals, and why the list may be incomplete.
fn closing(selection: &Selection, summary: &FlowSummary) -> Document {
    let totals = &summary.totals;
    let flows = counted(totals.flows, "flow", "flows");
    let packets = counted(totals.packets, "packet", "packets");
    let ip = grouped(totals.ip_packets);
    let bytes = stated_total(summary);
    let bytes = bytes.map_or_else(String::new, |bytes| format!(" with {} bytes", grouped(bytes)));
    let mut said = vec![format!("{flows}: {packets}, {ip} of them IP{bytes}")];
    said.extend(selection_words(selection, &summary.inputs));
    said.extend(shortcomings(&summary.inputs, totals.interrupted));
    said.extend(flow_shortcomings(summary));
    if !totals.skipped.is_empty() {
        said.push(format!("in no flow: {}", reasons(&totals.skipped)));
    }
    let mut document = Document::default();
    document.terminal(said.into_iter().map(Block::Sentence));
    document
}

/// Returns a sentence for each reason why flows may be missing or in parts.
pub fn flow_shortcomings(summary: &FlowSummary) -> Vec<String> {
    let early = some(summary.totals.ended.of(Ended::Memory), "flow", "flows").map(|flows| {
        format!("{flows} ended early because the memory was full, so some may be listed in parts; raise it with --memory")
    });
    let late = some(summary.totals.late, "flow", "flows").map(|flows| {
        format!("{flows} began with a packet that came late: they and later ones may be parts of others; raise --delay")
    });
    let missing = summary.uniqueness.filter(|unique| !unique.exact).map(|unique| {
        format!(
            "the exact set did not fit into the memory: about {:.1} ± {:.1} flows are missing; raise it with --memory",
            unique.missed, unique.std_error
        )
    });
    [early, late, missing].into_iter().flatten().collect()
}

fn title(parameters: &FlowParameters) -> String {
    let mut title = match parameters.shape() {
        FlowShape::Directed => "flows, each direction by itself".to_owned(),
        FlowShape::Bidirectional => "flows of both directions".to_owned(),
        FlowShape::Unique if parameters.plan.bidirectional => {
            "flows of both directions, each when it is first seen".to_owned()
        }
        FlowShape::Unique => "flows, each when it is first seen".to_owned(),
    };
    let plan = &parameters.plan;
    let idle = plan.idle_ns.map(|idle| format!(", ended after {} without packets", duration(idle)));
    let active = plan.active_ns.map(|active| format!(", cut after {}", duration(active)));
    title.extend(idle.into_iter().chain(active));
    title.extend(parameters.most.map(|most| {
        let most = grouped(most as u64);
        match parameters.order {
            FlowOrder::Start => format!(", the first {most}"),
            FlowOrder::Duration => format!(", the {most} longest"),
            order => format!(", the {most} with the most {}", order.name()),
        }
    }));
    if parameters.plan.trace.headers.tunnel == Tunnel::Inner {
        title += ", inside tunnels";
    }
    if parameters.anonymized {
        title += ", addresses replaced";
    }
    let memory = size(parameters.memory_bytes);
    title + &format!("; memory {memory}{}", zone_words(parameters.plan.trace.selection.zone))
}
