//! The formats of results. Each is one file that knows no command; a command knows no format.

use super::batch::{Batch, Schema};
use super::cell::Cell;
#[cfg(feature = "arrow")]
use super::formats::arrow;
#[cfg(feature = "toy")]
use super::formats::bars;
#[cfg(feature = "parquet")]
use super::formats::parquet;
use super::formats::{csv, json, tables};
use crate::zone::Zone;
use std::any::Any;
use std::fmt;
use std::io::{self, Write};
use std::path::Path;

/// A format of results: a line of the table of formats. Every command that lists something has all
/// of them.
#[derive(Clone, Copy, Debug)]
pub struct ReportFormat {
    pub(super) name: &'static str,
    pub(super) help: &'static str,
    /// Whether it is for terminals, pipes and files, or only for the latter.
    pub(super) is_binary: bool,
    /// Whether each row can be read by itself, as soon as it is written.
    pub(super) is_line_by_line: bool,
    /// Whether it has neither objects nor lists.
    pub(super) is_flat: bool,
    /// Whether it has a document besides rows.
    pub(super) document: DocumentPlace,
    pub(super) begin: fn() -> Box<dyn Format>,
}

/// Where a format has its document.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum DocumentPlace {
    /// Nothing.
    None,
    /// A document follows the rows.
    #[cfg(feature = "arrow")]
    Behind,
    /// The rows are a part of the document.
    Around,
}

/// The table for people. A command that has none writes CSV.
const TABLE: ReportFormat = ReportFormat {
    name: "table",
    help: "For people",
    is_flat: false,
    is_line_by_line: true,
    ..csv::FORMAT
};

/// All formats.
const FORMATS: &[ReportFormat] = &[
    TABLE,
    csv::FORMAT,
    json::FORMAT,
    json::LINES,
    tables::MARKDOWN,
    tables::LATEX,
    #[cfg(feature = "parquet")]
    parquet::FORMAT,
    #[cfg(feature = "arrow")]
    arrow::FILE,
    #[cfg(feature = "arrow")]
    arrow::STREAM,
    #[cfg(feature = "toy")]
    bars::FORMAT,
];

impl ReportFormat {
    /// For people.
    pub const TABLE: Self = TABLE;
    /// A header, and a line a row.
    pub const CSV: Self = csv::FORMAT;
    /// One document.
    pub const JSON: Self = json::FORMAT;
    /// All formats.
    pub const ALL: &[Self] = FORMATS;

    /// Returns the format with this name.
    pub fn named(name: &str) -> Option<Self> {
        FORMATS.iter().copied().find(|format| format.name == name)
    }

    /// Returns the format that the name of a file ends with, if it is not that of a table.
    pub fn of_name(path: &Path) -> Option<Self> {
        let end = path.extension()?.to_str()?.to_ascii_lowercase();
        let name = match &*end {
            "md" => "markdown",
            "ndjson" => "jsonl",
            "tex" => "latex",
            end => end,
        };
        Self::named(name).filter(|format| !format.is_table())
    }

    /// Returns its name in a command line, which is the end of a file's name as well.
    pub const fn name(self) -> &'static str {
        self.name
    }

    /// Returns what it is, for the help of a command.
    pub const fn help(self) -> &'static str {
        self.help
    }

    /// Whether each row can be read by itself, as soon as it is written.
    pub const fn is_line_by_line(self) -> bool {
        self.is_line_by_line
    }

    /// Whether it is not for a terminal.
    pub const fn is_binary(self) -> bool {
        self.is_binary
    }

    /// Whether it is for people.
    pub fn is_table(self) -> bool {
        self == TABLE
    }

    /// Whether it says what could not be read and what was left out.
    pub fn says_all(self) -> bool {
        self.is_table() || self.has_document()
    }

    /// Whether it has more than rows.
    pub(super) const fn has_document(self) -> bool {
        !matches!(self.document, DocumentPlace::None)
    }

    /// Whether its rows are a part of a document.
    pub(super) const fn is_document(self) -> bool {
        matches!(self.document, DocumentPlace::Around)
    }
}

impl Default for ReportFormat {
    fn default() -> Self {
        TABLE
    }
}

impl PartialEq for ReportFormat {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for ReportFormat {}

impl fmt::Display for ReportFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// An encoded batch of a type of the format: made in any thread, written in order.
pub(super) struct Part(Box<dyn Any + Send>);

impl Part {
    pub(super) fn new(part: impl Any + Send) -> Self {
        Self(Box::new(part))
    }

    /// Returns the part that the same format made.
    pub(super) fn downcast<T: 'static>(self) -> T {
        *self.0.downcast().expect("the format made the part")
    }
}

/// How large batches are.
#[derive(Clone, Copy, Debug)]
pub(super) struct BatchSize {
    /// Rows of a full batch.
    pub(super) rows: usize,
    /// Memory of a batch and of what it becomes.
    pub(super) bytes: u64,
    /// Whether only full batches are written, but for the last one.
    pub(super) is_fixed: bool,
}

