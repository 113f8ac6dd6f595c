//! A plan for people: what was asked, a line a structure, remarks, and the recommendation.

use super::INTERRUPTED;
use super::number::{grouped, size};
use super::plan_model::PlanReport;
use crate::filters::{FilterKind, Shape};
use crate::planner::{Goal, PlanRow, RateRule, Structure};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write};

/// Remarks are wrapped here.
const WIDTH: usize = 98;

/// Rates that stand in the line of the structure; more of them get a table of their own.
const RATES_IN_LINE: usize = 3;

/// Rates in a line of that table.
const RATES_IN_TABLE: usize = 7;

/// Cuts that are spelt out.
const CUTS_SPELT: usize = 4;

pub(super) fn write(report: &PlanReport<'_>, styled: bool, out: &mut impl Write) -> io::Result<()> {
    let request = report.request;
    let plan = report.plan;
    wrapped(out, "", &title(report))?;
    for (number, (wanted, share)) in request.wanted.iter().zip(request.shares()).enumerate() {
        write!(
            out,
            "  [{}] {}: {:.1} % of the queries",
            number + 1,
            request.name(wanted.mask),
            share * 100.0
        )?;
        if is_most(request.goal) {
            writeln!(out)?;
        } else {
            writeln!(
                out,
                ", {} values ({})",
                grouped(request.elements.of(wanted.mask) as u64),
                request.elements.origin(wanted.mask).name()
            )?;
        }
    }
    if let Some(sample) = report.sample {
        let mut text = format!(
            "sample of {} packets, {} elements;",
            grouped(sample.packets),
            grouped(sample.elements)
        );
        for (spread, name) in sample.spread.iter().zip(&request.attributes) {
            let _ = write!(
                text,
                " {name}: {} values, the most frequent in {:.1} % of the distinct elements, skew {:.1};",
                grouped(spread.values),
                100.0 * spread.most as f64 / spread.elements.max(1) as f64,
                spread.skew()
            );
        }
        wrapped(out, "  ", text.trim_end_matches(';'))?;
        if sample.interrupted {
            wrapped(out, "  ", INTERRUPTED)?;
        }
    }
    writeln!(out)?;
    let in_line = request.wanted.len() <= RATES_IN_LINE;
    structures(report, styled, in_line, out)?;
    if !in_line {
        rates(report, styled, out)?;
    }
    writeln!(out)?;
    if plan
        .rows
        .iter()
        .any(|row| row.design.is_some() && row.rates.contains(&None))
    {
        writeln!(
            out,
            "n/a: not answered; in the weighted rate it counts as 1, since it is never a no"
        )?;
    }
    remarks(report, out)?;
    let head = plan
        .recommended
        .map_or("recommended: none; ".to_owned(), |structure| {
            format!("recommended: {}; ", structure.name())
        });
    wrapped(out, "", &(head + &plan.reason))?;
    match &report.command {
        Some(parts) => {
            writeln!(out, "to build it:")?;
            continued(out, parts)
        }
        None => Ok(()),
    }
}

/// Writes the parts of a command; lines go on behind a backslash, as a shell has it.
fn continued(out: &mut impl Write, parts: &[String]) -> io::Result<()> {
    let mut line = "  ".to_owned();
    for (index, part) in parts.iter().enumerate() {
        if index > 0 && line.chars().count() + 1 + part.chars().count() > WIDTH - 2 {
            writeln!(out, "{line} \\")?;
            line.clear();
            line.push_str("    ");
        } else if index > 0 {
            line.push(' ');
        }
        line.push_str(part);
    }
    writeln!(out, "{line}")
}

/// A line a structure.
fn structures(
    report: &PlanReport<'_>,
    styled: bool,
    in_line: bool,
    out: &mut impl Write,
) -> io::Result<()> {
    let (request, plan) = (report.request, report.plan);
    let most = is_most(request.goal);
    let same = plan.rows.iter().any(|row| row.same_rate_bytes.is_some());
    let weighted = !in_line || request.wanted.len() > 1;
    let mut head = vec!["structure".to_owned(), "memory".to_owned()];
    if most {
        head.push("elements".to_owned());
    }
    if in_line {
        head.extend((1..=request.wanted.len()).map(|number| format!("FPR [{number}]")));
    }
    if weighted {
        head.push("weighted".to_owned());
    }
    if same {
        head.push("for same FPR".to_owned());
    }
    head.push("parameters".to_owned());
    let mut lines = vec![head];
    for row in &plan.rows {
        let mut line = vec![row.structure.name().to_owned(), bytes(row.memory_bytes)];
        if most {
            line.push(row.elements.map_or("-".into(), grouped));
        }
        if in_line {
            line.extend(row.rates.iter().map(|rate| rate_or(row, *rate)));
        }
        if weighted {
            line.push(row.weighted.map_or("-".into(), rate_text));
        }
        if same {
            line.push(bytes(row.same_rate_bytes));
        }
        line.push(row.shape().map_or_else(
            || "none".into(),
            |shape| parameters(report, row.structure, &shape),
        ));
        lines.push(line);
    }
    let is_bold = |number: usize| match number.checked_sub(1) {
        None => true,
        Some(row) => plan.recommended == Some(plan.rows[row].structure),
    };
    for (number, line) in aligned(&lines).iter().enumerate() {
        bold(out, styled && is_bold(number), line)?;
    }
    Ok(())
}

