//! A comparison as a table: on terminals, in Markdown and in LaTeX.

use super::compare_model::{CompareReport, Grouping, VerdictRow, hash_variant, size_words};
use super::compare_words::{
    digests, floor_sentence, in_percent, points, probes_words, program_words, seeds_rule, size_of,
    slice_word, title, variant_words,
};
use super::document::{Block, Document, Medium, TableView, Wrapping};
use super::formats::{latex, markdown};
use super::heading::Heading;
use super::number::{bare, capitalised, grouped, short_percent};
use super::run_view::{packets_read, shortcomings};
use crate::comparison::statistics::{Interval, Verdict};
use crate::comparison::{Comparison, Contender, CountKind, Entry, Floor, Negatives, Sizes};
use std::io::{self, Write};

/// Other structures that have a column beside the pair; more have a table of their own.
const BESIDE: usize = 2;

/// Captures whose digests a terminal shows.
const DIGESTS: usize = 3;

/// Rates in a line.
const RATES_IN_TABLE: usize = 5;

/// What people read on a terminal.
pub(super) fn document(report: &CompareReport<'_>) -> Document {
    let mut document = Document {
        zone: report.plan.trace.selection.zone,
        wrapping: Wrapping { width: 96, hanging: 0 },
        ..Document::default()
    };
    let mut push = |block: Block| document.push(Medium::Terminal, block);
    push(Block::Sentence(title(report)));
    let sentences = report.sentences();
    if !sentences.is_empty() {
        push(Block::Sentence(sentences.join(" ")));
    }
    if report.plan.pair.is_some() {
        push(Block::Gap);
        push(Block::Table(pair_table(report, &shown_verdicts(report))));
    }
    let others = others(report);
    if others.len() > BESIDE || report.plan.pair.is_none() {
        for kind in CountKind::ALL {
            if let Some(table) = others_table(report, kind) {
                push(Block::Gap);
                push(Block::Table(table));
            }
        }
    }
    for (name, table) in groups(report) {
        push(Block::Gap);
        push(Block::Sentence(name));
        push(Block::Table(table));
    }
    for table in rates(report) {
        push(Block::Gap);
        push(Block::Table(table));
    }
    push(Block::Sentence(notes(report).join(" ")));
    if report.plan.queries {
        push(Block::Sentence(FALSE_POSITIVES.to_owned()));
    }
    for remark in report.remarks() {
        push(Block::Sentence(remark));
    }
    // The first 64 bits tell captures apart, and have room on a narrow terminal.
    let digests = digests(&report.captures).take(DIGESTS).map(|words| {
        let digits = words.len().saturating_sub(48);
        format!("{}…", words.get(..digits).unwrap_or(&words))
    });
    let made = std::iter::once(program_words(&report.command)).chain(digests);
    push(Block::Sentence(made.collect::<Vec<_>>().join("; ")));
    let Comparison { inputs, totals, .. } = report.comparison;
    let shortcomings = shortcomings(inputs, totals.interrupted).into_iter().map(Block::Warning);
    shortcomings.chain(packets_read(totals)).for_each(push);
    document
}

/// What the rates are.
const FALSE_POSITIVES: &str = "False positives: share of the queries for absent elements that are answered by yes, in the first replicate, in per cent; in brackets what formulas predict. apart: the values occur in the slice, but not together; next: only the following slice has it. The formulas assume that all values are equally frequent, and that no two values of a query occur together.";

/// Structures besides the pair.
fn others(report: &CompareReport<'_>) -> Vec<Contender> {
    let pair = report.plan.pair.unwrap_or([Contender::Planned; 2]);
    let mut contenders = report.plan.contenders.clone();
    contenders.retain(|contender| report.plan.pair.is_none() || !pair.contains(contender));
    contenders
}

/// The verdicts that a terminal has room for: of raw counts all, of estimates one.
fn shown_verdicts(report: &CompareReport<'_>) -> Vec<VerdictRow> {
    let kind = report.main_kind();
    let mut rows = report.verdicts(kind);
    if kind == CountKind::Raw {
        let chosen = report.main_size();
        let mut own = report.comparison.entries.iter().filter(|it| Some(it.size) == chosen);
        if own.any(|entry| report.comparison.errors(entry, CountKind::Estimate).is_some()) {
            let estimates = report.verdicts(CountKind::Estimate).into_iter();
            rows.extend(estimates.filter(|row| Some(row.verdict.size) == chosen));
        }
    }
    rows
}

