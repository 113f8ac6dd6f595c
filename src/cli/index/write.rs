//! `flowsieve index build`, `add` and `drop`.

use super::{ArchiveArgs, Outcome, explained, folders_of};
use crate::cli::UsageError;
use crate::cli::destination::{folder_of, is_standard};
use crate::cli::inputs::{Inputs, TWICE};
use crate::cli::options::{
    DnsPortArgs, QuietArgs, SelectionArgs, filters_of_regions, global_filters,
};
use crate::cli::progress::Progress;
use crate::cli::run::Run;
use crate::cli::same_file::keep_apart;
use crate::cli::say::{say, say_times_out_of_range};
use crate::cli::units::{WIDTH, in_short, parse_size, parse_width_ns, with_values};
use crate::report::{counted, part_words};
use anyhow::{Result, anyhow};
use clap::Args;
use flowsieve::decode::Tunnel;
use flowsieve::index::{
    Added, Catalog, GlobalFilter, IndexWriter, LEAST_MEMORY_BYTES, RegionFilter, Settings, adopt,
    cannot_be_indexed, index_around, is_in_index, verify,
};
use flowsieve::pipeline::Watch;
use flowsieve::plan::TracePlan;
use flowsieve::selection::{SelectedPart, Selection};
use flowsieve::trace::{InputFormat, Source, StopFlag};
use flowsieve_engine::internal::Shown;
use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

const BUILD_EXAMPLES: &str = "\
Examples:
  An index with regions of five minutes:
    flowsieve index build archive captures/
  Regions of an hour, spread over two disks:
    flowsieve index build archive --region 1h --nodes /disk1/index,/disk2/index captures/";

/// Make an index of captures
///
/// The index is a directory. A build commits about every second. If it is interrupted, what was
/// committed stays, and `flowsieve index add` continues with the rest. Logs are indexed like
/// captures.
#[derive(Args, Clone, Debug)]
#[command(after_help = in_short(BUILD_EXAMPLES), after_long_help = with_values(BUILD_EXAMPLES))]
pub(super) struct BuildArgs {
    /// Directory of the index, new or empty
    #[arg(value_name = "ARCHIVE_DIR")]
    archive: PathBuf,

    #[command(flatten)]
    captures: CapturesArgs,

    /// Length of a region; flows that last longer are cut
    #[arg(long, value_name = "DURATION", default_value = "5min", value_parser = parse_region)]
    region: i64,

    /// Structure of the regions' filters
    #[arg(long, value_parser = filters_of_regions(), value_name = "STRUCTURE", default_value = RegionFilter::default().name())]
    filter: RegionFilter,

    /// Structure of the global level, which says in which segments of the index a value may be
    #[arg(long, value_parser = global_filters(), value_name = "STRUCTURE", default_value = GlobalFilter::default().name())]
    global_filter: GlobalFilter,

    /// Storage directories, new or empty, over which regions are spread [default: in the index]
    #[arg(long, value_name = "DIR,...", value_delimiter = ',')]
    nodes: Vec<PathBuf>,

    #[command(flatten)]
    dns: DnsPortArgs,

    #[command(flatten)]
    memory: MemoryArgs,

    #[command(flatten)]
    selection: SelectionArgs,

    #[command(flatten)]
    quiet: QuietArgs,
}

// Memory for flows.
#[derive(Args, Clone, Copy, Debug)]
struct MemoryArgs {
    /// Memory for the flows of a capture; with less, long flows are in more parts
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = parse_memory)]
    memory: u64,
}

fn parse_memory(text: &str) -> Result<u64, String> {
    let bytes = parse_size(text)?;
    if bytes < LEAST_MEMORY_BYTES {
        return Err(format!(
            "flows need at least {LEAST_MEMORY_BYTES} bytes (1MiB); 256MiB is the default"
        ));
    }
    Ok(bytes)
}

