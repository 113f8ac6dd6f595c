//! Flows for programs: CSV, JSON, JSON lines, Parquet.

use super::flows_model::{
    Cell, FLOWS_SCHEMA, Field, FlowNames, FlowParameters, FlowRow, FlowShape, FlowSummaryRow, cell,
};
use super::parquet::{ColumnKind, ParquetWriter, Value};
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

/// A row a flow; schema and parameters are in the file's metadata.
#[derive(Debug)]
pub(super) struct FlowParquet<W: Write + Send> {
    writer: ParquetWriter<W>,
    shape: FlowShape,
    names: FlowNames,
}

impl<W: Write + Send> FlowParquet<W> {
    pub(super) fn begin(out: W, parameters: &FlowParameters) -> io::Result<Self> {
        let (shape, names) = (parameters.shape(), parameters.names);
        let columns: Vec<_> = shape
            .fields()
            .iter()
            .map(|&field| (shape.name(field, names), kind(field, names)))
            .collect();
        let about = [
            ("schema", FLOWS_SCHEMA.to_owned()),
            ("parameters", serde_json::to_string(parameters)?),
        ];
        Ok(Self {
            writer: ParquetWriter::begin(out, &columns, &about)?,
            shape,
            names,
        })
    }

    pub(super) fn flow(&mut self, flow: &FlowRecord) -> io::Result<()> {
        let fields = self.shape.fields().iter();
        let names = self.names;
        self.writer
            .row(fields.map(|&field| value(flow, field, names)))
    }

    pub(super) fn finish(self) -> io::Result<W> {
        self.writer.finish()
    }
}

fn kind(field: Field, names: FlowNames) -> ColumnKind {
    match field {
        Field::End if names == FlowNames::Zeek => ColumnKind::Float,
        Field::Start | Field::End => ColumnKind::TimestampNs,
        Field::Protocol if names == FlowNames::Zeek => ColumnKind::Text,
        Field::Source
        | Field::Destination
        | Field::Domain
        | Field::CommunityId
        | Field::Ended => ColumnKind::Text,
        _ => ColumnKind::Unsigned,
    }
}

/// Times are times, whatever the names.
fn value(flow: &FlowRecord, field: Field, names: FlowNames) -> Value {
    match (field, cell(flow, field, names)) {
        (Field::Start, _) => Value::TimestampNs(flow.start_ns),
        (Field::End, Cell::Seconds(ns)) => Value::Float(ns as f64 / 1e9),
        (Field::End, _) => Value::TimestampNs(flow.end_ns),
        (_, Cell::Null) => Value::Null,
        (_, Cell::Number(number)) => Value::Unsigned(number),
        (_, Cell::Text(text)) => Value::Text(text),
        (_, Cell::Nanoseconds(_) | Cell::Seconds(_)) => {
            unreachable!("only start and end are times")
        }
    }
}
