//! Families of stored combinations among which the planner chooses: it compares all if there are few,
//! and climbs from several of them otherwise.
//!
//! A query looks at subsets of its own attributes only. So a combination that no wanted one
//! contains costs cells and answers nothing, and the best family lies within the wanted
//! combinations and their subsets.

use super::PlanRequest;
use super::complex::Stored;
use super::matrix::{Candidate, Matrix};
use crate::filters::{FilterKind, MAX_COMBINATIONS};

/// Largest number of families that are all compared: all families of five attributes.
const MOST_FAMILIES: usize = 6894;

/// Largest number of pairs of which all choices are compared; 2^13 choices are too many.
const MOST_PAIRS: usize = 12;

/// Largest number of wanted combinations that are starting points, each alone and each prefix of
/// them.
const MOST_STARTS: usize = 16;

/// Families in which every set is one that may be stored or cut next; in larger ones only those
/// near the border are.
const MOST_MOVES: usize = 1024;

/// Returns every family of cuts of two and more attributes in which no cut contains another: 1, 2,
/// 9, 114 and 6894 families for 1 to 5 attributes, and `None` for more.
#[cfg(test)]
pub(super) fn all_cut_families(attributes: usize) -> Option<Vec<Vec<u32>>> {
    let full = (1_u64 << attributes) - 1;
    let families = Within::new(attributes, &[full as u32]).all()?;
    let families = families.into_iter();
    Some(families.map(|sets| Stored::of_sets(attributes, &sets).cuts()).collect())
}

/// The wanted combinations and their subsets.
pub(super) struct Within {
    attributes: usize,
    /// Wanted combinations, the one that is asked for most often first.
    wanted: Vec<u32>,
    contains: Vec<bool>,
    /// Ascending, the empty set first; with every single attribute, which is stored in any case.
    sets: Vec<u32>,
}

impl Within {
    pub(super) fn of(request: &PlanRequest) -> Self {
        let mut wanted = request.wanted.clone();
        wanted.sort_by(|a, b| b.weight.total_cmp(&a.weight));
        let wanted: Vec<u32> = wanted.iter().map(|wanted| wanted.mask).collect();
        Self::new(request.attributes.len(), &wanted)
    }

    fn new(attributes: usize, wanted: &[u32]) -> Self {
        let mut contains = vec![false; 1 << attributes];
        for &set in wanted {
            contains[set as usize] = true;
        }
        for set in (0..contains.len()).rev() {
            for one in 0..attributes {
                if contains[set] && set >> one & 1 == 1 {
                    contains[set & !(1 << one)] = true;
                }
            }
        }
        contains[0] = true;
        for one in 0..attributes {
            contains[1 << one] = true;
        }
        let sets = (0..1_u32 << attributes).filter(|&set| contains[set as usize]);
        Self { attributes, wanted: wanted.to_vec(), sets: sets.collect(), contains }
    }

    /// Every family, as its sets, those with the most sets of few attributes first; `None` if there
    /// are too many.
    pub(super) fn all(&self) -> Option<Vec<Vec<u32>>> {
        let (mut sets, always): (Vec<u32>, Vec<u32>) =
            self.sets.iter().partition(|set| set.count_ones() > 1);
        sets.sort_unstable_by_key(|set| (set.count_ones(), *set));
        let pairs = sets.iter().filter(|set| set.count_ones() == 2).count();
        if pairs > MOST_PAIRS {
            return None;
        }
        // Such few pairs make fewer than 64 sets.
        let parts: Vec<u64> = sets
            .iter()
            .map(|set| {
                let is_part = |part: &u32| part & set == *part && part != set;
                let parts = (0..sets.len()).filter(|&place| is_part(&sets[place]));
                parts.map(|place| 1 << place).sum()
            })
            .collect();
        let mut families = Vec::new();
        extend(&parts, 0, 0, &mut families);
        let sets_of = |family: u64| {
            let chosen = (0..sets.len()).filter(|place| family >> place & 1 == 1);
            let chosen = chosen.map(|place| sets[place]);
            let mut all: Vec<u32> = always.iter().copied().chain(chosen).collect();
            all.sort_unstable();
            all
        };
        (families.len() <= MOST_FAMILIES).then(|| families.into_iter().map(sets_of).collect())
    }

