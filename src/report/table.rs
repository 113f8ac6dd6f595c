//! Tables and sentences in a terminal.

use flowsieve_engine::internal::Shown;
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
    /// How soon the column goes where it has no room: 1 first; 0 never.
    goes: u8,
    /// Its text and width where there is little room.
    tight: Option<(&'static str, usize)>,
    /// Of the last column, whose cells may be of any length: the room beside the others that most
    /// of them need. With less, they stand below the other cells.
    pub(super) room: usize,
}

impl Heading {
    /// Of a column of numbers, which stand to the right.
    pub(super) fn right(place: u8, width: usize, text: impl Into<Cow<'static, str>>) -> Self {
        Self { text: text.into(), place, width, left: false, gap: 1, goes: 0, tight: None, room: 0 }
    }

    /// Of a column of texts, which stand to the left.
    pub(super) fn left(place: u8, width: usize, text: impl Into<Cow<'static, str>>) -> Self {
        Self { left: true, ..Self::right(place, width, text) }
    }

    /// With this many spaces before it instead of one.
    pub(super) fn gap(self, gap: usize) -> Self {
        Self { gap, ..self }
    }

    /// Goes where there is no room, those with the lowest number first.
    pub(super) fn goes(self, goes: u8) -> Self {
        Self { goes, ..self }
    }

    /// With another text, and width or [`room`](Self::room), where there is little room.
    pub(super) fn tight(self, width: usize, text: &'static str) -> Self {
        Self { tight: Some((text, width)), ..self }
    }

    /// With so many more letters in its cells.
    pub(super) fn wider(self, by: usize) -> Self {
        Self {
            width: self.width + by,
            tight: self.tight.map(|(text, width)| (text, width + by)),
            ..self
        }
    }

    /// Cells are of any length, and most of them need so much room.
    pub(super) fn room(self, room: usize) -> Self {
        Self { room, ..self }
    }

    /// As it is where there is little room.
    fn tightened(self) -> Self {
        let gap = self.gap.min(1);
        let Some((text, width)) = self.tight else {
            return self.gap(gap);
        };
        let (width, room) = if self.room == 0 { (width, 0) } else { (self.width, width) };
        Self { text: text.into(), width, room, gap, ..self }
    }

    /// What it takes of a line that has others before it.
    fn takes(&self) -> usize {
        self.gap + self.width.max(self.room)
    }
}

/// Which columns have room.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    /// The headings of those that stay.
    pub(super) headings: Vec<Heading>,
    /// Whether each column stays.
    pub(super) stays: Vec<bool>,
    /// They are narrow.
    pub(super) tight: bool,
    /// The cells of the last one stand below the others.
    pub(super) below: bool,
    /// Names of those that go, each once.
    pub(super) gone: Vec<String>,
}

/// Spaces before a cell that stands below its row.
const BELOW: usize = 4;

/// Least width that tables are made for.
const LEAST_WIDTH: usize = 60;

/// Finds room for columns in lines of this width; without a width they all have it. Columns become
/// narrow first, then they go in the order that they declare, and at last the cells of the last one
/// stand below the others.
pub(super) fn layout(all: &[Heading], width: Option<usize>) -> Layout {
    let wide = || Layout::of(all, |_| true, false, false);
    let Some(width) = width else {
        return wide();
    };
    let width = width.max(LEAST_WIDTH);
    let mut steps: Vec<u8> = all.iter().map(|heading| heading.goes).collect();
    steps.push(0);
    steps.sort_unstable();
    steps.dedup();
    let mut least = wide();
    for below in [false, true] {
        if below && all.last().is_none_or(|heading| heading.room == 0) {
            break;
        }
        for &step in &steps {
            for tight in [false, true] {
                let stays = |heading: &Heading| heading.goes == 0 || heading.goes > step;
                let layout = Layout::of(all, stays, tight, below);
                if layout.width() <= width {
                    return layout;
                }
                least = layout;
            }
        }
    }
    least
}

impl Layout {
    fn of(all: &[Heading], stays: impl Fn(&Heading) -> bool, tight: bool, below: bool) -> Self {
        let mut gone: Vec<String> = Vec::new();
        let of_gone = all.iter().filter(|heading| !stays(heading));
        for heading in of_gone {
            let name = heading.text.clone().into_owned();
            if !gone.contains(&name) {
                gone.push(name);
            }
        }
        let headings = all.iter().filter(|heading| stays(heading)).cloned();
        let headings = headings.map(|heading| if tight { heading.tightened() } else { heading });
        Self {
            headings: headings.collect(),
            stays: all.iter().map(stays).collect(),
            tight,
            below,
            gone,
        }
    }

    fn width(&self) -> usize {
        let beside = self.headings.len() - usize::from(self.below);
        let beside = &self.headings[..beside];
        let first = beside.first().map_or(0, |heading| heading.gap);
        beside.iter().map(Heading::takes).sum::<usize>() - first
    }

    /// Whether all columns have their full width.
    pub(super) fn is_whole(&self) -> bool {
        !self.tight && !self.below && self.gone.is_empty()
    }

