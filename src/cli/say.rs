//! Words on standard error.

use std::fmt::Arguments;
use std::io::{self, Write};

/// Writes a line to standard error. If that fails there is nobody to tell, and the run goes on. Control characters, which
/// file names may contain, are escaped.
pub(crate) fn say(line: Arguments<'_>) {
    let _ = writeln!(io::stderr().lock(), "{}", shown(&line.to_string()));
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
