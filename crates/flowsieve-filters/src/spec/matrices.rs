//! The matrices: the largest that fits, or the smallest that reaches a rate.

use super::{FilterKind, FilterSpec, Sizing, SpecError};
use crate::MatrixSpec;
use crate::matrix_sizing::{self, MAX_ATTRIBUTES};
use crate::sizing::{DEFAULT_PROBES, MAX_PROBES, best_probes, least_bloom_bits};

pub(super) fn check_attributes(attributes: usize) -> Result<(), SpecError> {
    if attributes == 0 || attributes > MAX_ATTRIBUTES {
        return Err(SpecError::Rule(format!(
            "a matrix is for 1 to {MAX_ATTRIBUTES} attributes, not {attributes}; 3 works"
        )));
    }
    Ok(())
}

/// The matrix of a kind, as large as the memory or as small as the rate allows.
pub(super) fn matrix(
    kind: FilterKind,
    attributes: usize,
    sizing: Sizing,
) -> Result<FilterSpec, SpecError> {
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
                let cells = least_bloom_bits(fpr, elements);
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
