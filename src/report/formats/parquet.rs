//! Parquet, by the column writers of the crate `parquet`.
//!
//! Numbers are written as differences (`DELTA_BINARY_PACKED`), texts one after the other with their
//! lengths before them (`DELTA_LENGTH_BYTE_ARRAY`), texts out of a small set as numbers in a
//! dictionary. A row group is a batch: it is encoded in any thread and appended to the file as it
//! is.

use crate::parquet_column::{EncodedColumn, encode_column};
use crate::report::batch::{Array, Batch, Field, Schema, Texts, Values};
use crate::report::cell::Kind;
use crate::report::format::{BatchSize, DocumentPlace, Format, Frame, Part, ReportFormat, Tail};
use bytes::Bytes;
use parquet::basic::{Compression, Encoding, LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type,
};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnDescPtr, ColumnPath, SchemaDescriptor, Type};
use std::io::{self, Write};
use std::sync::Arc;

pub(in crate::report) const FORMAT: ReportFormat = ReportFormat {
    name: "parquet",
    help: "The rows of the CSV, for databases and data frames",
    is_binary: true,
    is_line_by_line: false,
    is_flat: true,
    document: DocumentPlace::None,
    begin: || Box::new(Parquet(None)),
};

/// Rows of a row group.
const GROUP_ROWS: usize = 1 << 16;

/// Memory of a row group, and of what it becomes.
const GROUP_BYTES: u64 = 24 << 20;

/// Values that a column writer gets at once.
const VALUES_AT_ONCE: usize = 4096;

/// The columns of a row group, encoded.
type RowGroup = Vec<EncodedColumn>;

/// Writes into memory, from where row groups go to the output: so failures of the output stay what
/// they are.
struct Parquet(Option<SerializedFileWriter<Vec<u8>>>);

/// The schema of a file, and how its columns are written.
struct Shape {
    schema: Arc<SchemaDescriptor>,
    properties: Arc<WriterProperties>,
}

impl Shape {
    fn new(schema: &Schema) -> Result<Self, ParquetError> {
        let fields = schema.iter().map(|field| parquet_field(field).map(Arc::new));
        let table =
            Type::group_type_builder("table").with_fields(fields.collect::<Result<_, _>>()?);
        let schema_descriptor = SchemaDescriptor::new(Arc::new(table.build()?));
        let properties = WriterProperties::builder()
            .set_created_by(concat!("flowsieve ", env!("CARGO_PKG_VERSION")).to_owned())
            .set_dictionary_enabled(false)
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_offset_index_disabled(true);
        let properties = schema.iter().fold(properties, |properties, field| {
            let path = ColumnPath::from(field.name.as_ref());
            match &field.kind {
                Kind::Bool => properties,
                Kind::Word => properties.set_column_dictionary_enabled(path, true),
                Kind::Time(_) | Kind::I64 | Kind::U64 | Kind::U16 | Kind::U8 => {
                    properties.set_column_encoding(path, Encoding::DELTA_BINARY_PACKED)
                }
                kind if kind.is_float() => {
                    properties.set_column_compression(path, Compression::SNAPPY)
                }
                kind => {
                    // Digests have nothing that repeats.
                    let is_digest = *kind == Kind::Token;
                    let compression =
                        if is_digest { Compression::UNCOMPRESSED } else { Compression::SNAPPY };
                    properties
                        .set_column_compression(path.clone(), compression)
                        // Bounds of texts that are nearly all different exclude nothing.
                        .set_column_statistics_enabled(path.clone(), EnabledStatistics::None)
                        .set_column_encoding(path, Encoding::DELTA_LENGTH_BYTE_ARRAY)
                }
            }
        });
        Ok(Self { schema: Arc::new(schema_descriptor), properties: Arc::new(properties.build()) })
    }

    fn encode(&self, batch: &Batch) -> Result<RowGroup, ParquetError> {
        let columns = batch.columns().zip(self.schema.columns());
        columns.map(|((_, array), column)| self.encode_array(column, array)).collect()
    }