// Captures to index or to drop.
#[derive(Args, Clone, Debug)]
struct CapturesArgs {
    /// Captures, or directories of captures
    #[arg(required = true, value_name = "CAPTURE")]
    captures: Vec<PathBuf>,
}

impl CapturesArgs {
    /// Finds the captures, and leaves out those inside an index. This is a problem, or only a remark
    /// if it is the index that is written and the user named a directory around it.
    fn find(&self, archive: &Path, quiet: QuietArgs) -> Result<Inputs, UsageError> {
        if self.captures.iter().any(|path| is_standard(path)) {
            return Err(UsageError::new(
                "an index names the files that it is of, so standard input cannot be indexed; write it to a file first",
            ));
        }
        let mut inputs = Inputs::find(&self.captures, InputFormat::Auto);
        keep_apart([("--output", None)], &inputs.files)?;
        let in_index = self.captures.iter().filter(|path| {
            let folder = fs::canonicalize(if path.is_dir() { path } else { folder_of(path) });
            let is_named_index = path.is_dir() && index_around(path).is_some();
            !is_named_index && folder.is_ok_and(|folder| is_in_index(&folder))
        });
        let mut left_out: Vec<PathBuf> = in_index.cloned().collect();
        let mut known: HashMap<PathBuf, bool> = HashMap::new();
        inputs.files.retain(|path| {
            let folder = folder_of(path);
            let is_left_out = *known.entry(folder.to_owned()).or_insert_with(|| {
                fs::canonicalize(folder).is_ok_and(|folder| is_in_index(&folder))
            });
            if is_left_out && !left_out.iter().any(|other| path.starts_with(other)) {
                left_out.push(folder.to_owned());
            }
            !is_left_out
        });
        let own = Catalog::load(archive).map(|catalog| folders_of(archive, &catalog));
        let own = own.unwrap_or_default();
        for path in left_out {
            let what = "this is in the directory of an index, where only the index keeps files, so it is not indexed; move it elsewhere";
            let folder = fs::canonicalize(&path).unwrap_or_default();
            let is_own = own.iter().any(|own| folder.starts_with(own));
            if !is_own || self.captures.contains(&path) {
                inputs.problem(&path, what);
            } else if !quiet.quiet {
                say(format_args!("flowsieve: {}: {what}", path.shown()));
            }
        }
        Ok(inputs)
    }
}

pub(super) const ADD_EXAMPLES: &str = "\
Examples:
  What came since the last time; the rest is recognised and skipped:
    flowsieve index add archive captures/
  One capture, without a word:
    flowsieve index add -q archive today.pcapng.zst";

pub(super) const DROP_EXAMPLES: &str = "\
Examples:
  A capture that is no longer kept:
    flowsieve index drop archive captures/2026-01-01.pcap
  All captures of a directory:
    flowsieve index drop archive captures/2026-01/";

pub(super) const REPAIR_EXAMPLES: &str = "\
Examples:
  Find damage, and repair it:
    flowsieve index verify archive || flowsieve index repair archive";

// An index to repair.
#[derive(Args, Clone, Debug)]
pub(super) struct RepairArgs {
    #[command(flatten)]
    index: ArchiveArgs,

    #[command(flatten)]
    memory: MemoryArgs,

    #[command(flatten)]
    quiet: QuietArgs,
}

pub(super) const ADOPT_EXAMPLES: &str = "\
Examples:
  An index with two nodes, after it was moved:
    mv archive /new/archive
    flowsieve index adopt /new/archive --nodes /disk1/index,/disk2/index
  A copy of an index with one node:
    cp -r archive copy
    cp -r /disk1/index /disk3/copy
    flowsieve index adopt copy --nodes /disk3/copy";

// An index, and where its nodes are.
#[derive(Args, Clone, Debug)]
pub(super) struct AdoptArgs {
    #[command(flatten)]
    index: ArchiveArgs,

