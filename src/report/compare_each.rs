//! Two structures on several captures: a letter for each capture and memory, and what all of them
//! say together. Captures are counted, never pooled.

use super::column::{Columns, columns};
use super::compare_model::{
    Asked, CaptureDigest, Grouping, VerdictRow, digest_columns, floor_columns, parameter_columns,
    size_words, verdict_columns, verdict_rows,
};
use super::compare_table::{by_load, load};
use super::compare_words::{
    file_name, in_percent, main_kind, margin_words, program_words, seeds_of, size_of, variant_words,
};
use super::complete::CompleteReport;
use super::document::{Block, Document, TableView, TextColumns, Wrapping};
use super::figure::{Axis, Drawing, Figure, Scale};
use super::format::{Frame, Tail};
use super::heading::Heading;
use super::number::{counted, grouped, or_dash, short_percent, slices_of};
use super::run_view::{ended, inputs_cell, inputs_table, problems, shortcomings};
use crate::comparison::{
    AUTO_EIGHTHS, ComparePlan, Comparison, Contender, CountKind, Floor, ProbeRule, Seeds, Sizes,
};
use crate::pipeline::InputResult;

/// A comparison of two structures on each of several captures.
#[derive(Debug)]
pub struct EachReport<'a> {
    plan: &'a ComparePlan,
    pair: [Contender; 2],
    by: Option<Grouping>,
    captures: Vec<CaptureRow>,
    command: String,
    inputs: &'a [InputResult],
    interrupted: bool,
}

/// A capture.
#[derive(Clone, Debug)]
pub(super) struct CaptureRow {
    capture: CaptureDigest,
    slices: u64,
    exact: u64,
    expected: Option<u64>,
    floors: Vec<Floor>,
    /// By raw counts, and by estimates where both have them.
    verdicts: Vec<VerdictRow>,
    /// Verdicts by the main count, one for each size; `None` if a larger size is the same here.
    cells: Vec<Option<VerdictRow>>,
    loads: Vec<Option<f64>>,
}

/// Verdicts of a size over all captures.
pub(super) struct SizeSum {
    size: String,
    counts: [u64; 6],
}

/// The columns of a capture.
pub(super) fn capture_columns() -> Columns<CaptureRow> {
    columns! { field row: CaptureRow;
        ..borrowed(digest_columns(), |row| &row.capture);
        slices = row.slices, "slices that are judged and have elements";
        exact = row.exact, "distinct elements of these slices, added up";
        expected_elements = row.expected, "distinct elements of a large slice (95th percentile)";
        ..objects("floors", floor_columns(), |row| row.floors.clone()),
            "what structures lose at any memory";
        ..objects("verdicts", verdict_columns(), |row| row.verdicts.clone()),
            "one for each memory and count";
    }
}

/// The columns of a line of CSV: a capture, a memory and a count.
pub(super) fn each_columns() -> Columns<VerdictRow> {
    let capture =
        Columns::default().part(None, &digest_columns(), |row: &VerdictRow| row.capture.clone());
    Columns(capture.0.into_iter().chain(verdict_columns().0).collect())
}

/// The columns of all captures together.
pub(super) fn sum_columns() -> Columns<SizeSum> {
    columns! { field sum: SizeSum;
        size = sum.size.clone(),
            "the memory, or bytes per element where it follows from each capture";
        a = sum.counts[0], "captures in which the first is nearer";
        b = sum.counts[1], "captures in which the second is nearer";
        no_matter = sum.counts[2], "captures without a difference that matters";
        same = sum.counts[3], "captures in which both are the same in every replicate";
        open = sum.counts[4], "captures that the replicates do not decide";
        none = sum.counts[5], "captures without a verdict";
    }
}

/// The number of captures without a verdict among those of all verdicts.
const NONE: usize = 5;

/// The number of a verdict, or [`NONE`].
fn verdict_number(row: &VerdictRow) -> usize {
    row.judged().map_or(NONE, |judged| judged.verdict as usize)
}

impl<'a> EachReport<'a> {
    /// A report without captures. `plan` says what is asked of each, `command` is the command line.
    pub const fn new(
        plan: &'a ComparePlan,
        pair: [Contender; 2],
        by: Option<Grouping>,
        command: String,
    ) -> Self {
        Self { plan, pair, by, captures: Vec::new(), command, inputs: &[], interrupted: false }
    }

