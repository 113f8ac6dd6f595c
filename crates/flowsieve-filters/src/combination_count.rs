//! What a filter counted of one combination of attributes.

use super::{Estimate, FilterSpec, MultiAttributeFilter};

/// Counts of the distinct values of a combination of attributes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CombinationCount {
    /// Its attributes, bit i for attribute i.
    pub mask: u32,
    /// Raw count, a lower bound, if the structure has one.
    pub first: Option<u64>,
    /// Unbiased count, if the structure has one.
    pub distinct: Option<Estimate>,
    /// The filter is so full that it notices less than one new value in a hundred: the unbiased count and
    /// its variance are out of their range.
    pub saturated: bool,
}

/// Above this probability of being called a repeat, new elements or values are too few to be counted.
pub(super) const MOST_REPEATS: f64 = 0.99;

impl CombinationCount {
    /// Of a filter; of one that is `None`, no answer.
    pub(super) fn of(filter: Option<&dyn MultiAttributeFilter>, mask: u32) -> Self {
        let Some(filter) = filter else {
            return Self {
                mask,
                ..Self::default()
            };
        };
        let repeats = filter.repeat_probability_of(mask);
        Self {
            mask,
            first: filter.first_of(mask),
            distinct: filter.distinct_of(mask),
            saturated: repeats.is_some_and(|probability| probability > MOST_REPEATS),
        }
    }

    /// Of a filter with these parameters into which nothing was inserted: zero wherever there can be a
    /// count.
    pub fn empty(spec: &FilterSpec, mask: u32) -> Self {
        Self {
            mask,
            first: spec.counts_first_of(mask).then_some(0),
            distinct: spec.counts_distinct_of(mask).then(Estimate::default),
            saturated: false,
        }
    }
}
