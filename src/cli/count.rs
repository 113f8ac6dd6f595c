//! `flowsieve count`: distinct elements in each time slice.

use super::design::{DesignArgs, EXPECT};
use super::inputs::{Inputs, total_bytes};
use super::od::OdArgs;
use super::output::{Output, refuse_terminal};
use super::page::PageArgs;
use super::progress::Progress;
use super::same_file::keep_apart;
use super::signals::{PARTIAL, Signals};
use super::structure::structures;
use super::trace_args::TraceArgs;
use super::units::{parse_count, parse_seed, parse_size};
use super::{Outcome, UsageError, remarks};
use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use flowsieve::elements::ElementLabel;
use flowsieve::filters::{FilterKind, Sizing, Structure};
use flowsieve::pipeline::{
    CountExtras, CountPlan, CountSummary, CounterChoice, RunError, SliceResult, SliceSink, count,
};
use flowsieve::planner::Goal;
use flowsieve::report::{CountPage, CountParameters, CountReport, ReportFormat};
use std::io::{self, IsTerminal, stderr};
use std::path::PathBuf;
use std::thread::available_parallelism;

const EXAMPLES: &str = "\
Examples:
  Host pairs in each second, with the exact count beside the estimate:
    flowsieve count capture.pcap.gz
  DNS (client, server, name) triples a minute over a directory of captures, in bounded memory:
    flowsieve count --element dns --queries-only --slice 1min --no-exact captures/
  How many flows there are altogether, for a program:
    flowsieve count --element flow --slice all --format json capture.pcap
  Sources and destinations as well, in the same filter, designed for so many pairs a slice:
    flowsieve count --want src,dst:2 --want src --want dst --expect 100k capture.pcap
  A page with figures, and who talks to whom by /24:
    flowsieve count --html report.html --od 24 capture.pcap";

#[derive(Args, Clone, Debug)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct CountArgs {
    #[command(flatten)]
    trace: TraceArgs,

    /// The structure that counts
    #[arg(long, value_parser = structures(), value_name = "NAME", default_value = "subset", help_heading = "Filter")]
    filter: Structure,

    /// Memory of the filter for one slice, such as 64KiB [default: 64KiB]
    ///
    /// An overfull dleft filter takes up to 1/56 of it and 1 KiB more, for elements without a cell.
    #[arg(long, value_name = "SIZE", value_parser = parse_size, conflicts_with = "fpr", help_heading = "Filter")]
    memory: Option<u64>,

    /// Size the filter for this false-positive rate at --expect elements
    #[arg(
        long,
        value_name = "RATE",
        requires = "expect",
        help_heading = "Filter"
    )]
    fpr: Option<f64>,

    /// Distinct elements expected in a slice; with --want also src=5k for one combination
    ///
    /// Chooses the number of hash functions (4 if it is not known).
    #[arg(long, value_name = "[NAMES=]COUNT", help_heading = "Filter")]
    expect: Vec<String>,

    #[command(flatten)]
    design: DesignArgs,

    /// Seed of all hash functions
    ///
    /// `random` draws one and tells it in the results: nobody can choose traffic that collides then.
    #[arg(long, value_name = "NUMBER", default_value = "0", value_parser = parse_seed, help_heading = "Filter")]
    seed: u64,

    /// Partitions with a filter each [default: 8; published structures, and with --want: 1]
    ///
    /// Elements are divided among them by their digest. Results depend on their number, and more
    /// than two threads need more than one.
    #[arg(long, value_name = "COUNT", help_heading = "Filter")]
    shards: Option<u32>,

    /// Do without the exact count: memory stays small whatever comes
    #[arg(long, help_heading = "Exact count")]
    no_exact: bool,

    /// Memory of the exact count; past it the count says so
    #[arg(long, value_name = "SIZE", default_value = "4GiB", value_parser = parse_size, help_heading = "Exact count")]
    exact_limit: u64,

    /// Threads; results do not depend on them [default: all processors]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=1024), help_heading = "Speed")]
    threads: Option<u16>,

    /// How results are written
    #[arg(long, value_enum, default_value_t = ResultFormat::Table, help_heading = "Output")]
    format: ResultFormat,

    /// Write results to this file, whole or not at all
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    output: Option<PathBuf>,

    #[command(flatten)]
    page: PageArgs,

    #[command(flatten)]
    od: OdArgs,

    /// Save the filter for `flowsieve filter`; needs --slice all
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    save_filter: Option<PathBuf>,

    /// No progress bar and no remarks
    #[arg(short, long, conflicts_with = "verbose", help_heading = "Output")]
    quiet: bool,

    /// Say how fast it went, even in a pipe
    #[arg(short, long, help_heading = "Output")]
    verbose: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ResultFormat {
    /// For people
    Table,
    /// A line a slice
    Csv,
    /// One document
    Json,
    /// An object a line
    Jsonl,
    /// A row a slice, for databases and data frames
    Parquet,
}

