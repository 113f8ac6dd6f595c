//! `flowsieve dedup`: a capture without its duplicates.

use super::anonymize_args::{AnonymizeArgs, VendorArgs};
use super::options::{
    Choice, FormatArgs, InputArgs, OutputArgs, QuietArgs, RowsArgs, ThreadArgs, TunnelArgs, named,
    one_of,
};
use super::output::{Output, unwritten};
use super::run::{PARTIAL, Run, explained, times};
use super::same_file::keep_apart;
use super::say::say;
use super::units::{
    in_short, parse_count, parse_duration_ns, parse_size, parse_width_ns, with_values,
};
use super::{Outcome, UsageError};
use anyhow::{Context, Result, bail};
use clap::Args;
use clap::builder::TypedValueParser;
use flowsieve::anonymize::PacketAnonymizer;
use flowsieve::dedup::{
    DedupPlan, Difference, Sameness, SnapLength, WindowFilterKind, WindowWidth, Writers, dedup,
};
use flowsieve::pipeline::{InputResult, RunError};
use flowsieve::report::DedupReport;
use flowsieve::trace::Lost;
use flowsieve::trace::write::{CaptureFormat, CaptureWriter, WriteError, WriteFormat, Written};
use flowsieve_engine::internal::Shown;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  A capture of a mirrored port without the packets that were recorded twice:
    flowsieve dedup capture.pcap -w unique.pcap
  The same bytes within five frames, as `editcap -d` has it, with what was removed in a second file:
    flowsieve dedup --by frame --window 5p capture.pcap -w unique.pcap --dropped removed.pcap";

#[derive(Args, Clone, Debug)]
#[command(after_help = in_short(EXAMPLES), after_long_help = with_values(EXAMPLES))]
pub(crate) struct DedupArgs {
    #[command(flatten)]
    input: InputArgs,

    /// What makes two packets the same
    #[arg(long, value_name = "RULE", default_value = "packet", value_parser = rules(), help_heading = "Duplicates")]
    by: Sameness,

    #[command(flatten, next_help_heading = "Duplicates")]
    headers: TunnelArgs,

    /// Keep packets that differ only in this
    #[arg(long, value_name = "WHAT", value_delimiter = ',', value_parser = one_of(DIFFERENCES), help_heading = "Duplicates", hide_short_help = true)]
    distinguish: Vec<fn(&mut Difference)>,

    /// How far back to look: a time such as 50ms, or packets such as 5p
    #[arg(long, default_value = "50ms", value_parser = parse_window, help_heading = "Duplicates")]
    window: WindowWidth,

    /// The filter that follows the window
    #[arg(long, value_name = "NAME", default_value = "rotating", value_parser = filters(), help_heading = "Filter", hide_short_help = true)]
    filter: WindowFilterKind,

    /// Drop what the filter takes for a repeat, without looking it up
    ///
    /// Needs no more than --memory at any rate, remembers at least the window and at most one
    /// and a half of it, and reports how many packets it is expected to have dropped wrongly.
    #[arg(long, help_heading = "Filter", hide_short_help = true)]
    approximate: bool,

    /// Memory of window and filter; a window that does not fit shrinks
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = parse_size, help_heading = "Filter", hide_short_help = true)]
    memory: u64,

    /// Seed of the digests [default: random; with --approximate: 0]
    #[arg(long, value_name = "NUMBER", help_heading = "Filter", hide_short_help = true)]
    seed: Option<u64>,

    #[command(flatten, next_help_heading = "Output")]
    captures: CapturesArgs,

    #[command(flatten)]
    anonymize: AnonymizeArgs,

    #[command(flatten)]
    vendors: VendorArgs,

    /// Report only
    #[arg(long, conflicts_with_all = ["write", "dropped"], help_heading = "Output")]
    dry_run: bool,

    /// Also report each time slice of this width, such as 1s
    #[arg(long, value_name = "DURATION", value_parser = parse_width_ns, help_heading = "Output", hide_short_help = true)]
    slice: Option<i64>,

    #[command(flatten)]
    format: FormatArgs,

    #[command(flatten, next_help_heading = "Output")]
    rows: RowsArgs,

    #[command(flatten, next_help_heading = "Output")]
    output: OutputArgs,

    #[command(flatten, next_help_heading = "Speed and memory")]
    threads: ThreadArgs,

    #[command(flatten)]
    quiet: QuietArgs,
}

