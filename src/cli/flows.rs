//! `flowsieve flows`: the flows of captures.

use super::anonymize_args::AnonymizeArgs;
use super::divided::{DividedPlan, DividedRun, refuse};
use super::options::{
    Choice, DnsPortArgs, FormatArgs, InputArgs, LiveArgs, OutputArgs, RowsArgs, SpeechArgs,
    ThreadArgs, by_name, one_of,
};
use super::output::Output;
use super::run::{PARTIAL, Run};
use super::same_file::keep_apart;
use super::units::{in_short, parse_count, parse_size, parse_width_ns, with_values};
use super::{Outcome, UsageError};
use anyhow::{Context, Result};
use clap::Args;
use flowsieve::anonymize::AddressMap;
use flowsieve::flows::{
    FlowOrder, FlowPlan, FlowRecord, FlowSink, LargestFlows, RemainingFlows, SortedFlows, list,
    list_unique,
};
use flowsieve::report::{FlowNames, FlowParameters, FlowReport, flow_shortcomings, flow_summary};
use std::io;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  Conversations with packets and bytes of either side, cut as NetFlow exporters cut them:
    flowsieve flows --bidirectional --idle 15s --active 5min capture.pcap.gz
  The flows with the most bytes:
    flowsieve flows --sort bytes -n 20 capture.pcap
  All flows of a directory, with Community IDs, for DuckDB, Polars or Spark:
    flowsieve flows --format parquet -o flows.parquet captures/";

#[derive(Args, Clone, Debug)]
#[command(after_help = in_short(EXAMPLES), after_long_help = with_values(EXAMPLES))]
pub(crate) struct FlowsArgs {
    #[command(flatten)]
    input: InputArgs,

    /// Both directions are one flow, its originator the sender of its first packet
    #[arg(long, help_heading = "Flows")]
    bidirectional: bool,

    /// A flow ends when no packet comes for longer than this, such as 15s [default: never]
    #[arg(long, value_name = "DURATION", value_parser = parse_width_ns, help_heading = "Flows")]
    idle: Option<i64>,

    /// A flow is cut when it goes on for longer than this, such as 5min [default: never]
    #[arg(long, value_name = "DURATION", value_parser = parse_width_ns, help_heading = "Flows")]
    active: Option<i64>,

    /// Print each flow once, as soon as it is seen, by its first packet
    ///
    /// Exact as long as the flows fit into half of the memory; after that a filter answers, which
    /// may miss some flows. The summary says how many.
    #[arg(long, conflicts_with_all = ["idle", "active"], help_heading = "Flows")]
    unique: bool,

    /// List this many flows, the first in the order of --sort [default: all]
    ///
    /// Never more than 1,048,576.
    #[arg(short = 'n', long = "number", value_name = "COUNT", value_parser = parse_count, help_heading = "Flows", conflicts_with = "unique")]
    number: Option<u64>,

    /// Order of the list: start, bytes, packets or duration
    ///
    /// Bytes and packets are those of both directions, the most first. All but start need -n.
    #[arg(long, value_name = "NUMBER", value_parser = by_name(FlowOrder::ALL, FlowOrder::name), default_value = "start", help_heading = "Flows", hide_possible_values = true)]
    sort: FlowOrder,

    #[command(flatten, next_help_heading = "Flows")]
    dns: DnsPortArgs,

    /// Memory; when it is full, the flow without packets for longest ends early
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = parse_size, help_heading = "Speed and memory", hide_short_help = true)]
    memory: u64,

    #[command(flatten, next_help_heading = "Speed and memory")]
    threads: ThreadArgs,

    #[command(flatten)]
    format: FormatArgs,

    #[command(flatten, next_help_heading = "Output")]
    rows: RowsArgs,

    /// Whose names the fields have; not for tables
    #[arg(long, value_name = "WHOSE", default_value = "flowsieve", value_parser = one_of(NAMES), help_heading = "Output", hide_short_help = true)]
    names: FlowNames,

    #[command(flatten, next_help_heading = "Output")]
    output: OutputArgs,

    #[command(flatten)]
    live: LiveArgs,

    #[command(flatten)]
    anonymize: AnonymizeArgs,

    #[command(flatten, next_help_heading = "Output")]
    speech: SpeechArgs,
}

pub(super) const NAMES: &[Choice<FlowNames>] = &[
    ("flowsieve", "As in all results", FlowNames::Flowsieve),
    ("zeek", "As in Zeek's conn.log", FlowNames::Zeek),
    ("ecs", "Elastic Common Schema", FlowNames::Ecs),
];

const UNWRITTEN: &str = "cannot write the flows";

