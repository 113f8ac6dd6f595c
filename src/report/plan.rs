//! A plan in each of the formats.

use super::format::ReportFormat;
use super::plan_document;
use super::plan_model::{PlanReport, line_columns};
use super::rows::{RowWriter, Summary};
use super::terminal::{self, TerminalStyle};
use crate::zone::Zone;
use std::io::{self, Write};

impl PlanReport<'_> {
    /// Returns the summary.
    pub fn summary(&self) -> Summary {
        Summary::of_document(self.document(), Zone::UTC)
    }

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
        if format.is_table() {
            terminal::print(&plan_document::document(self), style, &mut out)?;
        } else {
            let frame = self.frame().of_document(format, || self.document());
            let rows = self.lines();
            out = RowWriter::write_all(format, frame, line_columns(), &rows, Vec::new(), out)?;
        }
        out.flush()?;
        Ok(out)
    }
}
