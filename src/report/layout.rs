//! Columns of text: which of them have room in a line, and the lines of their cells.

use super::heading::Heading;
use flowsieve_engine::internal::Shown;
use std::borrow::Cow;
use std::fmt::Write as _;

/// The columns that have room.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    /// The headings of those that stay.
    pub(super) headings: Vec<Heading>,
    /// Whether each column stays.
    stays: Vec<bool>,
    /// Columns have their narrow width.
    pub(super) is_narrow: bool,
    /// Cells of the last column are printed below the others.
    is_below: bool,
    /// Names of the dropped columns, each once.
    pub(super) dropped: Vec<String>,
}

/// Smallest width for which tables are laid out.
const MIN_WIDTH: usize = 60;

impl Layout {
    /// Fits columns into lines of this width; without a width all have room. Columns become narrow
    /// first, then they are dropped by their priority, and at last the cells of the last column are
    /// printed below the others.
    pub(super) fn new(all: &[Heading], width: Option<usize>) -> Self {
        let wide = Self::with(all, 0, false, false);
        let Some(width) = width.map(|width| width.max(MIN_WIDTH)) else { return wide };
        let mut dropped: Vec<u8> = all.iter().map(|heading| heading.drop_priority).collect();
        dropped.push(0);
        dropped.sort_unstable();
        dropped.dedup();
        let can_be_below = all.last().is_some_and(|heading| heading.min_width > 0);
        let below: &[bool] = if can_be_below { &[false, true] } else { &[false] };
        let layouts = below.iter().flat_map(|&below| {
            let dropped = dropped.iter();
            dropped
                .flat_map(move |&up_to| [false, true].map(|it| Self::with(all, up_to, it, below)))
        });
        let mut narrowest = wide;
        for layout in layouts {
            narrowest = layout;
            if narrowest.width() <= width {
                break;
            }
        }
        narrowest
    }

    /// The layout without the columns of a priority up to this one.
    fn with(all: &[Heading], dropped_up_to: u8, is_narrow: bool, is_below: bool) -> Self {
        let stays =
            |heading: &Heading| heading.drop_priority == 0 || heading.drop_priority > dropped_up_to;
        let mut dropped: Vec<String> = Vec::new();
        for heading in all.iter().filter(|heading| !stays(heading)) {
            if !dropped.iter().any(|name| *name == heading.text) {
                dropped.push(heading.text.to_string());
            }
        }
        let headings = all.iter().filter(|heading| stays(heading)).cloned();
        let headings = headings.map(|heading| if is_narrow { heading.narrowed() } else { heading });
        Self {
            headings: headings.collect(),
            stays: all.iter().map(stays).collect(),
            is_narrow,
            is_below,
            dropped,
        }
    }

    /// Characters of a line.
    fn width(&self) -> usize {
        let beside = &self.headings[..self.headings.len() - usize::from(self.is_below)];
        let first = beside.first().map_or(0, |heading| heading.gap);
        beside.iter().map(Heading::room).sum::<usize>() - first
    }

    /// The lines of headings.
    pub(super) fn head(&self) -> Vec<String> {
        match self.headings.split_last() {
            Some((last, others)) if self.is_below => {
                vec![head(others), format!("{:BELOW$}{}", "", last.text)]
            }
            _ => vec![head(&self.headings)],
        }
    }

    /// The line of a row, of whose cells those in columns that stay are shown.
    pub(super) fn line(&self, cells: &[String]) -> String {
        let shown = cells.iter().zip(&self.stays).filter(|(_, stays)| **stays);
        line(self.headings.iter().zip(shown.map(|(cell, _)| cell.as_str())))
    }

    /// The lines of a row: a last cell of any length that has no room is wrapped within its column
    /// or printed below the others.
    pub(super) fn lines(&self, cells: &[String], width: Option<usize>) -> Vec<String> {
        let whole = self.line(cells);
        let (Some(width), Some((text, others)), Some(last)) =
            (width, cells.split_last(), self.headings.last())
        else {
            return vec![whole];
        };
        let fits = !self.is_below && whole.chars().count() <= width;
        if last.min_width == 0 || fits {
            return vec![whole];
        }
        let with = |text: &str| self.line(&[others, &[text.to_owned()]].concat());
        let indent = self.width().saturating_sub(last.width.max(last.min_width));
        let room = width.saturating_sub(indent);
        if last.is_wrapped && !self.is_below && room >= last.min_width {
            let text = wrapped(text, room);
            let mut texts = text.iter();
            let first = with(texts.next().map_or("", String::as_str));
            let further = texts.map(|text| format!("{:indent$}{text}", ""));
            let lines: Vec<String> = std::iter::once(first).chain(further).collect();
            if lines.iter().all(|line| line.chars().count() <= width) {
                return lines;
            }
        }
        std::iter::once(with("")).chain(below(text, width)).collect()
    }
}

/// The sentence about dropped columns of these names.
pub(super) fn remark_on(dropped: &[String]) -> Option<String> {
    let them = match dropped.len() {
        0 => return None,
        1 => "it",
        _ => "them",
    };
    let names = dropped.join(", ");
    Some(format!("not shown: {names}; a wider terminal shows {them}, and so do files and pipes"))
}

