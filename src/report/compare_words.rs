//! A comparison in words: the sentences that come first.

use super::compare_model::CompareReport;
use super::compare_pair::{PairRow, SliceWords};
use super::number::{grouped, size, slices_of};
use super::selection::Selected;
use super::selection::zone_words;
use crate::comparison::{Contender, Entry, ExpectedFrom, Negatives};

/// An error that is called small: 1 %.
const SMALL: f64 = 0.01;

/// A share that is called lost: more than so much.
const LOST: f64 = 0.01;

/// What was compared, in a line.
pub(super) fn title(report: &CompareReport<'_>) -> String {
    let plan = report.plan;
    let slices = slices_of(plan.slicing.width_ns);
    let direction = if plan.rule.undirected { "undirected " } else { "" };
    format!(
        "distinct {direction}{} {slices}: {} structures at equal memory{}",
        plan.rule.kind.plural(),
        plan.contenders.len(),
        zone_words(plan.trace.selection.zone)
    )
}

/// For how many elements the structures were made, and what they are judged by.
pub(super) fn basis(report: &CompareReport<'_>) -> String {
    let comparison = report.comparison;
    let elements = report.plan.rule.kind.plural();
    let amount = |n| match n {
        1 => format!("1 {}", elements.trim_end_matches('s')),
        _ => format!("{} {elements}", grouped(n)),
    };
    let large = |n, slices| match slices {
        1 => format!("{} a slice, as many as the first slice has", amount(n)),
        _ => format!(
            "{} a slice, the 95th percentile of the first {} slices",
            amount(n),
            grouped(slices)
        ),
    };
    let made = match (comparison.expected.elements, comparison.expected.from) {
        (Some(n), ExpectedFrom::Given) => {
            format!("k chosen for {} a slice, as given", amount(n))
        }
        (Some(n), ExpectedFrom::Percentile95(slices)) => {
            format!("k chosen for {}", large(n, slices))
        }
        _ => format!(
            "k = 4, since no slice ended among the first elements; say with --expect how many {elements} a slice has"
        ),
    };
    let made = match report.plan.probes {
        Some(k) => format!("k = {k} for every structure that has a k, as given"),
        None => made,
    };
    let judged = comparison.slices.iter().filter_map(|slice| slice.exact);
    let (slices, distinct) = (judged.clone().count() as u64, judged.sum::<u64>());
    format!(
        "{made}; judged by the exact sets of {} slice{} with {} in all",
        grouped(slices),
        if slices == 1 { "" } else { "s" },
        amount(distinct)
    )
}

/// The first answer: which structure of the pair was nearer to the truth.
pub(super) fn pair_sentences(report: &CompareReport<'_>) -> Vec<String> {
    let memories = sorted_memories(report).into_iter();
    let rows = memories.filter_map(|memory| report.pair_row(memory));
    let words = SliceWords::of(report.plan.slicing.width_ns);
    answers(&rows.collect::<Vec<_>>(), words, |_| None)
}

/// What is said of a pair in several memories, in ascending order: of the middle one a sentence,
/// with another one behind it, and of the others a few words.
pub(super) fn answers(
    rows: &[PairRow],
    words: SliceWords,
    more: impl Fn(&PairRow) -> Option<String>,
) -> Vec<String> {
    let memories: Vec<u64> = rows.iter().map(|row| row.memory).collect();
    let first = middle(&memories);
    let (first, others): (Vec<&PairRow>, _) =
        rows.iter().partition(|row| Some(row.memory) == first);
    let others = others.into_iter().filter_map(|row: &PairRow| row.in_short(words));
    let others: Vec<String> = others.collect();
    let mut sentences: Vec<String> = Vec::new();
    for row in first {
        sentences.push(row.sentence(words));
        sentences.extend(more(row));
    }
    if !others.is_empty() {
        sentences.push(format!("Nearer at other memories: {}.", others.join("; ")));
    }
    sentences
}

