//! The heading of a column that people read, and how the column gives way on narrow terminals.

use std::borrow::Cow;

/// A heading with the layout of its column.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Heading {
    pub(super) text: Cow<'static, str>,
    /// Position among the columns that are shown.
    pub(super) place: u8,
    /// Width in characters; 0 for the width of the widest cell.
    pub(super) width: usize,
    /// Cells are texts, aligned to the left.
    pub(super) is_left: bool,
    /// Spaces before the column, unless it is the first.
    pub(super) gap: usize,
    /// Columns with a lower number are dropped first; 0 is never dropped.
    pub(super) drop_priority: u8,
    /// Text and width on a narrow terminal.
    pub(super) narrow: Option<(&'static str, usize)>,
    /// Minimum width of a last column with cells of any length. With less room, its cells are
    /// printed below the row.
    pub(super) min_width: usize,
    /// Long cells of the last column are wrapped within it.
    pub(super) is_wrapped: bool,
}

impl Heading {
    /// A column of numbers, aligned to the right.
    pub(super) fn right(place: u8, width: usize, text: impl Into<Cow<'static, str>>) -> Self {
        Self { text: text.into(), place, width, gap: 1, ..Self::default() }
    }

    /// A column of texts, aligned to the left.
    pub(super) fn left(place: u8, width: usize, text: impl Into<Cow<'static, str>>) -> Self {
        Self { is_left: true, ..Self::right(place, width, text) }
    }

    /// A column of numbers as wide as its widest cell.
    pub(super) fn number(text: impl Into<Cow<'static, str>>) -> Self {
        Self::right(0, 0, text)
    }

    /// A column of texts as wide as its widest cell.
    pub(super) fn text(text: impl Into<Cow<'static, str>>) -> Self {
        Self::left(0, 0, text)
    }

    /// Puts this many spaces before the column instead of one.
    pub(super) fn gap(self, gap: usize) -> Self {
        Self { gap, ..self }
    }

    /// Sets the order in which columns are dropped: lowest first.
    pub(super) fn drop_priority(self, drop_priority: u8) -> Self {
        Self { drop_priority, ..self }
    }

    /// Sets the text, and the width or [`min_width`](Self::min_width), on a narrow terminal.
    pub(super) fn narrow(self, width: usize, text: &'static str) -> Self {
        Self { narrow: Some((text, width)), ..self }
    }

    /// Widens the column by this many characters.
    pub(super) fn wider(self, by: usize) -> Self {
        let narrow = self.narrow.map(|(text, width)| (text, width + by));
        Self { width: self.width + by, narrow, ..self }
    }

    /// Marks a last column with cells of any length, which has at least this width.
    pub(super) fn min_width(self, min_width: usize) -> Self {
        Self { min_width, ..self }
    }

    /// As [`min_width`](Self::min_width), with long cells wrapped within the column.
    pub(super) fn wrapped(self, min_width: usize) -> Self {
        Self { min_width, is_wrapped: true, ..self }
    }

    /// The heading on a narrow terminal.
    pub(super) fn narrowed(self) -> Self {
        let gap = self.gap.min(1);
        let Some((text, width)) = self.narrow else { return self.gap(gap) };
        let (width, min_width) = if self.min_width == 0 { (width, 0) } else { (self.width, width) };
        Self { text: text.into(), width, min_width, gap, ..self }
    }

    /// Gives the column the width of its widest cell, if it has no width.
    pub(super) fn fitted<'a>(self, cells: impl Iterator<Item = &'a str>) -> Self {
        if self.width > 0 || self.min_width > 0 {
            return self;
        }
        let widths = cells.map(|cell| cell.chars().count());
        let width = widths.fold(self.text.chars().count(), usize::max);
        Self { width, ..self }
    }

    /// Characters that the column takes in a line.
    pub(super) fn room(&self) -> usize {
        self.gap + self.width.max(self.min_width)
    }
}
