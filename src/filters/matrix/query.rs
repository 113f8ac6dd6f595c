//! Queries: are the cells of the maximal legal subsets set?

use super::MatrixFilter;
use crate::filters::matrix_sizing::MAX_ATTRIBUTES;
use crate::filters::{Estimate, MultiAttributeFilter, Pattern, PatternAnswer, fill};
use crate::hashing::{Digest, Probes};

impl MatrixFilter {
    /// Whether all k cells of each of the combinations at `places` are set, given their attributes'
    /// digests; those of other attributes may be anything.
    #[inline]
    pub(super) fn are_set(&self, places: &[u16], digest: impl Fn(usize) -> Digest) -> bool {
        match self.sizes.len() {
            1 => self.are_set_among::<1>(places, digest),
            2 => self.are_set_among::<2>(places, digest),
            3 => self.are_set_among::<3>(places, digest),
            4 => self.are_set_among::<4>(places, digest),
            5..=8 => self.are_set_among::<8>(places, digest),
            _ => self.are_set_among::<MAX_ATTRIBUTES>(places, digest),
        }
    }

    /// The same with room for MOST attributes, so that there is no more of it than is needed.
    fn are_set_among<const MOST: usize>(
        &self,
        places: &[u16],
        digest: impl Fn(usize) -> Digest,
    ) -> bool {
        let sizes = &self.sizes[..self.sizes.len().min(MOST)];
        let mut functions: [Probes; MOST] = std::array::from_fn(|attribute| {
            let (digest, size) = match sizes.get(attribute) {
                Some(&size) => (digest(attribute), size),
                None => (Digest::from_value(0), 1),
            };
            Probes::new(digest, 1 + attribute as u64, self.probes, size)
        });
        let mut indices = [0; MOST];
        for _ in 0..self.probes {
            for (index, function) in indices.iter_mut().zip(&mut functions).take(sizes.len()) {
                *index = function.next().unwrap_or_default();
            }
            for &place in places {
                if !self.bits.get(self.layout.cell_at(place, &indices)) {
                    return false;
                }
            }
        }
        true
    }

    pub(super) fn has_all(&self, attributes: &[Digest]) -> bool {
        self.are_set(self.layout.maximal_of_all(), |attribute| {
            attributes[attribute]
        })
    }
}

impl MultiAttributeFilter for MatrixFilter {
    fn contains_where(&self, pattern: Pattern<'_>) -> PatternAnswer {
        let query = pattern.mask();
        let digest = |attribute: usize| {
            // Of the others no cell is looked at.
            pattern.attributes[attribute].unwrap_or(Digest::from_value(0))
        };
        let legal = self.layout.place(query).is_some();
        let all_set = if let Some(places) = self.layout.maximal_of(query) {
            self.are_set(places, digest)
        } else {
            self.layout
                .maximal_subsets(query)
                .all(|place| self.are_set(&[place as u16], digest))
        };
        match (all_set, legal) {
            (false, _) => PatternAnswer::Absent,
            (true, true) => PatternAnswer::Present,
            (true, false) => PatternAnswer::PresentApart,
        }
    }

    /// For single attributes only: see the head of this file for why there is no more.
    fn distinct_of(&self, mask: u32) -> Option<Estimate> {
        if mask.count_ones() != 1 {
            return None;
        }
        let attribute = mask.trailing_zeros() as usize;
        let single = self.singles.get(attribute)?;
        let fill = || fill::independent(single.ones, self.sizes[attribute], self.probes);
        single.counter.known().or_else(fill)
    }

    fn first_of(&self, mask: u32) -> Option<u64> {
        let place = self.layout.place(mask)?;
        (!self.united).then(|| self.firsts[place])
    }
}
