//! `flowsieve reproduce`: the papers' tables and figures, recomputed.

use super::inputs::Inputs;
use super::options::{FormatArgs, OutputArgs, SeedArgs, ThreadArgs};
use super::output::{Output, unwritten};
use super::page::PageArgs;
use super::run::{Run, UNWRITTEN, all_written};
use super::same_file::{is_redirected_to_file, keep_apart};
use super::say::{is_seen, quoted};
use super::{Outcome, UsageError};
use crate::report::counted;
use anyhow::{Context, Result, bail};
use clap::Args;
use clap::builder::PossibleValuesParser;
use flowsieve::experiments::{ALL, Entry, Experiment, ExperimentError, Scale, Settings};
use flowsieve::report::{ReproduceReport, write_experiments};
use flowsieve::trace::{InputFormat, StopFlag};
use flowsieve_engine::internal::{Shown, spawn};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use jiff::Timestamp;
use std::collections::BTreeSet;
use std::env;
use std::path::{Path, PathBuf};
use std::thread::{self, available_parallelism};
use std::time::Duration;

const EXAMPLES: &str = "\
Exit codes: 0 if every measurement agrees with its formula; 1 if one is away from it by more than
four standard errors, or if something could not be read or written.

Examples:
  Table 1 of the CMDBF paper, paper beside formula beside measurement:
    flowsieve reproduce cmdbf-table-1
  Everything, as a page with its figures:
    flowsieve reproduce all --markdown all.md";

/// Folder of a page's figures, in the folder of the page.
const FIGURES: &str = "figures";

#[derive(Args, Clone, Debug)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct ReproduceArgs {
    /// What to recompute [default: all]
    #[arg(value_name = "NAME", value_parser = PossibleValuesParser::new(names()), hide_possible_values = true)]
    names: Vec<String>,

    /// List the experiments and do nothing
    #[arg(long, conflicts_with_all = ["summary", "html", "svg", "markdown"])]
    list: bool,

    /// Sizes as published everywhere: Fig. 7 of the CBFM paper with 16 MB and 5 million elements
    #[arg(long)]
    full_scale: bool,

    /// A capture, or a directory of captures, for the experiments on traffic
    #[arg(long, value_name = "PATH")]
    capture: Vec<PathBuf>,

    #[command(flatten)]
    seed: SeedArgs<1>,

    #[command(flatten)]
    threads: ThreadArgs,

    #[command(flatten)]
    format: FormatArgs,

    #[command(flatten, next_help_heading = "Output")]
    output: OutputArgs,

    /// Write them as a Markdown page as well, its figures as SVG in the folder `figures` beside it
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    markdown: Option<PathBuf>,

    #[command(flatten)]
    page: PageArgs,

    /// The machine's name in the page, for its times [default: its processor and system]
    #[arg(long, value_name = "TEXT", help_heading = "Output")]
    machine: Option<String>,
}

/// The name of all experiments together.
const EVERYTHING: &str = "all";

fn names() -> Vec<&'static str> {
    let names = ALL.iter().map(|entry| entry.name);
    names.chain([EVERYTHING]).collect()
}

pub(crate) fn run(args: &ReproduceArgs, run: &mut Run) -> Result<Outcome> {
    if args.list {
        return list(args, run);
    }
    if args.markdown.is_some() && args.markdown == args.output.output {
        bail!(UsageError::new(
            "the page goes to a file of its own; give --markdown and --output different names"
        ));
    }
    args.format.check(&args.output)?;
    args.page.check(args.output.path())?;
    let figures = args.markdown.as_ref().map(|page| page.with_file_name(FIGURES));
    let markdown = ("--markdown", args.markdown.as_deref());
    let written = args.output.files().into_iter().chain([markdown]).chain(args.page.files());
    let written = written.chain([("--svg", figures.as_deref())]);
    run.start(false)?;
    let settings = args.settings(run)?;
    keep_apart(written, &inputs_of(&settings))?;
    // Places that cannot be written are reported before the work begins.
    let output = args.output.open(run)?;
    let page = Output::named(&run.partials, args.markdown.as_deref())?;
    let html = args.page.open(run)?;
    let wanted = args.wanted();
    let experiments = run_all(&wanted, &settings, run);
    let interrupted = run.stop().is_set();
    run.set_interrupted(interrupted);
    let all_read = experiments.iter().all(|experiment| experiment.problems.is_empty());
    let machine = args.machine.clone().unwrap_or_else(machine);
    let report = ReproduceReport {
        scale: settings.scale,
        seed: settings.seed,
        captures: settings.captures.len(),
        words: settings.words.is_some(),
        given: &args.given(&settings),
        interrupted,
        complete: all_read && !interrupted && !run.has_problems(),
        machine: &machine,
        day: &today(),
        experiments: &experiments,
    };
    let style = output.style(None);
    let written =
        report.complete().write(args.format.of(&args.output), style, output).context(UNWRITTEN);
    let markdown = page.zip(args.markdown.as_deref());
    all_written([
        args.output.finish(run, written, || report.complete().summary()),
        markdown.map_or(Ok(()), |(page, path)| write_markdown(run, &report, page, path)),
        if args.page.is_wanted() { args.page.write(run, html, report.page()) } else { Ok(()) },
    ])?;
    // Several experiments read the same captures.
    let problems: BTreeSet<_> = experiments.iter().flat_map(|it| &it.problems).collect();
    run.report_all(problems.into_iter().cloned());
    for experiment in &experiments {
        for cell in experiment.departures() {
            let (name, label) = (experiment.name, &cell.label);
            run.problem(format!("{name}: {label}: {}", cell.verdict()));
        }
    }
    Ok(run.finish(&format!(
        "the results hold the {} of {} experiments that were done by then",
        experiments.len(),
        wanted.len()
    )))
}

