//! Queries of many elements with the same attributes given.
//!
//! A batch looks at one cell of all its elements before the next cell of those that are left. The
//! addresses of the cells are computed first, by vectors if the machine has them, and do not depend
//! on what is loaded, so the loads of many elements overlap. Absent elements are dropped together
//! once there are enough of them: to look at the next cells of a few costs less than to move all
//! others.

use super::MatrixFilter;
use super::layout::with_room;
use crate::hashing::{Digest, NumberedProbes, ProductWork, Products, run_with_products};
use crate::matrix_sizing::members;

/// Elements of a batch: their numbers fit into a byte.
const BATCH: usize = 128;

/// Elements whose cells are computed together: the words of the largest vectors.
const GROUP: usize = 8;

/// Absent elements are dropped when they are at least one in this many.
const WORTH_IT: usize = 4;

impl MatrixFilter {
    /// Appends [`MatrixFilter::are_set`] of the combinations at `places` to `answers` for each of
    /// many elements. `attributes` holds the digests of the attributes in `mask`, one element after
    /// the other.
    pub(super) fn have_all(
        &self,
        mask: u32,
        places: &[u16],
        attributes: &[Digest],
        answers: &mut Vec<bool>,
    ) {
        let places = places.iter().copied();
        let places: Vec<u16> = places.filter(|&place| !self.is_full(place.into())).collect();
        if places.is_empty() {
            let elements = attributes.len() / mask.count_ones() as usize;
            answers.resize(answers.len() + elements, true);
            return;
        }
        let largest = self.sizes.iter().copied().max().unwrap_or(0);
        let places = &*places;
        with_room!(mask.count_ones() as usize, MOST => run_with_products(
            largest,
            Query::<'_, MOST> { filter: self, mask, places, attributes, answers },
        ));
    }
}

/// Queried elements, given by the digests of their attributes in `mask`, and the answers.
struct Query<'a, const MOST: usize> {
    filter: &'a MatrixFilter,
    mask: u32,
    places: &'a [u16],
    attributes: &'a [Digest],
    answers: &'a mut Vec<bool>,
}

impl<const MOST: usize> ProductWork for Query<'_, MOST> {
    #[inline(always)]
    fn run_with<P: Products>(self) {
        let Self { filter, mask, places, attributes, answers } = self;
        let given: Vec<usize> = members(mask).collect();
        let sizes: Vec<u64> = given.iter().map(|&member| filter.sizes[member]).collect();
        let words = filter.bits.words();
        let mut asked = Asked::<MOST>::new(given.len());
        for batch in attributes.chunks(BATCH * given.len()) {
            asked.start::<P>(&given, batch);
            for number in 0..filter.probes {
                asked.compute_indices::<P>(&sizes, number);
                let mut cells =
                    places.iter().map(|&place| filter.layout.cell_map_of(place, &given));
                if !cells.all(|cells| asked.look(words, cells)) {
                    break;
                }
            }
            let first = answers.len();
            answers.resize(first + batch.len() / given.len(), false);
            for at in 0..asked.left {
                answers[first + usize::from(asked.elements[at])] = asked.there[at] != 0;
            }
        }
    }
}

/// The elements of a batch that are not dropped yet.
struct Asked<const MOST: usize> {
    /// Number of given attributes.
    arity: usize,
    /// Number of elements that are left; they are the first in all arrays.
    left: usize,
    /// Their numbers in the batch.
    elements: [u8; BATCH],
    /// 1 if all cells so far were set, and 0 after the last element.
    there: [u8; BATCH],
    /// States of their hash functions, attribute by attribute.
    states: [[u64; BATCH]; MOST],
    /// Their indices under the present hash function.
    indices: [[u64; BATCH]; MOST],
}

impl<const MOST: usize> Asked<MOST> {
    fn new(arity: usize) -> Self {
        Self {
            // With exactly as much room as attributes, the number of rounds is a constant.
            arity: if MOST > 4 { arity } else { MOST },
            left: 0,
            elements: [0; BATCH],
            there: [0; BATCH],
            states: [[0; BATCH]; MOST],
            indices: [[0; BATCH]; MOST],
        }
    }

    /// Begins with these values of the attributes `given`.
    #[inline(always)]
    fn start<P: Products>(&mut self, given: &[usize], batch: &[Digest]) {
        self.left = batch.len() / given.len();
        for at in 0..BATCH {
            self.elements[at] = at as u8;
            self.there[at] = u8::from(at < self.left);
        }
        let width = self.width();
        let of_given = self.states.iter_mut().zip(given).take(self.arity);
        for (place, (states, &attribute)) in of_given.enumerate() {
            let digests = batch.iter().skip(place).step_by(given.len());
            for (state, digest) in states.iter_mut().zip(digests) {
                *state = digest.value();
            }
            NumberedProbes::states_of::<P>(&mut states[..width], 1 + attribute as u64);
        }
    }

    /// Returns the number of elements that are left, rounded up to whole groups.
    #[inline(always)]
    fn width(&self) -> usize {
        self.left.next_multiple_of(GROUP)
    }

    /// Computes the index of each attribute under function `number`.
    #[inline(always)]
    fn compute_indices<P: Products>(&mut self, sizes: &[u64], number: u32) {
        let width = self.width();
        for ((states, indices), &size) in self.states.iter().zip(&mut self.indices).zip(sizes) {
            let (states, indices) = (&states[..width], &mut indices[..width]);
            NumberedProbes::positions_of::<P>(states, number, size, indices);
        }
    }

    /// Looks at one cell of each element, and drops those that are absent if these are many. Returns
    /// whether any may still be present.
    #[inline(always)]
    fn look(&mut self, words: &[u64], (constant, strides): (u64, [u64; MOST])) -> bool {
        let groups = self.width() / GROUP;
        let (all, _) = self.there.as_chunks_mut::<GROUP>();
        for (group, there) in all[..groups].iter_mut().enumerate() {
            let mut cells = [constant; GROUP];
            for (indices, &stride) in self.indices.iter().zip(&strides).take(self.arity) {
                let indices = indices.as_chunks::<GROUP>().0[group];
                for (cell, index) in cells.iter_mut().zip(indices) {
                    *cell += index * stride;
                }
            }
            for (there, cell) in there.iter_mut().zip(cells) {
                // A number and no comparison: see `BitArray::set`.
                *there &= (words[(cell / 64) as usize] >> (cell % 64)) as u8;
            }
        }
        let mut count = 0;
        for &there in &self.there {
            count += usize::from(there);
        }
        if count > 0 && (self.left - count) * WORTH_IT >= self.left {
            self.drop_absent();
        }
        count > 0
    }

    /// Drops the elements that are absent.
    #[inline(always)]
    fn drop_absent(&mut self) {
        let asked = self.left;
        let mut left = 0;
        for at in 0..asked {
            self.elements[left] = self.elements[at];
            for rows in [&mut self.states, &mut self.indices] {
                for row in rows.iter_mut().take(self.arity) {
                    row[left] = row[at];
                }
            }
            left += usize::from(self.there[at]);
        }
        for (at, there) in self.there[..asked].iter_mut().enumerate() {
            *there = u8::from(at < left);
        }
        self.left = left;
    }
}
