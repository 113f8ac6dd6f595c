//! Tables of results as Parquet files, written as rows come.
//!
//! Rows are gathered by column and written as a row group when there are enough of them, so a table
//! of any length needs bounded memory. How values are encoded is told in [`encode`]. Making row
//! groups costs as much as decoding their packets, so a table of many rows has threads for it
//! ([`ParquetTable::apart`], [`ParquetTable::shared_among`]).

mod buffer;
mod encode;
mod numbers;
mod row_group;

use self::encode::Encoder;
use self::row_group::{Encoded, RowGroup, RowGroups};
use super::cell::Kind;
use super::column::{Column, Columns};
use super::crew::{Crew, LazyRows, OfBatches};
use super::values::RowBatch;
use flowsieve_engine::internal::{MEMORY_REFUSED, Reservation, spawn};
use parquet::basic::{LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnDescPtr, Type};
use std::fmt;
use std::io::{self, Write};
use std::mem::replace;
use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread::JoinHandle;

/// Threads that make row groups: each has one in memory, about 12 MiB, and as much again waits for
/// it.
const MOST_THREADS: usize = 8;

/// Memory for a row group that is made or encoded in another thread, and what waits for it.
pub(super) const GROUP_BYTES: u64 = 24 << 20;

/// Writes a table.
pub(super) struct ParquetTable<W: Write, R> {
    /// Writes into memory, from where row groups go to `out`: so failures of `out` stay what they
    /// are, and it need not be able to go to another thread.
    file: SerializedFileWriter<Vec<u8>>,
    out: W,
    group: RowGroup,
    encoder: Encoder,
    /// The descriptions of the columns.
    described: Arc<[ColumnDescPtr]>,
    /// Encodes a row group, if that is done in a thread of its own.
    encoding: Option<Encoding>,
    /// Threads that make row groups of rows.
    crew: Option<Crew<R, io::Result<Vec<Encoded>>>>,
    /// Of the row group that is gathered here.
    _memory: Reservation,
}

/// A thread that encodes row groups, or the next one for it to encode.
enum Encoding {
    Idle(Box<(RowGroup, Encoder)>),
    Busy(JoinHandle<Option<Box<EncodedGroup>>>),
}

/// A row group that was encoded, and its memory for the next one.
type EncodedGroup = (RowGroup, Encoder, io::Result<Encoded>);

impl<W: Write, R> fmt::Debug for ParquetTable<W, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ParquetTable").field("group", &self.group).finish_non_exhaustive()
    }
}

