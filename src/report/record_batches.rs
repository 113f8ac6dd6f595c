//! Rows of a result as Arrow record batches, handed on as rows come.

use super::column::Columns;
use super::count_model::all_slice_columns;
use super::export_model::{CHECKED_ROWS, ExportParameters, ExportPart, export_columns};
use super::flows_model::flow_columns;
use super::formats::arrow::{BATCH_ROWS, arrow_schema, record_batch};
use super::rows::GatheredRows;
use super::{CountParameters, FlowParameters};
use crate::export::{ExportRows, ExportSink};
use crate::flows::{FlowRecord, FlowSink};
use crate::pipeline::{SliceResult, SliceSink};
use crate::zone::Zone;
use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use std::fmt;
use std::io;
use std::ops::Range;
use std::slice::from_ref;

/// Gathers rows and hands them on, at most 65,536 at a time, so memory is bounded however many
/// there are.
///
/// Names are those of the fields in `docs/output.md`. Times are `Timestamp(Nanosecond, zone)`,
/// whole numbers `Int64` or `UInt64`, ports `UInt16`, protocols and flags `UInt8`, other numbers
/// `Float64`, switches `Boolean`. All else is `Utf8`, lists and objects as in CSV.
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
    rows: GatheredRows<R>,
    schema: SchemaRef,
    take: F,
}

impl<R, F> fmt::Debug for RecordBatches<R, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordBatches").field("schema", &self.schema).finish_non_exhaustive()
    }
}

impl<F: FnMut(RecordBatch) -> io::Result<()>> RecordBatches<SliceResult, F> {
    /// The slices of a count.
    pub fn of_slices(parameters: &CountParameters, take: F) -> Self {
        let columns = all_slice_columns(parameters.design.as_ref(), true);
        Self::begin(columns, parameters.plan.trace.selection.zone, 1, take)
    }
}

impl<F: FnMut(RecordBatch) -> io::Result<()>> RecordBatches<FlowRecord, F> {
    /// Flows.
    pub fn of_flows(parameters: &FlowParameters, take: F) -> Self {
        let columns = flow_columns(parameters.shape(), parameters.names);
        Self::begin(columns, parameters.plan.trace.selection.zone, 1, take)
    }
}

impl<F: FnMut(RecordBatch) -> io::Result<()>> RecordBatches<ExportPart, F> {
    /// Packets, or elements of slices.
    pub fn of_export(parameters: &ExportParameters, take: F) -> Self {
        let columns = export_columns(parameters.kind(), parameters.names);
        Self::begin(columns, parameters.plan.trace.selection.zone, CHECKED_ROWS, take)
    }
}

impl<R, F: FnMut(RecordBatch) -> io::Result<()>> RecordBatches<R, F> {
    fn begin(columns: Columns<R>, zone: Zone, checked_rows: usize, take: F) -> Self {
        let rows = GatheredRows::new(columns.flat().in_zone(zone), BATCH_ROWS, checked_rows);
        Self { schema: arrow_schema(&rows.batch.schema, false), rows, take }
    }

    /// The names and types of the columns.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn row(&mut self, row: &R) -> io::Result<()> {
        if self.rows.append(from_ref(row)) { self.emit() } else { Ok(()) }
    }

    fn emit(&mut self) -> io::Result<()> {
        let batch = record_batch(&self.rows.batch, &self.schema);
        self.rows.pass();
        self.rows.batch.clear();
        (self.take)(batch)
    }

    /// Hands on the rows that are left.
    ///
    /// # Errors
    ///
    /// `take` failed.
    pub fn finish(mut self) -> io::Result<()> {
        if self.rows.batch.rows > 0 { self.emit() } else { Ok(()) }
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

impl<F: FnMut(RecordBatch) -> io::Result<()>> ExportSink for RecordBatches<ExportPart, F> {
    fn rows(&mut self, rows: &mut ExportRows, range: Range<usize>) -> io::Result<()> {
        let mut part = ExportPart::default();
        part.each(rows, range, self.rows.batch.rows, |part| self.row(part))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

    use super::super::FlowNames;
    use super::super::cell::Cell;
    use super::*;
    use crate::elements::ElementRule;
    use crate::filters::{FilterKind, Sizing};
    use crate::flows::{FlowPlan, list_unique};
    use crate::pipeline::{Align, CountExtras, CountPlan, CounterChoice, Slicing, count};
    use crate::plan::TracePlan;
    use arrow_array::cast::AsArray as _;
    use arrow_array::types::{
        Float64Type, Int64Type, TimestampNanosecondType, UInt8Type, UInt16Type, UInt64Type,
    };
    use arrow_array::{Array, ArrayRef};
    use arrow_schema::DataType;

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
            DataType::UInt8 => array.as_primitive::<UInt8Type>().value(row).to_string(),
            DataType::UInt16 => array.as_primitive::<UInt16Type>().value(row).to_string(),
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

    /// The cells that CSV has in a row, but for times, which are nanoseconds.
    fn cells<R>(columns: &Columns<R>, row: &R) -> Vec<String> {
        let batch = columns.batch_of(from_ref(row));
        let cells = batch.columns().map(|(field, array)| array.cell(0, &field.kind, field.zone));
        cells
            .map(|cell| match cell {
                Cell::Time(ns, _) => ns.to_string(),
                cell => cell.to_text(),
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
        use super::super::formats::arrow;
        use super::super::{ExportReport, ReportFormat};
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
        let file = io::Cursor::new(written(arrow::FILE));
        let file = arrow_ipc::reader::FileReader::try_new(file, None).unwrap();
        let found: Vec<_> = file.flat_map(|batch| rows_of(&batch.unwrap())).collect();
        let csv = written(ReportFormat::CSV);
        let mut csv = csv::Reader::from_reader(csv.as_slice());
        let expected: Vec<Vec<String>> = csv
            .records()
            .map(|record| {
                let record = record.unwrap();
                // A time is nanoseconds here, as in the cell before it.
                let cells = record.iter().enumerate();
                cells
                    .map(|(place, cell)| if place == 1 { &record[0] } else { cell }.to_owned())
                    .collect()
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
