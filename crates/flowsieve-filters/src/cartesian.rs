//! The Cartesian join of Bloom filters: a matrix of bits over the addresses of all attributes.
//!
//! # Memory
//!
//! ```text
//!     attribute 2
//!        0 │ ·  ·  ·  ·          m^d bits, one for each tuple of addresses; no flag positions
//!        1 │ ·  ·  ●  ·
//!        2 │ ·  ·  ·  ·          ● the cell of (a₁, a₂) with h(a₁) = 2, h(a₂) = 1
//!          └────────────
//!            0  1  2  3  attribute 1
//! ```
//!
//! # Operations
//!
//! 1. insert: each attribute has its own k hash functions; for each of the k, set the cell at
//!    the attributes' addresses. The element was new if any was clear.
//! 2. contains: the k cells are set.
//! 3. query with some attributes: for each function, traverse the cells with the given addresses
//!    until one is set. The answer equals that of the projection, the matrix of the given
//!    attributes alone.
//!
//! Insert and contains cost O(k); a query with q of d attributes up to O(k m^(d-q)).
//!
//! # Formulas
//!
//! The rate is f(m^q) = (1 - e^(-kn/m^q))^k for a query of q attributes
//! ([`super::matrix_sizing::uncut_fpr`]). With 2^27 bits, three attributes (m = 512), k = 6 and n =
//! 5 million it is 6.5·10⁻⁵ for three attributes, as for a standard filter of that memory, and 1
//! for two or one.
//!
//! # Distinct elements
//!
//! There is no count, except for elements of one attribute, where the join is a standard filter: as
//! in every matrix the cell of known values leaves nothing to chance ([`super::matrix`]).
//!
//! # Limits
//!
//! Elements cannot be removed, queries for some attributes are slow, and skew costs exactness, as
//! in every matrix.
//!
//! # Example
//!
//! ```
//! use flowsieve_filters::hashing::Digester;
//! use flowsieve_filters::{CartesianFilter, ElementDigests, MembershipFilter, MultiAttributeFilter, Pattern, PatternAnswer};
//!
//! let hasher = Digester::new(0);
//! let pair = |src: &str, dst: &str| [src, dst].map(|host| hasher.digest(host.as_bytes()));
//! let mut filter = CartesianFilter::new(2, 500, 4);
//! filter.insert(ElementDigests::of_attributes(&pair("a", "b")));
//! assert!(filter.contains(ElementDigests::of_attributes(&pair("a", "b"))));
//! let [_, b] = pair("a", "b");
//! let pattern = Pattern { whole: None, attributes: &[None, Some(b)] };
//! assert_eq!(filter.contains_where(pattern), PatternAnswer::Present);
//! ```
//!
//! Reference: Wang, Yun, Wang, Wang, "CBFM: cutted Bloom filter matrix for multi-dimensional
//! membership query", Journal on Communications 37(3), 2016, 139-147, section 2 and Fig. 7, as
//! "CBF".

use super::fill;
use super::matrix::{check_attributes, usual_elements};
use super::matrix_sizing::{MAX_ATTRIBUTES, all_of, members};
use super::matrix_sizing::{largest_cartesian_size, rate_of_query};
use super::saved::{FilterState, LoadError, StateReader, StateWriter, UnionError, same, saved};
use super::sizing::{MAX_PROBES, best_probes, rounded_bloom_bits};
use super::spec::{
    Descriptor, FilterKind, FilterSpec, MAX_BYTES, Parameters, Query, Reach, Shape, Sizing,
    SpecError, array_bits, check_probes,
};
use super::{
    DistinctCounter, ElementDigests, Estimate, FilterStats, MembershipFilter, MultiAttributeFilter,
    Pattern, PatternAnswer, Sighting,
};
use crate::bits::BitArray;
use crate::hashing::{Digest, Probes};
use std::io;

/// Cartesian join of Bloom filters.
#[derive(Clone, Debug)]
pub struct CartesianFilter {
    /// The cell at the addresses x₁, x₂, … is x₁ + x₂ m + x₃ m² + …
    bits: BitArray,
    /// m⁰, m¹, …, one for each attribute.
    strides: Vec<u64>,
    size: u64,
    probes: u32,
    counter: DistinctCounter,
}

