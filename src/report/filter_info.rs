//! Saved filters, their answers, and what two of them have in common, in every format.

use super::cell::Cell;
use super::column::{Columns, columns};
use super::complete::CompleteReport;
use super::count_combinations::{LOWER_DOC, UPPER_DOC, cell, count_columns, names};
use super::document::{Block, Document, TableView};
use super::format::{Frame, ReportFormat, Summary, Tail};
use super::number::{counted, grouped, percent, rfc3339, rounded, size};
use super::rows::{RowWriter, Writer};
use super::selection::{bounds_words, part_columns};
use crate::decode::Tunnel;
use crate::elements::ElementLabel;
use crate::filters::saved::SavedFilter;
use crate::filters::{CounterStats, Estimate, FilterKind, FilterSpec, FilterStats};
use crate::pipeline::CombinationResult;
use crate::selection::SelectedPart;
use crate::zone::Zone;
use flowsieve_engine::internal::Shown;
use std::io::{self, Write};
use std::path::Path;

/// Saved filters and where they stand.
#[derive(Debug)]
pub struct FilterInfo {
    zone: Zone,
    rows: Vec<FilterRow>,
}

/// The properties of a saved filter, without its arrays.
#[derive(Debug)]
pub(super) struct FilterRow {
    path: String,
    label: Option<ElementLabel>,
    spec: FilterSpec,
    shards: usize,
    seed: u64,
    stats: FilterStats,
    distinct: Option<Estimate>,
    stage: u32,
    combinations: Vec<StoredRow>,
}

impl FilterRow {
    fn is_full(&self) -> bool {
        self.spec.is_full(self.distinct, || self.stats)
    }

    fn of_label<T>(&self, value: impl Fn(&ElementLabel) -> T) -> Option<T> {
        self.label.as_ref().map(value)
    }

    fn of_counters(&self, value: fn(&CounterStats) -> u64) -> Option<u64> {
        self.stats.counters.as_ref().map(value)
    }

    /// A number about the overflow of a d-left filter; `None` for other filters.
    fn of_overflow(&self, value: fn(&CounterStats) -> u64) -> Option<u64> {
        let has_stash = self.spec.kind() == FilterKind::Dleft;
        self.of_counters(value).filter(|_| has_stash)
    }
}

/// The columns of a saved filter.
pub(super) fn filter_columns() -> Columns<FilterRow> {
    columns! { field row: FilterRow;
        path = row.path.clone(), "as given";
        element = row.of_label(|label| label.rule.kind.name().into_owned()),
            "as for `count`; null if `count` did not save the file";
        undirected = row.of_label(|label| label.rule.undirected), "";
        queries_only = row.of_label(|label| label.rule.queries_only), "";
        dns_ports = row.of_label(|label| label.headers.dns_ports.clone()), "";
        tunnel = row.of_label(|label| label.headers.tunnel.name()), "";
        ..part(None, &part_columns(), |row| row.of_label(|label| label.part.clone()));
        complete = row.of_label(|label| label.is_complete),
            "false if an input could not be read to its end: elements may be missing";
        filter = row.spec.name(), "the structure";
        probes = row.spec.probes(), "hash functions (k), or subtables of `dleft`";
        memory_bytes = row.stats.memory_bytes, "memory of the filters of all shards";
        shards = row.shards, "as for `count`";
        seed = row.seed, "";
        fill_ratio = row.stats.fill_ratio,
            "share of set bits, of counters above zero, or of cells in use", unit("share");
        stage = row.stage,
            "it looks at one element in 2^`stage` ([why](structures.md#when-subset-is-crowded-it-halves-what-it-watches)); 0 if it knows all";
        estimate = row.distinct.and_then(Estimate::point),
            "unbiased estimate of the distinct elements";
        std_error = row.distinct.and_then(Estimate::point_error), "its standard error";
        lower = row.distinct.map(Estimate::lower), LOWER_DOC;
        upper = row.distinct.and_then(Estimate::upper), UPPER_DOC;
        saturated = row.of_counters(|counters| counters.saturated),
            "counters that reached their largest value";
        overflows = row.of_counters(|counters| counters.overflows), "increments lost in them";
        stashed = row.of_overflow(|counters| counters.stashed),
            "of a `dleft`: elements whose four buckets were full";
        given_up = row.of_overflow(|counters| counters.given_up),
            "of a `dleft`: buckets that say yes to everything, because the stash was full as well";
        ..objects("combinations", stored_columns(), |row| row.combinations.clone()),
            "stored combinations (below); not in flat tables";
        full = row.is_full(),
            "it notices too few new elements for a count: there is no upper bound";
    }
}

