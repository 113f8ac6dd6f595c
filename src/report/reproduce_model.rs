//! Recomputed tables and figures: the columns of their parts.

use super::cell::{Cell, Decimal};
use super::column::{Columns, columns};
use super::complete::CompleteReport;
use super::format::{Frame, ReportFormat, Tail};
use super::markdown;
use super::rows::RowWriter;
use crate::experiments::{ALL, Cell as Figure, Chart, ChartAxis, Curve, Entry, Experiment, Scale};
use std::io::{self, Write};

/// A run of experiments: its parameters and results.
#[derive(Clone, Copy, Debug)]
pub struct ReproduceReport<'a> {
    /// Size of the experiments.
    pub scale: Scale,
    /// Start of the random numbers.
    pub seed: u64,
    /// Captures that were offered to the experiments on traffic.
    pub captures: usize,
    /// Whether a list of words was given.
    pub words: bool,
    /// The variable before the command that repeats it, and its options that name captures, for a shell.
    pub given: &'a (String, Vec<String>),
    /// The run was ended before all experiments that were asked for were done.
    pub interrupted: bool,
    /// All was done and read to its end.
    pub complete: bool,
    /// The machine that times were measured on, as people name it.
    pub machine: &'a str,
    /// The day of the run, for the page.
    pub day: &'a str,
    /// The experiments, in the order in which they were asked for.
    pub experiments: &'a [Experiment],
}

/// The columns of the parameters.
pub(super) fn parameter_columns<'a>() -> Columns<ReproduceReport<'a>> {
    columns! { inlined report: ReproduceReport<'a>;
        scale = report.scale.name(), "`default`, or `full` with `--full-scale`";
        seed = report.seed, "start of the random numbers";
        captures = report.captures, "captures for the experiments on traffic; with 0 it is generated";
        words = report.words, "a list of words was given; if not, words are generated";
        machine = report.machine.to_owned(), "the machine that times were measured on";
    }
}

/// An experiment that can be run.
pub(super) fn listed_columns() -> Columns<Entry> {
    columns! { field entry: Entry;
        name = entry.name, "its name in the command line";
        title = entry.title, "what it recomputes";
        source = entry.source, "where that was published";
    }
}

/// An experiment.
pub(super) fn experiment_columns() -> Columns<Experiment> {
    columns! { field experiment: Experiment;
        name = experiment.name, "its name in the command line";
        title = experiment.title, "what it recomputes";
        source = experiment.source, "where that was published";
        agrees = experiment.departures().next().is_none(), "no cell departs from its formula";
        remarks = experiment.remarks.clone(), "remarks, in sentences";
        ..objects("cells", figure_columns(), |experiment| experiment.cells.clone()), "its figures";
        ..objects("charts", chart_columns(), |experiment| experiment.charts.clone()), "its charts";
    }
}

/// A figure.
pub(super) fn figure_columns() -> Columns<Figure> {
    columns! { field figure: Figure;
        label = figure.label.clone(), "its name, unique in its experiment";
        unit = figure.unit,
            "`bytes`, `MB`, `bits`, `%`, `points`, `ns` or `times`; empty for plain numbers and shares";
        paper = figure.paper.as_ref().map(|paper| Decimal(paper.value)), "as the paper prints it";
        formula = figure.formula.map(Decimal),
            "by the right formula, which is not always the paper's";
        measured = figure.measured.map(|measured| Decimal(measured.mean)),
            "mean on the filters of this program";
        std_error = figure.measured.map(|measured| Decimal(measured.std_error)),
            "its standard error, 0 for what is counted";
        distance = figure.distance().map(Decimal), "(measured - formula) / standard error";
        is_time = figure.is_time, "a time or a ratio of times, which differs from run to run";
        agreement = figure.agreement().name(),
            "`agrees`; `departs` (over four standard errors from the formula; the exit code is then 1); `paper-differs`; `shown` (nothing to compare with)";
        verdict = figure.verdict(), "the same in words, with the reason";
    }
}

/// A figure with the name of its experiment.
type Line<'a> = (&'static str, &'a Figure);

/// The columns of a figure in flat tables.
pub(super) fn line_columns<'a>() -> Columns<Line<'a>> {
    columns! { inlined line: Line<'a>;
        experiment = line.0, "name of the experiment";
        ..borrowed(figure_columns(), |line| line.1);
    }
}

/// A chart.
pub(super) fn chart_columns() -> Columns<Chart> {
    columns! { field chart: Chart;
        name = chart.name.clone(), "its name";
        title = chart.title.clone(), "its heading";
        caption = chart.caption.clone(), "what to see in it";
        ..object("x", axis_columns(), |chart| Some(chart.x.clone())), "the horizontal axis";
        ..object("y", axis_columns(), |chart| Some(chart.y.clone())), "the vertical axis";
        ..objects("curves", curve_columns(), |chart| chart.curves.clone()), "its curves";
    }
}

/// An axis.
pub(super) fn axis_columns() -> Columns<ChartAxis> {
    columns! { field axis: ChartAxis;
        label = axis.label.clone(), "what it shows";
        scale = axis.scale.name(), "`linear`, `log` or `bytes`";
    }
}

/// A curve.
pub(super) fn curve_columns() -> Columns<Curve> {
    columns! { field curve: Curve;
        name = curve.name.clone(), "its name";
        kind = curve.kind.name(), "`exact`, `formula` or `measured`";
        points = {
            let points = curve.points.iter();
            points.map(|&(x, y, error)| vec![x, y, error]).collect::<Vec<_>>()
        }, "its points, each `[x, y, standard error of y]`";
    }
}

/// Writes the list of experiments, a line or a row each.
///
/// # Errors
///
/// Writing failed.
pub fn write_experiments<W: Write>(format: ReportFormat, mut out: W) -> io::Result<W> {
    if !format.is_table() {
        let frame = Frame::new("flowsieve.experiments/1", "experiments");
        return RowWriter::write_all(format, frame, listed_columns(), ALL, Vec::new(), out);
    }
    let width = ALL.iter().map(|entry| entry.name.len()).max().unwrap_or(0);
    for entry in ALL {
        writeln!(out, "{:<width$}  {}", entry.name, entry.title)?;
    }
    Ok(out)
}

impl ReproduceReport<'_> {
    /// The figures of all experiments.
    fn lines(&self) -> Vec<Line<'_>> {
        let experiments = self.experiments.iter();
        experiments
            .flat_map(|experiment| experiment.cells.iter().map(|cell| (experiment.name, cell)))
            .collect()
    }

    /// Returns the report in every format.
    pub fn complete(&self) -> CompleteReport<'_> {
        CompleteReport {
            frame: Frame::new("flowsieve.reproduce/1", "cells"),
            sections: Box::new(|| self.sections()),
            has_rows: false,
            table: Box::new(|| self.page()),
            rows: Box::new(|target| target.write(line_columns(), &self.lines())),
        }
    }

    /// Writes the document as Markdown, with each figure as the image `<folder>/<name>.svg`.
    ///
    /// # Errors
    ///
    /// Writing failed.
    pub fn write_markdown<W: Write>(&self, folder: &str, mut out: W) -> io::Result<W> {
        markdown::write(&self.page(), folder, &mut out)?;
        out.flush()?;
        Ok(out)
    }

    fn sections(&self) -> Tail {
        vec![
            ("parameters", parameter_columns().object_of(self)),
            ("interrupted", Cell::Bool(self.interrupted)),
            ("complete", Cell::Bool(self.complete)),
            ("experiments", experiment_columns().list_of(self.experiments)),
        ]
    }
}
