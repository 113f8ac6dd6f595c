//! A column of a Parquet file, encoded by itself.

use bytes::Bytes;
use parquet::column::writer::{ColumnCloseResult, ColumnWriterImpl};
use parquet::data_type::DataType;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterPropertiesPtr;
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;

/// A column that a row group appends.
pub(crate) type EncodedColumn = (Bytes, ColumnCloseResult);

/// Encodes a column of this type, whose values `write` writes. The library's own choice by the type
/// that a schema names would bring writers of all types into the program.
pub(crate) fn encode_column<T: DataType>(
    column: &ColumnDescPtr,
    properties: &WriterPropertiesPtr,
    write: impl FnOnce(&mut ColumnWriterImpl<'_, T>) -> Result<(), ParquetError>,
) -> Result<EncodedColumn, ParquetError> {
    let mut out = TrackedWrite::new(Vec::new());
    let pages = Box::new(SerializedPageWriter::new(&mut out));
    let mut writer = ColumnWriterImpl::<T>::new(column.clone(), properties.clone(), pages);
    write(&mut writer)?;
    let closed = writer.close()?;
    Ok((out.into_inner()?.into(), closed))
}
