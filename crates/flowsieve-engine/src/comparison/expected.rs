//! How many distinct elements a slice has: a first guess, from the elements that were held back.

use super::results::{Expected, ExpectedFrom};
use super::truth::{Counted, SliceSets};
use super::workers::Task;

/// Distinct values in the slices that ended among the held tasks: those of the slice with the (lower)
/// median number of elements.
pub(super) fn expected(
    held: &[Task],
    given: Option<u64>,
    counted: &Counted,
    limit: u64,
) -> Expected {
    let mut slots: Vec<SliceSets> = Vec::new();
    let mut slices: Vec<Vec<u64>> = Vec::new();
    for task in held {
        let slot = task.slot();
        while slots.len() <= slot {
            slots.push(SliceSets::new(counted, limit));
        }
        match task {
            Task::Add { elements, .. } => slots[slot].add(counted, elements),
            Task::Close { .. } => {
                slices.extend(slots[slot].counts().filter(|counts| counts[0] > 0));
                slots[slot].clear();
            }
        }
    }
    slices.sort();
    let median = slices.get(slices.len().saturating_sub(1) / 2);
    let values = |scale: f64| -> Vec<(u32, u64)> {
        let counts = median.into_iter().flatten();
        let scaled = counts.map(|&count| (count as f64 * scale).ceil() as u64);
        counted.masks.iter().copied().zip(scaled).collect()
    };
    match (given, median) {
        (Some(given), median) => Expected {
            elements: Some(given),
            from: ExpectedFrom::Given,
            // Combinations grow with the elements, as far as one knows.
            values: values(median.map_or(1.0, |counts| given as f64 / counts[0] as f64)),
        },
        (None, Some(counts)) => Expected {
            elements: Some(counts[0]),
            from: ExpectedFrom::Median(slices.len() as u64),
            values: values(1.0),
        },
        (None, None) => Expected::default(),
    }
}
