//! Recommends a structure, and says why.

use super::matrices::{NEGLIGIBLE, holds, occurring_apart};
use super::{Goal, PlanRequest, PlanRow, Structure};
use crate::filters::{FilterKind, FilterSpec};
use std::fmt::Write as _;

/// Factor by which a matrix must be better: its prediction is for evenly spread values only.
const MATRIX_MARGIN: f64 = 10.0;

/// Factor by which any other structure must be better than the subset filter, which touches one
/// cache line a combination and counts each of them.
const SUBSET_MARGIN: f64 = 1.5;

/// Structures of each sort that are measured.
const MEASURED: usize = 2;

/// Factor by which a structure must have a lower measured rate than the subset filter.
const MEASURED_MARGIN: f64 = 1.2;

/// Returns the rows that are worth measuring: those that cost least by formula, of the matrices and
/// of the others.
pub(super) fn candidates(request: &PlanRequest, rows: &[PlanRow]) -> Vec<usize> {
    let mut numbers: Vec<usize> = (0..rows.len()).filter(|&it| is_able(&rows[it])).collect();
    let cost = |number: &usize| cost(request, &rows[*number]);
    numbers.sort_by(|a, b| cost(a).total_cmp(&cost(b)));
    let mut left = [MEASURED; 2];
    numbers.retain(|&number| {
        let left = &mut left[usize::from(is_matrix(&rows[number]))];
        let is_kept = *left > 0;
        *left = left.saturating_sub(1);
        is_kept
    });
    numbers
}

/// Returns the structure to take, if any does what is wanted, and why.
pub(super) fn recommend(request: &PlanRequest, rows: &[PlanRow]) -> (Option<Structure>, String) {
    if let Some(best) = best_measured(request, rows) {
        return (Some(best.structure), measured_reason(request, best, rows));
    }
    let able = rows.iter().filter(|row| is_able(row));
    let best = able
        .filter(|row| {
            !is_matrix(row) || !request.skewed && holds(row, occurring_apart(request, row))
        })
        .min_by(|a, b| cost(request, a).total_cmp(&cost(request, b)));
    let none = "none of these structures tells all wanted combinations; the subset filter stores each of them, and more memory helps it";
    best.map_or((None, none.to_owned()), |best| (Some(best.structure), reason(request, best, rows)))
}

/// Returns the best of those that were measured: by the rate, or by the memory of those that keep
/// to the rate that is asked. Of equal ones the formula decides.
fn best_measured<'a>(request: &PlanRequest, rows: &'a [PlanRow]) -> Option<&'a PlanRow> {
    let measured = rows.iter().filter_map(|row| Some((row, row.measured.as_ref()?.weighted)));
    let able = measured.filter(|(_, rate)| *rate <= FilterSpec::MOST_REPEATS);
    let key = |(row, rate): &(&PlanRow, f64)| {
        let is_subset = row.structure == Structure::Filter(FilterKind::Subset);
        let margin = if is_subset { 1.0 } else { MEASURED_MARGIN };
        let too_high = asked_rate(request).is_none_or(|fpr| *rate > fpr * RATE_MARGIN);
        let by = if too_high { *rate } else { predicted(request, row) };
        (too_high, by * margin, cost(request, row))
    };
    let best = able.min_by(|a, b| {
        let (a, b) = (key(a), key(b));
        a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)).then(a.2.total_cmp(&b.2))
    });
    best.map(|(row, _)| row)
}

/// Factor by which a measured rate may exceed the one that is asked for: it is measured with a
/// limited number of queries.
const RATE_MARGIN: f64 = 1.5;

fn measured_reason(request: &PlanRequest, best: &PlanRow, rows: &[PlanRow]) -> String {
    let rate = |row: &PlanRow| row.measured.as_ref().map(|measured| measured.weighted);
    let all = rows.iter().filter(|row| row.measured.is_some());
    let names: Vec<&str> = all.clone().map(|row| row.structure.name()).collect();
    let most = asked_rate(request).map(|fpr| fpr * RATE_MARGIN);
    // By the rate, or by the memory of those that reach it.
    let amount = |row: &PlanRow| match most {
        None => rate(row),
        Some(most) if rate(row) <= Some(most) => row.memory_bytes,
        Some(_) => None,
    };
    let rival = all
        .filter_map(|row| Some((row, amount(row)?)))
        .filter(|&(_, least)| amount(best).is_some_and(|of_best| least < of_best))
        .min_by(|a, b| a.1.total_cmp(&b.1));
    let goal = match most {
        Some(_) => "reaches the rate in the least memory",
        None => "has the lowest measured rate",
    };
    let merit = match rival {
        _ if most.is_some() && rate(best) > most => {
            "has the lowest measured rate, but a higher one than asked".to_owned()
        }
        Some((rival, _)) => {
            let name = rival.structure.name();
            let nearly =
                format!("{goal} up to a factor of {MEASURED_MARGIN} ({name} is better by less)");
            match most {
                Some(_) => format!("{nearly} and counts each combination"),
                None => format!("{nearly}, touches one cache line a combination and counts each"),
            }
        }
        None if most.is_some() => goal.to_owned(),
        None => format!("{goal} in this memory"),
    };
    let were = if names.len() == 1 { "was" } else { "were" };
    format!(
        "{} {merit}; {} {were} built of the sample and asked for absent elements{}",
        best.structure.name(),
        names.join(", "),
        exact_too(request, rows)
    )
}

/// Returns whether a structure is a filter that says no to some negatives of each wanted
/// combination.
fn is_able(row: &PlanRow) -> bool {
    let says_no = |rate: &Option<f64>| rate.is_some_and(|rate| rate <= FilterSpec::MOST_REPEATS);
    matches!(row.structure, Structure::Filter(_))
        && row.fits
        && row.rates.iter().chain([&row.weighted]).all(says_no)
}

