//! The columns of a structure of a size in a comparison: what it needs, its errors over all
//! replicates and in each, and its answers to queries.

use super::cell::{Decimal, Time};
use super::column::{Columns, columns};
use super::compare_model::{CompareReport, end, finite};
use super::compare_words::{digests, program_words};
use super::count_combinations::{StoredCombination, stored_columns};
use super::number::grouped;
use crate::comparison::{CountErrors, CountKind, Entry, QueryResult, Replicate, SeedErrors};
use crate::filters::FilterKind;

/// A structure of a size.
#[derive(Clone)]
pub(super) struct EntryRow<'a> {
    pub(super) report: &'a CompareReport<'a>,
    pub(super) entry: &'a Entry,
    /// Whether no structure of its size is better, by each count.
    pub(super) best: [bool; 2],
    /// The replicate that a line is about.
    pub(super) seed: Option<SeedRow>,
}

/// Errors of a count over all replicates.
#[derive(Clone, Copy)]
pub(super) struct ErrorRow {
    errors: CountErrors,
    worst_start_ns: Option<i64>,
}

/// Errors in one replicate.
#[derive(Clone)]
pub(super) struct SeedRow {
    number: usize,
    raw: Option<SeedErrors>,
    estimate: Option<SeedErrors>,
    worst_start_ns: Option<i64>,
    counts: Option<Replicate>,
}

/// Answers to queries for one combination.
#[derive(Clone)]
pub(super) struct QueryRow {
    attributes: Vec<&'static str>,
    result: QueryResult,
}

impl EntryRow<'_> {
    /// Returns a line for each replicate, or one without.
    pub(super) fn lines(self) -> Vec<Self> {
        let seeds = self.seeds();
        if seeds.is_empty() {
            return vec![self];
        }
        seeds.into_iter().map(|seed| Self { seed: Some(seed), ..self.clone() }).collect()
    }

    fn has_arrays(&self) -> bool {
        self.report.comparison.has_arrays
    }

    fn start_ns(&self, slice: usize) -> i64 {
        self.report.comparison.slices[slice].start_ns
    }

    fn stored(&self) -> Vec<StoredCombination> {
        let attributes = self.report.plan.rule.kind.attributes();
        let stored = self.entry.stored.iter();
        stored.map(|stored| StoredCombination::new(&attributes, *stored)).collect()
    }

    fn errors(&self, kind: CountKind) -> Option<ErrorRow> {
        let errors = self.report.comparison.errors(self.entry, kind)?;
        let worst_start_ns = errors.worst_slice.map(|slice| self.start_ns(slice));
        Some(ErrorRow { errors, worst_start_ns })
    }

    fn seeds(&self) -> Vec<SeedRow> {
        let errors = |kind| self.report.comparison.seed_errors(self.entry, kind);
        let [raw, estimate] = CountKind::ALL.map(errors);
        let replicates = self.entry.replicates.iter().enumerate();
        let seeds = replicates.map(|(number, replicate)| SeedRow {
            number,
            raw: raw.get(number).copied(),
            estimate: estimate.get(number).copied(),
            worst_start_ns: raw.get(number).map(|errors| self.start_ns(errors.worst_slice)),
            counts: self.report.counts.then(|| replicate.clone()),
        });
        seeds.collect()
    }

    fn queries(&self) -> Vec<QueryRow> {
        let attributes = |mask| self.report.attributes(mask);
        let row = |&result: &QueryResult| QueryRow { attributes: attributes(result.mask), result };
        self.entry.queries.iter().map(row).collect()
    }

    fn over_memory(&self) -> Option<String> {
        let exceeds = !self.has_arrays() && self.entry.exceeds_memory();
        let used = self.entry.memory_bytes.filter(|_| exceeds)?;
        let [used, asked] = [used, self.entry.size].map(grouped);
        Some(format!("it uses {used} bytes, more than the {asked} asked for: not equal memory"))
    }
}

/// How a structure hashes the attributes together, where there are several ways.
pub(super) fn hash_variant(name: &str) -> Option<&'static str> {
    match name {
        "cmdbf" => Some("joint"),
        "cmdbf-xor" => Some("xor"),
        "cmdbf-xor-independent" => Some("xor-independent"),
        _ => None,
    }
}

fn entry_columns<'a>() -> Columns<EntryRow<'a>> {
    columns! { inlined row: EntryRow<'a>;
        filter = row.entry.contender.name(),
            "the structure; `subset` stores the whole element only; `plan` is what `plan` recommends for `--want`";
        structure = row.entry.kind.map(FilterKind::name),
            "the structure that `plan` recommends, otherwise `filter`; null if it is no filter or does not fit";
        hash_variant = hash_variant(row.entry.contender.name()),
            "how a CMDBF combines attributes: `joint` digest of the whole element, `xor` of addresses as published, `xor-independent`";
        memory_asked_bytes = (!row.has_arrays()).then_some(row.entry.size),
            "memory that it was given; null with `array`";
        array_bits = row.has_arrays().then_some(row.entry.size),
            "bits of each of its arrays; null with `total`";
        memory_bytes = row.entry.memory_bytes,
            "most memory that it used in a slice, registers included";
        fits = row.entry.unfit.is_none(), "it can be built in the memory";
        exceeds_memory = !row.has_arrays() && row.entry.exceeds_memory(),
            "it used over 1 % more memory than it was given, so it is left out of `best_sets`";
        needed_bytes = row.entry.needed_bytes, "memory of the smallest one, if it does not fit";
        note = row.entry.unfit.clone().or_else(|| row.over_memory()),
            "why it does not fit, or by how much it exceeds its memory";
        probes = row.entry.probes, "hash functions (k)";
        best_raw = row.best[0],
            "by raw counts, no structure of this memory is better (see `best_sets`)";
        best_estimate = row.best[1], "by estimates, no structure of this memory is better";
        saturated_slices = row.entry.saturated_slices(),
            "slices in which a replicate's filter was too full for an estimate";
    }
}

