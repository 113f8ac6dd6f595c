//! CSV (RFC 4180): a header, then a line a row; empty fields for what does not exist.

use crate::report::batch::{Array, Batch, Field, Schema};
use crate::report::cell::Kind;
use crate::report::format::{DocumentPlace, Format, Frame, Part, ReportFormat};
use crate::report::number::RecentSeconds;
use std::io::{self, Write};

pub(in crate::report) const FORMAT: ReportFormat = ReportFormat {
    name: "csv",
    help: "One line per row, with a header",
    is_binary: false,
    is_line_by_line: true,
    is_flat: true,
    document: DocumentPlace::None,
    begin: || Box::new(Csv::default()),
};

#[derive(Default)]
struct Csv {
    recent: RecentSeconds,
    /// Bytes of the batch before.
    usual_bytes: usize,
}

impl Format for Csv {
    fn begin(&mut self, schema: &Schema, _: &Frame, out: &mut dyn Write) -> io::Result<()> {
        let mut line = String::new();
        for (number, field) in schema.iter().enumerate() {
            push_separator(&mut line, number);
            let start = line.len();
            line.push_str(&field.name);
            quote(&mut line, start);
        }
        end_line(&mut line, 0);
        out.write_all(line.as_bytes())
    }

    fn encode(&mut self, batch: &Batch) -> io::Result<Part> {
        let columns = batch.columns().map(|(field, array)| (field, array, is_plain(&field.kind)));
        let columns: Vec<(&Field, &Array, bool)> = columns.collect();
        let mut lines = String::with_capacity(self.usual_bytes + self.usual_bytes / 8);
        for row in 0..batch.rows {
            let start = lines.len();
            for (number, (field, array, is_plain)) in columns.iter().enumerate() {
                push_separator(&mut lines, number);
                if array.is_null(row) {
                    continue;
                }
                let start = lines.len();
                array.push_text_of(row, field, &mut self.recent, &mut lines);
                if *is_plain {
                    continue;
                }
                if is_text(&field.kind) && is_formula(&lines[start..]) {
                    lines.insert(start, '\'');
                }
                quote(&mut lines, start);
            }
            end_line(&mut lines, start);
        }
        self.usual_bytes = lines.len();
        Ok(Part::new(lines.into_bytes()))
    }

    fn fork(&self) -> Box<dyn Format> {
        Box::new(Self::default())
    }
}

/// Whether values need no quotes.
const fn is_plain(kind: &Kind) -> bool {
    use Kind::{Address, Bool, I64, Seconds, Time, Token, U8, U16, U64};
    matches!(kind, Time(_) | Seconds | I64 | U64 | U16 | U8 | Bool | Token | Address)
}

/// Whether values may come from names and paths.
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

/// Quotes the field that begins at `start` where a reader would take it for something else.
fn quote(line: &mut String, start: usize) {
    let is_special = |byte: &u8| matches!(byte, b',' | b'"' | b'\n' | b'\r');
    // All bytes are looked at, several at a time.
    let bytes = line.as_bytes()[start..].iter();
    if bytes.fold(false, |any, byte| any | is_special(byte)) {
        let quoted = line[start..].replace('"', "\"\"");
        line.truncate(start);
        line.push('"');
        line.push_str(&quoted);
        line.push('"');
    }
}

/// Ends the line that begins at `start`. An empty line would be no row.
fn end_line(line: &mut String, start: usize) {
    line.push_str(if line.len() == start { "\"\"\n" } else { "\n" });
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

    use super::*;
    use crate::report::cell::{Joined, Time};
    use crate::report::column::Columns;
    use crate::report::number::rfc3339;
    use crate::report::parallel_rows::ParallelWriter;
    use crate::zone::Zone;
    use proptest::prelude::*;

    type Row = (String, Option<u64>, i64, Vec<u64>);

    fn columns() -> Columns<Row> {
        Columns::default()
            .field("text", |row: &Row| row.0.clone())
            .field("number", |row| row.1)
            .field("time_ns", |row| Time(row.2))
            .field("list", |row| Joined(row.3.clone(), ","))
            .written("written", Kind::Text, true, |row, text| {
                text.push_str(&row.0);
                row.1.is_some()
            })
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
                &rfc3339(*time_ns, Zone::UTC),
                &list.join(","),
                &number.map_or(String::new(), |_| text.clone()),
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

    fn writer<R: Send + Sync + 'static>(columns: Columns<R>) -> ParallelWriter<Vec<u8>, R> {
        let frame = Frame::new("rows/1", "rows");
        ParallelWriter::begin(FORMAT, frame, columns, 1, Vec::new()).unwrap()
    }

    proptest! {
        #[test]
        fn lines_are_those_of_the_csv_crate(
            rows in prop::collection::vec(row(), 0..20),
            times in 1_usize..400,
            threads in 0_usize..4,
        ) {
            let rows: Vec<Row> = rows.iter().cycle().take(rows.len() * times).cloned().collect();
            let mut csv = writer(columns());
            csv.start(threads);
            for row in &rows {
                csv.take(row.clone()).unwrap();
            }
            prop_assert_eq!(csv.finish(Vec::new()).unwrap(), expected(&rows));
        }

        #[test]
        fn a_line_with_nothing_is_a_line(rows in prop::collection::vec(any::<Option<u64>>(), 0..5)) {
            let mut csv = writer(Columns::default().field("n", |n: &Option<u64>| *n));
            let mut expected = csv::Writer::from_writer(Vec::new());
            expected.write_record(["n"]).unwrap();
            for row in &rows {
                csv.row(row).unwrap();
                let text = row.map_or(String::new(), |n| n.to_string());
                expected.write_record([text]).unwrap();
            }
            prop_assert_eq!(csv.finish(Vec::new()).unwrap(), expected.into_inner().unwrap());
        }
    }
}
