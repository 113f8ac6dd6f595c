//! Sizes and false-positive rates of the matrices as pure functions: attributes i of sizes mᵢ, k
//! hash functions, n distinct elements; a set of attributes is a mask, bit i for attribute i.
//!
//! A **cut** is a set of attributes that is not stored, and no superset of it either:
//!
//! ```text
//! L = { S : S contains no cut }            the legal (stored) combinations
//! M = Σ_{S ∈ L} Π_{i ∈ S} mᵢ               cells; the empty set counts 1
//!   = Σ_{T ⊆ cuts} (-1)^|T| Π_{i ∈ ∪T} mᵢ Π_{i ∉ ∪T} (mᵢ + 1)
//!   = (m+1)^(d - Σ rᵢ) Π [(m+1)^rᵢ - m^rᵢ]           disjoint cuts of rᵢ attributes (formula 4)
//! ```
//!
//! Formula (4) holds for pairwise disjoint cuts only: for {1,3} and {1,2} of three attributes it has
//! the exponent -1, where M is (m+1)² + m.
//!
//! # False-positive rates
//!
//! With f(b) = (1 - e^(-kn/b))^k and g(x) = α + (1-α) x, where α is the probability that an
//! attribute value of a query occurs in the set although the query does not:
//!
//! | structure | all d attributes | q of them |
//! |---|---|---|
//! | SBF: a standard filter of M bits | f(M) | not supported |
//! | MDBF, M/d bits each | g(f(M/d))^d | g^q |
//! | CMDBF, M/(d+1) bits each | g(f(M/(d+1)))^d f(M/(d+1)) | g^q |
//! | Cartesian join | f(m^d) | f(m^q): the projection |
//! | BFM | f(m^d) | f(m^q) |
//! | CBFM | product of F(T) over the maximal legal subsets T of the query | the same |
//!
//! F(T) = f(Π_{i ∈ T} mᵢ) for two or more attributes if that combination is new, g(f(mᵢ)) for one.
//! A combination T that *does* occur in the set has F(T) = 1 whatever the formula says. **All of it
//! is for evenly spread values**: a value that occurs with D others owns k rows of m cells only, so
//! its next new pair is a false positive with (1 - (1-ρ) e^(-D/m))^k however large the matrix is.
//!
//! Reference: Wang, Yun, Wang, Wang, "CBFM: cutted Bloom filter matrix for multi-dimensional
//! membership query", Journal on Communications 37(3), 2016, 139-147, formulas (1) and (4).

use super::MAX_COMBINATIONS;
use super::sizing::{MAX_PROBES, bloom_fpr};

/// Most attributes of an element.
pub const MAX_ATTRIBUTES: usize = 16;

/// Whether a combination is stored: it contains no cut.
pub fn is_legal(combination: u32, cuts: &[u32]) -> bool {
    cuts.iter().all(|cut| combination & cut != *cut)
}

/// The stored combinations L, the empty one included, in ascending order.
pub fn legal_combinations(attributes: usize, cuts: &[u32]) -> Vec<u32> {
    (0..1 << attributes)
        .filter(|&combination| is_legal(combination, cuts))
        .collect()
}

/// The legal subsets of `query` that no other legal subset of it contains, in ascending order.
///
/// They suffice to answer it: a set cell of a combination implies the cells of its subsets under the
/// same hash function. For disjoint cuts of rᵢ attributes there are Π rᵢ of them, which can be more
/// than d: two cuts of 2 and 3 of five attributes make 6.
pub fn maximal_legal_subsets(query: u32, cuts: &[u32]) -> Vec<u32> {
    let grows = |subset: u32| {
        (0..u32::BITS).any(|attribute| {
            let one = 1 << attribute;
            query & one != 0 && subset & one == 0 && is_legal(subset | one, cuts)
        })
    };
    let mut maximal: Vec<u32> = subsets(query)
        .filter(|&subset| is_legal(subset, cuts) && !grows(subset))
        .collect();
    maximal.sort_unstable();
    maximal
}

/// All subsets of `set`, itself and the empty one included.
fn subsets(set: u32) -> impl Iterator<Item = u32> {
    let mut next = Some(set);
    std::iter::from_fn(move || {
        let subset = next?;
        next = subset.checked_sub(1).map(|less| less & set);
        Some(subset)
    })
}

