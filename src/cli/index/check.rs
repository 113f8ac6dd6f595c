//! `flowsieve index verify` and `stats`.

use super::{ArchiveArgs, Outcome, explained, spare_index};
use crate::cli::options::{FormatArgs, OutputArgs};
use crate::cli::output::Output;
use crate::cli::run::{PARTIAL, Run, UNWRITTEN};
use crate::cli::timezone::ZoneArgs;
use anyhow::{Context, Result};
use clap::Args;
use flowsieve::index::{stats as of_index, verify as verified};
use flowsieve::report::{ReportFormat, TerminalStyle, index_check, index_stats};

const VERIFY_EXAMPLES: &str = "\
Examples:
  Is everything as it was written:
    flowsieve index verify archive
  What is not whole, for a script:
    flowsieve index verify --json archive | jq -r '.problems[]'";

/// Check every file of an index, and that filters hold what the lists hold
#[derive(Args, Clone, Debug)]
#[command(after_long_help = VERIFY_EXAMPLES)]
pub(super) struct VerifyArgs {
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
pub(super) struct StatsArgs {
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

pub(super) fn verify(args: &VerifyArgs, run: &mut Run) -> Result<Outcome> {
    let (format, output) = args.results.open(&args.index, run)?;
    let verified = verified(&args.index.archive).map_err(explained)?;
    run.add_problems(verified.problems.clone());
    let report = index_check(&verified);
    let written = report.write(format, TerminalStyle::default(), output).context(UNWRITTEN);
    args.results.output.finish(run, written, || report.summary())?;
    run.problems(&[]);
    Ok(run.finish(PARTIAL))
}

pub(super) fn stats(args: &StatsArgs, run: &mut Run) -> Result<Outcome> {
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
