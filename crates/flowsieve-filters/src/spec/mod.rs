//! What filter is wanted, as plain data, and the one place that turns it into a filter.

mod bounds;
mod build;
mod check;
mod combinations;
mod counters;
mod kind;
mod matrices;

use self::counters::dleft_bytes;
pub use self::kind::{FilterKind, Sizing};
use self::matrices::matrix;
use super::dleft::SUBTABLES;
use super::sizing::{
    DEFAULT_PROBES, MAX_PROBES, best_line_probes, best_probes, blocked_fpr, blocked_lines,
    least_bloom_bits,
};
use super::{BloomLayout, Combination, MatrixSpec, PlannedCombination, Refill};
use crate::bits::{CounterArray, Lines};

/// A filter's parameters, sizes in bits.
#[derive(Clone, Debug, PartialEq)]
pub enum FilterSpec {
    /// [`BloomFilter`](super::BloomFilter), or [`BloomLineFilter`](super::BloomLineFilter).
    Bloom {
        /// Bits of the array (m).
        bits: u64,
        /// Hash functions (k).
        probes: u32,
        /// Where the bits of an element stand.
        layout: BloomLayout,
    },
    /// [`Mdbf`](super::Mdbf).
    Mdbf {
        /// Number of attributes (L).
        attributes: usize,
        /// Bits of each of the L arrays (m).
        bits: u64,
        /// Hash functions (k).
        probes: u32,
    },
    /// [`Cmdbf`](super::Cmdbf).
    Cmdbf {
        /// Number of attributes (L).
        attributes: usize,
        /// Bits of each of the L + 1 arrays (m).
        bits: u64,
        /// Hash functions (k).
        probes: u32,
        /// How combined addresses are made.
        combination: Combination,
    },
    /// [`SubsetFilter`](super::SubsetFilter).
    Subset {
        /// Number of attributes; combinations can be planned for at most 16.
        attributes: usize,
        /// Cache lines of 512 bits.
        lines: u64,
        /// Bits an element in its line (k).
        probes: u32,
        /// Combinations stored besides the whole element.
        combinations: Vec<PlannedCombination>,
    },
    /// [`CountingFilter`](super::CountingFilter).
    Counting {
        /// Counters (m).
        counters: u64,
        /// Hash functions (k).
        probes: u32,
        /// Bits of a counter.
        counter_bits: u32,
    },
    /// [`SplitCountingFilter`](super::SplitCountingFilter).
    SplitCounting {
        /// Counters of a part (m).
        part: u64,
        /// Hash functions, and parts (k).
        probes: u32,
        /// Bits of a counter.
        counter_bits: u32,
    },
    /// [`ScalableFilter`](super::ScalableFilter).
    Scalable {
        /// Counters of a part of a link (m).
        part: u64,
        /// Hash functions, and parts of a link (k).
        probes: u32,
        /// Bits of a counter.
        counter_bits: u32,
        /// Links that the chain may have.
        most_links: u32,
        /// Which link takes a new element.
        refill: Refill,
    },
    /// [`DleftFilter`](super::DleftFilter). Cells of up to 16 bits take 16, others 32.
    Dleft {
        /// Binary logarithm of the buckets of each subtable (b).
        bucket_bits: u32,
        /// Bits of a remainder (r).
        remainder_bits: u32,
        /// Bits of a cell's count (c).
        counter_bits: u32,
    },
    /// [`CartesianFilter`](super::CartesianFilter).
    Cartesian {
        /// Number of attributes (d).
        attributes: usize,
        /// Addresses of each attribute (m).
        size: u64,
        /// Hash functions (k).
        probes: u32,
    },
    /// [`MatrixFilter`](super::MatrixFilter): BFM, CBFM or WCBFM.
    Matrix(MatrixSpec),
}

/// Parameters that no filter can have; the text states the rule and a value that works.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SpecError {
    /// The memory does not hold the smallest filter of the kind.
    #[error("a {} filter needs at least {least} bytes, not {bytes}; ask for {least} or more", kind.name())]
    TooLittleMemory {
        /// The structure.
        kind: FilterKind,
        /// Bytes of the smallest one.
        least: u64,
        /// Bytes asked for.
        bytes: u64,
    },
    /// Another rule is broken; the text says which.
    #[error("{0}")]
    Rule(String),
}

impl SpecError {
    pub(super) fn new(rule: impl Into<String>) -> Self {
        Self::Rule(rule.into())
    }
}

