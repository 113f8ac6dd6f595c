//! Words on standard error.

use std::fmt::Arguments;
use std::io::{self, Write};

/// Says something on standard error, and a line ends it. Where that cannot be written there is nobody to tell, and what
/// was asked for is done all the same. Control characters, which names of files may have, are shown and not
/// obeyed.
pub(crate) fn say(line: Arguments<'_>) {
    let _ = writeln!(io::stderr().lock(), "{}", shown(&line.to_string()));
}

/// The text with control characters but the ends of lines escaped.
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

/// The same for what stands in one line.
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
