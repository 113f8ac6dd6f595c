//! Tables of results as Parquet files, written as rows come.
//!
//! Rows are gathered by column and written as a row group when there are enough of them, so a table of
//! any length needs bounded memory. Pages are compressed by snappy, which every reader knows. Encoding a row group costs as much
//! as decoding its packets, so a table of many rows has threads for it ([`ParquetTable::apart`], [`ParquetTable::shared_among`]).

mod buffer;

use self::buffer::Buffer;
use super::cell::Kind;
use super::column::{Column, Columns};
use super::crew::Crew;
use super::values::RowBatch;
use bytes::Bytes;
use parquet::basic::{Compression, LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::column::writer::{ColumnCloseResult, get_column_writer};
use parquet::errors::ParquetError;
use parquet::file::properties::{WriterProperties, WriterPropertiesPtr};
use parquet::file::writer::{SerializedFileWriter, SerializedPageWriter, TrackedWrite};
use parquet::schema::types::{ColumnDescPtr, ColumnPath, Type};
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
pub(super) struct ParquetTable<W: Write, R> {
    /// Writes into memory, from where row groups go to `out`: so failures of `out` stay what they are, and it need not be able to
    /// go to another thread.
    file: SerializedFileWriter<Vec<u8>>,
    encoder: Arc<Encoder>,
    /// The row group that is being encoded: each thread has columns of it, in turn.
    encoding: Vec<JoinHandle<io::Result<Encoded>>>,
    /// Threads for that; without any, row groups are encoded here.
    encoders: usize,
    out: W,
    columns: Vec<Buffer>,
    rows: usize,
    text_bytes: usize,
    /// Columns of a group that was written, whose memory is used again.
    spare: Vec<Buffer>,
    /// Threads that make columns of rows.
    crew: Option<Crew<R, Chunk>>,
}

/// Makes pages of columns.
struct Encoder {
    columns: Vec<ColumnDescPtr>,
    properties: WriterPropertiesPtr,
}

/// Columns of a row group.
type Encoded = Vec<EncodedColumn>;

/// The pages of a column.
struct EncodedColumn {
    number: usize,
    bytes: Bytes,
    closed: ColumnCloseResult,
    /// What it was made of, which is empty.
    buffer: Buffer,
}

/// Rows by column.
struct Chunk {
    columns: Vec<Buffer>,
    /// Bytes of text up to each row, itself included.
    text_ends: Vec<usize>,
}

impl<W: Write, R> fmt::Debug for ParquetTable<W, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ParquetTable")
            .field("columns", &self.columns)
            .field("rows", &self.rows)
            .finish_non_exhaustive()
    }
}

impl<W: Write, R> ParquetTable<W, R> {
    /// Begins a table with these columns.
    pub(super) fn begin(out: W, columns: &Columns<R>) -> io::Result<Self> {
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
        let file = SerializedFileWriter::new(Vec::new(), schema, Arc::clone(&properties));
        let file = file.map_err(io::Error::other)?;
        let encoder = Arc::new(Encoder {
            columns: file.schema_descr().columns().to_vec(),
            properties,
        });
        Ok(Self {
            file,
            encoder,
            encoding: Vec::new(),
            encoders: 0,
            out,
            columns: columns.iter().map(Buffer::new).collect(),
            rows: 0,
            text_bytes: 0,
            spare: Vec::new(),
            crew: None,
        })
    }

    /// Encodes row groups in a thread, each while the next one is gathered.
    pub(super) fn apart(mut self) -> Self {
        self.encoders = 1;
        self
    }

    /// Appends a row.
    ///
    /// # Panics
    ///
    /// If a cell is missing in a column that is not nullable.
    pub(super) fn row(&mut self, columns: &Columns<R>, row: &R) -> io::Result<()> {
        for (buffer, column) in self.columns.iter_mut().zip(&columns.0) {
            self.text_bytes += buffer.take(column, row);
        }
        self.rows += 1;
        self.write_full_group()
    }

    /// Appends a row that may go to another thread before.
    pub(super) fn take(&mut self, columns: &Columns<R>, row: R) -> io::Result<()> {
        let Some(mut crew) = self.crew.take() else {
            return self.row(columns, &row);
        };
        let taken = crew.row(row, &mut |chunk| self.append(&chunk));
        self.crew = Some(crew);
        taken
    }

    /// Appends rows by column.
    fn append(&mut self, chunk: &Chunk) -> io::Result<()> {
        let mut next = 0;
        while next < chunk.text_ends.len() {
            let before = if next == 0 {
                0
            } else {
                chunk.text_ends[next - 1]
            };
            // As many as the group takes before it is written, the one that fills it included.
            let room = GROUP_TEXT_BYTES - self.text_bytes;
            let end = chunk.text_ends.partition_point(|&end| end < before + room) + 1;
            let end = end
                .min(chunk.text_ends.len())
                .min(next + GROUP_ROWS - self.rows);
            for (buffer, from) in self.columns.iter_mut().zip(&chunk.columns) {
                buffer.append(from, next..end);
            }
            self.rows += end - next;
            self.text_bytes += chunk.text_ends[end - 1] - before;
            next = end;
            self.write_full_group()?;
        }
        Ok(())
    }

