//! Chooses a structure, its size and its parameters: pure functions of the request.
//!
//! A [`PlanRequest`] lists the combinations of attributes that queries will ask for, how many
//! distinct values each of them has, and the memory or the rate; [`plan`] returns a [`PlanRow`] for
//! every structure, and recommends one.
//!
//! # What is minimised
//!
//! `F = Σ w_S f_S`: the false-positive rate of a query, whose combination is S with probability
//! `w_S`. A combination that a structure cannot answer has f = 1 in this sum, because the structure
//! never says no to it.
//!
//! # Which negatives
//!
//! A query for S is negative if that combination of values does not occur. In a negative with two
//! or more attributes each *single* value still occurs with probability α ([`PlanRequest::known`]);
//! no combination of two or more of its values does. α = 1 is the worst case of traffic. A negative
//! with one attribute is a value that does not occur.
//!
//! The rates of matrices are for evenly spread values: each value of an attribute occurs with
//! equally many others, and the cells of these are taken into account (the papers' formula omits
//! them, and is too low where rows are short). They also depend on the second half of the
//! assumption: if all stored parts of a query occur, in different elements, a CBFM says yes with
//! certainty. An MDBF knows single values only: with α = 1 it says yes to every negative of two or
//! more attributes, and so does a CMDBF unless all attributes are asked for.
//!
//! # What is searched
//!
//! - Sizes and k: the best there are, by halving, and for every k from 1 to 32.
//! - Cuts of CBFM and WCBFM: a query looks at subsets of its own attributes only, so only the
//!   wanted combinations and their subsets are worth storing. If these make at most 6894 families,
//!   as many as there are for five attributes, each of them is looked at (with equal sizes): so for
//!   up to five attributes, and for more where what is wanted is small. Else a search climbs from
//!   several families (what is wanted, a part of it, all sets of few attributes, blocks, disjoint
//!   pairs cut), storing or cutting one combination after the other as long as that helps. Its work
//!   is bounded by 4 million rates, a fraction of a second; it need not find the best family.
//! - Weights of a WCBFM: for the eight best families by changing one attribute after the other,
//!   from several starts, with at most 16 million rates; never worse than equal sizes.
//! - The most elements: with the best cuts and weights that are found for one more than fit, at
//!   most six times.

#[cfg(test)]
mod climb_tests;
mod complex;
mod elements;
mod families;
mod matrices;
mod matrix;
mod recommend;
mod request;
mod row;
mod structures;
#[cfg(test)]
mod tests;

pub use elements::{Elements, Origin};
#[cfg(test)]
use families::all_cut_families;
pub use request::{Goal, PlanRequest, PlannerError, Wanted};
pub use row::{Design, Measured, Plan, PlanRow};

pub use crate::filters::Structure;
use crate::filters::sizing::last;
use crate::filters::{FilterKind, FilterSpec, Measure, Shape, Workload};
use matrices::WEIGHTS_WORK;
use request::LEAST_RATE;

/// Plans every structure of the request and recommends one.
///
/// # Errors
///
/// The first rule of [`PlanRequest::check`] that is broken.
pub fn plan(request: &PlanRequest) -> Result<Plan, PlannerError> {
    plan_measured(request, &mut |_| None)
}

/// Plans every structure of the request, measures those that are best by formula, and recommends one
/// by what was measured.
///
/// # Errors
///
/// As [`plan`].
pub fn plan_measured(
    request: &PlanRequest,
    measure: &mut Measure<'_>,
) -> Result<Plan, PlannerError> {
    request.check()?;
    let mut rows: Vec<PlanRow> = request
        .structures
        .iter()
        .map(|&structure| match request.most_elements_in {
            Some(bytes) => most_elements(request, structure, bytes),
            None => row_for(request, structure),
        })
        .collect();
    for row in &mut rows {
        row.reject_what_cannot_be_built();
    }
    for number in recommend::candidates(request, &rows) {
        let rates = rows[number].spec().and_then(&mut *measure);
        rows[number].measured = rates.map(|rates| Measured {
            weighted: request.with_workload(|asked| asked.weighted(&rates, Some(1.0))),
            rates,
        });
    }
    let (recommended, reason) = recommend::recommend(request, &rows);
    if let (Some(best), Goal::Memory { .. }) = (recommended, request.goal)
        && let Some(fpr) =
            rows.iter().find(|row| row.structure == best).and_then(|row| row.weighted)
        && fpr > 0.0
        && fpr < 1.0
    {
        let at_rate = PlanRequest { goal: Goal::Rate { fpr }, ..request.clone() };
        let counts_only = |row: &PlanRow| matches!(row.structure, Structure::Hll | Structure::Ell);
        for row in rows.iter_mut().filter(|row| !counts_only(row)) {
            row.same_rate_bytes = if row.structure == best {
                row.memory_bytes
            } else {
                let sized = row_for(&at_rate, row.structure);
                // A combination without an answer counts as 1, at any size.
                sized
                    .memory_bytes
                    .filter(|_| sized.weighted.is_some_and(|rate| rate <= fpr * 1.001))
            };
        }
    }
    for row in &mut rows {
        row.predict_count(request);
        row.remark_digests(request);
    }
    Ok(Plan { rows, recommended, reason })
}

/// Returns the weighted matrix of at most this many bytes with the lowest rate of these queries, if
/// it can be built: the plan of `wcbfm`.
pub fn weighted(workload: &Workload<'_>, bytes: u64) -> Option<FilterSpec> {
    let request = request_for(workload, bytes, vec![Structure::Filter(FilterKind::Wcbfm)])?;
    row_for(&request, request.structures[0]).spec().cloned()
}

