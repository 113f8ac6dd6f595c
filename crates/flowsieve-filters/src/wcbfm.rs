//! WCBFM, the weighted CBFM: each attribute has its own size.
//!
//! # Memory
//!
//! ```text
//!     weights w₁ … w_d ──► sizes mᵢ ∝ wᵢ, as large as M cells allow
//!     cells of a combination S: Π_{i ∈ S} mᵢ instead of m^|S|
//! ```
//!
//! # Operations
//!
//! Those of the CBFM; with equal weights it *is* the CBFM, bit for bit ([`super::matrix`]).
//!
//! # Formulas
//!
//! A query answered by one combination T is a false positive with f(Π_{i ∈ T} mᵢ)
//! ([`super::matrix_sizing::matrix_fpr`]). With the cut {1,2} the blocks {1,3} and {2,3} share M as
//! x : 1-x; for M = 2^27, k = 6 and 5 million elements:
//!
//! | x | f({1,3}) | f({2,3}) | all three attributes |
//! |---|---|---|---|
//! | 0.5 | 0.0022 | 0.0022 | 4.8·10⁻⁶ |
//! | 0.9 | 0.000113 | 0.51 | 5.7·10⁻⁵ |
//!
//! So a weight lowers the rate of one pair at the cost of another, and equal weights are best for
//! the full query until the matrix is overloaded. (In the paper's Fig. 9 both pairs improve
//! together; by its own formula 1 that happens for no n.)
//!
//! # Distinct elements and limits
//!
//! As in every matrix ([`super::matrix`]).
//!
//! # Example
//!
//! ```
//! use flowsieve_filters::hashing::Digester;
//! use flowsieve_filters::{ElementDigests, MatrixFilter, MatrixSpec, MembershipFilter, MultiAttributeFilter, Pattern, PatternAnswer};
//!
//! let hasher = Digester::new(0);
//! let flow = |parts: [&str; 3]| parts.map(|part| hasher.digest(part.as_bytes()));
//! // The second attribute gets four times the places of the others, without cuts.
//! let mut filter = MatrixFilter::new(&MatrixSpec::wcbfm(&[1.0, 4.0, 1.0], &[], 3, 100_000)?)?;
//! filter.insert(ElementDigests::of_attributes(&flow(["a", "b", "53"])));
//! let [a, b, port] = flow(["a", "b", "53"]);
//! let pattern = Pattern { whole: None, attributes: &[Some(a), None, Some(port)] };
//! assert_eq!(filter.contains_where(pattern), PatternAnswer::Present);
//! # let _ = b;
//! # Ok::<(), flowsieve_filters::SpecError>(())
//! ```
//!
//! Reference: Wang, Yun, Wang, Wang, "CBFM: cutted Bloom filter matrix for multi-dimensional
//! membership query", Journal on Communications 37(3), 2016, 139-147, section 4.4.

use super::matrix::{IndexMap, MatrixSpec, matrix_of};
use super::matrix_sizing::{self, cut_families, weighted_sizes};
use super::spec::{Descriptor, FilterKind, Parameters, Reach, SpecError};

pub(crate) const WCBFM: Descriptor = Descriptor {
    name: "wcbfm",
    summary: "Weighted CBFM (Wang et al. 2016)",
    reach: Reach::Matrix { cuts: true, weights: true },
    ignores_repeats: true,
    size: |attributes, sizing| matrix_of(FilterKind::Wcbfm, cut_families, attributes, sizing),
    search: None,
};

