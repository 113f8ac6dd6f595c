//! Counts of one combination of attributes.

use super::{Estimate, FilterSpec, MultiAttributeFilter};
use serde::{Deserialize, Serialize};

/// Counts of the distinct values of a combination of attributes.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct CombinationCount {
    /// The attributes, bit i for attribute i.
    pub mask: u32,
    /// Raw count, a lower bound, if the structure has one.
    pub first: Option<u64>,
    /// Unbiased count, if the structure has one.
    pub distinct: Option<Estimate>,
}

impl CombinationCount {
    /// Returns the counts of a filter, or empty ones if there is no filter.
    pub(super) fn of(filter: Option<&dyn MultiAttributeFilter>, mask: u32) -> Self {
        Self {
            mask,
            first: filter.and_then(|filter| filter.first_of(mask)),
            distinct: filter.and_then(|filter| filter.distinct_of(mask)),
        }
    }

    /// Returns the counts of an empty filter with these parameters: zero for each count that the
    /// structure has.
    pub fn empty(spec: &FilterSpec, mask: u32) -> Self {
        Self {
            mask,
            first: spec.counts_first_of(mask).then_some(0),
            distinct: spec.counts_distinct_of(mask).then(Estimate::default),
        }
    }
}
