//! A plan in each of the formats.

use super::format::ReportFormat;
use super::json::{Layout, write_document};
use super::look::Look;
use super::plan_model::{PlanReport, line_columns};
use super::plan_table;
use super::rows::CellRows;
use std::io::{self, Write};

impl PlanReport<'_> {
    /// Writes it; `look` is that of the table.
    ///
    /// # Errors
    ///
    /// Writing failed.
    pub fn write<W: Write>(&self, format: ReportFormat, look: Look, mut out: W) -> io::Result<W> {
        match format {
            ReportFormat::Table => plan_table::write(self, look, &mut out)?,
            ReportFormat::Json => write_document(&mut out, Layout::Pretty, &self.document())?,
            _ => {
                let frame = self.frame().followed_by(format, || self.document());
                let rows = self.lines();
                out = CellRows::write_all(format, frame, line_columns(), &rows, Vec::new(), out)?;
            }
        }
        out.flush()?;
        Ok(out)
    }
}
