//! Rows of a result as Arrow record batches, handed on as rows come: the same columns as in
//! Parquet.

use super::cell::{Cell, Kind};
use super::column::{Column, Columns};
use super::count_model::all_slice_columns;
use super::export_model::{ExportParameters, Row, export_columns};
use super::flows_model::flow_columns;
use super::values::{RowBatch, Values as Many};
use super::{CountParameters, FlowParameters};
use crate::export::{ExportRows, ExportSink};
use crate::flows::{FlowRecord, FlowSink};
use crate::pipeline::{SliceResult, SliceSink};
use crate::zone::Zone;
use arrow_array::builder::{
    ArrayBuilder, BooleanBuilder, Float64Builder, Int64Builder, StringBuilder,
    TimestampNanosecondBuilder, UInt64Builder,
};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef, TimeUnit};
use std::fmt;
use std::io;
use std::mem::swap;
use std::ops::Range;
use std::sync::Arc;

/// Rows of a batch: as many as of a row group in Parquet.
const BATCH_ROWS: usize = 1 << 16;

/// Rows that are appended together. Whether a batch is full is asked behind each of them, so that
/// batches do not depend on how rows came.
const CHUNK_ROWS: usize = 256;

/// Bytes of text after which a batch is handed on although it has fewer rows.
const BATCH_TEXT_BYTES: usize = 16 << 20;

/// Gathers rows and hands them on, at most 65,536 at a time, so memory is bounded however many
/// there are.
///
/// Names are those of the fields in `docs/output.md`. Times are `Timestamp(Nanosecond, zone)`,
/// whole numbers `Int64` or `UInt64`, other numbers `Float64`, switches `Boolean`. All else is
/// `Utf8`, lists and objects as in CSV.
///
/// ```
/// use flowsieve::Count;
/// use flowsieve::output::{CountParameters, RecordBatches};
///
/// let count = Count::of(["traces/generated.pcap"]);
/// let parameters = CountParameters::from(&count.plan()?);
/// let mut rows = 0;
/// let mut batches = RecordBatches::of_slices(&parameters, |batch| {
///     rows += batch.num_rows();
///     Ok(())
/// });
/// count.run_into(&mut batches)?;
/// batches.finish()?;
/// assert_eq!(rows, 8);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct RecordBatches<R, F> {
    columns: Columns<R>,
    gathered: Gathered,
    take: F,
}

impl<R, F> fmt::Debug for RecordBatches<R, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordBatches").field("gathered", &self.gathered).finish_non_exhaustive()
    }
}

impl<F: FnMut(RecordBatch) -> io::Result<()>> RecordBatches<SliceResult, F> {
    /// The slices of a count.
    pub fn of_slices(parameters: &CountParameters, take: F) -> Self {
        let columns = all_slice_columns(parameters.design.as_ref(), true);
        Self::begin(columns, parameters.selected.zone, take)
    }
}

impl<F: FnMut(RecordBatch) -> io::Result<()>> RecordBatches<FlowRecord, F> {
    /// Flows.
    pub fn of_flows(parameters: &FlowParameters, take: F) -> Self {
        let columns = flow_columns(parameters.shape(), parameters.names);
        Self::begin(columns, parameters.selected.zone, take)
    }
}

impl<F: FnMut(RecordBatch) -> io::Result<()>> RecordBatches<Row, F> {
    /// Packets, or elements of slices.
    pub fn of_export(parameters: &ExportParameters, take: F) -> Self {
        let columns = export_columns(parameters.kind, parameters.names);
        Self::begin(columns, parameters.selected.zone, take)
    }
}

impl<R, F: FnMut(RecordBatch) -> io::Result<()>> RecordBatches<R, F> {
    fn begin(columns: Columns<R>, zone: Zone, take: F) -> Self {
        let columns = columns.flat().in_zone(zone);
        Self { gathered: Gathered::begin(&columns), columns, take }
    }

    /// The names and types of the columns.
    pub fn schema(&self) -> &SchemaRef {
        &self.gathered.schema
    }

