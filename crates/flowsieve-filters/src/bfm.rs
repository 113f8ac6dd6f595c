//! BFM, the Bloom filter matrix: every combination of attributes has a cell.
//!
//! # Memory
//!
//! ```text
//!     (m + 1)^d bits: m positions and a flag position (null) for each of the d attributes
//! ```
//!
//! # Operations
//!
//! - insert: for each of the k functions, set the cells of all 2^d combinations of attributes.
//! - query with the attributes Q: the k cells of Q are set.
//!
//! An insert costs O(2^d k), a query O(k) ([`super::matrix`]).
//!
//! # Formulas
//!
//! A query of q attributes is a false positive with f(m^q) = (1 - e^(-kn/m^q))^k ([formula
//! 1](super::matrix_sizing::uncut_fpr)): the fewer attributes, the worse. Memory for three
//! attributes if each alone has the rate ε with n = 1000 elements (m = n log2(e) log2(1/ε)):
//!
//! | ε | m | memory |
//! |---|---|---|
//! | 0.1 | 4 792 | 13 GB |
//! | 0.01 | 9 585 | 105 GB |
//! | 0.001 | 14 377 | 354 GB |
//!
//! # Distinct elements and limits
//!
//! As every matrix it has no unbiased count of combinations of two or more attributes, and skewed
//! values saturate their rows ([`super::matrix`]).
//!
//! # Example
//!
//! ```
//! use flowsieve_filters::hashing::Digester;
//! use flowsieve_filters::{ElementDigests, MatrixFilter, MatrixSpec, MembershipFilter, MultiAttributeFilter, Pattern, PatternAnswer};
//!
//! let hasher = Digester::new(0);
//! let flow = |parts: [&str; 3]| parts.map(|part| hasher.digest(part.as_bytes()));
//! let mut filter = MatrixFilter::new(&MatrixSpec::bfm(3, 40, 3))?;
//! filter.insert(ElementDigests::of_attributes(&flow(["a", "b", "53"])));
//! let [a, b, port] = flow(["a", "b", "53"]);
//! // Every combination of attributes has its own cells.
//! let pattern = Pattern { whole: None, attributes: &[Some(a), None, Some(port)] };
//! assert_eq!(filter.contains_where(pattern), PatternAnswer::Present);
//! # let _ = b;
//! # Ok::<(), flowsieve_filters::SpecError>(())
//! ```
//!
//! Reference: Wang, Yun, Wang, Wang, "CBFM: cutted Bloom filter matrix for multi-dimensional
//! membership query", Journal on Communications 37(3), 2016, 139-147, section 3, which takes the
//! matrix from earlier work.

use super::matrix::{MatrixSpec, matrix_of};
use super::spec::{Descriptor, FilterKind, Reach};

pub(crate) const BFM: Descriptor = Descriptor {
    name: "bfm",
    summary: "Bloom filter matrix (Wang et al. 2016)",
    reach: Reach::Matrix { cuts: false, weights: false },
    ignores_repeats: true,
    size: |attributes, sizing| matrix_of(FilterKind::Bfm, |_| vec![Vec::new()], attributes, sizing),
    search: None,
};

impl MatrixSpec {
    /// Returns a matrix without cuts: `size` (m) positions for each attribute, `probes` (k)
    /// functions.
    pub fn bfm(attributes: usize, size: u64, probes: u32) -> Self {
        Self::cbfm(attributes, size, &[], probes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hashing::Digester;
    use crate::{ElementDigests, MatrixFilter, MembershipFilter, Sighting};

    #[test]
    fn worked_sizes() {
        for (size, gigabytes) in [(4_792, 13), (9_585, 105), (14_377, 354)] {
            let bits = MatrixSpec::bfm(3, size, 3).cells().unwrap() as f64;
            // The paper's megabytes, 2^23 bits.
            assert_eq!((bits / 8_388_608.0 / 1000.0) as u32, gigabytes);
        }
    }

    /// With one source of D destinations, its next pair is a false positive with
    /// (1 - (1 - ρ) e^(-D/m))^k, which is 0.24 at D = m = 312, where formula (1) gives 0.0015.
    #[test]
    fn one_busy_host_fills_its_rows() {
        let (size, probes) = (312_u64, 4);
        let mut filter = MatrixFilter::new(&MatrixSpec::bfm(2, size, probes)).unwrap();
        let value = |n: u64| Digester::new(0).digest(&n.to_le_bytes());
        let mut insert = |source: u64, destination: u64| {
            filter.insert(ElementDigests {
                whole: value(0),
                attributes: &[value(source), value(destination)],
            })
        };
        for i in 0..5_000 {
            insert(1_000_000 + i, 2_000_000 + i);
        }
        let mut repeats = 0_u32;
        for i in 0..1248 {
            let lost = insert(7, 3_000_000 + i) == Sighting::Repeat;
            repeats += u32::from(lost);
        }
        // Mean of (1 - (1 - ρ) e^(-i/m))^k over i up to 4 m, with ρ = 1 - e^(-k · 5000 / m²).
        let clear = (-(5000.0 * f64::from(probes)) / (size * size) as f64).exp();
        let expected: f64 =
            (0..1248).map(|i| (1.0 - clear * (-f64::from(i) / size as f64).exp()).powi(4)).sum();
        let error = f64::from(repeats) - expected;
        assert!(error.abs() < 120.0, "{repeats} lost, {expected:.0} expected");
        assert!(expected > 500.0);
    }
}