/// Shards unless the user says otherwise: enough for the threads of a large machine.
const DEFAULT_SHARDS: u32 = 8;

/// Filter memory unless the user says otherwise.
const DEFAULT_MEMORY_BYTES: u64 = 64 << 10;

const UNWRITTEN: &str = "cannot write the results";

pub(crate) fn run(args: &CountArgs) -> Result<Outcome> {
    let signals = Signals::catch().context("cannot wait for signals")?;
    let mut inputs = Inputs::find(&args.trace.captures, args.trace.input_format());
    let plan = args.plan(std::mem::take(&mut inputs.files))?;
    let key = args.od.key(args.quiet)?;
    let output = Output::open(args.output.as_deref())?;
    let saved = match &args.save_filter {
        Some(path) => Some(Output::open(Some(path))?),
        None => None,
    };
    let matrix = args.od.open()?;
    let html = args.page.open()?;
    let progress = Progress::start(!args.quiet, total_bytes(&plan.inputs), signals);
    let styled = output.is_styled();
    let parameters = CountParameters {
        anonymized: key.is_some(),
        ..CountParameters::from(&plan)
    };
    let report =
        CountReport::begin(args.format.into(), &parameters, styled, output).context(UNWRITTEN)?;
    let mut sinks = Sinks {
        report,
        page: args.page.is_wanted().then(CountPage::default),
    };
    let mut traffic = args.od.traffic();
    let label = saved.as_ref().map(|_| {
        let label = ElementLabel::new(&plan.rule, plan.tunnel).to_string();
        label.into_bytes()
    });
    let extras = CountExtras {
        traffic: traffic.as_mut(),
        filter_label: label,
    };
    let result = count(&plan, extras, &mut sinks, &progress);
    progress.finish();
    let mut summary = result.map_err(|error| match error {
        RunError::Plan(error) => UsageError(error.to_string()).into(),
        RunError::Sink(error) => anyhow::Error::from(error).context(UNWRITTEN),
        error @ (RunError::Worker { .. } | RunError::Broken(_)) => error.into(),
    })?;
    OdArgs::replace(traffic.as_mut(), key.as_ref());
    let interrupted = summary.totals.interrupted;
    // A filter has no mark that it lacks elements, and would deny having seen them.
    let saved = saved.filter(|_| !interrupted);
    if let Some((filter, mut output)) = summary.filter.take().zip(saved) {
        filter.save(&mut output).context("cannot save the filter")?;
        output.commit()?;
    }
    if let Some(page) = sinks.page {
        args.page
            .write(html, &page.finish(&parameters, &summary, traffic.as_ref()))?;
    }
    args.od.write(matrix, traffic.as_ref())?;
    sinks.report.finish(&summary).context(UNWRITTEN)?.commit()?;
    let outcome = remark(args, &summary, &inputs, &progress);
    let what = match &args.save_filter {
        Some(path) => format!("{PARTIAL}; {} was not saved", path.display()),
        None => PARTIAL.to_owned(),
    };
    Ok(progress.signals().outcome(interrupted, &what, outcome))
}

/// The slices go to the report, and to the page if there is one.
struct Sinks {
    report: CountReport<Output>,
    page: Option<CountPage>,
}

impl SliceSink for Sinks {
    fn slice(&mut self, slice: &SliceResult) -> io::Result<()> {
        if let Some(page) = &mut self.page {
            page.slice(slice)?;
        }
        self.report.slice(slice)
    }
}

/// Says on standard error what does not belong into the results.
fn remark(
    args: &CountArgs,
    summary: &CountSummary,
    inputs: &Inputs,
    progress: &Progress,
) -> Outcome {
    let outcome = remarks::problems(inputs, &summary.inputs);
    if args.verbose || (stderr().is_terminal() && !args.quiet) {
        remarks::speed(summary.totals.packets, inputs, progress);
    }
    outcome
}