    /// Families from which a search starts, the most promising first: those of the wanted
    /// combinations and of some of them, all sets of few attributes, blocks of attributes, disjoint
    /// pairs cut. Each is small enough to be built.
    pub(super) fn starts(&self) -> Vec<Stored> {
        let mut starts: Vec<Vec<u32>> = Vec::new();
        let mut add = |keep: &dyn Fn(u32) -> bool| {
            let small = |set: &u32| set.count_ones() < 2 || keep(*set);
            let kept = self.sets.iter().copied().filter(small);
            let kept: Vec<u32> = kept.take(MAX_COMBINATIONS + 1).collect();
            if kept.len() <= MAX_COMBINATIONS && !starts.contains(&kept) {
                starts.push(kept);
            }
        };
        let lies_in = |set: u32, some: &[u32]| some.iter().any(|larger| set & !larger == 0);
        add(&|_| true);
        let mut small_first = self.wanted.clone();
        small_first.sort_by_key(|wanted| wanted.count_ones());
        for wanted in [&self.wanted, &small_first] {
            for few in 1..=wanted.len().min(MOST_STARTS) {
                add(&|set| lies_in(set, &wanted[..few]));
            }
        }
        for one in self.wanted.iter().take(MOST_STARTS) {
            add(&|set| lies_in(set, &[*one]));
        }
        for most in 1..self.attributes as u32 {
            add(&|set| set.count_ones() <= most);
        }
        for size in 2..self.attributes as u32 {
            let block = (1_u32 << size) - 1;
            let blocks = (0..self.attributes as u32).step_by(size as usize);
            let blocks: Vec<u32> = blocks.map(|first| block << first).collect();
            add(&|set| lies_in(set, &blocks));
        }
        for pairs in 1..=self.attributes / 2 {
            add(&|set| (0..pairs).all(|pair| set >> (2 * pair) & 0b11 != 0b11));
        }
        let starts = starts.into_iter();
        starts.map(|sets| Stored::of_sets(self.attributes, &sets)).collect()
    }

    /// Sets of two and more attributes that may be stored, or cut, next.
    pub(super) fn moves(&self, stored: &Stored) -> Vec<u32> {
        let mut moves: Vec<u32> = Vec::new();
        let mut seen = vec![false; self.contains.len()];
        let mut add = |set: u32| {
            if set.count_ones() > 1 && self.contains[set as usize] && !seen[set as usize] {
                seen[set as usize] = true;
                moves.push(set);
            }
        };
        if self.sets.len() <= MOST_MOVES {
            self.sets.iter().copied().for_each(add);
            return moves;
        }
        let some = &self.wanted[..self.wanted.len().min(MOST_STARTS)];
        for one in some {
            for other in some {
                add(one & other);
            }
        }
        let pairs = self.sets.iter().filter(|set| set.count_ones() == 2);
        pairs.copied().for_each(&mut add);
        stored.cuts().into_iter().for_each(&mut add);
        stored.facets().into_iter().for_each(add);
        moves
    }

    /// Returns pairs of a set to cut, which no other stored one contains, and a set to store
    /// instead.
    pub(super) fn exchanges(&self, stored: &Stored) -> Vec<[u32; 2]> {
        let cuts: Vec<u32> =
            stored.cuts().into_iter().filter(|&cut| self.contains[cut as usize]).collect();
        let facets = stored.facets().into_iter();
        let facets = facets.filter(|facet| facet.count_ones() > 1);
        facets.flat_map(|facet| cuts.iter().map(move |&cut| [facet, cut])).collect()
    }
}

