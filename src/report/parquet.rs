//! Tables of results as Parquet files: columns as plain data, rows as they come.
//!
//! Rows are gathered by column and written as a row group when there are enough of them, so a table of
//! any length needs bounded memory. Pages are compressed by snappy, which every reader knows.

use parquet::basic::{Compression, LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;
use std::fmt;
use std::io::{self, Write};
use std::sync::Arc;

/// Rows of a row group.
const GROUP_ROWS: usize = 1 << 16;

/// Bytes of text after which a row group is written although it has fewer rows.
const GROUP_TEXT_BYTES: usize = 16 << 20;

/// A column of a table.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Column<'a> {
    /// Its name.
    pub name: &'a str,
    /// What it holds.
    pub kind: ColumnKind,
    /// Whether there may be nothing in it.
    pub nullable: bool,
}

/// What a column holds.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ColumnKind {
    /// Whole numbers with a sign: `INT64`.
    I64,
    /// Nanoseconds since the epoch, UTC: `TIMESTAMP(NANOS, UTC)`; its cells are [`Cell::I64`].
    Timestamp,
    /// Whole numbers: `INT64` of the logical type `INTEGER(64, unsigned)`.
    U64,
    /// `DOUBLE`.
    F64,
    /// `BOOLEAN`.
    Bool,
    /// UTF-8: `STRING`.
    Text,
}

/// A value of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cell<'a> {
    /// Nothing, in a nullable column.
    Null,
    /// For [`ColumnKind::I64`] and [`ColumnKind::Timestamp`].
    I64(i64),
    /// For [`ColumnKind::U64`].
    U64(u64),
    /// For [`ColumnKind::F64`].
    F64(f64),
    /// For [`ColumnKind::Bool`].
    Bool(bool),
    /// For [`ColumnKind::Text`].
    Text(&'a str),
}

impl From<Option<u64>> for Cell<'_> {
    fn from(value: Option<u64>) -> Self {
        value.map_or(Self::Null, Self::U64)
    }
}

impl From<Option<i64>> for Cell<'_> {
    fn from(value: Option<i64>) -> Self {
        value.map_or(Self::Null, Self::I64)
    }
}

impl From<Option<f64>> for Cell<'_> {
    fn from(value: Option<f64>) -> Self {
        value.map_or(Self::Null, Self::F64)
    }
}

impl<'a> From<Option<&'a str>> for Cell<'a> {
    fn from(value: Option<&'a str>) -> Self {
        value.map_or(Self::Null, Self::Text)
    }
}

