//! Rows of a result in one of the formats for programs, written as they come.

#[cfg(feature = "arrow")]
use super::arrow_stream::ArrowStream;
use super::cell::{Cell, Kind, Name};
use super::column::{Cells, Columns};
use super::crew::LazyRows;
use super::csv::CsvRows;
use super::format::ReportFormat;
use super::json::JsonLines;
#[cfg(feature = "arrow")]
use super::json::{Layout, write_document};
#[cfg(feature = "parquet")]
use super::parquet::ParquetTable;
use super::values::RowBatch;
use crate::zone::Zone;
use std::io::{self, Write};
use std::ops::Range;
use std::sync::Arc;

/// What stands around the rows in JSON and JSON lines.
#[derive(Debug)]
pub(super) struct Frame {
    /// What comes first: name and version of the schema, and what the result depends on.
    pub(super) head: Vec<(&'static str, Cell)>,
    /// The name of the rows in a document.
    pub(super) rows: &'static str,
    /// And of one of them in a line.
    pub(super) row: &'static str,
    /// What comes last.
    pub(super) tail: Vec<Section>,
    /// What stands between the parts of a document.
    pub(super) between: &'static str,
    /// Lines are of rows only, without a field `record`.
    pub(super) rows_only: bool,
    /// The zone in which texts show times.
    pub(super) zone: Zone,
    /// The document of the result, where rows in a stream are followed by it and it says more than
    /// head and tail.
    pub(super) document: Option<Cell>,
}

impl Frame {
    /// Nothing but the rows.
    pub(super) fn of_rows(schema: &'static str, rows: &'static str, row: &'static str) -> Self {
        Self {
            head: vec![("schema", Cell::Text(schema.into()))],
            rows,
            row,
            tail: Vec::new(),
            between: "\n",
            rows_only: false,
            zone: Zone::UTC,
            document: None,
        }
    }

    /// With the texts of times in this zone.
    pub(super) fn in_zone(self, zone: Zone) -> Self {
        Self { zone, ..self }
    }

    /// With this document behind the rows, if the format has one there.
    pub(super) fn followed_by(
        mut self,
        format: ReportFormat,
        document: impl FnOnce() -> Cell,
    ) -> Self {
        self.document = format.is_followed().then(document);
        self
    }

    /// The document that follows a stream of rows: that of the result if it has one, else all that
    /// stands around the rows.
    #[cfg(feature = "arrow")]
    fn into_document(self, tail: Vec<Cell>) -> Cell {
        let head = self.head.into_iter();
        let tail = self.tail.iter().map(|section| section.name).zip(tail);
        let fields = head.chain(tail).map(|(name, cell)| (name.into(), cell));
        self.document.unwrap_or_else(|| Cell::Object(fields.collect()))
    }

    /// With a field behind the schema.
    pub(super) fn with(mut self, name: &'static str, cell: Cell) -> Self {
        self.head.push((name, cell));
        self
    }
}

/// A part of a document.
#[derive(Debug)]
pub(super) struct Section {
    /// Its name in a document.
    pub(super) name: &'static str,
    /// The name of a line with it, or with one of its objects, and of the field there.
    pub(super) record: &'static str,
    /// The fields of the object, or of each.
    pub(super) kinds: Vec<(Name, Kind)>,
}

/// Writes rows.
#[derive(Debug)]
pub(super) struct RowWriter<W: Write, R> {
    columns: Arc<Columns<R>>,
    frame: Frame,
    form: Form<W, R>,
}

#[derive(Debug)]
enum Form<W: Write, R> {
    Csv(Box<CsvRows<W, R>>),
    Json {
        out: W,
        any: bool,
    },
    JsonLines(JsonLines<W>),
    #[cfg(feature = "parquet")]
    Parquet(Box<ParquetTable<W, R>>),
    #[cfg(feature = "arrow")]
    ArrowStream(Box<ArrowStream<W>>),
}

impl<W: Write, R> RowWriter<W, R> {
    /// Begins. A table for people has a writer of its own, so here it is CSV.
    pub(super) fn begin(
        format: ReportFormat,
        frame: Frame,
        columns: Columns<R>,
        mut out: W,
    ) -> io::Result<Self> {
        let columns = if format.is_flat() { columns.flat() } else { columns };
        let columns = Arc::new(columns.in_zone(frame.zone));
        let form = match format {
            ReportFormat::Table | ReportFormat::Csv => {
                Form::Csv(Box::new(CsvRows::begin(out, &columns)))
            }
            #[cfg(feature = "parquet")]
            ReportFormat::Parquet => Form::Parquet(Box::new(ParquetTable::begin(out, &columns)?)),
            #[cfg(not(feature = "parquet"))]
            ReportFormat::Parquet => {
                let reason = "this build of flowsieve cannot write Parquet";
                return Err(io::Error::new(io::ErrorKind::Unsupported, reason));
            }
            #[cfg(feature = "arrow")]
            ReportFormat::ArrowStream => {
                Form::ArrowStream(Box::new(ArrowStream::begin(out, &columns)?))
            }
            ReportFormat::Json => {
                let mut open = "{";
                for (name, cell) in &frame.head {
                    write!(out, "{open}\"{name}\":")?;
                    serde_json::to_writer(&mut out, cell)?;
                    write!(out, ",{}", frame.between)?;
                    open = "";
                }
                write!(out, "\"{}\":[", frame.rows)?;
                Form::Json { out, any: false }
            }
            ReportFormat::JsonLines if frame.rows_only => Form::JsonLines(JsonLines::bare(out)),
            ReportFormat::JsonLines => {
                let mut records = vec![(frame.row, columns.kinds())];
                records.extend(frame.tail.iter().map(Section::record));
                Form::JsonLines(JsonLines::begin(out, &frame.head, &records)?)
            }
        };
        Ok(Self { columns, frame, form })
    }

