//! The d-left counting Bloom filter: fingerprints with small counters, placed where there is room.
//!
//! # Memory
//!
//! ```text
//!     element ──► digest ──► H (q bits) ──► a₁H  a₂H  a₃H  a₄H   mod 2^q
//!                                            │    │    │    └──► bucket in subtable 4
//!                    top b bits: the bucket  │    │    └───────► bucket in subtable 3
//!                    low r bits: remainder   │    └────────────► bucket in subtable 2
//!                                            └─────────────────► bucket in subtable 1
//!
//!     bucket: 8 cells │ remainder (r bits) : count (c bits) │ … │ 0 : 0 │      count 0: no element
//! ```
//!
//! Four subtables of B = 2^b buckets, q = b + r. With r + c ≤ 16 a bucket has 16 bytes, else 32.
//!
//! # Operations
//!
//! - insert: if a cell of the four buckets has the element's remainder there, count up (a repeat).
//!   Otherwise put (remainder, 1) into the bucket with the fewest elements, the leftmost of several.
//! - contains: one of the four buckets has the remainder.
//! - remove: count down; at 0 the cell is free.
//!
//! A count that has reached 2^c - 1 stays for good. Each `a` is odd, so H → aH mod 2^q is one to one:
//! two elements meet in a cell only if their H are equal, and then they meet in all four buckets. So
//! no element has two cells, and a removal finds the right one.
//!
//! All cost O(1) and touch four cache lines, which do not depend on each other.
//!
//! # When four buckets are full
//!
//! The element goes to the stash, a small table of (H, count) beside the buckets. It holds up to
//! B / 16 + 64 elements; when that is full as well, the element's bucket in subtable 1 is *given
//! up*: from then on everything that hashes to it is contained (until the filter is cleared).
//! An inserted element is thus contained in every case; the price of a bucket given up is 1/B on the
//! false-positive rate. [`DleftFilter::stashed`] and [`DleftFilter::given_up`] tell. At up to 89 % of the cells
//! nothing overflows; at 95 % it is 0.12 % of the elements.
//!
//! # Formulas
//!
//! A false positive has the H of an inserted element: f = 1 - (1 - 2^-q)^n, about n / B · 2^-r
//! ([`super::sizing::dleft_fpr`]). At n = 24 B, which fills 75 % of the cells:
//!
//! | r | bits an element (c = 2) | f | 4-bit counting filter of that f, bits an element |
//! |---|---|---|---|
//! | 10 | 16 | 0.0234 | 31.2 |
//! | 11 | 17.3 | 0.0117 | 37.0 |
//! | 12 | 18.7 | 0.00586 | 42.8 |
//! | 14 | 21.3 | 0.00146 | 54.3 |
//!
//! Cells of exactly r + c bits are the paper's; here a cell takes 16 bits or 32, so r = 14 or 30 are
//! the choices that waste nothing, and since B is a power of two a given n fills between 37 % and 75 %
//! of them ([`FilterSpec::new`](super::FilterSpec::new)).
//!
//! # Distinct elements
//!
//! Until the first removal, and while no bucket is given up: a new element is called a repeat if its
//! H is stored already, with p = (cells and stash entries in use) / 2^q, exactly.
//!
//! # What it cannot do
//!
//! Answer for part of the attributes. Count far: with c = 2 an element inserted three times cannot
//! be removed any more. Be protected against removing a false positive.
//!
//! Reference: Bonomi, Mitzenmacher, Panigrahy, Singh, Varghese, "An improved construction for
//! counting Bloom filters", ESA 2006.

use super::saved::{FilterState, LoadError, StateReader, StateWriter, UnionError};
use super::{
    CounterStats, DigestColumns, ElementDigests, Estimate, FilterStats, HipCounter,
    MembershipFilter, RemovableFilter, Sighting,
};
use crate::bits::BitArray;
use crate::hashing::{Digest, mix};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::io;

/// Subtables (d).
pub(super) const SUBTABLES: usize = 4;

