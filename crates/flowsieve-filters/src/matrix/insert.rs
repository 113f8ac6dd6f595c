//! Insertions of many elements.
//!
//! No two combinations share a cell, so the combinations are taken one after the other, each with
//! all elements of a batch in order. All indices are computed first.

use super::MatrixFilter;
use crate::hashing::{Digest, ProbeBatch};
use crate::{DigestColumns, MembershipFilter, Sighting};

/// Most cells of an element of a batch. With more cells it pays to insert element by element, which
/// first checks whether all are set.
const MOST_CELLS: usize = 16;

/// A number for each element of a batch.
type Row = [u64; ProbeBatch::MOST];

/// Memory of batches, kept so that none has to be allocated.
#[derive(Clone, Debug)]
pub(super) struct Rows {
    /// The index of each attribute under each function, attribute by attribute; empty if elements
    /// have too many cells.
    indices: Vec<Row>,
    /// The cell of a combination under each function.
    cells: Vec<Row>,
}

impl Rows {
    /// Allocates rows for this many attributes, hash functions and stored combinations.
    pub(super) fn new(attributes: usize, probes: usize, combinations: usize) -> Self {
        let rows = if combinations * probes > MOST_CELLS { 0 } else { probes };
        Self {
            indices: vec![[0; ProbeBatch::MOST]; attributes * rows],
            cells: vec![[0; ProbeBatch::MOST]; rows],
        }
    }
}

impl MatrixFilter {
    pub(super) fn insert_all(
        &mut self,
        elements: DigestColumns<'_>,
        sightings: &mut Vec<Sighting>,
    ) {
        if self.rows.cells.is_empty() {
            sightings.extend(elements.iter().map(|element| self.insert(element)));
            return;
        }
        let batches = elements.attributes;
        for attributes in batches.chunks(ProbeBatch::MOST * self.sizes.len()) {
            self.insert_some(attributes, sightings);
        }
    }

    /// Inserts up to [`ProbeBatch::MOST`] elements, at least one.
    fn insert_some(&mut self, attributes: &[Digest], sightings: &mut Vec<Sighting>) {
        let (arity, probes) = (self.sizes.len(), self.probes as usize);
        let elements = attributes.len() / arity;
        let sizes = self.sizes.iter().enumerate();
        for ((attribute, &size), rows) in sizes.zip(self.rows.indices.chunks_exact_mut(probes)) {
            let digests = attributes.iter().skip(attribute).step_by(arity);
            let batch = ProbeBatch::new(digests.copied(), 1 + attribute as u64);
            for (number, row) in (0..).zip(rows) {
                batch.find(number, size, row);
            }
        }
        self.firsts[0] += u64::from(self.bits.set(0));
        let any = &mut [0; ProbeBatch::MOST][..elements];
        for place in 1..self.layout.steps.len() {
            let step = self.layout.steps[place];
            let fresh = &mut [0; ProbeBatch::MOST][..elements];
            if !self.is_full(place) {
                self.set_cells(place, fresh);
            }
            let new = fresh.iter().map(|&fresh| u64::from(fresh.min(1)));
            self.firsts[place] += new.sum::<u64>();
            for (any, &fresh) in any.iter_mut().zip(&*fresh) {
                *any |= fresh;
            }
            if step.parent == 0 {
                let size = self.sizes[step.attribute];
                self.singles[step.attribute].record_all(fresh, size, self.probes);
            }
        }
        sightings.extend(Sighting::of_all_fresh(any));
    }

    /// Sets the cells of a combination, and adds the number that were clear to `fresh` for each
    /// element.
    fn set_cells(&mut self, place: usize, fresh: &mut [u8]) {
        let probes = self.probes as usize;
        for (number, cells) in self.rows.cells.iter_mut().enumerate() {
            let cells = &mut cells[..fresh.len()];
            cells.fill(0);
            for step in self.layout.chain(place) {
                let indices = &self.rows.indices[step.attribute * probes + number];
                for (cell, index) in cells.iter_mut().zip(indices) {
                    *cell += step.constant + index * step.stride;
                }
            }
        }
        self.bits.set_rows(&self.rows.cells, fresh);
    }
}
