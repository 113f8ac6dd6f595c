//! Recomputed tables and figures: the columns of their parts.

use super::cell::{Cell, Decimal, object};
use super::column::Columns;
use super::rows::Frame;
use crate::experiments::{
    Cell as Figure, Chart, ChartAxis, ChartScale, Curve, CurveKind, Entry, Experiment, Scale,
};

/// Name and version of the document.
const SCHEMA: &str = "flowsieve.reproduce/1";

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
    /// All was done and read to its end.
    pub complete: bool,
    /// The machine that times were measured on, as people name it.
    pub machine: &'a str,
    /// The day of the run, for the page.
    pub day: &'a str,
    /// The experiments, in the order in which they were asked for.
    pub experiments: &'a [Experiment],
}

/// What the numbers depend on.
pub(super) fn parameter_columns<'a>() -> Columns<ReproduceReport<'a>> {
    Columns::default()
        .inlined("scale", |report: &ReproduceReport<'a>| match report.scale {
            Scale::Small => "small",
            Scale::Default => "default",
            Scale::Full => "full",
        })
        .doc("`default`, or `full` with `--full-scale`")
        .inlined("seed", |report| report.seed)
        .doc("start of the random numbers")
        .inlined("captures", |report| report.captures)
        .doc("captures for the experiments on traffic; with 0 it is generated")
        .inlined("words", |report| report.words)
        .doc("a list of words was given; if not, words are generated")
        .inlined("machine", |report| report.machine.to_owned())
        .doc("the machine that times were measured on")
}

/// An experiment that can be run.
pub(super) fn listed_columns() -> Columns<Entry> {
    Columns::default()
        .field("name", |entry: &Entry| entry.name)
        .doc("its name in the command line")
        .field("title", |entry| entry.title)
        .doc("what it recomputes")
        .field("source", |entry| entry.source)
        .doc("where that was published")
}

/// An experiment.
pub(super) fn experiment_columns() -> Columns<Experiment> {
    Columns::default()
        .field("name", |experiment: &Experiment| experiment.name)
        .doc("its name in the command line")
        .field("title", |experiment| experiment.title)
        .doc("what it recomputes")
        .field("source", |experiment| experiment.source)
        .doc("where that was published")
        .field("agrees", |experiment| experiment.departures().next().is_none())
        .doc("no cell departs from its formula")
        .field("remarks", |experiment| experiment.remarks.clone())
        .doc("remarks, in sentences")
        .objects("cells", figure_columns(), |experiment| experiment.cells.clone())
        .doc("its figures")
        .objects("charts", chart_columns(), |experiment| experiment.charts.clone())
        .doc("its charts")
}

/// A figure.
pub(super) fn figure_columns() -> Columns<Figure> {
    Columns::default()
        .field("label", |figure: &Figure| figure.label.clone())
        .doc("its name, unique in its experiment")
        .field("unit", |figure| figure.unit)
        .doc("`bytes`, `MB`, `bits`, `%`, `points`, `ns` or `times`; empty for plain numbers and shares")
        .field("paper", |figure| figure.paper.as_ref().map(|paper| Decimal(paper.value)))
        .doc("as the paper prints it")
        .field("formula", |figure| figure.formula.map(Decimal))
        .doc("by the right formula, which is not always the paper's")
        .field("measured", |figure| figure.measured.map(|measured| Decimal(measured.mean)))
        .doc("mean on the filters of this program")
        .field("std_error", |figure| figure.measured.map(|measured| Decimal(measured.std_error)))
        .doc("its standard error, 0 for what is counted")
        .field("distance", |figure| figure.distance().map(Decimal))
        .doc("(measured - formula) / standard error")
        .field("is_time", |figure| figure.is_time)
        .doc("a time or a ratio of times, which differs from run to run")
        .field("agreement", |figure| figure.agreement().name())
        .doc("`agrees`; `departs` (over four standard errors from the formula; the exit code is then 1); `paper-differs`; `shown` (nothing to compare with)")
        .field("verdict", Figure::verdict)
        .doc("the same in words, with the reason")
}

/// A figure with the name of its experiment.
type Line<'a> = (&'static str, &'a Figure);

/// The columns of a figure in flat tables.
pub(super) fn line_columns<'a>() -> Columns<Line<'a>> {
    let experiment = Columns::default()
        .inlined("experiment", |line: &Line<'a>| line.0)
        .doc("name of the experiment");
    experiment.borrowed(figure_columns(), |line| line.1)
}

/// A chart.
pub(super) fn chart_columns() -> Columns<Chart> {
    Columns::default()
        .field("name", |chart: &Chart| chart.name.clone())
        .doc("its name")
        .field("title", |chart| chart.title.clone())
        .doc("its heading")
        .field("caption", |chart| chart.caption.clone())
        .doc("what to see in it")
        .object("x", axis_columns(), |chart| Some(chart.x.clone()))
        .doc("the horizontal axis")
        .object("y", axis_columns(), |chart| Some(chart.y.clone()))
        .doc("the vertical axis")
        .objects("curves", curve_columns(), |chart| chart.curves.clone())
        .doc("its curves")
}

/// An axis.
pub(super) fn axis_columns() -> Columns<ChartAxis> {
    Columns::default()
        .field("label", |axis: &ChartAxis| axis.label.clone())
        .doc("what it shows")
        .field("scale", |axis| match axis.scale {
            ChartScale::Linear => "linear",
            ChartScale::Log => "log",
            ChartScale::Bytes => "bytes",
        })
        .doc("`linear`, `log` or `bytes`")
}

/// A curve.
pub(super) fn curve_columns() -> Columns<Curve> {
    Columns::default()
        .field("name", |curve: &Curve| curve.name.clone())
        .doc("its name")
        .field("kind", |curve| match curve.kind {
            CurveKind::Exact => "exact",
            CurveKind::Formula => "formula",
            CurveKind::Measured => "measured",
        })
        .doc("`exact`, `formula` or `measured`")
        .field("points", |curve| {
            let points = curve.points.iter();
            points.map(|&(x, y, error)| vec![x, y, error]).collect::<Vec<_>>()
        })
        .doc("its points, each `[x, y, standard error of y]`")
}

impl ReproduceReport<'_> {
    /// The figures of all experiments.
    pub(super) fn lines(&self) -> Vec<Line<'_>> {
        let experiments = self.experiments.iter();
        experiments
            .flat_map(|experiment| experiment.cells.iter().map(|cell| (experiment.name, cell)))
            .collect()
    }

    /// What stands before the rows.
    pub(super) fn frame(&self) -> Frame {
        Frame::new(SCHEMA, "cells")
            .with("parameters", parameter_columns().object_of(self))
            .with("interrupted", Cell::Bool(self.interrupted))
            .with("complete", Cell::Bool(self.complete))
    }

    pub(super) fn document(&self) -> Cell {
        object([
            ("schema", Cell::Text(SCHEMA.into())),
            ("parameters", parameter_columns().object_of(self)),
            ("interrupted", Cell::Bool(self.interrupted)),
            ("complete", Cell::Bool(self.complete)),
            ("experiments", experiment_columns().list_of(self.experiments)),
        ])
    }
}