/// Elements whose buckets are fetched together.
const BATCH: usize = 32;

/// Bytes up to which the buckets are taken to be in a cache of their own.
const IN_CACHE: usize = 1 << 20;

/// Cells in a bucket.
pub(super) const CELLS: usize = 8;

/// Stream of [`mix`] from which H comes; part of this structure's definition.
const HASH: u64 = 0x20;

/// The odd multipliers of the four permutations; any odd numbers without a pattern will do. These are
/// digits of pi.
const MULTIPLIERS: [u64; SUBTABLES] = [
    0x243f_6a88_85a3_08d3,
    0x1319_8a2e_0370_7345,
    0xa409_3822_299f_31d1,
    0x082e_fa98_ec4e_6c89,
];

/// Eight cells; a cell is a remainder above a count.
pub trait Bucket: Copy + Debug + Default + Send + 'static {
    /// Bits of a cell.
    const CELL_BITS: u32;

    /// Mask of the cells whose remainder, moved up by the count's bits, is `tag`, and that are in use
    /// (their count is 1 to `largest`).
    fn matches(&self, tag: u32, largest: u32) -> u32;

    /// Mask of the cells in use.
    fn occupied(&self) -> u32;

    /// The cell.
    fn get(&self, cell: u32) -> u32;

    /// Replaces the cell.
    fn set(&mut self, cell: u32, value: u32);
}

/// A bucket of 16-bit cells, four to a word, in a quarter of a cache line.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(16))]
pub struct Bucket16([u64; 2]);

/// A bucket of 32-bit cells, two to a word, in half a cache line.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(32))]
pub struct Bucket32([u64; 4]);

/// All cells of a word are compared at once: `$ones` is a word whose cells are all 1, and `$gather`
/// turns the highest bits of the cells into a mask.
macro_rules! bucket_of_words {
    ($bucket:ty, $bits:literal, $ones:literal, $gather:expr) => {
        impl Bucket for $bucket {
            const CELL_BITS: u32 = $bits;

            #[inline]
            fn matches(&self, tag: u32, largest: u32) -> u32 {
                let tags = u64::from(tag) * $ones;
                let counts = u64::from(largest) * $ones;
                mask_of(self.0, $bits, $gather, |word| {
                    // An equal remainder leaves the count alone.
                    let rest = word ^ tags;
                    nonzero(rest & counts, $bits, $ones) & !nonzero(rest & !counts, $bits, $ones)
                })
            }

            #[inline]
            fn occupied(&self) -> u32 {
                mask_of(self.0, $bits, $gather, |word| nonzero(word, $bits, $ones))
            }

            #[inline]
            fn get(&self, cell: u32) -> u32 {
                let bit = cell * $bits;
                let word = self.0[bit as usize / 64];
                (word >> (bit % 64)) as u32 & (u32::MAX >> (32 - $bits))
            }

            #[inline]
            fn set(&mut self, cell: u32, value: u32) {
                let change = u64::from(self.get(cell) ^ value);
                let bit = cell * $bits;
                self.0[bit as usize / 64] ^= change << (bit % 64);
            }
        }
    };
}

bucket_of_words!(Bucket16, 16, 0x0001_0001_0001_0001, |flags| {
    // Moves bit 16 j to bit 48 + j, for j of 0 to 3, by adding up shifts that do not collide.
    (flags >> 15).wrapping_mul(1 << 48 | 1 << 33 | 1 << 18 | 1 << 3) >> 48 & 0xf
});
bucket_of_words!(Bucket32, 32, 0x0000_0001_0000_0001, |flags| {
    flags >> 31 & 1 | flags >> 62
});

/// The highest bit of each cell that is not zero. Exact: no carry leaves its cell.
#[inline]
const fn nonzero(cells: u64, bits: u32, ones: u64) -> u64 {
    let highest = ones << (bits - 1);
    (((cells & !highest) + !highest) | cells) & highest
}