fn title(report: &PlanReport<'_>) -> String {
    let request = report.request;
    let of = match report.element {
        Some(element) => format!("{element} ({})", request.name(request.full())),
        None => format!("elements of {} attributes", request.attributes.len()),
    };
    let goal = match request.goal {
        Goal::Memory { bytes } => size(bytes),
        Goal::Rate { fpr } => format!("a false-positive rate of {}", rate_text(fpr)),
        Goal::AttributeRate { fpr } => {
            format!(
                "a false-positive rate of {} of single attributes",
                rate_text(fpr)
            )
        }
        Goal::MostElements { bytes, rate } => {
            let (fpr, what) = match rate {
                RateRule::Weighted(fpr) => (fpr, ""),
                RateRule::Attribute(fpr) => (fpr, " of single attributes"),
            };
            format!(
                "as many elements as have a false-positive rate of {}{what} in {}",
                rate_text(fpr),
                size(bytes)
            )
        }
    };
    let negatives = if request.known >= 1.0 {
        "all of their values occur, not together".to_owned()
    } else {
        format!(
            "each of their values occurs with probability {}",
            request.known
        )
    };
    format!("plan for {of}, {goal}; negatives: {negatives}")
}

fn is_most(goal: Goal) -> bool {
    matches!(goal, Goal::MostElements { .. })
}

fn rates(report: &PlanReport<'_>, styled: bool, out: &mut impl Write) -> io::Result<()> {
    let count = report.request.wanted.len();
    for first in (0..count).step_by(RATES_IN_TABLE) {
        let these = first..count.min(first + RATES_IN_TABLE);
        writeln!(out)?;
        let mut head = format!("{:<14}", "structure");
        for number in these.clone() {
            let _ = write!(head, "   FPR [{}]", number + 1);
        }
        bold(out, styled, &head)?;
        for row in &report.plan.rows {
            write!(out, "{:<14}", row.structure.name())?;
            for rate in &row.rates[these.clone()] {
                write!(out, " {:>9}", rate_or(row, *rate))?;
            }
            writeln!(out)?;
        }
    }
    Ok(())
}

/// Lines whose cells stand in columns: the first and the last to the left, the others to the right.
fn aligned(lines: &[Vec<String>]) -> Vec<String> {
    let length = |cell: &String| cell.chars().count();
    let width = |column: usize| {
        lines
            .iter()
            .map(|line| length(&line[column]))
            .max()
            .unwrap_or(0)
    };
    let last = lines[0].len() - 1;
    let widths: Vec<usize> = (0..last).map(width).collect();
    let line = |cells: &Vec<String>| {
        let mut line = format!("{:<width$}", cells[0], width = widths[0]);
        for (cell, width) in cells[1..last].iter().zip(&widths[1..]) {
            let _ = write!(line, " {cell:>width$}");
        }
        format!("{line}  {}", cells[last]).trim_end().to_owned()
    };
    lines.iter().map(line).collect()
}

/// Each remark once, with the structures that it is about.
fn remarks(report: &PlanReport<'_>, out: &mut impl Write) -> io::Result<()> {
    let mut by_text: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut order = Vec::new();
    for row in &report.plan.rows {
        for note in &row.notes {
            let names = by_text.entry(note).or_default();
            if names.is_empty() {
                order.push(note.as_str());
            }
            names.push(row.structure.name());
        }
    }
    for note in order {
        wrapped(out, "", &format!("{}: {note}", by_text[note].join(", ")))?;
    }
    Ok(())
}

