//! The d-left counting Bloom filter: fingerprints with small counters in the least loaded bucket.
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
//! There are four subtables of B = 2^b buckets, and q = b + r. With r + c ≤ 16 a bucket has 16
//! bytes, else 32. B can also be any other number: then H is one of B 2^r numbers, and a subtable
//! moves the bucket by an offset that depends on the remainder (`dleft/places.rs`). With such a B,
//! buckets with cells of 17 to 24 bits have 24 bytes.
//!
//! # Operations
//!
//! - insert: if a cell of the four buckets has the element's remainder there, increment its count
//!   (a repeat). Otherwise put (remainder, 1) into the bucket with the fewest elements, the
//!   leftmost of several.
//! - contains: one of the four buckets has the remainder.
//! - remove: decrement the count; at 0 the cell is free.
//!
//! A count that has reached 2^c - 1 never changes again. Each `a` is odd, so H → aH mod 2^q is one
//! to one: two elements share a cell only if their H are equal, and then they share all four
//! buckets. So no element has two cells, and a removal finds the right one.
//!
//! All cost O(1) and touch four cache lines, which do not depend on each other.
//!
//! # When four buckets are full
//!
//! The element goes to the stash, a small table of (H, count) for up to B / 16 + 64 elements. When
//! the stash is full as well, the element's bucket in subtable 1 is *given up*: from then on
//! everything that hashes to it is contained (until the filter is cleared). So an inserted element
//! is contained in every case; each bucket given up adds 1/B to the false-positive rate.
//! [`DleftFilter::stashed`] and [`DleftFilter::given_up`] return both numbers. At up to 89 % of the
//! cells nothing overflows; at 95 % it is 0.12 % of the elements. [`super::sizing::dleft_given_up`]
//! predicts how many buckets are given up. The additional memory of an overfull filter, at most
//! 1/12 of the buckets' and 1 KiB, is not in its size but in its [`FilterStats`].
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
//! The paper's cells have exactly r + c bits; here a cell takes 16, 24 or 32 bits, so r = 14, 22
//! and 30 waste nothing. For a rate, [`FilterSpec::new`](super::FilterSpec::new) returns the
//! smallest filter that fills at most 75 % of the cells, and in given memory the one with the
//! lowest rate:
//!
//! | f | bits an element | of a 4-bit counting filter of that f |
//! |---|---|---|
//! | 1e-3 | 31.2 | 0.54 |
//! | 1e-4 | 32 | 0.42 |
//! | 1e-6 | 42.7 | 0.37 |
//!
//! # Distinct elements
//!
//! Until the first removal: a new element is called a repeat if its H is claimed already, with p =
//! (cells and stash entries in use, and the H of buckets given up) / 2^q, exactly. A union is
//! counted by the number X of stored H: n = ln(1 - X/2^q) / ln(1 - 2^-q), which is nearly as exact,
//! since 2^q is far above n. If a bucket is given up, a union only has bounds.
//!
//! # Union
//!
//! As H → aH is one to one, the H of an element follows from its cell. So the union inserts the
//! elements of the other filter into this one by the rule above, each with its count, cells before
//! stash: the place of an element depends on that order, but not what is contained. Counts add up
//! to at most 2^c - 1, and never change from then on; in the stash they end at 2^31 - 1, and an
//! element whose count had ended has that count there. Buckets that either filter has given up are
//! given up. A union of more elements than there are cells fills the stash and gives up buckets, as
//! any filter with this many elements would.
//!
//! # Limits
//!
//! The filter does not answer for some of the attributes. With c = 2 an element inserted three
//! times cannot be removed any more. Removing a false positive removes another element.
//!
//! # Example
//!
//! ```
//! use flowsieve_filters::hashing::Digester;
//! use flowsieve_filters::{Bucket16, DleftFilter, ElementDigests, MembershipFilter, RemovableFilter};
//!
//! let hasher = Digester::new(0);
//! let word = |word: &str| ElementDigests::of_whole(hasher.digest(word.as_bytes()));
//! // 4 subtables of 64 buckets of 8 cells: remainders of 14 bits and counts of 2.
//! let mut filter = DleftFilter::<Bucket16>::new(64, 14, 2);
//! filter.insert(word("in"));
//! assert!(filter.contains(word("in")));
//! filter.remove(word("in"));
//! assert!(!filter.contains(word("in")));
//! ```
//!
//! Reference: Bonomi, Mitzenmacher, Panigrahy, Singh, Varghese, "An improved construction for
//! counting Bloom filters", ESA 2006.

