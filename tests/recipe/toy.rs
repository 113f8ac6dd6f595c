//! The command of the recipe in CONTRIBUTING.md: it says how many flows captures have.

use super::Outcome;
use super::options::{DnsPortArgs, InputArgs, OutputArgs, SpeechArgs, ThreadArgs};
use super::run::{PARTIAL, Run, UNWRITTEN};
use anyhow::{Context, Result};
use clap::Args;
use flowsieve::flows::{FlowPlan, FlowRecord, FlowSink, list};
use std::io::{self, Write};

#[derive(Args, Clone, Debug)]
pub(crate) struct ToyArgs {
    #[command(flatten)]
    input: InputArgs,

    #[command(flatten)]
    threads: ThreadArgs,

    #[command(flatten)]
    output: OutputArgs,

    #[command(flatten)]
    speech: SpeechArgs,
}

pub(crate) fn run(args: &ToyArgs, run: &mut Run) -> Result<Outcome> {
    let files = run.start_on(&args.input, false, args.speech.is_quiet())?;
    let trace = args.input.read.trace(&files, &DnsPortArgs::default(), &args.threads)?;
    let mut plan = FlowPlan { trace, ..FlowPlan::default() };
    run.open(&mut plan.trace)?;
    let mut output = run.output(args.output.path())?;
    let summary = run.read(&plan.trace.inputs, |watch| list(&plan, &mut Counted, watch))?;
    writeln!(output, "{} flows", summary.totals.flows).context(UNWRITTEN)?;
    run.commit(output)?;
    Ok(run.end(&summary, args.speech, PARTIAL))
}

/// Takes flows that are only counted.
struct Counted;

impl FlowSink for Counted {
    fn flow(&mut self, _: FlowRecord) -> io::Result<()> {
        Ok(())
    }
}
