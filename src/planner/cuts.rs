//! Families of cuts, and which combinations a matrix with such cuts stores.

use crate::filters::{MAX_COMBINATIONS, matrix_sizing};

/// Most attributes for which every family of cuts is looked at: there are 6894 for five, and 7.8
/// million for six.
const MOST_SEARCHED: usize = 5;

/// Every family of cuts of two and more attributes, none of which contains another: 1, 2, 9, 114 and
/// 6894 of them for 1 to 5 attributes. `None` for more.
pub fn all_cut_families(attributes: usize) -> Option<Vec<Vec<u32>>> {
    if attributes > MOST_SEARCHED {
        return None;
    }
    let mut sets: Vec<u32> = (1..1_u32 << attributes)
        .filter(|set| set.count_ones() > 1)
        .collect();
    sets.sort_unstable_by_key(|set| (set.count_ones(), *set));
    let mut families = Vec::new();
    extend(&sets, &mut Vec::new(), &mut families);
    Some(families)
}

/// Decides for one set after the other, small ones first, whether it is cut; a set that contains a cut
/// is gone anyway.
fn extend(sets: &[u32], cuts: &mut Vec<u32>, families: &mut Vec<Vec<u32>>) {
    let Some((&set, rest)) = sets.split_first() else {
        families.push(cuts.clone());
        return;
    };
    extend(rest, cuts, families);
    if matrix_sizing::is_legal(set, cuts) {
        cuts.push(set);
        extend(rest, cuts, families);
        cuts.pop();
    }
}

/// The families among which the planner chooses.
pub(super) fn families(attributes: usize) -> Vec<Vec<u32>> {
    all_cut_families(attributes).unwrap_or_else(|| matrix_sizing::cut_families(attributes))
}

/// The stored combinations of a family of cuts.
#[derive(Clone, Debug)]
pub(super) struct Stored {
    attributes: usize,
    legal: Vec<bool>,
    /// The legal masks, ascending, the empty one first; for each its lowest attribute and the place of
    /// the rest of it.
    combinations: Vec<(u32, usize, usize)>,
    /// How many have 0, 1, …, d attributes.
    by_order: Vec<f64>,
}

impl Stored {
    pub(super) fn new(attributes: usize, cuts: &[u32]) -> Self {
        let mut legal = vec![true; 1 << attributes];
        for &cut in cuts {
            legal[cut as usize] = false;
        }
        let mut place = vec![0; legal.len()];
        let mut combinations = Vec::new();
        let mut by_order = vec![0.0; attributes + 1];
        for set in 0..legal.len() {
            let members = (0..attributes).filter(|attribute| set >> attribute & 1 == 1);
            if !legal[set] || members.into_iter().any(|one| !legal[set & !(1 << one)]) {
                legal[set] = false;
                continue;
            }
            place[set] = combinations.len();
            let lowest = (set.trailing_zeros() as usize).min(attributes - 1);
            combinations.push((set as u32, lowest, place[set & set.wrapping_sub(1)]));
            by_order[set.count_ones() as usize] += 1.0;
        }
        Self {
            attributes,
            legal,
            combinations,
            by_order,
        }
    }

    /// Whether a filter stores so many combinations.
    pub(super) fn is_buildable(&self) -> bool {
        self.combinations.len() <= MAX_COMBINATIONS
    }

    /// Cells with these sizes.
    pub(super) fn cells(&self, sizes: &[f64]) -> f64 {
        let mut products = Vec::with_capacity(self.combinations.len());
        let mut sum = 0.0;
        for &(mask, lowest, rest) in &self.combinations {
            let product = if mask == 0 {
                1.0
            } else {
                products[rest] * sizes[lowest]
            };
            products.push(product);
            sum += product;
        }
        sum
    }

    /// Cells if every attribute has this size.
    pub(super) fn cells_of_equal(&self, size: f64) -> f64 {
        // Horner's rule on Σ count_r m^r.
        self.by_order
            .iter()
            .rev()
            .fold(0.0, |sum, count| sum * size + count)
    }

    /// The maximal stored subsets of a query; the only ones that it has to look at.
    pub(super) fn maximal_subsets(&self, query: u32) -> Vec<u32> {
        if self.legal[query as usize] {
            return vec![query];
        }
        let grows = |subset: u32| {
            (0..self.attributes).any(|attribute| {
                let one = 1 << attribute;
                query & one != 0 && subset & one == 0 && self.legal[(subset | one) as usize]
            })
        };
        let stored = self.combinations.iter().map(|&(mask, ..)| mask);
        stored
            .filter(|&mask| mask & !query == 0 && !grows(mask))
            .collect()
    }
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "whole numbers are exact")]
mod tests {
    use super::*;
    use crate::filters::matrix_sizing::{cells, legal_combinations, maximal_legal_subsets};

    #[test]
    fn there_are_as_many_families_as_simplicial_complexes() {
        for (attributes, families) in [(1, 1), (2, 2), (3, 9), (4, 114), (5, 6894)] {
            assert_eq!(all_cut_families(attributes).unwrap().len(), families);
        }
        assert!(all_cut_families(6).is_none());
    }

    #[test]
    fn stored_combinations_agree_with_the_plain_definition() {
        for attributes in 1..=4 {
            for cuts in all_cut_families(attributes).unwrap() {
                let stored = Stored::new(attributes, &cuts);
                let masks: Vec<u32> = stored.combinations.iter().map(|c| c.0).collect();
                assert_eq!(masks, legal_combinations(attributes, &cuts));
                for query in 1..1 << attributes {
                    let expected = maximal_legal_subsets(query, &cuts);
                    assert_eq!(stored.maximal_subsets(query), expected, "{cuts:?} {query}");
                }
                let sizes = &[7, 3, 4, 2][..attributes];
                let real: Vec<f64> = sizes.iter().map(|&size| size as f64).collect();
                assert_eq!(stored.cells(&real), cells(sizes, &cuts).unwrap() as f64);
                let equal = cells(&vec![9; attributes], &cuts).unwrap() as f64;
                assert_eq!(stored.cells_of_equal(9.0), equal);
            }
        }
    }
}