/// Parameters of a [`CartesianFilter`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CartesianSpec {
    /// Number of attributes (d).
    pub attributes: usize,
    /// Addresses of each attribute (m).
    pub size: u64,
    /// Hash functions (k).
    pub probes: u32,
}

pub(crate) const CARTESIAN: Descriptor = Descriptor {
    name: "cartesian",
    summary: "Matrix of the Cartesian join (Wang et al. 2016)",
    reach: Reach::Matrix { cuts: false, weights: false },
    ignores_repeats: true,
    size: |attributes, sizing| {
        array_bits(FilterKind::Cartesian, 1, sizing)?;
        check_attributes(attributes)?;
        let (size, cells, elements) = match sizing {
            Sizing::Memory { bytes, expected } => {
                let cells = bytes * 8;
                let size = largest_cartesian_size(attributes, cells.into());
                let used = (size as f64).powi(attributes as i32);
                (size, used, usual_elements(cells, expected))
            }
            Sizing::Rate { fpr, expected } => {
                let elements = expected as f64;
                let cells = rounded_bloom_bits(fpr, elements) as f64;
                let size = cells.powf(1.0 / attributes as f64).ceil() as u64;
                (size, cells, elements)
            }
        };
        Ok(CartesianSpec {
            attributes,
            size,
            probes: best_probes(cells, elements, MAX_PROBES as u32),
        }
        .into())
    },
    search: None,
};

saved!(CartesianSpec { attributes, size, probes });

impl Parameters for CartesianSpec {
    fn check(&self) -> Result<(), SpecError> {
        check_probes(self.probes, MAX_PROBES as u32)?;
        check_attributes(self.attributes)?;
        let (size, attributes) = (self.size, self.attributes);
        let cells = size.checked_pow(attributes as u32);
        if cells.is_none_or(|cells| cells == 0 || cells > MAX_BYTES * 8) {
            return Err(SpecError::new(format!(
                "a Cartesian join has from 1 to 2^43 cells (m^d), which {size} addresses for each of {attributes} attributes do not make; 2 works"
            )));
        }
        Ok(())
    }

    fn memory_bytes(&self) -> u64 {
        self.size.saturating_pow(self.attributes as u32).div_ceil(8)
    }

    fn with_probes(&self, probes: u32) -> Option<FilterSpec> {
        Some(Self { probes, ..*self }.into())
    }

    fn attributes(&self) -> Option<usize> {
        Some(self.attributes)
    }

    fn counts_distinct(&self) -> bool {
        // With more attributes the cell of known values leaves nothing to chance.
        self.attributes == 1
    }

    fn build(&self) -> Box<dyn MembershipFilter> {
        Box::new(CartesianFilter::new(self.attributes, self.size, self.probes))
    }

    fn rate(&self, query: &Query<'_>) -> Option<f64> {
        let sizes = vec![self.size as f64; self.attributes];
        Some(rate_of_query(&sizes, &[], self.probes, query))
    }

    fn shape(&self) -> Shape {
        Shape {
            cells: Some((self.size as f64).powi(self.attributes as i32)),
            ..Shape::new(self.probes, self.size, "values")
        }
    }

    fn describe(&self) -> String {
        let (size, attributes, k) = (self.size, self.attributes, self.probes);
        format!("m = {size} addresses for each of {attributes} attributes, k = {k}")
    }
}

impl CartesianFilter {
    /// Creates a join of `attributes` (d, 1 to 16) with `size` (m ≥ 1) addresses each and `probes`
    /// (k) functions. m^d has to be at most 2^43, which [`super::FilterSpec::check`] checks.
    pub fn new(attributes: usize, size: u64, probes: u32) -> Self {
        let strides: Vec<u64> = (0..attributes as u32).map(|i| size.pow(i)).collect();
        Self {
            bits: BitArray::new(size.pow(attributes as u32)),
            strides,
            size,
            probes,
            counter: DistinctCounter::default(),
        }
    }