pub(crate) fn run(args: &FlowsArgs, run: &mut Run) -> Result<Outcome> {
    args.check()?;
    let files = run.start_on(&args.input, args.live.follow, args.speech.is_quiet())?;
    let mut plan = args.plan(&files)?;
    run.open(&mut plan.trace)?;
    let key = args.anonymize.key(run.quiet)?;
    let shown = (args.format, args.rows, args.live);
    let (output, style) = args.output.open_live(run, &mut plan.trace, shown)?;
    let parameters = FlowParameters {
        anonymized: key.is_some(),
        order: args.sort,
        most: args.most(),
        ..FlowParameters::new(&plan, args.memory, args.unique, args.names)
    };
    let report = FlowReport::begin(args.format.of(&args.output), &parameters, style, output);
    let addresses = key.as_ref().map(AddressMap::new);
    let mut shown = Shown { report: report.context(UNWRITTEN)?, addresses };
    // In the order of their start the flows of a stream would come at its end only.
    let ends_flows =
        plan.trace.delay_ns.is_some() && plan.idle_ns.is_some() && args.number.is_none();
    let mut handed = Ok(());
    let summary = if args.unique || (ends_flows && plan.trace.is_stream()) {
        let list = if args.unique { list_unique } else { list };
        run.read(&plan.trace.inputs, |watch| list(&plan, &mut shown, watch))?
    } else if let Some(most) = args.most() {
        let mut largest = LargestFlows::new(args.sort, most);
        let summary = run.read(&plan.trace.inputs, |watch| list(&plan, &mut largest, watch))?;
        handed = largest.emit(&mut shown);
        summary
    } else {
        let mut sorted = SortedFlows::new(args.memory - plan.memory_bytes);
        let summary = run.read(&plan.trace.inputs, |watch| list(&plan, &mut sorted, watch))?;
        shown.report = shown.report.parallel(plan.trace.threads);
        handed = sorted.emit(&mut shown);
        summary
    };
    let written = handed.and_then(|()| shown.report.finish(&summary)).context(UNWRITTEN);
    args.output.finish(run, written, || flow_summary(&parameters, &summary))?;
    run.note(args.format.of(&args.output), flow_shortcomings(&summary));
    Ok(run.end(&summary, args.speech, PARTIAL))
}

/// Passes flows to the report, with anonymized addresses if requested.
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

    fn last(&mut self, mut flows: RemainingFlows) -> io::Result<()> {
        if self.addresses.is_some() {
            return flows.try_for_each(|flow| self.flow(flow));
        }
        self.report.last(flows)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.report.flush()
    }
}

/// The table needs 512 KiB and has three quarters of the memory; the rest is for sorting.
const LEAST_MEMORY: u64 = (512 << 10) / 3 * 4 + 4;

impl FlowsArgs {
    /// Returns the same for machines to divide.
    pub(super) fn divided(&self) -> Result<DividedRun, UsageError> {
        refuse(
            &self.input.read,
            &self.output,
            &[
                (self.live.follow, "--follow"),
                (self.unique, "--unique"),
                (self.anonymize.is_wanted(), "--anonymize"),
                (self.number.is_some(), "--number"),
            ],
        )?;
        self.check()?;
        let plan = self.plan(&self.input.captures)?;
        let parameters = FlowParameters::new(&plan, self.memory, false, self.names);
        let plan = DividedPlan::Flows(parameters);
        Ok(plan.run(self.format.of(&self.output), &self.output, self.speech.is_quiet()))
    }

    fn check(&self) -> Result<(), UsageError> {
        if self.memory < LEAST_MEMORY {
            return Err(UsageError::new(format!(
                "flows need at least {LEAST_MEMORY} bytes of memory, not {}; --memory 1GiB is the default",
                self.memory
            )));
        }
        UsageError::check(&[
            (
                self.sort != FlowOrder::Start && self.number.is_none(),
                "--sort lists the largest flows, so say how many: add -n 20",
            ),
            (
                self.number == Some(0)
                    || self.number.is_some_and(|number| number > LargestFlows::MOST as u64),
                "-n lists 1 to 1,048,576 flows; -n 20 works",
            ),
        ])?;
        UsageError::check(&[(
            self.format.of(&self.output).is_table() && self.names != FlowNames::Flowsieve,
            "a table is for people and has no field names, so --names needs --format csv, json, jsonl or parquet",
        )])?;
        self.format.check(&self.output)
    }

    /// Returns how many flows are listed at most, if not all.
    fn most(&self) -> Option<usize> {
        self.number.map(|number| number as usize)
    }

    fn plan(&self, inputs: &[PathBuf]) -> Result<FlowPlan, UsageError> {
        keep_apart(self.output.files(), &self.anonymize.with_key(inputs))?;
        let plan = FlowPlan {
            trace: self.input.read.trace(&self.live.sources(inputs), &self.dns, &self.threads)?,
            bidirectional: self.bidirectional,
            idle_ns: self.idle,
            active_ns: self.active,
            // The rest is for putting flows in order.
            memory_bytes: if self.unique { self.memory } else { self.memory / 4 * 3 },
        };
        plan.check()?;
        Ok(plan)
    }
}
