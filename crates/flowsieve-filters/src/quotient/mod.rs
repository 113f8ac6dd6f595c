//! Counting quotient filter: a multiset that grows and shrinks without limit, in the bits that its
//! fingerprints need.
//!
//! # Memory
//!
//! ```text
//!     element ──► digest ──► fingerprint of p bits = bucket (the high q bits), remainder (the low p - q bits)
//!
//!     buckets     0      1   2     3      …  2^q - 1       2^q is the largest power of two that is not above n
//!     runs        1 1 0  0   1 0   1 1 1 0 …               a 1 for each fingerprint of a bucket, then a 0
//!     remainders  a b        c     d e f   …               p - q bits each, in ascending order
//!     counts      1 3        1     1 2 1   …               how often each was inserted, in Elias' gamma code
//! ```
//!
//! n distinct fingerprints that were inserted once take about p - log2 n + 3.5 bits each. There are
//! no empty slots: insertions and removals are collected, and merged in one pass when they are a
//! quarter of the stored fingerprints. A value that was inserted c times takes 2 log2 c bits more.
//!
//! # Operations
//!
//! - insert, remove: O(1) amortised, with a pass over everything from time to time. The filter
//!   grows without a chain of filters, and nothing has to be inserted again.
//! - contains: one place of a directory, one of the runs and one of the remainders.
//! - count: the same, and up to 1000 counts.
//! - unite: the counts are added.
//!
//! Removal is exact: no counter saturates, and after a removal the filter is byte for byte the one
//! into which the element was never inserted.
//!
//! # Formulas
//!
//! The false-positive rate is n / 2^p, with n distinct fingerprints.
//!
//! # Limits
//!
//! There are at most 2^32 - 1 distinct fingerprints. The filter does not know how many distinct
//! elements share a fingerprint, and does not find combinations of attributes that were not
//! inserted themselves.
//!
//! # Example
//!
//! ```
//! use flowsieve_filters::QuotientFilter;
//! use flowsieve_filters::hashing::Digester;
//!
//! let hasher = Digester::new(0);
//! let word = |i: u32| hasher.digest(&i.to_le_bytes());
//! let mut filter = QuotientFilter::new(32)?;
//! for i in 0..100_000 {
//!     filter.insert(word(i));
//! }
//! let before = filter.save();
//! filter.insert(word(200_000));
//! assert!(filter.contains(word(200_000)));
//! assert!(filter.remove(word(200_000)));
//! assert_eq!(filter.save(), before);
//! # Ok::<(), flowsieve_filters::SpecError>(())
//! ```
//!
//! Reference: Bender et al., "Don't thrash: how to cache your hash on flash", PVLDB 5(11), 2012;
//! runs and counts: Pandey, Bender, Johnson, Patro, "A general-purpose counting filter: making
//! every bit count", SIGMOD 2017.

mod packed;

use super::saved::LoadError;
use super::spec::{SpecError, check_range};
use crate::hashing::{Digest, digest_of, in_order_of, mix};
pub use packed::Words;
use packed::{Entries, Layout, MAX_DISTINCT, Packed};
use std::collections::HashMap;
use std::iter::{Copied, Peekable};
use std::ops::RangeInclusive;
use std::slice;

/// Possible bits of a fingerprint.
const FINGERPRINTS: RangeInclusive<u64> = 8..=56;

/// Fewest changes that are merged at once.
const LEAST_CHANGES: usize = 1 << 16;

/// Stream of the fingerprints' hash function, apart from those of other structures.
const STREAM: u64 = 0x2100_0000;

/// A multiset of elements that grows and shrinks.
#[derive(Clone, Debug)]
pub struct QuotientFilter {
    /// The sorted fingerprints, in their saved form.
    packed: Vec<u8>,
    /// Changes of the counts of fingerprints that are not merged yet.
    changes: HashMap<u64, i64>,
}

/// A saved quotient filter, queried without loading it: each query reads a few words.
#[derive(Clone, Copy, Debug)]
pub struct QuotientInPlace<W> {
    layout: Layout,
    words: W,
}

fn fingerprint(element: Digest, bits: u32) -> u64 {
    mix(element, STREAM) >> (64 - bits)
}

