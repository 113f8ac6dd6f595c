//! Recomputed tables and figures as they are told: one set of names for JSON, CSV and Parquet,
//! documented in `docs/output.md`.

use super::figure::Page;
use super::flat::FlatTable;
use super::{markdown, reproduce_page, reproduce_table};
use crate::experiments::{Agreement, Cell, Chart, ChartScale, CurveKind, Experiment, Scale};
use serde::Serialize;
use std::io::{self, Write};

/// Name and version of the document.
const REPRODUCE_SCHEMA: &str = "flowsieve.reproduce/1";

/// How the results are written.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum ReproduceFormat {
    /// For people.
    #[default]
    Table,
    /// A line a figure.
    Csv,
    /// One document.
    Json,
    /// The rows of the CSV.
    Parquet,
}

/// What was recomputed, and with what.
#[derive(Clone, Copy, Debug)]
pub struct ReproduceReport<'a> {
    /// How large.
    pub scale: Scale,
    /// Start of the random numbers.
    pub seed: u64,
    /// Captures that were offered to the experiments on traffic.
    pub captures: usize,
    /// Whether a list of words was given.
    pub words: bool,
    /// The run was ended before all experiments that were asked for were done.
    pub interrupted: bool,
    /// The machine that times were measured on, as people name it.
    pub machine: &'a str,
    /// The experiments, in the order in which they were asked for.
    pub experiments: &'a [Experiment],
}

impl ReproduceReport<'_> {
    /// Writes it. Tables keep to `width` columns; `styled` allows them to use a terminal's bold face.
    ///
    /// # Errors
    ///
    /// Writing failed.
    pub fn write<W: Write>(
        &self,
        format: ReproduceFormat,
        width: usize,
        styled: bool,
        mut out: W,
    ) -> io::Result<W> {
        match format {
            ReproduceFormat::Table => reproduce_table::write(self, width, styled, &mut out)?,
            ReproduceFormat::Json => {
                serde_json::to_writer_pretty(&mut out, &self.document())?;
                writeln!(out)?;
            }
            ReproduceFormat::Csv => self.write_csv(&mut out)?,
            ReproduceFormat::Parquet => self.write_parquet(&mut out)?,
        }
        out.flush()?;
        Ok(out)
    }

    /// The page with everything: text, tables and charts.
    pub fn page(&self) -> Page {
        reproduce_page::page(self)
    }

    /// The page as Markdown, with each figure as the image `<folder>/<name>.svg`.
    ///
    /// # Errors
    ///
    /// Writing failed.
    pub fn write_markdown<W: Write>(&self, folder: &str, mut out: W) -> io::Result<W> {
        markdown::write(&self.page(), folder, &mut out)?;
        out.flush()?;
        Ok(out)
    }

    pub(super) fn scale_name(&self) -> &'static str {
        match self.scale {
            Scale::Small => "small",
            Scale::Default => "default",
            Scale::Full => "full",
        }
    }

    fn document(&self) -> Document<'_> {
        Document {
            schema: REPRODUCE_SCHEMA,
            parameters: Parameters {
                scale: self.scale_name(),
                seed: self.seed,
                captures: self.captures,
                words: self.words,
                machine: self.machine,
            },
            interrupted: self.interrupted,
            experiments: self.experiments.iter().map(ExperimentRow::from).collect(),
        }
    }
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'a str,
    parameters: Parameters<'a>,
    interrupted: bool,
    experiments: Vec<ExperimentRow<'a>>,
}

#[derive(Serialize)]
struct Parameters<'a> {
    scale: &'a str,
    seed: u64,
    captures: usize,
    words: bool,
    machine: &'a str,
}

#[derive(Serialize)]
struct ExperimentRow<'a> {
    name: &'a str,
    title: &'a str,
    source: &'a str,
    agrees: bool,
    remarks: &'a [String],
    cells: Vec<CellRow<'a>>,
    charts: Vec<ChartRow<'a>>,
}

#[derive(Serialize)]
pub(super) struct CellRow<'a> {
    pub(super) label: &'a str,
    pub(super) unit: &'a str,
    pub(super) paper: Option<f64>,
    pub(super) formula: Option<f64>,
    pub(super) measured: Option<f64>,
    pub(super) std_error: Option<f64>,
    pub(super) distance: Option<f64>,
    pub(super) is_time: bool,
    pub(super) agreement: &'a str,
    pub(super) verdict: String,
}

#[derive(Serialize)]
struct ChartRow<'a> {
    name: &'a str,
    title: &'a str,
    caption: &'a str,
    x: AxisRow<'a>,
    y: AxisRow<'a>,
    curves: Vec<CurveRow<'a>>,
}

#[derive(Serialize)]
struct AxisRow<'a> {
    label: &'a str,
    scale: &'a str,
}

#[derive(Serialize)]
struct CurveRow<'a> {
    name: &'a str,
    kind: &'a str,
    points: &'a [(f64, f64, f64)],
}

impl<'a> From<&'a Experiment> for ExperimentRow<'a> {
    fn from(experiment: &'a Experiment) -> Self {
        Self {
            name: experiment.name,
            title: experiment.title,
            source: experiment.source,
            agrees: experiment.departures().next().is_none(),
            remarks: &experiment.remarks,
            cells: experiment.cells.iter().map(CellRow::from).collect(),
            charts: experiment.charts.iter().map(ChartRow::from).collect(),
        }
    }
}

impl<'a> From<&'a Cell> for CellRow<'a> {
    fn from(cell: &'a Cell) -> Self {
        let agreement: Agreement = cell.agreement();
        Self {
            label: &cell.label,
            unit: cell.unit,
            paper: cell.paper.map(|paper| paper.value),
            formula: cell.formula,
            measured: cell.measured.map(|measured| measured.mean),
            std_error: cell.measured.map(|measured| measured.std_error),
            distance: cell.distance(),
            is_time: cell.is_time,
            agreement: agreement.name(),
            verdict: cell.verdict(),
        }
    }
}

impl<'a> From<&'a Chart> for ChartRow<'a> {
    fn from(chart: &'a Chart) -> Self {
        let axis = |axis: &'a crate::experiments::ChartAxis| AxisRow {
            label: &axis.label,
            scale: match axis.scale {
                ChartScale::Linear => "linear",
                ChartScale::Log => "log",
                ChartScale::Bytes => "bytes",
            },
        };
        let curves = chart.curves.iter().map(|curve| CurveRow {
            name: &curve.name,
            kind: match curve.kind {
                CurveKind::Exact => "exact",
                CurveKind::Formula => "formula",
                CurveKind::Measured => "measured",
            },
            points: &curve.points,
        });
        Self {
            name: &chart.name,
            title: &chart.title,
            caption: &chart.caption,
            x: axis(&chart.x),
            y: axis(&chart.y),
            curves: curves.collect(),
        }
    }
}
