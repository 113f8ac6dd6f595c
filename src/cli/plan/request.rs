//! What is asked of the planner.

use super::PlanArgs;
use crate::cli::UsageError;
use crate::cli::design::unknown_numbers;
use crate::cli::trace_args::Element;
use crate::cli::wanted::{NumberOption, Numbers, cuts_of, wanted_of, weights_of};
use flowsieve::elements::ElementKind;
use flowsieve::filters::matrix_sizing::MAX_ATTRIBUTES;
use flowsieve::pipeline::SampleResult;
use flowsieve::planner::{Elements, Goal, Origin, PlanRequest, RateRule, Structure};

impl PlanArgs {
    /// Everything but the numbers of elements, checked.
    pub(super) fn request(&self) -> Result<PlanRequest, UsageError> {
        let usage = |text: String| UsageError(text);
        let attributes: Vec<String> = match (self.attributes, self.kind()) {
            (Some(count), _) if count == 0 || count > MAX_ATTRIBUTES => {
                return Err(usage(format!(
                    "a plan is for 1 to {MAX_ATTRIBUTES} attributes, not {count}; 3 works"
                )));
            }
            (Some(count), _) => (1..=count).map(|number| number.to_string()).collect(),
            (None, kind) => {
                let names = kind.unwrap_or_default().attributes();
                names.iter().map(ToString::to_string).collect()
            }
        };
        if self.undirected && matches!(self.element, Element::Src | Element::Dst) {
            return Err(usage(
                "--undirected needs two ends: it goes with host-pair, flow and dns".into(),
            ));
        }
        let wanted = wanted_of(&attributes, &self.want)?;
        let cuts = self.cuts.as_deref().map(|cuts| cuts_of(&attributes, cuts));
        let weights = self.weights.as_deref().map(weights_of);
        let structures = if self.filter.is_empty() {
            Structure::all().collect()
        } else {
            let chosen = |structure: &Structure| self.filter.contains(structure);
            Structure::all().filter(chosen).collect()
        };
        let most = self.n.iter().any(|n| n == "max");
        let rate = match (self.fpr, self.attribute_fpr) {
            (Some(fpr), _) => Some(RateRule::Weighted(fpr)),
            (None, fpr) => fpr.map(RateRule::Attribute),
        };
        let goal = match (most, self.memory, rate) {
            (true, Some(bytes), Some(rate)) => Goal::MostElements { bytes, rate },
            (true, ..) => {
                return Err(usage(
                    "--n max asks how many elements keep to a rate in a memory, and needs both; --memory 1MiB --fpr 0.001 works".into(),
                ));
            }
            (false, Some(_), Some(_)) => {
                return Err(usage(
                    "memory and rate follow from each other for a given number of elements; leave out one, or ask for --n max".into(),
                ));
            }
            (false, None, Some(rate)) => rate.into(),
            (false, memory, None) => Goal::Memory {
                bytes: memory.unwrap_or(DEFAULT_MEMORY_BYTES),
            },
        };
        if most && (self.n.len() > 1 || !self.sample.is_empty()) {
            return Err(usage(
                "--n max finds the number of elements itself; leave out the other numbers and samples".into(),
            ));
        }
        let request = PlanRequest {
            elements: unknown_numbers(&attributes)?,
            key_bytes: match self.kind() {
                Some(ElementKind::HostPair) => 8,
                Some(ElementKind::Flow | ElementKind::Source | ElementKind::Destination) => 16,
                Some(ElementKind::Dns) => 48,
                None => 8 * attributes.len() as u64,
            },
            attributes,
            wanted,
            goal,
            known: self.known,
            structures,
            cuts: cuts.transpose()?,
            weights: weights.transpose()?,
            skewed: false,
        };
        request.check().map_err(|error| usage(error.to_string()))?;
        Ok(request)
    }

    /// The numbers of `--n`, then those of the sample, then bounds.
    pub(super) fn elements(
        &self,
        request: &PlanRequest,
        sample: Option<&SampleResult>,
    ) -> Result<Elements, UsageError> {
        let names = &request.attributes;
        let mut numbers = Numbers::default();
        for n in &self.n {
            if n == "max" {
                numbers.for_all = Some(1);
            } else {
                numbers.add(N, names, n)?;
            }
        }
        let Numbers { mut known, for_all } = numbers;
        for &(mask, distinct) in sample.iter().flat_map(|sample| &sample.distinct) {
            let given = known.iter().any(|&(other, ..)| other == mask);
            if let (false, Some(distinct)) = (given, distinct) {
                known.push((mask, distinct, Origin::Measured));
            }
        }
        if sample.is_some() && for_all.is_some() {
            return Err(UsageError(
                "a sample has the numbers of all combinations; leave out --n, or give it for one of them, such as --n src=5k".into(),
            ));
        }
        let none = vec![None; names.len()];
        let caps = self
            .kind()
            .map_or(none.as_slice(), |kind| kind.most_values());
        Elements::new(caps, &known, for_all, |mask| request.name(mask))
            .map_err(|error| UsageError(error.to_string()))
    }
}

/// The numbers that a plan rests on.
const N: NumberOption = NumberOption {
    name: "--n",
    takes: "100k, src=5k or max",
    not_zero: "a plan is for at least one element, not 0; 100k works",
};

/// Filter memory unless the user says otherwise, as in `count`.
const DEFAULT_MEMORY_BYTES: u64 = 64 << 10;
