//! What filter is wanted, as plain data, and the one place that turns it into a filter.

use super::matrix_sizing::{self, MAX_ATTRIBUTES};
use super::sizing::{
    DEFAULT_PROBES, MAX_LINE_PROBES, MAX_PROBES, best_line_probes, best_probes, blocked_lines,
    bloom_bits,
};
use super::{
    BloomFilter, CartesianFilter, Cmdbf, Combination, MatrixFilter, MatrixSpec, Mdbf,
    MembershipFilter, PlannedCombination, SubsetFilter,
};
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
    /// Matrix of the Cartesian join.
    Cartesian,
    /// Bit matrix with flag positions.
    Bfm,
    /// Bit matrix without the combinations that are cut.
    Cbfm,
    /// The same with a size of its own for each attribute.
    Wcbfm,
}

impl FilterKind {
    /// The name in the command line and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bloom => "bloom",
            Self::Mdbf => "mdbf",
            Self::Cmdbf => "cmdbf",
            Self::Subset => "subset",
            Self::Cartesian => "cartesian",
            Self::Bfm => "bfm",
            Self::Cbfm => "cbfm",
            Self::Wcbfm => "wcbfm",
        }
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
        /// Number of attributes; combinations can be planned for at most 16.
        attributes: usize,
        /// Cache lines of 512 bits.
        lines: u64,
        /// Bits an element in its line (k).
        probes: u32,
        /// Combinations stored besides the whole element.
        combinations: Vec<PlannedCombination>,
    },
    /// [`CartesianFilter`].
    Cartesian {
        /// Number of attributes (d).
        attributes: usize,
        /// Addresses of each attribute (m).
        size: u64,
        /// Hash functions (k).
        probes: u32,
    },
    /// [`MatrixFilter`]: BFM, CBFM or WCBFM.
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
    /// The matrices get the largest size m that fits. A CBFM (and a WCBFM, whose weights are equal
    /// here) gets the cuts and the k with the least predicted false-positive rate of a full query, all
    /// values of which occur: among no cut, keeping only combinations of at most r attributes, and
    /// cutting the pairs {1,2}, {3,4}, … ([`matrix_sizing::cut_families`]).
    ///
    /// # Errors
    ///
    /// Memory for less than one bit (or line) of each array, a rate outside of (0, 1), no elements
    /// expected, or a size beyond 2^40 bytes.
    pub fn new(kind: FilterKind, attributes: usize, sizing: Sizing) -> Result<Self, SpecError> {
        let arrays = match kind {
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
                (bytes * 8 / arrays, expected)
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

    /// Checks the rules of the structure.
    ///
    /// # Errors
    ///
    /// The first rule that is broken.
    pub fn check(&self) -> Result<(), SpecError> {
        let (probes, most) = match *self {
            Self::Bloom { probes, .. }
            | Self::Mdbf { probes, .. }
            | Self::Cmdbf { probes, .. }
            | Self::Cartesian { probes, .. } => (probes, MAX_PROBES as u32),
            Self::Matrix(ref matrix) => return matrix.check(),
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
            Self::Subset {
                attributes,
                ref combinations,
                ..
            } => PlannedCombination::check_all(combinations, attributes),
            Self::Cartesian {
                attributes, size, ..
            } => {
                check_attributes(attributes)?;
                let cells = size.checked_pow(attributes as u32);
                if cells.is_none_or(|cells| cells == 0 || cells > MAX_BYTES * 8) {
                    return Err(SpecError::Rule(format!(
                        "a Cartesian join has from 1 to 2^43 cells (m^d), which {size} addresses for each of {attributes} attributes do not make; 2 works"
                    )));
                }
                Ok(())
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
            Self::Cartesian {
                attributes, size, ..
            } => size.saturating_pow(attributes as u32).div_ceil(8),
            Self::Matrix(ref matrix) => matrix.cells().unwrap_or(u64::MAX).div_ceil(8),
        }
    }

    /// Hash functions (k).
    pub const fn probes(&self) -> u32 {
        match *self {
            Self::Bloom { probes, .. }
            | Self::Mdbf { probes, .. }
            | Self::Cmdbf { probes, .. }
            | Self::Subset { probes, .. }
            | Self::Cartesian { probes, .. } => probes,
            Self::Matrix(ref matrix) => matrix.probes,
        }
    }

    /// Whether the filter looks at the attributes' digests besides the whole element's.
    pub fn needs_attributes(&self) -> bool {
        match self {
            Self::Bloom { .. } => false,
            Self::Subset { combinations, .. } => !combinations.is_empty(),
            Self::Mdbf { .. } | Self::Cmdbf { .. } | Self::Cartesian { .. } | Self::Matrix(_) => {
                true
            }
        }
    }

    /// Whether the structure has an unbiased count of the distinct elements.
    pub fn counts_distinct(&self) -> bool {
        match self {
            Self::Bloom { .. } | Self::Subset { .. } => true,
            Self::Mdbf { .. } => false,
            Self::Cmdbf { combination, .. } => *combination != Combination::XorSame,
            // With more attributes the cell of known values leaves nothing to chance.
            Self::Cartesian { attributes, .. } => *attributes == 1,
            Self::Matrix(matrix) => matrix.sizes.len() == 1,
        }
    }

    /// An empty filter with these parameters.
    ///
    /// # Panics
    ///
    /// If [`FilterSpec::check`] finds an error.
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
            Self::Subset {
                attributes,
                lines,
                probes,
                ref combinations,
            } => Box::new(
                SubsetFilter::with_combinations(attributes, lines, probes, combinations)
                    .expect("the parameters were checked"),
            ),
            Self::Cartesian {
                attributes,
                size,
                probes,
            } => Box::new(CartesianFilter::new(attributes, size, probes)),
            Self::Matrix(ref matrix) => {
                Box::new(MatrixFilter::new(matrix).expect("the parameters were checked"))
            }
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

fn check_attributes(attributes: usize) -> Result<(), SpecError> {
    if attributes == 0 || attributes > MAX_ATTRIBUTES {
        return Err(SpecError::Rule(format!(
            "a matrix is for 1 to {MAX_ATTRIBUTES} attributes, not {attributes}; 3 works"
        )));
    }
    Ok(())
}

/// The matrix of a kind, as large as the memory or as small as the rate allows.
fn matrix(kind: FilterKind, attributes: usize, sizing: Sizing) -> Result<FilterSpec, SpecError> {
    check_attributes(attributes)?;
    let families = match kind {
        FilterKind::Cbfm | FilterKind::Wcbfm => matrix_sizing::cut_families(attributes),
        _ => vec![Vec::new()],
    };
    let plan = match sizing {
        Sizing::Memory { bytes, expected } => {
            let cells = bytes * 8;
            // As many elements as the usual k is right for, if nothing is known.
            let usual = cells as f64 * std::f64::consts::LN_2 / f64::from(DEFAULT_PROBES);
            let elements = expected.map_or(usual, |n| n.max(1) as f64);
            if kind == FilterKind::Cartesian {
                let size = matrix_sizing::largest_cartesian_size(attributes, cells.into());
                let cells = (size as f64).powi(attributes as i32);
                return Ok(FilterSpec::Cartesian {
                    attributes,
                    size,
                    probes: best_probes(cells, elements, MAX_PROBES as u32),
                });
            }
            matrix_sizing::best_plan(&families, attributes, cells.into(), elements).ok_or_else(
                || {
                    let least = families
                        .iter()
                        .filter_map(|cuts| matrix_sizing::cells(&vec![1; attributes], cuts))
                        .min()
                        .unwrap_or_default()
                        .div_ceil(8);
                    let least = u64::try_from(least).unwrap_or(u64::MAX);
                    SpecError::TooLittleMemory { kind, least, bytes }
                },
            )?
        }
        Sizing::Rate { fpr, expected } => {
            let elements = expected.max(1) as f64;
            if kind == FilterKind::Cartesian {
                let cells = bloom_bits(fpr, elements);
                return Ok(FilterSpec::Cartesian {
                    attributes,
                    size: cells.powf(1.0 / attributes as f64).ceil() as u64,
                    probes: best_probes(cells, elements, MAX_PROBES as u32),
                });
            }
            matrix_sizing::least_plan(&families, attributes, fpr, elements).ok_or_else(|| {
                SpecError::Rule(format!(
                    "no {} filter has a false-positive rate of {fpr} with {expected} elements; ask for a higher rate",
                    kind.name()
                ))
            })?
        }
    };
    Ok(FilterSpec::Matrix(MatrixSpec::cbfm(
        attributes,
        plan.size,
        &plan.cuts,
        plan.probes,
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MATRICES: [FilterKind; 4] = [
        FilterKind::Cartesian,
        FilterKind::Bfm,
        FilterKind::Cbfm,
        FilterKind::Wcbfm,
    ];

    #[test]
    fn matrices_fit_their_memory_and_use_most_of_it() {
        let bytes = 1 << 20;
        for kind in MATRICES {
            for attributes in 1..=5 {
                for expected in [None, Some(50_000)] {
                    let sizing = Sizing::Memory { bytes, expected };
                    let spec = FilterSpec::new(kind, attributes, sizing).unwrap();
                    let memory = spec.memory_bytes();
                    assert!(memory <= bytes && memory > bytes / 2, "{spec:?}: {memory}");
                    assert_eq!(spec.build().distinct().is_some(), spec.counts_distinct());
                    assert!(spec.needs_attributes());
                }
            }
        }
    }

    #[test]
    fn matrices_for_a_rate_are_about_as_large_as_a_standard_filter() {
        let sizing = Sizing::Rate {
            fpr: 0.001,
            expected: 100_000,
        };
        let bytes = |kind| FilterSpec::new(kind, 3, sizing).unwrap().memory_bytes() as f64;
        for kind in MATRICES {
            let ratio = bytes(kind) / bytes(FilterKind::Bloom);
            assert!(ratio > 0.5 && ratio < 1.2, "{}: {ratio}", kind.name());
        }
    }

    /// In the setting of the paper's Fig. 7 one cut beats none by formula, and keeping the three pairs
    /// beats both.
    #[test]
    fn the_cuts_of_a_matrix_are_those_of_the_least_rate() {
        let sizing = Sizing::Memory {
            bytes: 1 << 24,
            expected: Some(5_000_000),
        };
        let chosen = FilterSpec::new(FilterKind::Cbfm, 3, sizing).unwrap();
        let FilterSpec::Matrix(spec) = &chosen else {
            panic!("a CBFM is a matrix");
        };
        assert_eq!(spec.cuts, [0b111]);
        assert_eq!(
            FilterSpec::new(FilterKind::Wcbfm, 3, sizing).unwrap(),
            chosen
        );
    }

    #[test]
    fn broken_rules_say_what_works() {
        let error = |kind, attributes, bytes| {
            let sizing = Sizing::Memory {
                bytes,
                expected: None,
            };
            FilterSpec::new(kind, attributes, sizing)
                .unwrap_err()
                .to_string()
        };
        for kind in MATRICES {
            assert!(error(kind, 17, 1 << 20).contains("1 to 16 attributes, not 17; 3 works"));
            assert!(error(kind, 3, 4).contains("at least 8 bytes, not 4"));
        }
        // 2^7 cells of size 1.
        assert!(error(FilterKind::Bfm, 7, 15).contains("at least 16 bytes, not 15"));
        assert!(error(FilterKind::Bfm, 13, 1 << 20).contains("at most 4096 combinations"));
        let cartesian = |size, probes| FilterSpec::Cartesian {
            attributes: 3,
            size,
            probes,
        };
        let error = |spec: FilterSpec| spec.check().unwrap_err().to_string();
        assert!(error(cartesian(0, 4)).contains("2 works"));
        assert!(error(cartesian(1 << 20, 4)).contains("2 works"));
        assert!(error(cartesian(9, 0)).contains("not 0; 4 works"));
    }
}
