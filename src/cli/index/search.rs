//! `flowsieve index search`.

use super::{Outcome, explained, outcome};
use crate::cli::UsageError;
use crate::cli::anonymize_args::AnonymizeArgs;
use crate::cli::output::Output;
use crate::cli::same_file::keep_apart;
use crate::cli::say::say;
use crate::cli::signals::{PARTIAL, Signals};
use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use flowsieve::anonymize::{AddressMap, AnonymizeKey, PacketAnonymizer};
use flowsieve::index::{
    AddressRange, CaptureEntry, Catalog, DomainRange, Hit, HitSink, IndexError, IndexQuery,
    extract, search,
};
use flowsieve::report::{SearchFormat, SearchReport};
use flowsieve::trace::time_from_text;
use flowsieve::trace::write::WriteFormat;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  Where did a host talk to port 445 of a network, and how was that found:
    flowsieve index search archive --src 10.1.2.3 --dst 10.2.0.0/16 --dst-port 445 --explain
  The packets with which a host asked for names below a domain on one day:
    flowsieve index search archive --src 10.1.2.3 --domain '*.example.com' \\
      --from 2026-11-20T00:00:00Z --to 2026-11-21T00:00:00Z -w out.pcapng";

/// Search an index: captures, regions, times and flows that match
///
/// All that is given must hold at once. A flow matches if packets went in it as asked, in either of
/// its directions; its time runs from its first packet to its last. With --domain the DNS questions are
/// searched: the source is the client, the destination the server, and ports are the server's.
#[derive(Args, Clone, Debug)]
#[command(after_long_help = EXAMPLES)]
pub(super) struct SearchArgs {
    /// Directory of the index
    #[arg(value_name = "ARCHIVE_DIR")]
    archive: PathBuf,

    /// Sender, such as 10.1.2.3 or 10.0.0.0/8
    #[arg(long, value_name = "ADDRESS", help_heading = "What to look for")]
    src: Option<AddressRange>,

    /// Receiver
    #[arg(long, value_name = "ADDRESS", help_heading = "What to look for")]
    dst: Option<AddressRange>,

    /// Sender or receiver
    #[arg(long, value_name = "ADDRESS", help_heading = "What to look for")]
    host: Option<AddressRange>,

    /// Port of the receiver
    #[arg(long, value_name = "PORT", help_heading = "What to look for")]
    dst_port: Option<u16>,

    /// Port of either
    #[arg(long, value_name = "PORT", help_heading = "What to look for")]
    port: Option<u16>,

    /// Name in DNS messages: www.example.com, or *.example.com for all below
    #[arg(long, value_name = "NAME", help_heading = "What to look for")]
    domain: Option<DomainRange>,

    /// Earliest time, in RFC 3339 or as seconds since 1970
    #[arg(long, value_name = "TIME", value_parser = parse_time, allow_negative_numbers = true, help_heading = "What to look for")]
    from: Option<i64>,

    /// Time before which it was
    #[arg(long, value_name = "TIME", value_parser = parse_time, allow_negative_numbers = true, help_heading = "What to look for")]
    to: Option<i64>,

    /// Write the packets asked for to this capture, in the order of time; the captures that match are read again
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    write: Option<PathBuf>,

    #[command(flatten)]
    anonymize: AnonymizeArgs,

    /// Say what each level of the index ruled out; JSON always does
    #[arg(long, help_heading = "Output")]
    explain: bool,

    /// How answers are written
    #[arg(long, value_enum, default_value_t = Format::Table, help_heading = "Output")]
    format: Format,

