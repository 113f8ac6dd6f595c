//! Sizes of filters, and the checks that they share.

use super::{FilterKind, SpecError};
use crate::bits::CounterArray;
use crate::sizing::{DEFAULT_PROBES, best_probes, least_bloom_bits};

/// Size of a filter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Sizing {
    /// In this many bytes, for `expected` distinct elements if that is known.
    Memory {
        /// Bytes of all arrays together.
        bytes: u64,
        /// Distinct elements that are expected; chooses k.
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

/// Least bits of an array that is planned.
pub(crate) const LEAST_ARRAY_BITS: u64 = 64;

/// Bits of each of `arrays` equal bit arrays that take the memory, or reach the rate in each; with
/// the number of elements, if it is known.
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
            check_rate(fpr)?;
            let bits = least_bloom_bits(fpr, expected as f64).ceil() as u64;
            check_memory(kind, bits.div_ceil(8).saturating_mul(arrays), arrays)?;
            Ok((bits, Some(expected)))
        }
    }
}

/// The best k for this many elements, or the usual one.
pub(crate) fn probes_for(bits: u64, expected: Option<u64>, most: u32) -> u32 {
    expected.map_or(DEFAULT_PROBES, |n| best_probes(bits as f64, n as f64, most))
}

pub(crate) fn check_rate(fpr: f64) -> Result<(), SpecError> {
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

/// Whether there are 1 to `most` hash functions.
pub(crate) fn check_probes(probes: u32, most: u32) -> Result<(), SpecError> {
    if probes == 0 || probes > most {
        return Err(SpecError::new(format!(
            "a filter of this kind has 1 to {most} hash functions, not {probes}; {DEFAULT_PROBES} works"
        )));
    }
    Ok(())
}

/// Whether all arrays have at least one bit together, and fit into 2^40 bytes.
pub(crate) fn check_bits(bits: u128) -> Result<(), SpecError> {
    if bits == 0 {
        return Err(wrong_bits(bits));
    }
    check_most_bits(bits)
}

/// Whether the arrays fit into 2^40 bytes.
pub(crate) fn check_most_bits(bits: u128) -> Result<(), SpecError> {
    if bits > u128::from(MAX_BYTES) * 8 {
        return Err(wrong_bits(bits));
    }
    Ok(())
}

fn wrong_bits(bits: u128) -> SpecError {
    SpecError::new(format!(
        "the arrays of a filter have from 1 to 2^43 bits together (1 TiB), not {bits}; 1000000 works"
    ))
}

/// Bits of a counter when nothing else is asked for: it overflows at 16, which is next to
/// impossible with distinct elements.
pub(crate) const DEFAULT_COUNTER_BITS: u32 = 4;

/// Whether counters can have this many bits, and there is one for each hash function at least.
pub(crate) fn check_counters(
    counters: u64,
    parts: u64,
    counter_bits: u32,
) -> Result<(), SpecError> {
    let in_word = CounterArray::per_word(counter_bits.clamp(1, 8));
    let all = u128::from(counters) * u128::from(parts);
    check_most_bits(all.div_ceil(in_word.into()) * 64)?;
    if counters == 0 {
        return Err(SpecError::new(
            "a filter has at least one counter for each hash function, not 0; 1 works",
        ));
    }
    if counter_bits == 0 || counter_bits > 8 {
        return Err(SpecError::new(format!(
            "a counter has 1 to 8 bits, not {counter_bits}; {DEFAULT_COUNTER_BITS} works"
        )));
    }
    Ok(())
}
