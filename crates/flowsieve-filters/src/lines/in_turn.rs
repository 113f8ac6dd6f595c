//! Setting the bits of elements of several digests each: the whole and its combinations, in turn,
//! in the same lines; and of each as many digests as it has lines.
//!
//! A digest sees the bits of all digests before it, also those of its own element. So rows are
//! filled in that order, and each counter takes those at its own places.

#![expect(
    clippy::inline_always,
    reason = "a call that is not inlined runs without the vector instructions of this machine, and takes twice the time"
)]

use super::count::LineCounter;
use super::full::FullPlaces;
use super::instructions::{Instructions, Work};
use super::places::BATCH;
use super::probe::{self, Told};
use super::row::{Counted, DIGESTS, Digests, Inserted, Row, Set, Sets, clear_in};
use super::shares;
use crate::bits::Line;
use crate::hashing::Digest;

/// Which digests of an element are for which counter.
pub(super) struct Columns {
    /// The number of the counter, for each digest.
    of_counter: Vec<u8>,
    /// The first digest of each counter, and how many it has: one for each line.
    leads: Vec<(usize, usize)>,
    /// The digests of a whole row that are an element's first.
    first: Set,
}

impl Columns {
    /// The digests of these counters, of 1 to [`DIGESTS`] lines together.
    pub(super) fn new(counters: &[LineCounter]) -> Self {
        let (mut of_counter, mut leads) = (Vec::new(), Vec::new());
        for (number, counter) in counters.iter().enumerate() {
            let lines = shares::number_of(counter.probes());
            leads.push((of_counter.len(), lines));
            of_counter.extend(std::iter::repeat_n(number as u8, lines));
        }
        let first = every(of_counter.len());
        Self { of_counter, leads, first }
    }

    /// Digests of an element.
    pub(super) const fn len(&self) -> usize {
        self.of_counter.len()
    }

    /// Spreads the digests of the counters, which stand in front, to their places.
    #[inline]
    pub(super) fn spread(&self, digests: &mut [Digest]) {
        // The last one first: what is overwritten was moved before.
        for (number, &(lead, lines)) in self.leads.iter().enumerate().rev() {
            let digest = digests[number];
            for share in 0..lines {
                digests[lead + share] = shares::digest_of(digest, share);
            }
        }
    }
}

/// A row's worth of elements to be inserted, one after the other.
pub(super) struct InsertInTurn<'a, T> {
    pub(super) lines: &'a mut [Line],
    pub(super) touch: bool,
    pub(super) written: &'a mut u64,
    pub(super) full: &'a mut FullPlaces,
    /// One for each digest of an element, or for several that are one in several lines.
    pub(super) counters: &'a mut [LineCounter],
    pub(super) columns: &'a Columns,
    /// For digests that set as many bits as the counters say.
    pub(super) row: &'a mut Row,
    /// The digests of all elements, and whatever there is after them.
    pub(super) digests: &'a Digests,
    /// How many elements.
    pub(super) elements: usize,
    /// The answer for the first counter's digest of each element.
    pub(super) told: &'a mut Vec<T>,
}

impl<T: Told> Work for InsertInTurn<'_, T> {
    #[inline(always)]
    fn run_with(mut self, instructions: impl Instructions) {
        if self.counts_alike() && !self.is_better_one_by_one() {
            self.insert_row(instructions);
        } else {
            self.insert_one_by_one(instructions);
        }
    }
}

impl<T: Told> InsertInTurn<'_, T> {
    /// Whether each count has the same sample for all of the digests, however many are new.
    fn counts_alike(&mut self) -> bool {
        let probes = self.counters.iter().map(|it| u64::from(it.probes()));
        let (written, more) = (*self.written, probes.sum::<u64>() * self.elements as u64);
        let mut counting = self.counters.iter_mut().filter(|it| it.counts());
        counting.all(|it| it.sample_until(written, written + more).is_some())
    }

    /// Whether digests are inserted one by one: a crowded counter needs each line as it was before.
    /// One by one it is at hand; after a row it has to be restored, which takes longer than the row
    /// saves where lines are near.
    fn is_better_one_by_one(&self) -> bool {
        let mut counting = self.counters.iter().filter(|it| it.counts());
        !self.touch && counting.any(LineCounter::is_crowded)
    }

    #[inline(always)]
    fn insert_row(&mut self, instructions: impl Instructions) {
        let columns = self.columns.len();
        let len = self.elements * columns;
        let batches = &self.digests[..len.div_ceil(BATCH)];
        for counter in self.counters.iter() {
            if counter.counts() && counter.is_crowded() {
                self.full.keep(counter.probes(), self.lines);
            }
        }
        self.row.find(instructions, self.lines, batches, len);
        self.row.insert(instructions, self.lines, self.touch);
        let in_lines = self.row.new_ones(instructions);
        let all = Set::MAX >> (DIGESTS - len);
        let (mut new, mut sampled, mut may_rise) = (0, 0, 0);
        // Columns that set as many bits have the same sample.
        let mut last = None;
        let leads = self.columns.leads.iter();
        for (&(lead, lines), counter) in leads.zip(&mut *self.counters) {
            let of_column = all & self.columns.first << lead;
            // New in one of its lines.
            let in_any = (1..lines).fold(in_lines, |any, line| any | in_lines >> line);
            new |= of_column & in_any;
            if !counter.is_on() {
                continue;
            }
            may_rise |= of_column & clear_in(instructions, batches, counter.clear_bits());
            if !counter.counts() {
                continue;
            }
            let firsts = u64::from((in_any & of_column).count_ones());
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
        let sets = Sets { new, sampled, may_rise };
        let array = Inserted { lines: self.lines, full: self.full };
        let counted = Counted { counters: self.counters, of_column: &self.columns.of_counter };
        let told = &mut [T::REPEAT; DIGESTS];
        for number in (0..len).step_by(columns) {
            if new >> number & 1 != 0 {
                told[number] = T::FIRST;
            }
        }
        self.row.count(instructions, array, batches, counted, sets, told);
        self.told.extend(told[..len].iter().step_by(columns));
    }

    #[inline(always)]
    fn insert_one_by_one(&mut self, instructions: impl Instructions) {
        let columns = self.columns.len();
        let digests = &self.digests.as_flattened()[..self.elements * columns];
        for digests in digests.chunks_exact(columns) {
            let leads = self.columns.leads.iter();
            for (&(lead, _), counter) in leads.zip(&mut *self.counters) {
                let digest = digests[lead];
                let told = probe::insert(
                    instructions,
                    self.lines,
                    self.written,
                    self.full,
                    counter,
                    digest,
                );
                if lead == 0 {
                    self.told.push(told);
                }
            }
        }
    }
}

/// The first of this many, and every one as far from the last.
const fn every(columns: usize) -> Set {
    let mut set = 0;
    let mut number = 0;
    while number < DIGESTS {
        set |= 1 << number;
        number += columns;
    }
    set
}