/// The pair of every size, and beside it the other structures if they are few.
pub(super) fn pair_table(report: &CompareReport<'_>, rows: &[VerdictRow]) -> TableView {
    let [a, b] = report.plan.pair.unwrap_or([Contender::Planned; 2]);
    let beside = others(report);
    let beside = if beside.len() > BESIDE { Vec::new() } else { beside };
    let number = |text: String, priority| Heading::number(text).gap(2).drop_priority(priority);
    let error = |contender: Contender| Heading::text(contender.name()).gap(2);
    let mut headings = vec![
        Heading::number("error, %"),
        Heading::text("").gap(1),
        error(a),
        number("lost".to_owned(), 3),
        number("k".to_owned(), 1),
        error(b),
        number("lost".to_owned(), 3),
        number("k".to_owned(), 1),
        Heading::text("nearer").gap(2),
        number("by, points".to_owned(), 4),
        number("seeds".to_owned(), 2),
    ];
    headings.extend(beside.iter().map(|it| Heading::text(it.name()).gap(2).drop_priority(5)));
    let cells = rows.iter().map(|row| {
        let mut cells = vec![
            size_of(row),
            if row.verdict.count == CountKind::Raw { "raw" } else { "est" }.to_owned(),
        ];
        for (number, contender) in [a, b].into_iter().enumerate() {
            let entry = report.comparison.entry(contender, row.verdict.size);
            let errors = entry.and_then(|it| report.comparison.errors(it, row.verdict.count));
            cells.push(error_cell(report, contender, row));
            let lost = errors.filter(|_| row.verdict.count == CountKind::Raw);
            cells.push(lost.map_or(String::new(), |errors| bare(errors.lost)));
            cells.push(row.verdict.probes[number].map_or("–".to_owned(), |k| k.to_string()));
        }
        let judged = row.judged();
        cells.push(judged.map_or("–".to_owned(), |it| row.word(it.verdict)));
        let raw = judged.filter(|_| row.verdict.count == CountKind::Raw);
        cells.push(raw.map_or(String::new(), |it| match it.verdict {
            Verdict::Same => String::new(),
            _ if it.seeds < 2 => bare(it.difference.value.abs()),
            _ => points(it.difference),
        }));
        cells.push(judged.map_or(String::new(), |it| it.seeds.to_string()));
        let size = row.verdict.size;
        cells.extend(beside.iter().map(|&it| short_error(report, it, size, row.verdict.count)));
        cells
    });
    // The share of all elements is that of the only slice.
    let has_lost = report.comparison.judged().count() > 1;
    let kept: Vec<bool> = headings.iter().map(|it| has_lost || it.text != "lost").collect();
    let rows = cells.map(|row| only(&kept, row)).collect::<Vec<_>>();
    TableView::new(only(&kept, headings), rows)
}

/// The columns that are kept.
fn only<T>(kept: &[bool], columns: Vec<T>) -> Vec<T> {
    columns.into_iter().zip(kept).filter_map(|(column, kept)| kept.then_some(column)).collect()
}

/// An error with its interval: `4.7 (4.5-4.9) *`.
fn error_cell(report: &CompareReport<'_>, contender: Contender, row: &VerdictRow) -> String {
    let (size, kind) = (row.verdict.size, row.verdict.count);
    let Some(entry) = report.comparison.entry(contender, size) else {
        return "–".to_owned();
    };
    let Some(errors) = report.comparison.errors(entry, kind) else {
        return if entry.unfit.is_some() { "does not fit" } else { "none" }.to_owned();
    };
    let star = if report.is_best(entry, kind) { " *" } else { "" };
    let mut floors = report.comparison.floors(report.plan).into_iter();
    let is_floor = |floor: &Floor| {
        floor.contender == contender && (floor.mean - errors.error.value).abs() < 1e-12
    };
    if kind == CountKind::Raw && errors.error.value > 0.0 && floors.any(|floor| is_floor(&floor)) {
        return format!("{} (floor){star}", bare(errors.error.value));
    }
    format!("{}{star}", with_interval(errors.error, '-'))
}

/// A mean with its interval in per cent.
pub(super) fn with_interval(error: Interval, dash: char) -> String {
    match in_percent(error) {
        [value, low, high] if low == high => value,
        [value, low, high] => format!("{value} ({low}{dash}{high})"),
    }
}

