//! JSON: one document, with the rows as a list of objects; and JSON lines: an object a row. All
//! objects have the same fields; null is what does not exist.

use crate::report::batch::{Array, Batch, Field, Schema, Values};
use crate::report::format::{DocumentPlace, Format, Frame, Part, ReportFormat, Tail};
use std::io::{self, Write};

pub(in crate::report) const FORMAT: ReportFormat = ReportFormat {
    name: "json",
    help: "One document",
    is_binary: false,
    is_line_by_line: false,
    is_flat: false,
    document: DocumentPlace::Around,
    begin: || Box::new(Json::default()),
};

pub(in crate::report) const LINES: ReportFormat = ReportFormat {
    name: "jsonl",
    help: "One object per line",
    is_line_by_line: true,
    document: DocumentPlace::None,
    begin: || Box::new(JsonLines),
    ..FORMAT
};

#[derive(Default)]
struct Json {
    has_rows: bool,
}

impl Format for Json {
    fn begin(&mut self, _: &Schema, frame: &Frame, out: &mut dyn Write) -> io::Result<()> {
        let mut before = "{";
        for (name, cell) in &frame.head {
            write!(out, "{before}\"{name}\":")?;
            serde_json::to_writer(&mut *out, cell)?;
            before = ",\n";
        }
        write!(out, "{before}\"{}\":[", frame.rows)
    }

    fn encode(&mut self, batch: &Batch) -> io::Result<Part> {
        objects(batch, ",\n", "").map(Part::new)
    }

    fn write(&mut self, part: Part, out: &mut dyn Write) -> io::Result<()> {
        let bytes = part.downcast::<Vec<u8>>();
        // No comma stands before the first row.
        let is_first = !std::mem::replace(&mut self.has_rows, true);
        out.write_all(&bytes[usize::from(is_first)..])
    }

    fn end(&mut self, frame: Frame, tail: Tail, out: &mut dyn Write) -> io::Result<()> {
        write!(out, "]")?;
        for (name, cell) in tail {
            write!(out, ",\n\"{name}\":")?;
            serde_json::to_writer(&mut *out, &cell.in_zone(frame.zone))?;
        }
        writeln!(out, "}}")
    }

    fn fork(&self) -> Box<dyn Format> {
        Box::new(Self::default())
    }
}

struct JsonLines;

impl Format for JsonLines {
    fn begin(&mut self, _: &Schema, _: &Frame, _: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }

    fn encode(&mut self, batch: &Batch) -> io::Result<Part> {
        objects(batch, "", "\n").map(Part::new)
    }

    fn fork(&self) -> Box<dyn Format> {
        Box::new(Self)
    }
}

/// Returns an object a row, with what stands before and behind each.
fn objects(batch: &Batch, before: &str, behind: &str) -> io::Result<Vec<u8>> {
    let mut names = Vec::new();
    for (number, field) in batch.schema.iter().enumerate() {
        let comma = if number > 0 { "," } else { "" };
        names.push(format!("{comma}{}:", serde_json::to_string(&field.name)?));
    }
    let columns: Vec<(&Field, &Array)> = batch.columns().collect();
    let mut out = Vec::new();
    for row in 0..batch.rows {
        out.extend_from_slice(before.as_bytes());
        out.push(b'{');
        for (name, (field, array)) in names.iter().zip(&columns) {
            out.extend_from_slice(name.as_bytes());
            push_value(array, row, field, &mut out)?;
        }
        out.push(b'}');
        out.extend_from_slice(behind.as_bytes());
    }
    Ok(out)
}

fn push_value(array: &Array, row: usize, field: &Field, out: &mut Vec<u8>) -> io::Result<()> {
    match &array.values {
        Values::Text(texts) if !array.is_null(row) => {
            serde_json::to_writer(out, texts.get(row))?;
        }
        _ => serde_json::to_writer(out, &array.cell(row, &field.kind, field.zone))?,
    }
    Ok(())
}