    /// Directories of all nodes, in the order in which they were named to `index build`
    #[arg(long, value_name = "DIR,...", value_delimiter = ',')]
    nodes: Vec<PathBuf>,

    #[command(flatten)]
    quiet: QuietArgs,
}

// An index, and captures to add or drop.
#[derive(Args, Clone, Debug)]
pub(super) struct ChangeArgs {
    #[command(flatten)]
    index: ArchiveArgs,

    #[command(flatten)]
    captures: CapturesArgs,

    #[command(flatten)]
    quiet: QuietArgs,
}

// An index, and captures to add.
#[derive(Args, Clone, Debug)]
pub(super) struct AddArgs {
    #[command(flatten)]
    change: ChangeArgs,

    #[command(flatten)]
    memory: MemoryArgs,

    #[command(flatten)]
    selection: SelectionArgs,
}

/// Shortest region: shorter ones cost about as much as they hold.
const SHORTEST_REGION_NS: i64 = 1_000_000_000;

fn parse_region(text: &str) -> Result<i64, &'static str> {
    match parse_width_ns(text) {
        Ok(..SHORTEST_REGION_NS) | Err(WIDTH) => {
            Err("a region lasts from 1s to 292 years, such as 5min")
        }
        region => region,
    }
}

pub(super) fn build(args: &BuildArgs, run: &mut Run) -> Result<Outcome> {
    let settings = Settings {
        region_ns: args.region,
        filter: args.filter,
        global: args.global_filter,
        dns_ports: args.dns.dns_port.clone(),
    };
    let inputs = args.captures.find(&args.archive, args.quiet)?;
    // An empty index would obstruct the same command with the right names.
    let is_new = fs::read_dir(&args.archive).map_or(true, |mut entries| entries.next().is_none());
    let problems: Vec<String> =
        inputs.files.iter().filter_map(|path| cannot_be_indexed(path)).collect();
    run.start(args.quiet.quiet)?;
    if is_new && problems.len() == inputs.files.len() {
        run.take(inputs);
        run.say_remarks();
        return Err(not_made(run, problems));
    }
    let selection = selection(run, &args.selection, &inputs)?;
    let folders = args.nodes.iter().chain([&args.archive]);
    let new_folders: Vec<&PathBuf> = folders.filter(|folder| !folder.exists()).collect();
    let mut writer =
        IndexWriter::create(&args.archive, settings, &args.nodes).map_err(explained)?;
    (writer.memory_bytes, writer.selection) = (args.memory.memory, selection);
    let filled = fill(run, &mut writer, inputs, true);
    if filled.is_err() && writer.remove_if_empty() {
        for folder in new_folders {
            // Others may have put files there.
            let _ = fs::remove_dir(folder);
        }
    }
    filled
}

/// Returns the error for an index that was not built. A single problem is part of the sentence;
/// several are reported first.
fn not_made(run: &mut Run, problems: Vec<String>) -> anyhow::Error {
    let problems = run.take_problems(problems);
    if let [problem] = &problems[..] {
        return anyhow!("{problem}; no index was made");
    }
    run.report_all(problems);
    anyhow!("nothing was indexed, so no index was made")
}

pub(super) fn add(args: &AddArgs, run: &mut Run) -> Result<Outcome> {
    let AddArgs { change: args, memory, selection: wanted } = args;
    let inputs = args.captures.find(&args.index.archive, args.quiet)?;
    run.start(args.quiet.quiet)?;
    let mut writer = IndexWriter::open(&args.index.archive).map_err(explained)?;
    writer.selection = selection(run, wanted, &inputs)?;
    writer.memory_bytes = memory.memory;
    fill(run, &mut writer, inputs, false)
}

/// Returns which packets of these captures are indexed.
fn selection(run: &Run, wanted: &SelectionArgs, inputs: &Inputs) -> Result<Selection, UsageError> {
    let mut trace = TracePlan {
        selection: wanted.selection(Tunnel::Outer, &[])?,
        ..TracePlan::new(&inputs.files)
    };
    trace.resolve(run.stop())?;
    Ok(trace.selection)
}

