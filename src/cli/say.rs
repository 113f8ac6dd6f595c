//! Words on standard error.

use super::host::{self, Place};
use flowsieve_engine::internal::Shown;
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

/// The text with everything escaped that a terminal obeys, but line feeds.
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