impl FilterSpec {
    /// Parameters of a structure for elements of `attributes` attributes.
    ///
    /// Counters get 4 bits; a scalable filter is a chain of up to 8 links, sized to be full with the
    /// elements expected; a d-left filter gets counts of 2 bits and remainders that fill its cells, and
    /// has the largest power of two of buckets that the memory holds, so it may use but half of it.
    ///
    /// A rate is that of an element whose values have all occurred, apart, as those of traffic have: a CMDBF gets
    /// arrays that reach it in the combined one alone, and an MDBF has none.
    ///
    /// The matrices get the largest size m that fits. A CBFM (and a WCBFM, whose weights are equal
    /// here) gets the cuts and the k with the least predicted false-positive rate of a full query, all
    /// values of which occur: among no cut, keeping only combinations of at most r attributes, and
    /// cutting the pairs {1,2}, {3,4}, … ([`cut_families`](crate::matrix_sizing::cut_families)).
    ///
    /// # Errors
    ///
    /// Memory for less than one bit (or line) of each array, a rate outside of (0, 1), a rate for no
    /// elements, one that a filter in cache lines does not reach, any of an MDBF, or a size beyond 2^40 bytes.
    pub fn new(kind: FilterKind, attributes: usize, sizing: Sizing) -> Result<Self, SpecError> {
        if let Sizing::Rate { expected: 0, .. } = sizing {
            return Err(SpecError::Rule(
                "a rate is for at least one expected element, not 0; 1000 works".to_owned(),
            ));
        }
        let arrays = match kind {
            FilterKind::Counting
            | FilterKind::SplitCounting
            | FilterKind::Scalable
            | FilterKind::Dleft => return Self::with_counters(kind, sizing),
            FilterKind::Bloom
            | FilterKind::Subset
            | FilterKind::Cartesian
            | FilterKind::Bfm
            | FilterKind::Cbfm
            | FilterKind::Wcbfm => 1,
            FilterKind::Mdbf => attributes as u64,
            FilterKind::Cmdbf => attributes as u64 + 1,
        };
        let (bits, expected) = match sizing {
            Sizing::Memory { bytes, expected } => {
                check_memory(kind, bytes, arrays)?;
                // Whole words, so that no more memory is taken than was asked for.
                (bytes / arrays / 8 * 64, expected)
            }
            Sizing::Rate { fpr, expected } => {
                check_rate(fpr)?;
                let elements = expected.max(1) as f64;
                let bits = match kind {
                    FilterKind::Subset => {
                        let lines = blocked_lines(fpr, elements)
                            .ok_or_else(|| out_of_reach(fpr, expected))?;
                        lines * Lines::LINE_BYTES * 8
                    }
                    FilterKind::Mdbf if arrays > 1 => return Err(without_rate(fpr)),
                    // All values of what is asked may have occurred, apart: then the arrays of the attributes
                    // say yes, and only the last one tells.
                    _ => least_bloom_bits(fpr, elements).ceil() as u64,
                };
                check_memory(kind, bits.div_ceil(8).saturating_mul(arrays), arrays)?;
                (bits, Some(expected))
            }
        };
        let probes = |most: u32| {
            expected.map_or(DEFAULT_PROBES, |n| best_probes(bits as f64, n as f64, most))
        };
        let most = MAX_PROBES as u32;
        let spec = match kind {
            FilterKind::Counting
            | FilterKind::SplitCounting
            | FilterKind::Scalable
            | FilterKind::Dleft => unreachable!("handled above"),
            FilterKind::Bloom => Self::Bloom {
                bits,
                probes: probes(most),
                layout: BloomLayout::Anywhere,
            },
            FilterKind::Mdbf => Self::Mdbf {
                attributes,
                bits,
                probes: probes(most),
            },
            FilterKind::Cmdbf => Self::Cmdbf {
                attributes,
                bits,
                probes: probes(most),
                combination: Combination::default(),
            },
            FilterKind::Subset => {
                let lines = bits / (Lines::LINE_BYTES * 8);
                Self::Subset {
                    attributes,
                    lines,
                    combinations: Vec::new(),
                    probes: expected
                        .map_or(DEFAULT_PROBES, |n| best_line_probes(lines as f64, n as f64)),
                }
            }
            FilterKind::Cartesian | FilterKind::Bfm | FilterKind::Cbfm | FilterKind::Wcbfm => {
                matrix(kind, attributes, sizing)?
            }
        };
        spec.check()?;
        Ok(spec)
    }

    /// Parameters of a Bloom filter in cache lines ([`BloomLayout::Lines`]).
    ///
    /// # Errors
    ///
    /// As for [`FilterSpec::new`].
    pub fn bloom_in_lines(sizing: Sizing) -> Result<Self, SpecError> {
        match Self::new(FilterKind::Subset, 0, sizing)? {
            Self::Subset { lines, probes, .. } => Ok(Self::Bloom {
                bits: lines * Lines::LINE_BYTES * 8,
                probes,
                layout: BloomLayout::Lines,
            }),
            other => Ok(other),
        }
    }

