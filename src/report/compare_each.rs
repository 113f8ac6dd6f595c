//! Two structures on several captures: a line a capture, and what all of them say together.

use super::column::Columns;
use super::compare_model::{Asked, parameter_columns};
use super::compare_pair::{PairRow, SliceWords, pair_columns};
use super::compare_words::{answers, middle, short_percent};
use super::document::{Block, Document, TableView};
use super::figure::{Axis, Drawing, Figure, Scale};
use super::format::ReportFormat;
use super::heading::Heading;
use super::layout::{Layout, fitted};
use super::number::{grouped, size, slices_of};
use super::rows::{Frame, RowWriter, Summary};
use super::terminal::{TerminalStyle, write_lines};
use super::wrapping::wrapped;
use crate::comparison::{ComparePlan, Comparison, Contender};
use std::collections::HashSet;
use std::io::{self, Write};

/// Name and version of the document.
const SCHEMA: &str = "flowsieve.compare-each/1";

/// Two structures on captures that are compared one by one.
#[derive(Debug)]
pub struct EachReport<'a> {
    plan: &'a ComparePlan,
    pair: [Contender; 2],
    rows: Vec<PairRow>,
}

/// The columns of a capture, or of all together.
pub(super) fn each_columns() -> Columns<PairRow> {
    let capture = Columns::default()
        .field("capture", |row: &PairRow| row.capture.clone())
        .doc("the capture, as given; null for all captures together")
        .field("captures", |row| row.captures)
        .doc("captures that are judged in this row");
    Columns(capture.0.into_iter().chain(pair_columns().0).collect())
}

impl<'a> EachReport<'a> {
    /// A report without captures. `plan` says what is asked of each.
    pub const fn new(plan: &'a ComparePlan, pair: [Contender; 2]) -> Self {
        Self { plan, pair, rows: Vec::new() }
    }

    /// Adds a capture: a row for each memory.
    pub fn add(&mut self, capture: &str, comparison: &Comparison) {
        for &memory in &self.plan.memories {
            self.rows.push(PairRow {
                capture: Some(capture.to_owned()),
                ..PairRow::new(comparison, self.pair, memory)
            });
        }
    }

    /// All captures together, a row a memory.
    fn summary(&self) -> Vec<PairRow> {
        let memories = self.plan.memories.iter();
        let of = |&memory: &u64| {
            let rows = self.rows.iter().filter(|row| row.memory == memory);
            PairRow::together(&rows.collect::<Vec<_>>())
        };
        memories.filter_map(of).collect()
    }

    /// What the captures say together.
    fn sentences(&self) -> Vec<String> {
        let words = SliceWords::of(self.plan.slicing.width_ns);
        let mut rows = self.summary();
        rows.sort_by_key(|row| row.memory);
        answers(&rows, words, |row| {
            let [a, b] = self.pair.map(Contender::name);
            let [of_a, of_b] = row.captures_nearer;
            let equal = match row.captures - of_a - of_b {
                0 => String::new(),
                equal => format!(", the same in {}", grouped(equal)),
            };
            (row.captures > 1).then(|| {
                format!(
                    "Of {} captures {b} had the smaller mean error in {}, {a} in {}{equal}.",
                    grouped(row.captures),
                    grouped(of_b),
                    grouped(of_a)
                )
            })
        })
    }

