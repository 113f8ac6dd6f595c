//! A comparison as it is told: one set of names for JSON, JSON lines and CSV, documented in
//! `docs/output.md`.

use super::compare_table;
use super::flat::FlatTable;
use super::model::{InputRow, TotalsRow};
use crate::comparison::{
    ComparePlan, Comparison, Contender, CountErrors, Entry, JudgedSlice, QueryResult, SliceCount,
};
use crate::decode::Tunnel;
use serde::Serialize;
use serde_json::to_writer;
use std::io::{self, Write};

/// Name and version of the document.
const COMPARE_SCHEMA: &str = "flowsieve.compare/1";

/// A comparison and what was asked.
#[derive(Debug)]
pub struct CompareReport<'a> {
    /// What was asked.
    pub plan: &'a ComparePlan,
    /// What came of it.
    pub comparison: &'a Comparison,
    /// Addresses on its page are replaced.
    pub anonymized: bool,
}

/// What a comparison depends on.
#[derive(Debug, Serialize)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a field of the document"
)]
pub(super) struct CompareParameters {
    element: &'static str,
    undirected: bool,
    queries_only: bool,
    dns_ports: Vec<u16>,
    tunnel: &'static str,
    slice_ns: Option<i64>,
    align: &'static str,
    filters: Vec<&'static str>,
    memory_bytes: Vec<u64>,
    asked: Vec<Vec<&'static str>>,
    expected_elements: Option<u64>,
    expected_from: &'static str,
    expected_slices: Option<u64>,
    open_slices: usize,
    seed: u64,
    exact_limit_bytes: u64,
    timing: bool,
    anonymized: bool,
}

/// A slice and the truth about it.
#[derive(Debug, Serialize)]
pub(super) struct JudgedRow {
    start_ns: i64,
    end_ns: i64,
    packets: u64,
    elements: u64,
    exact: Option<u64>,
    exact_over_limit: bool,
}

/// A structure with a memory; `counts` and `queries` stand in lines of their own in JSON lines.
#[derive(Debug, Serialize)]
pub(super) struct StructureRow {
    pub(super) filter: &'static str,
    pub(super) memory_asked_bytes: Option<u64>,
    pub(super) memory_bytes: Option<u64>,
    pub(super) fits: bool,
    pub(super) needed_bytes: Option<u64>,
    note: Option<String>,
    pub(super) probes: Option<u32>,
    stored: Vec<StoredRow>,
    pub(super) best: bool,
    pub(super) estimate_error: Option<ErrorRow>,
    pub(super) first_error: Option<ErrorRow>,
    pub(super) ns_per_element: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    queries: Option<Vec<QueryRow>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    counts: Option<Vec<CountRow>>,
}

/// A combination that a subset filter stores besides the whole element.
#[derive(Debug, Serialize)]
struct StoredRow {
    attributes: Vec<&'static str>,
    probes: u32,
}

/// Errors of a count over the slices.
#[derive(Debug, Serialize)]
pub(super) struct ErrorRow {
    pub(super) mean: f64,
    pub(super) p95: f64,
    pub(super) worst: f64,
    pub(super) worst_start_ns: i64,
    pub(super) bias: f64,
}

/// Answers to queries for one combination.
#[derive(Debug, Serialize)]
pub(super) struct QueryRow {
    pub(super) attributes: Vec<&'static str>,
    pub(super) negatives: &'static str,
    pub(super) queries: u64,
    pub(super) positives: Option<u64>,
    pub(super) observed_fpr: Option<f64>,
    pub(super) observed_fpr_std_error: Option<f64>,
    pub(super) predicted_fpr: Option<f64>,
}

/// The counts of a structure in a slice.
#[derive(Debug, Serialize)]
struct CountRow {
    start_ns: i64,
    first: Option<u64>,
    estimate: Option<f64>,
    std_error: Option<f64>,
    rel_error: Option<f64>,
    first_rel_error: Option<f64>,
}

/// One document.
#[derive(Serialize)]
struct Document {
    schema: &'static str,
    parameters: CompareParameters,
    slices: Vec<JudgedRow>,
    slices_omitted: u64,
    structures: Vec<StructureRow>,
    inputs: Vec<InputRow>,
    totals: TotalsRow,
}

/// A line of JSON lines.
#[derive(Serialize)]
struct Line<T> {
    record: &'static str,
    #[serde(flatten)]
    row: T,
}

