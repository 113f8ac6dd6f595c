//! A plan for people: the request, a row for each structure, remarks, and the recommendation.

use super::complete::CompleteReport;
use super::document::{Block, Document, TableView, TextColumns, Wrapping};
use super::format::Frame;
use super::heading::Heading;
use super::number::{counted, grouped, joined, short_percent, size};
use super::plan_model::{PlanReport, line_columns};
use super::run_view::shortcomings;
use super::selection::selection_words;
use crate::filters::{FilterKind, Shape};
use crate::planner::{Goal, Origin, PlanRow, Structure};

/// Longest line, and spaces before further lines of a sentence.
const WRAPPING: Wrapping = Wrapping { width: 98, hanging: 2 };

/// Largest number of rates in the row of a structure; more rates get tables of their own.
const RATES_IN_LINE: usize = 3;

/// Number of rates in each of these tables, which fit any terminal.
const RATES_IN_TABLE: usize = 4;

/// Minimum width of the column of parameters.
const MIN_PARAMETERS: usize = 24;

/// Largest number of cuts that are spelt out.
const CUTS_SPELT: usize = 4;

impl PlanReport<'_> {
    /// Returns the plan in every format.
    pub fn complete(&self) -> CompleteReport<'_> {
        CompleteReport {
            frame: Frame::new("flowsieve.plan/1", "rows"),
            sections: Box::new(|| self.sections()),
            has_rows: false,
            table: Box::new(|| document(self)),
            rows: Box::new(|target| target.write(line_columns(), &self.lines())),
        }
    }
}

/// The plan as a document.
fn document(report: &PlanReport<'_>) -> Document {
    let (request, plan) = (report.request, report.plan);
    let title = title(report);
    let mut document = Document { title: title.clone(), wrapping: WRAPPING, ..Document::default() };
    document.terminal([Block::Sentence(title)]);
    document.both(wanted(report).into_iter().map(Block::Sentence));
    document.both(sample(report).into_iter().map(Block::Sentence));
    document.terminal([Block::Gap]);
    let in_line = request.wanted.len() <= RATES_IN_LINE;
    document.both([Block::Table(structures(report, in_line))]);
    let rates = if in_line { Vec::new() } else { rates(report) };
    document.both(rates.into_iter().flat_map(|table| [Block::Gap, Block::Table(table)]));
    document.terminal([Block::Gap]);
    if plan.rows.iter().any(|row| row.design.is_some() && row.rates.contains(&None)) {
        let text = "n/a: not answered; in the weighted rate it counts as 1";
        document.both([Block::Sentence(text.to_owned())]);
    }
    if plan.rows.iter().any(|row| row.measured.is_some()) {
        let text = "measured: weighted rate of the filters that are best by formula, built of the sample and asked for absent elements; all other rates are computed";
        document.both([Block::Sentence(text.to_owned())]);
    }
    document.both(notes(report).into_iter().map(Block::Sentence));
    let recommended = plan.recommended.map_or("none", Structure::name);
    let reason = format!("recommended: {recommended}; {}", report.reason());
    document.both([Block::Answer(reason)]);
    if let Some(words) = &report.command {
        let build = Block::Sentence("to build it:".to_owned());
        document.both([build, Block::Command(words.clone())]);
    }
    document
}

/// The wanted combinations, a sentence each.
fn wanted(report: &PlanReport<'_>) -> Vec<String> {
    let request = report.request;
    let wanted = request.wanted.iter().zip(request.shares()).enumerate();
    let sentences = wanted.map(|(number, (wanted, share))| {
        let (number, name) = (number + 1, request.name(wanted.mask));
        let text = format!("  [{number}] {name}: {:.1} % of the queries", share * 100.0);
        if report.is_most() {
            return text;
        }
        let values = counted(request.elements.of(wanted.mask) as u64, "value", "values");
        match request.elements.origin(wanted.mask) {
            Origin::Bound => format!("{text}, at most {values}"),
            origin => format!("{text}, {values} ({})", origin.name()),
        }
    });
    sentences.collect()
}

/// The sample of a capture, in sentences.
fn sample(report: &PlanReport<'_>) -> Vec<String> {
    let Some(sample) = report.sample else { return Vec::new() };
    let packets = counted(sample.packets, "packet", "packets");
    let elements = counted(sample.elements, "element", "elements");
    let spread = sample.spread.iter().zip(&report.request.attributes).map(|(spread, name)| {
        let values = counted(spread.values, "value", "values");
        let share = 100.0 * spread.most as f64 / spread.elements.max(1) as f64;
        format!("{name}: {values}, the most frequent in {share:.1} % of the distinct elements, skew {:.1}", spread.skew())
    });
    let parts: Vec<String> =
        std::iter::once(format!("sample of {packets}, {elements}")).chain(spread).collect();
    let selected = selection_words(&sample.selection, &sample.inputs);
    let sentences = [Some(parts.join("; ")), selected].into_iter().flatten();
    let sentences = sentences.chain(shortcomings(&sample.inputs, sample.interrupted));
    sentences.map(|text| format!("  {text}")).collect()
}