/// Writes a table.
pub struct ParquetTable<W: Write> {
    /// Writes a row group into memory, from where it goes to `out`: so failures of `out` stay what they
    /// are, and it need not be able to go to another thread.
    file: SerializedFileWriter<Vec<u8>>,
    out: W,
    columns: Vec<Buffer>,
    rows: usize,
    text_bytes: usize,
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
    ///
    /// # Errors
    ///
    /// Writing failed.
    pub fn begin(out: W, columns: &[Column<'_>]) -> io::Result<Self> {
        let fields = columns.iter().map(|column| column.field().map(Arc::new));
        let fields = fields.collect::<Result<_, _>>().map_err(io::Error::other)?;
        let schema = Type::group_type_builder("table").with_fields(fields);
        let schema = Arc::new(schema.build().map_err(io::Error::other)?);
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_created_by(concat!("flowsieve ", env!("CARGO_PKG_VERSION")).to_owned());
        let properties = Arc::new(properties.build());
        Ok(Self {
            file: SerializedFileWriter::new(Vec::new(), schema, properties)
                .map_err(io::Error::other)?,
            out,
            columns: columns.iter().map(Buffer::new).collect(),
            rows: 0,
            text_bytes: 0,
        })
    }

    /// Appends a row: a cell for each column, of its kind.
    ///
    /// # Errors
    ///
    /// Writing failed.
    ///
    /// # Panics
    ///
    /// If the cells are not as many as the columns or of other kinds, or one is missing in a column that
    /// is not nullable.
    pub fn row(&mut self, cells: &[Cell<'_>]) -> io::Result<()> {
        assert_eq!(cells.len(), self.columns.len(), "a cell for each column");
        for (column, cell) in self.columns.iter_mut().zip(cells) {
            if let Cell::Text(text) = cell {
                self.text_bytes += text.len();
            }
            column.push(*cell);
        }
        self.rows += 1;
        if self.rows == GROUP_ROWS || self.text_bytes >= GROUP_TEXT_BYTES {
            self.write_group()?;
        }
        Ok(())
    }

    /// Ends the table and gives the writer back, flushed.
    ///
    /// # Errors
    ///
    /// Writing failed.
    pub fn finish(mut self) -> io::Result<W> {
        if self.rows > 0 {
            self.write_group()?;
        }
        let end = self.file.into_inner().map_err(io::Error::other)?;
        self.out.write_all(&end)?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn write_group(&mut self) -> io::Result<()> {
        let mut group = self.file.next_row_group().map_err(io::Error::other)?;
        for column in &mut self.columns {
            column.write(&mut group).map_err(io::Error::other)?;
        }
        group.close().map_err(io::Error::other)?;
        self.file.flush()?;
        self.out.write_all(self.file.inner())?;
        self.file.inner_mut().clear();
        self.rows = 0;
        self.text_bytes = 0;
        Ok(())
    }
}

impl<'a> Column<'a> {
    /// A column in which every row has a value.
    pub const fn new(name: &'a str, kind: ColumnKind) -> Self {
        Self {
            name,
            kind,
            nullable: false,
        }
    }

    /// A column in which values may be missing.
    pub const fn nullable(name: &'a str, kind: ColumnKind) -> Self {
        Self {
            name,
            kind,
            nullable: true,
        }
    }

    fn field(&self) -> Result<Type, ParquetError> {
        let (physical, logical) = match self.kind {
            ColumnKind::I64 => (Physical::INT64, None),
            ColumnKind::Timestamp => (
                Physical::INT64,
                Some(LogicalType::timestamp(true, TimeUnit::NANOS)),
            ),
            ColumnKind::U64 => (Physical::INT64, Some(LogicalType::integer(64, false))),
            ColumnKind::F64 => (Physical::DOUBLE, None),
            ColumnKind::Bool => (Physical::BOOLEAN, None),
            ColumnKind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        };
        Type::primitive_type_builder(self.name, physical)
            .with_logical_type(logical)
            .with_repetition(if self.nullable {
                Repetition::OPTIONAL
            } else {
                Repetition::REQUIRED
            })
            .build()
    }
}

/// The values of a column that wait for their row group, and for each row whether it has one.
#[derive(Debug)]
struct Buffer {
    name: String,
    kind: ColumnKind,
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
    fn new(column: &Column<'_>) -> Self {
        Self {
            name: column.name.to_owned(),
            kind: column.kind,
            nullable: column.nullable,
            values: match column.kind {
                ColumnKind::I64 | ColumnKind::Timestamp | ColumnKind::U64 => {
                    Values::Whole(Vec::new())
                }
                ColumnKind::F64 => Values::Float(Vec::new()),
                ColumnKind::Bool => Values::Bool(Vec::new()),
                ColumnKind::Text => Values::Text(Vec::new()),
            },
            present: Vec::new(),
        }
    }

    fn push(&mut self, cell: Cell<'_>) {
        if self.nullable {
            self.present.push(i16::from(cell != Cell::Null));
        }
        match (&mut self.values, self.kind, cell) {
            (_, _, Cell::Null) if self.nullable => {}
            (Values::Whole(values), ColumnKind::I64 | ColumnKind::Timestamp, Cell::I64(value)) => {
                values.push(value);
            }
            // Unsigned numbers lie in the same 64 bits; the logical type says how to read them.
            (Values::Whole(values), ColumnKind::U64, Cell::U64(value)) => {
                values.push(value.cast_signed());
            }
            (Values::Float(values), _, Cell::F64(value)) => values.push(value),
            (Values::Bool(values), _, Cell::Bool(value)) => values.push(value),
            (Values::Text(values), _, Cell::Text(value)) => values.push(value.into()),
            (_, kind, cell) => panic!("{}: {cell:?} is no {kind:?}", self.name),
        }
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
    use super::*;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;

    const COLUMNS: [Column; 6] = [
        Column::new("time_ns", ColumnKind::Timestamp),
        Column::new("number", ColumnKind::U64),
        Column::nullable("change", ColumnKind::I64),
        Column::nullable("share", ColumnKind::F64),
        Column::new("late", ColumnKind::Bool),
        Column::nullable("name", ColumnKind::Text),
    ];

    fn read(bytes: Vec<u8>) -> SerializedFileReader<bytes::Bytes> {
        SerializedFileReader::new(bytes::Bytes::from(bytes)).unwrap()
    }

    #[test]
    fn what_is_written_is_read_back() {
        let mut table = ParquetTable::begin(Vec::new(), &COLUMNS).unwrap();
        table
            .row(&[
                Cell::I64(-1),
                Cell::U64(u64::MAX),
                Cell::I64(i64::MIN),
                Cell::F64(0.25),
                Cell::Bool(true),
                Cell::Text("a\"<b>\u{e9}"),
            ])
            .unwrap();
        table
            .row(&[
                Cell::I64(i64::MAX),
                Cell::U64(0),
                Cell::Null,
                Cell::Null,
                Cell::Bool(false),
                Cell::Null,
            ])
            .unwrap();
        let file = read(table.finish().unwrap());
        let schema = file.metadata().file_metadata().schema();
        let names: Vec<&str> = schema.get_fields().iter().map(|f| f.name()).collect();
        assert_eq!(names, COLUMNS.map(|column| column.name));
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
        let columns = [Column::new("n", ColumnKind::U64)];
        let mut table = ParquetTable::begin(Vec::new(), &columns).unwrap();
        let rows = 2 * GROUP_ROWS as u64 + 7;
        for n in 0..rows {
            table.row(&[Cell::U64(n)]).unwrap();
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
        let columns = [Column::new("text", ColumnKind::Text)];
        let mut table = ParquetTable::begin(Vec::new(), &columns).unwrap();
        let text = "x".repeat(GROUP_TEXT_BYTES / 4);
        for _ in 0..9 {
            table.row(&[Cell::Text(&text)]).unwrap();
        }
        let file = read(table.finish().unwrap());
        assert_eq!(file.num_row_groups(), 3);
    }

    #[test]
    fn a_table_without_rows_is_a_table() {
        let table = ParquetTable::begin(Vec::new(), &COLUMNS).unwrap();
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
        let columns = [Column::new("n", ColumnKind::U64)];
        let error = ParquetTable::begin(Closed, &columns)
            .and_then(ParquetTable::finish)
            .err()
            .unwrap();
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    }
}
