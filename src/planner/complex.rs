//! The stored combinations of a matrix: a family of sets of attributes that has with each set all
//! of its subsets, and every single attribute.

use crate::filters::MAX_COMBINATIONS;

/// The combinations that a matrix with some cuts stores.
#[derive(Clone, Debug)]
pub(super) struct Stored {
    attributes: usize,
    legal: Vec<bool>,
    /// The legal masks, ascending, the empty one first; for each its lowest attribute and the place
    /// of the rest of it.
    combinations: Vec<(u32, usize, usize)>,
    /// Numbers of masks with 0, 1, …, d attributes.
    by_order: Vec<f64>,
}

impl Stored {
    /// Stores the combinations that contain none of the cuts.
    pub(super) fn new(attributes: usize, cuts: &[u32]) -> Self {
        let mut legal = vec![true; 1 << attributes];
        for &cut in cuts {
            legal[cut as usize] = false;
        }
        for set in 0..legal.len() {
            legal[set] = legal[set] && members(set as u32).all(|one| legal[set & !(1 << one)]);
        }
        let masks = (0..1_u32 << attributes).filter(|&set| legal[set as usize]);
        let masks: Vec<u32> = masks.collect();
        Self::of(attributes, &masks, legal)
    }

    /// Stores these sets, all of their subsets, and every single attribute, in ascending order.
    pub(super) fn of_sets(attributes: usize, sets: &[u32]) -> Self {
        let mut legal = vec![false; 1 << attributes];
        for &set in sets {
            legal[set as usize] = true;
        }
        Self::of(attributes, sets, legal)
    }

    fn of(attributes: usize, sets: &[u32], legal: Vec<bool>) -> Self {
        let mut by_order = vec![0.0; attributes + 1];
        let step = |&set: &u32| {
            by_order[set.count_ones() as usize] += 1.0;
            let lowest = (set.trailing_zeros() as usize).min(attributes - 1);
            let rest = sets.binary_search(&(set & set.wrapping_sub(1)));
            (set, lowest, rest.expect("all subsets are there"))
        };
        let combinations = sets.iter().map(step).collect();
        Self { attributes, legal, combinations, by_order }
    }

    /// Returns the sets in ascending order, the empty one first.
    pub(super) fn sets(&self) -> impl ExactSizeIterator<Item = u32> {
        self.combinations.iter().map(|&(set, ..)| set)
    }

    /// Returns whether a combination is stored.
    pub(super) fn stores(&self, set: u32) -> bool {
        self.legal[set as usize]
    }

    /// Without a set of two or more attributes, and all that contain it.
    pub(super) fn without(&self, set: u32) -> Self {
        let left = self.sets().filter(|&stored| stored & set != set);
        Self::of_sets(self.attributes, &left.collect::<Vec<u32>>())
    }

    /// With a set and all of its subsets; `None` if a filter does not store this many.
    pub(super) fn with(&self, set: u32) -> Option<Self> {
        let mut sets: Vec<u32> = self.sets().collect();
        let mut subset = set;
        while subset != 0 {
            if !self.stores(subset) {
                sets.push(subset);
            }
            if sets.len() > MAX_COMBINATIONS {
                return None;
            }
            subset = (subset - 1) & set;
        }
        sets.sort_unstable();
        Some(Self::of_sets(self.attributes, &sets))
    }

    /// Stores each of these sets that is not stored and cuts each that is, in turn; returns `None`
    /// if a filter cannot store that many.
    pub(super) fn changed(&self, sets: &[u32]) -> Option<Self> {
        let (first, rest) = sets.split_first()?;
        let changed = if self.stores(*first) { self.without(*first) } else { self.with(*first)? };
        if rest.is_empty() {
            return Some(changed);
        }
        changed.changed(rest)
    }

    /// Returns the minimal sets that are not stored, small ones first: the cuts that leave these
    /// combinations.
    pub(super) fn cuts(&self) -> Vec<u32> {
        let mut cuts = Vec::new();
        for set in self.sets() {
            // Each set that is not stored is met once, from its part without its highest attribute.
            let above = (0..self.attributes as u32).filter(|&one| set != 0 && set >> one == 0);
            for grown in above.map(|one| set | 1 << one) {
                let all_stored = || members(grown).all(|one| self.stores(grown & !(1 << one)));
                if !self.stores(grown) && all_stored() {
                    cuts.push(grown);
                }
            }
        }
        cuts.sort_unstable_by_key(|cut| (cut.count_ones(), *cut));
        cuts
    }