/// A line of cells below their headings. A cell that is too long takes room of the following ones.
pub(super) fn line<'a>(cells: impl Iterator<Item = (&'a Heading, &'a str)>) -> String {
    let mut line = String::new();
    let mut over = 0;
    for (number, (heading, cell)) in cells.enumerate() {
        let gap = if number == 0 { 0 } else { heading.gap };
        let cell = cell.shown().to_string();
        let width = heading.width.saturating_sub(over);
        over = over + width.max(cell.chars().count()) - heading.width;
        // Writing to a String cannot fail.
        let _ = if heading.is_left {
            write!(line, "{:gap$}{cell:<width$}", "")
        } else {
            write!(line, "{:gap$}{cell:>width$}", "")
        };
    }
    line.truncate(line.trim_end().len());
    line
}

/// The line of the headings themselves.
fn head(headings: &[Heading]) -> String {
    line(headings.iter().map(|heading| (heading, heading.text.as_ref())))
}

/// Headings with the widths of these cells.
pub(super) fn fitted(headings: &[Heading], rows: &[Vec<String>]) -> Vec<Heading> {
    let columns = headings.iter().cloned().enumerate();
    let fitted = columns
        .map(|(column, heading)| heading.fitted(rows.iter().map(|row| row[column].as_str())));
    fitted.collect()
}

/// Spaces before a cell that is printed below its row.
const BELOW: usize = 4;

/// Breaks a text at spaces into lines of at most `width` characters.
pub(super) fn wrapped(text: &str, width: usize) -> Vec<String> {
    hanging(text, width, width)
}

/// As [`wrapped`], with another width for the lines after the first.
pub(super) fn hanging(text: &str, first: usize, others: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let text = text.shown().to_string();
    let mut words = text.split(' ').filter(|word| !word.is_empty()).peekable();
    while let Some(word) = words.next() {
        // A line never ends between a number and its unit.
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

/// The lines of a text below a row.
fn below(text: &str, width: usize) -> impl Iterator<Item = String> {
    let lines = wrapped(text, width.saturating_sub(BELOW)).into_iter();
    lines.map(|line| format!("{:BELOW$}{line}", ""))
}

/// Whether a word is a unit, perhaps followed by punctuation.
fn is_unit(word: &str) -> bool {
    let unit = word.trim_end_matches(|c: char| c.is_ascii_punctuation() && c != '%');
    matches!(unit, "%" | "B" | "KiB" | "MiB" | "GiB")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten columns to keep, twenty that go second and first, and a text.
    fn headings() -> Vec<Heading> {
        vec![
            Heading::left(0, 10, "kept"),
            Heading::right(1, 19, "second").drop_priority(2).narrow(9, "2nd"),
            Heading::right(2, 19, "first").drop_priority(1),
            Heading::left(3, 0, "text").gap(2).min_width(28),
        ]
    }

    #[test]
    fn columns_become_narrow_then_go_then_stand_below() {
        let all = headings();
        let dropped = |width| {
            let layout = Layout::new(&all, width);
            assert!(layout.width() <= width.unwrap_or(80), "{width:?}: {layout:?}");
            (layout.dropped.join(" "), layout.is_narrow, layout.is_below)
        };
        assert_eq!(dropped(None), (String::new(), false, false));
        assert_eq!(dropped(Some(80)), (String::new(), false, false));
        assert_eq!(dropped(Some(79)), (String::new(), true, false));
        assert_eq!(dropped(Some(70)), (String::new(), true, false));
        assert_eq!(dropped(Some(69)), (String::new(), true, false));
        assert_eq!(dropped(Some(68)), ("first".to_owned(), false, false));
        assert_eq!(dropped(Some(60)), ("first".to_owned(), false, false));
        let wide: Vec<Heading> = all
            .iter()
            .cloned()
            .map(|h| h.min_width(0))
            .chain([Heading::left(4, 0, "more").min_width(57)])
            .collect();
        let below = Layout::new(&wide, Some(60));
        assert_eq!((below.is_below, below.dropped.len()), (true, 0));
        // A column that is never dropped stays, though it has no room.
        let stiff = [Heading::left(0, 99, "stiff")];
        assert_eq!(Layout::new(&stiff, Some(60)).headings.len(), 1);
    }

    #[test]
    fn long_cells_take_the_room_of_the_following() {
        let headings =
            [Heading::left(0, 3, ""), Heading::right(1, 5, ""), Heading::right(2, 5, "")];
        let line = |cells: [&str; 3]| line(headings.iter().zip(cells));
        assert_eq!(line(["a", "b", "c"]), "a       b     c");
        assert_eq!(line(["abcd", "b", "c"]), "abcd    b     c");
        assert_eq!(line(["a", "1234567", "c"]), "a   1234567   c");
        assert_eq!(line(["a", "1234567890", "12345"]), "a   1234567890 12345");
    }

    #[test]
    fn numbers_stay_beside_their_units() {
        let text = "a mean error of 15 %), at 512 B each (504 B).";
        assert_eq!(wrapped(text, 18), ["a mean error of", "15 %), at 512 B", "each (504 B)."]);
        assert_eq!(wrapped("% 1", 1), ["%", "1"]);
    }
}
