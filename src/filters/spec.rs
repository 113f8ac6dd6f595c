//! What filter is wanted, as plain data, and the one place that turns it into a filter.

use super::sizing::{
    DEFAULT_PROBES, MAX_LINE_PROBES, MAX_PROBES, best_line_probes, best_probes, blocked_lines,
    bloom_bits,
};
use super::{BloomFilter, Cmdbf, Combination, Mdbf, MembershipFilter, SubsetFilter};
use crate::bits::Lines;

/// The structures by their names in the command line.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum FilterKind {
    /// Standard Bloom filter on the whole element.
    Bloom,
    /// One Bloom filter an attribute.
    Mdbf,
    /// MDBF and a combined filter.
    Cmdbf,
    /// Blocked filter with an unbiased count.
    Subset,
}

impl FilterKind {
    /// The name in the command line and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bloom => "bloom",
            Self::Mdbf => "mdbf",
            Self::Cmdbf => "cmdbf",
            Self::Subset => "subset",
        }
    }

    /// Whether the structure looks at the attributes' digests besides the whole element's.
    pub const fn needs_attributes(self) -> bool {
        matches!(self, Self::Mdbf | Self::Cmdbf)
    }
}

/// How large a filter shall be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Sizing {
    /// So many bytes, for `expected` distinct elements if that is known.
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

/// A filter's parameters, sizes in bits.
#[derive(Clone, Debug, PartialEq)]
pub enum FilterSpec {
    /// [`BloomFilter`].
    Bloom {
        /// Bits of the array (m).
        bits: u64,
        /// Hash functions (k).
        probes: u32,
    },
    /// [`Mdbf`].
    Mdbf {
        /// Number of attributes (L).
        attributes: usize,
        /// Bits of each of the L arrays (m).
        bits: u64,
        /// Hash functions (k).
        probes: u32,
    },
    /// [`Cmdbf`].
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
    /// [`SubsetFilter`].
    Subset {
        /// Cache lines of 512 bits.
        lines: u64,
        /// Bits an element in its line (k).
        probes: u32,
    },
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

impl FilterSpec {
    /// Parameters of a structure for elements of `attributes` attributes.
    ///
    /// # Errors
    ///
    /// Memory for less than one bit (or line) of each array, a rate outside of (0, 1), no elements
    /// expected, or a size beyond 2^40 bytes.
    pub fn new(kind: FilterKind, attributes: usize, sizing: Sizing) -> Result<Self, SpecError> {
        let arrays = match kind {
            FilterKind::Bloom | FilterKind::Subset => 1,
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
                if !(fpr > 0.0 && fpr < 1.0) {
                    return Err(SpecError::Rule(format!(
                        "a false-positive rate lies between 0 and 1, not {fpr}; 0.001 works"
                    )));
                }
                let elements = expected.max(1) as f64;
                let bits = match kind {
                    FilterKind::Subset => blocked_lines(fpr, elements) * Lines::LINE_BYTES * 8,
                    // By the published formulas (3) and (7) the rates of the arrays multiply.
                    _ => bloom_bits(fpr.powf(1.0 / arrays as f64), elements).ceil() as u64,
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
            FilterKind::Bloom => Self::Bloom {
                bits,
                probes: probes(most),
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
                    lines,
                    probes: expected
                        .map_or(DEFAULT_PROBES, |n| best_line_probes(lines as f64, n as f64)),
                }
            }
        };
        spec.check()?;
        Ok(spec)
    }

    /// Checks the rules of the structure.
    ///
    /// # Errors
    ///
    /// The first rule that is broken.
    pub fn check(&self) -> Result<(), SpecError> {
        let (probes, most) = match *self {
            Self::Bloom { probes, .. } | Self::Mdbf { probes, .. } | Self::Cmdbf { probes, .. } => {
                (probes, MAX_PROBES as u32)
            }
            Self::Subset { probes, .. } => (probes, MAX_LINE_PROBES),
        };
        if probes == 0 || probes > most {
            return Err(SpecError::Rule(format!(
                "a filter of this kind has 1 to {most} hash functions, not {probes}; {DEFAULT_PROBES} works"
            )));
        }
        match *self {
            Self::Cmdbf {
                bits, combination, ..
            } if combination != Combination::Joint && !bits.is_power_of_two() => {
                Err(SpecError::Rule(format!(
                    "XORed addresses need arrays of a power of two of bits, not {bits}; {} works",
                    bits.next_power_of_two()
                )))
            }
            _ => Ok(()),
        }
    }

    /// Bytes of the arrays.
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
        }
    }

    /// Hash functions (k).
    pub const fn probes(&self) -> u32 {
        match *self {
            Self::Bloom { probes, .. }
            | Self::Mdbf { probes, .. }
            | Self::Cmdbf { probes, .. }
            | Self::Subset { probes, .. } => probes,
        }
    }

    /// Whether the structure has an unbiased count of the distinct elements.
    pub fn counts_distinct(&self) -> bool {
        match self {
            Self::Bloom { .. } | Self::Subset { .. } => true,
            Self::Mdbf { .. } => false,
            Self::Cmdbf { combination, .. } => *combination != Combination::XorSame,
        }
    }

    /// An empty filter with these parameters.
    pub fn build(&self) -> Box<dyn MembershipFilter> {
        match *self {
            Self::Bloom { bits, probes } => Box::new(BloomFilter::new(bits, probes)),
            Self::Mdbf {
                attributes,
                bits,
                probes,
            } => Box::new(Mdbf::new(attributes, bits, probes)),
            Self::Cmdbf {
                attributes,
                bits,
                probes,
                combination,
            } => Box::new(Cmdbf::new(attributes, bits, probes, combination)),
            Self::Subset { lines, probes } => Box::new(SubsetFilter::new(lines, probes)),
        }
    }
}

/// Largest filter that is built, in bytes: 2^40.
const MAX_BYTES: u64 = 1 << 40;

fn check_memory(kind: FilterKind, bytes: u64, arrays: u64) -> Result<(), SpecError> {
    let least = match kind {
        FilterKind::Subset => Lines::LINE_BYTES,
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
