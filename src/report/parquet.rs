//! Tables of results as Parquet files, written as rows come.
//!
//! Rows are gathered by column and written as a row group when there are enough of them, so a table of
//! any length needs bounded memory. Pages are compressed by snappy, which every reader knows. Encoding a row group costs as much
//! as decoding its packets, so a table of many rows has a thread for it ([`ParquetTable::apart`]).

use super::cell::{Cell, Kind};
use super::column::{Column, Columns};
use super::values::{RowBatch, Values as Many};
use bytes::Bytes;
use parquet::basic::{Compression, LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{ColumnPath, Type};
use std::fmt;
use std::io::{self, Write};
use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

/// Rows of a row group.
const GROUP_ROWS: usize = 1 << 16;

/// Rows of a batch that are appended together. Whether a row group is full is asked behind each of them, so that row groups do not
/// depend on how rows were divided into batches.
const CHUNK_ROWS: usize = 256;

/// Bytes of text after which a row group is written although it has fewer rows.
const GROUP_TEXT_BYTES: usize = 16 << 20;

/// Writes a table.
pub(super) struct ParquetTable<W: Write> {
    encoder: Encoder,
    out: W,
    columns: Vec<Buffer>,
    rows: usize,
    text_bytes: usize,
    /// Row groups are encoded in a thread of their own.
    is_apart: bool,
}

/// What writes row groups into memory, from where they go to `out`: so failures of `out` stay what they are, and it need not be able
/// to go to another thread.
type File = SerializedFileWriter<Vec<u8>>;

/// Where the file is.
enum Encoder {
    /// Nothing is being encoded. The columns are those of the group before last, whose memory is used again.
    Here(Box<File>, Vec<Buffer>),
    /// A group is being encoded.
    Thread(JoinHandle<io::Result<(Box<File>, Vec<Buffer>)>>),
    /// Encoding failed.
    Gone,
}

impl<W: Write> fmt::Debug for ParquetTable<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ParquetTable")
            .field("columns", &self.columns)
            .field("rows", &self.rows)
            .finish_non_exhaustive()
    }
}

impl<W: Write> ParquetTable<W> {
    /// Begins a table with these columns.
    pub(super) fn begin<R>(out: W, columns: &Columns<R>) -> io::Result<Self> {
        let columns = &columns.0;
        let fields = columns.iter().map(|column| field(column).map(Arc::new));
        let fields = fields.collect::<Result<_, _>>().map_err(io::Error::other)?;
        let schema = Type::group_type_builder("table").with_fields(fields);
        let schema = Arc::new(schema.build().map_err(io::Error::other)?);
        let mut properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_created_by(concat!("flowsieve ", env!("CARGO_PKG_VERSION")).to_owned());
        for column in columns {
            // Hardly two packets have the same time, so a dictionary of times only costs.
            if column.is_bulk() && matches!(column.kind, Kind::Time(_)) {
                let path = ColumnPath::from(column.name.as_ref());
                properties = properties.set_column_dictionary_enabled(path, false);
            }
        }
        let properties = Arc::new(properties.build());
        let file = SerializedFileWriter::new(Vec::new(), schema, properties);
        let file = Box::new(file.map_err(io::Error::other)?);
        let spare = columns.iter().map(Buffer::new).collect();
        Ok(Self {
            encoder: Encoder::Here(file, spare),
            is_apart: false,
            out,
            columns: columns.iter().map(Buffer::new).collect(),
            rows: 0,
            text_bytes: 0,
        })
    }

    /// Encodes row groups in a thread, each while the next one is gathered.
    pub(super) fn apart(mut self) -> Self {
        self.is_apart = true;
        self
    }

    /// Appends a row.
    ///
    /// # Panics
    ///
    /// If a cell is missing in a column that is not nullable.
    pub(super) fn row<R>(&mut self, columns: &Columns<R>, row: &R) -> io::Result<()> {
        for (buffer, column) in self.columns.iter_mut().zip(&columns.0) {
            self.text_bytes += buffer.push(column.cell(row));
        }
        self.rows += 1;
        if self.rows == GROUP_ROWS || self.text_bytes >= GROUP_TEXT_BYTES {
            self.write_group()?;
        }
        Ok(())
    }

