//! The rows of a table: all of them, or the first and the last.

use super::number::counted;
use std::collections::VecDeque;
use std::io::{self, Write};

/// Writes rows. If not all are shown, rows are held back until they are known to be the last.
#[derive(Debug, Default)]
pub(super) struct TableRows {
    /// Lines shown at the beginning, and again at the end; `None` shows all.
    half: Option<usize>,
    written: usize,
    /// Rows that may be the last, with the headings above them.
    last: VecDeque<(Option<String>, String)>,
    /// Lines of the rows in `last`.
    held: usize,
    left_out: u64,
    /// Heading above the row that was written last.
    above: Option<String>,
}

impl TableRows {
    /// Shows this many lines, or all.
    pub(super) fn new(shown: Option<usize>) -> Self {
        Self { half: shown.map(|lines| lines.div_ceil(2)), ..Self::default() }
    }

    /// Adds a row of one or more lines, without the last line feed. Rows with the same heading
    /// `above` have it once, below a blank line.
    pub(super) fn row(
        &mut self,
        out: &mut dyn Write,
        above: Option<&str>,
        row: String,
    ) -> io::Result<()> {
        let Some(half) = self.half.filter(|&half| self.written >= half) else {
            return self.write(out, above, &row);
        };
        self.held += row.lines().count();
        self.last.push_back((above.map(str::to_owned), row));
        while self.held > half && self.last.len() > 1 {
            if let Some((_, row)) = self.last.pop_front() {
                self.held -= row.lines().count();
                self.left_out += 1;
            }
        }
        Ok(())
    }

    /// Writes the rows that were held back.
    pub(super) fn finish(&mut self, out: &mut dyn Write) -> io::Result<()> {
        if self.left_out > 0 {
            let rows = counted(self.left_out, "row", "rows");
            writeln!(out, "… {rows} between; --rows all shows them")?;
            // The heading above may be among the rows that are left out.
            self.above = None;
        }
        while let Some((above, row)) = self.last.pop_front() {
            self.write(out, above.as_deref(), &row)?;
        }
        Ok(())
    }

    fn write(&mut self, out: &mut dyn Write, above: Option<&str>, row: &str) -> io::Result<()> {
        if above != self.above.as_deref() {
            if let Some(above) = above {
                let apart = if self.written > 0 { "\n" } else { "" };
                writeln!(out, "{apart}{above}")?;
            }
            self.above = above.map(str::to_owned);
        }
        self.written += row.lines().count();
        writeln!(out, "{row}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(rows: Option<usize>, count: usize) -> String {
        let mut table = TableRows::new(rows);
        let mut out = Vec::new();
        for row in 0..count {
            let above = format!("of {}", row / 5);
            table.row(&mut out, Some(&above), row.to_string()).unwrap();
        }
        table.finish(&mut out).unwrap();
        String::from_utf8(out).unwrap().replace('\n', " ")
    }

    #[test]
    fn the_first_and_the_last_rows_are_shown() {
        assert_eq!(shown(None, 6), "of 0 0 1 2 3 4  of 1 5 ");
        assert_eq!(shown(Some(4), 4), "of 0 0 1 2 3 ");
        assert_eq!(shown(Some(4), 5), "of 0 0 1 … 1 row between; --rows all shows them  of 0 3 4 ");
        assert_eq!(
            shown(Some(4), 1012),
            "of 0 0 1 … 1,008 rows between; --rows all shows them  of 202 1010 1011 "
        );
    }

    #[test]
    fn rows_of_several_lines_count_by_their_lines() {
        let (mut table, mut out) = (TableRows::new(Some(4)), Vec::new());
        for row in ["a\na", "b\nb", "c\nc", "d\nd\nd"] {
            table.row(&mut out, None, row.to_owned()).unwrap();
        }
        table.finish(&mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text, "a\na\n… 2 rows between; --rows all shows them\nd\nd\nd\n");
    }
}
