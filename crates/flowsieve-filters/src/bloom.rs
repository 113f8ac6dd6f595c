//! The standard Bloom filter.
//!
//! # Memory
//!
//! ```text
//!     element ──► digest ──► k independent positions
//!                               │      │           │
//!     m bits:  0 0 0 0 1 0 0 0 1 0 0 0 1 0 0 0 0 0 0
//! ```
//!
//! # Operations
//!
//! - insert: set the bits at the k positions; the element was new if any of them was clear.
//! - contains: all k bits are set.
//!
//! Both cost O(k) and touch up to k cache lines.
//!
//! # Formulas
//!
//! With m bits, k positions and n distinct elements, the share of set bits is 1 - e^(-kn/m) and the
//! false-positive rate f = (1 - e^(-kn/m))^k, least at k = (m/n) ln 2 ([`super::sizing`]).
//!
//! | bits an element | best k | f |
//! |---|---|---|
//! | 4.8 | 3 | 0.10 |
//! | 9.6 | 7 | 0.010 |
//! | 14.4 | 10 | 0.0010 |
//!
//! # Distinct elements
//!
//! A new element is called a repeat with p = (share of set bits)^k, exactly; the count is
//! [`DistinctCounter`]'s with that p. The count of a full filter has no upper bound.
//!
//! # Limits
//!
//! Elements cannot be removed. The filter does not answer for some of the attributes.
//!
//! # Example
//!
//! ```
//! use flowsieve_filters::hashing::Digester;
//! use flowsieve_filters::{BloomFilter, ElementDigests, MembershipFilter, Sighting};
//!
//! let hasher = Digester::new(0);
//! let word = |word: &str| ElementDigests::of_whole(hasher.digest(word.as_bytes()));
//! let mut filter = BloomFilter::new(10_000, 7);
//! assert_eq!(filter.insert(word("sieve")), Sighting::First);
//! assert_eq!(filter.insert(word("sieve")), Sighting::Repeat);
//! assert!(filter.contains(word("sieve")) && !filter.contains(word("bloom")));
//! assert!((filter.distinct().unwrap().distinct - 1.0).abs() < 1e-9);
//! ```
//!
//! Reference: Bloom, "Space/time trade-offs in hash coding with allowable errors", CACM 13(7),
//! 1970.

use super::fill;
use super::saved::{FilterState, LoadError, Saved, StateReader, StateWriter, UnionError, same};
use super::sizing::{MAX_PROBES, bloom_count_variance, bloom_fpr, table_size};
use super::spec::{
    Descriptor, FilterKind, FilterSpec, LEAST_ARRAY_BITS, Parameters, Query, Reach, Search, Shape,
    SpecError, Workload, array_bits, check_bits, check_probes, probes_for,
};
use super::{
    DigestColumns, DistinctCounter, ElementDigests, Estimate, FilterStats, MembershipFilter,
    Sighting,
};
use crate::bits::BitArray;
use crate::hashing::{Digest, H3, NumberedProbes, ProbeBatch, Probes, reduce};
use std::io;
use std::sync::Arc;

/// Parameters of a [`BloomFilter`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BloomSpec {
    /// Bits of the array (m).
    pub bits: u64,
    /// Hash functions (k).
    pub probes: u32,
}

pub(crate) const BLOOM: Descriptor = Descriptor {
    name: "bloom",
    summary: "Standard Bloom filter",
    reach: Reach::Whole,
    ignores_repeats: true,
    size: |_, sizing| {
        let (bits, expected) = array_bits(FilterKind::Bloom, 1, sizing)?;
        let probes = probes_for(bits, expected, MAX_PROBES as u32);
        Ok(BloomSpec { bits, probes }.into())
    },
    search: Some(Search {
        in_memory: |workload, bytes| fit(workload, (bytes * 8).max(LEAST_ARRAY_BITS)),
        most: 1 << 48,
        fit,
        by_attribute_rate: Some(|workload, fpr| {
            let elements = (workload.values)(workload.full());
            let (bits, probes) = table_size(fpr, elements);
            BloomSpec { bits, probes }.into()
        }),
        out_of_reach: |_| {
            "it answers for all attributes together only, which are not wanted".to_owned()
        },
    }),
};