fn parameters(report: &PlanReport<'_>, structure: Structure, design: &Shape) -> String {
    let mut parts = Vec::new();
    if let Some(size) = design.size {
        let size = grouped(size);
        let many = design
            .arrays
            .map_or(String::new(), |arrays| format!("{arrays} x "));
        parts.push(match (design.unit, design.counter_bits) {
            ("values", _) => format!("m {size}"),
            ("counters", Some(bits)) => format!("{many}{size} x {bits} bits"),
            (unit, _) => format!("{many}{size} {unit}"),
        });
    }
    if !design.sizes.is_empty() {
        let sizes: Vec<String> = design.sizes.iter().map(|&size| grouped(size)).collect();
        parts.push(format!("m {}", sizes.join(" ")));
    }
    if let Some(probes) = design.probes {
        parts.push(format!("k {probes}"));
    }
    for &(mask, probes) in design.stored.iter().take(CUTS_SPELT) {
        parts.push(format!("{} k {probes}", label(report, mask)));
    }
    if design.stored.len() > CUTS_SPELT {
        parts.push(format!("{} more", design.stored.len() - CUTS_SPELT));
    }
    match design.cuts.len() {
        0 if structure.filter().is_some_and(FilterKind::has_cuts) => parts.push("uncut".into()),
        0 => {}
        1..=CUTS_SPELT => {
            let cuts = design.cuts.iter().map(|&cut| report.request.name(cut));
            parts.push(format!("cuts {}", cuts.collect::<Vec<_>>().join("; ")));
        }
        many => parts.push(format!("{many} cuts")),
    }
    if let Some(bits) = design.remainder_bits {
        parts.push(format!("r {bits}"));
    }
    parts.join(", ")
}

/// The number of a wanted combination, or the name of another one.
fn label(report: &PlanReport<'_>, mask: u32) -> String {
    let wanted = report.request.wanted.iter();
    wanted
        .enumerate()
        .find(|(_, wanted)| wanted.mask == mask)
        .map_or_else(
            || report.request.name(mask),
            |(number, _)| format!("[{}]", number + 1),
        )
}

fn rate_or(row: &PlanRow, rate: Option<f64>) -> String {
    match rate {
        Some(rate) => rate_text(rate),
        None if row.design.is_some() => "n/a".into(),
        None => "-".into(),
    }
}

/// A rate with three significant digits.
fn rate_text(rate: f64) -> String {
    if rate == 0.0 {
        "0".into()
    } else if rate < 0.000_1 {
        format!("{rate:.1e}")
    } else if rate > 0.999_95 {
        "1".into()
    } else {
        let decimals = (2 - rate.log10().floor() as i32).clamp(3, 6) as usize;
        format!("{rate:.decimals$}")
    }
}

/// Bytes, in MiB where there are many.
fn bytes(bytes: Option<f64>) -> String {
    const MIB: f64 = 1_048_576.0;
    let Some(bytes) = bytes else {
        return "-".into();
    };
    if bytes < 65_536.0 {
        format!("{} B", grouped(bytes as u64))
    } else if bytes < MIB {
        format!("{:.2} KiB", bytes / 1024.0)
    } else if bytes < MIB * 1e8 {
        let hundredths = (bytes / MIB * 100.0).round() as u64;
        format!("{}.{:02} MiB", grouped(hundredths / 100), hundredths % 100)
    } else {
        format!("{:.2e} MiB", bytes / MIB)
    }
}

fn bold(out: &mut impl Write, styled: bool, line: &str) -> io::Result<()> {
    if styled {
        writeln!(out, "\x1b[1m{line}\x1b[0m")
    } else {
        writeln!(out, "{line}")
    }
}

/// Writes a text in lines of at most [`WIDTH`] characters; those behind the first are indented.
fn wrapped(out: &mut impl Write, indent: &str, text: &str) -> io::Result<()> {
    let mut line = indent.to_owned();
    let mut any = false;
    for word in text.split(' ') {
        if any && line.chars().count() + 1 + word.chars().count() > WIDTH {
            writeln!(out, "{line}")?;
            line = format!("{indent}  ");
        } else if any {
            line.push(' ');
        }
        line.push_str(word);
        any = true;
    }
    writeln!(out, "{line}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_and_sizes_are_readable() {
        let rates = [0.0, 1e-12, 0.000_5, 0.012_34, 0.123_4, 0.999_99, 1.0].map(rate_text);
        assert_eq!(
            rates,
            ["0", "1.0e-12", "0.000500", "0.0123", "0.123", "1", "1"]
        );
        let sizes = [4000.0, 65_536.0, 13_763_608_158.0, 1e20].map(|size| bytes(Some(size)));
        assert_eq!(
            sizes,
            ["4,000 B", "64.00 KiB", "13,126.00 MiB", "9.54e13 MiB"]
        );
    }
}
