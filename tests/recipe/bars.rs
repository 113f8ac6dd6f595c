//! A toy for the recipe of a format: values of a row, with a bar between them.

use super::texts_of;
use crate::report::batch::{Batch, Schema};
use crate::report::format::{DocumentPlace, Format, Frame, Part, ReportFormat};
use std::io::{self, Write};

pub(in crate::report) const FORMAT: ReportFormat = ReportFormat {
    name: "bars",
    help: "",
    is_binary: false,
    is_line_by_line: true,
    is_flat: true,
    document: DocumentPlace::None,
    begin: || Box::new(Bars),
};

struct Bars;

impl Format for Bars {
    fn begin(&mut self, schema: &Schema, _: &Frame, out: &mut dyn Write) -> io::Result<()> {
        let names: Vec<&str> = schema.iter().map(|field| field.name.as_ref()).collect();
        writeln!(out, "{}", names.join("|"))
    }

    fn encode(&mut self, batch: &Batch) -> io::Result<Part> {
        let rows = 0..batch.rows;
        let lines = rows.map(|row| texts_of(batch, row).collect::<Vec<_>>().join("|") + "\n");
        Ok(Part::new(lines.collect::<String>().into_bytes()))
    }

    fn fork(&self) -> Box<dyn Format> {
        Box::new(Self)
    }
}