    fn row(&mut self, row: &R) -> io::Result<()> {
        self.gathered.row(&self.columns, row, &mut self.take)
    }

    /// Hands on the rows that are left.
    ///
    /// # Errors
    ///
    /// Those of whoever takes the batches.
    pub fn finish(mut self) -> io::Result<()> {
        self.hand_on_rest()
    }

    pub(super) fn hand_on_rest(&mut self) -> io::Result<()> {
        self.gathered.hand_on_rest(&mut self.take)
    }
}

/// Rows that wait for their batch.
#[derive(Debug)]
pub(super) struct Gathered {
    schema: SchemaRef,
    values: Vec<Values>,
    rows: usize,
    text_bytes: usize,
}

/// Takes batches of rows.
pub(super) trait TakeBatch: FnMut(RecordBatch) -> io::Result<()> {}

impl<F: FnMut(RecordBatch) -> io::Result<()>> TakeBatch for F {}

impl Gathered {
    /// Begins, with the schema of these columns, which are flat.
    pub(super) fn begin<R>(columns: &Columns<R>) -> Self {
        let columns = &columns.0;
        let fields: Vec<Field> = columns.iter().map(field).collect();
        Self {
            values: columns.iter().map(|column| Values::of(&column.kind, column.zone)).collect(),
            schema: Arc::new(Schema::new(fields)),
            rows: 0,
            text_bytes: 0,
        }
    }

    /// The names and types of the columns.
    pub(super) const fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Appends a row.
    pub(super) fn row<R>(
        &mut self,
        columns: &Columns<R>,
        row: &R,
        take: &mut impl TakeBatch,
    ) -> io::Result<()> {
        for (values, column) in self.values.iter_mut().zip(&columns.0) {
            self.text_bytes += values.push(column.cell(row));
        }
        self.rows += 1;
        if self.rows == BATCH_ROWS || self.text_bytes >= BATCH_TEXT_BYTES {
            self.hand_on(take)?;
        }
        Ok(())
    }

    /// Appends rows of a batch.
    pub(super) fn rows<R: RowBatch>(
        &mut self,
        columns: &Columns<R>,
        batch: &mut R,
        range: Range<usize>,
        take: &mut impl TakeBatch,
    ) -> io::Result<()> {
        let mut next = range.start;
        while next < range.end {
            let chunk = CHUNK_ROWS - self.rows % CHUNK_ROWS;
            let end = range.end.min(next + chunk);
            for (to, column) in self.values.iter_mut().zip(&columns.0) {
                if let Some(values) = column.values(batch) {
                    self.text_bytes += to.extend(values, next..end);
                    continue;
                }
                for row in next..end {
                    batch.go_to(row);
                    self.text_bytes += to.push(column.cell(batch));
                }
            }
            self.rows += end - next;
            next = end;
            let is_full = self.rows == BATCH_ROWS || self.text_bytes >= BATCH_TEXT_BYTES;
            if is_full && self.rows.is_multiple_of(CHUNK_ROWS) {
                self.hand_on(take)?;
            }
        }
        Ok(())
    }

    /// Hands on the rows that are left.
    pub(super) fn hand_on_rest(&mut self, take: &mut impl TakeBatch) -> io::Result<()> {
        if self.rows > 0 { self.hand_on(take) } else { Ok(()) }
    }

    fn hand_on(&mut self, take: &mut impl TakeBatch) -> io::Result<()> {
        let arrays = self.values.iter_mut().map(Values::finish).collect();
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), arrays);
        (self.rows, self.text_bytes) = (0, 0);
        take(batch.map_err(|error: ArrowError| io::Error::other(error))?)
    }
}

impl<F: FnMut(RecordBatch) -> io::Result<()>> SliceSink for RecordBatches<SliceResult, F> {
    fn slice(&mut self, slice: &SliceResult) -> io::Result<()> {
        self.row(slice)
    }
}

impl<F: FnMut(RecordBatch) -> io::Result<()>> FlowSink for RecordBatches<FlowRecord, F> {
    fn flow(&mut self, flow: FlowRecord) -> io::Result<()> {
        self.row(&flow)
    }
}

