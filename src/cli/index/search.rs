//! `flowsieve index search`.

use super::{ArchiveArgs, Outcome, explained, spare_index};
use crate::cli::UsageError;
use crate::cli::anonymize_args::{AnonymizeArgs, VendorArgs};
use crate::cli::destination::is_standard_output;
use crate::cli::options::{FormatArgs, OutputArgs, QuietArgs, RowsArgs, capture_filter};
use crate::cli::output::{Output, unwritten};
use crate::cli::run::{PARTIAL, Run, all_written};
use crate::cli::say::say;
use crate::cli::timezone::ZoneArgs;
use crate::cli::units::{TypedTime, in_short, parse_port, parse_time, with_values};
use crate::report::counted;
use anyhow::{Context, Result, bail};
use clap::Args;
use flowsieve::anonymize::{AddressMap, PacketAnonymizer, VendorPart};
use flowsieve::decode::Tunnel;
use flowsieve::index::{
    AddressRange, CaptureEntry, DomainRange, ExtractPlan, Hit, HitSink, IndexError, IndexQuery,
    extract, search,
};
use flowsieve::report::{SearchReport, search_summary};
use flowsieve::selection::Selection;
use flowsieve::trace::write::WriteFormat;
use flowsieve_engine::internal::Shown;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  Where did a host talk to port 445 of a network:
    flowsieve index search archive --src 10.1.2.3 --dst 10.2.0.0/16 --port 445
  The packets with which a host asked for names below a domain on one day:
    flowsieve index search archive --src 10.1.2.3 --domain '*.example.com' \\
      --from 2026-11-20T00:00:00Z --to 2026-11-21T00:00:00Z -w out.pcapng";

/// Search an index: captures, regions, times and flows that match
///
/// All conditions must hold at once. A flow matches if its packets in either direction match; its
/// time runs from its first packet to its last. With --domain the DNS questions are searched: the
/// source is the client, the destination the server, and ports are the server's. As with grep, the
/// exit code is 1 if there is no answer.
#[derive(Args, Clone, Debug)]
#[command(after_help = in_short(EXAMPLES), after_long_help = with_values(EXAMPLES))]
pub(super) struct SearchArgs {
    #[command(flatten)]
    index: ArchiveArgs,

    /// Sender, such as 10.1.2.3 or 10.0.0.0/8
    #[arg(long, value_name = "ADDRESS", help_heading = "What to look for")]
    src: Option<AddressRange>,

    /// Receiver
    #[arg(long, value_name = "ADDRESS", help_heading = "What to look for")]
    dst: Option<AddressRange>,

    /// Sender or receiver
    #[arg(long, value_name = "ADDRESS", help_heading = "What to look for")]
    host: Option<AddressRange>,

    /// Port of the receiver, such as 53 or https
    #[arg(long, value_name = "PORT", value_parser = parse_port, help_heading = "What to look for")]
    dst_port: Option<u16>,

    /// Port of either
    #[arg(long, value_name = "PORT", value_parser = parse_port, help_heading = "What to look for")]
    port: Option<u16>,

    /// Name in DNS messages: www.example.com, or *.example.com for all below
    #[arg(long, value_name = "NAME", help_heading = "What to look for")]
    domain: Option<DomainRange>,

    /// Earliest time, such as 2014-01-01 or 2014-01-01T12:30:00Z
    #[arg(long, value_name = "TIME", value_parser = parse_time, allow_negative_numbers = true, help_heading = "What to look for")]
    from: Option<TypedTime>,

    /// Latest time (exclusive)
    #[arg(long, value_name = "TIME", value_parser = parse_time, allow_negative_numbers = true, help_heading = "What to look for")]
    to: Option<TypedTime>,

    /// Write the matching packets to this capture; captures are merged by time
    ///
    /// The captures with answers are read twice: first their content is compared with what was
    /// indexed. One that changed is named, even if its length and time did not change; its packets
    /// are written as they are today.
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    write: Option<PathBuf>,

    /// Write only packets that match a capture filter, too, such as 'greater 1000 and not arp'
    #[arg(long = "where", value_name = "EXPRESSION", requires = "write", help_heading = "Output")]
    expression: Option<String>,

    #[command(flatten)]
    anonymize: AnonymizeArgs,

