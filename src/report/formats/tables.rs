//! Tables in Markdown and LaTeX, with the columns of the CSV.

use crate::report::batch::{Batch, Schema};
use crate::report::format::{Format, Frame, Part, ReportFormat, Tail};
use std::io::{self, Write};

pub(in crate::report) const MARKDOWN: ReportFormat = ReportFormat {
    name: "markdown",
    help: "The rows of the CSV as a table in Markdown",
    begin: || Box::new(Markup::Markdown),
    ..super::csv::FORMAT
};

pub(in crate::report) const LATEX: ReportFormat = ReportFormat {
    name: "latex",
    help: "The rows of the CSV as a table in LaTeX; of compare a table for a paper",
    begin: || Box::new(Markup::Latex),
    ..super::csv::FORMAT
};

/// A markup of tables.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::report) enum Markup {
    Markdown,
    Latex,
}

impl Markup {
    /// Returns a row of escaped cells.
    pub(in crate::report) fn line(self, cells: &[String]) -> String {
        match self {
            Self::Markdown => format!("| {} |\n", cells.join(" | ")),
            Self::Latex => format!("{} \\\\\n", cells.join(" & ")),
        }
    }

    /// Returns the text as markup that shows it: in one line, with its special characters escaped.
    pub(in crate::report) fn escaped(self, text: &str) -> String {
        let mut escaped = String::with_capacity(text.len());
        for letter in text.chars() {
            match (self, letter) {
                (_, '\n' | '\r') => escaped.push(' '),
                (
                    Self::Markdown,
                    '|' | '\\' | '`' | '*' | '_' | '<' | '>' | '[' | ']' | '~' | '&',
                )
                | (Self::Latex, '&' | '%' | '$' | '#' | '_' | '{' | '}') => {
                    escaped.extend(['\\', letter]);
                }
                (Self::Latex, '\\') => escaped.push_str("\\textbackslash{}"),
                (Self::Latex, '~') => escaped.push_str("\\textasciitilde{}"),
                (Self::Latex, '^') => escaped.push_str("\\textasciicircum{}"),
                (Self::Latex, '<') => escaped.push_str("\\textless{}"),
                (Self::Latex, '>') => escaped.push_str("\\textgreater{}"),
                (Self::Latex, '|') => escaped.push_str("\\textbar{}"),
                // Two would be a dash.
                (Self::Latex, '-') if escaped.ends_with('-') => escaped.push_str("{}-"),
                // A bracket behind the end of a line would be its argument.
                (Self::Latex, '[' | ']') => escaped.extend(['{', letter, '}']),
                (_, letter) => escaped.push(letter),
            }
        }
        escaped
    }
}

impl Format for Markup {
    fn begin(&mut self, schema: &Schema, _: &Frame, out: &mut dyn Write) -> io::Result<()> {
        let names: Vec<String> = schema.iter().map(|field| self.escaped(&field.name)).collect();
        let names = self.line(&names);
        let is_number = schema.iter().map(|field| field.kind.is_number());
        match self {
            Self::Markdown => {
                let rules = is_number.map(|is_number| if is_number { "--:" } else { "---" });
                writeln!(out, "{names}| {} |", rules.collect::<Vec<_>>().join(" | "))
            }
            Self::Latex => {
                let places = is_number.map(|is_number| if is_number { 'r' } else { 'l' });
                let places: String = places.collect();
                writeln!(out, "\\begin{{tabular}}{{{places}}}\n\\hline\n{names}\\hline")
            }
        }
    }

    fn encode(&mut self, batch: &Batch) -> io::Result<Part> {
        let mut lines = String::new();
        for row in 0..batch.rows {
            let cells: Vec<String> =
                super::texts_of(batch, row).map(|text| self.escaped(&text)).collect();
            lines += &self.line(&cells);
        }
        Ok(Part::new(lines.into_bytes()))
    }

    fn end(&mut self, _: Frame, _: Tail, out: &mut dyn Write) -> io::Result<()> {
        match self {
            Self::Markdown => Ok(()),
            Self::Latex => writeln!(out, "\\hline\n\\end{{tabular}}"),
        }
    }

    fn fork(&self) -> Box<dyn Format> {
        Box::new(*self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::column::Columns;
    use crate::report::rows::RowWriter;

    fn table(format: ReportFormat, rows: &[(String, Option<u64>)]) -> String {
        let columns = Columns::default()
            .field("name", |row: &(String, Option<u64>)| row.0.clone())
            .field("in_all", |row| row.1);
        let frame = Frame::new("rows/1", "rows");
        let out = RowWriter::write_all(format, frame, columns, rows, Vec::new(), Vec::new());
        String::from_utf8(out.unwrap()).unwrap()
    }

    #[test]
    fn a_row_is_a_line_of_markdown_whatever_is_in_it() {
        let rows = [("a|b\nc".to_owned(), Some(7)), ("*d*".to_owned(), None)];
        let expected = "| name | in\\_all |\n| --- | --: |\n| a\\|b c | 7 |\n| \\*d\\* |  |\n";
        assert_eq!(table(MARKDOWN, &rows), expected);
    }

    #[test]
    fn a_row_is_a_line_of_latex_whatever_is_in_it() {
        let rows = [("50 % & more".to_owned(), Some(7)), ("[a]\\".to_owned(), None)];
        let expected = "\\begin{tabular}{lr}\n\\hline\nname & in\\_all \\\\\n\\hline\n\
            50 \\% \\& more & 7 \\\\\n{[}a{]}\\textbackslash{} &  \\\\\n\\hline\n\\end{tabular}\n";
        assert_eq!(table(LATEX, &rows), expected);
    }
}
