//! The data of the CBFM paper's experiments: three attributes of evenly spread values that never
//! repeat, and the structures that are compared on it at equal memory.

use super::runs::Random;
use crate::filters::matrix_sizing::{
    largest_cartesian_size, largest_size, maximal_legal_subsets, uncut_fpr,
};
use crate::filters::{
    BloomSpec, CartesianSpec, CmdbfSpec, Combination, ElementDigests, FilterSpec, MatrixSpec,
    MdbfSpec, MembershipFilter, Pattern, PatternAnswer, Workload,
};
use crate::hashing::{Digest, Digester};

/// Attributes.
pub(super) const ATTRIBUTES: usize = 3;

/// A query with all attributes, and one with the second and the third.
pub(super) const FULL: u32 = 0b111;
pub(super) const PAIR: u32 = 0b110;

/// The cut {1, 2}; and both {1, 2} and {1, 3}.
pub(super) const ONE_CUT: &[u32] = &[0b011];
pub(super) const TWO_CUTS: &[u32] = &[0b011, 0b101];

/// The elements number 0 to n - 1; value i of an attribute belongs to element i alone.
pub(super) struct Uniform {
    digester: Digester,
    elements: u64,
}

/// An element's digests, that of the whole last.
pub(super) type Digests = ([Digest; ATTRIBUTES], Digest);

