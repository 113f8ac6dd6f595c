//! `flowsieve compare`: structures side by side on the same traffic, at equal memory.

use super::design::EXPECT;
use super::inputs::{Inputs, total_bytes};
use super::od::OdArgs;
use super::output::{Output, refuse_terminal};
use super::page::PageArgs;
use super::progress::Progress;
use super::same_file::keep_apart;
use super::signals::{PARTIAL, Signals};
use super::structure::contenders;
use super::trace_args::TraceArgs;
use super::units::{parse_count, parse_seed, parse_size};
use super::{Outcome, UsageError, remarks};
use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use flowsieve::comparison::{ComparePlan, Comparison, Contender, compare};
use flowsieve::elements::ElementKind;
use flowsieve::filters::{FilterKind, Structure};
use flowsieve::pipeline::RunError;
use flowsieve::report::{CompareReport, ReportFormat};
use std::io::{IsTerminal, stderr};
use std::path::PathBuf;
use std::thread::available_parallelism;

const EXAMPLES: &str = "\
Examples:
  Which structure counts the host pairs of each second best, in 16 KiB and in 64 KiB:
    flowsieve compare --memory 16KiB,64KiB capture.pcap.gz
  Who answers best whether a client asked for a name, in DNS traffic, for a program:
    flowsieve compare --element dns --want src,domain --format json dns.pcapng";

#[derive(Args, Clone, Debug)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct CompareArgs {
    #[command(flatten)]
    trace: TraceArgs,

    /// Structures to compare, such as subset,mdbf
    /// [default: mdbf,cmdbf,bfm,cbfm,bloom,subset,subset-planned,hll,exact]
    ///
    /// subset stores whole elements only, as count does; subset-planned also every combination that
    /// is asked for, in the same memory.
    #[arg(
        long,
        value_parser = contenders(),
        value_name = "NAMES",
        value_delimiter = ',',
        help_heading = "Structures"
    )]
    filter: Vec<Contender>,

    /// Memory of each structure for one slice; several are compared one by one
    #[arg(
        long,
        value_name = "SIZES",
        value_delimiter = ',',
        default_value = "1KiB,4KiB,16KiB",
        value_parser = parse_size,
        help_heading = "Structures"
    )]
    memory: Vec<u64>,

    /// A combination that queries ask for, such as src,domain [default: the usual ones]
    ///
    /// All attributes together are always asked for. Usual are every single attribute; of flows also
    /// both addresses, and each with the destination port; of DNS triples src,domain and src,dst.
    #[arg(long, value_name = "NAMES", help_heading = "Structures")]
    want: Vec<String>,

    /// Distinct elements expected in a slice [default: the median of the first slices]
    ///
    /// Every structure gets the number of hash functions (k) that its formula says is best for so many.
    #[arg(long, value_name = "COUNT", value_parser = parse_count, help_heading = "Structures")]
    expect: Option<u64>,

    /// Seed of all hash functions, and of the queries that are drawn
    ///
    /// `random` draws one and tells it in the results: nobody can choose traffic that collides then.
    #[arg(long, value_name = "NUMBER", default_value = "0", value_parser = parse_seed, help_heading = "Structures")]
    seed: u64,

    /// Memory of the truth; slices that pass it are not judged
    #[arg(long, value_name = "SIZE", default_value = "4GiB", value_parser = parse_size, help_heading = "Truth")]
    exact_limit: u64,

    /// Threads; results do not depend on them [default: all processors]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=1024), help_heading = "Speed")]
    threads: Option<u16>,

    /// Measure the time of an insertion; the only figure that differs from run to run
    #[arg(long, help_heading = "Speed")]
    timing: bool,

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
    /// A line for each structure, memory and kind of query
    Csv,
    /// One document
    Json,
    /// An object a line
    Jsonl,
    /// The rows of the CSV, for databases and data frames
    Parquet,
}

/// What is compared unless the user says otherwise.
const USUAL: [Contender; 9] = [
    Contender::Plain(Structure::Filter(FilterKind::Mdbf)),
    Contender::Plain(Structure::Filter(FilterKind::Cmdbf)),
    Contender::Plain(Structure::Filter(FilterKind::Bfm)),
    Contender::Plain(Structure::Filter(FilterKind::Cbfm)),
    Contender::Plain(Structure::Filter(FilterKind::Bloom)),
    Contender::Plain(Structure::Filter(FilterKind::Subset)),
    Contender::SubsetPlanned,
    Contender::Plain(Structure::Hll),
    Contender::EXACT,
];

const UNWRITTEN: &str = "cannot write the results";