    fn title(&self) -> String {
        let [a, b] = self.pair.map(Contender::name);
        format!(
            "{a} against {b}: distinct {} {}, each capture by itself",
            self.plan.rule.kind.plural(),
            slices_of(self.plan.slicing.width_ns)
        )
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
            self.table(style, &mut out)?;
            out.flush()?;
            return Ok(out);
        }
        let mut summary = self.summary();
        // Without a document the summary is rows without the name of a capture.
        let (mut rows, mut tail) = (self.rows.clone(), Vec::new());
        if format.is_document() {
            tail.push(("summary", each_columns().list_of(&summary)));
        } else {
            rows.append(&mut summary);
        }
        let frame = self.frame();
        let mut out = RowWriter::write_all(format, frame, each_columns(), &rows, tail, out)?;
        out.flush()?;
        Ok(out)
    }

    fn frame(&self) -> Frame {
        let asked =
            Asked { plan: self.plan, expected: None, pair: Some(self.pair), anonymized: false };
        Frame::new(SCHEMA, "captures").with("parameters", parameter_columns().object_of(&asked))
    }

    /// Returns the summary.
    pub fn document(&self) -> Summary {
        self.frame().summary(vec![("summary", each_columns().list_of(&self.summary()))])
    }

    fn table(&self, style: TerminalStyle, out: &mut dyn Write) -> io::Result<()> {
        let width = style.width_within(USUAL_WIDTH);
        for text in self.sentences() {
            for line in wrapped(&text, width.min(96)) {
                writeln!(out, "{line}")?;
            }
        }
        writeln!(out)?;
        for line in wrapped(&self.title(), width) {
            writeln!(out, "{line}")?;
        }
        let mut dropped = None;
        for &memory in &self.plan.memories {
            writeln!(out)?;
            let table = self.fitting(memory, style.width);
            let table = style.table(&table, width);
            dropped = dropped.or(table.remark);
            write_lines(out, table.head)?;
            write_lines(out, table.rows)?;
        }
        write_lines(out, dropped.iter().flat_map(|remark| wrapped(remark, width)).collect())?;
        for row in self.rows.iter().filter(|row| row.result.is_err()) {
            let capture = row.capture.as_deref().unwrap_or_default();
            let capture = capture.replace(char::is_control, "?");
            let why = row.note().unwrap_or_default();
            let text = format!("{capture} at {}: {why}", size(row.memory));
            for line in wrapped(&text, width) {
                writeln!(out, "{line}")?;
            }
        }
        Ok(())
    }

    /// The same for a terminal of this many columns, with file names instead of paths if these do
    /// not fit.
    fn fitting(&self, memory: u64, width: Option<usize>) -> TableView {
        let mut table = self.data(memory);
        if Layout::new(&fitted(&table.headings, &table.rows), width).is_whole() {
            return table;
        }
        let names: Vec<String> = table.rows.iter().map(|row| file_name(&row[0])).collect();
        if names.iter().collect::<HashSet<_>>().len() == names.len() {
            for (row, name) in table.rows.iter_mut().zip(names) {
                row[0] = name;
            }
        }
        table
    }

    /// The captures at a memory, and all of them together.
    fn data(&self, memory: u64) -> TableView {
        let [a, b] = self.pair.map(Contender::name);
        let slices = format!("{}s", SliceWords::of(self.plan.slicing.width_ns).one());
        // What matters least is dropped first.
        let number =
            |text: &str, priority| Heading::number(text.to_owned()).gap(2).drop_priority(priority);
        let headings = [
            Heading::text(format!("{} each", size(memory))),
            number(&slices, 4),
            number(&self.plan.rule.kind.plural(), 2),
            number(&format!("{a} nearer"), 0),
            number(&format!("{b} nearer"), 0),
            number("equal", 5),
            number(&format!("{a} mean"), 0),
            number("worst", 3),
            number("estimate", 1),
            number(&format!("{b} mean"), 0),
            number("worst", 3),
            number("estimate", 1),
        ];
        let rows = self.rows.iter().filter(|row| row.memory == memory).cloned();
        let all = self.summary().into_iter().filter(|row| row.memory == memory);
        let rows = rows.chain(all.filter(|row| row.captures > 1));
        let table = TableView::new(headings, rows.map(|row| cells(&row)));
        // A structure without an estimate needs no column for it.
        let is_empty = |column: usize| table.rows.iter().all(|row| row[column] == "–");
        chosen(&table, |column| table.rows.is_empty() || !is_empty(column))
    }

    /// Everything to look at: the answer, the mean errors of both by capture, and the table.
    pub fn page(&self) -> Document {
        let mut page = Document {
            zone: self.plan.trace.selection.zone,
            title: self.title(),
            ..Document::default()
        };
        page.page(self.sentences().into_iter().map(Block::Answer));
        page.page([Block::Section("Which was nearer to the truth".to_owned())]);
        let mut memories = self.plan.memories.clone();
        memories.sort_unstable();
        page.page(middle(&memories).map(|memory| Block::Figure(self.figure(memory))));
        page.page(memories.iter().map(|&memory| Block::Table(self.data(memory))));
        page
    }

    fn figure(&self, memory: u64) -> Figure {
        let rows = self.rows.iter().filter(|row| row.memory == memory);
        let rows: Vec<&PairRow> = rows.collect();
        let names = rows.iter().map(|row| {
            let capture = row.capture.as_deref().unwrap_or_default();
            file_name(capture)
        });
        let series = [0, 1].map(|number| {
            let mean = |row: &&PairRow| Some(row.result.as_ref().ok()?.sides[number].errors.mean);
            (self.pair[number].name().to_owned(), rows.iter().map(mean).collect())
        });
        Figure::new(
            "mean-error-by-capture",
            format!("Mean error by capture, {} each", size(memory)),
            "Of the raw count, or of the estimate of a structure that has no raw count.",
            Drawing::Bars {
                categories: names.collect(),
                y: Axis::new("mean error", Scale::Percent),
                series: series.into(),
            },
        )
    }
}

/// Columns of a line that does not go to a terminal.
const USUAL_WIDTH: usize = 120;

/// The cells of a row.
fn cells(row: &PairRow) -> Vec<String> {
    let name = match &row.capture {
        // A name may hold what a terminal would obey.
        Some(capture) => capture.replace(char::is_control, "?"),
        None => format!("all {}", grouped(row.captures)),
    };
    let Ok(result) = &row.result else {
        let dashes = std::iter::repeat_n("–".to_owned(), 11);
        return std::iter::once(name).chain(dashes).collect();
    };
    let [a, b] = &result.sides;
    let counts = [result.slices, result.exact, a.nearer, b.nearer, result.equal];
    let errors = [a, b].into_iter().flat_map(|side| {
        let estimate = side.estimate.as_ref();
        [
            short_percent(side.errors.mean),
            short_percent(side.errors.worst),
            estimate.map_or("–".to_owned(), |errors| short_percent(errors.mean)),
        ]
    });
    let counts = counts.map(grouped).into_iter();
    std::iter::once(name).chain(counts).chain(errors).collect()
}

/// The columns of a table that are chosen, by number.
fn chosen(table: &TableView, is_chosen: impl Fn(usize) -> bool) -> TableView {
    let columns: Vec<usize> = (0..table.headings.len()).filter(|&i| is_chosen(i)).collect();
    let headings = columns.iter().map(|&column| table.headings[column].clone());
    let rows = table.rows.iter();
    let rows = rows.map(|row| columns.iter().map(|&column| row[column].clone()).collect());
    TableView::new(headings, rows)
}

fn file_name(capture: &str) -> String {
    capture.rsplit('/').next().unwrap_or_default().to_owned()
}