/// One bit for each of the eight cells.
#[inline]
fn mask_of<const WORDS: usize>(
    words: [u64; WORDS],
    bits: u32,
    gather: impl Fn(u64) -> u64,
    flags: impl Fn(u64) -> u64,
) -> u32 {
    let mut mask = 0;
    for (i, word) in words.into_iter().enumerate() {
        mask |= (gather(flags(word)) as u32) << (i as u32 * 64 / bits);
    }
    mask
}

/// Where an element was found.
enum Found {
    Cell { bucket: usize, cell: u32 },
    Stash,
    GivenUp,
}

/// d-left counting Bloom filter over the whole element, with buckets of 16-bit or of 32-bit cells.
#[derive(Clone, Debug)]
pub struct DleftFilter<B: Bucket = Bucket16> {
    /// Subtable i is the buckets from i B on.
    buckets: Vec<B>,
    bucket_bits: u32,
    remainder_bits: u32,
    counter_bits: u32,
    /// Cells in use.
    occupied: u64,
    saturated: u64,
    overflows: u64,
    stash: BTreeMap<u64, u32>,
    stash_limit: usize,
    /// The buckets of subtable 1 that are given up; allocated when there is one.
    given_up: Option<BitArray>,
    /// `None` from the first removal, or the first bucket given up, on.
    counter: Option<HipCounter>,
}

impl<B: Bucket> DleftFilter<B> {
    /// A filter of four times 2^`bucket_bits` (b) buckets, whose cells have a remainder of
    /// `remainder_bits` (r ≥ 1) and a count of `counter_bits` (c ≥ 2): together at most a cell. At most 2^48
    /// buckets.
    pub fn new(bucket_bits: u32, remainder_bits: u32, counter_bits: u32) -> Self {
        debug_assert!(remainder_bits + counter_bits <= B::CELL_BITS);
        Self {
            buckets: vec![B::default(); SUBTABLES << bucket_bits],
            bucket_bits,
            remainder_bits,
            counter_bits,
            occupied: 0,
            saturated: 0,
            overflows: 0,
            stash: BTreeMap::new(),
            stash_limit: (1 << bucket_bits) / 16 + 64,
            given_up: None,
            counter: Some(HipCounter::default()),
        }
    }

    /// Elements in each subtable (cells in use), from the left.
    pub fn loads(&self) -> [u64; 4] {
        let mut loads = [0; SUBTABLES];
        for (load, subtable) in loads
            .iter_mut()
            .zip(self.buckets.chunks(1 << self.bucket_bits))
        {
            *load = subtable
                .iter()
                .map(|bucket| u64::from(bucket.occupied().count_ones()))
                .sum();
        }
        loads
    }

    /// Elements in the stash: those whose four buckets were full.
    pub fn stashed(&self) -> usize {
        self.stash.len()
    }

    /// Buckets given up, because the stash was full as well.
    pub fn given_up(&self) -> u64 {
        self.given_up.as_ref().map_or(0, BitArray::ones)
    }

    /// The q bits of an element.
    #[inline]
    fn hash(&self, digest: Digest) -> u64 {
        mix(digest, HASH) >> (64 - self.bucket_bits - self.remainder_bits)
    }

    /// Each subtable's bucket (its index among all) for H, and the tag of its cell: the remainder
    /// above a count of 0.
    #[inline]
    fn places(&self, hash: u64) -> [(usize, u32); SUBTABLES] {
        let mut places = [(0, 0); SUBTABLES];
        for (i, place) in places.iter_mut().enumerate() {
            let permuted = hash.wrapping_mul(MULTIPLIERS[i]);
            let bucket = (permuted >> self.remainder_bits) & ((1 << self.bucket_bits) - 1);
            let remainder = permuted & ((1 << self.remainder_bits) - 1);
            *place = (
                (i << self.bucket_bits) + bucket as usize,
                (remainder << self.counter_bits) as u32,
            );
        }
        places
    }

    #[inline]
    fn largest(&self) -> u32 {
        (1 << self.counter_bits) - 1
    }

