//! CSV: a header, then a line a row; empty fields for what does not exist.

use super::cell::{Cell, Clock, Kind, push_whole, twin_of};
use super::column::{Columns, Integer};
use super::crew::{Crew, LazyRows, Make, OfBatches};
use super::number::{Seconds, seconds, write_rfc3339};
use super::values::RowBatch;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::sync::Arc;

/// Bytes of lines that are gathered before they are written.
const BUFFER: usize = 32 << 10;

/// Writes rows as they come. The header comes with the first one, or at the end: a result that is
/// dropped before it has any leaves nothing behind.
#[derive(Debug)]
pub(super) struct CsvRows<W: Write, R> {
    out: W,
    columns: Arc<Columns<R>>,
    has_header: bool,
    /// Lines that wait.
    lines: String,
    seconds: Seconds,
    /// Threads that make lines.
    crew: Option<Crew<R, String>>,
}

impl<W: Write, R> CsvRows<W, R> {
    pub(super) fn begin(out: W, columns: &Arc<Columns<R>>) -> Self {
        Self {
            out,
            columns: Arc::clone(columns),
            has_header: false,
            lines: String::new(),
            seconds: Seconds::default(),
            crew: None,
        }
    }

    fn header(&mut self) {
        if std::mem::replace(&mut self.has_header, true) {
            return;
        }
        for (number, name) in self.columns.text_names().iter().enumerate() {
            push_field(&mut self.lines, number, |line| line.push_str(name));
        }
        end_line(&mut self.lines, 0);
    }

    pub(super) fn row(&mut self, row: &R) -> io::Result<()> {
        self.header();
        push_row(&self.columns, row, &mut self.seconds, &mut self.lines);
        self.write_from(BUFFER)
    }

    /// Writes a row that may go to another thread before.
    pub(super) fn take(&mut self, row: R) -> io::Result<()> {
        let Some(crew) = &mut self.crew else {
            return self.row(&row);
        };
        let out = &mut self.out;
        crew.row(row, &mut |lines| out.write_all(lines.as_bytes()))
    }

    /// How many rows that are made where they are wanted may come next, if there are threads for
    /// them.
    pub(super) fn lazy_rows(&self) -> Option<usize> {
        let crew = self.crew.as_ref().filter(|crew| !crew.is_gathering())?;
        Some(crew.lazy_rows())
    }

    /// Writes so many rows, which are made in another thread.
    pub(super) fn lazy(&mut self, count: usize, rows: LazyRows<R>) -> io::Result<()> {
        let out = &mut self.out;
        let crew = self.crew.as_mut().expect("there are threads for it");
        crew.lazy(count, rows, &mut |lines| out.write_all(lines.as_bytes()))
    }

    /// Writes all rows that threads make.
    pub(super) fn settle(&mut self) -> io::Result<()> {
        let out = &mut self.out;
        let mut done = |lines: String| out.write_all(lines.as_bytes());
        self.crew.as_mut().map_or(Ok(()), |crew| crew.settle(&mut done))
    }

    /// Writes what waits.
    fn write_rest(&mut self) -> io::Result<()> {
        self.write_from(1)?;
        let out = &mut self.out;
        let mut done = |lines: String| out.write_all(lines.as_bytes());
        self.crew.as_mut().map_or(Ok(()), |crew| crew.rest(&mut done))
    }

    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.write_rest()?;
        self.out.flush()
    }

    pub(super) fn finish(mut self) -> io::Result<W> {
        self.header();
        self.write_rest()?;
        Ok(self.out)
    }

    /// Writes the lines that wait, if they are so many bytes.
    fn write_from(&mut self, bytes: usize) -> io::Result<()> {
        if self.lines.len() >= bytes {
            self.out.write_all(self.lines.as_bytes())?;
            self.lines.clear();
        }
        Ok(())
    }
}

impl<W: Write, R: Send + 'static> CsvRows<W, R> {
    /// With so many threads that make lines.
    pub(super) fn shared_among(mut self, threads: usize) -> io::Result<Self> {
        let lines = || Lines::of(&self.columns);
        self.crew = Crew::start(threads, lines);
        self.begin_lines()
    }

    fn begin_lines(mut self) -> io::Result<Self> {
        self.header();
        self.write_from(1)?;
        Ok(self)
    }
}

impl<W: Write, R: RowBatch + Send + 'static> CsvRows<W, R> {
    /// With so many threads that make lines of batches.
    pub(super) fn batches_among(mut self, threads: usize) -> io::Result<Self> {
        let lines = || OfBatches(Lines::of(&self.columns));
        self.crew = Crew::start(threads, lines);
        self.begin_lines()
    }
}

