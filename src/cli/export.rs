//! `flowsieve export`: packets, or the elements of slices, for programs.

use super::divided::{DividedPlan, DividedRun, refuse};
use super::flows::NAMES;
use super::options::{
    Choice, FormatArgs, InputArgs, OutputArgs, PacketArgs, SliceArgs, SpeechArgs, ThreadArgs,
    check_ends, elements, one_of,
};
use super::output::Output;
use super::run::{PARTIAL, Run, explained};
use super::same_file::keep_apart;
use super::say::say;
use super::units::{in_short, parse_size, with_values};
use super::{Outcome, UsageError};
use anyhow::{Context, Result};
use clap::Args;
use flowsieve::elements::ElementKind;
use flowsieve::export::{ElementRows, ExportPlan, ExportRows, ExportSink, ExportWhat, export};
use flowsieve::report::{
    ExportFormat, ExportParameters, ExportReport, FlowNames, ReportFormat, export_shortcomings,
};
use std::io;
use std::ops::Range;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  The flows of each second, each with its packets and bytes there, for DuckDB, Polars or Spark:
    flowsieve export --format parquet -o seconds.parquet capture.pcap.gz
  DNS packets, one a row, with name, type and response code:
    flowsieve export --all --where 'port 53' capture.pcap";

#[derive(Args, Clone, Debug)]
#[command(after_help = in_short(EXAMPLES), after_long_help = with_values(EXAMPLES))]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    input: InputArgs,

    /// Export each packet, and not each element once per slice
    #[arg(long, help_heading = "Rows", conflicts_with_all = ["element", "undirected", "queries_only", "slice", "align", "memory"])]
    all: bool,

    /// What an element is
    ///
    /// Only the first fragment of a datagram has ports, so its later fragments are a flow with
    /// ports 0.
    #[arg(long, value_name = "KIND", default_value = "flow", value_parser = elements(), help_heading = "Rows")]
    element: ElementKind,

    /// Export both directions as one, with the ends of its first packet
    #[arg(long, help_heading = "Rows")]
    undirected: bool,

    /// Export DNS queries only, with `--element dns`
    #[arg(long, help_heading = "Rows")]
    queries_only: bool,

    #[command(flatten, next_help_heading = "Rows")]
    slices: SliceArgs<false>,

    #[command(flatten, next_help_heading = "Rows")]
    packets: PacketArgs,

    /// Memory of open slices; when it is full, elements are written early
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = parse_size, help_heading = "Speed and memory", hide_short_help = true)]
    memory: u64,

    #[command(flatten, next_help_heading = "Speed and memory")]
    threads: ThreadArgs,

    /// How rows are written
    #[arg(long, default_value = "csv", value_parser = one_of(FORMATS), help_heading = "Output")]
    format: ExportFormat,

    /// Whose names the fields have
    #[arg(long, value_name = "WHOSE", default_value = "flowsieve", value_parser = one_of(NAMES), help_heading = "Output", hide_short_help = true)]
    names: FlowNames,

    #[command(flatten, next_help_heading = "Output")]
    output: OutputArgs,

    #[command(flatten, next_help_heading = "Output")]
    speech: SpeechArgs,
}

/// The formats for programs: rows by the million are not for people.
const FORMATS: &[Choice<ExportFormat>] = &[
    report_format(ReportFormat::Csv),
    report_format(ReportFormat::Json),
    report_format(ReportFormat::JsonLines),
    report_format(ReportFormat::Parquet),
    #[cfg(feature = "arrow")]
    ("arrow", "An Arrow IPC file", ExportFormat::Arrow),
    #[cfg(feature = "arrow")]
    report_format(ReportFormat::ArrowStream),
];

const fn report_format(format: ReportFormat) -> Choice<ExportFormat> {
    (format.name(), format.help(), ExportFormat::Report(format))
}

const UNWRITTEN: &str = "cannot write the rows";

