//! `flowsieve dedup`: a capture without its duplicates.

use super::anonymize_args::{AnonymizeArgs, VendorArgs};
use super::options::{
    Choice, DnsPortArgs, FormatArgs, InputArgs, OutputArgs, QuietArgs, RowsArgs, ThreadArgs, named,
    one_of,
};
use super::output::{Output, Partials, unwritten};
use super::run::{PARTIAL, Run, all_written};
use super::same_file::keep_apart;
use super::units::{
    in_short, parse_count, parse_duration_ns, parse_seed, parse_size, parse_width_ns, with_values,
};
use super::{Outcome, UsageError};
use crate::report::counted;
use anyhow::{Context, Result};
use clap::Args;
use clap::builder::TypedValueParser;
use flowsieve::anonymize::PacketAnonymizer;
use flowsieve::dedup::{
    DedupPlan, Difference, Sameness, SnapLength, WindowFilterKind, WindowWidth, Writers, dedup,
};
use flowsieve::pipeline::RunError;
use flowsieve::report::DedupReport;
use flowsieve::trace::write::{CaptureFormat, CaptureWriter, WriteError, WriteFormat, Written};
use flowsieve::trace::{TraceError, TraceErrorKind};
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
    #[arg(long, value_name = "NUMBER", value_parser = parse_seed, help_heading = "Filter", hide_short_help = true)]
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

    /// Cut the packets that are written to this many bytes, or after their headers
    ///
    /// `headers` keeps the headers of the link, of IP and of TCP, UDP and the like, with --tunnel
    /// inner those inside tunnels, too, and nothing of what they carry. Packets are compared as
    /// they were captured.
    #[arg(long, value_name = "BYTES|headers", value_parser = parse_snap_length, help_heading = "Privacy", hide_short_help = true)]
    snaplen: Option<SnapLength>,
}

