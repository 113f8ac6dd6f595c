//! The answers of the planner.

use super::request::DIGESTS_ALIKE;
use super::{PlanRequest, structures};
use crate::filters::{FilterKind, FilterSpec, Shape, Structure, Workload};

/// The plan of every structure, and the one that is recommended.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// One row for each structure, in the order of the request.
    pub rows: Vec<PlanRow>,
    /// The structure to take, if any does what is wanted.
    pub recommended: Option<Structure>,
    /// Why, in a sentence.
    pub reason: String,
}

/// The plan of one structure.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanRow {
    /// The structure.
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
    /// The same as they were measured on a sample, if the structure was among the best.
    pub measured: Option<Measured>,
    /// Predicted standard error of the unbiased count of whole elements, as a share of them; `None`
    /// where there is no formula for it.
    pub count_std_error: Option<f64>,
    /// Bytes that would give it the rate of the recommended structure.
    pub same_rate_bytes: Option<f64>,
    /// The most elements that fit, where that was asked.
    pub elements: Option<u64>,
    /// The largest number of elements before sizes and elements are rounded down to whole numbers.
    pub elements_unrounded: Option<f64>,
    /// Remarks.
    pub notes: Vec<String>,
}

/// False-positive rates that were measured on a sample.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// Rate of each wanted combination; `None` if the structure does not answer it.
    pub rates: Vec<Option<f64>>,
    /// Weighted rate, with 1 for what is not answered.
    pub weighted: f64,
}

/// The planned parameters.
#[derive(Clone, Debug, PartialEq)]
pub enum Design {
    /// A filter, which may be larger than any that can be built.
    Filter(FilterSpec),
    /// A `HyperLogLog` or an `ExaLogLog` for each wanted combination.
    Registers {
        /// Registers of each.
        registers: u64,
        /// Wanted combinations.
        counts: u32,
    },
    /// A hash set for each wanted combination.
    Exact,
}

impl PlanRow {
    /// Makes a row with the predicted rates.
    pub(super) fn new(
        request: &PlanRequest,
        structure: Structure,
        design: Design,
        memory_bytes: f64,
        rates: Vec<Option<f64>>,
    ) -> Self {
        Self {
            design: Some(design),
            memory_bytes: Some(memory_bytes),
            fits: true,
            weighted: Some(request.with_workload(|asked| asked.weighted(&rates, Some(1.0)))),
            rates,
            notes: Vec::new(),
            ..Self::impossible(structure, 0, String::new())
        }
    }

    /// Makes the row of a structure for which there are no parameters.
    pub(super) fn impossible(structure: Structure, wanted: usize, note: String) -> Self {
        Self {
            structure,
            design: None,
            memory_bytes: None,
            fits: false,
            rates: vec![None; wanted],
            weighted: None,
            measured: None,
            count_std_error: None,
            same_rate_bytes: None,
            elements: None,
            elements_unrounded: None,
            notes: vec![note],
        }
    }

    /// Returns the filter of this row, with the row's parameters and bytes. `None` if the structure
    /// is no filter, or cannot be built.
    pub fn spec(&self) -> Option<&FilterSpec> {
        match &self.design {
            Some(Design::Filter(spec)) if self.fits && spec.check().is_ok() => Some(spec),
            _ => None,
        }
    }

    /// Marks a filter that is too large, or has too many combinations, as one that does not fit,
    /// and says why.
    pub(super) fn reject_what_cannot_be_built(&mut self) {
        if let (true, Some(Design::Filter(spec))) = (self.fits, &self.design)
            && let Err(error) = spec.check()
        {
            self.fits = false;
            self.notes.push(error.to_string());
        }
    }

    /// Adds a remark if a predicted rate is below the rate of digest collisions.
    pub(super) fn remark_digests(&mut self, request: &PlanRequest) {
        let wanted = request.wanted.iter();
        let added = wanted.map(|wanted| request.elements.of(wanted.mask) * DIGESTS_ALIKE);
        let is_below =
            |(rate, added): (&Option<f64>, f64)| rate.filter(|rate| *rate < added).map(|_| added);
        let most = self.rates.iter().zip(added).filter_map(is_below).reduce(f64::max);
        if let (Some(most), Some(Design::Filter(_))) = (most, &self.design) {
            self.notes.push(format!("digests of 64 bits add {most:.1e} to the predicted rate"));
        }
    }

    /// Predicts how exact its count is.
    pub(super) fn predict_count(&mut self, request: &PlanRequest) {
        let of_filter = |spec: &FilterSpec| {
            let values = |mask: u32| match self.elements {
                Some(elements) => elements as f64,
                None => request.elements.of(mask),
            };
            spec.count_std_error(&Workload {
                attributes: request.attributes.len(),
                wanted: &[],
                known: request.known,
                values: &values,
            })
        };
        self.count_std_error = match &self.design {
            Some(Design::Filter(_)) => self.spec().and_then(of_filter),
            Some(Design::Registers { registers, .. }) => {
                Some(structures::registers_std_error(self.structure, *registers))
            }
            Some(Design::Exact) => Some(0.0),
            None => None,
        };
    }

    /// Returns the planned sizes.
    pub fn shape(&self) -> Option<Shape> {
        let is_weighted = self.structure == Structure::Filter(FilterKind::Wcbfm);
        Some(match self.design.as_ref()? {
            Design::Filter(spec) if is_weighted => Shape { size: None, ..spec.shape() },
            Design::Filter(spec) => Shape { sizes: Vec::new(), ..spec.shape() },
            Design::Registers { registers, counts } => Shape {
                size: Some(*registers),
                unit: "registers",
                arrays: (*counts > 1).then_some(*counts),
                ..Shape::default()
            },
            Design::Exact => Shape::default(),
        })
    }

    /// Returns whether it answers every wanted combination.
    pub fn answers_all(&self) -> bool {
        self.rates.iter().all(Option::is_some)
    }
}