/// What belongs to a structure with a memory, in a line of its own.
#[derive(Serialize)]
struct Of<T> {
    filter: &'static str,
    memory_asked_bytes: Option<u64>,
    #[serde(flatten)]
    row: T,
}

impl CompareReport<'_> {
    /// Writes it. `styled` allows the table to use a terminal's bold face.
    ///
    /// # Errors
    ///
    /// Writing failed.
    pub fn write<W: Write>(
        &self,
        format: super::ReportFormat,
        styled: bool,
        mut out: W,
    ) -> io::Result<W> {
        match format {
            super::ReportFormat::Table => compare_table::write(self, styled, &mut out)?,
            super::ReportFormat::Json => {
                to_writer(&mut out, &self.document())?;
                writeln!(out)?;
            }
            super::ReportFormat::JsonLines => self.json_lines(&mut out)?,
            super::ReportFormat::Csv => self.write_csv(&mut out)?,
            super::ReportFormat::Parquet => self.write_parquet(&mut out)?,
        }
        out.flush()?;
        Ok(out)
    }

    fn document(&self) -> Document {
        let comparison = self.comparison;
        Document {
            schema: COMPARE_SCHEMA,
            parameters: self.parameters(),
            slices: comparison.slices.iter().map(JudgedRow::from).collect(),
            slices_omitted: comparison.slices_omitted,
            structures: comparison
                .entries
                .iter()
                .map(|entry| StructureRow {
                    queries: Some(self.queries(entry)),
                    counts: Some(self.counts(entry)),
                    ..self.structure(entry)
                })
                .collect(),
            inputs: comparison.inputs.iter().map(InputRow::from).collect(),
            totals: TotalsRow::from(&comparison.totals),
        }
    }

    fn json_lines(&self, out: &mut impl Write) -> io::Result<()> {
        #[derive(Serialize)]
        struct Head {
            schema: &'static str,
            parameters: CompareParameters,
        }
        let head = Head {
            schema: COMPARE_SCHEMA,
            parameters: self.parameters(),
        };
        line(out, "parameters", head)?;
        for slice in &self.comparison.slices {
            line(out, "slice", JudgedRow::from(slice))?;
        }
        for entry in &self.comparison.entries {
            line(out, "structure", self.structure(entry))?;
            for row in self.queries(entry) {
                line(out, "query", of(entry, row))?;
            }
            for row in self.counts(entry) {
                line(out, "count", of(entry, row))?;
            }
        }
        for input in &self.comparison.inputs {
            line(out, "input", InputRow::from(input))?;
        }
        line(out, "totals", TotalsRow::from(&self.comparison.totals))
    }

    fn parameters(&self) -> CompareParameters {
        let (plan, expected) = (self.plan, &self.comparison.expected);
        CompareParameters {
            element: plan.rule.kind.name(),
            undirected: plan.rule.undirected,
            queries_only: plan.rule.queries_only,
            dns_ports: plan.rule.dns_ports.clone(),
            tunnel: match plan.tunnel {
                Tunnel::Outer => "outer",
                Tunnel::Inner => "inner",
            },
            slice_ns: plan.slicing.width_ns,
            align: plan.slicing.align.name(),
            filters: plan.contenders.iter().map(|c| c.name()).collect(),
            memory_bytes: plan.memories.clone(),
            asked: plan
                .asked()
                .into_iter()
                .map(|mask| self.attributes(mask))
                .collect(),
            expected_elements: expected.elements,
            expected_from: expected.from.name(),
            expected_slices: match expected.from {
                crate::comparison::ExpectedFrom::Median(slices) => Some(slices),
                _ => None,
            },
            open_slices: plan.open_slices(),
            seed: plan.seed,
            exact_limit_bytes: plan.exact_limit_bytes,
            timing: plan.timing,
            anonymized: self.anonymized,
        }
    }

    pub(super) fn structure(&self, entry: &Entry) -> StructureRow {
        let slices = &self.comparison.slices;
        let error = |errors: CountErrors| ErrorRow {
            mean: errors.mean,
            p95: errors.p95,
            worst: errors.worst,
            worst_start_ns: slices[errors.worst_slice].start_ns,
            bias: errors.bias,
        };
        StructureRow {
            filter: entry.contender.name(),
            memory_asked_bytes: entry.memory_asked_bytes,
            memory_bytes: entry.memory_bytes,
            fits: entry.unfit.is_none(),
            needed_bytes: entry.needed_bytes,
            note: entry.unfit.clone(),
            probes: entry.probes,
            stored: entry
                .stored
                .iter()
                .map(|&(mask, probes)| StoredRow {
                    attributes: self.attributes(mask),
                    probes,
                })
                .collect(),
            best: self.is_best(entry),
            estimate_error: entry.estimate_errors(slices).map(error),
            first_error: entry.first_errors(slices).map(error),
            ns_per_element: entry.ns_per_element,
            queries: None,
            counts: None,
        }
    }

    pub(super) fn queries(&self, entry: &Entry) -> Vec<QueryRow> {
        let row = |query: &QueryResult| QueryRow {
            attributes: self.attributes(query.mask),
            negatives: query.negatives.name(),
            queries: query.queries,
            positives: query.positives,
            observed_fpr: query.observed(),
            observed_fpr_std_error: query.std_error(),
            predicted_fpr: query.predicted,
        };
        entry.queries.iter().map(row).collect()
    }

    fn counts(&self, entry: &Entry) -> Vec<CountRow> {
        let row = |(count, slice): (&SliceCount, &JudgedSlice)| {
            let error = |count: Option<f64>| {
                let exact = slice.exact.filter(|&exact| exact > 0)? as f64;
                Some((count? - exact) / exact)
            };
            CountRow {
                start_ns: slice.start_ns,
                first: count.first,
                estimate: count.estimate,
                std_error: count.std_error,
                rel_error: error(count.estimate),
                first_rel_error: error(count.first.map(|first| first as f64)),
            }
        };
        let slices = &self.comparison.slices;
        entry.counts.iter().zip(slices).map(row).collect()
    }

    /// Names of a combination's attributes.
    pub(super) fn attributes(&self, mask: u32) -> Vec<&'static str> {
        let names = self.plan.rule.kind.attributes().iter().enumerate();
        names
            .filter(|(attribute, _)| mask >> attribute & 1 == 1)
            .map(|(_, &name)| name)
            .collect()
    }

    /// The entries of a memory that fit, the least mean error first; those without a count at the end.
    pub(super) fn ranked(&self, memory: Option<u64>) -> Vec<(&Entry, Option<CountErrors>)> {
        let slices = &self.comparison.slices;
        let of_memory = |entry: &&Entry| entry.memory_asked_bytes == memory;
        let entries = self.comparison.entries.iter().filter(of_memory);
        let mut ranked: Vec<(&Entry, Option<CountErrors>)> = entries
            .map(|entry| (entry, entry.best_errors(slices)))
            .collect();
        let mean = |errors: Option<CountErrors>| errors.map_or(f64::INFINITY, |e| e.mean);
        ranked.sort_by(|a, b| {
            let fits = |entry: &Entry| entry.unfit.is_some();
            fits(a.0)
                .cmp(&fits(b.0))
                .then(mean(a.1).total_cmp(&mean(b.1)))
        });
        ranked
    }

    /// The structures with the least mean error of their counts in this memory: several if it is the
    /// same. The exact set is none of them.
    pub(super) fn best(&self, memory: Option<u64>) -> Vec<(&Entry, CountErrors)> {
        let ranked = self.ranked(memory).into_iter();
        let mut best: Vec<(&Entry, CountErrors)> = ranked
            .filter(|(entry, _)| entry.contender != Contender::EXACT)
            .filter_map(|(entry, errors)| Some((entry, errors?)))
            .collect();
        let least = best.first().map_or(0.0, |(_, errors)| errors.mean);
        best.retain(|(_, errors)| errors.mean <= least);
        best
    }

    /// Whether an entry is among the best of its memory.
    pub(super) fn is_best(&self, entry: &Entry) -> bool {
        let best = self.best(entry.memory_asked_bytes).into_iter();
        best.map(|(best, _)| best)
            .any(|best| std::ptr::eq(best, entry))
    }
}

impl From<&JudgedSlice> for JudgedRow {
    fn from(slice: &JudgedSlice) -> Self {
        Self {
            start_ns: slice.start_ns,
            end_ns: slice.end_ns,
            packets: slice.packets,
            elements: slice.elements,
            exact: slice.exact,
            exact_over_limit: slice.exact.is_none(),
        }
    }
}

fn of<T>(entry: &Entry, row: T) -> Of<T> {
    Of {
        filter: entry.contender.name(),
        memory_asked_bytes: entry.memory_asked_bytes,
        row,
    }
}

fn line(out: &mut impl Write, record: &'static str, row: impl Serialize) -> io::Result<()> {
    to_writer(&mut *out, &Line { record, row })?;
    writeln!(out)
}
