//! `flowsieve dedup`: a capture without its duplicates.

use super::anonymize_args::AnonymizeArgs;
use super::inputs::{Inputs, total_bytes};
use super::output::Output;
use super::progress::Progress;
use super::same_file::keep_apart;
use super::say::say;
use super::signals::{PARTIAL, Signals};
use super::trace_args::Format;
use super::units::{parse_count, parse_duration_ns, parse_size};
use super::{Outcome, UsageError};
use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use flowsieve::anonymize::PacketAnonymizer;
use flowsieve::dedup::{
    DedupError, DedupPlan, DedupSummary, Difference, Sameness, WindowFilterKind, WindowWidth,
    Writers, dedup,
};
use flowsieve::report::{DedupFormat, DedupParameters, write_dedup};
use flowsieve::trace::write::{CaptureWriter, WriteError, WriteFormat, Written};
use std::io::{self, IsTerminal, stderr};
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  A capture of a mirrored port without the packets that were recorded twice:
    flowsieve dedup capture.pcap -w unique.pcap
  The same bytes within five frames, as `editcap -d` has it, with what was removed in a second file:
    flowsieve dedup --by frame --window 5p capture.pcap -w unique.pcap --dropped removed.pcap";

#[derive(Args, Clone, Debug)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct DedupArgs {
    /// Files, directories, or - for standard input
    #[arg(required = true, value_name = "CAPTURE", help_heading = "Input")]
    captures: Vec<PathBuf>,

    /// auto recognises all formats but tsh, which has no mark
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = Format::Auto, help_heading = "Input")]
    input_format: Format,

    /// What makes two packets the same
    #[arg(long, value_enum, value_name = "RULE", default_value_t = By::Packet, help_heading = "Duplicates")]
    by: By,

    /// What counts as a difference between packets that are else the same
    #[arg(
        long,
        value_enum,
        value_name = "WHAT",
        value_delimiter = ',',
        help_heading = "Duplicates"
    )]
    distinguish: Vec<Distinct>,

    /// How far back to look: a time such as 50ms, or packets such as 5p
    #[arg(long, default_value = "50ms", value_parser = parse_window, help_heading = "Duplicates")]
    window: WindowWidth,

    /// The filter that follows the window
    #[arg(long, value_enum, value_name = "NAME", default_value_t = Sieve::Rotating, help_heading = "Filter")]
    filter: Sieve,

    /// Drop what the filter takes for a repeat, without looking it up
    ///
    /// Needs no more than --memory whatever the rate, remembers at least the window and at most one
    /// and a half of it, and reports how many packets it is expected to have dropped wrongly.
    #[arg(long, help_heading = "Filter")]
    approximate: bool,

    /// Memory of window and filter; a window that does not fit shrinks
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = parse_size, help_heading = "Filter")]
    memory: u64,

    /// Seed of the digests [default: random; with --approximate: 0]
    #[arg(long, value_name = "NUMBER", help_heading = "Filter")]
    seed: Option<u64>,

    /// Capture to write, whole or not at all; - is standard output
    ///
    /// pcap if the name ends in .pcap, .cap, .dmp or .dump, else (and to standard output) pcapng;
    /// compressed if .gz, .zst, .xz, .bz2 or .lz4 follows.
    #[arg(
        short = 'w',
        long = "write",
        value_name = "OUT",
        help_heading = "Output"
    )]
    write: Option<PathBuf>,

    /// Write the packets that are dropped to a second capture
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    dropped: Option<PathBuf>,

    #[command(flatten)]
    anonymize: AnonymizeArgs,

    /// Report only
    #[arg(long, conflicts_with_all = ["write", "dropped"], help_heading = "Output")]
    dry_run: bool,

    /// Report also each time slice of this width, such as 1s
    #[arg(long, value_name = "DURATION", value_parser = parse_slice, help_heading = "Output")]
    slice: Option<i64>,

    /// How the summary is written
    #[arg(long, value_enum, default_value_t = SummaryFormat::Table, help_heading = "Output")]
    format: SummaryFormat,

    /// Write the summary to this file, whole or not at all
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    output: Option<PathBuf>,

    /// No progress bar and no remarks
    #[arg(short, long, help_heading = "Output")]
    quiet: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum By {
    /// The IP packet, whatever happened to link header, VLAN, MPLS, TTL and header checksum
    Packet,
    /// The captured bytes
    Frame,
    /// TCP segments with data that are sent again
    Retransmission,
    /// The flow: only its first packet in the window is kept
    Flow,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
enum Distinct {
    /// VLAN identifiers
    Vlan,
    /// Link-layer addresses
    Mac,
    /// TTL or hop limit
    Ttl,
    /// Input and interface
    Interface,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Sieve {
    /// d-left counting Bloom filter
    Dleft,
    /// Split counting Bloom filter
    SplitCounting,
    /// Counting Bloom filter
    Counting,
    /// Three Bloom filters in turn
    Rotating,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum SummaryFormat {
    /// For people
    Table,
    /// A line a slice
    Csv,
    /// One document
    Json,
}

fn parse_window(text: &str) -> Result<WindowWidth, String> {
    const RULE: &str = "a window is a time, such as 50ms, or a number of packets, such as 5p";
    if let Some(count) = text.strip_suffix('p') {
        return match parse_count(count) {
            Ok(0) => Err("a window of packets includes the packet itself: 1p is the least".into()),
            Ok(count) => Ok(WindowWidth::Packets(count)),
            Err(_) => Err(RULE.into()),
        };
    }
    let width = parse_duration_ns(text).map_err(|_| RULE)?;
    let width = i64::try_from(width).map_err(|_| "a window is at most 292 years wide")?;
    Ok(WindowWidth::Time(width))
}

fn parse_slice(text: &str) -> Result<i64, String> {
    let width = parse_duration_ns(text).map_err(|error| error.to_string())?;
    match i64::try_from(width) {
        Ok(0) => Err("a time slice has a width above 0, such as 1s".into()),
        Ok(width) => Ok(width),
        Err(_) => Err("a time slice is at most 292 years wide".into()),
    }
}

pub(crate) fn run(args: &DedupArgs) -> Result<Outcome> {
    let signals = Signals::catch().context("cannot wait for signals")?;
    if args.write.is_none() && !args.dry_run {
        return Err(UsageError(
            "name the capture to write with -w, or ask for --dry-run, which only reports".into(),
        )
        .into());
    }
    if args.dry_run && args.anonymize.is_wanted() {
        return Err(UsageError(
            "a report has no addresses that could be replaced; leave out --dry-run or --anonymize"
                .into(),
        )
        .into());
    }
    let mut inputs = Inputs::find(&args.captures, args.input_format.into());
    let plan = args.plan(std::mem::take(&mut inputs.files));
    plan.check()
        .map_err(|error| UsageError(error.to_string()))?;
    args.check_files(&plan.inputs)?;
    let key = args.anonymize.key(args.quiet)?;
    let single = plan.inputs.len() == 1;
    let mut writers = Writers {
        kept: open(args.write.as_deref(), single)?,
        dropped: open(args.dropped.as_deref(), single)?,
        anonymizer: key.as_ref().map(PacketAnonymizer::new),
    };
    let to_standard = args.write.as_deref().is_some_and(is_standard);
    let summary_out = match &args.output {
        None if to_standard => None,
        path => Some(Output::open(path.as_deref())?),
    };
    let progress = Progress::start(!args.quiet, total_bytes(&plan.inputs), signals);
    let result = dedup(&plan, &mut writers, &progress);
    progress.finish();
    let summary = result.map_err(|error| args.cause(error))?;
    // The dropped packets first: if they cannot be written, the capture that lacks them must not be.
    let removed = finish(writers.dropped, args.dropped.as_deref())?;
    let kept = finish(writers.kept, args.write.as_deref())?;
    let mut parameters = DedupParameters::from(&plan);
    parameters.anonymized = key.is_some();
    let mut written = Written::default();
    for (output, count) in [removed, kept].into_iter().flatten() {
        // Half a capture looks like a whole one: it gets no name. What has gone down a pipe is there.
        if !summary.interrupted || !output.is_file() {
            output.commit()?;
        }
        written.without_options += count.without_options;
    }
    let format = args.format.into();
    let unwritten = "cannot write the summary";
    match summary_out {
        Some(mut out) => {
            write_dedup(format, &parameters, &summary, &mut out).context(unwritten)?;
            out.commit()?;
        }
        None => write_dedup(format, &parameters, &summary, &mut stderr()).context(unwritten)?,
    }
    let outcome = remark(args, &summary, &inputs, written);
    let files = [&args.write, &args.dropped].into_iter().flatten();
    let unwritten = files.clone().any(|path| !is_standard(path));
    let what = if unwritten {
        "no capture was written, and the summary is of what was read until then"
    } else {
        PARTIAL
    };
    let interrupted = summary.interrupted;
    Ok(progress.signals().outcome(interrupted, what, outcome))
}

fn is_standard(path: &Path) -> bool {
    path.as_os_str() == "-"
}

fn open(path: Option<&Path>, single: bool) -> Result<Option<CaptureWriter<Output>>> {
    let Some(path) = path else {
        return Ok(None);
    };
    if is_standard(path) && io::stdout().is_terminal() {
        return Err(UsageError(
            "a capture is not for a terminal: name a file with -w, or redirect the output".into(),
        )
        .into());
    }
    let output = Output::open(Some(path))?;
    let writer = CaptureWriter::new(output, WriteFormat::of_name(path), single);
    Ok(Some(writer.with_context(|| unwritten(path))?))
}

fn finish(
    writer: Option<CaptureWriter<Output>>,
    path: Option<&Path>,
) -> Result<Option<(Output, Written)>> {
    let (Some(writer), Some(path)) = (writer, path) else {
        return Ok(None);
    };
    Ok(Some(
        writer.finish().map_err(|error| write_cause(error, path))?,
    ))
}

fn unwritten(path: &Path) -> String {
    if is_standard(path) {
        "cannot write to standard output".to_owned()
    } else {
        format!("cannot write {}", path.display())
    }
}

/// The system's error stays one, so that a closed pipe is seen as such.
fn write_cause(error: WriteError, path: &Path) -> anyhow::Error {
    let error = match error {
        WriteError::Io(error) => anyhow::Error::from(error),
        other => other.into(),
    };
    error.context(unwritten(path))
}

/// Says on standard error what does not belong into the summary.
fn remark(args: &DedupArgs, summary: &DedupSummary, inputs: &Inputs, written: Written) -> Outcome {
    let mut problems = inputs.problems.clone();
    for input in &summary.inputs {
        problems.extend(input.error.as_ref().map(ToString::to_string));
        if input.is_log {
            problems.push(format!(
                "{}: a DNS log has no packets; dedup reads captures",
                input.path.display()
            ));
        }
    }
    for problem in &problems {
        say(format_args!("flowsieve: {problem}"));
    }
    if written.without_options > 0 && !args.quiet {
        say(format_args!(
            "flowsieve: the comments and flags of {} packets are lost, since pcap has no place for them; give the output a name that ends in .pcapng",
            written.without_options
        ));
    }
    if problems.is_empty() {
        Outcome::Done
    } else {
        Outcome::Incomplete
    }
}

impl DedupArgs {
    fn plan(&self, inputs: Vec<PathBuf>) -> DedupPlan {
        let has = |what| self.distinguish.contains(&what);
        DedupPlan {
            inputs,
            input_format: self.input_format.into(),
            by: match self.by {
                By::Packet => Sameness::Packet,
                By::Frame => Sameness::Frame,
                By::Retransmission => Sameness::Retransmission,
                By::Flow => Sameness::Flow,
            },
            distinguish: Difference {
                vlan: has(Distinct::Vlan),
                mac: has(Distinct::Mac),
                ttl: has(Distinct::Ttl),
                interface: has(Distinct::Interface),
            },
            window: self.window,
            filter: match self.filter {
                Sieve::Dleft => WindowFilterKind::Dleft,
                Sieve::SplitCounting => WindowFilterKind::SplitCounting,
                Sieve::Counting => WindowFilterKind::Counting,
                Sieve::Rotating => WindowFilterKind::Rotating,
            },
            approximate: self.approximate,
            memory_bytes: self.memory,
            slice_ns: self.slice,
            // What is approximate depends on the seed, so it is the same every time.
            seed: self.seed.or(self.approximate.then_some(0)),
        }
    }

    /// No file is read and written, or written twice.
    fn check_files(&self, inputs: &[PathBuf]) -> Result<(), UsageError> {
        if inputs.iter().filter(|path| is_standard(path)).count() > 1 {
            return Err(UsageError(
                "standard input can be read only once; name - once, or files".into(),
            ));
        }
        let written = [
            ("-w", self.write.as_deref()),
            ("--dropped", self.dropped.as_deref()),
            ("--output", self.output.as_deref()),
        ];
        keep_apart(written, inputs)
    }

    fn cause(&self, error: DedupError) -> anyhow::Error {
        let path = |path: &Option<PathBuf>| path.clone().unwrap_or_default();
        match error {
            DedupError::Plan(error) => UsageError(error.to_string()).into(),
            DedupError::Broken(error) => error.into(),
            DedupError::Kept(error) => write_cause(error, &path(&self.write)),
            DedupError::Dropped(error) => write_cause(error, &path(&self.dropped)),
        }
    }
}

impl From<SummaryFormat> for DedupFormat {
    fn from(format: SummaryFormat) -> Self {
        match format {
            SummaryFormat::Table => Self::Table,
            SummaryFormat::Csv => Self::Csv,
            SummaryFormat::Json => Self::Json,
        }
    }
}
