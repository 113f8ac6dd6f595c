//! How many cells a matrix has, and the sizes that fit into a memory.

use super::{is_legal, legal_combinations, members};
use crate::sizing::least_size;

/// Cells of a combination: Π mᵢ over its attributes, or `None` beyond 2^128.
pub fn combination_cells(sizes: &[u64], combination: u32) -> Option<u128> {
    members(combination)
        .try_fold(1_u128, |cells, attribute| cells.checked_mul(sizes[attribute].into()))
}

/// Cells M of a matrix, combination by combination, or `None` beyond 2^128.
pub fn cells(sizes: &[u64], cuts: &[u32]) -> Option<u128> {
    (0..1_u32 << sizes.len())
        .filter(|&combination| is_legal(combination, cuts))
        .try_fold(0_u128, |sum, combination| {
            sum.checked_add(combination_cells(sizes, combination)?)
        })
}

/// Cells M by formula (4): d attributes of size m, *pairwise disjoint* cuts of `cut_sizes` (rᵢ)
/// attributes each.
pub fn cells_of_disjoint_cuts(size: f64, attributes: u32, cut_sizes: &[u32]) -> f64 {
    let free = attributes as i32 - cut_sizes.iter().sum::<u32>() as i32;
    let cut = |r: &u32| (size + 1.0).powi(*r as i32) - size.powi(*r as i32);
    (size + 1.0).powi(free) * cut_sizes.iter().map(cut).product::<f64>()
}

/// The largest size m of every attribute so that the matrix has at most `most` cells; 0 if not even
/// m = 1 fits.
pub fn largest_size(attributes: usize, cuts: &[u32], most: u128) -> u64 {
    let counts = combinations_by_order(attributes, cuts);
    largest(most, |size| {
        counts.iter().rev().try_fold(0_u128, |sum, &count| {
            // Horner's rule on M = Σ count_r m^r.
            sum.checked_mul(size.into())?.checked_add(count)
        })
    })
}

/// The largest size m of the Cartesian join so that m^d is at most `most`.
pub fn largest_cartesian_size(attributes: usize, most: u128) -> u64 {
    largest(most, |size| u128::from(size).checked_pow(attributes as u32))
}

/// Sizes mᵢ in proportion to weights (at least 1 each), as large as fit into `most` cells; `None`
/// if not even one cell an attribute fits, or if the weights are negative or sum to nothing.
pub fn weighted_sizes(weights: &[f64], cuts: &[u32], most: u128) -> Option<Vec<u64>> {
    let heaviest = weights.iter().copied().fold(0.0, f64::max);
    if !heaviest.is_finite() || heaviest <= 0.0 || weights.iter().any(|&w| w.is_nan() || w < 0.0) {
        return None;
    }
    // The size of the heaviest attribute decides the others, so that equal weights are equal sizes.
    let sizes = |heavy: u64| -> Vec<u64> {
        weights.iter().map(|weight| ((heavy as f64 * (weight / heaviest)) as u64).max(1)).collect()
    };
    let heavy = largest(most, |heavy| cells(&sizes(heavy), cuts));
    (heavy > 0).then(|| sizes(heavy))
}

/// Number of legal combinations of 0, 1, …, d attributes.
fn combinations_by_order(attributes: usize, cuts: &[u32]) -> Vec<u128> {
    let mut counts = vec![0; attributes + 1];
    for combination in legal_combinations(attributes, cuts) {
        counts[combination.count_ones() as usize] += 1;
    }
    counts
}

/// The largest size whose cells, which grow with it, are at most `most`.
fn largest(most: u128, cells: impl Fn(u64) -> Option<u128>) -> u64 {
    let fails = |size: u64| cells(size).is_none_or(|cells| cells > most);
    least_size(1 << 62, fails).unwrap_or(1 << 62) - 1
}
