//! What filter is wanted, as plain data, and the one place that turns it into a filter.

use super::dleft::{Bucket, Bucket16, Bucket32, CELLS, SUBTABLES};
use super::sizing::{
    DEFAULT_PROBES, MAX_LINE_PROBES, MAX_PROBES, best_line_probes, best_probes, blocked_lines,
    bloom_bits, dleft_fpr, split_fpr,
};
use super::{
    BloomFilter, BloomLayout, BloomLineFilter, Cmdbf, Combination, CountingFilter, DleftFilter,
    Mdbf, MembershipFilter, ScalableFilter, SplitCountingFilter, SubsetFilter,
};
use crate::bits::{CounterArray, Lines};
use std::f64::consts::LN_2;

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
    /// Counting Bloom filter.
    Counting,
    /// Counting Bloom filter in parts.
    SplitCounting,
    /// Chain of split counting filters.
    Scalable,
    /// d-left counting Bloom filter.
    Dleft,
}

impl FilterKind {
    /// The name in the command line and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bloom => "bloom",
            Self::Mdbf => "mdbf",
            Self::Cmdbf => "cmdbf",
            Self::Subset => "subset",
            Self::Counting => "counting",
            Self::SplitCounting => "split-counting",
            Self::Scalable => "scalable",
            Self::Dleft => "dleft",
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
    /// [`BloomFilter`], or [`BloomLineFilter`].
    Bloom {
        /// Bits of the array (m).
        bits: u64,
        /// Hash functions (k).
        probes: u32,
        /// Where the bits of an element stand.
        layout: BloomLayout,
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
    /// [`CountingFilter`].
    Counting {
        /// Counters (m).
        counters: u64,
        /// Hash functions (k).
        probes: u32,
        /// Bits of a counter.
        counter_bits: u32,
    },
    /// [`SplitCountingFilter`].
    SplitCounting {
        /// Counters of a part (m).
        part: u64,
        /// Hash functions, and parts (k).
        probes: u32,
        /// Bits of a counter.
        counter_bits: u32,
    },
    /// [`ScalableFilter`].
    Scalable {
        /// Counters of a part of a link (m).
        part: u64,
        /// Hash functions, and parts of a link (k).
        probes: u32,
        /// Bits of a counter.
        counter_bits: u32,
        /// Links that the chain may have.
        most_links: u32,
    },
    /// [`DleftFilter`]. Cells of up to 16 bits take 16, others 32.
    Dleft {
        /// Binary logarithm of the buckets of each subtable (b).
        bucket_bits: u32,
        /// Bits of a remainder (r).
        remainder_bits: u32,
        /// Bits of a cell's count (c).
        counter_bits: u32,
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
    /// Counters get 4 bits; a scalable filter is a chain of up to 8 links, sized to be full with the
    /// elements expected; a d-left filter gets counts of 2 bits and remainders that fill its cells, and
    /// has the largest power of two of buckets that the memory holds, so it may use but half of it.
    ///
    /// # Errors
    ///
    /// Memory for less than one bit (or line) of each array, a rate outside of (0, 1), no elements
    /// expected, or a size beyond 2^40 bytes.
    pub fn new(kind: FilterKind, attributes: usize, sizing: Sizing) -> Result<Self, SpecError> {
        let arrays = match kind {
            FilterKind::Counting
            | FilterKind::SplitCounting
            | FilterKind::Scalable
            | FilterKind::Dleft => return Self::with_counters(kind, sizing),
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
                check_rate(fpr)?;
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
                    lines,
                    probes: expected
                        .map_or(DEFAULT_PROBES, |n| best_line_probes(lines as f64, n as f64)),
                }
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
            Self::Subset { lines, probes } => Ok(Self::Bloom {
                bits: lines * Lines::LINE_BYTES * 8,
                probes,
                layout: BloomLayout::Lines,
            }),
            other => Ok(other),
        }
    }

    /// Checks the rules of the structure.
    ///
    /// # Errors
    ///
    /// The first rule that is broken.
    pub fn check(&self) -> Result<(), SpecError> {
        let (probes, most) = match *self {
            Self::Subset { probes, .. }
            | Self::Bloom {
                probes,
                layout: BloomLayout::Lines,
                ..
            } => (probes, MAX_LINE_PROBES),
            Self::Bloom { probes, .. }
            | Self::Mdbf { probes, .. }
            | Self::Cmdbf { probes, .. }
            | Self::Counting { probes, .. }
            | Self::SplitCounting { probes, .. }
            | Self::Scalable { probes, .. } => (probes, MAX_PROBES as u32),
            Self::Dleft { .. } => (SUBTABLES as u32, SUBTABLES as u32),
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
            Self::Bloom {
                bits,
                layout: BloomLayout::Lines,
                ..
            } if bits == 0 || bits % (Lines::LINE_BYTES * 8) != 0 => Err(SpecError::Rule(format!(
                "a filter in cache lines has a multiple of 512 bits, not {bits}; {} works",
                bits.max(1).next_multiple_of(Lines::LINE_BYTES * 8)
            ))),
            Self::Counting {
                counters,
                counter_bits,
                ..
            } => check_counters(counters, counter_bits),
            Self::SplitCounting {
                part, counter_bits, ..
            } => check_counters(part, counter_bits),
            Self::Scalable {
                part,
                counter_bits,
                most_links,
                ..
            } => {
                if most_links == 0 || most_links > MAX_LINKS {
                    return Err(SpecError::Rule(format!(
                        "a chain has 1 to {MAX_LINKS} links, not {most_links}; {DEFAULT_LINKS} works"
                    )));
                }
                check_counters(part, counter_bits)
            }
            Self::Dleft {
                bucket_bits,
                remainder_bits,
                counter_bits,
            } => check_dleft(bucket_bits, remainder_bits, counter_bits),
            _ => Ok(()),
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
            } => {
                u64::from(most_links)
                    * CounterArray::bytes_of(part * u64::from(probes), counter_bits)
            }
            Self::Dleft {
                bucket_bits,
                remainder_bits,
                counter_bits,
            } => dleft_bytes(bucket_bits, remainder_bits + counter_bits),
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
            | Self::Scalable { probes, .. } => probes,
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
        }
    }

