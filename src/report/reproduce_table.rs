//! Recomputed tables for people: a line a figure, with the verdict behind it or below.

use super::look::Look;
use super::reproduce_model::ReproduceReport;
use super::table::{self, Heading, bold, fitted, head, wrapped};
use crate::experiments::{Cell, Experiment, Measured};
use std::io::{self, Write};

/// Columns of a line that does not go to a terminal.
const USUAL_WIDTH: usize = 120;

/// Least room for verdicts beside the figures; with less they stand below.
const LEAST_BESIDE: usize = 26;

/// Least width of a paragraph.
const LEAST_WIDTH: usize = 40;

pub(super) fn write(
    report: &ReproduceReport<'_>,
    look: Look,
    out: &mut impl Write,
) -> io::Result<()> {
    let width = look.width_within(USUAL_WIDTH);
    for (number, experiment) in report.experiments.iter().enumerate() {
        if number > 0 {
            writeln!(out)?;
        }
        one(experiment, width.max(LEAST_WIDTH), look.bold, out)?;
    }
    let cells = report.experiments.iter().map(|e| e.cells.len()).sum::<usize>();
    let departures = report.experiments.iter().map(|e| e.departures().count());
    writeln!(out)?;
    let sums = format!(
        "{} experiments, {cells} figures, {} of them away from their formula by more than 4 standard errors",
        report.experiments.len(),
        departures.sum::<usize>()
    );
    look.sentence(out, &sums)?;
    if report.interrupted {
        writeln!(out, "{}", super::interrupted_sentence())?;
    }
    Ok(())
}

fn one(
    experiment: &Experiment,
    width: usize,
    styled: bool,
    out: &mut impl Write,
) -> io::Result<()> {
    let title = format!("{}: {}", experiment.name, experiment.title);
    for line in wrapped(&title, width) {
        bold(out, styled, &line)?;
    }
    let source = format!("from {}", experiment.source);
    for line in wrapped(&source, width - 2) {
        writeln!(out, "  {line}")?;
    }
    for remark in &experiment.remarks {
        for (number, line) in wrapped(remark, width - 4).iter().enumerate() {
            writeln!(out, "  {} {line}", if number == 0 { '-' } else { ' ' })?;
        }
    }
    let lines: Vec<Vec<String>> = experiment.cells.iter().map(figures).collect();
    let heads = [("", true), ("paper", false), ("formula", false), ("measured", true)];
    let columns: Vec<Heading> = fitted(&heads.map(|(text, left)| (text.to_owned(), left)), &lines)
        .into_iter()
        .map(|heading| heading.gap(2))
        .collect();
    let used = columns.iter().map(|column| column.width + 2).sum::<usize>();
    let beside = width.checked_sub(used).filter(|&room| room >= LEAST_BESIDE);
    let verdicts = [columns.as_slice(), &[Heading::left(0, 0, "verdict").gap(2)]].concat();
    bold(out, styled, &head(&verdicts))?;
    for (cell, line) in experiment.cells.iter().zip(&lines) {
        let verdict = cell.verdict();
        let figures = columns.iter().zip(line.iter().cloned());
        if let Some(room) = beside {
            let mut verdict = wrapped(&verdict, room).into_iter();
            let first = verdict.next().unwrap_or_default();
            let cells = figures.chain([(&verdicts[4], first)]);
            writeln!(out, "{}", table::line(cells))?;
            for more in verdict {
                writeln!(out, "{:used$}{more}", "")?;
            }
        } else {
            writeln!(out, "{}", table::line(figures))?;
            for line in wrapped(&verdict, width - 4) {
                writeln!(out, "    {line}")?;
            }
        }
    }
    Ok(())
}

/// Label, paper, formula and measurement of a cell, as written.
pub(super) fn figures(cell: &Cell) -> Vec<String> {
    let label = if cell.unit.is_empty() {
        cell.label.clone()
    } else {
        format!("{}, {}", cell.label, cell.unit)
    };
    vec![
        label,
        cell.paper.map_or_else(String::new, |paper| number(paper.value)),
        cell.formula.map_or_else(String::new, number),
        cell.measured.map_or_else(String::new, measured),
    ]
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
pub(super) fn number(value: f64) -> String {
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
            seed: 1,
            captures: 0,
            interrupted: false,
            words: false,
            machine: "a machine",
            day: "2026-11-24",
            experiments: &experiments,
        };
        for width in [60, 90, 140, 200] {
            let mut text = Vec::new();
            let look = Look { width: Some(width), ..Look::default() };
            write(&report, look, &mut text).unwrap();
            let text = String::from_utf8(text).unwrap();
            // The figures themselves are not broken, and need 70 columns.
            let most = text.lines().map(|line| line.chars().count()).max().unwrap();
            assert!(most <= width.max(100), "{width}: {most}\n{text}");
            assert!(text.contains("13126.00"), "{text}");
        }
    }
}