    #[inline]
    fn find(&self, hash: u64, places: &[(usize, u32); SUBTABLES]) -> Option<Found> {
        // All four buckets are asked before anything is decided: which of them it is cannot be
        // foreseen, and their cache lines come in side by side.
        let mut matches = 0;
        for (i, &(bucket, tag)) in places.iter().enumerate() {
            matches |= self.buckets[bucket].matches(tag, self.largest()) << (CELLS * i);
        }
        if matches != 0 {
            let first = matches.trailing_zeros();
            return Some(Found::Cell {
                bucket: places[first as usize / CELLS].0,
                cell: first % CELLS as u32,
            });
        }
        if !self.stash.is_empty() && self.stash.contains_key(&hash) {
            return Some(Found::Stash);
        }
        let given_up = self.given_up.as_ref()?.get(places[0].0 as u64);
        given_up.then_some(Found::GivenUp)
    }

    /// The H of each element of a batch, with a look at all of their buckets.
    #[inline]
    fn fetch(&self, batch: &[Digest]) -> [u64; BATCH] {
        let mut hashes = [0; BATCH];
        let mut touched = 0;
        for (hash, &digest) in hashes.iter_mut().zip(batch) {
            *hash = self.hash(digest);
            for (bucket, _) in self.places(*hash) {
                touched ^= self.buckets[bucket].get(0);
            }
        }
        std::hint::black_box(touched);
        hashes
    }

    #[inline]
    fn insert_at(&mut self, hash: u64, places: &[(usize, u32); SUBTABLES]) -> Sighting {
        match self.find(hash, places) {
            None => {
                self.place_new(hash, places);
                return Sighting::First;
            }
            Some(Found::Cell { bucket, cell }) => self.count_up(bucket, cell),
            Some(Found::Stash) => *self.stash.entry(hash).or_default() += 1,
            Some(Found::GivenUp) => {}
        }
        Sighting::Repeat
    }

    fn count_up(&mut self, bucket: usize, cell: u32) {
        let value = self.buckets[bucket].get(cell);
        let largest = self.largest();
        let count = value & largest;
        if count == largest {
            self.overflows += 1;
        } else {
            self.buckets[bucket].set(cell, value + 1);
            self.saturated += u64::from(count + 1 == largest);
        }
    }

    /// A new element: into the least loaded bucket, or wherever it can still be remembered.
    fn place_new(&mut self, hash: u64, places: &[(usize, u32); SUBTABLES]) {
        let repeat_probability = (self.occupied + self.stash.len() as u64) as f64
            / f64::from(self.bucket_bits + self.remainder_bits).exp2();
        let mut least = places[0];
        let mut occupied = self.buckets[least.0].occupied();
        for &place in &places[1..] {
            let here = self.buckets[place.0].occupied();
            if here.count_ones() < occupied.count_ones() {
                (least, occupied) = (place, here);
            }
        }
        let free = (!occupied).trailing_zeros();
        if (free as usize) < CELLS {
            self.buckets[least.0].set(free, least.1 + 1);
            self.occupied += 1;
        } else if self.stash.len() < self.stash_limit {
            self.stash.insert(hash, 1);
        } else {
            self.given_up
                .get_or_insert_with(|| BitArray::new(1 << self.bucket_bits))
                .set(places[0].0 as u64);
            self.counter = None;
        }
        if let Some(counter) = &mut self.counter {
            counter.record(repeat_probability);
        }
    }
}

impl<B: Bucket> MembershipFilter for DleftFilter<B> {
    fn insert(&mut self, element: ElementDigests<'_>) -> Sighting {
        let hash = self.hash(element.whole);
        self.insert_at(hash, &self.places(hash))
    }