/// An error without its interval.
fn short_error(
    report: &CompareReport<'_>,
    contender: Contender,
    size: u64,
    kind: CountKind,
) -> String {
    let entry = report.comparison.entry(contender, size);
    let errors = entry.and_then(|entry| report.comparison.errors(entry, kind));
    let Some((entry, errors)) = entry.zip(errors) else {
        return "–".to_owned();
    };
    let star = if report.is_best(entry, kind) { " *" } else { "" };
    format!("{}{star}", in_percent(errors.error)[0])
}

/// The structures besides the pair: a row a structure, a column a size.
fn others_table(report: &CompareReport<'_>, kind: CountKind) -> Option<TableView> {
    let first = match kind {
        CountKind::Raw => "raw, %",
        CountKind::Estimate => "est, %",
    };
    let sizes = &report.comparison.sizes;
    let headings = sizes.iter().map(|&size| Heading::text(report.size(size)).gap(2));
    let headings = std::iter::once(Heading::text(first)).chain(headings);
    let others =
        if report.plan.pair.is_some() { others(report) } else { report.plan.contenders.clone() };
    let rows = others.into_iter().map(|contender| {
        let cells = sizes.iter().map(|&size| short_error(report, contender, size, kind));
        std::iter::once(contender.name().to_owned()).chain(cells).collect::<Vec<_>>()
    });
    let rows: Vec<_> = rows.filter(|row| row[1..].iter().any(|cell| cell != "–")).collect();
    (!rows.is_empty()).then(|| TableView::new(headings, rows))
}

/// What the marks and words of the table mean.
fn notes(report: &CompareReport<'_>) -> Vec<String> {
    let mut notes = Vec::new();
    let raw = CountKind::Raw.estimand();
    notes.push(format!("raw: {raw}; est: root mean square."));
    if report.comparison.judged().count() > 1 {
        notes.push("lost: share of all.".to_owned());
    }
    notes.push("In brackets 95 % (t over seeds, paired).".to_owned());
    notes.push(format!("{}.", capitalised(&seeds_rule(report))));
    notes.extend(variant_words(report.plan).into_iter().map(|words| format!("{words}.")));
    notes.push(format!("{}.", probes_words(report)));
    notes.push("*: best, or not worse (5 % in all).".to_owned());
    notes
}

/// Groups of slices or sizes, each as a table with its name.
fn groups(report: &CompareReport<'_>) -> Vec<(String, TableView)> {
    let (Some(by), Some(pair)) = (report.by, report.plan.pair) else {
        return Vec::new();
    };
    let table = match by {
        Grouping::Size => by_size(report, pair),
        Grouping::Load => {
            let rows: Vec<_> = report.verdicts(report.main_kind());
            let loaded = rows
                .iter()
                .filter_map(|row| Some((load(report.comparison, row.verdict.size)?, row)));
            by_load(&loaded.collect::<Vec<_>>(), pair)
        }
    };
    let name = match by {
        Grouping::Size => format!(
            "{}s in thirds, by their {}",
            slice_word(report.plan),
            report.plan.rule.kind.plural()
        ),
        Grouping::Load => format!("by {} per byte (p95)", report.plan.rule.kind.plural()),
    };
    vec![(name, table)]
}

/// The elements of a large slice for each byte.
pub(super) fn load(comparison: &Comparison, bytes: u64) -> Option<f64> {
    (!comparison.has_arrays).then_some(comparison.expected.elements? as f64 / bytes as f64)
}

/// Loads up to which all is well, and from which on all is lost.
const LOADS: [f64; 2] = [0.4, 6.4];

/// Verdicts by load.
pub(super) fn by_load(rows: &[(f64, &VerdictRow)], pair: [Contender; 2]) -> TableView {
    let [a, b] = pair.map(Contender::name);
    let headings = ["load".to_owned(), a.to_owned(), b.to_owned()].map(Heading::text);
    let more = ["no matter", "same", "open"].map(Heading::number);
    let headings = headings.into_iter().chain(more).map(|heading| heading.gap(2));
    let classes = [
        (format!("below {}", LOADS[0]), f64::NEG_INFINITY, LOADS[0]),
        (format!("{} to {}", LOADS[0], LOADS[1]), LOADS[0], LOADS[1]),
        (format!("above {}", LOADS[1]), LOADS[1], f64::INFINITY),
    ];
    let rows = classes.map(|(name, from, to)| {
        let cells = [Verdict::A, Verdict::B, Verdict::NoMatter, Verdict::Same, Verdict::Open];
        let cells = cells.map(|verdict| {
            let own = rows.iter().filter(|(load, _)| (from..to).contains(load));
            let same = own.filter(|(_, row)| row.judged().is_some_and(|it| it.verdict == verdict));
            same.count().to_string()
        });
        std::iter::once(name).chain(cells).collect()
    });
    TableView::new(headings, rows)
}

