//! A comparison: its parameters, the columns of its parts, and which structures are best.

use super::cell::{Decimal, Time};
use super::column::Columns;
use super::compare_pair::PairRow;
use super::count_combinations::{StoredCombination, names, stored_columns};
use super::count_model::{PARTIAL_DOC, tunnel_name};
use super::number::grouped;
use super::selection::{Selected, selection_columns};
use crate::comparison::{
    ComparePlan, Comparison, Contender, CountErrors, Entry, Expected, ExpectedFrom, JudgedSlice,
    QueryResult,
};

/// A comparison and what was asked.
#[derive(Debug)]
pub struct CompareReport<'a> {
    /// What was asked.
    pub plan: &'a ComparePlan,
    /// What came of it.
    pub comparison: &'a Comparison,
    /// Two of the structures that are compared with each other first.
    pub pair: Option<[Contender; 2]>,
    /// Addresses on its page are replaced.
    pub anonymized: bool,
}

/// What a comparison depends on, or several with the same plan.
pub(super) struct Asked<'a> {
    pub(super) plan: &'a ComparePlan,
    /// What is known of the slices, if it is one capture.
    pub(super) expected: Option<&'a Expected>,
    pub(super) pair: Option<[Contender; 2]>,
    pub(super) anonymized: bool,
}

impl<'a> CompareReport<'a> {
    pub(super) fn asked(&self) -> Asked<'a> {
        Asked {
            plan: self.plan,
            expected: Some(&self.comparison.expected),
            pair: self.pair,
            anonymized: self.anonymized,
        }
    }
}

/// What a comparison depends on.
pub(super) fn parameter_columns<'a>() -> Columns<Asked<'a>> {
    Columns::default()
        .inlined("element", |asked: &Asked<'a>| asked.plan.rule.kind.name().into_owned())
        .doc("as for `count`")
        .inlined("undirected", |asked| asked.plan.rule.undirected)
        .inlined("queries_only", |asked| asked.plan.rule.queries_only)
        .inlined("dns_ports", |asked| asked.plan.trace.headers.dns_ports.clone())
        .inlined("tunnel", |asked| tunnel_name(asked.plan.trace.headers.tunnel))
        .part(None, &selection_columns(), |asked| {
            Some(Selected::from(&asked.plan.trace.selection))
        })
        .inlined("slice_ns", |asked| asked.plan.slicing.width_ns)
        .inlined("align", |asked| asked.plan.slicing.align.name())
        .inlined("filters", |asked| {
            let contenders = asked.plan.contenders.iter();
            contenders.map(|contender| contender.name()).collect::<Vec<_>>()
        })
        .doc("the structures")
        .inlined("memory_bytes", |asked| asked.plan.memories.clone())
        .doc("memory that each of them gets for a slice")
        .inlined("asked", |asked| {
            let attributes = asked.plan.rule.kind.attributes();
            let masks = asked.plan.asked().into_iter();
            masks.map(|mask| names(&attributes, mask)).collect::<Vec<_>>()
        })
        .doc("combinations of attributes that queries ask for, each a list of names; all attributes first")
        .inlined("expected_elements", |asked| asked.expected.and_then(|expected| expected.elements))
        .doc("distinct elements per slice for which the numbers of hash functions were chosen; null if none was known (then k = 4). Null with `--each`, like the next two: each capture has its own")
        .inlined("expected_from", |asked| asked.expected.map(|expected| expected.from.name()))
        .doc("`given` (`--expect`), `p95` (95 of 100 slices that end within the first 48 MiB of elements have no more; nearest rank), or `unknown`")
        .inlined("expected_slices", |asked| match asked.expected?.from {
            ExpectedFrom::Percentile95(slices) => Some(slices),
            _ => None,
        })
        .doc("how many slices that is the 95th percentile of; else null")
        .inlined("probes", |asked| asked.plan.probes)
        .doc("hash functions (k) of every structure that has such a number (`--k`); null if each has the best for `expected_elements`")
        .inlined("open_slices", |asked| asked.plan.open_slices())
        .doc("as for `count`")
        .inlined("seed", |asked| asked.plan.seed)
        .inlined("exact_limit_bytes", |asked| asked.plan.exact_limit_bytes)
        .inlined("pair", |asked| {
            let pair = asked.pair.iter().flatten();
            pair.map(|contender| contender.name()).collect::<Vec<_>>()
        })
        .doc("the two structures that are held against each other; empty if there is no such pair")
        .inlined("timing", |asked| asked.plan.timing)
        .doc("times were measured")
        .inlined("anonymized", |asked| asked.anonymized)
        .doc("addresses of the page and of `--od-out` are replaced")
}

/// A slice and the truth about it.
pub(super) fn judged_columns() -> Columns<JudgedSlice> {
    Columns::default()
        .field("start_ns", |slice: &JudgedSlice| Time(slice.start_ns))
        .doc("as for `count`")
        .field("end_ns", |slice| Time(slice.end_ns))
        .field("packets", |slice| slice.packets)
        .field("elements", |slice| slice.elements)
        .field("exact", |slice| slice.exact)
        .doc("distinct elements; null if the truth passed its limit")
        .field("exact_over_limit", |slice| slice.exact.is_none())
        .doc("the truth passed its limit in this slice: it is not judged")
        .field("partial", |slice| slice.partial)
        .doc(PARTIAL_DOC)
}

/// A structure with a memory, and what belongs to it.
#[derive(Clone)]
pub(super) struct EntryRow<'a> {
    entry: &'a Entry,
    best: bool,
    stored: Vec<StoredCombination>,
    estimate_error: Option<ErrorRow>,
    first_error: Option<ErrorRow>,
    pub(super) queries: Vec<QueryRow>,
    pub(super) counts: Vec<CountRow>,
    /// The answers that a line is about.
    query: Option<QueryRow>,
}

