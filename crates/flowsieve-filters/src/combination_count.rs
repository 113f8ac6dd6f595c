//! What a filter counted of one combination of attributes.

use super::{Estimate, FilterSpec, MultiAttributeFilter};
use serde::{Deserialize, Serialize};

/// Counts of the distinct values of a combination of attributes.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct CombinationCount {
    /// Its attributes, bit i for attribute i.
    pub mask: u32,
    /// Raw count, a lower bound, if the structure has one.
    pub first: Option<u64>,
    /// Unbiased count, if the structure has one.
    pub distinct: Option<Estimate>,
}

impl CombinationCount {
    /// The counts of a filter; none without a filter.
    pub(super) fn of(filter: Option<&dyn MultiAttributeFilter>, mask: u32) -> Self {
        let Some(filter) = filter else {
            return Self { mask, ..Self::default() };
        };
        Self { mask, first: filter.first_of(mask), distinct: filter.distinct_of(mask) }
    }

    /// The counts of an empty filter with these parameters: zero wherever there can be a count.
    pub fn empty(spec: &FilterSpec, mask: u32) -> Self {
        Self {
            mask,
            first: spec.counts_first_of(mask).then_some(0),
            distinct: spec.counts_distinct_of(mask).then(Estimate::default),
        }
    }
}
