//! Recomputed tables and figures of the papers, for people.

use super::document::{Block, Document, TableView, TextColumns, Wrapping};
use super::figure::{Axis, Drawing, Figure, Point, Scale, Series, SeriesStyle};
use super::heading::Heading;
use super::number::counted;
use super::reproduce_model::ReproduceReport;
use super::run_view::shortcomings;
use crate::experiments::{
    Agreement, Cell, Chart, ChartAxis, ChartScale, Curve, CurveKind, Experiment, Measured,
    Scale as Size,
};

/// The seed unless another is asked for.
const DEFAULT_SEED: u64 = 1;

/// Longest line in a text file.
const WIDTH: usize = 120;

/// Minimum width of the verdicts; with less room they are printed below the row.
const VERDICT: usize = 26;

impl ReproduceReport<'_> {
    /// Everything that people read: text, tables and charts.
    pub fn page(&self) -> Document {
        let mut document = Document {
            title: "The papers' tables and figures, recomputed".into(),
            wrapping: Wrapping { width: WIDTH, hanging: 0 },
            ..Document::default()
        };
        document.page(summary(self).into_iter().map(Block::Answer));
        for (number, experiment) in self.experiments.iter().enumerate() {
            if number > 0 {
                document.terminal([Block::Gap]);
            }
            add_experiment(&mut document, experiment, self);
        }
        let [experiments, figures] = sizes(self);
        let departures = self.experiments.iter().map(|e| e.departures().count()).sum::<usize>();
        document.terminal([Block::Gap, Block::Sentence(format!("{experiments}, {figures}, {departures} of them away from their formula by more than 4 standard errors"))]);
        document.both(shortcomings(&[], self.interrupted).into_iter().map(Block::Warning));
        document
    }
}

/// The numbers of experiments and of their figures.
fn sizes(report: &ReproduceReport<'_>) -> [String; 2] {
    let figures = report.experiments.iter().map(|experiment| experiment.cells.len()).sum::<usize>();
    let experiments = counted(report.experiments.len() as u64, "experiment", "experiments");
    [experiments, counted(figures as u64, "figure", "figures")]
}

fn summary(report: &ReproduceReport<'_>) -> Vec<String> {
    let cells = || report.experiments.iter().flat_map(|experiment| &experiment.cells);
    let count = |wanted| cells().filter(|cell| cell.agreement() == wanted).count();
    let is_held =
        |cell: &&Cell| !cell.is_unbound && cell.formula.is_some() && cell.measured.is_some();
    let (held, departures) = (cells().filter(is_held).count(), count(Agreement::Departs));
    let differ = count(Agreement::PaperDiffers) as u64;
    let differ = counted(differ, "figure differs", "figures differ");
    let scale = match report.scale {
        Size::Small => "at a small scale, which shows that they run and no more",
        Size::Default => "at the default scale",
        Size::Full => "at full scale",
    };
    let ([experiments, figures], seed) = (sizes(report), report.seed);
    vec![
        format!("{experiments} {scale}, seed {seed}: {figures}, {held} of them measured and compared with a formula; {departures} leave it by more than 4 standard errors."),
        format!("{differ} in the paper; the verdict says why."),
        "Paper: as printed. Formula: the correct one, which is not always the paper's. Measured: on the filters of this library, mean ± standard error; no error is given for values without chance.".into(),
        format!("Times were measured on {}, on {}.", report.machine, report.day),
    ]
}

/// Returns the command that gives the same numbers again, word by word.
fn command(name: &str, report: &ReproduceReport<'_>) -> Vec<String> {
    let (variable, named) = report.given;
    let full = (report.scale == Size::Full).then(|| "--full-scale".to_owned());
    let seed = (report.seed != DEFAULT_SEED).then(|| format!("--seed {}", report.seed));
    let words = [format!("{variable}flowsieve reproduce {name}")].into_iter();
    words.chain(full).chain(seed).chain(named.iter().cloned()).collect()
}

fn add_experiment(document: &mut Document, experiment: &Experiment, report: &ReproduceReport<'_>) {
    document.both([
        Block::Section(format!("{} – {}", experiment.name, experiment.title)),
        Block::Command(command(experiment.name, report)),
        Block::Sentence(format!("Source: {}.", experiment.source)),
    ]);
    document.both(experiment.remarks.iter().cloned().map(Block::Sentence));
    if experiment.cells.iter().any(|cell| cell.is_time) {
        document.page([Block::Sentence(format!("Times on {}.", report.machine))]);
    }
    document.both([Block::Table(figures(&experiment.cells))]);
    document.page(experiment.charts.iter().map(figure).map(Block::Figure));
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
    let curves = chart.curves.iter().map(|c| series(c, chart)).collect();
    let drawing = Drawing::lines(axis(&chart.x), axis(&chart.y), curves);
    Figure::new(&*chart.name, &*chart.title, &*chart.caption, drawing)
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
        points: curve
            .points
            .iter()
            .map(|&(x, y, error)| Point { x, y, errors: [error; 2] })
            .collect(),
    }
}