/// Mean errors of the pair in thirds of the slices, by their number of elements.
fn by_size(report: &CompareReport<'_>, pair: [Contender; 2]) -> TableView {
    let (comparison, kind) = (report.comparison, report.main_kind());
    let judged = comparison.slices.iter().enumerate().filter(|(_, slice)| slice.judged);
    let mut order: Vec<(u64, usize)> =
        judged.map(|(number, slice)| (slice.exact.unwrap_or(0), number)).collect();
    order.sort_unstable();
    let third = order.len().div_ceil(3).max(1);
    let headings = ["elements", "slices"].map(|text| Heading::number(text).gap(2));
    let names = comparison.sizes.iter().flat_map(|&size| {
        pair.map(|it| Heading::number(format!("{} {}", it.name(), report.size(size))).gap(2))
    });
    let errors: Vec<Vec<Option<f64>>> = comparison
        .sizes
        .iter()
        .flat_map(|&size| pair.map(|it| comparison.entry(it, size)))
        .map(|entry| entry.map_or_else(Vec::new, |it| comparison.slice_errors(it, kind)))
        .collect();
    let rows = order.chunks(third).map(|slices| {
        let (least, most) = (slices[0].0, slices[slices.len() - 1].0);
        let means = errors.iter().map(|errors| {
            let own =
                slices.iter().filter_map(|&(_, number)| errors.get(number).copied().flatten());
            let own: Vec<f64> = own.map(f64::abs).collect();
            match own.len() {
                0 => "–".to_owned(),
                n => short_percent(own.iter().sum::<f64>() / n as f64),
            }
        });
        let range = format!("{} to {}", grouped(least), grouped(most));
        [range, slices.len().to_string()].into_iter().chain(means).collect()
    });
    TableView::new(headings.into_iter().chain(names), rows.collect::<Vec<_>>())
}

/// False-positive rates of each size, in tables of some combinations.
pub(super) fn rates(report: &CompareReport<'_>) -> Vec<TableView> {
    let comparison = report.comparison;
    let asked = comparison.asked.iter();
    let columns: Vec<(u32, Negatives)> = asked
        .flat_map(|&mask| Negatives::ALL.map(|negatives| (mask, negatives)))
        .filter(|&(mask, negatives)| {
            let mut queries = comparison.entries.iter().filter_map(|it| it.query(mask, negatives));
            queries.any(|query| query.queries > 0)
        })
        .collect();
    let answers = |entry: &&Entry| entry.queries.iter().any(|query| query.observed().is_some());
    let answering: Vec<&Entry> = comparison.entries.iter().filter(answers).collect();
    let tables = columns.chunks(RATES_IN_TABLE).map(|columns| {
        let names = columns.iter().map(|&(mask, negatives)| {
            let is_all = mask == report.plan.rule.kind.all() && mask.count_ones() > 1;
            let name = if is_all { "all".to_owned() } else { report.attributes(mask).join(",") };
            Heading::number(format!("{name} {}", negatives.name())).gap(2)
        });
        let first = [Heading::number("false positives"), Heading::text("").gap(2)];
        let rows = answering.iter().map(|entry| {
            let rates = columns.iter().map(|&(mask, negatives)| {
                let query = entry.query(mask, negatives);
                match query.map(|query| (query.observed(), query.predicted())) {
                    Some((Some(observed), Some(predicted))) => {
                        format!("{} ({})", bare(observed), bare(predicted))
                    }
                    Some((Some(observed), None)) => bare(observed),
                    _ => "no answer".to_owned(),
                }
            });
            let name = [report.size(entry.size), entry.contender.name().to_owned()];
            name.into_iter().chain(rates).collect()
        });
        TableView::new(first.into_iter().chain(names), rows.collect::<Vec<_>>())
    });
    tables.collect()
}

/// A markup of tables.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Markup {
    Markdown,
    Latex,
}

