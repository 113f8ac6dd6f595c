//! The steps that all commands have in common: find the inputs, open them, read with progress and
//! signals, commit the results, report problems, end with an exit code.
//!
//! A command that reads captures goes through them in this order:
//!
//! | step | what it does |
//! |---|---|
//! | [`Run::start_on`] | catches signals and finds the captures that are named |
//! | [`Run::open`] | checks that one of them can be read, and resolves relative times |
//! | [`Run::read`] | reads them, while progress is shown |
//! | [`Run::commit`] | puts results in place, or marks them as partial |
//! | [`Run::end`] | reports problems and speed, and returns the outcome |

use super::destination::is_standard;
use super::host::{Problem, current};
use super::inputs::{Inputs, total_bytes, twice};
use super::options::{FormatArgs, InputArgs, LiveArgs, OutputArgs, RowsArgs, SpeechArgs};
use super::output::{Ending, Output, Partials, is_piped, is_typed, unwritten};
use super::progress::Progress;
use super::say::{is_seen, quoted, report, say, say_problem, say_times_out_of_range};
use super::signals::Signals;
use super::{Outcome, UsageError};
use crate::report::counted;
use anyhow::{Context, Result};
use flowsieve::comparison::Comparison;
use flowsieve::dedup::DedupSummary;
use flowsieve::export::ExportSummary;
use flowsieve::flows::FlowSummary;
use flowsieve::pipeline::{CountSummary, InputResult, RunError, SampleResult};
use flowsieve::plan::TracePlan;
use flowsieve::report::{ReportFormat, Summary, TerminalStyle};
use flowsieve::top::TopSummary;
use flowsieve::trace::{Capture, Source, StopFlag};
use flowsieve_engine::internal::{Shown, refused_threads};
use indicatif::HumanCount;
use std::ffi::OsString;
use std::fmt::Display;
use std::io;
use std::mem::take;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// A run of a command.
#[derive(Default)]
pub(crate) struct Run {
    /// The command line.
    words: Vec<OsString>,
    /// Partial results, which all outputs of the run share.
    pub(crate) partials: Partials,
    /// The file for the summary, until it is written.
    pub(super) summary: Option<Output>,
    signals: Signals,
    outcome: Outcome,
    ending: Ending,
    /// Directories among the inputs with problems, until they are among the results of inputs.
    directories: Vec<InputResult>,
    /// Other problems that are not with an input that is read.
    problems: Vec<String>,
    /// Problems with inputs that were read, until they are reported.
    unreported: Vec<String>,
    /// Files in directories that are not captures.
    others: usize,
    /// Remarks on inputs that may have been named by mistake.
    pub(super) remarks: Vec<String>,
    /// The user wants no progress and no remarks.
    pub(super) quiet: bool,
    /// Notes on what is missing from results, if their format cannot say it.
    notes: Vec<String>,
    /// Rows appear on a terminal while captures are read: they and a bar would overwrite each other.
    pub(super) hides_progress: bool,
    /// Threads that had been refused before the run began.
    refused_threads: u64,
    /// When it began to read.
    started: Option<Instant>,
}

/// No input could be read; the problems were reported.
#[derive(Debug, thiserror::Error)]
#[error("no input could be read")]
struct NothingRead;

/// The part of a summary that all commands have: inputs, packets, interruption.
pub(crate) trait Reading {
    fn inputs(&self) -> &[InputResult];
    /// Adds inputs of which nothing could be read.
    fn lack(&mut self, inputs: Vec<InputResult>);
    fn packets(&self) -> u64;
    fn is_interrupted(&self) -> bool;
}

/// Totals of captures that are compared separately.
#[derive(Default)]
pub(super) struct AllRead {
    pub(super) inputs: Vec<InputResult>,
    pub(super) packets: u64,
    pub(super) interrupted: bool,
}

macro_rules! reading {
    ($($summary:ty: $packets:ident $(.$field:ident)?, $interrupted:ident $(.$flag:ident)?
        $(, $complete:ident.complete)?;)*) => {
        $(impl Reading for $summary {
            fn inputs(&self) -> &[InputResult] {
                &self.inputs
            }

            fn lack(&mut self, inputs: Vec<InputResult>) {
                $(self.$complete.complete &= inputs.is_empty();)?
                self.inputs.splice(0..0, inputs);
            }

            fn packets(&self) -> u64 {
                self.$packets$(.$field)?
            }

            fn is_interrupted(&self) -> bool {
                self.$interrupted$(.$flag)?
            }
        })*
    };
}

