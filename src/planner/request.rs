//! Requests to the planner, and their rules.

use super::Elements;
use crate::filters::matrix_sizing::MAX_ATTRIBUTES;
use crate::filters::{FilterKind, Structure, Workload};

/// A combination of attributes that queries ask for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wanted {
    /// Its attributes, bit i for attribute i.
    pub mask: u32,
    /// Share of the queries, up to a common factor.
    pub weight: f64,
}

/// The goal that determines the size of a filter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Goal {
    /// The lowest rate F in this much memory.
    Memory {
        /// Bytes.
        bytes: u64,
    },
    /// The least memory for this rate F of the queries that the structure answers.
    Rate {
        /// The rate.
        fpr: f64,
    },
    /// The rule of the CBFM paper's tables: each attribute gets m = floor(n log2(e) log2(1/ε)) and
    /// k = floor(-log2 ε), as a standard filter for it alone would.
    AttributeRate {
        /// The rate ε of a single attribute.
        fpr: f64,
    },
}

/// Everything that a plan depends on.
#[derive(Clone, Debug)]
pub struct PlanRequest {
    /// Names of the attributes, in order.
    pub attributes: Vec<String>,
    /// The combinations that queries ask for.
    pub wanted: Vec<Wanted>,
    /// Distinct values of every combination.
    pub elements: Elements,
    /// The goal that determines sizes.
    pub goal: Goal,
    /// Plan for the most elements that keep to the rate of the goal in this many bytes.
    pub most_elements_in: Option<u64>,
    /// Share of the single values of a negative that occur (α).
    pub known: f64,
    /// The structures to plan.
    pub structures: Vec<Structure>,
    /// Cuts of the CBFM and the WCBFM; chosen by the planner if `None`.
    pub cuts: Option<Vec<u32>>,
    /// Weights of the WCBFM's attributes; chosen by the planner if `None`.
    pub weights: Option<Vec<f64>>,
    /// Values are known to be unevenly spread: the formulas of matrices do not hold.
    pub skewed: bool,
    /// Bytes of an element in an exact set.
    pub key_bytes: u64,
}

/// A request that cannot be planned; the text states the rule and a value that works.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{0}")]
pub struct PlannerError(pub(super) String);

/// Lowest rate that is planned for one element: 16 times that of digest collisions.
pub(super) const LEAST_RATE: f64 = 16.0 * DIGESTS_ALIKE;

/// Probability that two elements have the same digest of 64 bits.
pub(super) const DIGESTS_ALIKE: f64 = 1.0 / (1_u128 << 64) as f64;

/// Least memory: one cache line, the block of a blocked filter.
const LEAST_BYTES: u64 = 64;

/// Largest memory: 2^40 bytes.
const MOST_BYTES: u64 = 1 << 40;

impl PlanRequest {
    /// Returns the mask of all attributes.
    pub fn full(&self) -> u32 {
        ((1_u64 << self.attributes.len()) - 1) as u32
    }

    /// Returns the names of a combination's attributes: `src,dst`.
    pub fn name(&self, mask: u32) -> String {
        let names = self.attributes.iter().enumerate();
        let names: Vec<&str> = names
            .filter(|(index, _)| mask >> index & 1 == 1)
            .map(|(_, name)| name.as_str())
            .collect();
        names.join(",")
    }

    /// Returns the share of the queries that ask for each wanted combination.
    pub fn shares(&self) -> Vec<f64> {
        let sum: f64 = self.wanted.iter().map(|wanted| wanted.weight).sum();
        self.wanted.iter().map(|w| w.weight / sum).collect()
    }

