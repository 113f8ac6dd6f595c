//! Words on standard error.

use super::host::{self, Place};
use std::fmt::Arguments;
use std::io::{self, IsTerminal, Write};

/// Writes a line to standard error. If that fails there is nobody to tell, and the run goes on.
/// Control characters, which file names may contain, are escaped.
pub(crate) fn say(line: Arguments<'_>) {
    say_of(None, line);
}

/// The same about something at a place.
pub(crate) fn say_of(place: Option<&Place>, line: Arguments<'_>) {
    let line = shown(&line.to_string());
    match host::current() {
        Some(host) => host.said(&line, place),
        None => {
            let _ = writeln!(io::stderr().lock(), "{line}");
        }
    }
}

/// Whether a person sees standard error as it is written.
pub(crate) fn is_seen() -> bool {
    host::current().is_none() && io::stderr().is_terminal()
}

/// The text with all control characters but line feeds escaped.
fn shown(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() && c != '\n' {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    shown
}

/// The text with line feeds escaped, for messages of one line.
pub(crate) fn in_one_line(text: &str) -> String {
    text.replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminals_obey_no_name() {
        assert_eq!(shown("a\u{1b}[2Jb\r\u{9b}é"), "a\\u{1b}[2Jb\\r\\u{9b}é");
        assert_eq!(in_one_line("a\nb"), "a\\nb");
    }
}