impl<F: FnMut(RecordBatch) -> io::Result<()>> ExportSink for RecordBatches<Row, F> {
    fn rows(&mut self, rows: &mut ExportRows, range: Range<usize>) -> io::Result<()> {
        let mut row = Row::default();
        swap(&mut row.rows, rows);
        let taken = self.gathered.rows(&self.columns, &mut row, range, &mut self.take);
        swap(&mut row.rows, rows);
        taken
    }
}

fn field<R>(column: &Column<R>) -> Field {
    let name = column.name.as_ref();
    Field::new(name, Values::of(&column.kind, column.zone).data_type(column.zone), column.nullable)
}

/// The values of a column that wait for their batch.
#[derive(Debug)]
enum Values {
    Time(TimestampNanosecondBuilder),
    I64(Int64Builder),
    U64(UInt64Builder),
    F64(Float64Builder),
    Bool(BooleanBuilder),
    Text(StringBuilder),
}

/// The zone of a column of times. A reader looks the name up in its own table, so one without a
/// name is UTC: the instants are the same.
fn name_of(zone: Zone) -> &'static str {
    match zone.name() {
        Zone::UNNAMED => Zone::UTC.name(),
        name => name,
    }
}

impl Values {
    fn of(kind: &Kind, zone: Zone) -> Self {
        match kind {
            Kind::Time(_) => {
                Self::Time(TimestampNanosecondBuilder::new().with_timezone(name_of(zone)))
            }
            Kind::I64 => Self::I64(Int64Builder::new()),
            Kind::U64 => Self::U64(UInt64Builder::new()),
            Kind::F64 | Kind::Decimal | Kind::Whole | Kind::Seconds => {
                Self::F64(Float64Builder::new())
            }
            Kind::Bool => Self::Bool(BooleanBuilder::new()),
            Kind::Text | Kind::List(_) | Kind::Object(_) | Kind::Tally => {
                Self::Text(StringBuilder::new())
            }
        }
    }

    fn data_type(&self, zone: Zone) -> DataType {
        match self {
            Self::Time(_) => DataType::Timestamp(TimeUnit::Nanosecond, Some(name_of(zone).into())),
            Self::I64(_) => DataType::Int64,
            Self::U64(_) => DataType::UInt64,
            Self::F64(_) => DataType::Float64,
            Self::Bool(_) => DataType::Boolean,
            Self::Text(_) => DataType::Utf8,
        }
    }

    /// Takes a cell; how many bytes of text it has.
    fn push(&mut self, cell: Cell) -> usize {
        match (self, cell) {
            (Self::Time(values), Cell::Time(ns, _)) => values.append_value(ns),
            (Self::I64(values), Cell::I64(value)) => values.append_value(value),
            (Self::U64(values), Cell::U64(value)) => values.append_value(value),
            (Self::F64(values), Cell::F64(value) | Cell::Decimal(value) | Cell::Whole(value)) => {
                values.append_value(value);
            }
            (Self::F64(values), Cell::Seconds(ns)) => values.append_value(ns as f64 / 1e9),
            (Self::Bool(values), Cell::Bool(value)) => values.append_value(value),
            (Self::Time(values), _) => values.append_null(),
            (Self::I64(values), _) => values.append_null(),
            (Self::U64(values), _) => values.append_null(),
            (Self::F64(values), _) => values.append_null(),
            (Self::Bool(values), _) => values.append_null(),
            (Self::Text(values), Cell::Null) => values.append_null(),
            (Self::Text(values), cell) => {
                let text = cell.in_text();
                values.append_value(&text);
                return text.len();
            }
        }
        0
    }