/// Decides for one set after the other, small ones first, whether it is stored, which it can be if
/// all of its parts are. Ends when there are too many families.
fn extend(parts: &[u64], place: usize, family: u64, families: &mut Vec<u64>) {
    if place == parts.len() || families.len() > MOST_FAMILIES {
        families.push(family);
        return;
    }
    if family & parts[place] == parts[place] {
        extend(parts, place + 1, family | 1 << place, families);
    }
    extend(parts, place + 1, family, families);
}

/// Families that are kept: those of a WCBFM's weights.
const KEPT: usize = 8;

/// Work of a search, in rates of one combination with one k: a fraction of a second.
pub(super) const WORK: u64 = 4_000_000;

/// When memory is minimized, families larger than the best one by this factor are not climbed from,
/// nor sized.
const WORTH_CLIMBING: f64 = 4.0;

/// A matrix with its sizes and k.
pub(super) type Sized<'a> = (Matrix<'a>, Candidate);

/// Returns the best families of stored combinations, at most [`KEPT`], the best first: with equal
/// sizes, with the weights of the request, or by the rule of the paper's tables if that is the
/// goal.
pub(super) fn best_families(request: &PlanRequest, kind: FilterKind) -> Vec<Sized<'_>> {
    let within = Within::of(request);
    let stored = |sets: Vec<u32>| Stored::of_sets(request.attributes.len(), &sets);
    match within.all() {
        Some(families) => all(request, kind, families.into_iter().map(stored)),
        None => climbed(request, kind, &within, WORK),
    }
}

/// Sizes all of these families and returns the best.
pub(super) fn all(
    request: &PlanRequest,
    kind: FilterKind,
    families: impl IntoIterator<Item = Stored>,
) -> Vec<Sized<'_>> {
    let mut kept = Vec::new();
    let mut most = f64::INFINITY;
    for stored in families {
        let matrix = Matrix::new(request, kind, stored);
        if let Some(candidate) = matrix.fit(matrix.given_weights(), most) {
            // A family that does not reach the rate with the cells of the best so far is dropped.
            most = most.min(candidate.most_cells());
            keep(&mut kept, (matrix, candidate));
        }
    }
    kept
}

/// Climbs from several families step by step to better ones, with at most this much work.
pub(super) fn climbed<'a>(
    request: &'a PlanRequest,
    kind: FilterKind,
    within: &Within,
    work: u64,
) -> Vec<Sized<'a>> {
    let mut climb = Climb { request, kind, within, work };
    let mut kept = Vec::new();
    let mut starts = Vec::new();
    let mut most = f64::INFINITY;
    for start in within.starts() {
        // One start is always tried, and half of the work is reserved for the steps.
        if climb.work < work / 2 && !starts.is_empty() {
            break;
        }
        if let Some(start) = climb.sized(start, most) {
            most = most.min(start.1.most_cells() * WORTH_CLIMBING);
            starts.push(start);
        }
    }
    starts.sort_by(|(_, a), (_, b)| a.compare(b));
    for start in starts {
        keep(&mut kept, start.clone());
        // Later climbs have something left, too.
        let reserve = climb.work / 2;
        climb.up(start, reserve, &mut kept);
    }
    kept
}

/// A search for the best family.
struct Climb<'a, 'b> {
    request: &'a PlanRequest,
    kind: FilterKind,
    within: &'b Within,
    /// Work that is left.
    work: u64,
}

