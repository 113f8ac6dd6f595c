//! Ribbon filter: a set that never changes, in hardly more bits than its false-positive rate
//! requires.
//!
//! # Memory
//!
//! ```text
//!     element ──► digest ──► start s, row of w = 128 coefficients (the first is 1), fingerprint of r bits
//!
//!     column 1:  b b b b [b b b b b b] b b b b …      m bits: the XOR of those that the row selects from s on
//!     column 2:  b b b b [b b b b b b] b b b b …      is bit 1 of the fingerprint, …
//!       …
//!     column r:  b b b b [b b b b b b] b b b b …      … and bit r
//! ```
//!
//! Each element is an equation for each column, and the filter is a solution of all of them: m r
//! bits, with m a few percent above the number of elements n. A Bloom filter takes 1.44 r n bits
//! for the same rate, one in cache lines more; a binary fuse filter takes 1.13 r n for millions of
//! elements, and 1.3 to 1.45 r n for a few hundred or thousand.
//!
//! # Operations
//!
//! - build: Gaussian elimination over all elements at once, in O(n w) and fast, since a row meets
//!   few others. If there is no solution, it is tried again with other hash functions, and with a
//!   few more slots. The result only depends on the set of elements.
//! - contains: r windows of w bits, which lie in r cache lines if the filter is large.
//!
//! # Formulas
//!
//! The false-positive rate is 2^-r for any elements.
//!
//! # Limits
//!
//! Elements cannot be added, removed or counted, and filters cannot be united: a solution contains
//! nothing about the elements that it was made for.
//!
//! # Example
//!
//! ```
//! use flowsieve_filters::RibbonFilter;
//! use flowsieve_filters::hashing::Digester;
//!
//! let hasher = Digester::new(0);
//! let words: Vec<_> = (0..1000_u32).map(|i| hasher.digest(&i.to_le_bytes())).collect();
//! let filter = RibbonFilter::build(&words, 8)?;
//! assert!(words.iter().all(|&word| filter.contains(word)));
//! assert!(filter.memory_bytes() < 1100);
//! # Ok::<(), flowsieve_filters::SpecError>(())
//! ```
//!
//! Reference: Dillinger, Walzer, "Ribbon filter: practically smaller than Bloom and Xor", 2021;
//! binary fuse filters: Graf, Lemire, "Binary fuse filters: fast and smaller than xor filters", ACM
//! Journal of Experimental Algorithmics 27, 2022.

use super::saved::{LoadError, check_tail};
use super::spec::{SpecError, check_range};
use crate::hashing::{Checksum, Digest, digest_of, in_order_of, mix, reduce};

/// Coefficients of a row (w).
const WIDTH: u64 = 128;

/// Most bits of a fingerprint.
const MAX_FINGERPRINT: u32 = 32;

/// Hash functions that are tried with each number of slots.
const TRIES: u32 = 4;

/// Most numbers of slots that are tried.
const GROWTHS: u32 = 64;

/// Most elements: their slots are numbers of 32 bits with room for growth.
const MAX_ELEMENTS: usize = 1 << 31;

/// First stream of the hash functions, apart from those of other structures.
const FIRST_STREAM: u64 = 0x2000_0000;

/// Rows that are zeroed at a time.
const ROWS_AT_ONCE: usize = 1024;

const MARK: [u8; 8] = *b"\x89FRIBBO\n";
const VERSION: u16 = 1;

/// Bytes of a saved filter before its columns, and of the checksum after them.
const HEAD: usize = 32;
const TAIL: usize = 8;

/// Parameters of the columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shape {
    /// Number of the hash functions.
    functions: u32,
    /// Bits of a fingerprint (r), which is the number of columns.
    fingerprint: u32,
    /// Bits of a column (m).
    slots: u64,
    /// Elements (n).
    elements: u64,
}

/// A set of elements that is built at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RibbonFilter {
    shape: Shape,
    /// The columns, one after the other.
    columns: Vec<u8>,
}

/// A saved ribbon filter, queried without loading it.
#[derive(Clone, Copy, Debug)]
pub struct RibbonInPlace<'a> {
    shape: Shape,
    columns: &'a [u8],
}

