//! A comparison for people: a block a memory, the best structure first.

use super::INTERRUPTED;
use super::compare_model::CompareReport;
use super::compare_words::{basis, short_percent, sorted_memories, summary, title};
use super::number::{grouped, size};
use crate::comparison::{CountErrors, Entry, Negatives};
use std::fmt::Write as _;
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
    wrapped(&basis(report), out)?;
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
    for sentence in summary(report) {
        wrapped(&sentence, out)?;
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
    let timing = report.plan.timing;
    let mut head = format!(
        "{heading:<NAME$} {:>4} {:>10} {:>10} {:>10} {:>10} {:>10}  {:<8}",
        "k", "memory", "mean error", "p95", "worst", "bias", "count"
    );
    if timing {
        head.push_str(" ns/element");
    }
    bold(styled, head.trim_end(), out)?;
    for &(entry, errors) in entries {
        let is_best = report.is_best(entry) && entry.memory_asked_bytes.is_some();
        let name = format!(
            "{}{}",
            if is_best { "* " } else { "  " },
            entry.contender.name()
        );
        if let Some(why) = &entry.unfit {
            writeln!(out, "{name:<NAME$} does not fit: {why}")?;
            continue;
        }
        let share = |of: fn(&CountErrors) -> f64| {
            errors
                .as_ref()
                .map_or("–".to_owned(), |e| short_percent(of(e)))
        };
        let estimate = entry.estimate_errors(&report.comparison.slices).is_some();
        let mut line = format!(
            "{name:<NAME$} {:>4} {:>10} {:>10} {:>10} {:>10} {:>10}  {:<8}",
            entry.probes.map_or("–".to_owned(), |k| k.to_string()),
            entry.memory_bytes.map_or("–".to_owned(), size),
            share(|e| e.mean),
            share(|e| e.p95),
            share(|e| e.worst),
            share(|e| e.bias),
            match (entry.memory_asked_bytes, errors, estimate) {
                (_, None, _) => "none",
                (None, ..) => "exact",
                (_, _, true) => "estimate",
                (_, _, false) => "raw",
            },
        );
        if timing {
            let ns = entry.ns_per_element;
            let ns = ns.map_or("–".to_owned(), |ns| format!("{ns:.1}"));
            // Writing to a String cannot fail.
            let _ = write!(line, " {ns:>10}");
        }
        if is_best {
            bold(styled, line.trim_end(), out)?;
        } else {
            writeln!(out, "{}", line.trim_end())?;
        }
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
    let answering: Vec<&Entry> = entries
        .iter()
        .map(|&(entry, _)| entry)
        .filter(|entry| entry.queries.iter().any(|query| query.observed().is_some()))
        .collect();
    for columns in columns.chunks(RATES_A_LINE) {
        if answering.is_empty() {
            return Ok(());
        }
        let cells = columns.iter().map(|&(mask, negatives)| {
            let name = if mask == report.plan.rule.kind.all() && mask.count_ones() > 1 {
                "all".to_owned()
            } else {
                report.attributes(mask).join(",")
            };
            format!(" {:>18}", format!("{name} {}", negatives.name()))
        });
        let head = format!(
            "{:<NAME$}{}",
            "  false positives",
            cells.collect::<String>().split_at(1).1
        );
        bold(styled, &head, out)?;
        for entry in &answering {
            let cells = columns.iter().map(|&(mask, negatives)| {
                let query = entry.query(mask, negatives);
                let cell = match query.map(|query| (query.observed(), query.predicted)) {
                    Some((Some(observed), Some(predicted))) => {
                        format!("{} ({})", bare(observed), bare(predicted))
                    }
                    Some((Some(observed), None)) => bare(observed),
                    _ => "no answer".to_owned(),
                };
                format!(" {cell:>18}")
            });
            let name = format!("  {}", entry.contender.name());
            writeln!(out, "{name:<NAME$}{}", cells.collect::<String>())?;
        }
    }
    Ok(())
}

fn foot(report: &CompareReport<'_>, out: &mut dyn Write) -> io::Result<()> {
    let comparison = report.comparison;
    wrapped(FALSE_POSITIVES, out)?;
    let over = comparison
        .slices
        .iter()
        .filter(|slice| slice.exact.is_none());
    let over = over.count() as u64;
    if over > 0 {
        writeln!(
            out,
            "{} of {} slices are not judged: the exact sets passed their limit; raise it with --exact-limit",
            grouped(over),
            grouped(comparison.slices.len() as u64)
        )?;
    }
    if comparison.slices_omitted > 0 {
        writeln!(
            out,
            "{} later slices are in no figure: so many are not kept; widen --slice",
            grouped(comparison.slices_omitted)
        )?;
    }
    let totals = &comparison.totals;
    if totals.interrupted {
        writeln!(out, "{INTERRUPTED}")?;
    }
    write!(
        out,
        "{} packets, {} of them IP",
        grouped(totals.packets),
        grouped(totals.ip_packets)
    )?;
    if totals.late > 0 {
        write!(
            out,
            ", {} too late for their slice and not counted in any",
            grouped(totals.late)
        )?;
    }
    writeln!(out)?;
    if !totals.skipped.is_empty() {
        let reasons: Vec<String> = totals
            .skipped
            .iter()
            .map(|(skip, &count)| format!("{} {}", grouped(count), skip.name()))
            .collect();
        writeln!(out, "without an element: {}", reasons.join(", "))?;
    }
    Ok(())
}

/// What the rates are.
const FALSE_POSITIVES: &str = "False positives: per cent of the queries for what is not there that were answered by yes (predicted). Apart: values that occur in the slice but not together; next: what only the following slice has. Formulas take values to be evenly spread, and parts of a query not to occur.";

/// Width of sentences.
const WIDTH: usize = 96;

/// Writes a sentence in lines of at most [`WIDTH`] characters.
fn wrapped(sentence: &str, out: &mut dyn Write) -> io::Result<()> {
    let mut width = 0;
    for word in sentence.split(' ') {
        let length = word.chars().count();
        if width > 0 && width + 1 + length > WIDTH {
            writeln!(out)?;
            width = 0;
        }
        if width > 0 {
            write!(out, " ")?;
            width += 1;
        }
        write!(out, "{word}")?;
        width += length;
    }
    writeln!(out)
}

fn bold(styled: bool, line: &str, out: &mut dyn Write) -> io::Result<()> {
    if styled {
        writeln!(out, "\x1b[1m{line}\x1b[0m")
    } else {
        writeln!(out, "{line}")
    }
}

/// A share in per cent without the sign.
fn bare(share: f64) -> String {
    short_percent(share).trim_end_matches(" %").to_owned()
}