/// Returns the filter of at most this many bytes that a plan for these queries recommends.
pub fn recommended(
    workload: &Workload<'_>,
    bytes: u64,
    measure: &mut Measure<'_>,
) -> Option<FilterSpec> {
    let request = request_for(workload, bytes, usual_structures().collect())?;
    let plan = plan_measured(&request, measure).ok()?;
    let row = plan.rows.iter().find(|row| Some(row.structure) == plan.recommended)?;
    row.spec().cloned()
}

/// The structures that are planned unless others are named: all but the variants of CMDBF.
pub fn usual_structures() -> impl Iterator<Item = Structure> {
    Structure::all().filter(|structure| !structure.filter().is_some_and(FilterKind::is_variant))
}

/// The combinations whose values a sample counts: all where they are few; else those that are wanted,
/// and the single attributes.
pub fn sampled(attributes: usize, wanted: impl Fn(u32) -> bool) -> Vec<u32> {
    let all = 1..=(1_u32 << attributes) - 1;
    let few = attributes <= 3;
    let full = all.end().to_owned();
    all.filter(|&mask| few || mask.is_power_of_two() || mask == full || wanted(mask)).collect()
}

/// The request for measured queries, if it holds.
fn request_for(
    workload: &Workload<'_>,
    bytes: u64,
    structures: Vec<Structure>,
) -> Option<PlanRequest> {
    let attributes = workload.attributes;
    let known = sampled(attributes, |mask| workload.wanted.iter().any(|(of, _)| *of == mask));
    let known = known.iter().map(|&mask| (mask, (workload.values)(mask) as u64, Origin::Measured));
    let known: Vec<_> = known.collect();
    let caps = vec![None; attributes];
    let wanted = workload.wanted.iter();
    let request = PlanRequest {
        attributes: (1..=attributes).map(|number| number.to_string()).collect(),
        wanted: wanted.map(|&(mask, weight)| Wanted { mask, weight }).collect(),
        elements: Elements::new(&caps, &known, None, |mask| format!("{mask:b}")).ok()?,
        goal: Goal::Memory { bytes },
        most_elements_in: None,
        known: workload.known,
        structures,
        cuts: None,
        weights: None,
        skewed: false,
        key_bytes: 0,
    };
    request.check().ok()?;
    Some(request)
}

/// Plans one structure.
fn row_for(request: &PlanRequest, structure: Structure) -> PlanRow {
    row_with(request, structure, WEIGHTS_WORK)
}

/// Plans one structure; the search for weights does at most this much work.
fn row_with(request: &PlanRequest, structure: Structure, weights_work: u64) -> PlanRow {
    match structure {
        Structure::Exact => structures::exact(request),
        Structure::Hll | Structure::Ell => structures::registers(request, structure),
        Structure::Filter(kind) if kind.is_matrix() => matrices::row(request, kind, weights_work),
        Structure::Filter(kind) => structures::row(request, kind),
    }
}

/// The largest number of elements (of values of every combination) for which the structure keeps
/// within memory and rate.
fn most_elements(request: &PlanRequest, structure: Structure, bytes: u64) -> PlanRow {
    let row = |request: &PlanRequest, elements: u64| {
        let elements = request.elements.all(elements as f64);
        let request = PlanRequest { elements, ..request.clone() };
        let share = WEIGHTS_WORK / u64::from(MOST_SEARCHES);
        row_with(&request, structure, share)
    };
    let upto = match request.goal {
        Goal::Rate { fpr } => MOST_ELEMENTS.min((fpr / LEAST_RATE) as u64),
        _ => MOST_ELEMENTS,
    };
    let fits = |row: &PlanRow| row.memory_bytes.is_some_and(|memory| memory <= bytes as f64);
    let mut most = 0;
    let mut best = row(request, 1);
    // Equal weights first, so that others are never worse.
    let is_weighted = structure.filter().is_some_and(FilterKind::has_weights);
    let equal = (is_weighted && request.weights.is_none()).then(|| PlanRequest {
        weights: Some(vec![1.0; request.attributes.len()]),
        ..request.clone()
    });
    for request in equal.iter().chain([request]) {
        // With the cuts and weights that are the best for one element more than fit, as many as
        // fit; and so on until one more fits with none.
        for _ in 0..MOST_SEARCHES {
            let next = row(request, most + 1);
            if most == upto || !fits(&next) {
                break;
            }
            let found = with_parameters_of(request, &next);
            let fits = |elements: u64| fits(&row(&found, elements));
            let Some(more) = last(most + 1, upto, fits) else { break };
            most = more;
            best = row(&found, most);
        }
    }
    if most == upto {
        let why = if upto < MOST_ELEMENTS { " at this rate" } else { "" };
        best.notes.push(format!("elements beyond {upto} are not planned for{why}"));
    }
    best.fits = most > 0;
    best.elements = Some(most);
    if let (Structure::Filter(kind), Goal::AttributeRate { fpr }) = (structure, request.goal) {
        best.elements_unrounded = matrices::real_elements(request, kind, bytes, fpr);
    }
    best
}

/// Largest number of elements that is planned for.
const MOST_ELEMENTS: u64 = 1 << 40;

/// Largest number of searches for cuts and weights while the number of elements is maximized; a few
/// suffice.
const MOST_SEARCHES: u32 = 6;

/// The request with the cuts and weights of a row, so that they are not searched for.
fn with_parameters_of(request: &PlanRequest, row: &PlanRow) -> PlanRequest {
    let shape = row.shape();
    let weights = |shape: &Shape| shape.sizes.iter().map(|&size| size as f64).collect();
    PlanRequest {
        weights: request.weights.clone().or(shape.as_ref().map(weights)),
        cuts: shape.map(|shape| shape.cuts),
        ..request.clone()
    }
}