/// An element's equation.
struct Equation {
    start: u64,
    row: u128,
    fingerprint: u32,
}

impl Shape {
    /// Returns the hash function of the starts, which ascend with its values.
    fn stream_of_starts(functions: u32) -> u64 {
        FIRST_STREAM + u64::from(functions) * 4
    }

    fn equation(self, digest: Digest) -> Equation {
        let first = Self::stream_of_starts(self.functions);
        let number = |stream: u64| mix(digest, first + stream);
        let row = u128::from(number(1)) << 64 | u128::from(number(2)) | 1;
        let fingerprint = number(3) >> (64 - self.fingerprint);
        let (start, row) = if self.slots > WIDTH {
            (reduce(number(0), self.slots - WIDTH + 1), row)
        } else {
            (0, row & (u128::MAX >> (WIDTH - self.slots)))
        };
        Equation { start, row, fingerprint: fingerprint as u32 }
    }

    const fn column_bytes(self) -> u64 {
        (self.slots * self.fingerprint as u64).div_ceil(8)
    }

    fn contains(self, columns: &[u8], digest: Digest) -> bool {
        if self.elements == 0 {
            return false;
        }
        let Equation { start, row, fingerprint } = self.equation(digest);
        (0..self.fingerprint).all(|column| {
            let window = window(columns, u64::from(column) * self.slots + start);
            (window & row).count_ones() & 1 == fingerprint >> column & 1
        })
    }
}

/// Returns 128 bits from a place on; bits beyond the end are 0.
fn window(bytes: &[u8], at: u64) -> u128 {
    let (first, shift) = ((at / 8) as usize, at % 8);
    let from = bytes.get(first..).unwrap_or_default();
    let chunk = from.first_chunk::<17>().copied().unwrap_or_else(|| {
        let mut padded = [0; 17];
        padded[..from.len().min(17)].copy_from_slice(&from[..from.len().min(17)]);
        padded
    });
    let [low @ .., high] = chunk;
    let low = u128::from_le_bytes(low);
    if shift == 0 { low } else { low >> shift | u128::from(high) << (128 - shift) }
}

impl RibbonFilter {
    /// Builds the filter of these elements, which may repeat and come in any order, with a
    /// false-positive rate of 2^-`fingerprint_bits` (1 to 32).
    ///
    /// # Errors
    ///
    /// `fingerprint_bits` is out of range, or there are more than 2^31 elements.
    pub fn build(elements: &[Digest], fingerprint_bits: u32) -> Result<Self, SpecError> {
        let most = MAX_FINGERPRINT.into();
        check_range("a fingerprint has", 1..=most, "bits", fingerprint_bits.into(), 8)?;
        if elements.len() > MAX_ELEMENTS {
            return Err(SpecError::new(format!(
                "a ribbon filter has at most {MAX_ELEMENTS} elements, not {}; divide them among several",
                elements.len()
            )));
        }
        let mut distinct = in_order_of(Shape::stream_of_starts(0), elements);
        let elements = distinct.len() as u64;
        let mut shape = Shape {
            functions: 0,
            fingerprint: fingerprint_bits,
            slots: first_slots(elements),
            elements,
        };
        for _ in 0..GROWTHS {
            for functions in 0..TRIES {
                if functions != shape.functions {
                    shape.functions = functions;
                    let digests: Vec<Digest> = distinct.iter().copied().map(digest_of).collect();
                    distinct = in_order_of(Shape::stream_of_starts(functions), &digests);
                }
                if let Some(columns) = solve(shape, &distinct) {
                    return Ok(Self { shape, columns });
                }
            }
            shape.slots += 1 + shape.slots / 100;
        }
        Err(SpecError::new(
            "no ribbon filter holds these elements, whose digests are not as random as digests are; use another seed",
        ))
    }

    /// Returns whether an element is in the set, or is a false positive.
    pub fn contains(&self, element: Digest) -> bool {
        self.shape.contains(&self.columns, element)
    }

