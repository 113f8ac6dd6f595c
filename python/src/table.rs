//! Rows in memory, for any library that takes Arrow.

use crate::packed::{batch_of, for_each_community_id, packed_batches, unpacked, unpacked_batch};
use arrow_array::cast::AsArray as _;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{
    Float64Type, Int64Type, TimestampNanosecondType, UInt8Type, UInt16Type, UInt64Type,
};
use arrow_array::{
    AnyDictionaryArray, Array, ArrayRef, RecordBatch, RecordBatchIterator, RecordBatchReader,
    TimestampNanosecondArray, make_array,
};
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, DataType, SchemaRef};
use pyo3::IntoPyObjectExt as _;
use pyo3::exceptions::{PyKeyError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyList, PyString, PyTuple};
use std::collections::HashMap;
use std::sync::Arc;

/// Value for `pickle`: a function that creates the object, and its arguments.
pub(crate) type Reduced<'py> = (Bound<'py, PyAny>, (Vec<u8>,));

/// Rows that become Python objects at a time.
const AT_ONCE: usize = 1 << 11;

/// Rows of a result.
#[pyclass(module = "flowsieve._native", frozen)]
pub(crate) struct Table {
    schema: SchemaRef,
    /// The rows, perhaps packed.
    batches: Vec<RecordBatch>,
}

impl Table {
    pub(crate) const fn new(schema: SchemaRef, batches: Vec<RecordBatch>) -> Self {
        Self { schema, batches }
    }

    /// Returns the rows in the types of the schema.
    pub(crate) fn batches(&self) -> impl Iterator<Item = RecordBatch> {
        self.batches.iter().map(|batch| unpacked_batch(batch, &self.schema))
    }

    /// Returns all columns as lists. A time and its integer are the same one.
    fn lists<'py>(
        &self,
        py: Python<'py>,
        rows: &RecordBatch,
        words: &mut Vec<Words<'py>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let mut lists: Vec<Bound<'_, PyList>> = Vec::with_capacity(rows.num_columns());
        for (place, field) in self.schema.fields().iter().enumerate() {
            let is_time = matches!(field.data_type(), DataType::Timestamp(..));
            let twin = self.schema.index_of(&format!("{}_ns", field.name())).ok();
            if let Some(twin) = twin.filter(|_| is_time).and_then(|twin| lists.get(twin)) {
                lists.push(twin.clone());
                continue;
            }
            let mut values = Vec::with_capacity(rows.num_rows());
            append(py, rows.column(place), field.data_type(), &mut values, words)?;
            lists.push(PyList::new(py, values)?);
        }
        PyTuple::new(py, lists)
    }

    /// Returns these rows, without copying them.
    fn range(&self, start: usize, stop: usize) -> impl Iterator<Item = RecordBatch> {
        let mut first = 0;
        self.batches.iter().filter_map(move |batch| {
            let rows = batch.num_rows();
            let from = start.saturating_sub(first).min(rows);
            let to = stop.saturating_sub(first).min(rows);
            first += rows;
            (from < to).then(|| batch.slice(from, to - from))
        })
    }
}

#[pymethods]
impl Table {
    /// Returns the names of the columns.
    fn column_names(&self) -> Vec<String> {
        let fields = self.schema.fields().iter();
        fields.map(|field| field.name().clone()).collect()
    }

    fn __len__(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// Calls `take` with all columns of some rows at a time, so few that what was created is still in
    /// the cache. Times are nanoseconds since 1970.
    fn take_rows<'py>(
        &self,
        py: Python<'py>,
        take: &Bound<'py, PyAny>,
        start: usize,
        stop: usize,
    ) -> PyResult<()> {
        let mut words: Vec<Words<'_>> = Vec::new();
        for batch in self.range(start, stop) {
            let dictionaries = batch.columns().iter().filter_map(|it| it.as_any_dictionary_opt());
            let dictionaries: Vec<_> = dictionaries.map(AnyDictionaryArray::values).collect();
            words.retain(|(of, _)| dictionaries.iter().any(|values| Arc::ptr_eq(values, of)));
            for first in (0..batch.num_rows()).step_by(AT_ONCE) {
                let rows = batch.slice(first, AT_ONCE.min(batch.num_rows() - first));
                take.call1(self.lists(py, &rows, &mut words)?)?;
            }
        }
        Ok(())
    }