    #[command(flatten)]
    vendors: VendorArgs,

    /// Say what each level of the index ruled out; JSON always does
    #[arg(long, help_heading = "Output")]
    explain: bool,

    #[command(flatten)]
    format: FormatArgs,

    #[command(flatten, next_help_heading = "Output")]
    zone: ZoneArgs,

    #[command(flatten, next_help_heading = "Output")]
    rows: RowsArgs,

    #[command(flatten, next_help_heading = "Output")]
    output: OutputArgs,

    #[command(flatten, next_help_heading = "Output")]
    quiet: QuietArgs,
}

/// Reports answers, with other addresses if asked for, and keeps the captures that have some.
struct Noting<W: io::Write> {
    report: SearchReport<W>,
    addresses: Option<AddressMap>,
    captures: BTreeMap<u64, CaptureEntry>,
}

impl<W: io::Write> HitSink for Noting<W> {
    fn hit(&mut self, hit: Hit<'_>) -> io::Result<()> {
        let id = hit.capture.id;
        self.captures.entry(id).or_insert_with(|| hit.capture.clone());
        let Some(map) = &mut self.addresses else { return self.report.hit(hit) };
        let mut record = hit.record.clone();
        (record.src, record.dst) = (map.ip(record.src), map.ip(record.dst));
        self.report.hit(Hit { record: &record, ..hit })
    }
}

const UNWRITTEN: &str = "cannot write the answers";

pub(super) fn run(args: &SearchArgs, run: &mut Run) -> Result<Outcome> {
    let (zone, query) = (args.zone.zone(), args.query());
    query.check().map_err(explained)?;
    let selection = args.selection()?;
    args.check()?;
    let key = args.anonymize.key(args.quiet.quiet)?;
    run.start(args.quiet.quiet)?;
    let output = args.output.open(run)?;
    let is_file = output.is_file();
    if args.write.is_some() {
        run.partials.note_output();
    }
    let style = output.style(args.rows.shown());
    let (format, is_anonymized) = (args.format.of(&args.output), key.is_some());
    let report = SearchReport::begin(format, args.explain, is_anonymized, zone, style, output);
    let mut noting = Noting {
        report: report.context(UNWRITTEN)?,
        addresses: key.as_ref().map(AddressMap::new),
        captures: BTreeMap::new(),
    };
    let searched = search(&args.index.archive, &query, run.stop(), &mut noting);
    let explanation = searched.map_err(|error| failed(run, error))?;
    run.set_interrupted(explanation.interrupted);
    run.add_problems(explanation.problems.clone());
    let Noting { report, captures, .. } = noting;
    // Like a count that can open no input: keep older results.
    if explanation.nodes > 0 && explanation.nodes_away == explanation.nodes {
        run.report_all(Vec::<String>::new());
        return Ok(run.finish(PARTIAL));
    }
    let (mut problems, mut interrupted) = (Vec::new(), explanation.interrupted);
    let is_kept = is_file && captures.is_empty() && run.has_problems() && !interrupted;
    let answers = if is_kept {
        problems.push(args.not_written());
        Ok(())
    } else {
        let report = report.finish(&explanation).context(UNWRITTEN);
        let summary = || search_summary(is_anonymized, zone, &explanation);
        args.output.finish(run, report, summary)
    };
    if explanation.captures_in_part > 0 {
        say(format_args!(
            "of {} the index holds only some packets, as `flowsieve index stats --captures` lists; what it lacks was not searched",
            counted(explanation.captures_in_part, "capture", "captures")
        ));
    }
    let packets = args.write.as_deref().filter(|_| !interrupted).map_or(Ok(()), |path| {
        let captures: Vec<CaptureEntry> = captures.into_values().collect();
        let anonymizer = key.as_ref().map(|key| PacketAnonymizer::new(key, args.vendors.part()));
        let (wanted, archive) = ((&query, &selection), &args.index.archive);
        let written = write(path, archive, wanted, &captures, anonymizer, run, &mut problems);
        written.map(|ended| interrupted = ended)
    });
    run.report_all(problems);
    all_written([answers, packets])?;
    run.set_interrupted(interrupted);
    let what = if args.write.is_some() { NO_CAPTURE } else { PARTIAL };
    Ok(match run.finish(what) {
        Outcome::Done if explanation.hits == 0 => Outcome::NothingFound,
        outcome => outcome,
    })
}

