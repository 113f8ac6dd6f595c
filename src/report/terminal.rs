//! Prints documents on terminals and into text files.

use super::document::{Block, Document, Medium, TableView, Wrapping};
use super::heading::Heading;
use super::layout::{Layout, fitted, hanging, remark_on};
use super::table_rows::TableRows;
use flowsieve_engine::internal::Shown;
use std::io::{self, Write};

/// The abilities of a terminal. The default is a file: whole tables in plain text.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct TerminalStyle {
    /// Bold face may be used.
    pub bold: bool,
    /// Columns of the terminal; `None` prints every column of a table at its full width.
    pub width: Option<usize>,
    /// Number of table rows to show, half of them the first and half the last; `None` shows all.
    pub rows: Option<usize>,
}

/// Lengths of bars, in characters.
const LONGEST_BAR: usize = 40;
const SHORTEST_BAR: usize = 8;

/// Smallest width of a column that gives room to bars.
const MIN_NAME: usize = 16;

impl TerminalStyle {
    /// Returns the width of lines that have at most this many characters.
    pub(super) fn width_within(self, most: usize) -> usize {
        self.width.map_or(most, |width| width.min(most))
    }

    /// The line, in bold face if that may be used.
    pub(super) fn bold(self, line: &str) -> String {
        if self.bold { format!("\x1b[1m{line}\x1b[0m") } else { line.to_owned() }
    }

    /// The lines of a sentence; its leading spaces indent all of them.
    pub(super) fn lines(self, text: &str, wrapping: Wrapping) -> Vec<String> {
        let shown = text.shown().to_string();
        let indent = shown.len() - shown.trim_start_matches(' ').len();
        let width = self.width_within(wrapping.width).saturating_sub(indent);
        if width.saturating_add(indent) == usize::MAX || shown.chars().count() <= width + indent {
            return vec![shown];
        }
        let lines = hanging(&shown, width, width.saturating_sub(wrapping.hanging)).into_iter();
        let lines = lines.enumerate().map(|(number, line)| {
            let indent = if number == 0 { indent } else { indent + wrapping.hanging };
            format!("{:indent$}{line}", "")
        });
        lines.collect()
    }

    /// Writes a sentence.
    pub(super) fn sentence(self, out: &mut dyn Write, text: &str) -> io::Result<()> {
        write_lines(out, self.lines(text, Wrapping::default()))
    }

    /// The lines of a table.
    pub(super) fn table(self, view: &TableView, line_width: usize) -> TableLines {
        let mut headings = fitted(&view.headings, &view.rows);
        let line_width = self.width_within(line_width);
        if !view.bars.is_empty() {
            shrink_name(&mut headings, line_width);
        }
        let layout = Layout::new(&headings, self.width);
        let is_wrapped = layout.headings.last().is_some_and(|last| last.is_wrapped);
        let cell_width = if is_wrapped { Some(line_width) } else { self.width };
        let head = layout.head().into_iter().filter(|_| view.has_head());
        let bar = bar_room(&layout.headings, line_width).min(LONGEST_BAR);
        let rows = view.rows.iter().enumerate().map(|(number, cells)| {
            let mut row = layout.lines(cells, cell_width);
            if let (Some(share), Some(line)) = (view.bars.get(number), row.last_mut()) {
                push_bar(line, *share, bar_place(&layout.headings), bar);
            }
            if view.bold.contains(&number) {
                row = row.iter().map(|line| self.bold(line)).collect();
            }
            row.join("\n")
        });
        TableLines {
            head: head.map(|line| self.bold(&line)).collect(),
            rows: rows.collect(),
            dropped: layout.dropped,
        }
    }
}

/// A table as text.
pub(super) struct TableLines {
    pub(super) head: Vec<String>,
    /// The rows, each of one or more lines.
    pub(super) rows: Vec<String>,
    /// Names of columns without room.
    pub(super) dropped: Vec<String>,
}

/// Prints a document and gives the writer back, flushed.
pub(super) fn write<W: Write>(
    document: &Document,
    style: TerminalStyle,
    mut out: W,
) -> io::Result<W> {
    print(document, style, &mut out)?;
    out.flush()?;
    Ok(out)
}

