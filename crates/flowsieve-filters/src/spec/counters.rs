//! The structures with counters: their sizes, and the rules of their parameters.

use super::{FilterKind, FilterSpec, Sizing, SpecError, check_memory, check_rate};
use crate::Refill;
use crate::bits::CounterArray;
use crate::dleft::{Bucket, Bucket16, Bucket32, CELLS, SUBTABLES};
use crate::sizing::{
    DEFAULT_PROBES, MAX_PROBES, best_probes, dleft_fpr, least_bloom_bits, split_fpr,
};
use std::f64::consts::LN_2;

impl FilterSpec {
    /// The structures with counters.
    pub(super) fn with_counters(kind: FilterKind, sizing: Sizing) -> Result<Self, SpecError> {
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
                let counters = least_bloom_bits(fpr, elements).ceil();
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
                refill: Refill::default(),
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
                            "a d-left filter reaches rates down to {:.1e} with {expected} elements, not {fpr:e}; a Bloom filter reaches it",
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
pub(super) const DEFAULT_LINKS: u32 = 8;

/// Most links of a chain.
pub(super) const MAX_LINKS: u32 = 1024;

/// Elements to the four buckets of one number that fill three quarters of their cells.
const DLEFT_ELEMENTS_A_ROW: u64 = (SUBTABLES * CELLS * 3 / 4) as u64;

/// Bytes of a d-left filter's buckets.
pub(super) const fn dleft_bytes(bucket_bits: u32, cell_bits: u32) -> u64 {
    let bucket = if cell_bits <= Bucket16::CELL_BITS {
        size_of::<Bucket16>()
    } else {
        size_of::<Bucket32>()
    };
    ((SUBTABLES * bucket) as u64) << bucket_bits
}

pub(super) fn check_counters(counters: u64, counter_bits: u32) -> Result<(), SpecError> {
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

pub(super) fn check_dleft(
    bucket_bits: u32,
    remainder_bits: u32,
    counter_bits: u32,
) -> Result<(), SpecError> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BloomLayout;
    use crate::sizing::{bloom_fpr, scalable_fpr, split_fpr};

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
                most_links: 0,
                refill: Refill::default(),
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
        // 500 elements in 2^34 lines: 500 · 2^-34 · 64^-8 = 1.03e-22.
        let rate = |fpr, expected| {
            let sizing = Sizing::Rate { fpr, expected };
            FilterSpec::new(FilterKind::Subset, 2, sizing)
                .unwrap_err()
                .to_string()
        };
        assert_eq!(
            rate(0.01, 0),
            "a rate is for at least one expected element, not 0; 1000 works"
        );
        assert_eq!(
            rate(1e-300, 500),
            "a filter in cache lines has at most eight bits an element and reaches rates down to 1.0e-22 here, in 1 TiB, not 1e-300; 0.001 works"
        );
    }
}
