//! Queries of many elements with all their attributes.
//!
//! One cell of all elements of a batch is looked at before the next of those that are left. The
//! addresses of the cells are computed first, by vectors where the machine has them, and nothing
//! that is computed depends on what is loaded: so the cells of many elements come from memory side
//! by side. Elements that are not there are thrown out together once they are worth it: while there
//! are few, looking at their next cells costs less than moving all others.

#![expect(
    clippy::inline_always,
    reason = "a call that is not inlined runs without the vector instructions of this machine"
)]

use super::MatrixFilter;
use super::layout::Layout;
use crate::hashing::{Digest, NumberedProbes, ProductWork, Products, run_with_products};
use crate::matrix_sizing::{MAX_ATTRIBUTES, members};

/// Elements that are asked for together: their numbers fit in a byte.
const BATCH: usize = 128;

/// Elements whose cells are computed together: the words of the largest vectors.
const GROUP: usize = 8;

/// One in this many has to be absent before absent elements are thrown out.
const WORTH_IT: usize = 4;

impl MatrixFilter {
    /// [`MatrixFilter::are_set`] of the combinations at `places` for each of many elements,
    /// appended to `answers`; `attributes` has the digests of the attributes in `mask`, one element
    /// after the other.
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
        macro_rules! run {
            ($room:expr) => {
                run_with_products(
                    largest,
                    Query::<'_, { $room }> { filter: self, mask, places, attributes, answers },
                )
            };
        }
        match Layout::room(mask.count_ones() as usize) {
            1 => run!(1),
            2 => run!(2),
            3 => run!(3),
            4 => run!(4),
            8 => run!(8),
            _ => run!(MAX_ATTRIBUTES),
        }
    }
}

/// The elements that are asked for, the attributes in `mask` of one after the other, and the
/// answers.
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
            asked.take::<P>(&given, batch);
            'all: for number in 0..filter.probes {
                asked.compute_indices::<P>(&sizes, number);
                for &place in places {
                    let there = asked.look(words, filter.layout.way_of(place, &given));
                    if there == 0 {
                        asked.left = 0;
                        break 'all;
                    }
                    if (asked.left - there) * WORTH_IT >= asked.left {
                        asked.throw_out();
                    }
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

/// Elements that are asked for.
struct Asked<const MOST: usize> {
    /// Attributes of an element that are given; there is no more of the others.
    arity: usize,
    /// Elements that were not thrown out: they are the first of all arrays.
    left: usize,
    /// Their numbers in the batch.
    elements: [u8; BATCH],
    /// 1 if all cells were set up to now; 0 behind the last.
    there: [u8; BATCH],
    /// Their hash functions, attribute by attribute.
    states: [[u64; BATCH]; MOST],
    /// Their indices under the function at hand.
    indices: [[u64; BATCH]; MOST],
}

impl<const MOST: usize> Asked<MOST> {
    fn new(arity: usize) -> Self {
        Self {
            // Where there is as much room as attributes, the number of rounds is known beforehand.
            arity: if MOST > 4 { arity } else { MOST },
            left: 0,
            elements: [0; BATCH],
            there: [0; BATCH],
            states: [[0; BATCH]; MOST],
            indices: [[0; BATCH]; MOST],
        }
    }

    /// Asks for these values of the attributes `given`, and for none of those before.
    #[inline(always)]
    fn take<P: Products>(&mut self, given: &[usize], batch: &[Digest]) {
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

    /// Elements that are left, in whole groups.
    #[inline(always)]
    fn width(&self) -> usize {
        self.left.next_multiple_of(GROUP)
    }

    /// The index of each attribute under function `number`.
    #[inline(always)]
    fn compute_indices<P: Products>(&mut self, sizes: &[u64], number: u32) {
        let width = self.width();
        for ((states, indices), &size) in self.states.iter().zip(&mut self.indices).zip(sizes) {
            let (states, indices) = (&states[..width], &mut indices[..width]);
            NumberedProbes::positions_of::<P>(states, number, size, indices);
        }
    }

    /// Looks at one cell of each; how many are there still.
    #[inline(always)]
    fn look(&mut self, words: &[u64], (constant, strides): (u64, [u64; MOST])) -> usize {
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
        count
    }

    /// Throws out those that are not there.
    #[inline(always)]
    fn throw_out(&mut self) {
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
