//! `flowsieve flows`: the flows of captures.

use super::anonymize_args::AnonymizeArgs;
use super::inputs::{Inputs, total_bytes};
use super::output::Output;
use super::progress::Progress;
use super::same_file::keep_apart;
use super::say::say;
use super::signals::{PARTIAL, Signals};
use super::trace_args::{Format, Header};
use super::units::{parse_duration_ns, parse_size};
use super::{Outcome, UsageError, remarks};
use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use flowsieve::anonymize::AddressMap;
use flowsieve::decode::Tunnel;
use flowsieve::flows::{
    FlowError, FlowPlan, FlowRecord, FlowSink, FlowSummary, SortedFlows, list, list_unique,
};
use flowsieve::report::{FlowFormat, FlowNames, FlowParameters, FlowReport, flow_shortcomings};
use std::io::{self, IsTerminal, stderr, stdout};
use std::path::{Path, PathBuf};
use std::thread::available_parallelism;

const EXAMPLES: &str = "\
Examples:
  Conversations with packets and bytes of either side, cut as NetFlow exporters cut them:
    flowsieve flows --bidirectional --idle 15s --active 5min capture.pcap.gz
  All flows of a directory, with Community IDs, for DuckDB, Polars or Spark:
    flowsieve flows --format parquet -o flows.parquet captures/";

#[derive(Args, Clone, Debug)]
#[command(after_long_help = EXAMPLES)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch that the user sets or not"
)]
pub(crate) struct FlowsArgs {
    /// Files, directories, or - for standard input
    #[arg(required = true, value_name = "CAPTURE", help_heading = "Input")]
    captures: Vec<PathBuf>,

    /// auto recognises all formats but tsh, which has no mark
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = Format::Auto, help_heading = "Input")]
    input_format: Format,

    /// Both directions are one flow, its originator the sender of its first packet
    #[arg(long, help_heading = "Flows")]
    bidirectional: bool,

    /// A flow ends when no packet comes for longer than this, such as 15s [default: never]
    #[arg(long, value_name = "DURATION", value_parser = parse_timeout, help_heading = "Flows")]
    idle: Option<i64>,

    /// A flow is cut when it goes on for longer than this, such as 5min [default: never]
    #[arg(long, value_name = "DURATION", value_parser = parse_timeout, help_heading = "Flows")]
    active: Option<i64>,

    /// Print each flow once, as soon as it is seen, by its first packet
    ///
    /// Exact as long as the flows fit into half of the memory; then a filter answers, which may miss
    /// some. How many is said at the end.
    #[arg(long, conflicts_with_all = ["idle", "active"], help_heading = "Flows")]
    unique: bool,

    /// Which IP header of tunnelled packets counts
    #[arg(long, value_enum, value_name = "WHICH", default_value_t = Header::Outer, help_heading = "Flows")]
    tunnel: Header,

    /// One more port on which DNS is spoken, besides 53
    #[arg(long, value_name = "PORT", help_heading = "Flows")]
    dns_port: Vec<u16>,

    /// Memory; when it is full, the flow without packets for longest ends early
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = parse_size, help_heading = "Speed and memory")]
    memory: u64,

    /// Threads; results do not depend on them [default: all processors]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=1024), help_heading = "Speed and memory")]
    threads: Option<u16>,

    /// How flows are written
    #[arg(long, value_enum, default_value_t = ResultFormat::Table, help_heading = "Output")]
    format: ResultFormat,

    /// Whose names the fields have; not for tables
    #[arg(long, value_enum, value_name = "WHOSE", default_value_t = Names::Flowsieve, help_heading = "Output")]
    names: Names,

    /// Write flows to this file, whole or not at all
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    output: Option<PathBuf>,

    #[command(flatten)]
    anonymize: AnonymizeArgs,

    /// No progress bar and no remarks
    #[arg(short, long, conflicts_with = "verbose", help_heading = "Output")]
    quiet: bool,

    /// Say how fast it went, even in a pipe
    #[arg(short, long, help_heading = "Output")]
    verbose: bool,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
