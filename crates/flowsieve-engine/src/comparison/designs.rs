//! The design of a structure: its filter, sized for what is expected of a slice.

use super::plan::{ProbeRule, Sizes};
use super::results::Expected;
use super::trial::Trial;
use super::{ComparePlan, Contender};
use crate::filters::sizing::{MAX_PROBES, bloom_fpr_while_filling};
use crate::filters::{
    BloomSpec, CmdbfSpec, Combination, CounterSpec, FilterKind, FilterSpec, MdbfSpec, Sizing,
    SpecError, Workload,
};

/// Why a structure cannot be built: it needs more memory, or does not exist for these elements.
pub(super) struct Unfit {
    pub(super) needed_bytes: Option<u64>,
    pub(super) why: String,
}

impl From<String> for Unfit {
    fn from(why: String) -> Self {
        Self { needed_bytes: None, why }
    }
}

impl From<SpecError> for Unfit {
    fn from(error: SpecError) -> Self {
        let needed_bytes = match error {
            SpecError::TooLittleMemory { least, .. } => Some(least),
            _ => None,
        };
        Self { needed_bytes, why: error.to_string() }
    }
}

/// Chooses the structure of this size for the expected elements.
///
/// # Errors
///
/// The structure needs more memory, or cannot be built for these elements.
pub(super) fn design(
    contender: Contender,
    size: u64,
    expected: &Expected,
    plan: &ComparePlan,
    trial: Option<&Trial<'_>>,
) -> Result<CounterSpec, Unfit> {
    let spec = match (contender, contender.filter()) {
        (_, Some(kind)) => sized(kind, size, expected, plan)?,
        (Contender::Planned, _) => {
            let recommend = plan.recommend.ok_or_else(|| "nothing makes a plan".to_owned())?;
            let mut measure = |spec: &FilterSpec| trial?.rates(spec);
            let choose = |workload: &Workload<'_>| recommend(workload, size, &mut measure);
            let spec = with_workload(plan, expected, &plan.wanted, choose);
            let why = || format!("no structure for these queries fits into {size} bytes");
            return Ok(CounterSpec::Filter(spec.flatten().ok_or_else(why)?));
        }
        (Contender::Plain(structure), None) => {
            let (counter, least) = CounterSpec::of_registers(structure, size);
            return counter.ok_or_else(|| Unfit {
                needed_bytes: Some(least),
                why: format!(
                    "an {} counter needs at least {least} bytes, not {size}",
                    structure.name()
                ),
            });
        }
    };
    let given = match plan.probes {
        ProbeRule::Given(probes) => spec.with_probes(probes)?,
        ProbeRule::Formula | ProbeRule::Best => None,
    };
    // One without such a number stays as it is.
    Ok(CounterSpec::Filter(given.unwrap_or(spec)))
}

/// Chooses the filter of this size, with the best number of hash functions for the expected elements.
///
/// # Errors
///
/// Too little memory, or a kind of element that the structure is not for.
pub(super) fn sized(
    kind: FilterKind,
    size: u64,
    expected: &Expected,
    plan: &ComparePlan,
) -> Result<FilterSpec, SpecError> {
    let arity = plan.rule.kind.arity();
    if let Sizes::Arrays(_) = plan.sizes {
        // The plan has only structures with such arrays.
        if let Some(spec) = with_arrays(kind, arity, size, PAPER_PROBES) {
            return Ok(spec);
        }
    }
    let elements = match plan.probes {
        // Parts that are as many as the best number of hash functions need not hold all counters.
        // The cuts of a matrix do depend on what is expected.
        ProbeRule::Given(_) if !kind.is_matrix() => None,
        _ => expected.elements,
    };
    let spec = FilterSpec::new(kind, arity, Sizing::Memory { bytes: size, expected: elements })?;
    if let Some(probes) = best_probes(&spec, expected) {
        return Ok(spec.with_probes(probes)?.unwrap_or(spec));
    }
    let weigh = plan.weigh.filter(|_| kind.has_weights());
    let Some(weigh) = weigh else { return Ok(spec) };
    // Weigh for the queries that are asked; without any, for `--want` (by default whole elements).
    let asked = plan.asked();
    let share = 1.0 / asked.len() as f64;
    let equally: Vec<(u32, f64)> = asked.iter().map(|&mask| (mask, share)).collect();
    let wanted = if plan.queries { &equally } else { &plan.wanted };
    let weighted = with_workload(plan, expected, wanted, |workload| weigh(workload, size));
    Ok(weighted.flatten().unwrap_or(spec))
}