    /// An empty filter with these parameters.
    pub fn build(&self) -> Box<dyn MembershipFilter> {
        match *self {
            Self::Bloom {
                bits,
                probes,
                layout,
            } => match layout {
                BloomLayout::Anywhere => Box::new(BloomFilter::new(bits, probes)),
                BloomLayout::Lines => {
                    Box::new(BloomLineFilter::new(bits / (Lines::LINE_BYTES * 8), probes))
                }
            },
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
            Self::Counting {
                counters,
                probes,
                counter_bits,
            } => Box::new(CountingFilter::new(counters, probes, counter_bits)),
            Self::SplitCounting {
                part,
                probes,
                counter_bits,
            } => Box::new(SplitCountingFilter::new(part, probes, counter_bits)),
            Self::Scalable {
                part,
                probes,
                counter_bits,
                most_links,
            } => Box::new(ScalableFilter::new(part, probes, counter_bits, most_links)),
            Self::Dleft {
                bucket_bits,
                remainder_bits,
                counter_bits,
            } => {
                if remainder_bits + counter_bits <= Bucket16::CELL_BITS {
                    Box::new(DleftFilter::<Bucket16>::new(
                        bucket_bits,
                        remainder_bits,
                        counter_bits,
                    ))
                } else {
                    Box::new(DleftFilter::<Bucket32>::new(
                        bucket_bits,
                        remainder_bits,
                        counter_bits,
                    ))
                }
            }
        }
    }

    /// The structures with counters.
    fn with_counters(kind: FilterKind, sizing: Sizing) -> Result<Self, SpecError> {
        if let Sizing::Rate { fpr, .. } = sizing {
            check_rate(fpr)?;
        }
        let spec = if kind == FilterKind::Dleft {
            Self::dleft(sizing)?
        } else {
            Self::counters(kind, sizing)?
        };
        check_memory(kind, spec.memory_bytes(), 1)?;
        spec.check()?;
        Ok(spec)
    }

    fn counters(kind: FilterKind, sizing: Sizing) -> Result<Self, SpecError> {
        let counter_bits = DEFAULT_COUNTER_BITS;
        let most_links = if kind == FilterKind::Scalable {
            DEFAULT_LINKS
        } else {
            1
        };
        let links = u64::from(most_links);
        let most = MAX_PROBES as u32;
        // Counters of one link, or of the whole filter; counters of a part of it; hash functions.
        let (counters, part, probes) = match sizing {
            Sizing::Memory { bytes, expected } => {
                check_memory(kind, bytes, links)?;
                let counters = bytes / 8 / links * CounterArray::per_word(counter_bits);
                let probes = expected
                    .map_or(DEFAULT_PROBES, |n| {
                        best_probes((counters * links) as f64, n as f64, most)
                    })
                    .min(counters as u32);
                (counters, counters / u64::from(probes), probes)
            }
            Sizing::Rate { fpr, expected } if kind == FilterKind::Scalable => {
                // 1 - (1 - P)^d = fpr, and a link that is half full has P = 2^-k.
                let link_fpr = -((-fpr).ln_1p() / links as f64).exp_m1();
                let probes = (link_fpr.recip().log2().ceil() as u32).clamp(1, most);
                let part = (expected.max(1) as f64 / links as f64 / LN_2).ceil() as u64;
                (part * u64::from(probes), part, probes)
            }
            Sizing::Rate { fpr, expected } => {
                let elements = expected.max(1) as f64;
                let counters = bloom_bits(fpr, elements).ceil();
                let probes = best_probes(counters, elements, most);
                let mut part = (counters as u64).div_ceil(u64::from(probes));
                // Small parts, and few of them, fall short of the formula for large ones.
                while split_fpr(part as f64, probes, elements) > fpr {
                    part += part.div_ceil(64);
                }
                (counters as u64, part, probes)
            }
        };
        Ok(match kind {
            FilterKind::Scalable => Self::Scalable {
                part,
                probes,
                counter_bits,
                most_links,
            },
            FilterKind::SplitCounting => Self::SplitCounting {
                part,
                probes,
                counter_bits,
            },
            _ => Self::Counting {
                counters,
                probes,
                counter_bits,
            },
        })
    }