    /// Notes how the reading of all captures ended.
    pub const fn ended(&mut self, inputs: &'a [InputResult], interrupted: bool) {
        self.inputs = inputs;
        self.interrupted = interrupted;
    }

    /// Adds a capture.
    pub fn add(&mut self, capture: CaptureDigest, comparison: &Comparison) {
        let main = main_kind(self.plan);
        let rows = CountKind::ALL
            .map(|kind| verdict_rows(comparison, self.pair, kind, Some(&capture)))
            .concat();
        let is_shown = |row: &VerdictRow| row.verdict.count == main || row.judged().is_some();
        let sizes = self.plan.sizes.ascending(comparison.expected.elements);
        let cells = sizes.iter().enumerate().map(|(number, size)| {
            let is_own = |row: &&VerdictRow| row.verdict.count == main && row.verdict.size == *size;
            rows.iter().find(is_own).filter(|_| sizes.get(number + 1) != Some(size)).cloned()
        });
        let cells: Vec<_> = cells.collect();
        self.captures.push(CaptureRow {
            slices: comparison.judged().count() as u64,
            exact: comparison.judged().filter_map(|slice| slice.exact).sum(),
            expected: comparison.expected.elements,
            floors: comparison.floors(self.plan),
            loads: sizes.iter().map(|&size| load(comparison, size)).collect(),
            cells,
            verdicts: rows.into_iter().filter(is_shown).collect(),
            capture,
        });
    }

    /// Names of the sizes: the same for each capture.
    fn sizes(&self) -> Vec<String> {
        match &self.plan.sizes {
            Sizes::Auto => {
                let names = AUTO_EIGHTHS.map(|eighths| match eighths {
                    1..=7 => format!("1/{} B", 8 / eighths),
                    _ => format!("{} B", eighths / 8),
                });
                names.map(|name| format!("{name} each")).into()
            }
            sizes => {
                let ascending = sizes.ascending(None).into_iter();
                ascending.map(|size| size_words(sizes.are_arrays(), size)).collect()
            }
        }
    }

    fn sums(&self) -> Vec<SizeSum> {
        let sums = self.sizes().into_iter().enumerate().map(|(number, size)| {
            let mut counts = [0; 6];
            for capture in &self.captures {
                if let Some(cell) = capture.cells.get(number).and_then(Option::as_ref) {
                    counts[verdict_number(cell)] += 1;
                }
            }
            SizeSum { size, counts }
        });
        sums.collect()
    }

    /// The letter of each of the two.
    fn letters(&self) -> [String; 2] {
        let letter = |contender: Contender| contender.name()[..1].to_uppercase();
        let [a, b] = self.pair.map(letter);
        if a == b { ["A".to_owned(), "B".to_owned()] } else { [a, b] }
    }

    fn letter(&self, cell: Option<&VerdictRow>) -> String {
        let [a, b] = self.letters();
        let letters = [&*a, &*b, "~", "=", "?", "–"];
        letters[cell.map_or(NONE, verdict_number)].to_owned()
    }

    /// Sums up the verdicts of all captures.
    fn sentence(&self) -> String {
        let sums = self.sums();
        let sum = |verdict: usize| sums.iter().map(|sum| sum.counts[verdict]).sum::<u64>();
        let [a, b] = self.pair.map(Contender::name);
        let [of_a, of_b, no_matter, same, open, none] = [0, 1, 2, 3, 4, 5].map(sum);
        let [(first, most), (second, fewer)] =
            if of_b >= of_a { [(b, of_b), (a, of_a)] } else { [(a, of_a), (b, of_b)] };
        let not = if none > 0 { format!(", {none} without a verdict") } else { String::new() };
        let all = counted(of_a + of_b + no_matter + same + open + none, "cell", "cells");
        format!(
            "Of {all} (captures x memories) {first} is nearer in {most}, {second} in {fewer}; no difference that matters in {no_matter}, the same in {same}, open in {open}{not}."
        )
    }

    fn title(&self) -> String {
        let [a, b] = self.pair.map(Contender::name);
        let (elements, counts) = (self.plan.rule.kind.plural(), main_kind(self.plan).words());
        let slices = slices_of(self.plan.slicing.width_ns);
        format!("{a} against {b}: distinct {elements} {slices}, {counts}s, each capture by itself")
    }

