//! The bit matrix with a flag position for each attribute, of which BFM, CBFM and WCBFM are cases.
//!
//! # Memory
//!
//! ```text
//!     attribute 2                       one function, element (a₁, a₂): h₁(a₁) = 2, h₂(a₂) = 1
//!        null │ ●   ·   ·   ●   ·
//!           0 │ ·   ·   ·   ·   ·       ● set: (null, null), (2, null), (null, 1) and (2, 1)
//!           1 │ ●   ·   ·   ●   ·
//!           2 │ ·   ·   ·   ·   ·
//!             └──────────────────
//!              null 0   1   2   3  attribute 1
//! ```
//!
//! Combinations that contain a cut have no cells. The cells of the others, L, are numbered without
//! gaps from 0 to M - 1 by an [`IndexMap`]. The cell of the empty combination is set by the first
//! insertion.
//!
//! # Operations
//!
//! 1. insert: each attribute has its own k hash functions. For each of the k, set the cells of
//!    all combinations in L, with null for the attributes that a combination leaves out. The
//!    element was new if any cell was clear.
//! 2. query with the attributes Q: for each maximal legal subset of Q and each of the k functions,
//!    look at the cell. Smaller subsets need no look: a set cell implies those of its subsets. If Q
//!    is itself in L, it is the only such subset, and the answer is
//!    [`super::PatternAnswer::Present`]. Otherwise several sub-combinations say yes, which may have
//!    occurred in different elements: the answer is [`super::PatternAnswer::PresentApart`].
//!
//! Both compute the k indices of an attribute once. A query looks at the first function's cells of
//! all maximal subsets, largest first, then at the second's, so that the first look rejects most
//! absent elements. The maximal subsets of every Q are stored for up to 8 attributes. A batch of
//! queries looks at one cell of each of its elements, then at the next cell of those that are left
//! (`batch.rs`). An insert is such a query and sets all cells if the answer is no. So a query or a
//! repeat costs O(k) for each maximal subset, and a new element O(k |L|); none allocates.
//!
//! # The cell of a combination
//!
//! Both index maps are linear in the indices xᵢ of the attributes, so one multiplication leads from
//! the cell of S without one attribute a to that of S: `cell(S) = cell(S \ a) + constant + x_a ·
//! stride`, with the constants and strides in a table.
//!
//! | map | a | constant | stride |
//! |---|---|---|---|
//! | [`IndexMap::Offset`] | the highest in S | base(S) - base(S \ a) | Π mᵢ over S \ a |
//! | [`IndexMap::Rank`] | the lowest in S | W(S \ a, a) | W(S, a) |
//!
//! base(S) is the number of cells of the combinations with smaller masks; W(A, a) is the number of
//! legal ways to choose the attributes below a when those from a on are A.
//!
//! # Distinct elements
//!
//! Single attributes have an unbiased count: a new value's k cells are uniform in any state, so it
//! is called a repeat with p = (share of set cells among those of the attribute alone)^k.
//!
//! Two and more attributes have **none**. The cell of (a₁, a₂) is fixed by the indices of a₁ and of
//! a₂. If both values occurred before, *nothing is left to chance*: a new pair of them is called a
//! repeat with probability 0 or 1, and if it is 1, no weight 1/(1-p) makes up for it. An average p,
//! such as (share of set cells)^k, is right for evenly spread values only: a host with D partners
//! has filled 1 - e^(-D/m) of its k rows, its next partner is lost with that to the power k, and
//! the sum is too low by 2 to 50 percent on traffic. So [`MembershipFilter::distinct`] is `None`,
//! except for elements of one attribute, for which the matrix is a standard filter.
//!
//! Every stored combination has a raw count ([`MultiAttributeFilter::first_of`]) of the insertions
//! that set a new cell of it. It never counts a value twice and misses those that the filter takes
//! for repeats, so it is a lower bound, though it may be a poor one.
//!
//! # Limits
//!
//! Elements cannot be removed, and counts are biased. Skew costs exactness: a value that occurs
//! with m others saturates its rows for every later element with that value, at any size of the
//! matrix ([`super::matrix_sizing`]).
//!
//! # Example
//!
//! ```
//! use flowsieve_filters::hashing::Digester;
//! use flowsieve_filters::{ElementDigests, MatrixFilter, MatrixSpec, MembershipFilter, MultiAttributeFilter, Pattern, PatternAnswer};
//!
//! let hasher = Digester::new(0);
//! let flow = |parts: [&str; 3]| parts.map(|part| hasher.digest(part.as_bytes()));
//! let mut filter = MatrixFilter::new(&MatrixSpec::cbfm(3, 60, &[0b110], 3))?;
//! filter.insert(ElementDigests::of_attributes(&flow(["a", "b", "53"])));
//! let [a, b, port] = flow(["a", "b", "53"]);
//! // Stored: all single attributes, and the pairs with the first one.
//! let pattern = Pattern { whole: None, attributes: &[Some(a), None, Some(port)] };
//! assert_eq!(filter.contains_where(pattern), PatternAnswer::Present);
//! # let _ = b;
//! # Ok::<(), flowsieve_filters::SpecError>(())
//! ```
//!
//! Reference: Wang, Yun, Wang, Wang, "CBFM: cutted Bloom filter matrix for multi-dimensional
//! membership query", Journal on Communications 37(3), 2016, 139-147, sections 3 and 4.