/// A combination that a filter stores.
#[derive(Clone, Debug)]
pub(super) struct StoredRow {
    attributes: Vec<String>,
    probes: Option<u32>,
    count: CombinationResult,
}

/// The columns of such a combination.
pub(super) fn stored_columns() -> Columns<StoredRow> {
    columns! { field row: StoredRow;
        attributes = row.attributes.clone(), "names of its attributes, or numbers from 1";
        probes = row.probes, "bits that each of its values sets (k_S), in `subset`";
        ..part(None, &count_columns(), |row| Some(row.count));
    }
}

impl StoredRow {
    /// All combinations that the filter stores in addition to the whole element; attributes
    /// without a name have a number.
    pub(super) fn all(filter: &SavedFilter, label: Option<&ElementLabel>) -> Vec<Self> {
        let spec = filter.spec();
        let count = spec.attributes().unwrap_or(0);
        let known = label.map(|label| label.rule.kind.attributes());
        let known = known.filter(|known| known.len() == count);
        let known: Vec<String> = match known {
            Some(known) => known.into_iter().map(str::to_owned).collect(),
            None => (1..=count).map(|number| number.to_string()).collect(),
        };
        let row = |mask: u32| Self {
            attributes: names(&known, mask),
            probes: spec.probes_of(mask),
            count: CombinationResult::new(&filter.combination(mask), None),
        };
        spec.stored().into_iter().map(row).collect()
    }

    /// The count, and the bits, as people read them.
    fn words(&self) -> String {
        let count = match self.count {
            CombinationResult { estimate: None, first: None, .. } => "not counted".to_owned(),
            count => cell(&count),
        };
        match self.probes {
            Some(probes) => format!("{count}, k = {probes}"),
            None => count,
        }
    }
}

impl FilterInfo {
    /// Begins a report without filters, with times in this zone.
    pub fn in_zone(zone: Zone) -> Self {
        Self { zone, rows: Vec::new() }
    }

    /// Adds a filter.
    pub fn add(&mut self, path: &Path, filter: &SavedFilter) {
        let label = ElementLabel::parse(filter.label());
        self.rows.push(FilterRow {
            path: path.shown().into_raw().into_owned(),
            combinations: StoredRow::all(filter, label.as_ref()),
            label,
            spec: filter.spec().clone(),
            shards: filter.shards(),
            seed: filter.seed(),
            stats: filter.stats(),
            distinct: filter.distinct(),
            stage: filter.stage(),
        });
    }

    /// Returns the filters in every format.
    pub fn complete(&self) -> CompleteReport<'_> {
        CompleteReport {
            frame: Frame::new("flowsieve.filter-info/1", "filters").in_zone(self.zone),
            sections: Box::new(|| vec![("filters", filter_columns().list_of(&self.rows))]),
            has_rows: false,
            table: Box::new(|| self.view()),
            rows: Box::new(|target| target.write(filter_columns(), &self.rows)),
        }
    }

    /// The filters as a document.
    fn view(&self) -> Document {
        let mut document = Document { zone: self.zone, ..Document::default() };
        for (index, row) in self.rows.iter().enumerate() {
            document.both((index > 0).then_some(Block::Gap));
            let stored = row.combinations.iter();
            let stored = stored.map(|stored| (stored.attributes.join(","), stored.words()));
            let facts = facts(row, self.zone).into_iter();
            let facts = facts.map(|(name, text)| (name.to_owned(), text)).chain(stored);
            let facts = facts.map(|(name, text)| (format!("  {name}"), text));
            let table = TableView::facts(NAME, facts);
            document.both([Block::Sentence(row.path.clone()), Block::Table(table)]);
        }
        document
    }
}