/// The figures, each with its label, and why it differs from the paper.
fn figures(cells: &[Cell]) -> TableView {
    let mut columns = TextColumns::<Cell>::default();
    columns.push(Heading::text(""), |cell| {
        let unit = if cell.unit.is_empty() { String::new() } else { format!(", {}", cell.unit) };
        format!("{}{unit}", cell.label)
    });
    columns.push(Heading::number("paper").gap(2), |cell| {
        cell.paper.map_or_else(String::new, |paper| number(paper.value))
    });
    columns.push(Heading::number("formula").gap(2), |cell| {
        cell.formula.map_or_else(String::new, number)
    });
    columns.push(Heading::number("measured").gap(2), |cell| {
        cell.measured.map_or_else(String::new, measured)
    });
    columns.push(Heading::text("verdict").gap(2).wrapped(VERDICT), Cell::verdict);
    columns.table(cells)
}

/// The mean to the second digit of its standard error: what follows says nothing.
fn measured(measured: Measured) -> String {
    let Measured { mean, std_error } = measured;
    if std_error <= 0.0 {
        return number(mean);
    }
    let exponent = |value: f64| value.log10().floor() as i32;
    let error = digits(std_error, 2);
    let decimals = 1 - exponent(std_error);
    if mean == 0.0 || (1e-4..1e6).contains(&mean.abs()) {
        return format!("{mean:.0$} ± {error}", decimals.clamp(0, 9) as usize);
    }
    let decimals = (exponent(mean.abs()) + decimals).clamp(0, 9) as usize;
    format!("{mean:.decimals$e} ± {error}")
}

/// Five significant digits; whole numbers and what is large with all before the point.
fn number(value: f64) -> String {
    if value.fract().abs() < f64::MIN_POSITIVE && value.abs() < 1e15 {
        return format!("{value:.0}");
    }
    if value.abs() >= 1e4 && value.abs() < 1e12 {
        return format!("{value:.2}");
    }
    digits(value, 5)
}

fn digits(value: f64, significant: usize) -> String {
    let magnitude = value.abs();
    if magnitude == 0.0 {
        return "0".into();
    }
    if !(1e-4..1e6).contains(&magnitude) {
        return format!("{value:.0$e}", significant - 1);
    }
    let before = magnitude.log10().floor() as i32 + 1;
    let decimals = (significant as i32 - before).max(0) as usize;
    let text = format!("{value:.decimals$}");
    if decimals == 0 {
        return text;
    }
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::{ALL, Scale, Settings};
    use crate::report::terminal::{TerminalStyle, print};

    #[test]
    fn numbers_are_readable() {
        let texts = [0.0, 3.0, 0.061_009_9, 6.457_6e-5, 13_125.999_6, 240.250_26, 1.5e20, -0.25]
            .map(number);
        assert_eq!(
            texts,
            ["0", "3", "0.06101", "6.4576e-5", "13126.00", "240.25", "1.5000e20", "-0.25"]
        );
    }

    #[test]
    fn means_end_where_their_errors_do() {
        let texts = [
            (0.061_097, 0.000_25),
            (-2.824_8, 2.3),
            (5.754e-5, 5.7e-6),
            (6.8e-5, 1.2e-4),
            (0.0, 0.000_31),
            (12_345.678, 150.0),
            (0.25, 0.0),
        ]
        .map(|(mean, std_error)| measured(Measured { mean, std_error }));
        assert_eq!(
            texts,
            [
                "0.06110 ± 0.00025",
                "-2.8 ± 2.3",
                "5.75e-5 ± 5.7e-6",
                "7e-5 ± 0.00012",
                "0.00000 ± 0.00031",
                "12346 ± 150",
                "0.25"
            ]
        );
    }

    #[test]
    fn tables_keep_to_their_width() {
        let settings = Settings {
            scale: Scale::Small,
            seed: 1,
            threads: 1,
            captures: Vec::new(),
            words: None,
        };
        let entry = ALL.iter().find(|entry| entry.name == "cbfm-table-3").unwrap();
        let experiments = [entry.run(&settings).unwrap()];
        let report = ReproduceReport {
            scale: Scale::Small,
            seed: 7,
            captures: 1,
            interrupted: false,
            complete: true,
            words: false,
            given: &(String::new(), vec!["--capture 'a b'".to_owned()]),
            machine: "a machine",
            day: "2026-11-24",
            experiments: &experiments,
        };
        for width in [60, 90, 140, 200] {
            let mut text = Vec::new();
            let style = TerminalStyle { width: Some(width), ..TerminalStyle::default() };
            print(&report.page(), style, &mut text).unwrap();
            let text = String::from_utf8(text).unwrap();
            // The figures themselves are not broken, and need 70 columns.
            let most = text.lines().map(|line| line.chars().count()).max().unwrap();
            assert!(most <= width.max(100), "{width}: {most}\n{text}");
            assert!(text.contains("13126.00"), "{text}");
            assert!(text.contains("flowsieve reproduce cbfm-table-3 --seed 7"), "{text}");
        }
    }
}
