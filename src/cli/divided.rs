//! Runs that are divided among machines: their plans, from command lines.

use super::host::run_as;
use super::inputs::Inputs;
use super::options::{OutputArgs, ReadArgs};
use super::run::Run;
use super::{Command, Failure, Host, UsageError, parse};
use flowsieve::distributed::{Outline, PiecePlan};
use flowsieve::pipeline::{CountPlan, CountSummary, InputResult, PlanError};
use flowsieve::plan::TracePlan;
use flowsieve::report::{ExportParameters, FlowParameters, ReportFormat};
use flowsieve::top::TopPlan;
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
    /// Whether remarks are suppressed.
    pub is_quiet: bool,
}

/// The plan of a run that can be divided.
#[derive(Clone, Debug)]
pub enum DividedPlan {
    /// A count.
    Count(CountPlan),
    /// A ranking.
    Top(TopPlan),
    /// A list of flows.
    Flows(FlowParameters),
    /// An export.
    Export(ExportParameters),
}

impl DividedRun {
    /// Returns the run that these words describe; the first word is the program's name.
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
            _ => Err(UsageError::new(
                "count, top, flows and export can be divided among machines, and nothing else",
            )),
        };
        divided.map_err(|error| anyhow::Error::from(error).into())
    }
}

/// Reports what a run of one process reports about its inputs. Returns whether all of them were read to their
/// end; `None` if none could be opened, so that there is no result. `problems` are directories with
/// problems, which are inputs, too, from now on.
pub fn conclude(
    host: Arc<dyn Host>,
    is_quiet: bool,
    problems: Vec<InputResult>,
    summary: &mut CountSummary,
) -> Option<bool> {
    run_as(host, || {
        let files = summary.inputs.iter().map(|input| input.path.clone()).collect();
        Run::of_inputs(Inputs { files, problems, ..Inputs::default() }).conclude(is_quiet, summary)
    })
}

impl DividedPlan {
    /// Returns what is read.
    pub fn trace(&self) -> &TracePlan {
        self.outline().trace
    }

    /// Returns what is read, to be changed.
    pub fn trace_mut(&mut self) -> &mut TracePlan {
        match self {
            Self::Count(plan) => &mut plan.trace,
            Self::Top(plan) => &mut plan.trace,
            Self::Flows(parameters) => &mut parameters.plan.trace,
            Self::Export(parameters) => &mut parameters.plan.trace,
        }
    }

    /// Returns its run, with these options.
    pub(super) fn run(
        self,
        format: ReportFormat,
        output: &OutputArgs,
        is_quiet: bool,
    ) -> DividedRun {
        DividedRun { plan: self, format, output: output.output.clone(), is_quiet }
    }

    fn pieces(&self) -> &dyn PiecePlan {
        match self {
            Self::Count(plan) => plan,
            Self::Top(plan) => plan,
            Self::Flows(parameters) => &parameters.plan,
            Self::Export(parameters) => &parameters.plan,
        }
    }
}

impl PiecePlan for DividedPlan {
    fn check(&self) -> Result<(), PlanError> {
        self.pieces().check()
    }

    fn outline(&self) -> Outline<'_> {
        self.pieces().outline()
    }
}

/// Refuses options that need all packets in one place, each with whether it was given, and a zone
/// that may be another one on each machine.
pub(super) fn refuse(
    read: &ReadArgs,
    output: &OutputArgs,
    whole: &[(bool, &str)],
) -> Result<(), UsageError> {
    if output.summary.is_some() {
        return Err(UsageError::new(
            "a run that is divided among machines writes no --summary; leave it out, and take --format json, which has the same",
        ));
    }
    if read.selection.zone.is_of_this_machine() {
        return Err(UsageError::new(
            "each machine has a time zone of its own, so `--timezone local` does not go with a run that is divided among machines; name the zone",
        ));
    }
    match whole.iter().find(|(is_given, _)| *is_given) {
        None => Ok(()),
        Some((_, name)) => Err(UsageError::new(format!(
            "{name} needs all packets in one place, so it does not go with a run that is divided among machines; leave it out"
        ))),
    }
}