    /// The line of headings, or its lines.
    pub(super) fn head(&self) -> Vec<String> {
        let last = self.headings.len().saturating_sub(1);
        match self.headings.last().filter(|_| self.below) {
            None => vec![head(&self.headings)],
            Some(below) => {
                vec![head(&self.headings[..last]), format!("{:BELOW$}{}", "", below.text)]
            }
        }
    }

    /// A line of cells: those of columns that stay.
    pub(super) fn line(&self, cells: Vec<String>) -> String {
        let stays = self.stays.iter();
        let cells = cells.into_iter().zip(stays).filter(|(_, stays)| **stays);
        line(self.headings.iter().zip(cells.map(|(cell, _)| cell)))
    }

    /// The same in lines of this width: a last cell of any length stands below the others where it
    /// has no room.
    pub(super) fn lines(&self, mut cells: Vec<String>, width: Option<usize>) -> Vec<String> {
        let beside = self.line(cells.clone());
        let has_text = self.headings.last().is_some_and(|last| last.room > 0);
        let fits = |width| !self.below && beside.chars().count() <= width;
        let Some(width) = width.filter(|&width| has_text && !fits(width)) else {
            return vec![beside];
        };
        let text = cells.pop().unwrap_or_default();
        cells.push(String::new());
        let below = wrapped(&text, width.saturating_sub(BELOW)).into_iter();
        let below = below.map(|text| format!("{:BELOW$}{text}", ""));
        std::iter::once(self.line(cells)).chain(below).collect()
    }

    /// The sentence about columns that went.
    pub(super) fn remark(&self) -> Option<String> {
        let all = "a wider terminal shows them, and so do files and pipes";
        let one = "a wider terminal shows it, and so do files and pipes";
        match &self.gone[..] {
            [] => None,
            [name] => Some(format!("not shown: {name}; {one}")),
            names => Some(format!("not shown: {}; {all}", names.join(", "))),
        }
    }
}

/// A line of cells below their headings. A cell that is too long takes the room that the following
/// ones leave.
pub(super) fn line<'a>(cells: impl Iterator<Item = (&'a Heading, String)>) -> String {
    let mut line = String::new();
    let mut over = 0;
    for (number, (heading, cell)) in cells.enumerate() {
        let gap = if number == 0 { 0 } else { heading.gap };
        let cell = cell.shown().to_string();
        let width = heading.width.saturating_sub(over);
        over = over + width.max(cell.chars().count()) - heading.width;
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
    writeln!(out, "{}", bold_text(styled, line))
}

/// The line, in bold face if that is allowed.
pub(super) fn bold_text(styled: bool, line: &str) -> String {
    if styled { format!("\x1b[1m{line}\x1b[0m") } else { line.to_owned() }
}

/// Headings of columns that are as wide as the widest of their cells, each with whether it stands
/// to the left.
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
    line(headings.iter().map(|heading| (heading, heading.text.clone().into_owned())))
}

/// Lines of at most `width` characters, broken at spaces.
pub(super) fn wrapped(text: &str, width: usize) -> Vec<String> {
    hanging(text, width, width)
}

/// The same, with another width of the first line.
pub(super) fn hanging(text: &str, first: usize, others: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let text = text.shown().to_string();
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
    use super::*;

    /// Ten columns to keep, twenty that go second and first, and a text.
    fn headings() -> Vec<Heading> {
        vec![
            Heading::left(0, 10, "kept"),
            Heading::right(1, 19, "second").goes(2).tight(9, "2nd"),
            Heading::right(2, 19, "first").goes(1),
            Heading::left(3, 0, "text").gap(2).room(28),
        ]
    }

    #[test]
    fn columns_become_narrow_then_go_then_stand_below() {
        let all = headings();
        let gone = |width| {
            let layout = layout(&all, width);
            assert!(layout.width() <= width.unwrap_or(80), "{width:?}: {layout:?}");
            (layout.gone.join(" "), layout.tight, layout.below)
        };
        assert_eq!(gone(None), (String::new(), false, false));
        assert_eq!(gone(Some(80)), (String::new(), false, false));
        assert_eq!(gone(Some(79)), (String::new(), true, false));
        assert_eq!(gone(Some(70)), (String::new(), true, false));
        assert_eq!(gone(Some(69)), (String::new(), true, false));
        assert_eq!(gone(Some(68)), ("first".to_owned(), false, false));
        assert_eq!(gone(Some(60)), ("first".to_owned(), false, false));
        let wide: Vec<Heading> = all
            .iter()
            .cloned()
            .map(|h| h.room(0))
            .chain([Heading::left(4, 0, "more").room(57)])
            .collect();
        let below = layout(&wide, Some(60));
        assert_eq!((below.below, below.gone.len()), (true, 0));
        // What is never dropped stays, though it has no room.
        let stiff = [Heading::left(0, 99, "stiff")];
        assert_eq!(layout(&stiff, Some(60)).headings.len(), 1);
    }

    #[test]
    fn long_cells_take_the_room_of_the_following() {
        let headings =
            [Heading::left(0, 3, ""), Heading::right(1, 5, ""), Heading::right(2, 5, "")];
        let line = |cells: [&str; 3]| line(headings.iter().zip(cells.map(str::to_owned)));
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
