//! `flowsieve plan`: which structure, how large, and with which parameters.

mod command;
mod measure;
mod request;

use super::output::Output;
use super::structure::structures;
use super::trace_args::{Element, Format, Header};
use super::units::parse_size;
use super::{Outcome, UsageError};
use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use flowsieve::elements::ElementKind;
use flowsieve::pipeline::SKEWED;
use flowsieve::planner::{Structure, plan};
use flowsieve::report::{PlanFormat, PlanReport};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  Queries for host pairs, and a third as many for sources, in a mebibyte:
    flowsieve plan --want src,dst:3 --want src:1 --n 100k --memory 1MiB
  The same with the numbers of a capture, for a rate of one in a thousand:
    flowsieve plan --want src,dst:3 --want src:1 --sample capture.pcap --fpr 0.001
  A cell of Table 3 of the CBFM paper; with --memory 1MiB --n max one of Table 2:
    flowsieve plan --attributes 3 --n 1000 --attribute-fpr 0.1 --filter bfm,cbfm --cuts '1,3;1,2'";

#[derive(Args, Clone, Debug)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct PlanArgs {
    /// What the elements are
    #[arg(long, value_enum, value_name = "KIND", default_value_t = Element::HostPair, help_heading = "Elements")]
    element: Element,

    /// Elements of so many attributes, named 1, 2, 3, …
    #[arg(
        long,
        value_name = "COUNT",
        conflicts_with = "element",
        help_heading = "Elements"
    )]
    attributes: Option<usize>,

    /// A combination that queries ask for, and its weight, such as src,dst:3 or all [default: all]
    #[arg(long, value_name = "NAMES[:WEIGHT]", help_heading = "Elements")]
    want: Vec<String>,

    /// Distinct elements, such as 100k; src=5k for one combination; max for as many as fit
    ///
    /// Combinations without a number have at most as many values as a larger one, as their parts
    /// multiplied, and as their attributes can have (256 protocols, 65,536 ports).
    #[arg(long, value_name = "[NAMES=]COUNT", help_heading = "Elements")]
    n: Vec<String>,

    /// Share of the single values of a negative that occur in the set, though not together
    ///
    /// 1 is the worst case, and what traffic has: known hosts that did not talk to each other. MDBF, which
    /// keeps every attribute by itself, then says yes to each negative with two and more attributes; so does
    /// CMDBF unless all are asked for. A negative with one attribute is always a value that does not occur.
    #[arg(
        long,
        value_name = "0..1",
        default_value_t = 1.0,
        allow_negative_numbers = true,
        help_heading = "Elements"
    )]
    known: f64,

    /// A capture, as one slice, on which numbers and spread are measured
    #[arg(
        long,
        value_name = "CAPTURE",
        conflicts_with = "attributes",
        help_heading = "Sample"
    )]
    sample: Vec<PathBuf>,

    /// auto recognises all formats but tsh, which has no mark
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = Format::Auto, help_heading = "Sample")]
    input_format: Format,

    /// Count both directions as one
    #[arg(long, help_heading = "Sample")]
    undirected: bool,

    /// Which IP header of tunnelled packets counts
    #[arg(long, value_enum, value_name = "WHICH", default_value_t = Header::Outer, help_heading = "Sample")]
    tunnel: Header,

    /// Of DNS messages count the queries only
    #[arg(long, help_heading = "Sample")]
    queries_only: bool,

    /// One more port on which DNS is spoken, besides 53
    #[arg(long, value_name = "PORT", help_heading = "Sample")]
    dns_port: Vec<u16>,

    /// Memory for counting the sample
    #[arg(long, value_name = "SIZE", default_value = "4GiB", value_parser = parse_size, help_heading = "Sample")]
    exact_limit: u64,

    /// Memory of the filter [default: 64KiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_size, help_heading = "Filter")]
    memory: Option<u64>,

    /// Weighted false-positive rate instead, in as little memory as possible
    #[arg(
        long,
        value_name = "RATE",
        allow_negative_numbers = true,
        help_heading = "Filter"
    )]
    fpr: Option<f64>,

    /// Rate of single attributes instead, by the rule of the CBFM paper's tables
    ///
    /// Each attribute gets m = floor(n log2(e) log2(1/rate)) and k = floor(-log2 rate).
    #[arg(
        long,
        value_name = "RATE",
        conflicts_with = "fpr",
        allow_negative_numbers = true,
        help_heading = "Filter"
    )]
    attribute_fpr: Option<f64>,

    /// Only these structures [default: all]
    #[arg(
        long,
        value_parser = structures(),
        value_name = "NAMES",
        value_delimiter = ',',
        help_heading = "Filter"
    )]
    filter: Vec<Structure>,

    /// Cuts of CBFM and WCBFM by hand, such as '1,3;1,2' or 'src,domain' [default: searched for]
    #[arg(long, value_name = "CUTS", help_heading = "Filter")]
    cuts: Option<String>,

    /// Weights of WCBFM by hand, one an attribute, such as 1,2,1 [default: searched for]
    #[arg(
        long,
        value_name = "WEIGHTS",
        allow_hyphen_values = true,
        help_heading = "Filter"
    )]
    weights: Option<String>,

    /// How the plan is written
    #[arg(long, value_enum, default_value_t = ResultFormat::Table, help_heading = "Output")]
    format: ResultFormat,

    /// Write the plan to this file, whole or not at all
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    output: Option<PathBuf>,

    /// No progress bar
    #[arg(short, long, help_heading = "Output")]
    quiet: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ResultFormat {
    /// For people
    Table,
    /// A line for each structure and wanted combination
    Csv,
    /// One document
    Json,
}

pub(crate) fn run(args: &PlanArgs) -> Result<Outcome> {
    let mut request = args.request()?;
    let mut outcome = Outcome::Done;
    let mut measured = None;
    if !args.sample.is_empty() {
        let Some(sample) = args.measure(&request, &mut outcome)? else {
            return Ok(outcome);
        };
        request.skewed = sample.spread.iter().any(|spread| spread.skew() > SKEWED);
        measured = Some(sample);
    }
    request.elements = args.elements(&request, measured.as_ref())?;
    let plan = plan(&request).map_err(|error| UsageError(error.to_string()))?;
    let output = Output::open(args.output.as_deref())?;
    let styled = output.is_styled();
    let report = PlanReport {
        element: args.kind().map(ElementKind::name),
        request: &request,
        plan: &plan,
        sample: measured.as_ref(),
        command: args.command(&request, &plan),
    };
    let format = match args.format {
        ResultFormat::Table => PlanFormat::Table,
        ResultFormat::Csv => PlanFormat::Csv,
        ResultFormat::Json => PlanFormat::Json,
    };
    let written = report
        .write(format, styled, output)
        .context("cannot write the plan")?;
    written.commit()?;
    Ok(outcome)
}

impl PlanArgs {
    /// Whether all values can be understood, as far as that does not depend on a sample.
    pub(crate) fn check(&self) -> Result<(), UsageError> {
        let request = self.request()?;
        if self.sample.is_empty() {
            self.elements(&request, None)?;
        }
        Ok(())
    }

    fn kind(&self) -> Option<ElementKind> {
        self.attributes.is_none().then(|| self.element.into())
    }
}