impl EntryRow<'_> {
    /// Returns the line about these answers.
    pub(super) fn of_query(&self, query: QueryRow) -> Self {
        Self { query: Some(query), ..self.clone() }
    }
}

/// Errors of a count over the slices, and the beginning of the slice with the worst one.
#[derive(Clone, Copy)]
pub(super) struct ErrorRow {
    errors: CountErrors,
    worst_start_ns: i64,
}

/// Answers to queries for one combination.
#[derive(Clone)]
pub(super) struct QueryRow {
    attributes: Vec<&'static str>,
    result: QueryResult,
}

/// The counts of a structure in a slice.
#[derive(Clone, Copy)]
pub(super) struct CountRow {
    start_ns: i64,
    first: Option<u64>,
    estimate: Option<f64>,
    std_error: Option<f64>,
    exact: Option<u64>,
}

/// The columns of a structure with a memory, with lists of its answers and counts.
pub(super) fn structure_columns<'a>() -> Columns<EntryRow<'a>> {
    Columns::default()
        .inlined("filter", |row: &EntryRow<'a>| row.entry.contender.name())
        .doc("the structure; `subset` stores the whole element only, `subset-planned` also every combination that is asked for")
        .inlined("memory_asked_bytes", |row| row.entry.memory_asked_bytes)
        .doc("memory that it was given; null for `exact`")
        .inlined("memory_bytes", |row| row.entry.memory_bytes)
        .doc("most memory that it used in a slice; null if it does not fit")
        .inlined("fits", |row| row.entry.unfit.is_none())
        .doc("it can be built in the memory; `exceeds_memory` says whether it kept to it")
        .inlined("exceeds_memory", |row| row.entry.exceeds_memory())
        .doc("it used more memory than it was given, so it is not compared at equal memory and never the best")
        .inlined("needed_bytes", |row| row.entry.needed_bytes)
        .doc("memory of the smallest one, if it does not fit and that is known")
        .inlined("note", |row| row.entry.unfit.clone().or_else(|| over_memory(row.entry)))
        .doc("why it does not fit, or by how much it exceeds its memory; else null")
        .inlined("probes", |row| row.entry.probes)
        .doc("hash functions (k)")
        .objects("stored", stored_columns(), |row| row.stored.clone())
        .doc("combinations stored besides the whole element: `attributes`, and `probes`")
        .inlined("best", |row| row.best)
        .doc("no other structure has a smaller mean error of its count in this memory (estimate if there is one, otherwise raw count). Several structures can tie. Never true for one that was full in a slice, exceeds its memory, or said yes to every absent element")
        .inlined("saturated_slices", |row| row.entry.saturated_slices())
        .doc("slices in which the filter was so full that it noticed less than one new element in a hundred: its counts there are meaningless")
        .object("estimate_error", error_columns(), |row| row.estimate_error)
        .doc("errors of the unbiased estimate; null where there is none")
        .object("first_error", error_columns(), |row| row.first_error)
        .doc("errors of the raw count")
        .inlined("ns_per_element", |row| row.entry.ns_per_element.map(Decimal))
        .doc("time of an insertion; null without `--timing`")
        .unit("ns")
        .objects("queries", query_columns(), |row| row.queries.clone())
        .doc("answers to queries for absent elements")
        .objects("counts", count_columns(), |row| row.counts.clone())
        .doc("one a slice")
}

/// The columns of a line of CSV: of a structure, and of some of its answers.
pub(super) fn flat_columns<'a>() -> Columns<EntryRow<'a>> {
    let structure = structure_columns().without("note").flat();
    structure.part(None, &query_columns(), |row| row.query.clone())
}

/// Errors of a count, as shares of the exact one.
pub(super) fn error_columns() -> Columns<ErrorRow> {
    Columns::default()
        .field("mean", |row: &ErrorRow| Decimal(row.errors.mean))
        .doc("mean of the absolute errors")
        .unit("share")
        .field("p95", |row| Decimal(row.errors.p95))
        .doc("95 of 100 slices have at most this absolute error")
        .unit("share")
        .field("worst", |row| Decimal(row.errors.worst))
        .doc("the largest absolute error")
        .unit("share")
        .field("worst_start_ns", |row| Time(row.worst_start_ns))
        .doc("the slice that has it")
        .field("bias", |row| Decimal(row.errors.bias))
        .doc("mean of the signed errors: below 0 if too little was counted")
        .unit("share")
}

/// Answers to queries for absent elements.
pub(super) fn query_columns() -> Columns<QueryRow> {
    Columns::default()
        .field("attributes", |row: &QueryRow| row.attributes.clone())
        .doc("the combination that is asked for")
        .field("negatives", |row| row.result.negatives.name())
        .doc("`apart`: values that occur in the slice, each drawn from a distinct element of its own, but not together; `next`: distinct values of the combination in the following open slice that are not in this one")
        .field("queries", |row| row.result.queries)
        .doc("how many over all slices; per slice at most as many as it has distinct elements (up to 256 for small slices), and at most 20,000")
        .field("positives", |row| row.result.positives)
        .doc("those that were answered by yes; null if the structure has no answer")
        .field("observed_fpr", |row| row.result.observed().map(Decimal))
        .doc("their share")
        .unit("share")
        .field("observed_fpr_std_error", |row| row.result.std_error().map(Decimal))
        .doc("its standard error if queries were independent")
        .field("predicted_fpr", |row| row.result.predicted.map(Decimal))
        .doc("what the formulas predict for the distinct values of each slice if values are evenly spread; if a matrix stores only parts of a combination, the prediction assumes that no part of two or more values occurred")
        .unit("share")
}

/// The counts in a slice.
pub(super) fn count_columns() -> Columns<CountRow> {
    Columns::default()
        .field("start_ns", |row: &CountRow| Time(row.start_ns))
        .doc("the slice")
        .field("first", |row| row.first)
        .doc("as for `count`")
        .field("estimate", |row| row.estimate)
        .field("std_error", |row| row.std_error)
        .field("rel_error", |row| row.error(row.estimate))
        .unit("share")
        .field("first_rel_error", |row| row.error(row.first.map(|first| first as f64)))
        .doc("(first - exact) / exact")
        .unit("share")
}

/// By how much a structure exceeds its memory, if it does.
pub(super) fn over_memory(entry: &Entry) -> Option<String> {
    let (used, asked) = entry.memory_bytes.zip(entry.memory_asked_bytes)?;
    entry.exceeds_memory().then(|| {
        format!(
            "it uses {} bytes, more than the {} asked for: not equal memory",
            grouped(used),
            grouped(asked)
        )
    })
}

impl CountRow {
    fn error(&self, count: Option<f64>) -> Option<f64> {
        let exact = self.exact.filter(|&exact| exact > 0)? as f64;
        Some((count? - exact) / exact)
    }
}

impl CompareReport<'_> {
    /// A structure with everything that belongs to it.
    pub(super) fn row<'b>(&'b self, entry: &'b Entry) -> EntryRow<'b> {
        let slices = &self.comparison.slices;
        let error = |errors: CountErrors| ErrorRow {
            errors,
            worst_start_ns: slices[errors.worst_slice].start_ns,
        };
        let stored = |&(mask, probes): &(u32, u32)| StoredCombination {
            attributes: self.attributes(mask),
            probes,
        };
        let query =
            |&result: &QueryResult| QueryRow { attributes: self.attributes(result.mask), result };
        let counts = entry.counts.iter().zip(slices);
        EntryRow {
            entry,
            best: self.is_best(entry),
            stored: entry.stored.iter().map(stored).collect(),
            estimate_error: entry.estimate_errors(slices).map(error),
            first_error: entry.first_errors(slices).map(error),
            queries: entry.queries.iter().map(query).collect(),
            counts: counts
                .map(|(count, slice)| CountRow {
                    start_ns: slice.start_ns,
                    first: count.first,
                    estimate: count.estimate,
                    std_error: count.std_error,
                    exact: slice.exact,
                })
                .collect(),
            query: None,
        }
    }

    /// The pair in a memory.
    pub(super) fn pair_row(&self, memory: u64) -> Option<PairRow> {
        let pair = self.pair?;
        Some(PairRow::new(self.comparison, pair, memory))
    }

    /// The pair in every memory.
    pub(super) fn pair_rows(&self) -> impl Iterator<Item = PairRow> {
        let memories = self.plan.memories.iter();
        memories.filter_map(|&memory| self.pair_row(memory))
    }

    /// Names of a combination's attributes.
    pub(super) fn attributes(&self, mask: u32) -> Vec<&'static str> {
        names(&self.plan.rule.kind.attributes(), mask)
    }

    /// The entries of a memory that fit, the least mean error first; those without a count at the
    /// end.
    pub(super) fn ranked(&self, memory: Option<u64>) -> Vec<(&Entry, Option<CountErrors>)> {
        let slices = &self.comparison.slices;
        let of_memory = |entry: &&Entry| entry.memory_asked_bytes == memory;
        let entries = self.comparison.entries.iter().filter(of_memory);
        let mut ranked: Vec<(&Entry, Option<CountErrors>)> =
            entries.map(|entry| (entry, entry.best_errors(slices))).collect();
        let mean = |errors: Option<CountErrors>| errors.map_or(f64::INFINITY, |e| e.mean);
        ranked.sort_by(|a, b| {
            let fits = |entry: &Entry| entry.unfit.is_some();
            fits(a.0).cmp(&fits(b.0)).then(mean(a.1).total_cmp(&mean(b.1)))
        });
        ranked
    }

    /// The structures with the least mean error of their counts in this memory: several if it is
    /// the same. The exact set is none of them.
    pub(super) fn best(&self, memory: Option<u64>) -> Vec<(&Entry, CountErrors)> {
        let ranked = self.ranked(memory).into_iter();
        let mut best: Vec<(&Entry, CountErrors)> = ranked
            .filter(|(entry, _)| entry.contender != Contender::EXACT)
            .filter(|(entry, _)| self.can_be_best(entry))
            .filter_map(|(entry, errors)| Some((entry, errors?)))
            .collect();
        let least = best.first().map_or(0.0, |(_, errors)| errors.mean);
        best.retain(|(_, errors)| errors.mean <= least);
        best
    }

    /// Whether an entry may be called the best of anything: it was never full, kept to its memory,
    /// and said no at times.
    pub(super) fn can_be_best(&self, entry: &Entry) -> bool {
        entry.saturated_slices() == 0
            && !entry.exceeds_memory()
            && !entry.says_always_yes(self.plan.rule.kind.all())
    }

    /// Whether an entry is among the best of its memory.
    pub(super) fn is_best(&self, entry: &Entry) -> bool {
        let best = self.best(entry.memory_asked_bytes).into_iter();
        best.map(|(best, _)| best).any(|best| std::ptr::eq(best, entry))
    }
}