fn fit(workload: &Workload<'_>, bits: u64) -> FilterSpec {
    workload.best_probes(|probes| BloomSpec { bits, probes }.into())
}

impl Saved for BloomSpec {
    fn save(&self, out: &mut StateWriter<'_>) -> io::Result<()> {
        out.u64(self.bits)?;
        out.u32(self.probes)?;
        // Number of the layout; 0 is the only one left.
        out.u8(0)
    }

    fn load(input: &mut StateReader<'_>) -> Result<Self, LoadError> {
        let spec = Self { bits: input.u64()?, probes: input.u32()? };
        match input.u8()? {
            0 => Ok(spec),
            _ => Err(input.damaged("a Bloom filter of an unknown layout")),
        }
    }
}

impl Parameters for BloomSpec {
    fn check(&self) -> Result<(), SpecError> {
        check_probes(self.probes, MAX_PROBES as u32)?;
        check_bits(self.bits.into())
    }

    fn memory_bytes(&self) -> u64 {
        self.bits.div_ceil(8)
    }

    fn with_probes(&self, probes: u32) -> Option<FilterSpec> {
        Some(Self { probes, ..*self }.into())
    }

    fn build(&self) -> Box<dyn MembershipFilter> {
        Box::new(BloomFilter::new(self.bits, self.probes))
    }

    fn rate(&self, query: &Query<'_>) -> Option<f64> {
        query.of_whole(|n| bloom_fpr(self.bits as f64, self.probes, n))
    }

    fn count_variance(&self, workload: &Workload<'_>) -> Option<f64> {
        Some(bloom_count_variance(self.bits as f64, self.probes, workload.elements()))
    }

    fn shape(&self) -> Shape {
        Shape::new(self.probes, self.bits, "bits")
    }

    fn describe(&self) -> String {
        format!("m = {} bits, k = {}", self.bits, self.probes)
    }
}

/// Standard Bloom filter over the whole element.
#[derive(Clone, Debug)]
pub struct BloomFilter {
    core: BloomCore,
    counter: DistinctCounter,
}

impl BloomFilter {
    /// Creates a filter of `bits` (m ≥ 1) with `probes` (k ≥ 1) hash functions.
    pub fn new(bits: u64, probes: u32) -> Self {
        Self { core: BloomCore::new(bits, probes, 0), counter: DistinctCounter::default() }
    }
}

impl MembershipFilter for BloomFilter {
    fn insert(&mut self, element: ElementDigests<'_>) -> Sighting {
        let ones = self.core.bits.ones();
        let sighting = self.core.insert(element.whole);
        self.counter.record(sighting, || self.core.repeat_probability_at(ones));
        sighting
    }

    fn insert_batch(&mut self, elements: DigestColumns<'_>, sightings: &mut Vec<Sighting>) {
        for digests in elements.whole.chunks(ProbeBatch::MOST) {
            let ones = self.core.bits.ones();
            let fresh = &mut [0; ProbeBatch::MOST][..digests.len()];
            self.core.insert_all(digests.iter().copied(), fresh);
            let before = ones_before(ones, fresh);
            let repeats = |number: usize| self.core.repeat_probability_at(before[number]);
            self.counter.record_all(fresh, repeats);
            sightings.extend(Sighting::of_all_fresh(fresh));
        }
    }

    fn contains(&self, element: ElementDigests<'_>) -> bool {
        self.core.contains(element.whole)
    }

    fn contains_batch(&self, elements: DigestColumns<'_>, answers: &mut Vec<bool>) {
        for digests in elements.whole.chunks(ProbeBatch::MOST) {
            let there = &mut [1; ProbeBatch::MOST][..digests.len()];
            self.core.keep_contained(digests.iter().copied(), there);
            answers.extend(there.iter().map(|&there| there != 0));
        }
    }

    fn clear(&mut self) {
        self.core.clear();
        self.counter = DistinctCounter::default();
    }

    fn stats(&self) -> FilterStats {
        FilterStats::of_bits([&self.core.bits])
    }

