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
//! Formula (4) holds for pairwise disjoint cuts only: for {1,3} and {1,2} of three attributes it
//! has the exponent -1, where M is (m+1)² + m.
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
//! The product assumes independent combinations. Two that share an attribute b, {a,b} and {b,c},
//! are not quite independent, since their cells are in the same row of b. With their loads u and v
//! one function finds both set with
//!
//! ```text
//! (1 - e^-u) (1 - e^-v) + e^-(u+v) (e^(kn / (m_a m_b m_c)) - 1)        u = kn / (m_a m_b), v = kn / (m_b m_c)
//! ```
//!
//! so the rate is above the product by a term of 1/m: 1.5 % at m = 120, u = v = 0.6 and k = 2; 6 %
//! at m = 12 and k = 1. (`tests/laws/shared_attributes.rs` measures it.)
//!
//! A combination T that *does* occur in the set has F(T) = 1. **All formulas are for evenly spread
//! values**: a value that occurs with D others only has k rows of m cells, so its next new pair is
//! a false positive with (1 - (1-ρ) e^(-D/m))^k, however large the matrix is. Where one attribute
//! has few values, whole rows are set in clumps, and the rate of values that all occur is an upper
//! estimate: 0.38 where 0.23 was measured, with 10 sources of 1,000 pairs in 1,000 bytes.
//!
//! Reference: Wang, Yun, Wang, Wang, "CBFM: cutted Bloom filter matrix for multi-dimensional
//! membership query", Journal on Communications 37(3), 2016, 139-147, formulas (1) and (4).

mod cells;
mod plans;
mod rates;

pub use cells::{
    cells, cells_of_disjoint_cuts, combination_cells, largest_cartesian_size, largest_size,
    weighted_sizes,
};
pub use plans::{MatrixPlan, best_plan, cut_families, least_plan};
pub(crate) use rates::known_or;
pub use rates::{
    PartLoad, attribute_size, cmdbf_fpr, matrix_fpr, mdbf_fpr, rate_of_query, table_probes,
    uncut_fpr,
};

/// Most attributes of an element.
pub const MAX_ATTRIBUTES: usize = 16;

/// Returns whether a combination is stored: it contains no cut.
pub fn is_legal(combination: u32, cuts: &[u32]) -> bool {
    cuts.iter().all(|cut| combination & cut != *cut)
}

/// Returns the stored combinations L, including the empty one, in ascending order.
pub fn legal_combinations(attributes: usize, cuts: &[u32]) -> Vec<u32> {
    (0..1 << attributes).filter(|&combination| is_legal(combination, cuts)).collect()
}

/// Returns the legal subsets of `query` that no other legal subset of it contains, in ascending
/// order.
///
/// They suffice to answer it: a set cell of a combination implies the cells of its subsets under
/// the same hash function. For disjoint cuts of rᵢ attributes there are Π rᵢ of them, which can be
/// more than d: two cuts of 2 and 3 of five attributes make 6.
pub fn maximal_legal_subsets(query: u32, cuts: &[u32]) -> Vec<u32> {
    let grows = |subset: u32| {
        (0..u32::BITS).any(|attribute| {
            let one = 1 << attribute;
            query & one != 0 && subset & one == 0 && is_legal(subset | one, cuts)
        })
    };
    let mut maximal: Vec<u32> =
        subsets(query).filter(|&subset| is_legal(subset, cuts) && !grows(subset)).collect();
    maximal.sort_unstable();
    maximal
}

/// Iterates over all subsets of `set`, including itself and the empty one.
fn subsets(set: u32) -> impl Iterator<Item = u32> {
    let mut next = Some(set);
    std::iter::from_fn(move || {
        let subset = next?;
        next = subset.checked_sub(1).map(|less| less & set);
        Some(subset)
    })
}

/// Returns the mask of all attributes.
pub(crate) const fn all_of(attributes: usize) -> u32 {
    ((1_u64 << attributes) - 1) as u32
}

/// Iterates over the attributes in `combination` in ascending order.
pub(super) fn members(combination: u32) -> impl Iterator<Item = usize> {
    let mut left = combination;
    std::iter::from_fn(move || {
        let attribute = (left != 0).then(|| left.trailing_zeros() as usize)?;
        left &= left - 1;
        Some(attribute)
    })
}

#[cfg(test)]
mod tests;
