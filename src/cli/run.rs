//! What commands do before and after their own work: signals, inputs, progress, problems, outcome.

use super::host::Problem;
use super::inputs::{Inputs, total_bytes, twice};
use super::options::{InputArgs, SpeechArgs};
use super::output::{is_piped, is_standard, kept, set_partial};
use super::progress::Progress;
use super::say::{is_seen, say, say_of};
use super::signals::Signals;
use super::{Outcome, UsageError};
use anyhow::{Context, Result};
use flowsieve::pipeline::{InputResult, RunError};
use flowsieve::selection::Selection;
use flowsieve::trace::{Capture, InputFormat, Source, StopFlag};
use flowsieve_engine::internal::{Shown, refused_threads};
use indicatif::HumanCount;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// A run of a command: what may end it, and whether something was wrong on the way.
#[derive(Debug)]
pub(crate) struct Run {
    signals: Signals,
    outcome: Outcome,
    /// What is wrong with directories among the inputs.
    problems: Vec<String>,
    /// Files in directories that are no captures.
    others: usize,
    /// Remarks on inputs that may have been named by mistake.
    remarks: Vec<String>,
    /// Remarks are not wanted.
    quiet: bool,
    /// Threads that had been refused before.
    refused_threads: u64,
    started: Instant,
}

/// Problems that are reported one by one.
const MOST_SAID: usize = 10;

impl Run {
    /// Begins a run; from now on a signal sets a flag.
    pub(crate) fn begin() -> Result<Self> {
        set_partial(false);
        Ok(Self::new(Signals::catch().context("cannot wait for signals")?))
    }

    /// The run of these inputs on other machines.
    pub(super) fn of_inputs(inputs: Inputs) -> Self {
        let mut run = Self::new(Signals::default());
        run.take(inputs);
        run
    }

    fn new(signals: Signals) -> Self {
        Self {
            signals,
            outcome: Outcome::Done,
            problems: Vec::new(),
            others: 0,
            remarks: Vec::new(),
            quiet: false,
            refused_threads: refused_threads(),
            started: Instant::now(),
        }
    }

    /// The files that are named, with the captures of named directories.
    /// Directories that are followed stay as they are.
    pub(crate) fn find(
        &mut self,
        input: &InputArgs,
        follow: bool,
    ) -> Result<Vec<PathBuf>, UsageError> {
        let streams = input.captures.iter().filter(|path| is_standard(path));
        if streams.count() > 1 {
            return Err(UsageError::of(
                "standard input can be read only once; name - once, or files",
            ));
        }
        if follow {
            return Ok(input.captures.clone());
        }
        Ok(self.take(Inputs::find(&input.captures, input.format.format())))
    }

    /// Whether at least one of these files can be opened. If not, reports why, and the command must
    /// not write anything. Streams cannot be opened twice, so they count as readable here; see
    /// [`Self::read_nothing`].
    pub(crate) fn can_read<S: Clone + Into<Source>>(
        &mut self,
        inputs: &[S],
        format: InputFormat,
    ) -> bool {
        let mut problems = Vec::new();
        for input in inputs.iter().cloned().map(Into::into) {
            let path = input.path();
            let is_there = std::fs::metadata(path);
            if is_standard(path) || is_there.is_ok_and(|_| !input.is_readable_twice()) {
                return true;
            }
            match Capture::open_until(path, format, self.stop()) {
                Err(_) if self.stop().is_set() => return true,
                Err(problem) => problems.push(problem),
                Ok(_) => return true,
            }
        }
        self.all_problems(problems);
        false
    }

    /// Puts times in the place of those that are relative to these inputs.
    pub(crate) fn resolve(
        &self,
        selection: &Selection,
        inputs: &[impl Clone + Into<Source>],
        format: InputFormat,
    ) -> Result<Selection, UsageError> {
        let inputs: Vec<Source> = inputs.iter().cloned().map(Into::into).collect();
        let resolved = selection.resolved(&inputs, format, self.stop());
        resolved.map_err(UsageError::of)
    }

    /// Whether no input could be opened. If so, reports why, and the command must drop its results.
    /// If not, they are complete, or partial if the run was interrupted.
    pub(crate) fn read_nothing(&mut self, inputs: &[InputResult], interrupted: bool) -> bool {
        let nothing = !inputs.is_empty()
            && inputs.iter().all(|input| input.container.is_none() && input.error.is_some());
        set_partial(interrupted && !nothing);
        if nothing {
            self.problems(inputs);
        }
        nothing
    }

    /// The files of these inputs; what else was found is said at the end.
    pub(crate) fn take(&mut self, inputs: Inputs) -> Vec<PathBuf> {
        self.problems.extend(inputs.problems);
        self.others += inputs.others;
        self.remarks = twice(&inputs.files);
        inputs.files
    }

    /// Progress through these files, as long as `work` takes.
    pub(crate) fn watch<T>(
        &mut self,
        quiet: bool,
        files: &[PathBuf],
        work: impl FnOnce(&Progress) -> T,
    ) -> T {
        self.say_remarks(quiet);
        self.started = Instant::now();
        let progress = Progress::start(!quiet, total_bytes(files), self.stop().clone());
        let result = work(&progress);
        progress.finish();
        result
    }

    /// Says what is remarkable about the inputs.
    fn say_remarks(&mut self, quiet: bool) {
        self.quiet = quiet;
        for remark in std::mem::take(&mut self.remarks) {
            self.remark(remark);
        }
    }