    /// Appends rows of a batch.
    ///
    /// # Panics
    ///
    /// If a value is missing in a column that is not nullable.
    pub(super) fn rows<R: RowBatch>(
        &mut self,
        columns: &Columns<R>,
        batch: &mut R,
        range: Range<usize>,
    ) -> io::Result<()> {
        let mut next = range.start;
        while next < range.end {
            let chunk = CHUNK_ROWS - self.rows % CHUNK_ROWS;
            let end = range.end.min(next + chunk);
            for (buffer, column) in self.columns.iter_mut().zip(&columns.0) {
                if let Some(values) = column.values(batch) {
                    self.text_bytes += buffer.extend(values, next..end);
                    continue;
                }
                for row in next..end {
                    batch.go_to(row);
                    self.text_bytes += buffer.push(column.cell(batch));
                }
            }
            self.rows += end - next;
            next = end;
            let is_full = self.rows == GROUP_ROWS || self.text_bytes >= GROUP_TEXT_BYTES;
            if is_full && self.rows.is_multiple_of(CHUNK_ROWS) {
                self.write_group()?;
            }
        }
        Ok(())
    }

    /// Ends the table and gives the writer back, flushed.
    pub(super) fn finish(mut self) -> io::Result<W> {
        if self.rows > 0 {
            self.write_group()?;
        }
        let (file, _) = self.encoded()?;
        let end = file.into_inner().map_err(io::Error::other)?;
        self.out.write_all(&end)?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn write_group(&mut self) -> io::Result<()> {
        let (file, spare) = self.encoded()?;
        let group = std::mem::replace(&mut self.columns, spare);
        self.rows = 0;
        self.text_bytes = 0;
        if self.is_apart {
            let encoding = thread::Builder::new().name("parquet".to_owned());
            self.encoder = Encoder::Thread(encoding.spawn(move || encode(file, group))?);
        } else {
            let (file, spare) = encode(file, group)?;
            self.encoder = Encoder::Here(file, spare);
            let (file, spare) = self.encoded()?;
            self.encoder = Encoder::Here(file, spare);
        }
        Ok(())
    }

    /// Waits for the group that is being encoded, and writes it.
    fn encoded(&mut self) -> io::Result<(Box<File>, Vec<Buffer>)> {
        let (mut file, spare) = match std::mem::replace(&mut self.encoder, Encoder::Gone) {
            Encoder::Here(file, spare) => (file, spare),
            Encoder::Thread(thread) => {
                thread.join().unwrap_or_else(|panic| resume_unwind(panic))?
            }
            Encoder::Gone => return Err(io::Error::other("the table cannot be continued")),
        };
        self.out.write_all(file.inner())?;
        file.inner_mut().clear();
        Ok((file, spare))
    }
}

/// Encodes a row group into the memory of the file; the columns are empty afterwards.
fn encode(mut file: Box<File>, mut columns: Vec<Buffer>) -> io::Result<(Box<File>, Vec<Buffer>)> {
    let mut group = file.next_row_group().map_err(io::Error::other)?;
    for column in &mut columns {
        column.write(&mut group).map_err(io::Error::other)?;
    }
    group.close().map_err(io::Error::other)?;
    file.flush()?;
    Ok((file, columns))
}

fn field<R>(column: &Column<R>) -> Result<Type, ParquetError> {
    let (physical, logical) = match column.kind {
        Kind::I64 => (Physical::INT64, None),
        Kind::Time(_) => (
            Physical::INT64,
            Some(LogicalType::timestamp(true, TimeUnit::NANOS)),
        ),
        Kind::U64 => (Physical::INT64, Some(LogicalType::integer(64, false))),
        Kind::Bool => (Physical::BOOLEAN, None),
        Kind::F64 | Kind::Decimal | Kind::Whole | Kind::Seconds => (Physical::DOUBLE, None),
        Kind::Text | Kind::List(_) | Kind::Object(_) | Kind::Tally => {
            (Physical::BYTE_ARRAY, Some(LogicalType::String))
        }
    };
    Type::primitive_type_builder(&column.name, physical)
        .with_logical_type(logical)
        .with_repetition(if column.nullable {
            Repetition::OPTIONAL
        } else {
            Repetition::REQUIRED
        })
        .build()
}

/// The values of a column that wait for their row group, and for each row whether it has one.
#[derive(Debug)]
struct Buffer {
    name: String,
    nullable: bool,
    values: Values,
    /// 1 for a value, 0 for none; empty if the column is not nullable.
    present: Vec<i16>,
}

#[derive(Debug)]
enum Values {
    Whole(Vec<i64>),
    Float(Vec<f64>),
    Bool(Vec<bool>),
    Text(Vec<ByteArray>),
}

impl Buffer {
    fn new<R>(column: &Column<R>) -> Self {
        Self {
            name: column.name.clone().into_owned(),
            nullable: column.nullable,
            values: match column.kind {
                Kind::I64 | Kind::Time(_) | Kind::U64 => Values::Whole(Vec::new()),
                Kind::F64 | Kind::Decimal | Kind::Whole | Kind::Seconds => {
                    Values::Float(Vec::new())
                }
                Kind::Bool => Values::Bool(Vec::new()),
                Kind::Text | Kind::List(_) | Kind::Object(_) | Kind::Tally => {
                    Values::Text(Vec::new())
                }
            },
            present: Vec::new(),
        }
    }

