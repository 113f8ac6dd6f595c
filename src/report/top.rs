//! The largest keys in one of the formats, slice by slice.

use super::format::ReportFormat;
use super::rows::{RowWriter, Summary};
use super::terminal::TerminalStyle;
use super::top_model::{TopRow, frame, key_columns, tail};
use super::top_table::TopTable;
use crate::pipeline::SliceSink;
use crate::top::{TopPlan, TopSlice, TopSummary};
use std::io::{self, Write};

/// Writes a ranking.
#[derive(Debug)]
pub struct TopReport<W: Write> {
    writer: Writer<W>,
}

#[derive(Debug)]
enum Writer<W: Write> {
    Table(Box<TopTable<W>>),
    Rows(Box<RowWriter<W, TopRow>>),
}

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
        let writer = if format.is_table() {
            let table = TopTable::begin(out, plan, style)?;
            Writer::Table(Box::new(table))
        } else {
            let rows = RowWriter::begin(format, frame(plan), key_columns(), out)?;
            Writer::Rows(Box::new(rows))
        };
        Ok(Self { writer })
    }

    /// Ends the report with everything that is known only now, and gives the writer back, flushed.
    ///
    /// # Errors
    ///
    /// Writing failed.
    pub fn finish(self, summary: &TopSummary) -> io::Result<W> {
        let mut out = match self.writer {
            Writer::Table(table) => table.finish(summary)?,
            Writer::Rows(rows) => rows.finish(tail(summary))?,
        };
        out.flush()?;
        Ok(out)
    }
}

/// Returns the summary of a ranking.
pub fn top_summary(plan: &TopPlan, summary: &TopSummary) -> Summary {
    frame(plan).summary(tail(summary))
}

impl<W: Write> SliceSink<TopSlice> for TopReport<W> {
    fn slice(&mut self, slice: &TopSlice) -> io::Result<()> {
        match &mut self.writer {
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
        match &mut self.writer {
            Writer::Table(table) => table.flush(),
            Writer::Rows(rows) => rows.flush(),
        }
    }
}
