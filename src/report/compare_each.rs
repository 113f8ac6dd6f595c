//! Two structures on several captures: a line a capture, and what all of them say together.

use super::column::Columns;
use super::compare_model::{Asked, parameter_columns};
use super::compare_pair::{PairRow, SliceWords, pair_columns};
use super::compare_words::{answers, middle, short_percent};
use super::figure::{Axis, Block, DataTable, Drawing, Figure, Page, PageSection, Scale};
use super::format::ReportFormat;
use super::look::Look;
use super::number::{grouped, size, slices_of};
use super::rows::{CellRows, Frame, Section};
use super::table::{Heading, bold, fitted, head, layout, wrapped};
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

    /// Writes it; `look` is that of the table.
    ///
    /// # Errors
    ///
    /// Writing failed.
    pub fn write<W: Write>(&self, format: ReportFormat, look: Look, mut out: W) -> io::Result<W> {
        if format == ReportFormat::Table {
            self.table(look, &mut out)?;
            out.flush()?;
            return Ok(out);
        }
        let mut summary = self.summary();
        let asked =
            Asked { plan: self.plan, expected: None, pair: Some(self.pair), anonymized: false };
        let parameters = parameter_columns().object_of(&asked);
        let mut frame =
            Frame::of_rows(SCHEMA, "captures", "capture").with("parameters", parameters);
        // In flat tables the summary stands in rows of its own, without the name of a capture.
        let (mut rows, mut tail) = (self.rows.clone(), Vec::new());
        if format.is_flat() {
            rows.append(&mut summary);
        } else {
            frame.tail = vec![Section::of("summary", "summary", &each_columns())];
            tail.push(each_columns().list_of(&summary));
        }
        let mut out = CellRows::write_all(format, frame, each_columns(), &rows, tail, out)?;
        out.flush()?;
        Ok(out)
    }

    fn table(&self, look: Look, out: &mut dyn Write) -> io::Result<()> {
        let width = look.width_within(USUAL_WIDTH);
        for text in self.sentences() {
            for line in wrapped(&text, width.min(96)) {
                writeln!(out, "{line}")?;
            }
        }
        writeln!(out)?;
        for line in wrapped(&self.title(), width) {
            writeln!(out, "{line}")?;
        }
        let mut gone = None;
        for &memory in &self.plan.memories {
            writeln!(out)?;
            let table = self.fitting(memory, width);
            let layout = layout(&self.headings(&table), Some(width));
            bold(out, look.bold, &head(&layout.headings))?;
            gone = gone.or(layout.remark());
            for row in table.rows {
                writeln!(out, "{}", layout.line(row))?;
            }
        }
        for line in gone.iter().flat_map(|remark| wrapped(remark, width)) {
            writeln!(out, "{line}")?;
        }
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

    /// The same for a terminal of this many columns: with the names of files instead of their
    /// paths, if need be.
    fn fitting(&self, memory: u64, width: usize) -> DataTable {
        let mut table = self.data(memory);
        if layout(&self.headings(&table), Some(width)).is_whole() {
            return table;
        }
        let names = table.rows.iter().map(|row| file_name(&row[0]));
        let names: Vec<String> = names.collect();
        if names.iter().collect::<HashSet<_>>().len() == names.len() {
            for (row, name) in table.rows.iter_mut().zip(names) {
                row[0] = name;
            }
        }
        table
    }

    /// The headings of a table in a terminal; what matters least goes first.
    fn headings(&self, table: &DataTable) -> Vec<Heading> {
        let slices = format!("{}s", SliceWords::of(self.plan.slicing.width_ns).one());
        let order = ["estimate", &self.plan.rule.kind.plural(), "worst", &slices, "equal"];
        let heads = table.columns.iter().zip(&table.numeric);
        let heads: Vec<(String, bool)> =
            heads.map(|(text, &numeric)| (text.clone(), !numeric)).collect();
        let headings = fitted(&heads, &table.rows).into_iter();
        let headings = headings.map(|heading| {
            let place = order.iter().position(|name| *name == heading.text);
            heading.gap(2).goes(place.map_or(0, |place| place as u8 + 1))
        });
        headings.collect()
    }

    /// The captures at a memory, and all of them together.
    fn data(&self, memory: u64) -> DataTable {
        let [a, b] = self.pair.map(Contender::name);
        let elements = self.plan.rule.kind.plural();
        let heads = [
            (format!("{} each", size(memory)), false),
            (format!("{}s", SliceWords::of(self.plan.slicing.width_ns).one()), true),
            (elements.to_string(), true),
            (format!("{a} nearer"), true),
            (format!("{b} nearer"), true),
            ("equal".to_owned(), true),
            (format!("{a} mean"), true),
            ("worst".to_owned(), true),
            ("estimate".to_owned(), true),
            (format!("{b} mean"), true),
            ("worst".to_owned(), true),
            ("estimate".to_owned(), true),
        ];
        let heads: Vec<(&str, bool)> =
            heads.iter().map(|(text, numeric)| (text.as_str(), *numeric)).collect();
        let rows = self.rows.iter().filter(|row| row.memory == memory).cloned();
        let all = self.summary().into_iter().filter(|row| row.memory == memory);
        let rows = rows.chain(all.filter(|row| row.captures > 1));
        let table = DataTable::new(&heads, rows.map(|row| cells(&row)));
        // A structure without an estimate needs no column for it.
        let is_empty = |column: usize| table.rows.iter().all(|row| row[column] == "–");
        chosen(&table, |column| table.rows.is_empty() || !is_empty(column))
    }

    /// Everything to look at: the answer, the mean errors of both by capture, and the table.
    pub fn page(&self) -> Page {
        let mut blocks = Vec::new();
        let mut memories = self.plan.memories.clone();
        memories.sort_unstable();
        if let Some(memory) = middle(&memories) {
            blocks.push(Block::Figure(self.figure(memory)));
        }
        blocks.extend(memories.iter().map(|&memory| Block::Table(self.data(memory))));
        Page {
            zone: self.plan.trace.selection.zone,
            title: self.title(),
            summary: self.sentences(),
            warnings: Vec::new(),
            sections: vec![PageSection::new("Which was nearer to the truth", blocks)],
        }
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
            &format!("Mean error by capture, {} each", size(memory)),
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
fn chosen(table: &DataTable, is_chosen: impl Fn(usize) -> bool) -> DataTable {
    let columns = (0..table.columns.len()).filter(|&column| is_chosen(column));
    let columns: Vec<usize> = columns.collect();
    let of = |row: &Vec<String>| columns.iter().map(|&column| row[column].clone()).collect();
    DataTable {
        columns: of(&table.columns),
        numeric: columns.iter().map(|&column| table.numeric[column]).collect(),
        rows: table.rows.iter().map(of).collect(),
    }
}

fn file_name(capture: &str) -> String {
    capture.rsplit('/').next().unwrap_or_default().to_owned()
}
