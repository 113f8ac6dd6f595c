//! The command line: arguments to plan, run, report and exit code. Each command has a file.

mod anonymize_args;
mod compare;
mod completions;
mod count;
mod dedup;
mod describe;
mod design;
mod destination;
mod divided;
mod export;
mod filter;
mod flows;
mod generate;
mod host;
mod index;
mod inputs;
mod limits;
mod man;
mod new_file;
mod options;
mod output;
mod page;
mod plan;
mod progress;
#[cfg(test)]
mod reference_tests;
#[cfg(feature = "reproduce")]
mod reproduce;
mod run;
mod same_file;
mod say;
mod signals;
mod timezone;
mod top;
mod topics;
#[cfg(feature = "toy")]
#[path = "../../tests/recipe/toy.rs"]
mod toy;
mod units;

use anstream::ColorChoice;
use anyhow::anyhow;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Parser, Subcommand};
pub use describe::describe;
pub use divided::{DividedPlan, DividedRun, conclude};
pub use filter::{answer, unite};
use flowsieve::bits::MEMORY_REFUSED;
use flowsieve::capture_filter::CaptureFilter;
use flowsieve::decode::Tunnel;
use flowsieve::pipeline::{InputResult, PlanError};
use flowsieve::trace::InputFormat;
use flowsieve_engine::internal::{Shown, can_run};
use host::run_as;
pub use host::{Host, Place};
use inputs::Inputs;
pub use output::write_file;
use run::Run;
use say::say;
use std::any::Any;
use std::ffi::OsString;
use std::fmt::Display;
use std::io::Write;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::{env, io};
pub use timezone::named as zone_named;
use topics::EXIT_CODES;
use units::VALUES;

/// Count what is distinct in packet captures, and say how far from exact it was
///
/// flowsieve reads packet captures, sieves their packets through multi-attribute Bloom filters and
/// answers how many distinct host pairs, flows or DNS triples there were in each time slice: fast,
/// in bounded memory, and with the error of every answer.
#[derive(Debug, Parser)]
#[command(version, max_term_width = 100, after_long_help = format!("{VALUES}\n\n{EXIT_CODES}\n\n{}\n\n{EXAMPLES}", topics::names()))]
struct Arguments {
    #[command(subcommand)]
    command: Command,

    /// Whether a table has bold face, and help and errors have colours
    ///
    /// By default a terminal has them, unless `NO_COLOR` is set or `TERM` is `dumb`; with
    /// `CLICOLOR_FORCE` pipes have them, too.
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", value_parser = options::one_of(COLORS), hide_short_help = true)]
    color: ColorChoice,
}

const COLORS: &[options::Choice<ColorChoice>] = &[
    ("auto", "On a terminal", ColorChoice::Auto),
    ("always", "Always", ColorChoice::Always),
    ("never", "Never", ColorChoice::Never),
];

/// Help of `count`, with the formats that are recognised.
fn count_help() -> String {
    format!(
        "Count distinct host pairs, flows or DNS triples in each time slice\n\nSeveral captures are one \
         trace in the order of time; directories are searched for captures. Recognised by content: \
         {}, plain or compressed by gzip, zstd, xz, bzip2 or lz4. A log of flows says when a flow \
         began, not when its packets came, so a flow counts in the slice in which it began.",
        flowsieve_engine::trace::recognised_formats()
    )
}

/// Returns the choice of colours in a command line, even if the rest of it is wrong or asks for help.
fn color_of(words: impl IntoIterator<Item = OsString>) -> ColorChoice {
    let words = words.into_iter().map(|word| word.to_string_lossy().into_owned());
    let words: Vec<String> = words.take_while(|word| word != "--").collect();
    let apart = words.windows(2).filter(|pair| pair[0] == "--color");
    let apart = apart.map(|pair| pair[1].as_str());
    let joined = words.iter().filter_map(|word| word.strip_prefix("--color="));
    let named = apart.chain(joined).last();
    let choice = COLORS.iter().find(|(name, ..)| named == Some(*name));
    choice.map_or(ColorChoice::Auto, |(.., choice)| *choice)
}

