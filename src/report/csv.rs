//! CSV: a header, then a line a row; empty fields for what does not exist.

use super::cell::{Cell, Clock, twin_of};
use super::column::Columns;
use super::number::{seconds, write_rfc3339};
use std::fmt::Write as _;
use std::io::{self, Write};

/// Writes rows as they come. The header comes with the first one, or at the end: a result that is dropped before it has any leaves
/// nothing behind.
#[derive(Debug)]
pub(super) struct CsvRows<W: Write> {
    csv: csv::Writer<W>,
    has_header: bool,
    /// Memory of a field, kept so that none is allocated for a row.
    field: String,
}

impl<W: Write> CsvRows<W> {
    pub(super) fn begin(out: W) -> Self {
        Self {
            csv: csv::Writer::from_writer(out),
            has_header: false,
            field: String::new(),
        }
    }

    fn header<R>(&mut self, columns: &Columns<R>) -> io::Result<()> {
        if std::mem::replace(&mut self.has_header, true) {
            return Ok(());
        }
        let names = columns.text_names();
        let names = names.iter().map(|name| name.as_bytes());
        self.csv.write_record(names).map_err(cause)
    }

    pub(super) fn row<R>(&mut self, columns: &Columns<R>, row: &R) -> io::Result<()> {
        self.header(columns)?;
        for column in &columns.0 {
            let cell = column.cell(row);
            self.field(&cell)?;
            if let Some(second) = twin_of(&column.kind, &cell) {
                self.field(&second)?;
            }
        }
        self.csv.write_record(None::<&[u8]>).map_err(cause)
    }

    fn field(&mut self, cell: &Cell) -> io::Result<()> {
        let written = if let Cell::Text(text) = cell {
            self.csv.write_field(text.as_bytes())
        } else {
            self.field.clear();
            cell.write_text(&mut self.field);
            self.csv.write_field(&self.field)
        };
        written.map_err(cause)
    }

    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.csv.flush()
    }

    pub(super) fn finish<R>(mut self, columns: &Columns<R>) -> io::Result<W> {
        self.header(columns)?;
        self.csv
            .into_inner()
            .map_err(csv::IntoInnerError::into_error)
    }
}

/// The failure of the writer itself, of its own kind: a closed pipe must be seen as one.
fn cause(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}

impl Cell {
    /// As a text by itself; nothing for null.
    pub(super) fn in_text(&self) -> String {
        let mut text = String::new();
        self.write_text(&mut text);
        text
    }

    /// Appends it as a text by itself.
    fn write_text(&self, out: &mut String) {
        let written = match self {
            Self::Null => Ok(()),
            Self::Time(ns, Clock::Nanoseconds) => write!(out, "{ns}"),
            Self::Time(ns, Clock::Seconds) => out.write_str(&seconds((*ns).into())),
            Self::Time(ns, Clock::Rfc3339) => {
                write_rfc3339(*ns, out);
                Ok(())
            }
            Self::Seconds(ns) => out.write_str(&seconds(*ns)),
            Self::I64(number) => write!(out, "{number}"),
            Self::U64(number) => write!(out, "{number}"),
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
