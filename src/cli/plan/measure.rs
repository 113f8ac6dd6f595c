//! The numbers of elements in a sample.

use super::PlanArgs;
use crate::cli::UsageError;
use crate::cli::inputs::Inputs;
use crate::cli::options::ThreadArgs;
use crate::cli::run::Run;
use crate::cli::same_file::keep_apart;
use anyhow::{Result, anyhow};
use flowsieve::comparison::{ComparePlan, with_trial};
use flowsieve::pipeline::{SamplePlan, SampleResult, sample};
use flowsieve::plan::TracePlan;
use flowsieve::planner::{Plan, PlanRequest, plan, plan_measured, sampled};

impl PlanArgs {
    /// Counts the sample. Damaged captures count up to the damage, which is said; a signal ends the
    /// reading, and only then a sample may have no element.
    pub(super) fn measure(
        &self,
        run: &mut Run,
        request: &PlanRequest,
    ) -> Result<(SampleResult, TracePlan)> {
        run.start(self.quiet.quiet)?;
        let inputs = run.take(Inputs::find(&self.sample, self.read.format()));
        keep_apart(self.output.files(), &inputs)?;
        let wanted = |mask: u32| request.wanted.iter().any(|wanted| wanted.mask == mask);
        let mut plan = SamplePlan {
            trace: self.read.trace(&inputs, &self.elements.dns, &ThreadArgs::default())?,
            rule: self.elements.rule(),
            masks: sampled(request.attributes.len(), wanted),
            limit_bytes: self.exact.exact_limit,
        };
        plan.trace.resolve(run.stop()).map_err(UsageError::new)?;
        let mut result = run.watch(&plan.trace.inputs, |watch| sample(&plan, watch))?;
        run.check_read(&mut result)?;
        run.problems(&result.inputs);
        if let Some((mask, _)) = result.distinct.iter().find(|(_, n)| n.is_none()) {
            return Err(anyhow!(
                "the sample has more distinct {} than can be counted in its share of {} bytes; raise --exact-limit, or give the numbers with --expect",
                request.name(*mask),
                self.exact.exact_limit
            ));
        }
        // If nothing could be read, the reason was reported.
        let is_read = result.packets > 0 || !run.has_problems();
        if result.elements == 0 && !result.interrupted && is_read {
            return Err(anyhow!(
                "the sample has no element of the kind {}; name another capture, or give the numbers with --expect",
                self.elements.element.name()
            ));
        }
        Ok((result, plan.trace))
    }
    /// Plans by what the best structures do on the sample. A pipe cannot be read again, and an
    /// interrupted reading is not repeated: then the formulas decide.
    pub(super) fn plan_on(
        &self,
        run: &mut Run,
        request: &PlanRequest,
        trace: TracePlan,
        sample: &mut SampleResult,
    ) -> Result<Plan> {
        let by_formula = || plan(request).map_err(UsageError::new);
        if trace.is_stream() || run.stop().is_set() {
            return Ok(by_formula()?);
        }
        let shares = request.wanted.iter().map(|wanted| wanted.mask).zip(request.shares());
        let trial = ComparePlan {
            exact_limit_bytes: self.exact.exact_limit,
            ..ComparePlan::of_trial(trace, self.elements.rule(), shares.collect())
        };
        // Directories with problems come first, and are not read again.
        let unread = sample.inputs.len() - trial.trace.inputs.len();
        let mut inputs = sample.inputs.split_off(unread);
        let is_fine: Vec<bool> = inputs.iter().map(|it| it.error.is_none()).collect();
        let measured = run.watch(&trial.trace.inputs, |watch| {
            with_trial(&trial, request.known, &mut inputs, watch, |it| plan_measured(request, it))
        })?;
        let again = inputs.iter().zip(is_fine).filter(|(_, was_fine)| *was_fine);
        run.report_all(again.filter_map(|(input, _)| input.error.as_ref()));
        sample.inputs.append(&mut inputs);
        Ok(measured.transpose().map_err(UsageError::new)?.map_or_else(by_formula, Ok)?)
    }
}
