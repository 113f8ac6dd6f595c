//! A comparison for people: a block a memory, the best structure first.

use super::compare_model::CompareReport;
use super::compare_words::{
    bare, basis, pair_sentences, short_percent, sorted_memories, summary, title,
};
use super::document::Block;
use super::heading::Heading;
use super::layout::{Layout, fitted, line};
use super::number::{grouped, size};
use super::run_view::{INTERRUPTED, packets_read};
use super::terminal::{TerminalStyle, write_lines};
use super::wrapping::wrapped;
use crate::comparison::{CountErrors, Entry, Negatives};
use std::io::{self, Write};

/// Width of a rate with its prediction.
const RATE: usize = 18;

/// Columns of a line that does not go to a terminal.
const USUAL_WIDTH: usize = 120;

/// Width of the structures' names.
const NAME: usize = 16;

pub(super) fn write(
    report: &CompareReport<'_>,
    style: TerminalStyle,
    out: &mut dyn Write,
) -> io::Result<()> {
    let pair = pair_sentences(report);
    for text in &pair {
        sentence(text, style, out)?;
    }
    if !pair.is_empty() {
        writeln!(out)?;
    }
    sentence(&title(report), style, out)?;
    sentence(&basis(report), style, out)?;
    let mut gone = None;
    for memory in sorted_memories(report) {
        let heading = format!("{} a slice", size(memory));
        let mut entries = report.ranked(Some(memory));
        // The exact set knows no memory and stands for comparison in every block.
        entries.extend(report.ranked(None));
        writeln!(out)?;
        let remark = counts(report, &heading, &entries, style, out)?;
        gone = gone.or(remark);
        rates(report, &entries, style, out)?;
    }
    writeln!(out)?;
    if let Some(remark) = gone {
        sentence(&remark, style, out)?;
    }
    for text in summary(report) {
        sentence(&text, style, out)?;
    }
    foot(report, style, out)
}

/// What stands in a column of the counts.
type CountCell<'a> = Box<dyn Fn(&Entry) -> Option<String> + 'a>;

/// A column of the counts: its heading, how soon it goes when there is no room (0: never), and its
/// cell.
type CountColumn<'a> = (&'a str, u8, CountCell<'a>);

/// Writes the errors of the counts: of the raw count and of the estimate, side by side. What is to
/// be said of columns that have no room.
fn counts(
    report: &CompareReport<'_>,
    heading: &str,
    entries: &[(&Entry, Option<CountErrors>)],
    style: TerminalStyle,
    out: &mut dyn Write,
) -> io::Result<Option<String>> {
    let slices = &report.comparison.slices;
    let raw = |of: fn(&CountErrors) -> f64| -> CountCell<'_> {
        Box::new(move |entry| entry.first_errors(slices).as_ref().map(of).map(short_percent))
    };
    let estimate = |of: fn(&CountErrors) -> f64| -> CountCell<'_> {
        Box::new(move |entry| entry.estimate_errors(slices).as_ref().map(of).map(short_percent))
    };
    let columns: [CountColumn<'_>; 10] = [
        ("k", 5, Box::new(|entry| entry.probes.map(|k| k.to_string()))),
        ("memory", 8, Box::new(|entry| entry.memory_bytes.map(size))),
        ("raw: mean", 0, raw(|e| e.mean)),
        ("worst", 7, raw(|e| e.worst)),
        ("bias", 2, raw(|e| e.bias)),
        ("estimate: mean", 0, estimate(|e| e.mean)),
        ("p95", 1, estimate(|e| e.p95)),
        ("worst", 6, estimate(|e| e.worst)),
        ("bias", 3, estimate(|e| e.bias)),
        ("ns/element", 4, Box::new(|entry| entry.ns_per_element.map(|ns| format!("{ns:.1}")))),
    ];
    let mut columns = Vec::from(columns);
    if !report.plan.timing {
        columns.pop();
    }
    let fits = |entry: &Entry| entry.unfit.is_none();
    let fitting = entries.iter().map(|&(entry, _)| entry).filter(|&entry| fits(entry));
    let name = |entry: &Entry| {
        let mark = match (is_best(report, entry), entry.exceeds_memory()) {
            (true, _) => "* ",
            (false, true) => "! ",
            (false, false) => "  ",
        };
        format!("{mark}{}", entry.contender.name())
    };
    let heads = columns
        .iter()
        .map(|(text, goes, _)| Heading::number((*text).to_owned()).gap(2).drop_priority(*goes));
    let heads = std::iter::once(Heading::text(heading.to_owned()).gap(2)).chain(heads);
    let heads: Vec<Heading> = heads.collect();
    let rows: Vec<Vec<String>> = fitting
        .map(|entry| {
            let cells =
                columns.iter().map(|(.., cell)| cell(entry).unwrap_or_else(|| "–".to_owned()));
            std::iter::once(name(entry)).chain(cells).collect()
        })
        .collect();
    let layout = Layout::new(&fitted(&heads, &rows), style.width);
    let mut rows = rows.into_iter();
    write_lines(out, layout.head().iter().map(|line| style.bold(line)).collect())?;
    for &(entry, _) in entries {
        if let Some(why) = &entry.unfit {
            let text = format!("{} does not fit: {why}", entry.contender.name());
            for line in wrapped(&text, style.width_within(USUAL_WIDTH) - 2) {
                writeln!(out, "  {line}")?;
            }
            continue;
        }
        let cells = rows.next().unwrap_or_default();
        let line = layout.line(&cells);
        let line = if is_best(report, entry) { style.bold(&line) } else { line };
        writeln!(out, "{line}")?;
    }
    Ok(layout.remark())
}

