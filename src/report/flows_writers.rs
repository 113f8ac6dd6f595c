//! Flows for programs: CSV, JSON, JSON lines, Parquet.

use super::flows_model::{
    Cell, FLOWS_SCHEMA, Field, FlowNames, FlowParameters, FlowRow, FlowShape, FlowSummaryRow, cell,
};
use super::parquet::{self, Column, ColumnKind, ParquetTable};
use crate::flows::{FlowRecord, FlowSummary};
use serde::Serialize;
use serde_json::{json, to_writer};
use std::io::{self, Write};

/// A header, then a line a flow; empty fields for what does not exist.
#[derive(Debug)]
pub(super) struct FlowCsv<W: Write> {
    csv: csv::Writer<W>,
    shape: FlowShape,
    names: FlowNames,
}

impl<W: Write> FlowCsv<W> {
    pub(super) fn begin(out: W, parameters: &FlowParameters) -> io::Result<Self> {
        let (shape, names) = (parameters.shape(), parameters.names);
        let mut csv = csv::Writer::from_writer(out);
        let fields = shape.fields().iter();
        csv.write_record(fields.map(|&field| shape.name(field, names)))
            .map_err(super::csv::cause)?;
        Ok(Self { csv, shape, names })
    }

    pub(super) fn flow(&mut self, flow: &FlowRecord) -> io::Result<()> {
        let fields = self.shape.fields().iter();
        self.csv
            .write_record(fields.map(|&field| cell(flow, field, self.names).into_text()))
            .map_err(super::csv::cause)
    }

    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.csv.flush()
    }

    pub(super) fn finish(self) -> io::Result<W> {
        self.csv
            .into_inner()
            .map_err(csv::IntoInnerError::into_error)
    }
}

/// One document; the array of flows is written as they come.
#[derive(Debug)]
pub(super) struct FlowJson<W: Write> {
    out: W,
    shape: FlowShape,
    names: FlowNames,
    any: bool,
}

impl<W: Write> FlowJson<W> {
    pub(super) fn begin(mut out: W, parameters: &FlowParameters) -> io::Result<Self> {
        write!(out, "{{\"schema\":\"{FLOWS_SCHEMA}\",\n\"parameters\":")?;
        to_writer(&mut out, parameters)?;
        write!(out, ",\n\"flows\":[")?;
        Ok(Self {
            out,
            shape: parameters.shape(),
            names: parameters.names,
            any: false,
        })
    }

    pub(super) fn flow(&mut self, flow: &FlowRecord) -> io::Result<()> {
        let separator = if self.any { ",\n" } else { "\n" };
        self.any = true;
        self.out.write_all(separator.as_bytes())?;
        let row = FlowRow {
            flow,
            shape: self.shape,
            names: self.names,
        };
        Ok(to_writer(&mut self.out, &row)?)
    }

    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    pub(super) fn finish(mut self, summary: &FlowSummary) -> io::Result<W> {
        let summary = FlowSummaryRow::from(summary);
        write!(self.out, "],\n\"inputs\":")?;
        to_writer(&mut self.out, &summary.inputs)?;
        write!(self.out, ",\n\"totals\":")?;
        to_writer(&mut self.out, &summary.totals)?;
        writeln!(self.out, "}}")?;
        Ok(self.out)
    }
}

/// One object a line. With the names of this program, its key `record` says what it is: `parameters`,
/// `flow`, `input` or `totals`; with those of others, there are flows only.
#[derive(Debug)]
pub(super) struct FlowJsonLines<W: Write> {
    out: W,
    shape: FlowShape,
    names: FlowNames,
}

#[derive(Serialize)]
struct Line<'a, T> {
    record: &'a str,
    #[serde(flatten)]
    row: T,
}

