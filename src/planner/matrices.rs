//! Cartesian join, BFM, CBFM and WCBFM: sizes, k, cuts, and the weights of a WCBFM, which are the
//! sizes of the attributes in proportion to each other.

use super::complex::Stored;
use super::families::{Sized, all, best_families};
use super::matrix::{Candidate, Matrix};
use super::{Design, Goal, Origin, PlanRequest, PlanRow, Structure};
use crate::filters::matrix_sizing::attribute_size;
use crate::filters::sizing::halved;
use crate::filters::{
    CartesianSpec, FilterKind, FilterSpec, IndexMap, MAX_COMBINATIONS, MatrixSpec,
};

/// Rates below this one are as good as none.
pub(super) const NEGLIGIBLE: f64 = 1e-9;

/// Work of the search for weights, in rates of one combination with one k.
pub(super) const WEIGHTS_WORK: u64 = 16_000_000;

/// Plans one of the matrices; the search for weights does at most this much work.
pub(super) fn row(request: &PlanRequest, kind: FilterKind, weights_work: u64) -> PlanRow {
    let mut found = match given_cuts(request, kind) {
        Some(cuts) => all(request, kind, [stored(request, cuts)]),
        None => best_families(request, kind),
    };
    let by_table = matches!(request.goal, Goal::AttributeRate { .. });
    if kind.has_weights() && request.weights.is_none() && !by_table {
        weigh(&mut found, weights_work);
    }
    let found = found.into_iter();
    let best = found.reduce(|best, next| if next.1.is_better(&best.1) { next } else { best });
    match (best, request.goal) {
        (Some((matrix, chosen)), _) => matrix_row(&matrix, &chosen),
        (None, Goal::Rate { fpr }) => {
            let note = format!("no size has a rate of {fpr:.3e}");
            PlanRow::impossible(Structure::Filter(kind), request.wanted.len(), note)
        }
        (None, _) => {
            let cuts = given_cuts(request, kind).unwrap_or_default();
            smallest(request, kind, cuts)
        }
    }
}

/// Returns the cuts of the request; none for structures without cuts.
fn given_cuts(request: &PlanRequest, kind: FilterKind) -> Option<&[u32]> {
    if kind.has_cuts() { request.cuts.as_deref() } else { Some(&[]) }
}

fn stored(request: &PlanRequest, cuts: &[u32]) -> Stored {
    Stored::new(request.attributes.len(), cuts)
}