/// Writes a result.
pub(super) trait Format: Send {
    /// Returns how large its batches are.
    fn batch_size(&self) -> BatchSize {
        BatchSize { rows: 2048, bytes: 4 << 20, is_fixed: false }
    }

    /// Writes what comes before the rows.
    fn begin(&mut self, schema: &Schema, frame: &Frame, out: &mut dyn Write) -> io::Result<()>;

    /// Encodes rows, in any thread and before or after [`Self::begin`].
    fn encode(&mut self, batch: &Batch) -> io::Result<Part>;

    /// Writes an encoded part: bytes, unless the format says otherwise.
    fn write(&mut self, part: Part, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(&part.downcast::<Vec<u8>>())
    }

    /// Writes what comes behind the rows.
    fn end(&mut self, frame: Frame, tail: Tail, out: &mut dyn Write) -> io::Result<()> {
        let _ = (frame, tail, out);
        Ok(())
    }

    /// Returns another one that encodes in another thread.
    fn fork(&self) -> Box<dyn Format>;
}

/// The parts of a document that are not rows.
#[derive(Clone, Debug)]
pub(super) struct Frame {
    /// Name and version of the schema, and what the result depends on.
    pub(super) head: Vec<(&'static str, Cell)>,
    /// The name of the rows.
    pub(super) rows: &'static str,
    /// The zone in which texts show times.
    pub(super) zone: Zone,
}

/// Sections of a document behind the rows, with their names.
pub(super) type Tail = Vec<(&'static str, Cell)>;

impl Frame {
    /// Returns a frame with the schema alone.
    pub(super) fn new(schema: &'static str, rows: &'static str) -> Self {
        let head = vec![("schema", Cell::Text(schema.into()))];
        Self { head, rows, zone: Zone::UTC }
    }

    /// Sets the zone in which texts show times.
    pub(super) fn in_zone(self, zone: Zone) -> Self {
        Self { zone, ..self }
    }

    /// Adds a field behind the schema.
    pub(super) fn with(mut self, name: &'static str, cell: Cell) -> Self {
        self.head.push((name, cell));
        self
    }

    /// Returns the summary with these sections.
    pub(super) fn summary(self, tail: Tail) -> Summary {
        Summary(self.into_document(tail))
    }

    /// Returns the document without its rows.
    pub(super) fn into_document(self, tail: Tail) -> Cell {
        let fields = self.head.into_iter().chain(tail);
        let fields = fields.map(|(name, cell)| (name.into(), cell.in_zone(self.zone)));
        Cell::Object(fields.collect())
    }
}

/// The document of a result without its rows: what `--summary` writes.
#[derive(Clone, Debug)]
pub struct Summary(Cell);

impl Summary {
    /// Writes it as JSON.
    ///
    /// # Errors
    ///
    /// Writing failed.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        write_document(out, &self.0)
    }
}

/// Writes a document: a line for each of its fields, and for each object of a list.
pub(super) fn write_document(out: &mut dyn Write, document: &Cell) -> io::Result<()> {
    let Cell::Object(fields) = document else {
        unreachable!("a document is an object");
    };
    let mut before = "{";
    for (name, cell) in fields {
        write!(out, "{before}\"{name}\":")?;
        before = ",\n";
        match cell {
            Cell::List(rows, _) if matches!(rows.first(), Some(Cell::Object(_))) => {
                let mut before = "[\n";
                for row in rows {
                    out.write_all(before.as_bytes())?;
                    serde_json::to_writer(&mut *out, row)?;
                    before = ",\n";
                }
                out.write_all(b"]")?;
            }
            cell => serde_json::to_writer(&mut *out, cell)?,
        }
    }
    out.write_all(b"}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::cell::Time;
    use crate::report::column::Columns;
    use crate::report::rows::RowWriter;

    /// The recipe of a column: a line in the list of its result.
    #[test]
    fn a_column_reaches_every_format_from_its_one_line() {
        let columns = || {
            Columns::default()
                .field("start_ns", |row: &(i64, u16)| Time(row.0))
                .field("toy", |row| row.1)
                .doc("a toy")
        };
        for format in ReportFormat::ALL {
            let frame = Frame::new("toys/1", "toys");
            let rows = [(1_000_000_000, 4711)];
            let out =
                RowWriter::write_all(*format, frame, columns(), &rows, Vec::new(), Vec::new());
            let out = out.unwrap();
            let has = |text: &str| out.windows(text.len()).any(|part| part == text.as_bytes());
            assert!(has("toy") && has("start"), "{format}");
            let is_text = !format.is_binary();
            assert!(!is_text || (has("4711") && has("1970-01-01T00:00:01.000000000Z")), "{format}");
        }
    }
}