/// Makes lines.
struct Lines<R> {
    columns: Arc<Columns<R>>,
    seconds: Seconds,
    text: String,
}

impl<R> Lines<R> {
    fn of(columns: &Arc<Columns<R>>) -> Self {
        Self { columns: Arc::clone(columns), seconds: Seconds::default(), text: String::new() }
    }

    fn push(&mut self, row: &R) {
        push_row(&self.columns, row, &mut self.seconds, &mut self.text);
    }

    fn take(&mut self) -> String {
        let bytes = self.text.len();
        std::mem::replace(&mut self.text, String::with_capacity(bytes + bytes / 8))
    }
}

impl<R: 'static> Make<R> for Lines<R> {
    type Made = String;

    fn row(&mut self, row: &mut R) {
        self.push(row);
    }

    fn made(&mut self, _is_end: bool) -> String {
        self.take()
    }
}

impl<R: RowBatch + 'static> Make<R> for OfBatches<Lines<R>> {
    type Made = String;

    fn row(&mut self, batch: &mut R) {
        for row in 0..batch.len() {
            batch.go_to(row);
            self.0.push(batch);
        }
    }

    fn made(&mut self, _is_end: bool) -> String {
        self.0.take()
    }
}

/// Appends a line.
fn push_row<R>(columns: &Columns<R>, row: &R, seconds: &mut Seconds, line: &mut String) {
    let start = line.len();
    for (number, column) in columns.0.iter().enumerate() {
        let write = |line: &mut String| {
            if column.push_text(row, line).is_none() {
                column.cell(row).write_text(line);
            }
        };
        if let Kind::Time(clock) = column.kind {
            push_separator(line, number);
            if let (Clock::Nanoseconds, Integer::Number(ns)) = (clock, column.whole(row)) {
                push_whole(ns, line);
                line.push(',');
                seconds.push_rfc3339(ns, column.zone, line);
                continue;
            }
            let cell = column.cell(row);
            cell.write_text(line);
            if let Some(second) = twin_of(&column.kind, &cell, column.zone) {
                line.push(',');
                second.write_text(line);
            }
        } else if is_plain(&column.kind) {
            push_separator(line, number);
            write(line);
        } else {
            push_field(line, number, |line| {
                let start = line.len();
                write(line);
                if is_text(&column.kind) && is_formula(&line[start..]) {
                    line.insert(start, '\'');
                }
            });
        }
    }
    end_line(line, start);
}

/// Whether its values need no quotes.
const fn is_plain(kind: &Kind) -> bool {
    matches!(kind, Kind::Seconds | Kind::I64 | Kind::U64 | Kind::Bool)
}

/// Whether its values come as they are, from names and paths.
fn is_text(kind: &Kind) -> bool {
    match kind {
        Kind::Text => true,
        Kind::List(of) => is_text(of),
        _ => false,
    }
}

/// Whether a spreadsheet would compute the cell.
fn is_formula(text: &str) -> bool {
    text.len() > 1 && text.starts_with(['=', '+', '-', '@', '\t', '\r'])
}

fn push_separator(line: &mut String, number: usize) {
    if number > 0 {
        line.push(',');
    }
}

/// Appends a field, in quotes where a reader would take it for something else (RFC 4180).
fn push_field(line: &mut String, number: usize, write: impl FnOnce(&mut String)) {
    push_separator(line, number);
    let start = line.len();
    write(line);
    let is_special = |byte: &u8| matches!(byte, b',' | b'"' | b'\n' | b'\r');
    // All of them are looked at, several at a time.
    let bytes = line.as_bytes()[start..].iter();
    if bytes.fold(false, |any, byte| any | is_special(byte)) {
        let quoted = line[start..].replace('"', "\"\"");
        line.truncate(start);
        line.push('"');
        line.push_str(&quoted);
        line.push('"');
    }
}

/// Ends the line that begins at `start`. One without anything would be none.
fn end_line(line: &mut String, start: usize) {
    line.push_str(if line.len() == start { "\"\"\n" } else { "\n" });
}

impl Cell {
    /// As a text by itself; nothing for null.
    pub(super) fn in_text(&self) -> String {
        let mut text = String::new();
        self.write_text(&mut text);
        text
    }