impl<'a> Climb<'a, '_> {
    /// Sizes a family, if it serves the goal with at most this many cells.
    fn sized(&mut self, stored: Stored, most: f64) -> Option<Sized<'a>> {
        let matrix = Matrix::new(self.request, self.kind, stored);
        let candidate = matrix.fit(matrix.given_weights(), most);
        self.work = self.work.saturating_sub(matrix.take_work());
        Some((matrix, candidate?))
    }

    /// Stores or cuts one set after the other, and if none helps one for another, as long as that
    /// helps and more than the reserve is left.
    fn up(&mut self, mut here: Sized<'a>, reserve: u64, kept: &mut Vec<Sized<'a>>) {
        loop {
            let one: Vec<[u32; 1]> =
                self.within.moves(&here.0.stored).into_iter().map(|set| [set]).collect();
            let Some(is_better) = self.try_all(&one, &mut here, reserve, kept) else { return };
            if !is_better {
                let two = self.within.exchanges(&here.0.stored);
                if self.try_all(&two, &mut here, reserve, kept) != Some(true) {
                    return;
                }
            }
        }
    }

    /// Tries to store, or to cut, the sets of each move, and goes where that is better. Says
    /// whether it is, or nothing if the climb is over: the work is done, or an earlier climb has
    /// been here.
    fn try_all<const SETS: usize>(
        &mut self,
        moves: &[[u32; SETS]],
        here: &mut Sized<'a>,
        reserve: u64,
        kept: &mut Vec<Sized<'a>>,
    ) -> Option<bool> {
        let mut is_better = false;
        for sets in moves {
            if self.work <= reserve {
                return None;
            }
            if let Some(next) = here.0.stored.changed(sets)
                && let Some(next) = self.sized(next, here.1.most_cells())
                && next.1.is_better(&here.1)
            {
                *here = next;
                is_better = true;
                // An earlier climb went on from here.
                if !keep(kept, here.clone()) {
                    return None;
                }
            }
        }
        Some(is_better)
    }
}

/// Adds a family to the best so far; returns `false` if it is among them already. Equal families
/// stay in the order in which they were added.
fn keep<'a>(best: &mut Vec<Sized<'a>>, next: Sized<'a>) -> bool {
    let place = best.partition_point(|(_, candidate)| candidate.compare(&next.1).is_le());
    let known = |(matrix, _): &Sized<'a>| matrix.stored.sets().eq(next.0.stored.sets());
    if best[..place].iter().any(known) {
        return false;
    }
    best.insert(place, next);
    best.truncate(KEPT);
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_as_many_families_as_simplicial_complexes() {
        for (attributes, families) in [(1, 1), (2, 2), (3, 9), (4, 114), (5, 6894)] {
            assert_eq!(all_cut_families(attributes).unwrap().len(), families);
        }
        for attributes in 6..=16 {
            assert!(all_cut_families(attributes).is_none());
        }
    }

    /// A pair and a triple that share an attribute: 2 choices times 9.
    #[test]
    fn families_lie_within_what_is_wanted() {
        for attributes in 5..=16 {
            let within = Within::new(attributes, &[0b00011, 0b11100 >> 1]);
            let families = within.all().unwrap();
            assert_eq!(families.len(), 2 * 9);
            for sets in families {
                assert_eq!(sets.iter().filter(|set| set.count_ones() < 2).count(), attributes + 1);
                let stored = Stored::of_sets(attributes, &sets);
                let legal = Stored::new(attributes, &stored.cuts());
                assert_eq!(legal.sets().collect::<Vec<u32>>(), sets);
            }
        }
        let pairs: Vec<u32> = (0..6).map(|pair| 0b11 << (2 * pair)).collect();
        assert_eq!(Within::new(12, &pairs).all().unwrap().len(), 64);
    }

    #[test]
    fn starts_can_be_built_and_hold_the_wanted_combinations() {
        let wanted = [0b11, 0b1110, 0b1111_0000_0000];
        let starts = Within::new(16, &wanted).starts();
        assert!(wanted.iter().all(|&set| starts[0].stores(set)));
        let full = Within::new(16, &[0xffff]);
        assert!(full.all().is_none());
        for start in full.starts() {
            assert!(start.is_buildable());
            assert!((0..16).all(|one| start.stores(1 << one)));
            let again = Stored::new(16, &start.cuts());
            assert!(again.sets().eq(start.sets()));
            assert!(full.moves(&start).len() > 100);
        }
    }
}