/// Returns whether the terminal understands no escape sequences. `anstream` writes them to such a
/// terminal if `CI` is set.
fn takes_no_color() -> bool {
    let is_forced = env::var_os("CLICOLOR_FORCE").is_some_and(|value| !value.is_empty());
    !is_forced && env::var_os("TERM").is_some_and(|name| name == "dumb")
}

const EXAMPLES: &str = "\
Examples:
  Host pairs in each second of a capture:
    flowsieve count capture.pcap
  A capture of ten million packets to try it on:
    flowsieve generate -w sample.pcap";

// The purpose of a command stands here, and not with its options: these are made for the one that was
// called. Help lists the commands in the order in which people need them.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum Command {
    /// Compare structures on a capture at equal memory, against the exact answer
    ///
    /// The capture is decoded once, and every structure sees all of it. The report begins with the
    /// two structures of --pair: which was nearer to the truth, in how many slices, and by how
    /// much. It gives, over all slices, the errors of the counts and the share of absent elements
    /// that each structure reports as present: values that occur but not together (apart), and
    /// elements that only the following slice has (next). Predicted rates come from the formulas
    /// for the numbers of elements found.
    #[command(display_order = 7)]
    Compare(Box<compare::CompareArgs>),
    /// Count distinct host pairs, flows or DNS triples in each time slice
    ///
    #[command(display_order = 1, long_about = count_help())]
    Count(Box<count::CountArgs>),
    /// Write captures without their duplicates
    ///
    /// A packet is dropped if the same packet was seen within the window before it. Nothing else is
    /// dropped: what the filter takes for a repeat is looked up among 128-bit digests. Several
    /// captures become one, in order of time. The summary goes to standard output (to standard
    /// error with `-w -`).
    #[command(display_order = 4)]
    Dedup(Box<dedup::DedupArgs>),
    /// Export packets, or elements once per slice, as rows for databases and data frames
    ///
    /// A row is a distinct element of a time slice, with the time of its first packet, its packets
    /// and its bytes there; or a packet (--all). Packets are in the order of the trace; elements
    /// are listed slice by slice, in the order in which each was first seen. Packets without a
    /// readable IP header have no row and are tallied by reason. Several captures are one trace in
    /// the order of time; formats and directories are those of `flowsieve count`.
    #[command(display_order = 6)]
    Export(Box<export::ExportArgs>),
    /// Look at, ask and unite filters that `count --save-filter` saved
    ///
    /// A saved filter answers whether an element was seen, without the capture. An element that was
    /// seen is always found; one that was not seen is reported as found with the filter's
    /// false-positive rate.
    #[command(display_order = 10)]
    Filter(filter::FilterArgs),
    /// List flows: times, five-tuple, packets, bytes, TCP flags, names
    ///
    /// A flow is all packets with the same addresses, protocol and ports; with --bidirectional
    /// those of both directions. Flows are listed in the order of their first packet. Without
    /// --idle and --active a flow lasts as long as the captures, so the number of flows is that of
    /// distinct five-tuples. Datagrams are not reassembled: only the first fragment has ports, and
    /// later fragments are another flow with the same addresses and protocol and with ports 0.
    /// Several captures are one trace in the order of time; formats and directories are those of
    /// `flowsieve count`. Records of logs are not packets: --unique lists them; without it they are
    /// tallied as skipped.
    #[command(display_order = 3)]
    Flows(flows::FlowsArgs),
    /// Generate a capture with known counts, the same bytes on every machine
    ///
    /// Writes a classic pcap of artificial traffic: host pairs under Zipf's law, TCP, UDP, ICMP and
    /// DNS over IPv4 and IPv6, some in VLANs, some frames sent twice. The exact numbers of distinct
    /// pairs, flows and DNS triples go to standard output (to standard error with `-w -`).
    #[command(display_order = 11)]
    Generate(generate::GenerateArgs),
    /// Index an archive of captures, and search it: which capture, and when
    ///
    /// Captures are divided into regions, each a range of time in one file. For each region the
    /// index keeps the flows and DNS questions, with inverted lists and a filter over combinations
    /// of addresses, port and domain; each storage directory also has a counting filter over its
    /// regions. A search asks the filters which regions can have an answer, and takes the answers
    /// from lists and records: none is missed, none is made up.
    #[command(display_order = 5)]
    Index(index::IndexArgs),
    /// Plan a filter: for every structure its parameters, memory and false-positive rate
    ///
    /// A plan is for a mixture of queries: combinations of attributes (--want) with weights. It
    /// predicts false-positive rates for combinations that do not occur; see --known. For CBFM and
    /// WCBFM it searches for the cuts and weights with the lowest weighted rate. Combinations that
    /// no wanted one contains are cut. If at most 6894 families of cuts remain (always with up to
    /// five attributes), all are tried; otherwise a search with bounded work starts from several
    /// families and may miss the best one (--cuts names another one). The weights are never worse
    /// than equal ones.
    #[command(display_order = 8)]
    Plan(Box<plan::PlanArgs>),
    /// Recompute the tables and figures of the papers that the filters come from
    ///
    /// For each figure: what the paper prints, what the formula says, what is measured on the
    /// filters of this program with its standard error, and a verdict. Everything but times follows
    /// from the seed.
    ///
    /// Experiments on traffic take captures from --capture, or from the directory in the
    /// environment variable `FLOWSIEVE_TRACES`; without both they generate traffic and say so. The
    /// dictionary takes its words from the file in `FLOWSIEVE_WORDS` (one per line); without it, it
    /// makes words up and says so.
    #[command(display_order = 9)]
    #[cfg(feature = "reproduce")]
    Reproduce(reproduce::ReproduceArgs),
    /// Rank hosts, ports or names by how many distinct others each has
    ///
    /// Which sources contact the most destinations (scanners), which destinations the most sources
    /// (victims), who tries the most ports, which domains have the most names. A Bloom filter
    /// removes repeats, and a summary of bounded size ranks the rest. Without options: sources by
    /// distinct destinations, over the whole trace. Several captures are one trace in the order of
    /// time; formats and directories are those of `flowsieve count`.
    #[command(display_order = 2)]
    Top(top::TopArgs),
    /// Print a script with which a shell completes commands and options
    ///
    /// In bash, zsh and fish it completes the values of options, too: structures, elements,
    /// formats.
    #[command(display_order = 12)]
    Completions(completions::CompletionsArgs),
    /// Write manual pages, for the program and each command
    #[command(display_order = 13)]
    Man(man::ManArgs),
    /// Say how many flows captures have
    #[cfg(feature = "toy")]
    #[command(hide = true)]
    Toy(toy::ToyArgs),
}

