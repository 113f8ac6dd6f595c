//! Runs that other machines help with: what their command lines ask for.

use super::host::run_as;
use super::inputs::Inputs;
use super::run::Run;
use super::timezone::ZoneArgs;
use super::{Command, Failure, Host, UsageError, parse};
use flowsieve::export::ExportPlan;
use flowsieve::flows::FlowPlan;
use flowsieve::pieces::{Outline, PiecePlan};
use flowsieve::pipeline::{CountPlan, InputResult, PlanError};
use flowsieve::report::{ExportParameters, FlowParameters, ReportFormat};
use flowsieve::selection::Selection;
use flowsieve::top::TopPlan;
use flowsieve::trace::{InputFormat, Source};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

/// A run that can be divided.
#[derive(Clone, Debug)]
pub struct DividedRun {
    /// Its plan, with the inputs as they are named.
    pub plan: DividedPlan,
    /// How its results are written.
    pub format: ReportFormat,
    /// The file that they go to; standard output without one.
    pub output: Option<PathBuf>,
    /// Remarks are not wanted.
    pub is_quiet: bool,
}

/// The plan of such a run.
#[derive(Clone, Debug)]
pub enum DividedPlan {
    /// A count.
    Count(CountPlan),
    /// A ranking.
    Top(TopPlan),
    /// A list of flows, and what its results say of it.
    Flows(FlowPlan, FlowParameters),
    /// An export, and what its results say of it.
    Export(ExportPlan, ExportParameters),
}

impl DividedRun {
    /// The run that these words describe; the first word is the program's name.
    ///
    /// # Errors
    ///
    /// The words are wrong, or ask for what cannot be divided.
    pub fn of<W>(words: impl IntoIterator<Item = W>) -> Result<Self, Failure>
    where
        W: Into<OsString> + Clone,
    {
        let divided = match parse(words)? {
            Command::Count(args) => args.divided(),
            Command::Flows(args) => args.divided(),
            Command::Export(args) => args.divided(),
            Command::Top(args) => args.divided(),
            _ => Err(UsageError::of(
                "count, top, flows and export can be divided among machines, and nothing else",
            )),
        };
        divided.map_err(|error| anyhow::Error::from(error).into())
    }
}

/// Says what a run of one process says of its inputs. Returns whether all of them were read to their
/// end; `None` if none could be opened, so that there is no result. `problems` are those of
/// directories.
pub fn conclude(
    host: Arc<dyn Host>,
    is_quiet: bool,
    problems: Vec<String>,
    inputs: &[InputResult],
) -> Option<bool> {
    run_as(host, || {
        let files = inputs.iter().map(|input| input.path.clone()).collect();
        Run::of_inputs(Inputs { files, others: 0, problems }).conclude(is_quiet, inputs)
    })
}

impl DividedPlan {
    /// What is read.
    pub fn inputs(&self) -> &[Source] {
        match self {
            Self::Count(plan) => &plan.inputs,
            Self::Top(plan) => &plan.inputs,
            Self::Flows(plan, _) => &plan.inputs,
            Self::Export(plan, _) => &plan.inputs,
        }
    }

    /// The same, to be replaced.
    pub fn inputs_mut(&mut self) -> &mut Vec<Source> {
        match self {
            Self::Count(plan) => &mut plan.inputs,
            Self::Top(plan) => &mut plan.inputs,
            Self::Flows(plan, _) => &mut plan.inputs,
            Self::Export(plan, _) => &mut plan.inputs,
        }
    }

    /// Which packets take part.
    pub fn selection_mut(&mut self) -> &mut Selection {
        match self {
            Self::Count(plan) => &mut plan.selection,
            Self::Top(plan) => &mut plan.selection,
            Self::Flows(plan, _) => &mut plan.selection,
            Self::Export(plan, _) => &mut plan.selection,
        }
    }

    /// How inputs are read.
    pub fn input_format(&self) -> InputFormat {
        match self {
            Self::Count(plan) => plan.input_format,
            Self::Top(plan) => plan.input_format,
            Self::Flows(plan, _) => plan.input_format,
            Self::Export(plan, _) => plan.input_format,
        }
    }
}

impl PiecePlan for DividedPlan {
    fn check(&self) -> Result<(), PlanError> {
        match self {
            Self::Count(plan) => PiecePlan::check(plan),
            Self::Top(plan) => PiecePlan::check(plan),
            Self::Flows(plan, _) => PiecePlan::check(plan),
            Self::Export(plan, _) => PiecePlan::check(plan),
        }
    }

    fn outline(&self) -> Outline<'_> {
        match self {
            Self::Count(plan) => plan.outline(),
            Self::Top(plan) => plan.outline(),
            Self::Flows(plan, _) => plan.outline(),
            Self::Export(plan, _) => plan.outline(),
        }
    }
}

/// Refuses what needs all packets in one place, by the names of the options that were given.
/// Refuses a zone that may be another one on each machine.
pub(super) fn refuse<const N: usize>(
    zone: ZoneArgs,
    whole: [(bool, &str); N],
) -> Result<(), UsageError> {
    if zone.is_of_this_machine() {
        return Err(UsageError::of(
            "each machine has a time zone of its own, so `--timezone local` does not go with a run that is divided among machines; name the zone",
        ));
    }
    match whole.into_iter().find(|(is_given, _)| *is_given) {
        None => Ok(()),
        Some((_, name)) => Err(UsageError::of(format!(
            "{name} needs all packets in one place, so it does not go with a run that is divided among machines; leave it out"
        ))),
    }
}