    /// Takes a cell; how many bytes of text it has.
    fn push(&mut self, cell: Cell) -> usize {
        if self.nullable {
            self.present.push(i16::from(cell != Cell::Null));
        }
        match (&mut self.values, cell) {
            (_, Cell::Null) => assert!(self.nullable, "{}: there is no value", self.name),
            (Values::Whole(values), Cell::I64(value) | Cell::Time(value, _)) => values.push(value),
            // Unsigned numbers lie in the same 64 bits; the logical type says how to read them.
            (Values::Whole(values), Cell::U64(value)) => values.push(value.cast_signed()),
            (
                Values::Float(values),
                Cell::F64(value) | Cell::Decimal(value) | Cell::Whole(value),
            ) => {
                values.push(value);
            }
            (Values::Float(values), Cell::Seconds(ns)) => values.push(ns as f64 / 1e9),
            (Values::Bool(values), Cell::Bool(value)) => values.push(value),
            (Values::Text(values), cell) => {
                let text = cell.in_text();
                let length = text.len();
                values.push(text.into_bytes().into());
                return length;
            }
            (_, cell) => panic!("{}: {cell:?} is of another kind", self.name),
        }
        0
    }

    /// Takes values of these rows; how many bytes of text they have.
    fn extend(&mut self, values: Many<'_>, range: Range<usize>) -> usize {
        match (&mut self.values, values) {
            (Values::Whole(to), Many::Time(from)) => to.extend_from_slice(&from[range]),
            (Values::Whole(to), Many::U8(from)) => {
                to.extend(from[range].iter().map(|&n| i64::from(n)));
            }
            (Values::Whole(to), Many::U16(from)) => {
                to.extend(from[range].iter().map(|&n| i64::from(n)));
            }
            (Values::Whole(to), Many::U64(from)) => {
                to.extend(from[range].iter().map(|n| n.cast_signed()));
            }
            (Values::Whole(to), Many::OptionalU8(from)) => {
                let from = &from[range];
                self.present
                    .extend(from.iter().map(|n| i16::from(n.is_some())));
                to.extend(from.iter().flatten().map(|&n| i64::from(n)));
            }
            (Values::Whole(to), Many::OptionalU16(from)) => {
                let from = &from[range];
                self.present
                    .extend(from.iter().map(|n| i16::from(n.is_some())));
                to.extend(from.iter().flatten().map(|&n| i64::from(n)));
            }
            (Values::Text(to), Many::Text(from)) => {
                let missing = &from.missing()[range.clone()];
                if self.nullable {
                    self.present
                        .extend(missing.iter().map(|&no| i16::from(!no)));
                } else {
                    assert!(!missing.contains(&true), "{}: there is no value", self.name);
                }
                // One piece of memory for all of them.
                let first = from.start(range.start);
                let end = from.start(range.end);
                let all = Bytes::copy_from_slice(&from.as_one().as_bytes()[first..end]);
                let mut start = 0;
                for (&end, &missing) in from.ends()[range].iter().zip(missing) {
                    let end = end as usize - first;
                    if !missing {
                        to.push(all.slice(start..end).into());
                    }
                    start = end;
                }
                return all.len();
            }
            (_, values) => panic!("{}: {values:?} are of another kind", self.name),
        }
        0
    }