/// The number of hash functions of a structure of Bloom filters by which the least elements are
/// lost while it is filled, by formula: each array is filled with its own values. `None` for other
/// structures, and if nothing is expected.
///
/// Takes the smaller of two numbers if both lose less than a millionth of an element.
fn best_probes(spec: &FilterSpec, expected: &Expected) -> Option<u32> {
    const NEGLIGIBLE: f64 = 1e-6;
    let elements = expected.elements? as f64;
    let (bits, has_attributes, has_whole) = match spec {
        FilterSpec::Bloom(spec) => (spec.bits, false, true),
        FilterSpec::Mdbf(spec) => (spec.bits, true, false),
        FilterSpec::Cmdbf(spec) => (spec.bits, true, true),
        _ => return None,
    };
    let lost_in = |probes, values: f64| bloom_fpr_while_filling(bits as f64, probes, values);
    let lost = |probes: u32| {
        if !has_attributes {
            return lost_in(probes, elements);
        }
        // An element with a new value is lost if the array of that value says yes; most have one.
        let singles = expected.values.iter().filter(|(mask, _)| mask.is_power_of_two());
        let (lost, all) = singles.fold((0.0, 0.0), |(lost, all), &(_, values)| {
            let values = values.max(1) as f64;
            (lost + values * lost_in(probes, values), all + values)
        });
        // One without is lost unless there is an array of whole elements, and then in that one.
        let of_new = (1.0 - expected.known) * lost / all;
        if has_whole { lost_in(probes, elements) * (expected.known + of_new) } else { of_new }
    };
    let mut best = (1, lost(1));
    for probes in 2..=MAX_PROBES as u32 {
        if best.1 * elements < NEGLIGIBLE {
            break;
        }
        let lost = lost(probes);
        if lost < best.1 {
            best = (probes, lost);
        }
    }
    Some(best.0).filter(|_| best.1.is_finite())
}

/// Hash functions of structures with equal arrays, as in the paper.
const PAPER_PROBES: u32 = 4;

/// Returns the filter with arrays of `bits` bits each, or `None` if this kind has no arrays.
pub(super) fn with_arrays(
    kind: FilterKind,
    attributes: usize,
    bits: u64,
    probes: u32,
) -> Option<FilterSpec> {
    let combined = |combination| CmdbfSpec { attributes, bits, probes, combination }.into();
    Some(match kind {
        FilterKind::Bloom => BloomSpec { bits, probes }.into(),
        FilterKind::Mdbf => MdbfSpec { attributes, bits, probes }.into(),
        FilterKind::Cmdbf => combined(Combination::Joint),
        FilterKind::CmdbfXor => combined(Combination::XorSame),
        FilterKind::CmdbfXorIndependent => combined(Combination::XorIndependent),
        _ => return None,
    })
}

/// Returns `make` of these queries, or `None` if their numbers of values are unknown.
fn with_workload<T>(
    plan: &ComparePlan,
    expected: &Expected,
    wanted: &[(u32, f64)],
    make: impl FnOnce(&Workload<'_>) -> T,
) -> Option<T> {
    let values = |mask: u32| {
        let known = expected.values.iter().find(|(of, _)| *of == mask);
        let values = known.map(|&(_, values)| values).or(expected.elements);
        values.map(|values| values.max(1) as f64)
    };
    if wanted.is_empty() || wanted.iter().any(|&(mask, _)| values(mask).is_none()) {
        return None;
    }
    Some(make(&Workload {
        attributes: plan.rule.kind.arity(),
        wanted,
        known: 1.0,
        values: &|mask| values(mask).unwrap_or(1.0),
    }))
}
