//! Arrow: the rows of the CSV as an IPC file (Feather, version 2), or as an IPC stream with the
//! document behind it. In the stream addresses and words have a dictionary a batch; a file may have
//! only one, which is not known before its last row.
//!
//! A reader of Arrow stops at the end of the stream. What follows there is one JSON document: that
//! of the format `json` without the rows.

use crate::report::batch::{Array, Batch, Field, Schema, Values};
use crate::report::cell::{Cell, Kind};
use crate::report::format::{
    BatchSize, DocumentPlace, Format, Frame, Part, ReportFormat, Tail, write_document,
};
use crate::zone::Zone;
use arrow_array::builder::StringDictionaryBuilder;
use arrow_array::types::{ArrowDictionaryKeyType, Int16Type, Int32Type};
use arrow_array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray,
    TimestampNanosecondArray, UInt8Array, UInt16Array, UInt64Array,
};
use arrow_ipc::writer::{FileWriter, StreamWriter};
use arrow_schema::{
    ArrowError, DataType, Field as ArrowField, Schema as ArrowSchema, SchemaRef, TimeUnit,
};
use std::io::{self, Write};
use std::sync::Arc;

pub(in crate::report) const FILE: ReportFormat = ReportFormat {
    name: "arrow",
    help: "The rows of the CSV as an Arrow IPC file",
    is_binary: true,
    is_line_by_line: false,
    is_flat: true,
    document: DocumentPlace::None,
    begin: || Box::new(ArrowFile(None)),
};

pub(in crate::report) const STREAM: ReportFormat = ReportFormat {
    name: "arrows",
    help: "The rows of the CSV as an Arrow IPC stream",
    is_line_by_line: true,
    document: DocumentPlace::Behind,
    begin: || Box::new(ArrowStream(None)),
    ..FILE
};

/// Rows of a batch: as many as of a row group in Parquet.
pub(in crate::report) const BATCH_ROWS: usize = 1 << 16;

/// Memory of a batch and of what it becomes.
const BATCH_BYTES: u64 = 24 << 20;

/// Declares a format by its writer in the crate. It writes into memory, from where batches go to the
/// output: so failures of the output stay what they are.
macro_rules! ipc {
    ($format:ident by $writer:ident, is_stream: $is_stream:literal) => {
        struct $format(Option<$writer<Vec<u8>>>);

        impl $format {
            fn write_from_memory(
                &mut self,
                fill: impl FnOnce(&mut $writer<Vec<u8>>) -> Result<(), ArrowError>,
                out: &mut dyn Write,
            ) -> io::Result<()> {
                let writer = self.0.as_mut().expect("the head was written");
                fill(writer).map_err(io::Error::other)?;
                out.write_all(writer.get_ref())?;
                writer.get_mut().clear();
                Ok(())
            }
        }

        impl Format for $format {
            fn batch_size(&self) -> BatchSize {
                BatchSize { rows: BATCH_ROWS, bytes: BATCH_BYTES, is_fixed: !$is_stream }
            }

            fn begin(&mut self, schema: &Schema, _: &Frame, _: &mut dyn Write) -> io::Result<()> {
                let writer = $writer::try_new(Vec::new(), &arrow_schema(schema, $is_stream));
                self.0 = Some(writer.map_err(io::Error::other)?);
                Ok(())
            }

            fn encode(&mut self, batch: &Batch) -> io::Result<Part> {
                let schema = arrow_schema(&batch.schema, $is_stream);
                Ok(Part::new(record_batch(batch, &schema)))
            }

            fn write(&mut self, part: Part, out: &mut dyn Write) -> io::Result<()> {
                let batch = part.downcast::<RecordBatch>();
                self.write_from_memory(|writer| writer.write(&batch), out)
            }

            fn end(&mut self, frame: Frame, tail: Tail, out: &mut dyn Write) -> io::Result<()> {
                self.write_from_memory($writer::finish, out)?;
                if $is_stream {
                    write_document(out, &frame.into_document(tail))?;
                }
                Ok(())
            }

            fn fork(&self) -> Box<dyn Format> {
                Box::new(Self(None))
            }
        }
    };
}

ipc!(ArrowFile by FileWriter, is_stream: false);
ipc!(ArrowStream by StreamWriter, is_stream: true);