reading! {
    AllRead: packets, interrupted;
    Comparison: totals.packets, totals.interrupted, totals.complete;
    CountSummary: totals.packets, totals.interrupted, totals.complete;
    DedupSummary: totals.packets, interrupted;
    ExportSummary: totals.packets, totals.interrupted;
    FlowSummary: totals.packets, totals.interrupted;
    SampleResult: packets, interrupted;
    TopSummary: totals.packets, totals.interrupted;
}

impl Run {
    pub(crate) fn new(words: Vec<OsString>) -> Self {
        Self { words, refused_threads: refused_threads(), ..Self::default() }
    }

    /// The options of this run among these, each with its value, as a shell reads them.
    pub(super) fn given(&self, options: &[&str]) -> Vec<String> {
        let words: Vec<String> = self.words.iter().map(|word| word.shown().to_string()).collect();
        let pairs = words.iter().enumerate().filter_map(|(number, word)| {
            let next = || Some((word.as_str(), words.get(number + 1)?.as_str()));
            let (name, value) = word.split_once('=').or_else(next)?;
            options.contains(&name).then(|| format!("{name} {}", quoted(value)))
        });
        pairs.collect()
    }

    /// The command line of this run, as a shell reads it, without some options that have a value and
    /// some that have none.
    pub(super) fn command_line(&self, without: &[&str], flags: &[&str]) -> String {
        let mut all = self.words.iter().skip(1).map(|word| word.shown().to_string());
        let mut kept = Vec::new();
        while let Some(word) = all.next() {
            // `--output=FILE`, and `-oFILE`.
            let name = word.split('=').next().unwrap_or_default();
            let short = word.get(..2).filter(|short| *short != "--").unwrap_or_default();
            if without.contains(&&*word) {
                all.next();
            } else if ![name, short].iter().any(|it| without.contains(it))
                && !flags.contains(&&*word)
            {
                kept.push(word);
            }
        }
        let words = kept.iter().map(|word| quoted(word));
        format!("flowsieve {}", words.collect::<Vec<_>>().join(" "))
    }

    /// Returns the run of these inputs on other machines.
    pub(super) fn of_inputs(inputs: Inputs) -> Self {
        let mut run = Self::new(Vec::new());
        run.take(inputs);
        run
    }

    /// Runs a command. If it could read nothing, that is its outcome and no error; nor is it one that
    /// the reader of the results has closed its pipe.
    pub(super) fn command(
        &mut self,
        command: impl FnOnce(&mut Self) -> Result<Outcome>,
    ) -> Result<Outcome> {
        match command(self) {
            Err(error) if error.is::<NothingRead>() => Ok(self.finish(PARTIAL)),
            Err(error)
                if is_caused_by(&error, io::ErrorKind::Interrupted) && current().is_none() =>
            {
                self.ending = Ending::Partial;
                Ok(self.finish(&format!("{error:#}")))
            }
            Err(error)
                if is_caused_by(&error, io::ErrorKind::BrokenPipe) && current().is_none() =>
            {
                let problems = take(&mut self.unreported);
                self.report_all(problems);
                Ok(self.outcome)
            }
            result => result,
        }
    }

    /// Catches signals: from now on the first one sets the flag of [`Self::stop`].
    pub(crate) fn start(&mut self, quiet: bool) -> Result<()> {
        self.quiet = quiet;
        self.signals = Signals::catch().context("cannot wait for signals")?;
        self.partials.stop = self.stop().clone();
        Ok(())
    }

    /// Starts, and returns the captures that are named, with those of named directories.
    /// Directories that are followed stay as they are.
    pub(crate) fn start_on(
        &mut self,
        input: &InputArgs,
        follow: bool,
        quiet: bool,
    ) -> Result<Vec<PathBuf>> {
        self.start(quiet)?;
        let streams = input.captures.iter().filter(|path| is_standard(path)).count();
        UsageError::check(&[(
            streams > 1,
            "standard input can be read only once; name - once, or files",
        )])?;
        if streams > 0 && is_typed() {
            self.remark("waiting for a capture on standard input; name a file, or pipe one in");
        }
        if follow {
            return Ok(input.captures.clone());
        }
        Ok(self.take(Inputs::find(&input.captures, input.read.format())))
    }

