//! The combinations of attributes that a saved filter stores, with their bits and counts.

use super::count_combinations::{cell, names};
use crate::elements::ElementLabel;
use crate::filters::Estimate;
use crate::filters::saved::SavedFilter;
use crate::pipeline::CombinationResult;
use serde::Serialize;

/// One combination.
#[derive(Debug, Serialize)]
pub(super) struct StoredRow {
    pub(super) attributes: Vec<String>,
    probes: Option<u32>,
    first: Option<u64>,
    estimate: Option<f64>,
    std_error: Option<f64>,
}

impl StoredRow {
    /// All that the filter stores besides the whole element; attributes without a name have a number.
    pub(super) fn all(filter: &SavedFilter, label: Option<&ElementLabel>) -> Vec<Self> {
        let spec = filter.spec();
        let count = spec.attributes().unwrap_or(0);
        let known = label.map(|label| label.rule.kind.attributes());
        let known = known.filter(|known| known.len() == count);
        let row = |mask: u32| {
            let counts = filter.combination(mask);
            let attributes = match known {
                Some(known) => names(known, mask).into_iter().map(str::to_owned).collect(),
                None => (0..count)
                    .filter(|attribute| mask >> attribute & 1 == 1)
                    .map(|attribute| (attribute + 1).to_string())
                    .collect(),
            };
            Self {
                attributes,
                probes: spec.probes_of(mask),
                first: counts.first,
                estimate: counts.distinct.map(|estimate| estimate.distinct),
                std_error: counts.distinct.map(Estimate::std_error),
            }
        };
        spec.stored().into_iter().map(row).collect()
    }

    /// The bits and the count, for people.
    pub(super) fn words(&self) -> String {
        let count = match (self.estimate, self.first) {
            (None, None) => "not counted".to_owned(),
            (estimate, first) => cell(&CombinationResult {
                mask: 0,
                first,
                estimate,
                std_error: self.std_error,
            }),
        };
        match self.probes {
            Some(probes) => format!("{count}, k = {probes}"),
            None => count,
        }
    }
}
