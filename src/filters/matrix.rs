//! The bit matrix with a flag position for each attribute: what BFM, CBFM and WCBFM are made of.
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
//! Cells of combinations that contain a cut do not exist; those of the others, L, are numbered
//! without gaps from 0 to M - 1 by an [`IndexMap`]. The cell of the empty combination says whether
//! anything was inserted at all.
//!
//! # Operations
//!
//! 1. insert: each attribute has k hash functions of its own. For each of the k, set the cells of all
//!    combinations in L, with null for the attributes that a combination leaves out. The element was
//!    new if any cell was clear.
//! 2. query with the attributes Q: for each maximal legal subset of Q and each of the k functions,
//!    look at the cell. Smaller subsets need no look: a set cell implies those of its subsets. If Q is
//!    itself in L there is one such subset and the answer is [`PatternAnswer::Present`]; if several
//!    sub-combinations say yes it is [`PatternAnswer::PresentApart`], since they may have occurred in
//!    different elements.
//!
//! Both compute the k indices of an attribute once. A query looks at the first function's cells of all
//! maximal subsets, largest first, then at the second's, so that most elements that are not there are
//! rejected by the first look; the maximal subsets are kept for every Q of up to 8 attributes. An
//! insert is such a query, and if that says no (it is new) sets all cells. So a query, and a repeat,
//! cost O(k) a maximal subset, a new element O(k |L|); none allocates.
//!
//! # The cell of a combination
//!
//! Both index maps are linear in the indices xᵢ of the attributes, so that the cell of S comes from
//! that of S without one attribute a by one multiplication: `cell(S) = cell(S \ a) + constant + x_a
//! · stride`, with the constants and strides in a table.
//!
//! | map | a | constant | stride |
//! |---|---|---|---|
//! | [`IndexMap::Offset`] | the highest in S | base(S) - base(S \ a) | Π mᵢ over S \ a |
//! | [`IndexMap::Rank`] | the lowest in S | W(S \ a, a) | W(S, a) |
//!
//! base(S) is the number of cells of the combinations whose mask is a smaller number; W(A, a) the
//! number of legal ways to choose the attributes below a when those from a on are A.
//!
//! # Distinct elements
//!
//! For single attributes there is an unbiased count: a new value's k cells are uniform whatever the
//! state, so it is called a repeat with p = (share of set cells among those of the attribute alone)^k.
//!
//! For two and more attributes there is **none**. The cell of (a₁, a₂) is fixed by the indices of a₁
//! and of a₂. If both values occurred before, given everything that happened so far *nothing is left
//! to chance*: a new pair of them is called a repeat with probability 0 or 1, and where it is 1 no
//! weight 1/(1-p) makes up for it. An average p, as (share of set cells)^k, is right for evenly
//! spread values only: a host with D partners has filled 1 - e^(-D/m) of its k rows, its next
//! partner is lost with that to the power k, and the sum stays too low by 2 to 50 percent on traffic.
//! So [`MembershipFilter::distinct`] is `None` except for elements of one attribute, for which the
//! matrix is a standard filter.
//!
//! What there is for every stored combination is the raw count ([`MultiAttributeFilter::first_of`]): of
//! the insertions that set a new cell of it. It never counts a value twice and misses those that the
//! filter takes for repeats, so it is a lower bound, of any quality.
//!
//! # What it cannot do
//!
//! Remove; count without bias; bear skew: one value that occurs with m others saturates its rows, for every later
//! element with that value, at any size of the matrix ([`super::matrix_sizing`]).
//!
//! Reference: Wang, Yun, Wang, Wang, "CBFM: cutted Bloom filter matrix for multi-dimensional
//! membership query", Journal on Communications 37(3), 2016, 139-147, sections 3 and 4.

use super::fill;
use super::matrix_sizing::{
    MAX_ATTRIBUTES, cells, combination_cells, is_legal, legal_combinations, members,
};
use super::saved::{FilterState, LoadError, StateReader, StateWriter, UnionError, same};
use super::sizing::MAX_PROBES;
use super::{
    ElementDigests, Estimate, FilterStats, HipCounter, MembershipFilter, MultiAttributeFilter,
    Pattern, PatternAnswer, Sighting, SpecError,
};
use crate::bits::BitArray;
use crate::hashing::{Digest, Probes};
use std::io;

/// Most combinations that a matrix stores: an insert sets k cells of each.
pub const MAX_COMBINATIONS: usize = 4096;

/// Most cells: 2^40 bytes.
const MAX_CELLS: u128 = 1 << 43;

/// How the cells of a matrix are numbered; both ways are bijections onto `0..M`.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum IndexMap {
    /// Combination after combination, in the order of their masks; within one, attribute 1 fastest.
    #[default]
    Offset,
    /// The paper's: the rank of the tuple among the legal ones when they are sorted by attribute d,
    /// then d - 1, …, then 1, null first.
    Rank,
}

/// Parameters of a matrix.
#[derive(Clone, Debug, PartialEq)]
pub struct MatrixSpec {
    /// Size of each attribute (mᵢ), without its flag position.
    pub sizes: Vec<u64>,
    /// The cuts, as masks; they may overlap. A cut removes its supersets too.
    pub cuts: Vec<u32>,
    /// Hash functions (k).
    pub probes: u32,
    /// How the cells are numbered.
    pub index_map: IndexMap,
}

