//! A matrix with given cuts: its rates, and the sizes and k that serve a goal best.

use super::complex::Stored;
use super::structures::least;
use super::{Goal, PlanRequest};
use crate::filters::FilterKind;
use crate::filters::matrix_sizing::{PartLoad, attribute_size, table_probes};
use crate::filters::sizing::{MAX_PROBES, last};
use std::cell::Cell;

/// Largest size of an attribute that is considered.
const MOST_SIZE: u64 = 1 << 48;

/// A matrix with given cuts, and the queries that it must answer.
#[derive(Clone, Debug)]
pub(super) struct Matrix<'a> {
    pub(super) request: &'a PlanRequest,
    pub(super) kind: FilterKind,
    /// Share of the queries for each wanted combination.
    shares: Vec<f64>,
    pub(super) stored: Stored,
    /// The stored combinations that answer each wanted one.
    pub(super) asked: Vec<Vec<u32>>,
    /// Work done, about one for the rate of a combination with one k, so that searches can be
    /// bounded.
    work: Cell<u64>,
}

/// Sizes of the attributes and k, with what they give.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub(super) sizes: Vec<f64>,
    pub(super) probes: u32,
    /// Weighted rate.
    pub(super) fpr: f64,
    /// The highest rate of a combination that is asked for at all.
    worst: f64,
    pub(super) cells: f64,
    goal: Goal,
}

impl Candidate {
    /// Returns the quantity to minimize; a rate that is not kept is worse than any memory.
    fn cost(&self) -> (bool, f64) {
        match self.goal {
            Goal::Rate { .. } => (false, self.cells),
            // The rate is that of single attributes, so that as much as possible is answered well.
            Goal::AttributeRate { fpr } => (self.worst > fpr, self.cells),
            Goal::Memory { .. } => (false, self.fpr),
        }
    }

    /// Returns the most cells of a candidate that may be better.
    pub(super) fn most_cells(&self) -> f64 {
        match self.goal {
            Goal::Rate { .. } => self.cells,
            _ => f64::INFINITY,
        }
    }

    /// Orders candidates, the best first.
    pub(super) fn compare(&self, other: &Self) -> std::cmp::Ordering {
        let (ours, theirs) = (self.cost(), other.cost());
        ours.0.cmp(&theirs.0).then(ours.1.total_cmp(&theirs.1))
    }

    /// Returns whether it serves the goal better than another, by more than rounding.
    pub(super) fn is_better(&self, other: &Self) -> bool {
        let (ours, theirs) = (self.cost(), other.cost());
        // Rates of 0, or of 1, are equal.
        let margin = 1.0 - 1e-9;
        (ours.0, theirs.0) == (false, true) || ours.0 == theirs.0 && ours.1 < theirs.1 * margin
    }
}

/// A stored combination at given sizes: its load, the probability that its values occur, and how many
/// combinations are like it.
type Load = (PartLoad, f64, i32);

/// The loads that answer each wanted combination.
type Loads = Vec<Vec<Load>>;

impl<'a> Matrix<'a> {
    pub(super) fn new(request: &'a PlanRequest, kind: FilterKind, stored: Stored) -> Self {
        let asked = request.wanted.iter();
        // Every projection of a Cartesian join answers for itself, as in a matrix without cuts.
        let asked: Vec<Vec<u32>> = asked.map(|w| stored.maximal_subsets(w.mask)).collect();
        let looked_for = request.wanted.iter().filter(|w| !stored.stores(w.mask));
        let sets = stored.sets().len();
        let work = Cell::new((sets * (1 + looked_for.count())) as u64);
        Self { request, kind, shares: request.shares(), stored, asked, work }
    }

    fn attributes(&self) -> usize {
        self.request.attributes.len()
    }