pub(super) fn remove(args: &ChangeArgs, run: &mut Run) -> Result<Outcome> {
    run.start(args.quiet.quiet)?;
    let mut writer = IndexWriter::open(&args.index.archive).map_err(explained)?;
    let (mut problems, mut dropped, mut interrupted) = (Vec::new(), 0, false);
    for path in &args.captures.captures {
        interrupted = run.stop().is_set();
        if interrupted {
            break;
        }
        match writer.drop_captures(path).map_err(explained)? {
            0 => problems.push(format!(
                "{}: no capture of this path is in the index; `flowsieve index stats --captures` lists them",
                path.shown()
            )),
            count => dropped += count,
        }
    }
    writer.commit().map_err(explained)?;
    if !interrupted {
        run.tell(format_args!("{} dropped", captures(dropped as u64)));
    }
    run.report_all(problems);
    let what = format!(
        "{} dropped, {} left in the index; the same command drops the rest",
        captures(dropped as u64),
        writer.captures()
    );
    run.set_interrupted(interrupted);
    Ok(run.finish(&what))
}

pub(super) fn adopt_nodes(args: &AdoptArgs) -> Result<Outcome> {
    let count = adopt(&args.index.archive, &args.nodes).map_err(explained)?;
    if !args.quiet.quiet {
        let (nodes, verb) = if count == 1 { ("node", "belongs") } else { ("nodes", "belong") };
        say(format_args!("{count} {nodes} {verb} to this index"));
    }
    Ok(Outcome::Done)
}

pub(super) fn repair(args: &RepairArgs, run: &mut Run) -> Result<Outcome> {
    run.start(args.quiet.quiet)?;
    let mut writer = IndexWriter::open(&args.index.archive).map_err(explained)?;
    writer.memory_bytes = args.memory.memory;
    let damage = verify(&args.index.archive).map_err(explained)?.damage;
    let files: Vec<PathBuf> = damage.captures().map(Path::to_owned).collect();
    let inputs: Vec<_> = files.iter().map(Source::from).collect();
    let repaired = run.watch(&inputs, |progress| {
        let repaired = writer.repair(&damage, progress)?;
        writer.commit()?;
        Ok(repaired)
    });
    let repaired = repaired.map_err(explained)?;
    let (mut problems, mut count, mut interrupted) = (Vec::new(), 0, false);
    for added in repaired {
        match added {
            Added::Indexed { damage, .. } => {
                count += 1;
                problems.extend(damage);
            }
            Added::Known => count += 1,
            Added::Interrupted => interrupted = true,
            Added::Unreadable(problem) => problems.push(format!(
                "{problem}; it is still damaged in the index: run `flowsieve index repair` again once the capture can be read, or `flowsieve index drop` if it is gone for good"
            )),
        }
    }
    let again = captures(count);
    if !interrupted {
        let segments = counted(damage.segments() as u64, "segment", "segments");
        run.tell(format_args!("{again} indexed again; filters of {segments} made again"));
    }
    run.report_all(problems);
    let what = format!("{again} indexed again; the same command goes on with the rest");
    run.set_interrupted(interrupted);
    Ok(run.finish(&what))
}

/// Counts captures.
fn captures(count: u64) -> String {
    counted(count, "capture", "captures")
}

/// Progress over all captures.
struct Whole<'a> {
    progress: &'a Progress,
    bytes: Cell<u64>,
    packets: Cell<u64>,
}

impl Watch for Whole<'_> {
    fn progress(&self, bytes: u64, packets: u64) {
        let before = (self.bytes.get(), self.packets.get());
        self.progress.progress(before.0 + bytes, before.1 + packets);
    }

    fn stop(&self) -> StopFlag {
        self.progress.stop()
    }
}