    fn dleft(sizing: Sizing) -> Result<Self, SpecError> {
        let counter_bits = DEFAULT_COUNT_BITS;
        let (bucket_bits, remainder_bits) = match sizing {
            Sizing::Memory { bytes, .. } => {
                check_memory(FilterKind::Dleft, bytes, 1)?;
                let row = SUBTABLES as u64 * size_of::<Bucket16>() as u64;
                ((bytes / row).ilog2(), Bucket16::CELL_BITS - counter_bits)
            }
            Sizing::Rate { fpr, expected } => {
                let buckets = expected.div_ceil(DLEFT_ELEMENTS_A_ROW).max(1);
                let least = buckets.next_power_of_two().ilog2();
                [Bucket16::CELL_BITS, Bucket32::CELL_BITS]
                    .map(|cell| cell - counter_bits)
                    .into_iter()
                    .find(|r| dleft_fpr(least + r, expected as f64) <= fpr)
                    .map(|r| (least, r))
                    .ok_or_else(|| {
                        SpecError::Rule(format!(
                            "a d-left filter reaches rates down to {:.1e} with {expected} elements, not                              {fpr:e}; a Bloom filter reaches it",
                            dleft_fpr(least + 30, expected as f64)
                        ))
                    })?
            }
        };
        Ok(Self::Dleft {
            bucket_bits,
            remainder_bits,
            counter_bits,
        })
    }
}

/// Bits of a counter when nothing else is asked for: overflows at 16, which is next to impossible
/// with distinct elements.
const DEFAULT_COUNTER_BITS: u32 = 4;

/// Bits of the count in a d-left cell when nothing else is asked for.
const DEFAULT_COUNT_BITS: u32 = 2;

/// Links of a chain when nothing else is asked for.
const DEFAULT_LINKS: u32 = 8;

/// Most links of a chain.
const MAX_LINKS: u32 = 1024;

/// Elements to the four buckets of one number that fill three quarters of their cells.
const DLEFT_ELEMENTS_A_ROW: u64 = (SUBTABLES * CELLS * 3 / 4) as u64;

/// Largest filter that is built, in bytes: 2^40.
const MAX_BYTES: u64 = 1 << 40;

/// Bytes of a d-left filter's buckets.
const fn dleft_bytes(bucket_bits: u32, cell_bits: u32) -> u64 {
    let bucket = if cell_bits <= Bucket16::CELL_BITS {
        size_of::<Bucket16>()
    } else {
        size_of::<Bucket32>()
    };
    ((SUBTABLES * bucket) as u64) << bucket_bits
}

fn check_rate(fpr: f64) -> Result<(), SpecError> {
    if fpr > 0.0 && fpr < 1.0 {
        Ok(())
    } else {
        Err(SpecError::Rule(format!(
            "a false-positive rate lies between 0 and 1, not {fpr}; 0.001 works"
        )))
    }
}

fn check_counters(counters: u64, counter_bits: u32) -> Result<(), SpecError> {
    if counters == 0 {
        return Err(SpecError::Rule(
            "a filter has at least one counter for each hash function, not 0; 1 works".to_owned(),
        ));
    }
    if counter_bits == 0 || counter_bits > 8 {
        return Err(SpecError::Rule(format!(
            "a counter has 1 to 8 bits, not {counter_bits}; {DEFAULT_COUNTER_BITS} works"
        )));
    }
    Ok(())
}

