//! A plan in each of the formats.

use super::format::ReportFormat;
use super::json::{Layout, write_document};
use super::plan_model::{PlanReport, line_columns};
use super::plan_table;
use super::rows::RowWriter;
use std::io::{self, Write};

impl PlanReport<'_> {
    /// Writes it. `styled` allows the table to use a terminal's bold face.
    ///
    /// # Errors
    ///
    /// Writing failed.
    pub fn write<W: Write>(&self, format: ReportFormat, styled: bool, mut out: W) -> io::Result<W> {
        match format {
            ReportFormat::Table => plan_table::write(self, styled, &mut out)?,
            ReportFormat::Json => write_document(&mut out, Layout::Pretty, &self.document())?,
            _ => {
                let frame = self.frame().followed_by(format, || self.document());
                let rows = self.lines();
                out = RowWriter::write_all(format, frame, line_columns(), &rows, Vec::new(), out)?;
            }
        }
        out.flush()?;
        Ok(out)
    }
}
