//! A comparison for people: a block a memory, the best structure first.

use super::INTERRUPTED;
use super::compare_model::CompareReport;
use super::compare_words::{basis, short_percent, sorted_memories, summary, title};
use super::count_table::write_read;
use super::number::{grouped, size};
use super::table::{Heading, bold, head, line, wrapped};
use crate::comparison::{CountErrors, Entry, Negatives};
use std::io::{self, Write};

/// Columns of false-positive rates side by side; further ones begin a new table.
const RATES_A_LINE: usize = 4;

/// Width of the structures' names.
const NAME: usize = 16;

pub(super) fn write(
    report: &CompareReport<'_>,
    styled: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    writeln!(out, "{}", title(report))?;
    sentence(&basis(report), out)?;
    for memory in sorted_memories(report) {
        let heading = format!("{} a slice", size(memory));
        let mut entries = report.ranked(Some(memory));
        // The exact set knows no memory and stands for comparison in every block.
        entries.extend(report.ranked(None));
        writeln!(out)?;
        counts(report, &heading, &entries, styled, out)?;
        rates(report, &entries, styled, out)?;
    }
    writeln!(out)?;
    for text in summary(report) {
        sentence(&text, out)?;
    }
    foot(report, out)
}

/// Errors of the counts.
fn counts(
    report: &CompareReport<'_>,
    heading: &str,
    entries: &[(&Entry, Option<CountErrors>)],
    styled: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    let numbers = ["memory", "mean error", "p95", "worst", "bias"];
    let mut headings = vec![
        Heading::left(0, NAME, heading.to_owned()),
        Heading::right(0, 4, "k"),
    ];
    headings.extend(numbers.map(|text| Heading::right(0, 10, text)));
    headings.push(Heading::left(0, 8, "count").gap(2));
    if report.plan.timing {
        headings.push(Heading::right(0, 10, "ns/element"));
    }
    bold(out, styled, &head(&headings))?;
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "–".to_owned());
    for &(entry, errors) in entries {
        let is_best = report.is_best(entry) && entry.memory_asked_bytes.is_some();
        let mark = match (is_best, entry.exceeds_memory()) {
            (true, _) => "* ",
            (false, true) => "! ",
            (false, false) => "  ",
        };
        let name = format!("{mark}{}", entry.contender.name());
        if let Some(why) = &entry.unfit {
            writeln!(out, "{name:<NAME$} does not fit: {why}")?;
            continue;
        }
        let share = |of: fn(&CountErrors) -> f64| {
            or_dash(errors.as_ref().map(|errors| short_percent(of(errors))))
        };
        let estimate = entry.estimate_errors(&report.comparison.slices).is_some();
        let cells = [
            name,
            or_dash(entry.probes.map(|k| k.to_string())),
            or_dash(entry.memory_bytes.map(size)),
            share(|e| e.mean),
            share(|e| e.p95),
            share(|e| e.worst),
            share(|e| e.bias),
            match (entry.memory_asked_bytes, errors, estimate) {
                (_, None, _) => "none",
                (None, ..) => "exact",
                (_, _, true) => "estimate",
                (_, _, false) => "raw",
            }
            .to_owned(),
            or_dash(entry.ns_per_element.map(|ns| format!("{ns:.1}"))),
        ];
        bold(out, styled && is_best, &line(headings.iter().zip(cells)))?;
    }
    Ok(())
}

/// False-positive rates.
fn rates(
    report: &CompareReport<'_>,
    entries: &[(&Entry, Option<CountErrors>)],
    styled: bool,
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
    for columns in columns.chunks(RATES_A_LINE) {
        // The name stands close to the first rate.
        let mut headings = vec![Heading::left(0, NAME + 1, "  false positives")];
        for &(mask, negatives) in columns {
            let is_all = mask == report.plan.rule.kind.all() && mask.count_ones() > 1;
            let name = if is_all {
                "all".to_owned()
            } else {
                report.attributes(mask).join(",")
            };
            let gap = usize::from(headings.len() > 1);
            headings.push(Heading::right(0, 18, format!("{name} {}", negatives.name())).gap(gap));
        }
        bold(out, styled, &head(&headings))?;
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
            let cells = [name].into_iter().chain(cells);
            writeln!(out, "{}", line(headings.iter().zip(cells)))?;
        }
    }
    Ok(())
}

fn foot(report: &CompareReport<'_>, out: &mut dyn Write) -> io::Result<()> {
    let comparison = report.comparison;
    sentence(FALSE_POSITIVES, out)?;
    let slices = comparison.slices.iter();
    let over = slices.filter(|slice| slice.exact.is_none()).count();
    if over > 0 {
        let [over, all] = [over, comparison.slices.len()].map(|slices| grouped(slices as u64));
        writeln!(
            out,
            "{over} of {all} slices are not judged: the exact sets passed their limit; raise it with --exact-limit"
        )?;
    }
    if comparison.slices_omitted > 0 {
        let omitted = grouped(comparison.slices_omitted);
        writeln!(
            out,
            "{omitted} later slices are in no figure: so many are not kept; widen --slice"
        )?;
    }
    let totals = &comparison.totals;
    if totals.interrupted {
        writeln!(out, "{INTERRUPTED}")?;
    }
    write_read(out, totals)
}

/// What the rates are.
const FALSE_POSITIVES: &str = "False positives: false-positive rate over queries for absent elements, in per cent (predicted). Apart: values that occur in the slice but not together; next: what only the following slice has. Formulas take values to be evenly spread, and parts of a query not to occur.";

/// Width of sentences.
const WIDTH: usize = 96;

/// Writes a sentence in lines of at most [`WIDTH`] characters.
fn sentence(text: &str, out: &mut dyn Write) -> io::Result<()> {
    let mut lines = wrapped(text, WIDTH).into_iter();
    lines.try_for_each(|line| writeln!(out, "{line}"))
}

/// A share in per cent without the sign.
fn bare(share: f64) -> String {
    short_percent(share).trim_end_matches(" %").to_owned()
}