    /// Checks that at least one input can be read, before anything is written, and resolves times
    /// that are relative to the inputs.
    ///
    /// Streams cannot be opened twice, so they count as readable until [`Self::read`].
    pub(crate) fn open(&mut self, trace: &mut TracePlan) -> Result<()> {
        let mut problems = Vec::new();
        let is_readable = trace.inputs.iter().any(|input| {
            let path = input.path();
            let is_there = std::fs::metadata(path);
            if is_standard(path) || is_there.is_ok_and(|_| !input.is_readable_twice()) {
                return true;
            }
            match Capture::open_until(path, trace.input_format, self.stop()) {
                Err(problem) if !self.stop().is_set() => {
                    problems.push(problem);
                    false
                }
                _ => true,
            }
        });
        if !is_readable {
            self.say_remarks();
            self.report_all(&problems);
            return Err(NothingRead.into());
        }
        Ok(trace.resolve(self.stop()).map_err(UsageError::new)?)
    }

    /// Reads the inputs by `work`, while progress is shown.
    ///
    /// # Errors
    ///
    /// The run failed, so its results are kept as partial ones where something was written; or no
    /// input could be read, so nothing is kept.
    pub(crate) fn read<S: Reading>(
        &mut self,
        inputs: &[Source],
        work: impl FnOnce(&Progress) -> Result<S, RunError>,
    ) -> Result<S> {
        let mut summary = self.watch(inputs, work).map_err(|error| self.failed(error))?;
        self.check_read(&mut summary)?;
        Ok(summary)
    }

    /// Shows progress through these inputs while `work` runs.
    pub(crate) fn watch<T>(&mut self, inputs: &[Source], work: impl FnOnce(&Progress) -> T) -> T {
        self.say_remarks();
        self.started = Some(Instant::now());
        let bytes = total_bytes(inputs.iter().map(Source::path));
        let progress =
            Progress::start(!self.quiet && !self.hides_progress, bytes, self.stop().clone());
        let result = work(&progress);
        progress.finish();
        result
    }

    /// Explains why a run failed. A plan that contradicts itself is the user's mistake. If results
    /// can still be written, what was written so far is kept.
    pub(crate) fn failed(&self, error: RunError) -> anyhow::Error {
        match error {
            RunError::Plan(error) => UsageError::new(error).into(),
            RunError::Sink(error) => anyhow::Error::from(error).context(UNWRITTEN),
            error => {
                self.partials.keep_dropped();
                error.into()
            }
        }
    }

    /// Notes whether the results are complete. Adds directories with problems to the inputs. If no
    /// input could be read, reports why.
    pub(crate) fn check_read(&mut self, summary: &mut impl Reading) -> Result<()> {
        summary.lack(take(&mut self.directories));
        let (inputs, interrupted) = (summary.inputs(), summary.is_interrupted());
        let nothing = !inputs.is_empty()
            && inputs.iter().all(|input| input.container.is_none() && input.error.is_some());
        if nothing {
            self.problems(inputs);
            if interrupted {
                self.ending = Ending::Partial;
            }
            return Err(NothingRead.into());
        }
        let problems = inputs.iter().filter_map(|input| input.error.as_ref());
        self.unreported = problems.map(ToString::to_string).collect();
        self.set_interrupted(interrupted);
        // If one result cannot be written, the work for the others is not lost.
        self.partials.keep_dropped();
        Ok(())
    }

    /// Notes whether a signal ended the run, so that its results are partial.
    pub(crate) fn set_interrupted(&mut self, interrupted: bool) {
        if interrupted {
            self.ending = Ending::Partial;
            self.partials.keep_dropped();
        }
    }

    /// Opens a file for results, or standard output without a name.
    pub(crate) fn output(&self, path: Option<&Path>) -> Result<Output> {
        Output::open(&self.partials, path)
    }

    /// Puts results in place, under another name if the run was interrupted.
    pub(crate) fn commit(&self, output: Output) -> Result<()> {
        output.commit(self.ending)
    }

    /// Returns the files of these inputs; what else was found is reported at the end.
    pub(crate) fn take(&mut self, inputs: Inputs) -> Vec<PathBuf> {
        self.directories.extend(inputs.problems);
        self.others += inputs.others;
        self.remarks = twice(&inputs.files);
        if let [why, others @ ..] = &inputs.unreadable[..] {
            let more = same_goes(others.len(), "file", "files");
            self.remarks.push(format!("left out {why}{more}"));
        }
        let left_out = [
            (
                &inputs.unfinished,
                "file that is hidden or that an interrupted run left",
                "files that are hidden or that interrupted runs left",
            ),
            (&inputs.hidden, "hidden directory", "hidden directories"),
            (&inputs.special, "pipe, socket or device", "pipes, sockets or devices"),
        ];
        for (files, one, several) in left_out {
            self.remarks.extend(files.first().map(|first| {
                let count = counted(files.len() as u64, one, several);
                format!("left out {count}, such as {}; name what you want read", first.shown())
            }));
        }
        inputs.files
    }

