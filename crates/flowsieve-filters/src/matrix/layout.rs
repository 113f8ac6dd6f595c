//! Where the cells of each stored combination lie, and which of them answer a query.

use super::spec::IndexMap;
use crate::matrix_sizing::{
    MAX_ATTRIBUTES, all_of, combination_cells, is_legal, legal_combinations, members,
};

/// Where the cells of each stored combination lie.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    /// One entry for each combination, in ascending order of the masks, so parents come first; the
    /// first is the empty combination, whose cell is 0.
    pub(super) steps: Vec<Step>,
    /// Number of cells (M).
    pub(super) cells: u64,
    /// The sums of the constants from the empty combination to each: the cell is this constant plus
    /// each index times its stride.
    constants: Vec<u64>,
    /// One row of [`Layout::room`] strides for each combination; 0 for the attributes that it
    /// leaves out.
    strides: Vec<u64>,
    /// Ends in `maximal` of the maximal legal subsets, largest first, of each mask of up to
    /// [`MAX_MASKED`] attributes, and then of all attributes.
    maximal_ends: Vec<usize>,
    maximal: Vec<u16>,
}

/// Most attributes for which the maximal legal subsets of every mask are stored.
const MAX_MASKED: usize = 8;

/// Evaluates an expression with a constant `MOST`, the [room](Layout::room) for these attributes.
macro_rules! with_room {
    ($attributes:expr, $most:ident => $value:expr) => {
        with_room!($attributes, $most => $value; 1, 2, 3, 4, 8)
    };
    ($attributes:expr, $most:ident => $value:expr; $($room:literal),+) => {
        match $crate::matrix::layout::Layout::room($attributes) {
            $($room => {
                const $most: usize = $room;
                $value
            })+
            _ => {
                const $most: usize = $crate::matrix_sizing::MAX_ATTRIBUTES;
                $value
            }
        }
    };
}

pub(super) use with_room;

/// The step from the cell of a combination without one attribute to its own cell.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) combination: u32,
    /// Place of the combination without `attribute`.
    pub(super) parent: usize,
    pub(super) attribute: usize,
    pub(super) constant: u64,
    pub(super) stride: u64,
    /// Attributes that can be added to get another stored combination.
    grows_by: u32,
}

impl Layout {
    /// Creates the layout for parameters that passed
    /// [`FilterSpec::check`](crate::FilterSpec::check).
    pub(super) fn new(sizes: &[u64], cuts: &[u32], index_map: IndexMap) -> Self {
        let combinations = legal_combinations(sizes.len(), cuts);
        let mut bases = Vec::with_capacity(combinations.len());
        let mut base = 0;
        for &combination in &combinations {
            bases.push(base);
            base += size_of_combination(sizes, combination);
        }
        let mut layout = Self {
            steps: steps(sizes, cuts, index_map, &combinations, &bases),
            cells: base,
            constants: Vec::with_capacity(combinations.len()),
            strides: vec![0; combinations.len() * Self::room(sizes.len())],
            maximal_ends: Vec::new(),
            maximal: Vec::new(),
        };
        for place in 0..combinations.len() {
            let steps: Vec<Step> = layout.chain(place).copied().collect();
            let row = place * Self::room(sizes.len());
            for step in &steps {
                layout.strides[row + step.attribute] = step.stride;
            }
            layout.constants.push(steps.iter().map(|step| step.constant).sum());
        }
        let full = all_of(sizes.len());
        let masks = if sizes.len() <= MAX_MASKED { 0..full } else { 0..0 };
        for mask in masks.chain([full]) {
            let mut places: Vec<usize> = layout.maximal_subsets(mask).collect();
            // The largest is the least filled one.
            let size = |&place: &usize| size_of_combination(sizes, combinations[place]);
            places.sort_by_key(|place| std::cmp::Reverse(size(place)));
            layout.maximal.extend(places.into_iter().map(|place| place as u16));
            layout.maximal_ends.push(layout.maximal.len());
        }
        layout
    }