/// Whether an entry is marked as the best of its memory.
fn is_best(report: &CompareReport<'_>, entry: &Entry) -> bool {
    entry.memory_asked_bytes.is_some() && report.is_best(entry)
}

/// False-positive rates.
fn rates(
    report: &CompareReport<'_>,
    entries: &[(&Entry, Option<CountErrors>)],
    style: TerminalStyle,
    out: &mut dyn Write,
) -> io::Result<()> {
    // Columns: those about which anybody was asked.
    let asked = report.comparison.asked.iter();
    let columns: Vec<(u32, Negatives)> = asked
        .flat_map(|&mask| Negatives::ALL.map(|negatives| (mask, negatives)))
        .filter(|&(mask, negatives)| {
            let mut queries = entries.iter().filter_map(|(e, _)| e.query(mask, negatives));
            queries.any(|query| query.queries > 0)
        })
        .collect();
    let answers = |entry: &&Entry| entry.queries.iter().any(|query| query.observed().is_some());
    let entries = entries.iter().map(|&(entry, _)| entry);
    let answering: Vec<&Entry> = entries.filter(answers).collect();
    if answering.is_empty() {
        return Ok(());
    }
    let room = style.width_within(USUAL_WIDTH).saturating_sub(NAME + 1 + RATE);
    for columns in columns.chunks(1 + room / (RATE + 1)) {
        // The name stands close to the first rate.
        let mut headings = vec![Heading::left(0, NAME + 1, "  false positives")];
        for &(mask, negatives) in columns {
            let is_all = mask == report.plan.rule.kind.all() && mask.count_ones() > 1;
            let name = if is_all { "all".to_owned() } else { report.attributes(mask).join(",") };
            let gap = usize::from(headings.len() > 1);
            headings.push(Heading::right(0, RATE, format!("{name} {}", negatives.name())).gap(gap));
        }
        let head = line(headings.iter().map(|heading| (heading, &*heading.text)));
        writeln!(out, "{}", style.bold(&head))?;
        for entry in &answering {
            let cells = columns.iter().map(|&(mask, negatives)| {
                let query = entry.query(mask, negatives);
                match query.map(|query| (query.observed(), query.predicted)) {
                    Some((Some(observed), Some(predicted))) => {
                        format!("{} ({})", bare(observed), bare(predicted))
                    }
                    Some((Some(observed), None)) => bare(observed),
                    _ => "no answer".to_owned(),
                }
            });
            let name = format!("  {}", entry.contender.name());
            let cells: Vec<String> = std::iter::once(name).chain(cells).collect();
            writeln!(out, "{}", line(headings.iter().zip(cells.iter().map(String::as_str))))?;
        }
    }
    Ok(())
}

fn foot(report: &CompareReport<'_>, style: TerminalStyle, out: &mut dyn Write) -> io::Result<()> {
    let comparison = report.comparison;
    sentence(FALSE_POSITIVES, style, out)?;
    for text in [not_judged(report), omitted(report)].into_iter().flatten() {
        sentence(&text, style, out)?;
    }
    let totals = &comparison.totals;
    if totals.interrupted {
        writeln!(out, "{INTERRUPTED}")?;
    }
    for block in packets_read(totals) {
        if let Block::Answer(text) = block {
            style.sentence(out, &text)?;
        }
    }
    Ok(())
}

/// Says that slices have no exact count.
pub(super) fn not_judged(report: &CompareReport<'_>) -> Option<String> {
    let slices = &report.comparison.slices;
    let over = slices.iter().filter(|slice| slice.exact.is_none()).count();
    let [number, all] = [over, slices.len()].map(|slices| grouped(slices as u64));
    (over > 0).then(|| {
        format!(
            "{number} of {all} slices are not judged: the exact sets passed their limit; raise it with --exact-limit"
        )
    })
}

/// Says that slices were not kept.
pub(super) fn omitted(report: &CompareReport<'_>) -> Option<String> {
    let omitted = report.comparison.slices_omitted;
    (omitted > 0).then(|| {
        format!(
            "{} later slices are in no figure: so many are not kept; widen --slice",
            grouped(omitted)
        )
    })
}

/// What the rates are.
const FALSE_POSITIVES: &str = "False positives: false-positive rate over queries for absent elements, in per cent (predicted). Apart: values that occur in the slice but not together; next: what only the following slice has. Formulas take values to be evenly spread, and parts of a query not to occur.";

/// Width of sentences, at most.
const WIDTH: usize = 96;

/// Writes a sentence in lines of at most [`WIDTH`] characters.
fn sentence(text: &str, style: TerminalStyle, out: &mut dyn Write) -> io::Result<()> {
    let mut lines = wrapped(text, style.width_within(WIDTH)).into_iter();
    lines.try_for_each(|line| writeln!(out, "{line}"))
}