    /// Returns the probability that a new value is called a repeat in the present state, for
    /// elements of one attribute.
    fn repeat_probability(&self) -> f64 {
        self.bits.fill_ratio().powi(self.probes as i32)
    }

    /// Returns the cells at the addresses of these attributes, and address 0 of the others.
    fn cells(&self, digests: impl Iterator<Item = (usize, Digest)>) -> [u64; MAX_PROBES] {
        let mut cells = [0; MAX_PROBES];
        for (attribute, digest) in digests {
            let addresses = Probes::new(digest, 1 + attribute as u64, self.probes, self.size);
            for (cell, address) in cells.iter_mut().zip(addresses) {
                *cell += address * self.strides[attribute];
            }
        }
        cells
    }

    fn cells_of(&self, element: ElementDigests<'_>) -> [u64; MAX_PROBES] {
        self.cells(element.attributes.iter().copied().enumerate())
    }

    /// Returns whether any cell is set that differs from `cell` only in the addresses of the `open`
    /// attributes.
    fn any_set(&self, cell: u64, open: &[usize]) -> bool {
        let mut addresses = [0; MAX_ATTRIBUTES];
        let mut cell = cell;
        loop {
            if self.bits.get(cell) {
                return true;
            }
            // Increment in base m: carry on until an address does not wrap around.
            let grown = open.iter().zip(&mut addresses).any(|(&attribute, address)| {
                *address += 1;
                cell += self.strides[attribute];
                let wraps = *address == self.size;
                if wraps {
                    cell -= self.size * self.strides[attribute];
                    *address = 0;
                }
                !wraps
            });
            if !grown {
                return false;
            }
        }
    }
}

impl MembershipFilter for CartesianFilter {
    fn insert(&mut self, element: ElementDigests<'_>) -> Sighting {
        let repeat_probability = self.repeat_probability();
        let cells = self.cells_of(element);
        let mut fresh = 0;
        for &cell in &cells[..self.probes as usize] {
            fresh += u64::from(self.bits.set(cell));
        }
        let sighting = Sighting::of_fresh(fresh);
        if self.strides.len() == 1 {
            self.counter.record(sighting, || repeat_probability);
        }
        sighting
    }

    fn contains(&self, element: ElementDigests<'_>) -> bool {
        let cells = self.cells_of(element);
        cells[..self.probes as usize].iter().all(|&cell| self.bits.get(cell))
    }

    fn clear(&mut self) {
        self.bits.clear();
        self.counter = DistinctCounter::default();
    }

    fn stats(&self) -> FilterStats {
        FilterStats::of_bits([&self.bits])
    }

    fn distinct(&self) -> Option<Estimate> {
        if self.strides.len() > 1 {
            return None;
        }
        Some(self.counter.estimate(|| self.repeat_probability()))
    }

    fn as_multi_attribute(&self) -> Option<&dyn MultiAttributeFilter> {
        Some(self)
    }
}

impl FilterState for CartesianFilter {
    fn save_state(&self, state: &mut StateWriter<'_>) -> io::Result<()> {
        state.distinct(Some(&self.counter))?;
        state.bits(&self.bits)
    }

    fn load_state(&mut self, state: &mut StateReader<'_>) -> Result<(), LoadError> {
        self.counter = state.lasting_distinct()?;
        state.bits(&mut self.bits)
    }

    fn unite(&mut self, other: &dyn FilterState) -> Result<(), UnionError> {
        let other: &Self = same(other)?;
        let of_both = [self.distinct(), other.distinct()];
        self.bits.unite(&other.bits);
        let fill = fill::independent(self.bits.ones(), self.bits.len() as f64, self.probes);
        self.counter.unite(&other.counter, of_both, fill);
        Ok(())
    }
}

impl MultiAttributeFilter for CartesianFilter {
    fn contains_where(&self, pattern: Pattern<'_>) -> PatternAnswer {
        let open = all_of(self.strides.len()) & !pattern.mask();
        let open: Vec<usize> = members(open).collect();
        let given = pattern.attributes.iter().enumerate();
        let cells = self.cells(given.filter_map(|(attribute, it)| Some((attribute, (*it)?))));
        let mut cells = cells[..self.probes as usize].iter();
        PatternAnswer::from(cells.all(|&cell| self.any_set(cell, &open)))
    }