pub(crate) fn run(args: &CompareArgs) -> Result<Outcome> {
    let signals = Signals::catch().context("cannot wait for signals")?;
    let mut inputs = Inputs::find(&args.trace.captures, args.trace.input_format());
    let plan = args.plan(std::mem::take(&mut inputs.files))?;
    let output = Output::open(args.output.as_deref())?;
    let matrix = args.od.open()?;
    let html = args.page.open()?;
    let key = args.od.key(args.quiet)?;
    let mut traffic = args.od.traffic();
    let progress = Progress::start(!args.quiet, total_bytes(&plan.inputs), signals);
    let result = compare(&plan, traffic.as_mut(), &progress);
    progress.finish();
    let comparison = result.map_err(|error| match error {
        RunError::Plan(error) => UsageError(error.to_string()).into(),
        RunError::Sink(error) => anyhow::Error::from(error).context(UNWRITTEN),
        error @ (RunError::Worker { .. } | RunError::Broken(_)) => error.into(),
    })?;
    let report = CompareReport {
        plan: &plan,
        comparison: &comparison,
        anonymized: key.is_some(),
    };
    OdArgs::replace(traffic.as_mut(), key.as_ref());
    if args.page.is_wanted() {
        args.page.write(html, &report.page(traffic.as_ref()))?;
    }
    args.od.write(matrix, traffic.as_ref())?;
    let styled = output.is_styled();
    report
        .write(args.format.into(), styled, output)
        .context(UNWRITTEN)?
        .commit()?;
    let outcome = remark(args, &comparison, &inputs, &progress);
    let interrupted = comparison.totals.interrupted;
    Ok(progress.signals().outcome(interrupted, PARTIAL, outcome))
}

/// Says on standard error what does not belong into the results.
fn remark(
    args: &CompareArgs,
    comparison: &Comparison,
    inputs: &Inputs,
    progress: &Progress,
) -> Outcome {
    let outcome = remarks::problems(inputs, &comparison.inputs);
    if args.verbose || (stderr().is_terminal() && !args.quiet) {
        remarks::speed(comparison.totals.packets, inputs, progress);
    }
    outcome
}

impl CompareArgs {
    fn plan(&self, inputs: Vec<PathBuf>) -> Result<ComparePlan, UsageError> {
        self.trace.check(&inputs)?;
        let written = [
            ("--output", self.output.as_deref()),
            ("--html", self.page.html.as_deref()),
            ("--od-out", self.od.out()),
        ];
        keep_apart(written, &inputs)?;
        refuse_terminal(
            matches!(self.format, ResultFormat::Parquet),
            self.output.as_deref(),
        )?;
        self.page.check(self.output.as_deref())?;
        self.od.check(&self.page)?;
        let kind = self.trace.kind();
        let combinations = if self.want.is_empty() {
            ComparePlan::usual_combinations(kind)
        } else {
            combinations(kind, &self.want)?
        };
        let mut contenders: Vec<Contender> = Vec::new();
        for contender in self.filter.iter().copied() {
            if !contenders.contains(&contender) {
                contenders.push(contender);
            }
        }
        if self.expect == Some(0) {
            return Err(UsageError(EXPECT.not_zero.into()));
        }
        if contenders.is_empty() {
            contenders.extend(USUAL);
            // Without combinations the two are the same.
            contenders.retain(|c| *c != Contender::SubsetPlanned || !combinations.is_empty());
        }
        let plan = ComparePlan {
            inputs,
            input_format: self.trace.input_format(),
            rule: self.trace.rule(),
            tunnel: self.trace.tunnel(),
            slicing: self.trace.slicing(),
            contenders,
            memories: self.memory.clone(),
            combinations,
            expected: self.expect,
            exact_limit_bytes: self.exact_limit,
            seed: self.seed,
            threads: self.threads.map_or_else(
                || available_parallelism().map_or(1, usize::from),
                usize::from,
            ),
            timing: self.timing,
        };
        plan.check()
            .map_err(|error| UsageError(error.to_string()))?;
        Ok(plan)
    }
}

/// Combinations by the names of their attributes; that of all attributes is asked for anyway.
fn combinations(kind: ElementKind, wants: &[String]) -> Result<Vec<u32>, UsageError> {
    let mut combinations = Vec::new();
    for want in wants.iter().filter(|want| *want != "all") {
        let mut mask = 0;
        for name in want.split(',') {
            let Some(place) = kind.attributes().iter().position(|own| *own == name) else {
                return Err(UsageError(format!(
                    "the attributes are {}, not {name:?}; {} works",
                    kind.attributes().join(", "),
                    kind.attributes()[0]
                )));
            };
            mask |= 1 << place;
        }
        if mask != kind.all() && !combinations.contains(&mask) {
            combinations.push(mask);
        }
    }
    Ok(combinations)
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
