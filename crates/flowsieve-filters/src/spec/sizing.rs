//! The size that a caller asks for, and the checks that the structures share.

use super::{FilterKind, SpecError};
use crate::bits::CounterArray;
use crate::sizing::{DEFAULT_PROBES, best_probes, rounded_bloom_bits};
use std::ops::RangeInclusive;

/// Size of a filter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Sizing {
    /// At most this much memory, for `expected` distinct elements if their number is known.
    Memory {
        /// Bytes of all arrays together.
        bytes: u64,
        /// Expected distinct elements; k is chosen for them.
        expected: Option<u64>,
    },
    /// As small as possible for a false-positive rate.
    Rate {
        /// The rate at `expected` elements, between 0 and 1.
        fpr: f64,
        /// Distinct elements.
        expected: u64,
    },
}

/// Largest filter that is built, in bytes: 2^40.
pub(crate) const MAX_BYTES: u64 = 1 << 40;

/// Smallest array that a search tries, in bits.
pub(crate) const LEAST_ARRAY_BITS: u64 = 64;

/// Returns the bits of each of `arrays` equal bit arrays that fill the memory, or that each reach
/// the rate; and the number of elements if it is known.
pub(crate) fn array_bits(
    kind: FilterKind,
    arrays: u64,
    sizing: Sizing,
) -> Result<(u64, Option<u64>), SpecError> {
    match sizing {
        Sizing::Memory { bytes, expected } => {
            check_memory(kind, bytes, 8 * arrays)?;
            Ok((bytes * 8 / arrays, expected))
        }
        Sizing::Rate { fpr, expected } => {
            let bits = rounded_bloom_bits(fpr, expected as f64);
            check_memory(kind, bits.div_ceil(8).saturating_mul(arrays), arrays)?;
            Ok((bits, Some(expected)))
        }
    }
}

/// Returns the best k for this many elements, or [`DEFAULT_PROBES`] if their number is not known.
pub(crate) fn probes_for(bits: u64, expected: Option<u64>, most: u32) -> u32 {
    expected.map_or(DEFAULT_PROBES, |n| best_probes(bits as f64, n as f64, most))
}

/// Checks that a number lies in a range. The error says who has how many of what, and a number that
/// works: `a chain has 1 to 1024 links, not 0; 8 works`.
pub(crate) fn check_range(
    has: &str,
    range: RangeInclusive<u64>,
    what: &str,
    number: u64,
    works: u64,
) -> Result<(), SpecError> {
    if range.contains(&number) {
        return Ok(());
    }
    let (least, most) = range.into_inner();
    Err(SpecError::new(format!("{has} {least} to {most} {what}, not {number}; {works} works")))
}

pub(super) fn check_rate(fpr: f64) -> Result<(), SpecError> {
    if fpr > 0.0 && fpr < 1.0 {
        Ok(())
    } else {
        Err(SpecError::new(format!(
            "a false-positive rate lies between 0 and 1, not {fpr}; 0.001 works"
        )))
    }
}

pub(crate) fn check_memory(kind: FilterKind, bytes: u64, least: u64) -> Result<(), SpecError> {
    if bytes < least {
        return Err(SpecError::TooLittleMemory { kind, least, bytes });
    }
    if bytes > MAX_BYTES {
        return Err(SpecError::new(format!(
            "a filter has at most {MAX_BYTES} bytes (1 TiB), not {bytes}; ask for less"
        )));
    }
    Ok(())
}

/// Checks that there are 1 to `most` hash functions.
pub(crate) fn check_probes(probes: u32, most: u32) -> Result<(), SpecError> {
    let has = "a filter of this kind has";
    check_range(has, 1..=most.into(), "hash functions", probes.into(), DEFAULT_PROBES.into())
}

/// Checks that all arrays together have at least one bit and fit into [`MAX_BYTES`].
pub(crate) fn check_bits(bits: u128) -> Result<(), SpecError> {
    if bits == 0 || bits > u128::from(MAX_BYTES) * 8 {
        return Err(SpecError::new(format!(
            "the arrays of a filter have from 1 to 2^43 bits together (1 TiB), not {bits}; 1000000 works"
        )));
    }
    Ok(())
}

/// Bits of a counter by default. Such a counter overflows at 16, which is next to impossible with
/// distinct elements.
pub(crate) const DEFAULT_COUNTER_BITS: u32 = 4;

/// Checks the width of the counters, that each of the `parts` has at least one, and that all of
/// them fit into [`MAX_BYTES`].
pub(crate) fn check_counters(
    counters: u64,
    parts: u64,
    counter_bits: u32,
) -> Result<(), SpecError> {
    if counters == 0 {
        return Err(SpecError::new(
            "a filter has at least one counter for each hash function, not 0; 1 works",
        ));
    }
    let in_word = CounterArray::per_word(counter_bits.clamp(1, 8));
    let all = u128::from(counters) * u128::from(parts);
    check_bits(all.div_ceil(in_word.into()) * 64)?;
    let works = DEFAULT_COUNTER_BITS.into();
    check_range("a counter has", 1..=8, "bits", counter_bits.into(), works)
}