    /// Returns the number of distinct elements.
    pub const fn elements(&self) -> u64 {
        self.shape.elements
    }

    /// Returns the bytes of the columns.
    pub const fn memory_bytes(&self) -> u64 {
        self.columns.len() as u64
    }

    /// Returns the false-positive rate.
    pub fn rate(&self) -> f64 {
        if self.shape.elements == 0 {
            return 0.0;
        }
        0.5_f64.powi(self.shape.fingerprint as i32)
    }

    /// Returns the filter as bytes, for [`RibbonInPlace::open`].
    pub fn save(&self) -> Vec<u8> {
        let Shape { functions, fingerprint, slots, elements } = self.shape;
        let mut bytes = Vec::with_capacity(HEAD + self.columns.len() + TAIL);
        bytes.extend(MARK);
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend((fingerprint as u16).to_le_bytes());
        bytes.extend(functions.to_le_bytes());
        bytes.extend(slots.to_le_bytes());
        bytes.extend(elements.to_le_bytes());
        bytes.extend(&self.columns);
        let checksum = Checksum::of(&bytes);
        bytes.extend(checksum.to_le_bytes());
        bytes
    }
}

impl<'a> RibbonInPlace<'a> {
    /// Returns whether these bytes begin like a saved ribbon filter.
    pub fn is_one(bytes: &[u8]) -> bool {
        bytes.starts_with(&MARK)
    }

    /// Opens the filter in `bytes`, without comparing them with their checksum: see
    /// [`RibbonInPlace::check`].
    ///
    /// # Errors
    ///
    /// It is no filter of a known version, or has another length than its head says.
    pub fn open(bytes: &'a [u8]) -> Result<Self, LoadError> {
        let damaged = |offset, reason| LoadError::Damaged { offset, reason };
        let Some((head, rest)) = bytes.split_first_chunk::<HEAD>() else {
            return Err(damaged(0, "it is too short for a ribbon filter"));
        };
        if !Self::is_one(bytes) {
            return Err(damaged(0, "it is no ribbon filter"));
        }
        let [_, parameters, slots, elements] =
            bytemuck::cast::<_, [[u8; 8]; 4]>(*head).map(u64::from_le_bytes);
        let shape = Shape {
            functions: (parameters >> 32) as u32,
            fingerprint: u32::from((parameters >> 16) as u16),
            slots,
            elements,
        };
        if parameters as u16 != VERSION {
            return Err(damaged(8, "it is a ribbon filter of an unknown version"));
        }
        if shape.fingerprint == 0 || shape.fingerprint > MAX_FINGERPRINT {
            return Err(damaged(10, "fingerprints have 1 to 32 bits"));
        }
        if shape.slots == 0 || shape.slots > 2 * MAX_ELEMENTS as u64 {
            return Err(damaged(16, "so many slots cannot be"));
        }
        if rest.len() as u64 != shape.column_bytes() + TAIL as u64 {
            return Err(damaged(0, "its length is not what its parameters say"));
        }
        Ok(Self { shape, columns: &rest[..rest.len() - TAIL] })
    }

    /// Opens the filter in `bytes` and compares them with their checksum.
    ///
    /// # Errors
    ///
    /// As [`RibbonInPlace::open`], or the bytes are not those that were saved.
    pub fn check(bytes: &'a [u8]) -> Result<Self, LoadError> {
        let filter = Self::open(bytes)?;
        check_tail(bytes)?;
        Ok(filter)
    }

    /// Returns whether an element is in the set, or is a false positive.
    pub fn contains(&self, element: Digest) -> bool {
        self.shape.contains(self.columns, element)
    }
}

/// Returns the number of slots that is tried first: a few percent more than elements, and the more
/// the more elements there are.
fn first_slots(elements: u64) -> u64 {
    let n = elements.max(1) as f64;
    (n * (1.0 + n.log2() / 1000.0)) as u64 + 8
}