    /// Returns the stored sets that no other one contains.
    pub(super) fn facets(&self) -> Vec<u32> {
        self.maximal_in(((1_u64 << self.attributes) - 1) as u32)
    }

    /// Returns whether a filter can store this many combinations.
    pub(super) fn is_buildable(&self) -> bool {
        self.combinations.len() <= MAX_COMBINATIONS
    }

    /// Returns the number of cells with these sizes.
    pub(super) fn cells(&self, sizes: &[f64]) -> f64 {
        let mut products = Vec::with_capacity(self.combinations.len());
        let mut sum = 0.0;
        for &(mask, lowest, rest) in &self.combinations {
            let product = if mask == 0 { 1.0 } else { products[rest] * sizes[lowest] };
            products.push(product);
            sum += product;
        }
        sum
    }

    /// Returns the number of cells if every attribute has this size.
    pub(super) fn cells_of_equal(&self, size: f64) -> f64 {
        // Horner's rule on Σ count_r m^r.
        self.by_order.iter().rev().fold(0.0, |sum, count| sum * size + count)
    }

    /// Returns the maximal stored subsets of a query, the only ones that it has to look at.
    pub(super) fn maximal_subsets(&self, query: u32) -> Vec<u32> {
        if self.stores(query) {
            return vec![query];
        }
        self.maximal_in(query)
    }

    fn maximal_in(&self, query: u32) -> Vec<u32> {
        let is_maximal = |&set: &u32| {
            set & !query == 0 && members(query & !set).all(|one| !self.stores(set | 1 << one))
        };
        self.sets().filter(is_maximal).collect()
    }
}

/// Returns the attributes of a set.
fn members(set: u32) -> impl Iterator<Item = u32> {
    (0..u32::BITS).filter(move |one| set >> one & 1 == 1)
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "whole numbers are exact")]
mod tests {
    use super::super::all_cut_families;
    use super::*;
    use crate::filters::matrix_sizing::{cells, legal_combinations, maximal_legal_subsets};

    #[test]
    fn stored_combinations_agree_with_the_plain_definition() {
        for attributes in 1..=4 {
            for cuts in all_cut_families(attributes).unwrap() {
                let stored = Stored::new(attributes, &cuts);
                let masks: Vec<u32> = stored.sets().collect();
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

    /// Cuts that contain another one are not needed, and the others come back.
    #[test]
    fn the_cuts_are_the_least_sets_that_are_not_stored() {
        for attributes in 1..=4 {
            for cuts in all_cut_families(attributes).unwrap() {
                let mut more = cuts.clone();
                let full = (1 << attributes) - 1;
                more.extend(cuts.iter().map(|cut| cut | (full & !1)));
                assert_eq!(Stored::new(attributes, &more).cuts(), cuts);
            }
        }
        // 560 triples of 16 attributes.
        let triples: Vec<u32> = (0..1 << 16).filter(|s: &u32| s.count_ones() == 3).collect();
        assert_eq!(Stored::new(16, &triples).cuts(), triples);
    }

    #[test]
    fn a_set_goes_with_all_above_it_and_comes_with_all_below_it() {
        for cuts in all_cut_families(4).unwrap() {
            let stored = Stored::new(4, &cuts);
            for set in (0..16_u32).filter(|set| set.count_ones() > 1) {
                let without: Vec<u32> = stored.without(set).sets().collect();
                let cut = [&cuts[..], &[set]].concat();
                assert_eq!(without, legal_combinations(4, &cut));
                let with: Vec<u32> = stored.with(set).unwrap().sets().collect();
                let expected = (0..16).filter(|&s| stored.stores(s) || s & !set == 0);
                assert_eq!(with, expected.collect::<Vec<u32>>());
            }
        }
        let full = (1 << 13) - 1;
        let pairs: Vec<u32> = (0..=full).filter(|s: &u32| s.count_ones() == 2).collect();
        assert!(Stored::new(13, &pairs).with(full).is_none());
        assert!(Stored::new(13, &pairs).with(full >> 2).is_some());
    }
}