    fn write(
        &mut self,
        group: &mut SerializedRowGroupWriter<'_, Vec<u8>>,
    ) -> Result<(), ParquetError> {
        let present = self.nullable.then_some(self.present.as_slice());
        match &mut self.values {
            Values::Whole(values) => write_column::<Int64Type>(group, values, present)?,
            Values::Float(values) => write_column::<DoubleType>(group, values, present)?,
            Values::Bool(values) => write_column::<BoolType>(group, values, present)?,
            Values::Text(values) => write_column::<ByteArrayType>(group, values, present)?,
        }
        self.present.clear();
        Ok(())
    }
}

fn write_column<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, Vec<u8>>,
    values: &mut Vec<T::T>,
    present: Option<&[i16]>,
) -> Result<(), ParquetError> {
    let mut column = group.next_column()?.expect("a writer for each column");
    column.typed::<T>().write_batch(values, present, None)?;
    column.close()?;
    values.clear();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::cell::Time;
    use super::*;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;

    type Row = (
        i64,
        u64,
        Option<i64>,
        Option<f64>,
        bool,
        Option<&'static str>,
    );

    fn columns() -> Columns<Row> {
        Columns::default()
            .field("time_ns", |row: &Row| Time(row.0))
            .field("number", |row| row.1)
            .field("change", |row| row.2)
            .field("share", |row| row.3)
            .field("late", |row| row.4)
            .field("name", |row| row.5)
    }

    fn read(bytes: Vec<u8>) -> SerializedFileReader<Bytes> {
        SerializedFileReader::new(Bytes::from(bytes)).unwrap()
    }

    #[test]
    fn what_is_written_is_read_back() {
        let mut table = ParquetTable::begin(Vec::new(), &columns()).unwrap();
        for row in [
            (
                -1,
                u64::MAX,
                Some(i64::MIN),
                Some(0.25),
                true,
                Some("a\"<b>\u{e9}"),
            ),
            (i64::MAX, 0, None, None, false, None),
        ] {
            table.row(&columns(), &row).unwrap();
        }
        let file = read(table.finish().unwrap());
        let schema = file.metadata().file_metadata().schema();
        let names: Vec<&str> = schema.get_fields().iter().map(|f| f.name()).collect();
        assert_eq!(
            names,
            ["time_ns", "number", "change", "share", "late", "name"]
        );
        assert_eq!(
            schema.get_fields()[0]
                .get_basic_info()
                .logical_type_ref()
                .cloned(),
            Some(LogicalType::timestamp(true, TimeUnit::NANOS))
        );
        let rows: Vec<Vec<Field>> = file
            .get_row_iter(None)
            .unwrap()
            .map(|row| {
                let row = row.unwrap();
                row.get_column_iter().map(|(_, v)| v.clone()).collect()
            })
            .collect();
        assert_eq!(rows.len(), 2);
        assert_eq!(rows[0][1], Field::ULong(u64::MAX));
        assert_eq!(rows[0][2], Field::Long(i64::MIN));
        assert_eq!(rows[0][3], Field::Double(0.25));
        assert_eq!(rows[0][4], Field::Bool(true));
        assert_eq!(rows[0][5], Field::Str("a\"<b>\u{e9}".to_owned()));
        assert_eq!(rows[1][1], Field::ULong(0));
        assert_eq!(rows[1][2..4], [Field::Null, Field::Null]);
        assert_eq!(rows[1][4..], [Field::Bool(false), Field::Null]);
    }

    #[test]
    fn many_rows_are_several_groups() {
        let columns = Columns::default().field("n", |n: &u64| *n);
        let mut table = ParquetTable::begin(Vec::new(), &columns).unwrap();
        let rows = 2 * GROUP_ROWS as u64 + 7;
        for n in 0..rows {
            table.row(&columns, &n).unwrap();
        }
        let file = read(table.finish().unwrap());
        assert_eq!(file.num_row_groups(), 3);
        let sum: u64 = file
            .get_row_iter(None)
            .unwrap()
            .map(|row| match row.unwrap().get_column_iter().next() {
                Some((_, Field::ULong(n))) => *n,
                other => panic!("{other:?}"),
            })
            .sum();
        assert_eq!(sum, rows * (rows - 1) / 2);
    }

    #[test]
    fn long_texts_are_not_gathered_without_end() {
        let columns = Columns::default().field("text", |text: &String| text.clone());
        let mut table = ParquetTable::begin(Vec::new(), &columns).unwrap();
        let text = "x".repeat(GROUP_TEXT_BYTES / 4);
        for _ in 0..9 {
            table.row(&columns, &text).unwrap();
        }
        let file = read(table.finish().unwrap());
        assert_eq!(file.num_row_groups(), 3);
    }

    #[test]
    fn a_table_without_rows_is_a_table() {
        let table = ParquetTable::begin(Vec::new(), &columns()).unwrap();
        let file = read(table.finish().unwrap());
        assert_eq!(file.metadata().file_metadata().num_rows(), 0);
    }

    #[test]
    fn a_closed_pipe_stays_one() {
        struct Closed;
        impl Write for Closed {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let columns = Columns::default().field("n", |n: &u64| *n);
        let error = ParquetTable::begin(Closed, &columns)
            .and_then(ParquetTable::finish)
            .err()
            .unwrap();
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    }
}