impl MatrixSpec {
    /// Returns a matrix of at most `cells` cells (M) with sizes in proportion to `weights`.
    ///
    /// # Errors
    ///
    /// Weights are negative or all 0, the memory is too small for one position an attribute, or
    /// [`FilterSpec::check`](crate::FilterSpec::check) finds an error.
    pub fn wcbfm(
        weights: &[f64],
        cuts: &[u32],
        probes: u32,
        cells: u64,
    ) -> Result<Self, SpecError> {
        if weights.iter().any(|&w| !(w.is_finite() && w >= 0.0))
            || weights.iter().sum::<f64>() <= 0.0
        {
            return Err(SpecError::new(format!(
                "the weights of the attributes are 0 or more and not all 0, not {weights:?}; 1 for each works"
            )));
        }
        let spec =
            |sizes| Self { sizes, cuts: cuts.to_vec(), probes, index_map: IndexMap::default() };
        // Check attributes and cuts before computing sizes for them.
        let least = spec(vec![1; weights.len()]);
        least.check()?;
        let sizes = weighted_sizes(weights, cuts, cells.into()).ok_or_else(|| {
            SpecError::new(format!(
                "a matrix with these cuts has at least {} cells (bits), not {cells}",
                matrix_sizing::cells(&least.sizes, cuts).unwrap_or_default()
            ))
        })?;
        let spec = spec(sizes);
        spec.check()?;
        Ok(spec)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hashing::{Digest, Digester};
    use crate::sizing::bloom_fpr;
    use crate::{ElementDigests, MatrixFilter, MembershipFilter};
    use proptest::prelude::*;

    #[test]
    fn worked_rates() {
        let f = |share: f64| bloom_fpr(share * f64::from(1 << 27), 6, 5e6);
        for (share, one, other, full) in
            [(0.5, 0.002_194, 0.002_194, 4.814e-6), (0.9, 0.000_113_1, 0.5072, 5.737e-5)]
        {
            assert!((f(share) / one - 1.0).abs() < 0.001, "{}", f(share));
            assert!((f(1.0 - share) / other - 1.0).abs() < 0.001, "{}", f(1.0 - share));
            let both = f(share) * f(1.0 - share);
            assert!((both / full - 1.0).abs() < 0.001, "{both}");
        }
    }

    #[test]
    fn impossible_weights_and_memory_are_refused() {
        for (weights, cells, needle) in [
            (&[0.0; 3][..], 1 << 20, "not all 0"),
            (&[1.0, -1.0, 1.0], 1 << 20, "0 or more"),
            (&[1.0, f64::NAN, 1.0], 1 << 20, "0 or more"),
            (&[], 1 << 20, "not all 0"),
            (&[1.0; 3], 5, "at least 6 cells"),
            (&[1.0; 17], 1 << 20, "1 to 16 attributes"),
        ] {
            let error = MatrixSpec::wcbfm(weights, &[0b011], 4, cells).unwrap_err();
            assert!(error.to_string().contains(needle), "{error}");
        }
        assert!(MatrixSpec::wcbfm(&[1.0; 3], &[0b100], 4, 1 << 20).is_err());
        assert_eq!(MatrixSpec::wcbfm(&[1.0; 3], &[0b011], 4, 6).unwrap().sizes, [1, 1, 1]);
    }

    proptest! {
        #[test]
        fn equal_weights_are_the_cbfm_bit_for_bit(
            attributes in 1_usize..5,
            weight in 0.1_f64..9.0,
            cells in 100_u64..5000,
            elements in prop::collection::vec(any::<[u64; 4]>(), 0..40),
        ) {
            let cuts: &[u32] = if attributes > 2 { &[0b011, 0b110] } else { &[] };
            let weights = vec![weight; attributes];
            let spec = MatrixSpec::wcbfm(&weights, cuts, 3, cells).unwrap();
            let mut weighted = MatrixFilter::new(&spec).unwrap();
            let size = matrix_sizing::largest_size(attributes, cuts, cells.into());
            let mut plain = MatrixFilter::new(&MatrixSpec::cbfm(attributes, size, cuts, 3)).unwrap();
            for values in &elements {
                let digests: Vec<Digest> = values[..attributes]
                    .iter()
                    .map(|value| Digester::new(0).digest(&(value % 9).to_le_bytes()))
                    .collect();
                let element = ElementDigests { whole: digests[0], attributes: &digests };
                prop_assert_eq!(weighted.insert(element), plain.insert(element));
            }
            prop_assert_eq!(weighted.bits(), plain.bits());
            prop_assert_eq!(weighted.distinct_of_all(), plain.distinct_of_all());
        }
    }
}