impl CountArgs {
    fn plan(&self, inputs: Vec<PathBuf>) -> Result<CountPlan, UsageError> {
        let usage = |error: flowsieve::pipeline::PlanError| UsageError(error.to_string());
        self.trace.check(&inputs)?;
        let written = [
            ("--output", self.output.as_deref()),
            ("--html", self.page.html.as_deref()),
            ("--od-out", self.od.out()),
            ("--save-filter", self.save_filter.as_deref()),
        ];
        keep_apart(written, &inputs)?;
        let (counter, shards) = if self.design.is_asked() {
            (Some(self.designed()?), 1)
        } else {
            self.usual()?
        };
        let plan = CountPlan {
            inputs,
            input_format: self.trace.input_format(),
            rule: self.trace.rule(),
            tunnel: self.trace.tunnel(),
            slicing: self.trace.slicing(),
            counter,
            exact_limit_bytes: (!self.no_exact).then_some(self.exact_limit),
            seed: self.seed,
            shards,
            threads: self.threads.map_or_else(
                || available_parallelism().map_or(1, usize::from),
                usize::from,
            ),
        };
        plan.check().map_err(usage)?;
        refuse_terminal(
            matches!(self.format, ResultFormat::Parquet),
            self.output.as_deref(),
        )?;
        self.page.check(self.output.as_deref())?;
        self.od.check(&self.page)?;
        if self.od.is_anonymized() && self.save_filter.is_some() {
            return Err(UsageError(
                "a saved filter answers whether an address was seen, whatever its bytes look like; leave out --save-filter or --anonymize".into(),
            ));
        }
        if let Some(path) = &self.save_filter {
            plan.kept_filter().map_err(usage)?;
            if path.as_os_str() == "-" || self.output.as_ref() == Some(path) {
                return Err(UsageError(
                    "the filter goes to a file of its own, so --save-filter needs a name that is neither - nor that of --output".into(),
                ));
            }
        }
        Ok(plan)
    }

    /// The counter of each shard, sized by the rules of its structure, and the number of shards.
    fn usual(&self) -> Result<(Option<CounterChoice>, u32), UsageError> {
        let attributes = self.trace.kind().attributes().len();
        let sizing = match (self.fpr, self.expected()?) {
            (Some(fpr), Some(expected)) => Sizing::Rate { fpr, expected },
            (_, expected) => Sizing::Memory {
                bytes: self.memory.unwrap_or(DEFAULT_MEMORY_BYTES),
                expected,
            },
        };
        let shards = self.shards.unwrap_or(match self.filter {
            Structure::Filter(FilterKind::Subset) | Structure::Exact => DEFAULT_SHARDS,
            _ => 1,
        });
        let counter = match self.filter {
            Structure::Hll => Some(CounterChoice::hyper_log_log(sizing, shards)),
            filter => filter
                .filter()
                .map(|filter| CounterChoice::filter(filter, attributes, sizing, shards)),
        };
        let counter = counter.transpose();
        Ok((
            counter.map_err(|error| UsageError(error.to_string()))?,
            shards,
        ))
    }

    /// The only number of `--expect`.
    fn expected(&self) -> Result<Option<u64>, UsageError> {
        let expected = match self.expect.as_slice() {
            [] => return Ok(None),
            [text] if !text.contains('=') => parse_count(text).map_err(|error| {
                UsageError(format!("{error}; {text:?} is none (--expect 100k works)"))
            })?,
            _ => {
                return Err(UsageError(
                    "without --want there is one number of elements, and none of combinations; --expect 100k works".into(),
                ));
            }
        };
        if expected == 0 {
            return Err(UsageError(EXPECT.not_zero.into()));
        }
        Ok(Some(expected))
    }

    /// The filter that the planner designs for what is wanted.
    fn designed(&self) -> Result<CounterChoice, UsageError> {
        if let Some(shards) = self.shards.filter(|&shards| shards != 1) {
            return Err(UsageError(format!(
                "the values of a combination would be spread over the shards, and none of them could count them, so a filter with --want, --cuts or --weights has 1 shard, not {shards}; leave out --shards"
            )));
        }
        let goal = match self.fpr {
            Some(fpr) => Goal::Rate { fpr },
            None => Goal::Memory {
                bytes: self.memory.unwrap_or(DEFAULT_MEMORY_BYTES),
            },
        };
        let kind = self.trace.kind();
        self.design.counter(self.filter, kind, &self.expect, goal)
    }
}

impl From<ResultFormat> for ReportFormat {
    fn from(format: ResultFormat) -> Self {
        match format {
            ResultFormat::Table => Self::Table,
            ResultFormat::Csv => Self::Csv,
            ResultFormat::Json => Self::Json,
            ResultFormat::Jsonl => Self::JsonLines,
            ResultFormat::Parquet => Self::Parquet,
        }
    }
}