    /// Returns the room for attributes in tables and in the code of a query.
    pub(super) const fn room(attributes: usize) -> usize {
        match attributes {
            0..=4 => attributes,
            5..=8 => 8,
            _ => MAX_ATTRIBUTES,
        }
    }

    /// Returns the cell of the combination at `place`, from the indices of the attributes, with
    /// [room](Layout::room) for `MOST`.
    #[inline]
    pub(super) fn cell_at<const MOST: usize>(&self, place: u16, indices: &[u64; MOST]) -> u64 {
        let (strides, _) = self.strides.as_chunks::<MOST>();
        let place = usize::from(place);
        let moves = indices.iter().zip(&strides[place]).map(|(i, s)| i * s);
        self.constants[place] + moves.sum::<u64>()
    }

    /// Returns the constant of the combination at `place`, and the strides of these attributes
    /// alone, one after the other.
    pub(super) fn cell_map_of<const MOST: usize>(
        &self,
        place: u16,
        attributes: &[usize],
    ) -> (u64, [u64; MOST]) {
        let room = self.strides.len() / self.steps.len();
        let row = &self.strides[usize::from(place) * room..][..room];
        let mut strides = [0; MOST];
        for (stride, &attribute) in strides.iter_mut().zip(attributes) {
            *stride = row[attribute];
        }
        (self.constants[usize::from(place)], strides)
    }

    /// Returns the places of the maximal legal subsets of all attributes, largest first.
    pub(super) fn maximal_of_all(&self) -> &[u16] {
        let from = self.maximal_ends.iter().rev().nth(1).copied().unwrap_or(0);
        &self.maximal[from..]
    }

    /// Returns the places of the maximal legal subsets of `query`, largest first, or `None` if they
    /// are not stored.
    pub(super) fn maximal_of(&self, query: u32) -> Option<&[u16]> {
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

    /// Returns the place of a combination, or `None` if it is not stored.
    pub(super) fn place(&self, combination: u32) -> Option<usize> {
        self.steps.binary_search_by_key(&combination, |step| step.combination).ok()
    }

    /// Iterates over the steps from the empty combination to the one at `place`, last one first.
    pub(super) fn chain(&self, place: usize) -> impl Iterator<Item = &Step> {
        let mut place = place;
        std::iter::from_fn(move || {
            let step = (place != 0).then(|| &self.steps[place])?;
            place = step.parent;
            Some(step)
        })
    }

    /// Iterates over the places of the maximal legal subsets of `query`. All subsets of a stored
    /// combination are stored, so these are the subsets that no attribute of the query enlarges.
    pub(super) fn maximal_subsets(&self, query: u32) -> impl Iterator<Item = usize> {
        self.steps
            .iter()
            .enumerate()
            .filter(move |(_, step)| step.combination & !query == 0 && step.grows_by & query == 0)
            .map(|(place, _)| place)
    }
}

/// Returns the cells of a stored combination, whose number was checked.
fn size_of_combination(sizes: &[u64], combination: u32) -> u64 {
    combination_cells(sizes, combination).expect("the number of cells was checked") as u64
}

/// Returns the step to each stored combination; `bases` holds the number of cells before each.
fn steps(
    sizes: &[u64],
    cuts: &[u32],
    index_map: IndexMap,
    combinations: &[u32],
    bases: &[u64],
) -> Vec<Step> {
    let place = |combination: u32| {
        combinations
            .binary_search(&combination)
            .expect("a subset of a stored combination is stored")
    };
    // Ways to choose the attributes below `below` when the others are `high`.
    let ways = |high: u32, below: usize| -> u64 {
        let low = (1_u32 << below) - 1;
        let from = combinations.partition_point(|&combination| combination < high);
        combinations[from..]
            .iter()
            .take_while(|&&combination| combination & !low == high)
            .map(|&combination| size_of_combination(sizes, combination & low))
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
            IndexMap::Offset => {
                (bases[place(combination)] - bases[parent], size_of_combination(sizes, rest))
            }
            IndexMap::Rank => (ways(rest, attribute), ways(combination, attribute)),
        };
        Step { combination, parent, attribute, constant, stride, grows_by }
    };
    combinations.iter().map(step).collect()
}
