//! `flowsieve index verify` and `stats`.

use super::{ArchiveArgs, Outcome, explained};
use crate::cli::run::outcome;
use anyhow::Result;
use clap::Args;
use flowsieve::index::{stats as of_index, verify as verified};
use std::io::{Write, stdout};

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

    /// As a JSON document
    #[arg(long)]
    json: bool,
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

    /// As a JSON document
    #[arg(long)]
    json: bool,
}

pub(super) fn verify(args: &VerifyArgs) -> Result<Outcome> {
    let verified = verified(&args.index.archive).map_err(explained)?;
    if args.json {
        flowsieve::report::write_index_verify_json(&verified, stdout())?;
    } else if verified.problems.is_empty() {
        writeln!(
            stdout(),
            "{} captures, {} regions, {} records: all files are whole, and filters hold what the lists hold",
            verified.captures,
            verified.regions,
            verified.records
        )?;
    }
    Ok(outcome(&verified.problems))
}

pub(super) fn stats(args: &StatsArgs) -> Result<Outcome> {
    let stats = of_index(&args.index.archive).map_err(explained)?;
    if args.json {
        flowsieve::report::write_index_stats_json(&stats, stdout())?;
    } else {
        flowsieve::report::write_index_stats(&stats, args.captures, stdout())?;
    }
    Ok(outcome(&stats.problems))
}