mod batch;
mod insert;
mod layout;
mod query;
mod spec;
mod state;

use self::insert::Rows;
use self::layout::{Layout, Step};
pub use self::spec::{IndexMap, MAX_COMBINATIONS, MatrixSpec};
pub(crate) use self::spec::{check_attributes, matrix_of, usual_elements};
use super::{
    DigestColumns, DistinctCounter, ElementDigests, Estimate, FilterStats, MembershipFilter,
    MultiAttributeFilter, Sighting, SpecError,
};
use crate::bits::BitArray;
use crate::bloom::ones_before;
use crate::hashing::{Digest, Probes};
use crate::matrix_sizing::all_of;
use crate::spec::Parameters;

/// Bit matrix with flag positions, with any family of cuts and any sizes.
/// See [`MatrixSpec::bfm`], [`MatrixSpec::cbfm`] and [`MatrixSpec::wcbfm`].
#[derive(Clone, Debug)]
pub struct MatrixFilter {
    sizes: Vec<u64>,
    probes: u32,
    layout: Layout,
    bits: BitArray,
    /// Set cells and count of each attribute alone.
    singles: Vec<Single>,
    /// Insertions that set a new cell of each stored combination.
    firsts: Vec<u64>,
    /// Whether it is a union, for which it is unknown how many of the other's values were new.
    united: bool,
    scratch: Scratch,
    rows: Rows,
}

#[derive(Clone, Debug, Default)]
struct Single {
    ones: u64,
    /// New cells set by the value that is being inserted.
    fresh: u64,
    counter: DistinctCounter,
}

/// Memory of an insert, kept so that none has to be allocated.
#[derive(Clone, Debug)]
struct Scratch {
    /// The k indices of each attribute, attribute by attribute.
    indices: Vec<u64>,
    /// The k cells of each combination, combination by combination.
    cells: Vec<u64>,
}

impl MatrixFilter {
    /// Creates an empty matrix.
    ///
    /// # Errors
    ///
    /// The first rule of [`FilterSpec::check`](crate::FilterSpec::check) that is broken.
    pub fn new(spec: &MatrixSpec) -> Result<Self, SpecError> {
        spec.check()?;
        let layout = Layout::new(&spec.sizes, &spec.cuts, spec.index_map);
        let attributes = spec.sizes.len();
        let probes = spec.probes as usize;
        Ok(Self {
            bits: BitArray::new(layout.cells),
            scratch: Scratch {
                indices: vec![0; attributes * probes],
                cells: vec![0; layout.steps.len() * probes],
            },
            rows: Rows::new(attributes, probes, layout.steps.len()),
            firsts: vec![0; layout.steps.len()],
            united: false,
            layout,
            sizes: spec.sizes.clone(),
            probes: spec.probes,
            singles: vec![Single::default(); attributes],
        })
    }

    /// [`is_full`] for the combination at this place.
    fn is_full(&self, place: usize) -> bool {
        is_full(&self.layout.steps[place], &self.singles, &self.sizes)
    }

    /// Sets the cells of all combinations.
    fn set_all(&mut self, attributes: &[Digest]) {
        let probes = self.probes as usize;
        let Scratch { indices, cells } = &mut self.scratch;
        for (attribute, (of_one, &digest)) in
            indices.chunks_exact_mut(probes).zip(attributes).enumerate()
        {
            let functions = indices_of(&self.sizes, self.probes, attribute, digest);
            for (place, index) in of_one.iter_mut().zip(functions) {
                *place = index;
            }
        }
        self.firsts[0] += u64::from(self.bits.set(0));
        for (place, step) in self.layout.steps.iter().enumerate().skip(1) {
            let is_full = is_full(step, &self.singles, &self.sizes);
            let (before, own) = cells.split_at_mut(place * probes);
            let parents = &before[step.parent * probes..][..probes];
            let of_one = &indices[step.attribute * probes..][..probes];
            let mut fresh = 0;
            for ((cell, parent), index) in own.iter_mut().zip(parents).zip(of_one) {
                *cell = parent + step.constant + index * step.stride;
                if !is_full {
                    fresh += u64::from(self.bits.set(*cell));
                }
            }
            self.firsts[place] += fresh.min(1);
            if step.parent == 0 {
                self.singles[step.attribute].fresh = fresh;
            }
        }
    }
}