    /// Takes values of these rows; how many bytes of text they have.
    fn extend(&mut self, values: Many<'_>, range: Range<usize>) -> usize {
        match (self, values) {
            (Self::Time(to), Many::Time(from)) => to.append_slice(&from[range]),
            (Self::U64(to), Many::U64(from)) => to.append_slice(&from[range]),
            (Self::U64(to), Many::U8(from)) => {
                from[range].iter().for_each(|&n| to.append_value(n.into()));
            }
            (Self::U64(to), Many::U16(from)) => {
                from[range].iter().for_each(|&n| to.append_value(n.into()));
            }
            (Self::U64(to), Many::OptionalU8(from)) => {
                let from = from[range].iter();
                from.for_each(|n| to.append_option(n.map(u64::from)));
            }
            (Self::U64(to), Many::OptionalU16(from)) => {
                let from = from[range].iter();
                from.for_each(|n| to.append_option(n.map(u64::from)));
            }
            (Self::Text(to), Many::Text(from)) => {
                let bytes = from.start(range.end) - from.start(range.start);
                range.for_each(|row| to.append_option(from.get(row)));
                return bytes;
            }
            (to, values) => panic!("{values:?} are of another kind than {to:?}"),
        }
        0
    }

    fn finish(&mut self) -> ArrayRef {
        match self {
            Self::Time(values) => ArrayBuilder::finish(values),
            Self::I64(values) => ArrayBuilder::finish(values),
            Self::U64(values) => ArrayBuilder::finish(values),
            Self::F64(values) => ArrayBuilder::finish(values),
            Self::Bool(values) => ArrayBuilder::finish(values),
            Self::Text(values) => ArrayBuilder::finish(values),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

    use super::super::FlowNames;
    use super::*;
    use crate::elements::ElementRule;
    use crate::filters::{FilterKind, Sizing};
    use crate::flows::{FlowPlan, list_unique};
    use crate::pipeline::{Align, CountExtras, CountPlan, CounterChoice, Slicing, count};
    use crate::plan::TracePlan;
    use arrow_array::Array;
    use arrow_array::cast::AsArray as _;
    use arrow_array::types::{Float64Type, Int64Type, TimestampNanosecondType, UInt64Type};

    const PATH: &str = "traces/generated.pcap";

    /// The value in this row as CSV would have it, with times in nanoseconds.
    fn text(array: &ArrayRef, row: usize) -> String {
        if array.is_null(row) {
            return String::new();
        }
        match array.data_type() {
            DataType::Timestamp(_, _) => {
                array.as_primitive::<TimestampNanosecondType>().value(row).to_string()
            }
            DataType::Int64 => array.as_primitive::<Int64Type>().value(row).to_string(),
            DataType::UInt64 => array.as_primitive::<UInt64Type>().value(row).to_string(),
            DataType::Float64 => {
                let number = array.as_primitive::<Float64Type>().value(row);
                serde_json::to_string(&number).unwrap()
            }
            DataType::Boolean => array.as_boolean().value(row).to_string(),
            DataType::Utf8 => array.as_string::<i32>().value(row).to_owned(),
            other => panic!("no column is {other}"),
        }
    }

    /// The cells that CSV has in a row, but for the twins that repeat a time for people.
    fn cells<R>(columns: &Columns<R>, row: &R) -> Vec<String> {
        let cells = columns.0.iter().map(|column| column.cell(row));
        cells
            .map(|cell| match cell {
                Cell::Time(ns, _) => ns.to_string(),
                cell => cell.in_text(),
            })
            .collect()
    }

    fn rows_of(batch: &RecordBatch) -> Vec<Vec<String>> {
        let row = |row| batch.columns().iter().map(move |array| text(array, row));
        (0..batch.num_rows()).map(|number| row(number).collect()).collect()
    }

    fn plan(exact_limit_bytes: Option<u64>) -> CountPlan {
        let sizing = Sizing::Memory { bytes: 4096, expected: None };
        CountPlan {
            trace: TracePlan::new([PATH]).with_threads(1),
            rule: ElementRule::default(),
            slicing: Slicing { width_ns: Some(1_000_000_000), align: Align::Epoch },
            counter: Some(CounterChoice::filter(FilterKind::Subset, 2, sizing, 8).unwrap()),
            exact_limit_bytes,
            seed: 0,
            shards: 8,
            every_ns: None,
        }
    }

    struct Kept(Vec<SliceResult>);

    impl SliceSink for Kept {
        fn slice(&mut self, slice: &SliceResult) -> io::Result<()> {
            self.0.push(slice.clone());
            Ok(())
        }
    }

    #[test]
    fn slices_are_the_rows_of_csv_and_nothing_is_null_that_may_not_be() {
        for plan in [plan(Some(1 << 20)), plan(None)] {
            let parameters = CountParameters::from(&plan);
            let columns = all_slice_columns(parameters.design.as_ref(), true).flat();
            let mut gathered = Kept(Vec::new());
            count(&plan, CountExtras::default(), &mut gathered, &()).unwrap();
            let mut found = Vec::new();
            let mut batches = RecordBatches::of_slices(&parameters, |batch| {
                found.extend(rows_of(&batch));
                for (field, array) in batch.schema().fields().iter().zip(batch.columns()) {
                    assert!(field.is_nullable() || array.null_count() == 0, "{field}");
                }
                Ok(())
            });
            count(&plan, CountExtras::default(), &mut batches, &()).unwrap();
            batches.finish().unwrap();
            let expected: Vec<_> = gathered.0.iter().map(|s| cells(&columns, s)).collect();
            assert_eq!(found, expected);
            assert_eq!(found.len(), 8);
        }
    }

    #[test]
    fn packets_are_read_back_from_a_file() {
        use super::super::{ExportFormat, ExportReport, ReportFormat};
        use crate::export::{ExportPlan, ExportWhat, export};
        let plan =
            ExportPlan { trace: TracePlan::new([PATH]).with_threads(1), what: ExportWhat::Packets };
        let parameters = ExportParameters::new(&plan, FlowNames::Flowsieve);
        let written = |format| {
            let report = ExportReport::begin(format, &parameters, 1, Vec::new());
            let mut report = report.unwrap();
            let summary = export(&plan, &mut report, &()).unwrap();
            report.finish(&summary).unwrap()
        };
        let file = io::Cursor::new(written(ExportFormat::Arrow));
        let file = arrow_ipc::reader::FileReader::try_new(file, None).unwrap();
        let found: Vec<_> = file.flat_map(|batch| rows_of(&batch.unwrap())).collect();
        let csv = written(ExportFormat::Report(ReportFormat::Csv));
        let mut csv = csv::Reader::from_reader(csv.as_slice());
        let expected: Vec<Vec<String>> = csv
            .records()
            .map(|record| {
                // Without the time for people.
                let cells = record.unwrap();
                let cells = cells.iter().enumerate().filter(|&(place, _)| place != 1);
                cells.map(|(_, cell)| cell.to_owned()).collect()
            })
            .collect();
        assert!(expected.len() > 7000);
        assert!(found == expected);
    }

    #[test]
    fn flows_are_the_rows_of_csv() {
        struct Both<F> {
            batches: RecordBatches<FlowRecord, F>,
            columns: Columns<FlowRecord>,
            expected: Vec<Vec<String>>,
        }
        impl<F: FnMut(RecordBatch) -> io::Result<()>> FlowSink for Both<F> {
            fn flow(&mut self, flow: FlowRecord) -> io::Result<()> {
                self.expected.push(cells(&self.columns, &flow));
                self.batches.flow(flow)
            }
        }
        let plan = FlowPlan::new([PATH]);
        let parameters = FlowParameters::new(&plan, plan.memory_bytes, true, FlowNames::Flowsieve);
        let mut found = Vec::new();
        let mut both = Both {
            batches: RecordBatches::of_flows(&parameters, |batch| {
                found.extend(rows_of(&batch));
                Ok(())
            }),
            columns: flow_columns(parameters.shape(), parameters.names).flat(),
            expected: Vec::new(),
        };
        list_unique(&plan, &mut both, &()).unwrap();
        let Both { batches, expected, .. } = both;
        batches.finish().unwrap();
        assert!(expected.len() > 1000);
        assert!(found == expected);
    }
}
