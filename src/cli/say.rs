//! Messages on standard error.

use super::host::{self, Place};
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
            let _ = writeln!(io::stderr().lock(), "{line}");
        }
    }
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
    fn terminals_obey_no_name() {
        assert_eq!(shown("a\u{1b}[2Jb\r\nc"), "a\\u{1b}[2Jb\\r\nc");
    }
}