mod bucket;
mod places;
mod query;
mod rate;
mod spec;
mod state;
mod union;

pub(super) use self::bucket::CELLS;
pub use self::bucket::{Bucket, Bucket16, Bucket24, Bucket32};
use self::places::Places;
use self::query::Query;
pub(crate) use self::rate::fpr_of_hashes;
pub use self::rate::{dleft_given_up, dleft_overfull_fpr};
pub(crate) use self::spec::DLEFT;
pub use self::spec::DleftSpec;
use super::{
    CounterStats, DigestColumns, DistinctCounter, ElementDigests, Estimate, FilterStats,
    MembershipFilter, RemovableFilter, Sighting,
};
use crate::bits::{BitArray, Pages};
use crate::hashing::{Digest, run_with_products};
use std::collections::BTreeMap;

/// Subtables (d).
pub(super) const SUBTABLES: usize = 4;

/// Elements whose buckets are fetched together: enough that all their misses overlap, and few
/// enough that the first ones are still in the first-level cache when the last ones have arrived.
const BATCH: usize = 64;

/// Largest filter that is assumed to be in the second-level cache, in bytes.
const IN_CACHE: usize = 1 << 20;

/// Largest count in the stash; like that of a cell it never changes again.
const STASH_LARGEST: u32 = u32::MAX / 2;

/// Bytes of an entry of the stash: its key and its count, without the overhead of the tree.
const STASH_ENTRY: usize = size_of::<(u64, u32)>();

/// Returns how many elements the stash of a filter with `buckets` (B) in a subtable holds.
const fn stash_limit(buckets: u64) -> usize {
    buckets as usize / 16 + 64
}

/// Where an element was found.
enum Found {
    Cell { bucket: usize, cell: u32 },
    Stash,
    GivenUp,
}

/// d-left counting Bloom filter over the whole element, with buckets of 16-bit, 24-bit or 32-bit
/// cells.
#[derive(Clone, Debug)]
pub struct DleftFilter<B: Bucket = Bucket16> {
    /// Subtable i is the buckets from i B on.
    buckets: Pages<B>,
    places: Places,
    counter_bits: u32,
    /// Cells in use.
    occupied: u64,
    saturated: u64,
    overflows: u64,
    stash: BTreeMap<u64, u32>,
    /// The buckets of subtable 1 that are given up; `None` until there is one.
    given_up: Option<BitArray>,
    /// Number of stored elements for each bucket of subtable 1; empty until a bucket is given up.
    by_first_bucket: Vec<u32>,
    /// Stored elements whose bucket in subtable 1 is given up.
    hidden: u64,
    /// `None` from the first removal on.
    counter: Option<DistinctCounter>,
}

impl<B: Bucket> DleftFilter<B> {
    /// Creates a filter of four subtables of `buckets` (B, 1 to 2^48), whose cells have a remainder
    /// of `remainder_bits` (r ≥ 1) and a count of `counter_bits` (c ≥ 2), which have to fit into a
    /// cell.
    pub fn new(buckets: u64, remainder_bits: u32, counter_bits: u32) -> Self {
        debug_assert!(remainder_bits + counter_bits <= B::CELL_BITS);
        Self {
            buckets: Pages::new(SUBTABLES * buckets as usize),
            places: Places { buckets, remainder_bits },
            counter_bits,
            occupied: 0,
            saturated: 0,
            overflows: 0,
            stash: BTreeMap::new(),
            given_up: None,
            by_first_bucket: Vec::new(),
            hidden: 0,
            counter: Some(DistinctCounter::default()),
        }
    }

