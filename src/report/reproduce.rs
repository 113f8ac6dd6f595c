//! Recomputed tables and figures in each of the formats, and as a page.

use super::figure::Page;
use super::format::ReportFormat;
use super::json::{Layout, write_document};
use super::look::Look;
use super::reproduce_model::{ReproduceReport, line_columns, listed_columns};
use super::rows::{CellRows, Frame};
use super::{markdown, reproduce_page, reproduce_table};
use crate::experiments::ALL;
use std::io::{self, Write};

/// Writes what can be recomputed, a line or a row an experiment.
///
/// # Errors
///
/// Writing failed.
pub fn write_experiments<W: Write>(format: ReportFormat, mut out: W) -> io::Result<W> {
    if format != ReportFormat::Table {
        let frame = Frame::of_rows("flowsieve.experiments/1", "experiments", "experiment");
        return CellRows::write_all(format, frame, listed_columns(), ALL, Vec::new(), out);
    }
    let width = ALL.iter().map(|entry| entry.name.len()).max().unwrap_or(0);
    for entry in ALL {
        writeln!(out, "{:<width$}  {}", entry.name, entry.title)?;
    }
    Ok(out)
}

impl ReproduceReport<'_> {
    /// Writes it; `look` is that of tables.
    ///
    /// # Errors
    ///
    /// Writing failed.
    pub fn write<W: Write>(&self, format: ReportFormat, look: Look, mut out: W) -> io::Result<W> {
        match format {
            ReportFormat::Table => reproduce_table::write(self, look, &mut out)?,
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

    /// The page with everything: text, tables and charts.
    pub fn page(&self) -> Page {
        reproduce_page::page(self)
    }

    /// The page as Markdown, with each figure as the image `<folder>/<name>.svg`.
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