// The captures that are written.
#[derive(Args, Clone, Debug)]
struct CapturesArgs {
    /// Capture to write, whole or not at all; - is standard output
    ///
    /// pcap if the name ends in .pcap, .cap, .dmp or .dump; otherwise, and on standard output,
    /// pcapng. Compressed if .gz, .zst, .xz, .bz2 or .lz4 follows.
    #[arg(short, long, value_name = "FILE")]
    write: Option<PathBuf>,

    /// Write the packets that are dropped to a second capture
    #[arg(long, value_name = "FILE")]
    dropped: Option<PathBuf>,

    /// Cut the packets that are written: to so many bytes, or behind their headers
    ///
    /// `headers` keeps the headers of the link, of IP and of TCP, UDP and the like, with --tunnel
    /// inner those inside tunnels, too, and nothing of what they carry. Packets are compared as
    /// they were captured.
    #[arg(long, value_name = "BYTES|headers", value_parser = parse_snap_length, help_heading = "Privacy", hide_short_help = true)]
    snaplen: Option<SnapLength>,
}

fn rules() -> impl TypedValueParser<Value = Sameness> {
    use Sameness::{Flow, Frame, Packet, Retransmission};
    named(&[Packet, Frame, Retransmission, Flow], Sameness::name, |by| match by {
        Packet => {
            "The IP packet, without its link header, VLAN tags, MPLS labels, TTL and header checksum"
        }
        Frame => "The captured bytes",
        Retransmission => "TCP segments with data that are sent again",
        Flow => "The flow: only its first packet in the window is kept",
    })
}

const DIFFERENCES: &[Choice<fn(&mut Difference)>] = &[
    ("vlan", "VLAN identifiers", |all| all.vlan = true),
    ("mac", "Link-layer addresses", |all| all.mac = true),
    ("ttl", "TTL or hop limit", |all| all.ttl = true),
    ("interface", "Input and interface", |all| {
        all.interface = true;
    }),
];

