//! Weights of a WCBFM: the sizes of the attributes in proportion to each other.

use super::PlanRequest;
use super::matrix::{Candidate, Matrix};

/// Factors by which weights are changed, large ones first.
const STEPS: [f64; 5] = [4.0, 2.0, 1.4, 1.15, 1.05];

/// Rounds over the attributes with one factor.
const MOST_ROUNDS: u32 = 12;

/// Looks for better weights than equal ones, until nothing helps or `work` is used up. Never returns
/// worse ones than `from`.
pub(super) fn best_weights(matrix: &Matrix<'_>, from: Candidate, work: &mut u64) -> Candidate {
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