    /// Writes a row.
    pub(super) fn row(&mut self, row: &R) -> io::Result<()> {
        match &mut self.form {
            Form::Csv(csv) => csv.row(row),
            #[cfg(feature = "parquet")]
            Form::Parquet(table) => table.row(&self.columns, row),
            Form::Json { out, any } => {
                out.write_all(if *any { b",\n" } else { b"\n" })?;
                *any = true;
                Ok(serde_json::to_writer(out, &self.columns.object_of(row))?)
            }
            Form::JsonLines(lines) => lines.line(self.frame.row, self.columns.object_of(row)),
            #[cfg(feature = "arrow")]
            Form::ArrowStream(stream) => stream.row(&self.columns, row),
        }
    }

    /// Writes a row, in several threads if there are such.
    pub(super) fn take(&mut self, row: R) -> io::Result<()> {
        match &mut self.form {
            Form::Csv(csv) => csv.take(row),
            #[cfg(feature = "parquet")]
            Form::Parquet(table) => table.take(&self.columns, row),
            _ => self.row(&row),
        }
    }

    /// How many rows that are made where they are wanted may come next; none if rows have to be
    /// made here.
    pub(super) fn lazy_rows(&self) -> Option<usize> {
        match &self.form {
            Form::Csv(csv) => csv.lazy_rows(),
            #[cfg(feature = "parquet")]
            Form::Parquet(table) => table.lazy_rows(),
            _ => None,
        }
    }

    /// Writes so many rows, which are made in another thread.
    pub(super) fn lazy(&mut self, count: usize, rows: LazyRows<R>) -> io::Result<()> {
        match &mut self.form {
            Form::Csv(csv) => csv.lazy(count, rows),
            #[cfg(feature = "parquet")]
            Form::Parquet(table) => table.lazy(count, rows),
            _ => unreachable!("a form without threads makes its rows itself"),
        }
    }

    /// Waits until all rows are made that other threads make.
    pub(super) fn settle(&mut self) -> io::Result<()> {
        match &mut self.form {
            Form::Csv(csv) => csv.settle(),
            #[cfg(feature = "parquet")]
            Form::Parquet(table) => table.settle(),
            _ => Ok(()),
        }
    }

    /// Hands on what waits in the writer, but for a row group of Parquet, which is written when it
    /// is full.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        match &mut self.form {
            Form::Csv(csv) => csv.flush(),
            Form::Json { out, .. } => out.flush(),
            Form::JsonLines(lines) => lines.out().flush(),
            #[cfg(feature = "parquet")]
            Form::Parquet(_) => Ok(()),
            #[cfg(feature = "arrow")]
            Form::ArrowStream(stream) => stream.flush(),
        }
    }

    /// Ends with the sections that were announced, in their order, and gives the writer back.
    pub(super) fn finish(self, tail: Vec<Cell>) -> io::Result<W> {
        let tail = tail.into_iter().map(|cell| cell.in_zone(self.frame.zone));
        let tail: Vec<Cell> = tail.collect();
        let between = self.frame.between;
        let sections = |tail| self.frame.tail.iter().zip::<Vec<Cell>>(tail);
        match self.form {
            Form::Csv(csv) => csv.finish(),
            #[cfg(feature = "parquet")]
            Form::Parquet(table) => table.finish(),
            Form::Json { mut out, .. } => {
                write!(out, "]")?;
                for (section, cell) in sections(tail) {
                    write!(out, ",{between}\"{}\":", section.name)?;
                    serde_json::to_writer(&mut out, &cell)?;
                }
                writeln!(out, "}}")?;
                Ok(out)
            }
            #[cfg(feature = "arrow")]
            Form::ArrowStream(stream) => {
                let mut out = stream.finish()?;
                let document = self.frame.into_document(tail);
                write_document(&mut out, Layout::Compact, &document)?;
                Ok(out)
            }
            Form::JsonLines(lines) if self.frame.rows_only => Ok(lines.finish()),
            Form::JsonLines(mut lines) => {
                for (section, cell) in sections(tail) {
                    section.write_lines(cell, &mut lines)?;
                }
                Ok(lines.finish())
            }
        }
    }
}