    /// Reports everything about the inputs of a run on other machines. Returns whether all of them
    /// were read to their end, or `None` if none could be opened.
    pub(super) fn conclude(mut self, quiet: bool, summary: &mut CountSummary) -> Option<bool> {
        self.quiet = quiet;
        self.check_read(summary).ok()?;
        self.say_remarks();
        self.problems(&summary.inputs);
        Some(matches!(self.outcome, Outcome::Done))
    }

    /// Returns the flag that is set when a signal has come.
    pub(crate) fn stop(&self) -> &StopFlag {
        self.signals.stop()
    }

    /// Returns whether something was said, or will be, that makes results incomplete.
    pub(crate) fn has_problems(&self) -> bool {
        self.outcome == Outcome::Incomplete
            || !self.problems.is_empty()
            || !self.directories.is_empty()
    }

    /// Adds problems that are reported with those of directories.
    pub(crate) fn add_problems(&mut self, problems: Vec<String>) {
        self.problems.extend(problems);
    }

    /// Reports a problem, which makes the result incomplete.
    pub(crate) fn problem(&mut self, problem: impl Into<Problem>) {
        say_problem(&problem.into());
        self.outcome = Outcome::Incomplete;
    }

    /// Reports problems with directories, then those with these inputs.
    pub(crate) fn problems(&mut self, inputs: &[InputResult]) {
        self.unreported.clear();
        self.report_all(inputs.iter().filter_map(|input| input.error.as_ref()));
        report_remarks(inputs);
    }

    /// Reports problems with directories, then all of these.
    pub(crate) fn report_all(&mut self, problems: impl IntoIterator<Item = impl Into<Problem>>) {
        let (others, directories) = (take(&mut self.problems), take(&mut self.directories));
        let directories = directories.iter().filter_map(|input| input.error.as_ref());
        let all = others.into_iter().map(Problem::from).chain(directories.map(Problem::from));
        let all: Vec<Problem> = all.chain(problems.into_iter().map(Into::into)).collect();
        report(&all);
        if !all.is_empty() {
            self.outcome = Outcome::Incomplete;
        }
    }

    /// Reports the remarks on inputs, once.
    pub(crate) fn say_remarks(&mut self) {
        for remark in take(&mut self.remarks) {
            self.remark(remark);
        }
    }

    /// Returns problems with directories that were not reported, then these.
    pub(crate) fn take_problems(&mut self, problems: Vec<String>) -> Vec<String> {
        let directories = take(&mut self.directories);
        let directories = directories.into_iter().filter_map(|input| input.error);
        directories.map(|problem| problem.to_string()).chain(problems).collect()
    }

    /// Says something that makes no result incomplete, unless the user wants no remarks.
    pub(crate) fn remark(&self, remark: impl Display) {
        self.tell(format_args!("flowsieve: {remark}"));
    }

    /// Says what was done, unless the user wants no remarks.
    pub(crate) fn tell(&self, line: impl Display) {
        if !self.quiet {
            say(format_args!("{line}"));
        }
    }

    /// Notes what results lack, if their format cannot say it; it is said behind the problems.
    pub(crate) fn note(
        &mut self,
        format: ReportFormat,
        notes: impl IntoIterator<Item = impl Display>,
    ) {
        if !format.says_all() {
            self.notes.extend(notes.into_iter().map(|note| note.to_string()));
        }
    }

    /// Says how many files of the directories were left out.
    pub(crate) fn others(&self) {
        if self.others > 0 {
            let files = counted(self.others as u64, "file", "files");
            say(format_args!("skipped {files} in the directories: not captures"));
        }
    }

    /// Reports problems and speed. Returns the outcome of the run; if it was interrupted, says what
    /// that means for the results.
    pub(crate) fn end(
        &mut self,
        summary: &impl Reading,
        speech: SpeechArgs,
        what: &str,
    ) -> Outcome {
        self.problems(summary.inputs());
        for note in take(&mut self.notes) {
            self.tell(note);
        }
        self.speed(speech, summary.packets());
        self.finish(what)
    }

    /// Says how fast the run went, if the user asked for it or sees it on a terminal.
    pub(crate) fn speed(&self, speech: SpeechArgs, packets: u64) {
        // The reader of a pipe may write to the terminal at any time.
        if !speech.verbose && (!is_seen() || is_piped() || self.quiet) {
            return;
        }
        let seconds = self.started.map_or(0.0, |started| started.elapsed().as_secs_f64());
        let rate = packets as f64 / seconds;
        let rate = if rate < 1e6 {
            HumanCount(rate as u64).to_string()
        } else {
            format!("{:.2} million", rate / 1e6)
        };
        let packets = counted(packets, "packet", "packets");
        say(format_args!("{packets} in {seconds:.3} s: {rate} packets/s"));
        self.others();
    }

