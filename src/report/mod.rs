//! What the user gets: results as a table for people, as JSON, JSON lines, CSV and Parquet for programs.
//!
//! Slices are written as they come, so a report of any length needs no memory.

mod compare_flat;
mod compare_model;
mod compare_page;
mod compare_table;
mod compare_words;
mod count_combinations;
mod count_figures;
mod count_page;
mod count_parquet;
mod csv;
mod dedup;
pub mod figure;
mod filter_info;
mod flat;
mod flows;
mod flows_model;
mod flows_table;
mod flows_writers;
pub mod html;
mod index;
mod index_stats;
mod index_verify;
mod json;
mod markdown;
mod markup;
mod model;
mod number;
pub mod parquet;
mod plan_model;
mod plan_table;
mod reproduce_flat;
mod reproduce_model;
mod reproduce_page;
mod reproduce_table;
mod rows;
mod sparkline;
mod stored_combinations;
pub mod svg;
mod table;
pub mod traffic_table;

pub use compare_model::CompareReport;
pub use count_combinations::CountDesign;
pub use count_page::{CountPage, figures as page_figures};
pub use dedup::{DedupFormat, DedupParameters, write_dedup};
pub use filter_info::FilterInfo;
pub use flows::FlowReport;
pub use flows_model::{FlowFormat, FlowNames, FlowParameters, FlowShape};
pub use flows_table::flow_shortcomings;
pub use index::{SearchFormat, SearchReport};
pub use index_stats::{write_index_stats, write_index_stats_json};
pub use index_verify::write_index_verify_json;
pub use model::{CountParameters, ReportFormat};
pub use plan_model::{PlanFormat, PlanReport};
pub use reproduce_model::{ReproduceFormat, ReproduceReport};

use crate::pipeline::{CountSummary, SliceResult, SliceSink};
use std::io::{self, Write};

/// What people are told of a run that a signal ended.
const INTERRUPTED: &str = "interrupted: there was more to read; this is what was read until then";

/// The same on a page.
fn interrupted_sentence() -> String {
    "The run was interrupted: there was more to read.".to_owned()
}

/// Writes the report of a count in one of the formats.
#[derive(Debug)]
pub struct CountReport<W: Write> {
    writer: Writer<W>,
}

#[derive(Debug)]
enum Writer<W: Write> {
    Table(Box<table::CountTable<W>>),
    Csv(Box<csv::CountCsv<W>>),
    Json(json::CountJson<W>),
    JsonLines(json::CountJsonLines<W>),
    Parquet(Box<count_parquet::CountParquet<W>>),
}

impl<W: Write> CountReport<W> {
    /// Begins a report. `styled` allows the table to use a terminal's bold face.
    ///
    /// # Errors
    ///
    /// Writing failed.
    pub fn begin(
        format: ReportFormat,
        parameters: &CountParameters,
        styled: bool,
        out: W,
    ) -> io::Result<Self> {
        let writer = match format {
            ReportFormat::Table => {
                Writer::Table(Box::new(table::CountTable::begin(out, parameters, styled)?))
            }
            ReportFormat::Csv => Writer::Csv(Box::new(csv::CountCsv::begin(
                out,
                parameters.design.as_ref(),
            )?)),
            ReportFormat::Json => Writer::Json(json::CountJson::begin(out, parameters)?),
            ReportFormat::JsonLines => {
                Writer::JsonLines(json::CountJsonLines::begin(out, parameters)?)
            }
            ReportFormat::Parquet => {
                let table = count_parquet::CountParquet::begin(out, parameters.design.as_ref())?;
                Writer::Parquet(Box::new(table))
            }
        };
        Ok(Self { writer })
    }

    /// Ends the report with everything that is known only now, and gives the writer back, flushed.
    ///
    /// # Errors
    ///
    /// Writing failed.
    pub fn finish(self, summary: &CountSummary) -> io::Result<W> {
        let mut out = match self.writer {
            Writer::Table(table) => table.finish(summary)?,
            Writer::Csv(csv) => csv.finish()?,
            Writer::Json(json) => json.finish(summary)?,
            Writer::JsonLines(lines) => lines.finish(summary)?,
            Writer::Parquet(table) => table.finish()?,
        };
        out.flush()?;
        Ok(out)
    }
}

impl<W: Write> SliceSink for CountReport<W> {
    fn slice(&mut self, slice: &SliceResult) -> io::Result<()> {
        match &mut self.writer {
            Writer::Table(table) => table.slice(slice),
            Writer::Csv(csv) => csv.slice(slice),
            Writer::Json(json) => json.slice(slice),
            Writer::JsonLines(lines) => lines.slice(slice),
            Writer::Parquet(table) => table.slice(slice),
        }
    }
}