enum ResultFormat {
    /// For people
    Table,
    /// A line a flow
    Csv,
    /// One document
    Json,
    /// An object a line
    Jsonl,
    /// Apache Parquet
    Parquet,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
enum Names {
    /// As in all results
    Flowsieve,
    /// As in Zeek's conn.log
    Zeek,
    /// Elastic Common Schema
    Ecs,
}

fn parse_timeout(text: &str) -> Result<i64, String> {
    let timeout = parse_duration_ns(text).map_err(|error| error.to_string())?;
    match i64::try_from(timeout) {
        Ok(0) => Err("a timeout is above 0, such as 15s; without the option there is none".into()),
        Ok(timeout) => Ok(timeout),
        Err(_) => Err(
            "a timeout is at most 292 years, such as 15s; without the option there is none".into(),
        ),
    }
}

const UNWRITTEN: &str = "cannot write the flows";

pub(crate) fn run(args: &FlowsArgs) -> Result<Outcome> {
    let signals = Signals::catch().context("cannot wait for signals")?;
    args.check()?;
    let mut inputs = Inputs::find(&args.captures, args.input_format.into());
    let plan = args.plan(std::mem::take(&mut inputs.files))?;
    let key = args.anonymize.key(args.quiet)?;
    let output = Output::open(args.output.as_deref())?;
    let parameters = FlowParameters {
        anonymized: key.is_some(),
        ..FlowParameters::new(&plan, args.memory, args.unique, args.names.into())
    };
    let addresses = key.as_ref().map(AddressMap::new);
    let progress = Progress::start(!args.quiet, total_bytes(&plan.inputs), signals);
    let styled = output.is_styled();
    let begin = |output| -> Result<_> {
        let report = FlowReport::begin(args.format.into(), &parameters, styled, output);
        Ok(Shown {
            report: report.context(UNWRITTEN)?,
            addresses,
        })
    };
    let (summary, report) = if args.unique {
        let mut report = begin(output)?;
        let summary = list_unique(&plan, &mut report, &progress);
        progress.finish();
        (summary.map_err(explained)?, report)
    } else {
        let mut sorted = SortedFlows::new(args.memory - plan.memory_bytes);
        let summary = list(&plan, &mut sorted, &progress);
        progress.finish();
        let summary = summary.map_err(explained)?;
        let mut report = begin(output)?;
        sorted.drain(|flow| report.flow(flow)).context(UNWRITTEN)?;
        (summary, report)
    };
    let output = report.report.finish(&summary).context(UNWRITTEN)?;
    output.commit()?;
    let outcome = remark(args, &summary, &inputs, &progress);
    let interrupted = summary.totals.interrupted;
    Ok(progress.signals().outcome(interrupted, PARTIAL, outcome))
}

/// The flows as they are shown: with other addresses, if that is wanted.
struct Shown {
    report: FlowReport<Output>,
    addresses: Option<AddressMap>,
}

impl FlowSink for Shown {
    fn flow(&mut self, mut flow: FlowRecord) -> io::Result<()> {
        if let Some(map) = &mut self.addresses {
            flow.addresses = map.addresses(flow.addresses);
        }
        self.report.flow(flow)
    }
}

fn explained(error: FlowError) -> anyhow::Error {
    match error {
        FlowError::Plan(sentence) => UsageError(sentence).into(),
        FlowError::Sink(error) => anyhow::Error::from(error).context(UNWRITTEN),
        error @ FlowError::Broken(_) => error.into(),
    }
}

/// Says on standard error what does not belong into the results.
fn remark(
    args: &FlowsArgs,
    summary: &FlowSummary,
    inputs: &Inputs,
    progress: &Progress,
) -> Outcome {
    let outcome = remarks::problems(inputs, &summary.inputs);
    if args.quiet {
        return outcome;
    }
    // These formats have no place for it.
    if matches!(args.format, ResultFormat::Csv | ResultFormat::Parquet)
        || (args.format == ResultFormat::Jsonl && args.names != Names::Flowsieve)
    {
        for remark in flow_shortcomings(summary) {
            say(format_args!("{remark}"));
        }
    }
    if args.verbose || stderr().is_terminal() {
        remarks::speed(summary.totals.packets, inputs, progress);
    }
    outcome
}

/// The table needs 512 KiB and has three quarters of the memory; the rest is for sorting.
const LEAST_MEMORY: u64 = (512 << 10) / 3 * 4 + 4;

impl FlowsArgs {
    fn check(&self) -> Result<(), UsageError> {
        let streams = self.captures.iter().filter(|path| is_standard_input(path));
        if streams.count() > 1 {
            return Err(UsageError(
                "standard input can be read only once; name - once, or files".into(),
            ));
        }
        if self.memory < LEAST_MEMORY {
            return Err(UsageError(format!(
                "flows need at least {LEAST_MEMORY} bytes of memory, not {}; --memory 1GiB is the default",
                self.memory
            )));
        }
        if self.format == ResultFormat::Table && self.names != Names::Flowsieve {
            return Err(UsageError(
                "a table is for people and has no field names, so --names needs --format csv, json, jsonl or parquet".into(),
            ));
        }
        let to_file = self
            .output
            .as_deref()
            .is_some_and(|path| path != Path::new("-"));
        if self.format == ResultFormat::Parquet && !to_file && stdout().is_terminal() {
            return Err(UsageError(
                "Parquet is not for a terminal; name a file with --output, or pipe it on".into(),
            ));
        }
        Ok(())
    }

    fn plan(&self, inputs: Vec<PathBuf>) -> Result<FlowPlan, UsageError> {
        keep_apart([("--output", self.output.as_deref())], &inputs)?;
        let stream = self.unique && inputs.iter().any(|path| is_standard_input(path));
        let threads = match self.threads {
            // A thread that reads ahead would gather packets before it hands them on.
            _ if stream => 1,
            Some(threads) => usize::from(threads),
            None => available_parallelism().map_or(1, usize::from),
        };
        let plan = FlowPlan {
            inputs,
            input_format: self.input_format.into(),
            tunnel: match self.tunnel {
                Header::Outer => Tunnel::Outer,
                Header::Inner => Tunnel::Inner,
            },
            bidirectional: self.bidirectional,
            dns_ports: self.dns_port.clone(),
            idle_ns: self.idle,
            active_ns: self.active,
            // The rest is for putting flows in order.
            memory_bytes: if self.unique {
                self.memory
            } else {
                self.memory / 4 * 3
            },
            threads,
        };
        plan.check()
            .map_err(|error| UsageError(error.to_string()))?;
        Ok(plan)
    }
}

fn is_standard_input(path: &Path) -> bool {
    path.as_os_str() == "-"
}

impl From<ResultFormat> for FlowFormat {
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

impl From<Names> for FlowNames {
    fn from(names: Names) -> Self {
        match names {
            Names::Flowsieve => Self::Flowsieve,
            Names::Zeek => Self::Zeek,
            Names::Ecs => Self::Ecs,
        }
    }
}