    /// Returns the weights of the request, if the structure has some.
    pub(super) fn given_weights(&self) -> Option<&'a [f64]> {
        match self.kind {
            FilterKind::Wcbfm => self.request.weights.as_deref(),
            _ => None,
        }
    }

    /// Returns the work done since the last call.
    pub(super) fn take_work(&self) -> u64 {
        self.work.take()
    }

    fn count(&self, work: usize) {
        self.work.set(self.work.get() + work as u64);
    }

    fn cells(&self, sizes: &[f64]) -> f64 {
        if self.kind == FilterKind::Cartesian {
            return sizes.iter().product();
        }
        self.count(1 + self.stored.sets().len() / 16);
        self.stored.cells(sizes)
    }

    pub(super) fn cells_of_equal(&self, size: f64) -> f64 {
        if self.kind == FilterKind::Cartesian {
            return size.powi(self.attributes() as i32);
        }
        self.stored.cells_of_equal(size)
    }

    /// Returns the predicted rate of each wanted combination.
    pub(super) fn rates(&self, sizes: &[f64], probes: u32) -> Vec<Option<f64>> {
        self.rates_of(&self.loads(sizes), probes)
    }

    fn rates_of(&self, loads: &Loads, probes: u32) -> Vec<Option<f64>> {
        let rate = |(part, known, times): &Load| part.rate(probes, *known).powi(*times);
        let rates = loads.iter().map(|asked| asked.iter().map(rate).product());
        self.count(loads.iter().map(Vec::len).sum());
        rates.map(Some).collect()
    }

    fn loads(&self, sizes: &[f64]) -> Loads {
        let of = |subsets: &Vec<u32>| {
            let mut loads: Vec<Load> = Vec::new();
            for &subset in subsets {
                let (part, known) = self.load(subset, subsets.len() > 1, sizes);
                match loads.last_mut() {
                    Some((last, of_last, times)) if (*last, *of_last) == (part, known) => {
                        *times += 1;
                    }
                    _ => loads.push((part, known, 1)),
                }
            }
            loads
        };
        self.count(self.asked.iter().map(Vec::len).sum());
        self.asked.iter().map(of).collect()
    }

    /// Returns the load of a stored combination, which answers a query alone or with others, and the
    /// probability that its values occur: the only value of a query is new, or it were no negative.
    fn load(&self, subset: u32, with_others: bool, sizes: &[f64]) -> (PartLoad, f64) {
        let PlanRequest { elements, known, .. } = self.request;
        let is_new = subset.is_power_of_two() && !with_others;
        let part = PartLoad::new(sizes, subset, *known > 0.0, |mask| elements.of(mask));
        (part, if is_new { 0.0 } else { *known })
    }

    /// Returns these sizes with the best k, or with a given one.
    pub(super) fn candidate(&self, sizes: &[f64], probes: Option<u32>) -> Candidate {
        let loads = self.loads(sizes);
        let with = |probes: u32| (probes, self.weighted_rate(&loads, probes));
        let (probes, fpr) = match probes {
            Some(probes) => with(probes),
            None => (1..=MAX_PROBES as u32)
                .map(with)
                .min_by(|a, b| a.1.total_cmp(&b.1))
                .expect("there is at least one number of hash functions"),
        };
        let rates = self.rates_of(&loads, probes).into_iter().flatten();
        let asked = rates.zip(&self.request.wanted);
        let asked = asked.filter(|(_, wanted)| wanted.weight > 0.0);
        Candidate {
            sizes: sizes.to_vec(),
            probes,
            fpr,
            worst: asked.map(|(rate, _)| rate).fold(0.0, f64::max),
            cells: self.cells(sizes),
            goal: self.request.goal,
        }
    }

    fn weighted_rate(&self, loads: &Loads, probes: u32) -> f64 {
        let rates = self.rates_of(loads, probes);
        let shares = self.shares.iter();
        let sum: f64 = shares.zip(rates).map(|(share, rate)| share * rate.unwrap_or(1.0)).sum();
        sum / self.shares.iter().sum::<f64>()
    }

    /// Returns whether any k has this rate at these sizes.
    fn reaches(&self, sizes: &[f64], fpr: f64) -> bool {
        let loads = self.loads(sizes);
        (1..=MAX_PROBES as u32).any(|probes| self.weighted_rate(&loads, probes) <= fpr)
    }

    /// Returns the largest sizes with the memory of the goal, or the least that reach its rate, in
    /// proportion to weights or equal. `None` if no size does, or if it takes more than `most`
    /// cells.
    pub(super) fn fit(&self, weights: Option<&[f64]>, most: f64) -> Option<Candidate> {
        let attributes = self.attributes();
        let heaviest = weights.map_or(1.0, |w| w.iter().copied().fold(0.0, f64::max));
        let sizes = |heavy: u64| -> Vec<f64> {
            let heavy = heavy as f64;
            weights.map_or_else(
                || vec![heavy; attributes],
                |weights| {
                    let size = |weight: &f64| (heavy * (weight / heaviest)).floor().max(1.0);
                    weights.iter().map(size).collect()
                },
            )
        };
        let largest = |most: f64| {
            if most.is_infinite() {
                return Some(MOST_SIZE);
            }
            last(1, MOST_SIZE, |heavy| match weights {
                None => self.cells_of_equal(heavy as f64) <= most,
                Some(_) => self.cells(&sizes(heavy)) <= most,
            })
        };
        let heavy = match self.request.goal {
            Goal::Memory { bytes } => largest(most.min(bytes as f64 * 8.0))?,
            Goal::Rate { fpr } => {
                let reaches = |heavy: u64| self.reaches(&sizes(heavy), fpr);
                let largest = largest(most)?;
                if !reaches(largest) {
                    return None;
                }
                least(1, largest, reaches)?
            }
            Goal::AttributeRate { fpr } => {
                let probes = table_probes(fpr).clamp(1, MAX_PROBES as u32);
                return Some(self.candidate(&self.sizes_of_table(fpr), Some(probes)));
            }
        };
        Some(self.candidate(&sizes(heavy), None))
    }

    /// Returns the sizes by the rule of the paper's tables.
    fn sizes_of_table(&self, fpr: f64) -> Vec<f64> {
        let elements = &self.request.elements;
        let size = |elements: f64| attribute_size(fpr, elements).floor().max(1.0);
        let singles = (0..self.attributes()).map(|one| elements.of(1 << one));
        if self.kind == FilterKind::Wcbfm {
            singles.map(size).collect()
        } else {
            vec![size(singles.fold(1.0, f64::max)); self.attributes()]
        }
    }
}
