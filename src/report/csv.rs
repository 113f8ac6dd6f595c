//! CSV: a header, then a line a row; empty fields for what does not exist.

use super::cell::{Cell, Clock};
use super::column::Columns;
use super::number::{rfc3339, seconds};
use std::io::{self, Write};

/// Writes rows as they come.
#[derive(Debug)]
pub(super) struct CsvRows<W: Write> {
    csv: csv::Writer<W>,
}

impl<W: Write> CsvRows<W> {
    pub(super) fn begin<R>(out: W, columns: &Columns<R>) -> io::Result<Self> {
        let mut csv = csv::Writer::from_writer(out);
        let names = columns.text_names();
        csv.write_record(names.iter().map(|name| name.as_bytes()))
            .map_err(cause)?;
        Ok(Self { csv })
    }

    pub(super) fn row<R>(&mut self, columns: &Columns<R>, row: &R) -> io::Result<()> {
        let Cell::Object(fields) = columns.object_of(row) else {
            return Ok(());
        };
        for (_, cell) in fields {
            let written = match &cell {
                Cell::Text(text) => self.csv.write_field(text.as_bytes()),
                cell => self.csv.write_field(cell.in_text()),
            };
            written.map_err(cause)?;
        }
        self.csv.write_record(None::<&[u8]>).map_err(cause)
    }

    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.csv.flush()
    }

    pub(super) fn finish(self) -> io::Result<W> {
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
        match self {
            Self::Null => String::new(),
            Self::Time(ns, Clock::Nanoseconds) => ns.to_string(),
            Self::Time(ns, Clock::Seconds) => seconds((*ns).into()),
            Self::Time(ns, Clock::Rfc3339) => rfc3339(*ns),
            Self::Seconds(ns) => seconds(*ns),
            Self::I64(number) => number.to_string(),
            Self::U64(number) => number.to_string(),
            Self::Decimal(number) => number.to_string(),
            Self::Bool(truth) => truth.to_string(),
            Self::Text(text) => text.clone().into_owned(),
            Self::List(cells, between) => {
                let texts: Vec<String> = cells.iter().map(Self::in_text).collect();
                texts.join(between)
            }
            Self::F64(_) | Self::Whole(_) | Self::Object(_) | Self::Tally(_) => {
                // As in JSON, so that a number is the same in both.
                serde_json::to_string(self).unwrap_or_default()
            }
        }
    }
}
