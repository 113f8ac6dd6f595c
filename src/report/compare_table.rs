//! A comparison as a table: on terminals, in Markdown and in LaTeX.

use super::compare_model::{CompareReport, Grouping, VerdictRow};
use super::compare_structures::hash_variant;
use super::compare_words::{
    digests, floor_sentence, in_percent, mean, points, probes_words, program_words, seeds_of,
    seeds_rule, size_of, slice_word, title, variant_words,
};
use super::document::{Block, Document, TableView, TextColumns, Wrapping};
use super::formats::tables::Markup;
use super::heading::Heading;
use super::number::{bare, capitalised, grouped, or_dash, short_percent};
use super::run_view::{packets_read, shortcomings};
use crate::comparison::statistics::{Interval, PairJudgement, Verdict};
use crate::comparison::{
    Comparison, Contender, CountErrors, CountKind, Entry, Floor, Negatives, Sizes,
};
use std::io::{self, Write};

/// Most other structures with a column in the pair's table; more get a separate table.
const MOST_OTHERS: usize = 2;

/// Captures whose digests a terminal shows.
const DIGESTS: usize = 3;

/// Rates in a line.
const RATES_IN_TABLE: usize = 5;

/// Returns the document for terminals.
pub(super) fn document(report: &CompareReport<'_>) -> Document {
    let mut document = Document {
        zone: report.plan.trace.selection.zone,
        wrapping: Wrapping { width: 96, hanging: 0 },
        ..Document::default()
    };
    document.terminal([Block::Sentence(title(report))]);
    let sentences = report.sentences();
    document.terminal((!sentences.is_empty()).then(|| Block::Sentence(sentences.join(" "))));
    let pair = report.plan.pair.map(|_| pair_table(report, &shown_verdicts(report)));
    let has_others = pair.is_none() || others(report).len() > MOST_OTHERS;
    let others = CountKind::ALL.into_iter().filter(|_| has_others);
    let others = others.filter_map(|kind| others_table(report, kind));
    let block = |table| [Block::Gap, Block::Table(table)];
    document.terminal(pair.into_iter().chain(others).flat_map(block));
    let group = group(report).into_iter();
    document.terminal(
        group.flat_map(|(name, table)| [Block::Gap, Block::Sentence(name), Block::Table(table)]),
    );
    document.terminal(rates(report).into_iter().flat_map(block));
    document.terminal([Block::Sentence(notes(report).join(" "))]);
    let rates = report.plan.queries.then_some(FALSE_POSITIVES);
    document.terminal(rates.map(|text| Block::Sentence(text.to_owned())));
    document.terminal(report.remarks().into_iter().map(Block::Sentence));
    // The first 64 bits tell captures apart, and have room on a narrow terminal.
    let digests = digests(&report.captures).take(DIGESTS).map(|words| {
        let digits = words.len().saturating_sub(48);
        format!("{}…", words.get(..digits).unwrap_or(&words))
    });
    let made = std::iter::once(program_words(&report.command)).chain(digests);
    document.terminal([Block::Sentence(made.collect::<Vec<_>>().join("; "))]);
    let Comparison { inputs, totals, .. } = report.comparison;
    document.terminal(shortcomings(inputs, totals.interrupted).into_iter().map(Block::Warning));
    document.terminal(packets_read(totals));
    document
}

/// Explains the table of rates.
const FALSE_POSITIVES: &str = "False positives: share of the queries for absent elements that are answered by yes, in the first replicate, in per cent; in brackets what formulas predict. apart: the values occur in the slice, but not together; next: only the following slice has it. The formulas assume that all values are equally frequent, and that no two values of a query occur together.";

