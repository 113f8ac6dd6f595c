//! The data of the CBFM paper's experiments: three attributes of evenly spread values that never
//! repeat, and the structures that are compared on it at equal memory.

use super::random::Random;
use crate::filters::matrix_sizing::{
    cmdbf_fpr, largest_cartesian_size, largest_size, matrix_fpr, mdbf_fpr, uncut_fpr,
};
use crate::filters::sizing::bloom_fpr;
use crate::filters::{
    BloomLayout, Combination, ElementDigests, FilterSpec, MatrixSpec, MembershipFilter, Pattern,
    PatternAnswer,
};
use crate::hashing::{Digest, Digester};

/// Attributes.
pub(super) const ATTRIBUTES: usize = 3;

/// A query with all attributes, and one with the second and the third.
pub(super) const FULL: u32 = 0b111;
pub(super) const PAIR: u32 = 0b110;

/// The cut {1, 2}, and {1, 3} besides.
pub(super) const ONE_CUT: &[u32] = &[0b011];
pub(super) const TWO_CUTS: &[u32] = &[0b011, 0b101];

/// The elements number 0 to n - 1; value i of an attribute belongs to element i alone.
#[derive(Clone, Copy, Debug)]
pub(super) struct Uniform {
    digester: Digester,
    elements: u64,
}

/// An element's digests, the whole last.
pub(super) type Digests = ([Digest; ATTRIBUTES], Digest);

impl Uniform {
    pub(super) fn new(seed: u64, elements: u64) -> Self {
        Self {
            digester: Digester::new(seed),
            elements,
        }
    }

    fn of(&self, values: [u64; ATTRIBUTES]) -> Digests {
        let attributes = std::array::from_fn(|attribute| {
            let mut bytes = [0; 9];
            bytes[0] = attribute as u8;
            bytes[1..].copy_from_slice(&values[attribute].to_le_bytes());
            self.digester.digest(&bytes)
        });
        (attributes, Digest::join(FULL, attributes))
    }

    /// An element of the set.
    pub(super) fn element(&self, number: u64) -> Digests {
        self.of([number; ATTRIBUTES])
    }

    /// The filter with all elements.
    pub(super) fn fill(&self, spec: &FilterSpec) -> Box<dyn MembershipFilter> {
        let mut filter = spec.build();
        for number in 0..self.elements {
            let (attributes, whole) = self.element(number);
            filter.insert(ElementDigests {
                whole,
                attributes: &attributes,
            });
        }
        filter
    }

    /// A negative: each value occurs in the set with probability `known`, then in another element than
    /// the other values, so that no two of them occur together.
    pub(super) fn negative(&self, random: &mut Random, known: f64) -> Digests {
        let mut values = [0; ATTRIBUTES];
        for attribute in 0..ATTRIBUTES {
            values[attribute] = if random.share() < known {
                loop {
                    let element = random.below(self.elements);
                    if !values[..attribute].contains(&element) {
                        break element;
                    }
                }
            } else {
                self.elements + random.below(u64::MAX / 2)
            };
        }
        self.of(values)
    }
}

/// Whether the filter takes these attributes of an element for contained; none if it cannot say.
pub(super) fn ask(filter: &dyn MembershipFilter, digests: &Digests, query: u32) -> Option<bool> {
    let (attributes, whole) = digests;
    if query == FULL {
        return Some(filter.contains(ElementDigests {
            whole: *whole,
            attributes,
        }));
    }
    let given: [Option<Digest>; ATTRIBUTES] = std::array::from_fn(|attribute| {
        (query >> attribute & 1 == 1).then(|| attributes[attribute])
    });
    let answer = filter.as_multi_attribute()?.contains_where(Pattern {
        whole: None,
        attributes: &given,
    });
    match answer {
        PatternAnswer::Absent => Some(false),
        PatternAnswer::Present | PatternAnswer::PresentApart => Some(true),
        PatternAnswer::Unknown => None,
    }
}

/// The structures of Fig. 7 by the names there, each with at most `bits`.
pub(super) fn structures(bits: u64, probes: u32) -> Vec<(&'static str, FilterSpec)> {
    let matrix = |cuts: &[u32]| {
        let size = largest_size(ATTRIBUTES, cuts, bits.into());
        FilterSpec::Matrix(MatrixSpec::cbfm(ATTRIBUTES, size, cuts, probes))
    };
    vec![
        (
            "SBF",
            FilterSpec::Bloom {
                bits,
                probes,
                layout: BloomLayout::Anywhere,
            },
        ),
        (
            "MDBF",
            FilterSpec::Mdbf {
                attributes: ATTRIBUTES,
                bits: bits / 3,
                probes,
            },
        ),
        (
            "CMDBF",
            FilterSpec::Cmdbf {
                attributes: ATTRIBUTES,
                bits: bits / 4,
                probes,
                combination: Combination::Joint,
            },
        ),
        (
            "CBF (Cartesian)",
            FilterSpec::Cartesian {
                attributes: ATTRIBUTES,
                size: largest_cartesian_size(ATTRIBUTES, bits.into()),
                probes,
            },
        ),
        ("BFM", matrix(&[])),
        ("CBFM, one cut", matrix(ONE_CUT)),
        ("CBFM, two cuts", matrix(TWO_CUTS)),
    ]
}

/// The rate by formula for `query`, if the structure answers it; values occur with `known` (α).
pub(super) fn predicted(spec: &FilterSpec, elements: u64, known: f64, query: u32) -> Option<f64> {
    let n = elements as f64;
    let asked = query.count_ones();
    Some(match *spec {
        FilterSpec::Bloom { bits, probes, .. } if query == FULL => bloom_fpr(bits as f64, probes, n),
        FilterSpec::Mdbf { bits, probes, .. } => mdbf_fpr(bits as f64, probes, n, known, asked),
        FilterSpec::Cmdbf { bits, probes, .. } if query == FULL => {
            cmdbf_fpr(bits as f64, probes, n, known, asked)
        }
        FilterSpec::Cmdbf { bits, probes, .. } => mdbf_fpr(bits as f64, probes, n, known, asked),
        FilterSpec::Cartesian { size, probes, .. } => uncut_fpr(size as f64, probes, n, asked),
        FilterSpec::Matrix(ref matrix) => {
            matrix_fpr(&matrix.sizes, &matrix.cuts, matrix.probes, n, known, query)
        }
        _ => return None,
    })
}