/// Gives each family the best weights that are found with its share of the work.
fn weigh(found: &mut [Sized<'_>], work: u64) {
    let mut left = work;
    let mut families = found.len() as u64;
    for (matrix, candidate) in found {
        let share = left / families;
        let mut work = share;
        *candidate = best_weights(matrix, candidate.clone(), &mut work);
        left -= share - work;
        families -= 1;
    }
}

/// Returns the smallest possible version of a matrix that does not fit.
fn smallest(request: &PlanRequest, kind: FilterKind, cuts: &[u32]) -> PlanRow {
    let matrix = Matrix::new(request, kind, stored(request, cuts));
    let least = matrix.candidate(&vec![1.0; request.attributes.len()], None);
    let mut row = matrix_row(&matrix, &least);
    row.fits = false;
    let bytes = (least.cells / 8.0).ceil();
    row.notes.insert(0, format!("the smallest has {bytes} bytes"));
    row
}

fn matrix_row(matrix: &Matrix<'_>, chosen: &Candidate) -> PlanRow {
    let (request, kind) = (matrix.request, matrix.kind);
    let sizes: Vec<u64> = chosen.sizes.iter().map(|&size| size as u64).collect();
    let spec = if kind == FilterKind::Cartesian {
        FilterSpec::Cartesian(CartesianSpec {
            attributes: sizes.len(),
            size: sizes[0],
            probes: chosen.probes,
        })
    } else {
        FilterSpec::Matrix(MatrixSpec {
            sizes,
            cuts: matrix.stored.cuts(),
            probes: chosen.probes,
            index_map: IndexMap::default(),
        })
    };
    let mut row = PlanRow::new(
        request,
        Structure::Filter(kind),
        Design::Filter(spec),
        (chosen.cells / 8.0).ceil(),
        matrix.rates(&chosen.sizes, chosen.probes),
    );
    row.notes.extend(doubts(request));
    let apart = occurring_apart(request, &row);
    if !holds(&row, apart) {
        let share = match apart {
            0.01.. => format!("{:.0} %", 100.0 * apart),
            _ => format!("{apart:.0e}"),
        };
        row.notes.push(format!(
            "all stored parts of at least {share} of the negatives occur in the sample: to these its answer is yes"
        ));
    }
    let parts = matrix.asked.iter().filter(|asked| asked.len() > 1);
    if parts.flatten().any(|part| part.count_ones() > 1) {
        row.notes.push(
            "the rate of a combination that is cut holds if no pair of its values occurs; if all do, apart, the answer is yes with certainty".into(),
        );
    }
    if chosen.cells / 8.0 > (1_u64 << 40) as f64 {
        row.fits = false;
        row.notes.push("larger than 1 TiB, the most that is built".into());
    }
    if !matrix.stored.is_buildable() && kind != FilterKind::Cartesian {
        row.fits = false;
        row.notes.push(format!(
            "stores {} combinations of attributes, and a matrix that is built has at most {MAX_COMBINATIONS}; a cbfm with more cuts has fewer",
            matrix.stored.sets().len()
        ));
    }
    row
}

/// Returns why the rates of a matrix may be higher than computed.
fn doubts(request: &PlanRequest) -> impl Iterator<Item = String> {
    let skewed = "the values of the sample are unevenly spread, for which the formula of a matrix does not hold: its rate is higher";
    let combined = request.wanted.iter().filter(|wanted| wanted.mask.count_ones() > 1);
    let attributes = combined.fold(0, |all, wanted| all | wanted.mask);
    let is_bound =
        |one: &u32| attributes & one != 0 && request.elements.origin(*one) == Origin::Bound;
    let bound = (0..u32::BITS).map(|attribute| 1 << attribute).find(is_bound).map(|one| {
        format!(
            "the rate of a combination is computed for as many values of {0} as there can be; with fewer it is higher: state them, such as --expect {0}=1000, or measure them with --sample",
            request.name(one)
        )
    });
    request.skewed.then(|| skewed.to_owned()).into_iter().chain(bound)
}

/// Returns the weighted share of negatives of which all stored parts occur, if values come together
/// by chance: a lower bound from what was measured in a sample, and 0 without one. A matrix that
/// answers a combination by its parts says yes to these.
pub(super) fn occurring_apart(request: &PlanRequest, row: &PlanRow) -> f64 {
    let Some(Design::Filter(FilterSpec::Matrix(spec))) = &row.design else { return 0.0 };
    let (elements, stored) = (&request.elements, Stored::new(spec.sizes.len(), &spec.cuts));
    let singles = |part: u32| (0..u32::BITS).map(|bit| 1 << bit).filter(move |one| part & one != 0);
    let occurs = |part: u32| {
        if singles(part).any(|one| elements.origin(one) != Origin::Measured) {
            return 0.0;
        }
        let values = singles(part).map(|one| elements.of(one));
        let least = match elements.origin(part) {
            Origin::Bound => values.clone().fold(1.0, f64::max),
            Origin::Given | Origin::Measured => elements.of(part),
        };
        least / values.product::<f64>()
    };
    let rates = request.wanted.iter().map(|wanted| {
        let parts = stored.maximal_subsets(wanted.mask);
        let known = request.known.powi(wanted.mask.count_ones() as i32);
        Some(match parts.len() {
            0 | 1 => 0.0,
            _ => known * parts.iter().map(|&part| occurs(part)).product::<f64>(),
        })
    });
    let rates: Vec<_> = rates.collect();
    request.with_workload(|asked| asked.weighted(&rates, Some(1.0)))
}

/// Returns whether the predicted rate of a row can hold if the parts of this share of negatives
/// occur.
pub(super) fn holds(row: &PlanRow, apart: f64) -> bool {
    apart <= row.weighted.unwrap_or(1.0).max(NEGLIGIBLE)
}

/// Returns the largest number of elements by the rule of the paper's tables, not rounded: m real,
/// all attributes alike.
pub(super) fn real_elements(
    request: &PlanRequest,
    kind: FilterKind,
    bytes: u64,
    fpr: f64,
) -> Option<f64> {
    if !kind.is_matrix() {
        return None;
    }
    let matrix = Matrix::new(request, kind, stored(request, given_cuts(request, kind)?));
    let most = bytes as f64 * 8.0;
    let (size, _) = halved((0.0, most), 200, |size| matrix.cells_of_equal(size) <= most);
    Some(size / attribute_size(fpr, 1.0))
}

/// Returns the predicted rates of a matrix with given parameters.
#[cfg(test)]
pub(super) fn rates_of(
    request: &PlanRequest,
    kind: FilterKind,
    cuts: &[u32],
    sizes: &[f64],
    probes: u32,
) -> Vec<Option<f64>> {
    Matrix::new(request, kind, stored(request, cuts)).rates(sizes, probes)
}

/// Factors by which weights are changed, large ones first.
const STEPS: [f64; 5] = [4.0, 2.0, 1.4, 1.15, 1.05];

/// Rounds over the attributes with one factor.
const MOST_ROUNDS: u32 = 12;

/// Looks for better weights than equal ones, until nothing helps or `work` is used up. Never returns
/// worse ones than `from`.
fn best_weights(matrix: &Matrix<'_>, from: Candidate, work: &mut u64) -> Candidate {
    let mut best = from;
    matrix.take_work();
    for weights in starts(matrix.request, &best) {
        let Some(here) = matrix.fit(Some(&weights), f64::INFINITY) else { continue };
        let found = Descent { matrix, here, weights }.run(work);
        if found.is_better(&best) {
            best = found;
        }
        if *work == 0 {
            break;
        }
    }
    best
}

/// A search that changes one weight after the other as long as that helps.
struct Descent<'a> {
    matrix: &'a Matrix<'a>,
    here: Candidate,
    weights: Vec<f64>,
}