/// Width of the names of facts.
const NAME: usize = 13;

/// The share of the elements that a filter knows.
fn known(row: &FilterRow) -> String {
    let share = match row.stage {
        0 => "all elements".to_owned(),
        stage => format!("at most one element in {}; it counts all", 1_u64 << stage),
    };
    match row.of_label(|label| label.is_complete) {
        Some(false) => format!("{share}; an input was not read to its end, so some are missing"),
        _ => share,
    }
}

/// The properties of a filter with their names.
fn facts(row: &FilterRow, zone: Zone) -> Vec<(&'static str, String)> {
    let shards = counted(row.shards as u64, "shard", "shards");
    let elements = row.of_label(|label| described(label, zone));
    let not_told = if row.is_full() { "the filter is full" } else { "this filter does not tell" };
    let mut lines = vec![
        ("elements", elements.unwrap_or_else(|| "of an unknown kind".to_owned())),
        ("structure", row.spec.name().to_owned()),
        ("parameters", row.spec.describe()),
        ("memory", format!("{} in {shards}", size(row.stats.memory_bytes))),
        ("fill", percent(row.stats.fill_ratio)),
        ("knows", known(row)),
        ("seed", row.seed.to_string()),
        ("distinct", row.distinct.map_or_else(|| not_told.to_owned(), distinct)),
    ];
    lines.extend(row.stats.counters.as_ref().map(|counters| {
        let overflows = counted(counters.overflows, "overflow", "overflows");
        ("counters", format!("{} saturated, {overflows}", grouped(counters.saturated)))
    }));
    let stashed = row.of_overflow(|counters| counters.stashed);
    lines.extend(stashed.zip(row.of_overflow(|counters| counters.given_up)).map(|overflow| {
        let stashed = counted(overflow.0, "element", "elements");
        let given_up = counted(overflow.1, "bucket", "buckets");
        ("overflow", format!("{stashed} stashed, {given_up} given up"))
    }));
    lines
}

/// A number of distinct elements with its bounds.
pub(super) fn distinct(estimate: Estimate) -> String {
    let lower = grouped(estimate.lower());
    let bounds = match estimate.upper() {
        Some(upper) => format!("from {lower} to {}", grouped(upper)),
        None => format!("at least {lower}: the filter is full"),
    };
    match estimate.point().map(rounded) {
        Some(count) => format!("{count} ± {:.1}, {bounds}", estimate.std_error()),
        None => bounds,
    }
}

/// The elements of a filter.
fn described(label: &ElementLabel, zone: Zone) -> String {
    let rule = &label.rule;
    let undirected = if rule.undirected { "undirected " } else { "" };
    let mut text = format!("{undirected}{}", rule.kind.plural());
    if rule.queries_only {
        text.push_str(", queries only");
    }
    let ports = label.headers.dns_ports.iter();
    text.extend(ports.map(|port| format!(", DNS also on port {port}")));
    if label.headers.tunnel == Tunnel::Inner {
        text.push_str(", of the innermost IP header");
    }
    let SelectedPart { expression, from_ns, to_ns } = &label.part;
    let [from, to] = [from_ns, to_ns].map(|ns| ns.map(|ns| rfc3339(ns, zone)));
    let part = bounds_words(expression.clone(), from, to);
    text.extend(part.map(|part| format!(", {part}")));
    text
}