    fn write_full_group(&mut self) -> io::Result<()> {
        if self.rows == GROUP_ROWS || self.text_bytes >= GROUP_TEXT_BYTES {
            self.write_group()?;
        }
        Ok(())
    }

    /// Ends the table and gives the writer back, flushed.
    pub(super) fn finish(mut self) -> io::Result<W> {
        if let Some(mut crew) = self.crew.take() {
            crew.rest(&mut |chunk| self.append(&chunk))?;
        }
        if self.rows > 0 {
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
        let fresh = std::mem::take(&mut self.spare);
        let fresh = if fresh.is_empty() {
            self.columns.iter().map(Buffer::like).collect()
        } else {
            fresh
        };
        let group = std::mem::replace(&mut self.columns, fresh);
        self.rows = 0;
        self.text_bytes = 0;
        if self.encoders == 0 {
            let encoded = self.encoder.encode(group.into_iter().enumerate())?;
            return self.put(encoded);
        }
        let mut parts: Vec<Vec<(usize, Buffer)>> = Vec::new();
        parts.resize_with(self.encoders, Vec::new);
        for (number, column) in group.into_iter().enumerate() {
            parts[number % self.encoders].push((number, column));
        }
        for part in parts {
            let encoder = Arc::clone(&self.encoder);
            let thread = thread::Builder::new().name("parquet".to_owned());
            let encode = move || encoder.encode(part.into_iter());
            self.encoding.push(thread.spawn(encode)?);
        }
        Ok(())
    }

    /// Waits for the group that is being encoded, and writes it.
    fn write_encoded(&mut self) -> io::Result<()> {
        let mut encoded = Encoded::new();
        for thread in self.encoding.drain(..) {
            let part = thread.join().unwrap_or_else(|panic| resume_unwind(panic));
            encoded.extend(part?);
        }
        if encoded.is_empty() {
            return Ok(());
        }
        encoded.sort_unstable_by_key(|column| column.number);
        self.put(encoded)
    }

    fn put(&mut self, encoded: Encoded) -> io::Result<()> {
        let mut group = self.file.next_row_group().map_err(io::Error::other)?;
        for column in encoded {
            let appended = group.append_column(&column.bytes, column.closed);
            appended.map_err(io::Error::other)?;
            self.spare.push(column.buffer);
        }
        group.close().map_err(io::Error::other)?;
        self.file.flush()?;
        self.out.write_all(self.file.inner())?;
        self.file.inner_mut().clear();
        Ok(())
    }
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
                    self.text_bytes += buffer.take(column, batch);
                }
            }
            self.rows += end - next;
            next = end;
            if self.rows.is_multiple_of(CHUNK_ROWS) {
                self.write_full_group()?;
            }
        }
        Ok(())
    }
}

impl<W: Write, R: Send + 'static> ParquetTable<W, R> {
    /// With so many threads that make columns of rows, and as many that encode these.
    pub(super) fn shared_among(
        mut self,
        threads: usize,
        columns: &Arc<Columns<R>>,
    ) -> io::Result<Self> {
        let columns = Arc::clone(columns);
        let make = move |rows: &[R]| Chunk::of(&columns, rows);
        self.crew = Some(Crew::start(threads, make)?);
        self.encoders = threads;
        Ok(self)
    }
}

impl Chunk {
    fn of<R>(columns: &Columns<R>, rows: &[R]) -> Self {
        let mut text_ends = vec![0; rows.len()];
        let columns = columns.0.iter().map(|column| {
            let mut buffer = Buffer::new(column);
            for (row, text_bytes) in rows.iter().zip(&mut text_ends) {
                *text_bytes += buffer.take(column, row);
            }
            buffer
        });
        let columns = columns.collect();
        let mut sum = 0;
        for end in &mut text_ends {
            sum += *end;
            *end = sum;
        }
        Self { columns, text_ends }
    }
}

impl Encoder {
    /// Makes pages of columns of a row group.
    fn encode(&self, columns: impl Iterator<Item = (usize, Buffer)>) -> io::Result<Encoded> {
        let encoded = columns.map(|(number, mut buffer)| {
            let mut bytes = TrackedWrite::new(Vec::new());
            let pages = Box::new(SerializedPageWriter::new(&mut bytes));
            let description = Arc::clone(&self.columns[number]);
            let writer = get_column_writer(description, Arc::clone(&self.properties), pages);
            let closed = buffer.write(writer)?;
            Ok(EncodedColumn {
                number,
                bytes: Bytes::from(bytes.into_inner()?),
                closed,
                buffer,
            })
        });
        let encoded: Result<_, ParquetError> = encoded.collect();
        encoded.map_err(io::Error::other)
    }
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

    /// Groups that are full by their rows, and groups that are full by their texts in the middle of a chunk.
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
                table = table.shared_among(threads, &columns).unwrap();
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
        let error = ParquetTable::begin(Closed, &columns)
            .and_then(ParquetTable::finish)
            .err()
            .unwrap();
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    }
}