impl<W: Write, R> ParquetTable<W, R> {
    /// Begins a table with these columns.
    pub(super) fn begin(out: W, columns: &Columns<R>) -> io::Result<Self> {
        let fields = columns.0.iter().map(|column| field(column).map(Arc::new));
        let fields = fields.collect::<Result<_, _>>().map_err(io::Error::other)?;
        let schema = Type::group_type_builder("table").with_fields(fields);
        let schema = Arc::new(schema.build().map_err(io::Error::other)?);
        let properties = WriterProperties::builder()
            .set_created_by(concat!("flowsieve ", env!("CARGO_PKG_VERSION")).to_owned());
        let refused = || io::Error::new(io::ErrorKind::OutOfMemory, MEMORY_REFUSED);
        let memory = Reservation::new(GROUP_BYTES).ok_or_else(refused)?;
        let file = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties.build()));
        let file = file.map_err(io::Error::other)?;
        Ok(Self {
            described: file.schema_descr().columns().into(),
            file,
            out,
            group: RowGroup::of(columns),
            encoder: Encoder::new(),
            encoding: None,
            crew: None,
            _memory: memory,
        })
    }

    /// Encodes row groups in a thread, each while the next one is gathered.
    pub(super) fn apart(mut self, columns: &Columns<R>) -> Self {
        let idle = (RowGroup::of(columns), Encoder::new());
        self.encoding = Some(Encoding::Idle(Box::new(idle)));
        self
    }

    /// Appends a row.
    ///
    /// # Panics
    ///
    /// If a cell is missing in a column that is not nullable.
    pub(super) fn row(&mut self, columns: &Columns<R>, row: &R) -> io::Result<()> {
        self.group.row(columns, row);
        if self.group.is_full() {
            self.write_group()?;
        }
        Ok(())
    }

    /// Appends a row that may go to another thread before.
    pub(super) fn take(&mut self, columns: &Columns<R>, row: R) -> io::Result<()> {
        let Some(crew) = &mut self.crew else {
            return self.row(columns, &row);
        };
        let (file, out) = (&mut self.file, &mut self.out);
        crew.row(row, &mut |groups| put_all(groups, file, out))
    }

    /// How many rows that are made where they are wanted may come next, if there are threads for
    /// them.
    pub(super) fn lazy_rows(&self) -> Option<usize> {
        let crew = self.crew.as_ref().filter(|crew| !crew.is_gathering())?;
        Some(crew.lazy_rows())
    }

    /// Appends so many rows, which are made in another thread.
    pub(super) fn lazy(&mut self, count: usize, rows: LazyRows<R>) -> io::Result<()> {
        let (file, out) = (&mut self.file, &mut self.out);
        let crew = self.crew.as_mut().expect("there are threads for it");
        crew.lazy(count, rows, &mut |groups| put_all(groups, file, out))
    }

    /// Takes all rows that threads make from them.
    pub(super) fn settle(&mut self) -> io::Result<()> {
        let (file, out) = (&mut self.file, &mut self.out);
        let mut done = |groups| put_all(groups, file, out);
        self.crew.as_mut().map_or(Ok(()), |crew| crew.settle(&mut done))
    }

    /// Ends the table and gives the writer back, flushed.
    pub(super) fn finish(mut self) -> io::Result<W> {
        let (file, out) = (&mut self.file, &mut self.out);
        if let Some(crew) = &mut self.crew {
            crew.rest(&mut |groups| put_all(groups, file, out))?;
        }
        if !self.group.is_empty() {
            self.write_group()?;
        }
        self.write_encoded()?;
        let end = self.file.into_inner().map_err(io::Error::other)?;
        self.out.write_all(&end)?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn write_group(&mut self) -> io::Result<()> {
        self.write_encoded()?;
        let Some(Encoding::Idle(idle)) = self.encoding.take() else {
            let encoded = self.group.encode(&mut self.encoder, &self.described)?;
            return put(encoded, &mut self.file, &mut self.out);
        };
        let described = Arc::clone(&self.described);
        let encode = move |(mut group, mut encoder): (RowGroup, Encoder)| {
            let encoded = group.encode(&mut encoder, &described);
            Box::new((group, encoder, encoded))
        };
        let Some(thread) = spawn("parquet", GROUP_BYTES, encode) else {
            let encoded = self.group.encode(&mut self.encoder, &self.described)?;
            self.encoding = Some(Encoding::Idle(idle));
            return put(encoded, &mut self.file, &mut self.out);
        };
        let (fresh, encoder) = *idle;
        let group = replace(&mut self.group, fresh);
        self.group.follow(&group);
        self.encoding = Some(Encoding::Busy(thread.begin((group, encoder))));
        Ok(())
    }

    /// Waits for the group that is being encoded, if there is one, and writes it.
    fn write_encoded(&mut self) -> io::Result<()> {
        match self.encoding.take() {
            Some(Encoding::Busy(thread)) => {
                let done = thread.join().unwrap_or_else(|panic| resume_unwind(panic));
                let (group, encoder, encoded) = *done.expect("it has a group");
                self.encoding = Some(Encoding::Idle(Box::new((group, encoder))));
                put(encoded?, &mut self.file, &mut self.out)
            }
            idle => {
                self.encoding = idle;
                Ok(())
            }
        }
    }
}

/// Writes row groups.
fn put_all<W: Write>(
    groups: io::Result<Vec<Encoded>>,
    file: &mut SerializedFileWriter<Vec<u8>>,
    out: &mut W,
) -> io::Result<()> {
    let mut groups = groups?.into_iter();
    groups.try_for_each(|group| put(group, file, out))
}

fn put<W: Write>(
    encoded: Encoded,
    file: &mut SerializedFileWriter<Vec<u8>>,
    out: &mut W,
) -> io::Result<()> {
    let mut group = file.next_row_group().map_err(io::Error::other)?;
    for column in encoded {
        let appended = group.append_column(&column.bytes, column.closed);
        appended.map_err(io::Error::other)?;
    }
    group.close().map_err(io::Error::other)?;
    file.flush()?;
    out.write_all(file.inner())?;
    file.inner_mut().clear();
    Ok(())
}

impl<W: Write, R: RowBatch> ParquetTable<W, R> {
    /// Appends rows of a batch.
    ///
    /// # Panics
    ///
    /// If a value is missing in a column that is not nullable.
    pub(super) fn rows(
        &mut self,
        columns: &Columns<R>,
        batch: &mut R,
        range: Range<usize>,
    ) -> io::Result<()> {
        let mut left = range;
        while self.group.batch(columns, batch, &mut left) {
            self.write_group()?;
        }
        Ok(())
    }
}

impl<W: Write, R: Send + 'static> ParquetTable<W, R> {
    /// With so many threads that make row groups of rows.
    pub(super) fn shared_among(mut self, threads: usize, columns: &Arc<Columns<R>>) -> Self {
        let groups = || RowGroups::of(columns, &self.described);
        self.crew = Crew::start(threads.min(MOST_THREADS), groups);
        self
    }
}

