//! A row of batches: a first pass reads all bits, and a second one sets those of absent digests.
//!
//! No branch predictor knows whether an element is new. So the first pass does not branch on it,
//! and writes nothing. The second one takes the digests that had a clear bit, one after the other:
//! nearly all of them are new, and their lines are in the cache.

use super::full::full_in;
use super::instructions::Instructions;
use super::places::{BATCH, Places, windows};
use crate::bits::{Line, WORDS_PER_LINE};
use crate::hashing::Digest;
use std::hint::black_box;

/// Batches in a row. A vector cannot be loaded right after its bytes were stored one by one, nor
/// the other way round, before the stores have reached the cache. So all places of a row are found
/// before the first of them is read.
pub(super) const ROW: usize = 4;

/// Digests in a row.
pub(super) const DIGESTS: usize = ROW * BATCH;

/// The digests of a whole row.
pub(super) type Digests = [Digest; DIGESTS];

/// [`windows`] of 0 to 8 bits.
const WINDOWS: [u64; WORDS_PER_LINE + 1] = {
    let mut all = [0; WORDS_PER_LINE + 1];
    let mut probes = 1;
    while probes <= WORDS_PER_LINE {
        all[probes] = windows(probes as u32);
        probes += 1;
    }
    all
};

/// Batches of digests.
pub(super) struct Row {
    /// The [`windows`] of each digest.
    windows: [[u64; BATCH]; ROW],
    /// The number of bits that each digest sets.
    probes: [u8; DIGESTS],
    /// Number of digests.
    len: usize,
    places: [Places; ROW],
    /// The digests that had a clear bit, and their number.
    absent: [u8; DIGESTS],
    found: usize,
}

impl Row {
    /// Creates a row for digests that set these numbers of bits, in turn.
    pub(super) fn new(probes: impl Iterator<Item = u32> + Clone) -> Self {
        let mut of_each = [0; DIGESTS];
        let mut all = [[0; BATCH]; ROW];
        let places = all.as_flattened_mut().iter_mut().zip(&mut of_each);
        for ((all, of_each), probes) in places.zip(probes.cycle()) {
            *all = WINDOWS[probes as usize];
            *of_each = probes as u8;
        }
        Self {
            windows: all,
            probes: of_each,
            len: 0,
            places: [Places::NONE; ROW],
            absent: [0; DIGESTS],
            found: 0,
        }
    }

    /// Reads the bits of these digests, at most a row of them, which replace those before.
    #[inline(always)]
    pub(super) fn read(
        &mut self,
        instructions: impl Instructions,
        lines: &[Line],
        touch: bool,
        digests: &[Digest],
    ) {
        self.len = digests.len();
        let (batches, rest) = digests.as_chunks::<BATCH>();
        let mut places = self.windows.iter().zip(&mut self.places);
        for (digests, (windows, places)) in batches.iter().zip(&mut places) {
            instructions.find(digests, lines.len() as u64, windows, places);
        }
        if let (false, Some((windows, places))) = (rest.is_empty(), places.next()) {
            let mut padded = [Digest::from_value(0); BATCH];
            padded[..rest.len()].copy_from_slice(rest);
            instructions.find(&padded, lines.len() as u64, windows, places);
        }
        self.find_absent(instructions, lines, touch);
    }

    /// Finds the digests that have a clear bit.
    #[inline(always)]
    fn find_absent(&mut self, instructions: impl Instructions, lines: &[Line], touch: bool) {
        let mut found = 0;
        for (batch, places) in self.places[..self.len.div_ceil(BATCH)].iter().enumerate() {
            if touch {
                touch_lines(lines, &places.lines);
            }
            for i in 0..BATCH {
                let line = &lines[places.lines[i] as usize];
                let (_, cleared) = instructions.set(line, places.bits[i], places.probed[i]);
                self.absent[found % DIGESTS] = (batch * BATCH + i) as u8;
                found += usize::from(cleared != 0);
            }
        }
        // Drop the padding of the last batch.
        while found > 0 && usize::from(self.absent[found - 1]) >= self.len {
            found -= 1;
        }
        self.found = found;
    }

    /// Iterates over the digests that had a clear bit, in order.
    #[inline(always)]
    pub(super) fn absent(&self) -> impl Iterator<Item = usize> {
        self.absent.iter().take(self.found).map(|&number| number.into())
    }

    /// Sets the bits of a digest. Returns the words in which its bit was clear, and the number of
    /// full places of its window before ([`full_in`]).
    #[inline(always)]
    pub(super) fn set(
        &self,
        instructions: impl Instructions,
        lines: &mut [Line],
        number: usize,
    ) -> (u8, u64) {
        let (places, i) = self.place_of(number);
        let line = &mut lines[places.lines[i] as usize];
        let full = full_in(&instructions.only(line, places.probed[i]));
        let (after, cleared) = instructions.set(line, places.bits[i], places.probed[i]);
        *line = after;
        (cleared, full)
    }

    /// Returns the number of bits that a digest sets, and the number of full places of its window
    /// now.
    #[inline(always)]
    pub(super) fn full_of(
        &self,
        instructions: impl Instructions,
        lines: &[Line],
        number: usize,
    ) -> (u32, u64) {
        let (places, i) = self.place_of(number);
        let probed = instructions.only(&lines[places.lines[i] as usize], places.probed[i]);
        (self.probes[number].into(), full_in(&probed))
    }

    /// Returns the places of the batch of a digest, and its number in the batch.
    #[inline(always)]
    const fn place_of(&self, number: usize) -> (&Places, usize) {
        (&self.places[number / BATCH % ROW], number % BATCH)
    }
}

#[inline(always)]
fn touch_lines(lines: &[Line], indices: &[u64; BATCH]) {
    let mut touched = 0;
    for &index in indices {
        touched ^= lines[index as usize][0];
    }
    black_box(touched);
}
