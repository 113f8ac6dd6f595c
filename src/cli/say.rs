//! Messages on standard error, and problems with inputs there.

use super::host::{self, Place, Problem};
use crate::report::counted;
use anstream::adapter::strip_str;
use flowsieve_engine::internal::Shown;
use std::fmt::Arguments;
use std::io::{self, IsTerminal, Write};
use std::iter::repeat_n;
use std::path::Path;
use terminal_size::{Height, Width, terminal_size_of};

/// Writes a line to standard error, with control characters escaped, which file names may contain. If
/// that fails, the run goes on.
pub(crate) fn say(line: Arguments<'_>) {
    say_of(None, line);
}

/// Writes a line about a place in a file.
pub(crate) fn say_of(place: Option<&Place>, line: Arguments<'_>) {
    let line = shown(&line.to_string());
    match host::current() {
        Some(host) => host.said(&line, place),
        None => {
            let _ =
                writeln!(io::stderr().lock(), "{}", folded(&line, terminal_size_of(io::stderr())));
        }
    }
}

/// Prints what clap answers to the command line.
pub(super) fn answer(answer: &clap::Error) -> io::Result<()> {
    if answer.use_stderr() && is_seen() {
        let text = answer.render().ansi().to_string();
        return write!(anstream::stderr(), "{}", folded(&text, terminal_size_of(io::stderr())));
    }
    answer.print()
}

/// Prints a text that was asked for.
pub(super) fn show(text: &str) -> io::Result<()> {
    writeln!(io::stdout(), "{}", folded(text, terminal_size_of(io::stdout())))
}

/// Returns the text with lines of the width of this terminal, if it is one, broken at spaces.
fn folded(text: &str, terminal: Option<(Width, Height)>) -> String {
    let Some((Width(most), _)) = terminal else { return text.to_owned() };
    // Breaking lines would move the `^^^^` away from the words above them.
    let is_marked = |line: &str| line.starts_with("  ") && text.contains("^\n");
    let lines = text
        .split('\n')
        .map(|line| if is_marked(line) { line.to_owned() } else { folded_to(most.into(), line) });
    lines.collect::<Vec<_>>().join("\n")
}

/// Breaks a line. A line with spaces before it goes on below its second column, if it has one.
fn folded_to(most: usize, line: &str) -> String {
    let text = line.trim_start_matches(' ');
    let lead = line.len() - text.len();
    let second = text.split_once("  ").map_or(text, |(_, rest)| rest.trim_start());
    let column = line.len() - second.len();
    let indent = if lead > 0 && column <= most / 2 { column } else { lead };
    let (mut folded, mut filled) = (String::new(), 0);
    for (number, word) in line.split(' ').enumerate() {
        let width = strip_str(word).to_string().chars().count();
        if filled > indent && filled + 1 + width > most {
            folded.push('\n');
            folded.extend(repeat_n(' ', indent));
            filled = indent;
        } else if number > 0 {
            folded.push(' ');
            filled += 1;
        }
        folded.push_str(word);
        filled += width;
    }
    folded
}

/// Returns whether standard error is a terminal.
pub(crate) fn is_seen() -> bool {
    host::current().is_none() && io::stderr().is_terminal()
}

/// Quotes a word for a shell, if that is needed.
pub(crate) fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./,:=+@%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Returns the text with all control characters escaped except line feeds.
fn shown(text: &str) -> String {
    let lines = text.split('\n').map(|line| line.shown().to_string());
    lines.collect::<Vec<_>>().join("\n")
}

/// Problems that are reported one by one; the rest is counted.
const MOST_SAID: usize = 10;

/// Reports the first of these problems, and how many more there are.
pub(crate) fn report(problems: &[Problem]) {
    let (shown, others) = problems.split_at(problems.len().min(MOST_SAID));
    shown.iter().for_each(say_problem);
    if !others.is_empty() {
        let more = counted(others.len() as u64, "more input", "more inputs");
        say(format_args!("flowsieve: {more} had problems"));
    }
}

/// Reports a problem.
pub(crate) fn say_problem(problem: &Problem) {
    say_of(problem.place.as_ref(), format_args!("flowsieve: {}", problem.sentence.shown()));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_at_spaces() {
        let line = "tip: \u{1b}[1mbold\u{1b}[0m and a-word-that-is-longer b c";
        let folded = "tip: \u{1b}[1mbold\u{1b}[0m\nand\na-word-that-is-longer\nb c";
        assert_eq!([9, 12].map(|most| folded_to(most, line)), [folded; 2]);
        assert_eq!(folded_to(80, line), line);
        assert_eq!(folded_to(10, "  tip: bold one"), "  tip:\n  bold one");
        assert_eq!(folded_to(14, "  one   bold, of two"), "  one   bold,\n  of two");
        assert_eq!(folded_to(16, "  one   bold, of two"), "  one   bold, of\n        two");
    }

    #[test]
    fn terminals_obey_no_name() {
        assert_eq!(shown("a\u{1b}[2Jb\r\nc"), "a\\u{1b}[2Jb\\r\nc");
    }
}
