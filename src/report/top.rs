//! The largest keys in one of the formats, slice by slice.

use super::format::ReportFormat;
use super::rows::{RowWriter, Summary, Writer};
use super::terminal::TerminalStyle;
use super::top_model::{TopRow, frame, key_columns, tail};
use super::top_table::TopTable;
use crate::pipeline::SliceSink;
use crate::top::{TopPlan, TopSlice, TopSummary};
use std::io::{self, Write};

/// Writes a ranking.
#[derive(Debug)]
pub struct TopReport<W: Write>(Writer<TopTable<W>, RowWriter<W, TopRow>>);

impl<W: Write> TopReport<W> {
    /// Begins a report; `style` is that of the table.
    ///
    /// # Errors
    ///
    /// Writing failed.
    pub fn begin(
        format: ReportFormat,
        plan: &TopPlan,
        style: TerminalStyle,
        out: W,
    ) -> io::Result<Self> {
        Ok(Self(if format.is_table() {
            Writer::Table(Box::new(TopTable::begin(out, plan, style)?))
        } else {
            Writer::Rows(Box::new(RowWriter::begin(format, frame(plan), key_columns(), out)?))
        }))
    }

    /// Ends the report with everything that is known only now, and gives the writer back, flushed.
    ///
    /// # Errors
    ///
    /// Writing failed.
    pub fn finish(self, summary: &TopSummary) -> io::Result<W> {
        match self.0 {
            Writer::Table(table) => table.finish(summary),
            Writer::Rows(rows) => rows.writer.finish(tail(summary)),
        }
    }
}

/// Returns the summary of a ranking.
pub fn top_summary(plan: &TopPlan, summary: &TopSummary) -> Summary {
    frame(plan).summary(tail(summary))
}

impl<W: Write> SliceSink<TopSlice> for TopReport<W> {
    fn slice(&mut self, slice: &TopSlice) -> io::Result<()> {
        match &mut self.0 {
            Writer::Table(table) => table.slice(slice),
            Writer::Rows(rows) => slice.keys.iter().try_for_each(|key| {
                rows.row(&TopRow {
                    start_ns: slice.start_ns,
                    end_ns: slice.end_ns,
                    key: key.clone(),
                    partial: slice.partial,
                    revised: slice.revised,
                })
            }),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.0 {
            Writer::Table(table) => table.out.flush(),
            Writer::Rows(rows) => rows.writer.flush(),
        }
    }
}