    /// Hands on what a filter is asked.
    pub(super) fn with_workload<T>(&self, with: impl FnOnce(&Workload<'_>) -> T) -> T {
        let wanted = self.wanted.iter().map(|wanted| wanted.mask);
        let wanted: Vec<(u32, f64)> = wanted.zip(self.shares()).collect();
        with(&Workload {
            attributes: self.attributes.len(),
            wanted: &wanted,
            known: self.known,
            values: &|mask| self.elements.of(mask),
        })
    }

    /// Checks the rules.
    ///
    /// # Errors
    ///
    /// The first rule that is broken, with a value that works.
    pub fn check(&self) -> Result<(), PlannerError> {
        let error = |text: String| Err(PlannerError(text));
        let attributes = self.attributes.len();
        if attributes == 0 || attributes > MAX_ATTRIBUTES {
            return error(format!(
                "a plan is for 1 to {MAX_ATTRIBUTES} attributes, not {attributes}; 3 works"
            ));
        }
        let whole = self.name(self.full());
        for (index, wanted) in self.wanted.iter().enumerate() {
            if wanted.mask == 0 || wanted.mask > self.full() {
                return error(format!(
                    "a wanted combination has at least one of the attributes {whole}; {} works",
                    self.attributes[0]
                ));
            }
            if self.wanted[..index].iter().any(|w| w.mask == wanted.mask) {
                return error(format!(
                    "every combination is wanted once, and {} is there twice; add its weights up",
                    self.name(wanted.mask)
                ));
            }
        }
        check_weights(self.wanted.iter().map(|w| w.weight), "wanted combinations")?;
        if !(0.0..=1.0).contains(&self.known) {
            return error(format!(
                "the share of known values lies from 0 to 1, not {}; 1 is the worst case",
                self.known
            ));
        }
        self.check_goal()?;
        self.check_cuts()?;
        self.check_matrix_weights()
    }

    fn check_goal(&self) -> Result<(), PlannerError> {
        let error = |text: String| Err(PlannerError(text));
        let (bytes, fpr) = match self.goal {
            Goal::Memory { bytes } => (Some(bytes), None),
            Goal::Rate { fpr } | Goal::AttributeRate { fpr } => (self.most_elements_in, Some(fpr)),
        };
        if let Some(bytes) = bytes
            && !(LEAST_BYTES..=MOST_BYTES).contains(&bytes)
        {
            return error(format!(
                "a plan is for {LEAST_BYTES} bytes (one block) to 1 TiB, not {bytes} bytes; 64KiB works"
            ));
        }
        if let Some(fpr) = fpr
            && !(fpr > 0.0 && fpr < 1.0)
        {
            return error(format!(
                "a false-positive rate lies between 0 and 1, not {fpr}; 0.001 works"
            ));
        }
        if let Goal::Rate { fpr } = self.goal
            && let asked = self.wanted.iter().map(|wanted| self.elements.of(wanted.mask))
            && let least = asked.fold(0.0, f64::max) * LEAST_RATE
            && fpr < least
        {
            return error(format!(
                "filters know elements by digests of 64 bits, so that rates from {least:.1e} on can be reached here, not {fpr:e}"
            ));
        }
        if let Goal::AttributeRate { fpr } = self.goal
            && !(2.0_f64.powi(-32)..=0.5).contains(&fpr)
        {
            return error(format!(
                "the rate of an attribute lies from 2^-32 to 0.5, so that it has 1 to 32 hash functions, and is not {fpr}; 0.001 works"
            ));
        }
        Ok(())
    }

    /// Returns whether any of the structures to be planned is like this.
    fn plans(&self, is_like: fn(FilterKind) -> bool) -> bool {
        let mut kinds = self.structures.iter().filter_map(|s| s.filter());
        kinds.any(is_like)
    }

    fn check_cuts(&self) -> Result<(), PlannerError> {
        let (attributes, whole) = (self.attributes.len(), self.name(self.full()));
        if self.cuts.is_some() && !self.plans(FilterKind::has_cuts) {
            return Err(PlannerError(
                "cuts are for cbfm and wcbfm, and neither is among the structures; --filter cbfm works".into(),
            ));
        }
        for &cut in self.cuts.iter().flatten() {
            if cut.count_ones() < 2 || cut > self.full() {
                return Err(PlannerError(
                    format!(
                        "a cut has at least two of the attributes {whole}, since what is cut alone could never be asked for, and {} has not",
                        if cut > self.full() || cut == 0 { "it".into() } else { self.name(cut) }
                    ) + if attributes > 1 { "; the first two work" } else { "; leave --cuts out" },
                ));
            }
        }
        Ok(())
    }

    fn check_matrix_weights(&self) -> Result<(), PlannerError> {
        let Some(weights) = &self.weights else { return Ok(()) };
        let attributes = self.attributes.len();
        let error = |text: String| Err(PlannerError(text));
        if !self.plans(FilterKind::has_weights) {
            return error(
                "weights are for wcbfm, which is not among the structures; --filter wcbfm works"
                    .into(),
            );
        }
        if let Goal::AttributeRate { .. } = self.goal {
            return error(
                "the rate of an attribute gives each attribute its size, and leaves nothing to weights; --fpr instead of --attribute-fpr works".into(),
            );
        }
        if weights.len() != attributes {
            return error(format!(
                "there is one weight for each of the {attributes} attributes, not {}; {} works",
                weights.len(),
                vec!["1"; attributes].join(",")
            ));
        }
        check_weights(weights.iter().copied(), "attributes")
    }
}

fn check_weights(weights: impl Iterator<Item = f64> + Clone, of: &str) -> Result<(), PlannerError> {
    if let Some(wrong) = weights.clone().find(|w| !w.is_finite() || *w < 0.0) {
        return Err(PlannerError(format!(
            "weights of {of} are numbers from 0 on, not {wrong}; 1 works"
        )));
    }
    let sum: f64 = weights.sum();
    if sum <= 0.0 || !sum.is_finite() {
        return Err(PlannerError(format!(
            "the weights of {of} have a sum above 0, not {sum}; a weight of 1 for one of them works"
        )));
    }
    Ok(())
}
