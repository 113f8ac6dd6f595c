//! Saved filters in every format.

use super::cell::{Cell, object};
use super::column::Columns;
use super::count_combinations::{cell, count_columns, names};
use super::document::{Block, Document, TableView};
use super::format::ReportFormat;
use super::number::{counted, grouped, percent, rfc3339, size};
use super::rows::{Frame, RowWriter, Summary};
use super::selection::part_columns;
use super::terminal::{self, TerminalStyle};
use crate::decode::Tunnel;
use crate::elements::ElementLabel;
use crate::filters::saved::SavedFilter;
use crate::filters::{CounterStats, Estimate, FilterKind, FilterSpec, FilterStats};
use crate::pipeline::CombinationResult;
use crate::zone::Zone;
use flowsieve_engine::internal::Shown;
use std::io::{self, Write};
use std::path::Path;

/// Name and version of the document.
const SCHEMA: &str = "flowsieve.filter-info/1";

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
    Columns::default()
        .field("path", |row: &FilterRow| row.path.clone())
        .doc("as given")
        .field("element", |row| row.of_label(|label| label.rule.kind.name().into_owned()))
        .doc("as for `count`; null if `count` did not save the file")
        .field("undirected", |row| row.of_label(|label| label.rule.undirected))
        .field("queries_only", |row| row.of_label(|label| label.rule.queries_only))
        .field("dns_ports", |row| row.of_label(|label| label.headers.dns_ports.clone()))
        .field("tunnel", |row| row.of_label(|label| label.headers.tunnel.name()))
        .part(None, &part_columns(), |row| row.of_label(|label| label.part.clone()))
        .field("complete", |row| row.of_label(|label| label.is_complete))
        .doc("false if an input could not be read to its end: elements may be missing")
        .field("filter", |row| row.spec.name())
        .doc("the structure")
        .field("probes", |row| row.spec.probes())
        .doc("hash functions (k), or subtables of `dleft`")
        .field("memory_bytes", |row| row.stats.memory_bytes)
        .doc("memory of the filters of all shards")
        .field("shards", |row| row.shards)
        .doc("as for `count`")
        .field("seed", |row| row.seed)
        .field("fill_ratio", |row| row.stats.fill_ratio)
        .doc("share of set bits, of counters above zero, or of cells in use")
        .unit("share")
        .field("stage", |row| row.stage)
        .doc("it looks at one element in 2^`stage` ([why](structures.md#when-subset-is-crowded-it-halves-what-it-watches)); 0 if it knows all")
        .field("estimate", |row| row.distinct.and_then(Estimate::point))
        .doc("unbiased estimate of the distinct elements")
        .field("std_error", |row| row.distinct.and_then(Estimate::point_error))
        .doc("its standard error")
        .field("lower", |row| row.distinct.map(Estimate::lower))
        .doc("lower bound: `lower` and `upper` enclose the true number in at least 95 of 100 cases")
        .field("upper", |row| row.distinct.and_then(Estimate::upper))
        .doc("upper bound")
        .field("saturated", |row| row.of_counters(|counters| counters.saturated))
        .doc("counters that reached their largest value")
        .field("overflows", |row| row.of_counters(|counters| counters.overflows))
        .doc("increments lost in them")
        .field("stashed", |row| row.of_overflow(|counters| counters.stashed))
        .doc("of a `dleft`: elements whose four buckets were full")
        .field("given_up", |row| row.of_overflow(|counters| counters.given_up))
        .doc("of a `dleft`: buckets that say yes to everything, because the stash was full as well")
        .objects("combinations", stored_columns(), |row| row.combinations.clone())
        .doc("stored combinations (below); not in flat tables")
        .field("full", FilterRow::is_full)
        .doc("it notices too few new elements for a count: there is no upper bound")
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
    Columns::default()
        .field("attributes", |row: &StoredRow| row.attributes.clone())
        .doc("names of its attributes, or numbers from 1")
        .field("probes", |row| row.probes)
        .doc("bits that each of its values sets (k_S), in `subset`")
        .part(None, &count_columns(), |row| Some(row.count))
}