/// The other answers: which structure is best, and how wrong.
pub(super) fn summary(report: &CompareReport<'_>) -> Vec<String> {
    let mut sentences = Vec::new();
    let memories = sorted_memories(report);
    let slice = SliceWords::of(report.plan.slicing.width_ns).one();
    if let Some(memory) = middle(&memories) {
        let best = report.best(Some(memory));
        let names: Vec<&str> = best.iter().map(|(e, _)| e.contender.name()).collect();
        let worst = best.iter().map(|(_, errors)| errors.worst);
        if let Some(worst) = worst.reduce(f64::max) {
            let lost = losers(report, memory);
            let lost = if lost.is_empty() {
                String::new()
            } else {
                let elements = report.plan.rule.kind.plural();
                format!("; {} of all {elements}", lost.join(", "))
            };
            sentences.push(format!(
                "{} at {}: worst {slice} {} off{lost}.",
                names.join(", "),
                size(memory),
                short_percent(worst)
            ));
        }
    }
    let selected = Selected::from(&report.plan.trace.selection);
    let selected = selected.words(&report.comparison.inputs);
    sentences.extend(selected.map(|words| format!("{words}.")));
    sentences.extend(full_filters(report));
    sentences.extend(over_memories(report));
    sentences.extend(useless_answers(report));
    sentences.extend(least_memories(report, &memories, slice));
    sentences.extend(queries(report, &memories));
    sentences
}

/// Which structures were full, and in how many slices.
pub(super) fn full_filters(report: &CompareReport<'_>) -> Option<String> {
    let mut full: Vec<String> = Vec::new();
    for entry in &report.comparison.entries {
        let slices = entry.saturated_slices();
        if slices > 0 {
            let memory = entry.memory_asked_bytes.map_or_else(String::new, size);
            full.push(format!("{} at {memory} in {slices}", entry.contender.name()));
        }
    }
    if full.is_empty() {
        return None;
    }
    Some(format!(
        "Filters were full, and their counts say nothing, in some of the {} slices: {}; give them more --memory.",
        report.comparison.totals.slices,
        full.join(", ")
    ))
}

/// Which structures took more memory than the others.
fn over_memories(report: &CompareReport<'_>) -> Option<String> {
    let over = report.comparison.entries.iter().filter_map(|entry| {
        let (used, asked) = entry.memory_bytes.zip(entry.memory_asked_bytes)?;
        entry
            .exceeds_memory()
            .then(|| format!("{} at {} uses {}", entry.contender.name(), size(asked), size(used)))
    });
    let over: Vec<String> = over.collect();
    (!over.is_empty()).then(|| {
        format!(
            "More memory than asked for, so not compared at equal memory and never the best: {}.",
            over.join(", ")
        )
    })
}

/// Which structures said yes to every absent element.
fn useless_answers(report: &CompareReport<'_>) -> Option<String> {
    let full = report.plan.rule.kind.all();
    let entries = report.comparison.entries.iter();
    let useless = entries.filter(|entry| entry.says_always_yes(full));
    let useless: Vec<String> = useless
        .map(|entry| {
            let memory = entry.memory_asked_bytes.map_or_else(String::new, size);
            format!("{} at {memory}", entry.contender.name())
        })
        .collect();
    (!useless.is_empty()).then(|| {
        format!("Yes to every absent element of a kind, so never the best: {}.", useless.join(", "))
    })
}

/// Structures whose raw count misses much at this memory, the worst first.
fn losers(report: &CompareReport<'_>, memory: u64) -> Vec<String> {
    let slices = &report.comparison.slices;
    let mut losers: Vec<(f64, String)> = report
        .ranked(Some(memory))
        .into_iter()
        .filter(|(entry, _)| entry.estimate_errors(slices).is_none())
        .filter_map(|(entry, errors)| Some((-errors?.bias, entry.contender.name().to_owned())))
        .filter(|(lost, _)| *lost > LOST)
        .collect();
    losers.sort_by(|a, b| b.0.total_cmp(&a.0));
    let lost = |(lost, name): (f64, String)| format!("{name} lost {}", short_percent(lost));
    losers.into_iter().map(lost).collect()
}

