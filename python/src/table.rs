//! Rows in memory, for any library that takes Arrow.

use arrow_array::cast::AsArray as _;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{
    Float64Type, Int64Type, TimestampNanosecondType, UInt8Type, UInt16Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchIterator, RecordBatchReader};
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, DataType, SchemaRef};
use pyo3::exceptions::{PyKeyError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyList};

/// For `pickle`: a function that makes the object, and its arguments.
pub(crate) type Reduced<'py> = (Bound<'py, PyAny>, (Bound<'py, PyBytes>,));

/// Rows of a result.
#[pyclass(module = "flowsieve._native", frozen)]
pub(crate) struct Table {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

impl Table {
    pub(crate) const fn new(schema: SchemaRef, batches: Vec<RecordBatch>) -> Self {
        Self { schema, batches }
    }

    pub(crate) fn batches(&self) -> &[RecordBatch] {
        &self.batches
    }
}

#[pymethods]
impl Table {
    /// The names of the columns.
    fn column_names(&self) -> Vec<String> {
        let fields = self.schema.fields().iter();
        fields.map(|field| field.name().clone()).collect()
    }

    fn __len__(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// The values of a column in these rows; times are nanoseconds since 1970.
    #[pyo3(signature = (name, start = 0, stop = None))]
    fn column<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        start: usize,
        stop: Option<usize>,
    ) -> PyResult<Bound<'py, PyList>> {
        let column = self.schema.index_of(name);
        let column = column.map_err(|_| PyKeyError::new_err(name.to_owned()))?;
        let values = PyList::empty(py);
        let stop = stop.unwrap_or(usize::MAX);
        let mut first = 0;
        for batch in &self.batches {
            let rows = batch.num_rows();
            let from = start.saturating_sub(first).min(rows);
            let to = stop.saturating_sub(first).min(rows);
            for row in from..to {
                values.append(value(py, batch.column(column), row)?)?;
            }
            first += rows;
        }
        Ok(values)
    }

    /// Rows from their bytes in Arrow's IPC format, as `__reduce__` makes them.
    #[staticmethod]
    fn from_bytes(bytes: &[u8]) -> PyResult<Self> {
        let read = || {
            let reader = StreamReader::try_new(bytes, None)?;
            let schema = reader.schema();
            Ok(Self { schema, batches: reader.collect::<Result<_, _>>()? })
        };
        read().map_err(|error: ArrowError| PyValueError::new_err(error.to_string()))
    }

    /// The rows for `pickle`.
    fn __reduce__<'py>(this: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        let (py, table) = (this.py(), this.get());
        let bytes = py.detach(|| {
            let mut writer = StreamWriter::try_new(Vec::new(), &table.schema)?;
            for batch in &table.batches {
                writer.write(batch)?;
            }
            writer.into_inner()
        });
        let bytes = bytes.map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok((this.get_type().getattr("from_bytes")?, (PyBytes::new(py, &bytes),)))
    }

    /// The rows as an Arrow C stream.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let batches = self.batches.clone().into_iter().map(Ok);
        stream_capsule(py, RecordBatchIterator::new(batches, self.schema.clone()))
    }
}

/// Rows in the form in which libraries hand Arrow to one another.
pub(crate) fn stream_capsule(
    py: Python<'_>,
    rows: impl RecordBatchReader + Send + 'static,
) -> PyResult<Bound<'_, PyCapsule>> {
    let rows = FFI_ArrowArrayStream::new(Box::new(rows));
    PyCapsule::new_with_value(py, rows, c"arrow_array_stream")
}

/// A value as Python's own.
fn value<'py>(py: Python<'py>, array: &ArrayRef, row: usize) -> PyResult<Bound<'py, PyAny>> {
    if array.is_null(row) {
        return Ok(py.None().into_bound(py));
    }
    Ok(match array.data_type() {
        DataType::Timestamp(_, _) => {
            let times = array.as_primitive::<TimestampNanosecondType>();
            times.value(row).into_pyobject(py)?.into_any()
        }
        DataType::Int64 => {
            let numbers = array.as_primitive::<Int64Type>();
            numbers.value(row).into_pyobject(py)?.into_any()
        }
        DataType::UInt64 => {
            let numbers = array.as_primitive::<UInt64Type>();
            numbers.value(row).into_pyobject(py)?.into_any()
        }
        DataType::UInt16 => {
            let numbers = array.as_primitive::<UInt16Type>();
            numbers.value(row).into_pyobject(py)?.into_any()
        }
        DataType::UInt8 => {
            let numbers = array.as_primitive::<UInt8Type>();
            numbers.value(row).into_pyobject(py)?.into_any()
        }
        DataType::Float64 => {
            let numbers = array.as_primitive::<Float64Type>();
            numbers.value(row).into_pyobject(py)?.into_any()
        }
        DataType::Boolean => {
            let truth = array.as_boolean().value(row).into_pyobject(py)?;
            truth.to_owned().into_any()
        }
        DataType::Utf8 => array.as_string::<i32>().value(row).into_pyobject(py)?.into_any(),
        other => return Err(PyTypeError::new_err(format!("no column is {other}"))),
    })
}
