//! The request to the planner.

use super::PlanArgs;
use crate::cli::UsageError;
use crate::cli::wanted::Numbers;
use crate::count::DEFAULT_MEMORY_BYTES;
use flowsieve::elements::ElementKind;
use flowsieve::filters::matrix_sizing::MAX_ATTRIBUTES;
use flowsieve::pipeline::SampleResult;
use flowsieve::planner::{Elements, Goal, Origin, PlanRequest, Structure, usual_structures};

impl PlanArgs {
    /// Returns everything but the numbers of elements, checked.
    pub(super) fn request(&self) -> Result<PlanRequest, UsageError> {
        let attributes: Vec<String> = match (self.attributes, self.kind()) {
            (Some(count), _) if count == 0 || count > MAX_ATTRIBUTES => {
                return Err(UsageError::new(format!(
                    "a plan is for 1 to {MAX_ATTRIBUTES} attributes, not {count}; 3 works"
                )));
            }
            (Some(count), _) => (1..=count).map(|number| number.to_string()).collect(),
            (None, kind) => {
                let names = kind.unwrap_or_default().attributes();
                names.into_iter().map(str::to_owned).collect()
            }
        };
        self.elements.check()?;
        let structures = if self.filter.is_empty() {
            usual_structures().collect()
        } else {
            let chosen = |structure: &Structure| self.filter.contains(structure);
            Structure::all().filter(chosen).collect()
        };
        let most = self.expect.iter().any(|number| number == "max");
        let rate = match (self.fpr, self.attribute_fpr) {
            (Some(fpr), _) => Some(Goal::Rate { fpr }),
            (None, fpr) => fpr.map(|fpr| Goal::AttributeRate { fpr }),
        };
        let goal = match (most, self.memory, rate) {
            (true, Some(_), Some(rate)) | (false, None, Some(rate)) => rate,
            (true, ..) => {
                return Err(UsageError::new(
                    "--expect max asks how many elements keep to a rate in a memory, and needs both; --memory 1MiB --fpr 0.001 works",
                ));
            }
            (false, Some(_), Some(_)) => {
                return Err(UsageError::new(
                    "memory and rate follow from each other for a given number of elements; leave out one, or ask for --expect max",
                ));
            }
            (false, memory, None) => Goal::Memory { bytes: memory.unwrap_or(DEFAULT_MEMORY_BYTES) },
        };
        if most && (self.expect.len() > 1 || !self.sample.is_empty()) {
            return Err(UsageError::new(
                "--expect max finds the number of elements itself; leave out the other numbers and samples",
            ));
        }
        let key_bytes = match self.kind() {
            Some(ElementKind::HOST_PAIR) => 8,
            Some(kind) if kind.has_name() => 48,
            Some(_) => 16,
            None => 8 * attributes.len() as u64,
        };
        let request = PlanRequest {
            most_elements_in: self.memory.filter(|_| most),
            known: self.known,
            key_bytes,
            ..self.design.request(attributes, structures, goal)?
        };
        request.check().map_err(UsageError::new)?;
        Ok(request)
    }

    /// Returns the numbers of `--expect`, then those of the sample, then bounds.
    pub(super) fn numbers(
        &self,
        request: &PlanRequest,
        sample: Option<&SampleResult>,
    ) -> Result<Elements, UsageError> {
        let names = &request.attributes;
        let mut numbers = Numbers::default();
        for number in &self.expect {
            if number == "max" {
                numbers.for_all = Some(1);
            } else {
                numbers.add(names, number)?;
            }
        }
        let known = &mut numbers.known;
        for &(mask, distinct) in sample.iter().flat_map(|sample| &sample.distinct) {
            let given = known.iter().any(|&(other, ..)| other == mask);
            if let (false, Some(distinct)) = (given, distinct) {
                known.push((mask, distinct, Origin::Measured));
            }
        }
        if sample.is_some() && numbers.for_all.is_some() {
            return Err(UsageError::new(
                "a sample has the numbers of all combinations; leave out --expect, or give it for one of them, such as --expect src=5k",
            ));
        }
        let none = || vec![None; names.len()];
        let caps = self.kind().map_or_else(none, ElementKind::most_values);
        numbers.elements(request, &caps)
    }
}