impl MatrixSpec {
    /// Checks the rules of the structure.
    ///
    /// # Errors
    ///
    /// The first rule that is broken, and a value that works.
    pub fn check(&self) -> Result<(), SpecError> {
        let attributes = self.sizes.len();
        if attributes == 0 || attributes > MAX_ATTRIBUTES {
            return Err(SpecError::new(format!(
                "a matrix is for 1 to {MAX_ATTRIBUTES} attributes, not {attributes}; 3 works"
            )));
        }
        if self.probes == 0 || self.probes > MAX_PROBES as u32 {
            return Err(SpecError::new(format!(
                "a matrix has 1 to {MAX_PROBES} hash functions, not {}; 4 works",
                self.probes
            )));
        }
        if self.sizes.contains(&0) {
            return Err(SpecError::new(
                "every attribute of a matrix has a size of at least 1, not 0; 1 works",
            ));
        }
        for &cut in &self.cuts {
            if cut.count_ones() < 2 {
                return Err(SpecError::new(format!(
                    "a cut is a set of at least two attributes, since no query could ask for an attribute that is cut alone, not {cut:#b}; 0b11 works"
                )));
            }
            if u64::from(cut) >> attributes != 0 {
                return Err(SpecError::new(format!(
                    "a cut is a set of the {attributes} attributes, not {cut:#b}; 0b11 works"
                )));
            }
        }
        let combinations = (0..1_u32 << attributes)
            .filter(|&combination| is_legal(combination, &self.cuts))
            .count();
        if combinations > MAX_COMBINATIONS {
            return Err(SpecError::new(format!(
                "a matrix stores at most {MAX_COMBINATIONS} combinations of attributes, not {combinations}; cut more (cutting the pairs works)"
            )));
        }
        match cells(&self.sizes, &self.cuts) {
            Some(cells) if cells <= MAX_CELLS => Ok(()),
            cells => Err(SpecError::new(format!(
                "a matrix has at most 2^43 cells (1 TiB), not {}; ask for smaller sizes or cut more",
                cells.map_or("more than 2^128".into(), |cells| cells.to_string())
            ))),
        }
    }

    /// Cells of the matrix (M); `None` beyond 2^64, which [`MatrixSpec::check`] refuses.
    pub fn cells(&self) -> Option<u64> {
        cells(&self.sizes, &self.cuts)?.try_into().ok()
    }
}

/// Bit matrix with flag positions, with any family of cuts and any sizes.
///
/// Made by [`MatrixFilter::bfm`], [`MatrixFilter::cbfm`] and [`MatrixFilter::wcbfm`].
#[derive(Clone, Debug)]
pub struct MatrixFilter {
    sizes: Vec<u64>,
    probes: u32,
    layout: Layout,
    bits: BitArray,
    /// Set cells among those of each attribute alone, and the count of its values.
    singles: Vec<Single>,
    /// Insertions that set a new cell of each stored combination.
    firsts: Vec<u64>,
    /// After a union nobody knows how many of the other's were new here.
    united: bool,
    scratch: Scratch,
}

#[derive(Clone, Debug, Default)]
struct Single {
    ones: u64,
    counter: HipCounter,
}

/// Memory of an insert, kept so that none is allocated.
#[derive(Clone, Debug)]
struct Scratch {
    /// The k indices of each attribute, attribute by attribute.
    indices: Vec<u64>,
    /// The k cells of each combination, combination by combination.
    cells: Vec<u64>,
}

impl MatrixFilter {
    /// An empty matrix with these parameters.
    ///
    /// # Errors
    ///
    /// The first rule of [`MatrixSpec::check`] that is broken.
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
            firsts: vec![0; layout.steps.len()],
            united: false,
            layout,
            sizes: spec.sizes.clone(),
            probes: spec.probes,
            singles: vec![Single::default(); attributes],
        })
    }

    /// Whether all k cells of each of the combinations at `places` are set, given their attributes'
    /// digests; those of other attributes may be anything.
    #[inline]
    fn are_set(&self, places: &[u16], digest: impl Fn(usize) -> Digest) -> bool {
        match self.sizes.len() {
            1 => self.are_set_among::<1>(places, digest),
            2 => self.are_set_among::<2>(places, digest),
            3 => self.are_set_among::<3>(places, digest),
            4 => self.are_set_among::<4>(places, digest),
            5..=8 => self.are_set_among::<8>(places, digest),
            _ => self.are_set_among::<MAX_ATTRIBUTES>(places, digest),
        }
    }

    /// The same with room for MOST attributes, so that there is no more of it than is needed.
    fn are_set_among<const MOST: usize>(
        &self,
        places: &[u16],
        digest: impl Fn(usize) -> Digest,
    ) -> bool {
        let sizes = &self.sizes[..self.sizes.len().min(MOST)];
        let mut functions: [Probes; MOST] = std::array::from_fn(|attribute| {
            let (digest, size) = match sizes.get(attribute) {
                Some(&size) => (digest(attribute), size),
                None => (Digest::from_value(0), 1),
            };
            Probes::new(digest, 1 + attribute as u64, self.probes, size)
        });
        let mut indices = [0; MOST];
        for _ in 0..self.probes {
            for (index, function) in indices.iter_mut().zip(&mut functions).take(sizes.len()) {
                *index = function.next().unwrap_or_default();
            }
            for &place in places {
                if !self.bits.get(self.layout.cell_at(place, &indices)) {
                    return false;
                }
            }
        }
        true
    }

    fn has_all(&self, attributes: &[Digest]) -> bool {
        self.are_set(self.layout.maximal_of_all(), |attribute| {
            attributes[attribute]
        })
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
            let (before, own) = cells.split_at_mut(place * probes);
            let parents = &before[step.parent * probes..][..probes];
            let of_one = &indices[step.attribute * probes..][..probes];
            let mut fresh = 0;
            for ((cell, parent), index) in own.iter_mut().zip(parents).zip(of_one) {
                *cell = parent + step.constant + index * step.stride;
                fresh += u64::from(self.bits.set(*cell));
            }
            self.firsts[place] += fresh.min(1);
            if step.parent == 0 {
                self.singles[step.attribute].record(fresh, self.sizes[step.attribute], probes);
            }
        }
    }
}