/// How a run ended.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum Outcome {
    /// Everything was read and written.
    #[default]
    Done,
    /// Everything was read, and nothing of what was looked for is there.
    NothingFound,
    /// Something could not be read; standard error said so, and the result holds everything else.
    Incomplete,
    /// A signal ended it, and this is its exit code; the result holds what was read until then.
    Interrupted(u8),
}

/// The user's mistake in the command line, found after parsing.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct UsageError(String);

impl UsageError {
    /// Returns the mistake that this sentence, or error, explains.
    pub(crate) fn new(sentence: impl Display) -> Self {
        Self(sentence.to_string())
    }

    /// Returns an error with the sentence of the first rule that is broken.
    pub(crate) fn check(broken: &[(bool, &str)]) -> Result<(), Self> {
        match broken.iter().find(|(is_broken, _)| *is_broken) {
            Some((_, sentence)) => Err(Self::new(sentence)),
            None => Ok(()),
        }
    }
}

impl From<PlanError> for UsageError {
    fn from(error: PlanError) -> Self {
        Self::new(error)
    }
}

/// Why a run has no result.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The sentence that a shell would print.
    pub sentence: String,
    /// The command line is wrong.
    pub is_usage: bool,
    /// The file, and the byte, that stopped it.
    pub place: Option<Place>,
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self {
            sentence: format!("{error:#}"),
            is_usage: error.is::<UsageError>(),
            place: host::place_of(&error),
        }
    }
}

impl From<clap::Error> for Failure {
    fn from(error: clap::Error) -> Self {
        Self { sentence: error.to_string(), is_usage: true, place: None }
    }
}

