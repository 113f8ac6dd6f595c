//! Recomputed tables and figures as a page.

use super::figure::{
    Axis, Block, DataTable, Drawing, Figure, Page, PageSection, Point, Scale, Series, SeriesStyle,
};
use super::reproduce_model::ReproduceReport;
use super::reproduce_table::figures;
use crate::experiments::{
    Agreement, Chart, ChartAxis, ChartScale, Curve, CurveKind, Experiment, Scale as Size,
};

pub(super) fn page(report: &ReproduceReport<'_>) -> Page {
    Page {
        title: "The papers' tables and figures, recomputed".into(),
        summary: summary(report),
        warnings: report.interrupted.then(super::interrupted_sentence).into_iter().collect(),
        zone: crate::zone::Zone::UTC,
        sections: report
            .experiments
            .iter()
            .map(|experiment| section(experiment, report.machine))
            .collect(),
    }
}

fn summary(report: &ReproduceReport<'_>) -> Vec<String> {
    let cells = || report.experiments.iter().flat_map(|experiment| &experiment.cells);
    let count = |wanted| cells().filter(|cell| cell.agreement() == wanted).count();
    let held = cells()
        .filter(|cell| cell.binding && cell.formula.is_some() && cell.measured.is_some())
        .count();
    let scale = match report.scale {
        Size::Small => "at a small scale, which shows that they run and no more",
        Size::Default => "at the default scale",
        Size::Full => "at full scale",
    };
    vec![
        format!(
            "{} experiments {scale}, seed {}: {} figures, {held} of them measured and compared with a formula; {} leave it by more than 4 standard errors.",
            report.experiments.len(),
            report.seed,
            cells().count(),
            count(Agreement::Departs)
        ),
        format!(
            "{} figures differ in the paper; the verdict says why.",
            count(Agreement::PaperDiffers)
        ),
        "Paper: as printed. Formula: the correct one, which is not always the paper's. Measured: on the filters of this library, mean ± standard error; no error is given for values without chance.".into(),
        format!("Times were measured on {}, on {}.", report.machine, report.day),
    ]
}

fn section(experiment: &Experiment, machine: &str) -> PageSection {
    let mut blocks = vec![Block::Text(format!(
        "Command: flowsieve reproduce {}. Source: {}.",
        experiment.name, experiment.source
    ))];
    blocks.extend(experiment.remarks.iter().cloned().map(Block::Text));
    if experiment.cells.iter().any(|cell| cell.is_time) {
        blocks.push(Block::Text(format!("Times on {machine}.")));
    }
    let rows = experiment.cells.iter().map(|cell| {
        let mut row = figures(cell);
        row.push(cell.verdict());
        row
    });
    let columns =
        [("", false), ("paper", true), ("formula", true), ("measured", true), ("verdict", false)];
    blocks.push(Block::Table(DataTable::new(&columns, rows)));
    blocks.extend(experiment.charts.iter().map(figure).map(Block::Figure));
    PageSection::new(&format!("{} – {}", experiment.name, experiment.title), blocks)
}

fn figure(chart: &Chart) -> Figure {
    let axis = |axis: &ChartAxis| Axis {
        label: axis.label.clone(),
        scale: match axis.scale {
            ChartScale::Linear => Scale::Linear,
            ChartScale::Log => Scale::Log,
            ChartScale::Bytes => Scale::Bytes,
        },
    };
    let drawing = Drawing::Lines {
        x: axis(&chart.x),
        y: axis(&chart.y),
        series: chart.curves.iter().map(|c| series(c, chart)).collect(),
    };
    Figure::new(&chart.name, &chart.title, &chart.caption, drawing)
}

fn series(curve: &Curve, chart: &Chart) -> Series {
    // Where there is a formula, its line passes through the points that were measured.
    let has_formula = chart.curves.iter().any(|c| c.kind == CurveKind::Formula);
    Series {
        name: curve.name.clone(),
        style: match curve.kind {
            CurveKind::Exact => SeriesStyle::Reference,
            CurveKind::Formula => SeriesStyle::Dashed,
            CurveKind::Measured if has_formula => SeriesStyle::Points,
            CurveKind::Measured => SeriesStyle::Line,
        },
        points: curve.points.iter().map(|&(x, y, error)| Point { x, y, error }).collect(),
    }
}