fn check_dleft(bucket_bits: u32, remainder_bits: u32, counter_bits: u32) -> Result<(), SpecError> {
    if counter_bits != 2 && counter_bits != 4 {
        return Err(SpecError::Rule(format!(
            "the count of a d-left cell has 2 or 4 bits, not {counter_bits}; {DEFAULT_COUNT_BITS} works"
        )));
    }
    let most = Bucket32::CELL_BITS - counter_bits;
    if remainder_bits == 0 || remainder_bits > most {
        return Err(SpecError::Rule(format!(
            "the remainder of a d-left cell has 1 to {most} bits, not {remainder_bits}; {} works",
            Bucket16::CELL_BITS - counter_bits
        )));
    }
    if bucket_bits > MAX_BUCKET_BITS {
        return Err(SpecError::Rule(format!(
            "a d-left subtable has at most 2^{MAX_BUCKET_BITS} buckets, not 2^{bucket_bits}; 20 works"
        )));
    }
    Ok(())
}

/// Binary logarithm of the most buckets of a subtable: 2^40 bytes of 32-byte buckets in all.
const MAX_BUCKET_BITS: u32 = 33;

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filters::sizing::{bloom_fpr, scalable_fpr, split_fpr};

    const WITH_COUNTERS: [FilterKind; 4] = [
        FilterKind::Counting,
        FilterKind::SplitCounting,
        FilterKind::Scalable,
        FilterKind::Dleft,
    ];

    #[test]
    fn memory_is_not_exceeded_and_the_specs_say_what_the_filters_take() {
        for kind in WITH_COUNTERS {
            for bytes in [64, 100, 4096, 1_000_003] {
                for expected in [None, Some(1), Some(1000), Some(1_000_000)] {
                    let spec =
                        FilterSpec::new(kind, 0, Sizing::Memory { bytes, expected }).unwrap();
                    assert!(spec.memory_bytes() <= bytes, "{spec:?}");
                    let filter = spec.build();
                    let links = match spec {
                        FilterSpec::Scalable { most_links, .. } => u64::from(most_links),
                        _ => 1,
                    };
                    assert_eq!(filter.stats().memory_bytes * links, spec.memory_bytes());
                }
            }
        }
    }

    #[test]
    fn rates_are_reached() {
        for fpr in [0.2, 0.01, 0.001, 0.000_001] {
            for expected in [1, 1000, 123_456, 10_000_000] {
                let n = expected as f64;
                for kind in WITH_COUNTERS {
                    let spec = FilterSpec::new(kind, 0, Sizing::Rate { fpr, expected }).unwrap();
                    let reached = match spec {
                        FilterSpec::Counting {
                            counters, probes, ..
                        } => bloom_fpr(counters as f64, probes, n),
                        FilterSpec::SplitCounting { part, probes, .. } => {
                            split_fpr(part as f64, probes, n)
                        }
                        FilterSpec::Scalable {
                            probes, most_links, ..
                        } => scalable_fpr(0.5_f64.powi(probes as i32), most_links),
                        FilterSpec::Dleft {
                            bucket_bits,
                            remainder_bits,
                            ..
                        } => dleft_fpr(bucket_bits + remainder_bits, n),
                        _ => 1.0,
                    };
                    // k is a whole number, which costs up to 8 % where k is 1 or 2.
                    assert!(reached <= fpr * 1.08, "{spec:?} {reached} {fpr}");
                }
            }
        }
    }

    #[test]
    fn errors_name_the_rule_and_a_way_out() {
        let error = |spec: FilterSpec| spec.check().unwrap_err().to_string();
        assert_eq!(
            error(FilterSpec::Counting {
                counters: 10,
                probes: 4,
                counter_bits: 9
            }),
            "a counter has 1 to 8 bits, not 9; 4 works"
        );
        assert_eq!(
            error(FilterSpec::Scalable {
                part: 10,
                probes: 4,
                counter_bits: 4,
                most_links: 0
            }),
            "a chain has 1 to 1024 links, not 0; 8 works"
        );
        assert_eq!(
            error(FilterSpec::Dleft {
                bucket_bits: 4,
                remainder_bits: 31,
                counter_bits: 2
            }),
            "the remainder of a d-left cell has 1 to 30 bits, not 31; 14 works"
        );
        assert_eq!(
            error(FilterSpec::Bloom {
                bits: 700,
                probes: 8,
                layout: BloomLayout::Lines
            }),
            "a filter in cache lines has a multiple of 512 bits, not 700; 1024 works"
        );
        let tiny = Sizing::Memory {
            bytes: 63,
            expected: None,
        };
        assert_eq!(
            FilterSpec::new(FilterKind::Scalable, 0, tiny)
                .unwrap_err()
                .to_string(),
            "a scalable filter needs at least 64 bytes, not 63; ask for 64 or more"
        );
    }
}