    fn distinct(&self) -> Option<Estimate> {
        let repeats = || self.core.repeat_probability_at(self.core.bits.ones());
        Some(self.counter.estimate(repeats))
    }
}

impl FilterState for BloomFilter {
    fn save_state(&self, state: &mut StateWriter<'_>) -> io::Result<()> {
        state.distinct(Some(&self.counter))?;
        state.bits(&self.core.bits)
    }

    fn load_state(&mut self, state: &mut StateReader<'_>) -> Result<(), LoadError> {
        self.counter = state.lasting_distinct()?;
        state.bits(&mut self.core.bits)
    }

    fn unite(&mut self, other: &dyn FilterState) -> Result<(), UnionError> {
        let other: &Self = same(other)?;
        let of_both = [self.distinct(), other.distinct()];
        let fill = self.core.unite(&other.core);
        self.counter.unite(&other.counter, of_both, fill);
        Ok(())
    }
}

/// Returns the number of set bits before each element of a batch, given the number before the
/// first; each element has set `fresh` more.
#[inline]
pub(super) fn ones_before(ones: u64, fresh: &[u8]) -> [u64; ProbeBatch::MOST] {
    let mut before = [ones; ProbeBatch::MOST];
    let mut ones = ones;
    for (before, &fresh) in before.iter_mut().zip(fresh) {
        *before = ones;
        ones += u64::from(fresh);
    }
    before
}

/// The array and its hash functions, without a counter. MDBF and CMDBF are made of these.
#[derive(Clone, Debug)]
pub(super) struct BloomCore {
    pub(super) bits: BitArray,
    probes: u32,
    functions: Functions,
}

/// Hash functions from an element to its positions.
#[derive(Clone, Debug)]
enum Functions {
    /// The family of hash functions with this number, on the digest.
    Mixed(u64),
    /// One function for each position, on the low 32 bits of the digest, which carry a raw value.
    H3(Arc<[H3]>),
}

impl BloomCore {
    /// Creates an empty array. `function_set` numbers the family of hash functions: arrays with
    /// different numbers have independent functions.
    pub(super) fn new(bits: u64, probes: u32, function_set: u64) -> Self {
        Self { bits: BitArray::new(bits), probes, functions: Functions::Mixed(function_set) }
    }

    /// Creates an array of 2^`bits_log2` bits with the H3 functions of the seed from number
    /// `function_set · probes` on.
    pub(super) fn with_h3(bits_log2: u32, probes: u32, function_set: u64, seed: u64) -> Self {
        let functions = (0..u64::from(probes))
            .map(|probe| H3::random(seed, function_set * u64::from(probes) + probe, bits_log2))
            .collect();
        Self {
            functions: Functions::H3(functions),
            ..Self::new(1 << bits_log2, probes, function_set)
        }
    }

    /// Returns the probability that a new element is called a repeat when this many bits are set.
    pub(super) fn repeat_probability_at(&self, ones: u64) -> f64 {
        (ones as f64 / self.bits.len() as f64).powi(self.probes as i32)
    }

    pub(super) fn insert(&mut self, digest: Digest) -> Sighting {
        // Match once and not for each position, so that the usual case stays a plain loop.
        let fresh = match &self.functions {
            Functions::Mixed(set) => {
                let positions = Probes::new(digest, *set, self.probes, self.bits.len());
                self.bits.set_all(positions)
            }
            Functions::H3(functions) => {
                let value = digest.value() as u32;
                let positions = functions.iter().map(|h3| h3.hash(value).into());
                self.bits.set_all(positions)
            }
        };
        Sighting::of_fresh(fresh)
    }

    /// Inserts up to [`ProbeBatch::MOST`] digests in order, and adds the number of bits of each
    /// that were clear to `fresh`.
    pub(super) fn insert_all(&mut self, digests: impl Iterator<Item = Digest>, fresh: &mut [u8]) {
        if let (&Functions::Mixed(set), 1..=8) = (&self.functions, self.probes) {
            let batch = &ProbeBatch::new(digests, set);
            return match self.probes {
                1 => self.insert_rows::<1>(batch, fresh),
                2 => self.insert_rows::<2>(batch, fresh),
                3 => self.insert_rows::<3>(batch, fresh),
                4 => self.insert_rows::<4>(batch, fresh),
                _ => self.insert_rows::<8>(batch, fresh),
            };
        }
        for (digest, fresh) in digests.zip(fresh) {
            let ones = self.bits.ones();
            self.insert(digest);
            *fresh += (self.bits.ones() - ones) as u8;
        }
    }