    fn encode_array(
        &self,
        column: &ColumnDescPtr,
        array: &Array,
    ) -> Result<EncodedColumn, ParquetError> {
        let is_float = column.physical_type() == Physical::DOUBLE;
        let column =
            ColumnEncoder { column, properties: &self.properties, valid: array.valid.as_deref() };
        match &array.values {
            Values::I64(values) => column.encode::<Int64Type>(values.len(), |row| values[row]),
            Values::U64(values) => {
                column.encode::<Int64Type>(values.len(), |row| values[row].cast_signed())
            }
            Values::U16(values) => {
                column.encode::<Int32Type>(values.len(), |row| values[row].into())
            }
            Values::U8(values) => {
                column.encode::<Int32Type>(values.len(), |row| values[row].into())
            }
            Values::F64(values) => column.encode::<DoubleType>(values.len(), |row| values[row]),
            Values::Bool(values) => column.encode::<BoolType>(values.len(), |row| values[row]),
            Values::Text(texts) => column.encode_texts(texts),
            Values::Cells(cells) if is_float => {
                column.encode::<DoubleType>(cells.len(), |row| cells[row].as_seconds())
            }
            Values::Cells(cells) => column.encode::<ByteArrayType>(cells.len(), |row| {
                ByteArray::from(cells[row].to_text().into_bytes())
            }),
        }
    }
}

impl Format for Parquet {
    fn batch_size(&self) -> BatchSize {
        BatchSize { rows: GROUP_ROWS, bytes: GROUP_BYTES, is_fixed: true }
    }

    fn begin(&mut self, schema: &Schema, _: &Frame, _: &mut dyn Write) -> io::Result<()> {
        let Shape { schema, properties } = Shape::new(schema).map_err(io::Error::other)?;
        let root = schema.root_schema_ptr();
        let file = SerializedFileWriter::new(Vec::new(), root, properties);
        self.0 = Some(file.map_err(io::Error::other)?);
        Ok(())
    }

    fn encode(&mut self, batch: &Batch) -> io::Result<Part> {
        let group = Shape::new(&batch.schema).and_then(|shape| shape.encode(batch));
        Ok(Part::new(group.map_err(io::Error::other)?))
    }

    fn write(&mut self, part: Part, out: &mut dyn Write) -> io::Result<()> {
        let file = self.0.as_mut().expect("the file was begun");
        let mut group = file.next_row_group().map_err(io::Error::other)?;
        for (bytes, closed) in part.downcast::<RowGroup>() {
            group.append_column(&bytes, closed).map_err(io::Error::other)?;
        }
        group.close().map_err(io::Error::other)?;
        file.flush()?;
        out.write_all(file.inner())?;
        file.inner_mut().clear();
        Ok(())
    }

    fn end(&mut self, _: Frame, _: Tail, out: &mut dyn Write) -> io::Result<()> {
        let file = self.0.take().expect("the file was begun");
        out.write_all(&file.into_inner().map_err(io::Error::other)?)
    }

    fn fork(&self) -> Box<dyn Format> {
        Box::new(Self(None))
    }
}

fn parquet_field(field: &Field) -> Result<Type, ParquetError> {
    let (physical, logical) = match field.kind {
        Kind::I64 => (Physical::INT64, None),
        Kind::Time(_) => (Physical::INT64, Some(LogicalType::timestamp(true, TimeUnit::NANOS))),
        Kind::U64 => (Physical::INT64, Some(LogicalType::integer(64, false))),
        Kind::U16 => (Physical::INT32, Some(LogicalType::integer(16, false))),
        Kind::U8 => (Physical::INT32, Some(LogicalType::integer(8, false))),
        Kind::Bool => (Physical::BOOLEAN, None),
        _ if field.kind.is_float() => (Physical::DOUBLE, None),
        _ => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
    };
    Type::primitive_type_builder(&field.name, physical)
        .with_logical_type(logical)
        .with_repetition(if field.nullable { Repetition::OPTIONAL } else { Repetition::REQUIRED })
        .build()
}

/// Encodes a column; `valid` marks the rows that have a value.
struct ColumnEncoder<'a> {
    column: &'a ColumnDescPtr,
    properties: &'a Arc<WriterProperties>,
    valid: Option<&'a [bool]>,
}