/// Returns the structures that are not in the pair.
fn others(report: &CompareReport<'_>) -> Vec<Contender> {
    let is_other = |it: &Contender| report.plan.pair.is_none_or(|pair| !pair.contains(it));
    report.plan.contenders.iter().copied().filter(is_other).collect()
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

/// Returns the table of the pair by size, with the other structures if they are few.
pub(super) fn pair_table(report: &CompareReport<'_>, rows: &[VerdictRow]) -> TableView {
    let pair = report.plan.pair.unwrap_or([Contender::Planned; 2]);
    let others = others(report);
    let others = if others.len() > MOST_OTHERS { Vec::new() } else { others };
    let number =
        |text: &'static str, priority| Heading::number(text).gap(2).drop_priority(priority);
    let is_raw = |row: &VerdictRow| row.verdict.count == CountKind::Raw;
    let mut columns = TextColumns::<VerdictRow>::default();
    columns.push(Heading::number("error, %"), size_of);
    columns.push(Heading::text(""), |row| if is_raw(row) { "raw" } else { "est" }.to_owned());
    let measured = |it: Contender| {
        move |row: &VerdictRow| Measured::new(report, it, row.verdict.size, row.verdict.count)
    };
    for (place, contender) in pair.into_iter().enumerate() {
        let measured = measured(contender);
        let heading = Heading::text(contender.name()).gap(2);
        columns.push(heading, move |row| error_cell(measured(row)));
        // The share of all elements is that of the only slice.
        if report.comparison.judged().count() > 1 {
            columns.push(number("lost", 3), move |row| {
                let lost = measured(row).errors().filter(|_| is_raw(row));
                lost.map_or(String::new(), |errors| bare(errors.lost))
            });
        }
        let probes = move |row: &VerdictRow| or_dash(row.verdict.probes[place], |k| k.to_string());
        columns.push(number("k", 1), probes);
    }
    columns.push(Heading::text("nearer").gap(2), |row| {
        or_dash(row.judged(), |it| row.word(it.verdict).to_owned())
    });
    columns.push(number("by, points", 4), |row| {
        let differs = row.judged().filter(|it| is_raw(row) && it.verdict != Verdict::Same);
        differs.map_or(String::new(), by_points)
    });
    columns.push(number("seeds", 2), |row| {
        row.judged().map_or(String::new(), |it| it.seeds.to_string())
    });
    for structure in others {
        let heading = Heading::text(structure.name()).gap(2).drop_priority(5);
        let measured = measured(structure);
        columns.push(heading, move |row| short_error(measured(row)));
    }
    columns.table(rows)
}

/// A structure of a size, and the count that its errors are of.
#[derive(Clone, Copy)]
struct Measured<'a> {
    report: &'a CompareReport<'a>,
    entry: Option<&'a Entry>,
    kind: CountKind,
}

impl<'a> Measured<'a> {
    fn new(report: &'a CompareReport<'a>, it: Contender, size: u64, kind: CountKind) -> Self {
        Self { report, entry: report.comparison.entry(it, size), kind }
    }

    fn errors(self) -> Option<CountErrors> {
        self.report.comparison.errors(self.entry?, self.kind)
    }

    /// Whether no other structure is better.
    fn is_best(self) -> bool {
        self.entry.is_some_and(|entry| self.report.is_best(entry, self.kind))
    }

    fn star(self) -> &'static str {
        if self.is_best() { " *" } else { "" }
    }

    /// The mark of an estimate whose filter was full in some slices.
    fn full(self) -> &'static str {
        let is_full = self.entry.is_some_and(|entry| entry.saturated_slices() > 0);
        if self.kind == CountKind::Estimate && is_full { " (full)" } else { "" }
    }
}

/// The difference between two structures, with its interval if it has one.
fn by_points(judged: &PairJudgement) -> String {
    if judged.seeds < 2 { bare(judged.difference.value.abs()) } else { points(judged.difference) }
}

/// An error with its interval: `4.7 (4.5-4.9) *`.
fn error_cell(it: Measured<'_>) -> String {
    let Some(error) = it.errors().map(|errors| errors.error) else {
        return match it.entry {
            Some(entry) if entry.unfit.is_some() => "does not fit",
            Some(_) => "none",
            None => "–",
        }
        .to_owned();
    };
    let is_floor = |floor: &Floor| {
        it.entry.is_some_and(|entry| entry.contender == floor.contender)
            && (floor.mean - error.value).abs() < 1e-12
    };
    let mut floors = it.report.comparison.floors(it.report.plan).into_iter();
    if it.kind == CountKind::Raw && error.value > 0.0 && floors.any(|floor| is_floor(&floor)) {
        return format!("{} (floor){}", bare(error.value), it.star());
    }
    format!("{}{}{}", with_interval(error, '-'), it.full(), it.star())
}

