//! Results as tables and pages for people, and as JSON, JSON lines, CSV and Parquet for programs.
//!
//! Slices are written as they come, so a report of any length needs no memory.

mod batch;
mod cell;
mod chart_rows;
mod column;
mod compare_each;
mod compare_model;
mod compare_page;
mod compare_structures;
mod compare_table;
mod compare_words;
mod complete;
mod count_combinations;
mod count_figures;
mod count_model;
mod count_page;
mod count_table;
mod dedup;
pub mod document;
mod export;
mod export_model;
pub mod figure;
mod filter_info;
mod flows;
mod flows_model;
mod format;
mod formats;
mod heading;
pub mod html;
#[cfg(feature = "parquet")]
mod index;
#[cfg(feature = "parquet")]
mod index_stats;
mod layout;
#[cfg(feature = "cli")]
pub mod manual;
#[cfg(all(test, feature = "cli"))]
mod manual_tests;
#[cfg(feature = "reproduce")]
mod markdown;
mod markup;
mod number;
mod over_time;
mod parallel_rows;
mod plan_document;
mod plan_model;
#[cfg(feature = "arrow")]
mod record_batches;
#[cfg(feature = "reproduce")]
mod reproduce_document;
#[cfg(feature = "reproduce")]
mod reproduce_model;
mod rows;
mod run_view;
mod selection;
mod sparkline;
pub mod svg;
mod table_columns;
mod table_rows;
mod terminal;
mod top_model;
mod top_page;
mod top_table;
mod traffic_page;
pub mod traffic_table;

pub use compare_each::EachReport;
pub use compare_model::{CaptureDigest, CompareReport, Grouping};
pub use complete::CompleteReport;
pub use count_combinations::CountDesign;
pub use count_model::CountParameters;
pub use count_page::CountPage;
pub use dedup::DedupReport;
pub use export::{ExportReport, export_summary};
pub use export_model::{ExportParameters, export_shortcomings};
pub use filter_info::{AnswerReport, FilterInfo, OverlapReport, answer_summary};
pub use flows::{FlowReport, flow_shortcomings, flow_summary};
pub use flows_model::{FlowNames, FlowParameters, FlowShape};
pub use format::{ReportFormat, Summary};
#[cfg(feature = "parquet")]
pub use index::{SearchReport, search_summary};
#[cfg(feature = "parquet")]
pub use index_stats::{index_check, index_stats};
pub use plan_model::PlanReport;
#[cfg(feature = "arrow")]
pub use record_batches::RecordBatches;
#[cfg(feature = "reproduce")]
pub use reproduce_model::{ReproduceReport, write_experiments};
pub use run_view::slice_shortcomings;
pub use terminal::TerminalStyle;
pub use top_page::TopPage;
pub use top_table::{TopReport, top_summary};

#[cfg(feature = "cli")]
pub(crate) use number::counted;
#[cfg(feature = "cli")]
pub(crate) use selection::part_words;

use self::count_table::CountTable;
use self::rows::{RowWriter, Writer};
use crate::pipeline::{CountSummary, SliceResult, SliceSink};
use std::io::{self, Write};

/// Writes the report of a count in one of the formats.
#[derive(Debug)]
pub struct CountReport<W: Write> {
    parameters: CountParameters,
    writer: Writer<CountTable<W>, RowWriter<W, SliceResult>>,
}

impl<W: Write> CountReport<W> {
    /// Begins a report; `style` is that of the table.
    ///
    /// # Errors
    ///
    /// Writing failed.
    pub fn begin(
        format: ReportFormat,
        parameters: &CountParameters,
        style: TerminalStyle,
        out: W,
    ) -> io::Result<Self> {
        let writer = if format.is_table() {
            Writer::Table(Box::new(CountTable::begin(out, parameters, style)?))
        } else {
            let columns =
                count_model::all_slice_columns(parameters.design.as_ref(), format.is_flat);
            let frame = count_model::frame(parameters);
            Writer::Rows(Box::new(RowWriter::begin(format, frame, columns, out)?))
        };
        Ok(Self { parameters: parameters.clone(), writer })
    }

    /// Ends the report with everything that is known only now, and gives the writer back, flushed.
    ///
    /// # Errors
    ///
    /// Writing failed.
    pub fn finish(self, summary: &CountSummary) -> io::Result<W> {
        match self.writer {
            Writer::Table(table) => table.finish(summary),
            Writer::Rows(rows) => rows.finish(count_model::tail(&self.parameters, summary)),
        }
    }
}

/// Returns the summary of a count.
pub fn count_summary(parameters: &CountParameters, summary: &CountSummary) -> Summary {
    count_model::frame(parameters).summary(count_model::tail(parameters, summary))
}

impl<W: Write> SliceSink for CountReport<W> {
    fn slice(&mut self, slice: &SliceResult) -> io::Result<()> {
        match &mut self.writer {
            Writer::Table(table) => table.slice(slice),
            Writer::Rows(rows) => rows.row(slice),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.writer {
            Writer::Table(table) => table.table.out.flush(),
            Writer::Rows(rows) => rows.flush(),
        }
    }
}