/// Returns the columns that satisfy each element's equation, or `None` if there are none. They do
/// not depend on the order of the elements, since the slots that get a row depend only on the space
/// of all equations. The elements are given in the order of their starts, so that a row meets rows
/// near it, which are in the caches.
fn solve(shape: Shape, elements: &[u128]) -> Option<Vec<u8>> {
    let (rows, fingerprints) = &rows(shape, elements)?;
    let substitute = Substitute { shape, rows, fingerprints };
    #[cfg(target_arch = "x86_64")]
    if let Some(simd) = pulp::x86::V3::try_new() {
        return Some(simd.vectorize(substitute));
    }
    Some(substitute.columns())
}

/// Returns a row for each slot, beginning with the coefficient of the slot, and its fingerprint;
/// both are 0 in a slot without a row. `None` if the equations contradict each other.
fn rows(shape: Shape, elements: &[u128]) -> Option<(Vec<u128>, Vec<u32>)> {
    let slots = shape.slots as usize;
    // Zeroed step by step: the system maps zeroed memory twice if it is read before it is written.
    let (mut rows, mut fingerprints) = (Vec::with_capacity(slots), Vec::with_capacity(slots));
    for &element in elements {
        let mut equation = shape.equation(digest_of(element));
        let mut at = equation.start as usize;
        loop {
            if at >= rows.len() {
                rows.resize(slots.min(at + ROWS_AT_ONCE), 0_u128);
                fingerprints.resize(rows.len(), 0_u32);
            }
            // A row never reaches beyond the last slot: coefficients there are cut off.
            let (row, fingerprint) = (&mut rows[at], &mut fingerprints[at]);
            if *row == 0 {
                (*row, *fingerprint) = (equation.row, equation.fingerprint);
                break;
            }
            equation.row ^= *row;
            equation.fingerprint ^= *fingerprint;
            if equation.row == 0 {
                if equation.fingerprint != 0 {
                    return None;
                }
                break;
            }
            let zeros = equation.row.trailing_zeros();
            equation.row >>= zeros;
            at += zeros as usize;
        }
    }
    rows.resize(slots, 0);
    fingerprints.resize(slots, 0);
    Some((rows, fingerprints))
}

/// Back substitution, once the rows are known.
struct Substitute<'a> {
    shape: Shape,
    rows: &'a [u128],
    fingerprints: &'a [u32],
}

#[cfg(target_arch = "x86_64")]
impl pulp::NullaryFnOnce for Substitute<'_> {
    type Output = Vec<u8>;

    #[inline(always)]
    fn call(self) -> Vec<u8> {
        self.columns()
    }
}

impl Substitute<'_> {
    /// Computes the columns from the last slot to the first. Most of the time goes into counting
    /// ones, which is one instruction on most machines.
    #[inline(always)]
    fn columns(self) -> Vec<u8> {
        let Self { shape, rows, fingerprints } = self;
        let mut columns = vec![0; shape.column_bytes() as usize];
        // For each column the slots after the present one, the nearest in the lowest bit.
        let mut behind = vec![0_u128; shape.fingerprint as usize];
        for (at, (&row, &fingerprint)) in rows.iter().zip(fingerprints).enumerate().rev() {
            let has_row = (row & 1) as u32;
            for (column, behind) in behind.iter_mut().enumerate() {
                let selected = row >> 1 & *behind;
                let parity = (selected as u64 ^ (selected >> 64) as u64).count_ones();
                let bit = has_row & (parity ^ fingerprint >> column);
                *behind = *behind << 1 | u128::from(bit);
            }
            if at % 64 == 0 {
                for (column, &behind) in behind.iter().enumerate() {
                    put(&mut columns, column * rows.len() + at, behind as u64);
                }
            }
        }
        columns
    }
}