    /// Write answers to this file, whole or not at all
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    output: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
enum Format {
    /// For people
    Table,
    /// A line an answer
    Csv,
    /// One document
    Json,
}

fn parse_time(text: &str) -> Result<i64, String> {
    time_from_text(text).ok_or_else(|| {
        "a time is in RFC 3339, such as 2026-11-20T12:00:00Z, or in seconds since 1970".to_owned()
    })
}

/// Notes the captures with answers, and shows these with other addresses if that is wanted.
struct Noting<W: io::Write> {
    report: SearchReport<W>,
    addresses: Option<AddressMap>,
    captures: BTreeMap<u64, CaptureEntry>,
}

impl<W: io::Write> HitSink for Noting<W> {
    fn hit(&mut self, hit: Hit<'_>) -> io::Result<()> {
        let id = hit.capture.id;
        self.captures
            .entry(id)
            .or_insert_with(|| hit.capture.clone());
        let Some(map) = &mut self.addresses else {
            return self.report.hit(hit);
        };
        let mut record = hit.record.clone();
        (record.src, record.dst) = (map.ip(record.src), map.ip(record.dst));
        self.report.hit(Hit {
            record: &record,
            ..hit
        })
    }
}

const UNWRITTEN: &str = "cannot write the answers";

pub(super) fn run(args: &SearchArgs) -> Result<Outcome> {
    let query = IndexQuery {
        src: args.src,
        dst: args.dst,
        host: args.host,
        dst_port: args.dst_port,
        port: args.port,
        domain: args.domain.clone(),
        from_ns: args.from,
        to_ns: args.to,
    };
    query.check().map_err(explained)?;
    check_files(args)?;
    let key = args.anonymize.key(false)?;
    let signals = Signals::catch().context("cannot catch signals")?;
    let output = Output::open(args.output.as_deref())?;
    let format = match args.format {
        Format::Table => SearchFormat::Table,
        Format::Csv => SearchFormat::Csv,
        Format::Json => SearchFormat::Json,
    };
    let report = SearchReport::begin(format, args.explain, key.is_some(), output);
    let mut noting = Noting {
        report: report.context(UNWRITTEN)?,
        addresses: key.as_ref().map(AddressMap::new),
        captures: BTreeMap::new(),
    };
    let searched = search(&args.archive, &query, signals.stop(), &mut noting);
    let explanation = searched.map_err(|error| match error {
        IndexError::Sink(error) => anyhow::Error::from(error).context(UNWRITTEN),
        error => explained(error),
    })?;
    let Noting {
        report, captures, ..
    } = noting;
    report.finish(&explanation).context(UNWRITTEN)?.commit()?;
    let (mut problems, mut interrupted) = (explanation.problems, explanation.interrupted);
    let mut what = PARTIAL;
    if let Some(path) = &args.write {
        if !interrupted {
            let captures: Vec<CaptureEntry> = captures.into_values().collect();
            let to = (path.as_path(), key.as_ref());
            interrupted = write(args, &query, to, &captures, &signals, &mut problems)?;
        }
        what = "no capture was written, and the answers are those that were found until then";
    }
    Ok(signals.outcome(interrupted, what, outcome(&problems)))
}

/// No result takes the place of an indexed capture, of a file of the index, or of another result; and
/// answers and packets do not go the same way.
fn check_files(args: &SearchArgs) -> Result<()> {
    let (write, output) = (args.write.as_deref(), args.output.as_deref());
    let standard = |path: Option<&Path>| path.is_some_and(|path| path.as_os_str() == "-");
    if standard(write) && (output.is_none() || standard(output)) {
        return Err(UsageError(
            "the packets go to standard output, so the answers need a file: name one with --output"
                .into(),
        )
        .into());
    }
    if write.is_none() && output.is_none() {
        return Ok(());
    }
    let catalog = Catalog::load(&args.archive).map_err(explained)?;
    let captures: Vec<PathBuf> = catalog.captures.iter().map(|c| c.path.clone()).collect();
    let written = [("--write", write), ("--output", output)];
    keep_apart(written, &captures)?;
    let nodes = (0..catalog.nodes.len()).map(|node| catalog.node_folder(&args.archive, node));
    let folders: Vec<PathBuf> = nodes
        .chain([args.archive.clone()])
        .filter_map(|folder| fs::canonicalize(folder).ok())
        .collect();
    for (name, path) in written {
        let Some(path) = path.filter(|path| path.as_os_str() != "-") else {
            continue;
        };
        let folder = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty());
        let folder = fs::canonicalize(folder.unwrap_or(Path::new(".")));
        if folder.is_ok_and(|folder| folders.iter().any(|of_index| folder.starts_with(of_index))) {
            return Err(UsageError(format!(
                "{} lies in the directory of the index, which has files of its own; give {name} another place",
                path.display()
            ))
            .into());
        }
    }
    Ok(())
}

/// Writes the packets, with other addresses if there is a key; whether a signal ended that, and the capture is not there.
fn write(
    args: &SearchArgs,
    query: &IndexQuery,
    (path, key): (&Path, Option<&AnonymizeKey>),
    captures: &[CaptureEntry],
    signals: &Signals,
    problems: &mut Vec<String>,
) -> Result<bool> {
    let output = Output::open(Some(path))?;
    let out = (output, WriteFormat::of_name(path));
    let mut anonymizer = key.map(PacketAnonymizer::new);
    let unwritten = || format!("cannot write {}", path.display());
    let (output, extracted) = extract(
        &args.archive,
        query,
        captures,
        out,
        anonymizer.as_mut(),
        signals.stop(),
        problems,
    )
    .with_context(unwritten)?;
    if extracted.interrupted {
        return Ok(true);
    }
    output.commit()?;
    say(format_args!(
        "{} packets written to {}",
        extracted.packets,
        path.display()
    ));
    if extracted.logs > 0 {
        say(format_args!(
            "{} of the files with answers are DNS logs, which have no packets",
            extracted.logs
        ));
    }
    Ok(false)
}