fn rules() -> impl TypedValueParser<Value = Sameness> {
    use Sameness::{Flow, Frame, Packet, Retransmission};
    named([Packet, Frame, Retransmission, Flow], Sameness::name, |by| match by {
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
    ("interface", "Input and interface", |all| all.interface = true),
];

fn filters() -> impl TypedValueParser<Value = WindowFilterKind> {
    use WindowFilterKind::{Counting, Dleft, Rotating, SplitCounting};
    let all = [Dleft, SplitCounting, Counting, Rotating];
    named(all, WindowFilterKind::name, |kind| match kind {
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

pub(crate) fn run(args: &DedupArgs, run: &mut Run) -> Result<Outcome> {
    args.check()?;
    let inputs = run.start_on(&args.input, false, args.quiet.quiet)?;
    let mut plan = args.plan(&inputs)?;
    plan.check_memory()?;
    run.open(&mut plan.trace)?;
    let files = &args.captures;
    let key = args.anonymize.key(run.quiet)?;
    let single = inputs.len() == 1;
    let open = |path: &Option<PathBuf>| open(&run.partials, path.as_deref(), single);
    let mut writers = Writers {
        kept: open(&files.write)?,
        dropped: open(&files.dropped)?,
        anonymizer: key.as_ref().map(|key| PacketAnonymizer::new(key, args.vendors.part())),
    };
    let captures = files.write.iter().chain(&files.dropped);
    let output = Output::report(&run.partials, captures, args.output.path())?;
    args.output.open_summary(run)?;
    let summary = run.watch(&plan.trace.inputs, |watch| dedup(&plan, &mut writers, watch));
    let mut summary = summary.map_err(|error| files.cause(run, error))?;
    run.check_read(&mut summary)?;
    for log in summary.inputs.iter_mut().filter(|input| input.is_log) {
        log.error.get_or_insert(no_packets(&log.path));
    }
    let mut written = Written::default();
    let captures = files.finish(run, writers).map(|all| written = all);
    let report = DedupReport { plan: &plan, summary: &summary, anonymized: key.is_some() };
    let style = output.style(args.rows.shown());
    let reported = report.complete().write(args.format.of(&args.output), style, output);
    let reported = reported.context("cannot write the summary");
    all_written([captures, args.output.finish(run, reported, || report.complete().summary())])?;
    run.problems(&summary.inputs);
    for loss in files.losses(&written, single) {
        run.remark(loss);
    }
    Ok(run.finish(PARTIAL))
}

fn no_packets(log: &Path) -> TraceError {
    let sentence = format!("{}: a log has no packets; dedup reads captures", log.shown());
    TraceError { path: log.to_owned(), offset: None, kind: TraceErrorKind::Reported { sentence } }
}

fn open(
    partials: &Partials,
    path: Option<&Path>,
    single: bool,
) -> Result<Option<CaptureWriter<Output>>> {
    let Some(path) = path else { return Ok(None) };
    let output = Output::capture(partials, path)?;
    let writer = CaptureWriter::new(output, WriteFormat::of_name(path), single);
    Ok(Some(writer.with_context(|| unwritten(path))?))
}

/// Explains why a capture could not be written. The system's error stays one, so that a closed pipe
/// is seen as such.
fn write_cause(error: WriteError, path: &Path) -> anyhow::Error {
    let error = match error {
        WriteError::Io(error) => anyhow::Error::from(error),
        other => other.into(),
    };
    error.context(unwritten(path))
}

impl CapturesArgs {
    /// Puts the captures in place; returns what was written.
    fn finish(&self, run: &Run, writers: Writers<Output>) -> Result<Written> {
        // The dropped packets first: if they cannot be written, the capture that lacks them must
        // not be.
        let all = [(writers.dropped, &self.dropped), (writers.kept, &self.write)];
        let mut finished = Vec::new();
        for (writer, path) in all {
            if let Some((writer, path)) = writer.zip(path.as_deref()) {
                finished.push(writer.finish().map_err(|error| write_cause(error, path))?);
            }
        }
        let mut all = Written::default();
        for (output, written) in finished {
            run.commit(output)?;
            all.without_options += written.without_options;
            all.lost = all.lost.or(written.lost);
        }
        Ok(all)
    }

    /// Returns sentences about what the captures that were written lack.
    fn losses(&self, written: &Written, single: bool) -> Vec<String> {
        let mut losses = Vec::new();
        if written.without_options > 0 {
            losses.push(format!(
                "the comments and flags of {} are lost, since pcap cannot store them; give the output a name that ends in .pcapng",
                counted(written.without_options, "packet", "packets")
            ));
        }
        if let Some(lost) = written.lost.in_words() {
            let why = self.why_lost(single);
            losses.push(format!("what was written lacks {lost}{why}"));
        }
        losses
    }

    /// Returns why the annotations of inputs are not in all that was written.
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

    fn cause(&self, run: &Run, error: RunError) -> anyhow::Error {
        let path = |path: &Option<PathBuf>| path.clone().unwrap_or_default();
        match error {
            RunError::Kept(error) => write_cause(error, &path(&self.write)),
            RunError::Dropped(error) => write_cause(error, &path(&self.dropped)),
            error => run.failed(error),
        }
    }
}

impl DedupArgs {
    /// Checks which options go together.
    fn check(&self) -> Result<(), UsageError> {
        UsageError::check(&[
            (
                self.captures.write.is_none() && !self.dry_run,
                "name the capture to write with -w, or ask for --dry-run, which only reports",
            ),
            (
                self.dry_run && self.anonymize.is_wanted(),
                "a report has no addresses that could be replaced; leave out --dry-run or --anonymize",
            ),
            (
                self.dry_run && self.captures.snaplen.is_some(),
                "--snaplen cuts packets that are written; leave out --dry-run or --snaplen",
            ),
        ])?;
        self.format.check(&self.output)
    }

    fn plan(&self, inputs: &[PathBuf]) -> Result<DedupPlan, UsageError> {
        let CapturesArgs { write, dropped, .. } = &self.captures;
        let captures = [("-w", write.as_deref()), ("--dropped", dropped.as_deref())];
        let written = captures.into_iter().chain(self.output.files());
        keep_apart(written, &self.anonymize.with_key(inputs))?;
        let mut distinguish = Difference::default();
        for mark in &self.distinguish {
            mark(&mut distinguish);
        }
        let plan = DedupPlan {
            trace: self.input.read.trace(inputs, &DnsPortArgs::default(), &self.threads)?,
            by: self.by,
            distinguish,
            window: self.window,
            filter: self.filter,
            approximate: self.approximate,
            memory_bytes: self.memory,
            snap_length: self.captures.snaplen,
            slice_ns: self.slice,
            // An approximate result depends on the seed, so the seed is fixed.
            seed: self.seed.or(self.approximate.then_some(0)),
        };
        plan.check()?;
        Ok(plan)
    }
}