impl Single {
    /// Records that the value set so many new cells of the attribute's `size`.
    fn record(&mut self, fresh: u64, size: u64, probes: usize) {
        if fresh != 0 {
            let filled = self.ones as f64 / size as f64;
            self.counter.record(filled.powi(probes as i32));
            self.ones += fresh;
        }
    }
}

/// Hash functions number 1 + attribute, as in an MDBF: independent between attributes.
fn indices_of(sizes: &[u64], probes: u32, attribute: usize, digest: Digest) -> Probes {
    Probes::new(digest, 1 + attribute as u64, probes, sizes[attribute])
}

impl MembershipFilter for MatrixFilter {
    fn insert(&mut self, element: ElementDigests<'_>) -> Sighting {
        // A set cell implies those of its subsets, so there would be nothing to set.
        if self.has_all(element.attributes) {
            return Sighting::Repeat;
        }
        self.set_all(element.attributes);
        Sighting::First
    }

    fn contains(&self, element: ElementDigests<'_>) -> bool {
        self.has_all(element.attributes)
    }

    fn clear(&mut self) {
        self.bits.clear();
        self.singles.fill(Single::default());
        self.firsts.fill(0);
        self.united = false;
    }

    fn stats(&self) -> FilterStats {
        FilterStats {
            memory_bytes: self.bits.memory_bytes(),
            fill_ratio: self.bits.fill_ratio(),
            counters: None,
        }
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

impl FilterState for MatrixFilter {
    fn save_state(&self, state: &mut StateWriter<'_>) -> io::Result<()> {
        for single in &self.singles {
            state.hip(Some(single.counter))?;
        }
        state.u8(u8::from(self.united))?;
        for &first in &self.firsts {
            state.u64(first)?;
        }
        state.bits(&self.bits)
    }

    fn load_state(&mut self, state: &mut StateReader<'_>) -> Result<(), LoadError> {
        for single in &mut self.singles {
            single.counter = state.lasting_hip()?;
        }
        self.united = match state.u8()? {
            0 => false,
            1 => true,
            _ => return Err(state.damaged("a matrix is neither united nor not")),
        };
        for first in &mut self.firsts {
            *first = state.u64()?;
        }
        state.bits(&mut self.bits)?;
        self.recount();
        Ok(())
    }

    fn unite(&mut self, other: &dyn FilterState) -> Result<(), UnionError> {
        let other: &Self = same(other)?;
        // Nothing comes from nothing: with an empty side the raw counts are those of the other one.
        if self.bits.ones() == 0 {
            self.firsts.clone_from(&other.firsts);
            self.united = other.united;
        } else if other.bits.ones() != 0 {
            self.united = true;
        }
        self.bits.unite(&other.bits);
        for (single, more) in self.singles.iter_mut().zip(&other.singles) {
            single.counter.unite(more.counter);
        }
        self.recount();
        Ok(())
    }
}

impl MatrixFilter {
    /// Counts the set cells of each attribute alone.
    fn recount(&mut self) {
        for step in self
            .layout
            .steps
            .iter()
            .skip(1)
            .filter(|step| step.parent == 0)
        {
            let cells =
                (0..self.sizes[step.attribute]).map(|index| step.constant + index * step.stride);
            self.singles[step.attribute].ones =
                cells.filter(|&cell| self.bits.get(cell)).count() as u64;
        }
    }
}

impl MultiAttributeFilter for MatrixFilter {
    fn contains_where(&self, pattern: Pattern<'_>) -> PatternAnswer {
        let query = pattern.mask();
        let digest = |attribute: usize| {
            // Of the others no cell is looked at.
            pattern.attributes[attribute].unwrap_or(Digest::from_value(0))
        };
        let legal = self.layout.place(query).is_some();
        let all_set = if let Some(places) = self.layout.maximal_of(query) {
            self.are_set(places, digest)
        } else {
            self.layout
                .maximal_subsets(query)
                .all(|place| self.are_set(&[place as u16], digest))
        };
        match (all_set, legal) {
            (false, _) => PatternAnswer::Absent,
            (true, true) => PatternAnswer::Present,
            (true, false) => PatternAnswer::PresentApart,
        }
    }

    /// For single attributes only: see the head of this file for why there is no more.
    fn distinct_of(&self, mask: u32) -> Option<Estimate> {
        if mask.count_ones() != 1 {
            return None;
        }
        let attribute = mask.trailing_zeros() as usize;
        let single = self.singles.get(attribute)?;
        let fill = || fill::independent(single.ones, self.sizes[attribute], self.probes);
        single.counter.known().or_else(fill)
    }

    fn first_of(&self, mask: u32) -> Option<u64> {
        let place = self.layout.place(mask)?;
        (!self.united).then(|| self.firsts[place])
    }
}

/// Where the cells of each stored combination lie.
#[derive(Clone, Debug)]
struct Layout {
    /// One entry a combination, in ascending order of the masks, so parents come first; the first is
    /// the empty combination, whose cell is 0.
    steps: Vec<Step>,
    /// Number of cells (M).
    cells: u64,
    /// The way from the empty combination to each, at once.
    ways: Vec<Way>,
    terms: Vec<Term>,
    /// The maximal legal subsets of each mask of up to [`MAX_MASKED`] attributes, largest first, and of
    /// all attributes behind the last mask: as ends in `maximal`.
    maximal_ends: Vec<usize>,
    maximal: Vec<u16>,
}

/// Most attributes for which the maximal legal subsets of every mask are kept.
const MAX_MASKED: usize = 8;

/// The cell of a combination is the constant plus the terms, index times stride.
#[derive(Clone, Copy, Debug)]
struct Way {
    constant: u64,
    first_term: u32,
    terms: u32,
}

#[derive(Clone, Copy, Debug)]
struct Term {
    attribute: usize,
    stride: u64,
}

/// From the cell of a combination without one attribute to its own cell.
#[derive(Clone, Copy, Debug)]
struct Step {
    combination: u32,
    /// Place of the combination without `attribute`.
    parent: usize,
    attribute: usize,
    constant: u64,
    stride: u64,
    /// Attributes that make another stored combination together with this one.
    grows_by: u32,
}

impl Layout {
    /// Of parameters that passed [`MatrixSpec::check`].
    fn new(sizes: &[u64], cuts: &[u32], index_map: IndexMap) -> Self {
        let combinations = legal_combinations(sizes.len(), cuts);
        let place = |combination: u32| {
            combinations
                .binary_search(&combination)
                .expect("a subset of a stored combination is stored")
        };
        // Sizes fit because the sum over all combinations was checked to.
        let size = |combination| {
            combination_cells(sizes, combination).expect("the number of cells was checked") as u64
        };
        let mut bases = Vec::with_capacity(combinations.len());
        let mut base = 0;
        for &combination in &combinations {
            bases.push(base);
            base += size(combination);
        }
        // Ways to choose the attributes below `below` when the others are `high`.
        let ways = |high: u32, below: usize| -> u64 {
            let low = (1_u32 << below) - 1;
            let from = combinations.partition_point(|&combination| combination < high);
            combinations[from..]
                .iter()
                .take_while(|&&combination| combination & !low == high)
                .map(|&combination| size(combination & low))
                .sum()
        };
        let step = |&combination: &u32| {
            let grows_by = (0..sizes.len())
                .map(|attribute| 1 << attribute)
                .filter(|&one| combination & one == 0 && is_legal(combination | one, cuts))
                .sum();
            let attribute = match index_map {
                IndexMap::Offset => combination.checked_ilog2().unwrap_or(0) as usize,
                IndexMap::Rank => members(combination).next().unwrap_or(0),
            };
            let rest = combination & !(1 << attribute);
            let parent = place(rest);
            let (constant, stride) = match index_map {
                _ if combination == 0 => (0, 0),
                IndexMap::Offset => (bases[place(combination)] - bases[parent], size(rest)),
                IndexMap::Rank => (ways(rest, attribute), ways(combination, attribute)),
            };
            Step {
                combination,
                parent,
                attribute,
                constant,
                stride,
                grows_by,
            }
        };
        let mut layout = Self {
            steps: combinations.iter().map(step).collect(),
            cells: base,
            ways: Vec::with_capacity(combinations.len()),
            terms: Vec::new(),
            maximal_ends: Vec::new(),
            maximal: Vec::new(),
        };
        for place in 0..combinations.len() {
            let first_term = layout.terms.len() as u32;
            let steps: Vec<Step> = layout.chain(place).copied().collect();
            layout.terms.extend(steps.iter().map(|step| Term {
                attribute: step.attribute,
                stride: step.stride,
            }));
            layout.ways.push(Way {
                constant: steps.iter().map(|step| step.constant).sum(),
                first_term,
                terms: steps.len() as u32,
            });
        }
        let full = ((1_u64 << sizes.len()) - 1) as u32;
        let masks = if sizes.len() <= MAX_MASKED {
            0..full
        } else {
            0..0
        };
        for mask in masks.chain([full]) {
            let mut places: Vec<usize> = layout.maximal_subsets(mask).collect();
            // The largest is the least filled one.
            places.sort_by_key(|&place| std::cmp::Reverse(size(combinations[place])));
            layout
                .maximal
                .extend(places.into_iter().map(|place| place as u16));
            layout.maximal_ends.push(layout.maximal.len());
        }
        layout
    }

    /// Cell of the combination at `place`, given the indices of its attributes.
    #[inline]
    fn cell_at(&self, place: u16, indices: &[u64]) -> u64 {
        let way = self.ways[usize::from(place)];
        let terms = &self.terms[way.first_term as usize..][..way.terms as usize];
        let moves = terms
            .iter()
            .map(|term| indices[term.attribute] * term.stride);
        way.constant + moves.sum::<u64>()
    }

    /// Places of the maximal legal subsets of all attributes, largest first.
    fn maximal_of_all(&self) -> &[u16] {
        let from = self.maximal_ends.iter().rev().nth(1).copied().unwrap_or(0);
        &self.maximal[from..]
    }

    /// Those of `query`, if they are kept.
    fn maximal_of(&self, query: u32) -> Option<&[u16]> {
        if self.maximal_ends.len() == 1 {
            return None;
        }
        let end = *self.maximal_ends.get(query as usize)?;
        let from = match query.checked_sub(1) {
            Some(before) => self.maximal_ends[before as usize],
            None => 0,
        };
        Some(&self.maximal[from..end])
    }

    /// Place of a stored combination.
    fn place(&self, combination: u32) -> Option<usize> {
        self.steps
            .binary_search_by_key(&combination, |step| step.combination)
            .ok()
    }

    /// The steps that lead from the empty combination to the one at `place`, last one first.
    fn chain(&self, place: usize) -> impl Iterator<Item = &Step> {
        let mut place = place;
        std::iter::from_fn(move || {
            let step = (place != 0).then(|| &self.steps[place])?;
            place = step.parent;
            Some(step)
        })
    }

    /// Places of the maximal legal subsets of `query`: since all subsets of a stored combination are
    /// stored, those that no single attribute of the query enlarges.
    fn maximal_subsets(&self, query: u32) -> impl Iterator<Item = usize> {
        self.steps
            .iter()
            .enumerate()
            .filter(move |(_, step)| step.combination & !query == 0 && step.grows_by & query == 0)
            .map(|(place, _)| place)
    }
}

#[cfg(test)]
impl MatrixFilter {
    /// The whole array, to compare matrices bit for bit.
    pub(super) fn bits(&self) -> &BitArray {
        &self.bits
    }

    /// The count of the values of each attribute.
    pub(super) fn distinct_of_all(&self) -> Vec<Option<Estimate>> {
        (0..self.sizes.len())
            .map(|attribute| self.distinct_of(1 << attribute))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filters::matrix_sizing::maximal_legal_subsets;
    use crate::hashing::Digester;
    use proptest::prelude::*;

    impl Layout {
        /// Cell of a tuple of indices, `None` where the attribute is null.
        fn cell(&self, tuple: &[Option<u64>]) -> u64 {
            let combination = tuple
                .iter()
                .enumerate()
                .map(|(i, index)| u32::from(index.is_some()) << i)
                .sum();
            let place = self.place(combination).unwrap();
            self.chain(place)
                .map(|step| step.constant + step.stride * tuple[step.attribute].unwrap())
                .sum()
        }
    }

    const N: Option<u64> = None;

    /// A tuple, and its cell by rank and by offset.
    type Row<'a> = (&'a [Option<u64>], u64, u64);

    fn check_cells(sizes: &[u64], cuts: &[u32], cells: u64, rows: &[Row<'_>]) {
        let [rank, offset] =
            [IndexMap::Rank, IndexMap::Offset].map(|map| Layout::new(sizes, cuts, map));
        assert_eq!((rank.cells, offset.cells), (cells, cells));
        for &(tuple, by_rank, by_offset) in rows {
            assert_eq!(rank.cell(tuple), by_rank, "{sizes:?} {tuple:?}");
            assert_eq!(offset.cell(tuple), by_offset, "{sizes:?} {tuple:?}");
        }
    }

    /// From an independent computation.
    #[test]
    fn cells_of_small_matrices() {
        let rows: &[Row<'_>] = &[
            (&[N, N, N], 0, 0),
            (&[N, N, Some(0)], 7, 7),
            (&[N, N, Some(2)], 15, 9),
            (&[N, Some(0), Some(0)], 8, 10),
            (&[N, Some(0), Some(1)], 12, 13),
            (&[N, Some(1), N], 5, 5),
            (&[N, Some(1), Some(0)], 9, 11),
            (&[N, Some(2), Some(2)], 18, 18),
            (&[Some(0), N, N], 1, 1),
            (&[Some(2), N, N], 3, 3),
        ];
        check_cells(&[3, 3, 3], &[0b101, 0b011], 19, rows);
        let rows: &[Row<'_>] = &[
            (&[N, N, Some(0)], 12, 12),
            (&[N, N, Some(3)], 21, 15),
            (&[N, Some(2), N], 9, 5),
            (&[Some(0), N, Some(1)], 16, 18),
            (&[Some(0), Some(1), N], 7, 8),
            (&[Some(1), N, Some(3)], 23, 23),
            (&[Some(1), Some(2), N], 11, 11),
        ];
        check_cells(&[2, 3, 4], &[0b110], 24, rows);
        let rows: &[Row<'_>] = &[
            (&[N, N, N, Some(1)], 20, 16),
            (&[N, Some(0), N, Some(0)], 18, 21),
            (&[N, Some(1), Some(1), N], 14, 14),
            (&[Some(0), N, N, Some(1)], 21, 19),
            (&[Some(1), N, Some(0), N], 7, 8),
            (&[N, Some(1), N, Some(1)], 24, 24),
        ];
        check_cells(&[2, 2, 2, 2], &[0b0011, 0b1100], 25, rows);
        let rows: &[Row<'_>] = &[
            (&[N, Some(2)], 15, 7),
            (&[Some(0), Some(1)], 11, 12),
            (&[Some(3), N], 4, 4),
            (&[Some(3), Some(2)], 19, 19),
        ];
        check_cells(&[4, 3], &[], 20, rows);
    }

    /// At the sizes of the paper's Fig. 7.
    #[test]
    fn cells_of_large_matrices() {
        let rows: &[Row<'_>] = &[
            (&[Some(0), N, Some(0)], 16_384, 24_574),
            (&[Some(8190), N, Some(8190)], 134_201_344, 67_117_054),
            (&[N, Some(5), Some(7)], 139_261, 67_174_397),
            (&[N, Some(8190), Some(8190)], 134_209_535, 134_209_535),
            (&[N, N, Some(8190)], 134_193_153, 24_573),
        ];
        check_cells(&[8191; 3], &[0b011], 134_209_536, rows);
        let rows: &[Row<'_>] = &[
            (&[N, Some(5), Some(7)], 104_270, 115_846),
            (&[N, N, Some(11_583)], 134_212_224, 34_752),
        ];
        check_cells(&[11_584; 3], &[0b101, 0b011], 134_223_809, rows);
        let rows: &[Row<'_>] = &[
            (&[Some(0), N, Some(0)], 262_145, 262_655),
            (&[Some(510), N, Some(510)], 133_956_095, 523_775),
            (&[N, Some(5), Some(7)], 2_100_224, 527_358),
        ];
        check_cells(&[511; 3], &[], 134_217_728, rows);
        let rows: &[Row<'_>] = &[
            (&[Some(0), N, Some(0)], 12_290, 28_673),
            (&[Some(8191), N, Some(16_383)], 201_351_168, 134_246_400),
            (&[N, Some(5), Some(7)], 106_510, 134_275_078),
            (&[Some(123), N, N], 124, 124),
        ];
        check_cells(&[8192, 4096, 16_384], &[0b011], 201_355_265, rows);
    }

    #[test]
    fn broken_rules_say_what_works() {
        let spec = |sizes: &[u64], cuts: &[u32], probes| MatrixSpec {
            sizes: sizes.to_vec(),
            cuts: cuts.to_vec(),
            probes,
            index_map: IndexMap::default(),
        };
        for (spec, needle) in [
            (spec(&[], &[], 4), "1 to 16 attributes, not 0"),
            (spec(&[2; 17], &[], 4), "1 to 16 attributes, not 17"),
            (
                spec(&[2; 3], &[], 0),
                "1 to 32 hash functions, not 0; 4 works",
            ),
            (spec(&[2; 3], &[], 33), "not 33"),
            (spec(&[2, 0], &[], 4), "at least 1, not 0"),
            (spec(&[2; 3], &[0b100], 4), "at least two attributes"),
            (spec(&[2; 3], &[0], 4), "at least two attributes"),
            (spec(&[2; 3], &[0b1001], 4), "the 3 attributes"),
            (
                spec(&[1; 16], &[], 4),
                "at most 4096 combinations of attributes, not 65536",
            ),
            (spec(&[1 << 20; 3], &[], 4), "at most 2^43 cells"),
        ] {
            let error = spec.check().unwrap_err().to_string();
            assert!(error.contains(needle), "{error}");
            assert!(MatrixFilter::new(&spec).is_err());
        }
        let pairs_only: Vec<u32> = (0..1_u32 << 16)
            .filter(|cut| cut.count_ones() == 3)
            .collect();
        let filter = MatrixFilter::new(&spec(&[3; 16], &pairs_only, 2)).unwrap();
        assert_eq!(filter.layout.steps.len(), 1 + 16 + 120);
        assert_eq!(filter.layout.cells, 1 + 16 * 3 + 120 * 9);
    }

    /// Elements of few values, so that combinations repeat.
    fn element(attributes: usize, number: u64) -> Vec<Digest> {
        (0..attributes as u64)
            .map(|i| {
                Digester::new(i).digest(&(number.wrapping_mul(i + 3) >> (4 * i) & 7).to_le_bytes())
            })
            .collect()
    }

    fn with_attributes(attributes: &[Digest]) -> ElementDigests<'_> {
        ElementDigests {
            whole: Digest::from_value(0),
            attributes,
        }
    }

    fn masked(attributes: &[Digest], mask: u32) -> Vec<Option<Digest>> {
        attributes
            .iter()
            .enumerate()
            .map(|(i, &digest)| (mask >> i & 1 == 1).then_some(digest))
            .collect()
    }

    fn specs() -> impl Strategy<Value = MatrixSpec> {
        (1_usize..6)
            .prop_flat_map(|attributes| {
                let cut = (0_u32..1 << attributes)
                    .prop_filter("cuts have two attributes", |cut| cut.count_ones() > 1);
                let cuts = if attributes == 1 {
                    Just(vec![]).boxed()
                } else {
                    prop::collection::vec(cut, 0..5).boxed()
                };
                let map = prop_oneof![Just(IndexMap::Offset), Just(IndexMap::Rank)];
                (
                    prop::collection::vec(1_u64..6, attributes),
                    cuts,
                    1_u32..5,
                    map,
                )
            })
            .prop_map(|(sizes, cuts, probes, index_map)| MatrixSpec {
                sizes,
                cuts,
                probes,
                index_map,
            })
    }

    proptest! {
        #[test]
        fn index_maps_are_bijections(spec in specs()) {
            let layout = Layout::new(&spec.sizes, &spec.cuts, spec.index_map);
            prop_assert_eq!(Some(layout.cells), spec.cells());
            let mut tuples = vec![vec![]];
            for &size in &spec.sizes {
                tuples = tuples
                    .into_iter()
                    .flat_map(|tuple: Vec<Option<u64>>| {
                        (0..=size).map(move |index| {
                            let mut longer = tuple.clone();
                            longer.push(index.checked_sub(1));
                            longer
                        })
                    })
                    .collect();
            }
            let given = |tuple: &[Option<u64>]| -> u32 {
                tuple.iter().enumerate().map(|(i, index)| u32::from(index.is_some()) << i).sum()
            };
            tuples.retain(|tuple| is_legal(given(tuple), &spec.cuts));
            if spec.index_map == IndexMap::Rank {
                // The paper's order, literally: attribute d first, null before 0.
                tuples.sort_by(|a, b| a.iter().rev().cmp(b.iter().rev()));
                for (rank, tuple) in tuples.iter().enumerate() {
                    prop_assert_eq!(layout.cell(tuple), rank as u64);
                }
            } else {
                let mut cells: Vec<u64> = tuples.iter().map(|tuple| layout.cell(tuple)).collect();
                cells.sort_unstable();
                prop_assert_eq!(cells, (0..layout.cells).collect::<Vec<_>>());
            }
        }

        #[test]
        fn what_was_inserted_is_there_under_every_pattern(
            spec in specs(),
            numbers in prop::collection::vec(any::<u64>(), 1..30),
        ) {
            let mut filter = MatrixFilter::new(&spec).unwrap();
            let attributes = spec.sizes.len();
            for &number in &numbers {
                let digests = element(attributes, number);
                let before = filter.contains(with_attributes(&digests));
                let sighting = filter.insert(with_attributes(&digests));
                prop_assert_eq!(sighting == Sighting::Repeat, before);
            }
            for &number in &numbers {
                let digests = element(attributes, number);
                prop_assert!(filter.contains(with_attributes(&digests)));
                for mask in 0..1_u32 << attributes {
                    let answer = filter.contains_where(Pattern {
                        whole: None,
                        attributes: &masked(&digests, mask),
                    });
                    let expected = if is_legal(mask, &spec.cuts) {
                        PatternAnswer::Present
                    } else {
                        PatternAnswer::PresentApart
                    };
                    prop_assert_eq!(answer, expected);
                }
            }
            let recounted = (0..filter.bits.len()).filter(|&cell| filter.bits.get(cell)).count();
            prop_assert_eq!(filter.bits.ones(), recounted as u64);
            filter.clear();
            prop_assert_eq!(filter.bits.ones(), 0);
            prop_assert_eq!(filter.first_of(1), Some(0));
            prop_assert_eq!(filter.distinct_of(1).unwrap(), Estimate::default());
        }

        /// Against the definition: cells one by one, and what sets a new one.
        #[test]
        fn raw_counts_of_combinations_are_insertions_that_set_a_cell(
            spec in specs(),
            numbers in prop::collection::vec(any::<u64>(), 1..40),
        ) {
            let mut filter = MatrixFilter::new(&spec).unwrap();
            let attributes = spec.sizes.len();
            let mut set = std::collections::HashSet::new();
            let mut firsts = vec![0_u64; filter.layout.steps.len()];
            let mut values = vec![std::collections::HashSet::new(); firsts.len()];
            for &number in &numbers {
                let digests = element(attributes, number);
                filter.insert(with_attributes(&digests));
                for (place, step) in filter.layout.steps.iter().enumerate() {
                    let mut fresh = false;
                    for probe in 0..spec.probes as usize {
                        let tuple: Vec<Option<u64>> = (0..attributes)
                            .map(|i| {
                                let mut indices = indices_of(&spec.sizes, spec.probes, i, digests[i]);
                                (step.combination >> i & 1 == 1).then(|| indices.nth(probe).unwrap())
                            })
                            .collect();
                        fresh |= set.insert(filter.layout.cell(&tuple));
                    }
                    firsts[place] += u64::from(fresh);
                    values[place].insert(masked(&digests, step.combination));
                }
            }
            prop_assert_eq!(filter.bits.ones(), set.len() as u64);
            for (place, step) in filter.layout.steps.iter().enumerate() {
                prop_assert_eq!(filter.first_of(step.combination), Some(firsts[place]));
                prop_assert!(firsts[place] <= values[place].len() as u64);
            }
            for cut in spec.cuts {
                prop_assert_eq!(filter.first_of(cut), None);
            }
        }

        #[test]
        fn the_maximal_subsets_decide_as_all_subsets_would(
            spec in specs(),
            numbers in prop::collection::vec(any::<u64>(), 1..12),
            asked in prop::collection::vec((any::<u64>(), any::<u32>()), 20),
        ) {
            let mut filter = MatrixFilter::new(&spec).unwrap();
            let attributes = spec.sizes.len();
            for &number in &numbers {
                filter.insert(with_attributes(&element(attributes, number)));
            }
            for (number, mask) in asked {
                let mask = mask & ((1 << attributes) - 1);
                let digests = element(attributes, number);
                let places: Vec<u32> = filter
                    .layout
                    .maximal_subsets(mask)
                    .map(|place| filter.layout.steps[place].combination)
                    .collect();
                prop_assert_eq!(&places, &maximal_legal_subsets(mask, &spec.cuts));
                let all = filter
                    .layout
                    .steps
                    .iter()
                    .enumerate()
                    .filter(|(_, step)| step.combination & !mask == 0)
                    .all(|(place, _)| filter.are_set(&[place as u16], |attribute| digests[attribute]));
                let answer = filter.contains_where(Pattern {
                    whole: None,
                    attributes: &masked(&digests, mask),
                });
                prop_assert_eq!(answer != PatternAnswer::Absent, all);
            }
        }
    }

    /// Two attributes, 3 000 values of the first and 40 of the second, in cells for a tenth of them:
    /// the counts of values stay within four standard errors, over 100 repetitions.
    #[test]
    fn values_of_single_attributes_are_counted_without_bias() {
        const RUNS: u64 = 100;
        let spec = MatrixSpec {
            sizes: vec![4000, 100],
            cuts: vec![0b11],
            probes: 3,
            index_map: IndexMap::Offset,
        };
        let mut sums = [0.0; 2];
        let mut variances = [0.0; 2];
        for run in 0..RUNS {
            let mut filter = MatrixFilter::new(&spec).unwrap();
            for i in 0..3000_u64 {
                let value = |n: u64| Digester::new(run).digest(&n.to_le_bytes());
                let digests = [value(i), value(i % 40)];
                filter.insert(with_attributes(&digests));
                filter.insert(with_attributes(&digests));
            }
            for attribute in 0..2 {
                let estimate = filter.distinct_of(1 << attribute).unwrap();
                sums[attribute] += estimate.distinct;
                variances[attribute] += estimate.variance;
            }
            assert_eq!(filter.distinct_of(0b11), None);
            assert_eq!(filter.distinct(), None);
        }
        for (attribute, expected) in [(0, 3000.0), (1, 40.0)] {
            let mean = sums[attribute] / RUNS as f64;
            let error = variances[attribute].sqrt() / RUNS as f64;
            assert!((mean - expected).abs() < 4.0 * error, "{mean} ± {error}");
        }
    }

    /// Worth running in release mode too.
    #[test]
    fn the_array_knows_how_many_of_its_cells_are_set() {
        let mut filter = MatrixFilter::bfm(3, 50, 4).unwrap();
        for number in 0..500_u64 {
            let digests = [0, 1, 2].map(|i| Digester::new(i).digest(&number.to_le_bytes()));
            filter.insert(with_attributes(&digests));
        }
        let counted = (0..filter.bits.len()).filter(|&cell| filter.bits.get(cell));
        assert_eq!(counted.count() as u64, filter.bits.ones());
        // 50³ cells take 4 · 500 marks, of which few fall together.
        assert!(filter.bits.ones() > 2000);
    }

    /// One attribute: the matrix is a standard filter with an estimate of its own.
    #[test]
    fn elements_of_one_attribute_are_counted() {
        let mut filter = MatrixFilter::new(&MatrixSpec {
            sizes: vec![8000],
            cuts: vec![],
            probes: 4,
            index_map: IndexMap::Rank,
        })
        .unwrap();
        for i in 0..1000_u64 {
            filter.insert(with_attributes(
                &[Digester::new(0).digest(&i.to_le_bytes())],
            ));
        }
        let estimate = filter.distinct().unwrap();
        assert!((estimate.distinct - 1000.0).abs() < 4.0 * estimate.std_error() + 1.0);
    }
}
