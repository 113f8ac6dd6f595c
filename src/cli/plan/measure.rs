//! What a sample says of the elements.

use super::PlanArgs;
use crate::cli::Outcome;
use crate::cli::inputs::{Inputs, total_bytes};
use crate::cli::progress::Progress;
use crate::cli::same_file::keep_apart;
use crate::cli::say::say;
use crate::cli::signals::Signals;
use anyhow::{Context, Result, anyhow};
use flowsieve::elements::{ElementKind, ElementRule};
use flowsieve::pipeline::{SamplePlan, SampleResult, sample};
use flowsieve::planner::PlanRequest;

impl PlanArgs {
    /// Counts the sample. Damaged captures count up to the damage, which is said; a signal ends the reading,
    /// and if nothing was read until then there is no sample.
    pub(super) fn measure(
        &self,
        request: &PlanRequest,
        outcome: &mut Outcome,
    ) -> Result<Option<SampleResult>> {
        let signals = Signals::catch().context("cannot wait for signals")?;
        let mut inputs = Inputs::find(&self.sample, self.input_format.into());
        keep_apart([("--output", self.output.as_deref())], &inputs.files)?;
        let full = request.full();
        // All combinations where they are few; else the wanted ones and the single attributes.
        let all = 1..full;
        let masks: Vec<u32> = if request.attributes.len() <= 3 {
            all.collect()
        } else {
            let wanted = |mask: &u32| request.wanted.iter().any(|w| w.mask == *mask);
            all.filter(|mask| mask.is_power_of_two() || wanted(mask))
                .collect()
        };
        let progress = Progress::start(!self.quiet, total_bytes(&inputs.files), signals);
        let plan = SamplePlan {
            inputs: std::mem::take(&mut inputs.files),
            input_format: self.input_format.into(),
            rule: ElementRule {
                kind: self.element.into(),
                undirected: self.undirected,
                queries_only: self.queries_only,
                dns_ports: self.dns_port.clone(),
            },
            tunnel: self.tunnel.into(),
            masks,
            limit_bytes: self.exact_limit,
        };
        let result = sample(&plan, &progress);
        progress.finish();
        let result = result?;
        let errors = result
            .inputs
            .iter()
            .filter_map(|input| input.error.as_ref());
        for problem in inputs
            .problems
            .iter()
            .cloned()
            .chain(errors.map(ToString::to_string))
        {
            say(format_args!("flowsieve: {problem}"));
            *outcome = Outcome::Incomplete;
        }
        if let Some((mask, _)) = result.distinct.iter().find(|(_, n)| n.is_none()) {
            return Err(anyhow!(
                "the sample has more distinct {} than can be counted in its share of {} bytes; raise --exact-limit, or give the numbers with --n",
                request.name(*mask),
                self.exact_limit
            ));
        }
        let nothing = result.elements == 0;
        let what = if nothing { NO_PLAN } else { PARTIAL };
        *outcome = progress
            .signals()
            .outcome(result.interrupted, what, *outcome);
        if nothing && result.interrupted {
            return Ok(None);
        }
        if nothing {
            return Err(anyhow!(
                "the sample has no element of the kind {}; name another capture, or give the numbers with --n",
                ElementKind::from(self.element).name()
            ));
        }
        Ok(Some(result))
    }
}

/// What an interruption leaves of the sample.
const PARTIAL: &str = "the plan rests on what was read until then";
const NO_PLAN: &str = "nothing was read until then, so there is no plan";