/// The columns of a structure of a size, with lists of its replicates and answers.
pub(super) fn structure_columns<'a>() -> Columns<EntryRow<'a>> {
    columns! { inlined row in entry_columns();
        ..objects("stored", stored_columns(), EntryRow::stored),
            "combinations stored besides the whole element: `attributes`, and `probes`";
        ..object("raw", error_columns(), |row| row.errors(CountKind::Raw)),
            "errors of the raw count";
        ..object("estimate", error_columns(), |row| row.errors(CountKind::Estimate)),
            "errors of the unbiased estimate";
        ..objects("replicates", seed_columns(), EntryRow::seeds), "one for each replicate";
        ..objects("queries", query_columns(), EntryRow::queries),
            "answers to queries for absent elements in the first replicate (`--queries`)";
    }
}

/// The columns of a line of CSV: of a structure, a size and a replicate.
pub(super) fn flat_columns<'a>() -> Columns<EntryRow<'a>> {
    let counts = seed_columns().without("counts").without("estimates");
    columns! { inlined row in entry_columns();
        ..part(None, &counts, |row: &EntryRow<'a>| row.seed.clone());
        captures = digests(&row.report.captures).collect::<Vec<_>>().join("; "),
            "SHA-256 of each capture that is a file";
        command = program_words(&row.report.command),
            "version and command line, without options that change no number";
    }
}

/// Errors of a count, as shares of the exact one.
pub(super) fn error_columns() -> Columns<ErrorRow> {
    columns! { field row: ErrorRow;
        value = finite(row.errors.error.value),
            "`raw`: mean absolute error over slices and replicates; `estimate`: root mean square error",
            unit("share");
        low = end(row.errors.error, row.errors.error.low),
            "lower end of its interval of 95 %; null for too few replicates, and where all agree",
            unit("share");
        high = end(row.errors.error, row.errors.error.high), "upper end", unit("share");
        lost = Decimal(row.errors.lost),
            "share of all elements that is missing: slices weigh by their elements", unit("share");
        worst = Decimal(row.errors.worst),
            "mean over replicates of the largest absolute error of a slice", unit("share");
        worst_start_ns = row.worst_start_ns.map(Time),
            "the slice that has it in more than half of the replicates";
        bias = Decimal(row.errors.bias),
            "mean of the signed errors: below 0 if too little was counted", unit("share");
    }
}

/// Errors in one replicate.
pub(super) fn seed_columns() -> Columns<SeedRow> {
    columns! { field row: SeedRow;
        seed = row.number,
            "number of the replicate, from 0; replicate 0 is `count` with the same `--seed`";
        mean = row.raw.map(|it| Decimal(it.mean)),
            "mean of the absolute errors of the raw count", unit("share");
        lost = row.raw.map(|it| Decimal(it.lost)),
            "share of all elements that is missing in the raw counts", unit("share");
        worst = row.raw.map(|it| Decimal(it.worst)), "largest error of the raw count", unit("share");
        worst_start_ns = row.worst_start_ns.map(Time), "the slice that has it";
        bias = row.estimate.map(|it| Decimal(it.bias)),
            "mean of the signed errors of the estimate", unit("share");
        rms = row.estimate.map(|it| Decimal(it.mean_square.sqrt())),
            "root of the mean square of the errors of the estimate", unit("share");
        counts = row.counts.as_ref().map(|it| it.first.clone()),
            "raw count of each slice (`--counts`)";
        estimates = row.counts.as_ref().map(|it| it.estimates.clone()),
            "estimate of each slice (`--counts`)";
    }
}

/// Answers to queries for absent elements.
pub(super) fn query_columns() -> Columns<QueryRow> {
    columns! { field row: QueryRow;
        attributes = row.attributes.clone(), "the combination that is asked for";
        negatives = row.result.negatives.name(),
            "`apart`: values from different elements of the slice that do not occur together; `next`: values of the combination in the following open slice that are not in this one";
        queries = row.result.queries,
            "number over all slices; per slice at most 20,000, and at most as many as it has distinct elements (256 if it is small)";
        positives = row.result.positives,
            "those answered by yes; null if the structure has no answer";
        observed_fpr = row.result.observed().map(Decimal), "their share", unit("share");
        observed_fpr_std_error = row.result.std_error().map(Decimal),
            "its standard error if queries were independent";
        predicted_fpr = row.result.predicted().map(Decimal),
            "what the formulas predict for the distinct values of each slice, all equally frequent; for a matrix that stores only parts of a combination, as if no part of two or more values occurred; null for `cmdbf-xor`, to which a pair and its reverse are one",
            unit("share");
    }
}