/// A question as given, and the answer of the filter.
pub(super) type Answer = (String, &'static str);

/// The columns of an answer.
pub(super) fn answer_columns() -> Columns<Answer> {
    columns! { field answer: Answer;
        question = answer.0.clone(), "as given";
        answer = answer.1,
            "`yes` (seen, or a false positive), `no` (never seen in what was read), `apart` (each value was seen, perhaps in different elements) or `unknown` (the filter cannot say)";
    }
}

fn answer_frame() -> Frame {
    Frame::new("flowsieve.filter-query/1", "answers")
}

/// Returns the end of a report that says whether it is complete.
fn tail(is_complete: bool) -> Tail {
    vec![("complete", Cell::Bool(is_complete))]
}

/// Returns the summary of answers. They are complete if the filter has all that was to be read and
/// all questions were answered.
pub fn answer_summary(is_complete: bool) -> Summary {
    answer_frame().summary(tail(is_complete))
}

/// Writes answers. The table has a line for each, with a tab between question and answer.
#[derive(Debug)]
pub struct AnswerReport<W: Write>(Writer<W, RowWriter<W, Answer>>);

impl<W: Write> AnswerReport<W> {
    /// Begins a report.
    ///
    /// # Errors
    ///
    /// Writing failed.
    pub fn begin(format: ReportFormat, out: W) -> io::Result<Self> {
        if format.is_table() {
            return Ok(Self(Writer::Table(Box::new(out))));
        }
        let rows = RowWriter::begin(format, answer_frame(), answer_columns(), out)?;
        Ok(Self(Writer::Rows(Box::new(rows))))
    }

    /// Writes an answer.
    ///
    /// # Errors
    ///
    /// Writing failed.
    pub fn answer(&mut self, question: String, answer: &'static str) -> io::Result<()> {
        match &mut self.0 {
            Writer::Table(out) => writeln!(out, "{}\t{answer}", question.shown()),
            Writer::Rows(rows) => rows.row(&(question, answer)),
        }
    }

    /// Ends the report, complete or not, and gives the writer back, flushed.
    ///
    /// # Errors
    ///
    /// Writing failed.
    pub fn finish(self, is_complete: bool) -> io::Result<W> {
        let mut out = match self.0 {
            Writer::Rows(rows) => return rows.finish(tail(is_complete)),
            Writer::Table(out) => *out,
        };
        out.flush()?;
        Ok(out)
    }
}

/// The counts of two sets and of what they make together.
#[derive(Debug)]
pub struct OverlapReport {
    counts: [(&'static str, Estimate); 4],
    is_complete: bool,
}

/// The columns of a count.
pub(super) fn overlap_columns() -> Columns<(&'static str, Estimate)> {
    columns! { field row: (&'static str, Estimate);
        set = row.0, "`first` or `second` file, `either` or `both`";
        estimate = row.1.distinct, "distinct elements by the fill of the filters";
        std_error = row.1.std_error(), "its standard error";
        lower = row.1.lower(), "lower bound: with `upper` it holds in 95 of 100 cases or more";
        upper = row.1.upper(), "upper bound";
    }
}

impl OverlapReport {
    /// The counts of the first set, the second one, their union and what they have in common. They are
    /// complete if both filters have all that was to be read.
    pub fn new([first, second, either, both]: [Estimate; 4], is_complete: bool) -> Self {
        let counts = [("first", first), ("second", second), ("either", either), ("both", both)];
        Self { counts, is_complete }
    }

    /// Returns the counts in every format.
    pub fn complete(&self) -> CompleteReport<'_> {
        CompleteReport {
            frame: Frame::new("flowsieve.filter-intersect/1", "sets"),
            sections: Box::new(|| tail(self.is_complete)),
            has_rows: true,
            table: Box::new(|| {
                let facts = self.counts.iter().map(|(name, count)| (*name, distinct(*count)));
                let mut document = Document::default();
                document.both([Block::Table(TableView::facts(9, facts))]);
                document
            }),
            rows: Box::new(|target| target.write(overlap_columns(), &self.counts)),
        }
    }
}
