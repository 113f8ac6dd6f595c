//! Weights of a WCBFM: how large each attribute is beside the others.

use super::matrix::{Candidate, Matrix};
use super::{PlanRequest, Target};

/// Factors by which weights are changed, large ones first.
const STEPS: [f64; 5] = [4.0, 2.0, 1.4, 1.15, 1.05];

/// Rounds over the attributes with one factor.
const MOST_ROUNDS: u32 = 12;

/// Better weights than equal ones, by changing one after the other as long as that helps and until
/// `work` is done. Never worse than `from`.
pub(super) fn best_weights(
    matrix: &Matrix<'_>,
    goal: Target,
    from: Candidate,
    work: &mut u64,
) -> Candidate {
    let mut best = from;
    matrix.take_work();
    for start in starts(matrix.request, &best) {
        let Some(mut here) = matrix.fit(Some(&start), goal, f64::INFINITY) else {
            continue;
        };
        let mut weights = start;
        for step in STEPS {
            let mut improved = true;
            let mut rounds = 0;
            while improved && rounds < MOST_ROUNDS {
                improved = false;
                rounds += 1;
                for attribute in 0..weights.len() {
                    for factor in [step, 1.0 / step] {
                        let mut tried = weights.clone();
                        tried[attribute] *= factor;
                        let most = match goal {
                            Target::Rate { .. } => here.cells,
                            _ => f64::INFINITY,
                        };
                        if let Some(found) = matrix.fit(Some(&tried), goal, most)
                            && found.is_better(&here, goal)
                        {
                            here = found;
                            weights = tried;
                            improved = true;
                        }
                        *work = work.saturating_sub(matrix.take_work());
                        if *work == 0 {
                            return if here.is_better(&best, goal) { here } else { best };
                        }
                    }
                }
            }
        }
        if here.is_better(&best, goal) {
            best = here;
        }
    }
    best
}

/// Weights to start from, the most promising first. From equal sizes there may be no way that goes
/// down from its first step on.
fn starts(request: &PlanRequest, equal: &Candidate) -> Vec<Vec<f64>> {
    let attributes = request.attributes.len();
    // How often an attribute is asked for.
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
        // What nobody asks for has one place.
        each(&|one| if asked[one] > 0.0 { 1.0 } else { 0.0 }),
        each(&values),
        each(&|one| asked[one] * values(one)),
    ];
    for large in 0..attributes {
        for factor in [64.0, 4096.0] {
            starts.push(each(&|one| if one == large { factor } else { 1.0 }));
        }
    }
    // Those that are in proportion to each other are the same.
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