/// Writes a row for each size, a column for each structure, the best in bold face, and a caption
/// with all that is needed to repeat it.
pub(super) fn write_markup(
    report: &CompareReport<'_>,
    markup: Markup,
    out: &mut dyn Write,
) -> io::Result<()> {
    let (comparison, kind) = (report.comparison, report.main_kind());
    let is_latex = markup == Markup::Latex;
    let escaped =
        |text: &str| if is_latex { latex::escaped(text) } else { markdown::escaped(text) };
    let contenders = &report.plan.contenders;
    let name = |contender: &Contender| {
        let name = contender.name();
        let variant = hash_variant(name).map_or(String::new(), |variant| format!(" ({variant})"));
        escaped(&format!("{}{variant}", name.split('-').next().unwrap_or(name).to_uppercase()))
    };
    let names: Vec<String> = contenders.iter().map(name).collect();
    let verdicts = report.verdicts(kind);
    let mut rows = Vec::new();
    for (number, &size) in comparison.sizes.iter().enumerate() {
        let size_text = size_words(comparison.has_arrays, size);
        let mut row = vec![if is_latex { size_text.replace(' ', "\\,") } else { size_text }];
        for &contender in contenders {
            let entry = comparison.entry(contender, size);
            let errors = entry.and_then(|entry| comparison.errors(entry, kind));
            let cell = errors.map_or_else(|| "–".to_owned(), |it| with_interval(it.error, '–'));
            let cell = if is_latex { cell.replace('–', "--") } else { cell };
            let is_best = entry.is_some_and(|entry| report.is_best(entry, kind));
            row.push(match (is_best, is_latex) {
                (true, true) => format!("\\textbf{{{cell}}}"),
                (true, false) => format!("**{cell}**"),
                (false, _) => cell,
            });
        }
        if let (Some(row_of), Some(pair)) = (verdicts.get(number), report.plan.pair) {
            let judged = row_of.judged();
            row.push(judged.map_or("–".to_owned(), |it| {
                let near = match it.verdict {
                    Verdict::A => Some(0),
                    Verdict::B => Some(1),
                    _ => None,
                };
                match near {
                    Some(near) => {
                        let name = escaped(&pair[near].name().to_uppercase());
                        let by = if it.seeds < 2 {
                            bare(it.difference.value.abs())
                        } else {
                            points(it.difference)
                        };
                        let of = it.seeds_nearer[near];
                        format!("{name} by {by}, {of}/{} seeds", it.seeds)
                    }
                    None => format!("{}, {} seeds", row_of.word(it.verdict), it.seeds),
                }
            }));
        }
        rows.push(row);
    }
    let first = if comparison.has_arrays { "array" } else { "memory" };
    let mut heads = vec![first.to_owned()];
    heads.extend(names);
    heads.extend(report.plan.pair.map(|_| "nearer".to_owned()));
    let caption = escaped(&caption(report));
    if is_latex {
        let columns = heads.len() - 1 - usize::from(report.plan.pair.is_some());
        let last = if report.plan.pair.is_some() { "l" } else { "" };
        writeln!(out, "\\begin{{table}}\n\\centering\n\\caption{{{caption}}}")?;
        writeln!(out, "\\begin{{tabular}}{{r{}{last}}}\n\\hline", "r".repeat(columns))?;
        writeln!(out, "{} \\\\\n\\hline", heads.join(" & "))?;
        for row in rows {
            writeln!(out, "{} \\\\", row.join(" & "))?;
        }
        return writeln!(out, "\\hline\n\\end{{tabular}}\n\\end{{table}}");
    }
    writeln!(out, "| {} |", heads.join(" | "))?;
    writeln!(out, "|{}", "--:|".repeat(heads.len()))?;
    for row in rows {
        writeln!(out, "| {} |", row.join(" | "))?;
    }
    writeln!(out, "\n{caption}")
}

/// All that is needed to repeat a table.
fn caption(report: &CompareReport<'_>) -> String {
    let kind = report.main_kind();
    let setting = match report.plan.sizes {
        Sizes::Arrays(_) => "every array has the same number of bits",
        Sizes::Auto | Sizes::Total(_) => "every structure has the same memory",
    };
    let mut sentences = vec![
        format!("{}.", title(report)),
        format!(
            "{} ({}) in per cent with 95 % intervals (Student's t over seeds); {setting}; {}; {}.",
            capitalised(kind.error_words()),
            kind.estimand(),
            probes_words(report),
            seeds_rule(report)
        ),
        "Bold: not worse than the best (paired t tests, 5 % in all). Nearer by: points, 95 % interval of the difference paired by seed.".to_owned(),
    ];
    sentences.extend(floor_sentence(&report.comparison.floors(report.plan), report.plan));
    sentences.extend(digests(&report.captures).map(|digest| format!("{digest}.")));
    sentences.push(program_words(&report.command));
    sentences.join(" ")
}