    /// Returns the bytes of the rows in memory. What columns share counts once.
    fn nbytes(&self) -> usize {
        let mut buffers = HashMap::new();
        let mut count = |array: &dyn Array| {
            let data = array.to_data();
            buffers.extend(data.buffers().iter().map(|buffer| (buffer.as_ptr(), buffer.len())));
            if let Some(nulls) = data.nulls() {
                buffers.insert(nulls.buffer().as_ptr(), nulls.buffer().len());
            }
        };
        for column in self.batches.iter().flat_map(RecordBatch::columns) {
            count(column);
            if let Some(dictionary) = column.as_any_dictionary_opt() {
                count(dictionary.values());
            }
        }
        buffers.values().sum()
    }

    /// Returns the names of the columns and their types.
    fn types(&self) -> Vec<(String, String)> {
        let fields = self.schema.fields().iter();
        fields.map(|field| (field.name().clone(), type_name(field.data_type()))).collect()
    }

    /// Returns some of the rows.
    fn slice(&self, start: usize, stop: usize) -> Self {
        Self { schema: self.schema.clone(), batches: self.range(start, stop).collect() }
    }

    /// Returns some of the columns.
    fn select(&self, names: Vec<String>) -> PyResult<Self> {
        let places = names
            .iter()
            .map(|name| self.schema.index_of(name).map_err(|_| PyKeyError::new_err(name.clone())));
        let places = places.collect::<PyResult<Vec<_>>>()?;
        let wrong = |error: ArrowError| PyValueError::new_err(error.to_string());
        let schema = self.schema.project(&places).map_err(wrong)?;
        let batches = self.batches.iter().map(|batch| batch.project(&places));
        let batches = batches.collect::<Result<_, _>>().map_err(wrong)?;
        Ok(Self { schema: schema.into(), batches })
    }

    /// Creates rows from their bytes in Arrow's IPC format, as in `__reduce__`.
    #[staticmethod]
    fn from_bytes(bytes: &[u8]) -> PyResult<Self> {
        let read = || {
            let reader = StreamReader::try_new(bytes, None)?;
            let schema = reader.schema();
            let batches = packed_batches(reader.map(|batch| compact(&batch?)))?;
            Ok(Self { schema, batches })
        };
        read().map_err(|error: ArrowError| PyValueError::new_err(error.to_string()))
    }

    /// Returns the rows for `pickle`.
    fn __reduce__<'py>(this: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        let (py, table) = (this.py(), this.get());
        let bytes = py.detach(|| {
            let mut writer = StreamWriter::try_new(Vec::new(), &table.schema)?;
            for batch in table.batches() {
                writer.write(&batch)?;
            }
            writer.into_inner()
        });
        let bytes = bytes.map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok((this.get_type().getattr("from_bytes")?, (bytes,)))
    }

    /// Returns the rows as an Arrow C stream.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let (batches, schema) = (self.batches.clone(), self.schema.clone());
        let rows = batches.into_iter().map(move |batch| Ok(unpacked_batch(&batch, &schema)));
        stream_capsule(py, RecordBatchIterator::new(rows, self.schema.clone()))
    }
}

/// Copies each column of a batch into a separate buffer, and shares one buffer between the integer
/// and the time column of a timestamp. The columns of a stream are parts of one allocation, which
/// each of them would keep alive.
pub(crate) fn compact(batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    let schema = batch.schema();
    let mut columns: Vec<ArrayRef> = Vec::with_capacity(batch.num_columns());
    for (field, column) in schema.fields().iter().zip(batch.columns()) {
        let twin = schema.index_of(&format!("{}_ns", field.name()));
        let twin = twin.ok().and_then(|place| columns.get(place));
        let twin = twin.and_then(|twin| twin.as_primitive_opt::<Int64Type>());
        columns.push(if let (DataType::Timestamp(_, zone), Some(ns)) = (field.data_type(), twin) {
            let times = TimestampNanosecondArray::new(ns.values().clone(), ns.nulls().cloned());
            Arc::new(times.with_timezone_opt(zone.clone()))
        } else {
            let data = column.to_data();
            let buffers = data.buffers().iter().map(|buffer| buffer.as_slice().to_vec().into());
            let buffers = buffers.collect();
            let nulls = data.nulls().filter(|nulls| nulls.null_count() > 0);
            let nulls = nulls.map(|nulls| nulls.iter().collect());
            let copied = data.into_builder().buffers(buffers).nulls(nulls);
            make_array(copied.align_buffers(true).build()?)
        });
    }
    batch_of(schema, columns, batch.num_rows())
}

