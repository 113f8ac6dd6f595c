//! What the planner answers.

use super::{PlanRequest, Structure};

/// The plan of every structure, and the one that is recommended.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// One a structure, in the order of the request.
    pub rows: Vec<PlanRow>,
    /// The structure to take, if any does what is wanted.
    pub recommended: Option<Structure>,
    /// Why, in a sentence.
    pub reason: String,
}

/// One structure.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanRow {
    /// Which.
    pub structure: Structure,
    /// Its parameters, if there are any with which it does what is wanted.
    pub design: Option<Design>,
    /// Bytes of its arrays.
    pub memory_bytes: Option<f64>,
    /// Whether it keeps to the memory, or reaches the rate.
    pub fits: bool,
    /// Predicted false-positive rate of each wanted combination; `None` where it is not answered.
    pub rates: Vec<Option<f64>>,
    /// Weighted rate F, with 1 for what is not answered.
    pub weighted: Option<f64>,
    /// Bytes with which it would have the rate of the recommended structure.
    pub same_rate_bytes: Option<f64>,
    /// The most elements that fit, where that was asked.
    pub elements: Option<u64>,
    /// The same before sizes and elements are rounded down to whole numbers.
    pub elements_unrounded: Option<f64>,
    /// What there is to say about it.
    pub notes: Vec<String>,
}

/// Parameters of a structure.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Design {
    /// Hash functions (k); of a subset filter the bits of a whole element.
    pub probes: Option<u32>,
    /// Size of each array, part or attribute (m).
    pub size: Option<u64>,
    /// What `size` counts: `bits`, `lines`, `counters`, `buckets`, `addresses`, `values`, `registers`.
    pub unit: &'static str,
    /// Arrays, links or subtables of that size.
    pub arrays: Option<u32>,
    /// Sizes of a WCBFM's attributes (mᵢ).
    pub sizes: Vec<u64>,
    /// Cells of a matrix (M).
    pub cells: Option<f64>,
    /// Cuts of a matrix.
    pub cuts: Vec<u32>,
    /// Combinations that a subset filter stores besides the whole element, and their bits (`k_S`).
    pub stored: Vec<(u32, u32)>,
    /// Bits of a remainder, of a d-left filter.
    pub remainder_bits: Option<u32>,
    /// Bits of a counter.
    pub counter_bits: Option<u32>,
}

impl PlanRow {
    /// A row with the predicted rates.
    pub(super) fn new(
        request: &PlanRequest,
        structure: Structure,
        design: Design,
        memory_bytes: f64,
        rates: Vec<Option<f64>>,
    ) -> Self {
        Self {
            structure,
            design: Some(design),
            memory_bytes: Some(memory_bytes),
            fits: true,
            weighted: Some(weighted(request, &rates, Some(1.0))),
            rates,
            same_rate_bytes: None,
            elements: None,
            elements_unrounded: None,
            notes: Vec::new(),
        }
    }

    /// A structure for which there are no parameters. `answers` says for which combinations it would
    /// have an answer at all.
    pub(super) fn impossible(structure: Structure, wanted: usize, note: String) -> Self {
        Self {
            structure,
            design: None,
            memory_bytes: None,
            fits: false,
            rates: vec![None; wanted],
            weighted: None,
            same_rate_bytes: None,
            elements: None,
            elements_unrounded: None,
            notes: vec![note],
        }
    }

    /// Whether it answers every wanted combination.
    pub fn answers_all(&self) -> bool {
        self.rates.iter().all(Option::is_some)
    }
}

/// Σ w f over the wanted combinations; those without an answer count as `otherwise`, or not at all.
pub(super) fn weighted(
    request: &PlanRequest,
    rates: &[Option<f64>],
    otherwise: Option<f64>,
) -> f64 {
    let mut sum = 0.0;
    let mut of = 0.0;
    for (share, rate) in request.shares().into_iter().zip(rates) {
        if let Some(rate) = rate.or(otherwise) {
            sum += share * rate;
            of += share;
        }
    }
    if of > 0.0 { sum / of } else { 1.0 }
}