/// Returns the quantity to minimize: rate, memory, or the inverse of the elements, with the margin
/// of the structure.
fn cost(request: &PlanRequest, row: &PlanRow) -> f64 {
    let margin = if is_matrix(row) {
        MATRIX_MARGIN
    } else if row.structure == Structure::Filter(FilterKind::Subset) {
        1.0
    } else {
        SUBSET_MARGIN
    };
    let cost = predicted(request, row);
    // Rates below this one are equally good.
    let least = if is_for_memory(request) { NEGLIGIBLE } else { 0.0 };
    cost.max(least) * margin
}

/// Returns the same quantity by formula, without margins.
fn predicted(request: &PlanRequest, row: &PlanRow) -> f64 {
    match request.goal {
        Goal::Memory { .. } => row.weighted.unwrap_or(1.0),
        _ if request.most_elements_in.is_some() => 1.0 / row.elements.unwrap_or(0) as f64,
        _ => row.memory_bytes.unwrap_or(f64::INFINITY),
    }
}

/// Returns the weighted rate that the least memory has to reach, if that is the goal.
fn asked_rate(request: &PlanRequest) -> Option<f64> {
    match request.goal {
        Goal::Rate { fpr } if request.most_elements_in.is_none() => Some(fpr),
        _ => None,
    }
}

const fn is_for_memory(request: &PlanRequest) -> bool {
    matches!(request.goal, Goal::Memory { .. })
}

fn is_matrix(row: &PlanRow) -> bool {
    row.structure.filter().is_some_and(FilterKind::is_matrix)
}

fn reason(request: &PlanRequest, best: &PlanRow, rows: &[PlanRow]) -> String {
    let rival = better_by_formula(request, best, rows, false);
    let mut reason = format!("{}{} ", restriction(request, best, rows), best.structure.name());
    reason.push_str(&merit(request, best, rows));
    if is_matrix(best) {
        reason.push_str(", if values are evenly spread and the parts of a negative do not occur");
    }
    if rival.is_some() && best.structure == Structure::Filter(FilterKind::Subset) {
        reason.push_str(", touches one cache line a combination and counts each");
    }
    reason.push_str(exact_too(request, rows));
    reason
}

/// Returns which structures the best one was chosen from, if others were left out.
fn restriction(request: &PlanRequest, best: &PlanRow, rows: &[PlanRow]) -> &'static str {
    let always_yes = |row: &PlanRow| {
        row.rates.iter().flatten().any(|&rate| rate > FilterSpec::MOST_REPEATS)
            && predicted(request, row) < predicted(request, best)
    };
    if rows.iter().any(|row| row.answers_all() && always_yes(row)) {
        "of the structures that answer every wanted combination, and not always by yes, "
    } else if rows.iter().any(|row| !row.answers_all()) {
        "of the structures that answer every wanted combination "
    } else {
        ""
    }
}

/// Returns the structure that is better than the best by formula, among the matrices or among the
/// others: the rates of matrices hold for even values only.
fn better_by_formula<'a>(
    request: &PlanRequest,
    best: &PlanRow,
    rows: &'a [PlanRow],
    of_matrices: bool,
) -> Option<&'a PlanRow> {
    let better = rows.iter().filter(|row| {
        row.structure != best.structure
            && is_able(row)
            && is_matrix(row) == of_matrices
            && predicted(request, row) < predicted(request, best) * (1.0 - 1e-9)
    });
    better.min_by(|a, b| predicted(request, a).total_cmp(&predicted(request, b)))
}

/// Returns what the best structure is best at, and which ones are better by formula.
fn merit(request: &PlanRequest, best: &PlanRow, rows: &[PlanRow]) -> String {
    let [rival, matrix] = [false, true].map(|of| better_by_formula(request, best, rows, of));
    let lowest = [rival, matrix].into_iter().flatten();
    let lowest = lowest.min_by(|a, b| predicted(request, a).total_cmp(&predicted(request, b)));
    // With its margin it was taken for a rate that cannot be better.
    let is_next_to_none = is_for_memory(request)
        && best.weighted.is_some_and(|rate| rate < NEGLIGIBLE * SUBSET_MARGIN);
    if let Some(lowest) = lowest.filter(|_| is_next_to_none) {
        return format!(
            "has one of the rates in this memory that are next to none ({} has a lower one)",
            lowest.structure.name()
        );
    }
    let mut merit = String::from(match request.goal {
        Goal::Memory { .. } => "has the lowest predicted rate in this memory",
        _ if request.most_elements_in.is_some() => "holds the most elements",
        Goal::Rate { .. } => "reaches the rate in the least memory",
        Goal::AttributeRate { .. } => "needs the least memory for this rate",
    });
    if let Some(matrix) = matrix {
        let _ = write!(
            merit,
            " that does not depend on how values are spread ({} is better by formula)",
            matrix.structure.name()
        );
    }
    if let Some(rival) = rival {
        let _ = write!(
            merit,
            " up to a factor of {SUBSET_MARGIN} ({} is better by less)",
            rival.structure.name()
        );
    }
    merit
}

/// Returns whether no filter is needed.
fn exact_too(request: &PlanRequest, rows: &[PlanRow]) -> &'static str {
    let exact = rows.iter().find(|row| row.structure == Structure::Exact);
    match (exact, request.goal) {
        (Some(exact), Goal::Memory { .. }) if exact.fits => {
            let is_address = |it: &String| matches!(it.split('/').next(), Some("src" | "dst"));
            if request.attributes.iter().any(is_address) {
                "; an exact set fits as well if no address is IPv6"
            } else {
                "; an exact set fits as well"
            }
        }
        _ => "",
    }
}