impl<W: Write, R: RowBatch + Send + 'static> ParquetTable<W, R> {
    /// With so many threads that make row groups of batches.
    pub(super) fn batches_among(mut self, threads: usize, columns: &Arc<Columns<R>>) -> Self {
        let groups = || OfBatches(RowGroups::of(columns, &self.described));
        self.crew = Crew::start(threads.min(MOST_THREADS), groups);
        self
    }
}

fn field<R>(column: &Column<R>) -> Result<Type, ParquetError> {
    let (physical, logical) = match column.kind {
        Kind::I64 => (Physical::INT64, None),
        Kind::Time(_) => (Physical::INT64, Some(LogicalType::timestamp(true, TimeUnit::NANOS))),
        Kind::U64 => (Physical::INT64, Some(LogicalType::integer(64, false))),
        Kind::Bool => (Physical::BOOLEAN, None),
        Kind::F64 | Kind::Decimal | Kind::Whole | Kind::Seconds => (Physical::DOUBLE, None),
        Kind::Text | Kind::List(_) | Kind::Object(_) | Kind::Tally => {
            (Physical::BYTE_ARRAY, Some(LogicalType::String))
        }
    };
    Type::primitive_type_builder(&column.name, physical)
        .with_logical_type(logical)
        .with_repetition(if column.nullable { Repetition::OPTIONAL } else { Repetition::REQUIRED })
        .build()
}

#[cfg(test)]
mod tests {
    use super::super::cell::{Cell, Time};
    use super::row_group::{GROUP_ROWS, GROUP_TEXT_BYTES};
    use super::*;
    use bytes::Bytes;
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

    fn read(bytes: Vec<u8>) -> SerializedFileReader<Bytes> {
        SerializedFileReader::new(Bytes::from(bytes)).unwrap()
    }

    #[test]
    fn what_is_written_is_read_back() {
        let mut table = ParquetTable::begin(Vec::new(), &columns()).unwrap();
        for row in [
            (-1, u64::MAX, Some(i64::MIN), Some(0.25), true, Some("a\"<b>\u{e9}")),
            (i64::MAX, 0, None, None, false, None),
        ] {
            table.row(&columns(), &row).unwrap();
        }
        let file = read(table.finish().unwrap());
        let schema = file.metadata().file_metadata().schema();
        let names: Vec<&str> = schema.get_fields().iter().map(|f| f.name()).collect();
        assert_eq!(names, ["time_ns", "number", "change", "share", "late", "name"]);
        assert_eq!(
            schema.get_fields()[0].get_basic_info().logical_type_ref().cloned(),
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
            let columns = any_columns();
            let mut table = ParquetTable::begin(Vec::new(), &columns).unwrap();
            for row in &rows {
                table.row(&columns, row).unwrap();
            }
            let file = read(table.finish().unwrap());
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
        let columns = Columns::default().field("text", |n: &usize| {
            (!n.is_multiple_of(3)).then(|| format!("{n} {}", "x".repeat(n * 37 % 5000)))
        });
        let mut table = ParquetTable::begin(Vec::new(), &columns).unwrap();
        for n in 0..3000 {
            table.row(&columns, &n).unwrap();
        }
        let file = read(table.finish().unwrap());
        for (n, row) in file.get_row_iter(None).unwrap().enumerate() {
            let row = row.unwrap();
            let expected = match columns.0[0].cell(&n) {
                Cell::Text(text) => Field::Str(text.into_owned()),
                _ => Field::Null,
            };
            assert_eq!(row.get_column_iter().next().unwrap().1, &expected);
        }
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

    /// Groups that are full by their rows, and groups that are full by their texts in the middle of
    /// a chunk.
    #[test]
    fn threads_change_no_byte() {
        let columns = || {
            Arc::new(
                Columns::default()
                    .field("n", |n: &u64| *n)
                    .field("odd", |n| (n % 2 == 1).then_some(*n))
                    .field("share", |n| (n % 5 == 1).then_some(*n as f64))
                    .field("even", |n| n.is_multiple_of(2))
                    .field("text", |n| "x".repeat((n % 7 * (n >> 16) * 200) as usize))
                    .written("third", true, |n, text| {
                        text.push_str(if n.is_multiple_of(3) { "third" } else { "" });
                        n.is_multiple_of(3)
                    }),
            )
        };
        let write = |threads: usize| {
            let columns = columns();
            let mut table = ParquetTable::begin(Vec::new(), &columns).unwrap();
            if threads > 0 {
                table = table.shared_among(threads, &columns);
            }
            for n in 0..3 * GROUP_ROWS as u64 + 777 {
                table.take(&columns, n).unwrap();
            }
            table.finish().unwrap()
        };
        let one = write(0);
        assert!(read(one.clone()).num_row_groups() > 6);
        for threads in 1..4 {
            assert!(write(threads) == one, "{threads} threads");
        }
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
        let error =
            ParquetTable::begin(Closed, &columns).and_then(ParquetTable::finish).err().unwrap();
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    }
}
