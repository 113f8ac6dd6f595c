//! Queries: are the cells of the maximal legal subsets set?

use super::MatrixFilter;
use super::layout::with_room;
use crate::hashing::{Digest, NumberedProbes};
use crate::{Estimate, MultiAttributeFilter, Pattern, PatternAnswer, PatternColumns};

/// The hash functions of an element's attributes.
type Functions<const MOST: usize> = [NumberedProbes; MOST];

impl MatrixFilter {
    /// Returns whether all k cells of each of the combinations at `places` are set, given the
    /// digests of their attributes; those of other attributes may be anything.
    #[inline]
    pub(super) fn are_set(&self, places: &[u16], digest: impl Fn(usize) -> Digest) -> bool {
        with_room!(self.sizes.len(), MOST => self.are_set_among::<MOST>(places, digest))
    }

    fn are_set_among<const MOST: usize>(
        &self,
        places: &[u16],
        digest: impl Fn(usize) -> Digest,
    ) -> bool {
        let functions: Functions<MOST> = self.functions(digest);
        let words = self.bits.words();
        (0..self.probes).all(|number| {
            let indices = self.indices(&functions, number);
            places.iter().all(|&place| bit(words, self.layout.cell_at(place, &indices)) != 0)
        })
    }

    pub(super) fn has_all(&self, attributes: &[Digest]) -> bool {
        self.are_set(self.layout.maximal_of_all(), |attribute| attributes[attribute])
    }

    #[inline]
    fn functions<const MOST: usize>(&self, digest: impl Fn(usize) -> Digest) -> Functions<MOST> {
        let mut functions = [NumberedProbes::default(); MOST];
        for (attribute, (function, &size)) in functions.iter_mut().zip(&self.sizes).enumerate() {
            *function = NumberedProbes::new(digest(attribute), 1 + attribute as u64, size);
        }
        functions
    }

    /// Returns the index of each attribute under function `number`.
    #[inline]
    fn indices<const MOST: usize>(&self, functions: &Functions<MOST>, number: u32) -> [u64; MOST] {
        let mut indices = [0; MOST];
        // With exactly as much room as attributes, the number of rounds is a constant.
        let attributes = if MOST > 4 { self.sizes.len() } else { MOST };
        for (index, function) in indices.iter_mut().zip(functions).take(attributes) {
            *index = function.position(number);
        }
        indices
    }
}

/// Returns the bit of a cell, as a number and not a comparison: see `BitArray::set`.
#[inline]
fn bit(words: &[u64], cell: u64) -> u64 {
    words[(cell / 64) as usize] >> (cell % 64) & 1
}

/// Returns the answer to a query, given whether the cells of all its maximal legal subsets are set,
/// and whether it is legal itself.
const fn answer(all_set: bool, legal: bool) -> PatternAnswer {
    match (all_set, legal) {
        (false, _) => PatternAnswer::Absent,
        (true, true) => PatternAnswer::Present,
        (true, false) => PatternAnswer::PresentApart,
    }
}

impl MultiAttributeFilter for MatrixFilter {
    fn contains_where(&self, pattern: Pattern<'_>) -> PatternAnswer {
        let query = pattern.mask();
        let digest = |attribute: usize| {
            // The cells of the other attributes are not looked at.
            pattern.attributes[attribute].unwrap_or(Digest::from_value(0))
        };
        let legal = self.layout.place(query).is_some();
        let all_set = if let Some(places) = self.layout.maximal_of(query) {
            self.are_set(places, digest)
        } else {
            self.layout.maximal_subsets(query).all(|place| self.are_set(&[place as u16], digest))
        };
        answer(all_set, legal)
    }

    fn contains_where_batch(&self, patterns: PatternColumns<'_>, answers: &mut Vec<PatternAnswer>) {
        let Some(places) = self.layout.maximal_of(patterns.mask) else {
            return patterns.for_each(|pattern| answers.push(self.contains_where(pattern)));
        };
        let legal = self.layout.place(patterns.mask).is_some();
        let mut are_set = Vec::with_capacity(patterns.attributes.len() / patterns.given());
        self.have_all(patterns.mask, places, patterns.attributes, &mut are_set);
        answers.extend(are_set.into_iter().map(|all_set| answer(all_set, legal)));
    }

    /// Returns the count of single attributes only: see the module [`matrix`](super) for the
    /// reason.
    fn distinct_of(&self, mask: u32) -> Option<Estimate> {
        if mask.count_ones() != 1 {
            return None;
        }
        let attribute = mask.trailing_zeros() as usize;
        let single = self.singles.get(attribute)?;
        Some(single.estimate(self.sizes[attribute], self.probes))
    }

    fn first_of(&self, mask: u32) -> Option<u64> {
        let place = self.layout.place(mask)?;
        (!self.united).then(|| self.firsts[place])
    }
}
