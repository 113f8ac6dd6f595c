//! A comparison in every format.

use super::cell::Cell;
use super::compare_model::{
    Asked, BestSet, CompareReport, VerdictRow, best_columns, crossover_columns, digest_columns,
    floor_columns, judged_columns, parameter_columns, verdict_columns,
};
use super::compare_structures::{EntryRow, flat_columns, structure_columns};
use super::compare_table::{document, write_markup};
use super::complete::CompleteReport;
use super::count_model::total_columns;
use super::format::{Frame, Tail};
use super::formats::tables::Markup;
use super::run_view::inputs_cell;
use crate::comparison::{Contender, CountKind};

impl CompareReport<'_> {
    /// Returns the comparison in every format.
    pub fn complete(&self) -> CompleteReport<'_> {
        let frame = Frame::new("flowsieve.compare/2", "rows");
        CompleteReport {
            frame: frame.in_zone(self.plan.trace.selection.zone),
            sections: Box::new(|| self.sections()),
            has_rows: false,
            table: Box::new(|_| document(self)),
            rows: Box::new(|target| match target.format.name() {
                "markdown" => write_markup(self, Markup::Markdown, target.out),
                "latex" => write_markup(self, Markup::Latex, target.out),
                _ => {
                    let rows: Vec<_> = self.rows().flat_map(EntryRow::lines).collect();
                    target.write(flat_columns(), &rows)
                }
            }),
        }
    }

    fn rows(&self) -> impl Iterator<Item = EntryRow<'_>> {
        self.comparison.entries.iter().map(|entry| {
            let best = CountKind::ALL.map(|kind| self.is_best(entry, kind));
            EntryRow { report: self, entry, best, seed: None }
        })
    }

    fn sections(&self) -> Tail {
        let (plan, comparison) = (self.plan, self.comparison);
        let main = self.main_kind();
        let (anonymized, command) = (self.anonymized, &*self.command);
        let asked = Asked { plan, comparison: Some(comparison), anonymized, command };
        // A pair without estimates has no verdict by them.
        let is_shown = |row: &VerdictRow| row.verdict.count == main || row.judged().is_some();
        let verdicts = CountKind::ALL.into_iter().flat_map(|kind| self.verdicts(kind));
        let verdicts: Vec<_> = verdicts.filter(is_shown).collect();
        let best = comparison.sizes.iter().flat_map(|&size| {
            CountKind::ALL.map(|count| {
                let filters = self.best(size, count).into_iter().map(Contender::name);
                BestSet { size, count, filters: filters.collect() }
            })
        });
        let best: Vec<_> = best.filter(|best| !best.filters.is_empty()).collect();
        let structures: Vec<_> = self.rows().collect();
        vec![
            ("digests", digest_columns().list_of(&self.captures)),
            ("parameters", parameter_columns().object_of(&asked)),
            ("verdicts", verdict_columns().list_of(&verdicts)),
            ("crossovers", crossover_columns().list_of(&self.crossings())),
            ("floors", floor_columns().list_of(&comparison.floors(self.plan))),
            ("best_sets", best_columns().list_of(&best)),
            ("slices", judged_columns().list_of(&comparison.slices)),
            ("slices_omitted", Cell::U64(comparison.slices_omitted)),
            ("structures", structure_columns().list_of(&structures)),
            ("inputs", inputs_cell(&comparison.inputs)),
            ("totals", total_columns(None).object_of(&comparison.totals)),
        ]
    }
}
