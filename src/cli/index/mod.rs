//! `flowsieve index`: an index of an archive of captures; `verify` and `stats`.

mod search;
mod write;

use super::destination::{destination, folder_of, is_standard_output};
use super::options::{FormatArgs, OutputArgs};
use super::output::Output;
use super::run::{PARTIAL, Run, UNWRITTEN};
use super::same_file::{
    are_apart, is_redirected_to_file, keep_apart, name_of_output_in, refuse_foreign, within_index,
};
use super::timezone::ZoneArgs;
use super::{Outcome, UsageError};
use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use flowsieve::index::{CaptureEntry, Catalog, IndexError, stats as of_index, verify as verified};
use flowsieve::report::{ReportFormat, TerminalStyle, index_check, index_stats};
use flowsieve_engine::internal::Shown;
use std::fs;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  Index all captures of a directory, then add what came since:
    flowsieve index build archive captures/
    flowsieve index add archive captures/
  Where and when did a host ask for names of a domain:
    flowsieve index search archive --src 10.1.2.3 --domain '*.example.com'";

#[derive(Args, Clone, Debug)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct IndexArgs {
    #[command(subcommand)]
    command: IndexCommand,
}

#[derive(Clone, Debug, Subcommand)]
enum IndexCommand {
    Build(write::BuildArgs),
    /// Add captures to an index; what is in it already is skipped
    ///
    /// Captures are recognised by their content, so one that was moved is not indexed again, and
    /// one whose content changed is.
    #[command(after_long_help = write::ADD_EXAMPLES)]
    Add(write::AddArgs),
    Search(Box<search::SearchArgs>),
    /// Remove captures from an index; the captures themselves stay
    ///
    /// The captures need not exist any more. Their regions are removed, and the global filters
    /// forget their values.
    #[command(after_long_help = write::DROP_EXAMPLES)]
    Drop(write::ChangeArgs),
    Verify(VerifyArgs),
    /// Index damaged captures again, and rebuild damaged filters
    ///
    /// Each capture whose files in the index are damaged is dropped and added again in one step, so
    /// it must still be there. Filters are made again from the records.
    #[command(after_long_help = write::REPAIR_EXAMPLES)]
    Repair(write::RepairArgs),
    /// Tell an index that was moved or copied which directories are its nodes
    ///
    /// Nothing is written to or deleted from a directory without the mark of the index. Nodes that
    /// are inside the directory of the index move with it; others have to be named after a move,
    /// and copied and named after a copy.
    #[command(after_long_help = write::ADOPT_EXAMPLES)]
    Adopt(write::AdoptArgs),
    Stats(StatsArgs),
}

// The index that a command works on.
#[derive(Args, Clone, Debug)]
struct ArchiveArgs {
    /// Directory of the index
    #[arg(value_name = "ARCHIVE_DIR")]
    archive: PathBuf,
}

pub(crate) fn run(args: &IndexArgs, run: &mut Run) -> Result<Outcome> {
    match &args.command {
        IndexCommand::Build(args) => write::build(args, run),
        IndexCommand::Add(args) => write::add(args, run),
        IndexCommand::Search(args) => search::run(args, run),
        IndexCommand::Drop(args) => write::remove(args, run),
        IndexCommand::Repair(args) => write::repair(args, run),
        IndexCommand::Adopt(args) => write::adopt_nodes(args),
        IndexCommand::Verify(args) => verify(args, run),
        IndexCommand::Stats(args) => stats(args, run),
    }
}

/// Checks that no result replaces an indexed capture, a file of the index, another input or another
/// result. `written` are the options that name results, with their files.
fn spare_index(
    archive: &Path,
    written: &[(&str, Option<&Path>)],
    inputs: impl FnOnce(&[PathBuf]) -> Vec<PathBuf>,
) -> Result<()> {
    if written.iter().all(|(_, path)| path.is_none()) && !is_redirected_to_file() {
        return Ok(());
    }
    let catalog = Catalog::load(archive).map_err(explained)?;
    // If the captures are unknown, an existing file may be one.
    let is_there = |path: Option<&Path>| path.is_some_and(Path::is_file);
    let captures = match catalog.captures() {
        Err(error) if written.iter().any(|(_, path)| is_there(*path)) => {
            return Err(explained(error));
        }
        captures => captures.unwrap_or_default(),
    };
    let folders = folders_of(archive, &catalog);
    if is_redirected_to_file() {
        keep_apart([("--output", None)], &[archive.to_owned()])?;
        // On Linux the name of the file is known.
        let place = fs::read_link("/proc/self/fd/1").unwrap_or_default();
        spare_moved("standard output", &place, &captures)?;
        if let Some(path) = folders.iter().find_map(|folder| name_of_output_in(folder)) {
            bail!(within_index("standard output", &path));
        }
    }
    let paths: Vec<PathBuf> = captures.iter().map(|entry| entry.path.clone()).collect();
    are_apart(written, &inputs(&paths))?;
    for &(name, path) in written {
        let Some(path) = path.filter(|path| !is_standard_output(path)) else { continue };
        let folder = fs::canonicalize(folder_of(&destination(path)));
        if folder.is_ok_and(|folder| folders.iter().any(|of_index| folder.starts_with(of_index))) {
            bail!(within_index(name, path));
        }
        spare_moved(name, path, &captures)?;
        refuse_foreign(name, path)?;
    }
    Ok(())
}

