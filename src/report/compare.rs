//! A comparison in each of the formats.

use super::cell::{Cell, object};
use super::compare_model::{
    BestSet, CompareReport, EntryRow, best_columns, crossover_columns, digest_columns,
    flat_columns, floor_columns, judged_columns, parameter_columns, structure_columns,
    verdict_columns,
};
use super::compare_table::{Markup, document, write_markup};
use super::count_model::total_columns;
use super::format::ReportFormat;
use super::inputs::inputs_cell;
use super::rows::{Frame, RowWriter, Summary};
use super::terminal::{self, TerminalStyle};
use crate::comparison::{Contender, CountKind};
use std::io::{self, Write};

/// Name and version of the document.
const SCHEMA: &str = "flowsieve.compare/2";

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
        match format.name() {
            _ if format.is_table() => terminal::print(&document(self), style, &mut out)?,
            "markdown" => write_markup(self, Markup::Markdown, &mut out)?,
            "latex" => write_markup(self, Markup::Latex, &mut out)?,
            _ => {
                let frame = Frame::new(SCHEMA, "rows").in_zone(self.plan.trace.selection.zone);
                let frame = frame.of_document(format, || self.document());
                let rows: Vec<_> = self.rows().flat_map(EntryRow::lines).collect();
                out = RowWriter::write_all(format, frame, flat_columns(), &rows, Vec::new(), out)?;
            }
        }
        out.flush()?;
        Ok(out)
    }

    fn rows(&self) -> impl Iterator<Item = EntryRow<'_>> {
        self.comparison.entries.iter().map(|entry| self.row(entry))
    }

    fn document(&self) -> Cell {
        let comparison = self.comparison;
        let verdicts: Vec<_> =
            CountKind::ALL.iter().flat_map(|&kind| self.verdicts(kind)).collect();
        let verdicts: Vec<_> = verdicts
            .into_iter()
            .filter(|row| {
                // A pair without estimates has no verdict by them.
                row.verdict.count == self.main_kind() || row.judged().is_some()
            })
            .collect();
        let crossings = self.plan.pair.into_iter().flat_map(|pair| {
            let crossings = self.crossings(pair).into_iter();
            crossings
                .map(move |(crossing, k_changes)| (crossing, k_changes, pair.map(Contender::name)))
        });
        let best = comparison.sizes.iter().flat_map(|&size| {
            CountKind::ALL.map(|count| {
                let filters = self.best(size, count).into_iter().map(Contender::name);
                BestSet { size, count, filters: filters.collect() }
            })
        });
        let best: Vec<_> = best.filter(|best| !best.filters.is_empty()).collect();
        let structures: Vec<_> = self.rows().collect();
        object([
            ("schema", Cell::Text(SCHEMA.into())),
            ("digests", digest_columns().list_of(&self.captures)),
            ("parameters", parameter_columns().object_of(&self.asked())),
            ("verdicts", verdict_columns().list_of(&verdicts)),
            ("crossovers", crossover_columns().list_of(&crossings.collect::<Vec<_>>())),
            ("floors", floor_columns().list_of(&comparison.floors(self.plan))),
            ("best_sets", best_columns().list_of(&best)),
            ("slices", judged_columns().list_of(&comparison.slices)),
            ("slices_omitted", Cell::U64(comparison.slices_omitted)),
            ("structures", structure_columns().list_of(&structures)),
            ("inputs", inputs_cell(&comparison.inputs)),
            ("totals", total_columns(None).object_of(&comparison.totals)),
        ])
    }
}