    /// Appends it as a text by itself.
    pub(super) fn write_text(&self, out: &mut String) {
        let written = match self {
            Self::Null => Ok(()),
            Self::Time(ns, Clock::Nanoseconds) => out.write_str(itoa::Buffer::new().format(*ns)),
            Self::Time(ns, Clock::Seconds) => out.write_str(&seconds((*ns).into())),
            Self::Time(ns, Clock::Rfc3339(zone)) => {
                write_rfc3339(*ns, *zone, out);
                Ok(())
            }
            Self::Seconds(ns) => out.write_str(&seconds(*ns)),
            Self::I64(number) => out.write_str(itoa::Buffer::new().format(*number)),
            Self::U64(number) => out.write_str(itoa::Buffer::new().format(*number)),
            Self::Decimal(number) => write!(out, "{number}"),
            Self::Bool(truth) => write!(out, "{truth}"),
            Self::Text(text) => out.write_str(text),
            Self::List(cells, between) => {
                let texts: Vec<String> = cells.iter().map(Self::in_text).collect();
                out.write_str(&texts.join(between))
            }
            Self::F64(_) | Self::Whole(_) | Self::Object(_) | Self::Tally(_) => {
                // As in JSON, so that a number is the same in both.
                out.write_str(&serde_json::to_string(self).unwrap_or_default())
            }
        };
        written.expect("a String takes everything");
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

    use super::super::cell::{Joined, Time};
    use super::*;
    use crate::zone::Zone;
    use proptest::prelude::*;

    type Row = (String, Option<u64>, i64, Vec<u64>);

    fn columns() -> Arc<Columns<Row>> {
        let columns = Columns::default()
            .field("text", |row: &Row| row.0.clone())
            .field("number", |row| row.1)
            .field("time_ns", |row| Time(row.2))
            .field("list", |row| Joined(row.3.clone(), ","))
            .written("written", true, |row, text| {
                text.push_str(&row.0);
                row.1.is_some()
            });
        Arc::new(columns)
    }

    /// The same by the crate `csv`.
    fn expected(rows: &[Row]) -> Vec<u8> {
        let mut csv = csv::Writer::from_writer(Vec::new());
        let names = ["text", "number", "time_ns", "time", "list", "written"];
        csv.write_record(names).unwrap();
        for (text, number, time_ns, list) in rows {
            // Nothing that a spreadsheet would compute.
            let is_formula = text.len() > 1 && text.starts_with(|c| "=+-@\t\r".contains(c));
            let text = &if is_formula { format!("'{text}") } else { text.clone() };
            let list: Vec<String> = list.iter().map(u64::to_string).collect();
            csv.write_record([
                text,
                &number.map_or(String::new(), |number| number.to_string()),
                &time_ns.to_string(),
                &super::super::number::rfc3339(*time_ns, Zone::UTC),
                &list.join(","),
                text,
            ])
            .unwrap();
        }
        csv.into_inner().unwrap()
    }

    fn row() -> impl Strategy<Value = Row> {
        let text = prop::collection::vec(
            prop::sample::select(vec![
                'a', ',', '"', '\n', '\r', 'ü', ' ', '#', '=', '-', '@', '+', '\t', '\'',
            ]),
            0..6,
        );
        let text = text.prop_map(String::from_iter);
        (text, any::<Option<u64>>(), any::<i64>(), prop::collection::vec(any::<u64>(), 0..3))
    }

    proptest! {
        #[test]
        fn lines_are_those_of_the_csv_crate(
            rows in prop::collection::vec(row(), 0..20),
            times in 1_usize..400,
            threads in 0_usize..4,
        ) {
            let rows: Vec<Row> = rows.iter().cycle().take(rows.len() * times).cloned().collect();
            let mut csv = CsvRows::begin(Vec::new(), &columns());
            if threads > 0 {
                csv = csv.shared_among(threads).unwrap();
            }
            for row in &rows {
                csv.take(row.clone()).unwrap();
            }
            prop_assert_eq!(csv.finish().unwrap(), expected(&rows));
        }

        #[test]
        fn a_line_with_nothing_is_a_line(rows in prop::collection::vec(any::<Option<u64>>(), 0..5)) {
            let columns = Columns::default().field("n", |n: &Option<u64>| *n);
            let mut csv = CsvRows::begin(Vec::new(), &Arc::new(columns));
            let mut expected = csv::Writer::from_writer(Vec::new());
            expected.write_record(["n"]).unwrap();
            for row in &rows {
                csv.row(row).unwrap();
                let text = row.map_or(String::new(), |n| n.to_string());
                expected.write_record([text]).unwrap();
            }
            prop_assert_eq!(csv.finish().unwrap(), expected.into_inner().unwrap());
        }
    }
}