    /// How many seeds there are, and how the numbers of hash functions are chosen.
    fn conditions(&self) -> String {
        let seeds = match self.plan.seeds {
            Seeds::Fixed(seeds) => seeds_of(seeds as usize),
            Seeds::Auto => "5 to 30 seeds, as many as it takes".to_owned(),
        };
        let probes = match self.plan.probes {
            ProbeRule::Given(probes) => format!("k = {probes}"),
            _ if self.plan.sizes.are_arrays() => "k = 4, as in the paper".to_owned(),
            ProbeRule::Formula => "k by the formula for each capture".to_owned(),
            ProbeRule::Best => "k: the best of trials that are not judged".to_owned(),
        };
        let margin = margin_words(self.plan);
        [vec![seeds, margin, probes], variant_words(self.plan)].concat().join("; ")
    }

    /// Returns the comparison in every format.
    pub fn complete(&self) -> CompleteReport<'_> {
        let (plan, command) = (self.plan, &self.command);
        let asked = Asked { plan, comparison: None, anonymized: false, command };
        CompleteReport {
            frame: Frame::new("flowsieve.compare-each/2", "captures")
                .with("parameters", parameter_columns().object_of(&asked)),
            sections: Box::new(|| self.tail()),
            has_rows: true,
            table: Box::new(|| self.table()),
            rows: Box::new(|target| {
                if target.format.is_document() {
                    return target.write(capture_columns(), &self.captures);
                }
                let rows = self.captures.iter().flat_map(|capture| &capture.verdicts);
                target.write(each_columns(), rows)
            }),
        }
    }

    fn tail(&self) -> Tail {
        let totals = Columns::default().ending(|ended: &[bool; 2]| *ended);
        vec![
            ("summary", sum_columns().list_of(&self.sums())),
            ("inputs", inputs_cell(self.inputs)),
            ("totals", totals.object_of(&ended(self.inputs, self.interrupted))),
        ]
    }

    fn table(&self) -> Document {
        let wrapping = Wrapping { width: 96, hanging: 0 };
        let mut document = Document { wrapping, ..Document::default() };
        let [a, b] = self.letters();
        let [name_a, name_b] = self.pair.map(Contender::name);
        let legend = format!(
            "{a}: {name_a} nearer, {b}: {name_b} nearer, ~: no difference that matters, =: the same in every seed, ?: open"
        );
        document.terminal([
            Block::Sentence(self.title()),
            Block::Sentence(format!("{}.", self.conditions())),
            Block::Sentence(self.sentence()),
            Block::Gap,
            Block::Table(self.letter_table()),
            Block::Sentence(legend),
        ]);
        document.terminal(self.dash().map(|dash| Block::Sentence(dash.into())));
        document.terminal([Block::Gap, Block::Table(self.sum_table())]);
        if self.by == Some(Grouping::Load) {
            document.terminal([Block::Gap, Block::Table(self.load_table())]);
        }
        let notes = self.captures.iter().filter_map(|capture| {
            let row = capture.verdicts.iter().find(|row| row.judged().is_none())?;
            let why = row.verdict.result.as_ref().err()?;
            Some(format!("{} at {}: {why}.", capture.capture.name, size_of(row)))
        });
        let shortcomings = shortcomings(self.inputs, self.interrupted);
        let notes = notes.chain([program_words(&self.command)]).chain(shortcomings);
        document.terminal(notes.map(Block::Sentence));
        document
    }

    fn load_table(&self) -> TableView {
        let rows =
            self.captures.iter().flat_map(|capture| capture.loads.iter().zip(&capture.cells));
        let rows = rows.filter_map(|(load, cell)| Some(((*load)?, cell.as_ref()?)));
        by_load(&rows.collect::<Vec<_>>(), self.pair)
    }

    /// A row a capture, a column a size.
    fn letter_table(&self) -> TableView {
        let number =
            |text: &str, priority| Heading::number(text.to_owned()).gap(2).drop_priority(priority);
        let mut columns = TextColumns::<CaptureRow>::default();
        columns.push(Heading::text("capture"), |row| file_name(&row.capture.name));
        columns.push(number("slices", 1), |row| grouped(row.slices));
        columns.push(number(&self.plan.rule.kind.plural(), 2), |row| grouped(row.exact));
        columns.push(number("p95", 3), |row| or_dash(row.expected, grouped));
        for (place, size) in self.sizes().into_iter().enumerate() {
            let heading = Heading::text(size).gap(2);
            columns.push(heading, move |row| self.letter(row.cells[place].as_ref()));
        }
        columns.push(number("floor", 4), |row| {
            or_dash(row.floors.first(), |floor| short_percent(floor.mean))
        });
        columns.table(&self.captures)
    }

    fn sum_table(&self) -> TableView {
        let [a, b] = self.pair.map(Contender::name);
        let words = [
            format!("{a} nearer"),
            format!("{b} nearer"),
            "no difference that matters".to_owned(),
            "the same".to_owned(),
            "open".to_owned(),
            "no verdict".to_owned(),
        ];
        let sums = self.sums();
        let headings = sums.iter().map(|sum| Heading::number(sum.size.clone()).gap(2));
        let rows = words.into_iter().enumerate().filter_map(|(verdict, words)| {
            let counts = sums.iter().map(|sum| sum.counts[verdict]);
            let is_any = counts.clone().any(|count| count > 0);
            is_any.then(|| (words, counts.map(|count| count.to_string()).collect()))
        });
        TableView::named(Heading::text("captures"), headings, rows)
    }

    /// Everything to look at: the answer, the grid of verdicts, and the means of both.
    pub fn page(&self) -> Document {
        let mut page = Document {
            zone: self.plan.trace.selection.zone,
            title: self.title(),
            label: self.conditions(),
            ..Document::default()
        };
        page.page([Block::Answer(self.sentence())]);
        page.page(problems(self.inputs, self.interrupted));
        page.page([
            Block::Section("Which was nearer to the truth".to_owned()),
            Block::Figure(self.grid()),
            Block::Table(self.letter_table()),
            Block::Table(self.sum_table()),
            Block::Table(self.load_table()),
            Block::Section("Mean errors".to_owned()),
            Block::Table(self.mean_table()),
            Block::Section("What was read".to_owned()),
            inputs_table(self.inputs),
        ]);
        page
    }

    /// The difference in each cell as a shade, with the letter of its verdict.
    fn grid(&self) -> Figure {
        let [a, b] = self.pair.map(Contender::name);
        let rows = self.captures.iter().map(|capture| file_name(&capture.capture.name));
        let letters = self
            .captures
            .iter()
            .map(|capture| capture.cells.iter().map(|cell| self.letter(cell.as_ref())).collect());
        let values = self.captures.iter().map(|capture| {
            let difference = |row: &VerdictRow| Some(row.judged()?.difference.value.abs());
            capture.cells.iter().map(|cell| difference(cell.as_ref()?)).collect()
        });
        let [letter_a, letter_b] = self.letters();
        let dash = self.dash().map(|dash| format!(", {dash}")).unwrap_or_default();
        Figure::new(
            "verdicts",
            format!("{a} against {b}, captures by memory"),
            format!(
                "The stronger the shade, the farther apart their errors. {letter_a}: {a} is nearer, {letter_b}: {b} is nearer, ~: no difference that matters, =: the same in every seed, ?: open{dash}."
            ),
            Drawing::HeatMap {
                rows: rows.collect(),
                columns: self.sizes(),
                values: values.collect(),
                letters: letters.collect(),
                shade: Axis::new("difference", Scale::Percent),
            },
        )
    }

    /// Returns the legend for cells without a letter; `None` if every cell has one.
    fn dash(&self) -> Option<&'static str> {
        let mut cells = self.captures.iter().flat_map(|capture| &capture.cells);
        cells.any(Option::is_none).then_some("–: as large as the next memory")
    }

    /// Means of both, with the letter.
    fn mean_table(&self) -> TableView {
        let headings = self.sizes().into_iter().map(Heading::number);
        let rows = self.captures.iter().map(|capture| {
            let cells = capture.cells.iter().map(|cell| {
                or_dash(cell.as_ref().and_then(VerdictRow::means), |means| {
                    let [a, b] = means.map(|mean| in_percent(mean)[0].clone());
                    format!("{a}/{b} {}", self.letter(cell.as_ref()))
                })
            });
            (file_name(&capture.capture.name), cells.collect())
        });
        TableView::named(Heading::text("capture"), headings, rows)
    }
}
