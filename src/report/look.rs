//! How results look to people: what the place that they go to has room for.

use super::table::wrapped;
use std::io::{self, Write};

/// How a table looks. By default as in a file: whole, and plain.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Look {
    /// Bold face may be used.
    pub bold: bool,
    /// Columns of the terminal; without one, tables have all their columns at their full width.
    pub width: Option<usize>,
    /// Rows that are shown, half of them the first and half the last; without it all are.
    pub rows: Option<usize>,
}

impl Look {
    /// Columns of a line that is at most so long.
    pub(super) fn width_within(self, most: usize) -> usize {
        self.width.map_or(most, |width| width.min(most))
    }

    /// Writes a sentence, in lines where there is little room.
    pub(super) fn sentence(self, out: &mut dyn Write, text: &str) -> io::Result<()> {
        match self.width {
            None => writeln!(out, "{text}"),
            Some(width) => {
                wrapped(text, width).into_iter().try_for_each(|line| writeln!(out, "{line}"))
            }
        }
    }
}
