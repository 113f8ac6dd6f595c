//! Columns of Parquet files, in memory: one row group, written and read by column.

use crate::parquet_column::encode_column;
use bytes::Bytes;
use flowsieve_engine::internal::{WorkerPanicked, catch_panic};
use parquet::basic::{Compression, Encoding, LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::column::page::PageReader as _;
use parquet::column::reader::ColumnReaderImpl;
use parquet::data_type::{ByteArray, DataType};
use parquet::errors::ParquetError;
use parquet::file::metadata::{ParquetMetaDataReader, RowGroupMetaData};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::serialized_reader::SerializedPageReader;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{ColumnDescPtr, ColumnPath, Type};
use std::sync::Arc;

/// More rows than there are values in a region.
pub(super) const MOST_ROWS: i64 = 1 << 20;

/// More values than the lists of this many rows hold together.
const MOST_VALUES: usize = 1 << 26;

/// Rows that are skipped at once.
const ROWS_AT_ONCE: usize = 1024;

/// Type of a column.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Kind {
    /// Nanoseconds since the epoch.
    Time,
    /// 64-bit integers.
    Long,
    /// 32-bit integers.
    Int,
    /// Text, often the same.
    Text,
    /// Ascending byte strings.
    Sorted,
    /// Ascending 32-bit integers, any number in each row.
    List,
}

/// A column: name, type, whether it is nullable.
pub(super) type Column = (&'static str, Kind, bool);

fn field(&(name, kind, nullable): &Column) -> Result<Type, ParquetError> {
    let (physical, logical) = match kind {
        Kind::Time => (Physical::INT64, Some(LogicalType::timestamp(true, TimeUnit::NANOS))),
        Kind::Long => (Physical::INT64, None),
        Kind::Int | Kind::List => (Physical::INT32, None),
        Kind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        Kind::Sorted => (Physical::BYTE_ARRAY, None),
    };
    let repetition = match (kind, nullable) {
        (Kind::List, _) => Repetition::REPEATED,
        (_, true) => Repetition::OPTIONAL,
        (_, false) => Repetition::REQUIRED,
    };
    Type::primitive_type_builder(name, physical)
        .with_logical_type(logical)
        .with_repetition(repetition)
        .build()
}

fn properties(columns: &[Column]) -> WriterProperties {
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        // They are not used, because whole files are read.
        .set_statistics_enabled(EnabledStatistics::None)
        .set_offset_index_disabled(true)
        .set_created_by("flowsieve".to_owned());
    for &(name, kind, _) in columns {
        let encoding = match kind {
            Kind::Time | Kind::List => Encoding::DELTA_BINARY_PACKED,
            Kind::Sorted => Encoding::DELTA_BYTE_ARRAY,
            Kind::Long | Kind::Int | Kind::Text => continue,
        };
        let path = ColumnPath::from(name);
        properties = properties
            .set_column_dictionary_enabled(path.clone(), false)
            .set_column_encoding(path, encoding);
    }
    properties.build()
}

fn schema(columns: &[Column]) -> Result<Type, ParquetError> {
    let fields = columns.iter().map(|column| field(column).map(Arc::new));
    Type::group_type_builder("table").with_fields(fields.collect::<Result<_, _>>()?).build()
}

/// A row group being written.
pub(super) struct Group<'a> {
    writer: SerializedRowGroupWriter<'a, Vec<u8>>,
    properties: Arc<WriterProperties>,
    /// The columns that are not written yet.
    columns: std::vec::IntoIter<ColumnDescPtr>,
}

