//! What the user types: arguments to plan, run, report, exit code. One file a subcommand.

mod anonymize_args;
mod compare;
mod count;
mod dedup;
mod filter;
mod flows;
mod generate;
mod index;
mod inputs;
mod od;
mod output;
mod page;
mod plan;
mod progress;
mod remarks;
mod reproduce;
mod same_file;
mod signals;
mod structure;
mod trace_args;
mod units;

use anyhow::anyhow;
use clap::{Parser, Subcommand};
use std::ffi::OsString;
use std::panic::{self, AssertUnwindSafe};
use std::process::ExitCode;
use std::{env, io};

/// Count what is distinct in packet captures, and say how far from exact it was
///
/// flowsieve reads packet captures, sieves their packets through multi-attribute Bloom filters and
/// answers how many distinct host pairs, flows or DNS triples there were in each time slice: fast, in
/// bounded memory, and with the error of every answer.
#[derive(Debug, Parser)]
#[command(version, max_term_width = 100, after_long_help = EXAMPLES)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Exit codes:
  0  done
  1  done, but something could not be read or written; standard error says what
  2  the command line is wrong
  130, 143  interrupted by SIGINT, SIGTERM: what was read until then is the result, and is marked;
     a second signal ends the program at once

Examples:
  Host pairs in each second of a capture:
    flowsieve count capture.pcap
  A capture of ten million packets to try it on:
    flowsieve generate -w sample.pcap";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Compare(Box<compare::CompareArgs>),
    Count(Box<count::CountArgs>),
    Dedup(Box<dedup::DedupArgs>),
    Filter(filter::FilterArgs),
    Flows(flows::FlowsArgs),
    Generate(generate::GenerateArgs),
    Index(index::IndexArgs),
    Plan(Box<plan::PlanArgs>),
    Reproduce(reproduce::ReproduceArgs),
}

/// How a run ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Outcome {
    /// Everything was read and written.
    Done,
    /// Something could not be read; standard error said so, and the result holds everything else.
    Incomplete,
    /// A signal ended it, and this is its exit code; the result holds what was read until then.
    Interrupted(u8),
}

/// The user's mistake in the command line, found after parsing.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct UsageError(pub(crate) String);

/// What the words of a command line ask for; the first is the program's name.
pub(crate) fn parse<W>(words: impl IntoIterator<Item = W>) -> Result<Command, clap::Error>
where
    W: Into<OsString> + Clone,
{
    Arguments::try_parse_from(words).map(|arguments| arguments.command)
}

impl Command {
    /// Checks what the values say together, before any file is looked at.
    pub(crate) fn check(&self) -> Result<(), UsageError> {
        match self {
            Self::Plan(args) => args.check(),
            _ => Ok(()),
        }
    }

    fn run(&self) -> anyhow::Result<Outcome> {
        self.check()?;
        match self {
            Self::Compare(args) => compare::run(args),
            Self::Count(args) => count::run(args),
            Self::Dedup(args) => dedup::run(args),
            Self::Filter(args) => filter::run(args),
            Self::Flows(args) => flows::run(args),
            Self::Generate(args) => generate::run(args),
            Self::Index(args) => index::run(args),
            Self::Plan(args) => plan::run(args),
            Self::Reproduce(args) => reproduce::run(args),
        }
    }
}

pub(crate) fn main() -> ExitCode {
    // A wrong command line, --help and --version end here, with 2 and 0.
    let command = parse(env::args_os()).unwrap_or_else(|error| error.exit());
    ExitCode::from(match guarded(|| command.run()) {
        Ok(Outcome::Done) => 0,
        Ok(Outcome::Incomplete) => 1,
        Ok(Outcome::Interrupted(code)) => code,
        Err(error) if is_broken_pipe(&error) => 0,
        Err(error) => {
            eprintln!("flowsieve: {error:#}");
            if error.is::<UsageError>() { 2 } else { 1 }
        }
    })
}

/// The outcome; a panic is an error, too. Files that were to be are gone by then: without their names they
/// are removed on the way.
fn guarded(run: impl FnOnce() -> anyhow::Result<Outcome>) -> anyhow::Result<Outcome> {
    panic::catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| {
        // What happened and where was said already, as every panic says it.
        Err(anyhow!(
            "this is a mistake in flowsieve; please report it with the lines above, the command line and, if it may be shown, the capture"
        ))
    })
}

/// Whoever read our output has seen enough: no error.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause
            .downcast_ref::<io::Error>()
            .is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_of_the_main_thread_is_an_error_that_asks_to_report_it() {
        let error = guarded(|| panic!("the trap")).expect_err("it panicked");
        assert!(error.to_string().contains("please report it"), "{error}");
        assert!(!error.is::<UsageError>());
    }
}