    fn distinct_of(&self, mask: u32) -> Option<Estimate> {
        if mask == 1 { self.distinct() } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hashing::Digester;
    use crate::matrix_sizing::uncut_fpr;
    use proptest::prelude::*;
    use std::collections::HashSet;

    #[test]
    fn worked_rates() {
        assert!((uncut_fpr(512.0, 6, 5e6, 3) / 6.5e-5 - 1.0).abs() < 0.01);
        assert!(uncut_fpr(512.0, 6, 5e6, 2) > 0.999_999);
        assert!(uncut_fpr(512.0, 6, 5e6, 1) > 0.999_999);
    }

    fn digests(attributes: usize, number: u64) -> Vec<Digest> {
        (0..attributes as u64)
            .map(|i| Digester::new(i).digest(&(number >> (4 * i) & 15).to_le_bytes()))
            .collect()
    }

    proptest! {
        /// The traversal gives the answers of a set of the projected addresses, function by
        /// function.
        #[test]
        fn a_partial_query_sees_the_projection(
            attributes in 1_usize..5,
            size in 1_u64..7,
            probes in 1_u32..4,
            numbers in prop::collection::vec(any::<u64>(), 0..12),
            asked in prop::collection::vec((any::<u64>(), any::<u32>()), 20),
        ) {
            let mut filter = CartesianFilter::new(attributes, size, probes);
            // The addresses of the attributes of each element under each function. All functions
            // write into one matrix, so they are looked up together.
            let addresses = |digests: &[Digest]| -> Vec<Vec<u64>> {
                let of_each: Vec<Vec<u64>> = digests
                    .iter()
                    .enumerate()
                    .map(|(i, &d)| Probes::new(d, 1 + i as u64, probes, size).collect())
                    .collect();
                (0..probes as usize)
                    .map(|j| of_each.iter().map(|of| of[j]).collect())
                    .collect()
            };
            let mut set = HashSet::new();
            for &number in &numbers {
                let digests = digests(attributes, number);
                let element = ElementDigests { whole: digests[0], attributes: &digests };
                let before = filter.contains(element);
                prop_assert_eq!(filter.insert(element) == Sighting::Repeat, before);
                set.extend(addresses(&digests));
            }
            let project = |addresses: &[u64], mask: u32| -> Vec<u64> {
                members(mask).map(|i| addresses[i]).collect()
            };
            let check = |number: u64, mask: u32| {
                let digests = digests(attributes, number);
                let pattern: Vec<Option<Digest>> = digests
                    .iter()
                    .enumerate()
                    .map(|(i, &d)| (mask >> i & 1 == 1).then_some(d))
                    .collect();
                let projection: HashSet<Vec<u64>> =
                    set.iter().map(|addresses| project(addresses, mask)).collect();
                let expected = addresses(&digests)
                    .iter()
                    .all(|addresses| projection.contains(&project(addresses, mask)));
                let answer = filter.contains_where(Pattern { whole: None, attributes: &pattern });
                (answer == PatternAnswer::Present, expected)
            };
            let all = (1 << attributes) - 1;
            for (number, mask) in asked {
                let (answer, expected) = check(number, mask & all);
                prop_assert_eq!(answer, expected);
            }
            for &number in &numbers {
                for mask in 0..=all {
                    prop_assert_eq!(check(number, mask), (true, true));
                }
            }
        }
    }

    #[test]
    fn elements_of_one_attribute_are_counted() {
        let mut filter = CartesianFilter::new(1, 8000, 4);
        for i in 0..1000_u64 {
            let digest = Digester::new(0).digest(&i.to_le_bytes());
            filter.insert(ElementDigests { whole: digest, attributes: &[digest] });
        }
        let estimate = filter.distinct_of(1).unwrap();
        assert!((estimate.distinct - 1000.0).abs() < 4.0 * estimate.std_error() + 1.0);
        assert_eq!(CartesianFilter::new(2, 9, 4).distinct(), None);
    }
}
