//! Setting the bits of elements of several digests each: the whole and its combinations, in turn, in the
//! same lines.
//!
//! A digest sees the bits of all digests before it, also those of its own element. So rows are filled in
//! that order, and each counter takes those at its own places.

#![expect(
    clippy::inline_always,
    reason = "a call that is not inlined runs without the vector instructions of this machine, and takes twice the time"
)]

use super::count::LineCounter;
use super::full::FullPlaces;
use super::instructions::{Instructions, Work};
use super::places::BATCH;
use super::probe;
use super::row::{DIGESTS, Digests, Inserted, Row, Set, Sets, clear_in};
use crate::Sighting;
use crate::bits::Line;

/// A row's worth of elements to be inserted, one after the other.
pub(super) struct InsertInTurn<'a> {
    pub(super) lines: &'a mut [Line],
    pub(super) touch: bool,
    pub(super) written: &'a mut u64,
    pub(super) full: &'a mut FullPlaces,
    /// One for each digest of an element.
    pub(super) counters: &'a mut [LineCounter],
    /// For digests that set as many bits as the counters say.
    pub(super) row: &'a mut Row,
    /// The digests of all elements, and whatever there is after them.
    pub(super) digests: &'a Digests,
    /// How many elements.
    pub(super) elements: usize,
    /// Which digests of a whole row are an element's first, as [`every`] gives them.
    pub(super) first: Set,
    /// The answer for the first digest of each element.
    pub(super) sightings: &'a mut Vec<Sighting>,
}

impl Work for InsertInTurn<'_> {
    #[inline(always)]
    fn run_with(mut self, instructions: impl Instructions) {
        if self.counts_alike() {
            self.insert_row(instructions);
        } else {
            self.insert_one_by_one();
        }
    }
}

impl InsertInTurn<'_> {
    /// Whether each count has the same sample for all of the digests, however many are new.
    fn counts_alike(&mut self) -> bool {
        let probes = self.counters.iter().map(|it| u64::from(it.probes()));
        let (written, more) = (*self.written, probes.sum::<u64>() * self.elements as u64);
        let mut counting = self.counters.iter_mut().filter(|it| it.counts());
        counting.all(|it| it.sample_until(written, written + more).is_some())
    }

    #[inline(always)]
    fn insert_row(&mut self, instructions: impl Instructions) {
        let columns = self.counters.len();
        let len = self.elements * columns;
        let batches = &self.digests[..len.div_ceil(BATCH)];
        for counter in self.counters.iter() {
            if counter.counts() && counter.is_crowded() {
                self.full.keep(counter.probes(), self.lines);
            }
        }
        self.row.find(instructions, self.lines, batches, len);
        self.row.insert(instructions, self.lines, self.touch);
        let firsts = (0..len).step_by(columns).map(|number| {
            if self.row.is_new(number) {
                Sighting::First
            } else {
                Sighting::Repeat
            }
        });
        self.sightings.extend(firsts);
        let new = self.row.new_ones(instructions);
        let all = Set::MAX >> (DIGESTS - len);
        let (mut sampled, mut may_rise) = (0, 0);
        // Columns that set as many bits have the same sample.
        let mut last = None;
        for (column, counter) in self.counters.iter_mut().enumerate() {
            if !counter.is_on() {
                continue;
            }
            let of_column = all & self.first << column;
            may_rise |= of_column & clear_in(instructions, batches, counter.clear_bits());
            if !counter.counts() {
                continue;
            }
            let firsts = u64::from((new & of_column).count_ones());
            counter.add(firsts);
            *self.written += u64::from(counter.probes()) * firsts;
            let sample = counter.current_sample();
            let in_sample = match last {
                Some((same, digests)) if same == sample => digests,
                _ => clear_in(instructions, batches, sample.mask()),
            };
            last = Some((sample, in_sample));
            sampled |= of_column & in_sample;
        }
        let sets = Sets {
            new,
            sampled,
            may_rise,
        };
        let array = Inserted {
            lines: self.lines,
            full: self.full,
        };
        let told = &mut [(); DIGESTS];
        self.row
            .count(instructions, array, batches, self.counters, sets, told);
    }

    fn insert_one_by_one(&mut self) {
        let columns = self.counters.len();
        let digests = &self.digests.as_flattened()[..self.elements * columns];
        for digests in digests.chunks_exact(columns) {
            for (column, (&digest, counter)) in digests.iter().zip(&mut *self.counters).enumerate()
            {
                let sighting = probe::insert(self.lines, self.written, self.full, counter, digest);
                if column == 0 {
                    self.sightings.push(sighting);
                }
            }
        }
    }
}

/// The first of this many, and every one as far from the last.
pub(super) const fn every(columns: usize) -> Set {
    let mut set = 0;
    let mut number = 0;
    while number < DIGESTS {
        set |= 1 << number;
        number += columns;
    }
    set
}