impl QuotientFilter {
    /// Creates an empty filter with fingerprints of this many bits (8 to 56).
    ///
    /// # Errors
    ///
    /// The number of bits is out of range.
    pub fn new(fingerprint_bits: u32) -> Result<Self, SpecError> {
        let has = "a fingerprint of a quotient filter has";
        check_range(has, FINGERPRINTS, "bits", fingerprint_bits.into(), 36)?;
        Ok(Self {
            packed: packed::pack(fingerprint_bits, 0, std::iter::empty()),
            changes: HashMap::new(),
        })
    }

    /// Loads the bytes that [`QuotientFilter::save`] returned.
    ///
    /// # Errors
    ///
    /// The bytes are not those that were saved.
    pub fn load(bytes: &[u8]) -> Result<Self, LoadError> {
        Packed::check(bytes)?;
        Ok(Self { packed: bytes.to_vec(), changes: HashMap::new() })
    }

    fn packed(&self) -> Packed<'_> {
        Packed::open(&self.packed).expect("the filter wrote these bytes itself")
    }

    fn fingerprint_bits(&self) -> u32 {
        self.packed().head().fingerprint
    }

    fn fingerprint(&self, element: Digest) -> u64 {
        fingerprint(element, self.fingerprint_bits())
    }

    /// Inserts an element once more.
    ///
    /// # Panics
    ///
    /// There are more than 2^32 - 1 distinct fingerprints.
    pub fn insert(&mut self, element: Digest) {
        self.change(self.fingerprint(element), 1);
    }

    /// Returns the distinct ones of these elements in the order in which a batch is fastest to
    /// insert.
    pub fn in_order(elements: &[Digest]) -> Vec<Digest> {
        in_order_of(STREAM, elements).into_iter().map(digest_of).collect()
    }

    /// Inserts elements, each once more, in one pass. It takes less time if they are a few runs of
    /// [`QuotientFilter::in_order`].
    ///
    /// # Panics
    ///
    /// There are more than 2^32 - 1 distinct fingerprints.
    pub fn insert_batch(&mut self, elements: &[Digest]) {
        self.change_batch(elements, 1);
    }

    /// Undoes one insertion of each element in one pass. Does nothing for elements without one.
    pub fn remove_batch(&mut self, elements: &[Digest]) {
        self.change_batch(elements, -1);
    }

    #[expect(
        clippy::stable_sort_primitive,
        reason = "a stable sort merges runs that are in order already"
    )]
    fn change_batch(&mut self, elements: &[Digest], by: i64) {
        self.merge_changes();
        let bits = self.fingerprint_bits();
        let fingerprints = elements.iter().map(|&element| fingerprint(element, bits));
        let mut fingerprints: Vec<u64> = fingerprints.collect();
        fingerprints.sort();
        let changes = fingerprints.chunk_by(|one, next| one == next);
        let changes = changes.map(|same| (same[0], by * same.len() as i64));
        self.apply(&changes.collect::<Vec<_>>());
    }

    /// Undoes one insertion of the element, and returns whether there was one. The removal of a
    /// false positive undoes an insertion of another element.
    pub fn remove(&mut self, element: Digest) -> bool {
        let is_there = self.count(element) > 0;
        if is_there {
            self.change(self.fingerprint(element), -1);
        }
        is_there
    }

    /// Inserts the elements of another filter, as often as they were inserted there.
    ///
    /// # Errors
    ///
    /// The fingerprints have other lengths.
    pub fn unite(&mut self, other: &Self) -> Result<(), SpecError> {
        let [bits, others] = [self, other].map(Self::fingerprint_bits);
        if bits != others {
            return Err(SpecError::new(format!(
                "quotient filters with fingerprints of {bits} and {others} bits cannot be united; make both with the same"
            )));
        }
        self.merge_changes();
        let changes = other.sorted_changes();
        let counts = Merged::new(other.packed().entries(), &changes);
        let counts = counts.map(|(of, count)| (of, i64::try_from(count).unwrap_or(i64::MAX)));
        self.apply(&counts.collect::<Vec<_>>());
        Ok(())
    }

    fn change(&mut self, fingerprint: u64, by: i64) {
        let change = self.changes.entry(fingerprint).or_default();
        *change = change.saturating_add(by);
        if *change == 0 {
            self.changes.remove(&fingerprint);
        }
        let many = usize::try_from(self.packed().head().distinct / 4).unwrap_or(usize::MAX);
        if self.changes.len() >= LEAST_CHANGES.max(many) {
            self.merge_changes();
        }
    }

    /// Merges all changes into the sorted fingerprints.
    fn merge_changes(&mut self) {
        if !self.changes.is_empty() {
            let changes = self.sorted_changes();
            self.changes.clear();
            self.apply(&changes);
        }
    }

    /// Merges changes in ascending order into the sorted fingerprints.
    fn apply(&mut self, changes: &[(u64, i64)]) {
        let bits = self.fingerprint_bits();
        let entries = Merged::new(self.packed().entries(), changes);
        let distinct = entries.clone().count() as u64;
        assert!(
            distinct <= MAX_DISTINCT,
            "a quotient filter has at most {MAX_DISTINCT} distinct fingerprints"
        );
        self.packed = packed::pack(bits, distinct, entries);
    }

    fn sorted_changes(&self) -> Vec<(u64, i64)> {
        let changes = self.changes.iter().map(|(&of, &by)| (of, by));
        let mut changes: Vec<(u64, i64)> = changes.collect();
        changes.sort_unstable();
        changes
    }

    /// Returns whether an element is in the set, or is a false positive.
    pub fn contains(&self, element: Digest) -> bool {
        let packed = self.packed();
        let fingerprint = fingerprint(element, packed.head().fingerprint);
        match self.changes.get(&fingerprint) {
            None => packed.find(fingerprint).is_some(),
            Some(&by) => by > 0 || packed.count(fingerprint) > by.unsigned_abs(),
        }
    }

    /// Returns how often an element is in the set: insertions less removals, including those of
    /// other elements with its fingerprint.
    pub fn count(&self, element: Digest) -> u64 {
        let packed = self.packed();
        let fingerprint = fingerprint(element, packed.head().fingerprint);
        let change = self.changes.get(&fingerprint).copied().unwrap_or_default();
        packed.count(fingerprint).saturating_add_signed(change)
    }

    /// Returns the number of insertions less removals.
    pub fn insertions(&self) -> u64 {
        let changes = self.changes.values();
        changes.fold(self.packed().head().insertions, |sum, &by| sum.saturating_add_signed(by))
    }

    /// Returns the bytes of the merged fingerprints, and about those of the changes.
    pub fn memory_bytes(&self) -> u64 {
        (self.packed.len() + self.changes.capacity() * size_of::<(u64, i64)>()) as u64
    }

    /// Returns the false-positive rate. Takes a pass over everything.
    pub fn rate(&self) -> f64 {
        let packed = self.packed();
        let changes = self.sorted_changes();
        let distinct = Merged::new(packed.entries(), &changes).count();
        distinct as f64 * 0.5_f64.powi(packed.head().fingerprint as i32)
    }

    /// Returns the filter as bytes, for [`QuotientFilter::load`] and [`QuotientInPlace::open`].
    /// They do not depend on the order of insertions and removals.
    pub fn save(&mut self) -> Vec<u8> {
        self.merge_changes();
        self.packed.clone()
    }
}

