//! Recomputed tables and figures: the columns of their parts.

use super::cell::{Cell, Decimal};
use super::column::Columns;
use super::json::object;
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
    /// The machine that times were measured on, as people name it.
    pub machine: &'a str,
    /// The experiments, in the order in which they were asked for.
    pub experiments: &'a [Experiment],
}

/// What the numbers depend on.
pub(super) fn parameter_columns<'a>() -> Columns<ReproduceReport<'a>> {
    Columns::default()
        .field("scale", |report: &ReproduceReport<'a>| match report.scale {
            Scale::Small => "small",
            Scale::Default => "default",
            Scale::Full => "full",
        })
        .field("seed", |report| report.seed)
        .field("captures", |report| report.captures)
        .field("words", |report| report.words)
        .field("machine", |report| report.machine.to_owned())
}

/// An experiment that can be run.
pub(super) fn listed_columns() -> Columns<Entry> {
    Columns::default()
        .field("name", |entry: &Entry| entry.name)
        .field("title", |entry| entry.title)
        .field("source", |entry| entry.source)
}

/// An experiment.
pub(super) fn experiment_columns() -> Columns<Experiment> {
    Columns::default()
        .field("name", |experiment: &Experiment| experiment.name)
        .field("title", |experiment| experiment.title)
        .field("source", |experiment| experiment.source)
        .field("agrees", |experiment| {
            experiment.departures().next().is_none()
        })
        .field("remarks", |experiment| experiment.remarks.clone())
        .objects("cells", figure_columns(), |experiment| {
            experiment.cells.clone()
        })
        .objects("charts", chart_columns(), |experiment| {
            experiment.charts.clone()
        })
}

/// A figure.
pub(super) fn figure_columns() -> Columns<Figure> {
    Columns::default()
        .field("label", |figure: &Figure| figure.label.clone())
        .field("unit", |figure| figure.unit)
        .field("paper", |figure| {
            figure.paper.as_ref().map(|paper| Decimal(paper.value))
        })
        .field("formula", |figure| figure.formula.map(Decimal))
        .field("measured", |figure| {
            figure.measured.map(|measured| Decimal(measured.mean))
        })
        .field("std_error", |figure| {
            figure.measured.map(|measured| Decimal(measured.std_error))
        })
        .field("distance", |figure| figure.distance().map(Decimal))
        .field("is_time", |figure| figure.is_time)
        .field("agreement", |figure| figure.agreement().name())
        .field("verdict", Figure::verdict)
}

/// A figure with the name of its experiment.
type Line<'a> = (&'static str, &'a Figure);

/// The columns of a figure in flat tables.
pub(super) fn line_columns<'a>() -> Columns<Line<'a>> {
    let experiment = Columns::default().field("experiment", |line: &Line<'a>| line.0);
    experiment.borrowed(figure_columns(), |line| line.1)
}

/// A chart.
pub(super) fn chart_columns() -> Columns<Chart> {
    Columns::default()
        .field("name", |chart: &Chart| chart.name.clone())
        .field("title", |chart| chart.title.clone())
        .field("caption", |chart| chart.caption.clone())
        .object("x", axis_columns(), |chart| Some(chart.x.clone()))
        .object("y", axis_columns(), |chart| Some(chart.y.clone()))
        .objects("curves", curve_columns(), |chart| chart.curves.clone())
}

/// An axis.
pub(super) fn axis_columns() -> Columns<ChartAxis> {
    Columns::default()
        .field("label", |axis: &ChartAxis| axis.label.clone())
        .field("scale", |axis| match axis.scale {
            ChartScale::Linear => "linear",
            ChartScale::Log => "log",
            ChartScale::Bytes => "bytes",
        })
}

/// A curve.
pub(super) fn curve_columns() -> Columns<Curve> {
    Columns::default()
        .field("name", |curve: &Curve| curve.name.clone())
        .field("kind", |curve| match curve.kind {
            CurveKind::Exact => "exact",
            CurveKind::Formula => "formula",
            CurveKind::Measured => "measured",
        })
        .field("points", |curve| {
            let points = curve.points.iter();
            points
                .map(|&(x, y, error)| vec![x, y, error])
                .collect::<Vec<_>>()
        })
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
        Frame::of_rows(SCHEMA, "cells", "cell")
            .with("parameters", parameter_columns().object_of(self))
            .with("interrupted", Cell::Bool(self.interrupted))
    }

    pub(super) fn document(&self) -> Cell {
        object([
            ("schema", Cell::Text(SCHEMA.into())),
            ("parameters", parameter_columns().object_of(self)),
            ("interrupted", Cell::Bool(self.interrupted)),
            (
                "experiments",
                experiment_columns().list_of(self.experiments),
            ),
        ])
    }
}