/// Writes rows of which there are few: they become cells first, so that the writer is compiled once
/// for all of them.
#[derive(Debug)]
pub(super) struct CellRows<W: Write, R> {
    columns: Columns<R>,
    writer: RowWriter<W, Cells>,
}

impl<W: Write, R> CellRows<W, R> {
    /// Begins.
    pub(super) fn begin(
        format: ReportFormat,
        frame: Frame,
        columns: Columns<R>,
        out: W,
    ) -> io::Result<Self> {
        let mut columns = columns.in_zone(frame.zone);
        if format.is_flat() {
            columns = columns.flat();
        }
        let writer = RowWriter::begin(format, frame, columns.of_cells(), out)?;
        Ok(Self { columns, writer })
    }

    /// Writes a row.
    pub(super) fn row(&mut self, row: &R) -> io::Result<()> {
        self.writer.row(&self.columns.cells(row))
    }

    /// Hands on what waits, as [`RowWriter::flush`] does.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }

    /// Ends with the sections that were announced, in their order, and gives the writer back.
    pub(super) fn finish(self, tail: Vec<Cell>) -> io::Result<W> {
        self.writer.finish(tail)
    }

    /// Writes rows that are there already, and ends.
    pub(super) fn write_all<'a>(
        format: ReportFormat,
        frame: Frame,
        columns: Columns<R>,
        rows: impl IntoIterator<Item = &'a R>,
        tail: Vec<Cell>,
        out: W,
    ) -> io::Result<W>
    where
        R: 'a,
    {
        let mut writer = Self::begin(format, frame, columns, out)?;
        for row in rows {
            writer.row(row)?;
        }
        writer.finish(tail)
    }
}

impl<W: Write, R: Send + 'static> RowWriter<W, R> {
    /// With so many threads that make of rows what is written, where the format has a way to do so.
    pub(super) fn shared_among(self, threads: usize) -> io::Result<Self> {
        let form = match self.form {
            Form::Csv(csv) => Form::Csv(Box::new(csv.shared_among(threads)?)),
            #[cfg(feature = "parquet")]
            Form::Parquet(table) => {
                Form::Parquet(Box::new(table.shared_among(threads, &self.columns)))
            }
            form => form,
        };
        Ok(Self { form, ..self })
    }
}

impl<W: Write, R: RowBatch + Send + 'static> RowWriter<W, R> {
    /// The same for rows in batches.
    pub(super) fn batches_among(self, threads: usize) -> io::Result<Self> {
        let form = match self.form {
            Form::Csv(csv) => Form::Csv(Box::new(csv.batches_among(threads)?)),
            #[cfg(feature = "parquet")]
            Form::Parquet(table) => {
                Form::Parquet(Box::new(table.batches_among(threads, &self.columns)))
            }
            form => form,
        };
        Ok(Self { form, ..self })
    }
}

impl<W: Write, R: RowBatch> RowWriter<W, R> {
    /// With a thread for what costs most in writing.
    pub(super) fn apart(self) -> Self {
        let form = match self.form {
            #[cfg(feature = "parquet")]
            Form::Parquet(table) => Form::Parquet(Box::new(table.apart(&self.columns))),
            form => form,
        };
        Self { form, ..self }
    }

    /// Writes rows of a batch.
    pub(super) fn rows(&mut self, batch: &mut R, range: Range<usize>) -> io::Result<()> {
        #[cfg(feature = "parquet")]
        if let Form::Parquet(table) = &mut self.form {
            return table.rows(&self.columns, batch, range);
        }
        #[cfg(feature = "arrow")]
        if let Form::ArrowStream(stream) = &mut self.form {
            return stream.rows(&self.columns, batch, range);
        }
        range.into_iter().try_for_each(|row| {
            batch.go_to(row);
            self.row(batch)
        })
    }
}

impl Section {
    /// A part that is an object of these columns, or a list of such.
    pub(super) fn of<S>(name: &'static str, record: &'static str, columns: &Columns<S>) -> Self {
        Self { name, record, kinds: columns.kinds() }
    }

    /// The fields of its lines: one, with an object.
    pub(super) fn record(&self) -> (&'static str, Vec<(Name, Kind)>) {
        let kind = Kind::Object(self.kinds.clone());
        (self.record, vec![(Name::Borrowed(self.record), kind)])
    }

    /// Writes its line, or one for each of its objects.
    pub(super) fn write_lines<W: Write>(
        &self,
        cell: Cell,
        lines: &mut JsonLines<W>,
    ) -> io::Result<()> {
        let cells = match cell {
            Cell::List(cells, _) => cells,
            cell => vec![cell],
        };
        cells.into_iter().try_for_each(|cell| {
            let field = vec![(Name::Borrowed(self.record), cell)];
            lines.line(self.record, Cell::Object(field))
        })
    }
}
