//! A comparison in each of the formats.

use super::cell::Cell;
use super::compare_model::{
    CompareReport, EntryRow, count_columns, flat_columns, judged_columns, parameter_columns,
    query_columns, structure_columns,
};
use super::compare_pair::pair_columns;
use super::compare_table;
use super::count_model::total_columns;
use super::format::ReportFormat;
use super::inputs::{inputs_cell, inputs_section};
use super::json::{JsonLines, Layout, object, write_document};
use super::rows::{CellRows, Frame, Section};
use super::terminal::TerminalStyle;
use std::io::{self, Write};

/// Name and version of the document.
const SCHEMA: &str = "flowsieve.compare/1";

impl CompareReport<'_> {
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
        match format {
            ReportFormat::Table => compare_table::write(self, style, &mut out)?,
            ReportFormat::Json => write_document(
                &mut out,
                Layout::Compact,
                &self.document().in_zone(self.plan.trace.selection.zone),
            )?,
            ReportFormat::JsonLines => self.write_lines(&mut out)?,
            _ => out = self.write_rows(format, out)?,
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
        let structures = structure_columns();
        let pairs = pair_columns();
        let pairs = self.pair_rows().map(|row| pairs.object_of(&row)).collect();
        let structures = self.rows().map(|row| structures.object_of(&row)).collect();
        object([
            ("schema", Cell::Text(SCHEMA.into())),
            ("parameters", parameter_columns().object_of(&self.asked())),
            ("pairs", Cell::List(pairs, "")),
            ("slices", judged_columns().list_of(&self.comparison.slices)),
            ("slices_omitted", Cell::U64(self.comparison.slices_omitted)),
            ("structures", Cell::List(structures, "")),
            ("inputs", inputs_cell(&self.comparison.inputs)),
            ("totals", self.totals()),
        ])
    }

    /// A line, or a row, for each structure, memory, combination and kind of negatives.
    fn write_rows<W: Write>(&self, format: ReportFormat, out: W) -> io::Result<W> {
        let frame = Frame::of_rows(SCHEMA, "rows", "row").in_zone(self.plan.trace.selection.zone);
        let frame =
            frame.followed_by(format, || self.document().in_zone(self.plan.trace.selection.zone));
        let mut rows = CellRows::begin(format, frame, flat_columns(), out)?;
        for mut row in self.rows() {
            let queries = std::mem::take(&mut row.queries);
            if queries.is_empty() {
                rows.row(&row)?;
            }
            for query in queries {
                row.query = Some(query);
                rows.row(&row)?;
            }
        }
        rows.finish(Vec::new())
    }

    /// Slices, structures, their answers and their counts in lines of their own.
    fn write_lines(&self, out: &mut dyn Write) -> io::Result<()> {
        let slices = judged_columns();
        let structures = structure_columns().without("queries").without("counts");
        let of = || structure_columns().select("filter memory_asked_bytes");
        let queries = of().part(None, &query_columns(), |row| row.query.clone());
        let counts = of().part(None, &count_columns(), |row| row.count);
        let inputs = inputs_section();
        let totals = Section::of("totals", "totals", &total_columns(None));
        let head = [
            ("schema", Cell::Text(SCHEMA.into())),
            ("parameters", parameter_columns().object_of(&self.asked())),
        ];
        let pairs = pair_columns();
        let records = [
            ("pair", pairs.kinds()),
            ("slice", slices.kinds()),
            ("structure", structures.kinds()),
            ("query", queries.kinds()),
            ("count", counts.kinds()),
            inputs.record(),
            totals.record(),
        ];
        let mut lines =
            JsonLines::begin(out, &head, &records)?.in_zone(self.plan.trace.selection.zone);
        for pair in self.pair_rows() {
            lines.line("pair", pairs.object_of(&pair))?;
        }
        for slice in &self.comparison.slices {
            lines.line("slice", slices.object_of(slice))?;
        }
        for mut row in self.rows() {
            lines.line("structure", structures.object_of(&row))?;
            for query in std::mem::take(&mut row.queries) {
                row.query = Some(query);
                lines.line("query", queries.object_of(&row))?;
            }
            for count in std::mem::take(&mut row.counts) {
                row.count = Some(count);
                lines.line("count", counts.object_of(&row))?;
            }
        }
        inputs.write_lines(inputs_cell(&self.comparison.inputs), &mut lines)?;
        totals.write_lines(self.totals(), &mut lines)
    }
}
