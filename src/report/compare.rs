//! A comparison in each of the formats.

use super::cell::{Cell, object};
use super::compare_model::{
    CompareReport, EntryRow, flat_columns, judged_columns, parameter_columns, structure_columns,
};
use super::compare_pair::pair_columns;
use super::compare_table;
use super::count_model::total_columns;
use super::format::ReportFormat;
use super::inputs::inputs_cell;
use super::rows::{Frame, RowWriter, Summary};
use super::terminal::TerminalStyle;
use std::io::{self, Write};

/// Name and version of the document.
const SCHEMA: &str = "flowsieve.compare/1";

impl CompareReport<'_> {
    /// Returns the summary.
    pub fn summary(&self) -> Summary {
        Summary::of_document(self.document(), self.plan.trace.selection.zone)
    }

    /// Writes it; `style` is that of the table.
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
            compare_table::write(self, style, &mut out)?;
        } else {
            let frame = Frame::new(SCHEMA, "rows").in_zone(self.plan.trace.selection.zone);
            let frame = frame.of_document(format, || self.document());
            let (columns, rows) = (flat_columns(), self.lines());
            out = RowWriter::write_all(format, frame, columns, &rows, Vec::new(), out)?;
        }
        out.flush()?;
        Ok(out)
    }

    fn rows(&self) -> impl Iterator<Item = EntryRow<'_>> {
        self.comparison.entries.iter().map(|entry| self.row(entry))
    }

    fn totals(&self) -> Cell {
        total_columns(None).object_of(&self.comparison.totals)
    }

    fn document(&self) -> Cell {
        let pairs: Vec<_> = self.pair_rows().collect();
        let structures: Vec<_> = self.rows().collect();
        object([
            ("schema", Cell::Text(SCHEMA.into())),
            ("parameters", parameter_columns().object_of(&self.asked())),
            ("pairs", pair_columns().list_of(&pairs)),
            ("slices", judged_columns().list_of(&self.comparison.slices)),
            ("slices_omitted", Cell::U64(self.comparison.slices_omitted)),
            ("structures", structure_columns().list_of(&structures)),
            ("inputs", inputs_cell(&self.comparison.inputs)),
            ("totals", self.totals()),
        ])
    }

    /// Returns a row for each structure, memory, combination and kind of negatives.
    fn lines(&self) -> Vec<EntryRow<'_>> {
        let mut lines = Vec::new();
        for mut row in self.rows() {
            let queries = std::mem::take(&mut row.queries);
            row.counts.clear();
            if queries.is_empty() {
                lines.push(row);
                continue;
            }
            lines.extend(queries.into_iter().map(|query| row.of_query(query)));
        }
        lines
    }
}
