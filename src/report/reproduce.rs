//! Recomputed tables and figures in each of the formats.

use super::format::ReportFormat;
use super::reproduce_model::{ReproduceReport, line_columns, listed_columns};
use super::rows::{Frame, RowWriter, Summary};
use super::terminal::TerminalStyle;
use super::{markdown, terminal};
use crate::experiments::ALL;
use crate::zone::Zone;
use std::io::{self, Write};

/// Writes the list of experiments, a line or a row each.
///
/// # Errors
///
/// Writing failed.
pub fn write_experiments<W: Write>(format: ReportFormat, mut out: W) -> io::Result<W> {
    if !format.is_table() {
        let frame = Frame::new("flowsieve.experiments/1", "experiments");
        return RowWriter::write_all(format, frame, listed_columns(), ALL, Vec::new(), out);
    }
    let width = ALL.iter().map(|entry| entry.name.len()).max().unwrap_or(0);
    for entry in ALL {
        writeln!(out, "{:<width$}  {}", entry.name, entry.title)?;
    }
    Ok(out)
}

impl ReproduceReport<'_> {
    /// Returns the summary.
    pub fn summary(&self) -> Summary {
        Summary::of_document(self.document(), Zone::UTC)
    }

    /// Writes the report; `style` is that of tables.
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
            terminal::print(&self.page(), style, &mut out)?;
        } else {
            let frame = self.frame().of_document(format, || self.document());
            let rows = self.lines();
            out = RowWriter::write_all(format, frame, line_columns(), &rows, Vec::new(), out)?;
        }
        out.flush()?;
        Ok(out)
    }

    /// Writes the document as Markdown, with each figure as the image `<folder>/<name>.svg`.
    ///
    /// # Errors
    ///
    /// Writing failed.
    pub fn write_markdown<W: Write>(&self, folder: &str, mut out: W) -> io::Result<W> {
        markdown::write(&self.page(), folder, &mut out)?;
        out.flush()?;
        Ok(out)
    }
}