    /// Beyond the caches, the buckets of some elements are all asked for before the first of them is
    /// looked at: what is to be done depends on them, and a wrong guess would throw away the loads
    /// that were begun behind it.
    fn insert_batch(&mut self, elements: DigestColumns<'_>, sightings: &mut Vec<Sighting>) {
        if size_of_val(self.buckets.as_slice()) < IN_CACHE {
            sightings.extend(elements.iter().map(|element| self.insert(element)));
            return;
        }
        for batch in elements.whole.chunks(BATCH) {
            let hashes = self.fetch(batch);
            sightings.extend(
                hashes[..batch.len()]
                    .iter()
                    .map(|&hash| self.insert_at(hash, &self.places(hash))),
            );
        }
    }

    fn contains_batch(&self, elements: DigestColumns<'_>, answers: &mut Vec<bool>) {
        if size_of_val(self.buckets.as_slice()) < IN_CACHE {
            answers.extend(elements.iter().map(|element| self.contains(element)));
            return;
        }
        for batch in elements.whole.chunks(BATCH) {
            let hashes = self.fetch(batch);
            answers.extend(
                hashes[..batch.len()]
                    .iter()
                    .map(|&hash| self.find(hash, &self.places(hash)).is_some()),
            );
        }
    }

    fn contains(&self, element: ElementDigests<'_>) -> bool {
        let hash = self.hash(element.whole);
        self.find(hash, &self.places(hash)).is_some()
    }

    fn clear(&mut self) {
        self.buckets.fill(B::default());
        self.occupied = 0;
        self.saturated = 0;
        self.overflows = 0;
        self.stash.clear();
        self.given_up = None;
        self.counter = Some(HipCounter::default());
    }

    fn stats(&self) -> FilterStats {
        // An entry of the stash is counted with its key and its count, without the tree's own.
        let stash = self.stash.len() * size_of::<(u64, u32)>();
        FilterStats {
            memory_bytes: (self.buckets.len() * size_of::<B>() + stash) as u64
                + self.given_up.as_ref().map_or(0, BitArray::memory_bytes),
            fill_ratio: self.occupied as f64 / (self.buckets.len() * CELLS) as f64,
            counters: Some(CounterStats {
                saturated: self.saturated,
                overflows: self.overflows,
                ..CounterStats::default()
            }),
        }
    }

    fn distinct(&self) -> Option<Estimate> {
        self.counter.map(|counter| counter.estimate())
    }

    fn as_removable(&mut self) -> Option<&mut dyn RemovableFilter> {
        Some(self)
    }
}

impl<B: Bucket> FilterState for DleftFilter<B> {
    fn save_state(&self, state: &mut StateWriter<'_>) -> io::Result<()> {
        state.hip(self.counter)?;
        state.u64(self.overflows)?;
        for bucket in &self.buckets {
            for first in (0..CELLS as u32).step_by(64 / B::CELL_BITS as usize) {
                let cells = (0..64 / B::CELL_BITS)
                    .map(|cell| u64::from(bucket.get(first + cell)) << (cell * B::CELL_BITS));
                state.u64(cells.sum())?;
            }
        }
        state.u64(self.stash.len() as u64)?;
        for (&hash, &count) in &self.stash {
            state.u64(hash)?;
            state.u32(count)?;
        }
        state.u8(u8::from(self.given_up.is_some()))?;
        self.given_up.iter().try_for_each(|bits| state.bits(bits))
    }

