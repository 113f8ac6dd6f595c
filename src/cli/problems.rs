//! Problems with inputs, on standard error.

use super::Outcome;
use super::host::Problem;
use super::say::{say, say_of};
use crate::report::counted;
use flowsieve_engine::internal::Shown;
use std::path::Path;

/// Problems that are reported one by one; the rest is counted.
const MOST_SAID: usize = 10;

/// Reports the first of these problems, and how many more there are. Returns whether there was one.
pub(crate) fn report(problems: &[&dyn Problem]) -> Outcome {
    let (shown, others) = problems.split_at(problems.len().min(MOST_SAID));
    let outcome = outcome(shown.iter().copied());
    if !others.is_empty() {
        let more = counted(others.len() as u64, "more input", "more inputs");
        say(format_args!("flowsieve: {more} had problems"));
    }
    outcome
}

/// Reports each problem. Returns whether there was one.
pub(crate) fn outcome<P: Problem>(problems: impl IntoIterator<Item = P>) -> Outcome {
    let mut outcome = Outcome::Done;
    for problem in problems {
        let (text, place) = (problem.to_string(), problem.place());
        say_of(place.as_ref(), format_args!("flowsieve: {}", text.shown()));
        outcome = Outcome::Incomplete;
    }
    outcome
}

/// Reports packets with times that cannot be shown; `inputs` are paths with their numbers of such
/// packets.
pub(crate) fn say_times_out_of_range<'a>(inputs: impl Iterator<Item = (&'a Path, u64)>) {
    const BOUNDS: &str = "outside 1677 to 2262";
    let inputs: Vec<_> = inputs.filter(|&(_, count)| count > 0).collect();
    let packets: u64 = inputs.iter().map(|&(_, count)| count).sum();
    let place = match inputs[..] {
        [] => return,
        [(path, _)] => path.shown().to_string(),
        _ => format!("{} inputs", inputs.len()),
    };
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