impl ColumnEncoder<'_> {
    fn encode_texts(self, texts: &Texts) -> Result<EncodedColumn, ParquetError> {
        let bytes = Bytes::copy_from_slice(texts.all.as_bytes());
        self.encode::<ByteArrayType>(texts.len(), |row| {
            ByteArray::from(bytes.slice(texts.range(row)))
        })
    }

    /// Encodes the values of the rows that have one.
    fn encode<T: DataType>(
        self,
        rows: usize,
        value: impl Fn(usize) -> T::T,
    ) -> Result<EncodedColumn, ParquetError> {
        encode_column::<T>(self.column, self.properties, |writer| {
            let mut values = Vec::with_capacity(rows.min(VALUES_AT_ONCE));
            let mut levels = Vec::new();
            for first in (0..rows).step_by(VALUES_AT_ONCE) {
                let some = first..rows.min(first + VALUES_AT_ONCE);
                values.clear();
                if let Some(valid) = self.valid {
                    levels.clear();
                    levels.extend(valid[some.clone()].iter().map(|&is_valid| i16::from(is_valid)));
                    values.extend(some.filter(|&row| valid[row]).map(&value));
                    writer.write_batch(&values, Some(&levels), None)?;
                } else {
                    values.extend(some.map(&value));
                    writer.write_batch(&values, None, None)?;
                }
            }
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::cell::Time;
    use crate::report::column::Columns;
    use crate::report::parallel_rows::ParallelWriter;
    use crate::report::rows::TEXT_BYTES;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::file::statistics::Statistics;
    use parquet::record::Field;
    use proptest::prelude::*;

    type Row = (i64, u64, Option<i64>, Option<f64>, bool, Option<&'static str>);

    fn columns() -> Columns<Row> {
        Columns::default()
            .field("time_ns", |row: &Row| Time(row.0))
            .field("number", |row| row.1)
            .field("change", |row| row.2)
            .field("share", |row| row.3)
            .field("late", |row| row.4)
            .field("name", |row| row.5)
    }

    fn table<R: Send + Sync + 'static>(columns: Columns<R>) -> ParallelWriter<Vec<u8>, R> {
        let frame = Frame::new("table/1", "rows");
        ParallelWriter::begin(FORMAT, frame, columns, 1, Vec::new()).unwrap()
    }

    fn read(bytes: Vec<u8>) -> SerializedFileReader<Bytes> {
        SerializedFileReader::new(Bytes::from(bytes)).unwrap()
    }

    #[test]
    fn what_is_written_is_read_back() {
        let mut table = table(columns());
        for row in [
            (-1, u64::MAX, Some(i64::MIN), Some(0.25), true, Some("a\"<b>\u{e9}")),
            (i64::MAX, 0, None, None, false, None),
        ] {
            table.row(&row).unwrap();
        }
        let file = read(table.finish(Vec::new()).unwrap());
        let schema = file.metadata().file_metadata().schema();
        let names: Vec<&str> = schema.get_fields().iter().map(|f| f.name()).collect();
        assert_eq!(names, ["time_ns", "time", "number", "change", "share", "late", "name"]);
        assert_eq!(schema.get_fields()[0].get_basic_info().logical_type_ref(), None);
        assert_eq!(
            schema.get_fields()[1].get_basic_info().logical_type_ref().cloned(),
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
        assert_eq!(rows[0][0], Field::Long(-1));
        assert_eq!(rows[0][2], Field::ULong(u64::MAX));
        assert_eq!(rows[0][3], Field::Long(i64::MIN));
        assert_eq!(rows[0][4], Field::Double(0.25));
        assert_eq!(rows[0][5], Field::Bool(true));
        assert_eq!(rows[0][6], Field::Str("a\"<b>\u{e9}".to_owned()));
        assert_eq!(rows[1][2], Field::ULong(0));
        assert_eq!(rows[1][3..5], [Field::Null, Field::Null]);
        assert_eq!(rows[1][5..], [Field::Bool(false), Field::Null]);
    }

    type Any = (i64, u64, Option<i64>, Option<f64>, bool, String, Option<String>);

    fn any_columns() -> Columns<Any> {
        Columns::default()
            .field("whole", |row: &Any| row.0)
            .field("number", |row| row.1)
            .field("perhaps", |row| row.2)
            .field("share", |row| row.3)
            .field("truth", |row| row.4)
            .field("text", |row| row.5.clone())
            .field("name", |row| row.6.clone())
    }

    fn fields(row: &Any) -> Vec<Field> {
        let text = |text: &String| Field::Str(text.clone());
        vec![
            Field::Long(row.0),
            Field::ULong(row.1),
            row.2.map_or(Field::Null, Field::Long),
            row.3.map_or(Field::Null, Field::Double),
            Field::Bool(row.4),
            text(&row.5),
            row.6.as_ref().map_or(Field::Null, text),
        ]
    }

    fn any_row() -> impl Strategy<Value = Any> {
        let number = prop_oneof![any::<i64>(), -3_i64..3, Just(i64::MIN), Just(i64::MAX)];
        let text = prop_oneof!["[ab]{0,2}", "[0-9a-zü]{0,90}"];
        (
            number.clone(),
            prop_oneof![any::<u64>(), 0_u64..9],
            prop::option::of(number),
            prop::option::of(-9.0..9.0),
            any::<bool>(),
            text.clone(),
            prop::option::of(text),
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// By Apache's reader: numbers that overflow their differences, runs of the same, texts
        /// that repeat or do not.
        #[test]
        fn every_value_is_read_back(
            rows in prop::collection::vec((any_row(), 1_usize..40), 0..200),
            alike in any::<bool>(),
        ) {
            let rows = rows.iter().flat_map(|(row, times)| std::iter::repeat_n(row, *times));
            let rows: Vec<Any> = rows.enumerate().map(|(number, row)| {
                let mut row = row.clone();
                if !alike {
                    row.5 = format!("{number} {}", row.5);
                }
                row
            }).collect();
            let mut table = table(any_columns());
            for row in &rows {
                table.row(row).unwrap();
            }
            let file = read(table.finish(Vec::new()).unwrap());
            let back: Vec<Vec<Field>> = file
                .get_row_iter(None)
                .unwrap()
                .map(|row| {
                    let row = row.unwrap();
                    row.get_column_iter().map(|(_, value)| value.clone()).collect()
                })
                .collect();
            prop_assert_eq!(back, rows.iter().map(fields).collect::<Vec<_>>());
            for group in file.metadata().row_groups() {
                let Some(Statistics::Int64(bounds)) = group.column(1).statistics() else {
                    panic!("numbers have bounds");
                };
                let least = rows.iter().map(|row| row.1).min();
                let most = rows.iter().map(|row| row.1).max();
                prop_assert_eq!(bounds.min_opt().map(|n| n.cast_unsigned()), least);
                prop_assert_eq!(bounds.max_opt().map(|n| n.cast_unsigned()), most);
                let missing = rows.iter().filter(|row| row.2.is_none()).count();
                let statistics = group.column(2).statistics().unwrap();
                prop_assert_eq!(statistics.null_count_opt(), Some(missing as u64));
            }
        }
    }

    /// Pages that are full by their texts, some of which are missing.
    #[test]
    fn long_texts_are_read_back() {
        let text = |n: &usize| {
            (!n.is_multiple_of(3)).then(|| format!("{n} {}", "x".repeat(n * 37 % 5000)))
        };
        let mut table = table(Columns::default().field("text", text));
        for n in 0..3000 {
            table.row(&n).unwrap();
        }
        let file = read(table.finish(Vec::new()).unwrap());
        for (n, row) in file.get_row_iter(None).unwrap().enumerate() {
            let row = row.unwrap();
            let expected = text(&n).map_or(Field::Null, Field::Str);
            assert_eq!(row.get_column_iter().next().unwrap().1, &expected);
        }
    }

    #[test]
    fn many_rows_are_several_groups() {
        let columns = Columns::default().field("n", |n: &u64| *n);
        let mut table = table(columns);
        let rows = 2 * GROUP_ROWS as u64 + 7;
        for n in 0..rows {
            table.row(&n).unwrap();
        }
        let file = read(table.finish(Vec::new()).unwrap());
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
        let mut table = table(columns);
        let text = "x".repeat(TEXT_BYTES / 4);
        for _ in 0..9 {
            table.row(&text).unwrap();
        }
        let file = read(table.finish(Vec::new()).unwrap());
        assert_eq!(file.num_row_groups(), 3);
    }

    /// Groups that are full by their rows, and groups that are full by their texts in the middle of
    /// a chunk.
    #[test]
    fn threads_change_no_byte() {
        let columns = || {
            Columns::default()
                .field("n", |n: &u64| *n)
                .field("odd", |n| (n % 2 == 1).then_some(*n))
                .field("share", |n| (n % 5 == 1).then_some(*n as f64))
                .field("even", |n| n.is_multiple_of(2))
                .field("text", |n| "x".repeat((n % 7 * (n >> 16) * 200) as usize))
                .written("third", Kind::Text, true, |n, text| {
                    text.push_str(if n.is_multiple_of(3) { "third" } else { "" });
                    n.is_multiple_of(3)
                })
        };
        let write = |threads: usize| {
            let mut table = table(columns());
            table.start(threads);
            for n in 0..3 * GROUP_ROWS as u64 + 777 {
                table.take(n).unwrap();
            }
            table.finish(Vec::new()).unwrap()
        };
        let one = write(0);
        assert!(read(one.clone()).num_row_groups() > 6);
        for threads in 1..4 {
            assert!(write(threads) == one, "{threads} threads");
        }
    }

    #[test]
    fn a_table_without_rows_is_a_table() {
        let file = read(table(columns()).finish(Vec::new()).unwrap());
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
        let frame = Frame::new("table/1", "rows");
        let table = ParallelWriter::begin(FORMAT, frame, columns, 1, Closed);
        let error = table.and_then(|table| table.finish(Vec::new())).err().unwrap();
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    }
}