fn list(args: &ReproduceArgs, run: &mut Run) -> Result<Outcome> {
    args.format.check(&args.output)?;
    if args.output.output.is_some() || is_redirected_to_file() {
        let settings = args.settings(run)?;
        keep_apart(args.output.files(), &inputs_of(&settings))?;
    }
    let output = args.output.open(run)?;
    run.commit(write_experiments(args.format.of(&args.output), output).context(UNWRITTEN)?)?;
    Ok(Outcome::Done)
}

impl ReproduceArgs {
    /// Returns the experiments that were asked for, each once, in the order of the papers.
    fn wanted(&self) -> Vec<&'static Entry> {
        let everything = self.names.is_empty() || self.names.iter().any(|name| name == EVERYTHING);
        ALL.iter()
            .filter(|entry| everything || self.names.iter().any(|name| name == entry.name))
            .collect()
    }

    /// Returns the captures and directories for the experiments on traffic.
    fn named(&self) -> Vec<PathBuf> {
        if self.capture.is_empty() {
            given("FLOWSIEVE_TRACES").into_iter().collect()
        } else {
            self.capture.clone()
        }
    }

    /// Returns the variable and the options that name what experiments read, for a shell.
    fn given(&self, settings: &Settings) -> (String, Vec<String>) {
        let in_shell = |path: &PathBuf| quoted(&path.shown().to_string());
        let words = settings.words.as_ref().map(|path| format!("{WORDS}={} ", in_shell(path)));
        let named = self.named();
        let named = named.iter().map(|path| format!("--capture {}", in_shell(path)));
        (words.unwrap_or_default(), named.collect())
    }

    fn settings(&self, run: &mut Run) -> Result<Settings, UsageError> {
        let named = self.named();
        for path in &named {
            if !path.exists() {
                return Err(UsageError::new(format!(
                    "{}: there is no such capture or directory; correct --capture or FLOWSIEVE_TRACES, or leave them out to experiment on generated traffic",
                    path.shown()
                )));
            }
        }
        let captures = run.take(Inputs::find(&named, InputFormat::Auto));
        run.problems(&[]);
        Ok(Settings {
            scale: if self.full_scale { Scale::Full } else { Scale::Default },
            seed: self.seed.seed,
            threads: self.threads.count(),
            captures,
            words: given(WORDS),
        })
    }
}

/// The variable that names a list of words.
const WORDS: &str = "FLOWSIEVE_WORDS";

/// Returns all files that experiments read.
fn inputs_of(settings: &Settings) -> Vec<PathBuf> {
    settings.captures.iter().chain(&settings.words).cloned().collect()
}

/// Returns the path in an environment variable, if it is set to one.
fn given(variable: &str) -> Option<PathBuf> {
    let value = env::var_os(variable).filter(|value| !value.is_empty())?;
    Some(PathBuf::from(value))
}

/// Runs one after the other, each with all threads, so that times are not disturbed.
fn run_all(wanted: &[&'static Entry], settings: &Settings, run: &mut Run) -> Vec<Experiment> {
    let bar = if is_seen() {
        ProgressBar::with_draw_target(
            Some(wanted.len() as u64),
            ProgressDrawTarget::stderr_with_hz(10),
        )
    } else {
        ProgressBar::hidden()
    };
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len} {msg}") {
        bar.set_style(style);
    }
    let mut experiments = Vec::new();
    for entry in wanted {
        bar.set_message(entry.name);
        let Some(result) = run_until(entry, settings, run.stop()) else { break };
        match result {
            Ok(experiment) => experiments.push(experiment),
            Err(error) => {
                bar.suspend(|| run.problem(format!("{}: {error}", entry.name)));
            }
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    experiments
}

/// Runs an experiment in its own thread, which is abandoned if the run is to end: the
/// program ends soon, and the thread with it.
fn run_until(
    entry: &'static Entry,
    settings: &Settings,
    stop: &StopFlag,
) -> Option<Result<Experiment, ExperimentError>> {
    const A_WHILE: Duration = Duration::from_millis(50);
    let run = |settings: Settings| entry.run(&settings);
    let Some(thread) = spawn("experiment", 0, run) else { return Some(run(settings.clone())) };
    let experiment = thread.begin(settings.clone());
    while !experiment.is_finished() {
        if stop.is_set() {
            return None;
        }
        thread::sleep(A_WHILE);
    }
    let result = experiment.join();
    result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Writes the page, and its figures into a folder next to it.
fn write_markdown(
    run: &Run,
    report: &ReproduceReport<'_>,
    page: Output,
    path: &Path,
) -> Result<()> {
    let figures = PageArgs { html: None, svg: Some(path.with_file_name(FIGURES)) };
    let figures = figures.open(run).and_then(|html| figures.write(run, html, report.page()));
    let page = report.write_markdown(FIGURES, page).with_context(|| unwritten(path));
    all_written([figures, page.and_then(|page| run.commit(page))])
}

/// Returns the current date in UTC.
fn today() -> String {
    Timestamp::now().strftime("%F").to_string()
}

/// Processor, threads and system of this machine, as far as they are known.
fn machine() -> String {
    let processor = std::fs::read_to_string("/proc/cpuinfo").ok().and_then(|text| {
        let line = text.lines().find(|line| line.starts_with("model name"))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    });
    format!(
        "{}, {}, {} on {}",
        processor.unwrap_or_else(|| "a processor without a name".into()),
        counted(available_parallelism().map_or(1, usize::from) as u64, "thread", "threads"),
        env::consts::OS,
        env::consts::ARCH
    )
}