/// Refuses a result that would replace an indexed capture under a new name.
fn spare_moved(name: &str, path: &Path, captures: &[CaptureEntry]) -> Result<(), UsageError> {
    let length = fs::metadata(path).ok().filter(fs::Metadata::is_file).map(|data| data.len());
    let mut as_long = captures.iter().filter(|entry| Some(entry.bytes) == length);
    as_long.find(|entry| entry.was_moved_to(path)).map_or(Ok(()), |entry| {
        Err(UsageError::new(format!(
            "{} is the capture that was indexed as {}; choose another path for {name}",
            path.shown(),
            entry.path.shown()
        )))
    })
}

/// Returns the folders of an index without links on the way to them.
fn folders_of(archive: &Path, catalog: &Catalog) -> Vec<PathBuf> {
    let nodes = (0..catalog.nodes.len()).map(|node| catalog.node_folder(node));
    let folders = nodes.chain([archive.to_owned()]);
    folders.filter_map(|folder| fs::canonicalize(folder).ok()).collect()
}

/// A mistake of the user's has another exit code than a fault of the index.
fn explained(error: IndexError) -> anyhow::Error {
    match error {
        IndexError::Plan(sentence) => UsageError::new(sentence).into(),
        error => error.into(),
    }
}

const VERIFY_EXAMPLES: &str = "\
Examples:
  Is everything as it was written:
    flowsieve index verify archive
  What is not whole, for a script:
    flowsieve index verify --json archive | jq -r '.problems[]'";

/// Check every file of an index, and that filters hold what the lists hold
#[derive(Args, Clone, Debug)]
#[command(after_long_help = VERIFY_EXAMPLES)]
struct VerifyArgs {
    #[command(flatten)]
    index: ArchiveArgs,

    #[command(flatten)]
    results: ResultArgs,
}

const STATS_EXAMPLES: &str = "\
Examples:
  Sizes, fills and overflows:
    flowsieve index stats archive
  Which captures are in it:
    flowsieve index stats --captures archive";

/// Show what an index holds and how large it is
#[derive(Args, Clone, Debug)]
#[command(after_long_help = STATS_EXAMPLES)]
struct StatsArgs {
    #[command(flatten)]
    index: ArchiveArgs,

    /// List the captures as well
    #[arg(long)]
    captures: bool,

    #[command(flatten)]
    zone: ZoneArgs,

    #[command(flatten)]
    results: ResultArgs,
}

fn verify(args: &VerifyArgs, run: &mut Run) -> Result<Outcome> {
    let (format, output) = args.results.open(&args.index, run)?;
    let verified = verified(&args.index.archive).map_err(explained)?;
    run.add_problems(verified.problems.clone());
    let report = index_check(&verified);
    let written = report.write(format, TerminalStyle::default(), output).context(UNWRITTEN);
    args.results.output.finish(run, written, || report.summary())?;
    run.problems(&[]);
    Ok(run.finish(PARTIAL))
}

fn stats(args: &StatsArgs, run: &mut Run) -> Result<Outcome> {
    let (format, output) = args.results.open(&args.index, run)?;
    let stats = of_index(&args.index.archive).map_err(explained)?;
    run.add_problems(stats.problems.clone());
    let style = output.style(None);
    let report = index_stats(&stats, args.captures, args.zone.zone());
    let written = report.write(format, style, output).context(UNWRITTEN);
    args.results.output.finish(run, written, || report.summary())?;
    run.problems(&[]);
    Ok(run.finish(PARTIAL))
}

// Format and destination of results.
#[derive(Args, Clone, Debug)]
struct ResultArgs {
    #[command(flatten)]
    format: FormatArgs,

    /// The same as --format json
    #[arg(long, conflicts_with = "format", help_heading = "Output")]
    json: bool,

    #[command(flatten, next_help_heading = "Output")]
    output: OutputArgs,
}

impl ResultArgs {
    /// Returns the format, and opens the destination.
    fn open(&self, index: &ArchiveArgs, run: &mut Run) -> Result<(ReportFormat, Output)> {
        self.format.check(&self.output)?;
        spare_index(&index.archive, &self.output.files(), <[_]>::to_vec)?;
        let format = if self.json { ReportFormat::JSON } else { self.format.of(&self.output) };
        Ok((format, self.output.open(run)?))
    }
}