    /// Returns the number of cells in use of each subtable, from the left.
    pub fn loads(&self) -> [u64; 4] {
        let mut loads = [0; SUBTABLES];
        for (load, subtable) in
            loads.iter_mut().zip(self.buckets.as_slice().chunks(self.places.buckets as usize))
        {
            *load = subtable.iter().map(|bucket| u64::from(bucket.occupied().count_ones())).sum();
        }
        loads
    }

    /// Returns the number of elements in the stash, whose four buckets were full.
    pub fn stashed(&self) -> usize {
        self.stash.len()
    }

    /// Returns the number of buckets given up because the stash was full as well.
    pub fn given_up(&self) -> u64 {
        self.given_up.as_ref().map_or(0, BitArray::ones)
    }

    /// Returns each subtable's bucket (its index among all) for H, and the tag of its cell: the
    /// remainder above a count of 0.
    #[inline]
    fn places(&self, hash: u64) -> [(usize, u32); SUBTABLES] {
        let of_hash = self.places.of_hash(hash);
        of_hash.map(|(bucket, remainder)| (bucket, (remainder << self.counter_bits) as u32))
    }

    /// Returns whether the buckets are likely to be in a cache.
    #[inline]
    const fn is_cached(&self) -> bool {
        self.buckets.len() * size_of::<B>() < IN_CACHE
    }

    #[inline]
    const fn largest(&self) -> u32 {
        (1 << self.counter_bits) - 1
    }

    /// Returns the number of insertions that a count of the stash stands for. A count that has
    /// ended came from a cell, so it stands for at least the largest count of a cell.
    const fn known(&self, count: u32) -> u32 {
        if count == STASH_LARGEST { self.largest() } else { count }
    }

    /// Returns the part of a count that a cell can hold.
    fn in_cell(&self, count: u32) -> u32 {
        count.min(self.largest())
    }

