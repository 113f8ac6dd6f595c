//! JSON lines: an object a row. All lines have the same fields; null is what does not exist.

use super::json::objects;
use crate::report::batch::{Batch, Schema};
use crate::report::format::{Format, Part, ReportFormat};
use crate::report::rows::Frame;
use std::io::{self, Write};

pub(in crate::report) const FORMAT: ReportFormat = ReportFormat {
    name: "jsonl",
    help: "One object per line",
    is_flat: false,
    begin: || Box::new(JsonLines),
    ..super::csv::FORMAT
};

struct JsonLines;

impl Format for JsonLines {
    fn begin(&mut self, _: &Schema, _: &Frame, _: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }

    fn encode(&mut self, batch: &Batch) -> io::Result<Part> {
        objects(batch, "", "\n").map(Part::Bytes)
    }

    fn fork(&self) -> Box<dyn Format> {
        Box::new(Self)
    }
}