    /// Bytes of the arrays; of a chain with all of its links.
    pub fn memory_bytes(&self) -> u64 {
        match *self {
            Self::Bloom { bits, .. } => bits.div_ceil(8),
            Self::Mdbf {
                attributes, bits, ..
            } => attributes as u64 * bits.div_ceil(8),
            Self::Cmdbf {
                attributes, bits, ..
            } => (attributes as u64 + 1) * bits.div_ceil(8),
            Self::Subset { lines, .. } => lines * Lines::LINE_BYTES,
            Self::Counting {
                counters,
                counter_bits,
                ..
            } => CounterArray::bytes_of(counters, counter_bits),
            Self::SplitCounting {
                part,
                probes,
                counter_bits,
            } => CounterArray::bytes_of(part * u64::from(probes), counter_bits),
            Self::Scalable {
                part,
                probes,
                counter_bits,
                most_links,
                ..
            } => {
                u64::from(most_links)
                    * CounterArray::bytes_of(part * u64::from(probes), counter_bits)
            }
            Self::Dleft {
                bucket_bits,
                remainder_bits,
                counter_bits,
            } => dleft_bytes(bucket_bits, remainder_bits + counter_bits),
            Self::Cartesian {
                attributes, size, ..
            } => size.saturating_pow(attributes as u32).div_ceil(8),
            Self::Matrix(ref matrix) => matrix.cells().unwrap_or(u64::MAX).div_ceil(8),
        }
    }

    /// Hash functions (k); the subtables of a d-left filter.
    pub const fn probes(&self) -> u32 {
        match *self {
            Self::Dleft { .. } => SUBTABLES as u32,
            Self::Bloom { probes, .. }
            | Self::Mdbf { probes, .. }
            | Self::Cmdbf { probes, .. }
            | Self::Subset { probes, .. }
            | Self::Counting { probes, .. }
            | Self::SplitCounting { probes, .. }
            | Self::Scalable { probes, .. }
            | Self::Cartesian { probes, .. } => probes,
            Self::Matrix(ref matrix) => matrix.probes,
        }
    }

    /// Whether the filter looks at the attributes' digests besides the whole element's.
    pub fn needs_attributes(&self) -> bool {
        match self {
            Self::Bloom { .. }
            | Self::Counting { .. }
            | Self::SplitCounting { .. }
            | Self::Scalable { .. }
            | Self::Dleft { .. } => false,
            Self::Subset { combinations, .. } => !combinations.is_empty(),
            Self::Mdbf { .. } | Self::Cmdbf { .. } | Self::Cartesian { .. } | Self::Matrix(_) => {
                true
            }
        }
    }

    /// Whether the structure has an unbiased count of the distinct elements.
    pub fn counts_distinct(&self) -> bool {
        match self {
            Self::Bloom { .. }
            | Self::Subset { .. }
            | Self::Counting { .. }
            | Self::SplitCounting { .. }
            | Self::Scalable { .. }
            | Self::Dleft { .. } => true,
            Self::Mdbf { .. } => false,
            Self::Cmdbf { combination, .. } => *combination != Combination::XorSame,
            // With more attributes the cell of known values leaves nothing to chance.
            Self::Cartesian { attributes, .. } => *attributes == 1,
            Self::Matrix(matrix) => matrix.sizes.len() == 1,
        }
    }
}

/// Largest filter that is built, in bytes: 2^40.
const MAX_BYTES: u64 = 1 << 40;

fn check_rate(fpr: f64) -> Result<(), SpecError> {
    if fpr > 0.0 && fpr < 1.0 {
        Ok(())
    } else {
        Err(SpecError::Rule(format!(
            "a false-positive rate lies between 0 and 1, not {fpr}; 0.001 works"
        )))
    }
}

/// The published rate of an MDBF, by formula (3), is that of values that did not occur at all.
fn without_rate(fpr: f64) -> SpecError {
    SpecError::Rule(format!(
        "an mdbf takes values that all occur, apart, for an element, so no size has a rate of {fpr}; choose cmdbf, or size it by its memory"
    ))
}

/// The lines that a rate takes grow with a root of it, and soon exceed the most memory.
fn out_of_reach(fpr: f64, expected: u64) -> SpecError {
    let lines = (MAX_BYTES / Lines::LINE_BYTES) as f64;
    let elements = expected as f64;
    let least = blocked_fpr(lines, best_line_probes(lines, elements), elements);
    SpecError::Rule(format!(
        "a filter in cache lines has at most eight bits an element and reaches rates down to {least:.1e} here, in 1 TiB, not {fpr:e}; 0.001 works"
    ))
}

fn check_memory(kind: FilterKind, bytes: u64, arrays: u64) -> Result<(), SpecError> {
    let least = match kind {
        FilterKind::Subset | FilterKind::Dleft => 64,
        _ => 8 * arrays,
    };
    if bytes < least {
        return Err(SpecError::TooLittleMemory { kind, least, bytes });
    }
    if bytes > MAX_BYTES {
        return Err(SpecError::Rule(format!(
            "a filter has at most {MAX_BYTES} bytes (1 TiB), not {bytes}; ask for less"
        )));
    }
    Ok(())
}
