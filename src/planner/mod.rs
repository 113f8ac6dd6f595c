//! Which structure, how large, and with which parameters: pure functions over what is wanted.
//!
//! A [`PlanRequest`] says which combinations of attributes queries will ask for, how many distinct
//! values each of them has, and the memory or the rate; [`plan`] answers with a [`PlanRow`] for every
//! structure, and recommends one.
//!
//! # What is minimised
//!
//! `F = Σ w_S f_S`: the false-positive rate of a query, whose combination is S with probability `w_S`.
//! A combination that a structure cannot answer has f = 1 in this sum, because the structure never
//! says no to it.
//!
//! # Which negatives
//!
//! A query for S is negative if that combination of values does not occur. Of a negative with two or
//! more attributes each *single* value occurs all the same with probability α
//! ([`PlanRequest::known`]); no combination of two or more of its values does. α = 1 is the worst that
//! traffic has. A negative with one attribute is a value that does not occur.
//!
//! The rates of matrices are for values that are evenly spread: each value of an attribute occurs with
//! equally many others, whose cells in its rows are taken into account (the papers' formula leaves
//! them out, and is too low where rows are short). And they rest on the second half of the assumption: where all stored parts of a query do occur, apart from each
//! other, a CBFM says yes with certainty.

mod arrays;
mod climb;
mod complex;
mod elements;
mod families;
mod matrices;
mod matrix;
mod recommend;
mod request;
mod row;
mod search;
#[cfg(test)]
mod tests;
mod weights;

pub use elements::{Elements, Origin};
pub use families::all_cut_families;
pub use request::{Goal, PlanRequest, PlannerError, RateRule, Structure, Wanted};
pub use row::{Design, Plan, PlanRow};

use crate::filters::FilterKind;

/// Plans every structure of the request and recommends one.
///
/// # Errors
///
/// The first rule of [`PlanRequest::check`] that is broken.
pub fn plan(request: &PlanRequest) -> Result<Plan, PlannerError> {
    request.check()?;
    let mut rows: Vec<PlanRow> = request
        .structures
        .iter()
        .map(|&structure| match request.goal {
            Goal::MostElements { bytes, rate } => {
                most_elements(request, structure, bytes, rate.into())
            }
            goal => row_for(request, structure, goal),
        })
        .collect();
    let recommended = recommend::recommend(request, &rows);
    if let (Some(best), Goal::Memory { .. }) = (recommended.structure, request.goal)
        && let Some(fpr) = rows
            .iter()
            .find(|row| row.structure == best)
            .and_then(|row| row.weighted)
        && fpr > 0.0
        && fpr < 1.0
    {
        for row in &mut rows {
            row.same_rate_bytes = if row.structure == best {
                row.memory_bytes
            } else {
                row_for(request, row.structure, Goal::Rate { fpr }).memory_bytes
            };
        }
    }
    Ok(Plan {
        rows,
        recommended: recommended.structure,
        reason: recommended.reason,
    })
}

/// One structure for a goal.
fn row_for(request: &PlanRequest, structure: Structure, goal: Goal) -> PlanRow {
    match structure {
        Structure::Exact => arrays::exact(request, goal),
        Structure::Hll => arrays::hll(request, goal),
        Structure::Filter(
            kind @ (FilterKind::Cartesian | FilterKind::Bfm | FilterKind::Cbfm | FilterKind::Wcbfm),
        ) => matrices::row(request, kind, goal),
        Structure::Filter(kind) => arrays::row(request, kind, goal),
    }
}

/// The largest number of elements (of values of every combination) for which the structure keeps
/// within memory and rate.
fn most_elements(request: &PlanRequest, structure: Structure, bytes: u64, rate: Goal) -> PlanRow {
    let with = |elements: u64| PlanRequest {
        elements: request.elements.all(elements as f64),
        ..request.clone()
    };
    let row = |elements: u64| row_for(&with(elements), structure, rate);
    let fits = |elements: u64| {
        row(elements)
            .memory_bytes
            .is_some_and(|memory| memory <= bytes as f64)
    };
    let most = search::last(1, 1 << 40, fits);
    let mut row = row(most.unwrap_or(1));
    row.fits = most.is_some();
    row.elements = Some(most.unwrap_or(0));
    if let (Structure::Filter(kind), Goal::AttributeRate { fpr }) = (structure, rate) {
        row.elements_unrounded = matrices::real_elements(request, kind, bytes, fpr);
    }
    row
}