    #[inline]
    fn find(&self, hash: u64, places: &[(usize, u32); SUBTABLES]) -> Option<Found> {
        // Read all four buckets before the first branch: which of them matches cannot be predicted,
        // and so their cache lines are loaded together.
        let buckets = self.buckets.as_slice();
        let mut matches = 0;
        for (i, &(bucket, tag)) in places.iter().enumerate() {
            matches |= buckets[bucket].matches(tag, self.largest()) << (CELLS * i);
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

    /// Returns whether [`find`](Self::find) finds the element.
    #[inline]
    fn holds(&self, hash: u64, places: &[(usize, u32); SUBTABLES]) -> bool {
        let buckets = places.map(|(bucket, _)| &self.buckets.as_slice()[bucket]);
        B::any_holds(buckets, places.map(|(_, tag)| tag), self.largest())
            || self.holds_apart(hash, places[0].0 as u64)
    }

    /// Returns whether H is in the stash, or its bucket in subtable 1 is given up.
    #[inline]
    fn holds_apart(&self, hash: u64, first_bucket: u64) -> bool {
        (!self.stash.is_empty() && self.stash.contains_key(&hash))
            || (self.given_up.as_ref()).is_some_and(|given_up| given_up.get(first_bucket))
    }

    /// Returns the H of each element of a batch, and loads all of their buckets into the cache.
    #[inline]
    fn fetch(&self, batch: &[Digest]) -> [u64; BATCH] {
        let buckets = self.buckets.as_slice();
        let mut hashes = [0; BATCH];
        let mut touched = 0;
        for (hash, &digest) in hashes.iter_mut().zip(batch) {
            *hash = self.places.hash(digest);
            for (bucket, _) in self.places(*hash) {
                touched ^= buckets[bucket].get(0);
            }
        }
        std::hint::black_box(touched);
        hashes
    }

    #[inline]
    fn insert_at(&mut self, hash: u64, places: &[(usize, u32); SUBTABLES]) -> Sighting {
        let found = self.find(hash, places);
        let sighting = if found.is_none() { Sighting::First } else { Sighting::Repeat };
        let (claimed, hashes) = (self.claimed(), self.places.hashes());
        if let Some(counter) = &mut self.counter {
            counter.record(sighting, || claimed as f64 / hashes as f64);
        }
        match found {
            None => self.place(hash, places, 1),
            Some(Found::Cell { bucket, cell }) => self.count_up(bucket, cell, 1),
            Some(Found::Stash) => {
                let count = self.stash.entry(hash).or_default();
                if *count == STASH_LARGEST {
                    self.lose(1);
                } else {
                    *count += 1;
                }
            }
            Some(Found::GivenUp) => {}
        }
        sighting
    }

    /// Returns the number of H that the filter claims to contain: those stored, and all of the
    /// buckets given up.
    #[inline]
    fn claimed(&self) -> u64 {
        let stored = self.occupied + self.stash.len() as u64;
        let given_up = self.given_up() << self.places.remainder_bits;
        // Saturates, since a removal does not lower `hidden`; the result is not used after one.
        (stored + given_up).saturating_sub(self.hidden)
    }

    /// Adds to the count of a cell; `count` is as in the stash.
    fn count_up(&mut self, bucket: usize, cell: u32, count: u32) {
        let value = self.buckets.as_slice()[bucket].get(cell);
        let here = value & self.largest();
        let sum = self.in_cell(here.saturating_add(count));
        self.lose(here + self.known(count) - sum);
        self.saturated += u64::from(here < sum && sum == self.largest());
        self.buckets.as_mut_slice()[bucket].set(cell, value - here + sum);
    }

    /// Counts lost increments. Saturates, since a loaded filter may have lost any number before.
    const fn lose(&mut self, increments: u32) {
        self.overflows = self.overflows.saturating_add(increments as u64);
    }

    /// Stores an element that is not contained, with its count as in the stash: in the least loaded
    /// bucket, or in the stash, or by giving up its bucket.
    fn place(&mut self, hash: u64, places: &[(usize, u32); SUBTABLES], count: u32) {
        let in_cell = self.in_cell(count);
        let buckets = self.buckets.as_mut_slice();
        let mut least = places[0];
        let mut occupied = buckets[least.0].occupied();
        for &place in &places[1..] {
            let here = buckets[place.0].occupied();
            if here.count_ones() < occupied.count_ones() {
                (least, occupied) = (place, here);
            }
        }
        let free = (!occupied).trailing_zeros();
        if (free as usize) < CELLS {
            buckets[least.0].set(free, least.1 + in_cell);
            self.occupied += 1;
            self.saturated += u64::from(in_cell == self.largest());
            self.lose(self.known(count) - in_cell);
        } else if self.stash.len() < stash_limit(self.places.buckets) {
            self.stash.insert(hash, count);
        } else {
            self.give_up(places[0].0);
            return;
        }
        if let Some(stored) = self.by_first_bucket.get_mut(places[0].0) {
            *stored += 1;
        }
    }

    /// Gives up a bucket of subtable 1.
    fn give_up(&mut self, bucket: usize) {
        if self.by_first_bucket.is_empty() {
            self.count_by_first_bucket();
        }
        self.hidden += u64::from(self.by_first_bucket[bucket]);
        self.given_up.get_or_insert_with(|| BitArray::new(self.places.buckets)).set(bucket as u64);
    }

    /// Counts the stored elements for each bucket of subtable 1, and the hidden ones.
    fn count_by_first_bucket(&mut self) {
        let mut stored = vec![0_u32; self.places.buckets as usize];
        for (hash, _) in self.elements() {
            stored[self.places(hash)[0].0] += 1;
        }
        let is_hidden =
            |bucket| self.given_up.as_ref().is_some_and(|given_up| given_up.get(bucket));
        let hidden = (0..).zip(&stored).filter(|&(bucket, _)| is_hidden(bucket));
        self.hidden = hidden.map(|(_, &stored)| u64::from(stored)).sum();
        self.by_first_bucket = stored;
    }
}

impl<B: Bucket> MembershipFilter for DleftFilter<B> {
    fn insert(&mut self, element: ElementDigests<'_>) -> Sighting {
        let hash = self.places.hash(element.whole);
        self.insert_at(hash, &self.places(hash))
    }

    /// Beyond the caches, loads the buckets of a batch of elements before the first of them is
    /// inserted: otherwise a mispredicted branch of one element would delay the loads of the next.
    fn insert_batch(&mut self, elements: DigestColumns<'_>, sightings: &mut Vec<Sighting>) {
        if self.is_cached() {
            sightings.extend(elements.iter().map(|element| self.insert(element)));
            return;
        }
        for batch in elements.whole.chunks(BATCH) {
            let hashes = self.fetch(batch);
            let hashes = hashes.into_iter().take(batch.len());
            sightings.extend(hashes.map(|hash| self.insert_at(hash, &self.places(hash))));
        }
    }

    fn contains_batch(&self, elements: DigestColumns<'_>, answers: &mut Vec<bool>) {
        // 0 fits all products: whether B fits is checked when the places of a group are computed.
        run_with_products(0, Query { filter: self, digests: elements.whole, answers });
    }

    fn contains(&self, element: ElementDigests<'_>) -> bool {
        let hash = self.places.hash(element.whole);
        self.holds(hash, &self.places(hash))
    }

    fn clear(&mut self) {
        self.buckets.as_mut_slice().fill(B::default());
        self.occupied = 0;
        self.saturated = 0;
        self.overflows = 0;
        self.stash.clear();
        self.given_up = None;
        self.by_first_bucket = Vec::new();
        self.hidden = 0;
        self.counter = Some(DistinctCounter::default());
    }

    fn stats(&self) -> FilterStats {
        let stash = self.stash.len() * STASH_ENTRY;
        let ended = self.stash.values().filter(|&&c| c == STASH_LARGEST).count();
        FilterStats {
            memory_bytes: (self.buckets.len() * size_of::<B>()
                + stash
                + self.by_first_bucket.len() * size_of::<u32>()) as u64
                + self.given_up.as_ref().map_or(0, BitArray::memory_bytes),
            fill_ratio: self.occupied as f64 / (self.buckets.len() * CELLS) as f64,
            counters: Some(CounterStats {
                saturated: self.saturated + ended as u64,
                overflows: self.overflows,
                stashed: self.stash.len() as u64,
                given_up: self.given_up(),
                ..CounterStats::default()
            }),
        }
    }

    fn distinct(&self) -> Option<Estimate> {
        let (claimed, hashes) = (self.claimed(), self.places.hashes());
        let count = self.counter?.estimate(|| claimed as f64 / hashes as f64);
        Some(count.unless_full(claimed >= hashes))
    }

    fn as_removable(&mut self) -> Option<&mut dyn RemovableFilter> {
        Some(self)
    }
}

impl<B: Bucket> RemovableFilter for DleftFilter<B> {
    fn remove(&mut self, element: ElementDigests<'_>) {
        let hash = self.places.hash(element.whole);
        match self.find(hash, &self.places(hash)) {
            None => return,
            Some(Found::GivenUp) => {}
            Some(Found::Stash) => {
                let count = self.stash.entry(hash).or_default();
                *count -= u32::from(*count != STASH_LARGEST);
                if *count == 0 {
                    self.stash.remove(&hash);
                }
            }
            Some(Found::Cell { bucket, cell }) => {
                let largest = self.largest();
                let bucket = &mut self.buckets.as_mut_slice()[bucket];
                let value = bucket.get(cell);
                match value & largest {
                    1 => {
                        bucket.set(cell, 0);
                        self.occupied -= 1;
                    }
                    count if count < largest => bucket.set(cell, value - 1),
                    _ => {}
                }
            }
        }
        self.counter = None;
    }
}

#[cfg(test)]
mod tests;
