//! Tables and sentences in a terminal.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write};

/// What stands above a column.
#[derive(Clone, Debug)]
pub(super) struct Heading {
    pub(super) text: Cow<'static, str>,
    /// Its place among the columns that are shown.
    pub(super) place: u8,
    pub(super) width: usize,
    left: bool,
    /// Spaces before it, unless it is the first.
    gap: usize,
}

impl Heading {
    /// Of a column of numbers, which stand to the right.
    pub(super) fn right(place: u8, width: usize, text: impl Into<Cow<'static, str>>) -> Self {
        Self {
            text: text.into(),
            place,
            width,
            left: false,
            gap: 1,
        }
    }

    /// Of a column of texts, which stand to the left.
    pub(super) fn left(place: u8, width: usize, text: impl Into<Cow<'static, str>>) -> Self {
        Self {
            left: true,
            ..Self::right(place, width, text)
        }
    }

    /// With this many spaces before it instead of one.
    pub(super) fn gap(self, gap: usize) -> Self {
        Self { gap, ..self }
    }
}

/// A line of cells below their headings.
pub(super) fn line<'a>(cells: impl Iterator<Item = (&'a Heading, String)>) -> String {
    let mut line = String::new();
    for (number, (heading, cell)) in cells.enumerate() {
        let (gap, width) = (if number == 0 { 0 } else { heading.gap }, heading.width);
        // Writing to a String cannot fail.
        let _ = if heading.left {
            write!(line, "{:gap$}{cell:<width$}", "")
        } else {
            write!(line, "{:gap$}{cell:>width$}", "")
        };
    }
    line.truncate(line.trim_end().len());
    line
}

/// Writes a line, in bold face if that is allowed.
pub(super) fn bold(out: &mut dyn Write, styled: bool, line: &str) -> io::Result<()> {
    if styled {
        writeln!(out, "\x1b[1m{line}\x1b[0m")
    } else {
        writeln!(out, "{line}")
    }
}

/// Headings of columns that are as wide as the widest of their cells, each with whether it stands to the left.
pub(super) fn fitted(heads: &[(String, bool)], rows: &[Vec<String>]) -> Vec<Heading> {
    let columns = heads.iter().enumerate();
    let fitted = columns.map(|(column, (text, left))| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        let width = cells.fold(text.chars().count(), usize::max);
        if *left {
            Heading::left(0, width, text.clone())
        } else {
            Heading::right(0, width, text.clone())
        }
    });
    fitted.collect()
}

/// The line of headings that stand for themselves.
pub(super) fn head(headings: &[Heading]) -> String {
    line(
        headings
            .iter()
            .map(|heading| (heading, heading.text.clone().into_owned())),
    )
}

/// Lines of at most `width` characters, broken at spaces.
pub(super) fn wrapped(text: &str, width: usize) -> Vec<String> {
    hanging(text, width, width)
}

/// The same, with another width of the first line.
pub(super) fn hanging(text: &str, first: usize, others: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut words = text.split(' ').filter(|word| !word.is_empty()).peekable();
    while let Some(word) = words.next() {
        // A number stays beside its unit.
        let unit = words.next_if(|next| is_unit(next));
        let word = unit.map_or(Cow::Borrowed(word), |unit| format!("{word} {unit}").into());
        let width = if lines.len() > 1 { others } else { first };
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(&word);
            }
            _ => lines.push(word.into_owned()),
        }
    }
    lines
}

/// Whether a word is a unit, with what punctuation follows it.
fn is_unit(word: &str) -> bool {
    let unit = word.trim_end_matches(|c: char| c.is_ascii_punctuation() && c != '%');
    matches!(unit, "%" | "B" | "KiB" | "MiB" | "GiB")
}

#[cfg(test)]
mod tests {
    use super::wrapped;

    #[test]
    fn numbers_stay_beside_their_units() {
        let text = "a mean error of 15 %), at 512 B each (504 B).";
        assert_eq!(
            wrapped(text, 18),
            ["a mean error of", "15 %), at 512 B", "each (504 B)."]
        );
        assert_eq!(wrapped("% 1", 1), ["%", "1"]);
    }
}