/// Returns rows as an Arrow C stream in a capsule, by which libraries exchange Arrow data.
pub(crate) fn stream_capsule(
    py: Python<'_>,
    rows: impl RecordBatchReader + Send + 'static,
) -> PyResult<Bound<'_, PyCapsule>> {
    let rows = FFI_ArrowArrayStream::new(Box::new(rows));
    PyCapsule::new_with_value(py, rows, c"arrow_array_stream")
}

/// A dictionary and its words as Python objects, created on first use: a few rows of a large table
/// use few words. All columns and rows that have the dictionary share it.
type Words<'py> = (ArrayRef, Vec<Option<Bound<'py, PyAny>>>);

/// Appends the values of a column, perhaps packed, as Python objects.
fn append<'py>(
    py: Python<'py>,
    column: &ArrayRef,
    kind: &DataType,
    values: &mut Vec<Bound<'py, PyAny>>,
    words: &mut Vec<Words<'py>>,
) -> PyResult<()> {
    if let DataType::FixedSizeBinary(_) = column.data_type() {
        let none = || py.None().into_bound(py);
        for_each_community_id(column, |text| {
            values.push(text.map_or_else(none, |text| PyString::new(py, text).into_any()));
        });
        return Ok(());
    }
    let array = &unpacked(column, kind);
    match kind {
        _ if array.null_count() == array.len() => {
            values.resize(values.len() + array.len(), py.None().into_bound(py));
            Ok(())
        }
        DataType::Timestamp(_, _) => {
            extend(py, array.as_primitive::<TimestampNanosecondType>(), values)
        }
        DataType::Int64 => extend(py, array.as_primitive::<Int64Type>(), values),
        DataType::UInt64 => extend(py, array.as_primitive::<UInt64Type>(), values),
        DataType::UInt16 => extend(py, array.as_primitive::<UInt16Type>(), values),
        DataType::UInt8 => extend(py, array.as_primitive::<UInt8Type>(), values),
        DataType::Float64 => extend(py, array.as_primitive::<Float64Type>(), values),
        DataType::Boolean => extend(py, array.as_boolean(), values),
        DataType::Utf8 => extend(py, array.as_string::<i32>(), values),
        DataType::Dictionary(_, _) => {
            let dictionary = array.as_any_dictionary();
            let texts = dictionary.values().as_string::<i32>();
            let known = words.iter().position(|(of, _)| Arc::ptr_eq(of, dictionary.values()));
            let known = known.unwrap_or_else(|| {
                words.push((Arc::clone(dictionary.values()), vec![None; texts.len()]));
                words.len() - 1
            });
            let words = &mut words[known].1;
            let keys = dictionary.normalized_keys().into_iter().enumerate();
            values.extend(keys.map(|(row, key)| {
                let word = || PyString::new(py, texts.value(key)).into_any();
                let word = array.is_valid(row).then(|| words[key].get_or_insert_with(word));
                word.map_or_else(|| py.None().into_bound(py), |word| word.clone())
            }));
            Ok(())
        }
        other => Err(PyTypeError::new_err(format!("no column is {other}"))),
    }
}

/// Appends cells as Python objects.
fn extend<'py>(
    py: Python<'py>,
    cells: impl IntoIterator<Item: IntoPyObject<'py>>,
    values: &mut Vec<Bound<'py, PyAny>>,
) -> PyResult<()> {
    for cell in cells {
        values.push(cell.into_bound_py_any(py)?);
    }
    Ok(())
}

/// Returns the name that a type has for users.
fn type_name(kind: &DataType) -> String {
    match kind {
        DataType::Timestamp(_, Some(zone)) => format!("timestamp[ns, {zone}]"),
        DataType::Dictionary(_, values) => format!("dictionary[{}]", type_name(values)),
        DataType::Utf8 => "string".to_owned(),
        other => other.to_string().to_lowercase(),
    }
}
