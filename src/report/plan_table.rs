//! A plan for people: what was asked, a line a structure, remarks, and the recommendation.

use super::INTERRUPTED;
use super::look::Look;
use super::number::{grouped, size};
use super::plan_model::PlanReport;
use super::selection::Selected;
use super::table::{Heading, bold, bold_text, fitted, hanging, head, layout, line};
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

/// Room for parameters beside the other columns, at least.
const LEAST_PARAMETERS: usize = 24;

/// Cuts that are spelt out.
const CUTS_SPELT: usize = 4;

pub(super) fn write(report: &PlanReport<'_>, look: Look, out: &mut impl Write) -> io::Result<()> {
    let request = report.request;
    let plan = report.plan;
    paragraph(out, look, "", &title(report))?;
    for (number, (wanted, share)) in request.wanted.iter().zip(request.shares()).enumerate() {
        let mut text = format!(
            "[{}] {}: {:.1} % of the queries",
            number + 1,
            request.name(wanted.mask),
            share * 100.0
        );
        if !report.is_most() {
            let _ = write!(
                text,
                ", {} values ({})",
                grouped(request.elements.of(wanted.mask) as u64),
                request.elements.origin(wanted.mask).name()
            );
        }
        paragraph(out, look, "  ", &text)?;
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
        paragraph(out, look, "  ", text.trim_end_matches(';'))?;
        if let Some(words) = Selected::from(&sample.selection).words(&sample.inputs) {
            paragraph(out, look, "  ", &words)?;
        }
        if sample.interrupted {
            paragraph(out, look, "  ", INTERRUPTED)?;
        }
    }
    writeln!(out)?;
    let in_line = request.wanted.len() <= RATES_IN_LINE;
    structures(report, look, in_line, out)?;
    if !in_line {
        rates(report, look, out)?;
    }
    writeln!(out)?;
    if plan.rows.iter().any(|row| row.design.is_some() && row.rates.contains(&None)) {
        let text = "n/a: not answered; in the weighted rate it counts as 1, since it is never a no";
        paragraph(out, look, "", text)?;
    }
    remarks(report, look, out)?;
    let head = plan.recommended.map_or("recommended: none; ".to_owned(), |structure| {
        format!("recommended: {}; ", structure.name())
    });
    paragraph(out, look, "", &(head + &report.reason()))?;
    match &report.command {
        Some(parts) => {
            writeln!(out, "to build it:")?;
            continued(out, look, parts)
        }
        None => Ok(()),
    }
}