/// Explains why a search failed. What was found until then is kept if it can be written.
fn failed(run: &Run, error: IndexError) -> anyhow::Error {
    match error {
        IndexError::Sink(error) => anyhow::Error::from(error).context(UNWRITTEN),
        error => {
            run.partials.keep_dropped();
            explained(error)
        }
    }
}

/// Note shown when a run that writes packets was interrupted.
const NO_CAPTURE: &str =
    "no capture was written, and the answers are those that were found until then";

impl SearchArgs {
    fn query(&self) -> IndexQuery {
        let zone = self.zone.zone();
        IndexQuery {
            src: self.src,
            dst: self.dst,
            host: self.host,
            dst_port: self.dst_port,
            port: self.port,
            domain: self.domain.clone(),
            from_ns: self.from.map(|time| time.in_zone(zone)),
            to_ns: self.to.map(|time| time.in_zone(zone)).filter(|&to_ns| to_ns != i64::MAX),
        }
    }

    /// Returns which packets of the captures with answers are written.
    fn selection(&self) -> Result<Selection, UsageError> {
        if self.write.is_none() && self.vendors.part() == VendorPart::Kept {
            let rule = "answers have no MAC addresses: --keep-vendors goes with -w";
            return Err(UsageError::new(rule));
        }
        let capture_filter = capture_filter(self.expression.as_deref(), Tunnel::Outer)?;
        Ok(Selection { capture_filter, ..Selection::default() })
    }

    /// Checks the format, that no result replaces an indexed capture, a file of the index or another
    /// result, and that answers and packets have different destinations.
    fn check(&self) -> Result<()> {
        self.format.check(&self.output)?;
        let (write, output) = (self.write.as_deref(), self.output.path());
        if write.is_some_and(is_standard_output) && output.is_none_or(is_standard_output) {
            bail!(UsageError::new(
                "the packets go to standard output, so the answers need a file: name one with --output"
            ));
        }
        let [output, summary] = self.output.files();
        let written = [("--write", write), output, summary];
        spare_index(&self.index.archive, &written, |captures| self.anonymize.with_key(captures))
    }

    /// Returns the problem that answers are not written.
    fn not_written(&self) -> String {
        let path = self.output.path().unwrap_or(Path::new("-"));
        format!(
            "{}: not written, because nothing was found and not all could be searched",
            path.shown()
        )
    }
}

/// Writes the packets, with other addresses if there is an anonymizer. Returns whether a signal ended
/// that, and then there is no capture.
fn write(
    path: &Path,
    archive: &Path,
    (query, selection): (&IndexQuery, &Selection),
    captures: &[CaptureEntry],
    mut anonymizer: Option<PacketAnonymizer>,
    run: &Run,
    problems: &mut Vec<String>,
) -> Result<bool> {
    let output = Output::capture(&run.partials, path)?;
    let plan = ExtractPlan {
        query,
        selection,
        captures,
        format: WriteFormat::of_name(path),
        anonymizer: anonymizer.as_mut(),
        stop: run.stop(),
    };
    let (output, extracted) =
        extract(archive, plan, output, problems).with_context(|| unwritten(path))?;
    if extracted.interrupted {
        return Ok(true);
    }
    // Keep an older result if the captures are away or the index is damaged.
    if extracted.nothing_read || (captures.is_empty() && run.has_problems()) {
        problems.push(format!(
            "{}: no packets were written to this file, because no capture with answers could be read",
            path.shown()
        ));
        return Ok(false);
    }
    run.commit(output)?;
    let packets = counted(extracted.packets, "packet", "packets");
    run.tell(format_args!("{packets} written to {}", path.shown()));
    let is_one_way = query.src.is_some() || query.dst.is_some() || query.dst_port.is_some();
    if is_one_way && query.domain.is_none() && extracted.packets > 0 {
        run.remark("packets of the other direction are not among them; for both, ask with --host and --port, and choose the other end with --where 'host ADDRESS'");
    }
    if extracted.logs > 0 {
        let logs = counted(extracted.logs, "log", "logs");
        run.tell(format_args!("{logs} with answers: logs have no packets to write"));
    }
    Ok(false)
}