    /// [`BloomCore::insert_all`] with at most `MOST` hash functions.
    fn insert_rows<const MOST: usize>(&mut self, batch: &ProbeBatch, fresh: &mut [u8]) {
        let mut rows = [[0; ProbeBatch::MOST]; MOST];
        let rows = &mut rows[..self.probes as usize];
        for (number, row) in (0..).zip(&mut *rows) {
            batch.find(number, self.bits.len(), row);
        }
        self.bits.set_rows(rows, fresh);
    }

    /// Clears `there` for each of up to [`ProbeBatch::MOST`] digests that is not contained.
    pub(super) fn keep_contained(&self, digests: impl Iterator<Item = Digest>, there: &mut [u8]) {
        match self.functions {
            Functions::Mixed(set) => {
                let batch = ProbeBatch::new(digests, set);
                let mut row = [0; ProbeBatch::MOST];
                for number in 0..self.probes {
                    batch.find(number, self.bits.len(), &mut row);
                    self.bits.and_bits(&row, there);
                    if there.iter().all(|&there| there == 0) {
                        break;
                    }
                }
            }
            Functions::H3(_) => {
                for (digest, there) in digests.zip(there) {
                    *there &= u8::from(self.contains(digest));
                }
            }
        }
    }

    /// Sets the bits at the positions of the hash functions.
    pub(super) fn set_all(&mut self, positions: &[u64; MAX_PROBES]) -> Sighting {
        let positions = positions[..self.probes as usize].iter();
        Sighting::of_fresh(self.bits.set_all(positions.copied()))
    }

    /// Returns whether the bits at the positions of the hash functions are all set.
    pub(super) fn all_set(&self, positions: &[u64; MAX_PROBES]) -> bool {
        positions[..self.probes as usize].iter().all(|&position| self.bits.get(position))
    }

    /// XORs the address of `digest` under each hash function into `addresses`. An address has 64
    /// bits and is not yet [reduced](BloomCore::reduce) to a position.
    pub(super) fn xor_addresses(&self, digest: Digest, addresses: &mut [u64; MAX_PROBES]) {
        let addresses = &mut addresses[..self.probes as usize];
        match &self.functions {
            Functions::Mixed(set) => {
                let probes = NumberedProbes::new(digest, *set, self.bits.len());
                for (number, address) in (0..).zip(addresses) {
                    *address ^= probes.address(number);
                }
            }
            // A position among 2^b is the highest b bits of an address.
            Functions::H3(functions) => {
                let shift = self.bits.len().leading_zeros() + 1;
                for (h3, address) in functions.iter().zip(addresses) {
                    let position = u64::from(h3.hash(digest.value() as u32));
                    *address ^= position.checked_shl(shift).unwrap_or(0);
                }
            }
        }
    }

    /// Returns the positions of these addresses.
    pub(super) fn reduce(&self, addresses: [u64; MAX_PROBES]) -> [u64; MAX_PROBES] {
        addresses.map(|address| reduce(address, self.bits.len()))
    }

    pub(super) fn contains(&self, digest: Digest) -> bool {
        match &self.functions {
            Functions::Mixed(set) => Probes::new(digest, *set, self.probes, self.bits.len())
                .all(|position| self.bits.get(position)),
            Functions::H3(functions) => {
                let value = digest.value() as u32;
                functions.iter().all(|h3| self.bits.get(h3.hash(value).into()))
            }
        }
    }

    pub(super) fn clear(&mut self) {
        self.bits.clear();
    }

    /// Adds the elements of an array with the same functions. Returns the count of the union from
    /// its fill, or `None` if all bits are set.
    pub(super) fn unite(&mut self, other: &Self) -> Option<Estimate> {
        self.bits.unite(&other.bits);
        fill::independent(self.bits.ones(), self.bits.len() as f64, self.probes)
    }
}