/// Writes the parts of a command; lines go on behind a backslash, as a shell has it.
fn continued(out: &mut impl Write, look: Look, parts: &[String]) -> io::Result<()> {
    let mut line = "  ".to_owned();
    for (index, part) in parts.iter().enumerate() {
        if index > 0
            && line.chars().count() + 1 + part.chars().count() > look.width_within(WIDTH) - 2
        {
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

/// What people read in the row of a structure.
type Text<'a> = Box<dyn Fn(&PlanRow) -> String + 'a>;

/// A line a structure.
fn structures(
    report: &PlanReport<'_>,
    look: Look,
    in_line: bool,
    out: &mut impl Write,
) -> io::Result<()> {
    let (request, plan) = (report.request, report.plan);
    let (none, most) = (|| "-".to_owned(), report.is_most());
    let same = plan.rows.iter().any(|row| row.same_rate_bytes.is_some());
    let weighted = !in_line || request.wanted.len() > 1;
    // Each column: its heading, how soon it goes where there is no room, whether it is there, and
    // its cell.
    let mut columns: Vec<(String, u8, bool, Text<'_>)> = vec![
        ("structure".into(), 0, true, Box::new(|row| row.structure.name().into())),
        ("memory".into(), 3, true, Box::new(|row| bytes(row.memory_bytes))),
        ("elements".into(), 0, most, Box::new(|row| row.elements.map_or_else(none, grouped))),
    ];
    for number in 0..request.wanted.len() {
        let rate = move |row: &PlanRow| rate_or(row, row.rates.get(number).copied().flatten());
        let head = format!("FPR [{}]", number + 1);
        columns.push((head, 4, in_line, Box::new(rate)));
    }
    columns.extend::<[(String, u8, bool, Text<'_>); 4]>([
        ("weighted".into(), 0, weighted, Box::new(|row| row.weighted.map_or_else(none, rate_text))),
        ("for same FPR".into(), 2, same, Box::new(|row| bytes(row.same_rate_bytes))),
        (
            "count ±".into(),
            1,
            // There is room for it beside one rate.
            !weighted,
            Box::new(|row| row.count_std_error.map_or_else(none, share_text)),
        ),
        (
            "parameters".into(),
            0,
            true,
            Box::new(|row| match &row.shape() {
                Some(design) => parameters(report, row.structure, design),
                None => "none".into(),
            }),
        ),
    ]);
    columns.retain(|(.., is_there, _)| *is_there);
    let last = columns.len() - 1;
    let cells = |row: &PlanRow| columns.iter().map(|(.., text)| text(row)).collect();
    let rows: Vec<Vec<String>> = plan.rows.iter().map(cells).collect();
    let heads = columns.iter().enumerate();
    let heads: Vec<_> =
        heads.map(|(number, (head, ..))| (head.clone(), number == 0 || number == last)).collect();
    let headings = fitted(&heads, &rows).into_iter().zip(&columns);
    let mut headings: Vec<Heading> =
        headings.map(|(heading, (_, goes, ..))| heading.goes(*goes)).collect();
    headings[last] = Heading::left(0, 0, "parameters").gap(2).room(LEAST_PARAMETERS);
    let layout = layout(&headings, look.width);
    for line in layout.head() {
        bold(out, look.bold, &line)?;
    }
    for (row, cells) in plan.rows.iter().zip(rows) {
        let is_bold = look.bold && plan.recommended == Some(row.structure);
        for line in layout.lines(cells, look.width) {
            writeln!(out, "{}", bold_text(is_bold, &line))?;
        }
    }
    match layout.remark() {
        Some(remark) => paragraph(out, look, "", &remark),
        None => Ok(()),
    }
}

fn title(report: &PlanReport<'_>) -> String {
    let request = report.request;
    let of = match &report.element {
        Some(element) => format!("{element} ({})", request.name(request.full())),
        None => format!("elements of {} attributes", request.attributes.len()),
    };
    let goal = match request.goal {
        Goal::Memory { bytes } => size(bytes),
        Goal::Rate { fpr } => format!("a false-positive rate of {}", rate_text(fpr)),
        Goal::AttributeRate { fpr } => {
            format!("a false-positive rate of {} of single attributes", rate_text(fpr))
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
        format!("each of their values occurs with probability {}", request.known)
    };
    format!("plan for {of}, {goal}; negatives: {negatives}")
}

/// Predicted rates, where they are too many for the line of a structure.
fn rates(report: &PlanReport<'_>, look: Look, out: &mut impl Write) -> io::Result<()> {
    let count = report.request.wanted.len();
    let in_table = (look.width_within(WIDTH).saturating_sub(14) / 10).clamp(1, RATES_IN_TABLE);
    for first in (0..count).step_by(in_table) {
        let these = first..count.min(first + in_table);
        writeln!(out)?;
        let rates =
            these.clone().map(|number| Heading::right(0, 9, format!("FPR [{}]", number + 1)));
        let headings: Vec<Heading> =
            [Heading::left(0, 14, "structure")].into_iter().chain(rates).collect();
        bold(out, look.bold, &head(&headings))?;
        for row in &report.plan.rows {
            let rates = row.rates[these.clone()].iter().map(|rate| rate_or(row, *rate));
            let cells = [row.structure.name().to_owned()].into_iter().chain(rates);
            writeln!(out, "{}", line(headings.iter().zip(cells)))?;
        }
    }
    Ok(())
}

/// Each remark once, with the structures that it is about.
fn remarks(report: &PlanReport<'_>, look: Look, out: &mut impl Write) -> io::Result<()> {
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
        paragraph(out, look, "", &format!("{}: {note}", by_text[note].join(", ")))?;
    }
    Ok(())
}

fn parameters(report: &PlanReport<'_>, structure: Structure, design: &Shape) -> String {
    let mut parts = Vec::new();
    if let Some(size) = design.size {
        let size = grouped(size);
        let many = design.arrays.map_or(String::new(), |arrays| format!("{arrays} x "));
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
        .map_or_else(|| report.request.name(mask), |(number, _)| format!("[{}]", number + 1))
}

fn rate_or(row: &PlanRow, rate: Option<f64>) -> String {
    match rate {
        Some(rate) => rate_text(rate),
        None if row.design.is_some() => "n/a".into(),
        None => "-".into(),
    }
}

/// A rate with three significant digits.
/// A share in per cent, in two digits.
fn share_text(share: f64) -> String {
    let percent = 100.0 * share;
    if percent == 0.0 {
        "0 %".into()
    } else if percent < 0.000_1 {
        "< 0.0001 %".into()
    } else {
        let decimals = (1 - percent.log10().floor() as i32).clamp(0, 5) as usize;
        format!("{percent:.decimals$} %")
    }
}

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

/// Writes a text in lines of at most [`WIDTH`] characters; those behind the first are indented.
fn paragraph(out: &mut dyn Write, look: Look, indent: &str, text: &str) -> io::Result<()> {
    let width = look.width_within(WIDTH) - indent.len();
    for (number, line) in hanging(text, width, width - 2).iter().enumerate() {
        let more = if number == 0 { "" } else { "  " };
        writeln!(out, "{indent}{more}{line}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_and_sizes_are_readable() {
        let rates = [0.0, 1e-12, 0.000_5, 0.012_34, 0.123_4, 0.999_99, 1.0].map(rate_text);
        assert_eq!(rates, ["0", "1.0e-12", "0.000500", "0.0123", "0.123", "1", "1"]);
        let sizes = [4000.0, 65_536.0, 13_763_608_158.0, 1e20].map(|size| bytes(Some(size)));
        assert_eq!(sizes, ["4,000 B", "64.00 KiB", "13,126.00 MiB", "9.54e13 MiB"]);
    }
}