/// A mean with its interval in per cent.
pub(super) fn with_interval(error: Interval, dash: char) -> String {
    match in_percent(error) {
        [value, low, high] if low == high => value,
        [value, low, high] => format!("{value} ({low}{dash}{high})"),
    }
}

/// An error without its interval.
fn short_error(it: Measured<'_>) -> String {
    or_dash(it.errors(), |errors| in_percent(errors.error)[0].clone() + it.full() + it.star())
}

/// The structures besides the pair: a row a structure, a column a size.
fn others_table(report: &CompareReport<'_>, kind: CountKind) -> Option<TableView> {
    let first = if kind == CountKind::Raw { "raw, %" } else { "est, %" };
    let sizes = &report.comparison.sizes;
    let headings = sizes.iter().map(|&size| Heading::text(report.size(size)).gap(2));
    let rows = others(report).into_iter().map(|contender| {
        let cells = sizes.iter().map(|&it| short_error(Measured::new(report, contender, it, kind)));
        (contender.name().to_owned(), cells.collect::<Vec<_>>())
    });
    let rows: Vec<_> = rows.filter(|(_, cells)| cells.iter().any(|cell| cell != "–")).collect();
    (!rows.is_empty()).then(|| TableView::named(Heading::text(first), headings, rows))
}

/// Explains the marks and words of the table.
fn notes(report: &CompareReport<'_>) -> Vec<String> {
    let mut notes = Vec::new();
    let raw = CountKind::Raw.estimand();
    notes.push(format!("raw: {raw}; est: root mean square."));
    if report.comparison.judged().count() > 1 {
        notes.push("lost: share of all.".to_owned());
    }
    notes.push("In brackets 95 % over seeds, paired.".to_owned());
    notes.push(format!("{}.", capitalised(&seeds_rule(report))));
    notes.extend(variant_words(report.plan).into_iter().map(|words| format!("{words}.")));
    notes.push(format!("{}.", probes_words(report)));
    notes.push("*: best, or not worse (5 % in all).".to_owned());
    notes
}