    fn load_state(&mut self, state: &mut StateReader<'_>) -> Result<(), LoadError> {
        self.counter = state.hip()?;
        self.overflows = state.count()?;
        let largest = self.largest();
        let bits = self.remainder_bits + self.counter_bits;
        for bucket in &mut self.buckets {
            for first in (0..CELLS as u32).step_by(64 / B::CELL_BITS as usize) {
                let word = state.u64()?;
                for cell in 0..64 / B::CELL_BITS {
                    let value = word >> (cell * B::CELL_BITS) & (u64::MAX >> (64 - B::CELL_BITS));
                    let count = value as u32 & largest;
                    if value >> bits != 0 || (value != 0 && count == 0) {
                        return Err(state.damaged("a cell has bits that none can have"));
                    }
                    bucket.set(first + cell, value as u32);
                    self.occupied += u64::from(count != 0);
                    self.saturated += u64::from(count == largest);
                }
            }
        }
        let stashed = state.u64()?;
        if stashed > self.stash_limit as u64 {
            return Err(state.damaged("there are more elements in a stash than it holds"));
        }
        let mut least = 0;
        for _ in 0..stashed {
            let (hash, count) = (state.u64()?, state.u32()?);
            let is_hash = hash >> (self.bucket_bits + self.remainder_bits) == 0;
            if !is_hash || hash < least || count == 0 || count > u32::MAX / 2 {
                return Err(state.damaged("an element of a stash is none that can be there"));
            }
            least = hash + 1;
            self.stash.insert(hash, count);
        }
        match state.u8()? {
            0 => return Ok(()),
            1 if self.counter.is_none() => {}
            _ => return Err(state.damaged("it is not clear whether buckets are given up")),
        }
        let buckets = 1_u64 << self.bucket_bits;
        if buckets.div_ceil(64) * 8 > state.left() {
            return Err(state.damaged("the list of buckets that are given up is cut short"));
        }
        let mut given_up = BitArray::new(buckets);
        state.bits(&mut given_up)?;
        self.given_up = Some(given_up);
        Ok(())
    }

    /// None: the stash does not know whether a count that comes from a cell has reached its end.
    fn unite(&mut self, _: &dyn FilterState) -> Result<(), UnionError> {
        Err(UnionError::Structure)
    }
}

impl<B: Bucket> RemovableFilter for DleftFilter<B> {
    fn remove(&mut self, element: ElementDigests<'_>) {
        let hash = self.hash(element.whole);
        match self.find(hash, &self.places(hash)) {
            None | Some(Found::GivenUp) => return,
            Some(Found::Stash) => {
                let count = self.stash.entry(hash).or_default();
                *count -= 1;
                if *count == 0 {
                    self.stash.remove(&hash);
                }
            }
            Some(Found::Cell { bucket, cell }) => {
                let value = self.buckets[bucket].get(cell);
                match value & self.largest() {
                    1 => {
                        self.buckets[bucket].set(cell, 0);
                        self.occupied -= 1;
                    }
                    count if count < self.largest() => self.buckets[bucket].set(cell, value - 1),
                    _ => {}
                }
            }
        }
        self.counter = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hashing::Digester;

    fn whole(number: u32) -> ElementDigests<'static> {
        ElementDigests {
            whole: Digester::new(11).digest(&number.to_le_bytes()),
            attributes: &[],
        }
    }

    /// One element too many for the buckets, for the stash, and back again.
    #[test]
    fn nothing_is_lost_when_buckets_and_stash_are_full() {
        // 32 cells, a stash of 64, and q = 30 bits, so that no two of these are equal.
        let mut filter = DleftFilter::<Bucket32>::new(0, 30, 2);
        for number in 0..96 {
            assert_eq!(filter.insert(whole(number)), Sighting::First);
        }
        assert_eq!(
            (filter.loads(), filter.stashed(), filter.given_up()),
            ([8; 4], 64, 0)
        );
        assert!(filter.distinct().is_some());
        assert!(!filter.contains(whole(96)));
        let memory = filter.stats().memory_bytes;
        assert_eq!(memory, 4 * 32 + 64 * 16);

        assert_eq!(filter.insert(whole(96)), Sighting::First);
        assert_eq!((filter.stashed(), filter.given_up()), (64, 1));
        assert_eq!(filter.distinct(), None);
        // Its bucket is the only one there is: everything is contained from now on.
        assert!(filter.contains(whole(1_000_000)));
        assert_eq!(filter.insert(whole(97)), Sighting::Repeat);
        assert_eq!(filter.stats().memory_bytes, memory + 8);

        for number in 0..96 {
            filter.remove(whole(number));
        }
        assert_eq!(
            (filter.loads(), filter.stashed(), filter.given_up()),
            ([0; 4], 0, 1)
        );
        assert!(filter.contains(whole(96)) && filter.contains(whole(97)));
        filter.clear();
        assert_eq!(filter.given_up(), 0);
        assert!(!filter.contains(whole(96)));
    }

