//! A plan in each of the formats.

use super::format::ReportFormat;
use super::json::{Layout, write_document};
use super::plan_document;
use super::plan_model::{PlanReport, line_columns};
use super::rows::CellRows;
use super::terminal::{self, TerminalStyle};
use std::io::{self, Write};

impl PlanReport<'_> {
    /// Writes the plan; `style` is that of the table.
    ///
    /// # Errors
    ///
    /// Writing failed.
    pub fn write<W: Write>(
        &self,
        format: ReportFormat,
        style: TerminalStyle,
        mut out: W,
    ) -> io::Result<W> {
        match format {
            ReportFormat::Table => {
                terminal::print(&plan_document::document(self), style, &mut out)?;
            }
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
