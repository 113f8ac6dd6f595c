//! Chooses the combinations that a matrix stores: compares all families if there are few, and
//! climbs from several of them otherwise.

use super::PlanRequest;
use super::complex::Stored;
use super::families::Within;
use super::matrix::{Candidate, Matrix};
use crate::filters::FilterKind;

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