    /// Returns the outcome of the run; if it was interrupted, says what that means for the results.
    pub(crate) fn finish(&self, what: &str) -> Outcome {
        if refused_threads() > self.refused_threads {
            self.remark(
                "the system refused some threads, or memory for them, so fewer did the work; results do not depend on it",
            );
        }
        if self.ending == Ending::Complete {
            return self.outcome;
        }
        self.signals.outcome(&format!("{what}{}", self.partials.words()))
    }
}

/// Note shown when a run was interrupted.
pub(crate) const PARTIAL: &str = "the results hold what was read until then";

/// Context of an error while results are written.
pub(crate) const UNWRITTEN: &str = "cannot write the results";

/// Returns the first error of results that were all attempted, so that one failure does not lose the
/// others. Reports the further errors.
pub(super) fn all_written(results: impl IntoIterator<Item = Result<()>>) -> Result<()> {
    let is_closed = |error: &anyhow::Error| is_caused_by(error, io::ErrorKind::BrokenPipe);
    let mut errors: Vec<_> = results.into_iter().filter_map(Result::err).collect();
    errors.sort_by_key(is_closed);
    let mut errors = errors.into_iter();
    let first = errors.next().map_or(Ok(()), Err);
    for error in errors.filter(|error| !is_closed(error) && current().is_none()) {
        say(format_args!("flowsieve: {error:#}"));
    }
    first
}

/// Returns whether an error of this kind is the cause of another one.
fn is_caused_by(error: &anyhow::Error, kind: io::ErrorKind) -> bool {
    let mut causes = error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>());
    causes.any(|error| error.kind() == kind)
}

/// Reports packets with times that cannot be shown, and remarks on inputs. Packets may be
/// missing or have other times, so they are reported even if the user wants no remarks.
fn report_remarks(inputs: &[InputResult]) {
    let times = inputs.iter().map(|input| (input.path.as_path(), input.times_out_of_range));
    say_times_out_of_range(times);
    for remark in inputs.iter().flat_map(|input| &input.remarks) {
        say(format_args!("flowsieve: {}", remark.shown()));
    }
}

/// Returns how a sentence about one file ends if it also holds for `more` others.
fn same_goes(more: usize, one: &str, several: &str) -> String {
    match more {
        0 => String::new(),
        more => format!("; the same goes for {}", counted(more as u64, one, several)),
    }
}

impl OutputArgs {
    /// Opens the file for results, or standard output, and the file for the summary. A file that cannot be written is reported
    /// before the work begins.
    pub(super) fn open(&self, run: &mut Run) -> Result<Output> {
        self.open_summary(run)?;
        run.output(self.path())
    }

    /// Opens the same for rows that are printed as they come, if their format and the destination
    /// allow it. Returns the style of a table there. A terminal on which rows appear while the trace
    /// is read shows no progress, and all of them.
    pub(super) fn open_live(
        &self,
        run: &mut Run,
        trace: &mut TracePlan,
        (format, rows, live): (FormatArgs, RowsArgs, LiveArgs),
    ) -> Result<(Output, TerminalStyle)> {
        let output = self.open(run)?;
        let is_printed = format.of(self).is_line_by_line() && !output.is_file();
        trace.delay_ns = is_printed.then_some(live.delay);
        let is_live = is_printed && trace.is_stream() && output.is_terminal();
        run.hides_progress = is_live;
        let style = output.style(rows.shown().filter(|_| !is_live));
        Ok((output, style))
    }

    /// Opens the file for the summary, if one is named.
    pub(super) fn open_summary(&self, run: &mut Run) -> Result<()> {
        run.summary = Output::named(&run.partials, self.summary.as_deref())?;
        Ok(())
    }

    /// Puts results in place and writes the summary, if a file is open for it.
    pub(super) fn finish(
        &self,
        run: &mut Run,
        results: Result<Output>,
        summary: impl FnOnce() -> Summary,
    ) -> Result<()> {
        let written = results.and_then(|output| run.commit(output));
        all_written([written, self.write_summary(run, summary)])
    }

    /// Writes the summary, if a file is open for it.
    fn write_summary(&self, run: &mut Run, summary: impl FnOnce() -> Summary) -> Result<()> {
        let Some((mut output, path)) = run.summary.take().zip(self.summary.as_deref()) else {
            return Ok(());
        };
        summary().write(&mut output).with_context(|| unwritten(path))?;
        run.commit(output)
    }
}
