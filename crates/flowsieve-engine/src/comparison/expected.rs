//! How many distinct elements a slice has: a first guess, from the elements that were held back.

use super::results::{Expected, ExpectedFrom};
use super::truth::Counted;

/// Distinct values in a large slice, one of those that ended while elements were held back: 95 of
/// 100 have no more elements (nearest rank, so the largest of up to 19 slices). A filter that is
/// made for the usual slice counts a flood badly; one that is made for a flood loses little in the
/// usual slice.
///
/// `slices` has the distinct values of each combination that is counted, for each slice.
pub(super) fn expected(
    mut slices: Vec<Vec<u64>>,
    given: Option<u64>,
    counted: &Counted,
) -> Expected {
    slices.retain(|counts| counts[0] > 0);
    slices.sort();
    let rank = (slices.len() * 95).div_ceil(100);
    let large = slices.get(rank.saturating_sub(1));
    let values = |scale: f64| -> Vec<(u32, u64)> {
        let counts = large.into_iter().flatten();
        let scaled = counts.map(|&count| (count as f64 * scale).ceil() as u64);
        counted.masks.iter().copied().zip(scaled).collect()
    };
    match (given, large) {
        (Some(given), large) => Expected {
            elements: Some(given),
            from: ExpectedFrom::Given,
            // Combinations grow with the elements, as far as one knows.
            values: values(large.map_or(1.0, |counts| given as f64 / counts[0] as f64)),
        },
        (None, Some(counts)) => Expected {
            elements: Some(counts[0]),
            from: ExpectedFrom::Percentile95(slices.len() as u64),
            values: values(1.0),
        },
        (None, None) => Expected::default(),
    }
}