impl StoredRow {
    /// All combinations that the filter stores in addition to the whole element; attributes
    /// without a name have a number.
    pub(super) fn all(filter: &SavedFilter, label: Option<&ElementLabel>) -> Vec<Self> {
        let spec = filter.spec();
        let count = spec.attributes().unwrap_or(0);
        let known = label.map(|label| label.rule.kind.attributes());
        let known = known.filter(|known| known.len() == count);
        let row = |mask: u32| {
            let counts = filter.combination(mask);
            let attributes = match &known {
                Some(known) => names(known, mask).into_iter().map(str::to_owned).collect(),
                None => (0..count)
                    .filter(|attribute| mask >> attribute & 1 == 1)
                    .map(|attribute| (attribute + 1).to_string())
                    .collect(),
            };
            Self {
                attributes,
                probes: spec.probes_of(mask),
                count: CombinationResult::new(&counts, None),
            }
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
    /// Returns the summary.
    pub fn summary(&self) -> Summary {
        Summary::of_document(self.document(), self.zone)
    }

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

    /// Writes the filters; `style` is that of the table.
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
            terminal::print(&self.view(), style, &mut out)?;
        } else {
            let frame = Frame::new(SCHEMA, "filters").in_zone(self.zone);
            let frame = frame.of_document(format, || self.document());
            let columns = filter_columns();
            out = RowWriter::write_all(format, frame, columns, &self.rows, Vec::new(), out)?;
        }
        out.flush()?;
        Ok(out)
    }

    fn document(&self) -> Cell {
        let filters = filter_columns().in_zone(self.zone).list_of(&self.rows);
        object([("schema", Cell::Text(SCHEMA.into())), ("filters", filters)])
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
    let share = known_in(row.stage);
    match row.of_label(|label| label.is_complete) {
        Some(false) => format!("{share}; an input was not read to its end, so some are missing"),
        _ => share,
    }
}

/// The share of the elements that a filter of this stage knows.
fn known_in(stage: u32) -> String {
    match stage {
        0 => "all elements".to_owned(),
        stage => format!("at most one element in {}; it counts all", 1_u64 << stage),
    }
}

/// The properties of a filter with their names.
fn facts(row: &FilterRow, zone: Zone) -> Vec<(&'static str, String)> {
    let shards = if row.shards == 1 { "shard" } else { "shards" };
    let mut lines = vec![
        (
            "elements",
            row.of_label(|label| described(label, zone))
                .unwrap_or_else(|| "of an unknown kind".to_owned()),
        ),
        ("structure", row.spec.name().to_owned()),
        ("parameters", row.spec.describe()),
        ("memory", format!("{} in {} {shards}", size(row.stats.memory_bytes), row.shards)),
        ("fill", percent(row.stats.fill_ratio)),
        ("knows", known(row)),
        ("seed", row.seed.to_string()),
    ];
    let not_told = if row.is_full() { "the filter is full" } else { "this filter does not tell" };
    lines.push(("distinct", row.distinct.map_or_else(|| not_told.to_owned(), distinct)));
    if let Some(counters) = &row.stats.counters {
        lines.push((
            "counters",
            format!(
                "{} saturated, {}",
                grouped(counters.saturated),
                counted(counters.overflows, "overflow", "overflows")
            ),
        ));
    }
    let stashed = row.of_overflow(|counters| counters.stashed);
    let given_up = row.of_overflow(|counters| counters.given_up);
    if let Some((stashed, given_up)) = stashed.zip(given_up) {
        lines.push((
            "overflow",
            format!(
                "{} stashed, {} given up",
                counted(stashed, "element", "elements"),
                counted(given_up, "bucket", "buckets")
            ),
        ));
    }
    lines
}

/// A number of distinct elements with its bounds.
pub(super) fn distinct(estimate: Estimate) -> String {
    let lower = grouped(estimate.lower());
    let bounds = match estimate.upper() {
        Some(upper) => format!("from {lower} to {}", grouped(upper)),
        None => format!("at least {lower}: the filter is full"),
    };
    match estimate.point().map(|count| grouped(count.round() as u64)) {
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
    for port in &label.headers.dns_ports {
        text += ", DNS also on port ";
        text += &port.to_string();
    }
    if label.headers.tunnel == Tunnel::Inner {
        text.push_str(", of the innermost IP header");
    }
    if let Some(expression) = &label.part.expression {
        text += ", where ";
        text += expression;
    }
    for (word, time) in [("from", label.part.from_ns), ("before", label.part.to_ns)] {
        if let Some(time) = time {
            text.extend([", ", word, " ", &rfc3339(time, zone)]);
        }
    }
    text
}
