//! The number of cells of a matrix, and the sizes that fit into a memory.

use super::{is_legal, legal_combinations, members};
use crate::sizing::least_size;

/// Returns the cells of a combination, Π mᵢ over its attributes; `None` beyond 2^128.
pub fn combination_cells(sizes: &[u64], combination: u32) -> Option<u128> {
    members(combination)
        .try_fold(1_u128, |cells, attribute| cells.checked_mul(sizes[attribute].into()))
}

/// Returns the cells M of a matrix, summed up over all combinations; `None` beyond 2^128.
pub fn cells(sizes: &[u64], cuts: &[u32]) -> Option<u128> {
    (0..1_u32 << sizes.len())
        .filter(|&combination| is_legal(combination, cuts))
        .try_fold(0_u128, |sum, combination| {
            sum.checked_add(combination_cells(sizes, combination)?)
        })
}

/// Returns the cells M by formula (4): d attributes of size m, *pairwise disjoint* cuts of
/// `cut_sizes` (rᵢ) attributes each.
pub fn cells_of_disjoint_cuts(size: f64, attributes: u32, cut_sizes: &[u32]) -> f64 {
    let free = attributes as i32 - cut_sizes.iter().sum::<u32>() as i32;
    let cut = |r: &u32| (size + 1.0).powi(*r as i32) - size.powi(*r as i32);
    (size + 1.0).powi(free) * cut_sizes.iter().map(cut).product::<f64>()
}

/// Returns the largest size m of every attribute with which the matrix has at most `most` cells, or
/// 0 if not even m = 1 fits.
pub fn largest_size(attributes: usize, cuts: &[u32], most: u128) -> u64 {
    // Legal combinations of 0, 1, …, d attributes.
    let mut counts = vec![0; attributes + 1];
    for combination in legal_combinations(attributes, cuts) {
        counts[combination.count_ones() as usize] += 1;
    }
    largest(most, |size| {
        counts.iter().rev().try_fold(0_u128, |sum, &count| {
            // Horner's rule on M = Σ count_r m^r.
            sum.checked_mul(size.into())?.checked_add(count)
        })
    })
}

/// Returns the largest size m of the Cartesian join with which m^d is at most `most`.
pub fn largest_cartesian_size(attributes: usize, most: u128) -> u64 {
    largest(most, |size| u128::from(size).checked_pow(attributes as u32))
}

/// Returns the largest sizes mᵢ (at least 1 each) in proportion to the weights that fit into `most`
/// cells; `None` if not even sizes of 1 fit, or if weights are negative or all 0.
pub fn weighted_sizes(weights: &[f64], cuts: &[u32], most: u128) -> Option<Vec<u64>> {
    let heaviest = weights.iter().copied().fold(0.0, f64::max);
    if !heaviest.is_finite() || heaviest <= 0.0 || weights.iter().any(|&w| w.is_nan() || w < 0.0) {
        return None;
    }
    // The size of the heaviest attribute determines the others, so that equal weights give equal
    // sizes.
    let sizes = |heavy: u64| -> Vec<u64> {
        weights.iter().map(|weight| ((heavy as f64 * (weight / heaviest)) as u64).max(1)).collect()
    };
    let heavy = largest(most, |heavy| cells(&sizes(heavy), cuts));
    (heavy > 0).then(|| sizes(heavy))
}

/// Returns the largest size with at most `most` cells, given that the cells grow with the size.
fn largest(most: u128, cells: impl Fn(u64) -> Option<u128>) -> u64 {
    let fails = |size: u64| cells(size).is_none_or(|cells| cells > most);
    least_size(1 << 62, fails).unwrap_or(1 << 62) - 1
}