/// Cells of a combination: Π mᵢ over its attributes, or `None` beyond 2^128.
pub fn combination_cells(sizes: &[u64], combination: u32) -> Option<u128> {
    members(combination).try_fold(1_u128, |cells, attribute| {
        cells.checked_mul(sizes[attribute].into())
    })
}

/// The attributes in `combination`, ascending.
pub(super) fn members(combination: u32) -> impl Iterator<Item = usize> {
    let mut left = combination;
    std::iter::from_fn(move || {
        let attribute = (left != 0).then(|| left.trailing_zeros() as usize)?;
        left &= left - 1;
        Some(attribute)
    })
}

/// Cells M of a matrix, combination by combination, or `None` beyond 2^128.
pub fn cells(sizes: &[u64], cuts: &[u32]) -> Option<u128> {
    (0..1_u32 << sizes.len())
        .filter(|&combination| is_legal(combination, cuts))
        .try_fold(0_u128, |sum, combination| {
            sum.checked_add(combination_cells(sizes, combination)?)
        })
}

/// Cells M by inclusion and exclusion over the cuts, or `None` beyond 2^127. Costs 2^(number of
/// cuts), where [`cells`] costs 2^(number of attributes).
pub fn cells_by_inclusion_exclusion(sizes: &[u64], cuts: &[u32]) -> Option<i128> {
    (0..1_u64 << cuts.len()).try_fold(0_i128, |sum, chosen| {
        let union = cuts
            .iter()
            .enumerate()
            .filter(|(index, _)| chosen >> index & 1 == 1)
            .fold(0, |union, (_, cut)| union | cut);
        let mut product = 1_i128;
        for (attribute, &size) in sizes.iter().enumerate() {
            let factor = i128::from(size) + i128::from(union >> attribute & 1 == 0);
            product = product.checked_mul(factor)?;
        }
        sum.checked_add(if chosen.count_ones() % 2 == 0 {
            product
        } else {
            -product
        })
    })
}

/// Cells M by formula (4): d attributes of size m, *pairwise disjoint* cuts of `cut_sizes` (rᵢ)
/// attributes each.
pub fn cells_of_disjoint_cuts(size: f64, attributes: u32, cut_sizes: &[u32]) -> f64 {
    let free = attributes as i32 - cut_sizes.iter().sum::<u32>() as i32;
    let cut = |r: &u32| (size + 1.0).powi(*r as i32) - size.powi(*r as i32);
    (size + 1.0).powi(free) * cut_sizes.iter().map(cut).product::<f64>()
}

/// The largest size m of every attribute so that the matrix has at most `most` cells; 0 if not even
/// m = 1 fits.
pub fn largest_size(attributes: usize, cuts: &[u32], most: u128) -> u64 {
    let counts = combinations_by_order(attributes, cuts);
    largest(most, |size| {
        counts.iter().rev().try_fold(0_u128, |sum, &count| {
            // Horner's rule on M = Σ count_r m^r.
            sum.checked_mul(size.into())?.checked_add(count)
        })
    })
}

/// The largest size m of the Cartesian join so that m^d is at most `most`.
pub fn largest_cartesian_size(attributes: usize, most: u128) -> u64 {
    largest(most, |size| u128::from(size).checked_pow(attributes as u32))
}

/// Sizes mᵢ in proportion to weights (at least 1 each), as large as fit into `most` cells; `None`
/// if not even one cell an attribute fits, or if the weights are negative or sum to nothing.
pub fn weighted_sizes(weights: &[f64], cuts: &[u32], most: u128) -> Option<Vec<u64>> {
    let heaviest = weights.iter().copied().fold(0.0, f64::max);
    if !heaviest.is_finite() || heaviest <= 0.0 || weights.iter().any(|&w| w.is_nan() || w < 0.0) {
        return None;
    }
    // The size of the heaviest attribute decides the others, so that equal weights are equal sizes.
    let sizes = |heavy: u64| -> Vec<u64> {
        weights
            .iter()
            .map(|weight| ((heavy as f64 * (weight / heaviest)) as u64).max(1))
            .collect()
    };
    let heavy = largest(most, |heavy| cells(&sizes(heavy), cuts));
    (heavy > 0).then(|| sizes(heavy))
}