/// Parses the words of a command line; the first is the program's name.
fn parse<W>(words: impl IntoIterator<Item = W>) -> Result<Command, clap::Error>
where
    W: Into<OsString> + Clone,
{
    let arguments = Arguments::try_parse_from(words).map_err(with_tip)?;
    Ok(arguments.command)
}

/// Options of other programs, and the equivalent here.
const TIPS: [(&[&str], &str); 5] = [
    (&["--version", "-V"], "all commands have one version: flowsieve --version"),
    (&["-r"], "name the capture without -r"),
    (&["--sort"], "rows have an order of their own, and other programs sort them: --format csv"),
    (&["--json"], "--format json"),
    (&["--top"], "rankings have their own command: flowsieve top --help"),
];

/// Adds a tip to an error for which clap has none, or one that misleads.
fn with_tip(mut error: clap::Error) -> clap::Error {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let tip = match (error.kind(), text(ContextKind::InvalidArg), text(ContextKind::InvalidValue)) {
        (ErrorKind::UnknownArgument, Some(option), _) => {
            let known = TIPS.iter().find(|(options, _)| options.contains(&option));
            known.map(|(_, tip)| (*tip).to_owned())
        }
        // A capture filter as the value of --filter is meant for --where.
        (_, Some(option), Some(value))
            if option.starts_with("--filter ")
                && CaptureFilter::parse(value, Tunnel::Outer).is_ok() =>
        {
            Some(format!(
                "--filter names the structure; to choose packets, write --where '{value}'"
            ))
        }
        _ => None,
    };
    if error.kind() == ErrorKind::UnknownArgument {
        // Clap's tip that the option could be meant as a value.
        error.remove(ContextKind::Suggested);
    }
    if let Some(tip) = tip {
        // Clap's own guess is about an option that is spelled alike, and so is the usage.
        error.remove(ContextKind::SuggestedArg);
        error.remove(ContextKind::Usage);
        let tip = ContextValue::StyledStrs(vec![tip.into()]);
        error.insert(ContextKind::Suggested, tip);
    }
    error
}

/// Returns the mistake in a command line, or `None`; nothing is run.
pub fn misunderstood<W>(words: impl IntoIterator<Item = W>) -> Option<String>
where
    W: Into<OsString> + Clone,
{
    match parse(words) {
        Ok(command) => command.check().err().map(|error| error.to_string()),
        Err(error) => Some(error.to_string()),
    }
}

impl Command {
    /// Checks what the values say together, before any file is looked at.
    fn check(&self) -> Result<(), UsageError> {
        match self {
            Self::Plan(args) => args.check(),
            _ => Ok(()),
        }
    }

    fn run(&self, run: &mut Run) -> anyhow::Result<Outcome> {
        self.check()?;
        same_file::check_redirection()?;
        if !can_run() {
            return Err(anyhow!(NO_ROOM));
        }
        run.command(|run| match self {
            Self::Compare(args) => compare::run(args, run),
            Self::Completions(args) => completions::run(args, run),
            Self::Count(args) => count::run(args, run),
            Self::Dedup(args) => dedup::run(args, run),
            Self::Export(args) => export::run(args, run),
            Self::Filter(args) => filter::run(args, run),
            Self::Flows(args) => flows::run(args, run),
            Self::Generate(args) => generate::run(args, run),
            Self::Index(args) => index::run(args, run),
            Self::Man(args) => man::run(args, run),
            Self::Plan(args) => plan::run(args, run),
            #[cfg(feature = "reproduce")]
            Self::Reproduce(args) => reproduce::run(args, run),
            Self::Top(args) => top::run(args, run),
            #[cfg(feature = "toy")]
            Self::Toy(args) => toy::run(args, run),
        })
    }
}

const NO_ROOM: &str = "the system gives too little memory for a run in one thread; allow 64 MiB of address space or more (ulimit -v 65536)";