/// Sets the bits of a word in bytes that are still 0; bits beyond the end have to be 0.
fn put(bytes: &mut [u8], at: usize, word: u64) {
    let shifted = u128::from(word) << (at % 8);
    let places = bytes[at / 8..].iter_mut();
    for (place, byte) in places.zip(shifted.to_le_bytes()).take(9) {
        *place |= byte;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that unwraps fails where it should")]

    use super::*;
    use crate::hashing::Digester;

    fn digests(seed: u64, count: u64) -> Vec<Digest> {
        let digester = Digester::new(seed);
        (0..count).map(|number| digester.digest(&number.to_le_bytes())).collect()
    }

    /// Every number of elements up to some hundreds, and some larger ones.
    #[test]
    fn every_element_is_found() {
        for count in (0..400).chain([511, 512, 513, 1000, 10_000, 100_000]) {
            let elements = digests(count, count);
            let fingerprint = 1 + (count % 32) as u32;
            let filter = RibbonFilter::build(&elements, fingerprint).unwrap();
            let found = |element: &Digest| filter.contains(*element);
            assert!(elements.iter().all(found), "{count}");
            let saved = filter.save();
            let in_place = RibbonInPlace::check(&saved).unwrap();
            assert!(elements.iter().all(|&element| in_place.contains(element)), "{count}");
        }
    }

    #[test]
    fn nothing_is_in_an_empty_set() {
        let filter = RibbonFilter::build(&[], 8).unwrap();
        assert!(digests(0, 1000).iter().all(|&element| !filter.contains(element)));
        assert_eq!(filter.rate().to_bits(), 0.0_f64.to_bits());
    }

    #[test]
    fn strangers_are_found_as_often_as_the_rate_says() {
        for (count, fingerprint) in [(10, 3), (300, 5), (3000, 8), (20_000, 11)] {
            let (mut wrong, mut asked) = (0_u64, 0_u64);
            let mut rate = 0.0;
            for run in 0..40 {
                let filter = RibbonFilter::build(&digests(run, count), fingerprint).unwrap();
                rate = filter.rate();
                let strangers = digests(1000 + run, 20_000);
                asked += strangers.len() as u64;
                wrong +=
                    strangers.iter().filter(|&&stranger| filter.contains(stranger)).count() as u64;
            }
            let expected = asked as f64 * rate;
            let errors = (wrong as f64 - expected) / (expected * (1.0 - rate)).sqrt();
            println!(
                "{count} elements, {fingerprint} bits: {wrong} of {asked}, {errors:+.2} errors"
            );
            assert!(errors.abs() < 4.0, "{count} {fingerprint}: {errors}");
        }
    }

    #[test]
    fn the_filter_only_depends_on_the_set() {
        let elements = digests(5, 3000);
        let filter = RibbonFilter::build(&elements, 9).unwrap();
        let mut others = elements.clone();
        others.reverse();
        others.extend(&elements[100..200]);
        assert_eq!(RibbonFilter::build(&others, 9).unwrap(), filter);
        // The solution does not depend on the order of the equations, nor on the machine's
        // instructions.
        let pairs: Vec<u128> = elements.iter().map(|of| of.value().into()).collect();
        assert_eq!(solve(filter.shape, &pairs).unwrap(), filter.columns);
        let (rows, fingerprints) = &rows(filter.shape, &pairs).unwrap();
        let substitute = Substitute { shape: filter.shape, rows, fingerprints };
        assert_eq!(substitute.columns(), filter.columns);
    }

    #[test]
    fn slots_are_few_percent_more_than_elements() {
        for (count, most) in [(100, 1.2), (450, 1.06), (3000, 1.04), (100_000, 1.05)] {
            let filter = RibbonFilter::build(&digests(1, count), 8).unwrap();
            let slots = filter.shape.slots as f64 / count as f64;
            println!("{count}: {slots:.4} slots an element, functions {}", filter.shape.functions);
            assert!(slots < most, "{count}: {slots}");
        }
    }

    #[test]
    fn changed_bytes_are_refused() {
        let saved = RibbonFilter::build(&digests(1, 300), 7).unwrap().save();
        assert!(RibbonInPlace::check(&saved).is_ok());
        for at in 0..saved.len() {
            let mut other = saved.clone();
            other[at] ^= 1 << (at % 8);
            assert!(RibbonInPlace::check(&other).is_err(), "{at}");
            if let Ok(filter) = RibbonInPlace::open(&other) {
                // Any answer, but no panic.
                filter.contains(digests(2, 1)[0]);
            }
            assert!(RibbonInPlace::open(&saved[..at]).is_err(), "{at}");
        }
    }
}
