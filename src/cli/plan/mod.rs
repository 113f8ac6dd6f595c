//! `flowsieve plan`: which structure, how large, and with which parameters.

mod command;
mod measure;
mod request;

use super::design::DesignArgs;
use super::options::{ElementArgs, ExactLimitArgs, FormatArgs, OutputArgs, QuietArgs, ReadArgs};
use super::run::Run;
use super::same_file::keep_apart;
use super::structure::structures;
use super::units::{in_short, parse_share, parse_size, whole, with_values};
use super::{Outcome, UsageError};
use anyhow::{Context, Result};
use clap::{Arg, Args};
use flowsieve::elements::ElementKind;
use flowsieve::pipeline::SKEWED;
use flowsieve::planner::{Structure, plan};
use flowsieve::report::PlanReport;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  Queries for host pairs, and a third as many for sources, in a mebibyte:
    flowsieve plan --want src,dst:3 --want src:1 --expect 100k --memory 1MiB
  The same with the numbers of a capture, for a rate of one in a thousand:
    flowsieve plan --want src,dst:3 --want src --sample capture.pcap --fpr 0.001
  A cell of Table 3 of the CBFM paper; with --memory 1MiB --expect max one of Table 2:
    flowsieve plan --attributes 3 --expect 1k --attribute-fpr 0.1 --filter bfm,cbfm --cuts '1,3;1,2'";

/// In blocks that other commands have as well, `-h` shows the option that people need here, and not
/// the other. Nothing is chosen without a sample.
fn as_needed(option: Arg) -> Arg {
    match option.get_id().as_str() {
        "want" => option.hide_short_help(false),
        "expression" => option.hide_short_help(true).requires("sample"),
        "from" | "to" | "dnstap_type" | "input_format" => option.requires("sample"),
        _ => option,
    }
}

#[derive(Args, Clone, Debug)]
#[command(after_help = in_short(EXAMPLES), after_long_help = with_values(EXAMPLES))]
#[command(mut_args(as_needed))]
pub(crate) struct PlanArgs {
    #[command(flatten, next_help_heading = "Elements")]
    elements: ElementArgs,

    /// Elements of this many attributes, named 1, 2, 3 and so on
    #[arg(long, value_name = "COUNT", value_parser = whole(0, usize::MAX), conflicts_with_all = ["element", "undirected", "queries_only", "tunnel", "dns_port"], hide_short_help = true)]
    attributes: Option<usize>,

    /// Distinct elements, such as 100k; src=5k for one combination; max for as many as fit
    ///
    /// The number of a combination without one is bounded by that of a larger combination, by the
    /// product of its parts, and by what its attributes can have (256 protocols, 65,536 ports).
    #[arg(long, value_name = "[NAMES=]COUNT")]
    expect: Vec<String>,

    /// Share of an absent element's values that occur in other elements
    ///
    /// A negative is an absent element that is asked for. 1 is the worst case, and typical of
    /// traffic: known hosts that did not talk to each other. MDBF, which keeps each attribute
    /// separately, then says yes to each negative with two or more attributes; so does CMDBF unless
    /// all are asked for. A negative with one attribute is always a value that does not occur.
    #[arg(long, value_name = "0..1", default_value = "1", value_parser = parse_share, allow_negative_numbers = true, hide_short_help = true)]
    known: f64,

    /// A capture, as one slice, on which numbers and spread are measured
    #[arg(long, value_name = "CAPTURE", conflicts_with = "attributes", help_heading = "Sample")]
    sample: Vec<PathBuf>,

    #[command(flatten)]
    read: ReadArgs,

    #[command(flatten)]
    exact: ExactLimitArgs,

    #[command(flatten, next_help_heading = "Filter")]
    design: DesignArgs,

    /// Memory of the filter [default: 256KiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    memory: Option<u64>,

    /// Weighted false-positive rate instead, in as little memory as possible
    #[arg(long, value_name = "RATE", value_parser = parse_share, allow_negative_numbers = true)]
    fpr: Option<f64>,

    /// Rate of single attributes instead, by the rule of the CBFM paper's tables
    ///
    /// Each attribute gets m = floor(n log2(e) log2(1/rate)) and k = floor(-log2 rate).
    #[arg(long, value_name = "RATE", value_parser = parse_share, conflicts_with = "fpr", allow_negative_numbers = true, hide_short_help = true)]
    attribute_fpr: Option<f64>,

    /// Only these structures of `flowsieve help structures`, such as mdbf,cmdbf
    /// [default: all but the variants of cmdbf]
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = structures(), hide_possible_values = true)]
    filter: Vec<Structure>,

    #[command(flatten)]
    format: FormatArgs,

    #[command(flatten, next_help_heading = "Output")]
    output: OutputArgs,

    #[command(flatten)]
    quiet: QuietArgs,
}

pub(crate) fn run(args: &PlanArgs, run: &mut Run) -> Result<Outcome> {
    let mut request = args.request()?;
    args.format.check(&args.output)?;
    let (mut sample, mut trace) = (None, None);
    if !args.sample.is_empty() {
        let (measured, read) = args.measure(run, &request)?;
        if measured.elements == 0 {
            return Ok(run.finish(NO_PLAN));
        }
        request.skewed = measured.spread.iter().any(|spread| spread.skew() > SKEWED);
        (sample, trace) = (Some(measured), Some(read));
    }
    request.elements = args.numbers(&request, sample.as_ref())?;
    let plan = if let Some((sample, trace)) = sample.as_mut().zip(trace) {
        args.plan_on(run, &request, trace, sample)?
    } else {
        keep_apart(args.output.files(), &[])?;
        plan(&request).map_err(UsageError::new)?
    };
    let output = args.output.open(run)?;
    let style = output.style(None);
    let report = PlanReport {
        element: args.kind().map(|kind| kind.name().into_owned()),
        request: &request,
        plan: &plan,
        sample: sample.as_ref(),
        command: args.command(run, &request, &plan),
    };
    let written = report.complete().write(args.format.of(&args.output), style, output);
    let summary = || report.complete().summary();
    args.output.finish(run, written.context("cannot write the plan"), summary)?;
    Ok(run.finish(PARTIAL))
}

/// Notes shown when a sample was interrupted.
const PARTIAL: &str = "the plan rests on what was read until then";
const NO_PLAN: &str = "nothing was read until then, so there is no plan";

impl PlanArgs {
    /// Checks all values that do not depend on a sample.
    pub(crate) fn check(&self) -> Result<(), UsageError> {
        let request = self.request()?;
        if self.sample.is_empty() {
            self.numbers(&request, None)?;
        }
        Ok(())
    }

    fn kind(&self) -> Option<ElementKind> {
        self.attributes.is_none().then_some(self.elements.element)
    }
}
