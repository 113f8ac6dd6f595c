//! A table in LaTeX, with the columns of the CSV.

use super::texts_of;
use crate::report::batch::{Batch, Schema};
use crate::report::format::{Format, Part, ReportFormat};
use crate::report::rows::{Frame, Tail};
use std::io::{self, Write};

pub(in crate::report) const FORMAT: ReportFormat = ReportFormat {
    name: "latex",
    help: "The rows of the CSV as a table in LaTeX; of compare a table for a paper",
    begin: || Box::new(Latex),
    ..super::csv::FORMAT
};

struct Latex;

impl Format for Latex {
    fn begin(&mut self, schema: &Schema, _: &Frame, out: &mut dyn Write) -> io::Result<()> {
        let is_number = schema.iter().map(|field| field.kind.is_number());
        let places: String = is_number.map(|is_number| if is_number { 'r' } else { 'l' }).collect();
        let names: Vec<String> = schema.iter().map(|field| escaped(&field.name)).collect();
        writeln!(out, "\\begin{{tabular}}{{{places}}}\n\\hline")?;
        writeln!(out, "{} \\\\\n\\hline", names.join(" & "))
    }

    fn encode(&mut self, batch: &Batch) -> io::Result<Part> {
        let mut lines = String::new();
        for row in 0..batch.rows {
            let cells: Vec<String> = texts_of(batch, row).map(|text| escaped(&text)).collect();
            lines.extend([&cells.join(" & "), " \\\\\n"]);
        }
        Ok(Part::Bytes(lines.into_bytes()))
    }

    fn end(&mut self, _: Frame, _: Tail, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "\\hline\n\\end{{tabular}}")
    }

    fn fork(&self) -> Box<dyn Format> {
        Box::new(Self)
    }
}

/// Returns the text as LaTeX that prints it.
pub(in crate::report) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\n' | '\r' => escaped.push(' '),
            '&' | '%' | '$' | '#' | '_' | '{' | '}' => escaped.extend(['\\', letter]),
            '\\' => escaped.push_str("\\textbackslash{}"),
            '~' => escaped.push_str("\\textasciitilde{}"),
            '^' => escaped.push_str("\\textasciicircum{}"),
            '<' => escaped.push_str("\\textless{}"),
            '>' => escaped.push_str("\\textgreater{}"),
            '|' => escaped.push_str("\\textbar{}"),
            // A bracket behind the end of a line would be its argument.
            '[' | ']' => escaped.extend(['{', letter, '}']),
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
        let rows = [("50 % & more".to_owned(), Some(7)), ("[a]\\".to_owned(), None)];
        let frame = Frame::new("rows/1", "rows");
        let out = RowWriter::write_all(FORMAT, frame, columns, &rows, Vec::new(), Vec::new());
        let expected = "\\begin{tabular}{lr}\n\\hline\nname & in\\_all \\\\\n\\hline\n\
            50 \\% \\& more & 7 \\\\\n{[}a{]}\\textbackslash{} &  \\\\\n\\hline\n\\end{tabular}\n";
        assert_eq!(String::from_utf8(out.unwrap()).unwrap(), expected);
    }
}
