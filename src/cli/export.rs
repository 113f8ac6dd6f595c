//! `flowsieve export`: packets, or the elements of slices, for programs.

use super::divided::{DividedPlan, DividedRun, refuse};
use super::flows::NAMES;
use super::options::{
    DnsPortArgs, FormatArgs, InputArgs, OutputArgs, SliceArgs, SpeechArgs, ThreadArgs, check_ends,
    elements, named, one_of,
};
use super::output::Output;
use super::run::{PARTIAL, Run};
use super::same_file::keep_apart;
use super::units::{in_short, parse_size, with_values};
use super::{Outcome, UsageError};
use anyhow::{Context, Result};
use clap::Args;
use clap::builder::TypedValueParser;
use flowsieve::elements::ElementKind;
use flowsieve::export::{ElementRows, ExportPlan, ExportRows, ExportSink, ExportWhat, export};
use flowsieve::report::{
    ExportParameters, ExportReport, FlowNames, ReportFormat, export_shortcomings, export_summary,
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
    /// A kind of element, or the fields of a key separated by commas, as for `flowsieve count`.
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
    dns: DnsPortArgs,

    /// Memory of open slices; when it is full, elements are written early
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = parse_size, help_heading = "Speed and memory", hide_short_help = true)]
    memory: u64,

    #[command(flatten, next_help_heading = "Speed and memory")]
    threads: ThreadArgs,

    /// How rows are written [default: as the name of the output ends, or csv]
    #[arg(long, value_parser = formats(), help_heading = "Output")]
    format: Option<ReportFormat>,

    /// Whose names the fields have
    #[arg(long, value_name = "WHOSE", default_value = "flowsieve", value_parser = one_of(NAMES), help_heading = "Output", hide_short_help = true)]
    names: FlowNames,

    #[command(flatten, next_help_heading = "Output")]
    output: OutputArgs,

    #[command(flatten, next_help_heading = "Output")]
    speech: SpeechArgs,
}

/// Returns the formats for programs: rows by the million are not for people.
fn formats() -> impl TypedValueParser<Value = ReportFormat> {
    named(ReportFormat::ALL[1..].iter().copied(), ReportFormat::name, ReportFormat::help)
}

const UNWRITTEN: &str = "cannot write the rows";

pub(crate) fn run(args: &ExportArgs, run: &mut Run) -> Result<Outcome> {
    args.check()?;
    let files = run.start_on(&args.input, false, args.speech.is_quiet())?;
    let mut plan = args.plan(&files)?;
    run.open(&mut plan.trace)?;
    let output = args.output.open(run)?;
    // Rows and a bar would overwrite each other.
    run.hides_progress = output.is_terminal();
    let can_begin_again = output.is_file();
    let (parameters, partials) = (ExportParameters::new(&plan, args.names), run.partials.clone());
    let begin =
        |output| ExportReport::begin(args.format(), &parameters, plan.trace.threads, output);
    let begin_again = || {
        let output = Output::open(&partials, args.output.path());
        begin(output.map_err(io::Error::other)?)
    };
    let report = begin(output).context(UNWRITTEN)?;
    let mut rows = Rows { report, can_begin_again, begin_again };
    let summary = run.read(&plan.trace.inputs, |watch| export(&plan, &mut rows, watch))?;
    let written = rows.report.finish(&summary).context(UNWRITTEN);
    args.output.finish(run, written, || export_summary(&parameters, &summary))?;
    run.note(args.format(), export_shortcomings(&summary));
    Ok(run.end(&summary, args.speech, PARTIAL))
}

/// Writes rows. A file can be begun again.
struct Rows<B> {
    report: ExportReport<Output>,
    can_begin_again: bool,
    begin_again: B,
}

impl<B: Fn() -> io::Result<ExportReport<Output>>> ExportSink for Rows<B> {
    fn rows(&mut self, rows: &mut ExportRows, range: Range<usize>) -> io::Result<()> {
        self.report.rows(rows, range)
    }

    fn elements(&mut self, elements: ElementRows) -> io::Result<()> {
        self.report.elements(elements)
    }

    fn drain(&mut self) -> io::Result<()> {
        self.report.drain()
    }

    fn can_begin_again(&self) -> bool {
        self.can_begin_again
    }

    fn begin_again(&mut self) -> io::Result<()> {
        self.report = (self.begin_again)()?;
        Ok(())
    }
}

impl ExportArgs {
    fn format(&self) -> ReportFormat {
        self.format.or_else(|| self.output.format()).unwrap_or(ReportFormat::CSV)
    }

    /// Returns the same for machines to divide.
    pub(super) fn divided(&self) -> Result<DividedRun, UsageError> {
        refuse(&self.input.read, &self.output, &[])?;
        self.check()?;
        let plan = self.plan(&self.input.captures)?;
        let plan = DividedPlan::Export(ExportParameters::new(&plan, self.names));
        Ok(plan.run(self.format(), &self.output, self.speech.is_quiet()))
    }

    fn check(&self) -> Result<(), UsageError> {
        check_ends(self.element, self.undirected)?;
        UsageError::check(&[(
            self.queries_only && !self.element.has_name(),
            "--queries-only is about DNS messages: add --element dns, or leave it out; --where 'udp[10] & 0x80 = 0' leaves out responses of flows",
        )])?;
        FormatArgs { format: Some(self.format()) }.check(&self.output)
    }

    fn plan(&self, inputs: &[PathBuf]) -> Result<ExportPlan, UsageError> {
        keep_apart(self.output.files(), inputs)?;
        let what = if self.all {
            ExportWhat::Packets
        } else {
            ExportWhat::Elements {
                kind: self.element,
                undirected: self.undirected,
                queries_only: self.queries_only,
                slicing: self.slices.slicing(self.input.read.zone()),
                memory_bytes: self.memory,
            }
        };
        let trace = self.input.read.trace(inputs, &self.dns, &self.threads)?;
        let plan = ExportPlan { trace, what };
        plan.check()?;
        Ok(plan)
    }
}