impl Single {
    /// Returns the count of the values.
    fn estimate(&self, size: u64, probes: u32) -> Estimate {
        self.counter.estimate(|| repeat_probability(self.ones, size, probes))
    }

    /// Records a value, which has set [`Single::fresh`] new cells.
    fn record(&mut self, size: u64, probes: u32) {
        let ones = self.ones;
        let sighting = Sighting::of_fresh(self.fresh);
        self.counter.record(sighting, || repeat_probability(ones, size, probes));
        self.ones += self.fresh;
        self.fresh = 0;
    }

    /// Records the values of a batch, each with the number of new cells that it set.
    fn record_all(&mut self, fresh: &[u8], size: u64, probes: u32) {
        let before = ones_before(self.ones, fresh);
        let repeats = |number: usize| repeat_probability(before[number], size, probes);
        self.counter.record_all(fresh, repeats);
        self.ones += fresh.iter().map(|&fresh| u64::from(fresh)).sum::<u64>();
    }
}

/// Returns the probability that a new value of an attribute sets no new cell, with `ones` of its
/// `size` cells set.
fn repeat_probability(ones: u64, size: u64, probes: u32) -> f64 {
    (ones as f64 / size as f64).powi(probes as i32)
}

/// Returns whether all cells of a combination are known to be set, so that none has to be read or
/// written. This is only known of single attributes, whose cells fill up in a small matrix.
fn is_full(step: &Step, singles: &[Single], sizes: &[u64]) -> bool {
    let attribute = step.attribute;
    step.combination.is_power_of_two() && singles[attribute].ones == sizes[attribute]
}

/// Returns the indices of a value under the family of hash functions number 1 + attribute, as in an
/// MDBF: independent between attributes.
fn indices_of(sizes: &[u64], probes: u32, attribute: usize, digest: Digest) -> Probes {
    Probes::new(digest, 1 + attribute as u64, probes, sizes[attribute])
}

impl MembershipFilter for MatrixFilter {
    fn insert(&mut self, element: ElementDigests<'_>) -> Sighting {
        let sighting = if self.has_all(element.attributes) {
            // A set cell implies those of its subsets, so nothing is left to set.
            Sighting::Repeat
        } else {
            self.set_all(element.attributes);
            Sighting::First
        };
        for (single, &size) in self.singles.iter_mut().zip(&self.sizes) {
            single.record(size, self.probes);
        }
        sighting
    }

    fn insert_batch(&mut self, elements: DigestColumns<'_>, sightings: &mut Vec<Sighting>) {
        self.insert_all(elements, sightings);
    }

    fn contains(&self, element: ElementDigests<'_>) -> bool {
        self.has_all(element.attributes)
    }

    fn contains_batch(&self, elements: DigestColumns<'_>, answers: &mut Vec<bool>) {
        self.have_all(
            all_of(self.sizes.len()),
            self.layout.maximal_of_all(),
            elements.attributes,
            answers,
        );
    }

    fn clear(&mut self) {
        self.bits.clear();
        self.singles.fill_with(Single::default);
        self.firsts.fill(0);
        self.united = false;
    }

    fn stats(&self) -> FilterStats {
        FilterStats::of_bits([&self.bits])
    }

    fn distinct(&self) -> Option<Estimate> {
        match self.singles.as_slice() {
            [_] => self.distinct_of(1),
            _ => None,
        }
    }

    fn as_multi_attribute(&self) -> Option<&dyn MultiAttributeFilter> {
        Some(self)
    }
}

#[cfg(test)]
impl MatrixFilter {
    /// Returns the whole array, to compare matrices bit for bit.
    pub(super) fn bits(&self) -> &BitArray {
        &self.bits
    }

    /// Returns the count of the values of each attribute.
    pub(super) fn distinct_of_all(&self) -> Vec<Option<Estimate>> {
        (0..self.sizes.len()).map(|attribute| self.distinct_of(1 << attribute)).collect()
    }
}

#[cfg(test)]
mod tests;