fn filters() -> impl TypedValueParser<Value = WindowFilterKind> {
    use WindowFilterKind::{Counting, Dleft, Rotating, SplitCounting};
    let all = [Dleft, SplitCounting, Counting, Rotating];
    named(&all, WindowFilterKind::name, |kind| match kind {
        Dleft => "d-left counting Bloom filter",
        SplitCounting => "Split counting Bloom filter",
        Counting => "Counting Bloom filter",
        Rotating => "Three Bloom filters in turn",
    })
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

fn parse_snap_length(text: &str) -> Result<SnapLength, String> {
    if text == "headers" {
        return Ok(SnapLength::Headers);
    }
    match parse_count(text).ok().and_then(|count| u32::try_from(count).ok()) {
        Some(bytes @ 1..) => Ok(SnapLength::Bytes(bytes)),
        _ => Err(
            "packets are cut to a number of bytes, such as 96, or behind their headers: headers"
                .into(),
        ),
    }
}

pub(crate) fn run(args: &DedupArgs) -> Result<Outcome> {
    let mut run = Run::begin()?;
    let files = &args.captures;
    if files.write.is_none() && !args.dry_run {
        bail!(UsageError::of(
            "name the capture to write with -w, or ask for --dry-run, which only reports"
        ));
    }
    if args.dry_run && args.anonymize.is_wanted() {
        bail!(UsageError::of(
            "a report has no addresses that could be replaced; leave out --dry-run or --anonymize"
        ));
    }
    if args.dry_run && files.snaplen.is_some() {
        bail!(UsageError::of(
            "--snaplen cuts packets that are written; leave out --dry-run or --snaplen"
        ));
    }
    let mut plan = args.plan(run.find(&args.input, false)?)?;
    plan.check().map_err(UsageError::of)?;
    plan.check_memory()?;
    let written = [
        ("-w", files.write.as_deref()),
        ("--dropped", files.dropped.as_deref()),
        ("--output", args.output.path()),
    ];
    keep_apart(written, &plan.inputs)?;
    args.format.check(&args.output)?;
    if !run.can_read(&plan.inputs, plan.input_format) {
        return Ok(run.end(false, PARTIAL));
    }
    plan.selection = run.resolve(&plan.selection, &plan.inputs, plan.input_format)?;
    let key = args.anonymize.key(args.quiet.quiet)?;
    let single = plan.inputs.len() == 1;
    let mut writers = Writers {
        kept: open(files.write.as_deref(), single)?,
        dropped: open(files.dropped.as_deref(), single)?,
        anonymizer: key.as_ref().map(|key| PacketAnonymizer::new(key, args.vendors.part())),
    };
    let mut output = Output::beside(files.write.as_deref(), args.output.path())?;
    let result =
        run.watch(args.quiet.quiet, &plan.inputs, |watch| dedup(&plan, &mut writers, watch));
    let summary = result.map_err(|error| files.cause(error))?;
    if run.read_nothing(&summary.inputs, summary.interrupted) {
        return Ok(run.end(summary.interrupted, PARTIAL));
    }
    // The dropped packets first: if they cannot be written, the capture that lacks them must not
    // be.
    let removed = finish(writers.dropped, files.dropped.as_deref())?;
    let kept = finish(writers.kept, files.write.as_deref())?;
    let (mut without_options, mut lost) = (0, Lost::default());
    for (output, count) in [removed, kept].into_iter().flatten() {
        output.commit()?;
        without_options += count.without_options;
        lost = lost.or(count.lost);
    }
    let report = DedupReport { plan: &plan, summary: &summary, anonymized: key.is_some() };
    report
        .write(args.format.format, output.look(args.rows.shown()), &mut output)
        .context("cannot write the summary")?;
    output.commit()?;
    run.all_problems(summary.inputs.iter().flat_map(problems));
    times(&summary.inputs);
    if without_options > 0 && !args.quiet.quiet {
        say(format_args!(
            "flowsieve: the comments and flags of {without_options} packets are lost, since pcap cannot store them; give the output a name that ends in .pcapng"
        ));
    }
    if let Some(lost) = lost.in_words()
        && !args.quiet.quiet
    {
        let why = files.why_lost(single);
        say(format_args!("flowsieve: what was written lacks {lost}{why}"));
    }
    Ok(run.end(summary.interrupted, PARTIAL))
}

/// What is wrong with an input.
fn problems(input: &InputResult) -> impl Iterator<Item = String> {
    let is_log = input.is_log.then(|| {
        let path = input.path.shown();
        format!("{path}: a log has no packets; dedup reads captures")
    });
    let error = input.error.as_ref().map(ToString::to_string);
    error.into_iter().chain(is_log)
}

fn open(path: Option<&Path>, single: bool) -> Result<Option<CaptureWriter<Output>>> {
    let Some(path) = path else {
        return Ok(None);
    };
    let writer = CaptureWriter::new(Output::capture(path)?, WriteFormat::of_name(path), single);
    Ok(Some(writer.with_context(|| unwritten(path))?))
}

fn finish(
    writer: Option<CaptureWriter<Output>>,
    path: Option<&Path>,
) -> Result<Option<(Output, Written)>> {
    let written = writer.zip(path).map(|(writer, path)| {
        let written = writer.finish();
        written.map_err(|error| write_cause(error, path))
    });
    written.transpose()
}

/// The system's error stays one, so that a closed pipe is seen as such.
fn write_cause(error: WriteError, path: &Path) -> anyhow::Error {
    let error = match error {
        WriteError::Io(error) => anyhow::Error::from(error),
        other => other.into(),
    };
    error.context(unwritten(path))
}

impl CapturesArgs {
    /// Why the annotations of inputs are not in all that was written.
    fn why_lost(&self, single: bool) -> &'static str {
        let mut written = self.write.iter().chain(&self.dropped);
        if !single {
            "; only a single input has them copied, to pcapng"
        } else if written.any(|path| WriteFormat::of_name(path).container == CaptureFormat::Pcap) {
            "; pcap cannot store them, so give the output a name that ends in .pcapng"
        } else {
            ""
        }
    }

    fn cause(&self, error: RunError) -> anyhow::Error {
        let path = |path: &Option<PathBuf>| path.clone().unwrap_or_default();
        match error {
            RunError::Kept(error) => write_cause(error, &path(&self.write)),
            RunError::Dropped(error) => write_cause(error, &path(&self.dropped)),
            error => explained(error),
        }
    }
}

impl DedupArgs {
    fn plan(&self, inputs: Vec<PathBuf>) -> Result<DedupPlan, UsageError> {
        let mut distinguish = Difference::default();
        for mark in &self.distinguish {
            mark(&mut distinguish);
        }
        Ok(DedupPlan {
            inputs,
            input_format: self.input.format.format(),
            selection: self.input.selection.selection(self.headers.tunnel)?,
            by: self.by,
            tunnel: self.headers.tunnel,
            distinguish,
            window: self.window,
            filter: self.filter,
            approximate: self.approximate,
            memory_bytes: self.memory,
            snap_length: self.captures.snaplen,
            slice_ns: self.slice,
            // What is approximate depends on the seed, so it is the same every time.
            seed: self.seed.or(self.approximate.then_some(0)),
            threads: self.threads.count(),
        })
    }
}
