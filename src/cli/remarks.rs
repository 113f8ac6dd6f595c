//! What goes to standard error after a run, since it does not belong into the results.

use super::Outcome;
use super::inputs::Inputs;
use super::progress::Progress;
use super::say::say;
use flowsieve::pipeline::InputResult;

/// Says what could not be read.
pub(crate) fn problems(inputs: &Inputs, results: &[InputResult]) -> Outcome {
    let errors = results.iter().filter_map(|input| input.error.as_ref());
    let found = inputs.problems.iter().cloned();
    let mut outcome = Outcome::Done;
    for problem in found.chain(errors.map(ToString::to_string)) {
        say(format_args!("flowsieve: {problem}"));
        outcome = Outcome::Incomplete;
    }
    outcome
}

/// Says how fast the run went, and how many files of the directories were left out.
pub(crate) fn speed(packets: u64, inputs: &Inputs, progress: &Progress) {
    let seconds = progress.elapsed().as_secs_f64();
    say(format_args!(
        "{packets} packets in {seconds:.3} s: {:.2} million packets/s",
        packets as f64 / seconds / 1e6
    ));
    if inputs.others > 0 {
        say(format_args!(
            "{} files in the directories are no captures and were left out",
            inputs.others
        ));
    }
}