/// Writes a file of these columns, which `fill` writes in order.
pub(super) fn write(
    columns: &[Column],
    fill: impl FnOnce(&mut Group<'_>) -> Result<(), ParquetError>,
) -> Result<Vec<u8>, ParquetError> {
    let properties = Arc::new(properties(columns));
    let schema = Arc::new(schema(columns)?);
    let mut file = SerializedFileWriter::new(Vec::new(), schema, Arc::clone(&properties))?;
    let columns = file.schema_descr().columns().to_vec().into_iter();
    {
        let mut group = Group { writer: file.next_row_group()?, properties, columns };
        fill(&mut group)?;
        group.writer.close()?;
    }
    file.into_inner()
}

/// Divides concatenated values, each of which ends at one of these places.
pub(super) fn parts(all: Vec<u8>, ends: &[usize]) -> Vec<ByteArray> {
    let all = Bytes::from(all);
    let starts = std::iter::once(0).chain(ends.iter().copied());
    let parts = starts.zip(ends).map(|(start, &end)| all.slice(start..end));
    parts.map(ByteArray::from).collect()
}

/// Writes the next column.
pub(super) fn put<T: DataType>(
    group: &mut Group<'_>,
    values: &[T::T],
    definition: Option<&[i16]>,
    repetition: Option<&[i16]>,
) -> Result<(), ParquetError> {
    let column = group.columns.next().expect("values of a column that there is");
    let (bytes, closed) = encode_column::<T>(&column, &group.properties, |writer| {
        writer.write_batch(values, definition, repetition).map(drop)
    })?;
    group.writer.append_column(&bytes, closed)
}

/// Turns panics into errors: the Parquet library trusts the lengths in pages.
fn shielded<T>(read: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, ParquetError> {
    catch_panic(read).unwrap_or_else(|WorkerPanicked(reason)| Err(ParquetError::General(reason)))
}

/// Checks that pages claim at most `most` values, as many as a column of a region can have: the
/// library counts one by one, and a header of a few bytes can claim 2^31.
fn check_pages(table: &Table, most: usize) -> Result<(), ParquetError> {
    for column in 0..table.group.num_columns() {
        let mut left = most;
        let mut pages = table.pages(column)?;
        while let Some(page) = pages.peek_next_page()? {
            let rest = left.checked_sub(page.num_levels.unwrap_or(0));
            left = rest.ok_or_else(|| {
                ParquetError::General("its pages claim more values than there can be".into())
            })?;
            pages.skip_next_page()?;
        }
    }
    Ok(())
}

/// A file that is read.
pub(super) struct Table {
    bytes: Arc<Bytes>,
    group: RowGroupMetaData,
}

/// The values of a column with their levels.
#[derive(Default)]
pub(super) struct Cells<V> {
    pub(super) values: Vec<V>,
    pub(super) definition: Vec<i16>,
    pub(super) repetition: Vec<i16>,
}

impl<V: Default> Cells<V> {
    /// Reads the next rows of a column.
    fn read<T: DataType<T = V>>(
        column: &mut ColumnReaderImpl<T>,
        rows: usize,
    ) -> Result<Self, ParquetError> {
        let mut cells = Self::default();
        let mut left = rows;
        while left > 0 {
            let (read, _, _) = column.read_records(
                left,
                Some(&mut cells.definition),
                Some(&mut cells.repetition),
                &mut cells.values,
            )?;
            if read == 0 {
                return Err(ParquetError::EOF("a column is too short".into()));
            }
            left -= read;
        }
        Ok(cells)
    }
}

impl Table {
    /// Opens a file of these columns in one row group, as [`write()`] writes them.
    pub(super) fn open(bytes: Vec<u8>, columns: &[Column]) -> Result<Self, ParquetError> {
        let bytes = Arc::new(Bytes::from(bytes));
        let data = shielded(|| ParquetMetaDataReader::new().parse_and_finish(&*bytes))?;
        if data.file_metadata().schema_descr().root_schema() != &schema(columns)? {
            return Err(ParquetError::General("its columns are others".into()));
        }
        let table = match data.row_groups() {
            [group] if (0..=MOST_ROWS).contains(&group.num_rows()) => {
                Self { bytes, group: group.clone() }
            }
            _ => {
                return Err(ParquetError::General(
                    "it has no row group, several, or one that no region can have".into(),
                ));
            }
        };
        shielded(|| check_pages(&table, MOST_VALUES))?;
        Ok(table)
    }

    /// Returns the pages of a column.
    fn pages(&self, column: usize) -> Result<SerializedPageReader<Bytes>, ParquetError> {
        let chunk = self.group.column(column);
        SerializedPageReader::new(Arc::clone(&self.bytes), chunk, self.rows(), None)
    }

    /// Reads rows `from..to` of a column.
    pub(super) fn get<T: DataType>(
        &self,
        column: usize,
        from: usize,
        to: usize,
    ) -> Result<Cells<T::T>, ParquetError> {
        shielded(|| {
            let kind = self.group.column(column).column_descr_ptr();
            let mut reader = ColumnReaderImpl::<T>::new(kind, Box::new(self.pages(column)?));
            // Rows before are read, too: the library's function to skip them does not end if a page
            // has fewer levels than it claims.
            let mut before = from;
            while before > 0 {
                let rows = before.min(ROWS_AT_ONCE);
                Cells::read(&mut reader, rows)?;
                before -= rows;
            }
            Cells::read(&mut reader, to - from)
        })
    }

    /// Returns the number of rows.
    pub(super) fn rows(&self) -> usize {
        self.group.num_rows() as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parquet::data_type::Int32Type;

    #[test]
    fn what_the_pages_of_a_column_claim_is_summed() {
        let columns: [Column; 1] = [("number", Kind::Int, false)];
        let numbers: Vec<i32> = (0..100_000).collect();
        let bytes = write(&columns, |group| put::<Int32Type>(group, &numbers, None, None));
        let table = Table::open(bytes.expect("a file"), &columns).expect("a file");
        assert!(check_pages(&table, numbers.len()).is_ok());
        let error = check_pages(&table, numbers.len() - 1).expect_err("one more than there may be");
        assert!(error.to_string().contains("more values than there can be"));
    }
}