/// Runs the program.
pub fn main() -> ExitCode {
    limits::prepare();
    silence_refusals();
    match color_of(env::args_os()) {
        ColorChoice::Auto if takes_no_color() => ColorChoice::Never,
        choice => choice,
    }
    .write_global();
    let words = env::args_os().map(|word| word.to_string_lossy().into_owned());
    if let Some(text) = topics::asked(&words.collect::<Vec<_>>()) {
        return printed(say::show(&text), 0);
    }
    let command = match parse(env::args_os()) {
        Ok(command) => command,
        Err(answer) => return printed(say::answer(&answer), answer.exit_code()),
    };
    let mut run = Run::new(env::args_os().collect());
    ExitCode::from(match catch_panic(|| command.run(&mut run)) {
        Ok(Outcome::Done) => 0,
        Ok(Outcome::Incomplete | Outcome::NothingFound) => 1,
        Ok(Outcome::Interrupted(code)) => code,
        Err(error) => {
            let sentence = format!("{error:#}{}", run.partials.words());
            // User input may have several lines; text from files is shown as one line.
            if error.is::<UsageError>() {
                say(format_args!("flowsieve: {sentence}"));
                2
            } else {
                say(format_args!("flowsieve: {}", sentence.shown()));
                1
            }
        }
    })
}

/// Runs a command in this thread; the first word is the program's name. Returns whether everything
/// was read.
///
/// # Errors
///
/// The message that a shell would print last, with exit code 1 or 2.
pub fn run_for<W>(host: Arc<dyn Host>, words: impl IntoIterator<Item = W>) -> Result<bool, Failure>
where
    W: Into<OsString> + Clone,
{
    let words: Vec<OsString> = words.into_iter().map(Into::into).collect();
    let command = parse(words.clone())?;
    let outcome = run_as(host, || catch_panic(|| command.run(&mut Run::new(words))));
    Ok(matches!(outcome?, Outcome::Done | Outcome::NothingFound))
}

/// Returns the captures among these files and directories, and the directories with problems.
pub fn captures_of(named: &[PathBuf]) -> (Vec<PathBuf>, Vec<InputResult>) {
    let inputs = Inputs::find(named, InputFormat::Auto);
    (inputs.files, inputs.problems)
}

/// Returns the bytes of a size such as `64KiB`, or what a size is.
pub fn bytes_of(size: &str) -> Result<u64, String> {
    units::parse_size(size).map_err(str::to_owned)
}

/// Ends with this exit code when an answer was printed: 0 for a text that was asked for, --help or
/// --version, and 2 for a wrong command line.
fn printed(printed: io::Result<()>, code: i32) -> ExitCode {
    match printed.and_then(|()| io::stdout().flush()) {
        Err(error) if code == 0 && error.kind() != io::ErrorKind::BrokenPipe => {
            say(format_args!("flowsieve: {}: {error}", output::unwritten(Path::new("-"))));
            ExitCode::from(1)
        }
        _ => ExitCode::from(code as u8),
    }
}

/// Keeps panics about refused memory silent: they become an error with a sentence. All others
/// report themselves.
fn silence_refusals() {
    let usual = panic::take_hook();
    panic::set_hook(Box::new(move |said| {
        if !is_refusal(said.payload()) {
            usual(said);
        }
    }));
}

/// Returns whether this is the message of a panic about refused memory.
fn is_refusal(said: &(dyn Any + Send)) -> bool {
    let text = said.downcast_ref::<&str>().copied();
    let text = text.or_else(|| said.downcast_ref::<String>().map(String::as_str));
    text == Some(MEMORY_REFUSED)
}

/// Returns the outcome; a panic is an error, too. Files without their names are removed by then.
fn catch_panic(run: impl FnOnce() -> anyhow::Result<Outcome>) -> anyhow::Result<Outcome> {
    panic::catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        if is_refusal(&*panic) {
            return Err(anyhow!(MEMORY_REFUSED));
        }
        // The message of the panic said what happened and where.
        Err(anyhow!(
            "this is a mistake in flowsieve; please report it with the lines above, the command line and, if it may be shown, the capture"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_of_the_main_thread_is_an_error_that_asks_to_report_it() {
        let error = catch_panic(|| panic!("the trap")).expect_err("it panicked");
        assert!(error.to_string().contains("please report it"), "{error}");
        assert!(!error.is::<UsageError>());
        let error = catch_panic(|| panic!("{MEMORY_REFUSED}")).expect_err("it panicked");
        assert_eq!(error.to_string(), MEMORY_REFUSED);
    }
}
