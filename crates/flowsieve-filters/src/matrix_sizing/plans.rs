//! The best cuts, size and k for a memory or a rate.

use super::rates::rate_of_subsets;
use super::{cells, largest_size, maximal_legal_subsets};
use crate::MAX_COMBINATIONS;
use crate::sizing::{MAX_PROBES, least_size};

/// A cut family with its best size and k.
#[derive(Clone, Debug, PartialEq)]
pub struct MatrixPlan {
    /// The cuts.
    pub cuts: Vec<u32>,
    /// Size of every attribute (m).
    pub size: u64,
    /// Hash functions (k).
    pub probes: u32,
    /// Predicted false-positive rate of a query with all attributes.
    pub fpr: f64,
}

/// Returns the cut families among which [`best_plan`] chooses: those that keep the combinations of
/// at most r attributes, for r = d (no cut) down to 2; and those that cut one to d/2 of the
/// disjoint pairs {1,2}, {3,4}, … Families with more than [`MAX_COMBINATIONS`] combinations are
/// left out.
pub fn cut_families(attributes: usize) -> Vec<Vec<u32>> {
    let of_order = |order: usize| -> Vec<u32> {
        (1..1_u32 << attributes).filter(|cut| cut.count_ones() as usize == order).collect()
    };
    let few = |combinations: u64| combinations <= MAX_COMBINATIONS as u64;
    // Subsets of at most `kept` attributes: a sum of binomial coefficients.
    let of_at_most = |kept: usize| -> u64 {
        (1..=kept as u64)
            .scan(1, |binomial, order| {
                *binomial = *binomial * (attributes as u64 + 1 - order) / order;
                Some(*binomial)
            })
            .sum::<u64>()
            + 1
    };
    let levels =
        (2..attributes).rev().filter(|&kept| few(of_at_most(kept))).map(|kept| of_order(kept + 1));
    // A cut pair keeps three of its four subsets.
    let pairs = (1..=attributes / 2)
        .filter(|&pairs| attributes > 2 && few(3_u64.pow(pairs as u32) << (attributes - 2 * pairs)))
        .map(|pairs| (0..pairs).map(|pair| 0b11 << (2 * pair)).collect());
    few(1 << attributes).then(Vec::new).into_iter().chain(levels).chain(pairs).collect()
}

/// Returns the plan with the lowest predicted rate for a query with all attributes, with at most
/// `most` cells, `elements` distinct elements and all attribute values known (α = 1, as in
/// traffic); `None` if none fits.
pub fn best_plan(
    families: &[Vec<u32>],
    attributes: usize,
    most: u128,
    elements: f64,
) -> Option<MatrixPlan> {
    families
        .iter()
        .filter_map(|cuts| {
            let size = largest_size(attributes, cuts, most);
            (size > 0).then(|| plan_of_size(cuts, attributes, size, elements))
        })
        .min_by(|a, b| a.fpr.total_cmp(&b.fpr))
}

/// Returns the plan with the fewest cells whose predicted rate, as in [`best_plan`], is at most
/// `fpr`.
pub fn least_plan(
    families: &[Vec<u32>],
    attributes: usize,
    fpr: f64,
    elements: f64,
) -> Option<MatrixPlan> {
    families
        .iter()
        .filter_map(|cuts| {
            let reaches = |size: u64| plan_of_size(cuts, attributes, size, elements).fpr <= fpr;
            let size = least_size(1 << 47, reaches)?;
            let plan = plan_of_size(cuts, attributes, size, elements);
            Some((cells(&vec![size; attributes], cuts)?, plan))
        })
        .min_by_key(|&(cells, _)| cells)
        .map(|(_, plan)| plan)
}

/// Returns the plan of a cut family at a given size, with the k of the lowest predicted rate.
fn plan_of_size(cuts: &[u32], attributes: usize, size: u64, elements: f64) -> MatrixPlan {
    let sizes = vec![size; attributes];
    let full = (1 << attributes) - 1;
    let asked = maximal_legal_subsets(full, cuts);
    // The value of a new element of one attribute does not occur.
    let known = if attributes == 1 { 0.0 } else { 1.0 };
    let (probes, fpr) = (1..=MAX_PROBES as u32)
        .map(|probes| (probes, rate_of_subsets(&asked, &sizes, probes, elements, known)))
        .min_by(|a, b| a.1.total_cmp(&b.1))
        .expect("there is at least one number of hash functions");
    MatrixPlan { cuts: cuts.to_vec(), size, probes, fpr }
}
