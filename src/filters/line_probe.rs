//! Setting and asking the bits of digests in cache lines: what the structures with lines share.
//!
//! A digest has k bits in one line of eight words: one in each of k consecutive words, cyclic, from a
//! random one on. The number of bits is a constant of each loop, so that loops over it are unrolled.
//!
//! Large arrays are taken in batches of 32: the lines of a batch are touched first, all of whose cache
//! misses are then under way together, and probed after that. In a small array touching costs more than
//! it brings.

use super::{HipCounter, Sighting};
use crate::bits::{Line, Lines, WORDS_PER_LINE};
use crate::hashing::{Digest, mix, reduce};
use std::hint::black_box;

/// Stream of [`mix`] that chooses the line; part of the structures' definition.
const LINE: u64 = 0x10;

/// Stream of [`mix`] that chooses the bits in the line.
const BITS: u64 = 0x11;

/// Digests whose lines are touched together: about as many misses as a core has under way.
const BATCH: usize = 32;

/// Bytes from which lines are touched first: what does not fit into the second-level cache.
const TOUCH_FROM_BYTES: u64 = 1 << 20;

/// Sets the bits of `digest`, `probes` (1 to 8) of them, and counts it if it is new.
#[inline]
pub(super) fn insert(
    lines: &mut Lines,
    probes: u32,
    counter: &mut HipCounter,
    digest: Digest,
) -> Sighting {
    let lines = lines.as_mut_slice();
    match probes {
        1 => insert_one::<1>(lines, counter, digest),
        2 => insert_one::<2>(lines, counter, digest),
        3 => insert_one::<3>(lines, counter, digest),
        4 => insert_one::<4>(lines, counter, digest),
        5 => insert_one::<5>(lines, counter, digest),
        6 => insert_one::<6>(lines, counter, digest),
        7 => insert_one::<7>(lines, counter, digest),
        _ => insert_one::<8>(lines, counter, digest),
    }
}

/// The same for many digests in order; the answers are appended.
pub(super) fn insert_all(
    lines: &mut Lines,
    probes: u32,
    counter: &mut HipCounter,
    digests: &[Digest],
    sightings: &mut Vec<Sighting>,
) {
    match probes {
        1 => insert_many::<1>(lines, counter, digests, sightings),
        2 => insert_many::<2>(lines, counter, digests, sightings),
        3 => insert_many::<3>(lines, counter, digests, sightings),
        4 => insert_many::<4>(lines, counter, digests, sightings),
        5 => insert_many::<5>(lines, counter, digests, sightings),
        6 => insert_many::<6>(lines, counter, digests, sightings),
        7 => insert_many::<7>(lines, counter, digests, sightings),
        _ => insert_many::<8>(lines, counter, digests, sightings),
    }
}

/// Whether the bits of `digest` are all set.
#[inline]
pub(super) fn contains(lines: &Lines, probes: u32, digest: Digest) -> bool {
    let bits = mix(digest, BITS);
    let lines = lines.as_slice();
    let line = &lines[line_of(digest, lines.len())];
    (0..probes).all(|probe| {
        let (word, mask) = place(bits, probe);
        line[word] & mask != 0
    })
}

fn insert_many<const K: usize>(
    lines: &mut Lines,
    counter: &mut HipCounter,
    digests: &[Digest],
    sightings: &mut Vec<Sighting>,
) {
    let touch = lines.memory_bytes() >= TOUCH_FROM_BYTES;
    let lines = lines.as_mut_slice();
    // A copy that can live in registers, which one behind a reference cannot.
    let mut running = *counter;
    if touch {
        for batch in digests.chunks(BATCH) {
            let mut touched = 0;
            for &digest in batch {
                touched ^= lines[line_of(digest, lines.len())][0];
            }
            black_box(touched);
            sightings.extend(
                batch
                    .iter()
                    .map(|&digest| insert_one::<K>(lines, &mut running, digest)),
            );
        }
    } else {
        sightings.extend(
            digests
                .iter()
                .map(|&digest| insert_one::<K>(lines, &mut running, digest)),
        );
    }
    *counter = running;
}

#[expect(
    clippy::inline_always,
    reason = "a call costs a tenth of an insertion, measured"
)]
#[inline(always)]
fn insert_one<const K: usize>(
    lines: &mut [Line],
    counter: &mut HipCounter,
    digest: Digest,
) -> Sighting {
    let bits = mix(digest, BITS);
    let index = line_of(digest, lines.len());
    let line = &mut lines[index];
    let mut missing = 0;
    let mut before = [0; K];
    for (probe, before) in (0..).zip(&mut before) {
        let (word, mask) = place(bits, probe);
        *before = line[word];
        missing |= !line[word] & mask;
        line[word] |= mask;
    }
    if missing == 0 {
        return Sighting::Repeat;
    }
    // The product of the words' shares of set bits; in whole numbers up to 64^8 = 2^48.
    let set: u64 = before
        .iter()
        .map(|word| u64::from(word.count_ones()))
        .product();
    let all = 1_u64 << (6 * K);
    counter.record(set as f64 / all as f64);
    Sighting::First
}

#[inline]
fn line_of(digest: Digest, lines: usize) -> usize {
    reduce(mix(digest, LINE), lines as u64) as usize
}

/// Word and bit of the `probe`-th probe: consecutive words, each with six random bits of its own.
#[inline]
fn place(bits: u64, probe: u32) -> (usize, u64) {
    let word = ((bits >> 61) as u32 + probe) as usize % WORDS_PER_LINE;
    (word, 1 << (bits >> (6 * probe) & 63))
}