impl Descent<'_> {
    fn run(mut self, work: &mut u64) -> Candidate {
        for step in STEPS {
            for _ in 0..MOST_ROUNDS {
                let mut improved = false;
                let attributes = 0..self.weights.len();
                let mut changes = attributes.flat_map(|one| [(one, step), (one, 1.0 / step)]);
                let is_over = changes.any(|(attribute, factor)| {
                    improved |= self.change(attribute, factor);
                    *work = work.saturating_sub(self.matrix.take_work());
                    *work == 0
                });
                if is_over {
                    return self.here;
                }
                if !improved {
                    break;
                }
            }
        }
        self.here
    }

    /// Multiplies a weight if that helps; returns whether it did.
    fn change(&mut self, attribute: usize, factor: f64) -> bool {
        let mut tried = self.weights.clone();
        tried[attribute] *= factor;
        let found = self.matrix.fit(Some(&tried), self.here.most_cells());
        let Some(found) = found.filter(|found| found.is_better(&self.here)) else {
            return false;
        };
        (self.here, self.weights) = (found, tried);
        true
    }
}

/// Returns weights to start from, the most promising first. From equal sizes, the first step of every
/// path may be uphill.
fn starts(request: &PlanRequest, equal: &Candidate) -> Vec<Vec<f64>> {
    let attributes = request.attributes.len();
    // The share of queries that ask for an attribute.
    let asked: Vec<f64> = (0..attributes)
        .map(|one| {
            let wanted = request.wanted.iter().zip(request.shares());
            let with = wanted.filter(|(wanted, _)| wanted.mask >> one & 1 == 1);
            with.map(|(_, share)| share).sum()
        })
        .collect();
    let values = |one: usize| request.elements.of(1 << one);
    let each =
        |weight: &dyn Fn(usize) -> f64| -> Vec<f64> { (0..attributes).map(weight).collect() };
    let mut starts = vec![
        equal.sizes.clone(),
        // An attribute that no query asks for has one position.
        each(&|one| if asked[one] > 0.0 { 1.0 } else { 0.0 }),
        each(&values),
        each(&|one| asked[one] * values(one)),
    ];
    for large in 0..attributes {
        for factor in [64.0, 4096.0] {
            starts.push(each(&|one| if one == large { factor } else { 1.0 }));
        }
    }
    // Weights in the same proportion are the same.
    let mut seen: Vec<Vec<f64>> = Vec::new();
    starts.retain(|start| {
        let heaviest = start.iter().copied().fold(0.0, f64::max);
        let scaled: Vec<f64> = start.iter().map(|weight| weight / heaviest).collect();
        let is_new = heaviest > 0.0 && !seen.contains(&scaled);
        seen.push(scaled);
        is_new
    });
    starts
}
