//! Which of the structures to take, and why.

use super::{Goal, PlanRequest, PlanRow, RateRule, Structure};
use crate::filters::FilterKind;
use std::fmt::Write as _;

/// The choice and its reason.
pub(super) struct Recommendation {
    pub(super) structure: Option<Structure>,
    pub(super) reason: String,
}

/// How much better a matrix must be: its prediction is for evenly spread values only.
const MATRIX_MARGIN: f64 = 10.0;

/// How much better any other structure must be than the subset filter, which touches one cache line a
/// combination and counts each of them.
const SUBSET_MARGIN: f64 = 1.5;

/// Rates below this one are as good as none.
const NEGLIGIBLE: f64 = 1e-9;

pub(super) fn recommend(request: &PlanRequest, rows: &[PlanRow]) -> Recommendation {
    let filters = rows
        .iter()
        .filter(|row| matches!(row.structure, Structure::Filter(_)));
    let able: Vec<&PlanRow> = filters
        .filter(|row| row.fits && row.answers_all() && row.weighted.is_some_and(|f| f < 1.0))
        .filter(|row| !(request.skewed && is_matrix(row)))
        .collect();
    let best = able
        .iter()
        .min_by(|a, b| cost(request, a).total_cmp(&cost(request, b)));
    let Some(best) = best else {
        return Recommendation {
            structure: None,
            reason: "none of these structures tells all wanted combinations; the subset filter stores each of them, and more memory helps it".into(),
        };
    };
    let structure = best.structure;
    Recommendation {
        structure: Some(structure),
        reason: reason(request, best, rows),
    }
}

/// What is to be small: rate, memory, or the inverse of the elements, with the margin of the structure.
fn cost(request: &PlanRequest, row: &PlanRow) -> f64 {
    let margin = if is_matrix(row) {
        MATRIX_MARGIN
    } else if row.structure == Structure::Filter(FilterKind::Subset) {
        1.0
    } else {
        SUBSET_MARGIN
    };
    unweighed(request, row) * margin
}

/// The same without the margin.
fn unweighed(request: &PlanRequest, row: &PlanRow) -> f64 {
    match request.goal {
        Goal::Memory { .. } => row.weighted.unwrap_or(1.0).max(NEGLIGIBLE),
        Goal::Rate { .. } | Goal::AttributeRate { .. } => row.memory_bytes.unwrap_or(f64::INFINITY),
        Goal::MostElements { .. } => 1.0 / row.elements.unwrap_or(0) as f64,
    }
}

fn is_matrix(row: &PlanRow) -> bool {
    row.structure.filter().is_some_and(FilterKind::is_matrix)
}

fn reason(request: &PlanRequest, best: &PlanRow, rows: &[PlanRow]) -> String {
    let name = best.structure.name();
    let of_those = if rows.iter().any(|row| !row.answers_all()) {
        "of the structures that answer every wanted combination "
    } else {
        ""
    };
    let what = match request.goal {
        Goal::Memory { .. } => "has the lowest predicted rate in this memory",
        Goal::Rate { .. } => "reaches the rate in the least memory",
        Goal::AttributeRate { .. } => "needs the least memory for this rate",
        Goal::MostElements {
            rate: RateRule::Weighted(_) | RateRule::Attribute(_),
            ..
        } => "holds the most elements",
    };
    let lower = |row: &&PlanRow| {
        row.structure != best.structure
            && matches!(row.structure, Structure::Filter(_))
            && row.fits
            && row.answers_all()
            && unweighed(request, row) < unweighed(request, best) * (1.0 - 1e-9)
    };
    let rival = rows
        .iter()
        .filter(lower)
        .min_by(|a, b| unweighed(request, a).total_cmp(&unweighed(request, b)));
    let is_next_to_none = |row: &PlanRow| {
        matches!(request.goal, Goal::Memory { .. }) && row.weighted.is_some_and(|f| f < NEGLIGIBLE)
    };
    if let Some(rival) = rival.filter(|rival| is_next_to_none(rival) && !is_matrix(rival)) {
        return format!(
            "{of_those}{name} has one of the rates in this memory that are next to none ({} has a lower one), touches one cache line a combination and counts each{}",
            rival.structure.name(),
            exact_too(request, rows)
        );
    }
    let mut reason = format!("{of_those}{name} {what}");
    if is_matrix(best) {
        reason.push_str(", if values are evenly spread and the parts of a negative do not occur");
    } else if let Some(rival) = rival {
        let rival_name = rival.structure.name();
        if is_matrix(rival) {
            let _ = write!(
                reason,
                " that does not depend on how values are spread ({rival_name} is better by formula)"
            );
        } else {
            let _ = write!(
                reason,
                " up to a factor of {SUBSET_MARGIN} ({rival_name} is better by less), touches one cache line a combination and counts each"
            );
        }
    }
    reason.push_str(exact_too(request, rows));
    reason
}

/// Whether no filter is needed.
fn exact_too(request: &PlanRequest, rows: &[PlanRow]) -> &'static str {
    let exact = rows.iter().find(|row| row.structure == Structure::Exact);
    match (exact, request.goal) {
        (Some(exact), Goal::Memory { .. }) if exact.fits => "; an exact set fits as well",
        _ => "",
    }
}