/// Number of legal combinations of 0, 1, …, d attributes.
fn combinations_by_order(attributes: usize, cuts: &[u32]) -> Vec<u128> {
    let mut counts = vec![0; attributes + 1];
    for combination in legal_combinations(attributes, cuts) {
        counts[combination.count_ones() as usize] += 1;
    }
    counts
}

/// The largest size whose cells, which grow with it, are at most `most`.
fn largest(most: u128, cells: impl Fn(u64) -> Option<u128>) -> u64 {
    let fits = |size: u64| cells(size).is_some_and(|cells| cells <= most);
    // Doubling finds a size that does not fit; halving the gap then finds the last that does.
    let mut high = 1_u64;
    while high < 1 << 62 && fits(high) {
        high *= 2;
    }
    let mut low = high / 2;
    while low + 1 < high {
        let middle = low + (high - low) / 2;
        if fits(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

/// The attribute size for a rate ε by the rule of the paper's tables: m = n log2(e) log2(1/ε), a
/// standard filter for one attribute. The tables round it down.
pub fn attribute_size(fpr: f64, elements: f64) -> f64 {
    super::sizing::bloom_bits(fpr, elements)
}

/// The number of hash functions in the paper's tables: floor(-log2 ε).
pub fn table_probes(fpr: f64) -> u32 {
    (-fpr.log2()).floor() as u32
}

/// α + (1-α) x: a value is known with probability α, else it is a false positive with x.
fn known_or(known: f64, fpr: f64) -> f64 {
    known + (1.0 - known) * fpr
}

/// False-positive rate of an MDBF with `bits` an attribute, asked for `queried` attributes, each of
/// which occurs in the set with probability `known` (α).
pub fn mdbf_fpr(bits: f64, probes: u32, elements: f64, known: f64, queried: u32) -> f64 {
    known_or(known, bloom_fpr(bits, probes, elements)).powi(queried as i32)
}

/// False-positive rate of a CMDBF with `bits` in each of its d + 1 filters for a query with all
/// `attributes`; with fewer it is that of its attribute stage, [`mdbf_fpr`].
pub fn cmdbf_fpr(bits: f64, probes: u32, elements: f64, known: f64, attributes: u32) -> f64 {
    mdbf_fpr(bits, probes, elements, known, attributes) * bloom_fpr(bits, probes, elements)
}

/// False-positive rate of a Cartesian join, or of a BFM, of size m, asked for `queried` attributes.
pub fn uncut_fpr(size: f64, probes: u32, elements: f64, queried: u32) -> f64 {
    bloom_fpr(size.powi(queried as i32), probes, elements)
}

/// False-positive rate of a matrix with these sizes and cuts for a query with the attributes in
/// `query`, none of whose combinations of two or more attributes occurs in the set.
pub fn matrix_fpr(
    sizes: &[u64],
    cuts: &[u32],
    probes: u32,
    elements: f64,
    known: f64,
    query: u32,
) -> f64 {
    rate_of_subsets(
        &maximal_legal_subsets(query, cuts),
        sizes,
        probes,
        elements,
        known,
    )
}

fn rate_of_subsets(subsets: &[u32], sizes: &[u64], probes: u32, elements: f64, known: f64) -> f64 {
    subsets
        .iter()
        .map(|&subset| {
            let cells: f64 = members(subset).map(|i| sizes[i] as f64).product();
            let fpr = bloom_fpr(cells, probes, elements);
            match subset.count_ones() {
                0 => 1.0,
                1 => known_or(known, fpr),
                _ => fpr,
            }
        })
        .product()
}

/// False-positive rate of a stored combination (`subset`) of values all of which occur, though not
/// together: `elements_of` says how many distinct values a combination has.
///
/// A value that occurs with D others has filled 1 - e^(-D/c) of the c cells that it shares with
/// them, on top of the share ρ that is set everywhere; so the rate is (1 - (1-ρ) Π e^(-D/c))^k. D is
/// the same for all values here: n of the combination over n of the attribute.
pub fn rate_in_rows(
    sizes: &[f64],
    subset: u32,
    probes: u32,
    elements_of: impl Fn(u32) -> f64,
) -> f64 {
    let elements = elements_of(subset);
    let cells: f64 = members(subset).map(|member| sizes[member]).product();
    let of_rows: f64 = members(subset)
        .map(|member| elements / elements_of(1 << member) * sizes[member] / cells)
        .sum();
    let load = f64::from(probes) * elements / cells;
    (-(-load - of_rows).exp_m1()).powi(probes as i32)
}

/// A cut family with the size and the k that suit it.
#[derive(Clone, Debug, PartialEq)]
pub struct MatrixPlan {
    /// The cuts.
    pub cuts: Vec<u32>,
    /// Size of every attribute (m).
    pub size: u64,
    /// Hash functions (k).
    pub probes: u32,
    /// Predicted false-positive rate of a query with all attributes.
    pub fpr: f64,
}

/// The cut families among which [`best_plan`] chooses: combinations of at most r attributes are
/// kept, for r = d (no cut) down to 2; and disjoint pairs {1,2}, {3,4}, … are cut, one to d/2 of them.
/// Those with more than [`MAX_COMBINATIONS`] combinations are left out.
pub fn cut_families(attributes: usize) -> Vec<Vec<u32>> {
    let of_order = |order: usize| -> Vec<u32> {
        (1..1_u32 << attributes)
            .filter(|cut| cut.count_ones() as usize == order)
            .collect()
    };
    let few = |combinations: u64| combinations <= MAX_COMBINATIONS as u64;
    // Subsets of at most `kept` attributes: a sum of binomial coefficients.
    let of_at_most = |kept: usize| -> u64 {
        (1..=kept as u64)
            .scan(1, |binomial, order| {
                *binomial = *binomial * (attributes as u64 + 1 - order) / order;
                Some(*binomial)
            })
            .sum::<u64>()
            + 1
    };
    let levels = (2..attributes)
        .rev()
        .filter(|&kept| few(of_at_most(kept)))
        .map(|kept| of_order(kept + 1));
    // Three of the four subsets of a cut pair stay.
    let pairs = (1..=attributes / 2)
        .filter(|&pairs| attributes > 2 && few(3_u64.pow(pairs as u32) << (attributes - 2 * pairs)))
        .map(|pairs| (0..pairs).map(|pair| 0b11 << (2 * pair)).collect());
    few(1 << attributes)
        .then(Vec::new)
        .into_iter()
        .chain(levels)
        .chain(pairs)
        .collect()
}

/// The plan of the least predicted rate for a query with all attributes, with at most `most` cells,
/// `elements` distinct elements and all attribute values known (α = 1, as in traffic); `None` if
/// none fits.
pub fn best_plan(
    families: &[Vec<u32>],
    attributes: usize,
    most: u128,
    elements: f64,
) -> Option<MatrixPlan> {
    families
        .iter()
        .filter_map(|cuts| {
            let size = largest_size(attributes, cuts, most);
            (size > 0).then(|| plan_of_size(cuts, attributes, size, elements))
        })
        .min_by(|a, b| a.fpr.total_cmp(&b.fpr))
}

/// The plan of the fewest cells whose predicted rate, as in [`best_plan`], is at most `fpr`.
pub fn least_plan(
    families: &[Vec<u32>],
    attributes: usize,
    fpr: f64,
    elements: f64,
) -> Option<MatrixPlan> {
    families
        .iter()
        .filter_map(|cuts| {
            let reaches = |size: u64| plan_of_size(cuts, attributes, size, elements).fpr <= fpr;
            let mut high = 1_u64;
            while !reaches(high) {
                high = high.checked_mul(2).filter(|&size| size < 1 << 48)?;
            }
            let mut low = high / 2;
            while low + 1 < high {
                let middle = low + (high - low) / 2;
                if reaches(middle) {
                    high = middle;
                } else {
                    low = middle;
                }
            }
            let plan = plan_of_size(cuts, attributes, high, elements);
            Some((cells(&vec![high; attributes], cuts)?, plan))
        })
        .min_by_key(|&(cells, _)| cells)
        .map(|(_, plan)| plan)
}

/// A cut family at a given size, with the k of the least predicted rate.
fn plan_of_size(cuts: &[u32], attributes: usize, size: u64, elements: f64) -> MatrixPlan {
    let sizes = vec![size; attributes];
    let full = (1 << attributes) - 1;
    let asked = maximal_legal_subsets(full, cuts);
    // A new element of one attribute has a value that does not occur.
    let known = if attributes == 1 { 0.0 } else { 1.0 };
    let (probes, fpr) = (1..=MAX_PROBES as u32)
        .map(|probes| {
            (
                probes,
                rate_of_subsets(&asked, &sizes, probes, elements, known),
            )
        })
        .min_by(|a, b| a.1.total_cmp(&b.1))
        .expect("there is at least one number of hash functions");
    MatrixPlan {
        cuts: cuts.to_vec(),
        size,
        probes,
        fpr,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// One megabyte of the paper, in bits.
    const MEGABYTE: f64 = 8_388_608.0;
    /// The cuts {1,3} and {1,2} of the paper's tables.
    const OVERLAPPING: [u32; 2] = [0b101, 0b011];

    fn near(ours: f64, theirs: f64) -> bool {
        (ours / theirs - 1.0).abs() < 1e-9
    }

    /// Counts from an independent computation.
    #[test]
    fn cells_of_cut_families() {
        for (sizes, cuts, expected) in [
            (&[3, 3, 3][..], &[0b101, 0b011][..], 19),
            (&[2, 3, 4], &[0b110], 24),
            (&[3, 2, 2, 3], &[0b0011, 0b1100], 36),
            (&[2, 2, 2, 2], &[0b0111], 57),
            (&[2, 2, 2, 2], &[0b0111, 0b1110, 0b1001], 29),
            (&[4, 4], &[], 25),
            (&[1, 2, 3, 2, 1], &[0b00111, 0b11000], 72),
            (&[3, 3, 3], &[0b001], 16),
        ] {
            assert_eq!(cells(sizes, cuts), Some(expected));
            assert_eq!(
                cells_by_inclusion_exclusion(sizes, cuts),
                Some(expected as i128)
            );
        }
        assert_eq!(cells(&[u64::MAX; 3], &[]), None);
        assert_eq!(cells_by_inclusion_exclusion(&[u64::MAX; 3], &[]), None);
    }

    #[test]
    fn formula_four_is_for_disjoint_cuts_only() {
        let cells = |attributes, cuts: &[u32]| cells(&vec![9; attributes], cuts).unwrap() as f64;
        let formula =
            |attributes, cut_sizes: &[u32]| cells_of_disjoint_cuts(9.0, attributes, cut_sizes);
        assert!(near(formula(3, &[2]), cells(3, &[0b011])));
        assert!(near(formula(5, &[2, 3]), cells(5, &[0b00011, 0b11100])));
        assert!(near(
            formula(6, &[2, 2, 2]),
            cells(6, &[0b11, 0b1100, 0b11_0000])
        ));
        assert!(near(formula(4, &[]), 10_000.0));
        // Two cuts that share an attribute: (m+1)² + m, and not what the formula says.
        assert!(near(cells(3, &OVERLAPPING), 109.0));
        assert!(formula(3, &[2, 2]) < 40.0);
        // At the paper's size: 0.0023 MB by the formula, 2.74 MB in truth.
        let wrong = cells_of_disjoint_cuts(4792.0, 3, &[2, 2]) / MEGABYTE;
        assert!((wrong - 0.002_285).abs() < 1e-5, "{wrong}");
    }

    #[test]
    fn maximal_legal_subsets_can_be_more_than_the_attributes() {
        let of_all =
            |attributes: u32, cuts: &[u32]| maximal_legal_subsets((1 << attributes) - 1, cuts);
        assert_eq!(of_all(3, &OVERLAPPING), [0b001, 0b110]);
        assert_eq!(of_all(3, &[0b011]), [0b101, 0b110]);
        assert_eq!(
            of_all(4, &[0b0011, 0b1100]),
            [0b0101, 0b0110, 0b1001, 0b1010]
        );
        assert_eq!(of_all(5, &[0b00011, 0b11100]), [13, 14, 21, 22, 25, 26]);
        assert_eq!(
            of_all(6, &[0b00_0111, 0b11_1000]),
            [27, 29, 30, 43, 45, 46, 51, 53, 54]
        );
        assert_eq!(of_all(6, &[3, 12, 48]), [21, 22, 25, 26, 37, 38, 41, 42]);
        let triples = [7, 11, 19, 13, 21, 25, 14, 22, 26, 28];
        assert_eq!(of_all(5, &triples), [3, 5, 6, 9, 10, 12, 17, 18, 20, 24]);
        assert_eq!(maximal_legal_subsets(0b010, &OVERLAPPING), [0b010]);
        assert_eq!(maximal_legal_subsets(0, &OVERLAPPING), [0]);
    }

    /// Table 3 (n = 1000, three attributes): ε, k, m, megabytes of the BFM as printed, of the CBFM
    /// as printed. The first two BFM cells are 13 125.9996 and 105 007.9968: the paper cuts the
    /// integer part off and rounds the fraction to 1.00, losing the carry; where that happens both
    /// roundings are tested.
    #[test]
    fn table_3() {
        let two = |megabytes: f64| format!("{megabytes:.2}");
        let carry_lost = |megabytes: f64| {
            let fraction = two(megabytes.fract());
            format!("{}{}", megabytes.trunc(), &fraction[1..])
        };
        for (fpr, probes, size, bfm, bfm_rounded, cbfm) in [
            (0.1, 3, 4_792, "13125.00", "13126.00", "2.74"),
            (0.01, 6, 9_585, "105007.00", "105008.00", "10.96"),
            (1e-3, 9, 14_377, "354328.05", "354328.05", "24.65"),
            (1e-4, 13, 19_170, "839932.53", "839932.53", "43.81"),
            (1e-5, 16, 23_962, "1640339.20", "1640339.20", "68.46"),
        ] {
            assert_eq!(table_probes(fpr), probes);
            assert_eq!(attribute_size(fpr, 1000.0).floor() as u64, size);
            let megabytes = |cuts| cells(&[size; 3], cuts).unwrap() as f64 / MEGABYTE;
            assert_eq!(carry_lost(megabytes(&[])), bfm);
            assert_eq!(two(megabytes(&[])), bfm_rounded);
            assert_eq!(two(megabytes(&OVERLAPPING)), cbfm);
        }
    }

    /// Table 2: elements in one megabyte. The BFM column is rounded down and the CBFM column to the
    /// nearest; no single rule gives both.
    #[test]
    fn table_2() {
        for (fpr, bfm, bfm_printed, cbfm, cbfm_printed) in [
            (0.1, 42.188, 42, 604.025, 604),
            (0.01, 21.094, 21, 302.013, 302),
            (1e-3, 14.063, 14, 201.342, 201),
            (1e-4, 10.547, 10, 151.006, 151),
            (1e-5, 8.438, 8, 120.805, 121),
        ] {
            let each: f64 = attribute_size(fpr, 1.0);
            // (m+1)³ = M, and (m+1)² + m = M.
            let bfm_elements = (MEGABYTE.cbrt() - 1.0) / each;
            let cbfm_elements = ((5.0 + 4.0 * MEGABYTE).sqrt() - 3.0) / 2.0 / each;
            assert!((bfm_elements - bfm).abs() < 5.1e-4, "{bfm_elements}");
            assert!((cbfm_elements - cbfm).abs() < 5.1e-4, "{cbfm_elements}");
            assert_eq!(bfm_elements.floor() as u32, bfm_printed);
            assert_eq!(cbfm_elements.round() as u32, cbfm_printed);
        }
    }

    /// Fig. 11 (n = 100, ε = 0.1) and Fig. 12 (m = 16), in bits.
    #[test]
    fn figures_11_and_12() {
        let size = attribute_size(0.1, 100.0).floor() as u64;
        assert_eq!(size, 479);
        for (attributes, bfm, cbfm) in [
            (3, 110_592_000_u128, 460_320_u128),
            (4, 53_084_160_000, 220_953_600),
        ] {
            assert_eq!(cells(&vec![size; attributes], &[]), Some(bfm));
            assert_eq!(cells(&vec![size; attributes], &[0b11]), Some(cbfm));
        }
        for (attributes, bfm, cbfm, combinations) in [
            (2, 289_u128, 289_u128, 3),
            (3, 4_913, 561, 5),
            (5, 1_419_857, 162_129, 23),
            (8, 6_975_757_441, 796_539_777, 191),
        ] {
            // With two attributes the pair is all that there is, and it stays.
            let cuts = if attributes == 2 { &[][..] } else { &[0b11] };
            assert_eq!(cells(&vec![16; attributes], &[]), Some(bfm));
            assert_eq!(cells(&vec![16; attributes], cuts), Some(cbfm));
            assert_eq!(legal_combinations(attributes, cuts).len() - 1, combinations);
        }
    }

    #[test]
    fn sizes_that_fill_the_memory_of_figure_7() {
        let most = 1 << 27;
        assert_eq!(largest_size(3, &[], most), 511);
        assert_eq!(largest_size(3, &[0b011], most), 8191);
        assert_eq!(largest_size(3, &OVERLAPPING, most), 11_583);
        assert_eq!(largest_cartesian_size(3, most), 512);
        assert_eq!(largest_size(3, &[], 7), 0);
        assert_eq!(largest_size(3, &[], 8), 1);
        assert_eq!(
            weighted_sizes(&[1.0; 3], &[0b011], most),
            Some(vec![8191; 3])
        );
        assert_eq!(weighted_sizes(&[0.0; 3], &[], most), None);
        assert_eq!(weighted_sizes(&[1.0, -1.0], &[], most), None);
        assert_eq!(weighted_sizes(&[1.0; 3], &[], 7), None);
        let sizes = weighted_sizes(&[2.0, 1.0, 0.0], &[], 1 << 20).unwrap();
        assert_eq!(sizes[2], 1);
        assert!(sizes[0].abs_diff(2 * sizes[1]) <= 1);
    }

    /// Fig. 7: M = 2^27, k = 6, n = 5 million (the n that the paper does not print), by an
    /// independent computation.
    #[test]
    fn rates_of_figure_7() {
        let (bits, n, k) = (f64::from(1 << 27), 5e6, 6);
        assert!(near(bloom_fpr(bits, k, n), 6.457_630_219_659_074e-5));
        for (known, mdbf, cmdbf, mdbf_pair, cmdbf_pair) in [
            (
                0.0,
                2.516_201_452_405_383_5e-6,
                3.298_471_060_596_264e-6,
                1.849_965_399_799_628_9e-4,
                1.816_169_336_982_723e-3,
            ),
            (
                0.25,
                0.017_616_795_841_502_265,
                9.553_264_063_781_462e-4,
                0.067_704_564_296_966_68,
                0.079_502_797_115_905_05,
            ),
            (
                0.5,
                0.130_170_191_970_902_02,
                6.037_567_666_995_115e-3,
                0.256_846_920_792_632_3,
                0.271_762_311_486_048_74,
            ),
            (1.0, 1.0, 0.042_616_538_303_606_066, 1.0, 1.0),
        ] {
            let third = f64::from((1 << 27) / 3);
            assert!(near(mdbf_fpr(third, k, n, known, 3), mdbf), "{known}");
            assert!(near(mdbf_fpr(third, k, n, known, 2), mdbf_pair), "{known}");
            assert!(
                near(cmdbf_fpr(bits / 4.0, k, n, known, 3), cmdbf),
                "{known}"
            );
            assert!(
                near(mdbf_fpr(bits / 4.0, k, n, known, 2), cmdbf_pair),
                "{known}"
            );
        }
        let cbfm = |size, cuts: &[u32], query| matrix_fpr(&[size; 3], cuts, k, n, 0.5, query);
        assert!(near(uncut_fpr(512.0, k, n, 3), 6.457_630_219_659_074e-5));
        assert!(near(uncut_fpr(511.0, k, n, 3), 6.663_573_307_511_084e-5));
        assert!(near(uncut_fpr(511.0, k, n, 2), 1.0));
        assert!(near(cbfm(511, &[], 0b111), 6.663_573_307_511_084e-5));
        assert!(near(
            cbfm(8191, &[0b011], 0b111),
            4.825_692_433_405_637_5e-6
        ));
        assert!(near(
            cbfm(8191, &[0b011], 0b110),
            2.196_745_873_651_669_6e-3
        ));
        assert!(near(cbfm(8191, &[0b011], 0b001), 1.0));
        assert!(near(
            cbfm(11_583, &OVERLAPPING, 0b111),
            6.471_000_935_633_525e-5
        ));
        assert!(near(
            cbfm(11_583, &OVERLAPPING, 0b110),
            6.471_000_935_633_525e-5
        ));
        // α moves the rate of single attributes only.
        let of_one = |known| matrix_fpr(&[100; 2], &[], 1, 10.0, known, 0b01);
        assert!(near(of_one(0.5), 0.5 + 0.5 * of_one(0.0)));
    }

    /// Table 1 of the CMDBF paper: n = 10 000, m = 32 768.
    #[test]
    fn theory_of_table_1_of_the_cmdbf_paper() {
        let printed = [
            (2, 4, 0.061_010, 0.015_070),
            (2, 6, 0.122_980, 0.043_127),
            (2, 8, 0.232_938, 0.112_424),
            (3, 4, 0.015_070, 0.003_722),
            (3, 6, 0.043_127, 0.015_124),
            (3, 8, 0.112_424, 0.054_260),
            (4, 4, 0.003_722, 0.000_919),
            (4, 6, 0.015_124, 0.005_304),
            (4, 8, 0.054_260, 0.026_188),
            (5, 4, 0.000_919, 0.000_227),
            (5, 6, 0.005_304, 0.001_860),
            (5, 8, 0.026_188, 0.012_639),
        ];
        for (attributes, probes, mdbf, cmdbf) in printed {
            let ours = mdbf_fpr(32_768.0, probes, 1e4, 0.0, attributes);
            assert!((ours - mdbf).abs() < 5.1e-7, "{ours} {mdbf}");
            let ours = cmdbf_fpr(32_768.0, probes, 1e4, 0.0, attributes);
            assert!((ours - cmdbf).abs() < 5.1e-7, "{ours} {cmdbf}");
        }
        // All attribute values known: the worst case.
        assert!(near(mdbf_fpr(32_768.0, 4, 1e4, 1.0, 2), 1.0));
        assert!(near(
            cmdbf_fpr(32_768.0, 4, 1e4, 1.0, 2),
            0.247_002_097_023_722_47
        ));
    }

    #[test]
    fn plans_use_the_memory_and_reach_their_rate() {
        for attributes in 1..=5 {
            let families = cut_families(attributes);
            let plan = best_plan(&families, attributes, 1 << 20, 20_000.0).unwrap();
            let size = |size| cells(&vec![size; attributes], &plan.cuts).unwrap();
            assert!(size(plan.size) <= 1 << 20 && size(plan.size + 1) > 1 << 20);
            let uncut = best_plan(&[vec![]], attributes, 1 << 20, 20_000.0).unwrap();
            assert!(plan.fpr <= uncut.fpr);
            let least = least_plan(&families, attributes, 0.01, 20_000.0).unwrap();
            assert!(least.fpr <= 0.01);
        }
        assert_eq!(cut_families(1), [Vec::<u32>::new()]);
        assert_eq!(cut_families(2), [Vec::<u32>::new()]);
        assert_eq!(cut_families(3), [vec![], vec![0b111], vec![0b011]]);
        assert_eq!(best_plan(&[vec![]], 3, 7, 1.0), None);
    }

    fn families() -> impl Strategy<Value = (Vec<u64>, Vec<u32>)> {
        (1_usize..6).prop_flat_map(|attributes| {
            (
                prop::collection::vec(1_u64..6, attributes),
                prop::collection::vec(1_u32..1 << attributes, 0..5),
            )
        })
    }

    proptest! {
        #[test]
        fn both_ways_to_count_cells_agree((sizes, cuts) in families()) {
            let direct = cells(&sizes, &cuts).unwrap();
            prop_assert_eq!(cells_by_inclusion_exclusion(&sizes, &cuts), Some(direct as i128));
            let tuples: u64 = sizes.iter().map(|m| m + 1).product();
            let counted = (0..tuples).filter(|&tuple| {
                let mut rest = tuple;
                let mut given = 0;
                for (i, m) in sizes.iter().enumerate() {
                    given |= u32::from(rest % (m + 1) != 0) << i;
                    rest /= m + 1;
                }
                is_legal(given, &cuts)
            });
            prop_assert_eq!(counted.count() as u128, direct);
        }

        #[test]
        fn every_legal_subset_lies_in_a_maximal_one((sizes, cuts) in families(), query: u32) {
            let query = query & ((1 << sizes.len()) - 1);
            let maximal = maximal_legal_subsets(query, &cuts);
            for &subset in &maximal {
                prop_assert!(subset & !query == 0 && is_legal(subset, &cuts));
                prop_assert!(maximal.iter().all(|&other| other == subset || other & subset != subset));
            }
            for subset in subsets(query).filter(|&subset| is_legal(subset, &cuts)) {
                prop_assert!(maximal.iter().any(|&larger| larger & subset == subset));
            }
        }
    }
}
