//! A table in Markdown, with the columns of the CSV.

use super::texts_of;
use crate::report::batch::{Batch, Schema};
use crate::report::format::{Format, Part, ReportFormat};
use crate::report::rows::Frame;
use std::io::{self, Write};

pub(in crate::report) const FORMAT: ReportFormat = ReportFormat {
    name: "markdown",
    help: "The rows of the CSV as a table in Markdown",
    begin: || Box::new(Markdown),
    ..super::csv::FORMAT
};

struct Markdown;

impl Format for Markdown {
    fn begin(&mut self, schema: &Schema, _: &Frame, out: &mut dyn Write) -> io::Result<()> {
        let names: Vec<String> = schema.iter().map(|field| escaped(&field.name)).collect();
        let is_number = schema.iter().map(|field| field.kind.is_number());
        let rules = is_number.map(|is_number| if is_number { "--:" } else { "---" });
        writeln!(out, "| {} |", names.join(" | "))?;
        writeln!(out, "| {} |", rules.collect::<Vec<_>>().join(" | "))
    }

    fn encode(&mut self, batch: &Batch) -> io::Result<Part> {
        let mut lines = String::new();
        for row in 0..batch.rows {
            let cells: Vec<String> = texts_of(batch, row).map(|text| escaped(&text)).collect();
            lines.extend(["| ", &cells.join(" | "), " |\n"]);
        }
        Ok(Part::Bytes(lines.into_bytes()))
    }

    fn fork(&self) -> Box<dyn Format> {
        Box::new(Self)
    }
}

/// Returns the text as Markdown that shows it: in one line, and without markup.
pub(in crate::report) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\n' | '\r' => escaped.push(' '),
            '|' | '\\' | '`' | '*' | '_' | '<' | '>' | '[' | ']' | '~' | '&' => {
                escaped.extend(['\\', letter]);
            }
            letter => escaped.push(letter),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::column::Columns;
    use crate::report::rows::RowWriter;

    #[test]
    fn a_row_is_a_line_whatever_is_in_it() {
        let columns = Columns::default()
            .field("name", |row: &(String, Option<u64>)| row.0.clone())
            .field("in_all", |row| row.1);
        let rows = [("a|b\nc".to_owned(), Some(7)), ("*d*".to_owned(), None)];
        let frame = Frame::new("rows/1", "rows");
        let out = RowWriter::write_all(FORMAT, frame, columns, &rows, Vec::new(), Vec::new());
        let expected = "| name | in\\_all |\n| --- | --: |\n| a\\|b c | 7 |\n| \\*d\\* |  |\n";
        assert_eq!(String::from_utf8(out.unwrap()).unwrap(), expected);
    }
}
