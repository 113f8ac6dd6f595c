//! Counts of combinations of attributes, as every format of a count tells them.

use super::figure::DataTable;
use super::number::grouped;
use super::parquet::ColumnKind;
use crate::pipeline::{CombinationResult, CountPlan};
use serde::Serialize;
use std::fmt::Write as _;

/// What a filter was designed for, and how.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CountDesign {
    /// Combinations of some of the attributes whose counts are reported, in the order in which they were
    /// wanted.
    pub combinations: Vec<Vec<&'static str>>,
    /// Combinations that a subset filter stores besides the whole element.
    pub stored: Vec<StoredCombination>,
    /// Sizes of a matrix's attributes (mᵢ).
    pub sizes: Vec<u64>,
    /// Cuts of a matrix.
    pub cuts: Vec<Vec<&'static str>>,
}

/// A combination of a subset filter.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StoredCombination {
    /// Its attributes.
    pub attributes: Vec<&'static str>,
    /// Bits that each of its values sets (`k_S`).
    pub probes: u32,
}

/// The counts of one combination.
#[derive(Debug, Serialize)]
pub(super) struct CombinationRow {
    attributes: Vec<&'static str>,
    first: Option<u64>,
    estimate: Option<f64>,
    std_error: Option<f64>,
}

/// The same in flat tables: what stands behind a combination's name in that of a column, and its kind.
pub(super) const COUNTS: [(&str, ColumnKind); 3] = [
    ("first", ColumnKind::U64),
    ("estimate", ColumnKind::F64),
    ("std_error", ColumnKind::F64),
];

/// The names of the attributes in `mask`.
pub(super) fn names(attributes: &[&'static str], mask: u32) -> Vec<&'static str> {
    let attributes = attributes.iter().enumerate();
    attributes
        .filter(|(index, _)| mask >> index & 1 == 1)
        .map(|(_, name)| *name)
        .collect()
}

/// The columns of the combinations, such as `src_estimate`; `src_dst_estimate` for both attributes.
pub(super) fn column_names(design: Option<&CountDesign>) -> Vec<String> {
    let combinations = design.into_iter().flat_map(|design| &design.combinations);
    combinations
        .flat_map(|names| COUNTS.map(|(count, _)| format!("{}_{count}", names.join("_"))))
        .collect()
}

impl CountDesign {
    /// Of a plan with a filter that was designed.
    pub(super) fn of(plan: &CountPlan) -> Option<Self> {
        let counter = plan.counter.as_ref()?;
        let wanted = counter.combinations.as_ref()?;
        let attributes = plan.rule.kind.attributes();
        let all = |masks: &[u32]| masks.iter().map(|&mask| names(attributes, mask)).collect();
        let mut design = Self {
            combinations: all(wanted),
            stored: Vec::new(),
            sizes: Vec::new(),
            cuts: Vec::new(),
        };
        if let Some(spec) = counter.shard.filter() {
            let shape = spec.shape();
            let stored = shape.stored.iter();
            design.stored = stored
                .map(|&(mask, probes)| StoredCombination {
                    attributes: names(attributes, mask),
                    probes,
                })
                .collect();
            design.sizes = shape.sizes;
            design.cuts = all(&shape.cuts);
        }
        Some(design)
    }

    /// The counts with their names.
    pub(super) fn rows(&self, counts: &[CombinationResult]) -> Vec<CombinationRow> {
        let rows = self.combinations.iter().zip(counts);
        rows.map(|(attributes, count)| CombinationRow {
            attributes: attributes.clone(),
            first: count.first,
            estimate: count.estimate,
            std_error: count.std_error,
        })
        .collect()
    }

    /// The counts of all slices, for a page.
    pub(super) fn table(&self, counts: &[CombinationResult], slices: u64) -> DataTable {
        let rows = self.combinations.iter().zip(counts);
        let sum = match slices {
            0 | 1 => "distinct values".to_owned(),
            slices => format!("distinct values, sum of {} slices", grouped(slices)),
        };
        DataTable {
            columns: vec!["combination".to_owned(), sum],
            numeric: vec![false, true],
            rows: rows
                .map(|(names, count)| vec![names.join(","), cell(count)])
                .collect(),
        }
    }

    /// The parameters besides k, for people: `, src k = 7`.
    pub(super) fn words(&self) -> String {
        let mut words = String::new();
        for StoredCombination { attributes, probes } in &self.stored {
            // Writing to a String cannot fail.
            let _ = write!(words, ", {} k = {probes}", attributes.join(","));
        }
        let sizes: Vec<String> = self.sizes.iter().map(|&size| grouped(size)).collect();
        if !sizes.is_empty() {
            let _ = write!(words, ", m = {}", sizes.join(" "));
        }
        let cuts: Vec<String> = self.cuts.iter().map(|cut| cut.join(",")).collect();
        if !cuts.is_empty() {
            let _ = write!(words, ", cuts {}", cuts.join("; "));
        }
        words
    }
}

/// The columns of the combinations in a table for people, behind the others.
#[derive(Debug)]
pub(super) struct CombinationColumns {
    names: Vec<String>,
}

/// Narrowest column: `1,234,567 ± 12.3`.
const LEAST_WIDTH: usize = 16;

impl CombinationColumns {
    pub(super) fn new(design: Option<&CountDesign>) -> Self {
        let combinations = design.into_iter().flat_map(|design| &design.combinations);
        Self {
            names: combinations.map(|names| names.join(",")).collect(),
        }
    }

    pub(super) fn head(&self) -> String {
        self.line(self.names.iter().cloned())
    }

    pub(super) fn cells(&self, counts: &[CombinationResult]) -> String {
        self.line(counts.iter().map(cell))
    }

    fn line(&self, cells: impl Iterator<Item = String>) -> String {
        let mut line = String::new();
        for (cell, name) in cells.zip(&self.names) {
            let width = name.len().max(LEAST_WIDTH);
            let _ = write!(line, " {cell:>width$}");
        }
        line
    }

    /// What is to be said of counts that are none, or not unbiased.
    pub(super) fn words(counts: &[CombinationResult]) -> Option<&'static str> {
        let without = counts.iter().filter(|count| count.estimate.is_none());
        let bounds = without.clone().filter(|count| count.first.is_some());
        if bounds.count() > 0 {
            Some("≥: a lower bound, which is all that this structure counts of such a combination")
        } else if without.count() > 0 {
            Some("–: this structure does not count such a combination")
        } else {
            None
        }
    }
}

/// The unbiased count with its error, or the lower bound.
pub(super) fn cell(count: &CombinationResult) -> String {
    match (count.estimate, count.std_error, count.first) {
        (Some(estimate), Some(error), _) => {
            format!("{} ± {error:.1}", grouped(estimate.round() as u64))
        }
        (_, _, Some(first)) => format!("≥ {}", grouped(first)),
        _ => "–".to_owned(),
    }
}