/// Groups of slices or sizes as a table with its name.
fn group(report: &CompareReport<'_>) -> Option<(String, TableView)> {
    let (by, pair) = report.by.zip(report.plan.pair)?;
    let elements = report.plan.rule.kind.plural();
    Some(match by {
        Grouping::Size => {
            let slices = slice_word(report.plan);
            (format!("{slices}s in thirds, by their {elements}"), by_size(report, pair))
        }
        Grouping::Load => {
            let rows = report.verdicts(report.main_kind());
            let load = |row: &VerdictRow| load(report.comparison, row.verdict.size);
            let loaded: Vec<_> = rows.iter().filter_map(|row| Some((load(row)?, row))).collect();
            (format!("by {elements} per byte (p95)"), by_load(&loaded, pair))
        }
    })
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
    let more = ["no matter", "same", "open"].map(Heading::number);
    let headings = [a, b].map(Heading::text).into_iter().chain(more).map(|it| it.gap(2));
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
        (name, cells.into())
    });
    TableView::named(Heading::text("load").gap(2), headings, rows)
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
            let of = |&(_, number): &(u64, usize)| errors.get(number).copied().flatten();
            or_dash(mean(slices.iter().filter_map(of)), short_percent)
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
        let names = columns.iter().enumerate().map(|(number, &(mask, negatives))| {
            let is_all = mask == report.plan.rule.kind.all() && mask.count_ones() > 1;
            let name = if is_all { "all".to_owned() } else { report.attributes(mask).join(",") };
            let heading = Heading::number(format!("{name} {}", negatives.name())).gap(2);
            heading.drop_priority((RATES_IN_TABLE - number) as u8)
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

/// Writes a row for each size, a column for each structure, the best in bold face, and a caption
/// with all that is needed to repeat it.
pub(super) fn write_markup(
    report: &CompareReport<'_>,
    markup: Markup,
    out: &mut dyn Write,
) -> io::Result<()> {
    let first = if report.comparison.has_arrays { "array" } else { "memory" };
    let contenders = &report.plan.contenders;
    let names = contenders.iter().map(|contender| {
        let name = contender.name();
        let variant = hash_variant(name).map_or(String::new(), |variant| format!(" ({variant})"));
        let name = name.split('-').next().unwrap_or(name).to_uppercase();
        markup.escaped(&format!("{name}{variant}"))
    });
    let nearer = report.plan.pair.map(|_| "nearer".to_owned());
    let heads: Vec<String> = [first.to_owned()].into_iter().chain(names).chain(nearer).collect();
    let mut rows = String::new();
    let mut verdicts = report.verdicts(report.main_kind()).into_iter();
    for &size in &report.comparison.sizes {
        let size_text = report.size(size);
        let is_latex = markup == Markup::Latex;
        let mut row = vec![if is_latex { size_text.replace(' ', "\\,") } else { size_text }];
        let errors =
            contenders.iter().map(|&it| Measured::new(report, it, size, report.main_kind()));
        row.extend(errors.map(|errors| marked_error(errors, markup)));
        row.extend(verdicts.next().map(|row| nearer_words(&row, markup)));
        rows += &markup.line(&row);
    }
    let (heads, columns) = (markup.line(&heads), heads.len());
    let caption = markup.escaped(&caption(report));
    match markup {
        Markup::Markdown => {
            writeln!(out, "{heads}|{}\n{rows}\n{caption}", "--:|".repeat(columns))
        }
        Markup::Latex => {
            let last = report.plan.pair.map_or("", |_| "l");
            let numbers = "r".repeat(columns - last.len());
            writeln!(out, "\\begin{{table}}\n\\centering\n\\caption{{{caption}}}")?;
            writeln!(out, "\\begin{{tabular}}{{{numbers}{last}}}\n\\hline")?;
            writeln!(out, "{heads}\\hline\n{rows}\\hline\n\\end{{tabular}}\n\\end{{table}}")
        }
    }
}

/// An error with its interval, in bold face if no other is better.
fn marked_error(it: Measured<'_>, markup: Markup) -> String {
    let cell = or_dash(it.errors(), |errors| with_interval(errors.error, '–'));
    let is_best = it.is_best();
    match markup {
        Markup::Markdown if is_best => format!("**{cell}**"),
        Markup::Markdown => cell,
        Markup::Latex if is_best => format!("\\textbf{{{}}}", cell.replace('–', "--")),
        Markup::Latex => cell.replace('–', "--"),
    }
}

/// Which of the two is nearer, by how much, and in how many of the replicates.
fn nearer_words(row: &VerdictRow, markup: Markup) -> String {
    or_dash(row.judged(), |judged| {
        let word = row.word(judged.verdict);
        let near = match judged.verdict {
            Verdict::A => judged.seeds_nearer[0],
            Verdict::B => judged.seeds_nearer[1],
            _ => return format!("{word}, {}", seeds_of(judged.seeds)),
        };
        let name = markup.escaped(&word.to_uppercase());
        format!("{name} by {}, {near}/{}", by_points(judged), seeds_of(judged.seeds))
    })
}

/// All that is needed to repeat a table.
fn caption(report: &CompareReport<'_>) -> String {
    let kind = report.main_kind();
    let setting = match report.plan.sizes {
        Sizes::Arrays(_) => "every array has the same number of bits",
        Sizes::Auto | Sizes::Total(_) => "every structure has the same memory",
    };
    let (error, interval) = (capitalised(kind.error_words()), kind.interval_words());
    let (probes, seeds) = (probes_words(report), seeds_rule(report));
    let mut sentences = vec![
        format!("{}.", title(report)),
        format!("{error} ({}) in per cent with 95 % intervals ({interval} over seeds); {setting}; {probes}; {seeds}.", kind.estimand()),
        "Bold: not worse than the best (paired t tests, 5 % in all). Nearer by: points, 95 % interval of the difference paired by seed.".to_owned(),
    ];
    sentences.extend(floor_sentence(&report.comparison.floors(report.plan), report.plan));
    sentences.extend(digests(&report.captures).map(|digest| format!("{digest}.")));
    sentences.push(program_words(&report.command));
    sentences.join(" ")
}