    #[test]
    fn a_full_count_is_never_taken_back() {
        for (counter_bits, largest) in [(2, 3), (4, 15)] {
            let mut filter = DleftFilter::<Bucket16>::new(4, 10, counter_bits);
            for _ in 0..largest - 1 {
                filter.insert(whole(1));
            }
            assert_eq!(filter.stats().counters, Some(CounterStats::default()));
            for _ in 0..3 {
                filter.insert(whole(1));
            }
            let counters = CounterStats {
                saturated: 1,
                overflows: 2,
                ..CounterStats::default()
            };
            assert_eq!(filter.stats().counters, Some(counters));
            for _ in 0..100 {
                filter.remove(whole(1));
            }
            assert!(filter.contains(whole(1)));
        }
    }

    /// A cell is in use, and has the remainder asked for, exactly if it says so: every cell value
    /// against every tag, for small widths.
    #[test]
    fn matches_are_cells_in_use_with_the_remainder() {
        let (remainder_bits, counter_bits) = (4, 2);
        let largest = (1 << counter_bits) - 1;
        for value in 0..1 << (remainder_bits + counter_bits) {
            if value != 0 && value & largest == 0 {
                continue; // a remainder without a count is never stored
            }
            for remainder in 0..1 << remainder_bits {
                let tag = remainder << counter_bits;
                let expected = value & largest != 0 && value >> counter_bits == remainder;
                let (mut small, mut large) = (Bucket16::default(), Bucket32::default());
                small.set(5, value);
                large.set(5, value);
                let mask = u32::from(expected) << 5;
                assert_eq!(small.matches(tag, largest), mask, "{value} {remainder}");
                assert_eq!(large.matches(tag, largest), mask, "{value} {remainder}");
                assert_eq!(small.occupied(), u32::from(value != 0) << 5);
                assert_eq!((small.get(5), large.get(5)), (value, value));
            }
        }
    }

    /// Large enough that a batch fetches its buckets first.
    #[test]
    fn a_large_batch_is_its_elements_one_by_one() {
        let mut batched = DleftFilter::<Bucket16>::new(15, 8, 2);
        let mut one_by_one = batched.clone();
        let digests: Vec<Digest> = (0..10_007_u32)
            .map(|i| Digester::new(1).digest(&(i % 7000).to_le_bytes()))
            .collect();
        let columns = DigestColumns {
            whole: &digests,
            attributes: &[],
        };
        let mut sightings = Vec::new();
        batched.insert_batch(columns, &mut sightings);
        let expected: Vec<Sighting> = columns.iter().map(|e| one_by_one.insert(e)).collect();
        assert_eq!(sightings, expected);
        assert_eq!(batched.loads(), one_by_one.loads());
        assert_eq!(batched.distinct(), one_by_one.distinct());
        let asked: Vec<Digest> = (5000..9000_u32)
            .map(|i| Digester::new(1).digest(&i.to_le_bytes()))
            .collect();
        let columns = DigestColumns {
            whole: &asked,
            attributes: &[],
        };
        let mut answers = Vec::new();
        batched.contains_batch(columns, &mut answers);
        let expected: Vec<bool> = columns.iter().map(|e| one_by_one.contains(e)).collect();
        assert_eq!(answers, expected);
    }

    /// The four permutations are one to one on q bits, and each uses all of its buckets.
    #[test]
    fn the_permutations_are_one_to_one() {
        let filter = DleftFilter::<Bucket16>::new(5, 7, 2);
        let mut seen = vec![false; SUBTABLES << 12];
        for hash in 0..1 << 12 {
            for (bucket, tag) in filter.places(hash) {
                let place = (bucket << 7) + (tag >> 2) as usize;
                assert!(!seen[place]);
                seen[place] = true;
            }
        }
        assert!(seen.into_iter().all(|seen| seen));
    }
}