/// A row for each structure.
fn structures(report: &PlanReport<'_>, in_line: bool) -> TableView {
    let (request, plan) = (report.request, report.plan);
    let none = || "-".to_owned();
    let number = |text: &'static str, priority| Heading::number(text).drop_priority(priority);
    let mut columns = TextColumns::<PlanRow>::default();
    columns.push(Heading::text("structure"), |row| row.structure.name().into());
    columns.push(number("memory", 3), |row| bytes(row.memory_bytes));
    if report.is_most() {
        columns.push(number("elements", 0), |row| row.elements.map_or_else(none, grouped));
    }
    for index in (0..request.wanted.len()).filter(|_| in_line) {
        let heading = Heading::number(format!("FPR [{}]", index + 1)).drop_priority(4);
        columns.push(heading, move |row| rate_or(row, row.rates.get(index).copied().flatten()));
    }
    let is_weighted = !in_line || request.wanted.len() > 1;
    if is_weighted {
        columns.push(number("weighted", 0), |row| row.weighted.map_or_else(none, rate_text));
    }
    if plan.rows.iter().any(|row| row.measured.is_some()) {
        columns.push(number("measured", 0), |row| {
            row.measured.as_ref().map_or_else(none, |measured| rate_text(measured.weighted))
        });
    }
    if plan.rows.iter().any(|row| row.same_rate_bytes.is_some()) {
        columns.push(number("at equal FPR", 2), |row| bytes(row.same_rate_bytes));
    }
    // Only tables with a single rate have room for it.
    if !is_weighted {
        let error = |row: &PlanRow| row.count_std_error.map_or_else(none, short_percent);
        columns.push(number("count ±", 1), error);
    }
    let heading = Heading::text("parameters").gap(2).min_width(MIN_PARAMETERS);
    columns.push(heading, |row| match &row.shape() {
        Some(design) => parameters(report, row.structure, design),
        None => "none".into(),
    });
    let recommended = plan.rows.iter().enumerate();
    let recommended = recommended.filter(|(_, row)| plan.recommended == Some(row.structure));
    let bold = recommended.map(|(number, _)| number).collect();
    TableView { bold, ..columns.table(&plan.rows) }
}

fn title(report: &PlanReport<'_>) -> String {
    let request = report.request;
    let of = match &report.element {
        Some(element) => format!("{element} ({})", request.name(request.full())),
        None => format!("elements of {} attributes", request.attributes.len()),
    };
    let rate = |fpr| format!("a false-positive rate of {}", rate_text(fpr));
    let goal = match request.goal {
        Goal::Memory { bytes } => size(bytes),
        Goal::Rate { fpr } => rate(fpr),
        Goal::AttributeRate { fpr } => format!("{} of single attributes", rate(fpr)),
    };
    let goal = match request.most_elements_in {
        Some(bytes) => format!("as many elements as have {goal} in {}", size(bytes)),
        None => goal,
    };
    let negatives = if request.known >= 1.0 {
        "all of their values occur, but not together".to_owned()
    } else {
        format!("each of their values occurs with a probability of {}", request.known)
    };
    format!("plan for {of}, {goal}; negatives: {negatives}")
}

/// Predicted rates, if they are too many for the rows of the structures.
fn rates(report: &PlanReport<'_>) -> Vec<TableView> {
    let numbers: Vec<usize> = (0..report.request.wanted.len()).collect();
    let tables = numbers.chunks(RATES_IN_TABLE).map(|numbers| {
        let rates = numbers.iter().map(|n| Heading::right(0, 9, format!("FPR [{}]", n + 1)));
        let rows = report.plan.rows.iter().map(|row| {
            let rates = numbers.iter().map(|&number| rate_or(row, row.rates[number]));
            (row.structure.name().to_owned(), rates.collect())
        });
        TableView::named(Heading::left(0, 14, "structure"), rates, rows)
    });
    tables.collect()
}

/// Each note once, with the structures that it is about.
fn notes(report: &PlanReport<'_>) -> Vec<String> {
    let mut notes: Vec<(&str, Vec<&str>)> = Vec::new();
    for row in &report.plan.rows {
        for note in &row.notes {
            let name = row.structure.name();
            match notes.iter_mut().find(|(text, _)| *text == note.as_str()) {
                Some((_, names)) => names.push(name),
                None => notes.push((note.as_str(), vec![name])),
            }
        }
    }
    notes.into_iter().map(|(note, names)| format!("{}: {note}", names.join(", "))).collect()
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
    let sizes = joined(design.sizes.iter().map(|&size| grouped(size)), " ");
    parts.extend(sizes.map(|sizes| format!("m {sizes}")));
    parts.extend(design.probes.map(|probes| format!("k {probes}")));
    let stored = design.stored.iter().take(CUTS_SPELT);
    parts.extend(stored.map(|&(mask, probes)| format!("{} k {probes}", label(report, mask))));
    if design.stored.len() > CUTS_SPELT {
        parts.push(format!("{} more", design.stored.len() - CUTS_SPELT));
    }
    match design.cuts.len() {
        0 if structure.filter().is_some_and(FilterKind::has_cuts) => parts.push("uncut".into()),
        0 => {}
        1..=CUTS_SPELT => {
            let cuts = joined(design.cuts.iter().map(|&cut| report.request.name(cut)), "; ");
            parts.extend(cuts.map(|cuts| format!("cuts {cuts}")));
        }
        many => parts.push(format!("{many} cuts")),
    }
    parts.extend(design.remainder_bits.map(|bits| format!("r {bits}")));
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
    let Some(bytes) = bytes else { return "-".into() };
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