/// Returns the schema in Arrow's types, with or without dictionaries.
pub(in crate::report) fn arrow_schema(schema: &Schema, dictionaries: bool) -> SchemaRef {
    let fields = schema.iter().map(|field| {
        let key = match field.kind {
            Kind::Address if dictionaries => Some(DataType::Int32),
            Kind::Word if dictionaries => Some(DataType::Int16),
            _ => None,
        };
        let plain = data_type(field);
        let kind = match key {
            Some(key) => DataType::Dictionary(Box::new(key), Box::new(plain)),
            None => plain,
        };
        ArrowField::new(field.name.as_ref(), kind, field.nullable)
    });
    Arc::new(ArrowSchema::new(fields.collect::<Vec<_>>()))
}

fn data_type(field: &Field) -> DataType {
    match field.kind {
        Kind::Time(_) => {
            DataType::Timestamp(TimeUnit::Nanosecond, Some(name_of(field.zone).into()))
        }
        Kind::I64 => DataType::Int64,
        Kind::U64 => DataType::UInt64,
        Kind::U16 => DataType::UInt16,
        Kind::U8 => DataType::UInt8,
        Kind::Bool => DataType::Boolean,
        _ if field.kind.is_float() => DataType::Float64,
        _ => DataType::Utf8,
    }
}

/// Returns the zone of a column of times. A reader looks the name up in its own table, so one
/// without a name is UTC: the instants are the same.
fn name_of(zone: Zone) -> &'static str {
    match zone.name() {
        Zone::UNNAMED => Zone::UTC.name(),
        name => name,
    }
}

/// Returns the rows as a record batch.
pub(in crate::report) fn record_batch(batch: &Batch, schema: &SchemaRef) -> RecordBatch {
    let arrays = batch.columns().zip(schema.fields());
    let arrays = arrays.map(|((field, array), kind)| arrow_array(field, array, kind.data_type()));
    let arrays = RecordBatch::try_new(Arc::clone(schema), arrays.collect());
    arrays.expect("arrays are as long as the batch and of the types of the schema")
}

fn arrow_array(field: &Field, array: &Array, kind: &DataType) -> ArrayRef {
    let nulls = || array.valid.clone().map(Into::into);
    let is_some = |cell: &Cell| *cell != Cell::Null;
    match &array.values {
        Values::I64(times) if matches!(field.kind, Kind::Time(_)) => {
            let times = TimestampNanosecondArray::new(times.clone().into(), nulls());
            Arc::new(times.with_timezone(name_of(field.zone)))
        }
        Values::I64(values) => Arc::new(Int64Array::new(values.clone().into(), nulls())),
        Values::U64(values) => Arc::new(UInt64Array::new(values.clone().into(), nulls())),
        Values::U16(values) => Arc::new(UInt16Array::new(values.clone().into(), nulls())),
        Values::U8(values) => Arc::new(UInt8Array::new(values.clone().into(), nulls())),
        Values::F64(values) => Arc::new(Float64Array::new(values.clone().into(), nulls())),
        Values::Bool(values) => Arc::new(BooleanArray::new(values.clone().into(), nulls())),
        Values::Cells(cells) if field.kind == Kind::Seconds => {
            let durations = cells.iter().map(|cell| is_some(cell).then(|| cell.as_seconds()));
            Arc::new(durations.collect::<Float64Array>())
        }
        Values::Text(texts) => {
            let rows = 0..texts.ends.len();
            let texts = rows.map(|row| (!array.is_null(row)).then(|| texts.get(row)));
            match kind {
                DataType::Dictionary(key, _) if **key == DataType::Int16 => {
                    dictionary::<Int16Type>(texts)
                }
                DataType::Dictionary(..) => dictionary::<Int32Type>(texts),
                _ => Arc::new(texts.collect::<StringArray>()),
            }
        }
        Values::Cells(cells) => {
            let texts = cells.iter().map(|cell| is_some(cell).then(|| cell.to_text()));
            Arc::new(texts.collect::<StringArray>())
        }
    }
}

fn dictionary<'a, K: ArrowDictionaryKeyType>(
    texts: impl Iterator<Item = Option<&'a str>>,
) -> ArrayRef {
    let mut builder = StringDictionaryBuilder::<K>::new();
    for text in texts {
        builder.append_option(text);
    }
    Arc::new(builder.finish())
}