impl Uniform {
    pub(super) fn new(seed: u64, elements: u64) -> Self {
        Self { digester: Digester::new(seed), elements }
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

    /// Returns an element of the set.
    pub(super) fn element(&self, number: u64) -> Digests {
        self.of([number; ATTRIBUTES])
    }

    /// Returns the filter with all elements.
    pub(super) fn fill(&self, spec: &FilterSpec) -> Box<dyn MembershipFilter> {
        let mut filter = spec.build();
        for number in 0..self.elements {
            let (attributes, whole) = self.element(number);
            filter.insert(ElementDigests { whole, attributes: &attributes });
        }
        filter
    }

    /// Returns this many elements of the set, drawn at random.
    pub(super) fn present(&self, random: &mut Random, number: u64) -> Vec<Digests> {
        (0..number).map(|_| self.element(random.below(self.elements))).collect()
    }

    /// Returns this many negatives from a stream of random numbers.
    pub(super) fn negatives(
        &self,
        (seed, stream): (u64, u64),
        known: f64,
        number: u64,
    ) -> impl Iterator<Item = Digests> {
        let mut random = Random::new(seed, stream);
        (0..number).map(move |_| self.negative(&mut random, known))
    }

    /// Returns a negative: each value occurs in the set with probability `known`, but in another
    /// element than the other values, so that no two of them occur together.
    pub(super) fn negative(&self, random: &mut Random, known: f64) -> Digests {
        let mut values = [0; ATTRIBUTES];
        for attribute in 0..ATTRIBUTES {
            if random.share() >= known {
                values[attribute] = self.elements + random.below(u64::MAX / 2);
                continue;
            }
            values[attribute] = random.below(self.elements);
            while values[..attribute].contains(&values[attribute]) {
                values[attribute] = random.below(self.elements);
            }
        }
        self.of(values)
    }
}

/// Returns whether the filter contains these attributes of an element; `None` if it cannot answer.
pub(super) fn ask(filter: &dyn MembershipFilter, digests: &Digests, query: u32) -> Option<bool> {
    let (attributes, whole) = digests;
    if query == FULL {
        return Some(filter.contains(ElementDigests { whole: *whole, attributes }));
    }
    let given: [Option<Digest>; ATTRIBUTES] = std::array::from_fn(|attribute| {
        (query >> attribute & 1 == 1).then(|| attributes[attribute])
    });
    let answer =
        filter.as_multi_attribute()?.contains_where(Pattern { whole: None, attributes: &given });
    match answer {
        PatternAnswer::Absent => Some(false),
        PatternAnswer::Present | PatternAnswer::PresentApart => Some(true),
        PatternAnswer::Unknown => None,
    }
}

/// Returns, for each combination, how many of the queries a filter reports as present; `None` if it
/// cannot answer.
pub(super) fn hits<const MASKS: usize>(
    filter: &dyn MembershipFilter,
    queries: impl IntoIterator<Item = Digests>,
    masks: [u32; MASKS],
) -> [Option<u64>; MASKS] {
    let mut hits = [None; MASKS];
    for query in queries {
        for (hits, mask) in hits.iter_mut().zip(masks) {
            if let Some(answer) = ask(filter, &query, mask) {
                *hits.get_or_insert(0) += u64::from(answer);
            }
        }
    }
    hits
}

/// Returns the structures of Fig. 7 by the names there, each with at most `bits`.
pub(super) fn structures(bits: u64, probes: u32) -> Vec<(&'static str, FilterSpec)> {
    let cartesian = largest_cartesian_size(ATTRIBUTES, bits.into());
    structures_of(ATTRIBUTES, bits, probes, cartesian, |cuts| {
        largest_size(ATTRIBUTES, cuts, bits.into())
    })
}

/// Returns the structures by name: a Cartesian join with `cartesian` positions an attribute,
/// matrices with `size` positions, the others with at most `bits`.
pub(super) fn structures_of(
    attributes: usize,
    bits: u64,
    probes: u32,
    cartesian: u64,
    size: impl Fn(&[u32]) -> u64,
) -> Vec<(&'static str, FilterSpec)> {
    let matrix =
        |cuts: &[u32]| FilterSpec::Matrix(MatrixSpec::cbfm(attributes, size(cuts), cuts, probes));
    let stage = |stages: usize| (bits / stages as u64).max(64);
    let sbf = BloomSpec { bits: stage(1), probes };
    let mdbf = MdbfSpec { attributes, bits: stage(attributes), probes };
    let combination = Combination::Joint;
    let cmdbf = CmdbfSpec { attributes, bits: stage(attributes + 1), probes, combination };
    let mut structures = vec![
        ("SBF", sbf.into()),
        ("MDBF", mdbf.into()),
        ("CMDBF", cmdbf.into()),
        ("CBF (Cartesian)", CartesianSpec { attributes, size: cartesian, probes }.into()),
        ("BFM", matrix(&[])),
    ];
    // With two attributes, a cut of both leaves no pair.
    if attributes > 2 {
        structures.push(("CBFM, one cut", matrix(ONE_CUT)));
        structures.push(("CBFM, two cuts", matrix(TWO_CUTS)));
    }
    structures
}

/// Returns the rate by formula for `query`, if the structure answers it; values occur with `known`
/// (α). `values` are the distinct values of each combination.
pub(super) fn predicted(
    spec: &FilterSpec,
    values: &dyn Fn(u32) -> f64,
    known: f64,
    query: u32,
) -> Option<f64> {
    let elements = values(FULL);
    match spec {
        FilterSpec::Cartesian(CartesianSpec { size, probes, .. }) => {
            Some(uncut_fpr(*size as f64, *probes, elements, query.count_ones()))
        }
        FilterSpec::Matrix(matrix) => Some(matrix_rate(matrix, elements, known, query)),
        _ => {
            let wanted = &[(query, 1.0)];
            Workload { attributes: ATTRIBUTES, wanted, known, values }.rates(spec)[0]
        }
    }
}

/// Returns the rate of a matrix, with the term that formula (1) omits: an element with one of the
/// queried values has, under each function, a cell in that value's row.
///
/// So for a maximal combination T of c = Π mᵢ cells a queried cell is clear with e^(-kn/c) Π (1 -
/// mᵢ/c) over those of its attributes i whose value occurs (in another element). It is the formula
/// of [`matrix_fpr`](crate::filters::matrix_sizing::matrix_fpr) for large m; with m = 1000 it is 2
/// % more.
pub(super) fn matrix_rate(matrix: &MatrixSpec, elements: f64, known: f64, query: u32) -> f64 {
    let attributes = |set: u32| (0..ATTRIBUTES).filter(move |i| set >> i & 1 == 1);
    let size = |attribute: usize| matrix.sizes[attribute] as f64;
    let asked = maximal_legal_subsets(query, &matrix.cuts);
    let rate_if = |occurs: u32| -> f64 {
        let rates = asked.iter().map(|&subset| {
            if subset & occurs != 0 && subset.is_power_of_two() {
                return 1.0;
            }
            let cells: f64 = attributes(subset).map(size).product();
            let apart: f64 = attributes(subset & occurs)
                .map(|attribute| 1.0 - size(attribute) / cells)
                .product();
            let throws = f64::from(matrix.probes) * elements;
            (1.0 - (-throws / cells).exp() * apart).powi(matrix.probes as i32)
        });
        rates.product()
    };
    // Over which of the values occur.
    (0..1_u32 << ATTRIBUTES)
        .filter(|occurs| occurs & !query == 0)
        .map(|occurs| {
            let among = occurs.count_ones() as i32;
            let others = query.count_ones() as i32 - among;
            known.powi(among) * (1.0 - known).powi(others) * rate_if(occurs)
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filters::matrix_sizing::matrix_fpr;

    /// With nothing known, and for large matrices, it is the published formula.
    #[test]
    fn matrix_rates_have_the_published_limit() {
        for (_, spec) in structures(1 << 27, 6) {
            let FilterSpec::Matrix(matrix) = spec else { continue };
            for (query, known) in [(FULL, 0.0), (PAIR, 0.0), (FULL, 0.5), (PAIR, 1.0), (0b001, 0.3)]
            {
                let ours = matrix_rate(&matrix, 5e6, known, query);
                let limit = matrix_fpr(&matrix.sizes, &matrix.cuts, 6, 5e6, known, query);
                let most = if known == 0.0 { 1e-9 } else { 0.01 };
                assert!((ours / limit - 1.0).abs() < most, "{query} {known}: {ours} {limit}");
            }
        }
    }
}