/// Prints the blocks of a document that terminals show.
pub(super) fn print(
    document: &Document,
    style: TerminalStyle,
    out: &mut dyn Write,
) -> io::Result<()> {
    let wrapping = document.wrapping;
    let blocks: Vec<&Block> = document.shown_on(Medium::Terminal).collect();
    let last_table = blocks.iter().rposition(|block| matches!(block, Block::Table(_)));
    let mut dropped = Vec::new();
    for (number, block) in blocks.into_iter().enumerate() {
        let lines = match block {
            Block::Section(text) => {
                style.lines(text, wrapping).iter().map(|line| style.bold(line)).collect()
            }
            Block::Answer(text) | Block::Warning(text) | Block::Sentence(text) => {
                style.lines(text, wrapping)
            }
            Block::Command(words) => command_lines(words, style.width_within(wrapping.width)),
            Block::Gap => vec![String::new()],
            Block::Table(view) => {
                let table = style.table(view, wrapping.width);
                let new = table.dropped.into_iter().filter(|name| !dropped.contains(name));
                dropped.extend(new.collect::<Vec<_>>());
                // A table without headings has facts, and not rows.
                let shown = style.rows.filter(|_| !table.head.is_empty());
                write_lines(out, table.head)?;
                let mut rows = TableRows::new(shown);
                table.rows.into_iter().try_for_each(|row| rows.row(out, None, row))?;
                rows.finish(out)?;
                Vec::new()
            }
            Block::Figure(_) => Vec::new(),
        };
        write_lines(out, lines)?;
        if Some(number) == last_table
            && let Some(remark) = remark_on(&dropped)
        {
            write_lines(out, style.lines(&remark, wrapping))?;
        }
    }
    Ok(())
}

/// Writes lines.
pub(super) fn write_lines(out: &mut dyn Write, lines: Vec<String>) -> io::Result<()> {
    lines.into_iter().try_for_each(|line| writeln!(out, "{line}"))
}

/// The lines of a command, continued behind backslashes as in a shell.
fn command_lines(words: &[String], width: usize) -> Vec<String> {
    let mut lines = vec![" ".to_owned()];
    for word in words {
        let line = lines.last_mut().expect("there is a line");
        if !line.trim().is_empty() && line.chars().count() + 1 + word.chars().count() > width - 2 {
            line.push_str(" \\");
            lines.push(format!("    {word}"));
        } else {
            line.push(' ');
            line.push_str(word);
        }
    }
    lines
}

/// Where bars begin.
fn bar_place(headings: &[Heading]) -> usize {
    headings.iter().map(|heading| heading.width + 1).sum()
}

/// Room for bars behind these columns.
fn bar_room(headings: &[Heading], width: usize) -> usize {
    width.saturating_sub(bar_place(headings) + 1)
}

/// Gives room of the first column of texts to bars: longer names are written whole, and have
/// shorter bars or none.
fn shrink_name(headings: &mut [Heading], width: usize) {
    let missing = SHORTEST_BAR.saturating_sub(bar_room(headings, width));
    if let Some(name) = headings.iter_mut().find(|heading| heading.is_left) {
        name.width = name.width.saturating_sub(missing).max(MIN_NAME.min(name.width));
    }
}

/// Appends a bar of at most `width` characters at this place, if there is room.
fn push_bar(line: &mut String, share: f64, place: usize, width: usize) {
    let missing = place.saturating_sub(line.chars().count());
    if width >= SHORTEST_BAR && missing > 0 {
        line.extend(std::iter::repeat_n(' ', missing));
        line.push_str(&bar(share, width));
    }
}

/// A bar of at most this many characters.
pub(super) fn bar(share: f64, width: usize) -> String {
    const EIGHTHS: [char; 7] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉'];
    let eighths = (share.clamp(0.0, 1.0) * width as f64 * 8.0).round() as usize;
    let eighths = eighths.max(1);
    let mut bar = "█".repeat(eighths / 8);
    bar.extend((eighths % 8).checked_sub(1).map(|rest| EIGHTHS[rest]));
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_as_long_as_their_share() {
        assert_eq!(bar(1.0, 4), "████");
        assert_eq!(bar(0.5, 4), "██");
        assert_eq!(bar(0.53, 4), "██▏");
        assert_eq!(bar(0.0, 4), "▏");
        assert_eq!(bar(f64::NAN, 4), "▏");
    }
}
