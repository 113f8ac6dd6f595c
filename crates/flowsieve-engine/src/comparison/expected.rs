//! How many distinct elements a slice has, from the slices that were kept.

use super::results::{Expected, ExpectedFrom};
use super::truth::Counted;

/// Distinct values in a large slice, one of those that were kept: 95 of 100 have no more elements
/// (nearest rank, so the largest of up to 19 slices). A filter that is made for the usual slice
/// counts a flood badly; one that is made for a flood loses little in the usual slice.
///
/// `slices` has the distinct values of each combination that is counted for each slice, and of its
/// elements those with a new value.
pub(super) fn expected(
    mut slices: Vec<(Vec<u64>, u64)>,
    given: Option<u64>,
    counted: &Counted,
) -> Expected {
    slices.retain(|(counts, _)| counts[0] > 0);
    slices.sort_unstable();
    let rank = (slices.len() * 95).div_ceil(100);
    let Some((counts, new_values)) = slices.get(rank.saturating_sub(1)) else {
        let from = if given.is_some() { ExpectedFrom::Given } else { ExpectedFrom::Unknown };
        return Expected { elements: given, from, ..Expected::default() };
    };
    let elements = given.unwrap_or(counts[0]);
    // Combinations grow with the elements, as far as one knows.
    let scale = elements as f64 / counts[0] as f64;
    let values = counts.iter().map(|&count| (count as f64 * scale).ceil() as u64);
    Expected {
        elements: Some(elements),
        from: match given {
            Some(_) => ExpectedFrom::Given,
            None => ExpectedFrom::Percentile95(slices.len() as u64),
        },
        values: counted.masks.iter().copied().zip(values).collect(),
        known: 1.0 - *new_values as f64 / counts[0] as f64,
    }
}
