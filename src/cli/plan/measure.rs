//! The numbers of elements in a sample.

use super::PlanArgs;
use crate::cli::UsageError;
use crate::cli::inputs::Inputs;
use crate::cli::options::ThreadArgs;
use crate::cli::run::Run;
use crate::cli::same_file::keep_apart;
use anyhow::{Result, anyhow};
use flowsieve::pipeline::{SamplePlan, SampleResult, sample};
use flowsieve::planner::PlanRequest;

impl PlanArgs {
    /// Counts the sample. Damaged captures count up to the damage, which is said; a signal ends the
    /// reading, and only then a sample may have no element.
    pub(super) fn measure(&self, run: &mut Run, request: &PlanRequest) -> Result<SampleResult> {
        run.start(self.quiet.quiet)?;
        let inputs = run.take(Inputs::find(&self.sample, self.read.format()));
        keep_apart(self.output.files(), &inputs)?;
        let full = request.full();
        // All combinations where they are few; else the wanted ones and the single attributes.
        let all = 1..full;
        let masks: Vec<u32> = if request.attributes.len() <= 3 {
            all.collect()
        } else {
            let wanted = |mask: &u32| request.wanted.iter().any(|w| w.mask == *mask);
            all.filter(|mask| mask.is_power_of_two() || wanted(mask)).collect()
        };
        let mut plan = SamplePlan {
            trace: self.read.trace(&inputs, &self.elements.dns, &ThreadArgs::default())?,
            rule: self.elements.rule(),
            masks,
            limit_bytes: self.exact.exact_limit,
        };
        plan.trace.resolve(run.stop()).map_err(UsageError::new)?;
        let result = run.watch(&plan.trace.inputs, |watch| sample(&plan, watch))?;
        run.set_interrupted(result.interrupted);
        run.problems(&result.inputs);
        if let Some((mask, _)) = result.distinct.iter().find(|(_, n)| n.is_none()) {
            return Err(anyhow!(
                "the sample has more distinct {} than can be counted in its share of {} bytes; raise --exact-limit, or give the numbers with --expect",
                request.name(*mask),
                self.exact.exact_limit
            ));
        }
        if result.elements == 0 && !result.interrupted {
            return Err(anyhow!(
                "the sample has no element of the kind {}; name another capture, or give the numbers with --expect",
                self.elements.element.name()
            ));
        }
        Ok(result)
    }
}