impl<W: Words> QuotientInPlace<W> {
    /// Opens a filter of `length` bytes, without comparing them with their checksum.
    ///
    /// # Errors
    ///
    /// The outer error: the words cannot be read. The inner error: it is no filter of a known
    /// version, or has another length than its head says.
    pub fn open(words: W, length: u64) -> Result<Result<Self, LoadError>, W::Error> {
        let layout = Layout::read(&words, length)?;
        Ok(layout.map(|layout| Self { layout, words }))
    }

    /// Returns whether an element is in the set, or is a false positive.
    ///
    /// # Errors
    ///
    /// The words cannot be read.
    pub fn contains(&self, element: Digest) -> Result<bool, W::Error> {
        let fingerprint = fingerprint(element, self.layout.head.fingerprint);
        Ok(self.layout.find(&self.words, fingerprint)?.is_some())
    }
}

/// Merges entries and changes, both in ascending order.
#[derive(Clone, Debug)]
struct Merged<'a> {
    entries: Peekable<Entries<'a>>,
    changes: Peekable<Copied<slice::Iter<'a, (u64, i64)>>>,
}

impl<'a> Merged<'a> {
    fn new(entries: Entries<'a>, changes: &'a [(u64, i64)]) -> Self {
        Self { entries: entries.peekable(), changes: changes.iter().copied().peekable() }
    }
}