impl<W: Write> FlowJsonLines<W> {
    pub(super) fn begin(out: W, parameters: &FlowParameters) -> io::Result<Self> {
        let mut lines = Self {
            out,
            shape: parameters.shape(),
            names: parameters.names,
        };
        if lines.names == FlowNames::Flowsieve {
            let row = json!({"schema": FLOWS_SCHEMA, "parameters": parameters});
            lines.line("parameters", row)?;
        }
        Ok(lines)
    }

    pub(super) fn flow(&mut self, flow: &FlowRecord) -> io::Result<()> {
        let row = FlowRow {
            flow,
            shape: self.shape,
            names: self.names,
        };
        if self.names == FlowNames::Flowsieve {
            return self.line("flow", row);
        }
        to_writer(&mut self.out, &row)?;
        writeln!(self.out)
    }

    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    pub(super) fn finish(mut self, summary: &FlowSummary) -> io::Result<W> {
        if self.names == FlowNames::Flowsieve {
            let summary = FlowSummaryRow::from(summary);
            for input in summary.inputs {
                self.line("input", input)?;
            }
            self.line("totals", summary.totals)?;
        }
        Ok(self.out)
    }

    fn line(&mut self, record: &str, row: impl Serialize) -> io::Result<()> {
        to_writer(&mut self.out, &Line { record, row })?;
        writeln!(self.out)
    }
}

/// A row a flow.
#[derive(Debug)]
pub(super) struct FlowParquet<W: Write> {
    table: ParquetTable<W>,
    shape: FlowShape,
    names: FlowNames,
}

impl<W: Write> FlowParquet<W> {
    pub(super) fn begin(out: W, parameters: &FlowParameters) -> io::Result<Self> {
        let (shape, names) = (parameters.shape(), parameters.names);
        let fields = shape.fields().iter();
        let columns: Vec<Column> = fields.map(|&field| column(field, shape, names)).collect();
        Ok(Self {
            table: ParquetTable::begin(out, &columns)?,
            shape,
            names,
        })
    }

    pub(super) fn flow(&mut self, flow: &FlowRecord) -> io::Result<()> {
        let fields = self.shape.fields().iter();
        let values: Vec<Cell> = fields.map(|&field| cell(flow, field, self.names)).collect();
        let fields = self.shape.fields().iter();
        let cells: Vec<parquet::Cell<'_>> = fields
            .zip(&values)
            .map(|(field, value)| match (field, value) {
                // Times are times, whatever the names.
                (Field::Start, _) => parquet::Cell::I64(flow.start_ns),
                (Field::End, Cell::Seconds(ns)) => parquet::Cell::F64(*ns as f64 / 1e9),
                (Field::End, _) => parquet::Cell::I64(flow.end_ns),
                (_, Cell::Null) => parquet::Cell::Null,
                (_, Cell::Number(number)) => parquet::Cell::U64(*number),
                (_, Cell::Text(text)) => parquet::Cell::Text(text),
                (_, Cell::Nanoseconds(_) | Cell::Seconds(_)) => {
                    unreachable!("only start and end are times")
                }
            })
            .collect();
        self.table.row(&cells)
    }

    pub(super) fn finish(self) -> io::Result<W> {
        self.table.finish()
    }
}

fn column(field: Field, shape: FlowShape, names: FlowNames) -> Column<'static> {
    let name = shape.name(field, names);
    match field {
        Field::End if names == FlowNames::Zeek => Column::new(name, ColumnKind::F64),
        Field::Start | Field::End => Column::new(name, ColumnKind::Timestamp),
        Field::Protocol if names == FlowNames::Zeek => Column::new(name, ColumnKind::Text),
        Field::Source | Field::Destination | Field::Ended => Column::new(name, ColumnKind::Text),
        Field::Domain | Field::CommunityId => Column::nullable(name, ColumnKind::Text),
        Field::TcpFlags | Field::TcpFlagsBack | Field::Vlan => {
            Column::nullable(name, ColumnKind::U64)
        }
        _ => Column::new(name, ColumnKind::U64),
    }
}