fn fill(run: &mut Run, writer: &mut IndexWriter, inputs: Inputs, is_new: bool) -> Result<Outcome> {
    let mut files = run.take(inputs);
    // An index reads each file once.
    run.remarks.retain(|remark| !remark.ends_with(TWICE));
    // A file that is named and also in a directory that is named is read once.
    let mut seen = HashSet::new();
    files.retain(|path| seen.insert(path.clone()));
    let inputs: Vec<_> = files.iter().map(Source::from).collect();
    let done = run.watch(&inputs, |progress| {
        let done = add_all(writer, &files, progress)?;
        writer.commit().map_err(explained)?;
        Ok::<_, anyhow::Error>(done)
    })?;
    // `index add` goes on with an index that a signal ended.
    if is_new && writer.captures() == 0 && !run.stop().is_set() {
        return Err(not_made(run, done.problems));
    }
    if !run.quiet && !done.interrupted {
        let regions = counted(done.regions as u64, "region", "regions");
        say(format_args!("{} indexed, in {regions}", captures(done.indexed)));
        if done.known > 0 {
            say(format_args!("in the index already: {}", captures(done.known)));
        }
        if let Some((path, indexed)) = &writer.known_elsewhere {
            let (path, indexed) = (path.shown(), indexed.shown());
            say(format_args!(
                "{path}: it has the content of {indexed}, which is in the index; add it again if that one is dropped or replaced"
            ));
        }
        run.others();
    }
    run.report_all(done.problems);
    run.report_all(known_in_part(writer));
    let out_of_range = writer.times_out_of_range.iter();
    say_times_out_of_range(out_of_range.map(|(path, count)| (path.as_path(), *count)));
    let what = format!(
        "{} in the index, {} of them added now; `flowsieve index add` goes on with the rest",
        captures(writer.captures() as u64),
        done.indexed
    );
    run.set_interrupted(done.interrupted);
    Ok(run.finish(&what))
}

/// Says of which captures the index holds other packets than were asked for.
fn known_in_part(writer: &IndexWriter) -> Vec<String> {
    let parts = writer.known_in_part.chunk_by(|(_, one), (_, other)| one == other);
    let say = |captures: &[(PathBuf, SelectedPart)]| {
        let (path, part) = captures.first()?;
        let held = part.selection(Tunnel::Outer).ok().and_then(|held| part_words(&held));
        let others = match captures.len() - 1 {
            0 => String::new(),
            others => format!(", as of {} after it", self::captures(others as u64)),
        };
        Some(format!(
            "{}: of this capture{others} the index holds only packets {}, and that stays so; to index others, drop it first: `flowsieve index drop`",
            path.shown(),
            held.as_deref().unwrap_or("that another version of flowsieve selected")
        ))
    };
    parts.filter_map(say).collect()
}

/// Result of adding captures.
#[derive(Debug, Default)]
struct Done {
    indexed: u64,
    regions: usize,
    known: u64,
    problems: Vec<String>,
    interrupted: bool,
}

fn add_all(writer: &mut IndexWriter, files: &[PathBuf], progress: &Progress) -> Result<Done> {
    let whole = Whole { progress, bytes: Cell::new(0), packets: Cell::new(0) };
    let mut done = Done::default();
    for path in files {
        match writer.add(path, &whole).map_err(explained)? {
            Added::Indexed { packets, regions, damage } => {
                done.indexed += 1;
                done.regions += regions;
                done.problems.extend(damage);
                whole.packets.set(whole.packets.get() + packets);
            }
            Added::Known => done.known += 1,
            Added::Interrupted => done.interrupted = true,
            Added::Unreadable(problem) => done.problems.push(problem),
        }
        done.interrupted |= whole.stop().is_set();
        if done.interrupted {
            break;
        }
        let bytes = fs::metadata(path).map_or(0, |data| data.len());
        whole.bytes.set(whole.bytes.get() + bytes);
        whole.progress(0, 0);
    }
    Ok(done)
}