impl Iterator for Merged<'_> {
    type Item = (u64, u64);

    fn next(&mut self) -> Option<(u64, u64)> {
        loop {
            let next =
                [self.entries.peek().map(|&(of, _)| of), self.changes.peek().map(|&(of, _)| of)];
            let fingerprint = next.into_iter().flatten().min()?;
            let before = self.entries.next_if(|&(of, _)| of == fingerprint);
            let change = self.changes.next_if(|&(of, _)| of == fingerprint);
            let before = before.map_or(0, |(_, count)| count);
            let count = before.saturating_add_signed(change.map_or(0, |(_, by)| by));
            if count > 0 {
                return Some((fingerprint, count));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that unwraps fails where it should")]

    use super::*;
    use crate::hashing::{Checksum, Digester};
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use std::fmt::Write;
    use std::ops::Range;

    fn digests(numbers: Range<u64>) -> Vec<Digest> {
        let digester = Digester::new(7);
        numbers.map(|number| digester.digest(&number.to_le_bytes())).collect()
    }

    fn filter_of(bits: u32, elements: &[Digest]) -> QuotientFilter {
        let mut filter = QuotientFilter::new(bits).unwrap();
        for &element in elements {
            filter.insert(element);
        }
        filter
    }

    /// Returns fingerprints and counts after the same insertions and removals in a map.
    fn expected(bits: u32, changes: &[(bool, Digest)]) -> BTreeMap<u64, u64> {
        let mut map = BTreeMap::new();
        for &(inserts, element) in changes {
            let count: &mut u64 = map.entry(fingerprint(element, bits)).or_default();
            *count = if inserts { *count + 1 } else { count.saturating_sub(1) };
        }
        map.retain(|_, count| *count > 0);
        map
    }

    /// Reads the format independently: bit by bit, from the description of the layout.
    fn read_plainly(bytes: &[u8]) -> Vec<(u64, u64)> {
        let long = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        let p = u64::from(u16::from_le_bytes([bytes[10], bytes[11]]));
        let (n, count_bits) = (long(16), long(32));
        let mut buckets = 1;
        let mut q = 0;
        while buckets * 2 <= n {
            buckets *= 2;
            q += 1;
        }
        let bit = |at: u64| u64::from(bytes[at as usize / 8] >> (at % 8) & 1);
        let runs = (40 + buckets.div_ceil(64) * 4 + buckets.div_ceil(512) * 8) * 8;
        let remainders = runs + (n + buckets).div_ceil(8) * 8;
        let counts = remainders + (n * (p - q)).div_ceil(8) * 8;
        let mut entries = Vec::new();
        let (mut bucket, mut count_at) = (0, counts);
        for at in runs..runs + n + buckets {
            if bit(at) == 0 {
                bucket += 1;
                continue;
            }
            let first = remainders + entries.len() as u64 * (p - q);
            let remainder: u64 = (0..p - q).map(|of| bit(first + of) << of).sum();
            let mut zeros = 0;
            while bit(count_at + zeros) == 0 {
                zeros += 1;
            }
            let behind: u64 = (0..zeros).map(|of| bit(count_at + zeros + 1 + of) << of).sum();
            count_at += 2 * zeros + 1;
            entries.push((bucket << (p - q) | remainder, (1 << zeros) + behind));
        }
        assert_eq!(count_at - counts, count_bits);
        assert_eq!(bytes.len() as u64, (counts / 8 + count_bits.div_ceil(8)) + 8);
        entries
    }

    proptest! {
        #[test]
        fn any_changes_give_the_contents_of_a_map(
            bits in 8_u32..=56,
            changes in prop::collection::vec((prop::bool::weighted(0.7), 0_u64..400), 0..1500),
            merges in prop::collection::vec(0_usize..1500, 0..5),
        ) {
            let changes: Vec<(bool, Digest)> = changes
                .into_iter()
                .map(|(inserts, number)| (inserts, digests(number..number + 1)[0]))
                .collect();
            let mut filter = QuotientFilter::new(bits).unwrap();
            for (at, &(inserts, element)) in changes.iter().enumerate() {
                if merges.contains(&at) {
                    filter.merge_changes();
                }
                let before = filter.count(element);
                if inserts {
                    filter.insert(element);
                    prop_assert_eq!(filter.count(element), before + 1);
                } else {
                    prop_assert_eq!(filter.remove(element), before > 0);
                    prop_assert_eq!(filter.count(element), before.saturating_sub(1));
                }
                prop_assert_eq!(filter.contains(element), filter.count(element) > 0);
            }
            let expected = expected(bits, &changes);
            prop_assert_eq!(filter.insertions(), expected.values().sum::<u64>());
            let saved = filter.save();
            let entries: Vec<_> = filter.packed().entries().collect();
            prop_assert_eq!(&entries, &read_plainly(&saved));
            prop_assert!(entries.into_iter().eq(expected));
            prop_assert!(QuotientFilter::load(&saved).is_ok());
        }
    }

    /// Bytes of a program in another language, written from the description of the layout.
    #[test]
    fn its_bytes_are_those_of_another_implementation() {
        const EXPECTED: &str = "894651554f54490a010014000000000028000000000000007b0000000000000086000000000000000000000000000000\
             00000000b9b25a5db56a6e993601b438d0691aa16d3c5fd743954e78062f956379277ddd00cc33d71d6071a97440b7be\
             ab67a523907cd7956316ad1c3558944da281d8c239834e18647b025db7585f0fff10aa0102757e964c624c969459662c\
             ebcc62962dd6b21933";
        let mut filter = QuotientFilter::new(20).unwrap();
        for number in 1..=40_u64 {
            let element = Digest::from_value(number.wrapping_mul(0x2545_f491_4f6c_dd1d));
            for _ in 0..=number * number % 7 {
                filter.insert(element);
            }
        }
        let saved = filter.save();
        let (bytes, _) = saved.split_last_chunk::<8>().unwrap();
        let mut hex = String::new();
        for byte in bytes {
            write!(hex, "{byte:02x}").unwrap();
        }
        assert_eq!(hex, EXPECTED);
    }

    #[test]
    fn every_element_is_found_at_any_size() {
        let elements = digests(0..300_000);
        let mut filter = QuotientFilter::new(40).unwrap();
        for (at, &element) in elements.iter().enumerate() {
            filter.insert(element);
            if at.is_power_of_two() {
                filter.merge_changes();
                let some = elements[..=at].iter().step_by(1 + at / 1000);
                assert!(some.clone().all(|&of| filter.contains(of)), "{at}");
                assert!(some.clone().all(|&of| filter.count(of) == 1), "{at}");
            }
        }
        assert!(elements.iter().all(|&of| filter.contains(of)));
        let saved = filter.save();
        let in_place = QuotientInPlace::open(&saved[..], saved.len() as u64);
        let in_place = in_place.unwrap().unwrap();
        assert!(elements.iter().all(|&of| in_place.contains(of).unwrap()));
        // log2 n is 18.2, so about 40 - 18.2 + 3.5 bits are expected.
        let bits = saved.len() as f64 * 8.0 / elements.len() as f64;
        println!("{bits:.2} bits an element");
        assert!((24.5..26.0).contains(&bits), "{bits}");
    }

    #[test]
    fn removal_undoes_insertion_byte_for_byte() {
        let (kept, others) = (digests(0..20_000), digests(15_000..120_000));
        let before = filter_of(36, &kept).save();
        let mut filter = QuotientFilter::load(&before).unwrap();
        for &element in &others {
            filter.insert(element);
        }
        let mut with_all = filter.clone();
        assert_ne!(with_all.save(), before);
        for &element in others.iter().rev() {
            assert!(filter.remove(element));
        }
        assert_eq!(filter.save(), before);
        // The same for a loaded filter, and in a batch.
        let mut at_once = with_all.clone();
        at_once.remove_batch(&others);
        assert_eq!(at_once.save(), before);
        for &element in &others {
            assert!(with_all.remove(element));
        }
        assert_eq!(with_all.save(), before);
        assert!(!filter.remove(digests(500_000..500_001)[0]));
    }

    #[test]
    fn a_union_is_the_filter_of_all_insertions() {
        let (some, others) = (digests(0..50_000), digests(30_000..90_000));
        let mut both = filter_of(30, &some);
        for &element in &others {
            both.insert(element);
        }
        let mut at_once = filter_of(30, &some);
        at_once.insert_batch(&others);
        assert_eq!(at_once.save(), both.save());
        let mut united = filter_of(30, &some);
        united.unite(&filter_of(30, &others)).unwrap();
        assert_eq!(united.save(), both.save());
        assert!(united.unite(&filter_of(31, &others)).is_err());
    }

    #[test]
    fn strangers_are_found_as_often_as_the_rate_says() {
        for (count, bits) in [(100, 12), (3000, 19), (100_000, 24)] {
            let (mut wrong, mut expected, mut variance) = (0_u64, 0.0, 0.0);
            for run in 0..20 {
                let first = run * 1_000_000;
                let mut filter = filter_of(bits, &digests(first..first + count));
                filter.merge_changes();
                let strangers = digests(first + 500_000..first + 520_000);
                wrong += strangers.iter().filter(|&&of| filter.contains(of)).count() as u64;
                let rate = filter.rate();
                expected += strangers.len() as f64 * rate;
                variance += strangers.len() as f64 * rate * (1.0 - rate);
            }
            let errors = (wrong as f64 - expected) / variance.sqrt();
            println!(
                "{count} elements, {bits} bits: {wrong} of {expected:.0}, {errors:+.2} errors"
            );
            assert!(errors.abs() < 4.0, "{count} {bits}: {errors}");
        }
    }

    #[test]
    fn a_count_of_any_size_is_kept() {
        let [one, other] = digests(0..2)[..] else { unreachable!("there are two") };
        let mut filter = filter_of(20, &[one, other]);
        let mut insertions = 1;
        while insertions < 1 << 50 {
            let all = filter.clone();
            filter.unite(&all).unwrap();
            filter.insert(one);
            insertions = 2 * insertions + 1;
            assert_eq!(filter.count(one), insertions);
            filter.merge_changes();
            assert_eq!(filter.count(one), insertions);
            assert_eq!(filter.count(other), insertions.div_ceil(2));
        }
    }

    #[test]
    fn changed_bytes_are_refused() {
        let saved = filter_of(36, &digests(0..700)).save();
        let asked = digests(0..20);
        for at in 0..saved.len() {
            let mut other = saved.clone();
            other[at] ^= 1 << (at % 8);
            assert!(QuotientFilter::load(&other).is_err(), "{at}");
            // With a valid checksum the parts contradict each other, or are those of another
            // filter.
            let end = other.len() - 8;
            let mut checksum = Checksum::new();
            checksum.update(&other[..end]);
            other[end..].copy_from_slice(&checksum.value().to_le_bytes());
            if let Ok(mut filter) = QuotientFilter::load(&other) {
                assert_eq!(filter.save(), other, "{at}");
                filter.insert(asked[0]);
                assert!(QuotientFilter::load(&filter.save()).is_ok(), "{at}");
            }
            let in_place = |bytes| QuotientInPlace::open(bytes, <[u8]>::len(bytes) as u64).unwrap();
            if let Ok(filter) = in_place(&other) {
                // Any answer, but no panic.
                let answers = asked.iter().map(|&of| filter.contains(of).unwrap());
                assert!(answers.count() == 20);
            }
            assert!(in_place(&saved[..at]).is_err(), "{at}");
        }
    }

    #[test]
    fn impossible_fingerprints_are_refused() {
        for bits in [0, 7, 57, 64] {
            assert!(QuotientFilter::new(bits).is_err(), "{bits}");
        }
    }
}