/// The smallest memory of a sweep at which each structure stays below 1 % in every slice.
fn least_memories(report: &CompareReport<'_>, memories: &[u64], slice: &str) -> Option<String> {
    let slices = &report.comparison.slices;
    let nothing = slices.iter().all(|slice| slice.exact.unwrap_or(0) == 0);
    if memories.len() < 2 || nothing {
        return None;
    }
    let mut reached: Vec<(u64, &str)> = Vec::new();
    let mut never = Vec::new();
    let contenders = report.plan.contenders.iter();
    for contender in contenders.filter(|contender| **contender != Contender::EXACT) {
        let keeps = |memory: &&u64| {
            let entry = entry(report, *contender, **memory);
            let entry = entry.filter(|entry| !entry.exceeds_memory());
            let errors = entry.and_then(|entry| entry.best_errors(slices));
            errors.is_some_and(|errors| errors.worst < SMALL)
        };
        match memories.iter().find(keeps) {
            Some(&memory) => reached.push((memory, contender.name())),
            None => never.push(contender.name()),
        }
    }
    let mut words: Vec<String> = Vec::new();
    for memory in memories {
        let names = reached.iter().filter(|(from, _)| from == memory);
        let names: Vec<&str> = names.map(|(_, name)| *name).collect();
        if !names.is_empty() {
            words.push(format!("from {} {}", size(*memory), names.join(", ")));
        }
    }
    if !never.is_empty() {
        words.push(format!("with none of these memories {}", never.join(", ")));
    }
    Some(format!("Below 1 % error in every {slice}: {}.", words.join("; ")))
}

/// Which structures have the lowest false-positive rates.
fn queries(report: &CompareReport<'_>, memories: &[u64]) -> Option<String> {
    let memory = middle(memories)?;
    let mut words = Vec::new();
    let several = |mask: &&u32| !mask.is_power_of_two();
    for &mask in report.comparison.asked.iter().filter(several) {
        let rates = report
            .comparison
            .entries
            .iter()
            .filter(|entry| entry.memory_asked_bytes == Some(memory))
            .filter(|entry| !entry.exceeds_memory());
        let rates = rates.filter_map(|entry| {
            let query = entry.query(mask, Negatives::Apart)?;
            let observed = query.observed().filter(|_| !query.is_always_yes())?;
            Some((observed, entry.contender.name()))
        });
        if let Some((rate, name)) = rates.min_by(|a, b| a.0.total_cmp(&b.0)) {
            words.push(format!(
                "{} {name} ({})",
                report.attributes(mask).join(","),
                short_percent(rate)
            ));
        }
    }
    if words.is_empty() {
        return None;
    }
    Some(format!(
        "Fewest false positives at {} for values that occur apart: {}.",
        size(memory),
        words.join("; ")
    ))
}

pub(super) fn entry<'a>(
    report: &'a CompareReport<'_>,
    contender: Contender,
    memory: u64,
) -> Option<&'a Entry> {
    let mut entries = report.comparison.entries.iter();
    entries.find(|e| e.contender == contender && e.memory_asked_bytes == Some(memory))
}

pub(super) fn sorted_memories(report: &CompareReport<'_>) -> Vec<u64> {
    let mut memories = report.plan.memories.clone();
    memories.sort_unstable();
    memories
}

/// The middle one; of an even number the lower.
pub(super) fn middle(sorted: &[u64]) -> Option<u64> {
    sorted.get(sorted.len().saturating_sub(1) / 2).copied()
}

/// A share in per cent with two significant digits.
pub(super) fn short_percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent == 0.0 {
        return "0 %".to_owned();
    }
    if percent.abs() < 0.000_1 {
        return "<0.0001 %".to_owned();
    }
    let decimals = (1 - percent.abs().log10().floor() as i32).clamp(0, 5) as usize;
    format!("{percent:.decimals$} %")
}

/// A share in per cent without the sign.
pub(super) fn bare(share: f64) -> String {
    short_percent(share).trim_end_matches(" %").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_have_two_digits() {
        for (share, text) in [
            (0.0, "0 %"),
            (0.004_12, "0.41 %"),
            (0.471_9, "47 %"),
            (1.0, "100 %"),
            (-0.012_3, "-1.2 %"),
            (0.000_012_3, "0.0012 %"),
            (1e-9, "<0.0001 %"),
        ] {
            assert_eq!(short_percent(share), text);
        }
    }

    #[test]
    fn the_middle_of_a_sweep() {
        assert_eq!(middle(&[]), None);
        assert_eq!(middle(&[1]), Some(1));
        assert_eq!(middle(&[1, 2, 3, 4]), Some(2));
        assert_eq!(middle(&[1, 2, 3]), Some(2));
    }
}