    /// Says all about the inputs of a run on other machines. Returns whether all of them were read
    /// to their end; `None` if none could be opened.
    pub(super) fn conclude(mut self, quiet: bool, inputs: &[InputResult]) -> Option<bool> {
        if self.read_nothing(inputs, false) {
            return None;
        }
        self.say_remarks(quiet);
        self.problems(inputs);
        Some(matches!(self.outcome, Outcome::Done))
    }

    /// The flag that is set when a signal has come.
    pub(crate) fn stop(&self) -> &StopFlag {
        self.signals.stop()
    }

    /// Says what is wrong, which makes the result incomplete.
    pub(crate) fn problem(&mut self, problem: impl Problem) {
        self.outcome = outcome([problem]);
    }

    /// Says what is wrong with directories, then what is wrong with these inputs.
    pub(crate) fn problems(&mut self, inputs: &[InputResult]) {
        self.all_problems(inputs.iter().filter_map(|input| input.error.as_ref()));
        times(inputs);
        for remark in inputs.iter().flat_map(|input| &input.remarks) {
            // Packets may be missing, so it is said in any case.
            say(format_args!("flowsieve: {}", remark.shown()));
        }
    }

    /// Says something that makes no result incomplete, unless nobody wants to know.
    fn remark(&self, remark: impl Display) {
        if !self.quiet {
            say(format_args!("flowsieve: {remark}"));
        }
    }

    /// Says what is wrong with directories, then all of this.
    pub(crate) fn all_problems<P: Problem>(&mut self, problems: impl IntoIterator<Item = P>) {
        let of_directories = std::mem::take(&mut self.problems);
        let mut room = MOST_SAID;
        let mut others = 0_usize;
        let mut is_room = || {
            others += usize::from(room == 0);
            let is_room = room > 0;
            room = room.saturating_sub(1);
            is_room
        };
        let shown = of_directories.into_iter().filter(|_| is_room());
        shown.for_each(|problem| self.problem(problem));
        let shown = problems.into_iter().filter(|_| is_room());
        shown.for_each(|problem| self.problem(problem));
        if others > 0 {
            say(format_args!("flowsieve: {others} more inputs had problems"));
        }
    }

    /// Says how fast the run went, if somebody wants to know.
    pub(crate) fn speed(&self, speech: SpeechArgs, packets: u64) {
        // Rows that another program writes to the terminal come at any time.
        if speech.verbose || (is_seen() && !is_piped() && !speech.quiet.quiet) {
            let seconds = self.started.elapsed().as_secs_f64();
            let rate = packets as f64 / seconds;
            let rate = if rate < 1e6 {
                HumanCount(rate as u64).to_string()
            } else {
                format!("{:.2} million", rate / 1e6)
            };
            let packets = HumanCount(packets);
            say(format_args!("{packets} packets in {seconds:.3} s: {rate} packets/s"));
            self.others();
        }
    }

    /// Says how many files of the directories were left out.
    pub(crate) fn others(&self) {
        if self.others > 0 {
            say(format_args!(
                "{} files in the directories are not captures and were skipped",
                self.others
            ));
        }
    }

    /// How the run ended; if it was interrupted, says `what` that means for the results.
    pub(crate) fn end(&self, interrupted: bool, what: &str) -> Outcome {
        if refused_threads() > self.refused_threads {
            self.remark(
                "the system refused some threads, or memory for them, so fewer did the work; results do not depend on it",
            );
        }
        self.signals.outcome(interrupted, &format!("{what}{}", kept()), self.outcome)
    }
}

/// Says how many packets of these inputs have times that cannot be shown.
pub(crate) fn times(inputs: &[InputResult]) {
    times_out_of_range(inputs.iter().map(|input| (input.path.as_path(), input.times_out_of_range)));
}

/// Says the same of other inputs, given how many packets each has.
pub(crate) fn times_out_of_range<'a>(inputs: impl Iterator<Item = (&'a Path, u64)>) {
    const BOUNDS: &str = "outside 1677 to 2262";
    let inputs: Vec<_> = inputs.filter(|&(_, count)| count > 0).collect();
    let packets: u64 = inputs.iter().map(|&(_, count)| count).sum();
    let place = match inputs[..] {
        [] => return,
        [(path, _)] => path.shown().to_string(),
        _ => format!("{} inputs", inputs.len()),
    };
    // The result is another one than that of the packets, so it is said in any case.
    let sentence = match packets {
        1 => {
            format!("1 packet has a time {BOUNDS}; it counts at the nearest time in that range")
        }
        _ => format!(
            "{packets} packets have times {BOUNDS}; they count at the nearest time in that range"
        ),
    };
    say(format_args!("flowsieve: {place}: {sentence}"));
}

/// Says each problem on standard error.
pub(crate) fn outcome<P: Problem>(problems: impl IntoIterator<Item = P>) -> Outcome {
    let mut outcome = Outcome::Done;
    for problem in problems {
        let (text, place) = (problem.to_string(), problem.place());
        say_of(place.as_ref(), format_args!("flowsieve: {}", text.shown()));
        outcome = Outcome::Incomplete;
    }
    outcome
}

/// What an interrupted run of most commands leaves.
pub(crate) const PARTIAL: &str = "the results hold what was read until then";

/// What could not be done with results.
pub(crate) const UNWRITTEN: &str = "cannot write the results";

/// The user's mistakes are distinguished from what else may end a run without results. Where
/// writing is possible, what was written so far is kept.
pub(crate) fn explained(error: RunError) -> anyhow::Error {
    match error {
        RunError::Plan(error) => UsageError::of(error).into(),
        RunError::Sink(error) => anyhow::Error::from(error).context(UNWRITTEN),
        error => {
            set_partial(true);
            error.into()
        }
    }
}