pub(crate) fn run(args: &ExportArgs) -> Result<Outcome> {
    let mut run = Run::begin()?;
    args.check()?;
    let files = run.find(&args.input, false)?;
    let mut plan = args.plan(&files)?;
    if !run.can_read(&plan.inputs, plan.input_format) {
        return Ok(run.end(false, PARTIAL));
    }
    plan.selection = run.resolve(&plan.selection, &plan.inputs, plan.input_format)?;
    let output = args.output.open()?;
    let is_watched = output.is_terminal();
    let parameters = ExportParameters::new(&plan, args.names);
    let is_file = output.is_file();
    let mut rows = Rows {
        report: Some(args.begin(&parameters, plan.threads, output).context(UNWRITTEN)?),
        again: is_file.then_some((args, &parameters, plan.threads)),
    };
    let quiet = args.speech.is_quiet();
    // Rows that come meanwhile and a bar would write over each other.
    let summary = run.watch(quiet || is_watched, &files, |watch| export(&plan, &mut rows, watch));
    let summary = summary.map_err(explained)?;
    if run.read_nothing(&summary.inputs, summary.totals.interrupted) {
        return Ok(run.end(summary.totals.interrupted, PARTIAL));
    }
    let report = rows.report.context(UNWRITTEN)?;
    let output = report.finish(&summary).context(UNWRITTEN)?;
    output.commit()?;
    run.problems(&summary.inputs);
    // The other formats cannot hold it.
    let is_held = match args.format {
        ExportFormat::Report(format) if format.says_all() => true,
        ExportFormat::Report(ReportFormat::JsonLines) => args.names == FlowNames::Flowsieve,
        _ => false,
    };
    if !is_held && !quiet {
        for remark in export_shortcomings(&summary) {
            say(format_args!("{remark}"));
        }
    }
    run.speed(args.speech, summary.totals.packets);
    Ok(run.end(summary.totals.interrupted, PARTIAL))
}

/// Writes rows, anew if need be where that is possible.
struct Rows<'a> {
    /// There unless it could not begin again.
    report: Option<ExportReport<Output>>,
    again: Option<(&'a ExportArgs, &'a ExportParameters, usize)>,
}

impl ExportSink for Rows<'_> {
    fn rows(&mut self, rows: &mut ExportRows, range: Range<usize>) -> io::Result<()> {
        let report = self.report.as_mut();
        report.map_or(Ok(()), |report| report.rows(rows, range))
    }

    fn elements(&mut self, elements: ElementRows) -> io::Result<()> {
        let report = self.report.as_mut();
        report.map_or(Ok(()), |report| report.elements(elements))
    }

    fn settle(&mut self) -> io::Result<()> {
        let report = self.report.as_mut();
        report.map_or(Ok(()), ExportReport::settle)
    }

    fn can_begin_again(&self) -> bool {
        self.again.is_some()
    }

    fn begin_again(&mut self) -> io::Result<()> {
        if let Some((args, parameters, threads)) = self.again {
            self.report = None;
            let output = args.output.open().map_err(io::Error::other)?;
            self.report = Some(args.begin(parameters, threads, output)?);
        }
        Ok(())
    }
}

impl ExportArgs {
    fn begin(
        &self,
        parameters: &ExportParameters,
        threads: usize,
        output: Output,
    ) -> io::Result<ExportReport<Output>> {
        ExportReport::begin(self.format, parameters, threads, output)
    }

    /// The same for machines to divide.
    pub(super) fn divided(&self) -> Result<DividedRun, UsageError> {
        let format = match self.format {
            ExportFormat::Report(format) => format,
            #[cfg(feature = "arrow")]
            ExportFormat::Arrow => {
                return Err(UsageError::of(
                    "--format arrow makes one file on one machine, so it does not go with a run that is divided among machines; leave it out",
                ));
            }
        };
        refuse(self.input.selection.zone, [])?;
        self.check()?;
        let plan = self.plan(&self.input.captures)?;
        let parameters = ExportParameters::new(&plan, self.names);
        Ok(DividedRun {
            plan: DividedPlan::Export(plan, parameters),
            format,
            output: self.output.output.clone(),
            is_quiet: self.speech.is_quiet(),
        })
    }

    fn check(&self) -> Result<(), UsageError> {
        check_ends(self.element, self.undirected)?;
        if self.queries_only && self.element != ElementKind::Dns {
            return Err(UsageError::of(
                "--queries-only is about DNS messages: add --element dns, or leave it out; --where 'udp[10] & 0x80 = 0' leaves \
                 out responses of flows",
            ));
        }
        match self.format {
            ExportFormat::Report(format) => FormatArgs { format }.check(&self.output),
            #[cfg(feature = "arrow")]
            ExportFormat::Arrow => self.output.check_binary("Arrow"),
        }
    }

    fn plan(&self, inputs: &[PathBuf]) -> Result<ExportPlan, UsageError> {
        keep_apart([("--output", self.output.path())], inputs)?;
        let tunnel = self.packets.headers.tunnel;
        let what = if self.all {
            ExportWhat::Packets
        } else {
            ExportWhat::Elements {
                kind: self.element,
                undirected: self.undirected,
                queries_only: self.queries_only,
                slicing: self.slices.slicing(self.input.selection.zone.zone()),
                memory_bytes: self.memory,
            }
        };
        let plan = ExportPlan {
            inputs: inputs.iter().map(Into::into).collect(),
            input_format: self.input.format.format(),
            selection: self.input.selection.selection(tunnel)?,
            tunnel,
            dns_ports: self.packets.dns.dns_port.clone(),
            what,
            threads: self.threads.count(),
        };
        plan.check().map_err(UsageError::of)?;
        Ok(plan)
    }
}
