//! Text from outside: paths, names in captures, what a file says of itself.
//!
//! A terminal obeys some characters, and a line feed ends a line, so nothing of that reaches a
//! message, a table or a list as it is. Everything that shows a path takes it from here: clippy
//! refuses `Path::display`.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::fmt::{self, Display, Write as _};
use std::path::Path;

/// Text from outside. It is displayed in one line, with other characters in the place of those that
/// a terminal obeys.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Untrusted<'a>(Cow<'a, str>);

impl<'a> Untrusted<'a> {
    /// The text as it is, for formats that hold any text.
    pub fn into_raw(self) -> Cow<'a, str> {
        self.0
    }
}

impl Display for Untrusted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.0.contains(is_obeyed) {
            return f.pad(&self.0);
        }
        let mut shown = String::with_capacity(self.0.len());
        for c in self.0.chars() {
            if is_obeyed(c) {
                write!(shown, "{}", c.escape_default())?;
            } else {
                shown.push(c);
            }
        }
        f.pad(&shown)
    }
}

/// Returns whether a terminal does something else than showing it: control characters, ends of
/// lines and changes of the direction.
fn is_obeyed(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        )
}

/// Gives text from outside, to be shown.
pub trait Shown {
    /// The text; what is not UTF-8 is U+FFFD.
    fn shown(&self) -> Untrusted<'_>;
}

impl Shown for str {
    fn shown(&self) -> Untrusted<'_> {
        Untrusted(self.into())
    }
}

impl Shown for OsStr {
    fn shown(&self) -> Untrusted<'_> {
        Untrusted(self.to_string_lossy())
    }
}

impl Shown for Path {
    fn shown(&self) -> Untrusted<'_> {
        self.as_os_str().shown()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminals_obey_no_text() {
        let shown = |text: &str| text.shown().to_string();
        assert_eq!(shown("a\u{1b}[2Jb\r\u{9b}é"), "a\\u{1b}[2Jb\\r\\u{9b}é");
        assert_eq!(shown("\u{1b}]0;title\u{7}"), "\\u{1b}]0;title\\u{7}");
        assert_eq!(shown("a\nb\u{2028}c\u{202e}d\t"), "a\\nb\\u{2028}c\\u{202e}d\\t");
        // Nothing is escaped twice, and other texts stay as they are.
        assert_eq!(shown(&shown("a\nb")), "a\\nb");
        assert_eq!(shown("C:\\x é 名 👍🏽"), "C:\\x é 名 👍🏽");
        assert_eq!(format!("[{:>4}]", "a".shown()), "[   a]");
        assert_eq!("a\nb".shown().into_raw(), "a\nb");
    }
}
