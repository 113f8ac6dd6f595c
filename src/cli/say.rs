//! Messages on standard error.

use super::host::{self, Place};
use anstream::adapter::strip_str;
use flowsieve_engine::internal::Shown;
use std::fmt::Arguments;
use std::io::{self, IsTerminal, Write};

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
            let _ = writeln!(io::stderr().lock(), "{}", folded(&line));
        }
    }
}

/// Prints what clap answers to the command line.
pub(super) fn answer(answer: &clap::Error) -> io::Result<()> {
    if answer.use_stderr() && is_seen() {
        return write!(anstream::stderr(), "{}", folded(&answer.render().ansi().to_string()));
    }
    answer.print()
}

/// Returns the text with lines as wide as the terminal at standard error, broken at spaces, if it is one.
fn folded(text: &str) -> String {
    let Some((width, _)) = terminal_size::terminal_size_of(io::stderr()) else {
        return text.to_owned();
    };
    // Marks stay below what they are about.
    let is_marked = |line: &str| line.starts_with("  ") && text.contains("^\n");
    let lines = text.split('\n').map(|line| match is_marked(line) {
        true => line.to_owned(),
        false => folded_to(usize::from(width.0), line),
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn folded_to(most: usize, line: &str) -> String {
    let (mut folded, mut filled) = (String::new(), 0);
    for (number, word) in line.split(' ').enumerate() {
        let width = strip_str(word).to_string().chars().count();
        if filled > 0 && filled + 1 + width > most {
            folded.push('\n');
            filled = 0;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_at_spaces() {
        let line = "  tip: \u{1b}[1mbold\u{1b}[0m and a-word-that-is-longer b c";
        let folded = "  tip: \u{1b}[1mbold\u{1b}[0m\nand\na-word-that-is-longer\nb c";
        assert_eq!(folded_to(12, line), folded);
        assert_eq!(folded_to(11, line), folded);
        assert_eq!(folded_to(10, "  tip: bold"), "  tip:\nbold");
        assert_eq!(folded_to(80, line), line);
    }

    #[test]
    fn terminals_obey_no_name() {
        assert_eq!(shown("a\u{1b}[2Jb\r\nc"), "a\\u{1b}[2Jb\\r\nc");
    }
}
